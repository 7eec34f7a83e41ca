"""What can be computed: a statistic of some attributes, as text and in Python.

    expression = statistic "(" part { "," part } ")"
    part       = attribute | score | condition | number
    score      = "score" "(" attribute "," category "=" number { "," … } ")"
               | "midpoints" "(" attribute { "," category "=" number } ")"
               | "categories" "(" attribute ")"

``docs/compute.md`` lists the statistics. Names, categories and conditions are written as in
conditions (`mpc_rr.estimation.condition_language`).
"""

import difflib
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from mpc_rr.errors import InputError, all_quoted, quoted
from mpc_rr.estimation.condition_language import LONGEST, in_words, parse_condition, written
from mpc_rr.estimation.conditions import Condition
from mpc_rr.estimation.matrix import Array
from mpc_rr.schema import Attribute, Schema

Kind = Literal[
    "mean", "variance", "standard_deviation", "quantile", "covariance", "correlation", "share",
    "table", "linear", "logistic",
]  # fmt: skip
Coding = Literal["plain", "scores", "midpoints", "categories"]
CODINGS = ("score", "midpoints", "categories")
OPENING, CLOSING, MARKS = "(", ")", "\"'"
DEEPEST = 100


@dataclass(frozen=True)
class Score:
    """What the answers to a question count for in a statistic."""

    attribute: str
    coding: Coding = "plain"
    given: tuple[tuple[str, float], ...] = ()

    def __str__(self) -> str:
        name = written(self.attribute)
        if self.coding == "plain":
            return name
        values = (f"{written(category)} = {number:.15g}" for category, number in self.given)
        word = "score" if self.coding == "scores" else self.coding
        return f"{word}({', '.join([name, *values])})"


Scored = str | Score
"""An attribute by its name (answers count by their order), or with scores."""


def score(attribute: str, scores: Mapping[str, float]) -> Score:
    """Any score of one's own: a number for each answer."""
    return Score(attribute, "scores", tuple((str(c), float(v)) for c, v in scores.items()))


def midpoints(attribute: str, ends: Mapping[str, float] | None = None) -> Score:
    """The middle of each interval; ``ends`` for those that have none, as "65 and over"."""
    given = tuple((str(c), float(v)) for c, v in (ends or {}).items())
    return Score(attribute, "midpoints", given)


def categories(attribute: str) -> Score:
    """As a predictor: each answer by itself, compared with the first."""
    return Score(attribute, "categories")


@dataclass(frozen=True)
class Expression:
    """A statistic to be computed."""

    kind: Kind
    of: tuple[Score, ...] = ()
    condition: str | None = None
    """Of a share, or the outcome of a logistic regression."""
    probability: float | None = None
    """Of a quantile."""

    def __str__(self) -> str:
        parts = [] if self.condition is None else [self.condition]
        parts += [str(one) for one in self.of]
        if self.kind == "quantile" and self.probability == 0.5:
            return f"median({', '.join(parts)})"
        if self.probability is not None:
            parts.append(f"{self.probability:.15g}")
        return f"{self.kind}({', '.join(parts)})"


def _scores(given: Sequence[Scored]) -> tuple[Score, ...]:
    return tuple(Score(one) if isinstance(one, str) else one for one in given)


def mean(of: Scored) -> Expression:
    """The mean of those who answered."""
    return Expression("mean", _scores([of]))


def variance(of: Scored) -> Expression:
    """The variance of those who answered: divided by their number."""
    return Expression("variance", _scores([of]))


def standard_deviation(of: Scored) -> Expression:
    """The root of the variance."""
    return Expression("standard_deviation", _scores([of]))


def quantile(of: Scored, probability: float) -> Expression:
    """The first answer that so large a share does not exceed."""
    if not 0 < probability < 1:
        raise InputError(f"a quantile is of a share between 0 and 1, not of {probability:.15g}")
    return Expression("quantile", _scores([of]), probability=float(probability))


def median(of: Scored) -> Expression:
    """The first answer that half of those who answered do not exceed."""
    return quantile(of, 0.5)


def covariance(first: Scored, second: Scored) -> Expression:
    """Of those who answered both."""
    return Expression("covariance", _scores([first, second]))


def correlation(first: Scored, second: Scored) -> Expression:
    """Pearson's, with its sign, of those who answered both."""
    return Expression("correlation", _scores([first, second]))


def share(condition: str) -> Expression:
    """How many meet a condition, as ``mpc-rr query`` has it; with ``where``: of those."""
    return Expression("share", condition=condition)


def table(*attributes: str) -> Expression:
    """The shares of all combinations of some attributes' answers."""
    if not attributes:
        raise InputError("a table is of one attribute or more")
    return Expression("table", _scores(attributes))


def linear(outcome: Scored, *predictors: Scored) -> Expression:
    """Least squares: a score on predictors."""
    if not predictors:
        raise InputError("a regression needs a predictor; the outcome stands first")
    return Expression("linear", _scores([outcome, *predictors]))


def logistic(outcome: str, *predictors: Scored) -> Expression:
    """The log odds of a condition on predictors."""
    if not predictors:
        raise InputError("a regression needs a predictor; the outcome stands first")
    return Expression("logistic", _scores(predictors), condition=outcome)


# ── Text ───────────────────────────────────────────────────────────────────────────────────────


def parse_expression(text: str) -> Expression:
    """``correlation(age, score(health, poor = 0, good = 2))``; `InputError` if it is none."""
    if len(text) > LONGEST:
        raise InputError(f"an expression may have {LONGEST:,} characters, not {len(text):,}")
    name, parts = _called(text)
    if name is None or name not in BUILDERS:
        near = difflib.get_close_matches(name or text.strip(), BUILDERS, n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise InputError(
            f"{quoted(text)} is nothing that can be computed; write one of "
            f"{', '.join(BUILDERS)} with what it is of in parentheses: mean(age){hint}"
        )
    fewest, most, build = BUILDERS[name]
    if not fewest <= len(parts) <= most:
        wanted = fewest if fewest == most else f"at least {fewest}"
        raise InputError(f"{name}(…) is of {wanted}, separated by commas, not of {len(parts)}")
    return build(parts)


def _called(text: str) -> tuple[str | None, list[str]]:
    """``name(a, b)`` as its name and parts; None if it is no call."""
    text = text.strip()
    name, opening, rest = text.partition(OPENING)
    if not opening or not name.strip().isidentifier():
        return None, []
    parts = _split(rest, ",")
    if parts is None or not rest.endswith(CLOSING):
        return None, []
    return name.strip(), parts


def _split(text: str, mark: str) -> list[str] | None:
    """Parts up to the parenthesis that closes the text, at marks that stand in none and in no
    quotation; None if it is closed nowhere, or earlier."""
    found, depth, start, quote = [], 0, 0, ""
    for place, sign in enumerate(text):
        if quote:
            quote = "" if sign == quote else quote
        elif sign in MARKS:
            quote = sign
        elif sign == OPENING:
            depth += 1
        elif sign == CLOSING:
            depth -= 1
            if depth < 0:
                found.append(text[start:place])
                return None if text[place + 1 :].strip() else [part.strip() for part in found]
        elif sign == mark and depth == 0:
            found.append(text[start:place])
            start = place + 1
    return None


def _score(text: str) -> Score:
    name, parts = _called(text)
    if name not in CODINGS:
        return Score(_unquoted(text))
    if not parts or not parts[0] or (name == "score" and len(parts) < 2):
        raise InputError(f"{quoted(text)}: write {name}(attribute, category = number, …)")
    given = tuple(_given(part) for part in parts[1:])
    if name == "categories" and given:
        raise InputError(f"{quoted(text)}: categories(…) is of one attribute")
    coding: Coding = "scores" if name == "score" else "midpoints"
    return Score(_unquoted(parts[0]), "categories" if name == "categories" else coding, given)


def _given(text: str) -> tuple[str, float]:
    sides = _split(f"{text})", "=") or []
    if len(sides) < 2:
        raise InputError(f"{quoted(text)} is no score: write category = number")
    category = text[: text.rindex("=")]  # which may have such a sign in it: <=50K
    return _unquoted(category), _number(sides[-1])


def _number(text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not math.isfinite(found):
        raise InputError(f"{quoted(text)} is not a number")
    return found


def _unquoted(text: str) -> str:
    text = text.strip()
    if len(text) > 1 and text[0] in MARKS and text[-1] == text[0]:
        return text[1:-1].replace(2 * text[0], text[0])
    return text


Builder = Callable[[list[str]], Expression]
MANY = 1000
BUILDERS: dict[str, tuple[int, int, Builder]] = {
    "mean": (1, 1, lambda p: mean(_score(p[0]))),
    "variance": (1, 1, lambda p: variance(_score(p[0]))),
    "standard_deviation": (1, 1, lambda p: standard_deviation(_score(p[0]))),
    "median": (1, 1, lambda p: median(_score(p[0]))),
    "quantile": (2, 2, lambda p: quantile(_score(p[0]), _number(p[1]))),
    "covariance": (2, 2, lambda p: covariance(_score(p[0]), _score(p[1]))),
    "correlation": (2, 2, lambda p: correlation(_score(p[0]), _score(p[1]))),
    "share": (1, 1, lambda p: share(p[0])),
    "table": (1, MANY, lambda p: table(*map(_unquoted, p))),
    "linear": (2, MANY, lambda p: linear(*map(_score, p))),
    "logistic": (2, MANY, lambda p: logistic(p[0], *map(_score, p[1:]))),
}
"""Of how many parts each is, at least and at most, and how it is made."""


# ── What answers count for ─────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Coded:
    """The categories of an attribute as numbers; NaN for no answer."""

    place: int
    attribute: Attribute
    numbers: Array
    how: str
    """In words."""

    @property
    def ranks(self) -> bool:
        """Whether answers with an order count for their ranks, but for where 0 is and the unit."""
        steps = np.diff(self.numbers[list(self.attribute.answer_codes)])
        in_order = self.attribute.type == "ordinal" and bool((steps > 0).all())
        return in_order and bool(np.allclose(steps, steps[:1]))

    def label(self, number: float) -> str | None:
        """The one category that counts so much."""
        found = np.flatnonzero(self.numbers == number)
        return self.attribute.categories[int(found[0])] if len(found) == 1 else None


def place_of(name: str, schema: Schema) -> int:
    """Which attribute this is; `InputError` if none, or if it was asked as a number."""
    if name not in schema.names:
        near = difflib.get_close_matches(name, schema.names, n=1)
        hint = f"; did you mean {quoted(near[0])}?" if near else ""
        known = all_quoted(schema.names)
        raise InputError(f"there is no attribute {name!r}; they are {known}{hint}")
    place = schema.names.index(name)
    if schema.attributes[place].numeric:
        raise InputError(
            f"attribute {name!r} is numeric: no table of its answers is published that could be "
            "computed on; what its protocol tells of it, mpc-rr report shows"
        )
    return place


def coded(one: Score, schema: Schema, *, order_is_enough: bool = False) -> Coded:
    """What the answers count for; `InputError` if that must be said."""
    place = place_of(one.attribute, schema)
    attribute = schema.attributes[place]
    answers = [attribute.categories[code] for code in attribute.answer_codes]
    if one.coding == "categories":
        raise InputError(f"categories({one.attribute}) is for predictors of a regression")
    if one.coding == "scores":
        numbers, how = _given_scores(one, attribute, answers), "scores as given"
    elif one.coding == "midpoints":
        numbers, how = _midpoints(one, attribute)
    else:
        numbers, how = _plain(attribute, answers, order_is_enough=order_is_enough)
    found = np.full(attribute.size, np.nan)
    found[list(attribute.answer_codes)] = numbers
    told = ", ".join(f"{c} = {v:.6g}" for c, v in zip(answers[:8], numbers, strict=False))
    more = ", …" if len(answers) > 8 else ""
    return Coded(place, attribute, found, f"{written(attribute.name)} by {how} ({told}{more})")


def _given_scores(one: Score, attribute: Attribute, answers: list[str]) -> list[float]:
    given = dict(one.given)
    strange = [category for category in given if category not in answers]
    lacking = [category for category in answers if category not in given]
    if strange or lacking or len(given) < len(one.given):
        wrong = f"{quoted(strange[0])} is none of its answers" if strange else (
            f"there is none for {all_quoted(lacking)}" if lacking else "an answer has two"
        )  # fmt: skip
        raise InputError(
            f"attribute {attribute.name!r}: a score is a number for each of its answers "
            f"({all_quoted(answers)}); {wrong}"
        )
    return [_finite(given[category], attribute) for category in answers]


def _finite(number: float, attribute: Attribute) -> float:
    if not math.isfinite(number):
        raise InputError(f"attribute {attribute.name!r}: a score is a finite number, not {number}")
    return number


def _midpoints(one: Score, attribute: Attribute) -> tuple[list[float], str]:
    if attribute.bins is None:
        raise InputError(f"attribute {attribute.name!r} has no intervals; give a score")
    given = dict(one.given)
    numbers = []
    edges = itertools.pairwise(attribute.bins)
    for category, (low, high) in zip(attribute.categories, edges, strict=False):
        if category in given:
            numbers.append(_finite(given.pop(category), attribute))
        elif math.isinf(low) or math.isinf(high):
            raise InputError(
                f"attribute {attribute.name!r}: {quoted(category)} has no middle; say what it "
                f"counts for: midpoints({written(attribute.name)}, {written(category)} = NUMBER)"
            )
        else:
            numbers.append((low + high) / 2)
    if given:
        raise InputError(f"attribute {attribute.name!r}: {quoted(next(iter(given)))} is no answer")
    return numbers, "the middle of each interval"


def _plain(
    attribute: Attribute, answers: list[str], *, order_is_enough: bool
) -> tuple[list[float], str]:
    name = written(attribute.name)
    if attribute.bins is not None and not order_is_enough:
        raise InputError(
            f"attribute {attribute.name!r} was asked in intervals, whose numbers nobody reported; "
            f"say what they count for: midpoints({name}), or score({name}, …)"
        )
    if attribute.type == "nominal" and attribute.bins is None:
        raise InputError(
            f"attribute {attribute.name!r} is nominal: its answers are no numbers; say what they "
            f"count for: score({name}, {written(answers[0])} = 0, …)"
        )
    try:
        numbers = [float(answer) for answer in answers]
    except ValueError:
        numbers = [math.nan]
    if all(map(math.isfinite, numbers)) and attribute.bins is None:
        return numbers, "the numbers that its answers are"
    return [float(k) for k in range(len(answers))], "the order of its answers"


@dataclass(frozen=True)
class Predictor:
    """A column of a regression."""

    name: str
    place: int
    numbers: Array


def predictors_of(one: Score, schema: Schema) -> tuple[list[Predictor], str]:
    """One column by scores; or one for each answer but the first, where there is no order."""
    place = place_of(one.attribute, schema)
    attribute = schema.attributes[place]
    apart = one.coding == "categories" or (one.coding == "plain" and attribute.type == "nominal")
    if not apart:
        found = coded(one, schema)
        return [Predictor(attribute.name, place, found.numbers)], found.how
    first, *others = attribute.answer_codes
    answered = np.zeros(attribute.size)
    if attribute.missing_code is not None:
        answered[attribute.missing_code] = np.nan
    columns = [
        Predictor(
            f"{written(attribute.name)} = {written(attribute.categories[code])}",
            place,
            (np.arange(attribute.size) == code) + answered,
        )
        for code in others
    ]
    reference = written(attribute.categories[first])
    return columns, f"{written(attribute.name)} compared with {reference}"


def condition_of(text: str, schema: Schema) -> tuple[Condition, str]:
    """A condition on categories, and how it was understood."""
    condition = parse_condition(text, schema)
    for attribute in condition.attributes:
        place_of(schema.names[attribute], schema)
    return condition, in_words(condition, schema)
