"""What one party of a process has worked out from public messages, the others need not repeat.

Every party checks everything that all others say. Where thousands of parties live in one process,
as on a host or in a simulation, they would all do the same. Protocols ask for it by
``session.shared``, which adds to the key of a result the run, the session and the keys it was
worked out with.
"""

import hashlib
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from mpc_rr.network.envelope import Message, encode

T = TypeVar("T")
KEPT = 32
_results: dict[tuple[object, ...], tuple[Any]] = {}
_at_a_time = threading.Lock()
"""Studies may run in several threads."""
_digests: dict[int, tuple[Message, bytes]] = {}
"""By the identity of a message, which is kept so that no other can take its place."""


def once_per_process(key: tuple[object, ...], work: Callable[[], T]) -> T:
    """The result of ``work``, which must follow from ``key`` alone; an error is not kept."""
    with _at_a_time:
        kept: tuple[T] | None = _results.get(key)
    if kept is not None:
        return kept[0]
    found = work()
    with _at_a_time:
        _results[key] = (found,)
        _forget_oldest(_results)
    return found


def digest_of(message: Message) -> bytes:
    """A digest of a message; the parties of a process share the messages that all have heard."""
    known = _digests.get(id(message))
    if known is not None:
        return known[1]
    digest = hashlib.sha256(encode(message)).digest()
    with _at_a_time:
        _digests[id(message)] = (message, digest)
        _forget_oldest(_digests)
    return digest


def _forget_oldest(kept: dict[Any, Any]) -> None:
    while len(kept) > KEPT:
        del kept[next(iter(kept))]
