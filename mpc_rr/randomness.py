"""Where every random number comes from.

``SystemRandomness`` asks the operating system and is what earnest runs use.
``SeededRandomness`` is for simulation only: a ChaCha20 key stream whose key is the seed, so that
the same seed gives the same bytes on every machine. Both serve bytes; everything else is derived
from those bytes by the same code, so a simulation exercises exactly what an earnest run does.
"""

import hashlib
import os
from abc import ABC, abstractmethod

import numpy as np
import numpy.typing as npt
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20


class Randomness(ABC):
    """A source of random bytes, and of unbiased numbers made from them."""

    @abstractmethod
    def bytes(self, count: int) -> bytes:
        """``count`` fresh random bytes."""

    @abstractmethod
    def fork(self, label: str) -> "Randomness":
        """An independent source named ``label``; equal labels of equal sources are equal."""

    def below(self, modulus: int, shape: tuple[int, ...]) -> npt.NDArray[np.uint64]:
        """Independent uniform integers in ``range(modulus)``, without modulo bias.

        Words of the smallest width that holds the modulus are drawn; those past the largest
        multiple of the modulus are thrown away and drawn again.
        """
        if modulus < 1:
            raise ValueError(f"the modulus must be positive, not {modulus}")
        dtype = np.min_scalar_type(modulus - 1).newbyteorder("<")
        words = 1 << (8 * dtype.itemsize)
        accept_below = words - words % modulus
        wanted = int(np.prod(shape, dtype=np.int64))
        drawn: list[npt.NDArray[np.uint64]] = []
        while wanted > 0:
            spare = wanted * words // accept_below + 16
            raw = np.frombuffer(self.bytes(spare * dtype.itemsize), dtype=dtype)
            kept = raw.astype(np.uint64)
            if accept_below < words:
                kept = kept[kept < accept_below]
            drawn.append(kept[:wanted] % np.uint64(modulus))
            wanted -= len(drawn[-1])
        return np.concatenate(drawn).reshape(shape) if drawn else np.zeros(shape, np.uint64)

    def uniform(self, shape: tuple[int, ...] = ()) -> npt.NDArray[np.float64]:
        """Independent uniform numbers in [0, 1), with 53 random bits each."""
        return self.below(1 << 53, shape).astype(np.float64) / float(1 << 53)


class SystemRandomness(Randomness):
    """The operating system's generator. Nothing can be replayed from it."""

    def bytes(self, count: int) -> bytes:
        """``count`` fresh bytes from the operating system."""
        return os.urandom(count)

    def fork(self, label: str) -> "SystemRandomness":  # noqa: ARG002
        """Itself: its bytes are independent anyhow."""
        return self


class SeededRandomness(Randomness):
    """A reproducible source. For simulation only: whoever knows the seed knows every secret."""

    def __init__(self, seed: int | bytes) -> None:
        material = seed if isinstance(seed, bytes) else str(seed).encode()
        self._key = hashlib.sha256(b"mpc-rr seed\0" + material).digest()
        self._stream = Cipher(ChaCha20(self._key, bytes(16)), mode=None).encryptor()

    def __repr__(self) -> str:
        return "SeededRandomness(…)"

    def bytes(self, count: int) -> bytes:
        """The next ``count`` bytes of the key stream."""
        return self._stream.update(bytes(count))

    def fork(self, label: str) -> "SeededRandomness":
        """The source that belongs to ``label``, whatever was drawn here before."""
        return SeededRandomness(self._key + label.encode())
