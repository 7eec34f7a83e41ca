"""Secure sum (paper 000 §4.2, steps 1–4): n parties add up vectors that nobody shows.

Every party splits *zero* into n random shares and sends one to each party. A party publishes its
own vector plus all the shares it received: uniformly random to everybody else. In the grand total
the shares cancel, and what remains is the sum of the vectors, modulo ``modulus``.

The paper counts one cell, with a 0 or 1 from each party, modulo n + 1; here all cells are one
vector, so there are two rounds in all, and the modulus is the caller's, who must know that the sum
fits.

If the sum is ``confided``, the last step goes to the coordinator alone, sealed: it learns the sum
and answers for what it publishes of it, and nobody else learns anything.

Trust: whoever misses the vectors of two parties or more learns nothing about these beyond the
total. All parties must stay until the end; once one partial sum is out, there is no repetition.
"""

from collections.abc import Callable, Mapping
from typing import ClassVar

import numpy as np

from mpc_rr.errors import Refused
from mpc_rr.network.envelope import Message, Way
from mpc_rr.network.session import CoordinatorSession, PartySession
from mpc_rr.network.vectors import Residues, pack, unpack
from mpc_rr.protocols.interface import SMALLEST
from mpc_rr.randomness import Randomness


class Share(Message, frozen=True):
    """Party i → party j, private: r_ij, one residue per cell."""

    step: ClassVar[str] = "share"
    reveals: ClassVar[bool] = False
    doing: ClassVar[str] = "round 1 of 2: parties send each other sealed shares"
    way: ClassVar[Way] = "exchange"
    sealed: ClassVar[bool] = True
    residues: bytes


class Partial(Message, frozen=True):
    """Party j → everyone: r_j, its vector plus all shares it holds."""

    step: ClassVar[str] = "partial"
    doing: ClassVar[str] = "round 2 of 2: parties publish masked vectors"
    way: ClassVar[Way] = "publish"
    residues: bytes


class ConfidedPartial(Message, frozen=True):
    """Party j → coordinator, private: the same r_j."""

    step: ClassVar[str] = "confided_partial"
    doing: ClassVar[str] = "round 2 of 2: parties send masked vectors to the coordinator"
    way: ClassVar[Way] = "confide"
    sealed: ClassVar[bool] = True
    residues: bytes


def zero_shares(parties: int, cells: int, modulus: int, rng: Randomness) -> Residues:
    """One row per party; all but the first are uniform and independent, and the rows sum to 0."""
    free = rng.below(modulus, (parties - 1, cells))
    closing = (modulus - free.sum(axis=0) % modulus) % modulus
    return np.vstack([closing[np.newaxis, :], free])


def add(vectors: list[Residues], modulus: int) -> Residues:
    """The sum of the vectors, modulo ``modulus``."""
    return np.asarray(np.sum(vectors, axis=0, dtype=np.uint64) % modulus)


def check_group(parties: int) -> None:
    """Refuse a group in which the sum would give somebody away."""
    if parties < SMALLEST:
        raise Refused(
            f"a secure sum of {parties} parties hides nothing: each would learn the others' "
            f"answers from the total; at least {SMALLEST} parties are needed"
        )


async def secure_sum_party(session: PartySession, values: Residues, modulus: int) -> Residues:
    """A party's steps. ``values`` holds a residue per cell; returns the sum over all parties."""
    partial = await _own_partial(session, values, modulus)
    partials = await session.publish(
        Partial(pack(partial, modulus)), check=_in_order(len(values), modulus)
    )

    # Step 4: the shares cancel; what is left is the sum of the values.
    return add([unpack(p.residues, len(values), modulus) for p in partials.values()], modulus)


async def confided_sum_party(session: PartySession, values: Residues, modulus: int) -> None:
    """A party's steps if only the coordinator is to learn the sum."""
    partial = await _own_partial(session, values, modulus)
    await session.confide(ConfidedPartial(pack(partial, modulus)))


async def _own_partial(session: PartySession, values: Residues, modulus: int) -> Residues:
    n, cells = len(session.parties), len(values)
    check_group(n)

    # Step 1: choose n random numbers per cell that sum to 0 modulo ``modulus``.
    own_share, *sent = zero_shares(n, cells, modulus, session.rng)

    # Step 2: send r_ij to party j, for each j; r_ii stays here.
    shares = {
        party: Share(pack(share, modulus))
        for party, share in zip(session.others, sent, strict=True)
    }
    received = await session.exchange(shares, check=_in_order(cells, modulus))

    # Step 3: add what was received, and the own value. What follows cannot be taken back.
    held = [unpack(share.residues, cells, modulus) for share in received.values()]
    session.point_of_no_return()
    return add([values, own_share, *held], modulus)


async def secure_sum_coordinator(
    session: CoordinatorSession, cells: int, modulus: int, *, confided: bool = False
) -> Residues:
    """The coordinator's part: it routes the shares it cannot read, and adds up as anyone can."""
    check_group(len(session.parties))

    # Step 2: hand every party its n - 1 sealed shares. After that partial sums may be out.
    await session.route(Share, before_handing_out=session.point_of_no_return)

    # Steps 3 and 4: hand all partial sums to all, unless they are for us alone, and add them.
    partials: Mapping[str, Partial | ConfidedPartial]
    if confided:
        partials = await session.confided(ConfidedPartial, check=_in_order(cells, modulus))
    else:
        partials = await session.relay(Partial, check=_in_order(cells, modulus))
    return add([unpack(p.residues, cells, modulus) for p in partials.values()], modulus)


def _in_order(cells: int, modulus: int) -> Callable[[Share | Partial | ConfidedPartial], None]:
    def check(message: Share | Partial | ConfidedPartial) -> None:
        unpack(message.residues, cells, modulus)

    return check
