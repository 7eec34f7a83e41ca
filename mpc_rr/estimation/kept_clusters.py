"""Clusters of attributes, each kept or replaced by a uniform value, as seen from their categories.

All categories of all attributes stand side by side, so that the tables of all pairs are one square
matrix. Nothing here has the size of a cluster's domain.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from mpc_rr.estimation.designs import Design
from mpc_rr.estimation.matrix import Array, Codes, KeepOrUniform, MatrixError


@dataclass(frozen=True)
class KeptClusters:
    """Which attributes were randomized together, and how probably they were kept."""

    sizes: tuple[int, ...]
    clusters: tuple[tuple[int, ...], ...]
    keeps: tuple[float, ...]
    """By cluster."""

    @classmethod
    def of(cls, design: Design) -> "KeptClusters":
        """Those of a design; `MatrixError` if it randomizes otherwise."""
        keeps = []
        for matrix in design.matrices:
            if not isinstance(matrix, KeepOrUniform):
                raise MatrixError("an answer is neither kept nor uniform in this design")
            matrix.check_invertible()
            keeps.append(matrix.keep)
        return cls(tuple(design.sizes), design.clusters, tuple(keeps))

    @cached_property
    def starts(self) -> list[int]:
        """Where the categories of each attribute begin."""
        return [int(start) for start in np.cumsum([0, *self.sizes])]

    @property
    def width(self) -> int:
        """How many categories all attributes have together."""
        return self.starts[-1]

    def places(self, attribute: int) -> slice:
        """Where the categories of an attribute stand."""
        return slice(self.starts[attribute], self.starts[attribute + 1])

    @cached_property
    def cluster_of(self) -> list[int]:
        """The number of each attribute's cluster."""
        found = [0] * len(self.sizes)
        for number, cluster in enumerate(self.clusters):
            for a in cluster:
                found[a] = number
        return found

    @cached_property
    def keep_of(self) -> list[float]:
        """How probably each attribute was kept."""
        return [self.keeps[number] for number in self.cluster_of]

    @cached_property
    def attribute_at(self) -> npt.NDArray[np.int64]:
        """To which attribute each category belongs."""
        return np.repeat(np.arange(len(self.sizes)), self.sizes)

    def by_category(self, of_attributes: Sequence[float]) -> Array:
        """A number of each attribute, once for each of its categories."""
        return np.repeat(np.asarray(of_attributes, dtype=np.float64), self.sizes)

    @cached_property
    def together(self) -> npt.NDArray[np.bool_]:
        """Which two categories are of different attributes of one cluster."""
        number, own = np.array(self.cluster_of)[self.attribute_at], self.attribute_at
        return np.asarray((number[:, np.newaxis] == number) & (own[:, np.newaxis] != own))

    @cached_property
    def apart(self) -> npt.NDArray[np.bool_]:
        """Which two categories are of different clusters."""
        number = np.array(self.cluster_of)[self.attribute_at]
        return np.asarray(number[:, np.newaxis] != number)

    def combinations(self, cluster: Sequence[int]) -> float:
        """How many values these attributes have together; as a float, it may be huge."""
        return math.prod(float(self.sizes[a]) for a in cluster)

    def pair_counts(self, records: Codes) -> Array:
        """How often each category, and each two categories, were reported together."""
        told = np.zeros((len(records), self.width), dtype=np.float32)
        told[np.arange(len(records))[:, np.newaxis], records + self.starts[:-1]] = 1.0
        if len(records) < 2**24:  # up to there a float of 32 bits counts exactly
            return (told.T @ told).astype(np.float64)
        pieces = np.array_split(told, len(records) // 2**23)
        return np.asarray(sum((piece.T @ piece).astype(np.float64) for piece in pieces))

    def with_keeps(self, keeps: Sequence[float]) -> "KeptClusters":
        """The same clusters, kept with other probabilities."""
        return KeptClusters(self.sizes, self.clusters, tuple(keeps))

    def randomized(self, records: Codes, rng: np.random.Generator) -> Codes:
        """Records that are randomized by this design, for a simulation."""
        found = records.copy()
        for cluster, keep in zip(self.clusters, self.keeps, strict=True):
            lost = np.flatnonzero(rng.random(len(records)) >= keep)
            for a in cluster:
                found[lost, a] = (rng.random(len(lost)) * self.sizes[a]).astype(records.dtype)
        return found

    def answers_design(self) -> Design:
        """As a design, whose matrices are never written down."""
        matrices = tuple(
            KeepOrUniform(math.prod(self.sizes[a] for a in cluster), keep)
            for cluster, keep in zip(self.clusters, self.keeps, strict=True)
        )
        return Design(self.sizes, self.clusters, matrices)


def unbiased_pairs(design: KeptClusters, counts: Array, n: int) -> tuple[Array, Array]:
    """The unbiased tables of all pairs as one matrix, and the unbiased shares of all categories."""
    shares = counts / n
    reported, keep = shares.diagonal(), design.by_category(design.keep_of)
    chance = (1 - keep) / design.by_category(design.sizes)
    apart = shares - np.outer(chance, reported) - np.outer(reported, chance)
    apart = (apart + np.outer(chance, chance)) / np.outer(keep, keep)
    by_chance = chance[:, np.newaxis] / design.by_category(design.sizes)
    together = (shares - by_chance) / keep[:, np.newaxis]
    return np.where(design.together, together, apart), (reported - chance) / keep
