"""The page that says where each element of the papers is: every path exists, every command runs."""

import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from mpc_rr.cli import app
from mpc_rr.reproduce import REPRODUCTIONS

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "papers.md").read_text()
ROWS = [line.split(" | ") for line in PAGE.splitlines() if re.match(r"\| (?!element|---)", line)]
COMMANDS = sorted({found[1] for row in ROWS if (found := re.match(r"`mpc-rr (.*)`", row[1]))})
PEOPLE = "age,sex,smokes\n" + "".join(
    f"{20 + 7 * k % 60},{'fm'[k % 2]},{['yes', 'no', 'no'][k % 3]}\n" for k in range(60)
)
ELSEWHERE = {"host", "reproduce"}
"""Tested with a broker, and with data of their own (`tests/test_reproduce.py`)."""


def test_every_element_has_a_command_and_a_test():
    assert len(ROWS) > 50
    for row in ROWS:
        assert row[1].startswith(("`mpc-rr ", "`python scenarios/", "none: ")), row
        tests = re.findall(r"`(tests/[^`]*)`", row[2])
        assert tests, row
        for path in tests:
            assert (ROOT / path).exists(), path


def test_tables_and_figures_are_those_that_can_be_computed():
    named = {shlex.split(command)[1] for command in COMMANDS if command.startswith("reproduce ")}
    assert named <= set(REPRODUCTIONS)


@pytest.mark.sweep
@pytest.mark.parametrize(
    "command", [command for command in COMMANDS if command.split()[0] not in ELSEWHERE]
)
def test_every_command_runs(tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    Path("people.csv").write_text(PEOPLE)

    def run(*words):
        done = CliRunner().invoke(app, [*words])
        assert done.exit_code == 0, f"{words}: {done.output}"

    words = shlex.split(command)
    if words[0] == "run":
        words += ["--transport", "memory", "--seed", "1"]
    if words[0] == "estimate":
        run("randomize", "people.csv", "--beta", "0.6", "--out", "out.csv")
    if "run" in words[1:]:
        run("run", "own_budgets", "--transport", "memory", "--seed", "1", "--out", "run")
        reports = Path("run", "reports.csv").read_text().splitlines()[1:]
        rows = [f"{line.split(',')[0]},{1 + k % 3}" for k, line in enumerate(reports)]
        Path("sample.csv").write_text("\n".join(["party,weight", *rows]) + "\n")
    if "adult_clusters" not in words:  # which needs data from outside
        run(*words)
