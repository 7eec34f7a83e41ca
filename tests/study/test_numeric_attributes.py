"""Numeric attributes: exact numbers on a grid, for protocols that publish values."""

import pytest
from anonymizing import EIGHT
from hypothesis import given
from hypothesis import strategies as st

from mpc_rr.errors import DataError, ScenarioError, SchemaError
from mpc_rr.randomness import SeededRandomness
from mpc_rr.schema import Attribute, Schema
from mpc_rr.study.file import load_scenario
from mpc_rr.study.generator import Draw, Generator


def number(lowest, highest, step=1.0):
    return Attribute("x", "numeric", (), lowest=lowest, highest=highest, step=step)


@given(st.integers(-1000, 1000), st.integers(1, 500), st.sampled_from([1.0, 0.5, 0.1, 0.01, 7.0]))
def test_every_number_on_the_grid_has_a_code_of_its_own(lowest, steps, step):
    attribute = number(lowest, lowest + steps * step, step)
    assert attribute.size == steps + 1
    for code in {0, 1, steps // 2, steps}:
        assert attribute.code(attribute.text(code)) == code
        assert attribute.code(attribute.number(code)) == code


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ("", "no value given"),
        (None, "no value given"),
        ("tall", "'tall' is not a number"),
        ("nan", "outside"),
        ("-1", "outside 0 to 120"),
        ("121", "outside 0 to 120"),
        ("20.5", "is not 0 plus a multiple of its step, 1"),
    ],
)
def test_what_is_no_such_number_is_refused(value, says):
    with pytest.raises(DataError, match=says):
        EIGHT.attributes[1].code(value)


@pytest.mark.parametrize(
    ("parts", "says"),
    [
        ({"highest": 5.0, "step": 1.0}, "needs lowest, highest and step"),
        ({"lowest": 5.0, "highest": 5.0, "step": 1.0}, "lowest must be below highest"),
        ({"lowest": 0.0, "highest": float("inf"), "step": 1.0}, "both finite"),
        ({"lowest": 0.0, "highest": 5.0, "step": 0.0}, "step must be positive"),
        ({"lowest": 0.0, "highest": 5.0, "step": 6.0}, "step must be positive and within"),
        ({"lowest": 0.0, "highest": 1e9, "step": 1e-9}, "too small"),
        ({"lowest": 0.0, "highest": 5.0, "step": 1.0, "missing": "?"}, "no categories, bins"),
    ],
)
def test_a_grid_that_makes_no_sense_is_refused(parts, says):
    with pytest.raises(SchemaError, match=says):
        Attribute("x", "numeric", (), **parts)


def test_a_grid_goes_with_numbers_only():
    with pytest.raises(SchemaError, match='go with type = "numeric"'):
        Attribute("x", "nominal", ("a", "b"), lowest=1.0)


def test_whole_and_decimal_limits_are_the_same_attribute():
    assert number(0, 5) == number(0.0, 5.0)
    assert isinstance(number(0, 5).lowest, float)


def test_protocols_that_count_take_no_numbers(tmp_path):
    (tmp_path / "study.toml").write_text(
        'title = "T"\n[schema.a]\ntype = "numeric"\nlowest = 0\nhighest = 9\n'
        '[schema.b]\ncategories = ["x", "y"]\n[parties]\ncount = 5\n'
        '[protocol]\nname = "exact_pairs"\n'
    )
    with pytest.raises(ScenarioError, match=r"schema.a: exact_pairs counts categories; give bins"):
        load_scenario(tmp_path / "study.toml")


SCHEMA = Schema((Attribute("sex", "nominal", ("f", "m")), number(0.0, 100.0)))


def test_numbers_are_generated_within_their_ranges():
    draws = [
        Draw("sex", [1, 1]),
        Draw("x", {"f": [1, 0], "m": [0, 1]}, given="sex", between=[(10, 19), (50, 50)]),
    ]
    records = Generator(draws).records(SCHEMA, 400, SeededRandomness(1))
    assert {x for sex, x in records if sex == 0} == set(range(10, 20))
    assert {x for sex, x in records if sex == 1} == {50}


@pytest.mark.parametrize(
    ("draw", "says"),
    [
        (Draw("x", [1.0, 1.0]), "ranges .between. go with numeric attributes"),
        (Draw("x", [1.0], between=[(5, 1)]), "ranges go upwards"),
        (Draw("x", [1.0], between=[(5, 101)]), "outside 0 to 100"),
        (Draw("x", [1.0, 1.0], between=[(5, 6)]), "weights must be 1 non-negative numbers"),
    ],
)
def test_ranges_that_make_no_sense_are_refused(draw, says):
    with pytest.raises(ScenarioError, match=says):
        Generator([Draw("sex", [1, 1]), draw]).check(SCHEMA)
