"""When estimates from block to block have converged (paper 002, §5 and §7.1).

§5 compares the estimate of each block with that of the block before, at first with the uniform
table. It stops once every step is smaller than the confidence interval, and returns the average of
the two. The interval is that of a share among *true* answers: by the normal approximation if the
count exceeds 5, otherwise by likelihood (`printed_width`). An estimate from randomized answers
varies more (`interval_width`). §7.1 measures from which block on all steps are so small.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import chdtri, ndtri, xlogy

from mpc_rr.estimation.blocks import Answered, of_block
from mpc_rr.estimation.matrix import Array

NORMAL_ABOVE = 5
"""Above this count §5 takes the normal approximation."""
HALVINGS = 50


# ── Widths ─────────────────────────────────────────────────────────────────────────────────────


def interval_width(
    shares: Array, n: npt.ArrayLike, p: float, tables: Array, alpha: float = 0.05
) -> Array:
    """The width of the confidence interval of one block's estimates of shares.

    §5 prints another width for its δ* (`printed_width`), which leaves the randomization out.
    """
    reported = p * shares + (1 - p) * tables
    spread = np.sqrt(reported * (1 - reported) / np.asarray(n))
    return np.asarray(2 * float(ndtri(1 - alpha / 2)) * spread / p)


def printed_width(shares: Array, n: npt.ArrayLike, alpha: float = 0.05) -> Array:
    """δ* as §5 prints it: the width of the interval of shares among n *true* answers.

    Symmetrical where the count n·v exceeds 5, whatever is left for other answers: at v = 1 it is 0.
    """
    counted = np.broadcast_to(np.asarray(n, dtype=np.float64), shares.shape)
    width = 2 * float(ndtri(1 - alpha / 2)) * np.sqrt(shares * (1 - shares) / counted)
    few = counted * shares <= NORMAL_ABOVE
    width[few] = likelihood_width(shares[few], counted[few], alpha)
    return np.asarray(width)


def likelihood_width(shares: Array, n: Array, alpha: float = 0.05) -> Array:
    """The width of the intervals of all shares that are likely enough (likelihood ratio).

    They are the same in log odds. At a share of 0 (or 1) that end is closed.
    """
    most = chdtri(1, alpha)

    def unlikely(q: Array) -> npt.NDArray[np.bool_]:
        with np.errstate(divide="ignore", invalid="ignore"):
            told = xlogy(shares, shares / q) + xlogy(1 - shares, (1 - shares) / (1 - q))
        return np.asarray(~(2 * n * told <= most))

    def end(outside: float) -> Array:
        inner, outer = shares, np.full_like(shares, outside)
        for _ in range(HALVINGS):
            middle = (inner + outer) / 2
            out = unlikely(middle)
            inner, outer = np.where(out, inner, middle), np.where(out, middle, outer)
        return inner

    return end(1.0) - end(0.0)


# ── The rules ──────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Convergence:
    """Where a rule stops, and what it then returns."""

    block: int
    """From 1: that whose step from the block before was small enough."""
    shares: Array
    """The average of these two blocks."""


def stops_at(estimates: Array, widths: Array) -> Convergence | None:
    """§5: the first block all of whose steps are smaller than the widths.

    ``estimates``: a row for each block, after one for the table at first; ``widths``: for each
    block.
    """
    small = _small(estimates, widths)
    return _convergence(estimates, int(np.argmax(small))) if small.any() else None


def settles_at(estimates: Array, widths: Array) -> Convergence | None:
    """§7.1: the first block from which on all steps are smaller than the widths.

    It may be the last block: the rule does not say for how long steps must stay so small.
    """
    large = np.flatnonzero(~_small(estimates, widths))
    first = int(large[-1]) + 1 if len(large) else 0
    return _convergence(estimates, first) if first < len(widths) else None


def _small(estimates: Array, widths: Array) -> npt.NDArray[np.bool_]:
    return np.asarray((np.abs(np.diff(estimates, axis=0)) < widths).all(axis=1))


def _convergence(estimates: Array, step: int) -> Convergence:
    return Convergence(step + 1, estimates[step : step + 2].mean(axis=0))


def estimates_by_block(answered: Answered) -> Array:
    """Eq. 4 of each block alone, put between 0 and 1, after the uniform table of the beginning."""
    alone = of_block(answered.counts, answered.tables, answered.p)
    cells = alone.shape[1]
    return np.asarray(np.clip(np.vstack([np.full(cells, 1 / cells), alone]), 0.0, 1.0))


def stops_as_printed(answered: Answered) -> Convergence | None:
    """§5 on all shares of a table."""
    estimates = estimates_by_block(answered)
    n = answered.counts.sum(axis=1, keepdims=True)
    return stops_at(estimates, printed_width(estimates[1:], n))
