"""How near tables of two to four attributes are to the truth when each party answers one view.

On six data sets at six budgets: mean L1 of all tables of pairs, of twenty of three and ten of four
attributes (fewer where there are not so many), from

* ``mpc-rr``: what a study of `rr_views` publishes, by the design that it would use;
* ``default before``: the default on the day of issue 22, kept in this benchmark, with its design;
* ``default before, same reports``: the same from the reports of mpc-rr (asked for by name);
* ``independence``: one attribute of each with the whole budget, margins multiplied;
* ``plain``: the unbiased table projected on the distributions, from the reports of mpc-rr; tables
  that nobody was asked for cannot be told;
* ``pure-ldp``: direct encoding of one random pair; ``multi-freq-ldpy``: SMP with subset selection
  of one random pair;
* ``private-pgm`` (the package mbi), from the reports of mpc-rr: at three budgets, in five runs.

Within a run all have the same records; who has the same design has the same reports. Named peer:
the best of all but the default of before, on the same runs. Aims: at most 1.05 times the best peer
everywhere, at most 1 on average (geometric), a fit in 2 s of a processor.

A library that is not installed is left out, and that is said. --data: see contenders/data_sets.py.
"""

from collections import defaultdict

import msgspec
import numpy as np

from benchmarks.contenders import libraries, published, todays, views
from benchmarks.contenders.data_sets import DATA_SETS, data_set
from benchmarks.contenders.tables import (
    Contender,
    Fits,
    compared_tables,
    errors,
    true_table,
)
from benchmarks.harness.cost import Cost
from benchmarks.harness.rows import geometric_mean, measured

OURS, BEFORE = "mpc-rr", "default before"
ON_REQUEST = f"{BEFORE}, same reports"
EPSILONS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
WIDTHS = (2, 3, 4)
FULL_RUNS, PGM_RUNS, PGM_EPSILONS = 20, 5, (0.5, 2.0, 8.0)
CONTENDERS = {
    contender.name: contender
    for contender in (
        Contender(OURS, published.collect_views, published.of_views),
        Contender(BEFORE, views.collect_best, todays.of_views),
        Contender(ON_REQUEST, published.collect_views, todays.of_the_same_views),
        Contender("independence", views.collect_singles, views.independence),
        Contender(
            "plain", published.collect_views, lambda fitted: views.plain(views.as_views(fitted))
        ),
        *libraries.contenders(published.collect_views),
    )
}


def add_options(parser):
    parser.add_argument("--data-set", nargs="+", choices=list(DATA_SETS), default=list(DATA_SETS))
    parser.add_argument("--epsilon", nargs="+", type=float, default=list(EPSILONS))
    parser.add_argument("--runs", type=int, default=FULL_RUNS)
    parser.add_argument(
        "--contender", nargs="+", choices=list(CONTENDERS),
        default=[name for name in CONTENDERS if name != ON_REQUEST],
    )  # fmt: skip


def measure(run):
    there = available(run)
    compared = defaultdict(list)
    with Cost() as cost:
        for name in run.options.data_set:
            records = data_set(name, run.data)
            truths = truths_of(records)
            for epsilon in run.options.epsilon:
                seen = Seen(truths)
                for number, rng in enumerate(run.rngs(run.options.runs, name, epsilon)):
                    fits = Fits(records.codes, records.sizes, rng.bit_generator.seed_seq)
                    for contender in there:
                        if not rests(contender.name, number, epsilon):
                            seen.add(contender.name, fits.fit(contender, epsilon), fits.fit_s)
                yield from rows_of(seen, {"data": name, "ε": epsilon}, compared)
    yield from averages(compared)
    full_s = cost.processor_s * FULL_RUNS / run.options.runs
    run.tell(f"{FULL_RUNS} runs of these settings: about {full_s / 3600:.1f} processor hours")


def available(run):
    """The contenders asked for whose libraries are there."""
    there = []
    for name in run.options.contender:
        if libraries.missing(name):
            run.tell(f"{name} is left out: {libraries.HOW_TO_INSTALL[name]}")
        else:
            there.append(CONTENDERS[name])
    return there


def rests(name, number, epsilon):
    """Whether this one is too slow for this run."""
    return name == libraries.PRIVATE_PGM and (number >= PGM_RUNS or epsilon not in PGM_EPSILONS)


def truths_of(records):
    d = len(records.sizes)
    return {
        width: {a: true_table(records.codes, records.sizes, a) for a in compared_tables(d, width)}
        for width in WIDTHS
    }


class Seen:
    """Errors by width and contender, and seconds by contender, of all runs of a setting."""

    def __init__(self, truths):
        self.truths, self.errors, self.fit_s = truths, defaultdict(list), defaultdict(list)

    def add(self, name, table, fit_s):
        self.fit_s[name].append(fit_s)
        for width, wanted in self.truths.items():
            found = errors(table, wanted)
            if found is not None:
                self.errors[width, name].append(float(np.mean(found)))


def rows_of(seen, setting, compared):
    for (width, name), values in sorted(seen.errors.items(), key=lambda item: item[0][0]):
        what, where = f"mean L1 of {width}-way tables", setting | {"contender": name}
        if name not in {OURS, BEFORE, ON_REQUEST}:
            yield measured(what, where, values)
            continue
        row = beside_best(what, where, values, peers_of(seen, width))
        yield row
        if row.ratio is not None:
            compared[name, width].append(row)
        before = seen.errors.get((width, BEFORE))
        if name == OURS and before:
            yield measured(f"{what}, to the default before", where, values, before, beside=BEFORE)
    for name, seconds in seen.fit_s.items():
        yield measured(
            "time of a fit and the tables of pairs", setting | {"contender": name}, seconds,
            unit="processor s", **({"aim": 2.0, "better": "lower"} if name == OURS else {}),
        )  # fmt: skip


def peers_of(seen, width):
    own = {OURS, BEFORE, ON_REQUEST}
    return {n: values for (w, n), values in seen.errors.items() if w == width and n not in own}


def beside_best(what, where, values, peers):
    """With the ratio to the peer that is best on the runs that it had."""
    ours = {"aim": 1.05, "better": "lower"} if where["contender"] == OURS else {}
    if not peers:
        return measured(what, where, values, **ours)
    means = {name: np.mean(v) / np.mean(values[: len(v)]) for name, v in peers.items()}
    best = min(means, key=means.get)
    k = len(peers[best])
    alike = measured(what, where, values[:k], peers[best], beside=best, **ours)
    whole = measured(what, where, values, **ours)
    return with_ratio_of(whole, alike)


def with_ratio_of(whole, alike):
    """The mean over all runs, the ratio over those that the peer had."""
    return msgspec.structs.replace(
        whole, beside=alike.beside, ratio=alike.ratio, ratio_error=alike.ratio_error
    )


def averages(compared):
    for name in dict.fromkeys(name for name, _ in compared):
        aim = {"aim": 1.0, "better": "lower"} if name == OURS else {}
        for width in WIDTHS:
            if rows := compared.get((name, width)):
                where = {"contender": name, "tables": f"{width}-way"}
                yield geometric_mean("mean ratio to the best peer", where, rows, **aim)
        rows = [row for (n, _), found in compared.items() if n == name for row in found]
        where = {"contender": name, "tables": "all"}
        whole = geometric_mean("mean ratio to the best peer", where, rows, **aim)
        yield msgspec.structs.replace(whole, error=None)  # those of one setting hang together
