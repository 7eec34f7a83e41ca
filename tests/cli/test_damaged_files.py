"""Whatever is wrong with a file that somebody gives: one line says so, and names the file."""

import shutil
from pathlib import Path

import pytest
from cli_helpers import PEOPLE, RANDOMIZED, STUDY, assert_one_line

from mpc_rr.agents.account import StoredAccount
from mpc_rr.crypto.certificates import self_signed
from mpc_rr.study.file import load_scenario

BROKER = ("--broker", "mqtt://127.0.0.1:1")
ROW = ("--csv", "people.csv", "--row", "1", "--yes")
ADMITTED = ("party", "registered.toml", *BROKER, *ROW, "--pass", "me.pass")
COMMANDS = {
    "study.toml": [("check", "study.toml"), ("plan", "study.toml", "--epsilon", "1")],
    "people.csv": [
        ("schema", "people.csv"),
        ("party", "study.toml", *BROKER, *ROW),
        ("host", "study.toml", *BROKER, "--csv", "people.csv", "--state", "x", "--id", "id"),
        ("ledger", "one", "--adopt", "people.csv", "--id", "id"),
        ("report", "run", "--truth", "people.csv", "--out", "report.html"),
    ],
    "record.json": [("party", "study.toml", *BROKER, "--record", "record.json")],
    "record.toml": [("party", "study.toml", *BROKER, "--record", "record.toml")],
    "plugin.py": [("check", "study.toml", "--plugin", "plugin.py")],
    "registrar.key": [
        ("registrar", "revoke", "registered.toml", "--key", "registrar.key", "--person", "Jane"),
        ("registrar", "withdrawals", "registered.toml", "--key", "registrar.key"),
    ],
    "list.json": [
        (*ADMITTED, "--withdrawals", "list.json"),
        ("registrar", "withdrawals", "registered.toml", "--key", "registrar.key", "--out",
         "list.json"),
    ],
    "me.pass": [("enrol", "me.pass"), ADMITTED,
                ("enrol", "me.pass", "--study", "registered.toml", "--admission", "00")],
    "address": [("coordinate", "study.toml", "--broker", "@address")],
    "certificate.pem": [
        ("coordinate", "study.toml", "--broker", "mqtts://127.0.0.1:1", "--broker-ca",
         "certificate.pem"),
        ("broker", "--certificate", "certificate.pem", "--key", "key.pem"),
    ],
    "key.pem": [("broker", "--certificate", "certificate.pem", "--key", "key.pem")],
    "keys/keys.json": [("broker", "--keys", "keys")],
    "one/account.json": [("ledger", "one"), ("party", "study.toml", *BROKER, *ROW, "--state",
                                             "one")],
    "many/names.key": [("ledger", "many", "--id", "p1")],
    "receipt.jsonl": [("verify", "run", "--receipt", "receipt.jsonl")],
    "run/result.json": [("verify", "run"), ("query", "run", "sport=yes"),
                        ("publish", "run", "--out", "x")],
    "run/study.json": [("verify", "run"), ("report", "run", "--out", "report.html")],
}  # fmt: skip
CONTENTS = {
    "empty": b"",
    "null": b"null",
    "a number": b"7",
    "no text": b'{"kind": "\xff"}',
    "nested": b"[" * 150_000,
    "nested objects": b'{"a":' * 150_000,
    "many digits": b"9" * 6000,
}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A folder with a good file of every kind; the first commands that need it make the rest."""
    folder = tmp_path_factory.mktemp("whole")
    people = "".join(f"{sport},{mood},p{n}\n" for n, (sport, mood) in enumerate(PEOPLE))
    certificate, key = self_signed()
    for name, text in {
        "study.toml": STUDY,
        "randomized.toml": RANDOMIZED + '[data]\ncsv = "people.csv"\n',
        "people.csv": "sport,mood,id\n" + people,
        "record.json": '{"sport": "no", "mood": "low"}',
        "record.toml": 'sport = "no"\nmood = "low"\n',
        "plugin.py": "",
        "address": "mqtt://127.0.0.1:1\n",
        "certificate.pem": certificate,
        "key.pem": key,
    }.items():
        (folder / name).write_text(text)
    return folder


@pytest.fixture
def files(whole, tmp_path, here, monkeypatch):
    if not (whole / "run").exists():
        make_the_rest(whole, here)
    shutil.copytree(whole, tmp_path / "files")
    monkeypatch.chdir(tmp_path / "files")
    return tmp_path / "files"


def make_the_rest(folder, here):
    def done(*arguments):
        code, out, err = here(*arguments, cwd=folder)
        assert code == 0, err
        return out.strip()

    (folder / "registered.toml").write_text(done("registrar", "new", "registrar.key") + STUDY)
    request = done("enrol", "me.pass", "--study", "registered.toml")
    key = ("registered.toml", "--key", "registrar.key")
    admission = done("registrar", "admit", *key, "--person", "Jane", "--request", request)
    done("enrol", "me.pass", "--study", "registered.toml", "--admission", admission)
    done("registrar", "withdrawals", *key, "--out", "list.json")
    study = load_scenario(folder / "randomized.toml").study
    for state, person in (("one", None), ("many", "p1")):
        with StoredAccount.open(folder / state, person=person) as account:
            account.charge(study, (0, 0))
    (folder / "keys").mkdir()
    (folder / "receipt.jsonl").touch()
    done("run", "randomized.toml", "--transport", "memory", "--seed", "1", "--out", "run")


def assert_told(code, err, file):
    """One line, with the file's name, after whatever notes there were."""
    assert code in (1, 2), (code, err)
    assert "Traceback" not in err
    told = [line for line in err.splitlines() if line.startswith("mpc-rr: ")]
    assert len(told) == 1, err
    assert Path(file).name in told[0], err
    assert "cannot go on" not in told[0]
    assert "[Errno" not in told[0]


CASES = [(file, command) for file, commands in COMMANDS.items() for command in commands]
IDS = [f"{file} of {' '.join(command[:2])}" for file, command in CASES]


@pytest.mark.parametrize(("file", "command"), CASES, ids=IDS)
def test_a_file_with_other_content_is_told(here, files, file, command):
    for content in CONTENTS.values():
        (files / file).write_bytes(content)
        code, _, err = here(*command)
        assert_told(code, err, file)
        assert (files / file).read_bytes() == content


@pytest.mark.parametrize(("file", "command"), CASES, ids=IDS)
def test_a_folder_instead_of_a_file_is_told(here, files, file, command):
    (files / file).unlink(missing_ok=True)
    (files / file).mkdir()
    code, _, err = here(*command)
    assert_told(code, err, file)


def test_a_plugin_that_is_a_link_to_itself_is_told(here, files):
    (files / "plugin.py").unlink()
    (files / "plugin.py").symlink_to("plugin.py")
    code, _, err = here("check", "study.toml", "--plugin", "plugin.py")
    assert_told(code, err, "plugin.py")


def test_whatever_else_the_system_refuses_is_told_with_its_place(here, files, monkeypatch):
    def refused(folder):
        raise PermissionError(13, "Permission denied", str(folder))

    monkeypatch.setattr(Path, "iterdir", refused)
    code, _, err = here("publish", "run", "--out", "many")
    assert code == 1
    assert_one_line(err, "many: Permission denied")


@pytest.mark.parametrize("key", [".", "/", ".."])
def test_a_key_file_is_no_folder(here, files, key):
    """The name of what locks it was made from a name that is not there: a traceback."""
    command = ("registrar", "revoke", "registered.toml", "--key", key, "--person", "Jane")
    code, _, err = here(*command)
    assert code == 2
    assert f"{key} is a folder" in err
