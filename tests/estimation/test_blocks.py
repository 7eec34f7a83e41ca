"""Block aggregation: what an answer costs, and what all of them tell."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from networks_data import SURVEY
from scipy.spatial.distance import jensenshannon

from mpc_rr.errors import InputError
from mpc_rr.estimation.blocks import (
    Answered,
    answer_epsilon,
    check_truth,
    chi_square,
    claimed_epsilon,
    collect,
    epsilon_bound,
    expected_error,
    floored,
    independence_test,
    independent_version,
    jensen_shannon_distance,
    jensen_shannon_divergence,
    l2_distance,
    likely,
    of_block,
    pooled,
    respond,
    truth_for,
)
from mpc_rr.randomness import SeededRandomness
from mpc_rr.study.bif import read_bif


@pytest.fixture(scope="module")
def people(tmp_path_factory):
    path = tmp_path_factory.mktemp("networks") / "survey.bif"
    path.write_text(SURVEY)
    network = read_bif(path)
    return network.sample(8000, SeededRandomness(1).uniform), network.schema.sizes


tables = st.lists(st.floats(0.01, 1), min_size=2, max_size=9).map(lambda t: np.array(t) / sum(t))
truths = st.floats(0.05, 0.95)


# ── What an answer costs ───────────────────────────────────────────────────────────────────────


@given(tables, truths)
def test_the_price_is_the_largest_ratio_of_likelihoods(table, p):
    """For any two records and any answer; Theorem 4.1 promises less and is wrong."""
    size = len(table)
    likelihood = p * np.eye(size) + (1 - p) * table[None, :]
    ratios = likelihood[:, None, :] / likelihood[None, :, :]
    assert math.log(ratios.max()) == pytest.approx(answer_epsilon(p, table))
    assert answer_epsilon(p, table) > claimed_epsilon(p)


def test_the_figures_of_the_errata():
    found = [answer_epsilon(0.5, np.full(cells, 1 / cells)) for cells in (4, 8, 16)]
    assert found == pytest.approx([1.61, 2.20, 2.83], abs=0.005)
    assert claimed_epsilon(0.5) == pytest.approx(0.693, abs=0.001)
    assert answer_epsilon(0.5, np.array([1.0, 0.0])) == math.inf


@given(tables, truths, st.floats(0.01, 1))
def test_a_floor_bounds_the_price_and_p_can_be_found_for_a_wished_one(table, p, floor):
    bound = epsilon_bound(p, floor, len(table))
    assert answer_epsilon(p, floored(table, floor)) <= bound * (1 + 1e-9)
    assert floored(table, floor).sum() == pytest.approx(1)
    assert truth_for(bound, floor, len(table)) == pytest.approx(p)
    assert epsilon_bound(p, 0.0, 3) == math.inf


def test_observed_likelihood_ratios_confirm_the_price():
    """Fails with the paper's formula: 100,000 answers each, counted.

    The ratio of the rarest answer's frequencies has a standard error below 2 %; five of them make
    a false alarm once in a million.
    """
    table, p = floored(np.array([0.7, 0.2, 0.08, 0.02]), 0.2), 0.5
    rarest = int(np.argmin(table))
    other = int(np.argmax(table))
    rng = SeededRandomness(3)
    told = [
        np.bincount(respond(np.full(100_000, truth), table, p, rng), minlength=4)
        for truth in (rarest, other)
    ]
    observed = math.log(told[0][rarest] / told[1][rarest])
    assert observed == pytest.approx(answer_epsilon(p, table), abs=0.1)
    assert observed > claimed_epsilon(p) + 0.1


@pytest.mark.parametrize("p", [0.0, 1.0, -0.1, math.nan])
def test_a_probability_that_leaves_no_doubt_or_no_truth_is_refused(p):
    with pytest.raises(InputError, match="lies between 0 and 1"):
        check_truth(p)


# ── What the answers tell ──────────────────────────────────────────────────────────────────────


def root_mean_square(errors):
    return math.sqrt(np.mean([(error**2).sum() for error in errors]))


@pytest.fixture(scope="module", params=[(0.4, (0, 1)), (0.5, (0, 2)), (0.5, (0, 1, 2))])
def collections(request, people):
    """200 collections of one combination, in blocks of 250."""
    p, attributes = request.param
    records, sizes = people
    shape = [sizes[a] for a in attributes]
    cells = np.ravel_multi_index(records[:, attributes].T, shape)
    size = math.prod(shape)
    runs = [collect(cells, size, p, 250, SeededRandomness(seed)) for seed in range(200)]
    return p, np.bincount(cells, minlength=size), runs


def test_pooled_errors_are_as_predicted(collections):
    """Within 5 %: the standard error of the root of 200 sums of squares is below 2.5 %."""
    p, true, runs = collections
    found = root_mean_square([pooled(run.answered).counts - true for run in runs])
    shares = true / true.sum()
    predicted = [expected_error(shares, r.answered.mean_table, p, true.sum()) for r in runs]
    assert found == pytest.approx(np.mean(predicted), rel=0.05)


def test_pooling_beats_the_last_block_and_likelihood_is_no_worse(collections):
    _, true, runs = collections
    n = true.sum()
    last = root_mean_square([run.by_block[-1] * n - true for run in runs])
    all_blocks = root_mean_square([pooled(run.answered).counts - true for run in runs])
    by_likelihood = root_mean_square([likely(run.answered) * n - true for run in runs])
    assert last > 5 * all_blocks
    assert by_likelihood <= all_blocks * 1.001


def test_standard_errors_cover_the_true_shares():
    """Of 95 % intervals over 200 seeds and 6 cells, between 93 and 97 % hold the share."""
    shares = np.outer([0.3, 0.5, 0.2], [0.6, 0.4]).ravel()
    held = []
    for seed in range(200):
        rng = SeededRandomness(seed)
        cells = np.searchsorted(np.cumsum(shares), rng.fork("people").uniform((2000,)))
        found = pooled(collect(cells, 6, 0.5, 250, rng, floor=0.3).answered)
        low, high = found.interval(0.95)
        held.append((low <= shares) & (shares <= high))
    assert 0.93 < np.mean(held) < 0.97


def test_one_by_one_is_version_1(people):
    records, sizes = people
    cells = records[:600, 0]
    run = collect(cells, sizes[0], 0.5, 1, SeededRandomness(2))
    assert len(run.answered.tables) == 600
    found = pooled(run.answered)
    true = np.bincount(cells, minlength=sizes[0]) / 600
    assert (np.abs(found.shares - true) < 5 * found.standard_errors).all()


@given(st.integers(0, 500), st.integers(1, 500))
def test_two_coins_are_the_first_block_of_two_answers(yes, no):
    """§1.1 of the paper: a share q of "yes" estimates 2(q − 0.25)."""
    told = of_block(np.array([no, yes]), np.full(2, 0.5), 0.5)
    assert told[1] == pytest.approx(2 * (yes / (yes + no) - 0.25))


@given(tables, truths, st.integers(0, 999))
def test_without_randomness_left_everything_comes_back(table, p, seed):
    """If answers come in exactly the expected numbers, Eq. 4 and the likelihood give the truth."""
    truth = np.random.default_rng(seed).dirichlet(np.ones(len(table)))
    expected = p * truth + (1 - p) * table
    counts = np.round(expected * 10**9).astype(np.int64)
    answered = Answered(p, table[None, :], counts[None, :])
    assert of_block(counts, table, p) == pytest.approx(truth, abs=1e-6)
    assert pooled(answered).shares == pytest.approx(truth, abs=1e-6)
    assert likely(answered) == pytest.approx(truth, abs=2e-3)


def test_a_table_with_zeros_spoils_nothing():
    """Without a floor a cell that nobody answers may get a share of 0."""
    truth = np.repeat(np.arange(64), np.r_[2000, np.full(63, 1)])
    run = collect(np.random.default_rng(1).permutation(truth), 64, 0.5, 200, SeededRandomness(1))
    assert (run.answered.tables == 0).any()
    assert np.isfinite(likely(run.answered)).all()


def test_no_answers_tell_nothing():
    with pytest.raises(InputError, match="nobody has answered"):
        pooled(Answered(0.5, np.full((1, 2), 0.5), np.zeros((1, 2), dtype=np.int64)))
    with pytest.raises(InputError, match="a table and counts for each block"):
        Answered(0.5, np.full((1, 2), 0.5), np.zeros((2, 2), dtype=np.int64))


# ── Distances and independence ─────────────────────────────────────────────────────────────────


@given(st.integers(2, 12), st.integers(0, 999))
def test_distances_are_those_of_scipy(size, seed):
    rng = np.random.default_rng(seed)
    one, two = rng.integers(0, 50, size) + 0.0, rng.integers(0, 50, size) + 1.0
    one[0] += 1
    assert jensen_shannon_distance(one, two) == pytest.approx(jensenshannon(one, two), abs=1e-9)
    assert jensen_shannon_divergence(one, two) == pytest.approx(
        jensenshannon(one, two) ** 2, abs=1e-9
    )
    assert l2_distance(one, two) == pytest.approx(np.linalg.norm(one - two))


def dependent(eta, ways):
    """A table of two answers each, all margins even, dependent by η (paper 002 §7.3)."""
    shape = (2,) * ways
    parity = np.indices(shape).sum(axis=0) % 2
    return np.full(shape, 1 / 2**ways) + np.where(parity, -eta, eta) / 2 ** (ways - 2)


def rejections(table, seeds, n=8000, p=0.5):
    found = 0
    for seed in seeds:
        rng = SeededRandomness(seed)
        limits = np.cumsum(table.ravel())
        cells = np.searchsorted(limits / limits[-1], rng.fork("people").uniform((n,)))
        run = collect(cells, table.size, p, 250, rng, floor=0.5)
        test = independence_test(table.shape, run.answered, rng.fork("test").uniform, samples=99)
        found += test.rejected
    return found


SLOW = pytest.mark.sweep


@pytest.mark.parametrize("ways", [2, pytest.param(3, marks=SLOW), pytest.param(4, marks=SLOW)])
def test_independence_is_rejected_no_more_often_than_said(ways):
    """Level 5 %: more than 10 of 50 come once in 34,000 such tests."""
    assert rejections(dependent(0.0, ways), range(50)) <= 10


@pytest.mark.parametrize("ways", [2, pytest.param(3, marks=SLOW)])
def test_dependence_is_found(ways):
    assert rejections(dependent(0.08, ways), range(20)) >= 19


@given(st.integers(0, 999))
def test_the_independent_version_has_the_same_margins(seed):
    table = np.random.default_rng(seed).dirichlet(np.ones(12)).reshape(2, 3, 2)
    alone = independent_version(table)
    for axis in range(3):
        others = tuple(a for a in range(3) if a != axis)
        assert alone.sum(axis=others) == pytest.approx(table.sum(axis=others))
    assert chi_square(alone, 1000) == pytest.approx(0, abs=1e-9)


def test_a_test_that_cannot_be_made_is_refused():
    answered = Answered(0.5, np.full((1, 4), 0.25), np.full((1, 4), 5))
    with pytest.raises(InputError, match="about 4 cells, not 6"):
        independence_test((2, 3), answered, SeededRandomness(1).uniform)
    with pytest.raises(InputError, match="at least 20 samples"):
        independence_test((2, 2), answered, SeededRandomness(1).uniform, samples=10)
