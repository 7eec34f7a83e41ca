"""Models of all attributes at once, towards which the tables of pairs may be drawn.

From nothing known but the shares of single answers to latent classes that follow the reports
closely. Which of them is right for which pair is found out elsewhere (`candidates`).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mpc_rr.estimation.designs import Fitted
from mpc_rr.estimation.distribution import project_to_simplex
from mpc_rr.estimation.kept_clusters import KeptClusters, unbiased_pairs
from mpc_rr.estimation.latent import latent_classes
from mpc_rr.estimation.matrix import Array, Codes
from mpc_rr.estimation.pair_classes import Mixture, pair_classes

PRIORS = (0.1, 1.0, 5.0)
SURELY_KEPT = 0.999
POINTS = 401
REACH = 8.0
"""Shares within so many standard errors are weighed."""


@dataclass(frozen=True)
class ClusterJoints:
    """Each cluster's own distribution, on its reported combinations; clusters are independent."""

    design: KeptClusters
    cells: tuple[Codes, ...]
    """By cluster, a row for each combination that was reported."""
    shares: tuple[Array, ...]

    @classmethod
    def of(cls, design: KeptClusters, records: Codes) -> "ClusterJoints":
        """The nearest distributions to the unbiased shares of what was reported."""
        cells, shares = [], []
        for cluster, keep in zip(design.clusters, design.keeps, strict=True):
            found, counts = np.unique(records[:, list(cluster)], axis=0, return_counts=True)
            chance = (1 - keep) / design.combinations(cluster)
            cells.append(found)
            shares.append(project_to_simplex((counts / len(records) - chance) / keep))
        return cls(design, tuple(cells), tuple(shares))

    def pairs(self) -> Array:
        """The tables of all pairs as one matrix."""
        design, margins = self.design, np.zeros(self.design.width)
        within = []
        for cluster, cells, shares in zip(design.clusters, self.cells, self.shares, strict=True):
            places = cells + np.array(design.starts)[list(cluster)]
            told = np.zeros((len(cells), design.width))
            told[np.arange(len(cells))[:, np.newaxis], places] = 1.0
            margins += shares @ told
            within.append((told * shares[:, np.newaxis]).T @ told)
        return np.where(design.together, sum(within), np.outer(margins, margins))


Model = Mixture | ClusterJoints


@dataclass(frozen=True)
class Bases:
    """What reports tell by themselves, and the models that were fitted to them."""

    counts: Array
    unbiased: Array
    """The tables of all pairs as one matrix."""
    margins: tuple[Array, ...]
    models: tuple[Model, ...]
    """The first is independence."""
    pairs: Array
    """For each model the tables of all pairs, as a matrix."""

    @classmethod
    def of(cls, design: KeptClusters, records: Codes) -> "Bases":
        """Of the records that were reported."""
        counts, n = design.pair_counts(records), len(records)
        unbiased, shares = unbiased_pairs(design, counts, n)
        margins = tuple(_margins(design, counts.diagonal() / n, shares, n))
        independence = Mixture(np.ones(1), np.concatenate(margins)[np.newaxis])
        models: list[Model] = [independence]
        if len(design.sizes) > 1:
            models += pair_classes(design, counts, margins, PRIORS)
        if any(len(cluster) > 1 for cluster in design.clusters):
            models += [_classes_of_reports(design, records), ClusterJoints.of(design, records)]
        pairs = np.stack([model.pairs() for model in models])
        return cls(counts, unbiased, margins, tuple(models), pairs)


def _classes_of_reports(design: KeptClusters, records: Codes) -> Mixture:
    """Latent classes by the likelihood of whole reports, where answers come in clusters."""
    answers = Fitted(design.answers_design(), records).answers()
    found = latent_classes(answers, design.sizes, len(records))
    return Mixture(found.shares, np.concatenate(found.profiles, axis=1))


def _margins(design: KeptClusters, reported: Array, unbiased: Array, n: int) -> list[Array]:
    """The distribution of each attribute's answers."""
    found = []
    for a, (size, keep) in enumerate(zip(design.sizes, design.keep_of, strict=True)):
        own, shares = reported[design.places(a)], unbiased[design.places(a)]
        if keep >= SURELY_KEPT:
            found.append(project_to_simplex(shares))
            continue
        spread = (1 - keep) / size
        second = ((1 - spread) ** 2 - spread**2) * own + spread**2
        variances = (second / keep**2 - np.clip(shares, 0, 1)) / n
        found.append(project_to_simplex(_posterior_mean(shares, np.sqrt(variances.clip(1e-12)))))
    return found


def _posterior_mean(seen: Array, errors: Array) -> Array:
    """Of shares whose square roots are uniform before, given unbiased estimates of them."""
    low = np.clip(seen - REACH * errors, 0, np.maximum(1 - errors, 0))
    high = np.clip(np.maximum(seen + REACH * errors, errors), low, 1)
    steps = np.linspace(0, 1, POINTS)
    roots = np.sqrt(low)[:, np.newaxis] + np.outer(np.sqrt(high) - np.sqrt(low), steps)
    exponents = -(((seen[:, np.newaxis] - roots**2) / errors[:, np.newaxis]) ** 2) / 2
    weights = np.exp(exponents - exponents.max(axis=1, keepdims=True))
    return np.asarray((weights * roots**2).sum(axis=1) / weights.sum(axis=1))


def randomized_again(keeps: Sequence[float], more: float) -> list[float]:
    """With which probabilities answers are kept once more, to make noise so much larger.

    The variance of a pair's table grows like keep⁻⁴ if its attributes are in different clusters.
    """
    power = 4 if len(keeps) > 1 else 2
    found = []
    for keep in keeps:
        wished = 1 + (1 + more) * (keep**-power - 1)
        found.append(min(wished ** (-1 / power) / keep, 1.0))
    return found
