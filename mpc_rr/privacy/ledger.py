"""A party's own account of what it disclosed: events first, ε later, within a budget."""

import math
from dataclasses import dataclass, field

from mpc_rr.errors import InputError, all_quoted
from mpc_rr.privacy.accountant import DELTA, Accountant, Reading
from mpc_rr.privacy.disclosures import Disclosure
from mpc_rr.privacy.sentences import in_words


class OverdrawnError(InputError):
    """A disclosure would cost more than the party is willing to spend."""


@dataclass
class Ledger:
    """All that one person disclosed of her record, within a budget."""

    budget: float = math.inf
    events: list[Disclosure] = field(default_factory=list)

    def __post_init__(self) -> None:
        if not self.budget >= 0:
            raise InputError(f"a budget must not be negative, not {self.budget}")

    @property
    def spent(self) -> float:
        """The local ε of everything so far."""
        return math.fsum(event.cost for event in self.events)

    def check(self, *planned: Disclosure) -> None:
        """`OverdrawnError` if these events would exceed the budget. Nothing is recorded."""
        cost = math.fsum(event.cost for event in planned)
        if cost == 0 or self.spent + cost <= self.budget * (1 + 1e-9):
            return
        if math.isinf(cost):
            without = next(event for event in planned if math.isinf(event.cost))
            raise OverdrawnError(
                f"no ε bounds what this would disclose ({without.what}: "
                f"{all_quoted(without.attributes)}), so it exceeds the budget of {self.budget:.3g}"
            )
        if math.isinf(self.spent):
            raise OverdrawnError(
                f"no ε bounds what was disclosed before; the budget of {self.budget:.3g} allows "
                "nothing more"
            )
        raise OverdrawnError(
            f"all answers together would cost ε = {cost:.3g}; with ε = {self.spent:.3g} spent "
            f"before, the total {self.spent + cost:.3g} exceeds the budget of {self.budget:.3g}"
        )

    def charge(self, *events: Disclosure) -> None:
        """Record events, before they happen; `OverdrawnError` if the budget does not allow."""
        self.check(*events)
        self.events.extend(events)

    def reading(self, delta: float = DELTA) -> Reading:
        """The totals, by sequential composition."""
        return Accountant(delta=delta).read(self.events)

    def in_words(self) -> str:
        """What all of it together means to the respondent."""
        return in_words(self.events, you=True)
