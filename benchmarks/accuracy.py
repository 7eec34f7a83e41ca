"""How accurate the estimates are on Adult, beside what others reach. ``--data`` is its CSV file.

Run ``python benchmarks/accuracy.py --data adult.csv [--runs N] [--out FILE.json] [PART …]``; parts:

* ``queries``: pair queries over a tenth of the cells (000 §6.5), median relative error; the total
  budget is what RR-Independent spends at each p. ``--runs`` randomizations (1,000 unless told; a
  tenth of that where latent classes are fitted), ten fresh queries on each: the median of one each
  differs by 5 % from one seed to the next, mostly by which queries were drawn.
* ``tables``: five attributes, mean L1 error over the ten pair tables at ε = 4 and 8 a record, a
  fiftieth of the runs; beside pure-ldp (direct encoding) and multi-freq-ldpy (SMP with subset
  selection), where each respondent reports one random pair with the whole budget (extra ``bench``;
  left out, and said so, if they are not installed). Their estimates are projected on the simplex,
  which only helps them.
* ``planning``: the error that the planner predicts for each design without seeing the data, and
  what is observed (aim: within a tenth).

Finding of the profile: nine tenths of a fit of latent classes are gathering and adding up 32,561
rows of 16 weights for each attribute; working on different reports instead of respondents made it
ten times faster for views, where many report the same.
"""

import argparse
import itertools
import json
import statistics
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import OnProgress

from mpc_rr.estimation.clusters import merge_clusters
from mpc_rr.estimation.dependence import dependences_of_records
from mpc_rr.estimation.designs import Design, Fitted, rr_clusters, rr_independent, rr_joint
from mpc_rr.estimation.distribution import project_to_simplex
from mpc_rr.estimation.matrix import KeepOrUniform
from mpc_rr.estimation.planning import keep_for_total, lambdas_for_total, pairs_of, plan
from mpc_rr.estimation.raking import adjust
from mpc_rr.estimation.tables import best_pair_tables, likely_pair, shrunk_pair
from mpc_rr.estimation.views import FittedViews, ViewDesign, best_views
from mpc_rr.randomness import SeededRandomness
from mpc_rr.reproduce.adult import MDRR_ATTRIBUTES, Records, read_adult
from mpc_rr.reproduce.queries import joint_counts, random_pair, random_subset, relative_error
from mpc_rr.reproduce.runs import repeat

try:
    from pure_ldp.frequency_oracles.direct_encoding import DEClient, DEServer
except ImportError:
    DEClient = None
try:
    from multi_freq_ldpy.mdim_freq_est.SMP_solution import SMP_SS_Aggregator_MI, SMP_SS_Client
except ImportError:
    SMP_SS_Client = None

FIVE = ("workclass", "education", "marital-status", "relationship", "sex")


# ── Pair queries ───────────────────────────────────────────────────────────────────────────────


@dataclass
class Queries:
    """One randomization, some fresh queries: their relative errors."""

    records: Records
    method: str
    keep: float
    queries: int

    def __call__(self, rng):
        table = METHODS[self.method](self.records, self.keep, rng)
        errors = []
        for _ in range(self.queries):
            pair = random_pair(len(self.records.sizes), rng)
            truth = joint_counts(self.records, pair)
            subset = random_subset(truth.shape, 0.1, rng)
            errors.append(relative_error(table(pair), truth, subset))
        return errors


def fitted(design, records, rng):
    return Fitted(design, design.randomize(records.codes, SeededRandomness.from_generator(rng)))


def epsilons(records, keep):
    return [matrix.epsilon for matrix in rr_independent(records.sizes, keep).matrices]


def independent(records, keep, rng):
    return fitted(rr_independent(records.sizes, keep), records, rng)


def multiplied(records, keep, rng):
    return independent(records, keep, rng).table


def shrunk(records, keep, rng):
    found = independent(records, keep, rng)
    return lambda pair: shrunk_pair(found, *pair)


def likely(records, keep, rng):
    found = independent(records, keep, rng)
    return lambda pair: likely_pair(found, *pair)


def latent(records, keep, rng):
    return best_pair_tables(independent(records, keep, rng)).__getitem__


def joint(records, keep, rng):
    design = rr_joint(records.sizes, sum(epsilons(records, keep)))
    return fitted(design, records, rng).small_table


def views(records, keep, rng):
    epsilon = sum(epsilons(records, keep))
    design = ViewDesign(records.sizes, best_views(records.sizes, epsilon), epsilon)
    return design.pair_tables(
        design.randomize(records.codes, SeededRandomness.from_generator(rng))
    ).__getitem__


def clusters(records, keep, rng, most):
    dependences = dependences_of_records(records.codes, records.sizes)
    found = merge_clusters(dependences, records.sizes, most, 0.1)
    return fitted(rr_clusters(records.sizes, found, epsilons(records, keep)), records, rng)


def adjusted(records, keep, rng, most):
    found = clusters(records, keep, rng, most)
    margins = [(cluster, found.cluster_joint(cluster)) for cluster in found.design.clusters]
    adjustment = adjust(found.reported, margins, records.sizes, tolerance=1e-6)
    return lambda pair: adjustment.table(pair, records.sizes)


METHODS = {
    "RR-Independent, multiplied margins (the paper's)": multiplied,
    "RR-Independent, shrunk pairs": shrunk,
    "RR-Independent, likely pairs": likely,
    "RR-Independent, latent classes": latent,
    "RR-Clusters + Adjustment, Tv=50": lambda *a: adjusted(*a, 50),
    "RR-Clusters + Adjustment, Tv=300": lambda *a: adjusted(*a, 300),
    "RR-Joint, closed form": joint,
    "views, latent classes": views,
}
SLOW = ("latent", "likely")
AIMS = {
    ("RR-Independent, shrunk pairs", 0.3): 0.09,
    ("RR-Independent, shrunk pairs", 0.5): 0.045,
    ("RR-Independent, shrunk pairs", 0.7): 0.023,
    ("RR-Clusters + Adjustment, Tv=50", 0.5): 0.07,
    ("RR-Clusters + Adjustment, Tv=300", 0.7): 0.018,
    ("RR-Joint, closed form", 0.5): 0.011,
    ("views, latent classes", 0.1): 0.07,
    ("views, latent classes", 0.3): 0.03,
}


def measure_queries(data, runs, only, bar):
    records = read_adult(data, MDRR_ATTRIBUTES)
    rows = []
    for method, keep in itertools.product(METHODS, (0.1, 0.3, 0.5, 0.7)):
        if only not in method:
            continue
        few = any(word in method for word in SLOW)
        repeats, each = max(1, runs // 10) if few else runs, 10
        task = bar.add_task(f"{method}, p = {keep}", total=repeats)
        results = repeat(
            Queries(records, method, keep, each), repeats, 1,
            lambda done, _, task=task: bar.update(task, completed=done),
        )  # fmt: skip
        bar.remove_task(task)
        median = statistics.median(itertools.chain(*results))
        rows.append(
            {"method": method, "p": keep, "median_relative_error": round(median, 4),
             "aim": AIMS.get((method, keep)), "randomizations": repeats, "queries": repeats * each}
        )  # fmt: skip
        bar.console.print(rows[-1])
    return rows


# ── Pair tables of five attributes ─────────────────────────────────────────────────────────────


@dataclass
class Tables:
    """One randomization: the mean L1 error of the ten pair tables."""

    records: Records
    method: str
    epsilon: float

    def __call__(self, rng):
        tables = TABLE_METHODS[self.method](self.records, self.epsilon, rng)
        n = len(self.records.codes)
        errors = [abs(t - joint_counts(self.records, pair) / n).sum() for pair, t in tables.items()]
        return float(np.mean(errors))


def all_attributes(records, epsilon, rng, weights):
    share = [epsilon * w / sum(weights) for w in weights]
    design = rr_clusters(records.sizes, [(a,) for a in range(len(share))], share)
    return best_pair_tables(fitted(design, records, rng))


def planned_views(records, epsilon, rng):
    """What the planner recommends for this budget, which it does without the data."""
    assert plan(records.sizes, len(records.codes), epsilon)[0].name == "views"
    design = ViewDesign(records.sizes, best_views(records.sizes, epsilon), epsilon)
    return design.pair_tables(design.randomize(records.codes, SeededRandomness.from_generator(rng)))


def _pair_cells(records):
    pairs = list(itertools.combinations(range(len(records.sizes)), 2))
    sizes = [records.sizes[i] * records.sizes[j] for i, j in pairs]
    cells = [records.codes[:, i] * records.sizes[j] + records.codes[:, j] for i, j in pairs]
    return pairs, sizes, np.stack(cells, axis=1)


def pure_ldp(records, epsilon, rng):
    pairs, sizes, cells = _pair_cells(records)
    drawn = rng.integers(0, len(pairs), len(cells))
    tables = {}
    for number, (pair, size) in enumerate(zip(pairs, sizes, strict=True)):
        client = DEClient(epsilon, size, index_mapper=lambda x: x)
        server = DEServer(epsilon, size, index_mapper=lambda x: x)
        mine = cells[drawn == number, number].tolist()
        for cell in mine:
            server.aggregate(client.privatise(cell))
        shares = np.array([server.estimate(c, suppress_warnings=True) for c in range(size)])
        shape = tuple(records.sizes[a] for a in pair)
        tables[pair] = project_to_simplex(shares / len(mine)).reshape(shape)
    return tables


def multi_freq(records, epsilon, _rng):
    pairs, sizes, cells = _pair_cells(records)
    reports = [SMP_SS_Client(row, sizes, len(sizes), epsilon) for row in cells]
    estimates = SMP_SS_Aggregator_MI(reports, sizes, len(sizes), epsilon)
    return {
        pair: project_to_simplex(np.asarray(e)).reshape(tuple(records.sizes[a] for a in pair))
        for pair, e in zip(pairs, estimates, strict=True)
    }


TABLE_METHODS = {
    "mpc-rr, all attributes, ε split equally": lambda r, e, g: all_attributes(
        r, e, g, [1] * len(r.sizes)
    ),
    "mpc-rr, all attributes, ε split by ln(categories)": lambda r, e, g: all_attributes(
        r, e, g, np.log(r.sizes)
    ),
    "mpc-rr, views by the planner": planned_views,
    "pure-ldp, direct encoding of one pair": pure_ldp,
    "multi-freq-ldpy, SMP[SS] of one pair": multi_freq,
}
TABLE_AIMS = {
    ("mpc-rr, all attributes, ε split equally", 4): 0.266,
    ("mpc-rr, all attributes, ε split by ln(categories)", 8): 0.120,
    ("mpc-rr, views by the planner", 4): 0.122,
    ("mpc-rr, views by the planner", 8): 0.037,
}


def measure_tables(data, runs, only, bar):
    records = read_adult(data, FIVE)
    missing = {"pure-ldp": DEClient is None, "multi-freq-ldpy": SMP_SS_Client is None}
    rows = []
    for method, epsilon in itertools.product(TABLE_METHODS, (4, 8)):
        if only not in method:
            continue
        if missing.get(method.split(",")[0]):
            bar.console.print(f"{method}: not installed, left out (extra bench)")
            continue
        repeats = max(2, runs // 50)
        task = bar.add_task(f"{method}, ε = {epsilon}", total=repeats)
        errors = repeat(
            Tables(records, method, epsilon), repeats, 1,
            lambda done, _, task=task: bar.update(task, completed=done),
        )  # fmt: skip
        bar.remove_task(task)
        rows.append(
            {"method": method, "epsilon": epsilon, "mean_l1": round(statistics.mean(errors), 4),
             "standard_error": round(statistics.stdev(errors) / len(errors) ** 0.5, 4),
             "aim": TABLE_AIMS.get((method, epsilon)), "randomizations": repeats}
        )  # fmt: skip
        bar.console.print(rows[-1])
    return rows


# ── Predicted and observed error ───────────────────────────────────────────────────────────────


def measure_planning(data, _runs, only, bar):
    """Mean L1 error of unbiased pair tables: predicted without the data, and observed."""
    rows = []
    for names, epsilon in itertools.product((FIVE, MDRR_ATTRIBUTES), (0.5, 2.0, 4.0, 8.0, 16.0)):
        records = read_adult(data, names)
        rng, sizes, n = np.random.default_rng(1), records.sizes, len(records.codes)
        truth = {p: joint_counts(records, p) / n for p in pairs_of(sizes)}
        for promise in plan(sizes, n, epsilon):
            if only not in promise.name or promise.name == "clusters":
                continue
            errors = []
            for _ in range(3):
                found = observed(promise.name, records, epsilon, rng)
                errors += [abs(found.unbiased(p).shares - t).sum() for p, t in truth.items()]
            mean = statistics.mean(errors)
            rows.append(
                {"method": f"{promise.name}, {len(sizes)} attributes, ε = {epsilon}",
                 "predicted": round(promise.error, 4), "observed": round(mean, 4),
                 "ratio": round(promise.error / mean, 3)}
            )  # fmt: skip
            bar.console.print(rows[-1])
    return rows


def observed(name, records, epsilon, rng):
    sizes = records.sizes
    if name == "views":
        design = ViewDesign(sizes, best_views(sizes, epsilon), epsilon)
        return FittedViews(
            design, design.randomize(records.codes, SeededRandomness.from_generator(rng))
        )
    designs = {
        "independent": lambda: rr_independent(sizes, keep_for_total(sizes, epsilon)),
        "joint": lambda: rr_joint(sizes, epsilon),
        "lambda": lambda: Design(
            sizes,
            tuple((a,) for a in range(len(sizes))),
            tuple(map(KeepOrUniform, sizes, lambdas_for_total(sizes, epsilon))),
        ),
    }
    return fitted(designs[name](), records, rng)


PARTS = {"queries": measure_queries, "tables": measure_tables, "planning": measure_planning}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("part", nargs="*", choices=[*PARTS, []], default=list(PARTS))
    parser.add_argument("--data", type=Path, required=True, help="the Adult data as CSV")
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--out", type=Path, help="JSON file; what is not measured stays in it")
    parser.add_argument("--only", default="", help="methods with this in their name")
    arguments = parser.parse_args()
    found = {}
    if arguments.out is not None and arguments.out.exists():
        found = json.loads(arguments.out.read_text())
    with OnProgress(console=Console(stderr=True)) as bar:
        for part in arguments.part:
            rows = PARTS[part](arguments.data, arguments.runs, arguments.only, bar)
            measured = {row["method"] for row in rows}
            found[part] = [r for r in found.get(part, []) if r["method"] not in measured] + rows
            if arguments.out is not None:
                arguments.out.write_text(json.dumps(found, indent=2, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
