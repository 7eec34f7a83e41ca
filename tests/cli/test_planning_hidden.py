"""`mpc-rr plan` of studies whose respondents hide among each other."""

import json
from pathlib import Path

import pytest
from cli_helpers import assert_one_line

SCENARIOS = Path(__file__).parent.parent.parent / "scenarios"
GROUPS, MASKS = SCENARIOS / "hidden_in_groups.toml", SCENARIOS / "masked_salaries.toml"
SURVEY = SCENARIOS / "anonymous_survey.toml"
ROWS = (SCENARIOS / "eight_neighbours.csv").read_text().splitlines()


@pytest.mark.parametrize("study", [GROUPS, MASKS, SURVEY])
def test_records_are_needed_and_no_budget(here, study):
    code, out, err = here("plan", study)
    assert (code, out) == (2, "")
    assert_one_line(err, "give --pilot FILE.csv or --own-data")
    for option in (("--epsilon", 2), ("--error", 0.1), ("--clusters", "zip+age")):
        code, _, err = here("plan", study, "--own-data", *option)
        assert code == 2
        assert_one_line(err, f"{option[0]}: collaborative_", "spends no ε", f"Leave {option[0]}")


def test_other_studies_still_need_a_budget(here):
    code, _, err = here("plan", SCENARIOS / "rr_joint.toml", "--own-data")
    assert code == 2
    assert_one_line(err, "give either --epsilon or --error")


def test_groups_of_the_eight(here, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    code, out, err = here("plan", GROUPS, "--own-data")
    assert code == 0, err
    assert max(map(len, out.splitlines())) <= 80
    said = " ".join(out.split())
    assert "Groups of k among 8 people" in said
    assert "This study's k = 4 loses 36 % of the quasi-identifiers' variation" in said
    assert "picks her values with 25 % chance on average, by all that is published" in said
    assert "links 100 % of the people if trusted with the records as they are" in said
    assert "was lent ranges that double" in said
    assert "All 8 records were used" in said
    assert "views" not in said
    assert "ε" not in said


def test_groups_in_json(here):
    code, out, _ = here("plan", GROUPS, "--own-data", "--json", "--populations", 3)
    assert code == 0
    found = json.loads(out)
    assert (found["k"], found["people"], found["populations"]) == (4, 8, 3)
    ways = {(way["way"], way["k"]): way for way in found["ways"]}
    assert ways["this study", 4]["linked"] == {"mean": 0.25, "standard_error": 0.0}
    assert {k for _, k in ways} == {2, 3, 4}
    assert ways["each masks alone, same risk", 4]["lost"]["standard_error"] > 0


def test_a_study_with_a_limit_is_planned_with_and_without_it(here, tmp_path):
    text = GROUPS.read_text().replace('partition = "mdav"', 'partition = "generalization"')
    levels = "\nsuppress = 0.25\n[protocol.hierarchies]\nage = [10.0, 30.0]\n"
    text = text.replace('release = "generalized"', 'release = "generalized"' + levels)
    study = tmp_path / "study.toml"
    study.write_text(text.replace("eight_neighbours.csv", str(SCENARIOS / "eight_neighbours.csv")))
    code, out, err = here("plan", study, "--own-data")
    assert code == 0, err
    assert "With suppress = 0.25, " in " ".join(out.split())
    assert "was lent" not in out


def test_masks_of_the_eight(here, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    code, out, err = here("plan", MASKS, "--own-data")
    assert code == 0, err
    assert max(map(len, out.splitlines())) <= 80
    said = " ".join(out.split())
    assert "noise:5 moves people by" in said
    assert "noise:5000 moves people by" in said
    assert "one value alone is possible" in said
    assert "Noise that each adds alone would move" in said
    code, out, _ = here("plan", MASKS, "--own-data", "--json")
    found = json.loads(out)
    assert found["recommended"] == {"age": "noise:5", "salary": "noise:5000"}
    assert {way["attribute"] for way in found["ways"]} == {"age", "salary"}
    assert all(way["margin"]["mean"] == 0 for way in found["ways"] if way["way"] == "this study")


def test_a_pilot_is_drawn_from_and_a_smaller_one_is_said_to_be(here, tmp_path):
    pilot = tmp_path / "pilot.csv"
    pilot.write_text("\n".join([*ROWS, *ROWS[1:]]) + "\n")
    _, out, _ = here("plan", GROUPS, "--pilot", pilot)
    assert "8 of the 16 records were drawn" in " ".join(out.split())
    _, out, _ = here("plan", GROUPS, "--pilot", pilot, "--n", 40)
    assert "The study would have 40 people: what that many would lose was not" in " ".join(
        out.split()
    )
    pilot.write_text("\n".join(ROWS[:4]) + "\n")
    code, _, err = here("plan", GROUPS, "--pilot", pilot)
    assert code == 2
    assert_one_line(err, "has 3 of the 4 records that a pilot needs at least")
    code, _, err = here("plan", SURVEY, "--own-data", "--people", 4)
    assert code == 2
    assert_one_line(err, "groups of k = 5 cannot be made of 4 people")


def test_a_study_that_makes_no_sense_is_not_planned(here, tmp_path):
    study = tmp_path / "study.toml"
    text = GROUPS.read_text().replace("k = 4", "k = 1")
    study.write_text(text.replace("eight_neighbours.csv", str(SCENARIOS / "eight_neighbours.csv")))
    code, _, err = here("plan", study, "--own-data")
    assert code == 2
    assert_one_line(err, "k must be 2 or more")
