"""The HTML report of a result folder: one file for people, which needs no network to be opened.

Everything in it comes from what was published. What the respondents truly answered is not there; in
a simulation it can be given from outside (``truth``) and is then drawn beside the estimates.
"""

import contextlib
import csv
import io
import itertools
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
import numpy as np

from mpc_rr.errors import InputError, plain
from mpc_rr.publication.parts import Participation, Publication, Sheet
from mpc_rr.publication.sheets import from_cell
from mpc_rr.results.beside import listings_beside_truth
from mpc_rr.results.folder import read_folder
from mpc_rr.results.format import Cost, ResultFile
from mpc_rr.results.verification import replay
from mpc_rr.schema import Record, Schema
from mpc_rr.show.fragment import STYLE, facts_table, fragment, rows_table, text_of
from mpc_rr.show.words import Words, absences, size
from mpc_rr.study.definition import Definition
from mpc_rr.study.records import read_csv
from mpc_rr.study.suggesting import numbers_of

PAGE = """
* { box-sizing: border-box; }
body.mpc-rr { max-width: 60rem; margin: 1rem auto; padding: 0 1rem; }
nav { margin: 1.5rem 0; }
nav a { display: inline-block; margin: 0 1rem .25rem 0; color: var(--accent); }
@media print {
  nav { display: none; } h2, h3 { break-after: avoid; } tr, svg { break-inside: avoid; }
  .wide { overflow: visible; } }
"""
HEADING = re.compile(r"<h2>(.*?)</h2>")
LONG = 6
"""From so many sections on, a page has contents."""
PARTY, GROUP = "party", "group"
FEW_VALUES = 12
"""So many different values of a column are counted one by one."""
SHOWN_OF_A_SHEET = 10
WIDEST_SHOWN = 8
"""Lines, and columns, of a CSV file that are shown, unless it has a column of parties' names."""
COST = "cost.json"


def report(path: Path, truth: Path | None = None, language: str | None = None) -> str:
    """The HTML of a result folder; `InputError` if it is none.

    What a folder of format 1 publishes is made anew from its transcript.
    """
    folder = read_folder(path)
    folder.definition.schema.check_language(language)
    if folder.version == 1 and folder.done:
        found = replay(folder).with_reasons(folder.file.publication.participation)
        file = msgspec.structs.replace(folder.file, publication=found)
    else:
        file = folder.file
    cost = None
    try:
        if (path / COST).exists():
            cost = msgspec.json.decode(folder.text(COST), type=Cost)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise InputError(f"{path / COST} is damaged: {error}") from None
    shares = None
    if truth is not None:
        schema = folder.definition.schema
        records = read_csv(truth, schema)[: folder.definition.parties.count]
        shares = _true_shares(records, schema)
        beside = (*file.publication.listings, *listings_beside_truth(folder, records))
        found = msgspec.structs.replace(file.publication, listings=beside)
        file = msgspec.structs.replace(file, publication=found)
    texts = {}
    for sheet in _records(file.publication):
        with contextlib.suppress(InputError):  # then it is listed, and not shown
            texts[sheet.name] = folder.text(sheet.name)
    return page(folder.definition, file, cost, texts, truth=shares, language=language)


def _records(found: Publication) -> list[Sheet]:
    """Files that may hold records: what is in folders, or is shown as a listing, does not."""
    listed = {f"{listed.name}.csv" for listed in found.listings}
    return [s for s in found.sheets if "/" not in s.name and s.name not in listed]


def _true_shares(records: Sequence[Record], schema: Schema) -> dict[str, list[float]]:
    """The true distribution of each attribute with categories."""
    table = np.array(records)
    return {
        attribute.name: (
            np.bincount(table[:, place], minlength=attribute.size) / len(table)
        ).tolist()
        for place, attribute in enumerate(schema.attributes)
        if not attribute.numeric
    }


def page(
    definition: Definition,
    file: ResultFile,
    cost: Cost | None,
    texts: Mapping[str, str],
    *,
    truth: Mapping[str, Sequence[float]] | None = None,
    language: str | None = None,
) -> str:
    """The whole page. ``texts``: of files; ``truth``: the true shares, in a simulation."""
    words = Words(definition.schema, language)
    title = text_of(definition.title)
    told = text_of(definition.description)
    described = f"<p>Its author writes:</p><blockquote>{told}</blockquote>" if told else ""
    found = file.publication
    aborted = f"<h2>Aborted</h2><p>{text_of(file.cause)}</p>" if file.status == "aborted" else ""
    sheets = [sheet for sheet in _records(found) if sheet.name in texts]
    records = "".join(_first_lines(sheet, texts[sheet.name]) for sheet in sheets)
    records = f"<h2>Records</h2>{records}" if records else ""
    behind = records + _who(file) + _asked(definition, words)
    body = fragment(found, words, truth, before=aborted, after=behind) + _costs(cost)
    parts = [
        f"<h1>{title}</h1>",
        f'<p class="dim">{text_of(_in_short(file))}</p>',
        described,
        *_with_contents(body),
    ]
    return (
        f'<!doctype html>\n<html lang="{language or "en"}"><head><meta charset="utf-8">'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><title>{title}'
        f'</title><style>{STYLE}{PAGE}</style></head>\n<body class="mpc-rr"><main>\n'
        + "\n".join(filter(None, parts))
        + "\n</main></body></html>\n"
    )


def _in_short(file: ResultFile) -> str:
    """Which study this is, under which protocol, and of how many."""
    people = file.publication.participation
    counted = None if people is None else people.counted
    told = [f"study {file.study.name}", f"protocol {file.protocol.name}"]
    if people is not None and counted is not None:
        told.append(f"{counted:,} of {people.expected:,} respondents{_rate(people)}")
    if file.seed is not None:
        told.append("a simulation")
    return " · ".join(told)


def _rate(people: Participation) -> str:
    """How many of those expected that is."""
    if people.counted is None or people.expected <= 0:
        return ""
    return f" ({people.counted / people.expected:.0%})"


def _with_contents(body: str) -> tuple[str, str]:
    """A list of the sections of a long page, and the page with places to jump to."""
    heads = HEADING.findall(body)
    numbers = itertools.count(1)
    placed = HEADING.sub(lambda found: f'<h2 id="s{next(numbers)}">{found[1]}</h2>', body)
    if len(heads) < LONG:
        return "", placed
    links = "".join(f'<a href="#s{k}">{head}</a>' for k, head in enumerate(heads, start=1))
    return f'<nav aria-label="Contents">{links}</nav>', placed


def _first_lines(sheet: Sheet, text: str) -> str:
    """The first lines of a file of records without names; nothing if it cannot be read."""
    try:
        head, *rows = csv.reader(io.StringIO(text), strict=True)
    except (ValueError, csv.Error):
        return ""
    if PARTY in head or not rows or any(len(row) != len(head) for row in rows):
        return ""
    cut = len(head) > WIDEST_SHOWN
    shown = [[from_cell(cell) for cell in row[:WIDEST_SHOWN]] for row in rows[:SHOWN_OF_A_SHEET]]
    more = f", the first {WIDEST_SHOWN} of {len(head)} columns" if cut else ""
    told = text_of(f"{sheet.name}: {sheet.what} ({len(rows):,} rows{more})")
    first = rows_table(head[:WIDEST_SHOWN], shown)
    columns = [[from_cell(row[place]) for row in rows] for place in range(len(head))]
    spread = [
        (name, said)
        for name, column in zip(head, columns, strict=True)
        if name != GROUP and (said := _distribution(column))
    ]
    table = rows_table(("in these records", "values"), spread) if spread else ""
    return f"<p>{told}</p>{table}<details><summary>The first rows</summary>{first}</details>"


def _distribution(column: Sequence[str]) -> str:
    """How often each of few values is there; of many numbers, where they lie; else nothing."""
    counts = Counter(column)
    if len(counts) <= FEW_VALUES:
        return ", ".join(
            f"{value or 'no value'}: {times:,} ({times / len(column):.0%})"
            for value, times in sorted(counts.items(), key=lambda found: (-found[1], found[0]))
        )
    numbers = numbers_of([value for value in column if value])
    if numbers is None:
        return ""
    lowest, *middle, highest = np.quantile(numbers, (0, 0.25, 0.5, 0.75, 1)).tolist()
    low, median, high = middle
    return (
        f"{lowest:,.6g} to {highest:,.6g}; half of them from {low:,.6g} to {high:,.6g}, the median "
        f"is {median:,.6g}"
    )


def _who(file: ResultFile) -> str:
    people, rows = file.publication.participation, []
    if people is not None:
        rows.append(("parties expected", f"{people.expected:,}"))
        if people.present is not None:
            rows.append(("there when it began", f"{people.present:,}"))
        if people.counted is not None:
            rows.append(("in the result", f"{people.counted:,}{_rate(people)}"))
        rows += absences(people)
        if people.unconfirmed:
            rows.append(("did not confirm the result", ", ".join(people.unconfirmed)))
    who = "each party is a different person, admitted by the registrar"
    rows.append(("admission", "open to everyone" if file.admission == "open" else who))
    if file.seed is not None:
        rows.append(("seed", f"{file.seed}: a simulation, not a secret computation"))
    return "<h2>Who took part</h2>" + facts_table(rows)


def _asked(definition: Definition, words: Words) -> str:
    rows: list[tuple[str, str, str]] = []
    for a in definition.schema.attributes:
        answers = ", ".join(words.category(a.name, c) for c in a.categories) or a.answers
        counted = words.intervals(a.name)
        answers += f". Counted as {counted}" if counted else ""
        asked, *known_as = dict.fromkeys((a.asked(words.language), words.attribute(a.name), a.name))
        also = f" ({', '.join(known_as)})" if known_as else ""
        rows.append((asked + also, a.type, answers))
    for name, derived in (definition.derived or {}).items():
        known = words.attribute(derived.source)
        values = ", ".join(dict.fromkeys(derived.values.values()))
        rows.append((plain(name), f"not asked: computed from {known}", plain(values)))
    head = ("question", "type", "answers")
    return "<h2>What was asked</h2>" + rows_table(head, rows)


def _costs(cost: Cost | None) -> str:
    head = "<h2>Network traffic</h2>"
    if cost is None:
        return f"{head}<p>This folder does not say: only a coordinator's has {COST}.</p>"
    rows = [
        (r.doing or r.step, f"{r.messages_up + r.messages_down:,}",
         size(r.bytes_up + r.bytes_down), f"{r.seconds:.2f}")
        for r in cost.rounds
    ]  # fmt: skip
    messages = cost.total.messages_up + cost.total.messages_down
    carried = cost.total.bytes_up + cost.total.bytes_down
    return f"{head}<p>{messages:,} messages, {size(carried)}.</p>" + rows_table(
        ("round", "messages", "sent", "seconds"), rows, (False, True, True, True)
    )
