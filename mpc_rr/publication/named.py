"""Estimates by the names of attributes, as labelled tables.

`mpc_rr.estimation` counts attributes and categories from 0. Here a schema gives them their names:
no index is needed from a data frame to an estimated table.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from mpc_rr.errors import InputError
from mpc_rr.estimation.condition_language import parse_condition
from mpc_rr.estimation.dependence import Dependence, dependence
from mpc_rr.estimation.designs import Fitted, check_records
from mpc_rr.estimation.domain import Domain, listed
from mpc_rr.estimation.estimates import Estimates, QueryAnswer
from mpc_rr.estimation.matrix import Codes, Uniform
from mpc_rr.estimation.raking import Adjustment, adjust
from mpc_rr.estimation.strength import Strength
from mpc_rr.estimation.views import FittedViews
from mpc_rr.publication.crosstabs import axes, flat, share_table, table_name
from mpc_rr.publication.parts import Table
from mpc_rr.schema import Attribute, Schema

Pair = tuple[str, str]


def _picked(schema: Schema, names: Sequence[str]) -> tuple[Attribute, ...]:
    """The attributes of a table; `InputError` if they cannot have one."""
    Domain.of(schema).axes(names)
    for attribute in schema.pick(names):
        if attribute.numeric:
            raise InputError(f"attribute {attribute.name!r} is numeric: it has no categories")
    return schema.pick(names)


def count_table(records: npt.ArrayLike, schema: Schema, *names: str) -> Table:
    """How often each combination of some attributes is among true or reported records."""
    attributes = _picked(schema, names)
    counts = Domain.of(schema).counts(records, names).astype(np.int64)
    return Table(
        name=table_name(attributes),
        axes=axes(attributes),
        kind="count",
        values=flat(counts),
        n=int(counts.sum()),
    )


def dependences_by_name(records: npt.ArrayLike, schema: Schema) -> dict[Pair, Dependence]:
    """How strongly each pair of attributes of true or reported records depends on each other.

    Two attributes with an order get |Pearson r|, others Cramér's V; among those who answered both.
    """
    domain = Domain.of(schema)
    known = {attribute.name: attribute for attribute in _picked(schema, schema.names)}
    found = {}
    for first, second in domain.pairs:
        both = (known[first], known[second])
        answered = np.ix_(*(attribute.answer_codes for attribute in both))
        table = domain.counts(records, (first, second))[answered]
        ordinal = all(attribute.type == "ordinal" for attribute in both)
        found[first, second] = dependence(table, both_ordinal=ordinal)
    return found


class NamedEstimates:
    """What randomized records or views tell, by the attributes' names."""

    def __init__(self, schema: Schema, fitted: Fitted | FittedViews) -> None:
        self.schema, self.domain, self.fitted = schema, Domain.of(schema), fitted
        if tuple(fitted.design.sizes) != schema.sizes:
            raise InputError(
                f"the design has attributes of {fitted.design.sizes} categories, the schema of "
                f"{schema.sizes}"
            )
        self._estimates = Estimates(schema, fitted)

    def table(self, *names: str) -> Table:
        """The shares of all combinations of some attributes.

        The values are counted in the population that all tables come from. The unbiased estimate
        from the reports on these attributes alone is kept beside them, with its standard errors.
        """
        attributes, wanted = _picked(self.schema, names), self.domain.axes(names)
        if isinstance(self.fitted, FittedViews) and not self._are_in_a_view(wanted):
            raise InputError(f"nobody reported {', '.join(names)} together; ask for fewer at once")
        estimate = self.fitted.unbiased(wanted)
        limits = self._estimates.limits(wanted)
        return share_table(attributes, self._estimates.table(wanted), estimate, limits)

    def _are_in_a_view(self, wanted: tuple[int, ...]) -> bool:
        assert isinstance(self.fitted, FittedViews)
        reports = self.fitted.reports.reports
        return any(set(wanted) <= set(view) and len(reports[view]) for view in reports)

    @cached_property
    def pairs(self) -> dict[Pair, Table]:
        """The tables of all pairs that were reported together, by the best estimator.

        Counted in one population. Standard errors are those of the unbiased estimate of each table
        by itself.
        """
        found = {}
        for pair in self._estimates.pairs_told:
            both = (self.schema.attributes[pair[0]], self.schema.attributes[pair[1]])
            shares, estimate = self._estimates.pair_tables[pair], self._estimates.unbiased(*pair)
            table = share_table(both, shares, estimate, self._estimates.limits(pair))
            found[both[0].name, both[1].name] = table
        return found

    def dependences(self) -> dict[Pair, Strength]:
        """How strongly each pair depends on each other, with limits for the population.

        Pearson's r of two attributes with an order, else Cramér's V.
        """
        names = self.domain.names
        found = self._estimates.strengths()
        return {(names[i], names[j]): strength for (i, j), strength in found.items()}

    def query(self, condition: str, level: float = 0.95) -> QueryAnswer:
        """How many meet a condition such as ``sex = Female and age < 30``, with an interval.

        ``docs/query.md`` has the grammar. Counted where `table` and `pairs` are, in limits that
        follow from the reports on these attributes alone.
        """
        return self._estimates.query(parse_condition(condition, self.schema), level)


@dataclass(frozen=True)
class NamedAdjustment:
    """Records that were weighed until they had the wished margins."""

    schema: Schema
    adjustment: Adjustment
    n: int
    """How many records were weighed."""

    @property
    def trouble(self) -> str | None:
        """In words, what was wished and the adjusted records do not give; None if they do."""
        return self.adjustment.trouble

    def table(self, *names: str) -> Table:
        """The adjusted shares of all combinations of some attributes."""
        attributes = _picked(self.schema, names)
        shares = self.adjustment.table(Domain.of(self.schema).axes(names), self.schema.sizes)
        return Table(
            name=table_name(attributes),
            axes=axes(attributes),
            kind="share",
            values=flat(shares),
            n=self.n,
            speaks_of="population",
        )

    def synthesize(self, rows: int, uniform: Uniform) -> Codes:
        """Synthetic records: adjusted records, drawn by their weights."""
        return self.adjustment.synthesize(rows, uniform)


def adjust_by_name(
    records: npt.ArrayLike,
    margins: Mapping[str | tuple[str, ...], npt.ArrayLike | Table],
    schema: Schema,
) -> NamedAdjustment:
    """RR-Adjustment (`mpc_rr.estimation.raking.adjust`) with margins by name, also as tables."""
    wished = {
        names: _shares(margin, listed(names)) if isinstance(margin, Table) else margin
        for names, margin in margins.items()
    }
    domain, checked = Domain.of(schema), check_records(records, schema.sizes)
    found = adjust(checked, domain.margins(wished), domain.sizes)
    return NamedAdjustment(schema, found, len(checked))


def _shares(table: Table, names: tuple[str, ...]) -> npt.ArrayLike:
    if tuple(axis.attribute for axis in table.axes) != names:
        raise InputError(f"table {table.name!r} is not the margin of {', '.join(names)}")
    if any(value is None for value in table.values):
        raise InputError(f"table {table.name!r} has hidden cells; records cannot be adjusted to it")
    return np.array(table.values, dtype=np.float64).reshape(table.shape)
