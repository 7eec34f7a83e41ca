"""Which design for which budget: errors predicted before any data is collected.

The prediction is the expected L1 error of the unbiased tables of all pairs of attributes, averaged
over the pairs: Σ over cells of √(2/π)·standard error. It is what randomizing adds: the error
against the true tables of the respondents, not against those of a population they are a sample of.
It depends on the data only through the true
shares; without data, `guessed_shares` are taken, skewed as answers usually are. Designs that
assume independence between clusters (000) are predicted with what they *can* estimate without bias:
the pair's table by Kronecker inversion.
"""

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mpc_rr.errors import InputError
from mpc_rr.estimation.blocks import floored, truth_for
from mpc_rr.estimation.combinations import combination_views
from mpc_rr.estimation.designs import Design, rr_clusters, rr_independent, rr_joint
from mpc_rr.estimation.kronecker import Kronecker
from mpc_rr.estimation.lambdas import keep_for_beta
from mpc_rr.estimation.matrix import Array, KeepOrUniform, MatrixError, check_share
from mpc_rr.estimation.views import best_views, guessed_shares, view_pair_error

Shares = Mapping[tuple[int, int], Array]
"""True or guessed tables of all pairs."""
LARGEST_TOTAL = 60.0
"""So large may the ε of all randomized answers of one record be together, in plans and in studies:
twice what one answer may have."""
BLOCK_FLOORS = (0.05, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0)


@dataclass(frozen=True)
class Plan:
    """A design and the error it promises."""

    name: str
    what: str
    epsilon: float
    error: float
    """Expected mean L1 error of the unbiased pair tables."""
    one_answer: float
    """The ε of that answer of which most is told, to whoever knows all the others."""


def pairs_of(sizes: Sequence[int]) -> list[tuple[int, int]]:
    """All pairs of attributes."""
    return list(itertools.combinations(range(len(sizes)), 2))


def design_pair_error(design: Design, pair: tuple[int, int], n: int, shares: Shares) -> float:
    """The expected L1 error of one pair's unbiased table under a design of keep-or-uniform."""
    truth = shares[pair]
    keeps = []
    for attribute in pair:
        place = next(k for k, c in enumerate(design.clusters) if attribute in c)
        matrix = design.matrices[place]
        if not isinstance(matrix, KeepOrUniform):
            raise InputError("only designs that keep or replace can be planned")
        keeps.append((place, matrix.keep))
    if keeps[0][0] == keeps[1][0]:
        return keep_or_uniform_error(truth, [KeepOrUniform(truth.size, keeps[0][1])], n)
    matrices = [KeepOrUniform(s, keep) for s, (_, keep) in zip(truth.shape, keeps, strict=True)]
    return keep_or_uniform_error(truth, matrices, n)


def keep_or_uniform_error(truth: Array, matrices: Sequence[KeepOrUniform], n: int) -> float:
    """That of a table whose attributes are randomized one by one, or (one matrix) as one value."""
    randomization = Kronecker(list(matrices))
    flat = truth.reshape([matrix.size for matrix in matrices])
    second = randomization.solve_squared(randomization.apply(flat))
    variances = np.maximum(second - flat, 0) / n  # without truth·(1 − truth), the sampling error
    return float(np.sqrt(2 / math.pi) * np.sqrt(variances).sum())


def plan(
    sizes: Sequence[int],
    n: int,
    epsilon: float,
    *,
    clusters: Sequence[Sequence[int]] | None = None,
    shares: Shares | None = None,
) -> list[Plan]:
    """All designs at this budget per record, the best first.

    ``clusters`` are those of a dependence analysis; without them RR-Clusters cannot be planned.
    """
    _check(sizes, n, epsilon)
    known = guessed_shares(sizes) if shares is None else shares
    pairs = pairs_of(sizes)
    keep = keep_for_total(sizes, epsilon)
    spent = [KeepOrUniform(size, keep).epsilon for size in sizes]
    lambdas = lambdas_for_total(sizes, epsilon)
    strength = KeepOrUniform(sizes[0], lambdas[0]).beta
    designs = {
        "lambda": (
            Design(
                tuple(sizes),
                tuple((a,) for a in range(len(sizes))),
                tuple(map(KeepOrUniform, sizes, lambdas)),
            ),
            f"each attribute randomized to {strength:.0%} of its entropy",
        ),
        "independent": (rr_independent(sizes, keep), f"each attribute kept with {keep:.3f}"),
        "joint": (rr_joint(sizes, epsilon), "the whole record as one value"),
    }
    if clusters is not None:
        designs["clusters"] = (rr_clusters(sizes, clusters, spent), "each cluster as one value")
    plans = [
        Plan(
            name,
            what,
            epsilon,
            _mean(design_pair_errors(d, n, known)),
            max(m.epsilon for m in d.matrices),
        )
        for name, (d, what) in designs.items()
    ]
    views = best_views(sizes, epsilon)
    errors = [view_pair_error(sizes, views, epsilon, p, n, known) for p in pairs]
    together = f"one of {len(views)} groups of {len(views[0])} attributes each"
    plans.append(Plan("views", together, epsilon, _mean(errors), epsilon))
    plans.append(_block_plan(sizes, n, epsilon, known))
    return sorted(plans, key=lambda p: p.error)


@dataclass(frozen=True)
class BlockChoice:
    """A floor and a p for block aggregation at a budget, and the error they promise."""

    floor: float
    p: float
    """For all tables; the largest decides how small it must be."""
    error: float


def block_choices(
    sizes: Sequence[int], n: int, epsilon: float, shares: Shares
) -> list[BlockChoice]:
    """Block aggregation of pairs with several floors, so that a record spends ε; the best first.

    A record answers one view: its budget is shared by the combinations of that view, and each
    combination has the answers of those who got its view. The table shown is taken to be the true
    one, mixed with the uniform one by the floor: what it is after many blocks.
    """
    views = combination_views(len(sizes), 2)
    budget = _budget_of_a_pair(sizes, epsilon)
    choices = []
    for floor in BLOCK_FLOORS:
        p = min(truth_for(budget, floor, t.size) for t in shares.values())
        errors = [block_error(t.ravel(), p, floor, n / len(views)) for t in shares.values()]
        choices.append(BlockChoice(floor, p, _mean(errors)))
    return sorted(choices, key=lambda choice: choice.error)


def block_error(truth: Array, p: float, floor: float, n: float) -> float:
    """The mean L1 error that randomizing adds to one table of blocks, after n answers about it."""
    shown = floored(truth, floor)
    true, other = p + (1 - p) * shown, (1 - p) * shown
    variances = (truth * true * (1 - true) + (1 - truth) * other * (1 - other)) / (n * p**2)
    return float(np.sqrt(2 / math.pi) * np.sqrt(variances).sum())


def _block_plan(sizes: Sequence[int], n: int, epsilon: float, shares: Shares) -> Plan:
    best = block_choices(sizes, n, epsilon, shares)[0]
    what = f"one view of pairs, p = {best.p:.3f}, floor = {best.floor:g}"
    if best.floor == 1:
        what += " (tables that follow do not help)"
    return Plan("blocks", what, epsilon, best.error, _budget_of_a_pair(sizes, epsilon))


def _budget_of_a_pair(sizes: Sequence[int], epsilon: float) -> float:
    """Of a view, no two pairs have an attribute in common: it is what one answer costs, too."""
    return epsilon / max(len(view) for view in combination_views(len(sizes), 2))


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


def budget_for_error(sizes: Sequence[int], n: int, error: float) -> Plan:
    """The smallest budget with which some design reaches the wished error, and that design."""
    if not error > 0:
        raise InputError(f"the wished error must be positive, not {error}")
    low, high = 0.01, LARGEST_TOTAL
    best = plan(sizes, n, high)[0]
    if best.error > error:
        raise InputError(
            f"an error of {error:.3g} needs a budget beyond ε = {high:g}, which protects nobody; "
            "ask more people or fewer questions"
        )
    while high - low > 0.005:
        middle = (low + high) / 2
        candidate = plan(sizes, n, middle)[0]
        if candidate.error <= error:
            best, high = candidate, middle
        else:
            low = middle
    return best


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)


def _check(sizes: Sequence[int], n: int, epsilon: float) -> None:
    if len(sizes) < 2 or min(sizes) < 2:
        raise InputError("planning needs at least two attributes with two categories each")
    if n < 2:
        raise InputError(f"planning needs at least two respondents, not {n}")
    if not 0 < epsilon < math.inf:
        raise InputError(f"the budget epsilon must be positive, not {epsilon}")
