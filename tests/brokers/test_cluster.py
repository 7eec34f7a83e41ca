"""Three brokers as one: a study goes on when one of them is gone."""

import asyncio
import itertools
import threading

import msgspec
import processes
import pytest
from helpers import PATIENT, assert_tables, crosstabs, make_scenario, random_records

from mpc_rr.errors import BrokerError
from mpc_rr.network.address import BrokerUrl
from mpc_rr.network.broker import embedded_cluster
from mpc_rr.network.mqtt import MqttConnection
from mpc_rr.protocols.exact_pairs import ExactPairs
from mpc_rr.protocols.sums.masked import sum as masked_sum
from mpc_rr.randomness import SystemRandomness
from mpc_rr.running import run_study

pytestmark = pytest.mark.broker
SIZES = (2, 3, 2)


def test_several_addresses_are_one_broker():
    url = BrokerUrl.parse("mqtt://a:b@one:1883, mqtt://a:b@two:1884")
    assert (url.where, [other.where for other in url.others]) == ("one:1883", ["two:1884"])


@pytest.fixture
def growing_patience(monkeypatch):
    """Wait a little longer for every next connection, and try for as long as it takes.

    Nodes never answer somebody who asks before they have agreed on a leader, which takes them
    seconds when they start and when they have lost one.
    """
    connect, limits_s = MqttConnection._connect_to_node, itertools.count(1.0, 0.5)

    def connect_patiently(connection, _timeout_s):
        return connect(connection, next(limits_s))

    monkeypatch.setattr(MqttConnection, "_connect_to_node", connect_patiently)


def serves(url):
    async def connect():
        async with MqttConnection(
            url,
            "test",
            SystemRandomness(),
            size_limit=1000,
            coordinator=False,
            lobby_s=0.1,
            longest_wait_s=60,
        ).open():
            return True

    try:
        return asyncio.run(connect())
    except BrokerError:
        return False


@pytest.mark.usefixtures("growing_patience", "asked_again_soon")
def test_a_masked_sum_survives_the_end_of_one_node_in_the_middle_of_a_round(monkeypatch):
    """The node with all connections is ended while the masked vectors are on their way."""
    records = random_records(20, SIZES, seed=4)
    scenario = make_scenario(records, SIZES, protocol=ExactPairs(sum="masked_sum"), **PATIENT)
    with embedded_cluster(3) as nodes:
        urls = [node.coordinator for node in nodes]
        url = msgspec.structs.replace(urls[0], others=tuple(urls[1:]))
        processes.until(lambda: serves(urls[0]), "a node serves")
        original, ended = masked_sum._for_party, []

        def ending(*args):
            if not ended:
                ended.append(threading.Thread(target=nodes[0].end))
                ended[0].start()
            return original(*args)

        monkeypatch.setattr(masked_sum, "_for_party", ending)
        result = run_study(scenario, broker=url)
        ended[0].join()
    assert result.outcome.result is not None, result.outcome.cause
    assert result.outcome.result.n == 20
    assert_tables(result.outcome.result.tables, crosstabs(records, SIZES))


@pytest.mark.parametrize("parties", [12])
def test_a_masked_sum_over_both_brokers_is_that_of_the_simulation(broker, parties):
    records = random_records(parties, SIZES, seed=5)
    scenario = make_scenario(records, SIZES, protocol=ExactPairs(sum="masked_sum"), **PATIENT)
    for options in ({"broker": broker}, {"broker": broker, "hosts": 2}, {"transport": "memory"}):
        outcome = run_study(scenario, seed=3, **options).outcome
        assert outcome.result is not None, outcome.cause
        assert_tables(outcome.result.tables, crosstabs(records, SIZES))
