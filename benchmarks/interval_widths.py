"""How wide limits are beside those of the prototype they were written from, table by table.

Named peer: that prototype, on the same answers: tables of 2 × 2, 3 × 4 and 5 × 5 cells, even and
skewed, of V = 0, 0.3 and 0.8, through every way of answering. Each ratio is that of the widths,
both summed over these tables in each run: of ``share``, the cells for the population;
``respondents``, the cells for the respondents themselves (exact counts have no width here); ``V``
and ``r`` for the population. Aim: at most 1.15. That limits hold is measured by `coverage`.

--data: the folder with the prototype's ``mech.py``, ``iv.py``, ``iv3.py`` and ``cells.py``.
"""

import itertools
import sys
from collections import defaultdict

import numpy as np

from benchmarks.harness.rows import measured
from mpc_rr.estimation import views
from mpc_rr.estimation.blocks import collect, pooled
from mpc_rr.estimation.distribution import project_to_simplex
from mpc_rr.estimation.intervals import cell_intervals
from mpc_rr.estimation.kronecker import Kronecker
from mpc_rr.estimation.matrix import KeepOrUniform
from mpc_rr.estimation.strength import cramers_v_strength, pearson_strength
from mpc_rr.estimation.uncertainty import (
    BlockAnswers,
    ExactCounts,
    NoisyCounts,
    PartOfReports,
    RandomizedReports,
    ViewReports,
)
from mpc_rr.randomness import SeededRandomness

SHAPES = ((2, 2), (3, 4), (5, 5))
SKEWS = (0.0, 1.5)
DEGREES = (0.0, 0.3, 0.8)
AIM = 1.15
NO_WIDTH = 1e-9


class Exact:
    name = "exact counts"

    def answers(self, old, shape, counts, _rng):
        """The estimate, how it spreads, and the same mechanism in the prototype's words."""
        n = counts.sum()
        return counts / n, ExactCounts(n), old.mech.Exact(*shape, n)


class Noise:
    def __init__(self, scale):
        self.scale, self.name = scale, f"noise {scale:g}"

    def answers(self, old, shape, counts, rng):
        n = counts.sum()
        theirs = old.mech.Noise(*shape, n, self.scale)
        estimate = theirs.simulate(counts[np.newaxis], rng)[0]
        return estimate, NoisyCounts(n, theirs.var), theirs


class Keep:
    def __init__(self, keep, *, joint):
        self.keep, self.joint = keep, joint
        self.name = f"{'pair' if joint else 'each attribute'} kept {keep:g}"

    def answers(self, old, shape, counts, rng):
        n, size = counts.sum(), counts.size
        make = old.mech.joint if self.joint else old.mech.indep
        theirs = make(*shape, n, self.keep)
        estimate = theirs.simulate(counts[np.newaxis], rng)[0]
        sizes = (size,) if self.joint else shape
        matrix = Kronecker([KeepOrUniform(s, self.keep) for s in sizes])
        return estimate, RandomizedReports(n, matrix), theirs


class View:
    def __init__(self, epsilon):
        self.epsilon, self.name = epsilon, f"views, ε = {epsilon:g}"

    def answers(self, old, shape, counts, rng):
        n = counts.sum()
        theirs = old.mech.Views(*shape, n, self.epsilon, 10)
        values = np.repeat(np.arange(counts.size), rng.binomial(counts, 0.1))
        theirs.nv = max(len(values), 1)
        reports = theirs.m.randomize(values, SeededRandomness(int(rng.integers(2**32))))
        seen = np.bincount(reports.ravel(), minlength=counts.size) / theirs.nv
        estimate = (seen - theirs.m.miss) / (theirs.m.hit - theirs.m.miss)
        part = PartOfReports(1.0, theirs.nv, theirs.m, 1)
        return estimate, ViewReports(n, (part,)), theirs


class Blocks:
    def __init__(self, p):
        self.p, self.name = p, f"blocks, p = {p:g}"

    def answers(self, old, shape, counts, rng):
        n = int(counts.sum())
        theirs = old.mech.Blocks(*shape, n, self.p, 0.2, n // 10)
        cells = rng.permutation(np.repeat(np.arange(counts.size), counts))
        random = SeededRandomness(int(rng.integers(2**32)))
        theirs.cur = collect(cells, counts.size, self.p, n // 10, random, 0.2).answered
        return pooled(theirs.cur).shares, BlockAnswers(n, theirs.cur), theirs


WAYS = (
    Exact(), Noise(2.5), Noise(14), Keep(0.2, joint=False), Keep(0.5, joint=False),
    Keep(0.9, joint=False), Keep(0.5, joint=True), Keep(0.9, joint=True), View(2), View(6),
    Blocks(0.3), Blocks(0.7),
)  # fmt: skip


class Prototype:
    """The modules of the recipe, which were written for earlier names of ours."""

    def __init__(self, folder):
        sys.path.insert(0, str(folder))
        views.SubsetSelection = views.SubsetMechanism
        import cells  # noqa: PLC0415
        import iv3  # noqa: PLC0415
        import mech  # noqa: PLC0415

        self.cells, self.iv3, self.mech = cells, iv3, mech

    def share(self, estimate, mechanism, respondents):
        fit, size, found = project_to_simplex(estimate), estimate.size, []
        for cell in range(size):
            inside = np.arange(size) == cell
            cumulants = self.cells.cumulants(mechanism, inside, fit, respondents)
            step = self.step(mechanism, inside)
            low, high = self.cells.p3_interval(
                estimate[cell], cumulants, mechanism, inside, cc=step
            )
            found.append(high - low)
        return np.array(found)

    def step(self, mechanism, inside):
        """Its fifth paragraph: the correction for continuity."""
        if hasattr(mechanism, "A"):
            scores = mechanism.A.T @ inside
            return (scores.max() - scores.min()) / 2 / mechanism.n
        if hasattr(mechanism, "m"):
            return 0.5 / ((mechanism.m.hit - mechanism.m.miss) * mechanism.nv)
        if hasattr(mechanism, "cur"):
            return 0.5 / (mechanism.p * mechanism.n)
        return 0.0 if hasattr(mechanism, "var") else 0.5 / mechanism.n

    def v(self, table, mechanism):
        careful = table.size > 30 or hasattr(mechanism, "cur")
        low, high = self.iv3.Dep(table, mechanism, factor=5.0 if careful else 3.0).interval(0.02)
        return high - low

    def r(self, table, mechanism):
        low, high, _ = self.iv3.r_interval(table, mechanism)
        return high - low


def add_options(parser):
    parser.add_argument("--runs", type=int, default=40, help="of each table")
    parser.add_argument("--n", type=int, nargs="+", default=[100, 1000])


def measure(run):
    old = Prototype(run.data("iv3.py").parent)
    for way, n in itertools.product(WAYS, run.options.n):
        ours, theirs = defaultdict(list), defaultdict(list)
        for rng in run.rngs(run.options.runs, way.name, n):
            for of, (mine, there) in widths(old, way, n, rng).items():
                ours[of].append(mine)
                theirs[of].append(there)
        for of in ours:
            beside = {}
            if sum(theirs[of]) > NO_WIDTH:
                beside = {"others": theirs[of], "beside": "the prototype", "aim": AIM}
            setting = {"way": way.name, "n": n, "of": of}
            yield measured("width of limits", setting, ours[of], better="lower", **beside)


def widths(old, way, n, rng):
    """Here and there, by what they are of, summed over all tables."""
    found = {of: np.zeros(2) for of in ("share", "respondents", "V", "r")}
    for shape, skew, degree in itertools.product(SHAPES, SKEWS, DEGREES):
        truth = old.mech.table(*shape, skew, degree).ravel()
        counts = rng.multinomial(n, truth / truth.sum())
        estimate, uncertainty, theirs = way.answers(old, shape, counts, rng)
        table = estimate.reshape(shape)
        for of, target in (("share", "population"), ("respondents", "respondents")):
            ours = cell_intervals(table, uncertainty, target)
            there = old.share(estimate, theirs, target == "respondents")
            found[of] += (ours.high - ours.low).sum(), there.sum()
        v, r = cramers_v_strength(table, uncertainty), pearson_strength(table, uncertainty)
        found["V"] += v.high - v.low, old.v(table, theirs)
        found["r"] += r.high - r.low, old.r(table, theirs)
    return found
