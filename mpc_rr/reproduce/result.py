"""What a reproduction gives: rows of ours beside the printed, claims with verdicts, a chart."""

import csv
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mpc_rr.estimation.matrix import Array
from mpc_rr.reproduce.verdict import Claim

Entry = str | float | None
PRINTED = "printed"
NOT_PRINTED = "not printed"


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

    def shown_rows(self) -> list[tuple[Entry, ...]]:
        """The rows for people: where the paper prints no number, they say so."""
        return [
            tuple(
                NOT_PRINTED if value is None and column.startswith(PRINTED) else value
                for value, column in zip(row, self.columns, strict=True)
            )
            for row in self.rows
        ]

    def csv(self) -> str:
        """The rows as CSV."""
        return _csv([self.columns, *self.shown_rows()])

    def claims_csv(self) -> str:
        """The claims as CSV, a row for each comparison that a claim rests on."""
        rows: list[Sequence[object]] = [CLAIM_COLUMNS]
        for claim in self.claims:
            rows += [
                (claim.text, claim.verdict.value, each.what, each.verdict(claim.level).value,
                 each.margin, each.error, each.runs)
                for each in claim.comparisons
            ]  # fmt: skip
        return _csv(rows)

    def document(self) -> dict[str, Any]:
        """For programs. JSON has no infinity: such an error is null."""
        rows = [[None if value == math.inf else value for value in row] for row in self.rows]
        return {
            "title": self.title,
            "rows": [dict(zip(self.columns, row, strict=True)) for row in rows],
            "claims": [claim.document() for claim in self.claims],
            "remarks": list(self.remarks),
        }


CLAIM_COLUMNS = (
    "claim", "verdict", "at", "verdict there", "margin", "standard error", "runs",
)  # fmt: skip


def _csv(rows: Sequence[Sequence[object]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()
