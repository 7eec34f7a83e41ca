"""Paper 000, Figures 1 to 3."""

from collections.abc import Callable, Mapping, Sequence
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
from mpc_rr.reproduce.queries import (
    Pair,
    absolute_error,
    joint_counts,
    random_pair,
    random_subset,
    relative_error,
)
from mpc_rr.reproduce.result import Claim, Lines, Reproduction
from mpc_rr.reproduce.runs import OnProgress, repeat

COVERAGES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
Errors = dict[tuple[str, float], float]
"""By method and coverage."""


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
            Claim("√B grows slowly with r.", points[-1][1] < 3 * points[0][1]),
            Claim("√B is above 200 % from a few categories on.", points[1][1] > 2),
        ),
        ("The figure has no printed numbers.",),
    )


# ── Figure 2 ───────────────────────────────────────────────────────────────────────────────────


@dataclass
class RandomizedRun:
    """One run at p = 0.7: the randomized data as they are, and RR-Independent."""

    records: Records
    keep: float = 0.7

    def __call__(self, rng: np.random.Generator) -> dict[tuple[str, str, float], float]:
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
    medians = _medians(repeat(RandomizedRun(records), runs, seed, progress))
    methods = ("Randomized", "RR-Independent")
    absolute = {c: medians["absolute", "Randomized", c] for c in COVERAGES}
    claims = (
        Claim(
            "RR-Independent errs less than Randomized at every coverage.",
            all(
                medians[kind, methods[1], c] < medians[kind, methods[0], c]
                for kind in ("absolute", "relative")
                for c in COVERAGES
            ),
        ),
        Claim(
            "The absolute error peaks at a coverage of a half.",
            max(absolute, key=lambda c: absolute[c]) in (0.4, 0.5, 0.6),
        ),
        Claim(
            "The relative error falls as the coverage grows.",
            medians["relative", methods[1], 0.1]
            > medians["relative", methods[1], 0.5]
            > medians["relative", methods[1], 0.9],
        ),
    )
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
        claims,
        ("The figure has no printed numbers.",),
    )


def _medians(results: Sequence[Mapping[tuple[str, str, float], float]]) -> dict[
    tuple[str, str, float], float
]:  # fmt: skip
    return {key: float(np.median([result[key] for result in results])) for key in results[0]}


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
    "The last two methods are ours; latent classes are better still (docs/estimation.md).",
)


@dataclass
class MethodsRun:
    """One run of all methods at all p."""

    records: Records

    def __call__(self, rng: np.random.Generator) -> dict[tuple[str, str, float], float]:
        """Relative errors by p (as text), method and coverage, each on a pair of its own."""
        errors: dict[tuple[str, str, float], float] = {}
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
    medians = _medians(repeat(MethodsRun(records), runs, seed, progress))
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


def _claims_of_section_65(medians: Mapping[tuple[str, str, float], float]) -> tuple[Claim, ...]:
    def error(p: float, method: str, coverage: float) -> float:
        return medians[str(p), method, coverage]

    def at(p: float) -> str:
        errors = (f"{m} {error(p, m, 0.1):.3f}" for m in PAPERS_METHODS)
        return f"p = {p}, σ = 0.1: {', '.join(errors)}"

    small = all(
        error(p, "RR-Independent", 0.1) <= min(error(p, m, 0.1) for m in PAPERS_METHODS)
        for p in (0.1, 0.3)
    )
    spread = max(error(p, m, c) for p in (0.5, 0.7) for m in PAPERS_METHODS for c in COVERAGES[2:])
    clusters = all(
        error(p, "RR-Clusters", c) < error(p, "RR-Independent", c)
        for p in (0.5, 0.7)
        for c in (0.1, 0.2)
    )
    adjusted = all(
        error(p, f"{m} + Adjustment", c) < error(p, m, c)
        for p in (0.5, 0.7)
        for m in ("RR-Independent", "RR-Clusters")
        for c in (0.1, 0.2)
    )
    return (
        Claim(f"p ≤ 0.3: RR-Independent is the best of the four ({at(0.1)}; {at(0.3)}).", small),
        Claim(
            f"p ≥ 0.5, σ ≥ 0.3: all methods err little (at most {spread:.1%} here; under 10 % "
            "counts as little).",
            spread < 0.1,
        ),
        Claim("p ≥ 0.5, σ < 0.3: RR-Clusters is better than RR-Independent.", clusters),
        Claim(f"p ≥ 0.5, σ < 0.3: adjustment helps after both ({at(0.5)}; {at(0.7)}).", adjusted),
    )
