"""Onions: a message sealed to several keys, one layer around the other.

Every layer is HPKE (`mpc_rr.crypto.hpke`), as for sealed envelopes. It cannot be altered without
failing to open, and it grows by the same number of bytes for everybody.
"""

from collections.abc import Callable, Sequence

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from mpc_rr.crypto import hpke
from mpc_rr.crypto.pairwise import is_key
from mpc_rr.randomness import Randomness

LAYER_BYTES = hpke.SEALING_OVERHEAD_BYTES
KEY_BYTES = 32
Seal = Callable[[bytes, bytes, bytes], bytes]
"""Seals to a key, a plaintext, under an info: `mpc_rr.crypto.identity.Identity.seal`."""


class LayerKey:
    """A key to which layers are sealed, for one batch of onions."""

    def __init__(self, private: bytes) -> None:
        self._private = X25519PrivateKey.from_private_bytes(private)
        self.public = self._private.public_key().public_bytes_raw()

    @classmethod
    def draw(cls, rng: Randomness) -> "LayerKey":
        """A fresh key."""
        return cls(rng.bytes(KEY_BYTES))

    @classmethod
    def revealed(cls, private: bytes, public: bytes) -> "LayerKey | None":
        """A key that its owner has made known, if it is the one of this public key."""
        if len(private) != KEY_BYTES:
            return None
        key = cls(private)
        return key if key.public == public else None

    def __repr__(self) -> str:
        return "LayerKey(…)"

    def reveal(self) -> bytes:
        """The private key, for all to see."""
        return self._private.private_bytes_raw()

    def peel(self, onion: bytes, info: bytes) -> bytes | None:
        """What is under the outermost layer, or None if that does not open."""
        return hpke.open_sealed(self._private, onion, info)


def wrap(message: bytes, keys: Sequence[bytes], infos: Sequence[bytes], seal: Seal) -> bytes:
    """A message in layers; the first key opens the outermost."""
    for key, info in zip(reversed(keys), reversed(infos), strict=True):
        message = seal(key, message, info)
    return message


def usable(key: bytes) -> bool:
    """Whether one can seal to this key."""
    return len(key) == KEY_BYTES and is_key(key)
