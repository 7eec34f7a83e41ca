"""Wider tables from narrower ones (paper 002 §4.3): what k-way tables tell about more attributes.

Tables of overlapping combinations, estimated apart, contradict each other about what they share;
the paper's equality constraints then have no solution at all. So they are first made to agree
(`mpc_rr.estimation.agreement`). Then iterative proportional fitting gives the table with the
largest entropy among those with these margins; the paper's program, the table with the smallest sum
of squares, is there as an option. Tables that agree two by two may still be those of no table at
all: then fitting ends between them, and says by how much it misses them.
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from mpc_rr.errors import InputError
from mpc_rr.estimation.agreement import agreeing
from mpc_rr.estimation.matrix import Array
from mpc_rr.estimation.tables import maximum_entropy

MOST_CELLS = 4096
CONSTRAINT_WEIGHT = 1e4
LARGEST_FACTOR = 1e4
STEPS = (0.5,) * 20 + (0.2,) * 20 + (0.05,) * 40 + (0.01,) * 40
"""The exponents of fitting where no table has all margins: smaller and smaller steps."""


@dataclass(frozen=True)
class WiderTable:
    """A table of more attributes than any it was made of."""

    shares: Array
    missed: float
    """The largest difference between a cell of the tables it was made of and what it says of it."""


def wider_table(
    tables: Mapping[tuple[int, ...], Array],
    sizes: Sequence[int],
    attributes: Sequence[int],
    *,
    weights: Mapping[tuple[int, ...], float] | None = None,
    method: Literal["entropy", "squares"] = "entropy",
) -> WiderTable:
    """The table of these attributes that follows from the narrower tables about them."""
    wanted = tuple(sorted(attributes))
    inside = {c: t for c, t in tables.items() if set(c) <= set(wanted)}
    covered = {attribute for combination in inside for attribute in combination}
    if covered != set(wanted):
        missing = min(set(wanted) - covered)
        raise InputError(f"no table is about attribute {missing} and others of these only")
    agreed = agreeing(inside, dict.fromkeys(inside, 1.0) if weights is None else weights)
    shape = [sizes[a] for a in wanted]
    places = {a: place for place, a in enumerate(wanted)}
    moved = {tuple(places[a] for a in c): table for c, table in agreed.items()}
    if method == "squares":
        shares = _least_squares(moved, shape)
    else:
        shares, converged = maximum_entropy(moved, shape)
        shares = shares if converged else _between(moved, shape)
    given = [(tuple(places[a] for a in c), table) for c, table in inside.items()]
    missed = max(float(abs(_margin(shares, axes) - table).max()) for axes, table in given)
    return WiderTable(shares, missed)


def _margin(joint: Array, axes: Sequence[int]) -> Array:
    return np.asarray(joint.sum(axis=tuple(k for k in range(joint.ndim) if k not in axes)))


def _between(tables: Mapping[tuple[int, ...], Array], shape: Sequence[int]) -> Array:
    """A table that is near all of these margins, where none has them all."""
    joint = np.full(shape, 1 / math.prod(shape))
    for exponent in STEPS:
        for axes, wished in tables.items():
            found = _margin(joint, axes)
            factor = np.divide(wished, found, out=np.ones_like(found), where=found > 0)
            factor = np.clip(factor, 1 / LARGEST_FACTOR, LARGEST_FACTOR) ** exponent
            others = [k for k in range(joint.ndim) if k not in axes]
            joint = joint * np.expand_dims(factor, others)
        joint = joint / joint.sum()
    return joint


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
