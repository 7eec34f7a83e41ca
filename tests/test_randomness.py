import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from mpc_rr.randomness import Randomness, SeededRandomness, SystemRandomness


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
