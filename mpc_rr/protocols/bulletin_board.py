"""The bulletin board: everybody sees the same entries, in the same order, and can prove it.

1. Each party reports a signed entry, which names the head of the board as that party has seen it.
2. The coordinator publishes all entries as the next block. Its head is the hash of the block and
   of the head before, so nothing can be taken back or altered.
3. Each party finds its own entry in the block, checks the signature of every other, and that all
   have seen the same head as it has itself.

A coordinator that shows two boards to two parties is caught in the following block, because their
entries name different heads. Whoever stays silent is left out from then on, and named.
"""

import hashlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import ClassVar, TypeVar

from mpc_rr.errors import Dropout, Misconduct, Refused, listing
from mpc_rr.network.messages import COORDINATOR, Message, decode, encode
from mpc_rr.network.session import Check, CoordinatorSession, PartySession, encode_parts


class Posted(Message, frozen=True):
    """An entry: its first field is the head of the board as its author has seen it."""

    head: bytes


class Block(Message, frozen=True):
    """2, coordinator → everyone: the signed entries, by their authors."""

    step: ClassVar[str] = "block"
    previous: bytes
    entries: dict[str, bytes]


class Announced(Message, frozen=True):
    """What the coordinator itself puts on the board, after the head ``previous``."""

    previous: bytes


P = TypeVar("P", bound=Posted)


@dataclass
class Board:
    """The board as one agent has seen it, and who is still there."""

    head: bytes
    present: tuple[str, ...]
    lost: dict[str, str] = field(default_factory=dict)
    """Who is not there any more, and at which step that was seen."""
    blocks: int = 0

    @classmethod
    def opened(cls, session: PartySession | CoordinatorSession) -> "Board":
        """An empty board for all parties of a session."""
        return cls(hashlib.sha256(b"mpc-rr board\0" + session.context).digest(), session.parties)

    def lose(self, missing: Mapping[str, str]) -> None:
        """Go on without some."""
        self.lost |= missing
        self.present = tuple(name for name in self.present if name not in missing)

    def grow(self, what: bytes) -> None:
        """The head after something was added."""
        self.blocks += 1
        number = self.blocks.to_bytes(8, "big")
        self.head = hashlib.sha256(encode_parts(b"mpc-rr block", self.head, number, what)).digest()

    def follows(self, message: Announced) -> None:
        """``ValueError`` unless an announcement continues this very board."""
        if message.previous != self.head:
            raise ValueError("it does not continue the board that I have seen")

    def announced(self, message: Announced) -> None:
        """Add what the coordinator announced."""
        self.grow(encode_parts(message.step.encode(), encode(message)))

    def draw(self, seed: bytes, label: str) -> list[str]:
        """All who are there, in an order that follows from public randomness."""

        def chance(name: str) -> bytes:
            return hashlib.sha256(encode_parts(seed, label.encode(), name.encode())).digest()

        return sorted(self.present, key=chance)


# ── A party ────────────────────────────────────────────────────────────────────────────────────


async def post_party(
    session: PartySession,
    board: Board,
    kind: type[P],
    own: P | None,
    *,
    authors: Collection[str] | None = None,
    check: Check[P] | None = None,
) -> dict[str, P]:
    """Steps 1 and 3. Those who are not among the authors give None and only read."""
    numbered = session.sub(f"block-{board.blocks + 1}")
    asked = board.present if authors is None else tuple(authors)

    # Step 1: report one's own entry.
    raw = b"" if own is None else await numbered.report(own)

    # Step 3: find it in the block, and check all others.
    entries: dict[str, P] = {}

    def read_all(block: Block) -> None:
        if block.previous != board.head:
            raise ValueError("it does not continue the board that I have seen")
        entries.update(_entries(numbered, board, block, kind, asked))
        if check is not None:
            for message in entries.values():
                check(message)

    block = await numbered.hear(Block, check=read_all)
    if own is not None:
        _find_own(block, session.me, raw, kind.step)
    board.lose({name: kind.step for name in asked if name not in entries})
    board.grow(encode_parts(kind.step.encode(), encode(block)))
    if len(board.present) < session.fewest:
        raise Misconduct(
            f"the coordinator goes on with {len(board.present)} parties where "
            f"{session.fewest} are needed",
            [COORDINATOR],
        )
    return dict(sorted(entries.items()))


def _entries(
    session: PartySession, board: Board, block: Block, kind: type[P], asked: Collection[str]
) -> dict[str, P]:
    entries = {}
    for author, signed in block.entries.items():
        if author not in asked:
            raise ValueError(f"{author} had nothing to post")
        message = decode(session.signed(signed, author, kind.step).envelope.body, kind)
        if message.head != board.head:
            raise ValueError(f"{author} was shown another board than I")
        entries[author] = message
    return entries


def _find_own(block: Block, me: str, raw: bytes, step: str) -> None:
    mine = block.entries.get(me)
    if mine is None:
        raise Refused(f"the coordinator left this party out at step {step!r}")
    if mine != raw:
        raise Misconduct(f"the coordinator altered my entry for step {step!r}", [COORDINATOR])


# ── The coordinator ────────────────────────────────────────────────────────────────────────────


async def post_coordinator(
    session: CoordinatorSession,
    board: Board,
    kind: type[P],
    *,
    authors: Collection[str] | None = None,
    check: Check[P] | None = None,
    all_needed: bool = False,
) -> dict[str, P]:
    """Step 2: publish the entries of all who posted in order. ``all_needed``: or end the study."""
    numbered = session.sub(f"block-{board.blocks + 1}")
    asked = board.present if authors is None else tuple(authors)

    def in_order(message: P) -> None:
        if message.head != board.head:
            raise ValueError("it names another board than the one I published")
        if check is not None:
            check(message)

    gathered = await numbered.gather(kind, check=in_order, senders=asked)
    missing = gathered.missing(kind.step)
    if missing and all_needed:
        reasons = "; ".join(f"{name} ({why})" for name, why in sorted(missing.items()))
        raise Dropout(f"nothing can follow without {reasons}", missing)
    board.lose(missing)
    check_enough(session, board)
    block = Block(board.head, dict(sorted(gathered.signed.items())))
    await numbered.announce(block)
    board.grow(encode_parts(kind.step.encode(), encode(block)))
    return dict(sorted(gathered.messages.items()))


async def announce_on(session: CoordinatorSession, board: Board, message: Announced) -> None:
    """Put something of one's own on the board."""
    await session.announce(message)
    board.announced(message)


def check_enough(session: CoordinatorSession, board: Board, fewest: int = 0) -> None:
    """`Dropout` if fewer are left than the study, or its protocol, needs."""
    needed = max(session.fewest, fewest)
    if len(board.present) < needed:
        raise Dropout(
            f"only {len(board.present)} of {len(session.parties)} parties are left, at least "
            f"{needed} are needed; {listing(board.lost)} left",
            board.lost,
        )
