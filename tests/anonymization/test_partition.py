"""Groups: everybody in one, none below k, and as close as the published algorithm makes them."""

import itertools
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pycanon import anonymity

from mpc_rr.anonymization import partition
from mpc_rr.anonymization.hierarchy import (
    Hierarchy,
    check_combinations,
    generalize,
    groups_at,
)
from mpc_rr.anonymization.partition import mdav, mondrian
from mpc_rr.anonymization.releases import RELEASES, Grouped
from mpc_rr.anonymization.risk import information_loss, linkage, protection
from mpc_rr.anonymization.table import Microdata
from mpc_rr.errors import InputError
from mpc_rr.schema import Attribute


def number(name, highest=1000.0, step=1.0):
    return Attribute(name, "numeric", (), lowest=0.0, highest=highest, step=step)


AGE, HEIGHT = number("age"), number("height")
SEX = Attribute("sex", "nominal", ("f", "m", "x"))
SCHOOL = Attribute("school", "ordinal", ("none", "primary", "secondary", "higher"))
MIXED = (AGE, SEX, SCHOOL)


def mixed_table(n, seed):
    rng = np.random.default_rng(seed)
    columns = [rng.integers(0, 80, n), rng.integers(0, 3, n), rng.integers(0, 4, n)]
    return Microdata(MIXED, np.stack(columns, axis=1))


@pytest.mark.parametrize("make", [mdav, mondrian])
@given(n=st.integers(2, 60), k=st.integers(2, 9), seed=st.integers(0, 10**6))
def test_everybody_is_in_one_group_and_none_is_below_k(make, n, k, seed):
    if n < k:
        return
    groups = make(mixed_table(n, seed), k)
    assert sorted(np.concatenate(groups).tolist()) == list(range(n))
    sizes = [len(group) for group in groups]
    assert min(sizes) >= k
    if make is mdav:
        assert max(sizes) <= 2 * k - 1


def mdav_as_printed(points, k):
    """The published steps, one record at a time."""
    left, groups = list(range(len(points))), []

    def distance(a, b):
        return int(((a - b) ** 2).sum())

    def take(centre):
        nearest = sorted(left, key=lambda row: (distance(points[row], centre), row))[:k]
        for row in nearest:
            left.remove(row)
        groups.append(nearest)

    def farthest(centre):
        return points[max(left, key=lambda row: distance(points[row], centre))]

    while len(left) >= 3 * k:
        first = farthest(points[left].sum(axis=0) // len(left))
        take(first)
        take(farthest(first))
    if len(left) >= 2 * k:
        take(farthest(points[left].sum(axis=0) // len(left)))
    groups.append(list(left))
    return {frozenset(group) for group in groups}


@given(n=st.integers(6, 60), k=st.integers(2, 6), seed=st.integers(0, 10**6))
def test_mdav_makes_the_groups_of_the_published_algorithm(n, k, seed):
    if n < k:
        return
    rng = np.random.default_rng(seed)
    codes = np.stack([rng.permutation(997)[:n], rng.permutation(991)[:n]], axis=1)
    table = Microdata((AGE, HEIGHT), codes)
    found = {frozenset(group.tolist()) for group in mdav(table, k)}
    assert found == mdav_as_printed(table.points, k)


def test_large_data_are_cut_before_mdav_looks_at_them(monkeypatch):
    monkeypatch.setattr(partition, "MOST_AT_ONCE", 50)
    table = mixed_table(400, 1)
    groups = mdav(table, 5)
    assert sorted(np.concatenate(groups).tolist()) == list(range(400))
    assert min(len(group) for group in groups) >= 5


def test_twice_k_records_are_two_groups():
    table = Microdata((AGE, HEIGHT), np.array([[20, 160], [21, 161], [60, 180], [61, 181]]))
    for make in (mdav, mondrian):
        assert sorted(sorted(group.tolist()) for group in make(table, 2)) == [[0, 1], [2, 3]]
        assert len(make(table, 3)) == 1


def test_records_without_any_spread_stay_together():
    table = Microdata((AGE, HEIGHT), np.full((20, 2), 7))
    assert len(mondrian(table, 3)) == 1
    assert information_loss(table, mondrian(table, 3)).squared_error == 0


def test_closer_groups_lose_less_than_random_ones():
    table = mixed_table(300, 2)
    shuffled = np.random.default_rng(3).permutation(300)
    by_chance = information_loss(table, np.split(shuffled, 60))
    for make in (mdav, mondrian):
        ours = information_loss(table, make(table, 5))
        assert ours.squared_error < 0.5 * by_chance.squared_error
        assert ours.certainty_penalty < by_chance.certainty_penalty


# ── What is released, as pycanon sees it ────────────────────────────────────────────────────────

SALARY = number("salary", 10_000)


def grouped(make=mdav, n=200, k=5, seed=4):
    table = mixed_table(n, seed)
    rows = make(table, k)
    salaries = np.random.default_rng(seed + 1).integers(0, 40, n)
    parts = [Microdata((SALARY,), salaries[group][:, None]) for group in rows]
    return Grouped(table, rows, parts)


def as_frame(sheet):
    return pd.DataFrame(sheet[1:], columns=sheet[0])


@pytest.mark.parametrize("make", [mdav, mondrian])
@pytest.mark.parametrize("release", ["microaggregated", "generalized"])
def test_pycanon_confirms_k_l_and_t(make, release):
    found = grouped(make)
    frame = as_frame(RELEASES[release](found)["release"]).drop(columns="group")
    quasi = [attribute.name for attribute in MIXED]
    reached = anonymity.k_anonymity(frame, quasi)
    # Two groups may look alike in the release: then they are one to whoever reads it.
    assert reached >= min(len(rows) for rows in found.groups) >= 5
    told = protection(found)[0]
    frame["salary"] = frame["salary"].astype(int)
    assert anonymity.l_diversity(frame, quasi, ["salary"]) >= told.least_different
    if frame.groupby(quasi).ngroups == len(found.groups):
        assert anonymity.l_diversity(frame, quasi, ["salary"]) == told.least_different
        assert anonymity.t_closeness(frame, quasi, ["salary"]) == pytest.approx(
            told.farthest, abs=1e-6
        )


def test_anatomy_keeps_both_tables_and_tells_only_the_group():
    found = grouped(k=6)
    sheets = RELEASES["anatomy"](found)
    first, second = as_frame(sheets["quasi_identifiers"]), as_frame(sheets["confidential"])
    assert sorted(first["age"].astype(int)) == sorted(found.known.codes[:, 0])
    assert first["group"].value_counts().equals(second["group"].value_counts())
    assert list(second.columns) == ["group", "salary"]


def test_permuted_values_stay_in_their_group():
    found = grouped(k=6)
    frame = as_frame(RELEASES["permuted"](found)["release"])
    assert sorted(frame["age"].astype(int)) == sorted(found.known.codes[:, 0])
    start = 0
    for rows, part in zip(found.groups, found.confidential, strict=True):
        stop = start + len(rows)
        assert sorted(frame["salary"][start:stop].astype(int)) == sorted(part.codes[:, 0])
        assert frame["age"][start:stop].astype(int).tolist() == found.known.codes[rows, 0].tolist()
        start = stop


def test_no_value_is_lost_where_somebody_named_another_group():
    found = grouped(k=6)
    first, second, *rest = (part.codes for part in found.confidential)
    moved = [np.concatenate([first, second[:1]]), second[1:], *rest]
    parts = [Microdata((SALARY,), codes) for codes in moved]
    frame = as_frame(RELEASES["permuted"](replace(found, confidential=parts))["release"])
    assert sorted(frame["age"][frame["age"] != ""].astype(int)) == sorted(found.known.codes[:, 0])
    told = frame["salary"][frame["salary"] != ""].astype(int)
    assert sorted(told) == sorted(np.concatenate(moved)[:, 0])
    assert len(frame) == len(told) + 1


def test_risk_of_linkage_is_one_over_k_where_the_group_is_known():
    found = grouped(k=5)
    for release in ("anatomy", "permuted"):
        risk = linkage(found.known, found.groups, release)
        assert risk.highest == pytest.approx(1 / 5)
    # Neighbouring groups overlap or lie closer, so whoever guesses by distance is wrong more often.
    assert linkage(found.known, found.groups, "microaggregated").average <= 1 / 5
    assert linkage(found.known, found.groups, "generalized").average <= 1 / 5


def test_a_group_with_one_value_is_told():
    table = Microdata((AGE, HEIGHT), np.arange(8)[:, None] * np.ones((1, 2), dtype=int))
    rows = [np.arange(4), np.arange(4, 8)]
    parts = [Microdata((SALARY,), np.full((4, 1), 3)), Microdata((SALARY,), np.arange(4)[:, None])]
    told = protection(Grouped(table, rows, parts))[0]
    assert told.least_different == 1
    assert told.entropy_diversity == pytest.approx(1.0)
    assert told.farthest == pytest.approx(0.25)  # (1+2+3)/8 over three steps


# ── Hierarchies ────────────────────────────────────────────────────────────────────────────────

BY_SEX = {"known": ("f", "m"), "other": ("x",)}
BY_SCHOOL = {"low": ("none", "primary"), "high": ("secondary", "higher")}


def hierarchies():
    return [Hierarchy(AGE, (5.0, 20.0)), Hierarchy(SEX, (BY_SEX,)), Hierarchy(SCHOOL, (BY_SCHOOL,))]


@settings(max_examples=30)
@given(n=st.integers(4, 80), k=st.integers(2, 6), seed=st.integers(0, 10**6))
def test_generalization_takes_the_best_of_all_levels(n, k, seed):
    if n < k:
        return
    table, all_levels = mixed_table(n, seed), hierarchies()
    levels = generalize(table, all_levels, k)
    groups = groups_at(table, all_levels, levels)
    assert min(len(group) for group in groups) >= k

    def lost(chosen):
        columns = enumerate(zip(all_levels, chosen, strict=True))
        return sum(h.loss(table.codes[:, place], level) for place, (h, level) in columns)

    good = [
        lost(chosen)
        for chosen in itertools.product(*(range(h.depth + 1) for h in all_levels))
        if min(len(group) for group in groups_at(table, all_levels, chosen)) >= k
    ]
    assert lost(levels) == pytest.approx(min(good))


def test_labels_say_what_a_level_tells():
    age, sex, _ = hierarchies()
    assert [age.label(23, level) for level in range(4)] == ["23", "20–24", "20–39", "*"]
    assert age.label(1000, 2) == "1000–1000"
    cut = Hierarchy(AGE, ((18.0, 30.0, 65.0), (30.0,)))
    assert [cut.label(code, 1) for code in (0, 17, 18, 29, 30, 65, 1000)] == [
        "0–17", "0–17", "18–29", "18–29", "30–64", "65–1000", "65–1000",
    ]  # fmt: skip
    assert (cut.label(29, 2), cut.label(30, 2)) == ("0–29", "30–1000")
    assert cut.under(40, 1).tolist() == [30, 64]
    assert cut.loss(np.array([17, 18]), 1) == (17 + 11) / 2 / 1000
    assert [sex.label(2, level) for level in range(3)] == ["x", "other", "*"]


@pytest.mark.parametrize(
    ("attribute", "levels", "says"),
    [
        (SEX, ({"known": ("f", "m")},), r"misses the value 'x'"),
        (SEX, ({"known": ("f", "m"), "all": ("m", "x")},), "more than one place for the value 'm'"),
        (SEX, ({"known": ("f", "m", "x", "y")},), "'y' is no value"),
        (SEX, (5.0,), "a width needs numbers"),
        (AGE, ({"young": ("1",)},), "give the width"),
        (AGE, (0.0,), "must be positive"),
        (AGE, (10.0, 15.0), "separates values that are together"),
        (AGE, ((20.0, 10.0),), "cut points must rise"),
        (AGE, ((0.0, 10.0),), "cut points must rise"),
        (AGE, ((10.0, 2000.0),), "beyond what can be answered"),
        (AGE, ((10.0, float("inf")),), "must be finite"),
        (AGE, ((),), "give the numbers at which"),
        (AGE, ((10.0, 20.0), (15.0,)), "separates values that are together"),
        (SEX, ((1.0,),), "a width needs numbers"),
    ],
)
def test_a_hierarchy_that_makes_no_sense_is_refused(attribute, levels, says):
    with pytest.raises(InputError, match=says):
        Hierarchy(attribute, levels)


def test_whoever_guesses_among_equal_centres_has_all_their_records_to_choose_from():
    table = Microdata((AGE, HEIGHT), np.full((4, 2), 7))
    risk = linkage(table, [np.array([0, 1]), np.array([2, 3])], "microaggregated")
    assert risk.highest == pytest.approx(1 / 4)


def test_groups_do_not_depend_on_the_machines_rounding():
    """All numbers are whole ones; ties go by the order of the records."""
    table = mixed_table(300, 9)
    assert table.points.dtype == np.int64
    for make in (mdav, mondrian):
        again = make(Microdata(table.attributes, table.codes.copy()), 4)
        assert [g.tolist() for g in again] == [g.tolist() for g in make(table, 4)]
    tied = Microdata((AGE, HEIGHT), np.zeros((7, 2), dtype=np.int64))
    assert [g.tolist() for g in mdav(tied, 3)] == [[0, 1, 2], [3, 4, 5, 6]]


def test_too_many_levels_are_told_before_anybody_is_asked():
    deep = [Hierarchy(number(f"n{k}"), tuple(float(2**j) for j in range(9))) for k in range(6)]
    with pytest.raises(InputError, match="more than 100,000 combinations"):
        check_combinations(deep)
    table = Microdata(tuple(h.attribute for h in deep), np.zeros((4, 6), dtype=np.int64))
    with pytest.raises(InputError, match="more than 100,000 combinations"):
        generalize(table, deep, 2)
