import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpc_rr.errors import InputError
from mpc_rr.estimation.raking import adjust, distinct_records

EXAMPLE = np.array([(0, 0)] * 4 + [(1, 0)] * 2 + [(1, 1)] * 4)
HALVES = [((0,), [0.5, 0.5]), ((1,), [0.5, 0.5])]


def test_example_1_of_the_paper():
    found = adjust(EXAMPLE, HALVES, (2, 2))
    assert found.converged
    np.testing.assert_allclose(found.table((0, 1), (2, 2)), [[0.5, 0], [0, 0.5]], rtol=0, atol=1e-9)


def test_example_1s_first_step():
    """After the first attribute: 1/8 for the first four records, 1/12 for the others."""
    found = adjust(EXAMPLE, HALVES[:1], (2, 2), most_iterations=1)
    per_record = found.weights / (np.array([4, 2, 4]))
    np.testing.assert_allclose(per_record, [1 / 8, 1 / 12, 1 / 12], atol=1e-9)
    np.testing.assert_allclose(found.table((1,), (2, 2)), [2 / 3, 1 / 3], atol=1e-9)


def by_rows(records, margins, sizes, sweeps):
    """Algorithm 2 as printed: a weight for each record."""
    weights = np.full(len(records), 1 / len(records))
    for _ in range(sweeps):
        for attributes, target in margins:
            cell = np.ravel_multi_index(
                tuple(records[:, a] for a in attributes), tuple(sizes[a] for a in attributes)
            )
            sums = np.bincount(cell, weights=weights, minlength=np.size(target))
            weights = weights * (np.ravel(target) / np.where(sums > 0, sums, 1))[cell]
    return weights, sums


@given(st.integers(0, 10**6))
def test_distinct_records_give_the_same_as_rows(seed):
    rng = np.random.default_rng(seed)
    sizes = (2, 3, 2)
    records = np.stack([rng.integers(0, s, 300) for s in sizes], axis=1)
    margins = [((0,), rng.dirichlet([5, 5])), ((1, 2), rng.dirichlet(np.full(6, 5.0)))]
    found = adjust(records, margins, sizes)
    weights, _ = by_rows(records, margins, sizes, 200)
    expected = np.zeros(sizes)
    np.add.at(expected, tuple(records.T), weights)
    np.testing.assert_allclose(found.table((0, 1, 2), sizes), expected, atol=1e-7)
    for attributes, target in margins:
        np.testing.assert_allclose(
            found.table(attributes, sizes).ravel(), np.ravel(target), atol=1e-8
        )


def test_margins_that_contradict_each_other_are_reported():
    records = np.array([(0, 0)] * 4 + [(1, 1)] * 4)
    found = adjust(records, [((0,), [0.5, 0.5]), ((1,), [0.3, 0.7])], (2, 2))
    assert not found.converged
    assert found.worst_margin == pytest.approx(0.1, abs=0.02)


def test_values_that_no_record_has_are_reported():
    records = np.array([(0, 0), (0, 1)])
    found = adjust(records, [((0,), [0.8, 0.2])], (2, 2))
    assert found.unreachable == pytest.approx(0.2)
    np.testing.assert_allclose(found.table((0,), (2, 2)), [1, 0])


def test_zero_margins_remove_records():
    found = adjust(EXAMPLE, [((0,), [0.0, 1.0])], (2, 2))
    np.testing.assert_allclose(found.table((0,), (2, 2)), [0, 1])


def test_a_domain_too_large_to_number_still_works():
    sizes = (1000,) * 8
    records = np.random.default_rng(0).integers(0, 1000, (50, 8))
    different, shares = distinct_records(np.vstack([records, records]), sizes)
    assert len(different) == 50
    np.testing.assert_allclose(shares, 1 / 50)


@pytest.mark.parametrize(
    ("margins", "says"),
    [
        ([((0,), [0.5, 0.3, 0.2])], "has 3 values"),
        ([((0,), [1.5, -0.5])], "not a distribution"),
        ([((0,), [0, 0])], "not a distribution"),
        ([((0,), [np.nan, 1])], "not a distribution"),
        ([((0, 1), [0, 1, 0, 0])], "wholly on values that no record has"),
    ],
)
def test_bad_margins_are_told(margins, says):
    with pytest.raises(InputError, match=says):
        adjust(EXAMPLE, margins, (2, 2))


def test_no_records_are_told():
    with pytest.raises(InputError, match="no records"):
        adjust(np.empty((0, 2), dtype=int), HALVES, (2, 2))


def test_margins_that_no_record_fits_are_told():
    records = np.array([[0, 0], [1, 1]])
    with pytest.raises(InputError, match="contradict each other"):
        adjust(records, [((0,), [1, 0]), ((1,), [0, 1])], (2, 2))


def test_contradictory_margins_leave_proper_weights_and_say_so():
    records = np.array([[0, 0], [1, 1]])
    found = adjust(records, [((0,), [0.9, 0.1]), ((1,), [0.2, 0.8])], (2, 2), most_iterations=200)
    assert not found.converged
    assert found.weights.sum() == pytest.approx(1)
    assert (found.weights >= 0).all()
    assert "contradict each other" in found.trouble
    fine = adjust(records, [((0,), [0.9, 0.1])], (2, 2))
    assert fine.trouble is None


def test_unreachable_values_are_told():
    records = np.array([[0, 0], [1, 1]])
    found = adjust(records, [((0,), [0.5, 0.3, 0.2])], (3, 2))
    assert found.unreachable == pytest.approx(0.2)
    assert "20.00%" in found.trouble
    both = adjust(records, [((0,), [0.5, 0.3, 0.2]), ((1,), [0.7, 0.3])], (3, 2))
    assert both.unreachable == pytest.approx(0.2)  # the largest of all margins


def test_records_outside_the_domain_are_told():
    with pytest.raises(InputError, match="outside the categories"):
        adjust(np.array([[0, 3]]), [((0,), [0.5, 0.5])], (2, 2))
