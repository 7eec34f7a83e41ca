"""How wrong an estimate answers count queries on a pair of attributes (000 §6.5), cell by cell
(003 §6.4)."""

import math

import numpy as np

from mpc_rr.estimation.matrix import Array, Codes
from mpc_rr.reproduce.adult import Records

Pair = tuple[int, int]
COVERAGES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
"""The shares σ of a table's cells that are asked for."""


def joint_counts(records: Records, attributes: tuple[int, ...], copies: int = 1) -> Codes:
    """How many records have each combination of some attributes."""
    shape = tuple(records.sizes[a] for a in attributes)
    flat = np.zeros(len(records.codes), dtype=np.int64)
    for a in attributes:
        flat = flat * records.sizes[a] + records.codes[:, a]
    return copies * np.bincount(flat, minlength=math.prod(shape)).reshape(shape)


def random_pair(attributes: int, rng: np.random.Generator) -> Pair:
    """Two different attributes."""
    first, second = sorted(rng.choice(attributes, 2, replace=False).tolist())
    return first, second


def random_subset(shape: tuple[int, ...], coverage: float, rng: np.random.Generator) -> Codes:
    """A set S of ⌈σ·cells⌉ combinations, as numbers of cells."""
    cells = math.prod(shape)
    wanted = math.ceil(round(coverage * cells, 9))
    return np.asarray(rng.choice(cells, wanted, replace=False))


def absolute_error(estimate: Array, truth: Codes, subset: Codes) -> float:
    """|Y_S − X_S| in records; ``estimate`` holds shares, ``truth`` counts."""
    wanted = float(truth.ravel()[subset].sum())
    return abs(float(estimate.ravel()[subset].sum()) * float(truth.sum()) - wanted)


def relative_error(estimate: Array, truth: Codes, subset: Codes) -> float:
    """|Y_S − X_S| / X_S, infinite where nobody is in S."""
    wanted = float(truth.ravel()[subset].sum())
    return absolute_error(estimate, truth, subset) / wanted if wanted else math.inf


def cell_errors(counts: Array, truth: Codes) -> Array:
    """|Y − X| / X of every cell, of counts; NaN where the true data have nobody."""
    errors = np.full(truth.shape, np.nan)
    np.divide(abs(truth - counts), truth, out=errors, where=truth > 0)
    return errors
