"""Means, variances and correlations of numbers: exact, with noise, or without small groups."""

import hashlib
import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import msgspec
import numpy as np

from mpc_rr.estimation.matrix import Array
from mpc_rr.estimation.number_moments import (
    NOTHING,
    Estimated,
    Jointly,
    Noisy,
    Spread,
    exact_jointly,
    exact_spread,
    noisy_count,
    noisy_spread,
)
from mpc_rr.estimation.power_sums import SPREAD, Group, Number, Sum, SumLayout
from mpc_rr.estimation.telling_sums import all_alike, few_off_an_end, without_ends
from mpc_rr.estimation.uncertainty import ExactCounts, NoisyCounts, Uncertainty
from mpc_rr.privacy.scaled_sums import ScaledSums
from mpc_rr.privacy.sentences import few_people
from mpc_rr.publication.crosstabs import axes
from mpc_rr.publication.ending import Draft, Ending, Setting, counting
from mpc_rr.publication.parts import (
    LISTING_NAME,
    Cell,
    Column,
    Figure,
    Kind,
    Listing,
    Participation,
    Publication,
    Quantity,
    Sheet,
    Table,
)
from mpc_rr.publication.sheets import csv_text
from mpc_rr.schema import Schema

ALL = "all"


@dataclass(frozen=True)
class Moments:
    """What is known of one number in one group, or among all."""

    attribute: str
    by: str | None
    """The attribute whose categories make the groups; None: all people."""
    category: str | None
    answered: Estimated
    """How many gave the number."""
    spread: Spread


class NumberMoments(Ending, frozen=True):
    """Sums over ``n`` parties, in the order of the layout's cells, with those over all people.

    Exact, unless noise of the standard deviation ``noise`` (in grains, of which ``grains`` are what
    one person may add) is in each, or those over groups below ``suppressed_below`` are None.
    """

    n: int
    schema: Schema
    sums: tuple[int | None, ...]
    pairs: bool = False
    tails: bool = False
    noise: float = 0.0
    grains: int = 0
    suppressed_below: int = 0

    def __repr__(self) -> str:
        return f"NumberMoments(n={self.n}, {len(self.sums)} sums)"

    @property
    def digest(self) -> bytes:
        """What parties compare to be sure that all have the same result."""
        told = msgspec.msgpack.encode((self.n, self.sums))
        return hashlib.sha256(b"mpc-rr exact_moments result\0" + told).digest()

    @property
    def exact(self) -> bool:
        """Whether every sum is shown as it is."""
        return not self.noise and not self.suppressed_below

    @property
    def layout(self) -> SumLayout:
        """Which sums these are."""
        return SumLayout(self.schema, self.pairs, self.tails, ends=not self.noise)

    def told(self) -> dict[Sum, int | None]:
        """The sums by what they are of."""
        layout = self.layout
        return dict(zip((*layout.cells, *layout.totals), self.sums, strict=True))

    # ── What follows ───────────────────────────────────────────────────────────────────────────

    def moments(self) -> tuple[Moments, ...]:
        """Of each number among all people, and by each attribute with categories."""
        return tuple(self._moments())

    def _moments(self) -> Iterator[Moments]:
        layout, reader = self.layout, self._reader()
        for number in layout.numbers:
            for group in (None, *layout.groups):
                count, spread = reader.spread(number, group)
                by, category = self._words(group)
                own = spread.scaled(number.step, number.value(0)).within(*number.range)
                yield Moments(number.attribute.name, by, category, count, own)

    def _words(self, group: Group | None) -> tuple[str | None, str | None]:
        if group is None:
            return None, None
        attribute = self.schema.attributes[group[0]]
        return attribute.name, attribute.categories[group[1]]

    def _reader(self) -> "_Exact | _WithNoise":
        if self.noise:
            return _WithNoise(self)
        return _Exact(self)

    def jointly(self) -> dict[tuple[str, str], Jointly]:
        """Covariance and correlation of each two numbers, where they were added up."""
        if not self.pairs:
            return {}
        layout, sums, found = self.layout, self.told(), {}
        for x, y in layout.both:
            told = [layout.count(sums, Sum(powers), self.n) for powers in layout.of_pair(x, y)]
            known = [value for value in told if value is not None]
            if len(known) == len(told):
                n, x1, x2, y1, y2, product = known
                both = exact_jointly(n, x1, x2, y1, y2, product)
                covariance = None if both.covariance is None else both.covariance * x.step * y.step
                joint = Jointly(n, covariance, both.correlation)
                found[x.attribute.name, y.attribute.name] = joint
        return found

    def estimate_of(self, attributes: tuple[int, ...]) -> tuple[Array, Uncertainty] | None:
        """Of the counts by one attribute, unless some are hidden."""
        if len(attributes) != 1 or attributes[0] not in self.layout.by:
            return None
        counts = self._counts(attributes[0])
        known = np.array([count for count in counts if count is not None])
        if len(known) < len(counts):
            return None
        if not self.noise:
            return known / self.n, ExactCounts(self.n)
        put_right = known - (known.sum() - self.n) / known.size
        return put_right / self.n, NoisyCounts(self.n, (self.noise / self.grains) ** 2)

    def _counts(self, place: int) -> list[float | int | None]:
        sums, scale = self.told(), self.grains if self.noise else 1
        found = (sums[Sum((), group)] for group in self.layout.groups_by(place))
        return [c if c is None or scale == 1 else c / scale for c in found]

    def participation(self, study: Setting) -> Participation:
        """Those who were there and not lost."""
        word: Literal["coordinator", "transcript"]
        word = "coordinator" if self.suppressed_below else "transcript"
        people = counting(super().participation(study), self.n)
        return msgspec.structs.replace(people, told_by=word)

    # ── What is published ──────────────────────────────────────────────────────────────────────

    def publish(self, study: Setting) -> Publication:
        """Each number among all and by category, how they go together, and the counts."""
        draft, found = Draft(), self.moments()
        draft.find(
            f"{self.n} of {study.expected} parties added up their numbers together.",
            counted=self.n,
            expected=study.expected,
        )
        self._say_how_exact(draft)
        with draft.part("the means"):
            for of_all in (one for one in found if one.by is None):
                _say_mean(draft, of_all, self.n)
                draft.quantities += _quantities(of_all, exact=not self.noise)
            for place in self.layout.by:
                self._publish_groups(draft, place, found)
            draft.sheets.append(_sheet(found))
        with draft.part("the correlations"):
            if self.pairs:
                self._publish_pairs(draft)
        with draft.part("the ends of the ranges"):
            self._publish_ends(draft)
        with draft.part("the counts"):
            draft.tables += [self._count_table(place) for place in self.layout.by]
        return draft.publication()

    def _say_how_exact(self, draft: Draft) -> None:
        if self.noise:
            spread = self.noise / self.grains
            draft.find(
                "Every sum has noise in it, in proportion to what one person may add: its standard "
                f"deviation is {spread:.3g} times that, {spread:.3g} people in a count.",
                noise_standard_deviation=spread,
            )
        if self.suppressed_below:
            told, layout = self.told(), self.layout
            hidden = sum(told[Sum((), group)] is None for group in layout.groups)
            untold = [x for x in layout.numbers if told[Sum(((x.place, 1),))] is None]
            of_them = "".join(f" Nothing is shown of {x.attribute.name} at all." for x in untold)
            draft.find(
                f"{hidden} groups are hidden: those in which fewer than {self.suppressed_below} "
                "people are or gave a number, or whose sums would show single people's numbers, "
                f"and those from which they would follow.{of_them} The coordinator saw the exact "
                "sums.",
                suppressed_below=self.suppressed_below,
                hidden_groups=hidden,
            )
        if self.exact:
            self._warn_of_telling(draft)

    def _warn_of_telling(self, draft: Draft) -> None:
        """Of sums that show single people's numbers."""
        layout, sums, few, all_same, all_but_few = self.layout, self.told(), 0, 0, 0
        for number, group in itertools.product(layout.numbers, (None, *layout.groups)):
            people = layout.count(sums, layout.answered(number, group), self.n) or 0
            total, squares = (sums[Sum(((number.place, p),), group)] or 0 for p in SPREAD)
            if people <= layout.few:
                few += people > 0
            elif all_alike(people, total, squares):
                all_same += 1
            else:
                all_but_few += few_off_an_end(number, people, total, squares, layout.few + 1)
        for number in layout.numbers if layout.ends else ():
            ends = {code: sums[Sum(at=(number.place, code))] or 0 for code in number.ends}
            people = layout.count(sums, layout.answered(number), self.n) or 0
            added = [people, *(sums[Sum(((number.place, p),))] or 0 for p in SPREAD)]
            others = [*without_ends(number, added, ends)]
            few += any(0 < rest[0] <= layout.few for rest in others)
            all_but_few += any(
                rest[0] > layout.few
                and few_off_an_end(number, rest[0], rest[1], rest[2], layout.few + 1)
                for rest in others
            )
        alike = "people who all gave the same number: everyone's is known"
        off = (
            "people of whom all but a few gave the lowest or the highest number: what these few "
            "gave follows"
        )
        of_few = f"{few_people(layout.few)}, whose numbers follow from them"
        for found, what in ((few, of_few), (all_same, alike), (all_but_few, off)):
            if found:
                draft.warn(
                    f"{found} {'sum is' if found == 1 else 'sums are'} over {what}. Sums are "
                    "published as they are (docs/threat-model.md)."
                )

    def _publish_groups(self, draft: Draft, place: int, found: tuple[Moments, ...]) -> None:
        attribute = self.schema.attributes[place]
        for number in self.layout.numbers:
            name = number.attribute.name
            rows = [m for m in found if (m.attribute, m.by) == (name, attribute.name)]
            listing = f"{name} by {attribute.name}"
            if LISTING_NAME.fullmatch(listing) is None:  # it becomes a file's name
                own = self.schema.names.index(name)
                listing = f"question {own + 1} by question {place + 1}"
            draft.listings.append(
                Listing(
                    name=listing,
                    title=f"{number.attribute.title()} by {attribute.title()}",
                    columns=_by_category(exact=not self.noise),
                    rows=tuple((m.category, *_row(m, exact=not self.noise)) for m in rows),
                    caption=_CAPTION,
                )
            )
            if all(m.spread.mean.low is None or m.spread.mean.low >= 0 for m in rows):
                title = "Points: means; lines: their 95 % limits for the population."
                draft.figures.append(Figure(kind="intervals", of=listing, title=title))

    def _publish_pairs(self, draft: Draft) -> None:
        rows: list[tuple[Cell, ...]] = []
        for pair, both in self.jointly().items():
            r = both.correlation
            rows.append((*pair, both.n, both.covariance, r.value, r.low, r.high))
        draft.listings.append(
            Listing(
                name="correlations", title="How the numbers go together", columns=_OF_PAIRS,
                rows=tuple(rows),
                caption="Of those who gave both numbers, exactly. Covariance divided by n − 1; "
                "limits of the correlation (95 %) for the population, by Fisher's transformation.",
            )
        )  # fmt: skip
        if len(self.layout.numbers) > 2:
            draft.figures.append(Figure(kind="heat_map", of="correlations"))

    def _publish_ends(self, draft: Draft) -> None:
        for cell, value in self.told().items():
            if cell.at is not None:
                attribute = self.schema.attributes[cell.at[0]]
                end = "lowest" if cell.at[1] == 0 else "highest"
                words = f"{attribute.text(cell.at[1])} or {'less' if end == 'lowest' else 'more'}"
                draft.quantities.append(
                    Quantity(
                        name=f"{end}.{attribute.name}",
                        label=f"who gave {words} as {attribute.title()}",
                        value=value, kind="count", speaks_of="respondents", main=False,
                    )
                )  # fmt: skip

    def _count_table(self, place: int) -> Table:
        attribute, counts = self.schema.attributes[place], self._counts(place)
        table = Table(
            name=attribute.name, axes=axes((attribute,)), kind="count", n=self.n,
            values=tuple(counts),
        )  # fmt: skip
        if not self.noise:
            return table
        spread = self.noise / self.grains
        limits = [noisy_count(Noisy(count or 0, spread**2), self.n) for count in counts]
        return msgspec.structs.replace(
            table,
            standard_errors=(spread,) * len(counts),
            low=tuple(one.low for one in limits),
            high=tuple(one.high for one in limits),
        )


# ── From sums to moments ───────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class _Exact:
    """Sums as they are, or hidden."""

    ending: NumberMoments

    @cached_property
    def _sums(self) -> dict[Sum, int | None]:
        return self.ending.told()

    def spread(self, number: Number, group: Group | None) -> tuple[Estimated, Spread]:
        """How many gave a number, and how it spreads."""
        place, layout = number.place, self.ending.layout
        count = layout.count(self._sums, layout.answered(number, group), self.ending.n)
        powers = (1, 2, 3, 4) if self.ending.tails else (1, 2)
        told = [self._sums[Sum(((place, power),), group)] for power in powers]
        known = [value for value in told if value is not None]
        if count is None or len(known) < len(told):
            return Estimated(), NOTHING
        total, squares, *rest = known
        tails = (rest[0], rest[1]) if rest else None
        return Estimated(count, 0.0, count, count), exact_spread(count, total, squares, tails)


@dataclass(frozen=True)
class _WithNoise:
    """Sums in grains, with noise; those over all people are of several."""

    ending: NumberMoments

    @cached_property
    def _sums(self) -> dict[Sum, int | None]:
        return self.ending.told()

    @cached_property
    def _scaled(self) -> ScaledSums:
        return ScaledSums(self.ending.layout, self.ending.grains)

    def _noisy(self, cell: Sum) -> Noisy:
        """A sum in its own unit, with its noise and what rounding adds."""
        ending, layout = self.ending, self.ending.layout
        if cell == Sum():
            return Noisy(ending.n, 0.0)
        parts = len(layout.whole) if cell in layout.totals else 1
        grain = self._scaled.grain(cell)
        variance = parts * ending.noise**2 + self._scaled.rounding(cell, ending.n)
        return Noisy((self._sums[cell] or 0) * grain, variance * grain**2)

    def spread(self, number: Number, group: Group | None) -> tuple[Estimated, Spread]:
        """How many gave a number, and how it spreads, as far as the noise lets that be told."""
        count = self._noisy(self.ending.layout.answered(number, group))
        total, squares = (self._noisy(Sum(((number.place, p),), group)) for p in (1, 2))
        answered = noisy_count(count, self.ending.n)
        return answered, noisy_spread(count, total, squares, number.reach)


# ── In rows ────────────────────────────────────────────────────────────────────────────────────


def _columns(*columns: tuple[str, str, Kind]) -> tuple[Column, ...]:
    return tuple(Column(name=name, label=label, kind=kind) for name, label, kind in columns)


_OF_MEANS: tuple[tuple[str, str, Kind], ...] = (
    ("mean", "mean", "number"),
    ("standard_error", "standard error", "number"),
    ("low", "95 % from", "limit"),
    ("high", "to", "limit"),
    ("standard_deviation", "standard deviation", "number"),
)


def _by_category(*, exact: bool) -> tuple[Column, ...]:
    """A count with noise in it is shown as it came out: it may be negative."""
    return _columns(
        ("category", "category", "text"),
        ("answered", "answered", "count" if exact else "number"),
        *_OF_MEANS,
    )


_OF_PAIRS = _columns(
    ("attribute_1", "number", "attribute"), ("attribute_2", "with", "attribute"),
    ("answered", "gave both", "count"), ("covariance", "covariance", "number"),
    ("r", "correlation", "degree"), ("low", "95 % from", "limit"), ("high", "to", "limit"),
)  # fmt: skip
_CAPTION = (
    "Standard errors and limits of means (95 %) are for the population; standard deviations divide "
    "by n − 1. moments/all.csv has more digits, variances, and limits for these very people."
)


def _row(one: Moments, *, exact: bool) -> tuple[Cell, ...]:
    mean, deviation = one.spread.mean, one.spread.variance.root
    people = one.answered.value
    answered: Cell = int(people) if exact and people is not None else people
    return answered, mean.value, mean.standard_error, mean.low, mean.high, deviation.value


def _say_mean(draft: Draft, one: Moments, n: int) -> None:
    """In a sentence, with limits for the population."""
    mean, name, people = one.spread.mean, one.attribute, one.answered.value
    if mean.value is None:
        draft.find(f"The mean of {name} cannot be told.")
        return
    between = (
        f" (95 % for the population: {mean.low:,.6g} to {mean.high:,.6g})"
        if mean.low is not None and mean.high is not None
        else ""
    )
    gave = "" if people == n or people is None else f", of about {people:,.0f} who gave it"
    gave = gave.replace("about ", "") if one.answered.standard_error == 0 else gave
    text = f"The mean of {name} is {mean.value:,.6g}{between}{gave}."
    draft.find(text, mean=mean.value, low=mean.low, high=mean.high)


def _quantities(one: Moments, *, exact: bool) -> list[Quantity]:
    """Of all people together."""
    name, spread, people = one.attribute, one.spread, one.answered.value
    gave = int(people) if exact and people is not None else people

    def of(what: str, label: str, found: Estimated, *, here: bool = False) -> Quantity:
        told = Estimated(found.value) if here and exact else found
        return Quantity(
            name=f"{what}.{name}", label=f"{label}: {name}", value=told.value,
            standard_error=told.standard_error, low=told.low, high=told.high,
            speaks_of="respondents" if here else "population",
            main=what in ("mean", "standard_deviation"),
        )  # fmt: skip

    answered = msgspec.structs.replace(
        of("answered", "how many gave it", one.answered, here=True), value=gave
    )
    found = [
        answered,
        of("mean", "mean", spread.mean),
        of("standard_deviation", "standard deviation (n − 1)", spread.variance.root),
        of("variance", "variance (n − 1)", spread.variance),
        of("variance_here", "variance (n) of these people", spread.variance_here, here=True),
    ]
    if not exact:
        found.insert(2, of("mean_here", "mean of these people", spread.mean_here, here=True))
    return found


def _sheet(found: tuple[Moments, ...]) -> Sheet:
    """All of it, in as many digits as there are."""
    parts = ("", "_standard_error", "_low", "_high")
    kinds = ("mean", "variance", "mean_here", "variance_here")
    head: list[object] = ["attribute", "by", "category", "answered"]
    head += [kind + part for kind in kinds for part in parts]
    lines: list[list[object]] = [head]
    for one in found:
        line: list[object] = [one.attribute, one.by or ALL, one.category or "", one.answered.value]
        for kind in kinds:
            told: Estimated = getattr(one.spread, kind)
            line += [told.value, told.standard_error, told.low, told.high]
        lines.append(line)
    return Sheet.of(
        "moments/all.csv", "means and variances of all numbers, in all groups", csv_text(lines)
    )
