"""Event loops for studies: one runs to its end wherever it is called from, a notebook included.

A notebook has an event loop that is running already, in which no other can be run. A study that is
called from there runs in a thread of its own, with a loop of its own.
"""

import asyncio
import concurrent.futures
import contextlib
import signal
import sys
import threading
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, Generic, TypeVar

T = TypeVar("T")
_here = threading.local()
"""In a thread of ours: the `_Thread` that it is."""


LoopFactory = Callable[[], asyncio.AbstractEventLoop]


def loop_for_mqtt(platform: str = sys.platform) -> LoopFactory | None:
    """How to make a loop that can watch a socket, as aiomqtt needs; None: as asyncio does.

    The usual loop of Windows cannot.
    """
    return asyncio.SelectorEventLoop if platform == "win32" else None


def run_to_end(main: Coroutine[Any, Any, T], loop_factory: LoopFactory | None = None) -> T:
    """Run a coroutine to its end in a fresh loop of this thread, by default one for MQTT."""

    async def known() -> T:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None
        thread: _Thread[Any] | None = getattr(_here, "thread", None)
        if thread is not None:
            thread.runs(loop, task)
        with _sigterm_as_ctrl_c(loop, task):
            return await main

    try:
        with asyncio.Runner(loop_factory=loop_factory or loop_for_mqtt()) as runner:
            return runner.run(known())
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None  # SIGTERM, or whoever runs the thread


@contextlib.contextmanager
def _sigterm_as_ctrl_c(
    loop: asyncio.AbstractEventLoop, task: "asyncio.Task[Any]"
) -> Iterator[None]:
    """Who ends this process by SIGTERM, as systemd and containers do, ends it as Ctrl-C does."""
    if threading.current_thread() is not threading.main_thread():
        yield  # signals are heard by the main thread alone
        return

    def stop(*_: object) -> None:
        task.cancel()
        loop.call_soon_threadsafe(lambda: None)  # it may sleep

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


class _Thread(Generic[T]):
    """A thread in which some work goes on that may run an event loop."""

    def __init__(self, work: Callable[[], T]) -> None:
        self.future: concurrent.futures.Future[T] = concurrent.futures.Future()
        self.future.set_running_or_notify_cancel()
        self._work, self._stopped = work, False
        self._running: tuple[asyncio.AbstractEventLoop, asyncio.Task[Any] | None] | None = None
        self._thread = threading.Thread(target=self._run, name="mpc-rr study", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        _here.thread = self
        try:
            self.future.set_result(self._work())
        except BaseException as error:  # noqa: BLE001  (it belongs to whoever waits)
            self.future.set_exception(error)

    def runs(self, loop: asyncio.AbstractEventLoop, task: "asyncio.Task[Any] | None") -> None:
        """Be told what is running now, so that it can be stopped."""
        self._running = (loop, task)
        if self._stopped:
            self._cancel()

    def stop(self) -> None:
        """Cancel what is running, and wait until it has cleaned up."""
        self._stopped = True
        self._cancel()
        self._thread.join()

    def _cancel(self) -> None:
        loop, task = self._running or (None, None)
        if loop is not None and task is not None:
            with contextlib.suppress(RuntimeError):  # it has ended meanwhile
                loop.call_soon_threadsafe(task.cancel)


def _loop_is_running() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def here(work: Callable[[], T]) -> T:
    """Do some work that runs an event loop, in another thread if this one has a running loop."""
    if not _loop_is_running():
        return work()
    thread = _Thread(work)
    try:
        return thread.future.result()
    except KeyboardInterrupt:
        thread.stop()
        raise


async def beside(work: Callable[[], T]) -> T:
    """Do some work that runs an event loop in another thread, while this loop goes on."""
    thread = _Thread(work)
    ending = asyncio.wrap_future(thread.future)
    ending.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
    try:
        await asyncio.wait({ending})
    except asyncio.CancelledError:
        await asyncio.to_thread(thread.stop)
        raise
    return ending.result()
