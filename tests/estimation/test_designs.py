import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpc_rr.errors import InputError
from mpc_rr.estimation import designs
from mpc_rr.estimation.conditions import Cells, conjunction
from mpc_rr.estimation.designs import (
    Design,
    Fitted,
    check_records,
    one_by_one,
    rr_clusters,
    rr_independent,
    rr_joint,
)
from mpc_rr.estimation.distribution import subset_share
from mpc_rr.estimation.matrix import (
    Dense,
    DistanceWeighted,
    KeepOrUniform,
    MatrixError,
    nearby,
)
from mpc_rr.estimation.raking import adjust
from mpc_rr.estimation.tables import likely_pair
from mpc_rr.randomness import SeededRandomness

SIZES = (2, 3, 2)


def people(n=40_000, seed=0):
    """Attributes 0 and 1 depend on each other; 2 is independent."""
    rng = np.random.default_rng(seed)
    first = rng.integers(0, 2, n)
    second = np.where(rng.random(n) < 0.7, first, rng.integers(0, 3, n))
    return np.stack([first, second, rng.integers(0, 2, n)], axis=1)


def truth(records, attributes):
    shape = tuple(SIZES[a] for a in attributes)
    flat = np.ravel_multi_index(tuple(records[:, a] for a in attributes), shape)
    return np.bincount(flat, minlength=math.prod(shape)).reshape(shape) / len(records)


DESIGNS = {
    "independent": rr_independent(SIZES, 0.6),
    "clusters": rr_clusters(SIZES, [(1, 0), (2,)], [2.0, 2.0, 2.0]),
    "joint": rr_joint(SIZES, 5.0),
    "distance": Design(SIZES, ((0, 1, 2),), (DistanceWeighted(SIZES, 0.8),)),
}


@pytest.mark.parametrize("name", DESIGNS)
@pytest.mark.parametrize("attributes", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
def test_the_joint_of_all_attributes_is_estimated_without_bias(name, attributes):
    """Every cell within 5 standard errors (a false alarm in a hundred thousand seeds)."""
    records, design = people(), DESIGNS[name]
    fitted = Fitted(design, design.randomize(records, SeededRandomness(1)))
    estimate = fitted.unbiased(attributes)
    error = abs(estimate.shares - truth(records, attributes))
    assert (error < 5 * estimate.standard_errors).all()


@pytest.mark.parametrize("name", DESIGNS)
@pytest.mark.parametrize("attributes", [(0,), (1, 0), (0, 2), (2, 1)])
def test_tables_of_some_attributes(name, attributes):
    records, design = people(), DESIGNS[name]
    fitted = Fitted(design, design.randomize(records, SeededRandomness(2)))
    estimate = fitted.unbiased(attributes)
    assert (abs(estimate.shares - truth(records, attributes)) < 5 * estimate.standard_errors).all()
    subset = np.zeros(estimate.shares.shape)
    subset.flat[:1] = 1
    share, error = fitted.subset(attributes, subset)
    assert share == pytest.approx(float((estimate.shares * subset).sum()))
    assert abs(share - (truth(records, attributes) * subset).sum()) < 5 * error


def test_between_clusters_the_paper_multiplies():
    records, design = people(), DESIGNS["clusters"]
    fitted = Fitted(design, design.randomize(records, SeededRandomness(3)))
    table = fitted.table((2, 0))
    np.testing.assert_allclose(table, np.outer(fitted.table((2,)), fitted.table((0,))))
    np.testing.assert_allclose(fitted.table((0, 1)), truth(records, (0, 1)), atol=0.02)
    assert fitted.table((1, 2, 0)).shape == (3, 2, 2)


@pytest.mark.parametrize("repair", ["clip", "project", "likelihood"])
def test_every_repair_gives_a_distribution(repair):
    design = rr_clusters(SIZES, [(0, 1), (2,)], [0.4] * 3)
    records = people(200)
    fitted = Fitted(design, design.randomize(records, SeededRandomness(4)))
    table = fitted.table((0, 1), repair)
    assert table.min() >= 0
    assert table.sum() == pytest.approx(1)


def test_a_huge_joint_is_never_enumerated():
    sizes = (1000, 1000, 1000, 2)
    design = rr_joint(sizes, 25.0)
    records = np.random.default_rng(0).integers(0, 2, (5000, 4))
    fitted = Fitted(design, design.randomize(records, SeededRandomness(1)))
    estimate = fitted.unbiased((0, 3))
    assert estimate.shares[:2].sum() == pytest.approx(1, abs=0.05)
    with pytest.raises(InputError, match="2,000,000,000 combinations are too many"):
        fitted.unbiased((0, 1, 2, 3))


def test_budgets_add_up():
    assert DESIGNS["clusters"].epsilon == pytest.approx(6.0)
    assert DESIGNS["joint"].epsilon == pytest.approx(5.0)
    expected = sum(math.log(1 + 0.6 * r / 0.4) for r in SIZES)
    assert DESIGNS["independent"].epsilon == pytest.approx(expected)


def test_joint_on_adult_keeps_as_the_errata_say():
    sizes = (9, 16, 7, 15, 6, 5, 2, 2)
    for keep, joint_keep in ((0.5, 0.819), (0.7, 0.9994)):
        budget = rr_independent(sizes, keep).epsilon
        assert rr_joint(sizes, budget).matrices[0].keep == pytest.approx(joint_keep, abs=5e-4)


@pytest.mark.parametrize(
    ("records", "says"),
    [
        ([[0, 1]], "3 columns"),
        (np.empty((0, 3), int), "no records"),
        ([[0.0, 1.0, 1.0]], "integers"),
        ([[0, 3, 1]], "record 0, attribute 1: 3 is not among its 3 categories"),
        ([[0, -1, 1]], "-1 is not among"),
    ],
)
def test_bad_records_are_told(records, says):
    with pytest.raises(InputError, match=says):
        check_records(records, SIZES)


def test_unknown_and_repeated_attributes_are_told():
    fitted = Fitted(DESIGNS["independent"], people(10))
    with pytest.raises(InputError, match="no attribute number 7"):
        fitted.unbiased((0, 7))
    with pytest.raises(InputError, match="twice"):
        fitted.unbiased((0, 0))


@given(st.integers(0, 2), st.integers(1, 2), st.floats(0.05, 0.95))
def test_part_of_a_distance_weighted_cluster_is_randomized_by_what_its_matrix_says(a, step, stay):
    """Its matrix is the whole one, added up over all other attributes."""
    part = sorted({a, (a + step) % 3})
    matrix = DistanceWeighted(SIZES, stay)
    whole = matrix.dense().reshape(SIZES + SIZES)
    others = [k for k in range(3) if k not in part]
    summed = whole.sum(axis=tuple(3 + k for k in others))
    for truth in range(SIZES[others[0]]):  # whichever it is
        size = math.prod(SIZES[k] for k in part)
        seen = np.take(summed, truth, axis=others[0]).reshape(size, size)
        np.testing.assert_allclose(matrix.part(part).dense(), seen, atol=1e-14)


def test_part_of_any_other_cluster_has_no_simple_matrix():
    dense = Dense(np.full((12, 12), 0.5 / 12) + 0.5 * np.eye(12))
    fitted = Fitted(Design(SIZES, ((0, 1, 2),), (dense,)), people(10))
    with pytest.raises(MatrixError, match="estimate the whole cluster"):
        fitted.unbiased((0, 1))


CONDITIONS = {
    "one": conjunction({1: (0, 2)}),
    "all": conjunction({0: (1,), 1: (0, 1), 2: (0,)}),
    "either": conjunction({0: (1,)}) | conjunction({1: (2,)}),
    "of the order of answers": ~(conjunction({2: (1,), 0: (0,)}) | conjunction({1: (1,)})),
}


@pytest.mark.parametrize("name", CONDITIONS)
@pytest.mark.parametrize("clusters", [((0,), (1,), (2,)), ((0, 2), (1,)), ((0, 1, 2),)])
def test_a_condition_is_counted_alike_if_the_same_matrix_is_written_out(name, clusters):
    kept = [KeepOrUniform(math.prod(SIZES[a] for a in c), 0.6) for c in clusters]
    design = Design(SIZES, clusters, tuple(kept))
    written = Design(SIZES, clusters, tuple(Dense(m.dense()) for m in kept))
    reported = design.randomize(people(500), SeededRandomness(1))
    cells = Cells.of(CONDITIONS[name], SIZES)
    if any(0 < len(set(c) & set(cells.attributes)) < len(c) for c in clusters):
        with pytest.raises(MatrixError, match="estimate the whole cluster"):
            Fitted(written, reported).meeting(cells)
        return
    found = [subset_share(*Fitted(d, reported).meeting(cells)) for d in (design, written)]
    np.testing.assert_allclose(found[0], found[1], rtol=1e-9)


def test_a_condition_on_part_of_a_cluster_of_near_records_is_counted_without_bias():
    """Within five standard errors: once in a million seeds."""
    design, records = DESIGNS["distance"], people()
    fitted = Fitted(design, design.randomize(records, SeededRandomness(5)))
    cells = Cells.of(conjunction({2: (1,), 1: (0, 1)}), SIZES)
    share, error = subset_share(*fitted.meeting(cells))
    truth = ((records[:, 2] == 1) & (records[:, 1] < 2)).mean()
    assert abs(share - truth) < 5 * error < 0.05


def test_many_answers_with_matrices_of_their_own_cannot_be_asked_for_at_once():
    design = one_by_one([nearby(60, 0.5)] * 5)
    fitted = Fitted(design, np.zeros((9, 5), dtype=np.int64))
    cells = Cells.of(conjunction(dict.fromkeys(range(5), (1,))), design.sizes)
    with pytest.raises(InputError, match="25,920,000 combinations are too many"):
        fitted.meeting(cells)


def test_a_matrix_of_the_wrong_size_is_told():
    with pytest.raises(MatrixError, match="has 12 categories"):
        Design(SIZES, ((0,), (1, 2)), (DistanceWeighted(SIZES, 0.5),) * 2)


def test_clusters_must_be_in_rising_order():
    with pytest.raises(InputError, match="rising order"):
        Design((2, 2), ((1, 0),), (KeepOrUniform(4, 0.9),))


def test_a_pair_by_likelihood_does_not_depend_on_the_order_it_is_asked_in():
    rng = np.random.default_rng(0)
    dense = Dense(0.6 * np.eye(6) + 0.4 * rng.dirichlet(np.ones(6), 6))
    design = Design((2, 3), ((0, 1),), (dense,))
    records = np.stack([rng.integers(0, 2, 2000), rng.integers(0, 3, 2000)], axis=1)
    fitted = Fitted(design, design.randomize(records, SeededRandomness.from_generator(rng)))
    np.testing.assert_allclose(likely_pair(fitted, 1, 0), likely_pair(fitted, 0, 1).T)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda f: f.counts((9,)), "no attribute number 9"),
        (lambda f: f.cluster_joint((0, 1)), "not a cluster"),
        (lambda f: f.small_table((0, 1)), "not all in one cluster"),
        (lambda f: f.subset((0, 1), np.ones((3, 2))), r"shape \(2, 3\)"),
        (lambda f: f.table((0,), "magic"), "no repair 'magic'"),
        (lambda f: rr_clusters((2, 3), [(0,), (1,)], [1.0]), "as many ε"),
    ],
)
def test_wrong_questions_are_told(call, says):
    fitted = Fitted(rr_independent((2, 3), 0.5), np.zeros((5, 2), dtype=np.int8))
    with pytest.raises(InputError, match=says):
        call(fitted)


def test_a_table_of_a_huge_cluster_comes_from_its_own_reports(monkeypatch):
    rng = np.random.default_rng(1)
    records = np.stack([rng.integers(0, size, 500) for size in (2, 3, 4)], axis=1)
    design = rr_joint((2, 3, 4), 5.0)
    fitted = Fitted(design, design.randomize(records, SeededRandomness.from_generator(rng)))
    expected = fitted.small_table((2, 0))
    monkeypatch.setattr(designs, "ENUMERABLE", 20)
    np.testing.assert_allclose(fitted.table((2, 0)), expected)


def test_synthetic_records_follow_the_estimated_clusters():
    """20,000 drawn records: every cell of the clusters' joints within 5 standard errors."""
    rng = np.random.default_rng(2)
    records = np.stack([rng.integers(0, size, 3000) for size in (2, 3, 2)], axis=1)
    records[:, 2] = records[:, 0]
    design = rr_clusters((2, 3, 2), [(0, 2), (1,)], [2.0] * 3)
    fitted = Fitted(design, design.randomize(records, SeededRandomness.from_generator(rng)))
    drawn = fitted.synthesize(20_000, rng.random)
    margins = [(cluster, fitted.cluster_joint(cluster)) for cluster in design.clusters]
    adjusted = adjust(fitted.reported, margins, (2, 3, 2))
    weighted = adjusted.synthesize(20_000, rng.random)
    for cluster, joint in margins:
        for people in (drawn, weighted):
            counts = np.zeros(joint.shape)
            np.add.at(counts, tuple(people[:, a] for a in cluster), 1 / 20_000)
            assert (abs(counts - joint) <= 5 * np.sqrt(joint * (1 - joint) / 20_000) + 1e-6).all()
