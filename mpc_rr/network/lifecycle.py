"""The messages around every protocol: lobby, roster, verdict, and what goes wrong.

They are the agents' (`mpc_rr.agents`), who send and answer them. They stand here because protocols
and study files must not take the names of their steps.
"""

from typing import ClassVar

import msgspec

from mpc_rr.crypto.admission import Pass
from mpc_rr.crypto.identity import PublicIdentity
from mpc_rr.network.envelope import Again, Message, Way

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
    piece_bytes: int = 0
    """The largest payload that the broker is known to carry; 0 in version 1, which had none."""


class Refusal(Message, frozen=True):
    """Coordinator → party: you are not admitted, and why."""

    step: ClassVar[str] = "refusal"
    doing: ClassVar[str] = "the coordinator turns a party away"
    way: ClassVar[Way] = "hand out"
    identity: PublicIdentity
    reason: str
    answers: bytes


class Join(Message, frozen=True):
    """Party → coordinator: I take part in this run, with these keys; answers go there.

    ``possession`` proves to the coordinator that the sealing key is the sender's own; the signature
    proves it of the other.
    """

    step: ClassVar[str] = "join"
    doing: ClassVar[str] = "waiting for parties to join"
    identity: PublicIdentity
    reply_to: str = ""
    possession: bytes = b""


class ShowPass(Message, frozen=True):
    """Party → coordinator, where a study has a registrar: the pass of the person behind it."""

    step: ClassVar[str] = "pass"
    doing: ClassVar[str] = "parties show their passes"
    identity: PublicIdentity
    shown: Pass


class Welcome(Message, frozen=True):
    """Coordinator → party: you are in; wait for the roster."""

    step: ClassVar[str] = "admission"
    doing: ClassVar[str] = "the coordinator admits a party"
    way: ClassVar[Way] = "hand out"
    fingerprint: str


class LobbyNews(Message, frozen=True):
    """Coordinator → everyone, now and then while it waits for parties: how many have joined."""

    step: ClassVar[str] = "lobby_news"
    doing: ClassVar[str] = "the coordinator says how many have joined"
    way: ClassVar[Way] = "announce"
    joined: int


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
    doing: ClassVar[str] = "the coordinator shows everyone's passes"
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
    reveals: ClassVar[bool] = False
    doing: ClassVar[str] = "parties compare the roster they were shown"
    way: ClassVar[Way] = "publish"
    digest: bytes


class ResultSeen(Message, frozen=True):
    """Party → everyone: the digest of the result I computed."""

    step: ClassVar[str] = "result_seen"
    reveals: ClassVar[bool] = False
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
    reveals: ClassVar[bool] = False
    doing: ClassVar[str] = "parties take their leave"


class TranscriptWanted(Message, frozen=True):
    """Party → coordinator, after the verdict: hand me the transcript, from this byte on.

    ``at`` is as many bytes as have come; when all have, that says so.
    """

    step: ClassVar[str] = "transcript_wanted"
    reveals: ClassVar[bool] = False
    doing: ClassVar[str] = "parties ask for the transcript"
    at: int


class TranscriptPiece(Message, frozen=True):
    """Coordinator → party that asked: a piece of the transcript; or why there is none."""

    step: ClassVar[str] = "transcript_piece"
    doing: ClassVar[str] = "the coordinator hands out the transcript"
    way: ClassVar[Way] = "hand out"
    at: int
    total: int
    """How many bytes there are in all."""
    part: bytes
    refusal: str
    """Empty, or why nothing is handed out."""


class Objection(Message, frozen=True):
    """Party → coordinator: I stop, because of what ``against`` did in ``at_step``."""

    step: ClassVar[str] = "objection"
    reveals: ClassVar[bool] = False
    doing: ClassVar[str] = "a party objects"
    against: str
    at_session: str
    at_step: str
    reason: str


LOBBY_STEPS = tuple(
    kind.step for kind in (Hello, ShowPass, Join, Objection, Again, Welcome, LobbyNews)
)
"""Between the coordinator and one party, before it is in a roster."""
STEPS_BEFORE_PROTOCOL = (Hello.step, Join.step, RosterSeen.step)
STEPS_AFTER_PROTOCOL = (ResultSeen.step, Goodbye.step)
AGENT_MESSAGES: tuple[type[Message], ...] = (
    Hello,
    ShowPass,
    Join,
    RosterSeen,
    ResultSeen,
    TranscriptWanted,
    Goodbye,
    Objection,
    Again,
)
"""What parties send outside the protocol."""
COORDINATOR_MESSAGES: tuple[type[Message], ...] = (
    Invitation, Refusal, Welcome, LobbyNews, Roster, Passes, Opening, Verdict, TranscriptPiece,
)  # fmt: skip
"""What the coordinator sends outside the protocol."""
