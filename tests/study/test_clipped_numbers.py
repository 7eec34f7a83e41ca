"""Top and bottom coding where the respondent is: what lies beyond the range is told as its end."""

import msgspec
import pytest
from anonymizing import EIGHT, MASKED, make_study, run

from mpc_rr.errors import DataError, SchemaError
from mpc_rr.schema import Attribute, Schema


def income(clip=None):
    return Attribute("income", "numeric", (), lowest=0, highest=10_000, step=1, clip=clip)


@pytest.mark.parametrize(
    ("clip", "value", "told"),
    [("top", 2_000_000, 10_000), ("bottom", -3, 0), ("both", 10_001, 10_000), ("both", -1, 0)],
)
def test_numbers_beyond_the_range_are_told_as_its_end(clip, value, told):
    assert income(clip).code(value) == told


@pytest.mark.parametrize(("clip", "value"), [(None, 2e6), ("top", -3), ("bottom", 2e6)])
def test_elsewhere_they_are_refused(clip, value):
    with pytest.raises(DataError, match="outside 0 to 10000"):
        income(clip).code(value)


@pytest.mark.parametrize("value", ["inf", "-inf", "nan"])
def test_what_is_no_number_is_refused_all_the_same(value):
    with pytest.raises(DataError, match="outside"):
        income("both").code(value)


def test_a_category_has_nothing_to_clip():
    with pytest.raises(SchemaError, match='clip go with type = "numeric"'):
        Attribute("mood", "ordinal", ("low", "high"), clip="top")


def test_it_is_promised_and_an_older_study_keeps_its_digest():
    study = make_study(MASKED)
    salary = msgspec.structs.replace(EIGHT.attributes[2], clip="top")
    clipped = make_study(MASKED, schema=Schema((*EIGHT.attributes[:2], salary)))
    assert clipped.digest != study.digest
    assert clipped.promise != study.promise
    assert "more counts as 1000000" in salary.answers


def test_an_outlier_takes_part_and_betrays_nobody():
    """Once the person was refused; with a range for her alone, the list of values named her."""
    salary = Attribute("salary", "numeric", (), lowest=0, highest=50_000, step=1, clip="top")
    schema = Schema((*EIGHT.attributes[:2], salary))
    people = [("13053", 30 + k, 20_000 + 4000 * k) for k in range(7)] + [("14850", 60, 10**9)]
    names = ("zip", "age", "salary")
    records = [schema.encode(dict(zip(names, p, strict=True))) for p in people]
    outcome, _ = run(MASKED, records=records, study={"schema": schema})
    assert outcome.result.values[1][-1] == 50_000
    assert len(outcome.result.records) == 8
