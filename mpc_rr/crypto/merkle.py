"""Merkle trees: one short digest for a long list, and proofs that some entries are in it.

Leaves and inner nodes are hashed apart (RFC 6962); a node without a partner moves up unchanged, and
the number of leaves is bound into the root. A proof for several entries shares what they share.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence

NODE_BYTES = 32


def _leaf(entry: bytes) -> bytes:
    return hashlib.sha256(b"\0" + entry).digest()


def _node(left: bytes, right: bytes) -> bytes:
    return hashlib.sha256(b"\1" + left + right).digest()


def _root(top: bytes, count: int) -> bytes:
    return hashlib.sha256(b"\2" + count.to_bytes(8, "big") + top).digest()


class MerkleTree:
    """The tree over a list of entries."""

    def __init__(self, entries: Sequence[bytes]) -> None:
        if not entries:
            raise ValueError("a tree has at least one leaf")
        self._levels = [[_leaf(entry) for entry in entries]]
        while len(below := self._levels[-1]) > 1:
            above = [_node(*below[k : k + 2]) for k in range(0, len(below) - 1, 2)]
            self._levels.append(above + below[len(below) & ~1 :])

    @property
    def count(self) -> int:
        """The number of leaves."""
        return len(self._levels[0])

    @property
    def root(self) -> bytes:
        """The digest of the whole list."""
        return _root(self._levels[-1][0], self.count)

    def proof(self, places: Iterable[int]) -> bytes:
        """What `root_of` needs to compute the root from the entries at these places."""
        nodes, wanted = [], sorted(set(places))
        for level in self._levels[:-1]:
            held = set(wanted)
            nodes += [level[k ^ 1] for k in wanted if k ^ 1 not in held and k ^ 1 < len(level)]
            wanted = sorted({k >> 1 for k in wanted})
        return b"".join(nodes)


def root_of(entries: Mapping[int, bytes], count: int, proof: bytes) -> bytes:
    """The root of the list of ``count`` entries that has these at their places.

    ``ValueError`` if the proof is not of the right length.
    """
    if not entries or min(entries) < 0 or max(entries) >= count:
        raise ValueError("an entry lies outside the list")
    held = {place: _leaf(entry) for place, entry in sorted(entries.items())}
    used, width = 0, count
    while width > 1:
        above = {}
        for place, mine in held.items():
            if place >> 1 in above:
                continue
            partner = place ^ 1
            if partner >= width:
                above[place >> 1] = mine
                continue
            other = held.get(partner)
            if other is None:
                other = proof[used : used + NODE_BYTES]
                used += NODE_BYTES
            both = mine + other if place < partner else other + mine
            above[place >> 1] = hashlib.sha256(b"\1" + both).digest()
        held, width = above, (width + 1) >> 1
    if used != len(proof):
        raise ValueError("the proof has another length than it should")
    return _root(held[0], count)
