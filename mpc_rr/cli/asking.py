"""Asking a respondent, while a study runs, how her values are to be masked."""

import asyncio
import contextlib
import math
import os
import sys
import threading
from collections.abc import Awaitable, Callable
from typing import TextIO

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from mpc_rr.anonymization.deciding import Asked, read_rule, tries
from mpc_rr.anonymization.perturbation import ChosenValue, read_perturbation
from mpc_rr.cli.console import messages
from mpc_rr.errors import Declined, InputError, plain

MOST_SHOWN = 60
"""So many values at most are shown; of more, those around one's own."""
AROUND = 10
BOUND = (
    "Candidates: for anyone who knows your mask and your masked value, no value is likelier than "
    "1 in this many. That holds only if you would have chosen the same mask with any other "
    "value. A choice that hangs on how rare your value is tells that it is rare, and may "
    "identify you for certain. A value of your own choice (=VALUE) has no such bound at all."
)

NOBODY_TO_ASK = (
    "standard input has ended, so nobody could be asked for a mask, and none is recommended: "
    "nothing is published under your name; choose one beforehand with --mask"
)


def asked_at_terminal(source: TextIO | None = None) -> Callable[[Asked], Awaitable[str]]:
    """What asks at the terminal; lines are read beside the study, which goes on meanwhile.

    From standard input, if there is no other ``source`` of lines.
    """
    lines = _Lines(source)

    async def ask(asked: Asked) -> str:
        console, name = messages(), asked.attribute.name
        _show(console, asked)
        while True:
            console.print(
                f"Mask for {escape(plain(name))}{_unless_said(asked)}, or ? MASK to look at "
                "another: ",
                end="",
            )
            said = await lines.read()
            if not said and asked.recommended == "none":
                if said is None:
                    raise Declined(NOBODY_TO_ASK)
                console.print("No mask is recommended. To publish it as it is, type none.")
                continue
            if not said:
                return asked.recommended
            try:
                if said.startswith("?"):
                    _show_outlooks(console, asked, [said[1:].strip()])
                    continue
                if read_rule(said, asked.attribute) is None:
                    mask = read_perturbation(said, asked.attribute)
                    if isinstance(mask, ChosenValue):
                        console.print(f"{escape(said[1:])} will be published under your name.")
            except InputError as error:
                console.print(escape(str(error)))
                continue
            return said

    return ask


def _show(console: Console, asked: Asked) -> None:
    attribute, values = asked.attribute, asked.values
    first, last = asked.rank
    place = f"{first}" if first == last else f"{first} to {last}"
    console.print(
        f"\nThe values of all [bold]{escape(plain(attribute.title()))}[/] are there, in no order. "
        f"Yours is {escape(attribute.text(asked.own))}: place {place} of {len(values)} from the "
        "lowest.",
        highlight=False,
    )
    low, high = (0, len(values))
    if len(values) > MOST_SHOWN:
        low, high = max(first - 1 - AROUND, 0), min(last + AROUND, len(values))
        ends = f"from {attribute.text(values[0])} to {attribute.text(values[-1])}"
        console.print(f"All: {len(values)} values {escape(ends)}. Around yours:", highlight=False)
    shown = ", ".join(attribute.text(code) for code in values[low:high])
    console.print(escape(shown), highlight=False)
    _show_outlooks(console, asked, tries(asked))
    console.print(BOUND, highlight=False)
    if asked.seconds < math.inf:
        then = "you withdraw" if asked.recommended == "none" else "the recommended mask is used"
        console.print(f"In {asked.seconds:.0f} s {then}.", highlight=False)


def _unless_said(asked: Asked) -> str:
    """What Enter stands for; where no mask is recommended, nothing."""
    return "" if asked.recommended == "none" else f" \\[{asked.recommended}]"


def _show_outlooks(console: Console, asked: Asked, every: list[str]) -> None:
    table = Table()
    for heading in ("mask", "candidates: anyone", "you, at least", "usually", "moves you by"):
        table.add_column(heading, justify="left" if heading == "mask" else "right")
    for words in every:
        found = asked.outlook(words)
        marked = f"{words} (recommended)" if words == asked.recommended else words
        moved = f"{found.moved:.1f} places"
        table.add_row(
            escape(marked), str(found.for_anybody), str(found.fewest), str(found.usual), moved
        )
    console.print(table)


class _Lines:
    """Lines from the terminal, read in a thread of its own, which ends with the process.

    Nobody can take back a read that has begun: what is typed too late is for the next question.
    """

    def __init__(self, source: TextIO | None) -> None:
        self._source = source
        self._typed: asyncio.Queue[str | None] | None = None

    async def read(self) -> str | None:
        """The next line; None where there are no more."""
        if self._typed is None:
            self._typed, loop = asyncio.Queue(), asyncio.get_running_loop()
            threading.Thread(target=self._read, args=(loop, self._typed), daemon=True).start()
        line = await self._typed.get()
        if line is None:
            self._typed.put_nowait(None)
        return line

    def _read(self, loop: asyncio.AbstractEventLoop, typed: asyncio.Queue[str | None]) -> None:
        # Not sys.stdin itself: Python must be able to close that when it ends, and a thread that
        # waits for a line holds it.
        source = open(os.dup(sys.stdin.fileno())) if self._source is None else self._source  # noqa: SIM115, PTH123
        with contextlib.suppress(RuntimeError, ValueError):  # the loop, or the source, is closed
            for line in source:
                loop.call_soon_threadsafe(typed.put_nowait, line.strip())
            loop.call_soon_threadsafe(typed.put_nowait, None)
