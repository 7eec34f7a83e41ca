"""What the paper's secure sum costs: 100 parties, Adult's eight attributes (1,582 cells).

In one run, on one machine, it measures

* the whole study over the embedded broker, from the first hello to the verdict;
* floor (a): the same messages, byte for byte in number and size, published and received with bare
  aiomqtt on the same broker;
* floor (b): the same HPKE and Ed25519 operations, in number and size, in a tight loop;

and the study's time as a ratio to each. Aim: at most 2 times the larger floor.

Profile (cProfile, 100 parties over MQTT): Ed25519 verification is half of the time (every party
checks every other party's roster digest, share, partial sum and confirmation: 4 n² of them), HPKE
and signing a fifth, adding vectors and drawing shares a tenth. Two findings were worth mending:
without TCP_NODELAY each acknowledged message waited 40 ms for a delayed TCP acknowledgement; and
asyncio printed the repr of the finished study, with all its tables, for 2 s.
"""

import asyncio
import functools
import socket
import time
from collections import Counter

import aiomqtt

from benchmarks.harness.rows import measured
from benchmarks.harness.studies import random_people, scenario_of, schema_of
from mpc_rr.crypto import hpke, identity
from mpc_rr.network.broker import embedded_broker
from mpc_rr.network.rights import draw_mailbox
from mpc_rr.protocols.exact_pairs import ExactPairs
from mpc_rr.randomness import SystemRandomness
from mpc_rr.running import run_study
from mpc_rr.study.definition import Deadlines
from mpc_rr.study.file import Scenario

LARGER = "larger floor"
ADULT_SIZES = (9, 16, 7, 15, 6, 5, 2, 2)


def scenario(parties: int) -> Scenario:
    people = random_people(ADULT_SIZES, parties)
    deadlines = Deadlines(300.0, 300.0)
    protocol = ExactPairs(sum="secure_sum")
    return scenario_of(schema_of(ADULT_SIZES), protocol, people, deadlines=deadlines)


class Operations:
    """Counts the cryptographic operations of a run by kind and size."""

    def __init__(self):
        self.counts = Counter()
        self._originals = {}

    def __enter__(self):
        self._wrap(identity.Identity, "sign", len)
        self._wrap(identity.Identity, "open", lambda sealed, _info: len(sealed))
        self._original_verified = identity._verified
        identity._verified = functools.lru_cache(maxsize=identity.SIGNATURES_KEPT)(self._verified)
        self._wrap(identity.Identity, "seal", lambda _reader, plaintext, _info: len(plaintext))
        return self

    def _verified(self, signing, signature, data):
        """What was verified before in this process is not verified again, nor counted."""
        self.counts["verify", len(data)] += 1
        return self._original_verified(signing, signature, data)

    def _wrap(self, owner, name, size):
        original = self._originals[owner, name] = getattr(owner, name)

        def counted(this, *args, **kwargs):
            self.counts[name, size(*args, *kwargs.values())] += 1
            return original(this, *args, **kwargs)

        setattr(owner, name, counted)

    def __exit__(self, *_):
        identity._verified = self._original_verified
        for (owner, name), original in self._originals.items():
            setattr(owner, name, original)


def crypto_floor(counts: Counter) -> float:
    """The same operations on data of the same sizes, in a tight loop."""
    me = identity.Identity(SystemRandomness())
    prepared = []
    for (name, size), count in counts.items():
        data = SystemRandomness().bytes(size)
        if name == "sign":
            prepared.append((count, me.sign, (data,)))
        elif name == "verify":
            verify = identity._verifier(me.public.signing).verify
            prepared.append((count, verify, (me.sign(data), data)))
        elif name == "seal":
            prepared.append((count, me.seal, (me.public.sealing, data, b"info")))
        else:
            overhead = hpke.SEALING_OVERHEAD_BYTES
            sealed = me.seal(me.public.sealing, data[overhead:], b"info")
            prepared.append((count, me.open, (sealed, b"info")))
    started = time.perf_counter()
    for count, operation, args in prepared:
        for _ in range(count):
            operation(*args)
    return time.perf_counter() - started


def messages_of(outcome):
    """Sizes of all messages, upwards and downwards, as the coordinator counted them."""
    up, down = [], []
    for traffic in outcome.traffic.values():
        if traffic.messages_up:
            up += [traffic.bytes_up // traffic.messages_up] * traffic.messages_up
        if traffic.messages_down:
            down += [traffic.bytes_down // traffic.messages_down] * traffic.messages_down
    return up, down


async def broker_floor(url, up, down) -> float:
    """Two bare aiomqtt clients, as in the study; QoS 1, 64 in flight, the same socket options."""
    mailbox = draw_mailbox(SystemRandomness())
    user, password = url.login(mailbox)
    up_topic, down_topic = f"mpc_rr/floor/coordinator/{mailbox}", "mpc_rr/floor/all"
    options = {
        "username": user,
        "password": password,
        "socket_options": [(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)],
    }
    async with (
        aiomqtt.Client(url.host, url.port, **options) as above,
        aiomqtt.Client(url.host, url.port, **options) as below,
    ):
        for client, topic in ((above, up_topic), (below, down_topic)):
            client.pending_calls_threshold = 1000
            await client.subscribe(topic, qos=1)
        payloads = {size: bytes(size) for size in {*up, *down}}

        async def publish(client, topic, sizes):
            window = asyncio.Semaphore(64)

            async def one(size):
                async with window:
                    await client.publish(topic, payloads[size], qos=1)

            await asyncio.gather(*map(one, sizes))

        async def receive(client, count):
            for _ in range(count):
                await anext(client.messages)

        started = time.perf_counter()
        await asyncio.gather(publish(below, up_topic, up), receive(above, len(up)))
        await asyncio.gather(publish(above, down_topic, down), receive(below, len(down)))
        return time.perf_counter() - started


def once(parties: int) -> tuple[float, float, float, dict]:
    """Seconds of the study, of bare messages, of bare cryptography; and how many there were."""
    with embedded_broker() as broker:
        url = broker.coordinator
        with Operations() as operations:
            started = time.perf_counter()
            result = run_study(scenario(parties), broker=url)
            study_s = time.perf_counter() - started
        outcome = result.outcome
        assert outcome.result is not None, outcome.cause
        up, down = messages_of(outcome)
        broker_s = asyncio.run(broker_floor(url, up, down))
        crypto_s = crypto_floor(operations.counts)
    kinds = Counter()
    for (name, _), count in operations.counts.items():
        kinds[name] += count
    return (
        study_s,
        broker_s,
        crypto_s,
        {
            "cells": sum(table.size for table in outcome.result.tables),
            "messages": len(up) + len(down),
            "bytes": sum(up) + sum(down),
            "bytes_up_per_party": round(sum(up) / parties),
            "operations": dict(kinds),
        },
    )


def add_options(parser):
    parser.add_argument("--parties", type=int, default=100)
    parser.add_argument("--runs", type=int, default=3)


def measure(run):
    runs = [once(run.options.parties) for _ in range(run.options.runs)]
    study, bare, crypto, counts = zip(*runs, strict=True)
    what, setting = "time of a secure sum", {"parties": run.options.parties}
    larger = [max(floors) for floors in zip(bare, crypto, strict=True)]
    yield measured(what, setting, study, larger, unit="s", beside=LARGER, aim=2.0,
                   better="lower", details=counts[0])  # fmt: skip
    for name, floor in (("bare messages", bare), ("bare cryptography", crypto)):
        yield measured(f"{what}, beside {name}", setting, study, floor, unit="s", beside=name)
