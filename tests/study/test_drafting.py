"""A drafted schema can be used as it is, and says what it left out."""

import tomllib

import pytest

from mpc_rr.errors import DataError
from mpc_rr.study.drafting import draft_schema
from mpc_rr.study.file import load_scenario
from mpc_rr.study.records import read_csv

REST = """
[protocol]
name = "rr_independent"
keep = 0.5
[parties]
count = 40
"""


@pytest.fixture
def people(tmp_path):
    lines = ["id,age,sex,children,way to work,same"]
    for k in range(40):
        way = ("on foot", 'by "bus"', "")[k % 3]
        quoted = '"' + way.replace('"', '""') + '"'
        lines.append(f"p{k:03},{18 + 1.5 * k},{'FM'[k % 2]},{k % 4},{quoted},x")
    path = tmp_path / "people.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_columns_become_what_they_look_like(people):
    draft = draft_schema(people)
    schema = tomllib.loads(draft)["schema"]
    assert set(schema) == {"age", "sex", "children", "way to work", "id"}
    assert schema["sex"] == {"categories": ["F", "M"]}
    assert schema["children"] == {"type": "ordinal", "categories": ["0", "1", "2", "3"]}
    assert schema["age"]["bins"][0] == float("-inf")
    assert schema["age"]["bins"] == sorted(set(schema["age"]["bins"]))
    assert "# same: left out" in draft
    assert "# 13 of 40 records have no answer here" in draft
    assert schema["way to work"]["missing"] == "no answer"


def test_a_draft_can_be_used(people, tmp_path):
    study = tmp_path / "study.toml"
    study.write_text('title = "Drafted"\n' + draft_schema(people) + REST)
    schema = load_scenario(study).study.schema
    assert schema.names == ("id", "age", "sex", "children", "way to work")
    records = read_csv(people, schema)
    assert sum(way == schema.attributes[4].missing_code for *_, way in records) == 13


def test_too_many_values_are_left_out(tmp_path):
    path = tmp_path / "ids.csv"
    path.write_text("id,x\n" + "".join(f"p{k},{k % 2}\n" for k in range(100)))
    assert "# id: left out, 100 different values are too many" in draft_schema(path)


def test_columns_that_all_have_gaps_are_drafted_all_the_same(tmp_path):
    path = tmp_path / "gaps.csv"
    path.write_text("a,b\nx,\ny,1\n,2\n")
    assert set(tomllib.loads(draft_schema(path))["schema"]) == {"a", "b"}


@pytest.mark.parametrize("first", ["1e308", "1000000000000000"])
def test_numbers_without_round_ones_between_them_are_left_out(tmp_path, first):
    path = tmp_path / "numbers.csv"
    values = [f"-{first}", *(f"{k}e300" for k in range(20))] if "e" in first else [
        str(int(first) + k) for k in range(20)
    ]  # fmt: skip
    values += [first]
    path.write_text("x,y\n" + "".join(f"{v},{k % 2}\n" for k, v in enumerate(values)))
    assert "# x: left out, its numbers are too close" in draft_schema(path)


@pytest.mark.parametrize("text", ["", "a\n", "a,b\nx,y\n", "a\nsame\nsame\n"])
def test_nothing_to_ask_is_told(tmp_path, text):
    path = tmp_path / "empty.csv"
    path.write_text(text)
    with pytest.raises(DataError):
        draft_schema(path)
