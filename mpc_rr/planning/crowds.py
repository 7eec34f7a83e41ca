"""People on whom designs are tried out, and the errors of what would be published of them."""

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from mpc_rr.errors import InputError
from mpc_rr.estimation.designs import check_records
from mpc_rr.estimation.guessing import PairTables, guessed_population, mean_dependence
from mpc_rr.estimation.matrix import Codes, MatrixError, Uniform
from mpc_rr.estimation.pairs import PairLayout
from mpc_rr.planning.designs import PlannedDesign
from mpc_rr.randomness import SeededRandomness
from mpc_rr.schema import Schema

Strengths = Mapping[str, float]
STRENGTHS: Strengths = {"weak": 0.05, "middling": 0.15, "strong": 0.30}
"""How far tables of pairs are from independence, on average, by the word for it."""
PILOT = "pilot"
MOST_PEOPLE = 50_000
"""More are not simulated, unless that is asked for."""
PEOPLE_IN_ALL = 20_000
"""So many people at least are simulated for each strength, in two populations or more."""
MOST_POPULATIONS = 8
FEWEST_POPULATIONS = 2
AS_GOOD = 0.05
"""An error is as good as another that it exceeds by no more than this share, or by half a person
in a wrong cell: so much may a simpler design cost. Chance in the simulation is no reason to take
one."""

Progress = Callable[[int, int], None]
"""Told how much is done, of how much."""


@dataclass(frozen=True)
class Effort:
    """How much is simulated: for each strength so many populations, of so many people each."""

    populations: int | None = None
    people: int | None = None
    seed: int = 0
    progress: Progress | None = None

    def __post_init__(self) -> None:
        if self.populations is not None and self.populations < FEWEST_POPULATIONS:
            raise InputError(f"at least {FEWEST_POPULATIONS} populations tell how sure a plan is")
        if self.people is not None and self.people < 2:
            raise InputError(f"at least two people must be simulated, not {self.people}")

    def people_of(self, n: int) -> int:
        """How many are simulated of n, in each population."""
        return min(n, self.people or MOST_PEOPLE)

    def populations_of(self, n: int) -> int:
        """The fewer people, the more populations: chance is the larger."""
        if self.populations is not None:
            return self.populations
        return min(max(PEOPLE_IN_ALL // self.people_of(n), FEWEST_POPULATIONS), MOST_POPULATIONS)


class People(Protocol):
    """Where people are drawn from."""

    def draw(self, n: int, uniform: Uniform) -> Codes:
        """So many."""


@dataclass(frozen=True)
class Pilot:
    """People of a pilot study, of whom others are drawn, with replacement."""

    records: Codes

    def draw(self, n: int, uniform: Uniform) -> Codes:
        """So many."""
        drawn = (uniform((n,)) * len(self.records)).astype(np.int64)
        return np.asarray(self.records[np.minimum(drawn, len(self.records) - 1)])


@dataclass(frozen=True)
class Predicted:
    """The error of what a design would publish, over several populations."""

    errors: tuple[float, ...]
    """Of each population: the same ones for all designs."""

    @property
    def error(self) -> float:
        """The mean L1 error of the tables of pairs."""
        return statistics.fmean(self.errors)

    @property
    def standard_error(self) -> float:
        """How uncertain the simulation itself leaves it: from population to population."""
        return standard_error(self.errors)


@dataclass(frozen=True)
class Outlook:
    """A design, and what it promises for each strength of dependence."""

    design: PlannedDesign
    predicted: Mapping[str, Predicted]

    @property
    def name(self) -> str:
        """Of the design."""
        return self.design.name

    @property
    def error(self) -> float:
        """Over all strengths, on average."""
        return statistics.fmean(found.error for found in self.predicted.values())


def as_good(error: float, least: float, people: int) -> bool:
    """Whether one predicted error of tables of so many people is as good as the smallest."""
    return error <= least + tolerance(least, people)


def tolerance(least: float, people: int) -> float:
    """By how much an error may exceed the smallest one; half a person in a wrong cell is 1/n."""
    return max(AS_GOOD * least, 1 / people)


def standard_error(values: Sequence[float]) -> float:
    """Of the mean; infinite of a single one."""
    if len(values) < 2:
        return math.inf
    return statistics.stdev(values) / math.sqrt(len(values))


def simplest_of_the_best(outlooks: Sequence[Outlook], people: int) -> Outlook:
    """Of outlooks by rising complexity: the first that is as good as the best."""
    least = min(found.error for found in outlooks)
    return next(found for found in outlooks if as_good(found.error, least, people))


@dataclass(frozen=True)
class Crowd:
    """Simulated people, and their true tables."""

    strength: str
    records: Codes
    truth: PairTables
    number: int
    """Among those of the same strength."""


@dataclass(frozen=True)
class Crowds:
    """All people on whom designs are tried out: the same for each."""

    schema: Schema
    crowds: tuple[Crowd, ...]
    effort: Effort

    @classmethod
    def guessed(
        cls, schema: Schema, n: int, effort: Effort, strengths: Strengths = STRENGTHS
    ) -> "Crowds":
        """People of several populations for each strength of dependence."""
        sources: list[tuple[str, People]] = [
            (word, guessed_population(schema.sizes, dependence, effort.seed + number))
            for word, dependence in strengths.items()
            for number in range(effort.populations_of(n))
        ]
        return cls._drawn(schema, n, effort, sources)

    @classmethod
    def like(cls, pilot: Codes, schema: Schema, n: int, effort: Effort) -> "Crowds":
        """People like those of a pilot."""
        source = Pilot(check_records(pilot, schema.sizes))
        return cls._drawn(schema, n, effort, [(PILOT, source)] * effort.populations_of(n))

    @classmethod
    def _drawn(
        cls, schema: Schema, n: int, effort: Effort, sources: Sequence[tuple[str, People]]
    ) -> "Crowds":
        crowds: list[Crowd] = []
        for word, source in sources:
            number = sum(crowd.strength == word for crowd in crowds)
            rng = SeededRandomness(effort.seed).fork(f"people {word} {number}")
            records = source.draw(effort.people_of(n), rng.uniform)
            crowds.append(Crowd(word, records, true_tables(records, schema.sizes), number))
        return cls(schema, tuple(crowds), effort)

    @property
    def dependence(self) -> dict[str, float]:
        """How far the true tables are from independence, on average, for each strength."""
        found: dict[str, list[float]] = {}
        for crowd in self.crowds:
            found.setdefault(crowd.strength, []).append(mean_dependence(crowd.truth.values()))
        return {strength: statistics.fmean(values) for strength, values in found.items()}

    def try_out(self, designs: Sequence[PlannedDesign]) -> tuple[list[Outlook], dict[str, str]]:
        """What each design promises; or that nothing can be estimated from its reports."""
        outlooks, hopeless = [], {}
        for number, design in enumerate(designs):
            found: dict[str, list[float]] = {}
            try:
                for place, crowd in enumerate(self.crowds):
                    if self.effort.progress is not None:
                        done = number * len(self.crowds) + place
                        self.effort.progress(done, len(designs) * len(self.crowds))
                    found.setdefault(crowd.strength, []).append(self._error(design, crowd))
            except MatrixError as error:
                hopeless[design.name] = str(error)
                continue
            by_strength = {word: Predicted(tuple(errors)) for word, errors in found.items()}
            outlooks.append(Outlook(design, by_strength))
        return outlooks, hopeless

    def any_reaches(self, designs: Sequence[PlannedDesign], error: float) -> bool:
        """Whether one of the designs has no larger error, on average; the rest is not tried."""
        for design in designs:
            outlooks, _ = self.try_out([design])
            if outlooks and outlooks[0].error <= error:
                return True
        return False

    def _error(self, design: PlannedDesign, crowd: Crowd) -> float:
        """By the same chance in every plan: it agrees with the search for its budget."""
        label = f"answers {design.name} {crowd.strength} {crowd.number}"
        rng = SeededRandomness(self.effort.seed).fork(label)
        published = design.publish(self.schema, crowd.records, rng).pair_tables
        distances = [
            float(np.abs(published[pair] - truth).sum()) for pair, truth in crowd.truth.items()
        ]
        return math.fsum(distances) / len(distances)


def true_tables(records: Codes, sizes: Sequence[int]) -> PairTables:
    """The shares of every pair of attributes among these people."""
    found = {}
    for i, j in PairLayout(tuple(sizes)).pairs:
        cells = records[:, i] * sizes[j] + records[:, j]
        counts = np.bincount(cells, minlength=sizes[i] * sizes[j])
        found[i, j] = counts.reshape(sizes[i], sizes[j]) / len(records)
    return found
