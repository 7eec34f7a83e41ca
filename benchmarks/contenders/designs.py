"""Designs of full reports by short names: "keep .5", "joint 6", "clusters .5", "lambda .5"."""

import math
from collections.abc import Sequence

from mpc_rr.estimation.designs import Design, rr_clusters, rr_independent, rr_joint
from mpc_rr.estimation.matrix import KeepOrUniform

LARGEST_KEEP = 0.97


def design(name: str, sizes: Sequence[int]) -> Design:
    """``keep p``: each attribute by itself; ``lambda p``: kept between .7 p and 1.2 p;
    ``clusters p``: three in a row as one value, at the ε of ``keep p``; ``joint ε``."""
    kind, number = name.split()
    value = float(number)
    if kind == "keep":
        return rr_independent(sizes, value)
    if kind == "joint":
        return rr_joint(sizes, value)
    if kind == "clusters":
        spent = [KeepOrUniform(size, value).epsilon for size in sizes]
        groups = [range(a, min(a + 3, len(sizes))) for a in range(0, len(sizes), 3)]
        return rr_clusters(sizes, groups, spent)
    assert kind == "lambda", name
    steps = max(len(sizes) - 1, 1)
    keeps = [min(LARGEST_KEEP, value * (0.7 + 0.5 * a / steps)) for a in range(len(sizes))]
    return of_clusters(sizes, [(a,) for a in range(len(sizes))], keeps)


def of_clusters(
    sizes: Sequence[int], clusters: Sequence[tuple[int, ...]], keeps: Sequence[float]
) -> Design:
    """Each cluster as one value, kept with this probability."""
    matrices = (
        KeepOrUniform(math.prod(sizes[a] for a in cluster), keep)
        for cluster, keep in zip(clusters, keeps, strict=True)
    )
    return Design(tuple(sizes), tuple(clusters), tuple(matrices))
