"""Hiding small counts in the tables of all pairs of attributes, so that they cannot be worked out.

A cell that counts a few people (1 to ``below`` − 1) is hidden. Alone this helps little: the other
cells of its row and the row's total, known from another table, give it away. So others are hidden
with it, until each small count has a provable alternative: a way to change hidden cells, and only
those, after which every published number still holds and the small count is larger by ``below``.

* A rectangle in the same table: cells (i, j) and (i', j') grow by ``below``, (i, j') and (i', j)
  shrink by it. All row and column totals stay. Needs (i, j') and (i', j) of at least ``below``.
* Where there is none: ``below`` of the people in the table's largest cell (i', j'), or in as many
  of the largest as it takes, are thought to be in (i, j) instead. For this the categories i, i', j
  and j' are hidden in every table.
* Where there are not so many people in other cells: nothing is shown but how many there are in all.

The tables of three attributes are then taken together, and more is hidden until there are people
with three answers each who fit all that is shown of them, the small count again being larger by
``below`` (`triples`).

What is promised holds against everybody who reasons with the numbers shown of any three attributes,
or with the rows, columns and totals of all tables. What four and more attributes together tell is
not looked at. It does not hold against knowledge from elsewhere, nor against whoever works through
the rule by which the others are hidden, nor against those who are counted: what they added, true or
not, they take off again.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from mpc_rr.estimation.matrix import Array
from mpc_rr.estimation.pairs import Counts, PairLayout
from mpc_rr.estimation.triples import Cell, Hidden, hide_from_triples

HIDDEN = -1


def suppress(layout: PairLayout, tables: Sequence[Counts], below: int) -> list[Counts]:
    """The tables with small counts, and what would give them away, replaced by ``HIDDEN``."""
    hidden = [(table > 0) & (table < below) for table in tables]
    small = [np.argwhere(mask) for mask in hidden]
    rectangles: dict[Cell, tuple[int, int]] = {}
    for number, cells in enumerate(small):
        for i, j in cells.tolist():
            corner = _hide_rectangle(tables[number], hidden[number], i, j, below)
            if corner is None:
                _hide_categories(layout, tables, hidden, number, i, j, below)
            else:
                rectangles[number, i, j] = corner
    hide_from_triples(layout, tables, hidden, rectangles, below)
    return [np.where(mask, HIDDEN, table) for table, mask in zip(tables, hidden, strict=True)]


def _hide_rectangle(
    table: Counts, hidden: Hidden, i: int, j: int, below: int
) -> tuple[int, int] | None:
    """Hide the rectangle on (i, j) that costs the fewest counts: its opposite corner, if any."""
    rows = np.flatnonzero(table[:, j] >= below)
    columns = np.flatnonzero(table[i] >= below)
    rows, columns = rows[rows != i], columns[columns != j]
    if not rows.size or not columns.size:
        return None
    lost = np.where(hidden, 0, table)
    costs = lost[rows, j][:, np.newaxis] + lost[i, columns] + lost[np.ix_(rows, columns)]
    best = divmod(int(costs.argmin()), len(columns))
    row, column = int(rows[best[0]]), int(columns[best[1]])
    hidden[row, column] = hidden[row, j] = hidden[i, column] = True
    return row, column


def _hide_categories(
    layout: PairLayout,
    tables: Sequence[Counts],
    hidden: Sequence[Hidden],
    number: int,
    i: int,
    j: int,
    below: int,
) -> None:
    table = tables[number]
    largest = np.argsort(-table, axis=None, kind="stable")
    others = largest[largest != i * table.shape[1] + j]
    enough = int(np.searchsorted(np.cumsum(table.ravel()[others]), below)) + 1
    if enough > len(others):
        for mask in hidden:
            mask[:] = True
        return
    rows, columns = np.divmod(others[:enough], table.shape[1])
    first, second = layout.pairs[number]
    for attribute, categories in ((first, (i, *rows)), (second, (j, *columns))):
        for pair, mask in zip(layout.pairs, hidden, strict=True):
            if attribute in pair:
                lines = mask if pair[0] == attribute else mask.T
                lines[list(categories)] = True


def fault(layout: PairLayout, published: Sequence[Counts], n: int, below: int) -> str | None:
    """Why these cannot be suppressed tables of ``n`` people, or None if they can."""
    for (i, j), table in zip(layout.pairs, published, strict=True):
        if ((table < 0) & (table != HIDDEN)).any():
            return f"the table of attributes {i} and {j} has a negative count"
        if ((table > 0) & (table < below)).any():
            return f"the table of attributes {i} and {j} shows a count below {below}"
        missing = n - int(table[table != HIDDEN].sum())
        if missing < 0 or (missing and not (table == HIDDEN).any()):
            return f"the table of attributes {i} and {j} does not sum to {n}"
    known: dict[tuple[int, int], int] = {}
    for attribute, category, total in known_totals(layout, published):
        if known.setdefault((attribute, category), total) != total:
            return f"two tables disagree about how often attribute {attribute} has a value"
    return None


def known_totals(layout: PairLayout, published: Sequence[Counts]) -> Iterator[tuple[int, int, int]]:
    """Attribute, category and count wherever a row or column is wholly visible."""
    for pair, table in zip(layout.pairs, published, strict=True):
        for attribute, lines in zip(pair, (table, table.T), strict=True):
            for category in np.flatnonzero((lines != HIDDEN).all(axis=1)).tolist():
                yield attribute, category, int(lines[category].sum())


def filled(
    layout: PairLayout, published: Sequence[Counts], n: int, *, sweeps: int = 100
) -> list[Array]:
    """The tables with a guess for each hidden cell: spread evenly, then raked to known totals."""
    known = {(a, category): total for a, category, total in known_totals(layout, published)}
    tables = []
    for pair, shown in zip(layout.pairs, published, strict=True):
        hidden = shown == HIDDEN
        visible = np.where(hidden, 0, shown).astype(np.float64)
        guess = np.where(hidden, (n - visible.sum()) / max(int(hidden.sum()), 1), 0.0)
        for _ in range(sweeps if hidden.any() else 0):
            for attribute, mine, seen in ((pair[0], guess, visible), (pair[1], guess.T, visible.T)):
                for category, guessed in enumerate(mine.sum(axis=1)):
                    wanted = known.get((attribute, category))
                    if wanted is not None and guessed > 0:
                        mine[category] *= (wanted - seen[category].sum()) / guessed
        tables.append(visible + guess)
    return tables
