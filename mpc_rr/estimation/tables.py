"""Better tables of two or more attributes than the papers': shrunk, likely, consistent, joined.

* `shrunk_pair`: the unbiased table of a pair, its dependence term shrunk towards independence by
  how much of it is noise. From RR-Independent this gives the joint that the papers call lost.
* `best_pair_tables`: all pairs, shrunk towards a model of latent classes instead. The default
  up to rules 3; since then everything is counted in one population (`full_reports`).
* `likely_pair`: the pair's table by maximum likelihood.
* `make_consistent`: tables that share attributes are made to agree about them.
* `maximum_entropy`: the joint distribution that has given tables and assumes nothing else.
* `TreeModel`: the same for a tree of pairs (the strongest ones), for any number of attributes;
  it can draw synthetic records without ever enumerating the domain.
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mpc_rr.errors import InputError
from mpc_rr.estimation.dependence import dependence
from mpc_rr.estimation.designs import Fitted
from mpc_rr.estimation.distribution import Estimate, maximum_likelihood, project_to_simplex
from mpc_rr.estimation.latent import CLASSES, draw_categories, latent_classes
from mpc_rr.estimation.matrix import Array, Codes, Uniform

Tables = Mapping[tuple[int, ...], Array]
"""Joint distributions of groups of attributes, by the attributes' numbers in rising order."""


def shrunk_pair(fitted: Fitted, first: int, second: int) -> Array:
    """A pair's table: independence plus as much of the measured dependence as is not noise.

    The unbiased table minus the product of its margins is the dependence term D. Its expected
    square is that of the true D plus the variances of the cells; the share that is not noise is
    estimated by 1 − Σ variance/Σ D² (a positive-part James–Stein factor).
    """
    estimate = fitted.unbiased((first, second))
    margins = [
        project_to_simplex(fitted.unbiased((attribute,)).shares) for attribute in (first, second)
    ]
    return shrunk(estimate, np.outer(margins[0], margins[1]))


def shrunk(estimate: Estimate, towards: Array) -> Array:
    """An unbiased table drawn towards a model of it, by how much of the difference is noise.

    Noise alone would give a squared difference of Σ variance, give or take √(2/cells) of it; where
    the difference is hardly more than that, this much is taken for noise as well.
    """
    difference = estimate.shares - towards
    energy = float((difference**2).sum())
    noise = float((estimate.standard_errors**2).sum())
    freedom = max(math.prod(size - 1 for size in towards.shape), 1)
    noisy = min(noise / energy, 1.0) if energy > 0 else 1.0
    factor = max(0.0, 1 - noisy * (1 + math.sqrt(2 / freedom) * noisy))
    return project_to_simplex(towards + factor * difference)


def shrunk_table(estimate: Estimate) -> Array:
    """The unbiased table of a pair, shrunk towards the product of its own margins."""
    margins = [project_to_simplex(estimate.shares.sum(axis=axis)) for axis in (1, 0)]
    return shrunk(estimate, np.outer(margins[0], margins[1]))


def best_pair_tables(fitted: Fitted, *, classes: int = CLASSES) -> dict[tuple[int, ...], Array]:
    """The tables of all pairs towards a model of all attributes.

    A mixture of latent classes is fitted to all answers at once; each pair's unbiased table is then
    shrunk towards it. So little data follows the model, much data overrules it.
    """
    sizes = fitted.design.sizes
    model = latent_classes(fitted.answers(), sizes, fitted.n, classes=classes)
    pairs = itertools.combinations(range(len(sizes)), 2)
    return {pair: shrunk(fitted.unbiased(pair), model.table(pair)) for pair in pairs}


def likely_pair(fitted: Fitted, first: int, second: int, *, tolerance: float = 1e-7) -> Array:
    """A pair's table by maximum likelihood, from the reports of the two attributes."""
    low, high = sorted((first, second))
    randomization = fitted.randomization((low, high))
    counts = fitted.counts((low, high)).reshape(randomization.sizes)
    fit = maximum_likelihood(counts, randomization, tolerance=tolerance, most_iterations=2000)
    table = fit.shares.reshape(fitted.design.sizes[low], fitted.design.sizes[high])
    return table if first < second else table.T


# ── Consistency ────────────────────────────────────────────────────────────────────────────────


def margin(table: Array, attributes: Sequence[int], wanted: Sequence[int]) -> Array:
    """The margin of some of a table's attributes, in their order in the table."""
    others = tuple(axis for axis, a in enumerate(attributes) if a not in wanted)
    return np.asarray(table.sum(axis=others))


def make_consistent(
    tables: Tables, precisions: Mapping[tuple[int, ...], float] | None = None
) -> dict[tuple[int, ...], Array]:
    """Make tables that share an attribute agree about its margin.

    The common margin is the average over the tables, weighted by ``precisions`` (for example the
    number of respondents behind each); each table is then raked to its new margins. (Only margins
    of single attributes: larger tables may still differ about the pairs they share.)
    """
    weights = precisions or dict.fromkeys(tables, 1.0)
    common: dict[int, Array] = {}
    for attribute in sorted({a for attributes in tables for a in attributes}):
        holders = [attributes for attributes in tables if attribute in attributes]
        total = math.fsum(weights[attributes] for attributes in holders)
        if not total > 0:
            raise InputError(f"no table that holds attribute {attribute} has any weight")
        mixed = np.sum(
            [weights[h] / total * margin(tables[h], h, [attribute]) for h in holders], axis=0
        )
        common[attribute] = project_to_simplex(np.asarray(mixed))
    return {
        attributes: _with_margins(table, [common[a] for a in attributes])
        for attributes, table in tables.items()
    }


def _with_margins(table: Array, margins: Sequence[Array], sweeps: int = 200) -> Array:
    """Iterative proportional fitting of one table to the margins of its attributes."""
    tiny = 1e-12 / table.size
    fitted = np.maximum(table, tiny)
    for _ in range(sweeps):
        worst = 0.0
        for axis, target in enumerate(margins):
            others = tuple(k for k in range(fitted.ndim) if k != axis)
            found = fitted.sum(axis=others)
            worst = max(worst, float(abs(found - target).max()))
            shape = [-1 if k == axis else 1 for k in range(fitted.ndim)]
            factor = np.divide(target, found, out=np.zeros_like(target), where=found > 0)
            fitted = fitted * factor.reshape(shape)
        if worst < 1e-12:
            break
    return np.asarray(fitted)


# ── Joint distributions ────────────────────────────────────────────────────────────────────────

ENTROPY_LIMIT = 20_000_000


def maximum_entropy(
    tables: Tables, sizes: Sequence[int], *, tolerance: float = 1e-6, most_sweeps: int = 500
) -> tuple[Array, bool]:
    """The joint distribution with these tables and the largest entropy, and whether it converged.

    Iterative proportional fitting from the uniform distribution over the whole domain. Tables that
    contradict each other (see `make_consistent`) cannot all be met; then it does not converge.
    """
    if math.prod(sizes) > ENTROPY_LIMIT:
        raise InputError(
            f"{math.prod(sizes):,} combinations are too many to enumerate; use a TreeModel, which "
            "needs only tables of pairs"
        )
    joint = np.full(tuple(sizes), 1 / math.prod(sizes))
    for _ in range(most_sweeps):
        worst = 0.0
        for attributes, target in tables.items():
            if tuple(sorted(attributes)) != attributes:
                raise InputError("the attributes of a table must be in rising order")
            others = tuple(k for k in range(len(sizes)) if k not in attributes)
            found = joint.sum(axis=others, keepdims=True)
            wished = target.reshape(found.shape)
            worst = max(worst, float(abs(found - wished).max()))
            joint *= np.divide(wished, found, out=np.zeros_like(found), where=found > 0)
        if worst <= tolerance:
            return joint, True
    return joint, False


@dataclass(frozen=True)
class TreeModel:
    """A joint distribution made of a tree of pairs: each attribute given its parent.

    Of all trees it keeps the pairs with the most mutual information (Chow and Liu 1968), which is
    the closest tree to the data; and it is the distribution of largest entropy with these pairs.
    """

    sizes: tuple[int, ...]
    root: Array
    order: tuple[int, ...]
    parents: dict[int, int]
    conditionals: dict[int, Array]
    """For each attribute but the root's: a row of probabilities for each value of its parent."""

    @classmethod
    def from_pairs(cls, tables: Tables, sizes: Sequence[int]) -> "TreeModel":
        """The tree of the strongest dependences among these pair tables (all pairs are needed)."""
        import networkx as nx  # noqa: PLC0415  (few commands need it, all would wait for it)

        graph: nx.Graph[int] = nx.Graph()
        graph.add_nodes_from(range(len(sizes)))
        for pair, table in tables.items():
            if len(pair) != 2:
                raise InputError(f"a tree is made of tables of two attributes, not of {pair}")
            graph.add_edge(*pair, weight=mutual_information(table))
        if not nx.is_connected(graph):
            raise InputError("some attributes are in no table with the others")
        tree = nx.maximum_spanning_tree(graph)
        edges = list(nx.bfs_edges(tree, 0))
        conditionals, parents = {}, {}
        for parent, child in edges:
            table = tables[min(parent, child), max(parent, child)]
            rows = table if parent < child else table.T
            totals = rows.sum(axis=1, keepdims=True)
            uniform = np.full(rows.shape, 1 / rows.shape[1])
            conditionals[child] = np.divide(rows, totals, out=uniform, where=totals > 0)
            parents[child] = parent
        first = edges[0] if edges else (0, 0)
        root = margin(tables[min(first), max(first)], sorted(first), [0])
        order = (0, *(child for _, child in edges))
        return cls(tuple(sizes), root, order, parents, conditionals)

    def synthesize(self, rows: int, uniform: Uniform) -> Codes:
        """Synthetic records, drawn attribute by attribute."""
        records = np.zeros((rows, len(self.sizes)), dtype=np.int64)
        for attribute in self.order:
            if attribute == self.order[0]:
                probabilities = np.broadcast_to(self.root, (rows, self.root.size))
            else:
                probabilities = self.conditionals[attribute][records[:, self.parents[attribute]]]
            records[:, attribute] = draw_categories(probabilities, uniform)
        return records

    def pair(self, first: int, second: int) -> Array:
        """The table of any two attributes under the model, along the path between them."""
        path = self._path(first, second)
        table = np.diag(self._margin(first))
        for here, there in itertools.pairwise(path):
            table = table @ self._step(here, there)
        return np.asarray(table)

    def _margin(self, attribute: int) -> Array:
        if attribute == self.order[0]:
            return self.root
        return np.asarray(self._margin(self.parents[attribute]) @ self.conditionals[attribute])

    def _step(self, here: int, there: int) -> Array:
        if self.parents.get(there) == here:
            return self.conditionals[there]
        joint = self._margin(there)[:, np.newaxis] * self.conditionals[here]
        totals = joint.sum(axis=0)[:, np.newaxis]
        uniform = np.full(joint.T.shape, 1 / joint.shape[0])
        return np.asarray(np.divide(joint.T, totals, out=uniform, where=totals > 0))

    def _path(self, first: int, second: int) -> list[int]:
        up = [first]
        while up[-1] in self.parents:
            up.append(self.parents[up[-1]])
        down = [second]
        while down[-1] not in up:
            down.append(self.parents[down[-1]])
        return up[: up.index(down[-1])] + down[::-1]


def mutual_information(table: Array) -> float:
    """In nats; 0 for independent attributes."""
    product = np.outer(table.sum(axis=1), table.sum(axis=0))
    used = (table > 0) & (product > 0)
    return float((table[used] * np.log(table[used] / product[used])).sum())


def dependence_matrix(
    tables: Mapping[tuple[int, int], Array] | Tables,
    ordinal: Sequence[bool],
    answers: Sequence[Sequence[int]],
) -> Array:
    """The dependence of every pair of a set of tables of shares; 0 where it is undefined.

    |Pearson r| where both attributes are ordinal, else Cramér's V; of each attribute only the
    categories that are ``answers``.
    """
    matrix = np.zeros((len(ordinal), len(ordinal)))
    for (i, j), table in ((tuple(sorted(pair)), t) for pair, t in tables.items()):
        answered = table[np.ix_(answers[i], answers[j])]
        found = dependence(answered, both_ordinal=ordinal[i] and ordinal[j])
        matrix[i, j] = matrix[j, i] = found.value or 0.0
    return matrix


def synthesize(joint: Array, rows: int, uniform: Uniform) -> Codes:
    """Synthetic records from a joint distribution that was enumerated."""
    cumulative = np.cumsum(joint.ravel())
    drawn = uniform((rows,)) * cumulative[-1]
    cells = np.searchsorted(cumulative, drawn, side="right")
    cells = np.minimum(cells, joint.size - 1)
    return np.stack(np.unravel_index(cells, joint.shape), axis=1)
