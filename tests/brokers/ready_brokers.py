"""Brokers with rights by role, each as somebody would run it, for tests of what they refuse."""

import asyncio
import contextlib
import itertools
import shutil
import socket
import subprocess
from pathlib import Path

import aiomqtt
import processes
from processes import LIMIT_S

from mpc_rr.crypto.certificates import fingerprint
from mpc_rr.network.address import BrokerAddresses, BrokerUrl
from mpc_rr.network.broker import embedded_broker, embedded_cluster, executable, fresh_keys
from mpc_rr.network.rights import draw_mailbox
from mpc_rr.randomness import SystemRandomness

READY = Path(__file__).parents[2] / "docs" / "brokers"


def client(url, mailbox=None, timeout_s=LIMIT_S, **options):
    """A bare client with the rights of an address."""
    mailbox = mailbox or draw_mailbox(SystemRandomness())
    user, password = url.login(mailbox)
    return aiomqtt.Client(
        url.host, url.port, username=user, password=password, timeout=timeout_s,
        tls_context=url.tls_context(), **{"identifier": mailbox} | options,
    )  # fmt: skip


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return probe.getsockname()[1]


def until_it_serves(url):
    """Wait until somebody can subscribe; each attempt has a little longer than the last."""
    limits_s = itertools.count(1.0, 0.5)

    async def subscribe(limit_s):
        async with client(url, timeout_s=limit_s) as first:
            await first.subscribe("mpc_rr/test/all", qos=1)

    def serves():
        with contextlib.suppress(aiomqtt.MqttError):
            asyncio.run(subscribe(next(limits_s)))
            return True
        return False

    processes.until(serves, "the broker serves")


@contextlib.contextmanager
def embedded(folder):
    with embedded_broker() as broker:
        yield broker


@contextlib.contextmanager
def cluster(folder):
    """Coordinator and parties are at different nodes."""
    with embedded_cluster(3) as nodes:
        for url in (nodes[0].coordinator, nodes[1].parties):
            until_it_serves(url)
        yield BrokerAddresses(nodes[0].coordinator, nodes[1].parties)


def ready_file(name, folder, **changes):
    """Copy one of the ready files, with these words put in place of others."""
    text = (READY / name).read_text()
    for was, becomes in changes.items():
        assert was in text
        text = text.replace(was, str(becomes))
    (folder / name).write_text(text)
    return folder / name


@contextlib.contextmanager
def running(command, folder, addresses):
    server = processes.Process(command, cwd=folder)
    try:
        until_it_serves(addresses.coordinator)
        yield addresses
    finally:
        server.end()


def with_certificate(folder):
    keys = fresh_keys()
    (folder / "certificate.pem").write_text(keys.certificate)
    (folder / "key.pem").write_text(keys.private_key)
    return keys


def mosquitto(folder):
    """The ready files, and nothing changed but the port; root stays root, to read them."""
    program = shutil.which("mosquitto") or shutil.which("mosquitto", path="/usr/sbin")
    port, keys = free_port(), with_certificate(folder)
    ready_file("mosquitto.acl", folder)
    path = ready_file("mosquitto.conf", folder, **{"listener 8883": f"listener {port} 127.0.0.1"})
    path.write_text(path.read_text() + "\nuser root\n")
    for options, user in ((["-b", "-c"], "coordinator"), (["-b"], "party")):
        command = ["mosquitto_passwd", *options, "passwords", user, f"{user} pw"]
        subprocess.run(command, cwd=folder, check=True, capture_output=True)
    urls = (
        BrokerUrl("127.0.0.1", port, True, user, f"{user} pw",
                  fingerprint=fingerprint(keys.certificate))
        for user in ("coordinator", "party")
    )  # fmt: skip
    return running([program, "-c", path.name], folder, BrokerAddresses(*urls))


def nats(folder, own_port=None):
    """The ready file, and nothing changed but the ports."""
    port, keys = free_port(), with_certificate(folder)
    ready_file("nats.conf", folder, **{"8883": port, "4222": own_port or free_port()})
    (folder / "keys").mkdir()
    (folder / "keys" / "rights.conf").write_text(keys.configuration(SystemRandomness()))
    pin = fingerprint(keys.certificate)
    urls = (
        BrokerUrl("127.0.0.1", port, True, user, invitation, fingerprint=pin)
        for user, invitation in (
            ("coordinator-invitation", keys.coordinator_invitation),
            ("party-invitation", keys.party_invitation),
        )
    )
    return running([executable(), "-c", "nats.conf"], folder, BrokerAddresses(*urls))
