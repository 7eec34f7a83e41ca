"""What is asked: attributes with their categories or numbers, and how a record is checked."""

import difflib
import itertools
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

import msgspec

from mpc_rr.errors import DataError, SchemaError, all_quoted, key, plain, quoted, unprintable

Record = tuple[int, ...]
"""One party's answers as category numbers (of a numeric attribute: steps above its lowest value,
and one step above its highest if there is no answer), in the order of the schema. Secret to its
party."""

Text = str | dict[str, str]
"""Words for people: in one language, or in several, by language; the first is the default."""
LANGUAGE = re.compile(r"[a-z]{2,3}(-[A-Za-z0-9]{2,8})*")

GRID_TOLERANCE = 1e-6
"""By this share of a step a number may miss the grid, because decimals are not exact."""

MOST_STEPS = 1 << 53
"""So many values a numeric attribute may have and still be exact."""


def text_fault(text: Text) -> str | None:
    """Why this cannot be shown to people, or None."""
    if isinstance(text, dict):
        if not text:
            return "it is in no language"
        wrong = [language for language in text if LANGUAGE.fullmatch(language) is None]
        if wrong:
            return f"{wrong[0]!r} is no language; write en, de, pt-BR, …"
    words = text.values() if isinstance(text, dict) else (text,)
    if not all(word.strip() for word in words):
        return "it must not be empty"
    return None


def _repeated(words: Sequence[str]) -> set[str]:
    return {word for word, count in Counter(words).items() if count > 1}


def _languages(texts: Mapping[str, Text] | None) -> set[str]:
    return {lang for text in (texts or {}).values() if isinstance(text, dict) for lang in text}


def in_language(text: Text, language: str | None = None) -> str:
    """The words in this language, or else in the first that is given."""
    if isinstance(text, str):
        return text
    return text.get(language or "", next(iter(text.values())))


class Attribute(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One question: its name, its possible answers, and whether these have an order.

    A numeric question gives ``bins``: the rising edges of its intervals. Interval k holds
    ``bins[k] <= value < bins[k+1]``; the last one also holds its upper edge. ``inf`` and ``-inf``
    are allowed as outer edges.

    ``missing`` names the category of those who give no answer; without it, everybody must.

    A ``numeric`` question has no categories but numbers from ``lowest`` to ``highest`` in steps of
    ``step``; only protocols that publish values, not counts, can ask it. What it has as ``missing``
    is no number.
    """

    name: str
    type: Literal["nominal", "ordinal", "numeric"]
    categories: tuple[str, ...]
    bins: tuple[float, ...] | None = None
    missing: str | None = None
    lowest: float | None = None
    highest: float | None = None
    step: float | None = None
    label: Text | None = None
    """What people read instead of the name."""
    question: Text | None = None
    """The question as people are asked it."""
    labels: dict[str, Text] | None = None
    """What people read instead of a category, by category."""
    joins: dict[str, tuple[str, ...]] | None = None
    """Finer answers that are told as one of the categories, by category: nothing else leaves the
    respondent (003 §4)."""
    clip: Literal["top", "bottom", "both"] | None = None
    """Of a numeric question: at which end numbers beyond the range count as its last one."""

    @property
    def answer_codes(self) -> tuple[int, ...]:
        """The numbers of the categories that are answers: all but that of those who gave none."""
        return tuple(k for k, category in enumerate(self.categories) if category != self.missing)

    @property
    def missing_code(self) -> int | None:
        """The code of those who gave no answer; None if everybody must give one."""
        if self.missing is None:
            return None
        return self._numbers if self.numeric else self.categories.index(self.missing)

    def __hash__(self) -> int:
        return hash((self.name, self.type, self.categories, self.bins, self.lowest, self.highest))

    def __post_init__(self) -> None:
        self._check_words()
        if not self.name or self.name != self.name.strip():
            raise SchemaError(f"attribute {self.name!r}: a name must not be empty or padded")
        if self.type == "numeric":
            self._check_grid()
            for part in ("lowest", "highest", "step"):  # 0 and 0.0 are the same study
                msgspec.structs.force_setattr(self, part, float(getattr(self, part)))
            return
        if any(part is not None for part in (self.lowest, self.highest, self.step, self.clip)):
            raise SchemaError(
                f'attribute {self.name!r}: lowest, highest, step and clip go with type = "numeric"'
            )
        if self.missing is not None and self.missing not in self.categories:
            msgspec.structs.force_setattr(self, "categories", (*self.categories, self.missing))
        if len(self.categories) < 2:
            raise SchemaError(f"attribute {self.name!r}: at least two categories are needed")
        if any(not c or c != c.strip() for c in self.categories):
            raise SchemaError(f"attribute {self.name!r}: a category must not be empty or padded")
        repeated = _repeated(self.categories)
        if repeated:
            raise SchemaError(f"attribute {self.name!r}: category {min(repeated)!r} is given twice")
        if self.bins is not None:
            self._check_bins(self.bins)
        self._check_joins(self.joins or {})

    def _check_joins(self, joins: Mapping[str, tuple[str, ...]]) -> None:
        """Every finer answer is told as one category."""
        where = f"attribute {self.name!r}: joins"
        if joins and self.bins is not None:
            raise SchemaError(f"{where}: numbers are joined by wider bins")
        for category, finer in joins.items():
            if category not in self.categories or category == self.missing:
                raise SchemaError(f"{where}: {category!r} is no category that can be answered")
            if not finer or any(not text or text != text.strip() for text in finer):
                raise SchemaError(f"{where}: an answer must not be empty or padded")
        every = [text for finer in joins.values() for text in finer]
        twice = _repeated(every) | (set(every) & set(self.categories))
        if twice:
            raise SchemaError(f"{where}: {min(twice)!r} is two answers")

    def _check_words(self) -> None:
        """Labels and questions say something, and labels are those of categories."""
        where = f"attribute {self.name!r}"
        given = {"label": self.label, "question": self.question}
        known = set(self.categories) if self.labels else set()
        for category, words in (self.labels or {}).items():
            if category not in known:
                raise SchemaError(f"{where}: labels names {category!r}, which is no category of it")
            given[f"labels.{key(category)}"] = words
        for field, text in given.items():
            fault = None if text is None else text_fault(text)
            if fault is not None:
                raise SchemaError(f"{where}: {field}: {fault}")
        for language in (None, *_languages(self.labels)) if self.labels else ():
            shown = [self.category_title(category, language) for category in self.categories]
            if len(set(shown)) < len(shown):
                raise SchemaError(f"{where}: labels: two categories would look the same")

    def title(self, language: str | None = None) -> str:
        """What people call it: its label, or its name."""
        return self.name if self.label is None else in_language(self.label, language)

    def asked(self, language: str | None = None) -> str:
        """The question as people are asked it, or what they call the attribute."""
        return (
            self.title(language) if self.question is None else in_language(self.question, language)
        )

    def category_title(self, category: str, language: str | None = None) -> str:
        """What people call one of its categories."""
        label = (self.labels or {}).get(category)
        return category if label is None else in_language(label, language)

    def _check_bins(self, bins: tuple[float, ...]) -> None:
        if any(math.isnan(edge) for edge in bins) or any(
            low >= high for low, high in itertools.pairwise(bins)
        ):
            raise SchemaError(f"attribute {self.name!r}: bins must rise, each above the one before")
        named = len(self.categories) - (self.missing is not None)
        if len(bins) - 1 != named:
            raise SchemaError(
                f"attribute {self.name!r}: {len(bins)} bin edges make {len(bins) - 1} intervals, "
                f"but there are {named} categories"
            )
        if self.missing is not None and self.categories[-1] != self.missing:
            raise SchemaError(
                f"attribute {self.name!r}: with bins, the missing category must be the last one"
            )

    def _check_grid(self) -> None:
        where = f"attribute {self.name!r}"
        if self.categories or self.bins is not None or self.joins:
            raise SchemaError(
                f"{where}: a numeric attribute has no categories, no joins and no bins"
            )
        low, high, step = self.lowest, self.highest, self.step
        if low is None or high is None or step is None:
            raise SchemaError(f"{where}: a numeric attribute needs lowest, highest and step")
        if not (math.isfinite(low) and math.isfinite(high) and low < high):
            raise SchemaError(f"{where}: lowest must be below highest, and both finite")
        if not 0 < step <= (high - low) * (1 + GRID_TOLERANCE):
            raise SchemaError(f"{where}: step must be positive and within lowest and highest")
        if (high - low) / step >= MOST_STEPS:
            raise SchemaError(f"{where}: its step is too small for its range to be kept exactly")
        if self.missing is not None:
            self._check_missing(self.missing, low, high)

    def _check_missing(self, missing: str, low: float, high: float) -> None:
        """What stands for no answer can be told from every number."""
        where = f"attribute {self.name!r}"
        if not missing or missing != missing.strip():
            raise SchemaError(f"{where}: missing must not be empty or padded")
        try:
            number = float(missing)
        except ValueError:
            return
        if low <= number <= high:
            raise SchemaError(
                f"{where}: missing must not be a number from lowest to highest: {missing} could be "
                "an answer"
            )

    @property
    def numeric(self) -> bool:
        """Whether its answers are numbers and not categories."""
        return self.type == "numeric"

    @property
    def size(self) -> int:
        """The number of categories, or of possible numbers; no answer, where allowed, is one."""
        return self._numbers + (self.missing is not None) if self.numeric else len(self.categories)

    @property
    def answers_possible(self) -> int:
        """How many different answers can be given; to give none is not among them."""
        return self.size - (self.missing is not None)

    @property
    def _numbers(self) -> int:
        """How many numbers a numeric attribute has."""
        assert self.lowest is not None
        assert self.highest is not None
        assert self.step is not None
        return math.floor((self.highest - self.lowest) / self.step + GRID_TOLERANCE) + 1

    def number(self, code: float) -> float:
        """The number that so many steps above the lowest stand for (of a numeric attribute)."""
        assert self.lowest is not None
        assert self.step is not None
        return self.lowest + code * self.step

    @property
    def answers(self) -> str:
        """What can be answered, in words."""
        if self.lowest is None or self.step is None:
            return ", ".join(self.categories)
        highest = self.number(self._numbers - 1)
        grid = f"{self.lowest:.15g} to {highest:.15g} in steps of {self.step:.15g}"
        if self.clip in ("bottom", "both"):
            grid += f"; less counts as {self.lowest:.15g}"
        if self.clip in ("top", "both"):
            grid += f"; more counts as {highest:.15g}"
        return grid if self.missing is None else f"{grid}, or {quoted(self.missing)}"

    @property
    def intervals(self) -> dict[str, str]:
        """Which numbers, to the last digit, or finer answers are counted as each category."""
        if self.joins:
            return {c: f"also {all_quoted(finer)}" for c, finer in self.joins.items()}
        edges = list(itertools.pairwise(self.bins or ()))
        found = {}
        for place, (category, (low, high)) in enumerate(zip(self.categories, edges, strict=False)):
            ends = [] if math.isinf(low) else [f"{_exactly(low)} and above"]
            if not math.isinf(high):
                last = place == len(edges) - 1
                ends.append(f"{'up to' if last else 'below'} {_exactly(high)}")
            found[category] = ", ".join(ends) or "any number"
        return found

    def text(self, code: int) -> str:
        """An answer as people write it."""
        if not self.numeric:
            return self.categories[code]
        if self.missing is not None and code == self.missing_code:
            return self.missing
        return f"{self.number(code):.15g}"

    def cell(self, code: int) -> str:
        """An answer in a sheet: a column of numbers is blank where there is none."""
        return "" if self.numeric and code == self.missing_code else self.text(code)

    def code(self, value: object) -> int:
        """The number of the category that ``value`` falls in; `DataError` if there is none."""
        if _is_nothing(value):
            if self.missing_code is None:
                raise DataError(
                    f"attribute {self.name!r}: no value given, but it must be answered (the study "
                    "file has no 'missing' for it)"
                )
            return self.missing_code
        if self.missing_code is not None and str(value).strip() == self.missing:
            return self.missing_code
        if self.bins is not None:
            return self._interval(value, self.bins)
        if self.lowest is not None and self.step is not None:
            return self._steps(value, self.lowest, self.step)
        text = str(value).strip()
        told = self.told_as.get(text)
        if told is not None:
            return told
        near = difflib.get_close_matches(text, self.told_as, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise DataError(
            f"attribute {self.name!r}: {text!r} is not one of its categories "
            f"({all_quoted(self.categories)}){hint}"
        )

    @property
    def told_as(self) -> dict[str, int]:
        """Every answer in words, with the number of its category."""
        codes = {category: code for code, category in enumerate(self.categories)}
        finer = {text: codes[c] for c, texts in (self.joins or {}).items() for text in texts}
        return codes | finer

    def _steps(self, value: object, lowest: float, step: float) -> int:
        number = self._parsed(value)
        highest = self.number(self._numbers - 1)
        if self.clip in ("top", "both") and highest < number < math.inf:
            number = highest
        if self.clip in ("bottom", "both") and -math.inf < number < lowest:
            number = lowest
        steps = round((number - lowest) / step) if math.isfinite(number) else -1
        if not 0 <= steps < self._numbers:
            end, last = ("top", highest) if number > highest else ("bottom", lowest)
            clipped = f' (with clip = "{end}" in the study file it would count as {last:.15g})'
            raise DataError(
                f"attribute {self.name!r}: {number:.15g} is outside {lowest:.15g} to "
                f"{highest:.15g}{clipped if math.isfinite(number) else ''}"
            )
        if abs(self.number(steps) - number) > GRID_TOLERANCE * step:
            raise DataError(
                f"attribute {self.name!r}: {number:.15g} is not {lowest:.15g} plus a multiple of "
                f"its step, {step:.15g}"
            )
        return steps

    def _parsed(self, value: object) -> float:
        text = str(value).strip()
        try:
            return float("" if "_" in text else text)  # Python would read 1_000 as 1000
        except ValueError:
            comma = re.fullmatch(r"[+-]?\d+,\d+", text) is not None
            hint = f"; with a point it would be {text.replace(',', '.')}" if comma else ""
            raise DataError(f"attribute {self.name!r}: {value!r} is not a number{hint}") from None

    def _interval(self, value: object, bins: tuple[float, ...]) -> int:
        number = self._parsed(value)
        if not bins[0] <= number <= bins[-1]:
            raise DataError(
                f"attribute {self.name!r}: {number:g} is outside its bins, "
                f"{bins[0]:g} to {bins[-1]:g}"
            )
        above = sum(number >= edge for edge in bins)
        return min(above, len(bins) - 1) - 1


def _exactly(number: float) -> str:
    """As short as it can be without becoming another number."""
    return repr(float(number)).removesuffix(".0")


def _is_nothing(value: object) -> bool:
    """Whether this is no answer: None, a text without letters, or a NaN (which "nan" is not)."""
    if isinstance(value, float) and math.isnan(value):
        return True
    return value is None or str(value).strip() == ""


def interval_labels(bins: tuple[float, ...]) -> tuple[str, ...]:
    """Category names for bins that were given none: ``16–30``, ``under 16``, ``65 and over``."""
    labels = []
    for low, high in itertools.pairwise(bins):
        if math.isinf(low):
            labels.append("any" if math.isinf(high) else f"under {high:.15g}")
        elif math.isinf(high):
            labels.append(f"{low:.15g} and over")
        else:
            labels.append(f"{low:.15g}–{high:.15g}")
    return tuple(labels)


MOST_CATEGORIES = 100_000
"""So many may all attributes of a study, or of a result folder, have together."""
LONGEST_WORD = 1000
"""So many characters may a name, a category, a label or a question have."""


def _check_word(field: str, text: str) -> None:
    fault = unprintable(text)
    if fault is None and len(text) > LONGEST_WORD:
        fault = f"it has {len(text):,} characters; {LONGEST_WORD:,} are possible"
    if fault is not None:
        raise SchemaError(f"{plain(field)}: {fault}")


def check_categories(attributes: Sequence[Attribute]) -> None:
    """`SchemaError` if attributes have more categories together than can be worked with."""
    categories = sum(len(attribute.categories) for attribute in attributes)
    categories += sum(len(t) for a in attributes for t in (a.joins or {}).values())
    if categories > MOST_CATEGORIES:
        raise SchemaError(
            f"the schema has {categories:,} categories; {MOST_CATEGORIES:,} are possible: "
            "make them coarser, or ask for numbers"
        )


class Schema(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The attributes of a study, in order."""

    attributes: tuple[Attribute, ...]

    def __post_init__(self) -> None:
        if len(self.attributes) < 2:
            raise SchemaError("the schema needs at least two attributes to count pairs of them")
        check_categories(self.attributes)
        repeated = _repeated(self.names)
        if repeated:
            raise SchemaError(f"attribute {min(repeated)!r} is in the schema twice")
        for language in (None, *self.languages):
            shown = [attribute.title(language) for attribute in self.attributes]
            alike = _repeated(shown)
            if alike:
                raise SchemaError(f"two attributes would both be called {min(alike)!r}")

    @property
    def names(self) -> tuple[str, ...]:
        """The attributes' names, in order."""
        return tuple(attribute.name for attribute in self.attributes)

    @property
    def sizes(self) -> tuple[int, ...]:
        """The attributes' numbers of categories, in order."""
        return tuple(attribute.size for attribute in self.attributes)

    def attribute(self, name: str) -> Attribute:
        """One attribute, by its name; `SchemaError` if there is none."""
        if name not in self.names:
            raise SchemaError(f"there is no attribute {name!r}; they are {all_quoted(self.names)}")
        return self.attributes[self.names.index(name)]

    def texts(self) -> Iterator[tuple[str, str, Text]]:
        """All words for people: of which attribute, for what, and the words."""
        for a in self.attributes:
            named = {"label": a.label, "question": a.question}
            labels = {
                f"labels.{key(category)}": text for category, text in (a.labels or {}).items()
            }
            for field, text in (named | labels).items():
                if text is not None:
                    yield a.name, field, text

    def check_words(self) -> None:
        """`SchemaError` if not all names, categories and words can be shown on one line.

        Whoever makes a schema is asked to call it; those of older result folders are read as they
        are.
        """
        for a in self.attributes:
            missing = [(".missing", a.missing)] if a.numeric and a.missing is not None else []
            joined = [(".joins", text) for texts in (a.joins or {}).values() for text in texts]
            words = [("", a.name), *((".categories", c) for c in a.categories), *missing, *joined]
            for part, text in words:
                _check_word(f"schema.{key(a.name)}{part}", text)
        for name, field, said in self.texts():
            for word in said.values() if isinstance(said, dict) else (said,):
                _check_word(f"schema.{key(name)}.{field}", word)

    @property
    def languages(self) -> tuple[str, ...]:
        """The languages in which any label or question is given, in order."""
        found: dict[str, None] = {}
        for _, _, text in self.texts():
            found |= dict.fromkeys(text if isinstance(text, dict) else ())
        return tuple(found)

    def check_language(self, language: str | None) -> None:
        """`SchemaError` if nothing is said in this language."""
        known = self.languages
        if language is not None and known and language not in known:
            raise SchemaError(f"the study has no words in {language!r}; it has {', '.join(known)}")

    def with_missing_as_answers(self) -> "Schema":
        """The same, where who gave no answer is taken to have answered that category.

        So results were made by rules below 3, which knew no numeric attribute without an answer.
        """
        return Schema(
            tuple(
                a if a.numeric else msgspec.structs.replace(a, missing=None)
                for a in self.attributes
            )
        )

    def pick(self, names: Sequence[str]) -> tuple[Attribute, ...]:
        """Some attributes, by their names."""
        return tuple(self.attributes[self.names.index(name)] for name in names)

    def encode(self, answers: Mapping[str, object]) -> Record:
        """Check one record and turn it into category numbers; `DataError` says what is wrong."""
        unknown = [name for name in answers if name not in self.names]
        if unknown:
            raise DataError(f"{unknown[0]!r} is not an attribute of this study")
        return tuple(attribute.code(answers.get(attribute.name)) for attribute in self.attributes)
