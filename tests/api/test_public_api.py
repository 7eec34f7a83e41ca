"""``import mpc_rr`` as users have it: typed, complete, and light."""

import ast
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

import mpc_rr

HERE = Path(__file__).parent
BAD = HERE / "bad_user.py"


@pytest.fixture(scope="module")
def checked(tmp_path_factory):
    """What ``mypy --strict`` says of both users' files."""
    pytest.importorskip("mypy")
    cache = tmp_path_factory.mktemp("mypy")
    return subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--config-file", "", "--cache-dir", cache,
         "--no-error-summary", "--no-pretty", HERE / "good_user.py", BAD],
        capture_output=True, text=True, check=False, cwd=cache,
    ).stdout.splitlines()  # fmt: skip


def test_a_user_s_program_that_is_right_passes_strict_type_checking(checked):
    assert [line for line in checked if "good_user" in line] == []


def test_a_type_checker_finds_every_mistake_of_a_user(checked):
    """A module that is Any finds none of them."""
    found = {}
    for line in checked:
        place = re.search(r"bad_user\.py:(\d+): error: .*\[([a-z-]+)\]", line)
        if place:
            found.setdefault(int(place[1]), []).append(place[2])
    marked = {}
    for number, line in enumerate(BAD.read_text().splitlines(), start=1):
        if "# wrong: " in line:
            marked[number] = line.partition("# wrong: ")[2].split(", ")
    assert {line: sorted(kinds) for line, kinds in found.items()} == {
        line: sorted(kinds) for line, kinds in marked.items()
    }


def test_the_right_program_runs(tmp_path):
    done = subprocess.run(
        [sys.executable, HERE / "good_user.py", tmp_path],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "30 of 30 parties answered" in done.stdout


def test_every_public_name_is_there_for_people_and_for_type_checkers():
    tree = ast.parse(Path(mpc_rr.__file__).read_text())
    block = next(node for node in tree.body if isinstance(node, ast.If))
    typed = {(name.name, node.module) for node in block.body for name in node.names}
    assert typed == set(mpc_rr._HOME.items())
    for name in mpc_rr.__all__:
        assert getattr(mpc_rr, name) is not None
    assert set(mpc_rr.__all__) <= set(dir(mpc_rr))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        mpc_rr.nothing  # noqa: B018


def test_the_version_is_that_of_the_distribution():
    assert mpc_rr.__version__ == metadata.version("mpc-rr")


def test_importing_loads_nothing_that_is_not_asked_for():
    code = (
        "import sys, mpc_rr; mpc_rr.KeepOrUniform; "
        "print(sorted({'cryptography', 'aiomqtt', 'matplotlib', 'pandas', 'polars', 'typer'}"
        " & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_command_starts_without_the_slow_parts_of_scipy():
    """They take a third of the time until a command does anything."""
    code = (
        "import sys, mpc_rr.cli; "
        "print(sorted({'scipy.stats', 'scipy.optimize', 'networkx', 'matplotlib', 'pandas'}"
        " & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
