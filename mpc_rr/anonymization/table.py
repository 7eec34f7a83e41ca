"""Records of numbers and categories, side by side, and how far apart they are.

Groups are made by one and checked by many, on different machines, so everything they follow from
is whole numbers: sums and comparisons come out the same everywhere.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from mpc_rr.schema import Attribute, Record

Codes = npt.NDArray[np.int64]
Array = npt.NDArray[np.float64]
Rows = npt.NDArray[np.intp]
UNIT = 1 << 16
"""The length of one standard deviation, in whole numbers."""
Groups = list[Rows]
"""The rows of each group."""


@dataclass(frozen=True)
class Microdata:
    """Some attributes of some people, as codes: one row each."""

    attributes: tuple[Attribute, ...]
    codes: Codes

    @classmethod
    def of(cls, attributes: Sequence[Attribute], records: Sequence[Record]) -> "Microdata":
        """A table of records."""
        codes = np.array(records, dtype=np.int64).reshape(len(records), len(attributes))
        return cls(tuple(attributes), codes)

    def __len__(self) -> int:
        return len(self.codes)

    def __repr__(self) -> str:
        return f"Microdata({len(self)} × {', '.join(a.name for a in self.attributes)})"

    @cached_property
    def points(self) -> Codes:
        """The records as points, so that distance makes sense across kinds of attributes.

        Numbers and ordered categories are divided by their standard deviation; the categories of
        a nominal attribute are the corners of a simplex. All are scaled so that two records drawn
        at random differ equally much, on average, in each attribute: by a squared distance of
        twice `UNIT` squared.
        """
        return self.placed(self.codes)

    def placed(self, codes: Codes | Array) -> Codes:
        """Other records (or centres of some) as points on the same scale."""
        parts = [self._coordinates(k, codes[:, k]) for k in range(len(self.attributes))]
        return np.hstack(parts)

    def _coordinates(self, place: int, wanted: Codes | Array) -> Codes:
        own, n = [int(code) for code in self.codes[:, place]], len(self)
        if self.attributes[place].type != "nominal":
            # n times the standard deviation, as a whole number
            deviation = math.isqrt(n * sum(c * c for c in own) - sum(own) ** 2)
            if not deviation:
                return np.zeros((len(wanted), 1), dtype=np.int64)
            middle = sum(own) // n
            if wanted.dtype.kind == "f":
                return np.rint((wanted - middle) * (UNIT * n / deviation)).astype(np.int64)[:, None]
            table = {c: (c - middle) * UNIT * n // deviation for c in set(wanted.tolist())}
            return np.array([[table[c]] for c in wanted.tolist()], dtype=np.int64)
        present, counts = np.unique(self.codes[:, place], return_counts=True)
        differing = n * n - sum(int(count) ** 2 for count in counts)
        edge = UNIT * n // math.isqrt(differing) if differing else 0
        corners: Codes = (wanted.astype(np.int64)[:, None] == present[None, :]).astype(np.int64)
        return edge * corners

    def width(self, rows: Rows, place: int) -> float:
        """How wide these rows spread in an attribute: 0 for one value, 1 for all there are."""
        whole = self._spreads[place]
        return self._spread(self.codes[rows, place], place) / whole if whole else 0.0

    @cached_property
    def _spreads(self) -> list[int]:
        return [self._spread(codes, place) for place, codes in enumerate(self.codes.T)]

    def _spread(self, codes: Codes, place: int) -> int:
        """How many more values than one there are; if ordered, from the lowest to the highest."""
        nominal = self.attributes[place].type == "nominal"
        return len(np.unique(codes)) - 1 if nominal else int(np.ptp(codes))
