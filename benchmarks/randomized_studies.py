"""What a study with randomized answers costs when every record of Adult is a party of its own.

In one run, on one machine, over the embedded broker, for ``rr_independent`` (with the weights of
RR-Adjustment) and ``lambda_randomization``, it measures

* the whole study, from the first hello to the verdict, and the estimates that follow;
* floor (a): all the parties' cryptography in a loop: making keys, signing, verifying;
* floor (b): the same messages, in number and size, with bare aiomqtt on the same broker;

and the study's time as a ratio to (a) + (b). Aim: at most 3. --data: where adult.csv is.

Finding of the profile: with thousands of parties in one process, each asking again after five
seconds, all were busy repeating themselves and nobody got through (1,000 parties: 45 s instead of
16 s under the profiler). They now enter 200 at a time and ask again after a tenth of the deadline.
With 32,561 parties a round takes minutes; asking again every minute cost a third of the time.
"""

import asyncio
import resource
import time

from benchmarks.harness.rows import measured
from benchmarks.harness.studies import scenario_of, schema_of
from benchmarks.secure_sum import Operations, broker_floor, crypto_floor, messages_of
from mpc_rr.crypto.identity import Identity
from mpc_rr.network.broker import embedded_broker
from mpc_rr.protocols.lambda_randomization import LambdaRandomization
from mpc_rr.protocols.rr_independent import RRIndependent
from mpc_rr.randomness import SystemRandomness
from mpc_rr.reproduce.adult import MDRR_ATTRIBUTES, read_adult
from mpc_rr.running import run_study
from mpc_rr.study.definition import Deadlines


def scenario(records, parties, protocol):
    people = [tuple(row) for row in records.codes[:parties].tolist()]
    deadlines = Deadlines(3600.0, 1800.0)
    return scenario_of(
        schema_of(records.sizes, records.names), protocol, people, deadlines=deadlines
    )


def key_floor(parties):
    started = time.perf_counter()
    for _ in range(parties):
        _ = Identity(SystemRandomness()).public
    return time.perf_counter() - started


def once(records, parties, protocol):
    """Seconds of the study and of both floors together, and more."""
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
    return (
        study_s,
        crypto_s + broker_s,
        {
            "answered": outcome.result.n,
            "messages": len(up) + len(down),
            "bytes": sum(up) + sum(down),
            "estimation_s": round(estimation_s, 1),
            "crypto_s": round(crypto_s, 1),
            "bare_mqtt_s": round(broker_s, 1),
            "peak_memory_gb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6, 2),
        },
    )


def add_options(parser):
    parser.add_argument("--parties", type=int, help="all unless told")
    parser.add_argument("--runs", type=int, default=1)


def measure(run):
    records = read_adult(run.data("adult.csv"), MDRR_ATTRIBUTES)
    parties = run.options.parties or len(records.codes)
    for protocol in (RRIndependent(keep=0.5), LambdaRandomization(beta=0.8)):
        runs = [once(records, parties, protocol) for _ in range(run.options.runs)]
        study, floors, more = zip(*runs, strict=True)
        yield measured("time of a study", {"protocol": protocol.name, "parties": parties}, study,
                       floors, unit="s", beside="bare messages and cryptography", aim=3.0,
                       better="lower", details=more[0])  # fmt: skip
