"""What something costs: processor time of all processes, and time on the wall."""

import resource
import time
from types import TracebackType


def processor_seconds() -> float:
    """Of this process, and of those it has waited for."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(u.ru_utime + u.ru_stime for u in used)


class Cost:
    """Of a ``with`` block; while it lasts, what it has cost so far."""

    def __enter__(self) -> "Cost":
        self._started = (time.perf_counter(), processor_seconds())
        self._ended: tuple[float, float] | None = None
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._ended = (time.perf_counter(), processor_seconds())

    @property
    def wall_s(self) -> float:
        """Time that has passed."""
        ended = self._ended or (time.perf_counter(), 0.0)
        return ended[0] - self._started[0]

    @property
    def processor_s(self) -> float:
        """Time that processors were busy with it."""
        ended = self._ended or (0.0, processor_seconds())
        return ended[1] - self._started[1]
