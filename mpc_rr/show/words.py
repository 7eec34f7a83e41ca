"""How values are written for people, and under which labels."""

import itertools
import math
from collections.abc import Callable, Sequence

from mpc_rr.errors import listing, plain, quoted
from mpc_rr.privacy.costs import Privacy
from mpc_rr.privacy.entropy import beta_said
from mpc_rr.privacy.sentences import in_all
from mpc_rr.publication.parts import (
    NOTHING_TOLD,
    Absence,
    Cell,
    Column,
    Kind,
    Listing,
    Participation,
    Table,
)
from mpc_rr.schema import Schema

NO_DIGITS = 2.0**53
LARGE = 1000
"""From here on a number has one digit after the point, and commas."""
CANNOT_BE_TOLD = "–"
WHY_NOT_TOLD = (
    "cannot be told at this budget: the 95 % limits leave more than "
    f"{100 * NOTHING_TOLD:.0f} % of all shares possible"
)
HIDDEN = "hidden"
ABSENCE = {
    "excluded": "left out, by the coordinator's word",
    "silent": "did not answer",
    "faulty": "left out",
    "dropped out": "dropped out",
    "withdrawn": "withdrew after a group member dropped out",
    "suppressed": "left out, so that others are told more exactly",
    "not asked": "not asked",
}


def size(count: int) -> str:
    """``3.2 MB``."""
    value = float(count)
    for unit in ("bytes", "kB", "MB"):
        if value < 1000:
            return f"{value:.0f} bytes" if unit == "bytes" else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} GB"


def number(value: float | None, kind: Kind) -> str:
    """A number as its kind is written."""
    if value is None or math.isnan(value):
        return CANNOT_BE_TOLD
    whole = isinstance(value, int)
    match kind:
        case "count":
            return f"{value:,}" if whole else f"{value:,.1f}"
        case "share":
            return f"{value:.1%}"
        case "degree" | "limit":
            digits = 1 if abs(value) >= LARGE else 2
            return f"{value:,.{digits}f}".replace("-", "−")
        case "p-value":
            return f"{value:.2g}"
        case _:
            return str(value) if whole else f"{value:{',.1f' if abs(value) >= 1000 else '.3g'}}"


def price(privacy: Privacy) -> str:
    """What taking part cost each party, in a sentence or two."""
    if privacy.local_epsilon is None:
        return privacy.in_words
    said = (f"Taking part cost each party {in_all(privacy.events)}.", privacy.in_words)
    return " ".join(filter(None, (*said, beta_said(privacy.events))))


def _between(low: Cell, high: Cell) -> str:
    """An interval, rounded outwards: what is printed holds, too."""
    ends = [
        None if end is None or isinstance(end, str | tuple) else _rounded(end, outwards)
        for outwards, end in ((math.floor, low), (math.ceil, high))
    ]
    return "…".join(number(end, "limit") for end in ends)


def _rounded(end: float, outwards: Callable[[float], int]) -> float:
    """With as many digits after the point as are shown; as it is where a float has none there."""
    places = 10 if abs(end) >= LARGE else 100
    return end if abs(end) >= NO_DIGITS else outwards(end * places) / places


class Words:
    """The words of a study, in a language: labels for attributes and categories, if it has any."""

    def __init__(self, schema: Schema, language: str | None = None) -> None:
        self._attributes = {attribute.name: attribute for attribute in schema.attributes}
        self.language = language

    def attribute(self, name: str) -> str:
        """What people call an attribute."""
        known = self._attributes.get(name)
        return plain(name if known is None else known.title(self.language))

    def attributes(self, names: Sequence[str]) -> str:
        """The same for several that belong together."""
        return " & ".join(map(self.attribute, names))

    def place(self, name: str) -> int:
        """Where an attribute stands in the study."""
        return list(self._attributes).index(name) if name in self._attributes else 0

    def intervals(self, attribute: str) -> str:
        """Which numbers are counted as each category; nothing where they are no intervals."""
        known = self._attributes.get(attribute)
        found = {} if known is None else known.intervals
        return "; ".join(
            f"{quoted(self.category(attribute, category))}: {interval}"
            for category, interval in found.items()
        )

    def category(self, attribute: str, category: str) -> str:
        """What people call a category."""
        known = self._attributes.get(attribute)
        return plain(category if known is None else known.category_title(category, self.language))

    def cell(self, value: Cell, kind: Kind) -> str:
        """A value of a listing."""
        if isinstance(value, str):
            return self.attribute(value) if kind == "attribute" else plain(value)
        if isinstance(value, tuple):
            return self.attributes(value)
        return number(value, kind)

    def columns(self, listed: Listing) -> list[tuple[Column, list[str]]]:
        """The columns of a listing as people read them: two limits are one interval."""
        found = [(c, [self.cell(v, c.kind) for v in listed.column(c.name)]) for c in listed.columns]
        for place, ((low, _), (high, _)) in reversed(list(enumerate(itertools.pairwise(found)))):
            if low.kind == high.kind == "limit":
                label = f"{low.label} … {high.label}"
                both = Column(name=low.name, label=label, kind="limit")
                ends = zip(listed.column(low.name), listed.column(high.name), strict=True)
                found[place : place + 2] = [(both, [_between(a, b) for a, b in ends])]
        return found

    def title(self, table: Table) -> str:
        """What a table shows."""
        names = " by ".join(self.attribute(axis.attribute) for axis in table.axes)
        return f"{'Counts' if table.kind == 'count' else 'Shares'} of {names}"

    def cells(self, table: Table) -> list[str]:
        """The values of a table, cell by cell: those that the answers tell."""
        return [
            HIDDEN if v is None else number(None if untold else v, table.kind)
            for v, untold in zip(table.values, table.untold, strict=True)
        ]


def absences(people: Participation, most: int | None = None) -> list[tuple[str, str]]:
    """Who is not in the result: how that is called, and who (why).

    Where nothing more is known of them they are named together, ``most`` of them by name.
    """
    found = []
    for how, words in ABSENCE.items():
        here = [absence for absence in people.absent if absence.how == how]
        if any(absence.reason or absence.step for absence in here):
            found += [(words, f"{absence.party} ({_why(absence)})") for absence in here]
        elif here:
            names = [absence.party for absence in here]
            found.append((words, listing(names, most or len(names))))
    return found


def _why(absence: Absence) -> str:
    at = f"at {absence.step}" if absence.step else ""
    return ": ".join(part for part in (at, absence.reason) if part)
