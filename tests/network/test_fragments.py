import random
import struct
import sys
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpc_rr.network.fragments import (
    LEFT_BEHIND_S,
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
    assert assembler._held["mallory"] <= 2000
    assert assembler.add("ann", second) == bytes(150)


class Clock:
    """A time that passes when it is told to."""

    now = 0.0

    def __call__(self):
        return self.now


def test_pieces_that_were_left_behind_do_not_stand_in_the_way_of_others():
    """Once many small ones, of many senders, made the one whose message was large lose its own."""
    clock = Clock()
    assembler = Assembler(100_000, now=clock)
    for number in range(200):
        assembler.add(f"mallory-{number}", cut(bytes(800), RNG, 400)[0])
    clock.now += LEFT_BEHIND_S + 1
    raw = bytes(range(256)) * 250
    assert [assembler.add("ann", piece) for piece in cut(raw, RNG, 8000)][-1] == raw


def test_who_holds_much_takes_nobody_s_place():
    """Once six who sent ever new pieces made everybody lose what was in progress."""
    assembler = Assembler(50_000, per_sender=10_000)
    first, second = cut(bytes(150), RNG, 100)
    assert assembler.add("ann", first) is None
    for number in range(1000):
        assembler.add(f"mallory-{number % 6}", cut(bytes(200), RNG, 100)[0])
    assert assembler._total > 48_000, "there was no room for more"
    assert assembler.add("ann", second) == bytes(150)


def test_what_is_repeated_counts_for_nothing():
    """Once who repeated his pieces kept them fresh, and what others had begun was forgotten."""
    clock = Clock()
    assembler = Assembler(5000, now=clock)
    left, begun = cut(bytes(1600), RNG, 800), cut(bytes(800), RNG, 400)
    assembler.add("mallory", left[0])
    for _ in range(3):
        clock.now += LEFT_BEHIND_S / 2
        assembler.add("mallory", left[0])
    assembler.add("ann", begun[0])
    assembler.add("mallory", left[0])
    assembler.add("ben", cut(bytes(800), RNG, 400)[0])
    assert [sender for sender, *_ in assembler._open] == ["ann", "ben"]
    assert assembler.add("ann", begun[1]) == bytes(800)


def test_among_ones_own_too_what_is_repeated_counts_for_nothing():
    assembler = Assembler(10_000, per_sender=3000)
    left, begun = cut(bytes(200), RNG, 100), cut(bytes(200), RNG, 100)
    for piece in (left[0], begun[0], left[0], cut(bytes(200), RNG, 100)[0]):
        assembler.add("ann", piece)
    assert assembler.add("ann", begun[1]) == bytes(200)


def steps_of(call):
    """How many lines of Python a call runs, those of all that it calls included."""
    steps, before = 0, sys.gettrace()

    def count(frame, event, argument):
        nonlocal steps
        steps += event == "line"
        return count

    sys.settrace(count)
    try:
        call()
    finally:
        sys.settrace(before)
    return steps


def test_a_piece_costs_the_same_however_many_others_have_left_behind():
    """Once all that others held was passed over for each: 600 a second shut members out."""

    def costs(others):
        assembler = Assembler(10_000_000, per_sender=20_000)
        for number in range(others):
            for _ in range(10):
                assembler.add(f"other-{number}", cut(bytes(200), RNG, 100)[0])
        for _ in range(100):
            assembler.add("mallory", cut(bytes(200), RNG, 100)[0])
        his = sum(sender == "mallory" for sender, *_ in assembler._open)
        assert his < 100, "for each that comes one of his own must go"
        piece = cut(bytes(200), RNG, 100)[0]
        return steps_of(lambda: assembler.add("mallory", piece))

    assert costs(others=0) == costs(others=500)


def test_making_room_costs_the_same_however_many_hold_something():
    piece = cut(bytes(200), RNG, 100)[0]
    alone = Assembler(10_000)
    alone.add("ann", piece)

    def costs(others):
        assembler = Assembler(alone._total * others)
        for number in range(others):
            assembler.add(f"other-{number}", piece)
        steps = steps_of(lambda: assembler.add("mallory", piece))
        assert len(assembler._open) == others, "one had to go"
        return steps

    assert costs(others=10) == costs(others=1000)


def test_what_is_said_to_be_held_is_more_than_is():
    """With messages of one piece, of one sender and of many; with one message of many pieces."""
    for senders, messages, pieces in ((1, 2000, 1), (2000, 1, 1), (1, 1, 2000)):
        assembler = Assembler(2**40)
        tracemalloc.start()
        before = tracemalloc.get_traced_memory()[0]
        for sender in range(senders):
            for _ in range(messages):
                for piece in cut(bytes(2 * pieces + 2), RNG, 2)[:-1]:
                    assembler.add(f"mailbox-of-22-letters-{sender}", piece)
        held = tracemalloc.get_traced_memory()[0] - before
        tracemalloc.stop()
        assert 0 < held <= assembler._total


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
