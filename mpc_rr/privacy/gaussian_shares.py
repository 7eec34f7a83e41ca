"""Noise that many parties add together: each a discrete Gaussian number, in total nearly one.

Distributed discrete Gaussian noise (Kairouz, Liu and Steinke 2021). What is stated is not their
general bound but what follows for counts, of which another record changes ``changed`` by one each:

* The sum of h numbers of variance v is a discrete Gaussian number of variance h·v, but for a factor
  of at most e^±τ in the probability of each value. (Adding the next to j of them multiplies by
  θ(x) = Σ exp(−(y − cx)²/2s²) over all integers y, s² = v·j/(j + 1); by Poisson's formula that is
  constant but for a factor (1 + 2q + 2q⁴ + …)/(1 − 2q + 2q⁴ − …), q = exp(−2π²s²).)
* Counts that do not change are equally distributed with either record, whatever the noise is. So
  the closeness costs 2·τ for each count that changes, and nothing for others.
* Between discrete Gaussian numbers the logarithm of the odds is a linear function of the sum S of
  the noise where counts change. So δ = P(S ≥ c) − e^ε·P(S ≥ c + shift), as for the continuous one
  (Balle and Wang 2018); both tails of S are bounded by integrals.

So the stated (ε, δ) is that of the numbers that are really drawn, and hardly more than they need.
More parties than h only add more noise.

Where h is large, v would be so small that τ is not. Then counts are added in units of 1/``unit``
(an odd number) with noise of units, and the sum is rounded to whole counts.
"""

import functools
import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt
from scipy.special import log_ndtr

from mpc_rr.errors import InputError
from mpc_rr.privacy.discrete_gaussian import discrete_gaussian
from mpc_rr.privacy.noise import SURE
from mpc_rr.randomness import Randomness

LEAST_VARIANCE = 2.0
"""Of a share, in units: from here on τ is below 10⁻⁷."""
LARGEST_DEVIATION = 1e8
DIGITS = 24
"""Binary digits of the variance: so that it is the same on every machine."""
ROUNDING = 1e-11
TIE = 1e-13
"""How near a number may be to one that it is taken for, relative to it."""
HALVINGS = 60
SUMMED, PARTS = 8192, 8192
"""So many terms of τ are summed as they are; in so many parts the others are bounded."""


@functools.lru_cache(maxsize=1024)
def closeness(pieces: int, variance: float) -> float:
    """τ: how far the logarithm of any probability is from that of one number, at most.

    A sum of terms for j = 1, …, pieces − 1. From ``SUMMED`` on it is bounded: terms are convex in j
    (q is, and they are convex and rise in q), so those from one j to another are at most as many
    times the average of the first and the last. Where these are apart by a multiple of j^1.5, that
    is more than the terms by the same share everywhere, and by less than 10⁻⁹ in all.
    """
    found = float(added_by(np.arange(1.0, min(pieces, SUMMED)), variance).sum())
    if pieces <= SUMMED:
        return found
    evenly = np.linspace(SUMMED**-0.5, pieces**-0.5, PARTS) ** -2
    starts = np.unique([SUMMED, *np.round(evenly[1:-1]), pieces])
    first, last = starts[:-1], starts[1:] - 1
    average = (added_by(first, variance) + added_by(last, variance)) / 2
    return (found + float((average * (last - first + 1)).sum())) * (1 + ROUNDING)


def added_by(j: npt.NDArray[np.float64], variance: float) -> npt.NDArray[np.float64]:
    """By how much adding the next to j numbers adds to τ."""
    q = np.exp(-2 * math.pi**2 * variance * j / (j + 1))
    return np.asarray(np.log1p(2 * q / (1 - q)) - np.log1p(-2 * q))


def delta_of(epsilon: float, changed: int, honest: int, variance: float, unit: int = 1) -> float:
    """The δ with which sums with the noise of so many parties are ε-private.

    Another record changes so many of them, each by ``unit``.
    """
    return _beyond(epsilon, changed, honest, variance, unit)[1]


def chance_beyond(
    epsilon: float, changed: int, honest: int, variance: float, unit: int = 1
) -> float:
    """How probably the sums tell more than ε, at most: some times δ."""
    return _beyond(epsilon, changed, honest, variance, unit)[0]


def _beyond(
    epsilon: float, changed: int, honest: int, variance: float, unit: int
) -> tuple[float, float]:
    """P(S ≥ c), and the same without e^ε·P(S ≥ c + shift): where S = c, that is nothing."""
    apart = changed * closeness(honest, variance)
    left, cell = epsilon - 2 * apart, honest * variance
    if left < 0:
        return 1.0, 1.0
    above = math.ceil(left * cell / unit * (1 - TIE) - unit * changed / 2)
    spread, inner = changed * cell, closeness(changed, cell)
    beyond = math.exp(inner) * _tail_at_most(above, spread) * (1 + ROUNDING)
    other = _log_tail_at_least(above + unit * changed, spread)
    opposite = math.exp(left - inner + other) * (1 - ROUNDING)
    found = (math.exp(apart) * more for more in (beyond, max(beyond - opposite, 0.0)))
    whole, rest = (min(1.0, chance) for chance in found)
    return whole, rest


def _tail_at_most(first: int, variance: float) -> float:
    """P(x ≥ first): where the terms are convex, each is below its integral from −½ to +½."""
    deviation = math.sqrt(variance)
    if first < 1:
        return 1.0
    start = first - 0.5 if first - 0.5 >= deviation else first - 1.0
    return math.exp(float(log_ndtr(-start / deviation)))


def _log_tail_at_least(first: int, variance: float) -> float:
    """ln P(x ≥ first): terms that fall are above the integral from each to the next.

    Where they are convex, half of the first is above the rest of it, too (the trapezoidal rule).
    """
    deviation, q = math.sqrt(variance), math.exp(-2 * math.pi**2 * variance)
    start = max(first, 0) / deviation
    tail = float(log_ndtr(-start))
    if start >= 1:
        half = -(start**2) / 2 - math.log(2 * math.sqrt(2 * math.pi) * deviation)
        tail = float(np.logaddexp(tail, half))
    return tail - math.log1p(2 * q / (1 - q))


@functools.lru_cache(maxsize=64)
def _least_noise(epsilon: float, delta: float, changed: int, honest: int) -> tuple[float, int]:
    """The least variance of a share, and the unit it needs."""

    def enough(variance: float, unit: int, parties: int) -> bool:
        return delta_of(epsilon, changed, parties, variance, unit) <= delta

    def least(unit: int, parties: int) -> float:
        low = high = LEAST_VARIANCE
        while not enough(high, unit, parties):
            low, high = high, 4 * high
        for _ in range(HALVINGS):
            middle = math.sqrt(low * high)
            low, high = (low, middle) if enough(middle, unit, parties) else (middle, high)
        return high

    fine = 101  # noise of one party in small units: what all honest ones together need
    together = least(fine, 1) / fine**2
    unit = math.ceil(math.sqrt(LEAST_VARIANCE * honest / together))
    unit += 1 - unit % 2
    step = math.ldexp(1.0, math.frexp(found := least(unit, honest))[1] - DIGITS)
    found = math.ceil(found / step) * step
    while not enough(found, unit, honest):
        found += step
    return found, unit


@dataclass(frozen=True)
class GaussianShares:
    """What each of many parties adds so that sums of their vectors become (ε, δ)-private.

    ``changed``: how many sums another record may change, each by one.
    ``honest``: so many parties surely add their share and tell nobody.
    """

    epsilon: float
    delta: float
    changed: int
    honest: int
    cells: int

    tails: ClassVar[float] = 0.0
    """The excess of the noise in a count: that of a normal distribution."""

    def __post_init__(self) -> None:
        if not 0 < self.epsilon < math.inf:
            raise InputError(f"the noise needs a positive, finite epsilon, not {self.epsilon}")
        if not 0 < self.delta < 1:
            raise InputError(f"noise_delta lies between 0 and 1, not {self.delta}")
        if self.honest < 1:
            raise InputError("at least one party must add its noise honestly")
        if self.standard_deviation(self.honest) > LARGEST_DEVIATION:
            raise InputError(
                f"ε = {self.epsilon:.3g} would need noise of a standard deviation of "
                f"{self.standard_deviation(self.honest):.3g} in every count: nothing would be left "
                "of them; ask fewer questions or allow a larger ε"
            )

    @property
    def variance(self) -> float:
        """Of one party's share, in units."""
        return _least_noise(self.epsilon, self.delta, self.changed, self.honest)[0]

    @property
    def unit(self) -> int:
        """So many units are one person."""
        return _least_noise(self.epsilon, self.delta, self.changed, self.honest)[1]

    def draw(self, rng: Randomness) -> npt.NDArray[np.int64]:
        """One party's share for every cell, in units."""
        return discrete_gaussian(self.variance, self.cells, rng)

    def standard_deviation(self, parties: int) -> float:
        """Of the noise in one count when ``parties`` add their shares; rounding is part of it."""
        rounding = (1 - self.unit**-2) / 12
        return math.sqrt(self.variance * parties / self.unit**2 + rounding)

    def bound(self, parties: int, cells: int = 1, times: int = 1) -> int:
        """The noise of so many parties in so many counts together, but for one case in 2⁴⁰.

        ``times``: of so many such sums none is beyond it, but for one case in 2⁴⁰. Discrete
        Gaussian numbers have tails as short as those of continuous ones: P(|sum| > b) is at most
        2·exp(−b²/2V). Rounding moves each count by less than a half.
        """
        units = self._farthest(parties * cells, times)
        return math.ceil((units + cells * (self.unit // 2)) / self.unit)

    def farthest(self, parties: int) -> int:
        """In units, the noise in every cell, but for one case in 2⁴⁰."""
        return self._farthest(parties, self.cells)

    def _farthest(self, numbers: int, times: int) -> int:
        return math.ceil(math.sqrt(2 * numbers * self.variance * math.log(2 * times / SURE)))

    def of_one_answer(self, changed: int) -> float:
        """The ε of an answer that changes so many sums by one each, with the same δ."""
        low, high = 0.0, self.epsilon
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            delta = delta_of(middle, changed, self.honest, self.variance, self.unit)
            low, high = (low, middle) if delta <= self.delta else (middle, high)
        return high

    def chance_beyond(self, changed: int, epsilon: float) -> float:
        """How probably sums of which so many change tell more than an ε, at most."""
        return chance_beyond(epsilon, changed, self.honest, self.variance, self.unit)
