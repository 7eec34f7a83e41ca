"""Sums that show single people's numbers, however many people they are over.

From as many sums of powers as there are people, each number follows; from as many sums as there are
possible numbers, how many gave each. And from the sum and that of squares alone:

* where all gave the same number, everybody's: n·Σx² = (Σx)²;
* that few are not at an end of the range: distances d from there with this Σd and Σd² are those of
  few people only.
"""

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction

from mpc_rr.estimation.power_sums import Number

MOST_TRIED = 2000
"""So many ways to share out squares are tried. If that settles nothing, sums are hidden, unless
more people than there are could have them."""


def all_alike(people: int, total: int, squares: int) -> bool:
    """Whether all of them gave the same number."""
    return people > 0 and people * squares == total**2


def few_off_an_end(number: Number, people: int, total: int, squares: int, below: int) -> bool:
    """Whether it follows that from 1 to ``below`` − 1 are not at one end of the range."""
    farthest = number.middle + number.reach
    for end in (-number.middle, number.reach):
        steps = abs(total - people * end)
        of_squares = squares - 2 * end * total + people * end**2
        if steps and not can_be_many(steps, of_squares, below, people, farthest):
            return True
    return False


def can_be_many(steps: int, squares: int, many: int, people: int, farthest: int) -> bool:
    """Whether from ``many`` to all ``people`` can be so many steps from an end together.

    Each at most ``farthest``, and with these squares. One who is 1 + e steps away adds e to
    Σd − (how many they are), and e·(e + 1)/2 to (Σd² − Σd)/2; so they are the more, the smaller Σe.
    It is the smallest where one e is as large as it can be: that is tried first.
    """
    beyond, odd = divmod(squares - steps, 2)
    if odd or beyond < 0 or steps < many:
        return False
    if steps > (many - 1) * farthest:
        return True
    too_many = False
    search = [(beyond, steps - many, steps, farthest - 1)]
    for _ in range(MOST_TRIED):
        if not search:
            return False
        rest, extra, room, largest = search.pop()
        if rest == 0 and many + extra <= people:
            return True
        too_many = too_many or rest == 0
        e = min(largest, (math.isqrt(8 * rest + 1) - 1) // 2)
        if e < 1 or rest > extra // e * _triangle(e) + _triangle(extra % e):
            continue
        search.append((rest, extra, room, e - 1))
        if room > e:
            search.append((rest - _triangle(e), extra - e, room - e - 1, e))
    return too_many


def _triangle(e: int) -> int:
    return e * (e + 1) // 2


def counts_of_each(number: Number, sums: Sequence[int]) -> list[Fraction] | None:
    """How many gave each number, from how many there are and the sums of their powers.

    None if there are more possible numbers than sums.
    """
    possible = range(-number.middle, number.reach + 1)
    if len(possible) > len(sums):
        return None
    return [_count_of(x, possible, sums) for x in possible]


def _count_of(x: int, possible: range, sums: Sequence[int]) -> Fraction:
    """Lagrange: Σ over people of the polynomial that is 1 at x, 0 at the other numbers."""
    polynomial, scale = [1], 1
    for other in possible:
        if other != x:
            times = [0, *polynomial]
            polynomial = [a - other * b for a, b in zip(times, [*polynomial, 0], strict=True)]
            scale *= x - other
    return Fraction(sum(a * s for a, s in zip(polynomial, sums, strict=False)), scale)


def without_ends(
    number: Number, sums: Sequence[int], ends: Mapping[int, int]
) -> Iterator[list[int]]:
    """The sums over those who did not give one of the ends, or neither: they follow.

    ``ends``: how many gave which, by its code; ``sums`` as in `telling`.
    """
    for some in range(1, len(ends) + 1):
        for taken in itertools.combinations(ends.items(), some):
            yield [
                total - sum(count * (code - number.middle) ** power for code, count in taken)
                for power, total in enumerate(sums)
            ]


def telling(number: Number, sums: Sequence[int], below: int) -> bool:
    """Whether the sums show single people's numbers though they are over many.

    ``sums``: how many people there are, and the sums of their numbers' powers from the first.
    """
    counts = counts_of_each(number, sums) or []
    people, total, squares = sums[:3]
    return (
        all_alike(people, total, squares)
        or any(0 < count < below for count in counts)
        or few_off_an_end(number, people, total, squares, below)
    )
