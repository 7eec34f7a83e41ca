"""What is asked of everything that stands side by side, and how wrong the answers are."""

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mpc_rr.errors import InputError
from mpc_rr.estimation.combinations import Combination
from mpc_rr.estimation.conditions import Cells
from mpc_rr.estimation.matrix import Array, Codes
from mpc_rr.planning.publishing import Told
from mpc_rr.reproduce.adult import Records
from mpc_rr.reproduce.queries import (
    COVERAGES,
    absolute_error,
    cell_errors,
    joint_counts,
    random_pair,
    random_subset,
    relative_error,
)

PAIRS = 2
WIDTHS = (PAIRS, 3, 4)
MOST_PAIRS = 1_000
MOST_WIDER = 30
"""So many tables of each width are compared at most."""
QUERIES = 100
"""So many random queries for each σ are asked in each run."""
TRIES = 200
L1, ABSOLUTE, RELATIVE = "L1", "absolute", "relative"
VALUES = "cells of pairs"
Key = tuple[str, str]
"""A question, and the kind of its error."""


def tables_of(width: int) -> str:
    """The question for tables of so many attributes."""
    return f"tables of {width}"


def queries_over(coverage: float) -> str:
    """The question for random queries over this share of a table's cells."""
    return f"pair queries, σ = {coverage:g}"


def where(condition: str) -> str:
    """The question of a condition."""
    return f"where {condition}"


@dataclass(frozen=True)
class Width:
    """The tables of one width that are compared."""

    asked: tuple[Combination, ...]
    of: int
    """How many there are."""
    too_large: bool
    """Whether tables with more cells than people were passed over."""


def widths_of(sizes: tuple[int, ...], people: int, seed: int) -> dict[int, Width]:
    """The tables to compare, drawn at random where they are too many."""
    rng = np.random.default_rng((seed, 1))
    found = {}
    for width in WIDTHS:
        if width > len(sizes):
            continue
        of = math.comb(len(sizes), width)
        most = MOST_PAIRS if width == PAIRS else MOST_WIDER
        if of <= TRIES * most:
            drawn = list(itertools.combinations(range(len(sizes)), width))
            rng.shuffle(drawn)
        else:
            picks = (rng.choice(len(sizes), width, replace=False) for _ in range(TRIES * most))
            drawn = list(dict.fromkeys(tuple(sorted(pick.tolist())) for pick in picks))
        small = [c for c in drawn if width == PAIRS or _cells(sizes, c) <= people]
        chosen = tuple(sorted(tuple(map(int, c)) for c in small[:most]))
        found[width] = Width(chosen, of, len(small) < len(drawn))
    return found


def _cells(sizes: tuple[int, ...], attributes: Combination) -> int:
    return math.prod(sizes[a] for a in attributes)


@dataclass(frozen=True)
class Questions:
    """All that is asked, of the same people in every run."""

    records: Records
    widths: Mapping[int, Width]
    conditions: Mapping[str, Cells]
    seed: int

    @cached_property
    def _true(self) -> dict[Combination, Codes]:
        """Counts, as they are asked for."""
        return {}

    def truth(self, attributes: Combination) -> Codes:
        """How many have each combination."""
        if attributes not in self._true:
            self._true[attributes] = joint_counts(self.records, attributes)
        return self._true[attributes]

    def errors(self, told: Told, run: int) -> tuple[dict[Key, float], dict[str, str]]:
        """The errors of what a method told in a run; and the questions it leaves open, and why.

        Every method is asked the same random queries in the same run.
        """
        pairs = told.pair_tables
        found = self._of_pairs(pairs) | self._of_queries(pairs, run)
        untold: dict[str, str] = {}
        for width, tables in self.widths.items():
            if width > PAIRS and tables.asked:
                try:
                    distances = [self._distance(told.table(c), c) for c in tables.asked]
                except InputError as error:
                    untold[tables_of(width)] = str(error)
                else:
                    found[tables_of(width), L1] = float(np.mean(distances))
        for text, cells in self.conditions.items():
            try:
                found |= self._of_condition(text, cells, told)
            except InputError as error:
                untold[where(text)] = str(error)
        return found, untold

    def _distance(self, table: Array, attributes: Combination) -> float:
        truth = self.truth(attributes)
        return float(abs(table - truth / truth.sum()).sum())

    def _of_pairs(self, pairs: Mapping[tuple[int, int], Array]) -> dict[Key, float]:
        """The mean L1 error of tables, and the median relative error of their cells (003 §6.4)."""
        asked = [(i, j) for i, j in self.widths[PAIRS].asked]
        distances = [self._distance(pairs[pair], pair) for pair in asked]
        n = len(self.records.codes)
        cells = np.concatenate(
            [cell_errors(pairs[pair] * n, self.truth(pair)).ravel() for pair in asked]
        )
        return {
            (tables_of(PAIRS), L1): float(np.mean(distances)),
            (VALUES, RELATIVE): float(np.nanmedian(cells)),
        }

    def _of_queries(self, pairs: Mapping[tuple[int, int], Array], run: int) -> dict[Key, float]:
        """The median error of random pair queries (000 §6.5)."""
        rng = np.random.default_rng((self.seed, 2, run))
        errors: dict[Key, list[float]] = {}
        for _ in range(QUERIES):
            pair = random_pair(len(self.records.sizes), rng)
            truth = self.truth(pair)
            for coverage in COVERAGES:
                subset, question = random_subset(truth.shape, coverage, rng), queries_over(coverage)
                absolute = absolute_error(pairs[pair], truth, subset)
                relative = relative_error(pairs[pair], truth, subset)
                errors.setdefault((question, ABSOLUTE), []).append(absolute)
                errors.setdefault((question, RELATIVE), []).append(relative)
        return {key: float(np.median(values)) for key, values in errors.items()}

    def _of_condition(self, text: str, cells: Cells, told: Told) -> dict[Key, float]:
        met, n = self.meeting(cells), len(self.records.codes)
        off = abs(told.share(cells) * n - met)
        key = where(text)
        return {(key, ABSOLUTE): off, (key, RELATIVE): off / met if met else math.inf}

    def meeting(self, cells: Cells) -> int:
        """How many of the people meet a condition."""
        classes = [
            which[self.records.codes[:, a]]
            for a, which in zip(cells.attributes, cells.classes, strict=True)
        ]
        return int(cells.meets[tuple(classes)].sum())
