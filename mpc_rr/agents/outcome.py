"""Where a study stands, and how it ended."""

import enum
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from mpc_rr.crypto.identity import PublicIdentity
from mpc_rr.network.lifecycle import Exclusion
from mpc_rr.network.mailbox import Traffic, Watched
from mpc_rr.network.sealed import Reason
from mpc_rr.publication.ending import Ending


class State(enum.Enum):
    """Where the study stands."""

    LOBBY = "lobby"
    ROSTER = "roster"
    ROUNDS = "rounds"
    VERDICT = "verdict"
    CLOSED = "closed"


MOVES: Mapping[State, frozenset[State]] = {
    State.LOBBY: frozenset({State.ROSTER, State.VERDICT}),
    State.ROSTER: frozenset({State.ROUNDS, State.ROSTER, State.VERDICT}),
    State.ROUNDS: frozenset({State.ROSTER, State.VERDICT}),
    State.VERDICT: frozenset({State.CLOSED}),
    State.CLOSED: frozenset(),
}


@dataclass(frozen=True)
class Progress:
    """What a display shows while the study runs."""

    state: State
    joined: int
    expected: int
    attempt: int
    step: str
    arrived: int
    wanted: int
    messages: int
    bytes: int
    preview: tuple[Watched, ...] = ()
    """Shares as they are now."""
    remark: str = ""
    """A line about them."""


@dataclass(frozen=True)
class Outcome:
    """How the study ended. ``result`` is None if it was aborted; then ``cause`` says why."""

    result: Ending | None
    cause: str
    culprits: tuple[str, ...]
    members: tuple[str, ...]
    excluded: tuple[Exclusion, ...]
    unconfirmed: tuple[str, ...]
    attempts: int
    run: bytes
    identity: PublicIdentity
    transcript: tuple[bytes, ...] = field(repr=False)
    traffic: dict[tuple[str, str, str], Traffic] = field(repr=False)
    round_seconds: dict[tuple[str, str], float]
    rejected: Counter[Reason]
    interrupted: bool = False
    """Whether somebody stopped it here, with Ctrl-C or SIGTERM."""
    fault: BaseException | None = field(default=None, repr=False)
    """If the protocol itself failed here: how, for whoever wrote it."""
