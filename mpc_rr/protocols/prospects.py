"""What `mpc-rr check` says of studies that are too small, or too wide, for what they ask.

Each function gives the prospects for one reason, or none: for whoever plans the study with the
numbers and what would help, for whoever answers with what her answers may be in vain for.
"""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from mpc_rr.errors import quoted
from mpc_rr.estimation.distribution import relative_error_if_uniform, respondents_needed
from mpc_rr.estimation.foretelling import SpreadOf, foretold
from mpc_rr.estimation.full_reports import MOST_IN_ONE_POPULATION
from mpc_rr.estimation.prospects import (
    chance_of_untold_pairs,
    expected_untold,
    people_for_all_pairs,
    people_for_expected,
    untold_pairs,
)
from mpc_rr.estimation.strength import WEAK
from mpc_rr.publication.reports import MOST_WEIGHED
from mpc_rr.schema import Attribute

TOO_WRONG = 2.0
"""A share that is wrong by twice itself is "too big to be acceptable" (000 §3.2)."""
MISPLACED = 0.5
"""The share of people in wrong cells from which on a table is said to tell little."""
MUCH_SMALLER = 1.5
"""How many times smaller another kind of noise would have to be to be pointed out."""
HARDLY = 0.9
"""Only dependences as strong as this are told: hardly any is."""
RATHER_NOT = 0.05
"""The probability that a pair gets no table from which on that is foretold."""


LONG_ENOUGH = 30.0
"""So many seconds a person needs, at least, to decide on what she has just seen."""
SAME = 1e-9


Kind = Literal["randomness", "other"]
"""What is in the way: that answers are randomized so much, or something else."""


@dataclass(frozen=True)
class Prospect:
    """Something that a study is too small, or too wide, to find out."""

    text: str
    """For whoever plans it: with the numbers, and with what would help."""
    in_vain: str = ""
    """For whoever answers: what her answers may be in vain for; nothing if she need not care."""
    kind: Kind = "other"

    @property
    def of_first_stage(self) -> "Prospect":
        """The same of the stage in which dependences are found."""
        text, in_vain = (
            said and f"To find dependences: {said}" for said in (self.text, self.in_vain)
        )
        return replace(self, text=text, in_vain=in_vain)


def of_own_budgets(
    own: Mapping[str, float], told: Mapping[str, float], together: str
) -> list[Prospect]:
    """Where an answer costs more than the budget that the study file gives it by itself."""
    dearer = [name for name, epsilon in own.items() if told.get(name, 0.0) > epsilon * (1 + SAME)]
    return [Prospect(DEARER.format(quoted(n), own[n], together, told[n])) for n in dearer]


def of_deciding(seconds: float) -> list[Prospect]:
    """Where whoever decides between two rounds has no time for it."""
    return [Prospect(HASTE.format(seconds, LONG_ENOUGH))] if seconds < LONG_ENOUGH else []


A_RECORD = "A record has {:,} combinations of answers"
AN_ATTRIBUTE = "An attribute has {:,} possible answers"
A_CLUSTER = "A cluster may have {:,} combinations of answers"

DEARER = "{} has a budget of its own, ε = {:.3g}, but {}: its answer may cost up to ε = {:.3g}."
HASTE = (
    "Who wants to see the values of all before she decides how to mask hers has {:.3g} s for it, "
    "too few for a person: give round_s (and stragglers_s) in [deadlines] so much that 60 % of it "
    "is {:.0f} s or more."
)
TOO_FEW_FOR_COMBINATIONS = (
    "{:,} people are expected for {:,} combinations of answers: how often a single combination "
    "occurs can hardly be found out."
)
ONLY_SHARES = (
    "All questions together have {:,} possible answers: too many to find out how the answers to "
    "two questions are associated."
)
TOO_RANDOM = (
    "For {:,} people the answers are randomized so much that tables of two questions will tell "
    "little of how their answers are associated."
)
NOT_TOLD = "For {:,} people and so much randomness, {} will mostly not be told from none, for {}."
UNTOLD = (
    "Of {1:,} pairs of questions, {0:.1f} are expected to be answered together by nobody: their "
    "associations will not be known."
)
SPARSE = (
    "{:.1f} answers about each table are expected, and a table has up to {:,} cells: most of these "
    "can hardly be told."
)
DROWNED = (
    "The noise that is added is larger than the average count: most counts will not be told from 0."
)
HIDDEN = (
    "In {:,} of {:,} tables many counts will be too small to be shown: they, and others with them, "
    "are hidden."
)
NUMBERS_DROWNED = (
    "The noise that is added is so large that the means of most groups cannot be told."
)
SMALL_GROUPS = "Most groups will be too small for their means to be shown."
ONE_GROUP = (
    "All people will make one group: how what they might be known by goes with their confidential "
    "answers will not be found out."
)
NOBODY_MAY_LEAVE = (
    "If someone leaves once the groups are made, the study may end without a result, after you "
    "have disclosed what it asks."
)
NOT_ADDED_UP = (
    "If fewer than {:,} of the {:,} parties remain, the study ends without a result, though it "
    "says that {:,} are enough."
)


def of_combinations(what: str, combinations: int, n: int) -> list[Prospect]:
    """Too many combinations for so many people, or for weights."""
    found, there_are = [], what.format(combinations)
    error = relative_error_if_uniform(combinations, n)
    if error > TOO_WRONG:
        enough = respondents_needed(combinations, TOO_WRONG)
        text = (
            f"{there_are}, and {n:,} people are expected. Even if all were equally frequent and "
            f"nothing were randomized, the share of one could be wrong by {error:.0%} of itself. "
            f"For {TOO_WRONG:.0%}, {enough:,} people are needed, or fewer or coarser questions."
        )
        found.append(Prospect(text, TOO_FEW_FOR_COMBINATIONS.format(n, combinations)))
    if combinations > MOST_WEIGHED:
        text = (
            f"{there_are}, more than the {MOST_WEIGHED:,} whose shares can be worked out: reports "
            "of this many get no weights by RR-Adjustment."
        )
        found.append(Prospect(text))
    return found


def of_width(categories: int) -> list[Prospect]:
    """Too many categories for tables of two questions."""
    if categories <= MOST_IN_ONE_POPULATION:
        return []
    text = (
        f"All questions together have {categories:,} categories, more than the "
        f"{MOST_IN_ONE_POPULATION:,} of which tables of two questions can be estimated from "
        "randomized records: these will tell the shares of single answers alone. Fewer or coarser "
        "questions would give tables and associations."
    )
    return [Prospect(text, ONLY_SHARES.format(categories))]


def of_randomizing(errors: Iterable[float], n: int) -> list[Prospect]:
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
    text += " a larger budget or coarser answers; `mpc-rr plan` compares designs."
    return [Prospect(text, TOO_RANDOM.format(n), "randomness")]


def of_dependences(
    attributes: Sequence[Attribute],
    spread_of: SpreadOf,
    n: int,
    pairs: Collection[tuple[int, int]] | None = None,
) -> list[Prospect]:
    """Pairs of attributes of whose dependence only strong ones could be told."""
    found = foretold(attributes, spread_of, n, pairs)
    if found is None:
        return []
    there_are = math.comb(len(attributes), 2) if pairs is None else len(pairs)
    looked_at = " that were looked at" if found.looked_at < there_are else ""
    where = f"{found.untold:,} of {found.looked_at:,} pairs of questions{looked_at}"
    which = "dependences of nearly any strength"
    if found.weakest < HARDLY:
        which = f"dependences weaker than about {found.weakest:.2f}"
    worst = ""
    if found.weakest < HARDLY and found.strongest >= found.weakest + 0.005:
        worst = f" (in one of them, those weaker than {found.strongest:.2f})"
    text = (
        f"With {n:,} people and this budget, {which} will mostly not be told from none, in "
        f"{where}{worst}. 0 is none and 1 full dependence (Cramér's V, or r of two ordered "
        "answers). "
    )
    if found.enough is None:
        text += "A larger budget or coarser answers would help."
    else:
        text += (
            f"About {_rounded_up(found.enough):,} people would bring this down to {WEAK:g}; a "
            "larger budget or coarser answers help, too."
        )
    return [Prospect(text, NOT_TOLD.format(n, which, where), "randomness")]


def _rounded_up(people: int) -> int:
    """To two digits."""
    last: int = 10 ** max(len(str(people)) - 2, 0)
    return -(-people // last) * last


def of_views(
    attributes: int, views: Sequence[Sequence[int]], n: int, weights: Sequence[int]
) -> list[Prospect]:
    """Pairs that may be in no answered view."""
    if len(set(weights)) > 1:
        return _of_mixed_views(dict(zip(map(frozenset, views), weights, strict=True)), n)
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
    return [Prospect(text, UNTOLD.format(untold, pairs))]


def _of_mixed_views(weights: Mapping[frozenset[int], int], n: int) -> list[Prospect]:
    """The same where some answer one attribute, and pairs are not drawn alike."""
    total = sum(weights.values())
    chances = [weight / total for view, weight in weights.items() if len(view) == 2]
    untold = expected_untold(chances, n)
    if not untold > RATHER_NOT:
        return []
    enough = people_for_expected(chances, RATHER_NOT)
    alone = "one attribute or " if len(chances) < len(weights) else ""
    text = (
        f"Each of the {n:,} people answers {alone}one of {len(chances):,} pairs of attributes. "
        f"{untold:.1f} of the pairs are expected to be in no answered group, and will have no "
        f"table. With {enough:,} people who draw like this it would be {RATHER_NOT:g} or less; a "
        "larger budget or coarser answers let more of them answer pairs."
    )
    return [Prospect(text, UNTOLD.format(untold, len(chances)))]


def of_answers(cells: int, answers: float, together: int) -> list[Prospect]:
    """Fewer answers than cells in a table."""
    if answers >= cells:
        return []
    text = (
        f"A table of {together} attributes has up to {cells:,} cells, and {answers:.1f} answers "
        "about each table are expected: fewer than cells. More people, coarser answers or fewer "
        "attributes would fill it."
    )
    return [Prospect(text, SPARSE.format(answers, cells))]


def of_noise(deviation: float, people: float, enough: float | None) -> list[Prospect]:
    """Noise that is larger than what it is added to; ``enough``: an ε at which it would not be."""
    if deviation <= people:
        return []
    times = deviation / people
    wider = "" if enough is None else f", or noise_epsilon = {enough:.2g},"
    text = (
        f"The noise in each count has a standard deviation of {deviation:.1f} people, and "
        f"{people:.1f} are in a cell on average: most counts cannot be told from 0. With about "
        f"{times:.1f} times as many people{wider} the noise would be as large as the average "
        "count; coarser answers and fewer attributes help, too."
    )
    return [Prospect(text, DROWNED)]


def of_other_noise(
    kind: str, smaller: float, deviation: float, deltas: tuple[float, float]
) -> list[Prospect]:
    """The other kind of noise would be much smaller."""
    if deviation < MUCH_SMALLER * smaller:
        return []
    text = (
        f'The noise in each count has a standard deviation of {deviation:.1f} people. noise = "'
        f'{kind}" in [protocol] would bring that to {smaller:.1f} at the same ε (with δ = '
        f"{deltas[0]:.1g} instead of {deltas[1]:.1g})."
    )
    return [Prospect(text)]


def of_suppression(below: int, n: int, cells: Sequence[int]) -> list[Prospect]:
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
    return [Prospect(text, HIDDEN.format(len(sparse), len(cells)))]


def of_noisy_numbers(deviation: float, people: float, n: int) -> list[Prospect]:
    """Noise that leaves the means of most groups open; all in what one person may add."""
    if deviation <= people / 4:
        return []
    times = 4 * deviation / people
    text = (
        f"The noise in each sum has a standard deviation of {deviation:.3g} times what one person "
        f"may add, and {people:,.1f} of the {n:,} people are in a group on average: most means "
        f"cannot be told. With about {times:.2g} times as many people, or {times:.2g} times the "
        "noise_epsilon, they could; fewer numbers and fewer categories help, too."
    )
    return [Prospect(text, NUMBERS_DROWNED)]


def of_small_groups(below: int, n: int, groups: int) -> list[Prospect]:
    """Groups of which most will be hidden."""
    if not groups or n / groups >= below:
        return []
    text = (
        f"{n:,} people in {groups:,} groups are {n / groups:.1f} in each on average, fewer than "
        f"suppress_below = {below}: most will be hidden. {below * groups:,} people bring the "
        f"average to {below}."
    )
    return [Prospect(text, SMALL_GROUPS)]


def of_groups(k: int, n: int, fewest: int) -> list[Prospect]:
    """One group only; or a minimum that no group may be lost from."""
    found = []
    if n < 2 * k:
        text = (
            f"{n:,} people make one group of k = {k}: the release gives all of them the same "
            f"quasi-identifiers. {2 * k:,} people, or a smaller k, make two."
        )
        found.append(Prospect(text, ONE_GROUP))
    if 0 < n - fewest < k:
        text = (
            f"minimum = {fewest:,} lets {n - fewest:,} of the {n:,} leave, but anyone who leaves "
            f"once the groups are made takes a group of at least {k} along: the study would end. "
            f"minimum = {n - k:,} or less lets a group go."
        )
        found.append(Prospect(text, NOBODY_MAY_LEAVE))
    return found
