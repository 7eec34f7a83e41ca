"""What people see of plans, and of the papers' tables computed anew."""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from mpc_rr.planning.crowds import AS_GOOD, PILOT, Outlook, Predicted, tolerance
from mpc_rr.planning.designs import MARGINS
from mpc_rr.planning.plans import TRUST, Plan
from mpc_rr.planning.trust import Way
from mpc_rr.privacy.sentences import odds
from mpc_rr.reproduce.result import Reproduction
from mpc_rr.reproduce.verdict import Verdict

COLOURS = {Verdict.HOLDS: "green", Verdict.FAILS: "red", Verdict.OPEN: "yellow"}


def show_plan(console: Console, plan: Plan) -> None:
    """The designs of `mpc-rr plan`, the best first, and what to make of them."""
    console.print(f"[bold]{plan.n:,} people, ε = {plan.epsilon:.3g} for a whole record[/]")
    console.print(_designs(plan))
    for sentence in advice(plan):
        console.print(escape(sentence), highlight=False)
    if plan.recommended.design.options is not None:
        console.print(_study_file(plan.recommended), highlight=False)
    for name, why in plan.refused.items():
        console.print(f"[dim]{escape(f'No {name}: {why}')}[/]", highlight=False)
    console.print(f"[dim]{escape(' '.join(_how_sure(plan)))}[/]", highlight=False)


def _designs(plan: Plan) -> Table:
    """Narrow enough for eighty columns."""
    title = "Error of the published tables of two answers"
    if plan.pilot is None:
        title += ", by how strongly answers depend"
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("design", no_wrap=True)
    table.add_column("what a respondent reports")
    table.add_column("ε of one", justify="right", no_wrap=True)
    table.add_column("β", justify="right", no_wrap=True)
    for word in plan.crowds.dependence:
        table.add_column("error" if word == PILOT else word, justify="right", no_wrap=True)
    for found in plan.outlooks:
        name = f"[bold]{found.name}[/]" if found is plan.recommended else found.name
        errors = [_error(predicted, plan) for predicted in found.predicted.values()]
        last = found is plan.outlooks[-1]
        cost, beta = f"{found.design.one_answer:.2g}", found.design.beta
        left = "–" if beta is None else f"{beta:.0%}"
        table.add_row(name, found.design.what, cost, left, *errors, end_section=last)
    distances = [_figure(distance) for distance in plan.crowds.dependence.values()]
    table.add_row("[dim]independence", "[dim]how far the truth is from it", "", "", *distances)
    return table


def _figure(error: float) -> str:
    return f"{error:.2f}" if error >= 0.095 else f"{error:.3f}"


def _error(predicted: Predicted, plan: Plan) -> str:
    """Measured on a pilot it has its uncertainty; guessed, that of the guess is larger."""
    if plan.pilot is None:
        return _figure(predicted.error)
    return f"{_figure(predicted.error)} ± {_figure(2 * predicted.standard_error)}"


def advice(plan: Plan) -> Iterator[str]:
    """What the figures mean for whoever plans a study."""
    best = plan.recommended
    if plan.simulated < plan.n:
        yield (
            f"This is advice for {plan.simulated:,} people: no more were simulated. With all "
            f"{plan.n:,}, designs that publish tables gain more than shares of single answers do; "
            f"--people {plan.n} tries that."
        )
    if best is plan.nobody:
        yield _ask_nobody(plan)
        return
    if best.name == MARGINS:
        yield from _without_tables(plan)
        return
    yield _why(plan)
    alike = plan.margins_are_as_good
    if alike:
        yield (
            f"If dependence is {' or '.join(alike)}, shares of single answers, taken as "
            f"independent, are predicted to be as good as tables by {plan.best_tables.name}."
        )
    told = odds(plan.epsilon, best.design.one_answer)
    yield f"With {best.name}: {told[0].lower()}{told[1:]}"


def _ask_nobody(plan: Plan) -> str:
    """What would be published says no more than was known before."""
    return (
        "Do not ask at this budget: equal shares of all answers, for which nobody need be asked, "
        f"are{_over(plan)} within {_within(plan)} of the smallest error that is predicted. Ask "
        "more people, or fewer or coarser questions, or spend a larger ε, or trust others (below)."
    )


def _without_tables(plan: Plan) -> Iterator[str]:
    """Shares alone are as good over all strengths; where they are not, that is an exception."""
    alike, tables = plan.margins_are_as_good, plan.best_tables.name
    better = " or ".join(word for word in plan.crowds.dependence if word not in alike)
    unless = f", unless you expect {better} dependence (then tables by {tables})" if better else ""
    yield (
        f"Do not ask for tables at this budget{unless}: shares of single answers, taken as "
        f"independent, are{_over(plan)} within {_within(plan)} of the smallest error that is "
        "predicted. Tables would need more people, coarser answers, a larger ε, or trust in others "
        "(below)."
    )


def _why(plan: Plan) -> str:
    """Of the recommended design: the best, or a simpler one that is as good."""
    best, least = plan.recommended, plan.outlooks[0]
    if best is least:
        why = f"its predicted error is the smallest{_over(plan)}"
    else:
        smallest = f"the smallest ({least.name})"
        why = f"its predicted error is{_over(plan)} within {_within(plan)} of {smallest}"
    return f"Take {best.name}: {why}, and that of no simpler design is within {_within(plan)}."


def _within(plan: Plan) -> str:
    """How near an error must be to the smallest one."""
    least = plan.outlooks[0].error
    if tolerance(least, plan.simulated) > AS_GOOD * least:
        return "half a person in a wrong cell"
    return f"{100 * AS_GOOD:.0f} %"


def _over(plan: Plan) -> str:
    """One error, or the mean over strengths."""
    return " on average over these strengths" if plan.pilot is None else ""


def _study_file(found: Outlook) -> str:
    """The lines of a study file that ask for this design."""
    lines = []
    for name, value in (found.design.options or {}).items():
        lines += toml_lines(name, value)
    return escape("In the study file:\n[protocol]\n" + "\n".join(lines))


def toml_lines(name: str, value: object) -> list[str]:
    """An option of a protocol as lines of a study file."""
    return [f"{name} = {_toml(value)}"]


def _toml(value: object) -> str:
    if isinstance(value, Mapping):
        bare = {key: key.isascii() and key.isidentifier() for key in value}
        names = {key: key if bare[key] else json.dumps(key, ensure_ascii=False) for key in value}
        inner = ", ".join(f"{names[key]} = {_toml(part)}" for key, part in value.items())
        return f"{{ {inner} }}"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Sequence):
        return f"[{', '.join(map(_toml, value))}]"
    return repr(value)


def _how_sure(plan: Plan) -> Iterator[str]:
    """What was done, and how far it can be trusted."""
    crowds, people = plan.crowds, plan.simulated
    each = crowds.effort.populations_of(plan.n)
    yield (
        "An error is the mean L1 distance between the tables that would be published and the "
        "true ones of those who answer: 0 is exact, 2 the worst; 0.1 means that 5 % of the "
        "people are in a wrong cell."
    )
    if plan.pilot is None:
        yield (
            f"Each design was tried on {each} synthetic populations of {people:,} people for each "
            "strength of dependence, with the estimator that publishes. Errors are good to about "
            f"{100 * TRUST:.0f} % if the dependence is right (nine in ten on real data of 8,000 "
            "people; for other numbers that was not measured: docs/planning.md). A pilot (--pilot) "
            "measures instead."
        )
    else:
        yield (
            f"Each design was tried {each} times on {people:,} people drawn from the pilot, with "
            "the estimator that publishes; ± is what is left to chance in that (95 %)."
        )
    if plan.pilot is not None and plan.pilot < plan.n:
        yield (
            f"The pilot has {plan.pilot:,} people, fewer than the {plan.n:,} of the study: drawn "
            "again and again, they look more dependent on each other than people are."
        )


def show_ways(
    console: Console,
    ways: Sequence[Way],
    refused: Mapping[str, str],
    lobby_s: float,
    round_s: float,
) -> None:
    """The same central ε by different trust."""
    epsilon = ways[0].epsilon
    table = Table(
        title=f"The same promise to the public (central ε = {epsilon:.3g}), by whom one must trust",
        title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0),
    )  # fmt: skip
    table.add_column("way", no_wrap=True)
    table.add_column("who must be trusted")
    table.add_column("error", justify="right", no_wrap=True)
    table.add_column("ε of a\nreport", justify="right")
    table.add_column("messages", justify="right")
    table.add_column("minutes\nonline", justify="right")
    for way in ways:
        errors = [found.error for found in way.outlook.predicted.values()]
        low, high = _figure(min(errors)), _figure(max(errors))
        shown = low if len(errors) == 1 else f"{low}–{high}"
        local = "unseen" if way.local_epsilon is None else f"{way.local_epsilon:.3g}"
        name = way.name if way.offered else f"{way.name} *"
        minutes = f"{way.minutes(lobby_s, round_s):.3g}"
        table.add_row(name, way.trusted, shown, local, str(way.messages), minutes)
    console.print(table)
    delta = max(way.delta for way in ways)
    notes = [f"δ is at most {_at_most(delta)}, and 0 where each randomizes."]
    notes.append("Minutes are the most that a party waits, if every deadline of the study passes.")
    if not all(way.offered for way in ways):
        notes.append("* No study file can ask for it yet: relays carry other protocols' answers.")
    notes += [f"Not {name}: {why}." for name, why in refused.items()]
    console.print(f"[dim]{escape(' '.join(notes))}[/]", highlight=False)


def _at_most(positive: float) -> str:
    """One digit, never rounded down."""
    shown = f"{positive:.0e}"
    if float(shown) >= positive:
        return shown
    return f"{float(shown) + 10.0 ** math.floor(math.log10(positive)):.0e}"


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
