"""The parts of a masked sum: Merkle trees, Shamir's shares, masks, the graph, parameters."""

import itertools

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from mpc_rr.crypto import shamir
from mpc_rr.crypto.graph import HararyGraph
from mpc_rr.crypto.identity import Identity
from mpc_rr.crypto.merkle import MerkleTree, root_of
from mpc_rr.crypto.pairwise import MaskKey, derive, is_key, lock, mask, masks, unlock, word
from mpc_rr.errors import InputError
from mpc_rr.network.vectors import pack_bits, unpack_bits
from mpc_rr.privacy.graph_parameters import graph_parameters_for
from mpc_rr.randomness import SeededRandomness

# ── Merkle trees ───────────────────────────────────────────────────────────────────────────────


@given(st.integers(1, 70), st.data())
def test_a_proof_gives_the_root_and_nothing_else_does(count, data):
    entries = [f"entry {k}".encode() for k in range(count)]
    tree = MerkleTree(entries)
    places = data.draw(st.sets(st.integers(0, count - 1), min_size=1, max_size=10))
    proof = tree.proof(places)
    chosen = {k: entries[k] for k in places}
    assert root_of(chosen, count, proof) == tree.root
    one = min(places)
    assert root_of(chosen | {one: b"another"}, count, proof) != tree.root
    if count > 1:
        with pytest.raises(ValueError, match="length"):
            root_of(chosen, count, proof + bytes(32))


def test_entries_are_inside_the_list_and_there_is_one():
    with pytest.raises(ValueError, match="outside"):
        root_of({2: b"c"}, 2, b"")
    with pytest.raises(ValueError, match="at least one"):
        MerkleTree([])


# ── Shamir's shares ────────────────────────────────────────────────────────────────────────────


@given(st.integers(1, 12), st.integers(0, 12), st.integers(0, 1000), st.data())
def test_any_threshold_of_shares_give_the_secret(threshold, more, seed, data):
    rng = SeededRandomness(seed)
    secret = shamir.random_secret(rng)
    shares = shamir.split(secret, threshold, threshold + more, rng)
    points = data.draw(st.permutations(range(1, threshold + more + 1)))[:threshold]
    assert shamir.join({p: shares[p - 1] for p in points}) == secret


@pytest.mark.parametrize("threshold", [2, 3, 4, 9])
def test_fewer_shares_than_the_threshold_do_not_give_the_secret(threshold):
    """As they would if the polynomial had a lower degree. By chance: once in 2^256."""
    rng = SeededRandomness(1)
    secret = shamir.random_secret(rng)
    shares = dict(enumerate(shamir.split(secret, threshold, threshold + 2, rng), start=1))
    for fewer in range(1, threshold):
        for points in itertools.combinations(shares, fewer):
            assert shamir.join({point: shares[point] for point in points}) != secret


def test_one_share_too_few_tells_nothing():
    """Any candidate for the secret goes with the known shares, and with one last share only."""
    rng = SeededRandomness(1)
    shares = shamir.split(shamir.random_secret(rng), 3, 5, rng)
    known = {1: shares[0], 2: shares[1]}
    lasts = set()
    for _ in range(50):
        candidate = shamir.random_secret(rng)
        # Three points of the one parabola through the candidate (at 0) and both known shares.
        v0, v1, v2 = (int.from_bytes(share) for share in (candidate, *known.values()))
        last = ((v0 - 3 * v1 + 3 * v2) % shamir.PRIME).to_bytes(32)
        assert shamir.join(known | {3: last}) == candidate
        lasts.add(last)
    assert len(lasts) == 50


def test_shares_are_uniform():
    """The first byte of a share of one fixed secret; by chance below 1e-4 once in 10,000 runs."""
    rng, secret = SeededRandomness(3), bytes(32)
    firsts = [shamir.split(secret, 2, 3, rng)[2][0] for _ in range(20_000)]
    assert stats.chisquare(np.bincount(firsts, minlength=256)).pvalue > 1e-4


@pytest.mark.parametrize(
    ("secret", "threshold", "shares"), [(b"\xff" * 32, 2, 3), (bytes(31), 2, 3), (bytes(32), 4, 3)]
)
def test_what_cannot_be_shared(secret, threshold, shares):
    with pytest.raises(ValueError, match=r"field|threshold"):
        shamir.split(secret, threshold, shares, SeededRandomness(0))


# ── Keys and masks ─────────────────────────────────────────────────────────────────────────────


def test_two_parties_agree_and_others_do_not():
    a, b, c = (MaskKey(SeededRandomness(k)) for k in range(3))
    assert a.shared_secret(b.public) == b.shared_secret(a.public) != c.shared_secret(a.public)
    one, other = (Identity(SeededRandomness(k)) for k in (7, 8))
    assert one.shared_secret(other.public.sealing) == other.shared_secret(one.public.sealing)
    assert "…" in repr(a)


def test_small_order_points_are_no_keys():
    assert not is_key(bytes(32))
    assert not is_key(b"short")
    assert is_key(MaskKey(SeededRandomness(1)).public)


def test_what_is_derived_for_one_sum_says_nothing_about_another():
    assert derive(b"agreed", b"sum 1", 16) != derive(b"agreed", b"sum 2", 16)


def test_a_lock_opens_with_its_key_only():
    locked = lock(bytes(32), b"seeds")
    assert unlock(bytes(32), locked) == b"seeds"
    assert unlock(b"\1" * 32, locked) is None
    assert unlock(bytes(32), locked[:-1] + b"\0") is None


@given(st.integers(1, 40), st.integers(1, 60))
def test_masks_cancel(bits, cells):
    seeds = [bytes([k]) * 16 for k in range(5)]
    total = masks(seeds, cells, bits)
    for seed in seeds:
        total = total - mask(seed, cells, bits)
    assert not total.any()
    assert total.dtype == word(bits)


def test_masks_are_uniform():
    """Chi-square on 60,000 words; by chance below 1e-4 once in 10,000 runs."""
    found = mask(b"s" * 16, 60_000, 8)
    assert stats.chisquare(np.bincount(found, minlength=256)).pvalue > 1e-4


@given(st.integers(1, 64), st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=40))
def test_values_are_packed_without_gaps(bits, values):
    array = np.array(values, dtype=np.uint64)
    raw = pack_bits(array, bits)
    assert len(raw) == (len(values) * bits + 7) // 8
    assert unpack_bits(raw, len(values), bits).tolist() == [v % 2**bits for v in values]
    with pytest.raises(ValueError, match="bytes where"):
        unpack_bits(raw + b"\0", len(values), bits)


def test_nothing_hides_behind_the_last_value():
    with pytest.raises(ValueError, match="behind"):
        unpack_bits(b"\xff", 1, 3)


# ── The graph ──────────────────────────────────────────────────────────────────────────────────


@given(st.integers(3, 60), st.integers(1, 29), st.integers(0, 100))
def test_the_graph_is_regular_symmetric_and_k_connected(nodes, half, seed):
    degree = min(2 * half, nodes - 1)
    if degree % 2 and degree != nodes - 1:
        degree -= 1
    graph = HararyGraph(bytes([seed]), nodes, degree)
    rows = graph.all_neighbours()
    for node in range(nodes):
        row = graph.neighbours(node)
        assert row.tolist() == rows[node].tolist()
        assert len(set(row.tolist()) - {node}) == degree
        for slot, neighbour in enumerate(row.tolist()):
            assert rows[neighbour][graph.mirrored(slot)] == node
    edges = {(a, b) for a, row in enumerate(rows.tolist()) for b in row}
    if nodes <= 20:
        assert nx.node_connectivity(nx.Graph(edges)) == degree


def test_another_seed_gives_another_graph():
    rows = [HararyGraph(seed, 500, 8).all_neighbours().tolist() for seed in (b"a", b"b")]
    assert rows[0] != rows[1]


def test_who_is_whose_neighbour_is_left_to_chance():
    """Party 0 and party 1 are neighbours in 8 of 49 graphs; 2,000 graphs, 4 standard deviations."""
    hits = sum(1 in HararyGraph(k.to_bytes(4), 50, 8).neighbours(0).tolist() for k in range(2_000))
    share = 8 / 49
    assert abs(hits - 2_000 * share) < 4 * np.sqrt(2_000 * share * (1 - share))


@pytest.mark.parametrize(("nodes", "degree"), [(10, 3), (10, 10), (1, 1), (10, 0)])
def test_graphs_that_do_not_exist(nodes, degree):
    with pytest.raises(ValueError, match="no such graph"):
        HararyGraph(b"", nodes, degree)


# ── Parameters ─────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("parties", "corrupt", "dropout", "expected"),
    [
        (1_000, 0.05, 0.1, (40, 19)),
        (10_000, 0.05, 0.1, (46, 22)),
        (32_561, 0.05, 0.1, (48, 23)),
        (1_000_000, 0.05, 0.1, (56, 26)),
        (10_000, 0.2, 0.3, (206, 94)),
    ],
)
@pytest.mark.parametrize("smallest", [False, True])
def test_parameters_are_those_computed_elsewhere(parties, corrupt, dropout, expected, smallest):
    plan = graph_parameters_for(parties, corrupt, dropout, "curious", smallest=smallest)
    assert (plan.degree, plan.threshold) == expected


@pytest.mark.parametrize("dropout", [0.0, 0.001, 0.05])
@pytest.mark.parametrize("parties", [50, 1_000, 10_000])
def test_fewer_who_leave_need_fewer_neighbours(parties, dropout):
    assert (
        graph_parameters_for(parties, 0.05, dropout).degree
        <= graph_parameters_for(parties, 0.05, 0.1).degree
    )


@pytest.mark.parametrize("parties", [3, 4, 7, 20, 41, 50, 100, 1_000, 32_561])
def test_a_lying_coordinator_cannot_have_both_kinds_of_shares(parties):
    """2t exceeds all neighbours plus the corrupt ones, which may give both."""
    plan = graph_parameters_for(parties)
    expected_corrupt = int(0.05 * parties) * plan.degree / (parties - 1)
    assert 2 * plan.threshold > plan.degree + expected_corrupt
    assert plan.threshold <= plan.degree


@pytest.mark.parametrize(
    ("options", "wrong"),
    [((2,), "at least 3"), ((10, 0.6, 0.5), "below 1"), ((10, 0.4, 0.4), "too few")],
)
def test_parameters_that_do_not_exist(options, wrong):
    with pytest.raises(InputError, match=wrong):
        graph_parameters_for(*options)


def test_the_tails_hold_in_simulated_graphs():
    """Weaker bits, so that failures would show: 12 bits allow 1 party in 2^12·n to fail.

    200 graphs of 300 parties: fewer than one failure is expected; 5 would be a fault (below 1e-3).
    """
    plan = graph_parameters_for(300, 0.1, 0.1, "curious", secrecy_bits=8, correctness_bits=8)
    rng, failures = np.random.default_rng(1), 0
    for seed in range(200):
        rows = HararyGraph(seed.to_bytes(4), 300, plan.degree).all_neighbours()
        corrupt, lost = (rng.permutation(300) < 30 for _ in range(2))
        failures += int((corrupt[rows].sum(axis=1) >= plan.threshold).any())
        failures += int(((~lost)[rows].sum(axis=1) < plan.threshold).any())
    assert failures < 5


def test_slots_of_the_complete_graph_mirror_each_other():
    graph = HararyGraph(b"x", 6, 5)
    for node, slot in itertools.product(range(6), range(5)):
        neighbour = int(graph.neighbours(node)[slot])
        assert graph.neighbours(neighbour)[graph.mirrored(slot)] == node


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 12), st.integers(0, 12), st.data())
def test_false_shares_up_to_half_of_those_to_spare_are_found(threshold, spare, data):
    rng = SeededRandomness(data.draw(st.integers(0, 1000)))
    secret = shamir.random_secret(rng)
    shares = dict(enumerate(shamir.split(secret, threshold, threshold + spare, rng), start=1))
    false = data.draw(st.sets(st.sampled_from(sorted(shares)), max_size=spare // 2))
    told = shares | {point: rng.bytes(31).rjust(32, b"\0") for point in false}
    assert shamir.corrected(told, threshold) == (secret, sorted(false))


def test_too_many_false_shares_give_nothing_or_something_else():
    rng = SeededRandomness(3)
    secret = shamir.random_secret(rng)
    shares = dict(enumerate(shamir.split(secret, 4, 8, rng), start=1))
    told = shares | {point: bytes(32) for point in (1, 2, 3)}
    found = shamir.corrected(told, 4)
    assert found is None or found[0] != secret


def test_corrupt_parties_are_reckoned_to_stay_when_others_leave():
    plan = graph_parameters_for(500, 0.05, 0.1, "curious", enrolled=1000)
    assert plan == graph_parameters_for(500, 0.1, 0.1, "curious")
    assert plan.degree > graph_parameters_for(500, 0.05, 0.1, "curious").degree


@pytest.mark.parametrize("parties", [20, 30, 60, 200, 1000])
def test_against_a_liar_a_vector_hides_among_others(parties):
    plan = graph_parameters_for(parties)
    if plan.degree < parties - 1:
        assert plan.others == 10
    else:
        assert plan.others == 2 * plan.threshold - plan.degree - plan.withstands
        assert plan.withstands >= parties // 20
        assert plan.threshold <= plan.degree - parties // 10
        assert plan.others >= 10 or plan.threshold == plan.degree - parties // 10
