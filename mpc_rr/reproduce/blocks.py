"""Paper 002 (RRBA): Tables 5 and 6, and Figure 7: how far tables are from the true ones."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from mpc_rr.errors import InputError
from mpc_rr.estimation.blocks import (
    collect,
    jensen_shannon_distance,
    l2_distance,
    likely,
    pooled,
)
from mpc_rr.estimation.distribution import project_to_simplex
from mpc_rr.estimation.matrix import Array, Codes
from mpc_rr.randomness import SeededRandomness
from mpc_rr.reproduce.result import PRINTED, Bars, Entry, Lines, Reproduction
from mpc_rr.reproduce.runs import OnProgress, repeat, shifted
from mpc_rr.reproduce.verdict import Claim, Comparison, mean_margin, share_above
from mpc_rr.study.bif import Network, read_bif

PEOPLE = 8000
BLOCK = 250
METRICS = ("ℓ2", "√JS")
Printed = tuple[float | None, float | None]
"""Of RRBA, and of Laplace noise."""
PRINTED_DISTANCES: dict[tuple[str, float], dict[int, tuple[Printed, Printed]]] = {
    ("Survey", 0.4): {
        2: ((68.27, 59.58), (0.0104, 0.0142)),
        3: ((123.89, 307.588), (0.0142, 0.1025)),
        4: ((140.10, 715.05), (0.0577, 0.1434)),
    },
    ("Alarm", 0.4): {2: ((90.36, 117.42), (0.0073, 0.0153))},
    ("Survey", 0.5): {
        2: ((71.81, 109.60), (0.0107, 0.0142)),
        3: ((100.70, 154.02), (0.0129, 0.0582)),
        4: ((111.26, 372.63), (0.0304, 0.1417)),
    },
    ("Alarm", 0.5): {
        2: ((59.58, 61.69), (0.0074, 0.0118)),
        3: ((102.22, 162.62), (0.0156, 0.0633)),
        4: ((111.15, 427.98), (0.0380, 0.1580)),
    },
}
"""By `METRICS`; of Alarm, Table 5 prints those of two attributes alone."""
NONE_PRINTED: tuple[Printed, Printed] = ((None, None), (None, None))
SETTINGS = {5: (0.4, 0.35), 6: (0.5, 0.5)}
"""p and ε of the tables."""
WAYS = (2, 3, 4)
TENTHS = (0.1, 0.5, 0.9)
CLASSES = 10
NETWORKS = {6: "Survey", 37: "Alarm", 20: "Child"}
COMBINATIONS_A_RUN = 12
NEAR = 0.5
READINGS = ("The estimate from all blocks", "The estimate from the last block alone")
"""The paper does not say which of the two its tables show."""
NOTHING_PRINTED = (
    "No claim about printed distances is judged: the paper prints none of this table for"
)
DISTANCES_ASSUMED = (
    f"Assumed: {PEOPLE:,} people sampled from the network in each run, all asked about each "
    f"combination, {COMBINATIONS_A_RUN} combinations drawn in each run, blocks of {BLOCK}, no "
    "floor,"
)
DISTANCES_LAPLACE = (
    "§7.4 prints a scale of 2·cells/ε for Laplace noise; 2/ε suffices. A trusted collector adds "
    "it, which RRBA does without; that one ε protects as much in both is the paper's claim."
)
ALL_BLOCKS, LAST_BLOCK, LIKELY, LAPLACE, LAPLACE_BY_CELLS = ESTIMATES = (
    "all blocks", "last block", "likelihood", "Laplace 2/ε", "Laplace 2·cells/ε",
)  # fmt: skip
HOW_DRAWN = (
    "The shares of runs by distance, in ten classes of equal width from the nearest run to the "
    "furthest; distances are averages over the combinations of a run. RRBA: from all blocks."
)


# ── Tables 5 and 6: distances ──────────────────────────────────────────────────────────────────


def _cells(records: Codes, sizes: Sequence[int], combination: tuple[int, ...]) -> tuple[Codes, int]:
    cells = np.zeros(len(records), dtype=np.int64)
    for attribute in combination:
        cells = cells * sizes[attribute] + records[:, attribute]
    return cells, math.prod(sizes[a] for a in combination)


def _one_distance(
    network: Network, p: float, epsilon: float, ways: int, rng: np.random.Generator
) -> tuple[tuple[float, ...], ...]:
    """By `METRICS`, distances by `ESTIMATES`, averaged over combinations."""
    records, sizes = network.sample(PEOPLE, rng.random), network.schema.sizes
    combinations = list(itertools.combinations(range(len(sizes)), ways))
    chosen = rng.permutation(len(combinations))[:COMBINATIONS_A_RUN]
    rows = []
    for number in chosen:
        cells, size = _cells(records, sizes, combinations[number])
        true = np.bincount(cells, minlength=size).astype(np.float64)
        run = collect(cells, size, p, BLOCK, SeededRandomness.from_generator(rng))
        tables = (
            project_to_simplex(pooled(run.answered).shares) * PEOPLE,
            project_to_simplex(run.by_block[-1]) * PEOPLE,
            likely(run.answered) * PEOPLE,
            *(
                np.maximum(true + rng.laplace(scale=scale / epsilon, size=size), 0)
                for scale in (2, 2 * size)
            ),
        )
        rows.append(
            [
                [distance(table, true) for table in tables]
                for distance in (l2_distance, jensen_shannon_distance)
            ]
        )
    return tuple(tuple(map(float, values)) for values in np.mean(rows, axis=0))


@dataclass(frozen=True)
class Distances:
    """A row: distances by `ESTIMATES`, for each run, and those of the paper."""

    ways: int
    metric: str
    printed: Printed
    found: Array

    @property
    def what(self) -> str:
        """Of which tables, by which metric."""
        return f"{self.ways}-way {self.metric}"

    def of(self, estimate: str) -> Array:
        """The distances of one estimate, run by run."""
        return np.asarray(self.found[:, ESTIMATES.index(estimate)])

    def mean(self, estimate: str) -> float:
        """Over all runs."""
        return float(self.of(estimate).mean())

    def entries(self) -> tuple[Entry, ...]:
        """As shown."""
        ours = [round(self.mean(estimate), 4) for estimate in ESTIMATES]
        rrba, laplace = self.printed
        return (self.what, rrba, *ours[:3], laplace, *ours[3:])

    def nearer(self, estimate: str) -> Comparison:
        """That all blocks are nearer to the truth than another estimate, on average."""
        return mean_margin(self.what, self.of(estimate) - self.of(ALL_BLOCKS))

    def near(self, estimate: str, printed: float) -> Comparison:
        """That a mean is within half of the printed value; the nearer limit decides."""
        sign = 1 if self.mean(estimate) >= printed else -1
        return mean_margin(self.what, NEAR * printed - sign * (self.of(estimate) - printed))


def _measured(
    network: Network, name: str, number: int, runs: int, seed: int, progress: OnProgress
) -> list[Distances]:
    rows = []
    p, epsilon = SETTINGS[number]
    printed = PRINTED_DISTANCES.get((name, p), {})
    for place, ways in enumerate(WAYS):
        done = shifted(progress, place * runs, len(WAYS) * runs)
        task = partial(_one_distance, network, p, epsilon, ways)
        found = np.array(repeat(task, runs, seed + ways, done))
        values = printed.get(ways, NONE_PRINTED)
        rows += [
            Distances(ways, metric, values[k], found[:, k]) for k, metric in enumerate(METRICS)
        ]
    return rows


def _network(data: Path) -> tuple[Network, str]:
    network = read_bif(data)
    if len(network.nodes) < max(WAYS):
        raise InputError(f"{data} has {len(network.nodes)} variables; tables of four are needed")
    return network, NETWORKS.get(len(network.nodes), data.stem)


def distances(number: int, data: Path, runs: int, seed: int, progress: OnProgress) -> Reproduction:
    """Tables 5 and 6: how far the tables are from the true ones."""
    network, name = _network(data)
    p, epsilon = SETTINGS[number]
    rows = _measured(network, name, number, runs, seed, progress)
    printed = any(row.printed[0] for row in rows)
    return Reproduction(
        f"RRBA, Table {number}: {name}",
        ("table", PRINTED, *ESTIMATES[:3], f"{PRINTED}, Laplace", *ESTIMATES[3:]),
        tuple(row.entries() for row in rows),
        _bars([row for row in rows if row.metric == METRICS[0]]),
        _claims_of_distances(rows, number),
        (
            f"{DISTANCES_ASSUMED} p = {p}, ε = {epsilon}.",
            DISTANCES_LAPLACE,
            *(() if printed else (f"{NOTHING_PRINTED} {name}.",)),
        ),
    )


def _claims_of_distances(rows: Sequence[Distances], number: int) -> tuple[Claim, ...]:
    near = [
        *_near(READINGS[0], ALL_BLOCKS, [(row, row.printed[0]) for row in rows]),
        *_near(READINGS[1], LAST_BLOCK, [(row, row.printed[0]) for row in rows]),
    ]
    for estimate in (LAPLACE, LAPLACE_BY_CELLS):
        near += _near(estimate, estimate, [(row, row.printed[1]) for row in rows])
    claimed = [row for row in rows if number == 6 or row.ways > 2 or row.metric != METRICS[0]]
    where = "all tables" if number == 6 else "tables of three and four attributes, or by √JS"
    nearer = [
        Claim(
            f"RRBA (all blocks) is nearer to the truth than {estimate}, in {where}.",
            [row.nearer(estimate) for row in claimed],
        )
        for estimate in (LAPLACE, LAPLACE_BY_CELLS)
    ]
    ours = "Ours, not the paper's: all blocks together are at least twice as accurate as the last."
    better = [mean_margin(row.what, row.of(LAST_BLOCK) - 2 * row.of(ALL_BLOCKS)) for row in rows]
    return (*near, *nearer, Claim(ours, better))


def _near(
    reading: str, estimate: str, rows: Sequence[tuple[Distances, float | None]]
) -> list[Claim]:
    """That an estimate is near what is printed, if anything is."""
    compared = [row.near(estimate, printed) for row, printed in rows if printed]
    text = f"{reading} is within half of the printed distances."
    return [Claim(text, compared)] if compared else []


def _bars(rows: Sequence[Distances]) -> Bars:
    shown = (ALL_BLOCKS, LIKELY, LAPLACE, LAPLACE_BY_CELLS)
    series = {estimate: [row.mean(estimate) for row in rows] for estimate in shown}
    if any(row.printed[0] for row in rows):
        series = {PRINTED: [row.printed[0] or math.nan for row in rows], **series}
    return Bars("ℓ2 distance", [row.what for row in rows], series)


# ── Figure 7: their distribution ───────────────────────────────────────────────────────────────


def figure7(data: Path, runs: int, seed: int, progress: OnProgress) -> Reproduction:
    """Figure 7: how the distances of Tables 5 and 6 are distributed over the runs."""
    network, name = _network(data)
    rows: list[tuple[str, Distances]] = []
    for place, (number, (p, epsilon)) in enumerate(SETTINGS.items()):
        done = shifted(progress, place * len(WAYS) * runs, len(SETTINGS) * len(WAYS) * runs)
        found = _measured(network, name, number, runs, seed, done)
        rows += [(f"p = {p}, ε = {epsilon}, {row.what}", row) for row in found]
    shown = (ALL_BLOCKS, LAPLACE, LAPLACE_BY_CELLS)
    return Reproduction(
        f"RRBA, Figure 7: {name}",
        ("table", "estimate", "10 % of runs below", "median", "90 % of runs below"),
        tuple(
            (what, estimate, *(round(float(q), 4) for q in np.quantile(row.of(estimate), TENTHS)))
            for what, row in rows
            for estimate in shown
        ),
        Lines(
            "distance",
            "share of runs",
            {
                what: {estimate: _histogram(row.of(estimate)) for estimate in shown}
                for what, row in rows
            },
        ),
        tuple(_mostly_nearer(rows, estimate, runs) for estimate in (LAPLACE, LAPLACE_BY_CELLS)),
        (DISTANCES_ASSUMED.rstrip(",") + ".", HOW_DRAWN, DISTANCES_LAPLACE),
    )


def _histogram(values: Array) -> list[tuple[float, float]]:
    """The middle of each class, and the share of values in it."""
    counts, edges = np.histogram(values, CLASSES)
    return [
        (float(middle), float(count) / len(values))
        for middle, count in zip((edges[1:] + edges[:-1]) / 2, counts, strict=True)
    ]


def _mostly_nearer(rows: Sequence[tuple[str, Distances]], estimate: str, runs: int) -> Claim:
    compared = [
        share_above(what, int((row.of(ALL_BLOCKS) < row.of(estimate)).sum()), runs, 0.5)
        for what, row in rows
    ]
    text = (
        f"RRBA (all blocks) is nearer to the truth than {estimate} in more than half of the runs."
    )
    return Claim(text, compared)


def need_network(name: str, data: Path | None) -> Path:
    """The file of a Bayesian network that a reproduction needs."""
    if data is None:
        raise InputError(f"{name} needs a Bayesian network: give --data FILE.bif")
    return data
