"""What the coordinator says first is heard: nobody has to ask for it."""

import asyncio

import msgspec
import pytest
from anonymizing import IN_GROUPS, MASKED, PEOPLE
from anonymizing import make_study as make_anonymizing
from helpers import Tapped, make_study, random_records, simulate

from mpc_rr.agents.party import COORDINATOR_SILENT_S, Party
from mpc_rr.agents.roster import run_id, session_name
from mpc_rr.agents.terms import Terms
from mpc_rr.crypto.admission import SigningKey
from mpc_rr.crypto.identity import Identity
from mpc_rr.errors import Refused
from mpc_rr.network.envelope import (
    COORDINATOR,
    EVERYONE,
    LOBBY_SESSION,
    WIRE_VERSION,
    Again,
    Header,
)
from mpc_rr.network.lifecycle import Invitation
from mpc_rr.network.memory import MemoryNetwork
from mpc_rr.network.sealed import write
from mpc_rr.protocols.block_aggregation import NOT_NEEDED, BlockAggregation, Question
from mpc_rr.protocols.exact_pairs import ExactPairs
from mpc_rr.protocols.lambda_randomization import LambdaRandomization
from mpc_rr.protocols.rr_clusters import RRClusters
from mpc_rr.protocols.rr_each_attribute import RREachAttribute
from mpc_rr.protocols.rr_independent import RRIndependent
from mpc_rr.protocols.rr_joint import RRJoint
from mpc_rr.protocols.rr_pairs import RRPairs
from mpc_rr.protocols.rr_views import RRViews
from mpc_rr.randomness import SeededRandomness
from mpc_rr.simulation.clock import run_virtual
from mpc_rr.study.file import party_names

SIZES = (2, 3, 2)
N = 12
RECORDS = random_records(N, SIZES, seed=3)
PROTOCOLS = {
    "blocks": BlockAggregation(p=0.5, floor=0.2, block=4),
    "independent": RRIndependent(keep=0.6),
    "joint": RRJoint(epsilon=3.0),
    "views": RRViews(epsilon=2.0),
    "lambda": LambdaRandomization(beta=0.6),
    "pairs": RRPairs(keep=0.6),
    "clusters": RRClusters(keep=0.6, dependence=RREachAttribute(keep=0.6)),
    "clusters by exact": RRClusters(keep=0.6, dependence=ExactPairs()),
    "exact": ExactPairs(),
    "masked": ExactPairs(sum="masked_sum"),
    "noisy": ExactPairs(noise_epsilon=2.0),
}
STUDIES = {
    name: (make_study(N, SIZES, protocol=protocol, round_s=3600.0), RECORDS)
    for name, protocol in PROTOCOLS.items()
} | {
    "groups": (make_anonymizing(IN_GROUPS, round_s=3600.0), PEOPLE),
    "masks": (make_anonymizing(MASKED, round_s=3600.0), PEOPLE),
}


class Overtaking(Tapped):
    """What is for one party overtakes what is for all: brokers keep order within a topic only."""

    def carry(self, sender, target, raw):
        if target != EVERYONE:
            super().carry(sender, target, raw)
            return
        later = asyncio.get_running_loop().call_later
        later(0.005, super().carry, sender, target, raw)


def asked(network):
    """Which steps were asked for again."""
    return [
        msgspec.msgpack.decode(envelope.body, type=Again).at_step
        for envelope in network.envelopes
        if envelope.header.step == Again.step
    ]


@pytest.mark.parametrize("carrier", [Tapped, Overtaking])
@pytest.mark.parametrize("name", STUDIES)
def test_where_nothing_is_lost_nobody_asks_again(name, carrier):
    """A party once threw away what came before it was ready, and asked a tenth of a round later."""
    network, (study, records) = carrier(), STUDIES[name]
    outcome, _ = simulate(study, records, seed=5, network=network)
    assert outcome.result is not None, outcome.cause
    assert asked(network) == []


def test_passes_come_with_the_roster_also_where_one_has_left_and_it_begins_again():
    """Both are sent in one go; and the second roster interrupts who is in the first's session."""
    registrar = SigningKey.draw(SeededRandomness(1))
    study = make_study(N, SIZES, protocol=ExactPairs(), minimum=N - 1, round_s=3600.0)
    study = msgspec.structs.replace(study, registrar=registrar.public.hex())

    class Admitted(Party):
        def __init__(self, study, name, *args):
            key = SigningKey.draw(SeededRandomness(name.encode()))
            admission = key, registrar.admit(study.digest, key.public)
            super().__init__(study, name, *args, terms=Terms(admission=admission))

    class Leaving(Admitted):
        async def _protocol_run(self, session):
            raise Refused("it has thought better of it")

    network, leaver = Tapped(), party_names(N)[3]
    outcome, _ = simulate(
        study, RECORDS, party=Admitted, parties={leaver: Leaving}, network=network
    )
    assert outcome.result is not None, outcome.cause
    assert outcome.attempts == 2
    assert asked(network) == []


def test_what_an_earlier_coordinator_asked_first_is_not_taken_for_its_successor_s():
    """Its question may have come before it could say that the study begins."""
    study = make_study(N, SIZES, protocol=PROTOCOLS["blocks"])
    party = Party(study, "ann", RECORDS[0], MemoryNetwork().attach("ann"), SeededRandomness(7))
    box, session = party.mailbox, session_name(1)

    def gets(boss, session, message=None):
        invitation = Invitation(boss.public, study.digest, bytes(16), box.identity.public.digest)
        said = message or invitation
        header = Header(
            WIRE_VERSION, study.name, run_id(invitation), session, said.step, COORDINATOR, "ann"
        )
        box.accept(write(header, said, boss))

    async def main():
        first, second = (Identity(SeededRandomness(seed)) for seed in (1, 2))
        gets(first, LOBBY_SESSION)
        gets(first, session, Question(1, 0, ()))
        await asyncio.sleep(COORDINATOR_SILENT_S + 1)
        gets(second, LOBBY_SESSION)
        assert box.keys[COORDINATOR] == second.public
        gets(second, session, NOT_NEEDED)
        taken = await box.collect(session, Question.step, (COORDINATOR,), 1.0, before_news=True)
        return taken[COORDINATOR].message(Question)

    assert run_virtual(main()) == NOT_NEEDED
    assert not box.rejected
