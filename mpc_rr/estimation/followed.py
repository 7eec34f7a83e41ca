"""What is known while answers come in: limits of many tables at once, from sums over the blocks.

The limits are those of `intervals` with `BlockAnswers`; but what has been answered in each block
is not gone through again, so that following a collection costs as much for each block.
"""

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from mpc_rr.estimation.blocks import SoFar
from mpc_rr.estimation.combinations import Combination
from mpc_rr.estimation.distribution import project_to_simplex
from mpc_rr.estimation.intervals import Interval, subset_intervals
from mpc_rr.estimation.matrix import Array, Codes
from mpc_rr.estimation.uncertainty import Cumulants, OfSets, Subsets, Target

WIDE = 0.5
"""Cells with a standard error below so much of the largest one have no wider interval."""


@dataclass(frozen=True)
class _Cells(OfSets):
    """Cells of several tables: of each, how many answered about its table, and what was shown."""

    p: float
    n: Array
    shown: tuple[Array, Array, Array]
    """(1 − p)·T, its square and its cube, on average over all who answered."""

    def cumulants(self, subsets: Subsets, fit: Array, of: Target) -> Cumulants:  # noqa: ARG002
        """Those of `BlockAnswers` for the population."""
        (in2, in3), (out2, out3) = self._moments(self.p), self._moments(0.0)

        def found(q: Array) -> tuple[Array, Array]:
            mixed = q * (1 - q)
            variance = q * in2 + (1 - q) * out2 + mixed
            third = q * in3 + (1 - q) * out3 + 3 * mixed * (in2 - out2) + mixed * (1 - 2 * q)
            return variance / self.n, third / self.n**2

        return found

    def _moments(self, true: float) -> tuple[Array, Array]:
        """Variance and third cumulant of an answer, over p, on average over the blocks."""
        one, two, three = self.shown
        first, second = true + one, true**2 + 2 * true * one + two
        third = true**3 + 3 * true**2 * one + 3 * true * two + three
        return (first - second) / self.p**2, (first - 3 * second + 2 * third) / self.p**3

    def step(self, subsets: Subsets) -> Array:  # noqa: ARG002
        """Half of what one answer can change."""
        return np.asarray(0.5 / (self.p * self.n))

    def errors(self, shares: Array) -> Array:
        """Standard errors at these shares."""
        whole = np.zeros((0, 0), dtype=bool)
        return np.sqrt(self.cumulants(whole, shares, "population")(shares)[0])

    def some(self, chosen: Codes) -> "_Cells":
        """These cells alone."""
        one, two, three = (part[chosen] for part in self.shown)
        return _Cells(self.p, self.n[chosen], (one, two, three))


@dataclass(frozen=True)
class LeastKnown:
    """The share of a table with the widest interval (95 %, of the population)."""

    table: Combination
    cell: int
    share: float
    """As it is estimated now."""
    low: float
    high: float

    @property
    def half(self) -> float:
        """Half of the width."""
        return (self.high - self.low) / 2


@dataclass(frozen=True)
class Widest:
    """The widest interval of all shares of some tables."""

    half: float
    """Half of its width."""
    table: int
    """Of which table."""


def limits_so_far(tables: Sequence[SoFar]) -> list[Interval]:
    """95 % limits for the population, of every cell of each table; somebody answered each."""
    cells, estimates, starts = _stacked(tables)
    found = _limits(cells, estimates)
    parts = itertools.pairwise(starts)
    return [Interval(found.low[a:b], found.high[a:b]) for a, b in parts]


def widest(tables: Sequence[SoFar]) -> Widest:
    """Looked for among the cells with the larger standard errors; somebody answered each table."""
    cells, estimates, starts = _stacked(tables)
    parts = itertools.pairwise(starts)
    proper = np.concatenate([project_to_simplex(estimates[a:b]) for a, b in parts])
    errors = cells.errors(proper)
    chosen = np.flatnonzero(errors >= WIDE * errors.max())
    found = _limits(cells.some(chosen), estimates[chosen])
    widths = found.high - found.low
    most = int(np.argmax(widths))
    table = int(np.searchsorted(starts, chosen[most], side="right")) - 1
    return Widest(float(widths[most]) / 2, table)


def _limits(cells: _Cells, estimates: Array) -> Interval:
    alone = np.zeros((len(estimates), 0), dtype=bool)
    return subset_intervals(estimates, alone, cells, estimates, "population")


def _stacked(tables: Sequence[SoFar]) -> tuple[_Cells, Array, Array]:
    """All cells, their unbiased estimates, and where each table begins, and the last ends."""
    sizes = [len(so_far.counts) for so_far in tables]
    answered = np.array([so_far.n for so_far in tables], dtype=np.float64)
    n, p = np.repeat(answered, sizes), tables[0].p
    sums = zip(*((so_far.shown, so_far.squares, so_far.cubes) for so_far in tables), strict=True)
    one, two, three = (
        (1 - p) ** power * np.concatenate(parts) / n for power, parts in enumerate(sums, start=1)
    )
    estimates = np.concatenate([so_far.shares for so_far in tables])
    return _Cells(p, n, (one, two, three)), estimates, np.cumsum([0, *sizes])


class FollowedTables:
    """Tables that are asked block by block, and the shares of each attribute alone."""

    def __init__(self, p: float, combinations: Iterable[Combination], sizes: Sequence[int]) -> None:
        self.sizes = sizes
        self.tables = {c: SoFar.nothing(p, math.prod(sizes[a] for a in c)) for c in combinations}
        asked = sorted({a for combination in self.tables for a in combination})
        self.alone = {(a,): SoFar.nothing(p, sizes[a]) for a in asked}

    def take(self, combination: Combination, table: Array, counts: Codes) -> None:
        """The answers of one more block about a combination, and the table it was shown.

        An answer about several is true, or drawn from their table; so its part is true, or drawn
        from the margin of that table.
        """
        self.tables[combination].take(table, counts)
        if not counts.any():
            return
        shape = [self.sizes[a] for a in combination]
        for axis, attribute in enumerate(combination):
            others = tuple(k for k in range(len(combination)) if k != axis)
            margins = (values.reshape(shape).sum(axis=others) for values in (table, counts))
            self.alone[attribute,].take(*margins)

    def least_known(self) -> list[LeastKnown]:
        """Of each table that somebody answered, also of single attributes."""
        told = {c: so_far for c, so_far in (self.tables | self.alone).items() if so_far.n}
        if not told:
            return []
        found = []
        limits = limits_so_far([*told.values()])
        for (table, so_far), within in zip(told.items(), limits, strict=True):
            cell = int(np.argmax(within.high - within.low))
            share = float(project_to_simplex(so_far.shares)[cell])
            low, high = float(within.low[cell]), float(within.high[cell])
            found.append(LeastKnown(table, cell, share, min(low, share), max(high, share)))
        return found

    @property
    def unknown(self) -> int:
        """How many tables nobody has answered yet."""
        return sum(not so_far.n for so_far in self.tables.values())

    @property
    def n(self) -> int:
        """How many answers there are, about all tables."""
        return sum(so_far.n for so_far in self.tables.values())

    def widest(self) -> tuple[float, Combination] | None:
        """Half of the widest interval of all tables, and in which; None before all have one."""
        if self.unknown:
            return None
        found = widest([*self.tables.values()])
        return found.half, [*self.tables][found.table]
