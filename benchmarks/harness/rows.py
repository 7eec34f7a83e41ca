"""One measurement, beside its floor or a peer, with how uncertain it is."""

import math
from collections.abc import Sequence
from typing import Any, Literal

import msgspec
import numpy as np

Setting = dict[str, str | int | float | bool | None]
OF_A_MACHINE = frozenset({"s", "ms", "processor s", "GB", "MB"})
"""Units in which another machine measures something else."""


class Row(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What was measured in which setting, over how many runs."""

    what: str
    setting: Setting
    value: float | None = None
    error: float | None = None
    """The standard error of ``value`` over the runs; None: not known."""
    unit: str = ""
    runs: int | None = None
    beside: str | None = None
    """The floor or the peer that ``ratio`` is to."""
    ratio: float | None = None
    ratio_error: float | None = None
    """The standard error of ``ratio``, over the same runs of both."""
    aim: float | None = None
    """Of the ratio where there is one, else of the value: at most, or at least if ``better`` is
    higher."""
    better: Literal["lower", "higher"] | None = None
    """None: a fact, or a peer's figure; neither becomes worse by what is done here."""
    details: dict[str, Any] = {}
    session: int = 0
    """The number of the `benchmarks.harness.results.Session` that measured it."""

    @property
    def key(self) -> str:
        """By which a row is found again."""
        setting = ", ".join(f"{name} {value}" for name, value in self.setting.items())
        return f"{self.what}: {setting}" if setting else self.what

    @property
    def compared(self) -> tuple[float | None, float | None]:
        """What may be compared with another machine's, and its standard error."""
        if self.unit in OF_A_MACHINE:
            return self.ratio, self.ratio_error
        return self.value, self.error

    @property
    def judged(self) -> tuple[float | None, float | None]:
        """What the aim is of, and its standard error."""
        return (self.value, self.error) if self.ratio is None else (self.ratio, self.ratio_error)

    @property
    def missed(self) -> bool:
        """Whether the aim is."""
        found = self.judged[0]
        if self.aim is None or found is None:
            return False
        return found < self.aim if self.better == "higher" else found > self.aim


def measured(
    what: str,
    setting: Setting,
    values: Sequence[float],
    others: Sequence[float] | None = None,
    **more: Any,
) -> Row:
    """The mean over some runs; with ``others``, as a ratio to what these were in the same runs.

    The ratio is of the means. Its standard error is that of the mean of value − ratio·other, so
    whatever both have in common cancels.
    """
    mine = np.asarray(values, dtype=np.float64)
    found: dict[str, Any] = {"value": rounded(mine.mean()), "error": rounded(standard_error(mine))}
    if others is not None:
        theirs = np.asarray(others, dtype=np.float64)
        ratio = mine.mean() / theirs.mean() if theirs.mean() else None
        found["ratio"] = rounded(ratio)
        if ratio is not None:
            spread = standard_error(mine - ratio * theirs)
            found["ratio_error"] = None if spread is None else rounded(spread / theirs.mean())
    return Row(what=what, setting=setting, runs=len(mine), **found | more)


def standard_error(values: Any) -> float | None:
    """Of the mean; None of a single value."""
    found = np.asarray(values, dtype=np.float64)
    return float(found.std(ddof=1) / math.sqrt(len(found))) if len(found) > 1 else None


def rounded(value: float | None, digits: int = 4) -> float | None:
    """To so many digits that count."""
    return None if value is None else float(f"{value:.{digits}g}")


def geometric_mean(what: str, setting: Setting, rows: Sequence[Row], **more: Any) -> Row:
    """Of the ratios of some rows; its standard error as of independent rows."""
    logs = [math.log(row.ratio) for row in rows if row.ratio]
    errors = [(row.ratio_error or math.nan) / row.ratio for row in rows if row.ratio]
    mean = math.exp(math.fsum(logs) / len(logs))
    spread = math.sqrt(math.fsum(e**2 for e in errors)) / len(errors)
    error = None if math.isnan(spread) else rounded(mean * spread)
    settings = {"settings": len(logs)}
    return Row(
        what=what, setting=setting, value=rounded(mean), error=error, details=settings, **more
    )
