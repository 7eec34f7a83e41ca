"""A network inside one process, for simulation: queues, and a fixed small delay."""

import asyncio
from collections import deque

from mpc_rr.network.envelope import COORDINATOR, EVERYONE
from mpc_rr.network.fragments import LARGEST_PAYLOAD
from mpc_rr.network.transport import Arrival

LATENCY_S = 0.001


class MemoryNetwork:
    """Connects one coordinator and any number of parties. Delivers in the order of sending."""

    def __init__(self) -> None:
        self._ends: dict[str, MemoryTransport] = {}
        self._on_the_way: deque[tuple[str, str, bytes]] = deque()

    def attach(self, address: str) -> "MemoryTransport":
        """A new end of the network. The coordinator's address is ``coordinator``."""
        if address in self._ends:
            raise ValueError(f"address {address!r} is taken")
        self._ends[address] = MemoryTransport(self, address)
        return self._ends[address]

    def carry(self, sender: str, target: str, raw: bytes) -> None:
        """Take a message; it arrives a little later."""
        self._on_the_way.append((sender, target, raw))
        asyncio.get_running_loop().call_later(LATENCY_S, self._deliver)

    def _deliver(self) -> None:
        sender, target, raw = self._on_the_way.popleft()
        if target != EVERYONE:
            if target in self._ends:
                self._ends[target].inbox.put_nowait(raw)
            return
        for address, end in self._ends.items():
            if address != sender:
                end.inbox.put_nowait(raw)


class MemoryTransport:
    """One agent's end of a `MemoryNetwork`."""

    def __init__(self, network: MemoryNetwork, address: str) -> None:
        self._network, self._address = network, address
        self._routes: dict[str, str] = {COORDINATOR: COORDINATOR, EVERYONE: EVERYONE}
        self.inbox: asyncio.Queue[bytes] = asyncio.Queue()

    @property
    def address(self) -> str:
        """This end's own address."""
        return self._address

    @property
    def payload_bytes(self) -> int:
        """In memory, as much as anywhere."""
        return LARGEST_PAYLOAD

    def fit(self, payload_bytes: int) -> None:
        """Nothing is cut into pieces here."""

    def route(self, target: str, address: str) -> None:
        """Deliver what is for ``target`` to ``address``."""
        self._routes[target] = address

    def unroute(self, target: str) -> None:
        """Forget where ``target`` is."""
        self._routes.pop(target, None)

    def last_heard(self, address: str) -> float | None:  # noqa: ARG002
        """Nobody says here that he is there."""
        return None

    def missed(self, address: str) -> bool:  # noqa: ARG002
        """Nobody says so."""
        return False

    def cut_off(self, since: float) -> str | None:  # noqa: ARG002
        """Never."""
        return None

    def crowded(self, since: float) -> str | None:  # noqa: ARG002
        """Never."""
        return None

    async def answer(self, address: str, raw: bytes) -> None:
        """Hand a message to the network for an address."""
        self._network.carry(self._address, address, raw)

    async def send(self, target: str, raw: bytes) -> None:
        """Hand a message to the network; one for an unknown target is lost."""
        if target in self._routes:
            self._network.carry(self._address, self._routes[target], raw)

    @property
    def behind(self) -> bool:
        """Never: in virtual time nobody is slow."""
        return False

    async def recv(self) -> Arrival:
        """The next message for this end; from where, nobody says here."""
        return Arrival(await self.inbox.get())
