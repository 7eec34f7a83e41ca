"""The event loop that MQTT needs, on this system and on another."""

import asyncio

from mpc_rr.network import loop


def test_on_windows_it_is_one_that_can_watch_a_socket():
    assert loop.loop_factory("win32") is asyncio.SelectorEventLoop
    assert loop.loop_factory("linux") is None


def test_a_coroutine_is_run_to_its_end():
    async def answer():
        return 42

    assert loop.run(answer()) == 42
