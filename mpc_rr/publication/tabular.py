"""A published table as a data frame, and as HTML for a notebook."""

import html
import importlib
import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mpc_rr.errors import InputError, plain

if TYPE_CHECKING:
    from mpc_rr.publication.parts import Number, Table

MOST_ROWS = 60
"""So many rows of a table are shown in a notebook."""


def data_frame(table: "Table", *, errors: bool) -> Any:
    """See `mpc_rr.publication.parts.Table.to_frame`."""
    pandas = _pandas()
    if errors and table.standard_errors is None:
        raise InputError(f"table {table.name!r} has no standard errors")
    axes = [pandas.Index(axis.categories, name=axis.attribute) for axis in table.axes]
    if len(axes) == 2 and not errors:
        columns = zip(*table.rows(), strict=True)
        matrix = dict(enumerate(_series(pandas, cells) for cells in columns))
        return pandas.DataFrame(matrix).set_axis(axes[0]).set_axis(axes[1], axis="columns")
    index = axes[0] if len(axes) == 1 else pandas.MultiIndex.from_product(axes)
    layers: dict[str, Sequence[Number] | None] = {table.kind: table.values}
    if errors:
        layers |= {
            "standard_error": table.standard_errors,
            "low": table.low,
            "high": table.high,
            "respondents_low": table.respondents_low,
            "respondents_high": table.respondents_high,
        }
    there = {name: _series(pandas, cells) for name, cells in layers.items() if cells is not None}
    return pandas.DataFrame(there).set_axis(index)


def _pandas() -> Any:
    try:
        return importlib.import_module("pandas")
    except ImportError:
        raise InputError("a data frame needs pandas, which is not installed here") from None


def _series(pandas: Any, cells: "Sequence[Number]") -> Any:
    """Whole numbers stay whole where some are hidden."""
    whole = all(cell is None or isinstance(cell, int) for cell in cells)
    return pandas.Series(list(cells), dtype="Int64" if whole else "float64")


def html_table(table: "Table") -> str:
    """A table of one or two attributes as people draw it; one of more, a row for each cell."""
    if len(table.axes) == 2:
        rows, columns = table.axes
        head = [f"{rows.attribute} \\ {columns.attribute}", *columns.categories]
        width, shown = len(columns.categories), _shown(table)
        lines = [
            [category, *shown[place * width : (place + 1) * width]]
            for place, category in enumerate(rows.categories)
        ]
    else:
        head = [*(axis.attribute for axis in table.axes), table.kind]
        combinations = itertools.product(*(axis.categories for axis in table.axes))
        shown = _shown(table)
        lines = [[*words, cell] for words, cell in zip(combinations, shown, strict=True)]
    kept = [head, *lines[:MOST_ROWS]]
    if len(lines) > MOST_ROWS:
        kept.append([f"… and {len(lines) - MOST_ROWS:,} more rows"])
    named = 1 if len(table.axes) == 2 else len(table.axes)
    body = "".join(_row(line, len(head) if line is head else named) for line in kept)
    answers = "" if table.n is None else f" ({table.n:,} answers)"
    return f"<table><caption>{html.escape(plain(table.name))}{answers}</caption>{body}</table>"


def _row(texts: Sequence[str], headings: int) -> str:
    tags = ["th" if place < headings else "td" for place in range(len(texts))]
    cells = (
        f"<{tag}>{html.escape(plain(text))}</{tag}>" for tag, text in zip(tags, texts, strict=True)
    )
    return f"<tr>{''.join(cells)}</tr>"


def _shown(table: "Table") -> list[str]:
    """Its cells; of which the answers tell nothing, no number."""
    cells = zip(table.values, table.untold, strict=True)
    return ["cannot be told" if untold else _number(cell, table.kind) for cell, untold in cells]


def _number(cell: "Number", kind: str) -> str:
    if cell is None:
        return "hidden"
    if kind == "share":
        return f"{100 * cell:.1f} %"
    return f"{cell:,}" if isinstance(cell, int) else f"{cell:,.1f}"
