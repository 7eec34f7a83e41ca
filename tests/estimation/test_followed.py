"""Limits from sums over blocks are those that go through all blocks."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mpc_rr.estimation.blocks import Answered, pooled
from mpc_rr.estimation.distribution import project_to_simplex
from mpc_rr.estimation.followed import FollowedTables, limits_so_far
from mpc_rr.estimation.intervals import cell_intervals
from mpc_rr.estimation.uncertainty import BlockAnswers

SIZES = (2, 3, 2)
COMBINATIONS = ((0, 1), (1, 2), (0, 2))


def followed(seed, p=0.5, blocks=6):
    """Blocks of answers, with tables that change; and the same for the slower way."""
    rng = np.random.default_rng(seed)
    sums = FollowedTables(p, COMBINATIONS, SIZES)
    kept = {}
    for c in COMBINATIONS:
        cells = SIZES[c[0]] * SIZES[c[1]]
        tables = rng.dirichlet(np.full(cells, 3.0), blocks)
        counts = np.array([rng.multinomial(rng.integers(1, 60), table) for table in tables])
        kept[c] = Answered(p, tables, counts)
        for table, count in zip(tables, counts, strict=True):
            sums.take(c, table, count)
    return sums, kept


def slowly(answered):
    shares = pooled(answered).shares
    return cell_intervals(shares, BlockAnswers(answered.n, answered), "population")


@settings(max_examples=20)
@given(st.integers(0, 10**6), st.floats(0.05, 0.95))
def test_limits_by_sums_are_those_by_blocks(seed, p):
    sums, kept = followed(seed, p)
    for found, c in zip(limits_so_far([*sums.tables.values()]), COMBINATIONS, strict=True):
        wanted = slowly(kept[c])
        assert found.low == pytest.approx(wanted.low, abs=1e-8)
        assert found.high == pytest.approx(wanted.high, abs=1e-8)


@pytest.mark.parametrize("seed", range(8))
def test_the_widest_interval_is_the_widest_of_all(seed):
    sums, kept = followed(seed)
    widths = {
        c: float((i.high - i.low).max()) for c, i in ((c, slowly(a)) for c, a in kept.items())
    }
    half, where = sums.widest()
    assert half == pytest.approx(max(widths.values()) / 2, abs=1e-8)
    assert widths[where] == max(widths.values())


@pytest.mark.parametrize("seed", range(8))
def test_the_share_that_is_known_least_is_told_of_each_table_and_attribute(seed):
    sums, kept = followed(seed)
    found = {known.table: known for known in sums.least_known()}
    assert [*found] == [*COMBINATIONS, (0,), (1,), (2,)]
    for table, answered in kept.items():
        limits, known = slowly(answered), found[table]
        widths = limits.high - limits.low
        assert known.half == pytest.approx(widths.max() / 2, abs=1e-8)
        assert known.cell == int(np.argmax(widths))
        shares = project_to_simplex(pooled(answered).shares)
        assert known.share == pytest.approx(shares[known.cell])
        assert known.low <= known.share <= known.high


def test_an_attribute_alone_is_told_by_all_tables_that_hold_it():
    sums, kept = followed(3)
    for attribute in range(3):
        tables, counts = [], []
        for c in COMBINATIONS:
            if attribute in c:
                shape, other = (-1, *(SIZES[a] for a in c)), 2 - c.index(attribute)
                tables.append(kept[c].tables.reshape(shape).sum(axis=other))
                counts.append(kept[c].counts.reshape(shape).sum(axis=other))
        wanted = slowly(Answered(0.5, np.concatenate(tables), np.concatenate(counts)))
        (found,) = limits_so_far([sums.alone[attribute,]])
        assert found.low == pytest.approx(wanted.low, abs=1e-8)
        assert found.high == pytest.approx(wanted.high, abs=1e-8)


def test_nothing_is_said_before_every_table_has_an_answer():
    sums = FollowedTables(0.5, COMBINATIONS, SIZES)
    sums.take((0, 1), np.full(6, 1 / 6), np.array([1, 0, 0, 2, 0, 0]))
    assert sums.widest() is None
    assert (sums.n, sums.unknown) == (3, 2)
    assert [known.table for known in sums.least_known()] == [(0, 1), (0,), (1,)]
