"""Large studies in two stages over a real broker: does the second stage cost what the first does?

    python benchmarks/large_studies.py --data adult.csv [--people 32561] [--hosts 2] [--busy 0]

Runs ``scenarios/adult_clusters.toml`` as the command line does, with so many of the people in the
data. Named floor: the first stage, in which the same parties randomize, report and are counted.
Also counted: messages that were asked for again, messages that came twice, and whatever was printed
on standard error. ``--busy N`` has N other processes spin meanwhile. The deadlines are the
scenario's, or ``--round`` seconds.
"""

import argparse
import csv
import json
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

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


def run(options, folder):
    study = scenario_for(options.people, options.round, folder)
    command = [sys.executable, "-m", "mpc_rr", "run", study, "--data", options.data,
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
    return {
        "people": options.people,
        "hosts": options.hosts,
        "busy": options.busy,
        "status": result["status"],
        "counted": people["counted"],
        "seconds": round(seconds, 1),
        "first_stage_s": round(rounds["first_answer"], 1),
        "second_stage_s": round(rounds["answer"], 1),
        "second_to_first": round(rounds["answer"] / rounds["first_answer"], 3),
        "messages": cost["total"]["messages_up"] + cost["total"]["messages_down"],
        "of_these_asked_again_or_sent_again": again,
        "rejected": result["rejected_messages"],
        "stray_lines": done.stderr.splitlines(),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", required=True, type=Path)
    parser.add_argument("--people", type=int, default=32_561)
    parser.add_argument("--hosts", type=int, default=2)
    parser.add_argument("--busy", type=int, default=0)
    parser.add_argument("--round", type=int)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = run(options, Path(folder))
    text = json.dumps(found, indent=2)
    print(text)
    if options.out is not None:
        options.out.write_text(text + "\n")


if __name__ == "__main__":
    main()
