"""What a party's session takes from its coordinator, and what it refuses, one lie at a time."""

import asyncio
import logging

import pytest

from mpc_rr.crypto.identity import Identity
from mpc_rr.errors import Declined, Dropout, Misconduct
from mpc_rr.network.envelope import COORDINATOR, EVERYONE, Bundle, Header, Message
from mpc_rr.network.mailbox import Mailbox
from mpc_rr.network.sealed import write
from mpc_rr.network.session.base import Limits
from mpc_rr.network.session.live import LiveSession
from mpc_rr.network.session.party import PartySession, Person
from mpc_rr.protocols.board.commitment import Commitments
from mpc_rr.protocols.registry import known
from mpc_rr.protocols.sums.masked.setup import Die, KeysFixed, MaskKeys
from mpc_rr.protocols.sums.masked.sum import ConfidedVector, MaskShares, rounds
from mpc_rr.protocols.sums.secure_sum import Partial, Share
from mpc_rr.randomness import SeededRandomness
from mpc_rr.simulation.clock import run_virtual

PARTIES = ("alice", "bob", "carol")
IDENTITIES = {
    name: Identity(SeededRandomness(f"identity of {name}")) for name in (*PARTIES, COORDINATOR)
}
RUN = b"r" * 32
SESSION = "attempt-1"
MASKED_STEPS = (*rounds(confided=False, vouching=True), *rounds(confided=True, vouching=True))


class Nowhere:
    """A transport that loses everything: what comes is put into the mailbox by hand."""

    address = "nowhere"
    behind = False

    def cut_off(self, since):
        return None

    def crowded(self, since):
        return None

    async def send(self, target, raw):
        pass


def mailbox(name, *, run=RUN, identity=None, keys_digest=b"roster", size_limit=10**5):
    identity = identity or IDENTITIES[name]
    box = Mailbox(name, identity, Nowhere(), study="s", ask_again_s=1.0, size_limit=size_limit)
    box.run, box.session_root, box.keys_digest = run, SESSION, keys_digest
    box.keys = {other: keys.public for other, keys in IDENTITIES.items() if other != name}
    return box


def session(name="alice", *, called=SESSION, disclose=lambda: None, comparable=False, **how):
    limits = Limits(3, 3, round_s=5.0, comparable=comparable)
    person = Person(
        once=lambda label, draw, given: draw(SeededRandomness(label)),
        disclose=disclose,
        spend=lambda disclosures: None,
        pass_fault=lambda identity, shown: None,
    )
    box = mailbox(name, **how)
    return PartySession(box, called, PARTIES, SeededRandomness(name), limits, person)


def coordinator(**limits):
    limits = Limits(**({"fewest": 3, "most": 3, "round_s": 5.0} | limits))
    return LiveSession(
        mailbox(COORDINATOR), SESSION, PARTIES, SeededRandomness(0), limits, lambda name: None
    )


def written(sender, step, target, message, *, by=None, called=SESSION, run=RUN):
    """What somebody wrote, or ``by`` wrote in somebody's name."""
    header = Header(2, "s", run, called, step, sender, target)
    sealed = getattr(message, "sealed", False)
    reader = IDENTITIES[target].public if sealed else None
    return write(header, message, IDENTITIES[by or sender], reader)


def bundle(step, parcels, *, target="alice"):
    return written(COORDINATOR, step, target, Bundle(parcels))


def shares(*, target="alice", **changed):
    honest = {
        name: written(name, "share", target, Share(name.encode()))
        for name in PARTIES
        if name != target
    }
    return honest | changed


def partials(**changed):
    honest = {name: written(name, "partial", EVERYONE, Partial(name.encode())) for name in PARTIES}
    return honest | changed


def exchanged(parcels, **how):
    """What Alice makes of the parcels that the coordinator hands her."""
    mine = session(**how)
    mine.mailbox.accept(bundle("share", parcels))
    return run_virtual(mine.exchange({name: Share(b"alice") for name in mine.others}))


def published(parcels, **how):
    """What Alice makes of what the coordinator says that all have published."""
    mine = session(**how)
    mine.mailbox.accept(bundle("partial", parcels, target=EVERYONE))
    return run_virtual(mine.publish(Partial(b"alice")))


def refusal(act, *args, **how):
    with pytest.raises(Misconduct) as refused:
        act(*args, **how)
    return str(refused.value), refused.value.culprits


def test_what_is_in_order_is_taken():
    assert exchanged(shares()) == {"bob": Share(b"bob"), "carol": Share(b"carol")}
    assert published(partials()) == {name: Partial(name.encode()) for name in PARTIES}


# ── Parcels ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("by", [COORDINATOR, "carol"])
def test_a_parcel_that_its_sender_did_not_sign_is_refused(by):
    """Else the coordinator, who can seal to anybody, could choose the shares that a party adds."""
    forged = written("bob", "share", "alice", Share(b"forged"), by=by)
    says, culprits = refusal(exchanged, shares(bob=forged))
    assert "bob's message for step 'share'" in says
    assert "its signature is not the sender's" in says
    assert culprits == ("bob", COORDINATOR)


@pytest.mark.parametrize("name", PARTIES)
def test_what_another_is_said_to_have_published_must_be_signed_by_it(name):
    """Whatever another bundle held that was in order."""
    published(partials())
    forged = written(name, "partial", EVERYONE, Partial(b"forged"), by=COORDINATOR)
    says, culprits = refusal(published, partials(**{name: forged}))
    assert f"{name}'s message for step 'partial'" in says
    assert "its signature is not the sender's" in says
    assert culprits == (COORDINATOR,)


def test_what_i_published_must_come_back_as_i_wrote_it():
    """Even if somebody has my key, and signs something else in my name."""
    other = written("alice", "partial", EVERYONE, Partial(b"not what I said"))
    says, culprits = refusal(published, partials(alice=other))
    assert "the coordinator altered my message for step 'partial'" in says
    assert culprits == (COORDINATOR,)


def test_who_published_what_cannot_be_is_named_with_the_coordinator_who_handed_it_on():
    """Bob signed it; an honest coordinator would have found it before anybody else."""

    def check(message):
        if message.residues == b"bob":
            raise ValueError("that cannot be")

    mine = session()
    mine.mailbox.accept(bundle("partial", partials(), target=EVERYONE))
    says, culprits = refusal(lambda: run_virtual(mine.publish(Partial(b"alice"), check=check)))
    assert "bob's message for step 'partial': that cannot be" in says
    assert culprits == ("bob", COORDINATOR)


def test_an_exchange_is_with_every_other_party():
    with pytest.raises(ValueError, match="writes to every other party"):
        run_virtual(session().exchange({"bob": Share(b"")}))


@pytest.mark.parametrize(
    ("parcel", "says"),
    [
        (written("bob", "share", "alice", Share(b""), called="attempt-2"), "another step"),
        (written("bob", "other", "alice", Share(b"")), "another step"),
        (written("carol", "share", "alice", Share(b"")), "another step"),
        (written("bob", "share", "alice", Share(b""), run=b"q" * 32), "other run"),
        (written("bob", "share", "carol", Share(b"")), "misdirected"),
        (b"junk", "malformed"),
    ],
    ids=["session", "step", "sender", "run", "reader", "junk"],
)
def test_a_parcel_from_elsewhere_is_refused(parcel, says):
    assert says in refusal(exchanged, shares(bob=parcel))[0]


def test_a_parcel_longer_than_a_party_s_part_of_a_bundle_is_refused():
    """Three parties share what a message may hold: nobody may take the others' room."""
    long = written("bob", "share", "alice", Share(bytes(40_000)))
    says, culprits = refusal(exchanged, shares(bob=long))
    assert "a sealed message is longer than 33333 bytes" in says
    assert culprits == (COORDINATOR,)
    fits = shares(bob=written("bob", "share", "alice", Share(bytes(33_000))))
    assert exchanged(fits)["bob"] == Share(bytes(33_000))


def test_the_coordinator_names_who_sends_it_a_parcel_that_is_too_long():
    boss = coordinator()
    for name in PARTIES:
        size = 40_000 if name == "carol" else 1
        parcels = {other: bytes(size) for other in PARTIES if other != name}
        boss.mailbox.accept(written(name, "share", COORDINATOR, Bundle(parcels)))
    says, culprits = refusal(lambda: run_virtual(boss.route(Share)))
    assert "carol's bundle for step 'share': a sealed message is longer than 33333 bytes" in says
    assert culprits == ("carol",)


# ── To all, or to me alone ─────────────────────────────────────────────────────────────────────


def test_what_is_for_all_is_not_taken_if_it_comes_to_me_alone():
    """Whatever is announced must be the same for everybody: no copy for one may be."""
    mine = session()
    told = KeysFixed(bytes(32), b"")
    mine.mailbox.accept(written(COORDINATOR, told.step, "alice", told))
    says, culprits = refusal(lambda: run_virtual(mine.hear(KeysFixed)))
    assert "the coordinator tells me alone what is for all (step 'keys_fixed')" in says
    assert culprits == (COORDINATOR,)
    assert not mine.mailbox.transcript


def test_what_is_for_me_alone_is_not_taken_if_it_goes_to_all():
    mine = session()
    mine.mailbox.accept(written(COORDINATOR, "die", EVERYONE, Die(b"die")))
    says, culprits = refusal(lambda: run_virtual(mine.told(Die)))
    assert "the coordinator tells all what is for me alone (step 'die')" in says
    assert culprits == (COORDINATOR,)


def test_what_was_heard_is_in_the_transcript():
    mine, told = session(), KeysFixed(bytes(32), b"")
    raw = written(COORDINATOR, told.step, EVERYONE, told)
    mine.mailbox.accept(raw)
    assert run_virtual(mine.hear(KeysFixed)) == told
    assert mine.mailbox.transcript == [raw]


# ── The coordinator's side ─────────────────────────────────────────────────────────────────────


def reported(boss, kind, messages, **how):
    for raw in messages:
        boss.mailbox.accept(raw)
    return run_virtual(boss.gather(kind, **how))


def dice(*names):
    return [written(name, "die", COORDINATOR, Die(name.encode())) for name in names]


def test_a_report_to_all_is_none():
    """Others would say that its author wrote no such report to the coordinator."""
    odd = written("bob", "die", EVERYONE, Die(b"bob"))
    gathered = reported(coordinator(fewest=2), Die, [*dice("alice", "carol"), odd])
    assert set(gathered.messages) == {"alice", "carol"}
    assert "it is not addressed to me" in gathered.faulty["bob"]


@pytest.mark.parametrize(
    ("came", "how", "enough"),
    [
        (3, {}, True),
        (2, {}, False),
        (2, {"at_least": 2}, True),
        (1, {"at_least": 2}, False),
        (0, {"senders": PARTIES}, True),
    ],
)
def test_whether_enough_have_reported(came, how, enough):
    """All parties are held to what the study needs, some of them to what is asked."""
    boss, messages = coordinator(), dice(*PARTIES[:came])
    if enough:
        assert len(reported(boss, Die, messages, **how).messages) == came
        return
    with pytest.raises(Dropout, match=f"only {came} of 3 parties answered, at least {came + 1}"):
        reported(boss, Die, messages, **how)


def test_what_is_confided_is_in_no_transcript():
    boss = coordinator()
    sealed = [
        written(name, ConfidedVector.step, COORDINATOR, ConfidedVector(b"")) for name in PARTIES
    ]
    assert len(reported(boss, ConfidedVector, sealed).messages) == 3
    assert not boss.mailbox.transcript
    public = dice(*PARTIES)
    assert len(reported(boss, Die, public).messages) == 3
    assert boss.mailbox.transcript == public


def test_what_is_published_must_be_addressed_to_all():
    boss = coordinator()
    for name in PARTIES:
        target = COORDINATOR if name == "bob" else EVERYONE
        boss.mailbox.accept(written(name, "partial", target, Partial(b"")))
    says, culprits = refusal(lambda: run_virtual(boss.relay(Partial)))
    assert "bob's message for step 'partial' is not addressed to all" in says
    assert culprits == ("bob",)


def test_the_coordinator_announces_nothing_that_would_not_pass():
    boss = coordinator()

    async def make():
        return Die(b"loaded")

    def check(message):
        raise ValueError("a loaded die")

    with pytest.raises(ValueError, match="a loaded die"):
        run_virtual(boss.announce_made(Die, make, check=check))
    assert not boss.mailbox.transcript


# ── Sessions below a session ───────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("top", [session, coordinator], ids=["party", "coordinator"])
def test_what_is_drawn_in_one_session_is_not_drawn_again_in_another(top):
    above = top()
    sessions = (above, above.sub("sum-1"), above.sub("sum-2"))
    assert len({one.rng.fork("secret").bytes(16) for one in sessions}) == 3


@pytest.mark.parametrize("top", [session, coordinator], ids=["party", "coordinator"])
def test_the_point_of_no_return_is_passed_above_and_below(top):
    above = top()
    below, beside = above.sub("sum-1"), above.sub("sum-2")
    assert not above.past_return
    below.point_of_no_return()
    assert above.past_return
    assert beside.past_return


def test_a_session_below_may_go_on_with_fewer():
    assert coordinator().sub("some").fewest == 3
    assert coordinator().sub("some", fewest=2).fewest == 2
    assert coordinator().sub("some", fewest=2).most == 3


# ── What parties of one process work out once ──────────────────────────────────────────────────


def test_parties_who_heard_the_same_share_what_follows():
    done = []
    for name in PARTIES:
        session(name).shared("what follows", ("heard",), lambda: done.append(1))
    assert len(done) == 1


@pytest.mark.parametrize(
    "other",
    [
        {"keys_digest": b"another roster"},
        {"run": b"q" * 32},
        {"called": f"{SESSION}/sub"},
    ],
    ids=["roster", "run", "session"],
)
def test_nothing_is_shared_with_whoever_was_shown_another(other):
    """A signature that is good by one roster is not by another, though the bytes are the same."""
    label = f"not shared: {sorted(other)}"
    assert session().shared(label, (), lambda: "mine") == "mine"
    assert session("bob", **other).shared(label, (), lambda: "theirs") == "theirs"


def test_a_bundle_that_was_good_by_one_roster_is_checked_again_by_another():
    """Two parties of a host, one of whom the coordinator showed another key for Carol."""
    stranger = Identity(SeededRandomness("not Carol"))
    parcels = partials(bob=written("bob", "partial", EVERYONE, Partial(b"the same for all")))
    assert published(parcels)["carol"] == Partial(b"carol")
    fooled = session("alice", keys_digest=b"another roster")
    fooled.mailbox.keys["carol"] = stranger.public
    fooled.mailbox.accept(bundle("partial", parcels, target=EVERYONE))
    says, _ = refusal(lambda: run_virtual(fooled.publish(Partial(b"alice"))))
    assert "carol's message for step 'partial'" in says
    assert "its signature is not the sender's" in says


def test_what_is_bound_to_a_session_is_bound_to_its_study_run_and_name():
    contexts = [session(), session(run=b"q" * 32), session(called="attempt-2"), session()]
    contexts[3].mailbox.study = "another"
    assert len({one.context for one in contexts}) == 4
    assert session("bob").context == contexts[0].context


# ── Nothing leaves unentered ───────────────────────────────────────────────────────────────────

WAYS = {
    "report": lambda mine, message: mine.report(message),
    "confide": lambda mine, message: mine.confide(message),
    "send": lambda mine, message: mine.send(COORDINATOR, message),
    "exchange": lambda mine, message: mine.exchange(dict.fromkeys(mine.others, message)),
    "publish": lambda mine, message: mine.publish(message),
}


def leaving(way, message, disclose, *, comparable=False):
    """A message leaves Alice in some way: what was posted, and whether there is a way back."""
    posted = []

    class Watched(Nowhere):
        async def send(self, target, raw):
            posted.append(raw)
            raise Dropout("enough was seen")

    mine = session(disclose=lambda: disclose(posted), comparable=comparable)
    mine.mailbox.transport = Watched()
    with pytest.raises((Dropout, Declined)) as end:
        run_virtual(WAYS[way](mine, message))
    return posted, mine.past_return, end.value


@pytest.mark.parametrize("way", WAYS)
def test_what_tells_of_the_record_is_entered_before_it_leaves(way):
    entered = []

    def disclose(posted):
        entered.append(len(posted))

    posted, past_return, _ = leaving(way, Partial(b"x"), disclose)
    assert entered == [0]  # when nothing had been posted
    assert posted
    assert not past_return


@pytest.mark.parametrize("way", WAYS)
def test_what_could_be_compared_with_another_run_is_the_point_of_no_return(way):
    assert leaving(way, Partial(b"x"), lambda _: None, comparable=True)[1]
    assert not leaving(way, Die(bytes(16)), lambda _: None, comparable=True)[1]


@pytest.mark.parametrize("way", WAYS)
def test_who_declines_sends_nothing(way):
    def disclose(posted):
        raise Declined("no")

    posted, past_return, end = leaving(way, Partial(b"x"), disclose)
    assert not posted
    assert not past_return
    assert isinstance(end, Declined)


@pytest.mark.parametrize("way", WAYS)
def test_what_tells_nothing_need_not_be_entered(way):
    def disclose(posted):
        raise AssertionError("it was entered")

    posted, _, _ = leaving(way, Die(bytes(16)), disclose)
    assert posted


SERVING = {
    "report": lambda boss, kind: boss.gather(kind),
    "confide": lambda boss, kind: boss.confided(kind),
    "exchange": lambda boss, kind: boss.route(kind),
    "publish": lambda boss, kind: boss.relay(kind),
}


@pytest.mark.parametrize("way", SERVING)
@pytest.mark.parametrize(
    ("kind", "comparable", "passed"),
    [(Partial, True, True), (Partial, False, False), (Die, True, False)],
)
def test_the_coordinator_goes_by_the_same_point_of_no_return(way, kind, comparable, passed):
    """Otherwise it would begin again with others, and parties would call it dishonest."""
    boss = coordinator(comparable=comparable)
    with pytest.raises(Dropout):
        run_virtual(SERVING[way](boss, kind))
    assert boss.past_return == passed


def test_what_tells_nothing_by_itself_is_told_apart_once_for_all():
    """A message says so itself; whoever forgets it has it entered."""
    assert Message.reveals
    harmless = {Share, Die, MaskKeys, MaskShares, Commitments}
    assert not any(kind.reveals for kind in harmless)
    kinds = {m for p in known().values() for m in p.messages} | {*MASKED_STEPS, Share, Partial}
    assert {kind for kind in kinds if not kind.reveals} == harmless


def test_whoever_contradicts_himself_a_thousand_times_is_news_once(caplog):
    """Once each time began the wait anew and made a line of log: a member could fill a disk."""
    caplog.set_level(logging.INFO, "mpc_rr.rounds")
    study = coordinator(fewest=2)
    box = study.mailbox
    answers = [Partial(bytes([k % 250, k // 250])) for k in range(1000)]

    async def main():
        taking = asyncio.create_task(study.gather(Partial))
        await asyncio.sleep(0.1)
        for answer in answers:
            box.accept(written("bob", "partial", COORDINATOR, answer))
            await asyncio.sleep(0)
        for name in ("alice", "carol"):
            box.accept(written(name, "partial", COORDINATOR, Partial(name.encode())))
        return await taking

    gathered = run_virtual(main())
    assert sorted(gathered.messages) == ["alice", "carol"]
    assert "bob sent two different messages" in gathered.faulty["bob"]
    assert box.rejected["contradiction"] == 999
    assert len(caplog.messages) <= 4
