"""Taking off the masks of a masked sum: what the coordinator, or whoever replays it, recovers."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

from mpc_rr.crypto import shamir
from mpc_rr.crypto.masks import SEED_BYTES, Mask, masks, seed_of, unlock
from mpc_rr.errors import Dropout, Misconduct
from mpc_rr.protocols.mask_enrolment import Board

MARK_BYTES = 16
Given = Mapping[int, Mapping[int, bytes]]
"""The shares that parties gave, by their numbers and slots."""


def pieces(raw: bytes, size: int, count: int) -> list[bytes]:
    """``ValueError`` unless there are so many pieces."""
    if len(raw) != size * count:
        raise ValueError(f"{len(raw)} bytes where {size * count} are due")
    return [raw[k : k + size] for k in range(0, len(raw), size)]


def mark_of(kind: bytes, secret: bytes) -> bytes:
    """By which a recovered secret is known to be the right one."""
    return hashlib.sha256(b"mpc-rr mark\0" + kind + secret).digest()[:MARK_BYTES]


@dataclass
class Shared:
    """Who shared what in step 3, by number in the graph."""

    parcels: dict[int, list[bytes]]
    boxes: dict[int, bytes]
    marks: dict[int, bytes]


def leftover(
    board: Board,
    shared: Shared,
    alive: set[int],
    given: Given,
    cells: int,
    bits: int,
) -> Mask:
    """The masks that do not cancel: the survivors' own, and theirs with those who left."""
    own = (seed_of(_recovered(board, shared, k, b"own", given)) for k in sorted(alive))
    total = masks(own, cells, bits)
    for gone in sorted(shared.boxes.keys() - alive):
        row = board.rows[gone].tolist()
        left = [(slot, k) for slot, k in enumerate(row) if k in alive]
        if not left:
            continue
        key = _recovered(board, shared, gone, b"box", given)
        box = unlock(key, shared.boxes[gone])
        if box is None:
            name = board.names[gone]
            raise Misconduct(f"{name} left, and its box of seeds does not open", [name])
        seeds = pieces(box, SEED_BYTES, board.graph.degree)
        # A survivor with the lower number added the mask, one with the higher took it off.
        total += masks((seeds[slot] for slot, k in left if k < gone), cells, bits)
        total -= masks((seeds[slot] for slot, k in left if k > gone), cells, bits)
    return total


def _recovered(
    board: Board,
    shared: Shared,
    number: int,
    kind: bytes,
    given: Given,
) -> bytes:
    """A party's secret, from any t shares of its neighbours that fit its mark."""
    threshold, name = board.plan.threshold, board.names[number]
    shares = {
        slot + 1: given[neighbour][board.graph.mirrored(slot)]
        for slot, neighbour in enumerate(board.rows[number].tolist())
        if board.graph.mirrored(slot) in given.get(neighbour, {})
    }
    if len(shares) < threshold:
        _blame_unreadable(board, number, given)
        raise Dropout(
            f"only {len(shares)} of {name}'s neighbours helped to take off its mask, "
            f"{threshold} are needed; too many have left"
        )
    mark = (
        shared.marks[number][:MARK_BYTES] if kind == b"own" else shared.marks[number][MARK_BYTES:]
    )
    points = list(shares)
    for first in range(len(points)):  # one false share spoils some choices, never all of them
        chosen = (points + points)[first : first + threshold]
        secret = shamir.join({point: shares[point] for point in chosen})
        if mark_of(kind, secret) == mark:
            return secret
    raise Misconduct(
        f"the shares of {name}'s secret do not fit together: {name} or one of its neighbours lied",
        [name],
    )


def _blame_unreadable(board: Board, number: int, given: Given) -> None:
    """`Misconduct` if a party's neighbours are there, but could not open what it sent them."""
    there = [k for k in board.rows[number].tolist() if k in given]
    if len(there) >= board.plan.threshold:
        name = board.names[number]
        raise Misconduct(
            f"{len(there)} neighbours of {name} are there, but could not open the shares it sent",
            [name],
        )
