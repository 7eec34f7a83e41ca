"""RR on pairs, then a secure sum (paper 000 §4.3): dependences without anybody's true answers.

1. Each party randomizes each pair of its answers as one value, once and for all, with the sum of
   what the two may spend: the same for all attributes, or what each has of its own (``each``).
2. It writes the randomized values as one vector with a 1 in its cell of each pair's table.
3. The secure sum adds the vectors of all parties: everybody learns how often each randomized pair
   was reported, nobody who reported it. A second sum without somebody would show what that party
   reported, so a party that keeps a ledger is counted once, unless its owner says otherwise.
4. Eq. (2) undoes the randomization of each table.

The paper counts only the ε of one pair, because the secure sum hides that all pairs are one
person's. Whoever breaks the sum (all other parties together, or as many as the masks of a masked
sum do not withstand) can link them, and then they add up.
The ledger shows both.
"""

import math
from collections.abc import Sequence

import numpy as np

from mpc_rr.errors import InputError
from mpc_rr.estimation.matrix import KeepOrUniform
from mpc_rr.estimation.pairs import PairLayout
from mpc_rr.estimation.planning import table_error
from mpc_rr.estimation.uncertainty import RandomizedReports
from mpc_rr.estimation.views import guessed_shares
from mpc_rr.network.envelope import Message
from mpc_rr.network.session import CoordinatorSession, PartySession
from mpc_rr.privacy.disclosures import Disclosure, RandomizedSum
from mpc_rr.protocols.budgets import Own, by_budget, check_budgets_only, matrices_of, own_matrices
from mpc_rr.protocols.collection import LARGEST_EPSILON
from mpc_rr.protocols.exact_pairs import checked_tables
from mpc_rr.protocols.interface import HEAD_BYTES
from mpc_rr.protocols.prospects import Prospect, of_dependences, of_own_budgets, of_randomizing
from mpc_rr.protocols.sums.choice import Summed, Summing
from mpc_rr.publication.ending import Setting
from mpc_rr.publication.pairs import RandomizedPairs
from mpc_rr.randomness import Randomness
from mpc_rr.schema import Record, Schema


class RRPairs(Summing, frozen=True, tag="rr_pairs"):
    """``[protocol] name = "rr_pairs"``, with ``keep`` or ``epsilon`` as RR-Independent has them.

    A pair gets the sum of what RR-Independent would spend on its two attributes.
    """

    keep: float | None = None
    epsilon: float | None = None
    each: dict[str, Own] | None = None

    def rounds(self, study: Setting) -> tuple[type[Message], ...]:
        """Those of the sum."""
        return self.rounds_of_sum(study, confided=False)

    def check(self, study: Setting) -> None:
        """The options must make sense, and leave something to estimate."""
        self.check_sum(study)
        check_budgets_only(study.schema, self.each, "pairs of answers are randomized as one value")
        for matrix in self._matrices(study.schema):
            matrix.check_invertible()
            if not matrix.epsilon <= LARGEST_EPSILON:
                raise InputError(f"ε = {matrix.epsilon:.3g} for a pair protects nobody")

    def prospects(self, study: Setting) -> list[Prospect]:
        """Each pair is randomized as one value."""
        sizes, n = study.schema.sizes, study.expected
        shares, pairs = guessed_shares(sizes), PairLayout(sizes).pairs
        matrices = dict(zip(pairs, self._matrices(study.schema), strict=True))
        errors = (table_error(shares[pair], [matrices[pair]], n) for pair in pairs)

        def spread_of(pair: tuple[int, int], people: int) -> RandomizedReports:
            return RandomizedReports(people, matrices[pair])

        tables = of_randomizing(errors, n)
        own = own_matrices(study.schema, self.each)
        budgets = {name: matrix.epsilon for name, matrix in own.items()}
        (event,) = self.disclosures(study)
        return [
            *super().prospects(study),
            *(tables or of_dependences(study.schema.attributes, spread_of, n)),
            *of_own_budgets(budgets, event.answers, "is one value with each of the others"),
        ]

    def largest_message_bytes(self, study: Setting) -> int:
        """That of the sum."""
        cells = PairLayout(study.schema.sizes).cells
        return HEAD_BYTES + self.largest_sum_message(study, cells, study.expected + 1)

    def disclosures(self, study: Setting) -> list[Disclosure]:
        """All pairs add up against whoever breaks the sum; the paper counts one pair."""
        spent = [matrix.epsilon for matrix in self._matrices(study.schema)]
        pairs = PairLayout(study.schema.sizes).pairs
        return [
            RandomizedSum(
                what=self.name,
                attributes=study.schema.names,
                epsilon=sum(spent),
                claimed=max(spent),
                crowd=self.hidden_among(study),
                withstands=self.masks_withstand(study),
                honest_coordinator=self.trusts_coordinator(study),
                **self.total_over(study),
                by_answer=tuple(
                    math.fsum(e for e, pair in zip(spent, pairs, strict=True) if place in pair)
                    for place in range(len(study.schema.names))
                ),
            )
        ]

    def _matrices(self, schema: Schema) -> list[KeepOrUniform]:
        sizes = schema.sizes
        single = matrices_of(schema, self.each, by_budget(self.keep, self.epsilon))
        spent = [matrix.epsilon for matrix in single]
        return [
            KeepOrUniform.from_epsilon(sizes[i] * sizes[j], spent[i] + spent[j])
            for i, j in PairLayout(sizes).pairs
        ]

    async def party(self, session: PartySession, schema: Schema, record: Record) -> RandomizedPairs:
        """A party's steps."""
        layout, matrices = PairLayout(schema.sizes), self._matrices(schema)
        drawn = session.once("pairs", lambda rng: _randomize(layout, matrices, record, rng))
        vector = layout.vector(np.frombuffer(drawn, dtype="<u4").tolist())
        total = await self.add_party(session, vector, self.crowd(session) + 1)
        return self._ending(layout, schema, total)

    async def coordinator(self, session: CoordinatorSession, schema: Schema) -> RandomizedPairs:
        """The coordinator's part: it learns what everybody learns."""
        layout = PairLayout(schema.sizes)
        total = await self.add_coordinator(session, layout.cells, self.crowd(session) + 1)
        return self._ending(layout, schema, total)

    def _ending(self, layout: PairLayout, schema: Schema, total: Summed) -> RandomizedPairs:
        tables = checked_tables(layout.tables(total.values), layout, total.n, margins_agree=False)
        matrices = tuple(self._matrices(schema))
        return RandomizedPairs(total.n, schema, tables, matrices, together=True, lost=total.lost)


def _randomize(
    layout: PairLayout, matrices: Sequence[KeepOrUniform], record: Record, rng: Randomness
) -> bytes:
    """The cell of each pair's table that is reported, four bytes each."""
    cells = []
    for (i, j), matrix in zip(layout.pairs, matrices, strict=True):
        truth = np.array([record[i] * layout.sizes[j] + record[j]])
        cells.append(int(matrix.randomize(truth, rng)[0]))
    return np.array(cells, dtype="<u4").tobytes()
