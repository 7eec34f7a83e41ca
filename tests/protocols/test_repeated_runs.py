"""What a second run of the same study could tell, and that parties with books do not let it."""

import asyncio

import msgspec
import pytest
from anonymizing import IN_GROUPS, MASKED, PEOPLE
from anonymizing import make_study as make_anonymized_study
from helpers import Tapped, make_study, random_records, setting

from mpc_rr.agents.account import Account
from mpc_rr.agents.coordinator import Coordinator
from mpc_rr.agents.host import run_parties
from mpc_rr.agents.party import Party
from mpc_rr.agents.terms import Terms
from mpc_rr.errors import Refused
from mpc_rr.network.envelope import COORDINATOR
from mpc_rr.network.memory import MemoryNetwork
from mpc_rr.protocols.block_aggregation import NOT_NEEDED, BlockAggregation
from mpc_rr.protocols.collection import AnswersTaken
from mpc_rr.protocols.rr_clusters import RRClusters
from mpc_rr.protocols.rr_pairs import RRPairs
from mpc_rr.randomness import SeededRandomness
from mpc_rr.simulation.clock import run_virtual
from mpc_rr.study.file import party_names

SIZES = (2, 3, 2)
N = 24
RECORDS = dict(zip(party_names(N), random_records(N, SIZES, seed=5), strict=True))


def run(study, records, books, seed, *, again=False, network=None):
    """A run in which everybody keeps books: how it ended, for the coordinator and for each."""
    network = MemoryNetwork() if network is None else network

    async def main():
        rng = SeededRandomness(seed)
        boss = Coordinator(study, network.attach(COORDINATOR), rng.fork(COORDINATOR))
        parties = [
            Party(study, name, record, network.attach(name), rng.fork(name),
                  terms=Terms(account=books.setdefault(name, Account()), again=again))
            for name, record in records.items()
        ]  # fmt: skip
        return await asyncio.gather(boss.run(), run_parties(parties))

    return run_virtual(main())


@pytest.mark.parametrize(
    "protocol",
    [
        RRPairs(epsilon=1.0),
        RRPairs(epsilon=1.0, sum="masked_sum"),
        RRClusters(keep=0.6, dependence=RRPairs(epsilon=1.0)),
    ],
    ids=["secure sum", "masked sum", "inside rr_clusters"],
)
def test_randomized_pairs_are_not_summed_again_without_somebody(protocol):
    """The difference of the two totals is what the one who is missing had reported."""
    study, books = make_study(N, SIZES, minimum=N - 4, protocol=protocol), {}
    first, _ = run(study, RECORDS, books, seed=1)
    assert first.result is not None
    others = {name: record for name, record in RECORDS.items() if name != "party-04"}
    second, ends = run(study, others, books, seed=2)
    assert second.result is None
    assert all(
        "the randomized answers of anyone who is in only one" in str(e) for e in ends.values()
    )
    assert second.members == ()  # they were asked before they joined
    third, _ = run(study, RECORDS, books, seed=3, again=True)
    assert third.result is not None


def test_a_coordinator_cannot_throw_the_dice_again_by_beginning_again(monkeypatch):
    """It ends the run when it has seen which relays come out, and calls everybody once more."""
    people = dict(zip(party_names(20), [(k % 4, 20 + k, 1000 * k) for k in range(20)], strict=True))
    study, books = make_anonymized_study(MASKED, count=20, minimum=14), {}

    async def dissatisfied(self, session, board, seed):
        raise Refused("a technical problem, please start again")

    with monkeypatch.context() as patched:
        patched.setattr("mpc_rr.protocols.collaborative_masking.CollaborativeMasking._serve_channel",
                        dissatisfied)  # fmt: skip
        first, _ = run(study, people, books, seed=1)
        assert "a technical problem" in first.cause
    second, ends = run(study, people, books, seed=2)
    assert second.result is None
    assert all("can choose among relays" in str(end) for end in ends.values())


EIGHT_PEOPLE = dict(zip(party_names(8), PEOPLE, strict=True))


@pytest.mark.parametrize(
    ("protocol", "told"),
    [(MASKED, "can choose among relays"), (IN_GROUPS, "join the next with values close to them")],
    ids=["masking", "groups"],
)
def test_a_second_run_is_refused_before_anything_is_sent(protocol, told):
    """Not even a hello: who joins and leaves then is seen to leave, and may end the study."""
    study, books, network = make_anonymized_study(protocol), {}, Tapped()
    first, _ = run(study, EIGHT_PEOPLE, books, seed=1)
    assert first.result is not None
    second, ends = run(study, EIGHT_PEOPLE, books, seed=2, network=network)
    assert second.result is None
    assert all(told in str(end) and "No part of your record" in str(end) for end in ends.values())
    assert {envelope.header.step for envelope in network.envelopes} <= {"lobby_news", "verdict"}
    third, _ = run(study, EIGHT_PEOPLE, books, seed=3, again=True)
    assert third.result is not None


class _NotNeeded(BlockAggregation, frozen=True, tag="block_aggregation"):
    """A coordinator that needs no answer from anybody, but says that all answered."""

    async def coordinator(self, session, schema):
        parties = len(session.parties)
        await session.hand_out(dict.fromkeys(session.parties, NOT_NEEDED))
        await session.announce(AnswersTaken(parties, parties, bytes(32)))
        raise Refused("a technical problem, please excuse us")


BLOCKS = BlockAggregation(p=0.25, floor=0.5, block=4, enough=0.01)
FOUR = dict(zip(party_names(4), [(1, 0), (0, 1), (1, 1), (0, 0)], strict=True))


class _Refunding(Coordinator):
    def __init__(self, study, *args):
        super().__init__(study, *args)
        self._protocol = _NotNeeded(**msgspec.structs.asdict(study.protocol))


def test_what_an_answer_has_cost_is_not_given_back_by_a_run_that_needs_none(monkeypatch):
    """Otherwise a budget never runs out: answer, refund, answer the next study, …"""
    planned = sum(e.cost for e in BLOCKS.disclosures(setting(make_study(4, (2, 2)).schema, 4)))
    books = {name: Account(1.01 * planned) for name in FOUR}
    study = make_study(4, (2, 2), protocol=BLOCKS)
    first, _ = run(study, FOUR, books, seed=1)
    assert first.result is not None
    spent = {name: account.ledger.spent for name, account in books.items()}
    assert min(spent.values()) > 0
    with monkeypatch.context() as patched:
        patched.setattr(f"{__name__}.Coordinator", _Refunding)
        run(study, FOUR, books, seed=2)
    assert {name: account.ledger.spent for name, account in books.items()} == spent
    other = make_study(4, (2, 2), protocol=BLOCKS, name="another")
    second, ends = run(other, FOUR, books, seed=3)
    assert second.result is None
    assert all("exceeds the budget" in str(end) for end in ends.values())


def test_who_was_not_needed_can_answer_an_honest_repetition():
    """Nobody is accused; and what it costs is checked against the budget again."""
    protocol = BlockAggregation(p=0.5, floor=0.5, block=8, enough=0.7)
    study, books = make_study(N, (2, 2), minimum=8, protocol=protocol), {}
    people = {name: record[:1] + record[2:] for name, record in RECORDS.items()}
    first, _ = run(study, people, books, seed=1)
    spared = first.result.not_asked
    assert spared
    assert all(books[name].ledger.spent == 0 for name in spared)
    # In the repetition only those are there who were spared.
    alone = {name: people[name] for name in spared}
    second, _ = run(study, alone, books, seed=2)
    assert second.result is not None, second.cause
    answered = [name for name in spared if name in second.result.answers]
    assert answered
    assert all(books[name].ledger.spent > 0 for name in answered)
