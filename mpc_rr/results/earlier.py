"""What result folders of earlier rules published, worked out from what is published now.

Up to rules 2 dependences had no limits: they were those of the published tables, as if these were
true. Limits of shares were by the normal approximation, and errors of blocks vanished where nobody
answered. What has not changed since is compared as strictly as ever.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np

from mpc_rr.estimation.dependence import Dependence, cramers_v, dependence
from mpc_rr.estimation.distribution import Estimate
from mpc_rr.estimation.matrix import Array
from mpc_rr.estimation.pairs import Counts, PairLayout
from mpc_rr.estimation.strength import MOST_CELLS
from mpc_rr.estimation.suppression import HIDDEN, filled
from mpc_rr.estimation.tables import shrunk_table
from mpc_rr.publication.crosstabs import DEPENDENCE
from mpc_rr.publication.nonresponse import NO_ANSWER
from mpc_rr.publication.parts import Listing, Publication, Table
from mpc_rr.publication.sheets import csv_text
from mpc_rr.publication.whole import DETAILS, RESULTS
from mpc_rr.schema import Schema

LIMITS = 3
"""Since these rules dependences have limits."""
RULES_WITH_WIRE = {1: 0, 2: 3}
"""The rules with which each version of the wire began: no run of it was made by older ones."""
DEPENDENCE_SHEET = "dependence.csv"
MEASURES = {"cramers_v": "Cramér's V", "abs_pearson_r": "|Pearson r|"}
OTHERWISE = frozenset({"low", "high", "respondents_low", "respondents_high", "main"})
"""Layers of a table that were worked out otherwise; which one was thought most worth showing."""
TAKEN_TOGETHER = "taken_together"
NOT_YET = frozenset({TAKEN_TOGETHER})
"""Listings that are there since they have."""
AS_IN_TABLES = 6
"""Since these rules item non-response is that of the published tables, computed correlations are
told as published ones are, and dependences of large tables are not told."""
NO_GAPS = "without estimates of how many gave no answer, which are those of the tables now"
NO_CORRELATIONS = "without numbers of computed correlations, which are told by another rule now"
NO_LARGE = f"without dependences in tables of more than {MOST_CELLS:,} cells, not told now"
OF_A_RESULT = frozenset({"computed", "people"})
"""Columns of what was computed that hold by any rule."""
OF_A_PAIR = ("attribute_1", "attribute_2", "measure")
OTHER_ERRORS = "largest_error"
"""The column of a listing of blocks that was."""


def dependences(found: Publication, schema: Schema) -> dict[tuple[str, str], Dependence]:
    """The dependence of each pair, as if the published table were true."""
    if found.listing(DEPENDENCE) is None:
        return {}
    tables = [table for table in found.tables if len(table.axes) == 2]
    ordinal = {a.name: a.type == "ordinal" for a in schema.attributes}
    shares = _shares(tables, schema)
    result = {}
    for table, values in zip(tables, shares, strict=True):
        first, second = (axis.attribute for axis in table.axes)
        if table.reported is not None:
            degree = cramers_v(values)  # two ordered attributes were not told apart from others
            result[first, second] = replace(degree, p_value=None)
            continue
        counts = values if table.kind == "count" else values * (table.n or 1)
        degree = dependence(counts, both_ordinal=ordinal[first] and ordinal[second])
        result[first, second] = degree if _is_exact(found) else replace(degree, p_value=None)
    return result


def listing(found: Publication, schema: Schema) -> tuple[tuple[Any, ...], ...]:
    """The rows of the listing of dependences."""
    exact = _is_exact(found)

    def tested(degree: Dependence) -> tuple[float | None, ...]:
        return (degree.p_value,) if exact else ()

    rows = [
        (*pair, MEASURES[d.measure], d.value, *tested(d))
        for pair, d in dependences(found, schema).items()
    ]
    return tuple(sorted(rows, key=lambda row: -(row[3] or 0.0)))


def squared(rows: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """The same with the squares of the degrees, which are roots: near 0 those differ in all digits.

    An honest folder was contradicted on another processor, where 3.6e-9 was 3.8e-17.
    """
    return [(*row[:3], square(row[3]), *row[4:]) if len(row) > 3 else row for row in rows]


def square(degree: Any) -> Any:
    """Of a degree, whatever stands there in its place."""
    return degree * degree if isinstance(degree, float) else degree


def sheet(found: Publication, schema: Schema) -> str | None:
    """The sheet of dependences, which only counts had."""
    if not any(table.kind == "count" for table in found.tables):
        return None
    head = ["attribute_1", "attribute_2", "measure", "value", "p_value"]
    lines = [
        [*pair, d.measure, d.value, d.p_value] for pair, d in dependences(found, schema).items()
    ]
    return csv_text([head, *lines])


def layers(table: Table, now: Table) -> tuple[list[Any], list[Any]]:
    """What a table of earlier rules holds, and the same of what is published now."""
    left = OTHERWISE | ({"standard_errors"} if table.kind == "share" else frozenset())
    fields = [
        field
        for field in Table.__struct_fields__
        if field not in left and getattr(table, field) is not None
    ]
    return [getattr(table, f) for f in fields], [getattr(now, f) for f in fields]


def rows(listed: Listing) -> list[tuple[Any, ...]]:
    """The rows of another listing, but for what was worked out otherwise."""
    kept = [k for k, column in enumerate(listed.columns) if column.name != OTHER_ERRORS]
    return [tuple(row[k] for k in kept) for row in listed.rows]


def before_tables(
    then: Publication, now: Publication, schema: Schema, *, limits: bool
) -> tuple[Publication, Publication, list[str]]:
    """Both without what was told otherwise before `AS_IN_TABLES`, and what that is.

    Before dependences had ``limits``, they are compared by `listing`.
    """
    said: list[str] = []
    if not all(_is_whole(part) for part in then.listings):
        return then, now, said  # they cannot be what follows
    large = _large(now, schema) if limits else frozenset()
    for words, kept in (
        (NO_GAPS, _without_estimated_gaps),
        (NO_CORRELATIONS, _without_correlations),
        (NO_LARGE, lambda listings: _without_pairs(listings, large)),
    ):
        less = kept(then.listings)
        if less != then.listings:
            said.append(words)
            then = msgspec.structs.replace(then, listings=less)
            now = msgspec.structs.replace(now, listings=kept(now.listings))
    return then, now, said


def _is_whole(listed: Listing) -> bool:
    return all(0 < len(row) == len(listed.columns) for row in listed.rows)


def _without_estimated_gaps(listings: Sequence[Listing]) -> tuple[Listing, ...]:
    """All but how many gave no answer where that is estimated."""

    def estimated(part: Listing) -> bool:
        return part.name == NO_ANSWER and "high" in (column.name for column in part.columns)

    return tuple(part for part in listings if not estimated(part))


def _without_correlations(listings: Sequence[Listing]) -> tuple[Listing, ...]:
    """Of computed correlations, which they are and of how many people."""

    def kept(part: Listing, row: tuple[Any, ...]) -> tuple[Any, ...]:
        if not str(row[0]).startswith("correlation("):
            return row
        columns = (column.name for column in part.columns)
        return tuple(
            cell if name in OF_A_RESULT else None for name, cell in zip(columns, row, strict=True)
        )

    return tuple(
        msgspec.structs.replace(part, rows=tuple(kept(part, row) for row in part.rows))
        if part.name in (RESULTS, DETAILS)
        else part
        for part in listings
    )


def _large(now: Publication, schema: Schema) -> frozenset[frozenset[str]]:
    """The pairs of which nothing is told now, as their tables have too many cells."""
    listed = now.listing(DEPENDENCE)
    sizes = dict(zip(schema.names, schema.sizes, strict=True))
    told: Sequence[tuple[Any, ...]] = () if listed is None else listed.rows
    return frozenset(
        frozenset((first, second))
        for first, second, _, value, *_ in told
        if value is None and sizes[first] * sizes[second] > MOST_CELLS
    )


def _without_pairs(
    listings: Sequence[Listing], pairs: frozenset[frozenset[str]]
) -> tuple[Listing, ...]:
    """Of these pairs, that they are listed."""
    if not pairs:
        return tuple(listings)
    changes = {DEPENDENCE: _of_others, TAKEN_TOGETHER: _taken_with_others}
    changed = (
        changes[part.name](part, pairs) if part.name in changes else part for part in listings
    )
    return tuple(part for part in changed if part.name != TAKEN_TOGETHER or part.rows)


def _of_others(listed: Listing, pairs: frozenset[frozenset[str]]) -> Listing:
    """These pairs last, by name and measure; columns that are empty then were theirs."""
    others = [row for row in listed.rows if frozenset(row[:2]) not in pairs]
    these = (row[: len(OF_A_PAIR)] for row in listed.rows if frozenset(row[:2]) in pairs)
    kept = [
        k
        for k, column in enumerate(listed.columns)
        if column.name in OF_A_PAIR or any(row[k] is not None for row in others)
    ]
    rows = (*(tuple(row[k] for k in kept) for row in others), *sorted(these, key=str))
    columns = tuple(listed.columns[k] for k in kept)
    return msgspec.structs.replace(listed, columns=columns, rows=rows)


def _taken_with_others(listed: Listing, pairs: frozenset[frozenset[str]]) -> Listing:
    """Rare answers that were taken together in other pairs."""
    rows = []
    for *answers, beside in listed.rows:
        several = beside if isinstance(beside, tuple) else (str(beside),)
        others = [other for other in several if frozenset((*answers[:1], other)) not in pairs]
        if others:
            rows.append((*answers, tuple(others)))
    return msgspec.structs.replace(listed, rows=tuple(rows))


def sheet_of_then(then: Publication) -> str:
    """The sheet of dependences, as ``result.json`` of then lists them."""
    listed = then.listing(DEPENDENCE)
    assert listed is not None
    return csv_text([[column.name for column in listed.columns], *listed.rows])


def _is_exact(found: Publication) -> bool:
    return all(
        table.kind == "count" and not _is_noisy(table) and None not in table.values
        for table in found.tables
    )


def _is_noisy(table: Table) -> bool:
    return table.standard_errors is not None


def _shares(tables: list[Table], schema: Schema) -> list[Array]:
    """The tables; of counts with noise or hidden cells, the best guess of then."""
    cells = [np.array([HIDDEN if v is None else v for v in t.values]) for t in tables]
    shaped = [values.reshape(table.shape) for values, table in zip(cells, tables, strict=True)]
    hidden = any(None in table.values for table in tables)
    if hidden:
        counts: list[Counts] = [values.astype(np.int64) for values in shaped]
        return filled(PairLayout(schema.sizes), counts, tables[0].n or 0)
    return [
        _guess(values, table) if table.kind == "count" and _is_noisy(table) else values
        for values, table in zip(shaped, tables, strict=True)
    ]


def _guess(counts: Array, table: Table) -> Array:
    n = table.n or 1
    errors = np.array(table.standard_errors, dtype=np.float64).reshape(table.shape)
    return shrunk_table(Estimate(counts / n, errors / n, n))
