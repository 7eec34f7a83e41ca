"""Tables of pairs in which one answer rises or falls with the other."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from mpc_rr.estimation.trends import trends_of


def margins(rng, rows, columns):
    first, second = rng.gamma(2.0, 1.0, rows) + 0.05, rng.gamma(2.0, 1.0, columns) + 0.05
    return np.outer(first / first.sum(), second / second.sum())[np.newaxis]


@given(st.integers(0, 2**32), st.integers(2, 6), st.integers(2, 6), st.floats(-0.4, 0.4))
def test_a_trend_within_reach_comes_out_with_the_margins_as_they_are(seed, rows, columns, wished):
    rng = np.random.default_rng(seed)
    product = margins(rng, rows, columns)
    ranks = trends_of(product, product).products
    tilted = product * (1 + wished * ranks / abs(ranks).max())
    found = trends_of(product, tilted)
    assert abs(found.tables.sum(axis=2) - product.sum(axis=2)).max() < 1e-3
    assert abs(found.tables.sum(axis=1) - product.sum(axis=1)).max() < 1e-9
    assert abs((found.products * (found.tables - tilted)).sum()) < 1e-6
    assert (found.tables >= 0).all()


@given(st.integers(0, 2**32))
def test_the_slope_is_what_the_table_changes_by(seed):
    rng = np.random.default_rng(seed)
    product = margins(rng, 4, 3)
    ranks = trends_of(product, product).products
    moved = product + 0.1 * product * ranks
    step = 1e-6 * ranks / (ranks**2).sum()
    before, after = trends_of(product, moved), trends_of(product, moved + step)
    assert np.allclose(after.tables - before.tables, 1e-6 * before.slopes, atol=1e-9)


def test_no_trend_is_stronger_than_the_strongest():
    """A wish beyond it gives the last table, which then follows the noise no more."""
    product = np.full((1, 3, 3), 1 / 9)
    found = trends_of(product, product * (1 + 50 * trends_of(product, product).products))
    assert np.isfinite(found.tables).all()
    assert abs(np.diag(found.tables[0]) - 1 / 3).max() < 0.01
    assert not found.slopes.any()
