"""A Bayesian network learned from the tables that a study published, and people drawn from it.

Of all trees the one with the most mutual information between neighbours (Chow and Liu 1968), as the
published tables have it: the distribution of largest entropy with the tables along its edges.
"""

import itertools

import numpy as np

from mpc_rr.errors import InputError
from mpc_rr.estimation.matrix import Array, Codes, Uniform
from mpc_rr.estimation.tables import TreeModel
from mpc_rr.publication.parts import Publication, Table
from mpc_rr.schema import Schema
from mpc_rr.study.bif import Network, Node


def tree_of(published: Publication, schema: Schema) -> TreeModel | None:
    """The tree of the published tables of shares; None if they do not hold all attributes so.

    Pairs within wider tables count, too.
    """
    pairs: dict[tuple[int, ...], Array] = {}
    for table in published.tables:
        if len(table.axes) < 2 or table.kind != "share" or None in table.values:
            continue
        places, shares = _in_order(table, schema)
        for i, j in itertools.combinations(range(len(places)), 2):
            others = tuple(k for k in range(len(places)) if k not in (i, j))
            pairs.setdefault((places[i], places[j]), shares.sum(axis=others))
    if not pairs:
        return None
    try:
        return TreeModel.from_pairs(pairs, schema.sizes)
    except InputError:
        return None


def _in_order(table: Table, schema: Schema) -> tuple[tuple[int, ...], Array]:
    """Its attributes in rising order, and its shares with axes in that order."""
    places = [schema.names.index(axis.attribute) for axis in table.axes]
    shares = np.array(table.values, dtype=np.float64).reshape([schema.sizes[a] for a in places])
    order = np.argsort(places)
    return tuple(sorted(places)), shares.transpose(order)


def network_of(tree: TreeModel, schema: Schema) -> Network:
    """The tree as a Bayesian network: every attribute but the first given its parent."""
    nodes = []
    for attribute in range(len(schema.sizes)):
        if attribute == tree.order[0]:
            nodes.append(Node((), (tree.root / tree.root.sum())[np.newaxis, :]))
        else:
            nodes.append(Node((tree.parents[attribute],), tree.conditionals[attribute]))
    return Network(schema, tuple(nodes), tree.order)


def invented(published: Publication, schema: Schema, rows: int, uniform: Uniform) -> Codes | None:
    """People drawn from the tree; None if there is none."""
    if rows < 1:
        raise InputError(f"the number of rows must be positive, not {rows}")
    tree = tree_of(published, schema)
    return None if tree is None else tree.synthesize(rows, uniform)
