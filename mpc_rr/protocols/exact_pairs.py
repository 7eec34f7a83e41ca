"""Exact bivariate counts (paper 000 §4.2): how often each pair of answers occurs, and no more.

A party's record becomes one vector with a 1 in its cell of each pair's table; the secure sum adds
the vectors of all parties. Everybody gets the tables of all pairs of attributes; nobody gets any
record. Exact counts are published, so a cell of size 1 shows that such a person exists: see
``docs/threat-model.md``.
"""

import hashlib
import math

import numpy as np

from mpc_rr.errors import Misconduct
from mpc_rr.estimation.matrix import Array
from mpc_rr.estimation.pairs import Counts, PairLayout
from mpc_rr.network.session import CoordinatorSession, PartySession
from mpc_rr.network.vectors import Residues, packed_bytes
from mpc_rr.privacy.ledger import Release
from mpc_rr.protocols.interface import Ending, StudyProtocol
from mpc_rr.protocols.secure_sum import Partial, Share, secure_sum_coordinator, secure_sum_party
from mpc_rr.schema import Record, Schema

STEPS: tuple[str, ...] = (Share.step, Partial.step)
PARCEL_OVERHEAD_BYTES = 512
"""More than an envelope's header, signature and sealing add to a share."""


class PairCounts(Ending, frozen=True):
    """The counts of every pair of attributes over ``n`` parties."""

    n: int
    schema: Schema
    tables: list[Counts]

    def __repr__(self) -> str:
        return f"PairCounts(n={self.n}, {len(self.tables)} tables)"

    def pair_shares(self) -> dict[tuple[int, int], Array]:
        """The tables as shares, by the attributes' numbers."""
        pairs = PairLayout(self.schema.sizes).pairs
        return {pair: t / self.n for pair, t in zip(pairs, self.tables, strict=True)}

    @property
    def digest(self) -> bytes:
        """What parties compare to be sure that all have the same result."""
        hasher = hashlib.sha256(b"mpc-rr exact_pairs result\0" + str(self.n).encode())
        for table in self.tables:
            hasher.update(b"\0" + table.astype("<i8").tobytes())
        return hasher.digest()


class ExactPairs(StudyProtocol, frozen=True, tag="exact_pairs"):
    """``[protocol] name = "exact_pairs"``. It has no options."""

    @property
    def steps(self) -> tuple[str, ...]:
        """Those of the secure sum."""
        return STEPS

    def largest_message_bytes(self, schema: Schema, parties: int) -> int:
        """A bundle of shares for all other parties."""
        share = packed_bytes(PairLayout(schema.sizes).cells, parties + 1)
        return 65536 + parties * (share + PARCEL_OVERHEAD_BYTES)

    def releases(self, study: str, schema: Schema, parties: int) -> list[Release]:
        """No ε bounds what an exact count may tell about one person."""
        return [Release(study, "exact counts of pairs", schema.names, math.inf, crowd=parties)]

    async def party(self, session: PartySession, schema: Schema, record: Record) -> PairCounts:
        """A party's part: its record goes in, the counts come out."""
        layout = PairLayout(schema.sizes)
        total = await secure_sum_party(session.sub("secure_sum"), layout.indicator(record))
        return _counts(layout, schema, total, len(session.parties))

    async def coordinator(self, session: CoordinatorSession, schema: Schema) -> PairCounts:
        """The coordinator's part: it learns the counts, as everybody does."""
        layout = PairLayout(schema.sizes)
        total = await secure_sum_coordinator(session.sub("secure_sum"), layout.cells)
        return _counts(layout, schema, total, len(session.parties))


def _counts(layout: PairLayout, schema: Schema, total: Residues, n: int) -> PairCounts:
    return PairCounts(n, schema, checked_tables(layout, total.astype(np.int64), n))


def checked_tables(
    layout: PairLayout, total: Counts, n: int, *, margins_agree: bool = True
) -> list[Counts]:
    """The tables of a sum, if they can be those of n parties that each added what they should."""
    tables = layout.tables(total)
    wrong = layout.inconsistency(tables, n, margins_agree=margins_agree)
    if wrong is not None:
        raise Misconduct(
            f"the sum is poisoned: {wrong}; some party did not add exactly one record "
            "(which one cannot be told, all inputs being hidden)"
        )
    return tables
