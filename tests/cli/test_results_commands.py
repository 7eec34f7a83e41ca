"""What a party may know beforehand, and what may be asked of a result folder afterwards."""

import json
from pathlib import Path

import pytest
from cli_helpers import RANDOMIZED, assert_one_line

SCENARIOS = Path(__file__).parent.parent.parent / "scenarios"


@pytest.fixture
def finished(small, here):
    """The result folder of a small randomized study."""
    (small / "random.toml").write_text(RANDOMIZED + '[data]\ncsv = "people.csv"\n')
    code, _, err = here(
        "run", small / "random.toml", "--transport", "memory", "--out", small / "run", "--json"
    )
    assert code == 0, err
    return small / "run"


def test_a_party_can_see_what_it_would_cost(small, here):
    (small / "random.toml").write_text(RANDOMIZED)
    code, out, _ = here("party", small / "random.toml", "--explain")
    assert code == 0
    said = " ".join(out.split())
    assert "sport: randomized: with probability 0.6 as it is, else one of 2 drawn evenly" in said
    assert "seen by everybody, under your name; ε = 1.39 (a 50:50 guess" in said
    assert "For your whole record: ε = " in said
    assert "Someone who starts at 50:50 on a guess about you can become at most 95.7 % sure" in said
    code, out, err = here(
        "party", small / "random.toml", "--explain", "--budget", "1", "--state", small / "me",
        "--json",
    )  # fmt: skip
    assert code == 2
    assert json.loads(out)["budget"] == 1
    assert_one_line(err, "exceeds the budget of 1")


def test_a_folder_is_verified(finished, here):
    code, out, _ = here("verify", finished, "--json")
    assert code == 0
    said = json.loads(out)
    assert said["holds"] is True
    assert said["claims"][0] == {
        "claim": "result.json speaks of the study in study.json", "verdict": "confirmed", "why": "",
    }  # fmt: skip
    code, out, _ = here("verify", finished)
    lines = out.splitlines()
    assert (code, len(lines)) == (0, len(said["claims"]))
    assert {line.split(":")[0] for line in lines} == {"confirmed", "not confirmable"}
    result = finished / "result.json"
    result.write_text(result.read_text().replace('"counted": 5', '"counted": 6', 1))
    code, out, err = here("verify", finished)
    assert (code, len(out.splitlines())) == (1, len(lines))
    (wrong,) = [line for line in out.splitlines() if line.startswith("contradicted: ")]
    assert "result.json names those as counted or absent who are so in the transcript" in wrong
    assert_one_line(err, "result.json: 'participation' is not what follows from the transcript")
    code, out, _ = here("verify", finished, "--json")
    assert (code, json.loads(out)["holds"]) == (1, False)


def test_a_report_is_written(finished, here):
    code, _, err = here("report", finished)
    assert code == 0, err
    assert "<!doctype html>" in (finished / "report.html").read_text()
    code, _, err = here("report", finished)
    assert code == 2
    assert_one_line(err, "exists already")


def test_queries_and_invented_people(finished, here):
    code, out, _ = here("query", finished, "sport=yes & mood!=low", "--json")
    assert code == 0
    answer = json.loads(out)
    assert answer["interval"][0] <= answer["count"] <= answer["interval"][1]
    assert answer["share"] == pytest.approx(answer["count"] / 5)
    code, out, _ = here("query", finished, "sport=yes")
    assert "of 5 respondents" in out
    made = finished.parent / "made.csv"
    code, out, _ = here("synthesize", finished, "--rows", 30, "--out", made, "--seed", 1)
    assert code == 0
    assert made.read_text().startswith("sport,mood\n")
    assert len(made.read_text().splitlines()) == 31


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("query", "run", "sport=maybe"), "'maybe' is not one of its categories (no, yes)"),
        (("query", "run", "sport"), "'sport' is not a condition"),
        (("query", "run", "sport=yes & sport=no"), "nobody can meet this condition"),
        (("query", "run", "sport=yes", "--level", "2"), "a confidence level lies between 0 and 1"),
        (("query", "nothing", "sport=yes"), "there is no folder nothing"),
        (("synthesize", "run", "--rows", "0", "--out", "x.csv"), "rows must be positive"),
        (("synthesize", "run", "--rows", "1", "--out", "people.csv"), "exists already"),
        (("party", "random.toml", "--budget", "-1", "--explain"), "must not be negative"),
        (("party", "random.toml", "--csv", "people.csv", "--row", "1"), "--broker is missing"),
    ],
)
def test_bad_wishes_after_a_study_are_one_line(finished, arguments, says, here):
    code, out, err = here(*arguments, cwd=finished.parent)
    assert (code, out) == (2, "")
    assert_one_line(err, says)
