"""The tables of many pairs of one shape at once, and how randomization disturbs them.

A pair's answers were kept or uniform, together (one cluster) or each by itself. So every operator
that is needed, the inverse, its square, the square of its Gram matrix, has one number on its
diagonal and one elsewhere along an axis, and is never written down.
"""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mpc_rr.estimation.kept_clusters import KeptClusters
from mpc_rr.estimation.matrix import Array

MOST_CELLS = 60_000
"""So many cells of tables are worked on at once; with all candidates they fit into memory."""


@dataclass(frozen=True)
class Factor:
    """One axis of randomization: over two attributes together, or one of them."""

    keep: Array
    """Of each pair; shape (pairs, 1, 1)."""
    size: int
    axes: tuple[int, ...]

    def mixed(self, tables: Array, diagonal: Array, other: Array) -> Array:
        """The operator with one number on its diagonal and one elsewhere."""
        total = tables.sum(axis=self.axes, keepdims=True)
        return np.asarray((diagonal - other) * tables + other * total)

    def randomized(self, tables: Array) -> Array:
        """What true tables become."""
        spread = (1 - self.keep) / self.size
        return self.mixed(tables, self.keep + spread, spread)

    def restored(self, tables: Array) -> Array:
        """The inverse, A."""
        spread = (1 - self.keep) / self.size
        return self.mixed(tables, (1 - spread) / self.keep, -spread / self.keep)

    def restored_squared(self, tables: Array) -> Array:
        """By the squared entries of the inverse."""
        spread = (1 - self.keep) / self.size
        return self.mixed(tables, ((1 - spread) / self.keep) ** 2, (spread / self.keep) ** 2)

    def gram_squared(self, tables: Array) -> Array:
        """Along this axis by the squared entries of AᵀA, A the inverse."""
        stays, spreads = 1 / self.keep, -(1 - self.keep) / self.size / self.keep
        other = 2 * stays * spreads + spreads**2 * self.size
        return self.mixed(tables, (stays**2 + other) ** 2, other**2)


@dataclass(frozen=True)
class PairGroup:
    """Pairs of attributes whose tables have one shape (an array has an axis for them first)."""

    pairs: tuple[tuple[int, int], ...]
    shape: tuple[int, int]
    together: bool
    rows: npt.NDArray[np.int64]
    columns: npt.NDArray[np.int64]

    def cut(self, matrix: Array) -> Array:
        """The pairs' tables out of a matrix over all categories."""
        return np.asarray(matrix[self.rows, self.columns])

    def factors(self, design: KeptClusters) -> tuple[Factor, ...]:
        """How these pairs were randomized by a design."""
        first, second = (
            np.array([design.keep_of[pair[k]] for pair in self.pairs]).reshape(-1, 1, 1)
            for k in (0, 1)
        )
        if self.together:
            return (Factor(first, self.shape[0] * self.shape[1], (-2, -1)),)
        return Factor(first, self.shape[0], (-2,)), Factor(second, self.shape[1], (-1,))


def groups_of(design: KeptClusters) -> Iterator[PairGroup]:
    """All pairs, by the shapes of their tables."""
    found: dict[tuple[int, int, bool], list[tuple[int, int]]] = {}
    for i, j in itertools.combinations(range(len(design.sizes)), 2):
        together = design.cluster_of[i] == design.cluster_of[j]
        found.setdefault((design.sizes[i], design.sizes[j], together), []).append((i, j))
    for (height, width, together), pairs in found.items():
        step = max(1, MOST_CELLS // (height * width))
        for start in range(0, len(pairs), step):
            own = tuple(pairs[start : start + step])
            rows = np.array([design.starts[i] for i, _ in own]).reshape(-1, 1, 1)
            columns = np.array([design.starts[j] for _, j in own]).reshape(-1, 1, 1)
            yield PairGroup(
                own,
                (height, width),
                together,
                rows + np.arange(height)[:, np.newaxis],
                columns + np.arange(width),
            )


class Noise:
    """Covariance that randomization gives the unbiased tables of a group, given the true answers.

    S = (A·diag(reported)·Aᵀ − diag(unbiased))/n, with A the inverse of the randomization.
    """

    def __init__(self, factors: Sequence[Factor], reported: Array, unbiased: Array, n: int) -> None:
        self.factors, self.reported, self.n = factors, reported, n
        second = reported
        for factor in factors:
            second = factor.restored_squared(second)
        self.variances = (second - unbiased) / n
        """The diagonal."""
        self.total = np.maximum(self.variances.sum(axis=(1, 2)), 0.0)
        """The trace."""
        gram = reported
        for factor in factors:
            gram = factor.gram_squared(gram)
        squares = (reported * gram - 2 * unbiased * second + unbiased**2).sum(axis=(1, 2)) / n**2
        usual = np.divide(squares, self.total, out=np.zeros_like(squares), where=self.total > 0)
        self.usual = np.maximum(usual, 1e-15)
        """The variance of a usual direction: tr S²/tr S."""
        self._unbiased = unbiased

    def along(self, tables: Array) -> Array:
        """S times a table, of each pair."""
        turned = tables
        for factor in self.factors:
            turned = factor.restored(turned)
        turned = self.reported * turned
        for factor in self.factors:
            turned = factor.restored(turned)
        return np.asarray((turned - self._unbiased * tables) / self.n)

    def within(self, cells: npt.NDArray[np.bool_]) -> Array:
        """tr(S·J), with J the centring on some cells (pairs, tables of these, rows, columns)."""
        weights = cells.astype(np.float64)
        turned = weights
        for factor in self.factors:  # symmetric, so this is Aᵀ
            own = Factor(factor.keep[:, np.newaxis], factor.size, factor.axes)
            turned = own.restored(turned)
        spread = (self.reported[:, np.newaxis] * turned**2).sum(axis=(2, 3))
        spread -= (self._unbiased[:, np.newaxis] * weights).sum(axis=(2, 3))
        own_variances = (self.variances[:, np.newaxis] * weights).sum(axis=(2, 3))
        return np.asarray(own_variances - spread / self.n / np.maximum(weights.sum((2, 3)), 1))
