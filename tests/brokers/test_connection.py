"""One connection to a real broker: who gets a word in, and what a loss of it does."""

import asyncio

import paho.mqtt.client as paho
import pytest
from processes import LIMIT_S

from mpc_rr.network.envelope import COORDINATOR
from mpc_rr.network.fragments import whole
from mpc_rr.network.mqtt import MqttConnection
from mpc_rr.randomness import SystemRandomness

pytestmark = pytest.mark.broker
LETTER = b"l" * 300
FLOOD = 20_000


def connection(url, *, coordinator, lobby_s=20, longest_wait_s=20):
    return MqttConnection(
        url, "test", SystemRandomness(), size_limit=10_000, coordinator=coordinator,
        lobby_s=lobby_s, longest_wait_s=longest_wait_s,
    )  # fmt: skip


def flood(url, topic, count):
    """Publish junk as fast as possible; returns when the broker has all of it."""
    client = paho.Client(paho.CallbackAPIVersion.VERSION2)
    client.connect(url.host, url.port)
    client.loop_start()
    for _ in range(count):
        client.publish(topic, whole(b"j" * 300), qos=0)
    client.publish(topic, whole(b"j" * 300), qos=1).wait_for_publish(LIMIT_S)
    client.disconnect()
    client.loop_stop()


async def test_who_floods_keeps_nobody_else_waiting(start_mosquitto):
    """Once messages waited where they came in, in one line for all: 40 s behind one flooder.

    Then all of it was read before the letter; now what the letter meets on its way (an eighth).
    """
    _, url = start_mosquitto("allow_anonymous true\nmax_queued_messages 0")
    reader, writer = connection(url, coordinator=True), connection(url, coordinator=False)
    async with reader.open(), writer.open(), asyncio.timeout(LIMIT_S):
        end = reader.attach(COORDINATOR)
        await asyncio.to_thread(flood, url, "mpc_rr/test/coordinator/mallory", FLOOD)
        await writer.attach("ann").send(COORDINATOR, LETTER)
        junk = 0
        while (await end.recv()).raw != LETTER:
            junk += 1
    assert junk < FLOOD / 2
