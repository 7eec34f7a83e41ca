"""What a masked sum costs: all pairs of Adult's eight attributes (1,230 free cells), 5 % dropouts.

For each number of parties, in one run on one machine, it measures

* the whole study over the embedded broker, parties spread over ``--hosts`` processes, from when the
  last of these has said hello until the coordinator has told everybody the result; one party in
  twenty falls silent, a quarter of these at each of four steps, and each step waits for them
  (20 ms and what 8,000 messages a second take);
* the floor: the same number of key agreements, key derivations, mask expansions, Shamir splits and
  joins, and sealings, in a tight loop in this process (of 200 parties, times n/200);
* building the graph of a million parties;
* where installed (extra ``bench``): MPyC's sum of the same vector, and Flower's functions for the
  same steps of one client, as peers.

At n = 100 the ratio depends on that wait: with 50 ms instead of 20 it was 2.17 (2.03 to 2.31), and
8.3 when half a second was waited and the start of the processes counted too.
Small studies are run five times. Aims: at most 2 times the floor, growing linearly in n; at most
10 KB up per party at k = 48; at most 12 GiB.

Profile (cProfile, 1,000 parties, k = 40, one process): a third is X25519 (two agreements with each
neighbour), a tenth Ed25519, a third the broker's client and asyncio (13 messages a party), a tenth
Merkle proofs, masks and Shamir. What was worth mending: each party computed the digest of the study
and the tables of the announced total anew (2 ms a party); two tasks for each message published;
hellos sent twice.
"""

import contextlib
import importlib.util
import multiprocessing
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.harness.cost import processor_seconds
from benchmarks.harness.rows import Row, measured, rounded
from benchmarks.harness.studies import random_people, scenario_of, schema_of
from benchmarks.secure_sum import ADULT_SIZES
from mpc_rr.crypto import shamir
from mpc_rr.crypto.graph import HararyGraph
from mpc_rr.crypto.identity import Identity
from mpc_rr.crypto.pairwise import MaskKey, derive, lock, mask, seed_of, unlock
from mpc_rr.network.broker import embedded_broker
from mpc_rr.network.lifecycle import Hello
from mpc_rr.protocols.exact_pairs import ExactPairs
from mpc_rr.protocols.sums.masked.setup import MaskingOptions
from mpc_rr.randomness import SystemRandomness
from mpc_rr.running import run_study
from mpc_rr.simulation.faults import Faults, PartyFault
from mpc_rr.study.definition import Deadlines
from mpc_rr.study.file import party_names

try:
    from flwr.common.secure_aggregation.crypto import shamir as flower_shamir
    from flwr.common.secure_aggregation.crypto import symmetric_encryption as flower
    from flwr.common.secure_aggregation.secaggplus_utils import pseudo_rand_gen
    from flwr.supercore.primitives import asymmetric as flower_keys
except ImportError:
    flower = None

STEPS = ("die", "mask_shares", "masked_vector", "unmasking")
DROPOUT_SHARE = 0.05
SAMPLE = 200


def scenario(parties, coordinator):
    names = party_names(parties)
    gone = names[7 :: round(1 / DROPOUT_SHARE)]
    faults = Faults(
        silent=tuple(PartyFault(name, STEPS[k % len(STEPS)]) for k, name in enumerate(gone))
    )
    return scenario_of(
        schema_of(ADULT_SIZES),
        ExactPairs(sum="masked_sum", masking=MaskingOptions(coordinator=coordinator)),
        random_people(ADULT_SIZES, parties),
        minimum=round(0.9 * parties),
        deadlines=Deadlines(3600.0, 3600.0, stragglers_s=0.02 + parties / 8_000),
        faults=faults,
    )


def floor(degree, threshold, cells, bits, dropouts):
    """Seconds a party for its operations, and for the coordinator's on its behalf."""
    rng = SystemRandomness()
    others = [(MaskKey(rng).public, Identity(rng).public.sealing) for _ in range(degree)]
    started = time.perf_counter()
    for _ in range(SAMPLE):
        own, identity = MaskKey(rng), Identity(rng)
        seeds, seals = [], []
        for key, sealing in others:
            seeds.append(derive(own.shared_secret(key), b"pair mask", 16))
            seals.append(derive(identity.shared_secret(sealing), b"shares", 64))
        secrets = [shamir.random_secret(rng) for _ in range(2)]
        shares = [shamir.split(secret, threshold, degree, rng) for secret in secrets]
        parcels = [lock(k[:32], a + b) for k, a, b in zip(seals, *shares, strict=True)]
        for key, parcel in zip(seals, parcels, strict=True):
            unlock(key[:32], parcel)
        lock(secrets[1], b"".join(seeds))
        total = mask(seed_of(secrets[0]), cells, bits).copy()
        for seed in seeds:
            total += mask(seed, cells, bits)
        shamir._weights.cache_clear()
        shamir.join(dict(zip(range(1, threshold + 1), shares[0], strict=False)))
        total -= mask(seed_of(secrets[0]), cells, bits)
        for seed in seeds[: round(dropouts * degree)]:
            total -= mask(seed, cells, bits)
    return (time.perf_counter() - started) / SAMPLE


def peak_memory_gb():
    """The largest of this process, plus the largest child (a host) for each host."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


class Clock:
    """When a study was started, when a party of every host had said hello, and when it ended."""

    def __init__(self, names, hosts):
        processes = max(hosts, 1)
        self.host_of = {name: place % processes for place, name in enumerate(names)}
        self.awaited = set(range(processes))
        self.started = self.all_there = self.ended = time.perf_counter()

    @contextlib.contextmanager
    def watch(self, coordinator):
        handlers = coordinator.mailbox.open_handlers
        answer = handlers[Hello.step]

        def noting(opened):
            host = self.host_of[opened.envelope.header.sender]
            if host in self.awaited:
                self.awaited.remove(host)
                self.all_there = time.perf_counter()
            answer(opened)

        handlers[Hello.step] = noting
        yield
        self.ended = time.perf_counter()


def once(parties, hosts, coordinator):
    """Seconds of the study and of the floor, and what else was seen."""
    planned = scenario(parties, coordinator)
    study = planned.study
    plan = study.protocol.options_in(study.setting).plan(parties)
    cells, bits = 1230, parties.bit_length()
    with embedded_broker() as broker:
        url = broker.coordinator
        used, clock = processor_seconds(), Clock(planned.party_names(), hosts)
        result = run_study(planned, broker=url, hosts=hosts, watch=clock.watch)
        used = processor_seconds() - used
    study_s = clock.ended - clock.all_there
    outcome = result.outcome
    assert outcome.result is not None, outcome.cause
    gone = len([f for f in planned.faults.silent if f.step != "unmasking"])
    assert outcome.result.n == parties - gone, (outcome.result.n, gone)
    waited_s = sum(
        planned.study.deadlines.stragglers_s for step in STEPS if any(
            fault.step == step for fault in planned.faults.silent))  # fmt: skip
    up = sum(traffic.bytes_up for traffic in outcome.traffic.values())
    down = sum(traffic.bytes_down for traffic in outcome.traffic.values())
    party_s = floor(plan.degree, plan.threshold, cells, bits, DROPOUT_SHARE)
    children = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1e6
    return (
        study_s,
        party_s * parties,
        {
            "neighbours": plan.degree,
            "threshold": plan.threshold,
            "counted": outcome.result.n,
            "kb_up_per_party": round(up / parties / 1000, 2),
            "kb_down_per_party": round(down / parties / 1000, 2),
            "with_starting_processes_s": round(clock.ended - clock.started, 1),
            "of_which_waiting_for_dropouts_s": round(waited_s, 1),
            "cpu_s": round(used, 1),
            "peak_memory_gb": round(peak_memory_gb() + hosts * children, 2),
        },
    )


def studies(parties, hosts, coordinator):
    """Rows of one number of parties."""
    runs = [once(parties, hosts, coordinator) for _ in range(5 if parties <= 1000 else 1)]
    study, floors, more = zip(*runs, strict=True)
    setting = {"parties": parties, "coordinator": coordinator, "hosts": hosts}
    yield measured("time of a masked sum", setting, study, floors, unit="s", aim=2.0,
                   beside="its operations alone", better="lower", details=more[0])  # fmt: skip
    yield measured("KB up per party", setting, [m["kb_up_per_party"] for m in more],
                   aim=10.0, better="lower")  # fmt: skip
    yield Row(what="peak memory", setting=setting, unit="GB", aim=12.9, better="lower",
              value=max(m["peak_memory_gb"] for m in more))  # fmt: skip


def graph_row():
    """Building the graph of a million parties, against half of them: twice is linear."""
    seconds = {}
    for nodes in (500_000, 1_000_000):
        started = time.perf_counter()
        HararyGraph(nodes.to_bytes(32), nodes, 56).all_neighbours()
        seconds[nodes] = time.perf_counter() - started
    half, whole = seconds.values()
    return Row(
        what="time of building a graph", setting={"parties": 1_000_000, "neighbours": 56},
        value=rounded(whole), unit="s", beside="half as many", ratio=rounded(whole / half), runs=1,
        better="lower",
    )  # fmt: skip


def mpyc_sum(parties, cells=1230):
    """MPyC's sum of one such vector of each party, each a process, on this machine."""
    program = (
        "import time\nfrom mpyc.runtime import mpc\n"
        "async def main():\n"
        f"    secint = mpc.SecInt(32)\n    await mpc.start()\n    t = time.perf_counter()\n"
        f"    mine = [secint(k % 2) for k in range({cells})]\n"
        "    inputs = mpc.input(mine)\n"
        "    total = [mpc.sum(list(column)) for column in zip(*inputs)]\n"
        "    await mpc.output(total)\n"
        "    print('seconds', time.perf_counter() - t, flush=True)\n    await mpc.shutdown()\n"
        "mpc.run(main())\n"
    )
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "mpyc_sum.py"
        file.write_text(program)
        done = subprocess.run(
            [sys.executable, str(file), f"-M{parties}", "--no-log"],
            capture_output=True, text=True, timeout=300, check=True,
        )  # fmt: skip
    found = [line.split()[1] for line in done.stdout.splitlines() if line.startswith("seconds")]
    return Row(what="time of a sum of a peer", setting={"peer": "MPyC", "parties": parties},
               value=rounded(float(found[0])), unit="s", runs=1)  # fmt: skip


def flower_client(degree):
    """Flower's functions for one client of SecAgg+: keys, shares, sealing and masks."""
    keys = [flower_keys.generate_key_pairs() for _ in range(degree)]
    started = time.perf_counter()
    mine, sealing = flower_keys.generate_key_pairs(), flower_keys.generate_key_pairs()
    for secret in (bytes(32), flower_keys.private_key_to_bytes(mine[0])):
        flower_shamir.create_shares(secret, max(2, degree // 2), degree + 1)
    for _, public in keys:
        shared = flower.generate_shared_key(sealing[0], public)
        flower.decrypt(shared, flower.encrypt(shared, bytes(200)))
        seed = flower.generate_shared_key(mine[0], public)
        pseudo_rand_gen(seed, 1 << 16, [(1230,)])
    spent = rounded(1000 * (time.perf_counter() - started))
    return Row(what="time of one client of a peer", unit="ms", value=spent, runs=1,
               setting={"peer": "Flower", "neighbours": degree})  # fmt: skip


def peer_rows(run):
    if importlib.util.find_spec("mpyc") is None:
        run.tell("MPyC is left out: pip install -e '.[bench]'")
    else:
        yield from (mpyc_sum(parties) for parties in (7, 21))
    if flower is None:
        run.tell("Flower is left out: pip install -e '.[bench]'")
    else:
        yield flower_client(40)


def add_options(parser):
    parser.add_argument("--parties", type=int, nargs="+", default=[100, 1000, 10_000, 32_561])
    parser.add_argument("--hosts", type=int, default=multiprocessing.cpu_count())
    parser.add_argument(
        "--coordinator", choices=("malicious", "semi-honest"), default="semi-honest"
    )
    parser.add_argument("--no-peers", action="store_true")


def measure(run):
    for parties in run.options.parties:
        yield from studies(parties, run.options.hosts, run.options.coordinator)
    yield graph_row()  # last of ours: it takes memory
    if not run.options.no_peers:
        yield from peer_rows(run)
