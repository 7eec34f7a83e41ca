import random
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpc_rr.network.fragments import Assembler, batch, cut, unbatch
from mpc_rr.randomness import SystemRandomness

RNG = SystemRandomness()


@given(st.binary(max_size=300), st.integers(1, 100), st.randoms())
def test_pieces_in_any_order_and_repeated_make_the_message_once(raw, piece_bytes, shuffle):
    payloads = cut(raw, RNG, piece_bytes)
    payloads += shuffle.choices(payloads[:-1], k=2) if len(payloads) > 1 else []
    shuffle.shuffle(payloads)
    assembler = Assembler(10_000)
    assert raw in [assembler.add(payload) for payload in payloads]


def test_two_messages_at_once_do_not_mix():
    one, other = b"a" * 50, b"b" * 50
    payloads = cut(one, RNG, 10) + cut(other, RNG, 10)
    random.Random(1).shuffle(payloads)
    assembler = Assembler(10_000)
    done = [raw for payload in payloads if (raw := assembler.add(payload)) is not None]
    assert sorted(done) == [one, other]


@given(st.lists(st.tuples(st.text(max_size=9), st.binary(max_size=50)), max_size=9))
def test_a_batch_holds_its_messages(messages):
    assert unbatch(batch(messages)) == messages
    assert unbatch(cut(b"whole", RNG)[0]) is None


@given(st.binary(max_size=100))
def test_junk_is_nothing_but_the_only_piece_of_a_message(junk):
    assert unbatch(b"\2\xc1" + junk) is None
    assert Assembler(1000).add(b"\1" + junk) in (None, junk[24:])
    assert Assembler(1000).add(b"\3" + junk) is None


def test_a_piece_beyond_the_last_is_junk():
    """Else enough of them would make a message of which pieces are missing."""
    assembler = Assembler(10_000)
    first, second, _ = cut(b"abcdef", RNG, 2)
    beyond = first[:17] + struct.pack("<II", 3, 3) + b"xx"
    assert [assembler.add(piece) for piece in (first, second, beyond)] == [None, None, None]


def test_a_piece_larger_than_a_message_may_be_is_junk():
    only = b"\1" + bytes(16) + struct.pack("<II", 0, 1)
    assert Assembler(1000).add(only + bytes(1000)) == bytes(1000)
    assert Assembler(1000).add(only + bytes(1001)) is None


@pytest.mark.parametrize("flood", range(3))
def test_a_flood_of_pieces_is_bounded(flood):
    assembler = Assembler(1000)
    for _ in range(500):
        assembler.add(cut(bytes(200), RNG, 100)[flood % 2])
    assert assembler._held <= 1000
    assert len(assembler._open) <= 10


@pytest.mark.parametrize(("number", "count"), [(1, 1), (5, 1), (0, 0), (7, 2)])
def test_a_piece_beyond_the_last_is_no_piece(number, count):
    assembler = Assembler(10_000)
    head = b"\1" + b"i" * 16 + number.to_bytes(4, "little") + count.to_bytes(4, "little")
    assert assembler.add(head + b"beyond") is None
    assert not assembler._open


def test_pieces_beyond_the_last_do_not_spoil_the_message():
    raw = b"a message in two pieces"
    first, second = cut(raw, RNG, 12)
    beyond = first[:17] + (9).to_bytes(4, "little") + first[21:]
    assembler = Assembler(10_000)
    assert [assembler.add(payload) for payload in (first, beyond, second)] == [None, None, raw]
