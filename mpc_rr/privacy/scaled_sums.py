"""Sums of very different sizes with one noise: each is added up in grains of its own.

Laplace noise of one size is added to every sum, so a sum costs by how many grains another record
moves it. `ScaledSums` cuts what one person may add to any sum into the same number of grains: a
count, a sum of numbers and one of their squares are then equally safe, and the noise of each is in
proportion to its range. A person's part that is no whole number of grains is rounded up or down by
chance, so that it is right on average; the ε holds whichever way it falls.

`sensitivity` is the largest L1 distance, in grains, between what any two records may add:

* to sums by an attribute with categories: all of what one record adds to its category, and all of
  what the other adds to another one;
* to sums over all people: the largest range, over the corners of the cube, of s·(what a number
  adds), since ‖p − q‖₁ is the largest of s·p − s·q for s of ±1. It is found by trying all numbers.
"""

import itertools
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from mpc_rr.errors import InputError
from mpc_rr.estimation.power_sums import Number, Sum, SumLayout
from mpc_rr.randomness import Randomness
from mpc_rr.schema import Record

FINEST = 1 << 12
"""So many grains a part may have, at most, and so large the scale of the noise is to be in them."""
MOST_NUMBERS = 1 << 20
"""So many values may the numbers have in all: as many are tried, and their squares fit 64 bits."""


@dataclass(frozen=True)
class ScaledSums:
    """The sums of a layout, with a whole number of ``grains`` for what one person may add."""

    layout: SumLayout
    grains: int

    @classmethod
    def of(cls, layout: SumLayout, epsilon: float) -> "ScaledSums":
        """As fine as noise for this ε can be drawn."""
        values = [number.attribute.answers_possible for number in layout.numbers]
        if sum(values) > MOST_NUMBERS:
            widest = layout.numbers[values.index(max(values))].attribute
            raise InputError(
                f"{widest.name!r} has {max(values):,} possible numbers, and all together "
                f"{sum(values):,}; with noise_epsilon at most {MOST_NUMBERS:,} are possible: take "
                "larger steps"
            )
        found, scaled = FINEST, cls(layout, FINEST)
        while found > 1 and scaled.sensitivity > FINEST * epsilon:
            found //= 2
            scaled = cls(layout, found)
        return scaled

    @cached_property
    def sensitivity(self) -> int:
        """How many grains another record may move all sums together (L1)."""
        if not self.layout.by:
            return sum(self._range(x) for x in self.layout.numbers)
        return len(self.layout.by) * self._of_category

    def of_answer(self, place: int) -> int:
        """How many grains another answer to one question may move all sums together."""
        if place in self.layout.by:
            return self._of_category
        number = next(x for x in self.layout.numbers if x.place == place)
        return self._range(number) * max(1, len(self.layout.by))

    @property
    def _of_category(self) -> int:
        """Another category, and other numbers: all of two records."""
        return 2 * (self.grains + sum(self._most(x) for x in self.layout.numbers))

    def _most(self, number: Number) -> int:
        """All that one number may add, in grains: at its farther end."""
        return self.grains * (len(self.layout.powers) + number.optional)

    def _range(self, number: Number) -> int:
        """How far apart what two answers to one question add may be."""
        attribute, reach = number.attribute, number.reach
        steps = np.arange(attribute.answers_possible, dtype=np.int64) - number.middle
        low, high = [], []
        for power in (1, 2):
            exact = self.grains * steps**power
            low.append(exact // reach**power)
            high.append(-(-exact // reach**power))
        if number.optional:
            given = np.full(len(steps) + 1, self.grains, dtype=np.int64)
            given[-1] = 0
            low, high = ([given, *(np.append(v, 0) for v in ends)] for ends in (low, high))
        spans = []
        for signs in itertools.product((1, -1), repeat=len(low) - 1):
            both = list(zip((1, *signs), low, high, strict=True))
            most = sum(np.maximum(s * a, s * b) for s, a, b in both)
            least = sum(np.minimum(s * a, s * b) for s, a, b in both)
            spans.append(int(np.max(most)) - int(np.min(least)))
        return max(spans)

    def rounded(self, record: Record, rng: Randomness) -> npt.NDArray[np.int64]:
        """What a record adds to each sum, in grains: rounded up or down, right on average."""
        found = []
        for cell, added in zip(self.layout.cells, self.layout.added_by(record), strict=True):
            largest = self.layout.largest(cell)
            whole, rest = divmod(self.grains * added, largest)
            up = int(rng.below(largest, (1,))[0]) < rest if largest > 1 else False
            found.append(whole + up)
        return np.array(found, dtype=np.int64)

    def grain(self, cell: Sum) -> float:
        """How much of this sum a grain is."""
        return self.layout.largest(cell) / self.grains

    def rounding(self, cell: Sum, n: int) -> float:
        """The variance that rounding adds to a sum over n people, at most, in grains."""
        return n / 4 if self.layout.largest(cell) > 1 else 0.0
