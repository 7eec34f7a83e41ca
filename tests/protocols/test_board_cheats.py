"""Cheating on the board: respondents who do are left out alone, a coordinator is named by all."""

import asyncio
import sys
from typing import ClassVar

import msgspec
import numpy as np
import pytest
from anonymizing import EIGHT, IN_GROUPS, MASKED, NAMES, PEOPLE, make_scenario, run
from helpers import Tapped, setting, telling, with_mailbox
from test_collaborative_k_anonymity import relays_of
from test_mix_cascade import FOUR_LESS, SEED

from mpc_rr.agents.coordinator import Coordinator
from mpc_rr.agents.party import Party
from mpc_rr.errors import Dropout, Misconduct, MpcRrError, Refused
from mpc_rr.network.envelope import COORDINATOR, EVERYONE
from mpc_rr.network.lifecycle import ResultSeen, Roster, RosterSeen
from mpc_rr.network.mailbox import Mailbox
from mpc_rr.network.session import Gathered
from mpc_rr.network.session.live import LiveSession
from mpc_rr.protocols import collaborative_k_anonymity
from mpc_rr.protocols.board.board import Block
from mpc_rr.protocols.board.commitment import Commitments, Openings
from mpc_rr.protocols.collaborative_k_anonymity import Agreed, Partition
from mpc_rr.protocols.collaborative_masking import CollaborativeMasking
from mpc_rr.protocols.mix.batch import Found, MixKeys, MixOutput, Onions, RelayKeys, Shuffled
from mpc_rr.protocols.mix.cascade import GivenUp
from mpc_rr.publication.ending import Ending
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
        (Openings, lambda _, m: Openings(m.head, (much,), m.salts), "longer than 16 bytes"),
        (Openings, lambda _, m: Openings(m.head, m.values, (much,)), "has not 32 bytes"),
        (
            Openings,
            lambda _, m: Openings(m.head, (b"x" * 16,) * (limit // 20), m.salts),
            "1 values and as many salts are due",
        ),
        (
            RelayKeys,
            lambda _, m: RelayKeys(m.head, MixKeys(much, m.keys.final)),
            "32 bytes are due",
        ),
    ]


@pytest.mark.parametrize(
    ("kind", "change", "says"), oversized(MASKED.largest_message_bytes(setting(EIGHT, len(NAMES))))
)
def test_an_entry_that_is_too_large_for_the_block_is_its_author_s_fault(kind, change, says):
    outcome, _ = run(MASKED, seed=SEED, study=FOUR_LESS)
    liar = relays_of(outcome)[0]
    bad = with_mailbox(Party, telling(kind, change))
    outcome, ends = run(MASKED, seed=SEED, study=FOUR_LESS, parties={liar: bad})
    assert_only_lost(outcome, ends, liar)
    assert says in outcome.result.lost[liar]


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


# ── A coordinator that cheats on the board ─────────────────────────────────────────────────────


def play(protocol, *, sees_through=NAMES, says, not_sent="onions", **agents):
    """Everybody who can see it names the coordinator, for this reason; nothing more was sent."""
    network = Tapped()
    outcome, ends = run(protocol, seed=SEED, network=network, **agents)
    assert outcome.result is None
    assert not any(isinstance(end, Ending) for end in ends.values())
    for name in sees_through:
        assert says in str(ends[name]), (name, str(ends[name]))
        assert ends[name].culprits == (COORDINATOR,)
    assert not_sent not in {e.header.step for e in network.envelopes}


def mute(kind):
    """A party that falls silent when it should send something of this kind."""

    def silent(*_):
        raise Misconduct("gone")

    return with_mailbox(Party, telling(kind, silent))


@pytest.mark.parametrize(
    ("protocol", "minimum", "kind", "says"),
    [
        (MASKED, 8, Openings, "goes on with 7 parties where 8 are needed"),
        (IN_GROUPS, 8, Agreed, "goes on with 7 parties where 8 are needed"),
        (IN_GROUPS, 5, Agreed, "goes on with 4 in whole groups where 5 are needed"),
    ],
)
def test_a_coordinator_that_goes_on_with_too_few_is_named(
    monkeypatch, protocol, minimum, kind, says
):
    """Fewer than the study promised: among them everybody hides less than she agreed to."""
    monkeypatch.setattr(LiveSession, "fewest", 3)
    others = [name for name in NAMES if name != "party-2"]
    play(
        protocol, sees_through=others, says=says,
        study={"minimum": minimum}, parties={"party-2": mute(kind)},
    )  # fmt: skip


def test_a_block_that_continues_another_board_is_refused():
    def elsewhere(_, block):
        return Block(bytes(32), block.entries)

    bad = with_mailbox(Coordinator, telling(Block, elsewhere))
    play(MASKED, says="it does not continue the board that I have seen", coordinator=bad)


@pytest.mark.parametrize("kind", [MixOutput, Partition])
def test_an_announcement_that_continues_another_board_is_refused(kind):
    protocol = MASKED if kind is MixOutput else IN_GROUPS
    bad = with_mailbox(
        Coordinator, telling(kind, lambda _, m: msgspec.structs.replace(m, previous=bytes(32)))
    )
    play(
        protocol, says="it does not continue the board that I have seen",
        not_sent="final_key", coordinator=bad,
    )  # fmt: skip


def test_entries_of_those_who_were_not_asked_are_refused():
    """A coordinator and a party that is no relay: it has nothing to show among the relays' keys."""
    outcome, _ = run(MASKED, seed=SEED)
    relays = relays_of(outcome)
    accomplice = next(name for name in NAMES if name not in relays)
    own = {}

    class Accomplice(Party):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            own["mailbox"] = self.mailbox

    class Adding(Mailbox):
        async def tell(self, session, target, message):
            if isinstance(message, Block) and relays[0] in message.entries and "round" in session:
                shown = RelayKeys(message.previous, MixKeys(bytes(32), bytes(32)))
                entry = own["mailbox"].write(session, RelayKeys.step, COORDINATOR, shown)
                message = Block(message.previous, message.entries | {accomplice: entry})
            return await super().tell(session, target, message)

    play(
        MASKED, says=f"{accomplice} had nothing to post",
        parties={accomplice: Accomplice}, coordinator=with_mailbox(Coordinator, Adding),
    )  # fmt: skip


def technical_problem(monkeypatch):
    """Ends the first attempt after the dice were opened, and says that party-2 has left."""

    async def gone(self, session, board, seed):
        raise Dropout("a technical problem", ["party-2"])

    monkeypatch.setattr(CollaborativeMasking, "_serve_channel", gone)


def test_no_new_roster_after_the_dice_were_opened(monkeypatch):
    """Else a coordinator could throw them again until the relays are its own."""
    technical_problem(monkeypatch)
    monkeypatch.setattr(LiveSession, "past_return", False)
    others = [name for name in NAMES if name != "party-2"]
    play(
        MASKED, sees_through=others, study=FOUR_LESS,
        says="begins again with others after I published my part",
    )  # fmt: skip


def test_an_honest_coordinator_does_not_begin_again_after_the_dice_were_opened(monkeypatch):
    technical_problem(monkeypatch)
    network = Tapped()
    outcome, _ = run(MASKED, seed=SEED, study=FOUR_LESS, network=network)
    assert "a technical problem" in outcome.cause
    rosters = [e for e in network.envelopes if e.header.step == Roster.step]
    assert len({e.body for e in rosters}) == 1


@pytest.mark.parametrize("protocol", [MASKED, IN_GROUPS], ids=["masking", "groups"])
def test_whoever_begins_again_although_nobody_was_lost_is_named(monkeypatch, protocol):
    """Whatever the channel says: each round without a reason is another batch to compare."""

    rounds = []

    async def nothing(*_):
        return GivenUp()

    async def nothing_twice(*_):
        rounds.append(len(rounds))
        if len(rounds) > 2:
            raise Refused("it has had enough")
        return GivenUp()

    module = sys.modules[type(protocol).__module__]
    monkeypatch.setattr(module, "mix_party", nothing)
    monkeypatch.setattr(module, "mix_coordinator", nothing_twice)
    play(protocol, says="the coordinator begins again although nobody was lost")


# ── Respondents who cheat with their commitments ───────────────────────────────────────────────


@pytest.mark.parametrize(
    "change",
    [
        lambda hashes: hashes[:-1],
        lambda hashes: (*hashes, bytes(32)),
        lambda hashes: (*hashes[:-1], bytes(31)),
    ],
    ids=["too few", "too many", "too short"],
)
def test_commitments_of_another_size_are_their_author_s_fault(change):
    bad = telling(Commitments, lambda _, m: Commitments(m.head, change(m.hashes)))
    outcome, ends = run(
        MASKED, seed=SEED, study=FOUR_LESS, parties={"party-5": with_mailbox(Party, bad)}
    )
    assert_only_lost(outcome, ends, "party-5")
    assert "1 hashes of 32 bytes are due" in outcome.result.lost["party-5"]


def test_who_copies_a_commitment_and_its_opening_is_named():
    """It is bound to its author's name, so a copy does not open; not even with her own salts."""
    victim, copier = "party-1", "party-5"

    class Copying(Mailbox):
        seen: ClassVar[dict] = {}

        async def tell(self, session, target, message):
            if isinstance(message, Commitments | Openings) and "throw" not in session:
                if self.me == victim:
                    self.seen[message.step] = message
                else:
                    await asyncio.sleep(1)
                    message = msgspec.structs.replace(self.seen[message.step], head=message.head)
            return await super().tell(session, target, message)

    both = with_mailbox(Party, Copying)
    protocol = msgspec.structs.replace(IN_GROUPS, k=3)
    outcome, ends = run(protocol, parties={victim: both, copier: both}, study={"minimum": 6})
    assert_only_lost(outcome, ends, copier)
    assert outcome.result.lost[copier] == "openings: 'zip' is not what it committed to"


def test_a_quasi_identifier_in_other_bytes_than_the_usual_is_no_answer(monkeypatch):
    """The same number could be written in many ways; there is one."""
    honest = collaborative_k_anonymity._bytes
    short = PEOPLE[0][1]

    def shorter(code):
        return honest(code)[:1] if code == short else honest(code)

    monkeypatch.setattr(collaborative_k_anonymity, "_bytes", shorter)
    protocol = msgspec.structs.replace(IN_GROUPS, k=3)
    outcome, ends = run(protocol, study={"minimum": 6})
    assert_only_lost(outcome, ends, "party-1")
    assert outcome.result.lost["party-1"] == "openings: it is no answer to what was asked"
