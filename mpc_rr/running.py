"""Run a study: all of it in this process, or only its coordinator, or only some parties."""

import asyncio
import contextlib
import dataclasses
import multiprocessing
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from typing import Literal

from mpc_rr.agents.coordinator import Coordinator
from mpc_rr.agents.host import run_parties
from mpc_rr.agents.party import Party
from mpc_rr.agents.terms import Admitted, Terms
from mpc_rr.agents.watching import Watch, WatchParties, unwatched
from mpc_rr.crypto.admission import SigningKey
from mpc_rr.errors import InputError, InternalError, MpcRrError
from mpc_rr.network.address import BrokerUrl
from mpc_rr.network.broker import embedded_broker
from mpc_rr.network.envelope import COORDINATOR
from mpc_rr.network.memory import MemoryNetwork
from mpc_rr.network.mqtt import MqttConnection
from mpc_rr.network.transport import Transport
from mpc_rr.protocols.registry import load_plugins, plugins
from mpc_rr.publication.ending import Ending
from mpc_rr.randomness import Randomness, SeededRandomness, SystemRandomness
from mpc_rr.results.run import StudyResult
from mpc_rr.schema import Record
from mpc_rr.show.fragment import STYLE, fragment, text_of
from mpc_rr.show.words import Words
from mpc_rr.simulation.clock import run_virtual
from mpc_rr.simulation.faults import Faults, FaultyTransport
from mpc_rr.study.definition import Study
from mpc_rr.study.file import Scenario

AT_THE_DOOR = 200
"""So many parties of one process ask to be admitted at the same time; the others wait."""


class Run(StudyResult):
    """A study that was run from here, in the hands of whoever wants to look at it."""

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        cause = "" if self.outcome.result is not None else f"Aborted: {self.outcome.cause}"
        shown = fragment(self.publication, Words(self.study.schema), before=text_of(cause))
        return f'<style>{STYLE}</style><div class="mpc-rr">{shown}</div>'


def run_study(
    scenario: Scenario,
    *,
    transport: Literal["memory", "mqtt"] = "mqtt",
    broker: BrokerUrl | None = None,
    seed: int | None = None,
    hosts: int = 0,
    registrar: SigningKey | None = None,
    watch: Watch = unwatched,
) -> Run:
    """Run a scenario to its end.

    ``memory`` simulates in virtual time, always from a seed (the scenario's, if none is given).
    ``mqtt`` takes the operating system's randomness unless a seed is given, and an embedded broker
    unless one is named; with ``hosts``, the parties are spread over so many processes. If the
    study has a ``registrar``, its key is needed to admit the parties that run here.
    """
    if transport == "memory":
        if hosts:
            raise InputError("a simulation in memory is one process; --hosts goes with mqtt")
        seed = scenario.seed if seed is None else seed
        admissions = _admit_all(scenario, registrar, SeededRandomness(seed))
        return run_virtual(_on_memory(scenario, seed, watch, admissions))
    admissions = _admit_all(scenario, registrar, _randomness(seed))
    if broker is not None:
        return asyncio.run(_on_mqtt(scenario, broker, seed, watch, hosts, admissions))
    with embedded_broker() as embedded:
        return asyncio.run(_on_mqtt(scenario, embedded, seed, watch, hosts, admissions))


def _admit_all(
    scenario: Scenario, registrar: SigningKey | None, rng: Randomness
) -> dict[str, Admitted]:
    """Admit every party of a run on one machine."""
    study = scenario.study
    if study.registrar is None:
        return {}
    if registrar is None:
        raise InputError(
            f"study {study.name!r} has a registrar; to run it here, give the registrar's own key "
            "(--registrar FILE)"
        )
    if registrar.public.hex() != study.registrar:
        raise InputError(f"the key given is that of another registrar than of study {study.name!r}")
    names = scenario.party_names()
    people = {name: SigningKey.draw(rng.fork(f"person/{name}")) for name in names}
    return {name: (key, registrar.admit(study.digest, key.public)) for name, key in people.items()}


async def _on_memory(
    scenario: Scenario, seed: int, watch: Watch, admissions: Mapping[str, Admitted]
) -> Run:
    network = MemoryNetwork()
    return await _run(
        scenario, network.attach, network.attach(COORDINATOR), SeededRandomness(seed), watch,
        admissions, seed=seed, transport="memory",
    )  # fmt: skip


async def _on_mqtt(
    scenario: Scenario,
    broker: BrokerUrl,
    seed: int | None,
    watch: Watch,
    hosts: int,
    admissions: Mapping[str, Admitted],
) -> Run:
    if hosts and admissions:
        raise InputError("--hosts cannot be used where a registrar admits the parties")
    if hosts:
        return await _on_hosts(scenario, broker, seed, watch, hosts)
    rng = _randomness(seed)
    async with (
        mqtt_connection(scenario.study, broker, coordinator=True) as above,
        mqtt_connection(scenario.study, broker, coordinator=False) as below,
    ):
        return await _run(
            scenario, below.attach, above.attach(COORDINATOR), rng, watch,
            admissions, seed=seed, transport="mqtt",
        )  # fmt: skip


async def _on_hosts(
    scenario: Scenario, broker: BrokerUrl, seed: int | None, watch: Watch, hosts: int
) -> Run:
    """The coordinator here, the parties in processes of their own."""
    study, loop = scenario.study, asyncio.get_running_loop()
    people = list(zip(scenario.party_names(), scenario.records(), strict=True))
    parts = [dict(people[k::hosts]) for k in range(min(hosts, len(people)))]
    spawn = multiprocessing.get_context("spawn")
    others = multiprocessing.active_children()
    pool = ProcessPoolExecutor(
        len(parts), mp_context=spawn, initializer=load_plugins, initargs=(plugins(),)
    )
    running: list[asyncio.Future[dict[str, Ending | MpcRrError]]] = []
    try:
        running = [
            loop.run_in_executor(pool, _host, study, broker, part, seed, scenario.faults)
            for part in parts
        ]
        result = await coordinate_study(
            study, broker, seed=seed, watch=watch, faults=scenario.faults
        )
        finished = await asyncio.gather(*running, return_exceptions=True)
    except BaseException:
        for process in set(multiprocessing.active_children()) - set(others):
            process.terminate()  # it would wait for a coordinator that is gone
        for one in running:
            one.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
    ends: dict[str, Ending | MpcRrError] = {}
    for part, end in zip(parts, finished, strict=True):
        if isinstance(end, BaseException):
            ends |= {name: InternalError(f"its host process ended: {end}") for name in part}
        else:
            ends |= end
    return dataclasses.replace(result, parties=ends)


def _host(
    study: Study, broker: BrokerUrl, records: Mapping[str, Record], seed: int | None, faults: Faults
) -> dict[str, Ending | MpcRrError]:
    """A process with some of the parties: how one of them ended well, and how others failed."""
    ends = asyncio.run(take_part(study, broker, records, seed=seed, faults=faults))
    done = next(((name, end) for name, end in ends.items() if isinstance(end, Ending)), None)
    failed = {name: end for name, end in ends.items() if isinstance(end, MpcRrError)}
    return failed | ({} if done is None else dict([done]))


@contextlib.asynccontextmanager
async def mqtt_connection(
    study: Study, broker: BrokerUrl, *, coordinator: bool
) -> AsyncIterator[MqttConnection]:
    """A connection to a broker for the agents of a study."""
    connection = MqttConnection(
        broker,
        study.name,
        SystemRandomness(),
        size_limit=study.largest_message_bytes,
        coordinator=coordinator,
    )
    async with connection.open():
        yield connection


async def coordinate_study(
    study: Study,
    broker: BrokerUrl,
    *,
    seed: int | None = None,
    announce: Callable[[Coordinator], None] = lambda _: None,
    watch: Watch = unwatched,
    faults: Faults | None = None,
) -> Run:
    """Coordinate a study whose parties run elsewhere. ``announce`` is called when it is ready."""
    rng = _randomness(seed)
    async with mqtt_connection(study, broker, coordinator=True) as connection:
        with _faulty(faults or Faults(), rng) as end:
            transport = end(connection.attach(COORDINATOR), COORDINATOR)
            coordinator = Coordinator(study, transport, rng.fork(COORDINATOR))
            announce(coordinator)
            with watch(coordinator):
                outcome = await coordinator.run()
    return Run(study, outcome, {}, seed, "mqtt")


def _randomness(seed: int | None) -> Randomness:
    return SystemRandomness() if seed is None else SeededRandomness(seed)


async def take_part(
    study: Study,
    broker: BrokerUrl,
    records: Mapping[str, Record],
    *,
    terms: Mapping[str, Terms] | None = None,
    seed: int | None = None,
    faults: Faults | None = None,
    watch: WatchParties = unwatched,
) -> dict[str, Ending | MpcRrError]:
    """Take part in a study with some records, by the names of their parties.

    ``terms``: theirs, by name; in memory only for whoever has none. With a ``seed`` (for
    simulation only) the parties draw what they would draw in `run_study` under the same names.
    """
    rng, door = _randomness(seed), asyncio.Semaphore(AT_THE_DOOR)
    async with mqtt_connection(study, broker, coordinator=False) as connection:
        with _faulty(faults or Faults(), rng) as end:
            parties = [
                Party(
                    study,
                    name,
                    record,
                    end(connection.attach(name), name),
                    rng.fork(name),
                    terms=(terms or {}).get(name),
                    door=door,
                )
                for name, record in records.items()
            ]
            with watch(parties):
                return await run_parties(parties)


@contextlib.contextmanager
def _faulty(
    faults: Faults, rng: Randomness
) -> Iterator[Callable[[Transport, str], FaultyTransport]]:
    """Gives agents an end of the network with faults, for as long as the context lasts."""
    ends: list[FaultyTransport] = []

    def end(inner: Transport, name: str) -> FaultyTransport:
        ends.append(FaultyTransport(inner, name, faults, rng.fork(f"faults/{name}")))
        return ends[-1]

    try:
        yield end
    finally:
        for made in ends:
            made.close()


async def _run(
    scenario: Scenario,
    attach: Callable[[str], Transport],
    coordinator_transport: Transport,
    rng: Randomness,
    watch: Watch,
    admissions: Mapping[str, Admitted],
    *,
    seed: int | None,
    transport: str,
) -> Run:
    study, door = scenario.study, asyncio.Semaphore(AT_THE_DOOR)
    with _faulty(scenario.faults, rng) as end:
        coordinator = Coordinator(
            study, end(coordinator_transport, COORDINATOR), rng.fork(COORDINATOR)
        )
        parties = [
            Party(
                study,
                name,
                record,
                end(attach(name), name),
                rng.fork(name),
                door=door,
                terms=Terms(admission=admissions.get(name)),
            )
            for name, record in zip(scenario.party_names(), scenario.records(), strict=True)
        ]
        with watch(coordinator):
            outcome, ends = await asyncio.gather(coordinator.run(), run_parties(parties))
    return Run(study, outcome, ends, seed, transport)
