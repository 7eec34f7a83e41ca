"""Masks for single values, what they leave to an attacker, and reverse mapping.

A person sees the values of everybody (not whose they are) and masks her own before she gives it
under her name. Whoever knows the mask can reckon from the masked value how likely each value of the
list is to be hers (Bayes). Paper 004 (Proposition 1) overlooks that, so a person is told how many
candidates are left.

How wide a mask is follows from the list and from what was chosen, and from nothing else: a mask
that is wider for whoever has a rare value betrays her by its width.
"""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
import numpy.typing as npt

from mpc_rr.anonymization.table import Codes
from mpc_rr.errors import InputError, all_quoted, one_line
from mpc_rr.randomness import Randomness
from mpc_rr.schema import GRID_TOLERANCE, MOST_STEPS, Attribute

Ranks = npt.NDArray[np.intp]
AMOUNT = re.compile(
    r"(?=.{1,20}$)[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]{1,3})?", re.IGNORECASE
)
"""How wide a mask is: it is shown to people as it stands, so it is a number and nothing else."""
FARTHEST_TOLD = 3
"""How far beyond what can be answered a chosen value may lie, in ranges of the attribute."""


@dataclass(frozen=True)
class Candidates:
    """What somebody is left with who knows the list, the mask and the masked value.

    Before that, the value of each person in the list is equally likely to be the one.
    """

    people: int
    """The value of no person is likelier than 1 in so many."""
    values: int
    """No value, of however many people it is, is likelier than 1 in so many."""


@dataclass(frozen=True)
class _Neighbours:
    """The people in rising order of value, and for each rank the nearest ones.

    All ranks have equally many of them, at the ends of the list more on one side: so every rank is
    as likely as any other to be drawn from its own neighbours, and Bayes is mere counting.
    """

    ordered: Codes
    reach: int
    """How many on either side."""

    @classmethod
    def among(cls, values: Codes, reach: int) -> "_Neighbours":
        return cls(np.sort(values), reach)

    @property
    def size(self) -> int:
        return min(2 * self.reach + 1, len(self.ordered))

    def first(self, ranks: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
        """The lowest neighbour of each of these ranks."""
        return np.clip(ranks - self.reach, 0, len(self.ordered) - self.size)

    @cached_property
    def _values(self) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
        """Where each different value begins, and how many people have it."""
        _, begins, people = np.unique(self.ordered, return_index=True, return_counts=True)
        return begins, people

    def draw(self, own: int, rng: Randomness) -> int:
        """The value of a neighbour. Among equal values, one's own rank is drawn too."""
        low, high = (int(np.searchsorted(self.ordered, own, side)) for side in ("left", "right"))
        rank = low + int(rng.below(max(high - low, 1), ()))
        return int(self.ordered[self.first(np.array(rank)) + int(rng.below(self.size, ()))])

    def candidates(self, lowest: int, highest: int) -> Candidates:
        """What is left if a value between these was drawn, all such draws being equally likely."""
        low = int(np.searchsorted(self.ordered, lowest, "left"))
        high = int(np.searchsorted(self.ordered, highest, "right"))
        first = self.first(np.arange(len(self.ordered)))
        draws = np.minimum(first + self.size, high) - np.maximum(first, low)
        begins, people = self._values
        of_value = np.add.reduceat(np.maximum(draws, 0), begins)
        total, fits = int(of_value.sum()), of_value > 0
        if not total:
            return Candidates(0, 0)
        each = total * people[fits] // of_value[fits]
        return Candidates(int(each.min()), total // int(of_value.max()))


class Perturbation:
    """A way to mask one value among the values of all: swap it by rank, then add noise.

    Kinds of masks differ in how much they do of either.
    """

    def reach(self, people: int) -> int:  # noqa: ARG002
        """Among how many neighbours in rank on either side it swaps, of so many people."""
        return 0

    def noise(self) -> int:
        """It adds a whole number of steps between minus this and this, all equally likely."""
        return 0

    def draw(self, own: int, values: Codes, rng: Randomness) -> int:
        """The masked value."""
        reach, noise = self.reach(len(values)), self.noise()
        taken = _Neighbours.among(values, reach).draw(own, rng) if reach else own
        return taken + int(rng.below(2 * noise + 1, ())) - noise if noise else taken

    def taken_from(self, own: int, ordered: Codes) -> Codes:
        """The values that a swap may take instead of one's own."""
        near = _Neighbours(ordered, self.reach(len(ordered)))
        low, high = (int(np.searchsorted(ordered, own, side)) for side in ("left", "right"))
        if not near.reach or low == high:
            return np.array([own])
        first, last = near.first(np.array([low, high - 1])).tolist()
        return ordered[first : last + near.size]

    def draw_each(self, ordered: Codes, rng: Randomness) -> Codes:
        """A masked value of each person, where everybody uses this mask."""
        reach, noise, people = self.reach(len(ordered)), self.noise(), len(ordered)
        near = _Neighbours(ordered, reach)
        places = near.first(np.arange(people))
        if reach:
            places = places + rng.below(near.size, (people,)).astype(np.int64)
            taken = ordered[places]
        else:
            taken = ordered
        drawn = rng.below(2 * noise + 1, (people,)).astype(np.int64) - noise if noise else 0
        return np.asarray(taken + drawn)

    def origins(self, masked: Codes, ordered: Codes) -> tuple[Ranks, Ranks]:
        """From which ranks each masked value may come: the first, and the one after the last."""
        near, noise = _Neighbours(ordered, self.reach(len(ordered))), self.noise()
        low = np.searchsorted(ordered, masked - noise, "left")
        high = np.searchsorted(ordered, masked + noise, "right")
        first = near.first(np.arange(len(ordered)))
        begins = np.searchsorted(first, low - near.size, "right")
        ends = np.searchsorted(first, high, "left")
        return begins, np.where(low < high, ends, begins)

    def candidates(self, masked: int, values: Codes) -> Candidates:
        """What is left for somebody who knows this mask; 0 if it cannot have given this value."""
        near, noise = _Neighbours.among(values, self.reach(len(values))), self.noise()
        return near.candidates(masked - noise, masked + noise)


@dataclass(frozen=True)
class NoPerturbation(Perturbation):
    """The value as it is."""


@dataclass(frozen=True)
class Noise(Perturbation):
    """Add a whole number of steps between −width and width, all equally likely."""

    width: int

    def noise(self) -> int:
        """The width."""
        return self.width


@dataclass(frozen=True)
class RankSwap(Perturbation):
    """Take the value of a neighbour in rank: ``percent`` of all people on either side are."""

    percent: int | Fraction

    def reach(self, people: int) -> int:
        """The percentage of the people, rounded up."""
        return int(-(-self.percent * people // 100))


@dataclass(frozen=True)
class Widened(Perturbation):
    """A mask before which the value is swapped among more neighbours in rank."""

    mask: Perturbation
    neighbours: int
    """On either side."""

    def reach(self, people: int) -> int:  # noqa: ARG002
        """As many as it was widened to."""
        return self.neighbours

    def noise(self) -> int:
        """As before."""
        return self.mask.noise()


@dataclass(frozen=True)
class ChosenValue(Perturbation):
    """A value of one's own choice, whatever the true one is."""

    code: int

    def draw(self, own: int, values: Codes, rng: Randomness) -> int:  # noqa: ARG002
        """The chosen value."""
        return self.code


def _read_value(text: str, attribute: Attribute) -> ChosenValue:
    """``37306``, which need not be within what can be answered; or a category."""
    where = f"mask of {attribute.name!r}"
    if not attribute.numeric or attribute.lowest is None or attribute.step is None:
        answers = [attribute.categories[code] for code in attribute.answer_codes]
        if text not in answers:
            raise InputError(
                f"{where}: {one_line(repr(text), 60)} is not one of {all_quoted(answers)}"
            )
        return ChosenValue(attribute.categories.index(text))
    if not AMOUNT.fullmatch(text):
        raise InputError(f"{where}: {one_line(repr(text), 60)} is not a number")
    if abs(float(text)) > MOST_STEPS:
        raise InputError(f"{where}: {text} is too far from what can be answered")
    code = round((float(text) - attribute.lowest) / attribute.step)
    if abs(attribute.number(code) - float(text)) > GRID_TOLERANCE * attribute.step:
        raise InputError(
            f"{where}: {text} is not {attribute.lowest:.15g} plus a multiple of its step, "
            f"{attribute.step:.15g}"
        )
    if abs(code) > attribute.size * FARTHEST_TOLD:
        raise InputError(f"{where}: {text} is too far from what can be answered")
    return ChosenValue(code)


def read_perturbation(text: str, attribute: Attribute) -> Perturbation:
    """A mask from words: ``none``, ``noise:5000`` (in the attribute's units) or ``swap:10`` (%).

    Or ``=37306``, a value of one's own choice.
    """
    if text.startswith("="):
        return _read_value(text[1:].strip(), attribute)
    kind, _, amount = text.partition(":")
    where = f"mask of {attribute.name!r}"
    if kind == "none" and not amount:
        return NoPerturbation()
    if kind not in ("noise", "swap"):
        raise InputError(f"{where}: {text!r} is not none, noise:WIDTH or swap:PERCENT")
    if not AMOUNT.fullmatch(amount):
        raise InputError(f"{where}: {one_line(repr(amount), 60)} is not a number")
    number = float(amount)
    if kind == "swap":
        if attribute.type == "nominal":
            raise InputError(
                f"{where}: swapping by rank needs an order; {attribute.name!r} has none"
            )
        if not 0 < number <= 100:
            raise InputError(f"{where}: swap takes a percentage between 0 and 100, not {amount}")
        return RankSwap(Fraction(amount))
    if not attribute.numeric or attribute.step is None:
        raise InputError(f"{where}: noise needs numbers; {attribute.name!r} is {attribute.type}")
    if not 1 <= number / attribute.step <= attribute.size:
        raise InputError(
            f"{where}: the noise must be at least one step, {attribute.step:g}, and no wider than "
            "the attribute's range"
        )
    return Noise(round(number / attribute.step))


def wide_enough(mask: Perturbation, values: Codes, least: int) -> Perturbation:
    """A mask of which whatever it gives to anybody leaves so many values.

    It is the one with the fewest neighbours to swap among whose swap alone leaves so many; noise on
    top of that tells nothing more. (Noise alone never does: the largest value plus the whole width
    comes from the largest value only.) If none does, all are neighbours, and the masked value tells
    nothing that the list does not tell.
    """
    if least <= 1:
        return mask
    narrowest, all_of_them = mask.reach(len(values)), len(values) // 2
    ordered = np.sort(values)
    distinct = [int(value) for value in np.unique(ordered)]
    reach, hardest = narrowest, distinct[0]
    while reach < all_of_them:
        near = _Neighbours(ordered, reach)
        too_few = (v for v in (hardest, *distinct) if near.candidates(v, v).values < least)
        failing = next(too_few, None)
        if failing is None:
            break
        reach, hardest = reach + 1, failing
    return mask if reach == narrowest else Widened(mask, reach)


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
