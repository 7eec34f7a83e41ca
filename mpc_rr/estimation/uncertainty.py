"""How far an estimated table may be from the true one, for every way of answering.

A class for each: counts as they are, counts with noise in them, randomized reports, reports of
views, answers by blocks. Each knows the table cell by cell (flat, K cells) and tells

* `covariance`: of the unbiased estimate around the shares of the population,
* `cumulants`: variance and third cumulant of the estimated share of any set of cells, as functions
  of its true share q,
* `step`: half of the smallest difference that one answer makes to such a share,
* `excess`: what its not being Gaussian adds to the variance of a quadratic form.

Two targets: the *population* from which the respondents were drawn, or these *respondents*
themselves, for whom only the randomization is uncertain. `intervals` and `strength` are built on
this; ``docs/estimation.md`` derives it.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln

from mpc_rr.estimation.blocks import Answered
from mpc_rr.estimation.distribution import Randomization
from mpc_rr.estimation.matrix import Array, KeepOrUniform
from mpc_rr.estimation.views import SubsetMechanism

TINY_REST = 1e-12
"""If all other cells have less together, all of them count alike."""
Target = Literal["population", "respondents"]
Subsets = npt.NDArray[np.bool_]
"""Sets of cells, one a row."""
Cumulants = Callable[[Array], tuple[Array, Array]]
"""From true shares of some sets to variance and third cumulant of their estimates."""


def sampling_covariance(shares: Array, n: float) -> Array:
    """Of the shares of n people who are drawn from a population."""
    return np.asarray((np.diag(shares) - np.outer(shares, shares)) / n)


def sampling_of_sums(forms: Array, shares: Array, n: float) -> Array:
    """The same, of sums over the cells: a row of numbers for each."""
    means = forms @ shares
    return np.asarray(((forms * shares) @ forms.T - np.outer(means, means)) / n)


class Spread(ABC):
    """How the unbiased estimate of a whole table spreads around the truth."""

    n: float
    """Respondents of the study; of those who answered, a share of them."""

    @property
    def by_blocks(self) -> bool:
        """Whether answers depend on tables that were shown: rare cells of those are rarely told."""
        return False

    @property
    def tests_by_less(self) -> bool:
        """Whether fewer answers are enough for a test of independence than for limits."""
        return False

    @property
    def reports(self) -> float:
        """How many respondents' worth of answers are about this table."""
        return float(self.n)

    @abstractmethod
    def covariance(self, shares: Array) -> Array:
        """Of the unbiased estimate, sampling included, if these are the true shares."""

    @abstractmethod
    def excess(self, shares: Array, merged: Array, form: Array) -> float:
        """What is not Gaussian in ``merged @ estimate`` adds to the variance of its quadratic form.

        ``merged`` sums cells (k × K), ``form`` is the matrix of the form (k × k).
        """


class OfSets(ABC):
    """Of the estimated shares of sets of cells: all that their limits need."""

    @abstractmethod
    def cumulants(self, subsets: Subsets, fit: Array, of: Target) -> Cumulants:
        """Of the estimated shares of sets of cells; ``fit`` is a proper table near the truth."""

    @abstractmethod
    def step(self, subsets: Subsets) -> Array:
        """Half of the smallest step in which an estimated share can change."""

    def kurtosis(self, subsets: Subsets, variance: Array) -> Array:
        """The excess of the estimated shares, where it is known not to vanish."""
        return np.zeros(len(subsets)) + 0 * variance

    @property
    def each_cell(self) -> "OfSets | None":
        """The same for all single cells, in order, where that needs no table of all by all."""
        return None


class Uncertainty(Spread, OfSets):
    """Of the estimate of one table, and of the shares of any sets of its cells."""

    def of_sums(self, forms: Array, shares: Array, of: Target) -> Array:
        """The covariance of sums of the estimate, each cell times a number (a row for each sum).

        ``shares``: the table itself. With the unbiased one, which may be negative, this is
        unbiased, too.
        """
        spread = forms @ self.covariance(shares) @ forms.T
        return spread - sampling_of_sums(forms, shares, self.n) if of == "respondents" else spread

    def third_of_sums(self, forms: Array, shares: Array, of: Target) -> Array | None:  # noqa: ARG002
        """Third cumulant of each sum, where it is known."""
        return None


@dataclass(frozen=True)
class ExactCounts(Uncertainty):
    """Nothing is randomized: only who happened to answer is uncertain."""

    n: float

    def covariance(self, shares: Array) -> Array:
        """Of shares among n people."""
        return sampling_covariance(shares, self.n)

    def cumulants(self, subsets: Subsets, fit: Array, of: Target) -> Cumulants:  # noqa: ARG002
        """Of a binomial share; none for the respondents themselves."""
        n = self.n if of == "population" else math.inf
        return lambda q: (q * (1 - q) / n, q * (1 - q) * (1 - 2 * q) / n**2)

    def of_sums(self, forms: Array, shares: Array, of: Target) -> Array:
        """None of the respondents' own."""
        if of == "respondents":
            return np.zeros((len(forms), len(forms)))
        return sampling_of_sums(forms, shares, max(self.n - 1, 1))

    def third_of_sums(self, forms: Array, shares: Array, of: Target) -> Array | None:
        """Of means of as many."""
        if of == "respondents":
            return np.zeros(len(forms))
        centred = forms - (forms @ shares)[:, np.newaxis]
        return np.asarray(centred**3 @ shares / self.n**2)

    def step(self, subsets: Subsets) -> Array:
        """Half a person."""
        return np.full(len(subsets), 0.5 / self.n)

    def excess(self, shares: Array, merged: Array, form: Array) -> float:
        """Few people in a cell."""
        return float((merged @ shares * np.diag(form) ** 2).sum() / self.n**3)


@dataclass(frozen=True)
class NoisyCounts(Uncertainty):
    """Each count has noise of the same variance; their sum, n, is known and has been put right."""

    n: float
    variance: float
    """Of the noise in a count."""
    tails: float = 3.0
    """The noise's own excess: that of Laplace's distribution."""

    def covariance(self, shares: Array) -> Array:
        """Sampling, and noise that adds up to nothing."""
        noise = np.eye(shares.size) - 1 / shares.size
        return sampling_covariance(shares, self.n) + self.variance / self.n**2 * noise

    def cumulants(self, subsets: Subsets, fit: Array, of: Target) -> Cumulants:
        """The noise's, and those of a binomial share."""
        cells = subsets.sum(axis=1)
        noise = self.variance * (cells - cells**2 / subsets.shape[1]) / self.n**2
        exact = ExactCounts(self.n).cumulants(subsets, fit, of)

        def found(q: Array) -> tuple[Array, Array]:
            variance, third = exact(q)
            return noise + variance, third

        return found

    def step(self, subsets: Subsets) -> Array:
        """None: noise fills the steps."""
        return np.zeros(len(subsets))

    def kurtosis(self, subsets: Subsets, variance: Array) -> Array:
        """Noise has longer tails than a normal distribution."""
        noise = self.tails * self.variance**2 * subsets.sum(axis=1) / self.n**4
        return np.asarray(
            np.divide(noise, variance**2, out=np.zeros_like(variance), where=variance > 0)
        )

    def excess(self, shares: Array, merged: Array, form: Array) -> float:
        """Few people in a cell, and the tails of the noise."""
        squares = np.diag(form) ** 2
        noise = self.tails * self.variance**2 / self.n**4 * merged.sum(axis=1) * squares
        return ExactCounts(self.n).excess(shares, merged, form) + float(noise.sum())


@dataclass(frozen=True)
class RandomizedReports(Uncertainty):
    """Each respondent reported one cell, drawn by a matrix."""

    n: float
    matrix: Randomization

    def _along(self, work: Callable[[Array], Array], tables: Array) -> Array:
        """Apply to each of several flat tables."""
        shape = tuple(self.matrix.shape)
        return np.stack([np.asarray(work(t.reshape(shape).copy())).ravel() for t in tables])

    @cached_property
    def _undone(self) -> Array:
        """A = (Pᵀ)⁻¹: what each report adds to the estimate, a column each."""
        return self._along(self.matrix.solve, np.eye(math.prod(self.matrix.shape))).T

    def covariance(self, shares: Array) -> Array:
        """(A·diag(Pᵀπ)·Aᵀ − ππᵀ)/n."""
        undone = self._undone
        reported = self.matrix.apply(shares.reshape(self.matrix.shape)).ravel()
        return np.asarray(((undone * reported) @ undone.T - np.outer(shares, shares)) / self.n)

    def cumulants(self, subsets: Subsets, fit: Array, of: Target) -> Cumulants:
        """Of the mean of z = Aᵀ1, given whether the true cell is in the set."""
        scores = self._along(self.matrix.solve_transposed, subsets.astype(np.float64))
        moments = [self._along(self.matrix.apply_transposed, scores**k) for k in (2, 3)]
        inside = [_mean_within(subsets, fit, moment) for moment in moments]
        outside = [_mean_within(~subsets, fit, moment) for moment in moments]
        return _of_reports(self.n, inside, outside, of)

    @property
    def each_cell(self) -> OfSets | None:
        """Where values are kept or uniform, one by one."""
        matrices = getattr(self.matrix, "matrices", (self.matrix,))
        kept = tuple(matrix for matrix in matrices if isinstance(matrix, KeepOrUniform))
        return EachCellReported(self.n, kept) if len(kept) == len(matrices) else None

    def of_sums(self, forms: Array, shares: Array, of: Target) -> Array:
        """Of means of z = P⁻¹·form over the reports; no table of all cells by all is made."""
        scores = self._along(self.matrix.solve_transposed, forms)
        squares = (scores * self._reported(shares)) @ scores.T
        if of == "respondents":
            return np.asarray((squares - (forms * shares) @ forms.T) / self.n)
        means = forms @ shares
        return np.asarray((squares - np.outer(means, means)) / max(self.n - 1, 1))

    def third_of_sums(self, forms: Array, shares: Array, of: Target) -> Array | None:
        """Of means of z over the reports."""
        scores = self._along(self.matrix.solve_transposed, forms)
        if of == "population":
            centred = scores - (forms @ shares)[:, np.newaxis]
            return np.asarray(centred**3 @ self._reported(shares) / self.n**2)
        squares, cubes = (self._along(self.matrix.apply_transposed, scores**k) for k in (2, 3))
        within = cubes - 3 * forms * squares + 2 * forms**3
        return np.asarray(within @ shares / self.n**2)

    def _reported(self, shares: Array) -> Array:
        return self.matrix.apply(shares.reshape(self.matrix.shape)).ravel()

    def step(self, subsets: Subsets) -> Array:
        """Half of what one report can change."""
        scores = self._along(self.matrix.solve_transposed, subsets.astype(np.float64))
        return np.asarray((scores.max(axis=1) - scores.min(axis=1)) / 2 / self.n)

    def excess(self, shares: Array, merged: Array, form: Array) -> float:
        """Few reports of a cell."""
        added = merged @ self._undone
        reported = self.matrix.apply(shares.reshape(self.matrix.shape)).ravel()
        return float((reported * _form_of_columns(added, form) ** 2).sum() / self.n**3)


def _of_reports(n: float, inside: list[Array], outside: list[Array], of: Target) -> Cumulants:
    """From the second and third moments of what a report adds, its truth inside and outside."""

    def of_population(q: Array) -> tuple[Array, Array]:
        second, third = (q * a + (1 - q) * b for a, b in zip(inside, outside, strict=True))
        return (second - q * q) / n, (third - 3 * q * second + 2 * q**3) / n**2

    def of_respondents(q: Array) -> tuple[Array, Array]:
        (a2, a3), (b2, b3) = inside, outside
        third = q * (a3 - 3 * a2 + 2) + (1 - q) * b3
        return (q * (a2 - 1) + (1 - q) * b2) / n, third / n**2

    return of_population if of == "population" else of_respondents


@dataclass(frozen=True)
class EachCellReported(OfSets):
    """`RandomizedReports` of every single cell: each inverse has two different entries only.

    Then so has, of each attribute, the matrix of a power's mean by the true value.
    """

    n: float
    matrices: tuple[KeepOrUniform, ...]

    def cumulants(self, subsets: Subsets, fit: Array, of: Target) -> Cumulants:  # noqa: ARG002
        """Of all cells; ``subsets`` are not looked at."""
        rest = 1 - fit
        inside, outside = [], []
        for power in (2, 3):
            told = fit.reshape([matrix.size for matrix in self.matrices])
            own, everywhere = 1.0, 1.0
            for axis, matrix in enumerate(self.matrices):
                same, other = _mean_powers(matrix, power)
                told = (same - other) * told + other * told.sum(axis=axis, keepdims=True)
                own, everywhere = own * same, everywhere * (same + (matrix.size - 1) * other)
            equal = (everywhere - own) / max(fit.size - 1, 1)
            among = (told.ravel() - fit * own) / np.where(rest > TINY_REST, rest, 1.0)
            inside.append(np.full(fit.size, own))
            outside.append(np.where(rest > TINY_REST, among, equal))
        return _of_reports(self.n, inside, outside, of)

    def step(self, subsets: Subsets) -> Array:
        """Half of what one report can change."""
        most, least = 1.0, 1.0
        for matrix in self.matrices:
            products = [end * entry for end in (most, least) for entry in _inverse(matrix)]
            most, least = max(products), min(products)
        return np.full(len(subsets), (most - least) / 2 / self.n)


def _inverse(matrix: KeepOrUniform) -> tuple[float, float]:
    """The entries of an inverse: on the diagonal, and elsewhere."""
    return (1 - matrix.spread) / matrix.keep, -matrix.spread / matrix.keep


def _mean_powers(matrix: KeepOrUniform, power: int) -> tuple[float, float]:
    """The mean power of a report's entry for a value, if that is the true one, and if not."""
    own, other = (entry**power for entry in _inverse(matrix))
    others = matrix.spread * (matrix.size - 2) * other
    same = (matrix.keep + matrix.spread) * own + others + matrix.spread * other
    return same, matrix.spread * own + (matrix.keep + matrix.spread) * other + others


@dataclass(frozen=True)
class WeightedReports(RandomizedReports):
    """The same where each respondent stands for so many people: ratio estimates by weights.

    ``n`` is how many respondents there are; respondents are taken as drawn independently.
    """

    weights: Array
    """How much the respondents who reported each cell weigh together; flat."""
    squares: Array
    """The squares of their weights, together."""

    @property
    def total(self) -> float:
        """All weights together."""
        return float(self.weights.sum())

    @property
    def effective(self) -> float:
        """With how many respondents of equal weight sampling would be as uncertain (Kish)."""
        return self.total**2 / float(self.squares.sum())

    def of_sums(self, forms: Array, shares: Array, of: Target) -> Array:
        """Linearized: Σ w²(z − mean)² over (Σ w)²."""
        scores = self._along(self.matrix.solve_transposed, forms)
        if of == "respondents":
            spread = (scores * self.squares) @ scores.T - self._of_truth(forms)
        else:
            centred = scores - (forms @ shares)[:, np.newaxis]
            spread = (centred * self.squares) @ centred.T * (self.n / max(self.n - 1, 1))
        return np.asarray(spread / self.total**2)

    def _of_truth(self, forms: Array) -> Array:
        """Σ w²·form² of the true cells, as the reports tell it."""
        table = self.squares.reshape(self.matrix.shape).copy()
        return np.asarray((forms * self.matrix.solve(table).ravel()) @ forms.T)

    def third_of_sums(self, forms: Array, shares: Array, of: Target) -> Array | None:  # noqa: ARG002
        """Not known."""
        return None


@dataclass(frozen=True)
class PartOfReports:
    """The reports of one view on a table: each holds some of the view's values."""

    weight: float
    """In the pooled estimate; all parts' add up to 1."""
    n: int
    mechanism: SubsetMechanism
    group: int
    """How many values of the view are one cell of the table."""

    @property
    def contrast(self) -> float:
        """What the truth adds to the probability of being reported."""
        return self.mechanism.hit - self.mechanism.miss

    @property
    def pairs(self) -> tuple[float, float]:
        """How probably a report holds the truth and a given other value; two given others."""
        size, chosen, hit = self.mechanism.size, self.mechanism.chosen, self.mechanism.hit
        with_truth = hit * (chosen - 1) / (size - 1)
        held = hit * (chosen - 1) * (chosen - 2) + (1 - hit) * chosen * (chosen - 1)
        return with_truth, held / ((size - 1) * max(size - 2, 1))

    def moments(self, values: int) -> tuple[Array, Array]:
        """Mean powers 0 to 3 of a report's estimate of a set, its truth inside and outside."""
        mechanism, found = self.mechanism, []
        for own in (1, 0):
            powers = np.zeros(4)
            for held, chance in ((1, mechanism.hit), (0, 1 - mechanism.hit)):
                drawn = mechanism.chosen - held
                k = np.arange(max(min(drawn, values - own), 0) + 1.0)
                chances = _hypergeometric(k, mechanism.size - 1, max(values - own, 0), drawn)
                scores = (k + own * held - values * mechanism.miss) / self.contrast
                powers += chance * np.array([(chances * scores**j).sum() for j in range(4)])
            found.append(powers)
        return found[0], found[1]


@dataclass(frozen=True)
class ViewReports(Uncertainty):
    """Respondents reported sets of values, in one view or in several that hold this table."""

    n: float
    parts: tuple[PartOfReports, ...]

    @property
    def reports(self) -> float:
        """1/Σ(w²/n) over the views."""
        return 1 / sum(part.weight**2 / part.n for part in self.parts)

    def covariance(self, shares: Array) -> Array:
        """Of how many values of each cell a report holds, undone."""
        total = np.zeros((shares.size, shares.size))
        for part in self.parts:
            group, (with_truth, others) = part.group, part.pairs
            expected = group * part.mechanism.miss + part.contrast * shares
            apart = np.add.outer(shares, shares) * group * (with_truth - others) + group**2 * others
            alone = (
                expected
                + group * (group - 1) * others
                + 2 * (group - 1) * (with_truth - others) * shares
            )
            np.fill_diagonal(apart, alone)
            spread = apart - np.outer(expected, expected)
            total += part.weight**2 * spread / (part.contrast**2 * part.n)
        return total

    def cumulants(self, subsets: Subsets, fit: Array, of: Target) -> Cumulants:  # noqa: ARG002
        """By the hypergeometric moments of how many values of the set a report holds."""
        sizes = subsets.sum(axis=1)
        by_part = []
        for part in self.parts:
            known = {int(s): part.moments(int(s) * part.group) for s in np.unique(sizes)}
            moments = np.array([known[int(s)] for s in sizes])
            (a2, a3), (b2, b3) = moments[:, 0, 2:].T, moments[:, 1, 2:].T
            inside, outside = (a2 - 1, a3 - 3 * a2 + 2), (b2, b3)
            by_part.append(_Answers(part.n, part.weight / part.n, inside, outside))
        return _of_estimates(by_part, self.n if of == "respondents" else None)

    def step(self, subsets: Subsets) -> Array:
        """Half of what one reported value can change, in the view where that is most."""
        most = max(part.weight / (part.contrast * part.n) for part in self.parts)
        return np.full(len(subsets), most / 2)

    def excess(self, shares: Array, merged: Array, form: Array) -> float:
        """Few reports of a cell; those of one report are hardly dependent."""
        total = 0.0
        for part in self.parts:
            expected = merged @ (part.group * part.mechanism.miss + part.contrast * shares)
            squares = (expected * np.diag(form) ** 2).sum()
            total += part.weight**4 * float(squares) / part.n**3 / part.contrast**4
        return total


@dataclass(frozen=True)
class BlockAnswers(Uncertainty):
    """Respondents told the truth or drew from the table their block was shown."""

    n: float
    answered: Answered
    earlier: bool = False
    """Limits and tests need as many answers, as up to rules 3."""

    @property
    def by_blocks(self) -> bool:
        """They do."""
        return True

    @property
    def tests_by_less(self) -> bool:
        """They are."""
        return not self.earlier

    @property
    def reports(self) -> float:
        """How many answered about this table."""
        return float(self.answered.n)

    @property
    def _blocks(self) -> Array:
        return np.asarray(self.answered.counts.sum(axis=1), dtype=np.float64)

    def covariance(self, shares: Array) -> Array:
        """Σ n_b (diag λ_b − λ_bλ_bᵀ)/(np)², λ_b = pπ + (1−p)T_b."""
        p, blocks = self.answered.p, self._blocks
        told = p * shares + (1 - p) * self.answered.tables
        spread = np.diag(blocks @ told) - (told * blocks[:, np.newaxis]).T @ told
        return np.asarray(spread / (blocks.sum() * p) ** 2)

    def cumulants(self, subsets: Subsets, fit: Array, of: Target) -> Cumulants:  # noqa: ARG002
        """Those of Bernoulli variables, on average over the blocks: all answers weigh the same."""
        p, reports, shares = self.answered.p, self.reports, self._blocks / self.reports
        others = (1 - p) * self.answered.tables @ subsets.T.astype(np.float64)
        (a2, a3), (b2, b3) = (_bernoulli(chance, p) for chance in (p + others, others))
        inside, outside = (shares @ a2, shares @ a3), (shares @ b2, shares @ b3)
        answers = _Answers(reports, 1 / reports, inside, outside)
        return _of_estimates([answers], self.n if of == "respondents" else None)

    def step(self, subsets: Subsets) -> Array:
        """Half of what one answer can change."""
        return np.full(len(subsets), 0.5 / (self.answered.p * self.reports))

    def excess(self, shares: Array, merged: Array, form: Array) -> float:
        """Few answers in a cell."""
        p, blocks = self.answered.p, self._blocks
        told = blocks @ (p * shares + (1 - p) * self.answered.tables) / blocks.sum()
        squares = merged @ told * np.diag(form) ** 2
        return float(squares.sum() / p**4 / self.reports**3)


@dataclass(frozen=True)
class Answering(Spread):
    """The same table among those alone whose answers are in some of its cells.

    What is estimated is then π'/Σπ' over these cells; its errors are those of the cells, less what
    only moves their sum.
    """

    whole: Spread
    cells: npt.NDArray[np.intp]
    estimate: Array
    """Of the whole table, proper and flat: how the other cells are shared out."""

    @property
    def share(self) -> float:
        """Of those who answered."""
        return float(self.estimate[self.cells].sum())

    @property
    def n(self) -> float:  # type: ignore[override]
        """How many answered, as estimated."""
        return self.whole.n * self.share

    @property
    def by_blocks(self) -> bool:
        """As in the whole table; not up to rules 3."""
        return self.whole.by_blocks and self.tests_by_less

    @property
    def tests_by_less(self) -> bool:
        """As in the whole table."""
        return self.whole.tests_by_less

    @property
    def reports(self) -> float:
        """The same share of what is about the whole table."""
        return self.whole.reports * self.share

    def _embedded(self, shares: Array) -> Array:
        full = self.estimate.copy()
        full[self.cells] = shares * self.share
        return full

    def covariance(self, shares: Array) -> Array:
        """Of the shares among those who answered."""
        inside = self.whole.covariance(self._embedded(shares))[np.ix_(self.cells, self.cells)]
        moved = np.eye(shares.size) - np.outer(shares, np.ones(shares.size))
        return np.asarray(moved @ inside @ moved.T / self.share**2)

    def excess(self, shares: Array, merged: Array, form: Array) -> float:
        """That of the cells, as large as they are here."""
        wide = np.zeros((merged.shape[0], self.estimate.size))
        wide[:, self.cells] = merged
        return self.whole.excess(self._embedded(shares), wide, form / self.share**2)


@dataclass(frozen=True)
class _Answers:
    """Answers of some respondents, each of which estimates the share of every set without bias."""

    n: float
    weight: float
    """Of one answer in the estimate."""
    inside: tuple[Array, Array]
    """Variance and third cumulant of an answer of somebody who is in the set."""
    outside: tuple[Array, Array]


def _of_estimates(answers: Sequence[_Answers], everybody: float | None) -> Cumulants:
    """Of a weighted sum of answers around the share of the population, or around everybody's.

    One answer of weight w is of somebody in the set or not: 1 or 0 on average, each with a spread
    of its own. Of ``everybody``, n respondents, the true share is taken off, 1/n for each who is in
    the set, whether or not she was asked; what is left of who happened to answer is w − 1/n.
    """
    part = 0.0 if everybody is None else 1 / everybody
    silent = 0.0 if everybody is None else everybody - sum(some.n for some in answers)
    rests = [(some.n, some.weight - part) for some in answers]
    who2 = silent * part**2 + sum(n * rest**2 for n, rest in rests)
    who3 = -silent * part**3 + sum(n * rest**3 for n, rest in rests)
    zero = np.zeros(1)
    a2, a3, b2, b3, both = zero, zero, zero, zero, zero
    for some in answers:
        w2, w3 = some.n * some.weight**2, some.n * some.weight**3
        a2, a3 = a2 + w2 * some.inside[0], a3 + w3 * some.inside[1]
        b2, b3 = b2 + w2 * some.outside[0], b3 + w3 * some.outside[1]
        both = both + 3 * (some.weight - part) * w2 * (some.inside[0] - some.outside[0])

    def found(q: Array) -> tuple[Array, Array]:
        mixed = q * (1 - q)
        variance = q * a2 + (1 - q) * b2 + who2 * mixed
        third = q * a3 + (1 - q) * b3 + mixed * both + who3 * mixed * (1 - 2 * q)
        return variance, third

    return found


def _bernoulli(chance: Array, p: float) -> tuple[Array, Array]:
    """Variance and third cumulant of an answer that is in the set so probably, over p."""
    variance = chance * (1 - chance)
    return variance / p**2, variance * (1 - 2 * chance) / p**3


def _mean_within(subsets: Subsets, fit: Array, values: Array) -> Array:
    """The mean over the cells of each set, by their shares; by number where those vanish."""
    weights = np.where(subsets, fit, 0.0)
    totals = weights.sum(axis=1)
    equal = subsets / np.maximum(subsets.sum(axis=1), 1)[:, np.newaxis]
    shared = np.divide(
        weights, totals[:, np.newaxis], out=equal, where=(totals > 1e-12)[:, np.newaxis]
    )
    return np.asarray((shared * values).sum(axis=1))


def _form_of_columns(columns: Array, form: Array) -> Array:
    """zᵀMz for each column z."""
    return np.asarray((columns * (form @ columns)).sum(axis=0))


def _hypergeometric(k: Array, population: int, good: int, drawn: int) -> Array:
    """How probably so many of the drawn are good."""

    def ways(of: int, some: Array) -> Array:
        possible = (some >= 0) & (some <= of)
        some = np.where(possible, some, 0.0)
        found = gammaln(of + 1) - gammaln(some + 1) - gammaln(of - some + 1)
        return np.where(possible, found, -np.inf)

    logarithm = (
        ways(good, k) + ways(population - good, drawn - k) - ways(population, np.array(drawn))
    )
    return np.asarray(np.exp(logarithm))
