"""What people see of a game of co-utility (004, section 2.3)."""

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from mpc_rr.reproduce.co_utility import CONCERNS, FOLLOW, INTERESTS, WHAT, CoUtility, Reply
from mpc_rr.reproduce.verdict import FALSE_ALARM, Verdict
from mpc_rr.show.hiding import figure


def show_co_utility(console: Console, found: CoUtility) -> None:
    """What each strategy brings, whether following is an equilibrium, Definitions 2 and 3."""
    console.print(
        f"[bold]{escape(found.study)}[/]: {found.protocol}, {found.people} people, "
        f"{len(found.runs)} runs",
        highlight=False,
    )
    for name in found.strategies:
        console.print(f"[dim]{name}: {WHAT[name]}[/]", highlight=False)
    console.print(_strategies(found))
    for for_all in (False, True):
        console.print(_replies(found, for_all=for_all))
    for sentence in found.conclusions():
        console.print(escape(sentence), highlight=False)
    console.print(f"[dim]{escape(_how())}[/]", highlight=False)


def _table(title: str) -> Table:
    return Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))


def _strategies(found: CoUtility) -> Table:
    table = _table("What Ann gets if all others follow (± twice the standard error)")
    table.add_column("Ann plays")
    for heading in ("accuracy", "exposure of Ann", "of the others"):
        table.add_column(heading, justify="right")
    for name in found.strategies:
        table.add_row(
            name, figure(found.accuracy(name)), figure(found.exposure(name)),
            figure(found.exposure_of_others(name)),
        )  # fmt: skip
    return table


def _replies(found: CoUtility, *, for_all: bool) -> Table:
    whose = "all people get the data" if for_all else "only participants get the data"
    table = _table(f"Is following Ann's best reply if {whose}?")
    table.add_column("interest \\ concern")
    for concern in CONCERNS:
        table.add_column(f"{concern:g}")
    for interest in INTERESTS:
        cells = [r for r in found.replies if r.for_all == for_all and r.interest == interest]
        table.add_row(f"{interest:g}", *map(_cell, cells))
    return table


def _cell(reply: Reply) -> str:
    if reply.verdict is Verdict.FAILS:
        return f"no: {reply.better}"
    return FOLLOW if reply.verdict is Verdict.HOLDS else "cannot be told"


def _how() -> str:
    return (
        "Accuracy: how much of the tables of a confidential attribute and another the release gets "
        "right, 0 to 1. Exposure: how often an attacker who links what is published names true "
        "confidential values. Gain: interest × accuracy, if she gets the data, minus concern × "
        "exposure. Differences are paired: the same people and random numbers. A verdict is wrong "
        f"by chance in about {FALSE_ALARM:.0%} of cases."
    )
