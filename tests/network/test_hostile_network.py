"""A broker that reads, drops, repeats, forges and misdirects: at worst the study is aborted."""

import msgspec
import pytest
from helpers import assert_tables, crosstabs, make_study, random_records, simulate
from hypothesis import given, settings
from hypothesis import strategies as st

from mpc_rr.agents.coordinator import Coordinator
from mpc_rr.errors import MpcRrError
from mpc_rr.network.envelope import Envelope, SignedEnvelope, decode
from mpc_rr.network.memory import MemoryNetwork
from mpc_rr.protocols.sums import secure_sum
from mpc_rr.randomness import SeededRandomness

SIZES = (2, 3)
RECORDS = random_records(4, SIZES, seed=5)


class Hostile(MemoryNetwork):
    """Does something to each message once; the original follows, as if asked for again."""

    def __init__(self, act):
        super().__init__()
        self._act = act

    def carry(self, sender, target, raw):
        for where, what in self._act(sender, target, raw):
            super().carry(sender, where, what)
        super().carry(sender, target, raw)


def header_of(raw):
    signed = msgspec.msgpack.decode(raw, type=SignedEnvelope)
    return msgspec.msgpack.decode(signed.envelope, type=Envelope).header


def play(act):
    network = Hostile(act)
    return simulate(make_study(4, SIZES), RECORDS, network=network)


def assert_all_is_well(outcome, ends):
    for counts in [outcome.result, *ends.values()]:
        assert_tables(counts.tables, crosstabs(RECORDS, SIZES))


def test_tampered_messages_are_counted_and_the_study_goes_on():
    def flip(sender, target, raw):
        return [(target, raw[:-1] + bytes([raw[-1] ^ 1]))]

    outcome, ends = play(flip)
    assert_all_is_well(outcome, ends)
    assert outcome.rejected["bad signature"] >= 4 * 5


def test_replayed_messages_are_counted_and_the_study_goes_on():
    outcome, ends = play(lambda sender, target, raw: [(target, raw)])
    assert_all_is_well(outcome, ends)
    assert outcome.rejected["duplicate"] >= 4 * 3


def test_misdirected_messages_are_counted_and_the_study_goes_on():
    outcome, ends = play(
        lambda sender, target, raw: [("coordinator" if target != "coordinator" else "party-1", raw)]
    )
    assert_all_is_well(outcome, ends)
    assert outcome.rejected["misdirected"] + outcome.rejected["unknown sender"] > 0


def test_oversized_messages_are_counted_and_the_study_goes_on():
    huge = bytes(200_000)
    outcome, ends = play(lambda sender, target, raw: [(target, huge)])
    assert_all_is_well(outcome, ends)
    assert outcome.rejected["oversized"] >= 4


def test_malformed_messages_are_counted_and_the_study_goes_on():
    outcome, ends = play(lambda sender, target, raw: [(target, b"\x92junk"), (target, b"")])
    assert_all_is_well(outcome, ends)
    assert outcome.rejected["malformed"] >= 8


def test_messages_of_an_earlier_run_are_rejected():
    earlier = []
    play(lambda sender, target, raw: earlier.append((target, raw)) or [])
    pending = iter(earlier)

    def replay(sender, target, raw):
        old = next(pending, None)
        return [old] if old is not None else []

    network = Hostile(replay)
    outcome, ends = simulate(make_study(4, SIZES), RECORDS, network=network, seed=99)
    assert_all_is_well(outcome, ends)
    assert outcome.rejected["other run"] > 0


def test_a_dropped_step_is_told_as_the_coordinators_silence_or_the_partys():
    class Dropping(MemoryNetwork):
        def carry(self, sender, target, raw):
            if header_of(raw).step != "partial":
                super().carry(sender, target, raw)

    outcome, ends = simulate(make_study(4, SIZES), RECORDS, network=Dropping())
    assert outcome.result is None
    assert "sent nothing for step 'partial'" in outcome.cause
    assert all(isinstance(end, MpcRrError) for end in ends.values())


@settings(max_examples=200)
@given(st.binary(max_size=400), st.integers(0, 10**6), st.integers(0, 255))
def test_nothing_that_arrives_crashes_an_agent(junk, place, byte):
    boss = Coordinator(make_study(4, SIZES), MemoryNetwork().attach("c"), SeededRandomness(1))
    boss.mailbox.accept(junk)
    raw = bytearray(WHOLE_HELLO)
    raw[place % len(raw)] = byte
    boss.mailbox.accept(bytes(raw[: place % len(raw)]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(boss.mailbox, "spawn", lambda *_: None)  # nobody listens for answers here
        boss.mailbox.accept(bytes(raw))
    assert boss.mailbox.rejected.total() >= 2


def _whole_hello():
    seen = []
    play(lambda sender, target, raw: seen.append(raw) or [])
    return next(raw for raw in seen if header_of(raw).step == "hello")


WHOLE_HELLO = _whole_hello()


def test_the_network_never_carries_a_plaintext_share():
    """Every byte that crosses the network is searched for every share that was drawn."""
    carried, shares = bytearray(), []

    class Tapped(MemoryNetwork):
        def carry(self, sender, target, raw):
            carried.extend(raw)
            super().carry(sender, target, raw)

    sizes = (4, 4, 4)
    records = random_records(4, sizes, seed=1)
    with pytest.MonkeyPatch.context() as patch:
        original = secure_sum.zero_shares
        patch.setattr(
            secure_sum,
            "zero_shares",
            lambda n, cells, modulus, rng: (
                shares.append(original(n, cells, modulus, rng)) or shares[-1]
            ),
        )
        outcome, _ = simulate(make_study(4, sizes), records, network=Tapped())
    assert outcome.result is not None
    assert len(shares) == 4
    for matrix in shares:
        for share in matrix:
            assert share.astype("u1").tobytes() not in carried
    partial = bytes.fromhex(_partials(outcome)[0])
    assert partial in carried, "the search would find a plaintext vector: partial sums are public"


def _partials(outcome):
    found = []
    for raw in outcome.transcript:
        signed = msgspec.msgpack.decode(raw, type=SignedEnvelope)
        envelope = msgspec.msgpack.decode(signed.envelope, type=Envelope)
        if envelope.header.step == "partial":
            found.append(decode(envelope.body, secure_sum.Partial).residues.hex())
    return found


def written_otherwise(raw):
    """The same signed envelope in other bytes: msgpack has two ways to say 'a list of two'."""
    assert raw[0] == 0x92
    return b"\xdc\x00\x02" + raw[1:]


def test_a_message_written_otherwise_is_no_second_message():
    """Its signature holds; if it counted, the broker could make anybody contradict herself."""
    outcome, ends = play(lambda sender, target, raw: [(target, written_otherwise(raw))])
    assert_all_is_well(outcome, ends)
    assert outcome.rejected["malformed"] >= 4 * 3
