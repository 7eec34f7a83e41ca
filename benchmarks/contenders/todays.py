"""The default of issue 22's day, kept as a baseline: latent classes, overruled pair by pair.

A mixture of 16 classes is fitted to each respondent's answers by expectation maximization; the
unbiased table of each pair that was told together is shrunk towards it by how much of their
difference is noise. Wider tables are the model's alone. Nothing here changes when the package does.
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.sparse import csr_array
from scipy.special import xlogy

from benchmarks.contenders.tables import Attributes, Table
from benchmarks.contenders.views import Views, as_views
from mpc_rr.estimation.designs import Fitted
from mpc_rr.estimation.distribution import Estimate, project_to_simplex
from mpc_rr.estimation.matrix import Array, Codes
from mpc_rr.estimation.views import FittedViews

CLASSES, PRIOR, TOLERANCE, MOST_ITERATIONS = 16, 3.0, 1e-6, 150


@dataclass(frozen=True)
class Group:
    """Reports about one group of attributes, by whom: a report that holds the true combination is
    e^ε times as probable as one that does not."""

    view: Attributes
    who: Codes | slice
    reported: Codes
    """Report, place in it, attribute."""
    epsilon: float


class _Prepared:
    """Each different report once."""

    def __init__(self, group: Group, sizes: Sequence[int]) -> None:
        self.view, self.who = group.view, group.who
        rows = group.reported.reshape(len(group.reported), -1)
        different, which = np.unique(rows, axis=0, return_inverse=True)
        self.which, reports = which.reshape(-1), len(different)
        self.codes = different.reshape(reports, -1, len(self.view)).transpose(2, 0, 1)
        self.boost = math.expm1(min(group.epsilon, 500.0))
        self.tally = csr_array(
            (np.ones(len(rows)), (self.which, np.arange(len(rows)))), shape=(reports, len(rows))
        )
        *self.starts, height = np.cumsum([0, *(sizes[a] for a in self.view)]).tolist()
        cells = np.tile(np.arange(self.codes[0].size), len(self.view))
        places = (self.codes + np.reshape(self.starts, (-1, 1, 1))).ravel()
        self.spread = csr_array(
            (np.ones(len(cells)), (places, cells)), shape=(height, self.codes[0].size)
        )

    def held(self, profiles: Sequence[Array]) -> Array:
        """boost × the probability of each combination of each report, by class."""
        found = self.boost * profiles[self.view[0]].T[self.codes[0]]
        for a, codes in zip(self.view[1:], self.codes[1:], strict=True):
            found *= profiles[a].T[codes]
        return np.asarray(found)


@dataclass(frozen=True)
class Classes:
    """A mixture."""

    shares: Array
    profiles: list[Array]

    def table(self, attributes: Attributes) -> Array:
        """The joint distribution of some attributes."""
        joint = self.shares[:, np.newaxis]
        for a in attributes:
            joint = (joint[:, :, np.newaxis] * self.profiles[a][:, np.newaxis, :]).reshape(
                len(joint), -1
            )
        return np.asarray(joint.sum(axis=0)).reshape(
            [self.profiles[a].shape[1] for a in attributes]
        )


def fitted_classes(groups: Sequence[Group], sizes: Sequence[int], n: int) -> Classes:
    """By expectation maximization, from near independence."""
    answered = [group for group in groups if len(group.reported)]
    prepared, margins = [_Prepared(group, sizes) for group in answered], _margins(answered, sizes)
    rng = np.random.default_rng(0)
    classes = Classes(np.full(CLASSES, 1 / CLASSES), [_around(margin, rng) for margin in margins])
    pseudo, before, gain, iterations = [PRIOR * m for m in margins], -math.inf, math.inf, 0
    while iterations < MOST_ITERATIONS and gain >= TOLERANCE:
        penalty = math.fsum(
            float(xlogy(p, f).sum()) for p, f in zip(pseudo, classes.profiles, strict=True)
        )
        classes, likelihood = _iterated(prepared, classes, n, pseudo)
        gain, before = likelihood + penalty / n - before, likelihood + penalty / n
        iterations += 1
    return classes


def _margins(groups: Sequence[Group], sizes: Sequence[int]) -> list[Array]:
    sums, weights = [np.zeros(size) for size in sizes], [1e-300] * len(sizes)
    for group in groups:
        n, chosen, _ = group.reported.shape
        size = math.prod(sizes[a] for a in group.view)
        odds = chosen * math.exp(min(group.epsilon, 500.0))
        hit = odds / (odds + size - chosen)
        miss = (hit * (chosen - 1) + (1 - hit) * chosen) / max(size - 1, 1)
        for place, a in enumerate(group.view):
            counts = np.bincount(group.reported[:, :, place].ravel(), minlength=sizes[a])
            sums[a] += (hit - miss) * (counts - n * miss * size / sizes[a])
            weights[a] += n * (hit - miss) ** 2
    found = zip(sums, weights, strict=True)
    return [project_to_simplex(s / weight if weight > 1e-9 else s) for s, weight in found]


def _around(margin: Array, rng: np.random.Generator) -> Array:
    noise = rng.gamma(4.0, 0.25, (CLASSES, margin.size))
    profiles = (margin + 0.02 / margin.size) * noise / noise.mean(axis=0)
    return np.asarray(profiles / profiles.sum(axis=1, keepdims=True))


def _iterated(
    groups: Sequence[_Prepared], classes: Classes, n: int, pseudo: Sequence[Array]
) -> tuple[Classes, float]:
    """One step, and the log-likelihood before it (up to a constant)."""
    held = [group.held(classes.profiles) for group in groups]
    totals = [1 + found.sum(axis=1) for found in held]
    weight = np.broadcast_to(classes.shares, (n, CLASSES)).copy()
    likelihood = 0.0
    for group, total in zip(groups, totals, strict=True):
        weight[group.who] *= (total / (1 + group.boost))[group.which]
    sums = weight.sum(axis=1, keepdims=True)
    weight /= sums
    likelihood += float(np.log(sums).mean())
    size_of_class = weight.sum(axis=0)
    informed = [np.zeros_like(profile) for profile in classes.profiles]
    for group, found, total in zip(groups, held, totals, strict=True):
        share = np.asarray(group.tally @ weight[group.who]) / total
        evidence = (found * share[:, np.newaxis, :]).reshape(-1, CLASSES)
        parts = np.split(np.asarray(group.spread @ evidence), group.starts[1:])
        for a, part in zip(group.view, parts, strict=True):
            informed[a] += part.T
    profiles = []
    for told, profile, more in zip(informed, classes.profiles, pseudo, strict=True):
        rest = np.maximum(size_of_class - told.sum(axis=1), 1e-300)[:, np.newaxis]
        counts = told + rest * profile + more
        profiles.append(counts / counts.sum(axis=1, keepdims=True))
    return Classes(size_of_class / n, profiles), likelihood


def shrunk(estimate: Estimate, towards: Array) -> Array:
    """An unbiased table drawn towards a model of it, by how much of the difference is noise."""
    difference = estimate.shares - towards
    energy = float((difference**2).sum())
    noise = float((estimate.standard_errors**2).sum())
    freedom = max(math.prod(size - 1 for size in towards.shape), 1)
    noisy = min(noise / energy, 1.0) if energy > 0 else 1.0
    factor = max(0.0, 1 - noisy * (1 + math.sqrt(2 / freedom) * noisy))
    return project_to_simplex(towards + factor * difference)


class Reports(Protocol):
    """What is read of reports, whatever they are of."""

    def unbiased(self, attributes: Attributes) -> Estimate | None:
        """The table of some attributes; None if nobody told them together."""


def _default(groups: Sequence[Group], reports: Reports, sizes: Sequence[int], n: int) -> Table:
    model, tables = fitted_classes(groups, sizes, n), {}
    for pair in itertools.combinations(range(len(sizes)), 2):
        found, told = model.table(pair), reports.unbiased(pair)
        tables[pair] = found if told is None else shrunk(told, found)

    def table(attributes: Attributes) -> Array:
        return tables[attributes] if len(attributes) == 2 else model.table(attributes)

    return table


def of_views(reports: Views) -> Table:
    """From answers to views."""
    ends = np.cumsum([0, *(len(rows) for rows in reports.reported.values())])
    groups = [
        Group(view, slice(start, end), reports.codes(view), reports.epsilon)
        for view, start, end in zip(reports.reported, ends[:-1], ends[1:], strict=True)
    ]
    return _default(groups, reports, reports.sizes, reports.n)


def of_the_same_views(fitted: FittedViews) -> Table:
    """From the reports of `rr_views`."""
    return of_views(as_views(fitted))


def of_records(fitted: Fitted) -> Table:
    """From full reports."""
    design = fitted.design
    groups = [
        Group(cluster, slice(None), fitted.reported[:, np.newaxis, list(cluster)], matrix.epsilon)
        for cluster, matrix in zip(design.clusters, design.matrices, strict=True)
    ]
    return _default(groups, fitted, design.sizes, fitted.n)
