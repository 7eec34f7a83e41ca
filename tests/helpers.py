"""What many tests need: small studies, and running one in simulation with agents of our choice."""

import asyncio
import itertools
import tarfile
from pathlib import Path

import msgspec
import numpy as np

from mpc_rr.agents.coordinator import Coordinator
from mpc_rr.agents.host import run_parties
from mpc_rr.agents.outcome import Outcome
from mpc_rr.agents.party import Party
from mpc_rr.agents.pass_desk import PassDesk
from mpc_rr.network.envelope import COORDINATOR, Envelope, SignedEnvelope
from mpc_rr.network.lifecycle import ShowPass
from mpc_rr.network.mailbox import Mailbox
from mpc_rr.network.memory import MemoryNetwork
from mpc_rr.protocols.exact_pairs import ExactPairs
from mpc_rr.publication.ending import Setting
from mpc_rr.randomness import SeededRandomness
from mpc_rr.schema import Attribute, Schema
from mpc_rr.simulation.clock import run_virtual
from mpc_rr.simulation.faults import Faults
from mpc_rr.study.definition import Deadlines, Parties, Study
from mpc_rr.study.file import Scenario, party_names

PATIENT = {"lobby_s": 600.0, "round_s": 600.0}
"""Deadlines in real time, for the slowest machine: they cost nothing where everybody comes."""


def unpack(archive, folder):
    """Unpack one of our own archives; before 3.11.4 Python knew no filters."""
    with tarfile.open(archive) as opened:
        opened.extractall(folder, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))


def make_schema(sizes=(2, 3)):
    return Schema(
        tuple(
            Attribute(f"a{i}", "nominal", tuple(f"v{k}" for k in range(size)))
            for i, size in enumerate(sizes)
        )
    )


def make_study(
    n=4, sizes=(2, 3), *, minimum=None, lobby_s=30.0, round_s=10.0, name="test-study", protocol=None
):
    return Study(
        name=name,
        title="A test",
        description="",
        schema=make_schema(sizes),
        protocol=ExactPairs() if protocol is None else protocol,
        parties=Parties(n, minimum),
        deadlines=Deadlines(lobby_s, round_s),
    )


def setting(schema, parties, fewest=None, *, registrar=False, counted=None):
    """A study of so many parties, as its protocol sees it."""
    return Setting(
        study="s", schema=schema, expected=parties, parties=parties,
        fewest=parties if fewest is None else fewest, registrar=registrar, counted=counted,
    )  # fmt: skip


def make_scenario(records, sizes, *, faults=None, **study):
    return Scenario(
        path=Path("test.toml"),
        study=make_study(len(records), sizes, **study),
        csv=None,
        generator=None,
        faults=faults if faults is not None else Faults(),
        seed=0,
        given=tuple(records),
    )


def random_records(n, sizes, seed=0):
    rng = np.random.default_rng(seed)
    return [tuple(int(rng.integers(size)) for size in sizes) for _ in range(n)]


def crosstabs(records, sizes):
    """Numpy's own cross-tabulation of every pair of attributes."""
    data = np.asarray(records).reshape(len(records), len(sizes))
    tables = []
    for i, j in itertools.combinations(range(len(sizes)), 2):
        table = np.zeros((sizes[i], sizes[j]), dtype=np.int64)
        np.add.at(table, (data[:, i], data[:, j]), 1)
        tables.append(table)
    return tables


def assert_tables(found, expected):
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)


def simulate(
    study, records, *, seed=0, coordinator=Coordinator, party=Party, parties=None, network=None
) -> tuple[Outcome, dict]:
    """Run agents of the given classes in virtual time; ``parties`` overrides single ones."""

    async def main():
        net = network if network is not None else MemoryNetwork()
        rng = SeededRandomness(seed)
        boss = coordinator(study, net.attach(COORDINATOR), rng.fork("coordinator"))
        agents = [
            (parties or {}).get(name, party)(study, name, record, net.attach(name), rng.fork(name))
            for name, record in zip(party_names(len(records)), records, strict=True)
        ]
        return await asyncio.gather(boss.run(), run_parties(agents))

    outcome, ends = run_virtual(main())
    return outcome, ends


def with_mailbox(agent, mailbox):
    """An agent whose messages go through another mailbox."""

    class Changed(agent):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            self.mailbox.__class__ = mailbox

    return Changed


def telling(kind, change):
    """A mailbox that sends something else instead of messages of one kind."""

    class Telling(Mailbox):
        async def tell(self, session, target, message):
            if isinstance(message, kind):
                message = change(self, message)
            return await super().tell(session, target, message)

    return Telling


class Tapped(MemoryNetwork):
    """A network that keeps a copy of everything it carries."""

    def __init__(self):
        super().__init__()
        self.captured, self.envelopes = [], []

    def carry(self, sender, target, raw):
        signed = msgspec.msgpack.decode(raw, type=SignedEnvelope)
        self.captured.append((sender, target, raw))
        self.envelopes.append(msgspec.msgpack.decode(signed.envelope, type=Envelope))
        super().carry(sender, target, raw)


class LaxDesk(PassDesk):
    """A desk of a coordinator that lets one person in as often as she likes."""

    def __init__(self, *study):
        super().__init__(*study)
        self.shown = {}

    def show(self, opened, run):
        message = opened.message(ShowPass)
        self.shown[opened.envelope.header.sender, message.identity] = (message.shown, opened.raw)

    def lacks(self, name, identity):
        return (name, identity) not in self.shown

    def joined_as(self, name, identity):
        return None

    def shown_by(self, name, identity):
        return self.shown[name, identity][0]

    def raw(self, name, identity):
        return [self.shown[name, identity][1]]
