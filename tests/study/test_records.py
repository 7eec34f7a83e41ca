import json

import numpy as np
import pytest
from helpers import make_schema

import mpc_rr
from mpc_rr.errors import DataError, ScenarioError
from mpc_rr.randomness import SeededRandomness
from mpc_rr.study.frames import records_from_frame
from mpc_rr.study.generator import Draw, Generator
from mpc_rr.study.records import read_csv, read_record

SCHEMA = make_schema((2, 3))


def write(tmp_path, content):
    path = tmp_path / "people.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def test_records_are_read_in_order_and_other_columns_ignored(tmp_path):
    path = write(tmp_path, "\ufeffa1,name,a0\nv2,Ann,v1\n\nv0,Bob,v0\n")
    assert read_csv(path, SCHEMA) == [(1, 2), (0, 0)]


def test_single_rows_are_picked_without_looking_at_the_others(tmp_path):
    path = write(tmp_path, "a0,a1\nnonsense,v0\nv1,v1\nv0,v2\n")
    assert read_csv(path, SCHEMA, range(2, 4)) == [(1, 1), (0, 2)]
    with pytest.raises(DataError, match="no record number 4"):
        read_csv(path, SCHEMA, range(3, 6))


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", "is empty"),
        ("\n", "is empty"),
        ("a0,a1\n", "no records"),
        ("a0\nv1\n", "no column 'a1'; it has “a0”"),
        ("a0,a1,a0\nv1,v1,v1\n", "column 'a0' is there twice"),
        ("a0,a1\nv1,v1,v1\n", "line 2: 3 fields where the header has 2"),
        ("a0,a1\nv1,v1\nv1\n", "line 3: 1 fields"),
        ("a0,a1\nv1,v9\n", "line 2: attribute 'a1': 'v9' is not one of its categories"),
        ("a0,a1\nv1,\n", "line 2: attribute 'a1': no value"),
        ('a0,a1\nv1,"v2\n', "not a CSV file"),
        (b"a0,a1\nv1,v\xe92\n", "is not UTF-8 text"),
    ],
)
def test_a_bad_file_is_told_with_its_line(tmp_path, content, says):
    with pytest.raises(DataError, match=says):
        read_csv(write(tmp_path, content), SCHEMA)


def test_a_missing_file_is_told(tmp_path):
    with pytest.raises(DataError, match=r"nowhere\.csv: No such file"):
        read_csv(tmp_path / "nowhere.csv", SCHEMA)


def test_a_record_file_is_json_or_toml(tmp_path):
    (tmp_path / "me.json").write_text(json.dumps({"a0": "v1", "a1": "v2"}))
    (tmp_path / "me.toml").write_text('a0 = "v1"\na1 = "v2"\n')
    assert read_record(tmp_path / "me.json", SCHEMA) == (1, 2)
    assert read_record(tmp_path / "me.toml", SCHEMA) == (1, 2)


@pytest.mark.parametrize(
    ("text", "says"),
    [("[1]", "one record"), ("{", "cannot be read"), ('{"a0": "v1"}', "'a1': no value")],
)
def test_a_bad_record_file_is_told(tmp_path, text, says):
    path = tmp_path / "me.json"
    path.write_text(text)
    with pytest.raises(DataError, match=says):
        read_record(path, SCHEMA)


def generator(**changes):
    draws = [
        Draw("a0", [1, 3]),
        Draw("a1", {"v0": [1, 0, 0], "v1": [0, 1, 1]}, given="a0"),
    ]
    return Generator(**({"draw": draws} | changes))


def test_generated_people_follow_the_weights():
    """4,000 people; each share is within 5 standard errors (false alarm below 1 in a million)."""
    records = np.array(generator().records(SCHEMA, 4000, SeededRandomness(1)))
    assert abs((records[:, 0] == 1).mean() - 0.75) < 5 * np.sqrt(0.75 * 0.25 / 4000)
    assert set(records[records[:, 0] == 0, 1]) == {0}
    ones = records[records[:, 0] == 1, 1]
    assert set(ones) == {1, 2}
    assert abs((ones == 1).mean() - 0.5) < 5 * np.sqrt(0.25 / len(ones))


@pytest.mark.parametrize(
    ("draws", "says"),
    [
        ([Draw("a0", [1, 1])], "'a1' is never drawn"),
        ([Draw("a0", [1, 1]), Draw("a0", [1, 1])], "drawn twice"),
        ([Draw("b", [1, 1])], "not in the schema"),
        ([Draw("a0", [1, 1, 1])], "2 non-negative numbers"),
        ([Draw("a0", [0, 0])], "2 non-negative numbers"),
        ([Draw("a0", {"x": [1, 1]})], "needs 'given'"),
        ([Draw("a0", [1, 1], given="a1")], "not drawn before"),
        ([Draw("a0", [1, 1]), Draw("a1", [1, 1, 1], given="a0")], "one list for each 'a0'"),
    ],
)
def test_a_bad_generator_is_told(draws, says):
    with pytest.raises(ScenarioError, match=says):
        generator(draw=draws).check(SCHEMA)


def test_a_frame_becomes_records():
    frame = {"a1": ["v2", "v0"], "name": ["Ann", "Bob"], "a0": ["v1", "v0"]}
    np.testing.assert_array_equal(records_from_frame(frame, SCHEMA), [[1, 2], [0, 0]])


@pytest.mark.parametrize(
    ("frame", "says"),
    [
        ({"a0": ["v1"]}, "no column 'a1'"),
        ({"a0": ["v1", "v7"], "a1": ["v1", "v1"]}, "row 2: attribute 'a0': 'v7' is not one"),
        ({"a0": ["v1"], "a1": ["v1", "v1"]}, "different lengths"),
        ({"a0": [], "a1": []}, "empty"),
    ],
)
def test_a_bad_frame_is_told(frame, says):
    with pytest.raises(DataError, match=says):
        records_from_frame(frame, SCHEMA)


def test_everything_promised_at_the_top_is_there():
    for name in mpc_rr.__all__:
        assert getattr(mpc_rr, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = mpc_rr.nonsense
