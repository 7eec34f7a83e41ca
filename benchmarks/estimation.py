"""How fast the mathematics is, beside what it cannot do without.

* Inverting the randomization of all 1,814,400 combinations of Adult's eight attributes, against one
  numpy copy of that table per attribute (aim: at most 3).
* Inverting the 76,204,800 combinations of nine attributes in place: peak memory against the table's
  own (aim: at most 2.5), and time against a copy per attribute.
* RR-Adjustment of 32,561 records, against the ipfn package on the same margins (extra ``bench``;
  aim: a fiftieth of its time).
* Randomizing 10 million values, against numpy's own uniform draw and a table lookup (aim: at
  most 2).

Each is timed in --rounds rounds, the floor in turn with it; a time is the best of a few.

Findings of the profile: with one pass per attribute the short trailing axes (2, 2, 5) cost most,
because numpy sums rows of two numbers; taken together as one small matrix product they cost next to
nothing. Randomizing was bound by memory: in pieces that stay in the cache it is half as long.
"""

import math
import time
import tracemalloc

import numpy as np

try:
    import pandas as pd
    from ipfn import ipfn
except ImportError:
    ipfn = None

from benchmarks.harness.rows import Row, measured, rounded
from mpc_rr.estimation.designs import rr_independent
from mpc_rr.estimation.kronecker import Kronecker
from mpc_rr.estimation.matrix import KeepOrUniform
from mpc_rr.estimation.raking import adjust
from mpc_rr.randomness import SeededRandomness

ADULT = (9, 16, 7, 15, 6, 5, 2, 2)
ADULT_WITH_COUNTRY = (9, 16, 7, 15, 6, 5, 2, 42, 2)


def seconds(work, repeats=5):
    best = math.inf
    for _ in range(repeats):
        started = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - started)
    return best


def add_options(parser):
    parser.add_argument("--rounds", type=int, default=5)


def measure(run):
    for sizes, repeats in ((ADULT, 5), (ADULT_WITH_COUNTRY, 1)):
        yield from inverse(sizes, repeats, run)
    yield adjustment(run)
    yield randomizing(run)


def beside(what, setting, ours, floor, run, name, aim):
    """Both timed in turn; each gives the seconds of one round."""
    pairs = [(ours(), floor()) for _ in range(run.options.rounds)]
    mine, theirs = zip(*pairs, strict=True)
    return measured(what, setting, mine, theirs, unit="s", beside=name, aim=aim, better="lower")


def inverse(sizes, repeats, run):
    rng = np.random.default_rng(run.seed)
    design = Kronecker([KeepOrUniform(size, 0.5) for size in sizes])
    table = rng.random(sizes)
    target, setting = np.empty_like(table), {"cells": table.size}
    yield beside(
        "inverting all combinations", setting,
        lambda: seconds(lambda: design.solve(target, overwrite=True), repeats),
        lambda: seconds(lambda: np.copyto(target, table), repeats) * len(sizes),
        run, "a copy per attribute", 3.0,
    )  # fmt: skip
    tracemalloc.start()
    design.solve(target, overwrite=True)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    yield Row(
        what="peak memory of inverting, in tables", setting=setting, better="lower", aim=2.5,
        value=rounded(1 + peak / table.nbytes), error=0.0, runs=1,
    )  # fmt: skip


def adjustment(run):
    rng = np.random.default_rng(run.seed)
    skew = [rng.dirichlet(np.full(size, 0.5)) for size in ADULT]
    records = np.stack([rng.choice(s, 32_561, p=p) for s, p in zip(ADULT, skew, strict=True)], 1)
    reported = rr_independent(ADULT, 0.5).randomize(records, SeededRandomness.from_generator(rng))
    margins = [((j,), 0.9 * skew[j] + 0.1 / size) for j, size in enumerate(ADULT)]
    what, setting = "RR-Adjustment", {"records": len(reported)}

    def ours():
        return seconds(lambda: adjust(reported, margins, ADULT, tolerance=1e-6), 20)

    if ipfn is None:
        run.tell("ipfn is left out: pip install -e '.[bench]'")
        return measured(what, setting, [ours() for _ in range(run.options.rounds)], unit="s")
    names = [f"a{j}" for j in range(len(ADULT))]
    frame = pd.DataFrame(reported, columns=names)
    frame["total"] = 1 / len(frame)
    targets = [
        pd.Series(target, index=pd.RangeIndex(len(target), name=names[j]))
        for (j,), target in ((m[0], m[1]) for m in margins)
    ]

    def theirs():
        ipfn.ipfn(frame.copy(), targets, [[n] for n in names], convergence_rate=1e-6).iteration()

    return beside(what, setting, ours, lambda: seconds(theirs, 3), run, "ipfn", 0.02)


def randomizing(run):
    rng = np.random.default_rng(run.seed)
    values, lookup = rng.integers(0, 16, 10_000_000), np.arange(16)
    random = SeededRandomness.from_generator(rng)
    return beside(
        "randomizing", {"values": len(values)},
        lambda: seconds(lambda: KeepOrUniform(16, 0.5).randomize(values, random), 3),
        lambda: seconds(lambda: (rng.random(len(values)), lookup[values]), 3),
        run, "a uniform draw and a table lookup", 2.0,
    )  # fmt: skip
