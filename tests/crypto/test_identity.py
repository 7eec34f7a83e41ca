import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpc_rr.crypto.hpke import SEALING_OVERHEAD_BYTES
from mpc_rr.crypto.identity import Identity, PublicIdentity
from mpc_rr.randomness import SeededRandomness

ALICE, BOB = Identity(SeededRandomness(1)), Identity(SeededRandomness(2))


@given(st.binary(max_size=200), st.binary(max_size=50))
def test_only_the_reader_opens_and_only_under_the_same_info(plaintext, info):
    sealed = BOB.seal(ALICE.public.sealing, plaintext, info)
    assert ALICE.open(sealed, info) == plaintext
    assert BOB.open(sealed, info) is None
    assert ALICE.open(sealed, info + b"x") is None
    assert len(sealed) == len(plaintext) + SEALING_OVERHEAD_BYTES


@given(st.binary(max_size=100), st.integers(0, 10**6))
def test_a_changed_ciphertext_does_not_open(plaintext, place):
    sealed = bytearray(BOB.seal(ALICE.public.sealing, plaintext, b""))
    sealed[place % len(sealed)] ^= 1
    assert ALICE.open(bytes(sealed), b"") is None


def test_junk_does_not_open():
    for junk in (b"", b"x", bytes(47), bytes(48), bytes(1000)):
        assert ALICE.open(junk, b"") is None


def test_signatures_are_the_signers_own():
    signature = ALICE.sign(b"text")
    assert ALICE.public.verify(signature, b"text")
    assert not ALICE.public.verify(signature, b"other")
    assert not BOB.public.verify(signature, b"text")
    assert not ALICE.public.verify(b"short", b"text")


def test_what_was_found_good_does_not_vouch_for_another_cut():
    """Good signatures are remembered: signature and text must not run into each other."""
    signature = ALICE.sign(b"text")
    assert ALICE.public.verify(signature, b"text")
    assert not ALICE.public.verify(signature[:-1], signature[-1:] + b"text")
    assert not ALICE.public.verify(signature + b"t", b"ext")


def test_private_keys_never_show():
    stream = SeededRandomness(1)
    shown = repr(ALICE) + str(ALICE.__dict__)
    for _ in ("signing", "sealing", "hedge"):
        secret = stream.bytes(32)
        assert secret.hex() not in shown
        assert repr(secret) not in shown
    assert repr(ALICE) == f"Identity({ALICE.public.fingerprint})"


def test_public_keys_have_32_bytes():
    for keys in ((b"short", bytes(32)), (bytes(32), b"short"), (bytes(33), bytes(32))):
        with pytest.raises(ValueError, match="32 bytes"):
            PublicIdentity(*keys)
