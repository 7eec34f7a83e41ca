"""Block aggregation over the embedded broker, against bare publishing of the same messages.

The records are sampled from a Bayesian network if --data is where survey.bif is, else uniform ones
of six attributes. The floor: aiomqtt publishes and receives as many messages of the same size as
the study sent (questions, answers, admissions), over the same broker, eight at a time, and does
nothing else.

Processor time in memory, without a broker, is measured at several numbers of parties, so that one
sees whether it grows faster than they do: in blocks of 100, and client by client (block = 1).

Profile (2,000 parties, one process): three quarters are the lobby and the envelopes (signing,
verifying, sealing nothing), a twentieth the tables of 32 blocks.
"""

import asyncio
import time

import aiomqtt

from benchmarks.harness.rows import measured
from benchmarks.harness.studies import random_people, scenario_of, schema_of
from mpc_rr.network.broker import embedded_broker
from mpc_rr.network.rights import draw_mailbox
from mpc_rr.protocols.block_aggregation import BlockAggregation
from mpc_rr.randomness import SeededRandomness, SystemRandomness
from mpc_rr.running import run_study
from mpc_rr.study.bif import read_bif

IN_FLIGHT = 8
SIZES = (3, 2, 2, 2, 2, 3)


GROWING = (
    (100, 2, None, (3000, 10_000)),
    (1, 2, 0.01, (500, 1500)),
    (1, 3, None, (500, 1500)),
)
"""Blocks, attributes together, `enough` (never reached), and how many parties."""


def scenario(data, parties):
    if data is None:
        schema = schema_of(SIZES)
        people = random_people(SIZES, parties)
    else:
        network = read_bif(data)
        schema, codes = network.schema, network.sample(parties, SeededRandomness(1).uniform)
        people = [tuple(row) for row in codes.tolist()]
    protocol = BlockAggregation(p=0.5, floor=0.5, block=250)
    return scenario_of(schema, protocol, people, minimum=parties)


async def bare(url, messages, size):
    """Seconds to publish and receive so many messages of one size."""
    payload = bytes(size)
    mailbox = draw_mailbox(SystemRandomness())
    user, password = url.login(mailbox)
    options = {"username": user, "password": password}
    async with aiomqtt.Client(url.host, url.port, **options) as reader:
        await reader.subscribe("mpc_rr/bare/coordinator/#", qos=1)
        async with aiomqtt.Client(url.host, url.port, **options) as writer:
            started = time.perf_counter()
            window = asyncio.Semaphore(IN_FLIGHT)

            async def send():
                async with window:
                    await writer.publish(f"mpc_rr/bare/coordinator/{mailbox}", payload, qos=1)

            async def receive():
                count = 0
                async for _ in reader.messages:
                    count += 1
                    if count == messages:
                        return

            await asyncio.gather(receive(), *(send() for _ in range(messages)))
            return time.perf_counter() - started


def once(planned):
    """Seconds of the study and of bare publishing, and how many messages there were."""
    with embedded_broker() as broker:
        url = broker.coordinator
        started = time.perf_counter()
        outcome = run_study(planned, broker=url).outcome
        seconds = time.perf_counter() - started
        assert outcome.result is not None, outcome.cause
        traffic = outcome.traffic.values()
        messages = sum(t.messages_up + t.messages_down for t in traffic)
        size = sum(t.bytes_up + t.bytes_down for t in traffic) // messages
        floor = asyncio.run(bare(url, messages, size))
    answered = outcome.result.n
    return seconds, floor, {"answered": answered, "messages": messages, "bytes_a_message": size}


def processor_seconds(parties, protocol):
    """Of a study in memory, publishing included."""
    planned = scenario_of(
        schema_of(SIZES), protocol, random_people(SIZES, parties), minimum=parties
    )
    started = time.process_time()
    result = run_study(planned, transport="memory", seed=1).outcome.result
    result.publish(planned.study.setting)
    return time.process_time() - started


def growth():
    """How much more than its share of time the larger of two studies takes."""
    for block, together, enough, (few, many) in GROWING:
        protocol = BlockAggregation(p=0.5, floor=0.5, block=block, together=together, enough=enough)
        small, large = (processor_seconds(parties, protocol) for parties in (few, many))
        setting = {"parties": many, "block": block, "together": together, "enough": enough}
        yield measured("processor time of a study by blocks in memory", setting, [large],
                       [small * many / few], unit="s", beside=f"linear from {few:,} parties",
                       better="lower")  # fmt: skip


def add_options(parser):
    parser.add_argument("--parties", type=int, default=8000)
    parser.add_argument("--runs", type=int, default=1)


def measure(run):
    data = None if run.options.data is None else run.data("survey.bif")
    planned = scenario(data, run.options.parties)
    yield from growth()
    runs = [once(planned) for _ in range(run.options.runs)]
    study, floor, more = zip(*runs, strict=True)
    setting = {"parties": run.options.parties, "blocks": run.options.parties // 250}
    yield measured("time of a study by blocks", setting, study, floor, unit="s",
                   beside="bare publishing", better="lower", details=more[0])  # fmt: skip
