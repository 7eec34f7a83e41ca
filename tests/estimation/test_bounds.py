"""Bounds of a condition on more attributes than any table holds."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpc_rr.errors import InputError
from mpc_rr.estimation.bounds import Margin, bounds, cells_within, refined
from mpc_rr.estimation.conditions import Among, Cells, conjunction

SIGNS = np.multiply.outer(np.multiply.outer([1, -1], [1, -1]), [1, -1])


def margins(table, cells, together=2):
    found = []
    for kept in itertools.combinations(range(table.ndim), together):
        part = table.sum(axis=tuple(a for a in range(table.ndim) if a not in kept))
        sums = cells_within(cells, kept, part.shape) @ part.ravel().astype(float)
        found.append(Margin(kept, sums, sums))
    return found


def all_of(codes, sizes):
    return Cells.of(conjunction({a: (code,) for a, code in enumerate(codes)}), sizes)


@given(st.lists(st.integers(0, 9), min_size=8, max_size=8), st.integers(0, 7))
def test_two_answers_each_leave_what_one_number_does(counts, cell):
    """Tables with the same pairs differ by a multiple of one pattern: all of them are tried."""
    table = np.array(counts).reshape(2, 2, 2)
    codes = np.unravel_index(cell, table.shape)
    every = [table + t * SIGNS for t in range(-80, 81)]
    possible = [int(one[codes]) for one in every if one.min() >= 0]
    cells = all_of(codes, table.shape)
    found = bounds(cells, margins(table, cells), int(table.sum()))
    assert found == pytest.approx((min(possible), max(possible)), abs=1e-6)


@given(st.integers(0, 10**6))
def test_the_truth_is_within_and_finer_tables_leave_no_more_room(seed):
    rng = np.random.default_rng(seed)
    sizes = tuple(rng.integers(2, 5, 4).tolist())
    table = rng.integers(0, 4, sizes) * (rng.random(sizes) < 0.4)
    coarse = all_of([0, 1, 0, 1], sizes) if seed % 2 else Cells.of(
        Among(0, frozenset([0])) & Among(1, frozenset([0])) | Among(2, frozenset([1]))
        & ~Among(3, frozenset([0])), sizes,
    )  # fmt: skip
    fine = refined(coarse)
    met = int(table[fine.table()].sum())
    (low, high), (least, most) = (
        bounds(cells, margins(table, cells), int(table.sum())) for cells in (coarse, fine)
    )
    assert low - 1e-6 <= least <= met + 1e-6
    assert met - 1e-6 <= most <= high + 1e-6


def test_tables_of_three_narrow_what_pairs_leave():
    table = np.random.default_rng(3).integers(0, 5, (2, 3, 2, 3))
    cells = refined(all_of([0, 0, 0, 0], table.shape))
    by_two, by_three = (bounds(cells, margins(table, cells, k), table.sum()) for k in (2, 3))
    assert by_two[0] <= by_three[0] <= by_three[1] < by_two[1]


def test_attributes_that_are_not_named_are_added_up():
    cells = all_of([1, 0], (2, 3))
    found = cells_within(cells, (0, 1, 2), (2, 3, 4))
    assert found.sum(axis=0).tolist() == [1] * 24
    assert sorted(found.sum(axis=1).tolist()) == [4, 4, 8, 8]


def test_limits_instead_of_counts_leave_more_room_and_contradictions_are_told():
    table = np.random.default_rng(4).integers(1, 5, (2, 2, 2))
    table[1, 1, 1] = table[0, 0, 0] = 40
    cells = all_of([1, 1, 1], table.shape)
    exact = margins(table, cells)
    wide = [Margin(m.attributes, m.low - 1, m.high + 1) for m in exact]
    (low, high), (least, most) = (bounds(cells, m, table.sum()) for m in (exact, wide))
    assert least < low <= high < most
    wrong = [Margin(exact[0].attributes, exact[0].low + 1, exact[0].high + 1), *exact[1:]]
    with pytest.raises(InputError, match="does not fit together"):
        bounds(cells, wrong, table.sum())
