"""What an honest agent would never send is turned away, one reason at a time.

Messages go straight into a mailbox, which counts why it threw one away.
"""

import datetime as dt

import msgspec
import pytest
from helpers import make_study, random_records, simulate, telling, with_mailbox

from mpc_rr.agents import coordinator as coordinating
from mpc_rr.agents.coordinator import Coordinator
from mpc_rr.agents.party import Party
from mpc_rr.agents.roster import roster_digest, run_id
from mpc_rr.agents.terms import Terms
from mpc_rr.crypto.admission import Pass, SigningKey
from mpc_rr.crypto.identity import Identity
from mpc_rr.errors import InputError, Misconduct
from mpc_rr.network.envelope import COORDINATOR, LOBBY_SESSION, WIRE_VERSION, Header
from mpc_rr.network.lifecycle import (
    Exclusion,
    Hello,
    Invitation,
    Join,
    Member,
    Objection,
    Opening,
    Refusal,
    ResultSeen,
    Roster,
    RosterSeen,
    ShowPass,
    Verdict,
    Welcome,
)
from mpc_rr.network.mailbox import Mailbox
from mpc_rr.network.memory import MemoryNetwork
from mpc_rr.network.sealed import write
from mpc_rr.network.session.party import PartySession
from mpc_rr.protocols.rr_independent import RRIndependent
from mpc_rr.randomness import SeededRandomness

SIZES = (2, 3)
STUDY = make_study(4, SIZES)
RECORDS = random_records(4, SIZES)
ANN, BEN, BOSS, IMPOSTOR = (Identity(SeededRandomness(seed)) for seed in range(4))


def letter(message, author, *, sender, target, run=b"", session=LOBBY_SESSION):
    """A message that ``author`` has signed, whatever its header says."""
    header = Header(WIRE_VERSION, STUDY.name, run, session, message.step, sender, target)
    return write(header, message, author)


# ── At the coordinator ─────────────────────────────────────────────────────────────────────────


class Desk:
    """A coordinator in its lobby, and what it rejected."""

    def __init__(self, monkeypatch, study=STUDY):
        self.boss = Coordinator(study, MemoryNetwork().attach(COORDINATOR), SeededRandomness(1))
        self.mailbox = self.boss.mailbox
        monkeypatch.setattr(self.mailbox, "spawn", lambda *_: None)  # nobody listens for answers

    def gets(self, message, author, *, sender="ann", run=None, session=LOBBY_SESSION):
        before = self.mailbox.rejected.copy()
        run = self.mailbox.run if run is None else run
        self.mailbox.accept(
            letter(message, author, sender=sender, target=COORDINATOR, run=run, session=session)
        )
        return sorted((self.mailbox.rejected - before).elements())


@pytest.fixture
def desk(monkeypatch):
    return Desk(monkeypatch)


def test_a_hello_is_signed_with_the_key_that_it_brings(desk):
    """Else anybody could have somebody's identity refused, as if two processes used it."""
    hello = Hello(ANN.public, "ann")
    assert desk.gets(hello, BEN, run=b"") == ["bad signature"]
    assert desk.gets(hello, ANN, run=b"") == []


def test_a_hello_belongs_to_no_run(desk):
    assert desk.gets(Hello(ANN.public, "ann"), ANN) == ["bad signature"]


def test_hellos_beyond_twice_the_expected_number_are_forgotten(desk, monkeypatch):
    monkeypatch.setattr(coordinating, "HELLOS_KEPT", 0)
    callers = [Identity(SeededRandomness(100 + k)) for k in range(2 * STUDY.parties.count + 1)]
    for k, caller in enumerate(callers):
        assert desk.gets(Hello(caller.public, "x"), caller, sender=f"p{k}", run=b"") == []
    assert desk.gets(Join(callers[0].public), callers[0], sender="p0") == ["unknown sender"]
    assert desk.gets(Join(callers[1].public), callers[1], sender="p1") == []


def test_a_pass_is_shown_in_the_lobby(monkeypatch):
    registrar, person = (SigningKey.draw(SeededRandomness(seed)) for seed in (5, 6))
    study = msgspec.structs.replace(STUDY, registrar=registrar.public.hex())
    desk = Desk(monkeypatch, study)
    assert desk.gets(Hello(ANN.public, "ann"), ANN, run=b"") == []
    run = desk.mailbox.run
    admission = registrar.admit(study.digest, person.public)
    shown = ShowPass(ANN.public, Pass(person.public, admission, person.prove(run, ANN.public)))
    assert desk.gets(shown, ANN, session="elsewhere") == ["other session"]
    assert desk.gets(shown, BEN) == ["bad signature"]
    assert desk.gets(Join(ANN.public), ANN) == ["no pass"]
    assert desk.gets(shown, ANN) == []
    assert desk.gets(Join(ANN.public), ANN) == []


def test_a_join_is_signed_with_the_key_that_it_brings(desk):
    assert desk.gets(Hello(ANN.public, "ann"), ANN, run=b"") == []
    assert desk.gets(Join(ANN.public), ANN, sender="ben") == ["unknown sender"]
    assert desk.gets(Join(ANN.public), BEN) == ["bad signature"]
    assert desk.gets(Join(ANN.public), ANN, run=b"") == ["bad signature"]
    assert desk.gets(Join(ANN.public), ANN) == []


def test_a_party_that_names_another_roster_is_left_out():
    class Differing(Mailbox):
        def write(self, session, step, target, message):
            if isinstance(message, RosterSeen):
                message = RosterSeen(bytes(32))
            return super().write(session, step, target, message)

    outcome, _ = simulate(
        make_study(4, SIZES, minimum=3),
        RECORDS,
        parties={"party-2": with_mailbox(Party, Differing)},
    )
    ((name, reason),) = ((one.name, one.reason) for one in outcome.excluded)
    assert name == "party-2"
    assert "it names another roster than the one I sent" in reason
    assert outcome.result.n == 3


def test_a_party_objects_once(desk):
    desk.mailbox.keys["ann"] = ANN.public
    objections = [Objection(COORDINATOR, "s", "step", reason) for reason in ("one", "two")]
    assert desk.gets(objections[0], ANN, session="s") == []
    assert desk.gets(objections[1], ANN, session="s") == ["duplicate"]


def test_what_belongs_to_no_run_is_nobodys(desk):
    """It would hold in every run of the study."""
    desk.mailbox.keys["ann"] = ANN.public
    objection = Objection(COORDINATOR, "s", "step", "why")
    assert desk.gets(objection, ANN, session="s", run=b"") == ["unknown sender"]
    assert desk.gets(objection, ANN, session="s", run=b"r" * 16) == ["other run"]
    assert desk.gets(objection, BEN, session="s") == ["bad signature"]
    assert desk.gets(objection, ANN, session="s") == []


# ── At a party ─────────────────────────────────────────────────────────────────────────────────


class Guest:
    """A party that has knocked, and what it rejected."""

    def __init__(self):
        network = MemoryNetwork()
        self.party = Party(STUDY, "ann", (0, 0), network.attach("ann"), SeededRandomness(7))
        self.mailbox = self.party.mailbox
        self.identity = self.mailbox.identity.public
        self.invitation = Invitation(BOSS.public, STUDY.digest, bytes(16), self.identity.digest)
        self.run = run_id(self.invitation)

    def gets(self, message, author=BOSS, *, sender=COORDINATOR, run=None):
        before = self.mailbox.rejected.copy()
        run = self.run if run is None else run
        self.mailbox.accept(letter(message, author, sender=sender, target="ann", run=run))
        return sorted((self.mailbox.rejected - before).elements())


@pytest.fixture
def guest():
    return Guest()


def test_a_run_has_the_name_that_follows_from_its_invitation(guest):
    """Else a coordinator could give two runs one name, and have what is kept of one for both."""
    assert guest.gets(guest.invitation, run=b"r" * 16) == ["other run"]
    assert guest.mailbox.run == b""
    assert guest.gets(guest.invitation) == []
    assert guest.mailbox.run == guest.run


def test_the_name_of_a_run_is_this_hash_of_all_that_makes_it_one(guest):
    invitation = Invitation(BOSS.public, bytes(32), bytes(16), b"")
    assert run_id(invitation).hex() == "baafa44c73eef69cbd9ecbb92c4a75a3"
    for other in (
        msgspec.structs.replace(invitation, identity=BEN.public),
        msgspec.structs.replace(invitation, study_digest=b"\1" * 32),
        msgspec.structs.replace(invitation, nonce=b"\1" * 16),
    ):
        assert run_id(other) != run_id(invitation)
    to_ann = msgspec.structs.replace(invitation, answers=ANN.public.digest)
    assert run_id(to_ann) == run_id(invitation)


def test_a_second_coordinator_cannot_refuse_whom_the_first_invited(guest):
    assert guest.gets(guest.invitation) == []
    refusal = Refusal(IMPOSTOR.public, "go away", guest.identity.digest)
    assert guest.gets(refusal, IMPOSTOR) == ["other coordinator"]
    assert guest.gets(msgspec.structs.replace(refusal, identity=BOSS.public), IMPOSTOR) == [
        "bad signature"
    ]


def test_a_welcome_is_for_whom_it_names(guest):
    assert guest.gets(guest.invitation) == []
    assert guest.gets(Welcome(BEN.public.fingerprint)) == ["misdirected"]
    assert guest.gets(Welcome(guest.identity.fingerprint)) == []


def test_only_the_coordinator_speaks_for_itself(guest):
    assert guest.gets(guest.invitation) == []
    guest.mailbox.keys["ben"] = BEN.public
    welcome = Welcome(guest.identity.fingerprint)
    assert guest.gets(welcome, BEN, sender="ben") == ["not the coordinator"]
    assert guest.gets(welcome) == []


def test_two_rosters_for_one_attempt_are_noticed():
    class Twice(Mailbox):
        async def tell(self, session, target, message):
            if isinstance(message, Roster):
                other = Roster(message.attempt, message.members, (Exclusion("zoe", "left"),))
                await super().tell(session, target, other)
            return await super().tell(session, target, message)

    _, ends = simulate(STUDY, RECORDS, coordinator=with_mailbox(Coordinator, Twice))
    for end in ends.values():
        assert isinstance(end, Misconduct)
        assert "it sent two different rosters for one attempt" in str(end)


def test_announcements_from_which_nothing_can_follow_are_the_coordinator_s_fault(monkeypatch):
    async def nowhere(*_):
        raise InputError("there is no such design")

    monkeypatch.setattr(type(STUDY.protocol), "party", nowhere)
    _, ends = simulate(STUDY, RECORDS)
    for end in ends.values():
        assert end.culprits == (COORDINATOR,)
        assert "what the coordinator announced: there is no such design" in str(end)


def test_an_earlier_roster_does_not_come_after_a_later(guest):
    members = tuple(
        Member(name, who)
        for name, who in (
            ("ann", guest.identity), ("ben", BEN.public), ("cat", BOSS.public),
            ("dan", IMPOSTOR.public),
        )
    )  # fmt: skip
    assert guest.gets(guest.invitation) == []
    assert guest.gets(Roster(2, members, ())) == []
    assert guest.gets(Roster(1, members, ())) == ["other session"]
    assert guest.gets(Roster(2, members, ())) == ["duplicate"]


def test_what_all_compare_of_a_roster_is_this_hash_of_all_of_it():
    members = (Member("ann", ANN.public), Member("ben", BEN.public))
    roster = Roster(1, members, (Exclusion("cat", "left"),))
    assert roster_digest(roster).hex()[:32] == "f1c02c0141ad7177aff4e7d9b60488eb"
    for other in (
        Roster(2, members, roster.excluded),
        Roster(1, members[::-1], roster.excluded),
        Roster(1, (members[0], Member("ben", BOSS.public)), roster.excluded),
        Roster(1, members, ()),
    ):
        assert roster_digest(other) != roster_digest(roster)


def test_parties_of_one_process_share_no_work_across_rosters():
    """Work that rests on other keys is other work, even in the same session of the same run."""
    agents = []

    class Kept(Party):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            agents.append(self)

    outcome, _ = simulate(STUDY, RECORDS, party=Kept)
    assert outcome.result is not None
    digests = {agent.mailbox.keys_digest for agent in agents}
    assert len(digests) == 1
    assert len(digests.pop()) == 32
    mailbox = agents[0].mailbox
    session = PartySession(mailbox, "s", ("ann",), SeededRandomness(0), None, None)
    assert session.shared("what", (1,), lambda: "one roster") == "one roster"
    assert session.shared("what", (1,), lambda: "again") == "one roster"
    mailbox.keys_digest = b"another roster"
    assert session.shared("what", (1,), lambda: "another") == "another"


@pytest.mark.parametrize("asked", [1, 5])
def test_a_study_is_opened_with_as_many_as_it_allows(asked):
    study = make_study(4, SIZES, protocol=RRIndependent(keep=0.5), minimum=2)
    bad = telling(Opening, lambda _, m: msgspec.structs.replace(m, asked=asked))
    outcome, ends = simulate(study, RECORDS, coordinator=with_mailbox(Coordinator, bad))
    assert outcome.result is None
    for end in ends.values():
        assert isinstance(end, Misconduct)
        assert f"it opened the study with {asked} parties where 2 to 4 are allowed" in str(end)


# ── The verdict ────────────────────────────────────────────────────────────────────────────────


def forged(how):
    """A coordinator that makes up how one party confirms the result."""
    mailboxes = {}

    class Accomplice(Party):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            mailboxes["party-1"] = self.mailbox

    class Forging(Mailbox):
        def write(self, session, step, target, message):
            if isinstance(message, Verdict) and message.done:
                said = ResultSeen(message.result_digest)
                seen = message.seen | {"party-1": how(self, mailboxes["party-1"], said)}
                message = msgspec.structs.replace(message, seen=seen)
            return super().write(session, step, target, message)

    liar = with_mailbox(Coordinator, Forging)
    return simulate(STUDY, RECORDS, coordinator=liar, parties={"party-1": Accomplice})[1]


def confirmation(box, author, said, *, session="attempt-1", sender="party-1"):
    return letter(said, author, sender=sender, target=COORDINATOR, run=box.run, session=session)


@pytest.mark.parametrize(
    "how",
    [
        lambda box, party, said: confirmation(box, box.identity, said),
        lambda box, party, said: confirmation(box, party.identity, said, session="attempt-2"),
        lambda box, party, said: confirmation(box, party.identity, said, sender="party-2"),
        lambda box, party, said: b"junk",
        lambda box, party, said: confirmation(box, party.identity, ResultSeen(bytes(32))),
    ],
    ids=["the coordinator's own", "of another attempt", "another's", "junk", "of another result"],
)
def test_a_confirmation_that_nobody_gave_is_noticed_by_all(how):
    for end in forged(how).values():
        assert isinstance(end, Misconduct)
        assert "shows no honest confirmation of the result by party-1" in str(end)


def test_the_confirmations_above_are_forged_in_one_thing_only():
    ends = forged(lambda box, party, said: confirmation(box, party.identity, said))
    assert not any(isinstance(end, Exception) for end in ends.values())


# ── At home ────────────────────────────────────────────────────────────────────────────────────


def test_nobody_takes_part_in_a_study_whose_last_day_has_passed():
    over = msgspec.structs.replace(STUDY, expires=dt.date(2020, 1, 1))
    with pytest.raises(InputError, match="ended on 2020-01-01; nothing was sent"):
        Terms().check(over)
    Terms().check(msgspec.structs.replace(STUDY, expires=dt.date(2999, 1, 1)))
