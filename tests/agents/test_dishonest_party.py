"""Parties that lie: found out, named, and nobody gets a wrong result."""

import io

import msgspec
import numpy as np
import pytest
from helpers import assert_tables, crosstabs, make_study, random_records, simulate
from rich.console import Console

from mpc_rr.agents.party import Party
from mpc_rr.crypto.identity import Identity, PublicIdentity
from mpc_rr.errors import Aborted, InternalError, Misconduct, MpcRrError
from mpc_rr.network.envelope import Bundle, decode
from mpc_rr.network.lifecycle import Objection, ResultSeen
from mpc_rr.network.mailbox import Mailbox
from mpc_rr.network.memory import MemoryNetwork
from mpc_rr.network.sealed import write
from mpc_rr.protocols.sums.secure_sum import Partial, Share
from mpc_rr.randomness import SeededRandomness
from mpc_rr.results.run import StudyResult
from mpc_rr.show.study import show_result

SIZES = (2, 3)
RECORDS = random_records(5, SIZES, seed=3)
LIAR = "party-2"


class LyingMailbox(Mailbox):
    """Changes what this party sends in one step."""

    step = ""
    change = None

    async def post(self, session, step, target, raw):
        if step == type(self).step:
            raw = type(self).change(self, session, raw)
        await super().post(session, step, target, raw)


def lying_party(at_step, how):
    class Mail(LyingMailbox):
        step = at_step
        change = staticmethod(how)

    class Liar(Party):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            self.mailbox.__class__ = Mail

    return Liar


def play(liar, *, minimum=None):
    study = make_study(5, SIZES, minimum=minimum)
    return simulate(study, RECORDS, parties={LIAR: liar})


def rebundle(mailbox, session, raw, change):
    """The party's own bundle with its parcels changed, properly signed."""
    envelope = msgspec.msgpack.decode(msgspec.msgpack.decode(raw)[0])
    parcels = dict(decode(envelope[1], Bundle).parcels)
    return mailbox.write(session, "share", "coordinator", Bundle(change(parcels)))


def missing_parcel(mailbox, session, raw):
    return rebundle(mailbox, session, raw, lambda p: dict(list(p.items())[1:]))


def stranger_parcel(mailbox, session, raw):
    return rebundle(mailbox, session, raw, lambda p: {**p, "nobody": b"x"})


def junk_parcel(mailbox, session, raw):
    return rebundle(mailbox, session, raw, lambda p: {**p, "party-4": b"junk"})


def junk_body(mailbox, session, raw):
    return mailbox.write(session, "share", "coordinator", Partial(b""))


def parcel_with(message):
    """One parcel replaced by another sealed message, all properly signed."""

    def how(mailbox, session, raw):
        forged = mailbox.write(session, "share", "party-4", message)
        return rebundle(mailbox, session, raw, lambda p: {**p, "party-4": forged})

    return how


def sealed_to_somebody_else(mailbox, session, raw):
    header = mailbox.header(session, "share", "party-4")
    forged = write(header, Share(bytes(6)), mailbox.identity, mailbox.keys["party-1"])
    return rebundle(mailbox, session, raw, lambda p: {**p, "party-4": forged})


def survivors_have_the_right_result(ends):
    rest = [record for k, record in enumerate(RECORDS, 1) if f"party-{k}" != LIAR]
    for name, end in ends.items():
        if name != LIAR:
            assert_tables(end.tables, crosstabs(rest, SIZES))


@pytest.mark.parametrize(
    ("how", "says"),
    [
        (missing_parcel, "one sealed message for each party"),
        (stranger_parcel, "one sealed message for each party"),
        (junk_body, "Expected"),
    ],
)
def test_a_bad_bundle_is_seen_by_the_coordinator_and_the_study_goes_on(how, says):
    outcome, ends = play(lying_party("share", how), minimum=4)
    assert [e.name for e in outcome.excluded] == [LIAR]
    assert says in outcome.excluded[0].reason
    assert outcome.result.n == 4
    survivors_have_the_right_result(ends)
    assert "left this party out" in str(ends[LIAR])


def test_without_enough_others_the_study_ends_and_names_the_liar():
    outcome, ends = play(lying_party("share", missing_parcel))
    assert outcome.result is None
    assert outcome.culprits == (LIAR,)
    assert "at least 5 are needed" in outcome.cause
    assert all(isinstance(end, MpcRrError) for end in ends.values())


def test_an_unsigned_parcel_is_proved_on_objection():
    outcome, ends = play(lying_party("share", junk_parcel), minimum=4)
    assert outcome.result is None
    assert outcome.culprits == (LIAR,)
    assert "I confirm" in outcome.cause
    assert isinstance(ends["party-1"], Aborted)


@pytest.mark.parametrize(
    ("how", "says"),
    [
        (parcel_with(Share(bytes(5))), "5 bytes where 6 are due"),
        (parcel_with(Share(bytes([9] * 6))), "not below the modulus"),
        (sealed_to_somebody_else, "does not open with my key"),
    ],
)
def test_a_bad_share_ends_the_study_and_both_sides_are_named(how, says):
    """Its content is sealed: nobody but the two can tell who is right."""
    outcome, ends = play(lying_party("share", how), minimum=4)
    assert outcome.result is None
    assert outcome.culprits == (LIAR, "party-4")
    assert says in outcome.cause
    assert "either may be lying" in outcome.cause
    for name, end in ends.items():
        if name != "party-4":
            assert isinstance(end, Aborted)
            assert end.culprits == (LIAR, "party-4")


@pytest.mark.parametrize(
    ("residues", "says"), [(bytes(7), "7 bytes where 6 are due"), (bytes([200] * 6), "modulus")]
)
def test_a_bad_partial_sum_ends_the_study(residues, says):
    def how(mailbox, session, raw):
        return mailbox.write(session, "partial", "*", Partial(residues))

    outcome, ends = play(lying_party("partial", how), minimum=3)
    assert outcome.result is None
    assert outcome.culprits == (LIAR,)
    assert says in outcome.cause
    assert outcome.attempts == 1, "no repetition once partial sums are out"
    assert all(isinstance(end, Aborted) for end in ends.values())


def test_a_poisoned_sum_is_noticed_though_its_author_is_hidden():
    def how(mailbox, session, raw):
        envelope = msgspec.msgpack.decode(msgspec.msgpack.decode(raw)[0])
        residues = np.frombuffer(decode(envelope[1], Partial).residues, np.uint8).copy()
        residues[0] = (residues[0] + 2) % 6
        return mailbox.write(session, "partial", "*", Partial(residues.tobytes()))

    outcome, ends = play(lying_party("partial", how))
    assert outcome.result is None
    assert outcome.culprits == ()
    assert "the sum is poisoned" in outcome.cause
    assert all(isinstance(end, MpcRrError) for end in ends.values())


def another_digest(mailbox, session, raw):
    return mailbox.write(session, "result_seen", "coordinator", ResultSeen(bytes(32)))


class ObjectsAtTheEnd(Party):
    async def _verdict(self, session, counts):
        raise Misconduct("I do not like the result", ["party-1"])


class PublishesTwice(Party):
    async def _verdict(self, session, counts):
        raw = self.mailbox.write(
            "attempt-1/exact_pairs/secure_sum", "partial", "*", Partial(bytes(6))
        )
        await self.mailbox.transport.send("coordinator", raw)
        return await super()._verdict(session, counts)


@pytest.mark.parametrize(
    "liar",
    [lying_party("result_seen", another_digest), ObjectsAtTheEnd, PublishesTwice],
    ids=["another digest", "objection", "contradiction"],
)
def test_nobody_can_take_the_result_from_the_others_once_it_is_there(liar):
    outcome, ends = play(liar)
    assert outcome.result.n == 5
    assert set(outcome.unconfirmed) <= {LIAR}
    for name, counts in ends.items():
        if name != LIAR:
            assert_tables(counts.tables, crosstabs(RECORDS, SIZES))
            assert set(counts.unconfirmed) <= {LIAR}


def test_two_different_messages_for_one_step_are_named():
    class TwoFaced(Party):
        async def _compare_rosters(self, session, roster):
            for residues in (bytes(6), bytes([1] * 6)):
                raw = self.mailbox.write(
                    "attempt-1/exact_pairs/secure_sum", "partial", "*", Partial(residues)
                )
                await self.mailbox.transport.send("coordinator", raw)
            await super()._compare_rosters(session, roster)

    outcome, _ = play(TwoFaced, minimum=4)
    assert [e.name for e in outcome.excluded] == [LIAR]
    assert "two different messages" in outcome.excluded[0].reason
    assert outcome.result.n == 4
    assert outcome.rejected["contradiction"] == 1


def test_a_flood_of_made_up_sessions_is_bounded():
    class Flooder(Party):
        async def _compare_rosters(self, session, roster):
            for k in range(400):
                raw = self.mailbox.write(f"attempt-1/{k}", "partial", "*", Partial(b""))
                await self.mailbox.transport.send("coordinator", raw)
            await super()._compare_rosters(session, roster)

    outcome, _ = play(Flooder, minimum=4)
    assert outcome.rejected["flooding"] >= 100
    assert [e.name for e in outcome.excluded] == [LIAR]


# ── Honest parties are not drawn in ────────────────────────────────────────────────────────────


def with_keys(change):
    class OddKeys(Party):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            self._identity.public = change(self._identity.public)

    return OddKeys


@pytest.mark.parametrize(
    ("change", "says"),
    [
        # Sealing to the first is impossible.
        (lambda i: PublicIdentity(i.signing, bytes(32)), "its keys cannot be used"),
        (lambda i: PublicIdentity(i.signing, i.signing), "its keys cannot be used"),
        (
            lambda i: PublicIdentity(
                i.signing,
                Identity(SeededRandomness(0).fork("party-1").fork("identity")).public.sealing,
            ),
            "it does not prove that its keys are its own",
        ),
    ],
    ids=["low order", "one key for both", "another party's key"],
)
def test_keys_that_cannot_be_used_are_refused_at_the_door(change, says):
    study = make_study(5, SIZES, minimum=4, lobby_s=3)
    outcome, ends = simulate(study, RECORDS, parties={LIAR: with_keys(change)})
    assert outcome.result.n == 4
    survivors_have_the_right_result(ends)
    assert says in str(ends[LIAR])


class Anybody(Party):
    """Its signing key is the neutral element: everybody can sign for it, whatever is said."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        neutral = bytes([1]) + bytes(31)
        self._identity.public = PublicIdentity(neutral, self._identity.public.sealing)
        self._identity.sign = lambda _: neutral + bytes(32)


def test_a_key_that_anybody_can_sign_for_is_not_admitted():
    study = make_study(5, SIZES, minimum=4, lobby_s=3)
    outcome, ends = simulate(study, RECORDS, parties={LIAR: Anybody})
    assert outcome.result.n == 4
    assert LIAR not in outcome.members
    survivors_have_the_right_result(ends)


class Objector(Party):
    """Accuses somebody before there is anything to accuse anybody of."""

    reason = "I do not like it"

    async def _compare_rosters(self, session, roster):
        raise Misconduct(self.reason, ["party-1"])


class Repeating(MemoryNetwork):
    def carry(self, sender, target, raw):
        super().carry(sender, target, raw)
        super().carry(sender, target, raw)


@pytest.mark.parametrize("network", [MemoryNetwork, Repeating])
def test_a_groundless_objection_harms_only_its_author(network):
    """Also when the network repeats it, as at-least-once delivery may."""
    study = make_study(5, SIZES, minimum=4)
    outcome, ends = simulate(study, RECORDS, parties={LIAR: Objector}, network=network())
    assert [e.name for e in outcome.excluded] == [LIAR]
    assert outcome.result.n == 4
    survivors_have_the_right_result(ends)


def test_endless_and_unprintable_reasons_are_cut():
    class Verbose(Objector):
        reason = "\x1b[31m[/boom]\n" + "x" * 100_000

        async def _object(self, fault):
            said = Objection("party-1", "", "", str(fault))
            await self.mailbox.tell(self.mailbox.session_root, "coordinator", said)

    outcome, ends = play(Verbose, minimum=4)
    assert outcome.result.n == 4
    survivors_have_the_right_result(ends)
    assert len(outcome.excluded[0].reason) <= 300
    assert outcome.excluded[0].reason.isprintable()
    result = StudyResult(make_study(5, SIZES), outcome, {}, None, "memory")
    # "[/boom]" is no markup of ours
    show_result(Console(file=io.StringIO()), result, result.publication, 1.0)


def test_an_excluded_party_cannot_come_back_to_disturb():
    class Persistent(Party):
        """Sends three different messages for one step, then objects, again and again."""

        async def _compare_rosters(self, session, roster):
            for k in range(3):
                raw = self.mailbox.write(
                    "attempt-1/exact_pairs/secure_sum", "partial", "*", Partial(bytes([k] * 6))
                )
                await self.mailbox.transport.send("coordinator", raw)
            for k in range(20):
                said = Objection("party-1", "attempt-1", "share", f"nonsense {k}")
                raw = self.mailbox.write("attempt-1", "objection", "coordinator", said)
                await self.mailbox.transport.send("coordinator", raw)
            await super()._compare_rosters(session, roster)

    outcome, ends = play(Persistent, minimum=4)
    assert [e.name for e in outcome.excluded] == [LIAR]
    assert outcome.result.n == 4
    assert outcome.culprits == ()
    survivors_have_the_right_result(ends)


def test_a_broken_party_does_not_end_its_host():
    class Broken(Party):
        async def _first_roster(self):
            raise ZeroDivisionError

    outcome, ends = play(Broken, minimum=4)
    assert isinstance(ends[LIAR], InternalError)
    assert outcome.result.n == 4
    survivors_have_the_right_result(ends)
