"""Intervals of estimated shares that hold near 0 and 1: one method for every way of answering.

A share q is inside if the estimate is not surprisingly far from it: its tail under q, by a shifted
gamma distribution (Pearson III) with the right variance and skewness *at q*, is at least half of
what the level leaves. The estimate is put between 0 and 1 before, never the limits after.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import gammainc, gammaincc, ndtr, ndtri

from mpc_rr.errors import InputError
from mpc_rr.estimation.distribution import project_to_simplex
from mpc_rr.estimation.matrix import Array
from mpc_rr.estimation.uncertainty import (
    Cumulants,
    ExactCounts,
    OfSets,
    Subsets,
    Target,
    Uncertainty,
)

HALVINGS = 32
"""Limits are found to ten digits."""
NEARLY_NORMAL = 1e-4
TINY = 1e-18
MOST_AS_SETS = 4096
"""So many cells are taken as sets of cells, where there is a shorter way."""
AT_A_TIME = 1 << 21
"""So many cells of sets of cells are worked on at once."""


@dataclass(frozen=True)
class Interval:
    """Lower and upper limits, of one or many."""

    low: Array
    high: Array

    def transposed(self, axes: Sequence[int]) -> "Interval":
        """The same with the axes in another order."""
        return Interval(self.low.transpose(axes), self.high.transpose(axes))

    def around(self, values: Array) -> "Interval":
        """Wide enough to hold these values, too: what is published lies within its limits."""
        return Interval(np.minimum(self.low, values), np.maximum(self.high, values))


@dataclass(frozen=True)
class Limits:
    """Of an estimated table, for the population and for the respondents themselves."""

    population: Interval
    respondents: Interval

    @classmethod
    def of(cls, estimate: Array, uncertainty: Uncertainty, level: float = 0.95) -> "Limits":
        """Of an unbiased table, in its shape."""
        return cls(
            cell_intervals(estimate, uncertainty, "population", level),
            cell_intervals(estimate, uncertainty, "respondents", level),
        )

    def transposed(self, axes: Sequence[int]) -> "Limits":
        """The same with the axes in another order."""
        return Limits(self.population.transposed(axes), self.respondents.transposed(axes))


def cell_intervals(
    estimate: Array, uncertainty: Uncertainty, of: Target, level: float = 0.95
) -> Interval:
    """Of each cell of an unbiased table, in its shape.

    Of large tables, all cells as sets of cells would be a table of all by all: that is done without
    it, or for some cells at a time.
    """
    flat, each = estimate.ravel(), uncertainty.each_cell
    fit = project_to_simplex(flat)
    if each is not None and flat.size > MOST_AS_SETS:
        nothing = np.zeros((flat.size, 0), dtype=bool)
        found = [subset_intervals(flat, nothing, each, fit, of, level)]
    else:
        rows = max(AT_A_TIME // max(flat.size, 1), 1)
        found = [
            subset_intervals(
                flat[first : first + rows],
                np.eye(min(rows, flat.size - first), flat.size, first, dtype=bool),
                uncertainty, fit, of, level,
            )
            for first in range(0, flat.size, rows)
        ]  # fmt: skip
    low, high = (np.concatenate([getattr(f, end) for f in found]) for end in ("low", "high"))
    return Interval(low.reshape(estimate.shape), high.reshape(estimate.shape))


def subset_intervals(
    estimates: Array,
    subsets: Subsets,
    uncertainty: OfSets,
    fit: Array,
    of: Target,
    level: float = 0.95,
) -> Interval:
    """Of the shares of sets of cells, from their unbiased estimates.

    ``fit`` is a proper table near the truth, flat: how shares within a set are distributed.
    """
    if not 0 < level < 1:
        raise InputError(f"a confidence level lies between 0 and 1, not {level}")
    seen = np.clip(estimates, 0.0, 1.0)
    if isinstance(uncertainty, ExactCounts) and of == "respondents":
        return Interval(seen, seen)
    tail, cumulants = (1 - level) / 2, uncertainty.cumulants(subsets, fit, of)
    near = uncertainty.step(subsets)
    stretched = _Stretched(seen, cumulants, uncertainty, subsets, float(ndtri(1 - tail)))

    moved = np.stack([-near, near])

    def before(q: Array) -> npt.NDArray[np.bool_]:
        """Whether the lower limit is above, and the upper one at or above, these shares."""
        below = stretched.below(q, moved)
        return np.stack([1 - below[0] < tail, below[1] >= tail])

    zero, one = np.zeros_like(seen), np.ones_like(seen)
    found_low, found_high = _last(before, np.stack([zero, seen]), np.stack([seen, one]))
    at_the_ends = before(np.stack([zero, one]))
    low = np.where(at_the_ends[0], found_low, 0.0)
    high = np.where(at_the_ends[1], 1.0, found_high)
    return Interval(np.minimum(low, seen), np.maximum(high, seen))


@dataclass(frozen=True)
class _Stretched:
    """Distribution of the estimates around true shares, with longer tails where noise has them."""

    seen: Array
    cumulants: Cumulants
    uncertainty: OfSets
    subsets: Subsets
    quantile: float

    def below(self, q: Array, by: Array) -> Array:
        """How probably an estimate is at most the one that was seen, moved by so much."""
        variance, third = self.cumulants(q)
        kurtosis = self.uncertainty.kurtosis(self.subsets, variance)
        distance = (self.seen - q) / (1 + kurtosis * (self.quantile**2 - 3) / 24)
        chance = shifted_gamma(distance + by, variance, third)
        return np.where(variance > TINY, chance, np.sign(self.seen - q) / 2 + 0.5)


def shifted_gamma(distance: Array, variance: Array, third: Array) -> Array:
    """P(X − mean ≤ distance) of a variable with this variance and third cumulant (Pearson III)."""
    deviation = np.sqrt(np.maximum(variance, 1e-200))
    z = np.asarray(distance / deviation)
    skewness = np.asarray(third / deviation**3)
    small = np.abs(skewness) < NEARLY_NORMAL
    safe = np.where(small, 1.0, skewness)
    shape = 4 / safe**2
    place = np.maximum(shape + np.sign(safe) * np.sqrt(shape) * z, 0.0)
    gamma = np.where(safe > 0, gammainc(shape, place), gammaincc(shape, place))
    return np.asarray(np.where(small, ndtr(z), gamma))


def _last(inside: Callable[[Array], npt.NDArray[np.bool_]], first: Array, last: Array) -> Array:
    """From ``first`` on, the last point that is inside, by halving."""
    low, high = first.copy(), last.copy()
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        yes = inside(middle)
        low, high = np.where(yes, middle, low), np.where(yes, high, middle)
    return np.asarray((low + high) / 2)
