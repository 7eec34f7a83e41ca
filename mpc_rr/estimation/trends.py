"""Tables of pairs in which one answer rises or falls with the other, and nothing else is said.

Of all tables with given margins and a given mean product of the two answers' ranks, the one with
the largest entropy: product of the margins × exp(strength × rank × rank), raked. One number tells
it, so few answers that are strongly randomized tell it well. (Answers without an order have ranks,
too: those of the schema. Then such a table is hardly ever a good one.)
"""

from dataclasses import dataclass

import numpy as np

from mpc_rr.estimation.matrix import Array

STRENGTHS = np.array([0.0, 0.4, 0.9, 1.6, 2.8, 5.0, 10.0, 25.0])
SWEEPS = 12
LEAST = 1e-6


@dataclass(frozen=True)
class Trends:
    """Of each pair the table with the trend of its unbiased table, as far as there is one."""

    tables: Array
    """(pairs, rows, columns)"""
    products: Array
    """Of the ranks; their mean is the trend."""
    slopes: Array
    """How the tables change with the trend."""


def trends_of(margins: Array, unbiased: Array) -> Trends:
    """Of pairs: ``margins`` are tables that are products, (pairs, rows, columns)."""
    first, second = (_ranks(margins.sum(axis=axis)) for axis in (2, 1))
    product = first[:, :, np.newaxis] * second[:, np.newaxis, :]
    wished = (product * unbiased).sum(axis=(1, 2))
    sign = np.where(wished < 0, -1.0, 1.0)
    tilted = _tilted(margins, product * sign[:, np.newaxis, np.newaxis])
    reached = (tilted * (product * sign[:, np.newaxis, np.newaxis])[:, np.newaxis]).sum(axis=(2, 3))
    reached = np.maximum.accumulate(reached, axis=1)
    tables, slopes = _between(tilted, reached, np.abs(wished))
    return Trends(tables, product, slopes * sign[:, np.newaxis, np.newaxis])


def _ranks(margin: Array) -> Array:
    """The places of the categories, with mean 0 and variance 1 under the margin."""
    places = np.arange(margin.shape[1], dtype=np.float64)
    share = margin / margin.sum(axis=1, keepdims=True)
    centred = places - (share * places).sum(axis=1, keepdims=True)
    variance = (share * centred**2).sum(axis=1, keepdims=True)
    return np.asarray(centred / np.sqrt(np.maximum(variance, LEAST)))


def _tilted(margins: Array, product: Array) -> Array:
    """For each strength the margins' product tilted so much, and raked to its margins again."""
    exponents = STRENGTHS[:, np.newaxis, np.newaxis] * product[:, np.newaxis]
    exponents -= exponents.max(axis=(2, 3), keepdims=True)
    tables = np.maximum(margins, 1e-12)[:, np.newaxis] * np.maximum(np.exp(exponents), 1e-200)
    rows = margins.sum(axis=2)[:, np.newaxis, :, np.newaxis]
    columns = margins.sum(axis=1)[:, np.newaxis, np.newaxis, :]
    for _ in range(SWEEPS):
        tables = tables * (rows / np.maximum(tables.sum(axis=3, keepdims=True), 1e-300))
        tables = tables * (columns / np.maximum(tables.sum(axis=2, keepdims=True), 1e-300))
    return tables


def _between(tables: Array, reached: Array, wished: Array) -> tuple[Array, Array]:
    """The mixture of two neighbouring tables that reaches what is wished, or the last."""
    last = tables.shape[1] - 1
    low = np.clip((reached <= wished[:, np.newaxis]).sum(axis=1) - 1, 0, last - 1)
    pairs = np.arange(len(tables))
    below, above = reached[pairs, low], reached[pairs, low + 1]
    gap = np.maximum(above - below, LEAST)
    part = np.clip((wished - below) / gap, 0, 1)
    step = tables[pairs, low + 1] - tables[pairs, low]
    slopes = step * np.where(part < 1, 1 / gap, 0)[:, np.newaxis, np.newaxis]
    return tables[pairs, low] + part[:, np.newaxis, np.newaxis] * step, slopes
