"""Handing out what was said in public: from a coordinator to the parties that ask for it.

A study that is done has a transcript. A party may ask for it after the verdict; it is given piece
by piece, each when it asks for it, so that nobody is sent more than she can take. Those who ask are
served in turn, connection by connection (`mpc_rr.network.fairness`), for a bounded time. Nothing of
the study waits for it: its result is in a safe place, and the verdict is told, before.
"""

import asyncio
import contextlib
import logging
import math
from collections import Counter
from collections.abc import Callable
from typing import Annotated

import msgspec

from mpc_rr.errors import MpcRrError, one_line
from mpc_rr.network.envelope import COORDINATOR, VERDICT_SESSION, decode, encode
from mpc_rr.network.fairness import COST_OF_AN_ITEM, FairQueue
from mpc_rr.network.lifecycle import TranscriptPiece, TranscriptWanted
from mpc_rr.network.mailbox import FILED_PER_SENDER, Mailbox
from mpc_rr.network.sealed import Opened, Rejected
from mpc_rr.study.definition import Study

LOGGER = logging.getLogger("mpc_rr.coordinator")
HANDING_OUT_S = 60.0
"""For so long after the verdict at most."""
QUIET_S = 15.0
"""When nobody has asked for so long, whoever has not got everything has left."""
SILENT_S = 30.0
"""A coordinator that answers nothing for so long hands out nothing."""
ASK_AGAIN_S = 5.0
NOT_AGAIN_S = ASK_AGAIN_S / 2
"""A piece is not sent a second time before that: nobody honest has asked for it again by then."""
MOST_TIMES = 2
"""As much as so many transcripts is sent to one party, and no more: half of it may be lost."""
PATIENCE_S = HANDING_OUT_S + ASK_AGAIN_S
"""So long a party waits in all: a little longer, to be told that its turn has not come."""
LAST_WORDS_S = 5.0
UNDER_WAY = 8
"""So many pieces are on their way at once."""
PIECE_BYTES = 256 * 1024
ROOM_BYTES = 1024
"""More than a piece's message takes besides the piece."""
MOST_BYTES = 256 * 2**20
"""A party takes no more: that is what some 300,000 people say who report randomized answers."""
LEAST_BYTES = 256
"""Signed messages take more on average: with each answer a join is handed out, which has keys."""
MOST_MESSAGES = MOST_BYTES // LEAST_BYTES
"""So many are taken: a hundred million empty ones in these bytes would fill the memory."""
CLOSING_BYTES, CLOSING_BYTES_EACH = 64 * 1024, 4 * 1024
"""A closing statement takes less, with a reason for each party that is absent."""
NOT_IN_TIME = f"its turn had not come within {HANDING_OUT_S:g} s after the end of the study"


class Said(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """What is handed out: the public messages of a study, and what the coordinator says of it."""

    closing: bytes
    """Its signed closing statement (`mpc_rr.results.closing`), without costs; empty if none."""
    transcript: Annotated[tuple[bytes, ...], msgspec.Meta(max_length=MOST_MESSAGES)]

    def __repr__(self) -> str:
        return f"Said({len(self.transcript)} messages)"


def most_messages(study: Study) -> int:
    """More than are public in a study, of its coordinator and of each party on average."""
    return min(MOST_MESSAGES, (study.parties.count + 1) * FILED_PER_SENDER)


def most_closing_bytes(study: Study) -> int:
    """More than a coordinator states of a study beyond its messages."""
    return CLOSING_BYTES + CLOSING_BYTES_EACH * study.parties.count


def most_bytes(study: Study) -> int:
    """More than there ever is of a study to hand out."""
    said = most_messages(study) * (study.largest_message_bytes + ROOM_BYTES)
    return min(MOST_BYTES, said + most_closing_bytes(study))


# ── The coordinator ────────────────────────────────────────────────────────────────────────────


class Desk:
    """Where a coordinator hands out the transcript."""

    def __init__(self, mailbox: Mailbox, parties: int, secret: bytes) -> None:
        self._mailbox = mailbox
        self._piece_bytes = min(PIECE_BYTES, mailbox.size_limit - ROOM_BYTES)
        # Each party waits at most once: nobody ever loses her place.
        self._queue: FairQueue[tuple[str, int]] = FairQueue(parties * 2 * COST_OF_AN_ITEM, secret)
        self._waiting: set[str] = set()
        """Whose wish is in the queue."""
        self._sending = 0
        """How many pieces are on their way: the broker has not acknowledged them yet."""
        self._not_done: set[str] = set()
        """Who has asked, and has not said yet that all of it has come."""
        self._newest: dict[str, tuple[int, float]] = {}
        """From where who asked last, and since when a piece from there is not sent again; infinity:
        it is on its way."""
        self._sent_bytes: Counter[str] = Counter()
        self._said: Callable[[], Said] | None = None
        self._stream = b""
        self._came, self._changed = asyncio.Event(), asyncio.Event()
        self._opened_at = self._asked_at = 0.0

    def open(self, said: Callable[[], Said]) -> None:
        """From now on it may be asked for. ``said`` is called when somebody first does."""
        self._said, self._opened_at = said, self._mailbox.now()

    def on_wanted(self, opened: Opened) -> None:
        """Somebody asks for a piece, or says that all have come."""
        wanted, header = opened.message(TranscriptWanted), opened.envelope.header
        name = header.sender
        if self._said is None or header.session != VERDICT_SESSION:
            raise Rejected("other session")
        now = self._mailbox.now()
        at, sent_at = self._newest.get(name, (0, -math.inf))
        if wanted.at < at:
            raise Rejected("duplicate")
        self._begin()
        if wanted.at >= len(self._stream):
            self._newest[name] = (wanted.at, -math.inf)
            self._no_more_for(name)
            return
        if name in self._waiting or (wanted.at == at and now - sent_at < NOT_AGAIN_S):
            raise Rejected("duplicate")
        if self._sent_bytes[name] >= MOST_TIMES * len(self._stream):
            self._no_more_for(name)
            raise Rejected("flooding")
        self._newest[name], self._asked_at = (wanted.at, -math.inf), now
        self._changed.set()
        self._waiting.add(name)
        self._not_done.add(name)
        lane = self._mailbox.came_from
        self._queue.put(name if lane is None else lane, (name, wanted.at), COST_OF_AN_ITEM)
        self._came.set()

    def _begin(self) -> None:
        """Make what is handed out, when somebody first asks."""
        if not self._stream and self._said is not None:
            self._stream = encode(self._said())
            for _ in range(UNDER_WAY):
                self._mailbox.spawn(self._serve)

    def _no_more_for(self, name: str) -> None:
        """Nobody waits for her any more."""
        self._not_done.discard(name)
        self._changed.set()

    async def _serve(self) -> None:
        while True:
            while len(self._queue):
                name, at = self._queue.get()
                part = self._stream[at : at + self._piece_bytes]
                self._waiting.discard(name)
                self._sent_bytes[name] += len(part)
                under_way = self._newest[name] = max((at, math.inf), self._newest[name])
                self._sending += 1
                try:
                    await self._send(name, TranscriptPiece(at, len(self._stream), part, ""))
                finally:
                    self._sending -= 1
                    if self._newest[name] == under_way:  # she may have answered it meanwhile
                        self._newest[name] = (at, self._mailbox.now())
                    self._changed.set()
            self._came.clear()
            await self._came.wait()

    async def _send(self, name: str, piece: TranscriptPiece) -> None:
        raw = self._mailbox.write(VERDICT_SESSION, piece.step, name, piece)
        self._mailbox.count(VERDICT_SESSION, piece.step, name, sent=len(raw))
        await self._mailbox.transport.send(name, raw)

    async def close(self) -> None:
        """Wait until all who asked have everything or are gone; tell the others that it is over."""
        if self._not_done:
            LOGGER.info("handing out the transcript to %d who asked for it", len(self._not_done))
        while self._not_done and (left_s := self._left_s()) > 0:
            self._changed.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(left_s):
                    await self._changed.wait()
        self._said = None
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LAST_WORDS_S):
                while len(self._queue):
                    name, at = self._queue.get()
                    await self._send(name, TranscriptPiece(at, len(self._stream), b"", NOT_IN_TIME))

    def _left_s(self) -> float:
        """For how long to go on; whoever waits for her turn has not left."""
        latest = self._opened_at + HANDING_OUT_S
        ends = latest if self._waiting or self._sending else min(latest, self._asked_at + QUIET_S)
        return ends - self._mailbox.now()


# ── A party ────────────────────────────────────────────────────────────────────────────────────


class _NotHandedOut(MpcRrError):
    """Why not."""


class Everything:
    """The wish of a party, or of all of a host's, for all that was said; and what became of it.

    The first of them that has heard the verdict asks. Whatever comes of it, its own result stays.
    """

    def __init__(self) -> None:
        self.said: Said | None = None
        self.trouble = "nobody here has heard the coordinator say that the study is done"
        """Why there is nothing, as long as there is nothing."""
        self.run, self.coordinator = b"", ""
        """The run that the asking party took part in, and the fingerprint of its coordinator."""
        self._asker: Mailbox | None = None
        self._asked_at = self._heard_at = 0.0
        self._came, self._most_bytes = bytearray(), 0
        self._total: int | None = None
        self._fault: _NotHandedOut | None = None
        self._news = asyncio.Event()

    def __repr__(self) -> str:
        return f"Everything({self.said or self.trouble})"

    async def ask(self, mailbox: Mailbox, study: Study) -> None:
        """Ask, unless another has asked already: before taking one's leave."""
        if self._asker is not None:
            return
        self._most_bytes = most_bytes(study)
        self._asker, self.run = mailbox, mailbox.run
        self.coordinator = mailbox.keys[COORDINATOR].fingerprint
        self._asked_at = self._heard_at = mailbox.now()
        mailbox.handlers[TranscriptPiece.step] = self._on_piece
        with contextlib.suppress(MpcRrError):  # then it is asked for again
            await self._want(mailbox)

    async def take(self, mailbox: Mailbox) -> None:
        """Wait for what was asked for. Neither a failure nor Ctrl-C takes one's own result away."""
        if self._asker is not mailbox:
            return
        try:
            self.said = await self._all(mailbox)
        except MpcRrError as fault:
            self.trouble = one_line(str(fault))
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None:
                task.uncancel()
            self.trouble = "it was interrupted before all of it had come"
        finally:
            self._came = bytearray()

    async def _all(self, mailbox: Mailbox) -> Said:
        while self._total is None or len(self._came) < self._total:
            if self._fault is not None:
                raise self._fault
            self._give_up_in_time(mailbox.now())
            self._news.clear()
            try:
                async with asyncio.timeout(ASK_AGAIN_S):
                    await self._news.wait()
            except TimeoutError:
                await self._want(mailbox)
        with contextlib.suppress(MpcRrError):
            await self._want(mailbox)  # which says that all of it has come
        try:
            whole, self._came = bytes(self._came), bytearray()
            return decode(whole, Said)
        except ValueError:
            raise _NotHandedOut("what the coordinator handed out is no transcript") from None

    def _give_up_in_time(self, now: float) -> None:
        came, total = len(self._came), self._total
        if now - self._heard_at >= SILENT_S:
            gone = (
                "it has ended, is busy with all who ask, or its program is of a version that hands "
                "out nothing"
            )
            raise _NotHandedOut(f"the coordinator did not answer within {SILENT_S:g} s: {gone}")
        if now - self._asked_at >= PATIENCE_S:
            raise _NotHandedOut(
                f"only {came:,} of {total or 0:,} bytes had come after {PATIENCE_S:g} s"
            )

    async def _want(self, mailbox: Mailbox) -> None:
        await mailbox.tell(VERDICT_SESSION, COORDINATOR, TranscriptWanted(len(self._came)))

    def _on_piece(self, opened: Opened) -> None:
        piece = opened.message(TranscriptPiece)
        if opened.envelope.header.sender != COORDINATOR:
            raise Rejected("not the coordinator")
        if piece.at != len(self._came) or self._fault is not None or self._all_came:
            raise Rejected("duplicate")
        assert self._asker is not None
        self._heard_at = self._asker.now()
        self._news.set()
        try:
            self._add(piece)
        except _NotHandedOut as fault:
            self._fault = fault
            return
        if not self._all_came:
            self._asker.spawn(self._want, self._asker)

    @property
    def _all_came(self) -> bool:
        return self._total is not None and len(self._came) >= self._total

    def _add(self, piece: TranscriptPiece) -> None:
        if piece.refusal:
            raise _NotHandedOut(f"the coordinator refuses: {one_line(piece.refusal)}")
        if piece.total > self._most_bytes:
            raise _NotHandedOut(
                f"the coordinator has {piece.total:,} bytes to hand out; of this study no more "
                f"than {self._most_bytes:,} are taken"
            )
        if self._total not in (None, piece.total) or not piece.part:
            raise _NotHandedOut("the coordinator hands out pieces that do not fit together")
        if len(self._came) + len(piece.part) > piece.total:
            raise _NotHandedOut("the coordinator hands out more than it said there is")
        self._total = piece.total
        self._came += piece.part
