"""Processes that tests start: none is waited for by the clock, and none outlives its test."""

import contextlib
import os
import signal
import subprocess
import tempfile
import time

import pytest

LIMIT_S = float(os.environ.get("MPC_RR_TEST_LIMIT_S", "600"))
"""Nothing takes so long, on the slowest machine: whatever does hangs, and its test fails."""

_started = []


def until(happened, what):
    """Wait for what ``happened()`` sees."""
    deadline = time.monotonic() + LIMIT_S
    while not happened():
        if time.monotonic() > deadline:
            pytest.fail(f"waited {LIMIT_S:g} s in vain: {what}", pytrace=False)
        time.sleep(0.01)


class Process(subprocess.Popen):
    """A process in a group of its own; what it says is kept in files, so that it never blocks."""

    def __init__(self, command, **options):
        self._files = [tempfile.TemporaryFile() for _ in range(2)]  # noqa: SIM115
        super().__init__(
            command,
            process_group=0,
            **({"stdout": self._files[0], "stderr": self._files[1]} | options),
        )
        self.finished = False

    def said(self):
        """What it has said so far, on standard output and on standard error."""
        # Where the file is read from is also where the process writes to: pread moves nothing.
        files = [(file.fileno(), os.fstat(file.fileno()).st_size) for file in self._files]
        return tuple(os.pread(file, size, 0).decode(errors="replace") for file, size in files)

    def until(self, happened, what):
        """Wait for what ``happened()`` sees; fail if this process ends before, or another badly."""
        deadline = time.monotonic() + LIMIT_S
        while True:
            ended = self.poll() is not None
            if happened():
                return
            if ended or time.monotonic() > deadline:
                self.fail(f"{'ended' if ended else 'hangs'} before {what}")
            for other in _started:
                # This one may have ended a moment ago, which is what was waited for.
                if other is not self and other.poll() and not other.finished:
                    other.fail(f"ended while {what} of another was waited for")
            time.sleep(0.01)

    def until_it_says(self, text):
        """Wait until it has said something, on either stream."""
        self.until(lambda: any(text in said for said in self.said()), f"{text!r}")

    def finish(self):
        """Wait until it ends: its code, and what it said on standard output and error."""
        self.until(lambda: self.poll() is not None, "the end")
        self.finished = True
        return self.returncode, *self.said()

    def fail(self, how):
        lines = [f"{' '.join(map(str, self.args))}: {how}"]
        for process in dict.fromkeys((self, *_started)):
            lines += [f"{process.args[-5:]}, code {process.poll()}, said:", *process.said()]
        pytest.fail("\n".join(lines), pytrace=False)

    def end(self):
        """End it, and all processes of its group."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self.wait()
        for file in (*self._files, self.stdin):
            if file is not None:
                file.close()


def start(command, **options):
    """Start a process that ends with its test at the latest."""
    _started.append(Process(command, **options))
    return _started[-1]


def end_all():
    while _started:
        _started.pop().end()
