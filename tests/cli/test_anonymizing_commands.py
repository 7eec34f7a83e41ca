"""The scenarios of collaborative anonymization through the command line, from run to report."""

import csv
import json
from pathlib import Path

import pytest
from cli_helpers import assert_one_line

SCENARIOS = Path(__file__).parent.parent.parent / "scenarios"
GROUPS, MASKS = SCENARIOS / "hidden_in_groups.toml", SCENARIOS / "masked_salaries.toml"


def rows(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.reader(file))


def test_groups_from_run_to_report(here, tmp_path):
    code, out, err = here("run", GROUPS, "--transport", "memory", "--out", tmp_path / "out")
    assert code == 0, err
    assert "8 respondents in 2 groups of 4 or more" in " ".join(out.split())
    release = rows(tmp_path / "out" / "release.csv")
    assert release[0] == ["group", "zip", "age", "salary"]
    assert len(release) == 9
    assert here("verify", tmp_path / "out")[0] == 0
    code, _, _ = here("report", tmp_path / "out")
    page = (tmp_path / "out" / "report.html").read_text()
    assert "How well the groups hide" in page
    assert "the study was open" in page
    result = json.loads((tmp_path / "out" / "result.json").read_text())
    assert result["k_reached"] == 4
    assert result["fake_parties_to_single_out_one"] == 3


def test_masks_from_run_to_report(here, tmp_path):
    code, out, err = here("run", MASKS, "--transport", "memory", "--out", tmp_path / "out")
    assert code == 0, err
    assert "8 masked records" in out
    release, masked = (rows(tmp_path / "out" / f"{n}.csv") for n in ("release", "masked"))
    original = rows(SCENARIOS / "eight_neighbours.csv")
    for column in (1, 2):
        published = sorted(row[column + 1] for row in release[1:])
        assert published == sorted(row[column] for row in original[1:])
    assert [row[:2] for row in release] == [row[:2] for row in masked]
    assert here("verify", tmp_path / "out")[0] == 0
    assert here("report", tmp_path / "out")[0] == 0
    assert "What the masks leave open" in (tmp_path / "out" / "report.html").read_text()


@pytest.mark.parametrize("name", ["release.csv", "groups.csv"])
def test_verify_notices_a_changed_release(here, tmp_path, name):
    here("run", GROUPS, "--transport", "memory", "--out", tmp_path / "out")
    changed = tmp_path / "out" / name
    changed.write_text(changed.read_text().replace("13053", "13068", 1))
    code, _, err = here("verify", tmp_path / "out")
    assert code == 1
    assert_one_line(err, f"{name} is not what follows from the transcript")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (("k = 4", "k = 1"), "protocol: k must be 2 or more, not 1"),
        (("k = 4", "k = 9"), "protocol: k is 9, more than the 8 parties"),
        (('["salary"]', '["age"]'), "'age' cannot be confidential and told to all"),
        (("highest = 120", "highest = -1"), "lowest must be below highest"),
        (('"mdav"', '"magic"'), "one of 'generalization', 'mdav', 'mondrian'"),
    ],
)
def test_bad_options_are_told_in_one_line(here, tmp_path, change, says):
    text = GROUPS.read_text().replace(*change)
    (tmp_path / "eight_neighbours.csv").write_text((SCENARIOS / "eight_neighbours.csv").read_text())
    (tmp_path / "bad.toml").write_text(text)
    code, _, err = here("run", tmp_path / "bad.toml", "--transport", "memory")
    assert code == 2
    assert_one_line(err, says)


def test_a_value_that_is_no_number_is_told_with_its_line(here, tmp_path):
    (tmp_path / "study.toml").write_text(GROUPS.read_text())
    people = (SCENARIOS / "eight_neighbours.csv").read_text().replace("28,", "young,")
    (tmp_path / "eight_neighbours.csv").write_text(people)
    code, _, err = here("run", tmp_path / "study.toml", "--transport", "memory")
    assert code == 2
    assert_one_line(err, "line 2", "'young' is not a number")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--mask", "salary"), "must look like salary=noise:5000"),
        (("--mask", "zip=none"), "'zip' is not confidential here"),
        (("--mask", "age=noise:many"), "'many' is not a number"),
        (("--proxy", "http://x:1"), "a proxy must look like socks5://host:port"),
    ],
)
def test_bad_choices_of_a_party_are_told_before_anything_is_sent(here, tmp_path, options, says):
    code, _, err = here(
        "party", MASKS, "--broker", "mqtt://127.0.0.1:1", "--state", tmp_path / "books",
        "--csv", SCENARIOS / "eight_neighbours.csv", "--row", "1", "--coordinator", "0" * 32,
        *options,
    )  # fmt: skip
    assert code == 2
    assert_one_line(err, says)


def test_explain_says_what_is_asked_and_that_nothing_bounds_it(here):
    code, out, _ = here("party", GROUPS, "--explain")
    assert code == 0
    assert "0 to 120 in steps of 1" in out
    assert "ε without bound" in out


def test_check_speaks_of_values_not_of_pairs(here):
    code, out, _ = here("check", MASKS, "--json")
    assert code == 0
    assert "pairs" not in json.loads(out)
