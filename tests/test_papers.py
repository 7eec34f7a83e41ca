"""The page that says where each element of the papers is: every path exists, every command runs."""

import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from mpc_rr.cli import app
from mpc_rr.reproduce import REPRODUCTIONS
from mpc_rr.study.examples import example

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "papers.md").read_text()
SECTIONS = {part[:3]: part for part in PAGE.split("\n## ")[1:]}
"""By the number of the paper."""


def rows_of(section):
    lines = (line for line in section.splitlines() if re.match(r"\| (?!element|---)", line))
    return [line.split(" | ") for line in lines]


ROWS = [row for section in SECTIONS.values() for row in rows_of(section)]
COMMANDS = sorted(
    {
        (paper, found[1])
        for paper, section in SECTIONS.items()
        for row in rows_of(section)
        if (found := re.match(r"`mpc-rr (.*)`", row[1]))
    }
)
RUNS = {"002": "block_survey", "004": "hidden_in_groups"}
"""Of which study a paper's `run` is; of the others it is `own_budgets`."""
PLAYED = {
    ("002", "§"): "block_aggregation",
    ("004", "§5"): "collaborative_k_anonymity",
    ("004", "§6 Protocol 2"): "collaborative_masking",
}
"""Which protocol the studies of a paper's rows play, by how the rows begin."""
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
    named = {shlex.split(words)[1] for _, words in COMMANDS if words.startswith("reproduce ")}
    assert named <= set(REPRODUCTIONS)
    assert {name for name in REPRODUCTIONS if name.startswith("rrba-")} <= named


@pytest.mark.parametrize(("paper", "begins"), PLAYED)
def test_rows_name_studies_that_play_what_the_paper_describes(paper, begins):
    named = [
        found[1]
        for row in rows_of(SECTIONS[paper])
        if row[0].startswith(f"| {begins}")
        and (found := re.match(r"`mpc-rr (?:run|check|party) (\w+)", row[1]))
    ]
    assert named
    played = {example(name).protocol for name in named}
    assert played == {PLAYED[paper, begins]}


@pytest.mark.sweep
@pytest.mark.parametrize(
    ("paper", "command"), [each for each in COMMANDS if each[1].split()[0] not in ELSEWHERE]
)
def test_every_command_runs(tmp_path, monkeypatch, paper, command):
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
        study = RUNS.get(paper, "own_budgets")
        run("run", study, "--transport", "memory", "--seed", "1", "--out", "run")
        if study == "own_budgets":
            reports = Path("run", "reports.csv").read_text().splitlines()[1:]
            rows = [f"{line.split(',')[0]},{1 + k % 3}" for k, line in enumerate(reports)]
            Path("sample.csv").write_text("\n".join(["party,weight", *rows]) + "\n")
    if "adult_clusters" not in words:  # which needs data from outside
        run(*words)
