"""The parts of a study that run in processes of their own: its coordinator, and some parties."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping

from mpc_rr.agents.coordinator import Coordinator
from mpc_rr.agents.host import Ends, run_parties
from mpc_rr.agents.party import Party
from mpc_rr.agents.terms import Terms
from mpc_rr.agents.watching import Watch, WatchParties, unwatched
from mpc_rr.network.address import BrokerUrl
from mpc_rr.network.envelope import COORDINATOR
from mpc_rr.network.memory import MemoryNetwork
from mpc_rr.network.mqtt import MqttConnection
from mpc_rr.network.transport import Transport
from mpc_rr.randomness import Randomness, SeededRandomness, SystemRandomness
from mpc_rr.results.closing import close, for_parties
from mpc_rr.running.run import Run
from mpc_rr.schema import Record
from mpc_rr.simulation.faults import Faults, FaultyTransport
from mpc_rr.study.checks import check_words
from mpc_rr.study.definition import Study

AT_THE_DOOR = 200
"""So many parties of one process ask to be admitted at the same time; the others wait."""


def randomness_of(seed: int | None) -> Randomness:
    """The operating system's, or, for simulation, a seed's."""
    return SystemRandomness() if seed is None else SeededRandomness(seed)


@contextlib.asynccontextmanager
async def mqtt_connection(
    study: Study, broker: BrokerUrl, *, coordinator: bool
) -> AsyncIterator[MqttConnection]:
    """A connection to a broker for the agents of a study."""
    deadlines = study.deadlines
    connection = MqttConnection(
        broker,
        study.name,
        SystemRandomness(),
        size_limit=study.largest_message_bytes,
        coordinator=coordinator,
        lobby_s=deadlines.lobby_s,
        longest_wait_s=deadlines.lobby_s + 2 * deadlines.round_s,
    )
    async with connection.open():
        yield connection


def nowhere(study: Study, seed: int | None = None) -> Coordinator:
    """A coordinator that nobody hears: of a study that ended before it had a connection."""
    transport = MemoryNetwork().attach(COORDINATOR)
    return Coordinator(study, transport, randomness_of(seed).fork(COORDINATOR))


async def coordinate_study(
    study: Study,
    broker: BrokerUrl,
    *,
    seed: int | None = None,
    announce: Callable[[Coordinator], None] = lambda _: None,
    watch: Watch = unwatched,
    faults: Faults | None = None,
    withdrawn: Collection[bytes] = (),
) -> Run:
    """Coordinate a study whose parties run elsewhere. ``announce`` is called when it is ready.

    ``withdrawn``: the keys of persons whose admissions the registrar has withdrawn.
    """
    check_words(study)
    rng = randomness_of(seed)
    async with mqtt_connection(study, broker, coordinator=True) as connection:
        with faulty(faults or Faults(), rng) as end:
            transport = end(connection.attach(COORDINATOR), COORDINATOR)
            coordinator = Coordinator(study, transport, rng.fork(COORDINATOR), withdrawn=withdrawn)
            coordinator.closing = lambda ended, sign: for_parties(
                Run(study, ended, {}, seed, "mqtt"), sign
            )
            announce(coordinator)
            with watch(coordinator):
                outcome = await coordinator.run()
    return close(Run(study, outcome, {}, seed, "mqtt"), coordinator.sign)


async def take_part(
    study: Study,
    broker: BrokerUrl,
    records: Mapping[str, Record],
    *,
    terms: Mapping[str, Terms] | None = None,
    seed: int | None = None,
    faults: Faults | None = None,
    watch: WatchParties = unwatched,
    when_stopped: Callable[[Ends], None] = lambda _: None,
) -> Ends:
    """Take part in a study with some records, by the names of their parties.

    ``terms``: theirs, by name; in memory only for whoever has none. With a ``seed`` (for
    simulation only) the parties draw what they would draw in `run_study` under the same names.
    ``when_stopped`` gets how far each had come, if this is cancelled.
    """
    check_words(study)
    rng, door = randomness_of(seed), asyncio.Semaphore(AT_THE_DOOR)
    async with mqtt_connection(study, broker, coordinator=False) as connection:
        with faulty(faults or Faults(), rng) as end:
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
            for first in parties[:1]:
                first.tell_steps()
            with watch(parties):
                return await run_parties(parties, when_stopped)


@contextlib.contextmanager
def faulty(
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
