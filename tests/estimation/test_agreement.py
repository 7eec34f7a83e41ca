"""Tables that agree about all they share, and whether one distribution has them all."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog, minimize

from mpc_rr.errors import InputError
from mpc_rr.estimation import agreement
from mpc_rr.estimation.agreement import agreeing, can_agree, disagreement, missed
from mpc_rr.estimation.distribution import project_to_simplex
from mpc_rr.estimation.tables import make_consistent


def margins_of(joint, together):
    return {
        c: joint.sum(axis=tuple(a for a in range(joint.ndim) if a not in c))
        for c in itertools.combinations(range(joint.ndim), together)
    }


def noisy(true, rng, n=300, keep=0.5):
    """Each table by itself, as people answer it who tell the truth with this probability."""
    found, weights = {}, {}
    for c, table in true.items():
        weights[c] = float(rng.integers(n // 2, n))
        told = keep * table.ravel() + (1 - keep) / table.size
        counts = rng.multinomial(int(weights[c]), told / told.sum())
        raw = (counts / weights[c] - (1 - keep) / table.size) / keep
        found[c] = project_to_simplex(raw).reshape(table.shape)
    return found, weights


def world(seed, sizes, together):
    rng = np.random.default_rng(seed)
    joint = rng.dirichlet(np.full(int(np.prod(sizes)), 0.3)).reshape(sizes)
    true = margins_of(joint, together)
    return true, *noisy(true, rng)


def one(weights):
    return dict.fromkeys(weights, 1.0)


shapes = st.tuples(st.lists(st.integers(2, 4), min_size=3, max_size=5), st.integers(2, 4)).filter(
    lambda drawn: drawn[1] < len(drawn[0])
)


@given(shapes, st.integers(0, 10**6))
def test_tables_agree_about_all_they_share_and_are_proper(shape, seed):
    sizes, together = shape
    _, found, weights = world(seed, sizes, together)
    agreed = agreeing(found, weights)
    assert disagreement(agreed) < 1e-12
    for c, table in agreed.items():
        assert table.shape == tuple(sizes[a] for a in c)
        assert table.min() >= 0
        assert table.sum() == pytest.approx(1, abs=1e-12)


@given(shapes, st.integers(0, 10**6))
def test_tables_that_agree_stay_as_they_are(shape, seed):
    sizes, together = shape
    true, _, weights = world(seed, sizes, together)
    for c, table in agreeing(true, weights).items():
        assert table == pytest.approx(true[c], abs=1e-12)


def test_tables_of_different_widths_agree_too():
    _, found, weights = world(1, (2, 3, 2), 2)
    found |= {(0, 1, 2): np.full((2, 3, 2), 1 / 12)}
    weights |= {(0, 1, 2): 50.0}
    agreed = agreeing(found, weights)
    assert disagreement(agreed) < 1e-12
    assert agreed[0, 1, 2].sum(axis=2) == pytest.approx(agreed[0, 1], abs=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_they_are_the_nearest_tables_that_agree(seed):
    """By squares, times precision and cells; another program finds no nearer ones."""
    _, found, weights = world(seed, (2, 2, 2), 2)
    pairs = list(found)
    wished = np.concatenate([found[p].ravel() for p in pairs])
    scale = np.repeat([weights[p] * found[p].size for p in pairs], 4)

    def distance(cells):
        return float((scale * (cells - wished) ** 2).sum())

    def apart(cells):
        tables = dict(zip(pairs, cells.reshape(3, 2, 2), strict=True))
        sums = [t.sum() - 1 for t in tables.values()]
        return [
            *sums,
            *(tables[0, 1].sum(axis=1) - tables[0, 2].sum(axis=1))[:1],
            *(tables[0, 1].sum(axis=0) - tables[1, 2].sum(axis=1))[:1],
            *(tables[0, 2].sum(axis=0) - tables[1, 2].sum(axis=0))[:1],
        ]

    other = minimize(
        distance, np.full(12, 0.25), bounds=[(0, 1)] * 12, method="SLSQP",
        constraints={"type": "eq", "fun": apart}, options={"ftol": 1e-12, "maxiter": 500},
    )  # fmt: skip
    ours = np.concatenate([t.ravel() for t in agreeing(found, weights).values()])
    assert ours == pytest.approx(other.x, abs=1e-4)


def test_the_more_precise_table_moves_less():
    _, found, _ = world(3, (2, 3, 2), 2)
    even, sure = agreeing(found, one(found)), agreeing(found, one(found) | {(0, 1): 1e6})
    moved = [abs(t[0, 1] - found[0, 1]).max() for t in (even, sure)]
    assert moved[1] < moved[0] / 100


def test_tables_of_three_are_nearer_to_the_truth_than_with_single_attributes_agreeing():
    """The mean error over all tables in 20 worlds; and there the others contradict each other."""
    errors = {"all": 0.0, "single": 0.0}
    worst = 0.0
    for seed in range(20):
        true, found, weights = world(seed, (3, 2, 3, 2, 2), 3)
        both = {"all": agreeing(found, weights), "single": make_consistent(found, weights)}
        for name, tables in both.items():
            errors[name] += sum(float(abs(tables[c] - true[c]).sum()) for c in true)
        worst = max(worst, disagreement(both["single"]))
    assert errors["all"] < 0.8 * errors["single"]
    assert worst > 0.05


def test_too_many_cells_are_refused():
    large = {(0, 1): np.full((1500, 1500), 1 / 1500**2), (0, 2): np.full((1500, 2), 1 / 3000)}
    assert not can_agree(large)
    with pytest.raises(InputError, match="too many cells"):
        agreeing(large, one(large))


# ── Whether one distribution has them all ──────────────────────────────────────────────────────


@pytest.mark.parametrize("together", [2, 3])
def test_tables_of_a_distribution_are_missed_by_nothing(together):
    true, _, _ = world(5, (2, 3, 2, 2), together)
    found = missed(true, (2, 3, 2, 2))
    assert found.reached
    assert found.least == pytest.approx(0, abs=1e-9)


DIFFERENT = {pair: np.array([[0.0, 0.5], [0.5, 0.0]]) for pair in [(0, 1), (0, 2), (1, 2)]}
"""Of three answers with two categories, any two are different: so two of them are alike."""


def test_tables_that_agree_two_by_two_may_be_those_of_no_distribution():
    """One of the three pairs at least is alike; by 1/6 in each of the two cells of each table."""
    assert disagreement(DIFFERENT) == 0
    found = missed(DIFFERENT, (2, 2, 2))
    assert found.reached
    assert found.least == pytest.approx(1 / 6, abs=1e-9)


def test_of_many_combinations_parts_are_looked_at(monkeypatch):
    """What is missed in a part is missed in the whole; nothing missed in parts proves nothing."""
    monkeypatch.setattr(agreement, "MOST_ENTRIES", 30)
    wide = DIFFERENT | {(2, 3): np.full((2, 2), 0.25), (0, 3): np.full((2, 2), 0.25)}
    found = missed(wide, (2, 2, 2, 2))
    assert not found.reached
    assert found.least == pytest.approx(1 / 6, abs=1e-9)
    true, _, _ = world(5, (2, 3, 2, 2), 2)
    fine = missed(true, (2, 3, 2, 2))
    assert not fine.reached
    assert fine.least == pytest.approx(0, abs=1e-9)


def test_where_the_solver_fails_it_is_not_said_that_nothing_is_missed(monkeypatch):
    """Of the whole, and of parts: what was solved before is a lower limit still."""
    solutions = [linprog, lambda *_: SimpleNamespace(status=4, fun=None)]
    monkeypatch.setattr("scipy.optimize.linprog", solutions[1])
    assert missed(DIFFERENT, (2, 2, 2)) == agreement.Missed(0.0, reached=False, solved=False)
    monkeypatch.setattr(agreement, "MOST_ENTRIES", 60)
    wide = DIFFERENT | {(2, 3): np.full((2, 2), 0.25), (0, 3): np.full((2, 2), 0.25)}

    def solved_once(*given):
        return solutions.pop(0)(*given)

    monkeypatch.setattr("scipy.optimize.linprog", solved_once)
    found = missed(wide, (2, 2, 2, 2))
    assert not solutions
    assert (found.reached, found.solved) == (False, False)
    assert found.least == pytest.approx(1 / 6, abs=1e-9)
