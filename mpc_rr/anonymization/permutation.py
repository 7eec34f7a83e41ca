"""How far a mask moves people in rank.

Any masking is a permutation of the true values plus noise that keeps ranks (paper 004, section 2.2;
Domingo-Ferrer & Muralidhar). So what it does to an attribute is told by how far ranks move, and by
how much of their order is left. Equal values share the middle of their ranks.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mpc_rr.anonymization.perturbation import Perturbation
from mpc_rr.anonymization.table import Array, Codes
from mpc_rr.randomness import SeededRandomness

LEAST_TRIALS, MOST_TRIALS, DRAWN_IN_ALL = 40, 400, 200_000
LIMITS = (0.025, 0.975)


@dataclass(frozen=True)
class Permutation:
    """How far true values and those that stand for them are from each other in rank."""

    distance: float
    """How far a person is moved on average, as a share of all ranks."""
    correlation: float | None
    """Spearman's rank correlation; None where all values are equal."""


@dataclass(frozen=True)
class Expected:
    """The same in a simulation in which everybody uses the mask: the mean, and where 95 % lie."""

    distance: float
    distance_range: tuple[float, float]
    correlation: float | None
    correlation_range: tuple[float, float] | None


def middle_ranks(values: Codes | Array) -> Array:
    """The rank of each value, from 0; equal ones share the middle of theirs."""
    ordered = np.sort(values)
    low, high = (np.searchsorted(ordered, values, side) for side in ("left", "right"))
    return np.asarray((low + high - 1) / 2)


def permutation(true: Sequence[int] | Codes, told: Sequence[int] | Codes) -> Permutation:
    """How the told values permute the true ones: one of each person, in the same order."""
    before, after = middle_ranks(np.asarray(true)), middle_ranks(np.asarray(told))
    distance = float(np.abs(before - after).mean()) / max(len(before) - 1, 1)
    if not np.ptp(before) or not np.ptp(after):
        return Permutation(distance, None)
    return Permutation(distance, float(np.corrcoef(before, after)[0, 1]))


def expected(mask: Perturbation, values: Sequence[int], seed: bytes) -> Expected | None:
    """What a mask does to these very values, by drawing all of them again and again.

    It follows from the list of values, which is public, and says nothing about anybody. The masked
    values are mapped back by rank, equal ones in an order that is drawn, too. None for no values.
    """
    ordered = np.sort(np.asarray(values, dtype=np.int64))
    people = len(ordered)
    if not people:
        return None
    trials = min(max(DRAWN_IN_ALL // people, LEAST_TRIALS), MOST_TRIALS)
    rng, found = SeededRandomness(seed), []
    for _ in range(trials):
        masked = mask.draw_each(ordered, rng)
        chance = rng.below(1 << 62, (people,))
        told = np.empty(people, dtype=np.int64)
        told[np.lexsort((chance, masked))] = ordered
        found.append(permutation(ordered, told))
    distances = np.array([each.distance for each in found])
    correlations = np.array([each.correlation for each in found if each.correlation is not None])
    low, high = np.quantile(distances, LIMITS).tolist()
    if not len(correlations):
        return Expected(float(distances.mean()), (low, high), None, None)
    least, most = np.quantile(correlations, LIMITS).tolist()
    mean = float(correlations.mean())
    return Expected(float(distances.mean()), (low, high), mean, (least, most))
