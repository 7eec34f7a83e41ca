"""Block studies that are given a budget, fewer answers of a party, or chosen tables."""

import math

import msgspec
import pytest
from helpers import make_scenario, make_schema, make_study, random_records, setting
from hypothesis import given
from hypothesis import strategies as st

from mpc_rr.errors import InputError
from mpc_rr.estimation.combinations import chosen_views, combination_views, divided
from mpc_rr.privacy.accountant import Accountant
from mpc_rr.protocols.block_aggregation import BlockAggregation
from mpc_rr.results.folder import write_results
from mpc_rr.results.verification import verify
from mpc_rr.running import run_study

SIZES = (2, 3, 2, 2, 3)
NAMES = make_schema(SIZES).names


def blocks(**options):
    return BlockAggregation(**({"floor": 0.5, "block": 15} | options))


@given(
    st.floats(0.5, 12), st.floats(0.05, 1), st.integers(2, 4), st.none() | st.integers(1, 3)
)  # fmt: skip
def test_a_record_spends_its_budget_and_no_more(epsilon, floor, together, answers):
    """By the ledger's own count, whichever view is asked; p has nine digits."""
    protocol = blocks(epsilon=epsilon, floor=floor, together=together, answers=answers)
    study = make_study(30, SIZES, protocol=protocol)
    spent = Accountant().read(study.disclosures).local
    assert spent <= epsilon
    assert spent == pytest.approx(epsilon, rel=1e-4)


def test_p_is_the_one_of_an_equation_that_can_be_solved_by_hand():
    """One answer of at most 9 cells and a floor of 1: e^ε = 1 + 9p/(1 − p)."""
    odds = math.expm1(2.5) / 9
    found = blocks(epsilon=2.5, floor=1.0, answers=1).truth(make_schema(SIZES))
    assert found == pytest.approx(odds / (1 + odds), abs=2e-9)


@pytest.mark.parametrize(("answers", "views"), [(None, 5), (1, 10), (2, 5)])
def test_a_party_answers_no_more_combinations_than_that_and_each_is_asked_once(answers, views):
    found = blocks(p=0.5, answers=answers).views(make_schema(SIZES))
    assert len(found) == views
    asked = [combination for view in found for combination in view]
    assert sorted(asked) == sorted(c for v in combination_views(5, 2) for c in v)
    assert max(map(len, found)) <= (answers or 2)


@given(st.integers(2, 9), st.integers(1, 5), st.integers(2, 4))
def test_views_are_cut_evenly(attributes, most, together):
    views = combination_views(attributes, min(together, attributes))
    parts = divided(views, most)
    assert [c for part in parts for c in part] == [c for view in views for c in view]
    assert all(1 <= len(part) <= most for part in parts)
    for view in views:
        lengths = [len(part) for part in parts if set(part) <= set(view)]
        assert max(lengths) - min(lengths) <= 1


@given(st.sets(st.sets(st.integers(0, 7), min_size=2, max_size=4).map(frozenset), min_size=1))
def test_views_of_chosen_combinations_hold_each_once_and_no_attribute_twice(chosen):
    wanted = [tuple(sorted(c)) for c in chosen]
    views = chosen_views(wanted)
    assert sorted(c for view in views for c in view) == sorted(wanted)
    for view in views:
        held = [attribute for c in view for attribute in c]
        assert len(held) == len(set(held))


def test_a_study_with_a_budget_and_one_answer_of_each_is_held_and_verified(tmp_path):
    protocol = blocks(epsilon=3.0, answers=1)
    planned = make_scenario(random_records(60, SIZES, seed=5), SIZES, protocol=protocol)
    result = run_study(planned, transport="memory", seed=3)
    for end in result.parties.values():
        assert len(end.view) == 1
        assert 0 < end.epsilon <= 3.0
    found = result.outcome.result
    assert {found.answered(c).n for c in found.shown} == {6}  # ten combinations, in turn
    write_results(result, tmp_path / "run")
    assert verify(tmp_path / "run")


def test_chosen_tables_are_asked_and_no_others(tmp_path):
    wide, pair = (NAMES[3], NAMES[0], NAMES[1]), (NAMES[1], NAMES[2])
    protocol = blocks(epsilon=4.0, tables=(wide, pair))
    planned = make_scenario(random_records(60, SIZES, seed=5), SIZES, protocol=protocol)
    result = run_study(planned, transport="memory", seed=3)
    found = result.outcome.result
    assert set(found.shown) == {(0, 1, 3), (1, 2)}
    published = found.publish(setting(make_schema(SIZES), 60))
    about = {tuple(axis.attribute for axis in table.axes) for table in published.tables}
    assert about == {(n,) for n in NAMES[:4]} | {(NAMES[0], NAMES[1], NAMES[3]), pair}
    (event,) = planned.study.disclosures
    assert set(event.answers) == set(NAMES[:4])
    write_results(result, tmp_path / "run")
    assert verify(tmp_path / "run")


def test_a_study_that_uses_none_of_this_has_the_digest_that_it_had():
    """As main had it before there were these options."""
    study = make_study(12, (2, 3), protocol=BlockAggregation(p=0.5, floor=0.5, block=4))
    assert study.digest.hex() == DIGEST
    assert study.promise.hex() == PROMISE
    for more in ({"answers": 1}, {"tables": (NAMES[:2],)}):
        protocol = msgspec.structs.replace(study.protocol, **more)
        assert make_study(12, (2, 3), protocol=protocol).digest.hex() != DIGEST


DIGEST = "7f84384262f4f8f6fc3284ca766455bffe6ba057cc395654c8c5a7c448afb150"
PROMISE = "18fed9a49a220378a0a687003acbb907f7da6d3041355eae7eab5b09b8997e12"

WRONG = {
    "both": ({"p": 0.5, "epsilon": 1.0}, "give either p or epsilon"),
    "neither": ({}, "give either p or epsilon"),
    "nothing": ({"epsilon": 0.0}, "epsilon must be positive"),
    "too little": ({"epsilon": 0.001}, "nothing would be learnt; give fewer answers"),
    "no answers": ({"p": 0.5, "answers": 0}, "answers must be at least 1"),
    "unknown": ({"p": 0.5, "tables": ((NAMES[0], "x"),)}, "“x” is no attribute of this study"),
    "alone": ({"p": 0.5, "tables": ((NAMES[0],),)}, "number 1 must name two attributes"),
    "twice": ({"p": 0.5, "tables": (NAMES[:2], NAMES[1::-1])}, "number 2 was named before"),
    "none": ({"p": 0.5, "tables": ()}, "tables names none"),
    "two ways": ({"p": 0.5, "together": 3, "tables": (NAMES[:2],)}, "either tables or together"),
}


@pytest.mark.parametrize("case", WRONG)
def test_options_that_make_no_sense_are_refused_in_a_line(case):
    options, said = WRONG[case]
    with pytest.raises(InputError, match=said):
        blocks(**options).check(setting(make_schema(SIZES), 30))
