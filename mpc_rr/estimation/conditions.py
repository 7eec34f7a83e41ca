"""Conditions on answers: which people are meant, whatever is asked about them.

A condition is a tree: `Among` and `Compared` at its leaves, joined by ``&``, ``|`` and ``~``. Every
condition holds for a person or does not: of somebody who gave no answer, too (``docs/query.md``).

Estimators never see the tree but its `Cells`: categories that no part of the condition tells apart
are one class, and a table of 0 and 1 over these classes says which combinations meet it. A
conjunction over any attributes has two classes for each, however many categories there are.
"""

import functools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mpc_rr.errors import InputError
from mpc_rr.estimation.matrix import Array, Codes

MOST_CELLS = 1 << 20
"""So many combinations of classes are enumerated for one condition."""
MOST_COMBINATIONS = 10_000_000
"""So many combinations of categories."""
SAME = 1e-12
Truths = npt.NDArray[np.bool_]


class Condition(ABC):
    """What holds for a person or does not."""

    def __and__(self, other: "Condition") -> "Condition":
        return AllOf((self, other))

    def __or__(self, other: "Condition") -> "Condition":
        return AnyOf((self, other))

    def __invert__(self) -> "Condition":
        return Not(self)

    @abstractmethod
    def leaves(self) -> "Iterator[Among | Compared]":
        """What it is made of, from left to right."""

    @abstractmethod
    def evaluated(self, leaf: "Callable[[Among | Compared], Truths]") -> Truths:
        """Where it holds, if it is known where each leaf does."""

    @property
    def attributes(self) -> tuple[int, ...]:
        """The attributes it names, in order."""
        return tuple(sorted({leaf.attribute for leaf in self.leaves()}))

    def holds(self, columns: Mapping[int, npt.ArrayLike]) -> Truths:
        """For which records: codes of categories, or numbers, by attribute."""
        return self.evaluated(lambda leaf: leaf.of(np.asarray(columns[leaf.attribute])))


@dataclass(frozen=True)
class Among(Condition):
    """The answer is one of these categories."""

    attribute: int
    codes: frozenset[int]

    def leaves(self) -> "Iterator[Among | Compared]":
        """Itself."""
        yield self

    def evaluated(self, leaf: "Callable[[Among | Compared], Truths]") -> Truths:
        """As it is known."""
        return leaf(self)

    def of(self, codes: Array | Codes) -> Truths:
        """For which codes it holds."""
        return np.isin(codes, sorted(self.codes))


@dataclass(frozen=True)
class Compared(Condition):
    """The answer, a number, is equal to, below or above another."""

    attribute: int
    sign: str
    number: float

    def leaves(self) -> "Iterator[Among | Compared]":
        """Itself."""
        yield self

    def evaluated(self, leaf: "Callable[[Among | Compared], Truths]") -> Truths:
        """As it is known."""
        return leaf(self)

    def of(self, numbers: Array | Codes) -> Truths:
        """For which numbers it holds; two are the same but for what rounding leaves."""
        same = np.isclose(numbers, self.number, rtol=SAME, atol=SAME)
        below = np.less(numbers, self.number) & ~same
        found = {"=": same, "<": below, "<=": below | same}
        return np.asarray(found[self.sign] if self.sign in found else ~found[OPPOSITE[self.sign]])


OPPOSITE = {"!=": "=", ">=": "<", ">": "<="}


@dataclass(frozen=True)
class _Several(Condition):
    """Conditions together."""

    parts: tuple[Condition, ...]

    def leaves(self) -> Iterator[Among | Compared]:
        """Those of its parts."""
        for part in self.parts:
            yield from part.leaves()


class AllOf(_Several):
    """All of these hold."""

    def evaluated(self, leaf: Callable[[Among | Compared], Truths]) -> Truths:
        """Where all parts hold."""
        return functools.reduce(np.logical_and, (part.evaluated(leaf) for part in self.parts))


class AnyOf(_Several):
    """At least one of these holds."""

    def evaluated(self, leaf: Callable[[Among | Compared], Truths]) -> Truths:
        """Where any part holds."""
        return functools.reduce(np.logical_or, (part.evaluated(leaf) for part in self.parts))


@dataclass(frozen=True)
class Not(Condition):
    """This does not hold."""

    part: Condition

    def leaves(self) -> Iterator[Among | Compared]:
        """Those of its part."""
        yield from self.part.leaves()

    def evaluated(self, leaf: Callable[[Among | Compared], Truths]) -> Truths:
        """Wherever its part does not hold."""
        return np.logical_not(self.part.evaluated(leaf))


def replaced(condition: Condition, instead: Callable[[Among], Among]) -> Condition:
    """The same condition of other attributes."""
    match condition:
        case Among():
            return instead(condition)
        case AllOf() | AnyOf():
            return type(condition)(tuple(replaced(part, instead) for part in condition.parts))
        case Not():
            return Not(replaced(condition.part, instead))
    return condition


def conjunction(wanted: Mapping[int, Sequence[int]]) -> Condition:
    """Of some attributes, an answer among these categories."""
    return AllOf(tuple(Among(a, frozenset(codes)) for a, codes in wanted.items()))


@dataclass(frozen=True)
class Cells:
    """A condition as a table of 0 and 1 over classes of categories."""

    attributes: tuple[int, ...]
    """Those that it depends on, in order."""
    classes: tuple[Codes, ...]
    """For each of them, the class of each category."""
    meets: Truths
    """Which combinations of classes meet the condition."""

    @classmethod
    def of(cls, condition: Condition, sizes: Sequence[int]) -> "Cells":
        """Of a condition on categories; `InputError` if it is too wide to be enumerated."""
        attributes = condition.attributes
        classes = [_classes(condition, attribute, sizes[attribute]) for attribute in attributes]
        shape = tuple(int(which.max()) + 1 for which in classes)
        check_width(math.prod(shape), MOST_CELLS, len(attributes))

        def along_its_axis(leaf: Among | Compared) -> Truths:
            axis = attributes.index(leaf.attribute)
            first = np.unique(classes[axis], return_index=True)[1]
            place = [-1 if k == axis else 1 for k in range(len(shape))]
            return leaf.of(first).reshape(place)

        meets = np.broadcast_to(condition.evaluated(along_its_axis), shape)
        kept = []
        for axis, (attribute, which) in enumerate(zip(attributes, classes, strict=True)):
            meets, again = merged(meets, axis)
            kept.append((attribute, again[which], meets.shape[axis]))
        mattering = [(attribute, which) for attribute, which, count in kept if count > 1]
        return cls(
            tuple(attribute for attribute, _ in mattering),
            tuple(which for _, which in mattering),
            meets.reshape([count for _, _, count in kept if count > 1]),
        )

    @property
    def always(self) -> bool | None:
        """Whether everybody meets it, or nobody; None if that depends on the answers."""
        return None if self.attributes else bool(self.meets)

    def table(self) -> Truths:
        """Which combinations of categories meet it, an axis for each of its attributes."""
        size = math.prod(len(which) for which in self.classes)
        check_width(size, MOST_COMBINATIONS, len(self.attributes))
        return self.meets[np.ix_(*self.classes)]


def check_width(size: int, most: int, attributes: int) -> None:
    """`InputError` if a condition would have to be enumerated over too many combinations."""
    if size > most:
        raise InputError(
            f"this condition is too wide: it tells {size:,} combinations of {attributes} "
            f"attributes apart, and {most:,} can be worked out; name fewer attributes or values"
        )


def _classes(condition: Condition, attribute: int, size: int) -> Codes:
    """The class of each category: those that no leaf tells apart are in one."""
    mine = [leaf for leaf in condition.leaves() if leaf.attribute == attribute]
    told = np.stack([leaf.of(np.arange(size)) for leaf in mine], axis=1)
    return _distinct(told)[1]


def _distinct(rows: Truths) -> tuple[list[int], Codes]:
    """Where each different row stands first, in order; and which one each row is.

    ``np.unique`` would make each column a field of its own, which takes minutes for long rows.
    """
    packed = [row.tobytes() for row in np.packbits(rows, axis=1)]
    place = {key: number for number, key in enumerate(sorted(set(packed)))}
    first = sorted(place, key=place.__getitem__)
    return [packed.index(key) for key in first], np.array([place[key] for key in packed])


def merged(meets: Truths, axis: int) -> tuple[Truths, Codes]:
    """Equal slices along an axis made one; and which one each slice has become."""
    rows = np.moveaxis(meets, axis, 0)
    first, which = _distinct(rows.reshape(len(rows), -1))
    return np.moveaxis(rows[first], 0, axis), which
