"""What taking part in a study costs each party, as its result publishes it."""

from collections.abc import Sequence

import msgspec

from mpc_rr.privacy.accountant import Accountant
from mpc_rr.privacy.disclosures import AnyDisclosure, Caution, Disclosure, bounded
from mpc_rr.privacy.entropy import entropy_share
from mpc_rr.privacy.sentences import in_words


class Privacy(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What taking part costs each party: events, and three readings of them. No bound is null."""

    events: tuple[AnyDisclosure, ...]
    local_epsilon: float | None
    """Against whoever sees all that a party sent."""
    local_delta: float
    claimed_epsilon: float | None
    """As the paper counts."""
    central_epsilon: float | None
    """Against whoever sees only totals."""
    central_delta: float
    in_words: str
    accountant: str = ""
    """By whose rules the readings add up."""
    cautions: tuple[Caution, ...] = ()
    """What a respondent was told beforehand that may happen."""
    local_withstands: int | None = None
    """``local_epsilon`` holds as long as no more than so many parties pool what they know; if more
    do, no ε bounds it. Null: whatever they do, or there is no bound."""
    local_trusts_coordinator: bool = False
    """And as long as the coordinator follows the protocol."""
    answers: dict[str, float | None] = {}
    """What bounds each answer by itself, by attribute: against whoever knows all other answers of
    the person, on the same condition. Null: no ε does."""

    @property
    def beta(self) -> float | None:
        """The share of the largest entropy that all answers together leave (001); None: no such."""
        return entropy_share(self.events)

    @classmethod
    def of(cls, events: Sequence[Disclosure], cautions: Sequence[Caution] = ()) -> "Privacy":
        """What follows from the events."""
        reading = Accountant().read(events)
        return cls(
            events=tuple(events),  # type: ignore[arg-type]
            local_epsilon=bounded(reading.local),
            local_delta=reading.local_delta,
            claimed_epsilon=bounded(reading.claimed),
            central_epsilon=bounded(reading.central),
            central_delta=reading.delta,
            in_words=in_words(events),
            accountant=reading.accountant,
            cautions=tuple(cautions),
            local_withstands=reading.withstands,
            local_trusts_coordinator=reading.trusts_coordinator,
            answers={name: bounded(epsilon) for name, epsilon in reading.answers.items()},
        )
