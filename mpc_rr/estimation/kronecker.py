"""The randomization of whole records, attribute by attribute: a Kronecker product (paper 001).

The matrix of a record is P₁ ⊗ … ⊗ P_m. It is applied and inverted axis by axis on the table of all
combinations, never written down: 1,814,400 combinations would need 26 TB.
"""

import math
from collections.abc import Sequence
from functools import cached_property

import numpy as np

from mpc_rr.estimation.matrix import (
    DENSE_LIMIT,
    Array,
    Codes,
    Dense,
    KeepOrUniform,
    MatrixError,
    RRMatrix,
    check_bistochastic,
)
from mpc_rr.randomness import Randomness

HOPELESS = 1e14
BLOCK = 64
"""Trailing attributes are taken together up to this many combinations: one product instead of
several passes over a large table with short rows."""


class Kronecker:
    """Independent randomization of each of several attributes."""

    def __init__(self, matrices: Sequence[RRMatrix]) -> None:
        if not matrices:
            raise MatrixError("a design needs at least one attribute")
        self.matrices = tuple(matrices)
        self.sizes = tuple(matrix.size for matrix in self.matrices)
        self.size = math.prod(self.sizes)
        self.shape = self.sizes

    def __repr__(self) -> str:
        return f"Kronecker({', '.join(map(repr, self.matrices))})"

    def apply(self, truth: Array) -> Array:
        """Distribution of reported records from that of true ones; a table over all attributes."""
        return self._axis_by_axis("apply", truth)

    def solve(self, reported: Array, *, overwrite: bool = False) -> Array:
        """The unbiased estimate of the true distribution (000 Eq. (2), 001 Eq. (8)).

        With ``overwrite`` the estimate takes the place of ``reported`` (a contiguous array of
        floats): at most half as much memory again is needed.
        """
        self._check_shape(reported)
        if self.condition > HOPELESS:
            raise MatrixError(
                f"so much randomization cannot be undone (condition number {self.condition:.2g}); "
                "ask for fewer attributes at once, or randomize less"
            )
        table = reported if overwrite else np.array(reported, dtype=np.float64, order="C")
        if not table.flags.c_contiguous or table.dtype != np.float64:
            raise MatrixError("only a contiguous array of 64-bit floats can be overwritten")
        leading, block = self._split
        rows, width = math.prod(self.sizes[:leading]), math.prod(self.sizes[leading:])
        if block is not None:
            _multiply_rows(table.reshape(rows, width), block)
        scale, after = 1.0, self.size
        for matrix in self.matrices[:leading]:
            after //= matrix.size
            view = table.reshape(-1, matrix.size, after)
            scale *= _undo_along_middle(view, matrix)
        if scale != 1.0:
            table *= scale
        return table

    def apply_transposed(self, values: Array) -> Array:
        """(P₁ ⊗ … ⊗ P_m)·x on a table."""
        return self._axis_by_axis("apply_transposed", values)

    def solve_transposed(self, values: Array) -> Array:
        """The inverse of `apply_transposed`."""
        return self._axis_by_axis("solve_transposed", values)

    def solve_squared(self, reported: Array) -> Array:
        """The entrywise square of a Kronecker product is the product of the squares."""
        return self._axis_by_axis("solve_squared", reported)

    def _axis_by_axis(self, operation: str, table: Array) -> Array:
        self._check_shape(table)
        for axis, matrix in enumerate(self.matrices):
            table = getattr(matrix, operation)(table, axis)
        return table

    @cached_property
    def _split(self) -> tuple[int, Array | None]:
        """How many leading attributes are inverted one by one, and the inverse of the rest."""
        leading, width = len(self.matrices), 1
        while leading > 0 and width * self.sizes[leading - 1] <= BLOCK:
            leading -= 1
            width *= self.sizes[leading]
        if leading == len(self.matrices):
            return leading, None
        block: Array = np.ones((1, 1))
        for matrix in self.matrices[leading:]:
            block = np.asarray(np.kron(block, matrix.solve(np.eye(matrix.size), axis=1)))
        return leading, block

    def randomize(self, records: Codes, rng: Randomness) -> Codes:
        """Randomized records: one row per party, one column per attribute."""
        if records.ndim != 2 or records.shape[1] != len(self.matrices):
            raise MatrixError(f"records must have {len(self.matrices)} columns")
        columns = [matrix.randomize(records[:, j], rng) for j, matrix in enumerate(self.matrices)]
        return np.stack(columns, axis=1)

    @property
    def epsilon(self) -> float:
        """Sequential composition: the attributes of one record are all answered by one party."""
        return sum(matrix.epsilon for matrix in self.matrices)

    @property
    def entropy_rate(self) -> float:
        """The sum of the attributes' entropy rates (001, Theorem 2)."""
        return sum(matrix.entropy_rate for matrix in self.matrices)

    @property
    def beta(self) -> float:
        """Entropy rate as a share of the largest possible one, log₂ of all combinations.

        `MatrixError` if one of the matrices is not bistochastic (001, Definition 1).
        """
        for matrix in self.matrices:
            if isinstance(matrix, Dense):
                check_bistochastic(matrix)
        return self.entropy_rate / math.log2(self.size)

    @property
    def condition(self) -> float:
        """The product of the attributes' condition numbers."""
        return math.prod(matrix.condition for matrix in self.matrices)

    def _check_shape(self, table: Array) -> None:
        if table.shape != self.sizes:
            raise MatrixError(f"a table of shape {self.sizes} is needed, not {table.shape}")


def _multiply_rows(table: Array, block: Array) -> None:
    """table ← table · block, in place, a slice of rows at a time."""
    step = max(1, 1_000_000 // table.shape[1])
    for start in range(0, len(table), step):
        rows = table[start : start + step]
        rows[:] = rows @ block


def _undo_along_middle(view: Array, matrix: RRMatrix) -> float:
    """Invert one attribute in place; returns a factor by which all is still to be multiplied."""
    if isinstance(matrix, KeepOrUniform):
        matrix.check_invertible()
        view -= matrix.spread * view.sum(axis=1, keepdims=True)
        return 1 / matrix.keep
    view[:] = matrix.solve(view, axis=1)
    return 1.0


def as_dense(design: Kronecker) -> Dense:
    """The product written out, for small designs and for tests."""
    if design.size**2 > DENSE_LIMIT:
        raise MatrixError(f"{design.size:,} combinations are too many for a dense matrix")
    product: Array = np.ones((1, 1))
    for matrix in design.matrices:
        product = np.asarray(np.kron(product, matrix.dense()))
    return Dense(product)
