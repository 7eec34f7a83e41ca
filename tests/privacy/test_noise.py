"""Noise in shares: the total is discrete Laplace, whatever the number of shares."""

import itertools
import math
from decimal import Decimal, localcontext
from unittest.mock import patch

import numpy as np
import pytest
from scipy import stats

from mpc_rr.errors import InputError
from mpc_rr.estimation.pairs import PairLayout
from mpc_rr.privacy import noise as noise_module
from mpc_rr.privacy.noise import LARGEST_SCALE, NoiseShares, _survival
from mpc_rr.protocols.exact_pairs import ExactPairs
from mpc_rr.randomness import SeededRandomness


def chi_square(noise, scale, honest, cells=20_000):
    """How well the sums of all honest parties' shares agree with discrete Laplace of a scale."""
    total = sum(noise.draw(SeededRandomness(100 * honest + k)) for k in range(honest))
    alpha = math.exp(-1 / scale)
    values = np.arange(-8, 9)
    shares = (1 - alpha) / (1 + alpha) * alpha ** abs(values)
    expected = [*shares, 1 - shares.sum()]
    observed = [*((total == v).sum() for v in values), (abs(total) > 8).sum()]
    return total, stats.chisquare(observed, np.array(expected) * cells).pvalue


@pytest.mark.parametrize("honest", [1, 3, 40])
@pytest.mark.parametrize("scale", [0.7, 6.0])
def test_the_shares_of_all_honest_parties_add_up_to_discrete_laplace(honest, scale):
    """Chi-square on 20,000 sums; the threshold is passed by chance once in 10,000 runs."""
    noise = NoiseShares(epsilon=2.0, sensitivity=2 * scale, honest=honest, cells=20_000)
    total, pvalue = chi_square(noise, scale, honest)
    assert pvalue > 1e-4
    assert total.std() == pytest.approx(noise.standard_deviation(honest), rel=0.05)


def half_the_size(honest, epsilon, sensitivity):
    return _survival(honest, 2 * epsilon, sensitivity)


@pytest.mark.parametrize("scale", [0.7, 6.0])
def test_the_test_above_would_notice_noise_of_half_the_size(scale):
    noise = NoiseShares(epsilon=2.0, sensitivity=2 * scale, honest=3, cells=20_000)
    with patch.object(noise_module, "_survival", half_the_size):
        assert chi_square(noise, scale, 3)[1] < 1e-9


def test_the_test_above_would_notice_a_share_too_few():
    noise = NoiseShares(epsilon=2.0, sensitivity=12, honest=5, cells=20_000)
    total = sum(noise.draw(SeededRandomness(k)) for k in range(4))
    assert total.std() < 0.95 * noise.standard_deviation(5)


class Telling(ExactPairs, frozen=True, tag="telling"):
    def noise(self, layout, parties):
        return self._noise(layout, parties)


def test_the_noise_in_pair_tables_covers_what_another_record_changes():
    """The largest change over all pairs of records, counted out, is the sensitivity."""
    layout = PairLayout((2, 3, 2, 2))
    vectors = [
        layout.indicator(record).astype(int)
        for record in itertools.product(*map(range, (2, 3, 2, 2)))
    ]
    changes = [int(abs(one - other).sum()) for one, other in itertools.combinations(vectors, 2)]
    noise = Telling(noise_epsilon=3.0).noise(layout, 100)
    assert noise.sensitivity == max(changes)
    assert noise.cells == layout.cells
    assert noise.scale == max(changes) / 3.0


@pytest.mark.parametrize("honest", [1, 4, 32_561])
def test_the_table_of_draws_is_the_negative_binomial(honest):
    words = _survival(honest, 1.0, 9).astype(float) / 2.0**64
    exact = stats.nbinom.sf(np.arange(len(words)), 1 / honest, 1 - math.exp(-1 / 9))
    np.testing.assert_allclose(words, exact, rtol=1e-9, atol=2.0**-60)


def exact_survival(honest, scale, entries):
    """P(Pólya > k) in 150 digits, added up from the far end: another way than the table's."""
    with localcontext() as context:
        context.prec = 150
        alpha = (-1 / Decimal(scale)).exp()
        shape = 1 / Decimal(honest)
        chances = [(1 - alpha) ** shape]
        for k in range(entries + 80 * math.ceil(scale)):
            chances.append(chances[-1] * alpha * (k + shape) / (k + 1))
        return list(itertools.accumulate(reversed(chances)))[::-1][1 : entries + 1]


@pytest.mark.parametrize(("honest", "scale"), [(1, 9), (4, 9), (1000, 9), (11, 50), (500, 1000)])
def test_every_entry_of_the_table_is_rounded_to_the_nearest_word(honest, scale):
    words = _survival(honest, 1.0, scale).tolist()
    exact = exact_survival(honest, scale, len(words) + 1)
    off = [abs(word - share * 2**64) for word, share in zip(words, exact, strict=False)]
    assert max(off) <= Decimal("0.5")
    assert exact[len(words)] * 2**64 < Decimal("0.5")


def test_delta_covers_what_rounding_moves():
    """The distance of a draw from a Pólya number is measured; every draw of everybody counts."""
    noise = NoiseShares(epsilon=1.5, sensitivity=30, honest=4, cells=7)
    words = _survival(4, 1.5, 30).tolist()
    exact = [Decimal(1), *exact_survival(4, 20, len(words) + 800), Decimal(0)]
    drawn = [Decimal(2**64), *map(Decimal, words), *[Decimal(0)] * 801]
    moved = [
        abs((a - b) - (c - d) * 2**64)
        for (a, b), (c, d) in zip(itertools.pairwise(drawn), itertools.pairwise(exact), strict=True)
    ]
    distance = float(sum(moved) / 2) * 2.0**-64
    draws = 2 * noise.cells * noise.honest
    needed = (1 + math.exp(1.5)) * draws * distance
    assert needed <= (1 + math.exp(1.5)) * draws * (len(words) + 2) / 2 * 2.0**-64 <= 4 * needed
    assert noise.delta >= (1 + math.exp(1.5)) * draws * (len(words) + 2) / 2 * 2.0**-64


@pytest.mark.parametrize(("honest", "cells", "epsilon"), [(4, 7, 1.5), (1, 1, 0.1), (30, 2, 5.0)])
def test_delta_is_what_it_always_was(honest, cells, epsilon):
    """A unit for each entry and 2⁻⁴⁴ of all: the entries add up to the mean of a Pólya number."""
    noise = NoiseShares(epsilon, 30, honest, cells)
    entries = len(_survival(honest, epsilon, 30))
    mean = 1 / honest / math.expm1(epsilon / 30)
    off = (entries + 1) * 2.0**-64 + mean * 2.0**-44
    expected = (1 + math.exp(epsilon)) * 2 * cells * honest * off
    assert noise.delta == pytest.approx(expected, rel=1e-6, abs=0)


def test_the_promise_over_neighbouring_sums_from_the_table_itself():
    """Neighbouring totals differ in probability by at most e^(1/scale).

    In the distribution that is really drawn (words of 64 bits), for one honest party.
    """
    noise = NoiseShares(epsilon=1.0, sensitivity=3, honest=1, cells=1)
    survival = np.concatenate([[1.0], _survival(1, 1.0, 3).astype(float) / 2.0**64, [0.0]])
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


@pytest.mark.parametrize(("cells", "times"), [(1, 1), (6, 1), (1, 100), (6, 100)])
def test_a_bound_fails_in_one_case_of_2_to_the_40_however_often_it_is_asked(cells, times):
    """The noise is the difference of two negative binomial numbers; either may be too large."""
    noise = NoiseShares(epsilon=1.0, sensitivity=6, honest=10, cells=50_000)
    each = stats.nbinom(cells * 20 / 10, -math.expm1(-1 / noise.scale))
    bound = noise.bound(20, cells, times)
    assert 2 * times * each.sf(bound) <= 2.0**-40 < 2 * times * each.sf(bound - 1)


@pytest.mark.parametrize("epsilon", [0, -1, math.inf, math.nan])
def test_an_epsilon_that_is_none(epsilon):
    with pytest.raises(InputError, match="positive, finite epsilon"):
        NoiseShares(epsilon, 2, 3, 4)


def test_noise_that_would_leave_nothing_of_the_counts():
    assert NoiseShares(1.0, 100_000, 3, 4).scale == LARGEST_SCALE
    with pytest.raises(InputError, match="would need noise of a scale of 1e"):
        NoiseShares(1.0, 100_001, 3, 4)


def test_nobody_honest():
    with pytest.raises(InputError, match="at least one"):
        NoiseShares(1.0, 2, 0, 4)
