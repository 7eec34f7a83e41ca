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
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from mpc_rr.errors import InputError
from mpc_rr.estimation.views import ViewDesign, ViewReports, all_views, best_views
from mpc_rr.network.messages import Message
from mpc_rr.network.session import CoordinatorSession, PartySession
from mpc_rr.privacy.ledger import Release
from mpc_rr.protocols.collection import (
    LARGEST_DOMAIN,
    LARGEST_EPSILON,
    MEMBER_BYTES,
    AnswersTaken,
    answers_digest,
    check_enough,
    plausible,
)
from mpc_rr.protocols.interface import Ending, StudyProtocol
from mpc_rr.randomness import Randomness
from mpc_rr.schema import Record, Schema

if TYPE_CHECKING:
    from mpc_rr.estimation.matrix import Codes

CELL_BYTES = 4


class ViewAnswer(Message, frozen=True):
    """Party → coordinator, public: the number of its view, and the reported combinations."""

    step: ClassVar[str] = "view_answer"
    report: bytes


class CollectedViews(Ending, frozen=True):
    """The reports of all who answered, by view."""

    schema: Schema
    asked: tuple[str, ...]
    answers: dict[str, bytes]
    silent: tuple[str, ...]
    faulty: dict[str, str]
    epsilon: float
    views: tuple[tuple[int, ...], ...]

    def __repr__(self) -> str:
        return f"CollectedViews({len(self.answers)} of {len(self.asked)} answered)"

    @property
    def n(self) -> int:
        """How many answered."""
        return len(self.answers)

    @property
    def digest(self) -> bytes:
        """The digest of the answers, as it was announced."""
        return answers_digest(self.answers)

    @property
    def design(self) -> ViewDesign:
        """How a record is reported."""
        return _design(self.schema.sizes, self.views, self.epsilon)

    def reports(self) -> ViewReports:
        """The reports as the mathematics wants them."""
        return view_reports(list(self.answers.values()), self.design)


class ViewParticipation(Ending, frozen=True):
    """What a party knows in the end."""

    schema: Schema
    asked: int
    n: int
    answers_digest: bytes
    view: tuple[str, ...]
    """The attributes it was about."""

    @property
    def digest(self) -> bytes:
        """The digest of the answers, as the coordinator announced it."""
        return self.answers_digest


@lru_cache(maxsize=16)
def _design(
    sizes: tuple[int, ...], views: tuple[tuple[int, ...], ...], epsilon: float
) -> ViewDesign:
    return ViewDesign(sizes, views, epsilon)


@lru_cache(maxsize=16)
def _views(sizes: tuple[int, ...], epsilon: float, together: int | None) -> (
    tuple[tuple[int, ...], ...]
):  # fmt: skip
    return tuple(all_views(len(sizes), together) if together else best_views(sizes, epsilon))


def read_report(report: bytes, design: ViewDesign) -> tuple[int, list[int]]:
    """Number of the view, and reported combinations; ``ValueError`` if an honest party has none."""
    numbers = np.frombuffer(report, dtype="<u4").tolist() if len(report) % CELL_BYTES == 0 else []
    if not numbers or numbers[0] >= len(design.views):
        raise ValueError("it names no view")
    mechanism = design.mechanisms[design.views[numbers[0]]]
    cells = numbers[1:]
    if len(cells) != mechanism.chosen or cells != sorted(set(cells)):
        raise ValueError(f"it does not hold {mechanism.chosen} different combinations in order")
    if cells[-1] >= mechanism.size:
        raise ValueError("it has a combination outside its view")
    return numbers[0], cells


def view_reports(answers: list[bytes], design: ViewDesign) -> ViewReports:
    """The answers of all parties, by view."""
    read = [read_report(answer, design) for answer in answers]
    drawn = np.array([view for view, _ in read], dtype=np.int64)
    reports: dict[tuple[int, ...], Codes] = {}
    for number, view in enumerate(design.views):
        mine = [cells for chosen, cells in read if chosen == number]
        shape = (len(mine), design.mechanisms[view].chosen)
        reports[view] = np.array(mine, dtype=np.int64).reshape(shape)
    return ViewReports(drawn, reports)


class RRViews(StudyProtocol, frozen=True, tag="rr_views"):
    """``[protocol] name = "rr_views"`` with ``epsilon`` and perhaps ``together``."""

    epsilon: float
    together: int | None = None

    def steps(self, parties: int) -> tuple[str, ...]:  # noqa: ARG002
        """One report."""
        return (ViewAnswer.step,)

    def mutual(self, parties: int) -> bool:  # noqa: ARG002
        """No party needs another."""
        return False

    def design(self, schema: Schema) -> ViewDesign:
        """Step 1."""
        if not 0 < self.epsilon <= LARGEST_EPSILON:
            raise InputError(
                f"epsilon must be positive and at most {LARGEST_EPSILON:g}, not {self.epsilon}"
            )
        if self.together is not None and not 2 <= self.together <= len(schema.sizes):
            raise InputError(f"together must be 2 to {len(schema.sizes)}, not {self.together}")
        views = _views(schema.sizes, self.epsilon, self.together)
        return _design(schema.sizes, views, self.epsilon)

    def check(self, schema: Schema, parties: int) -> None:  # noqa: ARG002
        """The options must make sense."""
        largest = max(mechanism.size for mechanism in self.design(schema).mechanisms.values())
        if largest > LARGEST_DOMAIN:
            raise InputError(f"a view has {largest:,} combinations; give a smaller together")

    def largest_message_bytes(self, schema: Schema, parties: int) -> int:
        """A report, or a list of all parties."""
        chosen = max(mechanism.chosen for mechanism in self.design(schema).mechanisms.values())
        return 65536 + CELL_BYTES * chosen + MEMBER_BYTES * parties

    def releases(self, study: str, schema: Schema, parties: int) -> list[Release]:  # noqa: ARG002
        """One release: whichever view is drawn, it costs the whole budget."""
        return [Release(study, self.name, schema.names, self.epsilon)]

    async def party(
        self, session: PartySession, schema: Schema, record: Record
    ) -> ViewParticipation:
        """A party's steps."""
        design, truth = self.design(schema), np.array([record], dtype=np.int64)

        # Steps 2 and 3: draw a view and report it, once and for all.
        def draw(rng: Randomness) -> bytes:
            drawn = design.randomize(truth, rng.uniform)
            number = int(drawn.drawn[0])
            cells = drawn.reports[design.views[number]][0]
            return np.array([number, *cells], dtype="<u4").tobytes()

        report = session.once("view", draw)
        await session.report(ViewAnswer(report))

        # Step 4: hear the digest of all answers.
        taken = await session.hear(AnswersTaken, check=plausible(session))
        view = tuple(schema.names[a] for a in design.views[read_report(report, design)[0]])
        return ViewParticipation(schema, taken.asked, taken.answered, taken.digest, view)

    async def coordinator(self, session: CoordinatorSession, schema: Schema) -> CollectedViews:
        """The coordinator's part: take the answers that come, and commit to them."""
        design = self.design(schema)

        def in_order(answer: ViewAnswer) -> None:
            read_report(answer.report, design)

        gathered = await session.gather(ViewAnswer, check=in_order)
        answers = {party: answer.report for party, answer in sorted(gathered.messages.items())}
        check_enough(session, list(answers))
        digest = answers_digest(answers)
        await session.announce(AnswersTaken(len(session.parties), len(answers), digest))
        return CollectedViews(
            schema, session.parties, answers, gathered.silent, gathered.faulty,
            self.epsilon, tuple(design.views),
        )  # fmt: skip
