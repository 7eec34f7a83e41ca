"""Protocols side by side: on a terminal, and as one page with charts."""

from collections.abc import Iterator, Sequence

from rich import box
from rich.console import Console
from rich.table import Table as Grid

from mpc_rr.comparing.questions import (
    L1,
    PAIRS,
    QUERIES,
    RELATIVE,
    VALUES,
    Key,
    queries_over,
    tables_of,
)
from mpc_rr.comparing.side_by_side import FEWEST_TO_RANK, Measured, SideBySide
from mpc_rr.errors import all_quoted, listing, plain, quoted
from mpc_rr.reproduce.queries import COVERAGES
from mpc_rr.reproduce.result import Lines
from mpc_rr.show.charts import intervals
from mpc_rr.show.fragment import STYLE, rows_table, text_of
from mpc_rr.show.report import PAGE
from mpc_rr.show.terminal import say
from mpc_rr.show.words import CANNOT_BE_TOLD

SIGMA = queries_over(0.1)
MAIN: tuple[Key, ...] = (
    (tables_of(PAIRS), L1), (tables_of(3), L1), (tables_of(4), L1), (SIGMA, RELATIVE),
    (VALUES, RELATIVE),
)  # fmt: skip
HEADS = {
    tables_of(PAIRS): "tables\nof 2", tables_of(3): "of 3", tables_of(4): "of 4",
    SIGMA: "queries", VALUES: "cells",
}  # fmt: skip
WHAT_ERRORS_ARE = (
    "Tables: the mean L1 distance from the true ones (0 is exact, 2 the worst). Queries: how many "
    "have one of a random tenth of the combinations of two answers, median relative error (000 "
    "§6.5). Cells: the median relative error of the cells of tables of two (003 §6.4). ± is the "
    "standard error over the runs."
)
ALIKE = (
    "* one of these is the best of its column, but for one column in twenty (paired t tests of all "
    "against the one that erred least); which of them, the runs cannot tell."
)
UNRANKED = (
    f"Fewer than {FEWEST_TO_RANK} runs cannot rank the methods: none is marked. Take --runs 10."
)
MADE = (
    "A name alone is what a study publishes by default. multiplied: shares of what was randomized "
    "together, multiplied as if independent. weighted: the reports by their weights (RR-"
    "Adjustment). uncorrected: the reports as they are."
)
OF_VIEWS = (
    "of views, tables that nobody reported together are those of the synthetic records: counted in "
    "the population that fits all reports."
)
DRAWN = (
    "independent, uncorrected", "independent, multiplied", "independent, weighted", "independent",
    "clusters given, multiplied", "clusters given, weighted", "clusters given", "views",
    "margins alone",
)  # fmt: skip
"""The lines of the chart over σ: more could not be told apart."""
ROOM = 185
"""For the names of methods beside a chart."""
NARROW = 26


def show_side_by_side(console: Console, found: SideBySide) -> None:
    """Errors of all methods at each ε, of the user's conditions, and all that must be known."""
    for epsilon in found.epsilons:
        console.print(_errors(found, epsilon))
        for text, met in found.conditions.items():
            console.print(_condition(found, epsilon, text, met))
    for sentence in sentences(found):
        say(console, sentence)
    for head, sentence in notes(found):
        say(console, sentence, head)


def _grid(title: str) -> Grid:
    return Grid(title=plain(title), title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))


def _title(found: SideBySide, epsilon: float) -> str:
    return f"{found.people:,} people, ε = {epsilon:g} for a whole record, {_runs(found)}"


def _runs(found: SideBySide) -> str:
    return "one run" if found.runs == 1 else f"{found.runs} runs"


def _errors(found: SideBySide, epsilon: float) -> Grid:
    table = _grid(f"Errors: {_title(found, epsilon)}")
    table.add_column("method", max_width=NARROW)
    keys = [key for key in MAIN if key in found.keys]
    for question, _ in keys:
        table.add_column(HEADS[question], justify="right", no_wrap=True)
    for row in _rows(found, epsilon, keys):
        table.add_row(*row)
    return table


def _rows(found: SideBySide, epsilon: float, keys: Sequence[Key]) -> Iterator[list[str]]:
    """A row for each method, by the error of the tables of pairs."""
    by_key = {key: {m.method: m for m in found.order(*key, epsilon)} for key in keys}
    alike = {key: found.cannot_be_told(*key, epsilon) for key in keys}
    for name in found.ranking(epsilon):
        cells = (_cell(by_key[key].get(name), name in alike[key]) for key in keys)
        yield [name, *cells]


def _cell(measured: Measured | None, alike: bool) -> str:
    if measured is None or measured.value is None:
        return CANNOT_BE_TOLD
    error, star = measured.standard_error, "*" if alike else ""
    spread = "" if error is None else f"±{_figure(error)}"
    return f"{star}{_figure(measured.value)}{spread}"


def _figure(value: float) -> str:
    """Short enough for a column."""
    if value >= 99.5:
        return f"{value:,.0f}"
    shown = f"{value:.2f}" if value >= 0.0995 else f"{value:.3f}"
    return shown.removeprefix("0")


def _condition(found: SideBySide, epsilon: float, text: str, met: int) -> Grid:
    title = f"{text}: {met:,} of {found.people:,} people, ε = {epsilon:g}"
    table = _grid(title)
    table.add_column("method", max_width=NARROW)
    table.add_column("people off", justify="right", no_wrap=True)
    table.add_column("relative", justify="right", no_wrap=True)
    for row in _of_condition(found, epsilon, text):
        table.add_row(*row)
    return table


def _of_condition(found: SideBySide, epsilon: float, text: str) -> Iterator[list[str]]:
    absolute, relative = ((f"where {text}", kind) for kind in ("absolute", RELATIVE))
    alike = found.cannot_be_told(*absolute, epsilon)
    shares = {m.method: m for m in found.order(*relative, epsilon)}
    for m in found.order(*absolute, epsilon):
        yield [m.method, _cell(m, m.method in alike), _cell(shares.get(m.method), alike=False)]


# ── What must be known ─────────────────────────────────────────────────────────────────────────


def sentences(found: SideBySide) -> Iterator[str]:
    """How to read it, on whom ε rests, and what was compared."""
    yield WHAT_ERRORS_ARE
    yield _which_is_best(found)
    yield MADE
    yield from _trust(found)
    yield _sampled(found)


def _which_is_best(found: SideBySide) -> str:
    return UNRANKED if found.runs < FEWEST_TO_RANK else ALIKE


def _trust(found: SideBySide) -> Iterator[str]:
    """Of each ε, who must be trusted."""
    local = [m.name for m in found.methods if not m.central and "," not in m.name]
    if local:
        yield (
            f"Nobody must be trusted with {listing(dict.fromkeys(local), len(local))}: ε is of the "
            "whole report, no matter who sees it."
        )
    for m in found.methods:
        if m.central:
            yield (
                f"{m.name}, ε = {m.epsilon:g}: {m.trusted}. Its ε is central: of what is "
                f"published, not of what a party sends (δ = {m.delta:.1g})."
            )


def _sampled(found: SideBySide) -> str:
    """Which people, tables and queries."""
    people = f"{found.people:,} of the file's {found.in_file:,} records"
    if found.people > found.in_file:
        people = f"{found.people:,} people drawn from the file's {found.in_file:,}, with repetition"
    elif found.people == found.in_file:
        people = f"all {found.in_file:,} records of the file"
    tables = "; ".join(
        f"{len(own.asked):,} of {own.of:,} tables of {width}"
        + (" (none with more cells than people)" if own.too_large else "")
        for width, own in found.widths.items()
    )
    return (
        f"Compared: {people}; {len(found.names)} attributes; {tables}; {QUERIES} random queries "
        f"for each σ in each run, the same for all methods. Seed {found.seed}."
    )


def notes(found: SideBySide) -> Iterator[tuple[str, str]]:
    """What was left out, found in the file, or not to be had."""
    if found.left_out:
        whys = "; ".join(f"{quoted(name)}: {why}" for name, why in found.left_out.items())
        yield "Left out", f"{whys}."
    if found.clusters and any(m.name.startswith("clusters given") for m in found.methods):
        together = "; ".join(all_quoted(cluster) for cluster in found.clusters)
        told = f"clusters given are those of this file itself ({together}), as if known from before"
        yield "Note", f"{told}; their ε does not pay for finding them."
    views = sorted({m.name for m in found.methods if m.name.startswith("views")})
    if views and any(width > PAIRS for width in found.widths):
        yield "Note", OF_VIEWS
    for worth in found.weights:
        ended = f"converged in {worth.converged} of {worth.runs} runs"
        missed = f"a margin is missed by {worth.missed:.2g} at most"
        left = f"{found.people:,} weighted reports are worth about {worth.effective:,.0f}"
        yield "Weights", f"{worth.method}, ε = {worth.epsilon:g}: {ended} ({missed}); {left}."
    for name, why, where in _absent(found):
        yield "Not there", f"{name} ({where}): {why}."


def _absent(found: SideBySide) -> Iterator[tuple[str, str, str]]:
    """Methods and questions that are missing, each reason once."""
    grouped: dict[tuple[str, str], list[str]] = {}
    for absent in found.not_run:
        at = f"ε = {absent.epsilon:g}"
        where = at if absent.question is None else absent.question
        places = grouped.setdefault((absent.method, absent.why), [])
        if where not in places:
            places.append(where)
    for (name, why), places in grouped.items():
        yield name, why, "; ".join(places)


# ── The page ───────────────────────────────────────────────────────────────────────────────────

COLOURS = """
.mpc-rr .charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(22rem, 1fr));
  gap: 1rem; } .mpc-rr figure { margin: 0; } .mpc-rr figcaption { font-weight: 600; }
"""


def side_by_side_page(found: SideBySide, source: str, picture: str | None = None) -> str:
    """One page: charts and tables for each ε, and all that must be known.

    ``picture``: the name of a chart that lies beside it.
    """
    title = f"Protocols side by side: {source}"
    parts = [
        f"<h1>{text_of(title)}</h1>",
        f'<p class="dim">{text_of(_sampled(found))}</p>',
        f"<p>{text_of(WHAT_ERRORS_ARE)} {text_of(MADE)}</p><p>{text_of(_which_is_best(found))}</p>",
        *(_at(found, epsilon) for epsilon in found.epsilons),
        _over_coverages(found, picture),
        "<h2>Who must be trusted</h2>",
        *(f"<p>{text_of(sentence)}</p>" for sentence in _trust(found)),
        "<h2>What must be known</h2>",
        *(f'<p class="note"><b>{head}:</b> {text_of(text)}</p>' for head, text in notes(found)),
    ]
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{text_of(title)}</title><style>{STYLE}{PAGE}{COLOURS}</style></head>\n"
        '<body class="mpc-rr"><main>\n' + "\n".join(parts) + "\n</main></body></html>\n"
    )


def _at(found: SideBySide, epsilon: float) -> str:
    """Charts and tables of one ε."""
    keys = [key for key in MAIN if key in found.keys]
    head = ("method", *(HEADS[question].replace("\n", " ") for question, _ in keys))
    numeric = (False, *(True,) * len(keys))
    parts = [
        f"<h2>{text_of(_title(found, epsilon))}</h2>",
        rows_table(head, list(_rows(found, epsilon, keys)), numeric),
        '<div class="charts">',
        *(_chart(found, epsilon, key, _of_what(key)) for key in keys),
        "</div>",
    ]
    for text, met in found.conditions.items():
        asked = f"{text}: {met:,} of {found.people:,} people"
        key = (f"where {text}", "absolute")
        parts += [
            f"<h3>{text_of(asked)}</h3>",
            rows_table(("method", "people off", "relative"),
                       list(_of_condition(found, epsilon, text)), (False, True, True)),
            _chart(found, epsilon, key, "absolute error, in people"),
        ]  # fmt: skip
    return "\n".join(parts)


def _of_what(key: Key) -> str:
    kind = "mean L1 error" if key[1] == L1 else "median relative error"
    return f"{key[0]}: {kind}"


def _chart(found: SideBySide, epsilon: float, key: Key, caption: str) -> str:
    """Each method's error with two standard errors on either side."""
    order = found.order(*key, epsilon)
    if not order:
        return ""
    values = [m.value or 0.0 for m in order]
    errors = [2 * (m.standard_error or 0.0) for m in order]
    limits = [(max(v - e, 0.0), v + e) for v, e in zip(values, errors, strict=True)]
    largest = max(high for _, high in limits) or 1.0
    drawn = intervals(
        f"{caption}, ε = {epsilon:g}", [m.method for m in order], values, limits, largest,
        kind="number", room=ROOM,
    )  # fmt: skip
    return f"<figure><figcaption>{text_of(caption)}</figcaption>{drawn}</figure>"


def _over_coverages(found: SideBySide, picture: str | None) -> str:
    """Median relative and absolute errors of pair queries over σ, as 000 has them."""
    parts = ["<h2>Pair queries over a share σ of the cells (000 §6.5)</h2>"]
    if picture is not None:
        parts.append(
            f'<p><img src="{picture}" alt="median relative error over σ" width="100%"></p>'
        )
    head = ("method", *(f"σ = {coverage:g}" for coverage in COVERAGES))
    numeric = (False, *(True,) * len(COVERAGES))
    for epsilon in found.epsilons:
        for kind in (RELATIVE, "absolute"):
            keys = [(queries_over(coverage), kind) for coverage in COVERAGES]
            told = "in people" if kind == "absolute" else "relative"
            parts.append(f"<h3>ε = {epsilon:g}: median error, {told}</h3>")
            parts.append(rows_table(head, list(_rows(found, epsilon, keys)), numeric))
    return "\n".join(parts)


def lines_over_coverages(found: SideBySide) -> Lines:
    """The chart of 000's Figures 2 and 3, of any data: their methods, views, and margins alone."""
    panels: dict[str, dict[str, list[tuple[float, float]]]] = {}
    for epsilon in found.epsilons:
        own = panels.setdefault(f"ε = {epsilon:g}", {})
        for coverage in COVERAGES:
            by_name = {m.method: m for m in found.order(queries_over(coverage), RELATIVE, epsilon)}
            for name in DRAWN:
                if name in by_name:
                    own.setdefault(name, []).append((coverage, by_name[name].value or 0.0))
    return Lines("coverage σ", "median relative error", panels)
