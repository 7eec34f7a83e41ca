"""What a randomized file tells, read from it and its codebook alone.

Shares and tables of categories by the estimators that read any study's reports
(`mpc_rr.estimation.designs.Fitted`, `mpc_rr.publication.named.NamedEstimates`); means, covariances
and correlations of numbers and of ordered categories by `mpc_rr.estimation.moments`.
"""

import itertools
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import msgspec
import numpy as np

from mpc_rr.curator.codebook import Codebook, codebook_place, digest_of, read_codebook
from mpc_rr.curator.plan import Codes
from mpc_rr.curator.ways import OfCategories, OfNumbers
from mpc_rr.errors import DataError, InputError, all_quoted
from mpc_rr.estimation.designs import Design, Fitted
from mpc_rr.estimation.distribution import project_to_simplex
from mpc_rr.estimation.estimates import QueryAnswer, uncertainty_of
from mpc_rr.estimation.intervals import Limits
from mpc_rr.estimation.matrix import Array
from mpc_rr.estimation.moments import Moment, Scores, Together, mean, together, variance
from mpc_rr.publication.crosstabs import share_table
from mpc_rr.publication.named import NamedEstimates
from mpc_rr.publication.parts import LEVEL, Table
from mpc_rr.schema import Attribute, Schema
from mpc_rr.study.layout import read_text
from mpc_rr.study.records import read_columns


def scores_of(codebook: Codebook, name: str, values: Codes | Array) -> Scores | None:
    """Of the values of one column; None if they have no order, and so no mean."""
    column = codebook.column(name)
    attribute, way = column.attribute, column.way
    if isinstance(way, OfNumbers):
        return Scores.of_numbers(values.astype(np.float64), way.variance)
    if attribute.type == "nominal":
        return None
    return Scores.of_categories(values.astype(np.int64), way.matrix, ranks_of(attribute))


def ranks_of(attribute: Attribute) -> list[float | None]:
    """The rank of each category, from 0; None of no answer."""
    ranks = iter(range(attribute.size))
    return [None if c == attribute.missing else float(next(ranks)) for c in attribute.categories]


def common_noise(codebook: Codebook, first: str, second: str) -> float:
    """The covariance of the noise that was added to two columns."""
    for group in codebook.groups:
        if first in group.columns and second in group.columns:
            return group.covariance[group.columns.index(first)][group.columns.index(second)]
    return 0.0


@dataclass(frozen=True)
class RandomizedFile:
    """A randomized file with its codebook, and what can be estimated from both."""

    codebook: Codebook
    values: dict[str, Codes | Array]
    """Of each column: category numbers, or numbers."""
    changed: bool
    """Whether the file is not the one that was written with this codebook."""

    @property
    def n(self) -> int:
        """How many records."""
        return len(next(iter(self.values.values())))

    @cached_property
    def categories(self) -> tuple[Attribute, ...]:
        """The attributes that have categories."""
        return tuple(a for a in self.codebook.schema if not a.numeric)

    @cached_property
    def fitted(self) -> Fitted:
        """The reports on all columns of categories."""
        if not self.categories:
            raise InputError("no column of this file has categories")
        ways = [self.codebook.column(a.name).way for a in self.categories]
        matrices = tuple(way.matrix for way in ways if isinstance(way, OfCategories))
        sizes = tuple(a.size for a in self.categories)
        design = Design(sizes, tuple((k,) for k in range(len(sizes))), matrices)
        return Fitted(design, np.stack([self.values[a.name] for a in self.categories], axis=1))

    @cached_property
    def named(self) -> NamedEstimates:
        """All that randomized records tell, by name; needs two columns of categories."""
        if len(self.categories) < 2:
            raise InputError("a table of two, or a condition, needs two columns of categories")
        return NamedEstimates(Schema(self.categories), self.fitted)

    def table(self, *names: str) -> Table:
        """Shares of all combinations of some columns of categories, with errors and limits."""
        for name in names:
            if self.codebook.column(name).attribute.numeric:
                raise InputError(f"column {name!r} has numbers; ask for its mean")
        if len(self.categories) > 1:
            return self.named.table(*names)
        estimate = self.fitted.unbiased((0,))
        limits = Limits.of(estimate.shares, uncertainty_of(self.fitted, (0,)))
        return share_table(self.categories, project_to_simplex(estimate.shares), estimate, limits)

    def query(self, condition: str, level: float = LEVEL) -> QueryAnswer:
        """How many meet a condition (``docs/query.md``) on columns of categories."""
        return self.named.query(condition, level)

    def _scores(self, name: str) -> Scores:
        found = scores_of(
            self.codebook, name, self.values[self.codebook.column(name).attribute.name]
        )
        if found is None:
            raise InputError(f"column {name!r} has categories without an order; ask for its shares")
        return found

    @cached_property
    def ordered(self) -> tuple[str, ...]:
        """The columns that have a mean: numbers, and categories with an order, by their ranks."""
        return tuple(a.name for a in self.codebook.schema if a.type != "nominal")

    def mean(self, name: str) -> Moment:
        """Of the population, among those who answered; of categories, the mean rank from 0."""
        return mean(self._scores(name))

    def variance(self, name: str) -> Moment:
        """The same."""
        return variance(self._scores(name))

    def together(self, first: str, second: str) -> Together:
        """Covariance and correlation of two columns with an order."""
        noise = common_noise(self.codebook, first, second)
        return together(self._scores(first), self._scores(second), noise)

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """All pairs of columns with an order."""
        return list(itertools.combinations(self.ordered, 2))


def read_randomized(file: str | Path, codebook: str | Path | None = None) -> RandomizedFile:
    """A file that `mpc-rr randomize` wrote, with its codebook; `InputError` if they do not fit."""
    place = Path(file)
    book = read_codebook(codebook_place(place) if codebook is None else Path(codebook))
    columns = read_columns(place, [attribute.name for attribute in book.schema])
    values = {a.name: _read(place, a, columns[a.name]) for a in book.schema}
    found = RandomizedFile(book, values, digest_of(read_text(place)) != book.sha256)
    if not found.changed and found.n != book.rows:
        raise InputError(
            f"{place} has {found.n:,} records; its codebook, which is damaged, says {book.rows:,}"
        )
    return found


def _read(place: Path, attribute: Attribute, cells: list[str]) -> Codes | Array:
    if attribute.numeric:
        try:
            found = np.array([float(cell) for cell in cells])
        except ValueError:
            found = np.array([np.nan])
        if not np.isfinite(found).all():
            raise DataError(f"{place}: column {attribute.name!r} has something that is no number")
        return found
    codes = {category: code for code, category in enumerate(attribute.categories)}
    stray = next((cell for cell in cells if cell not in codes), None)
    if stray is not None:
        raise DataError(
            f"{place}: column {attribute.name!r}: {stray!r} is not one of its categories "
            f"({all_quoted(attribute.categories)})"
        )
    return np.array([codes[cell] for cell in cells], dtype=np.int64)


class EstimatesDocument(msgspec.Struct, frozen=True, kw_only=True):
    """What ``mpc-rr estimate --json`` prints."""

    rows: int
    changed: bool
    shares: list[Table]
    tables: list[Table]
    means: dict[str, dict[str, float | None]]
    pairs: list[dict[str, str | float | None]]


def document(found: RandomizedFile, tables: list[Table]) -> EstimatesDocument:
    """All shares, means and pairs of a file, and the tables that were asked for."""
    means = {}
    for name in found.ordered:
        centre, spread = found.mean(name), found.variance(name)
        means[name] = {
            "mean": centre.value, "standard_error": centre.standard_error,
            "variance": spread.value, "standard_error_of_variance": spread.standard_error,
        }  # fmt: skip
    pairs: list[dict[str, str | float | None]] = []
    for first, second in found.pairs:
        both = found.together(first, second)
        pairs.append({
            "first": first, "second": second,
            "covariance": both.covariance.value,
            "standard_error_of_covariance": both.covariance.standard_error,
            "correlation": both.correlation.value,
            "standard_error_of_correlation": both.correlation.standard_error,
        })  # fmt: skip
    return EstimatesDocument(
        rows=found.n,
        changed=found.changed,
        shares=[found.table(a.name) for a in found.categories],
        tables=tables,
        means=means,
        pairs=pairs,
    )
