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
