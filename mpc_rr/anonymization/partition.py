"""Groups of at least k similar records: MDAV microaggregation and Mondrian.

``mdav`` (Domingo-Ferrer & Torra 2005): again and again, the record farthest from the centre and
its k − 1 nearest make a group, and so do the record farthest from that one and its nearest. Each
step looks at all records that are left, so n records take n²/k looks; they are made in whole
columns, and beyond `MOST_AT_ONCE` records the data are first cut at medians into parts that are
each treated alone, so that the time grows with n from there on.

``mondrian`` (LeFevre et al. 2006): cut the records in half at the median of the attribute in which
they spread widest, and the halves again, as long as each keeps k. Ties are split (the relaxed
form), so only a part without any spread stops it early.
"""

import numpy as np

from mpc_rr.anonymization.table import Array, Groups, Rows, Table

MOST_AT_ONCE = 40_000
"""So many records MDAV treats together."""


def mdav(table: Table, k: int) -> Groups:
    """Groups of k to 2k − 1 records, close to each other."""
    points = table.points
    groups: Groups = []
    for part in _parts(points, np.arange(len(table))):
        groups += [part[rows] for rows in _mdav(points[part], k)]
    return groups


def _parts(points: Array, rows: Rows) -> Groups:
    """Cut at medians until no part is too large."""
    if len(rows) <= MOST_AT_ONCE:
        return [rows]
    low, high = _halves(points, rows)
    return _parts(points, low) + _parts(points, high)


def _halves(points: Array, rows: Rows) -> tuple[Rows, Rows]:
    mine = points[rows]
    widest = int(np.argmax(np.ptp(mine, axis=0)))
    half = len(rows) // 2
    order = np.argpartition(mine[:, widest], half)
    return rows[order[:half]], rows[order[half:]]


class _Left:
    """The records that are in no group yet; column by column, without gaps."""

    def __init__(self, points: Array) -> None:
        self.columns = np.ascontiguousarray(points.T)
        self.rows: Rows = np.arange(len(points))
        self.sum: Array = self.columns.sum(axis=1)

    def __len__(self) -> int:
        return len(self.rows)

    def distances(self, point: Array) -> Array:
        """Squared distances of all that are left to a point."""
        total = np.zeros(len(self.rows))
        for column, value in zip(self.columns, point, strict=True):
            difference = column - value
            difference *= difference
            total += difference
        return total

    def farthest(self, point: Array) -> Array:
        """The record farthest from a point."""
        return self.columns[:, int(np.argmax(self.distances(point)))]

    def take_nearest(self, point: Array, k: int) -> Rows:
        """Remove the k records nearest to a point; they are a group."""
        near = np.argpartition(self.distances(point), k - 1)[:k]
        group = self.rows[near]
        self.sum -= self.columns[:, near].sum(axis=1)
        stay = np.ones(len(self.rows), dtype=bool)
        stay[near] = False
        self.columns, self.rows = self.columns[:, stay], self.rows[stay]
        return group


def _mdav(points: Array, k: int) -> Groups:
    left, groups = _Left(points), []
    while len(left) >= 3 * k:
        first = left.farthest(left.sum / len(left)).copy()
        groups.append(left.take_nearest(first, k))
        second = left.farthest(first).copy()
        groups.append(left.take_nearest(second, k))
    if len(left) >= 2 * k:
        groups.append(left.take_nearest(left.farthest(left.sum / len(left)).copy(), k))
    groups.append(left.rows)
    return groups


def mondrian(table: Table, k: int) -> Groups:
    """Groups of at least k records by cutting at medians."""
    spans = np.ptp(table.codes, axis=0).astype(np.float64)
    scaled = table.codes / np.where(spans > 0, spans, 1.0)
    groups: Groups = []
    waiting: Groups = [np.arange(len(table))]
    while waiting:
        rows = waiting.pop()
        if len(rows) < 2 * k:
            groups.append(rows)
            continue
        low, high = _halves(scaled, rows)
        if (scaled[rows] == scaled[rows[0]]).all():
            groups.append(rows)
        else:
            waiting += [high, low]
    return groups
