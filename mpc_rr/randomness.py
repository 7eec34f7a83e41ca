"""Where every random number comes from.

``SystemRandomness`` asks the operating system and is what earnest runs use.
``SeededRandomness`` is for simulation only: a ChaCha20 key stream whose key is the seed, so that
the same seed gives the same bytes on every machine. Both serve bytes; everything else is derived
from those bytes by the same code, so a simulation exercises exactly what an earnest run does.

Whatever protects a person is drawn exactly: its probabilities are the rational numbers that are
written down, not their neighbours. ``docs/draws.md`` has the rules, byte by byte, and
``tests/vectors/draws.json`` examples.
"""

import hashlib
import os
from abc import ABC, abstractmethod
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import accumulate

import numpy as np
import numpy.typing as npt

WORD_BITS = 64
ROUNDING = 2.0**-53
"""How far a float is from the number it stands for, relative to it, at most."""

Weights = Sequence[int] | npt.NDArray[np.float64]
"""Non-negative numbers, taken as they are: integers of any length, or floats."""


class Randomness(ABC):
    """A source of random bytes, and of unbiased numbers made from them."""

    @abstractmethod
    def bytes(self, count: int) -> bytes:
        """``count`` fresh random bytes."""

    @abstractmethod
    def fork(self, label: str) -> "Randomness":
        """An independent source named ``label``; equal labels of equal sources are equal."""

    def words(self, shape: tuple[int, ...]) -> npt.NDArray[np.uint64]:
        """Independent 64-bit words, of eight bytes each, the lowest byte first."""
        count = int(np.prod(shape, dtype=np.int64))
        raw = np.frombuffer(self.bytes(8 * count), dtype="<u8")
        return raw.astype(np.uint64, copy=False).reshape(shape)

    def below(self, modulus: int, shape: tuple[int, ...]) -> npt.NDArray[np.uint64]:
        """Independent uniform integers in ``range(modulus)``, without modulo bias.

        Words of the smallest width that holds the modulus are drawn; those past the largest
        multiple of the modulus are thrown away and drawn again.
        """
        if not 1 <= modulus <= 1 << WORD_BITS:
            raise ValueError(f"the modulus must be positive and at most 2^64, not {modulus}")
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
            kept = kept[:wanted]
            drawn.append(kept if modulus == words else kept % np.uint64(modulus))
            wanted -= len(drawn[-1])
        return np.concatenate(drawn).reshape(shape) if drawn else np.zeros(shape, np.uint64)

    def bernoulli(self, chance: npt.ArrayLike, shape: tuple[int, ...]) -> npt.NDArray[np.bool_]:
        """Independent yes or no: yes with exactly the probability that the float stands for.

        ``chance``: one for all, or an array that broadcasts to ``shape``. A float is a finite
        binary fraction. Its first 64 binary places are compared with a random word: yes if the
        word is smaller, no if it is larger. Where they are equal and the fraction goes on, the
        next 64 places decide with another word, in the same way.
        """
        chances = np.asarray(chance, dtype=np.float64)
        if not ((chances >= 0) & (chances <= 1)).all():
            raise ValueError("a probability lies between 0 and 1")
        scaled = np.ldexp(chances, WORD_BITS)  # exact, as all steps here
        places = np.floor(scaled)
        certain = chances == 1
        limits = np.where(certain, 0, places).astype(np.uint64)
        words = self.words(shape)
        drawn = np.asarray((words < limits) | certain)
        rest = scaled - places
        if rest.any():
            undecided = (words == limits) & (rest > 0)
            if undecided.any():
                left = np.broadcast_to(rest, shape)[undecided]
                drawn[undecided] = self.bernoulli(left, left.shape)
        return drawn

    def categorical(self, weights: Weights, shape: tuple[int, ...]) -> npt.NDArray[np.int64]:
        """Independent numbers i, each with probability exactly weights[i] / sum of all weights.

        Random words are the digits of a number U in [0, 1), the first 64 binary places first. The
        intervals [w0 + … + w(i−1), w0 + … + wi) / sum lie side by side; i is the one that holds
        U. If the digits so far leave that open, the next word follows, until they do not.
        Floats find nearly all, with the error they can have; integers, the rest.
        """
        near = np.asarray(weights, dtype=np.float64)
        if near.ndim != 1 or not len(near) or not np.isfinite(near).all() or near.min() < 0:
            raise ValueError("weights are a list of finite numbers, none of them negative")
        if not near.max() > 0:
            raise ValueError("one weight at least must be positive")
        near = np.cumsum(np.ldexp(near, -np.frexp(near.max())[1]))
        limits = near[:-1] / near[-1]
        slack = (2 * len(near) + 16) * ROUNDING
        words = self.words(shape)
        places = words.astype(np.float64) * 2.0**-WORD_BITS
        cells = np.asarray(np.searchsorted(limits, places - slack, side="right"))
        undecided = cells != np.searchsorted(limits, places + slack, side="right")
        if undecided.any():
            cells[undecided] = self._settle(weights, words[undecided].tolist())
        return cells.astype(np.int64, copy=False)

    def _settle(self, weights: Weights, places: list[int]) -> list[int]:
        """Which interval holds each number of which these are the first 64 binary places."""
        *limits, total = accumulate(_integers(weights))
        cells, undecided, known = [0] * len(places), list(range(len(places))), WORD_BITS
        while undecided:
            scaled, still = [limit << known for limit in limits], []
            for k in undecided:
                cells[k] = bisect_right(scaled, places[k] * total)
                if cells[k] != bisect_left(scaled, (places[k] + 1) * total):
                    still.append(k)
            for k, word in zip(still, self.words((len(still),)).tolist(), strict=True):
                places[k] = places[k] << WORD_BITS | word
            undecided, known = still, known + WORD_BITS
        return cells

    def subsets(self, size: int, chosen: int, rows: int) -> npt.NDArray[np.int64]:
        """``rows`` independent sets of ``chosen`` of ``range(size)``, all sets equally likely.

        Each is a row in rising order. Every number gets a random key of 32 bits; the smallest keys
        win. If the last that wins and the first that loses have the same key, the row is drawn
        again: that depends on no number's name, so it favours no set.
        """
        if not 0 <= chosen <= size:
            raise ValueError(f"{chosen} of {size} cannot be chosen")
        if chosen in (0, size):
            return np.tile(np.arange(chosen, dtype=np.int64), (rows, 1))
        keys = np.frombuffer(self.bytes(4 * rows * size), dtype="<u4").reshape(rows, size)
        last = np.partition(keys, chosen - 1, axis=1)[:, chosen - 1]
        wins = keys <= last[:, np.newaxis]
        tied = np.count_nonzero(wins, axis=1) > chosen
        picked = np.empty((rows, chosen), dtype=np.int64)
        picked[~tied] = np.nonzero(wins[~tied])[1].reshape(-1, chosen)
        if tied.any():
            picked[tied] = self.subsets(size, chosen, int(tied.sum()))
        return picked

    def uniform(self, shape: tuple[int, ...] = ()) -> npt.NDArray[np.float64]:
        """Independent uniform numbers in [0, 1), with 53 random bits each.

        For invented people, faults and Monte Carlo tests. Never for an answer that must protect
        somebody: compared with a probability, 53 bits do not have it exactly.
        """
        return self.below(1 << 53, shape).astype(np.float64) / float(1 << 53)


def _integers(weights: Weights) -> list[int]:
    """Integers in exactly the ratio of these weights."""
    numbers = weights.tolist() if isinstance(weights, np.ndarray) else list(weights)
    if all(isinstance(number, int) for number in numbers):
        return numbers
    mantissas, exponents = np.frexp(np.array(numbers, dtype=np.float64))
    shifts = exponents - exponents[mantissas > 0].min()
    whole = np.ldexp(mantissas, 53).astype(np.int64)
    return [
        number << shift if number else 0
        for number, shift in zip(whole.tolist(), shifts.tolist(), strict=True)
    ]


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
        # Not above: the mathematics alone, which draws from a `Randomness`, needs no cryptography.
        from cryptography.hazmat.primitives.ciphers import Cipher  # noqa: PLC0415
        from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20  # noqa: PLC0415

        material = seed if isinstance(seed, bytes) else str(seed).encode()
        self._key = hashlib.sha256(b"mpc-rr seed\0" + material).digest()
        self._stream = Cipher(ChaCha20(self._key, bytes(16)), mode=None).encryptor()

    @classmethod
    def from_generator(cls, rng: np.random.Generator) -> "SeededRandomness":
        """A source of its own for what comes next in an experiment that numpy's generator seeds."""
        return cls(rng.bytes(32))

    def __repr__(self) -> str:
        return "SeededRandomness(…)"

    def bytes(self, count: int) -> bytes:
        """The next ``count`` bytes of the key stream."""
        return self._stream.update(bytes(count))

    def fork(self, label: str) -> "SeededRandomness":
        """The source that belongs to ``label``, whatever was drawn here before."""
        return SeededRandomness(self._key + label.encode())
