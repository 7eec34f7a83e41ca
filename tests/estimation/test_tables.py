import itertools

import numpy as np
import pytest

from mpc_rr.errors import InputError
from mpc_rr.estimation.designs import Fitted, rr_independent
from mpc_rr.estimation.tables import (
    TreeModel,
    dependence_matrix,
    likely_pair,
    make_consistent,
    margin,
    maximum_entropy,
    mutual_information,
    shrunk_pair,
    synthesize,
)
from mpc_rr.randomness import SeededRandomness

SIZES = (2, 3, 2, 4)


def tree_distribution(seed=0):
    """A joint distribution that is a chain 0–1–2, with 3 hanging on 1."""
    rng = np.random.default_rng(seed)
    root = rng.dirichlet(np.ones(2))
    given_0, given_1, to_3 = (rng.dirichlet(np.ones(k), n) for k, n in ((3, 2), (2, 3), (4, 3)))
    return np.einsum("a,ab,bc,bd->abcd", root, given_0, given_1, to_3)


def pairs_of(joint):
    return {
        pair: margin(joint, range(joint.ndim), pair)
        for pair in itertools.combinations(range(joint.ndim), 2)
    }


def test_a_tree_is_found_again_and_its_pairs_are_exact():
    joint = tree_distribution()
    model = TreeModel.from_pairs(pairs_of(joint), SIZES)
    for (i, j), table in pairs_of(joint).items():
        np.testing.assert_allclose(model.pair(i, j), table, atol=1e-12)
        np.testing.assert_allclose(model.pair(j, i), table.T, atol=1e-12)


def test_synthetic_records_follow_the_tree():
    joint = tree_distribution()
    model = TreeModel.from_pairs(pairs_of(joint), SIZES)
    records = model.synthesize(50_000, np.random.default_rng(1).random)
    counts = np.zeros(SIZES)
    np.add.at(counts, tuple(records.T), 1)
    assert abs(counts / 50_000 - joint).max() < 5 * np.sqrt(0.25 / 50_000)


def test_synthetic_records_of_a_domain_that_could_never_be_enumerated():
    sizes = (10,) * 30
    independent = {pair: np.full((10, 10), 0.01) for pair in itertools.combinations(range(30), 2)}
    records = TreeModel.from_pairs(independent, sizes).synthesize(
        1000, np.random.default_rng(0).random
    )
    assert records.shape == (1000, 30)
    assert records.max() == 9


def test_maximum_entropy_has_its_tables_and_is_the_tree_for_a_tree():
    joint = tree_distribution()
    found, converged = maximum_entropy(pairs_of(joint), SIZES, tolerance=1e-10)
    assert converged
    np.testing.assert_allclose(found, joint, atol=1e-7)


def test_contradicting_tables_do_not_converge():
    tables = {(0, 1): np.diag([0.5, 0.5]), (1, 2): np.diag([0.2, 0.8])}
    _, converged = maximum_entropy(tables, (2, 2, 2), most_sweeps=50)
    assert not converged


def test_tables_are_made_to_agree_by_their_precision():
    tables = {
        (0, 1): np.array([[0.5, 0.1], [0.1, 0.3]]),
        (0, 2): np.array([[0.2, 0.2], [0.3, 0.3]]),
    }
    agreed = make_consistent(tables, {(0, 1): 3.0, (0, 2): 1.0})
    expected = [0.75 * 0.6 + 0.25 * 0.4, 0.75 * 0.4 + 0.25 * 0.6]
    for pair in agreed:
        np.testing.assert_allclose(margin(agreed[pair], pair, [0]), expected, atol=1e-9)


def test_shrinking_helps_where_there_is_nothing_and_does_not_harm_where_there_is_much():
    rng = np.random.default_rng(3)
    independent = np.stack([rng.integers(0, 3, 3000), rng.integers(0, 3, 3000)], axis=1)
    dependent = np.repeat(rng.integers(0, 3, (3000, 1)), 2, axis=1)
    design = rr_independent((3, 3), 0.3)
    for records, factor in ((independent, 0.6), (dependent, 1.2)):
        truth = np.zeros((3, 3))
        np.add.at(truth, tuple(records.T), 1 / len(records))
        shrunk_error = raw_error = 0.0
        for _ in range(20):
            fitted = Fitted(design, design.randomize(records, SeededRandomness.from_generator(rng)))
            raw_error += abs(fitted.unbiased((0, 1)).shares - truth).sum()
            shrunk_error += abs(shrunk_pair(fitted, 0, 1) - truth).sum()
        assert shrunk_error < factor * raw_error


def test_the_likely_pair_is_near_the_truth():
    rng = np.random.default_rng(5)
    records = np.repeat(rng.integers(0, 3, (20_000, 1)), 2, axis=1)
    design = rr_independent((3, 3), 0.5)
    fitted = Fitted(design, design.randomize(records, SeededRandomness.from_generator(rng)))
    truth = np.diag(np.bincount(records[:, 0]) / 20_000)
    np.testing.assert_allclose(likely_pair(fitted, 0, 1), truth, atol=0.03)


def test_dependences_of_tables():
    joint = tree_distribution()
    matrix = dependence_matrix(pairs_of(joint), [False] * 4, [range(s) for s in joint.shape])
    np.testing.assert_allclose(matrix, matrix.T)
    assert matrix[0, 1] > matrix[0, 2]
    assert mutual_information(np.outer([0.3, 0.7], [0.5, 0.5])) == pytest.approx(0, abs=1e-12)


def test_records_from_an_enumerated_joint():
    joint = tree_distribution()
    records = synthesize(joint, 20_000, np.random.default_rng(2).random)
    found = np.bincount(records[:, 3], minlength=4) / 20_000
    np.testing.assert_allclose(found, joint.sum(axis=(0, 1, 2)), atol=0.02)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: maximum_entropy({}, (1000, 1000, 1000)), "use a TreeModel"),
        (lambda: TreeModel.from_pairs({(0, 1): np.eye(2) / 2}, (2, 2, 2)), "in no table"),
        (lambda: TreeModel.from_pairs({(0, 1, 2): np.ones((2, 2, 2)) / 8}, (2,) * 3), "of two"),
        (lambda: make_consistent({(0, 1): np.eye(2) / 2}, {(0, 1): 0.0}), "any weight"),
    ],
)
def test_bad_input_is_told(call, says):
    with pytest.raises(InputError, match=says):
        call()
