import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpc_rr.estimation.blocks import collect, epsilon_bound, pooled, truth_for_total
from mpc_rr.estimation.combinations import combination_views
from mpc_rr.estimation.designs import Design, Fitted, rr_clusters, rr_independent, rr_joint
from mpc_rr.estimation.matrix import Dense, KeepOrUniform
from mpc_rr.estimation.planning import (
    block_choices,
    block_error,
    design_pair_error,
    keep_for_total,
    lambdas_for_total,
    pairs_of,
)
from mpc_rr.estimation.views import ViewDesign, all_views, guessed_shares, view_pair_error
from mpc_rr.randomness import SeededRandomness

SIZES = (3, 4, 5, 2)
N = 20_000
OTHERWISE = Design((2, 2), ((0,), (1,)), (Dense(np.array([[0.8, 0.2], [0.4, 0.6]])),) * 2)
"""Of a matrix that does not keep or replace."""


def population(seed=0):
    """Skewed and dependent, like people."""
    rng = np.random.default_rng(seed)
    joint = rng.dirichlet(np.full(120, 0.3))
    cells = rng.choice(120, N, p=joint)
    return np.stack(np.unravel_index(cells, SIZES), axis=1)


def true_tables(records):
    tables = {}
    for i, j in itertools.combinations(range(len(SIZES)), 2):
        tables[i, j] = np.zeros((SIZES[i], SIZES[j]))
        np.add.at(tables[i, j], (records[:, i], records[:, j]), 1 / len(records))
    return tables


@pytest.mark.parametrize(
    "design",
    [
        rr_independent(SIZES, 0.3),
        rr_clusters(SIZES, [(0, 1), (2,), (3,)], [1.0] * 4),
        rr_joint(SIZES, 4.0),
    ],
    ids=["independent", "clusters", "joint"],
)
def test_predicted_and_observed_error_agree_within_10_percent(design):
    records, rng = population(), np.random.default_rng(1)
    truth = true_tables(records)
    predicted = np.mean([design_pair_error(design, p, N, truth) for p in truth])
    observed = []
    for _ in range(20):
        fitted = Fitted(design, design.randomize(records, SeededRandomness.from_generator(rng)))
        observed.append(np.mean([abs(fitted.unbiased(p).shares - truth[p]).sum() for p in truth]))
    assert np.mean(observed) == pytest.approx(predicted, rel=0.1)


@pytest.mark.parametrize(
    ("together", "epsilon"), [(2, 0.25), (2, 1.0), (3, 0.5), (2, 4.0), (3, 4.0), (3, 16.0)]
)
def test_predicted_and_observed_error_of_views_agree_within_10_percent(together, epsilon):
    records, rng = population(), np.random.default_rng(2)
    truth, views = true_tables(records), all_views(4, together)
    design = ViewDesign(SIZES, views, epsilon)
    predicted = np.mean([view_pair_error(SIZES, views, epsilon, p, N, truth) for p in truth])
    observed = []
    for _ in range(30):
        reports = design.randomize(records, SeededRandomness.from_generator(rng))
        found = [abs(design.estimate(reports, p).shares - truth[p]).sum() for p in truth]
        observed.append(np.mean(found))
    assert np.mean(observed) == pytest.approx(predicted, rel=0.1)


@pytest.mark.parametrize("epsilon", [0.01, 3.0, 50.0])
def test_lambdas_share_their_strength_and_the_budget(epsilon):
    lambdas = lambdas_for_total(SIZES, epsilon)
    matrices = [KeepOrUniform(*one) for one in zip(SIZES, lambdas, strict=True)]
    assert sum(m.epsilon for m in matrices) == pytest.approx(epsilon, rel=1e-3)
    betas = [m.beta for m in matrices]
    assert max(betas) - min(betas) < 1e-6


@pytest.mark.parametrize("epsilon", [0.01, 3.0, 50.0])
def test_answers_kept_alike_spend_the_budget(epsilon):
    keep = keep_for_total(SIZES, epsilon)
    spent = sum(KeepOrUniform(size, keep).epsilon for size in SIZES)
    assert spent == pytest.approx(epsilon, rel=1e-3)


def test_a_pair_of_any_matrices_is_planned_as_it_turns_out():
    """Against the mean of 3,000 randomizations; 5 % is over six standard errors of that mean."""
    records = np.repeat([[0, 0], [0, 1], [1, 1]], [500, 200, 300], axis=0)
    truth = np.array([[0.5, 0.2], [0.0, 0.3]])
    rng, errors = SeededRandomness(1), []
    for _ in range(3000):
        fitted = Fitted(OTHERWISE, OTHERWISE.randomize(records, rng))
        errors.append(abs(fitted.unbiased((0, 1)).shares - truth).sum())
    assert np.mean(errors) == pytest.approx(
        design_pair_error(OTHERWISE, (0, 1), 1000, {(0, 1): truth}), rel=0.05
    )


def test_pairs():
    assert pairs_of((2, 2, 2)) == [(0, 1), (0, 2), (1, 2)]


@pytest.mark.parametrize("epsilon", [1.0, 2.0, 4.0, 8.0])
@pytest.mark.parametrize("sizes", [(2, 2, 2, 2), (3, 2, 2, 2, 2, 3), (2, 3, 4, 5), (4, 4, 4, 4)])
def test_tables_that_follow_do_not_pay_at_an_equal_true_budget(sizes, epsilon):
    """ERRATA: in all 16 settings a floor of 1, plain randomized response, was best."""
    choices = block_choices(sizes, 8000, epsilon, guessed_shares(sizes))
    assert choices[0].floor == 1.0
    assert choices[0].error < 0.9 * choices[-1].error


@pytest.mark.parametrize("sizes", [(3, 2, 2, 2), (5, 4, 3, 2, 2, 6)])
@pytest.mark.parametrize("epsilon", [0.3, 3.0, 12.0])
def test_the_price_of_a_planned_choice_is_the_budget(sizes, epsilon):
    """Of the dearest view: a third of it was spent, as if each table were the largest (M10)."""
    for choice in block_choices(sizes, 1000, epsilon, guessed_shares(sizes)):
        spent = max(
            sum(epsilon_bound(choice.p, choice.floor, sizes[a] * sizes[b]) for a, b in view)
            for view in combination_views(len(sizes), 2)
        )
        assert spent == pytest.approx(epsilon, rel=1e-9)
        assert spent <= epsilon * (1 + 1e-9)


@given(
    st.floats(0.01, 60), st.floats(1e-4, 1), st.lists(st.integers(2, 400), min_size=1, max_size=5)
)
def test_truth_for_a_total_budget_spends_it_and_no_more(epsilon, floor, cells):
    p = truth_for_total(epsilon, floor, cells)
    spent = sum(epsilon_bound(p, floor, size) for size in cells)
    assert 0 < p < 1
    assert spent <= epsilon * (1 + 1e-9)
    assert spent == pytest.approx(epsilon, rel=1e-6) or p > 1 - 1e-8


def test_the_predicted_error_of_blocks_comes_out():
    """Within 6 %: mean L1 over 400 collections of one pair (standard error 1.8 %)."""
    truth = np.array([0.5, 0.25, 0.15, 0.1])
    cells = np.repeat(np.arange(4), (truth * 4000).astype(int))
    found = []
    for seed in range(400):
        rng = np.random.default_rng(seed)
        run = collect(
            rng.permutation(cells), 4, 0.4, 100, SeededRandomness.from_generator(rng), floor=0.5
        )
        found.append(np.abs(pooled(run.answered).shares - truth).sum())
    assert np.mean(found) == pytest.approx(block_error(truth, 0.4, 0.5, 4000), rel=0.06)
