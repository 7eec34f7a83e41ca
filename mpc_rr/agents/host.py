"""A host: many parties in one process. Each has its own keys and its own record, and no other's."""

import asyncio
from collections.abc import Iterable

from mpc_rr.agents.party import Party
from mpc_rr.errors import InternalError, MpcRrError, one_line
from mpc_rr.publication.ending import Ending


async def run_parties(parties: Iterable[Party]) -> dict[str, Ending | MpcRrError]:
    """Run all parties to their end; each one's result, or why it has none, by its name."""
    parties = list(parties)
    names = [party.name for party in parties]
    if len(set(names)) != len(names):
        raise ValueError("two parties of one host have the same name")
    ends = await asyncio.gather(*(_end_of(party) for party in parties))
    return dict(zip(names, ends, strict=True))


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
