"""Masking alone: how often it is linked and what it loses, against loops that know the rules."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpc_rr.anonymization.alone import STRENGTHS, MaskedAlone, where_as_safe
from mpc_rr.anonymization.table import Microdata
from mpc_rr.randomness import SeededRandomness
from mpc_rr.schema import Attribute

AGE = Attribute("age", "numeric", (), lowest=20, highest=60, step=1, missing="none")
SEX = Attribute("sex", "nominal", ("f", "m", "x"))
SCHOOL = Attribute("school", "ordinal", ("low", "middle", "high", "?"), missing="?")
NONE = 41
RNG = np.random.default_rng(5)
RECORDS = [
    (int(RNG.integers(0, 41)) if n % 7 else NONE, int(RNG.integers(3)), int(RNG.integers(4)))
    for n in range(30)
]
TABLE = Microdata.of((AGE, SEX, SCHOOL), RECORDS)


def drawn(seed=1):
    return MaskedAlone.drawn(TABLE, SeededRandomness(seed))


def chance_of(place, strength, told, true):
    """How likely a true value is masked so, up to a factor, by the rules in the module."""
    if place == 0:
        if true == NONE or told is None:
            return float(true == NONE and told is None)
        return float(abs(told - true) <= round(40 * strength / (1 - strength)))
    if place == 2 and 3 in (told, true):
        return float(told == true)
    return strength / 3 + (1 - strength) * (told == true)


def masked_rows(alone, strength):
    """Who gave no answer tells none, whatever number that has."""
    return [
        [None if place == 0 and RECORDS[n][0] == NONE else code for place, code in enumerate(row)]
        for n, row in enumerate(alone.masked(strength).tolist())
    ]


@pytest.mark.parametrize("strength", [0.0, STRENGTHS[8], 0.2, 0.7, STRENGTHS[-1]])
def test_a_record_is_linked_as_often_as_by_comparing_all(strength):
    alone = drawn()
    rows = masked_rows(alone, strength)
    hits = []
    for own, true in enumerate(RECORDS):
        likely = [
            math.prod(chance_of(p, strength, row[p], true[p]) for p in range(3)) for row in rows
        ]
        best = [n for n, each in enumerate(likely) if each >= max(likely) * (1 - 1e-9)]
        hits.append((own in best) / len(best))
    assert alone.linked(strength).average == pytest.approx(np.mean(hits))
    assert alone.linked(strength).highest == pytest.approx(max(hits))


@pytest.mark.parametrize("strength", [0.0, 0.1, 0.6])
def test_what_is_lost_is_what_no_expectation_restores(strength):
    alone = drawn(2)
    rows = masked_rows(alone, strength)
    told = alone.lost(strength)
    points = {0: lambda c: np.array([c]), 1: lambda c: np.eye(3)[c], 2: lambda c: np.array([c])}
    for place, none in ((0, NONE), (1, -1), (2, 3)):
        there = [n for n, record in enumerate(RECORDS) if record[place] != none]
        true = np.array([points[place](RECORDS[n][place]) for n in there], dtype=float)
        error = 0.0
        for n, point in zip(there, true, strict=True):
            weights = np.array(
                [chance_of(place, strength, rows[n][place], RECORDS[m][place]) for m in there]
            )
            error += ((point - weights @ true / weights.sum()) ** 2).sum()
        whole = ((true - true.mean(axis=0)) ** 2).sum()
        assert told[place] == pytest.approx(error / whole)


def test_from_records_as_they_are_to_nothing():
    alone = drawn(3)
    same = [sum(own == other for other in RECORDS) for own in RECORDS]
    assert alone.linked(0.0).average == pytest.approx(np.mean([1 / number for number in same]))
    assert alone.lost(0.0) == [0, 0, 0]
    assert (alone.masked(0.0) == TABLE.codes).all()
    assert min(alone.lost(STRENGTHS[-1])) > 0.95


def test_no_answer_stays_none():
    masked = drawn(4).masked(0.9)
    assert (masked[TABLE.unanswered] == TABLE.codes[TABLE.unanswered]).all()
    answers = masked[~TABLE.unanswered[:, 2], 2]
    assert set(answers.tolist()) <= {0, 1, 2}


@given(
    risks=st.lists(st.floats(0.01, 1), min_size=2, max_size=8, unique=True),
    target=st.floats(0.01, 1),
)
def test_where_it_is_as_safe_lies_between_the_steps_around(risks, target):
    risks = sorted(risks, reverse=True)
    found = where_as_safe(risks, risks, target)
    if target < risks[-1]:
        assert found is None
    elif target >= risks[0]:
        assert found == risks[0]
    else:  # what is interpolated is the risk itself
        assert found == pytest.approx(target)
