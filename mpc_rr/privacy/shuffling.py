"""Hidden in a crowd: what local privacy becomes when answers are shuffled or summed.

If n parties each give an ε₀-locally private answer and only the multiset of answers (or a sum made
of it) is seen, each enjoys a much smaller central (ε, δ). The bounds are those of Feldman,
McMillan and Talwar, "Hiding among the clones" (2021): a closed form, and the numerical evaluation
of the same argument, which is tighter. They hold against whoever sees only the multiset; a party's
own answer, seen under its name, still costs the full ε₀.
"""

import math

import numpy as np
import numpy.typing as npt
from scipy.special import bdtr, bdtrc, betainc, gammaln

from mpc_rr.errors import InputError

Array = npt.NDArray[np.float64]
LARGEST = 600.0
"""Beyond this nobody is ever a clone, and e^ε is out of range."""


def _check(epsilon: float, n: int, delta: float) -> None:
    if not epsilon >= 0:
        raise InputError(f"epsilon must not be negative, not {epsilon}")
    if n < 2:
        raise InputError(f"a crowd has at least two parties, not {n}")
    if not 0 < delta < 1:
        raise InputError(f"delta lies between 0 and 1, not {delta}")


def closed_form(epsilon: float, n: int, delta: float) -> float:
    """Their Theorem 3.1. Where it does not apply (ε₀ too large for n), ε₀ itself."""
    _check(epsilon, n, delta)
    if epsilon > math.log(n / (16 * math.log(2 / delta))):
        return epsilon
    grown = math.exp(epsilon)
    root = 8 * math.sqrt(grown * math.log(4 / delta) / n) + 8 * grown / n
    return min(epsilon, math.log1p(math.tanh(epsilon / 2) * root))


def numerical(epsilon: float, n: int, delta: float) -> float:
    """The smallest ε that the clones' argument gives for this δ, by bisection.

    Never more than the closed form.
    """
    known = closed_form(epsilon, n, delta)
    if epsilon > LARGEST or delta_of(epsilon, n, known) > delta:
        return known
    low, high = 0.0, known
    while high - low > 1e-6 * max(high, 1e-6):
        middle = (low + high) / 2
        if delta_of(epsilon, n, middle) > delta:
            low = middle
        else:
            high = middle
    return high


def delta_of(local: float, n: int, central: float) -> float:
    """δ for a central ε: the divergence of the two clone distributions, summed exactly.

    Each of the other n − 1 parties is, with probability e^−ε₀, a clone of the first party's one or
    other input; among c clones the first input's number is Binomial(c, ½) plus the party itself.
    Counts far from their mean (beyond 12 standard deviations) are bounded and added.
    """
    clone = math.exp(-local)
    mean = (n - 1) * clone
    width = 12 * math.sqrt(mean * (1 - clone)) + 40
    low, high = max(0, int(mean - width)), min(n - 1, math.ceil(mean + width))
    clones = np.arange(low, high + 1, dtype=np.float64)
    if clone < 1:
        ways = gammaln(n) - gammaln(clones + 1) - gammaln(n - clones)
        others = (n - 1 - clones) * math.log1p(-clone)
        log_weight = ways + clones * math.log(clone) + others
    else:
        log_weight = np.where(clones == n - 1, 0.0, -np.inf)
    weight = np.exp(log_weight)
    outside = float(bdtr(low - 1, n - 1, clone)) if low > 0 else 0.0
    outside += float(bdtrc(high, n - 1, clone)) if high < n - 1 else 0.0
    truthful = 1 / (1 + math.exp(-local))
    tilt = 2 * truthful - 1
    if tilt <= 0:
        return 0.0
    bound = (math.exp(central) * truthful - (1 - truthful)) / (tilt * (1 + math.exp(central)))
    first = np.floor(bound * (clones + 1)) + 1  # from here on the first input is the likelier one
    above, at = _tail(first - 2, clones), _tail(first - 1, clones)
    gained = truthful * above + (1 - truthful) * at
    lost = (1 - truthful) * above + truthful * at
    return float((weight * np.maximum(gained - math.exp(central) * lost, 0)).sum()) + outside


def _tail(more_than: Array, trials: Array) -> Array:
    """P[Binomial(trials, ½) > more_than], by the incomplete beta function."""
    successes = np.clip(more_than, 0, np.maximum(trials - 1, 0))
    tail = betainc(successes + 1, np.maximum(trials - successes, 1), 0.5)
    tail = np.where(more_than >= trials, 0.0, tail)
    return np.where(more_than < 0, 1.0, tail)
