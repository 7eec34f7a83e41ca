"""What one party of a process has worked out from public messages, the others need not repeat.

Every party checks everything that all others say. Where thousands of parties live in one process,
as on a host or in a simulation, they would all do the same. Protocols ask for it by
``session.shared``, which adds to the key of a result the run, the session and the keys it was
worked out with.
"""

import hashlib
from collections.abc import Callable
from typing import Any, TypeVar

from mpc_rr.network.envelope import Message, encode

T = TypeVar("T")
KEPT = 32
_results: dict[tuple[object, ...], Any] = {}
_digests: dict[int, tuple[Message, bytes]] = {}
"""By the identity of a message, which is kept so that no other can take its place."""


def once_per_process(key: tuple[object, ...], work: Callable[[], T]) -> T:
    """The result of ``work``, which must follow from ``key`` alone; an error is not kept."""
    if key not in _results:
        _results[key] = work()
        if len(_results) > KEPT:
            del _results[next(iter(_results))]
    found: T = _results[key]
    return found


def digest_of(message: Message) -> bytes:
    """A digest of a message; the parties of a process share the messages that all have heard."""
    known = _digests.get(id(message))
    if known is not None:
        return known[1]
    digest = hashlib.sha256(encode(message)).digest()
    _digests[id(message)] = (message, digest)
    if len(_digests) > KEPT:
        del _digests[next(iter(_digests))]
    return digest
