"""Guessed populations: people as they might be, when nothing is known but what they are asked.

Shares of answers fall as rank^−1.5. Attributes depend on each other along a random tree, some
edges strong and others weak; all edges are strengthened together until the tables of all pairs
are, on average, as far from independence as is wished (in L1). So there are populations of weak,
middling and strong dependence for any questions, and what a design would publish can be tried out.
"""

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from mpc_rr.errors import InputError
from mpc_rr.estimation.matrix import Array, Codes, Uniform
from mpc_rr.estimation.tables import TreeModel

SKEW = 1.5
"""Shares of answers ∝ rank^−SKEW."""
NEAR_ENOUGH = 0.03
"""A population is taken if its dependence is off by no more than this share of what is wished."""
TRIES = 24
FLATTER = 0.25
"""So much less skew after every three populations that were not taken: very uneven shares leave
no room for strong dependence."""
STRONGEST = 8.0
LARGEST_EXPONENT = 12.0
SWEEPS = 60
HALVINGS = 14

PairTables = dict[tuple[int, int], Array]


@dataclass(frozen=True)
class GuessedPopulation:
    """People whose attributes depend on each other along a tree."""

    tree: TreeModel
    tables: PairTables
    """Of all pairs, exact."""

    @property
    def dependence(self) -> float:
        """How far the tables of pairs are from independence: mean L1 distance."""
        return mean_dependence(self.tables.values())

    def draw(self, n: int, uniform: Uniform) -> Codes:
        """So many people."""
        return self.tree.synthesize(n, uniform)


def mean_dependence(tables: Iterable[Array]) -> float:
    """How far tables of pairs are from the products of their margins: mean L1 distance."""
    distances = [
        float(np.abs(table - np.outer(table.sum(axis=1), table.sum(axis=0))).sum())
        for table in tables
    ]
    return math.fsum(distances) / len(distances)


def guessed_population(sizes: Sequence[int], dependence: float, seed: int) -> GuessedPopulation:
    """People whose tables of pairs are so far from independence, on average.

    If no random tree comes so near, that which comes nearest: see its ``dependence``.
    """
    if len(sizes) < 2 or min(sizes) < 2:
        raise InputError("a population needs two attributes with two categories each")
    if not 0 <= dependence < 2:
        raise InputError(f"a mean distance from independence lies in [0, 2), not {dependence}")
    rng = np.random.default_rng([seed, round(1e6 * dependence), *sizes])
    tried: list[GuessedPopulation] = []
    for attempt in range(TRIES):
        branches = _Branches.drawn(sizes, max(0.0, SKEW - FLATTER * (attempt // 3)), rng)
        tried.append(_strengthened(branches, dependence))
        if abs(tried[-1].dependence - dependence) <= NEAR_ENOUGH * dependence:
            return tried[-1]
    return min(tried, key=lambda found: abs(found.dependence - dependence))


@dataclass(frozen=True)
class _Branches:
    """A random tree, before it is decided how strong all its edges are."""

    margins: tuple[Array, ...]
    order: tuple[int, ...]
    parents: dict[int, int]
    directions: dict[int, Array]
    """By child: the logarithm of how much oftener than by chance each combination occurs."""

    @classmethod
    def drawn(cls, sizes: Sequence[int], skew: float, rng: np.random.Generator) -> "_Branches":
        weights = [np.arange(1.0, size + 1) ** -skew for size in sizes]
        margins = tuple(rng.permutation(weight / weight.sum()) for weight in weights)
        order = tuple(int(a) for a in rng.permutation(len(sizes)))
        parents = {order[k]: order[int(rng.integers(k))] for k in range(1, len(order))}
        directions = {
            child: rng.gamma(1.0) * rng.normal(size=(sizes[parent], sizes[child]))
            for child, parent in parents.items()
        }
        return cls(margins, order, parents, directions)

    def population(self, strength: float) -> GuessedPopulation:
        """With all edges so strong."""
        conditionals = {
            child: self._edge(parent, child, strength) for child, parent in self.parents.items()
        }
        root = self.margins[self.order[0]]
        sizes = tuple(len(margin) for margin in self.margins)
        tree = TreeModel(sizes, root, self.order, self.parents, conditionals)
        return GuessedPopulation(tree, self._tables(conditionals))

    def _edge(self, parent: int, child: int, strength: float) -> Array:
        """The child's shares given the parent's answer; both keep their margins."""
        rows, columns = self.margins[parent], self.margins[child]
        exponents = np.clip(strength * self.directions[child], -LARGEST_EXPONENT, LARGEST_EXPONENT)
        table = np.outer(rows, columns) * np.exp(exponents)
        for _ in range(SWEEPS):
            table *= columns / table.sum(axis=0)
            table *= (rows / table.sum(axis=1))[:, np.newaxis]
        return np.asarray(table / table.sum(axis=1, keepdims=True))

    def _tables(self, conditionals: dict[int, Array]) -> PairTables:
        """A new attribute meets all before it through its parent."""
        first = self.order[0]
        joint = {(first, first): np.diag(self.margins[first])}
        for place, child in enumerate(self.order[1:], start=1):
            step = conditionals[child]
            for other in self.order[:place]:
                joint[other, child] = joint[other, self.parents[child]] @ step
                joint[child, other] = joint[other, child].T
            joint[child, child] = np.diag(joint[first, child].sum(axis=0))
        pairs = itertools.combinations(range(len(self.margins)), 2)
        return {pair: joint[pair] for pair in pairs}


def _strengthened(branches: _Branches, dependence: float) -> GuessedPopulation:
    """With edges as strong as it takes, by bisection."""
    low, high = 0.0, STRONGEST
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        if branches.population(middle).dependence < dependence:
            low = middle
        else:
            high = middle
    return branches.population((low + high) / 2)
