"""What can be said from the randomized records of a study: marginals, pairs, any count, synthesis.

Everything here follows from the public reports and the design alone, so the coordinator, a party
and an outsider who has the result folder get the same numbers.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import overload

import numpy as np

from mpc_rr.errors import InputError
from mpc_rr.estimation.conditions import Condition
from mpc_rr.estimation.designs import Fitted
from mpc_rr.estimation.distribution import (
    Estimate,
    project_to_simplex,
    subset_share,
    unbiased,
)
from mpc_rr.estimation.intervals import Limits, subset_intervals
from mpc_rr.estimation.latent import LatentClasses, latent_classes
from mpc_rr.estimation.matrix import Array, Codes, Uniform
from mpc_rr.estimation.planning import pairs_of
from mpc_rr.estimation.raking import adjust
from mpc_rr.estimation.strength import Strength, strength
from mpc_rr.estimation.tables import shrunk
from mpc_rr.estimation.uncertainty import (
    PartOfReports,
    RandomizedReports,
    Subsets,
    Target,
    Uncertainty,
    ViewReports,
)
from mpc_rr.estimation.views import FittedViews
from mpc_rr.schema import Attribute, Schema


@dataclass(frozen=True)
class Marginal:
    """One attribute: unbiased shares with standard errors, and a proper distribution."""

    place: int
    """Its number in the schema."""
    attribute: Attribute
    unbiased: Estimate
    shares: Array


@dataclass(frozen=True)
class QueryAnswer:
    """The answer to a count query, with limits at the given level."""

    count: float
    share: float
    standard_error: float
    """Of the share in the population."""
    interval: tuple[float, float]
    """Of the count, among these respondents."""
    population: tuple[float, float]
    """Of the share, in the population that they were drawn from."""


class Estimates:
    """The estimates of one study whose parties reported randomized records, or views of them."""

    def __init__(self, schema: Schema, fitted: Fitted | FittedViews) -> None:
        self.schema, self.fitted = schema, fitted
        self._unbiased: dict[tuple[int, ...], Estimate] = {}

    @property
    def n(self) -> int:
        """How many answered."""
        return self.fitted.n

    @cached_property
    def model(self) -> LatentClasses:
        """A model of the whole joint distribution (see docs/estimation.md)."""
        return latent_classes(self.fitted.answers(), self.schema.sizes, self.n)

    def marginals(self) -> list[Marginal]:
        """Eq. (2) for each attribute that somebody reported."""
        found = []
        for place, attribute in enumerate(self.schema.attributes):
            if self.fitted.told_together((place,)):
                estimate = self.unbiased(place)
                shares = project_to_simplex(estimate.shares)
                found.append(Marginal(place, attribute, estimate, shares))
        return found

    def unbiased(self, *attributes: int) -> Estimate:
        """The unbiased table of some attributes, worked out once."""
        if attributes not in self._unbiased:
            self._unbiased[attributes] = self.fitted.unbiased(attributes)
        return self._unbiased[attributes]

    def limits(self, attributes: Sequence[int]) -> Limits:
        """Of the unbiased table of some attributes."""
        order = self.fitted.order(attributes)
        found = Limits.of(self.unbiased(*order).shares, uncertainty_of(self.fitted, order))
        return found.transposed([order.index(a) for a in attributes])

    @cached_property
    def pairs_told(self) -> list[tuple[int, int]]:
        """The pairs of attributes that somebody reported together."""
        return [pair for pair in pairs_of(self.schema.sizes) if self.fitted.told_together(pair)]

    @cached_property
    def pair_tables(self) -> dict[tuple[int, int], Array]:
        """All pairs by the best estimator: the model, overruled by what is not noise.

        A pair that nobody reported together is the model's alone.
        """
        tables = {pair: self.model.table(pair) for pair in pairs_of(self.schema.sizes)}
        return tables | {
            pair: shrunk(self.unbiased(*pair), tables[pair]) for pair in self.pairs_told
        }

    def strengths(self, of: Target = "population") -> dict[tuple[int, int], Strength]:
        """How strongly each pair that was reported together depends on each other."""
        return {
            (i, j): strength(
                self.unbiased(i, j).shares,
                uncertainty_of(self.fitted, (i, j)),
                (self.schema.attributes[i], self.schema.attributes[j]),
                of,
            )
            for i, j in self.pairs_told
        }

    def query(self, condition: Condition, level: float = 0.95) -> QueryAnswer:
        """The number of respondents who meet a condition, without bias, with its limits."""
        asked = _asked(self.fitted, condition, self.schema.sizes)
        limits = {
            of: subset_intervals(
                np.array([asked.share]), asked.subset, asked.uncertainty, asked.fit, of, level
            )
            for of in ("respondents", "population")
        }
        share = min(max(asked.share, 0.0), 1.0)
        (low, high), (least, most) = (
            (float(found.low[0]), float(found.high[0])) for found in limits.values()
        )
        return QueryAnswer(
            count=self.n * share,
            share=share,
            standard_error=asked.standard_error,
            interval=(self.n * low, self.n * high),
            population=(least, most),
        )

    def synthesize(self, rows: int, uniform: Uniform) -> Codes:
        """Synthetic records, drawn from the model."""
        if rows < 1:
            raise InputError(f"the number of rows must be positive, not {rows}")
        return self.model.synthesize(rows, uniform)


@dataclass(frozen=True)
class _Asked:
    """An unbiased share, and how uncertain it is: as the share of a set of some cells."""

    share: float
    standard_error: float
    uncertainty: Uncertainty
    subset: Subsets
    fit: Array


def _asked(fitted: Fitted | FittedViews, condition: Condition, sizes: tuple[int, ...]) -> _Asked:
    if isinstance(fitted, Fitted):
        counts, matrix = fitted.meeting(condition.wanted)
        all_of_it = np.zeros(counts.shape, dtype=bool)
        all_of_it[(1,) * counts.ndim] = True
        share, error = subset_share(counts, matrix, all_of_it)
        fit = project_to_simplex(unbiased(counts, matrix).shares).ravel()
        uncertainty = RandomizedReports(fitted.n, matrix)
        return _Asked(share, error, uncertainty, all_of_it.reshape(1, -1), fit)
    attributes, wanted = condition.indicator(sizes)
    share, error = fitted.subset(attributes, wanted)
    views = uncertainty_of(fitted, attributes)
    # All values of a view that meet the condition are one cell; there is no need for the others.
    met = ViewReports(
        fitted.n,
        tuple(replace(part, group=part.group * int(wanted.sum())) for part in views.parts),
    )
    return _Asked(share, error, met, np.array([[True]]), np.ones(1))


def adjusted_weights(fitted: Fitted) -> Array:
    """RR-Adjustment (000 §5): the weight of each reported record, summing to 1."""
    clusters = fitted.design.clusters
    margins = [(cluster, fitted.cluster_joint(cluster)) for cluster in clusters]
    adjustment = adjust(fitted.reported, margins, fitted.design.sizes)
    place = {tuple(row): k for k, row in enumerate(adjustment.records.tolist())}
    which = [place[tuple(row)] for row in fitted.reported.tolist()]
    times = np.bincount(which, minlength=len(adjustment.weights))
    return np.asarray(adjustment.weights[which] / times[which])


@overload
def uncertainty_of(fitted: FittedViews, attributes: Sequence[int]) -> ViewReports: ...
@overload
def uncertainty_of(fitted: Fitted, attributes: Sequence[int]) -> RandomizedReports: ...
def uncertainty_of(
    fitted: Fitted | FittedViews, attributes: Sequence[int]
) -> RandomizedReports | ViewReports:
    """Of the unbiased table of some attributes, in the ``order`` in which they were reported."""
    if isinstance(fitted, Fitted):
        return RandomizedReports(fitted.n, fitted.randomization(attributes))
    design, reports = fitted.design, fitted.reports
    cells = math.prod(design.sizes[a] for a in attributes)
    parts = []
    for view, weight in design.holding(reports, attributes):
        mechanism = design.mechanisms[view]
        answered = len(reports.reports[view])
        parts.append(PartOfReports(weight, answered, mechanism, mechanism.size // cells))
    return ViewReports(fitted.n, tuple(parts))
