"""Run a study: all of it in this process, or only its coordinator, or only some parties."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from mpc_rr.agents.account import Account
from mpc_rr.agents.coordinator import Coordinator
from mpc_rr.agents.host import run_parties
from mpc_rr.agents.outcome import Outcome
from mpc_rr.agents.party import Party
from mpc_rr.errors import MpcRrError
from mpc_rr.network.broker import embedded_broker
from mpc_rr.network.memory import MemoryNetwork
from mpc_rr.network.messages import COORDINATOR
from mpc_rr.network.mqtt import BrokerUrl, MqttConnection
from mpc_rr.network.transport import Transport
from mpc_rr.protocols.interface import Ending
from mpc_rr.randomness import Randomness, SeededRandomness, SystemRandomness
from mpc_rr.scenario import Scenario, Study
from mpc_rr.schema import Record
from mpc_rr.simulation.clock import run_virtual
from mpc_rr.simulation.faults import FaultyTransport

Watch = Callable[[Coordinator], contextlib.AbstractContextManager[None]]
"""Shows a coordinator's progress for as long as its context lasts."""


AT_THE_DOOR = 200
"""So many parties of one process ask to be admitted at the same time; the others wait."""


@dataclass(frozen=True)
class StudyResult:
    """How a study ended: for the coordinator, and for each party that ran here."""

    study: Study
    outcome: Outcome
    parties: dict[str, Ending | MpcRrError] = field(repr=False)
    seed: int | None
    transport: str


@contextlib.contextmanager
def unwatched(coordinator: Coordinator) -> Iterator[None]:  # noqa: ARG001
    """Shows nothing."""
    yield


def run_study(
    scenario: Scenario,
    *,
    transport: Literal["memory", "mqtt"] = "mqtt",
    broker: BrokerUrl | None = None,
    seed: int | None = None,
    watch: Watch = unwatched,
) -> StudyResult:
    """Run a scenario to its end.

    ``memory`` simulates in virtual time, always from a seed (the scenario's, if none is given).
    ``mqtt`` takes the operating system's randomness unless a seed is given, and an embedded broker
    unless one is named.
    """
    if transport == "memory":
        seed = scenario.seed if seed is None else seed
        return run_virtual(_on_memory(scenario, seed, watch))
    if broker is not None:
        return asyncio.run(_on_mqtt(scenario, broker, seed, watch))
    with embedded_broker() as embedded:
        return asyncio.run(_on_mqtt(scenario, embedded, seed, watch))


async def _on_memory(scenario: Scenario, seed: int, watch: Watch) -> StudyResult:
    network = MemoryNetwork()
    return await _run(
        scenario, network.attach, network.attach(COORDINATOR), SeededRandomness(seed), watch,
        seed=seed, transport="memory",
    )  # fmt: skip


async def _on_mqtt(
    scenario: Scenario, broker: BrokerUrl, seed: int | None, watch: Watch
) -> StudyResult:
    rng = _randomness(seed)
    async with (
        mqtt_connection(scenario.study, broker, coordinator=True) as above,
        mqtt_connection(scenario.study, broker, coordinator=False) as below,
    ):
        return await _run(
            scenario, below.attach, above.attach(COORDINATOR), rng, watch,
            seed=seed, transport="mqtt",
        )  # fmt: skip


@contextlib.asynccontextmanager
async def mqtt_connection(
    study: Study, broker: BrokerUrl, *, coordinator: bool
) -> AsyncIterator[MqttConnection]:
    """A connection to a broker for the agents of a study."""
    size_limit = study.protocol.largest_message_bytes(study.schema, study.parties.count)
    connection = MqttConnection(
        broker, study.name, SystemRandomness(), size_limit=size_limit, coordinator=coordinator
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
) -> StudyResult:
    """Coordinate a study whose parties run elsewhere. ``announce`` is called when it is ready."""
    rng = _randomness(seed).fork(COORDINATOR)
    async with mqtt_connection(study, broker, coordinator=True) as connection:
        coordinator = Coordinator(study, connection.attach(COORDINATOR), rng)
        announce(coordinator)
        with watch(coordinator):
            outcome = await coordinator.run()
    return StudyResult(study, outcome, {}, seed, "mqtt")


def _randomness(seed: int | None) -> Randomness:
    return SystemRandomness() if seed is None else SeededRandomness(seed)


async def take_part(
    study: Study,
    broker: BrokerUrl,
    records: Mapping[str, Record],
    *,
    coordinator_fingerprint: str | None = None,
    seed: int | None = None,
    accounts: Mapping[str, Account] | None = None,
) -> dict[str, Ending | MpcRrError]:
    """Take part in a study with some records, by the names of their parties.

    ``accounts``: their books, in memory only for whoever has none. With a ``seed`` (for simulation
    only) the parties draw what they would draw in `run_study` under the same names.
    """
    rng, door = _randomness(seed), asyncio.Semaphore(AT_THE_DOOR)
    async with mqtt_connection(study, broker, coordinator=False) as connection:
        return await run_parties(
            Party(
                study,
                name,
                record,
                connection.attach(name),
                rng.fork(name),
                coordinator_fingerprint=coordinator_fingerprint,
                account=(accounts or {}).get(name),
                door=door,
            )
            for name, record in records.items()
        )


async def _run(
    scenario: Scenario,
    attach: Callable[[str], Transport],
    coordinator_transport: Transport,
    rng: Randomness,
    watch: Watch,
    *,
    seed: int | None,
    transport: str,
) -> StudyResult:
    study, faulty = scenario.study, []
    door = asyncio.Semaphore(AT_THE_DOOR)

    def with_faults(inner: Transport, name: str) -> FaultyTransport:
        faulty.append(FaultyTransport(inner, name, scenario.faults, rng.fork(f"faults/{name}")))
        return faulty[-1]

    coordinator = Coordinator(
        study, with_faults(coordinator_transport, COORDINATOR), rng.fork(COORDINATOR)
    )
    parties = [
        Party(study, name, record, with_faults(attach(name), name), rng.fork(name), door=door)
        for name, record in zip(scenario.party_names(), scenario.records(), strict=True)
    ]
    try:
        with watch(coordinator):
            outcome, ends = await asyncio.gather(coordinator.run(), run_parties(parties))
    finally:
        for end in faulty:
            end.close()
    return StudyResult(study, outcome, ends, seed, transport)
