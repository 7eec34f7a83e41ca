"""One view each: every respondent answers one small group of attributes with the whole budget.

Instead of splitting ε over all attributes, each respondent draws one *view* (a group of attributes)
at random and reports its combination alone. Each view then has fewer respondents, but answers that
are far less random; at small budgets this beats everything that reports all attributes.

A view is reported by subset selection (Ye and Barg 2018): a set of w combinations that contains
the true one more often than chance. w = 1 is k-ary randomized response, best at large ε; at small ε
a larger set tells more. The view itself is drawn independently of the record and tells nothing.
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mpc_rr.errors import InputError
from mpc_rr.estimation.designs import check_records
from mpc_rr.estimation.distribution import Estimate
from mpc_rr.estimation.latent import CLASSES, Answers, latent_classes
from mpc_rr.estimation.matrix import (
    Array,
    Codes,
    KeepOrUniform,
    MatrixError,
    Uniform,
)
from mpc_rr.estimation.tables import agree, shrunk

MOST_VIEWS = 2000


@dataclass(frozen=True)
class SubsetSelection:
    """Report ``chosen`` of ``size`` values, the true one among them more often than chance."""

    size: int
    epsilon: float
    chosen: int

    @classmethod
    def best(cls, size: int, epsilon: float) -> "SubsetSelection":
        """With the number of chosen values that gives the smallest variance."""
        if size < 2 or not epsilon > 0:
            raise MatrixError(f"a view needs two values and a positive ε, not {size} and {epsilon}")
        ideal = size / (math.exp(min(epsilon, 700)) + 1)
        options = {max(1, math.floor(ideal)), max(1, math.ceil(ideal))}
        candidates = [cls(size, epsilon, chosen) for chosen in sorted(options) if chosen < size]
        return min(candidates, key=lambda candidate: candidate.variance_per_person)

    @property
    def hit(self) -> float:
        """The probability that the set holds the true value."""
        boosted = self.chosen * math.exp(min(self.epsilon, 700))
        return boosted / (boosted + self.size - self.chosen)

    @property
    def miss(self) -> float:
        """The probability that the set holds a given other value."""
        inside = self.hit * (self.chosen - 1) + (1 - self.hit) * self.chosen
        return inside / (self.size - 1)

    @property
    def variance_per_person(self) -> float:
        """n times the variance of the estimated share of a rare value."""
        return self.miss * (1 - self.miss) / (self.hit - self.miss) ** 2

    def randomize(self, values: Codes, uniform: Uniform) -> Codes:
        """For each value a row of ``chosen`` different values, in no telling order."""
        n = len(values)
        if self.chosen == 1:
            matrix = KeepOrUniform.from_epsilon(self.size, self.epsilon)
            return matrix.randomize(values, uniform)[:, np.newaxis]
        holds_truth = uniform((n,)) < self.hit
        keys = uniform((n, self.size))
        # The true value comes first or last in the random order, as drawn; the rest is shuffled.
        keys[np.arange(n), values] = np.where(holds_truth, -1.0, 2.0)
        picked = np.argpartition(keys, self.chosen - 1, axis=1)[:, : self.chosen]
        return np.sort(picked, axis=1)

    def estimate(self, reports: Codes, cells: int | None = None) -> Estimate:
        """Unbiased shares of the true values, or of equal groups of them, with standard errors.

        With ``cells``, the reports are already numbers of groups (cells of a margin of the view).
        """
        n = len(reports)
        if n == 0:
            raise InputError("nobody reported this view; there is nothing to estimate from")
        cells = self.size if cells is None else cells
        seen, times = reports.ravel(), np.ones(reports.size)
        if self.chosen > 1:
            keys = np.repeat(np.arange(n), self.chosen) * cells + seen
            keys, times = np.unique(keys, return_counts=True)
            seen = keys % cells
        mean = np.bincount(seen, weights=times, minlength=cells) / n
        square = np.bincount(seen, weights=times**2, minlength=cells) / n
        contrast = self.hit - self.miss
        errors = np.sqrt(np.maximum(square - mean**2, 0) / max(n - 1, 1)) / contrast
        return Estimate((mean - self.size / cells * self.miss) / contrast, errors, n)


def all_views(attributes: int, together: int) -> list[tuple[int, ...]]:
    """All groups of ``together`` attributes."""
    return list(itertools.combinations(range(attributes), together))


def best_views(sizes: Sequence[int], epsilon: float) -> list[tuple[int, ...]]:
    """The groups of one size that promise the smallest error of pair tables, without any data.

    Larger views let every respondent serve more pairs, at the price of a more random answer.
    """
    shares = guessed_shares(sizes)
    candidates = [
        all_views(len(sizes), together)
        for together in range(2, len(sizes) + 1)
        if math.comb(len(sizes), together) <= MOST_VIEWS
    ]

    def error(views: list[tuple[int, ...]]) -> float:
        return sum(view_pair_error(sizes, views, epsilon, pair, 1, shares) for pair in shares)

    return min(candidates, key=error)


def guessed_shares(sizes: Sequence[int]) -> dict[tuple[int, int], Array]:
    """Pair tables as skewed as answers usually are: shares 1, 1/2, 1/3, …, and independent."""
    margins = []
    for size in sizes:
        weights = 1 / np.arange(1, size + 1)
        margins.append(weights / weights.sum())
    pairs = itertools.combinations(range(len(sizes)), 2)
    return {(i, j): np.outer(margins[i], margins[j]) for i, j in pairs}


def view_pair_error(
    sizes: Sequence[int],
    views: Sequence[tuple[int, ...]],
    epsilon: float,
    pair: tuple[int, int],
    n: int,
    shares: Mapping[tuple[int, int], Array],
) -> float:
    """The expected L1 error of one pair's unbiased table, pooled over the views that hold it.

    ``shares`` are the true (or guessed) tables. Infinite if no view holds the pair.
    """
    truth = shares[pair]
    precision = np.zeros(truth.shape)
    for view in views:
        if set(pair) <= set(view):
            mechanism = SubsetSelection.best(math.prod(sizes[a] for a in view), epsilon)
            held = truth * (mechanism.hit - mechanism.miss)
            held += mechanism.size / truth.size * mechanism.miss
            # Chosen values fall into a cell nearly independently when few are chosen of many.
            per_person = held * (1 - np.minimum(held, 1) / mechanism.chosen)
            variance = per_person / (mechanism.hit - mechanism.miss) ** 2 / (n / len(views))
            precision += 1 / np.maximum(variance, 1e-300)
    if not precision.all():
        return math.inf
    return float(np.sqrt(2 / math.pi) * np.sqrt(1 / precision).sum())


@dataclass(frozen=True)
class ViewReports:
    """Which view each respondent drew, and the reports of each view."""

    drawn: Codes
    reports: dict[tuple[int, ...], Codes]


class ViewDesign:
    """Views, one of which each respondent answers with the whole ε."""

    def __init__(
        self, sizes: Sequence[int], views: Sequence[tuple[int, ...]], epsilon: float
    ) -> None:
        self.sizes, self.views, self.epsilon = tuple(sizes), list(views), epsilon
        if not self.views or any(tuple(sorted(set(v))) != tuple(v) for v in self.views):
            raise InputError("views are groups of different attributes, in rising order")
        self.mechanisms = {
            view: SubsetSelection.best(math.prod(self.sizes[a] for a in view), epsilon)
            for view in self.views
        }

    def randomize(self, records: Codes, uniform: Uniform) -> ViewReports:
        """Each respondent draws a view uniformly and reports it."""
        checked = check_records(records, self.sizes)
        drawn = (uniform((len(checked),)) * len(self.views)).astype(np.int64)
        reports = {}
        for number, view in enumerate(self.views):
            mine = checked[drawn == number]
            shape = tuple(self.sizes[a] for a in view)
            joint = np.ravel_multi_index(tuple(mine[:, a] for a in view), shape)
            reports[view] = self.mechanisms[view].randomize(joint, uniform)
        return ViewReports(drawn, reports)

    def estimate(self, reports: ViewReports, attributes: tuple[int, ...]) -> Estimate:
        """The unbiased table of some attributes, pooled over all views that hold them.

        Each view is weighted by its precision for this table.
        """
        found, shape = [], tuple(self.sizes[a] for a in attributes)
        for view in self.views:
            if set(attributes) <= set(view) and len(reports.reports[view]):
                cells = self.cells(view, attributes, reports.reports[view])
                found.append(self.mechanisms[view].estimate(cells, math.prod(shape)))
        if not found:
            raise InputError(f"no reported view holds the attributes {attributes} together")
        weights = np.array([1 / max(float((e.standard_errors**2).mean()), 1e-300) for e in found])
        weights /= weights.sum()
        shares = np.tensordot(weights, np.stack([e.shares for e in found]), axes=1)
        variances = np.tensordot(
            weights**2, np.stack([e.standard_errors**2 for e in found]), axes=1
        )
        n = sum(e.n for e in found)
        return Estimate(shares.reshape(shape), np.sqrt(variances).reshape(shape), n)

    def _codes(self, view: tuple[int, ...], attribute: int, reports: Codes) -> Codes:
        """The category of one attribute in each reported combination of a view."""
        after = math.prod(self.sizes[a] for a in view[view.index(attribute) + 1 :])
        return np.asarray(reports // after % self.sizes[attribute])

    def cells(self, view: tuple[int, ...], attributes: tuple[int, ...], reports: Codes) -> Codes:
        """Reported combinations of a view as cells of the table of some of its attributes."""
        cells = np.zeros_like(reports)
        for attribute in attributes:
            cells = cells * self.sizes[attribute] + self._codes(view, attribute, reports)
        return cells

    def answers(self, reports: ViewReports) -> list[Answers]:
        """The reports as `mpc_rr.estimation.latent` wants them, a group for each view."""
        groups = []
        for number, view in enumerate(self.views):
            reported = reports.reports[view]
            codes = np.stack([self._codes(view, a, reported) for a in view], axis=2)
            who = np.nonzero(reports.drawn == number)[0]
            groups.append(Answers(view, who, codes, self.epsilon))
        return groups

    def pair_tables(
        self, reports: ViewReports, *, classes: int = CLASSES
    ) -> dict[tuple[int, ...], Array]:
        """Proper tables of all pairs that agree about the attributes they share.

        A mixture of latent classes is fitted to all reports; where views hold a pair, its unbiased
        table overrules the model by as much as is not noise.
        """
        answers = self.answers(reports)
        model = latent_classes(answers, self.sizes, len(reports.drawn), classes=classes)
        tables: dict[tuple[int, ...], Array] = {}
        precisions: dict[tuple[int, ...], float] = {}
        for pair in itertools.combinations(range(len(self.sizes)), 2):
            estimate = self.estimate(reports, pair)
            tables[pair] = shrunk(estimate, model.table(pair))
            precisions[pair] = 1 / max(float((estimate.standard_errors**2).sum()), 1e-300)
        return agree(tables, precisions)


class FittedViews:
    """What can be estimated from reports of views: the same questions as `designs.Fitted`."""

    def __init__(self, design: ViewDesign, reports: ViewReports) -> None:
        self.design, self.reports = design, reports
        self.n = len(reports.drawn)

    def answers(self) -> list[Answers]:
        """The reports as `mpc_rr.estimation.latent` wants them."""
        return self.design.answers(self.reports)

    def unbiased(self, attributes: Sequence[int]) -> Estimate:
        """The table of some attributes that a view holds together, with standard errors."""
        return self.design.estimate(self.reports, tuple(attributes))

    def subset(self, attributes: Sequence[int], subset: Array) -> tuple[float, float]:
        """The share of a set of combinations, and its standard error.

        Each view that holds the attributes tells it by how many of its reported combinations are
        in the set; the views are weighted by their precision.
        """
        shares, variances = [], []
        cells = np.asarray(subset, dtype=np.float64)
        for view in self.design.views:
            reported = self.reports.reports[view]
            if set(attributes) <= set(view) and len(reported) > 1:
                mechanism = self.design.mechanisms[view]
                held = cells.ravel()[self.design.cells(view, tuple(attributes), reported)]
                seen = held.sum(axis=1)
                by_chance = mechanism.miss * cells.sum() * mechanism.size / cells.size
                contrast = mechanism.hit - mechanism.miss
                shares.append((float(seen.mean()) - by_chance) / contrast)
                variances.append(max(float(seen.var()), 1e-12) / contrast**2 / (len(seen) - 1))
        if not shares:
            raise InputError(
                "no view that was answered holds these attributes together; ask for fewer at once"
            )
        weights = 1 / np.array(variances)
        weights /= weights.sum()
        return float(weights @ shares), float(np.sqrt(weights**2 @ variances))
