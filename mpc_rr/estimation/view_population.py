"""From reports of views to one population, in which everything that is asked is counted.

The `Tallies` of the reports, a consensus about every pair (`view_votes`), and records drawn from
its mixture, weighed until they have the consensus' margins and pair tables. Who reports one
combination of three attributes and more also tells what goes together beyond pairs: there, the
records are drawn given the reports.
"""

import math
from dataclasses import dataclass

import numpy as np

from mpc_rr.errors import InputError
from mpc_rr.estimation.count_classes import Mixture, draw_records
from mpc_rr.estimation.latent import draw_categories
from mpc_rr.estimation.matrix import Array, Codes
from mpc_rr.estimation.population import Population
from mpc_rr.estimation.tallies import tallies_by_part
from mpc_rr.estimation.view_votes import Consensus, consensus
from mpc_rr.estimation.views import ViewDesign, ViewReports

ROWS = 60_000
WHOLE_DOMAIN = 20_000
"""Of so many combinations each is a record, and nothing is drawn."""
SUPPORT = 0.05
"""The share of records that may be anything, so that no table lacks a cell that it should have."""
SEED = 22


@dataclass(frozen=True)
class FittedPopulation:
    """The population, and how much of what it says is independence."""

    population: Population
    independence: float


def fit_views(design: ViewDesign, reports: ViewReports) -> FittedPopulation:
    """What the reports tell of everybody: the same on every machine."""
    answered = sum(len(reports.reports[view]) for view in design.views)
    if not answered:
        raise InputError("there are no reported answers to estimate from")
    together = sum(len(reports.reports[v]) * max(len(v) - 1, 1) for v in design.views)
    agreed = consensus(tallies_by_part(design, reports), together / answered)
    targets: dict[tuple[int, ...], Array] = {(a,): m for a, m in enumerate(agreed.margins)}
    targets.update(agreed.tables)
    invented = _invented(agreed, design, reports, answered)
    return FittedPopulation(invented.raked(targets), agreed.independence)


def _invented(
    agreed: Consensus, design: ViewDesign, reports: ViewReports, answered: int
) -> Population:
    """Records of the mixture: each combination once where there are few, else drawn.

    Those of people who told one combination of three attributes and more are drawn given it.
    """
    telling = [v for v in design.views if _is_told_whole(design, v) and len(reports.reports[v])]
    mixture = agreed.mixture.rounded()
    if not telling and math.prod(design.sizes) <= WHOLE_DOMAIN:
        return _enumerated(mixture)
    rng = np.random.default_rng(SEED)
    times = math.ceil(ROWS / answered)
    others = answered - sum(len(reports.reports[v]) for v in telling)
    pieces = [draw_records(mixture, others * times, rng)]
    for view in telling:
        told = np.repeat(reports.reports[view][:, 0], times)
        pieces.append(records_given(mixture, design, view, told, rng))
    anything = Mixture.independent([0.9 * m + 0.1 / m.size for m in agreed.margins])
    pieces.append(draw_records(anything.rounded(), ROWS // 10, rng))
    drawn = answered * times
    weights = np.full(drawn, (1 - SUPPORT) / drawn), np.full(ROWS // 10, SUPPORT / (ROWS // 10))
    return Population(np.concatenate(pieces), np.concatenate(weights), tuple(design.sizes))


def _is_told_whole(design: ViewDesign, view: tuple[int, ...]) -> bool:
    return len(view) > 2 and design.mechanisms[view].chosen == 1


def records_given(
    mixture: Mixture,
    design: ViewDesign,
    view: tuple[int, ...],
    told: Codes,
    rng: np.random.Generator,
) -> Codes:
    """A record for each reported combination of a view, from the mixture given the report.

    Of a class in which the combination has probability f, its report is as likely as
    1 + (e^ε − 1)·f; by the latter part the record has it, by the former it is any of the class.
    """
    boost = math.expm1(min(design.epsilon, 500.0))
    profiles = mixture.by_attribute()
    codes = np.stack(
        [design.cells(view, (a,), told[:, np.newaxis])[:, 0] for a in view], axis=1
    )  # fmt: skip
    different, which = np.unique(codes, axis=0, return_inverse=True)
    odds = np.full((len(different), len(mixture.shares)), boost)
    for a, values in zip(view, different.T, strict=True):
        odds *= profiles[a].T[values]
    chances = np.cumsum(mixture.shares * (1 + odds), axis=1)
    drawn = rng.random((len(told), 2))
    records = np.empty((len(told), len(profiles)), dtype=np.int64)
    order = np.argsort(which.ravel(), kind="stable")
    ends = np.cumsum(np.bincount(which.ravel(), minlength=len(different)))
    classes = np.empty(len(told), dtype=np.int64)
    for cell, mine in enumerate(np.split(order, ends[:-1])):
        wanted = drawn[mine, 0] * chances[cell, -1]
        classes[mine] = np.searchsorted(chances[cell, :-1], wanted, side="right")
    for a, profile in enumerate(profiles):
        records[:, a] = draw_categories(profile[classes], rng.random)
    likely = odds[which.ravel(), classes]
    kept = drawn[:, 1] * (1 + likely) < likely
    records[np.ix_(kept, view)] = codes[kept]
    return records


def _enumerated(mixture: Mixture) -> Population:
    """Every combination there is."""
    records = np.stack([g.ravel() for g in np.indices(mixture.sizes)], axis=1)
    chances = np.tile(mixture.shares[:, np.newaxis], len(records))
    for a, profiles in enumerate(mixture.by_attribute()):
        chances *= profiles[:, records[:, a]]
    weights = chances.sum(axis=0) + 1e-12 / len(records)
    return Population(records, weights / weights.sum(), mixture.sizes)
