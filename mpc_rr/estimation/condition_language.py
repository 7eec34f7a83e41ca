"""The language of ``mpc-rr query``: text to a condition, and back (``docs/query.md``).

    condition  = both { "or" both }
    both       = one { ("and" | "&") one }
    one        = "not" one | "(" condition ")" | comparison
    comparison = name ("=" | "!=") value { "|" value }
               | name ("<" | "<=" | ">" | ">=") value
               | name ["not"] "in" "(" value { "," value } ")"
               | name "is" ["not"] ("missing" | "answered")

Names and values stand in quotation marks, single or double, or bare. A mark within is doubled.
"""

import difflib
import itertools
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, NoReturn

import numpy as np

from mpc_rr.errors import InputError, all_quoted, quoted
from mpc_rr.estimation.conditions import AllOf, Among, AnyOf, Compared, Condition, Not
from mpc_rr.schema import Attribute, Schema

KEYWORDS = ("and", "or", "not", "in", "is")
DEEPEST = 100
LONGEST = 20_000
Kind = Literal["quoted", "word", "keyword", "sign", "mark", "end"]
WORD = r"""(?:[^\s()|,&=<>!"']|!(?!=))(?:[^\s()|,&=<>!]|!(?!=))*"""
TOKEN = re.compile(
    r"""(?P<quoted>"(?:[^"]|"")*"|'(?:[^']|'')*')"""
    rf"""|(?P<sign><=|>=|!=|==|=|<|>)|(?P<mark>[()|,&])|(?P<word>{WORD})"""
)
BARE = re.compile(rf"{WORD}(?: {WORD})*")
HINT = (
    "names and values with and, or, not, in, is or a sign in them need quotation marks "
    "(docs/query.md)"
)


def parse_condition(text: str, schema: Schema) -> Condition:
    """``sex = Female and not (age < 30 or income in (low, middle))``; `InputError` if it is none.

    ``docs/query.md`` has the grammar.
    """
    if len(text) > LONGEST:
        raise InputError(f"a condition may have {LONGEST:,} characters, not {len(text):,}")
    return _Parser(list(_tokens(text)), schema).condition_alone()


@dataclass(frozen=True)
class _Token:
    kind: Kind
    text: str

    @property
    def shown(self) -> str:
        return "the end" if self.kind == "end" else quoted(self.text)


def _tokens(text: str) -> Iterator[_Token]:
    words: list[str] = []
    place = _after_spaces(text, 0)
    while place < len(text):
        found = TOKEN.match(text, place)
        if found is None:
            if text[place] in "\"'":
                raise InputError(f"a quotation mark is not closed in {quoted(text[place:])}")
            raise InputError(f"{quoted(text[place:])} is not a condition; {HINT}")
        kind, token = found.lastgroup, found.group()
        if kind == "word" and token.lower() not in KEYWORDS:
            words.append(token)
        else:
            if words:
                yield _Token("word", " ".join(words))
                words = []
            yield _token(kind, token)
        place = _after_spaces(text, found.end())
    if words:
        yield _Token("word", " ".join(words))
    yield _Token("end", "")


def _after_spaces(text: str, place: int) -> int:
    while place < len(text) and text[place].isspace():
        place += 1
    return place


def _token(kind: str | None, text: str) -> _Token:
    if kind == "quoted":
        return _Token("quoted", text[1:-1].replace(2 * text[0], text[0]))
    if kind == "word" or text == "&":
        return _Token("keyword", "and" if text == "&" else text.lower())
    return _Token("sign" if kind == "sign" else "mark", "=" if text == "==" else text)


class _Parser:
    """One pass over the tokens, a method for each rule of the grammar."""

    def __init__(self, tokens: list[_Token], schema: Schema) -> None:
        self._tokens, self._schema = tokens, schema
        self._place = self._depth = 0

    @property
    def _next(self) -> _Token:
        return self._tokens[self._place]

    def _take(self, kind: Kind, *texts: str) -> _Token | None:
        """The next token, if it is one of these."""
        token = self._next
        if token.kind != kind or (texts and token.text not in texts):
            return None
        self._place += 1
        return token

    def _wrong(self, wanted: str) -> NoReturn:
        where = f"after {self._tokens[self._place - 1].shown}" if self._place else "it begins with"
        found = f"comes {self._next.shown}" if self._place else self._next.shown
        raise InputError(
            f"this is not a condition: {where} {found} where {wanted} is expected; {HINT}"
        )

    def condition_alone(self) -> Condition:
        found = self._condition()
        if self._next.kind != "end":
            self._wrong("“and”, “or” or the end")
        return found

    def _condition(self) -> Condition:
        parts = [self._both()]
        while self._take("keyword", "or"):
            parts.append(self._both())
        return parts[0] if len(parts) == 1 else AnyOf(tuple(parts))

    def _both(self) -> Condition:
        parts = [self._one()]
        while self._take("keyword", "and"):
            parts.append(self._one())
        return parts[0] if len(parts) == 1 else AllOf(tuple(parts))

    def _one(self) -> Condition:
        self._depth += 1
        if self._depth > DEEPEST:
            raise InputError(f"this condition is nested more than {DEEPEST} deep")
        if self._take("keyword", "not"):
            found = _negated(self._one(), self._schema)
        elif self._take("mark", "("):
            found = self._condition()
            if not self._take("mark", ")"):
                self._wrong("“and”, “or” or “)”")
        else:
            found = self._comparison()
        self._depth -= 1
        return found

    def _comparison(self) -> Condition:
        place, attribute = self._attribute()
        sign = self._take("sign")
        if sign is not None:
            return self._compared(place, attribute, sign.text)
        if self._take("keyword", "is"):
            return self._missing(place, attribute)
        negated = self._take("keyword", "not")
        if not self._take("keyword", "in"):
            self._wrong("=, !=, <, <=, >, >=, “in” or “is”")
        if not self._take("mark", "("):
            self._wrong("“(”")
        values = self._values(",")
        if not self._take("mark", ")"):
            self._wrong("“,” or “)”")
        found = _any_of(place, attribute, values)
        return _negated(found, self._schema) if negated else found

    def _attribute(self) -> tuple[int, Attribute]:
        token = self._take("word") or self._take("quoted")
        if token is None:
            self._wrong("the name of an attribute")
        names = self._schema.names
        if token.text in names:
            place = names.index(token.text)
            return place, self._schema.attributes[place]
        if self._next.kind not in ("sign", "keyword"):
            self._place -= 1
            self._wrong("attribute = value")
        near = difflib.get_close_matches(token.text, names, n=1)
        hint = f"; did you mean {quoted(near[0])}?" if near else ""
        raise InputError(
            f"there is no attribute {token.text!r}; they are {all_quoted(names)}{hint}"
        )

    def _compared(self, place: int, attribute: Attribute, sign: str) -> Condition:
        values = self._values("|")
        if sign in ("=", "!="):
            found = _any_of(place, attribute, values)
            return found if sign == "=" else _negated(found, self._schema)
        if len(values) > 1:
            raise InputError(f"attribute {attribute.name!r}: {sign} compares with one value")
        return _in_order(place, attribute, sign, values[0])

    def _values(self, separator: str) -> list[str]:
        values = [self._value()]
        while self._take("mark", separator):
            values.append(self._value())
        if separator == "|" and len(values) > 1 and self._next.kind == "sign":
            raise InputError("“|” stands between values of one attribute; write “or” instead")
        return values

    def _value(self) -> str:
        token = self._take("word") or self._take("quoted")
        if token is None:
            self._wrong("a value")
        return token.text

    def _missing(self, place: int, attribute: Attribute) -> Condition:
        negated = self._take("keyword", "not")
        token = self._take("word", "missing", "answered")
        if token is None:
            self._wrong("“missing” or “answered”")
        if attribute.missing is None:
            raise InputError(
                f"attribute {attribute.name!r}: everyone had to answer it; none of its categories "
                "is declared as missing"
            )
        missing = Among(place, frozenset([attribute.categories.index(attribute.missing)]))
        return (
            missing
            if (token.text == "missing") != bool(negated)
            else _complement(missing, attribute)
        )


# ── What is meant ──────────────────────────────────────────────────────────────────────────────


def _complement(found: Among, attribute: Attribute) -> Among:
    return Among(found.attribute, frozenset(range(attribute.size)) - found.codes)


def _negated(found: Condition, schema: Schema) -> Condition:
    """Everybody for whom it does not hold; of one attribute, the other categories."""
    if isinstance(found, Among):
        return _complement(found, schema.attributes[found.attribute])
    return Not(found)


def _any_of(place: int, attribute: Attribute, values: list[str]) -> Condition:
    if not attribute.numeric:
        return Among(place, frozenset(_code(value, attribute) for value in values))
    parts = tuple(Compared(place, "=", attribute.number(attribute.code(value))) for value in values)
    return parts[0] if len(parts) == 1 else AnyOf(parts)


def _code(text: str, attribute: Attribute) -> int:
    """The category of this name; or, where there are intervals, the one that holds the number."""
    if text in attribute.categories:
        return attribute.categories.index(text)
    code = attribute.code(text)
    if attribute.joins:
        category = attribute.categories[code]
        raise InputError(
            f"attribute {attribute.name!r}: {quoted(text)} was told as {quoted(category)}, as "
            f"others were; ask for {quoted(category)}"
        )
    return code


def _in_order(place: int, attribute: Attribute, sign: str, text: str) -> Condition:
    """Those whose answer comes before or after a value; never those who gave none."""
    if attribute.numeric:
        return Compared(place, sign, _number(text, attribute))
    answers = attribute.answer_codes
    if text in attribute.categories:
        if attribute.type == "nominal" and attribute.bins is None:
            raise InputError(_without_order(attribute, sign))
        code = attribute.categories.index(text)
        if code not in answers:
            raise InputError(
                f"attribute {attribute.name!r}: {quoted(text)} is no answer and has no place in "
                "the order; ask with “is missing”"
            )
        ranks = np.arange(len(answers))
        met = Compared(place, sign, answers.index(code)).of(ranks).tolist()
    elif attribute.bins is not None:
        met = _intervals(attribute, attribute.bins, sign, _number(text, attribute))
    else:
        if attribute.type == "nominal":
            raise InputError(_without_order(attribute, sign))
        attribute.code(text)  # says what is wrong
        raise InputError(f"attribute {attribute.name!r}: {text!r} is not one of its categories")
    return Among(place, frozenset(itertools.compress(answers, met)))


def _without_order(attribute: Attribute, sign: str) -> str:
    return (
        f"attribute {attribute.name!r} is nominal: its values have no order, so {sign} says "
        "nothing; ask with =, != or in"
    )


def _number(text: str, attribute: Attribute) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        categories = f", nor one of {all_quoted(attribute.categories)}" * bool(attribute.categories)
        raise InputError(f"attribute {attribute.name!r}: {text!r} is not a number{categories}")
    return number


def _intervals(
    attribute: Attribute, bins: tuple[float, ...], sign: str, number: float
) -> list[bool]:
    """Which intervals are wholly below or above a number; `InputError` if one is cut in two."""
    met = []
    for place, (low, high) in enumerate(itertools.pairwise(bins)):
        last = place == len(bins) - 2  # which holds its upper edge, too
        if sign in ("<", ">="):
            below, above = high < number or (high == number and not last), low >= number
        else:
            below, above = high <= number, low > number
        if not below and not above:
            edges = ", ".join(f"{edge:.15g}" for edge in bins[1:-1])
            raise InputError(
                f"attribute {attribute.name!r} was asked in intervals: who answered "
                f"{quoted(attribute.categories[place])} may be {sign} {number:.15g} or not; ask "
                f"with < or >= and an edge ({edges}), or with the name of an interval"
            )
        met.append(below == (sign in ("<", "<=")))
    return met


# ── In words ───────────────────────────────────────────────────────────────────────────────────


def in_words(condition: Condition, schema: Schema) -> str:
    """How it was understood, in the same language."""
    match condition:
        case Among():
            return _among_in_words(condition, schema.attributes[condition.attribute])
        case Compared():
            name = written(schema.names[condition.attribute])
            return f"{name} {condition.sign} {condition.number:.15g}"
        case AllOf():
            parts = (
                _in_brackets(part, schema, isinstance(part, AnyOf)) for part in condition.parts
            )
            return " and ".join(parts)
        case AnyOf():
            return " or ".join(in_words(part, schema) for part in condition.parts)
        case Not():
            compound = isinstance(condition.part, AllOf | AnyOf)
            return f"not {_in_brackets(condition.part, schema, compound)}"
    raise TypeError(condition)


def _in_brackets(condition: Condition, schema: Schema, wanted: bool) -> str:
    words = in_words(condition, schema)
    return f"({words})" if wanted else words


def _among_in_words(found: Among, attribute: Attribute) -> str:
    """What is counted, or what is not if that is shorter and everybody answered."""
    name, categories = written(attribute.name), attribute.categories
    others = [c for code, c in enumerate(categories) if code not in found.codes]
    wanted = [c for code, c in enumerate(categories) if code in found.codes]
    shorter = bool(others) and len(others) < len(wanted) and attribute.missing is None
    values = [written(value) for value in (others if shorter or not wanted else wanted)]
    negated = shorter or not wanted
    if len(values) == 1:
        return f"{name} {'!=' if negated else '='} {values[0]}"
    return f"{name} {'not in' if negated else 'in'} ({', '.join(values)})"


def written(text: str) -> str:
    """A name or value as it can be written in a condition."""
    bare = BARE.fullmatch(text) is not None
    if bare and not any(word.lower() in KEYWORDS for word in text.split(" ")):
        return text
    return f'"{text}"' if '"' not in text else "'" + text.replace("'", "''") + "'"
