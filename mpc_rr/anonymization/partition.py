"""Groups of at least k similar records: MDAV microaggregation and Mondrian.

``mdav`` (Domingo-Ferrer & Torra 2005): again and again, the record farthest from the centre and
its k − 1 nearest make a group, and so do the record farthest from that one and its nearest. Each
step looks at all records that are left, so n records take n²/k looks; they are made in whole
columns, and beyond `MOST_AT_ONCE` records the data are first cut at medians into parts that are
each treated alone, so that the time grows with n from there on.

``mondrian`` (LeFevre et al. 2006): cut the records in half at the median of the attribute in which
they spread widest, and the halves again, as long as each keeps k. Ties are split (the relaxed
form), so only a part without any spread stops it early. Categories without an order are taken in
the order of the study file. Who gave no answer to a question with an order comes after all who did,
as far from the last as this one is from the first: so they are cut apart before others.

Both compute in whole numbers, and ties are decided by the order of the records, so that everybody
who makes the groups anew finds the very same.
"""

import numpy as np

from mpc_rr.anonymization.table import Codes, Groups, Microdata, Rows

FULL_RANGE = 1 << 20
"""The range of every attribute, once they are made comparable."""
MOST_AT_ONCE = 40_000
"""So many records MDAV treats together."""


def mdav(table: Microdata, k: int) -> Groups:
    """Groups of k to 2k − 1 records, close to each other."""
    points = table.points
    groups: Groups = []
    for part in _parts(points, np.arange(len(table))):
        groups += [part[rows] for rows in _mdav(points[part], k)]
    return groups


def _parts(points: Codes, rows: Rows) -> Groups:
    """Cut at medians until no part is too large."""
    if len(rows) <= MOST_AT_ONCE:
        return [rows]
    low, high = _halves(points, rows)
    return _parts(points, low) + _parts(points, high)


def _halves(points: Codes, rows: Rows) -> tuple[Rows, Rows]:
    mine = points[rows]
    widest = int(np.argmax(np.ptp(mine, axis=0)))
    order = np.argsort(mine[:, widest], kind="stable")
    half = len(rows) // 2
    return rows[np.sort(order[:half])], rows[np.sort(order[half:])]


class _Left:
    """The records that are in no group yet; column by column, without gaps."""

    def __init__(self, points: Codes) -> None:
        self.columns = np.ascontiguousarray(points.T)
        self.rows: Rows = np.arange(len(points))
        self.sum: Codes = self.columns.sum(axis=1)

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def centre(self) -> Codes:
        """Their mean, as whole numbers."""
        mean: Codes = self.sum // len(self.rows)
        return mean

    def distances(self, point: Codes) -> Codes:
        """Squared distances of all that are left to a point."""
        total = np.zeros(len(self.rows), dtype=np.int64)
        for column, value in zip(self.columns, point, strict=True):
            difference = column - value
            difference *= difference
            total += difference
        return total

    def farthest(self, point: Codes) -> Codes:
        """The record farthest from a point; of several, the first."""
        there: Codes = self.columns[:, int(np.argmax(self.distances(point)))].copy()
        return there

    def take_nearest(self, point: Codes, k: int) -> Rows:
        """Remove the k records nearest to a point; they are a group."""
        distances = self.distances(point)
        limit = np.partition(distances, k - 1)[k - 1]
        nearer = np.flatnonzero(distances < limit)
        near = np.concatenate([nearer, np.flatnonzero(distances == limit)[: k - len(nearer)]])
        group: Rows = self.rows[near]
        self.sum -= self.columns[:, near].sum(axis=1)
        stay = np.ones(len(self.rows), dtype=bool)
        stay[near] = False
        self.columns, self.rows = self.columns[:, stay], self.rows[stay]
        return group


def _mdav(points: Codes, k: int) -> Groups:
    left, groups = _Left(points), []
    while len(left) >= 3 * k:
        first = left.farthest(left.centre)
        groups.append(left.take_nearest(first, k))
        groups.append(left.take_nearest(left.farthest(first), k))
    if len(left) >= 2 * k:
        groups.append(left.take_nearest(left.farthest(left.centre), k))
    groups.append(left.rows)
    return groups


def _comparable(table: Microdata) -> Codes:
    """The codes of each attribute, stretched so that its answers are `FULL_RANGE` wide."""
    codes = table.codes.copy()
    spans = np.ptp(codes, axis=0)
    for place, attribute in enumerate(table.attributes):
        gaps = table.unanswered[:, place]
        if attribute.type == "nominal" or not gaps.any():
            continue
        answers = table.answers(np.arange(len(table)), place)
        spans[place] = max(int(np.ptp(answers)) if len(answers) else 0, 1)
        codes[gaps, place] = int(answers.max()) + spans[place] if len(answers) else 0
    return np.asarray(codes * FULL_RANGE // np.where(spans > 0, spans, 1))


def mondrian(table: Microdata, k: int) -> Groups:
    """Groups of at least k records by cutting at medians."""
    scaled = _comparable(table)
    groups: Groups = []
    waiting: Groups = [np.arange(len(table))]
    while waiting:
        rows = waiting.pop()
        if len(rows) < 2 * k:
            groups.append(rows)
            continue
        if (table.codes[rows] == table.codes[rows[0]]).all():
            groups.append(rows)
        else:
            waiting += reversed(_halves(scaled, rows))
    return groups
