"""Attributes by their names: a `Domain` turns names into the numbers that the mathematics takes.

It knows the attributes' names and how many categories each has, as the domain of private-pgm does.
Designs are made from names; what comes back keyed by numbers is keyed by names (`Domain.named`).
"""

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from mpc_rr.errors import InputError, all_quoted
from mpc_rr.estimation.designs import (
    Design,
    check_records,
    count_combinations,
    rr_clusters,
    rr_independent,
    rr_joint,
)
from mpc_rr.estimation.matrix import Array
from mpc_rr.estimation.views import ViewDesign, best_views
from mpc_rr.schema import Schema

Names = str | Sequence[str]
"""One attribute, or several."""
Value = TypeVar("Value")


def listed(names: Names) -> tuple[str, ...]:
    """Names as a tuple, also if it is one."""
    return (names,) if isinstance(names, str) else tuple(names)


@dataclass(frozen=True)
class Domain:
    """The names of some attributes, and how many categories each of them has."""

    names: tuple[str, ...]
    sizes: tuple[int, ...]

    def __post_init__(self) -> None:
        if len(self.names) != len(self.sizes):
            raise InputError(f"{len(self.names)} names do not go with {len(self.sizes)} sizes")
        if len(set(self.names)) != len(self.names):
            raise InputError("two attributes have the same name")
        if any(size < 1 for size in self.sizes):
            raise InputError("every attribute needs at least one category")

    @classmethod
    def of(cls, schema: Schema) -> "Domain":
        """The attributes of a schema."""
        return cls(schema.names, schema.sizes)

    @property
    def size(self) -> int:
        """The number of combinations of all attributes."""
        return math.prod(self.sizes)

    @property
    def pairs(self) -> tuple[tuple[str, str], ...]:
        """All pairs of attributes, in order."""
        return tuple(itertools.combinations(self.names, 2))

    def index(self, name: str) -> int:
        """The number of an attribute; `InputError` if there is none of this name."""
        if name not in self.names:
            raise InputError(f"there is no attribute {name!r}; they are {all_quoted(self.names)}")
        return self.names.index(name)

    def axes(self, names: Names) -> tuple[int, ...]:
        """The numbers of some attributes, in the order in which they are named."""
        found = tuple(self.index(name) for name in listed(names))
        if not found or len(set(found)) != len(found):
            raise InputError("name one or more attributes, each of them once")
        return found

    def project(self, names: Names) -> "Domain":
        """The domain of some attributes alone, in the order in which they are named."""
        return Domain(listed(names), tuple(self.sizes[axis] for axis in self.axes(names)))

    # ── Designs ────────────────────────────────────────────────────────────────────────────────

    def independent(self, keep: float) -> Design:
        """Each attribute randomized by itself, kept with this probability (`rr_independent`)."""
        return rr_independent(self.sizes, keep)

    def joint(self, epsilon: float) -> Design:
        """All attributes randomized as one value (`rr_joint`)."""
        return rr_joint(self.sizes, epsilon)

    def clustered(self, clusters: Iterable[Names], epsilon: float | Mapping[str, float]) -> Design:
        """Each cluster randomized as one value (`rr_clusters`); who is in none stands alone.

        ``epsilon`` is that of each attribute, one for all or by name; a cluster has their sum.
        """
        together = [self.axes(cluster) for cluster in clusters]
        clustered = {axis for cluster in together for axis in cluster}
        alone = [(axis,) for axis in range(len(self.sizes)) if axis not in clustered]
        if isinstance(epsilon, Mapping):
            lacking = [name for name in self.names if name not in epsilon]
            if lacking or len(epsilon) != len(self.names):
                raise InputError(f"give an ε for each of {all_quoted(self.names)}, and no others")
            each = [epsilon[name] for name in self.names]
        else:
            each = [epsilon] * len(self.names)
        return rr_clusters(self.sizes, [*together, *alone], each)

    def views(self, epsilon: float, views: Iterable[Names] | None = None) -> ViewDesign:
        """One group of attributes is answered by each, with all of ε; by default `best_views`."""
        if views is None:
            return ViewDesign(self.sizes, best_views(self.sizes, epsilon), epsilon)
        chosen = [tuple(sorted(self.axes(view))) for view in views]
        return ViewDesign(self.sizes, chosen, epsilon)

    # ── Data and results ───────────────────────────────────────────────────────────────────────

    def counts(self, records: npt.ArrayLike, names: Names) -> Array:
        """How often each combination of some attributes is among true or reported records."""
        return count_combinations(check_records(records, self.sizes), self.axes(names), self.sizes)

    def margins(
        self, wished: Mapping[str | tuple[str, ...], npt.ArrayLike]
    ) -> list[tuple[tuple[int, ...], Array]]:
        """Distributions by name, as `mpc_rr.estimation.raking.adjust` takes them."""
        found = []
        for names, shares in wished.items():
            margin, shape = np.asarray(shares, dtype=np.float64), self.project(names).sizes
            if margin.shape != shape:
                raise InputError(
                    f"the margin of {all_quoted(listed(names))} must have the shape {shape}, not "
                    f"{margin.shape}"
                )
            found.append((self.axes(names), margin))
        return found

    def named(self, found: Mapping[tuple[int, ...], Value]) -> dict[tuple[str, ...], Value]:
        """The same by names: tables of `best_pair_tables`, dependences, whatever has such keys."""
        return {tuple(self.names[axis] for axis in axes): value for axes, value in found.items()}

    def by_pair(self, matrix: npt.ArrayLike) -> dict[tuple[str, str], float]:
        """The entries above the diagonal, as of `dependences_of_records`, by pairs of names."""
        square = np.asarray(matrix, dtype=np.float64)
        if square.shape != (len(self.names), len(self.names)):
            raise InputError(f"a matrix of {len(self.names)} rows and columns is needed")
        return {pair: float(square[self.axes(pair)]) for pair in self.pairs}
