"""What a party discloses by taking part, as typed events: mechanism, attributes, to whom.

An event says what leaves the party and by which mechanism, with its parameters. What it costs (ε),
what a respondent is told, and what a second run could add to it follow from the event. A protocol
states its events before anybody answers (`mpc_rr.protocols.interface.StudyProtocol.disclosures`);
a party's ledger keeps them, and they are published with the result.
"""

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import msgspec

from mpc_rr.errors import InputError, quoted
from mpc_rr.privacy.accountant import Accountant, withstood
from mpc_rr.privacy.odds import in_words


def bounded(epsilon: float) -> float | None:
    """An ε for JSON, which has no infinity: None if there is no bound."""
    return None if math.isinf(epsilon) else epsilon


class Disclosure(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="mechanism"
):
    """One thing that leaves a party. Its subclasses are the mechanisms.

    What follows is read from the parameters that a mechanism has: ``epsilon`` (without one, no ε
    bounds what it tells) with ``delta``, ``claimed`` where the paper says another ε, and ``crowd``.
    """

    what: str
    """How the party's ledger calls it."""
    attributes: tuple[str, ...]

    how_said: ClassVar[str] = "{what}"
    """The mechanism in words, for a respondent."""
    seen_as: ClassVar[str] = "by everybody, under the party's name"
    """By whom it is seen, and how."""
    added_up: ClassVar[bool] = False
    """Whether it is seen in a total alone."""
    at_most: ClassVar[bool] = False
    """Whether ``cost`` is a bound that is known beforehand, and the true price may be less."""
    compared: ClassVar[str | None]
    """What could be learned by comparing two runs of a study in which the same person disclosed
    this; None if nothing, because she gives the very same answer each time. Every mechanism must
    say: a party that disclosed something comparable does not do so in a second run unasked."""
    anew: ClassVar[bool] = False
    """Whether a second run costs its ε again, because something else is drawn."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if not hasattr(cls, "compared"):
            raise TypeError(f"{cls.__name__} lacks compared: what two runs could be compared for")

    def __post_init__(self) -> None:
        if not (self.cost >= 0 and self.claimed_cost >= 0 and 0 <= self.failing <= 1):
            raise InputError(
                f"{self.what}: a disclosure has an ε of 0 or more and a δ from 0 to 1, not "
                f"{self.cost} (claimed {self.claimed_cost}) and {self.failing}"
            )

    @property
    def cost(self) -> float:
        """The ε that bounds what it tells; infinite if none does."""
        epsilon = getattr(self, "epsilon", None)
        return math.inf if epsilon is None else float(epsilon)

    @property
    def claimed_cost(self) -> float:
        """The ε that the protocol's paper claims: its cost, unless that says less."""
        claimed = getattr(self, "claimed", None)
        return self.cost if claimed is None else float(claimed)

    @property
    def hidden_among(self) -> int | None:
        """How many honest parties' answers it is surely hidden among; None: it stands alone."""
        return getattr(self, "crowd", None) if self.added_up else None

    @property
    def alone(self) -> "Disclosure":
        """The same where its totals can be compared: their difference hides it among nobody."""
        if self.hidden_among is None:
            return self
        return msgspec.structs.replace(self, crowd=1)

    @property
    def failing(self) -> float:
        """The δ with which its cost holds."""
        return float(getattr(self, "delta", 0.0))

    @property
    def rests_on(self) -> int | None:
        """Its cost holds as long as no more than so many parties pool what they know; None: always,
        or nobody knows."""
        return None

    @property
    def how(self) -> str:
        """The mechanism in words, with its parameters."""
        return self.how_said.format(**msgspec.structs.asdict(self))

    @property
    def seen(self) -> str:
        """By whom it is seen, and how."""
        return self.seen_as.format(
            **msgspec.structs.asdict(self), total=self._total, only_if=self.only_if
        )

    @property
    def only_if(self) -> str:
        """The condition under which it stays hidden, where there is one."""
        most = getattr(self, "withstands", None)
        return "" if most is None else f", {as_long_as(most)}"

    @property
    def _total(self) -> str:
        """In a total over how many, in the worst case that the study allows."""
        expected, least = getattr(self, "expected", None), getattr(self, "least", None)
        expected = getattr(self, "crowd", None) if expected is None else expected
        if expected is None:
            return "a total"
        if least is None or least >= expected:
            return f"a total over {expected:,} parties"
        return f"a total over {least:,} parties or more ({expected:,} are expected)"


class RandomizedResponse(Disclosure, frozen=True, tag="randomized response"):
    """One value for all its attributes, kept with a probability and else drawn evenly."""

    compared: ClassVar[str | None] = None
    how_said: ClassVar[str] = (
        "randomized: with probability {keep:.3g} as it is, else one of {combinations:,} drawn "
        "evenly"
    )
    combinations: int
    keep: float
    epsilon: float


class ClusteredResponse(Disclosure, frozen=True, tag="clustered response"):
    """All answers, in clusters that are one value each; which they are is not known beforehand.

    However they are clustered, the ε of all clusters add up to this.
    """

    compared: ClassVar[str | None] = None
    how_said: ClassVar[str] = (
        "randomized in clusters that follow from the answers, each cluster as one value; any one "
        "answer may cost all of it"
    )
    epsilon: float
    each: tuple[float, ...]
    """What each attribute adds to it, in their order."""


class SubsetSelection(Disclosure, frozen=True, tag="subset selection"):
    """A set of combinations of one group of attributes; it holds the true one more often."""

    compared: ClassVar[str | None] = None
    how_said: ClassVar[str] = "one of {groups} groups of these answers, drawn by chance, randomized"
    groups: int
    epsilon: float


class AdaptiveResponse(Disclosure, frozen=True, tag="adaptive response"):
    """The truth with a probability, else a draw from a table that follows earlier answers."""

    compared: ClassVar[str | None] = None
    at_most: ClassVar[bool] = True
    how_said: ClassVar[str] = (
        "randomized: with probability {truth:.3g} as it is, else drawn from a table that the "
        "coordinator sends and the party checks"
    )
    truth: float
    epsilon: float
    claimed: float
    views: int = 1
    """Up to rules 2: it is in the dearest of so many sets that a party may be asked for."""
    sets: tuple[tuple[tuple[str, ...], ...], ...] = ()
    """The sets of answers of which one will be asked for; the ε is that of the dearest."""
    prices: tuple[tuple[float, ...], ...] = ()
    """What each answer of each set may cost."""

    @property
    def how(self) -> str:
        """Which answers these are is not known before one is asked."""
        how = super().how
        if self.sets:
            each = "; or ".join(", ".join(map(_together, one)) for one in self.sets)
            return (
                f"{how}. A party is asked for one of these {len(self.sets)} sets, and the "
                f"coordinator says which: {each}"
            )
        if self.views == 1:
            return how
        return f"{how}. A party answers one of {self.views} sets; this is in the dearest"


class RandomizedSum(Disclosure, frozen=True, tag="sum of randomized values"):
    """Randomized values that are seen only added up; whoever breaks the sum can link them."""

    compared: ClassVar[str | None] = (
        "the difference of two totals shows the randomized answers of whoever is in only one of "
        "them"
    )
    how_said: ClassVar[str] = "randomized, and then added up with those of the others"
    added_up: ClassVar[bool] = True
    seen_as: ClassVar[str] = "by everybody, only in {total}{only_if}"
    epsilon: float
    claimed: float
    crowd: int
    """Among how many honest parties it is surely hidden."""
    withstands: int | None = None
    """As long as no more than so many parties pool what they know; None: all others may."""
    expected: int | None = None
    """Over how many parties the total is to be."""
    least: int | None = None
    """Over how few it may be."""


class ExactSum(Disclosure, frozen=True, tag="exact sum"):
    """Exact values that are seen only added up: nobody's alone, but no ε bounds the total."""

    compared: ClassVar[str | None] = (
        "the difference of two totals shows the answers of whoever is in only one of them"
    )
    added_up: ClassVar[bool] = True
    seen_as: ClassVar[str] = "by {by}, only in {total}{only_if}"
    crowd: int
    """Among how many honest parties it is surely hidden."""
    withstands: int | None = None
    """As long as no more than so many parties pool what they know; None: all others may."""
    by: str = "everybody"
    """Who sees the exact total; everybody sees what is left of it without small counts."""
    expected: int | None = None
    """Over how many parties the total is to be."""
    least: int | None = None
    """Over how few it may be."""

    @property
    def seen(self) -> str:
        """By everybody, or by one and by everybody without small counts."""
        seen = super().seen
        if self.by == "everybody":
            return seen
        return f"{seen}; and by everybody but for small counts"


class NoisySum(Disclosure, frozen=True, tag="noisy sum"):
    """Exact values that are seen only added up, with noise in the total."""

    compared: ClassVar[str | None] = "a second total with other noise tells as much again"
    anew: ClassVar[bool] = True
    added_up: ClassVar[bool] = True
    seen_as: ClassVar[str] = "by everybody, only in {total}, with noise in it"
    epsilon: float
    delta: float
    withstands: int | None = None
    """As long as no more than so many parties pool what they know."""
    expected: int | None = None
    """Over how many parties the total is to be."""
    least: int | None = None
    """Over how few it may be."""

    @property
    def rests_on(self) -> int | None:
        """One party's own share of the noise protects nothing: the others' must stay unknown."""
        return self.withstands

    @property
    def how(self) -> str:
        """What the ε rests on is part of it."""
        return f"{super().how}{self.only_if}"


class Told(Disclosure, frozen=True, tag="told"):
    """The value as it is."""

    compared: ClassVar[str | None] = (
        "who learned these values in one run can join the next with values close to them, and be "
        "alone with their owner"
    )


class InGroup(Disclosure, frozen=True, tag="in a group"):
    """The value as it is, among those of a group, in no order."""

    compared: ClassVar[str | None] = "a value that two groups of one person share may be hers"
    seen_as: ClassVar[str] = (
        "by everybody, as it is, among the values of {crowd} or more, in no order"
    )
    crowd: int


class Masked(Disclosure, frozen=True, tag="masked"):
    """The value under a mask of the party's own choice, and once as it is among all, unordered."""

    compared: ClassVar[str | None] = (
        "two masked values of one person narrow the true one down, and whoever begins a study "
        "again and again can choose among relays"
    )
    seen_as: ClassVar[str] = (
        "by everybody, under the party's name; and once as it is, among the values of all, in no "
        "order"
    )
    recommended: str
    chosen: str = ""
    """What the party chose instead, where that is known."""

    @property
    def how(self) -> str:
        """What the mask does; without one the value is bare."""
        if self.chosen:
            return (
                "as it is" if self.chosen == "none" else f"under the mask you chose, {self.chosen}"
            )
        if self.recommended == "none":
            return "as it is, unless you choose a mask (--mask); none is recommended"
        return f"under a mask ({self.recommended} is recommended, the choice is yours)"


class Unstated(Disclosure, frozen=True, tag="unstated"):
    """Its author does not say what the protocol discloses: it may be everything."""

    compared: ClassVar[str | None] = "its author does not say what two runs could be compared for"
    seen_as: ClassVar[str] = "by whomever the protocol tells, which may be everybody"
    what: str = "not stated: the author of this protocol does not say what it discloses"
    attributes: tuple[str, ...] = ()


AnyDisclosure = (
    RandomizedResponse
    | ClusteredResponse
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


class Recorded(Disclosure, frozen=True, tag="recorded"):
    """What the ledger of an earlier version kept of a disclosure: no mechanism, but its price."""

    compared: ClassVar[str | None] = None
    """The runs in which something comparable was disclosed are kept beside it."""
    epsilon: float | None
    claimed: float | None = None
    crowd: int | None = None
    delta: float = 0.0

    @property
    def hidden_among(self) -> int | None:
        """As that version had it."""
        return self.crowd


def told_in_words(events: Sequence[Disclosure], *, you: bool = False) -> str:
    """What these events together mean, to a respondent (``you``) or of one."""
    cost = math.fsum(event.cost for event in events)
    limits = [most for event in events if (most := getattr(event, "withstands", None)) is not None]
    pooled = f", {as_long_as(min(limits))}" if limits else ""
    rests = withstood(events)
    whose = "your" if you else "a party's"
    if any(isinstance(event, Unstated) for event in events):
        return f"Nobody has stated what this tells of {whose} answers: it may be everything."
    if events and all(event.added_up for event in events):
        if math.isinf(cost):
            return (
                f"Only totals are seen{pooled}, but no ε bounds what exact totals tell of one "
                "person."
            )
        if all(isinstance(event, NoisySum) for event in events):
            told = in_words(cost, you=you, source="them")
            more = "; if more do, no ε bounds what they learn" if limits else ""
            return f"Only totals with noise are seen{pooled}{more}. {told}"
    if events and all(event.added_up for event in events) and rests is None:
        more = "more do" if limits else "all others pool what they know"
        return f"Only totals are seen{pooled}. At worst, {more}. {in_words(cost, you=you)}"
    if rests is None:
        return in_words(cost, you=you)
    answers = f"all of {'your' if you else 'their'} randomized answers"
    told = in_words(cost, you=you, source=f"{answers} and the totals with noise")
    return on_condition(told, rests)


def on_condition(told: str, withstands: int | None) -> str:
    """What follows from an ε, with what the ε rests on."""
    if withstands is None:
        return told
    said = f"{told[0].lower()}{told[1:].removesuffix('.')}"
    return f"{as_long_as(withstands).capitalize()}, {said}; if more do, no ε bounds it."


def as_long_as(withstands: int) -> str:
    """The condition that no more than so many parties pool what they know."""
    return f"as long as at most {_parties(withstands)} what they know"


def _together(names: tuple[str, ...]) -> str:
    """Answers that are one value."""
    return " with ".join(map(quoted, names))


def _parties(most: int) -> str:
    return "one party pools" if most == 1 else f"{most:,} parties pool"


class Caution(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Something that a study file allows to happen to a respondent, and what would prevent it."""

    text: str
    prevented_by: str

    def __str__(self) -> str:
        return f"{self.text} What would prevent it: {self.prevented_by}."


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
    accountant: str = ""
    """By whose rules the readings add up."""
    cautions: tuple[Caution, ...] = ()
    """What a respondent was told beforehand that may happen."""
    local_withstands: int | None = None
    """``local_epsilon`` holds as long as no more than so many parties pool what they know; if more
    do, no ε bounds it. Null: whatever they do, or there is no bound."""

    @classmethod
    def of(cls, events: Sequence[Disclosure], cautions: Sequence[Caution] = ()) -> "Privacy":
        """What follows from the events."""
        reading = Accountant().read(events)
        return cls(
            events=tuple(events),  # type: ignore[arg-type]
            local_epsilon=bounded(reading.local),
            local_delta=reading.local_delta,
            claimed_epsilon=bounded(reading.claimed),
            central_epsilon=bounded(reading.central),
            central_delta=reading.delta,
            in_words=told_in_words(events),
            accountant=reading.accountant,
            cautions=tuple(cautions),
            local_withstands=reading.withstands,
        )
