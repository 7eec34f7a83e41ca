"""A publication as HTML: what it shows, for a page or a notebook."""

import html
import itertools
import math
import re
from collections.abc import Mapping, Sequence

from mpc_rr.errors import plain_lines
from mpc_rr.privacy.accountant import Accountant
from mpc_rr.privacy.costs import Privacy
from mpc_rr.privacy.disclosures import Disclosure, Masked, as_long_as
from mpc_rr.privacy.entropy import MEANING, beta_cell, entropy_share, entropy_shares
from mpc_rr.privacy.sentences import becomes, epsilon_cell
from mpc_rr.publication.parts import Cell, Figure, Listing, Publication, Quantity, Table
from mpc_rr.show import charts
from mpc_rr.show.brief import brief
from mpc_rr.show.words import CANNOT_BE_TOLD, WHY_NOT_TOLD, Words, number, price

STYLE = """
.mpc-rr { color-scheme: light dark; --ink: #1c2024; --dim: #60646c; --line: #d9d9e0; --page: #fff;
  --accent: #3358d4; --note: #fff7c2; --warn: #ffe7d5;
  --bar: #dfe6fb;
  font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--page);
  overflow-wrap: anywhere;
  @media (prefers-color-scheme: dark) {
    --ink: #edeef0; --dim: #b0b4ba; --line: #43484e; --page: #111113; --accent: #8da4ef;
    --note: #302008; --warn: #391714;
    --bar: #1d2a52; }
  h1 { margin-bottom: 0; line-height: 1.2; }
  h2 { margin-top: 2.5rem; border-bottom: 1px solid var(--line); }
  .wide { overflow-x: auto; } table { border-collapse: collapse; margin: .75rem 0; }
  td, th { padding: .25rem .75rem; border-bottom: 1px solid var(--line); text-align: left;
           vertical-align: top; overflow-wrap: normal; }
  .stack td { overflow-wrap: anywhere; }
  td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; }
  td[style] { background: linear-gradient(to left, var(--bar) var(--part), transparent 0); }
  .brief li { margin: .25rem 0; }
  .dim { color: var(--dim); } .error { color: var(--dim); font-size: .8em; white-space: nowrap; }
  .part { display: inline-block; min-width: 2.7em; }
  .note, .warning { padding: .5rem .75rem; border-radius: .4rem; background: var(--note); }
  .warning { background: var(--warn); }
  details { margin: .5rem 0; } summary { cursor: pointer; }
  svg { height: auto; max-width: 100%; font-size: 13px; } svg text { fill: var(--ink); }
  svg text.dim { fill: var(--dim); } .grid { stroke: var(--line); stroke-dasharray: 2 4; }
  .axis { stroke: var(--dim); fill: none; } .range { stroke: var(--accent); stroke-width: 2; }
  .tie { stroke: var(--accent); stroke-opacity: .7; } .link { stroke: var(--line); }
  .dot { fill: var(--accent); } .truth { stroke: var(--ink); stroke-width: 2; }
  .vague { fill: var(--line); opacity: .6; }
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
"""How many tables are unfolded."""
SCROLLS = '<div class="wide" tabindex="0" role="group" aria-label="table">'
"""Around what may be wider than the page: it can be scrolled by keyboard, too."""


def fragment(
    found: Publication,
    words: Words,
    truth: Mapping[str, Sequence[float]] | None = None,
    *,
    before: str = "",
    after: str = "",
) -> str:
    """What a publication shows, for a page or a notebook: first what was found, then the rest.

    ``before`` stands ahead of all, ``after`` behind what was found.
    """
    parts = [
        before,
        _findings(found, words),
        _figures(found, words, truth or {}),
        *(_listing(listed, found, words) for listed in found.listings if listed.main),
        _tables(found.tables, words),
        _quantities(found.quantities, words),
        *(_listing(listed, found, words) for listed in found.listings if not listed.main),
        after,
        "" if found.privacy is None else _privacy(found, found.privacy, words),
        _sheets(found),
    ]
    return "\n".join(filter(None, parts))


# ── Parts ──────────────────────────────────────────────────────────────────────────────────────


def _findings(found: Publication, words: Words) -> str:
    said = "".join(f"<p>{text_of(finding.text)}</p>" for finding in found.findings)
    shortly = "".join(f"<li>{text_of(sentence)}</li>" for sentence in brief(found, words))
    said += f'<ul class="brief">{shortly}</ul>' if shortly else ""
    notes = "".join(
        f'<p class="{note.severity}"><b>{note.severity.capitalize()}:</b> {_prose(note.text)}</p>'
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
    all_sent = f"someone who sees everything a party sent (local ε){rests}"
    readings = [
        (all_sent, epsilon_cell(privacy.local_epsilon, events)),
        ("the same, of any one answer", epsilon_cell(reading.one_answer, events)),
        ("as claimed in the paper", epsilon_cell(privacy.claimed_epsilon, events)),
        ("someone who sees only published totals (central ε)", central),
    ]
    rows: list[tuple[str, ...]] = []
    for event in events:
        stage = f" ({event.what})" if event.what.isidentifier() else ""  # a protocol's own name
        about, cost = words.attributes(event.attributes), epsilon_cell(event.cost, [event])
        rows.append(
            (about, _how(event) + stage, cost, beta_cell(entropy_share([event])), event.seen)
        )
    heads: tuple[str, ...] = ("about", "how", "ε", "β", "seen")
    if not entropy_shares(events):  # a column that would say nothing
        heads, rows = (*heads[:3], heads[4]), [(*row[:3], row[4]) for row in rows]
    return (
        f"<h2>Privacy cost per party</h2><p>{text_of(price(privacy))}</p>"
        + rows_table(("against", "ε"), readings)
        + _answers(reading.answers, events, words)
        + rows_table(heads, rows)
        + (f'<p class="dim">{MEANING}</p>' if "β" in heads else "")
        + _cautions(found, privacy)
    )


def _how(event: Disclosure) -> str:
    """How it was disclosed: to those who read a report, whoever chose a mask is another."""
    if isinstance(event, Masked) and not event.chosen:
        beside = "".join(event.how.partition("; whether")[1:])
        return f"under a mask of the respondent's choice ({event.recommended} recommended){beside}"
    return event.how


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
        "Against anyone who knows all other answers of the party, or whom they do not help to "
        "guess this one."
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
    items = "".join(f"<li>“{text_of(text)}”</li>" for text in said)
    told = "What respondents were told beforehand that may happen, in these words:"
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
    by_kind = {"graph": _graph, "heat_map": _heat_map, "intervals": _points}
    picture = "".join(by_kind[figure.kind](listed, figure, words) for figure in drawn)
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


def _untold(listed: Listing) -> list[tuple[str, str]]:
    """The pairs of which nothing can be told beyond these respondents."""
    if "verdict" not in {column.name for column in listed.columns}:
        return []
    verdicts = listed.column("verdict")
    return [
        (str(row[0]), str(row[1]))
        for row, verdict in zip(listed.rows, verdicts, strict=True)
        if verdict == "cannot be told"
    ]


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


def _points(listed: Listing, figure: Figure, words: Words) -> str:
    """Rows as points with their limits."""
    kinds = [column.kind for column in listed.columns]
    if "number" not in kinds or kinds.count("limit") != 2:
        return ""
    place, low = kinds.index("number"), kinds.index("limit")
    labels = [words.cell(row[0], kinds[0]) for row in listed.rows]
    values = [_number(row[place]) for row in listed.rows]
    limits = [(_number(row[low]), _number(row[low + 1])) for row in listed.rows]
    ends = [end for end in (*values, *itertools.chain(*limits)) if end is not None]
    if not ends or min(ends) < 0 or max(ends) == 0:
        return ""
    drawn = charts.intervals(listed.title, labels, values, limits, max(ends), kind="number")
    return f'<div class="wide">{drawn}</div><p class="dim">{text_of(figure.title)}</p>'


def _number(value: Cell) -> float | None:
    return float(value) if isinstance(value, float | int) else None


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
    untold = {(min(names[a], names[b]), max(names[a], names[b])) for a, b in _untold(listed)}
    labels = [words.attribute(name) for name in names]
    drawn = charts.heat_map(listed.title, labels, values, untold)
    told = figure.title
    if any(values[pair] is not None for pair in untold):
        here = any(column.label == "here" for column in listed.columns)
        told += "; a number there " + (
            "holds among these respondents only" if here else "is an estimate that may be chance"
        )
    return f'<div class="wide">{drawn}</div><p class="dim">{text_of(told)}</p>'


def _figures(found: Publication, words: Words, truth: Mapping[str, Sequence[float]]) -> str:
    """All tables of one attribute: drawn if they are worth it, listed if not."""
    worth = {figure.of for figure in found.figures if figure.kind == "intervals"}
    single = [table for table in found.tables if len(table.axes) == 1]
    if not single:
        return ""
    largest = {kind: _largest(single, worth, truth, kind) for kind in ("share", "count")}
    parts = []
    for table in single:
        name = words.attribute(table.axes[0].attribute)
        shown = (
            _chart(table, name, words, truth, largest[table.kind])
            if table.name in worth
            else _cells(table, words)
        )
        counted = words.intervals(table.axes[0].attribute)
        told_of = f'<p class="dim">Counted as {text_of(counted)}.</p>' if counted else ""
        parts.append(f'<h3>{text_of(name)}</h3>{told_of}<div class="wide">{shown}</div>')
    limits = any(table.low for table in single)
    heads = {"count": "Counts", "share": "Estimated shares" if limits else "Shares"}
    head = " and ".join(dict.fromkeys(heads[table.kind] for table in single))
    drawn = any(table.low for table in single if table.name in worth)
    told = "Points: what was estimated; lines: 95 % intervals." if drawn else ""
    if any(table.standard_errors for table in single if table.name not in worth):
        told += " ± standard error."
    if any(any(table.untold) for table in single):
        told += f" {CANNOT_BE_TOLD}: {WHY_NOT_TOLD}."
    told += " Crosses are the true shares, known in this simulation." if truth else ""
    head += ", with 95 % intervals" if drawn else ""
    return f'<h2>{head}</h2><p class="dim">{told}</p>' + "".join(parts)


def _largest(
    tables: Sequence[Table], worth: set[str], truth: Mapping[str, Sequence[float]], kind: str
) -> float:
    """The end of the one scale of all charts of a kind, so that they can be compared."""
    drawn = [table for table in tables if table.kind == kind and table.name in worth]
    ends = [end for table in drawn for end in (*table.values, *(table.high or ()))]
    known = [share for table in drawn for share in truth.get(table.axes[0].attribute, ())]
    return max([0.01, *(end for end in ends if end is not None), *known])


def _chart(
    table: Table, name: str, words: Words, truth: Mapping[str, Sequence[float]], largest: float
) -> str:
    (axis,) = table.axes
    nothing = (None,) * len(table.values)
    limits = list(zip(table.low or nothing, table.high or nothing, strict=True))
    labels = [words.category(axis.attribute, c) for c in axis.categories]
    known = truth.get(axis.attribute)
    values = [None if no else v for v, no in zip(table.values, table.untold, strict=True)]
    drawn = charts.intervals(name, labels, values, limits, largest, known, table.kind)
    between = [
        "" if low is None or high is None
        else f"{number(low, table.kind)} to {number(high, table.kind)}"
        for low, high in limits
    ]  # fmt: skip
    rows = list(zip(labels, words.cells(table), between, strict=True))
    head = ("answer", table.kind, "95 % interval")
    text = rows_table(head, rows, (False, True, True))
    return f"{drawn}<details><summary>The same as a table</summary>{text}</details>"


def _tables(tables: Sequence[Table], words: Words) -> str:
    several = [table for table in tables if len(table.axes) > 1]
    if not several:
        return ""
    parts = ["<h2>Tables of several questions</h2>"]
    if any(map(_with_shares, several)):
        parts.append('<p class="dim">Beside each count: its share of all in the table.</p>')
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
    if _with_shares(table):
        shares = [_share(value, table) for value in table.values]
        shown = [f"{cell} {share}" for cell, share in zip(shown, shares, strict=True)]
    width = len(columns.categories)
    bars = [_bar(table, place) for place in range(len(shown))]
    margins = _margins(table) if len(table.axes) == 2 else None
    head = "".join("<td></td>" for _ in outer) + "".join(
        f'<th scope="col" class="number">{text_of(words.category(columns.attribute, c))}</th>'
        for c in columns.categories
    )
    head += '<th scope="col" class="number">all</th>' if margins else ""
    lines = []
    for place, start in enumerate(range(0, len(shown), width)):
        labels: list[str] = []
        rest = place
        for axis in reversed(outer):
            rest, code = divmod(rest, len(axis.categories))
            labels.insert(0, words.category(axis.attribute, axis.categories[code]))
        cells = "".join(f'<th scope="row">{text_of(label)}</th>' for label in labels)
        cells += "".join(
            f'<td class="number"{bars[k]}>{shown[k]}</td>' for k in range(start, start + width)
        )
        cells += _margin([margins[0][place]], table) if margins else ""
        lines.append(f"<tr>{cells}</tr>")
    if margins:
        last = _margin([*margins[1], sum(margins[0])], table)
        lines.append(f'<tr><th scope="row">all</th>{last}</tr>')
    body = "".join(lines)
    return f"{SCROLLS}<table><tr>{head}</tr>{body}</table></div>"


def _margins(table: Table) -> tuple[list[float], list[float]] | None:
    """Sums of rows and columns, where all cells are known and shown."""
    if table.standard_errors is not None or any(table.untold) or None in table.values:
        return None
    rows = [[value or 0 for value in row] for row in table.rows()]
    return [sum(row) for row in rows], [sum(column) for column in zip(*rows, strict=True)]


def _margin(sums: Sequence[float], table: Table) -> str:
    shares = [f" {_share(value, table)}" if _with_shares(table) else "" for value in sums]
    return "".join(
        f'<td class="number dim">{number(value, table.kind)}{share}</td>'
        for value, share in zip(sums, shares, strict=True)
    )


def _with_shares(table: Table) -> bool:
    """Whether the sum of these counts is known: all of them are."""
    return table.kind == "count" and _margins(table) is not None and _all_of(table) > 0


def _all_of(table: Table) -> float:
    return math.fsum(value for value in table.values if value is not None)


def _share(value: float | None, table: Table) -> str:
    return f'<span class="error part">{(value or 0) / _all_of(table):.0%}</span>'


def _bar(table: Table, place: int) -> str:
    """How long the bar behind a cell is, as a part of the largest cell that is shown."""
    told = [
        value for value, untold in zip(table.values, table.untold, strict=True)
        if value is not None and not untold
    ]  # fmt: skip
    value, largest = table.values[place], max(told, default=0)
    if value is None or table.untold[place] or largest <= 0:
        return ""
    return f' style="--part:{max(0.0, min(value / largest, 1.0)):.0%}"'


def _sheets(found: Publication) -> str:
    if not found.sheets:
        return ""
    rows = [(sheet.name, sheet.what) for sheet in found.sheets]
    folded = f"<details><summary>{len(rows)} files</summary>{facts_table(rows)}</details>"
    return "<h2>Files beside this one</h2>" + (
        folded if len(rows) > MOST_OPEN else facts_table(rows)
    )


# ── Pieces ─────────────────────────────────────────────────────────────────────────────────────


PAGE_OF_DOCS = re.compile(r"docs/([a-z-]+)\.md")


def _prose(text: str) -> str:
    """A sentence that may name a page of the docs: whoever reads a report has no such file."""
    named = PAGE_OF_DOCS.sub(lambda found: f"documentation, “{found[1].replace('-', ' ')}”", text)
    return text_of(named)


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
    heading = "".join(
        f'<th scope="col"{k}>{text_of(name)}</th>' if name else "<td></td>"
        for name, k in zip(head, kinds, strict=True)
    )
    lines = [
        "<tr>"
        + "".join(f"<td{k}>{text_of(v)}</td>" for v, k in zip(row, kinds, strict=True))
        + "</tr>"
        for row in rows
    ]
    return f"{SCROLLS}<table><tr>{heading}</tr>{''.join(lines)}</table></div>"
