"""Blame in a mix cascade: every step again, with the route keys, to see who did wrong.

The steps are those of `mpc_rr.protocols.mix.cascade`. All that is looked at is signed, so that
everybody finds the same.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mpc_rr.crypto.onion import LayerKey
from mpc_rr.network.envelope import COORDINATOR, decode
from mpc_rr.network.session import AnySession
from mpc_rr.protocols.board.board import ENTRY_BYTES, P
from mpc_rr.protocols.mix.batch import (
    Batch,
    Cascade,
    Evidence,
    Found,
    MixOutput,
    Onions,
    OnionsFixed,
    RouteKey,
    Shuffled,
    digest_of_onions,
)


def at_relay(place: int) -> str:
    """The label of the session in which a relay passes on."""
    return f"relay-{place + 1}"


@dataclass(frozen=True)
class Case:
    """A batch that went wrong."""

    cascade: Cascade
    head: bytes
    """The head of the board when the onions were due."""
    fixed: Mapping[str, OnionsFixed]
    """What the senders had fixed beforehand, if they had to."""
    complaining: Sequence[str] = ()

    def check_route_key(self, said: RouteKey) -> None:
        """``ValueError`` if a relay shows more than a batch of this cascade."""
        cascade = self.cascade
        item = cascade.item_bytes(2 * len(cascade.relays))
        if len(said.told) > cascade.batches * (len(cascade.senders) * item + 8) + ENTRY_BYTES:
            raise ValueError("what it was told to shuffle is too long")


def judged(
    session: AnySession,
    case: Case,
    keys: Mapping[str, RouteKey],
    evidence: Evidence,
    output: MixOutput,
) -> tuple[dict[str, str], bool]:
    """Who did wrong, and what; and whether an onion was copied, by whom cannot be told.

    Everybody finds the same, because all of it is signed.
    """
    try:
        return _blamed(session, case, keys, evidence, output), False
    except _Copied:
        return {}, True


class _Copied(Exception):
    """Two senders' onions are the same under the first layers: one is a copy."""


def _onions(session: AnySession, case: Case, evidence: Evidence) -> dict[str, tuple[bytes, ...]]:
    """What every sender had signed; ``ValueError`` if the coordinator shows something else."""
    size, found = case.cascade.item_bytes(2 * len(case.cascade.relays)), {}
    for sender in case.cascade.senders:
        said = _said(session, evidence.onions.get(sender, b""), sender, Onions, case.head)
        if [len(onion) for onion in said.onions] != [size] * case.cascade.batches:
            raise ValueError("an honest coordinator would not have taken these onions")
        if sender in case.fixed and case.fixed[sender].digest != digest_of_onions(said.onions):
            raise ValueError("these are not the onions that were fixed")
        found[sender] = said.onions
    return found


def _blamed(
    session: AnySession,
    case: Case,
    keys: Mapping[str, RouteKey],
    evidence: Evidence,
    output: MixOutput,
) -> dict[str, str]:
    cascade = case.cascade
    try:
        onions = _onions(session, case, evidence)
    except ValueError:
        return {COORDINATOR: "shows onions that their senders did not sign for this board"}
    items = [[onions[sender][b] for sender in cascade.senders] for b in range(cascade.batches)]
    owners = [list(cascade.senders) for _ in items]
    for place, relay in enumerate(cascade.relays):
        stage = _Stage(cascade, place, items, owners, fixed=bool(case.fixed))
        blamed = stage.fault_in_hand_over(session, keys[relay], case.head)
        if blamed:
            return blamed
        try:
            here = session.sub(at_relay(place))
            said = _said(here, evidence.shuffled.get(relay, b""), relay, Shuffled, case.head)
        except ValueError:
            return {COORDINATOR: f"shows nothing that {relay} signed for this board"}
        blamed = stage.fault_in_shuffle(said)
        if blamed:
            return blamed
        items, owners = stage.passed_on(said)
    if list(output.batches) != [b"".join(batch) for batch in items]:
        return {COORDINATOR: "announced another output than the last relay's"}
    return dict.fromkeys(case.complaining, f"{Found.step}: its messages are in the output")


def _said(session: AnySession, raw: bytes, sender: str, kind: type[P], head: bytes) -> P:
    message = decode(session.signed(raw, sender, kind.step).envelope.body, kind)
    if message.head != head:
        raise ValueError("it was made for another board")
    return message


class _Stage:
    """One relay's step, repeated with its route key."""

    def __init__(
        self,
        cascade: Cascade,
        place: int,
        items: list[list[bytes]],
        owners: list[list[str]],
        *,
        fixed: bool,
    ) -> None:
        self.fixed = fixed
        self.cascade, self.place, self.items, self.owners = cascade, place, items, owners
        self.relay = cascade.relays[place]
        self.inner: list[list[bytes | None]] = []

    def fault_in_hand_over(
        self, session: AnySession, said: RouteKey, head: bytes
    ) -> dict[str, str]:
        """Whether the relay has shown its key, and was given what it should have been."""
        key = LayerKey.revealed(said.key, self.cascade.route[self.place])
        if key is None:
            return {self.relay: f"{RouteKey.step}: it is not the key that it posted"}
        try:
            signed = session.signed(said.told, COORDINATOR, Batch.step, target=self.relay)
            told = decode(signed.envelope.body, Batch)
        except ValueError:
            return {self.relay: f"{RouteKey.step}: it cannot show what it was told to shuffle"}
        if told.head != head:
            return {COORDINATOR: f"gave {self.relay} a batch for another board"}
        if list(told.batches) != [b"".join(batch) for batch in self.items]:
            return {COORDINATOR: f"gave {self.relay} another batch than it had to"}
        self.inner = [
            self.cascade.peeled(self.place, key, number, batch)
            for number, batch in enumerate(self.items)
        ]
        return {}

    def fault_in_shuffle(self, said: Shuffled) -> dict[str, str]:
        """Whose onions were not in order; or whether the relay passed on something else."""
        blamed, twice = self._bad_onions()
        if twice and self.fixed:  # nobody could have seen the other's before
            blamed |= dict.fromkeys(twice, f"{Onions.step}: its onion is there twice")
        if (blamed or twice) and said.batches:
            blamed[self.relay] = f"{Shuffled.step}: it passed on a batch that was not valid"
        if blamed:
            return blamed
        if twice:
            raise _Copied
        if not said.batches:
            return {self.relay: f"{Shuffled.step}: it refused a batch that was valid"}
        out = self._items(said)
        if any(Counter(a) != Counter(b) for a, b in zip(out, self.inner, strict=True)):
            return {self.relay: f"{Shuffled.step}: it passed on other messages than it was given"}
        return {}

    def _bad_onions(self) -> tuple[dict[str, str], set[str]]:
        """Whose onions do not open here, and whose are there twice."""
        bare: dict[str, str] = {}
        twice: set[str] = set()
        for batch, owners in zip(self.inner, self.owners, strict=True):
            often = Counter(item for item in batch if item is not None)
            for item, owner in zip(batch, owners, strict=True):
                if item is None:
                    bare[owner] = f"{Onions.step}: its onion does not open at {self.relay}"
                elif often[item] > 1:
                    twice.add(owner)
        return bare, twice

    def _items(self, said: Shuffled) -> list[list[bytes]]:
        try:
            return self.cascade.items(said.batches, 2 * len(self.cascade.relays) - self.place - 1)
        except ValueError:
            return [[] for _ in self.inner]

    def passed_on(self, said: Shuffled) -> tuple[list[list[bytes]], list[list[str]]]:
        """What the next relay gets, and whose each item is."""
        items, owners = self._items(said), []
        for inner, mine, batch in zip(self.inner, self.owners, items, strict=True):
            whose = dict(zip(inner, mine, strict=True))
            owners.append([whose[item] for item in batch])
        return items, owners
