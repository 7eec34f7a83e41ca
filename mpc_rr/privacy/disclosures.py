"""What a party discloses by taking part, as typed events: mechanism, attributes, to whom.

An event says what leaves the party and by which mechanism, with its parameters. What it costs (ε),
of all its answers and of each, and what a second run could add to it follow from the event; so does
what people are told (`mpc_rr.privacy.sentences`). A protocol states its events before anybody
answers (`mpc_rr.protocols.interface.StudyProtocol.disclosures`); a party's ledger keeps them, and
they are published with the result.
"""

import math
from typing import Any, ClassVar, Literal

import msgspec

from mpc_rr.errors import InputError, all_quoted, quoted

EVERYBODY = "everybody"
"""Who sees a total: as results and ledgers keep it."""
ROUNDING = 1e-9
SHOWN = 6
"""So many reports that exclude answers are named, those first that leave the fewest."""


Powers = Literal[2, 4]
"""How many powers of a number are added up: from the sums over so many people numbers follow."""


def bounded(epsilon: float) -> float | None:
    """An ε for JSON, which has no infinity: None if there is no bound."""
    return None if math.isinf(epsilon) else epsilon


class Disclosure(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="mechanism"
):
    """One thing that leaves a party. Its subclasses are the mechanisms.

    What follows is read from the parameters that a mechanism has: ``epsilon`` (without one, no ε
    bounds what it tells) with ``delta``, ``by_answer`` where one answer costs less than all of
    them, ``claimed`` where the paper says another ε, and ``crowd``.
    """

    what: str
    """How the party's ledger calls it."""
    attributes: tuple[str, ...]

    how_said: ClassVar[str] = "{what}"
    """The mechanism in words, for a respondent."""
    seen_as: ClassVar[str] = "by everyone, under the party's name"
    """By whom it is seen, and how."""
    added_up: ClassVar[bool] = False
    """Whether it is seen in a total alone."""
    at_most: ClassVar[bool] = False
    """Whether ``cost`` is a bound that is known beforehand, and the true price may be less."""
    each_at_most: ClassVar[bool] = False
    """The same of ``answers``."""
    without: ClassVar[str] = "no mechanism that has one"
    """Why there is no ε, where there is none: a few words."""
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
        each = getattr(self, "by_answer", ())
        if each and not (
            len(each) == len(self.attributes)
            and all(0 <= one <= self.cost * (1 + ROUNDING) for one in each)
        ):
            raise InputError(
                f"{self.what}: by_answer has an ε from 0 to {self.cost} for each attribute"
            )

    @property
    def cost(self) -> float:
        """The ε that bounds what it tells; infinite if none does."""
        epsilon = getattr(self, "epsilon", None)
        return math.inf if epsilon is None else float(epsilon)

    @property
    def answers(self) -> dict[str, float]:
        """The ε that bounds what it tells of each answer, to whoever knows all the others.

        It is the same for an attacker who believes that they have nothing to do with it. Where
        they have, what is sent about them tells of it, too: then only ``cost`` bounds it.
        """
        each = getattr(self, "by_answer", ()) or (self.cost,) * len(self.attributes)
        return dict(zip(self.attributes, each, strict=True))

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
    def no_epsilon(self) -> str:
        """Why there is no ε, in a few words."""
        return self.without

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
            **msgspec.structs.asdict(self),
            total=self._total,
            only_if=self.only_if,
            who="everyone" if self._by == EVERYBODY else self._by,
        )

    @property
    def _by(self) -> str:
        return str(getattr(self, "by", EVERYBODY))

    @property
    def only_if(self) -> str:
        """The condition under which it stays hidden, where there is one."""
        most = getattr(self, "withstands", None)
        return "" if most is None else f", {as_long_as(most, honest=self.trusts_coordinator)}"

    @property
    def trusts_coordinator(self) -> bool:
        """Whether that condition is also that the coordinator follows the protocol."""
        return bool(getattr(self, "honest_coordinator", False))

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


class Excluded(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A report that cannot have come of some answers."""

    report: str
    answers: tuple[str, ...]

    def __str__(self) -> str:
        return f"a report of {quoted(self.report)} excludes {all_quoted(self.answers)}"


class MatrixResponse(Disclosure, frozen=True, tag="matrix response"):
    """One value for all its attributes, randomized by a matrix that is not keep-or-uniform."""

    compared: ClassVar[str | None] = None
    without: ClassVar[str] = "some reports exclude some answers"
    combinations: int
    least: float
    """How probably it stays as it is, at least: that of the answer which stays most seldom."""
    most: float
    epsilon: float | None
    """None: some reports exclude some answers."""
    left: float
    """How much of the uncertainty of somebody to whom all answers were equally probable a report
    leaves, on average and in bits, as a share."""
    by_answer: tuple[float, ...] = ()
    """What bounds each answer by itself, in their order; ε, if not given."""
    excludes: tuple[Excluded, ...] = ()
    epsilon_left: float | None = None
    """Where reports exclude answers: what bounds which of the others it was."""

    @property
    def of_what_is_left(self) -> "MatrixResponse":
        """With the ε of the answers that a report leaves, if it has none of its own."""
        if self.epsilon is not None:
            return self
        return msgspec.structs.replace(self, epsilon=self.epsilon_left)

    @property
    def how(self) -> str:
        """Which matrix it is stands in the study file."""
        stays = f"{self.least:.3g}"
        if not math.isclose(self.least, self.most):
            stays = f"{stays} to {self.most:.3g} (depending on the answer)"
        others = f"one of the other {self.combinations - 1:,}, some rather than others"
        other = others if self.combinations > 2 else "the other one"
        return (
            f"randomized by a matrix of its own: with probability {stays} as it is, else {other}"
            f"{self._excluded}"
        )

    @property
    def _excluded(self) -> str:
        if not self.excludes:
            return ""
        worst_first = sorted(self.excludes, key=lambda report: -len(report.answers))
        said = f"; {', '.join(map(str, worst_first[:SHOWN]))}"
        others = worst_first[SHOWN:]
        if not others:
            return said
        left = self.combinations - len(others[0].answers)
        those = "another report excludes" if len(others) == 1 else f"{len(others)} others exclude"
        return f"{said}; {those} some, too, and {left:,} answers or more stay possible"


class ClusteredResponse(Disclosure, frozen=True, tag="clustered response"):
    """All answers, in clusters that are one value each; which they are is not known beforehand.

    However they are clustered, the ε of all clusters add up to this.
    """

    compared: ClassVar[str | None] = None
    each_at_most: ClassVar[bool] = True
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
    each_at_most: ClassVar[bool] = True
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
    def answers(self) -> dict[str, float]:
        """Of each attribute what the sets allow: all combinations of one that it is in."""
        if not self.sets:
            return super().answers
        asked = [
            list(zip(one, costs, strict=True))
            for one, costs in zip(self.sets, self.prices, strict=True)
        ]
        return {
            name: max(math.fsum(cost for names, cost in one if name in names) for one in asked)
            for name in self.attributes
        }

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
        "the difference of two totals shows the randomized answers of anyone who is in only one of "
        "them"
    )
    how_said: ClassVar[str] = "randomized, and then added up with those of the others"
    added_up: ClassVar[bool] = True
    seen_as: ClassVar[str] = "by everyone, only in {total}{only_if}"
    epsilon: float
    claimed: float
    crowd: int
    """Among how many honest parties it is surely hidden."""
    withstands: int | None = None
    """As long as no more than so many parties pool what they know; None: all others may."""
    honest_coordinator: bool = False
    """And as long as the coordinator follows the protocol."""
    expected: int | None = None
    """Over how many parties the total is to be."""
    least: int | None = None
    """Over how few it may be."""
    by_answer: tuple[float, ...] = ()
    """What bounds each answer by itself, in their order; ε, if not given."""


class ExactSum(Disclosure, frozen=True, tag="exact sum"):
    """Exact values that are seen only added up: nobody's alone, but no ε bounds the total.

    Of two or more attributes it is tables: how many gave which of their answers together. Of one it
    is a total, such as a sum of numbers.
    """

    compared: ClassVar[str | None] = (
        "the difference of two totals shows the answers of anyone who is in only one of them"
    )
    without: ClassVar[str] = "exact totals"
    added_up: ClassVar[bool] = True
    seen_as: ClassVar[str] = "by {who}, only in {total}{only_if}"
    suppressed: ClassVar[str] = "small counts"
    """What everybody does not see of a total that one sees."""
    crowd: int
    """Among how many honest parties it is surely hidden."""
    withstands: int | None = None
    """As long as no more than so many parties pool what they know; None: all others may."""
    honest_coordinator: bool = False
    """And as long as the coordinator follows the protocol."""
    by: str = EVERYBODY
    """Who sees the exact total; everybody sees what is left of it without small counts."""
    expected: int | None = None
    """Over how many parties the total is to be."""
    least: int | None = None
    """Over how few it may be."""

    @property
    def in_tables(self) -> bool:
        """Whether it is seen who gave two answers together, without a name."""
        return len(self.attributes) > 1

    @property
    def no_epsilon(self) -> str:
        """What is exact: counts, in tables; else totals of any kind."""
        return "exact counts" if self.in_tables else super().no_epsilon

    @property
    def seen(self) -> str:
        """By everybody, or by one and by everybody without what is suppressed."""
        seen = super().seen
        if self.by == EVERYBODY:
            return seen
        return f"{seen}; and by everyone but for {self.suppressed}"


class ExactNumbers(ExactSum, frozen=True, tag="exact sum of numbers"):
    """The same of numbers and their powers, over all people and by category."""

    compared: ClassVar[str | None] = (
        "the difference of two totals shows the numbers of anyone who is in only one of them"
    )
    without: ClassVar[str] = "exact sums of numbers"
    suppressed: ClassVar[str] = "those over few people"
    few: Powers = 2
    """From the sums over so many people their numbers follow: as many as powers are added up."""

    @property
    def in_tables(self) -> bool:
        """Numbers are added up within categories, and no two of them together."""
        return False


class NoisySum(Disclosure, frozen=True, tag="noisy sum"):
    """Exact values that are seen only added up, with noise in the total."""

    compared: ClassVar[str | None] = "a second total with other noise tells as much again"
    anew: ClassVar[bool] = True
    added_up: ClassVar[bool] = True
    seen_as: ClassVar[str] = "by everyone, only in {total}, with noise in it"
    epsilon: float
    delta: float
    withstands: int | None = None
    """As long as no more than so many parties pool what they know."""
    honest_coordinator: bool = False
    """And as long as the coordinator follows the protocol."""
    expected: int | None = None
    """Over how many parties the total is to be."""
    least: int | None = None
    """Over how few it may be."""
    by_answer: tuple[float, ...] = ()
    """What bounds each answer by itself, in their order; ε, if not given."""
    beyond: float = 0.0
    """How probably the total tells more than that, at most, where δ is no mere rounding."""

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

    without: ClassVar[str] = "told as it is"
    compared: ClassVar[str | None] = (
        "who learned these values in one run can join the next with values close to them, and be "
        "alone with their owner"
    )


class InGroup(Disclosure, frozen=True, tag="in a group"):
    """The value as it is, among those of a group, in no order."""

    without: ClassVar[str] = "as it is, in a group"
    compared: ClassVar[str | None] = "a value that two groups of one person share may be hers"
    seen_as: ClassVar[str] = (
        "by everyone, as it is, among the values of {crowd} or more, in no order"
    )
    crowd: int


UNDECIDED = "undecided"
"""Instead of a mask: the party decides on it when the values of all are there."""


class Masked(Disclosure, frozen=True, tag="masked"):
    """The value under a mask of the party's own choice, and once as it is among all, unordered."""

    without: ClassVar[str] = "masked values"
    compared: ClassVar[str | None] = (
        "two masked values of one person narrow the true one down, and anyone who begins a study "
        "again and again can choose among relays"
    )
    seen_as: ClassVar[str] = (
        "by everyone, under the party's name; and once as it is, among the values of all, in no "
        "order"
    )
    recommended: str
    chosen: str = ""
    """What the party chose instead, where that is known."""
    optional: bool = False
    """Whether it need not be answered; a mask does not hide who gave no answer."""

    @property
    def bare(self) -> bool:
        """Whether there is no mask, unless the party chooses one."""
        return self.recommended == "none" if self.undecided else self._mask == "none"

    @property
    def undecided(self) -> bool:
        """Whether the party decides on it when the values of all are there."""
        return self.chosen == UNDECIDED

    @property
    def _mask(self) -> str:
        return self.chosen or self.recommended

    @property
    def how(self) -> str:
        """What the mask does; without one the value is bare."""
        bare = "; whether it was answered is told as it is" if self.optional else ""
        return f"{self._by_mask}{bare}"

    @property
    def _by_mask(self) -> str:
        if self.undecided:
            late = (
                "none is recommended: if you do not decide in time, you withdraw"
                if self.recommended == "none"
                else f"{self.recommended} if you do not"
            )
            return f"under a mask on which you decide when you see the values of all ({late})"
        if self.chosen:
            return (
                "as it is" if self.chosen == "none" else f"under the mask you chose, {self.chosen}"
            )
        if self.recommended == "none":
            return "as it is, unless you choose a mask (--mask); none is recommended"
        return f"under a mask ({self.recommended} is recommended, the choice is yours)"


class Unstated(Disclosure, frozen=True, tag="unstated"):
    """Its author does not say what the protocol discloses: it may be everything."""

    without: ClassVar[str] = "not stated"
    compared: ClassVar[str | None] = "its author does not say what two runs could be compared for"
    seen_as: ClassVar[str] = "by anyone the protocol tells, which may be everyone"
    what: str = "not stated: the author of this protocol does not say what it discloses"
    attributes: tuple[str, ...] = ()


AnyDisclosure = (
    RandomizedResponse
    | MatrixResponse
    | ClusteredResponse
    | SubsetSelection
    | AdaptiveResponse
    | RandomizedSum
    | ExactSum
    | ExactNumbers
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
    each_at_most: ClassVar[bool] = True
    without: ClassVar[str] = "recorded without one"
    epsilon: float | None
    claimed: float | None = None
    crowd: int | None = None
    delta: float = 0.0

    @property
    def hidden_among(self) -> int | None:
        """As that version had it."""
        return self.crowd


def as_long_as(withstands: int, *, honest: bool = False) -> str:
    """The condition that no more than so many parties pool what they know.

    ``honest``: and that the coordinator follows the protocol.
    """
    follows = " and the coordinator follows the protocol" if honest else ""
    return f"as long as at most {_parties(withstands)} what they know{follows}"


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
