"""How sure an observer can become."""

import math

from mpc_rr.errors import InputError


def certainty(epsilon: float, prior: float = 0.5) -> float:
    """The highest probability an attacker can reach for any guess that had probability ``prior``.

    With ε-local differential privacy an answer multiplies the odds of a guess by at most e^ε.
    """
    if not epsilon >= 0:
        raise InputError(f"epsilon must not be negative, not {epsilon}")
    if not 0 < prior < 1:
        raise InputError(f"a prior probability lies between 0 and 1, not {prior}")
    if epsilon > 700:
        return 1.0
    odds = math.exp(epsilon) * prior / (1 - prior)
    return odds / (1 + odds)
