"""Answers to conditions on more attributes than any published table holds: bounds, no estimates."""

import math
from collections.abc import Callable, Sequence

import numpy as np

from mpc_rr.errors import InputError
from mpc_rr.estimation.bounds import Margin, bounds, cells_within, refined
from mpc_rr.estimation.conditions import Cells, Truths
from mpc_rr.estimation.distribution import project_to_simplex
from mpc_rr.estimation.hidden import MOST_PROGRAMS, HiddenCounts
from mpc_rr.estimation.intervals import subset_intervals
from mpc_rr.estimation.matrix import Array
from mpc_rr.estimation.pairs import PairLayout
from mpc_rr.estimation.suppression import HIDDEN
from mpc_rr.estimation.uncertainty import Target, Uncertainty
from mpc_rr.publication.answers import Answer, between, pair_counts
from mpc_rr.publication.counts import PairCounts
from mpc_rr.publication.parts import Table
from mpc_rr.schema import Schema

WHOLE = 1e-6
EstimateOf = Callable[[tuple[int, ...]], tuple[Array, Uncertainty] | None]
"""The unbiased table of some attributes, and how uncertain it is, if that is known."""


def bounded_counts(
    words: str,
    tables: Sequence[Table],
    cells: Cells,
    schema: Schema,
    n: int,
    level: float,
    tails: float,
) -> Answer:
    """From the counts of all pairs: for sure, if they have no noise.

    ``tails``: the excess of the noise.
    """
    counts = pair_counts(tables, schema, n, tails)
    if counts.noise:
        return bounded_shares(words, tables, cells, schema, n, level, counts.estimate_of)
    cells = refined(cells)
    low, high = bounds(cells, _counted(cells, counts), n)
    known = "some of which are hidden" if counts.suppressed_below else "which are exact"
    why = (
        f"{_no_table(cells)} The counts of each two of them, {known}, leave at most this room for "
        "all together (linear programming)."
    )
    return between(words, (math.ceil(low - WHOLE), math.floor(high + WHOLE)), n, level, why, why)


def _no_table(cells: Cells) -> str:
    return f"No published table holds these {len(cells.attributes)} attributes together."


def _counted(cells: Cells, counts: PairCounts) -> list[Margin]:
    """What is published of the pairs of a condition's attributes."""
    layout = PairLayout(counts.schema.sizes)
    hidden = HiddenCounts(layout, counts.tables, counts.n)
    found, programs = [], 0
    for number, pair in enumerate(layout.pairs):
        if not set(pair) <= set(cells.attributes):
            continue
        table = counts.tables[number]
        limits = []
        for within in cells_within(cells, pair, table.shape):
            wanted = within.reshape(table.shape)
            programs += bool((table[wanted] == HIDDEN).any())
            if programs <= MOST_PROGRAMS:
                limits.append(hidden.count(number, wanted))
            else:
                limits.append(_at_a_glance(table[wanted], counts.n))
        low, high = np.array(limits, dtype=np.float64).T
        found.append(Margin(pair, low, high))
    return found


def _at_a_glance(counts: Array, n: int) -> tuple[int, int]:
    seen = int(counts[counts != HIDDEN].sum())
    return seen, n if (counts == HIDDEN).any() else seen


def bounded_shares(
    words: str, tables: Sequence[Table], cells: Cells, schema: Schema, n: int, level: float,
    estimate_of: EstimateOf,
) -> Answer:  # fmt: skip
    """From estimated tables: all their limits that are used hold at once with this confidence.

    `InputError` if none of these tables has limits.
    """
    asked = [tuple(schema.names.index(axis.attribute) for axis in table.axes) for table in tables]
    known = [
        (attributes, cells_within(cells, attributes, estimate[0].shape), *estimate)
        for attributes in _telling_most(asked, cells)
        if (estimate := estimate_of(attributes)) is not None
    ]
    if not known:
        raise InputError("this cannot be told: no table of these attributes has limits of sums")
    together = sum(len(subsets) for _, subsets, _, _ in known)
    each = 1 - (1 - level) / together

    def limits(of: Target) -> tuple[float, float]:
        margins = [
            Margin(
                tuple(a for a in attributes if a in cells.attributes),
                *_limits(estimate, uncertainty, subsets, of, each),
            )
            for attributes, subsets, estimate, uncertainty in known
        ]
        low, high = bounds(cells, margins, 1.0)
        return max(low - WHOLE, 0.0), min(high + WHOLE, 1.0)

    low, high = limits("respondents")
    return Answer(
        words, n, None, None, (n * low, n * high), limits("population"), None, level, "bounds",
        certain=False,
        how=f"{_no_table(cells)} The limits of {len(known)} tables of parts of them leave at most "
        f"this room for all together (linear programming). With {level:.0%} confidence these "
        f"{together} limits hold all at once (each with {each:.2%}: Bonferroni); whenever they do, "
        "this does.",
    )  # fmt: skip


def _telling_most(asked: Sequence[tuple[int, ...]], cells: Cells) -> list[tuple[int, ...]]:
    """The smallest table for each part of a condition's attributes that is in no larger part."""
    parts: dict[frozenset[int], tuple[int, ...]] = {}
    for attributes in sorted(asked, key=len):
        parts.setdefault(frozenset(attributes) & frozenset(cells.attributes), attributes)
    return [table for part, table in parts.items() if part and not any(part < p for p in parts)]


def _limits(
    estimate: Array, uncertainty: Uncertainty, subsets: Truths, of: Target, level: float
) -> tuple[Array, Array]:
    flat = estimate.ravel()
    fit = project_to_simplex(flat)
    found = subset_intervals(subsets @ flat, subsets, uncertainty, fit, of, level)
    return found.low, found.high
