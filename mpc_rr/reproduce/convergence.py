"""Paper 002 (RRBA), Figures 5 and 6: how many answers until an estimate has converged.

Two rules say when a step from one block's estimate to the next is small enough. The printed one
(§5) allows 2z√(v(1 − v)/n) of the estimate v, which is the interval of n *true* answers. Ours
allows the interval that the estimate has, answers being randomized; it widens as p falls.
"""

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from mpc_rr.estimation.blocks import Collection, collect, converged_at, interval_width, true_width
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
    "between 0 and 1; a run has converged if from some block to the end it takes only steps within "
    "the interval (95 %). A setting converges if more than half of its runs do."
)
TWO_RULES = (
    "Two rules. §5 as printed: the interval 2z√(v(1 − v)/n) of the estimate v. Ours: the interval "
    "that the estimate has under randomization; it widens as p falls, so that noise meets it. "
    "A small last step meets either: neither says that the estimate is near the truth, and where "
    "runs converge only in their last blocks, the answers needed follow from the block size."
)

Setting = tuple[float, float, int]
"""p, share, block."""
Taken = dict[Setting, dict[str, float]]
"""Answers until convergence by rule; NaN where there was none."""


# ── The two rules ──────────────────────────────────────────────────────────────────────────────


def _printed(run: Collection, block: int) -> int | None:
    estimates = np.clip(run.by_block[:, 1], 0, 1).tolist()
    return converged_at(estimates, [true_width(share, block) for share in estimates])


def _ours(run: Collection, block: int) -> int | None:
    p, tables = run.answered.p, run.answered.tables[:, 1].tolist()
    estimates = run.by_block[:, 1].tolist()
    widths = [
        interval_width(min(max(share, 0.001), 0.999), block, p, table)
        for share, table in zip(estimates, tables, strict=True)
    ]
    return converged_at(estimates, widths)


RULES: dict[str, Callable[[Collection, int], int | None]] = {
    "§5 as printed": _printed,
    "ours": _ours,
}
PRINTED, OURS = RULES


@dataclass(frozen=True)
class ConvergenceRun:
    """One run of all settings."""

    settings: Sequence[Setting]

    def __call__(self, rng: np.random.Generator) -> Taken:
        """The answers that each setting took, by each rule."""
        return {setting: self._one(*setting, rng) for setting in self.settings}

    def _one(
        self, p: float, share: float, block: int, rng: np.random.Generator
    ) -> dict[str, float]:
        cells = (rng.random(block * ROUNDS) < share).astype(np.int64)
        run = collect(cells, 2, p, block, SeededRandomness.from_generator(rng))
        found = {rule: at(run, block) for rule, at in RULES.items()}
        return {rule: math.nan if at is None else at * block for rule, at in found.items()}


# ── What came out ──────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Converged:
    """All runs of all settings."""

    runs: Sequence[Taken]

    def ended(self, setting: Setting, rule: str) -> list[float]:
        """The answers needed in the runs that converged."""
        taken = [run[setting][rule] for run in self.runs]
        return [value for value in taken if not math.isnan(value)]

    def row(self, setting: Setting) -> tuple[Entry, ...]:
        """For each rule how many runs converged, in %, and after how many answers on average."""
        cells: list[Entry] = []
        for rule in RULES:
            ended = self.ended(setting, rule)
            cells.append(100 * len(ended) / len(self.runs))
            cells.append(round(float(np.mean(ended)), 1) if ended else None)
        return (*setting, *cells)

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
        Claim("The same by our rule: every share converges.", found.most(settings, OURS)),
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
            "By our rule, too, nothing converges at p = 0.009, 0.048 and 0.095.",
            found.few(little, OURS),
        ),
    )
    return _reproduction(6, settings, found, claims)


def _rising(found: Converged) -> list[Comparison]:
    """Of all settings with a p, the share that converges, run by run, beside the next p's."""
    shares = {
        p: np.array(
            [
                np.mean([not math.isnan(run[s][PRINTED]) for s in run if s[0] == p])
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
        for rule in RULES:
            if ended := found.ended(setting, rule):
                line = panels.setdefault(f"p = {p}, {rule}", {}).setdefault(f"share {share}", [])
                line.append((block, float(np.mean(ended))))
    headings = [f"{what}, {rule}" for rule in RULES for what in ("converged %", "answers needed")]
    return Reproduction(
        f"RRBA, Figure {figure}: answers until convergence",
        ("p", "share", "block", *headings),
        tuple(found.row(setting) for setting in settings),
        Lines("block size", "answers until convergence", panels or {"none converged": {}}),
        claims,
        (ASSUMED, TWO_RULES),
    )
