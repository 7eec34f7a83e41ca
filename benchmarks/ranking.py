"""Which V ranks pairs of attributes better: that of the randomized answers, or of estimated tables?

The data are the eight attributes of Adult (adult.csv), or a sample of a Bayesian network
(child.bif). For each number of records and keep probability, --runs times: Spearman's correlation
of V over all pairs with V of the true records, from the same reports in three ways: V of the
randomized tables as they are, V of the shrunk tables that studies publish, V of plain inverted
tables projected on distributions. Answers are randomized one by one (`rr_each_attribute`) or each
pair as one value (`rr_pairs`), at the same keep. The verdicts are by the rule of `mpc-rr
reproduce`: all of them together are right with probability 99 %.
"""

import itertools

import numpy as np
from scipy.stats import rankdata

from benchmarks.harness.rows import measured
from mpc_rr.estimation.dependence import cramers_v
from mpc_rr.estimation.distribution import Estimate, project_to_simplex, unbiased
from mpc_rr.estimation.kronecker import Kronecker
from mpc_rr.estimation.matrix import KeepOrUniform
from mpc_rr.estimation.tables import shrunk_table
from mpc_rr.randomness import SeededRandomness
from mpc_rr.reproduce.adult import MDRR_ATTRIBUTES, Records, read_adult
from mpc_rr.reproduce.verdict import FALSE_ALARM, mean_margin
from mpc_rr.study.bif import read_bif

DATA = {"adult": "adult.csv", "child": "child.bif"}
KEEPS = (0.1, 0.2, 0.3, 0.5, 0.8)
SIZES = (2_000, 10_000)
WAYS = ("randomized", "shrunk", "inverted")
LEVEL = FALSE_ALARM / (2 * len(SIZES) * len(KEEPS) * (len(WAYS) - 1))
"""Of each comparison."""


def records_of(path):
    if path.suffix != ".bif":
        return read_adult(path, MDRR_ATTRIBUTES)
    network = read_bif(path)
    codes = network.sample(max(SIZES), np.random.default_rng(1).random)
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


def add_options(parser):
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--data-set", nargs="+", choices=list(DATA), default=list(DATA))


def measure(run):
    for name in run.options.data_set:
        records = records_of(run.data(DATA[name]))
        for together, n, keep in itertools.product((False, True), SIZES, KEEPS):
            setting = {
                "data": name, "randomized": "pairs" if together else "attributes", "n": n,
                "keep": keep,
            }  # fmt: skip
            rngs = run.rngs(run.options.runs, *setting.values())
            found = np.array([one_run(records, n, keep, together, rng) for rng in rngs])
            yield from rows_of(setting, found)


def rows_of(setting, found):
    for way, values in zip(WAYS, found.T, strict=True):
        yield measured("rank correlation of V with the true V", setting | {"V of": way}, values,
                       better="higher")  # fmt: skip
    for way, values in zip(WAYS[1:], found.T[1:], strict=True):
        margins = found[:, 0] - values
        verdict = mean_margin("", margins).verdict(LEVEL).value
        yield measured("by how much V of randomized tables ranks better", setting | {"than": way},
                       margins, details={"verdict": verdict})  # fmt: skip
