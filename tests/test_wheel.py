"""What is in the wheel, tried without the checkout: its examples run by name."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from helpers import unpack

ROOT = Path(__file__).parents[1]


def built(kind, source, out):
    done = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", str(out)],
        cwd=source, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (found,) = out.iterdir()
    return found


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory):
    """The wheel that is made from the source distribution, unpacked."""
    folder = tmp_path_factory.mktemp("wheel")
    unpack(built("sdist", ROOT, folder / "sdist"), folder)
    (source,) = (path for path in folder.iterdir() if path.name != "sdist")
    with zipfile.ZipFile(built("wheel", source, folder / "wheels")) as wheel:
        wheel.extractall(folder / "installed")
    return folder / "installed"


def test_the_wheel_alone_does_the_main_job(unpacked, tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "mpc_rr", "run", "quickstart", "--out", "results"],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(unpacked)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "50 of 50 parties" in done.stdout
    assert (tmp_path / "results" / "result.json").is_file()


def test_it_brings_every_example_and_what_an_example_needs(unpacked):
    brought = {path.name for path in (unpacked / "mpc_rr" / "examples").iterdir()}
    assert brought == {path.name for path in (ROOT / "scenarios").iterdir() if path.is_file()}
