"""Figures are told, kept and compared rightly by the harness of the benchmarks."""

import io
import math
import sys

import numpy as np
import pytest
from rich.console import Console

import benchmarks
from benchmarks.harness import commands, results, running
from benchmarks.harness.comparison import Change, compare
from benchmarks.harness.results import COMMITTED, Figures, Session
from benchmarks.harness.rows import Row, geometric_mean, measured
from benchmarks.harness.show import in_one_line, show_figures, verdict


def figures(*rows):
    session = Session(seed=1, options={"runs": 3}, machine=results.machine(), wall_s=1.0)
    return Figures(benchmark="made_up", sessions=(session,), rows=rows)


def row(value=1.0, error=0.01, **more):
    options = {"what": "error", "setting": {"ε": 2.0}, "runs": 20, "better": "lower"} | more
    return Row(value=value, error=error, **options)


def change_of(was, now):
    (found,) = compare(figures(was), figures(now))
    return found


# ── Measuring ──────────────────────────────────────────────────────────────────────────────────


def test_what_two_have_in_common_cancels_in_their_ratio():
    rng = np.random.default_rng(1)
    common = rng.uniform(1, 9, 40)
    found = measured("error", {}, 1.1 * common, common, beside="floor")
    assert found.ratio == pytest.approx(1.1)
    assert found.ratio_error < 1e-12
    assert found.error == pytest.approx(1.1 * common.std(ddof=1) / math.sqrt(40), rel=1e-3)


def test_the_error_of_a_ratio_is_that_of_many_experiments():
    """Mean of 2,000 told errors against the spread of the ratios: 5 % is some three standard
    errors of that spread; a false alarm in a few hundred seeds, and the seed is fixed."""
    rng = np.random.default_rng(2)
    found = [
        measured("error", {}, rng.normal(3, 0.3, 30), rng.normal(2, 0.2, 30)) for _ in range(2000)
    ]
    spread = np.std([row.ratio for row in found])
    assert np.mean([row.ratio_error for row in found]) == pytest.approx(spread, rel=0.05)


def test_one_run_has_no_standard_error():
    assert measured("error", {}, [1.0], [2.0], beside="floor").ratio_error is None


def test_the_mean_of_ratios_is_geometric():
    parts = [measured("x", {"k": k}, [v, v], [1.0, 1.0], beside="f") for k, v in enumerate((2, 8))]
    assert geometric_mean("all", {}, parts).value == pytest.approx(4)


@pytest.mark.parametrize(
    ("one", "said"),
    [
        (row(1.2, aim=1.0), "at most 1: MISSED"),
        (row(1.01, aim=1.0), "at most 1: MISSED, within the error"),
        (row(0.9, aim=1.0), "at most 1: met"),
        (row(0.9, aim=0.95, better="higher"), "at least 0.95: MISSED"),
        (row(5.0, ratio=0.9, ratio_error=0.01, beside="floor", aim=1.0), "at most 1: met"),
        (row(5.0), ""),
    ],
)
def test_an_aim_is_met_or_missed_surely_or_not(one, said):
    assert verdict(one) == said


def test_the_same_setting_has_the_same_random_numbers_and_no_other_has():
    run = running.Run(options=None, seed=3)
    first, again, other = (
        [rng.random() for rng in run.rngs(2, *where)]
        for where in (("a", 1.0), ("a", 1.0), ("a", 2.0))
    )
    assert first == again
    assert len({*first, *other}) == 4


# ── Keeping ────────────────────────────────────────────────────────────────────────────────────


def test_figures_are_read_as_they_were_written(tmp_path):
    found = figures(row(), row(setting={"ε": 4.0, "data": "é"}, error=None, details={"n": [1, 2]}))
    results.write(tmp_path / "made_up.json", found)
    assert results.read(tmp_path / "made_up.json") == found
    results.write(tmp_path / "again.json", results.read(tmp_path / "made_up.json"))
    assert (tmp_path / "again.json").read_text() == (tmp_path / "made_up.json").read_text()


def test_numbers_of_numpy_are_written_as_numbers(tmp_path):
    path = tmp_path / "figures.json"
    row = Row(
        what="error", setting={}, value=1.0, details={"cells": np.int64(3), "told": np.float64(0.5)}
    )
    results.write(path, figures(row))
    assert results.read(path).rows[0].details == {"cells": 3, "told": 0.5}


def test_rows_that_are_not_measured_again_stay_with_their_session():
    old = figures(row(1.0), row(2.0, setting={"ε": 4.0}))
    new = Figures(benchmark="made_up", sessions=(Session(seed=2),), rows=(row(1.5),))
    found = old.renewed(new)
    seeds = {r.setting["ε"]: (r.value, found.sessions[r.session].seed) for r in found.rows}
    assert seeds == {4.0: (2.0, 1), 2.0: (1.5, 2)}
    both = (row(1.5), row(1.6, setting={"ε": 4.0}))
    replaced = found.renewed(Figures(benchmark="made_up", sessions=(Session(seed=3),), rows=both))
    assert [session.seed for session in replaced.sessions] == [3]


@pytest.mark.parametrize("path", sorted(COMMITTED.glob("*.json")), ids=lambda path: path.stem)
def test_committed_figures_have_the_one_shape(path):
    found = results.read(path)
    assert found.benchmark == path.stem
    assert found.benchmark in running.names()
    assert len({r.key for r in found.rows}) == len(found.rows)
    assert all(r.session < len(found.sessions) for r in found.rows)
    assert all((r.ratio is None) == (r.beside is None) for r in found.rows)
    show_figures(Console(file=io.StringIO()), found)


# ── Comparing ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("was", "now", "change"),
    [
        (row(1.0), row(1.2), Change.WORSE),
        (row(1.2), row(1.0), Change.BETTER),
        (row(1.0), row(1.02), Change.NOISE),
        (row(1.0, better="higher"), row(0.8, better="higher"), Change.WORSE),
        (row(1.0, error=None), row(9.0), Change.OPEN),
        (row(1.0), row(9.0, error=None), Change.OPEN),
        (row(1.0, error=0.0), row(1.0, error=0.0), Change.NOISE),
        (row(1.0, error=0.0), row(1.1, error=0.0), Change.WORSE),
        (row(1.234, error=0.0), row(1.235, error=0.0), Change.NOISE),
    ],
)
def test_what_became_worse_is_told_from_noise(was, now, change):
    assert change_of(was, now).change is change


def test_few_runs_tell_less():
    """Four standard errors are much of twenty runs and little of two."""
    many, few = ((row(runs=runs), row(1.06, runs=runs)) for runs in (20, 2))
    assert change_of(*many).change is Change.WORSE
    assert change_of(*few).change is Change.NOISE


def test_seconds_are_compared_by_their_ratio_to_the_floor_alone():
    was = row(1.0, unit="s", ratio=2.0, ratio_error=0.01, beside="bare")
    slower = row(9.0, unit="s", ratio=2.0, ratio_error=0.01, beside="bare")
    assert change_of(was, slower).change is Change.NOISE
    worse = row(1.0, unit="s", ratio=3.0, ratio_error=0.01, beside="bare")
    assert change_of(was, worse).change is Change.WORSE
    assert change_of(row(1.0, unit="s"), row(9.0, unit="s")).change is Change.OPEN
    elsewhere = row(1.0, unit="s", ratio=3.0, ratio_error=0.01, beside="another floor")
    assert "another floor" in change_of(was, elsewhere).why


def test_what_is_not_measured_now_cannot_be_told_and_facts_are_not_compared():
    found = compare(figures(row(), row(setting={}, better=None)), figures())
    assert [(c.change, c.why) for c in found] == [(Change.OPEN, "not measured now")]


def test_an_average_is_compared_with_one_over_as_many_settings_alone():
    """One over a single setting was held against one over 36, and called worse."""
    was, now = row(0.8, details={"settings": 36}), row(1.3, details={"settings": 1})
    found = change_of(was, now)
    assert (found.change, found.why) == (Change.OPEN, "over 36 settings then, over 1 now")
    assert change_of(was, row(1.3, details={"settings": 36})).change is Change.WORSE


def test_a_thousand_rows_of_noise_raise_no_alarm():
    """One false alarm in a hundred seeds; the seed is fixed. The counter-test: one true change."""
    rng = np.random.default_rng(5)

    def drawn(shift):
        return [
            measured(
                "error", {"k": k}, rng.normal(1 + shift * (k == 7), 0.1, 20), better="lower"
            )
            for k in range(1000)
        ]  # fmt: skip

    same = compare(figures(*drawn(0)), figures(*drawn(0)))
    assert all(c.change is Change.NOISE for c in same)
    worse = compare(figures(*drawn(0)), figures(*drawn(0.5)))
    assert [c.was.setting["k"] for c in worse if c.change is Change.WORSE] == [7]


# ── Commands ───────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def made_up(monkeypatch, tmp_path):
    """A benchmark of its own, with committed figures of its own."""
    (tmp_path / "made_up.py").write_text('"""Nothing much.\n\nMore of it."""\n')
    monkeypatch.setattr(running, "FOLDER", tmp_path)
    monkeypatch.setattr(results, "COMMITTED", tmp_path / "results")
    monkeypatch.setattr(commands, "COMMITTED", tmp_path / "results")
    results.write(tmp_path / "results" / "made_up.json", figures(row(1.0)))
    return tmp_path


@pytest.mark.parametrize(("value", "code"), [(1.0, 0), (1.2, 1), (0.8, 0)])
def test_compare_ends_with_1_where_something_became_worse(made_up, capsys, value, code):
    results.write(made_up / "fresh.json", figures(row(value)))
    assert commands.main(["compare", "--fresh", str(made_up / "fresh.json")]) == code
    assert ("made_up: worse: error: ε 2.0: 1.0 → 1.2" in capsys.readouterr().out) == bool(code)


def test_what_cannot_be_run_is_said_in_a_sentence(made_up, capsys):
    for wrong in (["run", "nothing"], ["compare"], ["compare", "--fresh", str(made_up / "no")]):
        assert commands.main(wrong) == 2
        assert capsys.readouterr().err.count("\n") == 1
    assert commands.main([]) == 2
    assert "usage" in capsys.readouterr().err


def test_of_paths_among_the_options_only_the_names_are_kept(made_up, monkeypatch):
    """They could not be written, and would have told where folders lie on somebody's machine."""
    monkeypatch.setattr(benchmarks, "__path__", [*benchmarks.__path__, str(made_up)])
    monkeypatch.delitem(sys.modules, "benchmarks.made_up", raising=False)
    (made_up / "made_up.py").write_text(
        '"""Nothing much."""\n'
        "from pathlib import Path\n"
        "from benchmarks.harness.rows import Row\n"
        "def add_options(parser): parser.add_argument('--against', type=Path)\n"
        "def measure(run): yield Row(what='error', setting={}, value=1.0, error=None, runs=1)\n"
    )
    out = made_up / "out.json"
    wanted = ["run", "made_up", "--against", str(made_up / "other"), "--out", str(out)]
    assert commands.main(wanted) == 0
    assert results.read(out).sessions[0].options == {"against": "other"}


def test_a_list_names_each_with_what_it_measures(made_up, capsys):
    assert commands.main(["list"]) == 0
    assert capsys.readouterr().out == "made_up: Nothing much.\n"


def test_every_benchmark_has_a_title():
    assert all(running.title(name).endswith(".") or running.title(name).endswith("?")
               for name in running.names())  # fmt: skip


def test_a_row_in_one_line():
    told = in_one_line(row(2.0, unit="s", ratio=1.5, ratio_error=0.1, beside="floor", aim=2.0))
    assert told == "error: ε 2.0: 2 ± 0.01 s; 1.5 ± 0.1 × floor; at most 2: met"
