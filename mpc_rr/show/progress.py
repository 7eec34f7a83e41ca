"""Live pictures of agents at work."""

import contextlib
import time
from collections.abc import Iterator, Sequence

from rich.columns import Columns
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.markup import escape
from rich.progress_bar import ProgressBar
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from mpc_rr.agents.coordinator import Coordinator
from mpc_rr.agents.outcome import State
from mpc_rr.agents.party import Party
from mpc_rr.agents.watching import Watch, WatchParties
from mpc_rr.network.lifecycle import Join
from mpc_rr.show.words import size

MOST_WATCHED = 12


class _Progress:
    """A live picture of a coordinator."""

    def __init__(self, coordinator: Coordinator) -> None:
        self._coordinator, self._words = coordinator, coordinator.study.step_words
        self._started = time.monotonic()

    def __rich__(self) -> RenderableType:
        now = self._coordinator.progress
        if now.state is State.LOBBY:
            what, done, wanted = Join.doing, now.joined, now.expected
        else:
            what, done, wanted = self._words.get(now.step, now.step), now.arrived, now.wanted
        again = f" (attempt {now.attempt})" if now.attempt > 1 else ""
        bar = Table.grid(padding=(0, 1))
        bar.add_row(
            ProgressBar(max(wanted, 1), done, width=30), f"{done}/{wanted}", escape(what + again)
        )
        seconds = time.monotonic() - self._started
        rows = Table.grid(padding=(0, 1))
        for name, share, low, high in now.preview[:MOST_WATCHED]:
            limits = f"{low:.1%} to {high:.1%}"
            rows.add_row(escape(name), f"{share:.1%}", limits, ProgressBar(1.0, share, width=30))
        traffic = f"{now.messages:,} messages · {size(now.bytes)} · {seconds:.0f} s"
        remark = [Text(now.remark)] if now.remark else []
        return Group(bar, rows, *remark, Text(traffic, style="dim"))


class _PartyProgress:
    """A live picture of the parties of one process."""

    def __init__(self, parties: Sequence[Party]) -> None:
        self._parties, self._spinner = parties, Spinner("dots")
        self._started = time.monotonic()

    def __rich__(self) -> RenderableType:
        first = self._parties[0]
        box, study = first.mailbox, first.study
        if not box.run:
            doing = "looking for the coordinator"
        elif not first.begun:
            there = f"{first.joined} of " if first.joined else ""
            doing = f"waiting for the others ({there}{study.parties.count} are there)"
        else:
            doing = "waiting for the coordinator and the others"
        records = f"{len(self._parties)} records" if len(self._parties) > 1 else "one record"
        seconds = time.monotonic() - self._started
        text = f"{study.name}, {records}: {doing} · {box.messages:,} messages · {seconds:.0f} s"
        return Columns([self._spinner, Text(text)])


def party_watcher(console: Console) -> WatchParties:
    """A `mpc_rr.agents.watching.WatchParties` that draws on this console."""

    @contextlib.contextmanager
    def watch(parties: Sequence[Party]) -> Iterator[None]:
        with Live(_PartyProgress(parties), console=console, refresh_per_second=8, transient=True):
            yield

    return watch


def watcher(console: Console) -> Watch:
    """A `mpc_rr.agents.watching.Watch` that draws on this console."""

    @contextlib.contextmanager
    def watch(coordinator: Coordinator) -> Iterator[None]:
        with Live(_Progress(coordinator), console=console, refresh_per_second=8, transient=True):
            yield

    return watch
