"""Noise in shares: the total is discrete Laplace, whatever the number of shares."""

import math
from decimal import Decimal, localcontext

import numpy as np
import pytest
from scipy import stats

from mpc_rr.errors import InputError
from mpc_rr.privacy.noise import LARGEST_SCALE, TABLE_ERROR, NoiseShares, _survival
from mpc_rr.randomness import SeededRandomness


@pytest.mark.parametrize("honest", [1, 3, 40])
@pytest.mark.parametrize("scale", [0.7, 6.0])
def test_the_shares_of_all_honest_parties_add_up_to_discrete_laplace(honest, scale):
    """Chi-square on 20,000 sums; the threshold is passed by chance once in 10,000 runs."""
    noise = NoiseShares(epsilon=2.0, sensitivity=2 * scale, honest=honest, cells=20_000)
    total = sum(noise.draw(SeededRandomness(100 * honest + k)) for k in range(honest))
    alpha = math.exp(-1 / scale)
    values = np.arange(-8, 9)
    shares = (1 - alpha) / (1 + alpha) * alpha ** abs(values)
    expected = [*shares, 1 - shares.sum()]
    observed = [*((total == v).sum() for v in values), (abs(total) > 8).sum()]
    assert stats.chisquare(observed, np.array(expected) * 20_000).pvalue > 1e-4
    assert total.std() == pytest.approx(noise.standard_deviation(honest), rel=0.05)


def test_the_test_above_would_notice_a_share_too_few():
    noise = NoiseShares(epsilon=2.0, sensitivity=12, honest=5, cells=20_000)
    total = sum(noise.draw(SeededRandomness(k)) for k in range(4))
    assert total.std() < 0.95 * noise.standard_deviation(5)


@pytest.mark.parametrize("shape", [1.0, 0.25, 1 / 32_561])
def test_the_table_of_draws_is_the_negative_binomial(shape):
    scale = 9.0
    words = _survival(shape, scale).astype(float) / 2.0**64
    exact = stats.nbinom.sf(np.arange(len(words)), shape, 1 - math.exp(-1 / scale))
    np.testing.assert_allclose(words, exact, rtol=1e-9, atol=2.0**-60)


@pytest.mark.parametrize("shape", ["1", "0.25", "0.001"])
def test_the_table_is_as_right_as_the_stated_delta_supposes(shape):
    """Against a hundred digits: entries are off by ``TABLE_ERROR`` of themselves, and a unit."""
    with localcontext() as context:
        context.prec = 100
        scale, r = Decimal(9), Decimal(shape)
        alpha = (-1 / scale).exp()
        chance = (1 - alpha) ** r
        above = 1 - chance
        words = _survival(float(shape), 9.0)
        for k, word in enumerate(words.tolist()):
            exact = above * 2**64
            assert abs(word - exact) <= 1 + exact * Decimal(TABLE_ERROR)
            chance *= alpha * (k + r) / (k + 1)
            above -= chance


def test_the_promise_over_neighbouring_sums_from_the_table_itself():
    """Neighbouring totals differ in probability by at most e^(1/scale).

    In the distribution that is really drawn (words of 64 bits), for one honest party.
    """
    noise = NoiseShares(epsilon=1.0, sensitivity=3, honest=1, cells=1)
    survival = np.concatenate([[1.0], _survival(1.0, 3.0).astype(float) / 2.0**64, [0.0]])
    single = survival[:-1] - survival[1:]
    total = np.convolve(single, single[::-1])
    middle = total[len(total) // 2 - 40 : len(total) // 2 + 41]
    ratios = middle[1:] / middle[:-1]
    assert max(ratios.max(), 1 / ratios.min()) == pytest.approx(math.exp(1 / 3), rel=1e-6)
    assert 0 < noise.delta < 1e-11


def test_bounds_hold_and_grow():
    noise = NoiseShares(epsilon=1.0, sensitivity=6, honest=10, cells=50_000)
    total = sum(noise.draw(SeededRandomness(k)) for k in range(20))
    assert abs(total).max() <= noise.bound(20)
    assert noise.bound(20) < noise.bound(20, cells=6)
    assert noise.delta < 1e-6


@pytest.mark.parametrize("epsilon", [0, -1, math.inf, math.nan])
def test_an_epsilon_that_is_none(epsilon):
    with pytest.raises(InputError, match="positive, finite epsilon"):
        NoiseShares(epsilon, 2, 3, 4)


def test_noise_that_would_leave_nothing_of_the_counts():
    assert NoiseShares(1.0, 100_000, 3, 4).scale == LARGEST_SCALE
    with pytest.raises(InputError, match="would need noise of a scale of 1e"):
        NoiseShares(1.0, 100_001, 3, 4)


@pytest.mark.parametrize(("honest", "cells"), [(1, 1), (1, 7), (5, 1), (40, 300)])
def test_delta_counts_every_draw_of_every_honest_party(honest, cells):
    """Each makes two draws for each cell; whatever any of them is off, all of it may show."""
    noise = NoiseShares(epsilon=0.5, sensitivity=4, honest=honest, cells=cells)
    table = _survival(1 / honest, 8.0).astype(float)
    one_draw = (len(table) + 1 + TABLE_ERROR * table.sum()) / 2.0**64
    draws = 2 * honest * cells
    assert noise.delta == pytest.approx((1 + math.exp(0.5)) * draws * one_draw, rel=1e-9)


def test_nobody_honest():
    with pytest.raises(InputError, match="at least one"):
        NoiseShares(1.0, 2, 0, 4)
