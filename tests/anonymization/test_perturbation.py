"""Masks, what they leave to an attacker, and mapping back by rank."""

import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from anonymizing import EIGHT, PEOPLE
from hypothesis import given
from hypothesis import strategies as st

from mpc_rr.anonymization.perturbation import (
    Noise,
    NoPerturbation,
    RankSwap,
    Widened,
    ranks,
    read_perturbation,
    reverse_mapped,
    wide_enough,
)
from mpc_rr.anonymization.together import assignments_left, possible_values
from mpc_rr.errors import InputError
from mpc_rr.randomness import SeededRandomness
from mpc_rr.schema import Attribute

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


@given(
    st.lists(st.integers(0, 9), min_size=1, max_size=40),
    st.fractions(Fraction(1, 10), 100),
    st.integers(0, 999),
)
def test_swapping_stays_near_in_rank_and_its_candidates_hold_the_truth(values, percent, seed):
    own, everybody = values[0], np.array(values)
    mask = RankSwap(percent)
    masked = mask.draw(own, everybody, SeededRandomness(seed))
    assert masked in written_law(own, values, math.ceil(percent * len(values) / 100), 0)
    fitting = mask.candidates(masked, everybody)
    assert 1 <= fitting.values <= fitting.people <= len(values)


def test_all_noise_is_equally_likely():
    """Chi-square with 10 degrees of freedom; above 35.6 once in 10,000 seeds."""
    rng = SeededRandomness(3)
    drawn = [Noise(5).draw(0, np.array([0]), rng) for _ in range(5500)]
    counts = np.bincount(np.array(drawn) + 5, minlength=11)
    assert ((counts - 500) ** 2 / 500).sum() < 35.6


# ── What is told against what an attacker has ──────────────────────────────────────────────────


class Scripted:
    """Randomness that gives the outcomes it is told, and notes among how many each was drawn."""

    def __init__(self, outcomes):
        self.outcomes, self.moduli = outcomes, []

    def below(self, modulus, shape):
        assert shape == ()
        self.moduli.append(modulus)
        place = len(self.moduli) - 1
        return np.uint64(self.outcomes[place] if place < len(self.outcomes) else 0)


def law(mask, own, values):
    """The exact probability of each masked value: all outcomes of all draws are gone through."""
    found, unexplored = Counter(), [()]
    while unexplored:
        outcomes = unexplored.pop()
        rng = Scripted(outcomes)
        masked = mask.draw(own, values, rng)
        if len(rng.moduli) > len(outcomes):
            unexplored += [(*outcomes, k) for k in range(rng.moduli[len(outcomes)])]
        else:
            found[masked] += Fraction(1, math.prod(rng.moduli))
    assert sum(found.values()) == 1
    return found


def posteriors(mask, values):
    """For each masked value that can arise, how likely each value is to be hers (Bayes)."""
    people = Counter(values)
    laws = {own: law(mask, own, np.array(values)) for own in people}
    found = {}
    for masked in set().union(*laws.values()):
        joint = {own: people[own] * laws[own][masked] for own in people}
        found[masked] = {own: share / sum(joint.values()) for own, share in joint.items()}
    return found


SMALL_LISTS = [
    values
    for size in range(1, 6)
    for values in itertools.combinations_with_replacement((0, 1, 2, 4, 9), size)
]
SMALL_MASKS = [NoPerturbation(), Noise(1), Noise(3), RankSwap(20), RankSwap(40), RankSwap(100)]


@pytest.mark.parametrize("mask", SMALL_MASKS, ids=repr)
def test_told_is_what_bayes_leaves_and_enough_whatever_is_drawn(mask):
    """Exact: every list of up to five values out of five, every least number, every draw."""
    for values in SMALL_LISTS:
        everybody, people = np.array(values), Counter(values)
        left = {}
        for least in range(1, 5):
            used = wide_enough(mask, everybody, least)
            if used not in left:
                left[used] = posteriors(used, values)
            for masked, posterior in left[used].items():
                told = used.candidates(masked, everybody)
                assert told.values == 1 // max(posterior.values())
                assert told.people == 1 // max(p / people[own] for own, p in posterior.items())
                nothing_new = all(
                    p == Fraction(people[own], len(values)) for own, p in posterior.items()
                )
                assert told.values >= least or nothing_new


def written_law(own, values, reach, noise):
    """The same from the words in the docs: a neighbour's value, then noise, all equally likely."""
    ordered, size = sorted(values), min(2 * reach + 1, len(values))
    found = Counter()
    for rank in (rank for rank, value in enumerate(ordered) if value == own):
        first = min(max(rank - reach, 0), len(values) - size)
        for taken in ordered[first : first + size] if reach else [own]:
            for step in range(-noise, noise + 1):
                found[taken + step] += 1
    return Counter({m: Fraction(count, found.total()) for m, count in found.items()})


def test_masks_are_drawn_as_it_is_written():
    for values, (reach, noise) in itertools.product(SMALL_LISTS, [(0, 2), (1, 0), (1, 1), (2, 3)]):
        mask = Widened(Noise(noise), reach)
        for own in set(values):
            assert law(mask, own, np.array(values)) == written_law(own, values, reach, noise)


@pytest.mark.parametrize("mask", SMALL_MASKS, ids=repr)
def test_no_narrower_swap_would_leave_enough(mask):
    for values in SMALL_LISTS:
        everybody = np.array(values)
        for least in range(2, 5):
            used = wide_enough(mask, everybody, least)
            if isinstance(used, Widened):
                narrower = Widened(NoPerturbation(), used.neighbours - 1)
                worst = max(max(p.values()) for p in posteriors(narrower, values).values())
                assert 1 // worst < least
                assert used.neighbours > mask.reach(len(values))


def test_a_width_does_not_betray_the_one_who_needs_it():
    """Attack N7: the respondent of 90 was told 11 candidates, and was 90 at 0.999 to an attacker.

    The mask was widened because nobody was near her, so that a wide mask meant 90.
    """
    ages = [*range(20, 30), 90]
    used = wide_enough(read_perturbation("noise:5", AGE), np.array(ages), 5)
    assert used == Widened(Noise(5), 4)
    left = posteriors(used, ages)
    assert max(max(posterior.values()) for posterior in left.values()) == Fraction(1, 5)
    hers = [masked for masked, posterior in left.items() if posterior[90]]
    assert {used.candidates(masked, np.array(ages)).values for masked in hers} >= {5}
    assert max(left[masked][90] for masked in hers) == Fraction(1, 5)


def test_a_mask_without_candidates_asked_for_is_as_chosen_and_told_as_it_is():
    ages = np.array([*range(20, 30), 90])
    assert wide_enough(Noise(5), ages, 1) == Noise(5)
    assert Noise(5).candidates(90, ages).values == 1
    assert Noise(5).candidates(25, ages).values == 10


def test_a_mask_that_leaves_enough_is_not_widened():
    values = np.arange(11)
    assert wide_enough(RankSwap(50), values, 5) == RankSwap(50)
    assert wide_enough(RankSwap(10), values, 5) == Widened(RankSwap(10), 4)


def test_a_value_of_many_is_one_candidate():
    """Who knows the list alone guesses it with 2 in 3, so no mask leaves two."""
    values = np.array([1, 1, 2])
    used = wide_enough(NoPerturbation(), values, 2)
    assert {used.candidates(masked, values).values for masked in (1, 2)} == {1}
    assert posteriors(used, [1, 1, 2])[2] == {1: Fraction(2, 3), 2: Fraction(1, 3)}


def test_more_candidates_than_there_are_values_means_a_swap_among_all():
    values = np.array([10, 20, 30, 40, 50, 60, 70])
    used = wide_enough(NoPerturbation(), values, 50)
    assert {used.candidates(int(v), values).values for v in values} == {7}


@given(
    st.lists(st.integers(0, 3), min_size=1, max_size=20),
    st.sampled_from(["none", "swap:1", "swap:30"]),
    st.integers(1, 6),
    st.integers(0, 999),
)
def test_a_masked_category_stays_one_however_it_is_widened(values, words, least, seed):
    """Attack N8: no mask was widened to noise, which left the range; its owner was thrown out."""
    mood = Attribute("mood", "ordinal", ("low", "middle", "high", "top"))
    everybody = np.array(values)
    used = wide_enough(read_perturbation(words, mood), everybody, least)
    for own in set(values):
        assert used.draw(own, everybody, SeededRandomness(seed)) in values


def test_a_percentage_is_exact():
    """In floating point, 16.1 · 1000 / 100 is a little more than 161."""
    assert read_perturbation("swap:16.1", AGE).reach(1000) == 161


def test_a_value_that_the_mask_cannot_give_has_no_candidates():
    assert Noise(1).candidates(50, np.array([1, 2])).values == 0


@pytest.mark.parametrize(
    ("words", "attribute", "says"),
    [
        ("noise:5", ZIP, "noise needs numbers; 'zip' is nominal"),
        ("swap:5", ZIP, "needs an order"),
        ("swap:0", AGE, "between 0 and 100"),
        ("swap:101", AGE, "between 0 and 100"),
        ("noise:0", AGE, "at least one step"),
        ("noise:nan", AGE, "is not a number"),
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
