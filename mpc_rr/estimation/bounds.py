"""What tables of some attributes say of a condition on more of them: between which shares it lies.

Tables of pairs do not tell how often three answers meet. They leave room: every distribution over
all combinations that agrees with them is possible (Fréchet). Two linear programs find the least and
the most of the condition among these. Where a table is known only between limits, so is what must
agree with it; if all its limits hold, the bounds do.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array, vstack

from mpc_rr.errors import InputError
from mpc_rr.estimation.conditions import Cells, Truths, check_width
from mpc_rr.estimation.matrix import Array, Codes

MOST_COMBINATIONS = 4096
"""So many variables may a linear program have."""


@dataclass(frozen=True)
class Margin:
    """Between which limits a table of some of a condition's attributes is known.

    A value for each combination of the condition's classes, flat.
    """

    attributes: tuple[int, ...]
    low: Array
    high: Array


def refined(cells: Cells, most: int = MOST_COMBINATIONS) -> Cells:
    """The same condition with each category told apart, if that does not make too many cells.

    Tables of all categories leave less room than those of a condition's classes.
    """
    if math.prod(len(which) for which in cells.classes) > most:
        return cells
    apart = tuple(np.arange(len(which)) for which in cells.classes)
    return Cells(cells.attributes, apart, cells.table())


def cells_within(cells: Cells, attributes: Sequence[int], shape: Sequence[int]) -> Truths:
    """Which cells of a table of these attributes are one: a row for each combination of classes.

    Attributes that the condition does not name are added up.
    """
    known = [(axis, a) for axis, a in enumerate(attributes) if a in cells.attributes]
    classes = {axis: cells.classes[cells.attributes.index(a)] for axis, a in known}
    which = _numbered(shape, classes)
    return np.asarray(which == np.arange(which.max() + 1)[:, np.newaxis])


def _numbered(shape: Sequence[int], classes: Mapping[int, Codes]) -> Codes:
    """For each cell of a table, flat, the number of its combination of classes along some axes."""
    which = np.zeros(tuple(shape), dtype=np.int64)
    for axis, own in classes.items():
        place = [-1 if k == axis else 1 for k in range(len(shape))]
        which = which * (int(own.max()) + 1) + own.reshape(place)
    return which.ravel()


def bounds(cells: Cells, margins: Sequence[Margin], total: float) -> tuple[float, float]:
    """The least and the most that can meet a condition, out of ``total``.

    The margins are over the condition's classes. `InputError` if these are too many, or if nothing
    agrees with all margins.
    """
    variables = cells.meets.size
    check_width(variables, MOST_COMBINATIONS, len(cells.attributes))
    everybody = Margin((), np.array([total]), np.array([total]))
    known = [everybody, *margins]
    sums = csr_array(vstack([_sums(cells, margin) for margin in known]))
    low = np.concatenate([margin.low for margin in known])
    high = np.concatenate([margin.high for margin in known])
    wanted = cells.meets.ravel().astype(np.float64)
    least, most = (_least(weights, sums, low, high) for weights in (wanted, -wanted))
    return max(least, 0.0), min(-most, total)


def _sums(cells: Cells, margin: Margin) -> csr_array:
    """Which combinations of classes each cell of a margin adds up."""
    shape = cells.meets.shape
    kept = [cells.attributes.index(a) for a in margin.attributes]
    which = _numbered(shape, {axis: np.arange(shape[axis]) for axis in kept})
    entries = (np.ones(which.size), (which, np.arange(which.size)))
    return csr_array(entries, shape=(margin.low.size, which.size))


def _least(weights: Array, sums: csr_array, low: Array, high: Array) -> float:
    from scipy.optimize import linprog  # noqa: PLC0415  (slow to start)

    fixed = low == high
    room = sums[~fixed]
    found = linprog(
        weights,
        A_eq=sums[fixed],
        b_eq=low[fixed],
        A_ub=vstack([room, -room]),
        b_ub=np.concatenate([high[~fixed], -low[~fixed]]),
        bounds=(0, None),
        method="highs",
    )
    if found.status != 0:
        raise InputError(
            "this cannot be told: what is known of the tables of these attributes does not fit "
            "together"
        )
    return float(found.fun or 0.0)
