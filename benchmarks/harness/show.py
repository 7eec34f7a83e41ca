"""Figures on the terminal."""

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from benchmarks.harness.comparison import Change, Compared
from benchmarks.harness.results import Figures
from benchmarks.harness.rows import Row

CLEARLY = 2.0
"""So many standard errors from its aim, a figure is surely on its side."""


def _number(value: float | None, error: float | None) -> str:
    if value is None:
        return ""
    return f"{value:g}" if error is None else f"{value:g} ± {error:.2g}"


def verdict(row: Row) -> str:
    """Whether the aim is met, and whether that is sure."""
    found, error = row.judged
    if row.aim is None or found is None:
        return ""
    bound = "at least" if row.better == "higher" else "at most"
    unsure = (
        "" if error is None or abs(found - row.aim) >= CLEARLY * error else ", within the error"
    )
    return f"{bound} {row.aim:g}: {'MISSED' if row.missed else 'met'}{unsure}"


def in_one_line(row: Row) -> str:
    """What was measured, while the rest is."""
    value = f"{_number(row.value, row.error)} {row.unit}".strip()
    ratio = "" if row.ratio is None else f"{_number(row.ratio, row.ratio_error)} × {row.beside}"
    return "; ".join(filter(None, (f"{row.key}: {value}", ratio, verdict(row))))


def show_figures(console: Console, figures: Figures) -> None:
    """A table for each quantity, in the order in which they were measured."""
    for what in dict.fromkeys(row.what for row in figures.rows):
        rows = [row for row in figures.rows if row.what == what]
        names = list(dict.fromkeys(name for row in rows for name in row.setting))
        units = ", ".join(dict.fromkeys(row.unit for row in rows if row.unit))
        head = f"{what} [{units}]" if units else what
        table = Table(*names, "value", "ratio", "beside", "aim", title=head, title_justify="left")
        for row in rows:
            setting = [str(row.setting.get(name, "")) for name in names]
            value, ratio = _number(row.value, row.error), _number(row.ratio, row.ratio_error)
            table.add_row(*setting, value, ratio, row.beside or "", verdict(row))
        console.print(table)
    seconds = sum(session.wall_s or 0 for session in figures.sessions)
    busy = sum(session.processor_s or 0 for session in figures.sessions)
    missed = sum(row.missed for row in figures.rows)
    aims = sum(row.aim is not None for row in figures.rows)
    console.print(f"{missed} of {aims} aims missed; {seconds:.0f} s, {busy:.0f} processor s")


def show_comparison(console: Console, name: str, found: Sequence[Compared]) -> None:
    """What became worse or better, and how much cannot be told."""
    for change in (Change.WORSE, Change.BETTER):
        for compared in found:
            if compared.change is change:
                console.print(f"{name}: {change.value}: {compared.in_words}", soft_wrap=True)
    counts = ", ".join(
        f"{sum(c.change is change for c in found)} {change.value}" for change in Change
    )
    console.print(f"{name}: {counts}")
    for why in dict.fromkeys(c.why for c in found if c.why):
        console.print(f"  {sum(c.why == why for c in found)} rows: {why}", soft_wrap=True)
