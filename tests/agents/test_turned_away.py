"""What an honest agent would never send is turned away, one reason at a time.

Messages go straight into a mailbox, which counts why it threw one away.
"""

import asyncio
import datetime as dt
import logging
import math

import msgspec
import pytest
from helpers import make_study, random_records, simulate, telling, with_mailbox

from mpc_rr.agents import coordinator as coordinating
from mpc_rr.agents.coordinator import Coordinator
from mpc_rr.agents.outcome import State
from mpc_rr.agents.party import COORDINATOR_SILENT_S, LOBBIES, Party
from mpc_rr.agents.roster import join_claim, roster_digest, run_id
from mpc_rr.agents.terms import Terms
from mpc_rr.crypto.admission import Pass, SigningKey
from mpc_rr.crypto.identity import Identity, PublicIdentity
from mpc_rr.errors import Dropout, InputError, Misconduct, MpcRrError
from mpc_rr.network.envelope import COORDINATOR, LOBBY_SESSION, WIRE_VERSION, Again, Header
from mpc_rr.network.lifecycle import (
    Exclusion,
    Hello,
    Invitation,
    Join,
    LobbyNews,
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
from mpc_rr.network.sealed import read, write
from mpc_rr.network.session.party import PartySession
from mpc_rr.protocols.rr_independent import RRIndependent
from mpc_rr.randomness import SeededRandomness
from mpc_rr.simulation.clock import run_virtual
from mpc_rr.study.definition import Deadlines

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


class Letters:
    """An end of the network that keeps what was sent to whom."""

    address, behind, payload_bytes = COORDINATOR, False, 65024

    def __init__(self):
        self.sent, self.heard, self.gone = [], {}, set()

    async def answer(self, address, raw):
        self.sent.append((address, raw))

    async def send(self, target, raw):
        self.sent.append((target, raw))

    async def recv(self):
        await asyncio.Event().wait()

    def route(self, target, address):
        self.heard[address] = asyncio.get_running_loop().time()

    def unroute(self, target):
        pass

    def last_heard(self, address):
        return self.heard.get(address)

    def missed(self, address):
        return address in self.gone

    def cut_off(self, since):
        return None

    def crowded(self, since):
        return None


def in_the_lobby(act, study=STUDY):
    """Let something act on a coordinator in its lobby, in virtual time."""

    async def main():
        letters = Letters()
        boss = Coordinator(study, letters, SeededRandomness(1))
        running = asyncio.create_task(boss.run())
        await asyncio.sleep(0)
        await act(boss, letters)
        running.cancel()
        return await running, letters, boss

    return run_virtual(main())


def answers(letters, version=WIRE_VERSION):
    """The steps and bodies of what was sent, by address."""
    opened = [
        (address, read(raw, study=STUDY.name, runs=None, versions=(version,),
                       targets=("ann", "ben", "*")))
        for address, raw in letters.sent
    ]  # fmt: skip
    return [(address, one.envelope.header.step, one) for address, one in opened]


def hello(who, name="ann", address="box/ann", version=WIRE_VERSION, run=b"", author=None):
    header = Header(version, STUDY.name, run, LOBBY_SESSION, Hello.step, name, COORDINATOR)
    return write(header, Hello(who.public, address), author or who)


def test_a_hello_is_answered_if_it_is_signed_with_the_key_that_it_brings_and_of_no_run():
    async def act(boss, letters):
        boss.mailbox.accept(hello(ANN, author=BEN))
        boss.mailbox.accept(hello(ANN, run=boss.mailbox.run))
        await asyncio.sleep(0.1)
        assert not letters.sent
        boss.mailbox.accept(hello(ANN))
        await asyncio.sleep(0.1)

    outcome, letters, _ = in_the_lobby(act)
    assert outcome.rejected == {"bad signature": 2}
    address, step, opened = answers(letters)[0]
    assert (address, step) == ("box/ann", Invitation.step)
    invitation = opened.message(Invitation)
    assert invitation.answers == ANN.public.digest
    assert invitation.piece_bytes == 65024


def test_a_party_of_another_version_is_told_in_its_own():
    """It could read nothing else: once it heard nothing at all, and asked whether we run."""

    async def act(boss, letters):
        boss.mailbox.accept(hello(ANN, version=1))
        await asyncio.sleep(0.1)

    outcome, letters, boss = in_the_lobby(act)
    assert outcome.rejected == {"other version": 1}
    letters.sent = letters.sent[:1]
    ((address, step, opened),) = answers(letters, version=1)
    assert (address, step) == ("box/ann", Refusal.step)
    assert opened.signed_by(boss.mailbox.identity.public)
    assert opened.envelope.header.run == b""
    assert "version 1 of the wire, this coordinator version 2" in opened.message(Refusal).reason


def test_strangers_cannot_make_the_coordinator_write_without_bound():
    """Answers wait for the broker; while many do, hellos wait, and of those only so many."""

    class Slow(Letters):
        async def answer(self, address, raw):
            self.sent.append((address, raw))
            await asyncio.Event().wait()

    async def main():
        letters = Slow()
        boss = Coordinator(STUDY, letters, SeededRandomness(1))
        running = asyncio.create_task(boss.run())
        await asyncio.sleep(0)
        raw = hello(ANN)
        for number in range(40_000):
            boss.mailbox.accept(raw)
            if number % 1000 == 0:
                await asyncio.sleep(0.001)
        await asyncio.sleep(1)
        assert len(letters.sent) == coordinating.ANSWERS_UNDER_WAY
        assert boss._hellos._total <= coordinating.HELLO_BYTES
        assert boss.mailbox.rejected["flooding"] > 10_000
        running.cancel()
        await running

    run_virtual(main())


def join(desk, who, name="ann", address="box/ann", author=None, run=None):
    """What it takes to join."""
    run = desk.mailbox.run if run is None else run
    claim = join_claim(run, name, who.public)
    proof = (author or who).possession(desk.mailbox.identity.public.sealing, claim)
    return Join(who.public, address, proof)


def test_answers_go_to_the_mailbox_from_which_the_question_came(desk):
    """Once a hello's lane was the mailbox that it claimed: one connection filled all of them."""
    entry = letter(join(desk, ANN), ANN, sender="ann", target=COORDINATOR, run=desk.mailbox.run)
    for raw in (hello(ANN), entry):
        for elsewhere in ("mallory", "bo", "box/ann", ""):
            desk.mailbox.accept(raw, elsewhere)
    assert desk.mailbox.rejected == {"other mailbox": 8}
    assert len(desk.boss._hellos) == len(desk.boss._seats) == 0
    desk.mailbox.accept(hello(ANN), "box")
    desk.mailbox.accept(entry, "box")
    assert len(desk.boss._hellos) == len(desk.boss._seats) == 1


def test_hellos_of_version_1_have_no_mailbox_and_one_lane(desk):
    for number in range(50):
        desk.mailbox.accept(hello(ANN, version=1, address=f"mailbox-{number}/ann"), "")
    assert len(desk.boss._hellos) == 50
    assert len(desk.boss._hellos._lanes) == 1
    desk.mailbox.accept(hello(ANN, version=1), "mallory")
    assert len(desk.boss._hellos) == 50


def test_whoever_does_not_prove_that_the_keys_are_its_own_is_turned_away(desk):
    """Once the borrower got in with a sealing key that it had seen, and its owner did not."""
    borrowed = Identity(SeededRandomness(50))
    borrowed.public = PublicIdentity(borrowed.public.signing, ANN.public.sealing)
    claim = join_claim(desk.mailbox.run, "mallory", borrowed.public)
    guess = borrowed.possession(desk.mailbox.identity.public.sealing, claim)
    for proof in (b"", bytes(32), guess):
        attempt = Join(borrowed.public, "box/mallory", proof)
        assert desk.gets(attempt, borrowed, sender="mallory") == []
        assert "mallory" not in desk.boss._seats
    assert desk.gets(join(desk, ANN, name="other"), ANN) == []
    assert "ann" not in desk.boss._seats, "a proof is for one name"
    assert desk.gets(join(desk, ANN), ANN) == []
    assert "ann" in desk.boss._seats


def test_a_pass_is_shown_in_the_lobby(monkeypatch):
    registrar, person = (SigningKey.draw(SeededRandomness(seed)) for seed in (5, 6))
    study = msgspec.structs.replace(STUDY, registrar=registrar.public.hex())
    desk = Desk(monkeypatch, study)
    run = desk.mailbox.run
    admission = registrar.admit(study.digest, person.public)
    shown = ShowPass(ANN.public, Pass(person.public, admission, person.prove(run, ANN.public)))
    assert desk.gets(shown, ANN, session="elsewhere") == ["other session"]
    assert desk.gets(shown, BEN) == ["bad signature"]
    assert desk.gets(join(desk, ANN), ANN) == ["no pass"]
    assert desk.gets(shown, ANN, sender="x" * 60_000) == ["unknown sender"]
    assert desk.gets(shown, ANN, sender="ben") == []  # under another's name it helps nobody
    assert desk.gets(join(desk, ANN), ANN) == ["no pass"]
    assert desk.gets(shown, ANN) == []
    assert desk.gets(join(desk, ANN), ANN) == []
    assert "ann" in desk.boss._seats


def test_a_join_is_signed_with_the_key_that_it_brings(desk):
    assert desk.gets(join(desk, ANN), BEN) == ["bad signature"]
    assert desk.gets(join(desk, ANN), ANN, run=b"") == ["other run"]
    assert desk.gets(join(desk, ANN, address="../all"), ANN) == ["malformed"]
    assert desk.gets(join(desk, ANN), ANN, sender="*") == ["malformed"]
    # In another session it would stand in the transcript where nobody looks for a join.
    assert desk.gets(join(desk, ANN), ANN, session="elsewhere") == ["other session"]
    assert desk.gets(join(desk, ANN), ANN) == []


def test_a_party_that_has_died_gives_way_to_itself_when_it_comes_again():
    """Its connection says now and then that it is there; a broker says when it is gone."""
    again = Identity(SeededRandomness(51))

    async def act(boss, letters):
        desk = boss
        for who, address in ((ANN, "box/ann"), (again, "new/ann")):
            boss.mailbox.accept(
                letter(join(desk, who, address=address), who, sender="ann", target=COORDINATOR,
                       run=boss.mailbox.run)
            )  # fmt: skip
        await asyncio.sleep(0.1)
        assert boss._seats["ann"].identity == ANN.public, "it is not known yet"
        assert [step for _, step, _ in answers(letters)] == [Welcome.step]
        letters.heard["box/ann"] = -math.inf
        boss.mailbox.accept(
            letter(join(desk, again, address="new/ann"), again, sender="ann",
                   target=COORDINATOR, run=boss.mailbox.run)
        )  # fmt: skip
        await asyncio.sleep(0.1)
        assert boss._seats["ann"].identity == again.public
        assert len(boss._seats) == 1

    in_the_lobby(act)


def test_whoever_claims_the_name_of_one_who_is_there_is_turned_away():
    async def act(boss, letters):
        def claims(who, address):
            boss.mailbox.accept(
                letter(join(boss, who, address=address), who, sender="ann", target=COORDINATOR,
                       run=boss.mailbox.run)
            )  # fmt: skip

        claims(ANN, "box/ann")
        claims(BEN, "box/ben")
        await asyncio.sleep(1)
        letters.heard["box/ann"] = asyncio.get_running_loop().time()  # it says that it is there
        claims(BEN, "box/ben")
        await asyncio.sleep(0.1)
        address, step, opened = answers(letters)[-1]
        assert (address, step) == ("box/ben", Refusal.step)
        assert "already called 'ann'" in opened.message(Refusal).reason
        assert boss._seats["ann"].identity == ANN.public

    in_the_lobby(act)


def test_the_dead_keep_no_seats_when_the_roster_closes():
    """Once they counted towards the minimum, and the study began with them."""
    study = make_study(4, SIZES, minimum=3, lobby_s=100)

    async def main():
        letters = Letters()
        boss = Coordinator(study, letters, SeededRandomness(1))
        running = asyncio.create_task(boss.run())
        await asyncio.sleep(0)
        for number, who in enumerate((ANN, BEN, IMPOSTOR), 1):
            name = f"p{number}"
            boss.mailbox.accept(
                letter(join(boss, who, name=name, address=f"box/{name}"), who, sender=name,
                       target=COORDINATOR, run=boss.mailbox.run)
            )  # fmt: skip
        return await running

    outcome = run_virtual(main())
    assert outcome.cause.startswith("only 0 of 4 parties are there, at least 3 are needed")
    assert "p3 was gone before the study began" in outcome.cause
    assert [one.name for one in outcome.excluded] == ["p1", "p2", "p3"]


def people(boss, letters):
    """Joins a coordinator's lobby under a name, from an address."""

    def joins(who, name, address):
        boss.mailbox.accept(
            letter(join(boss, who, name=name, address=address), who, sender=name,
                   target=COORDINATOR, run=boss.mailbox.run)
        )  # fmt: skip

    return joins


@pytest.mark.parametrize("there", [False, True])
def test_a_roster_is_not_closed_before_it_is_known_whether_one_is_there(there):
    """Once a dead one kept its seat if the last of the others came a second after it did again."""
    again, other = (Identity(SeededRandomness(seed)) for seed in (51, 52))

    async def act(boss, letters):
        joins = people(boss, letters)
        joins(ANN, "ann", "box/ann")
        await asyncio.sleep(1)
        joins(again, "ann", "new/ann")
        for name, who in (("ben", BEN), ("cat", IMPOSTOR), ("dan", other)):
            joins(who, name, f"box/{name}")
        await asyncio.sleep(2)
        assert boss.progress.state is State.LOBBY
        letters.heard["box/ann"] = asyncio.get_running_loop().time() if there else -math.inf
        joins(again, "ann", "new/ann")
        await asyncio.sleep(2)
        assert boss.progress.state is not State.LOBBY
        assert boss._seats["ann"].identity == (ANN if there else again).public

    in_the_lobby(act)


def test_a_roster_is_not_closed_with_one_whom_the_broker_has_just_missed():
    """It may have it again in a moment. Once the study began with it, whoever came in its place."""

    async def act(boss, letters):
        joins = people(boss, letters)
        joins(ANN, "ann", "box/ann")
        letters.gone.add("box/ann")
        others = [BEN, IMPOSTOR, Identity(SeededRandomness(52))]
        for name, who in zip(("ben", "cat", "dan"), others, strict=True):
            joins(who, name, f"box/{name}")
        await asyncio.sleep(2)
        assert boss.progress.state is State.LOBBY
        letters.gone.clear()
        await asyncio.sleep(2)
        assert boss.progress.state is not State.LOBBY

    in_the_lobby(act)


def test_a_lobby_that_was_full_twice_within_a_moment_disturbs_no_round():
    """Once one batch of a stranger ended the study: the second news was raised in its first wait,
    as a failure of the protocol or, before that, with a trace and no verdict at all."""
    gone, again, late = (Identity(SeededRandomness(seed)) for seed in (51, 52, 53))

    async def act(boss, letters):
        joins = people(boss, letters)
        joins(gone, "x", "box/x")
        letters.heard["box/x"] = -math.inf
        for name, who in (("ann", ANN), ("ben", BEN), ("cat", IMPOSTOR)):
            joins(who, name, f"box/{name}")
        joins(again, "x", "new/x")  # full again, by taking the place of one who is gone
        joins(late, "late", "box/late")
        await asyncio.sleep(1)
        assert boss.progress.state is State.ROSTER
        assert boss.progress.wanted == 4
        assert not boss.mailbox._news

    in_the_lobby(act)


@pytest.mark.parametrize("where", ["_lobby", "_show_roster"])
def test_a_coordinator_whose_program_fails_pronounces_a_verdict_all_the_same(where, monkeypatch):
    """Once it ended with a trace: no verdict for those who waited, and no folder."""

    async def broken(*_):
        raise KeyError("what nobody thought of")

    monkeypatch.setattr(Coordinator, where, broken)
    outcome, ends = simulate(STUDY, RECORDS)
    assert outcome.result is None
    assert isinstance(outcome.fault, KeyError)
    assert "the coordinator's program failed (KeyError: 'what nobody" in outcome.cause
    assert all(isinstance(end, MpcRrError) for end in ends.values())
    if where == "_show_roster":
        assert all("the coordinator's program failed" in str(end) for end in ends.values())


@pytest.mark.parametrize(
    ("act", "cut_off", "why"),
    [
        (lambda boss: hello(ANN, version=1), None, "ann, perhaps among others, is turned away"),
        (lambda boss: letter(join(boss, ANN, run=b"r" * 32), ANN, sender="ann",
                             target=COORDINATOR, run=b"r" * 32), None, "a second coordinator"),
        (lambda boss: hello(ANN), None, "some asked for the study and were invited, and none has"),
        (lambda boss: b"", "this process had no connection", "this process had no connection"),
    ],
    ids=["another version", "another run", "no rights", "no connection"],
)  # fmt: skip
def test_if_nobody_is_there_the_cause_says_what_is_known_of_it(act, cut_off, why, monkeypatch):
    """Once only the log did, if anything; the parties and the result folder blamed the absent."""
    monkeypatch.setattr(Letters, "cut_off", lambda self, since: cut_off)

    async def main():
        boss = Coordinator(STUDY, Letters(), SeededRandomness(1))
        running = asyncio.create_task(boss.run())
        await asyncio.sleep(0)
        boss.mailbox.accept(act(boss))
        return await running

    outcome = run_virtual(main())
    assert outcome.cause.startswith("only 0 of 4 parties are there, at least 4 are needed; the lob")
    assert why in outcome.cause


def test_if_nobody_gets_through_a_flood_the_cause_says_so(monkeypatch):
    """Once it asked for rights that all had."""
    monkeypatch.setattr(Letters, "crowded", lambda *_: "9,000 messages have come in")

    async def main():
        boss = Coordinator(STUDY, Letters(), SeededRandomness(1))
        running = asyncio.create_task(boss.run())
        await asyncio.sleep(0)
        boss.mailbox.accept(hello(ANN))
        return await running

    cause = run_virtual(main()).cause
    assert cause.endswith("; the lobby closed after 30 s: 9,000 messages have come in")


def test_of_each_person_one_pass_waits(monkeypatch):
    """Once every identity's was kept: one admitted person could fill the memory."""
    registrar, person = (SigningKey.draw(SeededRandomness(seed)) for seed in (5, 6))
    study = msgspec.structs.replace(STUDY, registrar=registrar.public.hex())
    desk = Desk(monkeypatch, study)
    admission, run = registrar.admit(study.digest, person.public), desk.mailbox.run
    for number in range(20):
        who = Identity(SeededRandomness(100 + number))
        shown = Pass(person.public, admission, person.prove(run, who.public))
        assert desk.gets(ShowPass(who.public, shown), who, sender=f"p{number}") == []
    assert len(desk.boss.desk._waiting) == len(desk.boss.desk._persons) == 1
    assert desk.gets(join(desk, who, name="p19"), who, sender="p19") == []
    assert "p19" in desk.boss._seats


def entry(boss, who, name):
    """The signed words by which somebody joins, and by which it leaves."""
    return [
        letter(message, who, sender=name, target=COORDINATOR, run=boss.mailbox.run, session=session)
        for message, session in (
            (join(boss, who, name=name, address=f"box/{name}"), LOBBY_SESSION),
            (Objection(COORDINATOR, "", "", "I do not like it"), ""),
        )
    ]


def test_whoever_comes_and_goes_in_the_lobby_leaves_nothing_behind():
    """Once each left an entry in the roster, until nobody could read it any more."""

    async def act(boss, letters):
        for number in range(50):
            for raw in entry(boss, Identity(SeededRandomness(200 + number)), f"mallory-{number}"):
                boss.mailbox.accept(raw)
            await asyncio.sleep(0.01)
        assert len(boss._seats) == 0
        assert not boss._excluded
        assert not boss._objected
        assert not boss.mailbox.traffic
        # Who left may come again, and object again.
        who = Identity(SeededRandomness(200))
        boss.mailbox.accept(
            letter(join(boss, who, name="mallory-0", address="box/m"), who, sender="mallory-0",
                   target=COORDINATOR, run=boss.mailbox.run)
        )  # fmt: skip
        assert "mallory-0" in boss._seats

    in_the_lobby(act)


def test_whoever_has_left_does_not_come_again_by_the_same_words():
    """Once anybody who had kept them could have a party join and leave without end."""

    async def act(boss, letters):
        joins, leaves = entry(boss, ANN, "ann")
        for raw in (joins, joins, leaves):
            boss.mailbox.accept(raw)  # it may have asked twice
        await asyncio.sleep(0.1)
        assert not boss.mailbox.rejected
        sent = len(letters.sent)
        for raw in (joins, leaves) * 20:
            boss.mailbox.accept(raw)
            await asyncio.sleep(0.01)
        assert "ann" not in boss._seats
        assert len(letters.sent) == sent, "nobody is answered"
        assert boss.mailbox.rejected == {"duplicate": 20, "unknown sender": 20}

    in_the_lobby(act)


def test_whoever_was_missed_before_it_was_welcomed_may_ask_again_by_the_same_words():
    """A party signs its join once, and repeats it until it is answered."""

    async def act(boss, letters):
        joins, _ = entry(boss, ANN, "ann")
        boss.mailbox.accept(joins)
        letters.heard["box/ann"] = -math.inf
        boss._let_go_of_the_gone()
        assert "ann" not in boss._seats
        boss.mailbox.accept(joins)
        assert "ann" in boss._seats

    in_the_lobby(act)


def test_whoever_repeats_its_join_has_one_admission_on_its_way():
    """Once each repetition was answered with another, however many could not be sent yet."""

    async def act(boss, letters):
        async def slow(target, raw):
            await asyncio.sleep(5)
            letters.sent.append((target, raw))

        letters.send = slow
        joins, _ = entry(boss, ANN, "ann")
        for _ in range(500):
            boss.mailbox.accept(joins)
            await asyncio.sleep(0.001)
        assert len(boss.mailbox._tasks) < 10
        await asyncio.sleep(5)
        boss.mailbox.accept(joins)  # the first may have been lost
        await asyncio.sleep(6)
        assert [step for _, step, _ in answers(letters)].count(Welcome.step) == 2

    in_the_lobby(act, msgspec.structs.replace(STUDY, deadlines=Deadlines(600.0, 10.0)))


def test_those_who_come_and_go_fill_no_log(caplog):
    """Once each who left made a line, as many as one likes."""
    caplog.set_level(logging.INFO, "mpc_rr.coordinator")

    async def act(boss, letters):
        for number in range(300):
            name = f"mallory-{number}"
            joins, leaves = entry(boss, Identity(SeededRandomness(200 + number % 3)), name)
            boss.mailbox.accept(joins)
            if number % 2:
                boss.mailbox.accept(leaves)
                await asyncio.sleep(0.001)
            else:
                letters.heard[f"box/{name}"] = -math.inf
                boss._let_go_of_the_gone()
        assert len(boss._seats) == 0
        assert len(caplog.messages) == coordinating.MOST_LINES
        assert "mallory-0 was gone before the study began" in caplog.messages[0]
        assert "mallory-1 left: I do not like it" in caplog.messages[1]
        await asyncio.sleep(coordinating.NEWS_S)
        left_out = 300 - coordinating.MOST_LINES
        assert caplog.messages[-1] == f"0 of 4 parties are there; {left_out} more came and went"
        await asyncio.sleep(coordinating.NEWS_S)
        assert caplog.messages[-1] == "0 of 4 parties are there"
        for raw in entry(boss, ANN, "ann"):
            boss.mailbox.accept(raw)
        await asyncio.sleep(0.1)
        assert "ann left: I do not like it" in caplog.messages[-1]

    in_the_lobby(act, msgspec.structs.replace(STUDY, deadlines=Deadlines(600.0, 10.0)))


def test_ever_new_coordinators_hold_nobody_in_the_lobby_for_ever():
    """Once each that took over from the one before began all deadlines anew."""
    study = make_study(4, SIZES, lobby_s=60, round_s=10)

    async def coordinators(end, seen):
        """Whenever the party asks again there is another, who admits it and falls silent."""
        since, boss = -math.inf, BOSS
        while True:
            opened = read((await end.recv()).raw, study=study.name, runs=None,
                          targets=(COORDINATOR,))  # fmt: skip
            now, step = asyncio.get_running_loop().time(), opened.envelope.header.step
            if step == Hello.step and now - since > COORDINATOR_SILENT_S:
                boss = Identity(SeededRandomness(1000 + len(seen)))
                seen.append(now)
            if step not in (Hello.step, Join.step):
                continue
            since = now
            who = opened.message(Hello if step == Hello.step else Join).identity
            invitation = Invitation(boss.public, study.digest, bytes(16), who.digest, 65024)
            author = opened.envelope.header.sender
            answer = invitation
            if step == Join.step:
                answer = Welcome(who.fingerprint)
            run = run_id(invitation)
            header = Header(WIRE_VERSION, study.name, run, LOBBY_SESSION, answer.step,
                            COORDINATOR, author)  # fmt: skip
            await end.answer("ann", write(header, answer, boss))

    async def main():
        network, seen = MemoryNetwork(), []
        liars = asyncio.create_task(coordinators(network.attach(COORDINATOR), seen))
        party = Party(study, "ann", RECORDS[0], network.attach("ann"), SeededRandomness(5))
        with pytest.raises(Dropout, match="sent nothing for step 'roster'"):
            await asyncio.wait_for(party.run(), 3600)
        liars.cancel()
        return len(seen), asyncio.get_running_loop().time()

    coordinators_seen, seconds = run_virtual(main())
    assert coordinators_seen > 3
    assert seconds == pytest.approx(LOBBIES * 60 + 10, abs=3)


@pytest.mark.parametrize("same", [True, False])
def test_with_passes_the_seat_of_one_who_is_gone_is_only_its_own_person_s(same):
    """Once anybody who was admitted could take the name of one that was cut off for a moment."""
    registrar, ann, ben = (SigningKey.draw(SeededRandomness(seed)) for seed in (5, 6, 7))
    study = msgspec.structs.replace(STUDY, registrar=registrar.public.hex())
    again = Identity(SeededRandomness(51))

    async def act(boss, letters):
        def comes(person, who, address):
            proof = person.prove(boss.mailbox.run, who.public)
            admission = registrar.admit(study.digest, person.public)
            shown = ShowPass(who.public, Pass(person.public, admission, proof))
            for message in (shown, join(boss, who, address=address)):
                boss.mailbox.accept(
                    letter(message, who, sender="ann", target=COORDINATOR, run=boss.mailbox.run)
                )

        comes(ann, ANN, "box/ann")
        letters.heard["box/ann"] = -math.inf
        comes(ann if same else ben, again, "new/ann")
        await asyncio.sleep(0.1)
        assert boss._seats["ann"].identity == (again if same else ANN).public
        _, step, opened = answers(letters)[-1]
        assert step == (Welcome if same else Refusal).step
        assert same or "already called 'ann'" in opened.message(Refusal).reason

    in_the_lobby(act, study)


def test_who_shows_her_pass_too_late_is_told_all_the_same(monkeypatch):
    """Nothing that is shown is looked at any more; so nobody must wait for it either."""
    registrar, person = (SigningKey.draw(SeededRandomness(seed)) for seed in (5, 6))
    study = msgspec.structs.replace(STUDY, registrar=registrar.public.hex())
    desk, refused = Desk(monkeypatch, study), []
    monkeypatch.setattr(desk.boss, "_refuse", lambda *given: refused.append(given[1:]))
    proof = person.prove(desk.mailbox.run, ANN.public)
    admission = registrar.admit(study.digest, person.public)
    monkeypatch.setattr(desk.boss, "_state", State.ROSTER)
    shown = ShowPass(ANN.public, Pass(person.public, admission, proof))
    assert desk.gets(shown, ANN) == ["other session"]
    assert desk.gets(join(desk, ANN), ANN) == []
    assert refused == [("box/ann", "ann", coordinating.TOO_LATE)]


@pytest.mark.parametrize("slow_s", [0, 0.1])
def test_whoever_left_before_its_admission_was_sent_leaves_nothing_either(slow_s):
    """Once the admission was entered after all was forgotten: the signed account of what the study
    cost had a line for every stranger who had joined and left in one breath."""

    class Slow(Letters):
        async def send(self, target, raw):
            await asyncio.sleep(slow_s)
            self.sent.append((target, raw))

    async def main():
        boss = Coordinator(STUDY, Slow(), SeededRandomness(1))
        running = asyncio.create_task(boss.run())
        await asyncio.sleep(11)  # there were news, which one can ask for again
        kept = dict(boss.mailbox.traffic), dict(boss.mailbox._sent)
        for number in range(20):
            who, name = Identity(SeededRandomness(200 + number)), f"mallory-{number}"
            for message, session in (
                (join(boss, who, name=name, address=f"box/{name}"), LOBBY_SESSION),
                (Again(LOBBY_SESSION, LobbyNews.step), LOBBY_SESSION),
                (Objection(COORDINATOR, "", "", "I do not like it"), ""),
            ):
                boss.mailbox.accept(
                    letter(message, who, sender=name, target=COORDINATOR, run=boss.mailbox.run,
                           session=session)
                )  # fmt: skip
                await asyncio.sleep(slow_s / 10)
        await asyncio.sleep(1)
        assert len(boss._seats) == 0
        assert (boss.mailbox.traffic, boss.mailbox._sent) == kept
        assert not boss.mailbox._resent_at
        running.cancel()
        await running

    run_virtual(main())


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
    assert desk.gets(objection, ANN, session="s", run=b"r" * 32) == ["other run"]
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
        raw = letter(message, author, sender=sender, target="ann", run=run)

        async def main():
            self.mailbox.accept(raw)

        run_virtual(main())
        return sorted((self.mailbox.rejected - before).elements())


@pytest.fixture
def guest():
    return Guest()


def test_a_run_has_the_name_that_follows_from_its_invitation(guest):
    """Else a coordinator could give two runs one name, and have what is kept of one for both."""
    assert guest.gets(guest.invitation, run=b"r" * 32) == ["other run"]
    assert guest.mailbox.run == b""
    assert guest.gets(guest.invitation) == []
    assert guest.mailbox.run == guest.run


def test_the_name_of_a_run_is_this_hash_of_all_that_makes_it_one(guest):
    invitation = Invitation(BOSS.public, bytes(32), bytes(16), b"")
    assert run_id(invitation, 1).hex() == "baafa44c73eef69cbd9ecbb92c4a75a3"
    assert run_id(invitation).hex() == (
        "9df5effd5296fe720fa98439394e089c82e5ababa1c78b9bc13149c15564934e"
    )
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


def test_a_second_coordinator_of_another_study_does_not_end_whom_the_first_invited(guest):
    """Once its study file, which is not ours, was said to be the coordinator's."""
    assert guest.gets(guest.invitation) == []
    useless = msgspec.structs.replace(IMPOSTOR.public, sealing=bytes(32))
    for other in (
        Invitation(IMPOSTOR.public, bytes(32), bytes(16), guest.identity.digest),
        Invitation(useless, STUDY.digest, bytes(16), guest.identity.digest),
    ):
        assert guest.gets(other, IMPOSTOR) == ["other coordinator"]
    assert not [news for news in guest.mailbox._news if isinstance(news, MpcRrError)]


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


@pytest.mark.parametrize("target", ["ann", "*"])
def test_a_coordinator_of_another_version_is_named_whomever_it_addresses(guest, target):
    """One of version 1 hears no hello of ours. Once we only asked whether any was there."""
    header = Header(1, STUDY.name, b"r" * 16, "verdict", Verdict.step, COORDINATOR, target)
    raw = write(header, Verdict(False, "nobody came", (), b"", {}, ()), BOSS)
    guest.mailbox.accept(raw)
    assert guest.mailbox.rejected == {"other version": 1}
    assert "one did that speaks version 1 of the wire" in guest.party._why_nobody()


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
