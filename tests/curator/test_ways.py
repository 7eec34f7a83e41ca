"""Matrices and noise of a curator's columns, against what they must be."""

import math
from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare, norm

from mpc_rr.curator.ways import (
    Correlated,
    KeptOrUniform,
    Laplace,
    Normal,
    Pram,
    invariant,
    normal_epsilon,
    rows_of,
)
from mpc_rr.errors import InputError
from mpc_rr.estimation.matrix import Dense, KeepOrUniform
from mpc_rr.privacy.discrete_laplace import discrete_laplace, laplace_variance
from mpc_rr.randomness import SeededRandomness


@given(
    st.integers(2, 6), st.floats(0.05, 0.95), st.lists(st.integers(0, 50), min_size=2, max_size=6)
)
def test_invariant_pram_leaves_the_shares_as_they_are(size, keep, counts):
    counts = np.array((counts * size)[:size], dtype=float)
    counts[0] += 1
    shares = counts / counts.sum()
    matrix = invariant(KeepOrUniform(size, keep), shares).matrix
    np.testing.assert_allclose(shares @ matrix.dense(), shares, atol=1e-12)
    np.testing.assert_allclose(matrix.dense().sum(axis=1), 1)


def test_the_matrix_that_is_made_from_the_records_has_no_epsilon():
    made = invariant(KeepOrUniform(3, 0.5), np.array([0.5, 0.3, 0.2]))
    assert made.matrix.epsilon < 5
    assert made.epsilon is None
    assert made.beta is None


def test_only_a_bistochastic_matrix_has_a_beta():
    assert Pram(rows=((0.7, 0.3), (0.3, 0.7))).beta == pytest.approx(
        -(0.7 * math.log2(0.7) + 0.3 * math.log2(0.3))
    )
    assert Pram(rows=((0.7, 0.3), (0.2, 0.8))).beta is None
    with pytest.raises(InputError, match=r"column 0 .* sums to 0.9: .* not bistochastic"):
        _ = Dense([[0.7, 0.3], [0.2, 0.8]]).beta


# ── Noise ──────────────────────────────────────────────────────────────────────────────────────


def test_digits_of_a_geometric_number_are_independent_as_the_draw_has_it():
    """The product over its digits is the closed form, for every number below 2^6."""
    decay = 0.3
    for number in range(64):
        chance = 1.0
        for place in range(12):
            one = 1 / (1 + math.exp(decay * 2**place))
            chance *= one if number >> place & 1 else 1 - one
        assert chance == pytest.approx((1 - math.exp(-decay)) * math.exp(-decay * number))


@pytest.mark.parametrize("decay", [0.02, 0.5, 3.0])
def test_laplace_numbers_are_distributed_as_they_should(decay):
    """Chi-square: fails once in 100,000 if all is right; with 5 % more decay it does (below)."""
    drawn = discrete_laplace(decay, 100_000, SeededRandomness(5))
    assert _fit(drawn, decay) > 1e-5
    assert _fit(drawn, 1.05 * decay) < 1e-5
    assert drawn.var() == pytest.approx(laplace_variance(decay), rel=0.05)


@pytest.mark.parametrize("exponent", [0.35, 699.9, 700.1, 709.7, 709.8, 720.5, 744.9])
def test_digits_that_are_almost_never_drawn_have_their_probability(exponent):
    """About 7 % of all ε have a digit whose odds no float holds the inverse of."""

    class Asked(SeededRandomness):
        def bernoulli(self, chance, shape):
            chances.append(chance)
            return super().bernoulli(chance, shape)

    chances, rng = [], Asked(1)
    decay = exponent / 2**9
    discrete_laplace(decay, 10, rng)
    with localcontext(prec=60):
        due = [1 / (1 + (Decimal(decay) * 2**place).exp()) for place in range(10)]
    for chance, exact in zip(chances[:10], due, strict=False):
        assert chance == pytest.approx(float(exact), rel=1e-15, abs=5e-324)
    assert len(chances) >= 20


@pytest.mark.parametrize("decay", [1.0, 699.0, 701.0, 712.0, 744.0, 800.0])
def test_the_variance_of_laplace_numbers_is_finite_however_fast_they_fall(decay):
    with localcontext(prec=60):
        q = Decimal(-decay).exp()
        exact = 2 * q / (1 - q) ** 2
    assert laplace_variance(decay) == pytest.approx(float(exact), rel=1e-12, abs=5e-324)


def _fit(drawn, decay):
    most = max(2, round(2 / decay))
    numbers = np.arange(-most, most + 1)
    chances = math.tanh(decay / 2) * np.exp(-decay * abs(numbers))
    inside = np.array([(drawn == number).sum() for number in numbers])
    counts = np.append(inside, len(drawn) - inside.sum())
    return chisquare(counts, len(drawn) * np.append(chances, 1 - chances.sum())).pvalue


@given(st.floats(0.05, 20), st.integers(1, 500))
def test_laplace_noise_costs_its_epsilon_over_the_whole_range(epsilon, steps):
    way = Laplace(lowest=0, highest=steps, step=1, spent=epsilon)
    assert way.decay * steps <= epsilon
    assert way.decay * steps == pytest.approx(epsilon, rel=1e-8)


@pytest.mark.parametrize("distance", [0.3, 1.0, 3.0])
def test_the_epsilon_of_normal_noise_is_no_less_than_the_exact_one(distance):
    """Against the exact δ of a Gaussian (Balle and Wang 2018)."""
    epsilon = normal_epsilon(distance, 1e-6)
    exact = norm.cdf(distance / 2 - epsilon / distance) - math.exp(epsilon) * norm.cdf(
        -distance / 2 - epsilon / distance
    )
    assert 0 < exact <= 1e-6


def test_correlated_noise_has_its_covariances():
    """20,000 draws: each covariance within five standard errors."""
    wished = np.array([[4.0, 1.5, 0.0], [1.5, 9.0, -2.0], [0.0, -2.0, 1.0]])
    group = Correlated(columns=("a", "b", "c"), share=1.0, covariance=rows_of(wished))
    noise = group.draw(20_000, SeededRandomness(2))
    spread = np.sqrt((np.outer(np.diag(wished), np.diag(wished)) + wished**2) / 20_000)
    assert (abs(np.cov(noise, rowvar=False) - wished) < 5 * spread).all()


def test_what_noise_is_left_to_whoever_knows_the_rest():
    """Two columns with r = .8: whoever knows one knows 64 % of the variance of the other's."""
    group = Correlated(columns=("a", "b"), share=1.0, covariance=((4.0, 3.2), (3.2, 4.0)))
    assert group.alone == pytest.approx([1.2, 1.2])


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Laplace(lowest=0, highest=10, step=1, spent=0.0), "at least 0.001"),
        (lambda: Laplace(lowest=0, highest=10, step=1e-15, spent=0.01), "step is too small"),
        (lambda: Laplace(lowest=5, highest=5, step=1, spent=1.0), "no numbers from 5 to 5"),
        (
            lambda: Normal(lowest=0, highest=9, step=1, deviation=0.5, from_file=False, delta=1e-6),
            "less than a step",
        ),
        (lambda: KeptOrUniform(size=2, keep=1.5).matrix, "between 0 and 1"),
    ],
)
def test_what_protects_nothing_or_cannot_be_drawn_is_refused(make, says):
    with pytest.raises(InputError, match=says):
        make()
