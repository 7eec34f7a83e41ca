"""Logistic regression on randomized answers, against likelihoods that are written out here."""

import math

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, logsumexp

from mpc_rr.estimation.blocks import Answered
from mpc_rr.estimation.joint import Joint
from mpc_rr.estimation.kronecker import Kronecker
from mpc_rr.estimation.logistic import logistic
from mpc_rr.estimation.matrix import KeepOrUniform
from mpc_rr.estimation.statistics import design_of, linear, logistic_by_sums
from mpc_rr.estimation.uncertainty import (
    BlockAnswers,
    ExactCounts,
    RandomizedReports,
    WeightedReports,
)

SIZES = (2, 3, 4)
Y, A, B = (np.indices(SIZES).reshape(3, -1).astype(float)[k] for k in range(3))
ALL = np.ones(Y.size)
TRUE = np.array([-1.0, 0.8, -0.4])
DESIGN = design_of([A, B])


def population(beta=TRUE):
    """The joint distribution of outcome and two predictors."""
    q = np.array([[4, 3, 2, 1], [3, 3, 3, 1], [1, 2, 3, 4]], float).ravel()
    a, b = np.indices((3, 4)).reshape(2, -1)
    chance = expit(beta[0] + beta[1] * a + beta[2] * b)
    return (np.stack([1 - chance, chance]) * q / q.sum()).ravel()


def matrices(keeps):
    return Kronecker([KeepOrUniform(s, k) for s, k in zip(SIZES, keeps, strict=True)])


def told(counts, keeps):
    n, matrix = counts.sum(), matrices(keeps)
    shares = matrix.solve(counts.reshape(SIZES) / n)
    return Joint((0, 1, 2), shares, RandomizedReports(n, matrix))


def drawn(n, keeps, seed, beta=TRUE):
    reported = matrices(keeps).apply(population(beta).reshape(SIZES)).ravel()
    return np.random.default_rng(seed).multinomial(n, reported).astype(float)


def dense(keeps):
    """How each true cell is reported, written out."""
    found = np.ones((1, 1))
    for size, keep in zip(SIZES, keeps, strict=True):
        found = np.kron(found, keep * np.eye(size) + (1 - keep) / size)
    return found


def by_hand(counts, keeps):
    """Coefficients, errors and log-likelihood, by the likelihood of all 24 cells written out."""
    transposed = dense(keeps).T
    places = np.arange(Y.size) % 12

    def expected(p):
        eta = p[0] + p[1] * A + p[2] * B
        truth = np.exp(p[3:] - logsumexp(p[3:]))[places] * np.where(Y > 0, expit(eta), expit(-eta))
        return transposed @ truth

    def loss(p):
        return -(counts @ np.log(expected(p))) / counts.sum()

    start = np.concatenate([[0.0, 0, 0], np.zeros(12)])
    found = minimize(loss, start, method="BFGS", options={"gtol": 1e-9, "maxiter": 5000}).x
    step, free = 1e-4, [0, 1, 2, *range(4, 15)]  # one of the twelve weights is redundant
    hessian = np.empty((14, 14))
    for i, k in enumerate(free):
        for j, m in enumerate(free):
            moved = np.zeros((2, 15))
            moved[0, k], moved[1, m] = step, step
            hessian[i, j] = (
                loss(found + moved[0] + moved[1]) - loss(found + moved[0] - moved[1])
                - loss(found - moved[0] + moved[1]) + loss(found - moved[0] - moved[1])
            ) / (4 * step**2)  # fmt: skip
    errors = np.sqrt(np.diag(np.linalg.inv(hessian))[:3] / counts.sum())
    cells = expected(found).reshape(2, 12)
    given = np.log(cells / cells.sum(axis=0)).ravel()
    return found[:3], errors, counts @ given


@pytest.mark.parametrize("keeps", [(0.6, 1, 1), (1, 0.7, 0.7), (0.7, 0.8, 0.6)], ids=str)
def test_coefficients_errors_and_likelihood_are_those_of_a_likelihood_written_out(keeps):
    counts = drawn(5000, keeps, 1)
    found = logistic(told(counts, keeps), ALL, DESIGN, Y, 0.95)
    wanted, errors, likelihood = by_hand(counts, keeps)
    assert [one.value for one in found.coefficients] == pytest.approx(wanted, abs=2e-4)
    mine = [one.standard_error for one in found.coefficients]
    assert mine == pytest.approx(errors, rel=0.05)  # expected information there, observed here
    assert found.log_likelihood == pytest.approx(likelihood, abs=1e-3)


def newton(counts):
    """Ordinary logistic regression of grouped records."""
    beta = np.zeros(3)
    for _ in range(50):
        chance = expit(beta @ DESIGN)
        information = (DESIGN * (counts * chance * (1 - chance))) @ DESIGN.T
        beta = beta + np.linalg.solve(information, DESIGN @ (counts * (Y - chance)))
    return beta, np.sqrt(np.diag(np.linalg.inv(information)))


@pytest.mark.parametrize("way", ["counted", "keep nearly 1", "by sums", "blocks"])
def test_where_nothing_is_randomized_it_is_ordinary_logistic_regression(way):
    counts = drawn(1500, (1, 1, 1), 2)
    n = counts.sum()
    shares = (counts / n).reshape(SIZES)
    blocks = BlockAnswers(
        n, Answered(1 - 1e-9, np.full((1, 24), 1 / 24), counts[np.newaxis].astype(int))
    )
    joint = {
        "counted": Joint((0, 1, 2), shares, ExactCounts(n)),
        "by sums": Joint((0, 1, 2), shares, ExactCounts(n)),
        "keep nearly 1": told(counts, (1 - 1e-9,) * 3),
        "blocks": Joint((0, 1, 2), shares, blocks),
    }[way]
    fit = logistic_by_sums if way == "by sums" else logistic
    found = fit(joint, ALL, DESIGN, Y, 0.95)
    beta, errors = newton(counts)
    assert [one.value for one in found.coefficients] == pytest.approx(beta, abs=1e-5)
    tolerance = 0.08 if way == "by sums" else 1e-3  # which has robust errors
    assert [o.standard_error for o in found.coefficients] == pytest.approx(errors, rel=tolerance)
    for one in found.coefficients:
        assert one.respondents == pytest.approx((one.value, one.value), abs=1e-3)


def test_the_same_as_statsmodels():
    models = pytest.importorskip("statsmodels.api")
    counts = drawn(1500, (1, 1, 1), 3)
    rows = np.repeat(np.arange(24), counts.astype(int))
    wanted = models.Logit(Y[rows], DESIGN[:, rows].T).fit(disp=0)
    joint = Joint((0, 1, 2), (counts / 1500).reshape(SIZES), ExactCounts(1500))
    found = logistic(joint, ALL, DESIGN, Y, 0.95)
    assert [one.value for one in found.coefficients] == pytest.approx(wanted.params, abs=1e-6)
    assert [o.standard_error for o in found.coefficients] == pytest.approx(wanted.bse, rel=1e-5)
    assert found.log_likelihood == pytest.approx(wanted.llf, abs=1e-6)


def test_only_some_people_are_meant():
    """Without those of one category of a predictor, whose cells are free."""
    counts = drawn(20_000, (1, 1, 1), 4)
    inside = (A < 2) * 1.0
    found = logistic(told(counts, (1 - 1e-9,) * 3), inside, DESIGN, Y, 0.95)
    beta, errors = newton(counts * inside)
    assert [one.value for one in found.coefficients] == pytest.approx(beta, abs=1e-4)
    assert [o.standard_error for o in found.coefficients] == pytest.approx(errors, rel=1e-3)
    assert found.coefficients[0].people == pytest.approx(counts @ inside)
    assert found.log_likelihood is None


def test_weights_count_as_so_many_people_with_larger_errors():
    """Weights that are whole numbers give the coefficients of people who are there so often."""
    keeps = (0.7, 0.8, 0.8)
    counts = [drawn(3000, keeps, 7), drawn(1000, keeps, 8)]
    matrix, weights, squares = matrices(keeps), counts[0] + 3 * counts[1], counts[0] + 9 * counts[1]
    shares = matrix.solve((weights / weights.sum()).reshape(SIZES))
    joint = Joint((0, 1, 2), shares, WeightedReports(4000, matrix, weights, squares))
    found = logistic(joint, ALL, DESIGN, Y, 0.95).coefficients
    often = logistic(told(weights, keeps), ALL, DESIGN, Y, 0.95).coefficients
    assert [o.value for o in found] == pytest.approx([o.value for o in often], abs=1e-6)
    effective = weights.sum() ** 2 / squares.sum()
    for one, other in zip(found, often, strict=True):
        wanted = other.standard_error * math.sqrt(weights.sum() / effective)
        assert one.standard_error == pytest.approx(wanted, rel=0.1)


def test_what_reports_do_not_hold_within_bounds_is_not_told():
    """Everybody with a = 2 meets it and nobody else: the slope has no end."""
    counts = np.where((A == 2) == Y, 50.0, 0.0)
    joint = Joint((0, 1, 2), (counts / counts.sum()).reshape(SIZES), ExactCounts(counts.sum()))
    assert logistic(joint, ALL, DESIGN, Y, 0.95) is None


SEEDS = 100


@pytest.mark.sweep
@pytest.mark.parametrize("epsilon", [1, 2, 4])
@pytest.mark.parametrize("which", ["outcome", "all three"])
def test_slopes_are_unbiased_and_limits_hold(which, epsilon):
    """Outcome by Warner at this ε (all three answers, each at it). Over 100 draws of 8,000 the mean
    slope is within 5 % of itself and five standard errors of the truth; limits of .95 hold in .87
    (once in 600). Over 300 draws, which took four minutes, each held in more than .91."""
    keeps = tuple(
        KeepOrUniform.from_epsilon(size, epsilon).keep
        if which != "outcome" or k == 0
        else 1 - 1e-12
        for k, size in enumerate(SIZES)
    )
    found = []
    for seed in range(SEEDS):
        one = logistic(told(drawn(8000, keeps, seed), keeps), ALL, DESIGN, Y, 0.95)
        if one is not None:
            found.append(one.coefficients)
    assert len(found) > 0.97 * SEEDS
    for k, truth in enumerate(TRUE):
        values = np.array([one[k].value for one in found])
        error = values.std() / math.sqrt(len(values))
        assert abs(values.mean() - truth) < 5 * error + 0.05 * abs(truth)
        held = [one[k].population[0] <= truth <= one[k].population[1] for one in found]
        assert np.mean(held) > 0.87


@pytest.mark.sweep
@pytest.mark.parametrize("epsilon", [1, 2, 4])
def test_slopes_of_least_squares_are_unbiased_and_limits_hold(epsilon):
    """Of the last attribute on the two others; all three randomized at this ε."""
    keeps = tuple(KeepOrUniform.from_epsilon(size, epsilon).keep for size in SIZES)
    design, shares = design_of([Y, A]), population()
    truth = np.linalg.solve((design * shares) @ design.T, design @ (shares * B))
    found = [
        linear(told(drawn(20_000, keeps, s), keeps), ALL, design, B, 0.95) for s in range(SEEDS)
    ]
    found = [one.coefficients for one in found if one is not None]
    assert len(found) > (0.9 if epsilon == 1 else 0.99) * SEEDS
    for k, wanted in enumerate(truth):
        values = np.array([one[k].value for one in found])
        error = values.std() / math.sqrt(len(values))
        assert abs(values.mean() - wanted) < 5 * error + 0.05 * abs(wanted)
        held = [one[k].population[0] <= wanted <= one[k].population[1] for one in found]
        assert np.mean(held) > 0.87
