"""What was computed, in words."""

import math

from mpc_rr.estimation.statistics import Between
from mpc_rr.publication.computing import Computed, Value

UNTOLD = "cannot be told"


def computed_lines(found: Computed) -> list[str]:
    """A head, a line for each number, and how they came about."""
    head = found.expression
    if found.where is not None:
        head += f" where {found.where}"
    if found.by is not None:
        head += f" by {found.by}"
    lines = [f"{head}  ({found.n:,} respondents)"]
    lines += [f"  {_named(value)}{value_in_words(value, found.level)}" for value in found.values]
    if found.log_likelihood is not None:
        lines.append(f"  log-likelihood of the reported outcomes: {found.log_likelihood:,.2f}")
    return [*lines, found.how]


def _named(value: Value) -> str:
    named = ", ".join(filter(None, (value.group, value.name)))
    return f"{named}: " if named else ""


def value_in_words(value: Value, level: float) -> str:
    """The number, how sure it is, and on how many people it rests."""
    people = f"of {value.people:,.0f} people"
    if value.value is None:
        possible = _between(value.population)
        return f"{UNTOLD}{f' ({possible})' if possible else ''}; {people}"
    said = number_in_words(value.value)
    if value.label is not None and value.label != said:
        said = f"{value.label} ({said})"
    if value.standard_error is not None:
        said += f", standard error {number_in_words(value.standard_error)}"
    limits = [
        f"{_between(own)} of {whom}"
        for own, whom in ((value.respondents, "these respondents"),
                          (value.population, "the population")) if own is not None
    ]  # fmt: skip
    sure = f"; with {level:.0%} confidence {', '.join(limits)}" if limits else ""
    return f"{said}{sure}; {people}"


def _between(limits: Between | None) -> str:
    if limits is None:
        return ""
    low, high = (number_in_words(end) for end in limits)
    return f"exactly {low}" if limits[0] == limits[1] else f"{low} to {high}"


def number_in_words(number: float) -> str:
    """To four significant digits, without an exponent where people would have none."""
    if not math.isfinite(number):
        return f"{number:g}"
    if abs(number) < 1e6 and number == round(number):
        return f"{number:,.0f}"
    size = math.floor(math.log10(abs(number)))
    if size > 6 or size < -5:
        return f"{number:.3e}"
    return f"{number:,.{max(3 - size, 0)}f}"
