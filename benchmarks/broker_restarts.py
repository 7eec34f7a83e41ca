"""A broker that is killed and started again while a thousand parties join.

Named floor: the same study with a broker that stays, measured first. Coordinator and two hosts are
processes of their own, with half of the parties each. At a random moment of the joining (a share of
the time that it took with a broker that stayed) the broker gets SIGKILL, and is started again at
once, on the same port and without anything that it knew. Reported: when that was and how many had
joined by then, how many were counted, and how long the study took from the hosts' start.

Everybody must be counted: whoever is not is named, with what the processes said.
"""

import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.harness.rows import Row, rounded

MOSQUITTO = shutil.which("mosquitto") or shutil.which("mosquitto", path="/usr/sbin")
LIMIT_S = 900
STUDY = """
study = "restarted"
title = "A study whose broker is started again"
[parties]
count = {parties}
minimum = {minimum}
[deadlines]
lobby_s = 600
round_s = 120
[protocol]
name = "rr_views"
epsilon = 2.0
[schema.smokes]
categories = ["no", "yes"]
[schema.sport]
categories = ["never", "often"]
[schema.car]
categories = ["no", "yes"]
"""


class Processes:
    """Those of one run: none outlives it, and what they say is in files."""

    def __init__(self, folder):
        self.folder, self.running = folder, {}

    def start(self, name, command, **variables):
        self.running[name] = subprocess.Popen(
            [*map(str, command)], env=os.environ | variables, process_group=0,
            stdout=(self.folder / f"{name}.out").open("wb"),
            stderr=(self.folder / f"{name}.err").open("wb"),
        )  # fmt: skip
        return self.running[name]

    def agent(self, name, *arguments, **variables):
        return self.start(name, [sys.executable, "-m", "mpc_rr", *arguments], **variables)

    def said(self, name):
        return (self.folder / f"{name}.err").read_text(errors="replace")

    def kill(self, name):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.running[name].pid, signal.SIGKILL)
        self.running[name].wait()

    def until(self, happened, what):
        deadline = time.monotonic() + LIMIT_S
        while not happened():
            if time.monotonic() > deadline:
                raise SystemExit(f"waited {LIMIT_S} s in vain: {what}")
            time.sleep(0.02)


class Mosquitto:
    """It keeps nothing: whoever is started again knows nobody."""

    name = "mosquitto"

    def __init__(self, processes, folder, port):
        self._processes, self._port = processes, port
        self._settings = folder / "mosquitto.conf"
        self._settings.write_text(
            f"listener {port} 127.0.0.1\nallow_anonymous true\npersistence false\n"
            f"set_tcp_nodelay true\nmax_queued_messages 500\n"
        )
        self.coordinator = self.parties = f"mqtt://127.0.0.1:{port}"

    def start(self):
        self._processes.start("broker", [MOSQUITTO, "-c", self._settings])
        self._processes.until(lambda: _answers(self._port), "mosquitto answers")


class Embedded:
    """With keys that are kept, so that addresses hold."""

    name = "embedded"

    def __init__(self, processes, folder, port):
        self._processes, self._port, self._keys = processes, port, folder / "keys"
        self.coordinator = f"@{self._keys}/coordinator.address"
        self.parties = f"@{self._keys}/parties.address"

    def start(self):
        self._processes.agent("broker", "broker", "--port", self._port, "--keys", self._keys)
        out = self._processes.folder / "broker.out"
        self._processes.until(lambda: "parties: " in out.read_text(), "the broker is ready")


KINDS = {kind.name: kind for kind in (Mosquitto, Embedded)}


def _answers(port):
    try:
        socket.create_connection(("127.0.0.1", port)).close()
    except OSError:
        return False
    return True


def joined(processes):
    """How many have joined, as the coordinator's log says."""
    return processes.said("coordinate").count(" joined\n")


def study_with_people(place, parties):
    """A study file and the people's."""
    (place / "study.toml").write_text(STUDY.format(parties=parties, minimum=parties // 2))
    rows = (f"{('no', 'yes')[k % 2]},{('never', 'often')[k % 3 == 0]},{('no', 'yes')[k % 5 == 0]}\n"
            for k in range(parties))  # fmt: skip
    (place / "people.csv").write_text("smokes,sport,car\n" + "".join(rows))


def measured(kind, port, parties, restart_s):
    """One run; the broker is started again so long after the first has joined, None: never."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        processes = Processes(place)
        try:
            return _measured(kind(processes, place, port), processes, place, parties, restart_s)
        finally:
            for name in processes.running:
                processes.kill(name)


def _measured(broker, processes, place, parties, restart_s):
    study_with_people(place, parties)
    broker.start()
    boss = processes.agent(
        "coordinate", "--log", "debug", "coordinate", place / "study.toml", "--out", place / "out",
        MPC_RR_BROKER=broker.coordinator,
    )  # fmt: skip
    processes.until(lambda: "fingerprint" in processes.said("coordinate"), "the coordinator is up")
    started, half = time.monotonic(), parties // 2
    for name, rows in (("a", f"1:{half}"), ("b", f"{half + 1}:{parties}")):
        processes.agent(
            name, "host", place / "study.toml", "--csv", place / "people.csv", "--rows", rows,
            "--name", name, MPC_RR_BROKER=broker.parties,
        )  # fmt: skip
    processes.until(lambda: joined(processes) or boss.poll() is not None, "the first has joined")
    first, had_joined = time.monotonic(), None
    if restart_s is not None:
        time.sleep(restart_s)
        had_joined = joined(processes)
        processes.kill("broker")
        broker.start()
    processes.until(lambda: "the roster is closed" in processes.said("coordinate")
                    or boss.poll() is not None, "the roster is closed")  # fmt: skip
    joining_s = time.monotonic() - first
    for name in ("coordinate", "a", "b"):
        processes.until(
            lambda name=name: processes.running[name].poll() is not None, f"{name} ends"
        )
    seconds = time.monotonic() - started
    return outcome(processes, place) | {
        "broker": broker.name, "parties": parties, "restart_s": restart_s,
        "joined_at_restart": had_joined, "joining_s": round(joining_s, 2),
        "seconds": round(seconds, 1),
    }  # fmt: skip


def outcome(processes, place):
    """What was found, and what those said who have to say something."""
    codes = {name: processes.running[name].returncode for name in ("coordinate", "a", "b")}
    told = json.loads((place / "out" / "result.json").read_text())
    participation = (told.get("publication") or {}).get("participation", {})
    complaints = [
        re.sub(r"^mpc-rr: (\d\d:\d\d:\d\d )?", f"{name}: ", processes.said(name).splitlines()[-1])
        for name, code in codes.items()
        if code
    ]
    return {
        "counted": participation.get("counted"), "cause": told["cause"],
        "absent": participation.get("absent", [])[:5], "codes": codes, "complaints": complaints,
        "rejected": told["rejected_messages"],
    }  # fmt: skip


def add_options(parser):
    parser.add_argument("--runs", type=int, default=4, help="restarts for each broker")
    parser.add_argument("--parties", type=int, default=1000)
    parser.add_argument("--brokers", nargs="+", choices=list(KINDS), default=list(KINDS))
    parser.add_argument("--port", type=int, default=22900)


def measure(run):
    # Whoever ends this from outside ends what it has started, too.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    parties, port = run.options.parties, run.options.port
    for name in run.options.brokers:
        floor = measured(KINDS[name], port, parties, None)
        yield from rows_of(floor, 0, None)
        for number, rng in enumerate(run.rngs(run.options.runs, name), start=1):
            port += 1
            moment_s = round(rng.uniform(0.02, 0.98) * floor["joining_s"], 2)
            yield from rows_of(measured(KINDS[name], port, parties, moment_s), number, floor)
        port += 1


def rows_of(found, number, floor):
    """Who was not counted, and the time beside the study whose broker stayed."""
    setting = {"broker": found["broker"], "parties": found["parties"], "restart": number}
    beside = {}
    if floor is not None:
        beside = {"beside": "a broker that stays", "better": "lower",
                  "ratio": rounded(found["seconds"] / floor["seconds"])}  # fmt: skip
    yield Row(what="time of the study", setting=setting, value=found["seconds"], unit="s", runs=1,
              details=found, **beside)  # fmt: skip
    yield Row(what="people who were not counted", setting=setting, runs=1, aim=0, better="lower",
              value=found["parties"] - (found["counted"] or 0))  # fmt: skip
