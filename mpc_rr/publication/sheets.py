"""Tables as CSV text, and what their files are called."""

import csv
import io
from collections.abc import Iterable, Sequence

import numpy as np

from mpc_rr.estimation.matrix import Array
from mpc_rr.schema import Attribute


def csv_text(lines: Iterable[Sequence[object]]) -> str:
    """Lines as CSV; None stays empty."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(lines)
    return text.getvalue()


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
