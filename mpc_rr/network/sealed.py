"""Signing and sealing envelopes, and opening them with every check made.

The broker is assumed hostile: it may read, drop, delay, reorder, repeat or forge. What does not
pass here is counted under its reason and thrown away; it never reaches a protocol.
"""

import functools
import hashlib
from collections.abc import Collection
from typing import Literal

import msgspec

from mpc_rr.crypto.identity import Identity, PublicIdentity
from mpc_rr.network.envelope import (
    EVERYONE,
    RUN_BYTES,
    WIRE_VERSION,
    Envelope,
    Header,
    M,
    Message,
    SignedEnvelope,
    decode,
    encode,
)

SIGNATURE_CONTEXTS = {version: b"mpc-rr envelope v%d\0" % version for version in RUN_BYTES}
"""What a signature is on, besides the envelope: no version's can be passed off as another's."""

_signed_decoder = msgspec.msgpack.Decoder(SignedEnvelope)
_envelope_decoder = msgspec.msgpack.Decoder(Envelope)


Reason = Literal[
    "oversized", "malformed", "other version", "other study", "other run", "misdirected",
    "unknown sender", "bad signature", "duplicate", "contradiction", "other session", "flooding",
    "not the coordinator", "other coordinator", "other mailbox", "no pass", "internal error",
]  # fmt: skip
"""Why messages are thrown away (docs/wire.md)."""


class Rejected(Exception):
    """A message that is thrown away, and counted under its ``reason``."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(reason)
        self.reason = reason


def write(
    header: Header, message: msgspec.Struct, author: Identity, reader: PublicIdentity | None = None
) -> bytes:
    """The raw bytes of a message: encoded, sealed to ``reader`` if one is given, and signed."""
    body = encode(message)
    if reader is not None:
        body = author.seal(reader.sealing, body, encode(header))
    envelope = encode(Envelope(header, body))
    context = SIGNATURE_CONTEXTS[header.version]
    return encode(SignedEnvelope(envelope, author.sign(context + envelope)))


class Opened:
    """An envelope that could be read, with what is needed to check its signature.

    All parties of a host share those of announcements, so that each is checked and read once.
    """

    __slots__ = ("_authors", "_digest", "_messages", "envelope", "raw", "signed")

    def __init__(self, envelope: Envelope, signed: SignedEnvelope, raw: bytes) -> None:
        self.envelope, self.signed, self.raw = envelope, signed, raw
        self._digest: bytes | None = None
        self._authors: set[PublicIdentity] = set()
        self._messages: dict[type[Message], Message] = {}

    def __repr__(self) -> str:
        return f"Opened({self.envelope!r})"

    @property
    def digest(self) -> bytes:
        """By which two messages are told apart."""
        if self._digest is None:
            self._digest = hashlib.sha256(self.raw).digest()
        return self._digest

    def signed_by(self, author: PublicIdentity) -> bool:
        """Whether the signature is ``author``'s."""
        if author not in self._authors:
            context = SIGNATURE_CONTEXTS.get(self.envelope.header.version)
            if context is None:
                return False
            if not author.verify(self.signed.signature, context + self.signed.envelope):
                return False
            self._authors.add(author)
        return True

    def decoded(self, kind: type[M]) -> M:
        """The public message inside; ``ValueError`` if it is of another kind."""
        found = self._messages.get(kind)
        if isinstance(found, kind):
            return found
        message = decode(self.envelope.body, kind)
        if self.envelope.header.target == EVERYONE:
            self._messages[kind] = message
        return message

    def message(self, kind: type[M]) -> M:
        """The public message inside; `Rejected` if it is of another kind."""
        try:
            return self.decoded(kind)
        except ValueError:
            raise Rejected("malformed") from None


@functools.lru_cache(maxsize=64)
def _parsed(raw: bytes) -> Opened:
    try:
        signed = _signed_decoder.decode(raw)
        if encode(signed) != raw:
            raise Rejected("malformed")
        return Opened(_envelope_decoder.decode(signed.envelope), signed, raw)
    except (msgspec.MsgspecError, ValueError):
        raise Rejected("malformed") from None


class OtherVersion(Rejected):
    """A message of another version of the wire, for this study."""

    def __init__(self, opened: Opened) -> None:
        super().__init__("other version")
        self.opened = opened


def read(
    raw: bytes,
    *,
    study: str,
    runs: tuple[bytes, ...] | None,
    targets: tuple[str, ...],
    versions: Collection[int] = (WIRE_VERSION,),
) -> Opened:
    """Parse raw bytes and check all but the signature; `Rejected` with the reason otherwise.

    ``runs`` is None before the invitation, when a party cannot know yet which run it will join.
    ``versions``: of the wire; older ones only where a transcript is read.
    """
    opened = _parsed(raw)
    header = opened.envelope.header
    if header.study != study:
        raise Rejected("other study")
    if header.version not in versions:
        raise OtherVersion(opened)
    whole = len(header.run) in (0, RUN_BYTES[header.version])
    if not whole or (runs is not None and header.run not in runs):
        raise Rejected("other run")
    if header.target not in targets:
        raise Rejected("misdirected")
    return opened


def understood(opened: Opened, kind: type[M], reader: Identity) -> M:
    """The message, unsealed when ``kind`` is private; ``ValueError`` if it is something else."""
    if not kind.sealed:
        return opened.decoded(kind)
    body = reader.open(opened.envelope.body, info=encode(opened.envelope.header))
    if body is None:
        raise ValueError("it does not open with my key")
    return decode(body, kind)
