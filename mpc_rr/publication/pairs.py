"""Tables of pairs that are estimated from randomized answers."""

import hashlib
from collections.abc import Mapping

from mpc_rr.estimation.distribution import Estimate, Randomization, unbiased
from mpc_rr.estimation.full_reports import Known
from mpc_rr.estimation.intervals import Limits
from mpc_rr.estimation.kronecker import Kronecker
from mpc_rr.estimation.matrix import Array, RRMatrix
from mpc_rr.estimation.pairs import Counts, PairLayout
from mpc_rr.estimation.strength import Strength, strength
from mpc_rr.estimation.tables import shrunk_table
from mpc_rr.estimation.uncertainty import RandomizedReports, Uncertainty
from mpc_rr.publication.crosstabs import add_dependences, share_table, table_name
from mpc_rr.publication.ending import Draft, Ending, Setting, counting
from mpc_rr.publication.nonresponse import NoAnswer, add_non_response, estimated
from mpc_rr.publication.parts import Participation, Publication, Sheet
from mpc_rr.publication.sheets import table_csv, table_file
from mpc_rr.schema import Attribute, Schema


class RandomizedPairs(Ending, frozen=True):
    """How often each pair of randomized answers was reported, and how they were randomized.

    ``together``: each pair was randomized as one value; else each attribute by itself.
    """

    n: int
    schema: Schema
    counts: list[Counts]
    matrices: tuple[RRMatrix, ...]
    """By pair if ``together``, else by attribute."""
    together: bool

    def __repr__(self) -> str:
        return f"RandomizedPairs(n={self.n}, {len(self.counts)} tables)"

    @property
    def digest(self) -> bytes:
        """What parties compare to be sure that all have the same result."""
        hasher = hashlib.sha256(b"mpc-rr randomized pairs\0" + str(self.n).encode())
        for table in self.counts:
            hasher.update(b"\0" + table.astype("<i8").tobytes())
        return hasher.digest()

    def estimates(self) -> dict[tuple[int, int], Estimate]:
        """Eq. (2) for each pair, with standard errors."""
        pairs = PairLayout(self.schema.sizes).pairs
        found = {}
        for number, ((i, j), counts) in enumerate(zip(pairs, self.counts, strict=True)):
            matrix = self._randomization(number, i, j)
            shape = (-1,) if self.together else counts.shape
            raw = unbiased(counts.reshape(shape), matrix)
            errors = raw.standard_errors.reshape(counts.shape)
            found[i, j] = Estimate(raw.shares.reshape(counts.shape), errors, raw.n)
        return found

    def known(self) -> Known:
        """What it tells of every pair."""
        return {pair: estimate for pair, estimate in self.estimates().items()}  # noqa: C416

    def _randomization(self, number: int, i: int, j: int) -> Randomization:
        if self.together:
            return self.matrices[number]
        return Kronecker([self.matrices[i], self.matrices[j]])

    def estimate_of(self, attributes: tuple[int, ...]) -> tuple[Array, Uncertainty] | None:
        """Of a pair."""
        for number, (pair, estimate) in enumerate(self.estimates().items()):
            if pair == attributes:
                return estimate.shares, self._uncertainty(number, pair)
        return None

    def randomized_by(
        self, attributes: tuple[int, ...]
    ) -> tuple[tuple[tuple[int, ...], RRMatrix], ...]:
        """Each pair as one value, or each attribute by itself."""
        if self.together:
            pairs = PairLayout(self.schema.sizes).pairs
            return tuple(
                (p, m) for p, m in zip(pairs, self.matrices, strict=True) if p == attributes
            )
        return tuple(((place,), self.matrices[place]) for place in attributes)

    def pair_shares(self) -> dict[tuple[int, int], Array]:
        """Proper tables: dependence that may be noise is shrunk away."""
        return {pair: shrunk_table(estimate) for pair, estimate in self.estimates().items()}

    def strengths(self) -> dict[tuple[int, int], Strength]:
        """How strongly each pair of attributes depends on each other, in the population."""
        return self._strengths(self.estimates())

    def _strengths(
        self, estimates: dict[tuple[int, int], Estimate]
    ) -> dict[tuple[int, int], Strength]:
        return {
            pair: strength(estimate.shares, self._uncertainty(number, pair), self._both(pair))
            for number, (pair, estimate) in enumerate(estimates.items())
        }

    def _both(self, pair: tuple[int, int]) -> tuple[Attribute, Attribute]:
        return self.schema.attributes[pair[0]], self.schema.attributes[pair[1]]

    def _uncertainty(self, number: int, pair: tuple[int, int]) -> RandomizedReports:
        return RandomizedReports(self.n, self._randomization(number, *pair))

    def participation(self, study: Setting) -> Participation:
        """Those who were there and not lost."""
        return counting(super().participation(study), self.n)

    def publish(self, study: Setting) -> Publication:
        """The tables, what they were estimated from, and the dependences."""
        draft = Draft()
        draft.find(
            f"{self.n} of {study.expected} parties included in the secure sum; the tables are "
            "estimated from randomized answers.",
            counted=self.n,
            expected=study.expected,
        )
        with draft.part("the tables"):
            self._publish_tables(draft)
        return draft.publication()

    def _non_response(self, estimates: Mapping[tuple[int, int], Estimate]) -> list[NoAnswer]:
        """Each from the table that tells it best: the one with the fewest other categories."""
        found, numbers = [], {pair: number for number, pair in enumerate(estimates)}
        for place, attribute in enumerate(self.schema.attributes):
            if attribute.missing is not None:
                holding = [pair for pair in numbers if place in pair]
                pair = min(holding, key=lambda pair: estimates[pair].shares.size)
                spread = self._uncertainty(numbers[pair], pair)
                table, shown = estimates[pair].shares, shrunk_table(estimates[pair])
                found.append(
                    estimated(attribute, pair.index(place), table, spread, self.n, published=shown)
                )
        return found

    def _publish_tables(self, draft: Draft) -> None:
        estimates = self.estimates()
        with draft.part("item non-response"):
            add_non_response(draft, self._non_response(estimates))
        for number, (pair, estimate) in enumerate(estimates.items(), start=1):
            both, uncertainty = self._both(pair), self._uncertainty(number - 1, pair)
            shares, limits = shrunk_table(estimate), Limits.of(estimate.shares, uncertainty)
            reported = self.counts[number - 1]
            draft.tables.append(share_table(both, shares, estimate, limits, reported=reported))
            name, what = table_file("pairs", number, both), f"shares of {table_name(both)}"
            draft.sheets.append(Sheet.of(name, what, table_csv(both, shares)))
        with draft.part("the dependences"):
            title = "Estimated dependence of each pair"
            add_dependences(draft, self.schema, self._strengths(estimates), title=title)
