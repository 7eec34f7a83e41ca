"""Estimates are unbiased, their standard errors true, and the repairs what they claim to be."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import minimize
from scipy.stats import chi2

from mpc_rr.errors import InputError
from mpc_rr.estimation.distribution import (
    Estimate,
    absolute_error_bound,
    clip_and_rescale,
    dispersion,
    maximum_likelihood,
    project_to_simplex,
    relative_error_bound,
    relative_error_if_uniform,
    respondents_needed,
    subset_share,
    unbiased,
)
from mpc_rr.estimation.kronecker import Kronecker
from mpc_rr.estimation.matrix import Dense, DistanceWeighted, KeepOrUniform

TRUTH = np.array([0.5, 0.3, 0.15, 0.05])
MATRICES = [
    KeepOrUniform(4, 0.4),
    DistanceWeighted((2, 2), 0.7),
    Dense(0.6 * np.eye(4) + 0.4 * np.array([[0.1, 0.2, 0.3, 0.4]])),
]


def simulated(matrix, truth, n, runs, seed=1):
    rng = np.random.default_rng(seed)
    return rng.multinomial(n, matrix.apply(truth).ravel(), size=runs)


@pytest.mark.parametrize("matrix", MATRICES, ids=repr)
def test_estimates_are_unbiased_and_intervals_cover(matrix):
    """1,000 runs: the mean is within 5 standard errors of the truth; 95 % intervals cover it in
    93 to 97 % of the runs, for every category and for a set of two."""
    n, runs = 4000, 1000
    estimates = [unbiased(counts, matrix) for counts in simulated(matrix, TRUTH, n, runs)]
    shares = np.stack([e.shares for e in estimates])
    errors = np.stack([e.standard_errors for e in estimates])
    assert (abs(shares.mean(axis=0) - TRUTH) < 5 * shares.std(axis=0) / np.sqrt(runs)).all()
    low, high = zip(*(e.interval() for e in estimates), strict=True)
    covered = ((np.stack(low) <= TRUTH) & (np.stack(high) >= TRUTH)).mean(axis=0)
    assert (covered >= 0.93).all(), covered
    assert (covered <= 0.97).all(), covered
    assert errors.mean(axis=0) == pytest.approx(shares.std(axis=0), rel=0.1)

    chosen = np.array([1, 0, 0, 1])
    sums = [subset_share(c, matrix, chosen) for c in simulated(matrix, TRUTH, n, runs)]
    covered = np.mean([abs(s - 0.55) <= 1.96 * e for s, e in sums])
    assert 0.93 <= covered <= 0.97


def test_a_kronecker_design_covers_too():
    design = Kronecker([KeepOrUniform(2, 0.5), KeepOrUniform(2, 0.6)])
    truth = TRUTH.reshape(2, 2)
    hits = []
    for counts in simulated(design, truth, 4000, 1000):
        low, high = unbiased(counts.reshape(2, 2), design).interval()
        hits.append((low <= truth) & (truth <= high))
    covered = np.mean(hits, axis=0)
    assert ((covered >= 0.93) & (covered <= 0.97)).all()


@pytest.mark.parametrize("matrix", MATRICES, ids=repr)
def test_standard_errors_are_the_diagonal_of_the_dispersion(matrix):
    counts = simulated(matrix, TRUTH, 500, 1)[0]
    whole = dispersion(counts, matrix)
    np.testing.assert_allclose(
        np.sqrt(np.diag(whole)), unbiased(counts, matrix).standard_errors, rtol=1e-8
    )
    chosen = np.array([1, 1, 0, 0])
    assert subset_share(counts, matrix, chosen)[1] == pytest.approx(
        float(np.sqrt(chosen @ whole @ chosen))
    )


vectors = arrays(np.float64, st.integers(2, 8), elements=st.floats(-2, 2))


@given(vectors)
def test_the_projection_is_the_nearest_distribution(vector):
    projected = project_to_simplex(vector)
    assert projected.min() >= 0
    assert projected.sum() == pytest.approx(1)
    # Optimality: the residual is constant where the projection is positive, larger elsewhere.
    residual = vector - projected
    threshold = residual[projected > 0]
    assert np.ptp(threshold) < 1e-9
    assert (residual[projected == 0] <= threshold.max() + 1e-9).all()


@given(vectors, st.floats(0, 0.99), st.integers(0, 999))
def test_the_projection_solves_equation_7_of_the_block_paper_for_every_gamma(vector, gamma, seed):
    """Of estimates that add up to 1, as Eq. 4's do. The problem is convex, so nothing near is less.

    γ·‖T − t‖₁ + (1 − γ)·‖T − t‖² over all distributions t.
    """
    raw = vector - vector.mean() + 1 / len(vector)
    best = project_to_simplex(raw)

    def objective(table):
        return gamma * np.abs(raw - table).sum() + (1 - gamma) * ((raw - table) ** 2).sum()

    others = np.random.default_rng(seed).dirichlet(np.full(len(vector), 0.3), size=20)
    for other in (*others, *np.eye(len(vector))):
        for step in (1.0, 1e-3):
            assert objective(best) <= objective(best + step * (other - best)) + 1e-12


def test_clipping_is_not_the_projection():
    """Section 6.4 of the paper describes clipping and calls it the nearest distribution."""
    raw = np.array([0.7, 0.5, -0.2])
    clipped, projected = clip_and_rescale(raw), project_to_simplex(raw)
    assert clipped == pytest.approx([7 / 12, 5 / 12, 0])
    assert projected == pytest.approx([0.6, 0.4, 0])
    assert ((raw - projected) ** 2).sum() < ((raw - clipped) ** 2).sum()


@pytest.mark.parametrize("matrix", MATRICES, ids=repr)
def test_maximum_likelihood_is_the_maximum(matrix):
    counts = np.array([40, 25, 5, 30])
    fit = maximum_likelihood(counts, matrix)
    assert fit.converged

    def loss(x):
        share = np.exp(x) / np.exp(x).sum()
        return -(counts * np.log(matrix.apply(share))).sum()

    best = minimize(loss, np.zeros(4), tol=1e-12)
    ours = -(counts * np.log(matrix.apply(fit.shares))).sum()
    assert ours <= best.fun + 1e-6


def test_maximum_likelihood_is_the_inversion_where_that_is_proper():
    matrix = KeepOrUniform(4, 0.6)
    counts = 1000 * matrix.apply(TRUTH)
    fit = maximum_likelihood(counts, matrix)
    np.testing.assert_allclose(fit.shares, TRUTH, atol=1e-6)


def test_too_few_iterations_are_reported():
    fit = maximum_likelihood([9, 1, 5], KeepOrUniform(3, 0.1), most_iterations=2)
    assert not fit.converged
    assert fit.change > 0
    assert fit.shares.sum() == pytest.approx(1)


def test_error_bounds_of_the_paper():
    shares = np.array([0.2, 0.3, 0.5])
    b = chi2.isf(0.05 / 3, 1)
    assert absolute_error_bound(shares, 100) == pytest.approx(np.sqrt(b * 0.25 / 100))
    assert relative_error_bound(shares, 100) == pytest.approx(np.sqrt(b * 4 / 100))
    assert relative_error_bound(np.array([0.0, 1.0]), 100) == np.inf
    assert relative_error_if_uniform(10, 1000) == pytest.approx(
        relative_error_bound(np.full(10, 0.1), 1000)
    )


@given(st.integers(2, 1000), st.floats(0.01, 2))
def test_the_needed_number_of_respondents_is_the_smallest(categories, error):
    n = respondents_needed(categories, error)
    assert relative_error_if_uniform(categories, n) <= error * (1 + 1e-9)
    if n > 1:
        assert relative_error_if_uniform(categories, n - 1) >= error * (1 - 1e-9)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: unbiased([0, 0], KeepOrUniform(2, 0.5)), "no reported answers"),
        (lambda: unbiased([1, np.nan], KeepOrUniform(2, 0.5)), "NaN"),
        (lambda: unbiased([1, -1], KeepOrUniform(2, 0.5)), "negative"),
        (lambda: clip_and_rescale(np.array([-1.0, 0])), "nothing to rescale"),
        (lambda: Estimate(TRUTH, TRUTH, 4).interval(1.5), "confidence level"),
        (lambda: absolute_error_bound(TRUTH, 10, alpha=0), "alpha"),
        (lambda: respondents_needed(3, 0), "must be positive"),
    ],
)
def test_bad_input_is_told(call, says):
    with pytest.raises(InputError, match=says):
        call()


def test_counts_are_shares_times_n():
    np.testing.assert_allclose(Estimate(TRUTH, TRUTH, 20).counts, [10, 6, 3, 1])


@pytest.mark.parametrize("counts", [[1, 0, 0], [5, 0, 0]])
def test_unanimous_answers_are_not_certain(counts):
    estimate = unbiased(counts, KeepOrUniform(3, 0.5))
    assert (estimate.standard_errors > 0.1).all()


@pytest.mark.parametrize(
    "call",
    [
        lambda: unbiased([10, 20, 30], KeepOrUniform(4, 0.5)),
        lambda: unbiased([[1, 2, 3], [4, 5, 6]], KeepOrUniform(6, 0.5)),
        lambda: maximum_likelihood([10, 20, 30], KeepOrUniform(4, 0.5)),
        lambda: subset_share([1, 2, 3], KeepOrUniform(3, 0.5), [1]),
        lambda: project_to_simplex(np.array([np.nan, 0.5])),
        lambda: project_to_simplex(np.array([])),
        lambda: clip_and_rescale(np.array([np.nan, 0.5])),
    ],
)
def test_tables_that_do_not_fit_are_told(call):
    with pytest.raises(InputError):
        call()


def test_covariances_of_too_many_shares_are_refused():
    with pytest.raises(InputError, match="too many"):
        dispersion(np.ones(200_000), KeepOrUniform(200_000, 0.5))
