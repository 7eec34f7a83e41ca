"""From reported answers to the distribution of the true ones, with standard errors.

`unbiased` is Eq. (2) of paper 000 with its dispersion. It may be negative; three ways make a
proper distribution of it: `clip_and_rescale` (as the paper prints), `project_to_simplex` (what the
paper says it does: the nearest distribution in the Euclidean sense), and `maximum_likelihood`
(expectation maximization, the iterative Bayesian update of the paper's reference [2], accelerated).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
from scipy.special import chdtri, ndtri

from mpc_rr.errors import InputError
from mpc_rr.estimation.matrix import DENSE_LIMIT, Array


class Randomization(Protocol):
    """What estimation needs of a matrix or a Kronecker product, on a table of its own shape."""

    @property
    def shape(self) -> tuple[int, ...]: ...  # noqa: D102
    def apply(self, truth: Array) -> Array: ...  # noqa: D102
    def apply_transposed(self, values: Array) -> Array: ...  # noqa: D102
    def solve(self, reported: Array) -> Array: ...  # noqa: D102
    def solve_transposed(self, values: Array) -> Array: ...  # noqa: D102
    def solve_squared(self, reported: Array) -> Array: ...  # noqa: D102


@dataclass(frozen=True)
class Estimate:
    """Shares of the true values, each with its standard error."""

    shares: Array
    standard_errors: Array
    n: int

    @property
    def counts(self) -> Array:
        """Expected numbers of respondents instead of shares."""
        return self.shares * self.n

    def interval(self, level: float = 0.95) -> tuple[Array, Array]:
        """Confidence limits of each share, by the normal approximation."""
        if not 0 < level < 1:
            raise InputError(f"a confidence level lies between 0 and 1, not {level}")
        width = ndtri(0.5 + level / 2) * self.standard_errors
        return self.shares - width, self.shares + width


@dataclass(frozen=True)
class Fit:
    """A proper distribution found by iteration, and how the iteration ended."""

    shares: Array
    iterations: int
    converged: bool
    change: float


def reported_shares(counts: npt.ArrayLike) -> tuple[Array, int]:
    """Shares and number of respondents from counts; `InputError` if there are none or NaNs."""
    table = np.asarray(counts, dtype=np.float64)
    total = table.sum()
    if not np.isfinite(table).all():
        raise InputError("the counts of reported answers hold a NaN or an infinite number")
    if (table < 0).any():
        raise InputError("a count of reported answers is negative")
    if total < 1 - 1e-9:
        raise InputError("there are no reported answers to estimate from")
    return table / total, max(round(float(total)), 1)


def _checked(counts: npt.ArrayLike, randomization: Randomization) -> tuple[Array, int]:
    """`reported_shares` of a table that fits the randomization."""
    shares, n = reported_shares(counts)
    if shares.shape != tuple(randomization.shape):
        raise InputError(
            f"counts of shape {shares.shape} do not fit a randomization of {randomization.shape}"
        )
    return shares, n


def unbiased(counts: npt.ArrayLike, randomization: Randomization) -> Estimate:
    """Eq. (2) of paper 000, with the standard errors of its unbiased dispersion matrix.

    Each respondent contributes a column of A = (Pᵀ)⁻¹; the variance of a share is that of these
    contributions: (Σ_v A[u, v]²·λ_v − π_u²)/(n − 1). Where the estimate is no distribution, the
    nearest one takes its place in this: else few or unanimous answers would seem to be certain.
    """
    shares, n = _checked(counts, randomization)
    estimate = randomization.solve(shares.copy())
    center = estimate
    if estimate.min() < 0:
        center = project_to_simplex(estimate)
        shares = randomization.apply(center)
    variances = randomization.solve_squared(shares) - center**2
    return Estimate(estimate, np.sqrt(np.maximum(variances, 0) / max(n - 1, 1)), n)


def dispersion(counts: npt.ArrayLike, randomization: Randomization) -> Array:
    """The whole covariance matrix of the unbiased estimate, for a small number of categories."""
    shares, n = _checked(counts, randomization)
    size = shares.size
    if size * size > DENSE_LIMIT:
        raise InputError(f"the covariances of {size:,} shares are too many; ask for fewer at once")
    units = np.eye(size).reshape(size, *shares.shape)
    columns = np.stack([randomization.solve(unit.copy()).ravel() for unit in units], axis=1)
    flat = shares.ravel()
    spread = np.diag(flat) - np.outer(flat, flat)
    return np.asarray(columns @ spread @ columns.T / max(n - 1, 1))


def subset_share(
    counts: npt.ArrayLike, randomization: Randomization, subset: npt.ArrayLike
) -> tuple[float, float]:
    """The unbiased share of a set of categories (a table of 0 and 1), and its standard error."""
    shares, n = _checked(counts, randomization)
    wanted = np.asarray(subset, dtype=np.float64)
    if wanted.shape != shares.shape:
        raise InputError(f"a set of shape {shares.shape} is needed, not {wanted.shape}")
    weights = randomization.solve_transposed(wanted)
    mean = float((weights * shares).sum())
    variance = float((weights**2 * shares).sum()) - mean**2
    return mean, float(np.sqrt(max(variance, 0) / max(n - 1, 1)))


# ── Proper distributions ───────────────────────────────────────────────────────────────────────


def clip_and_rescale(estimate: Array) -> Array:
    """Negative shares become 0, the rest is rescaled (000 §6.4, as printed)."""
    clipped = np.maximum(estimate, 0)
    total = clipped.sum()
    if not total > 0:
        raise InputError("no share is positive: there is nothing to rescale")
    return np.asarray(clipped / total)


def project_to_simplex(estimate: Array) -> Array:
    """The distribution nearest to the estimate in the Euclidean sense (000 §6.4, as meant).

    It is (estimate − t) where that is positive, 0 elsewhere; t is found from the sorted shares.
    """
    if estimate.size == 0 or not np.isfinite(estimate).all():
        raise InputError("an estimate holds a NaN or an infinite number, or nothing at all")
    flat = np.sort(estimate, axis=None)[::-1]
    excess = (np.cumsum(flat) - 1) / np.arange(1, flat.size + 1)
    last = np.nonzero(flat > excess)[0][-1]
    return np.asarray(np.maximum(estimate - excess[last], 0))


def maximum_likelihood(
    counts: npt.ArrayLike,
    randomization: Randomization,
    *,
    start: Array | None = None,
    tolerance: float = 1e-9,
    most_iterations: int = 10_000,
) -> Fit:
    """The distribution under which the reported answers are most likely.

    Expectation maximization, accelerated by SQUAREM (Varadhan and Roland 2008): two steps tell the
    direction and length of a longer one, which is taken only if the likelihood does not suffer.
    Converged means that a plain step moves no share by more than ``tolerance``.
    """
    shares, _ = _checked(counts, randomization)
    current = np.full(shares.shape, 1 / shares.size) if start is None else _interior(start)

    def step(distribution: Array) -> Array:
        expected = randomization.apply(distribution)
        ratio = np.divide(shares, expected, out=np.zeros_like(shares), where=expected > 0)
        return np.asarray(distribution * randomization.apply_transposed(ratio))

    def likelihood(distribution: Array) -> float:
        expected = randomization.apply(distribution)
        seen = shares > 0
        return float((shares[seen] * np.log(np.maximum(expected[seen], 1e-300))).sum())

    iterations, change = 0, np.inf
    while iterations < most_iterations:
        once = step(current)
        twice = step(once)
        iterations += 2
        change = float(abs(once - current).max())
        if change <= tolerance:
            return Fit(once / once.sum(), iterations, True, change)
        current = _longer_step(current, once, twice, likelihood)
    return Fit(current / current.sum(), iterations, False, change)


def _interior(start: Array) -> Array:
    """A starting point with no zeros, from which every distribution can be reached."""
    mixed = 0.999 * np.maximum(start, 0) / np.maximum(start, 0).sum() + 0.001 / start.size
    return np.asarray(mixed)


def _longer_step(
    current: Array, once: Array, twice: Array, likelihood: Callable[[Array], float]
) -> Array:
    first, second = once - current, twice - 2 * once + current
    norm = float(np.sqrt((second**2).sum()))
    if norm == 0:
        return twice
    length = -float(np.sqrt((first**2).sum())) / norm
    candidate = current - 2 * length * first + length**2 * second
    if length >= -1 or (candidate < 0).any() or likelihood(candidate) < likelihood(twice):
        return twice
    return np.asarray(candidate / candidate.sum())


# ── Error bounds and planning (000 §2.3 and §3.3) ──────────────────────────────────────────────


def _percentile(categories: int, alpha: float) -> float:
    """B: the α/r upper percentile of χ² with one degree of freedom."""
    if not 0 < alpha < 1:
        raise InputError(f"alpha lies between 0 and 1, not {alpha}")
    return float(chdtri(1, alpha / categories))


def absolute_error_factor(categories: int, alpha: float = 0.05) -> float:
    """√B of Eq. (5): how the error grows with the number of categories (000, Figure 1)."""
    return math.sqrt(_percentile(categories, alpha))


def absolute_error_bound(reported: Array, n: int, alpha: float = 0.05) -> float:
    """Within which all reported shares lie at once with confidence 1 − α (Eq. (5))."""
    bound = _percentile(reported.size, alpha) * reported * (1 - reported) / n
    return float(np.sqrt(bound.max()))


def relative_error_bound(reported: Array, n: int, alpha: float = 0.05) -> float:
    """The same relative to each share (Eq. (6)); infinite if a share is 0."""
    if (reported <= 0).any():
        return float("inf")
    bound = _percentile(reported.size, alpha) * (1 - reported) / reported / n
    return float(np.sqrt(bound.max()))


def relative_error_if_uniform(categories: int, n: int, alpha: float = 0.05) -> float:
    """The best case, all shares equal (§3.3): √(B·(r − 1)/n)."""
    return float(np.sqrt(_percentile(categories, alpha) * (categories - 1) / n))


def respondents_needed(categories: int, relative_error: float, alpha: float = 0.05) -> int:
    """How many respondents bring `relative_error_if_uniform` down to the wished error."""
    if not relative_error > 0:
        raise InputError(f"the target relative error must be positive, not {relative_error}")
    needed = _percentile(categories, alpha) * (categories - 1) / relative_error**2
    return int(np.ceil(needed))
