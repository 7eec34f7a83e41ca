"""Tables that agree about everything they share, and whether one distribution has them all.

A table is a sum of interactions, one for each set of its attributes: what that set tells beyond its
own subsets. Two tables agree about all that they share just if they have the same interactions of
the sets that are in both. So the nearest tables that agree (by squares, weighted by precision) have
the averages of these; that may make cells negative. Projections onto the tables that agree and
onto those without negative cells, in turn (Boyle and Dykstra 1986), lead to the nearest tables that
do both. What is still negative in the end is mended by a little of the uniform tables, which agree.

Tables that agree two by two need not be those of any one distribution; a linear program tells by
how much they miss that.
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mpc_rr.errors import InputError
from mpc_rr.estimation.matrix import Array, Codes

Tables = Mapping[tuple[int, ...], Array]
"""Tables by the numbers of their attributes, in rising order."""

MOST_WORK = 4e7
"""Cells that are added up, in all sweeps together: about a second."""
MOST_SWEEPS, FEWEST_SWEEPS = 2_000, 20
MOST_ENTRIES, MOST_PARTS = 30_000, 100
"""Numbers in the matrices of linear programs, together; and how many of these programs."""
NEGLIGIBLE = 1e-9
"""How far a cell may be below 0, as a share of the average cell, when sweeps end."""


def agreeing(
    tables: Tables, precisions: Mapping[tuple[int, ...], float]
) -> dict[tuple[int, ...], Array]:
    """The nearest tables that agree about all they share, none of them with a negative cell.

    ``precisions``: for example the number of answers behind each. `InputError` if there are too
    many cells; see `can_agree`.
    """
    if not can_agree(tables):
        raise InputError("there are too many cells to make tables agree about all they share")
    held = _Stacked(tables, precisions)
    wished = held.stack(tables)
    sweeps = int(min(max(MOST_WORK / max(held.work, 1), FEWEST_SWEEPS), MOST_SWEEPS))
    agreed, rest = held.agreed(wished), np.zeros_like(wished)
    for _ in range(sweeps):
        if float((agreed * held.sizes).min()) > -NEGLIGIBLE:
            break
        proper = np.maximum(agreed + rest, 0.0)
        rest = agreed + rest - proper
        agreed = held.agreed(proper)
    below = max(0.0, -float((agreed * held.sizes).min()))
    mixed = (agreed + below / held.sizes) / (1 + below)
    return held.apart(np.maximum(mixed, 0.0))


def can_agree(tables: Tables) -> bool:
    """Whether there are few enough cells for `agreeing`."""
    work = sum(table.size * 2 ** len(attributes) for attributes, table in tables.items())
    return bool(work * FEWEST_SWEEPS <= MOST_WORK)


def disagreement(tables: Tables) -> float:
    """The largest difference between two tables about a cell of what they share."""
    largest = 0.0
    for shared in _shared(tables):
        found = [_margin(t, c, shared) for c, t in tables.items() if set(shared) <= set(c)]
        largest = max(largest, float(np.ptp(np.stack(found), axis=0).max()))
    return largest


def _margin(table: Array, attributes: tuple[int, ...], wanted: tuple[int, ...]) -> Array:
    return np.asarray(table.sum(axis=tuple(k for k, a in enumerate(attributes) if a not in wanted)))


def _shared(tables: Tables) -> list[tuple[int, ...]]:
    """The sets of attributes that are in two tables or more, smaller ones first."""
    seen: dict[tuple[int, ...], int] = {}
    for attributes in tables:
        for length in range(1, len(attributes) + 1):
            for inside in itertools.combinations(attributes, length):
                seen[inside] = seen.get(inside, 0) + 1
    return sorted((s for s, count in seen.items() if count > 1), key=lambda s: (len(s), s))


@dataclass(frozen=True)
class _Level:
    """All sets of as many attributes that tables share: which cells of which tables add up to what.

    An entry for each cell of a table and each shared set within it. ``rows`` are the cells of the
    margins of each table; ``common``, of a row, the same cell whatever the table.
    """

    cells: Codes
    rows: Codes
    common: Codes
    weights: Array
    widths: Array
    """How many cells of its table a row adds up."""

    def agreed(self, values: Array) -> Array:
        """The margins averaged; each difference shared out evenly over the cells of the table."""
        margins = np.bincount(self.rows, values[self.cells], len(self.common))
        weighed = np.bincount(self.common, self.weights * margins)
        averages = weighed / np.bincount(self.common, self.weights)
        moved = (averages[self.common] - margins) / self.widths
        return np.asarray(values + np.bincount(self.cells, moved[self.rows], len(values)))


class _Stacked:
    """All tables in one vector."""

    def __init__(self, tables: Tables, precisions: Mapping[tuple[int, ...], float]) -> None:
        self._shapes = {attributes: table.shape for attributes, table in tables.items()}
        sizes = [table.size for table in tables.values()]
        starts = itertools.accumulate(sizes[:-1], initial=0)
        self._starts = dict(zip(tables, starts, strict=True))
        self._counts = np.array(sizes)
        self.sizes = np.repeat(self._counts.astype(np.float64), sizes)
        """Of each cell, how many its table has."""
        by_length = itertools.groupby(_shared(tables), key=len)
        self._levels = [self._level(list(shared), precisions) for _, shared in by_length]

    @property
    def work(self) -> int:
        """How many cells are added up in a sweep."""
        return sum(len(level.cells) for level in self._levels)

    def _level(
        self, shared: Sequence[tuple[int, ...]], precisions: Mapping[tuple[int, ...], float]
    ) -> _Level:
        cells, rows, common, weights, widths = [], [], [], [], []
        row = first = 0
        for inside in shared:
            count = 0
            for attributes, shape in self._shapes.items():
                if not set(inside) <= set(attributes):
                    continue
                axes = [attributes.index(a) for a in inside]
                codes = np.indices(shape).reshape(len(shape), -1)[axes]
                within = np.ravel_multi_index(tuple(codes), tuple(shape[k] for k in axes))
                count = math.prod(shape[k] for k in axes)
                cells.append(self._starts[attributes] + np.arange(within.size))
                rows.append(row + within)
                common.append(first + np.arange(count))
                weights.append(np.full(count, float(precisions[attributes])))
                widths.append(np.full(count, within.size / count))
                row += count
            first += count
        joined = (np.concatenate(part) for part in (cells, rows, common, weights, widths))
        return _Level(*joined)

    def stack(self, tables: Tables) -> Array:
        """The cells of all tables."""
        return np.concatenate(
            [np.asarray(table, dtype=np.float64).ravel() for table in tables.values()]
        )

    def apart(self, values: Array) -> dict[tuple[int, ...], Array]:
        """The tables again."""
        return {
            attributes: values[start : start + math.prod(shape)].reshape(shape)
            for (attributes, shape), start in zip(
                self._shapes.items(), self._starts.values(), strict=True
            )
        }

    def agreed(self, values: Array) -> Array:
        """The nearest tables that add up to 1 and agree, cells below 0 allowed.

        Smaller sets come first: what a larger one tells beyond them does not change them.
        """
        totals = np.add.reduceat(values, [*self._starts.values()])
        values = values + np.repeat((1 - totals) / self._counts, self._counts)
        for level in self._levels:
            values = level.agreed(values)
        return values


# ── Whether one distribution has them all ──────────────────────────────────────────────────────


@dataclass(frozen=True)
class Missed:
    """By how much any distribution misses some cell of these tables."""

    least: float
    """No distribution comes nearer to all tables."""
    reached: bool
    """Whether one comes as near; if not, only parts of the tables were looked at, or not all of
    them were solved."""
    solved: bool = True
    """Whether every linear program was; ``least`` is of those that were."""


def missed(tables: Tables, sizes: Sequence[int]) -> Missed:
    """Whether a distribution has all these tables; if not, by how much the nearest misses one.

    All tables at once, if there are few combinations; else those within some sets of attributes.
    """
    everything = tuple(sorted({a for attributes in tables for a in attributes}))
    if _entries(tables, sizes, everything) <= MOST_ENTRIES:
        whole = _gap(tables, sizes, everything)
        solved = whole is not None
        return Missed(whole or 0.0, reached=solved, solved=solved)
    widest = max(len(attributes) for attributes in tables)
    gaps: list[float | None] = []
    left = MOST_ENTRIES
    parts = itertools.combinations(everything, widest + 1)
    for part in itertools.islice(parts, MOST_PARTS):
        left -= _entries(tables, sizes, part)
        if left < 0:
            break
        gaps.append(_gap(tables, sizes, part))
    least = max((gap for gap in gaps if gap is not None), default=0.0)
    return Missed(least, reached=False, solved=None not in gaps)


def _within(tables: Tables, part: Sequence[int]) -> list[tuple[int, ...]]:
    return [attributes for attributes in tables if set(attributes) <= set(part)]


def _entries(tables: Tables, sizes: Sequence[int], part: Sequence[int]) -> int:
    """How many numbers that are not 0 the linear program has."""
    return math.prod(sizes[a] for a in part) * len(_within(tables, part))


def _gap(tables: Tables, sizes: Sequence[int], part: Sequence[int]) -> float | None:
    """The least t so that some distribution has every cell of these tables, give or take t.

    None: the solver did not find it.
    """
    from scipy.optimize import linprog  # noqa: PLC0415  (slow to start)
    from scipy.sparse import csr_array, hstack, vstack  # noqa: PLC0415

    inside, shape = _within(tables, part), [sizes[a] for a in part]
    if len(inside) < 2:
        return 0.0
    combinations = math.prod(shape)
    codes = np.indices(shape).reshape(len(shape), -1)
    rows, start = [], 0
    for attributes in inside:
        held = tuple(codes[part.index(a)] for a in attributes)
        rows.append(start + np.ravel_multi_index(held, tables[attributes].shape))
        start += tables[attributes].size
    places = (np.concatenate(rows), np.tile(np.arange(combinations), len(inside)))
    margins = csr_array((np.ones(len(places[0])), places), shape=(start, combinations))
    slack = csr_array(np.ones((start, 1)))
    wished = np.concatenate([tables[attributes].ravel() for attributes in inside])
    both: Any = vstack([hstack([margins, -slack]), hstack([-margins, -slack])])
    found: Any = linprog(
        np.array([*[0.0] * combinations, 1.0]), both, np.concatenate([wished, -wished])
    )
    return float(found.fun) if found.status == 0 else None
