"""What can be said from the randomized records of a study: marginals, pairs, any count, synthesis.

Everything here follows from the public reports and the design alone, so the coordinator, a party
and an outsider who has the result folder get the same numbers.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mpc_rr.errors import InputError
from mpc_rr.estimation.conditions import Condition
from mpc_rr.estimation.dependence import Dependence, dependence
from mpc_rr.estimation.designs import Fitted
from mpc_rr.estimation.distribution import Estimate, project_to_simplex
from mpc_rr.estimation.latent import LatentClasses, latent_classes
from mpc_rr.estimation.matrix import Array, Codes, Uniform
from mpc_rr.estimation.planning import pairs_of
from mpc_rr.estimation.raking import adjust
from mpc_rr.estimation.tables import shrunk
from mpc_rr.estimation.views import FittedViews
from mpc_rr.schema import Attribute, Schema


@dataclass(frozen=True)
class Marginal:
    """One attribute: unbiased shares with standard errors, and a proper distribution."""

    attribute: Attribute
    unbiased: Estimate
    shares: Array


@dataclass(frozen=True)
class QueryAnswer:
    """The answer to a count query. ``interval`` is at the given level; 0 to 1 bounds all shares."""

    count: float
    share: float
    standard_error: float
    interval: tuple[float, float]
    """Of the count."""


class Estimates:
    """The estimates of one study whose parties reported randomized records, or views of them."""

    def __init__(self, schema: Schema, fitted: Fitted | FittedViews) -> None:
        self.schema, self.fitted = schema, fitted

    @property
    def n(self) -> int:
        """How many answered."""
        return self.fitted.n

    @cached_property
    def model(self) -> LatentClasses:
        """A model of the whole joint distribution (see docs/estimation.md)."""
        return latent_classes(self.fitted.answers(), self.schema.sizes, self.n)

    def marginals(self) -> list[Marginal]:
        """Eq. (2) for each attribute."""
        found = []
        for index, attribute in enumerate(self.schema.attributes):
            estimate = self.fitted.unbiased((index,))
            found.append(Marginal(attribute, estimate, project_to_simplex(estimate.shares)))
        return found

    @cached_property
    def pair_tables(self) -> dict[tuple[int, int], Array]:
        """All pairs by the best estimator: the model, overruled by what is not noise."""
        return {
            pair: shrunk(self.fitted.unbiased(pair), self.model.table(pair))
            for pair in pairs_of(self.schema.sizes)
        }

    def dependences(self) -> dict[tuple[int, int], Dependence]:
        """How strongly each pair depends on each other, from the estimated tables."""
        ordinal = [attribute.type == "ordinal" for attribute in self.schema.attributes]
        return {
            (i, j): dependence(table * self.n, both_ordinal=ordinal[i] and ordinal[j])
            for (i, j), table in self.pair_tables.items()
        }

    def query(self, condition: Condition, level: float = 0.95) -> QueryAnswer:
        """The number of respondents who meet a condition, without bias, with its interval."""
        attributes, wanted = condition.indicator(self.schema.sizes)
        share, error = self.fitted.subset(attributes, wanted)
        low, high = Estimate(np.array(share), np.array(error), self.n).interval(level)
        limits = np.clip([low, high], 0, 1) * self.n
        clipped = min(max(share, 0.0), 1.0)
        return QueryAnswer(self.n * clipped, clipped, error, (float(limits[0]), float(limits[1])))

    def synthesize(self, rows: int, uniform: Uniform) -> Codes:
        """Synthetic records, drawn from the model."""
        if rows < 1:
            raise InputError(f"the number of rows must be positive, not {rows}")
        return self.model.synthesize(rows, uniform)


def adjusted_weights(fitted: Fitted) -> Array:
    """RR-Adjustment (000 §5): the weight of each reported record, summing to 1."""
    clusters = fitted.design.clusters
    margins = [(cluster, fitted.cluster_joint(cluster)) for cluster in clusters]
    adjustment = adjust(fitted.reported, margins, fitted.design.sizes)
    place = {tuple(row): k for k, row in enumerate(adjustment.records.tolist())}
    which = [place[tuple(row)] for row in fitted.reported.tolist()]
    times = np.bincount(which, minlength=len(adjustment.weights))
    return np.asarray(adjustment.weights[which] / times[which])
