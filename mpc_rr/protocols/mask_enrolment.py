"""Enrolment for masked sums: keys, a random graph that nobody chose, and one's neighbours on it.

1. Keys. Each party sends a key for masks and a commitment to a random number, its die. The
   coordinator announces the root of a Merkle tree over all of them.
2. Graph. Each party opens its die. The root and all dice together are the seed of the graph: nobody
   knew it when the keys were fixed. Each party is told its neighbours, with proofs that they are
   in both trees, and checks that these follow from the seed.

Any number of sums (`mpc_rr.protocols.masked_sum`) can follow.

What is left to a lying coordinator is to leave out some of the parties it controls, after it has
seen all dice, and so to choose among several graphs; it has as long as the parties wait for it.
Whoever fears that asks for more bits of secrecy than the odds of one throw need.
"""

import hashlib
import itertools
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

import msgspec

from mpc_rr.crypto.graph import HararyGraph, Places
from mpc_rr.crypto.identity import PublicIdentity
from mpc_rr.crypto.masks import SEED_BYTES, MaskKey, derive, is_key
from mpc_rr.crypto.merkle import MerkleTree, root_of
from mpc_rr.errors import Dropout, listing
from mpc_rr.network.messages import M, Message
from mpc_rr.network.session import CoordinatorSession, PartySession
from mpc_rr.network.session_base import Check
from mpc_rr.privacy.masking import Masking, Trust, masking_for

DIE_BYTES = 16


class MaskingOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``[protocol.masking]``: what the masks must withstand."""

    corrupt: float = 0.05
    dropout: float = 0.1
    coordinator: Trust = "lying"

    def plan(self, parties: int) -> Masking:
        """How many neighbours, and how many of them must answer."""
        return masking_for(parties, self.corrupt, self.dropout, self.coordinator)


class MaskKeys(Message, frozen=True):
    """1, party → coordinator: its key for masks, and the hash of its die."""

    step: ClassVar[str] = "mask_keys"
    key: bytes
    die_hash: bytes


class KeysFixed(Message, frozen=True):
    """1, coordinator → everyone: the root of the tree over all keys."""

    step: ClassVar[str] = "keys_fixed"
    root: bytes


class Die(Message, frozen=True):
    """2, party → coordinator: its die, opened."""

    step: ClassVar[str] = "die"
    die: bytes


class Entry(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A party in the tree of keys."""

    name: str
    identity: PublicIdentity
    key: bytes
    die_hash: bytes


class Player(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A party in the graph: its entry, where that is in the tree of keys, and its die."""

    entry: Entry
    at: int
    die: bytes


class Neighbourhood(Message, frozen=True):
    """2, coordinator → party: itself and its neighbours, and proofs that they are in both trees."""

    step: ClassVar[str] = "neighbourhood"
    keys: int
    """How many are in the tree of keys, and below how many in the graph."""
    nodes: int
    players: dict[int, Player]
    """By their numbers in the graph."""
    keys_proof: bytes
    dice_root: bytes
    dice_proof: bytes


def _die_hash(die: bytes) -> bytes:
    return hashlib.sha256(b"mpc-rr die\0" + die).digest()


def _graph(keys_root: bytes, dice_root: bytes, nodes: int, degree: int) -> HararyGraph:
    seed = hashlib.sha256(b"mpc-rr graph seed\0" + keys_root + dice_root).digest()
    return HararyGraph(seed, nodes, degree)


def _encoded(part: msgspec.Struct) -> bytes:
    return msgspec.msgpack.encode(part)


# ── A party ────────────────────────────────────────────────────────────────────────────────────


class SealKeys(NamedTuple):
    """What two neighbours share for one sum: to seal, to open, and to vouch for each other."""

    to_them: bytes
    from_them: bytes
    vouch: bytes

    def __repr__(self) -> str:
        return "SealKeys(…)"


@dataclass
class Place:
    """A party's place in the graph, and the secrets it shares with its neighbours, by slot."""

    plan: Masking
    vouching: bool
    """Whether neighbours vouch for each other, because the coordinator may lie."""
    graph: HararyGraph
    number: int
    neighbours: list[int]
    names: list[str]
    agreed_masks: list[bytes] = field(repr=False)
    agreed_seals: list[bytes] = field(repr=False)

    def pair_seeds(self, purpose: bytes) -> list[bytes]:
        """The seed of the mask with each neighbour, for one sum."""
        info = b"mpc-rr pair mask\0" + purpose
        return [derive(agreed, info, SEED_BYTES) for agreed in self.agreed_masks]

    def seal_keys(self, purpose: bytes) -> list[SealKeys]:
        """The keys shared with each neighbour for one sum."""
        info, keys = b"mpc-rr shares\0" + purpose, []
        for neighbour, agreed in zip(self.neighbours, self.agreed_seals, strict=True):
            all_three = derive(agreed, info, 96)
            low, high, vouch = all_three[:32], all_three[32:64], all_three[64:]
            mine_first = self.number < neighbour
            keys.append(SealKeys(low, high, vouch) if mine_first else SealKeys(high, low, vouch))
        return keys


async def enrol_party(session: PartySession, options: MaskingOptions) -> Place:
    """Steps 1 and 2: fix the keys, roll the dice, check the neighbourhood."""
    # Step 1: send a key for masks and a commitment to a die; hear the root over everybody's.
    own, die = MaskKey(session.rng.fork("mask key")), session.rng.fork("die").bytes(DIE_BYTES)
    await session.report(MaskKeys(own.public, _die_hash(die)))
    fixed = await session.hear(KeysFixed)

    # Step 2: open the die; the neighbours must follow from all keys and all dice.
    await session.report(Die(die))
    identity = session.mailbox.identity
    entry = Entry(session.me, identity.public, own.public, _die_hash(die))
    told = await session.told(
        Neighbourhood,
        check=lambda told: _check_neighbourhood(session, told, fixed.root, entry, options),
    )
    number = _own_number(told, entry)
    plan = options.plan(told.nodes)
    graph = _graph(fixed.root, told.dice_root, told.nodes, plan.degree)
    neighbours = graph.neighbours(number).tolist()
    players = [told.players[k].entry for k in neighbours]
    return Place(
        plan,
        options.coordinator == "lying",
        graph,
        number,
        neighbours,
        [player.name for player in players],
        [own.agree(player.key) for player in players],
        [identity.agree(player.identity.sealing) for player in players],
    )


def _own_number(told: Neighbourhood, entry: Entry) -> int:
    mine = [number for number, player in told.players.items() if player.entry == entry]
    if len(mine) != 1:
        raise ValueError("I am not in the graph with my own keys")
    return mine[0]


def _check_neighbourhood(
    session: PartySession,
    told: Neighbourhood,
    keys_root: bytes,
    entry: Entry,
    options: MaskingOptions,
) -> None:
    """``ValueError`` unless these are the neighbours that keys and dice give us."""
    number, players = _own_number(told, entry), told.players
    fewest = max(3, session.fewest, max(players) + 1)
    if not fewest <= told.nodes <= told.keys <= session.most:
        raise ValueError(f"a graph of {told.nodes} parties with {told.keys} keys")
    graph = _graph(keys_root, told.dice_root, told.nodes, options.plan(told.nodes).degree)
    if set(players) != {number, *graph.neighbours(number).tolist()}:
        raise ValueError("these are not the neighbours that keys and dice give me")
    in_order = [players[k] for k in sorted(players)]
    if any(b.at <= a.at or b.entry.name <= a.entry.name for a, b in itertools.pairwise(in_order)):
        raise ValueError("a party stands twice in the graph")
    if any(_die_hash(player.die) != player.entry.die_hash for player in in_order):
        raise ValueError("a die was changed after it was thrown")
    keys = {player.at: _encoded(player.entry) for player in in_order}
    if root_of(keys, told.keys, told.keys_proof) != keys_root:
        raise ValueError("a neighbour's keys were not fixed before the dice were opened")
    dice = {k: _encoded(player) for k, player in players.items()}
    if root_of(dice, told.nodes, told.dice_proof) != told.dice_root:
        raise ValueError("a neighbour is not among those whose dice count")


# ── The coordinator ────────────────────────────────────────────────────────────────────────────


@dataclass
class Board:
    """Who is in the graph, who has been lost on the way, and at which step."""

    plan: Masking
    vouching: bool
    graph: HararyGraph
    names: list[str]
    rows: Places
    """The neighbours of each party, slot by slot."""
    lost: dict[str, str]


async def enrol_coordinator(session: CoordinatorSession, options: MaskingOptions) -> Board:
    """Steps 1 and 2: fix the keys, gather the dice, tell everybody its neighbours."""
    lost: dict[str, str] = {}

    # Step 1: gather the keys and announce the root over them.
    keys = await gathered_or_lost(session, MaskKeys, session.parties, lost, check=_check_keys)
    entries = [
        Entry(name, session.identity_of(name), keys[name].key, keys[name].die_hash)
        for name in sorted(keys)
    ]
    keys_tree = MerkleTree([_encoded(entry) for entry in entries])
    await session.announce(KeysFixed(keys_tree.root))

    # Step 2: gather the dice; those who opened theirs are in the graph.
    dice = await gathered_or_lost(session, Die, set(keys), lost)
    honest = {
        e.name for e in entries if e.name in dice and _die_hash(dice[e.name].die) == e.die_hash
    }
    lost |= dict.fromkeys(set(dice) - honest, "die: it is not the one that was committed to")
    players = [Player(e, at, dice[e.name].die) for at, e in enumerate(entries) if e.name in honest]
    check_enough(session, [player.entry.name for player in players], lost)
    dice_tree = MerkleTree([_encoded(player) for player in players])
    plan = options.plan(len(players))
    graph = _graph(keys_tree.root, dice_tree.root, len(players), plan.degree)
    rows = graph.all_neighbours()
    await session.hand_out(
        {
            player.entry.name: _neighbourhood([number, *row], players, keys_tree, dice_tree)
            for number, (player, row) in enumerate(zip(players, rows.tolist(), strict=True))
        }
    )
    vouching = options.coordinator == "lying"
    return Board(plan, vouching, graph, [player.entry.name for player in players], rows, lost)


def _check_keys(message: MaskKeys) -> None:
    if len(message.key) != 32 or len(message.die_hash) != 32:
        raise ValueError("a key and a hash have 32 bytes each")
    if not is_key(message.key):
        raise ValueError("its key for masks is no proper key")


def _neighbourhood(
    numbers: list[int], players: list[Player], keys_tree: MerkleTree, dice_tree: MerkleTree
) -> Neighbourhood:
    return Neighbourhood(
        keys_tree.count,
        dice_tree.count,
        {number: players[number] for number in numbers},
        keys_tree.proof(players[number].at for number in numbers),
        dice_tree.root,
        dice_tree.proof(numbers),
    )


async def gathered_or_lost(
    session: CoordinatorSession,
    kind: type[M],
    senders: Collection[str],
    lost: dict[str, str],
    *,
    check: Check[M] | None = None,
) -> dict[str, M]:
    """What these parties report; who does not, or not in order, is noted as lost at this step."""
    gathered = await session.gather(kind, check=check, senders=senders)
    lost |= gathered.missing(kind.step)
    return dict(sorted(gathered.messages.items()))


def check_enough(session: CoordinatorSession, there: Collection[str], lost: dict[str, str]) -> None:
    """`Dropout` if fewer are left than the study, or any sum, needs."""
    if len(there) < max(session.fewest, 3):
        raise Dropout(
            f"only {len(there)} of {len(session.parties)} parties are left, at least "
            f"{max(session.fewest, 3)} are needed; {listing(lost)} left",
            lost,
        )
