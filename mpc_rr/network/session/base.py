"""What the sessions of parties and coordinator share."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

from mpc_rr.errors import Misconduct
from mpc_rr.network.envelope import COORDINATOR, Bundle, M, Message, decode, encode_parts
from mpc_rr.network.mailbox import Mailbox
from mpc_rr.network.sealed import Opened, Rejected, read, understood
from mpc_rr.network.session.shared import once_per_process
from mpc_rr.randomness import Randomness

T = TypeVar("T")

Check = Callable[[M], None]
"""Raises ``ValueError`` with the reason if an honest sender would not send this message."""


@dataclass
class NoReturn:
    """Whether a session, with all sessions below it, has passed its point of no return."""

    passed: bool = False


@dataclass(frozen=True)
class Limits:
    """What a study sets: who and how many may take part, and how long a round may take."""

    fewest: int
    most: int
    round_s: float
    """How long this agent waits for what a round brings."""
    stragglers_s: float = math.inf
    """Once ``fewest`` are there: how long the coordinator waits for each of the rest."""
    registrar: bool = False
    """Whether a registrar admits people; otherwise the study is open to everybody."""
    comparable: bool = False
    """Whether a run could be compared with one of other parties: then what reveals something is
    the point of no return."""


class MailboxSession:
    """What the agents' sessions share: a name, the parties, randomness, and typed messages."""

    def __init__(
        self,
        mailbox: Mailbox,
        name: str,
        parties: tuple[str, ...],
        rng: Randomness,
        limits: Limits,
        no_return: NoReturn | None = None,
    ) -> None:
        self.mailbox, self.name, self.parties, self.rng = mailbox, name, parties, rng
        self.limits = limits
        self._no_return = no_return or NoReturn()

    @property
    def fewest(self) -> int:
        """With how few parties the study goes on."""
        return self.limits.fewest

    @property
    def most(self) -> int:
        """How many parties there may be."""
        return self.limits.most

    @property
    def registrar(self) -> bool:
        """Whether a registrar admits people; otherwise the study is open to everybody."""
        return self.limits.registrar

    @property
    def me(self) -> str:
        """This agent's name."""
        return self.mailbox.me

    @property
    def run(self) -> bytes:
        """The name of this run of the study, which the coordinator made."""
        return self.mailbox.run

    @property
    def others(self) -> tuple[str, ...]:
        """All parties but this one."""
        return tuple(party for party in self.parties if party != self.me)

    @property
    def past_return(self) -> bool:
        """Whether the point of no return has been passed, here or in a sub-session."""
        return self._no_return.passed

    def point_of_no_return(self) -> None:
        """From here on a repetition with other parties would expose somebody: there is none."""
        self._no_return.passed = True

    def shared(self, what: str, depends_on: tuple[object, ...], work: Callable[[], T]) -> T:
        """What follows from public messages alone: parties of one process work it out once.

        ``depends_on`` must hold everything that ``work`` looks at, but for what everybody in this
        session knows alike: the study, the run, the session, and the keys of the parties.
        """
        place = (what, self.context, self.mailbox.keys_digest, *depends_on)
        return once_per_process(place, work)

    async def send(self, target: str, message: Message) -> None:
        """Write to one agent."""
        await self.mailbox.tell(self.name, target, message)

    @cached_property
    def context(self) -> bytes:
        """What binds a hash or a ciphertext to this study, run and session."""
        return encode_parts(self.mailbox.study.encode(), self.mailbox.run, self.name.encode())

    def claim(self, party: str, key: bytes) -> bytes:
        """What a party proves of a key that it brings in this session: that it is its own."""
        return encode_parts(b"mpc-rr key", self.context, party.encode(), key)

    def signed(self, raw: bytes, sender: str, step: str, *, target: str = COORDINATOR) -> Opened:
        """What somebody wrote in this session, as handed on by another.

        ``ValueError`` if it is anything else, or not signed by its author.
        """
        return self._parcel(raw, self.name, sender, target, step)

    async def _collect(
        self, kind: type[M], senders: tuple[str, ...], rounds: int = 1, *, before_news: bool = False
    ) -> dict[str, Opened]:
        timeout_s = rounds * self.limits.round_s
        return await self.mailbox.collect(
            self.name, kind.step, senders, timeout_s, before_news=before_news
        )

    def _understand_all(
        self,
        arrived: Mapping[str, Opened],
        kind: type[M],
        check: Check[M] | None,
        also_blamed: tuple[str, ...] = (),
    ) -> dict[str, M]:
        """Open and check every message; all who sent a bad one are named together."""
        good: dict[str, M] = {}
        bad: dict[str, str] = {}
        for sender, opened in arrived.items():
            try:
                good[sender] = self._understand(opened, kind, check)
            except ValueError as error:
                bad[sender] = str(error)
        if bad:
            first = min(bad)
            raise Misconduct(
                f"{first}'s message for step {kind.step!r}: {bad[first]}", [*bad, *also_blamed]
            )
        return good

    def _understand(self, opened: Opened, kind: type[M], check: Check[M] | None) -> M:
        message = understood(opened, kind, self.mailbox.identity)
        if check is not None:
            check(message)
        return message

    def _parcel(self, raw: bytes, session: str, sender: str, target: str, step: str) -> Opened:
        """A signed envelope that came inside a bundle, checked to be what it should be."""
        try:
            opened = read(
                raw, study=self.mailbox.study, runs=(self.mailbox.run,), targets=(target,)
            )
        except Rejected as rejected:
            raise ValueError(rejected.reason) from None
        header = opened.envelope.header
        if (header.session, header.step, header.sender) != (session, step, sender):
            raise ValueError("it belongs to another step")
        own = sender == self.me
        author = self.mailbox.identity.public if own else self.mailbox.keys[sender]
        if not opened.signed_by(author):
            raise ValueError("its signature is not the sender's")
        return opened

    def _bundle(self, opened: Opened, holders: tuple[str, ...]) -> dict[str, bytes]:
        """The parcels of a bundle that must hold exactly one for each of ``holders``."""
        bundle = decode(opened.envelope.body, Bundle)
        if set(bundle.parcels) != set(holders):
            raise ValueError("it does not hold one sealed message for each party")
        most = self.mailbox.size_limit // max(len(self.parties), 1)
        if any(len(parcel) > most for parcel in bundle.parcels.values()):
            raise ValueError(f"a sealed message is longer than {most} bytes")
        return bundle.parcels
