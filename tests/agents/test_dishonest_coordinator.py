"""Coordinators that lie: every honest party notices, says why, and returns no wrong result."""

import hashlib

import msgspec
import pytest
from helpers import make_study, random_records, simulate

from mpc_rr.agents.coordinator import Coordinator
from mpc_rr.agents.roster import roster_fault
from mpc_rr.crypto.identity import Identity, PublicIdentity
from mpc_rr.errors import BrokerError, Misconduct, MpcRrError, Refused
from mpc_rr.network.envelope import (
    COORDINATOR,
    EVERYONE,
    WIRE_VERSION,
    Bundle,
    Header,
    decode,
)
from mpc_rr.network.lifecycle import Member, Roster, Verdict
from mpc_rr.network.mailbox import Mailbox
from mpc_rr.network.sealed import write
from mpc_rr.protocols.collection import AnswersTaken
from mpc_rr.protocols.rr_independent import RRIndependent
from mpc_rr.protocols.sums.secure_sum import Partial
from mpc_rr.randomness import SeededRandomness

SIZES = (2, 3)
RECORDS = random_records(5, SIZES, seed=4)
VICTIM = "party-3"


def play(mailbox, *, minimum=None, coordinator=Coordinator):
    class Liar(coordinator):
        def __init__(self, *args):
            super().__init__(*args)
            self.mailbox.__class__ = mailbox

    return simulate(make_study(5, SIZES, minimum=minimum, round_s=5), RECORDS, coordinator=Liar)


def body(raw, kind):
    return decode(msgspec.msgpack.decode(msgspec.msgpack.decode(raw)[0])[1], kind)


def nobody_has_a_result(ends):
    assert all(isinstance(end, MpcRrError) for end in ends.values())


class TwoRosters(Mailbox):
    """Shows one party a roster with a made-up member instead of a real one."""

    async def post(self, session, step, target, raw):
        if step != "roster":
            await super().post(session, step, target, raw)
            return
        honest = body(raw, Roster)
        fake = Member("party-1", Identity(SeededRandomness(99)).public)
        other = Roster(honest.attempt, (fake, *honest.members[1:]), ())
        for name in self.keys:
            shown = other if name == VICTIM else honest
            await super().post(session, step, name, self.write(session, step, name, shown))


def test_two_rosters_are_noticed_by_comparing_digests():
    class Uncritical(Coordinator):
        """Relays the digests as they are."""

        async def _one_attempt(self, session):
            relay = session.relay

            async def unchecked(kind, *, check=None):
                return await relay(kind)

            session.relay = unchecked
            return await super()._one_attempt(session)

    _, ends = play(TwoRosters, coordinator=Uncritical)
    nobody_has_a_result(ends)
    for name, end in ends.items():
        assert isinstance(end, Misconduct), (name, end)
        assert end.culprits in (("coordinator",), ("party-1",))
    assert "was shown another roster" in str(ends["party-2"])


def rosters_changed_by(change):
    class Changed(Mailbox):
        async def tell(self, session, target, message):
            if isinstance(message, Roster):
                message = change(message)
            return await super().tell(session, target, message)

    return Changed


OTHER = Identity(SeededRandomness(5)).public


@pytest.mark.parametrize(
    ("change", "first_says", "others_say"),
    [
        (
            lambda r: Roster(1, (*r.members, r.members[0]), ()),
            "a party is in it twice",
            "a party is in it twice",
        ),
        (
            lambda r: Roster(1, r.members[1:], ()),
            "the coordinator left this party out",
            "it has 4 parties where the study allows 5 to 5",
        ),
        (
            lambda r: Roster(1, (Member(r.members[0].name, OTHER), *r.members[1:]), ()),
            "its roster has a key under my name that is not mine",
            "party-1 left: the coordinator broke the protocol",
        ),
        (
            lambda r: Roster(1, (Member("x", r.members[1].identity), *r.members[1:]), ()),
            "the coordinator left this party out",
            "two parties in it have the same key",
        ),
    ],
    ids=["twice", "one less", "another key", "a copied key"],
)
def test_a_roster_that_is_not_in_order_is_refused(change, first_says, others_say):
    _, ends = play(rosters_changed_by(change))
    nobody_has_a_result(ends)
    for name, end in ends.items():
        assert (first_says if name == "party-1" else others_say) in str(end), str(end)


def members(*identities):
    return tuple(Member(f"party-{k}", identity) for k, identity in enumerate(identities))


FIVE = [Identity(SeededRandomness(k)).public for k in range(5)]


@pytest.mark.parametrize(
    ("shown", "says"),
    [
        ((*FIVE[:4], PublicIdentity(OTHER.signing, FIVE[0].sealing)), "have the same key"),
        ((*FIVE[:4], PublicIdentity(FIVE[0].signing, OTHER.sealing)), "have the same key"),
        ((*FIVE[:4], PublicIdentity(FIVE[0].sealing, OTHER.sealing)), "have the same key"),
        ((*FIVE[:4], PublicIdentity(OTHER.signing, bytes(32))), "a key that cannot be used"),
        (FIVE[:3], "it has 3 parties where the study allows 4 to 5"),
        ((*FIVE, OTHER), "it has 6 parties where the study allows 4 to 5"),
    ],
    ids=["sealing key", "signing key", "one as the other", "no key", "too few", "too many"],
)
def test_what_is_wrong_with_a_roster(shown, says):
    """With a copied sealing key, what is meant for one could be read by another."""
    study = make_study(5, SIZES, minimum=4)
    assert roster_fault(Roster(1, members(*FIVE), ()), study, None) is None
    assert roster_fault(Roster(1, members(*FIVE[:4]), ()), study, None) is None
    assert says in roster_fault(Roster(1, members(*shown), ()), study, None)


@pytest.mark.parametrize("shown", [FIVE, (*FIVE[:3], OTHER)], ids=["as many", "a new one"])
def test_a_repetition_has_fewer_parties_and_no_new_ones(shown):
    study, earlier = make_study(5, SIZES, minimum=4), Roster(1, members(*FIVE), ())
    assert roster_fault(Roster(2, members(*FIVE[:4]), ()), study, earlier) is None
    assert "a repetition must have fewer" in roster_fault(
        Roster(2, members(*shown), ()), study, earlier
    )


def boards_changed_by(step_changed, change):
    class Changed(Mailbox):
        async def post(self, session, step, target, raw):
            if step == step_changed and msgspec.msgpack.decode(raw):
                parcels = change(dict(body(raw, Bundle).parcels))
                raw = self.write(session, step, target, Bundle(parcels))
            await super().post(session, step, target, raw)

    return Changed


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (
            lambda p: {k: v for k, v in p.items() if k != VICTIM},
            "one sealed message for each party",
        ),
        (lambda p: p | {VICTIM: p["party-1"]}, "it belongs to another step"),
        (lambda p: p | {VICTIM: b"junk"}, "malformed"),
    ],
)
def test_a_changed_board_is_noticed(change, says):
    _, ends = play(boards_changed_by("partial", change))
    nobody_has_a_result(ends)
    for end in ends.values():
        assert isinstance(end, Misconduct)
        assert says in str(end), str(end)


def test_a_parcel_that_its_sender_did_not_sign_is_noticed():
    """The coordinator makes up what a party published, in every respect but the signature."""

    class Forging(Mailbox):
        async def post(self, session, step, target, raw):
            if step == Partial.step:
                parcels = body(raw, Bundle).parcels
                said = body(parcels[VICTIM], Partial)
                header = Header(WIRE_VERSION, self.study, self.run, session, step, VICTIM, EVERYONE)
                forged = write(header, Partial(bytes(len(said.residues))), self.identity)
                raw = self.write(session, step, target, Bundle(parcels | {VICTIM: forged}))
            await super().post(session, step, target, raw)

    _, ends = play(Forging)
    nobody_has_a_result(ends)
    for end in ends.values():
        assert f"{VICTIM}'s message for step 'partial'" in str(end)
        assert "its signature is not the sender's" in str(end)
        assert end.culprits == ("coordinator",)


def test_a_parcel_that_is_longer_than_its_share_of_a_message_is_noticed():
    study = make_study(5, SIZES)
    long = bytes(study.largest_message_bytes // 5 + 1)
    _, ends = play(boards_changed_by("partial", lambda p: p | {VICTIM: long}))
    nobody_has_a_result(ends)
    for end in ends.values():
        assert (
            "the coordinator's bundle for step 'partial': a sealed message is longer than"
            in str(end)
        )
        assert end.culprits == ("coordinator",)


def test_what_is_for_all_is_not_told_to_each_alone():
    """Else it could tell each something else, and nobody could show what she was told."""

    class Whispering(Mailbox):
        async def tell(self, session, target, message):
            if not isinstance(message, AnswersTaken):
                return await super().tell(session, target, message)
            for name in [name for name in self.keys if name != COORDINATOR]:
                raw = self.write(session, message.step, name, message)
                await self.post(session, message.step, name, raw)
            return raw

    class Liar(Coordinator):
        def __init__(self, *args):
            super().__init__(*args)
            self.mailbox.__class__ = Whispering

    study = make_study(5, SIZES, protocol=RRIndependent(keep=0.5))
    _, ends = simulate(study, RECORDS, coordinator=Liar)
    nobody_has_a_result(ends)
    for end in ends.values():
        assert "the coordinator tells me alone what is for all" in str(end)
        assert end.culprits == ("coordinator",)


def test_swapped_shares_are_noticed():
    """The coordinator cannot read parcels; nor can it hand one party's to another."""

    def swap(parcels):
        first, second = list(parcels)[:2]
        return parcels | {first: parcels[second], second: parcels[first]}

    _, ends = play(boards_changed_by("share", swap))
    nobody_has_a_result(ends)
    assert any("another step" in str(end) for end in ends.values())


class AsksTwice(Coordinator):
    """Claims, after all partial sums are in, that somebody left, and asks for another sum."""

    async def _one_attempt(self, session):
        counts = await super()._one_attempt(session)
        if self._attempt == 1:
            self._attempt = 2
            again = self._session(tuple(p for p in session.parties if p != VICTIM))
            return await super()._one_attempt(again)
        return counts


def test_a_second_sum_after_the_first_is_refused():
    """Totals over n and over n - 1 parties would expose the one who was left out."""
    outcome, ends = play(Mailbox, minimum=3, coordinator=AsksTwice)
    assert outcome.result is None
    for name, end in ends.items():
        if name == VICTIM:
            assert isinstance(end, Refused)
        else:
            assert isinstance(end, Misconduct)
            assert "would expose someone" in str(end)


def test_a_repetition_with_new_parties_is_refused():
    class Replacing(Coordinator):
        async def _one_attempt(self, session):
            if self._attempt == 1:
                await self.mailbox.tell(session.name, "*", self._roster(session))
                self._attempt = 2
                again = self._session(session.parties)
                return await super()._one_attempt(again)
            return await super()._one_attempt(session)

        def _roster(self, session):
            members = tuple(Member(n, self.mailbox.keys[n]) for n in session.parties)
            return Roster(1, members, ())

    _, ends = play(Mailbox, coordinator=Replacing)
    nobody_has_a_result(ends)
    assert all("fewer parties than before" in str(end) for end in ends.values())


def verdicts_changed_by(change):
    class Changed(Mailbox):
        def write(self, session, step, target, message):
            if isinstance(message, Verdict):
                message = change(message)
            return super().write(session, step, target, message)

    return Changed


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (
            lambda v: msgspec.structs.replace(v, result_digest=hashlib.sha256().digest()),
            "announces another result",
        ),
        (
            lambda v: msgspec.structs.replace(v, seen=v.seen | {VICTIM: v.seen["party-1"]}),
            "no honest confirmation of the result by party-3",
        ),
        (
            lambda v: msgspec.structs.replace(v, seen=v.seen | {"party-9": b""}),
            "does not speak of everyone",
        ),
        (
            lambda v: msgspec.structs.replace(v, seen={}),
            "does not speak of everyone",
        ),
    ],
)
def test_a_false_verdict_is_noticed(change, says):
    _, ends = play(verdicts_changed_by(change))
    for end in ends.values():
        assert isinstance(end, Misconduct)
        assert says in str(end)


def test_a_result_is_not_lost_when_the_broker_goes_at_the_end():
    class GoneAtTheEnd(Mailbox):
        async def post(self, session, step, target, raw):
            if step == "verdict":
                raise BrokerError("gone")
            await super().post(session, step, target, raw)

    outcome, ends = play(GoneAtTheEnd)
    assert outcome.result.n == 5
    for name, counts in ends.items():
        assert counts.n == 5
        assert set(counts.unconfirmed) == set(ends) - {name}


def test_swapped_parcels_do_not_make_an_honest_party_the_only_culprit():
    """The sender may have made the bad parcel, or the coordinator: both are named."""

    def junk(parcels):
        return parcels | {next(iter(parcels)): b"junk"}

    _, ends = play(boards_changed_by("share", junk))
    for end in ends.values():
        if isinstance(end, Misconduct):
            assert "coordinator" in end.culprits
