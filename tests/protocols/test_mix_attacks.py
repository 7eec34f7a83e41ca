"""Attacks by which a reviewer broke the first version of the anonymous channel, and others."""

import asyncio
import dataclasses

import msgspec
import numpy as np
import pytest
from anonymizing import IN_GROUPS, MASKED, NAMES, PEOPLE, run
from helpers import telling, with_mailbox
from test_collaborative_k_anonymity import relays_of
from test_mix_cascade import FOUR_LESS, SEED

from mpc_rr.agents.coordinator import Coordinator
from mpc_rr.agents.party import Party
from mpc_rr.crypto.commitments import commit
from mpc_rr.crypto.identity import Identity
from mpc_rr.crypto.onion import LayerKey, wrap
from mpc_rr.errors import Dropout, Misconduct, MpcRrError, Refused
from mpc_rr.network.envelope import encode_parts
from mpc_rr.network.mailbox import Mailbox
from mpc_rr.protocols.board import commitment
from mpc_rr.protocols.board.board import Block, Board, go_on_with_few
from mpc_rr.protocols.board.commitment import Commitments, Openings, _bound_to
from mpc_rr.protocols.collaborative_k_anonymity import Partition
from mpc_rr.protocols.mix import cascade as mix_cascade
from mpc_rr.protocols.mix.batch import (
    Batch,
    Evidence,
    FinalKey,
    Found,
    MixKeys,
    MixOutput,
    Onions,
    RelayKeys,
    RouteKey,
    Shuffled,
)
from mpc_rr.protocols.mix.blame import at_relay
from mpc_rr.protocols.mix.relays import MixOptions
from mpc_rr.publication.groups import KAnonymous
from mpc_rr.publication.masks import MaskedRelease
from mpc_rr.randomness import SeededRandomness

SEAL = Identity(SeededRandomness(0)).seal
DIE_THROWN = bytes(range(16))


@pytest.fixture
def cascade(monkeypatch):
    """The first cascade of a run, and its relays' roles, as the attacker comes to know them."""
    seen = {"roles": {}}
    honest, made = mix_cascade._cascade, mix_cascade.RelayRole.__init__

    def spy(*args):
        found = honest(*args)
        seen.setdefault("cascade", found)
        return found

    def role(self, session):
        made(self, session)
        seen["roles"].setdefault(session.me, self)

    monkeypatch.setattr(mix_cascade, "_cascade", spy)
    monkeypatch.setattr(mix_cascade.RelayRole, "__init__", role)
    return seen


def fork_found(monkeypatch, cascade, outputs):
    """A coordinator that shows the relays everybody's `Found`, and the others one without relays.

    The relays, who think that all is well, give their final keys; the others are to begin again.
    """
    honest, announce = mix_cascade.post_coordinator, mix_cascade.announce_on
    opened = []

    async def spy(session, board, message):
        if isinstance(message, MixOutput):
            outputs.append(message)
        await announce(session, board, message)

    async def forking(session, board, kind, **options):
        if kind is not Found or opened:
            return await honest(session, board, kind, **options)
        first = cascade["cascade"]
        numbered = session.sub(f"block-{board.blocks + 1}")
        gathered = await numbered.gather(kind, senders=board.present)
        full = Block(board.head, dict(sorted(gathered.signed.items())))
        less = Block(board.head, {n: r for n, r in full.entries.items() if n not in first.relays})
        for party in board.present:
            block = full if party in first.relays else less
            raw = session.mailbox.write(numbered.name, Block.step, "*", block)
            await session.mailbox.post(numbered.name, Block.step, party, raw)
        following = session.sub(f"block-{board.blocks + 2}")
        keys = (await following.gather(FinalKey, senders=first.relays)).messages
        finals = [
            LayerKey.revealed(keys[r].key, p)
            for r, p in zip(first.relays, first.final, strict=True)
        ]
        items = first.items(outputs[0].batches, len(first.relays))
        opened.extend(np.frombuffer(m, "<i8").tolist() for m in first.read(0, items[0], finals))
        board.lose(dict.fromkeys(first.relays, "found"))
        board.grow(board.head_after(kind.step, less))
        return {n: m for n, m in gathered.messages.items() if n not in first.relays}

    monkeypatch.setattr(mix_cascade, "announce_on", spy)
    monkeypatch.setattr(mix_cascade, "post_coordinator", forking)
    return opened


def test_no_second_batch_is_opened_after_a_first(monkeypatch, cascade):
    """The difference of two batches would be the values of those who are missing in the second."""
    opened = fork_found(monkeypatch, cascade, [])
    protocol = msgspec.structs.replace(IN_GROUPS, k=2)
    outcome, ends = run(protocol, seed=1, study={"minimum": 5})
    assert len(opened) == 8  # the first batch: nobody can prevent that
    assert outcome.result is None
    assert not any(isinstance(end, KAnonymous) for end in ends.values())
    waiting = [end for name, end in ends.items() if name not in cascade["cascade"].relays]
    assert all("to go on without it could identify" in str(end) for end in waiting)


def test_nobody_goes_on_with_a_coordinator_that_begins_again_all_the_same(monkeypatch, cascade):
    """It shows no route keys of the relays that gave it their final ones."""
    opened = fork_found(monkeypatch, cascade, [])

    async def going_on(session, board, passed, case, output):
        await mix_cascade.post_coordinator(
            session, board, RouteKey, authors=case.cascade.relays, enough=go_on_with_few
        )
        return mix_cascade.GivenUp()

    monkeypatch.setattr(mix_cascade, "_blame_coordinator", going_on)
    protocol = msgspec.structs.replace(IN_GROUPS, k=2)
    _, ends = run(protocol, seed=1, study={"minimum": 3})
    assert len(opened) == 8
    assert not any(isinstance(end, KAnonymous) for end in ends.values())
    for name in set(NAMES) - set(cascade["cascade"].relays):
        assert isinstance(ends[name], Refused)
        assert "the coordinator does not show that" in str(ends[name])


def test_public_randomness_is_of_the_dice_alone():
    """Not of the bytes in which they came, which their authors could write in many ways."""
    seeds = []
    original, MixOptions.order = MixOptions.order, _noting_order(seeds)

    class Rewriting(Mailbox):
        """Signs its opening anew, with salts of another commitment to the same values."""

        async def tell(self, session, target, message):
            if isinstance(message, Commitments | Openings):
                salts = (bytes([self.salt]) * 32,)
                if isinstance(message, Openings):
                    message = Openings(message.head, (DIE_THROWN,), salts)
                else:
                    bound = _bound_to(self.context_of(session), self.me, "die")
                    message = Commitments(message.head, (commit(bound, DIE_THROWN, salts[0]),))
            return await super().tell(session, target, message)

        def context_of(self, session):
            own = session.split("/block-")[0]
            return encode_parts(self.study.encode(), self.run, own.encode())

    try:
        for salt in (1, 2):
            Rewriting.salt = salt
            agents = {"party-4": with_mailbox(Party, Rewriting)}
            outcome, _ = run(MASKED, seed=SEED, parties=agents, study=FOUR_LESS)
            assert outcome.result is not None
    finally:
        MixOptions.order = original
    assert len(set(seeds)) == 1


def _noting_order(seeds):
    honest = MixOptions.order

    def order(self, session, board, seed):
        seeds.append(seed)
        return honest(self, session, board, seed)

    return order


def test_whoever_does_not_open_gains_no_choice_among_dice():
    """All dice are thrown again without that party; what the others had thrown counts no more."""
    seeds = []
    silent = with_mailbox(Party, telling(Openings, _wrong_die))
    original, MixOptions.order = MixOptions.order, _noting_order(seeds)
    try:
        run(MASKED, seed=SEED, study=FOUR_LESS)
        with_all = seeds[-1]
        outcome, ends = run(MASKED, seed=SEED, parties={"party-4": silent}, study=FOUR_LESS)
    finally:
        MixOptions.order = original
    assert outcome.result is not None, outcome.cause
    assert set(outcome.result.lost) == {"party-4"}
    assert seeds[-1] != with_all
    throws = [session for session, _, _ in outcome.traffic if "throw-2" in session]
    assert throws
    assert all(end.digest == outcome.result.digest for n, end in ends.items() if n != "party-4")


def _wrong_die(_, message):
    return msgspec.structs.replace(message, values=(*message.values[:-1], bytes(16)))


class Forgetful(Mailbox):
    """Opens another die than it had committed to, in the second throw only."""

    async def tell(self, session, target, message):
        if isinstance(message, Openings) and "throw-2" in session:
            message = _wrong_die(self, message)
        return await super().tell(session, target, message)


ONE_IN_EACH_THROW = {
    "party-4": with_mailbox(Party, telling(Openings, _wrong_die)),
    "party-6": with_mailbox(Party, Forgetful),
}


def test_dice_are_thrown_again_only_once():
    """Otherwise a coordinator could leave out honest openings until the relays are its own."""
    outcome, ends = run(MASKED, seed=SEED, parties=ONE_IN_EACH_THROW, study=FOUR_LESS)
    assert outcome.result is None
    assert set(outcome.culprits) == {"party-4", "party-6"}
    assert not any(isinstance(end, MaskedRelease) for end in ends.values())


def test_a_coordinator_that_is_content_with_the_second_throw_goes_on_alone(monkeypatch):
    honest = commitment._once_coordinator

    async def content(session, board, names):
        opened = await honest(session, board, names)
        return dataclasses.replace(opened, complete=opened.complete or "throw-2" in session.name)

    monkeypatch.setattr(commitment, "_once_coordinator", content)
    _, ends = run(MASKED, seed=SEED, parties=ONE_IN_EACH_THROW, study=FOUR_LESS)
    for name in set(NAMES) - set(ONE_IN_EACH_THROW):
        assert "a third coin flip could be someone's choice" in str(ends[name])


def test_onions_for_other_keys_are_not_held_against_their_sender():
    """A relay that shows two sets of keys, with a coordinator that shows each to some."""
    outcome, _ = run(MASKED, seed=SEED, study=FOUR_LESS)
    relays = relays_of(outcome)
    victim = next(name for name in NAMES if name not in relays)
    other = LayerKey(bytes(range(32)))

    class Forking(Mailbox):
        """Shows one party keys of the last relay that nobody else sees."""

        async def post(self, session, step, target, raw):
            body = msgspec.msgpack.decode(msgspec.msgpack.decode(raw)[0])[1]
            if step != "block" or b"relay_keys" not in body:
                await super().post(session, step, target, raw)
                return
            block = msgspec.msgpack.decode(body, type=Block)
            keys = MixKeys(other.public, LayerKey(bytes(32)).public)
            forged = self.accomplice.write(
                session, "relay_keys", "coordinator", RelayKeys(block.previous, keys)
            )
            fake = Block(block.previous, block.entries | {relays[2]: forged})
            for name in NAMES:
                shown = fake if name == victim else block
                await super().post(session, step, name, self.write(session, step, "*", shown))

    class Accomplice(Party):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            Forking.accomplice = self.mailbox

    outcome, ends = run(
        MASKED, seed=SEED, parties={relays[2]: Accomplice}, study=FOUR_LESS,
        coordinator=with_mailbox(Coordinator, Forking),
    )  # fmt: skip
    assert outcome.result is not None, outcome.cause
    assert ends[victim].culprits == ("coordinator",)
    for name in set(NAMES) - {victim}:  # she is gone for them; nobody says that she did wrong
        assert ends[name].lost == {victim: "onions"}


def test_a_batch_for_everybody_is_no_batch_for_a_relay():
    """A relay must be able to show what it was told; others accept only what was for it alone."""
    outcome, _ = run(MASKED, seed=SEED, study=FOUR_LESS)
    relay = relays_of(outcome)[0]

    class Broadcasting(Mailbox):
        async def tell(self, session, target, message):
            if isinstance(message, Batch):
                raw = self.write(session, message.step, "*", message)
                await self.post(session, message.step, target, raw)
                return raw
            return await super().tell(session, target, message)

    bad = with_mailbox(Coordinator, Broadcasting)
    _, ends = run(MASKED, seed=SEED, coordinator=bad, study=FOUR_LESS)
    assert ends[relay].culprits == ("coordinator",)
    assert "tells all what is for me alone" in str(ends[relay])


def test_a_coordinator_cannot_accuse_by_naming_somebody_lost():
    """It can leave somebody out; what it says of her is only that."""
    victim = "party-2"

    def accusing(_, message):
        return MixOutput(message.previous, (), (victim,), False)

    bad = with_mailbox(Coordinator, telling(MixOutput, accusing))
    _, ends = run(MASKED, seed=SEED, coordinator=bad, study=FOUR_LESS)
    assert "left this party out of the anonymous channel" in str(ends[victim])
    assert not any(isinstance(end, MaskedRelease) for end in ends.values())


class Alone:
    """A session that shares its work with nobody."""

    def shared(self, what, depends_on, work):
        return work()


def test_relays_come_from_one_draw_of_twice_as_many():
    """Making honest parties leave does not go on until all relays are the attacker's."""
    board = Board(bytes(32), tuple(f"p{k}" for k in range(30)))
    options = MixOptions(relays=3)
    order = options.order(Alone(), board, b"seed")
    assert len(order) == 6
    board.lose(dict.fromkeys(order[:3], "found"))
    assert options.chosen(board, order) == tuple(order[3:])
    board.lose({order[3]: "found"})
    with pytest.raises(Dropout, match="4 of the 6 parties that were drawn as relays are gone"):
        options.chosen(board, order)


def test_the_coordinator_does_not_choose_the_groups():
    """A victim among three of its own parties: sizes are right, but these are not the groups."""

    def chosen(_, message):
        return msgspec.structs.replace(message, groups=((0, 4, 5, 6), (1, 2, 3, 7)))

    bad = with_mailbox(Coordinator, telling(Partition, chosen))
    outcome, ends = run(IN_GROUPS, coordinator=bad)
    assert outcome.result is None
    for end in ends.values():
        assert end.culprits == ("coordinator",)
        assert "not the groups that quasi-identifiers and the public randomness make" in str(end)


# ── Copied onions ──────────────────────────────────────────────────────────────────────────────


def thief_of(victim, cascade, *, always):
    """Peels a victim's onion with the first relay's help, and sends what is under it as its own."""
    sent = {}

    class Spied(Party):
        async def _protocol_run(self, session):
            tell = self.mailbox.tell

            async def noting(at, target, message):
                if isinstance(message, Onions):
                    sent[at] = message
                return await tell(at, target, message)

            self.mailbox.tell = noting
            return await super()._protocol_run(session)

    class Thief(Party):
        stolen = False

        async def _protocol_run(self, session):
            tell = self.mailbox.tell

            async def stealing(at, target, message):
                if isinstance(message, Onions) and (always or not Thief.stolen):
                    await asyncio.sleep(1)
                    Thief.stolen = True
                    message = self.copy(sent[at])
                return await tell(at, target, message)

            self.mailbox.tell = stealing
            return await super()._protocol_run(session)

        def copy(self, message):
            made = cascade["cascade"]
            key, copies = cascade["roles"][made.relays[0]].route, []
            for batch, onion in enumerate(message.onions):
                inner = key.peel(onion, made.info(batch, b"route", 0, victim))
                info = made.info(batch, b"route", 0, self.name)
                copies.append(wrap(inner, made.route[:1], [info], SEAL) if inner else onion)
            return Onions(message.head, tuple(copies))

    return Spied, Thief


def two_who_relay_nothing(cascade):
    outcome, _ = run(MASKED, seed=SEED, study=FOUR_LESS)
    cascade.clear()
    cascade["roles"] = {}
    return [name for name in NAMES if name not in relays_of(outcome)][:2]


@pytest.mark.parametrize("always", [False, True])
def test_a_victim_is_not_blamed_for_a_copied_onion(cascade, always):
    """After the first copy nobody is blamed, but onions are fixed before any is sent."""
    victim, thief = two_who_relay_nothing(cascade)
    spied, stealing = thief_of(victim, cascade, always=always)
    outcome, ends = run(
        MASKED, seed=SEED, parties={victim: spied, thief: stealing}, study=FOUR_LESS
    )
    assert outcome.result is not None, outcome.cause
    assert isinstance(ends[victim], MaskedRelease)
    assert set(outcome.result.lost) == ({thief} if always else set())
    if always:
        assert "not those it had fixed" in outcome.result.lost[thief]


def test_a_batch_with_a_copy_is_not_passed_on(cascade):
    """Otherwise whoever copies an onion would see it twice in the output, and know whose it is."""
    victim, thief = two_who_relay_nothing(cascade)
    spied, stealing = thief_of(victim, cascade, always=False)
    outputs = []
    noting = telling(MixOutput, lambda _, m: outputs.append(m) or m)
    run(
        MASKED, seed=SEED, parties={victim: spied, thief: stealing}, study=FOUR_LESS,
        coordinator=with_mailbox(Coordinator, noting),
    )  # fmt: skip
    assert outputs[0].failed
    assert not outputs[1].failed


# ── Junk ───────────────────────────────────────────────────────────────────────────────────────


def test_keys_that_are_no_keys_cost_a_relay_its_place():
    outcome, _ = run(MASKED, seed=SEED, study=FOUR_LESS)
    relay = relays_of(outcome)[1]

    def bad(_, message):
        return RelayKeys(message.head, MixKeys(bytes(32), message.keys.final))

    agents = {relay: with_mailbox(Party, telling(RelayKeys, bad))}
    outcome, _ = run(MASKED, seed=SEED, parties=agents, study=FOUR_LESS)
    assert "it shows no proper keys" in outcome.result.lost[relay]


def test_evidence_that_is_too_short_blames_the_coordinator():
    outcome, _ = run(MASKED, seed=SEED, study=FOUR_LESS)
    relay = relays_of(outcome)[0]

    def short(box, message):
        forged = {
            n: box.write("x", "onions", "coordinator", Onions(message.previous, ()))
            for n in message.onions
        }
        return Evidence(message.previous, forged, message.shuffled)

    refusing = with_mailbox(Party, telling(Shuffled, lambda _, m: Shuffled(m.head, ())))
    bad = with_mailbox(Coordinator, telling(Evidence, short))
    outcome, ends = run(
        MASKED, seed=SEED, parties={relay: refusing}, coordinator=bad, study=FOUR_LESS
    )
    assert all(isinstance(end, MpcRrError) for end in ends.values())
    assert any("onions that their senders did not sign" in str(end) for end in ends.values())


def test_a_message_that_cannot_be_read_is_no_answer(monkeypatch):
    """It must not pass for somebody's age of 0."""
    honest = mix_cascade.Cascade.sealed
    calls = []

    def junk(self, batch, message, seal):
        calls.append(message)
        sealed = honest(self, batch, message, seal)
        return bytes(len(sealed)) if len(calls) == 1 else sealed

    monkeypatch.setattr(mix_cascade.Cascade, "sealed", junk)
    outcome, _ = run(MASKED, seed=SEED, study=FOUR_LESS)
    assert outcome.result.unusable == 1
    assert 0 not in outcome.result.values[0]
    assert len(outcome.result.values[0]) == len(PEOPLE) - 1


# ── Outputs that cannot be ─────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def relays():
    """Who is drawn if everybody is honest."""
    outcome, _ = run(MASKED, seed=SEED, study=FOUR_LESS)
    return relays_of(outcome)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (
            lambda m, relay, _: msgspec.structs.replace(m, lost=(relay,)),
            "there is an output although someone was lost",
        ),
        (
            lambda m, *_: msgspec.structs.replace(m, batches=(), lost=("zoe",)),
            "someone was lost who was not there",
        ),
        (
            lambda m, _, sender: MixOutput(m.previous, (), (sender,), shuffling=True),
            "only a relay, and one at a time, can be lost when it shuffles",
        ),
        (
            lambda m, relay, sender: MixOutput(m.previous, (), (relay, sender), shuffling=True),
            "only a relay, and one at a time, can be lost when it shuffles",
        ),
        (
            lambda m, *_: MixOutput(m.previous, (), (), shuffling=True),
            "only a relay, and one at a time, can be lost when it shuffles",
        ),
        (
            lambda m, *_: msgspec.structs.replace(m, batches=(m.batches[0][:-1], m.batches[1])),
            "2 batches of 8 messages of",
        ),
    ],
    ids=["and lost", "a stranger", "no relay", "two", "nobody", "too short"],
)
def test_an_output_that_cannot_be_is_the_coordinator_s_fault(relays, change, says):
    sender = next(name for name in NAMES if name not in relays)
    bad = telling(MixOutput, lambda _, message: change(message, relays[0], sender))
    outcome, ends = run(
        MASKED, seed=SEED, study=FOUR_LESS, coordinator=with_mailbox(Coordinator, bad)
    )
    assert outcome.result is None
    for end in ends.values():
        assert says in str(end), str(end)
        assert end.culprits == ("coordinator",)


def test_a_relay_cannot_put_anothers_message_in_the_place_of_its_own(monkeypatch, relays):
    """Nobody would miss hers, and whatever is there twice in the end would be the other's."""
    relay, own = relays[2], []
    honest = mix_cascade.Cascade.onion

    def noting(cascade, batch, sealed, sender, seal):
        if sender == relay:
            own.append(sealed)
        return honest(cascade, batch, sealed, sender, seal)

    def doubling(_, message):
        return Shuffled(message.head, tuple(map(doubled, message.batches)))

    def doubled(batch):
        size = len(batch) // len(NAMES)
        items = [batch[k : k + size] for k in range(0, len(batch), size)]
        others = [item for item in items if item not in own]
        return b"".join([*others, others[0]])

    class Brazen(telling(Shuffled, doubling)):
        async def tell(self, session, target, message):
            if isinstance(message, Found):
                message = Found(message.head, mine=True)
            return await super().tell(session, target, message)

    monkeypatch.setattr(mix_cascade.Cascade, "onion", noting)
    outcome, ends = run(
        MASKED, seed=SEED, study=FOUR_LESS, parties={relay: with_mailbox(Party, Brazen)}
    )
    assert outcome.result is not None, outcome.cause
    assert set(outcome.result.lost) == {relay}
    assert "passed on other messages than it was given" in outcome.result.lost[relay]
    assert len(set(outcome.result.values[1])) == len(PEOPLE) - 1
    assert all(isinstance(ends[name], MaskedRelease) for name in NAMES if name != relay)


# ── Blame ──────────────────────────────────────────────────────────────────────────────────────


def send_one_onion(monkeypatch, liars):
    """Their onions are the same under the first layer."""
    honest, inner = mix_cascade.Cascade.onion, {}

    def onion(cascade, batch, sealed, sender, seal):
        if sender not in liars:
            return honest(cascade, batch, sealed, sender, seal)
        infos = [cascade.info(batch, b"route", place) for place in range(3)]
        shared = inner.setdefault(
            (cascade.context, batch), wrap(sealed, cascade.route[1:], infos[1:], seal)
        )
        return wrap(shared, cascade.route[:1], [cascade.info(batch, b"route", 0, sender)], seal)

    monkeypatch.setattr(mix_cascade.Cascade, "onion", onion)


def test_two_who_send_one_onion_although_they_fixed_it_are_both_left_out(monkeypatch, relays):
    """After the first copy onions are fixed before any is seen: now neither is a victim."""
    liars = [name for name in NAMES if name not in relays][:2]
    send_one_onion(monkeypatch, liars)
    outcome, ends = run(MASKED, seed=SEED, study=FOUR_LESS)
    assert outcome.result is not None, outcome.cause
    assert outcome.result.lost == dict.fromkeys(liars, "onions: its onion is there twice")
    assert all(isinstance(ends[name], MaskedRelease) for name in NAMES if name not in liars)


def refusing_relay(place, relays):
    """A relay that refuses a good batch, so that there is evidence."""
    return {
        relays[place]: with_mailbox(Party, telling(Shuffled, lambda _, m: Shuffled(m.head, ())))
    }


def blamed_by_all(ends, says):
    honest = [end for end in ends.values() if isinstance(end, Misconduct)]
    assert len(honest) >= len(NAMES) - 1
    for end in honest:
        assert says in str(end), str(end)
        assert end.culprits == ("coordinator",)


@pytest.mark.parametrize(
    "change",
    [
        lambda head, onions: (bytes(32), onions),
        lambda head, onions: (head, onions[:1]),
        lambda head, onions: (head, (onions[0][:-1], onions[1])),
    ],
    ids=["for another board", "too few", "too short"],
)
def test_onions_that_were_never_due_are_no_evidence(relays, change):
    """An accomplice signs something for the coordinator that it would not have taken."""
    accomplice = next(name for name in NAMES if name not in relays)
    sent = []

    class Noting(Mailbox):
        async def tell(self, session, target, message):
            if isinstance(message, Onions):
                sent.append((self, session, message))
            return await super().tell(session, target, message)

    def forged(_, evidence):
        mailbox, session, message = sent[0]
        other = Onions(*change(message.head, message.onions))
        raw = mailbox.write(session, Onions.step, "coordinator", other)
        return msgspec.structs.replace(evidence, onions=evidence.onions | {accomplice: raw})

    _, ends = run(
        MASKED, seed=SEED, study=FOUR_LESS,
        parties={accomplice: with_mailbox(Party, Noting), **refusing_relay(1, relays)},
        coordinator=with_mailbox(Coordinator, telling(Evidence, forged)),
    )  # fmt: skip
    blamed_by_all(ends, "shows onions that their senders did not sign for this board")


def test_other_onions_than_were_fixed_are_no_evidence(monkeypatch, relays):
    """After a copy: the one who sent it again signs another for the coordinator to show."""
    liars = [name for name in NAMES if name not in relays][:2]
    send_one_onion(monkeypatch, liars)
    sent = []

    class Noting(Mailbox):
        async def tell(self, session, target, message):
            if isinstance(message, Onions):
                sent.append((self, session, message))
            return await super().tell(session, target, message)

    def forged(_, evidence):
        mailbox, session, message = sent[-1]
        if len(sent) == 1:  # nothing was fixed yet
            return evidence
        other = Onions(message.head, tuple(bytes(len(onion)) for onion in message.onions))
        raw = mailbox.write(session, Onions.step, "coordinator", other)
        return msgspec.structs.replace(evidence, onions=evidence.onions | {liars[0]: raw})

    _, ends = run(
        MASKED, seed=SEED, study=FOUR_LESS, parties={liars[0]: with_mailbox(Party, Noting)},
        coordinator=with_mailbox(Coordinator, telling(Evidence, forged)),
    )  # fmt: skip
    blamed_by_all(ends, "shows onions that their senders did not sign for this board")


def test_a_coordinator_that_shows_nothing_a_relay_signed_is_named(relays):
    def less(_, evidence):
        shown = {name: raw for name, raw in evidence.shuffled.items() if name != relays[0]}
        return msgspec.structs.replace(evidence, shuffled=shown)

    _, ends = run(
        MASKED, seed=SEED, study=FOUR_LESS, parties=refusing_relay(1, relays),
        coordinator=with_mailbox(Coordinator, telling(Evidence, less)),
    )  # fmt: skip
    blamed_by_all(ends, f"shows nothing that {relays[0]} signed for this board")


def test_a_batch_for_another_board_is_evidence_against_the_coordinator(monkeypatch, relays):
    """A relay that takes it all the same can show what it was told."""
    honest = mix_cascade.RelayRole.relay

    async def taking(role, session, cascade, head):
        if session.me != relays[0]:
            await honest(role, session, cascade, head)
            return
        _, role.signed_batch = await session.told_with_proof(Batch, rounds=2)
        await session.sub(at_relay(0)).report(Shuffled(head, ()))

    def elsewhere(_, batch):
        return Batch(bytes(32), batch.batches) if batch.batches else batch

    monkeypatch.setattr(mix_cascade.RelayRole, "relay", taking)
    bad = with_mailbox(Coordinator, telling(Batch, elsewhere))
    _, ends = run(MASKED, seed=SEED, study=FOUR_LESS, coordinator=bad)
    blamed_by_all(ends, f"gave {relays[0]} a batch for another board")


def test_a_relay_that_cannot_show_what_it_was_told_is_named(relays):
    class Hiding(telling(Shuffled, lambda _, m: Shuffled(m.head, ()))):
        async def tell(self, session, target, message):
            if isinstance(message, RouteKey):
                message = RouteKey(message.head, message.key, b"junk")
            return await super().tell(session, target, message)

    outcome, _ = run(
        MASKED, seed=SEED, study=FOUR_LESS, parties={relays[1]: with_mailbox(Party, Hiding)}
    )
    assert outcome.result.lost == {
        relays[1]: "route_key: it cannot show what it was told to shuffle"
    }


def test_what_a_relay_shows_must_not_be_longer_than_a_batch(relays):
    class Long(telling(Shuffled, lambda _, m: Shuffled(m.head, ()))):
        async def tell(self, session, target, message):
            if isinstance(message, RouteKey):
                message = RouteKey(message.head, message.key, bytes(50_000))
            return await super().tell(session, target, message)

    outcome, _ = run(
        MASKED, seed=SEED, study=FOUR_LESS, parties={relays[1]: with_mailbox(Party, Long)}
    )
    assert "what it was told to shuffle is too long" in outcome.result.lost[relays[1]]


def test_a_relay_that_passes_on_a_batch_with_a_copy_is_named(monkeypatch, relays):
    """It works with two senders of one onion, and should have said that it is there twice."""
    liars = [name for name in NAMES if name not in relays][:2]

    class Careless(Party):
        async def _protocol_run(self, session):
            honest_shuffle = mix_cascade.RelayRole._shuffle

            def passing_on(role, session, cascade, place, batch):
                if session.me != self.name:
                    return honest_shuffle(role, session, cascade, place, batch)
                items = cascade.items(batch.batches, 2 * len(cascade.relays) - place)
                peeled = [cascade.peeled(place, role.route, k, one) for k, one in enumerate(items)]
                return tuple(b"".join(one) for one in peeled)

            monkeypatch.setattr(mix_cascade.RelayRole, "_shuffle", passing_on)
            return await super()._protocol_run(session)

    send_one_onion(monkeypatch, liars)
    outcome, _ = run(MASKED, seed=SEED, study=FOUR_LESS, parties={relays[0]: Careless})
    assert "passed on a batch that was not valid" in outcome.result.lost[relays[0]]
