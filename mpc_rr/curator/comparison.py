"""What randomizing a file kept and lost: the truth, the output, and what the output tells of it.

For the curator, who has the truth. It is not part of the codebook: no ε covers what it says.
"""

import itertools
import math

import msgspec
import numpy as np

from mpc_rr.curator.codebook import Codebook, ColumnEntry
from mpc_rr.curator.estimates import common_noise, ranks_of, scores_of
from mpc_rr.curator.plan import Codes
from mpc_rr.curator.ways import OfNumbers
from mpc_rr.estimation.matrix import Array, KeepOrUniform
from mpc_rr.estimation.moments import NORMAL_95, Moment, Scores, together
from mpc_rr.schema import Attribute

MOST_LINKED = 20_000
"""So many records are looked for among all; of more, evenly spaced ones."""


class ComparedColumn(msgspec.Struct, frozen=True, kw_only=True):
    """One column before and after."""

    name: str
    how: str
    epsilon: float | None
    beta: float | None
    unchanged: float
    """The share of records whose value is as it was."""
    entropy: tuple[float, float] | None = None
    """Of categories, in bits: before, and after."""
    deviation: tuple[float, float] | None = None
    """Of numbers: before, and after."""


class ComparedPair(msgspec.Struct, frozen=True, kw_only=True):
    """Two columns with an order: the truth, the output taken as it is, what the output tells."""

    first: str
    second: str
    covariance: tuple[float, float, float | None]
    covariance_error: float | None
    kept_on_average: float | None
    """What randomizing leaves of the covariance on average: λ₁·λ₂ of kept-or-uniform columns, the
    product of slopes of others, with correlated noise its own added. Null where it is no fixed part
    of it: a randomized column may be missing, or a matrix moves ranks unevenly."""
    kept_here: float | None
    """What is left of it in this file; null unless both covariances are known well enough: the true
    one must be further from 0 than 1.96 standard errors of either."""
    correlation: tuple[float | None, float | None, float | None]
    correlation_error: float | None


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """What was kept and lost."""

    rows: int
    columns: tuple[ComparedColumn, ...]
    pairs: tuple[ComparedPair, ...]
    linked: float | None
    """The share of records that are nearest to their own original, by all numbers together, each
    in units of its standard deviation; null without numbers."""


def compared(codebook: Codebook, before: Codes, after: Codes) -> Comparison:
    """From the records and what became of them, row by row."""
    attributes = codebook.schema
    numbers = [k for k, attribute in enumerate(attributes) if attribute.numeric]
    return Comparison(
        rows=len(before),
        columns=tuple(
            _column(codebook, k, before[:, k], after[:, k]) for k in range(len(attributes))
        ),
        pairs=_pairs(codebook, before, after),
        linked=_linked(before[:, numbers], after[:, numbers]) if numbers else None,
    )


def _column(codebook: Codebook, place: int, before: Codes, after: Codes) -> ComparedColumn:
    column = codebook.columns[place]
    numeric, step = column.attribute.numeric, column.attribute.step or 1.0
    both = (before, after)
    return ComparedColumn(
        name=column.attribute.name,
        how=column.way.brief,
        epsilon=column.epsilon,
        beta=column.beta,
        unchanged=float((before == after).mean()),
        entropy=None if numeric else (_entropy(before), _entropy(after)),
        deviation=tuple(step * float(np.std(v, ddof=1)) for v in both) if numeric else None,  # type: ignore[arg-type]
    )


def _entropy(codes: Codes) -> float:
    shares = np.bincount(codes) / len(codes)
    return float(sum(p * math.log2(1 / p) for p in shares.tolist() if p > 0))


def _values(attribute: Attribute, codes: Codes) -> Codes | Array:
    if not attribute.numeric:
        return codes
    return np.asarray(attribute.number(0) + (attribute.step or 1.0) * codes)


def _plain(attribute: Attribute, codes: Codes) -> Scores:
    """As if nothing had been randomized."""
    if attribute.numeric:
        return Scores.of_numbers(np.asarray(_values(attribute, codes), dtype=np.float64))
    everything_kept = KeepOrUniform(attribute.size, 1.0)
    return Scores.of_categories(codes, everything_kept, ranks_of(attribute))


def _pairs(codebook: Codebook, before: Codes, after: Codes) -> tuple[ComparedPair, ...]:
    ordered = [k for k, a in enumerate(codebook.schema) if a.type != "nominal"]
    attributes = codebook.schema
    truth = {k: _plain(attributes[k], before[:, k]) for k in ordered}
    output = {k: _plain(attributes[k], after[:, k]) for k in ordered}
    told = {
        k: scores_of(codebook, attributes[k].name, _values(attributes[k], after[:, k]))
        for k in ordered
    }
    found = []
    for i, j in itertools.combinations(ordered, 2):
        first, second = attributes[i].name, attributes[j].name
        own, as_it_is = together(truth[i], truth[j]), together(output[i], output[j])
        one, two = told[i], told[j]
        assert one is not None
        assert two is not None
        noise = common_noise(codebook, first, second)
        estimated = together(one, two, noise)
        slopes = slope_of(codebook.columns[i]), slope_of(codebook.columns[j])
        found.append(
            ComparedPair(
                first=first,
                second=second,
                covariance=(
                    own.covariance.value or 0.0,
                    as_it_is.covariance.value or 0.0,
                    estimated.covariance.value,
                ),
                covariance_error=estimated.covariance.standard_error,
                kept_on_average=_on_average(slopes, own.covariance, noise),
                kept_here=_here(own.covariance, as_it_is.covariance),
                correlation=(
                    own.correlation.value,
                    as_it_is.correlation.value,
                    estimated.correlation.value,
                ),
                correlation_error=estimated.correlation.standard_error,
            )
        )
    return tuple(found)


def slope_of(column: ColumnEntry) -> float | None:
    """By how much the expected reported value grows with the true one; None if by no fixed amount.

    A product of two of these is what is left of a covariance on average, because columns are
    randomized independently of each other.
    """
    if isinstance(column.way, OfNumbers):
        return 1.0
    matrix, attribute = column.way.matrix, column.attribute
    if isinstance(matrix, KeepOrUniform) and (matrix.keep == 1 or attribute.missing is None):
        return matrix.keep
    if attribute.missing is not None:
        return None
    expected = matrix.dense() @ np.arange(attribute.size)
    growth = np.diff(expected)
    return float(growth.mean()) if np.allclose(growth, growth[0], rtol=0, atol=1e-9) else None


def _on_average(
    slopes: tuple[float | None, float | None], true: Moment, noise: float
) -> float | None:
    one, two = slopes
    if one is None or two is None:
        return None
    if not noise:
        return one * two
    return one * two + noise / true.value if true.value else None


def _here(true: Moment, after: Moment) -> float | None:
    if true.value is None or after.value is None:
        return None
    errors = (true.standard_error or 0.0, after.standard_error or 0.0)
    return after.value / true.value if abs(true.value) > NORMAL_95 * max(errors) else None


def _linked(before: Codes, after: Codes) -> float | None:
    """Distance-based record linkage; a tie between several is shared among them."""
    from scipy.spatial import cKDTree  # noqa: PLC0415  (slow to start)

    spread = before.std(axis=0)
    vary = spread > 0
    if not vary.any():
        return None
    originals = before[:, vary] / spread[vary]
    wanted = np.unique(np.linspace(0, len(before) - 1, MOST_LINKED).astype(np.int64))
    noisy = after[wanted][:, vary] / spread[vary]
    distinct, which, people = np.unique(originals, axis=0, return_inverse=True, return_counts=True)
    nearest = cKDTree(distinct).query(noisy)[1]
    own = which.reshape(-1)[wanted]
    return float(np.where(nearest == own, 1 / people[own], 0.0).mean())
