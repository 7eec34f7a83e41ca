"""Discrete Gaussian numbers: exactly the probabilities that are written down."""

import collections
import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from drawing import Script, words
from scipy import stats

from mpc_rr.privacy import discrete_gaussian as module
from mpc_rr.privacy.discrete_gaussian import _kept, _proposed, discrete_gaussian
from mpc_rr.randomness import SeededRandomness

VARIANCES = [1.0, 1.7, 4.0, 30.5, 1e4]


def pvalue(variance, claimed, count=40_000):
    """Chi-square of so many numbers against the exact probabilities, in bins of about 3 %."""
    drawn = discrete_gaussian(variance, count, SeededRandomness(7))
    reach = math.ceil(15 * math.sqrt(claimed))
    values = np.arange(-reach, reach + 1)
    shares = np.exp(-(values.astype(float) ** 2) / (2 * claimed))
    shares /= shares.sum()
    bins = (30 * np.cumsum(shares)).astype(int)
    expected = np.bincount(bins, weights=shares)
    observed = np.bincount(bins[np.clip(drawn, -reach, reach) + reach], minlength=len(expected))
    known = expected * count > 5
    return stats.chisquare(
        [*observed[known], observed[~known].sum() + 1],
        [*expected[known] * count, expected[~known].sum() * count + 1],
    ).pvalue


@pytest.mark.parametrize("variance", VARIANCES)
def test_numbers_are_distributed_as_they_should(variance):
    """A false alarm in 10,000 sets of seeds, for each variance."""
    assert pvalue(variance, variance) > 1e-4


@pytest.mark.parametrize("variance", VARIANCES)
def test_the_test_above_would_notice_another_variance(variance):
    assert pvalue(variance * 1.1, variance) < 1e-6


@pytest.mark.parametrize("bits", [0, 1, 3])
def test_all_words_propose_just_the_probabilities_that_are_written_down(bits):
    """All patterns of the last twelve bits, which decide unless the zeros go on beyond them."""
    patterns = np.arange(1 << 12, dtype=np.uint64)
    halvings, values, possible = _proposed(patterns | np.uint64(1 << 40), bits, SeededRandomness(0))
    signs = 1 - 2 * (patterns & np.uint64(1)).astype(np.int64)
    decided = halvings < 11 - bits
    found = collections.Counter((values * signs)[decided & possible].tolist())
    for x, count in found.items():
        q = abs(x) >> bits
        assert Fraction(count, 1 << 12) == Fraction(1, 2 ** (q + 1) * 2 * 2**bits)
    reach = (11 - bits) * 2**bits
    assert set(found) == set(range(-reach + 1, reach))
    assert Fraction(int(decided.sum()), 1 << 12) == 1 - Fraction(1, 2 ** (11 - bits))


def test_zeros_go_on_in_further_words():
    rng = Script(words(0, 8, 4))
    halvings, values, _ = _proposed(np.array([1, 0, 6], dtype=np.uint64), 1, rng)
    assert halvings.tolist() == [62 + 64 + 2, 62 + 3, 0]  # the first goes on once more
    assert values.tolist() == [2 * 128, 2 * 65, 1]


def threshold(x, variance, bits):
    """2⁶⁴ times exp(−x²/2v) divided by P(proposed), but for a constant below 1; in 80 digits."""
    with localcontext() as context:
        context.prec = 80
        v, t = Decimal(variance), 1 << bits
        wanted = (-Decimal(x * x) / (2 * v)).exp()
        constant = (-v / (4 * t * t)).exp()
        return wanted * 2 ** (x // t) * constant * 2**64


@pytest.mark.parametrize("variance", [1.0, 1.7, 30.5, 2.0**41 + 1])
@pytest.mark.parametrize("part", [0.0, 0.5, 0.9, 2.3])
def test_each_proposal_is_kept_with_its_exact_probability(variance, part):
    """Words at the edge are decided rightly, and that of the edge by the words that follow."""
    bits = (math.frexp(variance)[1] - 1) // 2
    x = round(part * math.sqrt(variance))
    exact = threshold(x, variance, bits)
    assert 0 < exact < 2**64
    edge, rest = int(exact), exact - int(exact)
    following = int(rest * 2**64)
    for judge, more, kept in [
        (edge - 1, [], True),
        (edge + 1, [], False),
        (edge, [following - 1], True),
        (edge, [following + 1], False),
    ]:
        script = Script(words(*more))
        found = _kept(
            np.array([x >> bits]), np.array([x]), np.array([judge], np.uint64), variance, bits,
            script,
        )  # fmt: skip
        assert bool(found[0]) is kept
        assert script.position == 8 * len(more)


def test_between_a_third_and_all_of_the_proposals_are_kept():
    """Σ P(proposed)·P(kept), in floats: the mean of the chances that the vectors above check."""
    for variance in (1.0, 1.99, 2.5, 3.99, 4.0, 1e6, 2.0**59):
        t = 2.0 ** ((math.frexp(variance)[1] - 1) // 2)
        share = math.sqrt(2 * math.pi * variance) / (4 * t) * math.exp(-variance / (4 * t * t))
        assert 0.45 < share < 0.54


def test_floats_decide_nothing(monkeypatch):
    """The same numbers come out if every single decision is made by a hundred digits."""
    with_floats = discrete_gaussian(3.3, 200, SeededRandomness(5)).tolist()
    monkeypatch.setattr(module, "SLACK", 2.0)
    assert discrete_gaussian(3.3, 200, SeededRandomness(5)).tolist() == with_floats


def test_no_table_is_needed_at_large_scales():
    """Mean and variance within six standard errors: a false alarm in 10⁸."""
    drawn = discrete_gaussian(2.0**60, 20_000, SeededRandomness(3)) / 2.0**30
    assert abs(drawn.mean()) < 6 / math.sqrt(20_000)
    assert abs((drawn**2).mean() - 1) < 6 * math.sqrt(2 / 20_000)


def test_none_are_drawn_if_none_are_wanted():
    assert discrete_gaussian(2.0, 0, Script(b"")).tolist() == []


@pytest.mark.parametrize("variance", [0.99, 2.0**61, math.nan])
def test_variances_that_are_too_small_or_too_large(variance):
    with pytest.raises(ValueError, match="from 1 to 2"):
        discrete_gaussian(variance, 1, SeededRandomness(0))
