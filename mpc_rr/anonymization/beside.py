"""A release beside the truth, as whoever analyses it would find both: distributions and relations.

The truth is known in simulations, and to nobody else. A column of numbers or of ordered categories
is compared by mean, standard deviation and Spearman's rank correlations; one of categories without
order by the distance of distributions and Cramér's V; between the two kinds stands η, the root
of the share of the variance of ranks that lies between categories. Who gave none is left out.
"""

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from mpc_rr.anonymization.loss import published_of
from mpc_rr.anonymization.releases import Grouped
from mpc_rr.anonymization.table import Array, Microdata
from mpc_rr.schema import Attribute

Measure = Callable[[Array, Array, Array], float]
"""Of two columns and the weights of their rows."""


@dataclass(frozen=True)
class Columns:
    """Rows as whoever reads a release takes them."""

    attributes: tuple[Attribute, ...]
    values: tuple[Array, ...]
    """Codes (or middles of codes) of each attribute; categories without order may be sets of some,
    each with a number of its own; nan: no answer."""
    weights: Array

    @classmethod
    def of(cls, table: Microdata) -> "Columns":
        """Records as they are."""
        return cls(table.attributes, _columns(table), np.ones(len(table)))


@dataclass(frozen=True)
class Related:
    """How two attributes depend on each other, in truth and in the release."""

    first: str
    second: str
    measure: str
    true: float | None
    released: float | None


def read_release(grouped: Grouped, release: str) -> Columns:
    """The rows of a release. Of two tables, a value stands beside each of its group in part."""
    known, confidential = grouped.known, grouped.confidential
    attributes = (*known.attributes, *confidential[0].attributes)
    rows: list[Array] = []
    weights: list[Array] = []
    as_it_is = _columns(known)
    stands = [published_of(grouped, release, place) for place in range(len(known.attributes))]
    for number, (members, table) in enumerate(zip(grouped.groups, confidential, strict=True)):
        values, quasi = np.array(_columns(table)), np.array([c[members] for c in as_it_is])
        if release == "anatomy":
            left, right = np.indices((len(members), len(table))).reshape(2, -1)
            share = np.full(len(left), 1 / len(members))
        elif release == "permuted":
            left = right = np.arange(min(len(members), len(table)))
            share = np.ones(len(left))
        else:
            quasi = np.array([[column[number]] for column in stands])
            left, right = np.zeros(len(table), dtype=np.intp), np.arange(len(table))
            share = np.ones(len(table))
        rows.append(np.vstack([quasi[:, left], values[:, right]]))
        weights.append(share)
    return Columns(attributes, tuple(np.hstack(rows)), np.concatenate(weights))


def _columns(table: Microdata) -> tuple[Array, ...]:
    found = np.where(table.unanswered, np.nan, table.codes)
    return tuple(found.T)


def moments(columns: Columns, place: int) -> tuple[float, float] | None:
    """Mean and standard deviation of an attribute's numbers; None if there are none."""
    attribute, values = columns.attributes[place], columns.values[place]
    there = ~np.isnan(values)
    if not columns.weights[there].sum():
        return None
    numbers = np.array([attribute.number(code) for code in values[there]])
    mean = float(np.average(numbers, weights=columns.weights[there]))
    spread = np.average((numbers - mean) ** 2, weights=columns.weights[there])
    return mean, float(np.sqrt(spread))


def distance_of_shares(true: Columns, released: Columns, place: int) -> float | None:
    """Total variation between the distributions of an attribute; None without answers."""
    shares = []
    every = np.concatenate([true.values[place], released.values[place]])
    values = np.unique(every[~np.isnan(every)])
    for columns in (true, released):
        own = columns.values[place]
        there = ~np.isnan(own)
        whole = columns.weights[there].sum()
        if not whole:
            return None
        places = np.searchsorted(values, own[there])
        shares.append(np.bincount(places, columns.weights[there], len(values)) / whole)
    return float(np.abs(shares[0] - shares[1]).sum() / 2)


def relations(true: Columns, released: Columns) -> Iterator[Related]:
    """Every pair of attributes, before and after."""
    for first, second in itertools.combinations(range(len(true.attributes)), 2):
        pair = (true.attributes[first], true.attributes[second])
        places, words = (first, second), "Spearman's r"
        measure: Measure = _spearman
        nominal = [attribute.type == "nominal" for attribute in pair]
        if all(nominal):
            words, measure = "Cramér's V", _cramers_v
        elif any(nominal):
            words, measure = "η", _correlation_ratio
            places = (first, second) if nominal[0] else (second, first)
        before, after = (_related(measure, columns, places) for columns in (true, released))
        yield Related(pair[0].name, pair[1].name, words, before, after)


def _related(measure: Measure, columns: Columns, places: Sequence[int]) -> float | None:
    one, other = (columns.values[place] for place in places)
    there = ~np.isnan(one) & ~np.isnan(other) & (columns.weights > 0)
    one, other, weights = one[there], other[there], columns.weights[there]
    if len(one) < 2 or not np.ptp(one) or not np.ptp(other):
        return None
    return measure(one, other, weights)


def _spearman(one: Array, other: Array, weights: Array) -> float:
    ranks = np.array([_weighted_ranks(one, weights), _weighted_ranks(other, weights)])
    covariance = np.cov(ranks, aweights=weights, ddof=0)
    return float(covariance[0, 1] / np.sqrt(covariance[0, 0] * covariance[1, 1]))


def _weighted_ranks(values: Array, weights: Array) -> Array:
    """The middle of the ranks of each value, where a row counts as much as its weight."""
    _, places = np.unique(values, return_inverse=True)
    of_value = np.bincount(places.reshape(-1), weights)
    middles: Array = (np.cumsum(of_value) - of_value / 2)[places.reshape(-1)]
    return middles


def _correlation_ratio(categories: Array, values: Array, weights: Array) -> float:
    """The root of the share of variance of the values' ranks that lies between categories."""
    ranks, of = _weighted_ranks(values, weights), np.unique(categories, return_inverse=True)[1]
    of, whole = of.reshape(-1), weights.sum()
    counts, mean = np.bincount(of, weights), float(np.average(ranks, weights=weights))
    means = np.bincount(of, weights * ranks) / counts
    total = float((weights * (ranks - mean) ** 2).sum() / whole)
    return float(np.sqrt((counts * (means - mean) ** 2).sum() / whole / total))


def _cramers_v(one: Array, other: Array, weights: Array) -> float:
    coded = [np.unique(values, return_inverse=True)[1].reshape(-1) for values in (one, other)]
    table = np.zeros((coded[0].max() + 1, coded[1].max() + 1))
    np.add.at(table, tuple(coded), weights)
    due = np.outer(table.sum(axis=1), table.sum(axis=0)) / table.sum()
    phi2 = float(((table - due) ** 2 / due).sum() / table.sum())
    return float(np.sqrt(phi2 / (min(table.shape) - 1)))
