"""Paper 002 (RRBA), Figures 5 and 6: how many answers until an estimate has converged.

§7.1 counts the answers until all steps from one block's estimate to the next are smaller than an
interval, and remain so. The printed interval (§5) is that of *true* answers. Ours is the one that
the estimate has, answers being randomized; it widens as p falls. §5 itself stops at the first step
that is small enough, and returns the average of two blocks.
"""

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from mpc_rr.estimation.blocks import Answered, collect
from mpc_rr.estimation.convergence import (
    Convergence,
    estimates_by_block,
    interval_width,
    printed_width,
    settles_at,
    stops_at,
)
from mpc_rr.estimation.matrix import Array
from mpc_rr.randomness import SeededRandomness
from mpc_rr.reproduce.result import Entry, Lines, Reproduction
from mpc_rr.reproduce.runs import OnProgress, repeat
from mpc_rr.reproduce.verdict import Claim, Comparison, means_apart, share_above, share_below

SHARES_5 = (0.072, 0.116, 0.224, 0.356, 0.446, 0.524, 0.732)
SHARES_6 = (0.072, 0.116, 0.356, 0.446)
TRUTHS_6 = (0.009, 0.048, 0.095, 0.139, 0.221)
BLOCKS = (18, 50, 150, 250)
ROUNDS = 200
MOST = 0.5
ASSUMED = (
    f"Assumed: one share against all others, {ROUNDS} blocks, Eq. 4 of each block alone, put "
    "between 0 and 1, the first compared with a share of 0.5; a run has converged (§7.1) if from "
    "some block to the end it takes only steps within the interval (95 %). A setting converges if "
    "more than half of its runs do."
)
TWO_INTERVALS = (
    "Two intervals. Printed (§5): 2z√(v(1 − v)/n) of the estimate v if the count n·v exceeds 5, "
    "otherwise by likelihood. Ours: the interval that the estimate has under randomization; it "
    "widens as p falls, so that noise meets it. A small last step meets either: neither says that "
    "the estimate is near the truth, and where runs converge only in their last blocks, the "
    "answers needed follow from the block size."
)
STOPS = (
    "§5 stops at the first step within the printed interval. Off: the root of the mean squared "
    "difference between the average that it then returns and the true share."
)

Setting = tuple[float, float, int]
"""p, share, block."""
Taken = dict[Setting, dict[str, tuple[float, float]]]
"""By rule, answers until convergence and the share that is then returned; NaN if there was none."""


# ── The rules ──────────────────────────────────────────────────────────────────────────────────


def _widths(told: Answered, estimates: Array, block: int) -> Array:
    """Our intervals; at estimates of 0 and 1 those of shares near them."""
    return interval_width(np.clip(estimates, 0.001, 0.999), block, told.p, told.tables[:, 1:])


def _by_rule(told: Answered, block: int) -> dict[str, Convergence | None]:
    estimates = estimates_by_block(told)[:, 1:]
    printed = printed_width(estimates[1:], block)
    return {
        PRINTED: settles_at(estimates, printed),
        OURS: settles_at(estimates, _widths(told, estimates[1:], block)),
        STOPPING: stops_at(estimates, printed),
    }


PRINTED, OURS, STOPPING = "printed interval", "our interval", "§5"
NEVER = (math.nan, math.nan)


@dataclass(frozen=True)
class ConvergenceRun:
    """One run of all settings."""

    settings: Sequence[Setting]

    def __call__(self, rng: np.random.Generator) -> Taken:
        """The answers that each setting took, by each rule."""
        return {setting: self._one(*setting, rng) for setting in self.settings}

    def _one(
        self, p: float, share: float, block: int, rng: np.random.Generator
    ) -> dict[str, tuple[float, float]]:
        cells = (rng.random(block * ROUNDS) < share).astype(np.int64)
        told = collect(cells, 2, p, block, SeededRandomness.from_generator(rng)).answered
        return {
            rule: NEVER if at is None else (at.block * block, float(at.shares[0]))
            for rule, at in _by_rule(told, block).items()
        }


# ── What came out ──────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Converged:
    """All runs of all settings."""

    runs: Sequence[Taken]

    def ended(self, setting: Setting, rule: str) -> list[float]:
        """The answers needed in the runs that converged."""
        return [answers for answers, _ in self._found(setting, rule)]

    def _found(self, setting: Setting, rule: str) -> list[tuple[float, float]]:
        taken = [run[setting][rule] for run in self.runs]
        return [found for found in taken if not math.isnan(found[0])]

    def row(self, setting: Setting) -> tuple[Entry, ...]:
        """For each interval how many runs converged, in %, and after how many answers on average.

        And after how many §5 stops, and how far its average then is from the share.
        """
        cells: list[Entry] = []
        for rule in (PRINTED, OURS):
            ended = self.ended(setting, rule)
            cells.append(100 * len(ended) / len(self.runs))
            cells.append(round(float(np.mean(ended)), 1) if ended else None)
        stopped = np.array(self._found(setting, STOPPING)).reshape(-1, 2)
        if not len(stopped):
            return (*setting, *cells, None, None)
        off = math.sqrt(float(((stopped[:, 1] - setting[1]) ** 2).mean()))
        return (*setting, *cells, round(float(stopped[:, 0].mean()), 1), round(off, 4))

    def most(self, settings: Sequence[Setting], rule: str = PRINTED) -> list[Comparison]:
        """That more than half of the runs converge."""
        return [self._share(setting, rule, share_above) for setting in settings]

    def few(self, settings: Sequence[Setting], rule: str = PRINTED) -> list[Comparison]:
        """That fewer than half of the runs do."""
        return [self._share(setting, rule, share_below) for setting in settings]

    def _share(
        self, setting: Setting, rule: str, judge: Callable[[str, int, int, float], Comparison]
    ) -> Comparison:
        p, share, block = setting
        times = len(self.ended(setting, rule))
        return judge(f"p = {p}, share {share}, block {block}", times, len(self.runs), MOST)


def figure5(runs: int, seed: int, progress: OnProgress) -> Reproduction:
    """Figure 5: answers until convergence at p = 0.5, by block size and share."""
    settings = list(itertools.product((0.5,), SHARES_5, BLOCKS))
    found = Converged(repeat(ConvergenceRun(settings), runs, seed, progress))
    smallest, largest = BLOCKS[0], BLOCKS[-1]
    earlier = [
        means_apart(
            f"share {share}",
            found.ended((0.5, share, largest), PRINTED),
            found.ended((0.5, share, smallest), PRINTED),
            runs,
        )
        for share in SHARES_5
    ]
    claims = (
        Claim("Every share converges at every block size.", found.most(settings)),
        Claim(
            f"Blocks of {smallest} converge after fewer answers than blocks of {largest} (of runs "
            "that converge).",
            earlier,
        ),
        Claim("The same by our interval: every share converges.", found.most(settings, OURS)),
    )
    return _reproduction(5, settings, found, claims)


def figure6(runs: int, seed: int, progress: OnProgress) -> Reproduction:
    """Figure 6: the same over several small p."""
    settings = list(itertools.product(TRUTHS_6, SHARES_6, BLOCKS))
    found = Converged(repeat(ConvergenceRun(settings), runs, seed, progress))

    def where(
        truths: Sequence[float], shares: Sequence[float], blocks: Sequence[int]
    ) -> list[Setting]:
        return list(itertools.product(truths, shares, blocks))

    little = where(TRUTHS_6[:3], SHARES_6, BLOCKS)
    claims = (
        Claim("At p = 0.009, 0.048 and 0.095 nothing converges.", found.few(little)),
        Claim(
            "At p = 0.139 shares of 0.356 and 0.446 converge with blocks of 150 and 250.",
            found.most(where((0.139,), (0.356, 0.446), (150, 250))),
        ),
        Claim(
            "At p = 0.221 all shares converge with blocks of 150 and 250.",
            found.most(where((0.221,), SHARES_6, (150, 250))),
        ),
        Claim(
            "At p = 0.221 none converges with blocks of 18 and 50.",
            found.few(where((0.221,), SHARES_6, (18, 50))),
        ),
        Claim("The larger p, the more runs converge.", _rising(found)),
        Claim(
            "By our interval, too, nothing converges at p = 0.009, 0.048 and 0.095.",
            found.few(little, OURS),
        ),
    )
    return _reproduction(6, settings, found, claims)


def _rising(found: Converged) -> list[Comparison]:
    """Of all settings with a p, the share that converges, run by run, beside the next p's."""
    shares = {
        p: np.array(
            [
                np.mean([not math.isnan(run[s][PRINTED][0]) for s in run if s[0] == p])
                for run in found.runs
            ]
        )
        for p in TRUTHS_6
    }
    return [
        means_apart(f"p from {less} to {more}", shares[more], shares[less], len(found.runs))
        for less, more in itertools.pairwise(TRUTHS_6)
    ]


def _reproduction(
    figure: int, settings: Sequence[Setting], found: Converged, claims: tuple[Claim, ...]
) -> Reproduction:
    panels: dict[str, dict[str, list[tuple[float, float]]]] = {}
    for setting in settings:
        p, share, block = setting
        for rule in (PRINTED, OURS):
            if ended := found.ended(setting, rule):
                line = panels.setdefault(f"p = {p}, {rule}", {}).setdefault(f"share {share}", [])
                line.append((block, float(np.mean(ended))))
    headings = [
        f"{what}, {rule}" for rule in (PRINTED, OURS) for what in ("converged %", "answers needed")
    ]
    return Reproduction(
        f"RRBA, Figure {figure}: answers until convergence",
        ("p", "share", "block", *headings, "§5 stops after answers", "its average off"),
        tuple(found.row(setting) for setting in settings),
        Lines("block size", "answers until convergence", panels or {"none converged": {}}),
        claims,
        (ASSUMED, TWO_INTERVALS, STOPS),
    )
