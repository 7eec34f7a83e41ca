"""A publication as HTML: what it shows, for a page or a notebook."""

import html
import math
from collections.abc import Mapping, Sequence

from mpc_rr.errors import plain_lines
from mpc_rr.privacy.accountant import Accountant
from mpc_rr.privacy.costs import Privacy
from mpc_rr.privacy.disclosures import Disclosure, as_long_as
from mpc_rr.privacy.sentences import becomes, epsilon_cell
from mpc_rr.publication.parts import Figure, Listing, Publication, Quantity, Table
from mpc_rr.show import charts
from mpc_rr.show.words import CANNOT_BE_TOLD, WHY_NOT_TOLD, Words, number, price

STYLE = """
.mpc-rr { color-scheme: light dark; --ink: #1c2024; --dim: #60646c; --line: #d9d9e0; --page: #fff;
  --accent: #3358d4; --note: #fff7c2; --warn: #ffe7d5;
  font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--page);
  overflow-wrap: anywhere;
  @media (prefers-color-scheme: dark) {
    --ink: #edeef0; --dim: #b0b4ba; --line: #43484e; --page: #111113; --accent: #8da4ef;
    --note: #302008; --warn: #391714; }
  h1 { margin-bottom: 0; line-height: 1.2; }
  h2 { margin-top: 2.5rem; border-bottom: 1px solid var(--line); }
  .wide { overflow-x: auto; } table { border-collapse: collapse; margin: .75rem 0; }
  td, th { padding: .25rem .75rem; border-bottom: 1px solid var(--line); text-align: left;
           vertical-align: top; overflow-wrap: normal; }
  .stack td { overflow-wrap: anywhere; }
  td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; }
  .dim { color: var(--dim); } .error { color: var(--dim); font-size: .8em; white-space: nowrap; }
  .note, .warning { padding: .5rem .75rem; border-radius: .4rem; background: var(--note); }
  .warning { background: var(--warn); }
  details { margin: .5rem 0; } summary { cursor: pointer; }
  svg { height: auto; max-width: 100%; font-size: 13px; } svg text { fill: var(--ink); }
  svg text.dim { fill: var(--dim); } .grid { stroke: var(--line); stroke-dasharray: 2 4; }
  .axis { stroke: var(--dim); fill: none; } .range { stroke: var(--accent); stroke-width: 2; }
  .tie { stroke: var(--accent); stroke-opacity: .7; } .link { stroke: var(--line); }
  .dot { fill: var(--accent); } .truth { stroke: var(--ink); stroke-width: 2; }
  .cell { fill: color-mix(in srgb, var(--accent) calc(var(--degree) * 100%), var(--page));
          stroke: var(--line); } .none { fill: var(--line); opacity: .35; }
  svg text.on { fill: var(--page); }
  @media (max-width: 40rem) {
    td, th { padding: .25rem .4rem; }
    .stack td { display: block; border: 0; padding: .1rem 0; }
    .stack tr { display: block; padding: .4rem 0; border-bottom: 1px solid var(--line); }
    .stack td:first-child { color: var(--dim); font-size: .85em; } }
}
"""
MOST_OPEN = 12
"""So many tables are unfolded."""


def fragment(
    found: Publication,
    words: Words,
    truth: Mapping[str, Sequence[float]] | None = None,
    before: str = "",
) -> str:
    """What a publication shows, for a page or a notebook."""
    parts = [
        _findings(found),
        before,
        "" if found.privacy is None else _privacy(found, found.privacy, words),
        _figures(found, words, truth or {}),
        _quantities(found.quantities, words),
        *(_listing(listed, found, words) for listed in found.listings),
        _tables(found.tables, words),
        _sheets(found),
    ]
    return "\n".join(filter(None, parts))


# ── Parts ──────────────────────────────────────────────────────────────────────────────────────


def _findings(found: Publication) -> str:
    said = "".join(f"<p>{text_of(finding.text)}</p>" for finding in found.findings)
    notes = "".join(
        f'<p class="{note.severity}"><b>{note.severity.capitalize()}:</b> {text_of(note.text)}</p>'
        for note in found.notes
    )
    return f"<h2>What was found</h2>{said}{notes}" if said or notes else ""


def _privacy(found: Publication, privacy: Privacy, words: Words) -> str:
    events, reading = privacy.events, Accountant().read(privacy.events)
    central = epsilon_cell(privacy.central_epsilon, events)
    if privacy.central_delta and privacy.central_epsilon is not None:
        central += f" (δ = {privacy.central_delta:.2g})"
    most = privacy.local_withstands
    honest = privacy.local_trusts_coordinator
    rests = "" if most is None else f", {as_long_as(most, honest=honest)}"
    all_sent = f"whoever sees all that a party sent{rests}"
    readings = [
        (all_sent, epsilon_cell(privacy.local_epsilon, events)),
        ("the same, of any one answer", epsilon_cell(reading.one_answer, events)),
        ("as the paper counts it", epsilon_cell(privacy.claimed_epsilon, events)),
        ("whoever sees only totals", central),
    ]
    rows = []
    for event in events:
        stage = f" ({event.what})" if event.what.isidentifier() else ""  # a protocol's own name
        about, cost = words.attributes(event.attributes), epsilon_cell(event.cost, [event])
        rows.append((about, event.how + stage, cost, event.seen))
    return (
        f"<h2>What it cost each party</h2><p>{text_of(price(privacy))}</p>"
        + rows_table(("against", "ε"), readings)
        + _answers(reading.answers, events, words)
        + rows_table(("about", "how", "ε", "seen"), rows)
        + _cautions(found, privacy)
    )


def _answers(answers: Mapping[str, float], events: Sequence[Disclosure], words: Words) -> str:
    """What it cost, answer by answer."""
    if not answers:
        return ""
    rows = []
    for name, epsilon in answers.items():
        about = [event for event in events if name in event.attributes]
        sure = CANNOT_BE_TOLD if math.isinf(epsilon) else becomes(epsilon)
        rows.append((words.attribute(name), epsilon_cell(epsilon, about), sure))
    told = (
        "Against whoever knows all other answers of the party, or whom they do not help to guess "
        "this one."
    )
    return (
        "<details><summary>Answer by answer</summary>"
        + rows_table(("answer", "ε", "a 50:50 guess can become"), rows)
        + f'<p class="dim">{told}</p></details>'
    )


def _cautions(found: Publication, privacy: Privacy) -> str:
    """What respondents were told beforehand, but for what the notes say as well."""
    noted = {note.text for note in found.notes}
    said = [str(caution) for caution in privacy.cautions if str(caution) not in noted]
    items = "".join(f"<li>{text_of(text)}</li>" for text in said)
    told = "What respondents were told beforehand that may happen:"
    return f"<p>{told}</p><ul>{items}</ul>" if items else ""


def _quantities(quantities: Sequence[Quantity], words: Words) -> str:
    rows = []
    for q in quantities:
        value = "cannot be told" if q.value is None else words.cell(q.value, q.kind)
        if q.standard_error is not None:
            value += f" ± {number(q.standard_error, q.kind)}"
        if q.low is not None and q.high is not None:
            value += f" (95 %: {number(q.low, q.kind)} to {number(q.high, q.kind)})"
        rows.append((q.label, value))
    return "<h2>Numbers</h2>" + facts_table(rows) if rows else ""


def _listing(listed: Listing, found: Publication, words: Words) -> str:
    drawn = [f for f in found.figures if f.of == listed.name]
    picture = "".join(
        (_graph if figure.kind == "graph" else _heat_map)(listed, figure, words) for figure in drawn
    )
    columns = words.columns(listed)
    rows = list(zip(*(texts for _, texts in columns), strict=True))
    numeric = [column.kind not in ("text", "attribute") for column, _ in columns]
    table = rows_table([column.label for column, _ in columns], rows, numeric)
    if picture:
        table = f"<details><summary>The same as a table</summary>{table}</details>"
    caption = f'<p class="dim">{text_of(listed.caption)}</p>' if listed.caption else ""
    return f"<h2>{text_of(listed.title)}</h2>{picture}{table}{caption}"


def _degrees(listed: Listing) -> dict[tuple[str, str], float | None]:
    """By the two attributes that the first columns name."""
    found = [column.name for column in listed.columns if column.kind == "degree"]
    if not found or len(listed.columns) < 3:
        return {}
    ends = (listed.column(column.name) for column in listed.columns[:2])
    return {
        (str(a), str(b)): float(value) if isinstance(value, float | int) else None
        for a, b, value in zip(*ends, listed.column(found[0]), strict=True)
    }


def _graph(listed: Listing, figure: Figure, words: Words) -> str:
    degrees = _degrees(listed)
    together = {(str(row[0]), str(row[1])) for row in listed.rows if row[-1] == "yes"} & {*degrees}
    names = sorted({name for pair in degrees for name in pair}, key=lambda n: (words.place(n), n))
    first = {name: place for place, name in enumerate(names)}
    for one, other in together:  # those of a cluster stand beside each other
        first[one] = first[other] = min(first[one], first[other])
    place = {name: k for k, name in enumerate(sorted(names, key=lambda n: first[n]))}
    drawn = charts.graph(
        listed.title,
        [words.attribute(name) for name in place],
        {(place[a], place[b]): abs(value or 0.0) for (a, b), value in degrees.items()},
        {(place[a], place[b]) for a, b in together},
    )
    return f'<div class="wide">{drawn}</div><p class="dim">{text_of(figure.title)}</p>'


def _heat_map(listed: Listing, figure: Figure, words: Words) -> str:
    degrees = _degrees(listed)
    if not degrees:
        return ""
    names: dict[str, int] = {}
    pairs = list(degrees)
    for pair in sorted(pairs, key=lambda p: (words.place(p[0]), words.place(p[1]))):
        for name in pair:
            names.setdefault(name, len(names))
    values: dict[tuple[int, int], float | None] = {}
    for (a, b), value in degrees.items():
        low, high = sorted((names[a], names[b]))
        values[low, high] = value
    drawn = charts.heat_map(listed.title, [words.attribute(name) for name in names], values)
    return f'<div class="wide">{drawn}</div><p class="dim">{text_of(figure.title)}</p>'


def _figures(found: Publication, words: Words, truth: Mapping[str, Sequence[float]]) -> str:
    """All tables of one attribute: drawn if they are worth it, listed if not."""
    worth = {figure.of for figure in found.figures if figure.kind == "intervals"}
    single = [table for table in found.tables if len(table.axes) == 1]
    if not single:
        return ""
    parts = []
    for table in single:
        name = words.attribute(table.axes[0].attribute)
        drawn = _chart(table, name, words, truth) if table.name in worth else _cells(table, words)
        parts.append(f'<h3>{text_of(name)}</h3><div class="wide">{drawn}</div>')
    limits = any(table.low for table in single)
    heads = {"count": "Counts", "share": "Estimated shares" if limits else "Shares"}
    head = " and ".join(dict.fromkeys(heads[table.kind] for table in single))
    told = "Points: what was estimated; lines: 95 % intervals." if limits else ""
    if any(any(table.untold) for table in single):
        told += f" {CANNOT_BE_TOLD}: {WHY_NOT_TOLD}."
    told += " Crosses are the true shares, known in this simulation." if truth else ""
    head += ", with 95 % intervals" if limits else ""
    return f'<h2>{head}</h2><p class="dim">{told}</p>' + "".join(parts)


def _chart(table: Table, name: str, words: Words, truth: Mapping[str, Sequence[float]]) -> str:
    (axis,) = table.axes
    nothing = (None,) * len(table.values)
    limits = list(zip(table.low or nothing, table.high or nothing, strict=True))
    labels = [words.category(axis.attribute, c) for c in axis.categories]
    known = truth.get(axis.attribute)
    values = [None if no else v for v, no in zip(table.values, table.untold, strict=True)]
    return charts.intervals(name, labels, values, limits, known, table.kind)


def _tables(tables: Sequence[Table], words: Words) -> str:
    several = [table for table in tables if len(table.axes) > 1]
    if not several:
        return ""
    parts = ["<h2>Tables</h2>"]
    if any(table.standard_errors for table in several):
        parts.append('<p class="dim">± standard error.</p>')
    if any(any(table.untold) for table in several):
        parts.append(f'<p class="dim">{CANNOT_BE_TOLD}: {WHY_NOT_TOLD}.</p>')
    for place, table in enumerate(several):
        names = " by ".join(words.attribute(axis.attribute) for axis in table.axes)
        unfolded = " open" if place < MOST_OPEN else ""
        parts.append(
            f"<details{unfolded}><summary><b>{text_of(names)}</b></summary>"
            f"{_cells(table, words)}</details>"
        )
    return "\n".join(parts)


def _cells(table: Table, words: Words) -> str:
    *outer, columns = table.axes
    errors = table.standard_errors or (None,) * len(table.values)
    shown = [
        text_of(cell) if error is None or untold
        else f'{text_of(cell)} <span class="error">± {number(error, table.kind)}</span>'
        for cell, error, untold in zip(words.cells(table), errors, table.untold, strict=True)
    ]  # fmt: skip
    width = len(columns.categories)
    head = "".join("<th></th>" for _ in outer) + "".join(
        f'<th class="number">{text_of(words.category(columns.attribute, c))}</th>'
        for c in columns.categories
    )
    lines = []
    for place, start in enumerate(range(0, len(shown), width)):
        labels: list[str] = []
        rest = place
        for axis in reversed(outer):
            rest, code = divmod(rest, len(axis.categories))
            labels.insert(0, words.category(axis.attribute, axis.categories[code]))
        cells = "".join(f"<th>{text_of(label)}</th>" for label in labels)
        cells += "".join(f'<td class="number">{c}</td>' for c in shown[start : start + width])
        lines.append(f"<tr>{cells}</tr>")
    body = "".join(lines)
    return f'<div class="wide"><table><tr>{head}</tr>{body}</table></div>'


def _sheets(found: Publication) -> str:
    if not found.sheets:
        return ""
    rows = [(sheet.name, sheet.what) for sheet in found.sheets]
    folded = f"<details><summary>{len(rows)} files</summary>{facts_table(rows)}</details>"
    return "<h2>Files beside this one</h2>" + (
        folded if len(rows) > MOST_OPEN else facts_table(rows)
    )


# ── Pieces ─────────────────────────────────────────────────────────────────────────────────────


def text_of(value: object) -> str:
    """Anybody's words, fit for HTML."""
    return html.escape(plain_lines(str(value)))


def facts_table(rows: Sequence[tuple[str, str]]) -> str:
    """Words and what they mean, a line each."""
    lines = (f"<tr><td>{text_of(key)}</td><td>{text_of(value)}</td></tr>" for key, value in rows)
    return f'<table class="stack">{"".join(lines)}</table>'


def rows_table(
    head: Sequence[str], rows: Sequence[Sequence[str]], numeric: Sequence[bool] | None = None
) -> str:
    """A table with a heading; columns of numbers stand to the right."""
    right = numeric or [False] * len(head)
    kinds = [' class="number"' if wanted else "" for wanted in right]
    heading = "".join(f"<th{k}>{text_of(name)}</th>" for name, k in zip(head, kinds, strict=True))
    lines = [
        "<tr>"
        + "".join(f"<td{k}>{text_of(v)}</td>" for v, k in zip(row, kinds, strict=True))
        + "</tr>"
        for row in rows
    ]
    return f'<div class="wide"><table><tr>{heading}</tr>{"".join(lines)}</table></div>'
