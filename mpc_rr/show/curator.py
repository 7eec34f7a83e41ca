"""What a curator sees of a file that was randomized, and anybody of what it tells."""

import itertools
from collections.abc import Iterator, Sequence

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table as Grid

from mpc_rr.curator.codebook import Codebook
from mpc_rr.curator.comparison import Comparison
from mpc_rr.curator.estimates import RandomizedFile
from mpc_rr.errors import all_quoted, plain
from mpc_rr.estimation.moments import Moment
from mpc_rr.privacy.sentences import odds
from mpc_rr.publication.parts import Table
from mpc_rr.schema import Schema
from mpc_rr.show.terminal import say
from mpc_rr.show.words import CANNOT_BE_TOLD, Words

SPREAD = "bits, or deviation"
MOST_PAIRS = 20
"""So many pairs are shown on a terminal."""
FROM_RECORDS = (
    "the categories are those of the records: the file tells which there are, also of one person "
    "alone. Give them in a plan (--plan, docs/randomize.md), from what is known of the questions "
    "anyhow."
)
OWN_COVARIANCE = (
    "Noise that is correlated adds its own covariance to that of its columns: of these, more than "
    "100 % is in the file, and correlations stay."
)
FOR_YOU = (
    "what stands beside the truth here is for you: no ε covers it, and it is not in the codebook. "
    "The ε are of one record, and of one randomized file: where a person has several records, or "
    "the same records are randomized again, they add up."
)


def show_randomized(console: Console, book: Codebook, found: Comparison) -> None:
    """How each column was randomized, and what was kept and lost beside the truth."""
    columns = _grid("What became of each column", "column", "how", "ε", "β", "as before", SPREAD)
    for own in found.columns:
        spread = own.entropy or own.deviation or (0.0, 0.0)
        columns.add_row(
            escape(plain(own.name)), own.how, _epsilon(own.epsilon), _percent(own.beta),
            _percent(own.unchanged), f"{spread[0]:.3g} → {spread[1]:.3g}",
        )  # fmt: skip
    console.print(columns)
    if found.pairs:
        pairs = _grid(
            "Correlations: true, in the file as it is, and estimated from it", "pair",
            "true", "in the file", "estimated", "covariance kept\non average", "kept\nhere",
        )  # fmt: skip
        for pair in found.pairs[:MOST_PAIRS]:
            true, after, estimated = pair.correlation
            pairs.add_row(
                escape(plain(f"{pair.first} & {pair.second}")), _degree(true), _degree(after),
                _degree(estimated, pair.correlation_error), _percent(pair.kept_on_average),
                _percent(pair.kept_here),
            )  # fmt: skip
        console.print(pairs)
        if len(found.pairs) > MOST_PAIRS:
            say(console, f"{len(found.pairs) - MOST_PAIRS} more pairs: --json has all")
    for head, sentence in _sentences(book, found):
        say(console, sentence, head)


def _sentences(book: Codebook, found: Comparison) -> Iterator[tuple[str, str]]:
    """What it means, each with its head."""
    yield "", _whole(book)
    for column in book.columns:
        if column.alone is not None:
            name = column.attribute.name
            left = f"noise of standard deviation {column.alone:.4g} only"
            yield "", f"{name!r}: {left}, to anyone who knows the other numbers of its group."
    if book.groups:
        yield "", OWN_COVARIANCE
    if found.linked is not None:
        near, chance = _percent(found.linked), _percent(1 / found.rows)
        link = f"By its numbers, {near} of the records are nearest to their own original"
        yield "", f"{link} ({chance} would be by chance)."
    bare = [column.attribute.name for column in book.columns if not column.protected]
    if bare:
        yield "Warning", f"not randomized, and not protected at all: {all_quoted(bare)}."
    if book.categories == "the records":
        yield "Warning", FROM_RECORDS
    if book.left_out:
        yield "Note", f"left out: {all_quoted(book.left_out)}."
    yield "Note", FOR_YOU


def _whole(book: Codebook) -> str:
    """The ε and β of a whole record."""
    beta = "" if book.beta is None else f" β of all categories together: {_percent(book.beta)}."
    if book.categories == "the records":
        return f"No ε bounds what the file tells, because its categories are the records'.{beta}"
    if book.epsilon is None:
        without = [column.attribute.name for column in book.columns if column.epsilon is None]
        return f"No ε bounds what a whole record tells, because of {all_quoted(without)}.{beta}"
    failing = f" (δ = {book.delta:.2g})" if book.delta else ""
    one = max(column.epsilon or 0.0 for column in book.columns)
    said = odds(book.epsilon, one, source="the file")
    return f"ε = {book.epsilon:.3g}{failing} for a whole record. {said}{beta}"


def _grid(title: str, first: str, *rest: str) -> Grid:
    grid = Grid(title=title, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    grid.add_column(first)
    for head in rest:
        grid.add_column(head, justify="left" if head == "how" else "right")
    return grid


def _epsilon(epsilon: float | None) -> str:
    return "none" if epsilon is None else f"{epsilon:.3g}"


def _percent(share: float | None) -> str:
    return CANNOT_BE_TOLD if share is None else f"{100 * share:.3g} %"


def _degree(value: float | None, error: float | None = None) -> str:
    if value is None:
        return CANNOT_BE_TOLD
    within = min(max(value, -1.0), 1.0)
    shown = f"{within:.2f}".replace("-", "−")
    return shown if error is None else f"{shown} ± {1.96 * error:.2f}"


# ── What a randomized file tells ───────────────────────────────────────────────────────────────


def show_estimates(console: Console, found: RandomizedFile, tables: Sequence[Table]) -> None:
    """Shares, means, correlations, and the tables that were asked for."""
    show_tables(console, found, [*(found.table(a.name) for a in found.categories), *tables])
    if found.ordered:
        grid = _grid("Means, and standard deviations", "column", "mean", "standard deviation")
        for name in found.ordered:
            grid.add_row(
                escape(plain(name)), _moment(found.mean(name)), _root(found.variance(name))
            )
        console.print(grid)
        if set(found.ordered) - {a.name for a in found.codebook.schema if a.numeric}:
            say(console, "Of categories with an order these are their ranks, from 0.")
    if found.pairs:
        grid = _grid("Covariances and correlations", "pair", "covariance", "correlation")
        for first, second in found.pairs:
            both = found.together(first, second)
            degree = _degree(both.correlation.value, both.correlation.standard_error)
            grid.add_row(escape(plain(f"{first} & {second}")), _moment(both.covariance), degree)
        console.print(grid)
    say(console, f"From {found.n:,} randomized records; ± is 95 %, for the population.")


def show_tables(console: Console, found: RandomizedFile, tables: Sequence[Table]) -> None:
    """Tables alone."""
    words = Words(Schema(found.codebook.schema)) if len(found.codebook.schema) > 1 else None
    for table in tables:
        console.print(_shares(table, words))


def _shares(table: Table, words: Words | None) -> Grid:
    """A row for each cell: its share, limits, and the unbiased estimate."""
    names = [axis.attribute for axis in table.axes]
    title = f"Shares of {' by '.join(names)}" if words is None else words.title(table)
    grid = _grid(
        escape(plain(title)), "answer", "share", "95 % limits", "unbiased", "standard error"
    )
    for place, cell in enumerate(itertools.product(*(axis.categories for axis in table.axes))):
        layers = (table.values, table.low, table.high, table.unbiased, table.standard_errors)
        share, low, high, unbiased, error = (
            None if layer is None else layer[place] for layer in layers
        )
        grid.add_row(
            escape(plain(" & ".join(cell))), _percent(share), f"{_percent(low)} … {_percent(high)}",
            _percent(unbiased), _percent(error),
        )  # fmt: skip
    return grid


def _moment(found: Moment) -> str:
    if found.value is None or found.standard_error is None:
        return CANNOT_BE_TOLD
    return f"{found.value:.5g} ± {1.96 * found.standard_error:.2g}"


def _root(found: Moment) -> str:
    """The root of a variance; nothing where randomization leaves it open."""
    if found.limits is None or found.value is None or found.value <= 0:
        return CANNOT_BE_TOLD
    low, high = (max(end, 0.0) ** 0.5 for end in found.limits)
    return f"{found.value**0.5:.4g} ({low:.4g} to {high:.4g})"
