"""The anonymous channel against the HPKE operations it cannot do without, in one run.

The floor: every sender seals its message to two keys of each relay, every relay opens one layer of
each message, and the output is read once; all of it in a tight loop, one after the other, and
nothing else. Ours: the same inside a study over the embedded broker, from the relays' keys to the
opened messages: signed messages up and down, every sender looking for its own, all heads compared,
and the output read by every process (the coordinator's, and each host's for all its parties).

What the profile showed at 1,000 parties in one process: at first most of the time were signatures
checked again by each party, then half was hashing and decoding the same blocks for each party, then
a tenth each was probing the relays' keys by each party and cutting the output into messages to see
that its size was right. All of it is now done once for all parties of a host. What is left is the
HPKE itself (half), signing and verifying 2,000 messages (a fifth), and asyncio.
"""

import asyncio
import time
from pathlib import Path

import msgspec

from benchmarks.harness.rows import measured
from mpc_rr.crypto.identity import Identity
from mpc_rr.crypto.onion import LayerKey, wrap
from mpc_rr.protocols import collaborative_k_anonymity as protocol
from mpc_rr.randomness import SystemRandomness
from mpc_rr.running import run_study
from mpc_rr.study.file import load_scenario

SCENARIO = Path(__file__).parent.parent / "scenarios" / "anonymous_survey.toml"
MESSAGE_BYTES = 24


def floor_s(parties, relays):
    """Seconds for the HPKE operations alone."""
    rng = SystemRandomness()
    route, final = ([LayerKey.draw(rng) for _ in range(relays)] for _ in range(2))
    infos, seal = [b"info"] * relays, Identity(rng).seal
    started = time.perf_counter()
    onions = []
    for _ in range(parties):
        sealed = wrap(bytes(MESSAGE_BYTES), [k.public for k in final], infos, seal)
        onions.append(wrap(sealed, [k.public for k in route], infos, seal))
    for key in route:
        onions = [key.peel(onion, b"info") for onion in onions]
    for key in final:
        onions = [key.peel(item, b"info") for item in onions]
    assert onions == [bytes(MESSAGE_BYTES)] * parties
    return time.perf_counter() - started


def mix_s(parties, relays, hosts):
    """Seconds of the mix in a study, and of the whole study."""
    scenario = load_scenario(SCENARIO)
    study = scenario.study
    options = msgspec.structs.replace(
        study.protocol, mix=msgspec.structs.replace(study.protocol.mix, relays=relays)
    )
    counts = msgspec.structs.replace(study.parties, count=parties, minimum=parties)
    study = msgspec.structs.replace(study, parties=counts, protocol=options)
    scenario = msgspec.structs.replace(scenario, study=study)
    honest, taken = protocol.mix_coordinator, []

    async def timed(*args):
        started = asyncio.get_running_loop().time()
        found = await honest(*args)
        taken.append(asyncio.get_running_loop().time() - started)
        return found

    protocol.mix_coordinator = timed
    started = time.perf_counter()
    try:
        outcome = run_study(scenario, transport="mqtt", hosts=hosts).outcome
    finally:
        protocol.mix_coordinator = honest
    assert outcome.result is not None, outcome.cause
    return taken[0], time.perf_counter() - started


def one_run(parties, relays, hosts):
    """Seconds of the mix, of the operations alone (before and after), and of the whole study."""
    before = floor_s(parties, relays)
    mix, whole = mix_s(parties, relays, hosts)
    return mix, (before + floor_s(parties, relays)) / 2, whole


def add_options(parser):
    parser.add_argument("--parties", type=int, default=1000)
    parser.add_argument("--relays", type=int, default=3)
    parser.add_argument("--runs", type=int, default=5)


def measure(run):
    parties, relays = run.options.parties, run.options.relays
    for hosts in (0, 2):
        runs = [one_run(parties, relays, hosts) for _ in range(run.options.runs)]
        mix, floor, whole = zip(*runs, strict=True)
        ratios = sorted(round(m / f, 2) for m, f in zip(mix, floor, strict=True))
        more = {"ratios": ratios, "whole_study_s": round(sum(whole) / len(whole), 1)}
        yield measured("time of the mix", {"parties": parties, "relays": relays, "hosts": hosts},
                       mix, floor, unit="s", beside="its HPKE operations alone", better="lower",
                       details=more)  # fmt: skip
