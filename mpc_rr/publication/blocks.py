"""Tables of a block aggregation: every table, what it cost, and what depends on what."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from mpc_rr.estimation.agreement import agreeing, can_agree, missed
from mpc_rr.estimation.blocks import (
    Answered,
    answer_epsilon,
    independence_test,
    likely,
    pooled,
)
from mpc_rr.estimation.combinations import Combination
from mpc_rr.estimation.convergence import stops_as_printed
from mpc_rr.estimation.distribution import Estimate
from mpc_rr.estimation.followed import FollowedTables, LeastKnown
from mpc_rr.estimation.independence import among_answers, p_value_of_independence
from mpc_rr.estimation.intervals import Limits
from mpc_rr.estimation.matrix import Array
from mpc_rr.estimation.strength import Strength, strength
from mpc_rr.estimation.tables import make_consistent
from mpc_rr.estimation.uncertainty import BlockAnswers, Uncertainty
from mpc_rr.publication.crosstabs import add_dependences, share_table, table_name
from mpc_rr.publication.ending import Draft, Ending, Setting, fact, how_many_answered
from mpc_rr.publication.nonresponse import NoAnswer, add_non_response, estimated, told_alone
from mpc_rr.publication.parts import (
    Cell,
    Column,
    Figure,
    Listing,
    Participation,
    Publication,
    Sheet,
    Table,
)
from mpc_rr.publication.reports import (
    MAY_BE_MISSING,
    announced_digest,
    answers_digest,
    who_answered,
)
from mpc_rr.publication.sheets import csv_text, table_csv, table_file
from mpc_rr.randomness import SeededRandomness
from mpc_rr.schema import Attribute, Schema

MOST_DRAWN = 40
"""Up to so many tables were tested by Monte Carlo."""
MOST_CELLS = 2_000
"""Larger tables of three and more attributes are not tested."""
SOLVED = 1e-6
"""How far a solved linear program may be from 0 by rounding."""
NOT_MADE_TO_AGREE = (
    "Tables agree about single attributes; about several that they share they may differ: there "
    "are too many cells to make them agree about these, too."
)
NOT_FOUND_OUT = (
    "Tables agree about all that they share. Whether some distribution of all answers has all of "
    "these tables was not found out: there are too many combinations of answers."
)
NOT_SOLVED = (
    "Tables agree about all that they share. Whether some distribution of all answers has all of "
    "these tables was not found out: a linear program that would tell was not solved."
)
COLUMNS = (
    Column(name="attributes", label="attributes", kind="attribute"),
    Column(name="n", label="answers", kind="count"),
    Column(name="largest_epsilon", label="largest ε per answer", kind="epsilon"),
    Column(name="largest_error", label="largest standard error", kind="share"),
)
ANSWERED = Column(name="answered", label="answered all", kind="count")
P_VALUE = Column(name="p_value", label="p-value", kind="p-value")
DETAILS = (
    COLUMNS[0],
    Column(name="smallest_epsilon", label="ε of an answer, at least", kind="epsilon"),
    COLUMNS[2],
)
DRAWN_DETAILS = (
    Column(name="statistic", label="χ²", kind="number"),
    Column(name="critical", label="critical at 5 %", kind="number"),
    Column(name="rejected", label="dependent?"),
)

TRAJECTORY = (
    Column(name="block", label="block", kind="count"),
    Column(name="answers", label="answers to all tables", kind="count"),
    Column(name="widest", label="widest interval, half", kind="share"),
    Column(name="of", label="of", kind="attribute"),
)
LEAST_KNOWN = (
    Column(name="answer", label="the share with that interval"),
    Column(name="share", label="as estimated then", kind="share"),
)
FOLLOWED = "trajectory"
"""The listing of what was known after which block; older folders have none."""
HOW_FOLLOWED = (
    "After each block, half the widest 95 % interval of all shares, of tables and single "
    "attributes; nothing as long as some table had no answer."
)
MOST_LOOKED_AT = 40
"""Of more blocks, so many are shown."""

NOT_REACHED = "not reached"
CONVERGENCE = (
    COLUMNS[0],
    Column(name="stops", label="§5 stops at block", kind="count"),
    Column(name="answers", label="after answers", kind="count"),
    Column(name="answer", label="share furthest off"),
    Column(name="average", label="§5's average", kind="share"),
    Column(name="published", label="published", kind="share"),
    Column(name="low", label="at least", kind="share"),
    Column(name="high", label="at most", kind="share"),
)
KNOWN_AT = Column(name="known_at", label="known well enough at block", kind="count")
HOW_CONVERGED = (
    "Where the rule of paper 002, §5, would have stopped: at the first block whose estimates all "
    "differ from those of the block before (at first from equal shares) by less than an interval "
    "of true answers. It returns the average of the two. Beside it what is published of the same "
    "share, from all blocks, with its 95 % limits."
)
HOW_KNOWN = (
    " Known well enough: the first block of the listing of how shares became known at which every "
    "share of the table is known to ±{enough:.1%} (95 %)."
)

Row = tuple[Cell, ...]


class CollectedBlocks(Ending, frozen=True):
    """The answers of all blocks, and the tables they were shown."""

    schema: Schema
    p: float
    floor: float
    block: int
    asked: tuple[str, ...]
    answers: dict[str, bytes]
    silent: tuple[str, ...]
    faulty: dict[str, str]
    shown: dict[Combination, list[bytes]]
    """The table of each combination in each block, and that after the last."""
    counts: dict[Combination, list[list[int]]]
    """How often each cell was answered, by combination and block."""
    not_asked: tuple[str, ...]
    """Whose answers were not needed any more."""
    by_drawing: bool = False
    """Whether independence is tested by Monte Carlo, as it was before rules 3."""
    in_part: bool = False
    """Whether tables agree about single attributes alone, and these have no table of their own, as
    it was before rules 4."""
    only_widths: bool = False
    """Whether no estimates are told by block, nor where §5 would stop, as it was before rules 6."""
    enough: float | None = None
    """How well every share had to be known, so that nobody else was asked."""

    def __repr__(self) -> str:
        return f"CollectedBlocks({self.n} of {len(self.asked)} who were there answered)"

    @property
    def n(self) -> int:
        """How many answered."""
        return len(self.answers)

    @property
    def digest(self) -> bytes:
        """The digest of the answers, as it was announced."""
        return answers_digest(self.answers)

    def answered(self, combination: Combination) -> Answered:
        """The answers about one combination, as the mathematics wants them."""
        tables = [np.frombuffer(raw, dtype="<f8") for raw in self.shown[combination][:-1]]
        return Answered(self.p, np.array(tables), np.array(self.counts[combination][:-1]))

    def tables(self) -> dict[Combination, Array]:
        """The most likely table of every combination, made to agree about all that they share.

        Where there are too many cells for that, about single attributes alone.
        """
        tables, weights = {}, {}
        for combination in self.shown:
            answered = self.answered(combination)
            if answered.n:
                shape = [self.schema.sizes[a] for a in combination]
                tables[combination] = likely(answered).reshape(shape)
                weights[combination] = float(answered.n)
        if self.in_part or not can_agree(tables):
            return make_consistent(tables, weights)
        return agreeing(tables, weights)

    def answered_alone(self, attribute: int) -> Answered:
        """All answers about one attribute, whatever it was asked with: nobody gave two.

        An answer about several is true, or drawn from their table; so its part is true, or drawn
        from the margin of that table.
        """
        tables, counts = [], []
        for combination in self.shown:
            if attribute in combination and (told := self.answered(combination)).n:
                axis = combination.index(attribute)
                shape = (-1, *(self.schema.sizes[a] for a in combination))
                others = tuple(1 + k for k in range(len(combination)) if k != axis)
                tables.append(told.tables.reshape(shape).sum(axis=others))
                counts.append(told.counts.reshape(shape).sum(axis=others))
        if not tables:
            none = np.zeros((0, self.schema.sizes[attribute]))
            return Answered(self.p, none, none.astype(np.int64))
        return Answered(self.p, np.concatenate(tables), np.concatenate(counts))

    def estimate_of(self, attributes: tuple[int, ...]) -> tuple[Array, Uncertainty] | None:
        """Of a combination that was asked, or of one attribute: all answers about it, pooled."""
        if len(attributes) > 1 and attributes not in self.shown:
            return None
        alone = len(attributes) == 1
        answered = self.answered_alone(*attributes) if alone else self.answered(attributes)
        if not answered.n:
            return None
        shape = [self.schema.sizes[a] for a in attributes]
        uncertainty = BlockAnswers(self.n, answered, self.in_part)
        return pooled(answered).shares.reshape(shape), uncertainty

    def participation(self, study: Setting) -> Participation:
        """Who answered, and who was not needed."""
        return who_answered(
            study, self.asked, self.answers, self.silent, self.faulty, self.not_asked
        )

    def publish(self, study: Setting) -> Publication:
        """Every table with its price, and whether its attributes depend on each other."""
        draft = Draft()
        blocks = len(next(iter(self.shown.values()))) - 1
        draft.find(
            f"{how_many_answered(self.n, len(self.asked), study.expected)}, in {blocks} blocks.",
            counted=self.n,
            present=len(self.asked),
            blocks=blocks,
        )
        if self.not_asked:
            draft.find(
                f"{len(self.not_asked)} were not asked any more: all shares are known well enough.",
                not_asked=len(self.not_asked),
            )
        draft.quantities += [
            fact(name="p", label="probability of the truth", value=self.p),
            fact(name="floor", label="floor of the tables shown", value=self.floor),
            fact(name="block", label="parties in a block", value=self.block, kind="count"),
            fact(name="blocks", label="blocks", value=blocks, kind="count"),
            announced_digest(self.digest),
        ]  # fmt: skip
        lines = [["party", "answer"], *([party, a.hex()] for party, a in self.answers.items())]
        draft.sheets.append(Sheet.of("answers.csv", "each party's answer", csv_text(lines)))
        with draft.part("the tables"):
            self._publish_tables(draft)
        with draft.part("item non-response"):
            alone = told_alone(self.schema, draft.tables)
            add_non_response(draft, self._non_response() if self.in_part else alone)
        if not self.in_part and self.n:
            with draft.part("how the shares became known"):
                self._add_trajectory(draft)
        return draft.publication()

    def _add_trajectory(self, draft: Draft) -> None:
        """How the widest interval of all shares narrowed, at some blocks up to the last."""
        followed = FollowedTables(self.p, self.shown, self.schema.sizes)
        rows: list[Row] = []
        known_at: dict[Combination, int] = {}
        for block in self._followed_to_blocks(followed):
            known = followed.least_known()
            if followed.unknown:
                rows.append((block, followed.n, *(None,) * (2 if self.only_widths else 4)))
            else:
                rows.append((block, followed.n, *self._widest(known)))
            for found in known:
                if self.enough is not None and found.half <= self.enough:
                    known_at.setdefault(found.table, block)
        said = (
            ""
            if rows[-1][2] is None
            else f"In the end, every share is known to ±{rows[-1][2]:.1%}. "
        )
        draft.listings.append(
            Listing(
                name=FOLLOWED, title="How the shares became known",
                columns=TRAJECTORY if self.only_widths else (*TRAJECTORY, *LEAST_KNOWN),
                rows=tuple(rows), caption=f"{said}{HOW_FOLLOWED}", main=False,
            )
        )  # fmt: skip
        if not self.only_widths:
            self._add_convergence(draft, known_at)

    def _followed_to_blocks(self, followed: FollowedTables) -> Iterator[int]:
        """The blocks that are looked at, each when it and all before have been followed."""
        tables = {c: self.answered(c) for c in self.shown}
        blocks = len(next(iter(self.shown.values()))) - 1
        looked_at = {round(k * blocks / MOST_LOOKED_AT) for k in range(1, MOST_LOOKED_AT + 1)}
        for block in range(1, blocks + 1):
            for combination, told in tables.items():
                followed.take(combination, told.tables[block - 1], told.counts[block - 1])
            if block in looked_at:
                yield block

    def _widest(self, known: Sequence[LeastKnown]) -> Row:
        widest = max(known, key=lambda found: found.half)
        row = widest.half, tuple(self.schema.names[a] for a in widest.table)
        if self.only_widths:
            return row
        return *row, self._answer(widest.table, widest.cell), widest.share

    def _answer(self, combination: Combination, cell: int) -> str:
        """A cell by the categories of its attributes."""
        attributes = [self.schema.attributes[a] for a in combination]
        codes = np.unravel_index(cell, tuple(attribute.size for attribute in attributes))
        return " & ".join(
            a.categories[int(code)] for a, code in zip(attributes, codes, strict=True)
        )

    def _add_convergence(self, draft: Draft, known_at: Mapping[Combination, int]) -> None:
        """Where §5 would have stopped, beside what is published; and where `enough` was met."""
        rows: list[Row] = []
        published = {tuple(axis.attribute for axis in t.axes): t for t in draft.tables}
        for combination in self.shown:
            names = tuple(self.schema.names[a] for a in combination)
            if names not in published:
                continue
            row: Row = (names, *self._stopped(combination, published[names]))
            ours = (known_at.get(combination, NOT_REACHED),)
            rows.append(row if self.enough is None else (*row, *ours))
        known = "" if self.enough is None else HOW_KNOWN.format(enough=self.enough)
        draft.listings.append(
            Listing(
                name="convergence", title="Where §5 of the paper would have stopped",
                columns=CONVERGENCE if self.enough is None else (*CONVERGENCE, KNOWN_AT),
                rows=tuple(rows), caption=f"{HOW_CONVERGED}{known}", main=False,
            )
        )  # fmt: skip

    def _stopped(self, combination: Combination, table: Table) -> Row:
        """Block, answers until then, and the share whose average is furthest off, as published."""
        told = self.answered(combination)
        asked = told.counts.any(axis=1)
        stopped = stops_as_printed(Answered(told.p, told.tables[asked], told.counts[asked]))
        if stopped is None:
            return NOT_REACHED, *(None,) * 6
        block = int(np.flatnonzero(asked)[stopped.block - 1])
        cell = int(np.argmax(np.abs(stopped.shares - np.array(table.values, dtype=np.float64))))
        assert table.low is not None  # shares of blocks have limits
        assert table.high is not None
        return (
            block + 1, int(told.counts[: block + 1].sum()), self._answer(combination, cell),
            float(stopped.shares[cell]), table.values[cell], table.low[cell], table.high[cell],
        )  # fmt: skip

    def strengths(self) -> dict[tuple[int, int], Strength]:
        """How strongly the attributes of each table of two depend on each other."""
        attributes, found = self.schema.attributes, {}
        for i, j in (combination for combination in self.shown if len(combination) == 2):
            estimate = self.estimate_of((i, j))
            if estimate is not None:
                found[i, j] = strength(*estimate, (attributes[i], attributes[j]))
        return found

    def _non_response(self) -> list[NoAnswer]:
        """Each from the table that most answered."""
        found = []
        told = {combination: self.answered(combination) for combination in self.shown}
        for place, attribute in enumerate(self.schema.attributes):
            holding = [c for c, answered in told.items() if place in c and answered.n]
            if attribute.missing is None or not holding:
                continue
            combination = max(holding, key=lambda c: told[c].n)
            estimate, axis = self.estimate_of(combination), combination.index(place)
            assert estimate is not None  # somebody answered
            found.append(estimated(attribute, axis, *estimate, told[combination].n))
        return found

    def _publish_tables(self, draft: Draft) -> None:
        tables = self.tables()
        tests = self._drawn_tests(draft, tables) if self.by_drawing else self._tests(draft, tables)
        partly = any(a.missing is not None for a in self.schema.attributes)
        rows: list[Row] = []
        details: list[Row] = []
        for number, (combination, table) in enumerate(tables.items(), start=1):
            attributes = [self.schema.attributes[a] for a in combination]
            answered = self.answered(combination)
            estimate = pooled(answered)
            shape = table.shape
            shaped = Estimate(
                estimate.shares.reshape(shape), estimate.standard_errors.reshape(shape), estimate.n
            )
            limits = Limits.of(shaped.shares, BlockAnswers(self.n, answered))
            draft.tables.append(share_table(attributes, table, shaped, limits))
            what = f"shares of {table_name(attributes)}"
            name = table_file("tables", number, attributes)
            draft.sheets.append(Sheet.of(name, what, table_csv(attributes, table)))
            names, least, most = tuple(a.name for a in attributes), *self._prices(answered)
            row: Row = (
                names, answered.n, most, float(estimate.standard_errors.max()),
                *((self._answered_all(combination, table, answered.n),) if partly else ()),
            )  # fmt: skip
            rows.append((*row, *tests[combination][:1]))
            details.append((names, least, most, *tests[combination][1:]))
        if not self.in_part:
            self._publish_alone(draft, tables)
            with draft.part("whether one distribution has all tables"):
                self._say_how_they_agree(draft, tables)
        tested = any(tests.values())
        drawn = tested and self.by_drawing
        draft.listings += [
            Listing(
                name="tables",
                title="Tables",
                columns=(
                    *COLUMNS, *((ANSWERED,) if partly else ()), *((P_VALUE,) if tested else ())
                ),
                rows=tuple(rows),
                caption=_caption(tested=tested, partly=partly),
            ),
            Listing(
                name="details",
                title="Privacy cost of the answers",
                columns=(*DETAILS, *DRAWN_DETAILS) if drawn else DETAILS,
                rows=tuple(details),
                main=False,
            ),
        ]  # fmt: skip

    def _publish_alone(self, draft: Draft, tables: dict[Combination, Array]) -> None:
        """The shares of each attribute, as all tables have them, with limits by all answers."""
        for place, attribute in enumerate(self.schema.attributes):
            holding = next((c for c in tables if place in c), None)
            if holding is None:
                continue
            others = tuple(k for k, a in enumerate(holding) if a != place)
            shares, answered = tables[holding].sum(axis=others), self.answered_alone(place)
            estimate = pooled(answered)
            limits = Limits.of(estimate.shares, BlockAnswers(self.n, answered))
            table = share_table([attribute], shares, estimate, limits, main=True)
            draft.tables.append(table)
            draft.figures.append(Figure(kind="intervals", of=table.name))
            name = table_file("attributes", place + 1, [attribute])
            what = f"shares of {attribute.name}"
            draft.sheets.append(Sheet.of(name, what, table_csv([attribute], shares)))

    def _say_how_they_agree(self, draft: Draft, tables: dict[Combination, Array]) -> None:
        if not can_agree(tables):
            draft.note(NOT_MADE_TO_AGREE)
            return
        found = missed(tables, self.schema.sizes)
        if found.least > SOLVED:
            by = "the nearest misses" if found.reached else "any misses"
            much = f"{'' if found.reached else 'at least '}{found.least:.2g}"
            draft.note(
                "Tables agree about all that they share; but no distribution of all answers has "
                f"all of these tables: {by} some share by {much}."
            )
        elif not found.reached:
            draft.note(NOT_FOUND_OUT if found.solved else NOT_SOLVED)

    def _tests(self, draft: Draft, tables: dict[Combination, Array]) -> dict[Combination, Row]:
        """The p-value of each table; those of two attributes with their dependences."""
        strengths: dict[tuple[int, int], Strength] = {}
        with draft.part("the dependences"):
            strengths = self.strengths()
        if strengths:
            title = "Association between attributes, as estimated"
            add_dependences(draft, self.schema, strengths, title=title)
        found: dict[Combination, Row] = {}
        p_values = {pair: strength.p_value for pair, strength in strengths.items()}
        for combination, table in tables.items():
            p_value = p_values.get(combination) if len(combination) == 2 else None
            if len(combination) > 2 and table.size <= MOST_CELLS:
                attributes = [self.schema.attributes[a] for a in combination]
                with draft.part(f"the test of {table_name(attributes)}"):
                    p_value = self._p_value(combination, attributes)
            found[combination] = (p_value,)
        return found

    def _p_value(self, combination: Combination, attributes: list[Attribute]) -> float | None:
        estimate = self.estimate_of(combination)
        among = None if estimate is None else among_answers(*estimate, attributes)
        return None if among is None else p_value_of_independence(among.estimate, among.uncertainty)

    def _drawn_tests(
        self, draft: Draft, tables: dict[Combination, Array]
    ) -> dict[Combination, Row]:
        """By Monte Carlo: what it draws follows from the answers, so everybody finds the same."""
        if len(tables) > MOST_DRAWN:
            return dict.fromkeys(tables, ())
        found: dict[Combination, Row] = dict.fromkeys(tables, (None, None, None, None))
        for combination, table in tables.items():
            rng = SeededRandomness(self.digest).fork(str(combination))
            answered = self.answered(combination)
            with draft.part("the tests"):
                test = independence_test(table.shape, answered, rng.uniform, samples=99)
                dependent = "yes" if test.rejected else "cannot be told"
                found[combination] = (test.p_value, test.statistic, test.critical, dependent)
        return found

    def _prices(self, answered: Answered) -> tuple[float, float]:
        """The smallest and the largest ε of an answer."""
        epsilons = [
            answer_epsilon(self.p, shown)
            for shown, count in zip(answered.tables, answered.counts, strict=True)
            if count.any()
        ]
        return min(epsilons), max(epsilons)

    def _answered_all(self, combination: Combination, table: Array, n: int) -> int:
        """How many gave an answer to all questions of a table, as estimated."""
        answers = [self.schema.attributes[a].answer_codes for a in combination]
        return round(float(table[np.ix_(*answers)].sum()) * n)


def _caption(*, tested: bool, partly: bool) -> str:
    said = []
    if tested:
        of = "all attributes of a table" + ", among those who answered all of them" * partly
        said.append(
            f"p-value: of the independence of {of}. Of tables without dependence, about 5 % have "
            "one below 0.05 by chance."
        )
    if partly:
        said.append("Answered all: as estimated, of those who were asked.")
    return " ".join(said)


class AnsweredOneBlock(Ending, frozen=True):
    """What a party knows in the end."""

    schema: Schema
    asked: int
    n: int
    answers_digest: bytes
    view: tuple[tuple[str, ...], ...]
    """The combinations it answered."""
    epsilon: float
    """What its answers cost, with the tables it was shown."""
    claimed_epsilon: float
    """What the paper says one answer costs."""

    @property
    def digest(self) -> bytes:
        """The digest of the answers, as the coordinator announced it."""
        return self.answers_digest

    def participation(self, study: Setting) -> Participation:
        """How many answered."""
        return Participation(expected=study.expected, present=self.asked, counted=self.n)

    def publish(self, study: Setting) -> Publication:
        """What it answered, and what that cost."""
        draft = Draft()
        draft.find(
            f"{how_many_answered(self.n, self.asked, study.expected)}. "
            f"Your {len(self.view)} answers cost ε = {self.epsilon:.3g} with the tables you were "
            f"shown (the paper would say {self.claimed_epsilon:.3g}).",
            counted=self.n, present=self.asked,
            epsilon=self.epsilon, claimed_epsilon=self.claimed_epsilon,
        )  # fmt: skip
        if self.view and self.n < self.asked:
            draft.note(MAY_BE_MISSING)
        column = Column(name="attributes", label="what you answered about", kind="attribute")
        draft.listings.append(
            Listing(
                name="view", title="Your answers", columns=(column,),
                rows=tuple((combination,) for combination in self.view),
            )
        )  # fmt: skip
        return draft.publication()
