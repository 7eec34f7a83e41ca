"""Whether two results are the same, but for the last digits of their floating-point numbers.

Those depend on the processor and on the version of numpy. Whoever verifies a folder on another
machine than it was made on must not be told that it is forged.
"""

import math
import re
from typing import Any

DIGITS = 9
LARGE = 1e6
DIGITS_OF_LARGE = 12
"""Of numbers this large more digits count: an amount of money is not to change by a cent."""
ZERO = 1e-12
"""What is no further from each other than this is the same: sums of what cancels out, like 1e-17,
differ in all their digits."""
FRACTION = re.compile(r"-?[0-9]+(\.[0-9]+)?(e[+-]?[0-9]+)?")


def alike(one: Any, other: Any) -> bool:
    """Whether two documents of plain values are the same, but for the last digits of fractions."""
    if isinstance(one, float) and isinstance(other, float):
        digits = DIGITS if abs(one) < LARGE else DIGITS_OF_LARGE
        return math.isclose(one, other, rel_tol=10.0**-digits, abs_tol=ZERO)
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(alike(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(alike, one, other))
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)


def texts_alike(one: str, other: str) -> bool:
    """The same of two CSV files."""
    return one == other or alike(_cells(one), _cells(other))


def _cells(text: str) -> list[list[str | float]]:
    return [[_cell(cell) for cell in line.split(",")] for line in text.split("\n")]


def _cell(text: str) -> str | float:
    """A fraction as programs write it; what is written otherwise, like 250.00, is a text."""
    if FRACTION.fullmatch(text) is None or text.lstrip("-").isdigit():
        return text
    return float(text) if repr(float(text)) == text else text
