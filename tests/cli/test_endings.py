"""However it ends, there is a folder that says why, and everybody is told the same story."""

import json
import re
import signal
import sys

import processes
import pytest
from cli_helpers import (
    RANDOMIZED,
    coordinate,
    expected_counts,
    mpc_rr,
    patient,
    published_counts,
    start,
)

from mpc_rr.results.folder import END

pytestmark = pytest.mark.broker


@pytest.fixture
def place(small, nats):
    """A study whose lobby waits long, and the arguments to reach it."""
    study = small / "study.toml"
    study.write_text(re.sub("round_s = .*", "round_s = 20", study.read_text()))  # asks every 2 s
    return small, [study, "--broker", nats.with_secrets()]


def party(small, where, row, *more):
    return start("party", *where, "--csv", small / "people.csv", "--row", row, *more)


def ended(folder):
    return json.loads((folder / END).read_text())["without_result"]


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_a_coordinator_that_is_stopped_tells_everybody_and_leaves_a_folder(place, how):
    """Once SIGTERM, by which systemd and containers end a process, left nothing and told nobody."""
    small, where = place
    boss = coordinate(*where, "--out", small / "out")
    ann = party(small, where, 1, "--name", "ann", "--out", small / "ann", "--yes")
    boss.until_it_says("1 of 5 parties are there")
    ann.finished = True  # it ends as badly
    boss.send_signal(how)
    code, _, err = boss.finish()
    assert code == 130
    assert err.splitlines()[-1] == "mpc-rr: interrupted"
    told = json.loads((small / "out" / "result.json").read_text())
    assert told["cause"] == "the coordinator was interrupted"
    assert (small / "out" / "transcript.jsonl").read_text().count("\n") == 1, "the verdict"
    code, _, err = ann.finish()
    assert code == 1
    assert "the coordinator says: the coordinator was interrupted" in err
    assert ended(small / "ann") == {"ann": "the coordinator says: the coordinator was interrupted"}
    assert "verdict" in (small / "ann" / "receipt.jsonl").read_text()


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_a_coordinator_that_is_stopped_twice_leaves_a_folder(place, how):
    """The second ends it at once. Once there was no folder then; some send two as a habit."""
    small, where = place
    boss = coordinate(*where, "--out", small / "out")
    boss.finished = True
    for _ in range(2):
        boss.send_signal(how)
    boss.wait(processes.LIMIT_S)
    told = json.loads((small / "out" / "result.json").read_text())
    assert (told["status"], told["cause"]) == ("aborted", "the coordinator was interrupted")
    assert told["coordinator"] in boss.said()[1]
    assert boss.said()[1].splitlines()[-1] == "mpc-rr: interrupted"


@pytest.mark.parametrize("hosts", [0, 2])
def test_a_whole_run_that_is_stopped_leaves_a_folder(small, hosts):
    """Once, often enough, a trace and nothing else."""
    study = small / "scenario.toml"
    study.write_text(study.read_text().replace("count = 5", "count = 6").replace(
        "lobby_s = 60\n", "lobby_s = 600\n"
    ))  # fmt: skip
    text = study.read_text()
    (small / "people.csv").write_text((small / "people.csv").read_text() + "no,low\n")
    faults = '[faults]\nsilent = [{ party = "party-2", step = "hello" }]\n'
    study.write_text(text + faults)
    more = ["--hosts", hosts] if hosts else []
    run = start("--log", "info", "run", study, "--out", small / "out", *more)
    run.until_it_says("5 of 6 parties are there")
    run.send_signal(signal.SIGTERM)
    code, _, err = run.finish()
    assert (code, err.splitlines()[-1]) == (130, "mpc-rr: interrupted")
    told = json.loads((small / "out" / "result.json").read_text())
    assert told["cause"] == "the coordinator was interrupted"


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_a_party_that_is_stopped_leaves_its_seat_and_a_folder(place, how):
    small, where = place
    boss = coordinate(*where, "--out", small / "out", "--json")
    ann = party(small, where, 1, "--name", "ann", "--out", small / "ann")
    boss.until_it_says("1 of 5 parties are there")
    ann.send_signal(how)
    code, _, err = ann.finish()
    assert (code, err.splitlines()[-1]) == (130, "mpc-rr: interrupted")
    assert ended(small / "ann") == {"ann": "interrupted"}
    boss.until_it_says("ann left: it was interrupted")
    again = party(small, where, 1, "--name", "ann", "--json")
    rest = start("host", *where, "--csv", small / "people.csv", "--rows", "2:5", "--json")
    for process in (boss, again, rest):
        code, out, err = process.finish()
        assert code == 0, err
        assert published_counts(json.loads(out)) == expected_counts()


def test_parties_where_nobody_looks_on_tell_every_step(place):
    """A host tells those of its first party. Once neither told any."""
    small, where = place
    boss = coordinate(*where, "--json")
    ann = party(small, where, 1, "--name", "ann")
    rest = start("host", *where, "--csv", small / "people.csv", "--rows", "2:5")
    for process, first in ((ann, "ann"), (rest, "party-[0-9a-f]{8}-1")):
        code, _, err = process.finish()
        assert code == 0, err
        for told in (
            "the study begins with 5 parties",
            "for step 'share' in", "the coordinator has told how the study ended",
        ):  # fmt: skip
            assert re.search(rf"mpc-rr: [0-9:]+ {first}: .*{told}", err), err
        assert not re.search("party-[0-9a-f]+-[2-4]: ", err)
    assert boss.finish()[0] == 0


def test_a_party_that_died_comes_again_under_its_name(place):
    """The broker says that it is gone. Once its own name was taken, and its seat kept empty."""
    small, where = place
    boss = coordinate(*where, "--out", small / "out", "--json")
    ann = party(small, where, 1, "--name", "ann")
    boss.until_it_says("1 of 5 parties are there")
    ann.finished = True
    ann.kill()
    ann.wait()
    again = party(small, where, 1, "--name", "ann", "--json")
    boss.until_it_says("ann is gone and gives way")
    rest = start("host", *where, "--csv", small / "people.csv", "--rows", "2:5", "--json")
    for process in (boss, again, rest):
        code, out, err = process.finish()
        assert code == 0, err
        assert published_counts(json.loads(out)) == expected_counts()


def test_two_coordinators_of_one_study_are_noticed_by_all(place):
    """Once each got half of the people, and both said that it was done.

    One more is expected than come: else the one could have begun before the other has answered.
    """
    small, where = place
    bosses = [coordinate(*where, "--out", small / f"out-{k}") for k in (1, 2)]
    people = start(
        "host", *where, "--csv", small / "people.csv", "--rows", "1:4", "--out", small / "people"
    )
    code, _, err = people.finish()
    assert code == 1
    assert "two coordinators run study" in err
    assert "say with --coordinator which one is meant" in err
    assert len(ended(small / "people")) == 4

    def told():
        said = " ".join(boss.said()[1] for boss in bosses)
        return "two coordinators run study" in said or "joins another run" in said

    processes.until(told, "a coordinator says so")
    for boss in bosses:
        boss.finished = True
        boss.send_signal(signal.SIGTERM)
        boss.wait()


def test_what_is_wrong_on_this_machine_is_told_before_what_follows_from_it(place):
    """Once a host told the first party's complaint that others were missing."""
    small, where = place
    study = small / "study.toml"
    study.write_text(study.read_text().replace("lobby_s = 600", "lobby_s = 3"))
    state = small / "state"
    (small / "people.csv").write_text(
        (small / "people.csv").read_text().replace("sport,mood", "sport,mood,who", 1)
    )
    lines = (small / "people.csv").read_text().splitlines()
    numbered = [lines[0], *(f"{line},p{k}" for k, line in enumerate(lines[1:], 1))]
    (small / "people.csv").write_text("\n".join(numbered) + "\n")
    boss = coordinate(*where, "--out", small / "out")
    boss.finished = True  # on a slow machine its lobby closes before the host has ended
    host = start(
        "host", *where, "--csv", small / "people.csv", "--rows", "1:4", "--state", state,
        "--id", "who", "--budget", "0", "--out", small / "host",
    )  # fmt: skip
    code, _, err = host.finish()
    assert code in (1, 2)
    assert err.splitlines()[-1].count("budget") >= 1
    boss.send_signal(signal.SIGTERM)
    boss.wait()


DYING = """
import asyncio, os, signal, sys
from mpc_rr.agents.coordinator import Coordinator
from mpc_rr.cli import main

async def farewell(self, parties):
    os.kill(os.getpid(), signal.HOW)
    try:
        await asyncio.Event().wait()
    finally:
        os.kill(os.getpid(), signal.HOW)

Coordinator._farewell = farewell
main()
"""


def stopped_in_its_farewell(place, how):
    """A study of which all were told that it is done, and a coordinator that is stopped then."""
    small, where = place
    (small / "study.toml").write_text(patient(RANDOMIZED))
    command = [sys.executable, "-c", DYING.replace("HOW", how)]
    boss = processes.start([*command, "coordinate", *map(str, where), "--out", str(small / "out")])
    boss.until_it_says("coordinator fingerprint")
    boss.finished = True  # it may end badly
    host = start("host", *where, "--csv", small / "people.csv", "--name", "h")
    ended = boss.finish()
    code, said, _ = host.finish()
    assert (code, said.split(":")[0]) == (0, "Done")
    return small, ended


@pytest.mark.parametrize("how", ["SIGINT", "SIGTERM"])
def test_two_signals_do_not_take_a_finished_study_away(place, how):
    """Once the second of two in a row did: no folder, though all were told that it is done."""
    small, (code, _, err) = stopped_in_its_farewell(place, how)
    assert code == 0, err
    assert mpc_rr("verify", small / "out")[0] == 0
    assert sorted(path.name for path in small.glob("out*")) == ["out"]


def test_a_coordinator_that_is_killed_in_its_farewell_leaves_what_can_be_published(place):
    """Once nothing was on disk before the last goodbye."""
    small, (code, _, _) = stopped_in_its_farewell(place, "SIGKILL")
    assert code == -signal.SIGKILL
    assert sorted(path.name for path in small.glob("out*")) == ["out.unfinished"]
    code, _, err = mpc_rr("publish", small / "out.unfinished", "--out", small / "out")
    assert code == 0, err
    code, said, err = mpc_rr("verify", small / "out")
    assert code == 0, err
    assert "contradicted" not in said
    assert json.loads((small / "out" / "result.json").read_text())["status"] == "done"
