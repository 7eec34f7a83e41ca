"""Whether attributes are independent: any number of them, without drawing anything."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpc_rr.estimation.blocks import collect, pooled
from mpc_rr.estimation.independence import (
    _interaction,
    margins_of,
    merging,
    p_value_of_independence,
    phi2,
    product_of,
    told_apart,
)
from mpc_rr.estimation.strength import cramers_v_strength, strength
from mpc_rr.estimation.uncertainty import BlockAnswers, ExactCounts
from mpc_rr.randomness import SeededRandomness
from mpc_rr.schema import Attribute

shapes = st.lists(st.integers(2, 4), min_size=2, max_size=4).map(tuple)
seeds = st.integers(0, 2**32)


def drawn_margins(shape, seed):
    rng = np.random.default_rng(seed)
    return [rng.dirichlet(np.full(size, 2.0)) for size in shape]


@given(shapes, seeds)
def test_what_single_attributes_explain_is_no_dependence(shape, seed):
    margins = drawn_margins(shape, seed)
    projection = _interaction(margins)
    assert np.allclose(projection @ projection, projection)
    assert math.isclose(
        np.trace(projection), math.prod(shape) - 1 - sum(size - 1 for size in shape)
    )
    roots = np.sqrt(product_of(margins))
    rng = np.random.default_rng(seed)
    for axis, size in enumerate(shape):
        by_category = rng.normal(size=[size if k == axis else 1 for k in range(len(shape))])
        assert np.allclose(projection @ (roots * by_category).ravel(), 0)


@given(shapes, seeds)
def test_a_product_of_margins_has_them_and_no_phi2(shape, seed):
    margins = drawn_margins(shape, seed)
    table = product_of(margins)
    assert all(map(np.allclose, margins_of(table), margins))
    assert phi2(table) < 1e-12


@given(shapes, seeds)
def test_merging_sums_cells_over_the_categories_of_each_group(shape, seed):
    table = np.random.default_rng(seed).dirichlet(np.full(math.prod(shape), 0.3)).reshape(shape)
    whole = ExactCounts(50)
    groups = told_apart(table, whole.covariance(table.ravel()), whole)
    merged = merging(groups, shape) @ table.ravel()
    sizes = tuple(map(len, groups))
    for cell, share in zip(np.ndindex(sizes), merged, strict=True):
        mine = table[np.ix_(*(groups[axis][k] for axis, k in enumerate(cell)))]
        assert math.isclose(share, mine.sum(), abs_tol=1e-12)


@given(st.integers(0, 200))
def test_of_two_attributes_it_is_the_test_beside_their_v(seed):
    table = np.random.default_rng(seed).multinomial(300, np.full(9, 1 / 9)).reshape(3, 3) / 300
    whole = ExactCounts(300)
    assert p_value_of_independence(table, whole) == cramers_v_strength(table, whole).p_value


def by_blocks(records, shape, seed, block=100):
    """The estimate of a table whose blocks are shown what was estimated before, and its spread."""
    cells = np.ravel_multi_index(tuple(records), shape)
    told = collect(cells, math.prod(shape), 0.7, block, SeededRandomness(seed), 0.3).answered
    return pooled(told).shares.reshape(shape), BlockAnswers(len(cells), told)


def p_value(records, shape, seed):
    return p_value_of_independence(*by_blocks(records, shape, seed))


def test_of_independent_attributes_one_in_twenty_looks_dependent():
    """Of 150 tables of three attributes, 20 and more would in 1 of 10,000 cases at 5 %."""
    rng, shape = np.random.default_rng(8), (3, 4, 3)
    found = [
        p_value(np.stack([rng.integers(0, size, 800) for size in shape]), shape, seed)
        for seed in range(150)
    ]
    assert sum(p < 0.05 for p in found) < 20
    assert 0.35 < np.mean(found) < 0.65  # its standard error is 0.024


def test_a_few_answers_by_blocks_tell_dependence_before_they_tell_how_strong_it_is():
    """Of 150 tables of independent attributes, 20 and more would in 1 of 10,000 cases at 5 %."""
    rng, shape = np.random.default_rng(9), (2, 3)
    both = tuple(
        Attribute(name, "nominal", tuple("abc"[:size]))
        for name, size in zip("xy", shape, strict=True)
    )
    first = rng.integers(0, 2, (150, 100))
    independent = np.stack([first, rng.integers(0, 3, (150, 100))], axis=1)
    found = [
        strength(*by_blocks(records, shape, seed, block=20), both)
        for seed, records in enumerate(independent)
    ]
    tested = [one for one in found if one.p_value is not None]
    assert len(tested) > 100
    assert any(one.value is None for one in tested)
    assert sum(one.p_value < 0.05 for one in tested) < 20
    dependent = np.stack([first[0], first[0]])
    assert strength(*by_blocks(dependent, shape, 1, block=20), both).p_value < 0.001


@pytest.mark.parametrize("seed", range(3))
def test_three_attributes_of_which_no_two_depend_are_seen_to(seed):
    """The third says whether the first two are equal: only the table of all three shows it."""
    first, second = np.random.default_rng(seed).integers(0, 2, (2, 2000))
    records = np.stack([first, second, first ^ second])
    assert p_value(records, (2, 2, 2), seed) < 1e-6
    assert p_value(records[:2], (2, 2), seed) > 0.001


def test_an_attribute_with_one_answer_tells_nothing():
    table = np.zeros((2, 2, 2))
    table[0] = 0.25
    assert p_value_of_independence(table, ExactCounts(100)) is None
