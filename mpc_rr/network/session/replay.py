"""A recorded study: the lines of its public transcript, and a session that plays them again."""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Self, TypeVar

from mpc_rr.crypto.admission import Pass
from mpc_rr.crypto.identity import PublicIdentity
from mpc_rr.errors import MpcRrError
from mpc_rr.network.envelope import COORDINATOR, RUN_BYTES, M, Message, encode, encode_parts
from mpc_rr.network.mailbox import Watched
from mpc_rr.network.sealed import Opened, Rejected, read
from mpc_rr.network.session.base import Check, Limits
from mpc_rr.network.session.coordinator import RULES, CoordinatorSession, Gathered, check_enough

T = TypeVar("T")


class DoesNotHold(MpcRrError):
    """Something in a result folder is not as it should be."""


@dataclass(frozen=True)
class Line:
    """One message of the transcript, and where it stands."""

    number: int
    opened: Opened

    @property
    def place(self) -> tuple[str, str, str]:
        """Session, step and sender."""
        header = self.opened.envelope.header
        return header.session, header.step, header.sender

    def wrong(self, what: str) -> DoesNotHold:
        """The error that names this line."""
        session, step, sender = self.place
        return DoesNotHold(
            f"transcript.jsonl, line {self.number} ({step} by {sender} in {session}): {what}"
        )

    def message(self, kind: type[M]) -> M:
        """The message, which must be of this kind."""
        try:
            return self.opened.message(kind)
        except Rejected:
            raise self.wrong(f"it is no {kind.step!r} message") from None


@dataclass
class Transcript:
    """The lines, with the keys of those who speak in them."""

    lines: list[Line]
    keys: dict[str, PublicIdentity] = field(default_factory=dict)
    passes: dict[str, Pass] = field(default_factory=dict)
    met: list[int] = field(default_factory=list)
    """The numbers of the lines that have been read, in the order in which they were sent."""
    passed: dict[int, str] = field(default_factory=dict)
    """The numbers of those that were passed over, and their sessions: whether they belong there,
    and in which order, nobody can tell."""
    rules: int = RULES
    """Whether it was recorded when names, not dice, decided between equal records."""

    def at(self, session: str, step: str) -> dict[str, Line]:
        """The lines of one step, by sender; each is there once."""
        found: dict[str, Line] = {}
        for line in self.lines:
            if line.place[:2] != (session, step):
                continue
            sender = line.place[2]
            if sender in found:
                raise line.wrong(f"{sender} has spoken in this step before")
            found[sender] = line
        return found

    def by_parties(self, session: str, step: str, asked: Collection[str]) -> dict[str, Line]:
        """The lines of these parties in a step; others, who were not asked, have no place there."""
        found = self.at(session, step)
        in_order = {party: found[party] for party in asked if party in found}
        self.met += [line.number for line in in_order.values()]
        return in_order

    def pass_over(self, session: str, *, itself: bool) -> None:
        """Read no more of the sessions below this one: what was done there cannot be done again.

        Nobody speaks twice in one step there, either.
        """
        met, spoken = set(self.met), set()
        for line in self.lines:
            here = line.place[0]
            if here.startswith(f"{session}/") or (itself and here == session):
                if line.place in spoken:
                    raise line.wrong(f"{line.place[2]} has spoken in this step before")
                spoken.add(line.place)
                if line.number not in met:
                    self.met.append(line.number)
                    self.passed[line.number] = here

    def by_coordinator(self, session: str, kind: type[M]) -> tuple[Line, M]:
        """The coordinator's one message of this kind."""
        found = self.at(session, kind.step)
        if list(found) != [COORDINATOR]:
            raise DoesNotHold(f"transcript.jsonl: no {kind.step!r} by the coordinator in {session}")
        return found[COORDINATOR], found[COORDINATOR].message(kind)

    def announced(self, session: str, kind: type[M]) -> tuple[Line, M]:
        """The same, where it comes next."""
        line, message = self.by_coordinator(session, kind)
        self.met.append(line.number)
        return line, message


class ReplaySession(CoordinatorSession):
    """Hears what was recorded, and compares what it is to say with what was said."""

    def __init__(
        self, transcript: Transcript, name: str, parties: tuple[str, ...], limits: Limits
    ) -> None:
        self.transcript, self.name, self.parties, self.limits = transcript, name, parties, limits
        self.rules = transcript.rules

    def sub(self, label: str, *, fewest: int | None = None) -> Self:
        """The session of a sub-protocol or a repeated round, perhaps with fewer parties."""
        limits = self.limits if fewest is None else replace(self.limits, fewest=fewest)
        return type(self)(self.transcript, f"{self.name}/{label}", self.parties, limits)

    def shared(self, what: str, depends_on: tuple[object, ...], work: Callable[[], T]) -> T:  # noqa: ARG002
        """A replay has nobody to share with."""
        return work()

    def point_of_no_return(self) -> None:
        """It is past."""

    def show(self, rows: Sequence[Watched], remark: str = "") -> None:
        """Nobody watches."""

    @property
    def context(self) -> bytes:
        """What binds a hash or a ciphertext to this study, run and session."""
        header = self.transcript.lines[0].opened.envelope.header
        return encode_parts(header.study.encode(), header.run, self.name.encode())

    def signed(self, raw: bytes, sender: str, step: str, *, target: str = COORDINATOR) -> Opened:
        """What somebody wrote in this session; ``ValueError`` if it is anything else."""
        header = self.transcript.lines[0].opened.envelope.header
        try:
            opened = read(
                raw, study=header.study, runs=(header.run,), targets=(target,), versions=RUN_BYTES
            )
        except Rejected as rejected:
            raise ValueError(rejected.reason) from None
        place = opened.envelope.header
        if (place.session, place.step, place.sender) != (self.name, step, sender):
            raise ValueError("it belongs to another step")
        if not opened.signed_by(self.transcript.keys[sender]):
            raise ValueError("its signature is not the sender's")
        return opened

    def identity_of(self, party: str) -> PublicIdentity:
        """The keys with which a party joined."""
        return self.transcript.keys[party]

    def pass_of(self, party: str) -> Pass | None:
        """The pass that a party showed, where the study has a registrar."""
        return self.transcript.passes.get(party)

    async def route(
        self, kind: type[M], *, before_handing_out: Callable[[], None] | None = None
    ) -> None:
        """Sealed parcels are in no transcript."""

    async def relay(self, kind: type[M], *, check: Check[M] | None = None) -> dict[str, M]:
        """What all parties published."""
        lines = self.transcript.by_parties(self.name, kind.step, self.parties)
        missing = [party for party in self.parties if party not in lines]
        if missing:
            raise DoesNotHold(
                f"transcript.jsonl: {missing[0]}'s message for step {kind.step!r} is missing"
            )
        return {party: self._checked(line, kind, check) for party, line in lines.items()}

    async def gather(
        self,
        kind: type[M],
        *,
        check: Check[M] | None = None,
        senders: Collection[str] | None = None,
        at_least: int | None = None,
    ) -> Gathered[M]:
        """What those reported who did."""
        asked = [party for party in self.parties if senders is None or party in senders]
        lines = self.transcript.by_parties(self.name, kind.step, asked)
        messages = {party: self._checked(line, kind, check) for party, line in lines.items()}
        silent = tuple(party for party in asked if party not in messages)
        signed = {party: line.opened.raw for party, line in lines.items()}
        expected = self.most if senders is None else None
        check_enough(messages, asked, self.needed(senders, at_least), expected=expected)
        return Gathered(messages, silent, {}, signed)

    async def confided(self, kind: type[M], *, check: Check[M] | None = None) -> dict[str, M]:  # noqa: ARG002
        """What was confided is in no transcript; only what was made of it is."""
        raise DoesNotHold(
            f"transcript.jsonl: step {kind.step!r} was sent to the coordinator alone, so what "
            "follows from it cannot be checked"
        )

    async def hand_out(self, messages: Mapping[str, Message]) -> None:
        """What was written to single parties is in no transcript."""

    async def announce(self, message: Message) -> None:
        """What was announced must be what follows."""
        line, recorded = self.transcript.announced(self.name, type(message))
        if encode(recorded) != encode(message):
            raise line.wrong("it differs from what replaying the earlier messages gives")

    async def announce_made(
        self,
        kind: type[M],
        make: Callable[[], Awaitable[M]],  # noqa: ARG002  (only the coordinator could)
        *,
        check: Check[M],
    ) -> M:
        """What the coordinator announced; of how it came about, only that it passes the check."""
        self.transcript.pass_over(self.name, itself=False)
        line, _ = self.transcript.announced(self.name, kind)
        return self._checked(line, kind, check)

    def _checked(self, line: Line, kind: type[M], check: Check[M] | None) -> M:
        message = line.message(kind)
        if check is not None:
            try:
                check(message)
            except ValueError as error:
                raise line.wrong(str(error)) from None
        return message
