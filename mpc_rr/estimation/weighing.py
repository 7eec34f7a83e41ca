"""How much each candidate counts for each pair: by its own risk, and by how it serves all pairs.

The risk of one pair's candidates is known only roughly. So what most pairs follow is learned from
all of them; where nothing tells the candidates apart, they follow a model. Pairs that clearly
depend on each other, where drawing towards independence does most harm, are judged by themselves.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mpc_rr.estimation.candidates import Candidates, Kind
from mpc_rr.estimation.matrix import Array

ROUNDS = 30
TEMPERATURE = 4.0
"""Risks are compared in so many variances of a usual direction; of clear pairs, in half as many."""
FOR_MODELS = 3.0
"""So many invented pairs follow one of the models."""
FOR_ANY = 0.02
CLEAR = 1e-4
"""Where noise alone would hardly ever give so much dependence, it is clear."""
FOR_ANY_CLEAR = 0.2


@dataclass(frozen=True)
class Weighed:
    """The tables that candidates give together, and how much each model counted in all."""

    tables: dict[tuple[int, ...], Array]
    risks: dict[tuple[int, ...], float]
    """Estimated squared distances from the true tables; at least the noise of one direction."""
    models: Array
    """Shares that add up to 1."""


def weighed(found: Sequence[Candidates], kinds: Sequence[Kind], models: int) -> Weighed:
    """One table of each pair, the average of its candidates by their weights."""
    usual = np.concatenate([c.usual for c in found])[:, np.newaxis]
    risks = np.concatenate([c.risks for c in found])
    freedom = np.concatenate([c.model_freedom for c in found])
    clear = np.concatenate([c.chance for c in found]) < CLEAR
    are_models = np.array([kind.is_the_model for kind in kinds], dtype=np.float64)
    weights = _shared(
        risks / usual, TEMPERATURE, FOR_MODELS * are_models / are_models.sum(), FOR_ANY
    )
    if clear.any():
        # Of a model that was fitted to so strong a dependence, twice its freedom is taken off.
        among = ((risks + 2 * freedom) / usual)[clear]
        weights[clear] = _shared(among, TEMPERATURE / 2, np.zeros(len(kinds)), FOR_ANY_CLEAR)
    tables: dict[tuple[int, ...], Array] = {}
    expected: dict[tuple[int, ...], float] = {}
    first = 0
    for candidates in found:
        for place, pair in enumerate(candidates.pairs):
            own = weights[first + place]
            tables[pair] = np.tensordot(own, candidates.tables[place], 1)
            expected[pair] = max(float(own @ risks[first + place]), candidates.usual[place])
        first += len(candidates.pairs)
    by_model = np.array(
        [sum(weights[:, k].sum() for k, kind in enumerate(kinds) if kind.model == m)
         for m in range(models)]
    )  # fmt: skip
    by_model = np.maximum(by_model, 1e-9)
    return Weighed(tables, expected, by_model / by_model.sum())


def _shared(risks: Array, temperature: float, invented: Array, for_any: float) -> Array:
    """Weights by risk, times what all pairs together give each kind (pairs, kinds)."""
    pairs, kinds = risks.shape
    prior, weights = np.full(kinds, 1 / kinds), np.zeros_like(risks)
    for _ in range(ROUNDS):
        exponents = np.log(prior + 1e-12) - risks / temperature
        weights = np.exp(exponents - exponents.max(axis=1, keepdims=True))
        weights /= weights.sum(axis=1, keepdims=True)
        prior = weights.sum(axis=0) + invented + for_any
        prior /= pairs + invented.sum() + for_any * kinds
    return weights
