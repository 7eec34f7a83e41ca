"""Answers to views, by subset selection: uniform ones of one's own, or those of `rr_views`."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.contenders.tables import Attributes, Table, product
from mpc_rr.estimation.distribution import Estimate, project_to_simplex
from mpc_rr.estimation.matrix import Array, Codes
from mpc_rr.estimation.views import FittedViews, SubsetMechanism, best_views
from mpc_rr.randomness import SeededRandomness


@dataclass(frozen=True)
class Views:
    """For each view, the sets of combinations that were reported (a row each)."""

    sizes: tuple[int, ...]
    epsilon: float
    reported: dict[Attributes, Codes]

    @property
    def n(self) -> int:
        """How many answered."""
        return sum(map(len, self.reported.values()))

    def mechanism(self, view: Attributes) -> SubsetMechanism:
        """By which a view is answered."""
        return SubsetMechanism.best(math.prod(self.sizes[a] for a in view), self.epsilon)

    def codes(self, view: Attributes) -> Codes:
        """Reported combinations as category numbers: report, place in it, attribute."""
        shape = tuple(self.sizes[a] for a in view)
        return np.stack(np.unravel_index(self.reported[view], shape), axis=2)

    def unbiased(self, attributes: Attributes) -> Estimate | None:
        """Pooled over the views that hold these attributes, by what each tells of a rare cell."""
        shape = tuple(self.sizes[a] for a in attributes)
        cells, parts = math.prod(shape), []
        for view, reports in self.reported.items():
            if set(attributes) <= set(view) and len(reports):
                mechanism = self.mechanism(view)
                group = mechanism.size / cells
                rare = np.array(min(1 / cells, 0.5))
                weight = len(reports) / float(mechanism.variance(rare, group))
                places = [view.index(a) for a in attributes]
                told = np.ravel_multi_index(tuple(self.codes(view)[:, :, p] for p in places), shape)
                parts.append((weight, mechanism, group, mechanism.estimate(told, cells)))
        if not parts:
            return None
        total = math.fsum(weight for weight, *_ in parts)
        shares = sum(weight / total * found.shares for weight, _, _, found in parts)
        variance = sum(
            (weight / total) ** 2 * mechanism.variance(np.clip(shares, 0, 1), group) / found.n
            for weight, mechanism, group, found in parts
        )
        n = sum(found.n for *_, found in parts)
        return Estimate(shares.reshape(shape), np.sqrt(variance).reshape(shape), n)

    def margins(self) -> list[Array]:
        """Of each attribute, a distribution."""
        found = [self.unbiased((a,)) for a in range(len(self.sizes))]
        return [project_to_simplex(estimate.shares) for estimate in found]


def uniform_views(
    codes: Codes, sizes: Sequence[int], views: Sequence[Attributes], epsilon: float,
    rng: np.random.Generator,
) -> Views:  # fmt: skip
    """Each respondent draws one of these views and answers it with the whole budget."""
    found = Views(tuple(sizes), epsilon, {})
    random, drawn = SeededRandomness.from_generator(rng), rng.integers(len(views), size=len(codes))
    for number, view in enumerate(views):
        mine = codes[drawn == number]
        shape = tuple(sizes[a] for a in view)
        joint = np.ravel_multi_index(tuple(mine[:, a] for a in view), shape)
        found.reported[view] = found.mechanism(view).randomize(joint, random)
    return found


def collect_singles(codes, sizes, epsilon, rng) -> Views:
    """One attribute of each respondent."""
    return uniform_views(codes, sizes, [(a,) for a in range(len(sizes))], epsilon, rng)


def collect_best(codes, sizes, epsilon, rng) -> Views:
    """As `rr_views` did before designs of views of one and two attributes."""
    return uniform_views(codes, sizes, best_views(sizes, epsilon), epsilon, rng)


def collect_pairs(codes, sizes, epsilon, rng) -> Views:
    """A pair of attributes of each respondent."""
    pairs = list(itertools.combinations(range(len(sizes)), 2))
    return uniform_views(codes, sizes, pairs, epsilon, rng)


def as_views(fitted: FittedViews) -> Views:
    """The reports of `rr_views`, read from outside."""
    return Views(fitted.design.sizes, fitted.design.epsilon, dict(fitted.reports.reports))


def independence(reports: Views) -> Table:
    """The product of the margins."""
    margins = reports.margins()
    return lambda attributes: product(margins, attributes)


def plain(reports: Views) -> Table:
    """The unbiased table, projected on the distributions; of attributes told together only."""

    def table(attributes: Attributes) -> Array | None:
        found = reports.unbiased(attributes)
        return None if found is None else project_to_simplex(found.shares)

    return table
