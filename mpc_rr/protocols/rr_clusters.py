"""RR-Clusters (paper 000 §4; paper 003 §4): attributes that depend on each other answer together.

1. The parties find out how strongly the attributes depend on each other, by one of the three
   protocols of §4 (``[protocol.dependence]``). All of them end up with the same tables.
2. The coordinator clusters the attributes and announces the clusters; every party does the same
   from the tables and refuses to answer any other clustering.
3. Each party randomizes each cluster as one value, with what its attributes may spend together,
   and reports the outcome (`mpc_rr.protocols.collection`). If fewer answer in time than the study
   needs, what step 1 found is the result: it has been paid for.
"""

import math
from collections.abc import Collection
from typing import ClassVar, Literal, Self

import msgspec
import numpy as np

from mpc_rr.errors import InputError
from mpc_rr.estimation.clusters import (
    Clusters,
    Dependences,
    dependence_graph,
    merge_clusters,
    power_iteration_clusters,
)
from mpc_rr.estimation.designs import Design, rr_clusters, rr_independent
from mpc_rr.estimation.planning import chosen_keep
from mpc_rr.estimation.prospects import largest_product
from mpc_rr.estimation.tables import dependence_matrix
from mpc_rr.network.envelope import Message, Way
from mpc_rr.network.session import CoordinatorSession, PartySession
from mpc_rr.network.session.coordinator import RULES
from mpc_rr.privacy.disclosures import Caution, ClusteredResponse, Disclosure
from mpc_rr.protocols.collection import (
    Answer,
    check_design,
    collect_coordinator,
    collect_party,
)
from mpc_rr.protocols.exact_pairs import ExactPairs
from mpc_rr.protocols.interface import StudyProtocol
from mpc_rr.protocols.prospects import A_CLUSTER, of_combinations
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

    By Algorithm 1 of paper 000 with ``most_combinations`` (T_v) and ``least_dependence`` (T_d), or
    by power iteration clustering into ``clusters`` groups.
    """

    dependence: RREachAttribute | ExactPairs | RRPairs
    keep: float | None = None
    epsilon: float | None = None
    method: Literal["merge", "power_iteration"] = "merge"
    most_combinations: int = 50
    least_dependence: float = 0.1
    clusters: int | None = None

    def rounds(self, study: Setting) -> tuple[type[Message], ...]:
        """Those of the dependence protocol, then the report."""
        return (*self.dependence.rounds(study), Answer)

    def check(self, study: Setting) -> None:
        """The options must make sense."""
        schema = study.schema
        alone = [(a,) for a in range(len(schema.sizes))]
        check_design(rr_clusters(schema.sizes, alone, self._spent(schema)))
        self.dependence.check(study)
        if self.most_combinations < 1:
            raise InputError(f"most_combinations must be positive, not {self.most_combinations}")
        if not 0 <= self.least_dependence <= 1:
            raise InputError("least_dependence lies between 0 and 1")
        if (self.method == "power_iteration") != (self.clusters is not None):
            raise InputError('clusters goes with method = "power_iteration", and only with it')
        if self.clusters is not None and not 1 <= self.clusters <= len(schema.sizes):
            raise InputError(f"{len(schema.sizes)} attributes cannot make {self.clusters} clusters")

    def notes(self, study: Setting) -> tuple[Note, ...]:
        """Those of the dependence protocol."""
        return tuple(self.dependence.notes(study))

    def prospects(self, study: Setting) -> list[str]:
        """Those of the dependence protocol, and the largest cluster that may be found."""
        sizes = study.schema.sizes
        if self.clusters is not None:  # then all others may be alone
            largest = math.prod(sorted(sizes)[self.clusters - 1 :])
        else:
            largest = largest_product(sizes, self.most_combinations)
        first = (f"To find dependences: {text}" for text in self.dependence.prospects(study))
        return [*first, *of_combinations(A_CLUSTER, largest, study.expected)]

    def as_recorded(self, steps: Collection[str]) -> Self:
        """With the dependence protocol as it was run."""
        return msgspec.structs.replace(self, dependence=self.dependence.as_recorded(steps))

    def largest_message_bytes(self, study: Setting) -> int:
        """Those of the dependence protocol are the largest."""
        return self.dependence.largest_message_bytes(study)

    def disclosures(self, study: Setting) -> list[Disclosure]:
        """What the dependences cost, and the answers: whatever the clusters, their ε add up.

        Which answers are one value is not known yet, so no answer has a price of its own.
        """
        names, each = study.schema.names, tuple(self._spent(study.schema))
        answers = ClusteredResponse(
            what=self.name, attributes=names, epsilon=math.fsum(each), each=each
        )
        return [*self.dependence.disclosures(study), answers]

    def cautions(self, study: Setting) -> list[Caution]:
        """Those of the dependence protocol, too."""
        return [*dict.fromkeys([*super().cautions(study), *self.dependence.cautions(study)])]

    def _spent(self, schema: Schema) -> list[float]:
        keep = chosen_keep(self.keep, self.epsilon, schema.sizes)
        return [matrix.epsilon for matrix in rr_independent(schema.sizes, keep).matrices]

    def dependences_of(
        self, schema: Schema, tables: PairCounts | RandomizedPairs, rules: int = RULES
    ) -> Dependences:
        """Step 2: the same for everybody who has the same tables.

        Two ordered attributes are as close as |r| says, others as V does (Expressions (8), (9)),
        among those who answered both.
        """
        attributes, now = schema.attributes, rules >= BY_CORRELATION
        ordinal = [now and attribute.type == "ordinal" for attribute in attributes]
        answers = [a.answer_codes if now else tuple(range(a.size)) for a in attributes]
        dependences = dependence_matrix(tables.pair_shares(), ordinal, answers)
        # Equal to the last digit on every machine, whatever its arithmetic rounds differently.
        return np.round(dependences, 9)

    def clusters_of(self, schema: Schema, dependences: Dependences) -> Clusters:
        """Step 2: attributes that depend on each other."""
        if self.method == "merge":
            return merge_clusters(
                dependences, schema.sizes, self.most_combinations, self.least_dependence
            )
        assert self.clusters is not None
        groups = power_iteration_clusters(
            dependence_graph(schema.names, dependences), self.clusters
        )
        return sorted(tuple(sorted(schema.names.index(n) for n in group)) for group in groups)

    def design(self, schema: Schema, clusters: Clusters) -> Design:
        """Step 3's randomization."""
        return rr_clusters(schema.sizes, clusters, self._spent(schema))

    async def party(self, session: PartySession, schema: Schema, record: Record) -> Ending:
        """A party's steps."""
        # Step 1: find the dependences.
        tables = await self.dependence.party(session.sub("dependence"), schema, record)

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
        tables = await self.dependence.coordinator(session.sub("dependence"), schema)
        dependences = self.dependences_of(schema, tables, session.rules)
        clusters = self.clusters_of(schema, dependences)
        await session.announce(Clustering(tuple(clusters)))
        design = self.design(schema, clusters)
        published = dependences if session.rules >= BY_CORRELATION else None
        return await collect_coordinator(session, schema, design, tables, published)
