"""A host: many parties in one process. Each has its own keys and its own record, and no other's."""

import asyncio
import contextlib
from collections.abc import Callable, Iterable

from mpc_rr.agents.party import Party
from mpc_rr.errors import InternalError, MpcRrError, Refused, one_line
from mpc_rr.publication.ending import Ending

Ends = dict[str, Ending | MpcRrError]
"""Each party's result, or why it has none, by its name."""
INTERRUPTED = "interrupted"


async def run_parties(
    parties: Iterable[Party], when_stopped: Callable[[Ends], None] = lambda _: None
) -> Ends:
    """Run all parties to their end.

    If they are cancelled, they say so to the coordinator, and when all have, ``when_stopped`` gets
    how far each of them had come.
    """
    parties = list(parties)
    names = [party.name for party in parties]
    if len(set(names)) != len(names):
        raise ValueError("two parties of one host have the same name")
    running = [asyncio.create_task(_end_of(party)) for party in parties]
    try:
        ends = await asyncio.gather(*running)
    except asyncio.CancelledError:
        try:
            await asyncio.wait(running)  # the first has ended; the others have a last word each
        finally:
            ended = zip(parties, running, strict=True)
            when_stopped({party.name: _stopped(party, task) for party, task in ended})
        raise
    return dict(zip(names, ends, strict=True))


def _stopped(party: Party, task: "asyncio.Task[Ending | MpcRrError]") -> Ending | MpcRrError:
    with contextlib.suppress(asyncio.CancelledError, asyncio.InvalidStateError):
        return task.result()
    fault = Refused(INTERRUPTED)
    fault.receipt = party.receipt
    return fault


async def _end_of(party: Party) -> Ending | MpcRrError:
    try:
        return await party.run()
    except MpcRrError as error:
        return error
    except Exception as error:  # noqa: BLE001  (a fault in one party must not end the others)
        what = one_line(f"{type(error).__name__}: {error}".rstrip(": "), 120)
        internal = InternalError(f"{party.name}: its program failed ({what}); please report")
        internal.__cause__ = error
        return internal
