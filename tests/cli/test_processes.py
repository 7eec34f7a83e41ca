"""A study across processes: broker, coordinator, hosts and parties, each its own."""

import asyncio
import json
import os
import signal
import socket
from pathlib import Path

import pytest
from cli_helpers import (
    RANDOMIZED,
    STUDY,
    assert_one_line,
    coordinate,
    expected_counts,
    mpc_rr,
    published_counts,
    start,
)
from helpers import random_records

from mpc_rr.publication.reports import AnsweredOne

SCENARIOS = Path(__file__).parent.parent.parent / "scenarios"


@pytest.mark.broker
def test_a_study_across_processes(small):
    """As in the README: broker, coordinator, a host with three records, two single parties."""
    broker = start("broker", "--port", 0, "--keys", small / "keys")
    broker.until_it_says("parties: ")
    above, below = (
        ["--broker", f"@{small}/keys/{role}.address"] for role in ("coordinator", "parties")
    )
    (small / "me.json").write_text(json.dumps({"sport": "yes", "mood": "high"}))
    study = small / "study.toml"
    coordinator = coordinate(study, *above, "--out", small / "out", "--json")
    parties = [
        start("host", study, *below, "--csv", small / "people.csv", "--rows", "1:3", "--json"),
        start("party", study, *below, "--csv", small / "people.csv", "--row", "4", "--json",
              "--out", small / "mine"),
        start("party", study, *below, "--record", small / "me.json", "--json", "--name", "eve"),
    ]  # fmt: skip
    for process in [coordinator, *parties]:
        code, out, err = process.finish()
        assert code == 0, err
        assert published_counts(json.loads(out)) == expected_counts()
    broker.send_signal(signal.SIGINT)
    code, out, _ = broker.finish()
    assert (code, out.splitlines()[3:]) == (0, ["broker stopped"])
    assert "eve" in participation(small / "out")["counted_parties"]
    mine = json.loads((small / "mine" / "result.json").read_text())
    assert published_counts(mine) == expected_counts()


def participation(folder):
    return json.loads((folder / "result.json").read_text())["publication"]["participation"]


@pytest.mark.sweep  # half a minute: twenty interpreters start
@pytest.mark.broker
def test_twenty_processes_give_what_the_simulation_gives(tmp_path, nats):
    """Every party in a process of its own, all with one seed: the same reports, the same shares."""
    people = random_records(20, (2, 3), seed=1)
    rows = "".join(f"{('no', 'yes')[s]},{('low', 'middle', 'high')[m]}\n" for s, m in people)
    (tmp_path / "people.csv").write_text("sport,mood\n" + rows)
    study = tmp_path / "study.toml"
    text = RANDOMIZED.replace("count = 5", "count = 20")
    study.write_text(text)
    scenario = tmp_path / "scenario.toml"
    scenario.write_text(text + '[data]\ncsv = "people.csv"\n')
    url = ["--broker", nats.with_secrets(), "--seed", "9"]
    boss = coordinate(study, *url, "--out", tmp_path / "real", "--json")
    parties = [
        start("party", study, *url, "--csv", tmp_path / "people.csv", "--row", row,
              "--name", f"party-{row:02}", "--json")
        for row in range(1, 21)
    ]  # fmt: skip
    code, out, err = boss.finish()
    assert code == 0, err
    for party in parties:
        assert party.finish()[0] == 0
    code, simulated, err = mpc_rr(
        "run", scenario, "--transport", "memory", "--seed", "9", "--json",
        "--out", tmp_path / "simulated",
    )  # fmt: skip
    assert code == 0, err
    real, simulated = json.loads(out), json.loads(simulated)
    assert real["publication"] == simulated["publication"]
    reports = [(tmp_path / kind / "reports.csv").read_text() for kind in ("real", "simulated")]
    assert reports[0] == reports[1]


@pytest.mark.parametrize("who", [("party", "--row", 1), ("host", "--id", "sport")])
def test_a_ledger_draws_by_its_secret_and_by_no_seed(small, who):
    command, option, value = who
    code, _, err = mpc_rr(
        command, small / "study.toml", "--csv", small / "people.csv", option, value,
        "--broker", "mqtt://127.0.0.1:1", "--state", small / "ledger", "--seed", 1,
    )  # fmt: skip
    assert code == 2
    assert_one_line(err, "--seed is for simulation and goes without --state")
    assert not (small / "ledger").exists()


@pytest.mark.broker
def test_a_party_without_a_coordinator_gives_up_in_time(small, nats):
    study = small / "study.toml"
    study.write_text(STUDY.replace("_s = 600", "_s = 1"))
    url = nats.with_secrets()
    code, _, err = mpc_rr(
        "party", study, "--csv", small / "people.csv", "--row", 1,
        env=os.environ | {"MPC_RR_BROKER": url},
    )  # fmt: skip
    assert code == 1
    assert_one_line(err.splitlines()[-1] + "\n", "no coordinator of study 'small' answered")
    assert "Warning: no --coordinator FINGERPRINT" in err
    assert "Warning: no --state folder, so your privacy spending is not recorded." in err


@pytest.mark.broker
@pytest.mark.parametrize("who", ["coordinate", "run"])
def test_a_coordinator_that_never_reaches_its_broker_leaves_a_folder_that_says_so(small, who):
    """Once a line and no folder: whoever looked for one did not know whether it had ever run."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    study = small / ("study.toml" if who == "coordinate" else "scenario.toml")
    study.write_text(study.read_text().replace("lobby_s = 600", "lobby_s = 1"))
    where = ["--broker", f"mqtt://127.0.0.1:{port}"]
    code, out, err = mpc_rr(who, study, *where, "--out", small / "out", "--json")
    assert code == 1
    told, *_, last = err.splitlines()  # at once, and when it gives up
    assert f"no MQTT broker answers at 127.0.0.1:{port}" in told
    assert "Trying again for 1 s." in told
    assert last.startswith(f"mpc-rr: the study failed: no MQTT broker answers at 127.0.0.1:{port}")
    assert last.endswith("(tried for 1 s)")
    said = json.loads((small / "out" / "result.json").read_text())
    assert (said["status"], said["attempts"]) == ("aborted", 0)
    assert last == f"mpc-rr: the study failed: {said['cause']}"
    assert json.loads(out) == said | {"folder": str(small / "out")}
    assert (small / "out" / "transcript.jsonl").read_text().count("\n") == 1, "the verdict"
    assert "was aborted; there is no result of it" in mpc_rr("verify", small / "out")[2]


@pytest.mark.broker
@pytest.mark.parametrize("who", [["party", "--row", 1, "--yes"], ["host"]])
def test_who_never_reaches_the_broker_leaves_a_folder_that_says_so(small, who):
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    study = small / "study.toml"
    study.write_text(study.read_text().replace("lobby_s = 600", "lobby_s = 1"))
    command, *more = who
    where = ["--broker", f"mqtt://127.0.0.1:{port}", "--csv", small / "people.csv", "--name", "p"]
    code, _, err = mpc_rr(command, study, *where, *more, "--out", small / "out")
    assert code == 1
    why = json.loads((small / "out" / "end.json").read_text())["without_result"]
    assert set(why) == ({"p"} if command == "party" else {f"p-{k}" for k in range(1, 6)})
    assert {f"mpc-rr: {told}" for told in why.values()} == {err.splitlines()[-1]}


@pytest.mark.broker
def test_a_port_in_use_is_one_line_and_code_1():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        code, _, err = mpc_rr("broker", "--port", taken.getsockname()[1])
    assert code == 1
    assert_one_line(err, "is in use")


@pytest.mark.broker
def test_a_host_keeps_a_ledger_for_each_person_and_writes_each_receipt(small, nats):
    """Asked again, it repeats their answers, in whatever row; a budget is each person's own."""
    study = small / "random.toml"
    study.write_text(RANDOMIZED)
    url = ["--broker", nats.with_secrets()]
    header, *rows = (small / "people.csv").read_text().splitlines()
    named = [f"{row},person {number}" for number, row in enumerate(rows)]
    people = ["--csv", small / "known.csv", "--id", "who", "--state", small / "books"]
    people += ["--name", "clinic"]

    def reports(number):
        turned = [*named[number:], *named[:number]]
        (small / "known.csv").write_text("\n".join([f"{header},who", *turned]) + "\n")
        coordinator = coordinate(study, *url, "--out", small / f"out-{number}", "--json")
        host = start("host", study, *url, *people, "--out", small / f"mine-{number}", "--json")
        for process in (coordinator, host):
            code, _, err = process.finish()
            assert code == 0, err
        lines = (small / f"out-{number}" / "reports.csv").read_text().splitlines()
        return sorted(line.partition(",")[2] for line in lines)

    assert reports(1) == reports(2)
    assert len([*(small / "books").glob("person-*.json")]) == 5
    receipts = sorted((small / "mine-1" / "receipts").iterdir())
    assert [file.name for file in receipts] == [f"clinic-{k}.jsonl" for k in range(1, 6)]
    code, out, err = mpc_rr("verify", small / "out-1", "--receipt", receipts[2])
    assert code == 0, err
    assert "of the receipt are in the transcript" in out
    code, _, err = mpc_rr("host", study, *url, "--csv", small / "people.csv", "--state", "s")
    assert code == 2
    assert_one_line(err.splitlines()[-1] + "\n", "--state needs --id COLUMN")
    new = ["--csv", small / "known.csv", "--id", "who", "--state", small / "new books"]
    code, _, err = mpc_rr("host", study, *url, *new, "--rows", "2:3", "--budget", "0.1")
    assert code == 1
    assert "exceeds the budget of 0.1" in err


@pytest.mark.broker
def test_a_party_and_a_host_have_the_whole_folder_if_they_ask_for_everything(small, here):
    """Over a broker where each may read its own mailbox alone; they have what it has."""
    broker = start("broker", "--port", 0, "--keys", small / "keys")
    broker.until_it_says("parties: ")
    above, below = (
        ["--broker", f"@{small}/keys/{role}.address"] for role in ("coordinator", "parties")
    )
    study, people = small / "study.toml", small / "people.csv"
    study.write_text(RANDOMIZED)
    boss = coordinate(study, *above, "--out", small / "theirs", "--json")
    mine = start("party", study, *below, "--csv", people, "--row", "1", "--name", "me",
                 "--everything", "--out", small / "mine")  # fmt: skip
    ours = start("host", study, *below, "--csv", people, "--rows", "2:5", "--name", "we",
                 "--everything", "--out", small / "ours", "--json")  # fmt: skip
    for process in (boss, mine, ours):
        code, out, err = process.finish()
        assert code == 0, err
    assert json.loads(out)["publication"]["tables"]
    assert "The whole result and receipt are in" in mine.said()[1]
    assert "5 of 5 parties answered" in mine.said()[0]
    broker.send_signal(signal.SIGINT)
    broker.finish()

    theirs = json.loads((small / "theirs" / "result.json").read_text())
    for folder, receipt in (("mine", "receipt.jsonl"), ("ours", "receipts/we-3.jsonl")):
        found = json.loads((small / folder / "result.json").read_text())
        # Who asks is counted among those who send: what was rejected is as of then.
        assert {**found, "rejected_messages": {}} == {**theirs, "rejected_messages": {}}
        code, out, _ = here("verify", small / folder, "--receipt", small / folder / receipt)
        assert code == 0
        assert "confirmed: all messages of the receipt are in the transcript: 3 messages" in out
        code, out, _ = here("query", small / folder, "sport = yes and mood = high", "--json")
        assert code == 0
        assert out == here("query", small / "theirs", "sport = yes and mood = high", "--json")[1]
        people = small / f"{folder}.csv"
        assert here("synthesize", small / folder, "--rows", 20, "--out", people)[0] == 0
        assert len(people.read_text().splitlines()) == 21
        assert here("report", small / folder)[0] == 0


def test_everything_needs_a_folder(small, here):
    for command in (["party", "--row", 1], ["host"]):
        code, _, err = here(
            command[0], small / "study.toml", "--csv", small / "people.csv", *command[1:],
            "--broker", "mqtt://127.0.0.1:1", "--everything",
        )  # fmt: skip
        assert code == 2
        assert_one_line(err, "--everything needs --out")


@pytest.mark.parametrize("who", [["party", "--row", 1], ["host"]])
def test_whoever_is_stopped_after_the_result_is_there_has_it_all_the_same(
    small, here, monkeypatch, who
):
    """Also where all but the transcript has come, and Ctrl-C ends the waiting for that."""
    (small / "study.toml").write_text(RANDOMIZED)

    async def stopped(study, _broker, records, *, when_stopped, **_):
        end = AnsweredOne(study.schema, 5, 5, bytes(32), (1, 2))
        when_stopped(dict.fromkeys(records, end))
        raise asyncio.CancelledError

    monkeypatch.setattr("mpc_rr.cli.parties.take_part", stopped)
    code, out, _ = here(
        who[0], small / "study.toml", "--csv", small / "people.csv", *who[1:],
        "--broker", "mqtt://127.0.0.1:1", "--everything", "--out", small / "out",
    )  # fmt: skip
    assert code == 130
    assert "5 of 5 parties answered" in out
    written = json.loads((small / "out" / "result.json").read_text())
    assert written["format"] == "mpc-rr party result"
    assert (
        "asked for (--everything), and is not here" in written["publication"]["notes"][-1]["text"]
    )
