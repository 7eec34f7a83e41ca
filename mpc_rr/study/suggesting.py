"""What could be asked, to judge by the values of a column: categories, bins, or nothing."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mpc_rr.study.scales import in_order

FEW_NUMBERS = 12
"""A number with at most so many different values is taken as categories with an order."""
MOST_CATEGORIES = 60
BINS = 5
OUTERMOST = (0.01, 0.99)
FINEST = 6
"""So many digits behind the point at most."""
NARROWEST = 1e-8
"""Numbers that differ by a smaller part of their size have no round numbers between them."""


@dataclass(frozen=True)
class Categories:
    """A question with these answers."""

    texts: tuple[str, ...]
    ordinal: bool


@dataclass(frozen=True)
class Bins:
    """A question for a number, of which the interval is asked."""

    edges: tuple[float, ...]


@dataclass(frozen=True)
class Numbers:
    """A question for a number itself, on a grid."""

    lowest: float
    highest: float
    step: float


@dataclass(frozen=True)
class Unsuitable:
    """A column of which no question can be made."""

    why: str


def suggest_numbers(given: Sequence[str]) -> Numbers | None:
    """The range and the grid of a question for a number, of which these were answers.

    The range holds 98 of 100 of them, between round numbers, and never the one that is farthest
    out: that is nobody's business but its owner's. None if they are no numbers, or on no grid of
    decimals.
    """
    numbers = numbers_of(given)
    if numbers is None:
        return None
    low = float(np.quantile(numbers, OUTERMOST[0], method="higher"))
    high = float(np.quantile(numbers, OUTERMOST[1], method="lower"))
    grid = _grid(numbers)
    if grid is None or high - low < grid:
        return None
    unit = max(10.0 ** math.floor(math.log10((high - low) / (2 * BINS))), grid)
    lowest, highest = math.floor(low / unit) * unit, math.ceil(high / unit) * unit
    return Numbers(float(f"{lowest:.12g}"), float(f"{highest:.12g}"), grid)


def _grid(numbers: Sequence[float]) -> float | None:
    """The largest power of ten of which all these are multiples, from a million downwards."""
    for exponent in range(6, -FINEST - 1, -1):
        step = float(f"1e{exponent}")
        if all(abs(number / step - round(number / step)) < 1e-6 for number in numbers):
            return step
    return None


def suggest(given: Sequence[str]) -> Categories | Bins | Unsuitable:
    """The question to which these were the answers, as people write them; none is empty.

    A number with few values becomes categories with an order, one with many becomes bins; few
    texts become categories, with an order if it is known (`mpc_rr.study.scales`), many are
    unsuitable.
    """
    different = sorted(set(given))
    if len(different) < 2:
        return Unsuitable("it has fewer than two different values")
    numbers = numbers_of(different)
    if numbers is not None and len(different) > FEW_NUMBERS:
        return suggest_bins(numbers_of(given) or [])
    if len(different) > MOST_CATEGORIES:
        return too_many(len(different))
    if numbers is not None:
        return Categories(tuple(sorted(different, key=float)), ordinal=True)
    ordered = in_order(different)
    return Categories(ordered or tuple(different), ordinal=ordered is not None)


def too_many(values: int) -> Unsuitable:
    """So many different values are no categories."""
    return Unsuitable(f"{values:,} different values are too many (an identifier, or free text?)")


def numbers_of(values: Sequence[str]) -> list[float] | None:
    """Texts as numbers; None if not all are some. (Python would read 1_000 as one.)"""
    try:
        numbers = [float(value) for value in values]
    except ValueError:
        return None
    sound = all(map(math.isfinite, numbers)) and not any("_" in value for value in values)
    return numbers if sound else None


def suggest_bins(numbers: Sequence[float]) -> Bins | Unsuitable:
    """Open at both ends; between them round numbers near the quantiles."""
    spread = max(numbers) - min(numbers)
    largest = max(map(abs, numbers))
    if not max(NARROWEST * largest, 1e-290) <= spread < math.inf:
        return Unsuitable("its numbers are too close to each other, or too far apart, for bins")
    inner = np.quantile(numbers, np.linspace(0, 1, BINS + 1))[1:-1]
    # A single number far from all others must not make the intervals of the others too wide.
    common = min(spread, BINS * float(inner[-1] - inner[0])) or spread
    unit = 10.0 ** math.floor(math.log10(common / (2 * BINS)))
    rounded = sorted({float(f"{round(float(edge) / unit) * unit:.12g}") for edge in inner})
    return Bins((-math.inf, *rounded, math.inf))
