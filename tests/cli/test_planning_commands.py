"""`mpc-rr plan`, `reproduce` and `schema`."""

import json
from pathlib import Path

import pytest
from cli_helpers import PEOPLE, assert_one_line

SCENARIOS = Path(__file__).parent.parent.parent / "scenarios"
QUICK = ("--n", 500, "--populations", 2, "--people", 500)


def test_plan_predicts_before_any_data(small, here):
    code, out, _ = here("plan", small / "study.toml", *QUICK, "--epsilon", 2, "--json")
    assert code == 0
    found = json.loads(out)
    designs = found["designs"]
    assert [d["error"] for d in designs] == sorted(d["error"] for d in designs)
    spent = {d["name"]: d["epsilon"] for d in designs}
    assert spent.pop("nobody asked") == 0
    assert list(spent.values()) == pytest.approx([2] * len(spent), rel=1e-6)
    assert found["recommended"] in [d["name"] for d in designs]
    assert set(found["independence"]) == {"weak", "middling", "strong"}
    assert all(0 <= e["error"] <= 2 for d in designs for e in d["errors"].values())
    assert found["ways_to_trust"][0]["name"] == "randomized by each"
    code, _, err = here("plan", small / "study.toml")
    assert code == 2
    assert_one_line(err, "either --epsilon or --error")


def test_a_plan_for_a_wished_error_fits_eighty_columns(small, here, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    code, out, _ = here("plan", small / "study.toml", *QUICK, "--error", 0.1)
    assert code == 0
    assert max(map(len, out.splitlines())) <= 80
    for words in ("weak", "strong", "independence", "who must be", "minutes", "20 %"):
        assert words in " ".join(out.split())


def test_where_shares_alone_are_as_good_that_is_said(small, here):
    """Four questions to 300 people at ε = 1, where one answer of each has the smallest error (at
    smaller ε designs win that publish nearly equal shares); two that are asked at ε = 6."""
    little_told = (SCENARIOS / "block_survey.toml", "--epsilon", 1, "--populations", 4)
    _, little, _ = here("plan", *little_told)
    _, much, _ = here("plan", small / "study.toml", *QUICK, "--epsilon", 6)
    assert "Do not ask for tables at this budget" in little
    assert "Do not ask for tables" not in much
    assert "[protocol]" in much
    assert "[protocol]" not in little


def test_a_pilot_is_measured_and_a_small_one_is_said_to_be(small, here):
    """As few records as a pilot may have, for a study of 500."""
    lines = "".join(f"{sport},{mood}\n" for sport, mood in PEOPLE * 4)
    (small / "people.csv").write_text("sport,mood\n" + lines)
    scenario = (small / "scenario.toml").read_text()
    (small / "scenario.toml").write_text(scenario.replace("count = 5", "count = 20"))
    for pilot in (("--pilot", small / "people.csv"), ("--own-data",)):
        code, out, _ = here("plan", small / "scenario.toml", *QUICK, "--epsilon", 4, *pilot)
        assert code == 0
        assert "±" in out
        assert "fewer than the 500 of the study" in " ".join(out.split())
        assert "middling" not in out
    code, _, err = here(
        "plan", small / "scenario.toml", "--epsilon", 4, "--own-data", "--pilot", small / "p.csv"
    )
    assert code == 2
    assert_one_line(err, "either --pilot or --own-data")
    (small / "few.csv").write_text("sport,mood\n" + lines.partition("\n")[0] + "\n")
    code, _, err = here("plan", small / "study.toml", "--epsilon", 4, "--pilot", small / "few.csv")
    assert code == 2
    assert_one_line(err, "has 1 of the 20 records that a pilot needs at least")


def test_no_error_is_wished_that_nothing_can_have(small, here):
    code, _, err = here("plan", small / "study.toml", *QUICK, "--error", 5)
    assert code == 2
    assert_one_line(err, "between 0 (exact) and 2 (the worst there is), not 5")


def test_the_help_names_the_section_of_the_study_file(here):
    _, out, _ = here("plan", "--help")
    assert "own [data] as" in " ".join(out.replace("│", " ").split())


def test_blocks_of_a_study_are_planned_at_the_budget_that_is_asked_for(here):
    """M10: they spent 1.42 of 4."""
    scenario = SCENARIOS / "block_survey.toml"
    _, out, _ = here("plan", scenario, "--epsilon", 4, "--populations", 2, "--json")
    blocks = next(d for d in json.loads(out)["designs"] if d["name"] == "blocks")
    assert blocks["epsilon"] == pytest.approx(4.0)
    assert {k: blocks["protocol"][k] for k in ("floor", "block")} == {"floor": 0.5, "block": 30}


def test_numbers_cannot_be_planned(here):
    code, _, err = here("plan", SCENARIOS / "exact_moments.toml", "--epsilon", 4)
    assert code == 2
    assert_one_line(err, "give it bins")


def test_reproduce_shows_ours_beside_the_printed(small, here):
    code, out, _ = here("reproduce", "confidentiality-table1", "--out", small / "out")
    assert code == 0
    assert "10.434" in out
    assert "11.975" in (small / "out" / "confidentiality-table1.csv").read_text()
    assert (small / "out" / "confidentiality-table1.png").read_bytes().startswith(b"\x89PNG")
    assert "does not hold: All nine" in out
    assert "holds in 8 of 9 settings, does not in 1" in out
    assert "-1.54" in out
    claims = (small / "out" / "confidentiality-table1-claims.csv").read_text().splitlines()
    assert len(claims) == 1 + 9
    code, out, _ = here("reproduce", "lambda-table1", "--json")
    assert json.loads(out)["claims"][0]["verdict"] == "does not hold"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("reproduce", "nothing"), "there is no 'nothing' to reproduce"),
        (("reproduce", "mdrr-fig2"), "give --data FILE.csv"),
        (("reproduce", "mdrr-fig2", "--data", "people.csv"), "there is no column 'workclass'"),
        (("data", "iris"), "there is no data set 'iris'; known: adult"),
        (("data", "adult", "--out", "people.csv"), "exists already"),
    ],
)
def test_bad_wishes_for_reproductions_are_one_line(small, arguments, says, here):
    code, out, err = here(*arguments, cwd=small)
    assert (code, out) == (2, "")
    assert_one_line(err, says)


def test_clusters_can_be_planned(small, here):
    options = ["plan", small / "study.toml", "--epsilon", "2", *QUICK]
    code, out, _ = here(*options, "--clusters", "sport+mood", "--json")
    assert code == 0
    assert "clusters" in [design["name"] for design in json.loads(out)["designs"]]
    for clusters, says in (("sport+zip", "no attribute 'zip'"), ("sport,sport", "two clusters")):
        code, _, err = here(*options, "--clusters", clusters)
        assert code == 2
        assert_one_line(err, says)


def test_a_schema_is_drafted(small, here):
    code, out, _ = here("schema", small / "people.csv")
    assert code == 0
    assert 'categories = ["no", "yes"]' in out
    code, out, _ = here("schema", small / "people.csv", "--out", small / "draft.toml")
    assert code == 0
    code, _, err = here("schema", small / "people.csv", "--out", small / "draft.toml")
    assert code == 2
    assert_one_line(err, "exists already")
    code, _, err = here("schema", small / "nothing.csv")
    assert code == 2
    assert_one_line(err, "cannot read")


def test_of_more_people_a_study_needs_the_same_share(tmp_path, here):
    """Of the same number, all but a few could collude, and each added all of the noise."""
    study = tmp_path / "study.toml"
    study.write_text(
        """
        title = "A"
        study = "a"
        [schema.x]
        categories = ["a", "b"]
        [schema.y]
        categories = ["a", "b"]
        [protocol]
        name = "exact_pairs"
        noise_epsilon = 2
        [parties]
        count = 20
        minimum = 16
        """
    )
    options = ("--n", 2000, "--people", 2000, "--populations", 2, "--epsilon", 2, "--json")
    code, out, err = here("plan", study, *options)
    assert code == 0, err
    (summed,) = (w for w in json.loads(out)["ways_to_trust"] if w["name"] == "summed, noise inside")
    assert summed["errors"]["weak"]["error"] < 0.01
