"""A study whose parties are spread over processes of this machine."""

import asyncio
import dataclasses
import multiprocessing
import multiprocessing.process
import signal
import threading
from collections.abc import Coroutine, Mapping
from concurrent.futures import ProcessPoolExecutor
from typing import Any

from mpc_rr.agents.coordinator import Coordinator
from mpc_rr.agents.host import Ends
from mpc_rr.agents.outcome import State
from mpc_rr.agents.watching import Watch
from mpc_rr.errors import InternalError, MpcRrError, one_line
from mpc_rr.network.address import BrokerAddresses, BrokerUrl
from mpc_rr.protocols.registry import load_plugins, plugins
from mpc_rr.publication.ending import Ending
from mpc_rr.running.loops import deaf, run_to_end
from mpc_rr.running.parts import coordinate_study, take_part
from mpc_rr.running.run import Run
from mpc_rr.schema import Record
from mpc_rr.simulation.faults import Faults
from mpc_rr.study.definition import Study
from mpc_rr.study.file import Scenario


async def on_hosts(
    scenario: Scenario, broker: BrokerAddresses, seed: int | None, watch: Watch, hosts: int
) -> Run:
    """The coordinator here, the parties in processes of their own."""
    study, loop = scenario.study, asyncio.get_running_loop()
    people = list(zip(scenario.party_names(), scenario.records(), strict=True))
    parts = [dict(people[k::hosts]) for k in range(min(hosts, len(people)))]
    spawn = multiprocessing.get_context("spawn")
    own: set[multiprocessing.process.BaseProcess] = set()
    # A pool each: one that has lost a process ends all its others.
    pools = [
        ProcessPoolExecutor(1, mp_context=spawn, initializer=load_plugins, initargs=(plugins(),))
        for _ in parts
    ]
    running: list[asyncio.Future[Ends]] = []
    coordinators: list[Coordinator] = []
    try:
        with _starting, deaf(signal.SIGINT):  # this process ends them, quietly
            others = set(multiprocessing.active_children())
            running = [
                loop.run_in_executor(
                    pool, _host, study, broker.parties, part, seed, scenario.faults
                )
                for pool, part in zip(pools, parts, strict=True)
            ]
            own = set(multiprocessing.active_children()) - others
        result = await _unless_a_host_fails(
            coordinate_study(
                study, broker.coordinator, seed=seed, watch=watch, faults=scenario.faults,
                announce=coordinators.append,
            ),
            running,
            coordinators,
        )  # fmt: skip
        if result.outcome.interrupted or not result.outcome.attempts:
            for process in own:
                process.terminate()  # whoever had not joined yet would wait for the coordinator
        finished = await asyncio.gather(*running, return_exceptions=True)
    except BaseException:
        for process in own:
            process.terminate()  # it would wait for a coordinator that is gone
        for one in running:
            one.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
        raise
    finally:
        for pool in pools:
            pool.shutdown(wait=True, cancel_futures=True)
    ends: Ends = {}
    for part, end in zip(parts, finished, strict=True):
        if isinstance(end, BaseException):
            ends |= dict.fromkeys(part, _why(end))
        else:
            ends |= end
    return dataclasses.replace(result, parties=ends)


async def _unless_a_host_fails(
    coordinating: Coroutine[Any, Any, Run],
    running: list["asyncio.Future[Ends]"],
    coordinators: list[Coordinator],
) -> Run:
    """Coordinate to the end; if a host fails before the study has begun, that is why it cannot.

    ``coordinators``: the one there is, once it is ready.
    """
    study = asyncio.ensure_future(coordinating)
    waiting: set[asyncio.Future[Any]] = {study, *running}
    try:
        while not study.done():
            done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            failed = [e for host in done - {study} if (e := host.exception()) is not None]
            if not failed or study.done():
                continue
            if not coordinators:
                study.cancel()
                await asyncio.wait({study})
                raise _why(failed[0])
            if coordinators[0].progress.state is State.LOBBY:
                coordinators[0].give_up(str(_why(failed[0])))
        return study.result()
    except asyncio.CancelledError:
        study.cancel()
        return await study  # which says what is known by now


def _why(fault: BaseException) -> MpcRrError:
    if isinstance(fault, MpcRrError):
        return fault
    return InternalError(f"a host process ended: {one_line(str(fault))}")


_starting = threading.Lock()
"""Another study of this process may start hosts, too; each ends its own."""


def _host(
    study: Study, broker: BrokerUrl, records: Mapping[str, Record], seed: int | None, faults: Faults
) -> Ends:
    """A process with some of the parties: how one of them ended well, and how others failed."""
    ends = run_to_end(take_part(study, broker, records, seed=seed, faults=faults))
    done = next(((name, end) for name, end in ends.items() if isinstance(end, Ending)), None)
    failed = {name: end for name, end in ends.items() if isinstance(end, MpcRrError)}
    return failed | ({} if done is None else dict([done]))
