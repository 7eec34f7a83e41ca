"""The form of everything that crosses the network. ``docs/wire.md`` describes it byte by byte.

A message is a typed `Message`; it travels as the body of an `Envelope`, which says for which study,
run, session and step it is, from whom and to whom; the envelope's bytes and the sender's signature
on them make the raw bytes that a transport carries. All of it is msgpack, never pickle.
"""

import re
from typing import ClassVar, Literal, TypeVar

import msgspec

from mpc_rr.crypto.admission import Pass
from mpc_rr.crypto.identity import PublicIdentity

WIRE_VERSION = 1
COORDINATOR = "coordinator"
EVERYONE = "*"
RUN_BYTES = 16

NAME_PATTERN = re.compile(r"[a-z0-9][a-z0-9_-]{0,47}")
NAME_RULE = "small letters, digits, '-' and '_', at most 48, starting with a letter or digit"


def is_name(text: str) -> bool:
    """Whether ``text`` may name a study or a party (it becomes part of topics and file names)."""
    return NAME_PATTERN.fullmatch(text) is not None


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


# ── Lobby ──────────────────────────────────────────────────────────────────────────────────────


class Hello(Message, frozen=True):
    """Party → coordinator: is there a study? Says where answers to this party go."""

    step: ClassVar[str] = "hello"
    doing: ClassVar[str] = "a party asks for the study"
    identity: PublicIdentity
    reply_to: str


class Invitation(Message, frozen=True):
    """Coordinator → party: this is the study; its digest tells whether our files agree.

    ``answers`` is the digest of the identity that said hello, so that no invitation to an earlier
    run can be passed off as this one.
    """

    step: ClassVar[str] = "invitation"
    doing: ClassVar[str] = "the coordinator invites a party"
    way: ClassVar[Way] = "announce"
    identity: PublicIdentity
    study_digest: bytes
    nonce: bytes
    answers: bytes


class Refusal(Message, frozen=True):
    """Coordinator → party: you are not admitted, and why."""

    step: ClassVar[str] = "refusal"
    doing: ClassVar[str] = "the coordinator turns a party away"
    way: ClassVar[Way] = "hand out"
    identity: PublicIdentity
    reason: str
    answers: bytes


class Join(Message, frozen=True):
    """Party → coordinator: I take part in this run, with these keys."""

    step: ClassVar[str] = "join"
    doing: ClassVar[str] = "waiting for parties to join"
    identity: PublicIdentity


class ShowPass(Message, frozen=True):
    """Party → coordinator, where a study has a registrar: the pass of the person behind it."""

    step: ClassVar[str] = "pass"
    doing: ClassVar[str] = "parties show their passes"
    identity: PublicIdentity
    shown: Pass


class Admission(Message, frozen=True):
    """Coordinator → party: you are in; wait for the roster."""

    step: ClassVar[str] = "admission"
    doing: ClassVar[str] = "the coordinator admits a party"
    way: ClassVar[Way] = "hand out"
    fingerprint: str


# ── Roster and verdict ─────────────────────────────────────────────────────────────────────────


class Member(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """One party in the roster."""

    name: str
    identity: PublicIdentity


class Exclusion(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """One party left out, and why."""

    name: str
    reason: str


class Roster(Message, frozen=True):
    """Coordinator → everyone: who takes part. A later attempt leaves out those who were lost."""

    step: ClassVar[str] = "roster"
    doing: ClassVar[str] = "the coordinator says who takes part"
    way: ClassVar[Way] = "announce"
    attempt: int
    members: tuple[Member, ...]
    excluded: tuple[Exclusion, ...]


class Passes(Message, frozen=True):
    """Coordinator → everyone, where a study has a registrar: the passes of all in the roster."""

    step: ClassVar[str] = "passes"
    doing: ClassVar[str] = "the coordinator shows everybody's passes"
    way: ClassVar[Way] = "announce"
    passes: dict[str, Pass]


class Opening(Message, frozen=True):
    """Coordinator → everyone: the study begins; takes the roster's place where parties only report.

    ``digest`` is that of the whole roster, which is in the transcript.
    """

    step: ClassVar[str] = "opening"
    doing: ClassVar[str] = "the study begins"
    way: ClassVar[Way] = "announce"
    asked: int
    digest: bytes


class RosterSeen(Message, frozen=True):
    """Party → everyone: the digest of the roster I was shown."""

    step: ClassVar[str] = "roster_seen"
    doing: ClassVar[str] = "parties compare the roster they were shown"
    way: ClassVar[Way] = "publish"
    digest: bytes


class ResultSeen(Message, frozen=True):
    """Party → everyone: the digest of the result I computed."""

    step: ClassVar[str] = "result_seen"
    doing: ClassVar[str] = "parties confirm the result"
    digest: bytes


class Verdict(Message, frozen=True):
    """Coordinator → everyone: how the study ended.

    ``seen`` holds the parties' signed digests of the result; ``unconfirmed`` names those who sent
    none in time.
    """

    step: ClassVar[str] = "verdict"
    doing: ClassVar[str] = "the coordinator says how the study ended"
    way: ClassVar[Way] = "announce"
    done: bool
    cause: str
    culprits: tuple[str, ...]
    result_digest: bytes
    seen: dict[str, bytes]
    unconfirmed: tuple[str, ...]


class Goodbye(Message, frozen=True):
    """Party → coordinator: I have the verdict; you need not wait for me."""

    step: ClassVar[str] = "goodbye"
    doing: ClassVar[str] = "parties take their leave"


class Objection(Message, frozen=True):
    """Party → coordinator: I stop, because of what ``against`` did in ``at_step``."""

    step: ClassVar[str] = "objection"
    doing: ClassVar[str] = "a party objects"
    against: str
    at_session: str
    at_step: str
    reason: str


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
        return f"Bundle({len(self.parcels)} parcels)"


STEPS_BEFORE_PROTOCOL = (Hello.step, Join.step, RosterSeen.step)
STEPS_AFTER_PROTOCOL = (ResultSeen.step, Goodbye.step)
AGENT_MESSAGES = (Hello, ShowPass, Join, RosterSeen, ResultSeen, Goodbye, Objection, Again)
"""What parties send outside the protocol."""
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
