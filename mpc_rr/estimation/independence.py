"""Whether the attributes of an uncertain table are independent, however many there are.

φ² measures how far a table is from the product of its margins. Of an estimated table it is a
quadratic form of the errors; were the attributes independent, it would be distributed as a shifted
gamma with the right mean, variance and skewness. Rare categories are merged until each of the rest
is told from nothing. `mpc_rr.estimation.strength` builds on it.
"""

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from mpc_rr.estimation.distribution import project_to_simplex
from mpc_rr.estimation.intervals import shifted_gamma
from mpc_rr.estimation.matrix import Array
from mpc_rr.estimation.uncertainty import (
    Answering,
    ExactCounts,
    Spread,
    Target,
    sampling_covariance,
)
from mpc_rr.schema import Attribute

FEW_CELLS = 30
TOLD_APART, TOLD_APART_WIDELY = 3.0, 5.0
"""How many standard errors a category must have to stay by itself: in small tables, in others."""
FEWEST = 5.0
"""How many people a category must have to stay by itself."""

Groups = tuple[tuple[int, ...], ...]
"""Categories of one attribute, those that were merged together."""


def p_value_of_independence(estimate: Array, uncertainty: Spread) -> float | None:
    """How probably independent attributes would look at least as dependent; None if untold."""
    found = UnderIndependence.of(estimate, uncertainty, testing=True)
    return None if found is None else 1 - found.cdf(found.seen)


# ── Among those who answered ───────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Answers:
    """A table of those alone who answered every question."""

    estimate: Array
    uncertainty: Spread
    number: float | None
    """How many they are, as estimated; None: one had to answer."""


def among_answers(
    estimate: Array, uncertainty: Spread, attributes: Sequence[Attribute]
) -> Answers | None:
    """The part of a table that holds answers; None where hardly anybody gave one."""
    codes = [attribute.answer_codes for attribute in attributes]
    if tuple(map(len, codes)) == estimate.shape:
        return Answers(estimate, uncertainty, None)
    within = np.ix_(*codes)
    cells = np.arange(estimate.size).reshape(estimate.shape)[within].ravel()
    proper = project_to_simplex(estimate).ravel()
    there, share = Answering(uncertainty, cells, proper), float(estimate[within].sum())
    error = math.sqrt(max(float(uncertainty.covariance(proper)[np.ix_(cells, cells)].sum()), 0.0))
    if share <= TOLD_APART * error or share * uncertainty.n < FEWEST or there.share <= 0:
        return None
    return Answers(estimate[within] / share, there, uncertainty.n * share)


# ── Rare categories ────────────────────────────────────────────────────────────────────────────


def told_apart(
    estimate: Array,
    covariance: Array,
    uncertainty: Spread,
    *,
    exact: bool = False,
    testing: bool = False,
) -> tuple[Groups, ...]:
    """Categories that can be told from nothing, axis by axis; the rare ones merged.

    Answers by blocks need more of them for limits to hold, but not for a test to keep its level.
    """
    by_less = testing and uncertainty.tests_by_less
    wide = estimate.size > FEW_CELLS or (uncertainty.by_blocks and not by_less)
    factor = TOLD_APART_WIDELY if wide else TOLD_APART
    found = []
    for axis in range(estimate.ndim):
        over = [np.eye(s) if k == axis else np.ones((1, s)) for k, s in enumerate(estimate.shape)]
        summed = _kron(over)
        margin, spread = summed @ estimate.ravel(), summed @ covariance @ summed.T

        def rare(group: list[int], m: Array = margin, s: Array = spread) -> bool:
            share = float(m[group].sum())
            if exact:
                return share <= 0
            error = math.sqrt(max(float(s[np.ix_(group, group)].sum()), 0.0))
            return share < factor * error or share * uncertainty.n < FEWEST

        found.append(_merged(margin, rare))
    return tuple(found)


def _merged(margin: Array, rare: Callable[[list[int]], bool]) -> Groups:
    kept = sorted(
        ([k] for k in range(margin.size) if not rare([k])), key=lambda group: margin[group[0]]
    )
    alone = {group[0] for group in kept}
    pool = [k for k in range(margin.size) if k not in alone]
    while pool and rare(pool) and kept:
        pool += kept.pop(0)
    groups = [*kept, pool] if pool else kept
    return tuple(sorted(tuple(sorted(group)) for group in groups))


def merging(groups: Sequence[Groups], shape: Sequence[int]) -> Array:
    """The matrix that sums the cells of a table whose categories are merged."""
    sums: list[Array] = []
    for axis, size in zip(groups, shape, strict=True):
        summed = np.zeros((len(axis), size))
        for row, group in enumerate(axis):
            summed[row, list(group)] = 1
        sums.append(summed)
    return _kron(sums)


def _kron(parts: Sequence[Array]) -> Array:
    return functools.reduce(lambda whole, part: np.asarray(np.kron(whole, part)), parts)


# ── φ² ─────────────────────────────────────────────────────────────────────────────────────────


def margins_of(table: Array) -> list[Array]:
    """Of each attribute by itself."""
    axes = range(table.ndim)
    return [table.sum(axis=tuple(other for other in axes if other != axis)) for axis in axes]


def product_of(margins: Sequence[Array]) -> Array:
    """The table in which attributes with these margins are independent."""
    return functools.reduce(np.multiply.outer, margins)


def nearby(estimate: Array, uncertainty: Spread) -> Array:
    """A proper table near an unbiased one, at which its covariances are worked out.

    Independence, plus as much of the dependence as is not noise.
    """
    independent = product_of([project_to_simplex(margin) for margin in margins_of(estimate)])
    difference = estimate - independent
    energy = float((difference**2).sum())
    noise = float(np.trace(uncertainty.covariance(independent.ravel())))
    kept = max(0.0, 1 - (noise / energy) ** 2) if energy > 0 else 0.0
    return project_to_simplex(independent + kept * difference)


def phi2(table: Array) -> float:
    """How far a table is from the product of its margins."""
    expected = product_of(margins_of(table))
    return float(((table - expected) ** 2 / np.maximum(expected, 1e-12)).sum())


@dataclass(frozen=True)
class UnderIndependence:
    """φ² of a merged table, and how it would be distributed were its attributes independent."""

    groups: tuple[Groups, ...]
    merged: Array
    """The matrix that merges."""
    table: Array
    independent: Array
    seen: float
    """φ² as it was found."""
    freedom: int
    null: Array
    """The independent table before it was merged, flat."""
    at_null: Array
    """The covariance of the estimate there."""
    over: Array
    """What makes of errors their part in φ²."""
    bias: float
    """φ² on average."""
    squares: float
    cubes: float

    @classmethod
    def of(
        cls,
        estimate: Array,
        uncertainty: Spread,
        of: Target = "population",
        at_fit: Array | None = None,
        *,
        testing: bool = False,
    ) -> "UnderIndependence | None":
        """None where some attribute has only one category that can be told.

        ``at_fit``: the covariance at the table `nearby`, if it is known. ``testing``: to test, not
        to measure.
        """
        if at_fit is None:
            at_fit = uncertainty.covariance(nearby(estimate, uncertainty).ravel())
        exact = of == "respondents" and isinstance(uncertainty, ExactCounts)
        groups = told_apart(estimate, at_fit, uncertainty, exact=exact, testing=testing)
        sizes = tuple(map(len, groups))
        if min(sizes) < 2:
            return None
        merged = merging(groups, estimate.shape)
        table = (merged @ estimate.ravel()).reshape(sizes)
        table = table / table.sum()
        margins = margins_of(table)
        independent = product_of(margins)
        null = product_of([project_to_simplex(m) for m in margins_of(estimate)]).ravel()
        at_null = uncertainty.covariance(null)
        sampled = sampling_covariance(null, uncertainty.n) if of == "respondents" else 0.0
        form = _interaction(margins) / np.sqrt(independent.ravel())
        over = form @ merged
        gamma = over @ (at_null - sampled) @ over.T
        squares = float((gamma * gamma).sum())
        cubes = float(((gamma @ gamma) * gamma).sum())
        if squares > 0:
            more = 1 + uncertainty.excess(null, merged, form.T @ form) / 2 / squares
            squares, cubes = squares * more, cubes * more**2.5
        seen = float(((table - independent) ** 2 / independent).sum())
        freedom = math.prod(sizes) - 1 - sum(size - 1 for size in sizes)
        return cls(
            groups, merged, table, independent, seen, freedom, null, at_null, over,
            float(np.trace(gamma)), squares, cubes,
        )  # fmt: skip

    def cdf(self, seen: float) -> float:
        """How probably φ² would come out at most like this."""
        if self.freedom == 1:
            deviation = math.sqrt(max(self.bias, 1e-300))
            return float(2 * ndtr(math.sqrt(seen) / deviation) - 1)
        moments = (seen - self.bias, 2 * self.squares, 8 * self.cubes)
        return float(shifted_gamma(*map(np.array, moments)))


def _interaction(margins: Sequence[Array]) -> Array:
    """The projection off everything that single attributes explain."""
    alone = [np.outer(root, root) for root in map(np.sqrt, margins)]
    rest = [np.eye(margin.size) - one for margin, one in zip(margins, alone, strict=True)]
    explained = _kron(alone)
    for axis, part in enumerate(rest):
        explained = explained + _kron([part if k == axis else one for k, one in enumerate(alone)])
    return np.asarray(np.eye(len(explained)) - explained)
