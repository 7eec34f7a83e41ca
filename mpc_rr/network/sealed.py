"""Signing and sealing envelopes, and opening them with every check made.

The broker is assumed hostile: it may read, drop, delay, reorder, repeat or forge. What does not
pass here is counted under its reason and thrown away; it never reaches a protocol.
"""

import msgspec

from mpc_rr.crypto.identity import Identity, PublicIdentity
from mpc_rr.network.messages import (
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

SIGNATURE_CONTEXT = b"mpc-rr envelope v1\0"

_signed_decoder = msgspec.msgpack.Decoder(SignedEnvelope)
_envelope_decoder = msgspec.msgpack.Decoder(Envelope)


class Rejected(Exception):
    """A message that is thrown away. ``reason`` is one of a few fixed words, to be counted."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def write(
    header: Header, message: msgspec.Struct, author: Identity, reader: PublicIdentity | None = None
) -> bytes:
    """The raw bytes of a message: encoded, sealed to ``reader`` if one is given, and signed."""
    body = encode(message)
    if reader is not None:
        body = reader.seal(body, info=encode(header))
    envelope = encode(Envelope(header, body))
    return encode(SignedEnvelope(envelope, author.sign(SIGNATURE_CONTEXT + envelope)))


class Opened(msgspec.Struct, frozen=True):
    """An envelope that could be read, with what is needed to check its signature."""

    envelope: Envelope
    signed: SignedEnvelope
    raw: bytes

    def __repr__(self) -> str:
        return f"Opened({self.envelope!r})"

    def signed_by(self, author: PublicIdentity) -> bool:
        """Whether the signature is ``author``'s."""
        return author.verify(self.signed.signature, SIGNATURE_CONTEXT + self.signed.envelope)

    def message(self, kind: type[M]) -> M:
        """The public message inside; `Rejected` if it is of another kind."""
        try:
            return decode(self.envelope.body, kind)
        except ValueError:
            raise Rejected("malformed") from None


def read(
    raw: bytes, *, study: str, runs: tuple[bytes, ...] | None, targets: tuple[str, ...]
) -> Opened:
    """Parse raw bytes and check all but the signature; `Rejected` with the reason otherwise.

    ``runs`` is None before the invitation, when a party cannot know yet which run it will join.
    """
    try:
        signed = _signed_decoder.decode(raw)
        envelope = _envelope_decoder.decode(signed.envelope)
    except (msgspec.MsgspecError, ValueError):
        raise Rejected("malformed") from None
    header = envelope.header
    if header.version != WIRE_VERSION:
        raise Rejected("other version")
    if header.study != study:
        raise Rejected("other study")
    if len(header.run) not in (0, RUN_BYTES) or (runs is not None and header.run not in runs):
        raise Rejected("other run")
    if header.target not in targets:
        raise Rejected("misdirected")
    return Opened(envelope, signed, raw)


def body_of(opened: Opened, kind: type[Message], reader: Identity) -> bytes | None:
    """The message's bytes, unsealed when ``kind`` is private; None if it does not open."""
    envelope = opened.envelope
    if not kind.sealed:
        return envelope.body
    return reader.open(envelope.body, info=encode(envelope.header))
