"""Tables as CSV text, and what their files are called.

A spreadsheet takes a cell that begins with ``=`` (and some other characters) for a formula and runs
it. Such a cell, unless it is a number, gets an apostrophe in front (`as_cell`), which `from_cell`
takes away again. Texts that have apostrophes there of their own get one more, so that no two texts
become the same cell.

Where a comma is the decimal sign, spreadsheets split lines at semicolons, whatever is in quotation
marks that do not begin there. So the same is done inside a text after each character at which one
may split; and texts with such a character are quoted, for those that split at several.
"""

import csv
import io
import re
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from mpc_rr.estimation.matrix import Array
from mpc_rr.schema import Attribute

SIGNS = "=+\\-@\uff1d\uff0b\uff0d\uff20"
"""With what formulas begin, also in full width."""
FORMULA = re.compile(f"'*[{SIGNS}\t\r\n]")
"""After how many apostrophes."""
NUMBER = re.compile(r"'*[+-]?[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]+)?")
SPLITS = ";\t\r\n"
"""At what a line may be split, besides commas, which are always in quotation marks."""
AFTER_SPLIT = f"(?<=[{SPLITS}]){{}}(?=['\"\\s]*[{SIGNS}])"
BARE, GUARDED = re.compile(AFTER_SPLIT.format("")), re.compile(AFTER_SPLIT.format("'"))
QUOTED = re.compile(f'[,"{SPLITS}]')
PLAIN = re.compile(f"[A-Za-z0-9_.][^,'\"{SPLITS}]*")
"""Stands in a cell as it is; so do most."""
LONGEST_CELL = 131_072
"""So many characters of a cell are read by those who are told nothing else, such as Python."""


def _is_formula(text: str) -> bool:
    return FORMULA.match(text) is not None and NUMBER.fullmatch(text) is None


def as_cell(value: object) -> object:
    """A value as it stands in a sheet: no text is a formula there."""
    if not isinstance(value, str):
        return value
    guarded = BARE.sub("'", value)
    return f"'{guarded}" if _is_formula(guarded) else guarded


def from_cell(text: str) -> str:
    """The text that stands in a cell of a sheet."""
    return _unsplit(text[1:] if text[:1] == "'" and _is_formula(text) else text)


def _unsplit(text: str) -> str:
    """The same without what was put after characters at which a line may be split."""
    return GUARDED.sub("", text)


def csv_text(lines: Iterable[Sequence[object]]) -> str:
    """Lines as CSV; None stays empty."""
    return "".join(f"{_line([*map(_field, line)])}\n" for line in lines)


def _field(value: object) -> str:
    if value is None:
        return ""
    if PLAIN.fullmatch(text := str(value)):
        return text
    text = str(as_cell(value))
    return '"' + text.replace('"', '""') + '"' if QUOTED.search(text) else text


def _line(fields: list[str]) -> str:
    return '""' if fields == [""] else ",".join(fields)  # an empty line would have no field


def as_before(text: str) -> str:
    """A sheet as it was written when formulas still stood in it as they are."""
    return _rewritten(text, from_cell)


def as_unsplit(text: str) -> str:
    """A sheet as it was written when only the beginning of a cell was looked at."""
    return _rewritten(text, _unsplit)


def _rewritten(text: str, cell: Callable[[str], str]) -> str:
    lines = csv.reader(io.StringIO(text, newline=""))
    before = io.StringIO()
    csv.writer(before, lineterminator="\n").writerows(map(cell, line) for line in lines)
    return before.getvalue()


def pair_csv(rows: Attribute, columns: Attribute, table: Sequence[Sequence[object]]) -> str:
    """The table of two attributes with their categories."""
    head: list[object] = [f"{rows.name} \\ {columns.name}", *columns.categories]
    body = zip(rows.categories, table, strict=True)
    return csv_text([head, *([category, *values] for category, values in body)])


def table_csv(attributes: Sequence[Attribute], table: Array) -> str:
    """The shares of two attributes as a table, those of more cell by cell."""
    if len(attributes) == 2:
        return pair_csv(attributes[0], attributes[1], table.tolist())
    lines: list[list[object]] = [[*(a.name for a in attributes), "share"]]
    for cell, share in np.ndenumerate(table):
        words = [a.categories[code] for a, code in zip(attributes, cell, strict=True)]
        lines.append([*words, float(share)])
    return csv_text(lines)


def table_file(folder: str, number: int, attributes: Sequence[Attribute]) -> str:
    """A file name for the table of some attributes."""
    plain = (
        "".join(c if c.isascii() and (c.isalnum() or c in "_-") else "_" for c in a.name)
        for a in attributes
    )
    return f"{folder}/{number:02}-{'--'.join(plain)}.csv"
