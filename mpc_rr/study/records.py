"""Records for the parties, from a CSV or record file, or a data frame."""

import csv
import json
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mpc_rr.errors import DataError, all_quoted
from mpc_rr.publication.sheets import from_cell
from mpc_rr.schema import Record, Schema
from mpc_rr.study.layout import DELIMITER_WORDS, DELIMITERS, PLAIN, Layout, read_text, rows_of

if TYPE_CHECKING:
    import _csv


def read_csv(
    path: str | Path,
    schema: Schema,
    rows_wanted: range | None = None,
    layout: Layout = PLAIN,
) -> list[Record]:
    """The records of a CSV file with a header line. Columns that are not asked for are ignored.

    Where a sheet of ours has an apostrophe before what would be a formula, it is taken away.
    ``rows_wanted`` picks records by number, counting from 1; the others are not looked at.
    ``layout`` says how the file is written, as ``[data]`` of a study file does.
    """
    path = Path(path)
    rows = rows_of(read_text(path, layout.encoding), layout.delimiter)
    try:
        records = list(_records(path, rows, schema, rows_wanted, layout))
    except csv.Error as error:
        raise DataError(f"{path}, line {rows.line_num}: not a CSV file ({error})") from None
    if rows_wanted is not None and len(records) < len(rows_wanted):
        raise DataError(f"{path} has no record number {rows_wanted[len(records)]}")
    return records


def read_columns(path: Path, names: Sequence[str], layout: Layout = PLAIN) -> dict[str, list[str]]:
    """Some columns of a CSV file with a header line, as text, by name."""
    rows = rows_of(read_text(path, layout.encoding), layout.delimiter)
    columns: dict[str, list[str]] = {name: [] for name in names}
    try:
        header = _header(path, rows, names, layout)
        places = {name: header.index(name) for name in names}
        for line, row in _written(rows):
            _check_fields(path, line, row, header)
            for name, place in places.items():
                columns[name].append(from_cell(row[place].strip()))
    except csv.Error as error:
        raise DataError(f"{path}, line {rows.line_num}: not a CSV file ({error})") from None
    if not next(iter(columns.values())):
        raise DataError(f"{path} has a header but no records")
    return columns


def _written(rows: "_csv.Reader") -> Iterator[tuple[int, list[str]]]:
    """Rows with their lines, but for those that a spreadsheet left empty at the end."""
    empty: list[tuple[int, list[str]]] = []
    for row in rows:
        if len(row) > 1 and not any(map(str.strip, row)):
            empty.append((rows.line_num, row))
        elif row:
            yield from empty
            empty.clear()
            yield rows.line_num, row


def _check_fields(path: Path, line: int, row: list[str], header: list[str]) -> None:
    if len(row) < len(header) or any(row[len(header) :]):
        raise DataError(
            f"{path}, line {line}: {len(row)} fields where the header has {len(header)}"
        )


def _records(
    path: Path, rows: "_csv.Reader", schema: Schema, rows_wanted: range | None, layout: Layout
) -> Iterator[Record]:
    names = [layout.header_of(name) for name in schema.names]
    columns = _header(path, rows, names, layout)
    places = [columns.index(name) for name in names]
    count = 0
    for line, row in _written(rows):
        count += 1
        if rows_wanted is not None and count not in rows_wanted:
            continue
        _check_fields(path, line, row, columns)
        try:
            yield schema.encode({
                attribute.name: layout.answer(from_cell(row[place]), attribute)
                for attribute, place in zip(schema.attributes, places, strict=True)
            })  # fmt: skip
        except DataError as error:
            raise DataError(f"{path}, line {line}: {error}") from None
    if count == 0:
        raise DataError(f"{path} has a header but no records")


def _header(path: Path, rows: "_csv.Reader", wanted: Sequence[str], layout: Layout) -> list[str]:
    """The names of the columns, with those that are wanted among them."""
    columns = [from_cell(name.strip()) for name in next(rows, [])]
    if not any(columns):
        raise DataError(f"{path} is empty: a header line with the attributes' names is needed")
    while len(columns) > 1 and not columns[-1]:
        columns.pop()  # empty ones at the right end, as spreadsheets leave them
    for number, name in enumerate(columns, start=1):
        if not name:
            raise DataError(f"{path}: column {number} has no name")
        if columns.count(name) > 1:
            raise DataError(f"{path}: column {name!r} is there twice")
    missing = [name for name in wanted if name not in columns]
    if missing:
        raise DataError(
            f"{path}: there is no column {missing[0]!r}; it has {all_quoted(columns)}"
            + _other_separator(columns, wanted, layout)
        )
    return columns


def _other_separator(columns: Sequence[str], wanted: Sequence[str], layout: Layout) -> str:
    """That the file is separated otherwise than it was read, where its header shows that."""
    if len(columns) > 1 and set(columns) & set(wanted):
        return ""
    held = [d for d in DELIMITERS if any(d in name for name in columns) and d != layout.delimiter]
    if not held:
        return ""
    shown = "\\t" if held[0] == "\t" else held[0]
    return (
        f". Its columns look separated by {DELIMITER_WORDS[held[0]]}, not by "
        f'{DELIMITER_WORDS[layout.delimiter]}: write delimiter = "{shown}" under [data] in the '
        "study file (mpc-rr init does so), or save the file with "
        f"{DELIMITER_WORDS[layout.delimiter]}"
    )


NO_RECORDS = frozenset({".yaml", ".yml", ".csv", ".tsv", ".xlsx", ".xls", ".ods", ".sav", ".xml"})
"""What people have their answers in, and no record can be read from."""


def read_record(path: Path, schema: Schema) -> Record:
    """One record from a ``.json`` or ``.toml`` file: attribute names and values."""
    if path.suffix.lower() in NO_RECORDS:
        raise DataError(
            f"{path}: a record is a .json or a .toml file, not a {path.suffix} file"
            + ("; a row of a CSV file is taken by --csv and --row" if "csv" in path.suffix else "")
        )
    text = read_text(path)
    try:
        answers = tomllib.loads(text) if path.suffix == ".toml" else json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path} cannot be read as {path.suffix or 'JSON'}: {error}") from None
    if not isinstance(answers, dict):
        raise DataError(f"{path} must hold one record: attribute names and their values")
    try:
        return schema.encode(answers)
    except DataError as error:
        raise DataError(f"{path}: {error}") from None
