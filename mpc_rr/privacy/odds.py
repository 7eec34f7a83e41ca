"""ε in words a respondent understands."""

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


def in_words(epsilon: float) -> str:
    """One sentence for a respondent."""
    if math.isinf(epsilon):
        return "Some answers give you away with certainty: there is no limit to what they tell."
    sure = 100 * certainty(epsilon)
    if sure >= 99.95:
        return "Whoever sees your answer can be practically certain of the truth."
    return f"Whoever sees your answer can be at most {sure:.3g} % sure, where a coin toss is 50 %."
