"""How a file with records is written: its separators, its encoding, and what its cells mean.

A study file says so in ``[data]``; `found_in` finds it out from the file itself, as far as a file
can tell.
"""

import codecs
import csv
import io
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec

from mpc_rr.errors import DataError, ScenarioError, key, quoted
from mpc_rr.publication.sheets import from_cell
from mpc_rr.schema import Attribute, Schema

if TYPE_CHECKING:
    import _csv

Encoding = Literal["utf-8", "utf-16", "cp1252", "latin-1"]
Delimiter = Literal[",", ";", "\t", "|"]
Decimal = Literal[".", ","]
Thousands = Literal["", ".", ",", " ", "'"]
DELIMITERS: tuple[Delimiter, ...] = (",", ";", "\t", "|")
DELIMITER_WORDS: Mapping[str, str] = {
    ",": "commas",
    ";": "semicolons",
    "\t": "tabs",
    "|": "vertical bars",
}
ENCODING_WORDS: Mapping[str, str] = {
    "utf-8": "UTF-8",
    "utf-16": "UTF-16",
    "cp1252": "Windows-1252",
    "latin-1": "Latin-1",
}
SEPARATOR_LINE = re.compile(r"sep=(.)\r?\n?", re.IGNORECASE)
"""With such a line Excel says at what it separates; it is no record."""
SPACES = re.compile("[\u00a0\u202f]")
QUOTED = re.compile(r'"(?:[^"]|"")*"')
LOOKED_AT = 500
"""So many rows are looked at to find the separator."""


class Layout(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a CSV file is to be read, and what its cells mean as answers."""

    delimiter: Delimiter = ","
    encoding: Encoding = "utf-8"
    decimal: Decimal = "."
    thousands: Thousands = ""
    columns: dict[str, str] = {}
    """Headers of columns that are not called as the attribute is, by attribute."""
    values: dict[str, dict[str, str]] = {}
    """By attribute: what a cell may say, and which answer it means."""
    others: dict[str, str] = {}
    """By attribute: the answer that any other text in a cell means."""

    def check(self, schema: Schema) -> None:
        """`ScenarioError` if it speaks of attributes or answers that the study does not have."""
        for field in ("columns", "values", "others"):
            for name in getattr(self, field):
                if name not in schema.names:
                    raise ScenarioError(f"data.{field}: there is no attribute {quoted(name)}")
        meant = [(f"others.{key(name)}", name, answer) for name, answer in self.others.items()]
        for name, cells in self.values.items():
            meant += [(f"values.{key(name)}", name, answer) for answer in cells.values()]
        for field, name, answer in meant:
            attribute = schema.attribute(name)
            if attribute.bins is None and not attribute.numeric:
                if answer not in attribute.categories:
                    raise ScenarioError(
                        f"data.{field}: {quoted(answer)} is not one of the categories"
                    )
            elif answer != attribute.missing:
                raise ScenarioError(
                    f"data.{field}: of a number only 'missing' can be meant, not {quoted(answer)}"
                )

    def header_of(self, attribute: str) -> str:
        """What the column of an attribute is called in the file."""
        return self.columns.get(attribute, attribute)

    def answer(self, text: str, attribute: Attribute) -> str:
        """What a cell means, as `Attribute.code` reads it."""
        text = text.strip()
        meant = self.values.get(attribute.name, {}).get(text)
        if meant is not None:
            return meant
        if text and (attribute.bins is not None or attribute.numeric) and text != attribute.missing:
            return self.number(text)
        other = self.others.get(attribute.name)
        return other if other is not None and text and text not in attribute.categories else text

    def number(self, text: str) -> str:
        """A number of the file as Python writes it; other texts stay as they are."""
        text = SPACES.sub(" ", text)
        point = re.escape(self.decimal)
        if self.thousands and re.fullmatch(
            rf"[+-]?\d{{1,3}}({re.escape(self.thousands)}\d{{3}})+({point}\d+)?", text
        ):
            text = text.replace(self.thousands, "")
        if self.decimal == ",":
            if "." in text:
                return text.replace(".", "·")  # no number here: 35.000 would be read as 35
            return text.replace(",", ".", 1)
        return text


PLAIN = Layout()


def read_text(path: Path, encoding: Encoding = "utf-8") -> str:
    """The text of a file; `DataError` if there is none."""
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}") from None
    try:
        return raw.decode("utf-8-sig" if encoding == "utf-8" else encoding)
    except UnicodeError as error:
        where = f" (byte {error.start})" if isinstance(error, UnicodeDecodeError) else ""
        other = encoding_of(raw)
        looks = "" if other == encoding else f"; it looks like {ENCODING_WORDS[other]}"
        raise DataError(
            f"{path} is not {ENCODING_WORDS[encoding]} text{where}{looks}: save it as UTF-8 and "
            "try again (mpc-rr init reads it as it is)"
        ) from None


def rows_of(text: str, delimiter: str) -> "_csv.Reader":
    """The lines of a CSV file as fields, without the line by which Excel names its separator."""
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    if SEPARATOR_LINE.match(text):
        next(rows)
    return rows


# ── What a file tells of itself ────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Sheet:
    """A file as it was read: its layout, its headers and its columns."""

    layout: Layout
    headers: tuple[str, ...]
    columns: tuple[tuple[str, ...], ...]
    unsure: str = ""
    """What in its numbers can be read in two ways, in words."""

    @property
    def rows(self) -> int:
        """How many records it has."""
        return len(self.columns[0])


def found_in(
    path: Path, *, delimiter: Delimiter | None = None, encoding: Encoding | None = None
) -> Sheet:
    """Read a file whose layout is not known; what is given is not guessed."""
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}") from None
    encoding = encoding_of(raw) if encoding is None else encoding
    text = read_text(path, encoding)
    delimiter = delimiter_of(text) if delimiter is None else delimiter
    rows = rows_of(text, delimiter)
    try:
        header, *records = [*rows] or [[]]
    except csv.Error as error:
        raise DataError(f"{path}, line {rows.line_num}: not a CSV file ({error})") from None
    headers, columns = _columns(path, header, records)
    decimal, thousands, unsure = _decimals(columns, delimiter)
    return Sheet(Layout(delimiter, encoding, decimal, thousands), headers, columns, unsure)


def encoding_of(raw: bytes) -> Encoding:
    """How bytes are most probably meant as text."""
    if raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    for encoding in ("utf-8", "cp1252"):
        try:
            raw.decode(encoding)
        except UnicodeDecodeError:
            continue
        return encoding
    return "latin-1"


def delimiter_of(text: str) -> Delimiter:
    """That which cuts the header, and most lines likewise, into most fields."""
    named = SEPARATOR_LINE.match(text)
    if named is not None and named.group(1) in DELIMITERS:
        return named.group(1)  # type: ignore[return-value]  # checked
    bare = QUOTED.sub('"…"', text)
    return max(DELIMITERS, key=lambda delimiter: _fields_agreed(bare, delimiter))


def _fields_agreed(text: str, delimiter: str) -> int:
    """Into how many fields lines are cut, if they agree with the header; else 1."""
    rows = rows_of(text, delimiter)
    counts: Counter[int] = Counter()
    try:
        fields = len(next(rows, []))
        for _, row in zip(range(LOOKED_AT), rows, strict=False):
            counts[len(row)] += 1 if row else 0
    except csv.Error:
        return 1
    return fields if 2 * counts[fields] >= counts.total() else 1


def _columns(
    path: Path, header: Sequence[str], records: Sequence[Sequence[str]]
) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    """Headers and columns; columns at the right end that are all empty are left out."""
    named = [from_cell(name.strip()) for name in header]
    lines = [
        (number, [from_cell(cell.strip()) for cell in record])
        for number, record in enumerate(records, start=2)
        if record
    ]
    while lines and not any(lines[-1][1]):
        lines.pop()
    while (
        len(named) > 1 and not named[-1] and not any("".join(r[len(named) - 1 :]) for _, r in lines)
    ):
        named.pop()
    if not any(named):
        raise DataError(f"{path} is empty: a header line with the columns' names is needed")
    if not lines:
        raise DataError(f"{path} has a header but no records")
    for number, record in lines:
        if len(record) < len(named) or any(record[len(named) :]):
            raise DataError(
                f"{path}, record {number - 1}: {len(record)} fields where the header has "
                f"{len(named)}"
            )
    columns = zip(*(record[: len(named)] for _, record in lines), strict=True)
    return tuple(named), tuple(columns)


COMMA, POINT = re.compile(r"[+-]?\d+,\d+"), re.compile(r"[+-]?\d+\.\d+")
BY_THREES = re.compile(r"[+-]?[1-9]\d{0,2}([.,]\d{3})+")
BOTH = {
    ",": re.compile(r"[+-]?\d{1,3}(\.\d{3})+,\d+"),
    ".": re.compile(r"[+-]?\d{1,3}(,\d{3})+\.\d+"),
}


def _decimals(columns: Iterable[Sequence[str]], delimiter: str) -> tuple[Decimal, Thousands, str]:
    """The decimal sign, what stands between thousands, and what can be read in two ways."""
    cells = list(_numbers(columns))
    for decimal, thousands in ((",", "."), (".", ",")):
        if any(BOTH[decimal].fullmatch(cell) for cell in cells):
            return decimal, thousands, ""  # type: ignore[return-value]  # as listed
    commas = [cell for cell in cells if "," in cell]
    points = [cell for cell in cells if "." in cell]
    threes_c = all(BY_THREES.fullmatch(cell) for cell in commas)
    threes_p = all(BY_THREES.fullmatch(cell) for cell in points)
    if commas and not threes_c:
        return (",", "." if points and threes_p else "", "")
    if points and not threes_p:
        return (".", "," if commas else "", "")
    if commas:
        return (",", "", commas[0]) if delimiter == ";" else (".", ",", commas[0])
    if points:
        return (",", ".", points[0]) if delimiter == ";" else (".", "", points[0])
    return ".", "", ""


def _numbers(columns: Iterable[Sequence[str]]) -> Iterator[str]:
    """The cells of columns of numbers that have a comma or a point in them."""
    shape = re.compile(r"[+-]?\d+([.,]\d+)*")
    for column in columns:
        cells = {cell for cell in column if cell}
        numbers = {cell for cell in cells if shape.fullmatch(cell)}
        if 2 * len(numbers) > len(cells):
            yield from (cell for cell in numbers if COMMA.fullmatch(cell) or POINT.fullmatch(cell)
                        or any(both.fullmatch(cell) for both in BOTH.values())
                        or BY_THREES.fullmatch(cell))  # fmt: skip
