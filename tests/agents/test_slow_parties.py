"""A party that is slow hears what belongs to its result after the verdict."""

import asyncio

import msgspec
import pytest
from helpers import make_study, random_records, simulate

from mpc_rr.errors import Refused
from mpc_rr.network import memory
from mpc_rr.network.envelope import Envelope, SignedEnvelope
from mpc_rr.network.lifecycle import Verdict
from mpc_rr.network.memory import MemoryTransport
from mpc_rr.network.transport import Arrival
from mpc_rr.protocols.rr_independent import RRIndependent
from mpc_rr.publication.ending import Ending

SLOW = "party-3"


def step_of(raw):
    signed = msgspec.msgpack.decode(raw, type=SignedEnvelope)
    return msgspec.msgpack.decode(signed.envelope, type=Envelope).header.step


def holding_back(steps, for_s):
    """A transport in which, of one party, the verdict overtakes what came before it."""

    class Slow(MemoryTransport):
        held, heard_at = (), None

        @property
        def behind(self):
            return bool(self.held)

        async def recv(self):
            while self._address == SLOW:
                due = self.heard_at is not None and self.heard_at + for_s
                left_s = due - asyncio.get_running_loop().time() if due and self.held else None
                if left_s is not None and left_s <= 0:
                    first, *self.held = self.held
                    return Arrival(first)
                try:
                    async with asyncio.timeout(left_s):
                        raw = await self.inbox.get()
                except TimeoutError:
                    continue
                if step_of(raw) in steps:
                    self.held = [*self.held, raw]
                    continue
                if step_of(raw) == Verdict.step:
                    self.heard_at = asyncio.get_running_loop().time()
                return Arrival(raw)
            return await super().recv()

    return Slow


@pytest.mark.parametrize(("for_s", "end"), [(20.0, Ending), (200.0, Refused)])
def test_who_has_not_read_all_is_not_left_behind(monkeypatch, for_s, end):
    """In a host of 1,500 some were told that there was no result, in a study that counted them."""
    study = make_study(4, protocol=RRIndependent(keep=0.6), round_s=300.0)
    monkeypatch.setattr(memory, "MemoryTransport", holding_back({"answers_taken"}, for_s))
    outcome, ends = simulate(study, random_records(4, (2, 3)))
    assert outcome.result is not None
    assert isinstance(ends[SLOW], end)
