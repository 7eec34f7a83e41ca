"""Who is let in, who is not, and what they are told."""

import asyncio

import msgspec
import pytest
from helpers import make_study, random_records, simulate, with_mailbox

from mpc_rr.agents.account import Account
from mpc_rr.agents.coordinator import Coordinator
from mpc_rr.agents.host import run_parties
from mpc_rr.agents.ledger_file import StateError
from mpc_rr.agents.party import Party
from mpc_rr.agents.terms import Terms
from mpc_rr.errors import Dropout, MpcRrError, Refused
from mpc_rr.network.envelope import COORDINATOR
from mpc_rr.network.lifecycle import Welcome
from mpc_rr.network.mailbox import Mailbox
from mpc_rr.network.memory import MemoryNetwork, MemoryTransport
from mpc_rr.protocols.rr_independent import RRIndependent
from mpc_rr.randomness import SeededRandomness
from mpc_rr.simulation.clock import run_virtual

SIZES = (2, 3)
ANSWER = msgspec.msgpack.encode("answer")
"""How the step stands in the header of an answer."""


def run_with_guest(guest, *, study=None, n=4, start_after_s=0.0, guest_first=False):
    """A study of n parties and one agent more, which ``guest(network, study)`` makes."""

    async def main():
        net, rng = MemoryNetwork(), SeededRandomness(0)
        used = study or make_study(n, SIZES)
        boss = Coordinator(used, net.attach(COORDINATOR), rng.fork("coordinator"))
        parties = [
            Party(used, f"party-{k}", record, net.attach(f"party-{k}"), rng.fork(str(k)))
            for k, record in enumerate(random_records(n, SIZES), 1)
        ]

        async def later():
            await asyncio.sleep(start_after_s)
            return await run_parties([guest(net, used)])

        async def parties_start():
            await asyncio.sleep(1.0 if guest_first else 0.0)
            return await run_parties(parties)

        return await asyncio.gather(boss.run(), parties_start(), later())

    outcome, ends, guests = run_virtual(main())
    return outcome, ends, next(iter(guests.values()))


def guest_named(name, *, seed=77, **options):
    def make(net, study):
        rng = SeededRandomness(seed)
        return Party(study, name, (0, 0), net.attach(f"guest/{name}"), rng, **options)

    return make


def test_who_comes_after_the_roster_closed_is_told():
    outcome, _, guest = run_with_guest(guest_named("late"), start_after_s=0.008)
    assert outcome.result.n == 4
    assert isinstance(guest, Refused)
    assert "the roster is closed" in str(guest)


def test_who_comes_when_all_is_over_is_told_that_nobody_answers():
    _, _, guest = run_with_guest(guest_named("late"), start_after_s=60)
    assert isinstance(guest, Dropout)
    assert "no coordinator of study 'test-study' answered within 30 s" in str(guest)


def test_who_was_cut_off_is_told_so_besides_what_else_may_be_the_reason(monkeypatch):
    """Once a moment without connection took the place of all other reasons."""
    monkeypatch.setattr(MemoryTransport, "cut_off", lambda *_: "no connection for 7 s")
    _, _, guest = run_with_guest(guest_named("late"), start_after_s=60)
    assert "is it running, on this broker" in str(guest)
    assert str(guest).endswith("; no connection for 7 s")
    assert str(guest).count("no connection") == 1


def test_one_too_many_is_told():
    study = make_study(4, SIZES)
    _, ends, guest = run_with_guest(guest_named("fifth"), study=study)
    refused = [end for end in [*ends.values(), guest] if isinstance(end, Refused)]
    assert len(refused) == 1
    assert "the roster is closed" in str(refused[0])


def test_a_taken_name_is_refused_and_its_owner_not_disturbed():
    study = make_study(5, SIZES, minimum=4)  # the lobby stays open for one more
    outcome, ends, guest = run_with_guest(guest_named("party-1"), study=study, start_after_s=0.0035)
    assert isinstance(guest, Refused)
    assert "already called 'party-1'; choose another" in str(guest)
    assert outcome.result.n == 4
    assert not any(isinstance(end, MpcRrError) for end in ends.values())


def test_a_party_of_a_name_that_is_in_the_roster_is_told_that_it_cannot_come_back():
    _, _, guest = run_with_guest(guest_named("party-1"), start_after_s=0.008)
    assert isinstance(guest, Refused)
    assert "the roster is closed" in str(guest)


def test_two_processes_with_one_identity_are_refused():
    def copy_of_party_1(net, study):
        rng = SeededRandomness(0).fork("1")
        return Party(study, "party-1", (0, 0), net.attach("copy/party-1"), rng)

    outcome, ends, guest = run_with_guest(copy_of_party_1, start_after_s=0.0035)
    assert isinstance(guest, Refused)
    assert "two processes use one identity" in str(guest)
    assert outcome.result.n == 4
    assert not any(isinstance(end, MpcRrError) for end in ends.values())


def test_a_coordinator_of_another_study_is_noticed():
    other = make_study(9, SIZES)

    def guest(net, _study):
        return Party(other, "guest", (0, 0), net.attach("guest"), SeededRandomness(3))

    _, _, end = run_with_guest(guest, guest_first=True, study=make_study(4, SIZES))
    assert isinstance(end, Refused)
    assert "runs another study under the name 'test-study'" in str(end)
    assert "compare the two files" in str(end)


@pytest.mark.parametrize("right", [True, False])
def test_a_pinned_coordinator_must_have_the_fingerprint(right):
    boss = Coordinator(
        make_study(5, SIZES),
        MemoryNetwork().attach("x"),
        SeededRandomness(0).fork("coordinator"),
    )
    fingerprint = boss.fingerprint if right else "0" * 16
    _, _, guest = run_with_guest(
        guest_named("guest", terms=Terms(coordinator_fingerprint=fingerprint)),
        study=make_study(5, SIZES, minimum=4),
    )
    if right:
        assert guest.n == 5
    else:
        assert isinstance(guest, Dropout)
        assert "no coordinator" in str(guest)


def never_admitted(until_s):
    """A party whose joins are lost for a while; it keeps what it sends."""

    def make(net, study):
        end = net.attach("guest/late")
        send, end.sent = end.send, []

        async def lossy(target, raw):
            end.sent.append(raw)
            if b"join" not in raw or asyncio.get_running_loop().time() > until_s:
                await send(target, raw)

        end.send = lossy
        made.append(end)
        return Party(study, "late", (0, 0), end, SeededRandomness(77))

    made = []
    return make, made


def test_who_hears_the_opening_but_was_not_admitted_answers_nothing():
    """Once it took the opening, which everybody hears, for its admission: it answered and paid."""
    study = make_study(5, SIZES, minimum=4, protocol=RRIndependent(keep=0.5), round_s=10)
    guest, made = never_admitted(until_s=study.deadlines.lobby_s + 1)
    outcome, _, end = run_with_guest(guest, study=study)
    assert outcome.result.n == 4
    assert isinstance(end, Refused)
    assert "the roster is closed" in str(end)
    assert not any(ANSWER in raw for raw in made[0].sent)


def test_who_hears_everything_when_all_is_over_answers_nothing():
    """Once a host that had hung for longer than a round answered nobody, and said "done"."""
    study = make_study(5, SIZES, minimum=4, protocol=RRIndependent(keep=0.5), round_s=10)
    sent, hung = [], []

    def hangs(net, study):
        end = net.attach("guest/late")
        send, recv = end.send, end.recv

        async def late():
            arrival = await recv()
            if b"opening" in arrival.raw and not hung:
                hung.append(True)
                await asyncio.sleep(25)
            return arrival

        async def kept(target, raw):
            sent.append(raw)
            await send(target, raw)

        end.send, end.recv = kept, late
        return Party(study, "late", (0, 0), end, SeededRandomness(77))

    outcome, _, end = run_with_guest(hangs, study=study, guest_first=True)
    assert outcome.result.n == 4
    assert isinstance(end, Refused)
    assert "the study ended without this party, before it could answer" in str(end)
    assert not any(ANSWER in raw for raw in sent)


def test_who_cannot_write_its_ledger_says_that_it_declines():
    """Once it was silent, and the others waited a whole round for it."""

    class FullDisk(Account):
        def charge(self, study, record, *, again=False):
            raise StateError("the ledger cannot be written")

    study = make_study(5, SIZES, minimum=4, protocol=RRIndependent(keep=0.5), round_s=10)
    guest = guest_named("full", terms=Terms(account=FullDisk()))
    outcome, _, end = run_with_guest(guest, study=study)
    assert outcome.result.n == 4
    assert isinstance(end, StateError)
    assert max(outcome.round_seconds.values()) < 1


def test_who_was_admitted_and_hears_no_more_says_for_how_long_it_waited():
    """Once it named the last of several waits alone, with its thousandths."""

    class Mute(Mailbox):
        async def post(self, session, step, target, raw):
            if step == Welcome.step:
                await super().post(session, step, target, raw)

    study = make_study(4, SIZES, lobby_s=60.5)
    _, ends = simulate(study, random_records(4, SIZES), coordinator=with_mailbox(Coordinator, Mute))
    for end in ends.values():
        assert str(end) == "coordinator sent nothing for step 'roster' within 70.5 s"


def test_too_few_in_the_lobby_end_the_study_for_all():
    study = make_study(6, SIZES, minimum=5)
    outcome, ends = simulate(study, random_records(4, SIZES))
    assert outcome.result is None
    assert "only 4 of 6 parties are there, at least 5 are needed" in outcome.cause
    assert all("only 4 of 6" in str(end) for end in ends.values())


def test_enough_in_the_lobby_go_on_after_the_deadline():
    outcome, _ = simulate(make_study(6, SIZES, minimum=4), random_records(4, SIZES))
    assert outcome.result.n == 4


def test_a_host_does_not_run_two_parties_of_one_name():
    class Named:
        name = "a"

    with pytest.raises(ValueError, match="same name"):
        run_virtual(run_parties([Named(), Named()]))
