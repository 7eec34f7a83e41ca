import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from mpc_rr.estimation.dependence import abs_pearson_r, cramers_v, dependence

tables = arrays(
    np.int64,
    st.tuples(st.integers(2, 5), st.integers(2, 5)),
    elements=st.integers(0, 20),
)


@given(tables.map(lambda table: table + 1))
def test_cramers_v_is_scipys(table):
    found = cramers_v(table)
    assert found.value == pytest.approx(stats.contingency.association(table, "cramer"), abs=1e-12)
    assert found.p_value == pytest.approx(
        stats.chi2_contingency(table, correction=False).pvalue, abs=1e-12
    )


@given(tables)
def test_pearson_is_scipys_on_the_records(table):
    rows, columns = np.nonzero(table)
    repeats = table[rows, columns]
    x, y = np.repeat(rows, repeats), np.repeat(columns, repeats)
    assume(len(x) > 2 and np.ptp(x) > 0 and np.ptp(y) > 0)
    expected = stats.pearsonr(x, y)
    found = abs_pearson_r(table)
    assert found.value == pytest.approx(abs(expected.statistic), abs=1e-9)
    assert found.p_value == pytest.approx(expected.pvalue, abs=1e-7)


@given(tables)
def test_values_lie_between_0_and_1_and_do_not_depend_on_orientation(table):
    for measure in (cramers_v, abs_pearson_r):
        found, turned = measure(table), measure(table.T)
        if found.value is None:
            assert turned.value is None
        else:
            assert 0 <= found.value <= 1
            assert turned.value == pytest.approx(found.value, abs=1e-9)


def test_perfect_dependence_is_1_and_independence_0():
    assert cramers_v(np.diag([3, 4, 5])).value == pytest.approx(1)
    assert abs_pearson_r(np.diag([3, 4, 5])).value == pytest.approx(1)
    independent = np.outer([1, 2], [3, 4, 5])
    assert cramers_v(independent).value == pytest.approx(0, abs=1e-7)
    assert abs_pearson_r(independent).value == pytest.approx(0, abs=1e-7)


@pytest.mark.parametrize("measure", [cramers_v, abs_pearson_r])
@pytest.mark.parametrize("table", [[[5, 3], [0, 0]], [[0, 0], [0, 0]], [[7, 0], [0, 0]]])
def test_where_all_answers_are_equal_there_is_no_value(measure, table):
    found = measure(np.array(table))
    assert found.value is None
    assert found.p_value is None


def test_empty_categories_still_count_as_categories():
    """Two of three categories occur: V is measured against the three that were offered."""
    table = np.array([[5, 0, 0], [0, 5, 0], [0, 0, 0]])
    assert cramers_v(table).value == pytest.approx(np.sqrt(1 / 2))


def test_the_measure_follows_the_types():
    table = np.diag([3, 4, 5])
    assert dependence(table, both_ordinal=True).measure == "abs_pearson_r"
    assert dependence(table, both_ordinal=False).measure == "cramers_v"


def test_a_table_of_two_people_has_no_p_value():
    assert abs_pearson_r(np.diag([1, 1])).p_value is None
