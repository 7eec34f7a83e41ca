"""Hidden counts, and an attacker who tries to work them out by linear programming."""

import itertools

import numpy as np
import pytest
from helpers import crosstabs
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from mpc_rr.estimation.pairs import PairLayout
from mpc_rr.estimation.suppression import HIDDEN, fault, filled, suppress


def attack(layout, published, n, cell):
    """The smallest and largest value a hidden cell can have, given all that is published.

    Unknown are the hidden cells and the totals of all categories; every row and column of every
    table adds up to its total, and the totals of an attribute to n.
    """
    hidden = [(t, *ij) for t, table in enumerate(published)
              for ij in np.argwhere(table == HIDDEN).tolist()]  # fmt: skip
    totals = [(a, v) for a, size in enumerate(layout.sizes) for v in range(size)]
    column = {key: k for k, key in enumerate(itertools.chain(hidden, totals))}
    rows, right = [], []
    for t, (pair, table) in enumerate(zip(layout.pairs, published, strict=True)):
        for axis, attribute in enumerate(pair):
            for category in range(table.shape[axis]):
                line = np.zeros(len(column))
                line[column[attribute, category]] = 1
                seen = 0
                for other in range(table.shape[1 - axis]):
                    i, j = (category, other) if axis == 0 else (other, category)
                    if table[i, j] == HIDDEN:
                        line[column[t, i, j]] = -1
                    else:
                        seen += table[i, j]
                rows.append(line)
                right.append(seen)
    for a, size in enumerate(layout.sizes):
        line = np.zeros(len(column))
        line[[column[a, v] for v in range(size)]] = 1
        rows.append(line)
        right.append(n)
    aim = np.zeros(len(column))
    aim[column[cell]] = 1
    ends = [linprog(sign * aim, A_eq=np.array(rows), b_eq=right).fun * sign for sign in (1, -1)]
    return ends[0], ends[1]


def people(seed, n, sizes):
    rng = np.random.default_rng(seed)
    skew = [rng.dirichlet(np.full(size, 0.4)) for size in sizes]
    return np.stack([rng.choice(s, n, p=p) for s, p in zip(sizes, skew, strict=True)], 1)


def assert_hidden(layout, tables, n, below):
    """Nothing else is published, and each small count might be larger by ``below`` (or all be)."""
    published = suppress(layout, tables, below)
    assert fault(layout, published, n, below) is None
    for t, (shown, true) in enumerate(zip(published, tables, strict=True)):
        np.testing.assert_array_equal(shown[shown != HIDDEN], true[shown != HIDDEN])
        for i, j in np.argwhere((true > 0) & (true < below)).tolist():
            assert shown[i, j] == HIDDEN
            low, high = attack(layout, published, n, (t, i, j))
            assert low <= true[i, j] + 1e-6
            assert high >= min(true[i, j] + below, n) - 1e-6


@settings(max_examples=25, deadline=None)
@given(
    st.integers(0, 10**6),
    st.integers(3, 200),
    st.sampled_from([(2, 3), (3, 4, 2), (2, 2, 2, 3), (5, 4, 3)]),
    st.integers(2, 9),
)
def test_no_small_count_can_be_worked_out(seed, n, sizes, below):
    assert_hidden(PairLayout(sizes), crosstabs(people(seed, n, sizes), sizes), n, below)


@pytest.mark.parametrize("sizes", [(2, 2, 2), (2, 2, 3), (3, 2, 2), (3, 3, 2)])
def test_no_small_count_of_few_people_can_be_worked_out(sizes):
    """Small tables leave the least to choose from: a rule that hides too little shows in them."""
    for seed in range(25):
        n = 20 + seed
        assert_hidden(PairLayout(sizes), crosstabs(people(seed, n, sizes), sizes), n, 2 + seed % 2)


@pytest.mark.parametrize(("seed", "n", "below"), [(62, 37, 4), (765, 20, 2)])
def test_a_rectangle_with_a_corner_that_is_shown_would_tell_a_count(seed, n, below):
    """Found by searching: without either of two corners, somebody's count follows here."""
    sizes = (2, 2, 2, 2)
    assert_hidden(PairLayout(sizes), crosstabs(people(seed, n, sizes), sizes), n, below)


def test_the_opposite_corner_of_a_rectangle_is_hidden_too():
    """Else the other row gives the small count away: here the 2 in the last table, exactly."""
    tables = [
        np.array([[6, 8], [0, 0]]),
        np.array([[9, 5], [0, 0]]),
        np.array([[4, 2], [5, 3]]),
    ]
    layout = PairLayout((2, 2, 2))
    assert (suppress(layout, tables, 3)[2] == HIDDEN).all()
    assert_hidden(layout, tables, 14, 3)


def test_a_category_is_hidden_in_every_table_it_is_in():
    """Else the tables in which its attribute is the second leave a small count below 3."""
    tables = [
        np.array([[0, 0], [2, 10]]),
        np.array([[0, 0], [4, 8]]),
        np.array([[1, 1], [3, 7]]),
    ]
    layout = PairLayout((2, 2, 2))
    assert all((shown == HIDDEN).all() for shown in suppress(layout, tables, 2))
    assert_hidden(layout, tables, 12, 2)


def test_a_count_of_exactly_the_limit_is_shown():
    table = np.array([[3, 20], [20, 20]])
    np.testing.assert_array_equal(suppress(PairLayout((2, 2)), [table], 3)[0], table)


def test_hiding_the_small_count_alone_does_not_help():
    """The attacker of these tests does find a count whose row gives it away."""
    layout = PairLayout((2, 2))
    table = np.array([[1, 30], [40, 29]])
    alone = np.where(table == 1, HIDDEN, table)
    assert attack(layout, [alone], 100, (0, 0, 0)) == pytest.approx((1, 1))
    low, high = attack(layout, suppress(layout, [table], 5), 100, (0, 0, 0))
    assert high - low >= 5


def test_a_category_that_hardly_anybody_has_is_hidden_with_another():
    layout = PairLayout((3, 2))
    table = np.array([[60, 39], [1, 0], [50, 50]])
    published = suppress(layout, [table], 3)[0]
    assert (published[1] == HIDDEN).all()
    assert (published[[0, 2]] == HIDDEN).all(axis=1).any()


def test_people_of_several_cells_hide_a_small_count():
    """Once nothing at all was published, and the study was lost."""
    layout, tables = PairLayout((2, 5, 2)), [
        np.array([[2, 2, 2, 2, 1], [2, 2, 2, 1, 1]]),
        np.array([[9, 0], [0, 8]]),
        np.array([[2, 2], [2, 2], [2, 2], [2, 1], [1, 1]]),
    ]  # fmt: skip
    published = suppress(layout, tables, 4)
    assert (published[0] == HIDDEN).all()
    assert_hidden(layout, tables, 17, 4)


def test_among_too_few_everything_is_hidden():
    published = suppress(PairLayout((2, 2)), [np.array([[1, 1], [1, 0]])], 5)
    assert (published[0] == HIDDEN).all()


@pytest.mark.parametrize(
    ("table", "wrong"),
    [
        ([[2, 8], [5, 5]], "shows a count below 3"),
        ([[-2, 12], [5, 5]], "negative"),
        ([[5, 6], [5, 5]], "does not sum to 20"),
        ([[HIDDEN, 16], [5, 5]], "does not sum to 20"),
    ],
)
def test_what_a_coordinator_could_not_publish_is_noticed(table, wrong):
    assert wrong in fault(PairLayout((2, 2)), [np.array(table)], 20, 3)


def test_two_tables_that_disagree_are_noticed():
    layout = PairLayout((2, 2, 2))
    tables = [np.array([[10, 10], [10, 10]]), np.array([[9, 10], [11, 10]]), np.full((2, 2), 10)]
    assert "disagree" in fault(layout, tables, 40, 3)


def test_guesses_keep_what_is_known():
    sizes, n = (4, 3, 3), 400
    layout = PairLayout(sizes)
    tables = crosstabs(people(3, n, sizes), sizes)
    published = suppress(layout, tables, 8)
    assert any((shown == HIDDEN).any() for shown in published)
    for guess, shown in zip(filled(layout, published, n), published, strict=True):
        assert guess.sum() == pytest.approx(n)
        np.testing.assert_array_equal(guess[shown != HIDDEN], shown[shown != HIDDEN])
        assert (guess >= 0).all()
