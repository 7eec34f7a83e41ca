"""Keys that two parties share, and the masks and locks made of them.

Two X25519 keys agree on a secret; HKDF-SHA256 makes of it, for each sum anew, what the sum needs: a
seed for the mask of the two, and a key for each direction in which they send each other shares.
Masks are AES-128-CTR key streams; locks are ChaCha20-Poly1305. Each key is used for one message
only, so nonces are zero.

Whoever brings a key proves to the coordinator that it is its own: by a MAC under the secret that
this key and the coordinator's share (static Diffie-Hellman proof of possession, RFC 6955 §4, with
HKDF and HMAC of SHA-256). Only these two can make it, so it convinces nobody else.
"""

import functools
import hashlib
import hmac
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.ciphers.algorithms import AES128
from cryptography.hazmat.primitives.ciphers.modes import CTR
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from mpc_rr.randomness import Randomness

SEED_BYTES = 16
TAG_BYTES = 16
FIELD = 2**255 - 19
"""Of the coordinates of X25519: whatever is not below it, is another way to write one."""
_NONCE, _COUNTER = bytes(12), CTR(bytes(16))
_HASH = SHA256()
_PROBE = X25519PrivateKey.from_private_bytes(bytes(31) + b"\1")

Mask = npt.NDArray[np.unsignedinteger]


class MaskKey:
    """A party's private key for masks. It signs nothing and opens nothing else."""

    def __init__(self, rng: Randomness) -> None:
        self._private = X25519PrivateKey.from_private_bytes(rng.bytes(32))
        self.public = self._private.public_key().public_bytes_raw()

    def __repr__(self) -> str:
        return "MaskKey(…)"

    def shared_secret(self, public: bytes) -> bytes:
        """The secret shared with the owner of a public key; ``ValueError`` if it is no key."""
        return shared_secret(self._private, public)

    def possession(self, verifier: bytes, statement: bytes) -> bytes:
        """Prove to the owner of another key that this one is ours."""
        return possession(self.shared_secret(verifier), statement)


def shared_secret(private: X25519PrivateKey, public: bytes) -> bytes:
    """The secret that two X25519 keys share; ``ValueError`` if the public one is no proper key."""
    return private.exchange(X25519PublicKey.from_public_bytes(public))


@functools.lru_cache(maxsize=65536)
def is_key(public: bytes) -> bool:
    """Whether one can agree with the owner of this public key: some 32 bytes are no proper key.

    Nor is one that is written in another way than usual: two keys that differ are two.
    """
    if int.from_bytes(public, "little") >= FIELD:
        return False
    try:
        shared_secret(_PROBE, public)
    except ValueError:
        return False
    return True


def derive(agreed: bytes, purpose: bytes, length: int) -> bytes:
    """Key material for one purpose from an agreed secret."""
    return HKDF(algorithm=_HASH, length=length, salt=None, info=purpose).derive(agreed)


def possession(agreed: bytes, statement: bytes) -> bytes:
    """What two who share a secret can make, and nobody else: the proof of having either key."""
    return hmac.digest(derive(agreed, b"mpc-rr possession v2\0", 32), statement, "sha256")


def seed_of(secret: bytes) -> bytes:
    """The seed of a mask from a 32-byte secret of one's own."""
    return hashlib.sha256(b"mpc-rr self mask\0" + secret).digest()[:SEED_BYTES]


def word(bits: int) -> np.dtype[np.unsignedinteger]:
    """The smallest unsigned type that holds so many bits."""
    for dtype in ("<u1", "<u2", "<u4", "<u8"):
        if np.dtype(dtype).itemsize * 8 >= bits:
            return np.dtype(dtype)
    raise ValueError(f"a sum of {bits} bits is too large")


def mask(seed: bytes, cells: int, bits: int) -> Mask:
    """The mask of a seed: a uniform word for each cell, of which the lowest ``bits`` count."""
    dtype = word(bits)
    stream = Cipher(AES128(seed), _COUNTER).encryptor().update(bytes(cells * dtype.itemsize))
    return np.frombuffer(stream, dtype=dtype)


def masks(seeds: Iterable[bytes], cells: int, bits: int) -> Mask:
    """The sum of the masks of several seeds."""
    total = np.zeros(cells, dtype=word(bits))
    for seed in seeds:
        total += mask(seed, cells, bits)
    return total


def lock(key: bytes, plaintext: bytes) -> bytes:
    """Encrypt and authenticate one message with a key that is used only once."""
    return ChaCha20Poly1305(key).encrypt(_NONCE, plaintext, None)


def unlock(key: bytes, ciphertext: bytes) -> bytes | None:
    """What was locked, or None if it does not open."""
    try:
        return ChaCha20Poly1305(key).decrypt(_NONCE, ciphertext, None)
    except InvalidTag:
        return None
