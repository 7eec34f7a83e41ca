"""Statistics computed on what a study published (``docs/compute.md``)."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from mpc_rr.errors import InputError, quoted
from mpc_rr.estimation import statistics
from mpc_rr.estimation.condition_language import written
from mpc_rr.estimation.conditions import Cells, Condition
from mpc_rr.estimation.estimates import checked_cells
from mpc_rr.estimation.expressions import (
    Coded,
    Expression,
    Predictor,
    coded,
    condition_of,
    parse_expression,
    place_of,
    predictors_of,
)
from mpc_rr.estimation.joint import Joint
from mpc_rr.estimation.logistic import likelihood_of, logistic
from mpc_rr.estimation.matrix import Array
from mpc_rr.estimation.statistics import Between, Found, Regression
from mpc_rr.estimation.uncertainty import WeightedReports
from mpc_rr.publication.answers import Answer
from mpc_rr.publication.parts import LEVEL, Cell
from mpc_rr.publication.told import Told
from mpc_rr.schema import Schema

MOST_CELLS = 2_000
"""So many cells may a computed table have."""
INTERCEPT = "intercept"
AS_PUBLISHED = (
    "This is the published r of the two by their order; at 95 %, so are the limits for the "
    "population."
)
OF_ONE = {
    "mean": statistics.mean,
    "variance": statistics.variance,
    "standard_deviation": statistics.standard_deviation,
}
OF_TWO = {"covariance": statistics.covariance, "correlation": statistics.correlation}


@dataclass(frozen=True)
class Value:
    """One number that was computed; None where it cannot be told."""

    name: str
    """A coefficient or a cell; empty where there is one number only."""
    group: str | None
    """Among whom: a category of ``by``."""
    value: float | None
    standard_error: float | None
    """In the population: sampling and randomization together."""
    respondents: Between | None
    """Between which limits it is among these very respondents."""
    population: Between | None
    """And in the population that they were drawn from."""
    people: float
    """On how many respondents it rests, as estimated."""
    label: str | None = None
    """The answer that the value stands for, of a quantile."""


@dataclass(frozen=True)
class Computed:
    """A statistic, computed on what a study published."""

    expression: str
    """As it was understood."""
    by: str | None
    where: str | None
    level: float
    n: int
    """How many respondents there are."""
    values: tuple[Value, ...]
    notes: tuple[str, ...]
    """What answers count for, and how it was estimated, in sentences."""
    log_likelihood: float | None = None
    """Of a logistic regression: of the reported outcomes, given the reported predictors."""
    weighted: bool = False

    @property
    def how(self) -> str:
        """All notes."""
        return " ".join(self.notes)

    @property
    def value(self) -> float | None:
        """The number, if it is one."""
        if len(self.values) != 1:
            raise InputError(f"{self.expression} has {len(self.values)} values; look at .values")
        return self.values[0].value

    def __getitem__(self, name: str) -> Value:
        """A coefficient or cell by its name, or a group by its category."""
        for found in self.values:
            if name in (found.name, found.group):
                return found
        known = ", ".join(quoted(v.name or v.group or "") for v in self.values)
        raise KeyError(f"{name}; there are {known}")


def compute(
    told: Told,
    expression: Expression | str,
    *,
    by: str | None = None,
    where: str | None = None,
    level: float = LEVEL,
) -> Computed:
    """A statistic of what was told; `InputError` says why it cannot be computed."""
    if not 0 < level < 1:
        raise InputError(f"a confidence level lies between 0 and 1, not {level}")
    asked = parse_expression(expression) if isinstance(expression, str) else expression
    return _Computing(told, asked, by, where, level).done()


def check_expression(
    expression: Expression, schema: Schema, by: str | None = None, where: str | None = None
) -> None:
    """`InputError` if it is not of this schema."""
    _Question(schema, expression, by, where)


@dataclass
class _Question:
    """What is asked, understood."""

    schema: Schema
    asked: Expression
    by: str | None
    where: str | None
    scored: list[Coded] = field(default_factory=list)
    columns: list[Predictor] = field(default_factory=list)
    condition: Condition | None = None
    among: Condition | None = None
    words: str = ""
    whom: str | None = None
    said: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        asked, schema = self.asked, self.schema
        regression, order = asked.kind in ("linear", "logistic"), asked.kind == "quantile"
        first = 1 if asked.kind == "linear" else 0
        for one in asked.of[: first if regression else None]:
            if asked.kind == "table":
                place_of(one.attribute, schema)
            else:
                self.scored.append(coded(one, schema, order_is_enough=order))
        self.said = [one.how for one in self.scored]
        for one in asked.of[first:] if regression else ():
            columns, how = predictors_of(one, schema)
            self.columns += columns
            self.said.append(how)
        if asked.condition is not None:
            self.condition, self.words = condition_of(asked.condition, schema)
        if self.where is not None:
            self.among, self.whom = condition_of(self.where, schema)
        self._check()

    def _check(self) -> None:
        places = self.places
        if len(set(places)) < len(places):
            name = self.schema.names[max(places, key=places.count)]
            raise InputError(f"attribute {name!r} is named twice in {self.asked.kind}(…)")
        if self.condition is not None and set(self.condition.attributes) & set(self.column_places):
            raise InputError("a predictor is part of the outcome; it would explain itself")
        if self.by is not None and place_of(self.by, self.schema) in places:
            raise InputError(f"attribute {self.by!r} is what is computed; name another with by")
        for condition in (self.condition, self.among):
            if condition is not None:
                checked_cells(condition, self.schema.sizes)

    @property
    def column_places(self) -> list[int]:
        return list(dict.fromkeys(column.place for column in self.columns))

    @property
    def places(self) -> list[int]:
        """The attributes that are computed on, in the order in which they were named."""
        if self.asked.kind == "table":
            return [place_of(one.attribute, self.schema) for one in self.asked.of]
        return [one.place for one in self.scored] + self.column_places

    @property
    def attributes(self) -> tuple[int, ...]:
        """All that it depends on."""
        found = set(self.places)
        for condition in (self.condition, self.among):
            found |= set() if condition is None else set(self.cells(condition).attributes)
        if self.asked.kind == "logistic" and self.condition is not None:
            found |= set(self.condition.attributes)
        return tuple(sorted(found | (set() if self.by is None else {self.by_place})))

    @property
    def by_place(self) -> int:
        assert self.by is not None
        return place_of(self.by, self.schema)

    def cells(self, condition: Condition) -> Cells:
        return checked_cells(condition, self.schema.sizes)

    @property
    def text(self) -> str:
        """As it was understood."""
        return str(replace(self.asked, condition=self.words) if self.words else self.asked)


class _Computing:
    """One statistic in the making."""

    def __init__(
        self, told: Told, asked: Expression, by: str | None, where: str | None, level: float
    ) -> None:
        self._told, self._asked, self._level = told, asked, level
        self._question = _Question(told.schema, asked, by, where)

    def done(self) -> Computed:
        question, likelihood, values = self._question, None, []
        if self._asked.kind == "share" and not (question.by or question.where or self._weighted):
            answered = self._as_queried()
            if answered is not None:
                return answered
        for group, inside in self._groups():
            if self._asked.kind in ("linear", "logistic"):
                found, likelihood = self._regression(inside)
                values += [self._value(name, group, one) for name, one in found]
            elif self._asked.kind == "table":
                values += [self._value(name, group, one) for name, one in self._cells(inside)]
            else:
                values.append(self._value("", group, self._statistic(inside)))
        return Computed(
            question.text, question.by, question.whom, self._level, round(self._joint.n),
            tuple(values), self._notes(), likelihood if question.by is None else None,
            self._weighted,
        )  # fmt: skip

    @cached_property
    def _joint(self) -> Joint:
        return self._told.joint(self._question.attributes)

    @property
    def _weighted(self) -> bool:
        return self._told.weights is not None

    # ── Who is meant ───────────────────────────────────────────────────────────────────────────

    def _groups(self) -> Iterator[tuple[str | None, Array]]:
        """Of each group, the cells of its people."""
        question, joint = self._question, self._joint
        inside = self._answered()
        if question.among is not None:
            inside = inside * self._holds(question.among)
        if question.by is None:
            yield None, inside
            return
        place = question.by_place
        attribute = question.schema.attributes[place]
        for code in attribute.answer_codes:
            own = joint.along(place, (np.arange(attribute.size) == code).astype(np.float64))
            yield attribute.categories[code], inside * joint.flat(own)

    def _answered(self) -> Array:
        """The cells of those who answered what is computed on. Tables and shares are of all."""
        question, joint = self._question, self._joint
        inside = np.ones(joint.estimate.size)
        if self._asked.kind in ("table", "share"):
            return inside
        places = {*question.places, *(question.condition.attributes if question.condition else ())}
        for place in places:
            attribute = question.schema.attributes[place]
            given = np.array([code in attribute.answer_codes for code in range(attribute.size)])
            inside = inside * joint.flat(joint.along(place, given.astype(np.float64)))
        return inside

    def _holds(self, condition: Condition) -> Array:
        cells = self._question.cells(condition)
        table = cells.table().astype(np.float64)
        return self._joint.flat(self._joint.placed(cells.attributes, table))

    def _numbers(self, place: int, numbers: Array) -> Array:
        return self._joint.flat(self._joint.along(place, np.nan_to_num(numbers)))

    # ── Statistics ─────────────────────────────────────────────────────────────────────────────

    def _statistic(self, inside: Array) -> Found:
        asked, joint, level = self._asked, self._joint, self._level
        if asked.kind == "share":
            assert self._question.condition is not None
            return self._share(inside, self._holds(self._question.condition))
        scores = [self._numbers(one.place, one.numbers) for one in self._question.scored]
        if asked.kind in OF_TWO:
            found = OF_TWO[asked.kind](joint, inside, scores[0], scores[1], level)
            return found if self._published_r is None else self._as_published(found)
        if asked.kind in OF_ONE:
            return OF_ONE[asked.kind](joint, inside, scores[0], level)
        assert asked.probability is not None
        return statistics.quantile(joint, inside, scores[0], asked.probability, level)

    def _share(self, inside: Array, meets: Array) -> Found:
        """As it is published or counted in queries, in limits that hold it."""
        found, shares = statistics.share(self._joint, inside, meets, self._level), self._proper
        if found.value is None or shares is None:
            return found
        meant = float(inside @ shares)
        if meant <= 0:
            return found
        value = float((inside * meets) @ shares) / meant
        return found.around(value)

    @cached_property
    def _published_r(self) -> dict[str, Cell] | None:
        """What is published of the correlation of two attributes by their order."""
        question = self._question
        narrower = question.by or question.where or self._weighted
        if self._asked.kind != "correlation" or narrower:
            return None
        if not all(one.ranks for one in question.scored):
            return None
        first, second = (one.attribute.name for one in question.scored)
        row = self._told.published_r(first, second)
        return row if row is not None and "low" in row else None

    def _as_published(self, found: Found) -> Found:
        """The published r and, at the level at which they are published, its limits."""
        row, level = self._published_r, self._level
        assert row is not None
        value, low, high = (row[name] for name in ("value", "low", "high"))
        if level == LEVEL and isinstance(low, float) and isinstance(high, float):
            found = replace(found, population=(low, high))
        if not isinstance(value, float):
            return replace(found, value=None, standard_error=None)
        return found if self._joint.exact else found.around(value)

    @cached_property
    def _proper(self) -> Array | None:
        """The published shares of all cells."""
        found = None if self._weighted else self._told.proper(self._joint.attributes)
        return None if found is None else found.ravel()

    def _cells(self, inside: Array) -> Iterator[tuple[str, Found]]:
        """Each combination of some answers."""
        schema, joint = self._question.schema, self._joint
        places = self._question.places
        size = int(np.prod([schema.sizes[place] for place in places]))
        if size > MOST_CELLS:
            raise InputError(
                f"this table has {size:,} cells; {MOST_CELLS:,} can be computed: name fewer "
                "attributes"
            )
        for codes in itertools.product(*(range(schema.sizes[place]) for place in places)):
            meets, words = np.ones(joint.estimate.size), []
            for place, code in zip(places, codes, strict=True):
                attribute = schema.attributes[place]
                own = (np.arange(attribute.size) == code).astype(np.float64)
                meets = meets * joint.flat(joint.along(place, own))
                words.append(f"{written(attribute.name)} = {written(attribute.categories[code])}")
            yield " and ".join(words), self._share(inside, meets)

    def _regression(self, inside: Array) -> tuple[list[tuple[str, Found]], float | None]:
        question, joint, level = self._question, self._joint, self._level
        columns = [self._numbers(column.place, column.numbers) for column in question.columns]
        design, found = statistics.design_of(columns), None
        names = [INTERCEPT, *(column.name for column in question.columns)]
        if self._asked.kind == "linear":
            (outcome,) = (self._numbers(one.place, one.numbers) for one in question.scored)
            found = statistics.linear(joint, inside, design, outcome, level)
        else:
            assert question.condition is not None
            outcome = self._holds(question.condition)
            by = statistics.logistic_by_sums if likelihood_of(joint) is None else logistic
            found = by(joint, inside, design, outcome, level)
        if found is None:
            people = statistics.people_inside(joint, inside)
            found = Regression(tuple(statistics.untold(people) for _ in names))
        return list(zip(names, found.coefficients, strict=True)), found.log_likelihood

    # ── In words ───────────────────────────────────────────────────────────────────────────────

    def _value(self, name: str, group: str | None, found: Found) -> Value:
        label = None
        if self._asked.kind == "quantile" and found.value is not None:
            label = self._question.scored[0].label(found.value)
        return Value(
            name, group, found.value, found.standard_error, found.respondents, found.population,
            found.people, label,
        )  # fmt: skip

    def _notes(self) -> tuple[str, ...]:
        question, joint = self._question, self._joint
        said = [f"Counted: {one}." for one in question.said]
        if joint.exact:
            said.append("The counts are exact: only who happened to answer is uncertain.")
        elif self._published_r is not None:
            said.append(AS_PUBLISHED)
        elif self._asked.kind == "logistic":
            said.append(self._how_logistic())
        elif self._asked.kind in ("share", "table") and self._proper is not None:
            said.append("Shares are those of tables and queries; limits follow from the reports.")
        else:
            said.append("Estimated without bias from the reports on these attributes alone.")
        partly = [
            written(question.schema.names[a])
            for a in question.attributes
            if question.schema.attributes[a].missing is not None
        ]
        if partly and self._asked.kind not in ("share", "table"):
            said.append("Only of those who answered everything it is about.")
        if isinstance(joint.uncertainty, WeightedReports):
            said.append(
                f"Weighted: {joint.n:,.0f} respondents count as "
                f"{joint.uncertainty.effective:,.0f} of equal weight would."
            )
        return tuple(said)

    def _how_logistic(self) -> str:
        if likelihood_of(self._joint) is None:
            return (
                "These reports have no likelihood of their own: the score equations are summed "
                "without bias instead, which is less precise."
            )
        return "Maximum likelihood of the reports, over all answers that may be behind them."

    def _as_queried(self) -> Computed | None:
        """The very answer that a query gets; None if there are limits only."""
        question = self._question
        assert question.condition is not None
        found = self._told.answer(
            question.condition, question.cells(question.condition), self._level
        )
        if found is None or found.share is None:
            return None
        return _of_answer(question.text, found)


def _of_answer(text: str, found: Answer) -> Computed:
    n = found.n or 0
    interval = None if found.interval is None or not n else (
        found.interval[0] / n, found.interval[1] / n
    )  # fmt: skip
    value = Value(
        "", None, found.share, found.standard_error, interval, found.population, float(n)
    )  # fmt: skip
    return Computed(text, None, None, found.level, n, (value,), (found.how,))
