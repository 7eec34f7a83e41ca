"""What a client may not do at a broker with rights, it cannot, whatever it tries."""

import asyncio
import contextlib
import json
import socket

import aiomqtt
import paho.mqtt.client as paho
import pytest
import ready_brokers
from helpers import PATIENT, assert_tables, crosstabs, make_study, random_records
from processes import LIMIT_S
from ready_brokers import client

from mpc_rr.crypto.nkeys import Kind, NKey
from mpc_rr.network.broker import embedded_broker
from mpc_rr.network.rights import Invitation, draw_mailbox
from mpc_rr.randomness import SystemRandomness
from mpc_rr.running import coordinate_study, take_part

pytestmark = pytest.mark.broker
SIZES = (2, 3)
STUDY = "mpc_rr/test-study"
READ_BY_NOBODY = [
    "#", "+/#", "mpc_rr/#", "mpc_rr/+/#", "mpc_rr/*/box/*/*", "mpc_rr/>", f"{STUDY}/box/+/+",
    f"{STUDY}/box/#", f"{STUDY}/box/*/*", f"{STUDY}/box/>", "$SYS/#", "$SYS/REQ/+", "$JS/#",
    "$JS/API/#", "$MQTT/#", "$MQTT/+/#", "$MQTT/sub/#", "$MQTT/sub/+", "$MQTT/sub/*", "$MQTT.sub.*",
    "$MQTT/msgs/#", "$MQTT/deliver/#", "+/sub/#", "_INBOX/#",
]  # fmt: skip
WRITTEN_BY_NOBODY = [
    "$JS/API/STREAM/DELETE/$MQTT_msgs", "$JS/API/STREAM/PURGE/$MQTT_msgs",
    "$JS/API/STREAM/DELETE/$MQTT_sess", "$MQTT/sub/x", "$MQTT/msgs/mpc_rr.test-study.all",
    "$SYS/REQ/SERVER/PING", "mpc_rr/test-study", f"{STUDY}/coordinator",
]  # fmt: skip


def needs_mosquitto(name):
    if name == "mosquitto" and ready_brokers.shutil.which("mosquitto_passwd") is None:
        pytest.skip("mosquitto is not installed (apt-get install mosquitto)")


@pytest.fixture(params=["embedded", "cluster", "mosquitto", "nats"])
def addresses(request, tmp_path):
    needs_mosquitto(request.param)
    with getattr(ready_brokers, request.param)(tmp_path) as addresses:
        yield addresses


class Agent:
    """An honest agent: it listens, and keeps what it hears."""

    def __init__(self, url, mailbox, *filters):
        self.client, self.mailbox, self.filters = client(url, mailbox), mailbox, filters
        self.heard = []

    async def __aenter__(self):
        await self.client.__aenter__()
        await self.client.subscribe([(one, 1) for one in self.filters])
        return self

    async def __aexit__(self, *error):
        await self.client.__aexit__(*error)

    async def hears(self, payload):
        """Listen until this has come."""
        async with asyncio.timeout(LIMIT_S):
            while payload not in self.heard:
                self.heard.append((await anext(self.client.messages)).payload)


@contextlib.asynccontextmanager
async def honest_agents(addresses):
    """A coordinator and a party whose mailboxes nobody else knows."""
    above, below = (draw_mailbox(SystemRandomness()) for _ in range(2))
    async with (
        Agent(addresses.coordinator, above, f"{STUDY}/coordinator/#") as coordinator,
        Agent(addresses.parties, below, f"{STUDY}/all", f"{STUDY}/box/{below}/+") as party,
    ):
        yield coordinator, party


def will(url, topic, payload):
    """Connect with a last will, and vanish."""
    mailbox = draw_mailbox(SystemRandomness())
    dying = paho.Client(paho.CallbackAPIVersion.VERSION2, mailbox)
    dying.username_pw_set(*url.login(mailbox))
    if (context := url.tls_context()) is not None:
        dying.tls_set_context(context)
    dying.will_set(topic.replace("OWN", mailbox), payload, qos=1)
    dying.connect(url.host, url.port)
    while not dying.is_connected():
        dying.loop(1.0)
    dying.socket().close()


async def attack(addresses, url, others):
    """Try everything with the rights of one address; ``others`` is what this role may not, too."""
    async with honest_agents(addresses) as (coordinator, party):
        own = draw_mailbox(SystemRandomness())
        reads = [*READ_BY_NOBODY, f"{STUDY}/box/{party.mailbox}/+", *others["reads"]]
        writes = [*WRITTEN_BY_NOBODY, f"{STUDY}/coordinator/{party.mailbox}", *others["writes"]]
        writes = [topic.replace("VICTIM", party.mailbox) for topic in writes]
        async with Agent(url, own, f"{STUDY}/box/{own}/+") as mallory:
            codes = []
            for topic in reads:
                for qos in (0, 1, 2):
                    with contextlib.suppress(aiomqtt.MqttCodeError):
                        codes += await mallory.client.subscribe(topic, qos=qos)
            for topic in writes:
                for qos in (0, 1):
                    await mallory.client.publish(topic, b"forged", qos=qos)
            # What is in order comes through, and after all that is not.
            up = f"{STUDY}/coordinator/{party.mailbox}"
            await party.client.publish(up, b"from the party", qos=1)
            await coordinator.hears(b"from the party")
            await mallory.client.publish(f"{STUDY}/coordinator/{own}", b"mine", qos=1)
            await coordinator.hears(b"mine")
            for topic in (f"{STUDY}/box/{party.mailbox}/eve", f"{STUDY}/all"):
                await coordinator.client.publish(topic, b"true " + topic.encode(), qos=1)
                await party.hears(b"true " + topic.encode())
            await coordinator.client.publish(f"{STUDY}/box/{own}/x", b"for mallory", qos=1)
            await mallory.hears(b"for mallory")
            # mosquitto grants every subscription, and then delivers what the client may read.
            secret = {f"true {STUDY}/box/{party.mailbox}/eve".encode(), *others["hears"]}
            assert not secret & set(mallory.heard)
        for topic in writes:
            await asyncio.to_thread(will, url, topic, b"forged")
        await asyncio.to_thread(will, url, f"{STUDY}/coordinator/OWN", b"last words")
        await coordinator.hears(b"last words")
        for topic in writes:
            with contextlib.suppress(aiomqtt.MqttError):  # some end the connection
                async with client(url) as retaining:
                    await retaining.publish(topic, b"forged", qos=0, retain=True)
        await coordinator.client.publish(f"{STUDY}/all", b"the end", qos=1)
        await party.hears(b"the end")
        async with honest_agents(addresses) as (late_coordinator, late_party):
            await late_party.client.publish(
                f"{STUDY}/coordinator/{late_party.mailbox}", b"late", qos=1
            )
            await late_coordinator.hears(b"late")
            for agent in (coordinator, party, late_coordinator, late_party):
                assert b"forged" not in agent.heard
        return codes


PARTY_MAY_NOT = {
    "hears": [b"from the party"],
    "reads": [f"{STUDY}/coordinator/#", f"{STUDY}/coordinator/+", "mpc_rr/+/coordinator/+"],
    "writes": [f"{STUDY}/all", f"{STUDY}/box/VICTIM/eve", f"{STUDY}/box/VICTIM/="],
}
COORDINATOR_MAY_NOT = {"hears": [], "reads": [], "writes": []}


async def test_a_study_goes_on_while_somebody_with_a_partys_rights_tries_everything(addresses):
    records = random_records(4, SIZES, seed=3)
    study = make_study(4, SIZES, **PATIENT)
    people = {f"party-{k}": record for k, record in enumerate(records)}

    async def after_the_attack():
        codes = await attack(addresses, addresses.parties, PARTY_MAY_NOT)
        last = dict([people.popitem()])
        return codes, await take_part(study, addresses.parties, last)

    first = dict(list(people.items())[:3])
    result, _, (codes, _) = await asyncio.gather(
        coordinate_study(study, addresses.coordinator),
        take_part(study, addresses.parties, first),
        after_the_attack(),
    )
    assert_tables(result.outcome.result.tables, crosstabs(records, SIZES))
    if addresses.parties.user == "party-invitation":  # mosquitto grants, and delivers nothing
        assert {int(getattr(code, "value", code)) for code in codes} == {128}


async def test_a_coordinators_address_reads_and_forges_nothing_of_parties(addresses):
    codes = await attack(addresses, addresses.coordinator, COORDINATOR_MAY_NOT)
    if addresses.parties.user == "party-invitation":
        assert {int(getattr(code, "value", code)) for code in codes} == {128}


# ── Tokens that somebody with an invitation makes for herself ──────────────────────────────────


def token(invitation, name, **claims):
    seed, _, account = invitation.partition(".")
    user = NKey.draw(Kind.USER, SystemRandomness()).public
    claims = {"type": "user", "issuer_account": account} | claims
    return NKey.from_seed(seed).token(user, name, claims)


def with_token(url, password):
    return aiomqtt.Client(
        url.host, url.port, username="x", password=password, identifier="mallory", timeout=LIMIT_S
    )


@pytest.mark.parametrize("name", ["*", ">", "*.*", ".*", ".>", "x.*", "", "{{name()}}", "x *"])
async def test_no_name_makes_a_token_hold_for_other_mailboxes(name):
    """NATS takes a user's name as it is: * alone would stand for everybody's mailbox."""
    with embedded_broker() as broker:
        async with honest_agents(broker) as (coordinator, party):
            async with with_token(broker.parties, token(broker.parties.password, name)) as mallory:
                for topic in (f"{STUDY}/box/{party.mailbox}/+", f"{STUDY}/box/+/+"):
                    codes = await mallory.subscribe(topic, qos=1)
                    assert [int(getattr(code, "value", code)) for code in codes] == [128]
                topic = f"{STUDY}/coordinator/{party.mailbox}"
                await mallory.publish(topic, b"forged", qos=1)
            await party.client.publish(topic, b"true", qos=1)
            await coordinator.hears(b"true")
            assert coordinator.heard == [b"true"]


@pytest.mark.parametrize("claims", [
    {"pub": {"allow": [">"]}, "sub": {"allow": [">"]}},
    {"bearer_token": True, "subs": -1, "data": -1, "payload": -1},
    {"allowed_connection_types": ["STANDARD", "MQTT"]},
])  # fmt: skip
async def test_a_token_with_rights_of_its_own_is_refused(claims):
    with (
        embedded_broker() as broker,
        pytest.raises(aiomqtt.MqttError, match=r"Not authorized|code:5"),
    ):
        async with with_token(broker.parties, token(broker.parties.password, "x", **claims)):
            pass


async def test_one_connection_cannot_have_many_subscriptions():
    with embedded_broker() as broker:
        async with client(broker.parties) as greedy, honest_agents(broker) as (coordinator, party):
            for number in range(50):
                codes = await greedy.subscribe(f"mpc_rr/study-{number}/all", qos=1)
                if int(getattr(codes[0], "value", codes[0])) == 128:
                    break
            assert number == 8
            await coordinator.client.publish(f"{STUDY}/all", b"still there", qos=1)
            await party.hears(b"still there")


def test_mqtt_is_the_only_way_in(tmp_path):
    """By NATS' own protocol a party could read what the server hands to all others."""
    port = ready_brokers.free_port()
    with ready_brokers.nats(tmp_path, port) as addresses:
        for url in (addresses.parties, addresses.coordinator):
            own = Invitation.parse(url.password).token("mx", SystemRandomness())
            with socket.create_connection(("127.0.0.1", port), timeout=LIMIT_S) as line:
                connect = json.dumps({"jwt": own, "verbose": True})
                line.sendall(f"CONNECT {connect}\r\nSUB $MQTT.sub.* 1\r\nPING\r\n".encode())
                said = b""
                while b"PONG" not in said and (more := line.recv(4096)):
                    said += more
                assert b"Authorization Violation" in said
                assert b"+OK" not in said


async def test_nothing_is_taken_with_qos_2(addresses):
    """It would be kept until it is released, also of sessions that somebody leaves behind."""
    mailbox = draw_mailbox(SystemRandomness())

    async def listen(own):
        async for _ in own.messages:
            pass

    with contextlib.suppress(aiomqtt.MqttError):  # of leaving what was cut
        async with client(addresses.parties, mailbox) as own:
            tasks = [
                asyncio.create_task(one)
                for one in (
                    own.publish(f"{STUDY}/coordinator/{mailbox}", b"two", qos=2),
                    listen(own),
                )
            ]
            done, _ = await asyncio.wait(
                tasks, timeout=LIMIT_S, return_when=asyncio.FIRST_COMPLETED
            )
            for task in tasks:
                task.cancel()
    assert [type(task.exception()) for task in done] == [aiomqtt.MqttError] * len(done) != []
