"""What one share too few, and one mask too thin, would give away; and what is no share at all."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpc_rr.crypto import shamir
from mpc_rr.crypto.admission import SigningKey, admitted
from mpc_rr.crypto.merkle import MerkleTree, root_of
from mpc_rr.crypto.pairwise import mask, word
from mpc_rr.randomness import SeededRandomness


class Remembering(SeededRandomness):
    """Keeps what it gave last."""

    def bytes(self, count):
        self.given = super().bytes(count)
        return self.given


@given(st.integers(1, 12), st.integers(0, 4), st.integers(0, 1000))
def test_every_coefficient_of_a_shared_secret_is_drawn_on_its_own(threshold, more, seed):
    """So all t − 1 of them are uniform, and t − 1 shares go with any secret."""
    rng = Remembering(seed)
    secret = shamir.random_secret(rng)
    shares = shamir.split(secret, threshold, threshold + more, rng)
    drawn = [rng.given[k : k + 64] for k in range(0, len(rng.given), 64)]
    coefficients = [int.from_bytes(part) for part in (secret, *drawn)]
    assert len(coefficients) == threshold
    for point, share in enumerate(shares, start=1):
        value = sum(c * point**k for k, c in enumerate(coefficients))
        assert int.from_bytes(share) == value % shamir.PRIME


@given(st.integers(1, 8), st.integers(1, 8), st.integers(0, 1000))
def test_shares_that_belong_to_no_polynomial_give_no_secret(threshold, spare, seed):
    """Random words are within reach of a polynomial once in 2^100 times at most."""
    rng = SeededRandomness(seed)
    told = {point: shamir.random_secret(rng) for point in range(1, threshold + spare + 1)}
    assert shamir.corrected(told, threshold) is None


@pytest.mark.parametrize("threshold", [0, -1, 4])
def test_no_secret_is_shared_among_nobody_or_more_than_there_are(threshold):
    with pytest.raises(ValueError, match=f"a threshold of {threshold} does not fit 3 shares"):
        shamir.split(bytes(32), threshold, 3, SeededRandomness(0))


@pytest.mark.parametrize("bits", [1, 8, 9, 16, 17, 32, 33, 40, 64])
def test_a_mask_covers_every_bit_of_a_word(bits):
    """Each bit is set in half of 4,000 words, within six standard errors: once in 10^6 runs."""
    words = mask(b"s" * 16, 4000, bits)
    assert words.dtype == word(bits)
    for bit in range(bits):
        share = np.mean((words >> np.array(bit, words.dtype)) & np.array(1, words.dtype))
        assert abs(share - 0.5) < 6 * 0.5 / np.sqrt(4000)


def test_a_place_before_the_first_is_outside_the_list():
    proof = MerkleTree([b"a", b"b"]).proof([0])
    for places in ({-1: b"a"}, {-2: b"a", 0: b"a"}, {}):
        with pytest.raises(ValueError, match="outside"):
            root_of(places, 2, proof)


def test_a_person_is_known_by_a_key_and_by_nothing_shorter():
    """Even if the registrar has signed it."""
    registrar = SigningKey.draw(SeededRandomness(1))
    for person in (b"", b"k" * 31, b"k" * 33):
        assert not admitted(registrar.public, bytes(32), person, registrar.admit(bytes(32), person))
