"""One view each: every party answers one group of attributes, with the whole budget.

1. The study file says what a record may spend (``epsilon``); which groups of attributes there are,
   and how often each is drawn, follows from the study alone (``together`` attributes each; or one
   or two of them, or more, as promises most with so many parties).
2. Each party draws one group by itself; nobody else chooses it, and it tells nothing.
3. It reports the combination of its answers in that group by subset selection: a set of
   combinations that holds the true one more often than chance.
4. The coordinator takes what comes until the deadline and announces the digest of all answers.
5. Whoever has the reports estimates: from all views that hold them, any table.

This is in none of the papers. At small budgets it beats all of them (``docs/estimation.md``).
"""

import hashlib
from functools import lru_cache
from typing import ClassVar

import msgspec
import numpy as np

from mpc_rr.errors import InputError
from mpc_rr.estimation.estimates import view_reports
from mpc_rr.estimation.uncertainty import ViewReports
from mpc_rr.estimation.views import (
    ViewDesign,
    all_views,
    best_views,
    guessed_shares,
    mixed_views,
    view_pair_errors,
)
from mpc_rr.network.envelope import Message
from mpc_rr.network.session import CoordinatorSession, PartySession
from mpc_rr.network.session.coordinator import RULES
from mpc_rr.privacy.disclosures import Disclosure, SubsetSelection
from mpc_rr.protocols.collection import (
    LARGEST_DOMAIN,
    LARGEST_EPSILON,
    ONE_POPULATION,
    AnswersTaken,
    plausible,
)
from mpc_rr.protocols.interface import HEAD_BYTES, MEMBER_BYTES, StudyProtocol
from mpc_rr.protocols.prospects import Prospect, of_dependences, of_randomizing, of_views
from mpc_rr.publication.ending import Setting
from mpc_rr.publication.reports import (
    CELL_BYTES,
    MOST_CHOSEN,
    AnsweredOneView,
    CollectedViews,
    answers_digest,
    pack_report,
    read_report,
    view_design,
)
from mpc_rr.randomness import Randomness
from mpc_rr.schema import Record, Schema

BEFORE_WEIGHTS = ONE_POPULATION - 1
"""The last rules by which all views were drawn alike."""
SMALLEST_EPSILON = 1e-9
"""Below, floats do not tell an answer that depends on the record from one that does not."""


class ViewAnswer(Message, frozen=True):
    """Party → coordinator, public: the number of its view, and the reported combinations."""

    step: ClassVar[str] = "view_answer"
    doing: ClassVar[str] = "parties report one group of answers each, randomized"
    report: bytes


@lru_cache(maxsize=16)
def _weighed(
    sizes: tuple[int, ...], n: int, epsilon: float, *, mixed: bool
) -> dict[tuple[int, ...], int]:
    if mixed:
        return mixed_views(sizes, n, epsilon)
    return dict.fromkeys(best_views(sizes, epsilon), 1)


class RRViews(StudyProtocol, frozen=True, tag="rr_views"):
    """``[protocol] name = "rr_views"`` with ``epsilon`` and perhaps ``together``."""

    epsilon: float
    together: int | None = None

    messages: ClassVar[tuple[type[Message], ...]] = (ViewAnswer,)

    def design(self, schema: Schema, fewest: int, rules: int = RULES) -> ViewDesign:
        """Step 1, for a study of at least so many parties.

        That is promised: how many are expected may change, and nobody's answer with it.
        """
        if not SMALLEST_EPSILON <= self.epsilon <= LARGEST_EPSILON:
            raise InputError(
                f"epsilon must be at least {SMALLEST_EPSILON:g} and at most {LARGEST_EPSILON:g}, "
                f"not {self.epsilon}"
            )
        if self.together is not None and not 2 <= self.together <= len(schema.sizes):
            raise InputError(f"together must be 2 to {len(schema.sizes)}, not {self.together}")
        if self.together is not None:
            weights = dict.fromkeys(all_views(len(schema.sizes), self.together), 1)
        else:
            mixed = rules >= ONE_POPULATION
            weights = _weighed(schema.sizes, fewest if mixed else 0, self.epsilon, mixed=mixed)
        return view_design(schema.sizes, tuple(weights), self.epsilon, tuple(weights.values()))

    def check(self, study: Setting) -> None:
        """The options must make sense."""
        mechanisms = self.design(study.schema, study.fewest).mechanisms.values()
        largest = max(mechanism.size for mechanism in mechanisms)
        if largest > LARGEST_DOMAIN:
            raise InputError(f"a view has {largest:,} combinations; give a smaller together")
        widest = max(mechanisms, key=lambda mechanism: mechanism.chosen)
        if widest.chosen > MOST_CHOSEN:
            raise InputError(
                f"at this epsilon each party would report {widest.chosen:,} of the "
                f"{widest.size:,} combinations of a view; at most {MOST_CHOSEN:,} are reported: "
                "give a smaller together"
            )

    def prospects(self, study: Setting) -> list[Prospect]:
        """Pairs that nobody may answer, and too much randomizing."""
        sizes, n = study.schema.sizes, study.expected
        design = self.design(study.schema, study.fewest)
        known = guessed_shares(sizes)
        errors = view_pair_errors(sizes, design.views, self.epsilon, n, known, design.weights)
        found = of_views(len(sizes), design.views, n, design.weights)

        def spread_of(pair: tuple[int, int], people: int) -> ViewReports | None:
            reports = view_reports(people, design, design.expected(people), pair)
            return reports if reports.parts else None

        tables = of_randomizing(errors, n)
        return [*found, *(tables or of_dependences(study.schema.attributes, spread_of, n))]

    def largest_message_bytes(self, study: Setting) -> int:
        """A report, or a list of all parties."""
        mechanisms = self.design(study.schema, study.fewest).mechanisms.values()
        chosen = max(mechanism.chosen for mechanism in mechanisms)
        return HEAD_BYTES + CELL_BYTES * chosen + MEMBER_BYTES * study.parties

    def disclosures(self, study: Setting) -> list[Disclosure]:
        """Whichever view is drawn, it costs the whole budget."""
        return [
            SubsetSelection(
                what=self.name,
                attributes=study.schema.names,
                groups=len(self.design(study.schema, study.fewest).views),
                epsilon=self.epsilon,
            )
        ]

    def given(self, schema: Schema, design: ViewDesign) -> bytes:
        """What a view is drawn from besides the record: nothing, if from the views of rules 3.

        Who drew from others in an earlier run, by an older program, does not answer again.
        """
        before = self.design(schema, 0, BEFORE_WEIGHTS)
        if (design.views, design.weights) == (before.views, before.weights):
            return b""
        drawn_from = msgspec.msgpack.encode((design.views, design.weights))
        return hashlib.sha256(drawn_from).digest()

    async def party(self, session: PartySession, schema: Schema, record: Record) -> AnsweredOneView:
        """A party's steps."""
        design, truth = self.design(schema, session.fewest), np.array([record], dtype=np.int64)

        # Steps 2 and 3: draw a view and report it, once and for all.
        def draw(rng: Randomness) -> bytes:
            drawn = design.randomize(truth, rng)
            number = int(drawn.drawn[0])
            cells = drawn.reports[design.views[number]][0]
            return pack_report(number, cells, design)

        report = session.once("view", draw, self.given(schema, design))
        await session.report(ViewAnswer(report))

        # Step 4: hear the digest of all answers.
        taken = await session.hear(AnswersTaken, check=plausible(session))
        view = tuple(schema.names[a] for a in design.views[read_report(report, design)[0]])
        return AnsweredOneView(schema, taken.asked, taken.answered, taken.digest, view)

    async def coordinator(self, session: CoordinatorSession, schema: Schema) -> CollectedViews:
        """The coordinator's part: take the answers that come, and commit to them."""
        design = self.design(schema, session.fewest, session.rules)

        def in_order(answer: ViewAnswer) -> None:
            read_report(answer.report, design)

        gathered = await session.gather(ViewAnswer, check=in_order)
        answers = {party: answer.report for party, answer in sorted(gathered.messages.items())}
        digest = answers_digest(answers)
        await session.announce(AnswersTaken(len(session.parties), len(answers), digest))
        return CollectedViews(
            schema, session.parties, answers, gathered.silent, gathered.faulty,
            self.epsilon, tuple(design.views), design.weights, session.rules < ONE_POPULATION,
        )  # fmt: skip
