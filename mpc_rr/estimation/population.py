"""One weighted population: invented records whose weights make wished tables come out.

Everything that is published of a study (shares, tables of any width, conditions, synthetic records)
can be counted in it, so none of it contradicts the rest, and no domain is ever enumerated.
"""

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mpc_rr.errors import InputError
from mpc_rr.estimation.matrix import Array, Codes, Uniform

SWEEPS = (1.0,) * 8 + (0.5,) * 6 + (0.25,) * 4
"""The exponents of the factors, sweep by sweep: where targets contradict each other, smaller and
smaller steps end between them."""
LARGEST_FACTOR = 1e4
NOTHING = 1e-300
MOST_KEPT = 2**27
"""So many bytes of a population's cells are kept; to find others again takes less time than to
count them."""

Places = npt.NDArray[np.int32] | npt.NDArray[np.int64]


class _Places:
    """In which cells records are: what was asked first is kept, as long as there is room.

    Raking asks for the same tables in turn, so whatever was dropped for others would be asked next.
    """

    def __init__(self, records: Codes, sizes: tuple[int, ...]) -> None:
        self._columns = np.ascontiguousarray(records.T, dtype=np.int32)
        self._sizes = sizes
        self._kept: dict[tuple[int, ...], Places] = {}
        self._room = MOST_KEPT

    def cells(self, attributes: tuple[int, ...]) -> Places:
        """In which cell of the table of some attributes each record is."""
        if attributes in self._kept:
            return self._kept[attributes]
        if len(set(attributes)) != len(attributes) or not attributes:
            raise InputError("ask for one or more different attributes")
        sizes = [self._sizes[a] for a in attributes]
        few = math.prod(sizes) <= np.iinfo(np.int32).max
        cells: Places = self._columns[attributes[0]].astype(np.int32 if few else np.int64)
        for a, size in zip(attributes[1:], sizes[1:], strict=True):
            cells *= size
            cells += self._columns[a]
        if cells.nbytes <= self._room:
            self._kept[attributes] = cells
            self._room -= cells.nbytes
        return cells


@dataclass(frozen=True)
class Population:
    """Records as category numbers, a row each, with weights that add up to 1."""

    records: Codes
    weights: Array
    sizes: tuple[int, ...]

    def cells(self, attributes: Sequence[int]) -> Places:
        """In which cell of the table of some attributes each record is."""
        return self._places.cells(tuple(attributes))

    @functools.cached_property
    def _places(self) -> _Places:
        return _Places(self.records, self.sizes)

    def table(self, attributes: Sequence[int]) -> Array:
        """The joint distribution of some attributes."""
        shape = tuple(self.sizes[a] for a in attributes)
        found = np.bincount(
            self.cells(attributes), weights=self.weights, minlength=math.prod(shape)
        )
        return np.asarray(found.reshape(shape), dtype=np.float64)

    def raked(
        self,
        targets: Mapping[tuple[int, ...], Array],
        sweeps: Sequence[float] = SWEEPS,
    ) -> "Population":
        """The same records with weights that come near these tables (they may contradict)."""
        weights = self.weights.copy()
        for exponent in sweeps:
            for attributes, target in targets.items():
                cells = self.cells(attributes)
                found = np.bincount(cells, weights=weights, minlength=target.size)
                factor = np.divide(
                    target.ravel(), found, out=np.ones(target.size), where=found > NOTHING
                )
                factor = np.clip(factor, 1 / LARGEST_FACTOR, LARGEST_FACTOR) ** exponent
                weights *= factor[cells]
            weights /= weights.sum()
        made = Population(self.records, weights, self.sizes)
        vars(made)["_places"] = self._places  # the records are the same
        return made

    def synthesize(self, rows: int, uniform: Uniform) -> Codes:
        """Synthetic records: records of the population, drawn by their weights."""
        cumulative = np.cumsum(self.weights)
        drawn = np.searchsorted(cumulative, uniform((rows,)) * cumulative[-1], side="right")
        return np.asarray(self.records[np.minimum(drawn, len(self.weights) - 1)]).astype(np.int64)
