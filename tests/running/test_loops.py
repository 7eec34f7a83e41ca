"""The event loop that MQTT needs, on this system and on another."""

import asyncio

from mpc_rr.running import loops


def test_on_windows_it_is_one_that_can_watch_a_socket():
    assert loops.loop_for_mqtt("win32") is asyncio.SelectorEventLoop
    assert loops.loop_for_mqtt("linux") is None


def test_a_coroutine_is_run_to_its_end():
    async def answer():
        return 42

    assert loops.run_to_end(answer()) == 42
