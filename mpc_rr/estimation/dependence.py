"""How strongly two attributes depend on each other, from their table of counts (000 §4).

Pairs with a nominal attribute get Cramér's V (Expression (9), with the expected counts in the
denominator of χ²: the paper's print has a slip there); two ordinal attributes get the absolute
Pearson correlation of their category ranks (Expression (8)). Both lie between 0, independent, and
1, fully dependent.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy.special import chdtrc, stdtr

Table = npt.NDArray[np.integer] | npt.NDArray[np.floating]


@dataclass(frozen=True)
class Dependence:
    """A measure of dependence. ``value`` is None where everybody gave the same answer.

    ``p_value``: how probable a dependence at least as strong would be among independent
    attributes (χ² test for V, t test for r).
    """

    measure: Literal["cramers_v", "abs_pearson_r"]
    value: float | None
    p_value: float | None


def dependence(table: Table, *, both_ordinal: bool) -> Dependence:
    """The measure that fits the types of the two attributes."""
    return abs_pearson_r(table) if both_ordinal else cramers_v(table)


def cramers_v(table: Table) -> Dependence:
    """Cramér's V of a table of counts."""
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
    return Dependence("cramers_v", min(float(value), 1.0), float(chdtrc(degrees, chi2)))


def abs_pearson_r(table: Table) -> Dependence:
    """|Pearson r| of the category ranks of a table of counts."""
    counts = np.asarray(table, dtype=np.float64)
    n = counts.sum()
    if n < 1:
        return Dependence("abs_pearson_r", None, None)
    rows, columns = (np.arange(size, dtype=np.float64) for size in counts.shape)
    rows = rows - (counts.sum(axis=1) @ rows) / n
    columns = columns - (counts.sum(axis=0) @ columns) / n
    variances = (counts.sum(axis=1) @ rows**2) * (counts.sum(axis=0) @ columns**2)
    if variances <= 1e-12:
        return Dependence("abs_pearson_r", None, None)
    r = min(float(abs(rows @ counts @ columns) / np.sqrt(variances)), 1.0)
    return Dependence("abs_pearson_r", r, _correlation_p_value(r, float(n)))


def _correlation_p_value(r: float, n: float) -> float | None:
    """Two-sided p-value of a correlation r among n records, by the t distribution."""
    if n <= 2:
        return None
    if r >= 1.0:
        return 0.0
    t = r * np.sqrt((n - 2) / (1 - r * r))
    return float(2 * stdtr(n - 2, -t))
