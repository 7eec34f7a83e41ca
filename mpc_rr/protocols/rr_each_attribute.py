"""RR on each attribute (paper 000 §4.1): dependences from answers randomized one by one.

1. Each party randomizes each of its answers by itself, once and for all, and reports them. All
   have one budget, or single ones a budget or a matrix of their own (``each``).
2. The coordinator counts how often each pair of randomized answers was reported and announces the
   tables; they are in the transcript, where anybody can count again.
3. Eq. (2), applied to both attributes of a pair, undoes the randomization.
"""

from typing import ClassVar

import numpy as np

from mpc_rr.estimation.designs import Design, one_by_one
from mpc_rr.estimation.pairs import Counts, PairLayout
from mpc_rr.network.envelope import Message, Way
from mpc_rr.network.session import CoordinatorSession, PartySession
from mpc_rr.network.session.shared import digest_of
from mpc_rr.privacy.disclosures import Disclosure
from mpc_rr.protocols.budgets import Own, by_budget, matrices_of
from mpc_rr.protocols.collection import (
    check_design,
    disclosures_of,
    prospects_of,
    unpack_record,
)
from mpc_rr.protocols.interface import HEAD_BYTES, MEMBER_BYTES, StudyProtocol
from mpc_rr.protocols.prospects import Prospect
from mpc_rr.publication.ending import Setting
from mpc_rr.publication.pairs import RandomizedPairs
from mpc_rr.publication.reports import CODE_BYTES, pack_record
from mpc_rr.schema import Record, Schema

COUNT_BYTES = 4


class FirstAnswer(Message, frozen=True):
    """Party → coordinator, public: its answers, each randomized by itself."""

    step: ClassVar[str] = "first_answer"
    doing: ClassVar[str] = "parties report randomized answers, to find dependences"
    codes: bytes


class ReportedPairs(Message, frozen=True):
    """Coordinator → everyone: how often each pair of randomized answers was reported."""

    step: ClassVar[str] = "reported_pairs"
    doing: ClassVar[str] = "the coordinator announces how often each pair was reported"
    way: ClassVar[Way] = "announce"
    n: int
    counts: bytes


class RREachAttribute(StudyProtocol, frozen=True, tag="rr_each_attribute"):
    """``[protocol] name = "rr_each_attribute"`` with ``keep`` or ``epsilon``, and ``each``."""

    keep: float | None = None
    epsilon: float | None = None
    each: dict[str, Own] | None = None

    messages: ClassVar[tuple[type[Message], ...]] = (FirstAnswer,)

    def design(self, schema: Schema) -> Design:
        """Each attribute by itself."""
        return one_by_one(matrices_of(schema, self.each, by_budget(self.keep, self.epsilon)))

    def check(self, study: Setting) -> None:
        """The options must make sense, and leave something to estimate."""
        check_design(self.design(study.schema))

    def prospects(self, study: Setting) -> list[Prospect]:
        """As of any answers that are randomized one by one."""
        return prospects_of(study, self.design(study.schema))

    def largest_message_bytes(self, study: Setting) -> int:
        """The tables of all pairs, or a list of all parties."""
        sizes = study.schema.sizes
        tables = COUNT_BYTES * PairLayout(sizes).cells
        return HEAD_BYTES + tables + CODE_BYTES * len(sizes) + MEMBER_BYTES * study.parties

    def disclosures(self, study: Setting) -> list[Disclosure]:
        """Each attribute by itself, seen under the party's name."""
        return disclosures_of(self.name, study.schema, self.design(study.schema))

    async def party(self, session: PartySession, schema: Schema, record: Record) -> RandomizedPairs:
        """A party's steps."""
        design, truth = self.design(schema), np.array([record], dtype=np.int64)
        codes = session.once("first", lambda rng: pack_record(design.randomize(truth, rng)[0]))
        await session.report(FirstAnswer(codes))

        def in_order(message: ReportedPairs) -> None:
            if not session.fewest <= message.n <= session.most:
                raise ValueError(f"{message.n} answers in all")
            found(message)

        def found(message: ReportedPairs) -> RandomizedPairs:
            return session.shared(
                "tables", (digest_of(message),), lambda: self._ending(schema, message)
            )

        return found(await session.hear(ReportedPairs, check=in_order))

    async def coordinator(self, session: CoordinatorSession, schema: Schema) -> RandomizedPairs:
        """The coordinator's part: take what comes, count, announce."""

        def in_domain(answer: FirstAnswer) -> None:
            unpack_record(answer.codes, schema.sizes)

        gathered = await session.gather(FirstAnswer, check=in_domain)
        answers = [
            unpack_record(answer.codes, schema.sizes) for answer in gathered.messages.values()
        ]
        message = ReportedPairs(len(answers), count_pairs(np.stack(answers), schema.sizes))
        await session.announce(message)
        return self._ending(schema, message)

    def _ending(self, schema: Schema, message: ReportedPairs) -> RandomizedPairs:
        layout = PairLayout(schema.sizes)
        if len(message.counts) != COUNT_BYTES * layout.cells:
            raise ValueError("it does not hold one count for each cell")
        tables = layout.tables(np.frombuffer(message.counts, dtype="<u4").astype(np.int64))
        wrong = layout.inconsistency(tables, message.n)
        if wrong is not None:
            raise ValueError(wrong)
        matrices = self.design(schema).matrices
        return RandomizedPairs(message.n, schema, tables, matrices, together=False)


def count_pairs(reported: Counts, sizes: tuple[int, ...]) -> bytes:
    """The tables of all pairs as one vector, four bytes a cell."""
    layout = PairLayout(sizes)
    counts = [
        np.bincount(reported[:, i] * sizes[j] + reported[:, j], minlength=sizes[i] * sizes[j])
        for i, j in layout.pairs
    ]
    return np.concatenate(counts).astype("<u4").tobytes()
