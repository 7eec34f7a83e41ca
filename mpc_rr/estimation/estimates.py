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

from mpc_rr.errors import InputError, listing, quoted
from mpc_rr.estimation.conditions import Cells, Condition, Truths
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
        """The number of respondents who meet a condition, without bias, with its limits.

        From the reports on the attributes that it depends on, and no others.
        """
        return self._asked(checked_cells(condition, self.schema.sizes)).answer(level)

    def _asked(self, cells: Cells) -> "Asked":
        fitted = self.fitted
        if isinstance(fitted, Fitted):
            counts, matrix, meets = fitted.meeting(cells)
            share, error = subset_share(counts, matrix, meets)
            fit = project_to_simplex(unbiased(counts, matrix).shares).ravel()
            uncertainty = RandomizedReports(fitted.n, matrix)
            return Asked(share, error, uncertainty, meets.reshape(1, -1), fit)
        if not fitted.told_together(cells.attributes):
            names = listing(quoted(self.schema.names[a]) for a in cells.attributes)
            raise InputError(f"nobody reported {names} together, so this cannot be told")
        wanted = cells.table()
        share, error = fitted.subset(cells.attributes, wanted.astype(np.float64))
        views = uncertainty_of(fitted, cells.attributes)
        # All values of a view that meet the condition are one cell; the others are not needed.
        met = ViewReports(
            fitted.n,
            tuple(replace(part, group=part.group * int(wanted.sum())) for part in views.parts),
        )
        return Asked(share, error, met, np.array([[True]]), np.ones(1))

    def synthesize(self, rows: int, uniform: Uniform) -> Codes:
        """Synthetic records, drawn from the model."""
        if rows < 1:
            raise InputError(f"the number of rows must be positive, not {rows}")
        return self.model.synthesize(rows, uniform)


@dataclass(frozen=True)
class Asked:
    """An unbiased share, and how uncertain it is: as the share of a set of some cells."""

    share: float
    standard_error: float
    uncertainty: Uncertainty
    subset: Subsets
    fit: Array

    @classmethod
    def of(cls, estimate: Array, uncertainty: Uncertainty, wanted: Truths) -> "Asked":
        """Of some cells of an unbiased table."""
        subset, fit = wanted.reshape(1, -1), project_to_simplex(estimate.ravel())
        share = float(estimate[wanted].sum())
        variance, _ = uncertainty.cumulants(subset, fit, "population")(
            np.clip(np.array([share]), 0.0, 1.0)
        )
        return cls(share, math.sqrt(max(float(variance[0]), 0.0)), uncertainty, subset, fit)

    def answer(self, level: float) -> QueryAnswer:
        """The share with its limits."""
        (low, high), (least, most) = (
            self._limits("respondents", level), self._limits("population", level)
        )  # fmt: skip
        n, share = self.uncertainty.n, min(max(self.share, 0.0), 1.0)
        return QueryAnswer(
            count=n * share,
            share=share,
            standard_error=self.standard_error,
            interval=(n * low, n * high),
            population=(least, most),
        )

    def _limits(self, of: Target, level: float) -> tuple[float, float]:
        seen = np.array([self.share])
        found = subset_intervals(seen, self.subset, self.uncertainty, self.fit, of, level)
        return float(found.low[0]), float(found.high[0])


def checked_cells(condition: Condition, sizes: Sequence[int]) -> Cells:
    """The cells of a condition; `InputError` if the answers do not matter to it."""
    cells = Cells.of(condition, sizes)
    if cells.always is not None:
        who = "everybody meets" if cells.always else "nobody can meet"
        raise InputError(f"{who} this condition, whatever was answered")
    return cells


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
