"""Statistics of uncertain tables, against numpy on the records, jackknives and simulation."""

import math

import numpy as np
import pytest
from scipy.stats import binom

from mpc_rr.errors import InputError
from mpc_rr.estimation import statistics
from mpc_rr.estimation.distribution import subset_share
from mpc_rr.estimation.joint import MOST_TOGETHER, Joint
from mpc_rr.estimation.kronecker import Kronecker
from mpc_rr.estimation.matrix import Dense, KeepOrUniform
from mpc_rr.estimation.uncertainty import (
    ExactCounts,
    NoisyCounts,
    RandomizedReports,
    WeightedReports,
)

SIZES = (4, 3, 2)
X, Y, G = (np.indices(SIZES).reshape(3, -1).astype(float)[k] for k in range(3))
SCORE = np.array([1.0, 2.5, 7.0, 20.0])[X.astype(int)]
ALL = np.ones(X.size)
LEVEL = 0.95


def people(n=600, seed=3):
    """Records in which everything depends on everything."""
    rng = np.random.default_rng(seed)
    x = rng.choice(4, n, p=[0.4, 0.3, 0.2, 0.1])
    y = np.clip(x // 2 + rng.integers(0, 2, n), 0, 2)
    g = (rng.random(n) < 0.3 + 0.2 * (x > 1)).astype(int)
    return np.stack([x, y, g], axis=1)


def counted(records, weights=None):
    cells = np.ravel_multi_index(tuple(records.T), SIZES)
    return np.bincount(cells, weights=weights, minlength=math.prod(SIZES)).astype(float)


def exact(records):
    return Joint(
        (0, 1, 2), counted(records).reshape(SIZES) / len(records), ExactCounts(len(records))
    )


def matrix_of(keep):
    """Of one attribute a matrix that is not symmetric."""
    own = Dense(
        keep * np.eye(3)
        + (1 - keep) * np.array([[0.5, 0.3, 0.2], [0.2, 0.6, 0.2], [0.1, 0.3, 0.6]])
    )
    return Kronecker([KeepOrUniform(4, keep), own, KeepOrUniform(2, keep)])


def reported(counts, keep):
    """The table that these reports tell."""
    n, matrix = counts.sum(), matrix_of(keep)
    return Joint((0, 1, 2), matrix.solve(counts.reshape(SIZES) / n), RandomizedReports(n, matrix))


def draw(records, keep, rng):
    """Randomized records."""
    columns = []
    for column, matrix in zip(records.T, matrix_of(keep).matrices, strict=True):
        ends = np.cumsum(matrix.dense(), axis=1)[column]
        columns.append((rng.random(len(records))[:, np.newaxis] >= ends[:, :-1]).sum(axis=1))
    return np.stack(columns, axis=1)


def everything(joint, inside):
    """All statistics of a table, by name."""
    design = statistics.design_of([X, G])
    found = {
        "mean": statistics.mean(joint, inside, SCORE, LEVEL),
        "variance": statistics.variance(joint, inside, SCORE, LEVEL),
        "deviation": statistics.standard_deviation(joint, inside, SCORE, LEVEL),
        "covariance": statistics.covariance(joint, inside, SCORE, Y, LEVEL),
        "correlation": statistics.correlation(joint, inside, SCORE, Y, LEVEL),
        "share": statistics.share(joint, inside, (Y == 1) * 1.0, LEVEL),
    }
    linear = statistics.linear(joint, inside, design, Y, LEVEL)
    return found | {f"slope {k}": one for k, one in enumerate(linear.coefficients)}


def by_numpy(records, meant):
    x, y, g = records[meant].T
    score = np.array([1.0, 2.5, 7.0, 20.0])[x]
    slopes = np.linalg.lstsq(np.stack([np.ones(len(x)), x, g], axis=1), y, rcond=None)[0]
    return {
        "mean": score.mean(), "variance": score.var(), "deviation": score.std(),
        "covariance": np.cov(score, y, ddof=0)[0, 1], "correlation": np.corrcoef(score, y)[0, 1],
        "share": (y == 1).mean(), **{f"slope {k}": v for k, v in enumerate(slopes)},
    }  # fmt: skip


@pytest.mark.parametrize("group", [None, 1], ids=["everybody", "a group"])
@pytest.mark.parametrize("way", ["counted", "keep nearly 1"])
def test_everything_is_numpy_s_where_nothing_is_randomized(way, group):
    records = people()
    joint = exact(records) if way == "counted" else reported(counted(records), 1 - 1e-9)
    inside = ALL if group is None else (group == G) * 1.0
    meant = np.ones(len(records), bool) if group is None else records[:, 2] == group
    if group is not None:  # within a group it does not vary
        found = everything_but_slopes(joint, inside)
        wanted = {k: v for k, v in by_numpy(records, meant).items() if "slope" not in k}
    else:
        found, wanted = everything(joint, inside), by_numpy(records, meant)
    half = 0.51 / meant.sum()  # a person, where reports come in whole ones
    for name, one in found.items():
        assert one.value == pytest.approx(wanted[name], rel=1e-6), name
        assert one.people == pytest.approx(meant.sum(), rel=1e-6)
        assert one.respondents == pytest.approx((one.value, one.value), rel=1e-3, abs=half), name
        assert one.population[0] < one.value < one.population[1], name


def everything_but_slopes(joint, inside):
    return {
        "mean": statistics.mean(joint, inside, SCORE, LEVEL),
        "variance": statistics.variance(joint, inside, SCORE, LEVEL),
        "covariance": statistics.covariance(joint, inside, SCORE, Y, LEVEL),
        "correlation": statistics.correlation(joint, inside, SCORE, Y, LEVEL),
        "share": statistics.share(joint, inside, (Y == 1) * 1.0, LEVEL),
    }


@pytest.mark.parametrize("probability", [0.05, 0.25, 0.4, 0.5, 0.7, 0.9, 0.99])
def test_quantiles_are_numpy_s_first_that_is_not_exceeded(probability):
    records = people()
    x = np.array([1.0, 2.5, 7.0, 20.0])[records[:, 0]]
    wanted = np.quantile(x, probability, method="inverted_cdf")
    for joint in (exact(records), reported(counted(records), 1 - 1e-9)):
        found = statistics.quantile(joint, ALL, SCORE, probability, LEVEL)
        assert found.value == wanted
        assert found.population[0] <= wanted <= found.population[1]


def test_a_mean_of_zeros_and_ones_is_the_unbiased_share_with_its_error():
    counts = counted(draw(people(), 0.5, np.random.default_rng(1)))
    joint = reported(counts, 0.5)
    wanted = (Y == 1) * 1.0
    value, error = subset_share(counts.reshape(SIZES), matrix_of(0.5), wanted.reshape(SIZES))
    found = statistics.mean(joint, ALL, wanted, LEVEL)
    assert found.value == pytest.approx(value, rel=1e-12)
    assert found.standard_error == pytest.approx(error, rel=1e-9)


@pytest.mark.parametrize("weighted", [False, True], ids=["equal", "weighted"])
def test_errors_are_those_of_a_jackknife(weighted):
    """Leaving out one report after the other; the two agree within two per cent at n = 2,000."""
    rng = np.random.default_rng(8)
    records = draw(people(2000), 0.7, rng)
    weights = rng.choice([1.0, 3.0], len(records)) if weighted else np.ones(len(records))
    cells = np.ravel_multi_index(tuple(records.T), SIZES)

    def joint(weight):
        both = (np.bincount(cells, weights=w, minlength=24) for w in (weight, weight**2))
        return of_weights(*both, (weight > 0).sum())

    found = everything(joint(weights), ALL)
    moved = {name: [] for name in found}
    times = []
    for cell, weight in sorted({*zip(cells.tolist(), weights.tolist(), strict=True)}):
        same = np.flatnonzero((cells == cell) & (weights == weight))
        without = weights.copy()
        without[same[0]] = 0.0
        times.append(len(same))
        for name, one in everything(joint(without), ALL).items():
            moved[name].append(one.value)
    times, n = np.array(times), len(records)
    for name, one in found.items():
        left = np.array(moved[name])
        centre = times @ left / n
        jackknife = math.sqrt((n - 1) / n * (times @ (left - centre) ** 2))
        assert one.standard_error == pytest.approx(jackknife, rel=0.02), name


def of_weights(weights, squares, n):
    matrix = matrix_of(0.7)
    shares = matrix.solve((weights / weights.sum()).reshape(SIZES))
    return Joint((0, 1, 2), shares, WeightedReports(n, matrix, weights, squares))


def test_equal_weights_are_none():
    counts = counted(draw(people(), 0.7, np.random.default_rng(2)))
    plain, same = reported(counts, 0.7), of_weights(3 * counts, 9 * counts, counts.sum())
    for name, one in everything(plain, ALL).items():
        other = everything(same, ALL)[name]
        assert other.value == pytest.approx(one.value, rel=1e-9), name
        if name != "share":  # whose limits use the skewness of equal weights
            assert other.population == pytest.approx(one.population, rel=1e-6), name
            assert other.respondents == pytest.approx(one.respondents, rel=1e-6), name


def test_of_the_very_respondents_only_randomization_is_uncertain():
    """The same 600 people randomized 150 times: estimates around *their* statistics are without
    bias (five standard errors of nine numbers: once in 190,000), and spread as the narrower limits
    say (within a quarter: a standard deviation of 150 is known to 6 %)."""
    records, rng = people(), np.random.default_rng(5)
    truth = by_numpy(records, np.ones(len(records), bool))
    runs = [everything(reported(counted(draw(records, 0.75, rng)), 0.75), ALL) for _ in range(150)]
    for name, wanted in truth.items():
        values = np.array([run[name].value for run in runs])
        error = values.std(ddof=1)
        assert abs(values.mean() - wanted) < 5 * error / math.sqrt(150), name
        held = [run[name].respondents[0] <= wanted <= run[name].respondents[1] for run in runs]
        assert np.mean(held) > 0.86, name
        width = np.median([run[name].respondents[1] - run[name].respondents[0] for run in runs])
        assert width / 2 / 1.96 == pytest.approx(error, rel=0.25), name


def test_variances_are_not_made_larger_or_smaller_by_randomizing_the_mean():
    """Of 40 people: without bias over 1,000 runs within five standard errors (once in 1.7 million);
    the variance around the estimated mean alone is too small by more than that."""
    records, rng = people(40), np.random.default_rng(6)
    truth = by_numpy(records, np.ones(40, bool))
    found, plain = [], []
    for _ in range(1000):
        joint = reported(counted(draw(records, 0.3, rng)), 0.3)
        own = statistics.covariance(joint, ALL, SCORE, SCORE, LEVEL).value  # negative ones, too
        found.append(own)
        centre = SCORE @ joint.shares
        plain.append((SCORE - centre) ** 2 @ joint.shares)
    error = np.std(found) / math.sqrt(len(found))
    assert abs(np.mean(found) - truth["variance"]) < 5 * error
    assert np.mean(plain) < truth["variance"] - 5 * error


def test_limits_hold_the_number_and_what_is_possible():
    rng = np.random.default_rng(9)
    for keep in (0.05, 0.2, 0.6):
        for n in (20, 100):
            joint = reported(counted(draw(people(n), keep, rng)), keep)
            for name, one in everything_but_slopes(joint, ALL).items():
                for limits in (one.respondents, one.population):
                    if one.value is not None:
                        assert limits[0] <= one.value <= limits[1], name
                low, high = {"mean": (1, 20), "share": (0, 1), "correlation": (-1, 1)}.get(
                    name, (-math.inf, math.inf)
                )
                assert low <= one.population[0] <= one.population[1] <= high


def test_what_cannot_be_told_is_not_told():
    joint = reported(counted(draw(people(50), 0.05, np.random.default_rng(3))), 0.05)
    assert statistics.correlation(joint, ALL, SCORE, Y, LEVEL).value is None
    assert statistics.mean(joint, (G * (X == 3)) * 1.0, Y, LEVEL).value is None
    assert statistics.linear(joint, ALL, statistics.design_of([X, G]), Y, LEVEL) is None


def test_noise_is_no_correlation():
    """Of two independent scores one in fifty is told to correlate (0.02), on average.

    Of 150, eleven or more once in 5,000 random seeds; none is ±1 with a standard error near it.
    """
    rng, told = np.random.default_rng(8), []
    for _ in range(150):
        x, y = rng.integers(0, SIZES[0], 200), rng.integers(0, SIZES[1], 200)
        records = np.stack([x, y, rng.integers(0, SIZES[2], 200)], axis=1)
        joint = reported(counted(draw(records, 0.2, rng)), 0.2)
        found = statistics.correlation(joint, ALL, SCORE, Y, LEVEL)
        assert found.population[0] <= found.population[1]
        told += [found.value] * (found.value is not None)
    assert len(told) <= 10


def test_a_mean_of_people_who_may_be_none_is_not_told():
    """One in a hundred seems to be in the group, and the noise in a count is five people."""
    table = np.zeros(SIZES)
    table[0, 1, 1], table[0, 0, 0] = 1, 99
    joint = Joint((0, 1, 2), table / 100, NoisyCounts(100, 25.0))
    assert statistics.mean(joint, (G == 1) * 1.0, Y, LEVEL).value is None
    assert statistics.mean(joint, (G == 0) * 1.0, Y, LEVEL).value is not None


def test_predictors_that_say_the_same_are_not_told_apart():
    assert (
        statistics.linear(exact(people()), ALL, statistics.design_of([X, 2 * X]), Y, LEVEL) is None
    )


def test_tables_too_large_for_their_covariance_are_refused():
    wide = np.full((MOST_TOGETHER + 1, 1), 1 / (MOST_TOGETHER + 1))
    with pytest.raises(InputError, match="name fewer attributes"):
        Joint((0, 1), wide, NoisyCounts(10, 1.0))
    Joint((0, 1), wide, ExactCounts(10))


def test_a_share_of_a_group_has_limits_that_hold_where_it_is_rare():
    """Of 30 people in the group 2 % meet it: every number that may meet it, by its probability.
    Limits from a standard error would hold in less than half."""
    meets, inside = (Y == 1) * 1.0, (G == 1) * 1.0
    held = normal = 0.0
    for met in range(8):
        table = np.zeros(SIZES)
        table[0, 1, 1], table[0, 0, 1], table[0, 0, 0] = met, 30 - met, 170
        joint = Joint((0, 1, 2), table / 200, ExactCounts(200))
        found = statistics.share(joint, inside, meets, LEVEL)
        low, high = found.population
        chance = binom.pmf(met, 30, 0.02)
        held += chance * (low <= 0.02 <= high)
        normal += chance * (abs(found.value - 0.02) <= 1.96 * found.standard_error)
    assert held > 0.95
    assert normal < 0.5
