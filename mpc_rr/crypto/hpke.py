"""Sealing by HPKE base mode (RFC 9180) with X25519, HKDF-SHA256 and ChaCha20-Poly1305, hedged.

The sender's ephemeral key is RFC 9180's ``DeriveKeyPair`` of an HMAC, under a secret of the sender
that the operating system drew, over everything that is sealed: to whom, what, and under which
``info`` (as RFC 6979 does for signatures). So the same sender, sealing the same, writes the same
bytes: a message can be made again after a crash, and a simulation is one to the last byte. If
anything differs, the ephemeral key is another one. Nothing rests on randomness at the moment of
sealing.

Opening is the library's. Sealing is written out here because the library draws the ephemeral key
itself (``docs/architecture.md``); the tests hold it against the vectors of the RFC, and every
ciphertext against the library.
"""

import hmac

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.hpke import AEAD, KDF, KEM, Suite

SUITE = Suite(KEM.X25519, KDF.HKDF_SHA256, AEAD.CHACHA20_POLY1305)
SEALING_OVERHEAD_BYTES = 32 + 16  # the encapsulated key and the tag
SECRET_BYTES = 32

_KEM_ID = b"KEM" + (0x0020).to_bytes(2)
_SUITE_ID = b"HPKE" + (0x0020).to_bytes(2) + (0x0001).to_bytes(2) + (0x0003).to_bytes(2)
_VERSION = b"HPKE-v1"


def _extract(suite: bytes, salt: bytes, label: bytes, material: bytes) -> bytes:
    """LabeledExtract (RFC 9180 §4)."""
    return hmac.digest(salt or bytes(32), _VERSION + suite + label + material, "sha256")


def _expand(suite: bytes, secret: bytes, label: bytes, info: bytes, length: int) -> bytes:
    """LabeledExpand (RFC 9180 §4); one block of SHA-256 is enough for all of ours."""
    labelled = length.to_bytes(2) + _VERSION + suite + label + info
    return hmac.digest(secret, labelled + b"\1", "sha256")[:length]


def derive_key(material: bytes) -> X25519PrivateKey:
    """DeriveKeyPair (RFC 9180 §7.1.3)."""
    secret = _extract(_KEM_ID, b"", b"dkp_prk", material)
    return X25519PrivateKey.from_private_bytes(_expand(_KEM_ID, secret, b"sk", b"", 32))


def seal_with(
    ephemeral: X25519PrivateKey, reader: bytes, plaintext: bytes, info: bytes, aad: bytes = b""
) -> bytes:
    """SealBase (RFC 9180 §6.1) with this ephemeral key, which must never seal anything else."""
    public = X25519PublicKey.from_public_bytes(reader)
    encapsulated = ephemeral.public_key().public_bytes_raw()
    secret = _extract(_KEM_ID, b"", b"eae_prk", ephemeral.exchange(public))
    shared = _expand(_KEM_ID, secret, b"shared_secret", encapsulated + reader, 32)
    # The key schedule of base mode (§5.1): mode 0, no pre-shared key.
    psk_id = _extract(_SUITE_ID, b"", b"psk_id_hash", b"")
    context = b"\0" + psk_id + _extract(_SUITE_ID, b"", b"info_hash", info)
    secret = _extract(_SUITE_ID, shared, b"secret", b"")
    key = _expand(_SUITE_ID, secret, b"key", context, 32)
    nonce = _expand(_SUITE_ID, secret, b"base_nonce", context, 12)
    return encapsulated + ChaCha20Poly1305(key).encrypt(nonce, plaintext, aad)


def hedge(secret: bytes) -> hmac.HMAC:
    """What hedges a sender's sealing, from a secret; the secret cannot be read from it."""
    return hmac.new(secret, b"mpc-rr ephemeral\0", "sha256")


def seal(hedge: hmac.HMAC, reader: bytes, plaintext: bytes, info: bytes) -> bytes:
    """What only the owner of the key ``reader`` can open, and only under ``info``."""
    over_all = hedge.copy()
    over_all.update(b"".join(len(part).to_bytes(8) + part for part in (reader, info, plaintext)))
    return seal_with(derive_key(over_all.digest()), reader, plaintext, info)


def open_sealed(key: X25519PrivateKey, ciphertext: bytes, info: bytes) -> bytes | None:
    """What was sealed to this key under ``info``, or None if it does not open."""
    try:
        return SUITE.decrypt(ciphertext, key, info=info)
    except (InvalidTag, ValueError):
        return None
