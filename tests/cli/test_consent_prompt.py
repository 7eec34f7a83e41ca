"""At a terminal a person is shown what she would disclose, and asked."""

import os
import pty
import sys

import pytest
from cli_helpers import STUDY

from mpc_rr.cli import console

SHORT = STUDY.replace("lobby_s = 600", "lobby_s = 1")
"""A broker that does not answer is tried for no longer."""
TYPED = {
    "no": (b"n\n", b"you declined; nothing was sent"),
    "yes": (b"y\n", b"no MQTT broker answers"),
    "the end of what is typed": (b"\x04", b"you declined; nothing was sent"),
    "an interrupt": (b"\x03", b"you declined; nothing was sent"),
}


def at_a_terminal(command, typed, errors=None):
    """Run a command as the foreground process of a terminal; what it shows, and its exit code.

    ``errors``: a file to which its messages go.
    """
    child, terminal = pty.fork()
    if child == 0:
        if errors is not None:
            os.dup2(os.open(errors, os.O_WRONLY | os.O_CREAT), 2)
        os.execv(sys.executable, [sys.executable, "-m", "mpc_rr", *map(str, command)])
    shown = b""
    try:
        while piece := _read(terminal):
            shown += piece
            if typed and b"Take part? [y/N]:" in shown:
                os.write(terminal, typed)
                typed = b""
    finally:
        os.close(terminal)
        _, status = os.waitpid(child, 0)
    return shown, os.waitstatus_to_exitcode(status)


def _read(terminal):
    try:
        return os.read(terminal, 65536)
    except OSError:  # the other end was closed
        return b""


@pytest.mark.parametrize("answer", TYPED)
def test_a_person_at_a_terminal_is_asked_before_anything_is_sent(small, answer):
    (small / "study.toml").write_text(SHORT)
    typed, ends_with = TYPED[answer]
    shown, code = at_a_terminal(
        ["party", small / "study.toml", "--csv", small / "people.csv", "--row", 1,
         "--broker", "mqtt://127.0.0.1:1"],
        typed,
    )  # fmt: skip
    assert b"What you would disclose" in shown
    assert b"The study is open" in shown
    assert ends_with in shown
    assert b"Traceback" not in shown
    assert code == 1


def test_who_says_yes_beforehand_is_not_asked(small):
    (small / "study.toml").write_text(SHORT)
    shown, _ = at_a_terminal(
        ["party", small / "study.toml", "--csv", small / "people.csv", "--row", 1,
         "--broker", "mqtt://127.0.0.1:1", "--yes"],
        b"",
    )  # fmt: skip
    assert b"Take part?" not in shown
    assert b"no MQTT broker answers" in shown


@pytest.mark.parametrize("said", [[], ["--yes"]])
def test_who_sits_at_a_terminal_and_cannot_be_asked_there_must_say_yes(small, said):
    """With 2>file nothing was asked, and the broker was connected to."""
    (small / "study.toml").write_text(SHORT)
    errors = small / "errors"
    _, code = at_a_terminal(
        ["party", small / "study.toml", "--csv", small / "people.csv", "--row", 1,
         "--broker", "mqtt://127.0.0.1:1", *said],
        b"",
        errors,
    )  # fmt: skip
    told = errors.read_text()
    assert ("cannot be asked there" in told) == (not said)
    assert ("no MQTT broker answers" in told) == bool(said)
    assert code == (1 if said else 2)


def test_who_is_started_in_the_background_of_a_terminal_must_say_yes(here, small, monkeypatch):
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    monkeypatch.setattr(console, "_in_foreground", lambda: False)
    (small / "study.toml").write_text(SHORT)
    code, _, told = here(
        "party", small / "study.toml", "--csv", small / "people.csv", "--row", 1,
        "--broker", "mqtt://127.0.0.1:1",
    )  # fmt: skip
    assert "cannot be asked there" in told
    assert code == 2
