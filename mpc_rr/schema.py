"""What is asked: attributes with their categories, and how a record is checked against them."""

import difflib
import itertools
import math
from collections.abc import Mapping
from typing import Literal

import msgspec

from mpc_rr.errors import DataError, SchemaError

Record = tuple[int, ...]
"""One party's answers as category numbers, in the order of the schema. Secret to its party."""


class Attribute(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One question: its name, its possible answers, and whether these have an order.

    A numeric question gives ``bins``: the rising edges of its intervals. Interval k holds
    ``bins[k] <= value < bins[k+1]``; the last one also holds its upper edge. ``inf`` and ``-inf``
    are allowed as outer edges.

    ``missing`` names the category of those who give no answer; without it, everybody must.
    """

    name: str
    type: Literal["nominal", "ordinal"]
    categories: tuple[str, ...]
    bins: tuple[float, ...] | None = None
    missing: str | None = None

    def __post_init__(self) -> None:
        if not self.name or self.name != self.name.strip():
            raise SchemaError(f"attribute {self.name!r}: a name must not be empty or padded")
        if len(self.categories) < 2:
            raise SchemaError(f"attribute {self.name!r}: at least two categories are needed")
        if any(not c or c != c.strip() for c in self.categories):
            raise SchemaError(f"attribute {self.name!r}: a category must not be empty or padded")
        repeated = {c for c in self.categories if self.categories.count(c) > 1}
        if repeated:
            raise SchemaError(f"attribute {self.name!r}: category {min(repeated)!r} is given twice")
        if self.missing is not None and self.missing not in self.categories:
            raise SchemaError(f"attribute {self.name!r}: missing must be one of its categories")
        if self.bins is not None:
            self._check_bins(self.bins)

    def _check_bins(self, bins: tuple[float, ...]) -> None:
        if any(math.isnan(edge) for edge in bins) or any(
            low >= high for low, high in itertools.pairwise(bins)
        ):
            raise SchemaError(f"attribute {self.name!r}: bins must rise, each above the one before")
        named = len(self.categories) - (self.missing is not None)
        if len(bins) - 1 != named:
            raise SchemaError(
                f"attribute {self.name!r}: {len(bins)} bin edges make {len(bins) - 1} intervals, "
                f"but there are {named} categories"
            )
        if self.missing is not None and self.categories[-1] != self.missing:
            raise SchemaError(
                f"attribute {self.name!r}: with bins, the missing category must be the last one"
            )

    @property
    def size(self) -> int:
        """The number of categories."""
        return len(self.categories)

    def code(self, value: object) -> int:
        """The number of the category that ``value`` falls in; `DataError` if there is none."""
        if value is None or str(value).strip() == "":
            if self.missing is None:
                raise DataError(f"attribute {self.name!r}: no value given")
            return self.categories.index(self.missing)
        if self.missing is not None and str(value).strip() == self.missing:
            return self.categories.index(self.missing)
        if self.bins is not None:
            return self._interval(value, self.bins)
        text = str(value).strip()
        if text in self.categories:
            return self.categories.index(text)
        near = difflib.get_close_matches(text, self.categories, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise DataError(
            f"attribute {self.name!r}: {text!r} is not one of its categories "
            f"({', '.join(self.categories)}){hint}"
        )

    def _interval(self, value: object, bins: tuple[float, ...]) -> int:
        try:
            number = float(str(value))
        except ValueError:
            raise DataError(f"attribute {self.name!r}: {value!r} is not a number") from None
        if not bins[0] <= number <= bins[-1]:
            raise DataError(
                f"attribute {self.name!r}: {number:g} is outside its bins, "
                f"{bins[0]:g} to {bins[-1]:g}"
            )
        above = sum(number >= edge for edge in bins)
        return min(above, len(bins) - 1) - 1


def interval_labels(bins: tuple[float, ...]) -> tuple[str, ...]:
    """Category names for bins that were given none: ``16–30``, ``under 16``, ``65 and over``."""
    labels = []
    for low, high in itertools.pairwise(bins):
        if math.isinf(low):
            labels.append("any" if math.isinf(high) else f"under {high:.15g}")
        elif math.isinf(high):
            labels.append(f"{low:.15g} and over")
        else:
            labels.append(f"{low:.15g}–{high:.15g}")
    return tuple(labels)


class Schema(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The attributes of a study, in order."""

    attributes: tuple[Attribute, ...]

    def __post_init__(self) -> None:
        if len(self.attributes) < 2:
            raise SchemaError("the schema needs at least two attributes to count pairs of them")
        names = self.names
        repeated = {name for name in names if names.count(name) > 1}
        if repeated:
            raise SchemaError(f"attribute {min(repeated)!r} is in the schema twice")

    @property
    def names(self) -> tuple[str, ...]:
        """The attributes' names, in order."""
        return tuple(attribute.name for attribute in self.attributes)

    @property
    def sizes(self) -> tuple[int, ...]:
        """The attributes' numbers of categories, in order."""
        return tuple(attribute.size for attribute in self.attributes)

    def encode(self, answers: Mapping[str, object]) -> Record:
        """Check one record and turn it into category numbers; `DataError` says what is wrong."""
        unknown = [name for name in answers if name not in self.names]
        if unknown:
            raise DataError(f"{unknown[0]!r} is not an attribute of this study")
        return tuple(attribute.code(answers.get(attribute.name)) for attribute in self.attributes)
