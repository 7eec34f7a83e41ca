"""Covariances and cumulants against the enumeration of everything that may be answered."""

import itertools
import math

import numpy as np
import pytest

from mpc_rr.estimation.blocks import Answered
from mpc_rr.estimation.kronecker import Kronecker
from mpc_rr.estimation.matrix import Dense, KeepOrUniform
from mpc_rr.estimation.uncertainty import (
    BlockAnswers,
    ExactCounts,
    NoisyCounts,
    PartOfReports,
    RandomizedReports,
    ViewReports,
)
from mpc_rr.estimation.views import SubsetMechanism

SHARES = np.array([0.4, 0.3, 0.1, 0.05, 0.15, 0.0])
SUBSETS = np.array([[1, 0, 0, 0, 0, 0], [0, 1, 1, 0, 0, 1], [1, 1, 1, 1, 0, 1]], dtype=bool)
TWO_BY_THREE = Kronecker([KeepOrUniform(2, 0.6), KeepOrUniform(3, 0.3)])
OTHER = Dense(np.random.default_rng(1).dirichlet(np.ones(6), 6) * 0.3 + 0.7 * np.eye(6))


def of_matrix(matrix):
    """How probable each contribution of one respondent to the estimate is, given her truth."""
    dense = np.stack([np.ravel(matrix.apply(unit.reshape(matrix.shape))) for unit in np.eye(6)])
    columns = [np.ravel(matrix.solve(unit.reshape(matrix.shape))) for unit in np.eye(6)]
    return [[(dense[x, y], columns[y]) for y in range(6)] for x in range(6)]


def of_sets(mechanism, group):
    """The same for sets of a view's values, of which ``group`` are a cell."""
    contrast = mechanism.hit - mechanism.miss
    found = []
    for cell in range(6):
        truth, ways = cell * group, []
        for chosen in itertools.combinations(range(mechanism.size), mechanism.chosen):
            inside = truth in chosen
            number = math.comb(mechanism.size - 1, mechanism.chosen - (1 if inside else 0))
            chance = (mechanism.hit if inside else 1 - mechanism.hit) / number
            held = np.bincount(np.array(chosen) // group, minlength=6)
            ways.append((chance, (held - group * mechanism.miss) / contrast))
        found.append(ways)
    return found


def of_block(p, table):
    return [
        [
            (p * (x == y) + (1 - p) * table[y], (np.eye(6)[y] - (1 - p) * table) / p)
            for y in range(6)
        ]
        for x in range(6)
    ]


BLOCK = np.array([0.2, 0.2, 0.1, 0.1, 0.2, 0.2])
SMALL, LARGE = SubsetMechanism(6, 1.0, 2), SubsetMechanism(12, 0.7, 3)
ONE = {
    "each attribute": (RandomizedReports(1, TWO_BY_THREE), of_matrix(TWO_BY_THREE)),
    "any matrix": (RandomizedReports(1, OTHER), of_matrix(OTHER)),
    "a view": (ViewReports(1, (PartOfReports(1.0, 1, SMALL, 1),)), of_sets(SMALL, 1)),
    "a larger view": (ViewReports(1, (PartOfReports(1.0, 1, LARGE, 2),)), of_sets(LARGE, 2)),
    "a block": (
        BlockAnswers(1, Answered(0.4, BLOCK[np.newaxis], np.eye(6, dtype=int)[:1])),
        of_block(0.4, BLOCK),
    ),
    "as it is": (ExactCounts(1), [[(1.0, np.eye(6)[x])] for x in range(6)]),
}


def moments(ways, shares):
    """Mean, covariance and, of each set, the third cumulant of one respondent's contribution."""
    chances = np.array([shares[x] * chance for x in range(6) for chance, _ in ways[x]])
    told = np.array([contribution for x in range(6) for _, contribution in ways[x]])
    mean = chances @ told
    away = told - mean
    third = [(chances * (away @ subset) ** 3).sum() for subset in SUBSETS]
    return mean, (away * chances[:, np.newaxis]).T @ away, np.array(third)


@pytest.mark.parametrize("name", ONE)
def test_one_respondent_is_as_uncertain_as_all_that_she_may_answer(name):
    uncertainty, ways = ONE[name]
    mean, covariance, third = moments(ways, SHARES)
    np.testing.assert_allclose(mean, SHARES, atol=1e-12)
    np.testing.assert_allclose(uncertainty.covariance(SHARES), covariance, atol=1e-12)
    variance, skew = uncertainty.cumulants(SUBSETS, SHARES, "population")(SUBSETS @ SHARES)
    np.testing.assert_allclose(variance, [s @ covariance @ s for s in SUBSETS], atol=1e-12)
    np.testing.assert_allclose(skew, third, atol=1e-11)


@pytest.mark.parametrize("name", ONE)
def test_of_the_respondents_themselves_only_the_randomization_is_uncertain(name):
    uncertainty, ways = ONE[name]
    given = sum(SHARES[x] * moments(ways, np.eye(6)[x])[1] for x in range(6))
    variance, _ = uncertainty.cumulants(SUBSETS, SHARES, "respondents")(SUBSETS @ SHARES)
    np.testing.assert_allclose(variance, [s @ given @ s for s in SUBSETS], atol=1e-12)


def test_views_are_pooled_by_their_weights():
    parts = (PartOfReports(0.7, 40, SMALL, 1), PartOfReports(0.3, 25, LARGE, 2))
    both = ViewReports(100, parts)
    alone = [ViewReports(100, (PartOfReports(1.0, p.n, p.mechanism, p.group),)) for p in parts]
    expected = 0.49 * alone[0].covariance(SHARES) + 0.09 * alone[1].covariance(SHARES)
    np.testing.assert_allclose(both.covariance(SHARES), expected, atol=1e-15)
    assert both.reports == pytest.approx(1 / (0.49 / 40 + 0.09 / 25))
    variance, _ = both.cumulants(SUBSETS, SHARES, "population")(SUBSETS @ SHARES)
    np.testing.assert_allclose(variance, [s @ expected @ s for s in SUBSETS], atol=1e-14)


def test_noise_that_adds_up_to_nothing_is_added():
    noisy, exact = NoisyCounts(50, 4.0), ExactCounts(50)
    more = noisy.covariance(SHARES) - exact.covariance(SHARES)
    np.testing.assert_allclose(more.sum(axis=0), 0, atol=1e-15)
    variance, _ = noisy.cumulants(SUBSETS, SHARES, "respondents")(SUBSETS @ SHARES)
    np.testing.assert_allclose(variance, [s @ more @ s for s in SUBSETS], atol=1e-15)


def test_what_each_report_adds_is_worked_out_once(monkeypatch):
    """Once it was anew for each of four questions about a table: half of the time after a study."""
    solve, asked = Kronecker.solve, []
    monkeypatch.setattr(Kronecker, "solve", lambda *given: asked.append(1) or solve(*given))
    spread = RandomizedReports(50, Kronecker([KeepOrUniform(3, 0.5), KeepOrUniform(4, 0.2)]))
    first = spread.covariance(np.full(12, 1 / 12))
    assert len(asked) == 12
    again = spread.covariance(np.full(12, 1 / 12))
    spread.excess(np.full(12, 1 / 12), np.eye(12), np.eye(12))
    assert len(asked) == 12
    assert (first == again).all()
