"""The session: what a protocol sees of the network.

A protocol is a coroutine that awaits only its session and draws only from ``session.rng``. Four
kinds of round are enough for all of them, each costing a party one message up and one down:

* ``exchange``: every party writes to every other party, privately. The coordinator routes sealed
  parcels it cannot read (`CoordinatorSession.route`).
* ``publish``: every party writes to everyone, publicly. The coordinator collects the signed
  messages and hands all of them to all (`CoordinatorSession.relay`).
* ``report``: every party writes publicly to the coordinator, which announces one message to all
  (`CoordinatorSession.gather` and ``announce``). Whoever stays silent is left out, no more.
* ``confide``: every party writes to the coordinator alone, which publishes only what it makes of it
  (`CoordinatorSession.confided` and ``announce_made``). Nobody else can check how it was made.
"""

import asyncio
import math
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Self

from mpc_rr.crypto.admission import Pass
from mpc_rr.crypto.identity import PublicIdentity
from mpc_rr.errors import Dropout, Misconduct, Refused, StudyError, one_line
from mpc_rr.network.messages import (
    COORDINATOR,
    EVERYONE,
    Bundle,
    M,
    Message,
)
from mpc_rr.network.per_host import once_per_host
from mpc_rr.network.sealed import Opened
from mpc_rr.network.session_base import Check, Session
from mpc_rr.randomness import Randomness

Once = Callable[[str, Callable[[Randomness], bytes]], bytes]
"""By its label, something random that is drawn and accounted for once, and then always the same."""
Spend = Callable[[Sequence[Any]], None]
"""Takes disclosures (`mpc_rr.privacy.disclosures`); they must not cost more than was planned."""


class PartySession(Session):
    """A party's side of the rounds."""

    once: Once
    """Draw something that must never be drawn twice (set by the party's agent)."""

    fewest: int = 1
    most: int = 10**9
    """With how few, and how many, parties the study goes on."""

    def sub(self, label: str) -> Self:
        """The session of a sub-protocol; what is drawn once stays drawn."""
        session = super().sub(label)
        session.once, session.fewest, session.most = self.once, self.fewest, self.most
        session.choices, session.spend = self.choices, self.spend
        session.recall = self.recall
        session.again, session.own_pass = self.again, self.own_pass
        session.pass_fault = self.pass_fault
        return session

    choices: Mapping[str, str] = {}
    """What this party has decided for itself, by keywords that its protocol knows."""

    @property
    def occasion(self) -> bytes:
        """This very taking part: the run, whose name the coordinator makes, and our fresh keys."""
        return self.mailbox.run + self.mailbox.identity.public.digest

    recall: Callable[[str], bytes | None]
    """What was drawn under a label in this or an earlier run, if anything (set by the agent)."""

    again: bool = False
    """Whether this person takes part even if an earlier run may know what she tells now."""

    def check_not_told_before(self, label: str, told: str) -> None:
        """`Refused` if the books say that something was told in an earlier run of the study."""
        if self.recall(label) is not None and not self.again:
            raise Refused(
                f"in an earlier run of this study {told}; nothing was sent. To take part all the "
                "same, say --again"
            )

    def tell_once(self, label: str, told: str) -> None:
        """Enter that something is told in this run; `Refused` if it was in an earlier one."""
        self.check_not_told_before(label, told)
        self.once(label, lambda _: self.occasion)

    own_pass: Pass | None = None
    """What shows that the registrar knows this person, where the study has one."""

    pass_fault: Callable[[PublicIdentity, Pass | None], str | None]
    """Why a pass does not show that somebody may take part, or None (set by the agent)."""

    spend: Spend
    """Enter in the books what this study costs after all (set by the party's agent)."""

    async def report(self, message: Message) -> bytes:
        """Write publicly to the coordinator; returns the signed bytes."""
        raw = await self.mailbox.tell(self.name, COORDINATOR, message)
        self.mailbox.transcribe(raw)
        return raw

    async def confide(self, message: Message) -> None:
        """Write to the coordinator alone; the message is sealed and enters no transcript."""
        await self.mailbox.tell(self.name, COORDINATOR, message)

    async def told(self, kind: type[M], *, check: Check[M] | None = None, rounds: int = 1) -> M:
        """What the coordinator writes to us alone, after so many rounds; it must pass the check."""
        return (await self.told_with_proof(kind, check=check, rounds=rounds))[0]

    async def told_with_proof(
        self, kind: type[M], *, check: Check[M] | None = None, rounds: int = 1
    ) -> tuple[M, bytes]:
        """The same, and the signed bytes, by which others see what the coordinator told us."""
        arrived = await self._collect(kind, (COORDINATOR,), rounds)
        if arrived[COORDINATOR].envelope.header.target != self.me:
            raise Misconduct(
                f"the coordinator tells all what is for me alone (step {kind.step!r})",
                [COORDINATOR],
            )
        understood_all = self._understand_all(arrived, kind, check)
        return understood_all[COORDINATOR], arrived[COORDINATOR].raw

    async def hear(
        self,
        kind: type[M],
        *,
        check: Check[M] | None = None,
        rounds: int = 1,
        before_news: bool = False,
    ) -> M:
        """What the coordinator announces to everyone, after so many rounds; it must pass.

        ``before_news``: it counts even if the coordinator has ended the study right after it.
        """
        arrived = await self._collect(kind, (COORDINATOR,), rounds, before_news=before_news)
        if arrived[COORDINATOR].envelope.header.target != EVERYONE:
            raise Misconduct(
                f"the coordinator tells me alone what is for all (step {kind.step!r})",
                [COORDINATOR],
            )
        self.mailbox.transcribe(arrived[COORDINATOR].raw)
        return self._understand_all(arrived, kind, check)[COORDINATOR]

    async def exchange(
        self, messages: Mapping[str, M], *, check: Check[M] | None = None
    ) -> dict[str, M]:
        """Write privately to every other party; returns what each of them wrote to us."""
        if set(messages) != set(self.others):
            raise ValueError("an exchange writes to every other party")
        kind = type(next(iter(messages.values())))
        box = self.mailbox
        parcels = {t: box.write(self.name, kind.step, t, m) for t, m in messages.items()}
        raw = box.write(self.name, kind.step, COORDINATOR, Bundle(parcels))
        await box.post(self.name, kind.step, COORDINATOR, raw)
        # A parcel with a bad signature: its sender made it, or the coordinator put it there.
        arrived = await self._open_bundle(kind, self.others, self.me, blame_sender=True)
        return self._understand_all(arrived, kind, check)

    async def publish(self, message: M, *, check: Check[M] | None = None) -> dict[str, M]:
        """Write publicly to everyone; returns what every party, we included, wrote."""
        kind, box = type(message), self.mailbox
        raw = box.write(self.name, kind.step, EVERYONE, message)
        box.transcribe(raw)
        await box.post(self.name, kind.step, COORDINATOR, raw)
        # The coordinator must have checked what it hands on: a bad message here is its doing.
        arrived = await self._open_bundle(kind, self.parties, EVERYONE, blame_sender=False)
        if arrived[self.me].raw != raw:
            raise Misconduct(
                f"the coordinator altered my message for step {kind.step!r}", [COORDINATOR]
            )
        return self._understand_all(arrived, kind, check, also_blamed=(COORDINATOR,))

    async def _open_bundle(
        self, kind: type[M], holders: tuple[str, ...], target: str, *, blame_sender: bool
    ) -> dict[str, Opened]:
        outer = (await self._collect(kind, (COORDINATOR,)))[COORDINATOR]
        try:
            parcels = self._bundle(outer, holders)
        except ValueError as error:
            raise Misconduct(
                f"the coordinator's bundle for step {kind.step!r}: {error}", [COORDINATOR]
            ) from None
        if target != EVERYONE:
            return self._parcels(parcels, kind, holders, target, blame_sender=blame_sender)
        place = (
            self.context,
            self.mailbox.keys_digest,
            outer.digest,
            holders,
        )
        return once_per_host(
            place, lambda: self._parcels(parcels, kind, holders, target, blame_sender=blame_sender)
        )

    def _parcels(
        self,
        parcels: Mapping[str, bytes],
        kind: type[M],
        holders: tuple[str, ...],
        target: str,
        *,
        blame_sender: bool,
    ) -> dict[str, Opened]:
        arrived = {}
        for sender in holders:
            try:
                arrived[sender] = self._parcel(
                    parcels[sender], self.name, sender, target, kind.step
                )
            except ValueError as error:
                blamed = [sender, COORDINATOR] if blame_sender else [COORDINATOR]
                raise Misconduct(
                    f"{sender}'s message for step {kind.step!r}, as the coordinator gave it: "
                    f"{error}",
                    blamed,
                ) from None
        return arrived


@dataclass(frozen=True)
class Gathered(Generic[M]):
    """What came in a `CoordinatorSession.gather`, and what did not, and why."""

    messages: dict[str, M]
    silent: tuple[str, ...]
    faulty: dict[str, str]
    """Parties whose message an honest party would not send, and the reason."""
    signed: dict[str, bytes] = field(default_factory=dict, repr=False)
    """The messages as they were signed."""

    def missing(self, step: str) -> dict[str, str]:
        """Who sent nothing in order, and at which step that was."""
        faulty = {party: f"{step}: {reason}" for party, reason in self.faulty.items()}
        return dict.fromkeys(self.silent, step) | faulty


class CoordinatorSession(Session):
    """The coordinator's side of the rounds. It routes what it cannot read."""

    fewest: int = 1
    most: int = 10**9
    """With how few, and how many, parties the study goes on."""

    stragglers_s: float = math.inf
    """How long to wait for the rest once so few are there that the study could go on."""

    def sub(self, label: str) -> Self:
        """The session of a sub-protocol."""
        session = super().sub(label)
        session.fewest, session.most = self.fewest, self.most
        session.stragglers_s, session.pass_of = self.stragglers_s, self.pass_of
        return session

    async def gather(
        self,
        kind: type[M],
        *,
        check: Check[M] | None = None,
        senders: Collection[str] | None = None,
    ) -> Gathered[M]:
        """Serve a `PartySession.report`: take what comes from these parties until the deadline."""
        box, deadline = self.mailbox, self.mailbox.now() + self.timeout_s
        asked = [p for p in self.parties if senders is None or p in senders]
        faulty: dict[str, str] = {}
        silent: set[str] = set()
        while waiting := [p for p in asked if p not in faulty and p not in silent]:
            try:
                left_s = max(deadline - box.now(), 0)
                await box.await_all(
                    self.name, kind.step, waiting, left_s,
                    fewest=self.fewest, stragglers_s=self.stragglers_s,
                )  # fmt: skip
                break
            except Dropout as late:
                silent |= set(late.culprits)
            except StudyError as news:
                if not news.culprits:
                    raise
                # Whoever is not asked here may have been lost before, and says so only now.
                faulty |= {p: one_line(str(news)) for p in news.culprits if p in asked}
        arrived = box.take(self.name, kind.step, waiting)
        messages = {}
        for party, opened in arrived.items():
            try:
                messages[party] = self._reported(opened, kind, check)
            except ValueError as error:
                faulty[party] = f"{party}'s message for step {kind.step!r}: {error}"
        signed = {party: arrived[party].raw for party in messages}
        return Gathered(messages, tuple(p for p in asked if p in silent), faulty, signed)

    def _reported(self, opened: Opened, kind: type[M], check: Check[M] | None) -> M:
        """A message to us; ``ValueError`` if others would say that its author wrote no such."""
        if opened.envelope.header.target != self.me:
            raise ValueError("it is not addressed to me")
        message = self._understand(opened, kind, check)
        if not kind.sealed:
            self.mailbox.transcribe(opened.raw)
        return message

    def show(self, rows: Sequence[tuple[str, float]]) -> None:
        """Let people watch: shares under their names, as they are now."""
        self.mailbox.preview = tuple(rows)

    def identity_of(self, party: str) -> PublicIdentity:
        """The keys with which a party joined."""
        return self.mailbox.keys[party]

    pass_of: Callable[[str], Pass | None]
    """The pass that a party showed, where the study has a registrar (set by the agent)."""

    async def hand_out(self, messages: Mapping[str, Message]) -> None:
        """Write to some parties, to each its own; they wait for it with `PartySession.told`."""
        await asyncio.gather(*(self.send(party, message) for party, message in messages.items()))

    async def announce(self, message: Message) -> None:
        """Write one message to everyone."""
        raw = await self.mailbox.tell(self.name, EVERYONE, message)
        self.mailbox.transcribe(raw)

    async def confided(self, kind: type[M], *, check: Check[M] | None = None) -> dict[str, M]:
        """Serve a `PartySession.confide`: what every party wrote to us alone."""
        return self._understand_all(await self._collect(kind, self.parties), kind, check)

    async def announce_made(
        self,
        kind: type[M],  # noqa: ARG002  (whoever replays the study looks for it)
        make: Callable[[], Awaitable[M]],
        *,
        check: Check[M],
    ) -> M:
        """Announce what only we can make; it must pass the check that everybody will make."""
        message = await make()
        check(message)
        await self.announce(message)
        return message

    async def route(
        self, kind: type[M], *, before_handing_out: Callable[[], None] | None = None
    ) -> None:
        """Serve a `PartySession.exchange`: hand every party the parcels meant for it."""
        arrived = await self._collect(kind, self.parties)
        bundles: dict[str, dict[str, bytes]] = {}
        for sender, opened in arrived.items():
            others = tuple(party for party in self.parties if party != sender)
            try:
                bundles[sender] = self._bundle(opened, others)
            except ValueError as error:
                raise Misconduct(
                    f"{sender}'s bundle for step {kind.step!r}: {error}", [sender]
                ) from None
        self.mailbox.routed[self.name, kind.step] = bundles
        if before_handing_out is not None:
            before_handing_out()
        for target in self.parties:
            parcels = {s: bundle[target] for s, bundle in bundles.items() if s != target}
            raw = self.mailbox.write(self.name, kind.step, target, Bundle(parcels))
            await self.mailbox.post(self.name, kind.step, target, raw)

    async def relay(self, kind: type[M], *, check: Check[M] | None = None) -> dict[str, M]:
        """Serve a `PartySession.publish`: collect what all publish and hand all of it to all."""
        arrived = await self._collect(kind, self.parties)
        bad = [p for p, o in arrived.items() if o.envelope.header.target != EVERYONE]
        if bad:
            raise Misconduct(
                f"{bad[0]}'s message for step {kind.step!r} is not addressed to all", bad
            )
        messages = self._understand_all(arrived, kind, check)
        signed = {party: arrived[party].raw for party in self.parties}
        for party in self.parties:
            self.mailbox.transcribe(signed[party])
        raw = self.mailbox.write(self.name, kind.step, EVERYONE, Bundle(signed))
        await self.mailbox.post(self.name, kind.step, EVERYONE, raw)
        return messages

    def at_fault(self, session: str, step: str, sender: str, target: str) -> bool:
        """Whether the parcel that ``sender`` gave us for ``target`` is provably not in order.

        Its content is sealed; its signature and its header are not. The sender signed the bundle
        it came in, so a bad parcel is the sender's doing.
        """
        raw = self.mailbox.routed.get((session, step), {}).get(sender, {}).get(target)
        if raw is None:
            return False
        try:
            self._parcel(raw, session, sender, target, step)
        except ValueError:
            return True
        return False
