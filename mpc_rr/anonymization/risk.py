"""How well groups protect, and what they cost.

Both are told of answers: who gave none to a question is left out of what is said about it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mpc_rr.anonymization.hierarchy import Labels
from mpc_rr.anonymization.releases import Grouped, centre
from mpc_rr.anonymization.table import UNIT, Array, Groups, Microdata, Rows


@dataclass(frozen=True)
class Protection:
    """What groups promise for one confidential attribute."""

    attribute: str
    answered: int
    """How many of all who are in the groups."""
    least_different: int | None
    """l-diversity: the fewest different values in a group; None if nobody answered."""
    entropy_diversity: float | None
    """l-diversity by entropy: the smallest effective number of values in a group."""
    farthest: float | None
    """t-closeness: how far a group's distribution is from everybody's, at most (from 0 to 1)."""


@dataclass(frozen=True)
class Loss:
    """What groups cost."""

    squared_error: float
    """Share of the variation among quasi-identifiers that is lost if all get their centre."""
    certainty_penalty: float
    """How much of each quasi-identifier's range a group leaves open, on average (NCP)."""
    discernibility: int
    """Sum of squared group sizes."""


@dataclass(frozen=True)
class Linkage:
    """How often somebody who knows a person's quasi-identifiers picks her record."""

    average: float
    highest: float


def protection(grouped: Grouped) -> list[Protection]:
    """l-diversity and t-closeness of every confidential attribute."""
    found = []
    for place, attribute in enumerate(grouped.confidential[0].attributes):
        by_group = [table.answers(np.arange(len(table)), place) for table in grouped.confidential]
        parts = [part for part in by_group if len(part)]
        if not parts:
            found.append(Protection(attribute.name, 0, None, None, None))
            continue
        values, counts = np.unique(np.concatenate(parts), return_counts=True)
        everybody = counts / counts.sum()
        nominal = attribute.type == "nominal"
        different, effective, distances = [], [], []
        for part in parts:
            mine = np.bincount(np.searchsorted(values, part), minlength=len(values)) / len(part)
            there = mine[mine > 0]
            different.append(len(there))
            effective.append(float(np.exp(-(there * np.log(there)).sum())))
            distances.append(_distance(mine, everybody, nominal=nominal))
        found.append(
            Protection(
                attribute.name, sum(map(len, parts)), min(different), min(effective), max(distances)
            )
        )
    return found


def _distance(mine: Array, everybody: Array, *, nominal: bool) -> float:
    """The earth mover's distance of two distributions: between 0 and 1.

    Between categories without order all ways are equally long; with an order, neighbouring values
    are one step apart (Li et al. 2007).
    """
    apart = mine - everybody
    if nominal:
        return float(np.abs(apart).sum() / 2)
    steps = len(apart) - 1
    return float(np.abs(np.cumsum(apart))[:-1].sum() / steps) if steps else 0.0


def information_loss(known: Microdata, groups: Groups) -> Loss:
    """What is lost if a group is all that is known of each of its members."""
    places, everybody = range(len(known.attributes)), np.arange(len(known))
    total = sum(_variation(known, everybody, place) for place in places)
    within = sum(_variation(known, rows, place) for place in places for rows in groups)
    penalty = sum(
        len(known.answers(rows, place)) * known.width(rows, place)
        for rows in groups
        for place in places
    )
    answered = int((~known.unanswered).sum())
    return Loss(
        within / total if total else 0.0,
        penalty / answered if answered else 0.0,
        sum(len(rows) ** 2 for rows in groups),
    )


def _variation(known: Microdata, rows: Rows, place: int) -> float:
    """The summed squared distances of answers to their centre."""
    answered = rows[~known.unanswered[rows, place]]
    if not len(answered):
        return 0.0
    points = known.numbers(place)[answered] / UNIT
    return float(((points - points.mean(axis=0)) ** 2).sum())


def linkage(
    known: Microdata,
    groups: Groups,
    release: str,
    *,
    records: Sequence[int] | None = None,
    labels: Labels | None = None,
) -> Linkage:
    """The chance of picking a person's own record in a release, guessing among those that fit best.

    ``records``: how many each group has there, if that is not one for each member.
    """
    held = np.array([len(rows) for rows in groups] if records is None else records)
    if release == "microaggregated":
        chances = _nearest_centre(known, groups, held)
    elif release == "generalized":
        chances = _in_her_group(
            known, groups, held, (_covered(known, groups, labels) * held).sum(axis=1)
        )
    else:
        return linkage_by_group(known, groups, records=records)
    return Linkage(float(chances.mean()), float(chances.max()))


def linkage_by_group(
    known: Microdata, groups: Groups, *, records: Sequence[int] | None = None
) -> Linkage:
    """The same where her group is known, as it is to whoever has the list of groups."""
    held = np.array([len(rows) for rows in groups] if records is None else records)
    every = np.ones(len(known)) * np.inf
    for rows, own in zip(groups, held, strict=True):
        every[rows] = own
    chances = _in_her_group(known, groups, held, every)
    return Linkage(float(chances.mean()), float(chances.max()))


def _in_her_group(
    known: Microdata, groups: Groups, held: npt.NDArray[np.intp], candidates: Array
) -> Array:
    """One in so many candidates, or none where her group has no record at all."""
    there = np.zeros(len(known), dtype=bool)
    for rows, own in zip(groups, held, strict=True):
        there[rows] = own > 0
    return np.where(there, 1.0 / np.maximum(candidates, 1), 0.0)


def _nearest_centre(known: Microdata, groups: Groups, held: npt.NDArray[np.intp]) -> Array:
    """Groups whose published centre is nearest are all candidates, with all their records.

    How many of a group answered is published, too: who gave no answer is in none where all did, and
    is looked for by what else is known of her.
    """
    from scipy.spatial import KDTree  # noqa: PLC0415  (a tenth of the time it takes to start)

    published = np.array([centre(known, rows) for rows in groups])
    own = np.empty(len(known), dtype=np.intp)
    for number, rows in enumerate(groups):
        own[rows] = number
    sizes = np.array([len(rows) for rows in groups], dtype=np.float64)
    gaps = np.array([known.unanswered[rows].sum(axis=0) for rows in groups])
    chances = np.zeros(len(known))
    patterns, of = np.unique(known.unanswered, axis=0, return_inverse=True)
    for number, pattern in enumerate(patterns):
        people = np.flatnonzero(of.reshape(-1) == number)
        fit = np.flatnonzero(np.where(pattern, gaps > 0, gaps < sizes[:, None]).all(axis=1))
        told = np.flatnonzero(~pattern).tolist()
        if not told:  # nothing tells these groups apart
            chances[people] = 1.0 / max(held[fit].sum(), 1)
            continue
        points = np.hstack([known.numbers(p)[people] for p in told]) / UNIT
        centres = np.hstack([known.numbers(p, published[fit, p]) for p in told]) / UNIT
        tree = KDTree(centres)
        nearest, _ = tree.query(points)
        near = tree.query_ball_point(points, nearest * (1 + 1e-9) + 1e-9)
        for person, tied in zip(people.tolist(), near, strict=True):
            if own[person] in fit[tied] and held[own[person]]:
                chances[person] = 1.0 / held[fit[tied]].sum()
    return chances


def covered_by_groups(grouped: Grouped) -> npt.NDArray[np.bool_]:
    """Whom the range or label of each group fits: a row for each person."""
    return _covered(grouped.known, grouped.groups, grouped.labels)


def _covered(known: Microdata, groups: Groups, labels: Labels | None) -> npt.NDArray[np.bool_]:
    fits = np.ones((len(known), len(groups)), dtype=bool)
    for number, rows in enumerate(groups):
        for place in range(len(known.attributes)):
            if labels is None:
                fits[:, number] &= _in_range(known, rows, place)
            else:
                fits[:, number] &= _under_label(known, labels, rows, place)
    return fits


def _in_range(known: Microdata, rows: Rows, place: int) -> npt.NDArray[np.bool_]:
    """Who fits the range of a group in an attribute."""
    codes, mine = known.codes[:, place], known.codes[rows, place]
    answers, gaps = known.answers(rows, place), known.unanswered[:, place]
    if known.attributes[place].type == "nominal" or not len(answers):
        return np.isin(codes, mine)
    covered = (codes >= answers.min()) & (codes <= answers.max())
    return np.where(gaps, gaps[rows].any(), covered)


def _under_label(known: Microdata, labels: Labels, rows: Rows, place: int) -> npt.NDArray[np.bool_]:
    """Who has the label of a group in an attribute."""
    level, hierarchy = labels.level(known, rows, place), labels.hierarchies[place]
    of_all = hierarchy.at(known.codes[:, place], level)
    return np.asarray(of_all == of_all[rows[0]])
