import itertools
import math

import numpy as np
import pytest
from scipy.stats import chisquare

from mpc_rr.errors import InputError
from mpc_rr.estimation.matrix import KeepOrUniform, MatrixError
from mpc_rr.estimation.views import (
    SubsetMechanism,
    ViewDesign,
    all_views,
    best_views,
    guessed_shares,
    mixed_views,
    view_pair_error,
    view_pair_errors,
)
from mpc_rr.randomness import SeededRandomness

SIZES = (2, 3, 4)


def people(n, seed=0):
    rng = np.random.default_rng(seed)
    first = rng.integers(0, 2, n)
    second = np.where(rng.random(n) < 0.6, first, rng.integers(0, 3, n))
    return np.stack([first, second, rng.integers(0, 4, n)], axis=1)


@pytest.mark.parametrize(("size", "epsilon", "chosen"), [(6, 0.5, 2), (6, 1.0, 3), (4, 3.0, 1)])
def test_reported_sets_have_the_probabilities_of_the_mechanism(size, epsilon, chosen):
    """All sets with the true value are equally likely, so are all without; χ² at 1 in 10,000."""
    mechanism, n = SubsetMechanism(size, epsilon, chosen), 60_000
    rows = mechanism.randomize(np.full(n, 1), SeededRandomness(2))
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
    mechanism, matrix = SubsetMechanism(5, 2.0, 1), KeepOrUniform.from_epsilon(5, 2.0)
    assert mechanism.hit == pytest.approx(matrix.keep + matrix.spread)
    assert mechanism.miss == pytest.approx(matrix.spread)


def test_the_number_of_chosen_values_has_the_smallest_variance():
    for size, epsilon in itertools.product((2, 5, 50), (0.1, 1.0, 4.0)):
        best = SubsetMechanism.best(size, epsilon)
        others = [SubsetMechanism(size, epsilon, w) for w in range(1, size)]
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
        estimate = design.estimate(
            design.randomize(records, SeededRandomness.from_generator(rng)), (0, 1)
        )
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
    estimate = design.estimate(design.randomize(records, SeededRandomness(0)), (1, 2))
    truth = np.zeros((3, 4))
    np.add.at(truth, (records[:, 1], records[:, 2]), 1 / len(records))
    np.testing.assert_allclose(estimate.shares, truth, atol=1e-6)


def test_pair_tables_are_distributions_that_agree():
    design = ViewDesign(SIZES, all_views(3, 2), 1.0)
    tables = design.pair_tables(design.randomize(people(2000), SeededRandomness(1)))
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
        (lambda: SubsetMechanism.best(1, 1.0), "two values", MatrixError),
        (lambda: SubsetMechanism.best(3, 0.0), "positive", MatrixError),
        (lambda: ViewDesign(SIZES, [], 1.0), "rising order", InputError),
        (lambda: ViewDesign(SIZES, [(1, 0)], 1.0), "rising order", InputError),
    ],
)
def test_bad_input_is_told(call, says, kind):
    with pytest.raises(kind, match=says):
        call()


def test_attributes_that_no_view_holds_together_are_told():
    design = ViewDesign(SIZES, [(0, 1)], 1.0)
    reports = design.randomize(people(5), SeededRandomness(0))
    with pytest.raises(InputError, match="no reported view holds"):
        design.estimate(reports, (0, 2))


@pytest.mark.parametrize(("size", "epsilon", "chosen", "group"), [(6, 1.0, 2, 2), (8, 0.5, 3, 1),
                                                                 (5, 3.0, 1, 2)])  # fmt: skip
def test_the_variance_of_a_report_is_exact(size, epsilon, chosen, group):
    """Against enumeration of all sets, for a true value in the group and outside it."""
    mechanism = SubsetMechanism(size, epsilon, chosen)
    sets = list(itertools.combinations(range(size), chosen))
    with_truth = sum(0 in s for s in sets)
    for share in (0.0, 0.3, 1.0):
        mean = square = 0.0
        for inside, weight in ((True, share), (False, 1 - share)):
            members = range(group) if inside else range(1, 1 + group)
            for s in sets:
                chance = mechanism.hit / with_truth if 0 in s else (
                    (1 - mechanism.hit) / (len(sets) - with_truth))  # fmt: skip
                seen = len(set(s) & set(members))
                mean += weight * chance * seen
                square += weight * chance * seen**2
        expected = (square - mean**2) / (mechanism.hit - mechanism.miss) ** 2
        assert float(mechanism.variance(np.array(share), group)) == pytest.approx(expected)
        unbiased = (mean - mechanism.held_by_chance(group)) / (mechanism.hit - mechanism.miss)
        assert unbiased == pytest.approx(share)


def test_views_with_hardly_any_respondents_do_not_decide_alone():
    """120 views for 300 people: 95 % intervals of cells still hold the truth (0.90 to 0.99)."""
    sizes, rng = (2,) * 16, np.random.default_rng(4)
    records = rng.integers(0, 2, (300, 16))
    design = ViewDesign(sizes, all_views(16, 2), 2.0)
    truth = (records[:, 0] == 1).mean()
    held = 0
    for _ in range(400):
        estimate = design.estimate(
            design.randomize(records, SeededRandomness.from_generator(rng)), (0,)
        )
        low, high = estimate.interval()
        assert (estimate.standard_errors > 0).all()
        held += low[1] <= truth <= high[1]
    assert 360 <= held <= 396


def test_a_pair_that_no_view_holds_comes_from_the_model():
    design = ViewDesign(SIZES, [(0, 1), (1, 2)], 3.0)
    tables = design.pair_tables(design.randomize(people(2000), SeededRandomness(1)))
    assert tables[0, 2].sum() == pytest.approx(1)


@pytest.mark.parametrize(
    ("views", "says"),
    [([(0, 1), (0, 1)], "given twice"), ([(0, 5)], "not among the 3"), ([(-1, 0)], "not among")],
)
def test_views_that_make_no_sense_are_told(views, says):
    with pytest.raises(InputError, match=says):
        ViewDesign(SIZES, views, 1.0)


def test_many_attributes_get_small_views():
    assert {len(view) for view in best_views((2,) * 66, 1.0)} == {2}
    with pytest.raises(InputError, match="at least two attributes"):
        best_views((3,), 1.0)


def test_large_views_are_drawn_in_pieces():
    mechanism = SubsetMechanism(50_000, 1.0, 10)
    rows = mechanism.randomize(np.full(200, 7), SeededRandomness(0))
    assert rows.shape == (200, 10)
    assert (np.diff(rows, axis=1) > 0).all()


# ── Views of several sizes ─────────────────────────────────────────────────────────────────────

ADULT = (9, 16, 7, 15, 6, 5, 2, 2)


def share_alone(views):
    return sum(w for view, w in views.items() if len(view) == 1) / sum(views.values())


def test_the_less_can_be_told_of_pairs_the_more_answer_one_attribute():
    shares = [share_alone(mixed_views(ADULT, 32_561, e)) for e in (0.25, 1.0, 2.0, 4.0)]
    assert shares == pytest.approx([0.8, 0.5, 0.2, 0.0], abs=0.01)
    few, many = (share_alone(mixed_views(ADULT, n, 2.0)) for n in (100, 10_000_000))
    assert few > 0.7
    assert many == 0


def test_mixed_views_hold_every_pair_and_favour_large_ones():
    views = mixed_views(ADULT, 32_561, 1.0)
    assert set(views) == {*((a,) for a in range(8)), *all_views(8, 2)}
    assert views[0, 1] > views[6, 7] >= 1
    assert views[1,] == pytest.approx(views[6,] * math.sqrt(15), rel=0.01)


def test_larger_views_are_taken_where_they_are_one_combination():
    assert {len(view) for view in mixed_views((2,) * 8, 10_000, 8.0)} != {2}
    assert {len(view) for view in best_views((2, 2, 3, 2, 2, 3, 2, 2, 2, 2, 6), 0.5)} == {3}
    mixed = mixed_views((2, 2, 3, 2, 2, 3, 2, 2, 2, 2, 6), 10_000, 0.5)
    assert {len(view) for view in mixed} == {1, 2}


def test_views_are_drawn_by_their_weights_whatever_the_record():
    """χ² of 40,000 draws at 1 in 10,000, for each of two records."""
    weights = np.array([1, 4, 95])
    for record in ((0, 0, 0), (1, 2, 3)):
        design = ViewDesign(SIZES, [(0,), (1, 2), (0, 2)], 1.0, weights.tolist())
        reports = design.randomize(np.tile(record, (40_000, 1)), SeededRandomness(8))
        found = np.bincount(reports.drawn, minlength=3)
        assert chisquare(found, 400 * weights).pvalue > 1e-4
        assert [len(reports.reports[view]) for view in design.views] == found.tolist()


def test_views_of_equal_weight_are_drawn_as_they_always_were():
    views, records = all_views(3, 2), people(500)
    drawn = ViewDesign(SIZES, views, 1.0).randomize(records, SeededRandomness(9)).drawn
    assert np.array_equal(drawn, SeededRandomness(9).below(3, (500,)))


@pytest.mark.parametrize("weights", [[1], [1, 0], [1, -1]])
def test_weights_that_make_no_sense_are_told(weights):
    with pytest.raises(InputError, match="positive integer"):
        ViewDesign(SIZES, [(0, 1), (1, 2)], 1.0, weights)


def test_views_drawn_half_as_often_tell_a_pair_as_half_the_people_do():
    """But for what it adds that others were asked, which is less than a hundredth."""
    views, shares = [(0, 1), (1, 2), (0, 2)], guessed_shares(SIZES)
    often = view_pair_errors(SIZES, views, 1.0, 900, shares, [2, 3, 4])
    even = [view_pair_errors(SIZES, views, 1.0, n, shares) for n in (600, 900, 1200)]
    expected = [even[0][0], even[1][2], even[2][1]]
    assert [often[0], often[2], often[1]] == pytest.approx(expected, rel=0.01)
