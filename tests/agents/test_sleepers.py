"""Whoever sleeps through a part of a study: it answers nobody, pays nothing, and is told so."""

import asyncio
from types import SimpleNamespace

import msgspec
import pytest
from helpers import make_scenario, make_study, random_records, simulate

from mpc_rr.agents.account import Account
from mpc_rr.agents.coordinator import Coordinator
from mpc_rr.agents.host import run_parties
from mpc_rr.agents.party import Party
from mpc_rr.agents.terms import Terms
from mpc_rr.errors import Aborted, Refused
from mpc_rr.network.envelope import COORDINATOR, EVERYONE, Again
from mpc_rr.network.mailbox import Mailbox
from mpc_rr.network.memory import MemoryNetwork, MemoryTransport
from mpc_rr.protocols.rr_clusters import RRClusters
from mpc_rr.protocols.rr_each_attribute import RREachAttribute
from mpc_rr.protocols.rr_independent import RRIndependent
from mpc_rr.publication.reports import MAY_BE_MISSING
from mpc_rr.publication.whole import NO_VERDICT, published
from mpc_rr.randomness import SeededRandomness
from mpc_rr.running import run_study
from mpc_rr.simulation.clock import run_virtual
from mpc_rr.simulation.faults import Faults, PartyFault

SIZES = (2, 3)
STUDY = make_study(5, SIZES, minimum=4, protocol=RRIndependent(keep=0.5), round_s=10)
CLUSTERS = RRClusters(keep=0.5, dependence=RREachAttribute(keep=0.5))


def step(name):
    """How a step stands in the header of a message."""
    return msgspec.msgpack.encode(name)


class Sleeper(MemoryTransport):
    """A carrier whose process is stopped as a message comes, and wakes some seconds later.

    All that came meanwhile is there then, and is handed over one by one, as a socket is read; or
    it is lost, as the connection was.
    """

    async def recv(self):
        arrival = await super().recv()
        if self.wakes_at is None and step(self.sleeps_at) in arrival.raw:
            self.wakes_at = asyncio.get_running_loop().time() + self.sleeps_s
            await asyncio.sleep(self.sleeps_s)
            if self.loses:
                while not self.inbox.empty():
                    self.inbox.get_nowait()
                arrival = await super().recv()
        for _ in range(5):
            await asyncio.sleep(0)
        return arrival

    async def send(self, target, raw):
        self.sent.append(raw)
        await super().send(target, raw)

    @property
    def behind(self):
        return not self.inbox.empty()


def play(protocol, sleeps_at, *, sleeps_s=25, loses=False, away=()):
    """A study in which the first party sleeps: the outcome, its end, what it sent, its ledger."""
    study = make_study(5, SIZES, minimum=4, protocol=protocol, round_s=10)
    account = Account()

    async def main():
        net, rng = MemoryNetwork(), SeededRandomness(0)
        boss = Coordinator(study, net.attach(COORDINATOR), rng.fork("coordinator"))
        parties = []
        for k, record in enumerate(random_records(5, SIZES), 1):
            end, terms = net.attach(f"party-{k}"), None
            if k == 1:
                end.__class__, terms = Sleeper, Terms(account=account)
                end.sleeps_at, end.sleeps_s, end.loses = sleeps_at, sleeps_s, loses
                end.wakes_at, end.sent = None, sent
            elif f"party-{k}" in away:
                end.__class__ = Sleeper
                end.sleeps_at, end.sleeps_s, end.loses = sleeps_at, 1000, False
                end.wakes_at, end.sent = None, []
            parties.append(Party(study, f"party-{k}", record, end, rng.fork(str(k)), terms=terms))
        return await asyncio.gather(boss.run(), run_parties(parties))

    sent = []
    outcome, ends = run_virtual(main())
    return outcome, ends["party-1"], sent, account


def answers(sent, name):
    return [raw for raw in sent if step(name) in raw and step("again") not in raw]


@pytest.mark.parametrize(("sleeps_s", "loses"), [(25, False), (14, True)])
def test_who_slept_through_a_study_answers_nothing_and_pays_nothing(sleeps_s, loses):
    """Once the opening woke it before it had read the verdict: it answered, paid, said "Done"."""
    outcome, end, sent, account = play(
        RRIndependent(keep=0.5), "opening", sleeps_s=sleeps_s, loses=loses
    )
    assert outcome.result.n == 4
    assert isinstance(end, Refused)
    assert str(end) == "the study ended without this party, before it could answer"
    assert not answers(sent, "answer")
    assert not account.participations


@pytest.mark.parametrize("loses", [False, True])
def test_who_sleeps_between_two_rounds_does_not_answer_the_second(loses):
    outcome, end, sent, _ = play(CLUSTERS, "reported_pairs", sleeps_s=14, loses=loses)
    assert outcome.result.n == 4
    assert isinstance(end, Refused)
    assert "nothing more of its record was sent" in str(end)
    assert answers(sent, "first_answer")
    assert not answers(sent, "answer")


def test_who_wakes_when_the_study_has_failed_answers_nothing():
    outcome, end, sent, account = play(RRIndependent(keep=0.5), "opening", away=("party-2",))
    assert outcome.result is None
    assert isinstance(end, Aborted)
    assert not answers(sent, "answer")
    assert not account.participations


def test_who_sleeps_only_when_it_has_answered_has_what_it_missed():
    outcome, end, _, _ = play(RRIndependent(keep=0.5), "answers_taken", sleeps_s=5, loses=True)
    assert outcome.result.n == 5
    assert end.n == 5
    assert end.digest == outcome.result.digest


def test_who_hears_no_verdict_says_that_it_is_not_known_how_the_study_ended():
    """Once it said "Done", and where the estimates are, though the coordinator had died."""

    class Dies(Coordinator):
        async def _conclude(self, verdict, result, members):
            await asyncio.sleep(1000)

    study = make_study(4, SIZES, protocol=RRIndependent(keep=0.5))
    _, ends = simulate(study, random_records(4, SIZES), coordinator=Dies)
    for end in ends.values():
        assert end.without_verdict
        made = published(end, study.setting, study.protocol)
        assert not any("result folder" in finding.text for finding in made.findings)
        assert NO_VERDICT in [note.text for note in made.notes if note.severity == "warning"]


def test_where_not_all_are_counted_a_party_says_that_its_answer_may_not_be():
    faults = Faults(silent=(PartyFault("party-5", "answer"),))
    records = random_records(5, SIZES)
    scenario = make_scenario(records, SIZES, faults=faults, minimum=4, protocol=STUDY.protocol)
    run = run_study(scenario, transport="memory", seed=0)
    assert run.outcome.result.n == 4
    made = published(run.parties["party-1"], STUDY.setting, STUDY.protocol)
    assert MAY_BE_MISSING in [note.text for note in made.notes]


def test_when_the_study_is_over_nobody_is_given_what_would_let_her_begin():
    """The verdict comes first, and may still be the one that is lost."""
    opening, result = ("1", "opening", EVERYONE), ("1/rr_independent", "answers", EVERYONE)
    coordinator = SimpleNamespace(
        _sent={opening: b"opening", result: b"result"}, verdict=b"over", session_root="1"
    )

    def given(session, step):
        asked = Again(session, step)
        return list(Mailbox._answers_to(coordinator, asked, "ann").values())  # noqa: SLF001

    assert given(*opening[:2]) == [b"over"]
    assert given(*result[:2]) == [b"over", b"result"]
