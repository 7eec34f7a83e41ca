import asyncio
import time

import pytest

from mpc_rr.simulation.clock import run_virtual


def test_waiting_costs_no_time_and_the_clock_is_exact():
    async def main():
        loop = asyncio.get_running_loop()
        await asyncio.gather(asyncio.sleep(3600), asyncio.sleep(7200))
        return loop.time()

    started = time.monotonic()
    assert run_virtual(main()) == pytest.approx(7200)
    assert time.monotonic() - started < 60


def test_waiting_for_ever_is_an_error():
    async def main():
        await asyncio.Event().wait()

    with pytest.raises(RuntimeError, match="never comes"):
        run_virtual(main())
