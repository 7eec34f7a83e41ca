import json
import math
from fractions import Fraction
from itertools import accumulate, combinations, permutations
from pathlib import Path

import drawing
import numpy as np
import pytest
from drawing import Script, ours, theirs, words
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.stats import chisquare

from mpc_rr.randomness import Randomness, SeededRandomness, SystemRandomness

VECTORS = json.loads((Path(__file__).parent / "vectors" / "draws.json").read_text())
ROOT = Path(__file__).parent.parent


class Counting(Randomness):
    """All bytes once: 0, 1, …, 255, 0, 1, …"""

    def __init__(self):
        self.position = 0

    def bytes(self, count):
        start, self.position = self.position, self.position + count
        return bytes((start + i) % 256 for i in range(count))

    def fork(self, label):
        return self


@given(st.integers(1, 2**40), st.integers(0, 50))
def test_numbers_are_below_the_modulus(modulus, count):
    drawn = SeededRandomness(1).below(modulus, (count,))
    assert drawn.shape == (count,)
    assert count == 0 or int(drawn.max()) < modulus


@pytest.mark.parametrize("modulus", [3, 51, 101, 200, 256])
def test_no_residue_is_favoured(modulus):
    """Over all equally likely bytes that are kept, every residue comes exactly equally often."""
    kept = 256 - 256 % modulus
    drawn = Counting().below(modulus, (kept,))
    assert np.array_equal(np.bincount(drawn.astype(int)), np.full(modulus, kept // modulus))


@pytest.mark.parametrize("source", [SystemRandomness(), SeededRandomness(3)])
def test_residues_are_uniform(source):
    """False alarm: 1 in a million for the system's randomness."""
    counts = np.bincount(source.below(101, (101_000,)).astype(int), minlength=101)
    assert chisquare(counts).pvalue > 1e-6


def test_the_same_seed_gives_the_same_bytes_for_ever():
    stream = SeededRandomness(7)
    first = stream.bytes(10) + stream.bytes(6)
    assert first.hex() == "2ab80f04666450a26d00e288845b9e34"
    assert SeededRandomness(8).bytes(16) != first


def test_forks_do_not_depend_on_what_was_drawn():
    one, other = SeededRandomness(1), SeededRandomness(1)
    one.bytes(100)
    assert one.fork("a").bytes(16) == other.fork("a").bytes(16)
    assert other.fork("a").bytes(16) != other.fork("b").bytes(16)


def test_a_seed_does_not_show():
    assert "7" not in repr(SeededRandomness(7))


def test_a_modulus_must_be_positive():
    with pytest.raises(ValueError, match="positive"):
        SystemRandomness().below(0, (1,))


def test_a_modulus_may_have_all_64_bits_and_no_more():
    drawn = Script(b"\xff" * 200).below(1 << 64, (2,))
    assert drawn.tolist() == [2**64 - 1] * 2
    with pytest.raises(ValueError, match="at most 2\\^64"):
        SystemRandomness().below((1 << 64) + 1, (1,))


# ── Exact draws ────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("case", VECTORS, ids=lambda case: f"{case['draw']}")
@pytest.mark.parametrize("draw", [ours, theirs])
def test_the_same_bytes_give_the_same_draws_for_ever(draw, case):
    """By the package, and by a second implementation of ``docs/draws.md``."""
    rng = Script(bytes.fromhex(case["bytes"]))
    assert draw(rng, case) == case["drawn"]
    assert rng.position == len(rng.stream)


fractions_of_one = st.one_of(
    st.floats(0, 1),
    st.floats(-1000, 0).map(lambda x: 2.0**x),
    st.sampled_from([0.0, 1.0, 5e-324, 1 - 2.0**-53, 2.0**-64, 2.0**-65]),
)


@given(fractions_of_one, st.integers(0, 3), st.integers(-2, 2), st.binary(min_size=160))
def test_a_draw_says_yes_just_below_its_probability_and_no_from_there_on(chance, far, off, more):
    """The bytes follow the probability's own binary places for a while: the hardest there are."""
    known = 64 * (far + 1)
    place = math.floor(Fraction(chance) * 2**known) + off
    assume(0 <= place < 2**known)
    digits = [place >> shift & (2**64 - 1) for shift in range(known - 64, -1, -64)]
    rng = Script(words(*digits) + more)
    drawn = bool(rng.bernoulli(chance, ()))
    taken = Script(rng.stream[: rng.position])
    low, width = Fraction(0), Fraction(1)
    while taken.position < rng.position:
        assert low < chance < low + width or not taken.position
        width /= 2**64
        low += taken.number(8) * width
    assert low + width <= chance if drawn else low >= chance


def test_probabilities_may_differ_from_draw_to_draw():
    chances = np.array([[0.0, 1.0, 2.0**-64], [2.0**-64, 2.0**-65, 0.5]])
    stream = words(0, 2**64 - 1, 0, 1, 0, 2**63) + words(2**63 - 1)
    rng = Script(stream)
    assert rng.bernoulli(chances, (2, 3)).tolist() == [[False, True, True], [False, True, False]]
    assert rng.position == len(stream)


@pytest.mark.parametrize("chance", [-0.1, 1.1, math.nan, [0.5, 2.0]])
def test_what_is_no_probability_is_refused(chance):
    with pytest.raises(ValueError, match="between 0 and 1"):
        SeededRandomness(1).bernoulli(chance, (2,))


@pytest.mark.parametrize("chance", [0.3, 1e-3])
def test_yes_comes_as_often_as_it_should(chance):
    """Five standard errors: a false alarm once in 1.7 million."""
    n = 1_000_000
    share = SeededRandomness(11).bernoulli(chance, (n,)).mean()
    assert abs(share - chance) < 5 * math.sqrt(chance * (1 - chance) / n)


weight_lists = st.one_of(
    st.lists(st.floats(0, 1e300), min_size=1, max_size=6),
    st.lists(st.sampled_from([0.0, 5e-324, 1e-20, 0.1, 1 / 3, 1.0, 1e308]), min_size=1, max_size=6),
    st.lists(st.integers(0, 2**200), min_size=1, max_size=6),
    st.lists(st.integers(0, 4), min_size=1, max_size=6),
)


@given(weight_lists, st.integers(0, 5), st.integers(0, 3), st.integers(-2, 2), st.data())
def test_a_category_is_drawn_from_its_own_interval(weights, near, far, off, data):
    """At the very ends of the intervals, too; and no word is taken that was not needed."""
    assume(sum(weights) > 0)
    limits = [Fraction(0), *accumulate(map(Fraction, weights))]
    known = 64 * (far + 1)
    place = math.floor(limits[near % len(limits)] / limits[-1] * 2**known) + off
    assume(0 <= place < 2**known)
    digits = [place >> shift & (2**64 - 1) for shift in range(known - 64, -1, -64)]
    rng = Script(words(*digits) + data.draw(st.binary(min_size=160)))
    given_as = weights if isinstance(weights[0], int) else np.array(weights)
    drawn = int(rng.categorical(given_as, ()))
    other = Script(rng.stream)
    assert drawing.categorical(other, [Fraction(weight) for weight in weights]) == drawn
    assert other.position == rng.position


def test_draws_that_stay_open_take_their_next_words_in_turn():
    third = 2**64 // 3
    stream = words(third, 0, third, 2 * third) + words(third - 1, third + 1, 5)
    rng = Script(stream)
    assert rng.categorical([1, 1, 1], (4,)).tolist() == [0, 0, 1, 1]
    assert rng.position == len(stream)


@pytest.mark.parametrize("size", [2, 50, 20_000])
def test_categories_come_as_often_as_they_should(size):
    """χ² over 1,000,000 draws; a false alarm once in 10,000."""
    weights = np.random.default_rng(size).random(size)
    counts = np.bincount(SeededRandomness(3).categorical(weights, (1_000_000,)), minlength=size)
    assert chisquare(counts, weights / weights.sum() * 1_000_000).pvalue > 1e-4


def test_floats_never_decide_what_they_cannot_know():
    """100,000 cells: the ends of the intervals as words, just where rounding could mislead."""
    weights = np.random.default_rng(1).random(100_000) ** 20
    limits = list(accumulate(map(Fraction, weights.tolist())))
    cells = [*range(0, 99_999, 997), 99_998]
    ends = [math.floor(limits[cell] / limits[-1] * 2**64) for cell in cells]
    more = bytes(8 * len(cells))  # small cells need a second word, here 0
    below = Script(words(*(end - 1 for end in ends)) + more).categorical(weights, (len(cells),))
    above = Script(words(*(end + 1 for end in ends)) + more).categorical(weights, (len(cells),))
    assert all(drawn <= cell for drawn, cell in zip(below.tolist(), cells, strict=True))
    assert all(drawn > cell for drawn, cell in zip(above.tolist(), cells, strict=True))


@pytest.mark.parametrize(
    "weights", [[], [0, 0], [1, -1], np.array([1.0, math.nan]), np.array([math.inf]), np.eye(2)]
)
def test_weights_that_are_none(weights):
    with pytest.raises(ValueError, match="weight"):
        SeededRandomness(1).categorical(weights, (1,))


def test_sets_know_no_names():
    """Whatever the keys, other names for the numbers give the same set under other names.

    So all sets are equally likely, as all orders of independent keys are; also when a row with a
    tie is drawn again.
    """
    keys = [[3, 1, 4, 1], [2, 2, 2, 9], [5, 2, 8, 7]]
    for names in permutations(range(4)):
        stream = b"".join(row[name].to_bytes(4, "little") for row in keys for name in names)
        drawn = Script(stream).subsets(4, 1, 1)[0]
        assert {names[number] for number in drawn.tolist()} == {1}


@pytest.mark.parametrize(("size", "chosen"), [(5, 2), (6, 3), (4, 1)])
def test_all_sets_come_equally_often(size, chosen):
    """χ² over 60,000 draws; a false alarm once in 10,000."""
    drawn = SeededRandomness(5).subsets(size, chosen, 60_000)
    every = {members: number for number, members in enumerate(combinations(range(size), chosen))}
    counts = np.bincount([every[tuple(row)] for row in drawn.tolist()], minlength=len(every))
    assert chisquare(counts).pvalue > 1e-4


def test_more_than_all_cannot_be_chosen():
    with pytest.raises(ValueError, match="6 of 5"):
        SeededRandomness(1).subsets(5, 6, 1)


def test_an_experiment_seeds_a_source_of_its_own():
    one, other = (SeededRandomness.from_generator(np.random.default_rng(1)) for _ in range(2))
    rng = np.random.default_rng(1)
    first, second = (SeededRandomness.from_generator(rng).bytes(8) for _ in range(2))
    assert one.bytes(8) == other.bytes(8) == first != second


def test_no_protocol_draws_from_floats():
    protocols = list((ROOT / "mpc_rr" / "protocols").rglob("*.py"))
    assert len(protocols) > 10
    assert [path.name for path in protocols if ".uniform" in path.read_text()] == []
