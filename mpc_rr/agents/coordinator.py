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
import re
from typing import ClassVar, assert_never

import msgspec

from mpc_rr.agents.outcome import MOVES, Outcome, Progress, State
from mpc_rr.agents.pass_desk import PassDesk
from mpc_rr.agents.roster import is_party_name, roster_digest, run_id, session_name
from mpc_rr.crypto.admission import Pass
from mpc_rr.crypto.identity import Identity, PublicIdentity
from mpc_rr.errors import (
    BrokerError,
    Dropout,
    Misconduct,
    MpcRrError,
    StudyError,
    one_line,
)
from mpc_rr.network.envelope import COORDINATOR, EVERYONE, LOBBY_SESSION, VERDICT_SESSION, Message
from mpc_rr.network.lifecycle import (
    Exclusion,
    Goodbye,
    Hello,
    Invitation,
    Join,
    Member,
    Objection,
    Opening,
    Passes,
    Refusal,
    ResultSeen,
    Roster,
    RosterSeen,
    ShowPass,
    Verdict,
    Welcome,
)
from mpc_rr.network.mailbox import Mailbox
from mpc_rr.network.sealed import Opened, Rejected
from mpc_rr.network.session import Limits
from mpc_rr.network.session.live import LiveSession
from mpc_rr.network.transport import Transport
from mpc_rr.publication.ending import Ending, checked_ending
from mpc_rr.randomness import Randomness
from mpc_rr.study.definition import Study

ADDRESS = re.compile(r"[a-z0-9_/-]{1,128}")
FAREWELL_S = 10.0
INTERRUPTED_S = 2.0
TOO_LATE = "the roster is closed: the study has begun without this party"
HELLOS_KEPT = 1024
"""How many hellos are remembered beyond twice the expected number: old or idle ones are lost."""


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


class Coordinator:
    """Runs one study once."""

    session_kind: ClassVar[type[LiveSession]] = LiveSession

    def __init__(self, study: Study, transport: Transport, rng: Randomness) -> None:
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
        self.mailbox.run = run_id(self._invitation)
        self.mailbox.open_handlers = {Hello.step: self._on_hello, Join.step: self._on_join}
        if study.registrar is not None:
            self.mailbox.open_handlers[ShowPass.step] = self._on_pass
        self.desk = PassDesk(study)
        self.mailbox.handlers[Objection.step] = self._on_objection
        self._state = State.LOBBY
        self._hellos: dict[PublicIdentity, tuple[str, str]] = {}
        self._joined: dict[str, bytes] = {}
        self._identities: dict[str, PublicIdentity] = {}
        self._keys_taken: set[bytes] = set()
        self._objected: set[str] = set()
        self._excluded: list[Exclusion] = []
        self._attempt = 0

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
            len(self._joined),
            self.study.parties.count,
            self._attempt,
            step,
            arrived,
            wanted,
            self.mailbox.messages,
            self.mailbox.bytes,
            self.mailbox.preview,
        )

    async def run(self) -> Outcome:
        """The whole study: lobby, roster, rounds, verdict. Returns how it ended."""
        self.study.check_open()
        async with self.mailbox:
            members: tuple[str, ...] = ()
            try:
                members = await self._lobby()
                result, members = await self._attempts(members)
                seen, unconfirmed = await self._results_seen(result, members)
            except StudyError as fault:
                verdict = Verdict(False, one_line(str(fault)), fault.culprits, b"", {}, ())
                ended = await self._conclude(verdict, None, members)
                return dataclasses.replace(ended, fault=fault.__cause__)
            except asyncio.CancelledError:
                await self._interrupted()
                raise
            verdict = Verdict(True, "", (), result.digest, seen, unconfirmed)
            result = msgspec.structs.replace(result, unconfirmed=unconfirmed)
            return await self._conclude(verdict, result, members)

    def sign(self, step: str, statement: msgspec.Struct) -> bytes:
        """A signed statement on the whole run, for whoever reads its results; nobody is sent it."""
        return self.mailbox.write(VERDICT_SESSION, step, EVERYONE, statement)

    async def _interrupted(self) -> None:
        """Somebody stopped this coordinator: tell the parties, if that can be done quickly."""
        verdict = Verdict(False, "the coordinator was interrupted", (), b"", {}, ())
        with contextlib.suppress(MpcRrError, TimeoutError):
            async with asyncio.timeout(INTERRUPTED_S):
                await self.mailbox.tell(VERDICT_SESSION, EVERYONE, verdict)

    def _enter(self, state: State) -> None:
        assert state in MOVES[self._state], f"{self._state} → {state}"
        self._state = state

    # ── Lobby ──────────────────────────────────────────────────────────────────────────────────

    async def _lobby(self) -> tuple[str, ...]:
        """Wait until the expected number has joined or the deadline has passed."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self.study.deadlines.lobby_s
        while True:
            try:
                await self.mailbox.wait_for_news(
                    LOBBY_SESSION, Join.step, max(deadline - loop.time(), 0)
                )
            except (_LobbyFull, Dropout):
                return tuple(sorted(self._joined))
            except StudyError as news:
                self._exclude(news)

    def _on_hello(self, opened: Opened) -> None:
        """Answer a hello. It proves nothing yet (it may be an old one): names are given on join."""
        hello, name = opened.message(Hello), opened.envelope.header.sender
        if not is_party_name(name) or not ADDRESS.fullmatch(hello.reply_to):
            raise Rejected("malformed")
        if opened.envelope.header.run or not opened.signed_by(hello.identity):
            raise Rejected("bad signature")
        caller = (name, hello.reply_to)
        if self._hellos.setdefault(hello.identity, caller) != caller:
            self._refuse(hello, name, "two processes use one identity; each party needs its own")
        elif self._state is not State.LOBBY and name not in self._joined:
            self._refuse(hello, name, TOO_LATE)
        else:
            answers = hello.identity.digest
            invitation = msgspec.structs.replace(self._invitation, answers=answers)
            self._answer(hello.reply_to, name, invitation)
        if len(self._hellos) > HELLOS_KEPT + 2 * self.study.parties.count:
            del self._hellos[next(iter(self._hellos))]

    def _on_join(self, opened: Opened) -> None:
        join, name = opened.message(Join), opened.envelope.header.sender
        hello_name, address = self._hellos.get(join.identity, ("", ""))
        if hello_name != name:
            raise Rejected("unknown sender")
        if opened.envelope.header.run != self.mailbox.run or not opened.signed_by(join.identity):
            raise Rejected("bad signature")
        if self.desk.lacks(join.identity):
            raise Rejected("no pass")  # it may have been overtaken: both will be sent again
        reason = self._why_not(name, join.identity)
        if reason is not None:
            self._refuse(Hello(join.identity, address), name, reason)
        else:
            self._admit(name, join.identity, address, opened.raw)

    def _on_pass(self, opened: Opened) -> None:
        """Keep a pass until its party joins; a bad one is answered at once."""
        identity, name = opened.message(ShowPass).identity, opened.envelope.header.sender
        hello_name, address = self._hellos.get(identity, ("", ""))
        if hello_name != name or opened.envelope.header.run != self.mailbox.run:
            raise Rejected("unknown sender")
        if opened.envelope.header.session != LOBBY_SESSION:
            raise Rejected("other session")
        if not opened.signed_by(identity):
            raise Rejected("bad signature")
        fault = self.desk.show(opened, self.mailbox.run)
        if fault is not None:
            self._refuse(Hello(identity, address), name, fault)

    def _why_not(self, name: str, identity: PublicIdentity) -> str | None:
        """Why this party cannot join, or None if it can (or has already)."""
        known = self._identities.get(name)
        if known == identity:
            return None
        if known is not None:
            return f"another party is already called {name!r}; choose another"
        if self._state is not State.LOBBY:
            return TOO_LATE
        if len(self._joined) == self.study.parties.count:
            return "the roster is closed: the study is full"
        if not identity.usable or self._keys_taken & {identity.signing, identity.sealing}:
            return "its keys cannot be used, or are another party's"
        twice = self.desk.takes_part(identity)
        return "this person takes part already, under another name" if twice else None

    def _admit(self, name: str, identity: PublicIdentity, address: str, raw: bytes) -> None:
        if name not in self._identities:
            self._joined[name] = raw
            self._identities[name] = identity
            self._keys_taken |= {identity.signing, identity.sealing}
            self.desk.join(identity)
            self.mailbox.keys[name] = identity
            self._transport.route(name, address)
            if len(self._joined) == self.study.parties.count:
                self.mailbox.interrupt(_LobbyFull())
        self.mailbox.spawn(self._tell, LOBBY_SESSION, name, Welcome(identity.fingerprint))

    def _refuse(self, hello: Hello, name: str, reason: str) -> None:
        refusal = Refusal(self._identity.public, reason, hello.identity.digest)
        self._answer(hello.reply_to, name, refusal)

    def _answer(self, address: str, name: str, message: Message) -> None:
        """Write to somebody who is not in the roster, or not yet."""
        raw = self.mailbox.write(LOBBY_SESSION, message.step, name, message)
        self.mailbox.spawn(self._transport.answer, address, raw)

    async def _tell(self, session: str, target: str, message: Message) -> None:
        await self.mailbox.tell(session, target, message)

    # ── Roster and rounds ──────────────────────────────────────────────────────────────────────

    async def _attempts(self, members: tuple[str, ...]) -> tuple[Ending, tuple[str, ...]]:
        """Try until the protocol ends well or too few are left; lost parties are left out."""
        self.mailbox.transcribe(
            self.mailbox.write(LOBBY_SESSION, Invitation.step, EVERYONE, self._invitation)
        )
        for name in members:
            self.mailbox.transcribe(self._joined[name])
            for raw in self.desk.raw(self._identities[name]):
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
        for name in fault.culprits:
            self._joined.pop(name, None)
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
        return self.desk.shown_by(self._identities[party])

    async def _one_attempt(self, session: LiveSession) -> Ending:
        self._enter(State.ROSTER)
        self.mailbox.session_root = session.name
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
            what = one_line(f"{type(error).__name__}: {error}")
            raise _Failed(f"the protocol {self._protocol.name!r} failed: {what}") from error

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
            raise Dropout(f"{cause}; the lobby closed after {self.study.deadlines.lobby_s:g} s")
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
        not having confirmed it, and can spoil nothing.
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
                doubtful |= set(dropout.culprits)
                break
            except StudyError as news:
                doubtful |= set(news.culprits)
                continue
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
        self._enter(State.VERDICT)
        if not verdict.done:
            self.mailbox.session_root = VERDICT_SESSION
        raw = self.mailbox.write(VERDICT_SESSION, Verdict.step, EVERYONE, verdict)
        self.mailbox.catch_up = raw
        self.mailbox.transcribe(raw)
        gone = {*verdict.culprits, *verdict.unconfirmed, *(result.lost if result else ())}
        try:
            await self.mailbox.post(VERDICT_SESSION, Verdict.step, EVERYONE, raw)
            await self._farewell(tuple(name for name in self._joined if name not in gone))
        except BrokerError:
            pass
        except asyncio.CancelledError:  # Ctrl-C now means: wait no longer
            task = asyncio.current_task()
            if task is not None:
                task.uncancel()
        self._enter(State.CLOSED)
        return Outcome(
            result=result,
            cause=verdict.cause,
            culprits=verdict.culprits,
            members=members,
            excluded=tuple(self._excluded),
            unconfirmed=verdict.unconfirmed,
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


def _digest_seen(opened: Opened) -> bytes | None:
    try:
        return opened.message(ResultSeen).digest
    except Rejected:
        return None
