"""The bulletin board: everybody sees the same entries, in the same order, and can prove it.

1. Each party reports a signed entry, which names the head of the board as that party has seen it.
2. The coordinator publishes all entries as the next block. Its head is the hash of the block and
   of the head before, so nothing can be taken back or altered.
3. Each party finds its own entry in the block, checks the signature of every other, and that all
   have seen the same head as it has itself.

A coordinator that shows two boards must from then on keep those who saw the one from those who saw
the other: their entries name different heads. Each side sees the others only as gone; what must not
happen on both sides needs entries of everybody. Whoever stays silent is left out, and named.
"""

import hashlib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Generic, TypeVar

from mpc_rr.errors import Dropout, Misconduct, Refused, listing
from mpc_rr.network.envelope import COORDINATOR, Message, Way, encode_parts
from mpc_rr.network.session import AnySession, Check, CoordinatorSession, PartySession, Proof
from mpc_rr.network.session.shared import digest_of

ENTRY_BYTES = 640
"""More than a signed entry takes, without what it says."""


class Posted(Message, frozen=True):
    """An entry: its first field is the head of the board as its author has seen it."""

    way: ClassVar[Way] = "post"
    head: bytes

    def check_size(self) -> None:
        """``ValueError`` if a field is longer than it may be: a block holds everybody's entries."""


class Block(Message, frozen=True):
    """2, coordinator → everyone: the signed entries, by their authors."""

    step: ClassVar[str] = "block"
    doing: ClassVar[str] = "the coordinator publishes the next block of the board"
    way: ClassVar[Way] = "announce"
    previous: bytes
    entries: dict[str, bytes]


class Announced(Message, frozen=True):
    """What the coordinator itself puts on the board, after the head ``previous``."""

    previous: bytes


P = TypeVar("P", bound=Posted)
Enough = Callable[[CoordinatorSession, "Board"], None]
"""Raises `Dropout` if too few are left."""


@dataclass
class Board:
    """The board as one agent has seen it, and who is still there."""

    head: bytes
    present: tuple[str, ...]
    lost: dict[str, str] = field(default_factory=dict)
    """Who is not there any more, and at which step that was seen."""
    proven: dict[str, Proof] = field(default_factory=dict)
    """What the signed entries of parties prove of them."""
    blocks: int = 0
    wary: bool = False
    """Whether onions were copied, so that they are fixed from now on before any is sent."""

    @classmethod
    def opened(cls, session: AnySession) -> "Board":
        """An empty board for all parties of a session."""
        head = hashlib.sha256(b"mpc-rr board\0" + session.context).digest()
        board = cls(head, session.parties)
        if isinstance(session, PartySession):
            session.witness(board.proven.get)
        return board

    def lose(self, missing: Mapping[str, str]) -> None:
        """Go on without some."""
        if missing:
            self.lost |= missing
            self.present = tuple(name for name in self.present if name not in missing)

    def head_after(self, step: str, what: Message) -> bytes:
        """The head once this is added."""
        number = (self.blocks + 1).to_bytes(8, "big")
        parts = encode_parts(b"mpc-rr block", self.head, number, step.encode(), digest_of(what))
        return hashlib.sha256(parts).digest()

    def grow(self, head: bytes) -> None:
        """Go on to the next head."""
        self.blocks, self.head = self.blocks + 1, head

    def follows(self, message: Announced) -> None:
        """``ValueError`` unless an announcement continues this very board."""
        if message.previous != self.head:
            raise ValueError("it does not continue the board that I have seen")

    def announced(self, message: Announced) -> None:
        """Add what the coordinator announced."""
        self.grow(self.head_after(message.step, message))

    def draw(self, session: AnySession, seed: bytes, label: str) -> list[str]:
        """All who are there, in an order that follows from public randomness."""

        def chance(name: str) -> bytes:
            return hashlib.sha256(encode_parts(seed, label.encode(), name.encode())).digest()

        present = self.present
        return session.shared(
            f"order of {label}", (seed, present), lambda: sorted(present, key=chance)
        )


# ── A party ────────────────────────────────────────────────────────────────────────────────────


async def post_party(
    session: PartySession,
    board: Board,
    kind: type[P],
    own: P | None,
    *,
    authors: Collection[str] | None = None,
    check: Check[P] | None = None,
    even_if_few: bool = False,
    even_if_ended: bool = False,
) -> dict[str, P]:
    """Steps 1 and 3. Those who are not among the authors give None and only read.

    ``even_if_few``: whether to go on with fewer than the study needs, to bring things to their end.
    ``even_if_ended``: whether to read the block even if the coordinator ends the study after it.
    """
    numbered = session.sub(f"block-{board.blocks + 1}")
    asked = board.present if authors is None else tuple(authors)

    # Step 1: report one's own entry.
    raw = b"" if own is None else await numbered.report(own)

    # Step 3: find it in the block, and check all others.
    read = _Read[P](numbered, board, kind, asked, check)
    before_news = even_if_few or even_if_ended
    block = await numbered.hear(Block, check=read.all_entries, before_news=before_news)
    if own is not None:
        _find_own(block, session.me, raw, kind.step)
    entries = read.entries
    if len(entries) < len(asked):
        board.lose({name: kind.step for name in asked if name not in entries})
    board.grow(read.head)
    if len(board.present) < session.fewest and not even_if_few:
        raise Misconduct(
            f"the coordinator goes on with {len(board.present)} parties where "
            f"{session.fewest} are needed",
            [COORDINATOR],
        )
    return entries


class _Read(Generic[P]):
    """Step 3: reads a block."""

    def __init__(
        self,
        session: PartySession,
        board: Board,
        kind: type[P],
        asked: Collection[str],
        check: Check[P] | None,
    ) -> None:
        self._session, self._board, self._kind = session, board, kind
        self._asked, self._check = asked, check
        self.head = b""
        self.entries: dict[str, P] = {}

    def all_entries(self, block: Block) -> None:
        """``ValueError`` unless the block continues the board, and all its entries are in order."""
        if block.previous != self._board.head:
            raise ValueError("it does not continue the board that I have seen")
        self.head = self._board.head_after(self._kind.step, block)
        session = self._session

        def entries() -> dict[str, P]:
            found = {author: self._entry(author, raw) for author, raw in block.entries.items()}
            return dict(sorted(found.items()))

        # Who was asked follows from the board, and so from its head.
        self.entries = session.shared(f"entries of {self._kind.step}", (self.head,), entries)

    def _entry(self, author: str, raw: bytes) -> P:
        if author not in self._asked:
            raise ValueError(f"{author} had nothing to post")
        message = self._session.signed(raw, author, self._kind.step).decoded(self._kind)
        if message.head != self._board.head:
            raise ValueError(f"{author} was shown another board than I")
        message.check_size()
        if self._check is not None:
            self._check(message)
        return message


def _find_own(block: Block, me: str, raw: bytes, step: str) -> None:
    mine = block.entries.get(me)
    if mine is None:
        raise Refused(f"the coordinator left this party out at step {step!r}")
    if mine != raw:
        raise Misconduct(f"the coordinator altered my entry for step {step!r}", [COORDINATOR])


# ── The coordinator ────────────────────────────────────────────────────────────────────────────


def check_enough_present(session: CoordinatorSession, board: Board, fewest: int = 0) -> None:
    """`Dropout` if fewer are left than the study, or its protocol, needs."""
    needed = max(session.fewest, fewest)
    if len(board.present) < needed:
        raise Dropout(
            f"only {session.out_of_expected(len(board.present))} are left, at least "
            f"{needed} are needed; {listing(board.lost)} left",
            board.lost,
        )


def go_on_with_few(session: CoordinatorSession, board: Board) -> None:
    """However few are left: what has begun must be brought to its end."""


async def post_coordinator(
    session: CoordinatorSession,
    board: Board,
    kind: type[P],
    *,
    authors: Collection[str] | None = None,
    check: Check[P] | None = None,
    enough: Enough = check_enough_present,
) -> dict[str, P]:
    """Step 2: publish the entries of all who posted in order."""
    numbered = session.sub(f"block-{board.blocks + 1}")
    asked = board.present if authors is None else tuple(authors)

    def in_order(message: P) -> None:
        if message.head != board.head:
            raise ValueError("it names another board than the one I published")
        message.check_size()
        if check is not None:
            check(message)

    gathered = await numbered.gather(kind, check=in_order, senders=asked)
    board.lose(gathered.missing(kind.step))
    enough(session, board)
    block = Block(board.head, dict(sorted(gathered.signed.items())))
    await numbered.announce(block)
    board.grow(board.head_after(kind.step, block))
    return dict(sorted(gathered.messages.items()))


async def announce_on(session: CoordinatorSession, board: Board, message: Announced) -> None:
    """Put something of one's own on the board."""
    await session.announce(message)
    board.announced(message)
