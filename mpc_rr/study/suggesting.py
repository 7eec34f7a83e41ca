"""What could be asked, to judge by the values of a column: categories, bins, or nothing."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

FEW_NUMBERS = 12
"""A number with at most so many different values is taken as categories with an order."""
MOST_CATEGORIES = 60
BINS = 5
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
class Unsuitable:
    """A column of which no question can be made."""

    why: str


def suggest(given: Sequence[str]) -> Categories | Bins | Unsuitable:
    """The question to which these were the answers, as people write them; none is empty.

    A number with few values becomes categories with an order, one with many becomes bins; few
    texts become categories, many are unsuitable.
    """
    different = sorted(set(given))
    if len(different) < 2:
        return Unsuitable("it has fewer than two different values")
    numbers = _numbers(different)
    if numbers is not None and len(different) > FEW_NUMBERS:
        return _bins(_numbers(given) or [])
    if len(different) > MOST_CATEGORIES:
        return too_many(len(different))
    if numbers is not None:
        return Categories(tuple(sorted(different, key=float)), ordinal=True)
    return Categories(tuple(different), ordinal=False)


def too_many(values: int) -> Unsuitable:
    """So many different values are no categories."""
    return Unsuitable(f"{values:,} different values are too many (an identifier, or free text?)")


def _numbers(values: Sequence[str]) -> list[float] | None:
    try:
        numbers = [float(value) for value in values]
    except ValueError:
        return None
    return numbers if all(map(math.isfinite, numbers)) else None


def _bins(numbers: Sequence[float]) -> Bins | Unsuitable:
    """Open at both ends; between them round numbers near the quantiles."""
    spread = max(numbers) - min(numbers)
    largest = max(map(abs, numbers))
    if not max(NARROWEST * largest, 1e-290) <= spread < math.inf:
        return Unsuitable("its numbers are too close to each other, or too far apart, for bins")
    inner = np.quantile(numbers, np.linspace(0, 1, BINS + 1))[1:-1]
    unit = 10.0 ** math.floor(math.log10(spread / (2 * BINS)))
    rounded = sorted({float(f"{round(float(edge) / unit) * unit:.12g}") for edge in inner})
    return Bins((-math.inf, *rounded, math.inf))
