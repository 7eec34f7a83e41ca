import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from mpc_rr.errors import InputError
from mpc_rr.estimation.matrix import KeepOrUniform
from mpc_rr.privacy import shuffling
from mpc_rr.privacy.disclosures import Disclosure, Recorded
from mpc_rr.privacy.ledger import Ledger, OverdrawnError
from mpc_rr.privacy.odds import certainty
from mpc_rr.privacy.sentences import becomes, odds


def test_plain_odds():
    assert certainty(0) == 0.5
    assert certainty(math.log(3)) == pytest.approx(0.75)
    assert certainty(1e6) == 1.0
    assert becomes(math.log(3)) == "at most 75 % sure"
    assert becomes(20) == "practically certain"
    epsilon = math.log(62 / 38)
    assert odds(epsilon, epsilon, you=True) == (
        "Someone who starts at 50:50 on a guess about you, at one answer or at all of them, can "
        "become at most 62 % sure of it from all of your randomized answers."
    )


def test_certainty_of_the_whole_record_is_not_said_of_one_answer():
    """Six answers at ε = 1.6 were "practically certain of the truth": each alone has 83 %."""
    said = odds(9.81, math.log(3))
    whole, one = said.split(". ")
    assert "between two whole records can become practically certain" in whole
    assert one.startswith("A 50:50 guess at any one answer can become at most 75 % sure (ε = 1.1)")
    assert "protects almost nothing" not in said
    assert odds(20, 20).startswith("This ε protects almost nothing: someone who starts at 50:50")
    assert "can become practically certain, too (ε = 15)" in odds(20, 15)


@given(st.integers(2, 6), st.floats(0.05, 0.95), st.floats(0.01, 0.99))
def test_no_answer_makes_anybody_surer_than_that(size, keep, prior):
    """Bayes' rule on the matrix itself, for every answer and every pair of true values."""
    matrix = KeepOrUniform(size, keep)
    p = matrix.dense()
    for u, other, v in itertools.product(range(size), repeat=3):
        if u != other:
            posterior = prior * p[u, v] / (prior * p[u, v] + (1 - prior) * p[other, v])
            assert posterior <= certainty(matrix.epsilon, prior) + 1e-12


def clones_by_enumeration(local, n, central):
    """The two distributions of "Hiding among the clones" written out, and their divergence."""
    truthful = 1 / (1 + math.exp(-local))
    first, second = {}, {}
    for c in range(n):
        weight = binom.pmf(c, n - 1, math.exp(-local))
        for a in range(c + 1):
            chance = weight * binom.pmf(a, c, 0.5)
            for own, share in ((1, truthful), (0, 1 - truthful)):
                one, other = (a + own, c - a + 1 - own), (a + 1 - own, c - a + own)
                first[one] = first.get(one, 0) + chance * share
                second[other] = second.get(other, 0) + chance * share
    keys = {*first, *second}
    return sum(max(first.get(k, 0) - math.exp(central) * second.get(k, 0), 0) for k in keys)


@pytest.mark.parametrize("local", [0.3, 1.0, 2.5])
@pytest.mark.parametrize("n", [2, 5, 30])
@pytest.mark.parametrize("share", [0.0, 0.2, 0.5, 0.9])
def test_the_numerical_bound_is_the_exact_divergence(local, n, share):
    central = share * local
    assert shuffling.delta_of(local, n, central) == pytest.approx(
        clones_by_enumeration(local, n, central), abs=1e-9
    )


@given(st.floats(0.05, 5), st.integers(10, 100_000), st.sampled_from([1e-4, 1e-6, 1e-9]))
def test_a_crowd_never_harms_and_the_numerical_bound_is_tighter(local, n, delta):
    numerical = shuffling.numerical(local, n, delta)
    closed = shuffling.closed_form(local, n, delta)
    assert 0 <= numerical <= closed + 1e-9 <= local + 2e-9
    if numerical < local:
        assert shuffling.delta_of(local, n, numerical) <= delta


def test_larger_crowds_hide_better():
    found = [shuffling.numerical(1.0, n, 1e-6) for n in (100, 1000, 10_000, 100_000)]
    assert found == sorted(found, reverse=True)
    assert found[-1] < found[0] / 10


def release(epsilon, **options):
    return Recorded(what="kept or uniform", attributes=("age",), epsilon=epsilon, **options)


def test_the_ledger_adds_up_in_its_readings():
    ledger = Ledger()
    ledger.charge(release(1.0), release(2.0, claimed=0.5), release(1.0, crowd=10_000))
    reading = ledger.reading(1e-6)
    assert reading.local == pytest.approx(4.0)
    assert reading.claimed == pytest.approx(2.5)
    assert reading.central == pytest.approx(3.0 + shuffling.numerical(1.0, 10_000, 1e-6))
    assert reading.delta == 1e-6
    assert "98.2 % sure" in ledger.in_words()
    assert reading.answers == {"age": reading.local}
    assert reading.accountant.startswith("sequential composition")


def test_the_deltas_of_several_releases_add_up():
    """Each may fail to hold its ε; that any of them does is as likely as all of that together."""
    ledger = Ledger()
    ledger.charge(release(1.0, delta=3e-9), release(1.0, delta=2e-9), release(1.0))
    assert ledger.reading().local_delta == pytest.approx(5e-9)
    assert ledger.reading().delta == pytest.approx(5e-9)
    ledger.charge(release(1.0, crowd=1000, delta=1e-9))
    assert ledger.reading(1e-6).delta == pytest.approx(1e-6 + 6e-9)


def test_nothing_hidden_needs_no_delta():
    ledger = Ledger()
    ledger.charge(release(1.0))
    assert ledger.reading().delta == 0.0


def test_an_overdrawn_budget_is_refused_and_nothing_recorded():
    ledger = Ledger(budget=2.0)
    ledger.charge(release(1.5))
    with pytest.raises(OverdrawnError, match=r"would cost ε = 0\.6; .* budget of 2"):
        ledger.charge(release(0.6))
    assert ledger.spent == 1.5
    ledger.charge(release(0.5))
    assert ledger.spent == 2.0


def test_what_costs_nothing_is_never_refused():
    """The same answer again, after something without bound."""
    ledger = Ledger(events=[release(math.inf)])
    ledger.budget = 1.0
    ledger.check()
    with pytest.raises(OverdrawnError, match="no ε bounds what was disclosed before"):
        ledger.check(release(0.1))


@given(st.lists(st.floats(0, 1), max_size=30), st.floats(0, 10))
def test_a_ledger_never_exceeds_its_budget(costs, budget):
    ledger = Ledger(budget=budget)
    for cost in costs:
        try:
            ledger.charge(release(cost))
        except OverdrawnError:
            assert ledger.spent + cost > budget
    assert ledger.spent <= budget * (1 + 1e-9)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: certainty(-1), "negative"),
        (lambda: certainty(1, 0), "prior"),
        (lambda: certainty(1, 1), "prior"),
        (lambda: shuffling.numerical(1, 1, 1e-6), "at least two"),
        (lambda: shuffling.closed_form(1, 10, 0), "delta"),
        (lambda: shuffling.closed_form(math.nan, 10, 0.1), "negative"),
    ],
)
def test_bad_input_is_told(call, says):
    with pytest.raises(InputError, match=says):
        call()


def test_an_unbounded_release_can_only_be_afforded_without_a_budget():
    with pytest.raises(OverdrawnError):
        Ledger(budget=100).charge(release(math.inf))
    ledger = Ledger()
    ledger.charge(release(np.inf))
    assert "No ε bounds" in ledger.in_words()


def test_the_closed_form_by_hand():
    """Theorem 3.1 of Feldman, McMillan and Talwar, written out anew."""
    epsilon, n, delta = 1.0, 10_000, 1e-6
    first = 8 * math.sqrt(math.exp(epsilon) * math.log(4 / delta)) / math.sqrt(n)
    second = 8 * math.exp(epsilon) / n
    slope = (math.exp(epsilon) - 1) / (math.exp(epsilon) + 1)
    expected = math.log(1 + slope * (first + second))
    assert shuffling.closed_form(epsilon, n, delta) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("epsilon", "n", "delta"),
    [(1, 10**4, 1e-12), (1, 10**6, 1e-10), pytest.param(1, 10**9, 1e-8, marks=pytest.mark.sweep)],
)
def test_tiny_deltas_are_amplified_too(epsilon, n, delta):
    found = shuffling.numerical(epsilon, n, delta)
    assert found <= shuffling.closed_form(epsilon, n, delta)
    assert found < 0.3


def test_a_huge_epsilon_stays_what_it_is():
    assert shuffling.numerical(1000.0, 10, 1e-6) == 1000.0


def test_two_hidden_releases_share_delta():
    one = release(1.0, crowd=1000)
    both = Ledger(events=[one, one]).reading(1e-6)
    assert both.central == pytest.approx(2 * shuffling.numerical(1.0, 1000, 5e-7))


@pytest.mark.parametrize(
    "call",
    [
        lambda: Ledger(budget=math.nan),
        lambda: Ledger(budget=-1.0),
        lambda: release(-1.0),
        lambda: release(math.nan),
        lambda: release(1.0, claimed=-5.0),
        lambda: release(1.0, delta=1.5),
    ],
)
def test_events_and_budgets_that_make_no_sense_are_refused(call):
    with pytest.raises(InputError, match=r"negative|0 or more"):
        call()


def test_who_is_alone_in_the_crowd_is_not_hidden():
    """Whatever is left of the others' answers, if nobody else is honest."""
    for crowd in (0, 1):
        assert Ledger(events=[release(1.0, crowd=crowd)]).reading().central == 1.0


def test_a_mechanism_must_say_what_two_runs_could_be_compared_for():
    with pytest.raises(TypeError, match="lacks compared"):
        type("Forgetful", (Disclosure,), {}, frozen=True)


def test_a_matrix_of_the_whole_budget_fits_the_budget():
    for epsilon in (14.5, 24.5, 33.3):
        ledger = Ledger(budget=epsilon)
        ledger.charge(release(KeepOrUniform.from_epsilon(7, epsilon).epsilon))
        assert ledger.spent == pytest.approx(epsilon)
