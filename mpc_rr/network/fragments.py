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
from collections.abc import Iterator, Sequence
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
_BOOKKEEPING = 512
"""What a held piece costs in memory besides its own bytes, at most."""


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


class Assembler:
    """Puts pieces together, within a bound on memory.

    When there are too many, those are forgotten to which nothing was added for longest; and who
    has too many, loses his own.
    """

    def __init__(self, limit_bytes: int, per_sender: int | None = None) -> None:
        self._limit, self._per_sender = limit_bytes, per_sender or limit_bytes
        self._total = 0
        self._held: dict[str, int] = {}
        self._open: dict[tuple[str, bytes, int], dict[int, bytes]] = {}
        """By sender, identifier and count; what was added to last stands last."""

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
        pieces = self._open[key] = self._open.pop(key, {})
        if number not in pieces:
            pieces[number] = piece
            self._held[sender] = self._held.get(sender, 0) + len(piece) + _BOOKKEEPING
            self._total += len(piece) + _BOOKKEEPING
        if len(pieces) == count:
            self._forget(key)
            return b"".join(pieces[i] for i in range(count))
        while self._held.get(sender, 0) > self._per_sender:
            self._forget(next(key for key in self._open if key[0] == sender))
        while self._total > self._limit:
            self._forget(next(iter(self._open)))
        return None

    def _forget(self, key: tuple[str, bytes, int]) -> None:
        freed = sum(len(piece) + _BOOKKEEPING for piece in self._open.pop(key).values())
        self._total -= freed
        self._held[key[0]] -= freed
        if not self._held[key[0]]:
            del self._held[key[0]]
