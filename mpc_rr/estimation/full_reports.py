"""From randomized records to one weighted population that everything is counted in.

1. Models of all attributes at once (`bases`) and candidates for the table of every pair, each with
   an estimate of how far it is off (`candidates`).
2. The candidates' average, by weights that are learned from all pairs (`weighing`).
3. Records that could be the respondents' (`invented`), weighed until they have these tables.
4. Tables of three attributes where the reports clearly say otherwise than what follows from that.
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import chdtri

from mpc_rr.errors import InputError
from mpc_rr.estimation.bases import Bases
from mpc_rr.estimation.candidates import candidates_of
from mpc_rr.estimation.designs import Design, Fitted
from mpc_rr.estimation.distribution import Estimate, project_to_simplex
from mpc_rr.estimation.invented import ROWS, invented_population
from mpc_rr.estimation.kept_clusters import KeptClusters
from mpc_rr.estimation.matrix import Array, Codes, KeepOrUniform, MatrixError
from mpc_rr.estimation.population import Population
from mpc_rr.estimation.tables import shrunk
from mpc_rr.estimation.weighing import Weighed, weighed

Known = Mapping[tuple[int, ...], Estimate]
"""Tables of the same respondents that were published before; exact ones have no standard errors."""
Tables = dict[tuple[int, ...], Array]
FALSE_ALARM = 0.02
"""So often one of all tables of three overrules by chance."""
MOST_OVERRULING = 30
MOST_TRIPLES = 300
MOST_CELLS = 20_000
MOST_IN_ONE_POPULATION = 3_000
"""So many categories may a design be wide: models of all pairs are tables of all by all."""
MARGIN_SWEEPS = 100
TRACE = 1e-15
LAST_SWEEPS = (1.0,) * 8
"""For what is known better than reports tell it: it comes out as it is."""
TRIPLE_SWEEPS = 60


def fit_reports(fitted: Fitted, known: Known | None = None) -> Population:
    """The weighted population that follows from randomized records and tables known before.

    The same records, in whatever order, give the same population.
    """
    if not fitted.design.kept:
        return _fit_other_matrices(fitted, dict(known or {}))
    design = KeptClusters.of(fitted.design)
    if design.width > MOST_IN_ONE_POPULATION:
        raise InputError(
            f"the questions have {design.width:,} categories together, more than the "
            f"{MOST_IN_ONE_POPULATION:,} whose tables of all pairs can be estimated at once; make "
            "them coarser"
        )
    records = fitted.reported[np.lexsort(fitted.reported.T[::-1])]
    bases, told = Bases.of(design, records), dict(known or {})
    if len(design.sizes) == 1:
        found = Weighed({}, {}, np.ones(1))
        better: Tables = {}
        targets: Tables = {(0,): _with_known(bases.margins[0], 0.0, told.get((0,)))}
    else:
        candidates, kinds = candidates_of(design, records, bases)
        found = weighed(candidates, kinds, len(bases.models))
        better = _better(found, told)
        targets = _pair_targets(found, told, better, len(design.sizes))
    invented = invented_population(design, records, bases.models, found.models, bases.margins)
    population = invented.raked(targets | better).raked(better, LAST_SWEEPS)
    overruling = _overruling(design, records, population, set(targets | better))
    if overruling:
        population = population.raked(targets | better | overruling).raked(better, LAST_SWEEPS)
    return _without_traces(population)


def _without_traces(population: Population) -> Population:
    """Records whose weight is next to nothing, and that only rounding decides about, have none."""
    weights = np.where(population.weights < TRACE, 0, population.weights)
    return Population(population.records, weights / weights.sum(), population.sizes)


def _fit_other_matrices(fitted: Fitted, known: Known) -> Population:
    """Where some answers are neither kept nor uniform: less is made of the reports on these.

    The others are fitted as if nothing else had been asked. To these people, answers of each
    further cluster are drawn from its own distribution; then all are weighed until they have the
    tables that follow: of two such answers, or one such and another, the unbiased table, drawn back
    towards independence (within a cluster, towards its whole distribution) by how much of it is
    noise.
    """
    design, found = fitted.design, _fit_kept(fitted, known)
    people = _with_others(fitted, *found)
    margins = [people.table((a,)) if a in found[0] else fitted.table((a,)) for a in _all(design)]
    tables: Tables = {}
    for pair in itertools.combinations(_all(design), 2):
        if set(pair) <= set(found[0]):
            tables[pair] = people.table(pair)
            continue
        together = any(set(pair) <= set(cluster) for cluster in design.clusters)
        model = fitted.table(pair) if together else np.outer(*(margins[a] for a in pair))
        try:
            own = fitted.unbiased(pair)
        except MatrixError:  # a part of a cluster has no matrix of its own
            tables[pair] = model
        else:
            tables[pair] = shrunk(own, model)
    targets: Tables = {(a,): margin for a, margin in enumerate(margins)}
    targets |= _agreeing(tables, margins)
    targets |= {attributes: project_to_simplex(e.shares) for attributes, e in known.items()}
    return people.raked(targets)


def _all(design: Design) -> range:
    return range(len(design.sizes))


def _fit_kept(fitted: Fitted, known: Known) -> tuple[list[int], Population]:
    """The attributes that are kept or replaced by a uniform value, and the population of these."""
    design = fitted.design
    own = [(c, m) for c, m in zip(design.clusters, design.matrices, strict=True)
           if isinstance(m, KeepOrUniform)]  # fmt: skip
    kept = sorted(a for cluster, _ in own for a in cluster)
    if not kept:
        rows = np.zeros((ROWS, 0), dtype=np.int32)
        return [], Population(rows, np.full(ROWS, 1 / ROWS), ())
    clusters = tuple(tuple(kept.index(a) for a in cluster) for cluster, _ in own)
    part = Design(tuple(design.sizes[a] for a in kept), clusters, tuple(m for _, m in own))
    told = {tuple(kept.index(a) for a in attributes): estimate
            for attributes, estimate in known.items() if set(attributes) <= set(kept)}  # fmt: skip
    return kept, fit_reports(Fitted(part, fitted.reported[:, kept]), told)


def _with_others(fitted: Fitted, kept: list[int], people: Population) -> Population:
    """These people, with answers to all other questions drawn as if they were independent."""
    records = np.empty((len(people.records), len(fitted.design.sizes)), dtype=np.int32)
    records[:, kept] = people.records
    uniform = np.random.default_rng(5).random
    for cluster in fitted.design.clusters:
        if not set(cluster) <= set(kept):
            records[:, list(cluster)] = fitted.drawn(cluster, len(records), uniform)
    return Population(records, people.weights, fitted.design.sizes)


# ── Pairs ──────────────────────────────────────────────────────────────────────────────────────


def _pair_targets(found: Weighed, known: Known, better: Tables, attributes: int) -> Tables:
    """The tables of all pairs with what is known; they agree about single answers."""
    tables: Tables = {
        pair: _with_known(table, found.risks[pair], known.get(pair))
        for pair, table in found.tables.items()
    }
    margins = []
    for a in range(attributes):
        told = {own: table for own, table in better.items() if a in own}
        told = told or {own: table for own, table in tables.items() if a in own}
        margins.append(np.mean([_margin(table, own, a) for own, table in told.items()], axis=0))
    return _agreeing(tables, margins)


def _better(found: Weighed, known: Known) -> Tables:
    """What is known better than reports tell it; of wider tables, whatever is known."""
    usual = float(np.mean(list(found.risks.values())))
    tables: Tables = {}
    for own, estimate in known.items():
        risk = found.risks.get(own, usual if len(own) == 1 else math.inf)
        if _error(estimate) <= risk:
            alone = project_to_simplex(estimate.shares)
            tables[own] = _with_known(found.tables[own], risk, estimate) if len(own) == 2 else alone
    return tables


def _error(known: Estimate) -> float:
    """The expected squared distance of a table from the true one."""
    return float((known.standard_errors**2).sum())


def _with_known(table: Array, risk: float, known: Estimate | None) -> Array:
    """The average of two tables by how far each is off."""
    if known is None:
        return table
    other, error = project_to_simplex(known.shares), _error(known)
    if error == 0:
        return other
    return np.asarray((error * table + risk * other) / (error + risk))


def _margin(table: Array, attributes: Sequence[int], attribute: int) -> Array:
    others = tuple(axis for axis, a in enumerate(attributes) if a != attribute)
    return np.asarray(table.sum(axis=others))


def _agreeing(tables: Mapping[tuple[int, ...], Array], margins: Sequence[Array]) -> Tables:
    """Tables of pairs, raked to the margins of their attributes; those of one shape at once."""
    shapes: dict[tuple[int, ...], list[tuple[int, ...]]] = {}
    for pair, table in tables.items():
        shapes.setdefault(table.shape, []).append(pair)
    found: Tables = {}
    for pairs in shapes.values():
        raked = np.maximum(np.stack([tables[pair] for pair in pairs]), 1e-9)
        first = np.stack([margins[i] for i, _ in pairs])[:, :, np.newaxis]
        second = np.stack([margins[j] for _, j in pairs])[:, np.newaxis, :]
        for _ in range(MARGIN_SWEEPS):
            raked = raked * (first / np.maximum(raked.sum(axis=2, keepdims=True), 1e-300))
            raked = raked * (second / np.maximum(raked.sum(axis=1, keepdims=True), 1e-300))
        found |= dict(zip(pairs, raked, strict=True))
    return found


# ── Triples ────────────────────────────────────────────────────────────────────────────────────


def _overruling(
    design: KeptClusters, records: Codes, population: Population, taken: set[tuple[int, ...]]
) -> Tables:
    """Tables of three that the reports clearly tell otherwise than the population does."""
    asked = [triple for triple in _triples(design) if triple not in taken]
    found = []
    for triple in asked:
        excess = _excess(design, records, population, triple)
        freedom = max(excess.freedom, 1.0)
        limit = float(chdtri(freedom, FALSE_ALARM / len(asked))) / freedom
        part = 1 - limit * excess.noise / max(excess.energy, 1e-300)
        if part > 0:
            found.append((excess.energy / max(excess.noise, 1e-300), triple, part * excess.table))
    found.sort(key=lambda one: (-one[0], one[1]))
    return {
        triple: _with_pairs_of(
            project_to_simplex(population.table(triple) + moved), population.table(triple)
        )
        for _, triple, moved in found[:MOST_OVERRULING]
    }


def _triples(design: KeptClusters) -> list[tuple[int, ...]]:
    """All tables of three, if they are not too many; else those with the least noise."""

    def noise(triple: tuple[int, ...]) -> tuple[float, tuple[int, ...]]:
        cells = math.prod(design.sizes[a] for a in triple)
        return cells * _blown_up(design, triple), triple

    every = itertools.combinations(range(len(design.sizes)), 3)
    small = [t for t in every if math.prod(design.sizes[a] for a in t) <= MOST_CELLS]
    return sorted(sorted(small, key=noise)[:MOST_TRIPLES])


def _blown_up(design: KeptClusters, attributes: Sequence[int]) -> float:
    """How many times larger randomization makes the variance of these attributes' table."""
    return math.prod(design.keeps[c] ** -2 for c in {design.cluster_of[a] for a in attributes})


@dataclass(frozen=True)
class _Excess:
    """What the reports on three attributes say beyond the tables of their pairs."""

    table: Array
    energy: float
    noise: float
    freedom: float


def _excess(
    design: KeptClusters, records: Codes, population: Population, triple: tuple[int, ...]
) -> _Excess:
    shape = tuple(design.sizes[a] for a in triple)
    cells = np.ravel_multi_index(tuple(records[:, a] for a in triple), shape)
    reported = np.bincount(cells, minlength=math.prod(shape)).reshape(shape) / len(records)
    table = _unbiased(design, triple, reported) - population.table(triple)
    for axis in range(3):
        table = table - table.mean(axis=axis, keepdims=True)
    free = math.prod(size - 1 for size in shape)
    noise = free / math.prod(shape) * (_blown_up(design, triple) - 1) / len(records)
    freedom = min(float(free), 1 / float((reported**2).sum()))
    return _Excess(table, float((table**2).sum()), noise, freedom)


def _unbiased(design: KeptClusters, attributes: Sequence[int], reported: Array) -> Array:
    """Each cluster's part of a table is restored along its own axes."""
    for number in sorted({design.cluster_of[a] for a in attributes}):
        axes = tuple(k for k, a in enumerate(attributes) if design.cluster_of[a] == number)
        keep, size = design.keeps[number], math.prod(reported.shape[axis] for axis in axes)
        whole = KeepOrUniform(size, keep)
        reported = (reported - whole.spread * reported.sum(axis=axes, keepdims=True)) / keep
    return reported


def _with_pairs_of(table: Array, other: Array) -> Array:
    """A table of three, raked to the tables of pairs of another."""
    table = np.maximum(table, 1e-9)
    for _ in range(TRIPLE_SWEEPS):
        for axis in range(3):
            wished, found = (t.sum(axis=axis, keepdims=True) for t in (other, table))
            table = table * (wished / np.maximum(found, 1e-300))
    return table
