"""What goes to, or comes from, each of a party's neighbours on the graph.

A party has a numbered slot for each of its k neighbours. Messages hold what belongs to the slots
end to end, all of one size, and, where some are empty, a bitmap of those that are not.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np


def bitmap(flags: Iterable[bool]) -> bytes:
    """A bit for each slot."""
    return np.packbits(np.array(list(flags), dtype=bool)).tobytes()


def flags_of(bits: bytes, slots: int) -> list[bool]:
    """The flags of a bitmap; ``ValueError`` unless it is for so many slots."""
    if len(bits) != (slots + 7) // 8:
        raise ValueError("a bitmap of another length than it should have")
    return np.unpackbits(np.frombuffer(bits, np.uint8), count=slots).astype(bool).tolist()


def pieces(raw: bytes, size: int, count: int) -> list[bytes]:
    """``ValueError`` unless there are so many pieces of this size."""
    if len(raw) != size * count:
        raise ValueError(f"{len(raw)} bytes where {size * count} are due")
    return [raw[k : k + size] for k in range(0, len(raw), size)]


@dataclass(frozen=True)
class Slots:
    """What came for some of the slots; None where nothing did."""

    items: tuple[bytes | None, ...] = field(repr=False)

    @classmethod
    def unpacked(cls, bits: bytes, joined: bytes, size: int, slots: int) -> "Slots":
        """What a message holds; ``ValueError`` if its parts do not fit each other."""
        there = flags_of(bits, slots)
        came = iter(pieces(joined, size, sum(there)))
        return cls(tuple(next(came) if flag else None for flag in there))

    @classmethod
    def of(cls, items: Sequence[bytes | None]) -> "Slots":
        """These, slot by slot."""
        return cls(tuple(items))

    @property
    def filled(self) -> list[bool]:
        """Whether there is something, slot by slot."""
        return [item is not None for item in self.items]

    @property
    def count(self) -> int:
        """How many there are."""
        return sum(self.filled)

    @property
    def packed(self) -> tuple[bytes, bytes]:
        """Bitmap and contents, for a message."""
        return bitmap(self.filled), b"".join(item for item in self.items if item is not None)
