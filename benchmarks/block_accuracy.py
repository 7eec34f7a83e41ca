"""Accuracy of block aggregation on Bayesian networks: pooled, last block, likelihood, closed form.

For each network and p, --runs collections (8,000 people, blocks of 250, no floor) on each of six
pairs of attributes: the root of the mean summed squared error of the pooled counts, as a ratio to
the closed form's; and those of the last block alone, and of the likelihood, as ratios to that.
--data: where survey.bif and alarm.bif are.
"""

import itertools
import math

import numpy as np

from benchmarks.harness.rows import Row, measured, rounded
from mpc_rr.estimation.blocks import collect, expected_error, likely, pooled
from mpc_rr.randomness import SeededRandomness
from mpc_rr.study.bif import read_bif

PEOPLE, BLOCK, PAIRS = 8000, 250, 6


NETWORKS = ("survey", "alarm")


def add_options(parser):
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--network", nargs="+", choices=NETWORKS, default=list(NETWORKS))


def measure(run):
    for name in run.options.network:
        network = read_bif(run.data(f"{name}.bif"))
        rng = np.random.default_rng(1)  # the same people and pairs in every session
        records, sizes = network.sample(PEOPLE, rng.random), network.schema.sizes
        pairs = list(itertools.combinations(range(len(sizes)), 2))
        chosen = [pairs[k] for k in rng.permutation(len(pairs))[:PAIRS]]
        for p, pair in itertools.product((0.4, 0.5), chosen):
            named = " & ".join(network.schema.names[a] for a in pair)
            setting = {"network": name, "p": p, "pair": named}
            every, last, best, closed = squares(records, sizes, pair, p, run)
            yield root("error of pooled counts", setting, every, closed, "closed form")
            yield root("error of the last block's counts", setting, last, every, "pooled")
            yield root("error of counts by likelihood", setting, best, every, "pooled")


def root(what, setting, squared, others, name):
    """The roots of the means of squares, with their standard errors."""
    found = measured(what, setting, squared, others, beside=name)
    value, ratio = math.sqrt(found.value), math.sqrt(found.ratio)
    own = {} if name == "pooled" and "last" in what else {"better": "lower"}
    return Row(
        what=what, setting=setting, runs=found.runs, beside=name, unit="people",
        value=rounded(value), error=rounded(found.error / 2 / value),
        ratio=rounded(ratio), ratio_error=rounded(found.ratio_error / 2 / ratio), **own,
    )  # fmt: skip


def squares(records, sizes, pair, p, run):
    """Of each run: pooled, of the last block, by likelihood, expected."""
    cells = records[:, pair[0]] * sizes[pair[1]] + records[:, pair[1]]
    size = sizes[pair[0]] * sizes[pair[1]]
    true = np.bincount(cells, minlength=size)
    found = []
    for rng in run.rngs(run.options.runs, pair, p):
        random = SeededRandomness.from_generator(rng)
        done = collect(rng.permutation(cells), size, p, BLOCK, random)
        ways = (pooled(done.answered).shares, done.by_block[-1], likely(done.answered))
        expected = expected_error(true / PEOPLE, done.answered.mean_table, p, PEOPLE)
        found.append([*(((w * PEOPLE - true) ** 2).sum() for w in ways), expected**2])
    return np.array(found).T
