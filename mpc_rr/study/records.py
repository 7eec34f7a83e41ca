"""Records for the parties, from a CSV or record file, or a data frame."""

import csv
import io
import json
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mpc_rr.errors import DataError, all_quoted
from mpc_rr.publication.sheets import from_cell
from mpc_rr.schema import Record, Schema

if TYPE_CHECKING:
    import _csv


def read_text(path: Path) -> str:
    """The text of a UTF-8 file; `DataError` if there is none."""
    try:
        return path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise DataError(
            f"{path} is not UTF-8 text (byte {error.start}); save it as UTF-8 and try again"
        ) from None


def read_csv(path: str | Path, schema: Schema, rows_wanted: range | None = None) -> list[Record]:
    """The records of a CSV file with a header line. Columns that are not asked for are ignored.

    Where a sheet of ours has an apostrophe before what would be a formula, it is taken away.
    ``rows_wanted`` picks records by number, counting from 1; the others are not looked at.
    """
    path = Path(path)
    rows = csv.reader(io.StringIO(read_text(path), newline=""), strict=True)
    try:
        records = list(_records(path, rows, schema, rows_wanted))
    except csv.Error as error:
        raise DataError(f"{path}, line {rows.line_num}: not a CSV file ({error})") from None
    if rows_wanted is not None and len(records) < len(rows_wanted):
        raise DataError(f"{path} has no record number {rows_wanted[len(records)]}")
    return records


def read_columns(path: Path, names: Sequence[str]) -> dict[str, list[str]]:
    """Some columns of a CSV file with a header line, as text, by name."""
    rows = csv.reader(io.StringIO(read_text(path), newline=""), strict=True)
    try:
        header = _header(path, rows, names)
        places = {name: header.index(name) for name in names}
        columns: dict[str, list[str]] = {name: [] for name in names}
        for row in rows:
            if row:
                _check_fields(path, rows.line_num, row, header)
                for name, place in places.items():
                    columns[name].append(from_cell(row[place].strip()))
    except csv.Error as error:
        raise DataError(f"{path}, line {rows.line_num}: not a CSV file ({error})") from None
    if not next(iter(columns.values())):
        raise DataError(f"{path} has a header but no records")
    return columns


def _check_fields(path: Path, line: int, row: list[str], header: list[str]) -> None:
    if len(row) != len(header):
        raise DataError(
            f"{path}, line {line}: {len(row)} fields where the header has {len(header)}"
        )


def _records(
    path: Path, rows: "_csv.Reader", schema: Schema, rows_wanted: range | None
) -> Iterator[Record]:
    columns = _header(path, rows, schema.names)
    count = 0
    for row in rows:
        if not row:
            continue
        line = rows.line_num
        count += 1
        if rows_wanted is not None and count not in rows_wanted:
            continue
        _check_fields(path, line, row, columns)
        answers = dict(zip(columns, map(from_cell, row), strict=True))
        try:
            yield schema.encode({name: answers[name] for name in schema.names})
        except DataError as error:
            raise DataError(f"{path}, line {line}: {error}") from None
    if count == 0:
        raise DataError(f"{path} has a header but no records")


def _header(path: Path, rows: "_csv.Reader", wanted: Sequence[str]) -> list[str]:
    """The names of the columns, with those that are wanted among them."""
    columns = [from_cell(name.strip()) for name in next(rows, [])]
    if not any(columns):
        raise DataError(f"{path} is empty: a header line with the attributes' names is needed")
    for number, name in enumerate(columns, start=1):
        if not name:
            raise DataError(f"{path}: column {number} has no name")
        if columns.count(name) > 1:
            raise DataError(f"{path}: column {name!r} is there twice")
    missing = [name for name in wanted if name not in columns]
    if missing:
        raise DataError(f"{path}: there is no column {missing[0]!r}; it has {all_quoted(columns)}")
    return columns


def read_record(path: Path, schema: Schema) -> Record:
    """One record from a ``.json`` or ``.toml`` file: attribute names and values."""
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
