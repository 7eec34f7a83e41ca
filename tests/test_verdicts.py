"""Three-valued verdicts: how often they are wrong, and when they are left open."""

import csv
import io
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from mpc_rr.reproduce.medians import Medians
from mpc_rr.reproduce.result import Bars, Reproduction
from mpc_rr.reproduce.verdict import (
    FALSE_ALARM,
    Claim,
    Comparison,
    Verdict,
    exactly,
    mean_margin,
    means_apart,
    measured,
    share_above,
    share_below,
)

HOLDS, FAILS, OPEN = Verdict.HOLDS, Verdict.FAILS, Verdict.OPEN


def clear(margin):
    """A comparison that is beyond doubt."""
    return measured("x", margin, abs(margin) / 100, 1000)


def unclear(margin=0.1):
    return measured("x", margin, 1.0, 1000)


# ── One comparison ─────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("comparison", "verdict"),
    [
        (exactly("x", 0.1), HOLDS),
        (exactly("x", -0.1), FAILS),
        (exactly("x", 0.0), FAILS),
        (clear(1), HOLDS),
        (clear(-1), FAILS),
        (unclear(), OPEN),
        (mean_margin("x", [5.0]), OPEN),
        (mean_margin("x", [5.0, 5.0]), OPEN),
        (mean_margin("x", [5.0, 5.1, 4.9, 5.0]), HOLDS),
        (measured("x", math.inf, 1.0, 10), OPEN),
        (measured("x", 5.0, math.inf, 10), OPEN),
        (share_above("x", 40, 40, 0.5), HOLDS),
        (share_above("x", 0, 40, 0.5), FAILS),
        (share_below("x", 0, 40, 0.5), HOLDS),
        (share_above("x", 1, 1, 0.5), OPEN),
        (share_below("x", 0, 40, 0.1), OPEN),
        (means_apart("x", [1.0, 1.1, 0.9], [], 40), OPEN),
        (means_apart("x", [9.0, 9.1, 9.2, 9.1], [1.0, 1.1, 0.9, 1.0], 40), HOLDS),
    ],
)
def test_a_comparison_is_decided_only_beyond_its_error(comparison, verdict):
    assert Claim("c", [comparison]).verdict is verdict


@given(st.integers(1, 200), st.floats(0.05, 0.95))
def test_shares_are_decided_wrongly_no_more_often_than_said(runs, limit):
    """At the limit itself, over all outcomes: exact, nothing is simulated."""
    wrong = sum(
        binom.pmf(times, runs, limit)
        for times in range(runs + 1)
        if share_above("x", times, runs, limit).verdict(FALSE_ALARM) is not OPEN
    )
    assert wrong <= FALSE_ALARM + 1e-9


@given(st.integers(0, 50), st.integers(1, 50), st.floats(0.05, 0.95))
def test_above_and_below_are_each_other_reversed(times, runs, limit):
    times = min(times, runs)
    above, below = (judge("x", times, runs, limit) for judge in (share_above, share_below))
    assert above.margin == pytest.approx(-below.margin, abs=1e-12)
    assert {above.verdict(0.05), below.verdict(0.05)} in ({OPEN}, {HOLDS, FAILS})


def test_medians_that_are_equal_are_told_apart_no_more_often_than_said():
    """400 claims of four comparisons at 60 runs; more than 11 wrong ones has probability 0.1 %."""
    rng = np.random.default_rng(7)
    wrong = 0
    for _ in range(400):
        values = rng.exponential(size=(60, 5))
        medians = Medians([dict(enumerate(row)) for row in values.tolist()])
        claim = Claim("c", [medians.less("x", 0, other) for other in range(1, 5)])
        wrong += claim.counts[OPEN] < 4
    assert wrong <= 11
    assert binom.sf(11, 400, FALSE_ALARM) < 1.1e-3


def test_a_difference_between_quantities_of_the_same_run_is_paired():
    """Both move together by far more than they differ."""
    rng = np.random.default_rng(8)
    common = rng.normal(0, 10, 200)
    noise = rng.normal(0, 0.1, (200, 2))
    results = [{"a": c + x, "b": c + 1 + y} for c, (x, y) in zip(common, noise, strict=True)]
    medians = Medians(results)
    assert medians.less("x", "a", "b").error < 0.3 * medians.margin("x", {"a": 1.0}).error
    apart = Medians([{"v": r["a"]} for r in results]).beside(
        Medians([{"v": r["b"]} for r in results]), ("first", "second")
    )
    assert apart.less("x", ("first", "v"), ("second", "v")).error == pytest.approx(
        medians.less("x", "a", "b").error
    )


def test_medians_that_may_be_infinite_decide_nothing():
    medians = Medians([{"a": 1.0 if k % 2 else math.inf, "b": 0.0} for k in range(9)])
    assert Claim("c", [medians.less("x", "b", "a")]).verdict is OPEN


# ── Claims of many comparisons ─────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("comparisons", "needed", "verdict"),
    [
        ([clear(1)] * 3, None, HOLDS),
        ([clear(1), clear(1), unclear()], None, OPEN),
        ([clear(1), unclear(), clear(-1)], None, FAILS),
        ([clear(1), clear(1), clear(-1)], 2, HOLDS),
        ([clear(1), unclear(), clear(-1)], 2, OPEN),
        ([clear(-1), unclear(), clear(-1)], 2, FAILS),
    ],
)
def test_a_claim_about_many_settings(comparisons, needed, verdict):
    claim = Claim("c", comparisons, needed)
    assert claim.verdict is verdict
    assert sum(claim.counts.values()) == len(comparisons)


def test_more_settings_need_a_wider_margin():
    edge = Comparison("x", 1.0, 0.3, 1000, 0.0015)
    assert Claim("c", [edge]).verdict is HOLDS
    assert Claim("c", [edge] * 4).verdict is OPEN


def test_a_claim_left_open_says_how_many_runs_would_tell():
    """By the normal distribution: 2.58² / 0.5² times as many, to one figure."""
    claim = Claim("c", [measured("x", 0.5, 1.0, 100)])
    assert claim.runs_to_tell == 3000
    assert claim.evidence().endswith("100 runs; about 3,000 would tell")
    hopeless = Claim("c", [measured("x", 0.01, 1.0, 100)])
    assert hopeless.runs_to_tell is None
    assert hopeless.evidence().endswith("100 times as many might not tell either")


def test_the_runs_that_would_tell_decide_the_claim_if_margins_stay():
    claim = Claim("c", [measured("x", m, 1.0, 100) for m in (0.5, -1.0, 2.0)])
    more = claim.runs_to_tell
    error = math.sqrt(100 / more)
    later = Claim("c", [measured("x", m, error, more) for m in (0.5, -1.0, 2.0)])
    assert later.verdict is FAILS  # the second decides, before the first could


def test_what_a_claim_rests_on_is_told():
    claim = Claim("c", [clear(1), measured("here", 0.5, 1.0, 1000), clear(-2)], needed=2)
    assert claim.evidence() == (
        "holds in 1 of 3 settings, does not in 1, cannot be told in 1 (2 are needed); least clear "
        "at here: margin +0.5, standard error 1; 1,000 runs; about 40,000 would tell"
    )
    one = Claim("c", [measured("x", 0.5, math.nan, 1)])
    assert one.evidence() == (
        "margin +0.5, standard error unknown; 1 run; at least 10 are needed to say how many would "
        "tell"
    )
    assert Claim("c", [exactly("x", 1.5)]).evidence() == "margin +1.5, exact"


def test_files_and_json_carry_margins_runs_and_verdicts():
    claim = Claim("c", [clear(1), measured("b", 0.5, math.inf, 30)])
    found = Reproduction("t", ("x", "printed"), ((1, None),), Bars("y", ["a"], {}), (claim,))
    (document,) = found.document()["claims"]
    assert document["verdict"] == "cannot be told"
    assert document["runs"] == 1000
    assert document["comparisons"][1] == {
        "at": "b",
        "margin": 0.5,
        "standard_error": None,
        "verdict": "cannot be told",
    }
    first, second = csv.DictReader(io.StringIO(found.claims_csv()))
    assert (first["verdict"], first["verdict there"]) == ("cannot be told", "holds")
    assert (second["margin"], second["standard error"], second["runs"]) == ("0.5", "inf", "30")
    assert "not printed" in found.csv()
    assert found.document()["rows"] == [{"x": 1, "printed": None}]
