"""Populations from independent to deterministic, from which people are drawn afresh in each run."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mpc_rr.estimation.matrix import Codes


@dataclass(frozen=True)
class Population:
    """How records are drawn, the attributes' sizes, and whether their answers have an order."""

    draw: Callable[[int, np.random.Generator], list[Codes]]
    sizes: tuple[int, ...]
    ordinal: bool

    def records(self, n: int, rng: np.random.Generator) -> Codes:
        """A row for each person."""
        return np.stack(self.draw(n, rng), axis=1).astype(np.int64)


def _zipf(size: int) -> np.ndarray:
    weights = 1 / np.arange(1, size + 1)
    return weights / weights.sum()


def _none(n, rng):
    return [rng.choice(size, n, p=_zipf(size)) for size in (4, 3, 2, 5, 3, 2)]


def _copied(values, size, largest, share, rng):
    """The value on another scale for this share of the people, anything for the others."""
    told = np.minimum(values * size // largest, size - 1)
    return np.where(rng.random(len(values)) < share, told, rng.integers(size, size=len(values)))


def _tree(n, rng):
    root = rng.integers(4, size=n)
    b, c, f = (_copied(root, k, 4, share, rng) for k, share in ((4, 0.6), (3, 0.5), (4, 0.4)))
    return [root, b, c, _copied(b, 5, 4, 0.6, rng), _copied(b, 2, 4, 0.7, rng), f]


def _chain(n, rng):
    found = [rng.integers(3, size=n)]
    for size in (2, 3, 4, 2, 3, 2, 4):
        other = rng.integers(size, size=n)
        found.append(np.where(rng.random(n) < 0.7, found[-1] % size, other))
    return found


def _strong(n, rng):
    x = rng.integers(5, size=n)
    y = np.clip(x + rng.integers(-1, 2, n), 0, 4)
    return [x, y, abs(x - 2), rng.integers(3, size=n)]


def _correlated(n, rng):
    """Two groups of questions, each of one hidden normal value: r is near .9 within a group."""
    found, hidden = [], [rng.normal(size=n) for _ in range(2)]
    for group, size in ((0, 5), (0, 5), (0, 3), (1, 7), (1, 4)):
        value = 0.95 * hidden[group] + math.sqrt(1 - 0.95**2) * rng.normal(size=n)
        found.append(np.clip(((value + 2) / 4 * size).astype(int), 0, size - 1))
    return found


def _xor(n, rng):
    """No pair depends on each other, two triples are deterministic."""
    (a, b), (c, d) = (rng.integers(k, size=(2, n)) for k in (2, 3))
    return [a, b, (a + b) % 2, c, d, (c + d) % 3]


def _twice(n, rng):
    """One question asked twice, others that have nothing to do with it."""
    asked = rng.choice(5, n, p=[0.4, 0.25, 0.2, 0.1, 0.05])
    return [
        asked, asked.copy(), rng.choice(4, n, p=[0.5, 0.3, 0.15, 0.05]), rng.integers(3, size=n),
        rng.choice(3, n, p=[0.7, 0.2, 0.1]), rng.integers(2, size=n),
    ]  # fmt: skip


def _sparse(n, rng):
    """Most cells are empty, most answers the same."""
    first = rng.choice(6, n, p=[0.55, 0.25, 0.1, 0.05, 0.03, 0.02])
    second = np.where(rng.random(n) < 0.08, rng.integers(7, size=n), first)
    third = np.where(rng.random(n) < 0.1, rng.integers(9, size=n), first**2 % 9)
    last = np.where(rng.random(n) < 0.05, rng.integers(4, size=n), 0)
    return [first, second, third, (rng.random(n) < 0.03).astype(int), last]


def _mixed(n, rng):
    """One strong pair, one exclusive or, weak dependences, skewed margins."""
    a, b = rng.integers(2, size=n), (rng.random(n) < 0.3).astype(int)
    g = rng.choice(9, n, p=_zipf(9))
    strong = np.where(rng.random(n) < 0.9, g, rng.integers(9, size=n))
    weak = np.where(rng.random(n) < 0.2, g % 4, rng.integers(4, size=n))
    return [
        a, b, (a + b) % 2, g, strong, rng.integers(3, size=n), weak, rng.integers(5, size=n),
        rng.choice(6, n, p=[0.5, 0.2, 0.1, 0.1, 0.05, 0.05]), (rng.random(n) < 0.1).astype(int),
    ]  # fmt: skip


def _deterministic(n, rng):
    x = rng.integers(6, size=n)
    return [x, (x + 2) % 6, x // 2, x % 2, rng.integers(4, size=n)]


POPULATIONS = {
    "none": Population(_none, (4, 3, 2, 5, 3, 2), True),
    "tree": Population(_tree, (4, 4, 3, 5, 2, 4), True),
    "chain": Population(_chain, (3, 2, 3, 4, 2, 3, 2, 4), True),
    "strong": Population(_strong, (5, 5, 3, 3), True),
    "correlated": Population(_correlated, (5, 5, 3, 7, 4), True),
    "xor": Population(_xor, (2, 2, 2, 3, 3, 3), False),
    "twice": Population(_twice, (5, 5, 4, 3, 3, 2), True),
    "sparse": Population(_sparse, (6, 7, 9, 2, 4), False),
    "mixed": Population(_mixed, (2, 2, 2, 9, 9, 3, 4, 5, 6, 2), False),
    "deterministic": Population(_deterministic, (6, 6, 3, 2, 4), False),
}
