"""RR on pairs, then a secure sum (paper 000 §4.3): dependences without anybody's true answers.

1. Each party randomizes each pair of its answers as one value, once and for all.
2. It writes the randomized values as one vector with a 1 in its cell of each pair's table.
3. The secure sum adds the vectors of all parties: everybody learns how often each randomized pair
   was reported, nobody who reported it. A second sum without somebody would show what that party
   reported, so a party that keeps books is counted once, unless its owner says otherwise.
4. Eq. (2) undoes the randomization of each table.

The paper counts only the ε of one pair, because the secure sum hides that all pairs are one
person's. Whoever breaks the sum (all other parties together) can link them, and then they add up.
The ledger shows both.
"""

import hashlib
from collections.abc import Sequence

import numpy as np

from mpc_rr.errors import InputError
from mpc_rr.estimation.distribution import Estimate, Randomization, unbiased
from mpc_rr.estimation.kronecker import Kronecker
from mpc_rr.estimation.matrix import Array, KeepOrUniform
from mpc_rr.estimation.pairs import Counts, PairLayout
from mpc_rr.estimation.planning import chosen_keep
from mpc_rr.estimation.tables import shrunk_table
from mpc_rr.network.session import CoordinatorSession, PartySession
from mpc_rr.privacy.ledger import Release
from mpc_rr.protocols.collection import LARGEST_EPSILON
from mpc_rr.protocols.exact_pairs import COUNTED, checked_tables
from mpc_rr.protocols.interface import Ending
from mpc_rr.protocols.pair_sums import PairSums, Total
from mpc_rr.randomness import Randomness
from mpc_rr.schema import Record, Schema


class RandomizedPairs(Ending, frozen=True):
    """How often each pair of randomized answers was reported, and how they were randomized.

    ``together``: each pair was randomized as one value; else each attribute by itself.
    """

    n: int
    schema: Schema
    counts: list[Counts]
    keeps: tuple[float, ...]
    """By pair if ``together``, else by attribute."""
    together: bool

    def __repr__(self) -> str:
        return f"RandomizedPairs(n={self.n}, {len(self.counts)} tables)"

    @property
    def digest(self) -> bytes:
        """What parties compare to be sure that all have the same result."""
        hasher = hashlib.sha256(b"mpc-rr randomized pairs\0" + str(self.n).encode())
        for table in self.counts:
            hasher.update(b"\0" + table.astype("<i8").tobytes())
        return hasher.digest()

    def estimates(self) -> dict[tuple[int, int], Estimate]:
        """Eq. (2) for each pair, with standard errors."""
        pairs = PairLayout(self.schema.sizes).pairs
        found = {}
        for number, ((i, j), counts) in enumerate(zip(pairs, self.counts, strict=True)):
            matrix = self._randomization(number, i, j)
            shape = (-1,) if self.together else counts.shape
            raw = unbiased(counts.reshape(shape), matrix)
            errors = raw.standard_errors.reshape(counts.shape)
            found[i, j] = Estimate(raw.shares.reshape(counts.shape), errors, raw.n)
        return found

    def _randomization(self, number: int, i: int, j: int) -> Randomization:
        sizes = self.schema.sizes
        if self.together:
            return KeepOrUniform(sizes[i] * sizes[j], self.keeps[number])
        return Kronecker([KeepOrUniform(sizes[a], self.keeps[a]) for a in (i, j)])

    def pair_shares(self) -> dict[tuple[int, int], Array]:
        """Proper tables: dependence that may be noise is shrunk away."""
        return {pair: shrunk_table(estimate) for pair, estimate in self.estimates().items()}


class RRPairs(PairSums, frozen=True, tag="rr_pairs"):
    """``[protocol] name = "rr_pairs"``, with ``keep`` or ``epsilon`` as RR-Independent has them.

    A pair gets the sum of what RR-Independent would spend on its two attributes.
    """

    keep: float | None = None
    epsilon: float | None = None

    def steps(self, parties: int) -> tuple[str, ...]:
        """Those of the sum."""
        return self.steps_of_sum(parties, confided=False)

    def check(self, schema: Schema, parties: int) -> None:
        """The options must make sense, and leave something to estimate."""
        self.check_sum(parties)
        for matrix in self._matrices(schema):
            matrix.check_invertible()
            if not matrix.epsilon <= LARGEST_EPSILON:
                raise InputError(f"ε = {matrix.epsilon:.3g} for a pair protects nobody")

    def largest_message_bytes(self, schema: Schema, parties: int) -> int:
        """That of the sum."""
        return 65536 + self.largest_sum_message(
            parties, PairLayout(schema.sizes).cells, parties + 1
        )

    def releases(self, study: str, schema: Schema, parties: int) -> list[Release]:
        """All pairs add up against whoever breaks the sum; the paper counts one pair."""
        spent = [matrix.epsilon for matrix in self._matrices(schema)]
        return [Release(study, self.name, schema.names, sum(spent), max(spent), parties)]

    def _matrices(self, schema: Schema) -> list[KeepOrUniform]:
        sizes = schema.sizes
        keep = chosen_keep(self.keep, self.epsilon, sizes)
        spent = [KeepOrUniform(size, keep).epsilon for size in sizes]
        return [
            KeepOrUniform.from_epsilon(sizes[i] * sizes[j], spent[i] + spent[j])
            for i, j in PairLayout(sizes).pairs
        ]

    async def party(self, session: PartySession, schema: Schema, record: Record) -> RandomizedPairs:
        """A party's steps."""
        session.check_not_told_before(*COUNTED)
        layout, matrices = PairLayout(schema.sizes), self._matrices(schema)
        drawn = session.once("pairs", lambda rng: _randomize(layout, matrices, record, rng))
        vector = layout.vector(np.frombuffer(drawn, dtype="<u4").tolist())
        total = await self.add_party(
            session, vector, self.crowd(session) + 1,
            before_sending=lambda: session.tell_once(*COUNTED),
        )  # fmt: skip
        return self._ending(layout, schema, total)

    async def coordinator(self, session: CoordinatorSession, schema: Schema) -> RandomizedPairs:
        """The coordinator's part: it learns what everybody learns."""
        layout = PairLayout(schema.sizes)
        total = await self.add_coordinator(session, layout.cells, self.crowd(session) + 1)
        return self._ending(layout, schema, total)

    def _ending(self, layout: PairLayout, schema: Schema, total: Total) -> RandomizedPairs:
        tables = checked_tables(layout.tables(total.values), layout, total.n, margins_agree=False)
        keeps = tuple(matrix.keep for matrix in self._matrices(schema))
        return RandomizedPairs(total.n, schema, tables, keeps, together=True, lost=total.lost)


def _randomize(
    layout: PairLayout, matrices: Sequence[KeepOrUniform], record: Record, rng: Randomness
) -> bytes:
    """The cell of each pair's table that is reported, four bytes each."""
    cells = []
    for (i, j), matrix in zip(layout.pairs, matrices, strict=True):
        truth = np.array([record[i] * layout.sizes[j] + record[j]])
        cells.append(int(matrix.randomize(truth, rng.uniform)[0]))
    return np.array(cells, dtype="<u4").tobytes()
