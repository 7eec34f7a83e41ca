"""Block aggregation (paper 002, RRBA): tables that follow the answers, block after block.

1. From the study file follow the combinations of ``together`` attributes (or the chosen
   ``tables``) and the views: every combination is in one view, no attribute twice in a view, and
   no more than ``answers`` combinations. If it gives ``epsilon``, p follows, too.
2. Parties are asked in blocks. Each gets a view and, for each of its combinations, a table T: at
   first uniform, then what all earlier blocks tell, mixed with the uniform table (``floor``).
3. A party refuses a table that is no distribution or goes below the floor. It enters in its ledger
   what its answers cost with these very tables. For each combination it then answers the truth
   with probability p, and otherwise draws from T; once and for all.
4. The coordinator takes what comes until the deadline, updates all tables, and asks the next block.
   With ``block = 1`` this is the paper's first version, client by client.
   If the study says when it has ``enough`` (every share known to within so much), and that is so,
   nobody else is asked.
5. It announces the digest of all answers. Whoever has them estimates every table, and can repeat
   what T was shown to whom: each answer names the digest of the question.
"""

import hashlib
import math
from collections import Counter
from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from scipy.special import ndtri

from mpc_rr.errors import InputError, quoted
from mpc_rr.estimation.blocks import (
    Answered,
    answer_epsilon,
    check_truth,
    claimed_epsilon,
    epsilon_bound,
    next_table,
    pooled,
    respond,
    truth_for_views,
)
from mpc_rr.estimation.combinations import (
    Combination,
    CombinationView,
    chosen_views,
    combination_views,
    divided,
)
from mpc_rr.estimation.followed import FollowedTables, LeastKnown
from mpc_rr.estimation.foretelling import expected_answers
from mpc_rr.estimation.intervals import cell_intervals
from mpc_rr.estimation.matrix import Array
from mpc_rr.estimation.planning import block_error
from mpc_rr.estimation.uncertainty import BlockAnswers
from mpc_rr.estimation.views import guessed_table
from mpc_rr.network.envelope import Message, Way, encode
from mpc_rr.network.session import CoordinatorSession, PartySession, Watched, check_enough
from mpc_rr.privacy.disclosures import AdaptiveResponse, Disclosure
from mpc_rr.protocols.collection import (
    LARGEST_EPSILON,
    AnswersTaken,
    plausible,
)
from mpc_rr.protocols.interface import HEAD_BYTES, MEMBER_BYTES, StudyProtocol
from mpc_rr.protocols.prospects import Prospect, of_answers, of_dependences, of_randomizing
from mpc_rr.publication.blocks import AnsweredOneBlock, CollectedBlocks
from mpc_rr.publication.ending import Setting
from mpc_rr.publication.reports import answers_digest
from mpc_rr.randomness import Randomness
from mpc_rr.schema import Record, Schema

CELL_BYTES = 4
QUESTION_BYTES = 32
LARGEST_TABLE = 100_000
LEAST_TRUTH = 0.001
LEAST_FLOOR = 1e-4
ROUNDING = 1e-9
EXACT = 1e-12
"""How far a printed bound on ε may be from what it is, relative to it, by rounding."""
ANSWER = "block answer"
"""Under which a party keeps what it answered."""
ROUNDED = 2
"""Since these rules tables are rounded, so that they are the same on every machine."""
SUMMED_UP = WITHOUT_DRAWING = WIDE_NEAR_ZERO = 3
"""Since these rules blocks are summed up one by one, independence is tested without Monte Carlo,
and a cell that nobody answered is not known for sure."""

AGREEING = 4
"""Since these rules tables agree about all they share."""
TOLD_BY_BLOCK = 6
"""Since these rules shares that were known least are told by block, and when §5 would stop."""
MOST_WATCHED = 10
"""Of so many tables people see a share while the study runs."""
WORTH_ANOTHER_LOOK = 1.01
"""How many times as many answers there must be for that."""


class Question(Message, frozen=True):
    """2, coordinator → party: its block, its view, and the table of each of its combinations.

    Block 0 and no tables: no answer is needed any more.
    """

    step: ClassVar[str] = "question"
    doing: ClassVar[str] = "the coordinator asks the next block"
    way: ClassVar[Way] = "hand out"
    block: int
    view: int
    tables: tuple[bytes, ...]
    """Shares as float64, little-endian."""

    @property
    def digest(self) -> bytes:
        """By which an answer names its question."""
        return hashlib.sha256(b"mpc-rr question\0" + encode(self)).digest()

    def shares(self) -> list[Array]:
        """The tables, flat; ``ValueError`` if these are no numbers."""
        return [np.frombuffer(table, dtype="<f8") for table in self.tables]


NOT_NEEDED = Question(0, 0, ())


class BlockAnswer(Message, frozen=True):
    """4, party → coordinator, public: the digest of its question, and a cell for each combination.

    Four bytes each, little-endian.
    """

    step: ClassVar[str] = "block_answer"
    doing: ClassVar[str] = "a block of parties answers"
    answer: bytes


class BlockAggregation(StudyProtocol, frozen=True, kw_only=True, tag="block_aggregation"):
    """``[protocol] name = "block_aggregation"`` with ``p`` or ``epsilon``, ``floor``, ``block``."""

    p: float | None = None
    floor: float
    block: int
    together: int = 2
    enough: float | None = None
    epsilon: float | None = None
    """Instead of p: what the dearest view may cost."""
    answers: int | None = None
    """How many combinations a party is asked at most; not given: a whole view."""
    tables: tuple[tuple[str, ...], ...] | None = None
    """The combinations that are asked, instead of all of ``together`` attributes."""

    messages: ClassVar[tuple[type[Message], ...]] = (BlockAnswer,)

    def check(self, study: Setting) -> None:
        """The options must make sense."""
        schema, parties = study.schema, study.parties
        if not LEAST_FLOOR <= self.floor <= 1:
            raise InputError(
                f"floor lies between {LEAST_FLOOR:g} and 1, not {self.floor}: without it nothing "
                "bounds what an answer costs, and parties refuse tables with a zero"
            )
        if not 1 <= self.block <= parties:
            raise InputError(f"block must be 1 to {parties}, not {self.block}")
        if not 2 <= self.together <= len(schema.sizes):
            raise InputError(f"together must be 2 to {len(schema.sizes)}, not {self.together}")
        if self.enough is not None and not 0 < self.enough < 1:
            raise InputError(f"enough lies between 0 and 1, not {self.enough}")
        if self.answers is not None and self.answers < 1:
            raise InputError(f"answers must be at least 1, not {self.answers}")
        if self.tables is not None:
            self._check_tables(schema, self.tables)
        largest = max(cells_of(schema, c) for view in self.views(schema) for c in view)
        if largest > LARGEST_TABLE:
            raise InputError(f"a table would have {largest:,} cells; ask fewer attributes together")
        self._check_truth(schema)

    def _check_tables(self, schema: Schema, tables: tuple[tuple[str, ...], ...]) -> None:
        if self.together != 2:
            raise InputError("give either tables or together")
        if not tables:
            raise InputError("tables names none; leave it out to ask all")
        seen: set[frozenset[str]] = set()
        for number, names in enumerate(tables, start=1):
            unknown = [name for name in names if name not in schema.names]
            if unknown:
                raise InputError(f"tables: {quoted(unknown[0])} is no attribute of this study")
            if len(names) < 2 or len(set(names)) < len(names):
                raise InputError(f"tables: number {number} must name two attributes or more, once")
            if frozenset(names) in seen:
                raise InputError(f"tables: number {number} was named before")
            seen.add(frozenset(names))

    def _check_truth(self, schema: Schema) -> None:
        if (self.p is None) == (self.epsilon is None):
            raise InputError("give either p or epsilon")
        if self.epsilon is not None and not 0 < self.epsilon <= LARGEST_EPSILON:
            raise InputError(
                f"epsilon must be positive and at most {LARGEST_EPSILON:g}, not {self.epsilon}"
            )
        if self.p is not None:
            check_truth(self.p)
            if self.p < LEAST_TRUTH:
                raise InputError(f"p must be at least {LEAST_TRUTH}: nothing would be learnt")
        elif self.truth(schema) < LEAST_TRUTH:
            most = max(map(len, self.views(schema)))
            raise InputError(
                f"epsilon = {self.epsilon:g} leaves a p below {LEAST_TRUTH}, with {most} answers "
                "of a party and this floor: nothing would be learnt; give fewer answers or a "
                "higher floor"
            )

    def truth(self, schema: Schema) -> float:
        """p, as given, or so that what the dearest view may cost is ``epsilon``."""
        if self.p is not None:
            return self.p
        assert self.epsilon is not None  # checked
        views = frozenset(
            tuple(sorted(cells_of(schema, c) for c in view)) for view in self.views(schema)
        )
        return truth_for_views(self.epsilon, self.floor, views)

    def views(self, schema: Schema) -> tuple[CombinationView, ...]:
        """Step 1."""
        if self.tables is None:
            views = combination_views(len(schema.sizes), self.together)
        else:
            places = [tuple(sorted(map(schema.names.index, names))) for names in self.tables]
            views = chosen_views(places)
        return views if self.answers is None else divided(views, self.answers)

    def prospects(self, study: Setting) -> list[Prospect]:
        """Fewer answers than cells, and too much randomizing."""
        sizes, views = study.schema.sizes, self.views(study.schema)
        p, answers = self.truth(study.schema), study.expected / len(views)
        widest = max((c for view in views for c in view), key=lambda c: cells_of(study.schema, c))
        shapes = Counter(tuple(sorted(sizes[a] for a in c)) for view in views for c in view)
        errors = {
            shape: block_error(guessed_table(shape).ravel(), p, self.floor, answers)
            for shape in shapes
        }
        tables = of_randomizing(map(errors.__getitem__, shapes.elements()), study.expected)
        pairs = {c for view in views for c in view if len(c) == 2}

        def spread_of(pair: tuple[int, int], people: int) -> BlockAnswers | None:
            told = round(people / len(views))
            return expected_answers([sizes[a] for a in pair], p, self.floor, told)

        return [
            *of_answers(cells_of(study.schema, widest), answers, len(widest)),
            *(tables or of_dependences(study.schema.attributes, spread_of, study.expected, pairs)),
        ]

    def largest_message_bytes(self, study: Setting) -> int:
        """A question, or a list of all parties."""
        views = self.views(study.schema)
        largest = max(cells_of(study.schema, c) for view in views for c in view)
        per_view = max(map(len, views))
        return HEAD_BYTES + per_view * (8 * largest + 16) + MEMBER_BYTES * study.parties

    def disclosures(self, study: Setting) -> list[Disclosure]:
        """Every view that may be asked for, and what the dearest may cost; the floor bounds it."""
        schema, views = study.schema, self.views(study.schema)
        asked = {a for view in views for c in view for a in c}
        prices = tuple(tuple(self._bounds(schema, view)) for view in views)
        if len(views) == 1:
            return self._disclosures(schema, views[0], prices[0])
        return [
            AdaptiveResponse(
                what=self.name,
                attributes=tuple(schema.names[a] for a in sorted(asked)),
                truth=self.truth(schema),
                epsilon=max(map(math.fsum, prices)),
                claimed=claimed_epsilon(self.truth(schema)),
                sets=tuple(
                    tuple(tuple(schema.names[a] for a in combination) for combination in view)
                    for view in views
                ),
                prices=prices,
            )
        ]

    def _bounds(self, schema: Schema, view: CombinationView) -> list[float]:
        p = self.truth(schema)
        return [epsilon_bound(p, self.floor, cells_of(schema, c)) for c in view]

    def _disclosures(
        self, schema: Schema, view: CombinationView, epsilons: Sequence[float]
    ) -> list[Disclosure]:
        """One event for each combination of a view; the paper counts all of them as one."""
        p = self.truth(schema)
        claimed = claimed_epsilon(p) / len(view)
        return [
            AdaptiveResponse(
                what=self.name,
                attributes=tuple(schema.names[a] for a in combination),
                truth=p,
                epsilon=epsilon,
                claimed=claimed,
            )
            for combination, epsilon in zip(view, epsilons, strict=True)
        ]

    # ── A party ────────────────────────────────────────────────────────────────────────────────

    async def party(
        self, session: PartySession, schema: Schema, record: Record
    ) -> AnsweredOneBlock:
        """A party's steps."""
        # Step 2: wait for one's turn; there may be many blocks before.
        blocks, p = -(-session.most // self.block), self.truth(schema)
        question = await session.told(
            Question, check=lambda asked: self._check_question(schema, asked), rounds=blocks + 1
        )
        if not question.block:
            session.spend([])  # what an earlier run has drawn stays paid for
            taken = await session.hear(AnswersTaken, check=plausible(session))
            return AnsweredOneBlock(
                schema, taken.asked, taken.answered, taken.digest, (), 0.0, claimed_epsilon(p)
            )
        view, tables = self.views(schema)[question.view], question.shares()

        # Step 3: enter the price in the ledger, then draw, once and for all.
        epsilons = [answer_epsilon(p, table) for table in tables]
        mark = question.digest

        def draw(rng: Randomness) -> bytes:
            session.spend(self._disclosures(schema, view, epsilons))
            cells = [cell_of(schema, record, combination) for combination in view]
            told = [
                int(respond(np.array([cell]), table, p, rng.fork(str(k)))[0])
                for k, (cell, table) in enumerate(zip(cells, tables, strict=True))
            ]
            return np.array(told, dtype="<u4").tobytes()

        answer = mark + session.once(ANSWER, draw, given=mark)

        # Step 4: answer. Step 5: hear the digest of all answers.
        await session.sub(f"block-{question.block}").report(BlockAnswer(answer))
        taken = await session.hear(AnswersTaken, check=plausible(session), rounds=blocks + 1)
        names = tuple(tuple(schema.names[a] for a in combination) for combination in view)
        return AnsweredOneBlock(
            schema, taken.asked, taken.answered, taken.digest, names,
            math.fsum(epsilons), claimed_epsilon(p),
        )  # fmt: skip

    def _check_question(self, schema: Schema, question: Question) -> None:
        """Step 3: ``ValueError`` unless these are tables from which one can safely draw."""
        views = self.views(schema)
        if self.enough is not None and question == NOT_NEEDED:
            return
        if not 0 <= question.view < len(views) or question.block < 1:
            raise ValueError("there is no such view")
        view, p = views[question.view], self.truth(schema)
        if len(question.tables) != len(view):
            raise ValueError(f"{len(question.tables)} tables for {len(view)} combinations")
        for combination, table in zip(view, question.shares(), strict=True):
            cells = cells_of(schema, combination)
            if len(table) != cells or not abs(float(table.sum()) - 1) <= ROUNDING * cells:
                raise ValueError("a table is no distribution over its cells")
            if not float(table.min()) > 0:
                raise ValueError("a table has a cell without any share: the answer would be bare")
            most = epsilon_bound(p, self.floor, cells)
            if answer_epsilon(p, table) > most * (1 + EXACT):
                raise ValueError(f"a table goes below the floor of {self.floor}")

    # ── The coordinator ────────────────────────────────────────────────────────────────────────

    async def coordinator(self, session: CoordinatorSession, schema: Schema) -> CollectedBlocks:
        """The coordinator's part: ask block after block, and follow the answers."""
        following = _Following(self, schema, session.rules)
        answers: dict[str, bytes] = {}
        silent: list[str] = []
        faulty: dict[str, str] = {}
        for number, start in enumerate(range(0, len(session.parties), self.block), start=1):
            members = session.parties[start : start + self.block]

            # Step 2: ask a block. Step 4: take what comes.
            questions = following.questions(members, number, start)
            await session.hand_out(questions)
            fewest = -(-len(members) * session.fewest // max(session.most, 1))
            here = session.sub(f"block-{number}", fewest=fewest)
            gathered = await here.gather(BlockAnswer, senders=members)
            silent += gathered.silent
            faulty |= gathered.faulty
            for party, message in sorted(gathered.messages.items()):
                wrong = following.take(questions[party], message.answer)
                if wrong is None:
                    answers[party] = message.answer
                else:
                    faulty[party] = f"{party}'s message for step {BlockAnswer.step!r}: {wrong}"
            following.next_block()
            if following.worth_a_look:
                session.show(*following.preview())
            if len(answers) >= session.fewest and following.precise(self.enough):
                break
        session.show(*following.preview())
        not_asked = session.parties[start + self.block :]
        await session.hand_out(dict.fromkeys(not_asked, NOT_NEEDED))
        check_enough(answers, session.parties, session.fewest, faulty, session.most)

        # Step 5: announce the digest of all answers.
        answers = dict(sorted(answers.items()))
        taken = AnswersTaken(len(session.parties), len(answers), answers_digest(answers))
        await session.announce(taken)
        return CollectedBlocks(
            schema, self.truth(schema), self.floor, self.block, session.parties, answers,
            tuple(silent), faulty, following.shown, following.counts, not_asked,
            session.rules < WITHOUT_DRAWING, session.rules < AGREEING,
            session.rules < TOLD_BY_BLOCK, self.enough,
        )  # fmt: skip


class _Following:
    """The tables of all combinations, as they follow the answers."""

    def __init__(self, options: BlockAggregation, schema: Schema, rules: int) -> None:
        self._rules, self._p = rules, options.truth(schema)
        self._options, self._schema, self._views = options, schema, options.views(schema)
        combinations = [combination for view in self._views for combination in view]
        self.shown: dict[Combination, list[bytes]] = {c: [] for c in combinations}
        self.counts: dict[Combination, list[list[int]]] = {c: [] for c in combinations}
        self._tables: dict[Combination, Array] = {}
        self._followed, self._looked_at = FollowedTables(self._p, combinations, schema.sizes), 0
        for combination in combinations:
            cells = cells_of(schema, combination)
            self._tables[combination] = np.full(cells, 1 / cells)
        self._begin_block()

    def _begin_block(self) -> None:
        for combination, table in self._tables.items():
            self.shown[combination].append(table.astype("<f8").tobytes())
            self.counts[combination].append([0] * len(table))

    def questions(self, members: tuple[str, ...], block: int, first: int) -> dict[str, Question]:
        """Step 2: every member of a block gets a view in turn, with the tables of now."""
        by_view = [
            Question(block, number, tuple(self.shown[c][-1] for c in view))
            for number, view in enumerate(self._views)
        ]
        places = enumerate(members, start=first)
        return {party: by_view[place % len(by_view)] for place, party in places}

    def take(self, question: Question, answer: bytes) -> str | None:
        """Step 4: count an answer; or say why an honest party would not give it."""
        view = self._views[question.view]
        if answer[:QUESTION_BYTES] != question.digest:
            return "it answers another question"
        if len(answer) != QUESTION_BYTES + CELL_BYTES * len(view):
            return f"it does not answer {len(view)} combinations"
        cells = np.frombuffer(answer[QUESTION_BYTES:], dtype="<u4").tolist()
        if any(cell >= cells_of(self._schema, c) for cell, c in zip(cells, view, strict=True)):
            return "it names a cell that is not there"
        for cell, combination in zip(cells, view, strict=True):
            self.counts[combination][-1][cell] += 1
        return None

    def next_block(self) -> None:
        """Step 4: all tables follow what has been answered so far."""
        for combination, so_far in self._followed.tables.items():
            counts = np.array(self.counts[combination][-1])
            self._followed.take(combination, self._tables[combination], counts)
            if so_far.counts.any():
                self._tables[combination] = next_table(
                    self._estimate(combination), self._options.floor, rounded=self._rules >= ROUNDED
                )
        self._begin_block()

    def _estimate(self, combination: Combination) -> Array:
        if self._rules >= SUMMED_UP:
            return self._followed.tables[combination].shares
        return pooled(self._answered(combination)).shares

    def _answered(self, combination: Combination) -> Answered:
        tables = np.array([np.frombuffer(raw, dtype="<f8") for raw in self.shown[combination]])
        return Answered(self._p, tables, np.array(self.counts[combination]))

    def precise(self, enough: float | None) -> bool:
        """Whether every share of every table is known to within so much, with 95 % confidence."""
        if enough is None:
            return False
        if self._rules >= WIDE_NEAR_ZERO:  # looked at in sums, before all blocks are gone through
            found = self._followed.widest()
            if found is None or found[0] > enough + ROUNDING:
                return False
        for combination, so_far in self._followed.tables.items():
            if not so_far.counts.any():
                return False
            if self._half_width(self._answered(combination)) > enough:
                return False
        return True

    def _half_width(self, answered: Answered) -> float:
        """Of the widest interval of a table, with 95 % confidence."""
        if self._rules < WIDE_NEAR_ZERO:
            told = answered.counts.sum(axis=0) / answered.n
            error = float(np.sqrt(told * (1 - told) / answered.n).max()) / answered.p
            return float(ndtri(0.975)) * error
        found = cell_intervals(
            pooled(answered).shares, BlockAnswers(answered.n, answered), "population"
        )
        return float((found.high - found.low).max()) / 2

    @property
    def worth_a_look(self) -> bool:
        """Whether enough answers came since the last look: looking takes longer than one answer."""
        return self._followed.n >= WORTH_ANOTHER_LOOK * self._looked_at

    def preview(self) -> tuple[list[Watched], str]:
        """For people to watch: of each table the share that is known least, the widest first.

        And how many tables there are besides, how wide the widest interval is, and how many more
        answers are expected.
        """
        answers, missing = self._followed.n, self._followed.unknown
        self._looked_at = answers
        known = sorted(self._followed.least_known(), key=lambda found: -found.half)
        rows = [
            Watched(self._in_words(found), found.share, found.low, found.high)
            for found in known[:MOST_WATCHED]
        ]
        said = f"{answers:,} answers about {len(self._tables)} tables"
        if missing:
            return rows, f"{said}; {missing:,} of them have none yet"
        said += f"; every share is known to ±{known[0].half:.1%} or better (95 %)"
        if known[MOST_WATCHED:]:
            others = f"{len(known) - MOST_WATCHED:,} other tables and attributes"
            said += f", those of {others} to ±{known[MOST_WATCHED].half:.1%}"
        return rows, said + self._left(answers, known)

    def _in_words(self, found: LeastKnown) -> str:
        attributes = [self._schema.attributes[a] for a in found.table]
        codes = np.unravel_index(found.cell, tuple(attribute.size for attribute in attributes))
        return " & ".join(
            f"{a.title()} {a.category_title(a.categories[int(c)])}"
            for a, c in zip(attributes, codes, strict=True)
        )

    def _left(self, answers: int, known: Sequence[LeastKnown]) -> str:
        """How many answers are still expected, as widths fall with the root of their number."""
        enough, widest = self._options.enough, max(k.half for k in known if len(k.table) > 1)
        if enough is None or widest <= enough:
            return ""
        left = math.ceil(answers * ((widest / enough) ** 2 - 1))
        return f"; about {left:,} more are expected until ±{enough:.1%} in every table"


def cells_of(schema: Schema, combination: Combination) -> int:
    """How many cells the table of a combination has."""
    return math.prod(schema.sizes[a] for a in combination)


def cell_of(schema: Schema, record: Record, combination: Combination) -> int:
    """The cell of a record in the table of a combination."""
    cell = 0
    for attribute in combination:
        cell = cell * schema.sizes[attribute] + record[attribute]
    return cell
