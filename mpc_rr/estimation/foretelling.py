"""Which dependences a study will be able to tell, before anybody has answered.

Two attributes that do not depend on each other have an upper limit all the same: so strong their
dependence may be, by what so many people's answers tell. Weaker ones than that will mostly not be
told from none. The tables are guessed, as skewed as answers usually are; the uncertainty is that by
which the study will publish its limits.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from mpc_rr.estimation.blocks import Answered, floored
from mpc_rr.estimation.planning import pairs_of
from mpc_rr.estimation.strength import WEAK, strength
from mpc_rr.estimation.uncertainty import BlockAnswers, Spread
from mpc_rr.estimation.views import guessed_table
from mpc_rr.schema import Attribute

Pair = tuple[int, int]
SpreadOf = Callable[[Pair, int], Spread | None]
"""How uncertain the table of a pair will be, after so many respondents; None: nobody tells it."""
MOST_PAIRS = 10
"""So many pairs are looked at, from the smallest table to the largest."""
MOST_CELLS = 64
"""Larger tables are not looked at."""
MOST_PEOPLE = 10_000_000
CLOSE = 1.05


@dataclass(frozen=True)
class Foretold:
    """Of some pairs of attributes: which dependences will mostly not be told from none."""

    looked_at: int
    untold: int
    """In so many of these pairs dependences stronger than weak ones are among them."""
    weakest: float
    """In all of those pairs, all that are weaker than this."""
    strongest: float
    """In one of them, all that are weaker than this."""
    enough: int | None
    """With about so many people only weak ones would be; None: not with any number."""


def foretold(
    attributes: Sequence[Attribute],
    spread_of: SpreadOf,
    n: int,
    pairs: Collection[Pair] | None = None,
) -> Foretold | None:
    """What so many people are too few to tell of dependences; None if that is nothing.

    ``pairs``: those that get a table, if not all.
    """
    sizes = [attribute.size for attribute in attributes]
    looked_at = _looked_at(sizes, pairs_of(sizes) if pairs is None else pairs)

    def limit(pair: Pair, people: int) -> float:
        return upper_limit((attributes[pair[0]], attributes[pair[1]]), spread_of(pair, people))

    limits = {pair: limit(pair, n) for pair in looked_at}
    untold = {pair: least for pair, least in limits.items() if least > WEAK}
    if not untold:
        return None
    enough: int | None = n
    for pair in sorted(untold, key=lambda pair: -untold[pair]):
        if enough is not None:
            enough = _enough(partial(limit, pair), enough)
    ends = min(untold.values()), max(untold.values())
    return Foretold(len(looked_at), len(untold), *ends, enough)


def upper_limit(attributes: tuple[Attribute, Attribute], spread: Spread | None) -> float:
    """Up to which degree two attributes may depend on each other that do not seem to."""
    if spread is None:
        return 1.0
    shares = [guessed_table((attribute.size,)) for attribute in attributes]
    found = strength(np.outer(*shares), spread, attributes)
    return max(abs(found.low), abs(found.high))


def expected_answers(sizes: Sequence[int], p: float, floor: float, n: int) -> BlockAnswers | None:
    """Of a table of blocks with so many answers, once what is shown is near the truth."""
    if not n:
        return None
    shown = floored(guessed_table(sizes).ravel(), floor)[np.newaxis]
    counts = np.zeros(shown.shape, dtype=np.int64)
    counts[0, 0] = n  # which cells they are in does not matter to how uncertain they are
    return BlockAnswers(n, Answered(p, shown, counts))


def _looked_at(sizes: Sequence[int], pairs: Collection[Pair]) -> list[Pair]:
    """Some pairs, evenly from those with few cells to those with many."""
    known = [(sizes[i] * sizes[j], (i, j)) for i, j in pairs]
    small = [pair for cells, pair in sorted(known) if cells <= MOST_CELLS]
    places = np.linspace(0, len(small) - 1, MOST_PAIRS).round().astype(int)
    return small if len(small) <= MOST_PAIRS else [small[place] for place in places]


def _enough(limit: Callable[[int], float], n: int) -> int | None:
    """About the fewest people, from ``n`` on, with whom the limit is that of a weak dependence."""
    low = high = n
    while limit(high) > WEAK:
        low, high = high, 2 * high
        if high > MOST_PEOPLE:
            return None
    while high > CLOSE * low + 1:
        middle = round((low * high) ** 0.5)
        low, high = (middle, high) if limit(middle) > WEAK else (low, middle)
    return high
