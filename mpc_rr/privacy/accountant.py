"""From events to ε: what disclosures cost, all of them together, in several readings.

Three readings stand side by side, because they hold against different observers:

* **local**: against whoever sees everything this party sent, under its name. Everything that was
  told of one record adds up. This is what an attacker can be held to; where noise is added inside a
  sum, as long as no more parties pool what they know than the sum withstands (``withstands``): one
  party's own share of the noise protects nothing.
* **claimed**: what the paper of the protocol says, where that is less.
* **central**: against whoever sees only what is published of many, as (ε, δ).

The local one is for the whole record. Beside it stands that of each answer (``answers``), against
whoever knows all other answers of the person, or believes that they have nothing to do with it:
only events that it is part of count, and of them what this answer alone can change.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from mpc_rr.privacy import shuffling

DELTA = 1e-6
"""With which the central reading holds, unless another is asked for."""


class Priced(Protocol):
    """What an accountant must know of an event."""

    @property
    def cost(self) -> float:
        """The ε that bounds what it tells, under the party's name; infinite if none does."""

    @property
    def answers(self) -> Mapping[str, float]:
        """The ε that bounds what it tells of each answer, to whoever knows all the others."""

    @property
    def claimed_cost(self) -> float:
        """The ε that its paper claims."""

    @property
    def hidden_among(self) -> int | None:
        """How many honest parties' answers it is surely hidden among; None: it stands alone."""

    @property
    def failing(self) -> float:
        """The δ with which ``cost`` holds."""

    @property
    def rests_on(self) -> int | None:
        """``cost`` holds as long as no more than so many parties pool what they know; None: always,
        or nobody knows."""

    @property
    def trusts_coordinator(self) -> bool:
        """And as long as the coordinator follows the protocol."""


@dataclass(frozen=True)
class Reading:
    """The totals of some events in three readings."""

    accountant: str
    local: float
    claimed: float
    central: float
    delta: float
    """With which the central reading holds."""
    local_delta: float
    """With which the local one does; 0 but for noise that is added inside a sum."""
    withstands: int | None
    """The local one holds as long as no more than so many parties pool what they know; if more do,
    no ε bounds it. None: whatever they do, or there is no bound."""
    trusts_coordinator: bool
    """And as long as the coordinator follows the protocol."""
    answers: Mapping[str, float]
    """The local one of each answer, by attribute: against whoever knows all the others."""
    one_answer: float
    """The largest of them."""


def itself(name: str) -> frozenset[str]:
    """What a name may be taken for, if two names are never one answer's."""
    return frozenset((name,))


@dataclass(frozen=True)
class Accountant:
    """Sequential composition: the ε of all events add up, and so do their δ.

    For the central reading, an event that is seen only among others is amplified by shuffling
    (`mpc_rr.privacy.shuffling`), each with an equal part of ``delta``.
    """

    name: str = "sequential composition; amplification by shuffling (Feldman et al. 2021)"
    delta: float = DELTA
    taken_for: Callable[[str], frozenset[str]] = itself
    """What the name of an answer may be taken for: two that have that in common count as one."""

    def answers(self, events: Sequence[Priced]) -> dict[str, float]:
        """What is told of each answer, by attribute."""
        return _by_answer(events, self.taken_for)[0]

    def alike(self, names: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """For each name, those that may be the same answer's."""
        return _alike(names, self.taken_for)

    def read(self, events: Sequence[Priced]) -> Reading:
        """The totals of these events."""
        hidden = [event for event in events if _amplified(event)]
        part = self.delta / len(hidden) if hidden else self.delta
        own = math.fsum(event.failing for event in events)
        answers, unnamed = _by_answer(events, self.taken_for)
        resting = [event for event in events if event.rests_on is not None]
        withstands = withstood(events)
        return Reading(
            accountant=self.name,
            local=math.fsum(event.cost for event in events),
            claimed=math.fsum(event.claimed_cost for event in events),
            central=math.fsum(_central(event, part) for event in events),
            delta=own + (self.delta if hidden else 0.0),
            local_delta=own,
            withstands=withstands,
            trusts_coordinator=withstands is not None
            and any(event.trusts_coordinator for event in resting),
            answers=answers,
            one_answer=max(answers.values(), default=unnamed),
        )


def _by_answer(
    events: Sequence[Priced], taken_for: Callable[[str], frozenset[str]]
) -> tuple[dict[str, float], float]:
    """What is told of each answer adds up, too; what is about none by name, about any of them."""
    unnamed = math.fsum(event.cost for event in events if not event.answers)
    known = [(event.cost, event.answers) for event in events]
    alike = _alike([*dict.fromkeys(name for _, own in known for name in own)], taken_for)
    told = {name: [unnamed] for name in alike}
    for cost, own in known:
        for name in dict.fromkeys(one for other in own for one in alike[other]):
            mine = [own[other] for other in alike[name] if other in own]
            # Of one event no more is told of several answers than of all.
            told[name].append(mine[0] if len(mine) == 1 else min(math.fsum(mine), cost))
    return {name: math.fsum(parts) for name, parts in told.items()}, unnamed


def _alike(
    names: Sequence[str], taken_for: Callable[[str], frozenset[str]]
) -> dict[str, tuple[str, ...]]:
    """For each name, those that may be the same answer's."""
    looks = {name: taken_for(name) for name in names}
    called: dict[str, list[str]] = {}
    for name, all_looks in looks.items():
        for look in all_looks:
            called.setdefault(look, []).append(name)
    return {
        name: tuple(dict.fromkeys(other for look in sorted(mine) for other in called[look]))
        for name, mine in looks.items()
    }


def withstood(events: Sequence[Priced]) -> int | None:
    """How many parties may pool what they know, so that the ε of all these events holds."""
    limits = [event.rests_on for event in events if event.rests_on is not None]
    unbounded = any(math.isinf(event.cost) for event in events)
    return min(limits) if limits and not unbounded else None


def _amplified(event: Priced) -> bool:
    return event.hidden_among is not None and event.hidden_among > 1


def _central(event: Priced, delta: float) -> float:
    """What an observer of totals learns at most: no less than alone, if nobody else is honest."""
    if event.hidden_among is None or event.hidden_among < 2:
        return event.cost
    return shuffling.numerical(event.cost, event.hidden_among, delta)
