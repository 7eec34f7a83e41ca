"""Bivariate counts (paper 000 §4.2): how often each pair of answers occurs, and no more.

1. A party's record becomes one vector with a 1 in its cell of each pair's table.
2. If the study says so, the party adds its share of noise to every cell.
3. The secure sum adds the vectors of all parties.
4. Everybody gets the tables of all pairs of attributes; nobody gets any record.

Exact counts are published, so a cell of size 1 shows that such a person exists. A study can avoid
that in two ways, which are not in the paper:

* ``noise_epsilon``: nobody sees an exact count, not even the coordinator. Whatever is published is
  (ε, δ)-private even if a share ``noise_corrupt`` of the parties pool all they know.
* ``suppress_below``: the sum goes to the coordinator alone, which sees the exact counts and
  publishes the tables without the small ones (and without what would give those away).
"""

import hashlib
import math
from typing import ClassVar

import numpy as np

from mpc_rr.errors import InputError, Misconduct, Refused
from mpc_rr.estimation.distribution import Estimate
from mpc_rr.estimation.matrix import Array
from mpc_rr.estimation.pairs import Counts, PairLayout
from mpc_rr.estimation.suppression import HIDDEN, fault, filled, suppress
from mpc_rr.estimation.tables import shrunk_table
from mpc_rr.network.messages import Message
from mpc_rr.network.session import Check, CoordinatorSession, PartySession
from mpc_rr.network.vectors import Residues, packed_bytes
from mpc_rr.privacy.ledger import Release
from mpc_rr.privacy.noise import NoiseShares
from mpc_rr.protocols.interface import Ending, StudyProtocol
from mpc_rr.protocols.secure_sum import (
    ConfidedPartial,
    Partial,
    Share,
    confided_sum_party,
    secure_sum_coordinator,
    secure_sum_party,
)
from mpc_rr.schema import Record, Schema

STEPS: tuple[str, ...] = (Share.step, Partial.step)
PARCEL_OVERHEAD_BYTES = 512
"""More than an envelope's header, signature and sealing add to a share."""
MOST_CORRUPT = 0.5
"""The share of parties that noise withstands unless the study says otherwise."""


class PublishedTables(Message, frozen=True):
    """Coordinator → everyone: the tables with small counts suppressed, cell by cell, as int64."""

    step: ClassVar[str] = "published_tables"
    cells: bytes

    def tables(self, layout: PairLayout) -> list[Counts]:
        """The tables; ``ValueError`` if these are not as many cells as there should be."""
        if len(self.cells) != 8 * layout.cells:
            raise ValueError(f"{len(self.cells)} bytes where {8 * layout.cells} are due")
        return layout.tables(np.frombuffer(self.cells, dtype="<i8"))


class PairCounts(Ending, frozen=True):
    """The counts of every pair of attributes over ``n`` parties.

    Exact, unless ``noise`` is the standard deviation of what was added to each count, or counts
    below ``suppressed_below`` are hidden (−1) together with what would give them away.
    """

    n: int
    schema: Schema
    tables: list[Counts]
    noise: float = 0.0
    suppressed_below: int = 0

    def __repr__(self) -> str:
        return f"PairCounts(n={self.n}, {len(self.tables)} tables)"

    @property
    def exact(self) -> bool:
        """Whether every count is shown as it is."""
        return not self.noise and not self.suppressed_below

    @property
    def hidden_cells(self) -> int:
        """How many cells are suppressed."""
        return sum(int((table == HIDDEN).sum()) for table in self.tables) if not self.noise else 0

    def pair_shares(self) -> dict[tuple[int, int], Array]:
        """Proper tables of shares, by the attributes' numbers: the best guess where not exact."""
        layout = PairLayout(self.schema.sizes)
        tables: list[Array] = [table / self.n for table in self.tables]
        if self.noise:
            errors = self.noise / self.n
            tables = [shrunk_table(Estimate(t, np.full(t.shape, errors), self.n)) for t in tables]
        elif self.suppressed_below:
            tables = [table / self.n for table in filled(layout, self.tables, self.n)]
        return dict(zip(layout.pairs, tables, strict=True))

    @property
    def digest(self) -> bytes:
        """What parties compare to be sure that all have the same result."""
        hasher = hashlib.sha256(b"mpc-rr exact_pairs result\0" + str(self.n).encode())
        for table in self.tables:
            hasher.update(b"\0" + table.astype("<i8").tobytes())
        return hasher.digest()


class ExactPairs(StudyProtocol, frozen=True, tag="exact_pairs"):
    """``[protocol] name = "exact_pairs"``; all options may be left out."""

    noise_epsilon: float | None = None
    noise_corrupt: float | None = None
    suppress_below: int | None = None

    @property
    def steps(self) -> tuple[str, ...]:
        """Those of the secure sum."""
        return STEPS if self.suppress_below is None else (Share.step, ConfidedPartial.step)

    def check(self, schema: Schema) -> None:
        """The options must make sense."""
        if self.noise_epsilon is not None:
            self._noise(PairLayout(schema.sizes), 3)
            if self.suppress_below is not None:
                raise InputError(
                    "noise_epsilon and suppress_below exclude each other: noisy counts need no "
                    "suppression"
                )
        elif self.noise_corrupt is not None:
            raise InputError("noise_corrupt goes with noise_epsilon, and only with it")
        if self.noise_corrupt is not None and not 0 <= self.noise_corrupt < 1:
            raise InputError(f"noise_corrupt lies between 0 and 1, not {self.noise_corrupt}")
        if self.suppress_below is not None and self.suppress_below < 2:
            raise InputError(f"suppress_below must be 2 or more, not {self.suppress_below}")

    def largest_message_bytes(self, schema: Schema, parties: int) -> int:
        """A bundle of shares for all other parties."""
        layout = PairLayout(schema.sizes)
        share = packed_bytes(layout.cells, self._modulus(layout, parties))
        return 65536 + 8 * layout.cells + parties * (share + PARCEL_OVERHEAD_BYTES)

    def releases(self, study: str, schema: Schema, parties: int) -> list[Release]:
        """No ε bounds what an exact count may tell about one person; noise has its own."""
        noise = self._noise(PairLayout(schema.sizes), parties)
        if noise is None:
            return [Release(study, "exact counts of pairs", schema.names, math.inf, crowd=parties)]
        kind = "noisy counts of pairs"
        return [Release(study, kind, schema.names, noise.epsilon, delta=noise.delta)]

    def _noise(self, layout: PairLayout, parties: int) -> NoiseShares | None:
        """Another record changes two cells of each table by one."""
        if self.noise_epsilon is None:
            return None
        corrupt = MOST_CORRUPT if self.noise_corrupt is None else self.noise_corrupt
        honest = max(1, parties - math.floor(corrupt * parties))
        return NoiseShares(self.noise_epsilon, 2 * len(layout.pairs), honest, layout.cells)

    def _modulus(self, layout: PairLayout, parties: int) -> int:
        """Above any sum; with noise, twice that, as it may be negative."""
        noise = self._noise(layout, parties)
        return parties + 1 if noise is None else 2 * (parties + noise.bound(parties)) + 2

    async def party(self, session: PartySession, schema: Schema, record: Record) -> PairCounts:
        """A party's part: its record goes in, the counts come out."""
        layout, n = PairLayout(schema.sizes), len(session.parties)
        modulus, sums = self._modulus(layout, n), session.sub("secure_sum")
        vector = layout.indicator(record)
        if self.suppress_below is not None:
            await confided_sum_party(sums, vector, modulus)
            published = await session.hear(PublishedTables, check=self._in_order(layout, n))
            return self._suppressed(schema, published, n)
        if (noise := self._noise(layout, n)) is not None:
            noisy = vector.astype(np.int64) + noise.draw(session.rng.fork("noise"))
            vector = (noisy % modulus).astype(np.uint64)
        total = await secure_sum_party(
            sums, vector, modulus, before_publishing=lambda: self._only_once(session)
        )
        return self._counts(schema, total, n)

    def _only_once(self, session: PartySession) -> None:
        """A second sum with other noise, or other parties, would cost as much again."""
        now = session.mailbox.run
        if self.noise_epsilon and session.once("noisy sum", lambda _: now) != now:
            raise Refused(
                "this party has given its noisy counts for this study before; a second sum would "
                "give away as much again; no count was sent"
            )

    async def coordinator(self, session: CoordinatorSession, schema: Schema) -> PairCounts:
        """The coordinator's part: it learns the counts, as everybody does (or more, see above)."""
        layout, n = PairLayout(schema.sizes), len(session.parties)
        modulus, sums = self._modulus(layout, n), session.sub("secure_sum")
        below = self.suppress_below
        if below is None:
            return self._counts(
                schema, await secure_sum_coordinator(sums, layout.cells, modulus), n
            )

        async def suppressed() -> PublishedTables:
            total = await secure_sum_coordinator(sums, layout.cells, modulus, confided=True)
            tables = checked_tables(layout, total.astype(np.int64), n)
            try:
                shown = suppress(layout, tables, below)
            except InputError as error:
                raise Refused(str(error)) from None
            return PublishedTables(np.concatenate(shown, axis=None).astype("<i8").tobytes())

        check = self._in_order(layout, n)
        published = await session.announce_made(PublishedTables, suppressed, check=check)
        return self._suppressed(schema, published, n)

    def _in_order(self, layout: PairLayout, n: int) -> Check[PublishedTables]:
        def check(message: PublishedTables) -> None:
            wrong = fault(layout, message.tables(layout), n, self.suppress_below or 0)
            if wrong is not None:
                raise ValueError(wrong)

        return check

    def _suppressed(self, schema: Schema, published: PublishedTables, n: int) -> PairCounts:
        tables = published.tables(PairLayout(schema.sizes))
        return PairCounts(n, schema, tables, suppressed_below=self.suppress_below or 0)

    def _counts(self, schema: Schema, total: Residues, n: int) -> PairCounts:
        layout = PairLayout(schema.sizes)
        noise = self._noise(layout, n)
        if noise is None:
            return PairCounts(n, schema, checked_tables(layout, total.astype(np.int64), n))
        modulus = self._modulus(layout, n)
        signed = total.astype(np.int64)
        tables = layout.tables(np.where(signed > modulus // 2, signed - modulus, signed))
        for (i, j), table in zip(layout.pairs, tables, strict=True):
            if abs(int(table.sum()) - n) > noise.bound(n, table.size):
                raise Misconduct(
                    f"the sum is poisoned: the table of attributes {i} and {j} sums to "
                    f"{table.sum()}, too far from {n} for the noise that was agreed"
                )
        return PairCounts(n, schema, tables, noise=noise.standard_deviation(n))


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
