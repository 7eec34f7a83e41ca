"""Masking alone: each randomizes her record by herself and has seen nobody else's (004, section 4).

A number gets noise, all steps within a width equally likely; a category is kept or else drawn anew
from all there are. One strength governs both, so that it can be sought at which such records are as
hard to link as those of a group. Who knows the true records compares each with every masked one and
picks the likeliest; who analyses them takes of each value what is expected, given its mask and
how often each value occurs. That flatters masking alone: both are known to nobody beforehand.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mpc_rr.anonymization.beside import Columns
from mpc_rr.anonymization.loss import corners
from mpc_rr.anonymization.risk import Linkage
from mpc_rr.anonymization.table import Array, Codes, Microdata
from mpc_rr.randomness import Randomness
from mpc_rr.schema import Attribute

STRENGTHS = (0.0, *(x / (1 + x) for x in np.geomspace(1e-3, 1e3, 25).tolist()))
"""From records as they are to such as tell next to nothing: the share of categories drawn anew, and
with x = s/(1 − s) the width of noise as x times the attribute's range."""
TIED = 1e-9


@dataclass(frozen=True)
class MaskedAlone:
    """The records of a table, ready to be masked at any strength with the same random numbers."""

    table: Microdata
    first: Array
    second: Array
    """A number between 0 and 1 for each value."""

    @classmethod
    def drawn(cls, table: Microdata, rng: Randomness) -> "MaskedAlone":
        """With random numbers of their own."""
        shape = (len(table), len(table.attributes))
        return cls(table, rng.uniform(shape), rng.uniform(shape))

    def masked(self, strength: float) -> Codes:
        """What each tells; no answer stays none."""
        found = self.table.codes.copy()
        for place, attribute in enumerate(self.table.attributes):
            told = ~self.table.unanswered[:, place]
            first, second = self.first[told, place], self.second[told, place]
            if attribute.numeric:
                width = _width(attribute, strength)
                found[told, place] += np.floor(first * (2 * width + 1)).astype(np.int64) - width
            else:
                answers = np.array(attribute.answer_codes)
                anew = answers[np.floor(second * len(answers)).astype(np.int64)]
                found[told, place] = np.where(first < strength, anew, found[told, place])
        return found

    def linked(self, strength: float) -> Linkage:
        """How often who knows the true values picks a person's own record."""
        masked, likely = self.masked(strength), np.zeros((len(self.table),) * 2)
        with np.errstate(divide="ignore"):
            for place, attribute in enumerate(self.table.attributes):
                gaps, true = self.table.unanswered[:, place], self.table.codes[:, place]
                each = _likelihood(attribute, strength, masked[:, place], true).T
                each = np.where(gaps[:, None] | gaps[None, :], gaps[:, None] == gaps, each)
                likely += np.log(each)
        best = likely >= likely.max(axis=1)[:, None] - TIED
        chances = best.diagonal() / best.sum(axis=1)
        return Linkage(float(chances.mean()), float(chances.max()))

    def lost(self, strength: float) -> list[float | None]:
        """What share of each attribute's variation is left open to who analyses the records.

        None where the answers do not vary.
        """
        masked = self.masked(strength)
        return [self._lost(strength, place, masked[:, place]) for place in range(masked.shape[1])]

    def _lost(self, strength: float, place: int, masked: Codes) -> float | None:
        attribute, told = self.table.attributes[place], ~self.table.unanswered[:, place]
        true = self.table.codes[told, place]
        values, people = np.unique(true, return_counts=True)
        if len(values) < 2:
            return None
        weights = _likelihood(attribute, strength, masked[told], values) * people
        expected = weights @ corners(attribute, values) / weights.sum(axis=1)[:, None]
        points = corners(attribute, true)
        whole = ((points - points.mean(axis=0)) ** 2).sum()
        return float(((points - expected) ** 2).sum() / whole)

    def columns(self, strength: float, beside: Microdata) -> Columns:
        """The masked records as they stand, with further attributes beside them."""
        masked = np.where(self.table.unanswered, np.nan, self.masked(strength))
        others = np.where(beside.unanswered, np.nan, beside.codes)
        attributes = (*self.table.attributes, *beside.attributes)
        return Columns(attributes, (*masked.T, *others.T), np.ones(len(self.table)))


def _width(attribute: Attribute, strength: float) -> int:
    return round((attribute.answers_possible - 1) * strength / (1 - strength))


def _likelihood(attribute: Attribute, strength: float, masked: Codes, true: Codes) -> Array:
    """How likely each true value (column) gives each masked one (row), but for a factor."""
    if attribute.numeric:
        apart = np.abs(masked[:, None] - true[None, :])
        return np.asarray(apart <= _width(attribute, strength), dtype=np.float64)
    anew = strength / len(attribute.answer_codes)
    return np.where(masked[:, None] == true[None, :], 1 - strength + anew, anew)


def where_as_safe(risks: Sequence[float], values: Sequence[float], target: float) -> float | None:
    """A value at the first strength whose risk is no larger than a target.

    Between two strengths it is interpolated by risk; None if none is so safe.
    """
    safe = next((place for place, risk in enumerate(risks) if risk <= target), None)
    if safe is None or safe == 0:
        return None if safe is None else values[0]
    above, below = risks[safe - 1], risks[safe]
    share = (above - target) / (above - below)
    return values[safe - 1] + share * (values[safe] - values[safe - 1])
