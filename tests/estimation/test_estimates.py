"""Queries, synthesis, and back from a result folder."""

import csv
import json

import numpy as np
import pytest
from helpers import crosstabs, make_scenario, make_schema, random_records

from mpc_rr.errors import InputError
from mpc_rr.estimation.condition_language import parse_condition
from mpc_rr.estimation.conditions import Cells, conjunction
from mpc_rr.estimation.designs import Fitted, rr_clusters, rr_independent
from mpc_rr.estimation.distribution import Estimate
from mpc_rr.estimation.estimates import Estimates, adjusted_weights
from mpc_rr.estimation.strength import degree_of
from mpc_rr.estimation.views import FittedViews, ViewDesign, all_views
from mpc_rr.protocols.block_aggregation import BlockAggregation
from mpc_rr.protocols.rr_clusters import RRClusters
from mpc_rr.protocols.rr_each_attribute import RREachAttribute
from mpc_rr.protocols.rr_joint import RRJoint
from mpc_rr.protocols.rr_views import RRViews
from mpc_rr.publication.counts import PairCounts
from mpc_rr.randomness import SeededRandomness
from mpc_rr.results.asking import read_askable
from mpc_rr.results.folder import write_results
from mpc_rr.running import run_study
from mpc_rr.schema import Attribute, Schema

SIZES = (2, 3, 2)


def people(n, seed=0):
    rng = np.random.default_rng(seed)
    first = rng.integers(0, 2, n)
    second = np.where(rng.random(n) < 0.6, first, rng.integers(0, 3, n))
    return np.stack([first, second, rng.integers(0, 2, n)], axis=1)


@pytest.mark.parametrize("kind", ["independent", "clusters", "views"])
def test_intervals_hold_what_they_promise(kind):
    """95 % intervals over 1,000 randomizations hold the truth in 93 to 97 % (±2.9 sigma)."""
    records, rng = people(400), np.random.default_rng(3)
    condition = conjunction({0: (1,), 1: (0, 1)})
    truth = int(((records[:, 0] == 1) & (records[:, 1] < 2)).sum())
    if kind == "views":
        design = ViewDesign(SIZES, all_views(3, 2), 0.8)
        assert any(m.chosen > 1 for m in design.mechanisms.values())
    elif kind == "clusters":
        design = rr_clusters(SIZES, [(0, 1), (2,)], [1.0, 1.0, 1.0])
    else:
        design = rr_independent(SIZES, 0.6)
    held, cells = 0, Cells.of(condition, SIZES)
    for _ in range(1000):
        reported = design.randomize(records, SeededRandomness.from_generator(rng))
        fitted = FittedViews(design, reported) if kind == "views" else Fitted(design, reported)
        answer = Estimates(make_schema(SIZES), fitted).asked(cells).answer(0.95)
        held += answer.interval[0] <= truth <= answer.interval[1]
    # With a fixed population the errors are those of randomization alone; the intervals also
    # allow for sampling, so they may hold the truth a little more often.
    assert 930 <= held <= 995


def test_adjusted_weights_give_the_estimated_margins():
    records = people(3000)
    design = rr_independent(SIZES, 0.5)
    fitted = Fitted(design, design.randomize(records, SeededRandomness(1)))
    found = adjusted_weights(fitted)
    weights = found.weights
    assert weights.sum() == pytest.approx(1)
    assert found.adjustment.trouble is None
    assert found.effective == pytest.approx(weights.sum() ** 2 / (weights**2).sum())
    assert 1 < found.effective < len(records)
    for attribute in range(3):
        margin = np.bincount(fitted.reported[:, attribute], weights=weights)
        np.testing.assert_allclose(margin, fitted.cluster_joint((attribute,)), atol=1e-6)


@pytest.mark.parametrize(
    "protocol",
    [
        RRJoint(epsilon=4.0),
        RRViews(epsilon=3.0),
        RRClusters(keep=0.6, most_combinations=6, dependence=RREachAttribute(keep=0.6)),
    ],
    ids=["joint", "views", "clusters"],
)
def test_a_result_folder_gives_back_the_very_same_estimates(protocol, tmp_path):
    scenario = make_scenario(random_records(40, SIZES, seed=2), SIZES, protocol=protocol)
    result = run_study(scenario, transport="memory", seed=4)
    write_results(result, tmp_path / "run")
    run, direct = read_askable(tmp_path / "run"), result.outcome.result.estimates()
    assert run.folder.study == scenario.study
    for ours, theirs in zip(run.estimates.marginals(), direct.marginals(), strict=True):
        assert ours.unbiased.shares.tolist() == theirs.unbiased.shares.tolist()
    condition = conjunction({0: (1,), 2: (0,)})
    assert run.estimates.query(condition) == direct.query(condition)
    people = run.estimates.synthesize(100, np.random.default_rng(1).random)
    assert people.shape == (100, 3)
    document = json.loads((tmp_path / "run" / "result.json").read_text())
    assert document["publication"]["privacy"]["local_epsilon"] > 0
    rows = list(csv.reader((tmp_path / "run" / "reports.csv").read_text().splitlines()))
    assert len(rows) == 41


def test_folders_that_cannot_be_queried_are_told(tmp_path):
    with pytest.raises(InputError, match="there is no folder"):
        read_askable(tmp_path / "nothing")
    exact = make_scenario(random_records(5, (2, 3)), (2, 3))
    write_results(run_study(exact, transport="memory"), tmp_path / "exact")
    with pytest.raises(InputError, match=r"what it found is in .*exact.pairs$"):
        read_askable(tmp_path / "exact")
    blocks = BlockAggregation(p=0.5, floor=0.5, block=5)
    blocks = make_scenario(random_records(10, (2, 3)), (2, 3), protocol=blocks)
    write_results(run_study(blocks, transport="memory"), tmp_path / "blocks")
    with pytest.raises(InputError, match=r"is in .*blocks.attributes, .*blocks.tables$"):
        read_askable(tmp_path / "blocks")
    scenario = make_scenario(random_records(5, (2, 3)), (2, 3), protocol=RRJoint(epsilon=4.0))
    write_results(run_study(scenario, transport="memory"), tmp_path / "run")
    (tmp_path / "run" / "reports.csv").write_text("party,a0,a1,weight\nx,v9,v0,1\n")
    with pytest.raises(InputError, match="is damaged"):
        read_askable(tmp_path / "run")


def test_a_wish_for_no_rows_is_told():
    fitted = Fitted(rr_independent((2, 3), 0.5), np.zeros((4, 2), dtype=np.int64))
    with pytest.raises(InputError, match="must be positive"):
        Estimates(make_schema((2, 3)), fitted).synthesize(0, np.random.default_rng(1).random)


ORDER_AND_NONE = Schema(
    (
        Attribute("town", "nominal", ("a", "b", "c")),
        Attribute("school", "ordinal", ("none", "some", "all")),
        Attribute("income", "ordinal", ("low", "middle", "high")),
    )
)
MEASURES = {(0, 1): "cramers_v", (0, 2): "cramers_v", (1, 2): "pearson_r"}


def test_a_correlation_is_of_two_ordered_attributes_only():
    """That of towns in the order of the file would be a number, too, but mean nothing."""
    records = np.random.default_rng(3).integers(0, 3, (500, 3))
    design = rr_independent((3, 3, 3), 0.8)
    fitted = Fitted(design, design.randomize(records, SeededRandomness(4)))
    found = Estimates(ORDER_AND_NONE, fitted).strengths()
    assert {pair: one.measure for pair, one in found.items()} == MEASURES
    tables = crosstabs(records, (3, 3, 3))
    published = PairCounts(500, ORDER_AND_NONE, tables).strengths()
    assert {pair: one.measure for pair, one in published.items()} == MEASURES


@pytest.mark.parametrize("ordinal", [False, True])
def test_the_degree_of_a_pair_is_that_of_its_table_and_lies_within_its_limits(ordinal):
    """Among 300 people without dependence the reports alone say V = .4 to .8 now and then, where
    the table says next to nothing."""
    kind = "ordinal" if ordinal else "nominal"
    sizes = {"x": 5, "y": 4, "z": 3}
    schema = Schema(
        tuple(Attribute(name, kind, tuple("abcde"[:size])) for name, size in sizes.items())
    )
    design, told = rr_independent(schema.sizes, 0.5), 0
    for seed in range(12):
        people = np.random.default_rng(seed).integers(0, schema.sizes, (300, 3))
        reported = design.randomize(people, SeededRandomness(seed))
        estimates = Estimates(schema, Fitted(design, reported))
        for (i, j), found in estimates.strengths().items():
            both = schema.attributes[i], schema.attributes[j]
            if found.value is not None:
                told += 1
                assert found.value == degree_of(estimates.pair_tables[i, j], both)
                assert found.low <= found.value <= found.high
    assert told > 12


def test_what_a_first_stage_counted_of_these_very_people_is_certain():
    schema = Schema(tuple(Attribute(name, "nominal", ("a", "b")) for name in "xyz"))
    people = np.random.default_rng(3).integers(0, 2, (40, 3))
    design = rr_independent(schema.sizes, 0.2)
    fitted = Fitted(design, design.randomize(people, SeededRandomness(1)))
    shares = np.histogram2d(people[:, 0], people[:, 1], bins=2)[0] / 40
    known = {(0, 1): Estimate(shares, np.zeros((2, 2)), 40)}
    estimates = Estimates(schema, fitted, known)
    assert np.array_equal(estimates.table((1, 0)), shares.T)
    for condition, due in ((parse_condition("x = b", schema), shares[1].sum()),
                           (parse_condition("x = b and y = a", schema), shares[1, 0])):  # fmt: skip
        found = estimates.query(condition)
        assert found.interval == pytest.approx((40 * due, 40 * due), abs=1e-9)
        assert found.population[0] < due < found.population[1]
    alone = estimates.query(parse_condition("z = b", schema)).interval
    assert alone[1] - alone[0] > 5
