"""Wider tables from narrower ones."""

import itertools

import numpy as np
import pytest

from mpc_rr.errors import InputError
from mpc_rr.estimation.agreement import agreeing, missed
from mpc_rr.estimation.blocks import l2_distance
from mpc_rr.estimation.consistency import wider_table

SIZES = (2, 3, 2)


def joint(seed):
    return np.random.default_rng(seed).dirichlet(np.ones(12)).reshape(SIZES)


def pairs_of(table):
    return {
        pair: table.sum(axis=tuple(a for a in range(3) if a not in pair))
        for pair in itertools.combinations(range(3), 2)
    }


@pytest.mark.parametrize("method", ["entropy", "squares"])
@pytest.mark.parametrize("seed", range(5))
def test_the_wider_table_has_the_narrower_ones_as_margins(method, seed):
    pairs = pairs_of(joint(seed))
    wide = wider_table(pairs, SIZES, (0, 1, 2), method=method)
    assert (wide.shares >= 0).all()
    assert wide.missed < 2e-3
    for pair, table in pairs_of(wide.shares).items():
        assert table == pytest.approx(pairs[pair], abs=2e-3)


def test_fitting_beats_the_papers_program_where_tables_are_noisy():
    """ERRATA: over 40 noisy triples the sum of squared errors is smaller with fitting."""
    errors = {"entropy": 0.0, "squares": 0.0}
    for seed in range(40):
        rng = np.random.default_rng(seed)
        true = np.random.default_rng(seed + 1).dirichlet(np.full(12, 3.0)).reshape(SIZES)
        noisy = {
            p: np.maximum(t + rng.normal(0, 0.01, t.shape), 0) for p, t in pairs_of(true).items()
        }
        noisy = {p: t / t.sum() for p, t in noisy.items()}
        for method in errors:
            wide = wider_table(noisy, SIZES, (0, 1, 2), method=method)
            errors[method] += l2_distance(wide.shares, true)
    assert errors["entropy"] < errors["squares"]


DIFFERENT = {pair: np.array([[0.0, 0.5], [0.5, 0.0]]) for pair in [(0, 1), (0, 2), (1, 2)]}


@pytest.mark.parametrize("method", ["entropy", "squares"])
def test_where_no_table_has_all_margins_it_is_said_by_how_much_they_are_missed(method):
    """Any table misses one of these by 1/6 or more. After whole steps it had the last of them, and
    missed another by a half."""
    wide = wider_table(DIFFERENT, (2, 2, 2), (0, 1, 2), method=method)
    true = max(abs(t - DIFFERENT[p]).max() for p, t in pairs_of(wide.shares).items())
    assert wide.missed == pytest.approx(true)
    assert 1 / 6 - 1e-9 <= wide.missed < 1 / 3


@pytest.mark.parametrize("seed", range(3))
def test_fitting_ends_near_tables_that_are_those_of_none(seed):
    """Within three times what the nearest table misses them by."""
    rng = np.random.default_rng(seed)
    noisy = {p: rng.dirichlet(np.full(t.size, 0.5)).reshape(t.shape)
             for p, t in pairs_of(joint(0)).items()}  # fmt: skip
    agreed = agreeing(noisy, dict.fromkeys(noisy, 1.0))
    least = missed(agreed, SIZES).least
    assert least <= wider_table(agreed, SIZES, (0, 1, 2)).missed + 1e-9 < 3 * least + 1e-3


def test_what_no_table_speaks_of_cannot_be_told():
    with pytest.raises(InputError, match="no table is about attribute 2"):
        wider_table({(0, 1): np.full((2, 3), 1 / 6)}, SIZES, (0, 1, 2))
