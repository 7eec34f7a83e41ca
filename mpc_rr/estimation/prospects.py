"""What is lost where few people are asked much, before anybody has answered.

Where each answers one view, a pair of attributes may be in no view that anybody answered; and how
wide a cluster may be is not known before it is found. (What randomizing costs tables is in
`mpc_rr.estimation.planning`, what wide domains cost in `relative_error_if_uniform`.)
"""

import math
from collections.abc import Sequence

import numpy as np

MOST_VIEWS = 2000
"""Of more views the exact chance that some are unanswered is not worked out."""


def largest_product(sizes: Sequence[int], most: int) -> int:
    """The most combinations that a cluster of these attributes may have, if no more are allowed.

    An attribute alone is a cluster, however many categories it has.
    """
    products = {1}
    for size in sizes:
        products |= {product * size for product in products if product * size <= most}
    return max(*products, *sizes)


def untold_pairs(pairs: int, views: int, holding: int, n: int) -> float:
    """How many pairs are expected to be in no answered view.

    ``n`` people draw one of ``views`` each; ``holding`` of these hold any given pair.
    """
    return pairs * (1 - holding / views) ** n


def chance_of_untold_pairs(pairs: int, views: int, holding: int, n: int) -> float | None:
    """The probability that some pair is in no answered view; None where only bounds are known.

    It is known where every pair is in one view alone: all of them must be drawn.
    """
    if holding == views:
        return 0.0 if n else 1.0
    if holding > 1 or views > MOST_VIEWS:
        return None
    if untold_pairs(pairs, views, holding, n) < 1e-6:
        return untold_pairs(pairs, views, holding, n)
    drawn = np.zeros(views + 1)
    drawn[0] = 1.0
    again = np.arange(views + 1) / views
    for _ in range(n):
        drawn[1:] = drawn[1:] * again[1:] + drawn[:-1] * (1 - again[:-1])
        drawn[0] = 0.0
    return float(1 - drawn[views])


def expected_untold(chances: Sequence[float], n: int) -> float:
    """How many pairs are expected to be in no answered view; ``chances``: that one holds each."""
    return math.fsum((1 - chance) ** n for chance in chances)


def people_for_expected(chances: Sequence[float], most: float) -> int:
    """With so many people no more pairs than that are expected to be in no answered view."""
    low, high = 0, 1
    while expected_untold(chances, high) > most:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if expected_untold(chances, middle) > most else (low, middle)
    return high


def people_for_all_pairs(pairs: int, views: int, holding: int, chance: float) -> int:
    """With so many people some pair is in no answered view at most with this probability."""
    if holding == views:
        return 1
    return math.ceil(math.log(chance / pairs) / math.log1p(-holding / views))
