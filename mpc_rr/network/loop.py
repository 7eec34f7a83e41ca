"""The event loop that MQTT needs."""

import asyncio
import sys
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def loop_factory(platform: str = sys.platform) -> Callable[[], asyncio.AbstractEventLoop] | None:
    """How to make a loop that can watch a socket; None: as asyncio does.

    The usual loop of Windows cannot; aiomqtt watches the socket of its connection.
    """
    return asyncio.SelectorEventLoop if platform == "win32" else None


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end, as `asyncio.run` does, in a loop in which MQTT works."""
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        return runner.run(main)
