"""How accurate the estimates are on Adult, beside what others reach.

``--data`` is the folder of adult.csv. Parts:

* ``queries``: pair queries over a tenth of the cells (000 §6.5), median relative error; the total
  budget is what RR-Independent spends at each p. ``--runs`` randomizations (1,000 unless told; a
  tenth of that where latent classes are fitted), ten fresh queries on each: the median of one each
  differs by 5 % from one seed to the next, mostly by which queries were drawn. The standard error
  is that of the median over randomizations drawn again (bootstrap).
* ``tables``: five attributes, mean L1 error over the ten pair tables at ε = 4 and 8 a record, a
  fiftieth of the runs; beside pure-ldp (direct encoding) and multi-freq-ldpy (SMP with subset
  selection), where each respondent reports one random pair with the whole budget (extra ``bench``;
  left out, and said so, if they are not installed). Their estimates are projected on the simplex,
  which only helps them.

Finding of the profile: nine tenths of a fit of latent classes are gathering and adding up 32,561
rows of 16 weights for each attribute; working on different reports instead of respondents made it
ten times faster for views, where many report the same.
"""

import itertools
from dataclasses import dataclass

import numpy as np

from benchmarks.contenders import libraries
from benchmarks.harness.rows import Row, measured, rounded
from mpc_rr.estimation.clusters import merge_clusters
from mpc_rr.estimation.dependence import dependences_of_records
from mpc_rr.estimation.designs import Fitted, rr_clusters, rr_independent, rr_joint
from mpc_rr.estimation.planning import pairs_of
from mpc_rr.estimation.raking import adjust
from mpc_rr.estimation.tables import best_pair_tables, likely_pair, shrunk_pair
from mpc_rr.estimation.views import ViewDesign, best_views
from mpc_rr.randomness import SeededRandomness
from mpc_rr.reproduce.adult import MDRR_ATTRIBUTES, Records, read_adult
from mpc_rr.reproduce.queries import joint_counts, random_pair, random_subset, relative_error
from mpc_rr.reproduce.runs import repeat

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
BOOTSTRAPS = 200
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


def measure_queries(run):
    records = read_adult(run.data("adult.csv"), MDRR_ATTRIBUTES)
    for method, keep in itertools.product(METHODS, (0.1, 0.3, 0.5, 0.7)):
        if run.options.only not in method:
            continue
        few = any(word in method for word in SLOW)
        repeats = max(1, run.options.runs // 10) if few else run.options.runs
        task = Queries(records, method, keep, 10)
        found = np.array(repeat(task, repeats, run.seed, lambda *_: None))
        rng = np.random.default_rng(run.seed)
        again = [np.median(found[rng.integers(repeats, size=repeats)]) for _ in range(BOOTSTRAPS)]
        yield Row(
            what="median relative error of pair queries", setting={"method": method, "p": keep},
            value=rounded(float(np.median(found))), error=rounded(float(np.std(again))),
            runs=repeats, aim=AIMS.get((method, keep)), better="lower",
            details={"queries": found.size},
        )  # fmt: skip


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
    """The groups that promise most for this budget, without the data."""
    design = ViewDesign(records.sizes, best_views(records.sizes, epsilon), epsilon)
    return design.pair_tables(design.randomize(records.codes, SeededRandomness.from_generator(rng)))


def of_library(records, epsilon, rng, collect, tables):
    found = tables(collect(records.codes, records.sizes, epsilon, rng))
    return {pair: found(pair) for pair in pairs_of(records.sizes)}


TABLE_METHODS = {
    "mpc-rr, all attributes, ε split equally": lambda r, e, g: all_attributes(
        r, e, g, [1] * len(r.sizes)
    ),
    "mpc-rr, all attributes, ε split by ln(categories)": lambda r, e, g: all_attributes(
        r, e, g, np.log(r.sizes)
    ),
    "mpc-rr, views by the planner": planned_views,
    "pure-ldp, direct encoding of one pair": lambda *a: of_library(
        *a, libraries.collect_pure_ldp, libraries.pure_ldp
    ),
    "multi-freq-ldpy, SMP[SS] of one pair": lambda *a: of_library(
        *a, libraries.collect_multi_freq, libraries.multi_freq
    ),
}
TABLE_AIMS = {
    ("mpc-rr, all attributes, ε split equally", 4): 0.266,
    ("mpc-rr, all attributes, ε split by ln(categories)", 8): 0.120,
    ("mpc-rr, views by the planner", 4): 0.122,
    ("mpc-rr, views by the planner", 8): 0.037,
}


def measure_tables(run):
    records = read_adult(run.data("adult.csv"), FIVE)
    for method, epsilon in itertools.product(TABLE_METHODS, (4, 8)):
        library = method.split(",")[0]
        if run.options.only not in method:
            continue
        if libraries.missing(library):
            run.tell(f"{method} is left out: {libraries.HOW_TO_INSTALL[library]}")
            continue
        task, repeats = Tables(records, method, epsilon), max(2, run.options.runs // 50)
        errors = repeat(task, repeats, run.seed, lambda *_: None)
        yield measured(
            "mean L1 of ten pair tables", {"method": method, "ε": epsilon}, errors,
            aim=TABLE_AIMS.get((method, epsilon)),
            **({} if library in libraries.HOW_TO_INSTALL else {"better": "lower"}),
        )  # fmt: skip


PARTS = {"queries": measure_queries, "tables": measure_tables}


def add_options(parser):
    parser.add_argument("--part", nargs="+", choices=list(PARTS), default=list(PARTS))
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--only", default="", help="methods with this in their name")


def measure(run):
    for part in run.options.part:
        yield from PARTS[part](run)
