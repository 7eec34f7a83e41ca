"""Medians over runs, and how sure differences of them are."""

import math
from collections.abc import Hashable, Mapping, Sequence
from functools import cached_property
from typing import Generic, TypeVar

import numpy as np

from mpc_rr.estimation.matrix import Array
from mpc_rr.reproduce.verdict import Comparison, measured

K = TypeVar("K", bound=Hashable)
RESAMPLES = 400
"""Their standard deviation is then known to about 4 %."""

AT_ONCE = 2_000_000
"""Numbers held in memory at once."""


class Medians(Generic[K]):
    """The median of each quantity over the runs.

    Standard errors are those of a bootstrap that draws whole runs: quantities measured on the same
    data or by the same query stay together, so differences of them are paired.
    """

    def __init__(self, results: Sequence[Mapping[K, float]]) -> None:
        self.keys = tuple(results[0])
        self.values: Array = np.array([[result[key] for key in self.keys] for result in results])
        self._found = dict(zip(self.keys, np.median(self.values, axis=0).tolist(), strict=True))

    def __getitem__(self, key: K) -> float:
        return float(self._found[key])

    @property
    def runs(self) -> int:
        """How many runs there were."""
        return len(self.values)

    def beside(self, others: "Medians[K]", names: tuple[str, str]) -> "Medians[tuple[str, K]]":
        """These and others from the same number of runs, a run of each together."""
        return Medians(
            [
                {(name, key): row[at] for name, row in zip(names, rows, strict=True)
                 for at, key in enumerate(self.keys)}
                for rows in zip(self.values.tolist(), others.values.tolist(), strict=True)
            ]
        )  # fmt: skip

    @cached_property
    def _drawn(self) -> Array:
        """Medians of runs drawn with replacement, a row each time."""
        rng = np.random.default_rng(RESAMPLES)
        drawn = rng.integers(0, self.runs, (RESAMPLES, self.runs))
        parts = np.array_split(drawn, min(RESAMPLES, 1 + self.values.size * RESAMPLES // AT_ONCE))
        return np.concatenate([np.median(self.values[rows], axis=1) for rows in parts])

    def margin(self, what: str, weights: Mapping[K, float], constant: float = 0.0) -> Comparison:
        """A weighted sum of medians plus a constant, compared with 0."""
        margin = constant + sum(weight * self[key] for key, weight in weights.items())
        columns = [self.keys.index(key) for key in weights]
        drawn = self._drawn[:, columns]
        error = math.inf
        if np.isfinite(drawn).all():
            error = float((drawn @ np.array(list(weights.values()))).std(ddof=1))
        return measured(what, margin, error, self.runs)

    def less(self, what: str, smaller: K, larger: K) -> Comparison:
        """That one median is less than another."""
        return self.margin(what, {larger: 1.0, smaller: -1.0})
