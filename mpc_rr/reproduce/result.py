"""What a reproduction gives: rows of ours beside the printed, claims that hold or not, a chart."""

import csv
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mpc_rr.estimation.matrix import Array

Entry = str | float | None


@dataclass(frozen=True)
class Claim:
    """Something the paper says, and whether it came out so here."""

    text: str
    holds: bool


@dataclass(frozen=True)
class Lines:
    """A chart of lines over one axis; several panels stand side by side."""

    x_label: str
    y_label: str
    panels: Mapping[str, Mapping[str, Sequence[tuple[float, float]]]]
    """For each panel its lines, by name, as points."""


@dataclass(frozen=True)
class Bars:
    """A chart of groups of bars: what was printed beside what was found."""

    y_label: str
    groups: Sequence[str]
    series: Mapping[str, Sequence[float]]


@dataclass(frozen=True)
class HeatMap:
    """Square pictures, side by side. NaN is left grey."""

    value_label: str
    panels: Mapping[str, Array]
    labels: Sequence[tuple[str, int]]
    """Names along both axes, and how many rows each takes."""


Chart = Lines | Bars | HeatMap


@dataclass(frozen=True)
class Reproduction:
    """A table or figure of the papers, computed anew."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Entry, ...], ...]
    chart: Chart
    claims: tuple[Claim, ...] = ()
    remarks: tuple[str, ...] = field(default=())

    def csv(self) -> str:
        """The rows as CSV."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(self.columns)
        writer.writerows(self.rows)
        return text.getvalue()

    def document(self) -> dict[str, Any]:
        """For programs. JSON has no infinity: such an error is null."""
        rows = [[None if value == math.inf else value for value in row] for row in self.rows]
        return {
            "title": self.title,
            "rows": [dict(zip(self.columns, row, strict=True)) for row in rows],
            "claims": [{"claim": claim.text, "holds": claim.holds} for claim in self.claims],
            "remarks": list(self.remarks),
        }
