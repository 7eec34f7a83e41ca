"""RR-Clusters (paper 000 §4; paper 003 §4): attributes that depend on each other answer together.

1. The parties find out how strongly the attributes depend on each other, by one of the three
   protocols of §4 (``[protocol.dependence]``). All of them end up with the same tables.
2. The coordinator clusters the attributes and announces the clusters; every party does the same
   from the tables and refuses to answer any other clustering.
3. Each party randomizes each cluster as one value, with what its attributes may spend together,
   and reports the outcome (`mpc_rr.protocols.collection`). If fewer answer in time than the study
   needs, what step 1 found is the result: it has been paid for.

If the study file itself says which the clusters are (from public data, or an earlier wave), steps 1
and 2 fall away, and cost nothing.
"""

import math
from collections.abc import Collection
from typing import ClassVar, Literal, Self

import msgspec
import numpy as np

from mpc_rr.errors import InputError, all_quoted
from mpc_rr.estimation.clusters import (
    Clusters,
    Dependences,
    check_clusters,
    dependence_graph,
    merge_clusters,
    power_iteration_clusters,
)
from mpc_rr.estimation.designs import Design, rr_clusters, rr_nearby
from mpc_rr.estimation.matrix import KeepOrUniform, RRMatrix
from mpc_rr.estimation.prospects import largest_product
from mpc_rr.estimation.tables import dependence_matrix
from mpc_rr.network.envelope import Message, Way
from mpc_rr.network.session import CoordinatorSession, PartySession
from mpc_rr.network.session.coordinator import RULES
from mpc_rr.privacy.disclosures import Caution, ClusteredResponse, Disclosure
from mpc_rr.protocols.budgets import Own, by_budget, matrices_of, own_matrices
from mpc_rr.protocols.collection import (
    Answer,
    check_design,
    collect_coordinator,
    collect_party,
    disclosures_of,
    full_prospects_of,
    largest_answer_bytes,
)
from mpc_rr.protocols.exact_pairs import ExactPairs
from mpc_rr.protocols.interface import StudyProtocol
from mpc_rr.protocols.prospects import (
    A_CLUSTER,
    Prospect,
    of_combinations,
    of_own_budgets,
    of_width,
)
from mpc_rr.protocols.rr_each_attribute import RREachAttribute
from mpc_rr.protocols.rr_pairs import RRPairs
from mpc_rr.publication.counts import PairCounts
from mpc_rr.publication.ending import Ending, Setting
from mpc_rr.publication.pairs import RandomizedPairs
from mpc_rr.publication.parts import Note
from mpc_rr.schema import Record, Schema

BY_CORRELATION = 3
"""Since these rules two ordered attributes are compared by their correlation, and what made the
clusters is published."""


class Clustering(Message, frozen=True):
    """Coordinator → everyone: the clusters, as numbers of attributes."""

    step: ClassVar[str] = "clustering"
    doing: ClassVar[str] = "the coordinator announces the clusters"
    way: ClassVar[Way] = "announce"
    clusters: tuple[tuple[int, ...], ...]


class RRClusters(StudyProtocol, frozen=True, tag="rr_clusters"):
    """``[protocol] name = "rr_clusters"``, with ``keep`` or ``epsilon`` and how to cluster.

    By Algorithm 1 of paper 000 with ``most_combinations`` (T_v) and ``least_dependence`` (T_d), by
    power iteration clustering into ``clusters`` groups, or into those that ``clusters`` names.
    Attributes have the budget that ``each`` gives them; one with a matrix of its own stays alone.
    With ``stay``, each of the clusters that are named goes rather to a near one (003 §6.2).
    """

    dependence: RREachAttribute | ExactPairs | RRPairs | None = None
    keep: float | None = None
    epsilon: float | None = None
    stay: float | None = None
    each: dict[str, Own] | None = None
    method: Literal["merge", "power_iteration"] = "merge"
    most_combinations: int = 50
    least_dependence: float = 0.1
    clusters: int | tuple[tuple[str, ...], ...] | None = None
    measure: Literal["V", "r"] | None = None
    """How dependence is measured: |r| for two ordered attributes, else V, unless it is said."""

    def rounds(self, study: Setting) -> tuple[type[Message], ...]:
        """Those of the dependence protocol, then the report."""
        return (*self._finding.rounds(study), Answer) if self._found else (Answer,)

    @property
    def _found(self) -> bool:
        """Whether the clusters are found by the parties, and not given."""
        return not isinstance(self.clusters, tuple)

    @property
    def _finding(self) -> RREachAttribute | ExactPairs | RRPairs:
        """The protocol that finds dependences."""
        if self.dependence is None:
            raise InputError(
                "[protocol.dependence] is missing: how the parties find the clusters; or name them "
                'in clusters = [["…", "…"], …]'
            )
        return self.dependence

    def check(self, study: Setting) -> None:
        """The options must make sense."""
        schema = study.schema
        if not self._found:
            self._check_given(schema)
            return
        if self.stay is not None:
            raise InputError(
                "stay needs clusters that are named in the study file: what an answer costs "
                "depends on its cluster, and people must know it before"
            )
        check_design(self.design(schema, _one_by_one(schema)))
        self._finding.check(study)
        ordered = all(attribute.type == "ordinal" for attribute in schema.attributes)
        if self.measure == "r" and not ordered:
            raise InputError('measure = "r" needs attributes with an order; "V" takes any')
        if self.most_combinations < 1:
            raise InputError(f"most_combinations must be positive, not {self.most_combinations}")
        if not 0 <= self.least_dependence <= 1:
            raise InputError("least_dependence lies between 0 and 1")
        if (self.method == "power_iteration") != (self.clusters is not None):
            raise InputError(
                'the number of clusters goes with method = "power_iteration", and only with it'
            )
        free = len(self._free(schema))
        if isinstance(self.clusters, int) and not 1 <= self.clusters <= free:
            raise InputError(f"{free} attributes cannot make {self.clusters} clusters")

    def _check_given(self, schema: Schema) -> None:
        """Of clusters that the study file names."""
        if self.dependence is not None or self.method != "merge" or self.measure is not None:
            raise InputError(
                "the clusters are named already; leave [protocol.dependence], method and measure "
                "out"
            )
        self._given(schema)
        if self.stay is None:
            check_design(self.design(schema, self._given(schema)))
            return
        if (self.keep, self.epsilon, self.each) != (None, None, None):
            raise InputError("stay is one for all clusters; leave keep, epsilon and each out")
        check_design(self.design(schema, self._given(schema)))

    def _given(self, schema: Schema) -> Clusters:
        """The clusters that are named; attributes that are not named are alone."""
        assert isinstance(self.clusters, tuple)
        named = [name for cluster in self.clusters for name in cluster]
        for name in named:
            if name not in schema.names:
                raise InputError(
                    f"clusters: there is no attribute {name!r}; the schema has "
                    f"{all_quoted(schema.names)}"
                )
            if named.count(name) > 1:
                raise InputError(f"clusters: {name!r} is named twice")
        places = [[schema.names.index(name) for name in own] for own in self.clusters if own]
        alone = [[a] for a, name in enumerate(schema.names) if name not in named]
        return check_clusters([*places, *alone], len(schema.sizes))

    def notes(self, study: Setting) -> tuple[Note, ...]:
        """Those of the dependence protocol."""
        return tuple(self._finding.notes(study)) if self._found else ()

    def prospects(self, study: Setting) -> list[Prospect]:
        """Those of the dependence protocol, and the largest cluster that may be found."""
        if not self._found:
            design = self.design(study.schema, self._given(study.schema))
            return [*full_prospects_of(study, design), *self._dearer(study)]
        sizes = [study.schema.sizes[a] for a in self._free(study.schema)]
        if isinstance(self.clusters, int):  # then all others may be alone
            largest = math.prod(sorted(sizes)[self.clusters - 1 :])
        else:
            largest = largest_product(sizes, self.most_combinations) if sizes else 1
        largest = max(largest, *study.schema.sizes)
        first = (prospect.of_first_stage for prospect in self._finding.prospects(study))
        return [
            *first,
            *of_width(self.design(study.schema, _one_by_one(study.schema)).width),
            *of_combinations(A_CLUSTER, largest, study.expected),
            *self._dearer(study),
        ]

    def _dearer(self, study: Setting) -> list[Prospect]:
        """Attributes whose own budget does not bound what is told of them."""
        own = own_matrices(study.schema, self.each)
        told = {
            name: epsilon
            for event in self.disclosures(study)
            if event.what == self.name
            for name, epsilon in event.answers.items()
        }
        may = "may be" if self._found else "is"
        budgets = {name: matrix.epsilon for name, matrix in own.items()}
        return of_own_budgets(budgets, told, f"{may} one value with others")

    def as_recorded(self, steps: Collection[str]) -> Self:
        """With the dependence protocol as it was run."""
        if self.dependence is None:
            return self
        return msgspec.structs.replace(self, dependence=self.dependence.as_recorded(steps))

    def largest_message_bytes(self, study: Setting) -> int:
        """Those of the dependence protocol are the largest."""
        if self._found:
            return self._finding.largest_message_bytes(study)
        return largest_answer_bytes(study)

    def disclosures(self, study: Setting) -> list[Disclosure]:
        """What the dependences cost, and the answers: whatever the clusters, their ε add up.

        Which answers are one value is not known yet, so no answer has a price of its own.
        """
        schema = study.schema
        if not self._found:
            design = self.design(schema, self._given(schema))
            return disclosures_of(self.name, schema, design)
        spent, free = self._spent(schema), self._free(schema)
        found = self._finding.disclosures(study)
        if free:
            each = tuple(spent[a] for a in free)
            names = tuple(schema.names[a] for a in free)
            found.append(
                ClusteredResponse(
                    what=self.name, attributes=names, epsilon=math.fsum(each), each=each
                )
            )
        own = self.design(schema, _one_by_one(schema))
        alone = [name for a, name in enumerate(schema.names) if a not in free]
        return [*found, *disclosures_of(self.name, schema, own, alone)]

    def cautions(self, study: Setting) -> list[Caution]:
        """Those of the dependence protocol, too."""
        first = self._finding.cautions(study) if self._found else ()
        return [*dict.fromkeys([*super().cautions(study), *first])]

    def _spent(self, schema: Schema) -> list[float]:
        rest = by_budget(self.keep, self.epsilon)
        return [matrix.epsilon for matrix in matrices_of(schema, self.each, rest)]

    def _own(self, schema: Schema) -> dict[int, RRMatrix]:
        """The attributes with a matrix of their own, which are alone, and their matrices."""
        return {
            schema.names.index(name): matrix
            for name, matrix in own_matrices(schema, self.each).items()
            if not isinstance(matrix, KeepOrUniform)
        }

    def _free(self, schema: Schema) -> list[int]:
        """The attributes that may be clustered."""
        own = self._own(schema)
        return [a for a in range(len(schema.sizes)) if a not in own]

    def dependences_of(
        self, schema: Schema, tables: PairCounts | RandomizedPairs, rules: int = RULES
    ) -> Dependences:
        """Step 2: the same for everybody who has the same tables.

        Two ordered attributes are as close as |r| says, others as V does (Expressions (8), (9)),
        among those who answered both.
        """
        attributes, now = schema.attributes, rules >= BY_CORRELATION
        by_order = now and self.measure != "V"
        ordinal = [by_order and attribute.type == "ordinal" for attribute in attributes]
        answers = [a.answer_codes if now else tuple(range(a.size)) for a in attributes]
        dependences = dependence_matrix(tables.pair_shares(), ordinal, answers)
        # Equal to the last digit on every machine, whatever its arithmetic rounds differently.
        return np.round(dependences, 9)

    def clusters_of(self, schema: Schema, dependences: Dependences) -> Clusters:
        """Step 2: attributes that depend on each other."""
        free = self._free(schema)
        alone = [own for own in _one_by_one(schema) if own[0] not in free]
        if not free:
            return alone
        theirs = dependences[np.ix_(free, free)]
        if self.method == "merge":
            sizes = [schema.sizes[a] for a in free]
            merged = merge_clusters(theirs, sizes, self.most_combinations, self.least_dependence)
            return sorted([tuple(free[k] for k in cluster) for cluster in merged] + alone)
        assert isinstance(self.clusters, int)
        names = [schema.names[a] for a in free]
        groups = power_iteration_clusters(dependence_graph(names, theirs), self.clusters)
        found = [tuple(sorted(schema.names.index(n) for n in group)) for group in groups]
        return sorted(found + alone)

    def design(self, schema: Schema, clusters: Clusters) -> Design:
        """Step 3's randomization."""
        if self.stay is not None:
            return rr_nearby(schema.sizes, clusters, self.stay)
        return rr_clusters(schema.sizes, clusters, self._spent(schema), self._own(schema))

    async def party(self, session: PartySession, schema: Schema, record: Record) -> Ending:
        """A party's steps."""
        if not self._found:
            given = tuple(self._given(schema))
            design = session.shared("design", (given,), lambda: self.design(schema, list(given)))
            return await collect_party(session, schema, record, design)

        # Step 1: find the dependences.
        tables = await self._finding.party(session.sub("dependence"), schema, record)

        # Step 2: hear the clusters; they must be those that follow from the tables.
        own = session.shared(
            "clusters",
            (tables.digest,),
            lambda: tuple(self.clusters_of(schema, self.dependences_of(schema, tables))),
        )

        def mine(message: Clustering) -> None:
            if message.clusters != own:
                raise ValueError("these are not the clusters that follow from the tables")

        await session.hear(Clustering, check=mine)

        # Step 3: randomize each cluster as one value, and report.
        design = session.shared("design", (own,), lambda: self.design(schema, list(own)))
        return await collect_party(session, schema, record, design, tables)

    async def coordinator(self, session: CoordinatorSession, schema: Schema) -> Ending:
        """The coordinator's part."""
        if not self._found:
            given = self.design(schema, self._given(schema))
            return await collect_coordinator(session, schema, given)
        tables = await self._finding.coordinator(session.sub("dependence"), schema)
        dependences = self.dependences_of(schema, tables, session.rules)
        clusters = self.clusters_of(schema, dependences)
        await session.announce(Clustering(tuple(clusters)))
        design = self.design(schema, clusters)
        published = dependences if session.rules >= BY_CORRELATION else None
        return await collect_coordinator(session, schema, design, tables, published)


def _one_by_one(schema: Schema) -> Clusters:
    return [(a,) for a in range(len(schema.sizes))]
