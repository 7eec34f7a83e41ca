"""What a respondent is shown before she decides, against an enumeration of all draws."""

import inspect

import numpy as np
import pytest
from anonymizing import EIGHT, PEOPLE
from hypothesis import given
from hypothesis import strategies as st

from mpc_rr.anonymization.deciding import (
    Asked,
    decided_by_rule,
    fewest_for_anybody,
    fewest_left,
    read_rule,
    tries,
)
from mpc_rr.anonymization.perturbation import (
    ChosenValue,
    Noise,
    RankSwap,
    Widened,
    read_perturbation,
)
from mpc_rr.errors import InputError
from mpc_rr.schema import Attribute

_, AGE, SALARY = EIGHT.attributes
MOOD = Attribute("mood", "ordinal", ("?", "low", "fair", "good"), missing="?")
MASKS = [Noise(1), Noise(4), RankSwap(30), Widened(Noise(2), 1)]
LISTS = st.lists(st.integers(0, 15), min_size=1, max_size=10)


def every_masked(mask, own, ordered):
    """All values that somebody with this one may publish, by the mask's own words."""
    reach, size = mask.reach(len(ordered)), min(2 * mask.reach(len(ordered)) + 1, len(ordered))
    found = set()
    for rank in np.flatnonzero(ordered == own):
        first = min(max(rank - reach, 0), len(ordered) - size)
        for taken in ordered[first : first + size]:
            found |= set(range(taken - mask.noise(), taken + mask.noise() + 1))
    return found


@pytest.mark.parametrize("mask", MASKS, ids=repr)
@given(LISTS)
def test_the_fewest_candidates_are_those_of_the_worst_draw(mask, values):
    ordered = np.sort(np.array(values))
    worst = {
        own: min(mask.candidates(m, ordered).values for m in every_masked(mask, own, ordered))
        for own in set(values)
    }
    assert fewest_for_anybody(mask, values) == min(worst.values())
    for own, fewest in worst.items():
        taken = mask.taken_from(own, ordered)
        assert fewest_left(mask, ordered, taken) == fewest


def test_her_place_and_what_masks_would_do_to_her():
    asked = Asked(SALARY, tuple(sorted(person[2] for person in PEOPLE)), 35000, "noise:5000")
    assert asked.rank == (4, 4)
    bare = asked.outlook("none")
    assert (bare.fewest, bare.usual, bare.for_anybody, bare.moved) == (1, 1, 1, 0)
    whole = asked.outlook("swap:100")
    assert (whole.fewest, whole.usual, whole.for_anybody) == (8, 8, 8)
    # of eight places, hers the fourth: (3+2+1+0+1+2+3+4)/8 on average
    assert whole.moved == pytest.approx(2, abs=0.5)
    assert tries(asked)[0] == "noise:5000"
    with pytest.raises(InputError, match="nothing bounds what it tells"):
        asked.outlook("=37306")
    assert Asked(AGE, (5, 5, 7), 5, "none").rank == (1, 2)


def test_no_rule_sees_the_value_it_decides_about():
    """Whatever she has, a rule decides alike for the same list: it is given nothing else."""
    assert list(inspect.signature(decided_by_rule).parameters) == ["rule", "attribute", "values"]
    rule = read_rule("first:4:swap:5,swap:50,swap:100", SALARY)
    values = sorted(person[2] for person in PEOPLE)
    assert decided_by_rule(rule, SALARY, values) == "swap:50"
    assert decided_by_rule(read_rule("first:9:swap:5,noise:10", SALARY), SALARY, values) == (
        "noise:10"
    )


@pytest.mark.parametrize(("words", "code"), [("=37306", 37306), ("= -5", -5), ("=2e6", 2_000_000)])
def test_a_value_of_ones_own_choice_may_lie_beyond_what_can_be_answered(words, code):
    assert read_perturbation(words, SALARY) == ChosenValue(code)


def test_a_category_of_ones_own_choice():
    assert read_perturbation("=fair", MOOD) == ChosenValue(2)


@pytest.mark.parametrize(
    ("words", "attribute", "says"),
    [
        ("=", SALARY, "'' is not a number"),
        ("=many", SALARY, "'many' is not a number"),
        ("=1.5", SALARY, "plus a multiple of its step"),
        ("=1e300", SALARY, "too far"),
        ("=9999999", SALARY, "too far"),
        ("=?", MOOD, "not one of"),
        ("=best", MOOD, "not one of"),
    ],
)
def test_a_value_that_makes_no_sense_is_refused(words, attribute, says):
    with pytest.raises(InputError, match=says):
        read_perturbation(words, attribute)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("first:0:swap:5", "a rule looks like"),
        ("first:swap:5", "a rule looks like"),
        ("first:3:=20", "takes masks, no values"),
        ("first:3:swap:5,noise", "'' is not a number"),
    ],
)
def test_a_rule_that_makes_no_sense_is_refused(words, says):
    with pytest.raises(InputError, match=says):
        read_rule(words, SALARY)
    assert read_rule("noise:3", SALARY) is None
