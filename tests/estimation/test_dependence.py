import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from mpc_rr.errors import InputError
from mpc_rr.estimation.dependence import (
    abs_pearson_r,
    cramers_v,
    dependence,
    dependences_of_records,
    quantile_bins,
)
from mpc_rr.estimation.designs import rr_independent
from mpc_rr.randomness import SeededRandomness
from mpc_rr.schema import Attribute, interval_labels

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


def test_the_correction_takes_off_what_chance_gives():
    """Independent answers: V is about √(df/n/(k−1)) by chance; corrected it is near 0."""
    rng = np.random.default_rng(1)
    plain, corrected = [], []
    for _ in range(200):
        table = np.bincount(rng.integers(0, 25, 200), minlength=25).reshape(5, 5)
        plain.append(cramers_v(table).value)
        corrected.append(cramers_v(table, corrected=True).value)
    assert np.mean(plain) > 0.12
    assert np.mean(corrected) < 0.04
    large = 1000 * np.diag([3, 4, 5])
    assert cramers_v(large, corrected=True).value == pytest.approx(1, abs=1e-3)


def test_the_correction_by_hand():
    """2 × 2, n = 40: φ² = 0.25 − 1/39, and 2 − 1/39 categories each."""
    table = np.array([[15, 5], [5, 15]])
    expected = np.sqrt((0.25 - 1 / 39) / (2 - 1 / 39 - 1))
    assert cramers_v(table, corrected=True).value == pytest.approx(expected)
    with pytest.raises(InputError, match="needs counts"):
        cramers_v(table / table.sum(), corrected=True)


def test_dependences_of_randomized_records_keep_their_rank():
    rng = np.random.default_rng(2)
    first = rng.integers(0, 3, 20_000)
    close = np.where(rng.random(20_000) < 0.8, first, rng.integers(0, 3, 20_000))
    far = np.where(rng.random(20_000) < 0.3, first, rng.integers(0, 3, 20_000))
    records = np.stack([first, close, far], axis=1)
    reported = rr_independent((3, 3, 3), 0.5).randomize(
        records, SeededRandomness.from_generator(rng)
    )
    true, seen = (dependences_of_records(r, (3, 3, 3)) for r in (records, reported))
    assert true[0, 1] > true[1, 2] > 0
    assert true[0, 1] > seen[0, 1] > seen[0, 2] > seen[1, 2] > 0
    assert seen[0, 1] == pytest.approx(0.25 * true[0, 1], abs=0.03)  # λ₁·λ₂ of it is kept
    ordered = dependences_of_records(records, (3, 3, 3), ordinal=[True, True, False])
    assert ordered[0, 1] == pytest.approx(abs(np.corrcoef(first, close)[0, 1]))
    assert ordered[0, 2] == true[0, 2]


def test_numbers_are_binned():
    numbers = np.random.default_rng(3).normal(50, 10, 1000)
    bins = quantile_bins(numbers, 4)
    age = Attribute("age", "ordinal", interval_labels(bins), bins)
    counts = np.bincount([age.code(number) for number in numbers])
    assert (abs(counts - 250) <= 2).all()
    assert len(quantile_bins([1, 1, 1, 2, 3], 4)) < 5  # equal edges are joined
    assert len(quantile_bins([1, 2, 3, 4], 2)) == 3  # two bins have three edges


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: quantile_bins([], 3), "finite"),
        (lambda: quantile_bins([1.0, np.nan], 3), "finite"),
        (lambda: quantile_bins([1, 2], 1), "at least two bins"),
        (lambda: quantile_bins([4, 4, 4], 3), "too much alike"),
        (lambda: dependences_of_records(np.zeros((0, 2), int), (2, 2)), "rows of 2"),
        (lambda: dependences_of_records(np.zeros((5, 3), int), (2, 2)), "rows of 2"),
    ],
)
def test_bad_input_is_told(call, says):
    with pytest.raises(InputError, match=says):
        call()
