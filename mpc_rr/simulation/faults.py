"""Faults as data: what a scenario's ``[faults]`` table asks for, and the transport that does it.

Each agent's transport is wrapped. What the network does (delay, loss, repetition, disorder) is
done to each message as it arrives; what a party does (falling silent, crashing) as it sends. The
wrapper draws from its own fork of the seed, so the same seed plays the same faults again.
"""

import asyncio

import msgspec

from mpc_rr.errors import MpcRrError, StudyError
from mpc_rr.network.envelope import Envelope, SignedEnvelope
from mpc_rr.network.transport import Arrival, Transport
from mpc_rr.randomness import Randomness


class PartyFault(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What befalls one party, from the moment it would send its message for ``step``."""

    party: str
    step: str


class Faults(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Everything that may go wrong in a run."""

    delay_s: tuple[float, float] = (0.0, 0.0)
    """Each message arrives later by a uniform time between these."""
    loss: float = 0.0
    """The share of messages that never arrive."""
    duplicate: float = 0.0
    """The share of messages that arrive twice."""
    reorder: float = 0.0
    """The share of messages that are held back until others have overtaken them."""
    silent: tuple[PartyFault, ...] = ()
    """Parties that go on listening but send nothing more."""
    crash: tuple[PartyFault, ...] = ()
    """Parties that are gone altogether."""

    def __post_init__(self) -> None:
        for name in ("loss", "duplicate", "reorder"):
            if not 0.0 <= getattr(self, name) < 1.0:
                raise ValueError(f"{name} is a share of messages, at least 0 and below 1")
        if not 0.0 <= self.delay_s[0] <= self.delay_s[1] < float("inf"):
            raise ValueError("delay_s is [shortest, longest] in seconds")

    @property
    def disturb_network(self) -> bool:
        """Whether messages are delayed, lost, repeated or reordered."""
        return bool(self.delay_s[1] or self.loss or self.duplicate or self.reorder)


class Crashed(StudyError):
    """Raised inside a simulated party when its scenario makes it crash."""


REORDER_HOLD_S = 0.5


class FaultyTransport:
    """A transport on which the faults of a scenario happen."""

    def __init__(self, inner: Transport, name: str, faults: Faults, rng: Randomness) -> None:
        self._inner, self._faults, self._rng, self._name = inner, faults, rng, name
        self._silent_at = {f.step for f in faults.silent if f.party == name}
        self._crash_at = {f.step for f in faults.crash if f.party == name}
        self._silent = False
        self._arrivals: asyncio.Queue[Arrival | MpcRrError] = asyncio.Queue()
        self._feeder: asyncio.Task[None] | None = None

    @property
    def address(self) -> str:
        """The wrapped transport's address."""
        return self._inner.address

    @property
    def payload_bytes(self) -> int:
        """The wrapped transport's."""
        return self._inner.payload_bytes

    def fit(self, payload_bytes: int) -> None:
        """As the wrapped transport does."""
        self._inner.fit(payload_bytes)

    def route(self, target: str, address: str) -> None:
        """As the wrapped transport does."""
        self._inner.route(target, address)

    def unroute(self, target: str) -> None:
        """As the wrapped transport does."""
        self._inner.unroute(target)

    def last_heard(self, address: str) -> float | None:
        """As the wrapped transport does."""
        return self._inner.last_heard(address)

    def missed(self, address: str) -> bool:
        """As the wrapped transport does."""
        return self._inner.missed(address)

    def cut_off(self, since: float) -> str | None:
        """As the wrapped transport does."""
        return self._inner.cut_off(since)

    def crowded(self, since: float) -> str | None:
        """As the carrier says."""
        return self._inner.crowded(since)

    async def answer(self, address: str, raw: bytes) -> None:
        """As the wrapped transport does: what is lost is lost on arrival."""
        await self._inner.answer(address, raw)

    async def send(self, target: str, raw: bytes) -> None:
        """Send, unless this party has fallen silent or now crashes."""
        step = _step_of(raw)
        if step in self._crash_at:
            raise Crashed(f"{self._name} crashed, as the scenario says", [self._name])
        self._silent = self._silent or step in self._silent_at
        if not self._silent:
            await self._inner.send(target, raw)

    @property
    def behind(self) -> bool:
        """Whether the wrapped transport is, or something was let through and not taken yet."""
        return self._inner.behind or not self._arrivals.empty()

    async def recv(self) -> Arrival:
        """The next message that the faults let through."""
        if not self._faults.disturb_network:
            return await self._inner.recv()
        if self._feeder is None:
            self._feeder = asyncio.get_running_loop().create_task(self._feed())
        arrived = await self._arrivals.get()
        if isinstance(arrived, MpcRrError):
            raise arrived
        return arrived

    def close(self) -> None:
        """Stop taking messages from the wrapped transport."""
        if self._feeder is not None:
            self._feeder.cancel()

    async def _feed(self) -> None:
        loop = asyncio.get_running_loop()
        shortest, longest = self._faults.delay_s
        while True:
            try:
                arrival = await self._inner.recv()
            except MpcRrError as error:
                self._arrivals.put_nowait(error)
                return
            lost, twice, held, place = (float(x) for x in self._rng.uniform((4,)))
            if lost < self._faults.loss:
                continue
            delay_s = shortest + place * (longest - shortest)
            if held < self._faults.reorder:
                delay_s += REORDER_HOLD_S
            loop.call_later(delay_s, self._arrivals.put_nowait, arrival)
            if twice < self._faults.duplicate:
                loop.call_later(delay_s + REORDER_HOLD_S, self._arrivals.put_nowait, arrival)


def _step_of(raw: bytes) -> str:
    signed = msgspec.msgpack.decode(raw, type=SignedEnvelope)
    return msgspec.msgpack.decode(signed.envelope, type=Envelope).header.step
