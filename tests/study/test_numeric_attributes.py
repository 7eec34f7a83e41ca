"""Numeric attributes: exact numbers on a grid, for protocols that publish values."""

import math

import pytest
from anonymizing import EIGHT
from hypothesis import given
from hypothesis import strategies as st

from mpc_rr.errors import DataError, ScenarioError, SchemaError
from mpc_rr.protocols.collaborative_k_anonymity import CollaborativeKAnonymity
from mpc_rr.randomness import SeededRandomness
from mpc_rr.schema import Attribute, Schema
from mpc_rr.study.file import load_scenario
from mpc_rr.study.frames import records_from_frame
from mpc_rr.study.generator import Draw, Generator
from mpc_rr.study.records import read_csv, read_record


def number(lowest, highest, step=1.0, missing=None):
    return Attribute("x", "numeric", (), missing=missing, lowest=lowest, highest=highest, step=step)


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


def clipped(clip, missing=None):
    return Attribute(
        "x", "numeric", (), missing=missing, lowest=-5.0, highest=100.0, step=5.0, clip=clip
    )


@given(st.floats(-1e12, 1e12), st.sampled_from(["top", "bottom", "both", None]))
def test_numbers_beyond_the_range_count_as_its_last_where_the_study_says_so(value, clip):
    """At the other end, and inside it, everything is as without."""
    attribute = clipped(clip)
    if value > 100 and clip in ("top", "both"):
        assert attribute.code(value) == attribute.size - 1
    elif value < -5 and clip in ("bottom", "both"):
        assert attribute.code(value) == 0
    else:
        with_, without = (attribute, clipped(None))
        try:
            code = without.code(value)
        except DataError as error:
            with pytest.raises(DataError, match=str(error)[:30]):
                with_.code(value)
        else:
            assert with_.code(value) == code


def test_a_refusal_says_what_would_count_a_number():
    with pytest.raises(
        DataError, match='with clip = "top" in the study file it would count as 100'
    ):
        clipped("bottom").code(110)
    with pytest.raises(DataError, match=r'with clip = "bottom" in the study .* count as -5'):
        clipped(None).code(-15)
    for value in ("inf", "nan", "-inf"):
        with pytest.raises(DataError, match=r"is outside -5 to 100$"):
            clipped("both").code(value)
    assert clipped("both", missing="999").code(999) == clipped("both", missing="999").missing_code
    said = "-5 to 100 in steps of 5; less counts as -5; more counts as 100"
    assert clipped("both").answers == said


def test_clip_is_read_from_a_study_file_and_is_part_of_its_digest(tmp_path):
    text = (
        'title = "T"\nstudy = "t"\n[schema.a]\ntype = "numeric"\nlowest = 0\nhighest = 9\n{}'
        '[schema.b]\ncategories = ["x", "y"]\n[protocol]\nname = "exact_moments"\n'
        '[parties]\ncount = 3\n[data.generator]\n[[data.generator.draw]]\nattribute = "a"\n'
        "weights = [1]\nbetween = [[0, 9]]\n"
        '[[data.generator.draw]]\nattribute = "b"\nweights = [1, 1]\n'
    )
    found = {}
    for clip in ("", 'clip = "top"\n'):
        (tmp_path / "s.toml").write_text(text.format(clip))
        found[clip] = load_scenario(tmp_path / "s.toml").study
    plain, top = found.values()
    assert plain.schema.attributes[0].code(9) == top.schema.attributes[0].code(10) == 9
    assert plain.digest != top.digest
    (tmp_path / "s.toml").write_text(
        text.replace("categories", "clip = 'top'\ncategories").format("")
    )
    with pytest.raises(ScenarioError, match='clip go with type = "numeric"'):
        load_scenario(tmp_path / "s.toml")


@pytest.mark.parametrize(
    ("parts", "says"),
    [
        ({"highest": 5.0, "step": 1.0}, "needs lowest, highest and step"),
        ({"lowest": 5.0, "highest": 5.0, "step": 1.0}, "lowest must be below highest"),
        ({"lowest": 0.0, "highest": float("inf"), "step": 1.0}, "both finite"),
        ({"lowest": 0.0, "highest": 5.0, "step": 0.0}, "step must be positive"),
        ({"lowest": 0.0, "highest": 5.0, "step": 6.0}, "step must be positive and within"),
        ({"lowest": 0.0, "highest": 1e9, "step": 1e-9}, "too small"),
        ({"lowest": 0.0, "highest": 5.0, "step": 1.0, "missing": "3"}, "3 could be an answer"),
        ({"lowest": 0.0, "highest": 5.0, "step": 1.0, "missing": " "}, "must not be empty"),
        ({"lowest": 0.0, "highest": 5.0, "step": 1.0, "bins": (0.0, 5.0)}, "and no bins"),
    ],
)
def test_a_grid_that_makes_no_sense_is_refused(parts, says):
    with pytest.raises(SchemaError, match=says):
        Attribute("x", "numeric", (), **parts)


@given(st.integers(-1000, 1000), st.integers(1, 500), st.sampled_from([1.0, 0.5, 0.1, 7.0]))
def test_no_answer_is_a_code_beside_all_numbers(lowest, steps, step):
    attribute = number(lowest, lowest + steps * step, step, missing="no answer")
    assert attribute.missing_code == steps + 1 == attribute.answers_possible
    assert attribute.size == steps + 2
    for nothing in (None, "", "  ", math.nan, "no answer"):
        assert attribute.code(nothing) == attribute.missing_code
    assert attribute.text(attribute.missing_code) == "no answer"
    assert attribute.cell(attribute.missing_code) == ""
    assert attribute.cell(steps) == attribute.text(steps)
    with pytest.raises(DataError, match="outside"):
        attribute.code(lowest + (steps + 1) * step)


@pytest.mark.parametrize("text", ["NA", "nan", "N/A", "null", "-"])
def test_words_for_no_answer_are_none_unless_the_study_says_so(text):
    with pytest.raises(DataError, match=r"is not a number|outside"):
        number(0, 9, missing="no answer").code(text)
    assert number(0, 9, missing=text).code(text) == 10


def test_what_stands_for_no_answer_is_quoted_among_the_answers():
    """It is the author's word, not ours."""
    attribute = number(0, 9, missing="nothing is published")
    assert attribute.answers == "0 to 9 in steps of 1, or “nothing is published”"


def test_a_number_can_stand_for_no_answer():
    attribute = number(0, 120, missing="999")
    assert attribute.code("999") == attribute.code(999) == attribute.missing_code == 121


def test_numbers_with_gaps_come_from_files_and_frames(tmp_path):
    schema = Schema((number(0, 9, missing="no answer"), Attribute("b", "nominal", ("y", "n"))))
    (tmp_path / "people.csv").write_text("x,b\n3,y\n,n\n  ,y\nno answer,n\n")
    gap = schema.attributes[0].missing_code
    wanted = [(3, 0), (gap, 1), (gap, 0), (gap, 1)]
    assert read_csv(tmp_path / "people.csv", schema) == wanted
    frame = {"x": [3.0, math.nan, None, "no answer"], "b": ["y", "n", "y", "n"]}
    assert records_from_frame(frame, schema).tolist() == [list(row) for row in wanted]
    pd = pytest.importorskip("pandas")
    for values in ([3, None, None, None], pd.array([3, pd.NA, pd.NA, pd.NA], dtype="Int64")):
        found = records_from_frame(pd.DataFrame({"x": values, "b": frame["b"]}), schema)
        assert found.tolist() == [list(row) for row in wanted]
    pl = pytest.importorskip("polars")
    found = records_from_frame(pl.DataFrame({"x": [3, None, None, None], "b": frame["b"]}), schema)
    assert found.tolist() == [list(row) for row in wanted]


def test_a_number_for_no_answer_is_found_in_a_frame_of_floats():
    schema = Schema((number(0, 9, missing="99"), Attribute("b", "nominal", ("y", "n"))))
    frame = {"x": [3.0, 99.0], "b": ["y", "n"]}
    assert records_from_frame(frame, schema).tolist() == [[3, 0], [10, 1]]


def test_a_gap_where_an_answer_is_due_is_told_with_its_row(tmp_path):
    schema = Schema((number(0, 9), Attribute("b", "nominal", ("y", "n"))))
    (tmp_path / "people.csv").write_text("x,b\n3,y\n ,n\n")
    with pytest.raises(DataError, match=r"people.csv, line 3: attribute 'x': no value given"):
        read_csv(tmp_path / "people.csv", schema)
    with pytest.raises(DataError, match=r"row 2: attribute 'x': no value given"):
        records_from_frame({"x": [3.0, math.nan], "b": ["y", "n"]}, schema)
    (tmp_path / "me.json").write_text('{"x": NaN, "b": "y"}')
    with pytest.raises(DataError, match=r"me.json: attribute 'x': no value given"):
        read_record(tmp_path / "me.json", schema)


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


def test_a_protocol_that_would_take_a_gap_for_a_number_is_not_asked_to(tmp_path, monkeypatch):
    (tmp_path / "study.toml").write_text(
        'title = "T"\n[schema.a]\ntype = "numeric"\nlowest = 0\nhighest = 9\nmissing = "?"\n'
        '[schema.b]\ncategories = ["x", "y"]\n[parties]\ncount = 5\n'
        '[protocol]\nname = "collaborative_k_anonymity"\nk = 2\nquasi_identifiers = ["b"]\n'
        'confidential = ["a"]\n'
    )
    assert load_scenario(tmp_path / "study.toml").study.schema.attributes[0].missing == "?"
    monkeypatch.setattr(CollaborativeKAnonymity, "numbers_may_be_missing", False)
    with pytest.raises(ScenarioError, match=r"schema.a: .* would take no answer for a number"):
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


def test_numbers_with_gaps_are_generated():
    schema = Schema((SCHEMA.attributes[0], number(0.0, 100.0, missing="no answer")))
    draws = [Draw("sex", [1, 1]), Draw("x", [1, 1], between=[(10, 19)])]
    records = Generator(draws).records(schema, 400, SeededRandomness(1))
    assert {x for _, x in records} == {*range(10, 20), 101}


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
