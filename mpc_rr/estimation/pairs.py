"""Counts of all pairs of attributes as one vector, and back."""

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache

import numpy as np
import numpy.typing as npt

from mpc_rr.errors import InputError

MOST_PAIRS = 200_000
Counts = npt.NDArray[np.int64]


@dataclass(frozen=True)
class PairLayout:
    """Where the cells of each pair's table stand in the vector of all cells."""

    sizes: tuple[int, ...]

    def __post_init__(self) -> None:
        """`InputError` if there are too many pairs to go through."""
        if math.comb(len(self.sizes), 2) > MOST_PAIRS:
            raise InputError(
                f"{len(self.sizes):,} attributes have {math.comb(len(self.sizes), 2):,} pairs; "
                f"more than {MOST_PAIRS:,} are not counted: ask fewer attributes"
            )

    @cached_property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        """The pairs (i, j), i < j, in order."""
        return tuple(itertools.combinations(range(len(self.sizes)), 2))

    @cached_property
    def offsets(self) -> tuple[int, ...]:
        """Where each pair's table begins; the last entry is the number of all cells."""
        lengths = (self.sizes[i] * self.sizes[j] for i, j in self.pairs)
        return tuple(itertools.accumulate(lengths, initial=0))

    @property
    def cells(self) -> int:
        """The number of cells of all tables together."""
        return self.offsets[-1]

    def indicator(self, record: tuple[int, ...]) -> npt.NDArray[np.uint64]:
        """The record's vector: in each pair's table a 1 in its own cell, 0 elsewhere."""
        return self.vector([record[i] * self.sizes[j] + record[j] for i, j in self.pairs])

    def vector(self, cells: Sequence[int]) -> npt.NDArray[np.uint64]:
        """A 1 in the given cell of each pair's table, 0 elsewhere."""
        vector = np.zeros(self.cells, dtype=np.uint64)
        for cell, offset in zip(cells, self.offsets, strict=False):
            vector[offset + cell] = 1
        return vector

    @property
    def free(self) -> npt.NDArray[np.int64]:
        """The cells of which neither category is the first: with the margins they give the rest."""
        return _free(self)

    @property
    def free_count(self) -> int:
        """How many numbers `free_vector` has."""
        return sum(size - 1 for size in self.sizes) + len(self.free)

    def free_vector(self, record: tuple[int, ...]) -> npt.NDArray[np.uint64]:
        """The record without what follows from the rest: the tables' first rows and columns.

        A 1 for the category of each attribute (unless it is the first), then the cells of each
        pair's table in which neither category is the first.
        """
        margins = [
            np.arange(1, size) == code for size, code in zip(self.sizes, record, strict=True)
        ]
        cells = self.indicator(record)[self.free]
        return np.concatenate([*margins, cells]).astype(np.uint64)

    def tables_of_free(self, vector: npt.NDArray[np.integer], n: int) -> list[Counts]:
        """The tables from a sum of free vectors over ``n`` records."""
        values, margins, at = vector.astype(np.int64), [], 0
        for size in self.sizes:
            counted = values[at : at + size - 1]
            margins.append(np.concatenate([[n - counted.sum()], counted]))
            at += size - 1
        tables = []
        for i, j in self.pairs:
            rows, columns = self.sizes[i] - 1, self.sizes[j] - 1
            inner = values[at : at + rows * columns].reshape(rows, columns)
            at += rows * columns
            table = np.zeros((rows + 1, columns + 1), dtype=np.int64)
            table[1:, 1:] = inner
            table[1:, 0] = margins[i][1:] - inner.sum(axis=1)
            table[0, 1:] = margins[j][1:] - inner.sum(axis=0)
            table[0, 0] = margins[i][0] - table[0, 1:].sum()
            tables.append(table)
        return tables

    def tables(self, vector: npt.NDArray[np.integer]) -> list[Counts]:
        """The tables in the order of ``pairs``, rows by the first attribute."""
        return [
            vector[start:end].reshape(self.sizes[i], self.sizes[j]).astype(np.int64)
            for (i, j), start, end in zip(self.pairs, self.offsets, self.offsets[1:], strict=False)
        ]

    def inconsistency(
        self, tables: list[Counts], n: int, *, margins_agree: bool = True
    ) -> str | None:
        """Why these cannot be the counts of ``n`` records, or None if they can.

        Every table must sum to n, and the tables that share an attribute must agree on its
        marginal counts. A party that adds something else than one record is found out by this in
        most cases; it cannot be named, because its vector is hidden like everybody's.
        """
        marginals: dict[int, Counts] = {}
        for (i, j), table in zip(self.pairs, tables, strict=True):
            if (table < 0).any():
                return f"the table of attributes {i} and {j} has a negative count"
            if table.sum() != n:
                return f"the table of attributes {i} and {j} sums to {table.sum()}, not to {n}"
            margins = ((i, table.sum(axis=1)), (j, table.sum(axis=0))) if margins_agree else ()
            for attribute, marginal in margins:
                if not np.array_equal(marginals.setdefault(attribute, marginal), marginal):
                    return f"two tables disagree about how often attribute {attribute} has a value"
        return None

    def beyond_noise(
        self, tables: list[Counts], n: int, bound: Callable[[int, int], int]
    ) -> str | None:
        """Why noise does not make these of the counts of ``n`` records, or None if it may.

        Every count lies between 0 and n, every table sums to n, and any two tables agree on an
        attribute that they share, give or take the noise. ``bound(cells, times)``: how large the
        noise in so many cells together may be, if that is asked so many times.
        """
        shared = [
            (attribute, one, other)
            for attribute in range(len(self.sizes))
            for one, other in itertools.combinations(self._pairs_with(attribute), 2)
        ]
        times = self.cells + len(self.pairs) + sum(self.sizes[a] for a, _, _ in shared)
        most = cache(lambda cells: bound(cells, times))
        by_pair = dict(zip(self.pairs, tables, strict=True))
        for (i, j), table in by_pair.items():
            strange = table[(table < -most(1)) | (table > n + most(1))]
            if strange.size:
                return f"the table of attributes {i} and {j} has a count of {strange[0]} among {n}"
            if abs(int(table.sum()) - n) > most(table.size):
                return f"the table of attributes {i} and {j} sums to {table.sum()}, not to {n}"
        for attribute, one, other in shared:
            margins = [by_pair[p].sum(axis=1 - p.index(attribute)) for p in (one, other)]
            added = (by_pair[one].size + by_pair[other].size) // self.sizes[attribute]
            apart = int(np.abs(margins[0] - margins[1]).max())
            if apart > most(added):
                return (
                    f"two tables differ by {apart} about how often attribute {attribute} has a "
                    "value"
                )
        return None

    def _pairs_with(self, attribute: int) -> list[tuple[int, int]]:
        return [pair for pair in self.pairs if attribute in pair]


@lru_cache(maxsize=16)
def _free(layout: PairLayout) -> npt.NDArray[np.int64]:
    """Once for all parties of a host."""
    cells = [
        offset + u * layout.sizes[j] + v
        for (i, j), offset in zip(layout.pairs, layout.offsets, strict=False)
        for u in range(1, layout.sizes[i])
        for v in range(1, layout.sizes[j])
    ]
    return np.array(cells, dtype=np.int64)
