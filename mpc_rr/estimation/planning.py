"""What budgets allow, and what randomizing adds to unbiased tables, before any data is collected.

The error of a table is the expected L1 error of the unbiased one: Σ over cells of √(2/π)·standard
error, against the true table of the respondents, not that of a population they are a sample of. It
depends on the data only through the true shares; without data, `guessed_shares` are taken, skewed
as answers usually are. What is *published* is better than that (`mpc_rr.planning`); this says
whether the answers tell anything at all.
"""

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mpc_rr.errors import InputError
from mpc_rr.estimation.blocks import floored, truth_for_total
from mpc_rr.estimation.combinations import combination_views
from mpc_rr.estimation.designs import Design
from mpc_rr.estimation.kronecker import Kronecker
from mpc_rr.estimation.lambdas import keep_for_beta
from mpc_rr.estimation.matrix import Array, KeepOrUniform, MatrixError, RRMatrix, check_share

Shares = Mapping[tuple[int, int], Array]
"""True or guessed tables of all pairs."""
LARGEST_TOTAL = 60.0
"""So large may the ε of all randomized answers of one record be together, in plans and in studies:
twice what one answer may have."""
BLOCK_FLOORS = (0.05, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0)


def pairs_of(sizes: Sequence[int]) -> list[tuple[int, int]]:
    """All pairs of attributes."""
    return list(itertools.combinations(range(len(sizes)), 2))


def design_pair_error(design: Design, pair: tuple[int, int], n: int, shares: Shares) -> float:
    """The expected L1 error of one pair's unbiased table."""
    parts = [(c, [a for a in c if a in pair]) for c in design.clusters if set(c) & set(pair)]
    order = [pair.index(a) for _, part in parts for a in part]
    matrices = [design.matrix_of(cluster, part) for cluster, part in parts]
    return table_error(shares[pair].transpose(order), matrices, n)


def table_error(truth: Array, matrices: Sequence[RRMatrix], n: int) -> float:
    """That of a table whose attributes are randomized one by one, or (one matrix) as one value."""
    randomization = Kronecker(list(matrices))
    flat = truth.reshape([matrix.size for matrix in matrices])
    second = randomization.solve_squared(randomization.apply(flat))
    variances = np.maximum(second - flat, 0) / n  # without truth·(1 − truth), the sampling error
    return float(np.sqrt(2 / math.pi) * np.sqrt(variances).sum())


@dataclass(frozen=True)
class BlockChoice:
    """A floor and a p for block aggregation at a budget, and the error they promise."""

    floor: float
    p: float
    """For all tables; the dearest view decides how small it must be."""
    error: float


def block_choices(
    sizes: Sequence[int], n: int, epsilon: float, shares: Shares
) -> list[BlockChoice]:
    """Block aggregation of pairs with several floors, so that a record spends ε; the best first.

    A record answers one view, and what its combinations cost together is ε in the dearest view;
    each combination has the answers of those who got its view. The table shown is taken to be the
    true one, mixed with the uniform one by the floor: what it is after many blocks.
    """
    views = combination_views(len(sizes), 2)
    cells = [[sizes[i] * sizes[j] for i, j in view] for view in views]
    choices = []
    for floor in BLOCK_FLOORS:
        p = min(truth_for_total(epsilon, floor, view) for view in cells)
        errors = [block_error(t.ravel(), p, floor, n / len(views)) for t in shares.values()]
        choices.append(BlockChoice(floor, p, math.fsum(errors) / len(errors)))
    return sorted(choices, key=lambda choice: choice.error)


def block_error(truth: Array, p: float, floor: float, n: float) -> float:
    """The mean L1 error that randomizing adds to one table of blocks, after n answers about it."""
    shown = floored(truth, floor)
    true, other = p + (1 - p) * shown, (1 - p) * shown
    variances = (truth * true * (1 - true) + (1 - truth) * other * (1 - other)) / (n * p**2)
    return float(np.sqrt(2 / math.pi) * np.sqrt(variances).sum())


def design_pair_errors(design: Design, n: int, shares: Shares) -> list[float]:
    """The error of each pair; infinite if the design leaves nothing to estimate from."""
    try:
        return [design_pair_error(design, pair, n, shares) for pair in shares]
    except MatrixError:
        return [math.inf]


def chosen_keep(keep: float | None, epsilon: float | None, sizes: Sequence[int]) -> float:
    """The probability to keep each attribute, given as such or by what all may spend together."""
    if keep is not None and epsilon is None:
        return check_share("keep", keep, positive=True)
    if epsilon is None or keep is not None:
        raise InputError("give either keep or epsilon")
    if not 0 < epsilon < math.inf:
        raise InputError(f"epsilon must be positive, not {epsilon}")
    return keep_for_total(sizes, epsilon)


def keep_for_total(sizes: Sequence[int], epsilon: float) -> float:
    """The probability to keep each attribute with which all of them together spend ε."""
    return _largest(lambda keep: [keep] * len(sizes), sizes, epsilon)


def lambdas_for_total(sizes: Sequence[int], epsilon: float) -> list[float]:
    """The λ of each attribute with which all have the same entropy share β and spend ε together."""

    def lambdas(weakness: float) -> list[float]:
        return [keep_for_beta(size, 1 - weakness) for size in sizes]

    return lambdas(_largest(lambdas, sizes, epsilon))


def _largest(keeps: Callable[[float], list[float]], sizes: Sequence[int], epsilon: float) -> float:
    """The largest number in [0, 1] whose ``keeps`` spend at most ε together, by bisection."""
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        if sum(KeepOrUniform(s, k).epsilon for s, k in zip(sizes, keeps(middle), strict=True)) > (
            epsilon
        ):
            high = middle
        else:
            low = middle
    return low
