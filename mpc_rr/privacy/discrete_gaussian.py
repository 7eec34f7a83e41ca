"""Discrete Gaussian numbers, drawn exactly: P(x) ∝ exp(−x²/2v) for every integer x.

Rejection (Canonne, Kamath and Steinke 2020, with another proposal). Let t be the largest power of
two whose square is at most v. Random bits propose a sign, a number q with P(q) = 2^−(q+1), and r
below t: that is x = q·t + r, or −x. It is kept with probability

    2^q · exp(−(x²/2v + v/4t²)),

which is below 1 for all x, because (ln 2)²/2 < 1/4; between .46 and .53 of all proposals are. No
table is needed, however large v is.

Whether a uniform number U is below that probability is decided by as many of its digits as it
takes: floats find nearly all, with the error they can have; a hundred digits, the rest. ``v`` is
the rational number that the float stands for.
"""

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from mpc_rr.randomness import WORD_BITS, Randomness

SMALLEST_VARIANCE, LARGEST_VARIANCE = 1.0, 2.0**60
SLACK = 2.0**-36
"""How far floats may be from the probability: far more than they are."""
MARGIN = Decimal("1e-9")
"""How far the decimal numbers may be, in units of the last binary place that is known of U."""

Words = npt.NDArray[np.uint64]
Integers = npt.NDArray[np.int64]


def discrete_gaussian(variance: float, count: int, rng: Randomness) -> Integers:
    """So many independent numbers with the parameter ``variance``."""
    if not SMALLEST_VARIANCE <= variance <= LARGEST_VARIANCE:
        raise ValueError(f"the variance must be from 1 to 2^60, not {variance}")
    bits = (math.frexp(variance)[1] - 1) // 2
    drawn: list[Integers] = []
    wanted = count
    while wanted > 0:
        words, judges = rng.words((2, 5 * wanted // 2 + 16))
        halvings, values, possible = _proposed(words, bits, rng)
        kept = possible & _kept(halvings, values, judges, variance, bits, rng)
        signs = 1 - 2 * (words & np.uint64(1)).astype(np.int64)
        drawn.append((values * signs)[kept][:wanted])
        wanted -= len(drawn[-1])
    return np.concatenate(drawn) if drawn else np.zeros(0, np.int64)


def _proposed(
    words: Words, bits: int, rng: Randomness
) -> tuple[Integers, Integers, npt.NDArray[np.bool_]]:
    """q, x without its sign, and whether it is possible at all: zero has no minus."""
    below = (words >> np.uint64(1)) & np.uint64((1 << bits) - 1)
    rest, places = words >> np.uint64(1 + bits), WORD_BITS - 1 - bits
    halvings = _trailing_zeros(rest, places)
    open_ones = np.flatnonzero(rest == 0)
    while open_ones.size:
        more = rng.words(open_ones.shape)
        halvings[open_ones] += _trailing_zeros(more, WORD_BITS)
        open_ones = open_ones[more == 0]
    values = (halvings << bits) + below.astype(np.int64)
    return halvings, values, (values > 0) | (words & np.uint64(1) == 0)


def _trailing_zeros(words: Words, places: int) -> Integers:
    """How many binary digits from the last on are zero; of 0, all ``places``."""
    lowest = words & (~words + np.uint64(1))
    found = np.frexp(lowest.astype(np.float64))[1].astype(np.int64) - 1
    return np.where(words == 0, places, found)


def _kept(
    halvings: Integers, values: Integers, judges: Words, variance: float, bits: int, rng: Randomness
) -> npt.NDArray[np.bool_]:
    """Whether U, of which ``judges`` are the first digits, is below the probability."""
    power = values.astype(np.float64) ** 2 / (2 * variance) + variance / 4 / 4.0**bits
    chance = np.exp(halvings * math.log(2) - power)
    places = judges.astype(np.float64) * 2.0**-WORD_BITS
    kept = np.asarray(places < chance)
    for k in np.flatnonzero(np.abs(places - chance) <= SLACK).tolist():
        v = Fraction(variance)
        exact = Fraction(int(values[k]) ** 2) / (2 * v) + v / (4 << (2 * bits))
        kept[k] = _settle(int(judges[k]), int(halvings[k]), exact, rng)
    return kept


def _settle(places: int, halvings: int, power: Fraction, rng: Randomness) -> bool:
    """Whether U < 2^halvings·exp(−power), if these are its first 64 binary places."""
    known = WORD_BITS
    while True:
        with localcontext() as context:
            context.prec = known // 3 + 40
            exponent = Decimal(power.numerator) / Decimal(power.denominator)
            chance = (-exponent).exp() * Decimal(2) ** (halvings + known)
            if places + 1 <= chance - MARGIN:
                return True
            if places >= chance + MARGIN:
                return False
        (word,) = rng.words((1,)).tolist()
        places, known = places << WORD_BITS | word, known + WORD_BITS
