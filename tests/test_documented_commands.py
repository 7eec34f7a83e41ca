"""Every command in a ``sh`` block of README and docs runs as it stands, or it is said why not."""

import os
import re
import sys
from pathlib import Path

import processes
import pytest
from documented import BLOCK, CHANGED, NOT_RUN, PAGES, ROOT

EVERY_PAGE = {
    page.relative_to(ROOT).as_posix(): BLOCK.findall(page.read_text())
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
}
ELSEWHERE = "docs/tutorials/"
"""These are run by tests/test_tutorials.py, all that they say."""


def lines_of(page):
    """The commands of a page; one that goes on in the next line is one."""
    return [
        line.strip()
        for block in EVERY_PAGE[page]
        for line in re.sub(r"\\\n\s*", "", block).splitlines()
        if line.strip()
    ]


def reason(page, line):
    """Why a line is not run; None if it is."""
    listed = NOT_RUN.get(page, {})
    return next((why for start, why in listed.items() if line.startswith(start)), None)


def commands_of(page):
    """What is run of a page."""
    script = "\n".join(line for line in lines_of(page) if reason(page, line) is None)
    for was, becomes in CHANGED.items():
        script = script.replace(was, becomes)
    return script


def test_every_page_with_commands_is_run_or_it_is_said_why_not():
    for page, blocks in EVERY_PAGE.items():
        if blocks and not page.startswith(ELSEWHERE):
            assert (page in PAGES) == bool(commands_of(page)), page


@pytest.mark.parametrize("page", NOT_RUN)
def test_what_is_not_run_is_on_its_page(page):
    for start, why in NOT_RUN[page].items():
        assert why
        assert any(line.startswith(start) for line in lines_of(page)), start


@pytest.mark.sweep
@pytest.mark.broker
@pytest.mark.parametrize("page", PAGES)
def test_the_commands_of_a_page_run(page, tmp_path):
    PAGES[page](tmp_path)
    here = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    shell = processes.start(
        ["bash", "-euxo", "pipefail", "-c", commands_of(page)],
        cwd=tmp_path,
        env={**os.environ, "PATH": here},
    )
    code, said, errors = shell.finish()
    assert code == 0, errors + said
    assert "contradicted" not in said
