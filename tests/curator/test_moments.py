"""Means and covariances from randomized columns: unbiased, and as uncertain as they say."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from mpc_rr.estimation.matrix import Dense, KeepOrUniform
from mpc_rr.estimation.moments import Scores, mean, together, variance
from mpc_rr.randomness import SeededRandomness


@given(st.integers(2, 5), st.floats(0.1, 1), st.integers(0, 2**32))
def test_scores_have_the_right_mean_whatever_is_true(size, keep, seed):
    """Exactly, over all that can be reported: also of a matrix that is not symmetric."""
    rng = np.random.default_rng(seed)
    rows = keep * np.eye(size) + (1 - keep) * rng.dirichlet(np.ones(size), size)
    for matrix in (KeepOrUniform(size, keep), Dense(rows)):
        if matrix.condition > 1e6:
            continue
        ranks = [*map(float, range(size - 1)), None]
        scores = Scores.of_categories(np.arange(size), matrix, ranks)
        truth = np.array([*range(size - 1), 0.0])
        answered = np.array([1.0] * (size - 1) + [0.0])
        np.testing.assert_allclose(matrix.dense() @ scores.answered, answered, atol=1e-8)
        np.testing.assert_allclose(matrix.dense() @ scores.score, truth, atol=1e-8)
        np.testing.assert_allclose(matrix.dense() @ scores.square, truth**2, atol=1e-8)


def test_without_randomization_they_are_those_of_numpy():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 500))
    y = y + x
    both = together(Scores.of_numbers(x), Scores.of_numbers(y))
    assert both.covariance.value == pytest.approx(np.cov(x, y, ddof=0)[0, 1])
    assert both.correlation.value == pytest.approx(np.corrcoef(x, y)[0, 1])
    assert mean(Scores.of_numbers(x)).standard_error == pytest.approx(x.std(ddof=1) / 500**0.5)
    assert variance(Scores.of_numbers(x)).value == pytest.approx(x.var())


def test_who_gave_no_answer_has_no_rank():
    """Among those who answered both questions, as numpy counts them."""
    rng = np.random.default_rng(1)
    first = rng.integers(0, 3, 400)
    second = np.where(rng.random(400) < 0.2, 3, np.clip(first + rng.integers(-1, 2, 400), 0, 2))
    told = second < 3
    whole = KeepOrUniform(4, 1.0)
    both = together(
        Scores.of_categories(first, KeepOrUniform(3, 1.0), [0.0, 1.0, 2.0]),
        Scores.of_categories(second, whole, [0.0, 1.0, 2.0, None]),
    )
    assert both.covariance.value == pytest.approx(np.cov(first[told], second[told], ddof=0)[0, 1])
    assert both.correlation.value == pytest.approx(np.corrcoef(first[told], second[told])[0, 1])


def drawn(seed):
    """A rank that is randomized, with some who gave no answer, and a number with noise."""
    rng, source = np.random.default_rng(seed), SeededRandomness(seed)
    hidden = rng.normal(size=2000)
    rank = np.digitize(hidden + rng.normal(size=2000) / 2, [-0.7, 0.2, 1.0])
    rank[rng.random(2000) < 0.1] = 4
    matrix = KeepOrUniform(5, 0.5)
    ranks = [0.0, 1.0, 2.0, 3.0, None]
    scores = Scores.of_categories(matrix.randomize(rank, source), matrix, ranks)
    noisy = Scores.of_numbers(hidden + rng.laplace(size=2000), 2.0)
    return scores, noisy


def truth():
    """In closed form: the rank is the number of thresholds below a normal number."""
    spread, limits = 1.25**0.5, np.array([-0.7, 0.2, 1.0])
    above = norm.sf(limits / spread)
    average = above.sum()
    rest = (above * (2 * np.arange(3) + 1)).sum() - average**2
    covariance = (norm.pdf(limits / spread) / spread).sum()
    return {
        "mean": average, "variance": rest,
        "covariance": covariance, "correlation": covariance / rest**0.5,
    }  # fmt: skip


def found(seed):
    scores, noisy = drawn(seed)
    both = together(scores, noisy)
    return {
        "mean": mean(scores), "variance": variance(scores),
        "covariance": both.covariance, "correlation": both.correlation,
    }  # fmt: skip


def test_errors_are_as_large_as_they_say():
    """200 draws: z-scores have mean 0 within .3 (4 standard errors) and deviation .8 to 1.2
    (4 of them): once in 5,000 or so for all eight. Errors of half the size fail."""
    found_all = [found(seed) for seed in range(200)]
    for name, true in truth().items():
        z = np.array([(f[name].value - true) / f[name].standard_error for f in found_all])
        assert abs(z.mean()) < 0.3, name
        assert 0.8 < z.std() < 1.2, name
        assert not 0.8 < (2 * z).std() < 1.2


def test_what_randomization_leaves_open_is_not_told():
    rng, source = np.random.default_rng(3), SeededRandomness(3)
    matrix = KeepOrUniform(2, 0.05)
    one, two = (
        Scores.of_categories(matrix.randomize(rng.integers(0, 2, 60), source), matrix, [0.0, 1.0])
        for _ in range(2)
    )
    assert together(one, two).correlation.value is None
