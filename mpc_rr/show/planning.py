"""What people see of plans, and of the papers' tables computed anew."""

import math
from collections.abc import Sequence
from typing import Literal

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from mpc_rr.estimation.planning import Plan
from mpc_rr.privacy.sentences import odds
from mpc_rr.reproduce.result import Reproduction
from mpc_rr.reproduce.verdict import Verdict

COLOURS = {Verdict.HOLDS: "green", Verdict.FAILS: "red", Verdict.OPEN: "yellow"}


def show_plans(console: Console, plans: Sequence[Plan], n: int) -> None:
    """The designs of `mpc-rr plan`, the best first."""
    epsilon = plans[0].epsilon
    table = Table(
        title=f"Predicted error of the pair tables, {n:,} respondents, ε = {epsilon:.3g} a record",
        title_justify="left",
    )
    table.add_column("design")
    table.add_column("what a respondent reports")
    table.add_column("ε of one answer", justify="right")
    table.add_column("mean L1 error", justify="right")
    for row, found in enumerate(plans):
        name = f"[bold]{found.name}[/]" if row == 0 else found.name
        error = "too random" if math.isinf(found.error) else f"{found.error:.3g}"
        table.add_row(name, found.what, f"{found.one_answer:.3g}", error)
    console.print(table)
    told = odds(epsilon, plans[0].one_answer)
    console.print(f"With {plans[0].name}: {told[0].lower()}{told[1:]}", highlight=False)
    console.print(
        "[dim]What randomizing adds, for unbiased tables and shares as skewed as answers usually "
        "are. An L1 error of 0.1 means that 5 % of the respondents are in a wrong cell.[/]",
        highlight=False,
    )


def show_reproduction(console: Console, found: Reproduction) -> None:
    """A table of the papers beside ours, and what the runs say about the paper's claims."""
    table = Table(title=found.title, title_justify="left")
    for place, column in enumerate(found.columns):
        number = isinstance(found.rows[0][place], float | int)
        justify: Literal["left", "right"] = "right" if number else "left"
        table.add_column(escape(column), justify=justify, overflow="fold")
    for row in found.shown_rows():
        cells = (f"{value:g}" if isinstance(value, float | int) else value or "" for value in row)
        table.add_row(*(escape(cell) for cell in cells))
    console.print(table)
    for claim in found.claims:
        verdict = f"[{COLOURS[claim.verdict]}]{claim.verdict.value}[/]"
        console.print(f"{verdict}: {escape(claim.text)}", highlight=False)
        console.print(f"  [dim]{escape(claim.evidence())}[/]", highlight=False)
    for remark in found.remarks:
        console.print(f"[dim]{escape(remark)}[/]", highlight=False)
