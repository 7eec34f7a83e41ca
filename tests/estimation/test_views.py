import itertools
import math

import numpy as np
import pytest
from scipy.stats import chisquare

from mpc_rr.errors import InputError
from mpc_rr.estimation.matrix import KeepOrUniform, MatrixError
from mpc_rr.estimation.views import (
    SubsetSelection,
    ViewDesign,
    all_views,
    best_views,
    guessed_shares,
    view_pair_error,
)

SIZES = (2, 3, 4)


def people(n, seed=0):
    rng = np.random.default_rng(seed)
    first = rng.integers(0, 2, n)
    second = np.where(rng.random(n) < 0.6, first, rng.integers(0, 3, n))
    return np.stack([first, second, rng.integers(0, 4, n)], axis=1)


@pytest.mark.parametrize(("size", "epsilon", "chosen"), [(6, 0.5, 2), (6, 1.0, 3), (4, 3.0, 1)])
def test_reported_sets_have_the_probabilities_of_the_mechanism(size, epsilon, chosen):
    """All sets with the true value are equally likely, so are all without; χ² at 1 in 10,000."""
    mechanism, n = SubsetSelection(size, epsilon, chosen), 60_000
    rows = mechanism.randomize(np.full(n, 1), np.random.default_rng(2).random)
    sets = list(itertools.combinations(range(size), chosen))
    found = np.zeros(len(sets))
    for row, count in zip(*np.unique(rows, axis=0, return_counts=True), strict=True):
        found[sets.index(tuple(row))] = count
    holding = np.array([1 in s for s in sets])
    expected = np.where(
        holding, mechanism.hit / holding.sum(), (1 - mechanism.hit) / max((~holding).sum(), 1)
    )
    assert chisquare(found, n * expected).pvalue > 1e-4
    ratio = expected[holding].max() / expected[~holding].min()
    assert math.log(ratio) == pytest.approx(epsilon)


def test_one_chosen_value_is_k_ary_randomized_response():
    mechanism, matrix = SubsetSelection(5, 2.0, 1), KeepOrUniform.from_epsilon(5, 2.0)
    assert mechanism.hit == pytest.approx(matrix.keep + matrix.spread)
    assert mechanism.miss == pytest.approx(matrix.spread)


def test_the_number_of_chosen_values_has_the_smallest_variance():
    for size, epsilon in itertools.product((2, 5, 50), (0.1, 1.0, 4.0)):
        best = SubsetSelection.best(size, epsilon)
        others = [SubsetSelection(size, epsilon, w) for w in range(1, size)]
        assert best.variance_per_person == min(o.variance_per_person for o in others)


@pytest.mark.parametrize("epsilon", [0.5, 4.0])
@pytest.mark.parametrize("together", [2, 3])
def test_pooled_tables_are_unbiased_and_their_intervals_cover(epsilon, together):
    """300 fresh samples; each cell's 95 % interval covers the population in 91 to 99 % of them
    (about 3 to 4 standard errors of that share)."""
    rng = np.random.default_rng(4)
    truth = 0.5 * (0.6 * np.eye(2, 3) + 0.4 / 3)
    design = ViewDesign(SIZES, all_views(3, together), epsilon)
    hits, shares = [], []
    for _ in range(300):
        records = people(3000, seed=rng.integers(2**32))
        estimate = design.estimate(design.randomize(records, rng.random), (0, 1))
        low, high = estimate.interval()
        hits.append((low <= truth) & (truth <= high))
        shares.append(estimate.shares)
    covered, mean = np.mean(hits, axis=0), np.mean(shares, axis=0)
    assert ((covered >= 0.91) & (covered <= 0.99)).all(), covered
    assert (abs(mean - truth) < 5 * np.std(shares, axis=0) / np.sqrt(300)).all()


def test_more_respondents_than_a_buffer_holds():
    """numpy's index routines went wrong on columns of more than 8,192 numbers."""
    records = people(30_000)
    design = ViewDesign(SIZES, [(0, 1, 2)], 30.0)
    estimate = design.estimate(design.randomize(records, np.random.default_rng(0).random), (1, 2))
    truth = np.zeros((3, 4))
    np.add.at(truth, (records[:, 1], records[:, 2]), 1 / len(records))
    np.testing.assert_allclose(estimate.shares, truth, atol=1e-6)


def test_pair_tables_are_distributions_that_agree():
    design = ViewDesign(SIZES, all_views(3, 2), 1.0)
    tables = design.pair_tables(design.randomize(people(2000), np.random.default_rng(1).random))
    for table in tables.values():
        assert table.min() >= 0
        assert table.sum() == pytest.approx(1)
    np.testing.assert_allclose(tables[0, 1].sum(axis=1), tables[0, 2].sum(axis=1), atol=1e-6)
    np.testing.assert_allclose(tables[0, 1].sum(axis=0), tables[1, 2].sum(axis=1), atol=1e-6)


def test_larger_budgets_choose_larger_views():
    sizes = (9, 16, 7, 15, 6, 5, 2, 2)
    together = [len(best_views(sizes, epsilon)[0]) for epsilon in (1.0, 4.6, 10.7, 16.0, 22.0)]
    assert together == sorted(together)
    assert together[0] == 2
    assert together[-1] == 8


def test_views_that_miss_a_pair_predict_an_infinite_error():
    shares = guessed_shares(SIZES)
    assert view_pair_error(SIZES, [(0, 1)], 1.0, (0, 2), 100, shares) == math.inf


@pytest.mark.parametrize(
    ("call", "says", "kind"),
    [
        (lambda: SubsetSelection.best(1, 1.0), "two values", MatrixError),
        (lambda: SubsetSelection.best(3, 0.0), "positive", MatrixError),
        (lambda: ViewDesign(SIZES, [], 1.0), "rising order", InputError),
        (lambda: ViewDesign(SIZES, [(1, 0)], 1.0), "rising order", InputError),
    ],
)
def test_bad_input_is_told(call, says, kind):
    with pytest.raises(kind, match=says):
        call()


def test_attributes_that_no_view_holds_together_are_told():
    design = ViewDesign(SIZES, [(0, 1)], 1.0)
    reports = design.randomize(people(5), np.random.default_rng(0).random)
    with pytest.raises(InputError, match="no reported view holds"):
        design.estimate(reports, (0, 2))
