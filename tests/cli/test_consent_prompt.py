"""At a terminal a person is shown what she would disclose, and asked."""

import os
import pty
import sys

import pytest
from cli_helpers import STUDY

TYPED = {
    "no": (b"n\n", b"you declined; nothing was sent"),
    "yes": (b"y\n", b"no MQTT broker answers"),
    "the end of what is typed": (b"\x04", b"you declined; nothing was sent"),
    "an interrupt": (b"\x03", b"you declined; nothing was sent"),
}


def at_a_terminal(command, typed):
    """Run a command as the foreground process of a terminal; what it shows, and its exit code."""
    child, terminal = pty.fork()
    if child == 0:
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
    (small / "study.toml").write_text(STUDY)
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
    (small / "study.toml").write_text(STUDY)
    shown, _ = at_a_terminal(
        ["party", small / "study.toml", "--csv", small / "people.csv", "--row", 1,
         "--broker", "mqtt://127.0.0.1:1", "--yes"],
        b"",
    )  # fmt: skip
    assert b"Take part?" not in shown
    assert b"no MQTT broker answers" in shown
