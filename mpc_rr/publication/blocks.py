"""Tables of a block aggregation: every table, what it cost, and what depends on what."""

import numpy as np

from mpc_rr.estimation.blocks import (
    Answered,
    answer_epsilon,
    independence_test,
    likely,
    pooled,
)
from mpc_rr.estimation.combinations import Combination
from mpc_rr.estimation.distribution import Estimate
from mpc_rr.estimation.independence import among_answers, p_value_of_independence
from mpc_rr.estimation.intervals import Limits
from mpc_rr.estimation.matrix import Array
from mpc_rr.estimation.strength import Strength, strength
from mpc_rr.estimation.tables import make_consistent
from mpc_rr.estimation.uncertainty import BlockAnswers, Uncertainty
from mpc_rr.publication.crosstabs import add_dependences, share_table, table_name
from mpc_rr.publication.ending import Draft, Ending, Setting, fact, how_many_answered
from mpc_rr.publication.nonresponse import NoAnswer, add_non_response, estimated
from mpc_rr.publication.parts import (
    Cell,
    Column,
    Listing,
    Participation,
    Publication,
    Sheet,
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
COLUMNS = (
    Column(name="attributes", label="attributes", kind="attribute"),
    Column(name="n", label="answers", kind="count"),
    Column(name="largest_epsilon", label="ε of an answer, at most", kind="epsilon"),
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
        """The most likely table of every combination, made to agree about common attributes."""
        tables, weights = {}, {}
        for combination in self.shown:
            answered = self.answered(combination)
            if answered.n:
                shape = [self.schema.sizes[a] for a in combination]
                tables[combination] = likely(answered).reshape(shape)
                weights[combination] = float(answered.n)
        return make_consistent(tables, weights)

    def estimate_of(self, attributes: tuple[int, ...]) -> tuple[Array, Uncertainty] | None:
        """Of a combination that was asked: all its answers, pooled."""
        if attributes not in self.shown or not self.answered(attributes).n:
            return None
        answered = self.answered(attributes)
        shape = [self.schema.sizes[a] for a in attributes]
        return pooled(answered).shares.reshape(shape), BlockAnswers(self.n, answered)

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
        with draft.part("item non-response"):
            add_non_response(draft, self._non_response())
        with draft.part("the tables"):
            self._publish_tables(draft)
        return draft.publication()

    def strengths(self) -> dict[tuple[int, int], Strength]:
        """How strongly the attributes of each table of two depend on each other."""
        found = {}
        for combination in self.shown:
            answered = self.answered(combination)
            if len(combination) == 2 and answered.n:
                both = (
                    self.schema.attributes[combination[0]], self.schema.attributes[combination[1]]
                )  # fmt: skip
                estimate = pooled(answered).shares.reshape(both[0].size, both[1].size)
                uncertainty = BlockAnswers(self.n, answered)
                found[combination[0], combination[1]] = strength(estimate, uncertainty, both)
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
            answered = told[combination]
            table = pooled(answered).shares.reshape([self.schema.sizes[a] for a in combination])
            spread, axis = BlockAnswers(self.n, answered), combination.index(place)
            found.append(estimated(attribute, axis, table, spread, answered.n))
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
                title="Prices of the answers",
                columns=(*DETAILS, *DRAWN_DETAILS) if drawn else DETAILS,
                rows=tuple(details),
                main=False,
            ),
        ]  # fmt: skip

    def _tests(self, draft: Draft, tables: dict[Combination, Array]) -> dict[Combination, Row]:
        """The p-value of each table; those of two attributes with their dependences."""
        strengths: dict[tuple[int, int], Strength] = {}
        with draft.part("the dependences"):
            strengths = self.strengths()
        if strengths:
            title = "How strongly answers depend on each other, as estimated"
            add_dependences(draft, self.schema, strengths, title=title)
        found: dict[Combination, Row] = {}
        for combination, table in tables.items():
            known, p_value = strengths.get((combination[0], combination[-1])), None
            if len(combination) == 2:
                p_value = None if known is None else known.p_value
            elif table.size <= MOST_CELLS:
                attributes = [self.schema.attributes[a] for a in combination]
                with draft.part(f"the test of {table_name(attributes)}"):
                    p_value = self._p_value(combination, attributes)
            found[combination] = (p_value,)
        return found

    def _p_value(self, combination: Combination, attributes: list[Attribute]) -> float | None:
        answered = self.answered(combination)
        estimate = pooled(answered).shares.reshape([a.size for a in attributes])
        among = among_answers(estimate, BlockAnswers(self.n, answered), attributes)
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
