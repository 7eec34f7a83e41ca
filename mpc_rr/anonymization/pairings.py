"""How many of a group may meet a condition if it is not known whose values are whose.

Each member of a group has exactly one of the group's values. How many pairs can meet a condition,
at least and at most, is a transportation problem: members that are alike to the condition are one
place, and so are values; one linear program over all groups has whole numbers at its corners.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

Met = npt.NDArray[np.bool_]
"""Which member (row) would meet the condition with which value (column)."""


def fewest_and_most(groups: Sequence[Met]) -> tuple[int, int]:
    """How many of all groups meet the condition. Every group has as many values as members."""
    weights: list[float] = []
    totals: list[float] = []
    entries: list[tuple[int, int]] = []
    for met in groups:
        different, members = np.unique(met, axis=0, return_counts=True)
        kinds, values = np.unique(different, axis=1, return_inverse=True)
        of_values = np.bincount(np.asarray(values).reshape(-1))
        for i, row in enumerate(kinds):
            for j, meets in enumerate(row):
                place, pair = len(totals), len(weights)
                entries += [(place + i, pair), (place + len(kinds) + j, pair)]
                weights.append(float(meets))
        totals += [*members.tolist(), *of_values.tolist()]
    from scipy.optimize import linprog  # noqa: PLC0415  (slow to start)

    rows, columns = zip(*entries, strict=True)
    equations = csr_array(
        (np.ones(len(entries)), (rows, columns)), shape=(len(totals), len(weights))
    )
    ends = []
    for sign in (1, -1):
        found = linprog(  # type: ignore[call-overload]  # the stubs know no sparse matrices
            sign * np.array(weights), A_eq=equations, b_eq=totals, method="highs"
        )
        if found.status != 0:
            raise ArithmeticError(f"the groups do not add up: {found.message}")
        ends.append(round(sign * float(found.fun)))
    return ends[0], ends[1]
