"""Wider tables from narrower ones (paper 002 §4.3): what k-way tables tell about more attributes.

Tables of overlapping combinations, estimated apart, contradict each other about what they share;
the paper's equality constraints then have no solution at all. So their common margins are averaged
first (`mpc_rr.estimation.tables.make_consistent`). Then iterative proportional fitting gives the
table with the largest entropy among those with these margins; the paper's program, the table with
the smallest sum of squares, is there as an option.
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np

from mpc_rr.errors import InputError
from mpc_rr.estimation.matrix import Array
from mpc_rr.estimation.tables import make_consistent, maximum_entropy

MOST_CELLS = 4096
CONSTRAINT_WEIGHT = 1e4


def wider_table(
    tables: Mapping[tuple[int, ...], Array],
    sizes: Sequence[int],
    attributes: Sequence[int],
    *,
    weights: Mapping[tuple[int, ...], float] | None = None,
    method: Literal["entropy", "squares"] = "entropy",
) -> Array:
    """The table of these attributes that follows from the narrower tables about them."""
    wanted = tuple(sorted(attributes))
    inside = {c: t for c, t in tables.items() if set(c) <= set(wanted)}
    covered = {attribute for combination in inside for attribute in combination}
    if covered != set(wanted):
        missing = min(set(wanted) - covered)
        raise InputError(f"no table is about attribute {missing} and others of these only")
    agreed = make_consistent(inside, None if weights is None else {c: weights[c] for c in inside})
    shape = [sizes[a] for a in wanted]
    places = {a: place for place, a in enumerate(wanted)}
    moved = {tuple(places[a] for a in c): table for c, table in agreed.items()}
    if method == "entropy":
        return maximum_entropy(moved, shape)[0]
    return _least_squares(moved, shape)


def _least_squares(tables: Mapping[tuple[int, ...], Array], shape: Sequence[int]) -> Array:
    """The paper's program: the smallest sum of squares with these margins and no negative cell."""
    from scipy.optimize import nnls  # noqa: PLC0415  (slow to start)

    cells = math.prod(shape)
    if cells > MOST_CELLS:
        raise InputError(f"{cells:,} cells are too many for the least-squares program")
    rows, wished = [], []
    codes = np.indices(shape).reshape(len(shape), -1)
    for combination, table in tables.items():
        for cell in itertools.product(*(range(shape[a]) for a in combination)):
            inside = np.ones(cells, dtype=bool)
            for attribute, code in zip(combination, cell, strict=True):
                inside &= codes[attribute] == code
            rows.append(CONSTRAINT_WEIGHT * inside)
            wished.append(CONSTRAINT_WEIGHT * float(table[cell]))
    system = np.vstack([np.array(rows), np.eye(cells)])
    found, _ = nnls(system, np.array(wished + [0.0] * cells))
    return np.asarray(found / found.sum()).reshape(shape)
