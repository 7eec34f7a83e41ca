"""What somebody finds who puts the masked values of all together.

Each respondent has exactly one value of the list. Under the recommended mask a masked value can
come from some values only, and what remains must fit everybody at once.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mpc_rr.anonymization.perturbation import Noise, Perturbation, Ranks
from mpc_rr.anonymization.table import Codes
from mpc_rr.errors import InputError

MOST_FOR_COUNTING = 20
"""So many people at most for all assignments to be counted."""
NOBODY = -1


@dataclass(frozen=True)
class Together:
    """Which values remain possible for each respondent.

    An attacker believes that as few respondents as can be used another mask than the recommended
    one. Values of whoever left after giving hers may be anybody's.
    """

    possible: list[set[int]]
    other_masks: int
    """So many at least used another mask."""


def assignments_left(masked: Sequence[int], values: Sequence[int], width: int) -> int:
    """In how many ways the values can belong to the people, if all noise is within ``width``."""
    if len(masked) > MOST_FOR_COUNTING:
        raise InputError(f"assignments of more than {MOST_FOR_COUNTING} people are not counted")
    ways = {0: 1}
    for own in masked:
        following: dict[int, int] = {}
        for taken, count in ways.items():
            for place, value in enumerate(values):
                if abs(value - own) <= width and not taken >> place & 1:
                    now = taken | 1 << place
                    following[now] = following.get(now, 0) + count
        ways = following
    return sum(ways.values())


def possible_values(
    masked: Sequence[int], values: Sequence[int], width: int
) -> list[set[int]] | None:
    """The same where everybody is there and all noise is within ``width``; None if it cannot be."""
    if len(masked) != len(values):
        raise InputError(f"{len(masked)} masked values for {len(values)} values")
    found = all_together(masked, values, Noise(width))
    return None if found.other_masks else found.possible


def all_together(masked: Sequence[int], values: Sequence[int], mask: Perturbation) -> Together:
    """The values that belong to each respondent in at least one assignment.

    An assignment gives as many as can be a value that their masked ones can come from. A value can
    be somebody's if swapping it in leaves all others as good a place: if both lie on a cycle of
    such swaps, that is in one strongly connected component (Dulmage & Mendelsohn). So that all have
    a place, values that are left stand beside as many absent people, who may have any, and
    respondents who are left beside as many blank values, which may be anybody's.
    """
    from scipy.sparse.csgraph import connected_components  # noqa: PLC0415  (slow to start)

    own, ordered = np.asarray(masked, dtype=np.int64), np.sort(np.asarray(values, dtype=np.int64))
    begins, ends = mask.origins(own, ordered)
    match, holder = _matched(own, begins, ends, len(ordered))
    unplaced, unused = np.flatnonzero(match == NOBODY), np.flatnonzero(holder == NOBODY)
    people, blanks = len(own), len(unplaced)
    if not people:
        return Together([], 0)
    # Blank values stand behind the others, absent people behind those who are there.
    match[unplaced] = len(ordered) + np.arange(blanks)
    holder[unused] = people + np.arange(len(unused))
    swaps = _swaps(begins, ends, holder, unplaced, len(unused))
    _, component = connected_components(swaps, directed=True, connection="strong")
    anything = set(component[unplaced].tolist())
    found = []
    for person in range(people):
        mine = component[person]
        if mine in anything:
            found.append(set(ordered.tolist()))
            continue
        fit = np.arange(begins[person], ends[person])
        found.append(set(ordered[fit[component[holder[fit]] == mine]].tolist()))
    return Together(found, blanks)


def left_by_order(values: Sequence[int], mask: Perturbation) -> list[set[int]]:
    """What remains possible in each row of a release that shows the order of masked values alone.

    Rows are in rising order of what they were mapped back to. A value can stand in a row if masked
    values can be in that order: all between must then be masked past each other, and the two ends
    are the farthest apart.
    """
    ordered = np.sort(np.asarray(values, dtype=np.int64))
    noise, different = mask.noise(), np.unique(ordered)
    near = [mask.taken_from(value, ordered) for value in different.tolist()]
    place = np.searchsorted(different, ordered)
    lowest = np.array([taken.min() - noise for taken in near])[place]
    highest = np.array([taken.max() + noise for taken in near])[place]
    begins = np.searchsorted(highest, lowest, "left")
    ends = np.searchsorted(lowest, highest, "right")
    return [set(ordered[low:high].tolist()) for low, high in zip(begins, ends, strict=True)]


def _matched(own: Codes, begins: Ranks, ends: Ranks, values: int) -> tuple[Ranks, Ranks]:
    """As many people as can be at a value of theirs: whose each is, and what each has.

    Larger masked values come from ranks that begin and end no earlier, so each takes the lowest
    that is left, in rising order.
    """
    match, holder = np.full(len(own), NOBODY), np.full(values, NOBODY)
    following = 0
    for person in np.argsort(own, kind="stable").tolist():
        place = max(following, int(begins[person]))
        if place < ends[person]:
            match[person], holder[place] = place, person
            following = place + 1
    return match, holder


def _swaps(begins: Ranks, ends: Ranks, holder: Ranks, unplaced: Ranks, absent: int) -> Any:
    """Who could take whose place: a sparse matrix over people, the absent ones last."""
    from scipy.sparse import csr_array  # noqa: PLC0415

    rows = [
        np.concatenate([holder[first:last], unplaced])
        for first, last in zip(begins, ends, strict=True)
    ] + [holder] * absent
    # Of wider numbers SciPy 1.11 would find no components, and not say so.
    starts = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int32)
    columns = np.concatenate(rows).astype(np.int32)
    return csr_array((np.ones(len(columns), np.int8), columns, starts), shape=(len(rows),) * 2)
