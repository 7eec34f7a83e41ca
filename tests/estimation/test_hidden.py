"""Where counts are hidden, the truth still lies within the limits."""

import numpy as np
import pytest

from mpc_rr.estimation.dependence import abs_pearson_r, cramers_v
from mpc_rr.estimation.hidden import HiddenCounts
from mpc_rr.estimation.pairs import PairLayout
from mpc_rr.estimation.suppression import HIDDEN, suppress
from mpc_rr.schema import Attribute

SIZES = (2, 3, 4)
NOMINAL, ORDINAL = ((Attribute("a", kind, ("x", "y")),) * 2 for kind in ("nominal", "ordinal"))


def tables_of(n, seed):
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, 2, n)
    records = np.stack(
        [np.minimum((rng.random(n) ** 1.6 * s).astype(int) * (kind | (rng.random(n) < 0.6)), s - 1)
         for s in SIZES], axis=1,
    )  # fmt: skip
    layout = PairLayout(SIZES)
    return layout, [
        np.bincount(records[:, i] * SIZES[j] + records[:, j], minlength=SIZES[i] * SIZES[j])
        .reshape(SIZES[i], SIZES[j])
        .astype(np.int64)
        for i, j in layout.pairs
    ]


@pytest.mark.parametrize("seed", range(12))
def test_the_truth_lies_within_the_limits(seed):
    n = 150
    layout, tables = tables_of(n, seed)
    shown = suppress(layout, tables, 4)
    hidden = HiddenCounts(layout, shown, n)
    for number, table in enumerate(tables):
        found = hidden.strength(number, NOMINAL)
        assert found.low - 1e-6 <= cramers_v(table).value <= found.high + 1e-6
        found = hidden.strength(number, ORDINAL)
        assert max(-found.high, found.low) - 1e-9 <= abs_pearson_r(table).value
        assert abs_pearson_r(table).value <= max(abs(found.low), found.high) + 1e-9
        if not (shown[number] == HIDDEN).any():
            found = hidden.strength(number, NOMINAL)
            assert found.value is None or found.high - found.low < 1e-6


def test_margins_that_are_hidden_tell_nothing():
    layout = PairLayout((2, 2, 2))
    shown = [np.full((2, 2), HIDDEN) for _ in layout.pairs]
    found = HiddenCounts(layout, shown, 50).strength(0, NOMINAL)
    assert (found.value, found.low, found.high) == (None, 0.0, 1.0)
    assert found.verdict == "cannot be told"


def test_no_program_is_solved_where_all_or_nothing_is_shown(monkeypatch):
    """Eight attributes of which all was hidden once took seven seconds, for nothing."""
    layout, shown = tables_of(60, 3)
    hidden = [np.full_like(table, HIDDEN) for table in shown]

    def never(*_args, **_options):
        raise AssertionError("a program is solved")

    monkeypatch.setattr("scipy.optimize.linprog", never)
    for tables, known in ((shown, True), (hidden, False)):
        found = HiddenCounts(layout, tables, 60)
        for number in range(len(layout.pairs)):
            strength = found.strength(number, NOMINAL)
            assert (strength.low == strength.high) == known
