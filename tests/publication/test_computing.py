"""Statistics of what studies publish: of every kind of ending, in folders and in study files."""

import json
import math
from pathlib import Path

import msgspec
import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit
from scipy.stats import binom

from benchmarks import computed as bench
from benchmarks.coverage import POPULATIONS, SETTINGS, Tally, drawn, randomness
from mpc_rr import compute, correlation, linear, mean, median, query, score, share, simulate, table
from mpc_rr.errors import InputError, ScenarioError
from mpc_rr.protocols.block_aggregation import BlockAggregation
from mpc_rr.protocols.exact_pairs import ExactPairs
from mpc_rr.protocols.rr_clusters import RRClusters
from mpc_rr.protocols.rr_each_attribute import RREachAttribute
from mpc_rr.protocols.rr_independent import RRIndependent
from mpc_rr.protocols.rr_joint import RRJoint
from mpc_rr.protocols.rr_pairs import RRPairs
from mpc_rr.protocols.rr_views import RRViews
from mpc_rr.publication import whole
from mpc_rr.publication.ending import Computation
from mpc_rr.results.asking import read_weights
from mpc_rr.results.claims import Contradicted
from mpc_rr.results.folder import read_folder
from mpc_rr.results.verification import verify
from mpc_rr.running import simulate as simulate_study
from mpc_rr.schema import Attribute, Schema
from mpc_rr.study.definition import Deadlines, Parties, Study, study_from_json, study_json
from mpc_rr.study.file import load_scenario

ROOT = Path(__file__).parents[2]
SCHEMA = Schema((
    Attribute("age", "ordinal", ("young", "middle", "old")),
    Attribute("car", "nominal", ("no", "yes")),
    Attribute("trips", "ordinal", ("0", "1", "2", "5", "not told"), missing="not told"),
))  # fmt: skip
N = 240


def records():
    rng = np.random.default_rng(12)
    age = rng.integers(0, 3, N)
    car = (rng.random(N) < 0.3 + 0.2 * age).astype(int)
    trips = np.where(rng.random(N) < 0.1, 4, np.clip(rng.integers(0, 3, N) + car, 0, 3))
    return np.stack([age, car, trips], axis=1)


def run_of(protocol, n=N, results=()):
    study = Study(
        name="travel", title="Travel", description="", schema=SCHEMA, protocol=protocol,
        parties=Parties(count=n), deadlines=Deadlines(), results=results,
    )  # fmt: skip
    frame = {
        a.name: [a.categories[code] for code in column]
        for a, column in zip(SCHEMA.attributes, records()[:n].T, strict=True)
    }
    return simulate(study, frame, seed=4)


@pytest.fixture(scope="module")
def randomized(tmp_path_factory):
    """A folder in which nearly nothing is randomized: the answers are those of the records."""
    run = run_of(RRIndependent(keep=1 - 1e-7))
    return run.save(tmp_path_factory.mktemp("randomized") / "run")


@pytest.fixture(scope="module")
def exact(tmp_path_factory):
    return run_of(ExactPairs(), 30).save(tmp_path_factory.mktemp("exact") / "run")


def trips_of(meant):
    """The numbers of those who told them."""
    told = records()[meant & (records()[:, 2] < 4)]
    return np.array([0.0, 1, 2, 5])[told[:, 2]], told


def test_missing_answers_are_left_out_and_the_rest_is_counted(randomized):
    trips, _ = trips_of(np.ones(N, bool))
    found = compute(randomized, mean("trips"))
    assert found.value == pytest.approx(trips.mean(), rel=1e-4)
    assert found.values[0].people == pytest.approx(len(trips), rel=1e-4)
    assert found.n == N
    assert "the numbers that its answers are (0 = 0, 1 = 1, 2 = 2, 5 = 5)" in found.how
    assert "Only of those who answered" in found.how


def test_groups_and_conditions(randomized):
    cars = records()[:, 1] == 1
    found = compute(randomized, "mean(trips)", by="age", where="car = yes")
    assert [value.group for value in found.values] == ["young", "middle", "old"]
    for age, value in enumerate(found.values):
        trips, _ = trips_of(cars & (records()[:, 0] == age))
        assert value.value == pytest.approx(trips.mean(), rel=1e-3)
        assert value.people == pytest.approx(len(trips), rel=1e-3)
    assert found["old"].value == found.values[2].value
    assert (found.by, found.where) == ("age", "car = yes")


@pytest.mark.parametrize("keep", [0.6, 1 - 1e-7])
def test_what_a_condition_excludes_is_surely_nobody(keep, tmp_path):
    """Limits were found by halving: 0 to 4.5e-13."""
    run = run_of(RRIndependent(keep=keep)).save(tmp_path / "run")
    young = "age = young"
    found = compute(run, table("age", "car"), where=young)
    for cell in found.values:
        if young not in cell.name:
            assert (cell.value, cell.standard_error) == (0.0, 0.0)
            assert cell.respondents == cell.population == (0.0, 0.0)
        else:
            assert cell.population[0] < cell.value < cell.population[1]
    everyone = compute(run, share("age = young or car = yes"), where=young).values[0]
    assert (everyone.value, everyone.standard_error) == (1.0, 0.0)
    assert everyone.respondents == everyone.population == (1.0, 1.0)


def test_tables_of_three_are_those_of_the_records(randomized):
    found = compute(randomized, table("age", "car", "trips"))
    assert len(found.values) == 3 * 2 * 5
    for value, cell in zip(found.values, np.ndindex(3, 2, 5), strict=True):
        assert value.value == pytest.approx((records() == cell).all(axis=1).mean(), abs=2e-3)
    assert sum(value.value for value in found.values) == pytest.approx(1)
    assert found.values[0].name == "age = young and car = no and trips = 0"


def test_regression_and_correlation_of_those_who_answered(randomized):
    trips, told = trips_of(np.ones(N, bool))
    design = np.stack([np.ones(len(told)), told[:, 0], told[:, 1]], axis=1)
    wanted = np.linalg.lstsq(design, trips, rcond=None)[0]
    found = compute(randomized, linear("trips", "age", "car"))
    assert [value.name for value in found.values] == ["intercept", "age", "car = yes"]
    assert [value.value for value in found.values] == pytest.approx(wanted, abs=1e-3)
    own = score("age", {"young": 20, "middle": 40, "old": 70})
    wanted = np.corrcoef(np.array([20, 40, 70])[told[:, 0]], trips)[0, 1]
    assert compute(randomized, correlation(own, "trips")).value == pytest.approx(wanted, abs=1e-3)
    assert compute(randomized, median("age")).values[0].label in ("young", "middle", "old")


RANKED = Schema((
    Attribute("a", "ordinal", ("low", "middle", "high")),
    Attribute("b", "ordinal", ("1", "2", "3", "4", "none"), missing="none"),
    Attribute("c", "ordinal", ("no", "some", "much")),
    Attribute("d", "nominal", ("x", "y")),
))  # fmt: skip
WAYS = {
    "independent": RRIndependent(keep=0.5),
    "little": RRIndependent(keep=0.2),
    "joint": RRJoint(epsilon=6.0),
    "views": RRViews(epsilon=4.0),
    "pairs": RRPairs(keep=0.6),
    "each": RREachAttribute(keep=0.5),
    "clusters": RRClusters(keep=0.6, dependence=RREachAttribute(keep=0.6)),
    "blocks": BlockAggregation(p=0.7, floor=0.2, block=50, together=2),
    "noise": ExactPairs(noise_epsilon=10.0),
    "exact": ExactPairs(),
}


@pytest.mark.parametrize("way", WAYS)
def test_correlations_of_one_folder_are_those_it_publishes(way, tmp_path):
    """Two questions that depend on each other, and one that does not; one may be left out."""
    n = 60 if way in ("exact", "noise", "pairs") else 300
    rng = np.random.default_rng(6)
    first = rng.integers(0, 3, n)
    second = np.where(rng.random(n) < 0.1, 4, np.clip(first + rng.integers(0, 2, n), 0, 3))
    answers = np.stack([first, second, rng.integers(0, 3, n), rng.integers(0, 2, n)], axis=1)
    study = Study(
        name="ranked", title="Ranked", description="", schema=RANKED, protocol=WAYS[way],
        parties=Parties(count=n), deadlines=Deadlines(),
    )  # fmt: skip
    run = simulate_study(study, answers.tolist(), seed=2)
    folder, listed = run.save(tmp_path / "run"), run.publication.listing("dependence")
    place = {column.name: k for k, column in enumerate(listed.columns)}
    ranked = [row for row in listed.rows if row[place["measure"]] == "r"]
    assert len(ranked) == 3
    for row in ranked:
        (found,) = compute(folder, f"correlation({row[0]}, {row[1]})").values
        value = row[place["value"]]
        assert found.value == (None if value is None else pytest.approx(value, abs=1e-6))
        assert found.population == pytest.approx((row[place["low"]], row[place["high"]]), abs=1e-6)
        (other,) = compute(folder, f"correlation({row[1]}, {row[0]})", level=0.8).values
        assert other.value == found.value
        for told in (found, other):
            assert told.value is None or told.respondents[0] <= told.value <= told.respondents[1]
            assert told.value is None or told.population[0] <= told.value <= told.population[1]
    if way != "exact":  # by other scores it is the same rule, if not the same estimate
        unlike = score("a", {"low": 0, "middle": 1, "high": 9})
        (found,) = compute(folder, correlation(unlike, "c")).values
        low, high = found.population
        assert found.value is None or low > 0 or high < 0 or max(-low, high) <= 0.3


CONDITIONS = ["car = yes", "trips is missing", "age >= middle and car = no", "not (age = old)"]


@pytest.mark.parametrize(
    "protocol", [RRIndependent(keep=0.5), RRViews(epsilon=4.0), ExactPairs(),
                 ExactPairs(noise_epsilon=20.0)], ids=lambda p: type(p).__name__,
)  # fmt: skip
def test_query_and_compute_of_one_folder_agree(protocol, tmp_path):
    n = 30 if isinstance(protocol, ExactPairs) else N
    run = run_of(protocol, n)
    folder = run.save(tmp_path / "run")
    for condition in CONDITIONS:
        answer, found = query(folder, condition), compute(folder, share(condition)).values[0]
        assert found.value == answer.share
        assert found.population == answer.population
        assert found.respondents == pytest.approx([end / n for end in answer.interval])
    # Shares of groups are those of the tables that conditions are answered from.
    both, whole_group = (query(folder, c).share for c in ("car = yes and age = old", "age = old"))
    grouped = compute(folder, "share(car = yes)", by="age")["old"]
    if grouped.value is not None and not isinstance(protocol, ExactPairs):
        assert grouped.value == pytest.approx(both / whole_group, abs=2e-3)
        assert grouped.population[0] <= grouped.value <= grouped.population[1]


def test_exact_counts_are_sure_of_the_respondents(exact):
    found = compute(exact, "mean(trips)", by="car")
    for code, value in enumerate(found.values):
        mine = records()[:30]
        told = mine[(mine[:, 1] == code) & (mine[:, 2] < 4), 2]
        assert value.value == pytest.approx(np.array([0.0, 1, 2, 5])[told].mean())
        assert value.respondents == pytest.approx((value.value, value.value))
    assert "The counts are exact" in found.how


@pytest.mark.parametrize(
    ("expression", "options", "why"),
    [
        (
            "table(age, car, trips)",
            {},
            "no published table holds “age”, “car”, “trips” together",
        ),
        ("mean(trips)", {"by": "trips"}, "is what is computed; name another with by"),
        ("mean(trips)", {"by": "agee"}, "did you mean “age”?"),
        ("mean(car)", {}, "is nominal: its answers are no numbers"),
        ("covariance(age, age)", {}, "is named twice"),
        ("logistic(car = yes, car)", {}, "it would explain itself"),
        ("share(car = yes or car = no)", {}, "everyone meets this condition"),
        ("mean(trips)", {"where": "car = blue"}, "is not one of its categories"),
        ("mean(trips)", {"level": 95}, "a confidence level lies between 0 and 1"),
        ("mean(trips)", {"weights": {}}, "holds sums, not answers of single parties"),
    ],
)
def test_what_cannot_be_computed_is_refused_in_one_line(exact, expression, options, why):
    with pytest.raises(InputError) as error:
        compute(exact, expression, **options)
    assert why in str(error.value)
    assert "\n" not in str(error.value)


def test_hidden_counts_and_released_records_are_refused(tmp_path):
    hidden = run_of(ExactPairs(suppress_below=3), 30).save(tmp_path / "hidden")
    with pytest.raises(InputError, match="some of its counts are hidden"):
        compute(hidden, "mean(trips)")
    scenario = load_scenario(ROOT / "scenarios" / "hidden_in_groups.toml")
    groups = simulate(scenario, seed=1).save(tmp_path / "groups")
    with pytest.raises(InputError, match="holds released records"):
        compute(groups, "mean(age)")


# ── Weights ────────────────────────────────────────────────────────────────────────────────────


def test_weights_are_those_of_the_parties(randomized, tmp_path):
    names = [f"party-{k:03}" for k in range(1, N + 1)]
    weights = np.random.default_rng(3).choice([0.5, 1.0, 4.0], N)
    rows = [f"{name},{w}" for name, w in zip(names, weights, strict=True)]
    (tmp_path / "weights.csv").write_text("\n".join(["who,stands for", *reversed(rows)]))
    known = read_weights(tmp_path / "weights.csv", "who", "stands for")
    found = compute(randomized, "share(car = yes)", weights=known)
    assert found.value == pytest.approx(np.average(records()[:, 1], weights=weights), abs=1e-4)
    assert found.weighted
    effective = weights.sum() ** 2 / (weights**2).sum()
    assert f"count as {effective:,.0f} of equal weight" in found.how
    spread = weights @ ((records()[:, 1] - found.value) ** 2 * weights)
    wanted = math.sqrt(spread * N / (N - 1)) / weights.sum()
    assert found.values[0].standard_error == pytest.approx(wanted, rel=1e-3)
    told = records()[:, 2] < 4
    trips, _ = trips_of(np.ones(N, bool))
    wanted = np.average(trips, weights=weights[told])
    assert compute(randomized, "mean(trips)", weights=known).value == pytest.approx(
        wanted, abs=1e-3
    )
    slopes = compute(randomized, "linear(age, car)", weights=known).values
    design = np.stack([np.ones(N), records()[:, 1]], axis=1) * np.sqrt(weights)[:, np.newaxis]
    wanted = np.linalg.lstsq(design, records()[:, 0] * np.sqrt(weights), rcond=None)[0]
    assert [value.value for value in slopes] == pytest.approx(wanted, abs=1e-3)


@pytest.mark.parametrize(
    ("weights", "why"),
    [({}, "240 of 240 parties have no weight, “party-001” among them"),
     ({f"party-{k:03}": 1.0 - (k == 7) for k in range(1, N + 1)}, "“party-007”: a weight is a pos"),
     ({f"party-{k:03}": math.nan if k == 9 else 1.0 for k in range(1, N + 1)}, "“party-009”: a w")],
)  # fmt: skip
def test_weights_that_are_none_are_refused(randomized, weights, why):
    with pytest.raises(InputError) as error:
        compute(randomized, "mean(age)", weights=weights)
    assert why in str(error.value)


def test_a_file_of_weights_must_make_sense(tmp_path):
    place = tmp_path / "weights.csv"
    place.write_text("party,weight\nann,1\nann,2\n")
    with pytest.raises(InputError, match="party 'ann' is there twice"):
        read_weights(place, "party", "weight")
    place.write_text("party,weight\nann,much\n")
    with pytest.raises(InputError, match="line 2: 'much' is not a number"):
        read_weights(place, "party", "weight")


# ── In a study file ────────────────────────────────────────────────────────────────────────────

WANTED = (
    Computation(compute="mean(trips)", by="car"),
    Computation(compute="logistic(car = yes, age)"),
    Computation(compute="share(car = yes)", where="age >= middle"),
)


def test_what_a_study_file_asks_for_is_published_and_follows_from_the_transcript(tmp_path):
    run = run_of(RRIndependent(keep=0.7), results=WANTED)
    folder = run.save(tmp_path / "run")
    listed = read_folder(folder).file.publication.listing(whole.RESULTS)
    again = [v for w in WANTED for v in compute(folder, w.compute, by=w.by, where=w.where).values]
    assert listed.column("value") == [float(f"{v.value:.6g}") for v in again]
    assert listed.column("low") == [float(f"{v.population[0]:.6g}") for v in again]
    assert listed.column("computed")[:3] == [
        "mean(trips), car = no", "mean(trips), car = yes", "logistic(car = yes, age): intercept"
    ]  # fmt: skip
    verify(folder)
    result = json.loads((folder / "result.json").read_text())
    names = [part["name"] for part in result["publication"]["listings"]]
    place = names.index(whole.RESULTS)
    result["publication"]["listings"][place]["rows"][0][1] += 0.1
    (folder / "result.json").write_text(json.dumps(result))
    with pytest.raises(Contradicted):
        verify(folder)


def test_what_cannot_be_computed_is_noted_and_nothing_is_lost():
    found = run_of(ExactPairs(), 12, (Computation(compute="table(age, car, trips)"), *WANTED[:1]))
    notes = [note.text for note in found.publication.notes]
    assert any("table(age, car, trips) was not computed: this cannot be" in note for note in notes)
    assert len(found.publication.listing(whole.RESULTS).rows) == 2
    # Every party that has the counts computes the same; one that has none computes nothing.
    party = found.parties["party-01"]
    setting = found.study.setting_with(found.outcome.members)
    own = whole.published(party, setting, found.study.protocol)
    assert own.listing(whole.RESULTS) == found.publication.listing(whole.RESULTS)
    silent = run_of(RRIndependent(keep=0.7), 12, WANTED[:1]).parties["party-01"]
    own = whole.published(silent, setting, RRIndependent(keep=0.7))
    assert own.listing(whole.RESULTS) is None
    assert not [note for note in own.notes if "computed" in note.text]


def test_results_are_no_part_of_what_is_promised_or_compared():
    study = run_of(RRIndependent(keep=0.7), 12, WANTED).study
    plain = msgspec.structs.replace(study, results=())
    assert (study.digest, study.promise) == (plain.digest, plain.promise)
    assert study_from_json(study_json(study)).results == WANTED
    assert "results" not in json.loads(study_json(plain))  # which older programs do not know


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ('compute = "mean(agee)"', "results[1]: there is no attribute 'agee'"),
        ('compute = "mean(age)"', "results[1]: attribute 'age' was asked in intervals"),
        ('compute = "mean(health)"\nby = "health"', "results[1]: attribute 'health' is what"),
        ('compute = "mean(health)"\nwhere = "car"', "results[1]: this is not a condition"),
        ('comput = "mean(health)"', "comput"),
    ],
)
def test_a_study_file_that_asks_for_what_is_not_there_is_refused(tmp_path, line, why):
    text = (ROOT / "scenarios" / "rr_independent.toml").read_text()
    (tmp_path / "study.toml").write_text(f"{text}\n[[results]]\n{line}\n")
    with pytest.raises(ScenarioError) as error:
        load_scenario(tmp_path / "study.toml")
    assert why in str(error.value)


# ── Coverage ───────────────────────────────────────────────────────────────────────────────────

RUNS = {"exact_pairs": 12, "rr_independent, keep .5": 12, "rr_views, ε 6": 10,
        "rr_pairs, keep .5": 10, "block_aggregation, p .7": 8}  # fmt: skip


@pytest.mark.sweep
@pytest.mark.parametrize("name", RUNS)
def test_limits_of_statistics_hold(name):
    """Through the ending, and once through the whole study: no mean, and no statistic, holds so
    seldom that limits of .95 would in one of a million; both give the same numbers."""
    tally, rng = Tally(), np.random.default_rng(17)
    for population in POPULATIONS:
        for _ in range(RUNS[name]):
            bench.one_run(tally, population, SETTINGS[name], 300, rng)
    assert bench.whole_run(tally, "some", SETTINGS[name], 300, rng)
    for of in ("population", "respondents"):
        for cell, held in tally.held[of].items():
            assert binom.cdf(sum(held), len(held), 0.95) > 1e-6, cell
        part = tally.summary(of, 0.91)
        assert part["mean"] + 5 * max(part["error"], 0.004) > 0.95


def test_the_benchmark_computes_what_a_population_has():
    """The counter-test: limits around another population's numbers do not hold."""
    tally, rng = Tally(), np.random.default_rng(2)
    schema, joint = POPULATIONS["some"]
    people = drawn(joint, 2000, rng)
    protocol = SETTINGS["rr_independent, keep .9"]
    ending = bench.ending_of(protocol, schema, people, randomness(rng))
    here = bench.shares_of(people, schema.sizes)
    told = bench.known(bench.told_by(ending, schema, 2000), here, 2000)
    bench.compared(tally, "some", told, joint, people)
    assert tally.summary("population", 0.91)["mean"] > 0.8
    wrong = Tally()
    bench.compared(wrong, "some", told, np.flip(joint), people)
    assert wrong.summary("population", 0.91)["mean"] < 0.6


# ── Adult ──────────────────────────────────────────────────────────────────────────────────────


def test_the_regression_of_adult_is_that_of_rrlog():
    """Income > 50K on male and (age − 40)/10, told by Warner at ε = 2, from grouped counts.

    Against R's RRlog, to a thousandth of a standard error; and against the likelihood written out.
    As if all had told the truth, it would be another regression.
    """
    file = json.loads((ROOT / "tests" / "vectors" / "adult-warner.json").read_text())
    counts, youngest = np.array(file["counts"], dtype=float), file["youngest"]
    assert (counts.shape, counts.sum(), youngest) == ((2, 2, 74), 32_561, 17)
    found = bench.warner_regression(counts, youngest)
    *beta, likelihood = bench.RRLOG.values()
    assert beta == [-2.13391, 1.33033, 0.36407]
    assert likelihood == -19164.12
    for one, theirs in zip(found.coefficients, beta, strict=True):
        assert abs(one.value - theirs) < 0.001 * one.standard_error
    assert found.log_likelihood == pytest.approx(likelihood, abs=0.005)

    told = math.exp(2) / (1 + math.exp(2))
    male, age = np.indices((2, 74)).reshape(2, -1)
    design = np.stack([np.ones(148), male, (youngest + age - 40) / 10])

    def loss(b, told):
        yes = (1 - told) + (2 * told - 1) * expit(b @ design)
        return -counts[1].ravel() @ np.log(yes) - counts[0].ravel() @ np.log1p(-yes)

    fitted = minimize(loss, np.zeros(3), args=(told,), method="BFGS", options={"gtol": 1e-3})
    assert -fitted.fun == pytest.approx(found.log_likelihood, abs=1e-4)
    ours = [one.value for one in found.coefficients]
    assert ours == pytest.approx(fitted.x, abs=1e-4)
    bare = minimize(loss, np.zeros(3), args=(1 - 1e-9,), method="BFGS", options={"gtol": 1e-3})
    assert max(abs(bare.x - ours)) > 0.3
