"""Masked sum: thousands of parties add up vectors that nobody sees, and some may leave.

After Bonawitz et al. (2017) and Bell et al. (2020). Every party hides its vector under a mask of
its own and one mask with each of its k neighbours on a random graph; the masks of neighbours cancel
in the sum. What is needed to take off the rest is shared among the neighbours beforehand, so that
any t of them can help out for one who is gone.

Keys and graph (steps 1 and 2) come first, once for any number of sums: see
`mpc_rr.protocols.sums.masked.setup`. Then, for each sum:
3. Shares. A party draws a secret b for its own mask, and a key K with which it locks the seeds of
   the masks it has with its neighbours (the box). It sends each neighbour a share of b and one of
   K, sealed.
4. Masked vectors, from those who got at least t neighbours' shares.
   If those who left might cut the graph, so that the sum of a few could be told apart, it ends.
5. Unmasking. Each party hears who sent a masked vector. Where the coordinator may lie, it vouches
   to each neighbour that did, and goes on only if t of them vouch for it, with the same survivors.
   For each neighbour it gives its share of b if the neighbour did, of K if it did not: never both,
   and for one set of survivors only.
6. The coordinator takes off the survivors' own masks and the masks they had with those who left,
   and announces the total.

Trust: who sees everything but the parties' own memory learns the sum over the survivors, as long as
no party has t corrupt neighbours, and honest survivors hang together (see
`mpc_rr.privacy.graph_parameters`). Secrets are drawn for each sum, so what is recovered for one
says nothing about another.

In the symbols of Bell et al., Algorithm 2:

=================================  ================================================================
paper                              here
=================================  ================================================================
U, n                               `Enrolled.names`, ``graph.nodes``
k, t                               ``plan.degree``, ``plan.threshold`` (`GraphParameters`)
N_G(i)                             ``Seat.neighbours``; the slots of `Slots`, in this order
(sk¹_i, pk¹_i)                     ``agreed_seals``: the keys of the identity, for sealing shares
(sk²_i, pk²_i)                     `MaskKeys.key`, ``agreed_masks``: the key for masks
s_{i,j}                            ``Seat.pair_seeds``: drawn from both keys, for each sum anew
b_i                                ``own_secret``
the shares h^b_{i,j}, h^s_{i,j}    the two halves of a parcel in `MaskShares`: of b, and of K
—                                  K, ``box_key``: locks all s_{i,j} of a party in its ``box``, so
                                   that its long-lived key need not be given away (ours)
A₁, A₂, A₃                         who sent `MaskKeys`, `MaskShares`, `MaskedVector`
y_i                                `MaskedVector.cells`
σ_{i,j} on A₃ (malicious model)    `Vouchers`: by the neighbours, under keys of the pair
F(s), the pseudorandom generator   `mpc_rr.crypto.pairwise.mask`
z                                  `SumDone.total`
=================================  ================================================================
"""

import hashlib
import hmac
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import ClassVar

import msgspec

from mpc_rr.crypto import shamir
from mpc_rr.crypto.pairwise import (
    SEED_BYTES,
    TAG_BYTES,
    Mask,
    lock,
    mask,
    masks,
    seed_of,
    unlock,
    word,
)
from mpc_rr.errors import Dropout, Misconduct, Refused, listing
from mpc_rr.network.envelope import COORDINATOR, Message, Way
from mpc_rr.network.session import Check, CoordinatorSession, PartySession
from mpc_rr.network.vectors import Residues, pack_bits, unpack_bits
from mpc_rr.protocols.interface import HEAD_BYTES
from mpc_rr.protocols.sums.masked.recovery import MARK_BYTES, Recovery, Shared, mark_of
from mpc_rr.protocols.sums.masked.setup import (
    PERSON_BYTES,
    Die,
    Enrolled,
    MaskingOptions,
    MaskKeys,
    SealKeys,
    Seat,
    check_enough_left,
    gathered_or_lost,
)
from mpc_rr.protocols.sums.masked.slots import Slots, bitmap, flags_of, pieces
from mpc_rr.randomness import Randomness

PARCEL_BYTES = 2 * shamir.SHARE_BYTES + TAG_BYTES
VOUCHER_BYTES = 16


# ── Messages ───────────────────────────────────────────────────────────────────────────────────


class MaskShares(Message, frozen=True):
    """3, party → coordinator: sealed shares for its neighbours, its box, marks of its secrets."""

    step: ClassVar[str] = "mask_shares"
    reveals: ClassVar[bool] = False
    doing: ClassVar[str] = "parties share the secrets of their masks among their neighbours"
    parcels: bytes
    box: bytes
    marks: bytes


class SharesForYou(Message, frozen=True):
    """3, coordinator → party: the sealed shares of those neighbours who sent any."""

    step: ClassVar[str] = "shares_for_you"
    doing: ClassVar[str] = "the coordinator hands on the neighbours' shares"
    way: ClassVar[Way] = "hand out"
    senders: bytes
    parcels: bytes


class MaskedVector(Message, frozen=True):
    """4, party → coordinator: its vector under all its masks."""

    step: ClassVar[str] = "masked_vector"
    doing: ClassVar[str] = "parties send their masked vectors"
    cells: bytes


class ConfidedVector(Message, frozen=True):
    """4, party → coordinator, private: the same, where only the coordinator may learn the sum."""

    step: ClassVar[str] = "confided_vector"
    doing: ClassVar[str] = "parties send their masked vectors to the coordinator"
    way: ClassVar[Way] = "confide"
    sealed: ClassVar[bool] = True
    cells: bytes


class Survivors(Message, frozen=True):
    """5, coordinator → party: which neighbours sent a masked vector; the digest of all who did."""

    step: ClassVar[str] = "survivors"
    doing: ClassVar[str] = "the coordinator says who is still there"
    way: ClassVar[Way] = "hand out"
    survived: bytes
    count: int
    digest: bytes


class Vouchers(Message, frozen=True):
    """5, party → coordinator: for each neighbour that survived, a proof that we were told so."""

    step: ClassVar[str] = "vouchers"
    doing: ClassVar[str] = "parties vouch for each other"
    vouchers: bytes


class VouchedFor(Message, frozen=True):
    """5, coordinator → party: what its neighbours vouch for it."""

    step: ClassVar[str] = "vouched_for"
    doing: ClassVar[str] = "the coordinator hands on who vouches for whom"
    way: ClassVar[Way] = "hand out"
    senders: bytes
    vouchers: bytes


class Unmasking(Message, frozen=True):
    """5, party → coordinator: a share for each neighbour of whom it has one, and for which set."""

    step: ClassVar[str] = "unmasking"
    doing: ClassVar[str] = "parties help to take off the masks of those who left"
    survivors: bytes
    given: bytes
    shares: bytes
    marks: bytes
    """Of the seeds of the masks it has with neighbours that left, slot by slot."""


class SumDone(Message, frozen=True):
    """6, coordinator → everyone: over how many, which, and the total (if it is for everyone)."""

    step: ClassVar[str] = "sum_done"
    doing: ClassVar[str] = "the coordinator announces the total"
    way: ClassVar[Way] = "announce"
    count: int
    survivors: bytes
    total: bytes


def rounds(*, confided: bool, vouching: bool) -> tuple[type[Message], ...]:
    """The messages that parties send, in order."""
    vector = ConfidedVector if confided else MaskedVector
    vouchers = (Vouchers,) if vouching else ()
    return (MaskKeys, Die, MaskShares, vector, *vouchers, Unmasking)


def largest_message_bytes(parties: int, cells: int, bits: int, options: MaskingOptions) -> int:
    """An upper bound on any of its messages."""
    # The more have left, the more neighbours are needed: the corrupt ones stay.
    degree = min(8 * options.plan(max(parties, 3)).degree, parties)
    depth = max(parties - 1, 1).bit_length()
    persons = PERSON_BYTES * parties
    return HEAD_BYTES + persons + cells * bits // 8 + degree * (PARCEL_BYTES + 768 + 64 * depth)


# ── What both roles compute ────────────────────────────────────────────────────────────────────


def _survivors_digest(names: Collection[str]) -> bytes:
    return hashlib.sha256(b"mpc-rr survivors\0" + msgspec.msgpack.encode(sorted(names))).digest()


@dataclass(frozen=True)
class MaskedTotal:
    """What every party has: the total, modulo 2^bits, and over how many it is."""

    values: Residues
    n: int


@dataclass(frozen=True)
class ConfidedTotal:
    """What a party has of a total that is for the coordinator alone: over how many it is."""

    n: int


@dataclass(frozen=True)
class RecoveredTotal:
    """What the coordinator has: the total, modulo 2^bits, and whose vectors are in it."""

    values: Residues
    counted: tuple[str, ...]


# ── A party ────────────────────────────────────────────────────────────────────────────────────


async def masked_sum_party(
    session: PartySession,
    seat: Seat,
    values: Residues,
    bits: int,
    *,
    confided: bool = False,
) -> MaskedTotal | ConfidedTotal:
    """Steps 3 to 6. ``confided``: the total is for the coordinator alone."""
    purpose, degree, cells = _purpose(session, seat), seat.graph.degree, len(values)
    rng = session.rng.fork("masked sum")

    # Step 3: share what others need if we leave; take what we need if they do.
    own_secret, box_key = shamir.random_secret(rng), shamir.random_secret(rng)
    seeds, seals = seat.pair_seeds(purpose), seat.seal_keys(purpose)
    await session.report(_shares(seat, own_secret, box_key, seeds, seals, rng))
    incoming = await session.told(SharesForYou, check=_parcels_of(degree))
    parcels = Slots.unpacked(incoming.senders, incoming.parcels, PARCEL_BYTES, degree)
    present, held = parcels.filled, _unsealed(parcels, seals)
    if held.count < seat.plan.threshold:
        raise Refused(
            f"only {held.count} of my {degree} neighbours sent me shares that I can read, "
            f"{seat.plan.threshold} are needed; my vector was not sent"
        )

    # Step 4: add our own mask, and one with each neighbour that is there.
    session.point_of_no_return()
    there = [(k, seed) for k, seed, p in zip(seat.neighbours, seeds, present, strict=True) if p]
    packed = pack_bits(_masked(seat, values, bits, own_secret, there), bits)
    if confided:
        await session.confide(ConfidedVector(packed))
    else:
        await session.report(MaskedVector(packed))

    # Step 5: for each neighbour one kind of share, never both.
    told = await session.told(
        Survivors, check=lambda told: _check_survivors(told, present, session, seat)
    )
    survived = flags_of(told.survived, degree)
    _refuse_if_few_are_left(seat, survived)
    if seat.vouching:
        await _vouch(session, seat, seals, survived, told)
    await session.report(_unmasking(told.digest, held, survived, present, seeds))

    # Step 6: hear the total; it must be over the survivors we were shown.
    def in_order(done: SumDone) -> None:
        if (done.count, done.survivors) != (told.count, told.digest):
            raise ValueError("the sum is over others than those I was shown")
        if confided and done.total:
            raise ValueError("it tells all what is for the coordinator alone")
        if not confided:
            unpack_bits(done.total, cells, bits)

    done = await session.hear(SumDone, check=in_order)
    if confided:
        return ConfidedTotal(done.count)
    return MaskedTotal(unpack_bits(done.total, cells, bits), done.count)


def _refuse_if_few_are_left(seat: Seat, survived: list[bool]) -> None:
    """`Refused` if fewer neighbours are left than must be, of all and on either side."""
    degree = seat.graph.degree
    if sum(survived) < seat.plan.threshold:
        raise Refused(
            f"only {sum(survived)} of my {degree} neighbours are left, {seat.plan.threshold} are "
            "needed; I take off nobody's mask"
        )
    ahead, behind = sum(survived[: degree // 2]), sum(survived[degree // 2 :])
    if min(ahead, behind) < seat.plan.beside:
        raise Refused(
            f"only {min(ahead, behind)} of my {degree // 2} neighbours on one side are left, "
            f"{seat.plan.beside} are needed, or the sum of a few could be told apart; I take off "
            "nobody's mask"
        )


def _unsealed(parcels: Slots, seals: list[SealKeys]) -> Slots:
    """The neighbours' shares, as far as they can be read."""
    return Slots.of(
        [
            None if parcel is None else unlock(keys.from_them, parcel)
            for parcel, keys in zip(parcels.items, seals, strict=True)
        ]
    )


def _masked(
    seat: Seat, values: Residues, bits: int, own_secret: bytes, there: list[tuple[int, bytes]]
) -> Mask:
    """The vector under our own mask, and one with each neighbour that is there."""
    cells = len(values)
    masked = values.astype(word(bits)) + mask(seed_of(own_secret), cells, bits)
    masked += masks((seed for k, seed in there if seat.number < k), cells, bits)
    masked -= masks((seed for k, seed in there if seat.number > k), cells, bits)
    return masked


def _unmasking(
    digest: bytes,
    held: Slots,
    survived: list[bool],
    present: list[bool],
    seeds: list[bytes],
) -> Unmasking:
    """For each neighbour whose shares we could read one of them: of b if it survived, else of K."""
    half = shamir.SHARE_BYTES
    shares = Slots.of(
        [
            None if both is None else both[:half] if alive else both[half:]
            for both, alive in zip(held.items, survived, strict=True)
        ]
    )
    marks = [
        mark_of(b"pair", seed)
        for seed, there, alive in zip(seeds, present, survived, strict=True)
        if there and not alive
    ]
    return Unmasking(digest, *shares.packed, b"".join(marks))


def _purpose(session: PartySession, seat: Seat) -> bytes:
    """What makes this sum another than any other: run, session, and the graph."""
    return session.run + session.name.encode() + b"\0" + seat.graph.seed


def _shares(
    seat: Seat,
    own_secret: bytes,
    box_key: bytes,
    seeds: list[bytes],
    seals: list[SealKeys],
    rng: Randomness,
) -> MaskShares:
    threshold, degree = seat.plan.threshold, seat.graph.degree
    own = shamir.split(own_secret, threshold, degree, rng)
    keys = shamir.split(box_key, threshold, degree, rng)
    parcels = b"".join(
        lock(to_them, share + key)
        for share, key, (to_them, _, _) in zip(own, keys, seals, strict=True)
    )
    marks = mark_of(b"own", own_secret) + mark_of(b"box", box_key)
    return MaskShares(parcels, lock(box_key, b"".join(seeds)), marks)


def _parcels_of(degree: int) -> Check[SharesForYou]:
    def check(told: SharesForYou) -> None:
        Slots.unpacked(told.senders, told.parcels, PARCEL_BYTES, degree)

    return check


async def _vouch(
    session: PartySession,
    seat: Seat,
    seals: list[SealKeys],
    survived: list[bool],
    told_of: Survivors,
) -> None:
    """Tell our surviving neighbours that we were told so; go on only if t of them tell us."""
    digest = told_of.digest + told_of.count.to_bytes(8)
    vouchers = [
        _voucher(keys.vouch, digest, seat.number, neighbour) if alive else bytes(VOUCHER_BYTES)
        for keys, neighbour, alive in zip(seals, seat.neighbours, survived, strict=True)
    ]
    await session.report(Vouchers(b"".join(vouchers)))
    told = await session.told(VouchedFor, check=_vouchers_of(len(seals)))
    for_me = Slots.unpacked(told.senders, told.vouchers, VOUCHER_BYTES, len(seals))
    valid = sum(
        hmac.compare_digest(came, _voucher(keys.vouch, digest, neighbour, seat.number))
        for keys, neighbour, came in zip(seals, seat.neighbours, for_me.items, strict=True)
        if came is not None
    )
    if valid < seat.plan.threshold:
        raise Misconduct(
            f"{valid} of my {len(seals)} neighbours vouch that they were told that I survived, and "
            f"of the same survivors; {seat.plan.threshold} are needed; I take off nobody's mask",
            [COORDINATOR],
        )


def _voucher(key: bytes, digest: bytes, by: int, about: int) -> bytes:
    said = b"mpc-rr survived\0" + digest + by.to_bytes(8) + about.to_bytes(8)
    return hmac.digest(key, said, "sha256")[:VOUCHER_BYTES]


def _vouchers_of(degree: int) -> Check[VouchedFor]:
    def check(told: VouchedFor) -> None:
        Slots.unpacked(told.senders, told.vouchers, VOUCHER_BYTES, degree)

    return check


def _check_survivors(
    told: Survivors, present: list[bool], session: PartySession, seat: Seat
) -> None:
    survived = flags_of(told.survived, len(present))
    if any(alive and not there for alive, there in zip(survived, present, strict=True)):
        raise ValueError("it has masked vectors of neighbours whose shares were not given to me")
    if not max(session.fewest, sum(survived) + 1) <= told.count <= seat.graph.nodes:
        raise ValueError(f"a sum over {told.count} parties is not what the study allows")


# ── The coordinator ────────────────────────────────────────────────────────────────────────────


async def masked_sum_coordinator(
    session: CoordinatorSession,
    enrolled: Enrolled,
    cells: int,
    bits: int,
    *,
    confided: bool = False,
) -> RecoveredTotal:
    """Steps 3 to 6; returns the total, modulo 2^bits, and whose vectors are in it.

    Whoever is silent at some step is left out from there on: `Enrolled.lost` says who and when.
    """
    graph, numbers = enrolled.graph, {name: k for k, name in enumerate(enrolled.names)}

    def shares_in_order(message: MaskShares) -> None:
        pieces(message.parcels, PARCEL_BYTES, graph.degree)
        pieces(message.marks, MARK_BYTES, 2)
        pieces(message.box, SEED_BYTES * graph.degree + TAG_BYTES, 1)

    def vector_in_order(message: MaskedVector | ConfidedVector) -> None:
        unpack_bits(message.cells, cells, bits)

    # Step 3: hand everybody the shares that its neighbours sealed to it.
    sent = await gathered_or_lost(
        session, MaskShares, _present(enrolled), enrolled.lost, check=shares_in_order
    )
    shared = _shared(sent, numbers, graph.degree)
    check_enough_left(session, sent, enrolled.lost)
    session.point_of_no_return()
    await session.hand_out(
        {name: SharesForYou(*_for_party(enrolled, shared.parcels, numbers[name])) for name in sent}
    )

    # Step 4: gather the masked vectors.
    kind: type[MaskedVector | ConfidedVector] = ConfidedVector if confided else MaskedVector
    vectors = await gathered_or_lost(session, kind, set(sent), enrolled.lost, check=vector_in_order)
    check_enough_left(session, vectors, enrolled.lost)
    alive = {numbers[name] for name in vectors}
    _check_uncut(enrolled, alive)

    # Step 5: tell everybody who is left, and gather the shares that take off the masks.
    digest = _survivors_digest(vectors)
    await session.hand_out(_survivors(enrolled, {name: numbers[name] for name in vectors}, digest))

    def unmasking_in_order(message: Unmasking) -> None:
        if message.survivors != digest:
            raise ValueError("it is for another set of survivors")
        _given(message, graph.degree)
        if len(message.marks) % MARK_BYTES:
            raise ValueError(f"marks have {MARK_BYTES} bytes each")

    asked = set(vectors)
    if enrolled.vouching:
        asked = await _pass_on_vouchers(session, enrolled, asked, numbers)
    helping = await gathered_or_lost(
        session, Unmasking, asked, dict(enrolled.lost), check=unmasking_in_order
    )
    given = {numbers[name]: _given(message, graph.degree) for name, message in helping.items()}
    marks = {numbers[name]: message.marks for name, message in helping.items()}

    # Step 6: take the masks off, and announce what is left.
    total = masks((), cells, bits)
    for name in vectors:
        total += unpack_bits(vectors[name].cells, cells, bits).astype(total.dtype)
    total -= Recovery(enrolled, shared, alive, given, marks).leftover(cells, bits)
    packed = pack_bits(total, bits)
    await session.announce(SumDone(len(alive), digest, b"" if confided else packed))
    return RecoveredTotal(unpack_bits(packed, cells, bits), tuple(vectors))


def _check_uncut(enrolled: Enrolled, alive: Collection[int]) -> None:
    """`Dropout` if those who left, with those who collude, may cut the others into groups."""
    left, needed = enrolled.graph.fewest_in_a_cut(alive), enrolled.plan.in_a_cut
    if left < needed:
        raise Dropout(
            "those who left sit so that the sum of a few could be told apart: between two groups "
            f"only {left} are left, {needed} are needed; nobody was asked to take off "
            f"masks; {listing(enrolled.lost)} left",
            enrolled.lost,
        )


def _survivors(
    enrolled: Enrolled, vectors: Mapping[str, int], digest: bytes
) -> dict[str, Survivors]:
    """What each who sent a vector is told of its neighbours."""
    alive = set(vectors.values())
    return {
        name: Survivors(
            bitmap([k in alive for k in enrolled.rows[number].tolist()]), len(alive), digest
        )
        for name, number in vectors.items()
    }


async def _pass_on_vouchers(
    session: CoordinatorSession, enrolled: Enrolled, asked: set[str], numbers: Mapping[str, int]
) -> set[str]:
    """Hand everybody what its neighbours vouch for it; returns who is still there."""
    degree = enrolled.graph.degree

    def in_order(message: Vouchers) -> None:
        pieces(message.vouchers, VOUCHER_BYTES, degree)

    sent = await gathered_or_lost(session, Vouchers, asked, dict(enrolled.lost), check=in_order)
    vouchers = {numbers[n]: pieces(m.vouchers, VOUCHER_BYTES, degree) for n, m in sent.items()}
    await session.hand_out(
        {name: VouchedFor(*_for_party(enrolled, vouchers, numbers[name])) for name in sent}
    )
    return set(sent)


def _present(enrolled: Enrolled) -> set[str]:
    return {name for name in enrolled.names if name not in enrolled.lost}


def _shared(sent: Mapping[str, MaskShares], numbers: Mapping[str, int], degree: int) -> Shared:
    return Shared(
        {numbers[n]: pieces(m.parcels, PARCEL_BYTES, degree) for n, m in sent.items()},
        {numbers[n]: m.box for n, m in sent.items()},
        {numbers[n]: m.marks for n, m in sent.items()},
    )


def _for_party(
    enrolled: Enrolled, sent: Mapping[int, list[bytes]], number: int
) -> tuple[bytes, bytes]:
    """What the neighbours sent to this party, and a bitmap of who did.

    Their slot for it mirrors its slot for them.
    """
    row = enrolled.rows[number].tolist()
    return Slots.of(
        [
            sent[neighbour][enrolled.graph.mirrored(slot)] if neighbour in sent else None
            for slot, neighbour in enumerate(row)
        ]
    ).packed


def _given(message: Unmasking, degree: int) -> dict[int, bytes]:
    """The shares of an unmasking, by slot."""
    shares = Slots.unpacked(message.given, message.shares, shamir.SHARE_BYTES, degree)
    return {slot: share for slot, share in enumerate(shares.items) if share is not None}
