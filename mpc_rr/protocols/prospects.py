"""What `mpc-rr check` says of studies that are too small, or too wide, for what they ask.

Each function gives the sentences for one reason, or none: with the numbers, and what would help.
"""

import math
from collections.abc import Iterable, Sequence

from mpc_rr.estimation.distribution import relative_error_if_uniform, respondents_needed
from mpc_rr.estimation.prospects import (
    chance_of_untold_pairs,
    people_for_all_pairs,
    untold_pairs,
)
from mpc_rr.publication.reports import MOST_WEIGHED

TOO_WRONG = 2.0
"""A share that is wrong by twice itself is "too big to be acceptable" (000 §3.2)."""
MISPLACED = 0.5
"""The share of people in wrong cells from which on a table is said to tell little."""
RATHER_NOT = 0.05
"""The probability that a pair gets no table from which on that is foretold."""


A_RECORD = "A record has {:,} combinations of answers"
AN_ATTRIBUTE = "An attribute has {:,} possible answers"
A_CLUSTER = "A cluster may have {:,} combinations of answers"


def of_combinations(what: str, combinations: int, n: int) -> list[str]:
    """Too many combinations for so many people, or for weights."""
    found, there_are = [], what.format(combinations)
    error = relative_error_if_uniform(combinations, n)
    if error > TOO_WRONG:
        enough = respondents_needed(combinations, TOO_WRONG)
        found.append(
            f"{there_are}, and {n:,} people are expected. Even if all were equally frequent and "
            f"nothing were randomized, the share of one could be wrong by {error:.0%} of itself. "
            f"For {TOO_WRONG:.0%}, {enough:,} people are needed, or fewer or coarser questions."
        )
    if combinations > MOST_WEIGHED:
        found.append(
            f"{there_are}, more than the {MOST_WEIGHED:,} whose shares can be worked out: reports "
            "of so many get no weights by RR-Adjustment."
        )
    return found


def of_randomizing(errors: Iterable[float], n: int) -> list[str]:
    """Tables that randomizing leaves little of; ``errors``: what it adds to each, in L1."""
    known = list(errors)
    misplaced = math.fsum(known) / len(known) / 2
    if not misplaced > MISPLACED:
        return []
    text = (
        f"With {n:,} people, tables will tell little: randomizing alone is expected to put "
        f"{min(misplaced, 1):.0%} of them into wrong cells of the average table, before it is "
        "smoothed."
    )
    if math.isfinite(misplaced):
        enough = math.ceil(n * (misplaced / MISPLACED) ** 2)
        text += f" For {MISPLACED:.0%}, about {enough:,} people are needed, or"
    else:
        text += " What would help:"
    return [f"{text} a larger budget or coarser answers; `mpc-rr plan` compares designs."]


def of_views(attributes: int, views: Sequence[Sequence[int]], n: int) -> list[str]:
    """Pairs that may be in no answered view."""
    pairs, together = math.comb(attributes, 2), len(views[0])
    holding = sum({0, 1} <= set(view) for view in views)
    untold = untold_pairs(pairs, len(views), holding, n)
    chance = chance_of_untold_pairs(pairs, len(views), holding, n)
    if not (untold if chance is None else chance) > RATHER_NOT:
        return []
    enough = people_for_all_pairs(pairs, len(views), holding, RATHER_NOT)
    surely = "" if chance is None else f" (with a probability of {chance:.0%}, at least one)"
    text = (
        f"Each of the {n:,} people answers one of {len(views):,} groups of {together} attributes: "
        f"{n / len(views):.1f} answers to each are expected. {untold:.1f} of the {pairs:,} pairs "
        f"of attributes are expected to be in no answered group{surely}, and will have no table. "
        f"With {enough:,} people the probability of any is below {RATHER_NOT:.0%}; larger groups "
        "(together) need fewer."
    )
    return [text]


def of_answers(cells: int, answers: float, together: int) -> list[str]:
    """Fewer answers than cells in a table."""
    if answers >= cells:
        return []
    text = (
        f"A table of {together} attributes has up to {cells:,} cells, and {answers:.1f} answers "
        "about each table are expected: fewer than cells. More people, coarser answers or fewer "
        "attributes would fill it."
    )
    return [text]


def of_noise(deviation: float, people: float, epsilon: float) -> list[str]:
    """Noise that is larger than what it is added to."""
    if deviation <= people:
        return []
    times = deviation / people
    text = (
        f"The noise in each count has a standard deviation of {deviation:.1f} people, and "
        f"{people:.1f} are in a cell on average: most counts cannot be told from 0. With about "
        f"{times:.1f} times as many people, or noise_epsilon = {epsilon * times:.2g}, the noise "
        "would be as large as the average count; coarser answers and fewer attributes help, too."
    )
    return [text]


def of_suppression(below: int, n: int, cells: Sequence[int]) -> list[str]:
    """Tables of which most will be hidden."""
    sparse = [size for size in cells if n / size < below]
    if not sparse:
        return []
    text = (
        f"In {len(sparse):,} of {len(cells):,} tables a cell counts fewer than suppress_below = "
        f"{below} people on average (in the largest, {n / max(sparse):.1f}): many of their counts "
        "will be hidden, and others with them. More people or coarser answers would show more; "
        f"{below * max(sparse):,} people bring the average to {below} in every table."
    )
    return [text]


def of_groups(k: int, n: int, fewest: int) -> list[str]:
    """One group only; or a minimum that no group may be lost from."""
    found = []
    if n < 2 * k:
        found.append(
            f"{n:,} people make one group of k = {k}: the release gives all of them the same "
            f"quasi-identifiers. {2 * k:,} people, or a smaller k, make two."
        )
    if 0 < n - fewest < k:
        found.append(
            f"minimum = {fewest:,} lets {n - fewest:,} of the {n:,} leave, but whoever leaves once "
            f"the groups are made takes a group of at least {k} along: the study would end. "
            f"minimum = {n - k:,} or less lets a group go."
        )
    return found
