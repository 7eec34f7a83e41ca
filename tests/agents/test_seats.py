"""Seats in the lobby: who sits there, is she still there, and what is kept of all others."""

import asyncio
import math

import pytest
from helpers import make_study

from mpc_rr.agents.coordinator import Coordinator
from mpc_rr.agents.seats import GIVEN_UP_S, Seat, Seats
from mpc_rr.crypto.identity import Identity
from mpc_rr.network.address import BrokerUrl
from mpc_rr.network.envelope import COORDINATOR, LOBBY_SESSION, WIRE_VERSION, Header
from mpc_rr.network.lifecycle import Join
from mpc_rr.network.memory import MemoryNetwork
from mpc_rr.network.mqtt import MqttConnection
from mpc_rr.network.sealed import write
from mpc_rr.randomness import SeededRandomness
from mpc_rr.simulation.clock import run_virtual

ANN, BEN, AGAIN = (Identity(SeededRandomness(seed)).public for seed in (1, 2, 3))


class Heard:
    """As much of a carrier as seats need."""

    def __init__(self):
        self.at, self.gone = {}, set()

    def route(self, target, address):
        pass

    def unroute(self, target):
        pass

    def last_heard(self, address):
        return self.at.get(address)

    def missed(self, address):
        return address in self.gone


@pytest.fixture
def seats():
    taken = Seats(Heard())
    taken.take("ann", Seat(ANN, "box/ann", b""))
    return taken


def at_a_broker():
    connection = MqttConnection(
        BrokerUrl("127.0.0.1", 1), "test", SeededRandomness(1), size_limit=1000, coordinator=True,
        lobby_s=1, longest_wait_s=1,
    )  # fmt: skip
    return connection, connection.attach(COORDINATOR)


def test_whoever_comes_and_goes_leaves_nothing_with_the_carrier():
    """Once a route stayed of each, and when it was last heard of."""

    async def main():
        connection, end = at_a_broker()
        seats = Seats(end)
        for number in range(100):
            seats.take(f"p{number}", Seat(ANN, f"mailbox-{number}/p{number}", b""))
            connection._of_connections(f"mailbox-{number}", b"\4")
            seats.give_back(f"p{number}")
        assert not [*end._routes, *connection._heard, *connection._gone]

    run_virtual(main())


def test_a_host_is_listened_to_as_long_as_one_of_its_parties_sits_there():
    async def main():
        _, end = at_a_broker()
        seats = Seats(end)
        for name, identity in (("ann", ANN), ("ben", BEN)):
            seats.take(name, Seat(identity, f"host/{name}", b""))
        seats.give_back("ann")
        assert end.last_heard("host/ben") is not None
        seats.give_back("ben")
        assert end.last_heard("host/ben") is None

    run_virtual(main())


def test_a_claim_of_somebody_else_does_not_count_for_the_next(seats):
    """Once whoever crashed after a stranger had asked for her name was told to choose another."""
    heard = seats._transport.at
    heard["box/ann"] = 9
    assert seats.still_there("ann", BEN, 10) is None, "a stranger asks once"
    heard["box/ann"] = 99
    assert seats.still_there("ann", AGAIN, 100) is None, "she crashed, and asks for her own name"
    assert seats.in_doubt(100)
    assert seats.still_there("ann", AGAIN, 99 + GIVEN_UP_S + 1) is False
    assert not seats.in_doubt(99 + GIVEN_UP_S + 1)


def test_whoever_asks_again_is_told_that_the_seat_is_taken_and_may_ask_anew(seats):
    heard = seats._transport.at
    heard["box/ann"] = 9
    assert seats.still_there("ann", BEN, 10) is None
    heard["box/ann"] = 14
    assert not seats.in_doubt(15)
    assert seats.still_there("ann", BEN, 15) is True
    assert seats.still_there("ann", BEN, 16) is None


def test_nobody_is_evicted_before_it_is_known_of_all_who_are_in_the_way(monkeypatch):
    """Once the first was, who was gone, for somebody who then was not admitted."""

    async def main():
        boss = Coordinator(
            make_study(4, (2, 3)), MemoryNetwork().attach(COORDINATOR), SeededRandomness(1)
        )
        monkeypatch.setattr(boss.mailbox, "spawn", lambda *_: None)
        now = asyncio.get_running_loop().time()
        heard = {"box/gone": -math.inf, "box/there": now}
        monkeypatch.setattr(boss._transport, "last_heard", heard.get)
        for name, who in (("gone", ANN), ("there", BEN)):
            boss._seats.take(name, Seat(who, f"box/{name}", b""))
        monkeypatch.setattr(boss, "_in_the_way", lambda *_: ["gone", "there"])
        assert not boss._makes_room("gone", AGAIN)
        assert boss._seats.names == ("gone", "there")
        heard["box/there"] = -math.inf
        assert boss._makes_room("gone", AGAIN)
        assert boss._seats.names == ()

    run_virtual(main())


def test_who_goes_and_comes_keeps_a_full_lobby_waiting_only_for_a_while(seats):
    """Once one who did so every second kept it open to its deadline."""
    carrier = seats._transport
    for now in range(int(GIVEN_UP_S) + 1):
        carrier.gone = {"box/ann"}
        assert seats.in_doubt(float(now))
        carrier.gone = set()
        assert not seats.in_doubt(float(now))
    carrier.gone = {"box/ann"}
    assert not seats.in_doubt(GIVEN_UP_S + 1)
    seats.take("ben", Seat(BEN, "box/ben", b""))
    carrier.gone = {"box/ben"}
    assert seats.in_doubt(GIVEN_UP_S + 1), "who has just come may be back in a moment"


def test_a_stranger_keeps_a_full_lobby_waiting_only_once_whomever_he_claims_to_be(seats):
    """Once each name that he claimed kept it open for as long again."""
    seats.take("ben", Seat(BEN, "box/ben", b""))
    heard = seats._transport.at
    heard["box/ann"] = heard["box/ben"] = 0
    assert seats.still_there("ann", AGAIN, 1) is None
    assert seats.in_doubt(1)
    heard["box/ann"] = heard["box/ben"] = 14
    assert seats.still_there("ben", AGAIN, 15) is None
    assert seats.in_doubt(15), "it is not over yet"
    assert not seats.in_doubt(1 + GIVEN_UP_S + 1)
    seats.give_back("ann")
    seats.take("ann", Seat(AGAIN, "box/ann", b""))
    assert seats.still_there("ben", ANN, 18) is None
    assert seats.in_doubt(18), "it was not full meanwhile"


def test_nothing_is_said_of_somebody_whose_signature_was_not_checked():
    """Once an unsigned join made the coordinator say that a named party joins another run."""

    async def main():
        net = MemoryNetwork()
        boss = Coordinator(make_study(), net.attach(COORDINATOR), SeededRandomness(0))
        me, other = Identity(SeededRandomness(1)), Identity(SeededRandomness(2))
        header = Header(
            WIRE_VERSION, "test-study", b"7" * 32, LOBBY_SESSION, Join.step, "ann", COORDINATOR
        )
        join = Join(me.public, "box/ann", b"")
        boss.mailbox.accept(write(header, join, other))
        forged = (boss._trouble, dict(boss.mailbox.rejected))
        boss.mailbox.accept(write(header, join, me))
        return forged, boss._trouble

    (forged, rejected), told = run_virtual(main())
    assert not forged
    assert rejected == {"bad signature": 1}
    assert "joins another run" in told
    assert "ann" not in told
