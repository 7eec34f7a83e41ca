"""What one party of a host has worked out from public messages, the others need not repeat.

Every party checks everything that all others say. Where thousands of parties live in one process,
as in a simulation, they would all do the same; the key of a result holds all that it depends on.
"""

from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")
KEPT = 32
_results: dict[tuple[object, ...], Any] = {}


def once_per_host(key: tuple[object, ...], work_out: Callable[[], T]) -> T:
    """The result of ``work_out``, which must follow from ``key`` alone; an error is not kept."""
    if key not in _results:
        _results[key] = work_out()
        if len(_results) > KEPT:
            del _results[next(iter(_results))]
    found: T = _results[key]
    return found
