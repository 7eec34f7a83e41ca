"""What masks would move and leave, on a pilot (004, Protocol 2 and section 4).

For each confidential attribute masks of rising width are drawn for all of the pilot's people and
mapped back by rank, as the study does. Beside each stand, measured on the same people: a trusted
curator who draws the same masks and publishes what is mapped back, but no masked value; and, of
numbers, noise that each adds alone, as wide as it takes to leave as much open, mapped to nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mpc_rr.anonymization.alone import where_as_safe
from mpc_rr.anonymization.beside import Columns, relations
from mpc_rr.anonymization.deciding import fewest_for_anybody
from mpc_rr.anonymization.permutation import permutation
from mpc_rr.anonymization.perturbation import (
    Noise,
    NoPerturbation,
    Perturbation,
    RankSwap,
    read_perturbation,
)
from mpc_rr.anonymization.table import Codes, Microdata
from mpc_rr.anonymization.together import all_together, left_by_order
from mpc_rr.planning.crowds import Effort
from mpc_rr.planning.hiding import MOST_PEOPLE, Figure, draws, shuffled
from mpc_rr.protocols.collaborative_masking import CollaborativeMasking
from mpc_rr.randomness import SeededRandomness
from mpc_rr.schema import Attribute, Schema

STUDY, CURATOR = "this study", "a curator, same masks"
AS_SAFE_CURATOR, ALONE = "a curator, same risk", "each masks alone, same risk"
TIMES = (0.25, 0.5, 1.0, 2.0, 4.0)
"""Masks are so many times as wide as the recommended one."""
SWAPS = ("swap:2", "swap:5", "swap:10", "swap:25", "swap:50")
"""Tried where none is recommended."""
WIDTHS = tuple(np.geomspace(1e-3, 1.0, 19).tolist())
"""Of noise that is added alone, as shares of the attribute's range."""


@dataclass(frozen=True)
class Measured:
    """What a mask moves and leaves, among some people."""

    moved: float
    """How far people are moved in rank on average, as a share of all ranks."""
    correlation: float | None
    """Of ranks before and after; None where all values are equal."""
    relations: float | None
    """How far relations to all other attributes are from the true ones, on average."""
    margin: float | None
    """How far the values that are told are from the true ones once both are put in order: the mean
    distance in standard deviations. 0 where they are mapped back."""
    guessed: float
    """How often who puts everything together, and guesses among what is possible, names a person's
    value."""
    fewest: float
    """So many values are possible for each at least."""
    given_away: float
    """The share of people for whom one value alone is possible."""


@dataclass(frozen=True)
class Way:
    """A mask, or what stands beside it, measured on each of several populations."""

    name: str
    attribute: str
    mask: str
    found: tuple[Measured | None, ...]
    """None: no noise is wide enough."""
    for_anybody: Figure | None = None
    """So many values remain at least to who sees one masked value, whoever used this mask."""

    def figure(self, name: str) -> Figure:
        """One of its figures, by its name."""
        return Figure(tuple(None if each is None else getattr(each, name) for each in self.found))


@dataclass(frozen=True)
class MasksPlan:
    """What masks of rising width would move and leave, beside other ways."""

    people: int
    pilot: int
    populations: int
    asked: int
    recommended: dict[str, str]
    ways: tuple[Way, ...]

    def way(self, name: str, attribute: str, mask: str) -> Way | None:
        """A way, if it was tried."""
        wanted = (name, attribute, mask)
        return next((w for w in self.ways if (w.name, w.attribute, w.mask) == wanted), None)


@dataclass(frozen=True)
class People:
    """Some people whose answers are known, of whom one attribute is masked."""

    records: Microdata
    place: int
    rng: SeededRandomness

    @property
    def attribute(self) -> Attribute:
        """That is masked."""
        return self.records.attributes[self.place]

    @property
    def answered(self) -> Codes:
        """Who has a value to mask, in rising order of it; equal ones in an order that is drawn."""
        there = np.flatnonzero(~self.records.unanswered[:, self.place])
        there = there[shuffled(len(there), self.rng.fork("ties"))]
        order: Codes = there[np.argsort(self.records.codes[there, self.place], kind="stable")]
        return order

    @property
    def values(self) -> Codes:
        """Theirs."""
        own: Codes = self.records.codes[self.answered, self.place]
        return own

    def relations_lost(self, told: Codes) -> float | None:
        """How far relations to all other attributes are off if these values are told."""
        true = Columns.of(self.records)
        column = true.values[self.place].copy()
        column[self.answered] = told
        values = (*true.values[: self.place], column, *true.values[self.place + 1 :])
        masked, name = Columns(true.attributes, values, true.weights), self.attribute.name
        off = [
            abs(each.true - (each.released or 0.0))
            for each in relations(true, masked)
            if each.true is not None and name in (each.first, each.second)
        ]
        return sum(off) / len(off) if off else None

    def measured(self, told: Codes, left: Sequence[int]) -> Measured:
        """Of what is told of those who answered, in rising order of their true values."""
        true = self.values
        found, spread = permutation(true, told), float(true.std())
        apart = float(np.abs(np.sort(told) - true).mean())
        sizes = np.array(left)
        return Measured(
            found.distance, found.correlation, self.relations_lost(told),
            apart / spread if spread else None,
            float((1 / sizes).mean()), float(sizes.min()), float((sizes == 1).mean()),
        )  # fmt: skip


def plan_masks(
    protocol: CollaborativeMasking, schema: Schema, pilot: Codes, n: int, effort: Effort
) -> MasksPlan:
    """Try out masks of rising width on people of a pilot."""
    rng = SeededRandomness(effort.seed).fork("masking")
    crowd = draws(pilot, min(n, effort.people or MOST_PEOPLE), effort.populations, rng)
    ways: list[Way] = []
    recommended = {name: protocol.masks.get(name, "none") for name in protocol.confidential}
    for done, name in enumerate(protocol.confidential, start=1):
        place = schema.names.index(name)
        people = [
            People(Microdata(schema.attributes, codes), place, rng.fork(f"{name} {number}"))
            for number, codes in enumerate(crowd)
        ]
        if all(len(each.answered) > 1 for each in people):
            ways += _of_attribute(people, recommended[name])
        if effort.progress is not None:
            effort.progress(done, len(protocol.confidential))
    return MasksPlan(len(crowd[0]), len(pilot), len(crowd), n, recommended, tuple(ways))


def _of_attribute(people: Sequence[People], recommended: str) -> list[Way]:
    attribute, tried = people[0].attribute, masks_to_try(recommended, people[0].attribute)
    masks = [read_perturbation(words, attribute) for words in tried]
    studies, curators = [], []
    for mask in masks:
        both = [of_study(each, mask) for each in people]
        studies.append(tuple(pair[0] for pair in both))
        curators.append(tuple(pair[1] for pair in both))
    steps = {AS_SAFE_CURATOR: _steps(people, curators)}
    if attribute.numeric:
        steps[ALONE] = [_alone(each) for each in people]
    found = []
    for place, (words, mask) in enumerate(zip(tried, masks, strict=True)):
        least = tuple(float(fewest_for_anybody(mask, each.values.tolist())) for each in people)
        found.append(Way(STUDY, attribute.name, words, studies[place], Figure(least)))
        found.append(Way(CURATOR, attribute.name, words, curators[place]))
        for name, of_each in steps.items():
            pairs = zip(of_each, studies[place], strict=True)
            as_safe = tuple(_as_safe_as(wider, own.guessed) for wider, own in pairs)
            found.append(Way(name, attribute.name, words, as_safe))
    return found


def _steps(
    people: Sequence[People], curators: Sequence[tuple[Measured, ...]]
) -> list[list[Measured]]:
    """A curator's releases, of values as they are and then of each mask."""
    return [
        [each.measured(each.values, [1] * len(each.values)), *(found[p] for found in curators)]
        for p, each in enumerate(people)
    ]


def masks_to_try(recommended: str, attribute: Attribute) -> list[str]:
    """The recommended mask, and the same narrower and wider; swaps where none is recommended."""
    mask = read_perturbation(recommended, attribute)
    if isinstance(mask, NoPerturbation):
        return [recommended, *SWAPS]
    amount = float(recommended.partition(":")[2])
    if isinstance(mask, RankSwap):
        every = [min(amount * times, 100.0) for times in TIMES]
        return list(dict.fromkeys(_words("swap", each, amount, recommended) for each in every))
    assert isinstance(mask, Noise)
    assert attribute.step is not None
    steps = [round(amount * times / attribute.step) for times in TIMES]
    widths = [min(max(each, 1), attribute.answers_possible) * attribute.step for each in steps]
    return list(dict.fromkeys(_words("noise", each, amount, recommended) for each in widths))


def _words(kind: str, amount: float, own: float, recommended: str) -> str:
    return recommended if amount == own else f"{kind}:{amount:.10g}"


def of_study(people: People, mask: Perturbation) -> tuple[Measured, Measured]:
    """What the study's release and masked values tell, and what a curator's release would."""
    rng = people.rng.fork(repr(mask))
    ordered = people.values
    masked = mask.draw_each(ordered, rng)
    ranks = np.empty(len(ordered), dtype=np.int64)
    ranks[np.lexsort((rng.words((len(ordered),)), masked))] = np.arange(len(ordered))
    told = ordered[ranks]
    together = all_together(masked.tolist(), ordered.tolist(), mask)
    rows = left_by_order(ordered.tolist(), mask)
    study = people.measured(told, [len(left) for left in together.possible])
    curator = people.measured(told, [len(rows[rank]) for rank in ranks.tolist()])
    return study, curator


def _alone(people: People) -> list[Measured]:
    """Noise of rising width, the values told as they are masked."""
    attribute = people.attribute
    ordered, rng = people.values, people.rng.fork("alone")
    drawn, found = rng.uniform((len(ordered),)), []
    whole = attribute.answers_possible - 1
    for width in sorted({0, *(max(round(share * whole), 1) for share in WIDTHS)}):
        masked = ordered + np.floor(drawn * (2 * width + 1)).astype(np.int64) - width
        left = all_together(masked.tolist(), ordered.tolist(), Noise(width)).possible
        found.append(people.measured(masked, [len(values) for values in left]))
    return found


def _as_safe_as(steps: Sequence[Measured], guessed: float) -> Measured | None:
    """Where a value is named as often as otherwise; between two widths it is interpolated."""
    risks = [each.guessed for each in steps]

    def at(values: Sequence[float | None]) -> float | None:
        known = [value for value in values if value is not None]
        return where_as_safe(risks, known, guessed) if len(known) == len(risks) else None

    moved, told = at([each.moved for each in steps]), at(risks)
    if moved is None or told is None:
        return None
    return Measured(
        moved, at([each.correlation for each in steps]), at([each.relations for each in steps]),
        at([each.margin for each in steps]), told,
        at([each.fewest for each in steps]) or 1.0, at([each.given_away for each in steps]) or 0.0,
    )  # fmt: skip
