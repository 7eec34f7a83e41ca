"""Paper 002's rule of convergence, as printed, and its intervals."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize, special, stats

from mpc_rr.estimation.blocks import Answered, of_block
from mpc_rr.estimation.convergence import (
    estimates_by_block,
    interval_width,
    likelihood_width,
    printed_width,
    settles_at,
    stops_as_printed,
    stops_at,
)


def one_share(*shares):
    return np.array(shares, dtype=float)[:, np.newaxis]


def widths(width, blocks):
    return np.full((blocks, 1), width)


def test_the_interval_of_a_randomized_estimate_is_wider_than_the_printed_one():
    found = interval_width(np.array([0.3]), 250, 0.5, np.array([0.3]))
    symmetrical = 2 * 1.959964 * math.sqrt(0.3 * 0.7 / 250)
    assert found == pytest.approx(symmetrical / 0.5, rel=1e-5)
    assert printed_width(np.array([0.3]), 250) == pytest.approx(symmetrical, rel=1e-5)


def test_the_printed_interval_is_symmetrical_above_a_count_of_5_alone():
    """An estimate of 1 has a count of n, and so a width of 0."""
    shares = np.array([5 / 50, 5.01 / 50, 1.0])
    symmetrical = 2 * 1.959964 * np.sqrt(shares * (1 - shares) / 50)
    found = printed_width(shares, 50)
    assert found[1:] == pytest.approx(symmetrical[1:], rel=1e-5)
    assert found[0] == pytest.approx(likelihood_width(shares[:1], np.array([50.0]))[0])
    assert abs(found[0] - symmetrical[0]) > 0.0005


def test_the_interval_of_an_estimate_of_0_is_closed_there():
    """−2n·ln(1 − q) = χ² with one degree of freedom."""
    closed = 1 - math.exp(-stats.chi2(1).ppf(0.95) / (2 * 18))
    assert printed_width(np.array([0.0]), 18) == pytest.approx(closed, abs=1e-12)
    assert likelihood_width(np.array([1.0]), np.array([18.0])) == pytest.approx(closed, abs=1e-12)


@given(st.floats(0.001, 0.999), st.integers(1, 500), st.sampled_from([0.05, 0.01]))
def test_likelihood_intervals_are_those_found_in_log_odds(share, n, alpha):
    """By another root finder, on the other scale."""
    middle, most = math.log(share / (1 - share)), stats.chi2(1).isf(alpha)

    def excess(odds):
        told = share * math.log(share) + (1 - share) * math.log(1 - share)
        of_q = -share * np.logaddexp(0, -odds) - (1 - share) * np.logaddexp(0, odds)
        return 2 * n * (told - of_q) - most

    ends = [optimize.brentq(excess, middle, far) for far in (-1e5, 1e5)]
    low, high = special.expit(ends)
    found = likelihood_width(np.array([share]), np.array([float(n)]), alpha)
    assert found == pytest.approx(high - low, abs=1e-9)


def test_an_estimate_that_stays_at_0_has_converged_as_one_that_stays_elsewhere():
    """Its interval has a width, so that a step of 0 is smaller."""
    for share in (0.0, 0.05):
        estimates = one_share(*[share] * 201)
        found = stops_at(estimates, printed_width(estimates[1:], 18))
        assert found is not None
        assert (found.block, found.shares[0]) == (1, share)


def test_the_rule_stops_at_the_first_small_step_and_returns_the_average_of_two_blocks():
    found = stops_at(one_share(0.5, 0.9, 0.3, 0.34, 0.9), widths(0.1, 4))
    assert found is not None
    assert (found.block, found.shares[0]) == (3, pytest.approx(0.32))
    assert stops_at(one_share(0.5, 0.9, 0.3), widths(0.1, 2)) is None


def test_it_compares_the_first_block_with_the_uniform_table():
    found = stops_at(one_share(0.5, 0.45, 0.9), widths(0.1, 2))
    assert found is not None
    assert (found.block, found.shares[0]) == (1, pytest.approx(0.475))


def test_to_settle_all_later_steps_must_be_small():
    found = settles_at(one_share(0.5, 0.9, 0.5, 0.51, 0.5, 0.49), widths(0.1, 5))
    assert found is not None
    assert (found.block, found.shares[0]) == (3, pytest.approx(0.505))
    assert settles_at(one_share(0.5, 0.5, 0.51, 0.9), widths(0.1, 3)) is None
    everywhere = settles_at(one_share(0.5, 0.5, 0.5), widths(0.1, 2))
    assert everywhere is not None
    assert everywhere.block == 1


def test_all_shares_of_a_table_must_take_small_steps():
    estimates = np.array([[0.5, 0.5], [0.5, 0.2], [0.5, 0.21]])
    found = stops_at(estimates, np.full((2, 2), 0.1))
    assert found is not None
    assert found.block == 2
    assert found.shares == pytest.approx([0.5, 0.205])


@given(st.integers(2, 6), st.integers(1, 9), st.integers(0, 999))
def test_a_table_stops_where_a_plain_reading_of_section_5_does(cells, blocks, seed):
    rng = np.random.default_rng(seed)
    tables = rng.dirichlet(np.ones(cells), blocks)
    counts = rng.multinomial(40, rng.dirichlet(np.ones(cells)), blocks)
    told = Answered(0.5, tables, counts)
    before, expected = np.full(cells, 1 / cells), None
    for block in range(blocks):
        now = np.clip(of_block(counts[block], tables[block], 0.5), 0, 1)
        if all(
            abs(a - b) < printed_width(np.array([a]), 40)[0]
            for a, b in zip(now, before, strict=True)
        ):
            expected = block + 1, (now + before) / 2
            break
        before = now
    found = stops_as_printed(told)
    assert estimates_by_block(told).shape == (blocks + 1, cells)
    if expected is None:
        assert found is None
    else:
        assert found is not None
        assert found.block == expected[0]
        assert found.shares == pytest.approx(expected[1])
