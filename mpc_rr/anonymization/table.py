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
    rounded: bool = False
    """Whether roots of small studies are rounded to whole numbers, as they were up to rules 4."""

    @classmethod
    def of(
        cls, attributes: Sequence[Attribute], records: Sequence[Record], *, rounded: bool = False
    ) -> "Microdata":
        """A table of records."""
        codes = np.array(records, dtype=np.int64).reshape(len(records), len(attributes))
        return cls(tuple(attributes), codes, rounded)

    def __len__(self) -> int:
        return len(self.codes)

    def __repr__(self) -> str:
        return f"Microdata({len(self)} × {', '.join(a.name for a in self.attributes)})"

    @cached_property
    def unanswered(self) -> npt.NDArray[np.bool_]:
        """Where somebody gave no answer: a row for each record, a column for each attribute."""
        none = [-1 if a.missing_code is None else a.missing_code for a in self.attributes]
        return np.asarray(self.codes == np.array(none, dtype=np.int64))

    def answers(self, rows: Rows, place: int) -> Codes:
        """The codes of those of these rows who answered a question."""
        there: Codes = self.codes[rows, place][~self.unanswered[rows, place]]
        return there

    @cached_property
    def points(self) -> Codes:
        """The records as points, so that distance makes sense across kinds of attributes.

        Numbers and ordered categories are divided by their standard deviation; the categories of
        a nominal attribute are the corners of a simplex. Who gave no answer has no place in an
        order, and stands beside its middle, as far from those who answered as these are from each
        other on average. All are scaled so that two records drawn at random differ equally much, on
        average, in each attribute: by a squared distance of twice `UNIT` squared.
        """
        return self.placed(self.codes)

    def placed(self, codes: Codes | Array) -> Codes:
        """Other records (or centres of some) as points on the same scale."""
        parts = [self.coordinates(k, codes[:, k]) for k in range(len(self.attributes))]
        return np.hstack(parts)

    def coordinates(self, place: int, wanted: Codes | Array) -> Codes:
        """Some values of one attribute as points; where some gave no answer, that comes last."""
        own, n = [int(code) for code in self.codes[:, place]], len(self)
        if self.attributes[place].type != "nominal":
            if self.unanswered[:, place].any():
                return self._beside_the_order(place, wanted)
            return self._in_order(own, wanted)
        present, counts = np.unique(self.codes[:, place], return_counts=True)
        differing = n * n - sum(int(count) ** 2 for count in counts)
        if self.rounded:
            edge = UNIT * n // math.isqrt(differing) if differing else 0
        else:
            edge = math.isqrt((UNIT * n) ** 2 // differing) if differing else 0
        corners: Codes = (wanted.astype(np.int64)[:, None] == present[None, :]).astype(np.int64)
        return edge * corners

    def _in_order(self, own: list[int], wanted: Codes | Array) -> Codes:
        """Where numbers or ranks lie, in standard deviations of those that everybody has."""
        n, total, finer = len(own), sum(own), 1 if self.rounded else UNIT
        # n times the standard deviation, in parts of `finer`, as a whole number
        deviation = math.isqrt(finer**2 * (n * sum(c * c for c in own) - total**2))
        if not deviation:
            return np.zeros((len(wanted), 1), dtype=np.int64)
        # n times the middle: of old it was a whole number of steps
        middle, scale = total // n * n if self.rounded else total, UNIT * finer
        if wanted.dtype.kind == "f":
            return np.rint((wanted * n - middle) * (scale / deviation)).astype(np.int64)[:, None]
        table = {c: (c * n - middle) * scale // deviation for c in set(wanted.tolist())}
        return np.array([[table[c]] for c in wanted.tolist()], dtype=np.int64)

    def _beside_the_order(self, place: int, wanted: Codes | Array) -> Codes:
        """Where a number or rank lies, and apart from that, whether there is one.

        Of n who were asked and m who gave no answer, n² − m² of n² pairs differ, all equally much
        on average; if those who answered are all alike, only who did and who did not differ.
        """
        own = [int(c) for c in self.answers(np.arange(len(self)), place)]
        n, answered = len(self), len(own)
        gap = np.asarray(wanted == self.attributes[place].missing_code)
        found = np.zeros((len(wanted), 2), dtype=np.int64)
        if not answered:
            return found
        # UNIT times their number times the standard deviation, as a whole number
        deviation = math.isqrt(UNIT**2 * (answered * sum(c * c for c in own) - sum(own) ** 2))
        differing = n * n - (n - answered) ** 2 if deviation else answered * (n - answered)
        edge = math.isqrt((UNIT * n) ** 2 // differing)
        found[gap, 1] = edge
        if deviation:
            total, scale = sum(own), edge * UNIT
            if wanted.dtype.kind == "f":
                scaled = np.rint((wanted * answered - total) * (scale / deviation))
                found[~gap, 0] = scaled[~gap].astype(np.int64)
            else:
                there = [int(c) for c in wanted[~gap]]
                found[~gap, 0] = [(c * answered - total) * scale // deviation for c in there]
        return found

    def numbers(self, place: int, wanted: Codes | Array | None = None) -> Codes:
        """Values of one attribute as points, but for whether there is an answer."""
        found = self.coordinates(place, self.codes[:, place] if wanted is None else wanted)
        ordered = self.attributes[place].type != "nominal"
        return found[:, :1] if ordered else found

    def width(self, rows: Rows, place: int) -> float:
        """How wide the answers of these rows spread: 0 for one value, 1 for all there are."""
        whole = self._spreads[place]
        return self._spread(self.answers(rows, place), place) / whole if whole else 0.0

    @cached_property
    def _spreads(self) -> list[int]:
        everybody = np.arange(len(self))
        places = range(len(self.attributes))
        return [self._spread(self.answers(everybody, place), place) for place in places]

    def _spread(self, codes: Codes, place: int) -> int:
        """How many more values than one there are; if ordered, from the lowest to the highest."""
        if not len(codes):
            return 0
        nominal = self.attributes[place].type == "nominal"
        return len(np.unique(codes)) - 1 if nominal else int(np.ptp(codes))
