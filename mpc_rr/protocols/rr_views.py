"""One view each: every party answers one group of attributes, with the whole budget.

1. The study file says what a record may spend (``epsilon``); which groups of attributes there are
   follows from the schema alone (``together`` attributes each, or as many as promise most).
2. Each party draws one group by itself; nobody else chooses it, and it tells nothing.
3. It reports the combination of its answers in that group by subset selection: a set of
   combinations that holds the true one more often than chance.
4. The coordinator takes what comes until the deadline and announces the digest of all answers.
5. Whoever has the reports estimates: from all views that hold them, any table.

This is in none of the papers. At small budgets it beats all of them (``docs/estimation.md``).
"""

from functools import lru_cache
from typing import ClassVar

import numpy as np

from mpc_rr.errors import InputError
from mpc_rr.estimation.views import (
    ViewDesign,
    all_views,
    best_views,
    guessed_shares,
    view_pair_errors,
)
from mpc_rr.network.envelope import Message
from mpc_rr.network.session import CoordinatorSession, PartySession
from mpc_rr.privacy.disclosures import Disclosure, SubsetSelection
from mpc_rr.protocols.collection import (
    LARGEST_DOMAIN,
    LARGEST_EPSILON,
    AnswersTaken,
    plausible,
)
from mpc_rr.protocols.interface import HEAD_BYTES, MEMBER_BYTES, StudyProtocol
from mpc_rr.protocols.prospects import of_randomizing, of_views
from mpc_rr.publication.ending import Setting
from mpc_rr.publication.reports import (
    CELL_BYTES,
    AnsweredOneView,
    CollectedViews,
    answers_digest,
    read_report,
    view_design,
)
from mpc_rr.randomness import Randomness
from mpc_rr.schema import Record, Schema

SMALLEST_EPSILON = 1e-9
"""Below, floats do not tell an answer that depends on the record from one that does not."""


class ViewAnswer(Message, frozen=True):
    """Party → coordinator, public: the number of its view, and the reported combinations."""

    step: ClassVar[str] = "view_answer"
    doing: ClassVar[str] = "parties report one group of answers each, randomized"
    report: bytes


@lru_cache(maxsize=16)
def _views(sizes: tuple[int, ...], epsilon: float, together: int | None) -> (
    tuple[tuple[int, ...], ...]
):  # fmt: skip
    return tuple(all_views(len(sizes), together) if together else best_views(sizes, epsilon))


class RRViews(StudyProtocol, frozen=True, tag="rr_views"):
    """``[protocol] name = "rr_views"`` with ``epsilon`` and perhaps ``together``."""

    epsilon: float
    together: int | None = None

    messages: ClassVar[tuple[type[Message], ...]] = (ViewAnswer,)

    def design(self, schema: Schema) -> ViewDesign:
        """Step 1."""
        if not SMALLEST_EPSILON <= self.epsilon <= LARGEST_EPSILON:
            raise InputError(
                f"epsilon must be at least {SMALLEST_EPSILON:g} and at most {LARGEST_EPSILON:g}, "
                f"not {self.epsilon}"
            )
        if self.together is not None and not 2 <= self.together <= len(schema.sizes):
            raise InputError(f"together must be 2 to {len(schema.sizes)}, not {self.together}")
        views = _views(schema.sizes, self.epsilon, self.together)
        return view_design(schema.sizes, views, self.epsilon)

    def check(self, study: Setting) -> None:
        """The options must make sense."""
        mechanisms = self.design(study.schema).mechanisms.values()
        largest = max(mechanism.size for mechanism in mechanisms)
        if largest > LARGEST_DOMAIN:
            raise InputError(f"a view has {largest:,} combinations; give a smaller together")

    def prospects(self, study: Setting) -> list[str]:
        """Pairs that nobody may answer, and too much randomizing."""
        sizes, n, views = study.schema.sizes, study.expected, self.design(study.schema).views
        errors = view_pair_errors(sizes, views, self.epsilon, n, guessed_shares(sizes))
        return [*of_views(len(sizes), views, n), *of_randomizing(errors, n)]

    def largest_message_bytes(self, study: Setting) -> int:
        """A report, or a list of all parties."""
        mechanisms = self.design(study.schema).mechanisms.values()
        chosen = max(mechanism.chosen for mechanism in mechanisms)
        return HEAD_BYTES + CELL_BYTES * chosen + MEMBER_BYTES * study.parties

    def disclosures(self, study: Setting) -> list[Disclosure]:
        """Whichever view is drawn, it costs the whole budget."""
        return [
            SubsetSelection(
                what=self.name,
                attributes=study.schema.names,
                groups=len(self.design(study.schema).views),
                epsilon=self.epsilon,
            )
        ]

    async def party(self, session: PartySession, schema: Schema, record: Record) -> AnsweredOneView:
        """A party's steps."""
        design, truth = self.design(schema), np.array([record], dtype=np.int64)

        # Steps 2 and 3: draw a view and report it, once and for all.
        def draw(rng: Randomness) -> bytes:
            drawn = design.randomize(truth, rng)
            number = int(drawn.drawn[0])
            cells = drawn.reports[design.views[number]][0]
            return np.array([number, *cells], dtype="<u4").tobytes()

        report = session.once("view", draw)
        await session.report(ViewAnswer(report))

        # Step 4: hear the digest of all answers.
        taken = await session.hear(AnswersTaken, check=plausible(session))
        view = tuple(schema.names[a] for a in design.views[read_report(report, design)[0]])
        return AnsweredOneView(schema, taken.asked, taken.answered, taken.digest, view)

    async def coordinator(self, session: CoordinatorSession, schema: Schema) -> CollectedViews:
        """The coordinator's part: take the answers that come, and commit to them."""
        design = self.design(schema)

        def in_order(answer: ViewAnswer) -> None:
            read_report(answer.report, design)

        gathered = await session.gather(ViewAnswer, check=in_order)
        answers = {party: answer.report for party, answer in sorted(gathered.messages.items())}
        digest = answers_digest(answers)
        await session.announce(AnswersTaken(len(session.parties), len(answers), digest))
        return CollectedViews(
            schema, session.parties, answers, gathered.silent, gathered.faulty,
            self.epsilon, tuple(design.views),
        )  # fmt: skip
