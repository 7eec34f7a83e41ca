"""What a release gives up of each quasi-identifier, by what is really published of it.

A value that is published as it is costs nothing. Otherwise something else stands for it, and is
compared with it: a centre stands for itself, a range or an interval for its middle, a set of
categories for each of them alike, and ``*`` for nothing at all. That is of answers: who gave none
is left out.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from mpc_rr.anonymization.releases import Grouped, centre
from mpc_rr.anonymization.table import Array, Codes, Microdata
from mpc_rr.schema import Attribute

How = Literal["exactly", "centre", "range", "label"]
AS_THEY_ARE = ("anatomy", "permuted")
"""Releases with the quasi-identifiers as they are."""


@dataclass(frozen=True)
class AttributeLoss:
    """What the release gives up of one quasi-identifier."""

    attribute: str
    told: How
    squared_error: float | None
    """Squared distance of what is published from the true values, as a share of their variation. It
    exceeds 1 where a commonest category stands for many others. None: the values do not vary."""
    left_open: float | None
    """How much of the values' range the release leaves open, on average (NCP); None for centres,
    which do not say how far they may be from the truth."""
    unchanged: float | None
    """The share of answers of which the very value is published; None if nobody answered."""


@dataclass(frozen=True)
class _Said:
    """What stands for an attribute in one group: a point, a set of categories, or nothing."""

    codes: Codes
    """Of a category without order: all that it may be. Otherwise the lowest and the highest."""
    nothing: bool = False

    @property
    def single(self) -> bool:
        return not self.nothing and bool(self.codes[0] == self.codes[-1])


def released_loss(grouped: Grouped, release: str) -> list[AttributeLoss]:
    """The loss of each quasi-identifier."""
    return [_of_attribute(grouped, release, p) for p in range(len(grouped.known.attributes))]


def published_of(grouped: Grouped, release: str, place: int) -> Array:
    """What stands for an attribute in each group, as a number; nan where nobody answered.

    A set of categories without order has a number of its own, behind those of single ones.
    """
    known, middles = grouped.known, np.full(len(grouped.groups), np.nan)
    sets: dict[tuple[int, ...], int] = {}
    for number, said in _said(grouped, release, place):
        if known.attributes[place].type != "nominal" and not said.nothing:
            middles[number] = (said.codes[0] + said.codes[-1]) / 2
        elif said.single:
            middles[number] = said.codes[0]
        else:
            several = () if said.nothing else tuple(said.codes.tolist())
            new = known.attributes[place].size + len(sets)
            middles[number] = np.nan if said.nothing else sets.setdefault(several, new)
    return middles


def corners(attribute: Attribute, codes: Codes) -> Array:
    """Answers as points: numbers and ranks on a line, categories as the corners of a simplex."""
    if attribute.type != "nominal":
        return codes.astype(np.float64)[:, None]
    every: Array = np.eye(attribute.size)[codes]
    return every


def mean_loss(losses: list[AttributeLoss]) -> float | None:
    """The squared errors of attributes that vary, all counted alike; None if none does."""
    told = [loss.squared_error for loss in losses if loss.squared_error is not None]
    return sum(told) / len(told) if told else None


def mean_left_open(losses: list[AttributeLoss]) -> float | None:
    """How much of their ranges is left open, all attributes counted alike; None for centres."""
    told = [loss.left_open for loss in losses if loss.left_open is not None]
    return sum(told) / len(told) if told else None


def _of_attribute(grouped: Grouped, release: str, place: int) -> AttributeLoss:
    known, name = grouped.known, grouped.known.attributes[place].name
    everybody = known.answers(np.arange(len(known)), place)
    if not len(everybody):
        return AttributeLoss(name, _how(grouped, release), None, None, None)
    varies = bool(np.ptp(everybody))
    if release in AS_THEY_ARE:
        return AttributeLoss(name, "exactly", 0.0 if varies else None, 0.0, 1.0)
    error = opened = 0.0
    unchanged = 0
    for number, said in _said(grouped, release, place):
        codes = known.answers(grouped.groups[number], place)
        error += _squared(known, place, codes, said)
        opened += len(codes) * _open(known, place, everybody, said)
        unchanged += int((codes == said.codes[0]).sum()) if said.single else 0
    whole = _squared(known, place, everybody, _Said(everybody, nothing=True))
    return AttributeLoss(
        name,
        _how(grouped, release),
        error / whole if varies else None,
        None if release == "microaggregated" else opened / len(everybody),
        unchanged / len(everybody),
    )


def _how(grouped: Grouped, release: str) -> How:
    if release in AS_THEY_ARE:
        return "exactly"
    if release == "microaggregated":
        return "centre"
    return "range" if grouped.labels is None else "label"


def _said(grouped: Grouped, release: str, place: int) -> Iterator[tuple[int, _Said]]:
    """What is published of each group in which somebody answered."""
    known = grouped.known
    for number, rows in enumerate(grouped.groups):
        codes = np.unique(known.answers(rows, place))
        if not len(codes):
            continue
        if release == "microaggregated":
            yield number, _Said(np.array([centre(known, rows)[place]]))
        elif grouped.labels is not None:
            under = grouped.labels.under(known, rows, place)
            yield number, _Said(codes if under is None else under, nothing=under is None)
        else:
            yield number, _Said(codes)


def _squared(known: Microdata, place: int, codes: Codes, said: _Said) -> float:
    """The summed squared distances of codes from what stands for them.

    Categories without order are corners of a simplex, √2 from each other.
    """
    everybody = known.answers(np.arange(len(known)), place)
    if known.attributes[place].type != "nominal":
        middle = everybody.mean() if said.nothing else (said.codes[0] + said.codes[-1]) / 2
        return float(((codes - middle) ** 2).sum())
    size = known.attributes[place].size
    if said.nothing:
        point = np.bincount(everybody, minlength=size) / len(everybody)
    else:
        point = np.bincount(said.codes.astype(np.int64), minlength=size) / len(said.codes)
    return float((1 + (point**2).sum() - 2 * point[codes]).sum())


def _open(known: Microdata, place: int, everybody: Codes, said: _Said) -> float:
    """How much of all that occurs it leaves open: 0 for one value, 1 for everything."""
    if said.nothing:
        return 1.0
    if known.attributes[place].type == "nominal":
        present = np.unique(everybody)
        among = int(np.isin(present, said.codes).sum())
        return (among - 1) / (len(present) - 1) if len(present) > 1 else 0.0
    low, high = everybody.min(), everybody.max()
    within = min(said.codes[-1], high) - max(said.codes[0], low)
    return float(within / (high - low)) if high > low else 0.0
