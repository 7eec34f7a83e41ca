"""What stands side by side: trials that spend the same, and the methods that use what they told.

In a trial the people of the file are asked once, by one protocol. What is published of that is a
method, by the trial's name. Of answers that are randomized in clusters the papers make other
tables, which are methods beside it:

* *multiplied*: shares of each cluster, multiplied as if clusters were independent (000 §3.1, §4).
* *weighted*: the reports with their weights by RR-Adjustment (000 §5), as in ``reports.csv``.
* *uncorrected*: the reports as they are (000 Figure 2, 003 §6.4).
"""

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial

from mpc_rr.errors import InputError
from mpc_rr.estimation.clusters import Clusters, merge_clusters
from mpc_rr.estimation.combinations import Combination
from mpc_rr.estimation.dependence import dependences_of_records
from mpc_rr.estimation.designs import Fitted
from mpc_rr.estimation.estimates import adjusted_weights
from mpc_rr.estimation.guessing import PairTables
from mpc_rr.estimation.matrix import Array, Codes
from mpc_rr.estimation.pairs import PairLayout
from mpc_rr.planning.designs import PlannedDesign, planned_designs, setting_of
from mpc_rr.planning.publishing import OfReports, Told, of_reports
from mpc_rr.planning.trust import NOBODY, summed_pairs
from mpc_rr.privacy.noise_families import Family
from mpc_rr.protocols.collection import check_design
from mpc_rr.protocols.rr_clusters import RRClusters
from mpc_rr.randomness import Randomness
from mpc_rr.schema import Schema

INDEPENDENT, GIVEN, FOUND, NEAR = "independent", "clusters given", "clusters found", "clusters near"
SUMS: Mapping[str, Family | None] = {"sum, Laplace": None, "sum, Gaussian": "gaussian"}
"""Kinds of noise, as a study file names them."""
MULTIPLIED, WEIGHTED, UNCORRECTED = "multiplied", "weighted", "uncorrected"
MADE_OF = {
    INDEPENDENT: (MULTIPLIED, WEIGHTED, UNCORRECTED),
    GIVEN: (MULTIPLIED, WEIGHTED),
    FOUND: (MULTIPLIED, WEIGHTED),
}
SMALLEST_STAY, LARGEST_STAY = 1e-6, 1 - 1e-9
NONE_DEPEND = (
    "no two attributes of this file are associated so strongly that they would be one cluster"
)


@dataclass(frozen=True)
class Trial:
    """People asked once by one protocol."""

    design: PlannedDesign
    trusted: str
    """Who must be trusted, so that its ε holds."""
    central: bool = False
    """Whether ε is only of what is published; else it is of each answer, whoever sees it."""
    delta: float = 0.0

    @property
    def name(self) -> str:
        """Of the trial, and of what would be published of it."""
        return self.design.name

    @property
    def methods(self) -> tuple[str, ...]:
        """What is published, and what else is made of it."""
        return (self.name, *(f"{self.name}, {made}" for made in MADE_OF.get(self.name, ())))


@dataclass(frozen=True)
class Weights:
    """What weights by RR-Adjustment were worth in one run."""

    converged: bool
    missed: float
    """By how much a margin is missed at most, in probability."""
    effective: float
    """Kish's effective sample size."""


@dataclass(frozen=True)
class Outcome:
    """What one trial told."""

    methods: dict[str, Told]
    untold: dict[str, str]
    """Methods that could not be had, and why."""
    weights: dict[str, Weights]


def trials_at(
    schema: Schema, n: int, epsilon: float, clusters: Clusters
) -> tuple[list[Trial], dict[str, str]]:
    """All trials that spend ε a record, and why others cannot be had."""
    setting = setting_of(schema, n)
    together = any(len(cluster) > 1 for cluster in clusters)
    designs, refused = planned_designs(schema, n, epsilon, clusters=clusters if together else None)
    trials = [Trial(_renamed(design), NOBODY) for design in designs]
    refused = {GIVEN if name == "clusters" else name: why for name, why in refused.items()}
    if not together:
        refused |= dict.fromkeys((GIVEN, NEAR), NONE_DEPEND)
    else:
        try:
            trials.append(Trial(_near(schema, epsilon, clusters), NOBODY))
        except InputError as error:
            refused[NEAR] = str(error)
    for name, family in SUMS.items():
        try:
            summed = summed_pairs(setting, epsilon, family)
        except InputError as error:
            refused[name] = str(error)
        else:
            design = replace(summed.design, name=name, what="counts of pairs, with noise inside")
            trials.append(Trial(design, summed.trusted, central=True, delta=summed.noise.delta))
    return trials, refused


def _renamed(design: PlannedDesign) -> PlannedDesign:
    if design.name != "clusters":
        return design
    return replace(design, name=GIVEN, what="each cluster at once, clusters known before")


def clusters_of(records: Codes, sizes: tuple[int, ...]) -> Clusters:
    """By the true dependences of a file, with the limits that studies have (000 Algorithm 1)."""
    limits = RRClusters()
    dependences = dependences_of_records(records, sizes)
    return merge_clusters(dependences, sizes, limits.most_combinations, limits.least_dependence)


def _near(schema: Schema, epsilon: float, clusters: Clusters) -> PlannedDesign:
    """Clusters that go rather to near combinations (003 §6.2), as seldom as ε allows."""
    names = tuple(tuple(schema.names[a] for a in cluster) for cluster in clusters)

    def asking(stay: float) -> RRClusters:
        return RRClusters(clusters=names, stay=stay)

    from scipy.optimize import brentq  # noqa: PLC0415  (slow to start)

    def excess(stay: float) -> float:
        return asking(stay).design(schema, clusters).epsilon - epsilon

    tried = [1 / 2**k for k in range(20, 0, -1)] + [1 - 1 / 2**k for k in range(2, 31)]
    low, high = next(
        ((a, b) for a, b in itertools.pairwise(tried) if excess(a) <= 0 <= excess(b)), (0.0, 0.0)
    )
    if not high:
        least = min(map(excess, tried)) + epsilon
        raise InputError(
            f"however seldom a combination stays, moving to near ones costs ε = {least:.3g} or more"
        )
    stay = float(brentq(excess, low, high, xtol=1e-12))
    design = asking(stay).design(schema, clusters)
    check_design(design)
    what = "each cluster at once, rather moved to a near combination"
    most = max(matrix.epsilon for matrix in design.matrices)
    return PlannedDesign(
        NEAR, what, design.epsilon, most, partial(of_reports, design), asking(stay)
    )


# ── Methods ────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class OtherTables(Told):
    """Tables that are made of the same reports by another rule."""

    sizes: tuple[int, ...]
    made: Callable[[Combination], Array]

    def table(self, attributes: Combination) -> Array:
        """By that rule."""
        return self.made(attributes)

    @property
    def pair_tables(self) -> PairTables:
        """By that rule, all of them."""
        return {pair: self.made(pair) for pair in PairLayout(self.sizes).pairs}


def asked_once(trial: Trial, schema: Schema, records: Codes, rng: Randomness) -> Outcome:
    """The people of the file answer, and all methods make what they can of it."""
    try:
        told = trial.design.publish(schema, records, rng)
    except InputError as error:
        return Outcome({}, dict.fromkeys(trial.methods, str(error)), {})
    found = Outcome({trial.name: told}, {}, {})
    for made in MADE_OF.get(trial.name, ()):
        name = f"{trial.name}, {made}"
        assert isinstance(told, OfReports)
        assert isinstance(told.estimates.fitted, Fitted)
        try:
            found.methods[name] = _other(made, name, told.estimates.fitted, found.weights)
        except InputError as error:
            found.untold[name] = str(error)
    return found


def _other(made: str, name: str, fitted: Fitted, weights: dict[str, Weights]) -> Told:
    sizes = fitted.design.sizes
    match made:
        case "multiplied":
            return OtherTables(sizes, fitted.table)
        case "uncorrected":
            return OtherTables(sizes, lambda attributes: fitted.counts(attributes) / fitted.n)
    found = adjusted_weights(fitted)
    ended = found.adjustment
    weights[name] = Weights(ended.converged, ended.worst_margin, found.effective)
    return OtherTables(sizes, lambda attributes: ended.table(attributes, sizes))
