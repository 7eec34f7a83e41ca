"""Answers to a condition: one number, with its limits, where it comes from and why.

What a published table tells is answered from this table, so that ``mpc-rr query``, tables and
report agree. Limits of single cells are the published ones; those of several cells together are
worked out from what the table was made from, and hold the number that is given.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from mpc_rr.errors import InputError, quoted
from mpc_rr.estimation.conditions import Cells, Truths
from mpc_rr.estimation.estimates import Asked, QueryAnswer
from mpc_rr.estimation.hidden import HiddenCounts
from mpc_rr.estimation.pairs import PairLayout
from mpc_rr.estimation.suppression import HIDDEN
from mpc_rr.estimation.uncertainty import ExactCounts, NoisyCounts
from mpc_rr.publication.counts import PairCounts
from mpc_rr.publication.parts import LEVEL, Table
from mpc_rr.schema import Schema

Source = Literal[
    "published cell",
    "published table",
    "reports",
    "exact counts",
    "noisy counts",
    "bounds",
    "released records",
]
"""A published cell; several of one table, added up; the randomized reports themselves; exact
counts, added up; counts with noise, put right; limits between which hidden counts are for sure;
records that are not the people's."""
WORTH_SAYING = 1e-4


@dataclass(frozen=True)
class Answer:
    """How many meet a condition."""

    condition: str
    """As it was understood."""
    n: int | None
    """Of how many respondents."""
    count: float | None
    """Of the respondents; None if only limits are known, or nothing."""
    share: float | None
    interval: tuple[float, float] | None
    """Of the count: with this confidence, or for sure (``certain``)."""
    population: tuple[float, float] | None
    """Of the share, in the population that the respondents were drawn from."""
    standard_error: float | None
    """Of the share in the population."""
    level: float
    source: Source
    certain: bool
    how: str
    """Where the number comes from, and why, in words."""
    released: int | None = None
    """How many of the released records meet it, where there are any."""
    records: int | None = None
    """Of how many."""


def table_holding(tables: Sequence[Table], cells: Cells, schema: Schema) -> Table | None:
    """The smallest published table that tells these attributes, if there is one."""
    names = [schema.names[a] for a in cells.attributes]
    found = [table for table in tables if _holds(table, names, schema)]
    return min(found, key=lambda table: (len(table.values), -(table.n or 0)), default=None)


def _holds(table: Table, names: Sequence[str], schema: Schema) -> bool:
    axes = {axis.attribute: axis.categories for axis in table.axes}
    return all(axes.get(name) == schema.attribute(name).categories for name in names)


def wanted_cells(table: Table, cells: Cells, schema: Schema) -> Truths:
    """Which cells of a table meet a condition."""
    names = [schema.names[a] for a in cells.attributes]
    axes = [axis.attribute for axis in table.axes]
    own = cells.table().transpose([names.index(name) for name in axes if name in names])
    shape = [size if name in names else 1 for name, size in zip(axes, table.shape, strict=True)]
    return np.broadcast_to(own.reshape(shape), table.shape)


def from_reports(
    words: str,
    found: QueryAnswer,
    n: int,
    attributes: int,
    level: float,
    *,
    earlier: bool = False,
) -> Answer:
    """From the randomized reports, where no table is published.

    ``earlier``: without bias from these alone, as up to rules 3.
    """
    what = "this attribute" if attributes == 1 else f"these {attributes} attributes"
    how = (
        f"Estimated without bias from the reports on {what}: the folder has no table of them. "
        "Published tables are drawn towards a model of all answers, so sums of their cells may "
        "differ from this."
        if earlier
        else "Counted in the weighted population that all published tables are counted in; the "
        f"limits follow from the reports on {what} alone."
    )
    return Answer(
        words, n, found.count, found.share, found.interval, found.population,
        found.standard_error, level, "reports", certain=False,
        how=how,
    )  # fmt: skip


# ── From tables of shares ──────────────────────────────────────────────────────────────────────


def from_shares(
    words: str, tables: Sequence[Table], cells: Cells, schema: Schema, n: int | None, level: float,
    limits: Callable[[Table, Truths], QueryAnswer | None],
) -> Answer | None:  # fmt: skip
    """The shares of the smallest table that holds the attributes, added up.

    ``limits`` works out those of some of its cells together, if it can.
    """
    table = table_holding(tables, cells, schema)
    if table is None:
        return None
    wanted = wanted_cells(table, cells, schema)
    if table.kind == "count":
        return _counted(words, table, wanted, n, level, limits)
    share, alone = _added(table, wanted), wanted.sum() == 1
    found = _published(table, int(wanted.argmax()), n) if alone and level == LEVEL else None
    how = _how_summed(table, alone=bool(alone), published=found is not None)
    others = [
        _added(other, wanted_cells(other, cells, schema))
        for other in tables
        if other is not table and len(table.axes) > len(cells.attributes)
        and _holds(other, [schema.names[a] for a in cells.attributes], schema)
    ]  # fmt: skip
    if others and max(abs(other - share) for other in others) > WORTH_SAYING:
        how += (
            " It is the smallest table that tells this; the others, each estimated by itself, "
            f"give {min(others):.1%} to {max(others):.1%}."
        )
    found = limits(table, wanted) if found is None else found
    answer = Answer(
        words, n, None if n is None else n * share, share, None, None, None, level,
        "published cell" if alone else "published table", certain=False, how=how,
    )  # fmt: skip
    if found is None:
        why = "This protocol publishes limits of single cells only, so there are none for a sum."
        return replace(answer, how=f"{how} {why}")
    return _around(answer, found)


def _counted(
    words: str, table: Table, wanted: Truths, n: int | None, level: float,
    limits: Callable[[Table, Truths], QueryAnswer | None],
) -> Answer:  # fmt: skip
    """The counts of a table, exact or with noise in them."""
    met, n = _added(table, wanted), table.n if n is None else n
    name = quoted(table.name)
    found, uncertain = None, table.standard_errors is not None or table.low is not None
    if uncertain:
        found = limits(table, wanted)
    if not n or (found is None and not 0 <= met <= n):
        raise InputError(f"this cannot be told: table {name} does not count each respondent once")
    if not uncertain:
        told = f"Counted in table {name}."
        return between(words, (round(met), round(met)), n, level, told, told)
    count = min(max(met, 0.0), n)
    answer = Answer(
        words, n, count, count / n, None, None, None, level, "noisy counts", certain=False,
        how=f"The counts of table {name}, added up. They are uncertain, and their protocol gives "
        "no limits of sums.",
    )  # fmt: skip
    own = _limits_of_count(table, wanted) if level == LEVEL else None
    if own is not None:
        how = f"This is the published count of table {name}, with its published limits."
        answer = replace(answer, how=how)
        answer = answer if found is None else _around(answer, found)
        return replace(answer, interval=(min(own[0], count), max(own[1], count)))
    if found is None:
        return answer
    how = (
        f"The counts of table {name} have noise in them, and add up to {met:,.0f} here; how many "
        "took part is known, so the noise in the sum of all is taken off, and no number below 0 is "
        "given."
    )
    return replace(
        answer, count=found.count, share=found.share, interval=found.interval,
        population=found.population, standard_error=found.standard_error, how=how,
    )  # fmt: skip


def _limits_of_count(table: Table, wanted: Truths) -> tuple[float, float] | None:
    """The published limits of a single cell, if there are any."""
    cells = np.flatnonzero(wanted)
    if cells.size != 1 or table.speaks_of != "respondents" or not (table.low and table.high):
        return None
    low, high = table.low[cells[0]], table.high[cells[0]]
    return None if low is None or high is None else (low, high)


def _around(answer: Answer, found: QueryAnswer) -> Answer:
    """With these limits, wide enough to hold the number that is given."""
    (low, high), (least, most) = found.interval, found.population
    share, count = answer.share or 0.0, answer.count
    return replace(
        answer,
        interval=None if count is None else (min(low, count), max(high, count)),
        population=(min(least, share), max(most, share)),
        standard_error=found.standard_error,
    )


def _added(table: Table, wanted: Truths) -> float:
    values = [table.values[cell] for cell in np.flatnonzero(wanted)]
    if None in values:
        raise InputError(
            f"this cannot be told: some of its cells are hidden in table {quoted(table.name)}"
        )
    found = math.fsum(value for value in values if value is not None)
    return min(max(found, 0.0), 1.0) if table.kind == "share" else found


def _published(table: Table, cell: int, n: int | None) -> QueryAnswer | None:
    """The published limits of a cell, if there are all of them."""
    layers = (
        table.standard_errors, table.low, table.high, table.respondents_low, table.respondents_high,
    )  # fmt: skip
    found = [layer[cell] for layer in layers if layer is not None]
    numbers = [float(value) for value in found if value is not None]
    if len(numbers) < len(layers) or n is None:
        return None
    error, least, most, low, high = numbers
    return QueryAnswer(math.nan, math.nan, error, (n * low, n * high), (least, most))


def _how_summed(table: Table, *, alone: bool, published: bool) -> str:
    name = quoted(table.name)
    if published:
        return f"This is the published share of table {name}, with its published limits."
    if alone:
        return f"This is the published share of table {name}; its limits are worked out again."
    return f"The published shares of table {name}, added up; the limits are those of the sum."


# ── From tables of counts ──────────────────────────────────────────────────────────────────────


def from_counts(
    words: str,
    tables: Sequence[Table],
    cells: Cells,
    schema: Schema,
    n: int,
    level: float,
    tails: float = NoisyCounts.tails,
) -> Answer | None:
    """The counts of `exact_pairs`: exact, between limits where some are hidden, or with noise.

    ``tails``: the excess of the noise.
    """
    table = table_holding(tables, cells, schema)
    if table is None:
        return None
    wanted, counts = wanted_cells(table, cells, schema), pair_counts(tables, schema, n, tails)
    number = [table.name for table in tables].index(table.name)
    if counts.suppressed_below:
        bounds = HiddenCounts(PairLayout(schema.sizes), counts.tables, n).count(number, wanted)
        told = f"Counted in table {quoted(table.name)}"
        why = (
            ", of which some counts are hidden. The limits follow from the rows, columns and "
            "totals of all published tables (linear programming); taken together, the tables of "
            "three attributes or more may leave less room."
        )
        return between(words, bounds, n, level, f"{told}.", told + why)
    told = f"Counted in table {quoted(table.name)}, whose counts are exact."
    if not counts.noise:
        met = int(counts.tables[number][wanted].sum())
        return between(words, (met, met), n, level, told, told)
    estimate = counts.estimate_of(PairLayout(schema.sizes).pairs[number])
    assert estimate is not None
    found = Asked.of(*estimate, wanted).answer(level)
    return Answer(
        words, n, found.count, found.share, found.interval, found.population,
        found.standard_error, level, "noisy counts", certain=False,
        how=f"From table {quoted(table.name)}, whose counts have noise (standard deviation "
        f"{counts.noise:.1f}). They add up to {_added(table, wanted):,.0f} here; how many took "
        "part is known, so the noise in the sum of all is taken off, and no number below 0 is "
        "given.",
    )  # fmt: skip


def pair_counts(tables: Sequence[Table], schema: Schema, n: int, tails: float) -> PairCounts:
    """The counts of all pairs, as they were before they were published."""
    noise = tables[0].standard_errors
    return PairCounts(
        n,
        schema,
        [
            np.array([HIDDEN if v is None else v for v in table.values]).reshape(table.shape)
            for table in tables
        ],
        noise=0.0 if noise is None else float(noise[0] or 0.0),
        tails=tails,
        suppressed_below=int(any(None in table.values for table in tables)),
    )


def between(
    words: str, bounds: tuple[int, int], n: int, level: float, told: str, why: str
) -> Answer:
    """A count that is known, or between which limits it is for sure, and why no more is known."""
    low, high = bounds
    ends = [
        Asked.of(np.array([end, n - end]) / n, ExactCounts(n), np.array([True, False]))
        for end in bounds
    ]
    least, most = (end.answer(level).population for end in ends)
    same = low == high
    return Answer(
        words, n, float(low) if same else None, low / n if same else None, (low, high),
        (least[0], most[1]), ends[0].standard_error if same else None, level,
        "exact counts" if same else "bounds", certain=True, how=told if same else why,
    )  # fmt: skip
