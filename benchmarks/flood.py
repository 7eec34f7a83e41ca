"""A study under a flood of hellos from strangers.

Named floor: the same study without a flood (rate 0). Coordinator and host are processes of their
own at an embedded broker; the flood comes from this process, by clients that have the parties'
address, each on its own mailbox, with hellos that are properly signed, each under another name. It
begins before the host does and lasts until the study has ended. Reported: how many were counted,
how long the study took from the host's start, the coordinator's largest resident memory, and how
many hellos were really sent in a second.
"""

import asyncio
import itertools
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import paho.mqtt.client as paho

from benchmarks.harness.rows import Row, rounded
from mpc_rr.crypto.identity import Identity
from mpc_rr.network.broker import embedded_broker
from mpc_rr.network.envelope import COORDINATOR, LOBBY_SESSION, WIRE_VERSION, Header
from mpc_rr.network.fragments import cut
from mpc_rr.network.lifecycle import Hello
from mpc_rr.network.rights import draw_mailbox
from mpc_rr.network.sealed import write
from mpc_rr.randomness import SystemRandomness

RNG = SystemRandomness()
STUDY = """
study = "flooded"
title = "A study that strangers flood"
[parties]
count = {parties}
minimum = {minimum}
[deadlines]
lobby_s = 60
round_s = 30
[protocol]
name = "rr_independent"
keep = 0.7
[schema.smokes]
categories = ["no", "yes"]
[schema.sport]
categories = ["never", "often"]
"""


def hellos(mailbox, count=200):
    """Some signed hellos of strangers: making them is not what is measured."""
    made = []
    for number in range(count):
        who, name = Identity(RNG), f"stranger-{mailbox[:8]}-{number}"
        header = Header(WIRE_VERSION, "flooded", b"", LOBBY_SESSION, Hello.step, name, COORDINATOR)
        raw = write(header, Hello(who.public, f"{mailbox}/{name}"), who)
        made.append(cut(raw, RNG)[0])
    return made


def flood(url, rate, stop, sent):
    """One stranger's client, in a thread: an asynchronous one gets only to 1,500 a second."""
    mailbox = draw_mailbox(RNG)
    user, password = url.login(mailbox)
    ready, started, mine = hellos(mailbox), time.monotonic(), 0
    client = paho.Client(paho.CallbackAPIVersion.VERSION2, client_id=mailbox)
    client.username_pw_set(user, password)
    client.connect(url.host, url.port)
    client.loop_start()
    while not stop.wait(0.005):
        due = int((time.monotonic() - started) * rate) - mine
        for _ in range(min(due, 100)):
            client.publish(f"mpc_rr/flooded/coordinator/{mailbox}", ready[mine % len(ready)])
            mine += 1
            sent[0] += 1
    client.disconnect()
    client.loop_stop()


def largest_mb(process):
    for line in Path(f"/proc/{process.pid}/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) / 1024
    return 0.0


async def measured(rate, clients, parties):
    with tempfile.TemporaryDirectory() as scratch, embedded_broker() as broker:
        place = Path(scratch)
        (place / "study.toml").write_text(STUDY.format(parties=parties, minimum=parties // 2))
        rows = "".join(f"{('no', 'yes')[k % 2]},{('never', 'often')[k % 3 == 0]}\n"
                       for k in range(parties))  # fmt: skip
        (place / "people.csv").write_text("smokes,sport\n" + rows)

        def start(command, role, *more):
            return subprocess.Popen(
                [sys.executable, "-m", "mpc_rr", command, place / "study.toml", *more],
                env=os.environ | {"MPC_RR_BROKER": role.with_secrets()},
                stdout=subprocess.DEVNULL, stderr=(place / f"{command}.err").open("wb"),
            )  # fmt: skip

        boss = start("coordinate", broker.coordinator, "--out", place / "out")
        while "fingerprint" not in (place / "coordinate.err").read_text():  # noqa: ASYNC110
            await asyncio.sleep(0.05)
        stop, sent = threading.Event(), [0]
        flooding = [
            asyncio.create_task(
                asyncio.to_thread(flood, broker.parties, rate / clients, stop, sent)
            )
            for _ in range(clients if rate else 0)
        ]
        await asyncio.sleep(3 if rate else 0)
        started, before = time.monotonic(), sent[0]
        host = start("host", broker.parties, "--csv", place / "people.csv", "--name", "p")
        memory_mb = 0.0
        while boss.poll() is None and time.monotonic() - started < 200:
            memory_mb = max(memory_mb, largest_mb(boss))
            await asyncio.sleep(0.2)
        seconds = time.monotonic() - started
        stop.set()
        await asyncio.gather(*flooding, return_exceptions=True)
        for process in (boss, host):
            process.terminate()
            process.wait()
        found = json.loads((place / "out" / "result.json").read_text())
        return {
            "rate": rate, "clients": clients if rate else 0, "parties": parties,
            "counted": found["publication"]["participation"].get("counted"),
            "seconds": round(seconds, 1), "memory_mb": round(memory_mb),
            "sent_per_second": round((sent[0] - before) / seconds),
            "rejected": found["rejected_messages"],
        }  # fmt: skip


def add_options(parser):
    parser.add_argument("--rates", type=int, nargs="+", default=[2000, 8000])
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 20])
    parser.add_argument("--parties", type=int, default=50)


def measure(run):
    parties = run.options.parties
    quiet = asyncio.run(measured(0, 1, parties))
    yield from rows_of(quiet, None)
    for rate, clients in itertools.product(run.options.rates, run.options.clients):
        yield from rows_of(asyncio.run(measured(rate, clients, parties)), quiet)


def rows_of(found, quiet):
    """Time and memory beside the study without a flood; who was not counted."""
    setting = {name: found.pop(name) for name in ("rate", "clients", "parties")}
    kinds = (("time of the study", "seconds", "s"), ("the coordinator's memory", "memory_mb", "MB"))
    for what, name, unit in kinds:
        beside = {}
        if quiet is not None:
            beside = {"beside": "no flood", "ratio": rounded(found[name] / quiet[name]),
                      "better": "lower"}  # fmt: skip
        yield Row(what=what, setting=setting, value=found[name], unit=unit, runs=1,
                  details=found, **beside)  # fmt: skip
    yield Row(what="people who were not counted", setting=setting, runs=1, aim=0, better="lower",
              value=setting["parties"] - (found["counted"] or 0))  # fmt: skip
