"""Paper 003: Table 1 and Figures 1 to 3."""

from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import numpy as np

from mpc_rr.estimation.clusters import Clusters, dependence_graph, power_iteration_clusters
from mpc_rr.estimation.dependence import cramers_v
from mpc_rr.estimation.designs import Design, Fitted
from mpc_rr.estimation.matrix import Array, DistanceWeighted
from mpc_rr.estimation.planning import pairs_of
from mpc_rr.randomness import SeededRandomness
from mpc_rr.reproduce.adult import Records
from mpc_rr.reproduce.queries import cell_errors, joint_counts
from mpc_rr.reproduce.result import Bars, HeatMap, Reproduction
from mpc_rr.reproduce.runs import OnProgress, repeat
from mpc_rr.reproduce.verdict import Claim, exactly, mean_margin

TABLE_CLUSTERS = {
    0.9: (((9, 16), 7.309), ((5, 42), 7.735), ((7, 15, 6, 2, 2), 11.975)),
    0.8: (((9, 16, 5, 42), 11.844), ((15, 2), 5.171), ((7, 6, 2), 6.234)),
    0.7: (((16, 15, 2), 7.337), ((9, 5, 42), 8.569), ((7, 6, 2), 5.695)),
}
"""Sizes of the attributes in each cluster of Table 1, and the printed ε.

The paper prints only how many attributes a cluster has. The printed ε leave one composition for
each row, up to exchanging sex and income, which both have two categories.
"""
ROUNDING = 1.01e-3
STAYS = (0.9, 0.8, 0.7)
CLUSTERS = 3


def table1() -> Reproduction:
    """Table 1: ε of the clusters under distance-weighted randomization."""
    rows = tuple(
        (f"p = {stay}, sizes {sizes}", printed, round(DistanceWeighted(sizes, stay).epsilon, 3))
        for stay, clusters in TABLE_CLUSTERS.items()
        for sizes, printed in clusters
    )
    claim = Claim(
        "All nine ε are as printed, to rounding.",
        [exactly(label, ROUNDING - abs(printed - ours)) for label, printed, ours in rows],
    )
    return Reproduction(
        "Statistical input confidentiality, Table 1: ε of the clusters",
        ("cluster", "printed", "ours"),
        rows,
        Bars(
            "ε",
            [label for label, _, _ in rows],
            {"printed": [row[1] for row in rows], "ours": [row[2] for row in rows]},
        ),
        (claim,),
        ("The third at p = 0.9 is 10.434.",),
    )


@dataclass
class HistogramRun:
    """One run of Section 6.4 for one p: clusters from randomized pairs, RR on each cluster."""

    records: Records
    stay: float
    as_printed: bool

    def __call__(self, rng: np.random.Generator) -> tuple[Array, Array, Clusters]:
        """Relative errors in % of all pairs of values, randomized and estimated; the clusters."""
        clusters = self._clusters(rng)
        sizes = self.records.sizes
        matrices = tuple(
            DistanceWeighted([sizes[a] for a in cluster], self.stay) for cluster in clusters
        )
        design = Design(sizes, tuple(clusters), matrices)
        fitted = Fitted(
            design, design.randomize(self.records.codes, SeededRandomness.from_generator(rng))
        )
        edges = np.cumsum([0, *sizes])
        raw, estimated = (np.full((edges[-1], edges[-1]), np.nan) for _ in range(2))
        for i, j in pairs_of(sizes):
            truth = joint_counts(self.records, (i, j))
            for picture, counts in (
                (raw, fitted.counts((i, j))),
                (estimated, fitted.table((i, j)) * fitted.n),
            ):
                errors = 100 * cell_errors(counts, truth)
                picture[edges[i] : edges[i + 1], edges[j] : edges[j + 1]] = errors
                picture[edges[j] : edges[j + 1], edges[i] : edges[i + 1]] = errors.T
        return raw, estimated, clusters

    def _clusters(self, rng: np.random.Generator) -> Clusters:
        """Power iteration clustering on V over pairs randomized together (§6.2)."""
        sizes, names = self.records.sizes, self.records.names
        dependences = np.zeros((len(sizes), len(sizes)))
        for i, j in pairs_of(sizes):
            matrix = DistanceWeighted((sizes[i], sizes[j]), self.stay)
            joint = self.records.codes[:, i] * sizes[j] + self.records.codes[:, j]
            reported = matrix.randomize(joint, SeededRandomness.from_generator(rng))
            table = np.bincount(reported, minlength=matrix.size).reshape(sizes[i], sizes[j])
            dependences[i, j] = dependences[j, i] = cramers_v(table).value or 0.0
        graph = dependence_graph(names, dependences)
        groups = power_iteration_clusters(graph, CLUSTERS, as_printed=self.as_printed)
        return sorted(tuple(sorted(names.index(name) for name in group)) for group in groups)


def figure(
    number: int, records: Records, runs: int, seed: int, progress: OnProgress
) -> Reproduction:
    """Figures 1 to 3: relative errors of all pairs of values, at p = 0.9, 0.8, 0.7."""
    settings = [(stay, printed) for stay in STAYS for printed in AFFINITIES]
    rows: list[tuple[str | float, ...]] = []
    pictures: dict[tuple[float, bool], tuple[Array, Array]] = {}
    medians: dict[tuple[float, bool], Array] = {}
    for done, (stay, printed) in enumerate(settings):
        shifted = partial(_part_of, progress, done, len(settings))
        results = repeat(HistogramRun(records, stay, printed), runs, seed, shifted)
        pictures[stay, printed] = (
            np.mean([result[0] for result in results], axis=0),
            np.mean([result[1] for result in results], axis=0),
        )
        found = np.array([[np.nanmedian(errors) for errors in result[:2]] for result in results])
        medians[stay, printed] = found[:, 0]
        means = (round(float(mean), 1) for mean in found.mean(axis=0))
        rows.append((stay, AFFINITIES[printed], _cluster_names(records, results[0][2]), *means))
    shown = pictures[STAYS[number - 1], False]
    return Reproduction(
        f"Statistical input confidentiality, Figure {number}: p = {STAYS[number - 1]}",
        ("p", "affinity", "clusters (first run)", "randomized, median %", "estimated, median %"),
        tuple(rows),
        HeatMap(
            "relative error, %",
            {"randomized data (the paper's)": shown[0], "estimated": shown[1]},
            list(zip(records.names, records.sizes, strict=True)),
        ),
        (
            Claim(
                "The larger p, the smaller the difference between true and randomized data.",
                [
                    mean_margin(
                        f"p = {larger} against {smaller}, affinity {AFFINITIES[printed]}",
                        medians[smaller, printed] - medians[larger, printed],
                    )
                    for larger, smaller in pairwise(STAYS)
                    for printed in AFFINITIES
                ],
            ),
        ),
        (FIGURE_REMARK,),
    )


AFFINITIES = {False: "V", True: "1/V (as printed)"}
FIGURE_REMARK = (
    "The figures have no printed numbers. Medians are over all pairs of values, averaged over the "
    "runs. The paper compares the randomized data with the true "
    "ones; beside them is what can be estimated from the same reports."
)


def _part_of(progress: OnProgress, part: int, parts: int, done: int, of: int) -> None:
    progress(part * of + done, parts * of)


def _cluster_names(records: Records, clusters: Clusters) -> str:
    return "; ".join("+".join(records.names[a] for a in cluster) for cluster in clusters)
