"""One connection to a real broker: who gets a word in, and what a loss of it does."""

import asyncio
import contextlib

import msgspec
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


def connection(url, *, coordinator, lobby_s=20, longest_wait_s=20, keepalive_s=60):
    return MqttConnection(
        url, "test", SystemRandomness(), size_limit=10_000, coordinator=coordinator,
        lobby_s=lobby_s, longest_wait_s=longest_wait_s, keepalive_s=keepalive_s,
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


class Router:
    """Between clients and their broker; the connections that it forgets carry nothing more.

    Nobody hangs up, and new ones work: so do routers, balancers, and changes of network.
    """

    def __init__(self, url):
        self._url, self._ends, self._carrying = url, [], []

    @contextlib.asynccontextmanager
    async def open(self):
        """The address of the broker through this."""
        server = await asyncio.start_server(self._connect, "127.0.0.1", 0)
        try:
            yield msgspec.structs.replace(self._url, port=server.sockets[0].getsockname()[1])
        finally:
            server.close()
            self.forget()
            for _, writer in self._ends:
                writer.close()

    async def _connect(self, *here):
        there = await asyncio.open_connection(self._url.host, self._url.port)
        self._ends += [here, there]  # kept, or they would be closed
        self._carrying += [
            asyncio.create_task(self._carry(here[0], there[1])),
            asyncio.create_task(self._carry(there[0], here[1])),
        ]

    async def _carry(self, reader, writer):
        with contextlib.suppress(ConnectionError):
            while some := await reader.read(2**16):
                writer.write(some)
        writer.close()

    def forget(self):
        for task in self._carrying:
            task.cancel()


@pytest.mark.parametrize("whose", ["coordinator", "party"])
async def test_a_line_that_is_dead_without_a_word_is_given_up_and_made_again(nats, whose):
    """Once it took two minutes, and the study was lost before: others were named as silent."""
    router = Router(nats)
    async with router.open() as through, asyncio.timeout(LIMIT_S):
        urls = {"coordinator": nats, "party": nats} | {whose: through}
        # The library looks every second whether to ask: by 5 s, and the broker waits 6.
        how = {"longest_wait_s": 50, "keepalive_s": 4}
        coordinator = connection(urls["coordinator"], coordinator=True, **how)
        party = connection(urls["party"], coordinator=False, **how)
        ends = {"coordinator": coordinator.attach(COORDINATOR), "party": party.attach("ann")}
        ends["coordinator"].route("ann", ends["party"].address)
        target = {"coordinator": "ann", "party": COORDINATOR}[whose]
        reader = ends.pop("party" if whose == "coordinator" else "coordinator")
        async with coordinator.open(), party.open():
            router.forget()
            await ends[whose].send(target, LETTER)
            while (await reader.recv()).raw != LETTER:
                pass
