"""Limits of shares hold, also near 0 and 1, for whomever they speak of."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from mpc_rr.estimation import intervals
from mpc_rr.estimation.blocks import Answered, pooled
from mpc_rr.estimation.distribution import unbiased
from mpc_rr.estimation.intervals import cell_intervals
from mpc_rr.estimation.kronecker import Kronecker
from mpc_rr.estimation.matrix import Dense, KeepOrUniform
from mpc_rr.estimation.uncertainty import (
    BlockAnswers,
    EachCellReported,
    ExactCounts,
    NoisyCounts,
    PartOfReports,
    RandomizedReports,
    ViewReports,
)
from mpc_rr.estimation.views import SubsetMechanism
from mpc_rr.randomness import SeededRandomness

TRUE = np.array([0.5, 0.3, 0.14, 0.05, 0.01])
RUNS, N = 120, 200


def exact(counts, _):
    return counts / N, ExactCounts(N)


def noisy(counts, rng):
    scale = 2.0
    told = counts + np.rint(rng.laplace(0, scale, counts.size))
    put_right = told - (told.sum() - N) / told.size
    return put_right / N, NoisyCounts(N, 2 * scale**2)


def randomized(keep):
    def answer(counts, rng):
        matrix = KeepOrUniform(TRUE.size, keep)
        told = sum(rng.multinomial(c, row) for c, row in zip(counts, matrix.dense(), strict=True))
        return unbiased(told, matrix).shares, RandomizedReports(N, matrix)

    return answer


def of_a_view(epsilon, asked=N):
    def answer(counts, rng):
        mechanism = SubsetMechanism.best(TRUE.size, epsilon)
        people = rng.permutation(np.repeat(np.arange(TRUE.size), counts))[:asked]
        reports = mechanism.randomize(people, SeededRandomness(int(rng.integers(2**31))))
        uncertainty = ViewReports(N, (PartOfReports(1.0, asked, mechanism, 1),))
        return mechanism.estimate(reports).shares, uncertainty

    return answer


def by_blocks(p, asked=N):
    def answer(counts, rng):
        table = np.full(TRUE.size, 1 / TRUE.size)
        mine = rng.multivariate_hypergeometric(counts, asked)
        told = sum(
            rng.multinomial(c, p * np.eye(TRUE.size)[k] + (1 - p) * table)
            for k, c in enumerate(mine)
        )
        answered = Answered(p, table[np.newaxis], told[np.newaxis])
        return pooled(answered).shares, BlockAnswers(N, answered)

    return answer


WAYS = {
    "exact": exact, "noise": noisy, "keep 0.2": randomized(0.2), "keep 0.5": randomized(0.5),
    "keep 0.9": randomized(0.9), "views": of_a_view(2.0), "views, hardly random": of_a_view(6.0),
    "views, of half of them": of_a_view(6.0, N // 2), "blocks": by_blocks(0.5),
    "blocks, of a third": by_blocks(0.9, N // 3),
}  # fmt: skip


@pytest.mark.parametrize("name", WAYS)
def test_limits_hold_as_often_as_they_say(name):
    """95 %; fewer than 105 of 120 by chance: once in a thousand for each cell, seeds are fixed."""
    assert binom.cdf(104, RUNS, 0.95) < 1e-3
    rng = np.random.default_rng(7)
    population, respondents = np.zeros(TRUE.size), np.zeros(TRUE.size)
    for _ in range(RUNS):
        counts = rng.multinomial(N, TRUE)
        estimate, uncertainty = WAYS[name](counts, rng)
        found = cell_intervals(estimate, uncertainty, "population")
        population += (found.low <= TRUE) & (found.high >= TRUE)
        found = cell_intervals(estimate, uncertainty, "respondents")
        here = counts / N
        respondents += (found.low <= here + 1e-12) & (found.high >= here - 1e-12)
    assert population.min() >= 105
    assert respondents.min() >= 105


@given(
    st.lists(st.integers(0, 40), min_size=2, max_size=6).filter(any),
    st.floats(0.05, 0.95),
    st.sampled_from(["population", "respondents"]),
)
def test_limits_lie_between_0_and_1_around_what_can_be(counts, keep, of):
    matrix, n = KeepOrUniform(len(counts), keep), sum(counts)
    estimate = unbiased(np.array(counts), matrix).shares
    found = cell_intervals(estimate, RandomizedReports(n, matrix), of)
    feasible = np.clip(estimate, 0, 1)
    assert (found.low >= 0).all()
    assert (found.high <= 1).all()
    assert (found.low <= feasible).all()
    assert (found.high >= feasible).all()
    assert (found.high > found.low).all()  # nobody's share is known for sure


def test_a_cell_that_nobody_answered_is_not_known_to_be_empty():
    """Its standard error was 0, and so were both its limits."""
    table = np.full((1, 4), 0.25)
    answered = Answered(0.3, table, np.array([[30, 40, 30, 0]]))
    assert (pooled(answered).standard_errors > 0).all()
    found = cell_intervals(pooled(answered).shares, BlockAnswers(100, answered), "population")
    assert found.low[3] == 0
    assert found.high[3] > 0.02


def test_counts_that_are_exact_are_those_of_the_respondents():
    shares = np.array([0.2, 0.8])
    found = cell_intervals(shares, ExactCounts(10), "respondents")
    np.testing.assert_array_equal(found.low, shares)
    np.testing.assert_array_equal(found.high, shares)


def some_table(sizes, seed):
    rng = np.random.default_rng(seed)
    estimate = rng.dirichlet(np.full(np.prod(sizes), 0.3)).reshape(sizes)
    estimate = estimate + rng.normal(0, 0.02, sizes)
    return estimate / estimate.sum()


@pytest.mark.parametrize("of", ["population", "respondents"])
@pytest.mark.parametrize(
    ("sizes", "keeps"), [((5,), (0.4,)), ((3, 4), (0.5, 0.8)), ((2, 3, 4), (0.9, 1.0, 0.6))]
)
def test_limits_of_large_tables_need_no_table_of_all_by_all(monkeypatch, sizes, keeps, of):
    """By entries of inverses, and some cells at a time: the same as of all cells as sets."""
    matrices = [KeepOrUniform(size, keep) for size, keep in zip(sizes, keeps, strict=True)]
    matrix = matrices[0] if len(sizes) == 1 else Kronecker(matrices)
    uncertainty = RandomizedReports(200, matrix)
    tables = [some_table(sizes, seed) for seed in range(5)]
    tables.append((np.arange(np.prod(sizes)) == 1).astype(float).reshape(sizes))
    as_sets = [cell_intervals(table, uncertainty, of) for table in tables]
    monkeypatch.setattr(intervals, "AT_A_TIME", 2 * tables[0].size)
    by_twos = [cell_intervals(table, uncertainty, of) for table in tables]
    monkeypatch.setattr(intervals, "MOST_AS_SETS", 0)
    assert isinstance(uncertainty.each_cell, EachCellReported)
    by_entries = [cell_intervals(table, uncertainty, of) for table in tables]
    for one, two, three in zip(as_sets, by_twos, by_entries, strict=True):
        for end in ("low", "high"):
            assert (getattr(one, end) == getattr(two, end)).all()
            assert getattr(three, end) == pytest.approx(getattr(one, end), abs=1e-9)


def test_limits_of_a_hundred_thousand_cells_fit_into_memory():
    """As sets they were a table of 10¹⁰."""
    matrix = Kronecker([KeepOrUniform(50_000, 0.5), KeepOrUniform(2, 0.5)])
    estimate = np.full((50_000, 2), 1e-5)
    tracemalloc.start()
    try:
        found = cell_intervals(estimate, RandomizedReports(100, matrix), "population")
        assert tracemalloc.get_traced_memory()[1] < 100e6
    finally:
        tracemalloc.stop()
    assert found.low.shape == (50_000, 2)
    assert (found.high > 1e-5).all()


def test_where_there_is_no_shorter_way_cells_are_taken_some_at_a_time():
    """A matrix that was given has no two entries only."""
    assert RandomizedReports(10, Dense(np.full((3, 3), 0.2) + 0.4 * np.eye(3))).each_cell is None
    assert ExactCounts(10).each_cell is None
