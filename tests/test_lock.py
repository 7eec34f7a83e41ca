"""A deployment installs exactly what requirements.lock says, and that is enough."""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
WANTED = [*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["proxy"]]
LOCK = (ROOT / "requirements.lock").read_text()
PINNED = dict(re.findall(r"^([a-z0-9-]+)==(\S+) \\$", LOCK, re.MULTILINE))


@pytest.mark.parametrize("line", WANTED)
def test_every_dependency_is_locked_at_a_version_that_we_allow(line):
    wanted = Requirement(line)
    assert wanted.specifier.contains(PINNED[wanted.name.lower()])


def test_the_lock_holds_pins_and_hashes_and_nothing_else():
    """No address of an index, above all: whoever installs decides where packages come from."""
    rows = [row for row in LOCK.splitlines() if not row.startswith("#")]
    pin = re.compile(r"[a-z0-9-]+==[0-9a-z.+!]+ \\|    --hash=sha256:[0-9a-f]{64}(?: \\)?")
    assert [row for row in rows if not pin.fullmatch(row)] == []
    assert "://" not in LOCK
    for here, following in zip(rows, [*rows[1:], "end=="], strict=True):
        assert here.endswith("\\") == following.startswith("    --hash"), here


def audit(folder, script, seconds="20"):
    """`.ci/audit` with a pip-audit that does this."""
    pip_audit = folder / "pip-audit"
    pip_audit.write_text(f"#!/bin/sh\n{script}\n")
    pip_audit.chmod(0o700)
    command = [sys.executable, ROOT / ".ci" / "audit", pip_audit, seconds]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout


def answering(folder, *packages):
    (folder / "answer").write_text(json.dumps({"dependencies": packages}))
    return audit(folder, f"cat {folder / 'answer'}; exit 1")


def test_a_known_vulnerability_fails_the_run(tmp_path):
    hole = {"id": "PYSEC-1", "fix_versions": ["2"]}
    code, said = answering(
        tmp_path,
        {"name": "x", "version": "1", "vulns": [hole]},
        {"name": "y", "skip_reason": "not found"},
    )
    assert code == 1
    assert "x 1: PYSEC-1, fixed in 2" in said


def test_no_known_vulnerability_passes(tmp_path):
    code, said = answering(tmp_path, {"name": "x", "version": "1", "vulns": []})
    assert (code, said) == (0, "1 packages looked up\n")


@pytest.mark.parametrize(
    ("script", "seconds", "why"),
    [
        ("echo no route to host >&2; exit 1", "20",
         "no vulnerability index answers (no route to host)"),
        ("exec sleep 30", "0.3", "the index did not answer within 0.3 s"),
        ("""echo '{"dependencies": [{"name": "x", "skip_reason": "not found"}]}'""", "20",
         "the index knows none of the packages"),
    ],
)  # fmt: skip
def test_an_index_that_does_not_answer_fails_nothing_and_is_not_called_a_clean_bill(
    tmp_path, script, seconds, why
):
    assert audit(tmp_path, script, seconds) == (0, f"skipped: {why}\n")
