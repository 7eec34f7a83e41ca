"""Masks for single values, what they leave to an attacker, and reverse mapping.

A person sees the values of everybody (not whose they are) and masks her own before she gives it
under her name. Whoever knows how wide the mask is can cross out all values too far from the masked
one; those that are left are its candidates. Paper 004 (Proposition 1) overlooks that, so a person
is told their number.
"""

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from mpc_rr.anonymization.table import Codes
from mpc_rr.errors import InputError
from mpc_rr.randomness import Randomness
from mpc_rr.schema import Attribute

MOST_FOR_COUNTING = 20
"""So many people at most for all assignments to be counted."""


@dataclass(frozen=True)
class Candidates:
    """The values that a masked one may come from."""

    people: int
    """How many of the values in the list fit."""
    values: int
    """How many different ones these are."""


class Perturbation(Protocol):
    """A way to mask one value among the values of all."""

    def draw(self, own: int, values: Codes, rng: Randomness) -> int:
        """The masked value."""

    def candidates(self, masked: int, values: Codes) -> Candidates:
        """What is left for somebody who knows this mask."""

    def wider(self) -> "Perturbation":
        """The same mask, twice as wide."""


def _count(fitting: Codes) -> Candidates:
    return Candidates(len(fitting), len(np.unique(fitting)))


@dataclass(frozen=True)
class NoPerturbation:
    """The value as it is."""

    def draw(self, own: int, values: Codes, rng: Randomness) -> int:  # noqa: ARG002
        """The value."""
        return own

    def candidates(self, masked: int, values: Codes) -> Candidates:
        """The value itself."""
        return _count(values[values == masked])

    def wider(self) -> "Noise":
        """The smallest noise."""
        return Noise(1)


@dataclass(frozen=True)
class Noise:
    """Add a whole number of steps between −width and width, all equally likely."""

    width: int

    def draw(self, own: int, values: Codes, rng: Randomness) -> int:  # noqa: ARG002
        """The value plus noise."""
        return own + int(rng.below(2 * self.width + 1, ())) - self.width

    def candidates(self, masked: int, values: Codes) -> Candidates:
        """All values within the width."""
        return _count(values[np.abs(values - masked) <= self.width])

    def wider(self) -> "Noise":
        """Twice the noise."""
        return Noise(2 * self.width)


@dataclass(frozen=True)
class RankSwap:
    """Take the value of somebody whose rank is at most ``percent`` of all people away."""

    percent: float

    def _reach(self, values: Codes) -> int:
        return math.ceil(self.percent * len(values) / 100)

    def draw(self, own: int, values: Codes, rng: Randomness) -> int:
        """A value near in rank. Among equal values, one's own rank is drawn too."""
        ordered = np.sort(values)
        first, after = (int(np.searchsorted(ordered, own, side)) for side in ("left", "right"))
        rank = first + int(rng.below(max(after - first, 1), ()))
        reach = self._reach(values)
        low, high = max(rank - reach, 0), min(rank + reach, len(values) - 1)
        return int(ordered[low + int(rng.below(high - low + 1, ()))])

    def candidates(self, masked: int, values: Codes) -> Candidates:
        """All values near in rank to those equal to the masked one."""
        ordered, reach = np.sort(values), self._reach(values)
        first, after = (int(np.searchsorted(ordered, masked, side)) for side in ("left", "right"))
        return _count(ordered[max(first - reach, 0) : after + reach])

    def wider(self) -> "RankSwap":
        """Twice as far."""
        return RankSwap(min(2 * self.percent, 100.0))


def read_perturbation(text: str, attribute: Attribute) -> Perturbation:
    """A mask from words: ``none``, ``noise:5000`` (in the attribute's units) or ``swap:10`` (%)."""
    kind, _, amount = text.partition(":")
    where = f"mask of {attribute.name!r}"
    if kind == "none" and not amount:
        return NoPerturbation()
    if kind not in ("noise", "swap"):
        raise InputError(f"{where}: {text!r} is not none, noise:WIDTH or swap:PERCENT")
    try:
        number = float(amount)
    except ValueError:
        raise InputError(f"{where}: {amount!r} is not a number") from None
    if kind == "swap":
        if attribute.type == "nominal":
            raise InputError(
                f"{where}: swapping by rank needs an order; {attribute.name!r} has none"
            )
        if not 0 < number <= 100:
            raise InputError(f"{where}: swap takes a percentage between 0 and 100, not {amount}")
        return RankSwap(number)
    if not attribute.numeric or attribute.step is None:
        raise InputError(f"{where}: noise needs numbers; {attribute.name!r} is {attribute.type}")
    if not 1 <= number / attribute.step <= attribute.size:
        raise InputError(
            f"{where}: the noise must be at least one step, {attribute.step:g}, and no wider than "
            "the attribute's range"
        )
    return Noise(round(number / attribute.step))


def enough_candidates(
    mask: Perturbation, own: int, values: Codes, least: int, rng: Randomness
) -> tuple[int, Perturbation, Candidates]:
    """Mask a value so that at least so many different values fit; the mask is widened if need be.

    If there are not that many different values at all, all there are must fit.
    """
    least = min(least, len(np.unique(values)))
    while True:
        masked = mask.draw(own, values, rng)
        left = mask.candidates(masked, values)
        if left.values >= least:
            return masked, mask, left
        mask = mask.wider()


def wide_enough(mask: Perturbation, masked: int, values: Codes, least: int) -> Perturbation:
    """This mask, or a wider one: so many different values (or all there are) fit a masked one."""
    least = min(least, len(np.unique(values)))
    while mask.candidates(masked, values).values < least:
        mask = mask.wider()
    return mask


# ── Reverse mapping ────────────────────────────────────────────────────────────────────────────


def ranks(masked: Sequence[int], names: Sequence[str], seed: bytes, attribute: str) -> list[int]:
    """The rank of each value, from 0; equal ones in an order that only chance decides.

    The chance comes from public randomness, so that everybody finds the same order.
    """

    def chance(name: str) -> bytes:
        return hashlib.sha256(
            b"\0".join([b"mpc-rr tie", seed, attribute.encode(), name.encode()])
        ).digest()

    order = sorted(range(len(masked)), key=lambda row: (masked[row], chance(names[row])))
    places = [0] * len(masked)
    for rank, row in enumerate(order):
        places[row] = rank
    return places


def reverse_mapped(
    masked: Sequence[int], values: Sequence[int], names: Sequence[str], seed: bytes, attribute: str
) -> list[int]:
    """For each masked value, the original one of equal rank.

    If some people gave a value but no masked one, the values that are used are spread evenly.
    """
    ordered, given = sorted(values), len(masked)
    return [
        ordered[(2 * rank + 1) * len(ordered) // (2 * given)]
        for rank in ranks(masked, names, seed, attribute)
    ]


# ── What an attacker finds who puts all masked values together ─────────────────────────────────


def assignments_left(masked: Sequence[int], values: Sequence[int], width: int) -> int:
    """In how many ways the values can belong to the people, if all noise is within ``width``."""
    if len(masked) > MOST_FOR_COUNTING:
        raise InputError(f"assignments of more than {MOST_FOR_COUNTING} people are not counted")
    ways = {0: 1}
    for own in masked:
        following: dict[int, int] = {}
        for taken, count in ways.items():
            for place, value in enumerate(values):
                if abs(value - own) <= width and not taken >> place & 1:
                    now = taken | 1 << place
                    following[now] = following.get(now, 0) + count
        ways = following
    return sum(ways.values())


def possible_values(
    masked: Sequence[int], values: Sequence[int], width: int
) -> list[set[int]] | None:
    """For each person, the values that belong to her in at least one possible assignment.

    None if there is no such assignment: somebody's noise was wider.

    A value can be hers if swapping it in leaves everybody else some value: if both lie on a cycle
    of such swaps, that is in one strongly connected component (Dulmage & Mendelsohn).
    """
    from scipy.sparse import csr_array  # noqa: PLC0415  (slow to start)
    from scipy.sparse.csgraph import (  # noqa: PLC0415
        connected_components,
        maximum_bipartite_matching,
    )

    if len(masked) != len(values):
        raise InputError(f"{len(masked)} masked values for {len(values)} values")
    own, all_values = np.asarray(masked), np.asarray(values)
    fits = np.abs(own[:, None] - all_values[None, :]) <= width
    match = maximum_bipartite_matching(csr_array(fits), perm_type="column")
    if (match < 0).any():
        return None
    between = csr_array(fits[:, match])
    _, component = connected_components(between, directed=True, connection="strong")
    holder = np.empty(len(all_values), dtype=np.intp)
    holder[match] = np.arange(len(own))
    return [
        {
            int(all_values[v])
            for v in np.flatnonzero(fits[p])
            if component[holder[v]] == component[p]
        }
        for p in range(len(own))
    ]
