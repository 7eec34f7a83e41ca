"""What became worse since the committed figures, beyond the noise of both.

A row is worse if its change in the bad direction would, were there none, be so large with a
probability of at most `FALSE_ALARM` divided by the number of rows that can be told: all of them
together raise a false alarm in one comparison of a hundred. Where a standard error is missing on
either side, it cannot be told. Times, memory and the like are compared by their ratios to the floor
that was measured in the same run, everything else as it is.
"""

import enum
import math
from dataclasses import dataclass

from scipy.stats import t as student

from benchmarks.harness.results import Figures
from benchmarks.harness.rows import Row

FALSE_ALARM = 0.01
ROUNDING = 5e-4
"""Of a figure of four digits, the part that was rounded away, at most."""


class Change(enum.Enum):
    """Of one row."""

    WORSE = "worse"
    BETTER = "better"
    NOISE = "no change beyond the noise"
    OPEN = "cannot be told"


@dataclass(frozen=True)
class Compared:
    """One row then and now, and what can be said of it."""

    was: Row
    now: Row | None
    change: Change
    why: str = ""

    @property
    def in_words(self) -> str:
        """A line for people."""
        if self.now is None:
            return f"{self.was.key}: {self.why}"
        (before, _), (after, _) = self.was.compared, self.now.compared
        told = f"{self.was.key}: {before} → {after}"
        return f"{told} ({self.why})" if self.why else told


@dataclass(frozen=True)
class _Difference:
    """By how much a row has become worse (negative: better)."""

    by: float
    error: float
    freedom: float

    @property
    def chance(self) -> float:
        """Of a change at least as large in its direction, if there were none."""
        if self.error == 0:
            return 0.0 if self.by else 1.0
        return float(student.sf(abs(self.by) / self.error, self.freedom))


def compare(was: Figures, now: Figures) -> list[Compared]:
    """Each committed row that has a direction, with what was measured now."""
    later = {row.key: row for row in now.rows}
    pairs = [(row, later.get(row.key)) for row in was.rows if row.better is not None]
    whys = [_why_not(row, new) for row, new in pairs]
    told = max(sum(why == "" for why in whys), 1)
    return [
        Compared(row, new, _change(row, new, told) if new and not why else Change.OPEN, why)
        for (row, new), why in zip(pairs, whys, strict=True)
    ]


def _why_not(was: Row, now: Row | None) -> str:
    """Why it cannot be told; empty if it can."""
    if now is None:
        return "not measured now"
    if was.compared[0] is None or now.compared[0] is None:
        return "no figure that holds on another machine"
    averaged, again = (row.details.get("settings") for row in (was, now))
    if averaged != again:
        return f"over {averaged} settings then, over {again} now"
    if was.beside != now.beside and was.compared[0] == was.ratio:
        return f"beside {was.beside} then, beside {now.beside} now"
    if was.compared[1] is None or now.compared[1] is None:
        return "no standard error"
    return ""


def _change(was: Row, now: Row, told: int) -> Change:
    found = _difference(was, now)
    if found.chance > FALSE_ALARM / 2 / told:
        return Change.NOISE
    return Change.WORSE if found.by > 0 else Change.BETTER


def _difference(was: Row, now: Row) -> _Difference:
    """With the degrees of freedom of Welch and Satterthwaite."""
    (before, error_before), (after, error_after) = was.compared, now.compared
    assert before is not None
    assert after is not None
    squares = [(error or 0.0) ** 2 for error in (error_before, error_after)]
    by = (after - before) * (-1 if was.better == "higher" else 1)
    by = math.copysign(max(abs(by) - ROUNDING * (abs(before) + abs(after)), 0.0), by)
    parts = zip(squares, (was.runs, now.runs), strict=True)
    spread = math.fsum(square**2 / (runs - 1) for square, runs in parts if runs and runs > 1)
    freedom = sum(squares) ** 2 / spread if spread else math.inf
    return _Difference(by, math.sqrt(sum(squares)), freedom)
