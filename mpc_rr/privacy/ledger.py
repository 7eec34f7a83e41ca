"""A party's own account of what it disclosed: events first, ε later, within a budget."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from mpc_rr.errors import InputError, all_quoted, quoted
from mpc_rr.privacy.accountant import DELTA, Accountant, Reading, itself
from mpc_rr.privacy.disclosures import Disclosure
from mpc_rr.privacy.sentences import BY_NAME, in_words

ROUNDING = 1e-9


class OverdrawnError(InputError):
    """A disclosure would cost more than the party is willing to spend."""


@dataclass(frozen=True)
class AnswerBudget:
    """What may be told of each answer, against whoever knows all her others."""

    each: float = math.inf
    of: Mapping[str, float] = field(default_factory=dict)
    """Of the answers to these questions, whatever ``each`` says."""

    def __post_init__(self) -> None:
        for budget in (self.each, *self.of.values()):
            check_budget(budget)

    @classmethod
    def given(cls, budget: "float | AnswerBudget") -> "AnswerBudget":
        """One number is the same for all."""
        return budget if isinstance(budget, AnswerBudget) else cls(budget)

    def limit(self, name: str, accountant: Accountant = BY_NAME) -> float:
        """That of one answer: the least of those whose names may be taken for this one."""
        alike = accountant.alike([name, *self.of])[name]
        given = [self.of[other] for other in alike if other in self.of]
        return min(given if name in self.of else [*given, self.each])

    @property
    def least(self) -> float:
        """That of the answer of which least may be told."""
        return min(self.each, *self.of.values()) if self.of else self.each


def check_budget(budget: float) -> None:
    """`InputError` if it is none."""
    if not budget >= 0:
        raise InputError(f"a budget must not be negative, not {budget}")


@dataclass
class Ledger:
    """All that one person disclosed of her record, within a budget."""

    budget: float = math.inf
    events: list[Disclosure] = field(default_factory=list)
    answer_budget: AnswerBudget | float = math.inf
    """For each answer, against whoever knows all her others."""
    taken_for: Callable[[str], frozenset[str]] = itself
    """What the name of an answer may be taken for: see `Accountant`."""

    def __post_init__(self) -> None:
        check_budget(self.budget)
        self.answer_budget = AnswerBudget.given(self.answer_budget)

    @property
    def spent(self) -> float:
        """The local ε of everything so far."""
        return math.fsum(event.cost for event in self.events)

    def check(self, *planned: Disclosure) -> None:
        """`OverdrawnError` if these events would exceed a budget. Nothing is recorded."""
        cost = math.fsum(event.cost for event in planned)
        if cost == 0:
            return
        self._check_answers(planned)
        if self.spent + cost <= self.budget * (1 + ROUNDING):
            return
        if math.isinf(cost):
            without = next(event for event in planned if math.isinf(event.cost))
            raise OverdrawnError(
                f"no ε bounds what this would disclose ({without.what}: "
                f"{all_quoted(without.attributes)}), so it exceeds the budget of {self.budget:.3g}"
            )
        if math.isinf(self.spent):
            raise OverdrawnError(
                f"no ε bounds what was disclosed before; the budget of {self.budget:.3g} allows "
                "nothing more"
            )
        raise OverdrawnError(
            f"all answers together would cost ε = {cost:.3g}; with ε = {self.spent:.3g} spent "
            f"before, the total {self.spent + cost:.3g} exceeds the budget of {self.budget:.3g}"
        )

    def _check_answers(self, planned: Sequence[Disclosure]) -> None:
        """Of each answer of which these events would tell something, and of no other."""
        budget = AnswerBudget.given(self.answer_budget)
        if math.isinf(budget.least):
            return
        told = self.accountant.read(planned)
        total = self.accountant.read([*self.events, *planned])
        limits = {name: budget.limit(name, self.accountant) for name in told.answers}
        over = [
            name
            for name, epsilon in told.answers.items()
            if epsilon and total.answers[name] > limits[name] * (1 + ROUNDING)
        ]
        if over:
            name = max(over, key=total.answers.__getitem__)
            which = "each answer" if limits[name] == budget.each else "it"
            raise _told_too_much(
                f"the answer to {quoted(name)}", total.answers[name], limits[name], which
            )
        of_any = any(event.cost for event in planned if not event.answers)
        if of_any and total.one_answer > budget.least * (1 + ROUNDING):
            raise _told_too_much("any answer", total.one_answer, budget.least, "each answer")

    @property
    def accountant(self) -> Accountant:
        """Who adds up what is told of each answer."""
        return Accountant(taken_for=self.taken_for)

    def charge(self, *events: Disclosure) -> None:
        """Record events, before they happen; `OverdrawnError` if the budget does not allow."""
        self.check(*events)
        self.events.extend(events)

    def reading(self, delta: float = DELTA) -> Reading:
        """The totals, by sequential composition."""
        return Accountant(delta=delta, taken_for=self.taken_for).read(self.events)

    def in_words(self) -> str:
        """What all of it together means to the respondent."""
        return in_words(self.events, you=True, accountant=self.accountant)


def _told_too_much(what: str, epsilon: float, limit: float, which: str) -> OverdrawnError:
    cost = "no ε bounds it" if math.isinf(epsilon) else f"ε = {epsilon:.3g} in all"
    return OverdrawnError(
        f"what would be told of {what} exceeds the budget of {limit:.3g} for {which}: {cost}"
    )
