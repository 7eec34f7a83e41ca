"""`mpc-rr plan`, `reproduce` and `schema`."""

import json
from pathlib import Path

import pytest
from cli_helpers import assert_one_line

SCENARIOS = Path(__file__).parent.parent.parent / "scenarios"


def test_plan_predicts_before_any_data(small, here):
    code, out, _ = here("plan", small / "study.toml", "--n", 5000, "--epsilon", 2, "--json")
    assert code == 0
    designs = json.loads(out)["designs"]
    assert [d["error"] for d in designs] == sorted(d["error"] for d in designs)
    code, out, _ = here("plan", small / "study.toml", "--n", 5000, "--error", 0.1)
    assert code == 0
    assert "mean L1 error" in out
    code, _, err = here("plan", small / "study.toml")
    assert code == 2
    assert_one_line(err, "either --epsilon or --error")


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
    options = ["plan", small / "study.toml", "--epsilon", "2", "--n", "1000"]
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
