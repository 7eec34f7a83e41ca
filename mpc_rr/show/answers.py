"""The answer to a condition, in words."""

import math

from mpc_rr.publication.answers import Answer
from mpc_rr.publication.parts import tells_nothing

ROUNDING = 1e-6
"""Of a person: what sums of shares may be off by."""


def answer_lines(answer: Answer) -> list[str]:
    """How many, how sure that is, and where it comes from."""
    said = filter(None, (_released(answer), _respondents(answer), _limits(answer)))
    return [f"{answer.condition}: {'; '.join(said)}", answer.how]


def _released(answer: Answer) -> str:
    if answer.released is None:
        return ""
    return f"{answer.released:,} of {answer.records:,} released records"


def _respondents(answer: Answer) -> str:
    whom = "the respondents" if answer.n is None else f"{answer.n:,} respondents"
    if answer.share is None and (answer.certain or answer.interval is None):
        known = answer.interval is not None
        return f"between {_whole(answer.interval)} of {whom}, for sure" if known else ""
    if answer.n and answer.interval is not None and tells_nothing(*answer.interval, answer.n):
        return f"cannot be told at this budget for these {whom}"
    if answer.share is None:
        return f"no estimate for {whom}"
    if answer.count is None:
        return f"{answer.share:.1%} of {whom}"
    return f"{answer.count:,.0f} of {whom} ({answer.share:.1%})"


def _limits(answer: Answer) -> str:
    """What is not for sure."""
    limits = []
    if answer.interval is not None and not answer.certain:
        limits.append(f"between {_whole(answer.interval)} of them")
    if answer.population is not None:
        low, high = answer.population
        drawn = "of the population that they were drawn from"
        limits.append(f"between {low:.1%} and {high:.1%} {drawn}")
    return f"with {answer.level:.0%} confidence {', and '.join(limits)}" if limits else ""


def _whole(interval: tuple[float, float] | None) -> str:
    """Whole people, towards the safe side."""
    low, high = interval or (0, 0)
    return f"{math.floor(low + ROUNDING):,} and {math.ceil(high - ROUNDING):,}"
