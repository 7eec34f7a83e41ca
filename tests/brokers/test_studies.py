"""Whole studies over real brokers: exact, sealed, and the same as in simulation."""

import asyncio
import math

import numpy as np
import pytest
from helpers import PATIENT, assert_tables, crosstabs, make_scenario, random_records
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from observing import observer
from processes import LIMIT_S

from mpc_rr.estimation.suppression import HIDDEN
from mpc_rr.network.fragments import unbatch
from mpc_rr.network.mailbox import _Wait
from mpc_rr.protocols.exact_pairs import ExactPairs
from mpc_rr.protocols.lambda_randomization import LambdaRandomization
from mpc_rr.protocols.rr_clusters import RRClusters
from mpc_rr.protocols.rr_independent import RRIndependent
from mpc_rr.protocols.rr_pairs import RRPairs
from mpc_rr.protocols.rr_views import RRViews
from mpc_rr.protocols.sums import secure_sum
from mpc_rr.running import run_study
from mpc_rr.simulation.faults import Faults, PartyFault

pytestmark = pytest.mark.broker


@st.composite
def populations(draw):
    sizes = tuple(draw(st.lists(st.integers(2, 4), min_size=2, max_size=4)))
    n = draw(st.integers(3, 8))
    record = st.tuples(*(st.integers(0, size - 1) for size in sizes))
    return sizes, draw(st.lists(record, min_size=n, max_size=n))


@settings(
    max_examples=12,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(populations())
def test_counts_equal_numpys_crosstabs_on_both_transports(broker, population):
    sizes, records = population
    scenario = make_scenario(records, sizes, **PATIENT)
    expected = crosstabs(records, sizes)
    for options in ({"broker": broker}, {"transport": "memory"}):
        result = run_study(scenario, **options)
        assert_tables(result.outcome.result.tables, expected)
        for counts in result.parties.values():
            assert_tables(counts.tables, expected)


def listened_along(broker, scenario, **options):
    """Run a study while a client that may read everything listens; its result, and the capture."""
    captured = []

    async def capture(client):
        async for message in client.messages:
            if message.topic.value == "mpc_rr/end":
                return
            payload = bytes(message.payload)
            captured.extend(raw for _, raw in unbatch(payload) or [("", payload)])

    async def both():
        async with observer(broker) as client:
            await client.subscribe("mpc_rr/#", qos=1)
            listening = asyncio.create_task(capture(client))
            result = await asyncio.to_thread(run_study, scenario, broker=broker, **options)
            await client.publish("mpc_rr/end", qos=1)  # comes after all that came before
            await asyncio.wait_for(listening, LIMIT_S)
            return result

    return asyncio.run(both()), captured


def test_the_broker_never_sees_a_plaintext_share(broker, monkeypatch):
    """The capture of a whole study is searched for each share."""
    shares, sizes = [], (4, 4, 4)
    original = secure_sum.zero_shares

    def remembered(*args):
        shares.append(original(*args))
        return shares[-1]

    monkeypatch.setattr(secure_sum, "zero_shares", remembered)
    records = random_records(5, sizes, seed=3)
    result, captured = listened_along(broker, make_scenario(records, sizes, **PATIENT))
    assert_tables(result.outcome.result.tables, crosstabs(records, sizes))
    everything = b"".join(captured)
    assert len(shares) == 5
    assert len(captured) >= 5 * 7, "the capture is complete"
    for matrix in shares:
        for share in matrix:
            assert share.astype("u1").tobytes() not in everything
    published = [raw for raw in result.outcome.transcript if b"partial" in raw]
    assert all(raw in everything for raw in published), "what is public is found in it"


def test_broker_and_coordinator_together_recover_no_more_records_than_promised(broker):
    """All that the broker carried and the coordinator kept is pooled, and each record guessed.

    The best guess is the report. The number of records recovered is within 4 standard deviations
    of what the matrix keeps; a true record that leaked elsewhere would not be found by this, so the
    same people are asked again with their answers fixed: other records, same capture (see
    tests/protocols/test_secrecy.py).
    """
    keep, sizes, n = 0.5, (2, 3, 2), 120
    records = random_records(n, sizes, seed=5)
    scenario = make_scenario(records, sizes, protocol=RRIndependent(keep=keep), **PATIENT)
    result, captured = listened_along(broker, scenario, seed=8)
    everything = b"".join(captured)
    reports = result.outcome.result.reported
    answers = [raw for raw in result.outcome.transcript if b"\xa6answer" in raw]
    assert len(answers) == n
    assert all(raw in everything for raw in answers), "the capture is complete"
    right = sum(tuple(row) == record for row, record in zip(reports.tolist(), records, strict=True))
    chance = math.prod(keep + (1 - keep) / size for size in sizes)
    assert abs(right - n * chance) < 4 * math.sqrt(n * chance * (1 - chance))


def test_a_real_broker_carries_nothing_that_adds_up_to_suppressed_counts(broker):
    sizes = (2, 3, 2)
    records = [*random_records(23, (2, 2, 2), seed=1), (1, 2, 1)]
    scenario = make_scenario(records, sizes, protocol=ExactPairs(suppress_below=3), **PATIENT)
    result, captured = listened_along(broker, scenario)
    pooled = b"".join(captured) + b"".join(result.outcome.transcript)
    exact = np.concatenate(crosstabs(records, sizes), axis=None)
    assert exact.astype("<i8").tobytes() not in pooled
    assert exact.astype("u1").tobytes() not in pooled
    assert (result.outcome.result.tables[0][:, 2] == HIDDEN).all()


def test_bundles_larger_than_a_piece_are_put_together_again(broker):
    sizes, n = (60, 60, 60), 26
    records = random_records(n, sizes, seed=4)
    result = run_study(make_scenario(records, sizes, **PATIENT), broker=broker)
    assert_tables(result.outcome.result.tables, crosstabs(records, sizes))
    largest = max(t.bytes_up for t in result.outcome.traffic.values())
    assert largest > 256 * 1024


def test_a_silent_party_over_a_real_broker(nats, monkeypatch, asked_again_soon):
    """Its time is up when everybody else has come, whenever that is."""
    sizes = (2, 3)
    records = random_records(5, sizes, seed=6)
    faults = Faults(silent=(PartyFault("party-2", "share"),))
    scenario = make_scenario(records, sizes, faults=faults, minimum=4, **PATIENT)
    deadline = _Wait.deadline.fget

    def soon_if_alone(wait):
        alone = (wait.step, *wait.missing) == ("share", "party-2")
        return wait.started if alone else deadline(wait)

    monkeypatch.setattr(_Wait, "deadline", property(soon_if_alone))
    outcome = run_study(scenario, broker=nats).outcome
    rest = [record for k, record in enumerate(records) if k != 1]
    assert_tables(outcome.result.tables, crosstabs(rest, sizes))
    assert [e.name for e in outcome.excluded] == ["party-2"]


def test_lost_and_repeated_messages_over_a_real_broker(nats, asked_again_soon):
    sizes = (2, 3)
    records = random_records(6, sizes, seed=7)
    faults = Faults(loss=0.15, duplicate=0.2, reorder=0.2, delay_s=(0.0, 0.05))
    scenario = make_scenario(records, sizes, faults=faults, **PATIENT)
    outcome = run_study(scenario, broker=nats, seed=3).outcome
    assert_tables(outcome.result.tables, crosstabs(records, sizes))


PROTOCOLS = [
    RRIndependent(keep=0.5),
    LambdaRandomization(beta=0.8),
    RRViews(epsilon=2.0),
    RRClusters(keep=0.6, dependence=RRPairs(keep=0.6)),
]


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=lambda protocol: protocol.name)
def test_randomized_studies_are_the_same_on_both_transports(broker, protocol):
    """The same seed draws the same answers: the result is equal to the last bit."""
    records = random_records(12, (2, 3, 2), seed=6)
    scenario = make_scenario(records, (2, 3, 2), protocol=protocol, **PATIENT)
    real = run_study(scenario, broker=broker, seed=3).outcome.result
    simulated = run_study(scenario, transport="memory", seed=3).outcome.result
    assert real.digest == simulated.digest
    first, second = (result.estimates().marginals() for result in (real, simulated))
    for one, other in zip(first, second, strict=True):
        assert one.unbiased.shares.tolist() == other.unbiased.shares.tolist()


@pytest.mark.parametrize("name", ["box", "all", "coordinator", "mpc_rr"])
def test_a_study_may_be_called_like_a_word_of_its_topics(nats, name):
    """Once what many of study "box" wrote at the same time was published where nobody reads."""
    records, sizes = random_records(40, (2, 3), seed=5), (2, 3)
    scenario = make_scenario(
        records, sizes, name=name, protocol=RRIndependent(keep=0.5), lobby_s=120, round_s=60
    )
    result = run_study(scenario, broker=nats)
    assert result.outcome.result is not None, result.outcome.cause
    assert len(result.outcome.members) == 40
