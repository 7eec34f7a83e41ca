"""Runs the embedded broker for as long as its owner lives, and cleans up after both.

Started by `mpc_rr.network.broker` as a process of its own, with nothing but the standard library.
Its standard input is a pipe whose other end only the owner holds: when the owner closes it or dies,
however suddenly, the pipe ends; then the broker is stopped and its folder removed. If the guard
itself is killed, the broker dies with it on Linux, and goes on elsewhere; its owner removes the
folder, if it lives.

What the broker says is read, and next to nothing of it kept: strangers make it say much, in lines
of 64 kB, and no disk may fill with that.

Usage: broker_guard.py FOLDER COMMAND…   (FOLDER is removed in the end)
"""

import contextlib
import ctypes
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import IO

STOP_S = 5.0
LINES, LINE_BYTES = 8, 480
"""So much is kept. Together it must fit into a pipe: nobody reads that before we have ended."""
OF_NO_USE = re.compile(rb"\[(INF|WRN|DBG)\]| - \w?id:\d+ - ")
"""Mere information, and what was wrong with one connection: it never ends a broker."""
_ON_PARENTS_DEATH = 1
"""``PR_SET_PDEATHSIG`` of <sys/prctl.h>."""
KILL = b"k"
"""Said by the owner: end the broker at once, as a power cut would."""


def _stop(broker: "subprocess.Popen[bytes]") -> None:
    with contextlib.suppress(ProcessLookupError):
        broker.terminate()
    try:
        broker.wait(STOP_S)
    except subprocess.TimeoutExpired:
        broker.kill()


def _stop_when_owner_is_gone(broker: "subprocess.Popen[bytes]") -> None:
    while said := os.read(0, 4096):
        if KILL in said:
            broker.kill()
    _stop(broker)


def main(folder: Path, command: list[str]) -> int:
    """Run ``command`` until the owner is gone or it ends; its last words are our output."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        return _run(command)
    except OSError as error:
        _tell(f"{command[0]}: {error.strerror}".encode())
        return 1
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _run(command: list[str]) -> int:
    broker = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        preexec_fn=_dies_with_us(),  # noqa: PLW1509  (there is no other thread yet)
    )
    signal.signal(signal.SIGTERM, lambda *_: _stop(broker))
    threading.Thread(target=_stop_when_owner_is_gone, args=(broker,), daemon=True).start()
    assert broker.stdout is not None
    words = _last_words(broker.stdout)
    code = broker.wait()
    _tell(words)
    return code


def _dies_with_us() -> Callable[[], None] | None:
    """What a new process does so that it is killed when this one ends, where there is such."""
    if sys.platform != "linux":
        return None
    prctl, guard = ctypes.CDLL(None).prctl, os.getpid()

    def die_with_it() -> None:
        prctl(_ON_PARENTS_DEATH, signal.SIGKILL)
        if os.getppid() != guard:  # it has died before that
            os.kill(os.getpid(), signal.SIGKILL)

    return die_with_it


def _last_words(output: IO[bytes]) -> bytes:
    """Read all that the broker says; the beginnings of its last lines that may tell why it ends."""
    kept: deque[bytes] = deque(maxlen=LINES)
    at_its_beginning = True
    while part := output.readline(LINE_BYTES):
        if at_its_beginning and not OF_NO_USE.search(part):
            kept.append(part.rstrip() + b"\n")
        at_its_beginning = part.endswith(b"\n")
    return b"".join(kept)


def _tell(words: bytes) -> None:
    with contextlib.suppress(OSError):
        os.write(1, words)  # unbuffered: who should read it may be gone


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
