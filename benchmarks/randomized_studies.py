"""What a study with randomized answers costs when every record of Adult is a party of its own.

Run ``python benchmarks/randomized_studies.py --data adult.csv [--parties N] [--out FILE.json]``. In
one run, on one machine, over the embedded broker, for ``rr_independent`` (with the weights of
RR-Adjustment) and ``lambda_randomization``, it measures

* the whole study, from the first hello to the verdict, and the estimates that follow;
* floor (a): all the parties' cryptography in a loop: making keys, signing, verifying;
* floor (b): the same messages, in number and size, with bare aiomqtt on the same broker;

and prints the study's time as a ratio to (a) + (b). Aim: at most 3.

Finding of the profile: with thousands of parties in one process, each asking again after five
seconds, all were busy repeating themselves and nobody got through (1,000 parties: 45 s instead of
16 s under the profiler). They now enter 200 at a time and ask again after a tenth of the deadline.
With 32,561 parties a round takes minutes; asking again every minute cost a third of the time.
"""

import argparse
import asyncio
import json
import resource
import time
from pathlib import Path

from secure_sum import Operations, broker_floor, crypto_floor, messages_of

from mpc_rr.crypto.identity import Identity
from mpc_rr.network.broker import embedded_broker
from mpc_rr.protocols.lambda_randomization import LambdaRandomization
from mpc_rr.protocols.rr_independent import RRIndependent
from mpc_rr.randomness import SystemRandomness
from mpc_rr.reproduce.adult import MDRR_ATTRIBUTES, read_adult
from mpc_rr.running import run_study
from mpc_rr.schema import Attribute, Schema
from mpc_rr.simulation.faults import Faults
from mpc_rr.study.definition import Deadlines, Parties, Study
from mpc_rr.study.file import Scenario


class GivenPeople(Scenario, frozen=True):
    """Parties with given records."""

    fixed: tuple = ()

    def records(self):
        return list(self.fixed)


def scenario(records, parties, protocol):
    attributes = tuple(
        Attribute(name, "nominal", tuple(map(str, range(size))))
        for name, size in zip(records.names, records.sizes, strict=True)
    )
    study = Study(
        name="benchmark",
        title="Benchmark",
        description="",
        schema=Schema(attributes),
        protocol=protocol,
        parties=Parties(parties),
        deadlines=Deadlines(3600.0, 1800.0),
    )
    people = tuple(map(tuple, records.codes[:parties].tolist()))
    return GivenPeople(Path("benchmark"), study, None, None, Faults(), 0, people)


def key_floor(parties):
    started = time.perf_counter()
    for _ in range(parties):
        _ = Identity(SystemRandomness()).public
    return time.perf_counter() - started


def measure(records, parties, protocol):
    with embedded_broker() as broker:
        url = broker.coordinator
        with Operations() as operations:
            started = time.perf_counter()
            result = run_study(scenario(records, parties, protocol), broker=url)
            study_s = time.perf_counter() - started
        outcome = result.outcome
        assert outcome.result is not None, outcome.cause
        started = time.perf_counter()
        assert result.publication.tables
        estimation_s = time.perf_counter() - started
        up, down = messages_of(outcome)
        broker_s = asyncio.run(broker_floor(url, up, down))
    crypto_s = crypto_floor(operations.counts) + key_floor(parties)
    return {
        "protocol": protocol.name,
        "parties": parties,
        "answered": outcome.result.n,
        "messages": len(up) + len(down),
        "bytes": sum(up) + sum(down),
        "study_s": round(study_s, 1),
        "estimation_s": round(estimation_s, 1),
        "crypto_s": round(crypto_s, 1),
        "bare_mqtt_s": round(broker_s, 1),
        "ratio_to_both_floors": round(study_s / (crypto_s + broker_s), 2),
        "peak_memory_gb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6, 2),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--data", type=Path, required=True, help="the Adult data as CSV")
    parser.add_argument("--parties", type=int)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    records = read_adult(arguments.data, MDRR_ATTRIBUTES)
    parties = arguments.parties or len(records.codes)
    rows = []
    for protocol in (RRIndependent(keep=0.5), LambdaRandomization(beta=0.8)):
        rows.append(measure(records, parties, protocol))
        print(json.dumps(rows[-1], indent=2), flush=True)
        if arguments.out is not None:
            arguments.out.write_text(json.dumps(rows, indent=2) + "\n")


if __name__ == "__main__":
    main()
