"""TLS by a fingerprint in the address: that certificate and no other, before anything is said."""

import asyncio
import contextlib
import socket
import ssl
import threading

import msgspec
import pytest
from helpers import PATIENT, assert_tables, crosstabs, make_scenario, random_records
from ready_brokers import client

from mpc_rr.crypto.certificates import fingerprint, self_signed
from mpc_rr.errors import BrokerError, InputError
from mpc_rr.network import mqtt
from mpc_rr.network.address import BrokerUrl
from mpc_rr.network.broker import TlsFiles, embedded_broker, fresh_keys
from mpc_rr.network.mqtt import MqttConnection
from mpc_rr.randomness import SystemRandomness
from mpc_rr.running import run_study

pytestmark = pytest.mark.broker


@pytest.fixture
def files(tmp_path):
    certificate, key = self_signed()
    (tmp_path / "certificate.pem").write_text(certificate)
    (tmp_path / "key.pem").write_text(key)
    return TlsFiles(tmp_path / "certificate.pem", tmp_path / "key.pem")


@pytest.fixture
def impostor(files):
    """A TLS server that only listens: its port, and all that clients said once it spoke TLS."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(files.certificate, files.private_key)
    said, ended = [], threading.Event()

    def serve(listening):
        with contextlib.suppress(OSError):
            line, _ = listening.accept()
            with line, context.wrap_socket(line, server_side=True) as tls:
                while more := tls.recv(4096):
                    said.append(more)
                    if b"MQTT" in more:
                        break
        ended.set()

    with socket.create_server(("127.0.0.1", 0)) as listening:
        serving = threading.Thread(target=serve, args=(listening,))
        serving.start()
        yield listening.getsockname()[1], said, ended
        with contextlib.suppress(OSError):
            listening.shutdown(socket.SHUT_RDWR)
    serving.join()


async def connect(url):
    async with MqttConnection(
        url, "test", SystemRandomness(), size_limit=1000, coordinator=False, lobby_s=0.1,
        longest_wait_s=60,
    ).open():  # fmt: skip
        pass


def test_a_study_runs_over_tls_with_a_fingerprint():
    records = random_records(5, (2, 3), seed=8)
    with embedded_broker(tls=True) as broker:
        url = BrokerUrl.parse(broker.coordinator.with_secrets())
        assert url == broker.coordinator
        assert url.fingerprint is not None
        outcome = run_study(make_scenario(records, (2, 3), **PATIENT), broker=url).outcome
    assert_tables(outcome.result.tables, crosstabs(records, (2, 3)))


async def test_another_certificate_is_not_accepted():
    with embedded_broker(tls=True) as broker:
        other = msgspec.structs.replace(broker.parties, fingerprint="0" * 64)
        with pytest.raises(
            BrokerError, match="not the one whose fingerprint stands in the address"
        ):
            await connect(other)
        unpinned = msgspec.structs.replace(broker.parties, fingerprint=None)
        with pytest.raises(BrokerError, match=r"is not to be trusted: .* --broker-ca"):
            await connect(unpinned)


async def test_an_impostor_hears_nothing_not_even_the_user(impostor):
    port, said, ended = impostor
    url = BrokerUrl("127.0.0.1", port, True, "ann", "hunter2", fingerprint="ab" * 32)
    with pytest.raises(BrokerError, match="not the one whose fingerprint"):
        await connect(url)
    await asyncio.to_thread(ended.wait)
    assert said == []


async def test_with_the_right_fingerprint_the_password_is_sent(impostor, files):
    """The counterpart of the test before: it could have failed."""
    port, said, ended = impostor
    pin = fingerprint(files.certificate.read_text())
    url = BrokerUrl("127.0.0.1", port, True, "ann", "hunter2", fingerprint=pin)
    connecting = asyncio.create_task(connect(url))  # it would wait for an answer
    await asyncio.to_thread(ended.wait)
    connecting.cancel()
    await asyncio.wait([connecting])
    assert b"hunter2" in b"".join(said)


async def test_a_given_certificate_is_used_and_pinned_if_nobody_vouches_for_it(files):
    with embedded_broker(tls=files) as broker:
        assert broker.parties.fingerprint == fingerprint(files.certificate.read_text())
        async with client(broker.parties):
            pass
        by_authority = msgspec.structs.replace(
            broker.parties, fingerprint=None, ca_file=files.certificate
        )
        with pytest.raises(BrokerError, match="certificate"):  # it names no host
            await connect(by_authority)


def test_keys_without_a_certificate_that_can_be_used_are_told():
    keys = msgspec.structs.replace(fresh_keys(), certificate="cut off")
    with (
        pytest.raises(InputError, match="its certificate or the private key of it is damaged"),
        embedded_broker(keys=keys, tls=True),
    ):
        pass


async def test_plain_where_tls_is_spoken_and_the_other_way_round_are_told(monkeypatch):
    monkeypatch.setattr(mqtt, "CONNECT_TIMEOUT_S", 3.0)  # whoever waits for an answer waits in vain
    with embedded_broker(tls=True) as broker:
        plain = msgspec.structs.replace(broker.parties, tls=False, fingerprint=None)
        with pytest.raises(BrokerError, match=r"Does it want TLS \(mqtts://\)"):
            await connect(plain)
    with embedded_broker() as broker:
        tls = msgspec.structs.replace(broker.parties, tls=True, fingerprint="ab" * 32)
        with pytest.raises(BrokerError, match=r"Does it speak TLS\?"):
            await connect(tls)


def test_the_private_key_is_readable_by_its_owner_alone_and_goes_with_the_broker(
    tmp_path, monkeypatch
):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with embedded_broker(tls=True):
        (folder,) = tmp_path.iterdir()
        for file in ("key.pem", "broker.conf"):
            assert (folder / file).stat().st_mode & 0o077 == 0
    assert not any(tmp_path.iterdir())


def test_neither_password_nor_invitation_shows():
    with embedded_broker(tls=True) as broker:
        shown = f"{broker!r} {broker} {broker.parties!r} {broker.coordinator}"
        for url in (broker.parties, broker.coordinator):
            assert url.password not in shown
            assert url.password in url.with_secrets()


@pytest.mark.parametrize(
    ("address", "says"),
    [
        ("mqtt://h#sha256=" + "ab" * 32, "needs an mqtts:// address"),
        ("mqtts://h#sha1=" + "ab" * 20, "64 hexadecimal digits"),
        ("mqtts://h#" + "ab" * 32, "64 hexadecimal digits"),
        ("mqtt://party-invitation@h", "cut off or mistyped"),
        ("mqtt://coordinator-invitation:SUAB.AB@h", "cut off or mistyped"),
    ],
)
def test_an_address_that_was_not_copied_whole_is_told(address, says):
    with pytest.raises(InputError, match=says):
        BrokerUrl.parse(address)


SECRET = "SUAHUSHHUSH"


@pytest.mark.parametrize(
    "address",
    [
        f"mqtts://party-invitation:{SECRET}",
        f"mqtts://user:{SECRET}",
        f"mqtts:user:{SECRET}",
        f"mqtts//user:{SECRET}",
        f"user:{SECRET}",
        f"{SECRET}://host:port",
        f"{SECRET}://host:port@",
        f"mqtt://user:{SECRET},more@host",
        f"mqtt://user:more,{SECRET}@host",
        f"http://user:{SECRET}@host",
        f"mqtt://user:{SECRET}@host:port",
        f"mqtt://user:{SECRET}/@host:port",
        f"mqtt://user:{SECRET}@@host:port",
    ],
)
def test_an_address_that_cannot_be_used_is_told_without_its_secrets(address):
    """Once what had been cut off before its @ was shown whole."""
    with pytest.raises(InputError) as told:
        BrokerUrl.parse(address)
    assert SECRET.casefold() not in str(told.value).casefold()


@pytest.mark.parametrize("proxy", [f"socks5://me:{SECRET}@host", f"socks5://me:{SECRET}", SECRET])
def test_a_proxy_that_cannot_be_used_is_told_without_its_password(proxy):
    with pytest.raises(InputError, match="a proxy must look like") as told:
        BrokerUrl.parse("mqtt://host", proxy=proxy)
    assert SECRET not in str(told.value)


def test_an_address_that_ends_after_the_name_of_its_invitation_is_told():
    with pytest.raises(InputError, match="cut off or mistyped"):
        BrokerUrl.parse("mqtt://party-invitation")


def test_a_fingerprint_may_have_colons_and_capital_letters():
    pin = ":".join(["AB"] * 32)
    assert BrokerUrl.parse(f"mqtts://h#sha256={pin}").fingerprint == "ab" * 32
