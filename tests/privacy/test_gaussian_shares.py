"""Gaussian noise in shares: the stated (ε, δ) against the very distribution that is drawn."""

import math
from dataclasses import replace
from functools import reduce

import numpy as np
import pytest
from scipy import stats

from mpc_rr.errors import InputError
from mpc_rr.privacy import gaussian_shares
from mpc_rr.privacy.gaussian_shares import GaussianShares, closeness, delta_of
from mpc_rr.privacy.noise import NoiseShares
from mpc_rr.privacy.noise_families import by_family
from mpc_rr.randomness import SeededRandomness


def gaussian(variance, reach):
    """The probabilities of one discrete Gaussian number, from −reach to reach."""
    found = np.exp(-(np.arange(-reach, reach + 1.0) ** 2) / (2 * variance))
    return found / found.sum()


def total_of(parties, variance):
    """Those of the sum of the numbers of all, added one after the other."""
    shares = [gaussian(variance, math.ceil(9 * math.sqrt(variance)))] * parties
    return reduce(np.convolve, shares)


def neighbours(total, changed, unit):
    """The probabilities of all values of the sums that change by a unit each, with each record."""
    ends = np.zeros(unit)
    moved = np.concatenate([ends, total]), np.concatenate([total, ends])
    return [reduce(np.multiply.outer, [one] * changed) for one in moved]


def failing(total, changed, unit, epsilon):
    """Σ max(P − e^ε·Q, 0) over all of these values: the true δ."""
    p, q = neighbours(total, changed, unit)
    return float(np.maximum(p - math.exp(epsilon) * q, 0).sum())


CASES = [
    (2.0, 1e-3, 2, 1), (2.0, 1e-6, 2, 3), (6.0, 1e-4, 2, 5), (6.0, 1e-3, 4, 1),
    (8.0, 1e-2, 4, 2), (0.5, 1e-2, 2, 4), (20.0, 1e-6, 2, 2),
]  # fmt: skip


@pytest.mark.parametrize(("epsilon", "delta", "changed", "honest"), CASES)
def test_sums_are_as_private_as_stated_and_hardly_more(epsilon, delta, changed, honest):
    """Over every value of all sums that change. With a tenth less ε it would not be true."""
    noise = GaussianShares(epsilon, delta, changed, honest, cells=9)
    total = total_of(honest, noise.variance)
    assert failing(total, changed, noise.unit, epsilon) <= delta
    assert failing(total, changed, noise.unit, 0.9 * epsilon) > delta


@pytest.mark.parametrize(("epsilon", "delta", "changed", "honest"), CASES)
def test_the_test_above_would_notice_a_fifth_less_variance(epsilon, delta, changed, honest):
    noise = GaussianShares(epsilon, delta, changed, honest, cells=9)
    assert failing(total_of(honest, 0.8 * noise.variance), changed, noise.unit, epsilon) > delta


def test_where_shares_are_so_small_that_their_sum_is_no_gaussian_the_statement_still_holds():
    """Variances far below those that are used: there the closeness term is most of δ."""
    for variance, honest, epsilon in [(0.4, 6, 4.0), (0.6, 5, 3.0), (1.0, 4, 3.0)]:
        true = failing(total_of(honest, variance), 2, 1, epsilon)
        assert 0 < true <= delta_of(epsilon, 2, honest, variance)


@pytest.mark.parametrize("variance", [0.3, 0.5, 1.0])
@pytest.mark.parametrize("pieces", [2, 7])
def test_a_sum_is_as_close_to_one_gaussian_number_as_stated(variance, pieces):
    """In the logarithm of the probabilities in the middle; and of two numbers not much closer."""
    total = total_of(pieces, variance)
    middle = len(total) // 2
    one = gaussian(pieces * variance, middle)
    near = slice(middle - 3, middle + 4)
    apart = abs(np.log(total[near] / one[near])).max()
    assert apart <= closeness(pieces, variance) + 1e-14
    assert pieces > 2 or closeness(pieces, variance) <= 2.5 * apart


def summed(pieces, variance):
    """Every term of the closeness, with its rounding taken off."""
    j = np.arange(1.0, pieces)
    q = np.exp(-2 * math.pi**2 * variance * j / (j + 1))
    return math.fsum(np.log1p(2 * q / (1 - q)) - np.log1p(-2 * q))


@pytest.mark.parametrize("variance", [0.3, 1.0, 2.0, 3.7, 8.0])
@pytest.mark.parametrize("pieces", [8192, 8193, 9_000, 30_011, 1_000_000])
def test_of_many_shares_the_closeness_is_bounded_from_above_and_hardly_more(pieces, variance):
    full = summed(pieces, variance)
    assert full * (1 - 1e-14) <= closeness(pieces, variance) <= full * (1 + 1e-9)
    assert pieces == 8192 or closeness(pieces, variance) >= full


def test_how_long_the_closeness_takes_does_not_grow_with_the_number_of_shares(monkeypatch):
    looked_at = []
    terms = gaussian_shares.added_by
    monkeypatch.setattr(
        gaussian_shares, "added_by", lambda j, v: looked_at.append(len(j)) or terms(j, v)
    )
    closeness.cache_clear()
    closeness(10**7, 2.0)
    closeness(10**7, 2.0)
    assert sum(looked_at) < 30_000


@pytest.mark.parametrize(("epsilon", "delta", "changed", "honest"), CASES)
def test_sums_tell_more_than_epsilon_as_seldom_as_is_said(epsilon, delta, changed, honest):
    noise = GaussianShares(epsilon, delta, changed, honest, cells=9)
    p, q = neighbours(total_of(honest, noise.variance), changed, noise.unit)
    told_more = float(p[p > math.exp(epsilon) * q].sum())
    assert delta < told_more <= noise.chance_beyond(changed, epsilon) < 1.7 * told_more


@pytest.mark.parametrize(("epsilon", "delta", "changed", "honest"), CASES)
def test_one_answer_costs_what_is_stated(epsilon, delta, changed, honest):
    noise = GaussianShares(epsilon, delta, changed, honest, cells=9)
    one = noise.of_one_answer(changed // 2)
    total = total_of(honest, noise.variance)
    assert one < epsilon
    assert failing(total, changed // 2, noise.unit, one) <= delta
    assert failing(total, changed // 2, noise.unit, 0.85 * one) > delta
    assert noise.of_one_answer(changed) <= epsilon


@pytest.mark.parametrize("honest", [1, 30, 3_000])
@pytest.mark.parametrize("changed", [2, 56, 380])
def test_the_noise_is_that_of_the_continuous_mechanism(changed, honest):
    """δ = Φ(μ/2 − ε/μ) − e^ε·Φ(−μ/2 − ε/μ) (Balle and Wang 2018, Theorem 8), μ = √changed/σ."""
    noise = GaussianShares(1.0, 1e-6, changed, honest, cells=1000)
    mu = math.sqrt(changed) / noise.standard_deviation(honest)
    delta = stats.norm.cdf(mu / 2 - 1 / mu) - math.e * stats.norm.cdf(-mu / 2 - 1 / mu)
    assert 0.6e-6 < delta < 1.05e-6


def test_many_small_shares_are_drawn_in_small_units():
    few, many = (GaussianShares(1.0, 1e-6, 56, honest, 10) for honest in (11, 30_000))
    assert (few.unit, many.unit % 2) == (1, 1)
    assert many.unit > 1
    assert many.variance >= 2
    assert many.standard_deviation(30_000) == pytest.approx(few.standard_deviation(11), rel=0.01)


def test_noise_as_it_is_rounded_has_the_stated_standard_deviation():
    """20,000 sums of 40 parties in units of a fifth or so; 6 standard errors, false in 10⁸."""
    noise = GaussianShares(8.0, 1e-4, 2, 40, cells=20_000)
    total = sum(noise.draw(SeededRandomness(k)) for k in range(40))
    rounded = (total + noise.unit // 2) // noise.unit
    stated = noise.standard_deviation(40)
    assert noise.unit > 3
    assert rounded.std() == pytest.approx(stated, rel=6 / math.sqrt(2 * 20_000))
    assert abs(rounded.mean()) < 6 * stated / math.sqrt(20_000)
    assert rounded.std() != pytest.approx(noise.standard_deviation(80), rel=0.1)


@pytest.mark.parametrize(("cells", "times"), [(1, 1), (3, 1), (1, 1000), (3, 1000)])
@pytest.mark.parametrize("epsilon", [0.5, 12.0])
def test_a_bound_fails_in_one_case_of_2_to_the_40_however_often_it_is_asked(epsilon, cells, times):
    """The sum is nearly Gaussian; what rounding may move comes on top, and no more than that."""
    noise = GaussianShares(epsilon, 1e-6, 2, 10, cells=9)
    deviation = math.sqrt(noise.variance * 20 * cells) / noise.unit
    bound, rounding = noise.bound(20, cells, times), cells / 2 if noise.unit > 1 else 0
    assert 2 * times * stats.norm.sf((bound + 1 - rounding) / deviation) <= 2.0**-40
    assert 2 * times * stats.norm.sf((bound - rounding) / deviation / 1.15) > 2.0**-40


def test_the_farthest_that_noise_goes_is_for_all_cells():
    noise = GaussianShares(1.0, 1e-6, 6, 10, cells=50_000)
    total = sum(noise.draw(SeededRandomness(k)) for k in range(20))
    assert abs(total).max() <= noise.farthest(20) <= 2 * noise.unit * noise.bound(20)
    assert noise.bound(20, times=50_000) * noise.unit == pytest.approx(noise.farthest(20), abs=60)


@pytest.mark.parametrize("changed", [2, 6, 20, 56, 380])
def test_which_noise_is_smaller_follows_from_how_many_counts_a_record_changes(changed):
    kinds = by_family(1.0, 1e-6, changed, 50, 200)
    assert set(kinds) == {"laplace", "gaussian"}
    sizes = [noise.standard_deviation(80) for noise in kinds.values()]
    assert sizes == sorted(sizes)
    assert next(iter(kinds)) == ("laplace" if changed <= 8 else "gaussian")


def test_noise_that_cannot_be_had_is_not_the_smaller():
    assert list(by_family(1e-3, 1e-6, 380, 50, 200)) == ["gaussian"]
    with pytest.raises(InputError, match="nothing would be left"):
        NoiseShares(1e-3, 380, 50, 200)


GOOD = GaussianShares(1.0, 1e-6, 6, 5, 12)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"epsilon": 0.0}, "positive, finite epsilon"), ({"epsilon": math.nan}, "positive, finite"),
        ({"delta": 0.0}, "between 0 and 1"), ({"delta": 1.0}, "between 0 and 1"),
        ({"honest": 0}, "at least one"), ({"epsilon": 1e-9, "delta": 1e-12}, "deviation of"),
    ],
)  # fmt: skip
def test_noise_that_is_none(wrong, says):
    with pytest.raises(InputError, match=says):
        replace(GOOD, **wrong)
