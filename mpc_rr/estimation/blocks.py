"""Block aggregation (paper 002): answers drawn partly from a table that follows the estimate.

A client tells the truth with probability p; otherwise it draws from the table T that it was shown,
one share for each combination of answers. Between blocks of clients, T is set to the estimate so
far.

What the paper gets wrong (``docs/errata.md``): the answer v is p + (1−p)·T[v] likely if it is true
and (1−p)·T[v] if it is not, so one answer changes an attacker's odds by 1 + p/((1−p)·T[v]), without
bound as T[v] goes to 0; ln(1/(1−p)) is not the price. A floor γ mixes T with the uniform table and
bounds it. And Eq. 4 on the last block alone throws away all blocks before; `pooled` and `likely`
use all of them.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from mpc_rr.errors import InputError
from mpc_rr.estimation.distribution import Estimate, project_to_simplex
from mpc_rr.estimation.matrix import Array, Codes, Uniform
from mpc_rr.randomness import Randomness

ADDS_UP = 5e-13
TOLERANCE = 1e-7
MOST_ITERATIONS = 5000
HALVINGS = 80
NEARLY_SURE = 1 - 1e-12


# ── What an answer costs ───────────────────────────────────────────────────────────────────────


def check_truth(p: float) -> None:
    """`InputError` unless this is a probability of telling the truth that leaves a doubt."""
    if not 0 < p < 1:
        raise InputError(f"p, the probability of the true answer, lies between 0 and 1, not {p}")


def claimed_epsilon(p: float) -> float:
    """What Theorem 4.1 says an answer costs."""
    return -math.log1p(-p)


def answer_epsilon(p: float, table: Array) -> float:
    """What an answer costs: by how much, at most, it changes anybody's odds (as a logarithm).

    A table that adds up to 1, but for rounding, is taken as it is; another one, as it is drawn.
    """
    smallest, total = float(np.min(table)), math.fsum(table.flat)
    if abs(total - 1) > ADDS_UP:
        smallest /= total
    return math.inf if smallest <= 0 else math.log1p(p / ((1 - p) * smallest))


def epsilon_bound(p: float, floor: float, cells: int) -> float:
    """What an answer costs at most, whatever table follows, if it has this floor."""
    return math.inf if floor <= 0 else math.log1p(p * cells / ((1 - p) * floor))


def floored(table: Array, floor: float) -> Array:
    """A table mixed with the uniform one: no cell is below floor / cells."""
    return (1 - floor) * table + floor / table.size


def truth_for(epsilon: float, floor: float, cells: int) -> float:
    """The p at which an answer costs this much at most."""
    odds = math.expm1(epsilon) * floor / cells
    return odds / (1 + odds)


def truth_for_total(epsilon: float, floor: float, cells: Sequence[int]) -> float:
    """The p at which answers about tables of so many cells cost this much together, at most.

    By bisection below the p at which the largest table alone would cost everything; never above
    what is wished.
    """
    low, high = 0.0, min(truth_for(epsilon, floor, max(cells)), NEARLY_SURE)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        if math.fsum(epsilon_bound(middle, floor, size) for size in cells) > epsilon:
            high = middle
        else:
            low = middle
    return low


@lru_cache(maxsize=64)
def truth_for_views(epsilon: float, floor: float, views: frozenset[tuple[int, ...]]) -> float:
    """The p at which the dearest view costs just ε; of each view, how many cells its tables have.

    Rounded down to nine digits, so that it is the same on every machine and never dearer.
    """
    p = min(truth_for_total(epsilon, floor, view) for view in views)
    return math.floor(p * 1e9) / 1e9


# ── Answers ────────────────────────────────────────────────────────────────────────────────────


def respond(cells: Codes, table: Array, p: float, rng: Randomness) -> Codes:
    """What clients with these true cells answer, if all are shown the same table."""
    true = rng.bernoulli(p, cells.shape)
    told: Codes = np.where(true, cells, rng.categorical(table.ravel(), cells.shape))
    return told


@dataclass(frozen=True)
class Answered:
    """The answers about one combination of attributes, block by block."""

    p: float
    tables: Array
    """The table each block was shown, flat."""
    counts: Codes
    """How often each cell was answered, by block."""

    def __post_init__(self) -> None:
        check_truth(self.p)
        if self.tables.shape != self.counts.shape or self.tables.ndim != 2:
            raise InputError("there must be a table and counts for each block")

    @property
    def n(self) -> int:
        """How many answered."""
        return int(self.counts.sum())

    @property
    def mean_table(self) -> Array:
        """The table that was shown, on average over all who answered."""
        weights = self.counts.sum(axis=1)
        mean: Array = weights @ self.tables / max(weights.sum(), 1)
        return mean


def of_block(counts: Codes, table: Array, p: float) -> Array:
    """Eq. 4: the shares that a block tells, or each of several. They may be negative."""
    n = np.maximum(counts.sum(axis=-1, keepdims=True), 1)
    shares: Array = (counts / n - (1 - p) * table) / p
    return shares


def pooled(answered: Answered) -> Estimate:
    """Eq. 4 on all blocks at once: unbiased, with standard errors that include sampling.

    The errors are those at the nearest distribution: a cell that nobody answered is not certain.
    """
    n = answered.n
    if n == 0:
        raise InputError("nobody has answered")
    p, blocks = answered.p, answered.counts.sum(axis=1)
    shares = of_block(answered.counts.sum(axis=0), answered.mean_table, p)
    told = p * project_to_simplex(shares) + (1 - p) * answered.tables
    return Estimate(shares, np.sqrt(blocks @ (told * (1 - told))) / (n * p), n)


def likely(answered: Answered) -> Array:
    """The most likely distribution, given the answers of all blocks (expectation maximization).

    An answer v of block b was true with probability p·π[v] / (p·π[v] + (1−p)·T_b[v]).
    """
    found: Array = likely_many([answered])[0]
    return found


def likely_many(collections: Sequence[Answered]) -> Array:
    """The same for many collections with the same tables, a row each, all iterated together."""
    p, noise = collections[0].p, (1 - collections[0].p) * collections[0].tables
    counts = np.stack([answered.counts for answered in collections]).astype(np.float64)
    shares = np.stack([project_to_simplex(pooled(answered).shares) for answered in collections])
    shares = np.maximum(shares, 1e-6 / shares.shape[1])
    left = np.arange(len(shares))
    for _ in range(MOST_ITERATIONS):
        true, mine = p * shares[left, np.newaxis, :], counts[left]
        true_share = np.divide(true, true + noise, out=np.zeros_like(mine), where=mine > 0)
        expected = (mine * true_share).sum(axis=1)
        latest = expected / expected.sum(axis=1, keepdims=True)
        moved = np.abs(latest - shares[left]).max(axis=1)
        shares[left] = latest
        left = left[moved >= TOLERANCE]
        if not len(left):
            break
    return np.asarray(shares)


def expected_error(shares: Array, table: Array, p: float, n: int) -> float:
    """The root of the summed squared errors of pooled counts, over all cells, in closed form.

    Only the randomization counts here: the true counts are given.
    """
    true, other = p + (1 - p) * table, (1 - p) * table
    spread = shares * true * (1 - true) + (1 - shares) * other * (1 - other)
    return math.sqrt(n * float(spread.sum())) / p


# ── From block to block ────────────────────────────────────────────────────────────────────────


@dataclass
class SoFar:
    """What all blocks so far tell about a combination: sums for the next table, and for limits."""

    p: float
    counts: Codes
    """How often each cell was answered."""
    shown: Array
    """The tables, summed over all who answered."""
    squares: Array
    """Their squares, and"""
    cubes: Array

    @classmethod
    def nothing(cls, p: float, cells: int) -> "SoFar":
        """Before the first block."""
        return cls(p, np.zeros(cells, dtype=np.int64), *(np.zeros(cells) for _ in range(3)))

    @property
    def n(self) -> int:
        """How many answered."""
        return int(self.counts.sum())

    def take(self, table: Array, counts: Codes) -> None:
        """The answers of one more block, and the table it was shown."""
        n = int(counts.sum())
        self.counts = self.counts + counts
        self.shown = self.shown + n * table
        self.squares = self.squares + n * table**2
        self.cubes = self.cubes + n * table**3

    @property
    def shares(self) -> Array:
        """Eq. 4 on all blocks at once."""
        return of_block(self.counts, self.shown / max(int(self.counts.sum()), 1), self.p)


def next_table(estimate: Array, floor: float, *, rounded: bool = True) -> Array:
    """The table for the next block: the estimate so far, made proper, with the floor.

    ``rounded``: so that it is the same to the last bit on every machine, whatever its arithmetic
    rounds differently.
    """
    shares = project_to_simplex(estimate)
    if rounded:
        shares = np.round(shares, 9)
        shares = shares / math.fsum(shares)
    return floored(shares, floor)


@dataclass(frozen=True)
class Collection:
    """A whole collection on one combination, simulated: the answers, and the last block's own."""

    answered: Answered
    by_block: Array
    """Eq. 4 of each block alone."""


def collect(
    cells: Codes, size: int, p: float, block: int, rng: Randomness, floor: float = 0.0
) -> Collection:
    """Ask clients block by block, the table following the estimate; as version 2 of the paper.

    With ``block = 1`` it is version 1. A floor of 0 is the paper's and bounds nothing.
    """
    check_truth(p)
    tables, counts, alone = [], [], []
    table, so_far = np.full(size, 1 / size), SoFar.nothing(p, size)
    for start in range(0, len(cells), block):
        told = respond(cells[start : start + block], table, p, rng)
        tables.append(table)
        counts.append(np.bincount(told, minlength=size))
        alone.append(of_block(counts[-1], table, p))
        so_far.take(table, counts[-1])
        table = next_table(so_far.shares, floor)
    return Collection(Answered(p, np.array(tables), np.array(counts)), np.array(alone))


# ── How far two tables are apart ───────────────────────────────────────────────────────────────


def l2_distance(first: Array, second: Array) -> float:
    """The Euclidean distance of two tables."""
    return float(np.sqrt(((np.asarray(first) - np.asarray(second)) ** 2).sum()))


def jensen_shannon_divergence(first: Array, second: Array) -> float:
    """Eq. 2, with natural logarithms, of two tables that are normalized first."""
    one, two = (np.asarray(t, dtype=np.float64).ravel() for t in (first, second))
    one, two = one / one.sum(), two / two.sum()
    middle = (one + two) / 2

    def information(share: Array) -> float:
        seen = share > 0
        return float((share[seen] * np.log(share[seen] / middle[seen])).sum())

    return max((information(one) + information(two)) / 2, 0.0)


def jensen_shannon_distance(first: Array, second: Array) -> float:
    """The root of the divergence, which is a distance; what the paper's tables show."""
    return math.sqrt(jensen_shannon_divergence(first, second))


# ── Independence ───────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Independence:
    """The outcome of a test whether all attributes of a table are independent."""

    statistic: float
    critical: float
    p_value: float

    @property
    def rejected(self) -> bool:
        """Whether independence is rejected."""
        return self.statistic > self.critical


def independent_version(shares: Array) -> Array:
    """The table of the same shape and margins in which all attributes are independent."""
    table = np.asarray(shares)
    axes = range(table.ndim)
    product = np.ones(table.shape)
    for axis in axes:
        margin = table.sum(axis=tuple(other for other in axes if other != axis))
        product = product * margin.reshape([-1 if other == axis else 1 for other in axes])
    return product


def chi_square(shares: Array, n: int) -> float:
    """Pearson's statistic of a table against its independent version."""
    expected = independent_version(shares) * n
    seen = expected > 0
    return float((((shares * n - expected) ** 2)[seen] / expected[seen]).sum())


def independence_test(
    shape: Sequence[int],
    answered: Answered,
    uniform: Uniform,
    *,
    alpha: float = 0.05,
    samples: int = 199,
) -> Independence:
    """Monte Carlo test (§6 and §7.3): is what was found more than the randomization makes?

    The most likely table is found from the answers; tables are drawn from its independent version
    and answered with the very tables that the clients were shown; the statistic must exceed all
    but a share ``alpha`` of theirs.
    """
    size = math.prod(shape)
    if answered.tables.shape[1] != size:
        raise InputError(f"the answers are about {answered.tables.shape[1]} cells, not {size}")
    if samples < 1 / alpha:
        raise InputError(f"a level of {alpha} needs at least {math.ceil(1 / alpha)} samples")
    n, found = answered.n, likely(answered).reshape(shape)
    statistic = chi_square(found, n)
    null = independent_version(found).ravel()
    again = likely_many([_answered_again(answered, null, uniform) for _ in range(samples)])
    drawn = np.sort([chi_square(shares.reshape(shape), n) for shares in again])
    critical = float(drawn[min(math.ceil((samples + 1) * (1 - alpha)), samples) - 1])
    p_value = (1 + int((drawn >= statistic).sum())) / (samples + 1)
    return Independence(statistic, critical, p_value)


def _answered_again(answered: Answered, null: Array, uniform: Uniform) -> Answered:
    """New people from a distribution, asked with the same tables in blocks of the same size."""
    counts = []
    for table, block in zip(answered.tables, answered.counts, strict=True):
        shares = answered.p * null + (1 - answered.p) * table
        limits = np.cumsum(shares / shares.sum())
        told = np.searchsorted(limits, uniform((int(block.sum()),)), side="right")
        counts.append(np.bincount(np.minimum(told, len(null) - 1), minlength=len(null)))
    return Answered(answered.p, answered.tables, np.array(counts))
