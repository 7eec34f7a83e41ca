"""What you would disclose: one model of it, for the screen, the prompt, JSON and the docs.

It is made from the study file, from what the protocol states, and from the person's own ledger. It
says the worst that this study file allows, beside what is expected.
"""

import math

import msgspec

from mpc_rr.agents.account import Account
from mpc_rr.errors import MpcRrError
from mpc_rr.privacy.accountant import Accountant
from mpc_rr.privacy.disclosures import AnyDisclosure, Caution, Disclosure, bounded, told_in_words
from mpc_rr.privacy.odds import certainty, in_words
from mpc_rr.schema import Record
from mpc_rr.study.definition import Study


class Question(msgspec.Struct, frozen=True):
    """One attribute, in the words of the study."""

    label: str
    question: str
    answers: list[str]


class Told(msgspec.Struct, frozen=True):
    """One thing that would leave you: how, by whom it is seen, and what it costs at most."""

    event: AnyDisclosure
    how: str
    seen: str
    epsilon: float | None
    sure: float | None
    """How sure an observer can become of a guess that was 50:50; None where no ε bounds it."""


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
    disclosures: list[Told]
    epsilon: float | None
    """For the whole record, at worst: against whoever sees all that you sent."""
    delta: float
    central_epsilon: float | None
    """Expected: against whoever sees only what is published of many."""
    central_delta: float
    accountant: str
    in_words: str
    cautions: list[Caution]
    answered_before: bool
    """Whether you took part before, so that the same answers cost nothing more."""
    compared: list[str]
    """What could be learned by comparing this run with an earlier one of yours."""
    spent_before: float | None
    total: float | None
    total_in_words: str
    budget: float | None
    refused: str | None
    """Why you cannot take part on these terms, if so."""


def consent_to(
    study: Study,
    account: Account,
    record: Record | None = None,
    *,
    language: str | None = None,
    again: bool = False,
) -> Consent:
    """What taking part in a study would mean to the owner of a ledger."""
    planned = account.planned(study, record)
    reading, spent = Accountant().read(planned), account.ledger.spent
    return Consent(
        study=study.name,
        title=study.title,
        description=study.description,
        protocol=study.protocol.name,
        parties=study.parties.count,
        minimum=study.parties.fewest,
        registrar=study.registrar is not None,
        questions={
            a.name: Question(
                a.title(language),
                a.asked(language),
                [a.category_title(c, language) for c in a.categories] or [a.answers],
            )
            for a in study.schema.attributes
        },
        disclosures=[_told(event) for event in planned],
        epsilon=bounded(reading.local),
        delta=reading.local_delta,
        central_epsilon=bounded(reading.central),
        central_delta=reading.delta,
        accountant=reading.accountant,
        in_words=told_in_words(planned, you=True),
        cautions=[*study.protocol.cautions(study.setting)],
        answered_before=not planned,
        compared=account.comparable(study),
        spent_before=bounded(spent),
        total=bounded(spent + reading.local),
        total_in_words=in_words(spent + reading.local, you=True),
        budget=bounded(account.budget),
        refused=_refusal(study, account, record, again=again),
    )


def _told(event: Disclosure) -> Told:
    sure = None if math.isinf(event.cost) else certainty(event.cost)
    seen = event.seen.replace("the party's", "your")
    return Told(event, event.how, seen, bounded(event.cost), sure)  # type: ignore[arg-type]


def _refusal(study: Study, account: Account, record: Record | None, *, again: bool) -> str | None:
    try:
        account.check(study, record, again=again)
    except MpcRrError as error:
        return str(error)
    return None
