"""The coordinator's side of the rounds, as protocols see it.

Two things are a coordinator's session: the one that speaks with parties (`mpc_rr.network.session.
live`), and the one that plays a transcript again (`mpc_rr.network.session.replay`).
"""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, Self, TypeVar

from mpc_rr.crypto.admission import Pass
from mpc_rr.crypto.identity import PublicIdentity
from mpc_rr.errors import Dropout, listing, out_of
from mpc_rr.network.envelope import COORDINATOR, M, Message
from mpc_rr.network.mailbox import Watched
from mpc_rr.network.sealed import Opened
from mpc_rr.network.session.base import Check, Limits

T = TypeVar("T")


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


def check_enough(
    answered: Collection[str],
    asked: Collection[str],
    at_least: int,
    faulty: Mapping[str, str] | None = None,
    expected: int | None = None,
) -> None:
    """`Dropout` if fewer than ``at_least`` of those who were asked have answered.

    ``faulty``: whose answers could not be used, and why; the first is told. ``expected``: how many
    the study is for, if all who were there have been asked.
    """
    if len(answered) < at_least:
        missing = [party for party in asked if party not in answered]
        of_all = out_of(len(answered), len(asked), len(asked) if expected is None else expected)
        raise Dropout(
            f"only {of_all} answered, at least {at_least} are needed; {listing(missing)} did "
            f"not{_why(faulty or {})}",
            missing,
        )


def _why(faulty: Mapping[str, str]) -> str:
    if not faulty:
        return ""
    return f", or were invalid ({len(faulty)} of them: {next(iter(faulty.values()))})"


RULES = 6
"""The rules by which results are made, and told. 0: those of result format 1. Since 1, dice and not
names decide between equal records. Since 2, tables of blocks are rounded, and disclosures are
reckoned for those who surely stay. Since 3, as many neighbours as possible must answer in a masked
sum, disclosures say how many parties may pool what they know, receipts are not said to show why an
answer is missing, dependences and shares have limits that hold near 0 and 1, who gave no answer to
a question has no rank, and sentences quote the names of attributes. Since 4, tables of blocks agree
about all they share, and shares of single attributes are published with them; all that is estimated
from full reports or views is counted in one weighted population; and views are drawn by weights.
Since 5, distances between records are not rounded in small studies, and losses and risks of groups
and masks are those of what is really published. Since 6, studies by blocks publish the shares that
were known least after each block, and when paper 002's rule of convergence would have stopped; how
many gave no answer is that of the published tables; computed correlations are told as published
ones are, and dependences in large tables are not; and sentences are said in plainer words, and of
two answers that one person gave together only where answers are counted together. Where a rule or a
published sentence changes, this goes up, and what older folders hold in other words is no
contradiction."""


class CoordinatorSession(ABC):
    """What a protocol's coordinator may do."""

    name: str
    parties: tuple[str, ...]
    limits: Limits
    rules: int = RULES
    """By which results are made; older ones only in replays of old result folders."""

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

    def out_of_expected(self, n: int) -> str:
        """So many, of how many the study is for."""
        return out_of(n, len(self.parties), self.most)

    def needed(self, senders: Collection[str] | None, at_least: int | None) -> int:
        """How many must report in a `gather`."""
        if at_least is not None:
            return at_least
        return self.fewest if senders is None else 0

    @property
    @abstractmethod
    def context(self) -> bytes:
        """What binds a hash or a ciphertext to this study, run and session."""

    @abstractmethod
    def sub(self, label: str, *, fewest: int | None = None) -> Self:
        """The session of a sub-protocol or a repeated round, perhaps with fewer parties."""

    @abstractmethod
    def point_of_no_return(self) -> None:
        """From here on a repetition with other parties would expose somebody: there is none."""

    @abstractmethod
    def shared(self, what: str, depends_on: tuple[object, ...], work: Callable[[], T]) -> T:
        """What follows from public messages alone (see `MailboxSession.shared`)."""

    @abstractmethod
    def show(self, rows: Sequence[Watched], remark: str = "") -> None:
        """Let people watch: shares as they are known now, and a line about them."""

    @abstractmethod
    def identity_of(self, party: str) -> PublicIdentity:
        """The keys with which a party joined."""

    @abstractmethod
    def pass_of(self, party: str) -> Pass | None:
        """The pass that a party showed, where the study has a registrar."""

    @abstractmethod
    def signed(self, raw: bytes, sender: str, step: str, *, target: str = COORDINATOR) -> Opened:
        """What somebody wrote in this session; ``ValueError`` if it is anything else."""

    @abstractmethod
    async def gather(
        self,
        kind: type[M],
        *,
        check: Check[M] | None = None,
        senders: Collection[str] | None = None,
        at_least: int | None = None,
    ) -> Gathered[M]:
        """Serve a `PartySession.report`: take what comes from these parties until the deadline.

        `Dropout` if fewer than ``at_least`` report in order. Unless it is given, all parties are
        held to what the study needs, and some of them (``senders``) to nothing.
        """

    @abstractmethod
    async def hand_out(self, messages: Mapping[str, Message]) -> None:
        """Write to some parties, to each its own; they wait for it with `PartySession.told`."""

    @abstractmethod
    async def announce(self, message: Message) -> None:
        """Write one message to everyone."""

    @abstractmethod
    async def confided(self, kind: type[M], *, check: Check[M] | None = None) -> dict[str, M]:
        """Serve a `PartySession.confide`: what every party wrote to us alone."""

    @abstractmethod
    async def announce_made(
        self, kind: type[M], make: Callable[[], Awaitable[M]], *, check: Check[M]
    ) -> M:
        """Announce what only we can make; it must pass the check that everybody will make."""

    @abstractmethod
    async def route(
        self, kind: type[M], *, before_handing_out: Callable[[], None] | None = None
    ) -> None:
        """Serve a `PartySession.exchange`: hand every party the parcels meant for it."""

    @abstractmethod
    async def relay(self, kind: type[M], *, check: Check[M] | None = None) -> dict[str, M]:
        """Serve a `PartySession.publish`: collect what all publish and hand all of it to all."""
