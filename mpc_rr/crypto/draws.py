"""Random bytes that belong to a secret: the same again for an answer, never again for a mask.

``KeyedRandomness`` is a pseudorandom function of a key: whoever has the key finds the same bytes
again. Answers that must never be drawn twice come from it. ``HedgedRandomness`` mixes a key with
fresh bytes of the operating system: nobody finds them again, and two places with different keys
never get the same, even where the operating system repeats itself (a copied virtual machine).
``docs/draws.md`` says byte by byte how draws are made, for a second implementation.
"""

import hmac
import os

from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20

from mpc_rr.randomness import Randomness

KEY_BYTES = 32


def derived(key: bytes, label: bytes) -> bytes:
    """A key that belongs to a label: HMAC-SHA-256."""
    return hmac.digest(key, label, "sha256")


class KeyedRandomness(Randomness):
    """The ChaCha20 key stream of a key, from block 0 with a zero nonce (RFC 8439)."""

    def __init__(self, key: bytes) -> None:
        if len(key) != KEY_BYTES:
            raise ValueError(f"a key has {KEY_BYTES} bytes")
        self._key = key
        self._stream = Cipher(ChaCha20(key, bytes(16)), mode=None).encryptor()

    def __repr__(self) -> str:
        return "KeyedRandomness(…)"

    def bytes(self, count: int) -> bytes:
        """The next ``count`` bytes of the key stream."""
        return self._stream.update(bytes(count))

    def fork(self, label: str) -> "KeyedRandomness":
        """The source that belongs to ``label``, whatever was drawn here before."""
        return KeyedRandomness(derived(self._key, label.encode()))


class HedgedRandomness(Randomness):
    """Fresh bytes of the operating system, in a stream of this key's own."""

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._stream = KeyedRandomness(derived(key, os.urandom(KEY_BYTES)))

    def __repr__(self) -> str:
        return "HedgedRandomness(…)"

    def bytes(self, count: int) -> bytes:
        """``count`` fresh bytes."""
        return self._stream.bytes(count)

    def fork(self, label: str) -> "HedgedRandomness":
        """A source of its own, with fresh bytes of its own."""
        return HedgedRandomness(derived(self._key, label.encode()))
