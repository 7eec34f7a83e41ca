"""How near the errors that plans predict are to those that are observed on real data.

Of each data set and budget, every design is tried on the true records (observed), on guessed
populations with the very dependence that the records have (predicted), and on those of weak to
strong dependence (the range that is printed). Predictions do not see the data otherwise.

Named floor: the observed error, of which the ratio is. Aim: nine of ten predictions within 20 %,
which is what plans say of themselves; ``range`` is what they say where the dependence is not known,
and how often the observed error is in it, widened by a tenth, is told beside.

--data: see contenders/data_sets.py.
"""

from benchmarks.contenders.data_sets import DATA_SETS, data_set
from benchmarks.harness.cost import Cost
from benchmarks.harness.rows import Row, geometric_mean, rounded
from mpc_rr.estimation.guessing import mean_dependence
from mpc_rr.planning.crowds import Crowd, Crowds, Effort, true_tables
from mpc_rr.planning.designs import planned_designs, schema_of
from mpc_rr.planning.plans import TRUST

OBSERVED = 2
"""So often each design is observed on the true records."""
NEAR, MOST_OF_THEM, WIDENED = 0.1, 0.9, 1.1


def add_options(parser):
    parser.add_argument("--data-set", nargs="+", choices=list(DATA_SETS), default=list(DATA_SETS))
    parser.add_argument("--epsilon", nargs="+", type=float, default=[0.5, 1.0, 2.0, 4.0, 8.0])
    parser.add_argument("--design", nargs="+", default=["margins alone", "independent", "views"])
    parser.add_argument("--people", type=int, default=8000)


def measure(run):
    rows = []
    for name in run.options.data_set:
        for epsilon in run.options.epsilon:
            for row in predictions(run, name, epsilon):
                rows.append(row)
                yield row
    for design in sorted({row.setting["design"] for row in rows}):
        yield from trust([row for row in rows if row.setting["design"] == design], design)
    if rows:
        yield from trust(rows, "all")


def predictions(run, name, epsilon):
    """A row for each design."""
    data = data_set(name, run.data)
    (rng,) = run.rngs(1, name, epsilon)
    records, seed = rng.permutation(data.codes)[: run.options.people], int(rng.integers(2**31))
    schema, n = schema_of(data.sizes), len(records)
    truth = true_tables(records, data.sizes)
    again = tuple(Crowd("observed", records, truth, number) for number in range(OBSERVED))
    distance = mean_dependence(truth.values())
    effort = Effort(populations=2, seed=seed)
    crowds = (
        Crowds(schema, again, Effort(OBSERVED, seed=seed)),
        Crowds.guessed(schema, n, effort, {"known": distance}),
        Crowds.guessed(schema, n, effort),
    )
    for design in planned_designs(schema, n, epsilon)[0]:
        if design.name not in run.options.design:
            continue
        with Cost() as cost:
            (observed,), (known,), (ranged,) = (c.try_out([design])[0] for c in crowds)
        errors = [found.error for found in ranged.predicted.values()]
        yield Row(
            what="predicted error of a design",
            setting={"data": name, "n": n, "ε": epsilon, "design": design.name},
            value=rounded(known.error), beside="observed",
            ratio=rounded(known.error / observed.error),
            details={
                "observed": rounded(observed.error), "dependence": rounded(distance),
                "range": [rounded(min(errors)), rounded(max(errors))],
                "processor_s": rounded(cost.processor_s),
            },
        )  # fmt: skip


def trust(rows, design):
    """How far predictions can be trusted."""
    setting, ratios = {"design": design}, [row.ratio for row in rows]
    yield geometric_mean("mean ratio of predicted to observed errors", setting, rows)
    inside = [in_range(row.details) for row in rows]
    for what, found in (
        (f"share of predictions within {NEAR:.0%}", [abs(r - 1) <= NEAR for r in ratios]),
        (f"share of predictions within {TRUST:.0%}", [abs(r - 1) <= TRUST for r in ratios]),
        ("share of observed errors in the range, widened by a tenth", inside),
    ):
        of_all = design == "all" and f"{TRUST:.0%}" in what
        aim = {"aim": MOST_OF_THEM, "better": "higher"} if of_all else {}
        yield Row(what=what, setting=setting, value=rounded(sum(found) / len(found)),
                  details={"settings": len(found), "of_them": sum(found)}, **aim)  # fmt: skip


def in_range(details):
    low, high = details["range"]
    return low / WIDENED <= details["observed"] <= WIDENED * high
