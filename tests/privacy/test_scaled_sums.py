"""Sums in grains: the stated ε bounds every likelihood ratio, and some reach it."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from mpc_rr.errors import InputError
from mpc_rr.estimation.power_sums import SumLayout
from mpc_rr.privacy import scaled_sums
from mpc_rr.privacy.scaled_sums import FINEST, ScaledSums
from mpc_rr.randomness import SeededRandomness
from mpc_rr.schema import Attribute, Schema


def number(name, numbers, missing=None):
    return Attribute(
        name, "numeric", (), missing=missing, lowest=0.0, highest=numbers - 1.0, step=1.0
    )


SEX = Attribute("sex", "nominal", ("f", "m"))
PLACE = Attribute("place", "nominal", ("x", "y", "z"))
CASES = {
    "one number, two groups": (Schema((number("a", 5), SEX)), 2),
    "in coarse grains": (Schema((number("a", 7), SEX)), 1),
    "two numbers": (Schema((number("a", 4), number("b", 3))), 3),
    "finer": (Schema((number("a", 10), number("b", 2))), 7),
    "one that may be missing": (Schema((number("a", 4, "none"), number("b", 2))), 3),
    "two groupings": (Schema((number("a", 2), SEX, PLACE)), 1),
}


def outcomes(scaled, record):
    """All that a record may be rounded to, with its probability."""
    ways = []
    for cell, added in zip(scaled.layout.cells, scaled.layout.added_by(record), strict=True):
        exact = Fraction(scaled.grains * added, scaled.layout.largest(cell))
        up = exact - math.floor(exact)
        both = [(math.floor(exact), 1 - up), (math.ceil(exact), up)]
        ways.append([(value, chance) for value, chance in both if chance])
    for way in itertools.product(*ways):
        yield tuple(v for v, _ in way), math.prod(float(chance) for _, chance in way)


def log_chances(scaled, record, totals, scale):
    """ln P(total | record) but for a constant: a mixture over what the record is rounded to."""
    parts = [
        math.log(chance) - np.abs(totals - np.array(value)).sum(axis=1) / scale
        for value, chance in outcomes(scaled, record)
    ]
    return np.logaddexp.reduce(parts, axis=0)


def records(schema):
    return list(itertools.product(*(range(size) for size in schema.sizes)))


def all_totals(scaled, of):
    """Beyond these, likelihood ratios do not change any more."""
    values = np.array([value for record in of for value, _ in outcomes(scaled, record)])
    ranges = (range(lo, hi + 1) for lo, hi in zip(values.min(0), values.max(0), strict=True))
    return np.array(list(itertools.product(*ranges)))


def largest_ratio(scaled, of, epsilon):
    totals, scale = all_totals(scaled, of), scaled.sensitivity / epsilon
    logs = np.array([log_chances(scaled, record, totals, scale) for record in of])
    return (logs.max(axis=0) - logs.min(axis=0)).max()


@pytest.mark.parametrize("case", CASES)
def test_every_likelihood_ratio_is_within_epsilon_and_one_reaches_it(case):
    """By all totals that could come out, of all records, whichever way these are rounded.

    In sums over all people the number at which the ratio is largest may be one that is rounded,
    and then chance takes a little of it off."""
    schema, grains = CASES[case]
    scaled = ScaledSums(SumLayout(schema, ends=False), grains)
    found = largest_ratio(scaled, records(schema), 1.5)
    assert found <= 1.5 * (1 + 1e-12)
    assert found >= (1.5 * (1 - 1e-12) if scaled.layout.by else 0.9 * 1.5)


@pytest.mark.parametrize("case", CASES)
def test_one_answer_is_within_its_own_epsilon(case):
    schema, grains = CASES[case]
    scaled = ScaledSums(SumLayout(schema, ends=False), grains)
    for place in range(len(schema.attributes)):
        own = 1.5 * scaled.of_answer(place) / scaled.sensitivity
        for rest in records(schema):
            of = [r for r in records(schema) if all(
                a == b for k, (a, b) in enumerate(zip(r, rest, strict=True)) if k != place
            )]  # fmt: skip
            assert largest_ratio(scaled, of, 1.5) <= own * (1 + 1e-12)


@pytest.mark.parametrize("less", [1, 2])
def test_a_smaller_sensitivity_would_be_noticed(less):
    schema, grains = CASES["one number, two groups"]
    scaled = ScaledSums(SumLayout(schema, ends=False), grains)
    epsilon = 1.5 * scaled.sensitivity / (scaled.sensitivity - less)
    assert largest_ratio(scaled, records(schema), epsilon) > 1.5


def test_rounding_is_right_on_average_and_never_further_than_a_grain():
    """Means of 4,000 draws, within five standard errors: once in a million for each of six."""
    scaled = ScaledSums(SumLayout(Schema((number("a", 10), number("b", 12))), ends=False), 7)
    record, rng = (7, 2), SeededRandomness(3)
    drawn = np.array([scaled.rounded(record, rng) for _ in range(4000)])
    exact = np.array(
        [
            7 * added / scaled.layout.largest(cell)
            for cell, added in zip(scaled.layout.cells, scaled.layout.added_by(record), strict=True)
        ]
    )
    assert np.abs(drawn - exact).max() < 1
    assert np.abs(drawn.mean(axis=0) - exact).max() < 5 * 0.5 / math.sqrt(4000)
    assert (drawn.var(axis=0) > 0).any()
    for place, cell in enumerate(scaled.layout.cells):
        assert drawn[:, place].var() <= scaled.rounding(cell, 1)


def test_grains_are_as_fine_as_noise_can_be_drawn():
    layout = SumLayout(Schema((number("a", 100_001), SEX)), ends=False)
    for epsilon in (0.01, 0.5, 1.0, 5.0, 100.0):
        scaled = ScaledSums.of(layout, epsilon)
        assert scaled.sensitivity <= FINEST * epsilon or scaled.grains == 1
        finer = ScaledSums(layout, 2 * scaled.grains)
        assert finer.grains > FINEST or finer.sensitivity > FINEST * epsilon


def test_a_number_with_too_many_values_is_refused():
    values = scaled_sums.MOST_NUMBERS + 1
    layout = SumLayout(Schema((number("a", values), SEX)), ends=False)
    with pytest.raises(InputError, match=r"'a' has 1,048,577 possible numbers, .* larger step"):
        ScaledSums.of(layout, 1.0)
