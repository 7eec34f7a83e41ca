"""Small counts, and an attacker who takes the tables of three attributes together."""

import itertools

import numpy as np
import pytest
import scipy.optimize
from helpers import crosstabs
from scipy.optimize import Bounds, LinearConstraint, milp

from mpc_rr.estimation import suppression, triples
from mpc_rr.estimation.pairs import PairLayout
from mpc_rr.estimation.suppression import HIDDEN, fault, known_totals, suppress

WHERE = (5, 3, 4)
"""Region, country (each region lies in one, the last region is one of its own), diagnosis."""


def regions(seed, n):
    rng = np.random.default_rng(seed)
    region = rng.choice(5, n, p=[0.3, 0.25, 0.2, 0.13, 0.12])
    by_region = rng.dirichlet(np.full(4, 1.5), 5)
    diagnosis = np.array([rng.choice(4, p=by_region[r]) for r in region])
    return np.stack([region, np.array([0, 0, 1, 1, 2])[region], diagnosis], 1)


def smokers(seed, n):
    """A question, one that only some are asked further, and three others."""
    rng = np.random.default_rng(seed)
    amount = rng.choice(4, n, p=[0.6, 0.2, 0.13, 0.07])
    others = [np.minimum(rng.poisson(0.6 + (amount > 1), n), 2) for _ in range(2)]
    return np.stack([(amount > 0) * 1, amount, *others], 1)


def limits(layout, shown, n, number, cell):
    """The smallest and largest value of a cell, by whole people with three answers each.

    Written without regard to how `suppress` looks for them: one program for each third attribute,
    each combination a variable, each shown number and each known total an equation.
    """
    pair = layout.pairs[number]
    low, high = 0, n
    for third in set(range(len(layout.sizes))) - set(pair):
        three = (*pair, third)
        people = list(itertools.product(*(range(layout.sizes[a]) for a in three)))
        rows, values = [np.ones(len(people))], [n]
        for own, table in zip(layout.pairs, shown, strict=True):
            if set(own) <= set(three):
                x, y = (three.index(a) for a in own)
                for i, j in np.argwhere(table != HIDDEN).tolist():
                    rows.append([p[x] == i and p[y] == j for p in people])
                    values.append(table[i, j])
        for attribute, category, total in known_totals(layout, shown):
            if attribute in three:
                rows.append([p[three.index(attribute)] == category for p in people])
                values.append(total)
        aim = np.array([(p[0], p[1]) == cell for p in people], dtype=float)
        fits = LinearConstraint(np.array(rows, dtype=float), values, values)
        ends = [
            milp(s * aim, constraints=fits, integrality=np.ones(len(aim)), bounds=Bounds(0, n))
            for s in (1, -1)
        ]
        low, high = max(low, round(ends[0].fun)), min(high, -round(ends[1].fun))
    return low, high


def small_cells(tables, below):
    for number, table in enumerate(tables):
        for i, j in np.argwhere((table > 0) & (table < below)).tolist():
            yield number, (i, j)


def assert_hidden_from_three(layout, tables, n, below):
    shown = suppress(layout, tables, below)
    assert fault(layout, shown, n, below) is None
    for number, cell in small_cells(tables, below):
        low, high = limits(layout, shown, n, number, cell)
        true = int(tables[number][cell])
        assert low <= true
        assert high >= min(true + below, n)
    return shown


@pytest.fixture
def table_by_table(monkeypatch):
    """Small counts as they were hidden once: in each table by itself."""
    monkeypatch.setattr(suppression, "hide_from_triples", lambda *_: None)


@pytest.mark.parametrize(("n", "below"), [(200, 5), (200, 20), (1000, 10), (60, 2)])
def test_three_attributes_do_not_tell_a_small_count(n, below):
    layout = PairLayout(WHERE)
    for seed in range(6):
        assert_hidden_from_three(layout, crosstabs(regions(seed, n), WHERE), n, below)


@pytest.mark.parametrize("seed", range(3))
def test_any_three_of_four_attributes_do_not_either(seed):
    sizes = (2, 4, 3, 3)
    tables = crosstabs(smokers(seed, 300), sizes)
    assert_hidden_from_three(PairLayout(sizes), tables, 300, 4)


@pytest.mark.usefixtures("table_by_table")
def test_table_by_table_they_told_it():
    """The attacker of these tests finds out what was hidden too little."""
    found, layout = 0, PairLayout(WHERE)
    for seed in range(6):
        tables = crosstabs(regions(seed, 200), WHERE)
        shown = suppress(layout, tables, 5)
        for number, cell in small_cells(tables, 5):
            low, high = limits(layout, shown, 200, number, cell)
            found += low == high
    assert found > 0


def hidden_cells(shown):
    return sum(int((table == HIDDEN).sum()) for table in shown)


def test_nothing_more_is_hidden_where_three_attributes_tell_nothing(monkeypatch):
    sizes = (3, 4, 3)
    rng = np.random.default_rng(4)
    chances = ([0.1, 0.4, 0.5], [0.25] * 4, [0.1, 0.3, 0.6])
    records = np.stack([rng.choice(len(p), 300, p=p) for p in chances], 1)
    tables, layout = crosstabs(records, sizes), PairLayout(sizes)
    assert list(small_cells(tables, 8))
    shown = assert_hidden_from_three(layout, tables, 300, 8)
    monkeypatch.setattr(suppression, "hide_from_triples", lambda *_: None)
    assert hidden_cells(shown) == hidden_cells(suppress(layout, tables, 8))


@pytest.mark.parametrize("limit", ["MOST_COMBINATIONS", "MOST_WORK", "MOST_ATTRIBUTES"])
def test_without_programs_whole_lines_are_hidden(limit, monkeypatch):
    """What is too large for them is hidden no less; it costs more."""
    layout, more = PairLayout(WHERE), 0
    for seed in range(4):
        tables = crosstabs(regions(seed, 200), WHERE)
        with monkeypatch.context() as patched:
            patched.setattr(triples, limit, 0)
            shown = assert_hidden_from_three(layout, tables, 200, 5)
        more += hidden_cells(shown) - hidden_cells(suppress(layout, tables, 5))
    assert more > 0


def test_people_that_do_not_fit_are_not_believed(monkeypatch):
    """Whatever a solver answers, what is published rests on whole people who fit."""
    solved = scipy.optimize.milp

    def wrong(*args, **options):
        found = solved(*args, **options)
        if found.x is not None:
            found.x[np.argmax(found.x)] += 1
        return found

    monkeypatch.setattr("scipy.optimize.milp", wrong)
    assert_hidden_from_three(PairLayout(WHERE), crosstabs(regions(0, 200), WHERE), 200, 5)
