"""Processor time from a study's last message until its result is written and shown.

    python benchmarks/publication.py [--against CHECKOUT] [--runs 9] [--out FILE.json]

Named floor: the ending's ``publish``, called once and bare. What is above it is writing the folder
and printing. With ``--against`` the same is measured with another checkout of the repository (a
``git worktree`` of commit 723af55, which computed everything two or three times), run by run in
turn, each in a process of its own.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent
SCENARIOS = ("block_survey", "hidden_in_groups", "rr_views")


def one(scenario, seed):
    """In this process, with whichever mpc_rr is on its path: seconds, and those of the floor."""
    from mpc_rr import load_scenario, run_study  # noqa: PLC0415  (both checkouts have these)
    from mpc_rr.cli import studies  # noqa: PLC0415

    result = run_study(load_scenario(scenario), transport="memory", seed=seed)
    assert result.outcome.result is not None, result.outcome.cause
    shown = os.dup(1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    with tempfile.TemporaryDirectory() as folder:
        started = time.process_time()
        studies._finish(result, Path(folder) / "run", 0.0, as_json=False)
        sys.stdout.flush()
        spent_s = time.process_time() - started
    os.dup2(shown, 1)
    floor_s = None
    if hasattr(result.outcome.result, "publish"):
        setting = result.study.setting_with(result.outcome.members)
        started = time.process_time()
        result.outcome.result.publish(setting)
        floor_s = time.process_time() - started
    print(json.dumps([spent_s, floor_s]))


def measured(checkout, scenario, seed):
    command = [sys.executable, __file__, "--one", checkout / "scenarios" / f"{scenario}.toml",
               "--seed", str(seed)]  # fmt: skip
    environment = os.environ | {"PYTHONPATH": str(checkout), "COLUMNS": "100"}
    done = subprocess.run(
        command, env=environment, cwd=checkout, capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--against", type=Path)
    parser.add_argument("--runs", type=int, default=9)
    parser.add_argument("--seed", type=int, default=100)
    parser.add_argument("--one", type=Path)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    if options.one is not None:
        one(options.one, options.seed)
        return
    rows = []
    for scenario in SCENARIOS:
        here, there = [], []
        for run in range(options.runs):
            here.append(measured(ROOT, scenario, options.seed + run))
            if options.against is not None:
                there.append(measured(options.against.resolve(), scenario, options.seed + run)[0])
        spent_s = statistics.median(spent for spent, _ in here)
        row = {
            "scenario": scenario,
            "processor_ms": round(1000 * spent_s, 1),
            "to_publishing_once": round(statistics.median(s / f for s, f in here), 2),
        }
        if there:
            ratios = [spent / before for (spent, _), before in zip(here, there, strict=True)]
            row |= {
                "against_ms": round(1000 * statistics.median(there), 1),
                "ratio": round(statistics.median(ratios), 3),
                "ratios": [round(ratio, 3) for ratio in sorted(ratios)],
            }
        rows.append(row)
        print(json.dumps(row), flush=True)
    if options.out is not None:
        options.out.write_text(json.dumps(rows, indent=2) + "\n")


if __name__ == "__main__":
    main()
