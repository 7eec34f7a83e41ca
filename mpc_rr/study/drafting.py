"""A first draft of a study's schema from a CSV file, for a person to finish."""

import csv
import io
import json
from pathlib import Path

from mpc_rr.errors import DataError, plain, unprintable
from mpc_rr.publication.sheets import from_cell
from mpc_rr.study.records import read_columns, read_text
from mpc_rr.study.suggesting import Bins, Categories, Unsuitable, suggest

HEAD = """# Drafted from {name}: {rows:,} records. Look at every line before you use it.
# Categories and bins are part of the study file, which everybody sees. They must be what is known
# of the question anyhow, not what these records happen to hold.
"""


def draft_schema(path: Path) -> str:
    """The ``[schema.…]`` tables of a study file, one for each column that can be asked."""
    try:
        header = next(csv.reader(io.StringIO(read_text(path), newline="")), [])
    except csv.Error as error:
        raise DataError(f"{path}, line 1: not a CSV file ({error})") from None
    names = [from_cell(name.strip()) for name in header if name.strip()]
    columns = read_columns(path, names)
    rows = len(columns[names[0]])
    parts = [HEAD.format(name=plain(path.name), rows=rows)]
    parts += [_table(path, name, columns[name]) for name in names]
    if not any("[schema." in part for part in parts[1:]):
        raise DataError(f"{path}: no column has values that could be asked for")
    return "\n".join(parts)


def _check_shown(path: Path, name: str, *texts: str) -> None:
    """What would stand in the study file can be printed there."""
    for fault in filter(None, map(unprintable, (name, *texts))):
        raise DataError(f"{path}: column {name!r}: {fault}")


def _table(path: Path, name: str, values: list[str]) -> str:
    _check_shown(path, name)
    title = name if name.replace("_", "").replace("-", "").isalnum() and name.isascii() else (
        json.dumps(name, ensure_ascii=False)
    )  # fmt: skip
    given = [value for value in values if value]
    gaps = len(values) - len(given)
    note = f"# {gaps:,} of {len(values):,} records have no answer here.\n" if gaps else ""
    missing = f"missing = {json.dumps(_no_answer(given))}\n" if gaps else ""
    suggested = suggest(given)
    match suggested:
        case Unsuitable():
            return f"# {name}: left out, {suggested.why}.\n"
        case Bins(edges):
            listed = ", ".join(f"{edge:.12g}" for edge in edges)
            return f"{note}[schema.{title}]\nbins = [{listed}]\n{missing}"
        case Categories(texts, ordinal):
            _check_shown(path, name, *texts)
            kind = 'type = "ordinal"\n' if ordinal else ""
            listed = ", ".join(json.dumps(value, ensure_ascii=False) for value in texts)
            return f"{note}[schema.{title}]\n{kind}categories = [{listed}]\n{missing}"


def _no_answer(given: list[str]) -> str:
    """A category for those who gave no answer, unlike any that was given."""
    word = "no answer"
    while word in given:
        word += " given"
    return word
