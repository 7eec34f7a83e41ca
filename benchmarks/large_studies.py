"""Large studies in two stages over a real broker: does the second stage cost what the first does?

Runs ``scenarios/adult_clusters.toml`` as the command line does, with so many of the people in the
data (adult.csv). Named floor: the first stage, in which the same parties randomize, report and are
counted. Also counted: messages that were asked for again, messages that came twice, and whatever
was printed on standard error. ``--busy N`` has N other processes spin meanwhile. The deadlines are
the scenario's, or ``--round`` seconds.
"""

import csv
import json
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.harness.rows import Row, rounded

ROOT = Path(__file__).parent.parent
SCENARIO = ROOT / "scenarios" / "adult_clusters.toml"
SPIN = [sys.executable, "-c", "while True: pass"]


def scenario_for(people, round_s, folder):
    text = SCENARIO.read_text()
    text = re.sub(r"count = \d+", f"count = {people}", text)
    text = re.sub(r"minimum = \d+", f"minimum = {people * 9 // 10}", text)
    if round_s is not None:
        text = re.sub(r"round_s = \d+", f"round_s = {round_s}", text)
    path = folder / "study.toml"
    path.write_text(text)
    return path


def once(options, data, folder):
    """What came out, and the seconds of its two stages."""
    study = scenario_for(options.people, options.round, folder)
    command = [sys.executable, "-m", "mpc_rr", "run", study, "--data", data,
               "--out", folder / "run", "--json"]  # fmt: skip
    if options.hosts:
        command += ["--hosts", str(options.hosts)]
    spinning = [subprocess.Popen(SPIN) for _ in range(options.busy)]
    started = time.perf_counter()
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    finally:
        for process in spinning:
            process.kill()
            process.wait()
    seconds = time.perf_counter() - started
    result = json.loads((folder / "run" / "result.json").read_text())
    cost = json.loads((folder / "run" / "cost.json").read_text())
    rounds = {r["step"]: r["seconds"] for r in cost["rounds"]}
    with (folder / "run" / "cost.csv").open() as file:
        again = sum(
            int(row["messages_up"]) + int(row["messages_down"])
            for row in csv.DictReader(file)
            if row["step"] == "again"
        )
    people = result["publication"]["participation"]
    return (
        rounds["answer"],
        rounds["first_answer"],
        {
            "status": result["status"],
            "counted": people["counted"],
            "whole_s": round(seconds, 1),
            "first_stage_s": round(rounds["first_answer"], 1),
            "messages": cost["total"]["messages_up"] + cost["total"]["messages_down"],
            "of_these_asked_again_or_sent_again": again,
            "rejected": result["rejected_messages"],
            "stray_lines": done.stderr.splitlines(),
        },
    )


def add_options(parser):
    parser.add_argument("--people", type=int, default=32_561)
    parser.add_argument("--hosts", type=int, default=2)
    parser.add_argument("--busy", type=int, default=0)
    parser.add_argument("--round", type=int)


def measure(run):
    options = run.options
    with tempfile.TemporaryDirectory() as folder:
        second, first, more = once(options, run.data("adult.csv"), Path(folder))
    setting = {"people": options.people, "hosts": options.hosts, "busy": options.busy}
    yield Row(what="time of the second stage", setting=setting, value=rounded(second), unit="s",
              beside="the first stage", ratio=rounded(second / first), runs=1, better="lower",
              details=more)  # fmt: skip
    yield Row(what="people who were not counted", setting=setting, runs=1, aim=0, better="lower",
              value=options.people - more["counted"])  # fmt: skip
