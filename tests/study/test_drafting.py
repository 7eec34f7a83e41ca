"""A drafted schema can be used as it is, and says what it left out."""

import math
import tomllib

import pytest

from mpc_rr.errors import DataError
from mpc_rr.study.drafting import Assumed, draft, draft_schema
from mpc_rr.study.file import load_scenario
from mpc_rr.study.layout import found_in
from mpc_rr.study.records import read_csv
from mpc_rr.study.suggesting import Bins, Categories, Numbers

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
    assert set(schema) == {"age", "sex", "children", "way to work"}
    assert "# id: left out, it numbers people" in draft
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
    assert schema.names == ("age", "sex", "children", "way to work")
    records = read_csv(people, schema)
    assert sum(way == schema.attributes[3].missing_code for *_, way in records) == 13


def test_too_many_values_are_left_out(tmp_path):
    path = tmp_path / "ids.csv"
    path.write_text("town,x\n" + "".join(f"t{k % 70},{k % 2}\n" for k in range(140)))
    assert "# town: left out, 70 different values are too many" in draft_schema(path)


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


def test_numbers_can_be_drafted_as_they_are(tmp_path):
    """Bounds between round numbers that hold nearly all; who is beyond is told as the bound."""
    rows = [f"{20 + k % 60},{1500 + 100 * (k % 90)},{22.5 + k % 31 / 10}" for k in range(400)]
    rows[7] = "119,10000000,22.5"
    path = tmp_path / "people.csv"
    path.write_text("age,income,bmi\n" + "\n".join(rows))
    text = draft_schema(path, numbers=True)
    tables = tomllib.loads(text)["schema"]
    assert tables["age"] == {
        "type": "numeric", "lowest": 20, "highest": 79, "clip": "both",
    }  # fmt: skip
    assert (tables["income"]["step"], tables["bmi"]["step"]) == (100, 0.1)
    assert tables["income"]["lowest"] <= 1600
    assert 10300 <= tables["income"]["highest"] <= 11000
    study = tmp_path / "study.toml"
    asked = 'name = "collaborative_masking"\nconfidential = ["income", "bmi"]\nopen = ["age"]'
    rest = REST.replace('name = "rr_independent"\nkeep = 0.5', asked)
    study.write_text('title = "Drafted"\n' + text + rest)
    schema = load_scenario(study).study.schema
    assert schema.encode({"age": "119", "income": "10000000", "bmi": 22.5}) == (
        schema.attributes[0].size - 1, schema.attributes[1].size - 1,
        schema.attributes[2].code(22.5),
    )  # fmt: skip
    assert "more counts as 79" in schema.attributes[0].answers


@pytest.mark.parametrize("column", ["a,b,c,d,e,f,g,h,i,j,k,l,m,n", "1,2,3"])
def test_texts_and_few_numbers_stay_categories(tmp_path, column):
    path = tmp_path / "people.csv"
    path.write_text(
        "x,y\n" + "\n".join(f"{value},{k % 2}" for k, value in enumerate(5 * column.split(",")))
    )
    assert "numeric" not in draft_schema(path, numbers=True)


# ── What is asked, and what is assumed ─────────────────────────────────────────────────────────


class Scripted(Assumed):
    """Answers by what a question is about; what is usual to all others."""

    def __init__(self, **answers):
        super().__init__()
        self.answers, self.asked = answers, []

    def _answer(self, question, usual):
        self.asked.append(question)
        for word, answer in self.answers.items():
            if word.replace("_", " ") in question:
                return answer.pop(0) if isinstance(answer, list) else answer
        return usual

    def yes(self, question, *, usual, assumed):
        return self._answer(question, super().yes(question, usual=usual, assumed=assumed))

    def text(self, question, *, usual, assumed):
        return self._answer(question, super().text(question, usual=usual, assumed=assumed))


def drafted(tmp_path, header, cells, asker=None, **options):
    path = tmp_path / "one.csv"
    rows = "".join(f'"{cell}";{number % 2}\n' for number, cell in enumerate(cells))
    path.write_text(f'"{header}";half\n{rows}')
    sheet = found_in(path, delimiter=";", encoding="utf-8")
    asker = Assumed() if asker is None else asker
    return draft(path, sheet, asker, **options), asker


def test_codes_for_no_answer_are_asked_about_and_the_answer_is_heard(tmp_path):
    cells = ["1", "2", "3", "4", "5", "99"] * 4
    found, asker = drafted(tmp_path, "mood", cells)
    assert found.asked[0].kind == Categories(("1", "2", "3", "4", "5"), ordinal=True)
    assert found.asked[0].values == {"99": "no answer"}
    assert "“99” in column “mood” means that there is no answer" in asker.said
    found, asker = drafted(tmp_path, "mood", cells, Scripted(Does=False))
    assert found.asked[0].missing is None
    assert found.asked[0].kind == Categories(("1", "2", "3", "4", "5", "99"), ordinal=True)
    assert "4 records say “99”" in asker.asked[0]


def test_a_code_that_might_be_an_answer_is_one_unless_somebody_says_otherwise(tmp_path):
    cells = [str(age) for age in (*range(91, 17, -1), 99)]
    found, asker = drafted(tmp_path, "age", cells)
    assert found.asked[0].missing is None
    assert "“99” in column “age” is an answer like any other" in asker.said
    found, _ = drafted(tmp_path, "age", cells, Scripted(Does=True))
    assert found.asked[0].values == {"99": "no answer"}


@pytest.mark.parametrize("code", ["99999", "99999,00", "999999"])
def test_codes_for_no_answer_are_found_among_decimals(tmp_path, code):
    """Seven records of a survey with a decimal comma: else they would be its highest incomes."""
    cells = [f"{800 + 71 * k},{k % 90 + 10}" for k in range(60)] + [code] * 7
    found, asker = drafted(tmp_path, "income", cells)
    assert found.asked[0].values == {code: "no answer"}
    assert found.asked[0].gaps == 7
    assert max(edge for edge in found.asked[0].kind.edges if edge < math.inf) < 6000
    assert f"“{code}” in column “income” means that there is no answer" in asker.said


LONE = ["1500"] * 15 + ["2500"] * 20 + ["4000"] * 11 + ["950000"]


@pytest.mark.parametrize("cells", [LONE, [text.replace("00", "0.5", 1) for text in LONE]])
def test_numbers_that_one_person_alone_gave_are_not_named(tmp_path, cells):
    found, asker = drafted(tmp_path, "income", cells, as_numbers=True)
    kind = found.asked[0].kind
    assert isinstance(kind, Numbers)
    assert kind.highest < 5000
    found, asker = drafted(tmp_path, "income", cells)
    assert isinstance(found.asked[0].kind, Bins)
    assert len(found.asked[0].kind.edges) > 3
    assert "950" not in found.schema_text()
    assert any("said in column “income” by only one record" in said for said in asker.said)
    found, asker = drafted(tmp_path, "income", cells, Scripted(only_one_record=False))
    assert found.asked[0].kind.ordinal
    assert "will name answers of column “income” that a single record has" in asker.warnings[0]


def test_a_scale_keeps_its_ends_though_one_person_alone_gave_them(tmp_path):
    """What lies between is named as well: a scale says what could be answered."""
    cells = ["1"] + ["2", "3", "4"] * 10 + ["5", "7"]
    found, _ = drafted(tmp_path, "mood", cells)
    assert found.asked[0].kind == Categories(tuple("1234567"), ordinal=True)


@pytest.mark.parametrize(
    "header", ["PLZ", "Postleitzahl", "zip_code", "Your postcode?", "plz wohnort"]
)
def test_a_postcode_is_no_number_and_is_left_out(tmp_path, header):
    cells = [f"{k * 997:05}" for k in range(60)]
    found, _ = drafted(tmp_path, header, cells)
    assert [asked.name for asked in found.asked] == ["half"]
    assert found.left_out[header].startswith("a postcode narrows down who a person is")
    region = [text[:1] for text in cells]
    found, _ = drafted(tmp_path, header, region)
    assert found.asked[0].kind.ordinal
    zipper, _ = drafted(tmp_path, "zipper", ["open", "shut"] * 9)
    assert len(zipper.asked) == 2


def test_a_single_number_far_out_does_not_take_the_intervals_of_all(tmp_path):
    found, _ = drafted(tmp_path, "income", [str(1500 + 100 * k) for k in range(60)] + ["9500000"])
    assert len(found.asked[0].kind.edges) == 6


def test_value_labels_give_answers_and_their_order(tmp_path):
    cells = ["2 = no", "1 = yes", "9 = refused", "#NULL!"] * 3
    found, _ = drafted(tmp_path, "car", cells)
    assert found.asked[0].kind == Categories(("yes", "no"), ordinal=False)
    assert found.asked[0].values == {
        "1 = yes": "yes", "2 = no": "no", "9 = refused": "no answer", "#NULL!": "no answer",
    }  # fmt: skip
    cells = ["1 = bad", "2", "3", "4 = good", "99"] * 3
    found, _ = drafted(tmp_path, "q", cells)
    assert found.asked[0].kind == Categories(("1", "2", "3", "4"), ordinal=True)
    assert found.asked[0].labels == {"1": "1 = bad", "4": "4 = good"}
    assert found.asked[0].values["99"] == "no answer"


def test_an_order_that_is_not_known_is_asked_for(tmp_path):
    cells = ["b", "c", "a"] * 5
    found, asker = drafted(tmp_path, "x", cells)
    assert found.asked[0].kind == Categories(("a", "b", "c"), ordinal=False)
    assert "the answers of column “x” have no order" in asker.said
    asker = Scripted(have_an_order=["2 2 1", "first", "2, 3, 1"])
    found, _ = drafted(tmp_path, "x", cells, asker)
    assert found.asked[0].kind == Categories(("b", "c", "a"), ordinal=True)
    assert asker.warnings == 2 * ["each number from 1 to 3 once, please"]


def test_what_one_person_alone_answered_is_not_named_in_the_study_file(tmp_path):
    cells = ["cook"] * 10 + ["nurse"] * 10 + ["astronaut", "pope"]
    found, asker = drafted(tmp_path, "job", cells)
    text = found.schema_text() + found.data_text("one.csv")
    assert found.asked[0].kind == Categories(("cook", "nurse", "other"), ordinal=False)
    assert "astronaut" not in text
    assert found.layout.others == {"job": "other"}
    assert any("counted as “other” (2 of 4 answers)" in said for said in asker.said)
    found, asker = drafted(tmp_path, "job", cells, Scripted(only_one_record=False))
    assert "astronaut" in found.schema_text()
    assert "will name answers of column “job” that a single record has" in asker.warnings[0]


def test_numbers_are_binned_as_somebody_says_or_asked_as_such(tmp_path):
    cells = [f"{k}.5" for k in range(40)]
    asker = Scripted(Between_which=["30, 10", "ten", "10, 20.5"])
    found, _ = drafted(tmp_path, "x", cells, asker)
    assert found.asked[0].kind == Bins((float("-inf"), 10.0, 20.5, float("inf")))
    assert len(asker.warnings) == 2
    found, _ = drafted(tmp_path, "x", cells, as_numbers=True)
    assert found.asked[0].kind == Numbers(1, 39, 0.1)  # 0.5 and 39.5 are one person's each


def test_whoever_wants_a_column_that_tells_people_apart_may_have_it(tmp_path):
    cells = [f"code {k}" for k in range(30)]
    found, asker = drafted(tmp_path, "who", cells)
    assert found.left_out["who"].startswith("it numbers people")
    asker = Scripted(all_the_same=True, only_one_record=False)
    assert drafted(tmp_path, "who", cells, asker)[0].left_out == {}


@pytest.mark.parametrize(
    ("header", "name", "question"),
    [
        ("q12. How old are you?", "q12", "How old are you?"),
        ("How old are you?", "how_old_are_you", "How old are you?"),
        ("age", "age", None),
        ("a  b", "a b", None),
        ("x" * 50, "x" * 40, "x" * 50),
    ],
)
def test_a_header_that_is_a_question_becomes_one(tmp_path, header, name, question):
    found, _ = drafted(tmp_path, header, ["1", "2"] * 5)
    assert (found.asked[0].name, found.asked[0].question) == (name, question)
    assert found.layout.columns == ({} if name == header else {name: header})


def test_a_draft_of_another_layout_says_how_to_read_the_file(tmp_path):
    path = tmp_path / "people.csv"
    rows = "".join(f"{k},5;{'ja' if k % 3 else 'k.A.'};{k % 2}\n" for k in range(30))
    path.write_bytes(("größe;süß;b\n" + rows.replace("0,5;k.A.", "0,5;nein", 1)).encode("cp1252"))
    study = tmp_path / "study.toml"
    study.write_text('title = "Drafted"\n' + draft_schema(path) + REST.replace("40", "30"))
    scenario = load_scenario(study)
    records = scenario.records()
    assert scenario.study.schema.names == ("größe", "süß", "b")
    missing = scenario.study.schema.attributes[1].missing_code
    assert sum(record[1] == missing for record in records) == 9
