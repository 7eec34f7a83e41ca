"""Records from what pandas and polars really hold, and from plain columns."""

import math
import time
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpc_rr.errors import DataError
from mpc_rr.schema import Attribute, Schema, interval_labels
from mpc_rr.study.frames import records_from_frame

SEX = Attribute("sex", "nominal", ("Female", "Male", "no answer"), missing="no answer")
CHILDREN = Attribute("children", "ordinal", ("0", "1", "2", "4", "unknown"), missing="unknown")
OWNER = Attribute("owner", "nominal", ("False", "True", "?"), missing="?")
EDGES = (0.0, 18.0, 65.0, math.inf)
AGE = Attribute(
    "age", "ordinal", (*interval_labels(EDGES), "no answer"), bins=EDGES, missing="no answer"
)
STRICT = Attribute("strict", "ordinal", ("1", "2"))
SCHEMA = Schema((SEX, CHILDREN, OWNER, AGE))
WANTED = [[0, 3, 1, 0], [1, 0, 0, 1], [2, 4, 2, 3], [1, 2, 1, 2]]


def codes(column, attribute):
    """The codes of one column, beside another that is always right."""
    other = Attribute("other", "nominal", ("a", "b"))
    frame = {attribute.name: column, "other": ["a"] * len(column)}
    return records_from_frame(frame, Schema((attribute, other)))[:, 0].tolist()


def plain_columns():
    return {
        "sex": ["Female", "Male", None, "Male"],
        "children": [4, 0, None, 2],
        "owner": [True, False, None, True],
        "age": [17.5, 18, None, 65],
    }


def test_plain_columns_become_records():
    assert records_from_frame(plain_columns(), SCHEMA).tolist() == WANTED


def test_numpy_columns_become_records():
    frame = {name: np.array(column, dtype=object) for name, column in plain_columns().items()}
    frame["children"] = np.array([4, 0, np.nan, 2])
    frame["age"] = np.ma.array([17.5, 18, 0, 65], mask=[0, 0, 1, 0])
    assert records_from_frame(frame, SCHEMA).tolist() == WANTED


PANDAS_TYPES = {
    "as it comes": {},
    "object": dict.fromkeys(("sex", "children", "owner", "age"), "object"),
    "nullable": {"sex": "string", "children": "Int64", "owner": "boolean", "age": "Float64"},
    "small": {"children": "Int8", "age": "float32"},
    "categorical": dict.fromkeys(("sex", "children", "owner"), "category"),
}


@pytest.mark.parametrize("types", PANDAS_TYPES.values(), ids=PANDAS_TYPES)
def test_pandas_frames_become_records(types):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(plain_columns(), index=[7, 7, 8, 9]).astype(types)
    assert records_from_frame(frame, SCHEMA).tolist() == WANTED


@pytest.mark.parametrize("gap", ["NA", "NaT"])
def test_what_pandas_has_for_missing_values_is_no_answer(gap):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(plain_columns(), dtype=object)
    frame = frame.where(frame.notna(), getattr(pd, gap))
    assert records_from_frame(frame, SCHEMA).tolist() == WANTED
    dates = pd.Series(pd.to_datetime(["2026-01-01", None]))
    when = Attribute("when", "nominal", ("2026-01-01 00:00:00", "never"), missing="never")
    assert codes(dates, when) == [0, 1]


def test_intervals_of_pandas_are_their_text():
    pd = pytest.importorskip("pandas")
    cut = pd.cut(pd.Series([1, 15, np.nan]), [0, 10, 20])
    asked = Attribute("x", "ordinal", ("(0, 10]", "(10, 20]", "none"), missing="none")
    assert codes(cut, asked) == [0, 1, 2]


POLARS_TYPES = {
    "as it comes": {},
    "categorical": {"sex": "Categorical"},
    "enum": {"sex": "enum"},
    "small": {"children": "Int8", "age": "Float32"},
    "float": {"children": "Float64"},
    "decimal": {"children": "Decimal"},
    "object": {"children": "Object"},
}


@pytest.mark.parametrize("types", POLARS_TYPES.values(), ids=POLARS_TYPES)
def test_polars_frames_become_records(types):
    pl = pytest.importorskip("polars")
    made = {
        name: pl.Enum(["Male", "Female"]) if kind == "enum" else getattr(pl, kind)
        for name, kind in types.items()
    }
    frame = pl.DataFrame(plain_columns(), strict=False, schema_overrides=made)
    assert records_from_frame(frame, SCHEMA).tolist() == WANTED


def test_nan_and_null_of_polars_are_both_no_answer():
    pl = pytest.importorskip("polars")
    column = pl.Series([1.0, float("nan"), None, 4.0])
    assert codes(column, CHILDREN) == [1, 4, 4, 3]


@pytest.mark.parametrize(
    "value", [4, 4.0, np.int8(4), np.uint64(4), np.float32(4), np.float64(4), Decimal("4.00"),
              Fraction(4), "4", " 4 ", np.str_("4")],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_four_is_four_whoever_writes_it(value):
    assert codes([value], CHILDREN) == [3]
    assert codes([value, None, "0"], CHILDREN) == [3, 4, 0]


@pytest.mark.parametrize("value", [True, np.True_])
def test_truth_is_its_text_or_else_a_one(value):
    assert codes([value, not value], OWNER) == [1, 0]
    assert codes([value], STRICT) == [0]


def test_the_text_of_a_category_wins_over_its_number():
    asked = Attribute("x", "nominal", ("1", "1.0", "True", "01"))
    assert codes([1, 1.0, True, "01", "1.0", "True", "1"], asked) == [0, 1, 2, 3, 1, 2, 0]
    assert codes([np.float64(1.0)], asked) == [1]
    assert codes([Decimal("1.000")], Attribute("x", "nominal", ("01.0", "2"))) == [0]


def test_a_number_that_could_be_two_categories_is_none_of_them():
    asked = Attribute("x", "nominal", ("1.50", "01.5"))
    with pytest.raises(DataError, match=r"row 1: attribute 'x': '1.5' is not one of"):
        codes([1.5], asked)


def test_large_whole_numbers_are_not_mixed_up():
    asked = Attribute("id", "nominal", ("9007199254740992", "9007199254740993"))
    assert codes([2**53 + 1, 2**53], asked) == [1, 0]
    with pytest.raises(DataError, match="row 1"):
        codes([2**53 + 2], asked)


def test_short_floats_have_their_own_decimals():
    pl = pytest.importorskip("polars")
    asked = Attribute("x", "ordinal", ("0.1", "0.7", "none"), missing="none")
    assert codes(np.array([0.1, 0.7], dtype=np.float32), asked) == [0, 1]
    assert codes(np.array([0.1, 0.7], dtype=np.float16), asked) == [0, 1]
    assert codes(pl.Series([0.1, None, 0.7], dtype=pl.Float32), asked) == [0, 2, 1]


def test_a_number_for_no_answer_is_none_in_bins_too():
    asked = Attribute("age", "ordinal", ("young", "old", "99"), (0.0, 40.0, 120.0), "99")
    assert codes([99.0, 30.0, 40.0], asked) == [2, 0, 1]
    assert codes([99, 30, "99", None], asked) == [2, 0, 2, 2]


def test_in_bins_the_name_of_an_interval_is_that_interval():
    assert codes(["18–65", "3", "no answer"], AGE) == [1, 0, 3]


@given(
    st.lists(
        st.none() | st.integers(-(10**400), 10**400) | st.floats(allow_nan=True), min_size=1
    )
)  # fmt: skip
def test_bins_found_together_are_those_found_one_by_one(values):
    edges = (-math.inf, -3.0, 0.0, 0.1, 7.0, math.inf)
    asked = Attribute("x", "ordinal", (*interval_labels(edges), "?"), edges, "?")
    one_by_one = [asked.code(None if isinstance(v, float) and math.isnan(v) else v) for v in values]
    assert codes(values, asked) == one_by_one


@pytest.mark.parametrize(
    ("column", "says"),
    [
        (["1", None], "row 2: attribute 'strict': no value given"),
        ([1.0, float("nan")], "row 2: attribute 'strict': no value given"),
        ([1, 2, 3.0], "row 3: attribute 'strict': '3.0' is not one of its categories"),
        ([1, [2]], "row 2: attribute 'strict': a list is no answer"),
        ([{}, 1], "row 1: attribute 'strict': a dict is no answer"),
        ([(1, [2])], "row 1: attribute 'strict': a tuple is no answer"),
        ([1, np.array([1, 2])], "row 2: attribute 'strict': a ndarray is no answer"),
        ([b"1"], "row 1: attribute 'strict': .* is not one of its categories"),
        (np.array([[1, 2]]), "column 'strict' is not one list of values"),
        ("12", "column 'strict' is not one list of values"),
    ],
)
def test_wrong_values_are_told_with_row_and_column(column, says):
    with pytest.raises(DataError, match=says):
        codes(column, STRICT)


def test_what_is_no_column_at_all_is_told():
    frame = {"strict": 1, "sex": ["Male"]}
    with pytest.raises(DataError, match="column 'strict' is not a list of values"):
        records_from_frame(frame, Schema((STRICT, SEX)))


def test_a_number_outside_its_bins_is_told_with_its_row():
    with pytest.raises(DataError, match="row 3: attribute 'age': -1 is outside its bins"):
        codes([5.0, None, -1.0], AGE)


def test_wrong_pandas_frames_are_told():
    pd = pytest.importorskip("pandas")
    schema = Schema((STRICT, SEX))
    with pytest.raises(DataError, match="there is no column 'sex'"):
        records_from_frame(pd.DataFrame({"strict": [1]}), schema)
    twice = pd.DataFrame([[1, 2, "Male"]], columns=["strict", "strict", "sex"])
    with pytest.raises(DataError, match=r"'strict' is not one list of values \(is it there twice"):
        records_from_frame(twice, schema)
    gap = pd.DataFrame({"strict": pd.array([1, None], dtype="Int64"), "sex": ["Male", "Male"]})
    with pytest.raises(DataError, match="row 2: attribute 'strict': no value given"):
        records_from_frame(gap, schema)
    with pytest.raises(DataError, match="empty"):
        records_from_frame(gap.iloc[:0], schema)


def test_wrong_polars_frames_are_told():
    pl = pytest.importorskip("polars")
    schema = Schema((STRICT, SEX))
    frame = pl.DataFrame({"strict": [[1], [2]], "sex": ["Male", "Male"]})
    with pytest.raises(DataError, match="row 1: attribute 'strict': a list is no answer"):
        records_from_frame(frame, schema)
    with pytest.raises(DataError, match="there is no column 'strict'"):
        records_from_frame(frame.drop("strict"), schema)
    with pytest.raises(DataError, match=r"lazy and holds no values yet; collect\(\) it first"):
        records_from_frame(frame.lazy(), schema)


def test_a_hundred_thousand_rows_take_no_second():
    """Twice four columns: 0.21 s of processor time; the limit allows for a slower machine."""
    pd = pytest.importorskip("pandas")
    rng, n = np.random.default_rng(1), 100_000
    columns = {
        "sex": rng.choice(["Female", "Male"], n),
        "children": np.where(rng.random(n) < 0.5, 4.0, np.nan),
        "owner": rng.random(n) < 0.5,
        "age": rng.random(n) * 90,
    }
    frame = pd.DataFrame(columns)
    start = time.process_time()
    for _ in range(2):
        records_from_frame(frame, SCHEMA)
    assert time.process_time() - start < 1.0
