"""How often published limits hold, for every protocol that publishes shares, tables, dependences.

Named floor: 95 %, what the limits say of themselves. n respondents are drawn from each of three
populations (independent, some dependence, strong dependence; skewed, with rare answers), answer
by the protocol's own randomizer, and the ending that a coordinator would have publishes itself.
``--whole`` more runs go through the whole simulated study and its result folder: their endings must
have the same design, publish the same, and answer queries the same.

Compared: each cell of each table with the population's share (``population``) and with these
respondents' (``respondents``; by blocks, ``asked`` are those alone who answered about this very
table), three conditions for each population with `Estimates.query`, V with that of the true
table whose rare answers are merged as they were (``V``; ``V_unmerged`` with the whole one), and r.
``false``: how often independent pairs are said to be "at least" so strong. Of at least
``--tables``: where runs have fewer, others are drawn of which only the dependences are worked out.

Aims: shares and queries .94 on average and none below .91; V and r .94 and none below .85; false
3 %. The standard error of a mean is over runs; the least is surely below its aim if a cell that
holds just so often would hold so seldom in less than 5 % of cases, all cells counted.
"""

import dataclasses
import itertools
import math
import tempfile
import warnings
from collections import defaultdict
from contextlib import ExitStack
from pathlib import Path
from unittest import mock

import numpy as np
from scipy.stats import binom

from benchmarks.harness.rows import Row, rounded
from mpc_rr import simulate
from mpc_rr.estimation.blocks import SoFar, next_table, respond
from mpc_rr.estimation.conditions import Cells, conjunction
from mpc_rr.estimation.dependence import cramers_v
from mpc_rr.estimation.matrix import KeepOrUniform
from mpc_rr.estimation.pairs import PairLayout
from mpc_rr.estimation.planning import chosen_keep
from mpc_rr.protocols.block_aggregation import BlockAggregation
from mpc_rr.protocols.budgets import Own
from mpc_rr.protocols.exact_pairs import ExactPairs
from mpc_rr.protocols.lambda_randomization import LambdaRandomization
from mpc_rr.protocols.rr_clusters import RRClusters
from mpc_rr.protocols.rr_each_attribute import RREachAttribute, count_pairs
from mpc_rr.protocols.rr_independent import RRIndependent
from mpc_rr.protocols.rr_joint import RRJoint
from mpc_rr.protocols.rr_pairs import RRPairs
from mpc_rr.protocols.rr_views import RRViews
from mpc_rr.publication import blocks as of_blocks
from mpc_rr.publication import counts as of_counts
from mpc_rr.publication import pairs as of_pairs
from mpc_rr.publication import reports as of_reports
from mpc_rr.publication.blocks import CollectedBlocks
from mpc_rr.publication.counts import PairCounts
from mpc_rr.publication.ending import Setting
from mpc_rr.publication.pairs import RandomizedPairs
from mpc_rr.publication.reports import Collected, CollectedViews, pack_report
from mpc_rr.randomness import SeededRandomness
from mpc_rr.results.asking import read_askable
from mpc_rr.schema import Attribute, Schema
from mpc_rr.study.definition import Deadlines, Parties, Study

OWN = {"a0": Own(epsilon=2.0), "a1": Own(nearby=0.6)}
SETTINGS = {
    "exact_pairs": ExactPairs(),
    "exact_pairs, noise 4": ExactPairs(noise_epsilon=4.0),
    "exact_pairs, gaussian noise 4": ExactPairs(noise_epsilon=4.0, noise="gaussian"),
    "rr_independent, keep .2": RRIndependent(keep=0.2),
    "rr_independent, keep .5": RRIndependent(keep=0.5),
    "rr_independent, keep .9": RRIndependent(keep=0.9),
    "rr_independent, own budgets and matrices": RRIndependent(keep=0.5, each=OWN),
    "rr_joint, ε 5": RRJoint(epsilon=5.0),
    "rr_clusters, keep .5": RRClusters(
        keep=0.5, most_combinations=12, dependence=RREachAttribute(keep=0.5)
    ),
    "rr_clusters, given, stay .7": RRClusters(stay=0.7, clusters=(("a0", "a1"),)),
    "rr_views, ε 2": RRViews(epsilon=2.0),
    "rr_views, ε 6": RRViews(epsilon=6.0),
    "lambda_randomization, ε 6": LambdaRandomization(epsilon=6.0),
    "rr_pairs, keep .5": RRPairs(keep=0.5),
    "rr_each_attribute, keep .5": RREachAttribute(keep=0.5),
    "block_aggregation, p .4": BlockAggregation(p=0.4, floor=0.1, block=25),
    "block_aggregation, p .7": BlockAggregation(p=0.7, floor=0.1, block=25),
}
SHARES = ("population", "respondents", "query_population", "query_respondents")
AIMS = {**dict.fromkeys(SHARES, (0.94, 0.91)), "V": (0.94, 0.85), "r": (0.94, 0.85)}
FALSE, LEVEL_OF_BLOCKS, LEAST = 0.03, 0.05, 0.85
CLOSE = 1e-9
QUERIES = 3


# ── Populations ────────────────────────────────────────────────────────────────────────────────


def schema_of(kinds):
    """``"n2"``: nominal, two answers; ``"o5"``: ordinal, five."""
    words = {"n": "nominal", "o": "ordinal"}
    return Schema(
        tuple(
            Attribute(f"a{k}", words[kind[0]], tuple(f"v{c}" for c in range(int(kind[1]))))
            for k, kind in enumerate(kinds)
        )
    )


def mixture(shares, *profiles):
    """The joint distribution of attributes that are independent within some classes of people."""
    joint = np.zeros([len(rows[0]) for rows in profiles])
    for number, share in enumerate(shares):
        part = np.array(share)
        for rows in profiles:
            part = np.multiply.outer(part, np.array(rows[number]) / np.sum(rows[number]))
        joint += part
    return joint / joint.sum()


POPULATIONS = {
    "independent": (
        schema_of(["n2", "o3", "n4", "o5"]),
        mixture([1.0], [[0.7, 0.3]], [[0.5, 0.4, 0.1]], [[0.5, 0.33, 0.15, 0.02]],
                [[0.35, 0.3, 0.2, 0.12, 0.03]]),
    ),
    "some": (
        schema_of(["o3", "o4", "n2"]),
        mixture([0.6, 0.4], [[6, 3, 1], [2, 4, 4]], [[50, 30, 15, 5], [15, 25, 40, 20]],
                [[0.75, 0.25], [0.5, 0.5]]),
    ),
    "strong": (
        schema_of(["n4", "o5", "o3"]),
        mixture([0.5, 0.3, 0.15, 0.05],
                [[90, 6, 3, 1], [5, 90, 4, 1], [4, 6, 85, 5], [10, 10, 10, 70]],
                [[70, 25, 4, 1, 0], [5, 30, 60, 4, 1], [0, 5, 20, 70, 5], [0, 0, 5, 25, 70]],
                [[90, 9, 1], [20, 70, 10], [3, 27, 70], [1, 9, 90]]),
    ),
}  # fmt: skip


def drawn(joint, n, rng):
    """Respondents from a population."""
    cells = rng.choice(joint.size, n, p=joint.ravel())
    return np.stack(np.unravel_index(cells, joint.shape), axis=1)


def randomness(rng):
    return SeededRandomness.from_generator(rng)


def margin(joint, attributes):
    others = tuple(a for a in range(joint.ndim) if a not in attributes)
    return joint.sum(axis=others)


def merged(table, groups):
    rows = np.stack([table[list(group)].sum(axis=0) for group in groups[0]])
    return np.stack([rows[:, list(group)].sum(axis=1) for group in groups[1]], axis=1)


def correlation(table):
    x, y = (np.arange(size, dtype=float) for size in table.shape)
    x, y = x - table.sum(axis=1) @ x, y - table.sum(axis=0) @ y
    return x @ table @ y / math.sqrt((table.sum(axis=1) @ x**2) * (table.sum(axis=0) @ y**2))


# ── Endings ────────────────────────────────────────────────────────────────────────────────────


def setting_of(schema, n):
    """Of a study in which so many must take part, and do."""
    return Setting(study="s", schema=schema, expected=n, parties=n, fewest=n)


def ending_of(protocol, schema, records, rng):
    """What a coordinator has in the end, if these take part."""
    names = tuple(f"p{k:04}" for k in range(len(records)))
    if isinstance(protocol, ExactPairs):
        return counted(protocol, schema, records, rng)
    if isinstance(protocol, RRPairs):
        return paired(protocol, schema, records, rng)
    if isinstance(protocol, RREachAttribute):
        return each(protocol, schema, records, rng)
    if isinstance(protocol, RRViews):
        return viewed(protocol, schema, records, rng, names)
    if isinstance(protocol, BlockAggregation):
        return asked_by_blocks(protocol, schema, records, rng, names)
    if isinstance(protocol, RRClusters) and protocol.dependence is not None:
        first = each(protocol.dependence, schema, records, rng)
        dependences = protocol.dependences_of(schema, first)
        design = protocol.design(schema, protocol.clusters_of(schema, dependences))
    else:
        dependences, design = None, fixed_design(protocol, schema)
    reported = design.randomize(records, rng)
    return Collected(schema, names, names, (), {}, design, reported, dependences)


def fixed_design(protocol, schema):
    """Of a protocol whose design follows from the study alone."""
    if not isinstance(protocol, RRClusters):
        return protocol.design(schema)
    named = [tuple(map(schema.names.index, cluster)) for cluster in protocol.clusters]
    alone = [(a,) for a in range(len(schema.sizes)) if all(a not in own for own in named)]
    return protocol.design(schema, sorted([*named, *alone]))


def tables_of(records, sizes):
    layout = PairLayout(sizes)
    return layout.tables(np.frombuffer(count_pairs(records, sizes), dtype="<u4").astype(np.int64))


def counted(protocol, schema, records, rng):
    n, layout = len(records), PairLayout(schema.sizes)
    tables = tables_of(records, schema.sizes)
    if protocol.noise_epsilon is None:
        return PairCounts(n, schema, tables)
    noise = protocol.agreed_noise(setting_of(schema, n))
    everybody = dataclasses.replace(noise, cells=n * layout.cells)
    added = everybody.draw(rng).reshape(n, layout.cells).sum(axis=0)
    rounded_to_people = layout.tables((added + noise.unit // 2) // noise.unit)
    told = [table + more for table, more in zip(tables, rounded_to_people, strict=True)]
    deviation = noise.standard_deviation(n)
    return PairCounts(n, schema, told, noise=deviation, tails=noise.tails)


def paired(protocol, schema, records, rng):
    sizes, layout = schema.sizes, PairLayout(schema.sizes)
    keep = chosen_keep(protocol.keep, protocol.epsilon, sizes)
    spent = [KeepOrUniform(size, keep).epsilon for size in sizes]
    matrices, tables = [], []
    for i, j in layout.pairs:
        matrix = KeepOrUniform.from_epsilon(sizes[i] * sizes[j], spent[i] + spent[j])
        told = matrix.randomize(records[:, i] * sizes[j] + records[:, j], rng)
        tables.append(np.bincount(told, minlength=matrix.size).reshape(sizes[i], sizes[j]))
        matrices.append(matrix)
    return RandomizedPairs(len(records), schema, tables, tuple(matrices), together=True)


def each(protocol, schema, records, rng):
    design = protocol.design(schema)
    tables = tables_of(design.randomize(records, rng), schema.sizes)
    return RandomizedPairs(len(records), schema, tables, design.matrices, together=False)


def viewed(protocol, schema, records, rng, names):
    design = protocol.design(schema, len(records))
    found = design.randomize(records, rng)
    rows = [iter(found.reports[view]) for view in design.views]
    answers = {
        name: pack_report(number, next(rows[number]), design)
        for name, number in zip(names, found.drawn.tolist(), strict=True)
    }
    return CollectedViews(
        schema, names, answers, (), {}, protocol.epsilon, tuple(design.views), design.weights
    )


def asked_by_blocks(protocol, schema, records, rng, names):
    views, sizes, n = protocol.views(schema), schema.sizes, len(records)
    cells = {
        c: np.ravel_multi_index(tuple(records[:, a] for a in c), [sizes[a] for a in c])
        for view in views
        for c in view
    }
    size = {c: math.prod(sizes[a] for a in c) for c in cells}
    tables = {c: [np.full(size[c], 1 / size[c])] for c in cells}
    counts = {c: [] for c in cells}
    so_far = {c: SoFar.nothing(protocol.p, size[c]) for c in cells}
    for start in range(0, n, protocol.block):
        members = np.arange(start, min(start + protocol.block, n))
        for number, view in enumerate(views):
            mine = members[members % len(views) == number]
            for c in view:
                told = respond(cells[c][mine], tables[c][-1], protocol.p, rng)
                counts[c].append(np.bincount(told, minlength=size[c]))
        for c in cells:
            so_far[c].take(tables[c][-1], counts[c][-1])
            following = next_table(so_far[c].shares, protocol.floor)
            tables[c].append(following if so_far[c].counts.any() else tables[c][-1])
    return CollectedBlocks(
        schema, protocol.p, protocol.floor, protocol.block, names, dict.fromkeys(names, b""), (),
        {}, {c: [t.astype("<f8").tobytes() for t in tables[c]] for c in cells},
        {c: [*(k.tolist() for k in counts[c]), [0] * size[c]] for c in cells}, (),
    )  # fmt: skip


def likeness(ending):
    """What two endings of one study have in common, whatever was drawn."""
    if isinstance(ending, Collected):
        return ending.design.clusters, [matrix.epsilon for matrix in ending.design.matrices]
    if isinstance(ending, CollectedViews):
        return ending.epsilon, ending.views, ending.weights
    if isinstance(ending, RandomizedPairs):
        return [matrix.epsilon for matrix in ending.matrices], ending.together
    if isinstance(ending, PairCounts):
        return ending.noise, ending.tails, ending.suppressed_below
    blocks = {c: [sum(block) for block in counts] for c, counts in ending.counts.items()}
    return ending.p, ending.floor, ending.block, blocks


# ── Comparing ──────────────────────────────────────────────────────────────────────────────────


class Tally:
    """How often limits held, by what they are of and by cell; how wide they are."""

    def __init__(self):
        self.held = defaultdict(lambda: defaultdict(list))
        self.widths = defaultdict(list)
        self.by_run = defaultdict(list)
        self.false, self.told = [], defaultdict(list)

    def add(self, kind, cells, truth, low, high):
        """Of many cells of one run, each under its name."""
        truth, low, high = (np.ravel(np.asarray(x, dtype=float)) for x in (truth, low, high))
        inside = (low <= truth + CLOSE) & (truth <= high + CLOSE)
        for cell, yes in zip(cells, inside.tolist(), strict=True):
            self.held[kind][cell].append(yes)
        self.widths[kind] += (high - low).tolist()
        self.by_run[kind].append((int(inside.sum()), inside.size))

    def summary(self, kind, least_aim):
        cells = {cell: (sum(held), len(held)) for cell, held in self.held[kind].items()}
        shares = {cell: hits / runs for cell, (hits, runs) in cells.items()}
        worst = min(shares, key=shares.get)
        chance = min(binom.cdf(hits, runs, least_aim) for hits, runs in cells.values())
        hits, asked = np.array(self.by_run[kind], dtype=float).T
        mean = hits.sum() / asked.sum()
        error = math.sqrt(((hits - mean * asked) ** 2).sum()) / asked.sum()
        return {
            "mean": round(mean, 4), "error": round(error, 4), "least": round(shares[worst], 4),
            "least_of": worst, "least_runs": cells[worst][1],
            "surely_below": bool(chance * len(cells) < 0.05), "cells": len(cells),
            "width": round(float(np.median(self.widths[kind])), 4),
        }  # fmt: skip


def conditions(schema, rng, held):
    """Some conditions on two or three attributes that can be asked."""
    sets = [s for k in (2, 3) for s in itertools.combinations(range(len(schema.sizes)), k)]
    sets = [s for s in sets if held(s)]
    found = []
    for _ in range(QUERIES):
        wanted = {}
        for a in sets[rng.integers(len(sets))]:
            some = rng.permutation(schema.sizes[a])[: rng.integers(1, schema.sizes[a])]
            wanted[a] = tuple(sorted(some.tolist()))
        found.append(conjunction(wanted))
    return found


def share_meeting(joint, condition):
    cells = Cells.of(condition, joint.shape)
    return float(margin(joint, cells.attributes)[cells.table()].sum())


def shares_of(records, sizes):
    flat = np.ravel_multi_index(tuple(records.T), sizes)
    return np.bincount(flat, minlength=math.prod(sizes)).reshape(sizes) / len(records)


def compare_tables(tally, name, publication, schema, joint, here, asked):
    for table in publication.tables:
        if table.low is None:
            continue
        attributes = tuple(schema.names.index(axis.attribute) for axis in table.axes)
        cells = [f"{name}: {table.name} {c}" for c in np.ndindex(table.shape)]
        mine = margin(here, attributes)
        if table.kind == "count":
            tally.add("respondents", cells, mine * table.n, table.low, table.high)
            continue
        tally.add("population", cells, margin(joint, attributes), table.low, table.high)
        limits = (table.respondents_low, table.respondents_high)
        tally.add("respondents", cells, mine, *limits)
        if asked is not None and attributes in asked:
            tally.add("asked", cells, margin(asked[attributes], attributes), *limits)


def compare_dependences(tally, name, publication, schema, joint, strengths):
    listing = publication.listing("dependence")
    columns = ("attribute_1", "attribute_2", "measure", "low", "high", "verdict")
    for one, other, measure, low, high, verdict in zip(*map(listing.column, columns), strict=True):
        pair = (schema.names.index(one), schema.names.index(other))
        true, cell = margin(joint, pair), [f"{name}: {one} & {other}"]
        found = strengths[pair]
        assert (round(found.low, 6), round(found.high, 6)) == (low, high)
        tally.told[measure].append(found.value is not None)
        if measure == "r":
            tally.add("r", cell, correlation(true), found.low, found.high)
        else:
            # Nothing is said of tables with but one group; their limits are 0 and 1.
            whole = cramers_v(true).value
            told = found.groups is not None
            truth = cramers_v(merged(true, found.groups)).value if told else whole
            tally.add("V", cell, truth, found.low, found.high)
            tally.add("V_unmerged", cell, whole, found.low, found.high)
        if name == "independent":
            tally.false.append(verdict.startswith("at least"))


def compare_queries(tally, name, estimates, joint, here, n, asked):
    for condition in asked:
        answer, cell = estimates.query(condition), [f"{name}: {condition}"]
        truth, mine = share_meeting(joint, condition), share_meeting(here, condition)
        tally.add("query_population", cell, truth, *answer.population)
        low, high = answer.interval
        tally.add("query_respondents", cell, mine, low / n, high / n)


def once(work):
    """The same of the same ending, until there is another."""
    latest = [(None, None)]

    def kept(ending):
        if latest[0][0] is not ending:
            latest[0] = (ending, work(ending))
        return latest[0][1]

    return kept


class Recording(ExitStack):
    """The dependences as they are handed over to be published, with the groups of V.

    What follows from an ending's reports is worked out once, for publication and for queries.
    """

    def __enter__(self):
        super().__enter__()
        self.strengths = {}
        for module in (of_blocks, of_counts, of_pairs, of_reports):
            self.enter_context(mock.patch.object(module, "add_dependences", self._recorded(module)))
        for kind in (Collected, CollectedViews):
            self.enter_context(mock.patch.object(kind, "estimates", once(kind.estimates)))
        return self

    def _recorded(self, module):
        add = module.add_dependences

        def recorded(draft, schema, found, **options):
            self.strengths = dict(found)
            add(draft, schema, found, **options)

        return recorded


def asked_of(ending, records, sizes):
    """By blocks: the shares among those who were asked for each combination."""
    if not isinstance(ending, CollectedBlocks):
        return None
    combinations = list(ending.counts)
    views = BlockAggregation(p=0.5, floor=0.1, block=1).views(ending.schema)
    turn = {c: number for number, view in enumerate(views) for c in view}
    everybody = np.arange(len(records))
    return {c: shares_of(records[everybody % len(views) == turn[c]], sizes) for c in combinations}


def one_run(tally, name, protocol, n, rng, recording, asked):
    schema, joint = POPULATIONS[name]
    records = drawn(joint, n, rng)
    ending = ending_of(protocol, schema, records, randomness(rng))
    publication = ending.publish(setting_of(schema, n))
    assert not any(note.incomplete for note in publication.notes), publication.notes
    here = shares_of(records, joint.shape)
    by_blocks = asked_of(ending, records, joint.shape)
    compare_tables(tally, name, publication, schema, joint, here, by_blocks)
    compare_dependences(tally, name, publication, schema, joint, recording.strengths)
    if hasattr(ending, "estimates") and not isinstance(ending, RandomizedPairs):
        estimates = ending.estimates()
        if asked is None:
            asked = conditions(schema, rng, estimates.fitted.told_together)
        compare_queries(tally, name, estimates, joint, here, n, asked)
    return asked


def whole_run(name, protocol, n, rng):
    """Whether a whole study ends, publishes and answers as its ending does."""
    schema, joint = POPULATIONS[name]
    records = drawn(joint, n, rng)
    study = Study(
        name="coverage", title="Coverage", description="", schema=schema, protocol=protocol,
        parties=Parties(n, None), deadlines=Deadlines(600.0, 600.0),
    )  # fmt: skip
    run = simulate(study, [tuple(row) for row in records.tolist()], seed=int(rng.integers(2**31)))
    ending = run.outcome.result
    again = ending.publish(study.setting_with(run.outcome.members))
    same = again.tables == run.publication.tables and again.listings == run.publication.listings
    if getattr(protocol, "dependence", None) is None:  # else the design depends on answers
        made = ending_of(protocol, schema, records, randomness(rng))
        same &= likeness(made) == likeness(ending)
    if isinstance(ending, Collected | CollectedViews):
        with tempfile.TemporaryDirectory() as scratch:
            from_folder = read_askable(run.save(Path(scratch) / "run")).estimates
        at_once = ending.estimates()
        for condition in conditions(schema, rng, at_once.fitted.told_together):
            same &= from_folder.query(condition) == at_once.query(condition)
    return bool(same)


def said_of_more(tally, protocol, n, rng, tables):
    """Verdicts on so many more independent tables."""
    schema, joint = POPULATIONS["independent"]
    for _ in range(-(-tables // math.comb(joint.ndim, 2))):
        ending = ending_of(protocol, schema, drawn(joint, n, rng), randomness(rng))
        by_records = isinstance(ending, Collected | CollectedViews)
        found = (ending.estimates() if by_records else ending).strengths()
        tally.false += [strength.verdict == "at least" for strength in found.values()]


def measured(name, n, run):
    """Rows: one protocol, so many respondents, all populations."""
    protocol, tally, options = SETTINGS[name], Tally(), run.options
    (rng,) = run.rngs(1, name, n)
    with Recording() as recording, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", RuntimeWarning)
        for population in POPULATIONS:
            asked = None
            for _ in range(options.runs):
                asked = one_run(tally, population, protocol, n, rng, recording, asked)
    said_of_more(tally, protocol, n, rng, options.tables - len(tally.false))
    places = itertools.cycle(POPULATIONS)
    same = [whole_run(next(places), protocol, n, rng) for _ in range(options.whole)]
    setting = {"protocol": name, "n": n}
    yield from rows_of(tally, setting, options.runs, isinstance(protocol, BlockAggregation))
    yield Row(what="warnings of the arithmetic", setting=setting, value=len(caught), aim=0,
              better="lower")  # fmt: skip
    if same:
        yield Row(what="whole studies that end as their ending does", setting=setting,
                  value=sum(same) / len(same), runs=len(same), aim=1, better="higher")  # fmt: skip


def rows_of(tally, setting, runs, by_blocks):
    """How often limits held, on average and of the cell where they did least often."""
    for kind in (*AIMS, "asked", "V_unmerged"):
        if not tally.held[kind]:
            continue
        mean_aim, least_aim = AIMS.get(kind, (None, None))
        part = tally.summary(kind, least_aim or LEAST)
        if kind in tally.told:
            part["told"] = round(float(np.mean(tally.told[kind])), 3)
        where, better = setting | {"of": kind}, "higher" if kind in AIMS else None
        yield Row(what="limits hold", setting=where, value=part.pop("mean"),
                  error=part.pop("error"), runs=runs, aim=mean_aim, better=better,
                  details={"width": part.pop("width")})  # fmt: skip
        yield Row(what="limits hold of the worst cell", setting=where, value=part.pop("least"),
                  aim=least_aim, better=better, details=part)  # fmt: skip
    if tables := len(tally.false):
        share = sum(tally.false) / tables
        error = math.sqrt(max(share, 1 / tables) * (1 - share) / tables)
        yield Row(what="independent pairs said to depend", setting=setting, value=rounded(share),
                  error=rounded(error), runs=tables, better="lower",
                  aim=LEVEL_OF_BLOCKS if by_blocks else FALSE)  # fmt: skip


def add_options(parser):
    parser.add_argument("--protocol", nargs="+", help="beginnings of names of settings")
    parser.add_argument("--n", type=int, nargs="+", default=[100, 1000])
    parser.add_argument("--runs", type=int, default=200, help="of each population")
    parser.add_argument("--tables", type=int, default=2000, help="that are independent, at least")
    parser.add_argument("--whole", type=int, default=1, help="whole studies")


def measure(run):
    for n, name in itertools.product(run.options.n, SETTINGS):
        if not run.options.protocol or name.startswith(tuple(run.options.protocol)):
            yield from measured(name, n, run)
