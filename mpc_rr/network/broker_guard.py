"""Runs the embedded broker for as long as its owner lives, and cleans up after both.

Started by `mpc_rr.network.broker` as a process of its own, with nothing but the standard library.
Its standard input is a pipe whose other end only the owner holds: when the owner closes it or dies,
however suddenly, the pipe ends; then the broker is stopped and its folder removed.

Usage: broker_guard.py FOLDER COMMAND…   (the broker's output goes to FOLDER/log)
"""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

STOP_S = 5.0
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
    """Run ``command`` until the owner is gone or it ends; its last lines are our output."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        return _run(folder / "log", command)
    except OSError as error:
        _tell(f"{command[0]}: {error.strerror}".encode())
        return 1
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _run(log: Path, command: list[str]) -> int:
    with log.open("wb") as output:
        broker = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
    signal.signal(signal.SIGTERM, lambda *_: _stop(broker))
    threading.Thread(target=_stop_when_owner_is_gone, args=(broker,), daemon=True).start()
    code = broker.wait()
    _tell(log.read_bytes()[-2000:])
    return code


def _tell(words: bytes) -> None:
    with contextlib.suppress(OSError):
        os.write(1, words)  # unbuffered: who should read it may be gone


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
