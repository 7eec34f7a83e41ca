"""The session of a coordinator that speaks with parties. It routes what it cannot read."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Self

from mpc_rr.crypto.admission import Pass
from mpc_rr.crypto.identity import PublicIdentity
from mpc_rr.errors import Dropout, Misconduct, StudyError, Unheard, one_line
from mpc_rr.network.envelope import EVERYONE, Bundle, M, Message
from mpc_rr.network.mailbox import Mailbox, Patience, Watched
from mpc_rr.network.sealed import Opened
from mpc_rr.network.session.base import Check, Limits, MailboxSession, NoReturn
from mpc_rr.network.session.coordinator import CoordinatorSession, Gathered, check_enough
from mpc_rr.randomness import Randomness


class LiveSession(MailboxSession, CoordinatorSession):
    """The coordinator's side of the rounds, over a mailbox."""

    def __init__(
        self,
        mailbox: Mailbox,
        name: str,
        parties: tuple[str, ...],
        rng: Randomness,
        limits: Limits,
        pass_of: Callable[[str], Pass | None],
        no_return: NoReturn | None = None,
    ) -> None:
        super().__init__(mailbox, name, parties, rng, limits, no_return)
        self._pass_of = pass_of

    def sub(self, label: str, *, fewest: int | None = None) -> Self:
        """The session of a sub-protocol or a repeated round, perhaps with fewer parties."""
        limits = self.limits if fewest is None else replace(self.limits, fewest=fewest)
        return type(self)(
            self.mailbox, f"{self.name}/{label}", self.parties, self.rng.fork(label),
            limits, self._pass_of, self._no_return,
        )  # fmt: skip

    async def gather(
        self,
        kind: type[M],
        *,
        check: Check[M] | None = None,
        senders: Collection[str] | None = None,
        at_least: int | None = None,
    ) -> Gathered[M]:
        """Serve a `PartySession.report`: take what comes from these parties until the deadline."""
        self._before_awaiting(kind)
        box, patience = self.mailbox, Patience(self.limits.round_s)
        asked = [p for p in self.parties if senders is None or p in senders]
        faulty: dict[str, str] = {}
        silent: set[str] = set()
        unheard: Unheard | None = None
        while waiting := [p for p in asked if p not in faulty and p not in silent]:
            try:
                await box.await_all(
                    self.name, kind.step, waiting, patience,
                    fewest=self.fewest, stragglers_s=self.limits.stragglers_s,
                )  # fmt: skip
                break
            except Dropout as late:
                silent |= set(late.missing)
                unheard = late if isinstance(late, Unheard) else None
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
                faulty[party] = one_line(f"{party}'s message for step {kind.step!r}: {error}")
        signed = {party: arrived[party].raw for party in messages}
        expected = self.most if senders is None else None
        needed = self.needed(senders, at_least)
        if unheard is not None and len(messages) < needed:
            raise unheard
        check_enough(messages, asked, needed, faulty, expected)
        return Gathered(messages, tuple(p for p in asked if p in silent), faulty, signed)

    def _before_awaiting(self, kind: type[Message]) -> None:
        """Parties that have sent this begin no second time with others; so nor do we."""
        if kind.reveals and self.limits.comparable:
            self.point_of_no_return()

    def _reported(self, opened: Opened, kind: type[M], check: Check[M] | None) -> M:
        """A message to us; ``ValueError`` if others would say that its author wrote no such."""
        if opened.envelope.header.target != self.me:
            raise ValueError("it is not addressed to me")
        message = self._understand(opened, kind, check)
        if not kind.sealed:
            self.mailbox.transcribe(opened.raw)
        return message

    def _understand(self, opened: Opened, kind: type[M], check: Check[M] | None) -> M:
        """Also, only we can tell whether a key that is in it is its sender's own."""
        message = super()._understand(opened, kind, check)
        if message.proved is not None:
            key, proof = message.proved
            claim = self.claim(opened.envelope.header.sender, key)
            if not self.mailbox.identity.possesses(key, claim, proof):
                raise ValueError("it does not prove that the key in it is its sender's own")
        return message

    def show(self, rows: Sequence[Watched], remark: str = "") -> None:
        """Let people watch: shares as they are known now, and a line about them."""
        self.mailbox.watched = tuple(rows), remark

    def identity_of(self, party: str) -> PublicIdentity:
        """The keys with which a party joined."""
        return self.mailbox.keys[party]

    def pass_of(self, party: str) -> Pass | None:
        """The pass that a party showed, where the study has a registrar."""
        return self._pass_of(party)

    async def hand_out(self, messages: Mapping[str, Message]) -> None:
        """Write to some parties, to each its own; they wait for it with `PartySession.told`."""
        await asyncio.gather(*(self.send(party, message) for party, message in messages.items()))

    async def announce(self, message: Message) -> None:
        """Write one message to everyone."""
        raw = await self.mailbox.tell(self.name, EVERYONE, message)
        self.mailbox.transcribe(raw)

    async def confided(self, kind: type[M], *, check: Check[M] | None = None) -> dict[str, M]:
        """Serve a `PartySession.confide`: what every party wrote to us alone."""
        self._before_awaiting(kind)
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
        self._before_awaiting(kind)
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
        self._before_awaiting(kind)
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
