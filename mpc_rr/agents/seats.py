"""Who has joined a study, and whether she is still there."""

from dataclasses import dataclass

from mpc_rr.crypto.identity import PublicIdentity
from mpc_rr.network.transport import Transport

SILENT_S = 30.0
"""Who was not heard of for so long is gone when the roster is closed."""
GIVEN_UP_S = 15.0
"""The same, where somebody else claims the seat: three beats of a connection."""


@dataclass(frozen=True)
class Seat:
    """A party that has joined."""

    identity: PublicIdentity
    address: str
    raw: bytes
    """The signed message with which it joined."""


class Seats:
    """The parties that have joined, by name. Connections say now and then that they are there."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._seats: dict[str, Seat] = {}
        self._keys: set[bytes] = set()
        self._claims: dict[str, tuple[PublicIdentity, float]] = {}
        """Who else wants a seat, and since when: the latest whose question is open."""
        self._doubted: float | None = None
        """Since when it was in doubt of any of those who sit here now if they are there."""

    def __len__(self) -> int:
        return len(self._seats)

    def __contains__(self, name: str) -> bool:
        return name in self._seats

    def __getitem__(self, name: str) -> Seat:
        return self._seats[name]

    def get(self, name: str) -> Seat | None:
        """The seat of this name, if somebody has taken it."""
        return self._seats.get(name)

    @property
    def names(self) -> tuple[str, ...]:
        """Everybody's, in order."""
        return tuple(sorted(self._seats))

    def has_key_of(self, identity: PublicIdentity) -> bool:
        """Whether somebody has one of these keys already."""
        return bool(self._keys & {identity.signing, identity.sealing})

    def take(self, name: str, seat: Seat) -> None:
        """Let a party sit down."""
        self._seats[name] = seat
        self._doubted = None
        self._keys |= {seat.identity.signing, seat.identity.sealing}
        self._transport.route(name, seat.address)

    def give_back(self, name: str) -> Seat:
        """A party is gone, or left out."""
        seat = self._seats.pop(name)
        self._keys -= {seat.identity.signing, seat.identity.sealing}
        self._claims.pop(name, None)
        self._doubted = None
        self._transport.unroute(name)
        return seat

    def gone(self, now: float) -> list[str]:
        """Those who were not heard of for long."""
        return [name for name in self.names if self._silent_s(name, now) > SILENT_S]

    def still_there(self, name: str, claimant: PublicIdentity, now: float) -> bool | None:
        """Whether a party is there whose seat somebody else claims; None: that is not known yet.

        Whoever claims it is told when he asks again. What became of an earlier claim says nothing:
        the next may be of the party itself, which has died meanwhile.
        """
        heard = self._transport.last_heard(self._seats[name].address)
        if heard is None:
            return True
        if now - heard > GIVEN_UP_S:
            return False
        claim = self._claims.setdefault(name, (claimant, now))
        if heard <= claim[1]:
            return None
        if claim[0] != claimant:
            self._claims[name] = (claimant, now)
            return None
        del self._claims[name]
        return True

    def in_doubt(self, now: float) -> bool:
        """Whether it is not known yet of somebody if she is there.

        Somebody else claims her seat, or the broker has missed her a moment ago. The same people
        are waited for only once: else those who go and come, or a stranger who claims one seat
        after another, would keep all others waiting.
        """
        claimed = any(
            now - since <= self._silent_s(name, now) <= GIVEN_UP_S
            for name, (_, since) in self._claims.items()
        )
        if not claimed and not any(self._transport.missed(s.address) for s in self._seats.values()):
            return False
        if self._doubted is None:
            self._doubted = now
        return now - self._doubted <= GIVEN_UP_S

    def _silent_s(self, name: str, now: float) -> float:
        heard = self._transport.last_heard(self._seats[name].address)
        return 0.0 if heard is None else now - heard
