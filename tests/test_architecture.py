"""The rules of docs/architecture.md that a machine can check."""

import subprocess
import sys
from pathlib import Path

import mpc_rr

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
