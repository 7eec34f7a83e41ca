import math

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpc_rr.errors import DataError, SchemaError
from mpc_rr.schema import MOST_CATEGORIES, Attribute, Schema, interval_labels
from mpc_rr.study.file import schema_of_tables
from mpc_rr.study.frames import records_from_frame

YES_NO = Attribute("smokes", "nominal", ("no", "yes"))
AGE = Attribute("age", "ordinal", ("young", "old"), (0.0, 40.0, math.inf))


class Compared(str):
    """A word that counts how often it is compared."""

    times = 0

    def __eq__(self, other):
        type(self).times += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


def test_many_categories_are_not_compared_each_with_all():
    """A folder with 60,000 of them once kept who verified it busy for most of a minute."""
    words, Compared.times = tuple(Compared(f"c{k}") for k in range(1000)), 0
    Attribute("a", "nominal", words, labels={words[0]: "x"})
    assert Compared.times < 10 * len(words)


def test_a_schema_has_not_any_number_of_categories():
    half = tuple(f"c{k}" for k in range(MOST_CATEGORIES // 2))
    one, other = (Attribute(name, "nominal", half) for name in "ab")
    Schema((one, other))
    with pytest.raises(SchemaError, match="the schema has 100,002 categories"):
        Schema((one, other, YES_NO))


def test_a_record_becomes_category_numbers():
    schema = Schema((YES_NO, AGE))
    assert schema.encode({"age": 40, "smokes": "yes"}) == (1, 1)
    assert schema.encode({"age": "39.9", "smokes": " no "}) == (0, 0)


@given(
    st.lists(st.integers(-1000, 1000), min_size=3, max_size=8, unique=True).map(sorted),
    st.floats(0, 1),
)
def test_bins_agree_with_numpy(edges, place):
    attribute = Attribute(
        "x", "ordinal", interval_labels(tuple(map(float, edges))), tuple(map(float, edges))
    )
    value = edges[0] + place * (edges[-1] - edges[0])
    expected = min(int(np.digitize(value, edges)) - 1, len(edges) - 2)
    assert attribute.code(value) == expected


@pytest.mark.parametrize(
    ("answers", "says"),
    [
        ({"smokes": "yess", "age": 3}, "did you mean 'yes'"),
        ({"smokes": "yes", "age": "old"}, "'old' is not a number"),
        ({"smokes": "yes", "age": -1}, "outside its bins"),
        ({"smokes": "yes", "age": math.nan}, "no value"),
        ({"smokes": "yes", "age": ""}, "no value"),
        ({"smokes": "yes"}, "'age': no value"),
        ({"smokes": "yes", "age": 3, "name": "Ann"}, "'name' is not an attribute"),
    ],
)
def test_a_bad_record_is_told_plainly(answers, says):
    with pytest.raises(DataError, match=says):
        Schema((YES_NO, AGE)).encode(answers)


def joined(joins):
    table = {"categories": ["north", "south"], "missing": "?", "joins": joins}
    return schema_of_tables({"town": table, "smokes": {"categories": ["yes", "no"]}})


def test_finer_answers_are_told_as_the_category_that_joins_them():
    schema = joined({"north": ["Kiel", "Lübeck"]})
    town = schema.attributes[0]
    codes = [town.code(answer) for answer in ("north", "Kiel", " Lübeck", "south", "")]
    assert codes == [0, 0, 0, 1, 2]
    assert town.intervals == {"north": "also “Kiel”, “Lübeck”"}
    frame = {"town": ["Kiel", "south", None], "smokes": ["yes", "no", "no"]}
    assert records_from_frame(frame, schema).tolist() == [[0, 0], [1, 1], [2, 1]]
    with pytest.raises(DataError, match="did you mean 'Kiel'"):
        town.code("Kie")


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Attribute("x", "nominal", ("a",)), "at least two"),
        (lambda: Attribute("x", "nominal", ("a", "a")), "given twice"),
        (lambda: Attribute("x", "ordinal", ("a", "b"), (0.0, 1.0)), "2 bin edges make 1"),
        (lambda: Attribute("x", "ordinal", ("a", "b"), (0.0, 1.0, 1.0)), "must rise"),
        (lambda: Attribute(" x", "nominal", ("a", "b")), "padded"),
        (lambda: joined({"north": ["Kiel"], "east": ["Ulm"]}), "'east' is no category"),
        (lambda: joined({"?": ["Kiel"]}), "'\\?' is no category that can be answered"),
        (lambda: joined({"north": []}), "empty"),
        (lambda: joined({"north": ["Kiel "]}), "padded"),
        (lambda: joined({"north": ["Kiel"], "south": ["Kiel"]}), "'Kiel' is two answers"),
        (lambda: joined({"north": ["south"]}), "'south' is two answers"),
        (lambda: msgspec.structs.replace(AGE, joins={AGE.categories[0]: ("1",)}), "wider bins"),
        (lambda: Schema((YES_NO,)), "at least two attributes"),
        (lambda: Schema((YES_NO, YES_NO)), "twice"),
    ],
)
def test_a_bad_schema_is_told_plainly(make, says):
    with pytest.raises(SchemaError, match=says):
        make()


def test_intervals_have_readable_names():
    labels = interval_labels((-math.inf, 16.0, 30.0, math.inf))
    assert labels == ("under 16", "16–30", "30 and over")


def test_no_answer_is_a_category_of_its_own_where_the_schema_allows():
    job = Attribute("job", "nominal", ("yes", "no", "not told"), missing="not told")
    assert [job.code(value) for value in ("yes", "", None, "not told")] == [0, 2, 2, 2]
    age = Attribute("age", "ordinal", ("0–30", "30–60", "?"), (0.0, 30.0, 60.0), "?")
    assert [age.code(value) for value in ("45", "", "?")] == [1, 2, 2]
    with pytest.raises(DataError, match="no value given"):
        Attribute("job", "nominal", ("yes", "no")).code("")
    schema = Schema((job, age))
    assert schema.encode({"job": "no"}) == (1, 2)


@pytest.mark.parametrize("bins", [None, (0.0, 30.0, 60.0)])
def test_no_answer_is_the_last_category_if_it_is_not_named_among_them(bins):
    """As in a study file: it is the same study, with the same digest."""
    answers = ("0–30", "30–60")
    short = Attribute("age", "ordinal", answers, bins, missing="NA")
    assert short == Attribute("age", "ordinal", (*answers, "NA"), bins, missing="NA")
    assert short.missing_code == 2
    assert [short.code(value) for value in ("", None, "NA")] == [2, 2, 2]
    assert msgspec.json.decode(msgspec.json.encode(short), type=Attribute) == short


@pytest.mark.parametrize(
    ("categories", "bins", "missing"),
    [
        (("?", "0–30", "30–60"), (0.0, 30.0, 60.0), "?"),
        (("0–30", "30–60"), (0.0, 30.0, 60.0), "30–60"),
    ],
)
def test_a_missing_category_that_makes_no_sense_is_told(categories, bins, missing):
    with pytest.raises(SchemaError):
        Attribute("x", "ordinal", categories, bins, missing)
