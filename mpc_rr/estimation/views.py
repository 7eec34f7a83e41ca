"""One view each: every respondent answers one small group of attributes with the whole budget.

Instead of splitting ε over all attributes, each respondent draws one *view* (a group of attributes)
at random, by weights that all know, and reports its combination alone. Each view then has fewer
respondents, but answers that are far less random; at small budgets this beats everything that
reports all attributes.

A view is reported by subset selection (Ye and Barg 2018): a set of w combinations that contains
the true one more often than chance. w = 1 is k-ary randomized response, best at large ε; at small ε
a larger set tells more. The view itself is drawn independently of the record and tells nothing.
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from mpc_rr.errors import InputError
from mpc_rr.estimation.combinations import MOST_ASKED
from mpc_rr.estimation.designs import check_records
from mpc_rr.estimation.distribution import Estimate
from mpc_rr.estimation.latent import CLASSES, Answers, latent_classes
from mpc_rr.estimation.matrix import (
    Array,
    Codes,
    KeepOrUniform,
    MatrixError,
    Truth,
    check_codes,
)
from mpc_rr.estimation.tables import make_consistent, shrunk
from mpc_rr.randomness import Randomness

MOST_VIEWS = 2000
SHARES_ALONE = ((0.8, 0.0), (1.5, 0.2), (4.0, 0.5), (math.inf, 0.8))
"""Up to which mean error of pair tables, if everybody answered a pair, what share of the
respondents answers an attribute alone. (An error of 2 is that of tables with nothing in common.)"""
UNITS = 10_000
"""Of the weights of mixed views, together, about."""
LARGEST_VIEW = 100_000_000
KEYS_AT_ONCE = 4_000_000


@dataclass(frozen=True)
class SubsetMechanism:
    """Report ``chosen`` of ``size`` values, the true one among them more often than chance."""

    size: int
    epsilon: float
    chosen: int

    @classmethod
    @lru_cache(maxsize=4096)
    def best(cls, size: int, epsilon: float) -> "SubsetMechanism":
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
    def truth(self) -> Truth:
        """Whether the set must hold the true value, as it is drawn; if not, it still may."""
        other = math.exp(-self.epsilon)
        total = self.chosen + (self.size - self.chosen) * other
        return Truth.at_most(
            self.chosen * -math.expm1(-self.epsilon) / total, self.size * other / total
        )

    @property
    def miss(self) -> float:
        """The probability that the set holds a given other value."""
        inside = self.hit * (self.chosen - 1) + (1 - self.hit) * self.chosen
        return inside / (self.size - 1)

    @property
    def variance_per_person(self) -> float:
        """n times the variance of the estimated share of a rare value."""
        return self.miss * (1 - self.miss) / (self.hit - self.miss) ** 2

    def held_by_chance(self, group: float) -> float:
        """How many of a group of so many values a report holds on average, truth elsewhere."""
        return group * self.miss

    def variance(self, share: Array, group: float) -> Array:
        """Of one report's unbiased estimate of the share of a group of values: exact.

        The report holds the true value or not; the other chosen ones are drawn without
        replacement from the rest, so their number in the group is hypergeometric.
        """
        inside = self._moments(group - 1, own=1)
        outside = self._moments(group, own=0)
        mean = share * inside[0] + (1 - share) * outside[0]
        square = share * inside[1] + (1 - share) * outside[1]
        contrast = self.hit - self.miss
        return np.asarray(np.maximum(square - mean**2, 0) / contrast**2)

    def _moments(self, others: float, own: int) -> tuple[float, float]:
        """Mean and mean square of how many values of a group a report holds.

        ``others``: values of the group besides the true one; ``own``: whether that is in it.
        """
        mean = square = 0.0
        for held, chance in ((1, self.hit), (0, 1 - self.hit)):
            drawn, rest = self.chosen - held, self.size - 1
            part = others / rest
            expected = own * held + drawn * part
            spread = drawn * part * (1 - part) * (rest - drawn) / max(rest - 1, 1)
            mean += chance * expected
            square += chance * (expected**2 + max(spread, 0.0))
        return mean, square

    def randomize(self, values: Codes, rng: Randomness) -> Codes:
        """For each value a row of ``chosen`` different values, in no telling order."""
        values = check_codes(values, self.size)
        if self.chosen == 1:
            matrix = KeepOrUniform.from_epsilon(self.size, self.epsilon)
            return matrix.randomize(values, rng)[:, np.newaxis]
        step = max(1, KEYS_AT_ONCE // self.size)
        pieces = [values[start : start + step] for start in range(0, len(values), step)]
        drawn = [self._draw_sets(piece, rng) for piece in pieces]
        return np.concatenate(drawn) if drawn else np.zeros((0, self.chosen), dtype=np.int64)

    def _draw_sets(self, values: Codes, rng: Randomness) -> Codes:
        """The truth is in the set if it is told, or by chance: then in the place of another value.

        So at any ε the odds are as exact as those of `KeepOrUniform`, which is the same for sets
        of one value.
        """
        n = len(values)
        held = self.truth.draw((n,), rng) | (rng.below(self.size, (n,)) < self.chosen)
        sets = rng.subsets(self.size - 1, self.chosen, n)
        sets += sets >= values[:, np.newaxis]
        place = (np.arange(n), rng.below(self.chosen, (n,)).view(np.int64))
        sets[place] = np.where(held, values, sets[place])
        return np.sort(sets, axis=1)

    def estimate(self, reports: Codes, cells: int | None = None) -> Estimate:
        """Unbiased shares of the true values, or of equal groups of them, with standard errors.

        With ``cells``, the reports are already numbers of groups (cells of a margin of the view).
        """
        n = len(reports)
        if n == 0:
            raise InputError("nobody reported this view; there is nothing to estimate from")
        cells = self.size if cells is None else cells
        group = self.size / cells
        seen = np.bincount(reports.ravel(), minlength=cells) / n
        shares = (seen - self.held_by_chance(group)) / (self.hit - self.miss)
        variances = self.variance(np.clip(shares, 0, 1), group)
        return Estimate(shares, np.sqrt(variances / n), n)


def all_views(attributes: int, together: int) -> list[tuple[int, ...]]:
    """All groups of ``together`` attributes; `InputError` if there are too many to go through."""
    if math.comb(attributes, together) > MOST_ASKED:
        raise InputError(
            f"{attributes:,} attributes have {math.comb(attributes, together):,} views of "
            f"{together}; more than {MOST_ASKED:,} are not asked: give another together, or ask "
            "fewer attributes"
        )
    return list(itertools.combinations(range(attributes), together))


def best_views(sizes: Sequence[int], epsilon: float) -> list[tuple[int, ...]]:
    """The groups of one size that promise the smallest error of pair tables, without any data.

    Larger views let every respondent serve more pairs, at the price of a more random answer.
    """
    if len(sizes) < 2:
        raise InputError("views need at least two attributes")
    largest = sorted(sizes, reverse=True)
    candidates = [
        all_views(len(sizes), together)
        for together in range(2, len(sizes) + 1)
        if together == 2
        or (
            math.comb(len(sizes), together) <= MOST_VIEWS
            and math.prod(largest[:together]) <= LARGEST_VIEW
        )
    ]
    shares = guessed_shares(sizes)
    best, least = candidates[0], math.inf
    for views in candidates:
        error = sum(view_pair_errors(sizes, views, epsilon, 1, shares))
        if error > 2 * least:  # larger views only get worse
            break
        if error < least:
            best, least = views, error
    return best


def mixed_views(sizes: Sequence[int], n: int, epsilon: float) -> dict[tuple[int, ...], int]:
    """Views with integer weights, for about ``n`` respondents and without any data.

    The less the respondents can tell of pairs, the more of them answer one attribute alone; larger
    attributes and pairs are asked rather more often. Where larger views promise more than pairs,
    and are reported as one combination, it is these, all alike. (Sets of combinations of larger
    views promise a little more than pairs do, and give less.)
    """
    larger = best_views(sizes, epsilon)
    mechanisms = [SubsetMechanism.best(math.prod(sizes[a] for a in v), epsilon) for v in larger]
    if len(larger[0]) > 2 and all(mechanism.chosen == 1 for mechanism in mechanisms):
        return dict.fromkeys(larger, 1)
    pairs = all_views(len(sizes), 2)
    errors = view_pair_errors(sizes, pairs, epsilon, max(n, 1), guessed_shares(sizes))
    error = math.fsum(errors) / len(errors)
    alone = next(share for limit, share in SHARES_ALONE if round(error, 9) <= limit)
    units = max(UNITS, 10 * len(pairs))
    singles = [(a,) for a, size in enumerate(sizes) if size > 1] if alone else []
    return _in_units(singles, sizes, alone * units) | _in_units(pairs, sizes, (1 - alone) * units)


def _in_units(
    views: Sequence[tuple[int, ...]], sizes: Sequence[int], units: float
) -> dict[tuple[int, ...], int]:
    """So many units for these views: by the root of the freedom of a single attribute, and the
    fourth root of that of a pair."""
    roots = [math.sqrt(math.prod(sizes[a] - 1 for a in view)) for view in views]
    parts = [math.sqrt(r) if len(v) > 1 else r for r, v in zip(roots, views, strict=True)]
    each = units / max(math.fsum(parts), 1e-9)
    return {view: max(1, round(each * part)) for view, part in zip(views, parts, strict=True)}


def guessed_shares(sizes: Sequence[int]) -> dict[tuple[int, int], Array]:
    """Pair tables as skewed as answers usually are: shares ∝ 1/rank^1.5, and independent.

    With these, predicted and observed errors on Adult agree within a tenth at all budgets.
    """
    pairs = itertools.combinations(range(len(sizes)), 2)
    return {(i, j): guessed_table((sizes[i], sizes[j])) for i, j in pairs}


def guessed_table(sizes: Sequence[int]) -> Array:
    """Such a table of these attributes."""
    table = np.ones(())
    for size in sizes:
        weights = np.arange(1.0, size + 1) ** -1.5
        table = np.multiply.outer(table, weights / weights.sum())
    return table


def view_pair_error(
    sizes: Sequence[int],
    views: Sequence[tuple[int, ...]],
    epsilon: float,
    pair: tuple[int, int],
    n: int,
    shares: Mapping[tuple[int, int], Array],
) -> float:
    """The expected L1 error of one pair's unbiased table, pooled over the views that hold it.

    ``shares`` are the true (or guessed) tables of the respondents; the error is what randomizing
    adds to it. Infinite if no view holds the pair.
    """
    return view_pair_errors(sizes, views, epsilon, n, {pair: shares[pair]})[0]


def view_pair_errors(
    sizes: Sequence[int],
    views: Sequence[tuple[int, ...]],
    epsilon: float,
    n: int,
    shares: Mapping[tuple[int, int], Array],
    drawn: Sequence[int] | None = None,
) -> list[float]:
    """`view_pair_error` of several pairs; ``drawn``: the weights by which views are drawn."""
    often = np.ones(len(views)) if drawn is None else np.array(drawn, dtype=np.float64)
    often /= often.mean()
    weights = dict.fromkeys(shares, 0.0)
    variances = {pair: np.zeros(table.shape) for pair, table in shares.items()}
    for view, times in zip(views, often.tolist(), strict=True):
        mechanism = SubsetMechanism.best(math.prod(sizes[a] for a in view), epsilon)
        for pair in itertools.combinations(view, 2):
            if pair in shares:
                group = mechanism.size / shares[pair].size
                weight = times * _weight(mechanism, group)
                weights[pair] += weight
                variances[pair] += weight**2 * mechanism.variance(shares[pair], group) / times
    errors = []
    for pair, table in shares.items():
        if weights[pair] == 0:
            errors.append(math.inf)
            continue
        variance = variances[pair] / weights[pair] ** 2 * len(views) - table * (1 - table)
        error = np.sqrt(np.maximum(variance, 0) / n).sum()
        errors.append(float(np.sqrt(2 / math.pi) * error))
    return errors


def _weight(mechanism: SubsetMechanism, group: float) -> float:
    """How much one report tells about the share of a group: fixed by the design, not the data."""
    return 1 / float(mechanism.variance(np.array(min(group / mechanism.size, 0.5)), group))


@dataclass(frozen=True)
class ViewReports:
    """Which view each respondent drew, and the reports of each view."""

    drawn: Codes
    reports: dict[tuple[int, ...], Codes]

    @property
    def answered(self) -> dict[tuple[int, ...], int]:
        """How many answered each view."""
        return {view: len(reported) for view, reported in self.reports.items()}


class ViewDesign:
    """Views, one of which each respondent answers with the whole ε.

    ``weights``: how often each view is drawn, in proportion; all alike, if not given.
    """

    def __init__(
        self,
        sizes: Sequence[int],
        views: Sequence[tuple[int, ...]],
        epsilon: float,
        weights: Sequence[int] | None = None,
    ) -> None:
        self.sizes, self.views, self.epsilon = tuple(sizes), list(views), epsilon
        self.weights = (1,) * len(self.views) if weights is None else tuple(weights)
        if len(self.weights) != len(self.views) or min(self.weights, default=1) < 1:
            raise InputError("every view needs a weight, which is a positive integer")
        self._ends = np.cumsum(np.array(self.weights, dtype=np.int64))
        if not self.views or any(tuple(sorted(set(v))) != tuple(v) for v in self.views):
            raise InputError("views are groups of different attributes, in rising order")
        if len(set(self.views)) != len(self.views):
            raise InputError("a view is given twice")
        if any(not 0 <= a < len(self.sizes) for view in self.views for a in view):
            raise InputError(f"a view names an attribute that is not among the {len(self.sizes)}")
        self.mechanisms = {
            view: SubsetMechanism.best(math.prod(self.sizes[a] for a in view), epsilon)
            for view in self.views
        }

    def expected(self, n: int) -> dict[tuple[int, ...], int]:
        """How many of n respondents answer each view, on average; none is answered by half."""
        each = n / sum(self.weights)
        return {
            view: round(each * weight)
            for view, weight in zip(self.views, self.weights, strict=True)
        }

    def randomize(self, records: Codes, rng: Randomness) -> ViewReports:
        """Each respondent draws a view by the weights, whatever the record, and reports it."""
        checked = check_records(records, self.sizes)
        unit = rng.below(int(self._ends[-1]), (len(checked),)).view(np.int64)
        drawn = np.searchsorted(self._ends, unit, side="right")
        reports = {}
        for number, view in enumerate(self.views):
            mine = checked[drawn == number]
            shape = tuple(self.sizes[a] for a in view)
            joint = np.ravel_multi_index(tuple(mine[:, a] for a in view), shape)
            reports[view] = self.mechanisms[view].randomize(joint, rng)
        return ViewReports(drawn, reports)

    def holding(
        self, answered: Mapping[tuple[int, ...], int], attributes: Sequence[int]
    ) -> list[tuple[tuple[int, ...], float]]:
        """The answered views that hold some attributes together, each with its weight.

        The weights add up to 1; each is by what the view's reports tell about the table of these
        attributes, by design.
        """
        cells = math.prod(self.sizes[a] for a in attributes)
        found = [
            (view, answered[view] * _weight(mechanism, mechanism.size / cells))
            for view, mechanism in self.mechanisms.items()
            if set(attributes) <= set(view) and answered[view]
        ]
        total = math.fsum(weight for _, weight in found)
        return [(view, weight / total) for view, weight in found]

    def estimate(self, reports: ViewReports, attributes: tuple[int, ...]) -> Estimate:
        """The unbiased table of some attributes, pooled over all views that hold them."""
        shape = tuple(self.sizes[a] for a in attributes)
        held = self.holding(reports.answered, attributes)
        if not held:
            raise InputError(f"no reported view holds the attributes {attributes} together")
        cells, n = math.prod(shape), 0
        shares, variances = np.zeros(cells), np.zeros(cells)
        for view, weight in held:
            reported = self.cells(view, attributes, reports.reports[view])
            estimate = self.mechanisms[view].estimate(reported, cells)
            shares += weight * estimate.shares
            n += estimate.n
        feasible = np.clip(shares, 0, 1)
        for view, weight in held:
            mechanism, answered = self.mechanisms[view], len(reports.reports[view])
            variances += weight**2 * mechanism.variance(feasible, mechanism.size / cells) / answered
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
            tables[pair], precisions[pair] = model.table(pair), 1e-9
            if self.holding(reports.answered, pair):
                estimate = self.estimate(reports, pair)
                tables[pair] = shrunk(estimate, tables[pair])
                precisions[pair] = 1 / float((estimate.standard_errors**2).sum())
        return make_consistent(tables, precisions)


class FittedViews:
    """What can be estimated from reports of views: the same questions as `designs.Fitted`."""

    def __init__(self, design: ViewDesign, reports: ViewReports) -> None:
        self.design, self.reports = design, reports
        self.n = len(reports.drawn)

    def answers(self) -> list[Answers]:
        """The reports as `mpc_rr.estimation.latent` wants them."""
        return self.design.answers(self.reports)

    def order(self, attributes: Sequence[int]) -> list[int]:
        """The attributes as they are reported: in any order."""
        return list(attributes)

    def told_together(self, attributes: Sequence[int]) -> bool:
        """Whether somebody reported these attributes together."""
        return bool(self.design.holding(self.reports.answered, attributes))

    def unbiased(self, attributes: Sequence[int]) -> Estimate:
        """The table of some attributes that a view holds together, with standard errors."""
        return self.design.estimate(self.reports, tuple(attributes))

    def subset(self, attributes: Sequence[int], subset: Array) -> tuple[float, float]:
        """The share of a set of combinations, and its standard error.

        Each view that holds the attributes tells it by how many of its reported combinations are
        in the set; the views are weighted by their precision.
        """
        cells = np.asarray(subset, dtype=np.float64)
        total = weighted = variance = 0.0
        parts = []
        for view in self.design.views:
            reported = self.reports.reports[view]
            if set(attributes) <= set(view) and len(reported):
                mechanism = self.design.mechanisms[view]
                group = float(cells.sum()) * mechanism.size / cells.size
                held = cells.ravel()[self.design.cells(view, tuple(attributes), reported)]
                seen = float(held.sum(axis=1).mean()) - mechanism.held_by_chance(group)
                weight = len(reported) * _weight(mechanism, mechanism.size / cells.size)
                total += weight
                weighted += weight * seen / (mechanism.hit - mechanism.miss)
                parts.append((weight, len(reported), mechanism, group))
        if not parts:
            raise InputError(
                "no view that was answered holds these attributes together; ask for fewer at once"
            )
        share = weighted / total
        feasible = np.array(min(max(share, 0.0), 1.0))
        for weight, n, mechanism, group in parts:
            variance += (weight / total) ** 2 * float(mechanism.variance(feasible, group)) / n
        return share, math.sqrt(variance)
