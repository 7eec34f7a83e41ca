"""Randomization matrices: operators against the dense matrix, draws against probabilities."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment
from scipy.stats import chisquare

from mpc_rr.estimation.kronecker import Kronecker, as_dense
from mpc_rr.estimation.matrix import (
    Dense,
    DistanceWeighted,
    KeepOrUniform,
    MatrixError,
)
from mpc_rr.randomness import SeededRandomness

shares = st.floats(0.05, 0.95)


@st.composite
def dense_matrices(draw, size=None):
    size = size or draw(st.integers(2, 5))
    seed, keep = draw(st.integers(0, 10**6)), draw(st.floats(0.4, 0.9))
    rest = np.random.default_rng(seed).dirichlet(np.ones(size), size)
    return Dense(keep * np.eye(size) + (1 - keep) * rest)


keep_or_uniform = st.builds(KeepOrUniform, st.integers(2, 6), shares)
distance = st.builds(
    DistanceWeighted,
    st.lists(st.integers(2, 4), min_size=1, max_size=3),
    st.floats(0.6, 0.95),
)
matrices = st.one_of(keep_or_uniform, distance, dense_matrices())


@given(matrices, st.integers(0, 10**6))
def test_operators_are_the_dense_matrix(matrix, seed):
    p = matrix.dense()
    np.testing.assert_allclose(p.sum(axis=1), 1)
    x = np.random.default_rng(seed).random(matrix.size)
    inverse = np.linalg.inv(p.T)
    np.testing.assert_allclose(matrix.apply(x), p.T @ x, atol=1e-10)
    np.testing.assert_allclose(matrix.apply_transposed(x), p @ x, atol=1e-10)
    np.testing.assert_allclose(matrix.solve(x), inverse @ x, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(matrix.solve_transposed(x), inverse.T @ x, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(matrix.solve_squared(x), inverse**2 @ x, rtol=1e-6, atol=1e-8)


@given(matrices, st.integers(0, 10**6))
def test_any_axis_may_be_chosen(matrix, seed):
    x = np.random.default_rng(seed).random((3, matrix.size, 2))
    for operation in (matrix.apply, matrix.solve, matrix.solve_squared):
        along_middle = operation(x, axis=1)
        np.testing.assert_allclose(along_middle[2, :, 1], operation(x[2, :, 1]), atol=1e-8)


@given(matrices)
def test_epsilon_entropy_and_condition_are_those_of_the_dense_matrix(matrix):
    p = matrix.dense()
    assert matrix.epsilon == pytest.approx(np.log(p.max(axis=0) / p.min(axis=0)).max())
    assert matrix.entropy_rate == pytest.approx(-(p * np.log2(p)).sum(axis=1).mean())
    assert matrix.condition == pytest.approx(np.linalg.cond(p), rel=1e-6)
    if np.allclose(p.sum(axis=0), 1, atol=1e-9):
        assert 0 < matrix.beta <= 1 + 1e-12
    else:
        with pytest.raises(MatrixError, match="not bistochastic"):
            _ = matrix.beta


@pytest.mark.parametrize(
    "matrix",
    [
        KeepOrUniform(5, 0.3),
        KeepOrUniform(2, 0.0),
        DistanceWeighted((2, 3, 4), 0.6),
        DistanceWeighted((5,), 0.2),
        Dense([[0.5, 0.5, 0], [0.1, 0.8, 0.1], [0, 0.3, 0.7]]),
    ],
    ids=repr,
)
def test_sampling_follows_the_matrix(matrix):
    """χ² over 60,000 draws from each row; fixed seed, threshold one in ten thousand a row."""
    rng = SeededRandomness(5)
    p, n = matrix.dense(), 60_000
    for value in range(matrix.size):
        drawn = matrix.randomize(np.full(n, value), rng)
        counts = np.bincount(drawn, minlength=matrix.size)
        possible = p[value] > 0
        assert counts[~possible].sum() == 0
        assert chisquare(counts[possible], n * p[value][possible]).pvalue > 1e-4


def test_the_sampling_test_notices_a_bent_matrix():
    n = 60_000
    drawn = KeepOrUniform(5, 0.3).randomize(np.zeros(n, int), SeededRandomness(5))
    wrong = KeepOrUniform(5, 0.32).dense()[0]
    assert chisquare(np.bincount(drawn, minlength=5), n * wrong).pvalue < 1e-4


def test_a_single_party_draws_in_the_same_way():
    one = KeepOrUniform(4, 0.5).randomize(np.array(2), SeededRandomness(1))
    assert one.shape == ()
    assert 0 <= int(one) < 4


@given(st.integers(2, 50), st.floats(0.01, 15))
def test_the_epsilon_optimal_matrix_has_that_epsilon(size, epsilon):
    matrix = KeepOrUniform.from_epsilon(size, epsilon)
    assert matrix.epsilon == pytest.approx(epsilon, rel=1e-6)
    diagonal = matrix.keep + matrix.spread
    assert diagonal == pytest.approx(1 / (1 + (size - 1) * math.exp(-epsilon)))


def test_the_papers_formula_for_one_attribute():
    assert KeepOrUniform(16, 0.3).epsilon == pytest.approx(math.log(1 + 0.3 * 16 / 0.7))


@pytest.mark.parametrize(
    ("sizes", "epsilon"), [((9, 16), 7.309), ((5, 42), 7.735), ((7, 15, 6, 2, 2), 10.434)]
)
def test_table_1_of_the_confidentiality_paper_at_p_09(sizes, epsilon):
    """Two of the three as printed; the third is 10.434, not 11.975 (docs/errata.md)."""
    assert DistanceWeighted(sizes, 0.9).epsilon == pytest.approx(epsilon, abs=5e-4)


def test_the_row_sum_of_the_distance_weights_in_closed_form():
    matrix = DistanceWeighted((2, 3, 4), 0.5)
    codes = np.stack(np.unravel_index(np.arange(24), (2, 3, 4)), axis=1)
    changes = (codes != codes[0]).sum(axis=1)
    assert matrix.row_sum == pytest.approx((1 / changes[1:]).sum())


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: KeepOrUniform(3, 1.1), "between 0 and 1"),
        (lambda: KeepOrUniform(3, -0.1), "between 0 and 1"),
        (lambda: KeepOrUniform(3, math.nan), "between 0 and 1"),
        (lambda: KeepOrUniform(0, 0.5), "at least one category"),
        (lambda: KeepOrUniform.from_epsilon(3, -1), "not be negative"),
        (lambda: KeepOrUniform(3, 0.0).solve(np.ones(3)), "leaves nothing to estimate"),
        (lambda: Dense([[1, 0]]), "square"),
        (lambda: Dense([[0.5, 0.4], [0, 1]]), "row 0 .* sums to 0.9"),
        (lambda: Dense([[1.5, -0.5], [0, 1]]), "none may be negative"),
        (lambda: Dense([[math.nan, 1], [0, 1]]), "all must be numbers"),
        (lambda: Dense([[0.5, 0.5], [0.5, 0.5]]).solve(np.ones(2)), "cannot be undone"),
        (lambda: DistanceWeighted((2, 1), 0.5), "at least two categories"),
        (lambda: DistanceWeighted((2,), 0.5).solve(np.ones(2)), "cannot be undone"),
        (lambda: KeepOrUniform(10_000, 0.5).dense(), "100,000,000 entries"),
        (lambda: DistanceWeighted((100, 100), 0.5).dense(), "100,000,000 entries"),
        (lambda: Kronecker([]), "at least one attribute"),
        (lambda: Kronecker([KeepOrUniform(3, 0.5)]).randomize(TWO_COLUMNS, None), "1 columns"),
        (lambda: Kronecker([KeepOrUniform(3, 0.5)]).randomize(TWO_COLUMNS[0], None), "1 columns"),
        (lambda: Kronecker([KeepOrUniform(3, 0.5)]).apply(np.ones(2)), "shape"),
    ],
)
def test_what_makes_no_sense_is_told(make, says):
    with pytest.raises(MatrixError, match=says):
        make()


TWO_COLUMNS = np.zeros((3, 2), dtype=np.int64)


# ── Kronecker products ─────────────────────────────────────────────────────────────────────────

designs = st.lists(matrices, min_size=1, max_size=3).map(Kronecker)


@settings(max_examples=60)
@given(designs.filter(lambda d: d.size <= 500), st.integers(0, 10**6))
def test_axis_by_axis_is_the_dense_product(design, seed):
    x = np.random.default_rng(seed).random(design.sizes)
    dense = as_dense(design)
    for name in ("apply", "solve", "apply_transposed", "solve_transposed", "solve_squared"):
        by_axis, at_once = getattr(design, name)(x), getattr(dense, name)(x.ravel())
        scale = abs(at_once).max()
        np.testing.assert_allclose(by_axis.ravel(), at_once, atol=1e-6 * scale)
    assert design.entropy_rate == pytest.approx(dense.entropy_rate)
    assert design.epsilon == pytest.approx(dense.epsilon)


@given(st.lists(st.integers(2, 70), min_size=1, max_size=4), st.integers(0, 100))
def test_inverting_in_place_undoes_the_design(sizes, seed):
    if math.prod(sizes) > 200_000:
        sizes = sizes[:2]
    rng = np.random.default_rng(seed)
    design = Kronecker([KeepOrUniform(size, rng.uniform(0.2, 1)) for size in sizes])
    truth = rng.random(sizes)
    reported = design.apply(truth)
    kept = reported.copy()
    np.testing.assert_allclose(design.solve(reported), truth, atol=1e-8)
    np.testing.assert_array_equal(reported, kept)
    assert design.solve(reported, overwrite=True) is reported
    np.testing.assert_allclose(reported, truth, atol=1e-8)


def test_only_a_contiguous_table_is_overwritten():
    design = Kronecker([KeepOrUniform(2, 0.5), KeepOrUniform(2, 0.5)])
    with pytest.raises(MatrixError, match="contiguous"):
        design.solve(np.ones((2, 4))[:, ::2], overwrite=True)


@pytest.mark.parametrize(
    ("keeps", "joint"),
    [((0.9, 0.8, 0.7), 40.07), ((0.3, 0.2, 0.1), 95.15), ((0.6, 0.7, 0.4), 68.60)],
)
def test_table_1_of_the_lambda_paper_corrected(keeps, joint):
    """The printed percentages fit 4 categories, not 5, and another divisor (docs/errata.md)."""
    design = Kronecker([KeepOrUniform(5, keep) for keep in keeps])
    assert 100 * design.beta == pytest.approx(joint, abs=0.01)


def test_records_are_randomized_attribute_by_attribute():
    design = Kronecker([KeepOrUniform(3, 0.5), KeepOrUniform(2, 0.2)])
    rng = np.random.default_rng(3)
    records = np.tile([[2, 1]], (60_000, 1))
    drawn = design.randomize(records, SeededRandomness.from_generator(rng))
    counts = np.bincount(drawn[:, 0] * 2 + drawn[:, 1], minlength=6)
    expected = np.outer(KeepOrUniform(3, 0.5).dense()[2], KeepOrUniform(2, 0.2).dense()[1])
    assert chisquare(counts, 60_000 * expected.ravel()).pvalue > 1e-4


def test_randomized_counts_are_distributed_like_randomized_records():
    """Means and variances over 4,000 draws of both, each within 5 standard errors."""
    rng, matrix = np.random.default_rng(9), KeepOrUniform(3, 0.4)
    counts = np.array([30, 8, 2])
    values = np.repeat(np.arange(3), counts)
    by_counts = np.array([matrix.randomize_counts(counts, rng) for _ in range(4000)])
    by_records = np.array(
        [
            np.bincount(matrix.randomize(values, SeededRandomness.from_generator(rng)), minlength=3)
            for _ in range(4000)
        ]
    )
    assert (by_counts.sum(axis=1) == 40).all()
    error = np.sqrt((by_counts.var(axis=0) + by_records.var(axis=0)) / 4000)
    assert (abs(by_counts.mean(axis=0) - by_records.mean(axis=0)) < 5 * error).all()
    ratio = by_counts.var(axis=0) / by_records.var(axis=0)
    assert (abs(np.log(ratio)) < 5 * np.sqrt(4 / 4000)).all()


@pytest.mark.parametrize("matrix", [KeepOrUniform(200, 0.5), DistanceWeighted((20, 10), 0.5)])
def test_small_integers_do_not_overflow(matrix):
    values = np.full(2000, 100, dtype=np.int8)
    reported = matrix.randomize(values, SeededRandomness(0))
    assert reported.dtype == np.int64
    assert reported.min() >= 0
    assert reported.max() > 127


@pytest.mark.parametrize(
    "matrix", [KeepOrUniform(3, 0.5), Dense(np.eye(3)), DistanceWeighted((3,), 0.5)]
)
@pytest.mark.parametrize("values", [[7], [-1], [0.5]])
def test_values_outside_the_domain_are_refused(matrix, values):
    with pytest.raises(MatrixError):
        matrix.randomize(np.array(values), SeededRandomness(0))


@pytest.mark.parametrize("epsilon", [1e-6, 1.0, 24.5, 30.0])
def test_the_wished_epsilon_is_kept_exactly(epsilon):
    assert KeepOrUniform.from_epsilon(2, epsilon).epsilon == epsilon


def test_a_row_that_does_not_sum_to_one_is_refused_at_the_sixth_digit():
    with pytest.raises(MatrixError, match="sums to"):
        Dense([[0.5, 0.500009], [0.5, 0.5]])


def test_a_hopeless_product_is_refused():
    design = Kronecker([KeepOrUniform(2, 1e-3)] * 5)
    with pytest.raises(MatrixError, match="cannot be undone"):
        design.solve(np.full((2,) * 5, 1 / 32))


def test_a_truth_that_is_always_told_has_no_bound():
    """Beyond ε of about 37 the probability to keep is 1 to the last digit."""
    assert KeepOrUniform.from_epsilon(2, 60.0).epsilon == math.inf


@given(st.integers(2, 5), st.integers(0, 10**6), st.floats(0.0, 0.9))
def test_a_bistochastic_matrix_is_the_identity_and_permutations(size, seed, keep):
    """001, Corollary 1: the rest falls into permutations, found one by one. More cannot go.

    By Birkhoff and von Neumann, as long as all rows and columns of what is left add up alike, a
    permutation runs along positive cells only.
    """
    rng = np.random.default_rng(seed)
    parts = rng.dirichlet(np.ones(6))
    mixed = sum(
        share * np.eye(size)[rng.permutation(size)] for share in parts
    )  # bistochastic, and not symmetric
    matrix = Dense(keep * np.eye(size) + (1 - keep) * (0.9 * mixed + 0.1 / size))
    assert matrix.bistochastic
    assert keep < matrix.kept < 1
    left = matrix.dense() - matrix.kept * np.eye(size)
    assert left.min() > -1e-12
    assert (matrix.dense() - (matrix.kept + 0.01) * np.eye(size)).min() < 0
    weight = 0.0
    while left.sum() > 1e-9:
        rows, columns = linear_sum_assignment(left > 1e-12, maximize=True)
        least = left[rows, columns].min()
        assert least > 0
        left[rows, columns] -= least
        weight += least
    assert matrix.kept + weight == pytest.approx(1)
