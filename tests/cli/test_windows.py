"""What Windows lacks, taken away here: everything can be imported, books kept, studies simulated.

There is no Windows to try it on. `WITHOUT_POSIX` is run before anything else in a process of its
own: no `fcntl` and other modules of POSIX alone, no folders that can be opened, and an `msvcrt`
whose locks are those of this system.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from cli_helpers import RANDOMIZED, coordinate, start

ROOT = Path(__file__).parent.parent.parent

WITHOUT_POSIX = """
import os
os.supports_dir_fd.clear()
import asyncio, fcntl, multiprocessing, subprocess, sys, tempfile, types  # they may have it

def locking(file, mode, size):
    if mode == msvcrt.LK_NBLCK:
        try:
            return flock(file, LOCK_EX | LOCK_NB)
        except OSError:
            raise PermissionError(13, "Permission denied") from None
    raise AssertionError(mode)

flock, LOCK_EX, LOCK_NB = fcntl.flock, fcntl.LOCK_EX, fcntl.LOCK_NB
msvcrt = types.ModuleType("msvcrt")
msvcrt.locking, msvcrt.LK_NBLCK = locking, 2
for name in ("fcntl", "grp", "pwd", "resource", "termios"):
    sys.modules[name] = None  # an import of it fails
sys.modules["msvcrt"] = msvcrt

def open_file(path, *how):
    if os.path.isdir(path):
        raise PermissionError(13, "Permission denied")
    return posix_open(path, *how)

del os.O_DIRECTORY, os.fork, os.killpg, os.setsid
posix_open, os.open = os.open, open_file
"""

EVERYTHING = """
import importlib, pkgutil
import mpc_rr
for module in pkgutil.walk_packages(mpc_rr.__path__, "mpc_rr."):
    importlib.import_module(module.name)
"""

BOOKS_TWICE = """
from pathlib import Path
from mpc_rr.agents.account import StateError, StoredAccount
from mpc_rr.study.file import load_scenario
books, study = Path(sys.argv[1]), load_scenario(Path("scenarios/rr_views.toml")).study
with StoredAccount.open(books) as account:
    account.charge(study, (0,) * len(study.schema.names))
    try:
        with StoredAccount.open(books):
            print("opened twice")
    except StateError as error:
        print(error)
with StoredAccount.open(books) as account:
    print("spent" if account.ledger.spent else "lost")
"""

COMMAND = """
from mpc_rr.__main__ import main
main()
"""


def on_windows(code, *arguments):
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_POSIX + code, *map(str, arguments)],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_module_can_be_imported():
    assert on_windows(EVERYTHING) == ""


def test_books_are_kept_and_used_by_one_process_at_a_time(tmp_path):
    refused, kept = on_windows(BOOKS_TWICE, tmp_path / "books").splitlines()
    assert refused.endswith("is in use by another process; each party needs its own")
    assert kept == "spent"


def test_a_study_can_be_simulated(tmp_path):
    quickstart = ROOT / "scenarios" / "quickstart.toml"
    said = on_windows(COMMAND, "run", quickstart, "--transport", "memory", "--out", tmp_path / "x")
    assert "50 of 50 parties included in the secure sum" in said


def test_a_registrar_admits(tmp_path):
    key, study = tmp_path / "registrar.key", tmp_path / "study.toml"
    line = on_windows(COMMAND, "registrar", "new", key)
    study.write_text(line + (ROOT / "scenarios" / "rr_views.toml").read_text())
    person = on_windows(COMMAND, "enrol", tmp_path / "me.pass", "--study", study).strip()
    wanted = ("--key", key, "--person", "Jane Doe", "--public", person)
    admission = on_windows(COMMAND, "registrar", "admit", study, *wanted).strip()
    kept = ("--study", study, "--admission", admission)
    assert "admitted to study" in on_windows(COMMAND, "enrol", tmp_path / "me.pass", *kept)


@pytest.mark.broker
def test_a_party_with_books_takes_part(nats, small):
    study = small / "study.toml"
    study.write_text(RANDOMIZED)
    url = ("--broker", nats.with_secrets())
    people = ("--csv", small / "people.csv")
    coordinator = coordinate(study, *url, "--out", small / "out")
    others = start("host", study, *url, *people, "--rows", "2:5")
    books = ("--state", small / "books", "--out", small / "mine")
    on_windows(COMMAND, "party", study, *url, *people, "--row", "1", *books)
    for process in (coordinator, others):
        code, _, err = process.finish()
        assert code == 0, err
    assert (small / "mine" / "receipt.jsonl").is_file()
    ledger = json.loads((small / "books" / "account.json").read_text())
    assert [took_part["study"] for took_part in ledger["participations"]] == ["small"]
