"""Simulated studies in which a broker damages messages, or one agent signs changed ones."""

import asyncio
import functools
from collections import Counter, defaultdict
from contextlib import suppress
from dataclasses import dataclass, field

import anonymizing
import msgspec
from helpers import assert_tables, crosstabs, make_study, random_records
from mutating import changed_bytes, changed_msgpack, leaves

from mpc_rr.agents.coordinator import Coordinator
from mpc_rr.agents.host import run_parties
from mpc_rr.agents.party import Party
from mpc_rr.errors import InternalError, Misconduct, MpcRrError
from mpc_rr.network.envelope import COORDINATOR, Envelope, SignedEnvelope, encode
from mpc_rr.network.mailbox import Mailbox
from mpc_rr.network.memory import MemoryNetwork
from mpc_rr.network.sealed import write
from mpc_rr.protocols.block_aggregation import BlockAggregation
from mpc_rr.protocols.exact_pairs import ExactPairs
from mpc_rr.protocols.rr_clusters import RRClusters
from mpc_rr.protocols.rr_each_attribute import RREachAttribute
from mpc_rr.protocols.rr_views import RRViews
from mpc_rr.randomness import SeededRandomness
from mpc_rr.simulation.clock import run_virtual
from mpc_rr.study.file import party_names

LAST_S = 600.0
"""Of virtual time: by then every study here has come to an end, however often it begins anew."""
INPUT_STEPS = {"share", "partial", "confided_partial", "masked_vector", "confided_vector"}
"""A changed message of these may be one that another record would have given."""
WORD_STEPS = {"sum_done", "published_tables"}
"""In these the coordinator says what only it can know."""


def _counting(n, sizes, protocol, **study):
    given = make_study(n, sizes, minimum=n - 2, round_s=5, protocol=protocol, **study)
    return given, random_records(n, sizes, seed=9)


CLUSTERS = RRClusters(keep=0.6, dependence=RREachAttribute(keep=0.6), least_dependence=0.0)
STUDIES = {
    "secure sum": _counting(5, (2, 3), ExactPairs(sum="secure_sum")),
    "masked sum": _counting(7, (2, 3), ExactPairs(sum="masked_sum")),
    "suppressed": _counting(5, (2, 3), ExactPairs(sum="secure_sum", suppress_below=2)),
    "rr_views": _counting(8, (2, 3, 2), RRViews(epsilon=2.0)),
    "rr_clusters": _counting(8, (2, 3, 2), CLUSTERS),
    "block_aggregation": _counting(12, (2, 3, 2), BlockAggregation(p=0.5, floor=0.4, block=4)),
    "k-anonymity": (anonymizing.make_study(anonymizing.IN_GROUPS), anonymizing.PEOPLE),
    "masking": (anonymizing.make_study(anonymizing.MASKED), anonymizing.PEOPLE),
}
EXACT = ("secure sum", "masked sum")


@dataclass
class Run:
    """How a simulated study ended, and the agents that took part."""

    outcome: object
    ends: dict
    mailboxes: list
    seconds: float


def _simulate(study, records, *, network=None, liar=None, mailbox=Mailbox):
    mailboxes = []

    def keep(agent, name):
        mailboxes.append(agent.mailbox)
        if liar in (name, "everybody"):
            agent.mailbox.__class__ = mailbox
        return agent

    async def main():
        net = network or MemoryNetwork()
        rng = SeededRandomness(1)
        boss = Coordinator(study, net.attach(COORDINATOR), rng.fork(COORDINATOR))
        parties = [
            keep(Party(study, name, record, net.attach(name), rng.fork(name)), name)
            for name, record in zip(party_names(len(records)), records, strict=True)
        ]
        both = await asyncio.gather(keep(boss, COORDINATOR).run(), run_parties(parties))
        return *both, asyncio.get_running_loop().time()

    outcome, ends, seconds = run_virtual(main())
    return Run(outcome, ends, mailboxes, seconds)


# ── What everybody says in an honest run ───────────────────────────────────────────────────────


@dataclass
class Said:
    """Who writes what, in an honest run of a study."""

    places: dict = field(default_factory=lambda: defaultdict(list))
    """By agent: the (session, step, target) of all its messages, in their order."""
    pools: dict = field(default_factory=lambda: defaultdict(list))
    """By step: everything that stands in somebody's message."""


@functools.cache
def honest(name):
    """An honest run of a study, and what was said in it."""
    said = Said()

    class Heard(Mailbox):
        def write(self, session, step, target, message):
            said.places[self.me].append((session, step, target))
            said.pools[step].extend(leaves(msgspec.msgpack.decode(encode(message))))
            return super().write(session, step, target, message)

    run = _simulate(*STUDIES[name], liar="everybody", mailbox=Heard)
    assert run.outcome.result is not None, run.outcome.cause
    return run, said


# ── A member or the coordinator lies ───────────────────────────────────────────────────────────


def _resigned(rng, raw, mailbox, pool):
    """A signed envelope with another header or body, signed by whose mailbox this is."""
    try:
        envelope = msgspec.msgpack.decode(
            msgspec.msgpack.decode(raw, type=SignedEnvelope).envelope, type=Envelope
        )
        header = envelope.header
        if rng.random() < 0.3:
            fields = msgspec.msgpack.decode(changed_msgpack(rng, encode(header)))
            header = msgspec.convert(fields, type(header))
            return write(header, msgspec.Raw(envelope.body), mailbox.identity)
        body = changed_msgpack(rng, envelope.body, pool)
        return write(header, msgspec.Raw(body), mailbox.identity)
    except (msgspec.MsgspecError, ValueError, KeyError):
        return changed_bytes(rng, raw)


def _changed_body(rng, body, mailbox, pool):
    """Another body; where it holds signed envelopes, perhaps one of these is changed instead."""
    with suppress(msgspec.MsgspecError, ValueError):
        tree = msgspec.msgpack.decode(body)
        tables = [t for t in tree if isinstance(t, dict)] if isinstance(tree, list) else []
        inside = [(t, k) for t in tables for k, v in t.items() if isinstance(v, bytes)]
        if inside and rng.random() < 0.6:
            table, key = rng.choice(inside)
            table[key] = _resigned(rng, table[key], mailbox, pool)
            return msgspec.msgpack.encode(tree)
    return changed_msgpack(rng, body, pool)


def _lying(rng, place, said, told):
    """A mailbox that says something else in one place; ``told`` gets what."""
    where, when = place
    met = Counter()

    class Lying(Mailbox):
        def write(self, session, step, target, message):
            met[session, step, target] += 1
            if (session, step, target) != where or (when and met[where] != when):
                return super().write(session, step, target, message)
            body = encode(message)
            for _ in range(rng.choice((1, 1, 1, 2, 3))):
                body = _changed_body(rng, body, self, said.pools[step])
            told.append(body)
            sealed = getattr(message, "sealed", False)
            reader = self.keys[target] if sealed else None
            header = self.header(session, step, target)
            return write(header, msgspec.Raw(body), self.identity, reader)

    return Lying


def play_liar(rng, case):
    """One agent sends something else in one place of an honest run."""
    name = rng.choice(list(STUDIES))
    liar = COORDINATOR if rng.random() < 0.4 else None
    case.about = f"{name}, {'coordinator' if liar else 'member'}"
    before, said = honest(name)
    liar = liar or rng.choice(list(before.ends))
    steps = sorted({step for _, step, _ in said.places[liar]})
    step = rng.choice(steps)
    where = rng.choice([place for place in said.places[liar] if place[1] == step])
    told = []
    case.input = f"{liar} at {where}"
    mailbox = _lying(rng, (where, rng.choice((0, 1))), said, told)
    try:
        run = _simulate(*STUDIES[name], liar=liar, mailbox=mailbox)
        _check_ends(run, liar)
        if liar == COORDINATOR:
            _check_parties_against(run, name, step)
        else:
            _check_coordinator_against(run, name, liar, step)
    finally:
        case.input += f" said {[body.hex() for body in told]}"[:4000]


def _check_ends(run, liar):
    assert run.seconds < LAST_S, f"it took {run.seconds} s"
    for mailbox in run.mailboxes:
        if mailbox.me != liar:
            assert not mailbox.rejected["internal error"], f"an internal error at {mailbox.me}"
    for party, end in run.ends.items():
        if party != liar and isinstance(end, MpcRrError):
            assert not isinstance(end, InternalError), f"{end}: {end.__cause__!r}"
            assert str(end), f"{party} gives no reason"
    if liar != COORDINATOR:
        assert run.outcome.result is not None or run.outcome.cause, "no reason is given"
        own = run.outcome.fault is None or isinstance(run.outcome.fault, MpcRrError)
        assert own, f"{run.outcome.cause}: {run.outcome.fault!r}"


def _check_coordinator_against(run, name, liar, step):
    """An honest coordinator, and a member that lies."""
    outcome = run.outcome
    named = {*outcome.culprits, *(e.name for e in outcome.excluded)}
    if outcome.result is not None:
        named |= set(outcome.result.lost)
    assert not named or liar in named, f"named: {sorted(named)} ({outcome.cause})"
    others = {party: end for party, end in run.ends.items() if party != liar}
    if outcome.result is None:
        got = [party for party, end in others.items() if not isinstance(end, MpcRrError)]
        assert not got, f"{got} have a result, the coordinator has none"
        return
    for party, end in others.items():
        assert not isinstance(end, MpcRrError), f"{party} has no result: {end}"
        assert end.digest == outcome.result.digest, f"{party} has another result"
    if name in EXACT and step not in INPUT_STEPS:
        _assert_counted(outcome.result, name, _there(outcome))


def _there(outcome):
    """Those who are counted: only the coordinator knows whom it lost on the way."""
    lost = () if outcome.result is None else outcome.result.lost
    return [party for party in outcome.members if party not in lost]


def _assert_counted(result, name, counted):
    study, records = STUDIES[name]
    by_name = dict(zip(party_names(len(records)), records, strict=True))
    sizes = tuple(attribute.size for attribute in study.schema.attributes)
    assert_tables(result.tables, crosstabs([by_name[party] for party in counted], sizes))


def _check_parties_against(run, name, step):
    """Honest parties, and a coordinator that lies."""
    results = {p: end for p, end in run.ends.items() if not isinstance(end, MpcRrError)}
    for party, end in run.ends.items():
        if isinstance(end, Misconduct) and end.culprits:
            assert COORDINATOR in end.culprits, f"{party} blames {end.culprits}: {end}"
    digests = {end.digest for end in results.values()}
    study, _ = STUDIES[name]
    if study.needs_roster:
        assert len(digests) < 2, "parties hold different results"
    if name in EXACT and step not in WORD_STEPS:
        for end in results.values():
            _assert_counted(end, name, _there(run.outcome))


# ── A broker that lies ─────────────────────────────────────────────────────────────────────────


class Mangling(MemoryNetwork):
    """Damages some messages on their way, repeats others, and invents some from what it saw."""

    def __init__(self, rng, rate):
        super().__init__()
        self._rng, self._rate, self._seen, self.log = rng, rate, [], []
        self._damaged = set()

    def carry(self, sender, target, raw):
        rng = self._rng
        self._seen.append((sender, target, raw))
        while rng.random() < self._rate:
            _, there, other = rng.choice(self._seen)
            there = rng.choice((target, there))
            self._invent(sender, there, rng.choice((self._damage(other), other)))
        if rng.random() < self._rate and raw not in self._damaged:
            self._damaged.add(raw)  # whoever asks again gets it
            self._invent(sender, target, self._damage(raw))
        else:
            super().carry(sender, target, raw)

    def _invent(self, sender, target, raw):
        self.log.append(f"{target} {raw.hex()[:400]}")
        super().carry(sender, target, raw)

    def _damage(self, raw):
        rng = self._rng
        signed = msgspec.msgpack.decode(raw, type=SignedEnvelope)
        match rng.randrange(4):
            case 0:
                return changed_bytes(rng, raw)
            case 1:
                return encode(SignedEnvelope(changed_msgpack(rng, signed.envelope), b"\1" * 64))
            case 2:
                changed = changed_bytes(rng, signed.signature)
                return encode(SignedEnvelope(signed.envelope, changed))
        return encode(SignedEnvelope(changed_msgpack(rng, signed.envelope), signed.signature))


def play_broker(rng, case):
    """A study on a broker that damages messages: it ends as it does on a good one."""
    name = rng.choice(list(STUDIES))
    case.about = name
    network = Mangling(rng, rng.choice((0.02, 0.1, 0.3)))
    try:
        run = _simulate(*STUDIES[name], network=network)
        _check_ends(run, None)
        _check_same(run, honest(name)[0], name)
    finally:
        case.input = "; ".join(network.log)[:4000]


def _check_same(run, before, name):
    """Nobody is blamed, nobody is lost, and where nothing depends on the order, all is the same."""
    outcome = run.outcome
    assert outcome.result is not None, outcome.cause
    assert not outcome.excluded, f"excluded: {outcome.excluded}"
    assert not outcome.result.lost, f"lost: {outcome.result.lost}"
    for party, end in run.ends.items():
        assert not isinstance(end, MpcRrError), f"{party}: {end}"
    if name in EXACT:
        assert outcome.result.digest == before.outcome.result.digest
