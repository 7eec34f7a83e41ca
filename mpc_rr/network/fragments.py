"""Messages larger than a broker takes are cut into pieces, and small ones travel together.

The first byte of a payload says what follows: ``0`` a whole message; ``1`` a piece, headed by a
random 16-byte identifier, its number and the count of pieces; ``2`` a batch of whole messages for
agents behind one connection, each with the name of its reader. Neither pieces nor batches carry any
meaning, and they are not signed: the messages in them are. A forged piece spoils only that one
message, which is then asked for again.
"""

import struct
from collections.abc import Sequence

import msgspec

from mpc_rr.randomness import Randomness

PIECE_BYTES = 256 * 1024
BATCH_BYTES = 64 * 1024
_WHOLE, _PIECE, _BATCH = b"\0", b"\1", b"\2"
_HEAD = struct.Struct("<16sII")
_BOOKKEEPING = 512
"""What a held piece costs in memory besides its own bytes, at most."""


def cut(raw: bytes, rng: Randomness, piece_bytes: int = PIECE_BYTES) -> list[bytes]:
    """The payloads that carry ``raw``."""
    if len(raw) <= piece_bytes:
        return [_WHOLE + raw]
    identifier = rng.bytes(16)
    pieces = [raw[i : i + piece_bytes] for i in range(0, len(raw), piece_bytes)]
    return [
        _PIECE + _HEAD.pack(identifier, number, len(pieces)) + piece
        for number, piece in enumerate(pieces)
    ]


def batch(messages: Sequence[tuple[str, bytes]]) -> bytes:
    """One payload for several messages, each with its reader's name."""
    return _BATCH + msgspec.msgpack.encode(messages)


def unbatch(payload: bytes) -> list[tuple[str, bytes]] | None:
    """The messages of a batch; None if this is no batch."""
    if payload[:1] != _BATCH:
        return None
    try:
        return msgspec.msgpack.decode(payload[1:], type=list[tuple[str, bytes]])
    except (msgspec.MsgspecError, ValueError):
        return None


class Assembler:
    """Puts the pieces that arrive on one topic together, within a bound on memory."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit = limit_bytes
        self._held = 0
        self._open: dict[tuple[bytes, int], dict[int, bytes]] = {}

    def add(self, payload: bytes) -> bytes | None:
        """The message that this payload completes, or None if it is not complete or is junk."""
        if payload[:1] == _WHOLE:
            return payload[1:]
        if payload[:1] != _PIECE or len(payload) <= _HEAD.size + 1:
            return None
        identifier, number, count = _HEAD.unpack_from(payload, 1)
        piece = payload[1 + _HEAD.size :]
        if number >= count or len(piece) > self._limit:
            return None
        pieces = self._open.setdefault((identifier, count), {})
        if number not in pieces:
            pieces[number] = piece
            self._held += len(piece) + _BOOKKEEPING
        if len(pieces) == count:
            self._forget((identifier, count))
            return b"".join(pieces[i] for i in range(count))
        while self._held > self._limit:
            self._forget(next(iter(self._open)))
        return None

    def _forget(self, key: tuple[bytes, int]) -> None:
        self._held -= sum(len(piece) + _BOOKKEEPING for piece in self._open.pop(key).values())
