"""A party's own account of what it gave away: events first, ε later.

Every release is an event. Three readings are computed from the events, side by side:

* **local**: against whoever sees everything this party sent, under its name. Everything one record
  answered adds up (sequential composition). This is what an attacker can be held to.
* **claimed**: what the paper of the protocol says, where that is less.
* **central**: against whoever sees only the published aggregate over a crowd, as (ε, δ).
"""

import math
from dataclasses import dataclass, field

from mpc_rr.errors import InputError
from mpc_rr.privacy import shuffling
from mpc_rr.privacy.odds import in_words


def bounded(epsilon: float) -> float | None:
    """An ε for JSON, which has no infinity: None if there is no bound."""
    return None if math.isinf(epsilon) else epsilon


class OverdrawnError(InputError):
    """A release would spend more than the party is willing to."""


@dataclass(frozen=True)
class LedgerEntry:
    """One answer that left the party."""

    study: str
    mechanism: str
    attributes: tuple[str, ...]
    epsilon: float
    claimed: float | None = None
    """What the paper says, if that differs from ``epsilon``."""
    crowd: int | None = None
    """Among how many parties' answers it is hidden; None if it is seen under the party's name."""
    delta: float = 0.0
    """How likely ``epsilon`` is not to hold, at most."""

    def __post_init__(self) -> None:
        if not self.epsilon >= 0:
            raise InputError(f"a release costs a non-negative epsilon, not {self.epsilon}")
        if self.claimed is not None and not self.claimed >= 0:
            raise InputError(f"a claimed epsilon must not be negative, not {self.claimed}")
        if self.crowd is not None and self.crowd < 2:
            raise InputError(f"a crowd has at least two parties, not {self.crowd}")
        if not 0 <= self.delta <= 1:
            raise InputError(f"a delta lies between 0 and 1, not {self.delta}")


@dataclass(frozen=True)
class Reading:
    """The totals of a ledger in its three readings."""

    local: float
    claimed: float
    central: float
    delta: float
    """With which the central reading holds."""
    local_delta: float
    """With which the local one does; 0 but for noise that is added inside a sum."""


@dataclass
class Ledger:
    """All releases of one party about one record, within a budget."""

    budget: float = math.inf
    releases: list[LedgerEntry] = field(default_factory=list)

    def __post_init__(self) -> None:
        if not self.budget >= 0:
            raise InputError(f"a budget must not be negative, not {self.budget}")

    @property
    def spent(self) -> float:
        """The local ε of everything so far."""
        return math.fsum(release.epsilon for release in self.releases)

    def check(self, *planned: LedgerEntry) -> None:
        """`OverdrawnError` if these releases would exceed the budget. Nothing is recorded."""
        cost = math.fsum(release.epsilon for release in planned)
        if cost == 0 or self.spent + cost <= self.budget * (1 + 1e-9):
            return
        if math.isinf(cost):
            without = next(release for release in planned if math.isinf(release.epsilon))
            raise OverdrawnError(
                f"no ε bounds what this would give away ({without.mechanism}: "
                f"{', '.join(without.attributes)}), so it exceeds the budget of {self.budget:.3g}"
            )
        if math.isinf(self.spent):
            raise OverdrawnError(
                f"no ε bounds what was given away before; the budget of {self.budget:.3g} allows "
                "nothing more"
            )
        raise OverdrawnError(
            f"this would cost ε = {cost:.3g}; with ε = {self.spent:.3g} spent before, the total "
            f"{self.spent + cost:.3g} exceeds the budget of {self.budget:.3g}"
        )

    def charge(self, *releases: LedgerEntry) -> None:
        """Record releases, before they are made; `OverdrawnError` if the budget does not allow."""
        self.check(*releases)
        self.releases.extend(releases)

    def reading(self, delta: float = 1e-6) -> Reading:
        """The totals. Each hidden release gets an equal part of δ; the ε add up."""
        hidden = [release for release in self.releases if release.crowd is not None]
        part = delta / len(hidden) if hidden else delta
        central = math.fsum(
            release.epsilon
            if release.crowd is None
            else shuffling.numerical(release.epsilon, release.crowd, part)
            for release in self.releases
        )
        claimed = math.fsum(
            release.epsilon if release.claimed is None else release.claimed
            for release in self.releases
        )
        own = math.fsum(release.delta for release in self.releases)
        return Reading(self.spent, claimed, central, own + (delta if hidden else 0.0), own)

    def in_words(self) -> str:
        """What all releases together mean to the respondent."""
        return in_words(self.spent)
