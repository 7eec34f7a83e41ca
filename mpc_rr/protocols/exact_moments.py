"""Exact sums of numbers: means, variances and correlations, of all people and by category.

1. A party counts each of its numbers in steps from the middle of the range that the study states.
   Its vector holds its numbers and their squares; where the study also asks for categories, in the
   places of its own categories, with a 1 to count it, and 0 in those of all others.
2. If the study says so, the party cuts each part into grains and adds its share of noise.
3. The secure sum (or the masked sum) adds the vectors of all parties.
4. Everybody gets the sums; means and variances follow. Nobody gets any record.

The range bounds what a party adds, and the modulus is above what all can add together: nothing
overflows. No paper has this protocol; the sum is paper 000's (§4.2).

Exact sums are published. From those over one or two people (with fourth powers, up to four) their
numbers follow, and whoever knows all numbers but one learns that one. A study can avoid that as in
`exact_pairs`:

* ``noise_epsilon``: nobody sees an exact sum, not even the coordinator. All sums together are
  (ε, δ)-private even if a share ``noise_corrupt`` of the parties pool all they know.
* ``suppress_below``: sums go to the coordinator alone, which publishes none over fewer people.

Trust: as in the sum that is used; and every party is believed to add one record. A dishonest one
can add any amount to any sum.
"""

from collections.abc import Collection, Mapping
from typing import ClassVar

import msgspec
import numpy as np

from mpc_rr.errors import InputError, Misconduct
from mpc_rr.estimation.power_sums import Group, Number, Sum, SumLayout, Sums
from mpc_rr.estimation.small_groups import groups_to_hide, small_rest
from mpc_rr.estimation.telling_sums import telling as telling_sums
from mpc_rr.estimation.telling_sums import without_ends
from mpc_rr.network.envelope import Message, Way
from mpc_rr.network.session import AnySession, Check, CoordinatorSession, PartySession
from mpc_rr.network.vectors import Residues
from mpc_rr.privacy.disclosures import Caution, Disclosure, ExactNumbers, NoisySum
from mpc_rr.privacy.noise import NoiseShares
from mpc_rr.privacy.scaled_sums import ScaledSums
from mpc_rr.privacy.sentences import numbers_follow
from mpc_rr.protocols.interface import HEAD_BYTES
from mpc_rr.protocols.prospects import Prospect, of_noisy_numbers, of_small_groups
from mpc_rr.protocols.sums.choice import Summed
from mpc_rr.protocols.sums.noisy import NoisySumming
from mpc_rr.publication.ending import Setting
from mpc_rr.publication.moments import NumberMoments
from mpc_rr.publication.parts import Note
from mpc_rr.randomness import Randomness
from mpc_rr.schema import Record, Schema

MOST_BITS = 62
"""So many a sum may have: results are signed words, and secure sums add up a few."""
CELL_BYTES = 9
MOST_SUMS = 1_000_000
"""So many there may be: each party adds to all of them, and everybody holds them."""
UNPROVED = Note(
    text="Nobody has to prove that they added exactly one record. One dishonest party can move any "
    "sum, and with it any mean, as long as it remains possible (docs/threat-model.md)."
)
INSTEAD_OF_HIDING = "noise_epsilon in [protocol]"


Told = Mapping[Sum, int | None]


class PublishedSums(Message, frozen=True):
    """Coordinator → everyone: the sums, without those over few people (None)."""

    step: ClassVar[str] = "published_sums"
    doing: ClassVar[str] = "the coordinator publishes the sums without small groups"
    way: ClassVar[Way] = "announce"
    n: int
    sums: tuple[int | None, ...]


class ExactMoments(NoisySumming, frozen=True, tag="exact_moments"):
    """``[protocol] name = "exact_moments"``; all options may be left out."""

    publishes_values: ClassVar[bool] = True
    numbers_may_be_missing: ClassVar[bool] = True

    suppress_below: int | None = None
    pairs: bool = False
    """Products of each two numbers, too: for covariances and correlations."""
    fourth_powers: bool = False
    """Third and fourth powers, too: for limits of variances."""

    def rounds(self, study: Setting) -> tuple[type[Message], ...]:
        """Those of the sum."""
        return self.rounds_of_sum(study, confided=self.suppress_below is not None)

    def layout(self, schema: Schema) -> SumLayout:
        """Which sums there are."""
        noisy = self.noise_epsilon is not None
        return SumLayout(schema, self.pairs, self.fourth_powers, ends=not noisy)

    # ── What makes sense ───────────────────────────────────────────────────────────────────────

    def check(self, study: Setting) -> None:
        """The options must make sense, and no sum overflow."""
        layout = self.layout(study.schema)
        if not layout.numbers:
            raise InputError(
                'no attribute is a number; give one type = "numeric" with lowest and highest, or '
                "take exact_pairs, which counts categories"
            )
        if layout.size > MOST_SUMS:
            raise InputError(
                f"{layout.size:,} sums would be added up, and {MOST_SUMS:,} are possible: ask for "
                "fewer numbers or categories"
            )
        if self.pairs and not layout.both:
            raise InputError("pairs = true needs two numbers; the schema has one")
        self.check_sum(study)
        if self.noise_epsilon is not None:
            self._check_options_beside_noise()
            self.agreed_noise(study)
        self.check_noise(study)
        if self.suppress_below is not None:
            self._check_suppression(study, layout, self.suppress_below)
        self._check_bits(study, layout)

    def _check_options_beside_noise(self) -> None:
        for option in ("pairs", "fourth_powers"):
            if getattr(self, option):
                raise InputError(
                    f"{option} and noise_epsilon exclude each other: each further sum would take "
                    "its part of ε from the means"
                )
        if self.suppress_below is not None:
            raise InputError(
                "noise_epsilon and suppress_below exclude each other: noisy sums need no "
                "suppression"
            )

    def _check_suppression(self, study: Setting, layout: SumLayout, below: int) -> None:
        if self.fourth_powers:
            raise InputError(
                "fourth_powers and suppress_below exclude each other: from third and fourth powers "
                "the numbers of those few follow who did not give an end of the range"
            )
        if below <= layout.few:
            follow = numbers_follow(layout.few)
            raise InputError(
                f"suppress_below must be {layout.few + 1} or more, not {below}: "
                f"{follow[0].lower()}{follow[1:]}"
            )
        if below > study.parties:
            raise InputError(
                f"suppress_below is {below}, more than the {study.parties} parties: nothing could "
                "be published"
            )
        if len(layout.by) > 1:
            raise InputError(
                "suppress_below goes with one attribute that has categories: what groups by "
                f"{len(layout.by)} of them tell together is not checked; ask for one, or take "
                "noise_epsilon"
            )
        gaps = [x.attribute.name for x in layout.numbers if x.optional]
        if self.pairs and gaps:
            raise InputError(
                f"pairs and suppress_below exclude each other where a number may be missing "
                f"({gaps[0]!r}): sums over those who gave both would show those who gave one"
            )
        counted = [x for x in layout.numbers if x.attribute.answers_possible <= layout.few + 1]
        if self.pairs and counted:
            raise InputError(
                f"pairs and suppress_below exclude each other where a number has as few possible "
                f"answers as {counted[0].attribute.name!r}: products tell of those who gave one of "
                "them, who may be few; make it an attribute with categories"
            )

    def _check_bits(self, study: Setting, layout: SumLayout) -> None:
        """`InputError` if a sum, or a few residues of one, might not fit a word."""
        parties, masked = study.expected, self.masked(study.expected)
        modulus = self._modulus(layout, parties, self._agreed(study, layout))
        largest = modulus if masked else modulus * (parties + 1)
        if largest.bit_length() <= MOST_BITS + (0 if masked else 1):
            return
        worst = max(layout.numbers, key=lambda x: x.reach)
        power = "fourth powers" if self.fourth_powers else "squares"
        raise InputError(
            f"the {power} of {parties:,} numbers up to {2 * worst.reach:,} steps apart may add up "
            f"to more than {MOST_BITS} binary digits; take a larger step for "
            f"{worst.attribute.name!r}"
            + (", or leave fourth_powers out" if self.fourth_powers else "")
        )

    def prospects(self, study: Setting) -> list[Prospect]:
        """Noise that covers the means, or groups that are too small to be shown."""
        layout, noise = self.layout(study.schema), self.agreed_noise(study)
        found, n = super().prospects(study), study.expected
        if noise is not None:
            most_groups = max((len(layout.groups_by(place)) for place in layout.by), default=1)
            scaled = self.scaled(layout)
            spread = noise.standard_deviation(n) / scaled.grains
            found += of_noisy_numbers(spread, n / most_groups, n)
        if self.suppress_below is not None:
            found += of_small_groups(self.suppress_below, n, len(layout.groups))
        return found

    def largest_message_bytes(self, study: Setting) -> int:
        """That of the sum, or all sums."""
        layout = self.layout(study.schema)
        modulus = self._modulus(layout, study.parties, self._agreed(study, layout))
        published = CELL_BYTES * (len(layout.cells) + len(layout.totals))
        return HEAD_BYTES + published + self.largest_sum_message(study, len(layout.cells), modulus)

    # ── What it costs ──────────────────────────────────────────────────────────────────────────

    def disclosures(self, study: Setting) -> list[Disclosure]:
        """No ε bounds what an exact sum may tell about one person; noise has its own."""
        names, noise = study.schema.names, self.agreed_noise(study)
        if noise is None:
            return [
                ExactNumbers(
                    what="exact sums of numbers",
                    attributes=names,
                    crowd=self.hidden_among(study),
                    withstands=self.masks_withstand(study),
                    honest_coordinator=self.trusts_coordinator(study),
                    by="everybody" if self.suppress_below is None else "the coordinator",
                    few=self.layout(study.schema).few,
                    **self.total_over(study),
                )
            ]
        scaled = self.scaled(self.layout(study.schema))
        return [
            NoisySum(
                what="noisy sums of numbers",
                attributes=names,
                epsilon=noise.epsilon,
                delta=noise.delta,
                withstands=self.withstands(study),
                honest_coordinator=self.trusts_coordinator(study),
                **self.total_over(study),
                by_answer=tuple(
                    noise.of_one_answer(scaled.of_answer(place)) for place in range(len(names))
                ),
            )
        ]

    def cautions(self, study: Setting) -> list[Caution]:
        """Among them, what exact sums show."""
        found = super().cautions(study)
        if self.noise_epsilon is not None:
            return found
        if self.suppress_below is not None:
            return [*_of_hiding(self.suppress_below), *found]
        text = (
            f"Exact sums are published. {numbers_follow(self.layout(study.schema).few)}; of a few "
            "more, little is left open; and where all in a group gave the same number, everyone's "
            "follows."
        )
        return [Caution(text, "noise_epsilon or suppress_below in [protocol]"), *found]

    def notes(self, study: Setting) -> tuple[Note, ...]:
        """What a sum does not promise."""
        return (UNPROVED, *super().notes(study)[1:])

    # ── Noise ──────────────────────────────────────────────────────────────────────────────────

    def scaled(self, layout: SumLayout) -> ScaledSums:
        """The sums in grains, as the noise for this ε wants them."""
        assert self.noise_epsilon is not None
        return ScaledSums.of(layout, self.noise_epsilon)

    def agreed_noise(self, study: Setting) -> NoiseShares | None:
        """The noise of a run in which no more stay than must."""
        return self._agreed(study, self.layout(study.schema))

    def _agreed(self, study: Setting, layout: SumLayout) -> NoiseShares | None:
        masked = self.masked(study.expected)
        parties, staying = (study.expected, study.fewest) if masked else (study.parties, None)
        return self._noise(layout, parties, staying, malicious=self.malicious(study))

    def _noise_of(self, session: AnySession, layout: SumLayout) -> NoiseShares | None:
        staying = session.fewest if self.masked(session.most) else None
        malicious = self.malicious(session)
        return self._noise(layout, self.crowd(session), staying, malicious=malicious)

    def _noise(
        self, layout: SumLayout, parties: int, staying: int | None, *, malicious: bool
    ) -> NoiseShares | None:
        """Of all sums together: another record moves them by the sensitivity, in grains."""
        epsilon = self.noise_epsilon
        if epsilon is None:
            return None
        if not epsilon > 0:
            raise InputError(f"noise_epsilon must be positive, not {epsilon}")
        moved = self.scaled(layout).sensitivity
        honest = self.honest(parties, staying, malicious=malicious)
        return NoiseShares(epsilon, moved, honest, len(layout.cells))

    def _modulus(self, layout: SumLayout, parties: int, noise: NoiseShares | None) -> int:
        """Above twice what all can add together, with either sign. Masks: a power of two."""
        if noise is None:
            return self.modulus_for(parties, 2 * parties * layout.most + 2)
        added = parties * self.scaled(layout).grains + noise.farthest(parties)
        return self.modulus_for(parties, 2 * added + 2)

    # ── The parts of party and coordinator ─────────────────────────────────────────────────────

    def vector(
        self, layout: SumLayout, record: Record, noise: NoiseShares | None, rng: Randomness
    ) -> list[int]:
        """What a party adds."""
        if noise is None:
            return layout.added_by(record)
        rounded = self.scaled(layout).rounded(record, rng.fork("rounding"))
        return [int(value) for value in rounded + noise.draw(rng.fork("noise"))]

    async def party(self, session: PartySession, schema: Schema, record: Record) -> NumberMoments:
        """A party's part: its record goes in, the sums come out."""
        layout = self.layout(schema)
        noise = self._noise_of(session, layout)
        modulus = self._modulus(layout, self.crowd(session), noise)
        vector = self.vector(layout, record, noise, session.rng)
        confided = self.suppress_below is not None
        total = await self.add_party(
            session,
            _residues(vector, modulus),
            modulus,
            confided=confided,
            least_others=self.least_others(session),
        )
        if not confided:
            return self._ending(session, schema, total, noise)
        published = await session.hear(
            PublishedSums, check=self._in_order(session, layout, total.n)
        )
        return self._suppressed(schema, published)

    async def coordinator(self, session: CoordinatorSession, schema: Schema) -> NumberMoments:
        """The coordinator's part: it learns the sums, as everybody does (or more, see above)."""
        layout = self.layout(schema)
        noise = self._noise_of(session, layout)
        modulus = self._modulus(layout, self.crowd(session), noise)
        cells, below = len(layout.cells), self.suppress_below
        if below is None:
            total = await self.add_coordinator(session, cells, modulus)
            return self._ending(session, schema, total, noise)
        lost: dict[str, str] = {}

        async def suppressed() -> PublishedSums:
            total = await self.add_coordinator(session, cells, modulus, confided=True)
            lost.update(total.lost)
            sums = _checked(layout, _signed(total), total.n)
            return PublishedSums(total.n, shown_sums(layout, sums, total.n, below))

        check = self._in_order(session, layout, None)
        published = await session.announce_made(PublishedSums, suppressed, check=check)
        return msgspec.structs.replace(self._suppressed(schema, published), lost=lost)

    def _ending(
        self, session: AnySession, schema: Schema, total: Summed, noise: NoiseShares | None
    ) -> NumberMoments:
        layout, values = self.layout(schema), _signed(total)
        made = NumberMoments(
            total.n, schema, (), pairs=self.pairs, tails=self.fourth_powers, lost=total.lost
        )
        if noise is None:
            sums = session.shared(
                "sums", (tuple(values), total.n), lambda: _checked(layout, values, total.n)
            )
            return msgspec.structs.replace(made, sums=tuple(sums.values()))
        scaled = self.scaled(layout)
        check_noisy(layout, values, total.n, noise, scaled.grains)
        return msgspec.structs.replace(
            made,
            sums=tuple(layout.read(values).values()),
            noise=noise.standard_deviation(total.n),
            grains=scaled.grains,
        )

    def _in_order(
        self, session: AnySession, layout: SumLayout, n: int | None
    ) -> Check[PublishedSums]:
        def check(message: PublishedSums) -> None:
            if n is not None and message.n != n:
                raise ValueError(f"sums over {message.n} parties where there were {n}")
            wrong = session.shared(
                "sums that may be shown",
                (message.sums, message.n),
                lambda: fault_of_shown(layout, message.sums, message.n, self.suppress_below or 0),
            )
            if wrong is not None:
                raise ValueError(wrong)

        return check

    def _suppressed(self, schema: Schema, published: PublishedSums) -> NumberMoments:
        return NumberMoments(
            published.n, schema, published.sums, pairs=self.pairs, tails=self.fourth_powers,
            suppressed_below=self.suppress_below or 0,
        )  # fmt: skip


def _of_hiding(below: int) -> list[Caution]:
    return [
        Caution(
            "The coordinator sees exact sums, and is trusted to publish none over fewer than "
            f"{below} people (suppress_below).",
            INSTEAD_OF_HIDING,
        ),
        Caution(
            "Groups are hidden from readers only. Which others are hidden with the small ones "
            "follows from a public rule; how many of a group that is shown gave no number is "
            "shown, too; and a dishonest party that adds people to a group can have it shown, and "
            "takes them off again.",
            INSTEAD_OF_HIDING,
        ),
    ]


# ── Sums that go on the wire, and come back ────────────────────────────────────────────────────


def _residues(vector: list[int], modulus: int) -> Residues:
    return np.array([value % modulus for value in vector], dtype=np.uint64)


def _signed(total: Summed) -> list[int]:
    """The sums, of which those above half of the modulus are below 0."""
    values = [int(value) for value in total.values]
    return [v - total.modulus if v > total.modulus // 2 else v for v in values]


def _checked(layout: SumLayout, values: list[int], n: int) -> dict[Sum, int]:
    """The sums, if n parties that each added a record can have these."""
    sums = layout.read(values)
    wrong = layout.fault(sums, n)
    if wrong is not None:
        raise Misconduct(
            f"the sum is poisoned: {wrong}; some party did not add exactly one record "
            "(which one cannot be told, all inputs being hidden)"
        )
    return sums


def check_noisy(
    layout: SumLayout, values: list[int], n: int, noise: NoiseShares, grains: int
) -> None:
    """`Misconduct` if a sum is beyond what all can add, or counts differ from n, by more than the
    noise can be. All these tests together accuse one honest study in 2⁴⁰."""
    times = len(layout.cells) + len(layout.by)
    far = n * grains + noise.bound(n, 1, times)
    wrong = any(abs(value) > far for value in values)
    sums = layout.read(values)
    for place in layout.by:
        groups = layout.groups_by(place)
        counted = sum(sums[Sum((), group)] for group in groups)
        wrong = wrong or abs(counted - n * grains) > noise.bound(n, len(groups), times)
    if wrong:
        raise Misconduct(
            "the sum is poisoned: it is further from possible than the noise that was agreed "
            "explains; some party did not add one record and its noise (which one cannot be told)"
        )


# ── Without small groups ───────────────────────────────────────────────────────────────────────


def shown_sums(layout: SumLayout, sums: Sums, n: int, below: int) -> tuple[int | None, ...]:
    """The sums that are over enough people, and do not tell of others that are not."""
    untold = _untold(layout, sums, n, below)

    def telling(groups: Collection[int]) -> bool:
        among = [layout.groups[g] for g in groups]
        return any(
            telling_sums(x, _added_among(layout, sums, x, among), below)
            for x in layout.numbers
            if x.place not in untold
        )

    hidden = groups_to_hide(_people(layout, sums), below, telling)
    away = {group for g, group in enumerate(layout.groups) if g in hidden or n < below}
    ends = _ends_to_hide(layout, sums, n, below)
    return tuple(
        None
        if cell.group in away or any(place in untold for place in _places(cell)) or cell in ends
        else value
        for cell, value in sums.items()
    )


def _places(cell: Sum) -> set[int]:
    """Of which numbers a sum is."""
    return {place for place, _ in cell.powers} | ({cell.at[0]} if cell.at else set())


def _ends_to_hide(layout: SumLayout, sums: Sums, n: int, below: int) -> set[Sum]:
    """Counts of those who gave an end of a range, where these or all others are few.

    And where all counts would follow with them, but do not from the other sums; or sums over the
    others that tell.
    """
    hidden: set[Sum] = set()
    for number in layout.numbers:
        ends = {code: Sum(at=(number.place, code)) for code in number.ends if layout.ends}
        hidden |= {end for end in ends.values() if 0 < sums[end] < below}
        shown = {code: sums[end] for code, end in ends.items() if end not in hidden}
        added = _added_by_all(layout, sums, number, n)
        if (
            _ends_complete(layout, number)
            or small_rest(added[0], shown.values(), below)
            or any(telling_sums(number, rest, below) for rest in without_ends(number, added, shown))
        ):
            hidden |= set(ends.values())
    return hidden


def _ends_complete(layout: SumLayout, number: Number) -> bool:
    """Whether how many gave each number follows if the counts of its ends are shown, only then."""
    without = number.attribute.answers_possible - (1 + len(layout.powers))
    return 0 < without <= len(number.ends)


def _added_among(
    layout: SumLayout, sums: Sums, number: Number, groups: Collection[Group]
) -> list[int]:
    """How many in these groups gave a number, their sum, and those of its powers."""
    added = layout.added(number)
    return [sum(sums[cell.over(group)] for group in groups) for cell in added]


def _added_by_all(layout: SumLayout, sums: Told, number: Number, n: int) -> list[int]:
    """The same of all people."""
    return [layout.count(sums, cell, n) or 0 for cell in layout.added(number)]


def _people(layout: SumLayout, sums: Sums) -> list[list[int]]:
    """Group by group: how many there are, and how many gave each number."""
    return [[sums[cell.over(group)] for cell in _counted(layout)] for group in layout.groups]


def _counted(layout: SumLayout) -> list[Sum]:
    """Counts in each group: of all, and of those who gave each number that is optional."""
    return [Sum(), *(layout.answered(x) for x in layout.numbers if x.optional)]


def _untold(layout: SumLayout, sums: Sums, n: int, below: int) -> set[int]:
    """Numbers of which nothing may be shown: too few gave them, or the sums over all tell."""
    found = set()
    for number in layout.numbers:
        added = _added_by_all(layout, sums, number, n)
        if 0 < added[0] < below or telling_sums(number, added, below):
            found.add(number.place)
    return found


def fault_of_shown(
    layout: SumLayout, shown: tuple[int | None, ...], n: int, below: int
) -> str | None:
    """Why this is not what may be published of sums over n people, or None."""
    cells = (*layout.cells, *layout.totals)
    if len(shown) != len(cells):
        return f"{len(shown)} sums where {len(cells)} are due"
    told = dict(zip(cells, shown, strict=True))
    for cell, value in told.items():
        if value is None:
            continue
        if abs(value) > n * layout.largest(cell):
            return "a sum is larger than this many people can have"
        counts = all(power == 0 for _, power in cell.powers)
        if counts and (value < 0 or 0 < value < below):
            return f"a count of {value} is shown, and suppress_below is {below}"
    return _fault_of_hiding(layout, told) or _fault_of_what_follows(layout, told, n, below)


def _hidden(layout: SumLayout, told: Told) -> tuple[set[Group], set[int]]:
    """Groups and numbers of which nothing is shown."""
    away = {group for group in layout.groups if told[Sum((), group)] is None}
    return away, {x.place for x in layout.numbers if told[Sum(((x.place, 1),))] is None}


def _fault_of_hiding(layout: SumLayout, told: Told) -> str | None:
    """Hidden are all sums over a group or of a number, or none; and any end of a range."""
    away, untold = _hidden(layout, told)
    for cell, value in told.items():
        of_number = bool(_places(cell) & untold)
        if value is not None and cell.group in away:
            return "sums over a group are shown whose count is hidden"
        if value is not None and of_number:
            return "sums of a number are shown whose sum over all is hidden"
        if value is None and cell.at is None and cell.group not in away and not of_number:
            return "a sum is hidden, and others over the same group are shown"
    return None


def _fault_of_what_follows(layout: SumLayout, told: Told, n: int, below: int) -> str | None:
    """What is shown must not tell of few people, nor what is left of the sums over all."""
    away, untold = _hidden(layout, told)
    known = {cell: value for cell, value in told.items() if value is not None}
    there = [group for group in layout.groups if group not in away]
    for cell in _counted(layout) if layout.by else []:
        if _places(cell) & untold:
            continue
        everybody = layout.count(known, cell, n) or 0
        left = everybody - sum(known[cell.over(g)] for g in there)
        if 0 < left < below <= everybody:
            gave = " who gave a number" if cell.powers else ""
            return f"the hidden groups are {left} people together{gave}"
    for number in (x for x in layout.numbers if x.place not in untold):
        whole = _added_by_all(layout, known, number, n)
        shown = [_added_among(layout, known, number, [group]) for group in there]
        hidden = [everybody - sum(parts) for everybody, *parts in zip(whole, *shown, strict=True)]
        if any(telling_sums(number, sums, below) for sums in (whole, *shown, hidden)):
            return f"the sums of {number.attribute.name!r} show single people's numbers"
        ends = {code: Sum(at=(number.place, code)) for code in number.ends}
        at_ends = {code: known[end] for code, end in ends.items() if end in known}
        if at_ends and _ends_complete(layout, number):
            return f"with its ends, how many gave each {number.attribute.name!r} follows"
        if small_rest(whole[0], at_ends.values(), below):
            return f"few gave another {number.attribute.name!r} than an end of its range"
        if any(telling_sums(number, rest, below) for rest in without_ends(number, whole, at_ends)):
            return f"without its ends, sums of {number.attribute.name!r} show single people's"
    return None
