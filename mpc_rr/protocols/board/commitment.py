"""Commitments (paper 004 §5): everybody fixes some values before anybody shows any.

1. Each party posts a commitment to each of its values, and to a random number, its die.
2. When all commitments are on the board, each party opens its own.
3. Everybody checks every opening against the commitment on the board. Whoever opens something
   else, or nothing, or too late, is named and takes no further part.

Nobody can choose values after seeing those of others. The dice of all together are public
randomness that nobody could choose. If anybody who committed does not open (or the coordinator says
so), all dice are thrown again without that party, but only once: a second time, the study ends. So
nobody can go on until the outcome suits, nor choose among outcomes that were seen. Nor by beginning
the study again: a party with a ledger declines a second run, unless its owner agrees.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from mpc_rr.crypto.commitments import HASH_BYTES, SALT_BYTES, commit, opens
from mpc_rr.errors import Dropout, Refused, listing
from mpc_rr.network.envelope import encode_parts
from mpc_rr.network.session import AnySession, CoordinatorSession, PartySession, Proof
from mpc_rr.protocols.board.board import (
    Board,
    Posted,
    check_enough_present,
    post_coordinator,
    post_party,
)

DIE_BYTES = MOST_VALUE_BYTES = 16
DIE = "die"
SECOND_THROW = "throw-2"
COMMITTED = "committed to"
KEPT_ITS_WORD = f"opened what it had {COMMITTED}"


class Commitments(Posted, frozen=True):
    """1, party → board: a hash for each field, the die last."""

    step: ClassVar[str] = "commitments"
    reveals: ClassVar[bool] = False
    doing: ClassVar[str] = "respondents commit to what they will show"
    hashes: tuple[bytes, ...]


class Openings(Posted, frozen=True):
    """2, party → board: the values and salts of all fields, the die last."""

    step: ClassVar[str] = "openings"
    doing: ClassVar[str] = "respondents open their commitments"
    values: tuple[bytes, ...]
    salts: tuple[bytes, ...]

    def check_size(self) -> None:
        """Values and salts are short."""
        if any(len(value) > MOST_VALUE_BYTES for value in self.values):
            raise ValueError(f"a value is longer than {MOST_VALUE_BYTES} bytes")
        if any(len(salt) != SALT_BYTES for salt in self.salts):
            raise ValueError(f"a salt has not {SALT_BYTES} bytes")


def _bound_to(context: bytes, party: str, field: str) -> bytes:
    return encode_parts(context, party.encode(), field.encode())


def _check_hashes(fields: int, message: Commitments) -> None:
    if len(message.hashes) != fields or any(len(h) != HASH_BYTES for h in message.hashes):
        raise ValueError(f"{fields} hashes of {HASH_BYTES} bytes are due")


def _check_openings(fields: int, message: Openings) -> None:
    if not len(message.values) == len(message.salts) == fields:
        raise ValueError(f"{fields} values and as many salts are due")


async def commit_party(
    session: PartySession, board: Board, values: Mapping[str, bytes]
) -> tuple[dict[str, tuple[bytes, ...]], bytes]:
    """A party's steps: the values of all who opened theirs, and public randomness."""
    opened = await _once_party(session, board, values)
    thrown = opened
    if not thrown.complete:
        thrown = await _once_party(session.sub(SECOND_THROW), board, {})
    if not thrown.complete:
        raise Refused(
            "random contributions were not opened twice; a third coin flip could be someone's "
            "choice"
        )
    return opened.values(board), thrown.seed(session.context)


@dataclass(frozen=True)
class _Opened:
    """What was opened, by those whose openings hold; and whether all who had committed did."""

    openings: dict[str, tuple[bytes, ...]]
    complete: bool

    def values(self, board: Board) -> dict[str, tuple[bytes, ...]]:
        """The values of those who are still there, without their dice."""
        return {p: said[:-1] for p, said in self.openings.items() if p not in board.lost}

    def seed(self, context: bytes) -> bytes:
        """Public randomness: a hash of all dice, whoever wrote them down how."""
        parts = (
            part for p, said in sorted(self.openings.items()) for part in (p.encode(), said[-1])
        )
        return hashlib.sha256(encode_parts(b"mpc-rr dice", context, *parts)).digest()


async def _once_party(session: PartySession, board: Board, values: Mapping[str, bytes]) -> _Opened:
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

    # Step 2: open them. From here on there is no other attempt (openings reveal): with other
    # commitments it could follow what is seen now.
    openings = await post_party(
        session, board, Openings, Openings(board.head, hidden, salts),
        check=lambda message: _check_openings(len(fields), message), even_if_ended=True,
    )  # fmt: skip

    # Step 3: check everybody's.
    return _opened(session, board, fields, committed, openings)


async def commit_coordinator(
    session: CoordinatorSession, board: Board, names: Sequence[str]
) -> tuple[dict[str, tuple[bytes, ...]], bytes]:
    """The coordinator's part: it learns what everybody learns."""
    opened = await _once_coordinator(session, board, names)
    thrown = opened
    if not thrown.complete:
        check_enough_present(session, board)
        thrown = await _once_coordinator(session.sub(SECOND_THROW), board, ())
    if not thrown.complete:
        raise Dropout(
            f"{listing(board.lost)} did not open what they had {COMMITTED}, in two coin flips; a "
            "third could be someone's choice",
            board.lost,
        )
    check_enough_present(session, board)
    return opened.values(board), thrown.seed(session.context)


async def _once_coordinator(
    session: CoordinatorSession, board: Board, names: Sequence[str]
) -> _Opened:
    fields = (*names, DIE)
    committed = await post_coordinator(
        session, board, Commitments, check=lambda message: _check_hashes(len(fields), message)
    )
    openings = await post_coordinator(
        session, board, Openings, check=lambda message: _check_openings(len(fields), message)
    )
    return _opened(session, board, fields, committed, openings)


def _opened(
    session: AnySession,
    board: Board,
    fields: Sequence[str],
    committed: Mapping[str, Commitments],
    openings: Mapping[str, Openings],
) -> _Opened:
    """Step 3: the values of those whose openings hold; the others are lost, and it is said why."""

    def faults() -> dict[str, str]:
        found = {}
        for party, opening in openings.items():
            wrong = _wrong(session.context, party, fields, committed[party], opening)
            if wrong is not None:
                found[party] = f"{Openings.step}: {wrong}"
        return found

    # The head is that of all commitments and openings.
    faulty = session.shared("faulty openings", (board.head, tuple(fields)), faults)
    board.lose(faulty)
    opened = {p: said.values for p, said in openings.items() if p not in board.lost}
    complete = len(opened) == len(committed)
    board.proven |= {
        party: Proof(False, f"failed at {why}", COMMITTED) for party, why in faulty.items()
    }
    if complete:  # else the dice are thrown again, and somebody may fail then
        board.proven |= session.shared(
            "kept their word",
            (board.head, *opened),
            lambda: {party: Proof(True, KEPT_ITS_WORD, COMMITTED) for party in opened},
        )
    return _Opened(opened, complete)


def _wrong(
    context: bytes, party: str, fields: Sequence[str], committed: Commitments, opening: Openings
) -> str | None:
    for field, value, salt, commitment in zip(
        fields, opening.values, opening.salts, committed.hashes, strict=True
    ):
        if not opens(commitment, _bound_to(context, party, field), value, salt):
            return f"{field!r} is not what it committed to"
    return None
