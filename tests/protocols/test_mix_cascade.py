"""The anonymous channel: nobody is linked, nothing is lost, and whoever meddles is named."""

import asyncio

import msgspec
import numpy as np
import pytest
from anonymizing import MASKED, NAMES, PEOPLE, run
from helpers import Tapped
from test_collaborative_k_anonymity import relays_of, telling, with_mailbox

from mpc_rr.agents.coordinator import Coordinator
from mpc_rr.agents.party import Party
from mpc_rr.crypto.identity import Identity
from mpc_rr.crypto.onion import LAYER_BYTES, LayerKey, usable, wrap
from mpc_rr.errors import InputError, Misconduct
from mpc_rr.protocols.mix import cascade as mix_cascade
from mpc_rr.protocols.mix.batch import Batch, FinalKey, Found, Onions, RelayKeys, RouteKey, Shuffled
from mpc_rr.protocols.mix.relays import MixOptions
from mpc_rr.randomness import SeededRandomness

SEAL = Identity(SeededRandomness(0)).seal
SEED = 2
FOUR_LESS = {"minimum": 4}


@pytest.fixture(scope="module")
def relays():
    """Who is drawn if everybody is honest; the dice are the same in all runs with this seed."""
    outcome, _ = run(MASKED, seed=SEED, study=FOUR_LESS)
    return relays_of(outcome)


def expect_named(outcome, ends, culprit, says):
    """The culprit is named by everybody alike; the others have their result all the same."""
    assert outcome.result is not None, outcome.cause
    assert says in outcome.result.lost[culprit]
    assert set(outcome.result.lost) == {culprit}
    honest = set(NAMES) - {culprit}
    for name in honest:
        assert ends[name].digest == outcome.result.digest
        assert set(ends[name].lost) == {culprit}
    ages = sorted(p[1] for n, p in zip(NAMES, PEOPLE, strict=True) if n in honest)
    assert outcome.result.values[0] == tuple(ages)


def cut(batch, count=8):
    size = len(batch) // count
    return [batch[k : k + size] for k in range(0, len(batch), size)]


def replaced(batches, place, other):
    items = cut(batches[0])
    items[place] = other(items)
    return (b"".join(items), *batches[1:])


@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.parametrize(
    "meddle",
    [
        lambda b: replaced(b, 3, lambda items: bytes(len(items[3]))),  # drops one, adds another
        lambda b: replaced(b, 3, lambda items: items[3][:-1] + b"\0"),  # alters one
        lambda b: replaced(b, 3, lambda items: items[5]),  # repeats one
    ],
    ids=["drops", "alters", "repeats"],
)
def test_a_relay_that_meddles_is_named_and_left_out(relays, place, meddle):
    def change(_, message):
        return Shuffled(message.head, meddle(message.batches))

    bad = with_mailbox(Party, telling(Shuffled, change))
    outcome, ends = run(MASKED, seed=SEED, parties={relays[place]: bad}, study=FOUR_LESS)
    expect_named(outcome, ends, relays[place], "passed on other messages than it was given")
    assert relays[place] not in relays_of(outcome, attempt=2)


def test_a_relay_that_refuses_a_good_batch_is_named(relays):
    bad = with_mailbox(Party, telling(Shuffled, lambda _, m: Shuffled(m.head, ())))
    outcome, ends = run(MASKED, seed=SEED, parties={relays[1]: bad}, study=FOUR_LESS)
    expect_named(outcome, ends, relays[1], "refused a batch that was valid")


def test_a_relay_that_passes_on_too_few_is_left_out(relays):
    bad = with_mailbox(
        Party, telling(Shuffled, lambda _, m: Shuffled(m.head, (m.batches[0][:-1],)))
    )
    outcome, ends = run(MASKED, seed=SEED, parties={relays[1]: bad}, study=FOUR_LESS)
    expect_named(outcome, ends, relays[1], "shuffled")


@pytest.mark.parametrize("kind", [RelayKeys, Shuffled])
def test_a_relay_that_falls_silent_is_left_out(relays, kind):
    class Mute(Party):
        async def run(self):
            tell = self.mailbox.tell

            async def silent(session, target, message):
                if isinstance(message, kind):
                    raise Misconduct("gone")
                return await tell(session, target, message)

            self.mailbox.tell = silent
            return await super().run()

    outcome, ends = run(MASKED, seed=SEED, parties={relays[0]: Mute}, study=FOUR_LESS)
    expect_named(outcome, ends, relays[0], kind.step)


def test_a_relay_that_will_not_show_what_it_did_is_left_out(relays):
    def meddle(_, message):
        return Shuffled(
            message.head, replaced(message.batches, 0, lambda items: bytes(len(items[0])))
        )

    class Bad(telling(Shuffled, meddle)):
        async def tell(self, session, target, message):
            if isinstance(message, RouteKey):
                message = RouteKey(message.head, bytes(32), message.told)
            return await super().tell(session, target, message)

    bad = with_mailbox(Party, Bad)
    outcome, ends = run(MASKED, seed=SEED, parties={relays[0]: bad}, study=FOUR_LESS)
    expect_named(outcome, ends, relays[0], "not the key that it posted")


def test_a_sender_whose_onion_is_junk_inside_is_named(relays):
    """The outer layer opens, so only the second relay notices."""
    liar = next(name for name in NAMES if name not in relays)

    class Junk(Party):
        async def _protocol_run(self, session):
            honest = mix_cascade.Cascade.onion

            def onion(cascade, batch, sealed, sender, seal):
                if sender == liar:
                    rotten = bytes(cascade.item_bytes(2 * len(cascade.relays) - 1))
                    return wrap(
                        rotten, cascade.route[:1], [cascade.info(batch, b"route", 0, liar)], SEAL
                    )
                return honest(cascade, batch, sealed, sender, seal)

            mix_cascade.Cascade.onion = onion
            try:
                return await super()._protocol_run(session)
            finally:
                mix_cascade.Cascade.onion = honest

    outcome, ends = run(MASKED, seed=SEED, parties={liar: Junk}, study=FOUR_LESS)
    expect_named(outcome, ends, liar, f"its onion does not open at {relays[1]}")


def test_a_copied_onion_is_of_no_use(relays):
    """It is bound to its sender: nobody can have another's message delivered twice."""
    copied = {}
    thief, victim = [name for name in NAMES if name not in relays][:2]

    def copying(box, message):
        copied[box.me] = message
        return copied.get(victim, message) if box.me == thief else message

    class LateThief(with_mailbox(Party, telling(Onions, copying))):
        """Waits for the victim's onion before it sends its own."""

        async def _protocol_run(self, session):
            tell = self.mailbox.tell

            async def late(at, target, message):
                if isinstance(message, Onions):
                    await asyncio.sleep(1)
                return await tell(at, target, message)

            self.mailbox.tell = late
            return await super()._protocol_run(session)

    agents = {victim: with_mailbox(Party, telling(Onions, copying)), thief: LateThief}
    outcome, ends = run(MASKED, seed=SEED, parties=agents, study=FOUR_LESS)
    expect_named(outcome, ends, thief, f"its onion does not open at {relays[0]}")


def test_a_false_complaint_is_seen_through(relays):
    liar = next(name for name in NAMES if name not in relays)
    bad = with_mailbox(Party, telling(Found, lambda _, m: Found(m.head, False)))
    outcome, ends = run(MASKED, seed=SEED, parties={liar: bad}, study=FOUR_LESS)
    expect_named(outcome, ends, liar, "its messages are in the output")


def test_a_relay_that_keeps_its_final_key_back_ends_the_study_and_is_named(relays):
    bad = with_mailbox(Party, telling(FinalKey, lambda _, m: FinalKey(m.head, bytes(32))))
    outcome, _ = run(MASKED, seed=SEED, parties={relays[2]: bad}, study=FOUR_LESS)
    assert outcome.result is None
    assert outcome.culprits == (relays[2],)
    assert "not the final key that was posted" in outcome.cause


# ── A coordinator that meddles ─────────────────────────────────────────────────────────────────


def test_a_coordinator_that_meddles_with_a_batch_is_named():
    def change(_, message):
        if not message.batches:
            return message
        return Batch(message.head, replaced(message.batches, 0, lambda items: items[1]))

    bad = with_mailbox(Coordinator, telling(Batch, change))
    outcome, ends = run(MASKED, seed=SEED, coordinator=bad, study=FOUR_LESS)
    assert outcome.result is None
    assert_coordinator_named(ends, "another batch than it had to")


def test_a_batch_for_another_board_is_not_shuffled():
    bad = with_mailbox(Coordinator, telling(Batch, lambda _, m: Batch(bytes(32), m.batches)))
    _, ends = run(MASKED, seed=SEED, coordinator=bad, study=FOUR_LESS)
    assert_coordinator_named(ends, "for another board")


def assert_coordinator_named(ends, says):
    blamed = [
        end for end in ends.values()
        if isinstance(end, Misconduct) and end.culprits == ("coordinator",)
    ]  # fmt: skip
    assert any(says in str(end) for end in blamed), [str(end) for end in ends.values()]


def test_a_coordinator_that_announces_another_output_is_named(monkeypatch):
    honest = mix_cascade._Passed.pass_to

    async def meddling(passed, place):
        await honest(passed, place)
        if place == 2:
            passed.output = replaced(passed.output, 0, lambda items: bytes(len(items[0])))

    monkeypatch.setattr(mix_cascade._Passed, "pass_to", meddling)
    judge = mix_cascade.judged  # it does not judge itself
    monkeypatch.setattr(
        mix_cascade,
        "judged",
        lambda session, *rest: (
            ({}, False) if session.me == "coordinator" else judge(session, *rest)
        ),
    )
    outcome, ends = run(MASKED, seed=SEED, study=FOUR_LESS)
    assert outcome.result is None
    assert all(isinstance(end, Misconduct) for end in ends.values())
    assert all("announced another output" in str(end) for end in ends.values())


def test_no_relay_ever_gives_away_both_keys(relays):
    """Otherwise whoever complains could read what everybody sent."""

    def meddle(_, message):
        return Shuffled(
            message.head, replaced(message.batches, 0, lambda items: bytes(len(items[0])))
        )

    network = Tapped()
    bad = with_mailbox(Party, telling(Shuffled, meddle))
    run(MASKED, seed=SEED, parties={relays[1]: bad}, network=network, study=FOUR_LESS)
    shown = {}
    for envelope in network.envelopes:
        header = envelope.header
        if header.step in (RouteKey.step, FinalKey.step):
            batch = header.session.split("/block-")[0]
            shown.setdefault((batch, header.sender), set()).add(header.step)
    assert any(RouteKey.step in steps for steps in shown.values())
    assert any(FinalKey.step in steps for steps in shown.values())
    assert all(len(steps) == 1 for steps in shown.values())


# ── Anonymity ──────────────────────────────────────────────────────────────────────────────────


def opened_values(seed):
    """Ages and salaries of four people, in the order in which they came out."""
    read, seen = mix_cascade._read, []

    def watched(*args):
        seen.append(read(*args))
        return seen[-1]

    mix_cascade._read = watched
    try:
        run(ONE_HONEST, records=PEOPLE[:4], seed=seed)
    finally:
        mix_cascade._read = read
    return [[int.from_bytes(item, "little") for item in batch] for batch in seen[0].messages]


def positions(honest, runs=110):
    """Where party-1's age comes out, if only the relays in ``honest`` shuffle."""
    found, shuffle = [], mix_cascade.shuffled
    for seed in range(runs):
        calls = iter(range(10**6))

        def only_some(items, rng, calls=calls):
            relay = next(calls) // 2  # two batches each
            return shuffle(items, rng) if relay in honest else list(items)

        mix_cascade.shuffled = only_some
        try:
            ages, _ = opened_values(seed)
        finally:
            mix_cascade.shuffled = shuffle
        found.append(ages.index(PEOPLE[0][1]))
    return np.bincount(found, minlength=4)


ONE_HONEST = msgspec.structs.replace(
    MASKED, mix=MixOptions(relays=("party-2", "party-3", "party-4"))
)
LIMIT = 21.1
"""Chi-square with three degrees of freedom is above it once in 10,000 seeds."""


def chi_square(counts):
    expected = counts.sum() / len(counts)
    return ((counts - expected) ** 2 / expected).sum()


@pytest.mark.parametrize("honest", [0, pytest.param(2, marks=pytest.mark.sweep)])
def test_one_honest_relay_hides_who_sent_what(honest):
    assert chi_square(positions({honest})) < LIMIT


def test_without_its_shuffle_everybody_could_be_traced():
    """The test above fails if the one honest relay does not shuffle."""
    assert chi_square(positions(set(), runs=40)) > LIMIT


def test_batches_are_shuffled_apart():
    """ERRATA: if both columns had one order, whole records would come out."""
    together = 0
    for seed in range(60):
        pairs = set(zip(*opened_values(seed), strict=True))
        together += len(pairs & {(p[1], p[2]) for p in PEOPLE[:4]})
    # 60 runs with 4 pairs each; by chance one of the four fits: 60 ± 4·7.75 (1 in 15,000).
    assert 29 <= together <= 91


def test_all_onions_have_one_size_and_come_before_any_is_passed_on():
    network = Tapped()
    run(MASKED, seed=SEED, network=network)
    onions = [e for e in network.envelopes if e.header.step == Onions.step]
    assert len(onions) == 8
    assert len({len(e.body) for e in onions}) == 1
    steps = [e.header.step for e in network.envelopes]
    assert steps.index(Batch.step) > max(k for k, s in enumerate(steps) if s == Onions.step)


def test_what_broker_and_coordinator_see_does_not_hold_a_value_before_the_opening():
    """Ages and salaries as bytes are in no message before the relays show their final keys."""
    network = Tapped()
    run(MASKED, seed=SEED, network=network)
    before = []
    for envelope in network.envelopes:
        if envelope.header.step == FinalKey.step:
            break
        before.append(envelope.body)
    for person in PEOPLE:
        for code in person[1:]:
            assert not any(code.to_bytes(8, "little") in body for body in before)


# ── Pieces ─────────────────────────────────────────────────────────────────────────────────────


def test_layers_open_in_order_and_only_where_they_belong():
    rng = SeededRandomness(1)
    keys = [LayerKey.draw(rng) for _ in range(3)]
    onion = wrap(b"hello", [key.public for key in keys], [b"a", b"b", b"c"], SEAL)
    assert len(onion) == 5 + 3 * LAYER_BYTES
    assert keys[1].peel(onion, b"a") is None
    assert keys[0].peel(onion, b"b") is None
    for key, info in zip(keys, [b"a", b"b", b"c"], strict=True):
        onion = key.peel(onion, info)
    assert onion == b"hello"
    assert repr(keys[0]) == "LayerKey(…)"


def test_a_revealed_key_must_be_the_posted_one():
    key, other = (LayerKey.draw(SeededRandomness(k)) for k in (1, 2))
    assert LayerKey.revealed(key.reveal(), key.public) is not None
    assert LayerKey.revealed(other.reveal(), key.public) is None
    assert LayerKey.revealed(b"short", key.public) is None
    assert usable(key.public)
    assert not usable(bytes(32))


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (MixOptions(relays=2), "at least 3 relays"),
        (MixOptions(relays=("a", "b")), "at least 3 relays"),
        (MixOptions(relays=9), "9 relays of 8 parties"),
        (MixOptions(relays=("a", "b", "a")), "named twice"),
    ],
)
def test_a_cascade_that_hides_nobody_is_refused(options, says):
    with pytest.raises(InputError, match=says):
        options.check(8)


def test_a_named_relay_that_is_not_there_ends_the_study():
    protocol = msgspec.structs.replace(MASKED, mix=MixOptions(relays=("party-1", "party-2", "zoe")))
    outcome, _ = run(protocol, study=FOUR_LESS)
    assert outcome.result is None
    assert "the relay zoe, which the study names, is not there" in outcome.cause
