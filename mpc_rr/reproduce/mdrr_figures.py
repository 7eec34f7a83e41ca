"""Paper 000, Figures 1 to 3."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mpc_rr.estimation.clusters import merge_clusters
from mpc_rr.estimation.dependence import dependences_of_records
from mpc_rr.estimation.designs import Design, Fitted, rr_clusters, rr_independent, rr_joint
from mpc_rr.estimation.distribution import absolute_error_factor
from mpc_rr.estimation.matrix import Array, KeepOrUniform
from mpc_rr.estimation.raking import adjust
from mpc_rr.estimation.tables import shrunk_pair
from mpc_rr.randomness import SeededRandomness
from mpc_rr.reproduce.adult import Records
from mpc_rr.reproduce.mdrr_tables import KEEPS
from mpc_rr.reproduce.medians import Medians
from mpc_rr.reproduce.queries import (
    COVERAGES,
    Pair,
    absolute_error,
    joint_counts,
    random_pair,
    random_subset,
    relative_error,
)
from mpc_rr.reproduce.result import Lines, Reproduction
from mpc_rr.reproduce.runs import OnProgress, repeat
from mpc_rr.reproduce.verdict import Claim, Comparison, exactly

LITTLE = 0.1
Key = tuple[str, str, float]
"""Kind of error or p, method, coverage."""


def figure1() -> Reproduction:
    """Figure 1: the factor √B by the number of categories."""
    sizes = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000]
    points = [(float(r), absolute_error_factor(r, 0.05)) for r in sizes]
    return Reproduction(
        "Multi-dimensional randomized response, Figure 1: the factor √B at α = 0.05",
        ("categories", "√B"),
        tuple((r, round(value, 3)) for r, value in points),
        Lines("categories r", "√B", {"": {"√B": points}}),
        (
            Claim(
                "√B grows slowly with r (less than threefold up to 10,000).",
                [exactly("r = 10,000", 3 * points[0][1] - points[-1][1])],
            ),
            Claim(
                "√B is above 200 % from a few categories on.",
                [exactly(f"r = {r:g}", value - 2) for r, value in points[1:]],
            ),
        ),
        ("The figure has no printed numbers.",),
    )


# ── Figure 2 ───────────────────────────────────────────────────────────────────────────────────


@dataclass
class RandomizedRun:
    """One run at p = 0.7: the randomized data as they are, and RR-Independent."""

    records: Records
    keep: float = 0.7

    def __call__(self, rng: np.random.Generator) -> dict[Key, float]:
        """Errors by kind, method and coverage."""
        pair = random_pair(len(self.records.sizes), rng)
        sizes = tuple(self.records.sizes[a] for a in pair)
        design = rr_independent(sizes, self.keep)
        fitted = Fitted(
            design,
            design.randomize(
                self.records.codes[:, list(pair)], SeededRandomness.from_generator(rng)
            ),
        )
        truth = joint_counts(self.records, pair)
        tables = {
            "Randomized": fitted.counts((0, 1)) / fitted.n,
            "RR-Independent": fitted.table((0, 1)),
        }
        errors = {}
        for coverage in COVERAGES:
            subset = random_subset(truth.shape, coverage, rng)
            for method, table in tables.items():
                errors["absolute", method, coverage] = absolute_error(table, truth, subset)
                errors["relative", method, coverage] = relative_error(table, truth, subset)
        return errors


def figure2(records: Records, runs: int, seed: int, progress: OnProgress) -> Reproduction:
    """Figure 2: absolute and relative error over the coverage, p = 0.7."""
    medians = Medians(repeat(RandomizedRun(records), runs, seed, progress))
    methods = ("Randomized", "RR-Independent")
    rows = tuple(
        (c, *(round(medians[kind, m, c], 4) for kind in ("absolute", "relative") for m in methods))
        for c in COVERAGES
    )
    panels = {
        kind: {m: [(c, medians[kind, m, c]) for c in COVERAGES] for m in methods}
        for kind in ("absolute", "relative")
    }
    return Reproduction(
        "Multi-dimensional randomized response, Figure 2: p = 0.7",
        ("coverage", *(f"{m}, {kind}" for kind in ("absolute", "relative") for m in methods)),
        rows,
        Lines("coverage σ", "median error", panels),
        _claims_of_figure_2(medians),
        ("The figure has no printed numbers.",),
    )


def _claims_of_figure_2(medians: Medians[Key]) -> tuple[Claim, ...]:
    methods = ("Randomized", "RR-Independent")
    better = [
        medians.less(f"σ = {c}, {kind} error", (kind, "RR-Independent", c), (kind, "Randomized", c))
        for kind in ("absolute", "relative")
        for c in COVERAGES
    ]
    return (
        Claim("RR-Independent errs less than Randomized at every coverage.", better),
        Claim(
            "The absolute error peaks at a coverage of a half (compared with 0.1 to 0.3 and 0.7 to "
            "0.9).",
            [
                medians.less(f"σ = {c}, {m}", ("absolute", m, c), ("absolute", m, 0.5))
                for m in methods
                for c in COVERAGES
                if abs(c - 0.5) > 0.15
            ],
        ),
        Claim(
            "The relative error falls as the coverage grows.",
            [
                medians.less(
                    f"σ from {less} to {more}, {m}", ("relative", m, more), ("relative", m, less)
                )
                for m in methods
                for less, more in ((0.1, 0.5), (0.5, 0.9))
            ],
        ),
    )


# ── Figure 3 ───────────────────────────────────────────────────────────────────────────────────

PAPERS_METHODS = (
    "RR-Independent",
    "RR-Clusters",
    "RR-Independent + Adjustment",
    "RR-Clusters + Adjustment",
)
OUR_METHODS = ("RR-Independent, shrunk pairs", "RR-Joint, closed form")
BEST_SETTINGS = {0.1: (50, 0.3), 0.3: (50, 0.3), 0.5: (50, 0.1), 0.7: (100, 0.3)}
"""(T_v, T_d) with the smallest error in the printed Table 1, as the paper takes them."""
FIGURE_3_REMARKS = (
    "The figure has no printed numbers. T_v and T_d as the paper takes them from its Table 1.",
    "Dependences are those of the true data.",
    "The last two methods are ours; docs/estimation.md compares more.",
)


@dataclass
class MethodsRun:
    """One run of all methods at all p."""

    records: Records

    def __call__(self, rng: np.random.Generator) -> dict[Key, float]:
        """Relative errors by p (as text), method and coverage, each on a pair of its own."""
        errors: dict[Key, float] = {}
        for keep in KEEPS:
            pair = random_pair(len(self.records.sizes), rng)
            truth = joint_counts(self.records, pair)
            tables = {
                name: table(pair)
                for name, table in self._methods(keep, rng).items()
            }  # fmt: skip
            for coverage in COVERAGES:
                subset = random_subset(truth.shape, coverage, rng)
                for name, table in tables.items():
                    errors[str(keep), name, coverage] = relative_error(table, truth, subset)
        return errors

    def _methods(self, keep: float, rng: np.random.Generator) -> dict[str, Callable[[Pair], Array]]:
        sizes = self.records.sizes
        independent = rr_independent(sizes, keep)
        clustered = self._clustered(keep)
        joint = rr_joint(sizes, independent.epsilon)
        alone, grouped, whole = (
            Fitted(
                design, design.randomize(self.records.codes, SeededRandomness.from_generator(rng))
            )
            for design in (independent, clustered, joint)
        )
        return {
            "RR-Independent": alone.table,
            "RR-Clusters": grouped.table,
            "RR-Independent + Adjustment": lambda pair: _adjusted(alone, pair),
            "RR-Clusters + Adjustment": lambda pair: _adjusted(grouped, pair),
            "RR-Independent, shrunk pairs": lambda pair: shrunk_pair(alone, *pair),
            "RR-Joint, closed form": whole.small_table,
        }

    def _clustered(self, keep: float) -> Design:
        most, least = BEST_SETTINGS[keep]
        dependences = dependences_of_records(self.records.codes, self.records.sizes)
        clusters = merge_clusters(dependences, self.records.sizes, most, least)
        epsilons = [KeepOrUniform(size, keep).epsilon for size in self.records.sizes]
        return rr_clusters(self.records.sizes, clusters, epsilons)


def _adjusted(fitted: Fitted, pair: Pair) -> Array:
    """RR-Adjustment to the distributions of all clusters."""
    margins = [(cluster, fitted.cluster_joint(cluster)) for cluster in fitted.design.clusters]
    adjustment = adjust(fitted.reported, margins, fitted.design.sizes, tolerance=1e-6)
    return adjustment.table(pair, fitted.design.sizes)


def figure3(records: Records, runs: int, seed: int, progress: OnProgress) -> Reproduction:
    """Figure 3: relative error of all methods over the coverage, for each p."""
    medians = Medians(repeat(MethodsRun(records), runs, seed, progress))
    methods = (*PAPERS_METHODS, *OUR_METHODS)
    rows = tuple(
        (p, c, *(round(medians[str(p), m, c], 4) for m in methods))
        for p in KEEPS
        for c in COVERAGES
    )
    panels = {
        f"p = {p}": {m: [(c, medians[str(p), m, c]) for c in COVERAGES] for m in methods}
        for p in KEEPS
    }
    return Reproduction(
        "Multi-dimensional randomized response, Figure 3: relative error of all methods",
        ("p", "coverage", *methods),
        rows,
        Lines("coverage σ", "median relative error", panels),
        _claims_of_section_65(medians),
        FIGURE_3_REMARKS,
    )


def _claims_of_section_65(medians: Medians[Key]) -> tuple[Claim, ...]:
    def better(p: float, coverage: float, method: str, other: str) -> Comparison:
        what = f"p = {p}, σ = {coverage}, {method} against {other}"
        key, other_key = ((str(p), name, coverage) for name in (method, other))
        return medians.less(what, key, other_key)

    small = [
        better(p, 0.1, "RR-Independent", other) for p in (0.1, 0.3) for other in PAPERS_METHODS[1:]
    ]
    little = [
        medians.margin(f"p = {p}, σ = {c}, {m}", {(str(p), m, c): -1.0}, LITTLE)
        for p in (0.5, 0.7)
        for m in PAPERS_METHODS
        for c in COVERAGES[2:]
    ]
    low = [(p, c) for p in (0.5, 0.7) for c in COVERAGES[:2]]
    clusters = [better(p, c, "RR-Clusters", "RR-Independent") for p, c in low]
    adjusted = [better(p, c, f"{m} + Adjustment", m) for m in PAPERS_METHODS[:2] for p, c in low]
    return (
        Claim("p ≤ 0.3, σ = 0.1: RR-Independent is the best of the four.", small),
        Claim(f"p ≥ 0.5, σ ≥ 0.3: all four methods err little (under {LITTLE:.0%}).", little),
        Claim("p ≥ 0.5, σ < 0.3: RR-Clusters is better than RR-Independent.", clusters),
        Claim("p ≥ 0.5, σ < 0.3: adjustment helps after both.", adjusted),
    )
