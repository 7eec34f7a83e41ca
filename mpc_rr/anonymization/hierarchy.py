"""Generalization over given hierarchies: every attribute is told less exactly, all people alike.

A hierarchy has levels. Level 0 is the value itself; each further level puts values together under
a label (or, for numbers, into intervals of a width or between cut points, beside which those
without an answer stay apart); the last one tells nothing. Of all
combinations of levels under which everybody shares theirs with k − 1 others, the one that loses
least is taken (full-domain recoding, Samarati 2001). If a combination of levels leaves somebody in
too small a group, so does every finer one, which therefore need not be tried.
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mpc_rr.anonymization.table import Codes, Groups, Microdata, Rows
from mpc_rr.errors import InputError, key
from mpc_rr.schema import GRID_TOLERANCE, Attribute

Level = Mapping[str, Sequence[str]] | float | Sequence[float]
"""Labels with the values under each; or, of a numeric attribute, the width of its intervals, or the
numbers at which each of them but the first begins."""
NOTHING = "*"
MOST_LEVELS = 100_000
CODES_CHECKED = 100_000
"""Intervals of numbers repeat, so that the first so many values show whether they are nested."""


@dataclass(frozen=True)
class Hierarchy:
    """One attribute's levels: to which label each code belongs, and the labels."""

    attribute: Attribute
    levels: tuple[Level, ...]

    def __post_init__(self) -> None:
        for number, level in enumerate(self.levels, start=1):
            where = f"hierarchies.{key(self.attribute.name)}, level {number}"
            if isinstance(level, Mapping):
                self._check_labels(level, where)
            elif not self.attribute.numeric:
                raise InputError(f"{where}: a width needs numbers; give labels with their values")
            elif isinstance(level, Sequence):
                self._check_cuts(level, where)
            elif not 0 < level < math.inf:
                raise InputError(f"{where}: a width must be positive and finite")
        for number in range(1, self.depth):
            self._check_nested(number)

    def _check_labels(self, level: Mapping[str, Sequence[str]], where: str) -> None:
        if self.attribute.numeric:
            raise InputError(f"{where}: for a numeric attribute, give the width of its intervals")
        members = [value for values in level.values() for value in values]
        for category in self.attribute.categories:
            if members.count(category) != 1:
                often = "misses" if category not in members else "has more than one place for"
                raise InputError(f"{where}: it {often} the value {category!r}")
        strangers = [value for value in members if value not in self.attribute.categories]
        if strangers:
            raise InputError(f"{where}: {strangers[0]!r} is no value of this attribute")

    def _check_cuts(self, cuts: Sequence[float], where: str) -> None:
        """Cut points are numbers that can be answered, rising, and none begins at the lowest."""
        if not cuts:
            raise InputError(f"{where}: give the numbers at which its intervals begin")
        steps = self._firsts(cuts)
        if any(low >= high for low, high in itertools.pairwise([0, *steps])):
            raise InputError(f"{where}: cut points must rise, each above the one before and lowest")
        if steps[-1] >= self.attribute.answers_possible:
            raise InputError(f"{where}: {cuts[-1]:g} is beyond what can be answered")

    def _firsts(self, cuts: Sequence[float]) -> list[int]:
        """The first code of each interval but the first one."""
        assert self.attribute.lowest is not None
        assert self.attribute.step is not None
        lowest, step = self.attribute.lowest, self.attribute.step
        if not all(map(math.isfinite, cuts)):
            raise InputError(f"hierarchies.{key(self.attribute.name)}: a cut point must be finite")
        return [math.ceil((cut - lowest) / step - GRID_TOLERANCE) for cut in cuts]

    def _interval(self, codes: Codes, level: float | Sequence[float]) -> tuple[Codes, Codes]:
        """The first and the last code of the interval of each number."""
        end = self.attribute.answers_possible
        if isinstance(level, Sequence):
            edges = np.array([0, *self._firsts(level), end])
            place = np.clip(np.searchsorted(edges, codes, "right") - 1, 0, len(edges) - 2)
            return edges[place], edges[place + 1] - 1
        width = self._steps(level)
        first = codes // width * width
        return first, np.minimum(first + width, end) - 1

    def _check_nested(self, number: int) -> None:
        """Values that are together stay together."""
        codes = np.arange(min(self.attribute.size, CODES_CHECKED))
        finer, coarser = self.at(codes, number), self.at(codes, number + 1)
        pairs = np.unique(np.stack([finer, coarser]), axis=1)
        if len(np.unique(pairs[0])) != pairs.shape[1]:
            raise InputError(
                f"hierarchies.{key(self.attribute.name)}: level {number + 1} separates values that "
                f"are together in level {number}"
            )

    @property
    def depth(self) -> int:
        """The number of the level that tells nothing."""
        return len(self.levels) + 1

    def at(self, codes: Codes, level: int) -> Codes:
        """The number of the label of each code at a level."""
        if level == 0:
            return codes
        if level == self.depth:
            return np.zeros_like(codes)
        given = self.levels[level - 1]
        if isinstance(given, Mapping):
            places = {v: number for number, values in enumerate(given.values()) for v in values}
            labels = np.array([places[c] for c in self.attribute.categories], dtype=np.int64)
            return labels[codes]
        apart = codes == self.attribute.missing_code
        return np.asarray(np.where(apart, -1, self._interval(codes, given)[0]))

    def _steps(self, width: float) -> int:
        assert self.attribute.step is not None
        return max(round(width / self.attribute.step), 1)

    def label(self, code: int, level: int) -> str:
        """What is told of a code at a level."""
        if level == 0:
            return self.attribute.cell(code)
        if level == self.depth:
            return NOTHING
        given = self.levels[level - 1]
        if isinstance(given, Mapping):
            value = self.attribute.categories[code]
            return next(label for label, values in given.items() if value in values)
        if code == self.attribute.missing_code:
            return self.attribute.cell(code)
        first, last = (int(end[0]) for end in self._interval(np.array([code]), given))
        return f"{self.attribute.text(first)}–{self.attribute.text(last)}"

    def under(self, code: int, level: int) -> Codes | None:
        """The answers that have the same label as a code at a level, rising; None if all have.

        Of numbers, the lowest and the highest of them.
        """
        if level == self.depth:
            return None
        if level == 0:
            return np.array([code])
        given = self.levels[level - 1]
        if not isinstance(given, Mapping):
            return np.concatenate(self._interval(np.array([code]), given))
        answers = np.array(self.attribute.answer_codes)
        labels = self.at(np.array([code, *answers]), level)
        together: Codes = answers[labels[1:] == labels[0]]
        return together

    def _answered(self, codes: Codes) -> Codes:
        there: Codes = codes[codes != self.attribute.missing_code]
        return there

    def loss(self, codes: Codes, level: int) -> float:
        """How much of the attribute's range a label leaves open, on average: from 0 to 1.

        Of numbers it is the average over those who gave one.
        """
        size = self.attribute.size
        if level in (0, self.depth):
            return float(level > 0)
        given = self.levels[level - 1]
        if isinstance(given, Mapping):
            every = self.at(np.arange(size), level)
            widths = np.bincount(every)[self.at(codes, level)]
        else:
            size, codes = self.attribute.answers_possible, self._answered(codes)
            if not len(codes):
                return 0.0
            first, last = self._interval(codes, given)
            widths = last - first + 1
        return int((widths - 1).sum()) / (len(codes) * (size - 1))


@dataclass(frozen=True)
class Labels:
    """What groups are called in each quasi-identifier."""

    hierarchies: Sequence[Hierarchy]
    levels: tuple[int, ...] = ()
    """The same for all groups; if not given, each group's is the finest that all in it share."""

    def texts(self, known: Microdata, rows: Rows) -> list[str]:
        """The labels of a group."""
        places = range(len(self.hierarchies))
        return [
            self.hierarchies[p].label(int(known.codes[rows[0], p]), self.level(known, rows, p))
            for p in places
        ]

    def under(self, known: Microdata, rows: Rows, place: int) -> Codes | None:
        """The answers that a group's label covers (`Hierarchy.under`)."""
        code = int(known.answers(rows, place)[0])
        return self.hierarchies[place].under(code, self.level(known, rows, place))

    def level(self, known: Microdata, rows: Rows, place: int) -> int:
        """At which level a group is labelled."""
        if self.levels:
            return self.levels[place]
        hierarchy, codes = self.hierarchies[place], known.codes[rows, place]
        shared = (
            level for level in range(hierarchy.depth) if not np.ptp(hierarchy.at(codes, level))
        )
        return next(shared, hierarchy.depth)


def check_combinations(hierarchies: Sequence[Hierarchy]) -> None:
    """`InputError` if these have too many combinations of levels to try them all."""
    if math.prod(hierarchy.depth + 1 for hierarchy in hierarchies) > MOST_LEVELS:
        raise InputError(
            f"the hierarchies have more than {MOST_LEVELS:,} combinations of levels; give "
            "fewer levels"
        )


def generalize(
    table: Microdata, hierarchies: Sequence[Hierarchy], k: int, suppressed: int = 0
) -> tuple[int, ...]:
    """The levels that lose least among those that leave nobody in a group below k.

    Or no more than so many, who are then left out; a finer combination leaves no fewer of them.
    """
    check_combinations(hierarchies)
    depths = [hierarchy.depth for hierarchy in hierarchies]
    columns = [table.codes[:, place] for place in range(len(hierarchies))]
    losses = [
        [hierarchy.loss(column, level) for level in range(hierarchy.depth + 1)]
        for hierarchy, column in zip(hierarchies, columns, strict=True)
    ]

    def lost(levels: tuple[int, ...]) -> float:
        return sum(of[level] for of, level in zip(losses, levels, strict=True))

    nodes = sorted(itertools.product(*(range(depth + 1) for depth in depths)), key=lost)
    too_fine: list[tuple[int, ...]] = []
    for levels in nodes:
        if any(all(a <= b for a, b in zip(levels, bad, strict=True)) for bad in too_fine):
            continue
        sizes = [len(group) for group in groups_at(table, hierarchies, levels)]
        if max(sizes) >= k and sum(size for size in sizes if size < k) <= suppressed:
            return levels
        too_fine.append(levels)
    raise InputError(f"there are fewer than k = {k} records")


def groups_at(table: Microdata, hierarchies: Sequence[Hierarchy], levels: Sequence[int]) -> Groups:
    """Who cannot be told apart at these levels."""
    labels = np.stack(
        [
            hierarchy.at(table.codes[:, place], level)
            for place, (hierarchy, level) in enumerate(zip(hierarchies, levels, strict=True))
        ],
        axis=1,
    )
    _, inverse = np.unique(labels, axis=0, return_inverse=True)
    order = np.argsort(inverse, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(inverse[order])) + 1)
