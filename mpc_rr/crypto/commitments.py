"""Commitments: fix a value now, show it later.

A commitment is the SHA-256 hash of a 32-byte random salt and the value, together with what it is
bound to (study, run, party and field). It hides the value as long as the salt is secret, and binds
its author because nobody can find a second opening; and nobody can pass another's off as her own.
"""

import hmac

from cryptography.hazmat.primitives.hashes import SHA256, Hash

SALT_BYTES = 32
HASH_BYTES = 32


def commit(bound_to: bytes, value: bytes, salt: bytes) -> bytes:
    """The commitment to a value."""
    if len(salt) != SALT_BYTES:
        raise ValueError(f"a salt has {SALT_BYTES} bytes")
    hasher = Hash(SHA256())
    hasher.update(b"mpc-rr commitment v1\0")
    for part in (bound_to, salt, value):
        hasher.update(len(part).to_bytes(8, "big") + part)
    return hasher.finalize()


def opens(commitment: bytes, bound_to: bytes, value: bytes, salt: bytes) -> bool:
    """Whether this value and salt are what was committed to."""
    if len(salt) != SALT_BYTES:
        return False
    return hmac.compare_digest(commit(bound_to, value, salt), commitment)
