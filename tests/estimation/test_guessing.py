"""Guessed populations have the dependence, the shares and the tables that they say."""

import itertools

import numpy as np
import pytest

from mpc_rr.errors import InputError
from mpc_rr.estimation.guessing import NEAR_ENOUGH, guessed_population, mean_dependence

SETTINGS = [(2, 2), (3, 4, 5, 2), (9, 16, 7, 15, 6, 5, 2, 2), (2,) * 12]


@pytest.mark.parametrize("sizes", SETTINGS)
@pytest.mark.parametrize("dependence", [0.05, 0.15, 0.30])
def test_populations_reach_the_dependence_that_is_wished(sizes, dependence):
    found = [guessed_population(sizes, dependence, seed) for seed in range(2)]
    for population in found:
        assert population.dependence == pytest.approx(dependence, rel=NEAR_ENOUGH)
    pair = (0, 1)
    assert not np.allclose(found[0].tables[pair], found[1].tables[pair])


def test_what_cannot_be_reached_comes_as_near_as_it_can():
    """Two questions with two answers each: at most 1, and only with even shares."""
    population = guessed_population((2, 2), 1.5, 0)
    assert 0.8 < population.dependence <= 1.0 + 1e-9


def test_a_seed_makes_the_same_population():
    one, other = (guessed_population((3, 4, 2), 0.15, 7) for _ in range(2))
    assert all(np.array_equal(one.tables[pair], other.tables[pair]) for pair in one.tables)


def test_tables_are_distributions_that_agree_and_shares_fall_by_rank():
    sizes = (3, 4, 5, 2)
    population = guessed_population(sizes, 0.15, 1)
    assert set(population.tables) == set(itertools.combinations(range(4), 2))
    for (i, j), table in population.tables.items():
        assert table.min() >= 0
        assert table.sum() == pytest.approx(1)
        for axis, attribute in ((1, i), (0, j)):
            weights = np.arange(1.0, sizes[attribute] + 1) ** -1.5
            shares = np.sort(table.sum(axis=axis))[::-1]
            assert shares == pytest.approx(weights / weights.sum(), abs=1e-3)


def test_people_are_drawn_from_these_tables():
    """χ² of each of six tables of 40,000 people: by chance one is above 1.6 times its freedom + 20
    in less than one case in 10⁴. Of people of another population it is far above."""
    sizes, n = (3, 4, 5, 2), 40_000
    population, other = (guessed_population(sizes, 0.15, seed) for seed in (3, 4))
    people = population.draw(n, np.random.default_rng(5).random)

    def surprise(tables):
        worst = 0.0
        for (i, j), table in tables.items():
            cells = people[:, i] * sizes[j] + people[:, j]
            seen = np.bincount(cells, minlength=table.size)
            expected = n * table.ravel()
            worst = max(
                worst, float(((seen - expected) ** 2 / expected).sum()) / (1.6 * table.size + 20)
            )
        return worst

    assert surprise(population.tables) < 1
    assert surprise(other.tables) > 10


def test_mean_dependence_of_independent_and_of_equal_answers():
    independent, equal = np.outer([0.2, 0.8], [0.5, 0.5]), np.diag([0.5, 0.5])
    assert mean_dependence([independent]) == pytest.approx(0)
    assert mean_dependence([equal]) == pytest.approx(1)
    assert mean_dependence([independent, equal]) == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("sizes", "dependence", "says"),
    [((2,), 0.1, "two attributes"), ((2, 1), 0.1, "two categories"), ((2, 2), 2.0, "lies in")],
)
def test_bad_wishes_are_told(sizes, dependence, says):
    with pytest.raises(InputError, match=says):
        guessed_population(sizes, dependence, 0)
