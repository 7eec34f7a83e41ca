"""Moments from sums, against numpy and scipy; limits that hold as often as they say."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from mpc_rr.estimation.number_moments import (
    Noisy,
    exact_jointly,
    exact_spread,
    noisy_count,
    noisy_spread,
)

NUMBERS = st.lists(st.integers(-10_000, 10_000), min_size=2, max_size=60)


def sums(x, powers=(1, 2)):
    return [sum(int(v) ** p for v in x) for p in powers]


@given(NUMBERS)
def test_exact_moments_are_numpys(x):
    found = exact_spread(len(x), *sums(x), tails=tuple(sums(x, (3, 4))))
    assert found.mean.value == found.mean_here.value == pytest.approx(np.mean(x))
    assert found.variance_here.value == pytest.approx(np.var(x))
    assert found.variance.value == pytest.approx(np.var(x, ddof=1))
    if len(set(x)) == 1:
        assert found.mean.low is None
        return
    limits = stats.t.interval(0.95, len(x) - 1, np.mean(x), stats.sem(x))
    assert (found.mean.low, found.mean.high) == pytest.approx(limits)
    assert found.mean.standard_error == pytest.approx(stats.sem(x))
    fourth, n = stats.moment(x, 4), len(x)
    error = np.sqrt(max((fourth - np.var(x, ddof=1) ** 2 * (n - 3) / (n - 1)) / n, 0))
    assert found.variance.standard_error == pytest.approx(error, rel=1e-6, abs=1e-3)
    assert found.variance.low <= found.variance.value <= found.variance.high


@given(st.lists(st.tuples(st.integers(-500, 500), st.integers(-9, 9)), min_size=4, max_size=50))
def test_correlations_are_numpys_with_scipys_limits(pairs):
    x, y = map(list, zip(*pairs, strict=True))
    found = exact_jointly(len(x), *sums(x), *sums(y), sum(a * b for a, b in pairs))
    assert found.covariance == pytest.approx(np.cov(x, y)[0, 1], abs=1e-9)
    if len(set(x)) == 1 or len(set(y)) == 1:
        assert found.correlation.value is None
        return
    theirs = stats.pearsonr(x, y)
    assert found.correlation.value == pytest.approx(theirs.statistic, abs=1e-9)
    if abs(theirs.statistic) < 1 - 1e-9:
        limits = theirs.confidence_interval(0.95)
        assert found.correlation.low == pytest.approx(limits.low, abs=1e-6)
        assert found.correlation.high == pytest.approx(limits.high, abs=1e-6)


def test_of_nobody_or_one_nothing_is_said_that_cannot_be_told():
    assert exact_spread(0, 0, 0).mean.value is None
    one = exact_spread(1, 7, 49)
    assert (one.mean.value, one.mean.low, one.variance.value) == (7, None, None)
    assert exact_jointly(1, 1, 1, 1, 1, 1).covariance is None
    perfect = exact_jointly(3, 6, 14, 12, 56, 28)
    assert (perfect.correlation.value, perfect.correlation.low) == (1.0, None)


N, TIMES, REACH = 300, 2000, 100


def noisy_runs(deviation, seed):
    """Skewed numbers of other people each time, and noise of Laplace's distribution in each sum."""
    rng = np.random.default_rng(seed)
    population = np.minimum(rng.exponential(30, 200_000).astype(int), 200) - REACH
    for _ in range(TIMES):
        x = rng.choice(population, N)
        size = deviation / np.sqrt(2)
        noise = rng.laplace(0, size, 3) * (1, REACH, REACH**2)
        spread = (deviation**2 * factor for factor in (1, REACH**2, REACH**4))
        exact = (N, x.sum(), (x**2).sum())
        told = [Noisy(a + b, v) for a, b, v in zip(exact, noise, spread, strict=True)]
        yield x, population, told


@pytest.mark.parametrize("deviation", [1.0, 8.0, 60.0], ids=["little", "some", "much"])
def test_limits_hold_with_noise(deviation):
    """95 % at least, but for the normal approximation; five standard errors below that is 92.5 %.

    Where noise is little, limits of a mean hold not much more often than they should."""
    held = dict.fromkeys(("count", "mean", "mean_here", "variance_here"), 0)
    for x, population, told in noisy_runs(deviation, 5):
        count, found = noisy_count(told[0], N), noisy_spread(*told, REACH)
        true = {
            "count": (count, N), "mean": (found.mean, population.mean()),
            "mean_here": (found.mean_here, x.mean()),
            "variance_here": (found.variance_here, x.var()),
        }  # fmt: skip
        for name, (limits, truth) in true.items():
            held[name] += limits.low <= truth <= limits.high
    assert min(held.values()) > 0.925 * TIMES, held
    if deviation == 1.0:
        assert max(held["mean"], held["mean_here"]) < 0.985 * TIMES, held


def test_without_a_count_that_stands_clear_of_noise_nothing_is_told():
    found = noisy_spread(Noisy(3, 25), Noisy(40, 2500), Noisy(900, 250_000), 10)
    assert found.mean_here.value is found.variance_here.value is None
    assert (found.mean_here.low, found.mean_here.high) == (-10, 10)
    assert (found.variance_here.low, found.variance_here.high) == (0, 100)
    below = noisy_spread(Noisy(-3, 0.0), Noisy(40, 0.0), Noisy(900, 0.0), 10)
    assert below.mean.value is None
