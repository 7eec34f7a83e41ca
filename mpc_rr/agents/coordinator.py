"""The coordinator: gathers the parties, routes their rounds, and pronounces the verdict.

Life cycle (the only place with explicit states)::

    LOBBY ──► ROSTER ──► ROUNDS ──► VERDICT ──► CLOSED
      │          │ ▲        │          ▲
      │          ▼ └────────┤          │      a party is lost before the point of no return:
      └──────────┴──────────┴──────────┘      ROUNDS → ROSTER with those who remain

It learns what everybody learns: who takes part, and the result. It cannot read the shares it
routes. It is trusted to finish; not to keep secrets, and not to be honest: parties check it.
"""

import asyncio
import contextlib
import dataclasses
import logging
import math
import re
from collections import deque
from collections.abc import Callable, Collection
from functools import partial
from typing import ClassVar, assert_never

import msgspec

from mpc_rr.agents.handing_out import Desk, Said
from mpc_rr.agents.outcome import MOVES, Outcome, Progress, State
from mpc_rr.agents.pass_desk import PassDesk
from mpc_rr.agents.roster import (
    join_claim,
    roster_digest,
    run_id,
    session_name,
)
from mpc_rr.agents.seats import Seat, Seats
from mpc_rr.crypto.admission import Pass
from mpc_rr.crypto.identity import Identity, PublicIdentity
from mpc_rr.errors import (
    BrokerError,
    Dropout,
    Misconduct,
    MpcRrError,
    StudyError,
    listing,
    one_line,
)
from mpc_rr.network.envelope import (
    COORDINATOR,
    EVERYONE,
    LOBBY_SESSION,
    VERDICT_SESSION,
    WIRE_VERSION,
    Header,
    Message,
    is_party_name,
)
from mpc_rr.network.fairness import FairQueue
from mpc_rr.network.lifecycle import (
    LOBBY_STEPS,
    Exclusion,
    Goodbye,
    Hello,
    Invitation,
    Join,
    LobbyNews,
    Member,
    Objection,
    Opening,
    Passes,
    Refusal,
    ResultSeen,
    Roster,
    RosterSeen,
    ShowPass,
    TranscriptWanted,
    Verdict,
    Welcome,
)
from mpc_rr.network.mailbox import Mailbox
from mpc_rr.network.sealed import Opened, Rejected, write
from mpc_rr.network.session import Limits
from mpc_rr.network.session.live import LiveSession
from mpc_rr.network.transport import Transport
from mpc_rr.publication.ending import Ending, checked_ending
from mpc_rr.randomness import Randomness
from mpc_rr.study.definition import Study

LOGGER = logging.getLogger("mpc_rr.coordinator")
ADDRESS = re.compile(r"[a-z0-9_/-]{1,128}")
FAREWELL_S = 10.0
INTERRUPTED_S = 2.0
TOO_LATE = "the roster is closed: the study has begun without this party"
TOO_LATE_AGAIN = (
    "the roster is closed, and a party of this name is in it; if it was this one, it cannot come "
    "back into a study that has begun"
)
INTERRUPTED = "the coordinator was interrupted"
GONE = "{} was gone before the study began"
NOBODY_JOINED = (
    "some asked for the study and were invited, and none has joined; may this user write to their "
    "mailboxes, and may they read them? (docs/brokers.md)"
)
GIVEN_AWAY = (
    "it was not heard of for a while, and someone else has taken the place under its name; choose "
    "another"
)
HELLO_BYTES = 8 * 2**20
"""What hellos may take that wait for an answer."""
ANSWERS_UNDER_WAY = 256
"""So many answers to people who have not joined wait to be published; others must ask again."""
LOOK_AGAIN_S = 1.0
"""How often to look whether one whose seat is claimed is there, when all seats are taken."""
NEWS_S = 10.0
"""How often those who wait in the lobby hear how many there are."""
MOST_LINES = 8
"""So many lines on who came and went are logged in that time; the others are counted."""
WORDS_KEPT = 1024
"""Of so many who left last it is known by which words they had joined."""


Sign = Callable[[str, msgspec.Struct], bytes]
"""Signs a statement on a whole run, for a step."""


class _LobbyFull(Exception):
    """News: the expected number of parties has joined."""


class _Objected(StudyError):
    """News: a party stops, because of what somebody did."""

    def __init__(self, by: str, objection: Objection) -> None:
        super().__init__(objection.reason, [by])
        self.by, self.objection = by, objection


class _Dispute(StudyError):
    """Two parties contradict each other and nobody can tell who lies."""


class _Failed(StudyError):
    """The protocol cannot go on, and nobody else is to blame."""


class _GivenUp(MpcRrError):
    """News: whoever runs this coordinator does not want it to wait any longer."""


class Coordinator:
    """Runs one study once."""

    session_kind: ClassVar[type[LiveSession]] = LiveSession

    def __init__(
        self,
        study: Study,
        transport: Transport,
        rng: Randomness,
        *,
        withdrawn: Collection[bytes] = (),
    ) -> None:
        self.study = study
        self._rng = rng
        self._identity = Identity(rng.fork("identity"))
        nonce = rng.fork("run").bytes(16)
        self._invitation = Invitation(self._identity.public, study.digest, nonce, answers=b"")
        self._transport = transport
        self._protocol = study.protocol
        self.mailbox = Mailbox(
            COORDINATOR,
            self._identity,
            transport,
            study=study.name,
            ask_again_s=study.deadlines.ask_again_s,
            size_limit=study.largest_message_bytes,
        )
        self.mailbox.told_at = logging.INFO
        self.mailbox.run = run_id(self._invitation)
        self.mailbox.open_handlers = {Hello.step: self._on_hello, Join.step: self._on_join}
        if study.registrar is not None:
            self.mailbox.open_handlers[ShowPass.step] = self._on_pass
        self.desk = PassDesk(study, withdrawn)
        self.mailbox.handlers[Objection.step] = self._on_objection
        secret = rng.fork("handing out").bytes(32)
        self._handing_out = Desk(self.mailbox, study.parties.count, secret)
        self.mailbox.handlers[TranscriptWanted.step] = self._on_wanted
        self.mailbox.on_other_version = self._on_hello
        self._state = State.LOBBY
        self._hellos: FairQueue[Opened] = FairQueue(HELLO_BYTES, rng.fork("hellos").bytes(32))
        self._hello_came = asyncio.Event()
        self._answers_under_way = 0
        self._room_for_answers = asyncio.Event()
        self._seats = Seats(transport)
        self._welcomes: set[PublicIdentity] = set()
        """Whose admission is under way to them."""
        self._objected: set[str] = set()
        self._left: deque[bytes] = deque(maxlen=WORDS_KEPT)
        """The signed joins of those who left the lobby by their own word: each counts once."""
        self._lines = 0
        """How many on who came and went were due since it was last told how many are there."""
        self._excluded: list[Exclusion] = []
        self._left_out: dict[str, Seat] = {}
        """Those who were in the first roster and are not in the newest: they hear the verdict."""
        self._another = self._invited = False
        self._trouble = ""
        """Of the last who did not come, or did not stay: why."""
        self.keep: Callable[[Outcome], None] = lambda _outcome: None
        """Is given a finished study before anybody is told of it, to put it in a safe place."""
        self.closing: Callable[[Outcome, Sign], bytes] = lambda _outcome, _sign: b""
        """Makes what is signed of a finished study for parties that ask for its transcript."""
        self._versions_named: set[int] = set()
        self._attempt, self._begun_at = 0, math.inf
        self._cause = ""
        """In the verdict: why there is no result."""

    @property
    def fingerprint(self) -> str:
        """By which parties can make sure they talk to this coordinator."""
        return self._identity.public.fingerprint

    @property
    def progress(self) -> Progress:
        """Where the study stands now."""
        step, arrived, wanted = self.mailbox.waiting()
        return Progress(
            self._state,
            len(self._seats),
            self.study.parties.count,
            self._attempt,
            step,
            arrived,
            wanted,
            self.mailbox.messages,
            self.mailbox.bytes,
            *self.mailbox.watched,
        )

    async def run(self) -> Outcome:
        """The whole study: lobby, roster, rounds, verdict. Returns how it ended."""
        self.study.check_open()
        async with self.mailbox:
            self.mailbox.spawn(self._answer_hellos)
            members: tuple[str, ...] = ()
            try:
                members = await self._lobby()
                result, members = await self._attempts(members)
            except StudyError as fault:
                return await self._failed(fault, members)
            except _GivenUp as why:
                return await self._failed(_Failed(str(why)), members)
            except BrokerError as lost:
                self._pronounce(Verdict(False, one_line(str(lost)), (), b"", {}, ()))
                return self._outcome(lost_to=str(lost), members=members)
            except asyncio.CancelledError:
                await self._interrupted()
                ended = self._outcome(lost_to=INTERRUPTED, members=members)
                return dataclasses.replace(ended, interrupted=True)
            except Exception as error:  # noqa: BLE001  (whatever it is, nobody waits in vain)
                crash = _Failed(f"the coordinator's program failed ({_named(error)})")
                crash.__cause__ = error
                return await self._failed(crash, members)
            seen, unconfirmed = await self._results_seen(result, members)
            verdict = Verdict(True, "", (), result.digest, seen, unconfirmed)
            result = msgspec.structs.replace(result, unconfirmed=unconfirmed)
            return await self._conclude(verdict, result, members)

    async def _failed(self, fault: StudyError, members: tuple[str, ...]) -> Outcome:
        """Tell everybody why there is no result."""
        verdict = Verdict(False, one_line(str(fault)), fault.culprits, b"", {}, ())
        ended = await self._conclude(verdict, None, members)
        return dataclasses.replace(ended, fault=fault.__cause__)

    def sign(self, step: str, statement: msgspec.Struct) -> bytes:
        """A signed statement on the whole run, for whoever reads its results."""
        return _signed(self.mailbox, step, statement)

    def give_up(self, why: str) -> None:
        """Wait for no more parties, and tell those who are there why."""
        self.mailbox.interrupt(_GivenUp(why))

    def cut_short(self, cause: str) -> Outcome:
        """How it ended, where it could not begin, or was stopped before it came to its own end.

        Nobody is told, but as after every end there is a verdict in the transcript. If it had
        pronounced one already, that is how it ended.
        """
        if self.mailbox.verdict is None:
            self._pronounce(Verdict(False, one_line(cause), (), b"", {}, ()))
            self._cause = cause
        return self._known(lost_to=self._cause, members=())

    async def _interrupted(self) -> None:
        """Somebody stopped this coordinator: tell the parties, if that can be done quickly."""
        _go_on()
        raw = self._pronounce(Verdict(False, INTERRUPTED, (), b"", {}, ()))
        with contextlib.suppress(MpcRrError, TimeoutError):
            async with asyncio.timeout(INTERRUPTED_S):
                await self.mailbox.post(VERDICT_SESSION, Verdict.step, EVERYONE, raw)

    def _enter(self, state: State) -> None:
        assert state in MOVES[self._state], f"{self._state} → {state}"
        self._state = state

    # ── Lobby ──────────────────────────────────────────────────────────────────────────────────

    async def _lobby(self) -> tuple[str, ...]:
        """Wait until the expected number is there or the deadline has passed."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self.study.deadlines.lobby_s
        news, doubt = asyncio.create_task(self._tell_news()), False
        try:
            while True:
                left_s = max(deadline - loop.time(), 0)
                wait_s = min(left_s, LOOK_AGAIN_S) if doubt else left_s
                try:
                    await self.mailbox.wait_for_news(LOBBY_SESSION, Join.step, wait_s)
                except (_LobbyFull, Dropout) as closing:
                    gone = self._let_go_of_the_gone()
                    full = len(self._seats) == self.study.parties.count
                    doubt = full and self._seats.in_doubt(loop.time())
                    over = isinstance(closing, Dropout) and wait_s == left_s
                    if over or (full and not doubt):
                        self._excluded = [Exclusion(name, GONE.format(name)) for name in gone]
                        there, expected = len(self._seats), self.study.parties.count
                        LOGGER.info("the roster is closed with %d of %d parties", there, expected)
                        return self._seats.names
                except StudyError as fault:  # whoever leaves now was never in: her seat is free
                    self._trouble = one_line(f"{listing(fault.culprits)} left: {fault}")
                    self._log(logging.INFO, self._trouble)
                    for name in fault.culprits:
                        if name in self._seats:
                            self._left.append(self._seats[name].raw)
                        self._vacate(name)
        finally:
            news.cancel()
            self.mailbox.drop_news(_LobbyFull)  # it may have been full more than once
            self.mailbox.drop_news(_GivenUp)

    async def _tell_news(self) -> None:
        """Tell those who wait that this coordinator is there, and how many they are."""
        while True:
            await asyncio.sleep(NEWS_S)
            there, more = len(self._seats), self._lines - MOST_LINES
            others = f"; {more} more came and went" if more > 0 else ""
            LOGGER.info("%d of %d parties are there%s", there, self.study.parties.count, others)
            self._lines = 0
            with contextlib.suppress(BrokerError):
                await self.mailbox.tell(LOBBY_SESSION, EVERYONE, LobbyNews(len(self._seats)))

    def _log(self, level: int, line: str) -> None:
        """Say who came and went: now and then, as one may come and go as often as one likes."""
        self._lines += 1
        if self._lines <= MOST_LINES:
            LOGGER.log(level, "%s", line)

    def _let_go_of_the_gone(self) -> list[str]:
        """The seats of those who are not there any more are free again."""
        gone = self._seats.gone(self.mailbox.now())
        for name in gone:
            self._vacate(name)
            self._trouble = GONE.format(name)
            self._log(logging.WARNING, f"{self._trouble}: its seat is free again")
        return gone

    def _vacate(self, name: str) -> None:
        """Forget who sat there: whoever comes and goes costs nothing that stays."""
        if name in self._seats:
            self.desk.leave(name, self._seats.give_back(name).identity)
        self.mailbox.dismiss(name)
        self.mailbox.forget(name, LOBBY_STEPS)
        self._objected.discard(name)

    # Hellos come from anybody, and prove nothing (each may be an old one): nothing is kept of them
    # but that they wait for an answer, and they are answered when there is room for it. Names are
    # given, and keys examined, on join.

    def _on_hello(self, opened: Opened) -> None:
        if opened.envelope.header.step != Hello.step:
            raise Rejected("other version")
        hello, name = opened.message(Hello), opened.envelope.header.sender
        if not is_party_name(name) or not ADDRESS.fullmatch(hello.reply_to):
            raise Rejected("malformed")
        if opened.envelope.header.version == WIRE_VERSION or self.mailbox.came_from:
            self._check_origin(hello.reply_to)
        lane = self.mailbox.came_from
        lane = hello.reply_to.partition("/")[0] if lane is None else lane
        lost = self._hellos.put(lane, opened, len(opened.raw))
        if lost:
            self.mailbox.rejected["flooding"] += lost
        self._hello_came.set()

    def _check_origin(self, reply_to: str) -> None:
        """Answers go where the question came from, if that is known.

        Else one connection could fill all lanes, and have us write to whom it likes.
        """
        if self.mailbox.came_from not in (None, reply_to.partition("/")[0]):
            raise Rejected("other mailbox")

    async def _answer_hellos(self) -> None:
        while True:
            while len(self._hellos):
                while self._answers_under_way >= ANSWERS_UNDER_WAY:
                    self._room_for_answers.clear()
                    await self._room_for_answers.wait()
                try:
                    self._answer_hello(self._hellos.get())
                except Rejected as rejected:
                    self.mailbox.rejected[rejected.reason] += 1
                await asyncio.sleep(0)
            self._hello_came.clear()
            await self._hello_came.wait()

    def _answer_hello(self, opened: Opened) -> None:
        hello, header = opened.message(Hello), opened.envelope.header
        if header.run or not opened.signed_by(hello.identity):
            raise Rejected("bad signature")
        if header.version != WIRE_VERSION:
            self._name_version(hello, header)
        elif self._state is not State.LOBBY and header.sender not in self._seats:
            self._refuse(hello.identity, hello.reply_to, header.sender, TOO_LATE)
        else:
            invitation = msgspec.structs.replace(
                self._invitation,
                answers=hello.identity.digest,
                piece_bytes=self._transport.payload_bytes,
            )
            self._invited = True
            self._answer(hello.reply_to, header.sender, invitation)

    def _name_version(self, hello: Hello, header: Header) -> None:
        """Tell a party of another version why it is not heard, in its own version."""
        reason = (
            f"its program speaks version {header.version} of the wire, this coordinator version "
            f"{WIRE_VERSION}: all must have programs of the same"
        )
        if header.version not in self._versions_named:
            self._versions_named.add(header.version)
            self._trouble = f"{header.sender}, perhaps among others, is turned away: {reason}"
            LOGGER.warning("%s", self._trouble)
        refusal = Refusal(self._identity.public, reason, hello.identity.digest)
        other = msgspec.structs.replace(
            header,
            session=LOBBY_SESSION,
            step=Refusal.step,
            sender=COORDINATOR,
            target=header.sender,
        )
        self._publish_answer(hello.reply_to, write(other, refusal, self._identity))

    def _on_join(self, opened: Opened) -> None:
        join, header = opened.message(Join), opened.envelope.header
        name = header.sender
        if not is_party_name(name) or not ADDRESS.fullmatch(join.reply_to):
            raise Rejected("malformed")
        self._check_origin(join.reply_to)
        if header.session != LOBBY_SESSION:
            raise Rejected("other session")
        if opened.raw in self._left:
            raise Rejected("duplicate")
        if not opened.signed_by(join.identity):
            raise Rejected("bad signature")
        if header.run != self.mailbox.run:
            self._notice_another()
        if self._state is State.LOBBY and self.desk.lacks(name, join.identity):
            fault = self.desk.fault_of(name, join.identity)
            if fault is None:
                raise Rejected("no pass")  # it may have been overtaken: both will be sent again
            self._refuse(join.identity, join.reply_to, name, fault)
            return
        reason = self._why_not(name, join)
        if reason is not None:
            self._refuse(join.identity, join.reply_to, name, reason)
        elif self._makes_room(name, join.identity):
            self._admit(name, Seat(join.identity, join.reply_to, opened.raw))

    def _notice_another(self) -> None:
        """Somebody joins another run: of an earlier coordinator, or of a second one.

        Who, is not said: anybody may write any name there.
        """
        if not self._another:
            self._another = True
            self._trouble = (
                "someone joins another run of this study: does a second coordinator use this "
                "broker?"
            )
            LOGGER.warning("%s", self._trouble)
        raise Rejected("other run")

    def _makes_room(self, name: str, identity: PublicIdentity) -> bool:
        """Let those give way who are gone; not before it is known of all who are in the way."""
        others = self._in_the_way(name, identity)
        if None in [self._seats.still_there(n, identity, self.mailbox.now()) for n in others]:
            return False  # it will ask again, and then we shall know
        for taken in others:
            self._log(logging.WARNING, f"{taken} is gone and gives way to one who has come again")
            seat = self._seats[taken]
            self._refuse(seat.identity, seat.address, taken, GIVEN_AWAY)
            self._vacate(taken)
        return True

    def _in_the_way(self, name: str, identity: PublicIdentity) -> list[str]:
        """Others who sit where this one wants to: by their name, or as the same person."""
        seats = {n: self._seats.get(n) for n in (name, self.desk.joined_as(name, identity)) if n}
        return [n for n, seat in seats.items() if seat is not None and seat.identity != identity]

    def _on_pass(self, opened: Opened) -> None:
        """Keep a pass until its party joins, who is told of a bad one."""
        identity, header = opened.message(ShowPass).identity, opened.envelope.header
        if header.run != self.mailbox.run or not is_party_name(header.sender):
            raise Rejected("unknown sender")
        if header.session != LOBBY_SESSION or self._state is not State.LOBBY:
            raise Rejected("other session")  # what was shown when the roster was closed stands
        if not opened.signed_by(identity):
            raise Rejected("bad signature")
        self.desk.show(opened, self.mailbox.run)

    def _why_not(self, name: str, join: Join) -> str | None:
        """Why this party cannot join, or None if it can (or has already, or may have to wait)."""
        seat = self._seats.get(name)
        if seat is not None and seat.identity == join.identity:
            twice = "two processes use one identity; each party needs its own"
            return None if seat.address == join.reply_to else twice
        if self._state is not State.LOBBY:
            return TOO_LATE if seat is None else TOO_LATE_AGAIN
        return self._wrong_with_keys(name, join) or self._no_seat_for(name, join.identity)

    def _wrong_with_keys(self, name: str, join: Join) -> str | None:
        if not join.identity.usable:
            return "its keys cannot be used"
        claim = join_claim(self.mailbox.run, name, join.identity)
        if not self._identity.possesses(join.identity.sealing, claim, join.possession):
            return "it does not prove that its keys are its own"
        return None

    def _no_seat_for(self, name: str, identity: PublicIdentity) -> str | None:
        others = self._in_the_way(name, identity)
        there = [n for n in others if self._keeps_seat(n, name, identity)]
        if there:
            named = f"another party is already called {name!r}; choose another"
            return named if name in there else "this person takes part already, under another name"
        if len(self._seats) - len(others) >= self.study.parties.count:
            return "the roster is closed: the study is full"
        return "its keys are another party's" if self._seats.has_key_of(identity) else None

    def _keeps_seat(self, taken: str, name: str, identity: PublicIdentity) -> bool:
        """Whether who sits there does not give way: she is there, or surely somebody else."""
        sitting = (taken, self._seats[taken].identity)
        if not self.desk.may_be_one(sitting, (name, identity)):
            return True
        return bool(self._seats.still_there(taken, identity, self.mailbox.now()))

    def _admit(self, name: str, seat: Seat) -> None:
        if name not in self._seats:
            self._seats.take(name, seat)
            self.desk.join(name, seat.identity)
            self.mailbox.keys[name] = seat.identity
            LOGGER.debug("%s joined", name)
            if len(self._seats) == self.study.parties.count:
                self.mailbox.interrupt(_LobbyFull())
        if seat.identity not in self._welcomes:  # else one is under way: who repeats it hears that
            self._welcomes.add(seat.identity)
            self.mailbox.spawn(self._welcome, name, seat.identity)

    async def _welcome(self, name: str, identity: PublicIdentity) -> None:
        """Tell a party that it is in; of one that has left meanwhile nothing is kept."""
        try:
            if self.mailbox.keys.get(name) == identity:
                await self.mailbox.tell(LOBBY_SESSION, name, Welcome(identity.fingerprint))
        finally:
            self._welcomes.discard(identity)
        if name not in self.mailbox.keys:
            self.mailbox.forget(name, LOBBY_STEPS)

    def _refuse(self, identity: PublicIdentity, address: str, name: str, reason: str) -> None:
        refusal = Refusal(self._identity.public, reason, identity.digest)
        self._answer(address, name, refusal)

    def _answer(self, address: str, name: str, message: Message) -> None:
        """Write to somebody who is not in the roster, or not yet."""
        if self._answers_under_way < ANSWERS_UNDER_WAY:
            raw = self.mailbox.write(LOBBY_SESSION, message.step, name, message)
            self._publish_answer(address, raw)

    def _publish_answer(self, address: str, raw: bytes) -> None:
        self._answers_under_way += 1
        self.mailbox.spawn(self._published_answer, address, raw)

    async def _published_answer(self, address: str, raw: bytes) -> None:
        try:
            with contextlib.suppress(BrokerError):  # those who matter notice it themselves
                await self._transport.answer(address, raw)
        finally:
            self._answers_under_way -= 1
            self._room_for_answers.set()

    # ── Roster and rounds ──────────────────────────────────────────────────────────────────────

    async def _attempts(self, members: tuple[str, ...]) -> tuple[Ending, tuple[str, ...]]:
        """Try until the protocol ends well or too few are left; lost parties are left out."""
        self.mailbox.transcribe(
            self.mailbox.write(LOBBY_SESSION, Invitation.step, EVERYONE, self._invitation)
        )
        for name in members:
            seat = self._seats[name]
            self.mailbox.transcribe(seat.raw)
            for raw in self.desk.raw(name, seat.identity):
                self.mailbox.transcribe(raw)
        while True:
            self._check_enough(members)
            self._attempt += 1
            session = self._session(members)
            try:
                return await self._one_attempt(session), members
            except (Dropout, Misconduct, _Objected) as news:
                fault = self._judge(session, news)
            over = session.past_return or not self.study.needs_roster
            if over or not fault.culprits or isinstance(fault, _Dispute):
                raise fault
            self._exclude(fault)
            members = tuple(name for name in members if name not in fault.culprits)

    def _exclude(self, fault: StudyError) -> None:
        """Leave parties out, and listen to them no more."""
        LOGGER.info("%s", one_line(str(fault)))
        for name in fault.culprits:
            if name in self._seats:
                self._left_out[name] = self._seats.give_back(name)
            self._excluded.append(Exclusion(name, one_line(str(fault))))
            self.mailbox.dismiss(name)

    def _session(self, members: tuple[str, ...]) -> LiveSession:
        name = session_name(self._attempt)
        parties, deadlines = self.study.parties, self.study.deadlines
        limits = Limits(
            parties.fewest, parties.count, deadlines.round_s, deadlines.patience_s,
            registrar=self.study.registrar is not None, comparable=self.study.comparable,
        )  # fmt: skip
        return self.session_kind(
            self.mailbox, name, members, self._rng.fork(name), limits, self._pass_of
        )

    def _pass_of(self, party: str) -> Pass | None:
        return self.desk.shown_by(party, self.mailbox.keys[party])

    async def _one_attempt(self, session: LiveSession) -> Ending:
        self._enter(State.ROSTER)
        self._begun_at = min(self._begun_at, self.mailbox.now())
        self.mailbox.session_root = session.name
        self.mailbox.forget_earlier_attempts()
        roster = Roster(
            self._attempt,
            tuple(Member(name, self.mailbox.keys[name]) for name in session.parties),
            tuple(self._excluded),
        )
        if self.study.needs_roster:
            await self._show_roster(session, roster)
        else:
            await self._open(session, roster)
        self._enter(State.ROUNDS)
        protocol = session.sub(self.study.protocol.name)
        try:
            return checked_ending(await self._protocol.coordinator(protocol, self.study.schema))
        except MpcRrError as error:
            if isinstance(error, StudyError):
                raise
            raise _Failed(f"the study cannot go on: {error}") from error
        except Exception as error:
            what = f"the protocol {self._protocol.name!r} failed: {_named(error)}"
            raise _Failed(what) from error

    async def _show_roster(self, session: LiveSession, roster: Roster) -> None:
        """Show everybody who takes part, and have them compare it."""
        raw = await self.mailbox.tell(session.name, EVERYONE, roster)
        self.mailbox.catch_up = raw
        self.mailbox.transcribe(raw)
        if self.study.registrar is not None:
            passes = {name: session.pass_of(name) for name in session.parties}
            await session.announce(Passes({n: shown for n, shown in passes.items() if shown}))
        digest = roster_digest(roster)

        def same(seen: RosterSeen) -> None:
            if seen.digest != digest:
                raise ValueError("it names another roster than the one I sent")

        await session.relay(RosterSeen, check=same)

    async def _open(self, session: LiveSession, roster: Roster) -> None:
        """Where parties only report, nobody needs the others' keys: the roster's digest will do."""
        opening = Opening(len(roster.members), roster_digest(roster))
        raw = await self.mailbox.tell(session.name, EVERYONE, opening)
        self.mailbox.catch_up = raw
        self.mailbox.transcribe(self.mailbox.write(session.name, Roster.step, EVERYONE, roster))
        self.mailbox.transcribe(raw)

    def _check_enough(self, members: tuple[str, ...]) -> None:
        fewest, count = self.study.parties.fewest, self.study.parties.count
        if len(members) >= fewest:
            return
        cause = f"only {len(members)} of {count} parties are there, at least {fewest} are needed"
        if self._attempt == 0:
            lobby_s = self.study.deadlines.lobby_s
            opened_at = self.mailbox.now() - lobby_s
            cut_off, crowded = (
                self._transport.cut_off(opened_at), self._transport.crowded(opened_at),
            )  # fmt: skip
            unread = "" if members or crowded or not self._invited else NOBODY_JOINED
            known = (self._trouble or unread, cut_off, crowded)
            whys = "".join(f": {why}" for why in known if why)
            raise Dropout(f"{cause}; the lobby closed after {lobby_s:g} s{whys}")
        lost = [exclusion.name for exclusion in self._excluded]
        raise Dropout(f"{cause}: {self._excluded[-1].reason}", lost)

    def _on_objection(self, opened: Opened) -> None:
        by, said = opened.envelope.header.sender, opened.message(Objection)
        if by in self._objected:
            raise Rejected("duplicate")
        self._objected.add(by)
        said = msgspec.structs.replace(said, reason=one_line(said.reason))
        self.mailbox.interrupt(_Objected(by, said))

    def _judge(self, session: LiveSession, news: Dropout | Misconduct | _Objected) -> StudyError:
        """Turn what was noticed or objected into a fault with culprits."""
        match news:
            case Dropout() | Misconduct():
                return news
            case _Objected():
                pass
            case _:
                assert_never(news)
        by, said = news.by, news.objection
        routed = self.mailbox.routed.get((said.at_session, said.at_step), {})
        if said.against not in session.parties or by not in routed.get(said.against, {}):
            # Only a sealed parcel can be bad without the coordinator seeing it.
            return Dropout(f"{by} left: {said.reason}", [by])
        if session.at_fault(said.at_session, said.at_step, said.against, by):
            return Misconduct(f"{by} found, and I confirm: {said.reason}", [said.against])
        return _Dispute(
            f"{by} objects to {said.against}: {said.reason}; either may be lying",
            [by, said.against],
        )

    # ── Verdict ────────────────────────────────────────────────────────────────────────────────

    async def _results_seen(
        self, result: Ending, members: tuple[str, ...]
    ) -> tuple[dict[str, bytes], tuple[str, ...]]:
        """The parties' signed digests of the result, and who sent none, or another.

        The result is everybody's already: whoever falls silent, objects or lies now is named as
        not having confirmed it, and can spoil nothing. Nor can a broker that is gone, or Ctrl-C.
        """
        if not self.study.needs_roster:
            return {}, ()  # no party has the others' keys; whoever has the transcript can check
        loop, session = asyncio.get_running_loop(), self.mailbox.session_root
        deadline = loop.time() + self.study.deadlines.round_s
        doubtful = set(result.lost)
        while True:
            waiting = [name for name in members if name not in doubtful]
            try:
                left_s = max(deadline - loop.time(), 0)
                await self.mailbox.await_all(session, ResultSeen.step, waiting, left_s)
            except Dropout as dropout:
                doubtful |= set(dropout.missing)
                break
            except StudyError as news:
                doubtful |= set(news.culprits)
                continue
            except BrokerError:
                return {}, members
            except asyncio.CancelledError:
                _go_on()
                return {}, members
            break
        present = [name for name in members if name not in doubtful]
        arrived = self.mailbox.take(session, ResultSeen.step, present)
        digest = result.digest
        for_us = {n: o for n, o in arrived.items() if o.envelope.header.target == COORDINATOR}
        seen = {n: opened.raw for n, opened in for_us.items() if _digest_seen(opened) == digest}
        return seen, tuple(name for name in members if name not in seen)

    async def _conclude(
        self, verdict: Verdict, result: Ending | None, members: tuple[str, ...]
    ) -> Outcome:
        """Announce the verdict. Neither a broker that is gone nor Ctrl-C takes the result away."""
        raw = self._pronounce(verdict)
        if result is not None:
            concluded = self._concluded(verdict, result, members)
            self.keep(concluded)
            self._handing_out.open(partial(_said, self.closing, concluded, self.mailbox))
        lost = result.lost if result else ()
        gone = {*verdict.culprits, *verdict.unconfirmed, *lost, *self._objected}
        awaited = [name for name in self._seats.names if name not in gone]
        if self._transport.cut_off(self._begun_at) is not None:  # perhaps it was only we
            awaited = sorted({*self._seats.names, *self._left_out} - {*lost, *self._objected})
        self._listen_to_all()
        try:
            await self.mailbox.post(VERDICT_SESSION, Verdict.step, EVERYONE, raw)
            await self._farewell(tuple(awaited))
            await self._handing_out.close()
        except BrokerError:
            pass
        except asyncio.CancelledError:  # Ctrl-C now means: wait no longer
            _go_on()
        self._enter(State.CLOSED)
        return self._concluded(verdict, result, members)

    def _listen_to_all(self) -> None:
        """Now that it is over, those who were left out may ask how it ended, too."""
        for name, seat in self._left_out.items():
            self.mailbox.keys[name] = seat.identity
            self._transport.route(name, seat.address)

    def _on_wanted(self, opened: Opened) -> None:
        """She asks from where she sits: others may have kept what she signed, and repeat it."""
        name = opened.envelope.header.sender
        seat = self._seats.get(name) or self._left_out.get(name)
        if seat is not None:
            self._check_origin(seat.address)
        self._handing_out.on_wanted(opened)

    def _concluded(
        self, verdict: Verdict, result: Ending | None, members: tuple[str, ...]
    ) -> Outcome:
        known = self._known(lost_to=verdict.cause, members=members)
        return dataclasses.replace(
            known, result=result, culprits=verdict.culprits, unconfirmed=verdict.unconfirmed
        )

    def _pronounce(self, verdict: Verdict) -> bytes:
        """Enter the verdict in the transcript; from now on everybody who asks is told it."""
        self._enter(State.VERDICT)
        if not verdict.done:
            self.mailbox.session_root = VERDICT_SESSION
        raw = self.mailbox.write(VERDICT_SESSION, Verdict.step, EVERYONE, verdict)
        self.mailbox.verdict, self._cause = raw, verdict.cause
        self.mailbox.transcribe(raw)
        LOGGER.info("the study is %s", "done" if verdict.done else f"over: {verdict.cause}")
        return raw

    def _outcome(self, *, lost_to: str, members: tuple[str, ...]) -> Outcome:
        """How it ended, without a result yet; ``lost_to`` says why there is none."""
        self._enter(State.CLOSED)
        return self._known(lost_to=lost_to, members=members)

    def _known(self, *, lost_to: str, members: tuple[str, ...]) -> Outcome:
        return Outcome(
            result=None,
            cause=lost_to,
            culprits=(),
            members=members,
            excluded=tuple(self._excluded),
            unconfirmed=(),
            attempts=self._attempt,
            run=self.mailbox.run,
            identity=self._identity.public,
            transcript=tuple(self.mailbox.transcript),
            traffic=self.mailbox.traffic,
            round_seconds=self.mailbox.round_seconds,
            rejected=self.mailbox.rejected,
        )

    async def _farewell(self, parties: tuple[str, ...]) -> None:
        """Stay until everybody has the verdict, so that whoever missed it can ask again."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + min(
            FAREWELL_S, self.study.deadlines.round_s, self.study.deadlines.patience_s
        )
        parties = tuple(name for name in parties if name in self.mailbox.keys)
        while (left_s := deadline - loop.time()) > 0:
            try:
                await self.mailbox.await_all(VERDICT_SESSION, Goodbye.step, parties, left_s)
            except Dropout:
                return
            except StudyError:
                continue  # an objection now changes nothing any more
            return


def _signed(mailbox: Mailbox, step: str, statement: msgspec.Struct) -> bytes:
    return mailbox.write(VERDICT_SESSION, step, EVERYONE, statement)


def _said(closing: Callable[[Outcome, Sign], bytes], ended: Outcome, mailbox: Mailbox) -> Said:
    """What is handed out of a study that is done."""
    return Said(closing(ended, partial(_signed, mailbox)), ended.transcript)


def _go_on() -> None:
    """Somebody cancelled this task. It has something to do yet: nothing that it knows is lost."""
    task = asyncio.current_task()
    if task is not None:
        task.uncancel()


def _named(error: Exception) -> str:
    """What went wrong in a program, in a line."""
    return one_line(f"{type(error).__name__}: {error}".rstrip(": "))


def _digest_seen(opened: Opened) -> bytes | None:
    try:
        return opened.message(ResultSeen).digest
    except Rejected:
        return None
