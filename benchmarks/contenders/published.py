"""mpc-rr: what a study publishes, through the seam through which it does."""

from collections.abc import Sequence

import numpy as np

from benchmarks.contenders.tables import Attributes, Table
from benchmarks.harness.studies import schema_of
from mpc_rr.estimation.designs import Design, Fitted
from mpc_rr.estimation.estimates import Estimates
from mpc_rr.estimation.matrix import Array, Codes
from mpc_rr.estimation.views import FittedViews
from mpc_rr.protocols.rr_views import RRViews
from mpc_rr.randomness import SeededRandomness


def wider_table(estimates: Estimates, attributes: Attributes) -> Array:
    """Of three attributes and more: of the model where there is no population, as up to rules 3."""
    return estimates.model.table(attributes) if estimates.earlier else estimates.table(attributes)


def published(estimates: Estimates) -> Table:
    """Tables of pairs are worked out at once, wider ones when they are asked for."""
    pairs = estimates.pair_tables

    def table(attributes: Attributes) -> Array:
        if len(attributes) == 2:
            return pairs[attributes[0], attributes[1]]
        return wider_table(estimates, attributes)

    return table


def collect_views(
    codes: Codes, sizes: Sequence[int], epsilon: float, rng: np.random.Generator
) -> FittedViews:
    """By the design that `rr_views` has for these attributes and this budget."""
    design = RRViews(epsilon=epsilon).design(schema_of(sizes), len(codes))
    return FittedViews(design, design.randomize(codes, SeededRandomness.from_generator(rng)))


def collect_records(
    codes: Codes, sizes: Sequence[int], design: Design, rng: np.random.Generator
) -> Fitted:
    """Full reports by a design."""
    assert design.sizes == tuple(sizes)
    return Fitted(design, design.randomize(codes, SeededRandomness.from_generator(rng)))


def of_views(fitted: FittedViews) -> Table:
    """As `rr_views` publishes."""
    return published(Estimates(schema_of(fitted.design.sizes), fitted))


def of_records(fitted: Fitted) -> Table:
    """As all who randomize records publish."""
    return published(Estimates(schema_of(fitted.design.sizes), fitted))
