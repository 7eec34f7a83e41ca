"""`mpc-rr compare`, and the script that learns from what a study published."""

import csv
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from cli_helpers import PEOPLE, assert_one_line

SCRIPT = Path(__file__).parents[2] / "docs" / "machine_learning.py"
QUICK = ("--runs", 2, "--only", "independent", "--only", "margins alone", "--only", "blocks")


@pytest.fixture
def survey(tmp_path):
    """Three questions that depend on each other, to 300 people, with a column of names."""
    rng = np.random.default_rng(5)
    smokes = rng.integers(0, 2, 300)
    ill = np.where(rng.random(300) < 0.8, smokes, rng.integers(0, 2, 300))
    place = rng.integers(0, 3, 300)
    with (tmp_path / "survey.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["name", "smokes", "ill", "place"])
        for k in range(300):
            writer.writerow([f"n{k}", *(("no", "yes")[v] for v in (smokes[k], ill[k])), place[k]])
    return tmp_path / "survey.csv"


def test_protocols_stand_side_by_side_in_eighty_columns(survey, here, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    asked = ("--epsilon", 1, "--epsilon", 4, "--where", "smokes = yes and ill = yes")
    code, out, _ = here("compare", survey, *asked, *QUICK, "--out", survey.parent / "out")
    assert code == 0
    assert max(map(len, out.splitlines()[:-1])) <= 80  # the last names files
    said = " ".join(out.split())
    for words in (
        "all 300 records of the file; 3 attributes; 3 of 3 tables of 2; 1 of 1 tables of 3",
        "Left out: “name”: 300 different values are too many",
        "Nobody must be trusted with", "independent, uncorrected", "300 weighted reports",
        "Not there: blocks (tables of 3): it publishes no tables of more than 2 attributes",
    ):  # fmt: skip
        assert words in said, words
    assert said.count("300 people, ε = 4") == 2
    assert "Fewer than 5 runs cannot rank the methods: none is marked." in said
    assert "*" not in out
    written = {path.name for path in (survey.parent / "out").iterdir()}
    assert written == {"compare.html", "compare.csv", "queries.png"}
    page = (survey.parent / "out" / "compare.html").read_text()
    assert page.count("<svg") == 2 * 5  # tables of 2 and 3, queries, cells, the condition
    assert "queries.png" in page
    rows = list(csv.DictReader((survey.parent / "out" / "compare.csv").read_text().splitlines()))
    assert {row["trusted"] for row in rows} == {"nobody"}


def test_json_holds_all_of_it_and_a_seed_repeats_it(survey, here):
    command = ("compare", survey, *QUICK, "--people", 100, "--seed", 7, "--json")
    code, out, _ = here(*command)
    assert code == 0
    found = json.loads(out)
    assert (found["people"], found["in_file"], found["runs"]) == (100, 300, 2)
    assert found["epsilons"] == [2.0]
    assert {e["method"] for e in found["errors"]} >= {"independent", "margins alone", "blocks"}
    assert {w["method"] for w in found["weights"]} == {"independent, weighted"}
    assert here(*command)[1] == out


def test_the_questions_may_be_those_of_a_study(small, here):
    """Also its categories that nobody in the file has."""
    lines = "".join(f"{sport},{mood}\n" for sport, mood in PEOPLE * 6)
    (small / "people.csv").write_text("sport,mood\n" + lines)
    study = small / "study.toml"
    code, out, _ = here("compare", small / "people.csv", "--schema", study, *QUICK[:4], "--json")
    assert code == 0
    assert json.loads(out)["attributes"] == ["sport", "mood"]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--epsilon", 0), "epsilon must be positive"),
        (("--people", 3), "too few to compare"),
        (("--only", "nothing"), "nothing called"),
        (("--where", "smokes = perhaps"), "smokes"),
    ],
)
def test_what_makes_no_sense_is_one_line(survey, here, options, told):
    code, _, err = here("compare", survey, *options)
    assert code == 2
    assert_one_line(err, told)


def learning(*arguments):
    return subprocess.run(
        [sys.executable, SCRIPT, *arguments], capture_output=True, text=True, check=False
    )


def halves(survey, tmp_path):
    """Who is asked, and who is not, without their names."""
    columns = [line.split(",", 1)[1] for line in survey.read_text().splitlines()]
    (tmp_path / "asked.csv").write_text("\n".join(columns[:201]) + "\n")
    (tmp_path / "test.csv").write_text("\n".join([columns[0], *columns[201:]]) + "\n")
    return tmp_path / "asked.csv", tmp_path / "test.csv"


@pytest.mark.parametrize("protocol", ["rr_independent", "rr_views"])
def test_a_classifier_learns_from_what_is_published(protocol, survey, here, tmp_path):
    """Who is ill, by who smokes: the true AUC is about .9, by one answer and its chance.

    Reports of views are no records: the script of the page failed there, for the protocol that the
    page recommends.
    """
    (tmp_path / "study.toml").write_text(
        'title = "Ill"\nstudy = "ill"\n\n[schema.smokes]\ncategories = ["no", "yes"]\n\n'
        '[schema.ill]\ncategories = ["no", "yes"]\n\n[schema.place]\ncategories = ["0", "1", "2"]\n'
        f'\n[protocol]\nname = "{protocol}"\nepsilon = 5.0\n\n[parties]\ncount = 200\n'
    )
    asked, test = halves(survey, tmp_path)
    run, people = tmp_path / "run", tmp_path / "synthetic.csv"
    options = ("--data", asked, "--transport", "memory", "--seed", 1, "--out", run)
    assert here("run", tmp_path / "study.toml", *options)[0] == 0
    assert here("synthesize", run, "--rows", 2000, "--out", people, "--seed", 1)[0] == 0
    done = learning(asked, people, test, "ill=yes", run / "reports.csv")
    assert done.returncode == 0, done.stderr
    said = done.stdout.splitlines()
    rows = ["true records", "synthetic records", "reports as they are", "reports by weight"]
    if protocol == "rr_views":
        rows, first = rows[:2], said.pop(0)
        assert first.endswith("nothing is learnt from the reports")
    found = {line[:20].strip(): float(line.split()[-1]) for line in said}
    assert list(found) == rows
    assert found["true records"] > 0.8
    assert found["synthetic records"] > 0.8
    assert min(found.values()) > 0.5


@pytest.mark.parametrize("target", ["ill=perhaps", "mood=low", "ill"])
def test_a_target_that_is_none_is_told_in_one_line(target, survey, tmp_path):
    asked, test = halves(survey, tmp_path)
    done = learning(asked, asked, test, target)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.count("\n") == 1
    assert f"test.csv: {target!r} is true of none there, or of all" in done.stderr
