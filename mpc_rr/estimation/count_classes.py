"""Latent classes fitted to counts: what a fit costs does not depend on how many people answered.

As in `latent`, the joint distribution is a mixture of classes, within which the attributes are
independent. Here it is fitted to the `Tallies`: of each pair, how often each cell was reported, or
of an attribute that was reported alone, each category. Expectation maximization splits every count
between chance and truth, and the latter between the classes. Several mixtures, of several starts,
are fitted at once; those that differ only by their start are averaged, which is a mixture again.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mpc_rr.estimation.matrix import Array, Codes
from mpc_rr.estimation.tallies import Tallies

CLASSES = 16
SEED = 21
NEAR = 4.0
DIGITS = 9
"""Of the parameters, so that what is drawn by them is the same on every machine."""


@dataclass(frozen=True)
class Mixture:
    """Classes, with their shares, and in each the distribution of every attribute."""

    sizes: tuple[int, ...]
    shares: Array
    profiles: Array
    """A row for each class: the distributions of all attributes, one after the other."""

    @property
    def joint(self) -> Array:
        """The tables of all pairs, as blocks of one matrix."""
        return np.asarray((self.shares[:, np.newaxis] * self.profiles).T @ self.profiles)

    def by_attribute(self) -> list[Array]:
        """The profiles of each attribute."""
        return np.split(self.profiles, np.cumsum(self.sizes)[:-1].tolist(), axis=1)

    @classmethod
    def of(cls, parts: Sequence[tuple[float, "Mixture"]]) -> "Mixture":
        """One mixture of several, each with its share."""
        shares = np.concatenate([share * mixture.shares for share, mixture in parts])
        profiles = np.concatenate([mixture.profiles for _, mixture in parts])
        return cls(parts[0][1].sizes, shares / shares.sum(), profiles)

    @classmethod
    def independent(cls, margins: Sequence[Array]) -> "Mixture":
        """One class, of these margins."""
        sizes = tuple(len(margin) for margin in margins)
        return cls(sizes, np.ones(1), np.concatenate(margins)[np.newaxis])

    def rounded(self) -> "Mixture":
        """With so few digits that every machine has the same."""
        shares, profiles = self.shares.round(DIGITS), self.profiles.round(DIGITS)
        return Mixture(self.sizes, shares, profiles)


def _starts(margins: Sequence[Array], starts: int) -> Array:
    """Profiles near the margins, each share changed at random, on average nothing."""
    made = []
    for number in range(starts):
        rng = np.random.default_rng([SEED, number])
        profiles = []
        for margin in margins:
            noise = rng.gamma(NEAR, 1 / NEAR, (CLASSES, margin.size))
            profile = (margin + 0.02 / margin.size) * noise / noise.mean(axis=0)
            profiles.append(profile / profile.sum(axis=1, keepdims=True))
        made.append(np.concatenate(profiles, axis=1))
    return np.array(made)


def fit_counts(
    tallies: Tallies,
    margins: Sequence[Array],
    priors: Sequence[float],
    starts: int,
    iterations: int,
) -> list[Mixture]:
    """A mixture for each strength of the prior: so many invented people of each class answer like
    everybody. Stopping early keeps the fit from following the noise."""
    width = sum(tallies.sizes)
    profiles = np.tile(_starts(margins, starts), (len(priors), 1, 1))
    shares = np.full(profiles.shape[:2], 1 / CLASSES)
    invented = np.repeat(priors, starts)[:, np.newaxis, np.newaxis] * np.concatenate(margins)
    together, alone = tallies.of_pairs, tallies.of_those_alone
    counts, single = together.counts, alone.counts
    first = [place.start for place in tallies.places]
    for _ in range(iterations):
        joint = shares[:, :, np.newaxis] * profiles
        expected = np.matmul(joint.transpose(0, 2, 1), profiles)
        expected += together.chance
        np.divide(counts, expected, out=expected)
        true = np.matmul(profiles, expected)
        true *= joint
        people = true.sum(axis=2) / 2  # each cell is in the matrix twice
        from_alone = joint * (single / (alone.chance + joint.sum(axis=1)))[:, np.newaxis]
        true += from_alone
        people += from_alone.sum(axis=2) + 1.0
        shares = people / people.sum(axis=1, keepdims=True)
        true += invented
        totals = np.add.reduceat(true, first, axis=2)
        profiles = true / np.repeat(totals, tallies.sizes, axis=2)
    shape = (len(priors), starts * CLASSES)
    shares, profiles = shares.reshape(shape) / starts, profiles.reshape(*shape, width)
    return [Mixture(tallies.sizes, s, p).rounded() for s, p in zip(shares, profiles, strict=True)]


def allotted(shares: Array, rows: int) -> Codes:
    """How many of so many rows each share gets: systematically, never off by more than one."""
    ends = np.floor(np.cumsum(shares) / shares.sum() * rows + 0.5)
    return np.asarray(np.diff(ends, prepend=0.0).astype(np.int64))


def draw_records(mixture: Mixture, rows: int, rng: np.random.Generator) -> Codes:
    """Records of a mixture: as many of each class, and of each category in it, as its share says;
    only who has which together is drawn."""
    pieces = []
    profiles = mixture.by_attribute()
    for k, people in enumerate(allotted(mixture.shares, rows).tolist()):
        columns = [
            rng.permutation(np.repeat(np.arange(p.shape[1]), allotted(p[k], people)))
            for p in profiles
        ]
        pieces.append(np.stack(columns, axis=1))
    return np.concatenate(pieces)
