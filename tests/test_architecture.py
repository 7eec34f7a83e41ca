"""The rules of docs/architecture.md that a machine can check."""

import io
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from rich.console import Console

import mpc_rr
from mpc_rr.results.folder import write_results
from mpc_rr.running import run_study
from mpc_rr.show.report import report
from mpc_rr.show.study import show_result
from mpc_rr.study.file import load_scenario

PACKAGE = Path(mpc_rr.__file__).parent
ROOT = Path(__file__).parent.parent


def test_imports_go_one_way():
    """The contracts of import-linter in pyproject.toml."""
    done = subprocess.run(
        [sys.executable, "-c", "from importlinter.cli import lint_imports_command as m; m()"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout


def test_what_quick_tests_leave_out_is_there():
    """A test that was renamed would come back into `pytest --quick` unnoticed."""
    listed = (ROOT / "tests" / "slow.txt").read_text().splitlines()
    assert [line for line in listed if not line.startswith("#") and not _is_a_test(line)] == []


def _is_a_test(line):
    file, _, name = line.partition("::")
    return f"def {name}(" in (ROOT / "tests" / file).read_text()


# ── The walk of a record ───────────────────────────────────────────────────────────────────────


def layers():
    """The rank of each room, from the import contract: 0 is the command line."""
    text = (ROOT / "pyproject.toml").read_text()
    contract = tomllib.loads(text)["tool"]["importlinter"]["contracts"][0]
    return {
        room.strip(): rank
        for rank, layer in enumerate(contract["layers"])
        for room in layer.split("|")
    }


class Walk:
    """Which rooms are entered while this context lasts, and from where."""

    def __init__(self):
        self.steps = set()

    def __enter__(self):
        sys.setprofile(self._called)
        return self

    def __exit__(self, *_):
        sys.setprofile(None)

    def _called(self, frame, event, _):
        if event == "call" and (room := self._room(frame)):
            back = frame.f_back
            while back is not None and self._room(back) is None:
                back = back.f_back
            if back is not None:
                self.steps.add((self._room(back), room, frame.f_code.co_name))

    @staticmethod
    def _room(frame):
        path = Path(frame.f_code.co_filename)
        return path.relative_to(PACKAGE).parts[0].removesuffix(".py") if (
            path.is_relative_to(PACKAGE)
        ) else None  # fmt: skip


STATED = {("publication", "protocols", said) for said in ("stated", "cautions", "notes")}
"""What a study costs, allows and does not promise is asked of its protocol when it is published."""


@pytest.mark.parametrize("name", ["quickstart", "rr_clusters", "hidden_in_groups"])
def test_what_a_protocol_has_ended_never_goes_back_up(tmp_path, name):
    """From the ending to folder, terminal and report every step leads down, or stays."""
    scenario = load_scenario(ROOT / "scenarios" / f"{name}.toml")
    run = run_study(scenario, transport="memory", seed=1)
    rank = layers()
    with Walk() as walk:
        file = write_results(run, tmp_path / "run")
        show_result(Console(file=io.StringIO()), run, file.publication, 0.0)
        report(tmp_path / "run")
    upward = {step for step in walk.steps if rank[step[1]] < rank[step[0]]}
    assert upward <= STATED
    rooms = {room for step in walk.steps for room in step[:2]}
    assert not rooms & {"agents", "running", "simulation"}
