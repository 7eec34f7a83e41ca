"""A queue in which nobody can push others aside, however much he sends.

Every sender has a lane, and lanes are served in turn. What the queue holds is bounded in bytes;
when it is full, the fullest lane loses what came to it last. So who floods it from one address
loses his own. The number of lanes is fixed (stochastic fairness queueing, McKenney 1990; which
senders share one, depends on a secret): from thousands of addresses he can take others' places,
but only in proportion, and they ask again. Rights at a broker do not prevent that: an invitation
makes tokens for as many mailboxes as one likes. They see to it that each needs a connection.
"""

import hashlib
from collections import deque
from typing import Generic, TypeVar

LANES = 1024
COST_OF_AN_ITEM = 256
"""What a held item costs in memory besides its own bytes, at least."""

T = TypeVar("T")


class FairQueue(Generic[T]):
    """Holds items of many senders, and gives them out in turn."""

    def __init__(self, most_bytes: int, secret: bytes) -> None:
        self._most, self._secret = most_bytes, secret
        self._lanes: dict[int, deque[tuple[int, T]]] = {}
        self._held: dict[int, int] = {}
        self._total = self._items = 0

    def __len__(self) -> int:
        return self._items

    def put(self, sender: str, item: T, size: int) -> int:
        """Add an item; returns how many were lost for it, which may be itself."""
        lane, cost = self._lane(sender), size + COST_OF_AN_ITEM
        self._lanes.setdefault(lane, deque()).append((cost, item))
        self._held[lane] = self._held.get(lane, 0) + cost
        self._total += cost
        self._items += 1
        lost = 0
        while self._total > self._most:
            fullest = max(self._held, key=self._held.__getitem__)
            self._took(fullest, self._lanes[fullest].pop()[0])
            lost += 1
        return lost

    def get(self) -> T:
        """The next item; ``IndexError`` if there is none."""
        if not self._items:
            raise IndexError("the queue is empty")
        lane = next(iter(self._lanes))
        cost, item = self._lanes[lane].popleft()
        waiting = self._lanes.pop(lane)
        self._lanes[lane] = waiting  # to the end of the line
        self._took(lane, cost)
        return item

    def _lane(self, sender: str) -> int:
        digest = hashlib.blake2b(sender.encode(), key=self._secret, digest_size=8).digest()
        return int.from_bytes(digest, "big") % LANES

    def _took(self, lane: int, cost: int) -> None:
        self._total -= cost
        self._items -= 1
        self._held[lane] -= cost
        if not self._lanes[lane]:
            del self._lanes[lane], self._held[lane]
