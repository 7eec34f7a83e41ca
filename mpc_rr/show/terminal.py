"""A publication on a terminal: the findings, what is worth a table, and what one must know."""

from rich.console import Console, Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table as RichTable
from rich.text import Text

from mpc_rr.errors import listing, plain, plain_lines
from mpc_rr.privacy.disclosures import Unstated
from mpc_rr.publication.parts import Cell, Listing, Publication, Table
from mpc_rr.schema import Schema
from mpc_rr.show.words import CANNOT_BE_TOLD, WHY_NOT_TOLD, Words, absences, number, price

MOST_TABLES = 6
"""So many tables of cells are shown; the others are in the folder."""
BAR = 20
DEGREE_BAR = 10
WIDE = 100
"""On a narrower terminal degrees have no bars."""
WORDS = {"count": "counts", "share": "shares"}
ENDS = ("from", "to")


def line(text: str, head: str = "", style: str = "yellow") -> Text:
    """A line of text, which may have a coloured head."""
    said = plain_lines(text)
    return Text.assemble((head, style), ": ", said) if head else Text(said)


def say(console: Console, text: str, head: str = "", style: str = "yellow") -> None:
    """Print such a line."""
    console.print(line(text, head, style))


def show_publication(
    console: Console, found: Publication, schema: Schema, head: str = "Done"
) -> None:
    """What a study published, or what a party knows of it."""
    words = Words(schema)
    parts: list[RenderableType] = []
    for place, finding in enumerate(found.findings):
        parts.append(line(finding.text, head if place == 0 else "", "green"))
    if found.participation is not None:
        for how, who in absences(found.participation, most=5):
            parts.append(line(who, how.capitalize()))
        if found.participation.unconfirmed:
            who = listing(found.participation.unconfirmed)
            everybody = len(found.participation.unconfirmed) == found.participation.present
            text = f"{who} did not confirm that they have the same result."
            parts.append(line(text, "Warning" if everybody else "Note"))
    parts += _privacy(found)
    parts += _quantities(found, words)
    for listed in found.listings:
        if listed.main:
            parts += _listing(listed, words, console.width)
    parts += _shares([t for t in found.tables if t.main and len(t.axes) == 1], words)
    parts += _tables([t for t in found.tables if t.main and len(t.axes) > 1], words)
    for note in found.notes:
        parts.append(line(note.text, "Warning" if note.severity == "warning" else "Note"))
    console.print(Group(*parts))


def _privacy(found: Publication) -> list[Text]:
    if found.privacy is None:
        return []
    unstated = [event.how for event in found.privacy.events if isinstance(event, Unstated)]
    warnings = [line(f"what this protocol discloses is {how}.", "Warning") for how in unstated]
    return [line(price(found.privacy)), *warnings]


def _quantities(found: Publication, words: Words) -> list[Text]:
    lines = []
    for q in found.quantities:
        if not q.main:
            continue
        text = f"{plain(q.label)}: {words.cell(q.value, q.kind)}"
        if q.standard_error is not None:
            text += f", standard error {number(q.standard_error, q.kind)}"
        if q.low is not None and q.high is not None:
            text += (
                f"; with 95 % confidence between {number(q.low, q.kind)} and "
                f"{number(q.high, q.kind)}"
            )
        lines.append(Text(text))
    return lines


def _listing(listed: Listing, words: Words, width: int) -> list[RenderableType]:
    table = RichTable(title=line(listed.title), title_justify="left")
    columns: list[list[RenderableType]] = []
    shown = words.columns(listed)
    longest = [max(map(len, column.label.split()), default=0) for column, _ in shown]
    whole = sum(longest) + len(longest) * len(" │ ") < width  # no word of a heading is broken
    for (column, texts), least in zip(shown, longest, strict=True):
        left = column.kind in ("text", "attribute")
        table.add_column(
            line(column.label), justify="left" if left else "right", overflow="fold",
            min_width=least if whole else None,
        )  # fmt: skip
        columns.append([Text(text) for text in texts])
        if column.kind == "degree" and width >= WIDE:
            table.add_column(Text(""))
            columns.append([_degree(value) for value in listed.column(column.name)])
    for row in zip(*columns, strict=True):
        table.add_row(*row)
    return [table, Text(plain_lines(listed.caption), style="dim")] if listed.caption else [table]


def _degree(value: Cell) -> ProgressBar:
    degree = abs(value) if isinstance(value, float | int) else 0.0
    return ProgressBar(1.0, degree, width=DEGREE_BAR)


def _shares(tables: list[Table], words: Words) -> list[RenderableType]:
    """Tables of one attribute each, below each other, with their limits."""
    if not tables:
        return []
    limits = any(table.low for table in tables)
    kinds = [word for kind, word in WORDS.items() if kind in {table.kind for table in tables}]
    title = " and ".join(kinds).capitalize()
    title = f"Estimated {title.lower()}, with 95 % intervals" if limits else title
    shown = RichTable(title=Text(title), title_justify="left")
    for heading in ("", "", " or ".join(word[:-1] for word in kinds), *ENDS[: 2 * limits]):
        shown.add_column(Text(heading), justify="right" if heading else "left")
    shown.add_column(Text(""))
    for table in tables:
        (axis,) = table.axes
        nothing = (None,) * len(table.values)
        cells = zip(axis.categories, table.values, words.cells(table), table.untold,
                    table.low or nothing, table.high or nothing, strict=True)  # fmt: skip
        for place, (category, value, text, untold, *ends) in enumerate(cells):
            texts = (
                words.attribute(axis.attribute) if place == 0 else "",
                words.category(axis.attribute, category),
                text,
                *((number(end, table.kind) for end in ends) if limits else ()),
            )
            shown.add_row(*map(Text, texts), _bar(None if untold else value, table))
    return [shown, *_why_not_told(tables)]


def _why_not_told(tables: list[Table]) -> list[Text]:
    untold = any(any(table.untold) for table in tables)
    return [Text(f"{CANNOT_BE_TOLD}: {WHY_NOT_TOLD}.", style="dim")] if untold else []


def _bar(value: float | None, table: Table) -> ProgressBar:
    whole = 1.0 if table.kind == "share" else float(sum(v or 0 for v in table.values)) or 1.0
    return ProgressBar(whole, min(max(value or 0.0, 0.0), whole), width=BAR)


def _tables(tables: list[Table], words: Words) -> list[RenderableType]:
    parts: list[RenderableType] = []
    for table in tables[:MOST_TABLES]:
        shown = RichTable(title=Text(words.title(table)), title_justify="left")
        *rows, columns = table.axes
        for axis in rows:
            shown.add_column(Text(words.attribute(axis.attribute)))
        for category in columns.categories:
            shown.add_column(Text(words.category(columns.attribute, category)), justify="right")
        cells, width = words.cells(table), len(columns.categories)
        for place, start in enumerate(range(0, len(cells), width)):
            names = _row_names(table, place)
            labels = [words.category(a.attribute, n) for a, n in zip(rows, names, strict=True)]
            shown.add_row(*map(Text, (*labels, *cells[start : start + width])))
        parts.append(shown)
    parts += _why_not_told(tables[:MOST_TABLES])
    if len(tables) > MOST_TABLES:
        more = len(tables) - MOST_TABLES
        parts.append(Text(f"… and {more} more tables, in the result folder"))
    return parts


def _row_names(table: Table, place: int) -> list[str]:
    """The categories, on all axes but the last, of a row."""
    names: list[str] = []
    for axis in reversed(table.axes[:-1]):
        place, code = divmod(place, len(axis.categories))
        names.insert(0, axis.categories[code])
    return names
