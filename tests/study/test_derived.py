"""What nobody is asked and yet can be told: attributes that follow from another (003 §4)."""

import re

import msgspec
import numpy as np
import pytest
from helpers import make_schema
from typer.testing import CliRunner

from mpc_rr.agents.account import Account
from mpc_rr.agents.consent import consent_to
from mpc_rr.cli import app
from mpc_rr.errors import InputError, ScenarioError
from mpc_rr.planning.condensing import condense
from mpc_rr.results.asking import ask, compute
from mpc_rr.results.folder import write_results
from mpc_rr.results.verification import verify
from mpc_rr.running import run_study
from mpc_rr.show.report import report
from mpc_rr.study.definition import study_from_json, study_json
from mpc_rr.study.file import load_scenario

TEXT = """
title = "Work"
[schema.age]
type = "ordinal"
categories = ["young", "middle", "old"]
missing = "?"
[schema.town]
categories = ["north", "south"]
joins = {{ north = ["Kiel", "Lübeck"] }}
[derived.retired]
from = "age"
values = {{ young = "no", middle = "no", old = "yes" }}
{wrong}
[protocol]
{protocol}
[parties]
count = 20
[data]
csv = "people.csv"
"""
PEOPLE = [
    (age, town)
    for age, town, times in [
        ("young", "Kiel", 5), ("middle", "south", 4), ("old", "Lübeck", 6), ("old", "south", 2),
        ("", "north", 3),
    ]
    for _ in range(times)
]  # fmt: skip


def scenario(folder, protocol='name = "exact_pairs"', wrong="wrong = 0.1", text=TEXT):
    folder.mkdir(exist_ok=True)
    lines = "".join(f"{age},{town}\n" for age, town in PEOPLE)
    (folder / "people.csv").write_text(f"age,town\n{lines}")
    (folder / "study.toml").write_text(text.format(protocol=protocol, wrong=wrong))
    return load_scenario(folder / "study.toml")


def finished(folder, **how):
    result = run_study(scenario(folder, **how), transport="memory", seed=1)
    assert result.outcome.result is not None, result.outcome.cause
    write_results(result, folder / "run")
    return folder / "run"


@pytest.mark.parametrize(
    ("condition", "count"),
    [
        ("retired = yes", 8), ("retired = no", 9), ("retired is missing", 3),
        ("not retired = yes", 12), ("retired = yes and town = north", 6),
        ("retired = no or town = south", 11),
    ],
)  # fmt: skip
def test_what_is_computed_is_counted_from_what_was_asked(tmp_path, condition, count):
    run = finished(tmp_path / "x")
    answer = ask(run, condition)
    understood = {"retired is missing": "retired = ?", "not retired = yes": "retired in (no, ?)"}
    assert answer.condition == understood.get(condition, condition)
    assert answer.count == count
    most = 5  # of twenty people of whom a tenth is expected: 97.5 % of binomial numbers
    assert answer.interval == (max(count - most, 0), min(count + most, 20))
    assert not answer.certain
    assert "at most 0.1 of the population" in answer.how


def test_limits_hold_how_often_it_is_wrong_or_say_that_nobody_knows(tmp_path):
    known = ask(finished(tmp_path / "known"), "retired = yes")
    unknown = ask(finished(tmp_path / "unknown", wrong=""), "retired = yes")
    asked = ask(tmp_path / "known" / "run", "age = old")
    assert unknown.interval == asked.interval
    assert asked.certain
    assert not unknown.certain
    assert unknown.population == asked.population
    assert "does not say" in unknown.how
    assert known.population == pytest.approx(
        (max(asked.population[0] - 0.1, 0), min(asked.population[1] + 0.1, 1))
    )


@pytest.mark.parametrize(
    "protocol",
    [
        'name = "rr_independent"\nkeep = 0.8', 'name = "rr_views"\nepsilon = 4.0',
        'name = "rr_pairs"\nepsilon = 4.0',
        'name = "block_aggregation"\np = 0.8\nfloor = 1.0\nblock = 5',
    ],
)  # fmt: skip
def test_randomized_answers_tell_it_as_they_tell_the_representative(tmp_path, protocol):
    run = finished(tmp_path / "x", protocol=protocol, wrong="")
    found, asked = ask(run, "retired = no"), ask(run, "age in (young, middle)")
    assert (found.count, found.share, found.interval) == (asked.count, asked.share, asked.interval)
    assert found.population == asked.population
    assert "contradicted" not in {claim.verdict for claim in verify(run)}


# ── Statistics ─────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "protocol", ['name = "exact_pairs"', 'name = "rr_independent"\nkeep = 0.8']
)
def test_a_share_that_is_computed_is_the_answer_to_the_query(tmp_path, protocol):
    run = finished(tmp_path / "x", protocol=protocol)
    for condition in ("retired = yes", "retired = no or town = south"):
        query, found = ask(run, condition), compute(run, f"share({condition})")
        (value,) = found.values
        assert found.expression == f"share({query.condition})"
        assert (value.value, value.population) == (query.share, query.population)
        assert value.respondents == pytest.approx([end / 20 for end in query.interval])
        assert value.standard_error is None
        assert "at most 0.1 of the population" in found.how


@pytest.mark.parametrize("protocol", ['name = "exact_pairs"', 'name = "rr_views"\nepsilon = 4.0'])
def test_a_table_of_what_is_computed_has_each_cell_as_it_is_queried(tmp_path, protocol):
    run = finished(tmp_path / "x", protocol=protocol)
    found = compute(run, "table(retired, town)")
    assert [value.name for value in found.values] == [
        f"retired = {retired} and town = {town}"
        for retired in ("no", "yes", "?")
        for town in ("north", "south")
    ]
    for value in found.values:
        assert value.population == ask(run, value.name).population
    one = compute(run, "table(retired)", by="town")
    assert [value.group for value in one.values] == ["north"] * 3 + ["south"] * 3
    north = next(v for v in one.values if (v.group, v.name) == ("north", "retired = yes"))
    if "exact" in protocol:
        assert north.value == pytest.approx(6 / 14)
    assert "do not hold that this is wrong" in one.how


def test_statistics_are_of_those_of_whom_something_is_computed(tmp_path):
    run = finished(tmp_path / "x")
    working = compute(run, "share(town = north)", where="retired = no")
    asked = compute(run, "share(town = north)", where="age in (young, middle)")
    assert working.where == "retired = no"
    assert working.values == asked.values
    assert working.value == pytest.approx(5 / 9)
    assert "The limits do not hold that this is wrong for at most 0.1" in working.how
    unknown = compute(finished(tmp_path / "y", wrong=""), "table(town)", where="retired = no")
    assert "the study does not say" in unknown.how


@pytest.mark.parametrize(
    ("expression", "by"),
    [
        ("mean(retired)", None), ("covariance(age, score(retired, no = 0, yes = 1))", None),
        ("share(age = old)", "retired"), ("logistic(retired = yes, town)", None),
        ("linear(age, retired)", None),
    ],
)  # fmt: skip
def test_what_cannot_be_told_of_it_is_refused_for_the_true_reason(tmp_path, expression, by):
    """It said that there is no such attribute."""
    run = finished(tmp_path / "x")
    with pytest.raises(InputError, match="“retired” is computed from “age”: ask for it with mpc-r"):
        compute(run, expression, by=by)


def test_a_study_that_would_publish_a_statistic_of_it_is_refused_for_the_true_reason(tmp_path):
    text = f'{TEXT}\n[[results]]\ncompute = "share(retired = yes)"\n'
    with pytest.raises(ScenarioError, match=r"results\[1\]: “retired” is computed from what is"):
        scenario(tmp_path / "x", text=text)


def test_the_report_says_what_was_not_asked(tmp_path):
    page = report(finished(tmp_path / "x"))
    assert "not asked: computed from age" in page
    assert "Counted as “north”: also “Kiel”, “Lübeck”" in page


def test_finer_answers_cannot_be_asked_for(tmp_path):
    run = finished(tmp_path / "x")
    with pytest.raises(InputError, match="“Kiel” was told as “north”"):
        ask(run, "town = Kiel")


def test_respondents_are_told_and_their_answers_are_not_drawn_anew(tmp_path):
    study = scenario(tmp_path / "with").study
    without = msgspec.structs.replace(study, derived=None)
    assert study.digest != without.digest
    assert study.promise == without.promise
    assert study_from_json(study_json(study)) == study
    notes = consent_to(study, Account()).notes
    assert "“retired” is not asked; for all together it is computed from “age”." in notes
    assert not any("retired" in note for note in consent_to(without, Account()).notes)


@pytest.mark.parametrize(
    ("was", "becomes", "says"),
    [
        ("[derived.retired]", "[derived.town]", "derived.town: “town” is asked already"),
        ('from = "age"', 'from = "ages"', "derived.retired.from: there is no attribute “ages”"),
        ("middle = \"no\", ", "", "say what follows from each of “young”, “middle”, “old”"),
        ('old = "yes"', 'old = "no"', "at least two different answers"),
        ('old = "yes"', 'old = "?"', "stands for no answer"),
        ("{wrong}", "wrong = 1.5", "must be a share of people"),
        ("{wrong}", "rong = 1", "derived.retired: there is no 'rong'"),
    ],
)  # fmt: skip
def test_what_cannot_be_computed_is_told_plainly(tmp_path, was, becomes, says):
    assert was in TEXT
    with pytest.raises(ScenarioError, match=says):
        scenario(tmp_path, text=TEXT.replace(was, becomes))


# ── Choosing, on a pilot ───────────────────────────────────────────────────────────────────────

PILOT = """
title = "Pilot"
[schema.x]
type = "ordinal"
categories = ["0", "1", "2", "3", "4"]
[schema.z]
type = "ordinal"
categories = ["0", "1", "2"]
[schema.other]
categories = ["a", "b"]
[protocol]
name = "rr_independent"
epsilon = 4.0
[parties]
count = 3
"""


def proposals(tmp_path, records, *options, study=PILOT):
    (tmp_path / "study.toml").write_text(study)
    lines = "".join(",".join(map(str, record)) + "\n" for record in records)
    (tmp_path / "pilot.csv").write_text(f"x,z,other\n{lines}")
    command = ["condense", str(tmp_path / "study.toml"), "--pilot", str(tmp_path / "pilot.csv")]
    done = CliRunner().invoke(app, [*command, *options])
    assert done.exit_code == 0, done.output
    return done.output


def people(n=400):
    rng = np.random.default_rng(5)
    x = rng.integers(0, 5, n)
    return [(a, abs(a - 2), "ab"[b]) for a, b in zip(x, rng.integers(0, 2, n), strict=True)]


def test_an_attribute_is_computed_from_the_one_that_tells_it(tmp_path):
    """|x − 2| follows from x, and x not from |x − 2|."""
    found = msgspec.json.decode(proposals(tmp_path, people(), "--json"))
    assert found["pilot"] == 400
    assert found["followed"][0]["people"] == 200  # the other half
    assert (found["combinations"], found["combinations_left"]) == (30, 10)
    (followed,) = found["followed"]
    assert (followed["attribute"], followed["from"]) == ("z", "x")
    assert followed["values"] == {"0": "2", "1": "1", "2": "0", "3": "1", "4": "2"}
    assert followed["wrong"] == 0
    assert followed["wrong_at_most"] == pytest.approx(1 - 0.05 ** (1 / 200))  # the rule of three


def tables_of(text):
    """The tables of a TOML file, by their headings."""
    return dict(re.findall(r"^\[([^\]\n]+)\]\n(.*?)(?=^\[|\Z)", text, re.MULTILINE | re.DOTALL))


def pasted(shown, study):
    """A study file in which each proposed table stands in place of the one it is of."""
    changes = tables_of("\n".join(x[4:] for x in shown.splitlines() if x.startswith("    ")))
    tables = tables_of(study)
    for name in changes:
        tables.pop(f"schema.{name.partition('.')[2]}", None)
    head = study.partition("[")[0]
    return head + "".join(f"[{name}]\n{body}\n" for name, body in (tables | changes).items())


@pytest.mark.parametrize("missing", [True, False])
def test_what_is_proposed_can_be_pasted_into_the_study_file(tmp_path, missing):
    records = people()
    study = PILOT.replace('categories = ["a", "b"]', 'categories = ["a", "b", "c", "d"]')
    if missing:
        study = study.replace('categories = ["0"', 'missing = "?"\ncategories = ["0"')
        records[:3] = [("", "", "c")] * 3
    records += [("1", "1", letter) for letter in "cdd"]
    shown = proposals(tmp_path, records, "--most-categories", "2", study=study)
    (tmp_path / "new.toml").write_text(pasted(shown, study))
    changed = load_scenario(tmp_path / "new.toml").study
    assert changed.schema.names == ("x", "other")
    assert changed.schema.sizes == (5 + missing, 2)  # z follows from x, so x stays as it is
    assert changed.derived["z"].values == {"0": "2", "1": "1", "2": "0", "3": "1", "4": "2"}
    assert 0.0146 < changed.derived["z"].wrong < 0.0151
    assert f"one of {2 * (5 + missing)} instead of" in " ".join(shown.split())


def test_how_often_it_is_wrong_is_counted_on_others_than_it_was_chosen_on(tmp_path):
    """Thirty categories of sixty people by chance: who chose the commonest would be right often.

    The limit holds in 95 % of cases: of 40, in fewer than 33 once in 10,000 (binomial).
    """
    schema = make_schema((30, 3, 2))
    rng = np.random.default_rng(8)
    held = 0
    for _ in range(40):
        pilot = np.stack([rng.integers(0, size, 60) for size in schema.sizes], axis=1)
        found = condense(schema, pilot, near=0.01).followed
        (followed,) = [f for f in found if f.attribute.name == "a1"]
        held += followed.wrong_at_most >= 2 / 3  # whatever is said is wrong for so many
    assert held >= 33


def test_nothing_is_proposed_where_nothing_follows(tmp_path):
    records = [(a % 5, a % 3, "ab"[a % 2]) for a in range(300)]
    assert "no attribute follows from another" in proposals(tmp_path, records)


def test_answers_that_nobody_in_the_pilot_gave_are_named(tmp_path):
    records = [record for record in people() if record[0] != 4]
    assert "Nobody on whom it was chosen answered “4” to “x”" in proposals(tmp_path, records)
