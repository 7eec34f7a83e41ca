"""Sums of powers: what records add, what follows, and what no records can have added."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpc_rr.estimation.power_sums import Number, Sum, SumLayout
from mpc_rr.schema import Attribute, Schema

INCOME = Attribute(
    "income", "numeric", (), missing="none", lowest=-50.0, highest=1200.0, step=25.0, clip="top"
)
AGE = Attribute("age", "numeric", (), lowest=0.0, highest=120.0, step=1.0)
PLACE = Attribute("place", "nominal", ("city", "village", "farm"))
SEX = Attribute("sex", "nominal", ("f", "m"))
SCHEMA = Schema((PLACE, INCOME, AGE, SEX))
WHOLE = SumLayout(SCHEMA, pairs=True, tails=True)


def records_of(schema):
    return st.lists(st.tuples(*(st.integers(0, size - 1) for size in schema.sizes)), min_size=1)


def summed(layout, records):
    return layout.read(np.sum([layout.added_by(r) for r in records], axis=0, dtype=object))


def given_numbers(records, place, within=lambda _: True):
    attribute = SCHEMA.attributes[place]
    return [
        attribute.number(r[place])
        for r in records
        if r[place] != attribute.missing_code and within(r)
    ]


@pytest.mark.parametrize("schema", [SCHEMA, Schema((INCOME, AGE))])
@pytest.mark.parametrize("options", [{}, {"pairs": True}, {"tails": True}, {"ends": False}])
def test_how_many_sums_there_may_be_is_known_before_they_are_made(schema, options):
    layout = SumLayout(schema, **options)
    assert 0 <= layout.size - len(layout.cells) - len(layout.totals) <= 20


@given(records_of(SCHEMA))
def test_sums_are_those_of_the_numbers_themselves(records):
    sums = summed(WHOLE, records)
    for number in WHOLE.numbers:
        for group in (None, *WHOLE.groups):
            values = given_numbers(
                records, number.place, lambda r, g=group: g is None or r[g[0]] == g[1]
            )
            n = WHOLE.count(sums, WHOLE.answered(number, group), len(records))
            if group is not None and not number.optional:
                n = sums[Sum((), group)]
            assert n == len(values)
            steps = [Fraction(value - number.value(0)) / Fraction(number.step) for value in values]
            for power in (1, 2, 3, 4):
                found = sums[Sum(((number.place, power),), group)]
                assert found == sum(step**power for step in steps)
    assert WHOLE.fault(sums, len(records)) is None
    x, y = WHOLE.numbers
    told = [WHOLE.count(sums, Sum(p), len(records)) for p in WHOLE.of_pair(x, y)]
    both = [(x.steps(r), y.steps(r)) for r in records if x.steps(r) is not None]
    assert told[0] == len(both)
    assert told[5] == sum(a * b for a, b in both)
    assert told[1:5] == [sum(p[k] ** e for p in both) for k, e in ((0, 1), (0, 2), (1, 1), (1, 2))]
    assert sums[Sum(at=(1, 50))] == sum(r[1] == 50 for r in records)


@given(st.tuples(*(st.integers(0, size - 1) for size in SCHEMA.sizes)))
def test_nobody_adds_more_than_the_range_allows(record):
    for cell, value in zip(WHOLE.cells, WHOLE.added_by(record), strict=True):
        assert abs(value) <= WHOLE.largest(cell) <= WHOLE.most


@given(st.integers(2, 10_000), st.integers(0, 10_000))
def test_a_number_comes_back_from_its_steps(numbers, code):
    attribute = Attribute("x", "numeric", (), lowest=3.0, highest=3.0 + numbers - 1, step=1.0)
    number, record = Number(0, attribute), (code % numbers,)
    steps = number.steps(record)
    assert number.value(steps) == attribute.number(record[0])
    assert -number.reach <= steps <= number.reach
    assert number.steps((numbers - 1,)) == number.reach


def test_what_follows_from_the_rest_is_not_added_up():
    """Who must answer is counted with her group, and pairs share what is summed anyway."""
    age = (2, 1), (2, 2)
    assert not [c for c in WHOLE.cells if c.powers == ((2, 0),)]
    assert not [c for c in WHOLE.cells if c.group is None and c.powers in age]
    assert len(set(WHOLE.cells)) == len(WHOLE.cells)
    assert not set(WHOLE.totals) & set(WHOLE.cells)
    numbers = SumLayout(Schema((AGE, INCOME)), pairs=True)
    assert len(numbers.cells) == 2 + 3 + 1 + 2 + 1  # age; income; its top; age of both; product


RECORDS = [(0, 10, 30, 0), (0, 40, 50, 1), (1, 51, 20, 1), (2, 3, 70, 0), (2, 20, 71, 1)]


@pytest.mark.parametrize(
    ("cell", "by"),
    [
        (Sum((), (0, 1)), -2),
        (Sum((), (0, 1)), 1),
        (Sum(((1, 0),), (0, 0)), 3),
        (Sum(((1, 1),), (0, 0)), 1),
        (Sum(((1, 2),), (0, 0)), -2000),
        (Sum(((2, 2),), (3, 0)), 10**7),
        (Sum(((2, 4),), (3, 0)), 10**12),
        (Sum(((2, 3),), (3, 0)), 10**12),
        (Sum(((1, 1), (2, 1))), 10**9),
        (Sum(((1, 0), (2, 2))), 10**9),
        (Sum(at=(1, 50)), -1),
    ],
)
def test_sums_that_no_records_have_are_noticed(cell, by):
    values = np.sum([WHOLE.added_by(r) for r in RECORDS], axis=0)
    assert WHOLE.fault(WHOLE.read(values), len(RECORDS)) is None
    values[WHOLE.cells.index(cell)] += by
    assert WHOLE.fault(WHOLE.read(values), len(RECORDS)) is not None


ONE = SumLayout(Schema((AGE, PLACE)), tails=True)


@pytest.mark.parametrize(
    ("power", "by"), [(1, 1), (1, -200), (2, 10**5), (2, -(10**4)), (3, 10**9), (3, -(10**9)),
                      (4, 10**9), (4, -(10**6))],
)  # fmt: skip
def test_sums_of_one_group_must_be_those_of_some_numbers(power, by):
    """Where no other attribute tells them, too."""
    records = [(r[2], r[0]) for r in RECORDS]
    values = np.sum([ONE.added_by(r) for r in records], axis=0)
    assert ONE.fault(ONE.read(values), len(records)) is None
    values[ONE.cells.index(Sum(((0, power),), (1, 0)))] += by
    assert "no numbers have the sums of 'age'" in ONE.fault(ONE.read(values), len(records))


def test_sums_by_two_attributes_must_agree():
    values = np.sum([WHOLE.added_by(r) for r in RECORDS], axis=0)
    for power, by in ((1, 2), (2, 2)):  # a possible change, but in one of them only
        values[WHOLE.cells.index(Sum(((2, power),), (0, 2)))] += by
    assert "differ from those by another" in WHOLE.fault(WHOLE.read(values), len(RECORDS))
