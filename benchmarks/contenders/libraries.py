"""pure-ldp, multi-freq-ldpy and private-pgm (mbi), each as its authors mean it to be used.

Their estimates of shares are projected on the distributions, which only helps them. In the first
two each respondent reports one random pair with the whole budget.
"""

import itertools
import math
import random
from collections.abc import Sequence

import numpy as np

from benchmarks.contenders.tables import Attributes, Contender, Table
from benchmarks.contenders.views import as_views
from mpc_rr.estimation.distribution import project_to_simplex
from mpc_rr.estimation.matrix import Array, Codes
from mpc_rr.estimation.views import FittedViews

try:
    from pure_ldp.frequency_oracles.direct_encoding import DEClient, DEServer
except ImportError:
    DEClient = None
try:
    from multi_freq_ldpy.mdim_freq_est.SMP_solution import SMP_SS_Aggregator_MI, SMP_SS_Client
except ImportError:
    SMP_SS_Client = None
try:
    import mbi
except ImportError:
    mbi = None

PURE_LDP, MULTI_FREQ, PRIVATE_PGM = "pure-ldp", "multi-freq-ldpy", "private-pgm"
HOW_TO_INSTALL = {
    PURE_LDP: "pip install -e '.[bench]'",
    MULTI_FREQ: "pip install -e '.[bench]'",
    PRIVATE_PGM: "pip install mbi jax",
}
ITERATIONS = 150
"""Of mirror descent; more change the third digit."""


def missing(name: str) -> bool:
    """Whether a library is not installed."""
    needed = {PURE_LDP: DEClient, MULTI_FREQ: SMP_SS_Client, PRIVATE_PGM: mbi}
    return name in needed and needed[name] is None


def _pair_cells(codes: Codes, sizes: Sequence[int]) -> tuple[list[Attributes], list[int], Codes]:
    pairs = list(itertools.combinations(range(len(sizes)), 2))
    cells = [codes[:, i] * sizes[j] + codes[:, j] for i, j in pairs]
    return pairs, [sizes[i] * sizes[j] for i, j in pairs], np.stack(cells, axis=1)


def _seeded(rng: np.random.Generator) -> None:
    """These libraries draw from the global generators."""
    random.seed(int(rng.integers(2**32)))
    np.random.seed(rng.integers(2**32))


def _of_pairs(pairs: Sequence[Attributes], shares: Sequence[Array], sizes: Sequence[int]) -> Table:
    tables = {
        pair: project_to_simplex(np.asarray(share)).reshape([sizes[a] for a in pair])
        for pair, share in zip(pairs, shares, strict=True)
    }
    return tables.get


def collect_pure_ldp(codes, sizes, epsilon, rng):
    """Direct encoding of one pair."""
    _seeded(rng)
    pairs, widths, cells = _pair_cells(codes, sizes)
    drawn, servers = rng.integers(len(pairs), size=len(cells)), []
    for number, width in enumerate(widths):
        client = DEClient(epsilon, width, index_mapper=lambda x: x)
        server = DEServer(epsilon, width, index_mapper=lambda x: x)
        mine = cells[drawn == number, number].tolist()
        for cell in mine:
            server.aggregate(client.privatise(cell))
        servers.append((server, width, len(mine)))
    return pairs, servers, sizes


def pure_ldp(collected) -> Table:
    """What its servers tell."""
    pairs, servers, sizes = collected
    shares = [
        np.array([server.estimate(c, suppress_warnings=True) for c in range(width)]) / max(n, 1)
        for server, width, n in servers
    ]
    return _of_pairs(pairs, shares, sizes)


def collect_multi_freq(codes, sizes, epsilon, rng):
    """SMP with subset selection: one pair of each respondent."""
    _seeded(rng)
    pairs, widths, cells = _pair_cells(codes, sizes)
    reports = [SMP_SS_Client(row, widths, len(widths), epsilon) for row in cells]
    return pairs, widths, reports, sizes, epsilon


def multi_freq(collected) -> Table:
    """What its aggregator tells."""
    pairs, widths, reports, sizes, epsilon = collected
    shares = SMP_SS_Aggregator_MI(reports, widths, len(widths), epsilon)
    return _of_pairs(pairs, shares, sizes)


def private_pgm(fitted: FittedViews) -> Table:
    """Mirror descent over the reports of `rr_views`: a noisy table for each view."""
    reports = as_views(fitted)
    names = [f"a{k}" for k in range(len(reports.sizes))]
    measurements = []
    for view, sets in reports.reported.items():
        if len(sets):
            mechanism = reports.mechanism(view)
            told = mechanism.estimate(sets)
            spread = math.sqrt(float(np.mean(told.standard_errors**2))) * reports.n
            clique = tuple(names[a] for a in view)
            measurements.append(
                mbi.LinearMeasurement(told.shares * reports.n, clique, stddev=spread)
            )
    domain = mbi.Domain(names, reports.sizes)
    model = mbi.estimation.MirrorDescent().estimate(
        domain, measurements, known_total=reports.n, iters=ITERATIONS
    )

    def table(attributes: Attributes) -> Array:
        found = model.project(tuple(names[a] for a in attributes)).datavector(flatten=False)
        return np.asarray(found) / reports.n

    return table


def contenders(collect_views) -> list[Contender]:
    """All three; the last reads the given reports of views."""
    return [
        Contender(PURE_LDP, collect_pure_ldp, pure_ldp),
        Contender(MULTI_FREQ, collect_multi_freq, multi_freq),
        Contender(PRIVATE_PGM, collect_views, private_pgm),
    ]
