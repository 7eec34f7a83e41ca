"""Latent classes: all tables at once, by the likelihood of every answer of every respondent.

The joint distribution is modelled as a mixture of a few *classes* of respondents; within a class
the attributes are independent, between classes they differ. With enough classes any distribution
can be written so. Fitted to the answers themselves by expectation maximization, what is learned
from one pair of attributes helps all others; this is the best estimator we know when respondents
report strongly randomized answers about many attributes.

It answers any query, and draws synthetic records, without ever enumerating the domain.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array
from scipy.special import xlogy

from mpc_rr.errors import InputError
from mpc_rr.estimation.distribution import project_to_simplex
from mpc_rr.estimation.matrix import Array, Codes, Uniform

WITHIN_RANGE = 300.0
CLASSES = 16
"""More classes fit better and cost more; from 16 to 32 hardly anything changes on Adult."""
PRIOR = 3.0
"""So many invented respondents of each class answer like everybody: without them, the classes of a
study with a hundred respondents would follow the noise."""


@dataclass(frozen=True)
class Answers:
    """Reports about one group of attributes, all by the same randomization.

    Row k is what respondent ``who[k]`` reported: ``chosen`` combinations (one, unless by subset
    selection), each as a row of category numbers. A report that holds the true combination is
    e^ε times as probable as one that does not.
    """

    view: tuple[int, ...]
    who: Codes
    reported: Codes
    """Shape (respondents, chosen, attributes of the view)."""
    epsilon: float


@dataclass(frozen=True)
class LatentClasses:
    """A mixture of classes, and how the fit ended."""

    shares: Array
    """How large each class is."""
    profiles: tuple[Array, ...]
    """For each attribute, the distribution of its categories in each class (a row each)."""
    iterations: int
    converged: bool
    log_likelihood: float
    """The mean over the respondents, up to a constant."""

    def table(self, attributes: Sequence[int]) -> Array:
        """The joint distribution of some attributes."""
        if len(set(attributes)) != len(attributes) or not attributes:
            raise InputError("ask for one or more different attributes")
        joint = self.shares[:, np.newaxis]
        for attribute in attributes:
            profile = self.profiles[attribute]
            joint = (joint[:, :, np.newaxis] * profile[:, np.newaxis, :]).reshape(len(joint), -1)
        shape = tuple(self.profiles[a].shape[1] for a in attributes)
        return np.asarray(joint.sum(axis=0).reshape(shape))

    def synthesize(self, rows: int, uniform: Uniform) -> Codes:
        """Synthetic records: a class is drawn, then each attribute from its profile."""
        drawn = draw_categories(np.broadcast_to(self.shares, (rows, len(self.shares))), uniform)
        return np.stack(
            [draw_categories(profile[drawn], uniform) for profile in self.profiles], axis=1
        )


def draw_categories(probabilities: Array, uniform: Uniform) -> Codes:
    """One category for each row, drawn from the row's distribution."""
    cumulative = np.cumsum(probabilities, axis=1)
    drawn = uniform((len(probabilities),))[:, np.newaxis] * cumulative[:, -1:]
    return np.asarray((drawn >= cumulative[:, :-1]).sum(axis=1))


def latent_classes(
    answers: Sequence[Answers],
    sizes: Sequence[int],
    respondents: int,
    *,
    classes: int = CLASSES,
    tolerance: float = 1e-6,
    most_iterations: int = 150,
    seed: int = 0,
    prior: float = PRIOR,
) -> LatentClasses:
    """Fit the mixture to everybody's answers by expectation maximization.

    It starts near independence, from a fixed ``seed``: the same answers give the same fit.
    Converged means that an iteration raises the mean log-likelihood (with that of the invented
    respondents, see `PRIOR`) by less than ``tolerance``; stopping early is no harm here, it keeps
    the fit from following the noise.
    """
    if classes < 1:
        raise InputError(f"at least one class is needed, not {classes}")
    if respondents < 1 or not any(len(a.who) for a in answers):
        raise InputError("there are no reported answers to estimate from")
    groups = [_Group(a, sizes, respondents) for a in answers if len(a.who)]
    rng = np.random.default_rng(seed)
    shares = np.full(classes, 1 / classes)
    margins = _margins(answers, sizes)
    profiles = [_around(margin, classes, rng) for margin in margins]
    pseudo = [prior * margin for margin in margins]
    before, gain, iterations, likelihood = -math.inf, math.inf, 0, -math.inf
    while iterations < most_iterations and gain >= tolerance:
        penalty = sum(float(xlogy(p, f).sum()) for p, f in zip(pseudo, profiles, strict=True))
        shares, profiles, likelihood = _iterate(groups, shares, profiles, respondents, pseudo)
        objective = likelihood + penalty / respondents
        gain, before = objective - before, objective
        iterations += 1
    return LatentClasses(shares, tuple(profiles), iterations, gain < tolerance, likelihood)


def _margins(answers: Sequence[Answers], sizes: Sequence[int]) -> list[Array]:
    """A distribution of each attribute from all reports about it, to start from."""
    sums, weights = [np.zeros(size) for size in sizes], [1e-300] * len(sizes)
    for group in answers:
        n, chosen, _ = group.reported.shape
        size = math.prod(sizes[a] for a in group.view)
        odds = chosen * math.exp(min(group.epsilon, 500.0))
        hit = odds / (odds + size - chosen)
        miss = (hit * (chosen - 1) + (1 - hit) * chosen) / max(size - 1, 1)
        for place, attribute in enumerate(group.view):
            counts = np.bincount(group.reported[:, :, place].ravel(), minlength=sizes[attribute])
            sums[attribute] += (hit - miss) * (counts - n * miss * size / sizes[attribute])
            weights[attribute] += n * (hit - miss) ** 2
    found = zip(sums, weights, strict=True)
    return [project_to_simplex(s / weight if weight > 1e-9 else s) for s, weight in found]


def _around(margin: Array, classes: int, rng: np.random.Generator) -> Array:
    """A profile for each class: the margin, each share changed at random, on average nothing."""
    noise = rng.gamma(4.0, 0.25, (classes, margin.size))
    profiles = (margin + 0.02 / margin.size) * noise / noise.mean(axis=0)
    return np.asarray(profiles / profiles.sum(axis=1, keepdims=True))


class _Group:
    """The answers about one view, prepared for the iteration: each different report once."""

    def __init__(self, answers: Answers, sizes: Sequence[int], respondents: int) -> None:
        self.view = answers.view
        everybody = np.array_equal(answers.who, np.arange(respondents))
        self.who: slice | Codes = slice(None) if everybody else answers.who
        rows = answers.reported.reshape(len(answers.reported), -1)
        different, self.which = _distinct(rows)
        self.reports = len(different)
        self.codes = different.reshape(self.reports, -1, len(self.view)).transpose(2, 0, 1)
        self.boost = math.expm1(min(answers.epsilon, 500.0))
        ones, columns = np.ones(len(rows)), np.arange(len(rows))
        self.tally = csr_array((ones, (self.which, columns)), shape=(self.reports, len(rows)))
        *self.starts, height = np.cumsum([0, *(sizes[a] for a in self.view)]).tolist()
        cells = np.tile(np.arange(self.codes[0].size), len(self.view))
        places = (self.codes + np.reshape(self.starts, (-1, 1, 1))).ravel()
        shape = (height, self.codes[0].size)
        self.spread = csr_array((np.ones(len(cells)), (places, cells)), shape=shape)

    def held(self, profiles: Sequence[Array]) -> Array:
        """boost × the probability of each combination of each different report, by class."""
        product = self.boost * profiles[self.view[0]].T[self.codes[0]]
        for a, codes in zip(self.view[1:], self.codes[1:], strict=True):
            product *= profiles[a].T[codes]
        return np.asarray(product)


def _distinct(rows: Codes) -> tuple[Codes, Codes]:
    """The different rows, and which one each row is."""
    widths = rows.max(axis=0) + 1
    if math.prod(int(width) for width in widths) < 2**62:
        key = np.zeros(len(rows), dtype=np.int64)
        for column, width in zip(rows.T, widths, strict=True):
            key = key * int(width) + column
        _, first, which = np.unique(key, return_index=True, return_inverse=True)
    else:
        _, first, which = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    return rows[first], which.reshape(-1)


def _iterate(
    groups: Sequence[_Group],
    shares: Array,
    profiles: Sequence[Array],
    respondents: int,
    prior: Sequence[Array],
) -> tuple[Array, list[Array], float]:
    """One step of expectation maximization, and the log-likelihood before it.

    Given the class, a report S has probability ∝ 1 + boost·(probability of S in the class). The
    respondent's class follows from all her reports; given it, her true combination is one of S
    with odds boost·(its probability) against 1 for "as the class at large".
    """
    held = [group.held(profiles) for group in groups]
    totals = [1 + found.sum(axis=1) for found in held]
    weight = np.broadcast_to(shares, (respondents, len(shares))).copy()
    likelihood, grown = 0.0, 0.0
    for group, total in zip(groups, totals, strict=True):
        weight[group.who] *= (total / (1 + group.boost))[group.which]
        grown += math.log1p(group.boost)
        if grown > WITHIN_RANGE:  # before the smallest weights vanish
            likelihood += _normalize(weight)
            grown = 0.0
    likelihood += _normalize(weight)
    size_of_class = weight.sum(axis=0)
    informed = [np.zeros_like(profile) for profile in profiles]
    for group, found, total in zip(groups, held, totals, strict=True):
        share = np.asarray(group.tally @ weight[group.who]) / total
        evidence = (found * share[:, np.newaxis, :]).reshape(-1, len(shares))
        parts = np.split(np.asarray(group.spread @ evidence), group.starts[1:])
        for attribute, part in zip(group.view, parts, strict=True):
            informed[attribute] += part.T
    updated = []
    for told, profile, pseudo in zip(informed, profiles, prior, strict=True):
        rest = np.maximum(size_of_class - told.sum(axis=1), 1e-300)[:, np.newaxis]
        counts = told + rest * profile + pseudo
        updated.append(counts / counts.sum(axis=1, keepdims=True))
    return size_of_class / respondents, updated, likelihood


def _normalize(weight: Array) -> float:
    """Make each row sum to 1, in place; returns the mean logarithm of what they summed to."""
    sums = weight.sum(axis=1, keepdims=True)
    weight /= sums
    return float(np.log(sums).mean())
