import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mpc_rr.errors import InputError
from mpc_rr.estimation.designs import Design, Fitted, rr_clusters, rr_independent
from mpc_rr.estimation.latent import Answers, LatentClasses, latent_classes
from mpc_rr.estimation.matrix import DistanceWeighted, MatrixError
from mpc_rr.estimation.tables import best_pair_tables, shrunk_pair
from mpc_rr.estimation.views import SubsetMechanism, ViewDesign, all_views
from mpc_rr.randomness import SeededRandomness

SIZES = (2, 3, 4)


def people(n, seed=0):
    """Everything depends on a hidden kind of person."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, 2, n)
    noisy = [np.where(rng.random(n) < 0.7, kind, rng.integers(0, size, n)) for size in SIZES]
    return np.stack(noisy, axis=1)


def table(records, attributes):
    shape = tuple(SIZES[a] for a in attributes)
    counts = np.zeros(shape)
    np.add.at(counts, tuple(records[:, a] for a in attributes), 1 / len(records))
    return counts


def likelihood_by_enumeration(model, answers, respondents):
    """Σ over classes, over all true combinations; nothing of the fast formulas is used."""
    total = 0.0
    for person in range(respondents):
        probability = 0.0
        for share, *profiles in zip(model.shares, *model.profiles, strict=True):
            product = share
            for group in answers:
                for row in np.nonzero(group.who == person)[0]:
                    product *= _report_probability(group, group.reported[row], profiles)
            probability += product
        total += math.log(probability)
    return total / respondents


def _report_probability(group, report, profiles):
    """Relative to a report that holds the truth with certainty: in the unit of the module."""
    boost = math.exp(group.epsilon)
    chosen = {tuple(int(code) for code in row) for row in report}
    probability = 0.0
    for cell in itertools.product(*(range(len(profiles[a])) for a in group.view)):
        held = math.prod(profiles[a][code] for a, code in zip(group.view, cell, strict=True))
        probability += held * (boost if cell in chosen else 1.0)
    return probability / boost


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=15, deadline=None)
def test_the_likelihood_is_that_of_the_definition_and_never_falls(seed):
    records = people(40, seed)
    design = ViewDesign(SIZES, all_views(3, 2), 1.0)
    assert any(m.chosen > 1 for m in design.mechanisms.values())
    answers = design.answers(design.randomize(records, SeededRandomness(seed)))
    before = None
    for iterations in (1, 2, 5):
        options = {"classes": 3, "tolerance": -1, "prior": 0}
        fit = latent_classes(answers, SIZES, 40, most_iterations=iterations, **options)
        # The likelihood told is that before the last step: compare with one step less.
        if iterations > 1:
            earlier = latent_classes(answers, SIZES, 40, most_iterations=iterations - 1, **options)
            by_hand = likelihood_by_enumeration(earlier, answers, 40)
            assert fit.log_likelihood == pytest.approx(by_hand, abs=1e-9)
        if before is not None:
            assert fit.log_likelihood >= before - 1e-12
        before = fit.log_likelihood


@pytest.mark.parametrize("clusters", [[(0,), (1,), (2,)], [(0, 2), (1,)]])
def test_one_class_is_independence_and_many_find_the_dependence(clusters):
    records = people(30_000)
    design = rr_clusters(SIZES, clusters, [1.5] * 3)
    fitted = Fitted(design, design.randomize(records, SeededRandomness(1)))
    one = latent_classes(fitted.answers(), SIZES, fitted.n, classes=1)
    np.testing.assert_allclose(
        one.table((0, 1)), np.outer(one.table((0,)), one.table((1,))), atol=1e-12
    )
    many = latent_classes(fitted.answers(), SIZES, fitted.n, classes=6)
    for pair in itertools.combinations(range(3), 2):
        truth = table(records, pair)
        assert abs(many.table(pair) - truth).sum() < 0.05
        assert abs(one.table(pair) - truth).sum() > 0.2


def test_tables_and_synthetic_records_come_from_the_same_joint():
    rng = np.random.default_rng(2)
    profiles = tuple(rng.dirichlet(np.ones(size), 3) for size in SIZES)
    model = LatentClasses(rng.dirichlet(np.ones(3)), profiles, 0, True, 0.0)
    joint = model.table((0, 1, 2))
    assert joint.sum() == pytest.approx(1)
    np.testing.assert_allclose(joint.sum(axis=1), model.table((0, 2)), atol=1e-12)
    np.testing.assert_allclose(model.table((2, 0)), model.table((0, 2)).T, atol=1e-12)
    drawn = model.synthesize(40_000, rng.random)
    # 24 cells, each within 5 standard errors: a false alarm once in 70,000.
    error = 5 * np.sqrt(joint * (1 - joint) / 40_000)
    assert (abs(table(drawn, (0, 1, 2)) - joint) < error).all()


def test_the_same_answers_give_the_same_fit():
    design = rr_independent(SIZES, 0.4)
    fitted = Fitted(design, design.randomize(people(500), SeededRandomness(3)))
    first, second = (latent_classes(fitted.answers(), SIZES, 500) for _ in range(2))
    np.testing.assert_array_equal(first.table((0, 1)), second.table((0, 1)))


def test_best_tables_beat_shrinking_towards_independence():
    """Ten data sets of 4,000, ε about 3.3: the mean error is at least a twentieth smaller."""
    design, errors = rr_independent(SIZES, 0.4), {"best": 0.0, "shrunk": 0.0}
    for seed in range(10):
        records = people(4000, seed)
        fitted = Fitted(design, design.randomize(records, SeededRandomness(seed)))
        best = best_pair_tables(fitted, classes=4)
        for pair, found in best.items():
            errors["best"] += abs(found - table(records, pair)).sum()
            errors["shrunk"] += abs(shrunk_pair(fitted, *pair) - table(records, pair)).sum()
    assert errors["best"] < 0.95 * errors["shrunk"]


def test_starting_margins_allow_for_subset_selection():
    """From reports of several values at once, the margins come out near the truth."""
    records = people(30_000)
    design = ViewDesign(SIZES, [(0, 2), (1, 2)], 0.8)
    assert design.mechanisms[1, 2] == SubsetMechanism.best(12, 0.8)
    assert design.mechanisms[1, 2].chosen > 1
    answers = design.answers(design.randomize(records, SeededRandomness(4)))
    start = latent_classes(answers, SIZES, len(records), classes=1, most_iterations=1)
    for attribute in range(3):
        np.testing.assert_allclose(
            start.table((attribute,)), table(records, (attribute,)), atol=0.06
        )


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: latent_classes([], SIZES, 5), "no reported answers"),
        (lambda: latent_classes([_nobody()], SIZES, 0), "no reported answers"),
        (lambda: latent_classes([_nobody()], SIZES, 5, classes=0), "at least one class"),
        (lambda: _model().table((0, 0)), "different attributes"),
        (lambda: _model().table(()), "different attributes"),
    ],
)
def test_bad_input_is_told(call, says):
    with pytest.raises(InputError, match=says):
        call()


def test_other_matrices_are_refused():
    design = Design(SIZES, ((0, 1, 2),), (DistanceWeighted(SIZES, 0.5),))
    with pytest.raises(MatrixError, match="kept or uniform"):
        Fitted(design, people(10)).answers()


def _nobody():
    return Answers((0,), np.zeros(0, int), np.zeros((0, 1, 1), int), 1.0)


def _model():
    return LatentClasses(np.ones(1), tuple(np.ones((1, s)) / s for s in SIZES), 0, True, 0.0)


def test_many_attributes_do_not_underflow():
    sizes = (10,) * 200
    rng = np.random.default_rng(0)
    records = rng.integers(0, 10, (30, 200))
    design = rr_clusters(sizes, [(a,) for a in range(200)], [4.0] * 200)
    fitted = Fitted(design, design.randomize(records, SeededRandomness.from_generator(rng)))
    fit = latent_classes(fitted.answers(), sizes, 30, classes=3, most_iterations=5)
    assert np.isfinite(fit.table((0, 1))).all()
    assert np.isfinite(fit.log_likelihood)


def test_a_hundred_respondents_do_not_make_the_classes_follow_the_noise():
    """Independent answers of 60: without the invented respondents the tables are far off."""
    errors = {0.0: 0.0, 3.0: 0.0}
    for seed in range(5):
        rng = np.random.default_rng(seed)
        records = np.stack([rng.integers(0, 4, 60), rng.integers(0, 3, 60)], axis=1)
        design = rr_independent((4, 3), 0.5)
        fitted = Fitted(design, design.randomize(records, SeededRandomness.from_generator(rng)))
        for prior in errors:
            model = latent_classes(fitted.answers(), (4, 3), 60, prior=prior)
            errors[prior] += abs(model.table((0, 1)) - np.full((4, 3), 1 / 12)).sum()
    assert errors[3.0] < 0.8 * errors[0.0]
