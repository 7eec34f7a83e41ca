"""How near tables of pairs and triples are to the truth when each party reports a whole record.

Ten made populations from independent to deterministic, and real data sets where --data says where
they are; 60 to 30,000 people; kept with .2 to .95, one by one, in clusters, or the record as one
value. In each run people are drawn afresh, randomize once, and all contenders read these reports:

* ``mpc-rr``: what is published of such a study;
* ``default before``: the default on the day of issue 22, kept in this benchmark;
* named peers: ``plain`` (the unbiased table, projected on the distributions) and ``independence``
  (the product of the projected margins).

For mpc-rr and the default of before: mean L1 of all pairs and of up to twenty triples, as a ratio
to the better of the two peers. Aim: at most 1.05 everywhere. Where answers have an order: how many
published r lie within their published interval, how many r of the published tables (aims: all), and
how many of the respondents' true ones in that for the respondents.

The part ``strong`` has six small studies with one strong ordinal pair, whose table and whose |r|
used to be buried: their errors as ratios to plain's. Aim: at most 1.1.
"""

import itertools
from collections import defaultdict

import numpy as np

from benchmarks.contenders import published, todays
from benchmarks.contenders.data_sets import DATA_SETS, data_set
from benchmarks.contenders.designs import design, of_clusters
from benchmarks.contenders.populations import POPULATIONS
from benchmarks.contenders.tables import compared_tables, errors, product, true_table
from benchmarks.harness.cost import Cost
from benchmarks.harness.rows import geometric_mean, measured
from benchmarks.harness.studies import schema_of
from mpc_rr.estimation.distribution import project_to_simplex
from mpc_rr.estimation.estimates import Estimates

OURS, BEFORE, PLAIN, INDEPENDENCE = "mpc-rr", "default before", "plain", "independence"
PEOPLE = (60, 300, 1_000, 5_000, 30_000)
DESIGNS = (
    "keep .2", "keep .35", "keep .5", "keep .8", "keep .95", "lambda .5", "clusters .5", "joint 6",
)  # fmt: skip
FULL_RUNS, CLOSE = 20, 1e-9
R_WITHIN = {"published r": 1.0, "r of published tables": 1.0, "true r": 0.94}
STRONG = {
    "cluster kept .84, n 60": (60, lambda s: of_clusters(s, [(0, 1, 2), (3,)], [0.84, 0.6])),
    "cluster kept .84, n 300": (300, lambda s: of_clusters(s, [(0, 1, 2), (3,)], [0.84, 0.6])),
    "joint 6, n 120": (120, lambda s: design("joint 6", s)),
    "keep .8, n 60": (60, lambda s: design("keep .8", s)),
    "keep .5, n 200": (200, lambda s: design("keep .5", s)),
    "keep .5, n 1000": (1000, lambda s: design("keep .5", s)),
}
PARTS = ("grid", "strong")


def add_options(parser):
    everything = [*POPULATIONS, *DATA_SETS]
    parser.add_argument("--part", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--population", nargs="+", choices=everything, help="of the grid")
    parser.add_argument("--people", nargs="+", type=int, default=list(PEOPLE))
    parser.add_argument("--design", nargs="+", default=list(DESIGNS))
    parser.add_argument("--runs", type=int, default=FULL_RUNS)
    parser.add_argument("--no-default-before", action="store_true")


def measure(run):
    with Cost() as cost:
        if "grid" in run.options.part:
            yield from grid(run)
        if "strong" in run.options.part:
            yield from strong(run)
    full_s = cost.processor_s * FULL_RUNS / run.options.runs
    run.tell(f"{FULL_RUNS} runs of these settings: about {full_s / 3600:.1f} processor hours")


def grid(run):
    compared = defaultdict(list)
    places = (populations(run), run.options.people, run.options.design)
    for name, n, kind in itertools.product(*places):
        seen, setting = defaultdict(list), {"population": name, "n": n, "design": kind}
        for rng in run.rngs(run.options.runs, *setting.values()):
            codes, sizes, ordinal = drawn(run, name, n, rng)
            fitted = published.collect_records(codes, sizes, design(kind, sizes), rng)
            one_run(seen, codes, fitted, ordinal, run.options)
        for width in (2, 3):
            for row in beside_better(f"mean L1 of {width}-way tables", setting, seen, width):
                compared[row.setting["contender"], width].append(row)
                yield row
        yield from rows_of_r(seen, setting)
        yield measured("time of a fit and the tables of pairs", setting | {"contender": OURS},
                       seen["fit_s"], unit="processor s")  # fmt: skip
    for (name, width), rows in compared.items():
        where = {"contender": name, "tables": f"{width}-way"}
        better = {"better": "lower"} if name == OURS else {}
        yield geometric_mean("mean ratio to the better of plain and independence", where, rows,
                             **better)  # fmt: skip


def populations(run):
    """Those asked for; unless told, all for which there is data."""
    if run.options.population is not None:
        return run.options.population
    if run.options.data is None:
        run.tell("real data sets are left out: no --data")
        return list(POPULATIONS)
    return [*POPULATIONS, *DATA_SETS]


def drawn(run, name, n, rng):
    """Records of so many people, sizes, and whether answers have an order."""
    if name in POPULATIONS:
        population = POPULATIONS[name]
        return population.records(n, rng), population.sizes, population.ordinal
    records = data_set(name, run.data)
    replace = n > len(records.codes)
    return records.codes[rng.choice(len(records.codes), n, replace=replace)], records.sizes, False


def contenders(fitted, before=True):
    """Peers and candidates, by name, and what mpc-rr's estimates are."""
    margins = [project_to_simplex(fitted.unbiased((a,)).shares)
               for a in range(len(fitted.design.sizes))]  # fmt: skip
    estimates = Estimates(schema_of(fitted.design.sizes, kind="ordinal"), fitted)
    with Cost() as cost:
        ours = published.published(estimates)
    tables = {
        OURS: ours,
        PLAIN: lambda attributes: project_to_simplex(fitted.unbiased(attributes).shares),
        INDEPENDENCE: lambda attributes: product(margins, attributes),
    }
    if before:
        tables[BEFORE] = todays.of_records(fitted)
    return tables, estimates, cost.processor_s


def one_run(seen, codes, fitted, ordinal, options):
    tables, estimates, seconds = contenders(fitted, not options.no_default_before)
    sizes = fitted.design.sizes
    seen["fit_s"].append(seconds)
    for width in (2, 3):
        wanted = compared_tables(len(sizes), width)
        truths = {a: true_table(codes, sizes, a) for a in wanted}
        for name, table in tables.items():
            seen[width, name].append(float(np.mean(errors(table, truths))))
    if ordinal:
        seen["within"].append(r_within(tables[OURS], codes, sizes, estimates))


def r_within(table, codes, sizes, estimates):
    """Which share of listed r, of those of published tables and of true ones is within limits."""
    limits, of_these = estimates.strengths(), estimates.strengths("respondents")
    listed = {pair: found.value for pair, found in limits.items() if found.value is not None}
    in_tables = {pair: correlation(table(pair)) for pair in limits}
    true = {pair: correlation(true_table(codes, sizes, pair)) for pair in limits}
    return [within(listed, limits), within(in_tables, limits), within(true, of_these)]


def within(found, limits):
    """1 where there are none: none is outside."""
    inside = [limits[p].low - CLOSE <= r <= limits[p].high + CLOSE for p, r in found.items()]
    return float(np.mean(inside)) if inside else 1.0


def correlation(table):
    """Of ranks; 0 where one does not vary."""
    x, y = (np.arange(size, dtype=float) for size in table.shape)
    x, y = x - table.sum(axis=1) @ x, y - table.sum(axis=0) @ y
    spread = (table.sum(axis=1) @ x**2) * (table.sum(axis=0) @ y**2)
    return float(x @ table @ y / spread**0.5) if spread > 1e-12 else 0.0


def beside_better(what, setting, seen, width):
    """A row for mpc-rr and one for the default of before, with both peers' figures."""
    peers = {name: seen[width, name] for name in (PLAIN, INDEPENDENCE)}
    better = min(peers, key=lambda name: np.mean(peers[name]))
    told = {name: round(float(np.mean(values)), 4) for name, values in peers.items()}
    for name in (OURS, BEFORE):
        if values := seen.get((width, name)):
            ours = {"aim": 1.05, "better": "lower"} if name == OURS else {}
            yield measured(what, setting | {"contender": name}, values, peers[better],
                           beside=better, details=told, **ours)  # fmt: skip


def rows_of_r(seen, setting):
    if seen["within"]:
        for (what, aim), values in zip(R_WITHIN.items(), zip(*seen["within"], strict=True),
                                       strict=True):  # fmt: skip
            yield measured(f"share of {what} within their intervals", setting, values,
                           aim=aim, better="higher")  # fmt: skip


def strong(run):
    population, pair = POPULATIONS["strong"], (0, 1)
    for label, (n, made) in STRONG.items():
        seen, rs = defaultdict(list), defaultdict(list)
        for rng in run.rngs(run.options.runs, "strong pair", label):
            codes = population.records(n, rng)
            fitted = published.collect_records(codes, population.sizes, made(population.sizes), rng)
            truth = true_table(codes, population.sizes, pair)
            tables, _, _ = contenders(fitted, not run.options.no_default_before)
            for name, table in tables.items():
                seen[name].append(float(abs(table(pair) - truth).sum()))
                rs[name].append(abs(correlation(table(pair))))
            rs["true"].append(abs(correlation(truth)))
        yield from rows_of_strong(seen, rs, {"study": label})


def rows_of_strong(seen, rs, setting):
    told = {name: round(float(np.mean(values)), 3) for name, values in rs.items()}
    for name in (OURS, BEFORE):
        if name not in seen:
            continue
        where = setting | {"contender": name}
        ours = {"aim": 1.1, "better": "lower"} if name == OURS else {}
        yield measured("L1 of a strong pair", where, seen[name], seen[PLAIN],
                       beside=PLAIN, **ours)  # fmt: skip
        off, theirs = (abs(np.subtract(rs[who], rs["true"])) for who in (name, PLAIN))
        yield measured("error of |r| of a strong pair", where, off, theirs,
                       beside=PLAIN, details={"mean |r|": told}, **ours)  # fmt: skip
