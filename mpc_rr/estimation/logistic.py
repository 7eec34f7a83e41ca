"""Logistic regression by maximum likelihood, where outcome and predictors are randomized.

The true answers are latent: π(x, y) = q(x)·P(y | x; β), and the reports have the distribution Pᵀπ.
Coefficients and the distribution q of the predictors, which is left free, are found together. Where
only the outcome is randomized this is the Warner-logistic model (Scheers and Dayton 1988), whose
likelihood does not depend on q; randomized predictors make a latent-class model, summed over the
true categories. Cells of people who are not meant (no answer, another group) have free shares.

Errors follow from the expected information of all parameters; of the coefficients for the
respondents alone, from that less what full knowledge of them would have left uncertain.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit

from mpc_rr.estimation.blocks import Answered
from mpc_rr.estimation.distribution import Randomization, project_to_simplex
from mpc_rr.estimation.joint import Joint
from mpc_rr.estimation.matrix import Array, Codes
from mpc_rr.estimation.statistics import Regression, people_inside, with_spreads
from mpc_rr.estimation.uncertainty import (
    BlockAnswers,
    ExactCounts,
    RandomizedReports,
    Target,
    WeightedReports,
)

MOST_PARAMETERS = 1_500
START = 0.02
"""So much of the start is uniform: every distribution can be reached from it."""
GONE = 1e-9
FLAT = 1e-9
LARGEST = 30.0
"""A coefficient that makes a predictor's standard deviation count for more has no end."""
FIRST_STEPS = 20
POLISHING = 30


class Likelihood(ABC):
    """Reports whose distribution is linear in the shares of the true cells."""

    counts: Array
    squares: Array
    """Σ w² of the reports of each kind; with equal weights, the counts."""

    @abstractmethod
    def expected(self, shares: Array) -> Array:
        """The distribution of the reports (several tables along the first axis)."""

    @abstractmethod
    def transposed(self, values: Array) -> Array:
        """The transpose of `expected`."""


@dataclass(frozen=True)
class _ByMatrix(Likelihood):
    counts: Array
    squares: Array
    matrix: Randomization | None
    """None: nothing is randomized."""

    def expected(self, shares: Array) -> Array:
        if self.matrix is None:
            return shares
        shape = tuple(self.matrix.shape)
        if shares.ndim == 1:
            return self.matrix.apply(shares.reshape(shape)).ravel()
        return np.stack([self.matrix.apply(row.reshape(shape)).ravel() for row in shares])

    def transposed(self, values: Array) -> Array:
        if self.matrix is None:
            return values
        return self.matrix.apply_transposed(values.reshape(tuple(self.matrix.shape))).ravel()


class _ByBlocks(Likelihood):
    def __init__(self, answered: Answered) -> None:
        seen = answered.counts.sum(axis=1) > 0
        counts = answered.counts[seen].astype(np.float64)
        self._p, self._parts = answered.p, counts.sum(axis=1) / counts.sum()
        self._others = (1 - answered.p) * answered.tables[seen]
        self.counts = self.squares = counts.ravel()

    def expected(self, shares: Array) -> Array:
        whole = shares.sum(axis=-1)[..., np.newaxis, np.newaxis]
        told = self._p * shares[..., np.newaxis, :] + self._others * whole
        return np.asarray((told * self._parts[:, np.newaxis]).reshape(*shares.shape[:-1], -1))

    def transposed(self, values: Array) -> Array:
        rows = values.reshape(self._others.shape) * self._parts[:, np.newaxis]
        return np.asarray(self._p * rows.sum(axis=0) + float((rows * self._others).sum()))


def likelihood_of(joint: Joint) -> Likelihood | None:
    """How probable the reports behind a table are; None where that is not known in full."""
    uncertainty = joint.uncertainty
    match uncertainty:
        case WeightedReports():
            return _ByMatrix(uncertainty.weights, uncertainty.squares, uncertainty.matrix)
        case RandomizedReports():
            counts = uncertainty.n * uncertainty.matrix.apply(
                joint.shares.reshape(tuple(uncertainty.matrix.shape))
            )
            return _ByMatrix(counts.ravel(), counts.ravel(), uncertainty.matrix)
        case ExactCounts():
            counts = uncertainty.n * joint.shares
            return _ByMatrix(counts, counts, None)
        case BlockAnswers():
            return _ByBlocks(uncertainty.answered)
    return None


@dataclass(frozen=True)
class _Cells:
    """Which cells of the table belong together."""

    group: Codes
    """Of each cell, the combination of predictors (people who are not meant: a cell each)."""
    side: Codes
    """Of each cell, the group and the outcome together."""
    outcome: Array
    meant: Array
    design: Array
    """Of each group, a column."""

    @classmethod
    def of(cls, inside: Array, design: Array, outcome: Array) -> "_Cells":
        keys = np.where(inside > 0, design, 0.0)
        alone = np.where(inside > 0, 0, 1 + np.arange(inside.size))
        _, first, group = np.unique(
            np.vstack([keys, alone]), axis=1, return_index=True, return_inverse=True
        )
        group = group.reshape(-1)
        return cls(group, 2 * group + (outcome > 0), outcome, inside[first], keys[:, first])

    @property
    def groups(self) -> int:
        return int(self.design.shape[1])

    def of_group(self, values: Array) -> Array:
        found = np.bincount(self.group, weights=values, minlength=self.groups)
        return found.astype(np.float64)

    def of_side(self, values: Array) -> Array:
        found = np.bincount(self.side, weights=values, minlength=2 * self.groups)
        return found.astype(np.float64)


class _Model:
    """π as a function of coefficients, weights of groups, and weights of cells within a side."""

    def __init__(self, cells: _Cells) -> None:
        self.cells, self.k = cells, len(cells.design)

    def parts(self, parameters: Array) -> tuple[Array, Array, Array]:
        """q of each group; P(y = 1) of each group; each cell's part of its side."""
        cells, k = self.cells, self.k
        weights = np.exp(parameters[k : k + cells.groups] - parameters[k : k + cells.groups].max())
        own = np.exp(np.clip(parameters[k + cells.groups :], -700, 700))
        inner = own / cells.of_side(own)[cells.side]
        return weights / weights.sum(), expit(parameters[:k] @ cells.design), inner

    def shares(self, parameters: Array) -> Array:
        q, chance, inner = self.parts(parameters)
        cells = self.cells
        told = np.where(cells.outcome > 0, chance[cells.group], 1 - chance[cells.group])
        return np.asarray(q[cells.group] * np.where(cells.meant[cells.group] > 0, told, 1) * inner)

    def gradient(self, parameters: Array, slope: Array) -> Array:
        """From the slope of a function of π to its slope by the parameters."""
        q, chance, inner = self.parts(parameters)
        cells, moved = self.cells, self.shares(parameters) * slope
        by_group, by_side = cells.of_group(moved), cells.of_side(moved)
        sides = by_side.reshape(-1, 2)
        predictor = cells.meant * (sides[:, 1] * (1 - chance) - sides[:, 0] * chance)
        return np.concatenate([
            cells.design @ predictor, by_group - q * by_group.sum(),
            moved - inner * by_side[cells.side],
        ])  # fmt: skip

    def derivatives(self, parameters: Array) -> tuple[Array, Codes]:
        """The derivatives of π by the parameters that are not redundant, and which these are."""
        q, chance, inner = self.parts(parameters)
        cells, shares, k = self.cells, self.shares(parameters), self.k
        error = cells.meant[cells.group] * (cells.outcome - chance[cells.group])
        by_coefficient = shares * error * cells.design[:, cells.group]
        there = np.flatnonzero(q > GONE)
        there = there[there != np.argmax(q)]
        by_group = shares * ((cells.group == there[:, np.newaxis]) - q[there, np.newaxis])
        largest = np.zeros(2 * cells.groups)
        np.maximum.at(largest, cells.side, shares)
        some = np.flatnonzero((shares > GONE) & (shares < largest[cells.side]))
        same = cells.side == cells.side[some, np.newaxis]
        at = np.arange(shares.size) == some[:, np.newaxis]
        by_cell = shares * (at - same * inner[some, np.newaxis])
        which = np.concatenate([np.arange(k), k + there, k + cells.groups + some])
        return np.vstack([by_coefficient, by_group, by_cell]), which


def logistic(
    joint: Joint, inside: Array, design: Array, outcome: Array, level: float
) -> Regression | None:
    """Coefficients by maximum likelihood; None where the reports do not hold them within bounds.

    `likelihood_of` the table must be known. ``design``: a row for each predictor, among them ones.
    """
    likelihood = likelihood_of(joint)
    assert likelihood is not None
    scale = _scale(joint, inside, design)
    cells = _Cells.of(inside, scale @ design, outcome)
    model = _Model(cells)
    found = _most_likely(model, likelihood, _start(model, likelihood, joint))
    if abs(found[1 : model.k]).max(initial=0.0) > LARGEST:
        return None
    spreads = _spreads(model, likelihood, found, joint)
    if spreads is None:
        return None
    coefficients = scale.T @ found[: model.k]
    turned: dict[Target, Array] = {of: scale.T @ spreads[of] @ scale for of in spreads}
    told = with_spreads(coefficients, turned, people_inside(joint, inside), level)
    shares = model.shares(found)
    if not _is_told(joint, inside, outcome):
        return told
    return Regression(told.coefficients, _log_likelihood(likelihood, joint, shares, outcome))


def _scale(joint: Joint, inside: Array, design: Array) -> Array:
    """Makes predictors comparable: each less its mean, by its standard deviation."""
    weights = inside * project_to_simplex(joint.shares)
    weights = weights / max(float(weights.sum()), GONE)
    found = np.eye(len(design))
    for k in range(1, len(design)):
        centre = float(weights @ design[k])
        deviation = float(np.sqrt(max(weights @ (design[k] - centre) ** 2, 0.0))) or 1.0
        found[k, k], found[k, 0] = 1 / deviation, -centre / deviation
    return found


def _start(model: _Model, likelihood: Likelihood, joint: Joint) -> Array:
    cells = model.cells
    shares = (1 - START) * project_to_simplex(joint.shares) + START / joint.estimate.size
    counts = likelihood.counts / likelihood.counts.sum()
    for _ in range(FIRST_STEPS):  # of expectation maximization, without a model
        expected = np.maximum(likelihood.expected(shares), 1e-300)
        shares = np.maximum(shares * likelihood.transposed(counts / expected), GONE**2)
        shares /= shares.sum()
    groups = cells.of_group(shares)
    rate = float((shares * cells.outcome * cells.meant[cells.group]).sum()) / max(
        float((shares * cells.meant[cells.group]).sum()), GONE
    )
    rate = min(max(rate, START), 1 - START)
    first = np.zeros(model.k)
    first[0] = np.log(rate / (1 - rate))
    return np.concatenate([first, np.log(groups), np.log(shares)])


def _most_likely(model: _Model, likelihood: Likelihood, start: Array) -> Array:
    """By L-BFGS, then by scoring until nothing moves."""
    from scipy.optimize import minimize  # noqa: PLC0415  (slow to start)

    counts = likelihood.counts / likelihood.counts.sum()
    seen = counts > 0

    def loss(parameters: Any) -> float:
        expected = np.maximum(likelihood.expected(model.shares(parameters)), 1e-300)
        return -float((counts[seen] * np.log(expected[seen])).sum())

    def slope(parameters: Any) -> Array:
        expected = np.maximum(likelihood.expected(model.shares(parameters)), 1e-300)
        return -model.gradient(parameters, likelihood.transposed(counts / expected))

    found = minimize(
        loss,
        start.ravel(),
        jac=slope,
        method="L-BFGS-B",
        options={"maxiter": 2000, "ftol": 1e-12, "gtol": 1e-7, "maxcor": 30},
    )
    return _polished(model, likelihood, np.asarray(found.x), loss)


def _polished(
    model: _Model, likelihood: Likelihood, parameters: Array, loss: Callable[[Array], float]
) -> Array:
    """Steps of scoring, each as long as it helps."""
    counts = likelihood.counts / likelihood.counts.sum()
    for _ in range(POLISHING):
        derivatives, which = model.derivatives(parameters)
        if len(derivatives) > MOST_PARAMETERS:
            break
        expected = np.maximum(likelihood.expected(model.shares(parameters)), 1e-300)
        moved = likelihood.expected(derivatives)
        information = (moved / expected) @ moved.T
        step = np.zeros_like(parameters)
        found = np.linalg.lstsq(information, moved @ (counts / expected), rcond=FLAT)[0]
        step[which] = np.clip(found, -2.0, 2.0)
        length = 1.0
        while length > FLAT and loss(parameters + length * step) > loss(parameters):
            length /= 2
        if length <= FLAT:
            break
        parameters = parameters + length * step
        if float(abs(step[: model.k]).max()) < FLAT:
            break
    return parameters


def _spreads(
    model: _Model, likelihood: Likelihood, parameters: Array, joint: Joint
) -> dict[Target, Array] | None:
    """The covariance of the coefficients; None where the information has a hole."""
    derivatives, _ = model.derivatives(parameters)
    if len(derivatives) > MOST_PARAMETERS:
        return None
    total, k = float(likelihood.counts.sum()), model.k
    expected = np.maximum(likelihood.expected(model.shares(parameters)), 1e-300)
    moved = likelihood.expected(derivatives)
    information = (moved / expected) @ moved.T
    of_rest = np.linalg.pinv(information[k:, k:], rcond=FLAT, hermitian=True)
    across = information[:k, k:] @ of_rest
    efficient = information[:k, :k] - across @ information[k:, :k]
    if np.linalg.eigvalsh(efficient)[0] <= FLAT:
        return None
    inverse = np.linalg.inv(efficient)
    scores = (moved[:k] - across @ moved[k:]) / expected
    meat = (scores * likelihood.squares) @ scores.T / total**2
    weighted = isinstance(joint.uncertainty, WeightedReports)
    population = np.asarray(
        inverse @ meat @ inverse if weighted else inverse / total, dtype=np.float64
    )
    known = _known_fully(model, parameters) / total
    return {"population": population, "respondents": population - known}


def _known_fully(model: _Model, parameters: Array) -> Array:
    """The covariance of coefficients of one person whose answers are known."""
    q, chance, _ = model.parts(parameters)
    weights = model.cells.meant * q * chance * (1 - chance)
    return np.asarray(np.linalg.inv((model.cells.design * weights) @ model.cells.design.T))


def _is_told(joint: Joint, inside: Array, outcome: Array) -> bool:
    """Whether the outcome is an axis of its own in the reports, and everybody is meant."""
    matrix = getattr(joint.uncertainty, "matrix", None)
    apart = joint.exact or (matrix is not None and tuple(matrix.shape) == joint.estimate.shape)
    return bool(apart and inside.all()) and len(_axes_of(joint, outcome)) == 1


def _axes_of(joint: Joint, values: Array) -> list[int]:
    """The axes along which something changes."""
    table = values.reshape(joint.estimate.shape)
    return [k for k in range(table.ndim) if (np.ptp(table, axis=k) > 0).any()]


def _log_likelihood(likelihood: Likelihood, joint: Joint, shares: Array, outcome: Array) -> float:
    """Of the reported outcomes, given the reported predictors."""
    (axis,) = _axes_of(joint, outcome)
    shape = joint.estimate.shape
    expected = np.maximum(likelihood.expected(shares).reshape(shape), 1e-300)
    given = expected / expected.sum(axis=axis, keepdims=True)
    return float((likelihood.counts.reshape(shape) * np.log(given)).sum())
