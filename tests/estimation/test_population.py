"""The weighted population that everything published is counted in."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpc_rr.errors import InputError
from mpc_rr.estimation import population
from mpc_rr.estimation.population import Population
from mpc_rr.randomness import SeededRandomness

SIZES = (3, 2, 4)


def everybody(seed=1, rows=500):
    rng = np.random.default_rng(seed)
    records = np.stack([rng.integers(0, size, rows) for size in SIZES], axis=1)
    return Population(records, np.full(rows, 1 / rows), SIZES)


def test_tables_are_margins_of_each_other():
    people = everybody()
    whole = people.table((0, 1, 2))
    assert np.allclose(people.table((2, 0)), whole.sum(axis=1).T)
    assert np.allclose(people.table((1,)), whole.sum(axis=(0, 2)))
    assert whole.sum() == pytest.approx(1)


@given(st.integers(0, 2**32))
def test_tables_that_agree_come_out(seed):
    rng = np.random.default_rng(seed)
    joint = rng.gamma(2.0, 1.0, SIZES)
    joint /= joint.sum()
    targets = {(0, 1): joint.sum(axis=2), (1, 2): joint.sum(axis=0)}
    raked = everybody(rows=2000).raked(targets, (1.0,) * 60)
    for pair, target in targets.items():
        assert abs(raked.table(pair) - target).max() < 1e-6


def test_tables_that_contradict_end_between_them():
    one, other = np.array([[0.5, 0], [0, 0.5], [0, 0]]), np.array([[0, 0], [0.25, 0.25], [0.5, 0]])
    raked = everybody().raked({(0, 1): one, (0,): other.sum(axis=1)})
    assert np.isfinite(raked.weights).all()
    assert raked.weights.sum() == pytest.approx(1)


def test_synthetic_records_follow_the_weights():
    """Four standard errors in each of six cells: once in 2,600 if seeds were drawn."""
    target = np.array([[0.3, 0.1], [0.05, 0.25], [0.2, 0.1]])
    raked = everybody().raked({(0, 1): target}, (1.0,) * 20)
    drawn = raked.synthesize(20_000, SeededRandomness(5).uniform)
    counted = np.bincount(drawn[:, 0] * 2 + drawn[:, 1], minlength=6).reshape(3, 2) / 20_000
    assert (abs(counted - target) < 4 * np.sqrt(target / 20_000)).all()


@pytest.mark.parametrize("attributes", [(), (1, 1)])
def test_a_table_is_of_different_attributes(attributes):
    with pytest.raises(InputError, match="different attributes"):
        everybody().table(attributes)


PAIRS = list(itertools.combinations(range(40), 2))


def wide(rows):
    rng = np.random.default_rng(3)
    return Population(rng.integers(0, 5, (rows, 40)), np.full(rows, 1 / rows), (5,) * 40)


def kept(people):
    """The bytes of cells that are the same object when they are asked for again."""
    found = [(people.cells(pair), people.cells(pair)) for pair in PAIRS]
    return sum(cells.nbytes for cells, again in found if cells is again)


def test_the_bytes_that_are_kept_of_40_attributes_are_bounded():
    """All pairs of them would be 156 MB; so many fit that there is no room for another."""
    people = wide(50_000)
    assert 2**27 - 4 * 50_000 < kept(people) <= 2**27
    raked = people.raked({(0, 1): np.full((5, 5), 0.04)}, (1.0,))
    assert raked.cells((0, 1)) is people.cells((0, 1))


def test_tables_are_the_same_whether_cells_are_kept_or_not(monkeypatch):
    targets = {pair: np.full((5, 5), 0.04) for pair in PAIRS[::9]}
    expected = wide(300).raked(targets)
    monkeypatch.setattr(population, "MOST_KEPT", 0)
    found = wide(300).raked(targets)
    assert kept(found) == 0 < kept(expected)
    assert found.weights.tolist() == expected.weights.tolist()


def test_tables_of_many_cells_tell_them_apart():
    sizes = (2**16, 2**16)
    records = np.array([[2**16 - 1, 2**16 - 1], [0, 1]])
    people = Population(records, np.array([0.5, 0.5]), sizes)
    assert people.cells((0, 1)).tolist() == [2**32 - 1, 1]
