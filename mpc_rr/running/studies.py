"""Running a whole study on this machine."""

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from typing import Any, Literal

import msgspec

from mpc_rr.agents.coordinator import Coordinator
from mpc_rr.agents.host import Ends, run_parties
from mpc_rr.agents.outcome import Outcome
from mpc_rr.agents.party import Party
from mpc_rr.agents.terms import Admitted, Terms
from mpc_rr.agents.watching import Watch, unwatched
from mpc_rr.crypto.admission import Credential, SigningKey
from mpc_rr.errors import InputError
from mpc_rr.network.address import BrokerAddresses, BrokerUrl
from mpc_rr.network.broker import embedded_broker
from mpc_rr.network.envelope import COORDINATOR
from mpc_rr.network.memory import MemoryNetwork
from mpc_rr.network.transport import Transport
from mpc_rr.randomness import Randomness, SeededRandomness
from mpc_rr.results.closing import close, for_parties
from mpc_rr.running.hosts import on_hosts
from mpc_rr.running.loops import beside, here, run_to_end
from mpc_rr.running.parts import AT_THE_DOOR, faulty, mqtt_connection, randomness_of
from mpc_rr.running.run import Run
from mpc_rr.simulation.clock import VirtualClockLoop
from mpc_rr.study.checks import check_words
from mpc_rr.study.definition import Study
from mpc_rr.study.file import Scenario
from mpc_rr.study.frames import records_of


class Interrupted(KeyboardInterrupt):
    """Somebody stopped a study; ``run`` is what is known of it."""

    def __init__(self, run: Run) -> None:
        super().__init__()
        self.run = run


def run_study(
    scenario: Scenario | Study,
    data: Any = None,
    *,
    transport: Literal["memory", "mqtt"] = "mqtt",
    broker: BrokerUrl | str | None = None,
    seed: int | None = None,
    hosts: int = 0,
    registrar: SigningKey | None = None,
    watch: Watch = unwatched,
) -> Run:
    """Run a scenario, or a study with its data, to its end; also inside a running event loop.

    ``data``: a data frame, a dict of columns, or records as category numbers, one for each party;
    a scenario may have its own. ``memory`` simulates in virtual time, always from a seed (the
    scenario's, if none is given). ``mqtt`` takes the operating system's randomness unless a seed is
    given, and an embedded broker unless one is named; with ``hosts``, the parties are spread over
    so many processes. If the study has a ``registrar``, its key is needed to admit the parties that
    run here.
    """
    played = _played(scenario, data)
    check_words(played.study)
    if transport not in ("memory", "mqtt"):
        raise InputError(f"transport is 'memory' or 'mqtt', not {transport!r}")
    if transport == "memory":
        if hosts:
            raise InputError("a simulation in memory is one process; hosts go with mqtt")
        chosen = played.seed if seed is None else seed
        ended = here(lambda: _simulated(played, chosen, registrar, watch))
    else:
        url = BrokerUrl.parse(broker) if isinstance(broker, str) else broker
        ended = here(lambda: _in_earnest(played, url, seed, hosts, registrar, watch))
    if ended.outcome.interrupted:
        raise Interrupted(ended)
    return ended


async def run_study_async(
    scenario: Scenario | Study,
    data: Any = None,
    *,
    transport: Literal["memory", "mqtt"] = "mqtt",
    broker: BrokerUrl | str | None = None,
    seed: int | None = None,
    hosts: int = 0,
    registrar: SigningKey | None = None,
) -> Run:
    """`run_study` for coroutines: this event loop goes on meanwhile; cancelling ends the study."""
    return await beside(
        lambda: run_study(
            scenario, data, transport=transport, broker=broker, seed=seed, hosts=hosts,
            registrar=registrar,
        )
    )  # fmt: skip


def simulate(study: Scenario | Study, data: Any = None, *, seed: int = 0) -> Run:
    """Simulate a study in this process, in virtual time: the same seed gives the same run.

    Whoever knows the seed knows every secret: for trying things out, never in earnest.
    """
    return run_study(study, data, transport="memory", seed=seed)


async def simulate_async(study: Scenario | Study, data: Any = None, *, seed: int = 0) -> Run:
    """`simulate` for coroutines: this event loop goes on meanwhile."""
    return await run_study_async(study, data, transport="memory", seed=seed)


def _played(scenario: Scenario | Study, data: Any) -> Scenario:
    """A scenario with the records that were given."""
    if isinstance(scenario, Scenario):
        if data is None:
            return scenario
        given = records_of(data, scenario.study.schema)
        return msgspec.structs.replace(scenario, given=given)
    if not isinstance(scenario, Study):
        raise InputError(
            f"a study or a scenario is needed, not {type(scenario).__name__}; load_scenario reads "
            "a file"
        )
    if data is None:
        raise InputError("a study without its scenario file needs data: a frame, or records")
    return Scenario.of(scenario, records_of(data, scenario.schema))


def _simulated(scenario: Scenario, seed: int, registrar: SigningKey | None, watch: Watch) -> Run:
    admissions = _admit_all(scenario, registrar, SeededRandomness(seed))
    return run_to_end(_on_memory(scenario, seed, watch, admissions), VirtualClockLoop)


def _in_earnest(
    scenario: Scenario,
    broker: BrokerUrl | None,
    seed: int | None,
    hosts: int,
    registrar: SigningKey | None,
    watch: Watch,
) -> Run:
    admissions = _admit_all(scenario, registrar, randomness_of(seed))
    ended: Run | None = None
    try:
        with contextlib.ExitStack() as stack:
            ended = _at_a_broker(stack, scenario, broker, seed, hosts, admissions, watch)
    except KeyboardInterrupt:
        if ended is None:  # otherwise only the broker's end was cut short
            raise
    return ended


def _at_a_broker(
    stack: contextlib.ExitStack,
    scenario: Scenario,
    broker: BrokerUrl | None,
    seed: int | None,
    hosts: int,
    admissions: Mapping[str, Admitted],
    watch: Watch,
) -> Run:
    """At the broker that was named, or at one that lasts as long as the stack."""
    addresses = (
        stack.enter_context(embedded_broker())
        if broker is None
        else BrokerAddresses(coordinator=broker, parties=broker)
    )
    return run_to_end(_on_mqtt(scenario, addresses, seed, watch, hosts, admissions))


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
    people = {name: Credential.draw(rng.fork(f"person/{name}")) for name in names}
    keys = {name: person.key_for(study.digest) for name, person in people.items()}
    return {name: (key, registrar.admit(study.digest, key.public)) for name, key in keys.items()}


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
    broker: BrokerAddresses,
    seed: int | None,
    watch: Watch,
    hosts: int,
    admissions: Mapping[str, Admitted],
) -> Run:
    if hosts and admissions:
        raise InputError("--hosts cannot be used where a registrar admits the parties")
    if hosts:
        return await on_hosts(scenario, broker, seed, watch, hosts)
    rng = randomness_of(seed)
    async with (
        mqtt_connection(scenario.study, broker.coordinator, coordinator=True) as above,
        mqtt_connection(scenario.study, broker.parties, coordinator=False) as below,
    ):
        return await _run(
            scenario, below.attach, above.attach(COORDINATOR), rng, watch,
            admissions, seed=seed, transport="mqtt",
        )  # fmt: skip


async def _all_of_them(coordinator: Coordinator, parties: list[Party]) -> tuple[Outcome, Ends]:
    """Everybody to the end. Who is interrupted has an outcome, too: what is known by then."""
    conducting = asyncio.create_task(coordinator.run())
    try:
        return await asyncio.gather(conducting, run_parties(parties))
    except asyncio.CancelledError:
        await asyncio.wait({conducting})  # it tells the parties, and writes down what it knows
        task = asyncio.current_task()
        if task is None or conducting.cancelled():
            raise
        task.uncancel()
        return conducting.result(), {}


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
    with faulty(scenario.faults, rng) as end:
        coordinator = Coordinator(
            study, end(coordinator_transport, COORDINATOR), rng.fork(COORDINATOR)
        )
        coordinator.closing = lambda ended, sign: for_parties(
            Run(study, ended, {}, seed, transport), sign
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
            outcome, ends = await _all_of_them(coordinator, parties)
    return close(Run(study, outcome, ends, seed, transport), coordinator.sign)
