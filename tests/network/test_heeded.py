"""Whoever is cancelled while a library waits is cancelled, whatever the library makes of it."""

import asyncio
import sys

import pytest

from mpc_rr.network.mqtt import heeded

TURNS = 1 if sys.version_info < (3, 12) else 0
"""Of the loop, after which the answer is there and wait_for has not handed it on yet."""


async def cancelled_with_the_answer(wait):
    answer = asyncio.Event()
    waiting = asyncio.create_task(wait(answer))
    for _ in range(3):
        await asyncio.sleep(0)
    answer.set()
    for _ in range(TURNS):
        await asyncio.sleep(0)
    waiting.cancel()
    return await waiting


async def test_a_cancelling_that_comes_with_the_answer_is_not_lost():
    """Once, now and then, Ctrl-C was: wait_for forgot it, and the study went on."""
    with pytest.raises(asyncio.CancelledError):
        await cancelled_with_the_answer(
            lambda answer: heeded(asyncio.wait_for(answer.wait(), 3600))
        )


async def test_who_was_cancelled_before_may_still_call():
    """As a party does that says that it was interrupted."""

    async def says_goodbye(_):
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            return await heeded(asyncio.sleep(0, "told"))

    assert await cancelled_with_the_answer(says_goodbye) == "told"
