"""RR-Adjustment (000 Algorithm 2): weights for the randomized records that give known margins.

The paper adjusts a weight for each record. Records with the same values always get the same weight,
so here a weight is kept for each distinct record, and a sweep costs as much as there are distinct
ones. The method is known as raking or iterative proportional fitting.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from mpc_rr.errors import InputError
from mpc_rr.estimation.matrix import Array, Codes, Uniform

PLAIN_SWEEPS = 30
NEWTON_CELLS = 600
"""Up to so many margin values together, slow convergence is helped by Newton's method."""
NEWTON_STEPS = 60


class NoWeights(InputError):
    """Every record has a value to which some wished margin gives nothing."""


@dataclass(frozen=True)
class Adjustment:
    """Distinct records with their weights, and how the adjustment ended."""

    records: Codes
    weights: Array
    iterations: int
    converged: bool
    worst_margin: float
    """By how much a margin is missed at most, in probability."""
    unreachable: float
    """Probability that the wished margins give to values no record has: it cannot be placed."""

    @property
    def trouble(self) -> str | None:
        """In words, what was wished and the adjusted records do not give; None if they do."""
        if not self.converged:
            return (
                f"the target margins are missed by up to {self.worst_margin:.2g}: they contradict "
                "each other or the records; no weights give them all"
            )
        if self.unreachable > 0:
            return f"no record has the values that {self.unreachable:.2%} of a margin lies on"
        return None

    def table(self, attributes: Sequence[int], sizes: Sequence[int]) -> Array:
        """The adjusted joint distribution of some attributes."""
        chosen = tuple(self.records[:, a] for a in attributes)
        shape = tuple(sizes[a] for a in attributes)
        flat = np.ravel_multi_index(chosen, shape)
        counted = np.bincount(flat, weights=self.weights, minlength=int(np.prod(shape)))
        return np.asarray(counted.reshape(shape), dtype=np.float64)

    def synthesize(self, rows: int, uniform: Uniform) -> Codes:
        """Synthetic records: adjusted records, drawn by their weights."""
        cumulative = np.cumsum(self.weights)
        drawn = np.searchsorted(cumulative, uniform((rows,)) * cumulative[-1], side="right")
        return np.asarray(self.records[np.minimum(drawn, len(self.weights) - 1)])


def distinct_records(records: Codes, sizes: Sequence[int]) -> tuple[Codes, Array]:
    """The different records, and the share of each."""
    if len(records) == 0:
        raise InputError("there are no records to adjust")
    total = 1.0
    for size in sizes:
        total *= size
    if total < 2**62:
        flat = np.zeros(len(records), dtype=np.int64)
        for column, size in zip(records.T, sizes, strict=True):
            flat *= size
            flat += column
        unique, counts = np.unique(flat, return_counts=True)
        different = _unflattened(unique if total >= 2**32 else unique.astype(np.uint32), sizes)
    else:
        different, counts = np.unique(records, axis=0, return_counts=True)
    return different, counts / len(records)


def _unflattened(flat: npt.NDArray[np.integer], sizes: Sequence[int]) -> Codes:
    """The records that these numbers stand for: `np.unravel_index`, in an eighth of its time."""
    columns = np.empty((len(sizes), len(flat)), dtype=np.int64)  # columns stay together in memory
    for column, size in zip(columns[::-1], reversed(sizes), strict=True):
        higher = flat // flat.dtype.type(size)
        np.subtract(flat, higher * flat.dtype.type(size), out=column)
        flat = higher
    return columns.T


def adjust(
    records: Codes,
    margins: Sequence[tuple[tuple[int, ...], npt.ArrayLike]],
    sizes: Sequence[int],
    *,
    tolerance: float = 1e-9,
    most_iterations: int = 1000,
) -> Adjustment:
    """Weigh the records so that the given margins come out (000 Algorithm 2).

    A margin is a group of attributes (one, or a whole cluster) and its wished distribution. Values
    that no record has cannot be given any weight: their probability is reported as unreachable and
    spread over the others. Margins that contradict each other never converge; `Adjustment.trouble`
    says so, and the weights come as near as was found.
    """
    different, start = distinct_records(_checked_records(records, sizes), sizes)
    groups, wished, unreachable = [], [], 0.0
    for attributes, distribution in margins:
        target = _checked_margin(attributes, distribution, sizes)
        cell = different[:, attributes[0]]
        for a in attributes[1:]:
            cell = cell * sizes[a] + different[:, a]
        possible = np.bincount(cell, minlength=target.size) > 0
        missing = float(target[~possible].sum())
        unreachable = max(unreachable, missing)
        if missing > 1 - 1e-12:
            raise NoWeights(
                f"the target margin of attributes {attributes} lies wholly on values that no "
                "record has; the records cannot be adjusted to it"
            )
        groups.append(cell)
        wished.append(np.where(possible, target, 0) / (1 - missing))
    weights, iterations, worst = _rake(start, groups, wished, tolerance, most_iterations)
    total = weights.sum()
    if not total > 0:
        raise NoWeights(
            "the target margins contradict each other: no record fits all of them, and every "
            "weight became zero"
        )
    weights = weights / total
    return Adjustment(different, weights, iterations, worst <= tolerance, worst, unreachable)


def _checked_records(records: Codes, sizes: Sequence[int]) -> Codes:
    if records.ndim != 2 or records.shape[1] != len(sizes):
        raise InputError(f"records must have {len(sizes)} columns, one for each attribute")
    if len(records) and ((records < 0) | (records >= np.asarray(sizes))).any():
        raise InputError("a record has a value outside the categories of its attribute")
    return records


def _checked_margin(
    attributes: tuple[int, ...], distribution: npt.ArrayLike, sizes: Sequence[int]
) -> Array:
    target = np.asarray(distribution, dtype=np.float64).ravel()
    if target.size != int(np.prod([sizes[a] for a in attributes])):
        raise InputError(f"the margin of attributes {attributes} has {target.size} values")
    if not np.isfinite(target).all() or (target < 0).any() or not target.sum() > 0:
        raise InputError(
            f"the margin of attributes {attributes} is not a distribution; make it one first "
            "(project_to_simplex)"
        )
    return np.asarray(target / target.sum())


def _rake(
    weights: Array,
    groups: Sequence[Codes],
    wished: Sequence[Array],
    tolerance: float,
    most_iterations: int,
) -> tuple[Array, int, float]:
    worst = np.inf
    weights, scale = weights.copy(), np.empty_like(weights)
    for iteration in range(1, most_iterations + 1):
        worst = 0.0
        for cell, target in zip(groups, wished, strict=True):
            found = np.bincount(cell, weights=weights, minlength=target.size)
            worst = max(worst, float(abs(found - target).max()))
            factor = np.divide(target, found, out=np.zeros_like(target), where=found > 0)
            weights *= np.take(factor, cell, out=scale, mode="clip")  # faster than [cell]
        if worst <= tolerance:
            return weights, iteration, worst
        if iteration == PLAIN_SWEEPS and sum(target.size for target in wished) <= NEWTON_CELLS:
            return _newton(weights, groups, wished, tolerance, iteration, most_iterations)
    return weights, most_iterations, worst


def _newton(
    weights: Array,
    groups: Sequence[Codes],
    wished: Sequence[Array],
    tolerance: float,
    iteration: int,
    most_iterations: int,
) -> tuple[Array, int, float]:
    """Go on with Newton's method on the dual problem.

    The weights have the form start·exp(sum of one number per margin value); the numbers minimize a
    convex function whose gradient is (found − wished) margins. Where the limit gives a record no
    weight, plain sweeps approach it like 1/k; a Newton step divides what is left by e.
    """
    offsets = np.cumsum([0, *(target.size for target in wished)])
    columns = np.concatenate([cell + offset for cell, offset in zip(groups, offsets, strict=False)])
    rows = np.tile(np.arange(len(weights)), len(groups))
    shape = (len(weights), int(offsets[-1]))
    membership = csr_array((np.ones(len(columns)), (rows, columns)), shape=shape)
    target = np.concatenate(wished)
    worst = float(abs(membership.T @ weights - target).max())
    last = min(most_iterations, iteration + NEWTON_STEPS)
    while iteration < last and worst > tolerance:
        iteration += 1
        gradient = membership.T @ weights - target
        weighted = csr_array(membership * weights[:, np.newaxis])
        hessian = csr_array(membership.T @ weighted).toarray()
        hessian[np.diag_indices_from(hessian)] += 1e-14
        direction = -np.linalg.lstsq(hessian, gradient, rcond=1e-13)[0]
        shorter = _descent(weights, membership @ direction, float(target @ direction))
        if shorter is None:
            break
        missed = float(abs(membership.T @ shorter - target).max())
        if missed >= worst:  # no solution is near: keep what is best
            break
        weights, worst = shorter, missed
    return weights, iteration, worst


def _descent(weights: Array, exponents: Array, gain: float) -> Array | None:
    """The step, halved until the dual decreases; None if it never does."""
    length, value = 1.0, float(weights.sum())
    slope = float(weights @ exponents) - gain
    while length > 1e-6:
        if (length * exponents).max() < 50:
            stepped = weights * np.exp(length * exponents)
            if stepped.sum() - length * gain <= value + 1e-4 * length * slope + 1e-15:
                return np.asarray(stepped)
        length /= 2
    return None
