"""Which design for which budget: what each would publish, tried out before anybody is asked.

People are invented (or drawn from a pilot), answer by each design, and what the study would publish
of them is compared with their true tables: the mean L1 distance of the tables of pairs. It is what
randomizing costs, against the true tables of those who answer, not of a population they are drawn
from. How strongly answers depend on each other is not known beforehand, so each design has a range:
from weak to strong dependence.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from mpc_rr.errors import InputError
from mpc_rr.estimation.clusters import Clusters
from mpc_rr.estimation.planning import LARGEST_TOTAL
from mpc_rr.planning.crowds import (
    FEWEST_POPULATIONS,
    STRENGTHS,
    Crowds,
    Effort,
    Outlook,
    Strengths,
    as_good,
    simplest_of_the_best,
)
from mpc_rr.planning.designs import (
    ASK_NOBODY,
    MARGINS,
    WITHOUT_TABLES,
    BlockOptions,
    PlannedDesign,
    nobody_asked,
    planned_designs,
    schema_of,
    setting_of,
)
from mpc_rr.publication.ending import Setting
from mpc_rr.schema import Schema

TRUST = 0.2
"""Nine of ten errors predicted for the right dependence were off by no more than this share
(``benchmarks/planning.py``)."""
TYPICAL = "middling"
SMALLEST = 0.05
WORST = 2.0
"""The largest L1 distance of two distributions."""
STEPS = 7
"""Of the bisection between the smallest and the largest budget, as ratios: to within 6 %."""


@dataclass(frozen=True)
class Known:
    """What is known before anybody is asked."""

    clusters: Clusters | None = None
    """Attributes that depend on each other; the others stand alone."""
    blocks: BlockOptions | None = None
    """What a study by blocks wants."""
    pilot: npt.ArrayLike | None = None
    """True records like those of the people who will be asked."""
    study: Setting | None = None
    """The study, if there is one, with as many people as are planned."""

    def setting(self, schema: Schema, n: int) -> Setting:
        """The study's own, or that of one that needs all who are asked."""
        return setting_of(schema, n) if self.study is None else self.study

    def crowds(self, schema: Schema, n: int, effort: Effort, strengths: Strengths) -> Crowds:
        """People drawn from the pilot, or else invented."""
        if self.pilot is None:
            return Crowds.guessed(schema, n, effort, strengths)
        return Crowds.like(np.asarray(self.pilot), schema, n, effort)

    def designs(
        self, schema: Schema, n: int, epsilon: float
    ) -> tuple[list[PlannedDesign], dict[str, str]]:
        """All that spend ε, and why others cannot be had."""
        return planned_designs(
            schema, n, epsilon, clusters=self.clusters, blocks=self.blocks, study=self.study
        )


NOTHING, USUAL = Known(), Effort()


@dataclass(frozen=True)
class Plan:
    """Designs that spend the same, and what each promises."""

    n: int
    epsilon: float
    outlooks: tuple[Outlook, ...]
    """By error, the smallest first."""
    recommended: Outlook
    """As good as the best over all strengths, and no simpler one is."""
    tables: Outlook
    """The same among those that publish tables of two."""
    refused: Mapping[str, str]
    """Designs that cannot be had at this budget, and why."""
    crowds: Crowds
    """The people on whom all were tried out."""
    setting: Setting
    """The study, as its protocol sees it."""
    pilot: int | None = None
    """How many people the pilot has, if there is one."""

    @property
    def simulated(self) -> int:
        """How many people answered in each population; perhaps fewer than are planned."""
        return self.crowds.effort.people_of(self.n)

    @property
    def nobody(self) -> Outlook:
        """What is known before anybody is asked."""
        return next(found for found in self.outlooks if found.name == ASK_NOBODY)

    @property
    def margins(self) -> Outlook:
        """What publishing shares of single answers alone would give."""
        return next(found for found in self.outlooks if found.name == MARGINS)

    @property
    def margins_are_as_good(self) -> list[str]:
        """The strengths at which shares of single answers are as good as the best tables.

        At least one if shares alone are recommended, else not all: means of errors compare so.
        """
        least = self.best_tables.predicted
        return [
            word
            for word, found in self.margins.predicted.items()
            if as_good(found.error, least[word].error, self.simulated)
        ]

    @property
    def best_tables(self) -> Outlook:
        """The smallest error, over all strengths, of designs that publish tables of two."""
        return next(found for found in self.outlooks if found.name not in WITHOUT_TABLES)


def plan(
    asked: Schema | Sequence[int],
    n: int,
    epsilon: float,
    known: Known = NOTHING,
    effort: Effort = USUAL,
) -> Plan:
    """All designs at this budget per record, tried out.

    ``asked``: a schema, or the numbers of categories.
    """
    schema = _checked(asked, n)
    if not 0 < epsilon <= LARGEST_TOTAL:
        raise InputError(
            f"the budget epsilon must be positive and at most {LARGEST_TOTAL:g}, not {epsilon}"
        )
    designs, refused = known.designs(schema, n, epsilon)
    crowds = known.crowds(schema, n, effort, STRENGTHS)
    outlooks, hopeless = crowds.try_out([nobody_asked(), *designs])
    with_tables = [found for found in outlooks if found.name not in WITHOUT_TABLES]
    if not with_tables:
        why = "; ".join(f"{name}: {reason}" for name, reason in (refused | hopeless).items())
        raise InputError(f"no design publishes tables at this budget: {why}")
    people = effort.people_of(n)
    return Plan(
        n=n,
        epsilon=epsilon,
        outlooks=tuple(sorted(outlooks, key=lambda found: found.error)),
        recommended=simplest_of_the_best(outlooks, people),
        tables=simplest_of_the_best(with_tables, people),
        refused=refused | hopeless,
        crowds=crowds,
        setting=known.setting(schema, n),
        pilot=None if known.pilot is None else len(np.asarray(known.pilot)),
    )


def budget_for_error(
    asked: Schema | Sequence[int],
    n: int,
    error: float,
    known: Known = NOTHING,
    effort: Effort = USUAL,
) -> float:
    """The smallest ε with which some design reaches the wished error, to within 6 %.

    For middling dependence, or that of a pilot; with as few populations as tell anything. What
    shares of single answers reach alone counts, too.
    """
    schema = _checked(asked, n)
    if not 0 < error < WORST:
        raise InputError(
            f"the target error lies between 0 (exact) and {WORST:g} (the worst there is), not "
            f"{error:g}"
        )
    typical = {TYPICAL: STRENGTHS[TYPICAL]}
    quick = replace(effort, populations=FEWEST_POPULATIONS)
    crowds = known.crowds(schema, n, quick, typical)

    def reached(epsilon: float) -> bool:
        return crowds.any_reaches(known.designs(schema, n, epsilon)[0], error)

    if not reached(LARGEST_TOTAL):
        raise InputError(
            f"an error of {error:.3g} needs a budget beyond ε = {LARGEST_TOTAL:g}, which protects "
            "nobody; ask more people or fewer questions"
        )
    low, high = math.log(SMALLEST), math.log(LARGEST_TOTAL)
    for _ in range(STEPS):
        middle = (low + high) / 2
        low, high = (low, middle) if reached(math.exp(middle)) else (middle, high)
    return math.exp(high)


def _checked(asked: Schema | Sequence[int], n: int) -> Schema:
    if n < 2:
        raise InputError(f"planning needs at least two respondents, not {n}")
    if isinstance(asked, Schema):
        return asked
    if len(asked) < 2 or min(asked) < 2:
        raise InputError("planning needs at least two attributes with two categories each")
    return schema_of(asked)
