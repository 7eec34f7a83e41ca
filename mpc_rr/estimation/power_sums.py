"""Sums of powers of numbers, over all people and by category: what means and variances follow from.

A number is counted in steps from the middle of its range, so that sums are as small as can be and
whole. Who gave no number adds nothing, and is missing from the count of those who did. By each
attribute with categories there are, for each category, how many chose it and the sums of each
number among them; sums over all people follow from these.

=======================  =========================================================================
``powers``               a person in the group adds
=======================  =========================================================================
``()``                   1
``((x, 0),)``            1, if she gave a number x
``((x, 1),)``            her number x, if she gave one; so with 2, 3, 4
``((x, 1), (y, 1))``     the product of both, if she gave both
=======================  =========================================================================
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from mpc_rr.schema import Attribute, Record, Schema

Group = tuple[int, int]
"""An attribute's place in the schema, and one of its categories."""
Powers = tuple[tuple[int, int], ...]
"""Of which numbers, by their places in the schema, and how high."""
Sums = Mapping["Sum", int]
SPREAD, TAILS = (1, 2), (1, 2, 3, 4)
OF_PAIR = ((0, 0), (1, 0), (2, 0), (0, 1), (0, 2), (1, 1))
"""Powers of two numbers that are summed over those who gave both."""


@dataclass(frozen=True)
class Sum:
    """One sum over the people in a group, or over all."""

    powers: Powers = ()
    group: Group | None = None
    at: Group | None = None
    """Only over those whose number has this code."""

    def over(self, group: Group | None) -> "Sum":
        """The same over another group."""
        return Sum(self.powers, group)


@dataclass(frozen=True)
class Number:
    """A numeric attribute as it is added up: in steps from the middle of its range."""

    place: int
    attribute: Attribute

    @property
    def middle(self) -> int:
        """The code from which steps are counted."""
        return (self.attribute.answers_possible - 1) // 2

    @property
    def reach(self) -> int:
        """So many steps an answer may be from there."""
        return self.attribute.answers_possible - 1 - self.middle

    @property
    def optional(self) -> bool:
        """Whether it need not be given."""
        return self.attribute.missing is not None

    def steps(self, record: Record) -> int | None:
        """A record's number, or None if it has none."""
        code = record[self.place]
        return None if code == self.attribute.missing_code else code - self.middle

    def value(self, steps: float) -> float:
        """What so many steps from the middle stand for."""
        return self.attribute.number(self.middle + steps)

    @property
    def step(self) -> float:
        """How much a step is."""
        assert self.attribute.step is not None
        return self.attribute.step

    @property
    def range(self) -> tuple[float, float]:
        """The lowest and the highest number."""
        return self.value(-self.middle), self.value(self.reach)

    @property
    def ends(self) -> tuple[int, ...]:
        """The codes of the lowest and highest number, where others are counted as these."""
        last = self.attribute.answers_possible - 1
        both = {"bottom": (0,), "top": (last,), "both": (0, last)}
        return both.get(self.attribute.clip or "", ())


@dataclass(frozen=True)
class SumLayout:
    """Which sums there are, in a fixed order.

    ``pairs``: products of each two numbers, too. ``tails``: third and fourth powers, too.
    ``ends``: how many gave the lowest or highest number, where others are counted as these.
    """

    schema: Schema
    pairs: bool = False
    tails: bool = False
    ends: bool = True

    @cached_property
    def numbers(self) -> tuple[Number, ...]:
        """The numbers that are added up."""
        return tuple(Number(k, a) for k, a in enumerate(self.schema.attributes) if a.numeric)

    @cached_property
    def by(self) -> tuple[int, ...]:
        """The places of the attributes with categories."""
        return tuple(k for k, a in enumerate(self.schema.attributes) if not a.numeric)

    @cached_property
    def groups(self) -> tuple[Group, ...]:
        """All categories of all attributes that have any."""
        return tuple((k, code) for k in self.by for code in range(self.schema.sizes[k]))

    @property
    def powers(self) -> tuple[int, ...]:
        """Of each number these are added up."""
        return TAILS if self.tails else SPREAD

    @property
    def few(self) -> Literal[2, 4]:
        """From the sums over so many people their numbers follow: as many as there are powers."""
        return 4 if self.tails else 2

    def groups_by(self, place: int) -> tuple[Group, ...]:
        """The categories of one attribute."""
        return tuple(group for group in self.groups if group[0] == place)

    @property
    def whole(self) -> tuple[Group, ...]:
        """Groups that all people together are: the fewest."""
        if not self.by:
            return ()
        return self.groups_by(min(self.by, key=lambda place: self.schema.sizes[place]))

    @cached_property
    def of_each(self) -> tuple[Powers, ...]:
        """What is summed of each number, in each group."""
        found: list[Powers] = []
        for number in self.numbers:
            exponents = (*((0,) if number.optional else ()), *self.powers)
            found += [((number.place, exponent),) for exponent in exponents]
        return tuple(found)

    @property
    def size(self) -> int:
        """How many sums there are at most, without making them."""
        groups = sum(self.schema.sizes[place] for place in self.by)
        optional = sum(number.optional for number in self.numbers)
        each = len(self.numbers) * len(self.powers) + optional
        pairs = math.comb(len(self.numbers), 2) * len(OF_PAIR) if self.pairs else 0
        return groups * (1 + each) + each + 2 * len(self.numbers) * self.ends + pairs

    @cached_property
    def cells(self) -> tuple[Sum, ...]:
        """What a party adds to, in order."""
        if self.by:
            found = [Sum(p, group) for group in self.groups for p in ((), *self.of_each)]
        else:
            found = [Sum(powers) for powers in self.of_each]
        if self.ends:
            found += [Sum(at=(x.place, code)) for x in self.numbers for code in x.ends]
        if self.pairs:
            known = set(self.of_each)
            of_pairs = (p for pair in self.both for p in self.of_pair(*pair))
            found += [Sum(p) for p in dict.fromkeys(of_pairs) if p not in known]
        return tuple(found)

    @cached_property
    def totals(self) -> tuple[Sum, ...]:
        """What follows for all people together."""
        return tuple(Sum(powers) for powers in self.of_each) if self.by else ()

    @cached_property
    def both(self) -> tuple[tuple[Number, Number], ...]:
        """Each two numbers."""
        x = self.numbers
        return tuple((x[i], x[j]) for i in range(len(x)) for j in range(i + 1, len(x)))

    def of_pair(self, x: Number, y: Number) -> tuple[Powers, ...]:
        """How many gave both, the sums of each and of its square among these, and the product."""
        return tuple(self._powers({x: i, y: j}) for i, j in OF_PAIR)

    def _powers(self, exponents: Mapping[Number, int]) -> Powers:
        """Without what everybody has."""
        kept = {x: power for x, power in exponents.items() if power or x.optional}
        return tuple((x.place, power) for x, power in kept.items())

    def answered(self, number: Number, group: Group | None = None) -> Sum:
        """How many gave this number."""
        return Sum(self._powers({number: 0}), group)

    def added(self, number: Number) -> tuple[Sum, ...]:
        """How many gave this number, their sum, and those of its powers."""
        return (self.answered(number), *(Sum(((number.place, p),)) for p in self.powers))

    def largest(self, cell: Sum) -> int:
        """As much one person may add, or take off."""
        return math.prod(self._reach[place] ** power for place, power in cell.powers)

    @cached_property
    def _reach(self) -> dict[int, int]:
        """How far each number may be from the middle of its range."""
        return {x.place: x.reach for x in self.numbers}

    @property
    def most(self) -> int:
        """As much one person may add to any sum."""
        return max(self.largest(cell) for cell in self.cells)

    def added_by(self, record: Record) -> list[int]:
        """What a record adds to each sum."""
        steps = {x.place: x.steps(record) for x in self.numbers}
        return [_term(cell, record, steps) for cell in self.cells]

    def read(self, values: Sequence[int]) -> dict[Sum, int]:
        """The sums by what they are of, with those that follow for all people."""
        found = dict(zip(self.cells, map(int, values), strict=True))
        for total in self.totals:
            found[total] = sum(found[total.over(group)] for group in self.whole)
        return found

    def count(self, sums: Mapping[Sum, int | None], cell: Sum, n: int) -> int | None:
        """A count, where all people are n."""
        return n if cell == Sum() else sums[cell]

    # ── What no honest people can have added ───────────────────────────────────────────────────

    def fault(self, sums: Sums, n: int) -> str | None:
        """Why these cannot be the sums of n records, or None."""
        for cell, value in sums.items():
            if not cell.powers and not 0 <= value <= n:
                return f"a count is {value} of {n} people"
        found = (self._differing(sums, place, n) for place in self.by)
        wrong = next(filter(None, found), None)
        if wrong is not None:
            return wrong
        for group in (None, *self.groups):
            for number in self.numbers:
                if not self._possible(sums, number, group, n):
                    return f"no numbers have the sums of {number.attribute.name!r}"
        if self.pairs and not all(self._possible_pair(sums, x, y, n) for x, y in self.both):
            return "no numbers have the sums of two of them together"
        return None

    def _differing(self, sums: Sums, place: int, n: int) -> str | None:
        """Why sums by an attribute are not those of all people, or None."""
        name, groups = self.schema.names[place], self.groups_by(place)
        if sum(sums[Sum((), group)] for group in groups) != n:
            return f"the counts by {name!r} are not {n} in all"
        for total in self.totals:
            if sum(sums[total.over(group)] for group in groups) != sums[total]:
                return f"sums by {name!r} differ from those by another attribute"
        return None

    def _possible(self, sums: Sums, x: Number, group: Group | None, n: int) -> bool:
        """Whether some numbers have these sums: Σ² and Σ³ within what the even powers allow."""
        people = self.count(sums, self.answered(x, group), n)
        there = self.count(sums, Sum((), group), n)
        assert people is not None
        assert there is not None
        power = {p: sums[Sum(((x.place, p),), group)] for p in self.powers}
        possible = 0 <= people <= there and _spread(people, power[1], power[2], x.reach)
        if possible and self.tails:
            possible = (
                power[2] ** 2 <= people * power[4]
                and power[3] ** 2 <= power[2] * power[4]
                and power[4] <= x.reach**2 * power[2]
            )
        return possible

    def _possible_pair(self, sums: Sums, x: Number, y: Number, n: int) -> bool:
        told = [self.count(sums, Sum(powers), n) for powers in self.of_pair(x, y)]
        people, x1, x2, y1, y2, product = (value or 0 for value in told)
        gave = [self.count(sums, self.answered(number), n) or 0 for number in (x, y)]
        return (
            0 <= people <= min(gave)
            and _spread(people, x1, x2, x.reach)
            and _spread(people, y1, y2, y.reach)
            and product**2 <= x2 * y2
        )


def _term(cell: Sum, record: Record, steps: Mapping[int, int | None]) -> int:
    """What one record adds to one sum."""
    if cell.group is not None and record[cell.group[0]] != cell.group[1]:
        return 0
    if cell.at is not None:
        return int(record[cell.at[0]] == cell.at[1])
    found = 1
    for place, power in cell.powers:
        given = steps[place]
        if given is None:
            return 0
        found *= given**power
    return found


def _spread(people: int, total: int, squares: int, reach: int) -> bool:
    """Whether so many whole numbers that are no further from 0 can have this sum and squares."""
    return (
        abs(total) <= squares <= people * reach**2
        and total**2 <= people * squares
        and (total - squares) % 2 == 0
    )
