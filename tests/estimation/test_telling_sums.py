"""Sums from which single people's numbers follow: against all people that could have them."""

import itertools
from collections import Counter, defaultdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpc_rr.estimation.power_sums import Number
from mpc_rr.estimation.telling_sums import (
    MOST_TRIED,
    can_be_many,
    counts_of_each,
    few_off_an_end,
    telling,
    without_ends,
)
from mpc_rr.schema import Attribute


def number(possible):
    return Number(0, Attribute("x", "numeric", (), lowest=0.0, highest=possible - 1.0, step=1.0))


def sums_of(number, codes, powers=2):
    steps = [code - number.middle for code in codes]
    return [sum(x**power for x in steps) for power in range(powers + 1)]


@given(st.integers(2, 6), st.integers(1, 6), st.integers(2, 7))
def test_few_are_off_an_end_exactly_where_nobody_else_can_have_these_sums(possible, people, below):
    """Against an enumeration of all that so many people can have given."""
    x, top = number(possible), possible - 1
    could = defaultdict(list)
    for codes in itertools.combinations_with_replacement(range(possible), people):
        could[tuple(sums_of(x, codes))].append(codes)
    for sums, all_codes in could.items():
        off = [[sum(code != end for code in codes) for codes in all_codes] for end in (0, top)]
        surely = any(min(counts) > 0 and max(counts) < below for counts in off)
        assert few_off_an_end(x, *sums, below) == surely


def test_the_most_people_that_can_share_out_steps_and_squares_are_found():
    """All partitions of up to 30, with no limit on how many people there are."""
    for farthest in (1, 2, 3, 7, 30):
        most = Counter()

        def share_out(steps, squares, people, largest, most=most):
            most[steps, squares] = max(most[steps, squares], people)
            for d in range(1, min(largest, 30 - steps) + 1):
                share_out(steps + d, squares + d * d, people + 1, d)

        share_out(0, 0, 0, farthest)
        for (steps, squares), people in most.items():
            for many in range(2, 9) if steps else ():
                assert can_be_many(steps, squares, many, 99, farthest) == (people >= many)


@given(st.lists(st.integers(1, 10**6), min_size=1, max_size=30), st.integers(2, 30))
def test_who_is_off_an_end_is_never_thought_fewer(steps, below):
    """However wide the range: `below` people or more are never taken for fewer."""
    squares, many = sum(d * d for d in steps), len(steps)
    if many >= below:
        assert can_be_many(sum(steps), squares, below, many, 10**6)


@pytest.mark.parametrize("off", [[6, 5], [100, 5], [100, 100, 3], [40, 9]])
def test_a_few_that_are_far_off_are_found_beside_any_number_at_the_end(off):
    for at_the_end in (10, 10_000):
        x = number(101)
        assert few_off_an_end(x, *sums_of(x, [0] * at_the_end + off), 5)
        assert few_off_an_end(x, *sums_of(x, [100] * at_the_end + [100 - d for d in off]), 5)


def test_what_cannot_be_settled_is_hidden():
    """So many tries are enough for the ranges and limits that studies have; not for all."""
    far = 10**6
    steps = [364891, *[far] * 8]
    assert MOST_TRIED < 3887  # which it takes to see that ten others cannot have these sums
    assert not can_be_many(sum(steps), sum(d * d for d in steps), 10, 10**9, far)


@given(st.data(), st.sampled_from([2, 4]))
def test_as_many_sums_as_possible_numbers_tell_how_many_gave_each(data, powers):
    possible = data.draw(st.integers(2, powers + 2))
    codes = data.draw(st.lists(st.integers(0, possible - 1), min_size=1, max_size=40))
    x = number(possible)
    found = counts_of_each(x, sums_of(x, codes, powers))
    if possible == powers + 2:
        assert found is None
    else:
        assert found == np.bincount(codes, minlength=possible).tolist()


@pytest.mark.parametrize(("possible", "powers"), [(3, 2), (4, 4), (5, 4)])
def test_a_small_count_between_the_ends_tells(possible, powers):
    x = number(possible)
    for many, tells in ((4, True), (5, False)):
        codes = [1] * many + [code for code in range(possible) if code != 1] * 9
        assert telling(x, sums_of(x, codes, powers), 5) == tells


@given(
    st.integers(2, 8).flatmap(
        lambda possible: st.tuples(
            st.just(possible), st.lists(st.integers(0, possible - 1), max_size=9)
        )
    ),
    st.booleans(),
    st.booleans(),
)
def test_sums_without_those_at_an_end_are_those_over_the_others(given_, low, top):
    possible, codes = given_
    x = number(possible)
    ends = [0] * low + [possible - 1] * top
    counts = {end: codes.count(end) for end in ends}
    found = [*without_ends(x, sums_of(x, codes), counts)]
    some = [{end} for end in counts] + ([{*counts}] if len(counts) == 2 else [])
    assert found == [sums_of(x, [code for code in codes if code not in taken]) for taken in some]
