"""Messages larger than a broker takes are cut into pieces, and small ones travel together.

The first byte of a payload says what follows: ``0`` a whole message; ``1`` a piece, headed by a
random 16-byte identifier, its number and the count of pieces; ``2`` a batch of whole messages for
agents behind one connection, each with the name of its reader. Neither pieces nor batches carry any
meaning, and they are not signed: the messages in them are. A forged piece spoils only that one
message, which is then asked for again.

Connections also say something of themselves: ``3`` that they are there, ``4`` (left with the broker
for when they are not) that they are gone, ``5`` a payload that the coordinator's connection sends
to itself, to see how large a one the broker carries.
"""

import struct
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from typing import Annotated

import msgspec

from mpc_rr.randomness import Randomness

LARGEST_PAYLOAD = 256 * 1024 - 512
"""The largest payload that is ever published; with its topic it stays within 256 KiB."""
SMALLEST_PAYLOAD = 8 * 1024 - 512
"""Every broker must carry this; it is used until it is known what this one carries."""
BATCH_BYTES = 64 * 1024 - 512
HERE, GONE = b"\3", b"\4"
_WHOLE, _PIECE, _BATCH, _PROBE = b"\0", b"\1", b"\2", b"\5"
_HEAD = struct.Struct("<16sII")
SHORTEST_MESSAGE = 96
"""A signature alone has 64 bytes."""
MOST_IN_A_BATCH = LARGEST_PAYLOAD // SHORTEST_MESSAGE
_Messages = Annotated[list[tuple[str, bytes]], msgspec.Meta(max_length=MOST_IN_A_BATCH)]
PIECE_OVERHEAD = 1 + _HEAD.size
_FRAME = 16
"""What a message in a batch takes besides itself and its reader's name, at most; and the batch."""
_COST_OF_MESSAGE, _COST_OF_PIECE = 1024, 256
"""What a message that is not complete costs in memory, and each of its pieces besides its own
bytes, at most."""


def whole(raw: bytes) -> bytes:
    """The payload that carries ``raw`` in one piece."""
    return _WHOLE + raw


def cut(raw: bytes, rng: Randomness, piece_bytes: int = LARGEST_PAYLOAD) -> list[bytes]:
    """The payloads that carry ``raw``: none is longer than a piece and `PIECE_OVERHEAD`."""
    if len(raw) <= piece_bytes:
        return [whole(raw)]
    identifier = rng.bytes(16)
    pieces = [raw[i : i + piece_bytes] for i in range(0, len(raw), piece_bytes)]
    return [
        _PIECE + _HEAD.pack(identifier, number, len(pieces)) + piece
        for number, piece in enumerate(pieces)
    ]


def fits_in_batch(messages: Iterator[tuple[str, bytes]], payload_bytes: int) -> int:
    """How many of these messages, from the first on, fit into one batch."""
    count, size = 0, _FRAME
    for reader, raw in messages:
        size += _FRAME + len(reader) + len(raw)
        if size > min(BATCH_BYTES, payload_bytes):
            break
        count += 1
    return count


def batch(messages: Sequence[tuple[str, bytes]]) -> bytes:
    """One payload for several messages, each with its reader's name."""
    return _BATCH + msgspec.msgpack.encode(messages)


def is_batch(payload: bytes) -> bool:
    """Whether this says of itself that it is a batch."""
    return payload[:1] == _BATCH


def unbatch(payload: bytes) -> list[tuple[str, bytes]] | None:
    """The messages of a batch; None if this is none, or one that nobody honest would make.

    What is shorter than any message is none; and who puts more together than fit is not read: one
    batch could hold a hundred thousand.
    """
    if not is_batch(payload) or len(payload) > LARGEST_PAYLOAD:
        return None
    try:
        messages = msgspec.msgpack.decode(payload[1:], type=_Messages)
    except (msgspec.MsgspecError, ValueError):
        return None
    return [(reader, raw) for reader, raw in messages if len(raw) >= SHORTEST_MESSAGE]


def probe(token: bytes, payload_bytes: int) -> bytes:
    """A payload of this very length that can be told by its token."""
    return (_PROBE + token).ljust(payload_bytes, b"\0")


def token_of(payload: bytes, length: int) -> bytes | None:
    """The token of a probe; None if this is none."""
    return payload[1 : 1 + length] if payload[:1] == _PROBE else None


_Key = tuple[str, bytes, int]
"""A sender, and the identifier and count of the pieces of one message."""
LEFT_BEHIND_S = 20.0
"""Who adds nothing to a message for so long has left it behind: the largest piece takes as long at
105 kbit/s."""


class Assembler:
    """Puts pieces together, within a bound on memory.

    Who has too many, loses his own, those first to which nothing was added for longest. When all
    together have too many, what was left behind is forgotten; then one of those loses his own who
    hold most: nobody of whom another holds twice as much. What a piece costs in work does not
    depend on how many are held.
    """

    def __init__(
        self,
        limit_bytes: int,
        per_sender: int | None = None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._limit, self._per_sender = limit_bytes, per_sender or limit_bytes
        self._now = now
        self._total = 0
        self._held: dict[str, int] = {}
        self._by_size = [OrderedDict[str, None]() for _ in range(64)]
        """The senders, by how many bits the number of bytes has that each holds."""
        self._open: OrderedDict[_Key, dict[int, bytes]] = OrderedDict()
        self._of: dict[str, OrderedDict[_Key, float]] = {}
        """The keys of each sender, and when something was last added. In both, what was added to
        last stands last; in a plain dictionary the first is only found behind the places of all
        that were taken before."""

    def add(self, sender: str, payload: bytes) -> bytes | None:
        """The message that this payload completes, or None if it is not complete or is junk."""
        if payload[:1] == _WHOLE:
            return payload[1:]
        if payload[:1] != _PIECE or len(payload) <= _HEAD.size + 1:
            return None
        identifier, number, count = _HEAD.unpack_from(payload, 1)
        piece = payload[1 + _HEAD.size :]
        if number >= count or len(piece) > self._limit:
            return None
        key = (sender, identifier, count)
        if number in self._open.get(key, ()):
            return None  # what is repeated is no progress
        pieces = self._latest(key)
        pieces[number] = piece
        self._charge(sender, len(piece) + _COST_OF_PIECE)
        if len(pieces) == count:
            self._forget(key)
            return b"".join(pieces[i] for i in range(count))
        while self._held.get(sender, 0) > self._per_sender:
            self._forget(next(iter(self._of[sender])))
        while self._total > self._limit:
            self._forget(self._least_deserving())
        return None

    def _latest(self, key: _Key) -> dict[int, bytes]:
        """What is there of a message, which is now the last that something was added to."""
        sender = key[0]
        if key not in self._open:
            self._open[key] = {}
            self._of.setdefault(sender, OrderedDict())
            self._charge(sender, _COST_OF_MESSAGE)
        self._of[sender][key] = self._now()
        self._open.move_to_end(key)
        self._of[sender].move_to_end(key)
        return self._open[key]

    def _least_deserving(self) -> _Key:
        """The message to be forgotten when all together have too many."""
        oldest = next(iter(self._open))
        if self._now() - self._of[oldest[0]][oldest] > LEFT_BEHIND_S:
            return oldest
        largest = next(filter(None, reversed(self._by_size)))
        return next(iter(self._of[next(iter(largest))]))

    def _charge(self, sender: str, cost: int) -> None:
        before = self._held.get(sender, 0)
        held = self._held[sender] = before + cost
        self._total += cost
        if before.bit_length() == held.bit_length():
            return
        if before:
            self._by_size[before.bit_length()].pop(sender)
        if held:
            self._by_size[held.bit_length()][sender] = None

    def _forget(self, key: _Key) -> None:
        sender, pieces = key[0], self._open.pop(key)
        freed = _COST_OF_MESSAGE + sum(len(piece) + _COST_OF_PIECE for piece in pieces.values())
        del self._of[sender][key]
        self._charge(sender, -freed)
        if not self._of[sender]:
            del self._of[sender], self._held[sender]
