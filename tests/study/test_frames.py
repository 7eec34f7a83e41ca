"""Schemas and studies from data frames, and back to the values."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mpc_rr.errors import DataError, InputError, ScenarioError, SchemaError
from mpc_rr.protocols.rr_independent import RRIndependent
from mpc_rr.study.definition import Deadlines, Parties
from mpc_rr.study.frames import records_from_frame, schema_from_frame, study_from_frame

PEOPLE = {
    "sex": ["F", "M"] * 20,
    "children": [0, 1, 2, 3] * 10,
    "age": [18 + 1.5 * k for k in range(40)],
    "owner": [True, False] * 20,
    "health": [None, "good", "bad", ""] * 10,
    "pets": [0.0, 10.0, math.nan, 2.0] * 10,
}


FRAMES = {
    "dict": lambda: PEOPLE,
    "pandas": lambda: pytest.importorskip("pandas").DataFrame(PEOPLE),
    "polars": lambda: pytest.importorskip("polars").DataFrame(PEOPLE),
}


@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES)
def test_columns_become_what_they_look_like(frame):
    found = schema_from_frame(frame())
    assert found.names == tuple(PEOPLE)
    sex, children, age, owner, health, pets = found.attributes
    assert (sex.type, sex.categories, sex.missing) == ("nominal", ("F", "M"), None)
    assert (children.type, children.categories) == ("ordinal", ("0", "1", "2", "3"))
    assert age.type == "ordinal"
    assert age.bins == (-math.inf, 30.0, 41.0, 53.0, 65.0, math.inf)
    assert (owner.type, owner.categories) == ("nominal", ("False", "True"))
    assert (health.categories, health.missing) == (("bad", "good", "no answer"), "no answer")
    assert (pets.type, pets.categories) == ("ordinal", ("0", "2", "10", "no answer"))


@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES)
def test_the_records_fit_the_schema_of_their_frame(frame):
    found = schema_from_frame(frame())
    records = records_from_frame(frame(), found)
    first = [a.categories[code] for a, code in zip(found.attributes, records[0], strict=True)]
    assert first == ["F", "0", "under 30", "True", "no answer", "0"]


def test_declared_categories_of_pandas_are_kept():
    pd = pytest.importorskip("pandas")
    sizes = pd.CategoricalDtype(["small", "medium", "large"], ordered=True)
    colours = pd.CategoricalDtype(["red", "blue", "grey"])
    levels = pd.CategoricalDtype([4, 1.5, 2])
    frame = pd.DataFrame(
        {
            "size": pd.Series(["large", "small", None], dtype=sizes),
            "colour": pd.Series(["red", "grey", "red"], dtype=colours),
            "level": pd.Series([4, 2, 1.5], dtype=levels),
            "cut": pd.cut(pd.Series([1, 15, np.nan]), [0, 10, 20]),
        }
    )
    found = schema_from_frame(frame)
    size, colour, level, cut = found.attributes
    assert (size.type, size.categories) == ("ordinal", ("small", "medium", "large", "no answer"))
    assert (colour.type, colour.categories) == ("nominal", ("red", "blue", "grey"))
    assert (level.type, level.categories) == ("nominal", ("4", "1.5", "2"))
    assert (cut.type, cut.categories) == ("ordinal", ("(0, 10]", "(10, 20]", "no answer"))
    wanted = [[2, 0, 0, 0], [0, 2, 2, 1], [3, 0, 1, 2]]
    assert records_from_frame(frame, found).tolist() == wanted


def test_declared_categories_of_polars_are_kept():
    pl = pytest.importorskip("polars")
    pl.Series(["elsewhere"], dtype=pl.Categorical)  # such strings may be kept for all columns
    frame = pl.DataFrame(
        {"size": ["large", "small", None], "colour": ["red", "grey", "red"]},
        schema={"size": pl.Enum(["small", "medium", "large"]), "colour": pl.Categorical},
    )
    found = schema_from_frame(frame)
    size, colour = found.attributes
    assert (size.type, size.categories) == ("nominal", ("small", "medium", "large", "no answer"))
    assert colour.categories == ("grey", "red")
    assert records_from_frame(frame, found).tolist() == [[2, 1], [0, 0], [3, 1]]


def test_bins_and_attributes_can_be_named():
    found = schema_from_frame(PEOPLE, bins={"age": [0, 40, 80]}, attributes=["age", "sex"])
    assert found.names == ("age", "sex")
    assert found.attribute("age").categories == ("0–40", "40–80")


def test_one_value_of_two_that_are_known_is_enough():
    found = schema_from_frame({"owner": [True, True], "sex": ["F", "M"]})
    assert found.attribute("owner").categories == ("False", "True")


TEXTS = [f"text {k}" for k in range(100)]
SEX = ["F", "M"] * 50


@pytest.mark.parametrize(
    ("frame", "options", "says"),
    [
        ({"id": TEXTS, "sex": SEX}, {}, r"'id': 100 different .* leave it out .*attributes="),
        ({"x": ["a"] * 100, "sex": SEX}, {}, "'x': it has fewer than two different values"),
        ({"x": [None] * 100, "sex": SEX}, {}, "'x': it has fewer than two different values"),
        ({"x": [1e15 + k for k in range(100)], "sex": SEX}, {}, "'x': its numbers are too close"),
        ({"x": [[1], [2]], "sex": SEX[:2]}, {}, "row 1: attribute 'x': a list is no answer"),
        ({"x": ["a", None], "sex": SEX[:2]}, {"missing": None}, "'x': it has fewer"),
        ({"x": ["a", "b", None], "sex": SEX[:3]}, {"missing": None}, "row 3: column 'x' has no"),
        ({"x": [1, 2], "sex": SEX}, {}, "rows, but"),
        ({"x": [], "sex": []}, {"bins": {"x": [0, 1, 2], "sex": [0, 1, 2]}}, "frame is empty"),
        ({1: [1, 2], "sex": SEX[:2]}, {}, "column 1: its name is not text"),
        ({"x": [1, 2], "sex": SEX[:2]}, {"bins": {"y": [0, 1]}}, "bins are given for 'y'"),
        ({"x": [1, 5], "sex": SEX[:2]}, {"bins": {"x": [0, 2, 4]}}, "row 2: attribute 'x': 5 is"),
        ({"x": [1, 5], "sex": SEX[:2]}, {"attributes": ["x", "y"]}, "there is no column 'y'"),
        (7, {}, "a data frame or a dict of columns is needed"),
    ],
)
def test_what_cannot_be_asked_is_told(frame, options, says):
    with pytest.raises(DataError, match=says):
        schema_from_frame(frame, **options)


def test_many_declared_categories_are_told():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"id": pd.Series(TEXTS, dtype="category"), "sex": SEX})
    with pytest.raises(DataError, match="100 different values are too many"):
        schema_from_frame(frame)
    one = pd.DataFrame({"id": pd.Series(["a"] * 100, dtype="category"), "sex": SEX})
    with pytest.raises(DataError, match="fewer than two categories"):
        schema_from_frame(one)


def test_a_frame_that_names_a_column_twice_is_told():
    pd = pytest.importorskip("pandas")
    with pytest.raises(DataError, match="column 'x' is there twice"):
        schema_from_frame(pd.DataFrame([[1, 2], [3, 4]], columns=["x", "x"]))


def test_a_text_that_cannot_be_printed_is_told():
    with pytest.raises(
        SchemaError, match=r"schema\.x\.categories: it has a character that cannot be printed"
    ):
        schema_from_frame({"x": ["a\nb", "c"], "sex": ["F", "M"]})


# ── Any frame ──────────────────────────────────────────────────────────────────────────────────

GAPS = st.sampled_from([None, math.nan, "", "  "])
NUMBERS = st.integers(-(10**20), 10**20) | st.floats(allow_nan=False)
VALUES = [
    st.booleans(),
    st.integers(-3, 3),
    NUMBERS,
    st.floats(-1e6, 1e6),
    st.sampled_from([0.0, 1.0, -0.0, 2.5, 4.0]),
    st.text("ab 01.-", max_size=3),
    st.sampled_from([1, 1.0, True, "1", "1.0", "True", "01", "no answer"]),
    st.sampled_from([np.int64(4), np.float32(0.1), np.float64(4), np.True_, "4"]),
    st.decimals(allow_nan=False, places=2, min_value=-9, max_value=9),
    st.dates(),
]


@st.composite
def any_frame(draw):
    rows = draw(st.integers(2, 40))
    columns = {}
    for name in ("x", "y"):
        values = draw(st.sampled_from(VALUES))
        values = draw(st.sampled_from([values, values | GAPS]))
        columns[name] = draw(st.lists(values, min_size=rows, max_size=rows))
    return columns


def means_the_same(value, category, attribute, code):
    """Whether a category is what a value said."""
    gap = value is None or value != value or not str(value).strip()  # noqa: PLR0124
    if gap or category == attribute.missing:
        return category == attribute.missing and (gap or str(value).strip() == category)
    if attribute.bins is not None:
        low, high = attribute.bins[code : code + 2]
        return low <= float(value) <= high
    if str(value).strip() == category:
        return True
    return not isinstance(value, str) and float(value) == float(category)


@pytest.mark.parametrize("library", [None, "pandas", "polars"])
@settings(deadline=None)
@given(columns=any_frame())
def test_every_accepted_frame_fits_its_schema_and_reads_back(library, columns):
    frame, held = columns, columns
    if library is not None:
        module = pytest.importorskip(library)
        try:
            frame = module.DataFrame(columns)
        except Exception:  # noqa: BLE001  (mixed types are not for polars)
            return
        held = {
            name: frame[name].tolist() if library == "pandas" else frame[name].to_list()
            for name in columns
        }
    try:
        found = schema_from_frame(frame)
    except InputError:
        return
    records = records_from_frame(frame, found)
    for place, attribute in enumerate(found.attributes):
        for value, code in zip(held[attribute.name], records[:, place].tolist(), strict=True):
            category = attribute.categories[code]
            assert means_the_same(value, category, attribute, code), (value, category)


# ── Studies ────────────────────────────────────────────────────────────────────────────────────


def test_a_study_asks_what_the_frame_answers():
    study = study_from_frame(PEOPLE, protocol=RRIndependent(keep=0.5), title="How people live")
    assert (study.name, study.parties) == ("how-people-live", Parties(40))
    assert study.schema == schema_from_frame(PEOPLE)
    assert study.deadlines == Deadlines()


def test_a_protocol_can_be_given_as_its_table_or_name():
    table = {"name": "rr_independent", "keep": 0.5}
    study = study_from_frame(PEOPLE, protocol=table, title="A", parties=20, minimum=10)
    assert study.protocol == RRIndependent(keep=0.5)
    assert study.parties == Parties(20, 10)
    assert study_from_frame(PEOPLE, protocol="exact_pairs", title="A").protocol.name


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"title": "…"}, "study: '' is not a name"),
        ({"name": "a b"}, "study: 'a b' is not a name"),
        ({"title": "a\x1b", "name": "a"}, "title: it has a character that cannot be printed"),
        ({"parties": 1}, "parties.count: at least"),
        ({"minimum": 50}, "parties.minimum: 50 is more than the 40"),
        ({"deadlines": Deadlines(lobby_s=-1)}, "deadlines.lobby_s: must be a positive"),
        ({"protocol": {"keep": 0.5}}, "protocol: 'name' is missing"),
        ({"protocol": "nonsense"}, "protocol.name: there is no protocol “nonsense”"),
        ({"protocol": {"name": "rr_independent", "keep": "x"}}, "protocol.keep: a number"),
        ({"protocol": RRIndependent(keep=1.5)}, "protocol: "),
    ],
)
def test_a_study_is_checked_like_one_from_a_file(options, says):
    with pytest.raises(ScenarioError, match=says):
        study_from_frame(
            PEOPLE, **({"protocol": RRIndependent(keep=0.5), "title": "A study"} | options)
        )
