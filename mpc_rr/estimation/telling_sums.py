"""Sums that show single people's numbers, however many people they are over.

From as many sums of powers as there are people, each number follows. And from the sum and that of
squares alone:

* where all gave the same number, everybody's: n·Σx² = (Σx)²;
* where one alone is not at an end of the range, that one's: the distances d from there have
  Σd² = (Σd)²;
* that few are not at an end: no more than Σd steps.
"""

from mpc_rr.estimation.power_sums import Number


def all_alike(people: int, total: int, squares: int) -> bool:
    """Whether all of them gave the same number."""
    return people > 0 and people * squares == total**2


def few_off_an_end(number: Number, people: int, total: int, squares: int, below: int) -> bool:
    """Whether it follows that one alone, or from 1 to ``below`` − 1, are not at one end."""
    for end in (-number.middle, number.reach):
        steps = abs(total - people * end)
        of_squares = squares - 2 * end * total + people * end**2
        if steps and (steps < below or of_squares == steps**2):
            return True
    return False


def telling(number: Number, people: int, total: int, squares: int, below: int) -> bool:
    """Whether the sums show single people's numbers though they are over many."""
    return all_alike(people, total, squares) or few_off_an_end(
        number, people, total, squares, below
    )
