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
        signals.runs(loop, task)
        return await main

    signals = _Signals()
    try:
        factory = loop_factory or loop_for_mqtt()
        with signals.heard(), asyncio.Runner(loop_factory=factory) as runner:
            return runner.run(known())
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None  # a signal, or whoever runs the thread


def settle() -> None:
    """What runs in this thread has come to a result, which no signal may take away any more."""
    signals: _Signals | None = getattr(_here, "signals", None)
    if signals is not None:
        signals.settle()


class _Signals:
    """Ctrl-C, and SIGTERM, by which systemd and containers end a process: both cancel what runs.

    A second Ctrl-C ends it at once. When there is a result, the first signal only means not to wait
    any longer, and further ones mean nothing: whatever sends one, may well send two.
    """

    def __init__(self) -> None:
        self._running: tuple[asyncio.AbstractEventLoop, asyncio.Task[Any]] | None = None
        self._came = self._settled = False

    def runs(self, loop: asyncio.AbstractEventLoop, task: "asyncio.Task[Any]") -> None:
        """Be told what is to be cancelled."""
        self._running = (loop, task)

    def settle(self) -> None:
        """There is a result."""
        self._came, self._settled = False, True

    @contextlib.contextmanager
    def heard(self) -> Iterator[None]:
        """Hear signals for as long as the context lasts, unless somebody else does."""
        if threading.current_thread() is not threading.main_thread():
            yield  # signals are heard by the main thread alone
            return
        ctrl_c = signal.getsignal(signal.SIGINT) is signal.default_int_handler
        numbers = [signal.SIGTERM, *([signal.SIGINT] if ctrl_c else [])]
        before = {number: signal.signal(number, self._stop) for number in numbers}
        outer, _here.signals = getattr(_here, "signals", None), self
        try:
            yield
        finally:
            _here.signals = outer
            for number, handler in before.items():
                signal.signal(number, handler)

    def _stop(self, number: int, _frame: object) -> None:
        again, self._came = self._came, True
        if self._settled and again:
            return
        if self._running is None or (again and number == signal.SIGINT):
            raise KeyboardInterrupt
        loop, task = self._running
        if not loop.is_closed():
            task.cancel()
            loop.call_soon_threadsafe(lambda: None)  # it may sleep


@contextlib.contextmanager
def deaf(*numbers: signal.Signals) -> Iterator[None]:
    """Signals mean nothing for a moment; nor do they to processes that are started meanwhile.

    By default Ctrl-C and SIGTERM: for what takes a moment only, and must be there in the end.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # signals are heard by the main thread alone
        return
    deaf_to = numbers or (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, signal.SIG_IGN) for number in deaf_to}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


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
