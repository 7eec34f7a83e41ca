"""Files as Excel, SPSS and people write them are read as what they mean, or it is said why not."""

import pytest

from mpc_rr.errors import DataError, ScenarioError
from mpc_rr.schema import Attribute, Schema
from mpc_rr.study.file import load_scenario
from mpc_rr.study.layout import PLAIN, Layout, delimiter_of, encoding_of, found_in
from mpc_rr.study.records import read_columns, read_csv

SCHEMA = Schema(
    (
        Attribute("wage", "ordinal", ("low", "high", "none"), (0.0, 1000.0, 99999.0), "none"),
        Attribute("süß", "nominal", ("ja", "nein", "andere")),
    )
)  # fmt: skip
ROWS = [["wage", "süß"], ["999,5", "ja"], ["1.234,00", "nein"], ["", "ja"]]


def written(tmp_path, rows=ROWS, delimiter=";", encoding="utf-8", head="", end=""):
    path = tmp_path / "people.csv"
    text = head + "".join(delimiter.join(row) + "\r\n" for row in rows) + end
    path.write_bytes(text.encode(encoding))
    return path


@pytest.mark.parametrize("delimiter", [";", "\t", "|"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252", "latin-1"])
@pytest.mark.parametrize(("head", "end"), [("", ""), ("", "x"), ("sep={}\r\n", "")])
def test_what_a_file_is_written_in_is_found_and_read(tmp_path, delimiter, encoding, head, end):
    end = f"{delimiter}\r\n" * 2 if end else ""  # as Excel leaves them
    path = written(tmp_path, ROWS, delimiter, encoding, head.format(delimiter), end)
    sheet = found_in(path)
    assert sheet.layout == Layout(
        delimiter, "cp1252" if encoding == "latin-1" else encoding.removesuffix("-sig"), ",", "."
    )
    assert sheet.headers == ("wage", "süß")
    assert sheet.rows == 3
    assert read_csv(path, SCHEMA, layout=sheet.layout) == [(0, 0), (1, 1), (2, 0)]


def test_bytes_that_are_no_windows_text_are_latin_1():
    assert encoding_of(b"a\x81b") == "latin-1"
    assert encoding_of(b"a\x80b") == "cp1252"


def test_commas_in_quotation_marks_do_not_separate():
    assert delimiter_of('a;"b, c, d"\n1;"x, y, z"\n') == ";"
    assert delimiter_of("only\n1\n2\n") == ","


@pytest.mark.parametrize(
    ("cells", "delimiter", "decimal", "thousands", "unsure"),
    [
        (["1,5", "2,25"], ";", ",", "", ""),
        (["1.5", "2.25"], ",", ".", "", ""),
        (["1,234.5", "2"], ";", ".", ",", ""),
        (["1.234,5", "2"], ";", ",", ".", ""),
        (["1,5", "1.234"], ";", ",", ".", ""),
        (["1.5", "1,234"], ";", ".", ",", ""),
        (["35.000", "1"], ";", ",", ".", "35.000"),
        (["35.000", "1"], ",", ".", "", "35.000"),
        (["35,000", "1"], "|", ".", ",", "35,000"),
        (["1", "2"], ";", ".", "", ""),
        (["12.03.1999", "13.04.2000"], ";", ".", "", ""),
    ],
)
def test_decimal_signs_are_told_from_thousands(
    tmp_path, cells, delimiter, decimal, thousands, unsure
):
    quoted = [f'"{cell}"' for cell in cells]
    path = written(tmp_path, [["a", "b"], *([cell, "x"] for cell in quoted)], delimiter)
    sheet = found_in(path)
    assert (sheet.layout.decimal, sheet.layout.thousands, sheet.unsure) == (
        decimal, thousands, unsure,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("layout", "text", "number"),
    [
        (PLAIN, "35,5", "35,5"),
        (PLAIN, "1_000", "1_000"),
        (Layout(decimal=","), "35,5", "35.5"),
        (Layout(decimal=","), "35.000", "35·000"),
        (Layout(decimal=",", thousands="."), "35.000", "35000"),
        (Layout(decimal=",", thousands="."), "-1.035.000,5", "-1035000.5"),
        (Layout(decimal=",", thousands="."), "35.00", "35·00"),
        (Layout(thousands=","), "1,000,000", "1000000"),
        (Layout(thousands=" "), "1\u00a0000", "1000"),
        (Layout(thousands="'"), "1'000.5", "1000.5"),
    ],
)
def test_numbers_are_read_as_they_were_meant_or_not_at_all(layout, text, number):
    assert layout.number(text) == number
    wage = SCHEMA.attributes[0]
    if number.replace(".", "").replace("-", "").isdigit() and 0 <= float(number) <= 99999:
        assert wage.code(layout.answer(text, wage)) in (0, 1)
    else:
        with pytest.raises(DataError, match=r"is not a number|outside its bins"):
            wage.code(layout.answer(text, wage))


def test_a_decimal_comma_is_hinted_at():
    with pytest.raises(DataError, match=r"'35,5' is not a number; with a point it would be 35\.5"):
        SCHEMA.attributes[0].code("35,5")


@pytest.mark.parametrize(
    ("delimiter", "says"),
    [
        (";", "Its columns look separated by semicolons, not by commas: write delimiter = \";\""),
        ("\t", "Its columns look separated by tabs, not by commas: write delimiter = \"\\\\t\""),
    ],
)  # fmt: skip
def test_another_separator_than_was_read_is_hinted_at(tmp_path, delimiter, says):
    path = written(tmp_path, ROWS, delimiter)
    with pytest.raises(DataError, match=says):
        read_csv(path, SCHEMA)
    with pytest.raises(DataError, match=says):
        read_columns(path, ["wage"])
    with pytest.raises(DataError, match=r"there is no column 'hair'; it has “wage”, “süß”$"):
        read_columns(path, ["hair"], Layout(delimiter=delimiter))


def test_the_encoding_that_a_file_looks_written_in_is_hinted_at(tmp_path):
    path = written(tmp_path, encoding="cp1252")
    with pytest.raises(DataError, match=r"is not UTF-8 text .*; it looks like Windows-1252: save"):
        read_csv(path, SCHEMA)


STUDY = """
title = "t"
[schema.a]
categories = ["yes", "no", "other"]
[schema.b]
bins = [0, 1, 2]
missing = "no answer"
[protocol]
name = "exact_pairs"
[parties]
count = 3
[data]
csv = "people.csv"
delimiter = ";"
decimal = ","
[data.columns]
a = "Do you?"
[data.others]
a = "other"
[data.values.a]
"1 = yes" = "yes"
[data.values.b]
"99" = "no answer"
"""


def test_a_study_file_says_how_its_records_are_written_and_what_they_mean(tmp_path):
    (tmp_path / "study.toml").write_text(STUDY)
    path = written(
        tmp_path, [["b", "Do you?"], ["0,5", "1 = yes"], ["99", "no"], ["1,5", "perhaps"]]
    )
    scenario = load_scenario(tmp_path / "study.toml")
    assert scenario.records() == [(0, 0), (1, 2), (2, 1)]
    assert scenario.study.digest == load_without_data(tmp_path).study.digest
    path.write_text(path.read_text().replace("perhaps", ""))
    with pytest.raises(DataError, match="line 4: attribute 'a': no value given"):
        scenario.records()


def load_without_data(tmp_path):
    (tmp_path / "bare.toml").write_text(STUDY.partition("[data]")[0])
    return load_scenario(tmp_path / "bare.toml")


@pytest.mark.parametrize(
    ("was", "becomes", "says"),
    [
        ('delimiter = ";"', 'delimiter = ":"', r"data\.delimiter: .*is not one of"),
        ("[data.others]\na", "[data.others]\nc", r"data\.others: there is no attribute “c”"),
        ('a = "other"', 'a = "rest"', r"data\.others\.a: “rest” is not one of the categories"),
        ('"99" = "no answer"', '"99" = "0–1"', r"data\.values\.b: of a number only 'missing'"),
        ('csv = "people.csv"', "", None),
    ],
)
def test_a_wrong_layout_is_refused_with_its_place(tmp_path, was, becomes, says):
    (tmp_path / "study.toml").write_text(STUDY.replace(was, becomes))
    if says is None:
        assert load_scenario(tmp_path / "study.toml").csv is None
        return
    with pytest.raises(ScenarioError, match=says):
        load_scenario(tmp_path / "study.toml")
