"""What people are told of privacy: screen, ledger, plan, result and report all say it from here.

Two things are said of every ε, and never one for the other: what it means for the whole record, and
what for any one answer. Words for certainty follow from the ε they stand beside
(`mpc_rr.privacy.odds.certainty`). Where there is no ε, it is said why, and who could learn what.
"""

import math
from collections.abc import Mapping, Sequence

from mpc_rr.errors import all_quoted, quoted
from mpc_rr.privacy.accountant import Accountant, Reading
from mpc_rr.privacy.disclosures import (
    Disclosure,
    ExactNumbers,
    ExactSum,
    InGroup,
    Masked,
    MatrixResponse,
    NoisySum,
    Powers,
    Told,
    Unstated,
    as_long_as,
)
from mpc_rr.privacy.odds import certainty

SURE = 0.9995
"""From here on a percentage would read as certainty."""
BY_NAME = Accountant()
"""To whom every name is another answer's."""
SAME = 1e-9
"""Two ε that differ by less, relative to them, are the same."""


# ── An ε in a few words ────────────────────────────────────────────────────────────────────────


def why_none(events: Sequence[Disclosure]) -> str:
    """Why these events have no ε, in a few words."""
    return ", ".join(dict.fromkeys(e.no_epsilon for e in events if math.isinf(e.cost)))


def epsilon_said(epsilon: float | None, events: Sequence[Disclosure]) -> str:
    """``ε = 2``, or ``no ε: exact counts``."""
    return f"no ε: {why_none(events)}" if _missing(epsilon) else f"ε = {epsilon:.3g}"


def epsilon_cell(epsilon: float | None, events: Sequence[Disclosure]) -> str:
    """The same in a column that is called ε."""
    return f"none: {why_none(events)}" if _missing(epsilon) else f"{epsilon:.3g}"


def _missing(epsilon: float | None) -> bool:
    return epsilon is None or math.isinf(epsilon)


def becomes(epsilon: float) -> str:
    """What a guess that was 50:50 can become."""
    sure = certainty(epsilon)
    return "practically certain" if sure >= SURE else f"at most {100 * sure:.3g} % sure"


def in_all(events: Sequence[Disclosure]) -> str:
    """The ε of the whole record with all that belongs to it: ``at most ε = 2, on a condition``."""
    reading = Accountant().read(events)
    if math.isinf(reading.local):
        return epsilon_said(None, events)
    most = "at most " * any(event.at_most for event in events)
    failing = f" (δ = {reading.local_delta:.2g})" if reading.local_delta else ""
    rests = "" if reading.withstands is None else ", on a condition"
    return f"{most}ε = {reading.local:.3g}{failing}{rests}"


def cost_of(event: Disclosure) -> str:
    """What one event costs: all its answers together, and any one of them."""
    if math.isinf(event.cost):
        return epsilon_said(None, [event])
    one, most = max(event.answers.values(), default=event.cost), "at most " * event.at_most
    guess = "a 50:50 guess can become"
    if len(event.attributes) == 1:
        return f"{most}ε = {event.cost:.3g} ({guess} {becomes(event.cost)})"
    if _same(one, event.cost):
        either = "a 50:50 guess at any one answer, or at all, can become"
        return f"{most}ε = {event.cost:.3g} ({either} {becomes(event.cost)})"
    most_of_one = "at most " * (event.at_most or event.each_at_most)
    return (
        f"{most}ε = {event.cost:.3g} for all of them ({guess} {becomes(event.cost)}), and "
        f"{most_of_one}ε = {one:.3g} for any one answer ({becomes(one)})"
    )


def _same(one: float, other: float) -> bool:
    return math.isclose(one, other, rel_tol=SAME)


# ── In whole sentences ─────────────────────────────────────────────────────────────────────────


def in_words(
    events: Sequence[Disclosure], *, you: bool = False, accountant: Accountant = BY_NAME
) -> str:
    """What these events together mean, to a respondent (``you``) or of one."""
    whose = "your" if you else "a party's"
    if any(isinstance(event, Unstated) for event in events):
        return f"Nobody has stated what this tells of {whose} answers: it may be everything."
    unbounded = [event for event in events if math.isinf(event.cost)]
    other = [event for event in unbounded if not isinstance(event, MatrixResponse)]
    said = [_without_epsilon(other, you=you)] if other else []
    excluding = [e for e in events if isinstance(e, MatrixResponse) and e.epsilon is None]
    if excluding:
        said += _excluding(excluding, events, accountant)
    rest = [event for event in events if not math.isinf(event.cost)]
    if rest:
        spent = math.fsum(event.cost for event in rest)
        said += [f"For the rest, ε = {spent:.3g}."] if unbounded else []
        said.append(_within_epsilon(rest, accountant, you=you, beside=bool(excluding)))
    return " ".join(said) or odds(0.0, 0.0, you=you)


def odds(
    whole: float,
    one: float,
    *,
    you: bool = False,
    source: str = "",
    at_most: bool = False,
    only: str = "",
) -> str:
    """What an ε for the whole record means, beside that of any one answer.

    ``source``: what an observer sees; all of the respondent's randomized answers, if not given.
    ``at_most``: the ε of one answer is a bound that need not be reached. ``only``: what alone it
    is of, where there is more.
    """
    about, whose = ("you", "your") if you else ("a party", "a party's")
    source = source or f"all of {whose} randomized answers"
    if _same(whole, one):
        said = (
            f"omeone who starts at 50:50 on a guess about {about}, at one answer or at all of "
            f"them, can become {becomes(whole)} of it from {source}."
        )
        return f"This ε protects almost nothing: s{said}" if _certain(whole) else f"S{said}"
    most = "at most " * at_most
    if _certain(one):
        single = (
            f"A 50:50 guess at any one answer can become practically certain{only}, too "
            f"({most}ε = {one:.3g})."
        )
    else:
        single = (
            f"A 50:50 guess at any one answer can become {becomes(one)}{only} "
            f"({most}ε = {one:.3g}), as long as what is told of the other answers does not help "
            "to guess it."
        )
    return (
        f"Someone who starts at 50:50 between two whole records can become {becomes(whole)} which "
        f"is {'yours' if you else 'the true one'} from {source}. {single}"
    )


def _certain(epsilon: float) -> bool:
    return certainty(epsilon) >= SURE


def _within_epsilon(
    events: Sequence[Disclosure], accountant: Accountant, *, you: bool, beside: bool = False
) -> str:
    """Of events that all have an ε: by whom they are seen, what follows, and what it rests on.

    ``beside``: randomized answers that have none.
    """
    reading = accountant.read(events)
    noisy = [isinstance(event, NoisySum) for event in events]
    whose = "your" if you else "a party's"
    all_of, only = ("the rest of", " by the rest") if beside else ("all of", "")
    source, before = f"{all_of} {whose} randomized answers", ""
    if all(noisy):
        source, before = "them", "Only totals with noise are seen. "
    elif any(noisy):
        source = f"{source} and the totals with noise"
    elif all(event.added_up for event in events):
        others = "" if _pooled(events) else " (if all others pool what they know)"
        before = (
            f"Only totals are seen{_pooled(events)}; at worst{others}, {whose} randomized answers "
            "themselves. "
        )
    bound = any(event.at_most or event.each_at_most for event in events)
    told = odds(reading.local, reading.one_answer, you=you, source=source, at_most=bound, only=only)
    return f"{before}{told}{_rarely(events)}{_holds(reading)}"


def _rarely(events: Sequence[Disclosure]) -> str:
    """Where noise is such that totals may tell more than ε: how probably."""
    chance = math.fsum(event.beyond for event in events if isinstance(event, NoisySum))
    if not chance:
        return ""
    place = 10.0 ** math.floor(math.log10(chance))
    return (
        f" With a probability of at most {math.ceil(chance / place) * place:.1g}, totals tell more."
    )


def _holds(reading: Reading) -> str:
    if reading.withstands is None:
        return ""
    condition = as_long_as(reading.withstands, honest=reading.trusts_coordinator)
    return f" This holds {condition}; otherwise no ε bounds it."


def _pooled(events: Sequence[Disclosure]) -> str:
    limits = [most for event in events if (most := getattr(event, "withstands", None)) is not None]
    honest = any(event.trusts_coordinator for event in events)
    return f", {as_long_as(min(limits), honest=honest)}" if limits else ""


def _without_epsilon(events: Sequence[Disclosure], *, you: bool) -> str:
    """Of events that have no ε: who could learn what, and when."""
    numbers = [event for event in events if isinstance(event, ExactNumbers)]
    exact = [e for e in events if isinstance(e, ExactSum) and not isinstance(e, ExactNumbers)]
    said = [_exact(exact, you=you)] if exact else []
    said += [_exact_numbers(numbers, you=you)] if numbers else []
    name = "your" if you else "the party's"
    group, theirs = ("your", "yours") if you else ("a party's", "that party's")
    for event in events:
        names = all_quoted(event.attributes)
        one = len(event.attributes) == 1
        are, as_they_are = ("is", "as it is") if one else ("are", "as they are")
        if isinstance(event, Told):
            said.append(f"{names} {are} told {as_they_are}, under {name} name: no ε.")
        elif isinstance(event, InGroup):
            said.append(
                f"{names} {are} published {as_they_are}, among those of {event.crowd} or more: no "
                f"ε. Anyone who knows {group} group knows that one of its values is {theirs}, and "
                "which one if all are the same or all others are known."
            )
        elif isinstance(event, Masked) and event.bare:
            chooses = "you choose" if you else "the party chose"
            unless = f", unless {chooses} a mask" if event.undecided or not event.chosen else ""
            said.append(f"{names} {are} told {as_they_are}, under {name} name{unless}: no ε.")
    masked = [event for event in events if isinstance(event, Masked) and not event.bare]
    if masked:
        names = all_quoted([name for event in masked for name in event.attributes])
        said.append(
            f"Masked values ({names}) have no ε: all of them together may leave only one value "
            "possible, and anyone who knows the true values of all others learns the last."
        )
    if not said:
        said = [f"No ε bounds what taking part tells about {'you' if you else 'a respondent'}."]
    return " ".join(said)


def _excluding(
    excluding: Sequence[MatrixResponse], events: Sequence[Disclosure], accountant: Accountant
) -> list[str]:
    """Of reports that exclude answers, beside all else: how sure one of the others can become."""
    names = [*dict.fromkeys(name for event in events for name in event.attributes)]
    alike = accountant.alike(names)
    left = accountant.answers(
        [e.of_what_is_left if isinstance(e, MatrixResponse) else e for e in events]
    )
    told = [name for event in excluding for name in event.attributes]
    said = [f"Some reports of {all_quoted([*dict.fromkeys(told)])} exclude some answers: no ε."]
    for name in dict.fromkeys(told):
        # More than one report of it, or of what may be the same by another name.
        several = sum(not set(alike[name]).isdisjoint(event.attributes) for event in excluding) > 1
        if several:
            said.append(
                f"Together, the reports of {quoted(name)} that exclude answers may leave a single "
                "one."
            )
        elif math.isinf(left[name]):
            said.append(f"No ε bounds which of the others {quoted(name)} was, either.")
        else:
            said.append(
                f"Of the answers that a report leaves, a 50:50 guess at {quoted(name)} can become "
                f"{becomes(left[name])} (ε = {left[name]:.3g}){_as_far_as(name, alike, events)}."
            )
    return said


def _as_far_as(name: str, alike: Mapping[str, Sequence[str]], events: Sequence[Disclosure]) -> str:
    """On which conditions that holds."""
    about = [e for e in events if not e.attributes or set(alike[name]) & set(e.attributes)]
    said = []
    if any(not set(alike[name]).issuperset(event.attributes) for event in events):
        said.append(", as long as what is told of the other answers does not help to guess it")
    if any(event.rests_on is not None or event.failing for event in about):
        said.append(", on the same conditions as the rest")
    return "".join(said)


def _exact(events: Sequence[ExactSum], *, you: bool) -> str:
    who, theirs = ("you", "yours") if you else ("one person", "that person's")
    by = ""
    if any(event.by != "everybody" for event in events):
        by = " (by the coordinator; by everyone but for small ones)"
    tables = [event for event in events if event.in_tables]
    together = f"anyone who knows one of two answers that only {who} gave together learns the other"
    together = f"{together}; " if tables else ""
    return (
        f"Exact {'counts' if tables else 'totals'} have no ε. They are seen only as "
        f"totals{by}{_pooled(events)}; yet nothing bounds what they tell of one person. From them, "
        f"{together}anyone who knows the answers of all others, or has the totals without {who}, "
        f"learns {'all of ' if tables else ''}{theirs}."
    )


def _exact_numbers(events: Sequence[ExactNumbers], *, you: bool) -> str:
    who, theirs = ("you", "yours") if you else ("one person", "that person's")
    by, follow = "", numbers_follow(4 if any(event.few == 4 for event in events) else 2)
    if any(event.by != "everybody" for event in events):
        by = " (by the coordinator; by everyone but for those over few people)"
    return (
        f"Exact sums of numbers have no ε. They are seen only as totals{by}{_pooled(events)}; yet "
        f"nothing bounds what they tell of one person. {follow}; anyone who knows the numbers of "
        f"all others in a group, or has the totals without {who}, learns {theirs} exactly."
    )


def few_people(few: Powers) -> str:
    """How many people sums may be over from which their numbers follow."""
    return "one or two people" if few == 2 else "one to four people"


def numbers_follow(few: Powers) -> str:
    """From which sums of numbers these follow; without a full stop."""
    others = "that of squares" if few == 2 else "those of powers up to the fourth"
    return f"From a sum over {few_people(few)}, and {others}, their numbers follow"
