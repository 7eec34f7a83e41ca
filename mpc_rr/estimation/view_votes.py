"""Which table of a pair to believe: every part of the respondents judges what the rest says.

Candidates are independence, and the mixtures of `count_classes` under priors of several strengths,
the latter with their own margins and with the pooled ones; and each of them overruled by the pair's
own answers where these plainly disagree. Each is fitted without one part of the respondents, and
its likelihood is that of this part's answers. A pair's table is the mean of the candidates by their
posterior weights; how common it is that a candidate is right, is learned from all pairs. So a few
strong pairs among many that do not depend on each other do not drag the noise of all into the
result, which any model that serves all pairs at once does.
"""

import functools
import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mpc_rr.estimation.count_classes import Mixture, fit_counts
from mpc_rr.estimation.matrix import Array
from mpc_rr.estimation.tallies import Tallies, Told

Pair = tuple[int, ...]

FITS = ((0.1, 100), (1.0, 100), (5.0, 100), (0.1, 600))
"""The prior's strength and the number of iterations of each mixture. More of the latter follow the
noise of few answers, and find what many tell."""
CANDIDATES = 1 + 2 * len(FITS)
DIGITS = 9
STARTS, STARTS_OF_PARTS = 6, 3
ROUNDS = 30
INDEPENDENT_PAIRS = 3.0
"""So many invented pairs were independent, before anything is known."""
ANY_PAIRS = 0.5
"""And so many more like any candidate."""
_STEPS = (np.arange(200) + 0.5) / 200


@dataclass(frozen=True)
class Bases:
    """What is believed of all pairs, before a pair's own answers are asked."""

    margins: list[Array]
    mixtures: list[Mixture]
    """Independence first."""

    @classmethod
    def fit(cls, tallies: Tallies, starts: int, overlap: float) -> "Bases":
        """``overlap``: to how many pairs with another attribute an answer counts."""
        margins = [pooled_margin(tallies, a) for a in range(len(tallies.sizes))]
        fitted = []
        for iterations, fits in itertools.groupby(FITS, key=lambda fit: fit[1]):
            priors = [prior * overlap for prior, _ in fits]
            fitted += fit_counts(tallies, margins, priors, starts, iterations)
        return cls(margins, [Mixture.independent(margins), *fitted])

    @property
    def joints(self) -> Array:
        """The tables of all pairs by each of them."""
        return np.array([mixture.joint for mixture in self.mixtures])


def pooled_margin(tallies: Tallies, attribute: int) -> Array:
    """The posterior mean of an attribute's shares, shifted until they add up to 1.

    Before, the square root of a share is anything between 0 and 1.
    """
    told = tallies.margin(attribute)
    size = tallies.sizes[attribute]
    if told is None:
        return np.full(size, 1 / size)
    variance = float(told.variances(np.clip(told.estimate, 0.0, 1.0)).mean())
    reach = 1 + 6 * math.sqrt(variance)
    low, high = -reach, reach + float(told.estimate.max())
    for _ in range(50):
        middle = (low + high) / 2
        enough = _posterior_means(told.estimate - middle, variance).sum() > 1
        low, high = (middle, high) if enough else (low, middle)
    found = _posterior_means(told.estimate - (low + high) / 2, variance)
    return np.asarray(found / found.sum())


def _posterior_means(estimates: Array, variance: float) -> Array:
    """Of shares whose estimates have normal errors: integrated over the roots that are possible."""
    reach = 8 * math.sqrt(variance)
    least = np.sqrt(np.maximum(estimates - reach, 0.0))[:, np.newaxis]
    most = np.sqrt(np.maximum(estimates, 0.0) + reach)[:, np.newaxis]
    shares = (least + (most - least) * _STEPS) ** 2
    logs = -((estimates[:, np.newaxis] - shares) ** 2) / (2 * variance)
    chances = np.exp(logs - logs.max(axis=1, keepdims=True))
    return np.asarray((chances * shares).sum(axis=1) / chances.sum(axis=1))


def with_margins(tables: Array, rows: Array, columns: Array, sweeps: int) -> Array:
    """Tables along the first axis, raked to margins."""
    made = np.maximum(tables, 1e-9 / tables[0].size)
    for _ in range(sweeps):
        made = made * (rows / made.sum(axis=2))[:, :, np.newaxis]
        made = made * (columns / made.sum(axis=1))[:, np.newaxis, :]
    return np.asarray(made)


def candidates(joints: Array, margins: Sequence[Array], tallies: Tallies, pair: Pair) -> Array:
    """All candidates for one pair: `plain`, then overruled (where nobody reported it, the same)."""
    tables = plain(joints, margins, tallies, pair)
    told = tallies.pair(pair[0], pair[1])
    return np.concatenate([tables, tables if told is None else overruled(tables, told)])


def plain(joints: Array, margins: Sequence[Array], tallies: Tallies, pair: Pair) -> Array:
    """Independence, each mixture with the pooled margins, and each with its own."""
    own = joints[:, tallies.places[pair[0]], tallies.places[pair[1]]]
    raked = with_margins(own[1:], margins[pair[0]], margins[pair[1]], 3)
    return np.concatenate([own[:1], raked, own[1:]])


def overruled(tables: Array, told: Told) -> Array:
    """Each table with as much of the pair's own dependence as is surely not noise.

    Noise alone gives a squared difference of Σ variance, give or take √(2/freedom) of it.
    """
    rows, columns = told.estimate.shape
    freedom = (rows - 1) * (columns - 1)
    off = told.estimate - tables
    off = off - off.mean(axis=1, keepdims=True) - off.mean(axis=2, keepdims=True) + off.mean(
        axis=(1, 2), keepdims=True
    )  # fmt: skip
    noise = told.variances(tables).sum(axis=(1, 2)) * freedom / (rows * columns)
    energy = np.maximum((off**2).sum(axis=(1, 2)), 1e-300)
    factor = np.maximum(1 - noise * (1 + 2 * math.sqrt(2 / max(freedom, 1))) / energy, 0.0)
    moved = tables + factor[:, np.newaxis, np.newaxis] * off
    return with_margins(moved, tables.sum(axis=2), tables.sum(axis=1), 6)


@dataclass(frozen=True)
class Votes:
    """The weight of each candidate: among all pairs, and for each pair that was reported."""

    usual: Array
    of_pairs: Mapping[Pair, Array]

    @classmethod
    def of(cls, judged: Mapping[Pair, Array]) -> "Votes":
        """From the log-likelihoods of the candidates, pair by pair: expectation maximization."""
        count = 2 * CANDIDATES
        invented = np.full(count, ANY_PAIRS / count)
        invented[0] += INDEPENDENT_PAIRS
        usual = invented / invented.sum()
        if not judged:
            return cls(usual, {})
        logs = np.array(list(judged.values()))
        likely = np.exp(logs - logs.max(axis=1, keepdims=True))
        usual = np.full(count, 1 / count)
        for _ in range(ROUNDS):
            weights = likely * usual
            weights /= weights.sum(axis=1, keepdims=True)
            usual = weights.sum(axis=0) + invented
            usual /= usual.sum()
        weights = (likely * usual).round(DIGITS)
        weights /= weights.sum(axis=1, keepdims=True)
        return cls(usual.round(DIGITS), dict(zip(judged, weights, strict=True)))

    @property
    def bases(self) -> Array:
        """The usual weight of independence and of each mixture, however it was used."""
        independent, *others = self.usual.reshape(2, CANDIDATES).sum(axis=0)
        mixed = np.array(others).reshape(2, len(FITS)).sum(axis=0)
        return np.concatenate([[independent], mixed])


@dataclass(frozen=True)
class Consensus:
    """What is believed in the end."""

    margins: list[Array]
    tables: dict[Pair, Array]
    mixture: Mixture
    independence: float
    """The weight that independence got, among all that pairs may follow."""


def judged_by_parts(parts: Sequence[Tallies], total: Tallies, overlap: float) -> dict[Pair, Array]:
    """The log-likelihood of the candidates for each pair, each part judging what the rest says."""
    found: dict[Pair, Array] = {}
    for part in parts:
        rest = total - part
        if not part.margins[0].any() or not rest.margins[0].any():
            continue
        bases = Bases.fit(rest, STARTS_OF_PARTS, overlap)
        joints = bases.joints
        for pair in itertools.combinations(range(len(total.sizes)), 2):
            told = part.pair(pair[0], pair[1])
            if told is not None:
                tables = candidates(joints, bases.margins, rest, pair)
                found[pair] = found.get(pair, 0.0) + told.likelihood(tables)
    return found


def consensus(parts: Sequence[Tallies], overlap: float) -> Consensus:
    """The tables of all pairs, and a mixture that is near them."""
    total = functools.reduce(Tallies.__add__, parts)
    votes = Votes.of(judged_by_parts(parts, total, overlap))
    bases = Bases.fit(total, STARTS, overlap)
    joints = bases.joints
    tables: dict[Pair, Array] = {}
    for pair in itertools.combinations(range(len(total.sizes)), 2):
        found = candidates(joints, bases.margins, total, pair)
        weights = votes.of_pairs.get(pair, votes.usual)
        tables[pair] = np.tensordot(weights, found, 1)
    margins = _common_margins(tables, bases.margins)
    settled = {pair: _settled(table, margins, total, pair) for pair, table in tables.items()}
    mixture = Mixture.of(list(zip(votes.bases.tolist(), bases.mixtures, strict=True)))
    return Consensus(margins, settled, mixture, float(votes.usual[0]))


def _settled(table: Array, margins: Sequence[Array], total: Tallies, pair: Pair) -> Array:
    """A pair's table with the common margins.

    Parts judge each other as samples of a population. Where it is known better what these
    respondents answered, it overrules what is left.
    """
    found, told = table[np.newaxis], total.pair(pair[0], pair[1])
    found = with_margins(found, margins[pair[0]], margins[pair[1]], 30)
    if told is not None:
        found = overruled(found, told)
    return np.asarray(with_margins(found, margins[pair[0]], margins[pair[1]], 30)[0])


def _common_margins(tables: Mapping[Pair, Array], pooled: list[Array]) -> list[Array]:
    """The mean of the margins of an attribute in all its pairs."""
    found: list[list[Array]] = [[] for _ in pooled]
    for (i, j), table in tables.items():
        found[i].append(table.sum(axis=1))
        found[j].append(table.sum(axis=0))
    return [np.mean(f, axis=0) if f else p for f, p in zip(found, pooled, strict=True)]
