"""How many parties must pool what they know to take off masks, and what is said of it."""

import re
from fractions import Fraction
from math import comb
from pathlib import Path

import numpy as np
import pytest

from mpc_rr.crypto.graph import HararyGraph
from mpc_rr.errors import InputError
from mpc_rr.privacy import graph_parameters
from mpc_rr.privacy.graph_parameters import (
    LEAST_OTHERS,
    _log2_tail,
    graph_parameters_for,
    withstood,
)

ROOT = Path(__file__).parent.parent.parent
SIZES = (50, 100, 200, 1_000, 10_000)


def laid_bare(parties, plan):
    """The smallest coalition that can be expected to lay bare one honest party or more."""
    for size in range(plan.threshold, parties):
        reached = _log2_tail(parties - 1, size, plan.degree, plan.threshold, plan.degree)
        if (parties - size) * 2**reached >= 1:
            return size
    raise AssertionError("everyone together reaches everyone's secrets")


def in_docs(heading):
    page = (ROOT / "docs" / "protocols" / "masked_sum.md").read_text()
    table = page.split(heading)[1].split("\n\n")[1]
    rows = [re.findall(r"[\d,]+", line.replace(", ", " ")) for line in table.splitlines()[2:]]
    return [[int(cell.replace(",", "")) for cell in row] for row in rows]


def test_the_documentation_has_the_coalitions_that_lay_somebody_bare_before_and_now():
    expected = []
    for parties in SIZES:
        before = graph_parameters_for(parties, coordinator="semi-honest", smallest=True)
        now = graph_parameters_for(parties, coordinator="semi-honest")
        row = [parties]
        for plan in (before, now):
            row += [plan.degree, plan.threshold, laid_bare(parties, plan)]
        expected.append([*row, now.withstands])
    assert in_docs("**How many must collude.**") == expected


def test_the_documentation_has_what_is_withstood_if_the_coordinator_lies():
    expected = []
    for parties in SIZES:
        row = [parties]
        for plan in (
            graph_parameters_for(parties, smallest=True), graph_parameters_for(parties)
        ):  # fmt: skip
            row += [plan.degree, plan.threshold, plan.withstands]
        expected.append(row)
    assert in_docs("**With a malicious coordinator**") == expected


@pytest.mark.parametrize("coordinator", ["semi-honest", "malicious"])
@pytest.mark.parametrize("corrupt", [0, 0.05, 0.2])
@pytest.mark.parametrize("parties", [4, 5, 9, 16, 30, 50, 77, 100, 200])
def test_fewer_than_three_shares_never_give_a_secret(parties, corrupt, coordinator):
    """With corrupt = 0 a threshold of 1 was possible: one curious party read 30 of 49 records."""
    plan = graph_parameters_for(parties, corrupt, 0.1, coordinator)
    assert plan.threshold >= 3
    assert plan.withstands >= (1 if coordinator == "malicious" else 2)


@pytest.mark.parametrize("parties", [50, 100, 200, 1_000])
def test_a_threshold_is_as_large_as_those_who_stay_allow(parties):
    """Larger by two and what corrects two false shares, too few would be left too often."""
    plan = graph_parameters_for(parties, coordinator="semi-honest")
    before = graph_parameters_for(parties, coordinator="semi-honest", smallest=True)
    staying = parties - 1 - parties // 10

    def fails(threshold):
        """How often anybody keeps fewer."""
        return _log2_tail(parties - 1, staying, plan.degree, 0, threshold - 1) + np.log2(parties)

    assert plan.degree == before.degree
    assert fails(plan.threshold) <= -30
    assert plan.threshold == before.threshold or fails(plan.threshold + 4) <= -30
    assert fails(plan.threshold + 5) > -30


@pytest.mark.parametrize("coordinator", ["semi-honest", "malicious"])
@pytest.mark.parametrize("parties", [42, 50, 100, 200])
def test_one_more_than_is_withstood_may_be_too_many(parties, coordinator):
    """With so many nobody is reached but once in 2^41 graphs, with one more oftener.

    By enumeration of the tail, with another formula than the code's: exact fractions.
    """
    plan = graph_parameters_for(parties, coordinator=coordinator)
    reach = plan.threshold
    if coordinator == "malicious":
        reach = 2 * plan.threshold - plan.degree - LEAST_OTHERS + 1

    def odds(corrupt):
        ways = sum(
            comb(corrupt, c) * comb(parties - 1 - corrupt, plan.degree - c)
            for c in range(reach, plan.degree + 1)
        )
        return Fraction(parties * ways, comb(parties - 1, plan.degree))

    assert odds(plan.withstands) <= Fraction(1, 2**41)
    lost, missing = parties // 10, Fraction(plan.withstands + 1, parties) + Fraction(1, 10)
    apart = plan.withstands + 1 + lost >= plan.degree and (
        parties * missing ** (plan.degree // 2) > Fraction(1, 2**41)
    )
    assert odds(plan.withstands + 1) > Fraction(1, 2**41) or apart


def test_what_is_withstood_holds_however_many_remain():
    """It is least neither for the fewest nor for all of them."""
    numbers = [
        graph_parameters_for(n, coordinator="semi-honest", enrolled=250).withstands
        for n in range(50, 251)
    ]
    most = withstood(50, 250, 0.05, 0.1, "semi-honest")
    assert most == min(numbers) < numbers[0]
    assert withstood(900, 1_000, 0.05, 0.1, "semi-honest") == 50


def test_those_who_are_left_hang_together_if_fewer_are_missing_than_somebody_has_neighbours():
    """The graph of 50: any 33 may be missing. 300 random ones, and 33 in a row."""
    rng, nodes = np.random.default_rng(5), 50
    graph = HararyGraph(b"x", nodes, 34)
    rows = graph.all_neighbours()
    for trial in range(300):
        gone = set(rng.permutation(nodes)[:33].tolist())
        if not trial:
            gone = set(rows[0].tolist()[:33])
        left = [node for node in range(nodes) if node not in gone]
        seen, new = {left[0]}, [left[0]]
        while new:
            near = {int(k) for node in new for k in rows[node]} - gone - seen
            seen, new = seen | near, sorted(near)
        assert len(seen) == len(left)


def test_the_documentation_has_how_rarely_a_circle_is_cut_and_an_honest_sum_ends():
    def rarely(bits):
        return "−" if bits == -np.inf else f"−{int(-bits)}"

    page = (ROOT / "docs" / "protocols" / "masked_sum.md").read_text()
    for parties in (50, 100, 200, 400, 1_000, 10_000, 30_000, 1_000_000):
        plan = graph_parameters_for(parties, coordinator="semi-honest")
        degree, half, lost = plan.degree, plan.degree // 2, parties // 10
        pairs = 2 * np.log2(parties) - 1
        cells = [f"{parties:,}", f"{plan.in_a_cut}", f"{plan.beside}"]
        for share in (20, 40):
            tail = _log2_tail(parties, max(parties // share, 2), degree, plan.in_a_cut, degree)
            cells.append(rarely(tail + pairs))
        ends = _log2_tail(parties, lost, degree, degree - plan.in_a_cut + 1, degree)
        refuses = _log2_tail(parties, lost, half, half - plan.beside + 1, half)
        cells += [rarely(ends + pairs), rarely(refuses + np.log2(parties))]
        assert f"| {' | '.join(cells)} |" in page


@pytest.mark.parametrize(
    ("parties", "corrupt", "bits"),
    [(300, 0.05, np.inf), (600, 0.05, 40.5), (300, 0.2, 38.0), (600, 0.1, 34.6), (600, 0.2, 33.5)],
)
def test_with_other_options_than_the_default_a_circle_may_be_cut_oftener(parties, corrupt, bits):
    """As docs/protocols/masked_sum.md and decision 0021 say."""
    plan = graph_parameters_for(parties, corrupt, coordinator="semi-honest")
    most = withstood(parties, parties, corrupt, 0.1, "semi-honest")
    tail = _log2_tail(parties, most, plan.degree, plan.in_a_cut, plan.degree)
    assert -(tail + 2 * np.log2(parties) - 1) == pytest.approx(bits, abs=0.1)


def test_up_to_three_hundred_parties_those_withstood_never_cut_the_circle():
    for expected in (60, 150, 300):
        most = withstood(expected // 2, expected, 0.05, 0.1, "semi-honest")
        for parties in range(expected // 2, expected + 1):
            plan = graph_parameters_for(parties, coordinator="semi-honest", enrolled=expected)
            assert plan.degree == parties - 1 or plan.in_a_cut > most


def test_where_too_few_remain_no_graph_is_tried(monkeypatch):
    """A study file for a million, of which three may remain, kept a consent screen for minutes."""

    def tried(*_):
        raise AssertionError

    monkeypatch.setattr(graph_parameters, "_connected", tried)
    for coordinator in ("semi-honest", "malicious"):
        for smallest in (False, True):
            with pytest.raises(InputError, match="55000 parties are too few"):
                graph_parameters_for(
                    55_000, coordinator=coordinator, enrolled=1_000_000, smallest=smallest
                )
