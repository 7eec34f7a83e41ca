"""Invented records that could be the respondents': drawn from models, given what was reported.

Whoever reported something is drawn several times: which class of a model she is in, which of her
clusters were kept; what was not kept is drawn from her class. Some records that no report speaks
for are added, so that weights can give a table whatever it wants.
"""

from collections.abc import Sequence

import numpy as np

from mpc_rr.estimation.bases import ClusterJoints, Model
from mpc_rr.estimation.kept_clusters import KeptClusters
from mpc_rr.estimation.latent import draw_categories
from mpc_rr.estimation.matrix import Array, Codes
from mpc_rr.estimation.pair_classes import Mixture
from mpc_rr.estimation.population import Population

ROWS = 40_000
FEWEST_EACH = 2
STRANGERS = 0.1
FEWEST_STRANGERS = 2_000
THEIR_WEIGHT = 0.05
UNIFORM = 0.1
"""Of the strangers' shares; the rest is as the margins have it."""


def invented_population(
    design: KeptClusters,
    reported: Codes,
    models: Sequence[Model],
    shares: Array,
    margins: Sequence[Array],
) -> Population:
    """Records drawn from the models, each with its share of them; fixed seeds."""
    rng = np.random.default_rng(5)
    times = max(FEWEST_EACH, -(-ROWS // len(reported)))
    which = np.searchsorted(np.cumsum(shares), rng.random(times * len(reported)) * shares.sum())
    records = np.empty((len(which), len(design.sizes)), dtype=np.int32)
    respondent = np.tile(np.arange(len(reported)), times)
    for number, model in enumerate(models):
        rows = np.flatnonzero(np.minimum(which, len(models) - 1) == number)
        if len(rows):
            records[rows] = _drawn(design, model, reported, respondent[rows], rng)
    strangers = _strangers(design, margins, max(FEWEST_STRANGERS, int(STRANGERS * len(which))), rng)
    weights = np.concatenate(
        [
            np.full(len(records), (1 - THEIR_WEIGHT) / len(records)),
            np.full(len(strangers), THEIR_WEIGHT / len(strangers)),
        ]
    )
    return Population(np.concatenate([records, strangers]), weights, design.sizes)


def _strangers(
    design: KeptClusters, margins: Sequence[Array], rows: int, rng: np.random.Generator
) -> Codes:
    columns = []
    for size, margin in zip(design.sizes, margins, strict=True):
        cumulative = np.cumsum((1 - UNIFORM) * margin / margin.sum() + UNIFORM / size)
        drawn = np.searchsorted(cumulative, rng.random(rows) * cumulative[-1], side="right")
        columns.append(np.minimum(drawn, size - 1))
    return np.stack(columns, axis=1).astype(np.int32)


def _drawn(
    design: KeptClusters,
    model: Model,
    reported: Codes,
    respondent: Codes,
    rng: np.random.Generator,
) -> Codes:
    """One record for each of these respondents."""
    if isinstance(model, Mixture):
        return _drawn_from_classes(design, model, reported, respondent, rng)
    return _drawn_from_joints(model, len(respondent), rng)


def _drawn_from_joints(model: ClusterJoints, rows: int, rng: np.random.Generator) -> Codes:
    records = np.empty((rows, len(model.design.sizes)), dtype=np.int32)
    for cluster, cells, shares in zip(
        model.design.clusters, model.cells, model.shares, strict=True
    ):
        cumulative = np.cumsum(shares)
        drawn = np.searchsorted(cumulative, rng.random(rows) * cumulative[-1], side="right")
        records[:, list(cluster)] = cells[np.minimum(drawn, len(cells) - 1)]
    return records


def _drawn_from_classes(
    design: KeptClusters,
    model: Mixture,
    reported: Codes,
    respondent: Codes,
    rng: np.random.Generator,
) -> Codes:
    used, which = np.unique(respondent, return_inverse=True)
    mine = reported[used]
    logarithms = np.broadcast_to(np.log(model.shares + 1e-300), (len(used), len(model.shares)))
    kept = []
    for cluster, keep in zip(design.clusters, design.keeps, strict=True):
        told = np.ones_like(logarithms)
        for a in cluster:
            told = told * model.profiles[:, design.starts[a] + mine[:, a]].T
        all_ways = keep * told + (1 - keep) / design.combinations(cluster)
        all_ways = np.maximum(all_ways, 1e-300)
        logarithms = logarithms + np.log(all_ways)
        kept.append(keep * told / all_ways)
    weights = np.exp(logarithms - logarithms.max(axis=1, keepdims=True))
    classes = draw_categories(weights[which], rng.random)
    records = np.empty((len(respondent), len(design.sizes)), dtype=np.int32)
    for cluster, chance in zip(design.clusters, kept, strict=True):
        stays = rng.random(len(respondent)) < chance[which, classes]
        for a in cluster:
            profiles = model.profiles[:, design.places(a)]
            drawn = draw_categories(profiles[classes], rng.random)
            records[:, a] = np.where(stays, mine[which, a], drawn)
    return records
