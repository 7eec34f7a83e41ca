"""Asking less (003 §4): attributes that follow from others, and categories that may be joined.

Both make fewer combinations, of which so many more people are in each. They are chosen on a pilot,
before anybody is asked: after that, what was not asked is told from what was, as far as the pilot
lets it be. What follows from what is chosen on every other of the pilot's people, and how often
that is wrong is counted among the rest: those on whom it was chosen would flatter it.
"""

import itertools
import math
from dataclasses import dataclass

import numpy as np
from scipy.special import betaincinv

from mpc_rr.errors import InputError
from mpc_rr.estimation.clusters import coarsen, computed_from, representatives
from mpc_rr.estimation.designs import count_combinations
from mpc_rr.estimation.matrix import Array, Codes
from mpc_rr.schema import Attribute, Schema

NEAR = 0.95
LEVEL = 0.95


@dataclass(frozen=True)
class Followed:
    """An attribute that need not be asked: it is computed from another, which represents it."""

    attribute: Attribute
    representative: Attribute
    values: dict[str, str]
    """For each answer to the representative, the most frequent answer to this one."""
    unseen: tuple[str, ...]
    """Answers to the representative that none of those gave on whom it was chosen: guesses."""
    people: int
    """Of so many others, who answered both, it was counted how often that is not true."""
    wrong: float
    """Of what share of these."""
    wrong_at_most: float
    """The upper 95 % limit of that share among the people from whom the pilot was drawn."""


@dataclass(frozen=True)
class Joined:
    """An attribute with fewer categories than it has."""

    attribute: Attribute
    groups: tuple[tuple[str, ...], ...]
    """Which become one, in the order of their first; no answer stays by itself."""
    lost: float
    """The share of the answers' entropy, in the pilot, that can no longer be told."""

    @property
    def names(self) -> tuple[str, ...]:
        """What the groups might be called: as they are, if they are one category."""
        between = "to" if self.attribute.type == "ordinal" else "or"
        return tuple(
            group[0]
            if len(group) == 1
            else f"{group[0]} {between} {group[-1]}"
            if between == "to" or len(group) == 2
            else f"{group[0]} and {len(group) - 1} others"
            for group in self.groups
        )

    @property
    def bins(self) -> tuple[float, ...] | None:
        """The edges that are left, of an attribute that has any."""
        if self.attribute.bins is None:
            return None
        edges = dict(zip(self.attribute.categories, self.attribute.bins, strict=False))
        lower = [edges[group[0]] for group in self.groups if group[0] in edges]
        return (*lower, self.attribute.bins[-1])


@dataclass(frozen=True)
class Condensed:
    """What a study might leave out, by a pilot."""

    schema: Schema
    pilot: int
    """Its number of people."""
    followed: tuple[Followed, ...]
    joined: tuple[Joined, ...]

    @property
    def combinations(self) -> int:
        """How many different records there are now."""
        return math.prod(self.schema.sizes)

    @property
    def combinations_left(self) -> int:
        """How many there would be."""
        left_out = {found.attribute.name for found in self.followed}
        fewer = {found.attribute.name: len(found.groups) for found in self.joined}
        return math.prod(
            fewer.get(a.name, a.size) for a in self.schema.attributes if a.name not in left_out
        )


def condense(
    schema: Schema, pilot: Codes, near: float = NEAR, most_categories: int | None = None
) -> Condensed:
    """What follows from what, and which categories to join, as these people answered.

    An attribute follows from another that leaves at most 1 − ``near`` of its entropy open. With
    ``most_categories``, attributes from which no other follows get no more than that; the missing
    category is none of them.
    """
    if not 0 < near <= 1:
        raise InputError(f"near is a share of entropy, above 0 and at most 1, not {near}")
    if most_categories is not None and most_categories < 2:
        raise InputError("an attribute needs at least two categories")
    chosen, others = pilot[::2], pilot[1::2]
    pairs = itertools.combinations(range(len(schema.sizes)), 2)
    tables = {pair: count_combinations(chosen, pair, schema.sizes) for pair in pairs}
    stands = representatives(tables, near)
    if len({*stands.values()}) < 2:  # a schema has two attributes
        last = max(place for place, kept in stands.items() if place != kept)
        stands[last] = last
    followed = tuple(
        one
        for x, z in stands.items()
        if x != z and (one := _followed(schema, chosen, others, x, z)) is not None
    )
    follow = {found.attribute.name for found in followed}
    stand = {found.representative.name for found in followed}
    joined = () if most_categories is None else tuple(
        found
        for place, attribute in enumerate(schema.attributes)
        if attribute.name not in follow | stand
        and (found := _joined(schema, pilot, place, most_categories)) is not None
    )  # fmt: skip
    return Condensed(schema, len(pilot), followed, joined)


def _followed(
    schema: Schema, chosen: Codes, others: Codes, follows: int, kept: int
) -> Followed | None:
    """Nothing where fewer than two answers would follow."""
    attribute, representative = schema.attributes[follows], schema.attributes[kept]
    table = _answers(schema, chosen, kept, follows)
    if not table.any():
        return None
    most, _ = computed_from(table)
    unseen = np.flatnonzero(table.sum(axis=1) == 0)
    for row in unseen:
        most[row] = int(table.sum(axis=0).argmax())
    if len({*most}) < 2:
        return None
    measured = _answers(schema, others, kept, follows)
    n = int(measured.sum())
    wrong = n - int(measured[np.arange(len(measured)), most].sum())
    named = [representative.categories[code] for code in representative.answer_codes]
    found = [attribute.categories[attribute.answer_codes[x]] for x in most]
    return Followed(
        attribute,
        representative,
        dict(zip(named, found, strict=True)),
        tuple(named[row] for row in unseen),
        n,
        wrong / n if n else 0.0,
        float(betaincinv(wrong + 1, n - wrong, LEVEL)) if wrong < n else 1.0,
    )


def _answers(schema: Schema, people: Codes, row: int, column: int) -> Array:
    """How often which answers to two questions were given together."""
    pair = (min(row, column), max(row, column))
    table = count_combinations(people, pair, schema.sizes)
    table = table if row < column else table.T
    codes = [list(schema.attributes[place].answer_codes) for place in (row, column)]
    return table[np.ix_(*codes)]


def _joined(schema: Schema, pilot: Codes, place: int, most: int) -> Joined | None:
    attribute = schema.attributes[place]
    if len(attribute.answer_codes) <= most:
        return None
    counts = count_combinations(pilot, (place,), schema.sizes)
    codes = list(attribute.answer_codes)
    groups = coarsen(counts[codes], most, ordinal=attribute.type == "ordinal")
    answers = [tuple(codes[k] for k in group) for group in groups]
    every = [*answers, *((code,) for code in range(attribute.size) if code not in codes)]
    before = _entropy(counts)
    after = _entropy(np.array([counts[list(group)].sum() for group in every]))
    named = tuple(tuple(attribute.categories[code] for code in group) for group in sorted(every))
    return Joined(attribute, named, 1 - after / before if before else 0.0)


def _entropy(counts: Array) -> float:
    shares = counts[counts > 0] / counts.sum()
    return float(-(shares * np.log2(shares)).sum())
