"""What all masked values together leave to an attacker, against an enumeration of everything."""

import itertools

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_bipartite_matching
from scipy.stats import spearmanr

from mpc_rr.anonymization.permutation import expected, permutation
from mpc_rr.anonymization.perturbation import Noise, NoPerturbation, RankSwap, Widened
from mpc_rr.anonymization.together import all_together, left_by_order
from mpc_rr.randomness import SeededRandomness

MASKS = [Noise(2), Noise(5), RankSwap(20), Widened(Noise(1), 1)]


def can_come_from(mask, ordered):
    """All masked values that each rank can have, by what the mask does to it."""
    reach, noise = mask.reach(len(ordered)), mask.noise()
    size = min(2 * reach + 1, len(ordered))
    every = []
    for rank in range(len(ordered)):
        first = min(max(rank - reach, 0), len(ordered) - size)
        near = ordered[first : first + size]
        every.append({v + e for v in near for e in range(-noise, noise + 1)})
    return every


def by_enumeration(masked, ordered, mask):
    """Over all assignments with as few other masks as can be: whose value can be which."""
    every, blanks = can_come_from(mask, ordered), [None] * len(masked)
    best, found = len(masked) + 1, [set() for _ in masked]
    for chosen in set(itertools.permutations([*range(len(ordered)), *blanks], len(masked))):
        fits = all(
            rank is None or own in every[rank] for own, rank in zip(masked, chosen, strict=True)
        )
        others = chosen.count(None)
        if not fits or others > best:
            continue
        if others < best:
            best, found = others, [set() for _ in masked]
        for person, rank in enumerate(chosen):
            found[person] |= set(ordered) if rank is None else {ordered[rank]}
    return best, found


@pytest.mark.parametrize("mask", MASKS, ids=repr)
@given(
    values=st.lists(st.integers(0, 20), min_size=1, max_size=5),
    masked=st.lists(st.integers(-3, 25), min_size=1, max_size=4),
)
def test_possible_values_survive_the_absent_and_other_masks(mask, values, masked):
    """One absent respondent, or one wider mask, once hid all who were given away."""
    assume(len(masked) <= len(values))
    others, possible = by_enumeration(masked, sorted(values), mask)
    found = all_together(masked, values, mask)
    assert found.other_masks == others
    assert found.possible == possible


@pytest.mark.parametrize("mask", MASKS, ids=repr)
@given(st.lists(st.integers(0, 60), min_size=2, max_size=40), st.integers(0, 99))
def test_the_truth_stays_possible_and_as_many_as_can_be_are_placed(mask, values, seed):
    rng, ordered = SeededRandomness(seed), np.sort(np.array(values))
    masked = mask.draw_each(ordered, rng)
    found = all_together(masked.tolist(), values, mask)
    assert found.other_masks == 0
    for true, possible in zip(ordered.tolist(), found.possible, strict=True):
        assert true in possible
    wider = masked + np.array([9 if place % 5 == 0 else 0 for place in range(len(masked))])
    begins, ends = mask.origins(wider, ordered)
    fits = (np.arange(len(values)) >= begins[:, None]) & (np.arange(len(values)) < ends[:, None])
    placed = (maximum_bipartite_matching(csr_array(fits)) >= 0).sum()
    assert all_together(wider.tolist(), values, mask).other_masks == len(values) - placed


def test_one_absent_respondent_does_not_hide_who_is_given_away():
    values, masked = [0, 1, 50, 100, 101], [1, 52, 99, 102]
    found = all_together(masked, values, Noise(5))
    assert [len(v) for v in found.possible] == [2, 1, 2, 2]
    found = all_together([1, 0, 70, 99, 102], values, Noise(5))
    assert (found.other_masks, [len(v) for v in found.possible]) == (1, [2, 2, 5, 2, 2])


# ── How far ranks move ─────────────────────────────────────────────────────────────────────────


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=2, max_size=30))
def test_permutation_distance_and_rank_correlation_are_those_of_scipy(pairs):
    from scipy.stats import rankdata  # noqa: PLC0415

    true, told = (np.array(column) for column in zip(*pairs, strict=True))
    found = permutation(true, told)
    apart = np.abs(rankdata(true) - rankdata(told)).mean() / (len(pairs) - 1)
    assert found.distance == pytest.approx(apart)
    if np.ptp(true) and np.ptp(told):
        assert found.correlation == pytest.approx(spearmanr(true, told).statistic)
    else:
        assert found.correlation is None


@pytest.mark.parametrize("mask", [Noise(30), RankSwap(10)], ids=repr)
def test_expected_moves_are_those_of_masks_that_are_drawn_one_by_one(mask):
    """Means of 400 and 200 trials: apart by five standard errors once in two million."""
    values = sorted(np.random.default_rng(3).integers(0, 300, 50).tolist())
    ordered, rng = np.array(values), SeededRandomness(5)
    found = expected(mask, values, b"seed")
    distances = []
    for _ in range(200):
        masked = np.array([mask.draw(own, ordered, rng) for own in values])
        told = np.empty(50, dtype=np.int64)
        told[np.lexsort((rng.below(1 << 40, (50,)), masked))] = ordered
        distances.append(permutation(ordered, told).distance)
    error = np.std(distances) / np.sqrt(200) * np.sqrt(1.5)
    assert abs(found.distance - np.mean(distances)) < 5 * error
    low, high = found.distance_range
    assert 0.9 < np.mean([low <= d <= high for d in distances]) <= 1


def test_no_mask_moves_nobody():
    found = expected(NoPerturbation(), [3, 1, 2], b"seed")
    assert (found.distance, found.correlation) == (0, 1)
    assert expected(NoPerturbation(), [], b"seed") is None


def rows_by_enumeration(ordered, mask):
    """Which values can stand in each row, over all orders that masked values can have."""
    every, people = can_come_from(mask, ordered), len(ordered)
    # Who has one of several equal values may have any of their ranks.
    sets = [
        sorted(set().union(*(every[r] for r in range(people) if ordered[r] == value)))
        for value in ordered
    ]
    found = [set() for _ in ordered]
    for order in itertools.permutations(range(people)):
        lowest = -(10**9)
        for person in order:
            lowest = next((told for told in sets[person] if told >= lowest), None)
            if lowest is None:
                break
        else:
            for row, person in enumerate(order):
                found[row].add(ordered[person])
    return found


@given(
    st.lists(st.integers(0, 20), min_size=1, max_size=6).map(sorted),
    st.sampled_from([*MASKS, NoPerturbation(), Noise(9)]),
)
def test_what_an_order_leaves_is_all_that_can_be_in_it(ordered, mask):
    assert left_by_order(ordered, mask) == rows_by_enumeration(ordered, mask)


def test_an_order_alone_leaves_more_than_the_masked_values():
    ordered, mask = list(range(0, 60, 3)), Noise(5)
    masked = mask.draw_each(np.array(ordered), SeededRandomness(1))
    by_value = sorted(map(len, all_together(masked.tolist(), ordered, mask).possible))
    by_order = sorted(map(len, left_by_order(ordered, mask)))
    assert all(a <= b for a, b in zip(by_value, by_order, strict=True))
    assert sum(by_value) < sum(by_order)
