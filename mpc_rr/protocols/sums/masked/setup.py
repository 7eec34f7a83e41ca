"""Setting up masked sums: keys, a random graph that nobody chose, and one's neighbours on it.

1. Keys. Each party sends a key for masks, with a proof that it is its own, and a commitment to a
   random number, its die. The coordinator announces the root of a Merkle tree over all of them.
2. Graph. Each party opens its die. The root and all dice together are the seed of the graph: nobody
   knew it when the keys were fixed. Each party is told its neighbours, with proofs that they are
   in both trees, and checks that these follow from the seed.

Any number of sums (`mpc_rr.protocols.sums.masked.sum`) can follow.

What is left to a lying coordinator is to leave out some parties, after it has seen all dice, and so
to choose among several graphs; it has as long as the parties wait for it, and may go down to the
study's minimum. The corrupt ones are reckoned to stay, however many others have left. Whoever fears
more asks for more bits of secrecy than the odds of one throw need.
"""

import hashlib
import itertools
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

import msgspec

from mpc_rr.crypto.admission import Pass
from mpc_rr.crypto.graph import HararyGraph, Places
from mpc_rr.crypto.identity import PublicIdentity
from mpc_rr.crypto.merkle import MerkleTree, root_of
from mpc_rr.crypto.pairwise import SEED_BYTES, MaskKey, derive, is_key
from mpc_rr.errors import Dropout, InputError, Misconduct, listing
from mpc_rr.network.envelope import COORDINATOR, M, Message, Way
from mpc_rr.network.session import Check, CoordinatorSession, PartySession
from mpc_rr.privacy.graph_parameters import (
    GraphParameters,
    Trust,
    graph_parameters_for,
    is_malicious,
    withstood,
)

DIE_BYTES = 16
PERSON_BYTES = 32
LARGE_THRESHOLDS = 3
"""Since these rules as many neighbours must answer as may be asked to."""


class MaskingOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``[protocol.masking]``: what the masks must withstand."""

    corrupt: float = 0.05
    dropout: float = 0.1
    coordinator: Trust | None = None
    """Not given: what the study can withstand, see `resolved`."""

    def resolved(self, *, registrar: bool) -> "MaskingOptions":
        """The same with a word for the coordinator.

        Where nobody admits people, a malicious one can give a party neighbours that are all its
        own, so there it is taken to be semi-honest unless the study says otherwise.
        """
        word = self.coordinator or ("malicious" if registrar else "semi-honest")
        return msgspec.structs.replace(self, coordinator=word)

    @property
    def malicious(self) -> bool:
        """Whether the coordinator may do whatever it likes: then neighbours vouch for each other.

        So it is taken to be where nothing is said.
        """
        return self.coordinator is None or is_malicious(self.coordinator)

    @property
    def _trust(self) -> Trust:
        return "malicious" if self.malicious else "semi-honest"

    def plan(self, parties: int, enrolled: int = 0, *, smallest: bool = False) -> GraphParameters:
        """How many neighbours, and how many of them must answer, if so many had enrolled.

        ``smallest``: no more of them than necessary, as it was up to rules 2.
        """
        return graph_parameters_for(
            parties, self.corrupt, self.dropout, self._trust, enrolled=enrolled, smallest=smallest
        )

    def withstands(self, fewest: int, expected: int) -> int:
        """How many parties may pool what they know, however many of those expected remain."""
        return withstood(fewest, expected, self.corrupt, self.dropout, self._trust)


class MaskKeys(Message, frozen=True):
    """1, party → coordinator: its key for masks, and the hash of its die.

    Who copies another's key cannot prove that it has it, so it alone is left out.
    """

    step: ClassVar[str] = "mask_keys"
    reveals: ClassVar[bool] = False
    doing: ClassVar[str] = "parties show the keys of their masks"
    key: bytes
    die_hash: bytes
    possession: bytes = b""
    """None in transcripts of wire version 1."""

    @property
    def proved(self) -> tuple[bytes, bytes]:
        """The key for masks."""
        return self.key, self.possession


class Entry(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A party in the tree of keys."""

    name: str
    identity: PublicIdentity
    key: bytes
    die_hash: bytes
    shown: Pass | None
    """Its pass, where the study has a registrar."""


class KeysFixed(Message, frozen=True):
    """1, coordinator → everyone: the root of the tree over all keys.

    Where the study has a registrar, also the persons' keys, in the order of the leaves: nobody may
    have two. All must have heard the same, or they do not find the same graph.
    """

    step: ClassVar[str] = "keys_fixed"
    doing: ClassVar[str] = "the coordinator fixes all keys"
    way: ClassVar[Way] = "announce"
    root: bytes
    persons: bytes

    @property
    def digest(self) -> bytes:
        """On which the graph depends."""
        return hashlib.sha256(b"mpc-rr keys fixed\0" + self.root + self.persons).digest()

    def check_persons(
        self, session: PartySession, entries: Mapping[int, Entry], leaves: int
    ) -> None:
        """``ValueError`` unless every leaf is another person, and these entries are at theirs."""
        if not self.persons:
            if any(entry.shown is not None for entry in entries.values()):
                raise ValueError("the persons behind the keys are not told")
            return
        session.shared(
            "all persons differ", (self.digest, leaves), lambda: self._check_all_differ(leaves)
        )
        for at, entry in entries.items():
            person = self.persons[at * PERSON_BYTES : (at + 1) * PERSON_BYTES]
            if entry.shown is None or entry.shown.person != person:
                raise ValueError(f"{entry.name} is another person than everyone was told")

    def _check_all_differ(self, leaves: int) -> bool:
        told = range(0, len(self.persons), PERSON_BYTES)
        different = {self.persons[k : k + PERSON_BYTES] for k in told}
        if not len(self.persons) // PERSON_BYTES == len(different) == leaves:
            raise ValueError("a person is there twice")
        return True


class Die(Message, frozen=True):
    """2, party → coordinator: its die, opened."""

    step: ClassVar[str] = "die"
    reveals: ClassVar[bool] = False
    doing: ClassVar[str] = (
        "parties open their random contributions, which draw the graph of neighbours"
    )
    die: bytes


class Player(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A party in the graph: its entry, where that is in the tree of keys, and its die."""

    entry: Entry
    at: int
    die: bytes


class Neighbourhood(Message, frozen=True):
    """2, coordinator → party: itself and its neighbours, and proofs that they are in both trees."""

    step: ClassVar[str] = "neighbourhood"
    doing: ClassVar[str] = "the coordinator tells each party its neighbours"
    way: ClassVar[Way] = "hand out"
    keys: int
    """How many are in the tree of keys."""
    nodes: int
    """How many of these are in the graph."""
    players: dict[int, Player]
    """By their numbers in the graph."""
    keys_proof: bytes
    dice_root: bytes
    dice_proof: bytes


def _die_hash(die: bytes) -> bytes:
    return hashlib.sha256(b"mpc-rr die\0" + die).digest()


def _graph(fixed: KeysFixed, dice_root: bytes, nodes: int, degree: int) -> HararyGraph:
    seed = hashlib.sha256(b"mpc-rr graph seed\0" + fixed.digest + dice_root).digest()
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
class Seat:
    """A party's place in the graph, and the secrets it shares with its neighbours, by slot."""

    plan: GraphParameters
    vouching: bool
    """Whether neighbours vouch for each other, because the coordinator may lie."""
    graph: HararyGraph
    number: int
    neighbours: list[int]
    agreed_masks: list[bytes] = field(repr=False)
    agreed_seals: list[bytes] = field(repr=False)

    def _edges(self, purpose: bytes) -> list[bytes]:
        """What a secret with each neighbour is for: this sum, and this edge of the graph."""
        ends = (sorted((self.number, neighbour)) for neighbour in self.neighbours)
        return [purpose + low.to_bytes(8) + high.to_bytes(8) for low, high in ends]

    def pair_seeds(self, purpose: bytes) -> list[bytes]:
        """The seed of the mask with each neighbour, for one sum."""
        return [
            derive(agreed, b"mpc-rr pair mask\0" + edge, SEED_BYTES)
            for agreed, edge in zip(self.agreed_masks, self._edges(purpose), strict=True)
        ]

    def seal_keys(self, purpose: bytes) -> list[SealKeys]:
        """The keys shared with each neighbour for one sum."""
        keys = []
        for neighbour, agreed, edge in zip(
            self.neighbours, self.agreed_seals, self._edges(purpose), strict=True
        ):
            all_three = derive(agreed, b"mpc-rr shares\0" + edge, 96)
            low, high, vouch = all_three[:32], all_three[32:64], all_three[64:]
            mine_first = self.number < neighbour
            keys.append(SealKeys(low, high, vouch) if mine_first else SealKeys(high, low, vouch))
        return keys


async def set_up_party(session: PartySession, options: MaskingOptions) -> Seat:
    """Steps 1 and 2: fix the keys, roll the dice, check the neighbourhood."""
    # Step 1: send a key for masks and a commitment to a die; hear the root over everybody's.
    own, die = MaskKey(session.rng.fork("mask key")), session.rng.fork("die").bytes(DIE_BYTES)
    possession = session.possession(own)
    await session.report(MaskKeys(own.public, _die_hash(die), possession))
    fixed = await session.hear(KeysFixed)

    # Step 2: open the die; the neighbours must follow from all keys and all dice.
    await session.report(Die(die))
    identity = session.identity
    entry = Entry(session.me, identity.public, own.public, _die_hash(die), session.person.own_pass)
    told = await session.told(
        Neighbourhood,
        check=lambda told: _check_neighbourhood(session, told, fixed, entry, options),
    )
    number = _own_number(told, entry)
    plan = options.plan(told.nodes, session.most)
    graph = _graph(fixed, told.dice_root, told.nodes, plan.degree)
    neighbours = graph.neighbours(number).tolist()
    players = [told.players[k].entry for k in neighbours]
    try:
        agreed_masks = [own.shared_secret(player.key) for player in players]
        agreed_seals = [identity.shared_secret(player.identity.sealing) for player in players]
    except ValueError:
        raise Misconduct(
            "the coordinator shows a neighbour's key that is none", [COORDINATOR]
        ) from None
    return Seat(plan, options.malicious, graph, number, neighbours, agreed_masks, agreed_seals)


def _own_number(told: Neighbourhood, entry: Entry) -> int:
    mine = [number for number, player in told.players.items() if player.entry == entry]
    if len(mine) != 1:
        raise ValueError("I am not in the graph with my own keys")
    return mine[0]


def _check_neighbourhood(
    session: PartySession,
    told: Neighbourhood,
    fixed: KeysFixed,
    entry: Entry,
    options: MaskingOptions,
) -> None:
    """``ValueError`` unless these are the neighbours that keys and dice give us."""
    number, players = _own_number(told, entry), told.players
    fewest = max(3, session.fewest, max(players) + 1)
    if not fewest <= told.nodes <= told.keys <= session.most:
        raise ValueError(f"a graph of {told.nodes} parties with {told.keys} keys")
    degree = options.plan(told.nodes, session.most).degree
    graph = _graph(fixed, told.dice_root, told.nodes, degree)
    if set(players) != {number, *graph.neighbours(number).tolist()}:
        raise ValueError("these are not the neighbours that keys and public randomness give me")
    in_order = [players[k] for k in sorted(players)]
    if any(b.at <= a.at or b.entry.name <= a.entry.name for a, b in itertools.pairwise(in_order)):
        raise ValueError("a party stands twice in the graph")
    _check_different_people(session, [player.entry for player in in_order])
    if any(_die_hash(player.die) != player.entry.die_hash for player in in_order):
        raise ValueError("a random contribution was changed after its commitment")
    keys = {player.at: _encoded(player.entry) for player in in_order}
    fixed.check_persons(session, {player.at: player.entry for player in in_order}, told.keys)
    if root_of(keys, told.keys, told.keys_proof) != fixed.root:
        raise ValueError(
            "a neighbour's keys were not fixed before the random contributions were opened"
        )
    dice = {k: _encoded(player) for k, player in players.items()}
    if root_of(dice, told.nodes, told.dice_proof) != told.dice_root:
        raise ValueError("a neighbour is not among those whose random contributions count")


def _check_different_people(session: PartySession, entries: Sequence[Entry]) -> None:
    """``ValueError`` unless they have keys of their own, and are persons whom the registrar knows.

    Who stands twice among our neighbours would hold two shares of what each may have one of.
    """
    keys = [key for e in entries for key in (e.key, e.identity.signing, e.identity.sealing)]
    if len(set(keys)) < len(keys):
        raise ValueError("two neighbours have the same key")
    for entry in entries:
        fault = session.person.pass_fault(entry.identity, entry.shown)
        if fault is not None:
            raise ValueError(f"{entry.name}: {fault}")
    persons = [entry.shown.person for entry in entries if entry.shown is not None]
    if len(set(persons)) < len(persons):
        raise ValueError("two neighbours are the same person")


# ── The coordinator ────────────────────────────────────────────────────────────────────────────


@dataclass
class Enrolled:
    """Who is in the graph, who has been lost on the way, and at which step."""

    plan: GraphParameters
    vouching: bool
    graph: HararyGraph
    names: list[str]
    rows: Places
    """The neighbours of each party, slot by slot."""
    lost: dict[str, str]


async def set_up_coordinator(session: CoordinatorSession, options: MaskingOptions) -> Enrolled:
    """Steps 1 and 2: fix the keys, gather the dice, tell everybody its neighbours."""
    lost: dict[str, str] = {}

    # Step 1: gather the keys and announce the root over them.
    keys = await gathered_or_lost(session, MaskKeys, session.parties, lost, check=_check_keys)
    entries = [
        Entry(
            name,
            session.identity_of(name),
            keys[name].key,
            keys[name].die_hash,
            session.pass_of(name),
        )
        for name in _without_copied_keys(session, keys, lost)
    ]
    check_enough_left(session, entries, lost)
    keys_tree = MerkleTree([_encoded(entry) for entry in entries])
    persons = b"".join(entry.shown.person for entry in entries if entry.shown is not None)
    fixed = KeysFixed(keys_tree.root, persons)
    await session.announce(fixed)

    # Step 2: gather the dice; those who opened theirs are in the graph.
    asked = {entry.name for entry in entries}
    dice = await gathered_or_lost(session, Die, asked, lost, check=_check_die)
    honest = {
        e.name for e in entries if e.name in dice and _die_hash(dice[e.name].die) == e.die_hash
    }
    lost |= dict.fromkeys(set(dice) - honest, "die: it is not the one that was committed to")
    players = [Player(e, at, dice[e.name].die) for at, e in enumerate(entries) if e.name in honest]
    check_enough_left(session, [player.entry.name for player in players], lost)
    dice_tree = MerkleTree([_encoded(player) for player in players])
    plan = _plan_for(session, options, len(players), lost)
    graph = _graph(fixed, dice_tree.root, len(players), plan.degree)
    rows = graph.all_neighbours()
    await session.hand_out(
        {
            player.entry.name: _neighbourhood([number, *row], players, keys_tree, dice_tree)
            for number, (player, row) in enumerate(zip(players, rows.tolist(), strict=True))
        }
    )
    names = [player.entry.name for player in players]
    return Enrolled(plan, options.malicious, graph, names, rows, lost)


def _plan_for(
    session: CoordinatorSession, options: MaskingOptions, nodes: int, lost: dict[str, str]
) -> GraphParameters:
    try:
        return options.plan(nodes, session.most, smallest=session.rules < LARGE_THRESHOLDS)
    except InputError as error:
        raise Dropout(f"{error}; {listing(lost)} left", lost) from None


def _check_die(message: Die) -> None:
    if len(message.die) != DIE_BYTES:
        raise ValueError(f"a die has {DIE_BYTES} bytes")


def _without_copied_keys(
    session: CoordinatorSession, keys: Mapping[str, MaskKeys], lost: dict[str, str]
) -> list[str]:
    """Who has a key for masks that nobody else has, for whatever purpose; the others are lost."""
    often = Counter(message.key for message in keys.values())
    identities = (session.identity_of(name) for name in keys)
    often.update(key for identity in identities for key in (identity.signing, identity.sealing))
    copied = [name for name in sorted(keys) if often[keys[name].key] > 1]
    lost |= dict.fromkeys(copied, f"{MaskKeys.step}: its key for masks is there twice")
    return [name for name in sorted(keys) if name not in copied]


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


def check_enough_left(
    session: CoordinatorSession, there: Collection[object], lost: dict[str, str]
) -> None:
    """`Dropout` if fewer are left than the study, or any sum, needs."""
    if len(there) < max(session.fewest, 3):
        raise Dropout(
            f"only {session.out_of_expected(len(there))} are left, at least "
            f"{max(session.fewest, 3)} are needed; {listing(lost)} left",
            lost,
        )
