"""The protocols, one file each: all roles, all message types, numbered as in the paper.

Protocol code awaits only its session and draws only from ``session.rng``; a test forbids it to
import anything else that acts. A scenario names its protocol by the key in `PROTOCOLS`.
"""

from typing import Protocol

from mpc_rr.network.session import CoordinatorSession, PartySession
from mpc_rr.protocols import exact_pairs
from mpc_rr.protocols.exact_pairs import PairCounts
from mpc_rr.schema import Record, Schema


class StudyProtocol(Protocol):
    """What a module must offer to be named in a scenario."""

    STEPS: tuple[str, ...]
    """The steps in which parties send something, in order."""

    def largest_message_bytes(self, schema: Schema, parties: int) -> int:
        """An upper bound on any of its messages."""

    async def party(self, session: PartySession, schema: Schema, record: Record) -> PairCounts:
        """A party's part."""

    async def coordinator(self, session: CoordinatorSession, schema: Schema) -> PairCounts:
        """The coordinator's part."""


PROTOCOLS: dict[str, StudyProtocol] = {"exact_pairs": exact_pairs}
