"""Commitments (paper 004 §5): everybody fixes some values before anybody shows any.

1. Each party posts a commitment to each of its values, and to a random number, its die.
2. When all commitments are on the board, each party opens its own.
3. Everybody checks every opening against the commitment on the board. Whoever opens something
   else, or nothing, or too late, is named and takes no further part.

Nobody can choose values after seeing those of others. All dice and entries together give public
randomness that nobody could choose. (Whoever controls several parties can still keep some of them
from opening, after seeing all other dice, and so choose among a few outcomes.)
"""

import hashlib
from collections.abc import Mapping, Sequence
from typing import ClassVar

from mpc_rr.crypto.commitments import HASH_BYTES, SALT_BYTES, commit, opens
from mpc_rr.network.per_host import once_per_host
from mpc_rr.network.session import CoordinatorSession, PartySession, encode_parts
from mpc_rr.protocols.bulletin_board import (
    Board,
    Posted,
    check_enough,
    post_coordinator,
    post_party,
)

DIE_BYTES = 16
DIE = "die"


class Commitments(Posted, frozen=True):
    """1, party → board: a hash for each field, the die last."""

    step: ClassVar[str] = "commitments"
    hashes: tuple[bytes, ...]


class Openings(Posted, frozen=True):
    """2, party → board: the values and salts of all fields, the die last."""

    step: ClassVar[str] = "openings"
    values: tuple[bytes, ...]
    salts: tuple[bytes, ...]


def _bound_to(context: bytes, party: str, field: str) -> bytes:
    return encode_parts(context, party.encode(), field.encode())


def _check_hashes(fields: int, message: Commitments) -> None:
    if len(message.hashes) != fields or any(len(h) != HASH_BYTES for h in message.hashes):
        raise ValueError(f"{fields} hashes of {HASH_BYTES} bytes are due")


async def commit_party(
    session: PartySession, board: Board, values: Mapping[str, bytes]
) -> tuple[dict[str, tuple[bytes, ...]], bytes]:
    """A party's steps: the values of all who opened theirs, and public randomness."""
    fields, rng = (*values, DIE), session.rng.fork("commitment")
    hidden = (*values.values(), rng.fork(DIE).bytes(DIE_BYTES))
    salts = tuple(rng.fork(f"salt/{field}").bytes(SALT_BYTES) for field in fields)

    # Step 1: post the commitments.
    hashes = tuple(
        commit(_bound_to(session.context, session.me, field), value, salt)
        for field, value, salt in zip(fields, hidden, salts, strict=True)
    )
    committed = await post_party(
        session, board, Commitments, Commitments(board.head, hashes),
        check=lambda message: _check_hashes(len(fields), message),
    )  # fmt: skip

    # Step 2: open them. Another attempt with other commitments could follow what is seen now.
    session.point_of_no_return()
    openings = await post_party(session, board, Openings, Openings(board.head, hidden, salts))

    # Step 3: check everybody's.
    return _opened(session.context, board, fields, committed, openings)


async def commit_coordinator(
    session: CoordinatorSession, board: Board, names: Sequence[str]
) -> tuple[dict[str, tuple[bytes, ...]], bytes]:
    """The coordinator's part: it learns what everybody learns."""
    fields = (*names, DIE)
    committed = await post_coordinator(
        session, board, Commitments, check=lambda message: _check_hashes(len(fields), message)
    )
    session.point_of_no_return()
    openings = await post_coordinator(session, board, Openings)
    found = _opened(session.context, board, fields, committed, openings)
    check_enough(session, board)
    return found


def _opened(
    context: bytes,
    board: Board,
    fields: Sequence[str],
    committed: Mapping[str, Commitments],
    openings: Mapping[str, Openings],
) -> tuple[dict[str, tuple[bytes, ...]], bytes]:
    """Step 3: the values of those whose openings hold; the others are lost, and it is said why."""

    def faults() -> dict[str, str]:
        found = {}
        for party, opening in openings.items():
            wrong = _wrong(context, party, fields, committed[party], opening)
            if wrong is not None:
                found[party] = f"{Openings.step}: {wrong}"
        return found

    # The head is that of all commitments and openings.
    board.lose(once_per_host((context, board.head, tuple(fields)), faults))
    opened = {p: said.values[:-1] for p, said in openings.items() if p not in board.lost}
    return opened, hashlib.sha256(b"mpc-rr public randomness\0" + board.head).digest()


def _wrong(
    context: bytes, party: str, fields: Sequence[str], committed: Commitments, opening: Openings
) -> str | None:
    if not len(opening.values) == len(opening.salts) == len(fields):
        return "it does not open every field"
    for field, value, salt, commitment in zip(
        fields, opening.values, opening.salts, committed.hashes, strict=True
    ):
        if not opens(commitment, _bound_to(context, party, field), value, salt):
            return f"{field!r} is not what it committed to"
    return None
