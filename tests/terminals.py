"""Commands at a real terminal, with somebody who types."""

import os
import pty
import select
import sys

PATIENCE_S = 300
AGAIN_S = 10
CTRL_C = "\x03"


class AtTerminal:
    """A command as the foreground process of a terminal of its own.

    ``errors``: a file to which its messages go.
    """

    def __init__(self, command, *, cwd=None, columns=200, env=None, errors=None):
        child, self._terminal = pty.fork()
        if child == 0:
            if cwd is not None:
                os.chdir(cwd)
            if errors is not None:
                os.dup2(os.open(errors, os.O_WRONLY | os.O_CREAT), 2)
            os.environ.update({"COLUMNS": str(columns)} | (env or {}))
            os.execv(sys.executable, [sys.executable, "-m", "mpc_rr", *map(str, command)])
        self._child, self.shown, self._read_to, self._typed = child, "", 0, ""

    def reply(self, question, typed):
        """Wait until something is shown after what was answered last, then type."""
        while question not in self.shown[self._read_to :]:
            assert self._more(), f"never asked: {question}; shown: {self.shown}"
        self._read_to = self.shown.index(question, self._read_to) + len(question)
        self._typed = typed
        os.write(self._terminal, typed.encode())

    def finish(self):
        """What was shown in all, and the exit code."""
        while self._more():
            pass
        os.close(self._terminal)  # hangs up on whoever still waits
        _, status = os.waitpid(self._child, 0)
        return self.shown, os.waitstatus_to_exitcode(status)

    def _more(self):
        for _ in range(PATIENCE_S // AGAIN_S):
            if select.select([self._terminal], [], [], AGAIN_S)[0]:
                break
            # Between the question and the wait for an answer, Python hears of Ctrl-C only when
            # something is typed. A person presses it again.
            if self._typed == CTRL_C and not self.shown[self._read_to :].strip(" ^C\r\n"):
                os.write(self._terminal, CTRL_C.encode())
        else:
            return False
        try:
            piece = os.read(self._terminal, 65536)
        except OSError:  # the other end was closed
            return False
        self.shown += piece.decode(errors="replace")
        return bool(piece)
