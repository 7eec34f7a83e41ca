"""How fast the mathematics is, as ratios to a floor measured in the same run.

Run ``python benchmarks/estimation.py [--out benchmarks/results/estimation.json]``.

* Inverting the randomization of all 1,814,400 combinations of Adult's eight attributes, against one
  numpy copy of that table per attribute (aim: at most 3).
* Inverting the 76,204,800 combinations of nine attributes in place: peak memory against the table's
  own (aim: at most 2.5), and time against a copy per attribute.
* RR-Adjustment of 32,561 records, against the ipfn package on the same margins (extra ``bench``;
  aim: at least 50 times faster).
* Randomizing 10 million values, against numpy's own uniform draw and a table lookup (aim: at
  most 2).

Findings of the profile: with one pass per attribute the short trailing axes (2, 2, 5) cost most,
because numpy sums rows of two numbers; taken together as one small matrix product they cost next to
nothing. Randomizing was bound by memory: in pieces that stay in the cache it is half as long.
"""

import argparse
import json
import math
import time
import tracemalloc
from pathlib import Path

import numpy as np

try:
    import pandas as pd
    from ipfn import ipfn
except ImportError:
    ipfn = None

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


def inverse(sizes, repeats):
    rng = np.random.default_rng(0)
    design = Kronecker([KeepOrUniform(size, 0.5) for size in sizes])
    table = rng.random(sizes)
    target = np.empty_like(table)
    copy_s = seconds(lambda: np.copyto(target, table), repeats)
    tracemalloc.start()
    solve_s = seconds(lambda: design.solve(target, overwrite=True), repeats)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return {
        "cells": table.size,
        "solve_s": round(solve_s, 4),
        "copy_s": round(copy_s, 4),
        "ratio_to_one_copy_per_attribute": round(solve_s / copy_s / len(sizes), 2),
        "peak_memory_ratio": round(1 + peak / table.nbytes, 2),
    }


def adjustment():
    rng = np.random.default_rng(1)
    skew = [rng.dirichlet(np.full(size, 0.5)) for size in ADULT]
    records = np.stack([rng.choice(s, 32_561, p=p) for s, p in zip(ADULT, skew, strict=True)], 1)
    reported = rr_independent(ADULT, 0.5).randomize(records, SeededRandomness.from_generator(rng))
    margins = [((j,), 0.9 * skew[j] + 0.1 / size) for j, size in enumerate(ADULT)]
    ours_s = seconds(lambda: adjust(reported, margins, ADULT, tolerance=1e-6), 20)
    found = {"records": len(reported), "ours_s": round(ours_s, 4)}
    if ipfn is None:
        return found | {"ipfn": "not installed: pip install 'mpc-rr[bench]'"}
    names = [f"a{j}" for j in range(len(ADULT))]
    frame = pd.DataFrame(reported, columns=names)
    frame["total"] = 1 / len(frame)
    targets = [
        pd.Series(target, index=pd.RangeIndex(len(target), name=names[j]))
        for (j,), target in ((m[0], m[1]) for m in margins)
    ]

    def theirs():
        ipfn.ipfn(frame.copy(), targets, [[n] for n in names], convergence_rate=1e-6).iteration()

    theirs_s = seconds(theirs, 3)
    return found | {"ipfn_s": round(theirs_s, 3), "times_faster": round(theirs_s / ours_s, 1)}


def randomizing():
    rng = np.random.default_rng(2)
    values = rng.integers(0, 16, 10_000_000)
    lookup = np.arange(16)
    floor_s = seconds(lambda: (rng.random(len(values)), lookup[values]), 3)
    ours_s = seconds(
        lambda: KeepOrUniform(16, 0.5).randomize(values, SeededRandomness.from_generator(rng)), 3
    )
    return {
        "values": len(values),
        "ours_s": round(ours_s, 3),
        "draw_and_lookup_s": round(floor_s, 3),
        "ratio": round(ours_s / floor_s, 2),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    figures = {
        "inverse": inverse(ADULT, 5),
        "inverse_in_place": inverse(ADULT_WITH_COUNTRY, 1),
        "adjustment": adjustment(),
        "randomizing": randomizing(),
    }
    text = json.dumps(figures, indent=2) + "\n"
    print(text, end="")
    if options.out is not None:
        options.out.parent.mkdir(exist_ok=True)
        options.out.write_text(text)


if __name__ == "__main__":
    main()
