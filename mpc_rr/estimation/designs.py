"""RR-Independent, RR-Joint and RR-Clusters (000 §3, §4), as one design: clusters of attributes.

A design splits the attributes into clusters and randomizes each cluster as one value.
RR-Independent has one attribute in each cluster, RR-Joint has all attributes in one.
Keep-or-uniform on a cluster stays keep-or-uniform on any of its attributes, with the same
probability to keep; so tables of a few attributes are estimated in closed form, and the joint of a
huge cluster is never needed.
"""

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from mpc_rr.errors import InputError
from mpc_rr.estimation.clusters import check_clusters
from mpc_rr.estimation.conditions import MOST_COMBINATIONS, Cells, Truths, merged
from mpc_rr.estimation.distribution import (
    Estimate,
    clip_and_rescale,
    maximum_likelihood,
    project_to_simplex,
    subset_share,
    unbiased,
)
from mpc_rr.estimation.kronecker import Kronecker
from mpc_rr.estimation.latent import Answers
from mpc_rr.estimation.matrix import (
    Array,
    ByChanges,
    Codes,
    Dense,
    DistanceWeighted,
    KeepOrUniform,
    MatrixError,
    RRMatrix,
    Uniform,
)
from mpc_rr.randomness import Randomness

ENUMERABLE = 100_000_000
Repair = Literal["none", "clip", "project", "likelihood"]
"""How an estimate is made a proper distribution; ``none`` leaves it as it is, perhaps negative."""


@dataclass(frozen=True)
class Design:
    """Clusters of attributes, and the randomization of each."""

    sizes: tuple[int, ...]
    clusters: tuple[tuple[int, ...], ...]
    matrices: tuple[RRMatrix, ...]

    def __post_init__(self) -> None:
        check_clusters(self.clusters, len(self.sizes))
        if any(tuple(sorted(cluster)) != tuple(cluster) for cluster in self.clusters):
            raise InputError("the attributes of a cluster must be in rising order")
        for cluster, matrix in zip(self.clusters, self.matrices, strict=True):
            if matrix.size != math.prod(self.sizes[a] for a in cluster):
                raise MatrixError(f"the matrix of cluster {cluster} has {matrix.size} categories")

    @property
    def epsilon(self) -> float:
        """What one record spends: every cluster is answered, so the clusters' ε add up."""
        return sum(matrix.epsilon for matrix in self.matrices)

    @property
    def kept(self) -> bool:
        """Whether every cluster is kept or replaced by a uniform value."""
        return all(isinstance(matrix, KeepOrUniform) for matrix in self.matrices)

    @property
    def width(self) -> int:
        """How many categories the attributes have together that are kept or made uniform."""
        return sum(
            self.sizes[a]
            for cluster, matrix in zip(self.clusters, self.matrices, strict=True)
            if isinstance(matrix, KeepOrUniform)
            for a in cluster
        )

    def randomization(self, attributes: Sequence[int]) -> Kronecker:
        """How these attributes together were randomized.

        Attributes of one cluster must stand next to each other, and are one factor.
        """
        return Kronecker([self.matrix_of(*part) for part in self.parts(attributes)])

    def parts(self, attributes: Sequence[int]) -> list[tuple[tuple[int, ...], list[int]]]:
        """The attributes grouped by cluster, in the order of their first one."""
        if len(set(attributes)) != len(attributes):
            raise InputError("an attribute is asked for twice")
        parts: dict[tuple[int, ...], list[int]] = {}
        for a in attributes:
            if not 0 <= a < len(self.sizes):
                raise InputError(f"there is no attribute number {a}")
            cluster = next(c for c in self.clusters if a in c)
            parts.setdefault(cluster, []).append(a)
        return [(cluster, sorted(part)) for cluster, part in parts.items()]

    def matrix_of(self, cluster: Sequence[int], part: Sequence[int]) -> RRMatrix:
        """How some attributes of a cluster were randomized, whatever the others are.

        ``part`` in rising order.
        """
        matrix = self.matrices[self.clusters.index(tuple(cluster))]
        if len(part) == len(cluster):
            return matrix
        if isinstance(matrix, KeepOrUniform):
            return KeepOrUniform(math.prod(self.sizes[a] for a in part), matrix.keep)
        if isinstance(matrix, ByChanges):
            return matrix.part([cluster.index(a) for a in part])
        raise MatrixError(
            f"some attributes of cluster {tuple(cluster)} alone have no simple matrix; estimate "
            "the whole cluster and sum"
        )

    def randomize(self, records: Codes, rng: Randomness) -> Codes:
        """Randomized records, one row per party."""
        checked = check_records(records, self.sizes)
        reported = np.empty_like(checked)
        for cluster, matrix in zip(self.clusters, self.matrices, strict=True):
            shape = tuple(self.sizes[a] for a in cluster)
            joint = np.ravel_multi_index(tuple(checked[:, a] for a in cluster), shape)
            drawn = matrix.randomize(joint, rng)
            reported[:, list(cluster)] = np.stack(np.unravel_index(drawn, shape), axis=1)
        return reported


def check_records(records: npt.ArrayLike, sizes: Sequence[int]) -> Codes:
    """Records as category numbers: n rows, one column per attribute; `InputError` otherwise."""
    table = np.asarray(records)
    if table.ndim != 2 or table.shape[1] != len(sizes):
        raise InputError(f"records must have {len(sizes)} columns, one for each attribute")
    if len(table) == 0:
        raise InputError("there are no records")
    if not np.issubdtype(table.dtype, np.integer):
        raise InputError("records must be category numbers (integers); encode them first")
    outside = (table < 0) | (table >= np.asarray(sizes))
    if outside.any():
        row, column = (int(index[0]) for index in np.nonzero(outside))
        raise InputError(
            f"record {row}, attribute {column}: {table[row, column]} is not among its "
            f"{sizes[column]} categories"
        )
    return table.astype(np.int64)


def count_combinations(records: Codes, attributes: Sequence[int], sizes: Sequence[int]) -> Array:
    """How often each combination of some attributes is among checked records."""
    shape = tuple(sizes[a] for a in attributes)
    if math.prod(shape) > ENUMERABLE:
        raise InputError(
            f"{math.prod(shape):,} combinations are too many to enumerate; ask for fewer "
            "attributes at once"
        )
    flat = np.ravel_multi_index(tuple(records[:, a] for a in attributes), shape)
    return np.bincount(flat, minlength=math.prod(shape)).reshape(shape).astype(np.float64)


def rr_independent(sizes: Sequence[int], keep: float) -> Design:
    """Each attribute by itself, kept with the same probability (000 Protocol 1, §6.3.1)."""
    matrices = tuple(KeepOrUniform(size, keep) for size in sizes)
    return Design(tuple(sizes), tuple((a,) for a in range(len(sizes))), matrices)


def one_by_one(matrices: Sequence[RRMatrix]) -> Design:
    """Each attribute by itself, with a matrix of its own."""
    sizes = tuple(matrix.size for matrix in matrices)
    return Design(sizes, tuple((a,) for a in range(len(sizes))), tuple(matrices))


def rr_clusters(
    sizes: Sequence[int],
    clusters: Sequence[Sequence[int]],
    epsilons: Sequence[float],
    own: Mapping[int, RRMatrix] = MappingProxyType({}),
) -> Design:
    """Each cluster as one value, with the sum of its attributes' ε (000 §6.3.2).

    ``own``: matrices of attributes that are each alone in their cluster.
    """
    found = tuple(check_clusters(clusters, len(sizes)))
    if len(epsilons) != len(sizes):
        raise InputError(f"{len(sizes)} attributes need as many ε, not {len(epsilons)}")
    if any(len(cluster) > 1 and set(cluster) & set(own) for cluster in found):
        raise InputError("an attribute with a matrix of its own is alone in its cluster")
    matrices = tuple(
        own[cluster[0]]
        if cluster[0] in own
        else KeepOrUniform.from_epsilon(
            math.prod(sizes[a] for a in cluster), sum(epsilons[a] for a in cluster)
        )
        for cluster in found
    )
    return Design(tuple(sizes), found, matrices)


def rr_nearby(sizes: Sequence[int], clusters: Sequence[Sequence[int]], stay: float) -> Design:
    """Each cluster stays with this probability, or rather becomes a near one (003 §6.2)."""
    found = tuple(check_clusters(clusters, len(sizes)))
    matrices = tuple(DistanceWeighted([sizes[a] for a in cluster], stay) for cluster in found)
    return Design(tuple(sizes), found, matrices)


def rr_joint(sizes: Sequence[int], epsilon: float) -> Design:
    """The whole record as one value (000 Protocol 2)."""
    return rr_clusters(sizes, [range(len(sizes))], [epsilon / len(sizes)] * len(sizes))


class Fitted:
    """What can be estimated from the randomized records of a design."""

    def __init__(self, design: Design, reported: npt.ArrayLike) -> None:
        self.design = design
        self.reported = check_records(reported, design.sizes)
        self.n = len(self.reported)
        self._joints: dict[tuple[tuple[int, ...], Repair], Array] = {}

    def answers(self) -> list[Answers]:
        """The reports as `mpc_rr.estimation.latent` wants them, a group for each cluster."""
        everybody = np.arange(self.n)
        groups = []
        for cluster, matrix in zip(self.design.clusters, self.design.matrices, strict=True):
            if not isinstance(matrix, KeepOrUniform):
                raise MatrixError("latent classes need answers that are kept or uniform")
            reported = self.reported[:, np.newaxis, list(cluster)]
            groups.append(Answers(cluster, everybody, reported, matrix.epsilon))
        return groups

    def counts(self, attributes: Sequence[int]) -> Array:
        """How often each combination of these attributes was reported."""
        self.design.parts(attributes)
        return count_combinations(self.reported, attributes, self.design.sizes)

    def randomization(self, attributes: Sequence[int]) -> Kronecker:
        """How these attributes together were randomized."""
        return self.design.randomization(attributes)

    def told_together(self, attributes: Sequence[int]) -> bool:
        """Whether these attributes were reported together: everybody reported all."""
        return bool(self.design.parts(attributes))

    def order(self, attributes: Sequence[int]) -> list[int]:
        """The attributes as `randomization` has them: those of a cluster beside each other."""
        return [a for _, part in self.design.parts(attributes) for a in part]

    def unbiased(self, attributes: Sequence[int]) -> Estimate:
        """Eq. (2) on the joint table of these attributes, with standard errors."""
        order = self.order(attributes)
        randomization = self.randomization(attributes)
        estimate = unbiased(self.counts(order).reshape(randomization.sizes), randomization)
        shape = tuple(self.design.sizes[a] for a in order)
        back = [order.index(a) for a in attributes]
        return Estimate(
            estimate.shares.reshape(shape).transpose(back),
            estimate.standard_errors.reshape(shape).transpose(back),
            self.n,
        )

    def subset(self, attributes: Sequence[int], subset: npt.ArrayLike) -> tuple[float, float]:
        """The unbiased share of a set of combinations, and its standard error."""
        order = self.order(attributes)
        wanted = np.asarray(subset, dtype=np.float64)
        asked = tuple(self.design.sizes[a] for a in attributes)
        if wanted.shape != asked:
            raise InputError(f"a set of combinations of shape {asked} is needed")
        wanted = wanted.transpose([list(attributes).index(a) for a in order])
        randomization = self.randomization(attributes)
        shape = randomization.sizes
        return subset_share(self.counts(order).reshape(shape), randomization, wanted.reshape(shape))

    def meeting(self, cells: Cells) -> tuple[Array, Kronecker, Truths]:
        """Reports as far as a condition tells them apart, how they were randomized, who meets it.

        An axis for each cluster that the condition speaks of; combinations of a cluster's answers
        that the condition does not tell apart are one. So of a conjunction each axis has two, and
        nothing is enumerated. Kept or uniform, an answer that does not stay is of a class by
        chance. (Of another matrix, all answers that are asked for keep an axis as it is.)
        """
        parts = self.design.parts(cells.attributes)
        at = {attribute: place for place, attribute in enumerate(cells.attributes)}
        meets = cells.meets.transpose([at[a] for _, part in parts for a in part])
        joint = [[cells.classes[at[a]] for a in part] for _, part in parts]
        shapes = [tuple(int(which.max()) + 1 for which in own) for own in joint]
        meets = meets.reshape([math.prod(shape) for shape in shapes])
        columns: list[Codes] = []
        matrices: list[RRMatrix] = []
        for axis, ((cluster, part), own) in enumerate(zip(parts, joint, strict=True)):
            matrix = self.design.matrix_of(cluster, part)
            reported = [self.reported[:, a] for a in part]
            if not isinstance(matrix, KeepOrUniform):
                _check_enumerable(meets.size // meets.shape[axis] * matrix.size)
                meets = np.take(meets, _class_of_each(own, shapes[axis]), axis)
                columns.append(np.ravel_multi_index(tuple(reported), [len(c) for c in own]))
                matrices.append(matrix)
                continue
            meets, which = merged(meets, axis)
            reported = [classes[codes] for codes, classes in zip(reported, own, strict=True)]
            columns.append(which[np.ravel_multi_index(tuple(reported), shapes[axis])])
            shares = [np.bincount(classes) / len(classes) for classes in own]
            chance = np.bincount(which, weights=functools.reduce(np.multiply.outer, shares).ravel())
            by_chance = (1 - matrix.keep) * np.broadcast_to(chance, (chance.size, chance.size))
            matrices.append(Dense(matrix.keep * np.eye(chance.size) + by_chance))
        counts = count_combinations(np.stack(columns, axis=1), range(len(parts)), meets.shape)
        return counts, Kronecker(matrices), meets

    def cluster_joint(self, cluster: tuple[int, ...], repair: Repair = "project") -> Array:
        """The distribution of a whole cluster, shaped by its attributes."""
        if tuple(cluster) not in self.design.clusters:
            raise InputError(f"{tuple(cluster)} is not a cluster of this design")
        found = self._joints.get((tuple(cluster), repair))
        if found is None:
            matrix = self.design.matrices[self.design.clusters.index(tuple(cluster))]
            counts = self.counts(cluster)
            found = _repaired(counts.ravel(), matrix, repair).reshape(counts.shape)
            self._joints[tuple(cluster), repair] = found
        return found.copy()

    def table(self, attributes: Sequence[int], repair: Repair = "project") -> Array:
        """The joint of some attributes as the paper estimates it.

        Within a cluster from the cluster's joint; between clusters by multiplying, as if they were
        independent (000 Protocol 1, step 10, and §4).
        """
        product = np.ones(())
        order: list[int] = []
        for cluster, part in self.design.parts(attributes):
            joint = self._part_of_cluster(cluster, part, repair)
            product = np.multiply.outer(product, joint)
            order += part
        return product.transpose([order.index(a) for a in attributes])

    def synthesize(self, rows: int, uniform: Uniform) -> Codes:
        """Synthetic records as the paper would draw them: each cluster from its own joint."""
        records = np.zeros((rows, len(self.design.sizes)), dtype=np.int64)
        for cluster in self.design.clusters:
            records[:, list(cluster)] = self.drawn(cluster, rows, uniform)
        return records

    def drawn(self, cluster: tuple[int, ...], rows: int, uniform: Uniform) -> Codes:
        """So many answers of one cluster, drawn from its own joint."""
        joint = self.cluster_joint(cluster)
        cumulative = np.cumsum(joint.ravel())
        cells = np.searchsorted(cumulative, uniform((rows,)) * cumulative[-1], side="right")
        places = np.unravel_index(np.minimum(cells, joint.size - 1), joint.shape)
        return np.stack(places, axis=1)

    def small_table(self, attributes: Sequence[int], repair: Repair = "project") -> Array:
        """The joint of a few attributes of one huge cluster, without its own joint.

        Their reports alone are inverted: keep-or-uniform on the cluster is keep-or-uniform on them.
        """
        parts = self.design.parts(attributes)
        if len(parts) != 1:
            raise InputError("these attributes are not all in one cluster")
        ((cluster, part),) = parts
        return self._from_reports(cluster, part, repair).transpose(
            [part.index(a) for a in attributes]
        )

    def _from_reports(self, cluster: tuple[int, ...], part: list[int], repair: Repair) -> Array:
        counts = self.counts(part)
        margin = self.design.matrix_of(cluster, part)
        return _repaired(counts.ravel(), margin, repair).reshape(counts.shape)

    def _part_of_cluster(self, cluster: tuple[int, ...], part: list[int], repair: Repair) -> Array:
        size = math.prod(self.design.sizes[a] for a in cluster)
        matrix = self.design.matrices[self.design.clusters.index(cluster)]
        if size > ENUMERABLE and isinstance(matrix, KeepOrUniform):
            return self._from_reports(cluster, part, repair)
        joint = self.cluster_joint(cluster, repair)
        others = tuple(k for k, a in enumerate(cluster) if a not in part)
        return np.asarray(joint.sum(axis=others))


def _check_enumerable(combinations: int) -> None:
    if combinations > MOST_COMBINATIONS:
        raise InputError(
            f"{combinations:,} combinations are too many to enumerate, as answers with a matrix of "
            "their own must be; ask for fewer of them at once"
        )


def _class_of_each(classes: Sequence[Codes], shape: Sequence[int]) -> Codes:
    """For each combination of some attributes' answers, the number of its classes together."""
    grid = np.meshgrid(*classes, indexing="ij")
    return np.asarray(np.ravel_multi_index(tuple(grid), tuple(shape)).ravel())


def _repaired(counts: Array, matrix: RRMatrix, repair: Repair) -> Array:
    if repair == "likelihood":
        return maximum_likelihood(counts, matrix).shares
    shares = unbiased(counts, matrix).shares
    match repair:
        case "clip":
            return clip_and_rescale(shares)
        case "project":
            return project_to_simplex(shares)
        case "none":
            return shares
    raise InputError(f"there is no repair {repair!r}; known: {', '.join(get_args(Repair))}")
