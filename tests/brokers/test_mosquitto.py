"""What only another broker can show: passwords, TLS, and a broker that goes away and comes back."""

import contextlib
import datetime as dt
import gc
import ipaddress
import subprocess
import threading

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from helpers import PATIENT, assert_tables, crosstabs, make_scenario, random_records
from processes import LIMIT_S

from mpc_rr.agents.outcome import State
from mpc_rr.errors import BrokerError, InputError
from mpc_rr.network import mqtt
from mpc_rr.network.address import BrokerUrl
from mpc_rr.network.mqtt import MqttConnection
from mpc_rr.randomness import SystemRandomness
from mpc_rr.running import run_study

pytestmark = pytest.mark.broker
SIZES = (2, 3)
RECORDS = random_records(5, SIZES, seed=8)


def self_signed_certificate(folder):
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = dt.datetime.now(dt.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), False
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), True)
        .sign(key, hashes.SHA256())
    )
    (folder / "cert.pem").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    (folder / "key.pem").write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )


def assert_study_runs_at(url):
    outcome = run_study(make_scenario(RECORDS, SIZES, **PATIENT), broker=url).outcome
    assert_tables(outcome.result.tables, crosstabs(RECORDS, SIZES))


# paho leaves the socket of a failed TLS handshake to the garbage collector, which warns.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_tls(start_mosquitto, tmp_path):
    self_signed_certificate(tmp_path)
    lines = f"allow_anonymous true\ncertfile {tmp_path}/cert.pem\nkeyfile {tmp_path}/key.pem"
    _, url = start_mosquitto(lines)
    address = f"mqtts://127.0.0.1:{url.port}"
    assert_study_runs_at(BrokerUrl.parse(address, tmp_path / "cert.pem"))
    with pytest.raises(BrokerError, match="certificate verify failed"):
        run_study(make_scenario(RECORDS, SIZES), broker=BrokerUrl.parse(address))
    gc.collect()
    with pytest.raises(InputError, match="does not exist"):
        BrokerUrl.parse(address, tmp_path / "none.pem")


def test_user_and_password(start_mosquitto, tmp_path):
    passwords = tmp_path / "passwords"
    subprocess.run(["mosquitto_passwd", "-b", "-c", str(passwords), "ann", "s3cret/@"], check=True)
    _, url = start_mosquitto(f"allow_anonymous false\npassword_file {passwords}")
    assert_study_runs_at(BrokerUrl.parse(f"mqtt://ann:s3cret%2F%40@127.0.0.1:{url.port}"))
    for wrong in ("mqtt://ann:guess@", "mqtt://"):
        with pytest.raises(BrokerError, match="refused the user name or password"):
            run_study(
                make_scenario(RECORDS, SIZES),
                broker=BrokerUrl.parse(f"{wrong}127.0.0.1:{url.port}"),
            )


def test_access_rules_that_forbid_our_topics_are_told(start_mosquitto, tmp_path):
    rules = tmp_path / "acl"
    rules.write_text("topic read nothing/#\n")
    _, url = start_mosquitto(f"allow_anonymous true\nacl_file {rules}")
    scenario = make_scenario(RECORDS, SIZES, lobby_s=1, round_s=1)
    try:
        cause = run_study(scenario, broker=url).outcome.cause
    except BrokerError as error:
        cause = str(error)
    # Newer versions refuse the subscription; version 2.0 grants it and delivers nothing.
    assert "does not let us subscribe" in cause or "only 0 of 5 parties" in cause


def test_a_study_survives_a_broker_that_restarts(start_mosquitto, monkeypatch, asked_again_soon):
    """Killed in the lobby and again in the rounds, without persistence: all queues are lost."""
    server, url = start_mosquitto()
    sizes = (5, 5, 5)
    records = random_records(24, sizes, seed=2)
    missed, restarts = threading.Event(), {}
    no_answer = MqttConnection._no_answer

    def noticed(*args):
        missed.set()
        return no_answer(*args)

    def come_back():
        assert missed.wait(LIMIT_S), "nobody tries to connect"
        server.start()

    @contextlib.contextmanager
    def watch(coordinator):
        accept = coordinator.mailbox.accept

        def accept_and_lose(raw):
            accept(raw)
            state = coordinator.progress.state
            if state in {State.LOBBY, State.ROUNDS} - restarts.keys():
                server.stop()
                missed.clear()
                restarts[state] = threading.Thread(target=come_back)
                restarts[state].start()

        coordinator.mailbox.accept = accept_and_lose
        yield

    monkeypatch.setattr(MqttConnection, "_no_answer", noticed)
    result = run_study(make_scenario(records, sizes, **PATIENT), broker=url, watch=watch)
    for restart in restarts.values():
        restart.join()
    assert list(restarts) == [State.LOBBY, State.ROUNDS]
    assert_tables(result.outcome.result.tables, crosstabs(records, sizes))
    for counts in result.parties.values():
        assert_tables(counts.tables, crosstabs(records, sizes))


async def test_a_broker_that_never_comes_back_is_told(start_mosquitto, monkeypatch):
    monkeypatch.setattr(mqtt, "RECONNECT_S", 0.5)
    server, url = start_mosquitto()
    connection = MqttConnection(url, "test", SystemRandomness(), size_limit=1000, coordinator=False)
    async with connection.open():
        end = connection.attach("party")
        server.stop()
        with pytest.raises(BrokerError, match="was lost and did not come back"):
            await end.recv()
        with pytest.raises(BrokerError, match="was lost"):
            await end.send("coordinator", b"x")


@pytest.mark.parametrize(
    "text", ["localhost:1883", "http://host:1", "mqtt://", "mqtt://host:port", "mqtt://host:99999"]
)
def test_a_bad_address_is_told(text):
    with pytest.raises(InputError, match="must look like"):
        BrokerUrl.parse(text)


def test_an_address_has_sensible_ports():
    assert BrokerUrl.parse("mqtt://host").port == 1883
    assert BrokerUrl.parse("mqtts://host").port == 8883
