"""The scenarios of collaborative anonymization through the command line, from run to report."""

import csv
import json
from pathlib import Path

import pytest
from cli_helpers import assert_one_line, published_number

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
    assert "Weakest group for each confidential attribute" in page
    assert "Open study: " in page
    result = json.loads((tmp_path / "out" / "result.json").read_text())
    assert published_number(result, "k_reached") == 4
    assert published_number(result, "fake_parties_to_single_out_one") == 3


def test_masks_from_run_to_report(here, tmp_path):
    code, out, err = here("run", MASKS, "--transport", "memory", "--out", tmp_path / "out")
    assert code == 0, err
    assert "8 of 8 respondents have a masked record" in " ".join(out.split())
    release, masked = (rows(tmp_path / "out" / f"{n}.csv") for n in ("release", "masked"))
    original = rows(SCENARIOS / "eight_neighbours.csv")
    for column in (1, 2):
        published = sorted(row[column + 1] for row in release[1:])
        assert published == sorted(row[column] for row in original[1:])
    assert [row[:2] for row in release] == [row[:2] for row in masked]
    assert here("verify", tmp_path / "out")[0] == 0
    assert here("report", tmp_path / "out")[0] == 0
    assert "Disclosure risk after masking" in (tmp_path / "out" / "report.html").read_text()


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
        (("k = 4", "k = 9"), "parties.count: at least 9 are needed: a group of 9"),
        (("count = 8", "count = 8\nminimum = 3"), "parties.minimum: at least 4 are needed"),
        (("k = 4", "k = 4\nrelease_ = 'anatomy'"), "did you mean 'release'?"),
        (("k = 4", "k = 4\ncolour = 'red'"), "protocol: there is no 'colour' here; it is one of"),
        (("k = 4", 'k = "four"'), "protocol.k: a whole number is due here, not text in quotes"),
        (
            ('csv = "eight_neighbours.csv"', 'csv = "x.csv"\nregistrar = "00"'),
            "data: 'registrar' belongs at the top of the file, before the first [section]",
        ),
        (("lowest = 0", "lowst = 0"), "there is no 'lowst' here; did you mean 'lowest'?"),
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
        (("--mask", "age=noise:5", "--mask", "age=none"), "--mask is given twice for 'age'"),
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
    assert "no ε: told as it is" in out
    assert "Any one honest relay hides whose they are" in " ".join(out.split())
    assert "seen by everyone, as it is, among the values of 4 or more, in no order" in " ".join(
        out.split()
    )
    _, out, _ = here("party", MASKS, "--explain")
    assert "noise:5000 is recommended, the choice is yours" in " ".join(out.split())


def test_who_has_answered_without_bound_can_answer_the_same_again(here, tmp_path):
    books = tmp_path / "books"
    code, _, err = here("party", GROUPS, "--explain", "--state", books, "--budget", "3")
    assert code == 2
    assert_one_line(err, "no ε bounds what this would disclose (told to everybody: “zip”, “age”)")


def test_the_report_says_whom_the_release_gives_away(here, tmp_path):
    people = (SCENARIOS / "eight_neighbours.csv").read_text().splitlines()
    same = [people[0], *(line.rsplit(",", 1)[0] + ",20000" for line in people[1:5]), *people[5:]]
    (tmp_path / "eight_neighbours.csv").write_text("\n".join(same) + "\n")
    (tmp_path / "study.toml").write_text(GROUPS.read_text())
    folder = tmp_path / "out"
    code, out, err = here("run", tmp_path / "study.toml", "--transport", "memory", "--out", folder)
    assert code == 0, err
    note = "in 1 group all members have the same “salary”, so it is disclosed for each of them"
    assert note in " ".join(out.split())
    here("report", folder)
    assert note in (folder / "report.html").read_text()
    here("run", MASKS, "--transport", "memory", "--out", tmp_path / "masked")
    here("report", tmp_path / "masked")
    assert "identified: all masked values" in (tmp_path / "masked" / "report.html").read_text()


@pytest.mark.parametrize("study", [GROUPS, MASKS], ids=["groups", "masks"])
def test_the_report_of_a_simulation_sets_the_release_beside_the_truth(here, tmp_path, study):
    here("run", study, "--transport", "memory", "--seed", "1", "--out", tmp_path / "out")
    truth = SCENARIOS / "eight_neighbours.csv"
    assert here("report", tmp_path / "out", "--truth", truth)[0] == 0
    text = (tmp_path / "out" / "report.html").read_text()
    for said in ("Numbers beside the truth", "Relations beside the truth", "Spearman"):
        assert said in text
    assert ("How far masks moved people in rank" in text) == (study == MASKS)


def test_a_run_is_released_in_another_way(here, tmp_path):
    here("run", GROUPS, "--transport", "memory", "--out", tmp_path / "out")
    further = ("--as", "anatomy", "--out", tmp_path / "further")
    code, out, err = here("release", tmp_path / "out", *further)
    assert code == 0, err
    assert "all together" in out
    assert len(rows(tmp_path / "further" / "anatomy" / "confidential.csv")) == 9
    code, _, err = here("release", tmp_path / "out", *further)
    assert code == 2
    assert_one_line(err, "exists")
    code, out, _ = here(
        "release", tmp_path / "out", *further[:2], "--out", tmp_path / "b", "--json"
    )
    assert json.loads(out)["releases"][-1]["k"] == 4


def test_records_are_counted_and_no_model_is_made_of_them(here, tmp_path):
    here("run", GROUPS, "--transport", "memory", "--out", tmp_path / "out")
    code, out, _ = here("query", tmp_path / "out", "zip=13053 or age > 40")
    assert code == 0
    assert "zip = 13053 or age > 40: 6 of 8 respondents (75.0%)" in " ".join(out.split())
    code, out, _ = here("query", tmp_path / "out", "age < 29 and salary < 30000")
    assert "between 1 and 2 of 8 respondents, for sure" in " ".join(out.split())
    code, _, err = here("synthesize", tmp_path / "out", "--rows", "3", "--out", "x.csv")
    assert code == 2
    assert_one_line(err, "what it found is in", "release.csv")


def test_check_speaks_of_values_not_of_pairs(here):
    code, out, _ = here("check", MASKS, "--json")
    assert code == 0
    assert "pairs" not in json.loads(out)
