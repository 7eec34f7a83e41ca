"""Accuracy of block aggregation on Bayesian networks: pooled, last block, likelihood, closed form.

    python benchmarks/block_accuracy.py --data survey.bif alarm.bif [--runs 200] [--out FILE.json]

For each network and p, ``--runs`` collections (8,000 people, blocks of 250, no floor) on each of
six pairs of attributes: the root of the mean summed squared error of the counts.
"""

import argparse
import itertools
import json
import math
from pathlib import Path

import numpy as np

from mpc_rr.estimation.blocks import collect, expected_error, likely, pooled
from mpc_rr.randomness import SeededRandomness
from mpc_rr.study.bif import read_bif

PEOPLE, BLOCK, PAIRS = 8000, 250, 6


def errors(records, sizes, pair, p, runs):
    cells = records[:, pair[0]] * sizes[pair[1]] + records[:, pair[1]]
    size = sizes[pair[0]] * sizes[pair[1]]
    true = np.bincount(cells, minlength=size)
    squares, predicted = np.zeros(3), []
    for seed in range(runs):
        rng = np.random.default_rng([seed, *pair])
        run = collect(rng.permutation(cells), size, p, BLOCK, SeededRandomness.from_generator(rng))
        for place, found in enumerate(
            (pooled(run.answered).shares, run.by_block[-1], likely(run.answered))
        ):
            squares[place] += ((found * PEOPLE - true) ** 2).sum() / runs
        predicted.append(expected_error(true / PEOPLE, run.answered.mean_table, p, PEOPLE))
    return [*np.sqrt(squares).tolist(), float(np.mean(predicted))]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, nargs="+", required=True)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    rows = []
    for path in options.data:
        network = read_bif(path)
        rng = np.random.default_rng(1)
        records, sizes = network.sample(PEOPLE, rng.random), network.schema.sizes
        pairs = list(itertools.combinations(range(len(sizes)), 2))
        chosen = [pairs[k] for k in rng.permutation(len(pairs))[:PAIRS]]
        for p, pair in itertools.product((0.4, 0.5), chosen):
            every, last, best, closed = errors(records, sizes, pair, p, options.runs)
            rows.append(
                {
                    "network": path.stem,
                    "p": p,
                    "pair": [network.schema.names[a] for a in pair],
                    "pooled": round(every, 2),
                    "to_closed_form": round(every / closed, 3),
                    "last_block_to_pooled": round(last / every, 2),
                    "likelihood_to_pooled": round(best / every, 3),
                }
            )
            print(json.dumps(rows[-1]), flush=True)
    off = [abs(row["to_closed_form"] - 1) for row in rows]
    print("largest deviation from the closed form:", round(max(off), 3), "over all:", round(
        abs(math.exp(np.mean([math.log(r["to_closed_form"]) for r in rows])) - 1), 3))  # fmt: skip
    if options.out is not None:
        options.out.write_text(json.dumps(rows, indent=2, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
