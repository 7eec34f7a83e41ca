"""Whoever carries the messages drops some, so that those who are left fall apart: nothing is told.

Two stretches of k/2 places on the circle without anybody left would leave an arc between them whose
masks cancel among themselves: its sum could be read from what is public.
"""

import functools
import itertools
from fractions import Fraction
from math import comb

import networkx as nx
import numpy as np
import pytest
from helpers import make_scenario, random_records
from hypothesis import given, settings
from hypothesis import strategies as st

from mpc_rr.crypto.graph import HararyGraph
from mpc_rr.privacy.graph_parameters import graph_parameters_for
from mpc_rr.protocols.exact_pairs import ExactPairs
from mpc_rr.protocols.rr_pairs import RRPairs
from mpc_rr.protocols.sums.masked import sum as masked_sum
from mpc_rr.protocols.sums.masked.setup import MaskingOptions
from mpc_rr.results.folder import write_results
from mpc_rr.results.verification import Contradicted, verify
from mpc_rr.running import run_study
from mpc_rr.simulation.faults import Faults, PartyFault

SIZES = (2, 2)
N = 100
OPTIONS = MaskingOptions(corrupt=0.02, dropout=0.15, coordinator="semi-honest")
PLAN = OPTIONS.plan(N, N)
HALF = PLAN.degree // 2
ARC = PLAN.threshold + 1
EXACT = ExactPairs(sum="masked_sum", masking=OPTIONS)


def run(protocol=EXACT, dropped=()):
    records = random_records(N, SIZES, seed=4)
    faults = Faults(silent=tuple(PartyFault(name, "masked_vector") for name in dropped))
    scenario = make_scenario(records, SIZES, protocol=protocol, faults=faults, minimum=50)
    return run_study(scenario, transport="memory", seed=7)


@functools.cache
def circle_of(protocol):
    """The names in their order on the circle: the same in all runs with this seed."""
    found = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(masked_sum, "_check_uncut", lambda e, _: found.append(e))
        assert run(protocol).outcome.result is not None
    [enrolled] = found
    ahead = {k: enrolled.rows[k, 0] for k in range(N)}
    order = [0]
    while len(order) < N:
        order.append(int(ahead[order[-1]]))
    return [enrolled.names[k] for k in order]


@pytest.fixture(name="circle")
def _circle():
    return circle_of(EXACT)


def around(circle):
    """The k/2 before and the k/2 after an arc of t + 1: all others keep t neighbours."""
    return circle[:HALF] + circle[HALF + ARC : 2 * HALF + ARC]


def unguarded(monkeypatch, **without):
    """The same plan, without some of what is demanded."""
    plan = MaskingOptions.plan

    def less(self, *args, **how):
        found = plan(self, *args, **how)
        return type(found)(**{**vars(found), **without})

    monkeypatch.setattr(MaskingOptions, "plan", less)


@pytest.mark.parametrize("protocol", [EXACT, RRPairs(keep=0.6, sum="masked_sum", masking=OPTIONS)])
def test_a_circle_that_is_cut_is_not_unmasked(protocol):
    result = run(protocol, around(circle_of(protocol)))
    assert result.outcome.result is None
    assert "the sum of a few could be told apart" in result.outcome.cause
    assert f"only 0 are left, {PLAN.in_a_cut} are needed" in result.outcome.cause


def test_nobody_is_even_asked_to_take_off_masks(circle, monkeypatch):
    monkeypatch.setattr(masked_sum, "_survivors", lambda *_: pytest.fail("they were asked"))
    assert "told apart" in run(EXACT, around(circle)).outcome.cause


def test_without_any_guard_the_sum_over_a_cut_circle_is_told(circle, monkeypatch):
    """What the guards are for: everybody keeps t neighbours, and all would be unmasked."""
    unguarded(monkeypatch, in_a_cut=0, beside=0)
    assert run(EXACT, around(circle)).outcome.result is not None


def test_a_party_with_too_few_on_one_side_takes_off_nobody_s_mask(circle, monkeypatch):
    """Whatever the coordinator overlooks, at either end of the arc and of the rest."""
    unguarded(monkeypatch, in_a_cut=0)
    result = run(EXACT, around(circle))
    assert result.outcome.result is None
    arc, rest = circle[HALF : HALF + ARC], circle[2 * HALF + ARC :]
    ends = {
        name
        for group in (arc, rest)
        for name in group[: PLAN.beside] + group[-PLAN.beside :]
    }  # fmt: skip
    refused = {
        name
        for name, end in result.parties.items()
        if "neighbours on one side are left" in str(end)
    }
    assert refused == ends
    # So nobody's own mask at the end of the arc can be taken off: fewer than t help.
    assert HALF - (PLAN.beside - 1) < PLAN.threshold


def test_as_many_survivors_between_the_groups_as_are_needed_suffice(circle, monkeypatch):
    """One fewer in both stretches together ends the sum; so many do not."""
    unguarded(monkeypatch, beside=0)
    gaps = around(circle)
    first, second = gaps[:HALF], gaps[HALF:]
    kept = [*first[:: 2][: PLAN.in_a_cut // 2], *second[::2]]  # fmt: skip
    kept = kept[: PLAN.in_a_cut]
    enough = run(EXACT, [name for name in gaps if name not in kept]).outcome
    assert "told apart" not in (enough.cause or "")
    too_few = run(EXACT, [name for name in gaps if name not in kept[1:]]).outcome
    assert f"only {PLAN.in_a_cut - 1} are left" in too_few.cause


def test_whoever_verifies_finds_a_coordinator_that_did_not_look(circle, tmp_path):
    with pytest.MonkeyPatch.context() as patch:
        unguarded(patch, in_a_cut=0, beside=0)
        write_results(run(EXACT, around(circle)), tmp_path / "cut")
    with pytest.raises(Contradicted, match="could be told apart"):
        verify(tmp_path / "cut")


def test_a_sum_that_some_left_by_chance_is_verified(circle, tmp_path):
    gone = np.random.default_rng(3).choice(circle, 10, replace=False).tolist()
    result = run(EXACT, gone)
    assert result.outcome.result is not None, result.outcome.cause
    write_results(result, tmp_path / "run")
    verify(tmp_path / "run")


def test_older_folders_and_sums_that_withstand_a_liar_demand_nothing_new():
    for plan in (
        OPTIONS.plan(N, N, smallest=True),
        MaskingOptions(coordinator="malicious").plan(400, 400),
    ):
        assert (plan.in_a_cut, plan.beside) == (0, 0)


# ── The graph ──────────────────────────────────────────────────────────────────────────────────


def graphs():
    return st.integers(6, 30).flatmap(
        lambda n: st.tuples(
            st.integers(0, 255), st.just(n), st.integers(1, (n - 2) // 2).map(lambda h: 2 * h)
        )
    )


@given(graphs(), st.data())
def test_the_fewest_in_a_cut_are_counted_over_all_pairs_of_stretches(drawn, data):
    seed, nodes, degree = drawn
    graph, half = HararyGraph(bytes([seed]), nodes, degree), degree // 2
    present = data.draw(st.sets(st.integers(0, nodes - 1)))
    order = [0]
    while len(order) < nodes:
        order.append(int(graph.neighbours(order[-1])[0]))
    windows = [{order[(at + k) % nodes] for k in range(half)} for at in range(nodes)]
    apart = [
        len(present & (windows[a] | windows[b]))
        for a, b in itertools.combinations(range(nodes), 2)
        if half < b - a < nodes - half
    ]
    assert graph.fewest_in_a_cut(present) == min(apart, default=nodes)


@settings(max_examples=300)
@given(graphs(), st.data())
def test_fewer_colluders_than_are_in_a_cut_do_not_part_the_others(drawn, data):
    seed, nodes, degree = drawn
    graph = HararyGraph(bytes([seed]), nodes, degree)
    present = data.draw(st.sets(st.integers(0, nodes - 1), min_size=3))
    fewest = graph.fewest_in_a_cut(present)
    size = min(len(present) - 1, max(fewest - 1, 0))
    corrupt = data.draw(st.sets(st.sampled_from(sorted(present)), max_size=size))
    rows = graph.all_neighbours().tolist()
    whole = nx.Graph((k, other) for k, row in enumerate(rows) for other in row)
    honest = whole.subgraph(present - corrupt)
    if fewest > 0 and len(corrupt) < fewest:
        assert nx.is_connected(honest)


def test_a_graph_of_all_with_all_cannot_be_cut():
    assert HararyGraph(b"x", 7, 6).fewest_in_a_cut({1, 2}) == 7
    assert HararyGraph(b"x", 6, 5).fewest_in_a_cut({1, 2}) == 6


@pytest.mark.parametrize("parties", [50, 100, 400, 1_000, 10_000])
def test_those_who_leave_by_chance_cut_nobody_off(parties):
    plan = graph_parameters_for(parties, coordinator="semi-honest")
    rng, half = np.random.default_rng(parties), plan.degree // 2
    for seed in range(40):
        graph = HararyGraph(seed.to_bytes(4), parties, plan.degree)
        there = np.ones(parties, bool)
        there[rng.choice(parties, parties // 10, replace=False)] = False
        assert graph.fewest_in_a_cut(np.flatnonzero(there).tolist()) >= plan.in_a_cut
        beside = there[graph.all_neighbours()]
        assert beside[:, :half].sum(axis=1).min() >= plan.beside
        assert beside[:, half:].sum(axis=1).min() >= plan.beside


@pytest.mark.parametrize("parties", [50, 100, 200, 400, 1_000, 10_000])
def test_what_must_be_left_is_more_than_collude_and_less_than_stay(parties):
    """With exact fractions; one more would end honest sums too often, or is not needed."""
    plan = graph_parameters_for(parties, coordinator="semi-honest")
    degree, lost = plan.degree, parties // 10
    pairs = Fraction(parties**2, 2)

    def among(marked, drawn, least):
        """How likely so many of the marked are among the drawn."""
        ways = sum(
            comb(marked, k) * comb(parties - marked, drawn - k) for k in range(least, drawn + 1)
        )
        return Fraction(ways, comb(parties, drawn))

    def ends(left):
        return pairs * among(lost, degree, degree - left + 1)

    def refuses(left):
        return parties * among(lost, degree // 2, degree // 2 - left + 1)

    rare = Fraction(1, 2**20)
    assert ends(plan.in_a_cut) <= rare
    assert refuses(plan.beside) <= rare
    assert plan.beside == plan.in_a_cut // 2 or refuses(plan.beside + 1) > rare
    enough = pairs * among(plan.withstands, degree, plan.in_a_cut) <= Fraction(1, 2**41)
    assert enough or ends(plan.in_a_cut + 1) > rare
    assert enough if parties <= 200 else plan.in_a_cut > 15
