"""Means, variances, quantiles, covariances, correlations and regressions from an uncertain table.

Each statistic is a function of sums over the cells of an unbiased table
(`mpc_rr.estimation.joint`). What one more answer of a cell would change of it is its *influence*,
a number for each cell, and the variance of the sum of influences is that of the statistic (delta
method). Ratios have Fieller's limits: r is inside if ``top − r·bottom`` is not surprisingly far
from 0. Squares of what is randomized have a bias, which is taken off: it is the variance that
randomization adds.

``inside`` says of each cell whether its people are meant at all: who answered, and meets a
condition. Two intervals are given: of these very respondents, and of the population.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy.special import expit, ndtr, stdtrit

from mpc_rr.estimation.distribution import project_to_simplex
from mpc_rr.estimation.independence import TOLD_APART
from mpc_rr.estimation.intervals import shifted_gamma, subset_intervals
from mpc_rr.estimation.joint import Joint
from mpc_rr.estimation.matrix import Array
from mpc_rr.estimation.strength import Strength
from mpc_rr.estimation.uncertainty import Target

Between = tuple[float, float]
BOTH: tuple[Target, Target] = ("respondents", "population")
TOLD = 2.0
"""A sum is told from 0 if it is further away than so many of its standard errors."""
HALVINGS = 40
STEPS = 50
CLOSE = 1e-10
ROUNDING = 1e-12


@dataclass(frozen=True)
class Found:
    """A statistic, with how sure it is; None where it cannot be told."""

    value: float | None
    standard_error: float | None
    """In the population: sampling and randomization together."""
    respondents: Between | None
    """Between which limits it is among these very respondents."""
    population: Between | None
    people: float
    """On how many respondents it rests, as estimated: those who answered and are meant."""

    def around(self, value: float) -> "Found":
        """The same with another number, in limits that hold it."""

        def held(limits: Between | None) -> Between | None:
            return None if limits is None else (min(limits[0], value), max(limits[1], value))

        respondents, population = held(self.respondents), held(self.population)
        return replace(self, value=value, respondents=respondents, population=population)

    def within(self, low: float, high: float) -> "Found":
        """The same within what is possible at all; limits hold the number."""
        if self.value is None:
            return self
        value = min(max(self.value, low), high)

        def held(limits: Between | None) -> Between | None:
            if limits is None:
                return None
            least, most = (min(max(end, low), high) for end in limits)
            return min(least, value), max(most, value)

        return replace(
            self, value=value, respondents=held(self.respondents), population=held(self.population)
        )


def untold(people: float, low: float = -math.inf, high: float = math.inf) -> Found:
    """Nothing can be told; limits are those of what is possible."""
    whole = (low, high) if math.isfinite(low) and math.isfinite(high) else None
    return Found(None, None, whole, whole, people)


def people_inside(joint: Joint, inside: Array) -> float:
    """How many are meant, as estimated."""
    return max(float(inside @ joint.shares), 0.0) * joint.n


def quantile_of_t(people: float, level: float, lost: int = 1) -> float:
    """Student's, by how many people it rests on."""
    return float(stdtrit(max(people - lost, 1.0), 0.5 + level / 2))


# ── Ratios: means, shares among some ───────────────────────────────────────────────────────────


def ratio(joint: Joint, top: Array, bottom: Array, people: float, level: float) -> Found:
    """Of two sums, with Fieller's limits; not told if the lower one may be 0."""
    forms = np.stack([top, bottom])
    above, below = (float(v) for v in forms @ joint.shares)
    limits: dict[Target, Between | None] = {}
    error = 0.0
    for of in BOTH:
        spread = joint.covariance(forms, of)
        if of == "population":
            if below <= max(TOLD * math.sqrt(spread[1, 1]), ROUNDING):
                return untold(people)
            r = above / below
            variance = spread[0, 0] - 2 * r * spread[0, 1] + r * r * spread[1, 1]
            error = math.sqrt(max(variance, 0.0)) / below
        limits[of] = _fieller(above, below, spread, quantile_of_t(people, level))
    return Found(above / below if below else None, error,
                 limits["respondents"], limits["population"], people)  # fmt: skip


def _fieller(above: float, below: float, spread: Array, quantile: float) -> Between | None:
    """All r for which |above − r·below| is at most so many standard errors; None: no end."""
    k = quantile**2
    a = below**2 - k * spread[1, 1]
    b = above * below - k * spread[0, 1]
    c = above**2 - k * spread[0, 0]
    if a <= 0:
        return None
    root = math.sqrt(max(b * b - a * c, 0.0))
    return (b - root) / a, (b + root) / a


def mean(joint: Joint, inside: Array, scores: Array, level: float) -> Found:
    """The mean score of those who are meant."""
    people = people_inside(joint, inside)
    low, high = _range(inside, scores)
    found = ratio(joint, inside * scores, inside, people, level)
    if found.value is None or found.population is None or found.respondents is None:
        return untold(people, low, high)
    return found.within(low, high)


def _range(inside: Array, scores: Array) -> Between:
    meant = scores[inside > 0]
    return float(meant.min()), float(meant.max())


def share(joint: Joint, inside: Array, meets: Array, level: float) -> Found:
    """The share of those who meet a condition among those who are meant.

    A share q is inside the limits if the estimate is not surprisingly far from it, with variance
    and skewness at q (as `mpc_rr.estimation.intervals` has it).
    """
    people = people_inside(joint, inside)
    if inside.all():
        return _share_of_all(joint, meets, level)
    whole = ratio(joint, inside * meets, inside, people, level)
    if whole.value is None:
        return untold(people, 0.0, 1.0)
    both = inside * meets
    if not both.any():
        return _surely(0.0, people)
    if np.array_equal(both, inside):
        return _surely(1.0, people)
    scored = _Scored(joint, inside, meets)
    population, respondents = (scored.limits(of, level, whole.value) for of in reversed(BOTH))
    return replace(whole, population=population, respondents=respondents).within(0.0, 1.0)


def _surely(value: float, people: float) -> Found:
    """What follows from whom is meant, whatever was answered."""
    return Found(value, 0.0, (value, value), (value, value), people)


def _share_of_all(joint: Joint, meets: Array, level: float) -> Found:
    seen, subset = float(meets @ joint.shares), (meets > 0).reshape(1, -1)
    spread = joint.covariance(meets.reshape(1, -1), "population")
    fit = project_to_simplex(joint.shares)
    limits = [
        subset_intervals(np.array([seen]), subset, joint.uncertainty, fit, of, level) for of in BOTH
    ]
    respondents, population = ((float(i.low[0]), float(i.high[0])) for i in limits)
    error = math.sqrt(float(spread[0, 0]))
    return Found(seen, error, respondents, population, joint.n).within(0.0, 1.0)


class _Scored:
    """The estimate of ``both − q·meant``, whose mean is 0 if q is the share."""

    def __init__(self, joint: Joint, inside: Array, meets: Array) -> None:
        self._joint, self._inside, self._both = joint, inside, inside * meets
        self._fit = project_to_simplex(joint.shares)
        self._of_both = float(self._both @ self._fit)
        self._meant = max(float(inside @ self._fit), 1 / joint.n)
        self._step = float(joint.uncertainty.step((self._both > 0).reshape(1, -1))[0])

    def limits(self, of: Target, level: float, value: float) -> Between:
        if self._joint.exact and of == "respondents":
            return value, value
        tail, seen = (1 - level) / 2, min(max(value, 0.0), 1.0)
        low = self._end(seen, 0.0, lambda q: 1 - self._below(of, q, -self._step) < tail)
        high = self._end(seen, 1.0, lambda q: self._below(of, q, self._step) < tail)
        return low, high

    def _end(self, seen: float, end: float, out: Callable[[float], bool]) -> float:
        """The last share on the way to 0 or 1 that is not out."""
        if not out(end):
            return end
        inner, outer = seen, end
        for _ in range(HALVINGS):
            middle = (inner + outer) / 2
            inner, outer = (inner, middle) if out(middle) else (middle, outer)
        return (inner + outer) / 2

    def _below(self, of: Target, q: float, moved: float) -> float:
        """How probably the estimate is at most what was seen (and moved by half a step)."""
        form = (self._both - q * self._inside).reshape(1, -1)
        shares, uncertainty = self._at(q), self._joint.uncertainty
        variance = max(float(uncertainty.of_sums(form, shares, of)[0, 0]), 0.0)
        third = uncertainty.third_of_sums(form, shares, of)
        distance = float(form[0] @ self._joint.shares) + moved
        if variance <= CLOSE**2:
            return float(np.sign(distance) / 2 + 0.5)
        cube = 0.0 if third is None else float(third[0])
        return float(shifted_gamma(np.array(distance), np.array(variance), np.array(cube)))

    def _at(self, q: float) -> Array:
        """A proper table near the estimate, in which the share is q."""
        others = self._inside - self._both
        both = _spread_over(self._fit, self._both) * q * self._meant
        rest = _spread_over(self._fit, others) * (1 - q) * self._meant
        return np.where(self._inside > 0, both + rest, self._fit)


def _spread_over(fit: Array, cells: Array) -> Array:
    """How the people in some cells are distributed over them; evenly, if there are none."""
    found = fit * cells
    total = float(found.sum())
    return np.asarray(found / total if total > CLOSE else cells / max(float(cells.sum()), 1.0))


# ── Moments ────────────────────────────────────────────────────────────────────────────────────


def variance(joint: Joint, inside: Array, scores: Array, level: float) -> Found:
    """Of the scores of those who are meant, divided by their number."""
    people, (low, high) = people_inside(joint, inside), _range(inside, scores)
    most = (high - low) ** 2 / 4
    told = _centred(joint, inside, scores)
    if told is None:
        return untold(people, 0.0, most)
    centred, part = told
    found = _second_moment(joint, inside, centred, centred, part)
    influence = inside * (centred**2 - found) / part
    errors = _errors(joint, influence)
    if found <= 0:
        return untold(people, 0.0, most)
    ends = [_above_zero(found, errors[of], quantile_of_t(people, level)) for of in BOTH]
    return Found(found, errors["population"], ends[0], ends[1], people).within(0.0, most)


def _above_zero(value: float, error: float, quantile: float) -> Between:
    """Limits of something positive: of its logarithm, where it is told from 0."""
    if value <= TOLD * error:
        return 0.0, value + quantile * error
    factor = math.exp(quantile * error / value)
    return value / factor, value * factor


def standard_deviation(joint: Joint, inside: Array, scores: Array, level: float) -> Found:
    """The root of the variance."""
    found = variance(joint, inside, scores, level)

    def root(limits: Between | None) -> Between | None:
        return None if limits is None else (math.sqrt(limits[0]), math.sqrt(limits[1]))

    value = None if found.value is None else math.sqrt(found.value)
    error = found.standard_error
    return replace(
        found,
        value=value,
        standard_error=None if not value or error is None else error / (2 * value),
        respondents=root(found.respondents),
        population=root(found.population),
    )


def _centred(joint: Joint, inside: Array, scores: Array) -> tuple[Array, float] | None:
    """Scores less their mean, and the share of those who are meant; None if it may be 0."""
    part = float(inside @ joint.shares)
    spread = joint.covariance(inside.reshape(1, -1), "population")
    if part <= max(TOLD * math.sqrt(float(spread[0, 0])), ROUNDING):
        return None
    return scores - float((inside * scores) @ joint.shares) / part, part


def _second_moment(joint: Joint, inside: Array, x: Array, y: Array, part: float) -> float:
    """The mean of x·y, both centred: and what randomizing the two means takes away from it."""
    seen = float((inside * x * y) @ joint.shares) / part
    taken = joint.covariance(np.stack([inside * x, inside * y]) / part, "respondents")
    return seen + float(taken[0, 1])


def _errors(joint: Joint, influence: Array) -> dict[Target, float]:
    form = influence.reshape(1, -1)
    return {of: math.sqrt(float(joint.covariance(form, of)[0, 0])) for of in BOTH}


def covariance(joint: Joint, inside: Array, x: Array, y: Array, level: float) -> Found:
    """Of two scores of those who are meant, divided by their number."""
    people = people_inside(joint, inside)
    ranges = [high - low for low, high in (_range(inside, x), _range(inside, y))]
    most = ranges[0] * ranges[1] / 4
    told = [_centred(joint, inside, scores) for scores in (x, y)]
    if told[0] is None or told[1] is None:
        return untold(people, -most, most)
    (first, part), (second, _) = told[0], told[1]
    found = _second_moment(joint, inside, first, second, part)
    errors = _errors(joint, inside * (first * second - found) / part)
    ends = [_around(found, errors[of], quantile_of_t(people, level)) for of in BOTH]
    return Found(found, errors["population"], ends[0], ends[1], people).within(-most, most)


def _around(value: float, error: float, quantile: float) -> Between:
    return value - quantile * error, value + quantile * error


def correlation(joint: Joint, inside: Array, x: Array, y: Array, level: float) -> Found:
    """Pearson's, with its sign.

    Told by the rule for published dependences: both scores surely vary, and it surely is not 0, or
    surely weak (`mpc_rr.estimation.strength`). Limits are given all the same.
    """
    people = people_inside(joint, inside)
    told = [_centred(joint, inside, scores) for scores in (x, y)]
    if told[0] is None or told[1] is None:
        return untold(people, -1.0, 1.0)
    (first, part), (second, _) = told[0], told[1]
    variances = [_second_moment(joint, inside, z, z, part) for z in (first, second)]
    for z, own in zip((first, second), variances, strict=True):
        if own <= TOLD_APART * _errors(joint, inside * (z**2 - own) / part)["population"]:
            return untold(people, -1.0, 1.0)
    first, second = (z / math.sqrt(v) for z, v in zip((first, second), variances, strict=True))
    r = _second_moment(joint, inside, first, second, part)
    squares = (first**2 + second**2) / 2
    errors = _errors(joint, inside * (first * second - r * squares) / part)
    ends = [_of_correlation(r, errors[of], quantile_of_t(people, level)) for of in BOTH]
    if ends[1] == (-1.0, 1.0):
        return untold(people, -1.0, 1.0)
    found = Found(r, errors["population"], ends[0], ends[1], people).within(-1.0, 1.0)
    by_chance = 2 * float(ndtr(-abs(r) / max(errors["population"], CLOSE)))
    verdict = Strength("pearson_r", r, *ends[1], by_chance=by_chance).verdict
    if joint.exact or verdict != "cannot be told":
        return found
    return replace(found, value=None, standard_error=None)


def _of_correlation(r: float, error: float, quantile: float) -> Between:
    """By Fisher's transformation and directly, whichever is wider on each side."""
    low, high = _around(r, error, quantile)
    if abs(r) < 1:
        z, of_z = math.atanh(r), error / (1 - r * r)
        low = min(low, math.tanh(z - quantile * of_z))
        high = max(high, math.tanh(z + quantile * of_z))
    return max(low, -1.0), min(high, 1.0)


def quantile(joint: Joint, inside: Array, scores: Array, probability: float, level: float) -> Found:
    """The smallest score that so many of those who are meant do not exceed (Woodruff's limits)."""
    people = people_inside(joint, inside)
    values = np.unique(scores[inside > 0])
    steps = [share(joint, inside, (scores <= v).astype(np.float64), level) for v in values[:-1]]
    if any(step.value is None for step in steps):
        return untold(people, float(values[0]), float(values[-1]))
    fit = project_to_simplex(np.diff([0.0, *(step.value or 0.0 for step in steps), 1.0]))
    found = _first(np.cumsum(fit) >= probability - ROUNDING, values)
    limits = []
    for of in BOTH:
        both = [getattr(step, of) for step in steps]
        low = _first(np.array([b[1] >= probability - ROUNDING for b in both] + [True]), values)
        high = _first(np.array([b[0] >= probability - ROUNDING for b in both] + [True]), values)
        limits.append((min(low, found), max(high, found)))
    return Found(found, None, limits[0], limits[1], people)


def _first(reached: npt.NDArray[np.bool_], values: Array) -> float:
    return float(values[int(np.argmax(reached))])


# ── Regressions, by unbiased sums ──────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Regression:
    """Coefficients, in the order of the columns of the design."""

    coefficients: tuple[Found, ...]
    log_likelihood: float | None = None
    """Of the reported outcomes, given the reported predictors."""


def linear(
    joint: Joint, inside: Array, design: Array, outcome: Array, level: float
) -> Regression | None:
    """Least squares on the people who are meant; None if predictors cannot be told apart.

    ``design``: a row for each predictor, a number for each cell. Errors are robust: they hold
    whatever the outcome's variance depends on.
    """
    people, weights = people_inside(joint, inside), inside * joint.shares
    normal = (design * weights) @ design.T
    if not _told_apart(joint, inside, design, normal):
        return None
    found = np.asarray(np.linalg.solve(normal, design @ (weights * outcome)), dtype=np.float64)
    scores = inside * design * (outcome - found @ design)
    return _with_errors(joint, found, scores, normal, people, level)


def _told_apart(joint: Joint, inside: Array, design: Array, normal: Array) -> bool:
    """Whether even the combination of predictors that varies least is told from nothing."""
    diagonal = np.diag(normal)
    if (diagonal <= 0).any():
        return False
    scaled = design / np.sqrt(diagonal)[:, np.newaxis]
    least, vectors = np.linalg.eigh((scaled * inside * joint.shares) @ scaled.T)
    form = (inside * (vectors[:, 0] @ scaled) ** 2).reshape(1, -1)
    error = math.sqrt(float(joint.covariance(form, "population")[0, 0]))
    return bool(least[0] > max(TOLD * error if not joint.exact else 0.0, CLOSE))


def _with_errors(
    joint: Joint, found: Array, scores: Array, normal: Array, people: float, level: float
) -> Regression:
    """Coefficients that solve estimating equations, with the errors of these (sandwich)."""
    inverse, lost = np.asarray(np.linalg.inv(normal), dtype=np.float64), len(found)
    spreads = {of: inverse @ joint.covariance(scores, of) @ inverse.T for of in BOTH}
    spreads["population"] = spreads["population"] * people / max(people - lost, 1.0)
    return with_spreads(found, spreads, people, level)


def with_spreads(
    found: Array, spreads: dict[Target, Array], people: float, level: float
) -> Regression:
    """Coefficients with their limits."""
    wide = quantile_of_t(people, level, len(found))
    told = []
    for k, value in enumerate(found.tolist()):
        errors = {of: math.sqrt(max(float(spreads[of][k, k]), 0.0)) for of in BOTH}
        ends = [_around(value, errors[of], wide) for of in BOTH]
        told.append(Found(value, errors["population"], ends[0], ends[1], people))
    return Regression(tuple(told))


def logistic_by_sums(
    joint: Joint, inside: Array, design: Array, outcome: Array, level: float
) -> Regression | None:
    """Logistic regression whose score equations are unbiased sums; None if they tell nothing.

    For answers that have no likelihood of their own (noise in sums, parts of views). Less precise
    than maximum likelihood where that is known (`mpc_rr.estimation.logistic`).
    """
    people, weights = people_inside(joint, inside), inside * joint.shares
    found, normal = np.zeros(len(design)), np.eye(len(design))
    for _ in range(STEPS):
        chance = expit(found @ design)
        normal = (design * (weights * chance * (1 - chance))) @ design.T
        if np.linalg.eigvalsh(normal)[0] <= CLOSE:
            return None
        step = np.linalg.solve(normal, design @ (weights * (outcome - chance)))
        found = found + step / max(1.0, float(abs(step).max()))
        if float(abs(step).max()) < CLOSE:
            scores = inside * design * (outcome - chance)
            return _with_errors(joint, found, scores, normal, people, level)
    return None


def design_of(columns: Sequence[Array]) -> Array:
    """A row of ones, and these."""
    return np.stack([np.ones_like(columns[0]), *columns])
