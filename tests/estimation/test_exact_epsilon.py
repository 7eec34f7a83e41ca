"""What is printed as ε is what the drawn mechanism has, reckoned in fractions."""

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from drawing import Script, words
from hypothesis import example, given
from hypothesis import strategies as st

from mpc_rr.estimation.blocks import answer_epsilon, epsilon_bound, floored, respond
from mpc_rr.estimation.matrix import Dense, DistanceWeighted, KeepOrUniform, nearby
from mpc_rr.estimation.views import SubsetMechanism
from mpc_rr.randomness import SeededRandomness

BITS = 256
"""So many random bits are played through: all binary places of the probabilities here."""
epsilons = st.floats(1e-6, 30)
seeds = st.integers(0, 2**32)


class OneChoice(Script):
    """Random digits for yes or no; whatever else is drawn is the same always."""

    def below(self, modulus, shape):
        return np.full(shape, modulus - 1, dtype=np.uint64)

    def subsets(self, size, chosen, rows):
        assert chosen <= size
        return np.tile(np.arange(chosen), (rows, 1))

    def categorical(self, weights, shape):
        assert len(weights)
        return np.zeros(shape, dtype=np.int64)


def chance_of_truth(answer, truth):
    """The exact probability of the truth, from what is answered at each number in [0, 1).

    The answer changes at one number only, which is found by bisection.
    """

    def told(place):
        shifts = range(BITS - 64, -1, -64)
        rng = OneChoice(words(*(place >> shift & (2**64 - 1) for shift in shifts)))
        return truth in np.atleast_1d(answer(np.array([truth]), rng)[0])

    first, low, high = told(0), 0, 2**BITS
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if told(middle) == first else (low, middle)
    share = Fraction(high, 2**BITS)
    return share if first else 1 - share


def logarithm(ratio):
    with localcontext() as context:
        context.prec = 60
        return (Decimal(ratio.numerator) / Decimal(ratio.denominator)).ln()


def assert_never_more(exact, promised):
    assert Decimal(promised) * (1 - Decimal("1e-12")) <= exact <= Decimal(promised)


def assert_close(exact, printed, scale=0):
    assert abs(exact - Decimal(printed)) <= Decimal("1e-12") * max(abs(exact), scale)


@given(st.integers(3, 2**31), epsilons)
@example(8, 30.0)
@example(64, 30.0)
@example(3, 1e-6)
def test_keep_or_uniform_costs_what_it_was_made_for(size, epsilon):
    matrix = KeepOrUniform.from_epsilon(size, epsilon)
    truth = chance_of_truth(matrix.randomize, 1)
    assert_never_more(logarithm(1 + truth * size / (1 - truth)), matrix.epsilon)
    assert matrix.epsilon == epsilon


@given(st.integers(3, 2**31), st.floats(1e-9, 1, exclude_max=True))
@example(3, 1 - 2.0**-53)
def test_keep_or_uniform_with_a_given_probability_keeps_just_that(size, keep):
    matrix = KeepOrUniform(size, keep)
    truth = chance_of_truth(matrix.randomize, 1)
    assert truth == Fraction(keep)
    assert_close(logarithm(1 + truth * size / (1 - truth)), matrix.epsilon)


@given(st.integers(3, 10_000), epsilons, st.data())
@example(1000, 30.0, None)
def test_sets_of_values_cost_what_they_were_made_for(size, epsilon, data):
    chosen = data.draw(st.integers(2, size - 1)) if data else 5
    mechanism = SubsetMechanism(size, epsilon, chosen)
    truth = chance_of_truth(mechanism.randomize, 1)
    held = truth + (1 - truth) * Fraction(chosen, size)
    ratio = held / (1 - held) * Fraction(size - chosen, chosen)
    assert_never_more(logarithm(ratio), epsilon)


@given(st.integers(2, 50), st.floats(0.001, 1, exclude_max=True), st.floats(0.9, 1.1), seeds)
def test_a_block_answer_costs_what_is_entered_in_the_books(size, p, total, seed):
    """Also if the table that was shown does not quite add up to 1."""
    table = floored(np.random.default_rng(seed).dirichlet(np.full(size, 0.1)), 0.001) * total
    truth = chance_of_truth(lambda cells, rng: respond(cells, table, p, rng), 1)
    assert truth == Fraction(p)
    smallest = min(map(Fraction, table)) / sum(map(Fraction, table))
    assert_close(logarithm(1 + truth / ((1 - truth) * smallest)), answer_epsilon(p, table))


@given(st.integers(2, 50), st.floats(0.001, 0.999), st.floats(1e-4, 1), seeds)
def test_a_block_answer_costs_at_most_the_bound_of_its_floor(size, p, floor, seed):
    table = floored(np.random.default_rng(seed).dirichlet(np.full(size, 0.1)), floor)
    assert answer_epsilon(p, table) <= epsilon_bound(p, floor, size) * (1 + 1e-12)


@given(st.integers(2, 6), seeds)
def test_a_matrix_of_ones_own_costs_what_it_says(size, seed):
    matrix = Dense(np.random.default_rng(seed).dirichlet(np.ones(size), size))
    rows = [list(map(Fraction, row)) for row in matrix.weights]
    drawn = [[weight / sum(row) for weight in row] for row in rows]
    exact = max(logarithm(max(column) / min(column)) for column in zip(*drawn, strict=True))
    assert_close(exact, matrix.epsilon)


@given(st.integers(2, 12), st.floats(0.001, 0.999))
def test_rather_near_answers_stay_and_move_as_they_should(size, stay):
    """Bistochastic; 1/k as often k categories away; no answer stays more seldom than asked."""
    matrix = nearby(size, stay)
    dense = matrix.dense()
    assert matrix.bistochastic
    np.testing.assert_allclose(dense.sum(axis=1), 1, atol=1e-12)
    assert np.diag(dense).min() == pytest.approx(stay, abs=1e-12)
    apart = abs(np.subtract.outer(np.arange(size), np.arange(size)))
    away = (dense * apart)[apart > 0]
    np.testing.assert_allclose(away, away[0], rtol=1e-9)
    assert matrix.epsilon == pytest.approx(np.log(dense.max(axis=0) / dense.min(axis=0)).max())


@given(st.integers(2, 6), seeds, st.floats(1e-9, 1e-3))
def test_a_matrix_that_tells_next_to_nothing_costs_next_to_nothing_to_the_last_digit(
    size, seed, little
):
    """Where logarithms of rounded ratios would have lost their digits."""
    rows = 1 / size + little * np.random.default_rng(seed).uniform(-1, 1, (size, size)) / size
    rows[:, -1] = 1 - rows[:, :-1].sum(axis=1)
    matrix = Dense(rows)
    exact = [[Fraction(w) / sum(map(Fraction, row)) for w in row] for row in rows.tolist()]
    largest = max(max(column) / min(column) for column in zip(*exact, strict=True))
    assert_close(logarithm(largest), matrix.epsilon)


def test_a_report_that_excludes_answers_has_no_epsilon():
    some = Dense([[0.6, 0.4, 0], [0.3, 0.3, 0.4], [0, 0.5, 0.5]])
    assert math.isinf(some.epsilon)
    assert some.betrayed() == []
    assert Dense([[1, 0], [0.5, 0.5]]).betrayed() == [1]
    never = Dense([[0.6, 0.4, 0], [0.3, 0.7, 0], [0.5, 0.5, 0]])  # nobody ever reports the last
    assert never.epsilon == pytest.approx(math.log(2))


class Recording(SeededRandomness):
    """Keeps the weights of the first draw among several."""

    first = None

    def categorical(self, weights, shape):
        self.first = weights if self.first is None else self.first
        return super().categorical(weights, shape)


@given(st.lists(st.integers(2, 9), min_size=1, max_size=5), st.floats(0.001, 0.999))
def test_moving_to_near_records_costs_what_it_says(sizes, stay):
    matrix, rng = DistanceWeighted(sizes, stay), Recording(1)
    matrix.randomize(np.zeros(1, dtype=np.int64), rng)
    at = [1]
    for size in sizes:
        at = [a + (size - 1) * b for a, b in zip([*at, 0], [0, *at], strict=True)]
    chances = [Fraction(w) / n for w, n in zip(rng.first, at, strict=True)]
    assert_close(logarithm(max(chances) / min(chances)), matrix.epsilon)
