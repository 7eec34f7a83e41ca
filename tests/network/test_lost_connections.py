"""What an end of the network makes of a broker that hangs up, in virtual time and without one."""

import asyncio
import gc
import ssl

import aiomqtt
import pytest

from mpc_rr.errors import BrokerError, BrokerRefusal
from mpc_rr.network.address import BrokerUrl
from mpc_rr.network.broker_trouble import no_reading, not_connected
from mpc_rr.network.envelope import COORDINATOR, EVERYONE
from mpc_rr.network.fairness import COST_OF_AN_ITEM
from mpc_rr.network.fragments import LARGEST_PAYLOAD, batch, whole
from mpc_rr.network.mqtt import MqttConnection, _quiet_lost_sockets
from mpc_rr.randomness import SeededRandomness
from mpc_rr.simulation.clock import run_virtual

ACKNOWLEDGED_S, HANGS_UP_S, BACK_S = 0.01, 0.001, 0.1
UNBEARABLE = whole(b"unbearable" * 30)
GONE = aiomqtt.MqttError("gone")


class Line:
    """A connection as `MqttConnection` sees it, to a broker that hangs up at some messages.

    What the coordinator sends to itself comes back.
    """

    def __init__(self, connection, bears):
        self._connection, self._bears, self._lost, self.tried = connection, bears, False, []

    async def publish(self, topic, payload, **_):
        self.tried.append((topic, payload))
        if self._lost:
            raise GONE
        if not self._bears(payload):
            asyncio.get_running_loop().call_later(HANGS_UP_S, self.hang_up)
            await asyncio.Event().wait()
        await asyncio.sleep(ACKNOWLEDGED_S)
        if topic == self._connection._up:
            self._connection._take(topic, payload)

    def break_off(self):
        """The connection is lost, and nobody has noticed."""
        self._lost = True

    def hang_up(self):
        self.break_off()
        self._connection._lost(GONE)
        asyncio.get_running_loop().call_later(BACK_S, connected, self._connection, self._bears)


def connected(connection, bears=lambda payload: payload != UNBEARABLE):
    line = Line(connection, bears)
    connection._client, connection._loss = line, asyncio.Event()
    connection._connected_at = asyncio.get_running_loop().time()
    connection._online.set()
    return line


def connection(*, coordinator=False, lobby_s=20):
    return MqttConnection(
        BrokerUrl("127.0.0.1", 1), "test", SeededRandomness(1), size_limit=10_000,
        coordinator=coordinator, lobby_s=lobby_s, longest_wait_s=60,
    )  # fmt: skip


def test_a_loss_that_nobody_has_noticed_yet_is_no_refusal():
    """Once each message was tried five times in a quarter of a second, and the study ended."""

    async def main():
        carrier = connection()
        line = connected(carrier)
        line.break_off()
        sending = asyncio.create_task(carrier.publish("topic", b"message"))
        await asyncio.sleep(2)
        assert len(line.tried) == 1
        line.hang_up()
        await sending

    run_virtual(main())


def test_only_the_message_at_which_the_broker_hangs_up_is_blamed():
    """Once all that were under way with it were."""

    async def main():
        carrier = connection()
        connected(carrier)
        payloads = [UNBEARABLE, *(whole(b"good %d" % number) for number in range(7))]
        return await asyncio.gather(
            *(carrier._deliver("topic", payload) for payload in payloads), return_exceptions=True
        )

    blamed, *others = run_virtual(main())
    assert others == [None] * 7
    with pytest.raises(BrokerRefusal, match="ends the connection each time 301 bytes"):
        raise blamed


class Mute(Line):
    """A connection over which nothing is acknowledged, and nobody hangs up."""

    async def publish(self, topic, payload, **_):
        await asyncio.Event().wait()


@pytest.mark.parametrize(
    ("something_comes", "says"),
    [
        (False, "nor an acknowledgement has come over this connection for 70 s; is the line dead"),
        (True, "the connection stands: something else came over it meanwhile; or is its store"),
    ],
)
def test_of_a_message_that_is_not_acknowledged_no_more_is_said_than_is_known(something_comes, says):
    """It said that the broker was there, over a line that was dead."""
    beat = aiomqtt.Message("mpc_rr/test/all", b"", 0, retain=False, mid=1, properties=None)

    async def main():
        carrier = connection()
        connected(carrier)
        carrier._client = Mute(carrier, None)
        carrier._arrived(beat)
        await asyncio.sleep(10)
        sending = asyncio.create_task(carrier.publish("topic", b"message"))
        await asyncio.sleep(5)
        if something_comes:
            carrier._arrived(beat)
        await sending

    with pytest.raises(BrokerError, match=says):
        run_virtual(main())


def test_what_is_for_everyone_is_never_put_together():
    """Once two announcements of the same moment were, and nobody took them apart."""
    letters = [b"one" * 50, b"two" * 50]

    async def main():
        sender, reader = connection(coordinator=True), connection()
        line = connected(sender)
        end = reader.attach("ann")
        await asyncio.gather(*(sender.attach(COORDINATOR).send(EVERYONE, raw) for raw in letters))
        for topic, payload in line.tried:
            reader._take(topic, payload)
        return [(await end.recv()).raw for _ in letters]

    assert run_virtual(main()) == letters


def learned(bears):
    """How large a payload is carried, as a coordinator learns it, and when it knows."""

    async def main():
        carrier = connection(coordinator=True)
        connected(carrier, bears)
        await carrier._learn_sizes()
        return carrier.payload_bytes, asyncio.get_running_loop().time()

    return run_virtual(main())


@pytest.mark.parametrize("number", range(6))
def test_a_connection_that_is_lost_while_sizes_are_tried_says_nothing_of_them(number, caplog):
    """Once it was concluded that the broker does not carry so much, or nothing at all."""
    tried = []

    def bears(payload):
        tried.append(payload)
        return len(tried) != number + 1

    assert learned(bears)[0] == LARGEST_PAYLOAD
    assert "does not carry" not in caplog.text


def test_a_broker_that_hangs_up_at_a_size_each_time_does_not_carry_it(caplog):
    assert learned(lambda payload: len(payload) < 20_000)[0] == 16 * 1024 - 512
    assert "does not carry 32,256 bytes at a time" in caplog.text


def test_a_broker_that_never_bears_the_smallest_payload_is_refused():
    with pytest.raises(BrokerRefusal, match="does not carry messages to"):
        learned(lambda _: False)


def test_a_broker_that_dies_while_sizes_are_tried_is_waited_for_until_the_lobby_closes(
    monkeypatch, caplog
):
    """Once for ever."""
    monkeypatch.setattr(Line, "hang_up", lambda line: line._connection._lost(GONE))
    with pytest.raises(BrokerError, match=r"was lost before the study began \(gone\)"):
        learned(lambda payload: len(payload) < 10_000)
    assert "does not carry" not in caplog.text


@pytest.mark.parametrize("error", [ssl.SSLEOFError, ssl.SSLZeroReturnError])
def test_a_broker_that_hangs_up_while_tls_begins_is_tried_again(error):
    """Once it was said for good not to speak TLS as we do."""
    url = BrokerUrl("127.0.0.1", 1, tls=True)
    trouble = not_connected(url, error(8, "EOF occurred in violation of protocol"), 10)
    assert not isinstance(trouble, BrokerRefusal)
    assert "no MQTT broker answers at 127.0.0.1:1" in str(trouble)
    other = ssl.SSLError(1, "wrong version number")
    other.reason = "WRONG_VERSION_NUMBER"
    assert isinstance(not_connected(url, other, 10), BrokerRefusal)


@pytest.mark.parametrize(("refuses_s", "admitted"), [(10, True), (100, False)])
def test_a_refusal_that_may_pass_has_its_time_from_when_it_began(monkeypatch, refuses_s, admitted):
    """Once from the first attempt: a broker that was up after 20 s had no second chance."""
    up_s = 20

    async def connect(carrier):
        now = asyncio.get_running_loop().time()
        if now < up_s:
            raise not_connected(carrier._url, ConnectionRefusedError("refused"), 10)
        if now < up_s + refuses_s:
            raise no_reading(carrier._url, "mpc_rr/test")
        return "connected"

    async def main():
        carrier = connection(lobby_s=200)
        monkeypatch.setattr(carrier, "_connect", lambda _: connect(carrier))
        return await carrier._first_connection()

    if admitted:
        assert run_virtual(main()) == "connected"
    else:
        with pytest.raises(BrokerRefusal, match="does not let us subscribe"):
            run_virtual(main())


@pytest.mark.parametrize("error", [None, TimeoutError("Operation timed out")])
def test_a_full_store_is_among_the_causes_why_nobody_can_subscribe(error):
    """Retained messages of a stranger fill that of NATS. Once only rights were named."""
    assert "store" in str(no_reading(BrokerUrl("127.0.0.1", 1), "mpc_rr/test", error))


def test_what_nobody_has_subscribed_to_ends_nothing():
    """Once a broker could end a party with a batch for the coordinator."""
    letter = b"letter" * 20

    async def main():
        carrier = connection()
        end = carrier.attach("ann")
        for topic in ("coordinator/x", "coordinator", "other/x/ann", "all"):
            for payload in (batch([("ann", letter)] * 2), b"", b"\1", whole(letter)):
                carrier._arrived(
                    aiomqtt.Message(f"mpc_rr/test/{topic}", payload, 1, False, 1, None)
                )
        return (await end.recv()).raw, end.behind

    assert run_virtual(main()) == (letter, False)


def test_the_coordinator_is_told_from_which_mailbox_each_message_came():
    letters = [b"one" * 50, b"two" * 50, b"old" * 50]

    async def main():
        carrier = connection(coordinator=True)
        end = carrier.attach(COORDINATOR)
        carrier._take("mpc_rr/test/coordinator/m1", batch([("", raw) for raw in letters[:2]]))
        carrier._take("mpc_rr/test/coordinator", whole(letters[2]))
        return {await end.recv() for _ in letters}

    came = {(letters[0], "m1"), (letters[1], "m1"), (letters[2], "")}
    assert run_virtual(main()) == came


def test_of_a_batch_one_message_at_a_time_is_handed_over():
    """Once all of it was: who kept a batch of a thousand waiting on each of 120 connections had the
    coordinator check his signatures, and nobody else's."""
    junk, letter = [b"junk %04d" % number + bytes(100) for number in range(1000)], b"letter" * 20

    async def main():
        carrier = connection(coordinator=True)
        end = carrier.attach(COORDINATOR)
        for number in range(20):
            topic = f"mpc_rr/test/coordinator/m{number}"
            carrier._take(topic, batch([("", raw) for raw in junk]))
        await end.recv()
        carrier._take("mpc_rr/test/coordinator/honest", whole(letter))
        came = [await end.recv() for _ in range(22)]
        assert letter in [arrival.raw for arrival in came]
        rest = [await end.recv() for _ in range(19_978)]
        assert not end.behind
        assert end._inbox._total == 0
        return [arrival.raw for arrival in (*came, *rest) if arrival.mailbox == "m7"]

    assert run_virtual(main()) == junk


def test_a_batch_that_was_divided_counts_with_all_its_messages():
    """In memory each costs something besides its bytes."""

    async def main():
        carrier = connection(coordinator=True)
        end = carrier.attach(COORDINATOR)
        carrier._take("mpc_rr/test/coordinator/m", batch([("", bytes(100))] * 1000))
        await end.recv()
        assert end._inbox._total >= 999 * (100 + COST_OF_AN_ITEM)

    run_virtual(main())


def test_a_batch_of_nothing_keeps_nothing_waiting():
    async def main():
        carrier = connection(coordinator=True)
        end = carrier.attach(COORDINATOR)
        carrier._take("mpc_rr/test/coordinator/m", batch([("", b"short")]))
        carrier._take("mpc_rr/test/coordinator/m", whole(b"letter"))
        return (await end.recv()).raw, end.behind

    assert run_virtual(main()) == (b"letter", False)


def test_a_message_at_which_reading_fails_does_not_keep_the_next_away(monkeypatch):
    async def main():
        carrier = connection()
        end = carrier.attach("ann")
        message = aiomqtt.Message("mpc_rr/test/all", whole(b"next"), 1, False, 1, None)
        with monkeypatch.context() as broken:
            broken.setattr(carrier, "_take", None)
            carrier._arrived(message)
        assert carrier._failure is None
        carrier._arrived(message)
        return (await end.recv()).raw

    assert run_virtual(main()) == b"next"


@pytest.mark.parametrize(
    ("away_s", "said"), [(0.3, None), (12, "no connection to the broker for 12 s")]
)
def test_a_blink_is_no_reason(away_s, said):
    async def main():
        carrier = connection()
        connected(carrier)
        started = asyncio.get_running_loop().time()
        carrier._lost(GONE)
        await asyncio.sleep(away_s)
        carrier._outages[-1].until = asyncio.get_running_loop().time()
        return carrier.cut_off(started)

    told = run_virtual(main())
    assert told is None if said is None else said in told


def test_a_connection_that_was_given_up_prints_no_trace(caplog):
    """Once what aiomqtt knew of its end came after the error, as "never retrieved"."""

    async def main():
        _quiet_lost_sockets(asyncio.get_running_loop())
        for why in (GONE, RuntimeError("of another kind")):
            asyncio.get_running_loop().create_future().set_exception(why)

    asyncio.run(main())
    gc.collect()
    assert "gone" not in caplog.text
    assert "of another kind" in caplog.text


NOISE = aiomqtt.Message("mpc_rr/test/x", b"", 0, retain=False, mid=1, properties=None)


async def noisy(carrier, seconds, each_second):
    """For so long so much comes in; returns when that began."""
    began = asyncio.get_running_loop().time()
    for _ in range(seconds):
        for _ in range(each_second):
            carrier._arrived(NOISE)
        await asyncio.sleep(1)
    return began


@pytest.mark.parametrize("each_second", [900, 1100])
def test_a_flood_is_told_from_a_large_study(each_second):
    async def main():
        carrier = connection(coordinator=True)
        return carrier.crowded(await noisy(carrier, 20, each_second))

    flood = "22,000 messages have come in, 1,100 a second: does someone flood this broker?"
    assert run_virtual(main()) == (flood if each_second > 1000 else None)


def test_a_flood_that_begins_late_is_noticed_and_one_that_is_over_is_not():
    """Once the mean since the beginning was asked for, which a quiet lobby kept low."""

    async def main():
        carrier = connection(coordinator=True)
        began = asyncio.get_running_loop().time()
        await noisy(carrier, 300, 1)
        late = carrier.crowded(await noisy(carrier, 10, 2000))
        await asyncio.sleep(1)
        over = carrier.crowded(await noisy(carrier, 10, 1))
        return carrier.crowded(began), late, over

    whole, late, over = run_virtual(main())
    assert "20,000 messages have come in" in late
    assert (whole, over) == (None, None)


def test_many_parties_with_a_connection_each_are_no_flood():
    """Six thousand of them say that they are there every five seconds, and answer once."""

    async def main():
        carrier = connection(coordinator=True)
        for k in range(6000):
            carrier.watch(f"m{k}")
        return carrier.crowded(await noisy(carrier, 10, 1800))

    assert run_virtual(main()) is None
