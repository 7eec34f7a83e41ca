"""Dependences with limits and verdicts."""

import msgspec
import numpy as np
import pytest
from scipy.stats import binom

from mpc_rr.estimation.dependence import abs_pearson_r, cramers_v
from mpc_rr.estimation.distribution import unbiased
from mpc_rr.estimation.kronecker import Kronecker
from mpc_rr.estimation.matrix import KeepOrUniform
from mpc_rr.estimation.strength import Strength, cramers_v_strength, pearson_strength, strength
from mpc_rr.estimation.uncertainty import ExactCounts, NoisyCounts, RandomizedReports
from mpc_rr.schema import Attribute

A, B = np.array([0.5, 0.3, 0.2]), np.array([0.4, 0.3, 0.2, 0.1])
NONE = np.outer(A, B)


def comonotone(a, b):
    """The table of two attributes that go together as far as their margins let them."""
    steps = np.minimum.outer(np.r_[0, np.cumsum(a)], np.r_[0, np.cumsum(b)])
    return np.diff(np.diff(steps, axis=0), axis=1)


STRONG = 0.5 * NONE + 0.5 * comonotone(A, B)


def answered(table, n, keep, rng):
    """The estimate of a table from n people of it, whose answers are kept so often."""
    counts = rng.multinomial(n, table.ravel()).reshape(table.shape)
    if keep is None:
        return counts / n, ExactCounts(n)
    matrix = Kronecker([KeepOrUniform(size, keep) for size in table.shape])
    dense = np.kron(*(m.dense() for m in matrix.matrices))
    told = sum(rng.multinomial(c, row) for c, row in zip(counts.ravel(), dense, strict=True))
    return unbiased(told.reshape(table.shape), matrix).shares, RandomizedReports(n, matrix)


@pytest.mark.parametrize("measure", [cramers_v_strength, pearson_strength])
@pytest.mark.parametrize("keep", [None, 0.7, 0.3])
@pytest.mark.parametrize("n", [100, 1000])
def test_independent_answers_are_hardly_ever_said_to_depend(measure, keep, n):
    """2 %; more than 10 of 150 by chance: once in a thousand, seeds are fixed."""
    assert binom.sf(10, 150, 0.02) < 1e-3
    rng = np.random.default_rng(5)
    said = [measure(*answered(NONE, n, keep, rng)).verdict for _ in range(150)]
    assert said.count("at least") <= 10


@pytest.mark.parametrize("keep", [None, 0.7, 0.3])
@pytest.mark.parametrize("n", [100, 1000])
def test_limits_hold_the_truth(keep, n):
    """95 %; fewer than 69 of 80 by chance: once in a thousand, seeds are fixed."""
    assert binom.cdf(68, 80, 0.95) < 2e-3
    rng = np.random.default_rng(6)
    v, r = cramers_v(STRONG).value, abs_pearson_r(STRONG).value
    inside_v = inside_r = 0
    for _ in range(80):
        estimate, uncertainty = answered(STRONG, n, keep, rng)
        found = cramers_v_strength(estimate, uncertainty)
        inside_v += found.low <= v <= found.high
        found = pearson_strength(estimate, uncertainty)
        inside_r += found.low <= r <= found.high
    assert inside_v >= 69
    assert inside_r >= 69


def test_a_correlation_is_told_as_rarely_by_chance_as_a_v():
    """Its limits are of 95 %; that there is one is said only where chance does so in 2 %."""
    assert Strength("pearson_r", 0.2, 0.01, 0.39, 0.04, by_chance=0.04).verdict == "cannot be told"
    assert Strength("pearson_r", 0.15, 0.01, 0.29, 0.04, by_chance=0.04).verdict == "at most"
    assert Strength("pearson_r", 0.2, 0.02, 0.38, 0.01, by_chance=0.01).verdict == "at least"


def test_much_noise_tells_nothing_and_says_so():
    """With noise in the sum a true 0.814 was printed as 0.000, and drawn as independent."""
    rng = np.random.default_rng(1)
    counts = rng.multinomial(50, STRONG.ravel()).reshape(STRONG.shape)
    told = counts + rng.laplace(0, 20, STRONG.shape)
    told -= (told.sum() - 50) / told.size
    for measure in (cramers_v_strength, pearson_strength):
        found = measure(told / 50, NoisyCounts(50, 800.0))
        assert found.verdict == "cannot be told"
        assert found.bound is None
    assert (found.low, found.high) == (-1.0, 1.0)


def test_a_dependence_has_a_sign():
    rng = np.random.default_rng(2)
    there = pearson_strength(*answered(STRONG, 500, None, rng))
    back = pearson_strength(*answered(STRONG[::-1], 500, None, rng))
    assert there.low > 0 > back.high
    assert there.verdict == back.verdict == "at least"
    assert back.bound == -back.high


def test_what_surely_is_weak_is_said_to_be():
    rng = np.random.default_rng(3)
    found = cramers_v_strength(*answered(NONE, 5000, None, rng))
    assert found.verdict == "at most"
    assert found.bound == found.high < 0.1


def test_rare_answers_are_taken_together():
    rare = np.outer([0.5, 0.495, 0.005], B)
    found = cramers_v_strength(*answered(rare, 300, None, np.random.default_rng(4)))
    assert any(2 in group and len(group) > 1 for group in found.groups[0])
    alone = np.outer([0.999, 0.001], B)
    found = cramers_v_strength(*answered(alone, 300, None, np.random.default_rng(4)))
    assert (found.value, found.low, found.high) == (None, 0.0, 1.0)


def test_of_the_respondents_exact_counts_leave_nothing_open():
    estimate, uncertainty = answered(STRONG, 400, None, np.random.default_rng(8))
    found = cramers_v_strength(estimate, uncertainty, "respondents")
    assert found.low == found.high == pytest.approx(cramers_v(estimate).value)
    assert found.p_value is None


# ── Missing answers ────────────────────────────────────────────────────────────────────────────

MOOD, HEALTH = (
    Attribute(name, "ordinal", ("low", "middle", "high", "no answer"), missing="no answer")
    for name in ("mood", "health")
)


def with_silence(rng, n=800):
    """Independent answers; a third of the people answer neither question."""
    answers = rng.integers(0, 3, (n, 2))
    answers[rng.random(n) < 1 / 3] = 3
    return np.bincount(answers[:, 0] * 4 + answers[:, 1], minlength=16).reshape(4, 4)


@pytest.mark.parametrize("kind", ["ordinal", "nominal"])
def test_who_answers_nothing_has_no_rank_and_makes_no_dependence(kind):
    """Silence counted as the highest rank: 0.638, p = 1e-35, where answers were independent."""
    both = tuple(msgspec.structs.replace(a, type=kind) for a in (MOOD, HEALTH))
    counts = with_silence(np.random.default_rng(2))
    found = strength(counts / 800, ExactCounts(800), both)
    assert found.verdict != "at least"
    assert abs(found.value) < 0.12
    assert found.answered == pytest.approx(counts[:3, :3].sum())
    silent = strength(counts / 800, ExactCounts(800), (A_ALL, A_ALL))
    assert silent.value > 0.6


A_ALL = Attribute("all", "ordinal", ("low", "middle", "high", "highest"))


def test_among_those_who_answered_counts_are_as_if_nobody_else_had_been_asked():
    counts = with_silence(np.random.default_rng(3))
    answered = counts[:3, :3]
    alone = pearson_strength(answered / answered.sum(), ExactCounts(answered.sum()))
    among = strength(counts / 800, ExactCounts(800), (MOOD, HEALTH))
    for field in ("value", "low", "high", "p_value"):
        assert getattr(among, field) == pytest.approx(getattr(alone, field), abs=1e-6)
    both = tuple(msgspec.structs.replace(a, type="nominal") for a in (MOOD, HEALTH))
    alone = cramers_v_strength(answered / answered.sum(), ExactCounts(answered.sum()))
    among = strength(counts / 800, ExactCounts(800), both)
    for field in ("value", "low", "high", "p_value"):
        assert getattr(among, field) == pytest.approx(getattr(alone, field), abs=1e-6)


@pytest.mark.parametrize("keep", [0.8, 0.5])
def test_limits_among_those_who_answered_hold_where_answers_are_randomized(keep):
    """2 % said to depend by chance; more than 10 of 150: once in a thousand, seeds are fixed."""
    rng, matrix = np.random.default_rng(4), Kronecker([KeepOrUniform(4, keep)] * 2)
    dense, said = np.kron(*(m.dense() for m in matrix.matrices)), []
    for _ in range(150):
        counts = with_silence(rng)
        told = sum(rng.multinomial(c, row) for c, row in zip(counts.ravel(), dense, strict=True))
        estimate = unbiased(told.reshape(4, 4), matrix).shares
        said.append(strength(estimate, RandomizedReports(800, matrix), (MOOD, HEALTH)))
    assert sum(found.verdict == "at least" for found in said) <= 10
    assert sum(found.low <= 0 <= found.high for found in said) >= 135


@pytest.mark.parametrize("keep", [None, 0.5])
@pytest.mark.parametrize("table", [np.full((2, 2), 0.25), np.outer([0.55, 0.45], [0.6, 0.4]), NONE])
def test_a_table_that_looks_just_independent_leaves_as_much_open_as_one_beside_it(table, keep):
    """Its φ² is rounding: 1e-32 was blown up to a direction, or none was supposed.

    The upper limit of V was a third of what it should be, 0.1 among a hundred.
    """
    n = 1000
    matrix = Kronecker([KeepOrUniform(size, keep or 1) for size in table.shape])
    uncertainty = ExactCounts(n) if keep is None else RandomizedReports(n, matrix)
    beside = table.copy()
    beside[:2, :2] += 1e-5 * np.array([[1, -1], [-1, 1]])
    found, near = (cramers_v_strength(t, uncertainty) for t in (table, beside))
    assert found.low == near.low == 0
    assert 0.85 < found.high / near.high < 1.25  # all directions, against one of them


@pytest.mark.parametrize("kind", ["nominal", "ordinal"])
def test_of_a_table_with_very_many_cells_it_cannot_be_told_how_strongly(kind):
    """The covariances of all its cells are a table of all by all."""
    many = Attribute("a", kind, tuple(map(str, range(2049))))
    two = Attribute("b", kind, ("0", "1"))
    table = np.repeat([[1.0, 0.0], [0.0, 1.0]], [1024, 1025], axis=0) / 2049
    matrix = Kronecker([KeepOrUniform(2049, 0.9), KeepOrUniform(2, 0.9)])
    found = strength(table, RandomizedReports(10**9, matrix), (many, two))
    assert found.value is None
    assert found.verdict == "cannot be told"
