"""Latent classes that are fitted to the counts of all pairs, not to the respondents one by one.

The cost does not depend on how many respondents there are, and several fits (from different starts,
with stronger and weaker priors) are made at once. Only answers that were kept are imputed: what a
uniform answer hides is left out, not filled in.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mpc_rr.estimation.kept_clusters import KeptClusters
from mpc_rr.estimation.matrix import Array

CLASSES = 16
ITERATIONS = 100
FEWEST_ITERATIONS = 20
STARTS = 2
WIDE = 160
"""Of more categories in all there are fewer iterations, one start and one prior, to bound the work:
it grows like their square."""
TINY = 1e-300


@dataclass(frozen=True)
class Mixture:
    """Classes of respondents within which attributes are independent."""

    shares: Array
    """How large each class is."""
    profiles: Array
    """A row for each class: the shares of all categories of all attributes, side by side."""

    def pairs(self) -> Array:
        """The tables of all pairs as one matrix."""
        return np.asarray((self.shares[:, np.newaxis] * self.profiles).T @ self.profiles)


def pair_classes(
    design: KeptClusters, counts: Array, margins: Sequence[Array], priors: Sequence[float]
) -> list[Mixture]:
    """Expectation maximization on pair counts; a mixture for each strength of the prior.

    A prior is so many invented respondents of each class who answer like everybody. Of several
    starts the average is taken: all their classes together.
    """
    starts, iterations = STARTS, ITERATIONS
    if design.width > WIDE:
        starts, priors = 1, priors[len(priors) // 2 :][:1]
        iterations = max(FEWEST_ITERATIONS, int(ITERATIONS * (WIDE / design.width) ** 2))
    profiles = np.tile(_starts(design, margins, starts), (len(priors), 1, 1))
    shares = np.full(profiles.shape[:2], 1 / CLASSES)
    invented = np.repeat(np.asarray(priors), starts)[:, np.newaxis, np.newaxis]
    pseudo = invented * np.maximum(np.concatenate(margins), 1e-6)
    step = _Step(design, counts)
    for _ in range(iterations):
        told, sizes = step.imputed(shares, profiles)
        shares = (1 + sizes) / (1 + sizes).sum(axis=1, keepdims=True)
        profiles = _normalized(design, told + pseudo)
    found = []
    for number in range(len(priors)):
        own = slice(number * starts, (number + 1) * starts)
        mixed = profiles[own].reshape(-1, design.width)
        found.append(Mixture(shares[own].reshape(-1) / starts, mixed))
    return found


def _starts(design: KeptClusters, margins: Sequence[Array], starts: int) -> Array:
    """Profiles near the margins, from fixed seeds."""
    found = []
    for start in range(starts):
        rng = np.random.default_rng(start)
        profiles = []
        for margin in margins:
            noise = rng.gamma(4.0, 0.25, (CLASSES, margin.size))
            profiles.append((margin + 0.02 / margin.size) * noise / noise.mean(axis=0))
        found.append(np.concatenate(profiles, axis=1))
    return _normalized(design, np.array(found))


def _normalized(design: KeptClusters, profiles: Array) -> Array:
    sums = np.add.reduceat(profiles, design.starts[:-1], axis=2)
    return np.asarray(profiles / np.repeat(sums, design.sizes, axis=2))


class _Step:
    """What an expectation step needs of a design and its counts."""

    def __init__(self, design: KeptClusters, counts: Array) -> None:
        others = max(len(design.sizes) - 1, 1)
        self.keep = design.by_category(design.keep_of)
        sizes = design.by_category(design.sizes)
        self.chance = (1 - self.keep) / sizes
        self.by_chance = self.chance[:, np.newaxis] / sizes
        self.apart = np.where(design.apart, counts, 0) / others
        self.together = np.where(design.together, counts * self.keep[:, np.newaxis], 0) / others
        self.any_apart, self.any_together = design.apart.any(), design.together.any()

    def imputed(self, shares: Array, profiles: Array) -> tuple[Array, Array]:
        """How often each category was kept in each class, and how large the classes are."""
        told, sizes = np.zeros_like(profiles), np.zeros_like(shares)
        weight = shares[:, :, np.newaxis]
        if self.any_apart:
            seen = self.keep * profiles + self.chance
            weighted = weight * seen
            expected = np.matmul(weighted.transpose(0, 2, 1), seen)
            ratio = np.divide(self.apart, np.maximum(expected, TINY, out=expected), out=expected)
            held = np.matmul(seen, ratio)
            told += weight * self.keep * profiles * held
            sizes += (weighted * held).sum(axis=2) / 2
        if self.any_together:
            weighted = weight * profiles
            expected = np.matmul(weighted.transpose(0, 2, 1), profiles)
            expected *= self.keep[:, np.newaxis]
            expected += self.by_chance
            ratio = np.divide(self.together, np.maximum(expected, TINY, out=expected), out=expected)
            kept = weighted * np.matmul(profiles, ratio)
            told += kept
            sizes += kept.sum(axis=2) / 2
        return told, sizes
