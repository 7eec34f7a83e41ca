"""Who has no connection for a while blames nobody for it, and says what it knows of itself."""

import asyncio

import pytest
from helpers import make_study, random_records, simulate, with_mailbox

from mpc_rr.agents.coordinator import Coordinator
from mpc_rr.errors import Dropout, Misconduct, Refused
from mpc_rr.network.envelope import COORDINATOR, Envelope, SignedEnvelope, decode
from mpc_rr.network.lifecycle import RosterSeen
from mpc_rr.network.mailbox import Mailbox
from mpc_rr.network.memory import MemoryNetwork, MemoryTransport
from mpc_rr.protocols.rr_independent import RRIndependent
from mpc_rr.publication.ending import Ending

RECORDS = random_records(6, (2, 2), seed=1)
ROUND_S, AWAY = 10.0, "this process had no connection to the broker for {:.0f} s of that time"


class Cut(MemoryTransport):
    """Loses whatever is sent to it, and what it sends, while it is cut off."""

    since = until = float("inf")

    def away(self):
        return self.since <= asyncio.get_running_loop().time() < self.until

    def cut_off(self, since):
        now = asyncio.get_running_loop().time()
        seconds = min(self.until, now) - max(self.since, since)
        return AWAY.format(seconds) if seconds >= 1 else None

    async def recv(self):
        while True:
            arrival = await super().recv()
            if not self.away():
                return arrival

    async def send(self, target, raw):
        if not self.away():
            await super().send(target, raw)


class Cutting(MemoryNetwork):
    """Cuts some off for a while, as soon as a message of one step is on its way to one of them."""

    def __init__(self, who, step):
        super().__init__()
        self.who, self.step = who, step

    def attach(self, address):
        self._ends[address] = Cut(self, address)
        return self._ends[address]

    def carry(self, sender, target, raw):
        signed = decode(raw, SignedEnvelope)
        header = decode(signed.envelope, Envelope).header
        if header.step == self.step and {sender, target} & set(self.who):
            for address, for_s in self.who.items():
                end = self._ends[address]
                if end.since == float("inf"):
                    end.since = asyncio.get_running_loop().time()
                    end.until = end.since + for_s
        super().carry(sender, target, raw)


def play(who, step, agents=None, **study):
    network = Cutting(who, step)
    study = make_study(6, (2, 2), minimum=3, lobby_s=30.0, round_s=ROUND_S, **study)
    return simulate(study, RECORDS, network=network, **(agents or {}))


class Interrupted(Mailbox):
    """Hears of one party's misconduct while it waits once more."""

    async def await_all(self, session, step, *args, **how):
        if step == "answer" and not self.round_seconds:
            news = Misconduct("party-1 broke the protocol", ("party-1",))
            asyncio.get_running_loop().call_later(ROUND_S + 0.01, self.interrupt, news)
        await super().await_all(session, step, *args, **how)


def test_news_in_a_wait_do_not_make_an_outage_forgotten():
    """The wait began again without the outage: all who had not been heard were culprits."""
    outcome, _ = play(
        {COORDINATOR: 9.95}, "answer", {"coordinator": with_mailbox(Coordinator, Interrupted)},
        protocol=RRIndependent(keep=0.6),
    )  # fmt: skip
    assert outcome.culprits in ((), ("party-1",))
    assert outcome.result.n == 5


@pytest.mark.parametrize("protocol", [None, RRIndependent(keep=0.6)])
@pytest.mark.parametrize("for_s", [3.0, 9.5, 14.0])
def test_an_outage_of_the_coordinator_costs_nobody_her_place(protocol, for_s):
    """Those whom it could not hear were left out, and named as culprits."""
    step = "share" if protocol is None else "answer"
    outcome, ends = play({COORDINATOR: for_s}, step, protocol=protocol)
    assert (outcome.cause, outcome.culprits, outcome.excluded) == ("", (), ())
    assert outcome.result.n == 6
    assert all(isinstance(end, Ending) for end in ends.values())


def test_where_the_connection_never_comes_back_nobody_is_the_culprit():
    outcome, ends = play({COORDINATOR: 1000.0}, "share")
    assert outcome.result is None
    assert (outcome.culprits, outcome.excluded) == ((), ())
    assert "could not be heard for step 'share'" in outcome.cause
    assert "this process had no connection" in outcome.cause
    assert all(isinstance(end, Dropout) for end in ends.values())


def test_a_party_says_that_it_was_cut_off_however_it_ends():
    """It said that the coordinator had been silent, as if it had been there to hear it."""
    outcome, ends = play({"party-2": 25.0}, RosterSeen.step)
    assert outcome.result.n == 5
    assert [one.name for one in outcome.excluded] == ["party-2"]
    assert "could not be heard for step 'roster_seen'" in str(ends["party-2"])
    assert AWAY.format(25) in str(ends["party-2"])
    assert not any("no connection" in str(end) for name, end in ends.items() if name != "party-2")


def test_who_was_left_out_hears_at_the_end_that_it_is_over():
    """Its place had been given away, so nobody answered it: it blamed the coordinator's silence.

    The coordinator was cut off, too, and waits for all who were in the first roster.
    """
    outcome, ends = play({"party-2": 22.0, COORDINATOR: 3.0}, RosterSeen.step)
    assert [one.name for one in outcome.excluded] == ["party-2"]
    assert "this process had no connection to the broker for 3 s" in outcome.excluded[0].reason
    assert isinstance(ends["party-2"], Refused)
    assert "the study ended without this party" in str(ends["party-2"])
    assert AWAY.format(22) in str(ends["party-2"])
