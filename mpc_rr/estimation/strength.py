"""How strongly two attributes depend on each other, from an uncertain table: with an interval.

Cramér's V and the signed Pearson correlation of ranks, each with limits, a test of independence
and one of three verdicts: at least so strong, at most so strong, or it cannot be told. The method
is one for every way of answering (`mpc_rr.estimation.uncertainty`):

V. Rare categories are merged until each of the rest is told from nothing. φ² of the merged table is
a quadratic form of the estimate (`mpc_rr.estimation.independence`); under a true φ² = t its
distribution is a shifted gamma with the right mean, variance and skewness, which is inverted for t.

r. A correlation ρ is inside if the estimate is no further from it than 1.96 standard deviations
at ρ.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from scipy.special import ndtr

from mpc_rr.estimation.dependence import cramers_v, pearson_r
from mpc_rr.estimation.independence import (
    TOLD_APART,
    Answers,
    Groups,
    UnderIndependence,
    among_answers,
    nearby,
    p_value_of_independence,
    phi2,
)
from mpc_rr.estimation.intervals import shifted_gamma
from mpc_rr.estimation.matrix import Array
from mpc_rr.estimation.uncertainty import Spread, Target, sampling_covariance
from mpc_rr.schema import Attribute

Verdict = Literal["at least", "at most", "cannot be told"]
WEAK = 0.3
"""Whatever is surely at most this is told as such."""
LOWER_TAIL, UPPER_TAIL = 0.02, 0.025
"""Of many tables without dependence, two in a hundred will be said to have some."""
QUANTILE = 1.959964
SMOOTHING = 2.0
NOTHING = 1e-12
"""A φ² below is that of independence, but for rounding: in which direction the truth may lie, it
does not say, so all count alike."""
HALVINGS = 40


@dataclass(frozen=True)
class Strength:
    """A degree of dependence: from 0 to 1 (V), or from −1 to 1 (r)."""

    measure: Literal["cramers_v", "pearson_r"]
    value: float | None
    """None where nothing can be told."""
    low: float
    high: float
    p_value: float | None = None
    """Of independence; of the population only."""
    by_chance: float = 0.0
    """How probably independent attributes would look at least as dependent."""
    answered: float | None = None
    """How many answered both, as estimated, where one need not."""
    groups: tuple[Groups, Groups] | None = None
    """For V: of which categories the limits speak, where rare ones had to be merged."""

    def around(self, value: float | None) -> "Strength":
        """With this value, and limits that hold it: those of a merged table may not."""
        if value is None:
            return replace(self, value=None)
        return replace(self, value=value, low=min(self.low, value), high=max(self.high, value))

    @property
    def verdict(self) -> Verdict:
        """What may be said at this budget."""
        if self.value is None:
            return "cannot be told"
        if (self.low > 0 or self.high < 0) and self.by_chance < LOWER_TAIL:
            return "at least"
        return "at most" if max(abs(self.low), abs(self.high)) <= WEAK else "cannot be told"

    @property
    def bound(self) -> float | None:
        """At least, or at most, so strong, whatever the sign."""
        if self.verdict == "cannot be told":
            return None
        if self.verdict == "at least":
            return self.low if self.low > 0 else -self.high
        return max(abs(self.low), abs(self.high))


MOST_CELLS = 4096
"""Of larger tables it cannot be told: the covariances of all their cells are too many."""


def strength(
    estimate: Array,
    uncertainty: Spread,
    attributes: tuple[Attribute, Attribute],
    of: Target = "population",
) -> Strength:
    """By the measure that fits the two attributes, among those who answered both.

    Who gave no answer has no rank; and that some answer neither is no dependence of the answers.
    """
    both_ordinal = attributes[0].type == attributes[1].type == "ordinal"
    if estimate.size > MOST_CELLS:
        return untold(both_ordinal=both_ordinal)
    measure = pearson_strength if both_ordinal else cramers_v_strength
    among = among_answers(estimate, uncertainty, attributes)
    if among is None:
        return replace(untold(both_ordinal=both_ordinal), answered=0.0)
    found = measure(among.estimate, among.uncertainty, of)
    if of == "population" and among.uncertainty.tests_by_less:
        found = _tested(found, among)
    return replace(found, answered=among.number)


def _tested(found: Strength, among: Answers) -> Strength:
    """That two attributes depend on each other may be told where it is not how strongly."""
    if found.measure == "pearson_r" and found.value is not None:
        return found
    return replace(found, p_value=p_value_of_independence(among.estimate, among.uncertainty))


def degree_of(table: Array, attributes: tuple[Attribute, Attribute]) -> float | None:
    """V or r of a table of shares as it stands, among those who answered both."""
    answered = table[np.ix_(attributes[0].answer_codes, attributes[1].answer_codes)]
    if attributes[0].type == attributes[1].type == "ordinal":
        return pearson_r(answered)
    return cramers_v(answered).value


def untold(*, both_ordinal: bool) -> Strength:
    """Of a pair of which nothing is known."""
    if both_ordinal:
        return Strength("pearson_r", None, -1.0, 1.0)
    return Strength("cramers_v", None, 0.0, 1.0)


# ── Cramér's V ─────────────────────────────────────────────────────────────────────────────────


def cramers_v_strength(estimate: Array, uncertainty: Spread, of: Target = "population") -> Strength:
    """V of the unbiased table of a pair, with its limits."""
    fit = nearby(estimate, uncertainty)
    at_fit = uncertainty.covariance(fit.ravel())
    null = UnderIndependence.of(estimate, uncertainty, of, at_fit)
    if null is None:
        return untold(both_ordinal=False)
    statistic = _Phi2(null, uncertainty, of, fit, at_fit)
    low, high = statistic.limits()
    value = math.sqrt(min(max(statistic.seen - statistic.bias, 0.0) / statistic.most, 1.0))
    by_chance = 1 - null.cdf(null.seen)
    p_value = by_chance if of == "population" else None
    value = min(max(value, low), high)
    groups = (null.groups[0], null.groups[1])
    return Strength("cramers_v", value, low, high, p_value, by_chance, groups=groups)


class _Phi2:
    """φ² of a table whose rare categories are merged, and its distribution under any true φ²."""

    def __init__(
        self, null: UnderIndependence, uncertainty: Spread, of: Target, fit: Array, at_fit: Array
    ) -> None:
        n, reports = uncertainty.n, uncertainty.reports
        self._null, self.seen, self.bias = null, null.seen, null.bias
        self.most = min(null.table.shape) - 1.0
        self._independent = null.independent
        self._difference = null.table - null.independent
        self._sampling = 1 / reports - (1 / n if of == "respondents" else 0.0)
        sampled = null.over @ sampling_covariance(null.null, 1) @ null.over.T
        self._bias_of_sampling = self._sampling * float(np.trace(sampled))
        slope = null.merged.T @ _slope(null.table).ravel()
        largest = max(self.seen, NOTHING)
        by_mechanism = [
            max(float(slope @ (matrix - sampling_covariance(shares, reports)) @ slope), 0.0)
            / (4 * largest)
            for matrix, shares in ((null.at_null, null.null), (at_fit, fit.ravel()))
        ]
        if self.seen < NOTHING:
            by_mechanism = [max(self.bias - self._bias_of_sampling, 0.0) / null.freedom] * 2
        self._at_null, self._at_fit = by_mechanism
        self._fitted = phi2((null.merged @ fit.ravel()).reshape(null.table.shape))
        self._inflation = 1.0
        linear, surplus = self._at_fit + self._linear(self.seen)[0], self.seen - self.bias
        if null.freedom > 1 and surplus > 2 * math.sqrt(2 * null.squares) and linear > 0:
            share = (linear * largest - null.squares) / surplus / linear
            self._inflation = min(max(share, 1.0), 3.0)

    def _linear(self, truth: float) -> tuple[float, float]:
        """Sampling: variance over 4φ², and third cumulant, of φ² at a table with this φ²."""
        if self._sampling <= 0 or truth <= 0:
            return 0.0, 0.0
        if self.seen < NOTHING:
            return self._bias_of_sampling / self._null.freedom, 0.0
        table = self._independent + math.sqrt(truth / self.seen) * self._difference
        table = np.maximum(table, 0.0)
        table /= table.sum()
        slope = _slope(table)
        slope -= (table * slope).sum()
        variance = float((table * slope**2).sum()) * self._sampling
        third = float((table * slope**3).sum()) * self._sampling**2
        return variance / 4 / max(phi2(table), 1e-12), third

    def cdf(self, seen: float, truth: float) -> float:
        """How probably φ² comes out at most like this, if it is so in truth."""
        if truth == 0:
            return self._null.cdf(seen)
        by_sampling, third = self._linear(truth)
        way = min(math.sqrt(truth / self._fitted), 2.0) if self._fitted > 1e-9 else 0.0
        between = self._at_null + way * (self._at_fit - self._at_null)
        linear = self._inflation * (max(between, min(self._at_null, self._at_fit)) + by_sampling)
        if self._null.freedom == 1:
            deviation = math.sqrt(max(linear, 1e-300))
            root, true_root = math.sqrt(seen), math.sqrt(truth)
            return float(
                ndtr((root - true_root) / deviation) - ndtr((-root - true_root) / deviation)
            )
        mean = truth + self.bias - self._bias_of_sampling * truth / self.most
        variance = 2 * self._null.squares + 4 * linear * truth
        skew = 8 * self._null.cubes + 24 * linear**2 * truth + third
        return float(shifted_gamma(np.array(seen - mean), np.array(variance), np.array(skew)))

    def limits(self) -> tuple[float, float]:
        """Of V."""
        if self.bias <= 1e-15:
            value = math.sqrt(min(self.seen / self.most, 1.0))
            return value, value
        low = 0.0
        if 1 - self.cdf(self.seen, 0.0) < LOWER_TAIL:
            low = _last(lambda t: 1 - self.cdf(self.seen, t) < LOWER_TAIL, 0.0, self.most)
        seen, high = max(self.seen, self.bias), self.most
        if seen < self.most:
            high = _last(lambda t: self.cdf(seen, t) >= UPPER_TAIL, min(low, self.most), self.most)
        return math.sqrt(low / self.most), math.sqrt(max(high, low) / self.most)


def _slope(table: Array) -> Array:
    """The gradient of φ²."""
    a, b = table.sum(axis=1)[:, np.newaxis], table.sum(axis=0)[np.newaxis, :]
    squares = table**2 / (a * b)
    by_row, by_column = squares.sum(axis=1, keepdims=True), squares.sum(axis=0, keepdims=True)
    return np.asarray(2 * table / (a * b) - by_row / a - by_column / b)


def _last(inside: Callable[[float], bool], low: float, high: float) -> float:
    """From ``low`` on, the last point that is inside, by halving."""
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if inside(middle) else (low, middle)
    return (low + high) / 2


# ── Pearson's r ────────────────────────────────────────────────────────────────────────────────


def pearson_strength(estimate: Array, uncertainty: Spread, of: Target = "population") -> Strength:
    """The signed correlation of the ranks of two ordered attributes, with its limits."""
    n, reports = uncertainty.n, uncertainty.reports
    fit = nearby(estimate, uncertainty)
    spread = uncertainty.covariance(fit.ravel())
    by_mechanism = spread - sampling_covariance(fit.ravel(), reports)
    sampling = 1 / reports - (1 / n if of == "respondents" else 0.0)
    table = estimate / estimate.sum()
    ranks = _Ranks.of(table)
    if not ranks.told(spread):
        return Strength("pearson_r", None, -1.0, 1.0)
    x, y = ranks.standard
    r = min(max(float(x @ table @ y), -1.0), 1.0)
    products = np.outer(x, y)
    squares = np.add.outer(x**2, y**2) / 2
    weight = SMOOTHING / (reports + SMOOTHING)
    nearer = r * (1 - weight)
    null = np.outer(fit.sum(axis=1), fit.sum(axis=0))
    smooth = (1 - weight) * fit + weight * null
    at_estimate = _variance(smooth, products - nearer * squares) * sampling
    p, s = products.ravel(), squares.ravel()
    quadratic = [float(u @ by_mechanism @ v) for u, v in ((p, p), (p, s), (s, s))]

    def variance(rho: float) -> float:
        sampled = at_estimate * max(1 - rho * rho, 0.0) / (1 - nearer * nearer)
        if sampling > 0 and rho * r > 0 and abs(rho) > abs(r):
            tilted = np.maximum(fit + (rho - r) * null * products, 0.0)
            tilted /= tilted.sum()
            outer = _variance(tilted, products - rho * squares) * sampling
            sampled = max(sampled, min(outer, 4 * at_estimate))
        randomized = quadratic[0] - 2 * rho * quadratic[1] + rho * rho * quadratic[2]
        return max(randomized, 0.0) + sampled

    def inside(rho: float) -> bool:
        return abs(r - rho) <= QUANTILE * math.sqrt(variance(rho))

    low = -1.0 if inside(-1.0) else -_last(lambda rho: inside(-rho), -r, 1.0)
    high = 1.0 if inside(1.0) else _last(inside, r, 1.0)
    by_chance = float(2 * ndtr(-abs(r) / math.sqrt(max(variance(0.0), 1e-300))))
    p_value = by_chance if of == "population" else None
    return Strength("pearson_r", r, min(low, r), max(high, r), p_value, by_chance)


@dataclass(frozen=True)
class _Ranks:
    """Category numbers of two attributes, centred, and their variances in a table."""

    x: Array
    y: Array
    variances: tuple[float, float]

    @classmethod
    def of(cls, table: Array) -> "_Ranks":
        x, y = (np.arange(size, dtype=np.float64) for size in table.shape)
        a, b = table.sum(axis=1), table.sum(axis=0)
        x, y = x - a @ x, y - b @ y
        return cls(x, y, (float(a @ x**2), float(b @ y**2)))

    @property
    def standard(self) -> tuple[Array, Array]:
        return self.x / math.sqrt(self.variances[0]), self.y / math.sqrt(self.variances[1])

    def told(self, covariance: Array) -> bool:
        """Whether both variances can be told from nothing."""
        rows, columns = self.x.size, self.y.size
        parts = (
            np.repeat(self.x**2 - self.variances[0], columns),
            np.tile(self.y**2 - self.variances[1], rows),
        )
        errors = [math.sqrt(max(float(p @ covariance @ p), 0.0)) for p in parts]
        pairs = zip(self.variances, errors, strict=True)
        return all(variance > TOLD_APART * error and variance > 0 for variance, error in pairs)


def _variance(table: Array, values: Array) -> float:
    return float((table * values**2).sum() - (table * values).sum() ** 2)
