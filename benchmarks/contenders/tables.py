"""Tables of records, how far an estimate is from them, and what all contenders are."""

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.harness.cost import Cost
from mpc_rr.estimation.matrix import Array, Codes

Attributes = tuple[int, ...]
Table = Callable[[Attributes], Array | None]
"""The table of some attributes, in rising order; None where a contender cannot tell it."""
MOST_TABLES = {2: 10_000, 3: 20, 4: 10}
"""Of each width, so many are compared: drawn once for all, by the number of attributes alone."""


@dataclass(frozen=True)
class Contender:
    """How answers are collected, and what is made of them."""

    name: str
    collect: Callable[[Codes, Sequence[int], Any, np.random.Generator], Any]
    """Of records, sizes and a budget or design; those with the same one read the same reports."""
    fit: Callable[[Any], Table]


def true_table(codes: Codes, sizes: Sequence[int], attributes: Attributes) -> Array:
    """The shares among these records."""
    shape = tuple(sizes[a] for a in attributes)
    cells = np.ravel_multi_index(tuple(codes[:, a] for a in attributes), shape)
    counts = np.bincount(cells, minlength=math.prod(shape))
    return np.asarray(counts.reshape(shape) / len(codes))


def product(margins: Sequence[Array], attributes: Attributes) -> Array:
    """The table of independent attributes."""
    table = np.ones(())
    for a in attributes:
        table = np.multiply.outer(table, margins[a])
    return table


def compared_tables(attributes: int, width: int) -> list[Attributes]:
    """All of one width, or some that are the same in every run."""
    every = list(itertools.combinations(range(attributes), width))
    most = MOST_TABLES[width]
    if len(every) <= most:
        return every
    return [every[k] for k in np.random.default_rng(1).choice(len(every), most, replace=False)]


def errors(table: Table, truths: dict[Attributes, Array]) -> list[float] | None:
    """The L1 error of each table; None if one cannot be told."""
    found = []
    for attributes, truth in truths.items():
        estimate = table(attributes)
        if estimate is None:
            return None
        found.append(float(abs(estimate - truth).sum()))
    return found


class Fits:
    """One run: what each contender makes of the answers of the same people.

    Each way of collecting draws from the same seed, once for all who read its reports.
    """

    def __init__(self, codes: Codes, sizes: Sequence[int], seed: np.random.SeedSequence) -> None:
        self.codes, self.sizes, self._seed = codes, tuple(sizes), seed
        self._reports: dict[Any, Any] = {}
        self.fit_s = 0.0
        """Processor time of the latest fit, and of all its tables of pairs."""

    def fit(self, contender: Contender, budget: Any) -> Table:
        """The tables of one contender."""
        if contender.collect not in self._reports:
            rng = np.random.default_rng(self._seed)
            self._reports[contender.collect] = contender.collect(
                self.codes, self.sizes, budget, rng
            )
        with Cost() as cost:
            table = contender.fit(self._reports[contender.collect])
            for pair in itertools.combinations(range(len(self.sizes)), 2):
                table(pair)
        self.fit_s = cost.processor_s
        return table
