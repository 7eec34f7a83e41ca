"""How strongly two attributes depend on each other, from their table of counts (000 §4).

Pairs with a nominal attribute get Cramér's V (Expression (9), with the expected counts in the
denominator of χ²: the paper's print has a slip there); two ordinal attributes get the absolute
Pearson correlation of their category ranks (Expression (8)). Both lie between 0, independent, and
1, fully dependent. Numbers are binned first (`quantile_bins`).

A small table of few records shows some dependence by chance alone; ``corrected=True`` takes that
off. On *randomized* records V is weaker than on the true ones. Whether it ranks the pairs better
than V of estimated tables depends on the data and on how they were randomized; docs/errata.md
says where it did.
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy.special import chdtrc, stdtr

from mpc_rr.errors import InputError

ContingencyTable = npt.NDArray[np.integer] | npt.NDArray[np.floating]


@dataclass(frozen=True)
class Dependence:
    """A measure of dependence. ``value`` is None where everybody gave the same answer.

    ``p_value``: how probable a dependence at least as strong would be among independent
    attributes (χ² test for V, t test for r).
    """

    measure: Literal["cramers_v", "abs_pearson_r"]
    value: float | None
    p_value: float | None


def dependence(table: ContingencyTable, *, both_ordinal: bool) -> Dependence:
    """The measure that fits the types of the two attributes."""
    return abs_pearson_r(table) if both_ordinal else cramers_v(table)


def cramers_v(table: ContingencyTable, *, corrected: bool = False) -> Dependence:
    """Cramér's V of a table of counts, which need not be whole numbers.

    The p-value supposes counts of respondents; of shares it says nothing. ``corrected`` takes off
    what chance alone gives (Bergsma 2013); it needs counts, not shares.
    """
    counts = np.asarray(table, dtype=np.float64)
    n = counts.sum()
    expected = np.outer(counts.sum(axis=1), counts.sum(axis=0)) / n if n else np.zeros_like(counts)
    occupied_rows, occupied_columns = (expected.any(axis=1).sum(), expected.any(axis=0).sum())
    if min(occupied_rows, occupied_columns) < 2:
        return Dependence("cramers_v", None, None)
    possible = expected > 0
    chi2 = float((((counts - expected) ** 2)[possible] / expected[possible]).sum())
    degrees = int((occupied_rows - 1) * (occupied_columns - 1))
    value = np.sqrt(chi2 / n / (min(counts.shape) - 1))
    if corrected:
        value = _without_chance(chi2 / n, float(n), counts.shape)
    return Dependence("cramers_v", min(float(value), 1.0), float(chdtrc(degrees, chi2)))


def _without_chance(phi2: float, n: float, shape: tuple[int, ...]) -> float:
    """Bergsma's correction: χ²/n and the numbers of categories, less what chance adds to each."""
    if n < 2:
        raise InputError("the correction for chance needs counts of at least two records")
    rows, columns = shape
    real = max(0.0, phi2 - (rows - 1) * (columns - 1) / (n - 1))
    fewer = min(size - (size - 1) ** 2 / (n - 1) for size in (rows, columns)) - 1
    return math.sqrt(real / fewer) if fewer > 0 else 0.0


def abs_pearson_r(table: ContingencyTable) -> Dependence:
    """|Pearson r| of the category ranks of a table of counts."""
    r, n = pearson_r(table), float(np.asarray(table, dtype=np.float64).sum())
    if r is None:
        return Dependence("abs_pearson_r", None, None)
    return Dependence("abs_pearson_r", abs(r), _correlation_p_value(abs(r), n))


def pearson_r(table: ContingencyTable) -> float | None:
    """The correlation of the category ranks of a table; None where all have the same rank."""
    counts = np.asarray(table, dtype=np.float64)
    n = counts.sum()
    if not n > 0:
        return None
    rows, columns = (np.arange(size, dtype=np.float64) for size in counts.shape)
    rows = rows - (counts.sum(axis=1) @ rows) / n
    columns = columns - (counts.sum(axis=0) @ columns) / n
    variances = (counts.sum(axis=1) @ rows**2) * (counts.sum(axis=0) @ columns**2)
    if variances <= 1e-12:
        return None
    return min(max(float(rows @ counts @ columns / np.sqrt(variances)), -1.0), 1.0)


def _correlation_p_value(r: float, n: float) -> float | None:
    """Two-sided p-value of a correlation r among n records, by the t distribution."""
    if n <= 2:
        return None
    if r >= 1.0:
        return 0.0
    t = r * np.sqrt((n - 2) / (1 - r * r))
    return float(2 * stdtr(n - 2, -t))


def dependences_of_records(
    records: npt.ArrayLike,
    sizes: Sequence[int],
    *,
    ordinal: Sequence[bool] | None = None,
    corrected: bool = False,
) -> npt.NDArray[np.float64]:
    """The dependence of every pair of attributes of true or randomized records, as a matrix.

    Undefined dependences (an attribute with one value only) are 0; the diagonal is 0.

    Of attributes randomized one by one they ranked the pairs of Child better than the shrunk tables
    that studies publish, at every keep tried; of Adult at keep 0.8 only, else it could not be told.
    Of pairs randomized as one value V of the estimated tables mostly ranks better. See
    docs/errata.md.
    """
    codes = np.asarray(records).astype(np.int64)
    if codes.ndim != 2 or codes.shape[1] != len(sizes) or len(codes) == 0:
        raise InputError(f"records must be rows of {len(sizes)} category numbers")
    if ((codes < 0) | (codes >= np.asarray(sizes))).any():
        raise InputError("a record has a value outside the categories of its attribute")
    ordered = [False] * len(sizes) if ordinal is None else list(ordinal)
    matrix = np.zeros((len(sizes), len(sizes)))
    for i, j in itertools.combinations(range(len(sizes)), 2):
        cells = np.bincount(codes[:, i] * sizes[j] + codes[:, j], minlength=sizes[i] * sizes[j])
        table = cells.reshape(sizes[i], sizes[j])
        if ordered[i] and ordered[j]:
            found = abs_pearson_r(table)
        else:
            found = cramers_v(table, corrected=corrected)
        matrix[i, j] = matrix[j, i] = found.value or 0.0
    return matrix


def quantile_bins(values: npt.ArrayLike, most: int) -> tuple[float, ...]:
    """Edges of at most ``most`` intervals that hold about equally many of some numbers.

    For the ``bins`` of an attribute. In a study, take them from public knowledge or earlier data,
    not from the answers that are to be protected.
    """
    numbers = np.asarray(values, dtype=np.float64)
    if numbers.size == 0 or not np.isfinite(numbers).all():
        raise InputError("bins need numbers, all of them finite")
    if most < 2:
        raise InputError(f"at least two bins are needed, not {most}")
    edges = np.unique(np.quantile(numbers, np.linspace(0, 1, most + 1)))
    if len(edges) < 3:
        raise InputError("the numbers are too much alike to be split into bins")
    return tuple(float(edge) for edge in edges)
