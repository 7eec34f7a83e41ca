"""Our own half of HPKE, sealing, against the vectors of the RFC and the library's other half."""

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st

from mpc_rr.crypto import hpke

RFC_9180_A_2_1 = {
    "info": "4f6465206f6e2061204772656369616e2055726e",
    "ikmE": "909a9b35d3dc4713a5e72a4da274b55d3d3821a37e5d099e74a647db583a904b",
    "skEm": "f4ec9b33b792c372c1d2c2063507b684ef925b8c75a42dbcbf57d63ccd381600",
    "pkEm": "1afa08d3dec047a643885163f1180476fa7ddb54c6a8029ea33f95796bf2ac4a",
    "pkRm": "4310ee97d88cc1f088a5576c77ab0cf5c3ac797f3d95139c6c84b5429c59662a",
    "skRm": "8057991eef8f1f1af18f4a9491d16a1ce333f695d4db8e38da75975c4478e0fb",
    "pt": "4265617574792069732074727574682c20747275746820626561757479",
    "aad": "436f756e742d30",
    "ct": "1c5250d8034ec2b784ba2cfd69dbdb8af406cfe3ff938e131f0def8c"
    "8b60b4db21993c62ce81883d2dd1b51a28",
}
"""DHKEM(X25519, HKDF-SHA256), HKDF-SHA256, ChaCha20Poly1305, base mode, sequence number 0."""
VECTOR = {name: bytes.fromhex(value) for name, value in RFC_9180_A_2_1.items()}
READER = X25519PrivateKey.from_private_bytes(VECTOR["skRm"])
HEDGE = hpke.hedge(bytes(range(32)))
PUBLIC = VECTOR["pkRm"]


def test_the_ephemeral_key_is_that_of_the_rfc():
    ephemeral = hpke.derive_key(VECTOR["ikmE"])
    assert ephemeral.private_bytes_raw() == VECTOR["skEm"]
    assert ephemeral.public_key().public_bytes_raw() == VECTOR["pkEm"]


def test_the_ciphertext_is_that_of_the_rfc():
    ephemeral = hpke.derive_key(VECTOR["ikmE"])
    sealed = hpke.seal_with(ephemeral, PUBLIC, VECTOR["pt"], VECTOR["info"], VECTOR["aad"])
    assert sealed == VECTOR["pkEm"] + VECTOR["ct"]


@given(st.binary(max_size=300), st.binary(max_size=80))
def test_the_library_opens_what_we_seal(plaintext, info):
    sealed = hpke.seal(HEDGE, PUBLIC, plaintext, info)
    assert hpke.open_sealed(READER, sealed, info) == plaintext
    assert len(sealed) == len(plaintext) + hpke.SEALING_OVERHEAD_BYTES


@given(st.binary(max_size=50), st.binary(max_size=50))
def test_the_same_is_sealed_in_the_same_bytes(plaintext, info):
    assert hpke.seal(HEDGE, PUBLIC, plaintext, info) == hpke.seal(HEDGE, PUBLIC, plaintext, info)


sealings = st.tuples(st.sampled_from((1, 2)), st.binary(max_size=3), st.binary(max_size=3))


@given(sealings, sealings)
def test_whatever_differs_has_another_ephemeral_key(one, other):
    """Else two ciphertexts would be under one key and nonce. Parts must not run into each other."""
    keys = {k: X25519PrivateKey.from_private_bytes(bytes([k]) * 32) for k in (1, 2)}
    public = {k: key.public_key().public_bytes_raw() for k, key in keys.items()}
    first = hpke.seal(HEDGE, public[one[0]], one[1], one[2])
    second = hpke.seal(HEDGE, public[other[0]], other[1], other[2])
    assert (first[:32] == second[:32]) == (one == other)


def test_another_sender_has_another_ephemeral_key():
    other = hpke.hedge(bytes(32))
    sealed = hpke.seal(HEDGE, PUBLIC, b"same", b""), hpke.seal(other, PUBLIC, b"same", b"")
    assert sealed[0][:32] != sealed[1][:32]
