import random
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpc_rr.network.fragments import (
    MOST_IN_A_BATCH,
    SHORTEST_MESSAGE,
    Assembler,
    batch,
    cut,
    unbatch,
)
from mpc_rr.randomness import SystemRandomness

RNG = SystemRandomness()


@given(st.binary(max_size=300), st.integers(1, 100), st.randoms())
def test_pieces_in_any_order_and_repeated_make_the_message_once(raw, piece_bytes, shuffle):
    payloads = cut(raw, RNG, piece_bytes)
    payloads += shuffle.choices(payloads[:-1], k=2) if len(payloads) > 1 else []
    shuffle.shuffle(payloads)
    assembler = Assembler(10_000)
    assert raw in [assembler.add("ann", payload) for payload in payloads]


def test_two_messages_at_once_do_not_mix():
    one, other = b"a" * 50, b"b" * 50
    payloads = cut(one, RNG, 10) + cut(other, RNG, 10)
    random.Random(1).shuffle(payloads)
    assembler = Assembler(10_000)
    done = [raw for payload in payloads if (raw := assembler.add("ann", payload)) is not None]
    assert sorted(done) == [one, other]


@given(st.lists(st.tuples(st.text(max_size=9), st.binary(min_size=96, max_size=150)), max_size=9))
def test_a_batch_holds_its_messages(messages):
    assert unbatch(batch(messages)) == messages
    assert unbatch(cut(b"whole", RNG)[0]) is None


@given(st.binary(max_size=100))
def test_junk_is_nothing_but_the_only_piece_of_a_message(junk):
    assert unbatch(b"\2\xc1" + junk) is None
    assert Assembler(1000).add("ann", b"\1" + junk) in (None, junk[24:])
    assert Assembler(1000).add("ann", b"\3" + junk) is None


def test_a_piece_beyond_the_last_is_junk():
    """Else enough of them would make a message of which pieces are missing."""
    assembler = Assembler(10_000)
    first, second, _ = cut(b"abcdef", RNG, 2)
    beyond = first[:17] + struct.pack("<II", 3, 3) + b"xx"
    assert [assembler.add("ann", piece) for piece in (first, second, beyond)] == [None, None, None]


def test_a_piece_larger_than_a_message_may_be_is_junk():
    only = b"\1" + bytes(16) + struct.pack("<II", 0, 1)
    assert Assembler(1000).add("ann", only + bytes(1000)) == bytes(1000)
    assert Assembler(1000).add("ann", only + bytes(1001)) is None


@pytest.mark.parametrize("flood", range(3))
def test_a_flood_of_pieces_is_bounded(flood):
    assembler = Assembler(1000)
    for _ in range(500):
        assembler.add("ann", cut(bytes(200), RNG, 100)[flood % 2])
    assert assembler._total <= 1000
    assert len(assembler._open) <= 10
    assert sum(assembler._held.values()) == assembler._total


def test_who_floods_with_pieces_spoils_only_his_own():
    assembler = Assembler(5000, per_sender=2000)
    first, second = cut(bytes(150), RNG, 100)
    assert assembler.add("ann", first) is None
    for _ in range(500):
        assembler.add("mallory", cut(bytes(200), RNG, 100)[0])
    assert assembler.add("ann", second) == bytes(150)


def test_pieces_that_were_left_behind_do_not_stand_in_the_way_of_others():
    """Once many small ones, of many senders, made the one whose message was large lose its own."""
    assembler = Assembler(100_000)
    for number in range(200):
        assembler.add(f"mallory-{number}", cut(bytes(800), RNG, 400)[0])
    raw = bytes(range(256)) * 250
    assert [assembler.add("ann", piece) for piece in cut(raw, RNG, 8000)][-1] == raw


def test_who_puts_more_together_than_can_be_messages_is_not_read():
    """Once a hundred thousand pairs were taken apart to see that all are too short."""
    fits = [("", bytes(SHORTEST_MESSAGE))] * 1000
    assert unbatch(batch(fits)) == fits
    short = [("", b"")] * MOST_IN_A_BATCH
    assert unbatch(batch(short)) == []
    assert unbatch(batch([*short, ("", b"")])) is None


def test_a_batch_of_nothing_is_nothing():
    """Once 90,000 empty messages came in one payload."""
    assert unbatch(batch([("", b"")] * 90_000)) is None
    assert unbatch(batch([("", b"")] * 50)) == []
    assert unbatch(batch([("", bytes(95)), ("", bytes(96))])) == [("", bytes(96))]
    assert unbatch(batch([("", bytes(200_000)), ("", bytes(200_000))])) is None


@pytest.mark.parametrize(("number", "count"), [(1, 1), (5, 1), (0, 0), (7, 2)])
def test_a_piece_beyond_the_last_is_no_piece(number, count):
    assembler = Assembler(10_000)
    head = b"\1" + b"i" * 16 + number.to_bytes(4, "little") + count.to_bytes(4, "little")
    assert assembler.add("ann", head + b"beyond") is None
    assert not assembler._open


def test_pieces_beyond_the_last_do_not_spoil_the_message():
    raw = b"a message in two pieces"
    first, second = cut(raw, RNG, 12)
    beyond = first[:17] + (9).to_bytes(4, "little") + first[21:]
    assembler = Assembler(10_000)
    assert [assembler.add("ann", payload) for payload in (first, beyond, second)] == [
        None,
        None,
        raw,
    ]
