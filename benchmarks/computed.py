"""How often limits of computed statistics hold, and a regression beside R's RRlog.

Named floor: 95 %, what the limits say of themselves. n respondents are drawn from each of the three
populations of `benchmarks.coverage` and answer by the protocol's own randomizer; ``mpc-rr compute``
computes a mean, variance, standard deviation, quantile, covariance, correlation, share of a group,
means by group, least squares and logistic regression on what the ending tells. Each is compared
with the population's (``population``) and these respondents' (``respondents``), which the same
functions give of tables that are known exactly (the tests hold those to numpy). ``--whole`` runs go
through the whole simulated study and its result folder, and must give the numbers that its ending
gives.

Aims: .94 on average, none below .91. The least is surely below its aim if a statistic whose limits
hold just so often would hold so seldom in less than 5 % of cases, all of them counted. Of the
regression: no coefficient more than a thousandth of its standard error from RRlog's.

Adult: income > 50K on male and (age − 40)/10, all 32,561 records in the order of the file, the
outcome by Warner at ε = 2: told if ``default_rng(5).random(n) < e²/(1 + e²)``, else turned round.
R's RRlog (package RRreg) found −2.13391, 1.33033, 0.36407 and the log-likelihood −19164.12.
"""

import csv
import itertools
import math
import tempfile

import numpy as np

from benchmarks.coverage import (
    POPULATIONS,
    SETTINGS,
    Tally,
    drawn,
    ending_of,
    margin,
    randomness,
    shares_of,
)
from benchmarks.harness.rows import Row, rounded
from mpc_rr import simulate
from mpc_rr.errors import InputError
from mpc_rr.estimation.joint import Joint
from mpc_rr.estimation.kronecker import Kronecker
from mpc_rr.estimation.logistic import logistic
from mpc_rr.estimation.matrix import KeepOrUniform
from mpc_rr.estimation.statistics import design_of
from mpc_rr.estimation.uncertainty import ExactCounts, RandomizedReports
from mpc_rr.publication.computing import compute
from mpc_rr.publication.ending import Setting
from mpc_rr.publication.parts import Publication
from mpc_rr.publication.told import Told
from mpc_rr.results.asking import read_computable
from mpc_rr.study.definition import Deadlines, Parties, Study

PLACES = {
    "independent": ("a1", "a3", "a0"),
    "some": ("a0", "a1", "a2"),
    "strong": ("a1", "a2", "a0"),
}
"""Two attributes with an order and a group, by population."""
AIM, LEAST = 0.94, 0.91
RRLOG = {
    "intercept": -2.13391, "male": 1.33033, "(age - 40)/10": 0.36407, "log-likelihood": -19164.12,
}  # fmt: skip
TOLD = math.exp(2) / (1 + math.exp(2))
"""How probably an outcome is told as it is (Warner, ε = 2)."""
OFF, OFF_IN_LIKELIHOOD = 0.001, 0.005
"""So much the regression may be off: a thousandth of a standard error; RRlog's last digit."""
ENORMOUS = 1e12
CLOSE = 1e-6
"""Where limits are one number: what iterations may be off by."""


def asked_of(population):
    """What is computed, with the options."""
    x, y, g = PLACES[population]
    return [
        (f"mean({y})", {}), (f"variance({y})", {}), (f"standard_deviation({x})", {}),
        (f"quantile({y}, 0.6)", {}), (f"covariance({x}, {y})", {}), (f"correlation({x}, {y})", {}),
        (f"share({y} = v1)", {"where": f"{x} != v0"}), (f"mean({y})", {"by": g}),
        (f"linear({y}, {x})", {}), (f"linear({y}, {x}, {g})", {}), (f"logistic({g} = v1, {y})", {}),
    ]  # fmt: skip


def known(told, table, n):
    """The same where the table of all attributes is known."""

    class Known(Told):
        def joint(self, attributes):
            return Joint(attributes, margin(table, attributes), ExactCounts(n))

        def proper(self, attributes):  # noqa: ARG002
            return None

        def answer(self, condition, cells, level):  # noqa: ARG002
            return None

    fields = {name: getattr(told, name) for name in Told.__dataclass_fields__}
    return Known(**fields)


def told_by(ending, schema, n):
    if ending.from_reports() is not None:  # whose tables nobody needs here
        return Told.of(ending, Publication(), schema, n)
    names = tuple(f"p{k:04}" for k in range(n))
    setting = Setting(study="s", schema=schema, expected=n, parties=n, fewest=n, members=names)
    return Told.of(ending, ending.publish(setting), schema, n)


def compared(tally, population, told, joint, records):
    """Every statistic's limits with the truth; how many could not be told."""
    here = shares_of(records, told.schema.sizes)
    truths = {
        "population": known(told, joint, ENORMOUS), "respondents": known(told, here, len(records))
    }  # fmt: skip
    for expression, options in asked_of(population):
        try:
            found = compute(told, expression, **options)
        except InputError:
            continue
        tally.told[expression].append(all(v.value is not None for v in found.values))
        for of, source in truths.items():
            true = compute(source, expression, **options)
            for mine, value in zip(found.values, true.values, strict=True):
                limits = mine.population if of == "population" else mine.respondents
                if limits is not None and value.value is not None:
                    cell = f"{population}: {expression} {mine.group or ''} {mine.name}".strip()
                    low, high = limits
                    tally.add(of, [cell], value.value, low - CLOSE, high + CLOSE)


def one_run(tally, population, protocol, n, rng):
    schema, joint = POPULATIONS[population]
    records = drawn(joint, n, rng)
    told = told_by(ending_of(protocol, schema, records, randomness(rng)), schema, n)
    compared(tally, population, told, joint, records)


def whole_run(tally, population, protocol, n, rng):
    """A whole study; whether its folder and its ending give the same numbers."""
    schema, joint = POPULATIONS[population]
    records = drawn(joint, n, rng)
    study = Study(
        name="computed", title="Computed", description="", schema=schema, protocol=protocol,
        parties=Parties(count=n), deadlines=Deadlines(),
    )  # fmt: skip
    frame = {
        a.name: [a.categories[code] for code in column]
        for a, column in zip(schema.attributes, records.T, strict=True)
    }
    run = simulate(study, frame, seed=int(rng.integers(1 << 31)))
    with tempfile.TemporaryDirectory() as scratch:
        told = read_computable(run.save(f"{scratch}/run")).told
        compared(tally, population, told, joint, records)
        own = Told.of(run.outcome.result, run.publication, schema, n)
        return all(same(told, own, *asked) for asked in asked_of(population))


def same(told, own, expression, options):
    try:
        one = compute(told, expression, **options)
    except InputError:
        return True
    other = compute(own, expression, **options)
    return all(
        (a.value is None and b.value is None) or math.isclose(a.value, b.value, abs_tol=1e-12)
        for a, b in zip(one.values, other.values, strict=True)
    )


def adult_counts(path):
    """How often each told outcome is there for women and men of each age; and the lowest age."""
    with path.open() as file:
        rows = list(csv.DictReader(file))
    income = np.array([row["income"].strip() == ">50K" for row in rows])
    male = np.array([row["sex"].strip() == "Male" for row in rows])
    age = np.array([int(row["age"]) for row in rows])
    reported = np.where(np.random.default_rng(5).random(len(rows)) < TOLD, income, ~income)
    counts = np.zeros((2, 2, age.max() - age.min() + 1))
    np.add.at(counts, (reported.astype(int), male.astype(int), age - age.min()), 1)
    return counts, int(age.min())


def warner_regression(counts, youngest):
    """The regression, as R's RRlog was asked for it."""
    n, sizes = int(counts.sum()), counts.shape
    kept = [KeepOrUniform(2, 2 * TOLD - 1), KeepOrUniform(2, 1.0), KeepOrUniform(sizes[2], 1.0)]
    matrix = Kronecker(kept)
    joint = Joint((0, 1, 2), matrix.solve(counts / n), RandomizedReports(n, matrix))
    outcome, sex, place = np.indices(sizes).reshape(3, -1)
    design = design_of([sex.astype(float), (youngest + place - 40) / 10])
    return logistic(joint, np.ones(outcome.size), design, outcome.astype(float), 0.95)


def of_adult(path):
    """How far the regression is from RRlog's: coefficients, in standard errors; and likelihood."""
    found = warner_regression(*adult_counts(path))
    values = [one.value for one in found.coefficients] + [found.log_likelihood]
    units = [one.standard_error for one in found.coefficients] + [1.0]
    for (name, theirs), value, unit in zip(RRLOG.items(), values, units, strict=True):
        yield Row(what="Adult, income > 50K by Warner at ε = 2: difference from R's RRlog",
                  setting={"of": name}, runs=1, value=rounded(abs(value - theirs) / unit),
                  aim=OFF if unit < 1 else OFF_IN_LIKELIHOOD, better="lower",
                  details={"value": round(value, 6), "RRlog": theirs})  # fmt: skip


def add_options(parser):
    parser.add_argument("--protocol", nargs="+", help="beginnings of names of settings")
    parser.add_argument("--n", type=int, nargs="+", default=[300, 2000])
    parser.add_argument("--runs", type=int, default=200, help="of each population")
    parser.add_argument("--whole", type=int, default=1, help="whole studies of each population")
    parser.add_argument("--adult", action="store_true", help="only the regression")


def measure(run):
    options = run.options
    yield from of_adult(run.data("adult.csv"))
    for n, name in itertools.product([] if options.adult else options.n, SETTINGS):
        if options.protocol and not name.startswith(tuple(options.protocol)):
            continue
        (rng,), tally, agree = run.rngs(1, name, n), Tally(), []
        for population in POPULATIONS:
            for _ in range(options.runs):
                one_run(tally, population, SETTINGS[name], n, rng)
            agree += [
                whole_run(tally, population, SETTINGS[name], n, rng) for _ in range(options.whole)
            ]
        yield from rows_of(tally, {"protocol": name, "n": n}, options.runs + options.whole)
        if agree:
            yield Row(what="whole studies that give what their ending gives", runs=len(agree),
                      setting={"protocol": name, "n": n}, value=sum(agree) / len(agree), aim=1,
                      better="higher")  # fmt: skip


def rows_of(tally, setting, runs):
    for of in ("population", "respondents"):
        where, part = setting | {"of": of}, tally.summary(of, LEAST)
        yield Row(what="limits hold", setting=where, value=float(part["mean"]),
                  error=float(part["error"]), runs=runs, aim=AIM, better="higher")  # fmt: skip
        details = {name: part[name] for name in ("least_of", "least_runs", "surely_below", "cells")}
        yield Row(what="limits hold of the worst statistic", setting=where, aim=LEAST, runs=runs,
                  value=float(part["least"]), better="higher", details=details)  # fmt: skip
    told = float(np.mean([np.mean(held) for held in tally.told.values()]))
    yield Row(what="told at all", setting=setting, value=round(told, 4), runs=runs)
