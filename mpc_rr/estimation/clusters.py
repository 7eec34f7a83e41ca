"""Groups of attributes that depend on each other (000 §4, 003 §4).

`merge_clusters` is Algorithm 1 of paper 000. `power_iteration_clusters` is the clustering that
paper 003 names (Lin and Cohen 2010), on the graph whose nodes are attributes and whose edges are
their dependences. (The paper feeds it 1/V, a distance, where a similarity belongs; that is
available as ``as_printed``, to reproduce its table.)
"""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from mpc_rr.errors import InputError

if TYPE_CHECKING:
    import networkx as nx

Clusters = list[tuple[int, ...]]
Dependences = npt.NDArray[np.float64]
"""A symmetric matrix: how strongly each pair of attributes depends on each other, 0 to 1."""


def check_clusters(clusters: Sequence[Sequence[int]], attributes: int) -> Clusters:
    """The clusters in order; `InputError` unless every attribute is in exactly one."""
    found = sorted(index for cluster in clusters for index in cluster)
    if found != list(range(attributes)):
        raise InputError(f"every one of the {attributes} attributes must be in exactly one cluster")
    return sorted(tuple(sorted(cluster)) for cluster in clusters)


def merge_clusters(
    dependences: Dependences, sizes: Sequence[int], most_combinations: int, least_dependence: float
) -> Clusters:
    """Algorithm 1 of paper 000: merge the most dependent clusters while they stay small.

    ``most_combinations`` is T_v, ``least_dependence`` is T_d. The dependence of two clusters is
    the largest between an attribute of one and an attribute of the other. Equal dependences are
    taken in the order of the attributes.
    """
    _check_dependences(dependences, len(sizes))
    clusters: Clusters = [(index,) for index in range(len(sizes))]
    while True:
        for strength, first, second in _ranked_pairs(clusters, dependences):
            if strength < least_dependence:
                return sorted(clusters)
            merged = tuple(sorted(first + second))
            if math.prod(sizes[index] for index in merged) <= most_combinations:
                clusters = [c for c in clusters if c not in (first, second)] + [merged]
                break
        else:
            return sorted(clusters)


def _ranked_pairs(
    clusters: Clusters, dependences: Dependences
) -> list[tuple[float, tuple[int, ...], tuple[int, ...]]]:
    ordered = sorted(clusters)
    pairs = [
        (float(dependences[np.ix_(first, second)].max()), first, second)
        for place, first in enumerate(ordered)
        for second in ordered[place + 1 :]
    ]
    return sorted(pairs, key=lambda pair: -pair[0])


def dependence_graph(names: Sequence[str], dependences: Dependences) -> "nx.Graph[str]":
    """The complete graph of attributes; ``weight`` is how strongly two depend on each other."""
    _check_dependences(dependences, len(names))
    import networkx as nx  # noqa: PLC0415  (few commands need it, all would wait for it)

    graph: nx.Graph[str] = nx.Graph()
    graph.add_nodes_from(names)
    for i, first in enumerate(names):
        for j in range(i + 1, len(names)):
            graph.add_edge(first, names[j], weight=float(dependences[i, j]))
    return graph


def power_iteration_clusters(
    graph: "nx.Graph[str]", clusters: int, *, as_printed: bool = False
) -> list[list[str]]:
    """Power iteration clustering of the attributes of a `dependence_graph`.

    The normalized affinity matrix is multiplied to a vector until its *acceleration* is small:
    then nodes of one cluster have nearly the same entry, and the entries are split into
    ``clusters`` groups, here by the exact one-dimensional k-means.

    A single start can miss a cluster (the usual one, the degrees, tells apart only attributes that
    depend on *much* and on *little*), so it is started from the degrees and from every attribute
    alone, and the split with the smallest normalized cut is taken.
    """
    names = list(graph)
    if not 1 <= clusters <= len(names):
        raise InputError(f"{len(names)} attributes cannot make {clusters} clusters")
    import networkx as nx  # noqa: PLC0415  (few commands need it, all would wait for it)

    affinity = nx.to_numpy_array(graph, nodelist=names, weight="weight")
    if as_printed:
        affinity = np.divide(1.0, affinity, out=np.zeros_like(affinity), where=affinity > 0)
    # An attribute depends on itself fully. Without this, two attributes that depend mostly on each
    # other swap their entries in every iteration, and the vector never settles.
    np.fill_diagonal(affinity, 1.0)
    degrees = affinity.sum(axis=1)
    starts = [degrees / degrees.sum()]
    if not as_printed:
        starts += list(np.eye(len(names)))
    splits = [_split_line(_iterate_power(affinity, start), clusters) for start in starts]
    groups = min(splits, key=lambda split: _normalized_cut(affinity, split))
    return [[name for name, group in zip(names, groups, strict=True) if group == g]
            for g in sorted(set(groups))]  # fmt: skip


def _iterate_power(affinity: Dependences, vector: Dependences, most: int = 1000) -> Dependences:
    """Multiply the row-normalized affinity until the vector changes at an even pace."""
    degrees = affinity.sum(axis=1)
    change = np.full(len(vector), np.inf)
    for _ in range(most):
        following = affinity @ vector / degrees
        following /= abs(following).sum()
        new_change = abs(following - vector)
        vector = following
        if abs(new_change - change).max() <= 1e-5 / len(vector):
            break
        change = new_change
    return vector


def _normalized_cut(affinity: Dependences, groups: Sequence[int]) -> float:
    """How much of each group's affinity goes outside, summed over the groups."""
    labels = np.asarray(groups)
    return sum(
        float(affinity[labels == g][:, labels != g].sum() / affinity[labels == g].sum())
        for g in set(groups)
    )


def _split_line(values: npt.NDArray[np.float64], parts: int) -> list[int]:
    """Numbers on a line into ``parts`` groups of least squared deviation (dynamic programming)."""
    order = np.argsort(values, kind="stable")
    line = values[order]
    n = len(line)

    def cost(start: int, end: int) -> float:
        return float(((line[start:end] - line[start:end].mean()) ** 2).sum())

    best = [cost(0, end) if end else 0.0 for end in range(n + 1)]
    cuts: list[list[int]] = []
    for _ in range(1, parts):
        options = [
            [(best[cut] + cost(cut, end), cut) for cut in range(1, end)] or [(math.inf, 0)]
            for end in range(n + 1)
        ]
        chosen = [min(option) for option in options]
        best, cuts = [c[0] for c in chosen], [*cuts, [c[1] for c in chosen]]
    groups = [0] * n
    end = n
    for part in range(parts - 1, -1, -1):
        start = cuts[part - 1][end] if part else 0
        for place in range(start, end):
            groups[int(order[place])] = part
        end = start
    return groups


def representatives(
    tables: Mapping[tuple[int, int], npt.ArrayLike], near: float = 0.95
) -> dict[int, int]:
    """For each attribute, the one it can be computed from: itself, or one that stands for it.

    003 §4 keeps one of several attributes that nearly duplicate each other. Dependence alone has no
    direction: |x − 2| follows from x, not x from |x − 2|. So here z stands for x only if x is a
    function of z, but for the share 1 − ``near`` of its entropy (`determination`). The attribute
    that stands for most others is chosen first; then the rest are judged anew among themselves.

    ``tables``: of the shares of every pair (i, j), i < j.
    """
    told = {}
    for (i, j), table in tables.items():
        shares = np.asarray(table, dtype=np.float64)
        told[i, j], told[j, i] = determination(shares), determination(shares.T)
    left = sorted({a for pair in tables for a in pair})
    if any((i, j) not in told for i in left for j in left if i != j):
        raise InputError("a table of every pair of attributes is needed")
    stands: dict[int, int] = {}
    while left:
        followers = {z: [x for x in left if x != z and told[z, x] >= near] for z in left}
        best = max(left, key=lambda z: len(followers[z]))
        stands |= dict.fromkeys([best, *followers[best]], best)
        left = [a for a in left if a not in stands]
    return dict(sorted(stands.items()))


def determination(table: npt.ArrayLike) -> float:
    """How far the row determines the column: 1 − H(column | row)/H(column), from 0 to 1.

    1 if the column is a function of the row; so, too, if everybody is in one column.
    """
    shares = np.asarray(table, dtype=np.float64)
    if shares.ndim != 2 or not (shares >= 0).all() or not 0 < shares.sum() < math.inf:
        raise InputError("a table of two attributes, of which no share is negative, is needed")
    shares = shares / shares.sum()
    columns = _entropy(shares.sum(axis=0))
    if columns <= 0:
        return 1.0
    given = _entropy(shares.ravel()) - _entropy(shares.sum(axis=1))
    return float(np.clip(1 - given / columns, 0, 1))


def _entropy(shares: npt.NDArray[np.float64]) -> float:
    some = shares[shares > 0]
    return float(-(some * np.log2(some)).sum())


def computed_from(table: npt.ArrayLike) -> tuple[list[int], float]:
    """For each row the most frequent column, and for how large a share of people that is wrong."""
    shares = np.asarray(table, dtype=np.float64)
    if shares.ndim != 2 or not shares.sum() > 0:
        raise InputError("a table of two attributes is needed")
    most = shares.argmax(axis=1)
    right = shares[np.arange(len(shares)), most].sum() / shares.sum()
    return most.tolist(), float(max(0.0, 1 - right))


def coarsen(shares: npt.ArrayLike, most_categories: int, *, ordinal: bool) -> list[tuple[int, ...]]:
    """Categories joined until at most ``most_categories`` are left (003 §4's fallback).

    The two whose joint share is smallest are joined: neighbours if the categories have an order.
    """
    weights = [float(share) for share in np.asarray(shares)]
    if most_categories < 1:
        raise InputError("at least one category must be left")
    groups: list[tuple[int, ...]] = [(k,) for k in range(len(weights))]
    while len(groups) > most_categories:
        pairs = [
            (weights[i] + weights[j], i, j)
            for i in range(len(groups))
            for j in ([i + 1] if ordinal else range(i + 1, len(groups)))
            if j < len(groups)
        ]
        total, i, j = min(pairs)
        groups[i], weights[i] = tuple(sorted(groups[i] + groups[j])), total
        del groups[j], weights[j]
    return groups


def _check_dependences(dependences: Dependences, attributes: int) -> None:
    if dependences.shape != (attributes, attributes):
        raise InputError(f"dependences must be {attributes} x {attributes}")
    if not np.isfinite(dependences).all() or not np.allclose(dependences, dependences.T):
        raise InputError("dependences must be a symmetric matrix of numbers")
