"""What can be said from the randomized records of a study: marginals, pairs, any count, synthesis.

Everything here follows from the public reports and the design alone, so the coordinator, a party
and an outsider who has the result folder get the same numbers.
"""

import math
from collections.abc import Mapping, Sequence
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
from mpc_rr.estimation.full_reports import MOST_IN_ONE_POPULATION, Known, fit_reports
from mpc_rr.estimation.intervals import Limits, subset_intervals
from mpc_rr.estimation.latent import LatentClasses, latent_classes
from mpc_rr.estimation.matrix import Array, Codes, Uniform
from mpc_rr.estimation.planning import pairs_of
from mpc_rr.estimation.population import Population
from mpc_rr.estimation.raking import Adjustment, adjust
from mpc_rr.estimation.strength import Strength, degree_of, strength
from mpc_rr.estimation.tables import shrunk
from mpc_rr.estimation.uncertainty import (
    ExactCounts,
    PartOfReports,
    RandomizedReports,
    Subsets,
    Target,
    Uncertainty,
    ViewReports,
)
from mpc_rr.estimation.view_population import fit_views
from mpc_rr.estimation.views import FittedViews, ViewDesign
from mpc_rr.schema import Attribute, Schema


def all_counted(known: Known) -> bool:
    """Whether a first stage counted these respondents, so that its tables are exact."""
    return bool(known) and not any(table.standard_errors.any() for table in known.values())


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

    def with_share(self, share: float, n: int) -> "QueryAnswer":
        """The same with another share, in limits that are wide enough to hold it."""
        (low, high), (least, most) = self.interval, self.population
        return replace(
            self,
            count=n * share,
            share=share,
            interval=(min(low, n * share), max(high, n * share)),
            population=(min(least, share), max(most, share)),
        )


class Estimates:
    """The estimates of one study whose parties reported randomized records, or views of them."""

    def __init__(
        self,
        schema: Schema,
        fitted: Fitted | FittedViews,
        known: Known | None = None,
        *,
        earlier: bool = False,
    ) -> None:
        """``known``: tables of the same respondents that were found before (not of views).

        ``earlier``: as up to rules 3, when every table was estimated by itself.
        """
        self.schema, self.fitted, self.known, self.earlier = schema, fitted, known, earlier
        self._unbiased: dict[tuple[int, ...], Estimate] = {}

    @property
    def n(self) -> int:
        """How many answered."""
        return self.fitted.n

    @cached_property
    def population(self) -> Population:
        """One weighted population that everything is counted in (see docs/estimation.md)."""
        if isinstance(self.fitted, FittedViews):
            return fit_views(self.fitted.design, self.fitted.reports).population
        return fit_reports(self.fitted, self.known)

    @property
    def too_wide(self) -> int | None:
        """The number of categories, if these are too many for one population.

        Then there are the tables of single attributes, each by itself, and no others.
        """
        if self.earlier or isinstance(self.fitted, FittedViews) or all_counted(self.known or {}):
            return None
        width = self.fitted.design.width
        return width if width > MOST_IN_ONE_POPULATION else None

    @cached_property
    def model(self) -> LatentClasses:
        """The model of the joint distribution that tables were drawn towards up to rules 3."""
        return latent_classes(self.fitted.answers(), self.schema.sizes, self.n)

    def marginals(self) -> list[Marginal]:
        """Eq. (2) for each attribute that somebody reported."""
        found = []
        for place, attribute in enumerate(self.schema.attributes):
            if self.fitted.told_together((place,)):
                estimate = self.unbiased(place)
                found.append(Marginal(place, attribute, estimate, self.table((place,))))
        return found

    def unbiased(self, *attributes: int) -> Estimate:
        """The unbiased table of some attributes, worked out once."""
        if attributes not in self._unbiased:
            counted = self._counted(attributes)
            self._unbiased[attributes] = (
                self.fitted.unbiased(attributes)
                if counted is None
                else Estimate(counted, np.sqrt(counted * (1 - counted) / self.n), self.n)
            )
        return self._unbiased[attributes]

    def uncertainty(self, attributes: Sequence[int]) -> Uncertainty:
        """Of the unbiased table of some attributes, in the ``order`` in which they were reported.

        Only of the population, where these very respondents were counted.
        """
        if self._counted(attributes) is not None:
            return ExactCounts(self.n)
        return uncertainty_of(self.fitted, attributes)

    def _counted(self, attributes: Sequence[int]) -> Array | None:
        """The shares of one or two attributes, if a first stage counted these respondents."""
        for own, found in ({} if self.earlier else self.known or {}).items():
            if set(attributes) <= set(own) and not found.standard_errors.any():
                others = tuple(axis for axis, a in enumerate(own) if a not in attributes)
                left = [a for a in own if a in attributes]
                shares = found.shares.sum(axis=others)
                return np.asarray(shares.transpose([left.index(a) for a in attributes]))
        return None

    def limits(self, attributes: Sequence[int]) -> Limits:
        """Of the unbiased table of some attributes."""
        order = self.fitted.order(attributes)
        found = Limits.of(self.unbiased(*order).shares, self.uncertainty(order))
        return found.transposed([order.index(a) for a in attributes])

    @cached_property
    def pairs_told(self) -> list[tuple[int, int]]:
        """The pairs of attributes that somebody reported together."""
        return [pair for pair in pairs_of(self.schema.sizes) if self.fitted.told_together(pair)]

    def table(self, attributes: Sequence[int]) -> Array:
        """The proper joint distribution of some attributes."""
        if self.earlier:
            return project_to_simplex(self.unbiased(*attributes).shares)
        found = self._without_population(attributes)
        return self.population.table(attributes) if found is None else found

    def _without_population(self, attributes: Sequence[int]) -> Array | None:
        """What a first stage counted; the table of one attribute where there is no population."""
        counted = self._counted(attributes)
        if counted is None and self.too_wide is not None and len(attributes) == 1:
            return project_to_simplex(self.unbiased(*attributes).shares)
        return counted

    @cached_property
    def pair_tables(self) -> dict[tuple[int, int], Array]:
        """The tables of all pairs."""
        if self.earlier:
            return self._overruled_models()
        return {pair: self.table(pair) for pair in pairs_of(self.schema.sizes)}

    def _overruled_models(self) -> dict[tuple[int, int], Array]:
        """The model's tables, overruled by what is not noise.

        A pair that nobody reported together is the model's alone.
        """
        tables = {pair: self.model.table(pair) for pair in pairs_of(self.schema.sizes)}
        return tables | {
            pair: shrunk(self.unbiased(*pair), tables[pair]) for pair in self.pairs_told
        }

    def strengths(self, of: Target = "population") -> dict[tuple[int, int], Strength]:
        """How strongly each pair that was reported together depends on each other.

        The degree is that of the pair's table, its limits are those of the reports, wide enough to
        hold it. (Up to rules 3 it was that of the reports, too.)
        """
        found = {}
        for pair in self.pairs_told:
            both = (self.schema.attributes[pair[0]], self.schema.attributes[pair[1]])
            told = strength(self.unbiased(*pair).shares, self.uncertainty(pair), both, of)
            if told.value is not None and not self.earlier:
                told = told.around(degree_of(self.pair_tables[pair], both))
            found[pair] = told
        return found

    def query(self, condition: Condition, level: float = 0.95) -> QueryAnswer:
        """The number of respondents who meet a condition, with its limits.

        Counted in the population. The limits are those of the reports on the attributes that it
        depends on, and no others, wide enough to hold that number.
        """
        cells = checked_cells(condition, self.schema.sizes)
        found = self.asked(cells).answer(level)
        return found if self.earlier else found.with_share(self.share(cells), self.n)

    def share(self, cells: Cells) -> float:
        """Of the population, how many meet a condition."""
        found = self._without_population(cells.attributes)
        if found is not None:
            return float(found[cells.table()].sum())
        people = self.population
        classes = [
            which[people.records[:, a]]
            for a, which in zip(cells.attributes, cells.classes, strict=True)
        ]
        return float(people.weights[cells.meets[tuple(classes)]].sum())

    def asked(self, cells: Cells) -> "Asked":
        """What the reports on the attributes of a condition tell of it by themselves.

        Or what a first stage counted.
        """
        fitted, counted = self.fitted, self._counted(cells.attributes)
        if counted is not None:
            return Asked.of(counted, ExactCounts(self.n), cells.table())
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
        """Synthetic records, drawn from the population."""
        if rows < 1:
            raise InputError(f"the number of rows must be positive, not {rows}")
        people = self.model if self.earlier else self.population
        return people.synthesize(rows, uniform)


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
        who = "everyone meets" if cells.always else "nobody can meet"
        raise InputError(f"{who} this condition, whatever was answered")
    return cells


@dataclass(frozen=True)
class RecordWeights:
    """The weights of RR-Adjustment (000 §5), and how the adjustment ended."""

    weights: Array
    """Of each reported record, summing to 1."""
    adjustment: Adjustment

    @property
    def effective(self) -> float:
        """Kish's effective sample size: so many equal weights would leave as little to chance."""
        return float(1 / (self.weights**2).sum())


def adjusted_weights(fitted: Fitted) -> RecordWeights:
    """RR-Adjustment (000 §5): the weight of each reported record."""
    clusters = fitted.design.clusters
    margins = [(cluster, fitted.cluster_joint(cluster)) for cluster in clusters]
    adjustment = adjust(fitted.reported, margins, fitted.design.sizes)
    place = {tuple(row): k for k, row in enumerate(adjustment.records.tolist())}
    which = [place[tuple(row)] for row in fitted.reported.tolist()]
    times = np.bincount(which, minlength=len(adjustment.weights))
    return RecordWeights(np.asarray(adjustment.weights[which] / times[which]), adjustment)


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
    return view_reports(fitted.n, fitted.design, fitted.reports.answered, attributes)


def view_reports(
    n: int,
    design: ViewDesign,
    answered: Mapping[tuple[int, ...], int],
    attributes: Sequence[int],
) -> ViewReports:
    """Of the table of some attributes, where so many answered each view."""
    cells = math.prod(design.sizes[a] for a in attributes)
    parts = []
    for view, weight in design.holding(answered, attributes):
        mechanism = design.mechanisms[view]
        parts.append(PartOfReports(weight, answered[view], mechanism, mechanism.size // cells))
    return ViewReports(n, tuple(parts))
