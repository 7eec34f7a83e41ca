"""A publication on a terminal: the findings, what is worth a table, and what one must know."""

from rich.console import Console
from rich.markup import escape
from rich.progress_bar import ProgressBar
from rich.table import Table as RichTable

from mpc_rr.errors import listing
from mpc_rr.privacy.disclosures import Unstated
from mpc_rr.publication.parts import Listing, Publication, Table
from mpc_rr.schema import Schema
from mpc_rr.show.words import Words, absences, number, price

MOST_TABLES = 6
"""So many tables of cells are shown; the others are in the folder."""
BAR = 20


def say(console: Console, text: str, head: str = "", style: str = "yellow") -> None:
    """A line of text, which may have a coloured head."""
    start = f"[{style}]{head}[/]: " if head else ""
    console.print(start + escape(text), highlight=False)


def show_publication(console: Console, found: Publication, schema: Schema) -> None:
    """What a study published, or what a party knows of it."""
    words = Words(schema)
    for place, finding in enumerate(found.findings):
        say(console, finding.text, "Done" if place == 0 else "", "green")
    if found.participation is not None:
        for how, who in absences(found.participation, most=5):
            say(console, who, how.capitalize())
        if found.participation.unconfirmed:
            who = listing(found.participation.unconfirmed)
            say(console, f"{who} did not confirm to have the same result.", "Note")
    _show_privacy(console, found)
    _show_quantities(console, found, words)
    for listed in found.listings:
        if listed.main:
            _show_listing(console, listed, words)
    _show_shares(console, [t for t in found.tables if t.main and len(t.axes) == 1], words)
    _show_tables(console, [t for t in found.tables if t.main and len(t.axes) > 1], words)
    for note in found.notes:
        say(console, note.text, "Warning" if note.severity == "warning" else "Note")


def _show_privacy(console: Console, found: Publication) -> None:
    if found.privacy is not None:
        say(console, price(found.privacy))
        for event in found.privacy.events:
            if isinstance(event, Unstated):
                say(console, f"what this protocol gives away is {event.how}.", "Warning")


def _show_quantities(console: Console, found: Publication, words: Words) -> None:
    for q in found.quantities:
        if not q.main:
            continue
        text = f"{q.label}: {words.cell(q.value, q.kind)}"
        if q.standard_error is not None:
            text += f", standard error {number(q.standard_error, q.kind)}"
        if q.low is not None and q.high is not None:
            text += (
                f"; with 95 % confidence between {number(q.low, q.kind)} and "
                f"{number(q.high, q.kind)}"
            )
        say(console, text)


def _show_listing(console: Console, listed: Listing, words: Words) -> None:
    table = RichTable(title=escape(listed.title), title_justify="left")
    for column in listed.columns:
        left = column.kind in ("text", "attribute")
        table.add_column(escape(column.label), justify="left" if left else "right", overflow="fold")
        if column.kind == "degree":
            table.add_column("")
    for row in listed.rows:
        cells: list[str | ProgressBar] = []
        for value, column in zip(row, listed.columns, strict=True):
            cells.append(escape(words.cell(value, column.kind)))
            if column.kind == "degree":
                degree = value if isinstance(value, float | int) else 0.0
                cells.append(ProgressBar(1.0, degree, width=BAR))
        table.add_row(*cells)
    console.print(table)
    if listed.caption:
        console.print(f"[dim]{escape(listed.caption)}[/]", highlight=False)


def _show_shares(console: Console, tables: list[Table], words: Words) -> None:
    """Tables of one attribute each, below each other, with their limits."""
    if not tables:
        return
    limits = any(table.low for table in tables)
    title = "Estimated shares, with 95 % intervals" if limits else "Shares"
    shown = RichTable(title=title, title_justify="left")
    for heading in ("", "", "share", *(("from", "to") if limits else ())):
        shown.add_column(heading, justify="right" if heading else "left")
    shown.add_column("")
    for table in tables:
        (axis,) = table.axes
        low, high = table.low or (None,) * len(table.values), table.high or ()
        for place, (category, value) in enumerate(zip(axis.categories, table.values, strict=True)):
            ends = (low[place], high[place] if high else None)
            shown.add_row(
                escape(words.attribute(axis.attribute)) if place == 0 else "",
                escape(words.category(axis.attribute, category)),
                number(value, table.kind),
                *((number(end, table.kind) for end in ends) if limits else ()),
                ProgressBar(1.0, min(max(value or 0.0, 0.0), 1.0), width=BAR),
            )
    console.print(shown)


def _show_tables(console: Console, tables: list[Table], words: Words) -> None:
    for table in tables[:MOST_TABLES]:
        shown = RichTable(title=escape(words.title(table)), title_justify="left")
        *rows, columns = table.axes
        for axis in rows:
            shown.add_column(escape(words.attribute(axis.attribute)))
        for category in columns.categories:
            shown.add_column(escape(words.category(columns.attribute, category)), justify="right")
        cells, width = words.cells(table), len(columns.categories)
        for place, start in enumerate(range(0, len(cells), width)):
            names = _row_names(table, place)
            labels = [words.category(a.attribute, n) for a, n in zip(rows, names, strict=True)]
            shown.add_row(*(escape(cell) for cell in (*labels, *cells[start : start + width])))
        console.print(shown)
    if len(tables) > MOST_TABLES:
        say(console, f"… and {len(tables) - MOST_TABLES} more tables, in the result folder")


def _row_names(table: Table, place: int) -> list[str]:
    """The categories, on all axes but the last, of a row."""
    names: list[str] = []
    for axis in reversed(table.axes[:-1]):
        place, code = divmod(place, len(axis.categories))
        names.insert(0, axis.categories[code])
    return names
