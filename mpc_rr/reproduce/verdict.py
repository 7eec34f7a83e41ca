"""Whether a claim of a paper came out here: it holds, it does not, or the runs cannot tell.

A claim is one comparison or several. Each has a margin, positive where it speaks for the claim, and
the chance of a margin this far from 0 on its side if there were none. A comparison is decided only
where that chance is small enough; a claim of k comparisons divides the false-alarm rate by k
(Bonferroni), so that *all* decisions of one claim are right with probability 1 − `FALSE_ALARM`.
Printed numbers are taken as they stand: the papers give no standard errors.
"""

import enum
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import bdtr, bdtrc, ndtri, stdtr

FALSE_ALARM = 0.01
"""How probable it is, at most, that a claim is decided wrongly because of the random numbers."""
WORTH_TRYING = 100
"""A claim that needs more than this many times the runs is not worth more runs."""
FEWEST = 10
"""Of fewer runs the standard errors are too uncertain to say how many would tell."""
UNDECIDED = 0.5


class Verdict(enum.Enum):
    """What the runs say about a claim."""

    HOLDS = "holds"
    FAILS = "does not hold"
    OPEN = "cannot be told"


@dataclass(frozen=True)
class Comparison:
    """Two measured quantities, or one and a fixed number."""

    what: str
    """Where: the setting."""
    margin: float
    """Positive where it speaks for the claim."""
    error: float
    """The standard error of the margin over the runs; 0 where nothing is random."""
    runs: int
    """0 where nothing is random."""
    chance: float
    """Of a margin at least as far from 0 on its side if there were none."""

    def verdict(self, level: float) -> Verdict:
        """Two-sided, at this false-alarm rate."""
        if not self.chance <= level / 2:
            return Verdict.OPEN
        return Verdict.HOLDS if self.margin > 0 else Verdict.FAILS

    @property
    def clarity(self) -> float:
        """How many standard errors the margin is from 0."""
        if self.runs == 0:
            return math.inf
        clear = abs(self.margin) / self.error if self.error > 0 else 0.0
        return clear if math.isfinite(clear) else 0.0

    def runs_to_tell(self, level: float) -> float:
        """How many runs would decide it if the margin stayed as it is."""
        if self.clarity == 0:
            return math.inf
        return self.runs * (float(ndtri(1 - level / 2)) / self.clarity) ** 2

    def in_numbers(self) -> str:
        """Margin and standard error."""
        if self.runs == 0:
            return f"margin {self.margin:+.3g}, exact"
        if not math.isfinite(self.margin):
            return "no finite margin"
        error = f"{self.error:.2g}" if math.isfinite(self.error) else "unknown"
        return f"margin {self.margin:+.3g}, standard error {error}"


# ── Comparisons of several kinds ───────────────────────────────────────────────────────────────


def exactly(what: str, margin: float) -> Comparison:
    """Nothing random: the sign decides."""
    return Comparison(what, float(margin), 0.0, 0, 0.0)


def measured(what: str, margin: float, error: float, runs: int) -> Comparison:
    """A margin with its standard error, judged by the t distribution.

    One run has no standard error, and runs that are all alike do not show one: nothing is decided.
    """
    known = runs > 1 and math.isfinite(margin) and math.isfinite(error) and error > 0
    chance = float(stdtr(runs - 1, -abs(margin) / error)) if known else UNDECIDED
    return Comparison(what, float(margin), float(error), runs, chance)


def mean_margin(what: str, margins: npt.ArrayLike) -> Comparison:
    """The mean of what each run gave. Runs that share their random numbers are so compared."""
    values = np.asarray(margins, dtype=np.float64)
    n = len(values)
    error = float(values.std(ddof=1)) / math.sqrt(n) if n > 1 else math.nan
    return measured(what, float(values.mean()), error, n)


def means_apart(what: str, larger: npt.ArrayLike, smaller: npt.ArrayLike, runs: int) -> Comparison:
    """The difference of the means of two unpaired samples; either may be empty."""
    samples = [np.asarray(values, dtype=np.float64) for values in (larger, smaller)]
    few = min(len(values) for values in samples)
    if few < 2:
        return Comparison(what, math.nan, math.nan, runs, UNDECIDED)
    error = math.sqrt(sum(float(values.var(ddof=1)) / len(values) for values in samples))
    margin = float(samples[0].mean() - samples[1].mean())
    found = measured(what, margin, error, few)
    return Comparison(what, margin, error, runs, found.chance)


def share_above(what: str, times: int, runs: int, limit: float) -> Comparison:
    """How often something happened, against a limit it should exceed (exact binomial tails)."""
    margin = times / runs - limit
    tail = bdtrc(times - 1, runs, limit) if margin > 0 else bdtr(times, runs, limit)
    error = math.sqrt(limit * (1 - limit) / runs)
    return Comparison(what, margin, error, runs, float(tail))


def share_below(what: str, times: int, runs: int, limit: float) -> Comparison:
    """The same, where it should stay below the limit."""
    return share_above(what, runs - times, runs, 1 - limit)


# ── Claims ─────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Claim:
    """Something a paper says (or we do), and what it is judged by."""

    text: str
    comparisons: Sequence[Comparison]
    needed: int | None = None
    """In how many of the comparisons it must come out so; None: in all."""

    def __post_init__(self) -> None:
        assert self.comparisons, f"nothing is compared: {self.text}"

    @property
    def level(self) -> float:
        """The false-alarm rate of each comparison."""
        return FALSE_ALARM / len(self.comparisons)

    @property
    def verdict(self) -> Verdict:
        """Holds where enough comparisons do; does not hold where too many do not."""
        return self._verdict([each.verdict(self.level) for each in self.comparisons])

    def _verdict(self, verdicts: Sequence[Verdict]) -> Verdict:
        needed = len(verdicts) if self.needed is None else self.needed
        if verdicts.count(Verdict.HOLDS) >= needed:
            return Verdict.HOLDS
        if verdicts.count(Verdict.FAILS) > len(verdicts) - needed:
            return Verdict.FAILS
        return Verdict.OPEN

    @property
    def counts(self) -> dict[Verdict, int]:
        """How many comparisons hold, do not hold, cannot be told."""
        verdicts = [each.verdict(self.level) for each in self.comparisons]
        return {verdict: verdicts.count(verdict) for verdict in Verdict}

    @property
    def runs(self) -> int:
        """On how many runs it rests; 0 where nothing is random."""
        return max(each.runs for each in self.comparisons)

    @property
    def telling(self) -> Comparison:
        """The comparison that decides: the least clear, of a claim that fails the clearest."""
        same = [each for each in self.comparisons if each.verdict(self.level) is self.verdict]
        if self.verdict is Verdict.FAILS:
            return min(same, key=lambda each: (-each.clarity, each.margin))
        return min(same, key=lambda each: (each.clarity, each.margin))

    @property
    def runs_to_tell(self) -> int | None:
        """Roughly how many runs would decide it if the margins were what they seem.

        To one significant figure; None where it is more than `WORTH_TRYING` times the runs, or too
        few runs were made to say.
        """
        if self.runs < FEWEST:
            return None
        wanted = {each.runs_to_tell(self.level) for each in self.comparisons}
        for runs in sorted(w for w in wanted if w <= WORTH_TRYING * self.runs):
            if self._verdict([self._at(each, runs) for each in self.comparisons]) != Verdict.OPEN:
                return _rounded_up(max(runs, self.runs + 1))
        return None

    def _at(self, each: Comparison, runs: float) -> Verdict:
        if each.runs_to_tell(self.level) > runs:
            return Verdict.OPEN
        return Verdict.HOLDS if each.margin > 0 else Verdict.FAILS

    def evidence(self) -> str:
        """What the verdict rests on, in words."""
        told = self.telling.in_numbers()
        if len(self.comparisons) > 1:
            told = f"{self._tally()}; {self._which()} at {self.telling.what}: {told}"
        if self.runs:
            told += f"; {self.runs:,} run{'s' if self.runs > 1 else ''}"
        if self.verdict is Verdict.OPEN:
            told += f"; {self._what_would_tell()}"
        return told

    def _what_would_tell(self) -> str:
        if self.runs < FEWEST:
            return f"at least {FEWEST} are needed to say how many would tell"
        more = self.runs_to_tell
        return f"about {more:,} would tell" if more else HOPELESS

    def _tally(self) -> str:
        counts, of = self.counts, len(self.comparisons)
        told = f"holds in {counts[Verdict.HOLDS]} of {of} settings"
        if counts[Verdict.FAILS]:
            told += f", does not in {counts[Verdict.FAILS]}"
        if counts[Verdict.OPEN]:
            told += f", cannot be told in {counts[Verdict.OPEN]}"
        return told if self.needed is None else f"{told} ({self.needed} are needed)"

    def _which(self) -> str:
        return "clearest against it" if self.verdict is Verdict.FAILS else "least clear"

    def document(self) -> dict[str, Any]:
        """For programs."""
        return {
            "claim": self.text,
            "verdict": self.verdict.value,
            "false_alarm_rate": FALSE_ALARM,
            "runs": self.runs,
            "runs_that_would_tell": self.runs_to_tell if self.verdict is Verdict.OPEN else None,
            "needed": len(self.comparisons) if self.needed is None else self.needed,
            "comparisons": [
                {
                    "at": each.what,
                    "margin": _finite(each.margin),
                    "standard_error": _finite(each.error),
                    "verdict": each.verdict(self.level).value,
                }
                for each in self.comparisons
            ],
        }


HOPELESS = f"{WORTH_TRYING} times as many might not tell either"
HOW_JUDGED = (
    f"A verdict is wrong by chance in at most {FALSE_ALARM:.0%} of cases, all its settings taken "
    "together. A margin is positive where it speaks for the claim. Printed numbers are taken as "
    "they stand."
)


def _rounded_up(runs: float) -> int:
    """To one significant figure."""
    unit = int(10 ** math.floor(math.log10(runs)))
    return math.ceil(runs / unit) * unit


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
