"""What hiding in groups would lose and risk, on a pilot (004, section 4, requirement (i)).

For each k the pilot's people are grouped as the study groups its respondents, and what it would
publish is measured. Beside it stand, measured on the same people: a trusted curator who makes the
same groups; one who generalizes and leaves out whom it costs most, as ARX does; and respondents who
each mask alone, as strongly as it takes to be linked no more often than in the study's groups.
"""

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

import msgspec
import numpy as np
from scipy.special import stdtrit

from mpc_rr.anonymization.alone import STRENGTHS, MaskedAlone, where_as_safe
from mpc_rr.anonymization.beside import Columns, read_release, relations
from mpc_rr.anonymization.hierarchy import Hierarchy, Labels, Level, generalize, groups_at
from mpc_rr.anonymization.loss import corners, released_loss
from mpc_rr.anonymization.releases import Grouped
from mpc_rr.anonymization.risk import Linkage, linkage, linkage_by_group, protection
from mpc_rr.anonymization.table import Array, Codes, Microdata, Rows
from mpc_rr.errors import InputError
from mpc_rr.planning.crowds import Effort, standard_error
from mpc_rr.protocols.collaborative_k_anonymity import CollaborativeKAnonymity
from mpc_rr.randomness import Randomness, SeededRandomness
from mpc_rr.schema import Attribute, Schema

STUDY, LEFT_OUT = "this study", "this study, some left out"
CURATOR, SUPPRESSING = "a curator, same groups", "a curator who leaves out"
AS_SAFE_CURATOR = "a curator, same risk"
AS_SAFE_SUPPRESSING = "a curator who leaves out, same risk"
ALONE = "each masks alone, same risk"
ALONE_AT_WORST = "each masks alone, nobody more exposed"
GRID = (2, 3, 5, 10, 20, 50)
MOST_PEOPLE = 1000
"""So many are simulated at most: who masks alone is compared with everybody."""
PEOPLE_IN_ALL = 3000
FEWEST_POPULATIONS, MOST_POPULATIONS = 4, 20
SUPPRESSED = 0.05
"""This share may be left out where the study does not say."""
FINEST = 4
FALSE_ALARM = 0.01
MOST_COMBINATIONS = 400
"""Of levels, where the study has no hierarchies and a curator is lent some."""


@dataclass(frozen=True)
class Figure:
    """Something measured on several populations; None where it cannot be had in one of them."""

    values: tuple[float | None, ...]

    @property
    def known(self) -> tuple[float, ...] | None:
        """The values, if it could be had in all."""
        there = tuple(value for value in self.values if value is not None)
        return there if len(there) == len(self.values) else None

    @property
    def mean(self) -> float | None:
        """Over all populations."""
        return None if self.known is None else sum(self.known) / len(self.known)

    @property
    def standard_error(self) -> float | None:
        """Of the mean, as far as drawing people, ties and masks is concerned."""
        return None if self.known is None else standard_error(self.known)

    @property
    def sign(self) -> int | None:
        """Whether the mean is above or below 0, or 0; None where chance does not let it be told.

        It is wrong in one of a hundred cases at most (t distribution); what is alike in all
        populations is taken as it is.
        """
        if self.known is None or len(self.known) < 2:
            return None
        mean, error = sum(self.known) / len(self.known), standard_error(self.known)
        if error == 0:
            return (mean > 0) - (mean < 0)
        limit = float(stdtrit(len(self.known) - 1, 1 - FALSE_ALARM / 2))
        return (mean > 0) - (mean < 0) if abs(mean) > limit * error else None

    def less(self, other: "Figure") -> "Figure":
        """The difference in each population."""
        pairs = zip(self.values, other.values, strict=True)
        return Figure(tuple(None if a is None or b is None else a - b for a, b in pairs))


@dataclass(frozen=True)
class Measured:
    """What one way to anonymize loses and risks, among the same people."""

    lost: float | None
    """The share of the quasi-identifiers' variation that is lost, all attributes counted alike;
    who is left out is lost wholly. None: nothing varies."""
    relations: float | None
    """How far the relations between quasi-identifiers and confidential values are from the true
    ones, on average."""
    linked: float | None
    """How often who knows the quasi-identifiers of a person picks her own values, on average."""
    highest: float | None
    """The same of the most exposed person."""
    collector: float | None
    """The same for whoever collects."""
    different: float | None = None
    """The fewest different values of a confidential attribute in a group (l)."""
    left_out: float = 0.0
    """The share of people who are left out."""


@dataclass(frozen=True)
class Way:
    """One way to anonymize, measured on each of several populations."""

    name: str
    k: int
    found: tuple[Measured, ...]

    def figure(self, name: str) -> Figure:
        """One of its figures, by its name."""
        return Figure(tuple(getattr(each, name) for each in self.found))


@dataclass(frozen=True)
class GroupsPlan:
    """What groups of each k would lose and risk, beside other ways."""

    people: int
    pilot: int
    populations: int
    asked: int
    """How many people the study would have."""
    k: int
    """That of the study."""
    suppress: float
    """The share that may be left out, where some are."""
    lent: bool
    """Whether the curator who leaves out was lent hierarchies that the study does not have."""
    ways: tuple[Way, ...]
    refused: Mapping[str, str]
    limited: bool
    """Whether the study itself leaves some out."""

    @property
    def own(self) -> str:
        """The name of the study's own way."""
        return LEFT_OUT if self.limited else STUDY

    def way(self, name: str, k: int) -> Way | None:
        """A way at a k, if it can be had."""
        return next((way for way in self.ways if (way.name, way.k) == (name, k)), None)


@dataclass(frozen=True)
class People:
    """Some people whose answers are known, and the order that decides between equals."""

    protocol: CollaborativeKAnonymity
    schema: Schema
    records: Codes
    rng: SeededRandomness

    @cached_property
    def known(self) -> Microdata:
        """Their quasi-identifiers."""
        return self._pick(self.protocol.quasi_identifiers)

    @cached_property
    def confidential(self) -> Microdata:
        """Their confidential values."""
        return self._pick(self.protocol.confidential)

    def _pick(self, names: Sequence[str]) -> Microdata:
        places = [self.schema.names.index(name) for name in names]
        return Microdata(self.schema.pick(tuple(names)), self.records[:, places])

    @cached_property
    def truth(self) -> Columns:
        """Their records as they are."""
        attributes = (*self.known.attributes, *self.confidential.attributes)
        return Columns.of(
            Microdata(attributes, np.hstack([self.known.codes, self.confidential.codes]))
        )

    @cached_property
    def alone(self) -> "Steps":
        """How they fare if each masks alone, more and more strongly."""
        return Steps.alone(self)

    def grouped(
        self, groups: Sequence[Sequence[int]], labels: Labels | None
    ) -> tuple[Grouped, Rows]:
        """What is released of groups, and who is in them; values come in an order that is drawn."""
        inside = np.array(sorted(itertools.chain.from_iterable(groups)))
        place = {person: number for number, person in enumerate(inside.tolist())}
        rng = self.rng.fork("channel")
        rows = [np.array([place[person] for person in group]) for group in groups]
        tables = [
            Microdata(
                self.confidential.attributes,
                self.confidential.codes[np.array(group)[shuffled(len(group), rng)]],
            )
            for group in groups
        ]
        known = Microdata(self.known.attributes, self.known.codes[inside])
        return Grouped(known, rows, tables, labels), inside

    def measured(self, grouped: Grouped, inside: Rows, release: str) -> Measured:
        """Loss, relations and l of a release; who can link what is for others to say."""
        of_each = [p.least_different for p in protection(grouped)]
        l_values = [number for number in of_each if number is not None]
        return Measured(
            lost=lost_of_all(self.known, grouped, inside, release),
            relations=relations_lost(
                self.truth, read_release(grouped, release), len(self.known.attributes)
            ),
            linked=None,
            highest=None,
            collector=None,
            different=min(l_values, default=None),
            left_out=1 - len(inside) / len(self.known),
        )


def plan_groups(
    protocol: CollaborativeKAnonymity, schema: Schema, pilot: Codes, n: int, effort: Effort
) -> GroupsPlan:
    """Try out groups of each k on people of a pilot."""
    crowd = people_of(protocol, schema, pilot, n, effort)
    count, suppress = len(crowd[0].records), protocol.suppress or SUPPRESSED
    if count < protocol.k:
        raise InputError(
            f"groups of k = {protocol.k} cannot be made of {count} people: give a larger pilot"
        )
    curator, lent = _hierarchies(protocol, schema)
    grid = sorted({k for k in GRID if 2 * k <= count} | {protocol.k})
    ways: list[Way] = []
    refused: dict[str, str] = {}
    for done, k in enumerate(grid, start=1):
        for name, measure in _ways(protocol, curator, k, suppress):
            try:
                ways.append(Way(name, k, tuple(measure(people) for people in crowd)))
            except InputError as error:
                refused[f"{name}, k = {k}"] = str(error)
        if effort.progress is not None:
            effort.progress(done, len(grid))
    own = STUDY if protocol.suppress is None else LEFT_OUT
    ways += [way for k in grid for way in _as_safe(crowd, ways, own, k)]
    return GroupsPlan(
        count, len(pilot), len(crowd), n, protocol.k, suppress, lent, tuple(ways),
        refused, protocol.suppress is not None,
    )  # fmt: skip


def _as_safe(crowd: Sequence[People], ways: Sequence[Way], own: str, k: int) -> list[Way]:
    """Others who are linked as often as in the study's own groups of k."""
    study = next((way for way in ways if (way.name, way.k) == (own, k)), None)
    if study is None:
        return []
    found = []
    for name, of in ((AS_SAFE_CURATOR, CURATOR), (AS_SAFE_SUPPRESSING, SUPPRESSING)):
        every = [way.found for way in ways if way.name == of]
        steps = [Steps.of_curator(people, [each[p] for each in every])
                 for p, people in enumerate(crowd)]  # fmt: skip
        pairs = zip(steps, study.found, strict=True)
        found.append(Way(name, k, tuple(each.as_safe_as(safe) for each, safe in pairs)))
    alone = list(zip([people.alone for people in crowd], study.found, strict=True))
    found.append(Way(ALONE, k, tuple(each.as_safe_as(safe) for each, safe in alone)))
    worst = tuple(each.as_safe_as(safe, at_worst=True) for each, safe in alone)
    return [*found, Way(ALONE_AT_WORST, k, worst)]


def people_of(
    protocol: CollaborativeKAnonymity, schema: Schema, pilot: Codes, n: int, effort: Effort
) -> list[People]:
    """Several populations: of fewer than the pilot has drawn without replacement, else all."""
    rng = SeededRandomness(effort.seed).fork("hiding")
    drawn = draws(pilot, min(n, effort.people or MOST_PEOPLE), effort.populations, rng)
    return [
        People(protocol, schema, records, rng.fork(f"people {number}"))
        for number, records in enumerate(drawn)
    ]


def draws(pilot: Codes, people: int, populations: int | None, rng: Randomness) -> list[Codes]:
    """Some populations of so many people of a pilot, each time other ones; or always all."""
    each = min(people, len(pilot))
    usual = min(max(PEOPLE_IN_ALL // each, FEWEST_POPULATIONS), MOST_POPULATIONS)
    wanted = usual if populations is None else populations
    rows = rng.subsets(len(pilot), each, wanted)
    return [pilot[row] for row in rows]


def shuffled(count: int, rng: Randomness) -> Rows:
    """The numbers below a count in an order that is drawn."""
    return np.argsort(rng.words((count,)), kind="stable")


Measure = Callable[[People], Measured]


def _ways(
    protocol: CollaborativeKAnonymity, curator: list[Hierarchy], k: int, suppress: float
) -> list[tuple[str, Measure]]:
    shape = msgspec.structs.replace(protocol, k=k, suppress=None)
    ways: list[tuple[str, Measure]] = [(STUDY, lambda people: of_study(people, shape))]
    if protocol.partition == "generalization":
        leaving = msgspec.structs.replace(shape, suppress=suppress)
        ways.append((LEFT_OUT, lambda people: of_study(people, leaving)))
    ways.append((CURATOR, lambda people: of_curator(people, shape)))
    ways.append((SUPPRESSING, lambda people: of_suppressing(people, curator, k, suppress)))
    return ways


def of_study(people: People, shape: CollaborativeKAnonymity) -> Measured:
    """The study's own way: its list of groups is public, so her group is known to all."""
    grouped, inside, found = _released(people, shape, shuffled(len(people.records), people.rng))
    linked = linkage_by_group(grouped.known, grouped.groups)
    chance = linked.average * len(inside) / len(people.records)
    return replace(found, linked=chance, highest=linked.highest, collector=chance)


def of_curator(people: People, shape: CollaborativeKAnonymity) -> Measured:
    """The same groups made by somebody who holds all records, and publishes the release alone."""
    grouped, inside, found = _released(people, shape, np.arange(len(people.records)))
    linked = linkage(grouped.known, grouped.groups, shape.release, labels=grouped.labels)
    chance = linked.average * len(inside) / len(people.records)
    raw = linked_as_they_are(people.known)
    return replace(found, linked=chance, highest=linked.highest, collector=raw.average)


def _released(
    people: People, shape: CollaborativeKAnonymity, order: Rows
) -> tuple[Grouped, Rows, Measured]:
    records = [tuple(row) for row in people.known.codes.tolist()]
    groups, levels = shape.groups_of(people.schema, records, order.tolist())
    labels = None
    if shape.hierarchies is not None:
        labels = Labels(shape.all_hierarchies(people.schema), levels)
    grouped, inside = people.grouped(groups, labels)
    return grouped, inside, people.measured(grouped, inside, shape.release)


def of_suppressing(
    people: People, hierarchies: list[Hierarchy], k: int, suppress: float
) -> Measured:
    """Full-domain generalization with a limit of suppressed records, whose quasi-identifiers are
    then all ``*``: their values stand together, whoever they are."""
    everybody = len(people.records)
    most = int(Fraction(str(suppress)) * everybody)
    levels = generalize(people.known, hierarchies, k, most)
    every = groups_at(people.known, hierarchies, levels)
    groups = [rows.tolist() for rows in every if len(rows) >= k]
    grouped, inside = people.grouped(groups, Labels(hierarchies, levels))
    found = people.measured(grouped, inside, "generalized")
    linked = linkage(grouped.known, grouped.groups, "generalized", labels=grouped.labels)
    starred = everybody - len(inside)
    chance = (linked.average * len(inside) + bool(starred)) / everybody
    highest = max(linked.highest, 1 / starred if starred else 0.0)
    raw = linked_as_they_are(people.known)
    return replace(found, linked=chance, highest=highest, collector=raw.average)


def linked_as_they_are(known: Microdata) -> Linkage:
    """How often who knows the quasi-identifiers picks her own of the records as they are."""
    _, people = np.unique(known.codes, axis=0, return_counts=True)
    return Linkage(len(people) / len(known), 1 / int(people.min()))


def lost_of_all(known: Microdata, grouped: Grouped, inside: Rows, release: str) -> float | None:
    """The share of variation that a release loses, of everybody; who is left out loses it all."""
    outside = np.setdiff1d(np.arange(len(known)), inside)
    shares = []
    for place, loss in enumerate(released_loss(grouped, release)):
        attribute = known.attributes[place]
        every = corners(attribute, known.answers(np.arange(len(known)), place))
        if not len(every) or not np.ptp(every, axis=0).any():
            continue
        centre = every.mean(axis=0)
        mine = corners(attribute, known.answers(inside, place))
        lost = (loss.squared_error or 0.0) * _around(mine, mine.mean(axis=0))
        gone = _around(corners(attribute, known.answers(outside, place)), centre)
        shares.append((lost + gone) / _around(every, centre))
    return sum(shares) / len(shares) if shares else None


def _around(points: Array, centre: Array) -> float:
    return float(((points - centre) ** 2).sum())


def relations_lost(true: Columns, released: Columns, known: int) -> float | None:
    """How far the relations of the first attributes to the others are off, on average.

    A relation that nothing is left of counts as 0.
    """
    first = {attribute.name for attribute in true.attributes[:known]}
    off = [
        abs(each.true - (each.released or 0.0))
        for each in relations(true, released)
        if each.true is not None and (each.first in first) != (each.second in first)
    ]
    return sum(off) / len(off) if off else None


@dataclass(frozen=True)
class Steps:
    """What a way to anonymize risks and loses, from records as they are to the strongest."""

    linked: list[float]
    highest: list[float]
    lost: list[float]
    """nan: nothing varies."""
    relations: list[float]
    collector: float | None
    """What whoever collects links; None: no more than everybody."""

    @classmethod
    def alone(cls, people: People) -> "Steps":
        """Each masks alone, with the same random numbers at all strengths."""
        masked = MaskedAlone.drawn(people.known, people.rng.fork("alone"))
        found = cls([], [], [], [], None)
        for strength in STRENGTHS:
            linked = masked.linked(strength)
            found.linked.append(linked.average)
            found.highest.append(linked.highest)
            told = [share for share in masked.lost(strength) if share is not None]
            found.lost.append(sum(told) / len(told) if told else math.nan)
            columns = masked.columns(strength, people.confidential)
            off = relations_lost(people.truth, columns, len(people.known.attributes))
            found.relations.append(math.nan if off is None else off)
        return found

    @classmethod
    def of_curator(cls, people: People, found: Sequence[Measured]) -> "Steps":
        """A curator's releases for each k."""
        raw = linked_as_they_are(people.known)
        columns = [
            [math.nan if value is None else value for value in each]
            for each in zip(
                *((f.linked, f.highest, f.lost, f.relations) for f in found), strict=True
            )
        ] or [[], [], [], []]
        starts = (raw.average, raw.highest, 0.0, 0.0)
        linked, highest, lost, off = (
            [start, *column] for start, column in zip(starts, columns, strict=True)
        )
        return cls(linked, highest, lost, off, raw.average)

    def as_safe_as(self, other: Measured, *, at_worst: bool = False) -> Measured:
        """Where people are linked as often as otherwise; between two steps it is interpolated.

        That is on average; or ``at_worst``, of the most exposed.
        """
        target = other.highest if at_worst else other.linked
        assert target is not None
        risks = self.highest if at_worst else self.linked
        columns = (self.lost, self.relations, self.linked, self.highest)
        found = [where_as_safe(risks, values, target) for values in columns]
        lost, off, linked, highest = (None if v is None or math.isnan(v) else v for v in found)
        collector = linked if self.collector is None else self.collector
        return Measured(lost, off, linked, highest, collector)


# ── Hierarchies for a curator where the study has none ─────────────────────────────────────────


def _hierarchies(protocol: CollaborativeKAnonymity, schema: Schema) -> tuple[list[Hierarchy], bool]:
    """The study's; else ranges of numbers and of ranks that double, as finely as can be tried."""
    if protocol.hierarchies is not None:
        return protocol.all_hierarchies(schema), False
    attributes = protocol.attributes(schema)[0]
    finest = FINEST
    found = [Hierarchy(attribute, doubling(attribute, finest)) for attribute in attributes]
    while finest and math.prod(each.depth + 1 for each in found) > MOST_COMBINATIONS:
        finest -= 1
        found = [Hierarchy(attribute, doubling(attribute, finest)) for attribute in attributes]
    return found, True


def doubling(attribute: Attribute, finest: int) -> tuple[Level, ...]:
    """So many levels at most, each twice as coarse as the one before; none without an order."""
    if attribute.type == "nominal":
        return ()
    if attribute.numeric:
        assert attribute.step is not None
        whole = attribute.answers_possible
        widths = [-(-whole // 2**finest) * 2**level for level in range(finest)]
        return tuple(attribute.step * width for width in widths if 1 < width < whole)
    answers = [attribute.categories[code] for code in attribute.answer_codes]
    levels: list[Level] = []
    width = 2
    while width < len(answers) and len(levels) < finest:
        parts = [answers[first : first + width] for first in range(0, len(answers), width)]
        level = {part[0] if len(part) == 1 else f"{part[0]}–{part[-1]}": part for part in parts}
        if attribute.missing is not None:
            level[attribute.missing] = [attribute.missing]
        levels.append(level)
        width *= 2
    return tuple(levels)
