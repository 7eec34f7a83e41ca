"""What can be said of a result folder, claim by claim: confirmed, not confirmable, contradicted.

A folder proves only so much. What it does not prove is said in so many words, with what would; and
what it disproves does not hide the rest. A claim that rests on another is looked at only if that
one is confirmed.
"""

from collections.abc import Callable, Collection
from typing import Literal

import msgspec

from mpc_rr.errors import plain
from mpc_rr.network.session.replay import DoesNotHold

Judgement = Literal["confirmed", "not confirmable", "contradicted"]


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """Something that a result folder says, and whether it can be believed.

    ``why``: if it cannot be confirmed, why, and what would change that; if it is contradicted, what
    differs; if it is confirmed, how much of it there is.
    """

    claim: str
    verdict: Judgement
    why: str = ""

    def __str__(self) -> str:
        said = plain(": ".join(part for part in (self.verdict, self.claim, self.why) if part))
        return " ".join(said.split())  # else spaces could fill a line, and a false one follow


class CannotTell(Exception):
    """A claim that cannot be confirmed from a folder; the text says why."""


class Contradicted(DoesNotHold):
    """A result folder in which something is not as it says; ``claims`` has everything."""

    def __init__(self, claims: tuple[Claim, ...]) -> None:
        first, *more = [claim for claim in claims if claim.verdict == "contradicted"]
        rest = f" (and {len(more)} more)" if more else ""
        super().__init__(f"{first}{rest}")
        self.claims = claims


class Findings:
    """The claims that have been looked at so far."""

    def __init__(self) -> None:
        self._made: dict[str, Claim] = {}

    @property
    def claims(self) -> tuple[Claim, ...]:
        """All of them, in the order in which they were looked at."""
        return tuple(self._made.values())

    def confirmed(self, claim: str) -> bool:
        """Whether this claim was looked at, and holds."""
        return claim in self._made and self._made[claim].verdict == "confirmed"

    def look(self, claim: str, check: Callable[[], str], needs: Collection[str] = ()) -> None:
        """Check a claim, if what it rests on is confirmed. ``check`` says how much was found."""
        verdict: Judgement = "confirmed"
        shaky = [need for need in needs if not self.confirmed(need)]
        try:
            if shaky:
                raise CannotTell(f"it rests on what is not confirmed: {shaky[0]}")  # noqa: TRY301
            why = check()
        except CannotTell as error:
            verdict, why = "not confirmable", str(error)
        except DoesNotHold as error:
            verdict, why = "contradicted", str(error)
        self._made[claim] = Claim(claim=claim, verdict=verdict, why=why)

    def cannot_tell(self, claim: str, why: str, of: str = "") -> None:
        """A claim that no folder of this kind can prove.

        ``of``: what it is about, where the claims of two such things may read the same.
        """
        self._made[f"{claim}\0{of}" if of else claim] = Claim(
            claim=claim, verdict="not confirmable", why=why
        )
