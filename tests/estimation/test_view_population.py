"""One population from reports of views: what is told, who is believed, and that nothing breaks."""

import functools
import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mpc_rr.errors import InputError
from mpc_rr.estimation.count_classes import Mixture, allotted, draw_records
from mpc_rr.estimation.tallies import Tallies, tallies_by_part
from mpc_rr.estimation.view_population import fit_views, records_given
from mpc_rr.estimation.view_votes import Votes, candidates, overruled, pooled_margin
from mpc_rr.estimation.views import FittedViews, ViewDesign, ViewReports, all_views
from mpc_rr.randomness import SeededRandomness

SIZES = (2, 3, 4, 2)
SINGLES = [(0,), (1,), (2,), (3,)]


def people(n, seed=0):
    """The first two attributes depend on each other, the others on nothing."""
    rng = np.random.default_rng(seed)
    first = rng.integers(0, 2, n)
    second = np.where(rng.random(n) < 0.7, first, rng.integers(0, 3, n))
    rest = [rng.integers(0, 4, n), (rng.random(n) < 0.2).astype(np.int64)]
    return np.stack([first, second, *rest], axis=1)


def truth(records, attributes):
    table = np.zeros([SIZES[a] for a in attributes])
    np.add.at(table, tuple(records[:, a] for a in attributes), 1 / len(records))
    return table


def reported(records, views, epsilon, seed=3):
    design = ViewDesign(SIZES, views, epsilon)
    return design, design.randomize(records, SeededRandomness(seed))


def everything(design, reports):
    return functools.reduce(Tallies.__add__, tallies_by_part(design, reports))


# ── What is told ───────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("views", [all_views(4, 2), all_views(4, 3), [(0, 1, 2, 3)]])
@pytest.mark.parametrize("epsilon", [0.5, 3.0])
def test_views_of_one_size_tell_the_unbiased_tables(views, epsilon):
    design, reports = reported(people(900), views, epsilon)
    told, fitted = everything(design, reports), FittedViews(design, reports)
    for pair in itertools.combinations(range(4), 2):
        assert np.allclose(told.pair(*pair).estimate, fitted.unbiased(pair).shares)
    for a in range(4):
        assert np.allclose(told.margin(a).estimate, fitted.unbiased((a,)).shares)


@pytest.mark.parametrize("views", [all_views(4, 2), all_views(4, 3), [*SINGLES, (0, 1)]])
def test_variances_are_those_of_repeated_reports(views):
    """Of 300 reports of the same people, of random views: the mean squared error of each table is
    within 30 % of what was said (a tenth is 1.9 standard errors of it, for 12 cells at once)."""
    records, pair = people(1500), (0, 1)
    errors, said = 0.0, 0.0
    for seed in range(300):
        design, reports = reported(records, views, 1.5, seed)
        told = everything(design, reports).pair(*pair)
        errors += ((told.estimate - truth(records, pair)) ** 2).sum() / 300
        said += told.variances(truth(records, pair)).sum() / 300
    assert 0.7 < errors / said < 1.3


def test_parts_add_up_and_follow_from_the_reports():
    design, reports = reported(people(203), [*SINGLES, *all_views(4, 2)], 1.0)
    parts, again = tallies_by_part(design, reports), tallies_by_part(design, reports)
    assert sum(part.n for part in parts) == 203
    assert max(p.n for p in parts) - min(p.n for p in parts) <= 10
    for part, same in zip(parts, again, strict=True):
        assert np.array_equal(part.pairs, same.pairs)
    total = everything(design, reports)
    rest = total - parts[0]
    assert np.allclose(rest.pairs, (parts[1] + parts[2] + parts[3]).pairs)


def test_what_nobody_reported_is_told_by_nobody():
    design, reports = reported(people(100), [(0, 1), (2,)], 1.0)
    total = everything(design, reports)
    assert total.pair(0, 2) is None
    assert total.margin(3) is None
    assert np.allclose(pooled_margin(total, 3), 0.5)
    assert not total.alone[0, total.places[0]].any()
    assert total.alone[0, total.places[2]].any()


# ── Who is believed ────────────────────────────────────────────────────────────────────────────


def test_a_pooled_margin_is_a_distribution_near_the_unbiased_one():
    records = people(20_000)
    design, reports = reported(records, all_views(4, 2), 4.0)
    for a in range(4):
        margin = pooled_margin(everything(design, reports), a)
        assert margin.sum() == pytest.approx(1)
        assert (margin > 0).all()
        assert abs(margin - truth(records, (a,))).max() < 0.03


def test_answers_overrule_what_they_contradict_and_only_that():
    """20,000 at ε = 6: the dependence of the first pair is 80 standard errors."""
    records = people(20_000)
    design, reports = reported(records, all_views(4, 2), 6.0)
    told = everything(design, reports)
    for pair, changes in (((0, 1), True), ((2, 3), False)):
        product = np.outer(truth(records, pair[:1]), truth(records, pair[1:]))[np.newaxis]
        found = overruled(product, told.pair(*pair))[0]
        assert abs(found - truth(records, pair)).sum() < 0.05
        assert (abs(found - product[0]).sum() > 0.2) == changes


def test_candidates_keep_being_distributions():
    design, reports = reported(people(500), all_views(4, 2), 0.5)
    told = everything(design, reports)
    margins = [pooled_margin(told, a) for a in range(4)]
    joints = np.array([Mixture.independent(margins).joint] * 5)
    found = candidates(joints, margins, told, (1, 2))
    assert np.allclose(found.sum(axis=(1, 2)), 1)
    assert (found >= 0).all()


def test_votes_learn_from_all_pairs_what_is_usual():
    """A candidate that is right for nearly all pairs is believed of one that tells nothing."""
    logs = np.zeros((20, 18))
    logs[:19, 4] = 20.0
    votes = Votes.of({(0, k + 1): row for k, row in enumerate(logs)})
    assert votes.of_pairs[0, 20][4] > 0.5
    nothing = Votes.of({(0, 1): np.zeros(18)})
    assert nothing.usual[0] > 0.8
    assert np.allclose(nothing.of_pairs[0, 1].sum(), 1)


# ── The population ─────────────────────────────────────────────────────────────────────────────


@given(st.lists(st.floats(0.001, 1), min_size=1, max_size=8), st.integers(0, 500))
def test_rows_are_allotted_within_one(shares, rows):
    found, wanted = allotted(np.array(shares), rows), np.array(shares) / sum(shares) * rows
    assert found.sum() == rows
    assert abs(found - wanted).max() <= 1 + 1e-6


def test_drawn_records_have_the_mixtures_tables():
    rng = np.random.default_rng(1)
    profiles = np.concatenate([rng.dirichlet(np.ones(k), 3) for k in SIZES], axis=1)
    mixture = Mixture(SIZES, np.array([0.2, 0.3, 0.5]), profiles)
    records = draw_records(mixture, 40_000, rng)
    assert len(records) == 40_000
    block = mixture.joint[0:2, 2:5]
    assert abs(truth(records, (0, 1)) - block).max() < 0.01
    assert abs(truth(records, (2,)) - mixture.shares @ profiles[:, 5:9]).max() < 1e-3


def test_records_given_reports_keep_what_is_told():
    """At ε = 12 nearly everybody has what was reported, at 1e-9 nobody but by chance."""
    mixture = Mixture.independent([np.full(k, 1 / k) for k in SIZES])
    told = np.arange(24).repeat(500)
    for epsilon, least, most in ((12.0, 0.99, 1.0), (1e-9, 0.0, 0.1)):
        design = ViewDesign(SIZES, [(0, 1, 2)], epsilon)
        made = records_given(mixture, design, (0, 1, 2), told, np.random.default_rng(2))
        cells = np.ravel_multi_index(tuple(made[:, :3].T), SIZES[:3])
        assert least <= (cells == told).mean() <= most


def test_everything_is_counted_in_one_population():
    records = people(20_000)
    design, reports = reported(records, all_views(4, 2), 3.0)
    found = fit_views(design, reports)
    for pair in itertools.combinations(range(4), 2):
        assert abs(found.population.table(pair) - truth(records, pair)).sum() < 0.08
    assert abs(found.population.table((0, 1, 3)) - truth(records, (0, 1, 3))).sum() < 0.1
    assert 0 <= found.independence <= 1
    again = fit_views(design, reports)
    assert np.array_equal(again.population.weights, found.population.weights)


def test_a_few_strong_pairs_are_found_among_many_that_do_not_depend():
    """Eleven binary attributes, two pairs of them the same answer: the two are found, and of the
    others, three quarters of the noise that makes them look dependent is not believed."""
    rng = np.random.default_rng(4)
    records = (rng.random((10_000, 11)) < 0.1).astype(np.int64)
    records[:, 1], records[:, 5] = records[:, 0], records[:, 4]
    design = ViewDesign((2,) * 11, all_views(11, 2), 2.0)
    reports = design.randomize(records, SeededRandomness(5))
    population, off, noise = fit_views(design, reports).population, {}, {}

    def beyond_independence(table):
        return abs(table[1, 1] - table.sum(axis=1)[1] * table.sum(axis=0)[1])

    for pair in all_views(11, 2):
        off[pair] = beyond_independence(population.table(pair))
        noise[pair] = beyond_independence(design.estimate(reports, pair).shares)
    assert min(off.pop((0, 1)), off.pop((4, 5))) > 0.03
    del noise[0, 1], noise[4, 5]
    assert sum(off.values()) < 0.25 * sum(noise.values())


def test_large_budgets_tell_what_goes_together_beyond_pairs():
    """The third answer is the exclusive or of two others: every pair is independent."""
    rng = np.random.default_rng(6)
    first, second = rng.integers(0, 2, 8000), rng.integers(0, 2, 8000)
    records = np.stack([first, second, first ^ second], axis=1)
    design = ViewDesign((2, 2, 2), [(0, 1, 2)], 8.0)
    table = fit_views(design, design.randomize(records, SeededRandomness(7))).population.table(
        (0, 1, 2)
    )
    assert table[first, second, records[:, 2]].min() > 0.2


@settings(max_examples=15, deadline=None)
@given(
    st.integers(1, 6),
    st.sampled_from([0.1, 2.0, 30.0]),
    st.sampled_from([[(0, 1)], [(2,)], [*SINGLES, *all_views(4, 2)], all_views(4, 3)]),
)
def test_the_smallest_studies_have_a_population(n, epsilon, views):
    design, reports = reported(people(n), views, epsilon, seed=n)
    population = fit_views(design, reports).population
    for attributes in ((0,), (0, 3), (0, 1, 2)):
        table = population.table(attributes)
        assert np.isfinite(table).all()
        assert table.min() >= 0
        assert table.sum() == pytest.approx(1)


def test_nobody_is_nothing_to_estimate_from():
    design = ViewDesign(SIZES, [(0, 1)], 1.0)
    empty = ViewReports(np.zeros(0, dtype=np.int64), {(0, 1): np.zeros((0, 1), dtype=np.int64)})
    with pytest.raises(InputError, match="no reported answers"):
        fit_views(design, empty)
