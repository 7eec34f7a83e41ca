"""What a party discloses by taking part, as typed events: mechanism, attributes, to whom.

An event says what leaves the party and by which mechanism, with its parameters. What it costs (ε)
and what a respondent is told follow from it. A protocol states its events before anybody answers
(`mpc_rr.protocols.interface.StudyProtocol.disclosures`), and they are published with the result.
"""

import math
from collections.abc import Sequence
from typing import ClassVar

import msgspec

from mpc_rr.privacy.ledger import Ledger, LedgerEntry, bounded
from mpc_rr.privacy.odds import in_words


class Disclosure(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="mechanism"
):
    """One thing that leaves a party. Its subclasses are the mechanisms.

    What follows is read from the parameters that a mechanism has: ``epsilon`` (without one, no ε
    bounds what it tells) with ``delta``, ``claimed`` where the paper says another ε, and ``crowd``.
    """

    what: str
    """How the party's books call it."""
    attributes: tuple[str, ...]

    how_said: ClassVar[str] = "{what}"
    """The mechanism in words, for a respondent."""
    seen_as: ClassVar[str] = "by everybody, under the party's name"
    """By whom it is seen, and how."""
    added_up: ClassVar[bool] = False
    """Whether it is seen in a total alone."""
    at_most: ClassVar[bool] = False
    """Whether ``cost`` is a bound that is known beforehand, and the true price may be less."""

    @property
    def cost(self) -> float:
        """The ε that bounds what it tells; infinite if none does."""
        return float(getattr(self, "epsilon", math.inf))

    @property
    def how(self) -> str:
        """The mechanism in words, with its parameters."""
        return self.how_said.format(**msgspec.structs.asdict(self))

    @property
    def seen(self) -> str:
        """By whom it is seen, and how."""
        return self.seen_as.format(**msgspec.structs.asdict(self))

    def entry(self, study: str) -> LedgerEntry:
        """The entry in the party's books. A crowd of one hides nothing."""
        crowd = getattr(self, "crowd", None)
        return LedgerEntry(
            study,
            self.what,
            self.attributes,
            self.cost,
            claimed=getattr(self, "claimed", None),
            crowd=None if crowd is not None and crowd < 2 else crowd,
            delta=getattr(self, "delta", 0.0),
        )


class RandomizedResponse(Disclosure, frozen=True, tag="randomized response"):
    """One value for all its attributes, kept with a probability and else drawn evenly."""

    how_said: ClassVar[str] = (
        "randomized: with probability {keep:.3g} as it is, else one of {combinations:,} drawn "
        "evenly"
    )
    combinations: int
    keep: float
    epsilon: float


class SubsetSelection(Disclosure, frozen=True, tag="subset selection"):
    """A set of combinations of one group of attributes; it holds the true one more often."""

    how_said: ClassVar[str] = "one of {groups} groups of answers, drawn by you, and randomized"
    groups: int
    epsilon: float


class AdaptiveResponse(Disclosure, frozen=True, tag="adaptive response"):
    """The truth with a probability, else a draw from a table that follows earlier answers."""

    at_most: ClassVar[bool] = True
    how_said: ClassVar[str] = (
        "randomized: with probability {truth:.3g} as it is, else drawn from the table that you "
        "are shown"
    )
    truth: float
    epsilon: float
    claimed: float


class RandomizedSum(Disclosure, frozen=True, tag="sum of randomized values"):
    """Randomized values that are seen only added up; whoever breaks the sum can link them."""

    how_said: ClassVar[str] = "randomized, and then added up with those of the others"
    added_up: ClassVar[bool] = True
    seen_as: ClassVar[str] = "by everybody, only in a total over {crowd}"
    epsilon: float
    claimed: float
    crowd: int
    """Among how many honest parties it is surely hidden."""
    expected: int | None = None
    """How many parties are expected in all."""


class ExactSum(Disclosure, frozen=True, tag="exact sum"):
    """Exact values that are seen only added up: nobody's alone, but no ε bounds the total."""

    added_up: ClassVar[bool] = True
    seen_as: ClassVar[str] = "by {by}, only in a total over {crowd}"
    crowd: int
    """Among how many honest parties it is surely hidden."""
    by: str = "everybody"
    expected: int | None = None
    """How many parties are expected in all."""


class NoisySum(Disclosure, frozen=True, tag="noisy sum"):
    """Exact values that are seen only added up, with noise in the total."""

    added_up: ClassVar[bool] = True
    seen_as: ClassVar[str] = "by everybody, only in a total with noise in it"
    epsilon: float
    delta: float


class Told(Disclosure, frozen=True, tag="told"):
    """The value as it is."""


class InGroup(Disclosure, frozen=True, tag="in a group"):
    """The value as it is, among those of a group, in no order."""

    seen_as: ClassVar[str] = (
        "by everybody, as it is, among the values of {crowd} or more, in no order"
    )
    crowd: int


class Masked(Disclosure, frozen=True, tag="masked"):
    """The value under a mask of the party's own choice, and once as it is among all, unordered."""

    recommended: str


class Unstated(Disclosure, frozen=True, tag="unstated"):
    """Its author does not say what the protocol discloses: it may be everything."""

    seen_as: ClassVar[str] = "by whomever the protocol tells, which may be everybody"
    what: str = "not stated: the author of this protocol does not say what it gives away"
    attributes: tuple[str, ...] = ()


AnyDisclosure = (
    RandomizedResponse
    | SubsetSelection
    | AdaptiveResponse
    | RandomizedSum
    | ExactSum
    | NoisySum
    | Told
    | InGroup
    | Masked
    | Unstated
)


def told_in_words(events: Sequence[Disclosure]) -> str:
    """What these events mean to a respondent."""
    cost = math.fsum(event.cost for event in events)
    if any(isinstance(event, Unstated) for event in events):
        return "Nobody has said what your answers tell: it may be everything."
    if events and all(event.added_up for event in events):
        if math.isinf(cost):
            return "No answer is seen alone, but no ε bounds what exact totals tell of one person."
        return "No answer is seen alone, only totals."
    return in_words(cost)


class Privacy(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What taking part costs each party: events, and three readings of them. No bound is null."""

    events: tuple[AnyDisclosure, ...]
    local_epsilon: float | None
    """Against whoever sees all that a party sent."""
    local_delta: float
    claimed_epsilon: float | None
    """As the paper counts."""
    central_epsilon: float | None
    """Against whoever sees only totals."""
    central_delta: float
    in_words: str

    @classmethod
    def of(cls, events: Sequence[Disclosure]) -> "Privacy":
        """What follows from the events."""
        reading = Ledger(releases=[event.entry("") for event in events]).reading()
        return cls(
            events=tuple(events),  # type: ignore[arg-type]
            local_epsilon=bounded(reading.local),
            local_delta=reading.local_delta,
            claimed_epsilon=bounded(reading.claimed),
            central_epsilon=bounded(reading.central),
            central_delta=reading.delta,
            in_words=told_in_words(events),
        )
