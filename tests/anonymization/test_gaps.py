"""Records with gaps: no answer is a value of its own, and never a number or a rank."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpc_rr.anonymization.hierarchy import Hierarchy, generalize, groups_at
from mpc_rr.anonymization.partition import mdav, mondrian
from mpc_rr.anonymization.releases import RELEASES, Grouped, centre, range_of
from mpc_rr.anonymization.risk import information_loss, linkage, protection
from mpc_rr.anonymization.table import UNIT, Microdata
from mpc_rr.schema import Attribute

AGE = Attribute("age", "numeric", (), missing="no answer", lowest=0, highest=1_000_000, step=1)
MOOD = Attribute("mood", "ordinal", ("?", "low", "fair", "good"), missing="?")
TOWN = Attribute("town", "nominal", ("a", "b", "none"), missing="none")
PAY = Attribute("pay", "numeric", (), missing="no answer", lowest=0, highest=90, step=1)
GAP = AGE.missing_code


def table(*rows, attributes=(AGE,)):
    return Microdata.of(attributes, rows)


@given(
    st.lists(st.one_of(st.integers(0, 90), st.none()), min_size=4, max_size=40).filter(
        lambda ages: None in ages and len(set(ages)) > 1
    )
)
def test_two_records_differ_equally_much_on_average_whoever_answered(ages):
    rows = [(GAP if age is None else age,) for age in ages]
    points = table(*rows).points / UNIT
    apart = ((points[:, None, :] - points[None, :, :]) ** 2).sum(axis=2).mean()
    assert apart == pytest.approx(2, rel=1e-3)


def test_who_gave_no_answer_is_equally_far_from_low_and_high():
    points = table((20,), (60,), (GAP,), (GAP,)).points.astype(float)
    low, high, gap, other = points
    assert abs(((gap - low) ** 2).sum() - ((gap - high) ** 2).sum()) < 1e-3 * UNIT**2
    assert (gap == other).all()


@pytest.mark.parametrize("make", [mdav, mondrian])
def test_those_without_an_answer_are_grouped_with_each_other(make):
    """As a number, no answer would be a million, and the ages all the same beside it."""
    rows = [(20,), (21,), (22,), (60,), (61,), (62,), (GAP,), (GAP,), (GAP,)]
    groups = {frozenset(group.tolist()) for group in make(table(*rows), 3)}
    if make is mdav:
        assert groups == {frozenset({0, 1, 2}), frozenset({3, 4, 5}), frozenset({6, 7, 8})}
    assert any(group >= {6, 7, 8} for group in groups)
    assert not any(group >= {0, 6} for group in groups)


def test_gaps_do_not_make_numbers_look_alike():
    """With no answer at a million, 20 and 60 would be the same, and pay alone would be cut."""
    ages, pay = (20, 20, 20, 60, 60, 60), (0, 40, 10, 45, 5, 30)
    rows = [*zip(ages, pay, strict=True), *((GAP, p) for p in (0, 90, 0, 90, 0, 90))]
    groups = {frozenset(g.tolist()) for g in mondrian(table(*rows, attributes=(AGE, PAY)), 3)}
    assert {frozenset({0, 1, 2}), frozenset({3, 4, 5})} <= groups


@pytest.mark.parametrize("make", [mdav, mondrian])
def test_nobody_need_have_answered(make):
    everybody = table(*[(GAP,)] * 6)
    assert sum(len(group) for group in make(everybody, 3)) == 6
    assert information_loss(everybody, [np.arange(6)]).squared_error == 0


def test_a_centre_is_that_of_those_who_answered():
    known = table((20, 1, 0), (30, 3, 2), (GAP, 0, 2), attributes=(AGE, MOOD, TOWN))
    assert centre(known, np.arange(3)) == [25, 1, 0]
    assert centre(known, np.array([2])) == [GAP, 0, 2]


def test_a_range_says_that_some_gave_no_answer():
    known = table((20, 1, 0), (30, 3, 2), (GAP, 0, 2), attributes=(AGE, MOOD, TOWN))
    assert range_of(known, np.arange(3)) == ["20–30 | no answer", "low–good | ?", "a | none"]
    assert range_of(known, np.array([0, 2])) == ["20 | no answer", "low | ?", "a | none"]
    assert range_of(known, np.array([2])) == ["", "?", "none"]


def grouped():
    known = table((20,), (30,), (GAP,), (50,), (52,), (54,))
    groups = [np.array([0, 1, 2]), np.array([3, 4, 5])]
    pay = [[(10,), (10,), (PAY.missing_code,)], [(20,), (30,), (40,)]]
    return Grouped(known, groups, [Microdata.of((PAY,), rows) for rows in pay])


def test_releases_are_blank_where_there_is_no_answer():
    lines = RELEASES["microaggregated"](grouped())["release"]
    assert lines[0] == ["group", "age", "age (answered)", "pay"]
    assert lines[1:4] == [["1", "25", "2", "10"], ["1", "25", "2", "10"], ["1", "25", "2", ""]]
    assert lines[4] == ["2", "52", "3", "20"]
    lines = RELEASES["permuted"](grouped())["release"]
    assert lines[3] == ["", ""]
    assert RELEASES["generalized"](grouped())["release"][1] == ["1", "20–30 | no answer", "10"]


def test_protection_is_told_of_those_who_answered():
    (found,) = protection(grouped())
    assert (found.answered, found.least_different) == (5, 1)  # not 2: no answer is no other pay
    silent = Grouped(
        grouped().known, grouped().groups, [Microdata.of((PAY,), [(PAY.missing_code,)] * 3)] * 2
    )
    (nothing,) = protection(silent)
    assert (nothing.answered, nothing.least_different, nothing.farthest) == (0, None, None)


def test_the_distance_of_distributions_leaves_gaps_out():
    """With the gap as the highest pay, the first group would be farther from all."""
    (with_gap,) = protection(grouped())
    without = Grouped(
        grouped().known,
        grouped().groups,
        [Microdata.of((PAY,), [(10,), (10,)]), grouped().confidential[1]],
    )
    assert with_gap.farthest == protection(without)[0].farthest


def test_loss_is_that_of_answers():
    rows = [(20,), (30,), (50,), (52,), (54,)]
    groups = [np.array([0, 1]), np.array([2, 3, 4])]
    without = information_loss(table(*rows), groups)
    with_gap = information_loss(table(*rows, (GAP,)), [np.array([0, 1, 5]), np.array([2, 3, 4])])
    assert with_gap.squared_error == pytest.approx(without.squared_error, rel=1e-3)
    assert with_gap.certainty_penalty == pytest.approx(without.certainty_penalty)


@pytest.mark.parametrize("release", ["microaggregated", "generalized"])
def test_who_is_known_to_have_given_no_answer_is_looked_for_where_some_gave_none(release):
    known = table((20,), (30,), (GAP,), (50,), (52,), (54,), (56,))
    groups = [np.array([0, 1, 2]), np.array([3, 4, 5, 6])]
    found = linkage(known, groups, release)
    assert found.highest == pytest.approx(1 / 3)
    assert found.average == pytest.approx((3 / 3 + 4 / 4) / 7)


def test_intervals_leave_those_without_an_answer_apart():
    known = table((20,), (24,), (60,), (61,), (GAP,), (GAP,))
    hierarchy = Hierarchy(AGE, (10.0, 100.0))
    assert hierarchy.label(GAP, 1) == hierarchy.label(GAP, 0) == ""
    assert hierarchy.label(20, 1) == "20–29"
    assert hierarchy.label(AGE.answers_possible - 1, 1) == "1000000–1000000"
    highest, gap = hierarchy.at(np.array([AGE.answers_possible - 1, GAP]), 1).tolist()
    assert highest != gap
    levels = generalize(known, [hierarchy], 2)
    assert levels == (1,)
    groups = {frozenset(rows.tolist()) for rows in groups_at(known, [hierarchy], levels)}
    assert groups == {frozenset({0, 1}), frozenset({2, 3}), frozenset({4, 5})}
    assert hierarchy.loss(known.codes[:, 0], 1) == pytest.approx(9 / 1_000_000)
