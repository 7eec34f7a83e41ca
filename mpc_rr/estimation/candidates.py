"""Candidates for the table of each pair, and an unbiased estimate of how far each is off.

A candidate is a model's table, this drawn part of the way to the unbiased table, the unbiased table
itself, or a few steps of likelihood from a model. Stein's formula gives the expected squared
distance of each from the true table of the respondents: it needs how much the candidate follows the
noise, which is found by adding a little noise and looking.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import chdtrc

from mpc_rr.estimation.bases import Bases, randomized_again
from mpc_rr.estimation.conditions import Truths
from mpc_rr.estimation.kept_clusters import KeptClusters
from mpc_rr.estimation.matrix import Array, Codes
from mpc_rr.estimation.pair_groups import Factor, Noise, PairGroup, groups_of
from mpc_rr.estimation.trends import trends_of

FRACTIONS = (0.3, 0.6)
STEPS = (1, 4, 16)
STEPPED = 2
"""From so many of the models steps of likelihood are taken."""
REPEATS = 2
MORE_NOISE = 0.2
LEAST_MORE = 1e-3
NOTHING = 1e-9
"""A cell with less is not in use: where it is exactly 0, only rounding would tell."""
CAUTION = 2.0
"""So many times more than it follows the noise a trend must be nearer to be preferred: of so many
pairs some seem to have one."""


@dataclass(frozen=True)
class Kind:
    """How a candidate is made of the reports and a model."""

    model: int | None
    """None: of the unbiased table alone, or of its trend."""
    fraction: float = 0.0
    """How far it goes from the model's to the unbiased table."""
    steps: int = 0
    """Of likelihood, from the model."""

    @property
    def is_the_model(self) -> bool:
        """Whether nothing of the pair's own reports is added."""
        return self.model is not None and self.fraction == 0 and self.steps == 0


def kinds_of(models: int) -> list[Kind]:
    """The kinds of candidates, in the order of their tables."""
    drawn = [Kind(m, fraction) for fraction in (0.0, *FRACTIONS) for m in range(models)]
    stepped = [Kind(m, steps=steps) for steps in STEPS for m in range(min(STEPPED, models))]
    trends = [Kind(None, fraction) for fraction in (0.0, *FRACTIONS)]
    return [*drawn, Kind(None, 1.0), *stepped, *trends]


@dataclass(frozen=True)
class Candidates:
    """Of some pairs of one shape: tables (pairs, kinds, rows, columns) and their risks."""

    pairs: tuple[tuple[int, int], ...]
    tables: Array
    risks: Array
    """Estimated squared distances from the true tables (pairs, kinds); may be negative."""
    model_freedom: Array
    """How much of the noise a candidate follows by way of its model."""
    usual: Array
    """The variance that noise has in a usual direction, of each pair."""
    chance: Array
    """How probably noise alone would seem to be so much dependence."""


def candidates_of(
    design: KeptClusters, records: Codes, bases: Bases
) -> tuple[list[Candidates], list[Kind]]:
    """Those of all pairs, and of which kinds they are."""
    n, rng = len(records), np.random.default_rng(0)
    again = randomized_again(design.keeps, MORE_NOISE)
    more = design.with_keeps([k * q for k, q in zip(design.keeps, again, strict=True)])
    extra = design.with_keeps(again)
    repeats = [Bases.of(more, extra.randomized(records, rng)) for _ in range(REPEATS)]
    found = [_of_group(group, design, more, bases, repeats, n) for group in groups_of(design)]
    return found, kinds_of(len(bases.models))


@dataclass(frozen=True)
class _Seen:
    """What one randomization tells of the pairs of a group."""

    factors: Sequence[Factor]
    reported: Array
    unbiased: Array
    models: Array
    """(pairs, models, rows, columns)"""

    @classmethod
    def of(cls, group: PairGroup, design: KeptClusters, bases: Bases, n: int) -> "_Seen":
        models = np.stack([group.cut(pairs) for pairs in bases.pairs], axis=1)
        models = models / models.sum(axis=(2, 3), keepdims=True)
        unbiased = group.cut(bases.unbiased)
        return cls(group.factors(design), group.cut(bases.counts) / n, unbiased, models)

    def stepped(self) -> Array:
        """Expectation maximization on the pair's own reports (pairs, kinds, rows, columns)."""
        tables = np.maximum(self.models[:, :STEPPED], 1e-12)
        tables = tables / tables.sum(axis=(2, 3), keepdims=True)
        factors = [Factor(f.keep[:, np.newaxis], f.size, f.axes) for f in self.factors]
        found = []
        for step in range(1, max(STEPS) + 1):
            ratio = self.reported[:, np.newaxis] / np.maximum(_randomized(tables, factors), 1e-300)
            tables = tables * _randomized(ratio, factors)
            tables = tables / tables.sum(axis=(2, 3), keepdims=True)
            if step in STEPS:
                found.append(tables)
        return np.concatenate(found, axis=1)


def _randomized(tables: Array, factors: Sequence[Factor]) -> Array:
    for factor in factors:
        tables = factor.randomized(tables)
    return tables


@dataclass(frozen=True)
class _Disturbed:
    """What the pairs of a group tell, and what they tell with a little more noise."""

    seen: _Seen
    noise: Noise
    again: Sequence[_Seen]
    grown: Array
    """By what share of itself the noise of each pair is larger there."""

    def covariance(self, changes: Sequence[Array], used: Truths) -> Array:
        """How candidates go with the noise: their changes times those of the unbiased table."""
        together = [
            (change * used * (other.unbiased - self.seen.unbiased)[:, np.newaxis]).sum(axis=(2, 3))
            for change, other in zip(changes, self.again, strict=True)
        ]
        return np.asarray(np.maximum(np.mean(together, axis=0) / self.grown[:, np.newaxis], 0))


@dataclass(frozen=True)
class _Made:
    """Candidates of one way, and how much of the noise they follow."""

    tables: Array
    by_model: Array
    by_reports: Array


def _of_group(
    group: PairGroup,
    design: KeptClusters,
    more: KeptClusters,
    bases: Bases,
    repeats: Sequence[Bases],
    n: int,
) -> Candidates:
    seen = _Seen.of(group, design, bases, n)
    again = [_Seen.of(group, more, found, n) for found in repeats]
    noise = Noise(seen.factors, seen.reported, seen.unbiased, n)
    disturbed = _Disturbed(seen, noise, again, _growth(seen, again[0].factors, n))
    made = [
        *(_drawn(disturbed, fraction) for fraction in (0.0, *FRACTIONS)),
        _alone(disturbed),
        _stepped(disturbed),
        _trends(disturbed),
    ]
    tables = np.concatenate([m.tables for m in made], axis=1)
    by_model = np.concatenate([m.by_model for m in made], axis=1)
    freedom = by_model + np.concatenate([m.by_reports for m in made], axis=1)
    distances = ((tables - seen.unbiased[:, np.newaxis]) ** 2).sum(axis=(2, 3))
    risks = distances - noise.total[:, np.newaxis] + 2 * freedom
    chance = _chance(group, design, disturbed, n)
    return Candidates(group.pairs, tables, risks, by_model, noise.usual, chance)


def _drawn(disturbed: _Disturbed, fraction: float) -> _Made:
    """The models, drawn so far to the unbiased tables."""
    models = disturbed.seen.models
    changes = [other.models - models for other in disturbed.again]
    if fraction == 0:
        by_model = disturbed.covariance(changes, models > NOTHING)
        return _Made(models, by_model, np.zeros_like(by_model))
    tables = _projected(models + fraction * (disturbed.seen.unbiased[:, np.newaxis] - models))
    used = tables > NOTHING
    centred = [_centred(change, used) for change in changes]
    by_model = (1 - fraction) * disturbed.covariance(centred, used)
    return _Made(tables, by_model, fraction * disturbed.noise.within(used))


def _alone(disturbed: _Disturbed) -> _Made:
    """The distributions nearest to the unbiased tables."""
    tables = _projected(disturbed.seen.unbiased)[:, np.newaxis]
    followed = disturbed.noise.within(tables > NOTHING)
    return _Made(tables, np.zeros_like(followed), followed)


def _stepped(disturbed: _Disturbed) -> _Made:
    tables = disturbed.seen.stepped()
    changes = [other.stepped() - tables for other in disturbed.again]
    by_model = disturbed.covariance(changes, tables >= 0)
    return _Made(tables, by_model, np.zeros_like(by_model))


def _trends(disturbed: _Disturbed) -> _Made:
    """Tables with the trend of the unbiased ones, and these drawn to the unbiased tables."""
    seen, noise = disturbed.seen, disturbed.noise
    found = trends_of(seen.models[:, 0], seen.unbiased)
    changes = [other.models[:, :1] - seen.models[:, :1] for other in disturbed.again]
    moved = noise.along(found.products)
    tables, by_model, by_reports = [], [], []
    for fraction in (0.0, *FRACTIONS):
        made = found.tables + fraction * (seen.unbiased - found.tables)
        made = (_projected(made) if fraction else made)[:, np.newaxis]
        used = made > NOTHING
        slopes = _centred(found.slopes[:, np.newaxis], used)
        followed = (1 - fraction) * (slopes * used * moved[:, np.newaxis]).sum(axis=(2, 3))
        tables.append(made)
        by_model.append((1 - fraction) * disturbed.covariance(changes, used))
        followed = (1 + CAUTION) * np.maximum(followed, 0)
        by_reports.append(followed + fraction * noise.within(used))
    return _Made(*(np.concatenate(part, axis=1) for part in (tables, by_model, by_reports)))


def _growth(here: _Seen, factors: Sequence[Factor], n: int) -> Array:
    """By what share of itself the noise of each pair grows when it is randomized again."""
    truth = _projected(here.unbiased)
    before = Noise(here.factors, _randomized(truth, here.factors), truth, n).total
    after = Noise(factors, _randomized(truth, factors), truth, n).total
    return np.asarray(np.maximum(after / np.maximum(before, 1e-300) - 1, LEAST_MORE))


def _centred(tables: Array, used: Truths) -> Array:
    """Each table less its mean over the cells in use."""
    mean = (tables * used).sum(axis=(2, 3), keepdims=True)
    return np.asarray(tables - mean / np.maximum(used.sum(axis=(2, 3), keepdims=True), 1))


def _projected(tables: Array) -> Array:
    """The nearest distributions, of many tables at once."""
    flat = tables.reshape(*tables.shape[:-2], -1)
    falling = -np.sort(-flat, axis=-1)
    excess = (np.cumsum(falling, axis=-1) - 1) / np.arange(1, flat.shape[-1] + 1)
    last = (falling > excess).sum(axis=-1, keepdims=True) - 1
    level = np.take_along_axis(excess, last, axis=-1)
    return np.asarray(np.maximum(flat - level, 0).reshape(tables.shape))


def _chance(group: PairGroup, design: KeptClusters, disturbed: _Disturbed, n: int) -> Array:
    """How probably noise alone would differ so much from independence, or have such a trend."""
    seen = disturbed.seen
    rows, columns = group.shape
    difference = seen.unbiased - seen.models[:, 0]
    products = trends_of(seen.models[:, 0], seen.unbiased).products
    spread = (products * disturbed.noise.along(products)).sum(axis=(1, 2))
    trend = (products * difference).sum(axis=(1, 2)) ** 2 / np.maximum(spread, 1e-300)
    difference = difference - difference.mean(axis=1, keepdims=True)
    difference = difference - difference.mean(axis=2, keepdims=True)
    energy = (difference**2).sum(axis=(1, 2))
    keeps = [{design.cluster_of[a]: design.keep_of[a] for a in pair} for pair in group.pairs]
    blown = np.array([math.prod(k**-2 for k in own.values()) - 1 for own in keeps])
    noise = np.maximum((1 - 1 / rows) * (1 - 1 / columns) * blown / n, 1e-300)
    freedom = np.minimum(
        max((rows - 1) * (columns - 1), 1), 1 / (seen.reported**2).sum(axis=(1, 2))
    )
    chances = chdtrc(freedom, freedom * energy / noise), chdtrc(1, trend)
    return np.asarray(np.minimum(*chances))
