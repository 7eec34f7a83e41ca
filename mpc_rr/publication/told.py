"""What a publication tells, asked by conditions and computed on: one seam for both.

``mpc-rr query`` and ``mpc-rr compute`` ask the same `Told`, of a result folder or of an ending that
is just being published, so that they give the same numbers.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mpc_rr.errors import InputError, listing, quoted
from mpc_rr.estimation.condition_language import in_words
from mpc_rr.estimation.conditions import Cells, Condition, Truths
from mpc_rr.estimation.designs import Fitted
from mpc_rr.estimation.estimates import Asked, Estimates, QueryAnswer, uncertainty_of
from mpc_rr.estimation.joint import MOST_SUMMED, Joint
from mpc_rr.estimation.matrix import Array
from mpc_rr.estimation.suppression import HIDDEN
from mpc_rr.estimation.uncertainty import NoisyCounts, Uncertainty, WeightedReports
from mpc_rr.estimation.views import FittedViews
from mpc_rr.publication.answers import Answer, from_counts, from_reports, from_shares, pair_counts
from mpc_rr.publication.bounding import EstimateOf, bounded_counts, bounded_shares
from mpc_rr.publication.counts import EXCESS
from mpc_rr.publication.crosstabs import DEPENDENCE, MEASURES
from mpc_rr.publication.ending import Ending
from mpc_rr.publication.parts import Cell, Listing, Publication, Table
from mpc_rr.schema import Schema


def tails_of(published: Publication) -> float:
    """The excess of the noise in counts."""
    said = published.quantity(EXCESS)
    return NoisyCounts.tails if said is None else float(str(said.value))


@dataclass(frozen=True, kw_only=True)
class Told:
    """Tables, and what they were made of."""

    schema: Schema
    tables: Sequence[Table]
    n: int | None
    estimates: Estimates | None
    """From randomized reports, where these are published."""
    estimate_of: EstimateOf
    """Of an ending: what a table was made of."""
    counts_pairs: bool
    """Whether the tables are counts of all pairs."""
    tails: float = NoisyCounts.tails
    dependences: Listing | None = None
    """How strongly pairs depend on each other, as it is published."""
    weights: Array | None = None
    """How many people each respondent stands for, in the order of the reports."""

    @classmethod
    def of(cls, ending: Ending, made: Publication, schema: Schema, n: int | None) -> "Told":
        """Of what is just being published."""
        return cls(
            schema=schema,
            tables=made.tables,
            n=n,
            estimates=ending.from_reports(),
            estimate_of=ending.estimate_of,
            counts_pairs=ending.counts_pairs,
            tails=tails_of(made),
            dependences=made.listing(DEPENDENCE),
        )

    # ── Conditions ─────────────────────────────────────────────────────────────────────────────

    def answer(self, condition: Condition, cells: Cells, level: float) -> Answer | None:
        """How many meet a condition; None if no table tells."""
        words, tables, n = in_words(condition, self.schema), self.tables, self.n
        if self.counts_pairs and tables and n:
            question = (words, tables, cells, self.schema, n, level, self.tails)
            return from_counts(*question) or bounded_counts(*question)
        estimates = self.estimates
        if estimates is None:
            return self._of_shares(words, cells, level)

        def limits(_table: Table, _wanted: Truths) -> QueryAnswer:
            return estimates.query(condition, level)

        found = from_shares(words, tables, cells, self.schema, estimates.n, level, limits)
        if found is not None:
            return found
        if not estimates.fitted.told_together(cells.attributes):
            return bounded_shares(
                words, tables, cells, self.schema, estimates.n, level, _made_of(estimates)
            )
        asked = estimates.query(condition, level)
        return from_reports(
            words, asked, estimates.n, len(cells.attributes), level, earlier=estimates.earlier
        )

    def _of_shares(self, words: str, cells: Cells, level: float) -> Answer | None:
        """From tables of an ending that can be worked out again, with what it was made of."""
        tables, schema, n = self.tables, self.schema, self.n

        def limits(table: Table, wanted: Truths) -> QueryAnswer | None:
            """From what the table was made of, which follows from the transcript."""
            made_of = self.estimate_of(self._attributes(table))
            return None if made_of is None else Asked.of(*made_of, wanted).answer(level)

        found = from_shares(words, tables, cells, schema, n, level, limits)
        if found is not None or not n or all(table.kind == "count" for table in tables):
            return found
        return bounded_shares(words, tables, cells, schema, n, level, self.estimate_of)

    def _attributes(self, table: Table) -> tuple[int, ...]:
        return tuple(self.schema.names.index(axis.attribute) for axis in table.axes)

    # ── Statistics ─────────────────────────────────────────────────────────────────────────────

    def joint(self, attributes: tuple[int, ...]) -> Joint:
        """The unbiased table of these attributes, or of a few more; `InputError` if there is none.

        ``attributes`` in rising order.
        """
        size = math.prod(self.schema.sizes[a] for a in attributes)
        if size > MOST_SUMMED:
            raise InputError(
                f"{self._named(attributes)} have {size:,} combinations of answers together; "
                f"{MOST_SUMMED:,} can be worked with: name fewer attributes"
            )
        found = self._of_ending(attributes) if self.estimates is None else self._of_reports(
            self.estimates, attributes
        )  # fmt: skip
        if found is None:
            raise InputError(self._refusal(attributes))
        return found

    def _of_reports(self, estimates: Estimates, attributes: tuple[int, ...]) -> Joint | None:
        if not estimates.fitted.told_together(attributes):
            return None
        order = tuple(estimates.fitted.order(attributes))
        if self.weights is not None:
            return self._weighted(estimates.fitted, order, self.weights)
        return Joint(order, estimates.unbiased(*order).shares, estimates.uncertainty(order))

    def _weighted(
        self, fitted: Fitted | FittedViews, order: tuple[int, ...], weights: Array
    ) -> Joint:
        """Each report by its respondent's weight."""
        if not isinstance(fitted, Fitted):
            raise InputError(
                "weights need reports on all attributes by everyone; here each respondent "
                "reported some of them only"
            )
        matrix = fitted.randomization(order)
        sizes = tuple(self.schema.sizes[a] for a in order)
        cells = np.ravel_multi_index(tuple(fitted.reported[:, a] for a in order), sizes)
        both = [
            np.bincount(cells, weights=own, minlength=math.prod(sizes)).astype(np.float64)
            for own in (weights, weights**2)
        ]
        spread = WeightedReports(fitted.n, matrix, both[0], both[1])
        shares = matrix.solve((both[0] / both[0].sum()).reshape(matrix.shape))
        return Joint(order, shares.reshape(sizes), spread)

    def _of_ending(self, attributes: tuple[int, ...]) -> Joint | None:
        for own in self._held(attributes):
            found = self._made(own)
            if found is not None:
                return Joint(own, *found)
        return None

    def _made(self, own: tuple[int, ...]) -> tuple[Array, Uncertainty] | None:
        if not self.counts_pairs or not self.n:
            return self.estimate_of(own)
        return pair_counts(self.tables, self.schema, self.n, self.tails).estimate_of(own)

    def _held(self, attributes: tuple[int, ...]) -> list[tuple[int, ...]]:
        """These attributes, and the published tables that hold them, smallest first."""
        known = [
            self._attributes(table)
            for table in self.tables
            if all(
                axis.attribute in self.schema.names
                and axis.categories == self.schema.attribute(axis.attribute).categories
                for axis in table.axes
            )
        ]
        holding = [own for own in known if set(attributes) <= set(own)]
        sizes = self.schema.sizes
        holding.sort(key=lambda own: (math.prod(sizes[a] for a in own), own))
        return list(dict.fromkeys(holding))

    def proper(self, attributes: tuple[int, ...]) -> Array | None:
        """The shares of these attributes as they are published or counted in queries."""
        held = self._held(attributes)
        table = None if not held else next(t for t in self.tables if self._attributes(t) == held[0])
        if table is None or table.kind == "count" or HIDDEN in table.values or None in table.values:
            estimates = self.estimates
            told = estimates is not None and estimates.fitted.told_together(attributes)
            return estimates.table(attributes) if estimates is not None and told else None
        cells = np.array(table.values, dtype=np.float64).reshape(table.shape)
        others = tuple(k for k, a in enumerate(held[0]) if a not in attributes)
        left = [a for a in held[0] if a in attributes]
        return np.asarray(cells.sum(axis=others).transpose([left.index(a) for a in attributes]))

    def published_r(self, first: str, second: str) -> dict[str, Cell] | None:
        """The row of two attributes in the listing of dependences, if it is about r."""
        if self.dependences is None:
            return None
        names = [column.name for column in self.dependences.columns]
        for row in self.dependences.rows:
            found = dict(zip(names, row, strict=True))
            if {found["attribute_1"], found["attribute_2"]} == {first, second}:
                return found if found["measure"] == MEASURES["pearson_r"] else None
        return None

    def _named(self, attributes: Sequence[int]) -> str:
        return listing(quoted(self.schema.names[a]) for a in attributes)

    def _refusal(self, attributes: tuple[int, ...]) -> str:
        """Why something cannot be computed from this, in one line."""
        names = self._named(attributes)
        if self.estimates is not None:
            return f"this cannot be computed: nobody reported {names} together"
        if not self.tables:
            return (
                f"this cannot be computed: the protocol publishes no table of {names}; what it "
                "found is in the folder's sheets"
            )
        if self._held(attributes):
            why = "some of its counts are hidden" if self._hides else "how uncertain is not known"
            return f"this cannot be computed: of the table of {names}, {why}"
        most = max(len(table.axes) for table in self.tables)
        return (
            f"this cannot be computed: no published table holds {names} together; name at most "
            f"{most} attributes, those of --by and --where among them"
        )

    @property
    def _hides(self) -> bool:
        return any(None in table.values for table in self.tables)


def _made_of(estimates: Estimates) -> EstimateOf:
    """What the tables of views are made of."""

    def found(attributes: tuple[int, ...]) -> tuple[Array, Uncertainty] | None:
        if not estimates.fitted.told_together(attributes):
            return None
        spread = uncertainty_of(estimates.fitted, attributes)
        return estimates.unbiased(*attributes).shares, spread

    return found
