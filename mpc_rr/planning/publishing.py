"""What would be published of given people, by the very code that publishes.

Only the messages are left out: answers are randomized as parties randomize them, and go into what
a study ends with. A better estimator there is a better prediction here.
"""

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mpc_rr.errors import InputError
from mpc_rr.estimation.blocks import SoFar, next_table, respond
from mpc_rr.estimation.combinations import Combination
from mpc_rr.estimation.conditions import Cells
from mpc_rr.estimation.designs import Design, Fitted, count_combinations
from mpc_rr.estimation.estimates import Estimates
from mpc_rr.estimation.full_reports import Known
from mpc_rr.estimation.guessing import PairTables
from mpc_rr.estimation.matrix import Array, Codes
from mpc_rr.estimation.pairs import PairLayout
from mpc_rr.estimation.tallies import Tallies, tallies_by_part
from mpc_rr.estimation.view_votes import pooled_margin
from mpc_rr.estimation.views import FittedViews, ViewDesign
from mpc_rr.protocols.block_aggregation import BlockAggregation, cells_of
from mpc_rr.protocols.rr_clusters import RRClusters
from mpc_rr.protocols.rr_each_attribute import RREachAttribute
from mpc_rr.publication.blocks import CollectedBlocks
from mpc_rr.publication.pairs import RandomizedPairs
from mpc_rr.randomness import Randomness
from mpc_rr.schema import Schema

MOST_BLOCKS = 50
"""A simulated collection by blocks has no more of them: larger blocks, as many answers."""


class Told(ABC):
    """What would be published of the people who were asked."""

    @abstractmethod
    def table(self, attributes: Combination) -> Array:
        """The shares of some attributes, in rising order; `InputError` if there are none."""

    @property
    @abstractmethod
    def pair_tables(self) -> PairTables:
        """The tables of all pairs."""

    def share(self, cells: Cells) -> float:
        """How many meet a condition."""
        return float(self.table(cells.attributes)[cells.table()].sum())


@dataclass(frozen=True)
class OfReports(Told):
    """Where randomized records are reported, or views of them: counted in one population."""

    estimates: Estimates

    def table(self, attributes: Combination) -> Array:
        """Of any width."""
        return self.estimates.table(attributes)

    @property
    def pair_tables(self) -> PairTables:
        """As they are published."""
        return self.estimates.pair_tables

    def share(self, cells: Cells) -> float:
        """However wide its table would be."""
        return self.estimates.share(cells)


@dataclass(frozen=True)
class OfMargins(Told):
    """Where shares of single answers are published, and nothing else."""

    margins: Sequence[Array]

    def table(self, attributes: Combination) -> Array:
        """As if all were independent."""
        return functools.reduce(np.multiply.outer, (self.margins[a] for a in attributes))

    @property
    def pair_tables(self) -> PairTables:
        """Products."""
        sizes = tuple(map(len, self.margins))
        return {pair: self.table(pair) for pair in PairLayout(sizes).pairs}


@dataclass(frozen=True)
class OfTables(Told):
    """Where tables of pairs are published, perhaps beside wider ones."""

    pairs: PairTables
    wider: Mapping[Combination, Array]

    @property
    def pair_tables(self) -> PairTables:
        """As they are published."""
        return self.pairs

    def table(self, attributes: Combination) -> Array:
        """One of them; of a single attribute, from the first that holds it."""
        if len(attributes) == 1:
            pair = next(pair for pair in self.pairs if attributes[0] in pair)
            return np.asarray(self.pairs[pair].sum(axis=1 - pair.index(attributes[0])))
        first, *rest = attributes
        if len(rest) == 1:
            return self.pairs[first, rest[0]]
        if attributes not in self.wider:
            most = max(2, *map(len, self.wider)) if self.wider else 2
            raise InputError(f"it publishes no tables of more than {most} attributes")
        return self.wider[attributes]


Publishing = Callable[[Schema, Codes, Randomness], Told]
"""From true records, what would be published of them."""


def of_margins(design: ViewDesign, schema: Schema, records: Codes, rng: Randomness) -> OfMargins:
    """Products of the margins, from views of single attributes, estimated as those of views are."""
    parts = tallies_by_part(design, design.randomize(records, rng))
    told = functools.reduce(Tallies.__add__, parts)
    return OfMargins([pooled_margin(told, attribute) for attribute in range(len(schema.sizes))])


def of_nobody(schema: Schema, records: Codes, rng: Randomness) -> OfMargins:  # noqa: ARG001
    """Equal shares of all answers, for which nobody need be asked."""
    return OfMargins([np.full(size, 1 / size) for size in schema.sizes])


def of_reports(
    design: Design, schema: Schema, records: Codes, rng: Randomness, known: Known | None = None
) -> OfReports:
    """Where everybody reports everything. ``known``: what a first stage told of all of them."""
    return OfReports(Estimates(schema, Fitted(design, design.randomize(records, rng)), known))


def of_views(design: ViewDesign, schema: Schema, records: Codes, rng: Randomness) -> OfReports:
    """Where everybody reports one view."""
    return OfReports(Estimates(schema, FittedViews(design, design.randomize(records, rng))))


def of_found_clusters(
    protocol: RRClusters, schema: Schema, records: Codes, rng: Randomness
) -> OfReports:
    """Where a first stage of answers one by one finds the clusters."""
    stage = protocol.dependence
    assert isinstance(stage, RREachAttribute)
    design = stage.design(schema)
    reported = design.randomize(records, rng.fork("first"))
    counts = [
        count_combinations(reported, pair, schema.sizes).astype(np.int64)
        for pair in PairLayout(schema.sizes).pairs
    ]
    found = RandomizedPairs(len(records), schema, counts, design.matrices, together=False)
    clusters = protocol.clusters_of(schema, protocol.dependences_of(schema, found))
    return of_reports(protocol.design(schema, clusters), schema, records, rng, found.known())


def of_blocks(
    protocol: BlockAggregation, schema: Schema, records: Codes, rng: Randomness
) -> OfTables:
    """Where tables follow the answers, block by block, and views are asked in turn."""
    views, p = protocol.views(schema), protocol.truth(schema)
    combinations = [combination for view in views for combination in view]
    tables = {c: np.full(cells_of(schema, c), 1 / cells_of(schema, c)) for c in combinations}
    so_far = {c: SoFar.nothing(p, len(table)) for c, table in tables.items()}
    shown: dict[Combination, list[bytes]] = {c: [] for c in combinations}
    counts: dict[Combination, list[list[int]]] = {c: [] for c in combinations}
    places = np.arange(len(records)) % len(views)
    for members in _blocks(len(records), protocol):
        for number, view in enumerate(views):
            asked = records[members][places[members] == number]
            for c in view:
                told = respond(_joint(schema, asked, c), tables[c], p, rng)
                seen = np.bincount(told, minlength=len(tables[c]))
                shown[c].append(tables[c].astype("<f8").tobytes())
                counts[c].append(seen.tolist())
                so_far[c].take(tables[c], seen)
                if so_far[c].counts.any():
                    tables[c] = next_table(so_far[c].shares, protocol.floor)
    for c in combinations:  # an ending has what would be shown and asked next
        shown[c].append(tables[c].astype("<f8").tobytes())
        counts[c].append([0] * len(tables[c]))
    ending = CollectedBlocks(
        schema, p, protocol.floor, protocol.block, (), {}, (), {}, shown, counts, ()
    )
    found = ending.tables()
    return OfTables(_pairs_of(found, schema), found)


def _blocks(n: int, protocol: BlockAggregation) -> list[slice]:
    """A table that does not follow needs one block only."""
    block = n if protocol.floor == 1 else max(protocol.block, -(-n // MOST_BLOCKS))
    return [slice(start, start + block) for start in range(0, n, block)]


def _joint(schema: Schema, records: Codes, attributes: Sequence[int]) -> Codes:
    """The cell of each record in the table of some attributes."""
    shape = tuple(schema.sizes[a] for a in attributes)
    cells: Codes = np.ravel_multi_index(tuple(records[:, a] for a in attributes), shape)
    return cells


def _pairs_of(tables: dict[Combination, Array], schema: Schema) -> PairTables:
    """Each pair from all tables that hold it, on average."""
    found = {}
    for i, j in PairLayout(schema.sizes).pairs:
        holding = [c for c in tables if i in c and j in c]
        margins = [
            tables[c].sum(axis=tuple(k for k, a in enumerate(c) if a not in (i, j)))
            for c in holding
        ]
        nobody = np.full(
            (schema.sizes[i], schema.sizes[j]), 1 / (schema.sizes[i] * schema.sizes[j])
        )
        found[i, j] = np.mean(margins, axis=0) if margins else nobody
    return found
