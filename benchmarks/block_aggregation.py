"""Block aggregation over the embedded broker, against bare publishing of the same messages.

    python benchmarks/block_aggregation.py [--data survey.bif] [--parties 8000] [--out FILE.json]

``--data``: a Bayesian network from which the records are sampled; uniform records of six attributes
without it. The floor: aiomqtt publishes and receives as many messages of the same size as the study
sent (questions, answers, admissions), over the same broker, eight at a time, and does nothing else.

Profile (2,000 parties, one process): three quarters are the lobby and the envelopes (signing,
verifying, sealing nothing), a twentieth the tables of 32 blocks.
"""

import argparse
import asyncio
import json
import time
from pathlib import Path

import aiomqtt
import numpy as np

from mpc_rr.network.broker import embedded_broker
from mpc_rr.network.rights import draw_mailbox
from mpc_rr.protocols.block_aggregation import BlockAggregation
from mpc_rr.randomness import SeededRandomness, SystemRandomness
from mpc_rr.running import run_study
from mpc_rr.schema import Attribute, Schema
from mpc_rr.simulation.faults import Faults
from mpc_rr.study.bif import read_bif
from mpc_rr.study.definition import Deadlines, Parties, Study
from mpc_rr.study.file import Scenario

IN_FLIGHT = 8


class Given(Scenario, frozen=True):
    people: tuple = ()

    def records(self):
        return list(self.people)


def scenario(data, parties):
    if data is None:
        sizes = (3, 2, 2, 2, 2, 3)
        schema = Schema(tuple(
            Attribute(f"a{k}", "nominal", tuple(map(str, range(s)))) for k, s in enumerate(sizes)
        ))  # fmt: skip
        codes = np.random.default_rng(1).integers(0, sizes, size=(parties, len(sizes)))
    else:
        network = read_bif(data)
        schema, codes = network.schema, network.sample(parties, SeededRandomness(1).uniform)
    study = Study(
        name="blocks",
        title="Blocks",
        description="",
        schema=schema,
        protocol=BlockAggregation(p=0.5, floor=0.5, block=250),
        parties=Parties(parties, parties),
        deadlines=Deadlines(3600.0, 3600.0),
    )
    people = tuple(tuple(row) for row in codes.tolist())
    return Given(Path("blocks"), study, None, None, Faults(), 0, people)


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


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path)
    parser.add_argument("--parties", type=int, default=8000)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    planned = scenario(options.data, options.parties)
    with embedded_broker() as broker:
        url = broker.coordinator
        started = time.perf_counter()
        outcome = run_study(planned, broker=url).outcome
        seconds = time.perf_counter() - started
        assert outcome.result is not None, outcome.cause
        traffic = outcome.traffic.values()
        messages = sum(t.messages_up + t.messages_down for t in traffic)
        carried = sum(t.bytes_up + t.bytes_down for t in traffic)
        floor = asyncio.run(bare(url, messages, carried // messages))
    row = {
        "parties": options.parties,
        "answered": outcome.result.n,
        "blocks": options.parties // 250,
        "messages": messages,
        "bytes_a_message": carried // messages,
        "study_s": round(seconds, 1),
        "bare_publishing_s": round(floor, 1),
        "ratio": round(seconds / floor, 2),
    }
    print(json.dumps(row))
    if options.out is not None:
        options.out.write_text(json.dumps([row], indent=2) + "\n")


if __name__ == "__main__":
    main()
