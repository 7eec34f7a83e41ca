"""What estimators are compared on, and that each estimates what it says."""

import numpy as np
import pytest

from benchmarks import report_tables, view_tables
from benchmarks.contenders import libraries, published, views
from benchmarks.contenders.data_sets import DATA_SETS
from benchmarks.contenders.designs import design
from benchmarks.contenders.populations import POPULATIONS
from benchmarks.contenders.tables import (
    Contender,
    Fits,
    compared_tables,
    errors,
    product,
    true_table,
)  # fmt: skip
from benchmarks.harness import commands, results, running
from benchmarks.harness.studies import schema_of
from mpc_rr.estimation.estimates import Estimates
from mpc_rr.estimation.planning import pairs_of
from mpc_rr.estimation.strength import Strength

SEED = np.random.SeedSequence(4)


@pytest.mark.parametrize("name", POPULATIONS)
def test_a_population_has_the_sizes_that_it_says(name):
    population = POPULATIONS[name]
    records = population.records(20_000, np.random.default_rng(1))
    assert (records.min(axis=0) == 0).all()
    assert tuple(records.max(axis=0) + 1) == population.sizes


def test_populations_go_from_independent_to_deterministic():
    def dependence(name):
        population = POPULATIONS[name]
        codes = population.records(20_000, np.random.default_rng(1))
        pairs = pairs_of(population.sizes)
        margins = [true_table(codes, population.sizes, (a,)) for a in range(codes.shape[1])]
        tables = [true_table(codes, population.sizes, pair) - product(margins, pair)
                  for pair in pairs]  # fmt: skip
        return np.mean([abs(table).sum() for table in tables])

    none, tree, deterministic = map(dependence, ("none", "tree", "deterministic"))
    assert none < 0.05 < tree < 0.5 < deterministic


def test_clusters_spend_what_single_attributes_do():
    sizes = (4, 3, 2, 5)
    apart, together = design("keep .5", sizes), design("clusters .5", sizes)
    assert together.clusters == ((0, 1, 2), (3,))
    assert together.epsilon == pytest.approx(apart.epsilon)
    assert design("joint 6", sizes).epsilon == pytest.approx(6)
    assert [round(m.keep, 2) for m in design("lambda .5", sizes).matrices] == [
        0.35,
        0.43,
        0.52,
        0.6,
    ]


def test_data_sets_are_as_wide_as_the_issue_has_them():
    assert {len(columns) for _, columns in DATA_SETS.values()} == {6, 8, 10, 11}


def test_views_read_from_outside_tell_what_the_package_tells():
    codes = POPULATIONS["tree"].records(2000, np.random.default_rng(2))
    sizes = POPULATIONS["tree"].sizes
    fitted = published.collect_views(codes, sizes, 2.0, np.random.default_rng(3))
    for pair in pairs_of(sizes):
        mine, theirs = views.as_views(fitted).unbiased(pair), fitted.unbiased(pair)
        assert mine.shares == pytest.approx(theirs.shares, abs=0.03)
        assert abs(mine.shares.sum() - 1) < 1e-9


@pytest.mark.parametrize("name", view_tables.CONTENDERS)
def test_a_contender_comes_near_the_truth_with_a_large_budget_and_not_with_a_small_one(name):
    """Mean L1 of pairs at ε = 8 and .05 of 1,500 people; the seeds are fixed. Independence is .50
    from the truth whatever the budget, all others are below .2 with the large one."""
    if libraries.missing(name):
        pytest.skip(libraries.HOW_TO_INSTALL[name])
    population, contender = POPULATIONS["strong"], view_tables.CONTENDERS[name]
    sizes = population.sizes
    codes = population.records(1500, np.random.default_rng(5))
    truths = {pair: true_table(codes, sizes, pair) for pair in pairs_of(sizes)}
    found = [
        np.mean(errors(Fits(codes, sizes, SEED).fit(contender, epsilon), truths))
        for epsilon in (8.0, 0.05)
    ]
    assert found[0] < (0.55 if name == "independence" else 0.2)
    assert found[1] > found[0] + 0.3


def test_tables_of_records_do_not_contradict_each_other():
    """Pairs and triples are counted in the same population; before, they were a model's."""
    population = POPULATIONS["strong"]
    codes = population.records(1000, np.random.default_rng(2))
    chosen = design("keep .8", population.sizes)
    fitted = published.collect_records(codes, population.sizes, chosen, np.random.default_rng(3))
    table = published.of_records(fitted)
    assert table((0, 1, 2)).sum(axis=2) == pytest.approx(table((0, 1)), abs=1e-9)
    before = published.published(Estimates(schema_of(population.sizes), fitted, earlier=True))
    assert abs(before((0, 1, 2)) - table((0, 1, 2))).max() > 0.001


def test_r_is_within_its_limits_or_is_not():
    limits = {(0, 1): Strength("pearson_r", 0.3, 0.1, 0.5), (0, 2): Strength("pearson_r", 0, 0, 0)}
    assert report_tables.within({(0, 1): 0.3, (0, 2): 0.1}, limits) == 0.5
    assert report_tables.within({}, limits) == 1.0


def test_who_collects_alike_has_the_same_reports():
    seen = []

    def keep(reports):
        seen.append(reports)
        return views.plain(reports)

    codes = POPULATIONS["tree"].records(300, np.random.default_rng(2))
    fits = Fits(codes, POPULATIONS["tree"].sizes, SEED)
    for name in ("one", "other"):
        fits.fit(Contender(name, views.collect_pairs, keep), 1.0)
    assert seen[0] is seen[1]


def test_tables_that_nobody_was_asked_for_cannot_be_told():
    codes = POPULATIONS["tree"].records(300, np.random.default_rng(2))
    sizes = POPULATIONS["tree"].sizes
    table = views.plain(views.collect_pairs(codes, sizes, 1.0, np.random.default_rng(1)))
    assert table((0, 1, 2)) is None
    assert errors(table, {(0, 1, 2): true_table(codes, sizes, (0, 1, 2))}) is None


def test_the_tables_that_are_compared_are_the_same_in_every_run():
    assert compared_tables(10, 3) == compared_tables(10, 3)
    assert len(compared_tables(10, 3)) == 20
    assert len(compared_tables(10, 2)) == 45


def test_the_best_peer_is_the_best_on_the_runs_that_it_had():
    ours, peers = [1.0, 1.0, 4.0], {"all runs": [2.0, 2.0, 2.0], "two runs": [0.5, 0.5]}
    row = view_tables.beside_best("error", {"contender": "mpc-rr"}, ours, peers)
    assert (row.value, row.runs, row.beside, row.ratio) == (2.0, 3, "two runs", 2.0)


def test_correlation_is_numpys():
    rng = np.random.default_rng(1)
    x, y = rng.integers(5, size=200), rng.integers(3, size=200)
    table = true_table(np.stack([x, y], axis=1), (5, 3), (0, 1))
    assert report_tables.correlation(table) == pytest.approx(np.corrcoef(x, y)[0, 1])


@pytest.mark.parametrize("name", running.names())
def test_every_benchmark_can_be_asked_for_its_options(name):
    options = running.parser_of(running.module_of(name)).parse_args(["--seed", "3"])
    assert options.seed == 3


def test_a_benchmark_is_run_kept_repeated_and_compared(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(results, "COMMITTED", tmp_path)
    small = ["--part", "grid", "--population", "tree", "--people", "60", "--design", "keep .5",
             "--runs", "2", "--seed", "1"]  # fmt: skip
    file = tmp_path / "report_tables.json"
    assert commands.main(["run", "report_tables", *small, "--out", str(file)]) == 0
    told = capsys.readouterr()
    assert "report_tables, seed 1" in told.err
    first = results.read(file)
    assert first.sessions[0].seed == 1
    assert {row.setting.get("contender") for row in first.rows} >= {"mpc-rr", "default before"}
    assert commands.main(["compare", "report_tables", *small]) == 0
    assert "0 worse, 0 better" in capsys.readouterr().out
