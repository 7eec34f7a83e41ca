"""Randomization matrices as operators: what a respondent's answer becomes, and how to undo it.

A matrix P says with which probability a true value u is reported as v: P[u, v]. With π the
distribution of true values and λ that of reported ones, λ = Pᵀπ (`apply`) and the unbiased estimate
is π = (Pᵀ)⁻¹λ (`solve`; paper 000, Eq. (2)). Both work along any axis of an array, so the matrix of
a whole record, a Kronecker product (paper 001), is applied axis by axis and never written down.
Anything that would need the dense matrix says so and refuses beyond `DENSE_LIMIT` entries.
"""

import hashlib
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
import numpy.typing as npt

from mpc_rr.errors import InputError
from mpc_rr.randomness import Randomness

Array = npt.NDArray[np.float64]
Codes = npt.NDArray[np.integer]
Uniform = Callable[[tuple[int, ...]], Array]
"""Draws independent uniform numbers in [0, 1): ``np.random.Generator.random`` or a CSPRNG's.

For synthetic people and Monte Carlo tests. Answers are drawn exactly, from a `Randomness`.
"""

DENSE_LIMIT = 10_000_000
WORST_CONDITION = 1e8
MOST_IN_CLUSTER = 20
"""So many attributes may one value have whose randomization goes by how many of them change."""
CHUNK = 32_768
TOWARDS_PRIVACY = 2.0**-48
"""Probabilities that follow from an ε are moved by so much of themselves: more than they may be
off by rounding. So what is drawn never costs more than that ε, and less only in the 15th digit."""


class MatrixError(InputError):
    """A randomization matrix that makes no sense, or cannot be used as asked."""


class RRMatrix(ABC):
    """The randomization of one value with ``size`` categories."""

    size: int

    @abstractmethod
    def apply(self, truth: Array, axis: int = -1) -> Array:
        """Distribution of reported values from that of true values, along an axis: Pᵀπ."""

    @abstractmethod
    def solve(self, reported: Array, axis: int = -1) -> Array:
        """The inverse of `apply`, along an axis: (Pᵀ)⁻¹λ."""

    def apply_transposed(self, values: Array, axis: int = -1) -> Array:
        """P·x along an axis. The same as `apply` for a symmetric matrix, as most are."""
        return self.apply(values, axis)

    def solve_transposed(self, values: Array, axis: int = -1) -> Array:
        """P⁻¹·x along an axis. The same as `solve` for a symmetric matrix."""
        return self.solve(values, axis)

    @abstractmethod
    def solve_squared(self, reported: Array, axis: int = -1) -> Array:
        """Σ_v A[u, v]²·λ_v with A = (Pᵀ)⁻¹: the second moment of one respondent's contribution."""

    @abstractmethod
    def dense(self) -> Array:
        """The matrix itself; `MatrixError` if it would be too large."""

    @abstractmethod
    def randomize(self, values: Codes, rng: Randomness) -> Codes:
        """One reported value for each true value, drawn from the matrix exactly."""

    @property
    @abstractmethod
    def epsilon(self) -> float:
        """Local differential privacy: the largest log ratio within a column (000, Eq. (4))."""

    @property
    @abstractmethod
    def entropy_rate(self) -> float:
        """The mean entropy of the rows, in bits (001, Section 2.2)."""

    @property
    @abstractmethod
    def condition(self) -> float:
        """The condition number: how much sampling noise the inversion can blow up."""

    @property
    def uncertainty(self) -> float:
        """What a report leaves uncertain of an answer, in bits, if all were equally probable.

        That is the entropy rate where reports are then equally probable, too, as with most.
        """
        return self.entropy_rate

    @property
    def beta(self) -> float:
        """Entropy rate as a share of the largest possible one (001, Definition 1)."""
        return self.entropy_rate / math.log2(self.size) if self.size > 1 else 0.0

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the tables it works on."""
        return (self.size,)

    def _check_dense(self) -> None:
        if self.size * self.size > DENSE_LIMIT:
            raise MatrixError(
                f"a dense {self.size} x {self.size} matrix would have {self.size**2:,} entries; "
                "use apply and solve, which do not need it"
            )


def check_share(name: str, value: float, *, positive: bool = False) -> float:
    """A number between 0 and 1; `MatrixError` otherwise."""
    low_enough = value > 0 if positive else value >= 0
    if not (low_enough and value <= 1):
        bounds = "above 0 and at most 1" if positive else "between 0 and 1"
        raise MatrixError(f"{name} must be {bounds}, not {value}")
    return float(value)


def check_codes(values: npt.ArrayLike, size: int) -> Codes:
    """Category numbers as 64-bit integers, all of them below ``size``; `MatrixError` otherwise."""
    codes = np.asarray(values)
    if not np.issubdtype(codes.dtype, np.integer):
        raise MatrixError("values must be category numbers (integers); encode them first")
    if codes.size and not (codes.min() >= 0 and codes.max() < size):
        raise MatrixError(f"a value is outside the {size} categories, 0 to {size - 1}")
    return codes.astype(np.int64, copy=False)


@dataclass(frozen=True)
class Truth:
    """Whether the truth is told, as it is drawn: exactly, by the smaller of two probabilities.

    Near 1 a float has no digits left for what is missing; so each of the two is kept by itself.
    """

    told: float
    hidden: float

    @classmethod
    def at_most(cls, told: float, hidden: float) -> "Truth":
        """From probabilities that were rounded: told no more often than they would have it."""
        return cls(told * (1 - TOWARDS_PRIVACY), min(hidden * (1 + TOWARDS_PRIVACY), 1.0))

    def draw(self, shape: tuple[int, ...], rng: Randomness) -> npt.NDArray[np.bool_]:
        """For each respondent whether the truth is told."""
        if self.told <= self.hidden:
            return rng.bernoulli(self.told, shape)
        return ~rng.bernoulli(self.hidden, shape)


class KeepOrUniform(RRMatrix):
    """Keep the true value with probability ``keep``, else report a uniform one.

    Paper 000 Corollary 1, paper 001 Eq. (6).

    P = keep·I + (1 − keep)/r·J: the diagonal is keep + (1 − keep)/r.
    """

    def __init__(self, size: int, keep: float) -> None:
        if size < 1:
            raise MatrixError(f"a value needs at least one category, not {size}")
        self.size = size
        self.keep = check_share("the probability to keep the true value", keep)
        self.truth = Truth(self.keep, 1 - self.keep)
        self._epsilon: float | None = None

    @classmethod
    def from_epsilon(cls, size: int, epsilon: float) -> "KeepOrUniform":
        """The matrix that randomizes least among all with this ε (000 §6.3)."""
        if not epsilon >= 0:
            raise MatrixError(f"epsilon must not be negative, not {epsilon}")
        other = math.exp(-epsilon)
        keep = -math.expm1(-epsilon) / (1 + (size - 1) * other)
        matrix = cls(size, keep)
        matrix.truth = Truth.at_most(keep, size * other / (1 + (size - 1) * other))
        matrix._epsilon = epsilon if size > 1 else 0.0  # 1 − keep alone would lose its digits
        return matrix

    def __repr__(self) -> str:
        return f"KeepOrUniform(size={self.size}, keep={self.keep:.4g})"

    @property
    def spread(self) -> float:
        """The probability of each other value: (1 − keep)/r."""
        return (1 - self.keep) / self.size

    def apply(self, truth: Array, axis: int = -1) -> Array:
        """keep·π + spread·Σπ."""
        return np.asarray(self.keep * truth + self.spread * truth.sum(axis=axis, keepdims=True))

    def solve(self, reported: Array, axis: int = -1) -> Array:
        """(λ − spread·Σλ)/keep."""
        self.check_invertible()
        total = reported.sum(axis=axis, keepdims=True)
        return np.asarray((reported - self.spread * total) / self.keep)

    def solve_squared(self, reported: Array, axis: int = -1) -> Array:
        """The squared inverse has the same form: one number on the diagonal, one elsewhere."""
        self.check_invertible()
        diagonal, other = ((1 - self.spread) / self.keep) ** 2, (self.spread / self.keep) ** 2
        total = reported.sum(axis=axis, keepdims=True)
        return np.asarray((diagonal - other) * reported + other * total)

    def check_invertible(self) -> None:
        """`MatrixError` if nothing of the true value is left."""
        if self.size > 1 and self.condition > WORST_CONDITION:
            raise MatrixError(
                f"keeping the true value with probability {self.keep:.3g} leaves nothing to "
                "estimate from; randomize less"
            )

    def dense(self) -> Array:
        """keep·I + spread·J."""
        self._check_dense()
        return np.asarray(self.keep * np.eye(self.size) + self.spread)

    def randomize(self, values: Codes, rng: Randomness) -> Codes:
        """First whether each value is kept; then, for all of them, what would replace it."""
        values = check_codes(values, self.size)
        flat = values.reshape(-1)
        reported = np.empty_like(flat)
        for start in range(0, len(flat), CHUNK):  # a piece at a time stays in the cache
            piece = flat[start : start + CHUNK]
            kept = self.truth.draw(piece.shape, rng)
            others = rng.below(self.size, piece.shape).view(np.int64)
            reported[start : start + CHUNK] = np.where(kept, piece, others)
        return reported.reshape(values.shape)

    def randomize_counts(self, counts: Codes, rng: np.random.Generator) -> Codes:
        """What the counts of many respondents' true values become: for simulation, at no cost.

        Distributed exactly as if each respondent had been randomized: of each count a binomial
        share is kept, everybody else is spread evenly.
        """
        kept = rng.binomial(counts, self.keep)
        others = int(counts.sum() - kept.sum())
        spread = rng.multinomial(others, np.full(self.size, 1 / self.size))
        return np.asarray(kept + spread.reshape(counts.shape))

    @property
    def epsilon(self) -> float:
        """ln(1 + keep·r/(1 − keep))."""
        if self._epsilon is not None and self.keep < 1:
            return self._epsilon
        if self.size == 1:
            return 0.0
        return math.inf if self.keep >= 1 else math.log1p(self.keep * self.size / (1 - self.keep))

    @property
    def entropy_rate(self) -> float:
        """All rows have the same entropy."""
        diagonal, other = self.keep + self.spread, self.spread
        return _entropy_term(diagonal) + (self.size - 1) * _entropy_term(other)

    @property
    def condition(self) -> float:
        """The eigenvalues are 1 and keep."""
        if self.size == 1:
            return 1.0
        return math.inf if self.keep == 0 else 1 / self.keep


def log_of(ratio: Fraction) -> float:
    """The logarithm of an exact number from 1 on, right to the last digits also near 1."""
    if ratio < 2:
        return math.log1p(float(ratio - 1))
    return math.log(ratio.numerator) - math.log(ratio.denominator)


def _largest_ratio(chances: Iterable[Fraction]) -> float:
    """The logarithm of the largest over the smallest; infinite if only some are 0."""
    some = list(chances)
    largest, smallest = max(some), min(some)
    if largest == 0:
        return 0.0
    return math.inf if smallest == 0 else log_of(largest / smallest)


def _entropy_term(probability: float) -> float:
    return -probability * math.log2(probability) if probability > 0 else 0.0


class Dense(RRMatrix):
    """Any matrix the user gives, checked.

    The floats of a row are its weights, exactly as given: the probability of a report is its weight
    divided by their sum, which need not be 1 to the last digit.
    """

    def __init__(self, probabilities: npt.ArrayLike) -> None:
        try:
            matrix = np.asarray(probabilities, dtype=np.float64)
        except (TypeError, ValueError):
            raise MatrixError("a randomization matrix has rows of equally many numbers") from None
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or matrix.shape[0] < 1:
            raise MatrixError(f"a randomization matrix must be square, not {matrix.shape}")
        if not np.isfinite(matrix).all():
            raise MatrixError("a randomization matrix holds probabilities: all must be numbers")
        if (matrix < 0).any():
            raise MatrixError("a randomization matrix holds probabilities: none may be negative")
        sums = matrix.sum(axis=1)
        if not np.allclose(sums, 1, rtol=0, atol=1e-9):
            row = int(np.argmax(abs(sums - 1)))
            raise MatrixError(f"row {row} of the randomization matrix sums to {sums[row]:.6g}")
        self._weights = np.ascontiguousarray(matrix)
        self._matrix = matrix / sums[:, np.newaxis]
        self.size = matrix.shape[0]

    def __repr__(self) -> str:
        told = hashlib.sha256(self._weights.astype("<f8").tobytes()).hexdigest()[:16]
        return f"Dense({self.size} x {self.size}, {told})"

    @property
    def weights(self) -> Array:
        """A copy of the rows as they were given."""
        return np.array(self._weights)

    @property
    def bistochastic(self) -> bool:
        """Whether columns add up to 1, too: uniform answers make uniform reports (001, 003)."""
        return bool(np.allclose(self._matrix.sum(axis=0), 1, rtol=0, atol=1e-9))

    @property
    def kept(self) -> float:
        """The largest λ with which a bistochastic matrix is λ·I and permutations (001, Cor. 1).

        λ·I can be taken off as long as no probability becomes negative; the rest is bistochastic up
        to a factor, and so made of permutations (Birkhoff and von Neumann).
        """
        return float(np.diagonal(self._matrix).min())

    def betrayed(self) -> list[int]:
        """The reports that only one answer can have led to."""
        return np.flatnonzero((self._weights > 0).sum(axis=0) == 1).tolist()

    @cached_property
    def condition(self) -> float:
        """The ratio of the largest to the smallest singular value."""
        values = np.linalg.svd(self._matrix, compute_uv=False)
        return math.inf if values[-1] == 0 else float(values[0] / values[-1])

    def apply(self, truth: Array, axis: int = -1) -> Array:
        """Pᵀπ."""
        return np.moveaxis(np.moveaxis(truth, axis, -1) @ self._matrix, -1, axis)

    def apply_transposed(self, values: Array, axis: int = -1) -> Array:
        """P·x."""
        return np.moveaxis(np.moveaxis(values, axis, -1) @ self._matrix.T, -1, axis)

    @cached_property
    def _inverse(self) -> Array:
        if self.condition > WORST_CONDITION:
            raise MatrixError(
                f"the randomization matrix cannot be undone (condition number "
                f"{self.condition:.2g}): different truths give the same reports"
            )
        return np.linalg.inv(self._matrix)

    def solve(self, reported: Array, axis: int = -1) -> Array:
        """(Pᵀ)⁻¹λ."""
        return np.moveaxis(np.moveaxis(reported, axis, -1) @ self._inverse, -1, axis)

    def solve_transposed(self, values: Array, axis: int = -1) -> Array:
        """P⁻¹·x."""
        return np.moveaxis(np.moveaxis(values, axis, -1) @ self._inverse.T, -1, axis)

    def solve_squared(self, reported: Array, axis: int = -1) -> Array:
        """With the squares of the inverse's entries."""
        return np.moveaxis(np.moveaxis(reported, axis, -1) @ self._inverse**2, -1, axis)

    def dense(self) -> Array:
        """A copy of the matrix."""
        return np.array(self._matrix)

    def randomize(self, values: Codes, rng: Randomness) -> Codes:
        """Value by value: all who have it draw from its row."""
        values = check_codes(values, self.size)
        reported = np.empty_like(values)
        for value in np.unique(values).tolist():
            where = values == value
            reported[where] = rng.categorical(self._weights[value], (int(where.sum()),))
        return reported

    @cached_property
    def epsilon(self) -> float:
        """Over the columns, the largest ratio of two entries, reckoned in whole numbers.

        Infinite if only one of two is zero: such a report excludes an answer.
        """
        return max(_largest_ratio(column) for column in self._chances())

    @cached_property
    def epsilon_left(self) -> float:
        """The same of the answers that a report leaves: zeros do not count."""
        columns = [[chance for chance in column if chance] for column in self._chances()]
        return max(_largest_ratio(column) for column in columns if column)

    def _chances(self) -> Iterator[list[Fraction]]:
        """For each report, how probable it is with each answer, exactly."""
        rows = [[Fraction(weight) for weight in row] for row in self._weights.tolist()]
        sums = [sum(row) for row in rows]
        for column in zip(*rows, strict=True):
            yield [weight / total for weight, total in zip(column, sums, strict=True)]

    @property
    def entropy_rate(self) -> float:
        """Mean over the rows."""
        return float(sum(map(_entropy_term, self._matrix.ravel().tolist())) / self.size)

    @property
    def uncertainty(self) -> float:
        """Of a uniform answer, given the report."""
        of_reports = sum(map(_entropy_term, self._matrix.mean(axis=0).tolist()))
        return self.entropy_rate + math.log2(self.size) - float(of_reports)

    @property
    def beta(self) -> float:
        """Of a bistochastic matrix; `MatrixError` if this is none: then 001 has no β for it."""
        check_bistochastic(self)
        return super().beta


def check_bistochastic(matrix: RRMatrix) -> None:
    """`MatrixError` unless columns, too, sum to 1: everybody's reports are uniform if truths are.

    Without that an entropy rate is no measure of protection (001 §2.2), and covariances are not
    kept as Eq. (9) says.
    """
    reported = matrix.apply(np.ones(matrix.size))
    if not np.allclose(reported, 1, rtol=0, atol=1e-9):
        column = int(np.argmax(abs(reported - 1)))
        raise MatrixError(
            f"column {column} of the randomization matrix sums to {reported[column]:.6g}: as not "
            "all columns sum to 1, it is not bistochastic, and has no β (001)"
        )


def nearby(size: int, stay: float) -> Dense:
    """Of an answer with an order: it rather becomes a near one, 1/|u − v| as often (003 §6.2).

    The paper counts by how many attributes two records differ; within one attribute, that is by how
    many categories. The matrix is symmetric, hence bistochastic: the answer in the middle, which
    has the most near ones, stays with probability ``stay``; those farther out more often.
    """
    check_share("the probability to stay", stay)
    apart = abs(np.subtract.outer(np.arange(size), np.arange(size))).astype(np.float64)
    matrix = np.divide(1.0, apart, out=np.zeros_like(apart), where=apart > 0)
    matrix *= (1 - stay) / max(matrix.sum(axis=1).max(), 1.0)
    np.fill_diagonal(matrix, 1 - matrix.sum(axis=1))
    return Dense(matrix)


class ByChanges(RRMatrix):
    """A record becomes another one with a probability that follows from how many attributes change.

    So apply and solve work on the 2^m classes of changed attributes: all such matrices share their
    eigenvectors with the operators that average over a set of attributes, and neither the matrix
    nor its inverse is ever written down.
    """

    def __init__(self, sizes: Sequence[int], chances: Sequence[Fraction]) -> None:
        """``chances[w]``: of one particular record that differs in w attributes."""
        if not sizes or min(sizes) < 2:
            raise MatrixError("every attribute needs at least two categories")
        self.sizes = tuple(int(size) for size in sizes)
        self.size = math.prod(self.sizes)
        self.chances = tuple(chances)
        self._check_attributes()

    def _check_attributes(self) -> None:
        if len(self.sizes) > MOST_IN_CLUSTER:
            raise MatrixError(f"{len(self.sizes)} attributes in one cluster are too many")

    def __repr__(self) -> str:
        return f"{type(self).__name__}(sizes={self.sizes}, stay={self.probability(0):.4g})"

    @cached_property
    def _count_by_changes(self) -> list[int]:
        """How many records differ in exactly w attributes, w = 0 … m (003, Expression (10))."""
        return counts_by_changes(self.sizes)

    def probability(self, changes: int) -> float:
        """The probability of one particular record that differs in ``changes`` attributes."""
        return float(self.chances[changes])

    def part(self, places: Sequence[int]) -> "ByChanges":
        """What it does to some of the attributes, whatever the others are: of the same kind."""
        rest = counts_by_changes([s for k, s in enumerate(self.sizes) if k not in places])
        chances = [
            sum((count * self.chances[own + w] for w, count in enumerate(rest)), Fraction(0))
            for own in range(len(places) + 1)
        ]
        return ByChanges([self.sizes[k] for k in places], chances)

    @property
    def epsilon_of_one(self) -> float:
        """Of any one attribute, to whoever knows all others: one more change, or one less."""
        pairs = zip(self.chances, self.chances[1:], strict=False)
        return max(map(_largest_ratio, pairs))

    @cached_property
    def eigenvalues(self) -> Array:
        """One for each set of attributes, as an array of shape (2,)·m."""
        changes = np.indices((2,) * len(self.sizes)).sum(axis=0)
        by_changes = np.array([self.probability(w) for w in range(len(self.sizes) + 1)])
        return self._spectrum(by_changes[changes])

    def _spectrum(self, entries: Array) -> Array:
        """The eigenvalues of a matrix whose entries depend only on which attributes change.

        ``entries`` has one index per attribute: 1 where it changes. On functions that sum to zero
        over each attribute of a set T and do not depend on the others, changing an attribute of T
        in all ways multiplies by −1, and changing another one by (size − 1).
        """
        for axis, size in enumerate(self.sizes):
            factors = np.array([[1.0, size - 1.0], [1.0, -1.0]])
            entries = np.moveaxis(np.tensordot(factors, entries, axes=(1, axis)), 0, axis)
        return entries

    def _transform(self, values: Array, factors: Array, axis: int) -> Array:
        moved = np.moveaxis(values, axis, -1)
        shape = moved.shape
        blocks = moved.reshape(-1, *self.sizes)
        result = self._scaled(blocks, factors, 0)
        return np.moveaxis(result.reshape(shape), -1, axis)

    def _scaled(self, blocks: Array, factors: Array, axis: int) -> Array:
        """Split along each attribute into its mean and the rest; scale each part; add up again."""
        if axis == len(self.sizes):
            return np.asarray(blocks * float(factors))
        mean = blocks.mean(axis=axis + 1, keepdims=True)
        rest = blocks - mean
        scaled_mean = self._scaled(mean, factors[0], axis + 1)
        return np.asarray(scaled_mean + self._scaled(rest, factors[1], axis + 1))

    def apply(self, truth: Array, axis: int = -1) -> Array:
        """Scale each part by its eigenvalue."""
        return self._transform(truth, self.eigenvalues, axis)

    def solve(self, reported: Array, axis: int = -1) -> Array:
        """Divide each part by its eigenvalue."""
        if self.condition > WORST_CONDITION:
            raise MatrixError(
                f"staying with probability {self.probability(0):.3g} cannot be undone "
                f"(condition number {self.condition:.2g}); choose another"
            )
        return self._transform(reported, 1 / self.eigenvalues, axis)

    def solve_squared(self, reported: Array, axis: int = -1) -> Array:
        """The squared inverse, too, depends only on which attributes change."""
        unit = np.zeros(self.size)
        unit[0] = 1
        inverse = self.solve(unit).reshape(self.sizes)
        entries = inverse[tuple(slice(0, 2) for _ in self.sizes)]
        return self._transform(reported, self._spectrum(entries**2), axis)

    def dense(self) -> Array:
        """The matrix of a small cluster, written out."""
        self._check_dense()
        codes = np.stack(np.unravel_index(np.arange(self.size), self.sizes), axis=1)
        changes = (codes[:, np.newaxis, :] != codes[np.newaxis, :, :]).sum(axis=2)
        by_changes = np.array([self.probability(w) for w in range(len(self.sizes) + 1)])
        return np.asarray(by_changes[changes])

    def randomize(self, values: Codes, rng: Randomness) -> Codes:
        """Draw how many attributes change, then which, then to what.

        The number of changes w has probability (count of records at w)·probability(w); given w, the
        attributes are drawn one after the other in proportion to how many records each choice
        leaves, which makes every record at that distance equally likely.
        """
        values = check_codes(values, self.size)
        flat = values.reshape(-1)
        records = np.stack(np.unravel_index(flat, self.sizes), axis=1)
        exact = [n * chance for n, chance in zip(self._count_by_changes, self.chances, strict=True)]
        whole = math.lcm(*(chance.denominator for chance in exact))
        left = rng.categorical([int(chance * whole) for chance in exact], flat.shape)
        ways = self._ways
        for j, size in enumerate(self.sizes):
            changes = np.zeros(flat.shape, dtype=np.int64)
            for w in np.unique(left[left > 0]).tolist():
                where = left == w
                choice = [ways[j + 1][w], (size - 1) * ways[j + 1][w - 1]]
                changes[where] = rng.categorical(choice, (int(where.sum()),))
            step = rng.below(size - 1, flat.shape).view(np.int64) + 1
            records[:, j] = (records[:, j] + changes * step) % size
            left = left - changes
        reported = np.ravel_multi_index(tuple(records.T), self.sizes)
        return np.asarray(reported, dtype=values.dtype).reshape(values.shape)

    @cached_property
    def _ways(self) -> list[list[int]]:
        """[j][w]: in how many ways the attributes from j on can change in exactly w places."""
        m = len(self.sizes)
        ways = [[1] + [0] * m]
        for size in reversed(self.sizes):
            rest = ways[-1]
            ways.append([1] + [rest[w] + (size - 1) * rest[w - 1] for w in range(1, m + 1)])
        return ways[::-1]

    @property
    def epsilon(self) -> float:
        """From the most to the least probable entry of a column."""
        return _largest_ratio(self.chances)

    @property
    def entropy_rate(self) -> float:
        """All rows have the same entropy."""
        return sum(
            count * _entropy_term(self.probability(w))
            for w, count in enumerate(self._count_by_changes)
        )

    @property
    def condition(self) -> float:
        """The matrix is symmetric: the ratio of its extreme eigenvalues in absolute value."""
        absolute = abs(self.eigenvalues)
        return math.inf if absolute.min() == 0 else float(absolute.max() / absolute.min())


def counts_by_changes(sizes: Sequence[int]) -> list[int]:
    """How many records differ from a given one in exactly w attributes, w = 0 … m."""
    counts = [1]
    for size in sizes:
        longer = [*counts, 0]
        for w in range(len(counts), 0, -1):
            longer[w] += counts[w - 1] * (size - 1)
        counts = longer
    return counts


class DistanceWeighted(ByChanges):
    """A record stays with probability ``stay``; else it moves, rather to near records (003 §6.2).

    The probability of another record is inversely proportional to the number of attributes that
    change.
    """

    def __init__(self, sizes: Sequence[int], stay: float) -> None:
        self.stay = check_share("the probability to stay", stay)
        stays = Fraction(self.stay)
        counts = counts_by_changes(sizes)
        row = sum((Fraction(count, w) for w, count in enumerate(counts) if w), Fraction(0))
        moves = [(1 - stays) / w / row for w in range(1, len(sizes) + 1)] if row else []
        super().__init__(sizes, [stays, *moves])

    @property
    def row_sum(self) -> float:
        """Σ_k d_uk, the same for every row; the inner factor is 1/w (see docs/errata.md)."""
        return sum(count / w for w, count in enumerate(self._count_by_changes) if w > 0)
