"""What a session needs of a carrier: bytes out, bytes in."""

from typing import Protocol

AT_ONCE = 64
"""So many messages are handed over, or filed, before others of this process get their turn."""


class Transport(Protocol):
    """One agent's way to the network. It carries bytes and understands none of them."""

    @property
    def address(self) -> str:
        """Where messages for this agent can be delivered, as the coordinator must be told."""

    def route(self, target: str, address: str) -> None:
        """Deliver what is for ``target`` to ``address`` from now on (coordinator only)."""

    async def answer(self, address: str, raw: bytes) -> None:
        """Hand ``raw`` to the carrier for an address, whoever is there (coordinator only)."""

    async def send(self, target: str, raw: bytes) -> None:
        """Hand ``raw`` to the carrier, for the coordinator, one party, or everyone."""

    @property
    def behind(self) -> bool:
        """Whether messages have come that were not handed over yet: this process is slow."""

    async def recv(self) -> bytes:
        """The next raw message; waits until there is one."""
