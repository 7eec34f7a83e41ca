"""Counts of every pair of attributes: exact, with noise, or without the small ones."""

import hashlib
from typing import Literal

import msgspec
import numpy as np

from mpc_rr.estimation.dependence import cramers_v
from mpc_rr.estimation.distribution import Estimate
from mpc_rr.estimation.full_reports import Known
from mpc_rr.estimation.hidden import HiddenCounts
from mpc_rr.estimation.intervals import cell_intervals
from mpc_rr.estimation.matrix import Array
from mpc_rr.estimation.pairs import Counts, PairLayout
from mpc_rr.estimation.strength import Strength, strength
from mpc_rr.estimation.suppression import HIDDEN, filled
from mpc_rr.estimation.tables import shrunk_table
from mpc_rr.estimation.uncertainty import ExactCounts, NoisyCounts, Uncertainty
from mpc_rr.publication.crosstabs import add_dependences, axes, flat, table_name
from mpc_rr.publication.ending import Draft, Ending, Setting, counting, fact
from mpc_rr.publication.nonresponse import NoAnswer, add_non_response, counted, estimated
from mpc_rr.publication.parts import LEVEL, Number, Participation, Publication, Sheet, Table
from mpc_rr.publication.sheets import pair_csv, table_file
from mpc_rr.schema import Schema

EXCESS = "noise_excess"
"""Under which the tails of the noise are published, where they are not Laplace's."""


class PairCounts(Ending, frozen=True):
    """The counts of every pair of attributes over ``n`` parties.

    Exact, unless ``noise`` is the standard deviation of what was added to each count, or counts
    below ``suppressed_below`` are hidden (−1) together with what would give them away.
    """

    counts_pairs = True

    n: int
    schema: Schema
    tables: list[Counts]
    noise: float = 0.0
    tails: float = NoisyCounts.tails
    """The excess of the noise: Laplace's, if not given."""
    suppressed_below: int = 0

    def __repr__(self) -> str:
        return f"PairCounts(n={self.n}, {len(self.tables)} tables)"

    @property
    def digest(self) -> bytes:
        """What parties compare to be sure that all have the same result."""
        hasher = hashlib.sha256(b"mpc-rr exact_pairs result\0" + str(self.n).encode())
        for table in self.tables:
            hasher.update(b"\0" + table.astype("<i8").tobytes())
        return hasher.digest()

    @property
    def exact(self) -> bool:
        """Whether every count is shown as it is."""
        return not self.noise and not self.suppressed_below

    @property
    def hidden_cells(self) -> int:
        """How many cells are suppressed."""
        return sum(int((table == HIDDEN).sum()) for table in self.tables) if not self.noise else 0

    @property
    def single_person_cells(self) -> int:
        """How many cells count exactly one person: whoever knows one answer learns the other."""
        return int(sum((table == 1).sum() for table in self.tables)) if self.exact else 0

    def known(self) -> Known:
        """What it tells of every pair, unless counts are hidden."""
        if self.suppressed_below:
            return {}
        pairs = PairLayout(self.schema.sizes).pairs
        tables = [self._estimate(number)[0] for number in range(len(pairs))]
        errors = [np.full(table.shape, self.noise / self.n) for table in tables]
        found = [Estimate(*both, self.n) for both in zip(tables, errors, strict=True)]
        return dict(zip(pairs, found, strict=True))

    def pair_shares(self) -> dict[tuple[int, int], Array]:
        """Proper tables of shares, by the attributes' numbers: the best guess where not exact."""
        layout = PairLayout(self.schema.sizes)
        tables: list[Array] = [table / self.n for table in self.tables]
        if self.noise:
            errors = self.noise / self.n
            tables = [shrunk_table(Estimate(t, np.full(t.shape, errors), self.n)) for t in tables]
        elif self.suppressed_below:
            tables = [table / self.n for table in filled(layout, self.tables, self.n)]
        return dict(zip(layout.pairs, tables, strict=True))

    def strengths(self) -> dict[tuple[int, int], Strength]:
        """How strongly each pair of attributes depends on each other, in the order of the tables.

        Limits are for the population; where counts are hidden, for the respondents.
        """
        attributes, layout = self.schema.attributes, PairLayout(self.schema.sizes)
        hidden = HiddenCounts(layout, self.tables, self.n) if self.suppressed_below else None
        found = {}
        for number, (i, j) in enumerate(layout.pairs):
            both = (attributes[i], attributes[j])
            if hidden is not None:
                found[i, j] = hidden.strength(number, both)
                continue
            limits = strength(*self._estimate(number), both)
            if self.exact and limits.measure == "cramers_v":  # no category merged: of those here
                answered = self.tables[number][np.ix_(both[0].answer_codes, both[1].answer_codes)]
                limits = limits.around(cramers_v(answered).value)
            found[i, j] = limits
        return found

    def estimate_of(self, attributes: tuple[int, ...]) -> tuple[Array, Uncertainty] | None:
        """Of a pair, unless counts are hidden."""
        pairs = PairLayout(self.schema.sizes).pairs
        if self.suppressed_below or attributes not in pairs:
            return None
        return self._estimate(list(pairs).index((attributes[0], attributes[1])))

    def _estimate(self, number: int) -> tuple[Array, Uncertainty]:
        """The unbiased table of shares, and how uncertain it is."""
        counts = self.tables[number]
        if not self.noise:
            return counts / self.n, ExactCounts(self.n)
        # How many there are is known, so noise in the sum of a table is taken off again.
        put_right = counts - (counts.sum() - self.n) / counts.size
        return put_right / self.n, NoisyCounts(self.n, self.noise**2, self.tails)

    def participation(self, study: Setting) -> Participation:
        """Those who were there and not lost."""
        word: Literal["coordinator", "transcript"]
        word = "coordinator" if self.suppressed_below else "transcript"
        people = counting(super().participation(study), self.n)
        return msgspec.structs.replace(people, told_by=word)

    def publish(self, study: Setting) -> Publication:
        """Tables, dependences, and a warning where a count gives somebody away."""
        draft = Draft()
        draft.find(
            f"{self.n} of {study.expected} parties included in the secure sum.",
            counted=self.n,
            expected=study.expected,
        )
        self._say_how_exact(draft)
        with draft.part("item non-response"):
            add_non_response(draft, self._non_response(), of="respondents")
        pairs = PairLayout(self.schema.sizes).pairs
        strongest = pairs[0]
        with draft.part("the dependences"):
            found = self.strengths()
            add_dependences(
                draft,
                self.schema,
                found,
                title="Association between attributes",
                known="exactly" if self.exact else "in part" if self.suppressed_below else "noisy",
            )
            strongest = max(found, key=lambda pair: abs(found[pair].value or 0.0))
        for number, ((i, j), counts) in enumerate(zip(pairs, self.tables, strict=True), start=1):
            attributes = (self.schema.attributes[i], self.schema.attributes[j])
            shown = self._shown(counts)
            errors = flat(np.full(counts.shape, self.noise)) if self.noise else None
            low, high = self._limits(number - 1)
            draft.tables.append(
                Table(
                    name=table_name(attributes), axes=axes(attributes), kind="count",
                    values=tuple(count for row in shown for count in row), n=self.n,
                    standard_errors=errors, low=low, high=high, main=(i, j) == strongest,
                )
            )  # fmt: skip
            name = table_file("pairs", number, attributes)
            what = f"counts of {table_name(attributes)}"
            draft.sheets.append(Sheet.of(name, what, pair_csv(*attributes, shown)))
        return draft.publication()

    def _say_how_exact(self, draft: Draft) -> None:
        if self.noise:
            gaussian = self.tails == 0
            draft.find(
                f"Every count has {'Gaussian ' * gaussian}noise in it (standard deviation "
                f"{self.noise:.1f}), and is shown as it came out: it may be negative, or outside "
                "the limits of the true count, which use how many took part.",
                noise_standard_deviation=self.noise,
            )
            if gaussian:
                excess = fact(name=EXCESS, label="excess kurtosis of the noise", value=self.tails)
                draft.quantities.append(excess)
        if self.suppressed_below:
            draft.find(
                f"{self.hidden_cells} cells are hidden: counts below {self.suppressed_below}, and "
                "those from which they would follow. The coordinator saw the exact counts.",
                suppressed_below=self.suppressed_below,
                suppressed_cells=self.hidden_cells,
            )
        if self.exact:
            alone = self.single_person_cells
            draft.quantities.append(
                fact(
                    name="single_person_cells", label="cells that count a single person",
                    value=alone, kind="count",
                )
            )  # fmt: skip
            if alone:
                draft.warn(
                    f"{alone} cells count exactly one person. Anyone who knows one of that "
                    "person's two answers learns the other. To prevent this, set suppress_below "
                    "or noise_epsilon."
                )

    def _non_response(self) -> list[NoAnswer]:
        """From the table with the fewest other categories: the least noise, and fewest hidden."""
        layout, found = PairLayout(self.schema.sizes), []
        for place, attribute in enumerate(self.schema.attributes):
            code = attribute.missing_code
            if code is None:
                continue
            holding = [
                (number, pair.index(place))
                for number, pair in enumerate(layout.pairs)
                if place in pair
            ]
            holding.sort(key=lambda at: self.tables[at[0]].size)
            if self.noise:
                number, axis = holding[0]
                shares, spread = self._estimate(number)
                found.append(estimated(attribute, axis, shares, spread, self.n, of="respondents"))
                continue
            rows = [np.take(self.tables[number], code, axis=axis) for number, axis in holding]
            told = [int(row.sum()) for row in rows if not (row == HIDDEN).any()]
            found.append(counted(attribute, self.n, told[0] if told else None))
        return found

    def _shown(self, counts: Counts) -> list[list[Number]]:
        """Row by row; None where a count is suppressed."""
        rows: list[list[Number]] = counts.tolist()
        if not self.suppressed_below:
            return rows
        return [[None if count == HIDDEN else count for count in row] for row in rows]

    def _limits(self, number: int) -> tuple[tuple[Number, ...] | None, tuple[Number, ...] | None]:
        """Of the true counts, where there is noise in them."""
        if not self.noise:
            return None, None
        found = cell_intervals(*self._estimate(number), "respondents", LEVEL)
        return flat(found.low * self.n), flat(found.high * self.n)
