"""Paper 002 (RRBA), Table 4: tests of independence, with Laplace noise and MCIndep beside them.

MCIndep is Gaboardi, Lim, Rogers and Vadhan (2016): counts with Laplace noise, the most likely
independent table, and a critical value from tables drawn from it with the same noise.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import chdtri

from mpc_rr.estimation.blocks import collect, independence_test, independent_version
from mpc_rr.estimation.distribution import project_to_simplex
from mpc_rr.estimation.matrix import Array
from mpc_rr.randomness import SeededRandomness
from mpc_rr.reproduce.result import PRINTED, Bars, Entry, Reproduction
from mpc_rr.reproduce.runs import OnProgress, repeat, shifted
from mpc_rr.reproduce.verdict import Claim, Comparison, mean_margin, share_above, share_below

PEOPLE = 8000
BLOCK = 250
WAYS = (2, 3, 4)
EPSILON = 0.25
LEVEL = 0.05
DEPENDENCE = 0.08
TESTED_WITH = 99
FEWEST_EXPECTED = 5
"""Where fewer are expected in a cell, independence is accepted."""
MOST_ALARMS = 0.1
NEAR = 0.1
RRBA = "RRBA"
SCALES = {"2/ε": False, "2·cells/ε": True}
"""Whether the scale of Laplace noise is multiplied by the number of cells."""
METHODS = (RRBA, *(f"{method} {scale}" for method in ("Laplace", "MCIndep") for scale in SCALES))
PRINTED_TESTS = {
    RRBA: ((96, 3), (94, 6), (93, 6)),
    "Laplace": ((68, 35), (55, 41), (50, 41)),
    "MCIndep": ((94, 5), (94, 7), (92, 9)),
}
"""How many of 100 dependent, and of 100 independent, tables were rejected, by ways."""
ASSUMED = (
    f"Assumed, the paper being silent: {PEOPLE:,} people, blocks of {BLOCK}, p = 0.5, a dependence "
    f"of {DEPENDENCE} with even margins, {TESTED_WITH} Monte Carlo tables."
)
NOISY = (
    "Laplace and MCIndep: a trusted collector adds Laplace noise to the counts, with the printed "
    f"ε = {EPSILON} and the scale that suffices (2/ε) or §7.4 prints (2·cells/ε). Laplace: χ² "
    "against the independent table with the true margins, with its usual critical value."
)
PRICE = (
    "The printed ε = 0.25 does not go with p = 0.5 by any formula; one answer costs "
    f"{math.log1p(4):.2f}, {math.log1p(8):.2f} and {math.log1p(16):.2f} at the first block."
)


# ── The tests ──────────────────────────────────────────────────────────────────────────────────


def dependent_table(ways: int, dependence: float) -> Array:
    """Two answers each, even margins, and a dependence of so much."""
    parity = np.indices((2,) * ways).sum(axis=0) % 2
    table: Array = 1 / 2**ways + np.where(parity, -dependence, dependence) / 2 ** (ways - 2)
    return table


def noisy_counts(counts: Array, by_cells: bool, rng: np.random.Generator) -> Array:
    """Counts with Laplace noise."""
    scale = (counts.size if by_cells else 1) * 2 / EPSILON
    return np.asarray(counts + rng.laplace(scale=scale, size=counts.shape))


def laplace_rejects(counts: Array, noisy: Array) -> bool:
    """Whether noisy counts are too far from the independent table with the true margins."""
    expected = independent_version(counts / PEOPLE) * PEOPLE
    freedom = counts.size - 1 - counts.ndim
    return bool(((noisy - expected) ** 2 / expected).sum() > chdtri(freedom, LEVEL))


def mcindep_rejects(noisy: Array, by_cells: bool, rng: np.random.Generator) -> bool:
    """Whether noisy counts are further from independence than noise and sampling make them."""
    found, null = _from_independence(noisy)
    if found is None:
        return False
    drawn = []
    for counts in rng.multinomial(PEOPLE, null.ravel(), size=TESTED_WITH):
        again, _ = _from_independence(noisy_counts(counts.reshape(noisy.shape), by_cells, rng))
        if again is None:
            return False
        drawn.append(again)
    critical = sorted(drawn)[math.ceil((TESTED_WITH + 1) * (1 - LEVEL)) - 1]
    return found > critical


def _from_independence(noisy: Array) -> tuple[float | None, Array]:
    """χ² of noisy counts, and the likely independent shares; None where too few are expected."""
    likely = project_to_simplex(noisy.ravel() / PEOPLE).reshape(noisy.shape)
    null = independent_version(likely)
    expected = null * PEOPLE
    if expected.min() < FEWEST_EXPECTED:
        return None, null
    return float(((noisy - expected) ** 2 / expected).sum()), null / null.sum()


@dataclass(frozen=True)
class OneTest:
    """One dependent and one independent table, tested by all methods."""

    ways: int

    def __call__(self, rng: np.random.Generator) -> list[tuple[bool, bool]]:
        """For each of `METHODS` whether the former, and the latter, was found to be dependent."""
        dependent, independent = (self._rejected(d, rng) for d in (DEPENDENCE, 0.0))
        return list(zip(dependent, independent, strict=True))

    def _rejected(self, dependence: float, rng: np.random.Generator) -> list[bool]:
        table = dependent_table(self.ways, dependence)
        cells = rng.choice(table.size, size=PEOPLE, p=table.ravel() / table.sum())
        run = collect(cells, table.size, 0.5, BLOCK, SeededRandomness.from_generator(rng))
        test = independence_test(table.shape, run.answered, rng.random, samples=TESTED_WITH)
        counts = np.bincount(cells, minlength=table.size).reshape(table.shape).astype(np.float64)
        noisy = [noisy_counts(counts, by_cells, rng) for by_cells in SCALES.values()]
        return [
            test.rejected,
            *(laplace_rejects(counts, told) for told in noisy),
            *(
                mcindep_rejects(told, by_cells, rng)
                for told, by_cells in zip(noisy, SCALES.values(), strict=True)
            ),
        ]


# ── What came out ──────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Tested:
    """A row: a method on tables of so many attributes, and whether it was right in each run."""

    method: str
    ways: int
    power: Array
    """Whether the dependent table was rejected."""
    alarms: Array
    """Whether the independent one was."""

    @property
    def name(self) -> str:
        """Of the row."""
        return f"{self.method}, {self.ways}-way"

    @property
    def accuracy(self) -> Array:
        """Of each run, the share of right decisions."""
        return np.asarray((self.power + 1 - self.alarms) / 2)

    @property
    def printed(self) -> tuple[int, int]:
        """How many of 100 dependent, and independent, tables the paper rejects."""
        return PRINTED_TESTS[self.method.split()[0]][WAYS.index(self.ways)]

    @property
    def printed_accuracy(self) -> float:
        """In the paper, as a share."""
        power, alarms = self.printed
        return (power + 100 - alarms) / 200

    def entries(self) -> tuple[Entry, ...]:
        """As shown, in %."""
        ours = (100 * float(part.mean()) for part in (self.accuracy, self.power, self.alarms))
        printed = (100 * self.printed_accuracy, *map(float, self.printed))
        pairs = zip(printed, ours, strict=True)
        return (self.name, *(round(value, 1) for pair in pairs for value in pair))

    def near(self) -> Comparison:
        """That the accuracy is near the printed; the nearer limit decides."""
        sign = 1 if self.accuracy.mean() >= self.printed_accuracy else -1
        return mean_margin(self.name, NEAR - sign * (self.accuracy - self.printed_accuracy))


def table4(runs: int, seed: int, progress: OnProgress) -> Reproduction:
    """Table 4: how often independence is rejected, rightly and wrongly."""
    rows: list[Tested] = []
    for number, ways in enumerate(WAYS):
        done = shifted(progress, number * runs, len(WAYS) * runs)
        found = np.array(repeat(OneTest(ways), runs, seed + ways, done), dtype=np.float64)
        rows += [
            Tested(method, ways, found[:, k, 0], found[:, k, 1]) for k, method in enumerate(METHODS)
        ]
    rows.sort(key=lambda row: METHODS.index(row.method))
    what = ("accuracy", "power", "false alarms")
    return Reproduction(
        "RRBA, Table 4: independence tests",
        ("method and table", *(f"{name} {of} %" for name in what for of in (PRINTED, "ours"))),
        tuple(row.entries() for row in rows),
        Bars(
            "accuracy in %",
            [row.name for row in rows],
            {
                PRINTED: [100 * row.printed_accuracy for row in rows],
                "ours": [100 * float(row.accuracy.mean()) for row in rows],
            },
        ),
        _claims(rows),
        (ASSUMED, NOISY, PRICE),
    )


def _claims(rows: Sequence[Tested]) -> tuple[Claim, ...]:
    by_method = {m: [row for row in rows if row.method == m] for m in METHODS}
    ours = by_method.pop(RRBA)
    claims = [
        Claim("RRBA: accuracy is above the printed.", [_above_printed(row) for row in ours]),
        Claim(
            "RRBA: false alarms stay below twice the nominal 5 %.",
            [share_below(row.name, *_times(row.alarms), MOST_ALARMS) for row in ours],
        ),
    ]
    for method, theirs in by_method.items():
        better = [
            mean_margin(f"{mine.ways}-way", mine.accuracy - other.accuracy)
            for mine, other in zip(ours, theirs, strict=True)
        ]
        near = [row.near() for row in theirs]
        claims.append(Claim(f"RRBA is more accurate than {method}.", better))
        claims.append(Claim(f"{method}: accuracy is within 10 points of the printed.", near))
    return tuple(claims)


def _times(happened: Array) -> tuple[int, int]:
    return int(happened.sum()), len(happened)


def _above_printed(row: Tested) -> Comparison:
    right, runs = round(2 * float(row.accuracy.sum())), len(row.accuracy)
    return replace(share_above(row.name, right, 2 * runs, row.printed_accuracy), runs=runs)
