"""The unbiased table of some attributes as the basis of statistics: sums over its cells.

A statistic is a smooth function of a few *sums*: a number for each cell, times the cell's share.
Sums are unbiased, and how they spread together is known for every way of answering
(`mpc_rr.estimation.uncertainty`), so the rest is the delta method (`mpc_rr.estimation.statistics`).
"""

from dataclasses import dataclass

import numpy as np

from mpc_rr.errors import InputError
from mpc_rr.estimation.matrix import Array
from mpc_rr.estimation.uncertainty import (
    ExactCounts,
    RandomizedReports,
    Target,
    Uncertainty,
    WeightedReports,
)

MOST_SUMMED = 2_000_000
"""So many cells may a table have that statistics are worked out from."""
MOST_TOGETHER = 3_000
"""So many, where the covariance of all cells is needed."""


@dataclass(frozen=True)
class Joint:
    """An unbiased table of shares, an axis for each attribute, and how uncertain it is."""

    attributes: tuple[int, ...]
    estimate: Array
    uncertainty: Uncertainty

    def __post_init__(self) -> None:
        free = isinstance(self.uncertainty, ExactCounts | RandomizedReports | WeightedReports)
        most = MOST_SUMMED if free else MOST_TOGETHER
        if self.estimate.size > most:
            raise InputError(
                f"these {len(self.attributes)} attributes have {self.estimate.size:,} combinations "
                f"of answers together; {most:,} can be worked with: name fewer attributes"
            )

    @property
    def n(self) -> float:
        """How many respondents."""
        return self.uncertainty.n

    @property
    def exact(self) -> bool:
        """Whether the table of the respondents is known as it is."""
        return isinstance(self.uncertainty, ExactCounts)

    @property
    def shares(self) -> Array:
        """All cells, flat. They may be negative."""
        return self.estimate.ravel()

    def along(self, attribute: int, values: Array) -> Array:
        """Numbers for the categories of one attribute, as an array that fits the table."""
        axis = self.attributes.index(attribute)
        return values.reshape([-1 if k == axis else 1 for k in range(self.estimate.ndim)])

    def placed(self, attributes: tuple[int, ...], values: Array) -> Array:
        """Numbers for all combinations of some attributes, as an array that fits the table."""
        order = sorted(range(len(attributes)), key=lambda k: self.attributes.index(attributes[k]))
        sizes = dict(zip(attributes, values.shape, strict=True))
        shape = [sizes.get(attribute, 1) for attribute in self.attributes]
        return values.transpose(order).reshape(shape)

    def flat(self, values: Array) -> Array:
        """A number for each cell, flat."""
        return np.broadcast_to(values, self.estimate.shape).astype(np.float64).ravel()

    def covariance(self, forms: Array, of: Target) -> Array:
        """Of the sums with these numbers (a row for each sum), around those of the target."""
        found = self.uncertainty.of_sums(forms, self.shares, of)
        diagonal = np.diag(found)
        if (diagonal < 0).any():  # a difference of two estimates
            found = found - np.diag(np.minimum(diagonal, 0.0))
        return found
