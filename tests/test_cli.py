"""The command line, as processes: right input, wrong input, and a study across processes."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from helpers import crosstabs, random_records

from mpc_rr.scenario import load_scenario

SCENARIOS = Path(__file__).parent.parent / "scenarios"
STUDY = """
title = "Small"
study = "small"
[schema.sport]
categories = ["no", "yes"]
[schema.mood]
type = "ordinal"
categories = ["low", "middle", "high"]
[protocol]
name = "exact_pairs"
[parties]
count = 5
[deadlines]
lobby_s = 20
round_s = 10
"""
PEOPLE = [("no", "low"), ("yes", "high"), ("yes", "middle"), ("no", "low"), ("yes", "high")]


def start(*arguments, **options):
    return subprocess.Popen(
        [sys.executable, "-m", "mpc_rr", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


def finish(process, timeout_s=60):
    out, err = process.communicate(timeout=timeout_s)
    return process.returncode, out, err


def mpc_rr(*arguments, **options):
    return finish(start(*arguments, **options))


@pytest.fixture
def small(tmp_path):
    """A study file, people to ask, and a scenario with both."""
    (tmp_path / "study.toml").write_text(STUDY)
    rows = "".join(f"{sport},{mood}\n" for sport, mood in PEOPLE)
    (tmp_path / "people.csv").write_text("sport,mood\n" + rows)
    (tmp_path / "scenario.toml").write_text(STUDY + '[data]\ncsv = "people.csv"\n')
    return tmp_path


def expected_counts():
    codes = [(("no", "yes").index(s), ("low", "middle", "high").index(m)) for s, m in PEOPLE]
    return crosstabs(codes, (2, 3))[0].tolist()


def assert_one_line(error, *parts):
    assert error.count("\n") == 1, error
    assert error.startswith("mpc-rr: ")
    for part in parts:
        assert part in error


# ── run ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.broker
def test_the_quickstart_does_the_main_job(tmp_path):
    code, out, err = mpc_rr("run", SCENARIOS / "quickstart.toml", cwd=tmp_path)
    assert code == 0, err
    assert "50 of 50 parties counted together" in out
    assert "Cramér's V" in out
    (folder,) = (tmp_path / "results").iterdir()
    result = json.loads((folder / "result.json").read_text())
    scenario = load_scenario(SCENARIOS / "quickstart.toml")
    expected = crosstabs(scenario.records(), scenario.study.schema.sizes)
    assert [pair["counts"] for pair in result["pairs"]] == [table.tolist() for table in expected]


def test_json_is_one_document_on_standard_output(small):
    code, out, err = mpc_rr(
        "run", small / "scenario.toml", "--transport", "memory", "--json", "--out", small / "out"
    )
    assert (code, err) == (0, "")
    document = json.loads(out)
    assert document["pairs"][0]["attributes"] == ["sport", "mood"]
    assert document["pairs"][0]["categories"] == [["no", "yes"], ["low", "middle", "high"]]
    assert document["pairs"][0]["counts"] == expected_counts()
    assert document["dependence"][0]["measure"] == "cramers_v"
    assert 0 < document["dependence"][0]["value"] <= 1


def test_a_failed_study_ends_with_1_and_keeps_its_evidence(small):
    faults = '[[faults.silent]]\nparty = "party-3"\nstep = "partial"\n'
    scenario = small / "scenario.toml"
    scenario.write_text(scenario.read_text() + faults)
    code, _, err = mpc_rr("run", scenario, "--transport", "memory", "--out", small / "out")
    assert code == 1
    assert_one_line(err, "the study failed: party-3 sent nothing for step 'partial'")
    result = json.loads((small / "out" / "result.json").read_text())
    assert (result["status"], result["culprits"]) == ("aborted", ["party-3"])
    assert "pairs" not in result


@pytest.mark.broker
def test_ctrl_c_ends_the_run_and_leaves_nothing_behind(small, tmp_path_factory):
    folder = tmp_path_factory.mktemp("tmp")
    scenario = small / "scenario.toml"
    slow = scenario.read_text().replace("round_s = 10", "round_s = 500")
    scenario.write_text(slow + '[[faults.silent]]\nparty = "party-3"\nstep = "share"\n')
    process = start("run", scenario, env=os.environ | {"TMPDIR": str(folder)}, cwd=small)
    while not any(folder.iterdir()):
        time.sleep(0.05)
    time.sleep(2)
    process.send_signal(signal.SIGINT)
    code, _, err = finish(process)
    assert code == 130
    assert_one_line(err, "interrupted")
    assert not any(folder.iterdir())
    assert not (small / "results").exists()
    alive = subprocess.run(["pgrep", "-f", str(folder)], capture_output=True, check=False)
    assert not alive.stdout


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["run", "none.toml"], "cannot read none.toml: No such file"),
        (["run", "scenario.toml", "--broker", "localhost"], "must look like mqtt://host:port"),
        (
            ["run", "scenario.toml", "--broker", "mqtt://h:1", "--transport", "memory"],
            "have no meaning with --transport memory",
        ),
        (["run", "scenario.toml", "--out", "people.csv"], "people.csv exists already"),
        (["run", "scenario.toml", "--out", "full"], "full exists already"),
        (["run", "study.toml"], "there is no [data]"),
        (["check", "bad.toml"], "bad.toml: parties.count: Expected `int`"),
        (["party", "study.toml", "--broker", "mqtt://h:1"], "either by --record FILE or by"),
        (["coordinate", "study.toml", "--broker", "mqtt://[::1"], "must look like"),
        (["coordinate", "study.toml", "--broker", "mqtt://h:0"], "must look like"),
        (
            ["coordinate", "study.toml", "--broker", "mqtts://h:1", "--broker-ca", "people.csv"],
            "people.csv holds no certificates",
        ),
        (["broker", "--password", "pässwört"], "must be plain ASCII"),
        (["broker", "--host", ""], "must be plain ASCII"),
        (
            ["party", "study.toml", "--broker", "mqtt://h:1", "--csv", "people.csv", "--row", "9"],
            "has no record number 9",
        ),
        (
            ["party", "study.toml", "--broker", "mqtt://h:1", "--record", "me.json"],
            "me.json: attribute 'mood': 'great' is not one of its categories",
        ),
        (
            ["host", "study.toml", "--broker", "mqtt://h:1", "--csv", "people.csv", "--rows", "3"],
            "--rows must look like 1:25",
        ),
        (
            ["host", "study.toml", "--broker", "mqtt://h:1", "--csv", "people.csv", "--name",
             "x" * 48],
            "cannot be a party's name",
        ),
        (
            ["party", "study.toml", "--broker", "mqtt://h:1", "--csv", "people.csv", "--row", "1",
             "--name", "Ann B."],
            "'Ann B.' cannot be a party's name",
        ),
    ],
)  # fmt: skip
def test_bad_input_is_one_line_and_code_2(small, arguments, says):
    (small / "bad.toml").write_text(STUDY.replace("count = 5", 'count = "5"'))
    (small / "me.json").write_text('{"sport": "no", "mood": "great"}')
    (small / "full").mkdir()
    (small / "full" / "file").touch()
    code, out, err = mpc_rr(*arguments, cwd=small)
    assert code == 2, err
    assert out == ""
    assert_one_line(err, says)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["run"], "SCENARIO"),
        (["run", "x", "--transport", "foo"], "'foo' is not one of"),
        (["party", "x", "--broker", "mqtt://h", "--row", "0"], "--row"),
        (["broker", "--port", "99999"], "--port"),
        (["fly"], "No such command 'fly'"),
        (["run", "x", "--fly"], "No such option"),
    ],
)
def test_usage_errors_are_one_line_and_code_2(arguments, says):
    code, _, err = mpc_rr(*arguments)
    assert code == 2
    assert_one_line(err, says, "--help)")


def test_results_are_written_before_they_are_shown(small):
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "mpc_rr", "run", str(small / "scenario.toml"), "--transport",
             "memory", "--out", str(small / "out")],
            stdout=full, stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
    assert done.returncode == 1
    assert_one_line(done.stderr, "No space left on device")
    assert json.loads((small / "out" / "result.json").read_text())["status"] == "done"


def test_verbose_shows_the_trace(small):
    _, _, err = mpc_rr("check", small / "none.toml", "--verbose")
    assert "Traceback" in err
    assert err.splitlines()[-1].startswith("mpc-rr: cannot read")


def test_check_says_what_a_scenario_is(small):
    code, out, _ = mpc_rr("check", small / "scenario.toml", "--json")
    assert code == 0
    facts = json.loads(out)
    assert (facts["cells"], facts["pairs"], facts["records"]) == (6, 1, 5)
    code, out, _ = mpc_rr("check", small / "scenario.toml")
    assert "is in order" in out


def test_plan_predicts_before_any_data(small):
    code, out, _ = mpc_rr("plan", small / "study.toml", "--n", 5000, "--epsilon", 2, "--json")
    assert code == 0
    designs = json.loads(out)["designs"]
    assert [d["error"] for d in designs] == sorted(d["error"] for d in designs)
    code, out, _ = mpc_rr("plan", small / "study.toml", "--n", 5000, "--error", 0.1)
    assert code == 0
    assert "mean L1 error" in out
    code, _, err = mpc_rr("plan", small / "study.toml")
    assert code == 2
    assert_one_line(err, "either --epsilon or --error")


def test_reproduce_shows_ours_beside_the_printed(small):
    code, out, _ = mpc_rr("reproduce", "confidentiality-table1", "--out", small / "out")
    assert code == 0
    assert "10.434" in out
    assert "11.975" in (small / "out" / "confidentiality-table1.csv").read_text()
    assert (small / "out" / "confidentiality-table1.png").read_bytes().startswith(b"\x89PNG")
    assert "does not hold: All nine" in out
    code, out, _ = mpc_rr("reproduce", "lambda-table1", "--json")
    assert json.loads(out)["claims"][0]["holds"] is False


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
def test_bad_wishes_for_reproductions_are_one_line(small, arguments, says):
    code, out, err = mpc_rr(*arguments, cwd=small)
    assert (code, out) == (2, "")
    assert_one_line(err, says)


@pytest.mark.parametrize(
    "command",
    [
        "",
        "run",
        "plan",
        "reproduce",
        "data",
        "query",
        "synthesize",
        "check",
        "coordinate",
        "party",
        "host",
        "broker",
    ],
)
def test_help_teaches(command):
    code, out, _ = mpc_rr(*command.split(), "--help")
    assert code == 0
    assert "Usage" in out


# ── separate processes ─────────────────────────────────────────────────────────────────────────


@pytest.mark.broker
def test_a_study_across_processes(small):
    """As in the README: broker, coordinator, a host with three records, two single parties."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    broker = start("broker", "--port", port, "--password", "pw")
    assert "broker ready" in broker.stdout.readline()
    url = ["--broker", f"mqtt://study:pw@127.0.0.1:{port}"]
    try:
        (small / "me.json").write_text(json.dumps({"sport": "yes", "mood": "high"}))
        study = small / "study.toml"
        coordinator = start("coordinate", study, *url, "--out", small / "out", "--json")
        parties = [
            start("host", study, *url, "--csv", small / "people.csv", "--rows", "1:3", "--json"),
            start("party", study, *url, "--csv", small / "people.csv", "--row", "4", "--json",
                  "--out", small / "mine"),
            start("party", study, *url, "--record", small / "me.json", "--json", "--name", "eve"),
        ]  # fmt: skip
        for process in [coordinator, *parties]:
            code, out, err = finish(process)
            assert code == 0, err
            assert json.loads(out)["pairs"][0]["counts"] == expected_counts()
    finally:
        broker.send_signal(signal.SIGINT)
        code, out, _ = finish(broker)
    assert (code, out) == (0, "broker stopped\n")
    assert "eve" in json.loads((small / "out" / "result.json").read_text())["parties"]["counted"]
    mine = json.loads((small / "mine" / "result.json").read_text())
    assert mine["pairs"][0]["counts"] == expected_counts()


RANDOMIZED = STUDY.replace('"exact_pairs"', '"rr_independent"\nkeep = 0.6')


@pytest.mark.sweep  # half a minute: twenty interpreters start
@pytest.mark.broker
def test_twenty_processes_give_what_the_simulation_gives(tmp_path, nats):
    """Every party in a process of its own, all with one seed: the same reports, the same shares."""
    people = random_records(20, (2, 3), seed=1)
    rows = "".join(f"{('no', 'yes')[s]},{('low', 'middle', 'high')[m]}\n" for s, m in people)
    (tmp_path / "people.csv").write_text("sport,mood\n" + rows)
    study = tmp_path / "study.toml"
    text = RANDOMIZED.replace("count = 5", "count = 20").replace("lobby_s = 20", "lobby_s = 120")
    study.write_text(text)
    scenario = tmp_path / "scenario.toml"
    scenario.write_text(text + '[data]\ncsv = "people.csv"\n')
    url = ["--broker", f"mqtt://{nats.user}:{nats.password}@{nats.where}", "--seed", "9"]
    boss = start("coordinate", study, *url, "--out", tmp_path / "real", "--json")
    parties = [
        start("party", study, *url, "--csv", tmp_path / "people.csv", "--row", row,
              "--name", f"party-{row:02}", "--state", tmp_path / f"state-{row}", "--json")
        for row in range(1, 21)
    ]  # fmt: skip
    code, out, err = finish(boss, 150)
    assert code == 0, err
    for party in parties:
        assert finish(party)[0] == 0
    code, simulated, err = mpc_rr(
        "run", scenario, "--transport", "memory", "--seed", "9", "--json",
        "--out", tmp_path / "simulated",
    )  # fmt: skip
    assert code == 0, err
    real, simulated = json.loads(out), json.loads(simulated)
    for key in ("n", "answers_digest", "design", "marginals", "dependence", "privacy"):
        assert real[key] == simulated[key]
    reports = [(tmp_path / kind / "reports.csv").read_text() for kind in ("real", "simulated")]
    assert reports[0] == reports[1]
    books = json.loads((tmp_path / "state-7" / "account.json").read_text())
    assert [entry["attributes"] for entry in books["releases"]] == [["sport"], ["mood"]]


# ── what a party may know beforehand, and what may be asked afterwards ─────────────────────────


@pytest.fixture
def finished(small):
    """The result folder of a small randomized study."""
    (small / "random.toml").write_text(RANDOMIZED + '[data]\ncsv = "people.csv"\n')
    code, _, err = mpc_rr(
        "run", small / "random.toml", "--transport", "memory", "--out", small / "run", "--json"
    )
    assert code == 0, err
    return small / "run"


def test_a_party_can_see_what_it_would_cost(small):
    (small / "random.toml").write_text(RANDOMIZED)
    code, out, _ = mpc_rr("party", small / "random.toml", "--explain")
    assert code == 0
    assert "sport: ε 1.39, seen under your name" in out
    assert "Whoever sees your answer can be at most" in out
    code, out, err = mpc_rr(
        "party", small / "random.toml", "--explain", "--budget", "1", "--state", small / "me",
        "--json",
    )  # fmt: skip
    assert code == 2
    assert json.loads(out)["budget"] == 1
    assert_one_line(err, "exceeds the budget of 1")


def test_a_folder_is_verified(finished):
    code, out, _ = mpc_rr("verify", finished, "--json")
    assert code == 0
    assert json.loads(out)["holds"] is True
    result = finished / "result.json"
    result.write_text(result.read_text().replace('"n": 5', '"n": 6'))
    code, out, err = mpc_rr("verify", finished)
    assert (code, out) == (1, "")
    assert_one_line(err, "result.json: 'n' is not what follows from the transcript")


def test_a_report_is_written(finished):
    code, _, err = mpc_rr("report", finished)
    assert code == 0, err
    assert "<!doctype html>" in (finished / "report.html").read_text()
    code, _, err = mpc_rr("report", finished)
    assert code == 2
    assert_one_line(err, "exists already")


def test_queries_and_invented_people(finished):
    code, out, _ = mpc_rr("query", finished, "sport=yes & mood!=low", "--json")
    assert code == 0
    answer = json.loads(out)
    assert answer["interval"][0] <= answer["count"] <= answer["interval"][1]
    assert answer["share"] == pytest.approx(answer["count"] / 5)
    code, out, _ = mpc_rr("query", finished, "sport=yes")
    assert "of 5 respondents" in out
    made = finished.parent / "made.csv"
    code, out, _ = mpc_rr("synthesize", finished, "--rows", 30, "--out", made, "--seed", 1)
    assert code == 0
    assert made.read_text().startswith("sport,mood\n")
    assert len(made.read_text().splitlines()) == 31


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("query", "run", "sport=maybe"), "'maybe' is not one of its categories (no, yes)"),
        (("query", "run", "sport"), "'sport' is not a condition"),
        (("query", "run", "sport=yes", "--level", "2"), "a confidence level lies between 0 and 1"),
        (("query", "nothing", "sport=yes"), "nothing is not a result folder"),
        (("synthesize", "run", "--rows", "0", "--out", "x.csv"), "rows must be positive"),
        (("synthesize", "run", "--rows", "1", "--out", "people.csv"), "exists already"),
        (("party", "random.toml", "--budget", "-1", "--explain"), "must not be negative"),
        (("party", "random.toml", "--csv", "people.csv", "--row", "1"), "--broker is missing"),
    ],
)
def test_bad_wishes_after_a_study_are_one_line(finished, arguments, says):
    code, out, err = mpc_rr(*arguments, cwd=finished.parent)
    assert (code, out) == (2, "")
    assert_one_line(err, says)


@pytest.mark.broker
def test_a_party_without_a_coordinator_gives_up_in_time(small, nats):
    study = small / "study.toml"
    study.write_text(STUDY.replace("lobby_s = 20", "lobby_s = 1"))
    url = f"mqtt://{nats.user}:{nats.password}@{nats.where}"
    code, _, err = mpc_rr(
        "party", study, "--csv", small / "people.csv", "--row", 1,
        env=os.environ | {"MPC_RR_BROKER": url},
    )  # fmt: skip
    assert code == 1
    assert_one_line(err.splitlines()[-1] + "\n", "no coordinator of study 'small' answered")
    assert "without --coordinator FINGERPRINT" in err


@pytest.mark.broker
def test_an_unreachable_broker_is_one_line_and_code_1(small):
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    code, _, err = mpc_rr(
        "coordinate", small / "study.toml", "--broker", f"mqtt://127.0.0.1:{port}"
    )
    assert code == 1
    assert_one_line(err, f"no MQTT broker answers at 127.0.0.1:{port}")


@pytest.mark.broker
def test_a_port_in_use_is_one_line_and_code_1():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        code, _, err = mpc_rr("broker", "--port", taken.getsockname()[1])
    assert code == 1
    assert_one_line(err, "is in use")


def test_clusters_can_be_planned(small):
    options = ["plan", small / "study.toml", "--epsilon", "2", "--n", "1000"]
    code, out, _ = mpc_rr(*options, "--clusters", "sport+mood", "--json")
    assert code == 0
    assert "clusters" in [design["name"] for design in json.loads(out)["designs"]]
    for clusters, says in (("sport+zip", "no attribute 'zip'"), ("sport,sport", "two clusters")):
        code, _, err = mpc_rr(*options, "--clusters", clusters)
        assert code == 2
        assert_one_line(err, says)


def test_a_schema_is_drafted(small):
    code, out, _ = mpc_rr("schema", small / "people.csv")
    assert code == 0
    assert 'categories = ["no", "yes"]' in out
    code, out, _ = mpc_rr("schema", small / "people.csv", "--out", small / "draft.toml")
    assert code == 0
    code, _, err = mpc_rr("schema", small / "people.csv", "--out", small / "draft.toml")
    assert code == 2
    assert_one_line(err, "exists already")
    code, _, err = mpc_rr("schema", small / "nothing.csv")
    assert code == 2
    assert_one_line(err, "cannot read")
