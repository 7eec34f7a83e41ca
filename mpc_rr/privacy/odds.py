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


def in_words(epsilon: float, *, you: bool = False, source: str = "") -> str:
    """What ε means, in one sentence to a respondent (``you``), or about one.

    ``source``: what an observer sees; all of the respondent's randomized answers, if not given.
    """
    about, whose = ("you", "your") if you else ("a respondent", "their")
    source = source or f"all of {whose} randomized answers"
    if math.isinf(epsilon):
        return f"No ε bounds what taking part tells about {about}."
    sure = 100 * certainty(epsilon)
    if sure >= 99.95:
        return (
            f"This ε protects almost nothing: anyone who sees {source} can be practically certain "
            "of the truth."
        )
    return (
        f"Someone who starts at 50:50 on a guess about {about} can become at most {sure:.3g} % "
        f"sure of it from {source}."
    )
