"""Do the limits of conditions on four to nine attributes hold, common ones and rare ones?

Named floor: 95 %, what `Estimates.query` says of its own limits. n people give answers of two to
four categories each: some give the first ones to all questions, the others answer evenly. Asked is
"all of them the first"; ``share`` of the population meet it. Records are randomized attribute by
attribute (``each``) or in clusters of two and three (``clusters``).

Of ``respondents`` and ``population``: how often the limits held the share among the people, and the
share in the population. The standard error is that of a share of 95 % over so many runs, so among
many settings the least is about three of them below by chance. Aims of all coverage of queries: .94
on average and none below .91. ``width`` is the mean width for the population.
"""

import itertools
import math
from collections import defaultdict

import numpy as np

from benchmarks.harness.rows import Row, rounded
from benchmarks.harness.studies import schema_of
from mpc_rr.estimation.conditions import conjunction
from mpc_rr.estimation.designs import Design, Fitted
from mpc_rr.estimation.estimates import Estimates
from mpc_rr.estimation.matrix import KeepOrUniform
from mpc_rr.randomness import SeededRandomness

SHARES = (0.003, 0.03, 0.3)
KEEPS = (0.5, 0.9)
KINDS = ("each", "clusters")
LEVEL, MEAN, LEAST = 0.95, 0.94, 0.91
CLOSE = 1e-6


def add_options(parser):
    parser.add_argument("--runs", type=int, default=300)
    parser.add_argument("--n", type=int, nargs="+", default=[100, 1000])
    parser.add_argument("--attributes", type=int, nargs="+", default=[4, 5, 6, 7, 8, 9])


def measure(run):
    held, error = defaultdict(list), math.sqrt(LEVEL * (1 - LEVEL) / run.options.runs)
    for place in itertools.product(run.options.attributes, run.options.n, KEEPS, KINDS, SHARES):
        for row in rows_of(run, *place, error):
            held[row.setting["of"]].append(row.value)
            yield row
    for of, shares in held.items():
        below = sum(share < LEAST for share in shares)
        yield Row(what="limits hold, all settings", setting={"of": of},
                  value=rounded(float(np.mean(shares))),
                  error=rounded(error / math.sqrt(len(shares))), runs=run.options.runs,
                  aim=MEAN, better="higher",
                  details={"settings": len(shares), "below_aim": below})  # fmt: skip


def design_of(sizes, keep, kind):
    """Each attribute by itself, or two and three of them together in turn."""
    clusters, place = [], 0
    for width in itertools.cycle((1,) if kind == "each" else (2, 3)):
        clusters.append(tuple(range(place, min(place + width, len(sizes)))))
        place += width
        if place >= len(sizes):
            break
    matrices = [KeepOrUniform(math.prod(sizes[a] for a in c), keep) for c in clusters]
    return Design(tuple(sizes), tuple(clusters), tuple(matrices))


def rows_of(run, attributes, n, keep, kind, share, error):
    """How often the limits hold in one setting."""
    sizes = [2 + k % 3 for k in range(attributes)]
    schema, design = schema_of(sizes), design_of(sizes, keep, kind)
    condition = conjunction(dict.fromkeys(range(attributes), (0,)))
    by_chance = 1 / math.prod(sizes)
    alike = max(share - by_chance, 0.0) / (1 - by_chance)
    truth = alike + (1 - alike) * by_chance
    held, widths = {"respondents": [], "population": []}, []
    for rng in run.rngs(run.options.runs, attributes, n, keep, kind, share):
        records = rng.integers(0, sizes, (n, attributes))
        records[rng.random(n) < alike] = 0
        reported = design.randomize(records, SeededRandomness.from_generator(rng))
        answer = Estimates(schema, Fitted(design, reported)).query(condition)
        (low, high), (least, most) = answer.interval, answer.population
        met = int((records == 0).all(axis=1).sum())
        held["respondents"].append(low - CLOSE <= met <= high + CLOSE)
        held["population"].append(least <= truth <= most)
        widths.append(most - least)
    setting = {"attributes": attributes, "n": n, "keep": keep, "kind": kind,
               "share": round(truth, 4)}  # fmt: skip
    for of, found in held.items():
        details = {"width": rounded(float(np.mean(widths)))} if of == "population" else {}
        yield Row(what="limits hold", setting=setting | {"of": of},
                  value=rounded(float(np.mean(found))), error=rounded(error), runs=len(found),
                  aim=LEAST, better="higher", details=details)  # fmt: skip
