"""Means, covariances and correlations of columns, from the randomized columns alone.

A column has scores: a number itself, of ordered categories their ranks. Each reported value v is
given numbers whose mean, whatever the true value u is, is what one wants to know of u. For a matrix
P and a score s these are P⁻¹·s, for a number with noise of mean 0 it is the number. So the mean of
these over all reports is unbiased, products over two columns that are randomized independently of
each other are, too, and nothing is inverted but one column at a time.

`Scores` has them for three things: whether there is an answer at all, its score, and its square.
Means and covariances are of those who answered. Standard errors hold for the population: sampling
and randomization are both in how the reports spread (the delta method, on six means).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mpc_rr.estimation.matrix import Array, Codes, RRMatrix

NORMAL_95 = 1.959963984540054


@dataclass(frozen=True)
class Scores:
    """What one column tells of each record: three numbers of the right mean."""

    answered: Array
    score: Array
    square: Array

    @classmethod
    def of_categories(
        cls, reported: Codes, matrix: RRMatrix, ranks: Sequence[float | None]
    ) -> "Scores":
        """Of ordered categories with these ranks; None: no answer."""
        given = np.array([rank is not None for rank in ranks], dtype=np.float64)
        values = np.array([0.0 if rank is None else rank for rank in ranks])
        undone = [matrix.solve_transposed(wanted) for wanted in (given, values, values**2)]
        return cls(*(wanted[reported] for wanted in undone))

    @classmethod
    def of_numbers(cls, reported: Array, noise: float = 0.0) -> "Scores":
        """Of numbers with noise of mean 0 and this variance."""
        values = np.asarray(reported, dtype=np.float64)
        return cls(np.ones(len(values)), values, values**2 - noise)


@dataclass(frozen=True)
class Moment:
    """An estimate with its standard error; None where the reports leave it open."""

    value: float | None
    standard_error: float | None

    @property
    def limits(self) -> tuple[float, float] | None:
        """95 %, as of a normal distribution."""
        if self.value is None or self.standard_error is None:
            return None
        wide = NORMAL_95 * self.standard_error
        return self.value - wide, self.value + wide


NOT_TOLD = Moment(None, None)


def mean(scores: Scores) -> Moment:
    """Of those who answered."""
    share, total = scores.answered.mean(), scores.score.mean()
    if share <= 0:
        return NOT_TOLD
    found = total / share
    return _moment(found, (scores.score - found * scores.answered) / share)


def variance(scores: Scores) -> Moment:
    """Of those who answered: negative where it cannot be told from randomization."""
    share = scores.answered.mean()
    if share <= 0:
        return NOT_TOLD
    centre = scores.score.mean() / share
    spread = _spread(scores, float(centre))
    found = spread.mean() / share
    return _moment(found, (spread - found * scores.answered) / share)


def _spread(scores: Scores, centre: float) -> Array:
    """(score − centre)² of those who answered, without the bias of squaring what is randomized."""
    return scores.square - 2 * centre * scores.score + centre**2 * scores.answered


@dataclass(frozen=True)
class Together:
    """Two columns: their covariance, and their correlation."""

    covariance: Moment
    correlation: Moment


def together(first: Scores, second: Scores, noise: float = 0.0) -> Together:
    """Of those who answered both; ``noise`` is the covariance of noise that was added to both."""
    both = first.answered * second.answered
    share = float(both.mean())
    if share <= 0:
        return Together(NOT_TOLD, NOT_TOLD)
    one = float((first.score * second.answered).mean()) / share
    two = float((first.answered * second.score).mean()) / share
    x = first.score - one * first.answered
    y = second.score - two * second.answered
    product = x * y - noise
    found = float(product.mean()) / share
    moved = (product - found * both) / share
    covariance = _moment(found, moved)
    spreads = [_spread(first, one) * second.answered, _spread(second, two) * first.answered]
    variances = [float(spread.mean()) / share for spread in spreads]
    if min(variances) <= 0:
        return Together(covariance, NOT_TOLD)
    root = math.sqrt(variances[0] * variances[1])
    influence = moved / root - sum(
        found / root / (2 * own) * (spread - own * both) / share
        for spread, own in zip(spreads, variances, strict=True)
    )
    return Together(covariance, _correlation(found / root, influence))


def _correlation(found: float, influence: Array) -> Moment:
    """Nothing is told if the limits leave every correlation possible."""
    moment = _moment(found, influence)
    low, high = moment.limits or (-1.0, 1.0)
    return NOT_TOLD if low <= -1 and high >= 1 else moment


def _moment(found: float, influence: Array) -> Moment:
    """``influence``: how much each record moves it."""
    count = len(influence)
    error = math.sqrt(float((influence**2).mean()) / max(count - 1, 1))
    return Moment(float(found), error)
