"""Ctrl-C: whoever is stopped says so, and a result that is there is not lost."""

import asyncio

from helpers import make_study, random_records

from mpc_rr.agents.coordinator import Coordinator
from mpc_rr.agents.host import run_parties
from mpc_rr.agents.outcome import State
from mpc_rr.agents.party import Party
from mpc_rr.errors import Aborted
from mpc_rr.network.envelope import COORDINATOR
from mpc_rr.network.memory import MemoryNetwork
from mpc_rr.randomness import SeededRandomness
from mpc_rr.simulation.clock import run_virtual
from mpc_rr.simulation.faults import Faults, FaultyTransport, PartyFault

SIZES = (2, 3)


async def play(until, *, step, stop_party=False, n=4, minimum=None):
    """Run a study in which party-2 is silent from a step on; cancel somebody in a state."""
    study, net, rng = make_study(n, SIZES, minimum=minimum), MemoryNetwork(), SeededRandomness(0)
    faults = Faults(silent=(PartyFault("party-2", step),))
    boss = Coordinator(study, net.attach(COORDINATOR), rng.fork("c"))
    parties = []
    for k, record in enumerate(random_records(n, SIZES), 1):
        name = f"party-{k}"
        transport = FaultyTransport(net.attach(name), name, faults, rng)
        parties.append(Party(study, name, record, transport, rng.fork(name)))
    coordinating = asyncio.create_task(boss.run())
    ends = asyncio.create_task(run_parties(parties[1:] if stop_party else parties))
    first = asyncio.create_task(parties[0].run()) if stop_party else None
    while boss.progress.state is not until:  # noqa: ASYNC110
        await asyncio.sleep(0.001)
    await asyncio.sleep(0.1)
    (first if first is not None else coordinating).cancel()
    stopped = (await asyncio.gather(coordinating, return_exceptions=True))[0]
    if first is not None:
        await asyncio.gather(first, return_exceptions=True)
    return stopped, await ends


def test_a_coordinator_stopped_in_the_rounds_tells_the_parties():
    stopped, ends = run_virtual(play(State.ROUNDS, step="share"))
    assert stopped.interrupted
    assert stopped.result is None
    assert stopped.cause == "the coordinator was interrupted"
    assert stopped.transcript, "what it has heard is written down"
    for end in ends.values():
        assert isinstance(end, Aborted)
        assert "the coordinator was interrupted" in str(end)


def test_a_coordinator_stopped_after_the_verdict_keeps_the_result():
    outcome, ends = run_virtual(play(State.VERDICT, step="goodbye"))
    assert outcome.result.n == 4
    assert all(end.n == 4 for end in ends.values())


def test_a_party_stopped_before_the_sum_is_left_out_at_once():
    outcome, ends = run_virtual(play(State.ROUNDS, step="share", stop_party=True, n=6, minimum=4))
    assert {e.name: e.reason for e in outcome.excluded} == {
        "party-1": "party-1 left: it was interrupted",
        "party-2": "party-2 sent nothing for step 'roster_seen' within 10 s",
    }
    assert outcome.result.n == 4
    assert sum(getattr(end, "n", None) == 4 for end in ends.values()) == 4


def test_a_host_that_is_stopped_waits_for_the_last_words_of_all_its_parties():
    """Once it wrote as soon as the first of them had spoken."""

    class Stopped:
        def __init__(self, name, words_s):
            self.name, self._words_s, self.receipt = name, words_s, ()

        async def run(self):
            try:
                await asyncio.sleep(3600)
            finally:
                await asyncio.sleep(self._words_s)
                self.receipt = (b"its last word",)

    async def main():
        receipts = []
        parties = [Stopped("brief", 0), Stopped("slow", 1.5)]
        running = asyncio.create_task(
            run_parties(parties, lambda ends: receipts.extend(e.receipt for e in ends.values()))
        )
        await asyncio.sleep(1)
        running.cancel()
        await asyncio.wait([running])
        assert running.cancelled()
        return receipts

    assert run_virtual(main()) == [(b"its last word",)] * 2
