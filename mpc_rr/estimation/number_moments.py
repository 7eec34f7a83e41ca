"""Means, variances and correlations from sums of numbers: exact, or with noise of known size.

For the people who answered, exact sums leave nothing open. For the population they were drawn
from, a mean has a t interval; a variance one by the delta method on its logarithm, where third and
fourth powers were added up; a correlation Fisher's.

With noise a mean is a ratio of two noisy sums: its limits are Fieller's, which hold however small
the sums are. A variance has limits by the delta method, where the count stands clear of its noise.
Quantiles are stretched for the longer tails of Laplace noise.
"""

import math
from dataclasses import dataclass, replace
from fractions import Fraction

from scipy.special import ndtri, stdtrit

LEVEL = 0.95
NORMAL = float(ndtri((1 + LEVEL) / 2))
LAPLACE = NORMAL * (1 + 3 * (NORMAL**2 - 3) / 24)
"""The quantile of a sum whose excess kurtosis is at most that of Laplace noise (Cornish–Fisher)."""
CLEAR = 4.0
"""So many times its noise a count must be for the delta method."""


@dataclass(frozen=True)
class Estimated:
    """A number with its standard error and limits; None: it cannot be told."""

    value: float | None = None
    standard_error: float | None = None
    low: float | None = None
    high: float | None = None

    def scaled(self, factor: float, shift: float = 0.0) -> "Estimated":
        """Times a positive factor, and moved."""

        def at(value: float | None) -> float | None:
            return None if value is None else value * factor + shift

        error = None if self.standard_error is None else self.standard_error * factor
        return Estimated(at(self.value), error, at(self.low), at(self.high))

    def within(self, lowest: float, highest: float) -> "Estimated":
        """With nothing beyond what is possible."""

        def inside(value: float | None) -> float | None:
            return None if value is None else min(max(value, lowest), highest)

        return Estimated(
            inside(self.value), self.standard_error, inside(self.low), inside(self.high)
        )

    @property
    def root(self) -> "Estimated":
        """The square root."""
        value, error = self.value, self.standard_error
        root = None if value is None else math.sqrt(value)
        low, high = (None if end is None else math.sqrt(end) for end in (self.low, self.high))
        return Estimated(root, None if error is None or not root else error / (2 * root), low, high)


NOT_TOLD = Estimated()


@dataclass(frozen=True)
class Spread:
    """Of one number in one group: mean and variance, of those who gave it and of a population."""

    mean: Estimated
    """For the population."""
    mean_here: Estimated
    """Of these very people."""
    variance: Estimated
    """For the population: divided by n − 1."""
    variance_here: Estimated
    """Of these very people: divided by n."""

    def scaled(self, factor: float, shift: float) -> "Spread":
        """In the attribute's own unit."""
        return Spread(
            self.mean.scaled(factor, shift),
            self.mean_here.scaled(factor, shift),
            self.variance.scaled(factor**2),
            self.variance_here.scaled(factor**2),
        )

    def within(self, lowest: float, highest: float) -> "Spread":
        """Of numbers in this range, in which their means are, too."""
        return replace(
            self,
            mean=self.mean.within(lowest, highest),
            mean_here=self.mean_here.within(lowest, highest),
        )


NOTHING = Spread(NOT_TOLD, NOT_TOLD, NOT_TOLD, NOT_TOLD)

# ── Exact sums ─────────────────────────────────────────────────────────────────────────────────


def exact_spread(n: int, total: int, squares: int, tails: tuple[int, int] | None = None) -> Spread:
    """From the sums over n people; ``tails``: of third and fourth powers."""
    if n == 0:
        return NOTHING
    mean, here = total / n, Fraction(n * squares - total**2, n**2)
    of_people = _known(mean), _known(float(here))
    if n == 1 or here == 0:  # people who all say the same leave open how others differ
        alike = Estimated(0.0) if n > 1 else NOT_TOLD
        return Spread(Estimated(mean), of_people[0], alike, of_people[1])
    variance = float(here * n / (n - 1))
    error = math.sqrt(variance / n)
    wide = float(stdtrit(n - 1, (1 + LEVEL) / 2)) * error
    found = Estimated(mean, error, mean - wide, mean + wide)
    spread = Estimated(variance)
    if tails is not None:
        spread = _with_tails(n, variance, _fourth(n, total, squares, *tails))
    return Spread(found, of_people[0], spread, of_people[1])


def _known(value: float) -> Estimated:
    return Estimated(value, 0.0, value, value)


def _fourth(n: int, total: int, squares: int, cubes: int, fourths: int) -> float:
    """The fourth central moment, exactly."""
    m = Fraction(total, n)
    summed = fourths - 4 * m * cubes + 6 * m**2 * squares - 3 * m**4 * n
    return float(summed / n)


def _with_tails(n: int, variance: float, fourth: float) -> Estimated:
    of_it = (fourth - variance**2 * (n - 3) / (n - 1)) / n
    error = math.sqrt(max(of_it, 0.0))
    factor = math.exp(min(NORMAL * error / variance, 700.0))
    return Estimated(variance, error, variance / factor, variance * factor)


@dataclass(frozen=True)
class Jointly:
    """Two numbers of those who gave both."""

    n: int
    covariance: float | None
    """Divided by n − 1."""
    correlation: Estimated
    """With Fisher's limits for the population."""


def exact_jointly(n: int, x: int, x2: int, y: int, y2: int, product: int) -> Jointly:
    """From the sums over n people."""
    if n < 2:
        return Jointly(n, None, NOT_TOLD)
    covariance = n * product - x * y
    one, two = n * x2 - x**2, n * y2 - y**2
    if not one or not two:
        return Jointly(n, covariance / (n * (n - 1)), NOT_TOLD)
    r = max(-1.0, min(1.0, covariance / (math.sqrt(one) * math.sqrt(two))))
    found = Estimated(r)
    if n > 3 and abs(r) < 1:
        wide = NORMAL / math.sqrt(n - 3)
        ends = (math.tanh(math.atanh(r) + side * wide) for side in (-1, 1))
        found = Estimated(r, (1 - r**2) / math.sqrt(n - 1), *ends)
    return Jointly(n, covariance / (n * (n - 1)), found)


# ── Sums with noise ────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Noisy:
    """A sum with noise of this variance in it."""

    value: float
    variance: float


def noisy_count(count: Noisy, most: int) -> Estimated:
    """How many, with limits; the count itself as it came out."""
    error = math.sqrt(count.variance)
    low, high = (count.value + side * LAPLACE * error for side in (-1, 1))
    return Estimated(count.value, error, max(0.0, min(low, most)), min(float(most), max(high, 0.0)))


def noisy_spread(count: Noisy, total: Noisy, squares: Noisy, reach: int) -> Spread:
    """From noisy sums of numbers no further from 0 than ``reach``."""
    here = _variance(count, total, squares, reach)
    mean_here = _ratio(count, total, reach, 0.0)
    largest = here.high if here.high is not None else float(reach**2)
    mean = _ratio(count, total, reach, max(count.value, 1.0) * largest)
    return Spread(mean, mean_here, _of_more(here, count.value), here)


def _ratio(count: Noisy, total: Noisy, reach: int, sampling: float) -> Estimated:
    """Fieller: all m for which total − m·count is not surprisingly far from 0.

    ``sampling``: the variance of that because other people might have come.
    """
    q = LAPLACE**2
    a = count.value**2 - q * count.variance
    if count.value <= 0 or a <= 0:
        return Estimated(None, None, float(-reach), float(reach))
    b, c = total.value * count.value, total.value**2 - q * (total.variance + sampling)
    root = math.sqrt(max(b**2 - a * c, 0.0))
    low, high = ((b - root) / a, (b + root) / a)
    low, high = max(low, float(-reach)), min(high, float(reach))
    found = total.value / count.value
    if low > high or (low == -reach and high == reach):
        return Estimated(None, None, float(-reach), float(reach))
    error = math.sqrt(total.variance + sampling + found**2 * count.variance) / count.value
    found = min(max(found, low), high)
    return Estimated(found, error, low, high)


def _variance(count: Noisy, total: Noisy, squares: Noisy, reach: int) -> Estimated:
    """Of these people; delta method on the three sums, and on the square of the mean's noise."""
    n = count.value
    if n <= CLEAR * math.sqrt(count.variance) or n <= 0:
        return Estimated(None, None, 0.0, float(reach**2))
    mean, of_squares = total.value / n, squares.value / n
    found = of_squares - mean**2
    slope = 2 * mean**2 - of_squares
    of_mean = (total.variance + mean**2 * count.variance) / n**2
    error = math.sqrt(
        (squares.variance + 4 * mean**2 * total.variance + slope**2 * count.variance) / n**2
        + 2 * of_mean**2
    )
    low = min(max(found - LAPLACE * error - of_mean, 0.0), float(reach**2))
    high = min(max(found + LAPLACE * error + of_mean, 0.0), float(reach**2))
    if found <= 0 or (low == 0 and high == reach**2):
        return Estimated(None, None, low, high)
    return Estimated(min(found, float(reach**2)), error, low, high)


def _of_more(here: Estimated, n: float) -> Estimated:
    """With n − 1, for a population: how that spreads would take fourth powers."""
    if here.value is None or n <= 1:
        return NOT_TOLD
    return Estimated(here.value * n / (n - 1))
