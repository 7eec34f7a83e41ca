"""Which V ranks pairs of attributes better: that of the randomized answers, or of estimated tables?

    python benchmarks/ranking.py --data adult.csv [--runs 20] [--out FILE.json]
    python benchmarks/ranking.py --data child.bif [--runs 20] [--out FILE.json]

The data are the eight attributes of Adult, or a sample of a Bayesian network. For each number of
records and keep probability, ``--runs`` times: Spearman's correlation
of V over all pairs with V of the true records, from the same reports in three ways: V of the
randomized tables as they are, V of the shrunk tables that studies publish, V of plain inverted
tables projected on distributions. Answers are randomized one by one (`rr_each_attribute`) or each
pair as one value (`rr_pairs`), at the same keep. The verdicts are by the rule of `mpc-rr
reproduce`: all of them together are right with probability 99 %.
"""

import argparse
import itertools
import json
from pathlib import Path

import numpy as np
from scipy.stats import rankdata

from mpc_rr.estimation.dependence import cramers_v
from mpc_rr.estimation.distribution import Estimate, project_to_simplex, unbiased
from mpc_rr.estimation.kronecker import Kronecker
from mpc_rr.estimation.matrix import KeepOrUniform
from mpc_rr.estimation.tables import shrunk_table
from mpc_rr.randomness import SeededRandomness
from mpc_rr.reproduce.adult import MDRR_ATTRIBUTES, Records, read_adult
from mpc_rr.reproduce.verdict import FALSE_ALARM, mean_margin
from mpc_rr.study.bif import read_bif

SEED = 20_260
KEEPS = (0.1, 0.2, 0.3, 0.5, 0.8)
SIZES = (2_000, 10_000)
WAYS = ("randomized", "shrunk", "inverted")
LEVEL = FALSE_ALARM / (2 * len(SIZES) * len(KEEPS) * (len(WAYS) - 1))
"""Of each comparison."""


def records_of(path):
    if path.suffix != ".bif":
        return read_adult(path, MDRR_ATTRIBUTES)
    network = read_bif(path)
    codes = network.sample(max(SIZES), np.random.default_rng(SEED).random)
    return Records(network.schema.names, network.schema.sizes, codes)


def values(tables):
    return np.array([cramers_v(table).value or 0.0 for table in tables])


def spearman(first, second):
    return float(np.corrcoef(rankdata(first), rankdata(second))[0, 1])


def counts_of(codes, sizes, pairs):
    return [
        np.bincount(codes[:, i] * sizes[j] + codes[:, j], minlength=sizes[i] * sizes[j]).reshape(
            sizes[i], sizes[j]
        )
        for i, j in pairs
    ]


def reports(codes, sizes, pairs, keep, together, rng):
    """The randomized table of each pair, and by what it was randomized."""
    random = SeededRandomness.from_generator(rng)
    singles = [KeepOrUniform(size, keep) for size in sizes]
    if not together:
        told = np.stack([m.randomize(codes[:, a], random) for a, m in enumerate(singles)], axis=1)
        matrices = [Kronecker([singles[i], singles[j]]) for i, j in pairs]
        return list(zip(counts_of(told, sizes, pairs), matrices, strict=True))
    found = []
    for i, j in pairs:
        matrix = KeepOrUniform.from_epsilon(
            sizes[i] * sizes[j], singles[i].epsilon + singles[j].epsilon
        )
        told = matrix.randomize(codes[:, i] * sizes[j] + codes[:, j], random)
        counts = np.bincount(told, minlength=matrix.size).reshape(sizes[i], sizes[j])
        found.append((counts, matrix))
    return found


def one_run(records, n, keep, together, rng):
    codes = records.codes[rng.permutation(len(records.codes))[:n]]
    pairs = list(itertools.combinations(range(len(records.sizes)), 2))
    true = values(counts_of(codes, records.sizes, pairs))
    raw, shrunk, plain = [], [], []
    for counts, matrix in reports(codes, records.sizes, pairs, keep, together, rng):
        flat = unbiased(counts.reshape(-1) if together else counts, matrix)
        estimate = Estimate(
            flat.shares.reshape(counts.shape), flat.standard_errors.reshape(counts.shape), flat.n
        )
        raw.append(counts)
        shrunk.append(shrunk_table(estimate))
        plain.append(project_to_simplex(estimate.shares))
    return [spearman(values(tables), true) for tables in (raw, shrunk, plain)]


def judged(margins):
    found = mean_margin("", margins)
    return {
        "by": round(found.margin, 3),
        "standard_error": round(found.error, 4),
        "verdict": found.verdict(LEVEL).value,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    records, rows = records_of(options.data), []
    for number, (together, n, keep) in enumerate(itertools.product((False, True), SIZES, KEEPS)):
        seeds = np.random.default_rng([SEED, number]).spawn(options.runs)
        found = np.array([one_run(records, n, keep, together, rng) for rng in seeds])
        rows.append(
            {
                "randomized": "pairs" if together else "attributes",
                "n": n,
                "keep": keep,
                "spearman": {
                    way: round(float(value), 3)
                    for way, value in zip(WAYS, found.mean(axis=0), strict=True)
                },
                "randomized_better_than": {
                    way: judged(found[:, 0] - found[:, at])
                    for at, way in enumerate(WAYS[1:], start=1)
                },
            }
        )
        print(json.dumps(rows[-1], ensure_ascii=False), flush=True)
    if options.out is not None:
        document = {"data": options.data.stem, "runs": options.runs, "seed": SEED, "rows": rows}
        options.out.write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
