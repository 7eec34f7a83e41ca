"""The ways in which a column of a curator's file is randomized, and what each protects.

A way is written into the codebook as it stands here, so these classes are a format (version 1).
Whatever protects nothing is called that: `AsItIs`, and the paper's own λ·value + (1 − λ)·mean
(001 §5), from which everybody gets every value back, is none of them.
"""

import math
from functools import lru_cache
from typing import ClassVar

import msgspec
import numpy as np
import numpy.typing as npt

from mpc_rr.errors import InputError
from mpc_rr.estimation.matrix import (
    Array,
    Dense,
    KeepOrUniform,
    MatrixError,
    RRMatrix,
)
from mpc_rr.privacy.discrete_gaussian import discrete_gaussian
from mpc_rr.privacy.discrete_laplace import SLOWEST, discrete_laplace, laplace_variance
from mpc_rr.randomness import Randomness

TOWARDS_PRIVACY = 1 - 2.0**-30
"""Noise falls more slowly by so much than an ε would have it, for what floats are off."""
SMALLEST_EPSILON = 0.001
LATTICE_BITS = 20
"""Normal numbers of variance 1 are multiples of 2^-20 before they are made to depend."""
Rows = tuple[tuple[float, ...], ...]
Steps = npt.NDArray[np.int64]


class Way(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="mechanism"
):
    """How one column was randomized."""

    protects: ClassVar[bool] = True

    @property
    def epsilon(self) -> float | None:
        """What bounds what one value tells; None if nothing does."""
        return None

    @property
    def failing(self) -> float:
        """The δ with which that holds."""
        return 0.0

    @property
    def said(self) -> str:
        """In words."""
        raise NotImplementedError

    @property
    def brief(self) -> str:
        """In a few, for a table."""
        raise NotImplementedError


# ── Categories ─────────────────────────────────────────────────────────────────────────────────


class OfCategories(Way, frozen=True, kw_only=True):
    """A randomization by a matrix."""

    @property
    def matrix(self) -> RRMatrix:
        """P[u, v]: the probability that a true u is written as v."""
        raise NotImplementedError

    @property
    def epsilon(self) -> float | None:
        """The matrix's."""
        epsilon = self.matrix.epsilon
        return None if math.isinf(epsilon) else epsilon

    @property
    def beta(self) -> float | None:
        """The matrix's share of the largest entropy; None where 001 defines none."""
        try:
            return self.matrix.beta
        except MatrixError:
            return None


class AsItIs(OfCategories, frozen=True, kw_only=True, tag="as it is"):
    """Not randomized at all."""

    protects: ClassVar[bool] = False
    size: int

    @property
    def matrix(self) -> RRMatrix:
        """Everything is kept."""
        return KeepOrUniform(self.size, 1.0)

    @property
    def said(self) -> str:
        """In words."""
        return "written as it is: not protected"

    @property
    def brief(self) -> str:
        """In a few."""
        return "as it is"


class KeptOrUniform(OfCategories, frozen=True, kw_only=True, tag="kept or uniform"):
    """λ-randomization: P = λ·I + (1 − λ)/r·J."""

    size: int
    keep: float

    @property
    def matrix(self) -> RRMatrix:
        """λ·I + (1 − λ)/r·J."""
        return KeepOrUniform(self.size, self.keep)

    @property
    def said(self) -> str:
        """In words."""
        return f"kept with probability {self.keep:.4g}, else one of {self.size} drawn evenly"

    @property
    def brief(self) -> str:
        """In a few."""
        return f"λ = {self.keep:.4g}"


class Pram(OfCategories, frozen=True, kw_only=True, tag="PRAM"):
    """A matrix that was given."""

    rows: Rows

    @property
    def matrix(self) -> RRMatrix:
        """As it was given."""
        return Dense(self.rows)

    @property
    def said(self) -> str:
        """In words."""
        return "drawn from the row of its category in the matrix that is given"

    @property
    def brief(self) -> str:
        """In a few."""
        return "PRAM"


class InvariantPram(OfCategories, frozen=True, kw_only=True, tag="invariant PRAM"):
    """A matrix that leaves the column's shares as they are, on average.

    It is made from these shares, which it tells exactly; so no ε bounds what the release tells.
    """

    rows: Rows

    @property
    def matrix(self) -> RRMatrix:
        """As it was made."""
        return Dense(self.rows)

    @property
    def epsilon(self) -> float | None:
        """None: the matrix itself follows from everybody's values."""
        return None

    @property
    def said(self) -> str:
        """In words."""
        return (
            "drawn from the row of its category in a matrix that keeps the column's shares; as it "
            "was made from these, it tells them exactly, and there is no ε"
        )

    @property
    def brief(self) -> str:
        """In a few."""
        return "invariant PRAM"


def invariant(matrix: RRMatrix, shares: Array) -> InvariantPram:
    """P followed by its own reversal (Gouweleeuw et al. 1998): these shares stay as they are.

    A value that P has made of v goes back to u with the probability that it was u.
    """
    forth = matrix.dense()
    joint = forth * shares[:, np.newaxis]
    reached = joint.sum(axis=0)
    back = np.where(reached > 0, joint / np.where(reached > 0, reached, 1.0), np.eye(matrix.size))
    made = forth @ back.T
    return InvariantPram(rows=rows_of(made / made.sum(axis=1, keepdims=True)))


def rows_of(matrix: Array) -> Rows:
    """A matrix as it is written."""
    return tuple(tuple(row) for row in matrix.tolist())


# ── Numbers ────────────────────────────────────────────────────────────────────────────────────


class OfNumbers(Way, frozen=True, kw_only=True):
    """Noise of mean 0, in whole steps of the attribute."""

    step: float

    @property
    def variance(self) -> float:
        """Of the noise, in the attribute's units, squared."""
        raise NotImplementedError


class NumberAsItIs(OfNumbers, frozen=True, kw_only=True, tag="number as it is"):
    """Not randomized at all."""

    protects: ClassVar[bool] = False

    @property
    def variance(self) -> float:
        """No noise."""
        return 0.0

    @property
    def said(self) -> str:
        """In words."""
        return "written as it is: not protected"

    @property
    def brief(self) -> str:
        """In a few."""
        return "as it is"


def check_range(lowest: float, highest: float, step: float) -> None:
    """`InputError` unless there are numbers between these, in steps."""
    if not (0 < step <= highest - lowest < math.inf):
        raise InputError(f"there are no numbers from {lowest} to {highest} in steps of {step}")


class Laplace(OfNumbers, frozen=True, kw_only=True, tag="discrete Laplace noise"):
    """Noise with which any two numbers of the stated range differ by at most ε."""

    lowest: float
    highest: float
    spent: float
    """The ε."""

    def __post_init__(self) -> None:
        check_range(self.lowest, self.highest, self.step)
        if not SMALLEST_EPSILON <= self.spent < math.inf:
            raise InputError(f"epsilon must be at least {SMALLEST_EPSILON}, not {self.spent}")
        if self.decay < SLOWEST:
            raise InputError("its step is too small for so much noise; choose a larger one")

    @property
    def epsilon(self) -> float | None:
        """For the whole range."""
        return self.spent

    @property
    def decay(self) -> float:
        """By so much the logarithm of the probability falls with each step."""
        steps = round((self.highest - self.lowest) / self.step)
        return self.spent * TOWARDS_PRIVACY / steps

    @property
    def variance(self) -> float:
        """Of the noise."""
        return self.step**2 * laplace_variance(self.decay)

    def draw(self, count: int, rng: Randomness) -> Steps:
        """Noise in steps."""
        return discrete_laplace(self.decay, count, rng)

    @property
    def said(self) -> str:
        """In words."""
        return (
            f"noise added, of standard deviation {math.sqrt(self.variance):.4g} (discrete Laplace, "
            f"for the range {self.lowest:.6g} to {self.highest:.6g})"
        )

    @property
    def brief(self) -> str:
        """In a few."""
        return f"Laplace ± {math.sqrt(self.variance):.3g}"


class Normal(OfNumbers, frozen=True, kw_only=True, tag="normal noise"):
    """Normal noise, which may depend on that of other columns (`Correlated`).

    ``group`` is the number of that group in the codebook; by itself, it is None.
    """

    lowest: float
    highest: float
    deviation: float
    from_file: bool
    """Whether the deviation was taken from the column's own, which it then tells exactly."""
    delta: float
    group: int | None = None

    def __post_init__(self) -> None:
        check_range(self.lowest, self.highest, self.step)
        if not 0 < self.delta < 1:
            raise InputError(f"delta must be between 0 and 1, not {self.delta}")
        if not self.step <= self.deviation < math.inf:
            raise InputError(
                f"noise of standard deviation {self.deviation:.4g} is less than a step "
                f"({self.step:.6g}): take more noise, or smaller steps"
            )

    @property
    def variance(self) -> float:
        """Of the noise."""
        return self.deviation**2

    @property
    def epsilon(self) -> float | None:
        """At δ; None where the deviation itself follows from everybody's values."""
        if self.from_file:
            return None
        return normal_epsilon((self.highest - self.lowest) / self.deviation, self.delta)

    @property
    def failing(self) -> float:
        """δ."""
        return 0.0 if self.from_file else self.delta

    def draw(self, count: int, rng: Randomness) -> Steps:
        """Noise in steps, by itself."""
        return discrete_gaussian((self.deviation / self.step) ** 2, count, rng)

    @property
    def said(self) -> str:
        """In words."""
        with_others = "" if self.group is None else ", which depends on that of other columns"
        why = (
            "; as that was taken from the column's own, it tells this exactly, and there is no ε"
            if self.from_file
            else ""
        )
        return f"normal noise added, of standard deviation {self.deviation:.4g}{with_others}{why}"

    @property
    def brief(self) -> str:
        """In a few."""
        return f"normal ± {self.deviation:.3g}" + ", correlated" * (self.group is not None)


class Correlated(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Noise whose covariances are ``share`` times those of the columns themselves (Kim 1986).

    Correlations stay as they are. Whoever knows some of a record's numbers knows their noise, and
    with it more of the rest: `alone` says what noise is left.
    """

    columns: tuple[str, ...]
    share: float
    covariance: Rows
    """Of the noise."""

    @property
    def alone(self) -> list[float]:
        """The standard deviation of each column's noise, to whoever knows the other columns."""
        return _left_alone(self.covariance)

    def draw(self, count: int, rng: Randomness) -> Array:
        """Noise in units, a column each."""
        half = np.linalg.cholesky(np.array(self.covariance))
        size = len(self.columns)
        lattice = discrete_gaussian(4.0**LATTICE_BITS, count * size, rng).reshape(count, size)
        return np.asarray(lattice * 2.0**-LATTICE_BITS @ half.T)


@lru_cache(maxsize=8)
def _left_alone(covariance: Rows) -> list[float]:
    inverse = np.linalg.inv(np.array(covariance))
    with np.errstate(invalid="ignore", divide="ignore"):  # of what is no covariance
        return [float(v) for v in 1 / np.sqrt(np.diag(inverse))]


def normal_epsilon(distance: float, delta: float) -> float:
    """At δ, of normal noise and two values so many of its standard deviations apart.

    ρ = distance²/2 in concentrated differential privacy (Bun and Steinke 2016), also of discrete
    noise; then ε = ρ + 2·√(ρ·ln(1/δ)).
    """
    rho = distance**2 / 2
    return rho + 2 * math.sqrt(rho * math.log(1 / delta))


AnyWay = AsItIs | KeptOrUniform | Pram | InvariantPram | NumberAsItIs | Laplace | Normal
