import itertools
from pathlib import Path

import numpy as np
import pytest
from helpers import make_study

from mpc_rr.errors import DataError, ScenarioError
from mpc_rr.protocols.rr_independent import RRIndependent
from mpc_rr.study.definition import study_from_json, study_json
from mpc_rr.study.file import load_scenario

GOOD = """
title = "Two questions"
[schema.a]
categories = ["x", "y"]
[schema.b]
bins = [0, 10, 20]
[protocol]
name = "exact_pairs"
[parties]
count = 4
"""
SCENARIOS = Path(__file__).parents[2] / "scenarios"


def load(tmp_path, text):
    path = tmp_path / "scenario.toml"
    path.write_text(text)
    return load_scenario(path)


def test_what_is_not_said_has_a_sensible_default(tmp_path):
    study = load(tmp_path, GOOD).study
    assert study.name == "two-questions"
    assert study.schema.attributes[1].type == "ordinal"
    assert study.schema.attributes[1].categories == ("0–10", "10–20")
    assert study.parties.fewest == 4


def test_the_digest_covers_the_study_and_not_the_data(tmp_path):
    one = load(tmp_path, GOOD).study.digest
    assert load(tmp_path, GOOD + '[data]\ncsv = "x.csv"\n').study.digest == one
    assert load(tmp_path, GOOD.replace('"y"', '"z"')).study.digest != one
    assert load(tmp_path, GOOD.replace("count = 4", "count = 5")).study.digest != one


@pytest.mark.parametrize("path", sorted(SCENARIOS.glob("*.toml")), ids=lambda path: path.stem)
def test_every_scenario_that_we_ship_is_in_order(path):
    scenario = load_scenario(path)
    if path.stem == "adult_clusters":  # its data are downloaded by whoever wants them
        with pytest.raises(ScenarioError, match="there is no"):
            scenario.records()
        return
    assert len(scenario.records()) == scenario.study.parties.count


def test_data_can_be_given_from_outside(tmp_path):
    (tmp_path / "people.csv").write_text("a,b\n" + "x,1\n" * 9)
    path = tmp_path / "scenario.toml"
    path.write_text(GOOD)
    assert load_scenario(path, tmp_path / "people.csv").csv == tmp_path / "people.csv"
    with pytest.raises(DataError):
        load_scenario(path, tmp_path / "nothing.csv").records()


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        (
            "count = 4",
            'count = "four"',
            r"parties\.count: a whole number is due",
        ),
        ("count = 4", "count = 100000000000000000000000", "parties.count|range"),
        ('["x", "y"]', '["x", 3]', r"schema\.a\.categories"),
        ('["x", "y"]', '["x", " y"]', "must not be empty or padded"),
        ("count = 4", "count = 2", "at least 3 are needed: among fewer"),
        ("count = 4", "count = 4\nminimum = 2", "at least 3 are needed: among fewer"),
        ("count = 4", "count = 4\nminimum = 5", "5 is more than the 4"),
        ("count = 4", "count = 4\n[deadlines]\nround_s = 0", r"deadlines\.round_s: must be a pos"),
        ("count = 4", "count = 4\n[deadlines]\nlobby_s = -1", r"deadlines\.lobby_s: must be a po"),
        ("count = 4", "count = 4\n[deadlines]\nlobby_s = inf", r"deadlines\.lobby_s: must be a"),
        ("count = 4", "count = 4\n[deadlines]\nstragglers_s = nan", "must be a finite number"),
        ("count = 4", "count = 4\n[deadlines]\nstragglers_s = inf", "must be a finite number"),
        (
            "exact_pairs",
            "exact_pear",
            "no protocol “exact_pear” here; .*--plugin FILE.py .known are block_aggregation",
        ),
        ('title = "Two questions"', "", "'title' is missing"),
        ('title = "Two questions"', 'title = "?"', "study: '' is not a name"),
        ('title = "Two questions"', 'title = "t"\nstudy = "a/b"', "'a/b' is not a name"),
        ('title = "Two questions"', 'title = "t"\ncolour = 3', "there is no 'colour' here"),
        ('["x", "y"]', '["x"]', "'a': at least two categories"),
        ('categories = ["x", "y"]', "", "schema.a: give its categories, or bins"),
        ("title", "title = = 3", "not a TOML file"),
        ("count = 4", "count = 4\n[faults]\nloss = 1.5", "loss is a share"),
        ("count = 4", "count = 4\n[faults]\ndelay_s = [2, 1]", "delay_s is"),
        (
            "count = 4",
            'count = 4\n[[faults.silent]]\nparty = "party-9"\nstep = "share"',
            "no party 'party-9'",
        ),
        (
            "count = 4",
            'count = 4\n[[faults.crash]]\nparty = "party-1"\nstep = "shave"',
            "no step 'shave'; it is one of hello, join, roster_seen, share, partial",
        ),
        (
            "count = 4",
            'count = 4\n[data]\ncsv = "x"\n[data.generator]\ndraw = []',
            "either a csv or a generator|is never drawn",
        ),
    ],
)
def test_a_bad_scenario_is_told_with_its_place(tmp_path, old, new, says):
    assert old in GOOD
    with pytest.raises(ScenarioError, match=says) as raised:
        load(tmp_path, GOOD.replace(old, new, 1))
    assert str(raised.value).count("\n") == 0
    assert "scenario.toml" in str(raised.value)


MANY = """
title = "Many"
{schema}
[parties]
count = 40
[protocol]
{protocol}
"""


@pytest.mark.parametrize(
    ("attributes", "protocol", "says"),
    [
        (40, 'name = "rr_views"\nepsilon = 1.0\ntogether = 10', "40 attributes have 847,660,528"),
        (320, 'name = "rr_views"\nepsilon = 1.0', "320 attributes have 51,040 views of 2"),
        (2000, 'name = "rr_pairs"\nepsilon = 1.0', "2,000 attributes have 1,999,000 pairs"),
        (2000, 'name = "exact_pairs"', "schema: 2,000 attributes have 1,999,000 pairs"),
        (2000, 'name = "rr_independent"\nkeep = 0.5', "2,000 attributes have 1,999,000 pairs"),
    ],
)  # fmt: skip
def test_what_would_take_all_memory_is_refused_before_it_is_gone_through(
    tmp_path, monkeypatch, attributes, protocol, says
):
    def gone_through(*_):
        raise AssertionError("it was enumerated")

    monkeypatch.setattr(itertools, "combinations", gone_through)
    schema = "\n".join(f'[schema.a{k}]\ncategories = ["x", "y"]' for k in range(attributes))
    with pytest.raises(ScenarioError, match=says) as raised:
        load(tmp_path, MANY.format(schema=schema, protocol=protocol))
    assert "\n" not in str(raised.value)


def test_a_missing_scenario_is_told(tmp_path):
    with pytest.raises(ScenarioError, match=r"cannot read .*none\.toml: No such file"):
        load_scenario(tmp_path / "none.toml")


def test_records_come_from_the_csv_beside_the_scenario(tmp_path):
    (tmp_path / "people.csv").write_text("a,b\n" + "x,3\ny,12\n" * 2)
    scenario = load(tmp_path, GOOD + '[data]\ncsv = "people.csv"\n')
    assert scenario.records() == [(0, 0), (1, 1)] * 2
    (tmp_path / "people.csv").write_text("a,b\nx,3\n")
    with pytest.raises(DataError, match="has 1 records, but the scenario has 4 parties"):
        scenario.records()


def test_a_study_without_data_cannot_be_run_here(tmp_path):
    with pytest.raises(ScenarioError, match=r"there is no \[data\]"):
        load(tmp_path, GOOD).records()


def test_a_last_day_and_missing_answers(tmp_path):
    path = tmp_path / "scenario.toml"
    head = 'title = "Asked until"\nexpires = 2031-05-01\n'
    tables = '[schema.age]\nbins = [0, 30, 60]\nmissing = "not told"\n'
    tables += '[schema.job]\ncategories = ["yes", "no", "?"]\nmissing = "?"\n'
    path.write_text(head + tables + '[protocol]\nname = "exact_pairs"\n[parties]\ncount = 3\n')
    study = load_scenario(path).study
    assert study.expires.year == 2031
    assert study.schema.attributes[0].categories == ("0–30", "30–60", "not told")
    assert study_from_json(study_json(study)) == study
    path.write_text(path.read_text().replace("2031-05-01", '"soon"'))
    with pytest.raises(ScenarioError, match="expires"):
        load_scenario(path)


def test_a_study_made_in_python_has_the_digest_of_the_same_in_a_file():
    """Whole numbers where a file has decimals make no other study."""
    whole = make_study(5, protocol=RRIndependent(epsilon=2), lobby_s=30, round_s=10)
    decimal = make_study(5, protocol=RRIndependent(epsilon=2.0), lobby_s=30.0, round_s=10.0)
    assert whole.digest == decimal.digest == study_from_json(study_json(whole)).digest


def test_a_study_made_in_python_with_options_of_another_kind_is_told_so():
    with pytest.raises(ScenarioError, match=r"protocol\.keep: a number is due here"):
        make_study(5, protocol=RRIndependent(keep="half"))
    with pytest.raises(ScenarioError, match="RRViews"):
        make_study(5, protocol=RRIndependent)


def test_numbers_of_numpy_are_numbers():
    of_numpy = make_study(np.int64(5), protocol=RRIndependent(keep=np.float64(0.5)))
    assert of_numpy.digest == make_study(5, protocol=RRIndependent(keep=0.5)).digest


MANY_ANSWERS = """
title = "Many questions"
[protocol]
name = "rr_independent"
keep = 0.7
[parties]
count = 100
"""


def test_all_answers_together_have_a_limit_and_not_only_each(tmp_path):
    """Forty answers of ε = 1.7 each were in order: 69 for the record."""
    asked = "".join(f'[schema.q{k}]\ncategories = ["no", "yes"]\n' for k in range(40))
    with pytest.raises(ScenarioError, match=r"protocol: ε = 69\.4 for all answers together prot"):
        load(tmp_path, MANY_ANSWERS + asked)
    fewer = "".join(f'[schema.q{k}]\ncategories = ["no", "yes"]\n' for k in range(30))
    assert len(load(tmp_path, MANY_ANSWERS + fewer).study.disclosures) == 30
    some = MANY_ANSWERS.replace('"rr_independent"\nkeep = 0.7', '"rr_views"\nepsilon = 2.0')
    assert load(tmp_path, some + asked).study.protocol.name == "rr_views"


def test_studies_that_were_run_beyond_the_limit_can_still_be_read():
    """So that their results can be verified."""
    study = make_study(10, (2,) * 40, protocol=RRIndependent(keep=0.7))
    assert study_from_json(study_json(study)).digest == study.digest
