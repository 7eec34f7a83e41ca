"""A party: holds one record, checks everything it is told, answers, and learns the result.

It trusts the coordinator to carry messages and for nothing else. Whatever an honest coordinator or
party would not do ends its participation: it sends an objection and says why.
"""

import asyncio
import contextlib
import logging
import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import ClassVar, TypeVar

import msgspec

from mpc_rr.agents.accusations import left_out, weighed
from mpc_rr.agents.ledger_file import Occasion, StateError
from mpc_rr.agents.roster import (
    join_claim,
    member_pass_fault,
    passes_fault,
    roster_digest,
    roster_fault,
    run_id,
    session_name,
)
from mpc_rr.agents.terms import Terms
from mpc_rr.crypto.admission import Pass
from mpc_rr.crypto.identity import Identity
from mpc_rr.errors import (
    Aborted,
    BrokerError,
    Declined,
    Dropout,
    InputError,
    Misconduct,
    MpcRrError,
    Refused,
    StudyError,
    one_line,
)
from mpc_rr.network.envelope import (
    COORDINATOR,
    LOBBY_SESSION,
    VERDICT_SESSION,
    WIRE_VERSION,
)
from mpc_rr.network.lifecycle import (
    Goodbye,
    Hello,
    Invitation,
    Join,
    LobbyNews,
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
from mpc_rr.network.sealed import Opened, Rejected, read, write
from mpc_rr.network.session import Limits, PartySession, Person
from mpc_rr.network.transport import Transport
from mpc_rr.privacy.ledger import OverdrawnError
from mpc_rr.publication.ending import Ending, checked_ending
from mpc_rr.randomness import Randomness, SystemRandomness
from mpc_rr.schema import Record
from mpc_rr.study.definition import Study

LOGGER = logging.getLogger("mpc_rr.party")
LAST_WORD_S = 2.0
COORDINATOR_SILENT_S = 25.0
"""In the lobby: who was not heard of for so long has perhaps been started again, as another."""
LOBBIES = 3
"""For as long as so many lobbies and a round are open one waits for the study to begin, however
many coordinators take over from each other: each could have it wait anew."""
DECLINED = "it declined to go on"
"""All that others hear where a party goes by its own ledger."""
LEFT_BEHIND_S = 2.0
A = TypeVar("A", Invitation, Refusal)


class _News(Exception):
    """Something arrived that changes what this party waits for."""


class _Answered(_News):
    """The coordinator answered our hello or our join."""


class _NewRoster(_News):
    """A roster arrived; or None: an opening, where no party needs to know the others."""

    def __init__(self, roster: Roster | None) -> None:
        super().__init__()
        self.roster = roster


class _Moved(_News):
    """The coordinator was gone, and another has taken its place."""


class _Ended(_News):
    """The coordinator ended the study without a result."""

    def __init__(self, verdict: Verdict) -> None:
        super().__init__()
        self.verdict = verdict


class Party:
    """Takes part in one run of a study with one record."""

    session_kind: ClassVar[type[PartySession]] = PartySession

    def __init__(
        self,
        study: Study,
        name: str,
        record: Record,
        transport: Transport,
        rng: Randomness,
        *,
        terms: Terms | None = None,
        door: asyncio.Semaphore | None = None,
    ) -> None:
        self.study, self.name = study, name
        self._terms = terms or Terms()
        self._door = door or asyncio.Semaphore()
        self._record = record
        self._rng = rng
        self._terms.account.begin(rng)
        self._identity = Identity(rng.fork("identity"))
        self._protocol = study.protocol
        self._transport = transport
        self.mailbox = Mailbox(
            name,
            self._identity,
            transport,
            study=study.name,
            ask_again_s=study.deadlines.ask_again_s,
            size_limit=study.largest_message_bytes,
        )
        # What the coordinator asks of us alone may overtake its word to all that it begins.
        self.mailbox.session_root = session_name(1)
        self.mailbox.open_handlers = {
            Invitation.step: self._on_invitation,
            Refusal.step: self._on_refusal,
        }
        self.mailbox.handlers[Welcome.step] = self._on_welcome
        self.mailbox.handlers[LobbyNews.step] = self._on_lobby_news
        self.mailbox.on_other_version = self._on_other_version
        if self.study.needs_roster:
            self.mailbox.handlers[Roster.step] = self._on_roster
        else:
            self.mailbox.handlers[Opening.step] = self._on_opening
        self.mailbox.watchers[Verdict.step] = self._on_verdict
        self._another_fingerprint: str | None = None
        self._another_version: int | None = None
        self._rival: str | None = None
        """The fingerprint of a second coordinator that has answered."""
        self._heard_at = self._began = 0.0
        self._lobby_ends = math.inf
        self.joined = 0
        """How many are in the lobby, as the coordinator says."""
        self._rosters: dict[int, Roster] = {}
        self._opening: Opening | None = None
        self._admitted = self._in_protocol = self._over = self._answered = False

    def __repr__(self) -> str:
        return f"Party({self.name})"

    def tell_steps(self) -> None:
        """Log every step for people to read: for one party of a process, lest they be too many."""
        self.mailbox.told_at = logging.INFO

    def _log(self, line: str, *parts: object) -> None:
        LOGGER.log(self.mailbox.told_at, f"%s: {line}", self.name, *parts)

    async def run(self) -> Ending:
        """Take part to the end; returns the result, or raises why there is none.

        Whatever ends it carries a receipt of what this party has said and heard.
        """
        try:
            return await self._run()
        except MpcRrError as fault:
            fault.receipt = self.receipt
            self._name_outage(fault)
            raise

    def _name_outage(self, fault: MpcRrError) -> None:
        """If it was we who could not be heard, that belongs to the story, in whichever wait."""
        ended_by_others = isinstance(fault, Dropout | Refused | Aborted)
        if not ended_by_others or isinstance(fault, Declined) or "no connection" in str(fault):
            return
        why = self._transport.cut_off(self._began) if self._began else None
        if why is not None:
            fault.args = (f"{fault}; {why}", *fault.args[1:])

    @property
    def receipt(self) -> tuple[bytes, ...]:
        """The signed public messages that this party has sent and heard until now."""
        return tuple(self.mailbox.transcript)

    async def _run(self) -> Ending:
        self._terms.check(self.study, self._record)
        async with self.mailbox:
            try:
                roster = await self._through_the_lobby()
                while True:
                    try:
                        return await self._attempt(roster)
                    except _NewRoster as news:
                        roster = news.roster
            except _Ended as ended:
                await self._goodbye()
                raise weighed(ended.verdict, self.name, self.mailbox.proof) from None
            except (Misconduct, Refused) as fault:
                await (self._goodbye() if self._over else self._object(fault))
                raise
            except StateError as error:
                await self._object(Declined(str(error)))  # nobody need wait for us
                raise
            except asyncio.CancelledError:
                await self._object(Refused("it was interrupted"))
                raise
            except Exception as error:
                if not isinstance(error, MpcRrError):  # others need not wait for us
                    await self._object(Refused("its program failed"))
                raise

    # ── Lobby ──────────────────────────────────────────────────────────────────────────────────

    async def _through_the_lobby(self) -> Roster | None:
        """Join, and wait until the study begins; if the coordinator is another by then, again."""
        while True:
            try:
                async with self._door:  # the parties of a host enter a few at a time
                    self._lobby_ends = min(self._lobby_ends, self.mailbox.now() + self._longest_s)
                    await self._enter_lobby()
                return await self._first_roster()
            except _Moved:
                LOGGER.warning("%s: another coordinator has taken over; joining it", self.name)

    @property
    def _longest_s(self) -> float:
        """How long this party waits for the study to begin, once it has knocked."""
        return LOBBIES * self.study.deadlines.lobby_s + self.study.deadlines.round_s

    @property
    def _hello(self) -> bytes:
        hello = Hello(self._identity.public, self._transport.address)
        header = msgspec.structs.replace(
            self.mailbox.header(LOBBY_SESSION, Hello.step, COORDINATOR), run=b""
        )
        return write(header, hello, self._identity)

    async def _enter_lobby(self) -> None:
        """Knock until the coordinator answers, then join until it confirms."""
        hello_raw = self._hello
        if not await self._knock(lambda: bool(self.mailbox.run), hello_raw):
            raise Dropout(
                f"no coordinator of study {self.study.name!r} answered within "
                f"{self.study.deadlines.lobby_s:g} s; {self._why_nobody()}{self._cut_off()}",
                [COORDINATOR],
            )
        run, identity = self.mailbox.run, self._identity
        proof = identity.possession(
            self.mailbox.keys[COORDINATOR].sealing, join_claim(run, self.name, identity.public)
        )
        join = Join(identity.public, self._transport.address, proof)
        join_raw = self.mailbox.write(LOBBY_SESSION, Join.step, COORDINATOR, join)
        entry = [join_raw]
        own_pass = self._own_pass
        if own_pass is not None:
            show = ShowPass(self._identity.public, own_pass)
            entry.insert(0, self.mailbox.write(LOBBY_SESSION, ShowPass.step, COORDINATOR, show))
        # Later the hello is repeated too: the coordinator may have forgotten it among many others.
        if not await self._knock(lambda: self._admitted, *entry, later=[hello_raw]):
            raise Dropout("the coordinator invited this party but never admitted it", [COORDINATOR])

    def _why_nobody(self) -> str:
        if self._another_version is not None:
            return (
                f"one did that speaks version {self._another_version} of the wire, and this "
                f"program version {WIRE_VERSION}: all must have programs of the same"
            )
        if self._another_fingerprint is None:
            return (
                "is it running, on this broker, with this version of the program? And may this "
                "user publish there, and read what is sent to its mailbox? (docs/brokers.md)"
            )
        return (
            f"one with the fingerprint {self._another_fingerprint} did, but "
            f"{self._terms.coordinator_fingerprint} was asked for with --coordinator"
        )

    def _cut_off(self) -> str:
        """What to add if it was we who could not hear.

        Also before that, when we came: the study may have begun, and ended, without us.
        """
        cut_off = self._transport.cut_off(-math.inf)
        return "" if cut_off is None else f"; {cut_off}"

    async def _knock(
        self, answered: Callable[[], bool], *messages: bytes, later: Sequence[bytes] = ()
    ) -> bool:
        """Send the messages, and again (with those for later), until there is an answer."""
        self._began = asyncio.get_running_loop().time()
        deadline = min(self._began + self.study.deadlines.lobby_s, self._lobby_ends)
        sent, opened = 0, False
        while not answered() and asyncio.get_running_loop().time() < deadline:
            try:
                async with asyncio.timeout_at(deadline):
                    for raw in (*later, *messages) if sent else messages:
                        await self.mailbox.transport.send(COORDINATOR, raw)
                        sent += 1
                await self.mailbox.wait_for_news(
                    LOBBY_SESSION, Welcome.step, self.study.deadlines.ask_again_s
                )
            except (Dropout, TimeoutError, _Answered):
                continue
            except _NewRoster as news:
                if news.roster is None:  # which goes to everybody: are we in, too?
                    opened = True
                    continue
                self.mailbox.interrupt(news, before_others=True)
                return True  # it overtook the admission: the roster says all
        if opened:
            self.mailbox.interrupt(_NewRoster(None))
        return answered()

    def _on_invitation(self, opened: Opened) -> None:
        invitation = self._answer_of_a_stranger(opened, Invitation)
        if self.mailbox.keys.get(COORDINATOR) == invitation.identity:
            self._hears_coordinator()
            raise Rejected("duplicate")
        other = invitation.study_digest != self.study.digest
        if self.mailbox.run and (other or not invitation.identity.usable):
            LOGGER.info(
                "%s: a coordinator with the fingerprint %s has answered, too, for another study or "
                "with keys that cannot be used", self.name, invitation.identity.fingerprint,
            )  # fmt: skip
            raise Rejected("other coordinator")  # we have one that is in order
        if other:
            self.mailbox.interrupt(
                Refused(
                    f"the coordinator runs another study under the name {self.study.name!r}: its "
                    "study file differs from ours; compare the two files"
                )
            )
            return
        if not invitation.identity.usable:
            self._coordinator_lies("its keys cannot be used")
            return
        if run_id(invitation) != opened.envelope.header.run:
            raise Rejected("other run")
        now, moved = self.mailbox.now(), bool(self.mailbox.run)
        if moved and now - self._heard_at <= COORDINATOR_SILENT_S:
            self._rival = invitation.identity.fingerprint
            raise Rejected("other coordinator")
        self.mailbox.take_part(opened.envelope.header.run, invitation.identity)
        self._heard_at, self._rival, self._admitted = now, None, False
        self._transport.fit(invitation.piece_bytes)
        self.mailbox.interrupt(_Moved() if moved else _Answered())

    def _hears_coordinator(self) -> None:
        """It is there. If another has answered meanwhile, there are two."""
        if self._rival is not None and not self.begun:
            ours = self.mailbox.keys[COORDINATOR].fingerprint
            self.mailbox.interrupt(
                Refused(
                    f"two coordinators run study {self.study.name!r} on this broker, with the "
                    f"fingerprints {ours} and {self._rival}; say with --coordinator which one is "
                    "meant"
                )
            )
        self._heard_at = self.mailbox.now()

    @property
    def begun(self) -> bool:
        """Whether the coordinator has said that the study begins."""
        return bool(self._rosters) or self._opening is not None

    def _on_other_version(self, opened: Opened) -> None:
        header = opened.envelope.header
        # One of version 1 does not hear us; but what it tells its own parties, we hear.
        if header.sender == COORDINATOR and not self.mailbox.run:
            self._another_version = header.version

    def _on_lobby_news(self, opened: Opened) -> None:
        self._from_coordinator(opened)
        self.joined = opened.message(LobbyNews).joined
        self._log("%d of %d parties are there", self.joined, self.study.parties.count)
        self._hears_coordinator()

    def _on_refusal(self, opened: Opened) -> None:
        refusal = self._answer_of_a_stranger(opened, Refusal)
        self.mailbox.interrupt(
            Refused(f"not admitted to study {self.study.name!r}: {one_line(refusal.reason)}")
        )

    def _answer_of_a_stranger(self, opened: Opened, kind: type[A]) -> A:
        """An answer to our hello, signed with the key it brings: we may not know its author yet."""
        message = opened.message(kind)
        identity = message.identity
        known = self.mailbox.keys.get(COORDINATOR)
        if opened.envelope.header.sender != COORDINATOR or not opened.signed_by(identity):
            raise Rejected("bad signature")
        another = known is not None and known != identity
        if another and (isinstance(message, Refusal) or self.begun):
            raise Rejected("other coordinator")
        if message.answers != self._identity.public.digest:
            raise Rejected("other run")
        if self._terms.coordinator_fingerprint not in (None, identity.fingerprint):
            self._another_fingerprint = identity.fingerprint
            raise Rejected("other coordinator")
        return message

    def _on_welcome(self, opened: Opened) -> None:
        self._from_coordinator(opened)
        if opened.message(Welcome).fingerprint != self._identity.public.fingerprint:
            raise Rejected("misdirected")
        if self._admitted or self._rosters:
            raise Rejected("duplicate")
        self._admitted = True
        self._log("joined the study; waiting for the others")
        self._hears_coordinator()
        self.mailbox.interrupt(_Answered())

    # ── Roster ─────────────────────────────────────────────────────────────────────────────────

    async def _first_roster(self) -> Roster | None:
        deadlines, box, started = self.study.deadlines, self.mailbox, self.mailbox.now()
        patience_s = min(deadlines.lobby_s + deadlines.round_s, self._lobby_ends - started)
        step = Roster.step if self.study.needs_roster else Opening.step
        while True:
            left_s = max(started + patience_s - box.now(), 0)
            try:
                await box.wait_for_news(session_name(1), step, min(left_s, COORDINATOR_SILENT_S))
            except _Answered:
                continue
            except _NewRoster as news:
                return news.roster
            except Dropout:
                if left_s <= COORDINATOR_SILENT_S:
                    raise box.silence([COORDINATOR], step, patience_s, started) from None
                if box.now() - self._heard_at >= COORDINATOR_SILENT_S:  # is it another by now?
                    box.spawn(self._transport.send, COORDINATOR, self._hello)

    def _on_roster(self, opened: Opened) -> None:
        self._from_coordinator(opened)
        roster = opened.message(Roster)
        latest = max(self._rosters, default=0)
        if roster.attempt in self._rosters:
            if self._rosters[roster.attempt] != roster:
                self._coordinator_lies("it sent two different rosters for one attempt")
            raise Rejected("duplicate")
        if roster.attempt < latest:
            raise Rejected("other session")
        earlier = self._rosters.get(latest)
        self._rosters[roster.attempt] = roster
        mine = [member for member in roster.members if member.name == self.name]
        if not mine:
            reasons = [e.reason for e in roster.excluded if e.name == self.name]
            self.mailbox.interrupt(Refused(left_out(reasons[0] if reasons else None)))
        elif mine[0].identity != self._identity.public:
            self._coordinator_lies("its roster has a key under my name that is not mine")
        elif (fault := roster_fault(roster, self.study, earlier)) is not None:
            self._coordinator_lies(f"its roster is invalid: {fault}")
        else:
            # From here on, not from our next turn: what follows may be here before that.
            self.mailbox.session_root = session_name(roster.attempt)
            self.mailbox.interrupt(_NewRoster(roster))

    def _on_opening(self, opened: Opened) -> None:
        self._from_coordinator(opened)
        opening, parties = opened.message(Opening), self.study.parties
        if self._opening is not None:
            if self._opening != opening:
                self._coordinator_lies("it opened the study in two different ways")
            raise Rejected("duplicate")
        self._opening = opening
        if not parties.fewest <= opening.asked <= parties.count:
            self._coordinator_lies(
                f"it opened the study with {opening.asked} parties where {parties.fewest} to "
                f"{parties.count} are allowed"
            )
        else:
            self.mailbox.interrupt(_NewRoster(None))

    def _coordinator_lies(self, how: str) -> None:
        self.mailbox.interrupt(
            Misconduct(f"the coordinator broke the protocol: {how}", [COORDINATOR])
        )

    def _from_coordinator(self, opened: Opened) -> None:
        if opened.envelope.header.sender != COORDINATOR:
            raise Rejected("not the coordinator")

    # ── Rounds ─────────────────────────────────────────────────────────────────────────────────

    async def _attempt(self, roster: Roster | None) -> Ending:
        """One try with the parties of this roster, up to the verdict."""
        self.mailbox.forget_earlier_attempts()
        await self.mailbox.caught_up()
        self._check_still_on()
        session = self._session(roster)
        parties = self._opening.asked if self._opening is not None else len(session.parties)
        self._log("the study begins with %d parties", parties)
        self._in_protocol = True
        try:
            if roster is not None:
                await self._compare_rosters(session, roster)
                self._check_still_on()
            self._terms.account.charge(self.study, self._record, again=self._terms.again)
            ending = await self._protocol_run(session.sub(self.study.protocol.name))
            return await self._confirmed(session, ending)
        except _NewRoster:
            self.mailbox.transcript.clear()  # the receipt is of the attempt that counts
            if session.past_return:
                raise Misconduct(
                    "the coordinator begins again with others after I published my part; "
                    "both results together would expose someone",
                    [COORDINATOR],
                ) from None
            raise

    def _check_still_on(self) -> None:
        """Before anything is entered, drawn or sent: what is over costs nobody anything more.

        Whoever has slept hears all at once, and too late.
        """
        if self._over:
            raise self._too_late()
        self.mailbox.raise_news()

    def _too_late(self) -> Refused:
        if not self._answered:
            return Refused("the study ended without this party, before it could answer")
        return Refused(
            "the study ended before this party could go on, and nothing more of its record was "
            "sent; whether what it had sent before is counted, `mpc-rr verify RUN --receipt FILE` "
            "tells"
        )

    async def _protocol_run(self, session: PartySession) -> Ending:
        try:
            return checked_ending(
                await self._protocol.party(session, self.study.schema, self._record)
            )
        except StateError:
            raise
        except OverdrawnError as error:
            raise Declined(f"{error}; no part of the record was sent") from None
        except InputError as error:
            # Our own input was checked before: the coordinator's announcements lead nowhere.
            raise Misconduct(
                f"nothing can follow from what the coordinator announced: {error}", [COORDINATOR]
            ) from None
        finally:
            self._in_protocol = False

    @property
    def _own_pass(self) -> Pass | None:
        return self._terms.pass_for(self.study, self.mailbox.run, self._identity.public)

    def _session(self, roster: Roster | None) -> PartySession:
        name = session_name(1 if roster is None else roster.attempt)
        members = () if roster is None else roster.members
        parties = tuple(member.name for member in members)
        self.mailbox.keys_digest = b"" if roster is None else roster_digest(roster)
        self.mailbox.keys = {
            COORDINATOR: self.mailbox.keys[COORDINATOR],
            **{member.name: member.identity for member in members},
        }
        # The coordinator waits one round for the others before we can hear from it.
        timeout_s = 2 * self.study.deadlines.round_s
        expected = self.study.parties
        limits = Limits(
            expected.fewest,
            expected.count,
            timeout_s,
            registrar=self.study.registrar is not None,
            comparable=self.study.comparable,
        )
        return self.session_kind(
            self.mailbox, name, parties, self._masks(name), limits, self._person(len(parties))
        )

    def _masks(self, name: str) -> Randomness:
        """For keys, masks and dice: in earnest apart for each roster and session, and fresh."""
        if not isinstance(self._rng, SystemRandomness):
            return self._rng.fork(name)
        here = (self.study.promise, self.mailbox.run, self.mailbox.keys_digest, name.encode())
        return self._terms.account.masks(*here)

    def _person(self, parties: int) -> Person:
        """Whom we act for, as far as our protocol may know."""
        account, study = self._terms.account, self.study
        occasion = Occasion(
            run=self.mailbox.run.hex(),
            keys=self._identity.public.digest.hex(),
            roster=self.mailbox.keys_digest.hex(),
            parties=parties or None,
        )

        def once(label: str, draw: Callable[[Randomness], bytes], given: bytes) -> bytes:
            self._check_still_on()
            return account.once(study, self._record, label, draw, given)

        def disclose() -> None:
            self._check_still_on()
            account.disclose(study, occasion, again=self._terms.again)
            self._answered = True

        return Person(
            once=once,
            disclose=disclose,
            spend=partial(account.settle, study),
            pass_fault=partial(member_pass_fault, study, self.mailbox.run, self._terms.withdrawn),
            own_pass=self._own_pass,
            choices=self._terms.choices,
            decide=self._terms.decide,
            decide_s=study.deadlines.decide_s,
        )

    async def _check_passes(self, session: PartySession, roster: Roster) -> None:
        """Every party in the roster is a person whom the registrar has admitted, and another."""

        def check(message: Passes) -> None:
            known = (self.study, self.mailbox.run, self._terms.withdrawn)
            fault = passes_fault(*known, roster.members, message.passes)
            if fault is not None:
                raise ValueError(fault)

        await session.hear(Passes, check=check)

    async def _compare_rosters(self, session: PartySession, roster: Roster) -> None:
        if self.study.registrar is not None:
            await self._check_passes(session, roster)
        digest = roster_digest(roster)
        seen = await session.publish(RosterSeen(digest))
        differing = [name for name, message in seen.items() if message.digest != digest]
        if differing:
            raise Misconduct(
                f"the coordinator broke the protocol: {differing[0]} was shown another roster "
                "than I",
                [COORDINATOR],
            )

    # ── Verdict ────────────────────────────────────────────────────────────────────────────────

    def _on_verdict(self, opened: Opened) -> None:
        self._from_coordinator(opened)
        verdict = opened.message(Verdict)
        self._over = verdict.done
        if not verdict.done:
            self.mailbox.transcribe(opened.raw)
            self.mailbox.interrupt(_Ended(verdict))
        elif self._in_protocol:
            self.mailbox.spawn(self._left_behind)
        elif not self.begun:
            self.mailbox.interrupt(self._too_late())

    async def _left_behind(self) -> None:
        """The study is over. What belongs to its result comes soon, or comes no more.

        A process that is slow has it perhaps, and has not read it: so that is waited for first.
        """
        patience_s = min(LEFT_BEHIND_S, self.study.deadlines.round_s)
        self.mailbox.hurry(patience_s / 4)
        waited_for = None
        while self._in_protocol and waited_for != self.mailbox.last_wait:
            waited_for = self.mailbox.last_wait
            await self.mailbox.caught_up()
            await asyncio.sleep(patience_s)
            await self.mailbox.caught_up()
        if self._in_protocol:
            step = self.mailbox.last_wait[1]
            raise Refused(f"the study ended without this party, which was waiting for {step!r}")

    async def _confirmed(self, session: PartySession, ending: Ending) -> Ending:
        """The result, with the names of those of whom it is not known that they have the same.

        If broker or coordinator are gone by now, the result is still there: confirmed by nobody;
        where parties only report, not even that there is one is known.
        """
        try:
            if self.study.needs_roster:
                await session.send(COORDINATOR, ResultSeen(ending.digest))
            unconfirmed = await self._verdict(session, ending)
        except (BrokerError, Dropout):
            unconfirmed = session.others
            ending = msgspec.structs.replace(ending, without_verdict=True)
        return msgspec.structs.replace(ending, unconfirmed=unconfirmed, receipt=self.receipt)

    async def _verdict(self, session: PartySession, ending: Ending) -> tuple[str, ...]:
        """Wait for the verdict and make sure that the others have the same result."""
        arrived = await self.mailbox.collect(
            VERDICT_SESSION, Verdict.step, (COORDINATOR,), session.limits.round_s
        )
        verdict, digest = arrived[COORDINATOR].message(Verdict), ending.digest
        self.mailbox.transcribe(arrived[COORDINATOR].raw)
        self._log("the coordinator has told how the study ended")
        if verdict.result_digest != digest:
            raise Misconduct(
                "the coordinator announces another result than I computed", [COORDINATOR]
            )
        if sorted((*verdict.seen, *verdict.unconfirmed)) != sorted(session.parties):
            raise Misconduct("the coordinator's verdict does not speak of everyone", [COORDINATOR])
        seen = session.shared(
            "confirmations",
            (arrived[COORDINATOR].digest,),
            lambda: {n: self._seen_digest(session, n, raw) for n, raw in verdict.seen.items()},
        )
        for name, said in seen.items():
            if said != digest:
                raise Misconduct(
                    f"the coordinator shows no honest confirmation of the result by {name}",
                    [COORDINATOR],
                )
        await self._take_leave()
        return verdict.unconfirmed

    def _seen_digest(self, session: PartySession, name: str, raw: bytes) -> bytes | None:
        try:
            opened = read(
                raw, study=self.study.name, runs=(self.mailbox.run,), targets=(COORDINATOR,)
            )
            header = opened.envelope.header
            mine = (session.name, ResultSeen.step, name)
            if (header.session, header.step, header.sender) != mine:
                return None
            if not opened.signed_by(self.mailbox.keys[name]):
                return None
            return opened.message(ResultSeen).digest
        except Rejected:
            return None

    async def _take_leave(self) -> None:
        """Say goodbye; before that, ask for all that was said, if that is wished for."""
        everything = self._terms.everything
        if everything is not None:
            await everything.ask(self.mailbox, self.study)
        await self._goodbye()
        if everything is not None:
            await everything.take(self.mailbox)

    async def _goodbye(self) -> None:
        with contextlib.suppress(BrokerError):
            await self.mailbox.tell(VERDICT_SESSION, COORDINATOR, Goodbye())

    async def _object(self, fault: StudyError) -> None:
        """Tell the coordinator why we stop. It may not hear it; we stop all the same."""
        if not (self._admitted or self.begun):
            return  # nobody waits for us
        parties = [name for name in fault.culprits if name != COORDINATOR]
        against = parties[0] if parties else COORDINATOR
        reason = DECLINED if isinstance(fault, Declined) else one_line(str(fault))
        objection = Objection(against, *self.mailbox.last_wait, reason)
        with contextlib.suppress(BrokerError, TimeoutError):
            async with asyncio.timeout(LAST_WORD_S):
                await self.mailbox.tell(self.mailbox.session_root, COORDINATOR, objection)
