"""What goes through a mix cascade: its messages, and the onions of one batch.

The steps are those of `mpc_rr.protocols.mix.cascade`.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import msgspec

from mpc_rr.crypto.onion import KEY_BYTES, LAYER_BYTES, LayerKey, Seal, usable, wrap
from mpc_rr.network.envelope import Message, Way, encode_parts
from mpc_rr.protocols.board.board import Announced, Posted


def check_key_size(key: bytes) -> None:
    """``ValueError`` unless this has the size of a key, or of a hash."""
    if len(key) != KEY_BYTES:
        raise ValueError(f"{KEY_BYTES} bytes are due, not {len(key)}")


class MixKeys(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A relay's two public keys for one batch."""

    route: bytes
    final: bytes

    def check_size(self) -> None:
        """``ValueError`` unless both have the size of a key."""
        check_key_size(self.route)
        check_key_size(self.final)

    @property
    def proper(self) -> bool:
        """Whether one can seal to them."""
        return usable(self.route) and usable(self.final) and self.route != self.final


class RelayKeys(Posted, frozen=True):
    """1, relay → board: its two keys for this batch."""

    step: ClassVar[str] = "relay_keys"
    doing: ClassVar[str] = "relays of the anonymous channel show their keys"
    keys: MixKeys

    def check_size(self) -> None:
        """Of the keys."""
        self.keys.check_size()


class OnionsFixed(Posted, frozen=True):
    """2, party → board, after somebody copied another's onion: the hash of its own."""

    step: ClassVar[str] = "onions_fixed"
    doing: ClassVar[str] = "respondents fix what they will send through the channel"
    digest: bytes

    def check_size(self) -> None:
        """A hash."""
        check_key_size(self.digest)


class Onions(Posted, frozen=True):
    """2, party → coordinator: one onion for each batch.

    The head of the board is in it: it shows for which keys they were made.
    """

    step: ClassVar[str] = "onions"
    doing: ClassVar[str] = "respondents send through the anonymous channel"
    onions: tuple[bytes, ...]


def digest_of_onions(onions: Sequence[bytes]) -> bytes:
    """By which they are fixed."""
    return hashlib.sha256(encode_parts(b"mpc-rr onions", *onions)).digest()


class Batch(Message, frozen=True):
    """3, coordinator → relay: the batches it is to shuffle, end to end; none if there is no need.

    For the first relay they are in the order of the parties' names. The head is that of the board
    for which the onions were made.
    """

    step: ClassVar[str] = "batch"
    doing: ClassVar[str] = "the coordinator hands a batch to a relay"
    way: ClassVar[Way] = "hand out"
    head: bytes
    batches: tuple[bytes, ...]


class Shuffled(Posted, frozen=True):
    """3, relay → coordinator: the batches without its layer; none if one is not in order."""

    step: ClassVar[str] = "shuffled"
    doing: ClassVar[str] = "a relay shuffles"
    batches: tuple[bytes, ...]


class MixOutput(Announced, frozen=True):
    """4, coordinator → board: what came out; or who left on the way; or that it went wrong."""

    step: ClassVar[str] = "mix_output"
    doing: ClassVar[str] = "the coordinator announces what came out of the channel"
    way: ClassVar[Way] = "announce"
    batches: tuple[bytes, ...]
    lost: tuple[str, ...]
    shuffling: bool
    """Whether it was a relay that was lost, when it was to shuffle; else senders of onions."""

    @property
    def lost_at(self) -> str:
        """The step at which somebody was lost; that it was so, the coordinator says."""
        return Shuffled.step if self.shuffling else Onions.step

    @property
    def failed(self) -> bool:
        """Whether a relay found something that was not in order."""
        return not self.batches and not self.lost


class Found(Posted, frozen=True):
    """4, party → board: whether its messages are in the output."""

    step: ClassVar[str] = "found"
    doing: ClassVar[str] = "respondents look for their messages"
    mine: bool


class FinalKey(Posted, frozen=True):
    """5, relay → board: its final key, for all to read the messages."""

    step: ClassVar[str] = "final_key"
    doing: ClassVar[str] = "relays open the messages"
    key: bytes

    def check_size(self) -> None:
        """A key."""
        check_key_size(self.key)


class RouteKey(Posted, frozen=True):
    """5, relay → board, if something went wrong: its route key, and what it was told to shuffle."""

    step: ClassVar[str] = "route_key"
    doing: ClassVar[str] = "something went wrong in the channel: relays show what they did"
    key: bytes
    told: bytes

    def check_size(self) -> None:
        """A key; how long the other may be, depends on the batch."""
        check_key_size(self.key)


class Evidence(Announced, frozen=True):
    """5, coordinator → board, if something went wrong: what parties and relays had signed."""

    step: ClassVar[str] = "evidence"
    doing: ClassVar[str] = "the coordinator shows what went wrong in the channel"
    way: ClassVar[Way] = "announce"
    onions: dict[str, bytes]
    shuffled: dict[str, bytes]


MIX_ROUNDS: tuple[type[Message], ...] = (OnionsFixed, Onions, Shuffled, Found, FinalKey, RouteKey)
"""What parties send through the channel; two of them only if something goes wrong."""


@dataclass(frozen=True)
class Cascade:
    """The relays of one batch, their public keys, and the sizes of what goes through."""

    context: bytes
    relays: tuple[str, ...]
    route: tuple[bytes, ...]
    final: tuple[bytes, ...]
    senders: tuple[str, ...]
    batches: int
    size: int

    def item_bytes(self, layers: int) -> int:
        """The size of a message under so many layers."""
        return self.size + layers * LAYER_BYTES

    @staticmethod
    def largest_item(size: int, relays: int) -> int:
        """The size of a message under all layers of so many relays."""
        return size + 2 * relays * LAYER_BYTES

    def info(self, batch: int, kind: bytes, place: int, sender: str = "") -> bytes:
        """What binds a layer to its place; the outermost is bound to its sender, too."""
        parts = (self.context, kind, bytes([place]), batch.to_bytes(4, "big"), sender.encode())
        return encode_parts(b"mpc-rr onion", *parts)

    @cached_property
    def _infos(self) -> dict[tuple[int, bytes], list[bytes]]:
        """What binds each layer to its place, but for the outermost of all."""
        return {
            (batch, kind): [self.info(batch, kind, place) for place in range(len(self.relays))]
            for batch in range(self.batches)
            for kind in (b"route", b"final")
        }

    def sealed(self, batch: int, message: bytes, seal: Seal) -> bytes:
        """A message under the final keys."""
        return wrap(message, self.final, self._infos[batch, b"final"], seal)

    def onion(self, batch: int, sealed: bytes, sender: str, seal: Seal) -> bytes:
        """A sealed message under the route keys."""
        outermost = self.info(batch, b"route", 0, sender)
        return wrap(sealed, self.route, [outermost, *self._infos[batch, b"route"][1:]], seal)

    def check_sizes(self, batches: Sequence[bytes], layers: int) -> None:
        """``ValueError`` unless batches can hold one message of each sender."""
        size, count = self.item_bytes(layers), len(self.senders)
        if len(batches) != self.batches or any(len(b) != size * count for b in batches):
            raise ValueError(f"{self.batches} batches of {count} messages of {size} bytes are due")

    def items(self, batches: Sequence[bytes], layers: int) -> list[list[bytes]]:
        """The single messages of batches; ``ValueError`` unless there is one of each sender."""
        self.check_sizes(batches, layers)
        size = self.item_bytes(layers)
        return [[b[k : k + size] for k in range(0, len(b), size)] for b in batches]

    def peeled(self, place: int, key: LayerKey, batch: int, items: Sequence[bytes]) -> (
        list[bytes | None]
    ):  # fmt: skip
        """What is under the layers of a relay; None where one does not open."""
        if place == 0:
            infos = [self.info(batch, b"route", 0, sender) for sender in self.senders]
        else:
            infos = [self.info(batch, b"route", place)] * len(items)
        return [key.peel(item, info) for item, info in zip(items, infos, strict=True)]

    def read(self, batch: int, items: Sequence[bytes], keys: Sequence[LayerKey]) -> list[bytes]:
        """The messages, once the final keys are known; one that cannot be read is all ones."""
        messages = list(items)
        for place, key in enumerate(keys):
            info = self.info(batch, b"final", place)
            messages = [key.peel(message, info) or b"" for message in messages]
        return [m if len(m) == self.size else b"\xff" * self.size for m in messages]
