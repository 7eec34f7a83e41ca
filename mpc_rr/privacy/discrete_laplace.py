"""Discrete Laplace numbers: P(z) ∝ exp(−decay·|z|) for every integer z.

The difference of two geometric numbers has that distribution. The binary digits of a geometric
number are independent: digit k is 1 with probability 1/(1 + exp(decay·2^k)). So no table is needed
however slowly it falls, and each digit is drawn exactly, from the float nearest to its probability.
Of a whole number the logarithm of its probability is off by less than `ROUNDED` for that, unless it
is one of those that come with a probability of less than 10^−300 in all.
"""

import math

import numpy as np
import numpy.typing as npt

from mpc_rr.randomness import Randomness

SLOWEST = 2.0**-52
"""The smallest decay: beyond it, 64 bits would not hold what is drawn."""
NEVER = 745.0
"""A digit whose odds are exp(−745) has the probability 0 of a float."""
LARGE = 700.0
"""From here on exp(−x), 1/(1 + exp(x)) and 1/(4·sinh²(x/2)) are one float; exp(710) is none."""
ROUNDED = 1e-12


def discrete_laplace(decay: float, count: int, rng: Randomness) -> npt.NDArray[np.int64]:
    """So many independent numbers."""
    if not SLOWEST <= decay < math.inf:
        raise ValueError(f"the decay must be at least 2^-52, not {decay}")
    return _geometric(decay, count, rng) - _geometric(decay, count, rng)


def _geometric(decay: float, count: int, rng: Randomness) -> npt.NDArray[np.int64]:
    found, place = np.zeros(count, np.int64), 0
    while decay * 2.0**place < NEVER:
        chance = _seldom(decay * 2.0**place)
        found |= rng.bernoulli(chance, (count,)).astype(np.int64) << place
        place += 1
    return found


def _seldom(exponent: float) -> float:
    """1/(1 + exp(exponent)), also where exp is more than a float can be."""
    return 1 / (1 + math.exp(exponent)) if exponent < LARGE else math.exp(-exponent)


def laplace_variance(decay: float) -> float:
    """Of one such number: 1/(2·sinh²(decay/2))."""
    return 0.5 / math.sinh(decay / 2) ** 2 if decay < LARGE else 2 * math.exp(-decay)
