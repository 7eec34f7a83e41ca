"""Records of numbers and categories, side by side, and how far apart they are."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from mpc_rr.schema import Attribute, Record

Codes = npt.NDArray[np.int64]
Array = npt.NDArray[np.float64]
Rows = npt.NDArray[np.intp]
Groups = list[Rows]
"""The rows of each group."""


@dataclass(frozen=True)
class Table:
    """Some attributes of some people, as codes: one row each."""

    attributes: tuple[Attribute, ...]
    codes: Codes

    @classmethod
    def of(cls, attributes: Sequence[Attribute], records: Sequence[Record]) -> "Table":
        """A table of records."""
        codes = np.array(records, dtype=np.int64).reshape(len(records), len(attributes))
        return cls(tuple(attributes), codes)

    def __len__(self) -> int:
        return len(self.codes)

    def __repr__(self) -> str:
        return f"Table({len(self)} × {', '.join(a.name for a in self.attributes)})"

    @cached_property
    def points(self) -> Array:
        """The records as points, so that distance makes sense across kinds of attributes.

        Numbers and ordered categories are divided by their standard deviation; the categories of
        a nominal attribute are the corners of a simplex. All are scaled so that two records drawn
        at random differ equally much, on average, in each attribute: by a squared distance of 2.
        """
        parts: list[Array] = [self._coordinates(k) for k in range(len(self.attributes))]
        return np.hstack(parts)

    def _coordinates(self, place: int) -> Array:
        codes = self.codes[:, place]
        if self.attributes[place].type != "nominal":
            deviation = float(codes.std())
            scaled: Array = (codes - codes.mean()) / (deviation or 1.0)
            return scaled[:, None]
        present, inverse, counts = np.unique(codes, return_inverse=True, return_counts=True)
        shares = counts / len(codes)
        differing = 1.0 - float((shares**2).sum())
        corners = np.eye(len(present))[inverse]
        return corners / np.sqrt(differing) if differing > 0 else np.zeros((len(codes), 1))

    def width(self, rows: Rows, place: int) -> float:
        """How wide these rows spread in an attribute: 0 for one value, 1 for all there are."""
        codes, all_codes = self.codes[rows, place], self.codes[:, place]
        if self.attributes[place].type == "nominal":
            kinds = len(np.unique(all_codes)) - 1
            return (len(np.unique(codes)) - 1) / kinds if kinds else 0.0
        span = float(np.ptp(all_codes))
        return float(np.ptp(codes)) / span if span else 0.0
