"""A study across processes: broker, coordinator, hosts and parties, each its own."""

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
    assert "without --coordinator FINGERPRINT" in err


@pytest.mark.broker
def test_an_unreachable_broker_is_one_line_and_code_1(small):
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    study = small / "study.toml"
    study.write_text(study.read_text().replace("lobby_s = 600", "lobby_s = 1"))
    code, _, err = mpc_rr("coordinate", study, "--broker", f"mqtt://127.0.0.1:{port}")
    assert code == 1
    told, last = err.splitlines()  # at once, and when it gives up
    assert f"no MQTT broker answers at 127.0.0.1:{port}" in told
    assert "Trying again for 1 s." in told
    assert last.startswith(f"mpc-rr: no MQTT broker answers at 127.0.0.1:{port}")
    assert last.endswith("(tried for 1 s)")


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
