"""What a session needs of a carrier: bytes out, bytes in."""

from typing import NamedTuple, Protocol

AT_ONCE = 64
"""So many messages are filed before others of this process get their turn."""


class Arrival(NamedTuple):
    """A raw message, and the mailbox of the connection it came from."""

    raw: bytes
    mailbox: str | None = None
    """None: this carrier does not know. Empty: it came where no connection has its own topic."""


class Transport(Protocol):
    """One agent's way to the network. It carries bytes and understands none of them."""

    @property
    def address(self) -> str:
        """Where messages for this agent can be delivered, as the coordinator must be told."""

    @property
    def payload_bytes(self) -> int:
        """How large a payload is known to get through."""

    def fit(self, payload_bytes: int) -> None:
        """Be told by the coordinator how large a payload gets through."""

    def route(self, target: str, address: str) -> None:
        """Deliver what is for ``target`` to ``address`` from now on (coordinator only)."""

    def unroute(self, target: str) -> None:
        """Forget where ``target`` is, and whatever was known of who is there."""

    def last_heard(self, address: str) -> float | None:
        """When something last came from an address to which there is a route, by the loop's clock.

        Minus infinity: who was there is gone. None: this carrier cannot tell (coordinator only).
        """

    def missed(self, address: str) -> bool:
        """Whether an address is said to be gone, though it may be there again in a moment."""

    def cut_off(self, since: float) -> str | None:
        """For how long we were cut off from the network since then, in words; None: not long."""

    def crowded(self, since: float) -> str | None:
        """That far more has come in since then than a study's messages, in words; None if not."""

    async def answer(self, address: str, raw: bytes) -> None:
        """Hand ``raw`` to the carrier for an address, whoever is there (coordinator only)."""

    async def send(self, target: str, raw: bytes) -> None:
        """Hand ``raw`` to the carrier, for the coordinator, one party, or everyone."""

    @property
    def behind(self) -> bool:
        """Whether messages have come that were not handed over yet: this process is slow."""

    async def recv(self) -> Arrival:
        """The next raw message; waits until there is one."""
