"""Noise that many parties add together: each a little, in total discrete Laplace.

The difference of two geometric numbers is discrete Laplace, P(x) ∝ exp(−|x|/scale); and a geometric
number is the sum of h independent Pólya (negative binomial) numbers of shape 1/h, for any h. So h
honest parties that each add the difference of two Pólya numbers make the total private, and no one
of them knows the total noise (Goryczka and Xiong 2015, in the discrete form). More parties than h
only add more noise.

Draws compare 64 random bits with a table of words that are all rounded to the nearest; what this
can cost is the stated δ.
"""

import functools
import math
from array import array
from dataclasses import dataclass
from decimal import Decimal, localcontext
from typing import ClassVar

import numpy as np
import numpy.typing as npt
from scipy.special import betainc, gammaln

from mpc_rr.errors import InputError
from mpc_rr.randomness import Randomness

WORD_BITS = 64
LARGEST_SCALE = 1e5
TABLE_BITS = 192
TABLE_ERROR = 2.0**-44
"""How far, relative to itself, δ supposes an entry of the table to be off."""
SURE = 2.0**-40
"""How seldom noise may be taken for a fault, or leave the range that is kept for it."""


@functools.lru_cache(maxsize=64)
def _survival(honest: int, epsilon: float, sensitivity: float) -> npt.NDArray[np.uint64]:
    """P(Pólya > k) for k = 0, 1, …, in 64-bit words, in falling order, each rounded to the nearest.

    The shape is 1/honest, the scale sensitivity/epsilon. The chance of k + 1 is that of k times
    exp(−1/scale)·(k + 1/honest)/(k + 1), below one: so errors do not grow, and in integers of 192
    binary places those of a million steps stay below 2⁻¹⁵⁰.
    """
    with localcontext() as context:
        context.prec = 80
        alpha = (-Decimal(epsilon) / Decimal(sensitivity)).exp()
        zero = ((1 - alpha).ln() / honest).exp()
        fall, chance = (int(part * (1 << TABLE_BITS)) for part in (alpha, zero))
    above = (1 << TABLE_BITS) - chance
    cut = TABLE_BITS - WORD_BITS
    half, words, k = 1 << (cut - 1), array("Q"), 0
    while word := (above + half) >> cut:
        words.append(word)
        chance = (chance * fall >> TABLE_BITS) * (k * honest + 1) // ((k + 1) * honest)
        above -= chance
        k += 1
    return np.array(words, dtype=np.uint64)


@functools.lru_cache(maxsize=64)
def _supposed_off(shape: float, scale: float) -> float:
    """How far, in units of 2⁻⁶⁴, δ supposes a draw to be from a Pólya number.

    As if each entry of the table were off by a unit and by ``TABLE_ERROR`` of itself. That is more
    than it is, but what result folders have said from the beginning: they stay true, and are what
    follows from their transcripts, to the last digit.
    """
    longest = math.ceil((WORD_BITS + 8) * math.log(2) * scale) + 2
    k = np.arange(1, longest, dtype=np.float64)
    success = -math.expm1(-1 / scale)
    logs = gammaln(k + shape) - gammaln(k + 1) - math.lgamma(shape) + shape * math.log(success)
    upper = np.cumsum(np.exp(logs - k / scale)[::-1])[::-1]
    words = np.minimum(np.rint(upper * 2.0**WORD_BITS), 2.0**WORD_BITS - 2.0**11)
    words = words[words >= 1]
    return len(words) + 1 + TABLE_ERROR * float(words.sum())


@dataclass(frozen=True)
class NoiseShares:
    """What each of many parties adds so that sums of their vectors become (ε, δ)-private.

    ``sensitivity``: how much another record may change the sums in all ``cells`` together (L1).
    ``honest``: so many parties surely add their share and tell nobody.
    """

    epsilon: float
    sensitivity: int
    honest: int
    cells: int

    tails: ClassVar[float] = 3.0
    """The excess of the noise in a count, where no more than ``honest`` parties add to it."""
    unit: ClassVar[int] = 1
    """Noise is drawn in whole people."""

    def __post_init__(self) -> None:
        if not 0 < self.epsilon < math.inf:
            raise InputError(f"the noise needs a positive, finite epsilon, not {self.epsilon}")
        if self.scale > LARGEST_SCALE:
            raise InputError(
                f"ε = {self.epsilon:.3g} would need noise of a scale of {self.scale:.3g} in every "
                "count: nothing would be left of them; ask fewer questions or allow a larger ε"
            )
        if self.honest < 1:
            raise InputError("at least one party must add its noise honestly")

    @property
    def scale(self) -> float:
        """Of the discrete Laplace noise in each cell."""
        return self.sensitivity / self.epsilon

    def draw(self, rng: Randomness) -> npt.NDArray[np.int64]:
        """One party's share for every cell."""
        rising = _survival(self.honest, self.epsilon, self.sensitivity)[::-1]
        words = np.frombuffer(rng.bytes(2 * self.cells * 8), dtype="<u8").reshape(2, -1)
        up, down = len(rising) - np.searchsorted(rising, words, side="right")
        return np.asarray(up - down, dtype=np.int64)

    @property
    def delta(self) -> float:
        """What drawing from a rounded table can cost, at most. It grows as e^ε, and with the scale.

        A draw is no further from a true Pólya number than all entries of the table together are
        off. The true errors, half a unit for each and for what lies beyond the last, are less than
        is supposed here.
        """
        off = _supposed_off(1 / self.honest, self.scale)
        distance = 2 * self.cells * self.honest * off * 2.0**-WORD_BITS
        return min(1.0, (1 + math.exp(min(self.epsilon, 700.0))) * distance)

    def standard_deviation(self, parties: int) -> float:
        """Of the noise in one cell when ``parties`` add their shares."""
        alpha = math.exp(-1 / self.scale)
        return math.sqrt(2 * alpha * parties / self.honest) / (1 - alpha)

    def of_one_answer(self, changed: int) -> float:
        """The ε of an answer that changes so many sums by one each."""
        return self.epsilon * changed / self.sensitivity

    def chance_beyond(self, changed: int, epsilon: float) -> float:  # noqa: ARG002
        """None but for the rounding of which δ is the price."""
        return 0.0

    def farthest(self, parties: int) -> int:
        """The noise in every cell, but for about one case in 2⁴⁰.

        Beyond the bound of one cell it falls by e with every scale.
        """
        return self.bound(parties) + math.ceil(self.scale * math.log(self.cells))

    def bound(self, parties: int, cells: int = 1, times: int = 1) -> int:
        """The noise of so many parties in so many cells together, but for one case in 2⁴⁰.

        ``times``: of so many such sums none is beyond it, but for one case in 2⁴⁰.
        """
        shape, alpha = cells * parties / self.honest, math.exp(-1 / self.scale)
        low, high, rare = 0, 1, SURE / 2 / times
        while betainc(high + 1, shape, alpha) > rare:  # the tail of a negative binomial
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            if betainc(middle + 1, shape, alpha) > rare:
                low = middle
            else:
                high = middle
        return high
