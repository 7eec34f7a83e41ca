import numpy as np
from helpers import assert_tables, crosstabs
from hypothesis import given
from hypothesis import strategies as st

from mpc_rr.estimation.pairs import PairLayout

ADULT = (9, 16, 7, 15, 6, 5, 2, 2)


@st.composite
def data(draw):
    sizes = tuple(draw(st.lists(st.integers(2, 5), min_size=2, max_size=5)))
    records = draw(
        st.lists(st.tuples(*(st.integers(0, size - 1) for size in sizes)), min_size=1, max_size=20)
    )
    return sizes, records


@given(data())
def test_indicators_add_up_to_the_crosstabs(given_data):
    sizes, records = given_data
    layout = PairLayout(sizes)
    total = sum(layout.indicator(record) for record in records)
    tables = layout.tables(total)
    assert_tables(tables, crosstabs(records, sizes))
    assert layout.inconsistency(tables, len(records)) is None


def test_adult_has_1582_cells():
    layout = PairLayout(ADULT)
    assert len(layout.pairs) == 28
    assert layout.cells == 1582


@given(data(), st.integers(0, 10**6), st.sampled_from([-1, 1, 2]))
def test_one_changed_cell_is_noticed(given_data, place, change):
    sizes, records = given_data
    layout = PairLayout(sizes)
    total = sum(layout.indicator(record) for record in records).astype(np.int64)
    total[place % layout.cells] += change
    found = layout.inconsistency(layout.tables(total), len(records))
    assert "sums to" in found or "negative" in found


def test_a_record_that_is_not_one_person_is_noticed():
    """All tables sum to n, but the tables of attribute 1 disagree about it."""
    layout = PairLayout((2, 2, 2))
    vector = np.zeros(layout.cells, dtype=np.int64)
    vector[[0, 4, 10]] = 1  # (0,0), (0,0), and attribute 1 = 1 in the third table
    assert "disagree" in layout.inconsistency(layout.tables(vector), 1)
