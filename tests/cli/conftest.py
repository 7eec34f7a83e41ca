import sys

import pytest
from cli_helpers import PEOPLE, STUDY

from mpc_rr.__main__ import main
from mpc_rr.network.mqtt import MqttConnection


@pytest.fixture
def small(tmp_path):
    """A study file, people to ask, and a scenario with both."""
    (tmp_path / "study.toml").write_text(STUDY)
    rows = "".join(f"{sport},{mood}\n" for sport, mood in PEOPLE)
    (tmp_path / "people.csv").write_text("sport,mood\n" + rows)
    (tmp_path / "scenario.toml").write_text(STUDY + '[data]\ncsv = "people.csv"\n')
    return tmp_path


@pytest.fixture
def here(monkeypatch, capsys):
    """Run a command in this process, which saves starting an interpreter: code, output, errors.

    A broker that is not there is tried once: what should have ended earlier is seen to get so far.
    """
    monkeypatch.setattr(MqttConnection, "_first_connection", MqttConnection._connect)

    def call(*arguments, cwd=None):
        if cwd is not None:
            monkeypatch.chdir(cwd)
        monkeypatch.setattr(sys, "argv", ["mpc-rr", *map(str, arguments)])
        code = 0
        try:
            main()
        except SystemExit as ended:
            code = ended.code or 0
        return code, *capsys.readouterr()

    return call
