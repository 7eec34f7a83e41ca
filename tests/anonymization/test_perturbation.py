"""Masks, what they leave to an attacker, and mapping back by rank."""

import itertools
import math

import numpy as np
import pytest
from anonymizing import EIGHT, PEOPLE
from hypothesis import given
from hypothesis import strategies as st

from mpc_rr.anonymization.perturbation import (
    Noise,
    NoPerturbation,
    RankSwap,
    assignments_left,
    enough_candidates,
    possible_values,
    ranks,
    read_perturbation,
    reverse_mapped,
)
from mpc_rr.errors import InputError
from mpc_rr.randomness import SeededRandomness

ZIP, AGE, SALARY = EIGHT.attributes
SEED = bytes(32)
AGES, SALARIES = [p[1] for p in PEOPLE], [p[2] for p in PEOPLE]
MASKED_AGES = [29, 24, 18, 19, 51, 50, 52, 49]
MASKED_SALARIES = [37306, 27765, 18951, 28151, 36879, 42631, 45585, 40390]
NAMES = [f"party-{k}" for k in range(1, 9)]


def test_the_worked_example_of_the_paper_comes_out():
    ages = reverse_mapped(MASKED_AGES, AGES, NAMES, SEED, "age")
    salaries = reverse_mapped(MASKED_SALARIES, SALARIES, NAMES, SEED, "salary")
    assert ages == [29, 28, 21, 23, 50, 49, 55, 47]
    assert salaries == [40000, 27000, 20000, 30000, 35000, 45000, 48000, 43000]


def test_a_public_width_leaves_few_assignments_in_the_worked_example():
    """ERRATA: Proposition 1 fails if the width of the mask is known."""
    assert assignments_left(MASKED_SALARIES, SALARIES, 5000) == 8
    fits = possible_values(MASKED_SALARIES, SALARIES, 5000)
    assert min(len(values) for values in fits) == 1
    counted = [Noise(5000).candidates(m, np.array(SALARIES)).values for m in MASKED_SALARIES]
    assert min(counted) == 1


@given(st.lists(st.integers(-50, 50), min_size=1, max_size=30), st.data())
def test_the_release_is_a_permutation_of_the_original_values(values, data):
    masked = data.draw(st.lists(st.integers(-60, 60), min_size=len(values), max_size=len(values)))
    names = [f"p{k}" for k in range(len(values))]
    released = reverse_mapped(masked, values, names, SEED, "x")
    assert sorted(released) == sorted(values)
    for (m1, r1), (m2, r2) in itertools.combinations(zip(masked, released, strict=True), 2):
        if m1 < m2:
            assert r1 <= r2


def test_ties_are_broken_by_chance_and_always_alike():
    masked, names = [5] * 6, [f"p{k}" for k in range(6)]
    orders = {tuple(ranks(masked, names, bytes([s]) * 32, "x")) for s in range(40)}
    assert len(orders) > 20
    assert ranks(masked, names, SEED, "x") == ranks(masked, names, SEED, "x")
    assert ranks(masked, names, SEED, "x") != ranks(masked, names, SEED, "y")


def test_who_left_after_giving_a_value_leaves_no_gap_at_an_end():
    values, masked = list(range(10)), [3, 1, 2, 5, 4]
    released = reverse_mapped(masked, values, list("abcde"), SEED, "x")
    assert released == [5, 1, 3, 9, 7]


@given(
    st.lists(st.integers(0, 12), min_size=1, max_size=6), st.integers(0, 5), st.integers(0, 10**6)
)
def test_possible_values_are_those_of_some_assignment(values, width, seed):
    rng = np.random.default_rng(seed)
    masked = [value + int(rng.integers(-width, width + 1)) for value in rng.permutation(values)]
    found = possible_values(masked, values, width)
    expected = [set() for _ in masked]
    count = 0
    for order in itertools.permutations(range(len(values))):
        if all(abs(values[v] - m) <= width for v, m in zip(order, masked, strict=True)):
            count += 1
            for person, v in enumerate(order):
                expected[person].add(values[v])
    assert found == expected
    assert assignments_left(masked, values, width) == count


def test_a_mask_that_was_wider_than_believed_fits_nothing():
    assert possible_values([0, 100], [0, 10], 5) is None


@given(st.integers(0, 100), st.integers(1, 40), st.integers(0, 10**6))
def test_noise_stays_within_its_width_and_its_candidates_hold_the_truth(own, width, seed):
    rng = SeededRandomness(seed)
    values = np.array([own, *rng.below(101, (20,)).tolist()])
    masked = Noise(width).draw(own, values, rng)
    assert abs(masked - own) <= width
    left = Noise(width).candidates(masked, values)
    assert 1 <= left.values <= left.people <= 21


@given(st.lists(st.integers(0, 9), min_size=1, max_size=40), st.floats(1, 100), st.integers(0, 999))
def test_swapping_stays_near_in_rank_and_its_candidates_hold_the_truth(values, percent, seed):
    own, everybody = values[0], np.array(values)
    mask = RankSwap(percent)
    masked = mask.draw(own, everybody, SeededRandomness(seed))
    assert masked in values
    ordered, reach = sorted(values), math.ceil(percent * len(values) / 100)
    near = [r for r in range(len(values)) if ordered[r] == own]
    reachable = {
        ordered[t] for r in near for t in range(max(r - reach, 0), min(r + reach + 1, len(values)))
    }
    assert masked in reachable
    fitting = mask.candidates(masked, everybody)
    assert fitting.values >= 1
    assert fitting.people >= min(reach + 1, len(values))


def test_all_noise_is_equally_likely():
    """Chi-square with 10 degrees of freedom; above 35.6 once in 10,000 seeds."""
    rng = SeededRandomness(3)
    drawn = [Noise(5).draw(0, np.array([0]), rng) for _ in range(5500)]
    counts = np.bincount(np.array(drawn) + 5, minlength=11)
    assert ((counts - 500) ** 2 / 500).sum() < 35.6


@pytest.mark.parametrize("words", ["none", "noise:1", "swap:1"])
@given(least=st.integers(1, 8), seed=st.integers(0, 999))
def test_a_mask_is_widened_until_enough_values_fit(words, least, seed):
    values = np.array([10, 20, 30, 40, 50, 60, 70, 80])
    mask = read_perturbation(words, SALARY)
    masked, used, left = enough_candidates(mask, 40, values, least, SeededRandomness(seed))
    assert left.values >= least
    assert used.candidates(masked, values) == left


def test_more_candidates_than_there_are_values_means_all():
    values = np.array([1, 1, 2])
    _, _, left = enough_candidates(NoPerturbation(), 1, values, 50, SeededRandomness(1))
    assert left.values == 2


@pytest.mark.parametrize(
    ("words", "attribute", "says"),
    [
        ("noise:5", ZIP, "noise needs numbers; 'zip' is nominal"),
        ("swap:5", ZIP, "needs an order"),
        ("swap:0", AGE, "between 0 and 100"),
        ("swap:101", AGE, "between 0 and 100"),
        ("noise:0", AGE, "at least one step"),
        ("noise:nan", AGE, "at least one step"),
        ("noise:1e30", AGE, "no wider than"),
        ("noise:lots", AGE, "'lots' is not a number"),
        ("none:3", AGE, "is not none, noise:WIDTH or swap:PERCENT"),
        ("blur", AGE, "is not none, noise:WIDTH or swap:PERCENT"),
    ],
)
def test_a_mask_that_makes_no_sense_is_refused(words, attribute, says):
    with pytest.raises(InputError, match=says):
        read_perturbation(words, attribute)


def test_counting_assignments_is_for_few_people():
    with pytest.raises(InputError, match="more than 20"):
        assignments_left([0] * 21, [0] * 21, 1)


def test_a_small_swap_among_few_still_reaches_a_neighbour():
    values = np.array([10, 20, 30, 40, 50, 60, 70, 80])
    drawn = {RankSwap(10).draw(40, values, SeededRandomness(seed)) for seed in range(40)}
    assert drawn == {30, 40, 50}
