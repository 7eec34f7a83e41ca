"""How the command line speaks: one line for an error, JSON for programs, the rest for people."""

import contextlib
import json
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import Progress, TimeElapsedColumn

from mpc_rr.errors import MpcRrError, plain
from mpc_rr.protocols.registry import load_plugins

LINE_EVERY_S = 10.0
"""So often a line says how far long work is, where there is no terminal."""

YES_OR_NO = {"y": True, "yes": True, "n": False, "no": False, "": False}


def messages() -> Console:
    """For people only, on standard error: never mixed into what a program reads."""
    return Console(stderr=True)


def print_json(document: dict[str, Any] | list[dict[str, str]]) -> None:
    """For programs, on standard output."""
    typer.echo(json.dumps(document, indent=2, ensure_ascii=False))


@contextlib.contextmanager
def plain_errors(verbose: bool, plugins: Sequence[Path] | None = None) -> Iterator[None]:
    """An error is one line on standard error and an exit code; the trace only on request.

    ``plugins``: files whose protocols are to be known.
    """
    try:
        load_plugins(tuple(plugins or ()))
        yield
    except MpcRrError as error:
        if verbose:
            traceback.print_exc()
        say(str(error))
        raise typer.Exit(error.exit_code) from None
    except KeyboardInterrupt:
        say("interrupted")
        raise typer.Exit(130) from None
    except MemoryError:
        if verbose:
            traceback.print_exc()
        say("there is not enough memory for this; fewer or coarser categories need less")
        raise typer.Exit(1) from None
    except OSError as error:
        if verbose:
            traceback.print_exc()
        where = "" if error.filename is None else f"{error.filename}: "
        say(f"cannot go on: {where}{error.strerror or error}")
        raise typer.Exit(1) from None


@contextlib.contextmanager
def progress_bar(what: str) -> Iterator[Callable[[int, int], None]]:
    """A bar on standard error, told how much is done, of how much.

    Where nobody looks on, a line now and then: in a log one sees that it goes on.
    """
    console = messages()
    if not console.is_terminal:
        with _progress_lines(what) as told:
            yield told
        return
    columns = (*Progress.get_default_columns(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, of: bar.update(task, completed=done, total=of)


@contextlib.contextmanager
def _progress_lines(what: str) -> Iterator[Callable[[int, int], None]]:
    """A line every `LINE_EVERY_S`, also while nothing new is told."""
    pace, over = Pace(time.monotonic()), threading.Event()

    def tell() -> None:
        while not over.wait(LINE_EVERY_S):
            say(f"{what}: {pace.words(time.monotonic())}")

    teller = threading.Thread(target=tell, daemon=True)
    teller.start()
    try:
        yield lambda done, of: pace.told(done, of, time.monotonic())
    finally:
        over.set()
        teller.join()


class Pace:
    """How much is done, and how long the rest takes if it goes on like this."""

    def __init__(self, began: float) -> None:
        self._began = self._latest = self._part_began = began
        self._done = self._of = 0

    def told(self, done: int, of: int, now: float) -> None:
        """So much is done; less than before, or of another number, is of another part."""
        if done < self._done or of != self._of:
            self._part_began = now if self._of else self._began
        self._done, self._of, self._latest = done, of, now

    def words(self, now: float) -> str:
        """For people."""
        passed = f"{now - self._began:.0f} s so far"
        if not self._of:
            return passed
        done = f"{self._done:,} of {self._of:,}, {passed}"
        if not 0 < self._done < self._of:
            return done
        rest = (self._latest - self._part_began) / self._done * (self._of - self._done)
        return f"{done}; at this rate these take {max(rest - (now - self._latest), 0):.0f} s more"


def say(message: str) -> None:
    """One line on standard error."""
    with contextlib.suppress(OSError):
        typer.echo(f"mpc-rr: {plain(message)}", err=True)


def run_app(app: typer.Typer) -> None:
    """Run a command line to its end; usage errors, too, are one line. SIGTERM is as Ctrl-C."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, signal.default_int_handler)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            # On Windows a pipe would get one of the old encodings, without ε and lines of tables.
            encoding = "utf-8" if sys.platform == "win32" else None
            stream.reconfigure(encoding=encoding, errors="replace")
    try:
        code = app(standalone_mode=False)
    except Exception as error:
        # Typer's usage errors, whichever copy of click they come from, can format themselves.
        if not hasattr(error, "format_message"):
            raise
        context = getattr(error, "ctx", None)
        if "NoArgs" in type(error).__name__:  # its message is the help, if not printed already
            typer.echo(error.format_message())
            sys.exit(2)
        path = context.command_path if context is not None else "mpc-rr"
        say(f"{error.format_message().rstrip('.')} (see {path} --help)")
        sys.exit(2)
    with contextlib.suppress(OSError):
        sys.stdout.flush()
    # A reader that has gone (as in "mpc-rr run … | head") must not make the exit noisy.
    if sys.stdout.closed is False:
        with contextlib.suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(code if isinstance(code, int) else 0)


def note(text: str) -> None:
    """What somebody should know who is about to do something."""
    messages().print(f"[yellow]Note[/]: {escape(text)}", highlight=False, soft_wrap=True)


def confirmed(question: str) -> bool:
    """Whether a person says yes; Ctrl-C and Ctrl-D say no, and so does Enter."""
    while True:
        try:
            said = typer.prompt(f"{question} [y/N]", default="", show_default=False, err=True)
        except typer.Abort:
            messages().print()
            return False
        word = said.strip().casefold()
        if word in YES_OR_NO:
            return YES_OR_NO[word]
        messages().print("Please type y or n.")


def at_terminal() -> bool:
    """Whether somebody sits here who can be asked."""
    return sys.stdin.isatty() and sys.stderr.isatty() and _in_foreground()


def _in_foreground() -> bool:
    """Whether what is typed reaches this process: it would stop one that runs beside the shell."""
    if not hasattr(os, "tcgetpgrp"):  # Windows has no such thing
        return True
    try:
        return os.tcgetpgrp(sys.stdin.fileno()) == os.getpgrp()
    except OSError:
        return True
