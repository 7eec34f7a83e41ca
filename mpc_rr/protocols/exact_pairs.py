"""Bivariate counts (paper 000 §4.2): how often each pair of answers occurs, and no more.

1. A party's record becomes one vector with a 1 in its cell of each pair's table.
2. If the study says so, the party adds its share of noise to every cell.
3. The secure sum adds the vectors of all parties.
4. Everybody gets the tables of all pairs of attributes; nobody gets any record.

Exact counts are published, so a cell of size 1 shows that such a person exists. A study can avoid
that in two ways, which are not in the paper:

* ``noise_epsilon``: nobody sees an exact count, not even the coordinator. Whatever is published is
  (ε, δ)-private even if a share ``noise_corrupt`` of the parties pool all they know. ``noise`` is
  "laplace" (if not given) or "gaussian", with ``noise_delta``.
* ``suppress_below``: the sum goes to the coordinator alone, which sees the exact counts and
  publishes the tables without the small ones (and without what would give those away by the
  published numbers alone, of three attributes at a time; the rule by which it chooses is public,
  and gives some away). Whoever takes part is not held up by it: one party that adds something else
  than its record can have all counts shown, and takes off what it added.
"""

import math
from typing import ClassVar, Literal

import msgspec
import numpy as np

from mpc_rr.errors import InputError, Misconduct
from mpc_rr.estimation.pairs import Counts, PairLayout
from mpc_rr.estimation.suppression import fault, suppress
from mpc_rr.estimation.uncertainty import NoisyCounts
from mpc_rr.network.envelope import Message, Way
from mpc_rr.network.session import AnySession, Check, CoordinatorSession, PartySession
from mpc_rr.privacy.disclosures import Caution, Disclosure, ExactSum, NoisySum
from mpc_rr.privacy.noise_families import DELTA, Noise, by_family, epsilon_for, noise_of
from mpc_rr.protocols.interface import HEAD_BYTES
from mpc_rr.protocols.prospects import (
    Prospect,
    of_dependences,
    of_noise,
    of_other_noise,
    of_suppression,
)
from mpc_rr.protocols.sums.choice import Summed
from mpc_rr.protocols.sums.noisy import NoisySumming
from mpc_rr.publication.counts import PairCounts
from mpc_rr.publication.ending import Setting
from mpc_rr.schema import Record, Schema

INSTEAD_OF_HIDING = "noise_epsilon in [protocol]"


class PublishedTables(Message, frozen=True):
    """Coordinator → everyone: the tables with small counts suppressed, cell by cell, as int64."""

    step: ClassVar[str] = "published_tables"
    doing: ClassVar[str] = "the coordinator publishes the tables without small counts"
    way: ClassVar[Way] = "announce"
    n: int
    cells: bytes

    def tables(self, layout: PairLayout) -> list[Counts]:
        """The tables; ``ValueError`` if these are not as many cells as there should be."""
        if len(self.cells) != 8 * layout.cells:
            raise ValueError(f"{len(self.cells)} bytes where {8 * layout.cells} are due")
        return layout.tables(np.frombuffer(self.cells, dtype="<i8"))


class ExactPairs(NoisySumming, frozen=True, tag="exact_pairs"):
    """``[protocol] name = "exact_pairs"``; all options may be left out."""

    suppress_below: int | None = None
    noise: Literal["laplace", "gaussian"] | None = None
    noise_delta: float | None = None

    def rounds(self, study: Setting) -> tuple[type[Message], ...]:
        """Those of the sum."""
        return self.rounds_of_sum(study, confided=self.suppress_below is not None)

    def check(self, study: Setting) -> None:
        """The options must make sense."""
        parties = study.parties
        self.check_sum(study)
        self._check_options_of_noise(parties)
        if self.noise_epsilon is not None:
            self.agreed_noise(study)
        self.check_noise(study)
        if self.noise_epsilon is not None and self.suppress_below is not None:
            raise InputError(
                "noise_epsilon and suppress_below exclude each other: noisy counts need no "
                "suppression"
            )
        if self.suppress_below is not None and self.suppress_below < 2:
            raise InputError(f"suppress_below must be 2 or more, not {self.suppress_below}")
        if self.suppress_below is not None and self.suppress_below > parties:
            raise InputError(
                f"suppress_below is {self.suppress_below}, more than the {parties} parties: "
                "nothing could be published"
            )

    def _check_options_of_noise(self, parties: int) -> None:
        """`InputError` if they are given without the noise, or a δ that does not suit it."""
        for option in ("noise", "noise_delta"):
            if self.noise_epsilon is None and getattr(self, option) is not None:
                raise InputError(f"{option} goes with noise_epsilon, and only with it")
        if self.noise_delta is None:
            return
        if self.noise != "gaussian":
            raise InputError('noise_delta goes with noise = "gaussian", and only with it')
        if not 0 < self.noise_delta < 1 / parties:
            raise InputError(
                f"noise_delta lies between 0 and {1 / parties:.3g}, one in the number of parties, "
                f"not {self.noise_delta}: else one of them might be laid open whole"
            )

    def prospects(self, study: Setting) -> list[Prospect]:
        """Noise that covers the counts, or small counts that are most of them."""
        layout, n = PairLayout(study.schema.sizes), study.expected
        found, noise = super().prospects(study), self.agreed_noise(study)
        if noise is not None:
            people = n * len(layout.pairs) / layout.cells
            counts = of_noise(noise.standard_deviation(n), people, epsilon_for(noise, people, n))

            def spread_of(_pair: tuple[int, int], people: int) -> NoisyCounts:
                return NoisyCounts(people, noise.standard_deviation(people) ** 2, noise.tails)

            found += counts or of_dependences(study.schema.attributes, spread_of, n)
            found += self._of_the_other_noise(noise, _changed(layout), n)
        if self.suppress_below is not None:
            cells = [math.prod(study.schema.sizes[a] for a in pair) for pair in layout.pairs]
            found += of_suppression(self.suppress_below, n, cells)
        return found

    def _of_the_other_noise(self, noise: Noise, changed: int, n: int) -> list[Prospect]:
        """That the other kind of noise would be much smaller."""
        kinds = by_family(noise.epsilon, self._delta, changed, noise.honest, noise.cells)
        family, smaller = next(iter(kinds.items()))
        sizes = smaller.standard_deviation(n), noise.standard_deviation(n)
        return of_other_noise(family, *sizes, (smaller.delta, noise.delta))

    def largest_message_bytes(self, study: Setting) -> int:
        """That of the sum, or all tables."""
        layout, parties = PairLayout(study.schema.sizes), study.parties
        modulus = self._modulus(parties, self.agreed_noise(study))
        sums = self.largest_sum_message(study, layout.cells, modulus)
        return HEAD_BYTES + 8 * layout.cells + sums

    def disclosures(self, study: Setting) -> list[Disclosure]:
        """No ε bounds what an exact count may tell about one person; noise has its own."""
        names = study.schema.names
        noise = self.agreed_noise(study)
        if noise is None:
            return [
                ExactSum(
                    what="exact counts of pairs",
                    attributes=names,
                    crowd=self.hidden_among(study),
                    withstands=self.masks_withstand(study),
                    honest_coordinator=self.trusts_coordinator(study),
                    by="everybody" if self.suppress_below is None else "the coordinator",
                    **self.total_over(study),
                )
            ]
        # Another answer changes two cells of each table that the attribute is in.
        whole, one = _changed(PairLayout(study.schema.sizes)), 2 * (len(names) - 1)
        each = noise.of_one_answer(one)
        more = noise.chance_beyond(whole, noise.epsilon), noise.chance_beyond(one, each)
        return [
            NoisySum(
                what="noisy counts of pairs",
                attributes=names,
                epsilon=noise.epsilon,
                delta=noise.delta,
                withstands=self.withstands(study),
                honest_coordinator=self.trusts_coordinator(study),
                **self.total_over(study),
                by_answer=(each,) * len(names),
                beyond=max(more),
            )
        ]

    @property
    def _delta(self) -> float:
        return DELTA if self.noise_delta is None else self.noise_delta

    def cautions(self, study: Setting) -> list[Caution]:
        """Among them, what exact counts show."""
        if self.noise_epsilon is not None:
            return super().cautions(study)
        if self.suppress_below is not None:
            return [*_of_hiding(self.suppress_below), *super().cautions(study)]
        text = (
            "Exact counts are published: a count of 1 shows that someone with just these answers "
            "took part."
        )
        prevented = "noise_epsilon or suppress_below in [protocol]"
        return [Caution(text, prevented), *super().cautions(study)]

    def agreed_noise(self, study: Setting) -> Noise | None:
        """The noise of a run in which no more stay than must.

        In a secure sum, Laplace noise is reckoned for those who come. The Gaussian differs a little
        with their number, in what one answer costs, too: it is reckoned for the fewest.
        """
        layout, masked = PairLayout(study.schema.sizes), self.masked(study.expected)
        parties, staying = (study.expected, study.fewest) if masked else (study.parties, None)
        if self.noise == "gaussian" and not masked:
            parties = study.fewest
        return self._noise(layout, parties, staying, malicious=self.malicious(study))

    def _noise(
        self,
        layout: PairLayout,
        parties: int,
        staying: int | None = None,
        *,
        malicious: bool = False,
    ) -> Noise | None:
        """Another record changes two cells of each table by one."""
        if self.noise_epsilon is None:
            return None
        honest = self.honest(parties, staying, malicious=malicious)
        family = self.noise or "laplace"
        changed, cells = _changed(layout), layout.cells
        return noise_of(family, self.noise_epsilon, self._delta, changed, honest, cells)

    def _modulus(self, parties: int, noise: Noise | None) -> int:
        """Above any sum; with noise twice that, as it may be negative. Masks: a power of two."""
        least = parties + 1
        if noise is not None:
            least = 2 * (noise.unit * parties + noise.farthest(parties)) + 2
        return self.modulus_for(parties, least)

    def _noise_of(self, session: AnySession, layout: PairLayout) -> Noise | None:
        staying = session.fewest if self.masked(session.most) else None
        malicious, parties = self.malicious(session), self.crowd(session)
        if self.noise == "gaussian" and staying is None:
            parties = session.fewest
        return self._noise(layout, parties, staying, malicious=malicious)

    def _cells(self, layout: PairLayout, parties: int) -> int:
        """A masked sum without noise leaves out what follows from the rest."""
        free = self.masked(parties) and self.noise_epsilon is None
        return layout.free_count if free else layout.cells

    async def party(self, session: PartySession, schema: Schema, record: Record) -> PairCounts:
        """A party's part: its record goes in, the counts come out."""
        layout, crowd = PairLayout(schema.sizes), self.crowd(session)
        noise = self._noise_of(session, layout)
        modulus = self._modulus(crowd, noise)
        free = self._cells(layout, session.most) < layout.cells
        vector = layout.free_vector(record) if free else layout.indicator(record)
        if noise is not None:
            noisy = vector.astype(np.int64) * noise.unit + noise.draw(session.rng.fork("noise"))
            vector = (noisy % modulus).astype(np.uint64)
        confided = self.suppress_below is not None
        total = await self.add_party(
            session, vector, modulus,
            confided=confided,
            least_others=self.least_others(session),
        )  # fmt: skip
        if not confided:
            return self._counts(session, schema, total, noise)
        published = await session.hear(PublishedTables, check=self._in_order(layout, total.n))
        return self._suppressed(schema, published)

    async def coordinator(self, session: CoordinatorSession, schema: Schema) -> PairCounts:
        """The coordinator's part: it learns the counts, as everybody does (or more, see above)."""
        layout, crowd = PairLayout(schema.sizes), self.crowd(session)
        noise, cells = self._noise_of(session, layout), self._cells(layout, session.most)
        modulus = self._modulus(crowd, noise)
        below = self.suppress_below
        if below is None:
            total = await self.add_coordinator(session, cells, modulus)
            return self._counts(session, schema, total, noise)
        lost: dict[str, str] = {}

        async def suppressed() -> PublishedTables:
            total = await self.add_coordinator(session, cells, modulus, confided=True)
            lost.update(total.lost)
            shown = suppress(layout, _exact_tables(layout, total.values, total.n), below)
            flat = np.concatenate(shown, axis=None).astype("<i8").tobytes()
            return PublishedTables(total.n, flat)

        check = self._in_order(layout, None)
        published = await session.announce_made(PublishedTables, suppressed, check=check)
        return msgspec.structs.replace(self._suppressed(schema, published), lost=lost)

    def _in_order(self, layout: PairLayout, n: int | None) -> Check[PublishedTables]:
        def check(message: PublishedTables) -> None:
            if n is not None and message.n != n:
                raise ValueError(f"counts of {message.n} parties where the sum is over {n}")
            wrong = fault(layout, message.tables(layout), message.n, self.suppress_below or 0)
            if wrong is not None:
                raise ValueError(wrong)

        return check

    def _suppressed(self, schema: Schema, published: PublishedTables) -> PairCounts:
        tables = published.tables(PairLayout(schema.sizes))
        below = self.suppress_below or 0
        return PairCounts(published.n, schema, tables, suppressed_below=below)

    def _counts(
        self, session: AnySession, schema: Schema, total: Summed, noise: Noise | None
    ) -> PairCounts:
        layout, n = PairLayout(schema.sizes), total.n
        if noise is None:
            tables = session.shared(
                "tables",
                (total.values.tobytes(), n),
                lambda: _exact_tables(layout, total.values, n),
            )
            return PairCounts(n, schema, tables, lost=total.lost)
        tables = session.shared(
            "noisy tables",
            (total.values.tobytes(), n),
            lambda: _noisy_tables(layout, total, noise),
        )
        deviation, tails = noise.standard_deviation(n), noise.tails
        return PairCounts(n, schema, tables, noise=deviation, tails=tails, lost=total.lost)


def _changed(layout: PairLayout) -> int:
    """In how many cells another record may count: two of each table."""
    return 2 * len(layout.pairs)


def _of_hiding(below: int) -> list[Caution]:
    counts = "of 1" if below == 2 else f"from 1 to {below - 1}"
    return [
        Caution(
            "The coordinator sees exact counts, and is trusted to publish none that is below "
            f"{below} (suppress_below).",
            INSTEAD_OF_HIDING,
        ),
        Caution(
            f"Counts {counts} are hidden from anyone who takes the published numbers alone, of "
            "three attributes at a time; whether those of four and more together tell one is not "
            "checked. Which others are hidden with them follows from a public rule: who works "
            "through it may find some exactly.",
            INSTEAD_OF_HIDING,
        ),
        Caution(
            "Small counts are not hidden from those who take part. One dishonest party can add so "
            "much to the counts, unnoticed, that all of them are shown, and takes that off again; "
            "parties that pool what they know take off their own answers.",
            INSTEAD_OF_HIDING,
        ),
    ]


def _exact_tables(layout: PairLayout, values: Counts, n: int) -> list[Counts]:
    """The tables of an exact sum."""
    free = len(values) < layout.cells
    tables = layout.tables_of_free(values, n) if free else layout.tables(values)
    return checked_tables(tables, layout, n)


def _noisy_tables(layout: PairLayout, total: Summed, noise: Noise) -> list[Counts]:
    """The tables of a sum with noise in it, rounded to whole people."""
    values = total.values.astype(np.int64)
    values = np.where(values > total.modulus // 2, values - total.modulus, values)
    tables = layout.tables((values + noise.unit // 2) // noise.unit)
    wrong = layout.beyond_noise(
        tables, total.n, lambda cells, times: noise.bound(total.n, cells, times)
    )
    if wrong is not None:
        raise Misconduct(
            f"the sum is poisoned: {wrong}, which the noise that was agreed does not explain; some "
            "party did not add exactly one record and its noise (which one cannot be told)"
        )
    return tables


def checked_tables(
    tables: list[Counts], layout: PairLayout, n: int, *, margins_agree: bool = True
) -> list[Counts]:
    """The tables of a sum, if they can be those of n parties that each added what they should."""
    wrong = layout.inconsistency(tables, n, margins_agree=margins_agree)
    if wrong is not None:
        raise Misconduct(
            f"the sum is poisoned: {wrong}; some party did not add exactly one record "
            "(which one cannot be told, all inputs being hidden)"
        )
    return tables
