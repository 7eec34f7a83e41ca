"""A draft of a study from a file with records: what could be asked, and what had better not be.

What a file cannot tell is asked of whoever drafts (`Asker`), with an answer that is assumed where
nobody can be asked. Whatever was assumed is said.
"""

import itertools
import json
import math
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from mpc_rr.errors import DataError, all_quoted, plain, quoted, unprintable
from mpc_rr.schema import interval_labels
from mpc_rr.study.checks import LONGEST_NAME
from mpc_rr.study.identifying import FEW_RECORDS, Looks, looks
from mpc_rr.study.layout import PLAIN, Layout, Sheet, found_in
from mpc_rr.study.scales import (
    in_order,
    numbers_for_no_answer,
    value_labels,
    without_gaps,
    words_for_no_answer,
)
from mpc_rr.study.suggesting import (
    FEW_NUMBERS,
    MOST_CATEGORIES,
    Bins,
    Categories,
    Numbers,
    Unsuitable,
    numbers_of,
    suggest,
    suggest_bins,
    suggest_numbers,
)

SHOWN = 6
"""So many values are quoted where a column is asked about."""
LONGEST_HEADER = 40
"""A longer header is a question; the attribute gets a name of its own."""
NO_ANSWER, OTHER = "no answer", "other"


class Asker(Protocol):
    """Whoever drafts, or what is assumed in their place."""

    def yes(self, question: str, *, usual: bool, assumed: str) -> bool:
        """Yes or no; ``usual`` is taken, and ``assumed`` is said, where nobody can be asked."""

    def text(self, question: str, *, usual: str, assumed: str) -> str:
        """Some words."""

    def choice(self, question: str, options: Sequence[str], *, usual: int, assumed: str) -> int:
        """One of these, by its place."""

    def tell(self, warning: str) -> None:
        """What whoever drafts should know."""


@dataclass
class Asked:
    """A column of which a question is made."""

    name: str
    header: str
    question: str | None
    kind: Categories | Bins | Numbers
    missing: str | None = None
    gaps: int = 0
    labels: dict[str, str] = field(default_factory=dict)
    values: dict[str, str] = field(default_factory=dict)
    """What a cell may say, and which answer it means."""
    other: str | None = None


@dataclass(frozen=True)
class Draft:
    """What was made of a file."""

    file: Path
    sheet: Sheet
    asked: tuple[Asked, ...]
    left_out: Mapping[str, str]
    """Columns of which no question was made, and why."""

    @property
    def layout(self) -> Layout:
        """How the file is read as answers to this schema."""
        layout = self.sheet.layout
        return Layout(
            layout.delimiter, layout.encoding, layout.decimal, layout.thousands,
            {a.name: a.header for a in self.asked if a.name != a.header},
            {a.name: a.values for a in self.asked if a.values},
            {a.name: a.other for a in self.asked if a.other is not None},
        )  # fmt: skip

    def schema_text(self) -> str:
        """The ``[schema.…]`` tables of a study file."""
        parts = [HEAD.format(name=plain(self.file.name), rows=self.sheet.rows)]
        parts += [f"# {plain(name)}: left out, {why}." for name, why in self.left_out.items()]
        parts += [_table(asked, self.sheet.rows) for asked in self.asked]
        return "\n".join(parts) + "\n"

    def data_text(self, csv: str) -> str:
        """The ``[data]`` tables of a study file, by which it reads the same file."""
        layout = self.layout
        lines = ["[data]", f"csv = {_text(csv)}"]
        for name in ("delimiter", "encoding", "decimal", "thousands"):
            if getattr(layout, name) != getattr(PLAIN, name):
                lines += [f"{name} = {_text(getattr(layout, name))}"]
        for name in ("columns", "others"):
            if getattr(layout, name):
                lines += ["", f"[data.{name}]", *_pairs(getattr(layout, name))]
        for name, meant in layout.values.items():
            lines += ["", f"[data.values.{_key(name)}]", *_pairs(meant)]
        return "\n".join(lines) + "\n"


HEAD = """# Drafted from {name}: {rows:,} records. Look at every line before you use it.
# Categories and bins are part of the study file, which everyone sees. They must be what is known
# of the question anyhow, not what these records happen to hold.
"""


def draft(file: Path, sheet: Sheet, asker: Asker, *, as_numbers: bool = False) -> Draft:
    """What could be asked of people, by a file with the answers of some.

    ``as_numbers``: numbers are asked as such, for a protocol that publishes values; else as bins.
    """
    _check_headers(file, sheet.headers)
    asked, left_out, names = [], {}, set[str]()
    for header, values in zip(sheet.headers, sheet.columns, strict=True):
        name, question = _name(header, names)
        column = _Column(name, header, question, values, sheet.layout, asker, as_numbers)
        found = column.asked()
        if isinstance(found, str):
            left_out[header] = found
        else:
            _check_shown(file, found)
            names.add(name)
            asked.append(found)
    if not asked:
        raise DataError(f"{file}: no column has values that could be asked for")
    return Draft(file, sheet, tuple(asked), left_out)


def _check_headers(file: Path, headers: Sequence[str]) -> None:
    for number, name in enumerate(headers, start=1):
        if not name:
            raise DataError(f"{file}: column {number} has no name")
        if headers.count(name) > 1:
            raise DataError(f"{file}: column {name!r} is there twice")


def _check_shown(file: Path, asked: Asked) -> None:
    """What would stand in the study file can be printed there."""
    kind = asked.kind
    texts = [asked.header, *(kind.texts if isinstance(kind, Categories) else ()), *asked.values]
    for fault in filter(None, map(unprintable, texts)):
        raise DataError(f"{file}: column {asked.header!r}: {fault}")


CODED = re.compile(r"([A-Za-z]{1,4}[0-9]{1,4}[a-z]?(?:_[A-Za-z0-9]{1,4})?)[.:)\]\s–-]+(\S.*)")
"""A header with the number of its question before the question: ``q12. How old are you?``"""


def _name(header: str, taken: set[str]) -> tuple[str, str | None]:
    """The name of an attribute, and the question if the header is one."""
    words = " ".join(header.split())
    coded = CODED.fullmatch(words)
    if coded:
        name, question = coded.group(1), coded.group(2)
    elif len(words) > LONGEST_HEADER or words.endswith("?"):
        slug = re.sub(r"[^\w]+", "_", words.casefold()).strip("_")
        name, question = slug[:LONGEST_HEADER].rstrip("_") or "question", words
    else:
        return words[:LONGEST_NAME], None
    first, number = name, 2
    while name in taken:
        name, number = f"{first}_{number}", number + 1
    return name, question


@dataclass
class _Column:
    """One column, on its way to a question."""

    name: str
    header: str
    question: str | None
    values: Sequence[str]
    layout: Layout
    asker: Asker
    as_numbers: bool

    def asked(self) -> Asked | str:
        """The question, or why there is none."""
        given = [value for value in self.values if value]
        reason = self._unsuited(given)
        if reason is not None:
            return reason
        coded = self._no_answer(given)
        given = [value for value in given if value not in coded]
        found = self._kind(given)
        if isinstance(found, str):
            return found
        found.gaps = len(self.values) - len(given)
        if found.gaps:
            taken = found.kind.texts if isinstance(found.kind, Categories) else ()
            found.missing = _unlike(NO_ANSWER, taken)
            found.values |= dict.fromkeys(coded, found.missing)
        return found

    def _unsuited(self, given: list[str]) -> str | None:
        """Why no question should be made of it."""
        if len(set(given)) < 2:
            return "it has fewer than two different values"
        numbers = self._numbers(given) is not None
        why = looks(self.header, given, numbers=numbers)
        if why is None:
            return None
        kept = why is not Looks.DATE and len(set(given)) <= MOST_CATEGORIES and self.asker.yes(
            f"Column {self._title}: {why} ({_some(given)}). Its answers would stand in the study "
            "file. Ask for it all the same?",
            usual=False,
            assumed=f"column {self._title} is left out: {why}",
        )  # fmt: skip
        return None if kept else why.value

    @property
    def _title(self) -> str:
        return quoted(self.header)

    def _numbers(self, texts: Sequence[str]) -> list[float] | None:
        return numbers_of([self.layout.number(text) for text in texts])

    def _no_answer(self, given: list[str]) -> list[str]:
        """The texts that mean that there is no answer."""
        different, counts = set(given), Counter(given)
        words = words_for_no_answer(different)
        labels = value_labels(different - set(words)) or {}
        words += words_for_no_answer_in(labels)
        codes = {
            str(labels[text][0]) if text in labels else self.layout.number(text): text
            for text in different - set(words)
        }
        candidates = [(word, True) for word in words]
        candidates += [(codes[code], sure) for code, sure in numbers_for_no_answer(codes)
                       if not labels.get(codes[code], (0, ""))[1]]  # fmt: skip
        found = []
        for text, sure in candidates:
            if self.asker.yes(
                f"Column {self._title}: {counts[text]:,} records say {quoted(text)}, others "
                f"{_some([v for v in given if v != text])}. Does {quoted(text)} mean that there is "
                "no answer?",
                usual=sure,
                assumed=f"{quoted(text)} in column {self._title} "
                + ("means that there is no answer" if sure else "is an answer like any other"),
            ):
                found.append(text)
        return found

    def _kind(self, given: list[str]) -> Asked | str:
        """What kind of question it is, or why it is none."""
        different = sorted(set(given))
        if len(different) < 2:
            return "it has fewer than two different values"
        labels = None if in_order(different) else value_labels(different)
        if labels is not None:
            return self._labelled(labels)
        numbers = self._numbers(given)
        if numbers is None:
            return self._words(given)
        if len(different) > FEW_NUMBERS or self._told_apart(given):
            return self._number(numbers)
        return self._few_numbers(different)

    def _told_apart(self, given: list[str]) -> bool:
        """Whether few different numbers are not named, because a single record has one of them.

        The numbers of a scale without gaps are: they say what could be answered.
        """
        counts = Counter(given)
        alone = [text for text, times in counts.items() if times == 1]
        if not alone or len(given) < FEW_RECORDS or _a_scale(counts):
            return False
        apart = self.asker.yes(
            f"Column {self._title}: only one record says {_some(alone)}"
            + (", each" if len(alone) > 1 else "")
            + ". An answer that is named in the study file is known to have been given. Ask for "
            f"{'numbers' if self.as_numbers else 'intervals'} instead?",
            usual=True,
            assumed=f"{len(alone)} of {len(counts)} numbers are said in column {self._title} by "
            "only one record, so that they are not named",
        )
        if not apart:
            self._warn_of(alone)
        return apart

    def _warn_of(self, alone: Sequence[str]) -> None:
        self.asker.tell(
            f"the study file will name answers of column {self._title} that a single record "
            f"has: {_some(alone)}"
        )

    def _words(self, given: list[str]) -> Asked | str:
        """Answers in words."""
        match suggest(given):
            case Categories(texts, ordinal):
                if ordinal:
                    return self._made(Categories(texts, ordinal))
                return self._nominal(texts, Counter(given))
            case Unsuitable(why):
                return why
            case Bins():
                return "it holds numbers and words"

    def _few_numbers(self, different: Sequence[str]) -> Asked:
        """Few numbers are answers with an order."""
        written = {text: self.layout.number(text) for text in different}
        if all(re.fullmatch(r"-?\d+", text) for text in different):
            return self._made(Categories(self._whole(different), ordinal=True))
        asked = self._made(Categories(tuple(sorted(set(written.values()), key=float)), True))
        asked.values = {text: number for text, number in written.items() if number != text}
        return asked

    def _made(self, kind: Categories | Bins | Numbers) -> Asked:
        return Asked(self.name, self.header, self.question, kind)

    def _whole(self, different: Sequence[str]) -> tuple[str, ...]:
        """Few whole numbers, with those between them."""
        full = without_gaps(different, FEW_NUMBERS)
        if len(full) > len(different):
            unsaid = all_quoted(text for text in full if text not in different)
            kept = self.asker.yes(
                f"Column {self._title}: nobody answered {unsaid}, which lie between the others. "
                "Could they have been answered?",
                usual=True,
                assumed=f"{unsaid} could have been answered in column {self._title}, too",
            )
            return tuple(full if kept else sorted(different, key=int))
        return tuple(full)

    def _labelled(self, labels: Mapping[str, tuple[int, str]]) -> Asked:
        """Values such as ``1 = yes``: the label is the answer, the codes say the order."""
        by_code = sorted(labels, key=lambda text: labels[text][0])
        whole = all(labels[text][1] for text in by_code)
        if whole:
            names = [labels[text][1] for text in by_code]
            ordered = in_order(names)
            ordinal = ordered is not None or (
                len(names) > 2
                and self.asker.yes(
                    f"Column {self._title}: is {', '.join(map(quoted, names))} an order, from one "
                    "end to the other?",
                    usual=False,
                    assumed=f"the answers of column {self._title} have no order",
                )
            )
            asked = self._made(Categories(tuple(names), ordinal))
            asked.values = {text: labels[text][1] for text in by_code}
            return asked
        # Only some have labels, as the ends of a scale: the codes are the answers.
        codes = [str(labels[text][0]) for text in by_code]
        full = self._whole(codes)
        asked = self._made(Categories(full, ordinal=True))
        asked.values = {text: str(labels[text][0]) for text in by_code if labels[text][1]}
        asked.labels = {answer: text for text, answer in asked.values.items()}
        return asked

    def _nominal(self, texts: tuple[str, ...], counts: Counter[str]) -> Asked:
        """Answers in words: in which order, and whether rare ones are named."""
        asked = self._made(Categories(texts, ordinal=False))
        alone = [text for text in texts if counts[text] == 1]
        if alone and counts.total() >= FEW_RECORDS:
            common = [text for text in texts if counts[text] > 1]
            apart = len(common) > 1 and self.asker.yes(
                f"Column {self._title}: only one record says {_some(alone)}"
                + (", each" if len(alone) > 1 else "")
                + ". An answer that is named in the study file is known to have been given. "
                f"Count {'it' if len(alone) == 1 else 'them'} as {quoted(OTHER)} instead?",
                usual=True,
                assumed=f"in column {self._title}, what only one record says is counted as "
                f"{quoted(OTHER)} ({len(alone)} of {len(texts)} answers)",
            )
            if apart:
                asked.other = next((t for t in common if t.casefold() == OTHER), OTHER)
                rest = [text for text in common if text != asked.other]
                asked.kind = Categories((*rest, asked.other), ordinal=False)
                return asked
            self._warn_of(alone)
        if 2 < len(texts) <= FEW_NUMBERS:
            self._order(asked, texts)
        return asked

    def _order(self, asked: Asked, texts: tuple[str, ...]) -> None:
        """The order of the answers, if they have one that the program does not know."""
        numbered = ", ".join(f"{n} {quoted(text)}" for n, text in enumerate(texts, start=1))
        while True:
            said = self.asker.text(
                f"Column {self._title}: {numbered}. If these have an order, give the numbers from "
                "the lowest to the highest, such as 2 1 3; if not, press Enter",
                usual="",
                assumed=f"the answers of column {self._title} have no order",
            )
            places = said.replace(",", " ").split()
            if not places:
                return
            if sorted(places) == sorted(str(n) for n in range(1, len(texts) + 1)):
                asked.kind = Categories(tuple(texts[int(n) - 1] for n in places), ordinal=True)
                return
            self.asker.tell(f"each number from 1 to {len(texts)} once, please")

    def _number(self, numbers: Sequence[float]) -> Asked | str:
        """Many numbers: as bins, or as such."""
        written = [repr(number) for number in numbers]
        grid = suggest_numbers(written) if self.as_numbers else None
        if grid is not None:
            return self._made(grid)
        suggested = suggest_bins(numbers)
        if isinstance(suggested, Unsuitable):
            return suggested.why
        usual = ", ".join(f"{edge:.12g}" for edge in suggested.edges if math.isfinite(edge))
        while True:
            said = self.asker.text(
                f"Column {self._title}: numbers from {min(numbers):g} to {max(numbers):g}. Between "
                "which intervals shall be counted? Give the limits",
                usual=usual,
                assumed=f"column {self._title} is counted in the intervals "
                + "; ".join(interval_labels(suggested.edges)),
            )
            edges = numbers_of(said.replace(",", " ").split())
            if edges and all(low < high for low, high in itertools.pairwise(edges)):
                return self._made(Bins((-math.inf, *edges, math.inf)))
            self.asker.tell("give rising numbers with commas between them, such as 18, 30, 45")


@dataclass
class Assumed:
    """Stands for whoever cannot be asked: takes what is usual, and keeps what that was."""

    said: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def yes(self, _question: str, *, usual: bool, assumed: str) -> bool:
        """What is usual."""
        self.said.append(assumed)
        return usual

    def text(self, _question: str, *, usual: str, assumed: str) -> str:
        """What is usual."""
        self.said.append(assumed)
        return usual

    def choice(self, _question: str, _options: Sequence[str], *, usual: int, assumed: str) -> int:
        """What is usual."""
        self.said.append(assumed)
        return usual

    def tell(self, warning: str) -> None:
        """Keep it."""
        self.warnings.append(warning)


def draft_schema(file: Path, *, numbers: bool = False) -> str:
    """The ``[schema.…]`` tables of a study file, one for each column that can be asked.

    With ``numbers`` a question for a number asks it as it is, on a grid, and not its interval.

    Where the file is not written as `mpc_rr.study.records` expects it, with ``[data]``.
    """
    asker = Assumed()
    drafted = draft(file, found_in(file), asker, as_numbers=numbers)
    said = [f"# Warning: {plain(text)}." for text in asker.warnings]
    said += [f"# Assumed: {plain(text)}." for text in asker.said]
    text = drafted.schema_text().replace(
        "\n\n", "\n" + "".join(f"{line}\n" for line in said) + "\n", 1
    )
    return text if drafted.layout == PLAIN else f"{text}\n{drafted.data_text(file.name)}"


def words_for_no_answer_in(labels: Mapping[str, tuple[int, str]]) -> list[str]:
    """Texts such as ``99 = refused``."""
    words = words_for_no_answer({label for _, label in labels.values()})
    return sorted(text for text, (_, label) in labels.items() if label in words)


def _some(values: Sequence[str]) -> str:
    """Some of these, the commonest first."""
    common = [text for text, _ in Counter(values).most_common()]
    shown = ", ".join(quoted(text[:60]) for text in common[:SHOWN])
    return f"{shown}, …" if len(common) > SHOWN else shown


def _a_scale(different: Collection[str]) -> bool:
    """Whether these are whole numbers with so few between them that all are named."""
    if not all(re.fullmatch(r"-?\d+", text) for text in different):
        return False
    values = list(map(int, different))
    return max(values) - min(values) < FEW_NUMBERS


def _unlike(word: str, taken: Sequence[str]) -> str:
    """A category for those who gave no answer, unlike any that was given."""
    while word in taken:
        word += " given"
    return word


# ── As TOML ────────────────────────────────────────────────────────────────────────────────────


def _text(text: str) -> str:
    """A text of TOML, which JSON's are."""
    return json.dumps(text, ensure_ascii=False)


def _key(name: str) -> str:
    bare = name.isascii() and name.replace("_", "").replace("-", "").isalnum()
    return name if bare else _text(name)


def _pairs(table: Mapping[str, str]) -> list[str]:
    return [f"{_key(name)} = {_text(value)}" for name, value in table.items()]


def _table(asked: Asked, rows: int) -> str:
    lines = []
    if asked.gaps:
        lines.append(f"# {asked.gaps:,} of {rows:,} records have no answer here.")
    lines.append(f"[schema.{_key(asked.name)}]")
    if asked.question is not None:
        lines.append(f"question = {_text(asked.question)}")
    match asked.kind:
        case Bins(edges):
            lines.append(f"bins = [{', '.join(f'{edge:.12g}' for edge in edges)}]")
        case Numbers(lowest, highest, step):
            lines += ['type = "numeric"', f"lowest = {lowest:.15g}", f"highest = {highest:.15g}"]
            lines += [] if step == 1 else [f"step = {step:.15g}"]
            lines += ['clip = "both"  # numbers beyond these are told as these']
        case Categories(texts, ordinal):
            lines += ['type = "ordinal"'] if ordinal else []
            lines.append(f"categories = [{', '.join(map(_text, texts))}]")
    if asked.missing is not None:
        lines.append(f"missing = {_text(asked.missing)}")
    if asked.labels:
        lines.append(f"labels = {{ {', '.join(_pairs(asked.labels))} }}")
    return "\n".join(lines) + "\n"
