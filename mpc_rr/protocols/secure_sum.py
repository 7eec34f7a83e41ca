"""Secure sum (paper 000 §4.2, steps 1–4): n parties add up vectors that nobody shows.

Every party splits *zero* into n random shares and sends one to each party. A party publishes its
own vector plus all the shares it received: uniformly random to everybody else. In the grand total
the shares cancel, and what remains is the sum of the vectors, modulo n + 1.

The paper counts one cell; here all cells are one vector, so there are two rounds in all. Each
entry of a party's vector must be 0 or 1 (the sum of n of them is then below the modulus).

Trust: whoever misses the vectors of two parties or more learns nothing about these beyond the
total. All parties must stay until the end; once one partial sum is out, there is no repetition.
"""

from typing import ClassVar

import numpy as np

from mpc_rr.errors import Refused
from mpc_rr.network.messages import Message
from mpc_rr.network.session import CoordinatorSession, PartySession
from mpc_rr.network.vectors import Residues, pack, unpack
from mpc_rr.randomness import Randomness

SMALLEST = 3


class Share(Message, frozen=True):
    """Party i → party j, private: r_ij, one residue per cell."""

    step: ClassVar[str] = "share"
    sealed: ClassVar[bool] = True
    residues: bytes


class Partial(Message, frozen=True):
    """Party j → everyone: r_j, its vector plus all shares it holds."""

    step: ClassVar[str] = "partial"
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


async def secure_sum_party(session: PartySession, values: Residues) -> Residues:
    """A party's steps. ``values`` holds a 0 or 1 per cell; returns the sum over all parties."""
    n, cells = len(session.parties), len(values)
    check_group(n)
    modulus = n + 1

    def in_order(message: Share | Partial) -> None:
        unpack(message.residues, cells, modulus)

    # Step 1: choose n random numbers per cell that sum to 0 modulo n + 1.
    own_share, *sent = zero_shares(n, cells, modulus, session.rng)

    # Step 2: send r_ij to party j, for each j; r_ii stays here.
    shares = {
        party: Share(pack(share, modulus))
        for party, share in zip(session.others, sent, strict=True)
    }
    received = await session.exchange(shares, check=in_order)

    # Step 3: add what was received, add the own value, and publish.
    held = [unpack(share.residues, cells, modulus) for share in received.values()]
    partial = add([values, own_share, *held], modulus)
    session.point_of_no_return()
    partials = await session.publish(Partial(pack(partial, modulus)), check=in_order)

    # Step 4: the shares cancel; what is left is the sum of the values.
    return add([unpack(p.residues, cells, modulus) for p in partials.values()], modulus)


async def secure_sum_coordinator(session: CoordinatorSession, cells: int) -> Residues:
    """The coordinator's part: it routes the shares it cannot read, and adds up as anyone can."""
    n = len(session.parties)
    check_group(n)
    modulus = n + 1

    def in_order(message: Partial) -> None:
        unpack(message.residues, cells, modulus)

    # Step 2: hand every party its n - 1 sealed shares. After that partial sums may be out.
    await session.route(Share, before_handing_out=session.point_of_no_return)

    # Steps 3 and 4: hand all partial sums to all, and add them.
    partials = await session.relay(Partial, check=in_order)
    return add([unpack(p.residues, cells, modulus) for p in partials.values()], modulus)
