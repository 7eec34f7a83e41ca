"""What came out: the errors of every method, over the same people and questions."""

import csv
import importlib
import io
import math
import statistics
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from mpc_rr.comparing.questions import L1, PAIRS, Key, Width, tables_of
from mpc_rr.errors import InputError
from mpc_rr.reproduce.verdict import mean_margin

COLUMNS = (
    "epsilon", "method", "question", "error", "value", "standard_error", "relative_to_best",
    "best", "trusted", "central", "delta",
)  # fmt: skip
MISSED = 0.05
"""How often, at most, the best of all methods is not among those that are marked."""
FEWEST_TO_RANK = 5
"""Of fewer runs a standard error is too uncertain: nearly every method would be marked."""


@dataclass(frozen=True)
class Method:
    """A way from answers to tables, at one ε."""

    name: str
    epsilon: float
    what: str
    """What a respondent reports."""
    protocol: str | None
    """As a study file names it; None where none can ask for it."""
    trusted: str
    """Who must be trusted, so that ε holds."""
    central: bool
    """Whether ε is only of what is published; else it is of each answer, whoever sees it."""
    delta: float


@dataclass(frozen=True)
class Measured:
    """The error of one method on one question, over all runs."""

    epsilon: float
    method: str
    question: str
    error: str
    """Its kind: L1 (of tables), absolute (in people) or relative."""
    values: tuple[float, ...]
    """Of each run: its questions and people are those of all methods."""

    @property
    def value(self) -> float | None:
        """The mean over the runs; None where one has none (nobody is asked for)."""
        found = statistics.fmean(self.values)
        return found if math.isfinite(found) else None

    @property
    def standard_error(self) -> float | None:
        """Of the mean, over the runs; None of a single run."""
        if len(self.values) < 2 or self.value is None:
            return None
        return statistics.stdev(self.values) / math.sqrt(len(self.values))


@dataclass(frozen=True)
class NotRun:
    """A method that is not there, or leaves a question open; and why."""

    epsilon: float
    method: str
    why: str
    question: str | None = None
    """None: all of them."""


@dataclass(frozen=True)
class WeightsWorth:
    """What weights by RR-Adjustment were worth, over the runs that had any."""

    epsilon: float
    method: str
    runs: int
    converged: int
    """In so many runs."""
    missed: float
    """By so much a margin is missed at most, in probability, in the worst run."""
    effective: float
    """The mean effective sample size (Kish)."""


@dataclass(frozen=True)
class SideBySide:
    """Protocols side by side on the same people, at equal ε of a whole record."""

    names: tuple[str, ...]
    """The attributes."""
    left_out: Mapping[str, str]
    """Columns of the file that are no attributes, and why."""
    in_file: int
    people: int
    """So many of the file's records are taken; where they are more, some several times."""
    runs: int
    seed: int
    epsilons: tuple[float, ...]
    clusters: tuple[tuple[str, ...], ...]
    """Those that are given: found in the file itself, as if known from before."""
    widths: Mapping[int, Width]
    conditions: Mapping[str, int]
    """How many people meet each."""
    methods: tuple[Method, ...]
    measured: tuple[Measured, ...]
    not_run: tuple[NotRun, ...]
    weights: tuple[WeightsWorth, ...]

    def order(self, question: str, error: str, epsilon: float) -> list[Measured]:
        """The methods that answer a question, the smallest error first."""
        asked = [
            m
            for m in self.measured
            if (m.question, m.error, m.epsilon) == (question, error, epsilon)
            and m.value is not None
        ]
        return sorted(asked, key=lambda m: m.value or 0.0)

    def cannot_be_told(self, question: str, error: str, epsilon: float) -> set[str]:
        """Methods among which the best one is; none where the runs are too few to rank them.

        Left out is who errs more than the best of these runs, by paired t tests: each one-sided, at
        `MISSED` divided by the number of the others. The method that is truly best is left out only
        if some other one seems better, and all these chances together are at most `MISSED`.
        """
        found = self.order(question, error, epsilon)
        if not found or self.runs < FEWEST_TO_RANK:
            return set()
        best, *others = found
        level = MISSED / max(len(others), 1)
        worse = {
            other.method
            for other in others
            if mean_margin(
                other.method, [b - a for a, b in zip(best.values, other.values, strict=True)]
            ).chance <= level
        }  # fmt: skip
        return {m.method for m in found} - worse

    @property
    def keys(self) -> list[Key]:
        """All questions with their kinds of errors, in the order in which they were asked."""
        return list(dict.fromkeys((m.question, m.error) for m in self.measured))

    def method(self, name: str, epsilon: float) -> Method:
        """The facts of one method."""
        return next(m for m in self.methods if (m.name, m.epsilon) == (name, epsilon))

    def ranking(self, epsilon: float) -> list[str]:
        """Names of all methods, by the error of tables of pairs."""
        return [m.method for m in self.order(tables_of(PAIRS), L1, epsilon)]

    def rows(self) -> Iterator[dict[str, Any]]:
        """A row for each error, by question, the smallest error first."""
        for epsilon in self.epsilons:
            for question, error in self.keys:
                found = self.order(question, error, epsilon)
                least = found[0].value if found else None
                alike = self.cannot_be_told(question, error, epsilon)
                for m in found:
                    facts = self.method(m.method, epsilon)
                    over = None if not least or m.value is None else m.value / least
                    cells = (
                        epsilon, m.method, question, error, m.value, m.standard_error, over,
                        m.method in alike if alike else None, facts.trusted, facts.central,
                        facts.delta,
                    )  # fmt: skip
                    yield dict(zip(COLUMNS, cells, strict=True))

    def to_frame(self) -> Any:
        """The same as a pandas data frame; `InputError` where pandas is not installed."""
        try:
            pandas = importlib.import_module("pandas")
        except ImportError:
            raise InputError("a data frame needs pandas, which is not installed here") from None
        return pandas.DataFrame(list(self.rows()), columns=list(COLUMNS))

    def csv(self) -> str:
        """The same as CSV."""
        text = io.StringIO()
        writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(self.rows())
        return text.getvalue()

    def document(self) -> dict[str, Any]:
        """All of it, for programs."""
        return {
            "people": self.people,
            "in_file": self.in_file,
            "attributes": list(self.names),
            "left_out": dict(self.left_out),
            "runs": self.runs,
            "seed": self.seed,
            "epsilons": list(self.epsilons),
            "clusters_given": [list(cluster) for cluster in self.clusters],
            "tables": [
                {"attributes": width, "compared": len(found.asked), "of": found.of,
                 "without_those_with_more_cells_than_people": found.too_large}
                for width, found in self.widths.items()
            ],
            "conditions": dict(self.conditions),
            "methods": [vars(method) for method in self.methods],
            "errors": list(self.rows()),
            "not_run": [vars(absent) for absent in self.not_run],
            "weights": [vars(worth) for worth in self.weights],
        }  # fmt: skip
