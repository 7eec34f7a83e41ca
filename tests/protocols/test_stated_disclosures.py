"""What is stated beforehand holds for whatever may be asked, in whichever clusters or sets."""

import itertools
import math

import numpy as np
import pytest
from helpers import make_study, random_records, simulate

from mpc_rr.agents.account import Account
from mpc_rr.agents.consent import consent_to
from mpc_rr.privacy.disclosures import AdaptiveResponse, ClusteredResponse
from mpc_rr.protocols.block_aggregation import BlockAggregation
from mpc_rr.protocols.rr_clusters import RRClusters
from mpc_rr.protocols.rr_each_attribute import RREachAttribute

SIZES = (2, 2, 2, 2)
CLUSTERS = RRClusters(
    epsilon=4.0, least_dependence=0.0, most_combinations=16,
    dependence=RREachAttribute(epsilon=0.4),
)  # fmt: skip


def all_partitions(items):
    if not items:
        yield []
        return
    first, rest = items[0], items[1:]
    for count in range(len(rest) + 1):
        for others in itertools.combinations(rest, count):
            left = [item for item in rest if item not in others]
            for more in all_partitions(left):
                yield [(first, *others), *more]


def test_any_one_answer_in_a_cluster_may_cost_the_epsilon_of_all():
    """The screen said 1 for each of four answers; one of them alone told 2, and 4 beside others."""
    study = make_study(30, SIZES, protocol=CLUSTERS)
    stated = [e for e in study.disclosures if e.what == "rr_clusters"]
    assert [type(e) for e in stated] == [ClusteredResponse]
    assert stated[0].attributes == study.schema.names
    assert stated[0].epsilon == pytest.approx(4)
    assert "any one answer may cost all of it" in stated[0].how
    dearest = 0.0
    for clusters in all_partitions(list(range(4))):
        design = CLUSTERS.design(study.schema, clusters)
        whole = math.fsum(matrix.epsilon for matrix in design.matrices)
        assert whole == pytest.approx(stated[0].epsilon)
        dearest = max(dearest, *(matrix.epsilon for matrix in design.matrices))
    assert dearest == pytest.approx(stated[0].epsilon)
    # The column of one answer alone, with all four in one cluster: more than its own share says.
    (matrix,) = CLUSTERS.design(study.schema, [(0, 1, 2, 3)]).matrices
    shown = np.asarray(matrix.dense())
    told = math.log(shown[8, 8:].sum() / shown[0, 8:].sum())
    assert 1 < told < 4


def test_ledger_screen_and_result_price_clusters_alike():
    study = make_study(30, SIZES, protocol=CLUSTERS)
    whole = math.fsum(event.cost for event in study.disclosures)
    assert whole == pytest.approx(4.4)
    assert consent_to(study, Account()).epsilon == pytest.approx(whole)
    assert [line.epsilon for line in consent_to(study, Account()).disclosures][-1] == (
        pytest.approx(4)
    )


@pytest.mark.parametrize("sizes", [(2, 3, 4), (2, 3, 4, 2), (3, 3, 3, 3, 2)])
def test_every_set_of_answers_that_may_be_asked_for_is_listed(sizes):
    """Only the dearest was: an attribute that was not on the screen left most parties."""
    protocol = BlockAggregation(p=0.5, floor=0.1, block=5)
    study = make_study(20, sizes, protocol=protocol)
    (event,) = study.disclosures
    assert isinstance(event, AdaptiveResponse)
    assert set(event.attributes) == set(study.schema.names)
    asked = {
        tuple(tuple(study.schema.names[a] for a in combination) for combination in view)
        for view in protocol.views(study.schema)
    }
    assert set(event.sets) == asked
    assert f"one of these {len(asked)} sets, and the coordinator says which" in event.how
    assert all(f"“{'” with “'.join(names)}”" in event.how for one in asked for names in one)
    assert event.epsilon == max(math.fsum(prices) for prices in event.prices)


def test_what_a_party_is_asked_for_costs_no_more_than_was_listed():
    sizes = (2, 3, 4)
    study = make_study(12, sizes, protocol=BlockAggregation(p=0.5, floor=0.1, block=4))
    outcome, ends = simulate(study, random_records(12, sizes, seed=1))
    assert outcome.result is not None
    listed = {names for one in study.disclosures[0].sets for names in one}
    for end in ends.values():
        assert set(end.view) <= listed
        assert end.epsilon <= study.disclosures[0].epsilon * (1 + 1e-12)


def test_a_single_set_is_listed_answer_by_answer():
    study = make_study(12, (2, 3), protocol=BlockAggregation(p=0.5, floor=0.1, block=4))
    (event,) = study.disclosures
    assert event.attributes == study.schema.names
    assert not event.sets
