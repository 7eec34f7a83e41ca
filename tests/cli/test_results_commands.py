"""What a party may know beforehand, and what may be asked of a result folder afterwards."""

import json
from pathlib import Path

import pytest
from cli_helpers import RANDOMIZED, assert_one_line
from helpers import make_study

from mpc_rr.agents.account import StoredAccount
from mpc_rr.protocols.exact_pairs import ExactPairs
from mpc_rr.study.file import load_scenario

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
    assert "“sport”: randomized: with probability 0.6 as it is, else one of 2 drawn evenly" in said
    assert "under the name you take part with (random, unless you give one); ε = 1.39" in said
    assert "For your whole record: ε = " in said
    assert "between two whole records can become at most 95.7 % sure which is yours" in said
    assert "any one answer can become at most 84.6 % sure (ε = 1.7), as long as" in said
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
    assert "5 respondents" in out
    made = finished.parent / "made.csv"
    code, out, _ = here("synthesize", finished, "--rows", 30, "--out", made, "--seed", 1)
    assert code == 0
    assert made.read_text().startswith("sport,mood\n")
    assert len(made.read_text().splitlines()) == 31


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("query", "run", "sport=maybe"), "'maybe' is not one of its categories (“no”, “yes”)"),
        (("query", "run", "sport"), "this is not a condition: after “sport” comes the end"),
        (("query", "run", "sport=yes & sport=no"), "nobody can meet this condition"),
        (("query", "run", "sport=yes", "--level", "2"), "a confidence level lies between 0 and 1"),
        (("query", "nothing", "sport=yes"), "there is no folder nothing"),
        (("synthesize", "run", "--rows", "0", "--out", "x.csv"), "rows must be positive"),
        (("synthesize", "run", "--rows", "1", "--out", "people.csv"), "exists already"),
        (("party", "random.toml", "--budget", "-1", "--explain"), "must not be negative"),
        (("party", "random.toml", "--csv", "people.csv", "--row", "1"), "--broker is required"),
    ],
)
def test_bad_wishes_after_a_study_are_one_line(finished, arguments, says, here):
    code, out, err = here(*arguments, cwd=finished.parent)
    assert (code, out) == (2, "")
    assert_one_line(err, says)


def test_a_ledger_says_on_what_its_epsilon_rests(tmp_path, here):
    noisy = make_study(50, (2, 3), protocol=ExactPairs(noise_epsilon=1.0))
    with StoredAccount.open(tmp_path / "mine") as account:
        account.charge(noisy, (0, 1))
    _, out, _ = here("ledger", tmp_path / "mine")
    said, rests = " ".join(out.split()), "as long as at most 24 parties pool what they know"
    assert f"against anyone who sees all that was sent: ε = 1, {rests}" in said
    assert f"of any one answer: ε = 1, {rests} and the coordinator follows the protocol In" in said
    assert f"This holds {rests}" in said
    _, out, _ = here("ledger", tmp_path / "mine", "--json")
    assert json.loads(out)["local_withstands"] == 24


def test_who_is_spelled_otherwise_than_before_is_told_that_a_ledger_begins(small, here):
    """A capital was enough to begin again with nothing spent, without a word."""
    (small / "random.toml").write_text(RANDOMIZED)
    study = load_scenario(small / "random.toml").study
    explained = ("party", small / "random.toml", "--explain", "--state", small / "many", "--id")
    code, _, err = here(*explained, "ann")
    assert (code, err) == (0, "")  # the first of all
    for person in ("ann", "bob"):
        with StoredAccount.open(small / "many", person=person) as account:
            account.charge(study, (0, 1))
    code, _, err = here(*explained, "ann")
    assert (code, err) == (0, "")
    code, _, err = here(*explained, "Ann")
    assert code == 0
    assert "a new ledger begins in" in err
    assert "the 2 that are there, with nothing spent" in " ".join(err.split())
    code, _, err = here("party", small / "random.toml", "--explain", "--state", small / "mine")
    assert (code, err) == (0, "")


def test_a_ledger_is_shown_and_what_is_not_there_is_told(small, here):
    (small / "random.toml").write_text(RANDOMIZED)
    study = load_scenario(small / "random.toml").study
    with StoredAccount.open(small / "mine") as account:
        account.charge(study, (0, 1))
    code, out, _ = here("ledger", small / "mine")
    assert code == 0
    assert "In all, against anyone who sees all that was sent: ε = " in out
    code, out, _ = here("ledger", small / "mine", "--json")
    assert [took["study"] for took in json.loads(out)["studies"]] == ["small"]
    with StoredAccount.open(small / "many", person="ann") as account:
        account.charge(study, (0, 1))
    for extra in ((), ("--forget", "--yes")):
        code, _, err = here("ledger", small / "many", "--id", "anne", *extra)
        assert code == 2
        assert_one_line(err, "keeps no ledger of 'anne'")
    code, _, err = here("ledger", small / "many", "--id", "ann", "--forget", "--yes")
    assert code == 0
    assert "The secret was erased" in err
    code, out, _ = here("ledger", small / "many", "--id", "ann")
    assert "small (erased)" in out
    code, _, err = here("ledger", small / "many", "--adopt", small / "people.csv", "--id", "sport")
    assert code == 2
    assert_one_line(err, "nothing is to be adopted")
    code, _, err = here("ledger", small / "nowhere")
    assert code == 2
    assert_one_line(err, "there is no state folder")


def test_what_is_no_receipt_of_this_run_accuses_nobody(finished, here, tmp_path):
    (tmp_path / "none.jsonl").write_text("{}\n")
    code, _, err = here("verify", finished, "--receipt", tmp_path / "none.jsonl")
    assert code == 2
    assert_one_line(err, "is not a receipt of this study")


def test_a_budget_limits_all_answers_together_before_a_party_joins(small, here):
    """Each answer stays below it (ε = 1.39 and 1.7), both together do not. There is no broker."""
    (small / "random.toml").write_text(RANDOMIZED)

    def takes_part(budget):
        return here(
            "party", small / "random.toml", "--broker", "mqtt://127.0.0.1:1", "--budget", budget,
            "--csv", small / "people.csv", "--row", "1", "--yes",
        )  # fmt: skip

    code, _, err = takes_part("2")
    assert code == 2
    assert "all answers together would cost ε = 3.09; " in err
    assert "exceeds the budget of 2" in err
    assert "127.0.0.1" not in err
    _, _, err = takes_part("4")
    assert "exceeds the budget" not in err
    assert "127.0.0.1" in err  # it went as far as the broker


def test_a_budget_limits_all_studies_together(small, here):
    for name in ("first", "second"):
        text = RANDOMIZED.replace('"small"', f'"{name}"')
        (small / f"{name}.toml").write_text(text)
    with StoredAccount.open(small / "mine") as account:
        account.charge(load_scenario(small / "first.toml").study, (0, 1))
    options = ("--explain", "--state", small / "mine", "--budget")
    code, _, err = here("party", small / "second.toml", *options, "4")
    assert code == 2
    assert_one_line(err, "with ε = 3.09 spent before, the total 6.18 exceeds the budget of 4")
    code, out, _ = here("party", small / "second.toml", *options, "7")
    assert code == 0
    said = " ".join(out.split())
    assert "After this study: ε = 6.18 in all, ε = 3.41 for any one answer." in said


def test_a_query_of_which_nothing_can_be_said_has_no_number(small, here):
    (small / "random.toml").write_text(
        RANDOMIZED.replace("keep = 0.6", "keep = 0.001") + '[data]\ncsv = "people.csv"\n'
    )
    code, _, err = here(
        "run", small / "random.toml", "--transport", "memory", "--out", small / "run", "--json"
    )
    assert code == 0, err
    code, out, _ = here("query", small / "run", "sport=yes")
    said = " ".join(out.split())
    assert ": cannot be told at this budget for these 5 respondents; with 95% confidence" in said
