"""The random Harary graph on which parties mask each other (Bell et al. 2020).

Parties are put in a random order in a circle; each is a neighbour of the k/2 before and the k/2
after it (of all others, if k is that large). Everything follows from a public seed, so every party
can check who its neighbours are. Slot s of a party is the neighbour that many steps ahead; the
same edge is slot k − 1 − s of that neighbour.
"""

import functools
import hashlib
from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20

Places = npt.NDArray[np.int64]


@functools.lru_cache(maxsize=8)
def _order(seed: bytes, nodes: int) -> tuple[Places, Places]:
    """Who stands at each place of the circle, and where each stands: sorted by random words."""
    key = hashlib.sha256(b"mpc-rr graph\0" + seed).digest()
    stream = Cipher(ChaCha20(key, bytes(16)), mode=None).encryptor().update(bytes(8 * nodes))
    standing = np.argsort(np.frombuffer(stream, dtype="<u8"), kind="stable")
    place = np.empty(nodes, dtype=np.int64)
    place[standing] = np.arange(nodes)
    return standing, place


@dataclass(frozen=True)
class HararyGraph:
    """``degree`` neighbours (even, or all others) for each of ``nodes`` parties."""

    seed: bytes
    nodes: int
    degree: int

    def __post_init__(self) -> None:
        complete = self.degree == self.nodes - 1
        if self.nodes < 2 or not 0 < self.degree < self.nodes or (self.degree % 2 and not complete):
            raise ValueError(f"no such graph: {self.nodes} parties with {self.degree} neighbours")

    @property
    def steps(self) -> Places:
        """How many steps ahead on the circle the neighbour in each slot is."""
        if self.degree == self.nodes - 1:
            return np.arange(1, self.nodes)
        half = self.degree // 2
        return np.concatenate([np.arange(1, half + 1), np.arange(self.nodes - half, self.nodes)])

    def neighbours(self, node: int) -> Places:
        """The neighbours of a party, slot by slot."""
        standing, place = _order(self.seed, self.nodes)
        return np.asarray(standing[(place[node] + self.steps) % self.nodes])

    def all_neighbours(self) -> Places:
        """One row for each party."""
        standing, place = _order(self.seed, self.nodes)
        return np.asarray(standing[(place[:, np.newaxis] + self.steps) % self.nodes])

    def fewest_in_a_cut(self, present: Collection[int]) -> int:
        """How many of those present stand, at least, in two stretches that would cut the circle.

        A stretch has k/2 places, and somebody is between the two on either side: only if nobody is
        left in both do the others fall apart. (``nodes`` if nothing can cut the graph.)
        """
        half, nodes = self.degree // 2, self.nodes
        choices = nodes - 2 * half - 1
        if self.degree == nodes - 1 or choices < 1:
            return nodes
        there = np.isin(_order(self.seed, nodes)[0], list(present)).astype(np.int64)
        summed = np.concatenate([[0], np.cumsum(np.concatenate([there, there[:half]]))])
        stretch = summed[half : half + nodes] - summed[:nodes]
        # The least of the ``choices`` stretches from each on, in steps that double.
        least, width = stretch, 1
        while width < choices:
            step = min(width, choices - width)
            least = np.minimum(least, np.roll(least, -step))
            width += step
        return int((stretch + np.roll(least, -(half + 1))).min())

    def mirrored(self, slot: int) -> int:
        """The slot in which the neighbour in this slot has us."""
        return self.degree - 1 - slot
