"""A study whose parties are spread over processes, one of which is killed."""

import multiprocessing
import os
import signal
import sys
import threading
from contextlib import contextmanager

import msgspec
import processes
import pytest
from helpers import make_scenario, random_records

from mpc_rr.agents.outcome import State
from mpc_rr.errors import InternalError
from mpc_rr.protocols.rr_independent import RRIndependent
from mpc_rr.running import run_study
from mpc_rr.simulation.faults import Faults, PartyFault

pytestmark = [
    pytest.mark.broker,
    pytest.mark.skipif(sys.platform == "win32", reason="nobody is killed like that"),
]
SIZES = (2, 3)


def with_a_host_killed(in_state, *, silent_at, **deadlines):
    """Kill one of two hosts, as a system without memory does, when the study is in a state."""
    scenario = make_scenario(
        random_records(8, SIZES), SIZES, protocol=RRIndependent(keep=0.5), minimum=3, **deadlines
    )
    silent = Faults(silent=(PartyFault(scenario.party_names()[0], silent_at),))
    scenario = msgspec.structs.replace(scenario, faults=silent)
    before = set(multiprocessing.active_children())

    @contextmanager
    def watch(coordinator):
        def kill():
            processes.until(lambda: coordinator.progress.state is in_state, "it is so far")
            hosts = set(multiprocessing.active_children()) - before
            os.kill(min(hosts, key=lambda host: host.pid).pid, signal.SIGKILL)

        killing = threading.Thread(target=kill)
        killing.start()
        yield
        killing.join()

    return run_study(scenario, hosts=2, watch=watch)


def test_a_host_that_is_killed_in_the_lobby_is_the_cause_that_all_are_told():
    """Once it was that the coordinator was interrupted, and nothing was left of the study."""
    run = with_a_host_killed(State.LOBBY, silent_at="hello", lobby_s=600, round_s=600)
    assert run.outcome.result is None
    assert not run.outcome.interrupted
    assert run.outcome.cause.startswith("a host process ended: ")
    assert len(run.outcome.transcript) == 1


def test_a_host_that_is_killed_in_the_rounds_takes_no_other_with_it():
    """Once all processes shared a pool, which ended the others, and waited for them for ever."""
    run = with_a_host_killed(State.ROUNDS, silent_at="answer", lobby_s=600, round_s=2)
    killed = [name for name, end in run.parties.items() if isinstance(end, InternalError)]
    assert len(killed) == 4
    assert len(run.parties) > len(killed), "the other host has come to its end"
