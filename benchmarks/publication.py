"""Processor time from a study's last message until its result is written and shown.

Named floor: the ending's ``publish``, called once and bare. What is above it is writing the folder
and printing. With ``--against`` the same is measured with another checkout of the repository (a
``git worktree`` of commit 723af55, which computed everything two or three times), run by run in
turn, each in a process of its own. Aim: at most 0.4 of its time.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.harness.rows import measured

ROOT = Path(__file__).parent.parent
AIM = 0.4
"""Of the processor time of commit 723af55."""
SCENARIOS = ("block_survey", "hidden_in_groups", "rr_views")


def one(scenario, seed):
    """In a process of its own, with whichever mpc_rr is on its path: seconds, and the floor's."""
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


def measured_in(checkout, scenario, seed):
    file = checkout / "scenarios" / f"{scenario}.toml"
    command = [sys.executable, __file__, str(file), str(seed)]
    environment = os.environ | {"PYTHONPATH": f"{checkout}{os.pathsep}{ROOT}", "COLUMNS": "100"}
    done = subprocess.run(
        command, env=environment, cwd=checkout, capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


def add_options(parser):
    parser.add_argument("--against", type=Path, help="another checkout of the repository")
    parser.add_argument("--runs", type=int, default=9)


def measure(run):
    what, against = "processor time of an ending", run.options.against
    for scenario in SCENARIOS:
        here, there = [], []
        for number in range(run.options.runs):
            here.append(measured_in(ROOT, scenario, run.seed + number))
            if against is not None:
                there.append(measured_in(against.resolve(), scenario, run.seed + number)[0])
        spent, floor = zip(*here, strict=True)
        setting = {"scenario": scenario}
        yield measured(what, setting, spent, floor, unit="processor s",
                       beside="publishing once", better="lower")  # fmt: skip
        if there:
            yield measured(f"{what}, beside another checkout", setting, spent, there,
                           unit="processor s", beside=str(against.name), aim=AIM,
                           better="lower")  # fmt: skip


if __name__ == "__main__":
    one(Path(sys.argv[1]), int(sys.argv[2]))
