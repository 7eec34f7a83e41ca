"""What reports of views tell of single answers and of pairs: a few tables, however many reported.

A report holds some combinations of its view. Of a cell of a margin of the view that a share t of
the people are in, a report holds miss·(combinations in the cell) + (hit − miss)·t on average. So
the reports of all views that hold a pair come down to a few numbers for each of its cells, and all
of them can be added, over views and over parts of the respondents. What is fitted to them looks at
no report again.
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np

from mpc_rr.estimation.matrix import Array, Codes
from mpc_rr.estimation.views import SubsetMechanism, ViewDesign, ViewReports

PARTS = 4
"""Into so many parts the respondents are split, for the parts to judge what the rest says."""
SEED = 20
SUMS = 6
LEAST_CHANCE = 1e-9
LEAST_VARIANCE = 1e-15


@dataclass(frozen=True)
class Told:
    """The reports about one table: as if ``people`` had told the truth, and others by chance.

    A cell that a share t is in was reported as often as ``people``·(``chance`` + t), give or take
    the root of it, as counts are.
    """

    estimate: Array
    people: Array
    chance: Array
    noise: Array
    """The variance of the estimate where a share t is the truth of the respondents: these three,
    along the first axis, times 1, t and t²."""

    @property
    def counts(self) -> Array:
        """How often each cell was reported, in these terms."""
        return np.asarray(np.maximum(self.people * (self.chance + self.estimate), 0.0))

    def likelihood(self, tables: Array) -> Array:
        """The log-likelihood of each table, up to a constant; tables along the first axis."""
        found = self.counts * np.log(self.chance + tables) - self.people * tables
        return np.asarray(found.sum(axis=tuple(range(1, tables.ndim))))

    def variances(self, truth: Array) -> Array:
        """Of the estimate, were this the truth of the respondents: randomization, and who drew
        which view."""
        share = np.clip(truth, 0.0, 1.0)
        constant, linear, square = self.noise
        variance = constant + linear * share + square * share**2
        return np.asarray(np.maximum(variance, LEAST_VARIANCE))


def _told(sums: Array, cells: Array, respondents: int) -> Told:
    """From the sums of `_sums`, cell by cell."""
    people, information, weighed, *noise = sums
    known = information > 0
    inverse = np.divide(1.0, information, out=np.zeros_like(people), where=known)
    chance = np.where(known, np.maximum(people * inverse - 1 / cells, LEAST_CHANCE), 1.0)
    variance = np.array(noise) * inverse**2
    variance[1] -= 1 / max(respondents, 1)
    variance[2] += 1 / max(respondents, 1)
    return Told(weighed * inverse, people, chance, variance)


@lru_cache(maxsize=4096)
def _of_one(mechanism: SubsetMechanism, cells: int) -> tuple[float, ...]:
    """What one report tells of a cell among so many: the same in all views of one size.

    How many values of the cell it holds by chance, how many more if the cell is true, how many on
    average and with which variance if all cells are alike; and variances of the estimated share
    where it is 0, a half, and 1.
    """
    group, typical = mechanism.size / cells, 1 / cells
    contrast = mechanism.hit - mechanism.miss
    by_chance = mechanism.held_by_chance(group)
    mean = by_chance + contrast * typical
    spread = float(mechanism.variance(np.array(min(typical, 0.5)), group)) * contrast**2
    ends = mechanism.variance(np.array([0.0, 0.5, 1.0]), group).tolist()
    return (by_chance, contrast, mean, spread, *ends)


def _sums(mechanism: SubsetMechanism, reports: int, counts: Array, cells: int) -> Array:
    """What some reports of one view add to the sums of a table of ``cells`` cells.

    The information is that about a share of 1/cells: by the design, not the data.
    """
    by_chance, contrast, mean, spread, none, half, all_ = _of_one(mechanism, cells)
    people = reports * contrast * mean / spread
    information = people * contrast / mean
    estimate = (counts / reports - by_chance) / contrast
    square = 2 * (none + all_ - 2 * half)
    noise = np.array([none, all_ - none - square, square]) * (information**2 / reports)
    same = np.array([people, information, 0.0, *noise])
    sums = np.broadcast_to(same.reshape(-1, *[1] * counts.ndim), (SUMS, *counts.shape)).copy()
    sums[2] = information * estimate
    return sums


@dataclass(frozen=True)
class Tallies:
    """The sums for all pairs (a symmetric matrix over the categories of all attributes), for
    attributes that were reported alone, and for attributes from all views that hold them."""

    sizes: tuple[int, ...]
    n: int
    pairs: Array
    alone: Array
    margins: Array

    @classmethod
    def none(cls, sizes: Sequence[int]) -> "Tallies":
        """Of nobody."""
        width = sum(sizes)
        return cls(
            tuple(sizes),
            0,
            np.zeros((SUMS, width, width)),
            np.zeros((SUMS, width)),
            np.zeros((SUMS, width)),
        )

    def __sub__(self, other: "Tallies") -> "Tallies":
        """Of those who are not in the other."""
        return Tallies(
            self.sizes,
            self.n - other.n,
            self.pairs - other.pairs,
            self.alone - other.alone,
            self.margins - other.margins,
        )

    def __add__(self, other: "Tallies") -> "Tallies":
        return Tallies(
            self.sizes,
            self.n + other.n,
            self.pairs + other.pairs,
            self.alone + other.alone,
            self.margins + other.margins,
        )

    @cached_property
    def places(self) -> tuple[slice, ...]:
        """Where the categories of each attribute are."""
        ends = np.cumsum(self.sizes).tolist()
        return tuple(slice(e - k, e) for e, k in zip(ends, self.sizes, strict=True))

    @cached_property
    def _cells(self) -> Array:
        return np.repeat(np.array(self.sizes, dtype=np.float64), self.sizes)

    @cached_property
    def of_pairs(self) -> Told:
        """Of all pairs at once."""
        return _told(self.pairs, np.outer(self._cells, self._cells), self.n)

    @cached_property
    def of_those_alone(self) -> Told:
        """Of the attributes that were reported alone."""
        return _told(self.alone, self._cells, self.n)

    def pair(self, first: int, second: int) -> Told | None:
        """Of one pair; None if nobody reported it."""
        block = (self.places[first], self.places[second])
        told = self.of_pairs
        if not told.people[block].any():
            return None
        return Told(
            told.estimate[block], told.people[block], told.chance[block], told.noise[:, *block]
        )

    def margin(self, attribute: int) -> Told | None:
        """Of one attribute, from all views that hold it; None if nobody reported it."""
        sums = self.margins[:, self.places[attribute]]
        if not sums[0].any():
            return None
        return _told(sums, self._cells[self.places[attribute]], self.n)


def tallies_by_part(design: ViewDesign, reports: ViewReports) -> list[Tallies]:
    """The tallies of each part of the respondents.

    Who is in which part follows from the order of the reports alone: those of each view are
    shuffled, from a fixed seed, and dealt out in turn.
    """
    people = np.zeros(PARTS, dtype=np.int64)
    sums = [Tallies.none(design.sizes) for _ in range(PARTS)]
    for number, view in enumerate(design.views):
        reported = reports.reports[view]
        rng = np.random.default_rng([SEED, number])
        part = (rng.permutation(len(reported)) + number) % PARTS
        people += np.bincount(part, minlength=PARTS)
        for k, counts in enumerate(_counted(design, view, reported, part)):
            _add(sums[k], design.mechanisms[view], int((part == k).sum()), counts)
    return [replace(tally, n=n) for tally, n in zip(sums, people.tolist(), strict=True)]


Counts = dict[tuple[int, ...], Array]
"""By pair of attributes, or by the one attribute of a view."""


def _counted(
    design: ViewDesign, view: tuple[int, ...], reported: Codes, part: Codes
) -> list[Counts]:
    """How often the reports of a view hold each cell of its pairs, part by part."""
    tables: list[Counts] = [{} for _ in range(PARTS)]
    for wanted in itertools.combinations(view, min(len(view), 2)):
        shape = [design.sizes[a] for a in wanted]
        keys = part[:, np.newaxis] * math.prod(shape) + design.cells(view, wanted, reported)
        counts = np.bincount(keys.ravel(), minlength=PARTS * math.prod(shape))
        for table, mine in zip(tables, counts.reshape(PARTS, *shape), strict=True):
            table[wanted] = mine.astype(np.float64)
    return tables


def _add(tally: Tallies, mechanism: SubsetMechanism, reports: int, counts: Counts) -> None:
    """Add some reports of a view to the sums."""
    if not reports:
        return
    margins: Counts = {}
    for wanted, table in counts.items():
        places = [tally.places[a] for a in wanted]
        sums = _sums(mechanism, reports, table, table.size)
        if len(wanted) == 1:
            tally.alone[:, places[0]] += sums
            margins[wanted] = table
        else:
            tally.pairs[:, places[0], places[1]] += sums
            tally.pairs[:, places[1], places[0]] += sums.swapaxes(1, 2)
            margins[wanted[:1]], margins[wanted[1:]] = table.sum(axis=1), table.sum(axis=0)
    for (a,), table in margins.items():
        tally.margins[:, tally.places[a]] += _sums(mechanism, reports, table, table.size)
