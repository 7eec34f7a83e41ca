"""The ε of one answer is what it says: found again by trying all records and all that may be sent.

Of each attribute: the largest logarithm of how much more probable anything that a party sends is
with one record than with another that differs in this answer alone.
"""

import itertools
import math

import numpy as np
import pytest
from helpers import make_study
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from mpc_rr.errors import InputError
from mpc_rr.estimation.blocks import answer_epsilon, floored
from mpc_rr.estimation.matrix import KeepOrUniform
from mpc_rr.estimation.pairs import PairLayout
from mpc_rr.estimation.views import SubsetMechanism
from mpc_rr.planning.designs import planned_designs, schema_of
from mpc_rr.privacy.accountant import Accountant
from mpc_rr.privacy.disclosures import (
    RandomizedResponse,
    RandomizedSum,
    Recorded,
    SubsetSelection,
    Unstated,
)
from mpc_rr.privacy.ledger import AnswerBudget, Ledger, OverdrawnError
from mpc_rr.privacy.odds import certainty
from mpc_rr.protocols.block_aggregation import BlockAggregation
from mpc_rr.protocols.exact_pairs import ExactPairs
from mpc_rr.protocols.lambda_randomization import LambdaRandomization
from mpc_rr.protocols.rr_clusters import RRClusters
from mpc_rr.protocols.rr_each_attribute import RREachAttribute
from mpc_rr.protocols.rr_independent import RRIndependent
from mpc_rr.protocols.rr_joint import RRJoint
from mpc_rr.protocols.rr_pairs import RRPairs
from mpc_rr.protocols.rr_views import RRViews

small_schemas = st.lists(st.integers(2, 3), min_size=2, max_size=3).map(tuple)
keeps = st.floats(0.05, 0.95)
epsilons = st.floats(0.2, 6)


def stated(sizes, protocol):
    """What a study says of each answer, and of the whole record."""
    study = make_study(20, sizes, protocol=protocol)
    reading = Accountant().read(study.disclosures)
    return study, [reading.answers[name] for name in study.schema.names], reading.local


def records(sizes):
    return list(itertools.product(*map(range, sizes)))


def tried(sizes, sent):
    """By enumeration: for each answer, and for the whole record. ``sent``: record → logarithms of
    the probabilities of all that may be sent, in one order."""
    logs = {record: np.asarray(sent(record)) for record in records(sizes)}
    found = [0.0] * len(sizes)
    whole = 0.0
    for one, other in itertools.permutations(logs, 2):
        ratio = float((logs[one] - logs[other]).max())
        whole = max(whole, ratio)
        differing = [a for a in range(len(sizes)) if one[a] != other[a]]
        if len(differing) == 1:
            found[differing[0]] = max(found[differing[0]], ratio)
    return found, whole


def product(parts):
    """Logarithms for what is drawn independently: all combinations."""
    total = np.zeros(1)
    for part in parts:
        total = (total[:, np.newaxis] + np.log(part)).ravel()
    return total


def by_design(study, design):
    def sent(record):
        parts = []
        for cluster, matrix in zip(design.clusters, design.matrices, strict=True):
            shape = tuple(study.schema.sizes[a] for a in cluster)
            cell = np.ravel_multi_index([record[a] for a in cluster], shape)
            parts.append(matrix.dense()[cell])
        return product(parts)

    return sent


@settings(deadline=None, max_examples=30)
@given(small_schemas, keeps)
def test_each_attribute_by_itself(sizes, keep):
    protocol = RRIndependent(keep=keep)
    study, answers, whole = stated(sizes, protocol)
    found = tried(sizes, by_design(study, protocol.design(study.schema)))
    assert (answers, whole) == (pytest.approx(found[0]), pytest.approx(found[1]))


def test_by_lambdas():
    protocol = LambdaRandomization(beta=0.7)
    study, answers, whole = stated((2, 3, 2), protocol)
    found = tried((2, 3, 2), by_design(study, protocol.design(study.schema)))
    assert (answers, whole) == (pytest.approx(found[0]), pytest.approx(found[1]))


@settings(deadline=None, max_examples=30)
@given(small_schemas, epsilons)
def test_the_whole_record_as_one_value(sizes, epsilon):
    """One answer costs all of it: another answer is another value."""
    protocol = RRJoint(epsilon=epsilon)
    study, answers, whole = stated(sizes, protocol)
    found = tried(sizes, by_design(study, protocol.design(study.schema)))
    assert (answers, whole) == (pytest.approx(found[0]), pytest.approx(found[1]))
    assert answers == pytest.approx([epsilon] * len(sizes))


@settings(deadline=None, max_examples=25)
@given(small_schemas, epsilons)
def test_one_of_several_views(sizes, epsilon):
    protocol = RRViews(epsilon=epsilon)
    study, answers, whole = stated(sizes, protocol)
    views = protocol.design(study.schema, study.parties.count).views
    cells = [math.prod(sizes[a] for a in view) for view in views]
    sets = [math.comb(size, SubsetMechanism.best(size, epsilon).chosen) for size in cells]
    assume(max(sets) <= 3000)

    def sent(record):
        logs = []
        for view in views:
            shape = tuple(sizes[a] for a in view)
            cell = int(np.ravel_multi_index([record[a] for a in view], shape))
            drawn = SubsetMechanism.best(math.prod(shape), epsilon)
            size, chosen = drawn.size, drawn.chosen
            within = drawn.hit / math.comb(size - 1, chosen - 1)
            without = (1 - drawn.hit) / math.comb(size - 1, chosen)
            logs += [
                math.log((within if cell in subset else without) / len(views))
                for subset in itertools.combinations(range(size), chosen)
            ]
        return logs

    found = tried(sizes, sent)
    assert (answers, whole) == (pytest.approx(found[0]), pytest.approx(found[1]))


@settings(deadline=None, max_examples=20)
@given(st.floats(0.1, 0.9))
def test_randomized_pairs_whose_sum_is_broken(keep):
    """An attribute is in m − 1 of the pairs."""
    sizes, protocol = (2, 2, 2), RRPairs(keep=keep)
    _, answers, whole = stated(sizes, protocol)
    matrix = KeepOrUniform.from_epsilon(4, 2 * KeepOrUniform(2, keep).epsilon)

    def sent(record):
        pairs = PairLayout(sizes).pairs
        cells = [record[i] * sizes[j] + record[j] for i, j in pairs]
        return product([matrix.dense()[cell] for cell in cells])

    found = tried(sizes, sent)
    assert (answers, whole) == (pytest.approx(found[0]), pytest.approx(found[1]))
    assert answers == pytest.approx([whole * 2 / 3] * 3)


@given(small_schemas, epsilons)
def test_noise_in_the_sum(sizes, epsilon):
    """Discrete Laplace noise: far away from both vectors the ratio is their distance in scales."""
    _, answers, whole = stated(sizes, ExactPairs(noise_epsilon=epsilon))
    layout = PairLayout(sizes)
    scale = 2 * len(layout.pairs) / epsilon
    vectors = {record: layout.indicator(record).astype(float) for record in records(sizes)}

    def sent(record):
        own = vectors[record]
        ends = [np.abs(np.where(v > 0, 50.0, -50.0) - own).sum() for v in vectors.values()]
        return [-end / scale for end in ends]

    found = tried(sizes, sent)
    assert (answers, whole) == (pytest.approx(found[0]), pytest.approx(found[1]))
    assert answers == pytest.approx([2 * epsilon / len(sizes)] * len(sizes))


@pytest.mark.parametrize(("sizes", "together"), [((2, 3, 2), 2), ((2, 2, 3, 2), 2), ((2, 2, 2), 3)])
def test_blocks_in_the_dearest_set_with_the_worst_table(sizes, together):
    p, floor = 0.4, 0.3
    protocol = BlockAggregation(p=p, floor=floor, block=5, together=together)
    study, answers, whole = stated(sizes, protocol)
    dearest, dearest_whole = [0.0] * len(sizes), 0.0
    for view in protocol.views(study.schema):
        shapes = [tuple(sizes[a] for a in combination) for combination in view]

        def sent(record, view=view, shapes=shapes):
            parts = []
            for combination, shape in zip(view, shapes, strict=True):
                size, cell = math.prod(shape), [record[a] for a in combination]
                told = np.zeros(size)
                told[np.ravel_multi_index(cell, shape)] = p
                parts.append(told + (1 - p) * floor / size)
            return product(parts)

        # Not normalized: each cell as if it were the one with the least share that is allowed.
        found, all_of_it = tried(sizes, sent)
        dearest = [max(pair) for pair in zip(dearest, found, strict=True)]
        dearest_whole = max(dearest_whole, all_of_it)
    assert answers == pytest.approx(dearest)
    assert whole == pytest.approx(dearest_whole)


@given(st.floats(0.1, 0.8), st.floats(0.05, 1), st.lists(st.floats(0, 1), min_size=4, max_size=4))
def test_no_table_with_the_floor_makes_an_answer_dearer(p, floor, weights):
    table = np.array(weights) + 1e-9
    shown = floored(table / table.sum(), floor).reshape(2, 2)
    protocol = BlockAggregation(p=p, floor=floor, block=5)
    _, answers, _ = stated((2, 2), protocol)
    flat = shown.ravel()

    def sent(record):
        cell = record[0] * 2 + record[1]
        return np.log(p * (np.arange(4) == cell) + (1 - p) * flat)

    found, _ = tried((2, 2), sent)
    assert max(found) <= answer_epsilon(p, shown) + 1e-9 <= max(answers) + 2e-9


def test_whatever_the_clusters_one_answer_costs_no_more_than_all_of_them():
    protocol = RRClusters(epsilon=3.0, dependence=RREachAttribute(epsilon=0.6))
    study, answers, whole = stated((2, 2, 2), protocol)
    assert whole == pytest.approx(3.6)
    assert answers == pytest.approx([3.2] * 3)  # all clusters, and its own third of the first stage
    dearest = 0.0
    for clusters in ([(0,), (1,), (2,)], [(0, 1), (2,)], [(0, 1, 2)]):
        found, _ = tried((2, 2, 2), by_design(study, protocol.design(study.schema, clusters)))
        dearest = max(dearest, *found)
    assert dearest == pytest.approx(3.0)


@given(st.integers(2, 4), st.floats(0.05, 0.95), st.floats(0.01, 0.99))
def test_a_guess_at_one_answer_becomes_no_surer_than_that(size, keep, prior):
    """Bayes' rule, for somebody who knows the other answer: its report tells nothing then."""
    _, answers, _ = stated((size, 2), RRIndependent(keep=keep))
    first, second = KeepOrUniform(size, keep).dense(), KeepOrUniform(2, keep).dense()
    for u, other, v, w in itertools.product(*[range(size)] * 3, range(2)):
        if u != other:
            mine = prior * first[u, v] * second[0, w]
            posterior = mine / (mine + (1 - prior) * first[other, v] * second[0, w])
            assert posterior <= certainty(answers[0], prior) + 1e-12


def test_answers_that_depend_on_each_other_tell_more_than_one_of_them():
    """Why the sentence has a condition: of two that are always the same, both reports tell."""
    keep = 0.5
    _, answers, whole = stated((2, 2), RRIndependent(keep=keep))
    p = KeepOrUniform(2, keep).dense()
    both = p[0, 0] ** 2 / (p[0, 0] ** 2 + p[1, 0] ** 2)
    assert both > certainty(answers[0]) + 0.1
    assert both <= certainty(whole) + 1e-12


def response(name, epsilon):
    return RandomizedResponse(
        what="r", attributes=(name,), combinations=2, keep=0.5, epsilon=epsilon
    )


def test_what_is_about_no_answer_by_name_may_be_about_any():
    recorded = Recorded(what="then", attributes=(), epsilon=0.5)
    reading = Accountant().read([response("a", 1.0), response("b", 2.0), recorded])
    assert reading.answers == {"a": 1.5, "b": 2.5}
    assert reading.one_answer == 2.5
    assert Accountant().read([recorded]).one_answer == 0.5
    assert math.isinf(Accountant().read([Unstated()]).one_answer)
    assert Accountant().read([]).one_answer == 0.0


def test_names_that_may_be_taken_for_each_other_are_one_answers():
    """Of one event no more is told of two answers together than it tells in all."""
    accountant = Accountant(taken_for=frozenset)
    together = SubsetSelection(what="s", attributes=("ab", "bc", "d"), groups=3, epsilon=2.0)
    events = [response("a", 1.0), response("c", 0.5), together]
    assert accountant.read(events).answers == {"a": 3.0, "c": 2.5, "ab": 3.0, "bc": 2.5, "d": 2.0}
    apart = Accountant().read(events).answers
    assert apart == {"a": 1.0, "c": 0.5, "ab": 2.0, "bc": 2.0, "d": 2.0}


def test_an_answer_of_which_a_study_tells_nothing_does_not_decline_it():
    ledger = Ledger(events=[response("x", 3.0)], answer_budget=1.0)
    ledger.check(response("y", 0.5))
    with pytest.raises(OverdrawnError, match="the answer to “x” exceeds"):
        ledger.check(response("x", 0.1), response("y", 0.5))


def test_what_is_about_no_answer_by_name_counts_against_the_limit_of_any():
    unnamed = Recorded(what="then", attributes=(), epsilon=0.6)
    told_before = Ledger(events=[unnamed, response("x", 3.0)], answer_budget=1.0)
    told_before.check(response("y", 0.4))
    with pytest.raises(OverdrawnError, match=r"the answer to “y” exceeds .* ε = 1\.1 in all"):
        told_before.check(response("y", 0.5))
    with pytest.raises(OverdrawnError, match=r"any answer exceeds .* ε = 3\.6 in all"):
        Ledger(events=[response("x", 3.0)], answer_budget=1.0).check(unnamed)
    Ledger(events=[response("x", 0.4)], answer_budget=1.0).check(unnamed)


def test_an_answer_can_have_a_limit_of_its_own():
    ledger = Ledger(answer_budget=AnswerBudget(1.0, {"x": 0.2, "y": 3.0, "z": math.inf}))
    ledger.check(response("x", 0.2), response("y", 3.0), response("z", 20.0), response("a", 1.0))
    with pytest.raises(OverdrawnError, match=r"“x” exceeds the budget of 0\.2 for it: ε = 0\.21"):
        ledger.check(response("x", 0.21))
    with pytest.raises(OverdrawnError, match="“a” exceeds the budget of 1 for each answer"):
        ledger.check(response("a", 1.1))
    with pytest.raises(OverdrawnError, match=r"any answer exceeds the budget of 0\.2 for each"):
        ledger.check(Recorded(what="then", attributes=(), epsilon=0.6))
    alone = Ledger(answer_budget=AnswerBudget(of={"x": 0.2}))
    alone.check(response("a", 9.0))
    with pytest.raises(InputError, match="must not be negative"):
        AnswerBudget(of={"x": -1.0})


@pytest.mark.parametrize("by_answer", [(1.0,), (1.0, 3.0), (-1.0, 1.0), (math.nan, 1.0)])
def test_an_answer_does_not_cost_more_than_all(by_answer):
    with pytest.raises(InputError, match="by_answer has an ε from 0 to 2"):
        RandomizedSum(
            what="s", attributes=("a", "b"), epsilon=2.0, claimed=1.0, crowd=5, by_answer=by_answer
        )


@settings(deadline=None, max_examples=10)
@given(small_schemas, st.floats(0.5, 8))
def test_plans_say_what_one_answer_costs(sizes, epsilon):
    """As the study that follows the plan will say it."""
    designs, _ = planned_designs(schema_of(sizes), 100, epsilon)
    for design in designs:
        if design.protocol is not None:
            _, answers, whole = stated(sizes, design.protocol)
            assert design.one_answer == pytest.approx(max(answers))
            assert design.epsilon == pytest.approx(whole)
