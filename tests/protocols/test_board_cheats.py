"""Respondents who cheat on the board: they alone are named, and the others go on."""

import msgspec
import numpy as np
import pytest
from anonymizing import EIGHT, IN_GROUPS, MASKED, NAMES, make_scenario, run
from helpers import Tapped, setting
from test_collaborative_k_anonymity import relays_of, telling, with_mailbox
from test_mix_cascade import FOUR_LESS, SEED

from mpc_rr.agents.party import Party
from mpc_rr.errors import MpcRrError
from mpc_rr.network.envelope import COORDINATOR, EVERYONE
from mpc_rr.network.lifecycle import ResultSeen, RosterSeen
from mpc_rr.network.mailbox import Mailbox
from mpc_rr.network.session import Gathered
from mpc_rr.network.session.live import LiveSession
from mpc_rr.protocols.board.commitment import Commitments, Openings
from mpc_rr.protocols.collaborative_k_anonymity import Agreed
from mpc_rr.protocols.mix.batch import Found, MixKeys, Onions, RelayKeys, Shuffled
from mpc_rr.running import run_study
from mpc_rr.study.file import party_names


def addressing(kind, target):
    """A mailbox that signs messages of a kind for somebody else than they are due to."""

    class Addressing(Mailbox):
        def write(self, session, step, meant_for, message):
            return super().write(
                session, step, target if isinstance(message, kind) else meant_for, message
            )

    return Addressing


def assert_only_lost(outcome, ends, liar):
    assert outcome.result is not None, outcome.cause
    assert set(outcome.result.lost) == {liar}
    failed = {name for name, end in ends.items() if isinstance(end, MpcRrError)}
    assert failed <= {liar}


@pytest.mark.parametrize("kind", [Commitments, Openings, Onions, Found])
def test_an_entry_that_is_signed_for_all_is_its_author_s_fault(kind):
    liar = "party-5"
    bad = with_mailbox(Party, addressing(kind, EVERYONE))
    outcome, ends = run(MASKED, seed=SEED, study=FOUR_LESS, parties={liar: bad})
    assert_only_lost(outcome, ends, liar)
    assert "addressed" in outcome.result.lost[liar]


def test_a_relay_whose_batch_is_signed_for_all_is_lost():
    outcome, _ = run(MASKED, seed=SEED, study=FOUR_LESS)
    relay = relays_of(outcome)[1]
    bad = with_mailbox(Party, addressing(Shuffled, EVERYONE))
    assert_only_lost(*run(MASKED, seed=SEED, study=FOUR_LESS, parties={relay: bad}), relay)


def test_what_is_for_all_but_signed_for_the_coordinator_is_its_author_s_fault():
    bad = with_mailbox(Party, addressing(RosterSeen, COORDINATOR))
    outcome, ends = run(MASKED, seed=SEED, study=FOUR_LESS, parties={"party-5": bad})
    assert outcome.result is not None, outcome.cause
    assert [name for name, end in ends.items() if isinstance(end, MpcRrError)] == ["party-5"]


def oversized(limit):
    """Entries just under the limit of a message; a block with one of them would be above it."""
    much = bytes(limit - 1500)
    return [
        (Openings, lambda _, m: Openings(m.head, (much,), m.salts)),
        (Openings, lambda _, m: Openings(m.head, m.values, (much,))),
        (Openings, lambda _, m: Openings(m.head, (b"x" * 16,) * (limit // 20), m.salts)),
        (RelayKeys, lambda _, m: RelayKeys(m.head, MixKeys(much, m.keys.final))),
    ]


@pytest.mark.parametrize(
    ("kind", "change"), oversized(MASKED.largest_message_bytes(setting(EIGHT, len(NAMES))))
)
def test_an_entry_that_is_too_large_for_the_block_is_its_author_s_fault(kind, change):
    outcome, _ = run(MASKED, seed=SEED, study=FOUR_LESS)
    liar = relays_of(outcome)[0]
    bad = with_mailbox(Party, telling(kind, change))
    assert_only_lost(*run(MASKED, seed=SEED, study=FOUR_LESS, parties={liar: bad}), liar)


def test_a_coordinator_cannot_thin_out_a_group(monkeypatch):
    """It says of those around a victim that they have left, until she is alone with its own."""
    ages = [20, 21, 22, 40, 41, 42, 43, 44, 60, 61, 62, 63]
    people = [(0, age, 1000 + number) for number, age in enumerate(ages)]
    thinned = ("party-06", "party-07")
    honest, done = LiveSession.gather, []

    async def gather(session, kind, **options):
        gathered = await honest(session, kind, **options)
        if kind is not Agreed or done:
            return gathered
        done.append(kind)
        kept = {n: m for n, m in gathered.messages.items() if n not in thinned}
        signed = {n: gathered.signed[n] for n in kept}
        return Gathered(kept, thinned, gathered.faulty, signed)

    monkeypatch.setattr(LiveSession, "gather", gather)
    protocol = msgspec.structs.replace(IN_GROUPS, k=3)
    outcome, _ = run(protocol, records=people, study={"minimum": 5})
    result = outcome.result
    whole = run_study(make_scenario(protocol, records=people), transport="memory").outcome.result
    assert set(result.groups) <= set(whole.groups)
    broken = {name for group in whole.groups if set(thinned) & set(group) for name in group}
    assert set(result.withdrawn) == broken - set(thinned)
    salaries = dict(zip(party_names(12), (person[2] for person in people), strict=True))
    told = {values[0] for _, values in result.messages}
    assert told == {salary for name, salary in salaries.items() if name not in broken}


def test_a_relay_that_was_lost_sends_nothing_more():
    """Else the first relay of the next round could put her message in the place of its own."""
    outcome, _ = run(MASKED, seed=SEED, study=FOUR_LESS)
    relay = relays_of(outcome)[0]
    none = with_mailbox(
        Party, telling(RelayKeys, lambda _, m: RelayKeys(m.head, MixKeys(bytes(32), m.keys.final)))
    )
    network = Tapped()
    _, ends = run(MASKED, seed=SEED, study=FOUR_LESS, parties={relay: none}, network=network)
    assert "not among those who take part any more" in str(ends[relay])
    sent = [e.header for e in network.envelopes if e.header.sender == relay]
    assert not any(header.step == Onions.step for header in sent)


def test_a_result_that_is_confirmed_to_all_is_not_confirmed():
    bad = with_mailbox(Party, addressing(ResultSeen, EVERYONE))
    outcome, ends = run(MASKED, seed=SEED, study=FOUR_LESS, parties={"party-5": bad})
    assert outcome.result.unconfirmed == ("party-5",)
    assert not any(isinstance(end, MpcRrError) for end in ends.values())


def test_respondents_cannot_make_each_other_leave():
    """Two different messages to one respondent would be misconduct; but none needs to read any."""
    ages = np.random.default_rng(7).integers(18, 90, 16).tolist()
    people = [(0, age, 1000 + number) for number, age in enumerate(ages)]

    class Ejecting(Mailbox):
        async def tell(self, session, target, message):
            if isinstance(message, Agreed):
                for victim in ("party-05", "party-08", "party-09"):
                    for said in (False, True):
                        raw = self.write(session, "x", victim, Found(b"", said))
                        await self.transport.send(EVERYONE, raw)
            return await super().tell(session, target, message)

    outcome, ends = run(
        msgspec.structs.replace(IN_GROUPS, k=3), records=people, study={"minimum": 11},
        parties={"party-15": with_mailbox(Party, Ejecting)},
    )  # fmt: skip
    assert outcome.result is not None, outcome.cause
    assert outcome.result.lost == {}
    assert not any(isinstance(end, MpcRrError) for end in ends.values())
