"""A party's side of the rounds."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from mpc_rr.crypto.admission import Pass
from mpc_rr.crypto.identity import Identity, PublicIdentity
from mpc_rr.crypto.pairwise import MaskKey
from mpc_rr.errors import Misconduct
from mpc_rr.network.envelope import COORDINATOR, EVERYONE, Bundle, M, Message
from mpc_rr.network.mailbox import Mailbox, Proof
from mpc_rr.network.sealed import Opened
from mpc_rr.network.session.base import Check, Limits, MailboxSession, NoReturn
from mpc_rr.randomness import Randomness

Once = Callable[[str, Callable[[Randomness], bytes], bytes], bytes]
"""By its label, and what it is drawn given, something random that is always the same."""
Decide = Callable[[Any], str | Awaitable[str]]
"""What a party decides, in words that its protocol knows; it may take its time."""


@dataclass(frozen=True)
class Person:
    """Whom a party's session acts for: her ledger, her choices, and what shows that she may."""

    once: Once
    """Draws something that must never be drawn twice."""
    disclose: Callable[[], None]
    """Enters in her ledger that something of her record leaves in this run, or declines."""
    spend: Callable[[Sequence[Any]], None]
    """Enters in her ledger what the study costs after all: disclosures
    (`mpc_rr.privacy.disclosures`), which must not cost more than was planned."""
    pass_fault: Callable[[PublicIdentity, Pass | None], str | None]
    """Why a pass does not show that somebody may take part, or None."""
    own_pass: Pass | None = None
    """What shows that the registrar knows this person, where the study has one."""
    choices: Mapping[str, str] = field(default_factory=dict)
    """What this party has decided for itself, by keywords that its protocol knows."""
    decide: Decide | None = None
    """Asks her what she decides, now that she has seen something."""
    decide_s: float = 0.0
    """How much time she has for all that she decides between two rounds."""


class PartySession(MailboxSession):
    """A party's side of the rounds."""

    def __init__(
        self,
        mailbox: Mailbox,
        name: str,
        parties: tuple[str, ...],
        rng: Randomness,
        limits: Limits,
        person: Person,
        no_return: NoReturn | None = None,
    ) -> None:
        super().__init__(mailbox, name, parties, rng, limits, no_return)
        self.person = person

    def sub(self, label: str) -> Self:
        """The session of a sub-protocol or a repeated round; what is drawn once stays drawn."""
        return type(self)(
            self.mailbox, f"{self.name}/{label}", self.parties, self.rng.fork(label),
            self.limits, self.person, self._no_return,
        )  # fmt: skip

    @property
    def choices(self) -> Mapping[str, str]:
        """What this party has decided for itself, by keywords that its protocol knows."""
        return self.person.choices

    def decisions_until(self) -> float:
        """By when the party must have decided, if what it sends next hangs on that."""
        return self.mailbox.now() + self.person.decide_s

    def seconds_until(self, then: float) -> float:
        """How much time is left until then."""
        return then - self.mailbox.now()

    @property
    def decides(self) -> bool:
        """Whether this party is asked what it decides."""
        return self.person.decide is not None

    async def decide(self, asked: Any, until: float) -> str | None:
        """What the party decides; None if it is not asked, or does not say in time."""
        ask, seconds = self.person.decide, self.seconds_until(until)
        if ask is None or seconds <= 0:
            return None
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                said = ask(asked)
                return said if isinstance(said, str) else await said
        return None

    @property
    def identity(self) -> Identity:
        """This party's keys."""
        return self.mailbox.identity

    def possession(self, key: MaskKey) -> bytes:
        """Prove to the coordinator that a key which we bring in this session is our own."""
        return key.possession(
            self.mailbox.keys[COORDINATOR].sealing, self.claim(self.me, key.public)
        )

    def once(self, label: str, draw: Callable[[Randomness], bytes], given: bytes = b"") -> bytes:
        """Draw something that must never be drawn twice: a later run of the study gets the same.

        ``given``: what it is drawn from besides the record and what the study promises. If an
        earlier run gave something else, a second draw would tell more: the party declines.
        """
        return self.person.once(label, draw, given)

    def spend(self, disclosures: Sequence[Any]) -> None:
        """Enter in the ledger what this study costs after all."""
        self.person.spend(disclosures)

    async def _collect(
        self, kind: type[M], senders: tuple[str, ...], rounds: int = 1, *, before_news: bool = False
    ) -> dict[str, Opened]:
        """Also whatever came after it is read, before anything follows from it."""
        arrived = await super()._collect(kind, senders, rounds, before_news=before_news)
        await self.mailbox.caught_up()
        return arrived

    def _on_leaving(self, kind: type[Message]) -> None:
        """Nothing that tells of the record leaves before the ledger has entered that it does."""
        if kind.reveals:
            self.person.disclose()
            if self.limits.comparable:
                self.point_of_no_return()

    async def send(self, target: str, message: Message) -> None:
        """Write to one agent."""
        self._on_leaving(type(message))
        await super().send(target, message)

    def witness(self, proof: Callable[[str], Proof | None]) -> None:
        """Keep what public messages prove of others, for when somebody accuses them."""
        self.mailbox.proof = proof

    async def report(self, message: Message) -> bytes:
        """Write publicly to the coordinator; returns the signed bytes."""
        self._on_leaving(type(message))
        raw = await self.mailbox.tell(self.name, COORDINATOR, message)
        self.mailbox.transcribe(raw)
        return raw

    async def confide(self, message: Message) -> None:
        """Write to the coordinator alone; the message is sealed and enters no transcript."""
        self._on_leaving(type(message))
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
        self._on_leaving(kind)
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
        self._on_leaving(kind)
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
        return self.shared(
            f"bundle for {kind.step}",
            (outer.digest, holders),
            lambda: self._parcels(parcels, kind, holders, target, blame_sender=blame_sender),
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
