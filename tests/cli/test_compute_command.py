"""``mpc-rr compute``."""

import json

import pytest
from cli_helpers import assert_one_line

from mpc_rr import compute, simulate
from mpc_rr.study.file import load_scenario

STUDY = """
title = "Travel"
[schema.car]
categories = ["no", "yes"]
[schema.trips]
type = "ordinal"
categories = ["0", "1", "4"]
[protocol]
name = "rr_independent"
keep = 0.8
[parties]
count = 60
[data.generator]
seed = 1
[[data.generator.draw]]
attribute = "car"
weights = [60, 40]
[[data.generator.draw]]
attribute = "trips"
given = "car"
weights = { no = [5, 3, 1], yes = [1, 3, 5] }
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("compute")
    (place / "study.toml").write_text(STUDY)
    return simulate(load_scenario(place / "study.toml"), seed=1).save(place / "run")


def test_several_statistics_by_group_and_under_a_condition(folder, here):
    code, out, _ = here(
        "compute", folder, "mean(trips)", "median(trips)", "--by", "car", "--where", "trips < 4"
    )
    assert code == 0
    assert "mean(trips) where trips != 4 by car  (60 respondents)" in out
    assert "of the population; of " in out
    assert "trips by the numbers that its answers are (0 = 0, 1 = 1, 4 = 4)" in out
    assert "\nmedian(trips) where" in out


def test_json_has_what_python_gives(folder, here):
    _, out, _ = here(
        "compute", folder, "linear(trips, car)", "logistic(car = yes, trips)", "--json"
    )
    linear, logistic = json.loads(out)
    own = compute(folder, "linear(trips, car)")
    assert [v["value"] for v in linear["values"]] == [v.value for v in own.values]
    assert [v["name"] for v in linear["values"]] == ["intercept", "car = yes"]
    assert linear["values"][1]["population"] == list(own["car = yes"].population)
    assert logistic["log_likelihood"] < 0
    assert logistic["expression"] == "logistic(car = yes, trips)"


def test_weights_from_a_file(folder, here, tmp_path):
    rows = [f"party-{k:02},{1 + k % 3}" for k in range(1, 61)]
    (tmp_path / "w.csv").write_text("\n".join(["party,w", *rows]))
    weighted = ("compute", folder, "mean(trips)", "--weights", tmp_path / "w.csv", "--weight", "w")
    (found,) = json.loads(here(*weighted, "--json")[1])
    assert found["weighted"]
    assert found["values"][0]["value"] != compute(folder, "mean(trips)").value
    assert "count as" in here(*weighted)[1]


@pytest.mark.parametrize(
    "arguments",
    [("mean(trip)",), ("men(trips)",), ("mean(car)",), ("mean(trips)", "--by", "trips"),
     ("mean(trips)", "--where", "car"), ("mean(trips)", "--weights", "nowhere.csv"),
     ("mean(trips)", "--level", "2")],
)  # fmt: skip
def test_mistakes_are_told_in_one_line(folder, here, arguments):
    code, _, err = here("compute", folder, *arguments)
    assert code == 2
    assert_one_line(err)
