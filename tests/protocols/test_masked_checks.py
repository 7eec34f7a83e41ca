"""What a party of a masked sum checks before it believes its neighbourhood, one lie at a time.

Where both sides compute the same, an honest run cannot tell whether it is the right thing: so what
goes into each hash is pinned here, by known answers and by what must change with it.
"""

import hashlib
import itertools
from dataclasses import dataclass, replace
from types import SimpleNamespace

import msgspec
import numpy as np
import pytest
from scipy import stats

from mpc_rr.crypto import shamir
from mpc_rr.crypto.admission import Pass
from mpc_rr.crypto.graph import HararyGraph
from mpc_rr.crypto.identity import Identity
from mpc_rr.crypto.merkle import MerkleTree
from mpc_rr.crypto.pairwise import SEED_BYTES, MaskKey, derive, masks, seed_of, unlock
from mpc_rr.errors import Dropout, Misconduct, out_of
from mpc_rr.network.session.shared import once_per_process
from mpc_rr.privacy.graph_parameters import GraphParameters
from mpc_rr.protocols.sums.masked import setup as enrolment
from mpc_rr.protocols.sums.masked import sum as masked_sum
from mpc_rr.protocols.sums.masked.recovery import Recovery, Shared, mark_of
from mpc_rr.protocols.sums.masked.setup import (
    Enrolled,
    Entry,
    KeysFixed,
    MaskingOptions,
    Player,
    Seat,
)
from mpc_rr.protocols.sums.masked.slots import pieces
from mpc_rr.randomness import SeededRandomness

OPTIONS = MaskingOptions(corrupt=0.06, dropout=0.02, coordinator="curious")
MOST, NODES = 50, 40
ME = 7
IDENTITIES = [Identity(SeededRandomness(f"identity {k}")).public for k in range(MOST + 1)]
KEYS = [MaskKey(SeededRandomness(f"key {k}")).public for k in range(MOST + 1)]


def entry(k, *, admitted=False):
    shown = Pass(hashlib.sha256(bytes([k])).digest(), b"", b"") if admitted else None
    die_hash = enrolment._die_hash(bytes([k]) * enrolment.DIE_BYTES)
    return Entry(f"party-{k:02}", IDENTITIES[k], KEYS[k], die_hash, shown)


def player(one, at):
    return Player(one, at, bytes([IDENTITIES.index(one.identity)]) * enrolment.DIE_BYTES)


@dataclass
class Village:
    """What a coordinator tells a party: all hashes and proofs fit, whatever the lie."""

    entries: list[Entry]
    players: list[Player]
    persons: bytes
    plan: GraphParameters
    most: int = MOST
    fewest: int = 3
    me: Entry | None = None
    announced: KeysFixed | None = None

    @property
    def keys_tree(self):
        return MerkleTree([enrolment._encoded(one) for one in self.entries])

    @property
    def dice_tree(self):
        return MerkleTree([enrolment._encoded(one) for one in self.players])

    @property
    def fixed(self):
        return self.announced or KeysFixed(self.keys_tree.root, self.persons)

    @property
    def graph(self):
        return enrolment._graph(
            self.fixed, self.dice_tree.root, len(self.players), self.plan.degree
        )

    @property
    def number(self):
        return next(k for k, one in enumerate(self.players) if one.entry == self.me)

    def told(self, *, shown=None):
        numbers = shown or [self.number, *self.graph.neighbours(self.number).tolist()]
        return enrolment._neighbourhood(numbers, self.players, self.keys_tree, self.dice_tree)

    def check(self, told):
        session = SimpleNamespace(
            fewest=self.fewest,
            most=self.most,
            person=SimpleNamespace(pass_fault=lambda identity, shown: None),
            shared=lambda what, depends_on, work: work(),
        )
        enrolment._check_neighbourhood(session, told, self.fixed, self.me, OPTIONS)


def village(*, keys=MOST, nodes=NODES, admitted=False, most=MOST):
    entries = [entry(k, admitted=admitted) for k in range(keys)]
    return Village(
        entries,
        [player(entries[k], k) for k in range(nodes)],
        b"".join(one.shown.person for one in entries if one.shown),
        OPTIONS.plan(nodes, most),
        most=most,
        me=entries[ME],
    )


def with_entries(honest, change):
    """The same village with other entries, where nobody's keys but the changed ones move."""
    entries = change(list(honest.entries))
    players = [Player(entries[p.at], p.at, p.die) for p in honest.players]
    return replace(honest, entries=entries, players=players)


@pytest.mark.parametrize("admitted", [False, True], ids=["without passes", "with passes"])
def test_an_honest_neighbourhood_is_believed_though_some_have_left(admitted):
    """The graph has as many neighbours as if all who could be corrupt had stayed."""
    honest = village(admitted=admitted)
    assert OPTIONS.plan(NODES, MOST).degree > OPTIONS.plan(NODES).degree
    honest.check(honest.told())


# ── Lies about how many there are, and who is whose neighbour ──────────────────────────────────


def fewer_than_allowed():
    lie = replace(village(), fewest=NODES + 1)
    return lie, lie.told()


def more_keys_than_people():
    lie = village(keys=MOST + 1)
    return lie, lie.told()


def more_parties_than_keys():
    """Beyond what the victim sees of the graph, some stand there again."""
    honest = village(keys=NODES, nodes=NODES, most=MOST)
    players = [*honest.players, honest.players[-1]]
    lie = replace(honest, players=players, plan=OPTIONS.plan(len(players), MOST))
    return lie, lie.told()


def as_if_nobody_had_left():
    lie = replace(village(), plan=OPTIONS.plan(NODES))
    return lie, lie.told()


def a_neighbour_of_the_coordinators_choice():
    lie = village()
    row = lie.graph.neighbours(lie.number).tolist()
    other = next(k for k in range(NODES) if k not in (lie.number, *row))
    return lie, lie.told(shown=[lie.number, *row[1:], other])


def one_neighbour_too_few():
    lie = village()
    row = lie.graph.neighbours(lie.number).tolist()
    return lie, lie.told(shown=[lie.number, *row[1:]])


def myself_twice():
    honest = village()
    lie = replace(honest, players=[*honest.players, honest.players[ME]])
    return lie, lie.told(shown=[ME, NODES, *range(10, 20)])


def too_few_for_any_sum():
    honest = village()
    players = [honest.players[0], honest.players[ME]]
    lie = replace(honest, players=players, plan=GraphParameters(1, 1), fewest=2)
    return lie, lie.told()


def other_dice():
    """Another root of the dice would give another graph."""
    lie = village()
    return lie, msgspec.structs.replace(lie.told(), dice_root=bytes(32))


@pytest.mark.parametrize(
    ("lie", "says"),
    [
        (myself_twice, "I am not in the graph with my own keys"),
        (too_few_for_any_sum, "a graph of 2 parties with 50 keys"),
        (fewer_than_allowed, "a graph of 40 parties with 50 keys"),
        (more_keys_than_people, "a graph of 40 parties with 51 keys"),
        (more_parties_than_keys, "a graph of 41 parties with 40 keys"),
        (as_if_nobody_had_left, "not the neighbours that keys and public randomness give me"),
        (
            a_neighbour_of_the_coordinators_choice,
            "not the neighbours that keys and public randomness give me",
        ),
        (one_neighbour_too_few, "not the neighbours that keys and public randomness give me"),
        (other_dice, "not the neighbours that keys and public randomness give me"),
    ],
)
def test_a_graph_that_does_not_follow_from_keys_and_dice_is_refused(lie, says):
    liar, told = lie()
    with pytest.raises(ValueError, match=says):
        liar.check(told)


# ── Lies about the people in it ────────────────────────────────────────────────────────────────


def one_name_twice():
    """A phantom with keys of its own, under the name of another neighbour."""
    name = "party-30"
    lie = with_entries(
        village(),
        lambda all_of_them: [
            msgspec.structs.replace(one, name=name) if k == 31 else one
            for k, one in enumerate(all_of_them)
        ],
    )
    return everybody_beside_me(lie, 30, 31)


def one_leaf_twice():
    """Names rise along the graph, but the places in the tree of keys do not."""
    honest = village()
    entries = [*honest.entries]
    entries[30], entries[31] = entries[31], entries[30]
    players = [*honest.players]
    players[30], players[31] = player(entries[31], 31), player(entries[30], 30)
    return everybody_beside_me(replace(honest, entries=entries, players=players), 30, 31)


def one_mask_key_twice():
    return everybody_beside_me(with_key_of(lambda one, other: {"key": other.key}), 30, 31)


def one_sealing_key_twice():
    def copied(one, other):
        identity = msgspec.structs.replace(one.identity, sealing=other.identity.sealing)
        return {"identity": identity}

    return everybody_beside_me(with_key_of(copied), 30, 31)


def one_signing_key_twice():
    def copied(one, other):
        identity = msgspec.structs.replace(one.identity, signing=other.identity.signing)
        return {"identity": identity}

    return everybody_beside_me(with_key_of(copied), 30, 31)


def a_mask_key_that_seals():
    """One's key for masks is another's for sealing: one secret would serve two purposes."""
    copied = with_key_of(lambda one, other: {"key": other.identity.sealing})
    return everybody_beside_me(copied, 30, 31)


def with_key_of(copied):
    def change(entries):
        one, other = entries[31], entries[30]
        return [*entries[:31], msgspec.structs.replace(one, **copied(one, other)), *entries[32:]]

    return with_entries(village(), change)


def one_person_twice():
    honest = village(admitted=True)

    def change(entries):
        twin = msgspec.structs.replace(entries[31], shown=entries[30].shown)
        return [*entries[:31], twin, *entries[32:]]

    return everybody_beside_me(with_entries(honest, change), 30, 31)


def persons_untold():
    lie = replace(village(admitted=True), persons=b"")
    return lie, lie.told()


def persons_in_another_order():
    honest = village(admitted=True)
    lie = replace(honest, persons=honest.persons[32:] + honest.persons[:32])
    return lie, lie.told()


def a_neighbour_without_a_pass():
    def change(entries):
        return [
            one if k == ME else msgspec.structs.replace(one, shown=None)
            for k, one in enumerate(entries)
        ]

    lie = with_entries(village(admitted=True), change)
    return lie, lie.told()


def persons_of_which_two_are_one():
    """Far from the victim, which sees only the list that everybody is told."""
    honest = village(admitted=True)
    last, before = honest.persons[-32:], honest.persons[:-64]
    lie = replace(honest, persons=before + last + last)
    return lie, lie.told()


def one_person_too_few():
    honest = village(admitted=True)
    lie = replace(honest, persons=honest.persons[:-32])
    return lie, lie.told()


def a_piece_of_a_person_too_many():
    lie = village(admitted=True)
    lie = replace(lie, persons=lie.persons + b"piece")
    return lie, lie.told()


def another_die():
    honest = village()
    players = [Player(p.entry, p.at, b"!" * 16 if p.at != ME else p.die) for p in honest.players]
    lie = replace(honest, players=players)
    return lie, lie.told()


def a_key_swapped_after_it_was_fixed():
    honest = village()
    swapped = with_entries(
        honest, lambda es: [*es[:20], msgspec.structs.replace(es[20], key=KEYS[MOST]), *es[21:]]
    )
    return everybody_beside_me(replace(swapped, announced=honest.fixed), 20)


def dice_of_another_tree():
    lie = village()
    told = lie.told()
    return lie, msgspec.structs.replace(told, dice_proof=bytes(len(told.dice_proof)))


def everybody_beside_me(lie, *wanted):
    """The lie, told to somebody who has all of these as neighbours."""
    for one in lie.players:
        if one.at in wanted:
            continue
        lie = replace(lie, me=one.entry)
        if set(wanted) <= set(lie.graph.neighbours(lie.number).tolist()):
            return lie, lie.told()
    raise AssertionError("nobody has these neighbours")


@pytest.mark.parametrize(
    ("lie", "says"),
    [
        (one_name_twice, "a party stands twice in the graph"),
        (one_leaf_twice, "a party stands twice in the graph"),
        (one_mask_key_twice, "two neighbours have the same key"),
        (one_sealing_key_twice, "two neighbours have the same key"),
        (one_signing_key_twice, "two neighbours have the same key"),
        (a_mask_key_that_seals, "two neighbours have the same key"),
        (one_person_twice, "two neighbours are the same person"),
        (persons_untold, "the persons behind the keys are not told"),
        (persons_in_another_order, "is another person than everyone was told"),
        (a_neighbour_without_a_pass, "is another person than everyone was told"),
        (persons_of_which_two_are_one, "a person is there twice"),
        (one_person_too_few, "a person is there twice"),
        (a_piece_of_a_person_too_many, "a person is there twice"),
        (another_die, "a random contribution was changed after its commitment"),
        (
            a_key_swapped_after_it_was_fixed,
            "keys were not fixed before the random contributions were opened",
        ),
        (dice_of_another_tree, "a neighbour is not among those whose random contributions count"),
    ],
)
def test_people_who_are_not_what_everybody_was_told_are_refused(lie, says):
    liar, told = lie()
    with pytest.raises(ValueError, match=says):
        liar.check(told)


def test_that_all_persons_differ_is_not_known_from_another_list():
    """Parties of one process look through a list once; another list is looked through again."""
    session = SimpleNamespace(shared=lambda *key_and_work: once_per_process(*split(key_and_work)))

    def split(key_and_work):
        what, depends_on, work = key_and_work
        return ("this test", what, *depends_on), work

    persons = village(admitted=True).persons
    root, twice = bytes(32), persons[:-64] + persons[-32:] * 2
    KeysFixed(root, persons).check_persons(session, {}, MOST)
    with pytest.raises(ValueError, match="a person is there twice"):
        KeysFixed(root, twice).check_persons(session, {}, MOST)
    with pytest.raises(ValueError, match="a person is there twice"):
        KeysFixed(root, persons).check_persons(session, {}, MOST + 1)


# ── What everybody computes alike ──────────────────────────────────────────────────────────────

FIXED = KeysFixed(b"r" * 32, b"p" * 64)


def seed_for(fixed, dice_root):
    return enrolment._graph(fixed, dice_root, 10, 4).seed


def test_the_graph_hangs_on_all_keys_all_persons_and_all_dice():
    seeds = {
        seed_for(FIXED, b"d" * 32),
        seed_for(KeysFixed(b"s" * 32, FIXED.persons), b"d" * 32),
        seed_for(KeysFixed(FIXED.root, b"q" * 64), b"d" * 32),
        seed_for(FIXED, b"e" * 32),
    }
    assert len(seeds) == 4


def test_the_seed_of_the_graph_is_the_known_one():
    fixed = hashlib.sha256(b"mpc-rr keys fixed\0" + b"r" * 32 + b"p" * 64).digest()
    assert FIXED.digest == fixed
    known = hashlib.sha256(b"mpc-rr graph seed\0" + fixed + b"d" * 32).digest()
    assert seed_for(FIXED, b"d" * 32) == known


def seat(number=4, neighbours=(2, 3, 5, 6)):
    return Seat(
        GraphParameters(4, 3), True, HararyGraph(bytes(32), 9, 4), number, list(neighbours),
        [b"masks"] * 4, [b"seals"] * 4,
    )  # fmt: skip


def test_no_two_sums_share_a_seed_or_a_key():
    one, other = seat().pair_seeds(b"one sum"), seat().pair_seeds(b"other sum")
    assert len({*one, *other}) == 8
    keys = [
        key
        for purpose in (b"one sum", b"other sum")
        for seal in seat().seal_keys(purpose)
        for key in seal
    ]
    assert len(set(keys)) == 24


def test_two_neighbours_find_the_same_seed_and_each_other_s_keys():
    mine, theirs = seat(4, (2, 3, 5, 6)), seat(5, (4, 3, 2, 6))
    assert mine.pair_seeds(b"sum")[2] == theirs.pair_seeds(b"sum")[0]
    my_keys, their_keys = mine.seal_keys(b"sum")[2], theirs.seal_keys(b"sum")[0]
    assert my_keys.to_them == their_keys.from_them
    assert my_keys.from_them == their_keys.to_them
    assert my_keys.vouch == their_keys.vouch


def test_seeds_and_keys_are_the_known_ones():
    """Of each edge, by the lower number first."""
    edge = b"sum" + (4).to_bytes(8) + (5).to_bytes(8)
    assert seat().pair_seeds(b"sum")[2] == derive(b"masks", b"mpc-rr pair mask\0" + edge, 16)
    keys = derive(b"seals", b"mpc-rr shares\0" + edge, 96)
    assert seat().seal_keys(b"sum")[2] == (keys[:32], keys[32:64], keys[64:])


def test_a_sum_is_another_in_another_run_another_session_or_on_another_graph():
    def purpose(run, name, seed):
        on_graph = replace(seat(), graph=HararyGraph(seed, 9, 4))
        return masked_sum._purpose(SimpleNamespace(run=run, name=name), on_graph)

    purposes = {
        purpose(b"run 1", "study/sum-1", bytes(32)),
        purpose(b"run 2", "study/sum-1", bytes(32)),
        purpose(b"run 1", "study/sum-2", bytes(32)),
        purpose(b"run 1", "study/sum-1", b"\1" * 32),
    }
    assert len(purposes) == 4


def test_a_mark_is_of_one_secret_for_one_purpose():
    marks = {mark_of(kind, secret) for kind in (b"own", b"box", b"pair") for secret in (b"a", b"b")}
    assert len(marks) == 6
    assert mark_of(b"own", b"a") == hashlib.sha256(b"mpc-rr mark\0owna").digest()[:16]


def test_a_voucher_is_by_one_about_another_and_of_one_set_of_survivors():
    vouchers = {
        masked_sum._voucher(b"key", b"digest", 1, 2),
        masked_sum._voucher(b"key", b"digest", 2, 1),
        masked_sum._voucher(b"key", b"digest", 1, 3),
        masked_sum._voucher(b"key", b"digest", 3, 2),
        masked_sum._voucher(b"key", b"another", 1, 2),
        masked_sum._voucher(b"another", b"digest", 1, 2),
    }
    assert len(vouchers) == 6


def test_survivors_are_known_by_all_their_names():
    known = hashlib.sha256(b"mpc-rr survivors\0" + msgspec.msgpack.encode(["a", "b"])).digest()
    assert masked_sum._survivors_digest(["b", "a"]) == known
    assert masked_sum._survivors_digest(["a", "c"]) != known


# ── Fewer than t neighbours cannot take a mask off ─────────────────────────────────────────────


def test_one_neighbour_too_few_has_neither_the_own_secret_nor_the_key_of_the_box():
    own, box_key = (shamir.random_secret(SeededRandomness(k)) for k in (1, 2))
    seals = seat().seal_keys(b"sum")
    sent = masked_sum._shares(
        seat(), own, box_key, [b"s" * SEED_BYTES] * 4, seals, SeededRandomness(3)
    )
    parcels = pieces(sent.parcels, masked_sum.PARCEL_BYTES, 4)
    opened = [unlock(seal.to_them, parcel) for seal, parcel in zip(seals, parcels, strict=True)]
    for secret, half in ((own, slice(32)), (box_key, slice(32, 64))):
        shares = {point: both[half] for point, both in enumerate(opened, start=1)}
        for three in itertools.combinations(shares, 3):
            assert shamir.join({point: shares[point] for point in three}) == secret
        for two in itertools.combinations(shares, 2):
            assert shamir.join({point: shares[point] for point in two}) != secret
    assert unlock(box_key, sent.box) == b"s" * SEED_BYTES * 4
    assert sent.marks == mark_of(b"own", own) + mark_of(b"box", box_key)


def test_no_sum_is_of_fewer_than_three_whatever_the_study_allows():
    session = SimpleNamespace(fewest=1, out_of_expected=lambda n: out_of(n, 3, 3))
    enrolment.check_enough_left(session, ["a", "b", "c"], {})
    with pytest.raises(Dropout, match="only 2 of 3 parties are left, at least 3 are needed; c"):
        enrolment.check_enough_left(session, ["a", "b"], {"c": "die"})


# ── Each mask alone hides a vector ─────────────────────────────────────────────────────────────


def under_my_own_mask(k, values):
    return masked_sum._masked(seat(), values, 2, k.to_bytes(32), [])


def under_the_mask_with(neighbour):
    """What is left when somebody has taken off the own mask, which is always the same here."""

    def masked(k, values):
        known = masked_sum._masked(seat(), values, 2, bytes(32), []) - values
        there = [(neighbour, k.to_bytes(SEED_BYTES))]
        return masked_sum._masked(seat(), values, 2, bytes(32), there) - known

    return masked


@pytest.mark.parametrize(
    "masked",
    [under_my_own_mask, under_the_mask_with(3), under_the_mask_with(5)],
    ids=["own", "lower neighbour", "higher neighbour"],
)
@pytest.mark.parametrize("values", [(0, 0, 0), (3, 0, 1)])
def test_each_mask_alone_hides_the_vector(masked, values):
    """What is left if all others are known: 600 sums, below 1e-5 once in 100,000 runs each."""
    vector = np.array(values, dtype=np.uint8)
    for cell in range(3):
        found = [int(masked(k, vector)[cell]) % 4 for k in range(600)]
        assert stats.chisquare(np.bincount(found, minlength=4)).pvalue > 1e-5


def test_a_mask_with_a_neighbour_is_added_at_one_end_and_taken_off_at_the_other():
    values, seed = np.zeros(4, dtype=np.uint8), b"s" * SEED_BYTES
    lower = masked_sum._masked(seat(4), values, 8, bytes(32), [(5, seed)])
    higher = masked_sum._masked(seat(5), values, 8, bytes(32), [(4, seed)])
    own = masked_sum._masked(seat(4), values, 8, bytes(32), [])
    assert not (lower + higher - own - own).any()
    assert (lower != own).any()


# ── Taking masks off although some lie ─────────────────────────────────────────────────────────


def recovery(parties, threshold, lying):
    """All of them survived; ``lying(about, by)`` says who gives a false share of whose secret."""
    graph = HararyGraph(b"graph", parties, parties - 1)
    rows = graph.all_neighbours()
    rng = SeededRandomness(5)
    secrets = [shamir.random_secret(rng) for _ in range(parties)]
    given = {k: {} for k in range(parties)}
    for about, row in enumerate(rows.tolist()):
        shares = shamir.split(secrets[about], threshold, parties - 1, rng)
        for slot, by in enumerate(row):
            share = bytes(31) + b"!" if lying(about, by) else shares[slot]
            given[by][graph.mirrored(slot)] = share
    enrolled = Enrolled(
        GraphParameters(parties - 1, threshold), False, graph,
        [f"party-{k}" for k in range(parties)], rows, {},
    )  # fmt: skip
    boxes = dict.fromkeys(range(parties), b"")
    marks = {k: mark_of(b"own", secret) + bytes(16) for k, secret in enumerate(secrets)}
    shared = Shared({}, boxes, marks)
    expected = masks((seed_of(secret) for secret in secrets), 5, 8)
    return Recovery(enrolled, shared, set(range(parties)), given, {}), expected


def liars_about(number, graph_of=9):
    """Whose shares of a secret are tried first."""
    return HararyGraph(b"graph", graph_of, graph_of - 1).neighbours(number).tolist()


def test_whoever_lied_before_is_not_asked_again():
    """Four shares are to spare: two liars can be found, and once they are, a third."""
    known = set(liars_about(0)[:2])
    third = next(k for k in liars_about(1) if k not in {*known, 0})
    taken_off, expected = recovery(
        9, 4, lambda about, by: by in known or (about == 1 and by == third)
    )
    assert taken_off.leftover(5, 8).tolist() == expected.tolist()
    assert set(taken_off.false_shares) == {*known, third}


def test_three_liars_at_once_are_too_many_where_four_shares_are_to_spare():
    """The counter-test of the one above: nobody had been found lying before."""
    three = set(liars_about(0)[:3])
    taken_off, _ = recovery(9, 4, lambda about, by: about == 0 and by in three)
    with pytest.raises(Misconduct, match="do not fit together"):
        taken_off.leftover(5, 8)


def test_whoever_lied_most_is_asked_last():
    """Of five shares four are needed, and two come from people who have lied before."""
    once, often = liars_about(0, graph_of=6)[:2]
    taken_off, expected = recovery(6, 4, lambda about, by: about == 0 and by == often)
    taken_off.false_shares.update({once: 1, often: 2})
    assert taken_off.leftover(5, 8).tolist() == expected.tolist()
