"""Taking off the masks of a masked sum: what the coordinator, or whoever replays it, recovers."""

import hashlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from mpc_rr.crypto import shamir
from mpc_rr.crypto.pairwise import SEED_BYTES, Mask, masks, seed_of, unlock
from mpc_rr.errors import Dropout, Misconduct
from mpc_rr.protocols.sums.masked.setup import Enrolled
from mpc_rr.protocols.sums.masked.slots import pieces

MARK_BYTES = 16
Given = Mapping[int, Mapping[int, bytes]]
"""The shares that parties gave, by their numbers and slots."""


def mark_of(kind: bytes, secret: bytes) -> bytes:
    """By which a recovered secret is known to be the right one."""
    return hashlib.sha256(b"mpc-rr mark\0" + kind + secret).digest()[:MARK_BYTES]


@dataclass
class Shared:
    """Who shared what in step 3, by number in the graph."""

    parcels: dict[int, list[bytes]]
    boxes: dict[int, bytes]
    marks: dict[int, bytes]


@dataclass
class Recovery:
    """Step 6: the masks that do not cancel, from what the parties gave for them."""

    enrolled: Enrolled
    shared: Shared
    alive: set[int]
    given: Given
    marks: Mapping[int, bytes]
    """Of the seeds of pairs with those who left, by the numbers of those who helped."""
    false_shares: Counter[int] = field(default_factory=Counter)
    """How many false shares came from whom: theirs are tried last."""

    def leftover(self, cells: int, bits: int) -> Mask:
        """The survivors' own masks, and theirs with those who left."""
        own = (seed_of(self._secret(k, b"own")) for k in sorted(self.alive))
        total = masks(own, cells, bits)
        for gone in sorted(self.shared.boxes.keys() - self.alive):
            seeds = self._seeds_of(gone)
            # A survivor with the lower number added the mask, one with the higher took it off.
            total += masks((seed for k, seed in seeds.items() if k < gone), cells, bits)
            total -= masks((seed for k, seed in seeds.items() if k > gone), cells, bits)
        return total

    def _seeds_of(self, gone: int) -> dict[int, bytes]:
        """The seeds of the masks of somebody who left with each survivor."""
        enrolled, name = self.enrolled, self.enrolled.names[gone]
        row = enrolled.rows[gone].tolist()
        left = [(slot, k) for slot, k in enumerate(row) if k in self.alive]
        if not left:
            return {}
        box = unlock(self._secret(gone, b"box"), self.shared.boxes[gone])
        if box is None:
            raise Misconduct(f"{name} left, and its box of seeds does not open", [name])
        seeds = pieces(box, SEED_BYTES, enrolled.graph.degree)
        for slot, k in left:
            if k in self.marks and self._mark(k, gone) != mark_of(b"pair", seeds[slot]):
                raise Misconduct(
                    f"{name}, which left, and {enrolled.names[k]} do not name the same mask: one "
                    "of them lied",
                    [name, enrolled.names[k]],
                )
        return {k: seeds[slot] for slot, k in left}

    def _mark(self, survivor: int, gone: int) -> bytes:
        """What a survivor says of its mask with somebody who left."""
        row = self.enrolled.rows[survivor].tolist()
        left = [k for k in row if k in self.shared.boxes and k not in self.alive]
        place = left.index(gone)
        return self.marks[survivor][place * MARK_BYTES : (place + 1) * MARK_BYTES]

    def _secret(self, number: int, kind: bytes) -> bytes:
        """A party's secret, from its neighbours' shares, some of which may be false."""
        enrolled, threshold = self.enrolled, self.enrolled.plan.threshold
        name, row = enrolled.names[number], enrolled.rows[number].tolist()
        shares = {
            slot + 1: self.given[neighbour][enrolled.graph.mirrored(slot)]
            for slot, neighbour in enumerate(row)
            if enrolled.graph.mirrored(slot) in self.given.get(neighbour, {})
        }
        if len(shares) < threshold:
            self._blame_unreadable(number)
            raise Dropout(
                f"only {len(shares)} of {name}'s neighbours helped to take off its mask, "
                f"{threshold} are needed; too many have left"
            )
        own, box = pieces(self.shared.marks[number], MARK_BYTES, 2)
        mark = own if kind == b"own" else box
        points = sorted(shares, key=lambda point: (self.false_shares[row[point - 1]], point))
        secret = shamir.join({point: shares[point] for point in sorted(points[:threshold])})
        if mark_of(kind, secret) == mark:
            fewer = {point: shares[point] for point in sorted(points[: threshold - 1])}
            if mark_of(kind, shamir.join(fewer)) == mark:
                raise Misconduct(
                    f"fewer than {threshold} shares give {name}'s secret: it was not shared by the "
                    "rules of now",
                    [name],
                )
            return secret
        trusted = {p: s for p, s in shares.items() if not self.false_shares[row[p - 1]]}
        corrected = shamir.corrected(trusted if len(trusted) >= threshold else shares, threshold)
        if corrected is None or mark_of(kind, corrected[0]) != mark:
            raise Misconduct(
                f"the shares of {name}'s secret do not fit together, or not its mark: {name} or "
                "some of its neighbours lied; which of them, cannot be told"
            )
        self.false_shares.update(row[point - 1] for point in corrected[1])
        return corrected[0]

    def _blame_unreadable(self, number: int) -> None:
        """`Misconduct` if a party's neighbours are there, but could not open what it sent them."""
        there = [k for k in self.enrolled.rows[number].tolist() if k in self.given]
        if len(there) >= self.enrolled.plan.threshold:
            name = self.enrolled.names[number]
            raise Misconduct(
                f"{len(there)} neighbours of {name} are there, but could not open the shares it "
                "sent",
                [name],
            )
