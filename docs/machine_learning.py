"""A classifier from what a study published, beside one from the true records.

    python machine_learning.py TRUE.csv SYNTHETIC.csv TEST.csv TARGET=VALUE [REPORTS.csv]

Logistic regression on one-hot answers, by scipy alone. TRUE.csv is there only for the comparison;
who has a result folder has SYNTHETIC.csv (mpc-rr synthesize) and REPORTS.csv (its reports.csv), and
no true records. TEST.csv are true records that none of them has seen. See machine-learning.md.
"""

import csv
import sys
from pathlib import Path

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit
from scipy.stats import rankdata

RIDGE = 1e-3


def read(path):
    """The columns of a CSV file."""
    with Path(path).open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}


def one_hot(columns, answers):
    """A column of 0 and 1 for each answer to each question, and one of ones."""
    parts = [columns[name][:, np.newaxis] == own for name, own in answers.items()]
    return np.hstack([np.ones((len(parts[0]), 1)), *parts]).astype(float)


def fit(x, y, weights=None):
    """Coefficients of a logistic regression, a little drawn towards 0."""
    share = np.full(len(y), 1 / len(y)) if weights is None else weights / weights.sum()

    def loss(b):
        scores = x @ b
        value = share @ (np.logaddexp(0, scores) - y * scores) + RIDGE / 2 * b @ b
        return value, x.T @ (share * (expit(scores) - y)) + RIDGE * b

    return minimize(loss, np.zeros(x.shape[1]), jac=True, method="L-BFGS-B").x


def auc(scores, y):
    """How often one who has the target scores higher than one who has not."""
    ranks, ones = rankdata(scores), int(y.sum())
    return (ranks[y].sum() - ones * (ones + 1) / 2) / (ones * (len(y) - ones))


def learnt_from(columns, test, target, value, weights=None):
    """The AUC on true test records of a classifier that learnt from these."""
    answers = {name: np.unique(test[name]) for name in test if name != target}
    b = fit(one_hot(columns, answers), columns[target] == value, weights)
    return auc(one_hot(test, answers) @ b, test[target] == value)


def fail(why):
    """One line, and no more."""
    sys.exit(f"machine_learning.py: {why}")


def main(true, synthetic, test, wanted, reports=None):
    """The table of this page."""
    target, _, value = wanted.partition("=")
    unseen = read(test)
    if target not in unseen or len({*(unseen[target] == value)}) < 2:
        fail(f"{test}: {wanted!r} is true of none there, or of all; name a COLUMN=ANSWER")
    rows = {"true records": (read(true), None), "synthetic records": (read(synthetic), None)}
    told = {} if reports is None else read(reports)
    if unseen.keys() <= told.keys():
        rows["reports as they are"] = (told, None)
        if "weight" in told:
            rows["reports by weight"] = (told, told["weight"].astype(float))
    elif told:
        print(f"{reports} has not the columns of {test}: nothing is learnt from the reports")
    for name, (columns, weights) in rows.items():
        lacking = [column for column in unseen if column not in columns]
        if lacking:
            fail(f"the {name} have no column {lacking[0]!r}, which {test} has")
        print(f"{name:20} AUC {learnt_from(columns, unseen, target, value, weights):.3f}")


if __name__ == "__main__":
    main(*sys.argv[1:])
