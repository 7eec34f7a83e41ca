"""How agents are watched while they work; `mpc_rr.show.progress` draws what is seen."""

import contextlib
from collections.abc import Callable, Iterator, Sequence

from mpc_rr.agents.coordinator import Coordinator
from mpc_rr.agents.party import Party

Watch = Callable[[Coordinator], contextlib.AbstractContextManager[None]]
"""Shows a coordinator's progress for as long as its context lasts."""
WatchParties = Callable[[Sequence[Party]], contextlib.AbstractContextManager[None]]
"""The same for parties."""


@contextlib.contextmanager
def unwatched(whom: object) -> Iterator[None]:  # noqa: ARG001
    """Shows nothing."""
    yield
