"""How well a classifier does that learns from what a randomized study published.

Adult's income by the seven other attributes (000 §6.1). Logistic regression, by the script of the
docs (`docs/machine_learning.py`), learns from two thirds of the records, and is asked about the
last third, which nobody reported. Each of the first two thirds answers by a protocol at --epsilon a
record; learnt is from synthetic records of what would be published, from the reports by their
weights (RR-Adjustment), and from the reports as they are. AUC over --runs, with its standard error.

Named floor: the AUC of the classifier that learnt from the true records; a ratio of 1 is as good.
"""

import importlib.util
from pathlib import Path

import numpy as np

from benchmarks.harness.rows import measured, rounded
from mpc_rr.estimation.estimates import adjusted_weights
from mpc_rr.planning.designs import planned_designs, schema_of
from mpc_rr.randomness import SeededRandomness
from mpc_rr.reproduce.adult import MDRR_ATTRIBUTES, read_adult

TARGET = "income"
ASKED = ("independent", "views", "clusters found")
SCRIPT = Path(__file__).parent.parent / "docs" / "machine_learning.py"


def add_options(parser):
    parser.add_argument("--epsilon", nargs="+", type=float, default=[2.0, 4.0, 8.0])
    parser.add_argument("--runs", type=int, default=4)


def script():
    """The script of the docs, as a module."""
    spec = importlib.util.spec_from_file_location("machine_learning", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def measure(run):
    learning = script()
    data = read_adult(run.data("adult.csv"), MDRR_ATTRIBUTES)
    (rng,) = run.rngs(1, "split")
    codes = rng.permutation(data.codes)
    train, test = codes[: 2 * len(codes) // 3], as_columns(codes[2 * len(codes) // 3 :], data.names)

    def score(records, weights=None):
        columns = as_columns(records, data.names)
        return learning.learnt_from(columns, test, TARGET, 1, weights)

    true = score(train)
    yield measured("AUC of a classifier", {"learnt from": "true records"}, [true])
    for epsilon in run.options.epsilon:
        designs, _ = planned_designs(schema_of(data.sizes), len(train), epsilon)
        for design in designs:
            if design.name in ASKED:
                found = {}
                for own in run.rngs(run.options.runs, epsilon, design.name):
                    for source, value in scores(design, data.sizes, train, own, score).items():
                        found.setdefault(source, []).append(value)
                for source, values in found.items():
                    yield measured(
                        "AUC of a classifier",
                        {"learnt from": source, "protocol": design.name, "ε": epsilon},
                        values, [true] * len(values), beside="true records", better="higher",
                        details={"people": len(train), "true": rounded(true)},
                    )  # fmt: skip


def scores(design, sizes, train, rng, score):
    """From one randomization, by what is learnt from."""
    told = design.publish(schema_of(sizes), train, SeededRandomness.from_generator(rng))
    synthetic = told.estimates.synthesize(len(train), rng.random)
    found = {"synthetic records": score(synthetic)}
    if design.name == "independent":
        fitted = told.estimates.fitted
        found["reports by weight"] = score(fitted.reported, adjusted_weights(fitted).weights)
        found["reports as they are"] = score(fitted.reported)
    return found


def as_columns(records, names):
    return {name: np.asarray(records[:, place]) for place, name in enumerate(names)}
