"""How strongly two attributes may depend on each other if some counts of the tables are hidden.

Everything that is published narrows what the hidden counts can be: each table adds up to n, and
tables that share an attribute agree about it. One linear program over all tables bounds each hidden
cell. V² is convex in them: its largest value is bounded by chords, its smallest by the gap of the
method of Frank and Wolfe; r is linear. The truth lies within these limits for sure; they speak of
the respondents.
"""

import math
from collections.abc import Sequence
from functools import cache

import numpy as np
from scipy.sparse import csr_array

from mpc_rr.estimation.conditions import Truths
from mpc_rr.estimation.matrix import Array
from mpc_rr.estimation.pairs import Counts, PairLayout
from mpc_rr.estimation.strength import Strength, untold
from mpc_rr.estimation.suppression import HIDDEN, known_totals
from mpc_rr.schema import Attribute

MOST_PROGRAMS = 150
"""Up to so many hidden cells each has its own linear program; of more, only rows and columns."""
STEPS = 60
ENOUGH = 1e-4
WHOLE = 1e-6


class HiddenCounts:
    """What all published tables together say of the hidden counts.

    The variables of the linear programs: a hidden cell each, then the categories of each attribute.
    """

    def __init__(self, layout: PairLayout, shown: Sequence[Counts], n: int) -> None:
        self._layout, self._shown, self._n = layout, shown, n
        self._at: list[dict[tuple[int, int], int]] = []
        place = 0
        for table in shown:
            cells = [(int(i), int(j)) for i, j in np.argwhere(table == HIDDEN)]
            self._at.append({cell: place + k for k, cell in enumerate(cells)})
            place += len(cells)
        self._hidden = place
        self._margin_at = [place + sum(layout.sizes[:a]) for a in range(len(layout.sizes))]
        self._size = place + sum(layout.sizes)
        self._equations, self._totals = self._everything_adds_up()
        self._totals_shown = list(known_totals(layout, shown))
        self._bounds = cache(self._bounds_of)
        self._margins = cache(self._margin_of)

    def _everything_adds_up(self) -> tuple[csr_array, Array]:
        entries: list[tuple[int, int, float]] = []
        totals: list[float] = []
        for (a, b), table, at in zip(self._layout.pairs, self._shown, self._at, strict=True):
            seen = np.where(table == HIDDEN, 0, table)
            for axis, attribute in ((0, a), (1, b)):
                for k in range(table.shape[axis]):
                    row = len(totals)
                    entries += [(row, v, 1.0) for cell, v in at.items() if cell[axis] == k]
                    entries.append((row, self._margin_at[attribute] + k, -1.0))
                    totals.append(-float(seen.sum(axis=1 - axis)[k]))
        for first, size in zip(self._margin_at, self._layout.sizes, strict=True):
            entries += [(len(totals), first + k, 1.0) for k in range(size)]
            totals.append(float(self._n))
        rows, columns, values = zip(*entries, strict=True)
        shape = (len(totals), self._size)
        return csr_array((values, (rows, columns)), shape=shape), np.array(totals)

    def _least(self, weights: Array) -> tuple[float, Array]:
        """The smallest value of a linear function of the hidden counts, and where it is reached."""
        from scipy.optimize import linprog  # noqa: PLC0415  (slow to start)

        found = linprog(  # type: ignore[call-overload]  # the stubs know no sparse matrices
            weights, A_eq=self._equations, b_eq=self._totals, bounds=(0, self._n), method="highs"
        )
        if found.status != 0:
            raise ArithmeticError(f"the published tables do not fit together: {found.message}")
        return float(found.fun), np.asarray(found.x)

    def _bounds_of(self, variable: int) -> tuple[int, int]:
        weights = np.zeros(self._size)
        weights[variable] = 1
        low, high = self._least(weights)[0], -self._least(-weights)[0]
        return math.ceil(low - WHOLE), math.floor(high + WHOLE)

    def _margin_of(self, attribute: int) -> tuple[int, ...] | None:
        """How many have each category of an attribute; None where that is hidden, too.

        Programs are solved only for categories of which no table shows all counts, and only until
        one of these is not determined.
        """
        if not self._shows_any_of(attribute):
            return None
        first = self._margin_at[attribute]
        found = {c: total for a, c, total in self._totals_shown if a == attribute}
        for category in range(self._layout.sizes[attribute]):
            if category not in found:
                low, high = self._bounds(first + category)
                if low != high:
                    return None
                found[category] = low
        return tuple(found[category] for category in range(self._layout.sizes[attribute]))

    def _shows_any_of(self, attribute: int) -> bool:
        """Whether any count of a table of this attribute is shown."""
        return any(
            (table != HIDDEN).any()
            for pair, table in zip(self._layout.pairs, self._shown, strict=True)
            if attribute in pair
        )

    def count(self, number: int, wanted: Truths) -> tuple[int, int]:
        """How many are in some cells of a table: at least, and at most."""
        table, weights = self._shown[number], np.zeros(self._size)
        for cell, variable in self._at[number].items():
            weights[variable] = wanted[cell]
        seen = int(table[wanted & (table != HIDDEN)].sum())
        if not weights.any():
            return seen, seen
        low, high = self._least(weights)[0], -self._least(-weights)[0]
        return seen + math.ceil(low - WHOLE), seen + math.floor(high + WHOLE)

    def strength(self, number: int, attributes: tuple[Attribute, Attribute]) -> Strength:
        """The limits of V or r of a table.

        Nothing can be told where its margins are hidden, or where some gave no answer: how many
        answered both is then not known either.
        """
        a, b = self._layout.pairs[number]
        rows, columns = self._margins(a), self._margins(b)
        both_ordinal = attributes[0].type == attributes[1].type == "ordinal"
        if rows is None or columns is None or any(one.missing for one in attributes):
            return untold(both_ordinal=both_ordinal)
        margins = (np.array(rows, dtype=np.float64), np.array(columns, dtype=np.float64))
        if both_ordinal:
            return self._pearson(number, *margins)
        return self._cramers_v(number, *margins)

    def _cramers_v(self, number: int, rows: Array, columns: Array) -> Strength:
        table, at = self._shown[number], self._at[number]
        expected = np.outer(rows, columns)
        if min((rows > 0).sum(), (columns > 0).sum()) < 2:
            return Strength("cramers_v", None, 0.0, 1.0)
        inverse = np.divide(1, expected, out=np.zeros_like(expected), where=expected > 0)
        seen = np.where(table == HIDDEN, 0, table).astype(np.float64)
        fixed = float((seen**2 * inverse).sum())
        least, most = fixed, fixed
        if at:
            least += self._smallest_squares(at, inverse)
            most += self._largest_squares(number, at, inverse, rows, columns)
        freedom = min(table.shape) - 1
        low, high = (math.sqrt(min(max(x - 1, 0.0) / freedom, 1.0)) for x in (least, most))
        return Strength("cramers_v", (low + high) / 2, low, high)

    def _largest_squares(
        self,
        number: int,
        at: dict[tuple[int, int], int],
        inverse: Array,
        rows: Array,
        columns: Array,
    ) -> float:
        """Σ x²/e is at most that of the chords over the ranges of the hidden counts."""
        seen = np.where(self._shown[number] == HIDDEN, 0, self._shown[number])
        left = (rows - seen.sum(axis=1), columns - seen.sum(axis=0))
        weights, constant = np.zeros(self._size), 0.0
        for (i, j), variable in at.items():
            low, high = 0.0, float(min(left[0][i], left[1][j]))
            if self._hidden <= MOST_PROGRAMS:
                low, high = self._bounds(variable)
            weights[variable] = -(low + high) * inverse[i, j]
            constant -= low * high * inverse[i, j]
        return constant - self._least(weights)[0]

    def _smallest_squares(self, at: dict[tuple[int, int], int], inverse: Array) -> float:
        """The least of Σ x²/e, from below: what Frank and Wolfe have reached, less their gap."""
        weights = np.zeros(self._size)
        for cell, variable in at.items():
            weights[variable] = inverse[cell]
        x, surely = self._least(np.zeros(self._size))[1], -math.inf
        for _ in range(STEPS):
            slope = 2 * weights * x
            reached, vertex = self._least(slope)
            gap = float(slope @ x) - reached
            surely = max(surely, float((weights * x * x).sum()) - gap)
            if gap < ENOUGH * inverse.size:
                break
            step = vertex - x
            curved = float((weights * step * step).sum())
            x = x + step * (min(1.0, max(0.0, gap / (2 * curved))) if curved > 0 else 0.0)
        return max(surely, 0.0)

    def _pearson(self, number: int, rows: Array, columns: Array) -> Strength:
        table, at = self._shown[number], self._at[number]
        x, y = (np.arange(size, dtype=np.float64) for size in table.shape)
        x, y = x - rows @ x / self._n, y - columns @ y / self._n
        scale = math.sqrt(float(rows @ x**2) * float(columns @ y**2))
        if scale <= 0:
            return Strength("pearson_r", None, -1.0, 1.0)
        products = np.outer(x, y)
        fixed = float((np.where(table == HIDDEN, 0, table) * products).sum())
        weights = np.zeros(self._size)
        for cell, variable in at.items():
            weights[variable] = products[cell]
        low = (fixed + self._least(weights)[0]) / scale if at else fixed / scale
        high = (fixed - self._least(-weights)[0]) / scale if at else fixed / scale
        low, high = max(low, -1.0), min(high, 1.0)
        return Strength("pearson_r", (low + high) / 2, low, high)
