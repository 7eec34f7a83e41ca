"""What you would disclose: one model of it, for the screen, the prompt, JSON and the docs.

It is made from the study file, from what the protocol states, from what the person has chosen, and
from her own ledger. It says the worst that this study file allows, beside what is expected.
"""

import math
from collections.abc import Mapping, Sequence

import msgspec

from mpc_rr.agents.account import Account
from mpc_rr.errors import MpcRrError, all_quoted, listing, quoted
from mpc_rr.privacy.disclosures import (
    AnyDisclosure,
    Caution,
    Disclosure,
    Masked,
    bounded,
)
from mpc_rr.privacy.entropy import entropy_share
from mpc_rr.privacy.odds import certainty
from mpc_rr.privacy.sentences import cost_of, epsilon_said, in_all, in_words
from mpc_rr.schema import Record
from mpc_rr.study.definition import Study

NO_CHOICES: Mapping[str, str] = {}


class Question(msgspec.Struct, frozen=True):
    """One attribute, in the words of the study and by its true names."""

    name: str
    """What the attribute, or the column of the record, is called."""
    label: str
    question: str
    answers: dict[str, str]
    """What can be answered, by its name: how the study shows it."""
    own: str | None = None
    """The answer in the record that was given, by its name."""
    numbers: bool = False
    """Whether numbers are asked for: then ``answers`` says which, in words of this program."""
    intervals: dict[str, str] = {}
    """Which numbers are counted as each answer, in words of this program; the study chose its name.
    Empty if answers are no intervals."""


class Line(msgspec.Struct, frozen=True):
    """One thing that would leave you: how, by whom it is seen, and what it costs at most."""

    event: AnyDisclosure
    how: str
    seen: str
    epsilon: float | None
    sure: float | None
    """How sure an observer can become of a guess that was 50:50; None where no ε bounds it."""
    answers: dict[str, float | None]
    """The ε of each answer by itself, against whoever knows all the others; None: no ε bounds it"""
    cost: str
    """What it costs, in words."""
    entropy_share: float | None
    """β of 001: how much is left on average, in bits, of the uncertainty of somebody to whom all
    of its answers were equally probable; None where the mechanism has no such number."""


class Consent(msgspec.Struct, frozen=True, kw_only=True):
    """What taking part would mean, for a person to decide on. An ε without bound is None."""

    study: str
    title: str
    description: str
    protocol: str
    parties: int
    minimum: int
    registrar: bool
    questions: dict[str, Question]
    disclosures: list[Line]
    epsilon: float | None
    """For the whole record, at worst: against whoever sees all that you sent."""
    answers: dict[str, float | None]
    """The same for each answer by itself, against whoever knows all your other answers."""
    delta: float
    withstands: int | None
    """That ε holds as long as no more than so many parties pool what they know; if more do, no ε
    bounds it. None: whatever they do, or there is no bound."""
    trusts_coordinator: bool
    """And as long as the coordinator follows the protocol."""
    central_epsilon: float | None
    """Expected: against whoever sees only what is published of many."""
    central_delta: float
    accountant: str
    in_words: str
    cautions: list[Caution]
    notes: list[str]
    """What the protocol does not promise, and what the ledger cannot tell."""
    compared: list[Caution]
    """What could be learned by comparing this run with earlier ones of yours."""
    epsilon_said: str
    """Each ε as it is said: why there is none, where there is none."""
    remembered: bool
    """Whether there is a ledger that remembers other studies."""
    spent_before: float | None
    spent_said: str
    adds: float | None
    """What taking part would add: 0 if your ledger has the very same answers already."""
    total: float | None
    total_said: str
    total_answers: dict[str, float | None]
    """As ``answers``, for all studies together: questions of one name count as one."""
    entropy_share: float | None
    """β of all answers together, if each is told by itself and has one."""
    in_vain: list[str]
    """What the answers may be in vain for, because the study is too small or too wide for it."""
    total_in_words: str
    total_withstands: int | None
    """As ``withstands``, for all studies together."""
    total_trusts_coordinator: bool
    budget: float | None
    answer_budget: float | None
    """The same for each answer by itself."""
    answer_budgets: dict[str, float | None]
    """And for single ones, whatever that says."""
    refused: str | None
    """Why you cannot take part on these terms, if so."""


def consent_to(
    study: Study,
    account: Account,
    record: Record | None = None,
    *,
    choices: Mapping[str, str] = NO_CHOICES,
    language: str | None = None,
    again: bool = False,
) -> Consent:
    """What taking part in a study would mean to the owner of a ledger."""
    events = study.protocol.as_chosen(study.disclosures, choices)
    before, planned = account.before(study), account.planned(study)
    spent, adds = before.spent, math.fsum(event.cost for event in planned)
    after = [*before.events, *planned]
    accountant = before.accountant
    total = accountant.read(after)
    earlier = [
        Caution(f"You took part in {took.study!r} before; in a second run, {learned}.", ONCE)
        for took, learned in account.comparable(study)
    ]
    reading = accountant.read([event.alone for event in events] if earlier else events)
    if account.has_answered(study):
        earlier.append(Caution(SAME_RECORD, ONCE))
    return Consent(
        study=study.name,
        title=study.title,
        description=study.description,
        protocol=study.protocol.name,
        parties=study.parties.count,
        minimum=study.parties.fewest,
        registrar=study.registrar is not None,
        questions=_questions(study, record, language),
        disclosures=[_line(event) for event in events],
        epsilon=bounded(reading.local),
        answers=_bounded(reading.answers),
        delta=reading.local_delta,
        withstands=reading.withstands,
        trusts_coordinator=reading.trusts_coordinator,
        central_epsilon=bounded(reading.central),
        central_delta=reading.delta,
        accountant=reading.accountant,
        in_words=in_words(events, you=True, accountant=accountant),
        cautions=[*_to_decide(study, events), *study.protocol.cautions(study.setting)],
        notes=[
            *(note.text for note in study.protocol.notes(study.setting) if note.severity == "note"),
            *_computed(study),
            *_by_other_names(study, account),
        ],
        compared=[*dict.fromkeys(earlier)],
        epsilon_said=in_all(events),
        remembered=account.remembered,
        spent_before=bounded(spent),
        spent_said=epsilon_said(spent, before.events),
        adds=bounded(adds),
        total=bounded(spent + adds),
        total_said=epsilon_said(spent + adds, after),
        total_answers=_bounded(total.answers),
        total_in_words=in_words(after, you=True, accountant=accountant),
        total_withstands=total.withstands,
        total_trusts_coordinator=total.trusts_coordinator,
        budget=bounded(account.budget),
        answer_budget=bounded(account.answer_budget.each),
        answer_budgets=_bounded(account.answer_budget.of),
        entropy_share=entropy_share(events),
        in_vain=[
            found.in_vain for found in study.protocol.prospects(study.setting) if found.in_vain
        ],
        refused=_refusal(study, account, record, again=again),
    )


def _to_decide(study: Study, events: Sequence[Disclosure]) -> list[Caution]:
    """How little time there may be, where something is decided in the run."""
    waiting = [e for e in events if isinstance(e, Masked) and e.undecided]
    if not waiting:
        return []
    names = all_quoted([name for event in waiting for name in event.attributes])
    text = (
        f"To decide on {names} you have {study.deadlines.decide_s:.3g} s in all, from when the "
        "values of all are there."
    )
    return [Caution(text, "a mask or a rule that you give beforehand (--mask)")]


def _computed(study: Study) -> list[str]:
    """What nobody is asked, and yet is told of all together."""
    return [
        f"{quoted(name)} is not asked; for all together it is computed from {quoted(found.source)}."
        for name, found in (study.derived or {}).items()
    ]


def _by_other_names(study: Study, account: Account) -> list[str]:
    """Attributes are known by their names alone: she must see herself whether they are the same."""
    earlier = [took.study for took in account.perhaps_comparable(study)]
    if not earlier:
        return []
    learned = "; ".join(dict.fromkeys(e.compared for e in study.disclosures if e.compared))
    told = "Your ledger tells by the names of attributes whether the same is asked again."
    before = listing(map(repr, dict.fromkeys(earlier)))
    return [f"{told} If this study asks by other names what {before} asked, {learned}."]


ONCE = "taking part only once"
SAME_RECORD = (
    "You answered this study before: taking part again shows that your answers are as they were."
)


def _questions(study: Study, record: Record | None, language: str | None) -> dict[str, Question]:
    found = {}
    for place, attribute in enumerate(study.schema.attributes):
        answers = {c: attribute.category_title(c, language) for c in attribute.categories}
        found[attribute.name] = Question(
            attribute.name,
            attribute.title(language),
            attribute.asked(language),
            answers or {attribute.answers: attribute.answers},
            None if record is None else attribute.text(record[place]),
            attribute.numeric,
            attribute.intervals,
        )
    return found


def _line(event: Disclosure) -> Line:
    sure = None if math.isinf(event.cost) else certainty(event.cost)
    own = "the name you take part with (random, unless you give one)"
    seen = event.seen.replace("the party's name", own)
    return Line(
        event,  # type: ignore[arg-type]
        event.how,
        seen,
        bounded(event.cost),
        sure,
        _bounded(event.answers),
        cost_of(event),
        entropy_share([event]),
    )


def _bounded(answers: Mapping[str, float]) -> dict[str, float | None]:
    return {name: bounded(epsilon) for name, epsilon in answers.items()}


def _refusal(study: Study, account: Account, record: Record | None, *, again: bool) -> str | None:
    try:
        account.check(study, record, again=again)
    except MpcRrError as error:
        return str(error)
    return None
