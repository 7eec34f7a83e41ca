"""The form of everything that crosses the network. ``docs/wire.md`` describes it byte by byte.

A message is a typed `Message`; it travels as the body of an `Envelope`, which says for which study,
run, session and step it is, from whom and to whom; the envelope's bytes and the sender's signature
on them make the raw bytes that a transport carries. All of it is msgpack, never pickle.
"""

import re
from typing import ClassVar, Literal, TypeVar

import msgspec

WIRE_VERSION = 2
RUN_BYTES = {1: 16, 2: 32}
"""How long the name of a run is, in each version of the wire whose transcripts can be read."""
COORDINATOR = "coordinator"
EVERYONE = "*"

NAME_PATTERN = re.compile(r"[a-z0-9][a-z0-9_-]{0,47}")
NAME_RULE = "small letters, digits, '-' and '_', at most 48, starting with a letter or digit"


def is_name(text: str) -> bool:
    """Whether ``text`` may name a study or a party (it becomes part of topics and file names)."""
    return NAME_PATTERN.fullmatch(text) is not None


def is_party_name(name: str) -> bool:
    """Whether a party may be called this."""
    return is_name(name) and name not in (COORDINATOR, EVERYONE)


Way = Literal["report", "confide", "exchange", "publish", "post", "announce", "hand out"]
"""In which kind of round a message travels: parties ``report`` to the coordinator publicly, or
``confide`` to it alone; they ``exchange`` with each other privately, ``publish`` to everyone, or
``post`` to a board that all must see alike; the coordinator announces to all or hands out to each.
"""
AMONG_PARTIES: frozenset[Way] = frozenset({"exchange", "publish", "post"})
"""Rounds in which parties need each other's keys, and must know that all see the same."""


class Message(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Base of all messages. ``step`` is its frozen name on the wire; a sealed one is private.

    Bodies never show in a repr: they may hold shares of somebody's answers.
    """

    step: ClassVar[str]
    doing: ClassVar[str] = ""
    """What happens in its step, in words for whoever watches."""
    way: ClassVar[Way] = "report"
    most_bytes: ClassVar[int] = 4096
    """How long it may be, unless its protocol reckons that for itself."""
    sealed: ClassVar[bool] = False
    reveals: ClassVar[bool] = True
    """Whether it may tell something of its sender's record, alone or together with others. Before
    the first such message leaves in a run, the party's ledger enters that it does."""

    @property
    def proved(self) -> "tuple[bytes, bytes] | None":
        """An X25519 key that it brings, and the proof that it is its sender's own; None: none."""
        return None

    def __repr__(self) -> str:
        return f"{type(self).__name__}(…)"

    def __rich_repr__(self) -> list[str]:  # type: ignore[override]
        return ["…"]


M = TypeVar("M", bound=Message)
S = TypeVar("S", bound=msgspec.Struct)


class Header(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Where a message belongs. A sealed body opens only under the very header it was sealed for."""

    version: int
    study: str
    run: bytes
    session: str
    step: str
    sender: str
    target: str


class Envelope(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A header and the encoded (and, where private, sealed) message."""

    header: Header
    body: bytes

    def __repr__(self) -> str:
        h = self.header
        return f"Envelope({h.step} {h.sender}→{h.target}, {len(self.body)} bytes)"


class SignedEnvelope(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """What a transport carries: the envelope's exact bytes and the sender's signature on them."""

    envelope: bytes
    signature: bytes

    def __repr__(self) -> str:
        return f"SignedEnvelope({len(self.envelope)} bytes)"


class Again(Message, frozen=True):
    """Anybody → anybody: your message for this step has not come; send it again."""

    step: ClassVar[str] = "again"
    doing: ClassVar[str] = "a message is asked for again"
    at_session: str
    at_step: str


# ── Carriers of a round: one message up and one down per party, however many others it writes to ─


class Bundle(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Signed envelopes of one step: by target on the way up, by sender on the way down."""

    parcels: dict[str, bytes]

    def __repr__(self) -> str:
        return f"Bundle({len(self.parcels)} sealed)"


LOBBY_SESSION = "lobby"
VERDICT_SESSION = "verdict"
_encoder = msgspec.msgpack.Encoder()


def encode(value: msgspec.Struct) -> bytes:
    """Msgpack bytes of a struct. Field order is fixed by the class, so this is deterministic."""
    return _encoder.encode(value)


def encode_parts(*parts: bytes) -> bytes:
    """Several strings as one, so that no two different lists give the same bytes."""
    return b"".join(len(part).to_bytes(8, "big") + part for part in parts)


def decode(raw: bytes, kind: type[S]) -> S:
    """The struct that ``raw`` encodes; ``ValueError`` if it is anything else."""
    try:
        return msgspec.msgpack.decode(raw, type=kind)
    except msgspec.MsgspecError as error:
        raise ValueError(str(error)) from None
