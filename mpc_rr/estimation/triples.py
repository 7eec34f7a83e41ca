"""What three attributes together tell of small counts, and what must be hidden besides.

A rectangle hides a small count within its own table. But people have a third answer, too: where one
region is a country of its own, the tables of region and of country with a third question have a
line in common, and what the one hides in it the other may show.

So for each small count and each third attribute, other people are sought: how many have each
combination of the three answers, in whole numbers, such that all shown numbers of the three tables
and all known totals hold, and the small count is larger by ``below``. One program seeks them for
many counts at once. A count that it does not do has its own, which seeks the people that fit the
shown numbers best; what is shown and does not fit them is hidden, and then they fit. Hiding more
takes nothing from people found before, so one pass is enough.

Where that would be too many combinations, too much work or too many attributes, whole lines are
hidden instead (`_Lines`).
"""

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array, hstack

from mpc_rr.estimation.matrix import Array
from mpc_rr.estimation.pairs import Counts, PairLayout

MOST_ATTRIBUTES = 40
"""Of so many, all triples are looked at."""
MOST_COMBINATIONS = 4096
"""So many combinations of three answers may a program have."""
MOST_WORK = 400_000
"""So many may all programs for one publication have together; that is some seconds."""
WHOLE = 1e-6
NEAR = 1
"""So far from fractions whole numbers are sought."""
MOST_NODES = 100
"""So far a program searches for whole numbers: not by the clock, so all machines hide alike."""
AXES = ((0, 1), (0, 2), (1, 2))
"""Of three attributes, those of each of their tables."""
Hidden = npt.NDArray[np.bool_]
Cell = tuple[int, int, int]
"""The number of a table, and a cell in it."""
Rectangles = Mapping[Cell, tuple[int, int]]
"""For a small cell the opposite corner of the rectangle that hides it in its own table."""


def hide_from_triples(
    layout: PairLayout,
    tables: Sequence[Counts],
    hidden: Sequence[Hidden],
    rectangles: Rectangles,
    below: int,
) -> None:
    """Hide more, until each small count may be larger by ``below``, whatever three attributes tell.

    Only those with a rectangle need it. Where `suppress` hid a small count's categories in every
    table, people can be thought to have these, whatever else they answered.
    """
    if len(layout.sizes) > MOST_ATTRIBUTES:
        _hide_everywhere(layout, tables, hidden, rectangles)
        return
    numbers = {pair: number for number, pair in enumerate(layout.pairs)}
    of_table: dict[int, list[Cell]] = {}
    for cell in rectangles:
        of_table.setdefault(cell[0], []).append(cell)
    work = _Work(MOST_WORK)
    for attributes in itertools.combinations(range(len(layout.sizes)), 3):
        own = [numbers[attributes[x], attributes[y]] for x, y in AXES]
        cells = [cell for number in own for cell in of_table.get(number, [])]
        if cells:
            known = [_known_totals(layout, hidden, a) for a in attributes]
            triple = _Triple(own, [tables[k] for k in own], [hidden[k] for k in own], known, below)
            triple.hide(cells, rectangles, work)


def _hide_everywhere(
    layout: PairLayout,
    tables: Sequence[Counts],
    hidden: Sequence[Hidden],
    rectangles: Rectangles,
) -> None:
    """Hide a rectangle's lines in all tables of one of its attributes: that of fewer people."""
    lines = [np.zeros(size, dtype=np.bool_) for size in layout.sizes]
    for (number, i, j), (row, column) in rectangles.items():
        table, (first, second) = tables[number], layout.pairs[number]
        if table[[i, row]].sum() < table[:, [j, column]].sum():
            lines[first][[i, row]] = True
        else:
            lines[second][[j, column]] = True
    for (first, second), mask in zip(layout.pairs, hidden, strict=True):
        mask[lines[first]] = True
        mask[:, lines[second]] = True


def _known_totals(layout: PairLayout, hidden: Sequence[Hidden], attribute: int) -> Hidden:
    """Of which categories some table shows all counts."""
    known = np.zeros(layout.sizes[attribute], dtype=np.bool_)
    for pair, mask in zip(layout.pairs, hidden, strict=True):
        if attribute in pair:
            known |= ~mask.any(axis=1 - pair.index(attribute))
    return known


@dataclass
class _Work:
    """How many combinations the programs still to come may have."""

    left: int

    def spend(self, combinations: int) -> bool:
        """Whether there may be one more, of so many."""
        self.left -= combinations
        return self.left >= 0


@dataclass(frozen=True)
class _Lines:
    """Two lines of a table with the third attribute: what changes if a rectangle's people swap.

    Some at two opposite corners of the rectangle can be thought to have exchanged their answers to
    one of its questions, each keeping the rest. That moves the rectangle and, in the table of that
    question with the third attribute, the two lines; all else stays.
    """

    counts: Counts
    """All of that table, rows by the question."""
    mask: Hidden
    rows: list[int]

    @property
    def hidden(self) -> bool:
        """Whether nothing is shown of them."""
        return bool(self.mask[self.rows].all())

    @property
    def cost(self) -> int:
        """How many people would be shown no more."""
        return int(self.counts[self.rows][~self.mask[self.rows]].sum())

    def hide(self) -> None:
        """Show nothing of them."""
        self.mask[self.rows] = True


class _Triple:
    """Three attributes and their three tables.

    Rows of ``_sums``, which adds up combinations of answers: the cells of the tables, the totals of
    the categories, and everybody.
    """

    def __init__(
        self,
        numbers: Sequence[int],
        tables: Sequence[Counts],
        masks: Sequence[Hidden],
        known: Sequence[Hidden],
        below: int,
    ) -> None:
        self._numbers, self._tables, self._masks = numbers, tables, masks
        self._known, self._below = known, below
        self._sizes = (*tables[0].shape, tables[1].shape[1])
        self._first = list(itertools.accumulate((table.size for table in tables), initial=0))

    def hide(self, cells: Sequence[Cell], rectangles: Rectangles, work: _Work) -> None:
        """Hide until each of these cells may be larger."""
        lines = {cell: list(self._lines(cell, rectangles[cell])) for cell in cells}
        left = [cell for cell in cells if not any(one.hidden for one in lines[cell])]
        if left and math.prod(self._sizes) <= MOST_COMBINATIONS:
            self._set_up()
            left = self._without_those_at_once(left, work)
            left = [cell for cell in left if not self._hide_what_fits_not(cell, work)]
        for cell in left:
            min(lines[cell], key=lambda one: one.cost).hide()

    def _lines(self, cell: Cell, corner: tuple[int, int]) -> Iterator[_Lines]:
        axes = AXES[self._numbers.index(cell[0])]
        third = 3 - sum(axes)
        for axis, rows in zip(axes, zip(cell[1:], corner, strict=True), strict=True):
            other = AXES.index((min(axis, third), max(axis, third)))
            table, mask = self._tables[other], self._masks[other]
            if axis > third:
                table, mask = table.T, mask.T
            yield _Lines(table, mask, list(rows))

    def _set_up(self) -> None:
        codes = np.indices(self._sizes).reshape(3, -1)
        everybody = np.zeros_like(codes[0])
        parts = [codes[x] * self._sizes[y] + codes[y] for x, y in AXES]
        parts += [*codes, everybody]
        lengths = [table.size for table in self._tables] + [*self._sizes, 1]
        first = itertools.accumulate(lengths[:-1], initial=0)
        rows = np.concatenate([part + at for part, at in zip(parts, first, strict=True)])
        columns = np.tile(np.arange(everybody.size), len(parts))
        shape = (sum(lengths), everybody.size)
        self._sums = csr_array((np.ones(rows.size), (rows, columns)), shape=shape)
        one, two, _ = self._tables
        totals = [one.sum(axis=1), one.sum(axis=0), two.sum(axis=0), [one.sum()]]
        self._totals = np.concatenate([*(table.ravel() for table in self._tables), *totals])

    def _row(self, cell: Cell) -> int:
        number, i, j = cell
        which = self._numbers.index(number)
        return int(self._first[which] + i * self._tables[which].shape[1] + j)

    def _shown(self) -> Hidden:
        cells = [~mask.ravel() for mask in self._masks]
        return np.concatenate([*cells, *self._known, [np.True_]])

    def _without_those_at_once(self, cells: list[Cell], work: _Work) -> list[Cell]:
        """Those that people found for many at once do not make larger."""
        while cells and work.spend(self._sums.shape[1]):
            people = self._people_for_many([self._row(cell) for cell in cells])
            if people is None:
                break
            sums = self._added(people)
            left = [cell for cell in cells if not self._larger(sums, self._row(cell))]
            if len(left) == len(cells):
                break
            cells = left
        return cells

    def _added(self, people: Array) -> Array:
        return np.asarray(self._sums @ people)

    def _larger(self, sums: Array, row: int) -> bool:
        return bool(sums[row] >= self._totals[row] + self._below - WHOLE)

    def _people_for_many(self, rows: list[int]) -> Array | None:
        """Who fit all that is shown, with as many of these counts larger as one program makes."""
        shown = self._shown()
        possible = self._possible(shown)
        sums, count = self._sums[:, possible], len(rows)
        none = csr_array((int(shown.sum()), count))
        held = hstack([sums[shown], none]), self._totals[shown], self._totals[shown]
        larger = hstack([sums[rows], -_identity(count)]), self._totals[rows], np.inf
        weights = np.repeat([0.0, -1.0], [sums.shape[1], count])
        most = np.where(weights < 0, float(self._below), np.inf)
        found = _least(weights, [held, larger], (0, most))
        if found is None:
            return None
        people = np.zeros(len(possible))
        people[possible] = found[: sums.shape[1]]
        reached = self._added(people)
        return self._whole(people, shown, [row for row in rows if self._larger(reached, row)])

    def _possible(self, shown: Hidden) -> Hidden:
        """The combinations that no shown zero excludes."""
        excluding = self._sums[shown & (self._totals == 0)]
        return np.asarray(excluding.sum(axis=0) == 0)

    def _whole(self, people: Array, shown: Hidden, rows: list[int]) -> Array | None:
        """Whole people near these fractions of people who fit what is shown, with larger counts.

        To seek any whole numbers that fit near a vertex is far quicker than to seek the best of
        all, and hardly ever in vain.
        """
        possible = self._possible(shown)
        sums, near = self._sums[:, possible], people[possible]
        found: Array | None = near
        if np.abs(near - np.rint(near)).max() > WHOLE:
            held = sums[shown], self._totals[shown], self._totals[shown]
            larger = sums[rows], self._totals[rows] + self._below, np.inf
            around = np.maximum(np.floor(near) - NEAR, 0), np.ceil(near) + NEAR
            found = _least(np.zeros(len(near)), [held, larger], around, whole=True)
        if found is None:
            return None
        whole = np.zeros(len(people))
        whole[possible] = np.rint(found)
        reached = self._added(whole)
        fits = (reached[shown] == self._totals[shown]).all()
        return whole if fits and all(self._larger(reached, row) for row in rows) else None

    def _hide_what_fits_not(self, cell: Cell, work: _Work) -> bool:
        """Hide what is shown and does not hold for the people that fit best; False: none found."""
        if not work.spend(self._sums.shape[1]):
            return False
        row, shown = self._row(cell), self._shown()
        cells = np.flatnonzero(shown[: self._first[-1]])
        people = self._people_for_one(row, shown, cells)
        if people is None:
            return False
        reached = self._added(people)
        wrong = cells[np.abs(reached[cells] - self._totals[cells]) > WHOLE]
        shown[wrong] = False
        if self._whole(people, shown, [row]) is None:
            return False
        for mask, first, last in zip(self._masks, self._first, self._first[1:], strict=False):
            own = wrong[(wrong >= first) & (wrong < last)] - first
            mask[np.unravel_index(own, mask.shape)] = True
        return True

    def _people_for_one(self, row: int, shown: Hidden, cells: Counts) -> Array | None:
        """Of whom this count is larger, known totals hold, and shown cells hold as far as can be.

        Fractions of people.
        """
        size, count = self._sums.shape[1], len(cells)
        apart = _identity(int(shown.sum()))[:, :count]
        held = hstack([self._sums[shown], apart, -apart]), self._totals[shown], self._totals[shown]
        none = csr_array((1, 2 * count))
        larger = hstack([self._sums[[row]], none]), self._totals[row] + self._below, np.inf
        weights = np.repeat([0.0, 1.0], [size, 2 * count])
        found = _least(weights, [held, larger], (0, np.inf))
        return None if found is None else found[:size]


def _identity(size: int) -> csr_array:
    return csr_array((np.ones(size), (range(size), range(size))), shape=(size, size))


def _least(
    weights: Array,
    held: Sequence[tuple[csr_array, Array, Array | float]],
    between: tuple[Array | float, Array | float],
    *,
    whole: bool = False,
) -> Array | None:
    """Where a weighted sum is smallest, as far as it was searched for; None if nowhere."""
    from scipy.optimize import Bounds, LinearConstraint, milp  # noqa: PLC0415  (slow to start)

    found = milp(
        weights,
        integrality=np.full(len(weights), int(whole)),
        bounds=Bounds(*between),
        constraints=[LinearConstraint(sums, low, high) for sums, low, high in held],
        options={"node_limit": MOST_NODES},
    )
    return None if found.x is None else np.asarray(found.x)
