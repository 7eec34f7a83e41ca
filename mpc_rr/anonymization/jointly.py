"""What several releases of the same groups tell together.

Their rows can be joined, by the numbers of groups or by their order. So whoever knows a person's
quasi-identifiers looks for the groups that fit her in every release, and cannot tell the records of
these groups from each other. A release of centres excludes nobody for sure (who is nearest to a
centre may belong to another), so beside others it does not count.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from mpc_rr.anonymization.loss import AS_THEY_ARE
from mpc_rr.anonymization.releases import Grouped
from mpc_rr.anonymization.risk import Linkage, covered_by_groups, linkage


def linkage_in_all(
    grouped: Grouped, releases: Sequence[str], records: Sequence[int] | None = None
) -> Linkage:
    """The chance to find a person's record in several releases that are put together."""
    held = np.array([len(rows) for rows in grouped.groups] if records is None else records)
    sure = [release for release in releases if release != "microaggregated"]
    if not sure:
        return linkage(grouped.known, grouped.groups, "microaggregated", records=held.tolist())
    fits = np.ones((len(grouped.known), len(grouped.groups)), dtype=bool)
    for release in sure:
        fits &= _same(grouped) if release in AS_THEY_ARE else covered_by_groups(grouped)
    candidates = (fits * held).sum(axis=1)
    own = np.zeros(len(grouped.known))
    for rows, count in zip(grouped.groups, held, strict=True):
        own[rows] = count
    chances = np.where(own > 0, 1.0 / np.maximum(candidates, 1), 0.0)
    return Linkage(float(chances.mean()), float(chances.max()))


def _same(grouped: Grouped) -> npt.NDArray[np.bool_]:
    """In which groups somebody has the very quasi-identifiers of each person."""
    _, kind = np.unique(grouped.known.codes, axis=0, return_inverse=True)
    kind = kind.reshape(-1)
    there = np.zeros((int(kind.max()) + 1, len(grouped.groups)), dtype=bool)
    for number, rows in enumerate(grouped.groups):
        there[kind[rows], number] = True
    return np.asarray(there[kind])
