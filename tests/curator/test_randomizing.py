"""A curator's file from end to end: what is written, what can be read from it, what is refused."""

import csv
import io
import json
import math
import tracemalloc

import msgspec
import numpy as np
import pytest
from rich.console import Console

import mpc_rr.schema as schema_module
from mpc_rr.curator.codebook import Codebook, codebook_place, read_codebook
from mpc_rr.curator.estimates import document, read_randomized
from mpc_rr.curator.plan import read_plan, ways_of
from mpc_rr.curator.randomizing import randomize_frame
from mpc_rr.errors import InputError
from mpc_rr.estimation.matrix import KeepOrUniform
from mpc_rr.show.curator import show_randomized
from mpc_rr.study.file import schema_of_tables

PLAN = {
    "age": {"type": "numeric", "lowest": 0, "highest": 120},
    "height": {"type": "numeric", "lowest": 100, "highest": 230, "step": 0.5},
    "weight": {"type": "numeric", "lowest": 20, "highest": 200},
    "health": {"type": "ordinal", "categories": ["bad", "fair", "=good"], "missing": "no answer"},
    "smokes": {"categories": ["no", "yes"]},
}
SCHEMA = schema_of_tables(PLAN)


def people(n=4000, seed=0):
    rng = np.random.default_rng(seed)
    hidden = rng.normal(size=n)
    height = np.rint(2 * rng.normal(172, 9, n)) / 2
    weight = 75 + 0.8 * (height - 172) + 10 * rng.normal(size=n) - 3 * hidden
    health = np.digitize(hidden + rng.normal(size=n), [-0.5, 0.8])
    return {
        "age": np.clip(np.rint(50 - 12 * hidden), 0, 120).astype(int),
        "height": height,
        "weight": np.clip(np.rint(weight), 20, 200).astype(int),
        "health": [["bad", "fair", "=good"][k] if k >= 0 else None for k in health],
        "smokes": np.where(rng.random(n) < 0.5 / (1 + np.exp(hidden)), "yes", "no"),
        "name": [f"person {k}" for k in range(n)],
    }


WISHES = {
    "beta": 0.5,
    "columns": {"age": {"epsilon": 4.0}},
    "correlated": [{"columns": ["height", "weight"], "noise": 0.5}],
}


def randomized(**changes):
    return randomize_frame(people(), **({"schema": SCHEMA, "seed": 1} | WISHES | changes))


def rows(made):
    return list(csv.reader(io.StringIO(made.text)))


def test_the_file_is_read_back_with_its_codebook_and_tells_the_truth_within_its_errors(tmp_path):
    """All within five standard errors of the sample's own: once in 100,000 for all of them."""
    made = randomized()
    made.save(tmp_path / "out.csv")
    found, truth = read_randomized(tmp_path / "out.csv"), people()
    assert not found.changed
    assert found.codebook == made.codebook
    for name in ("age", "height", "weight"):
        told = found.mean(name)
        assert abs(told.value - np.mean(truth[name])) < 5 * told.standard_error
    told = found.together("height", "weight").covariance
    own = np.cov(truth["height"], truth["weight"])[0, 1]
    assert abs(told.value - own) < 5 * told.standard_error
    told = found.together("age", "weight").correlation
    own = np.corrcoef(truth["age"], truth["weight"])[0, 1]
    assert abs(told.value - own) < 5 * told.standard_error
    table = found.table("smokes", "health")
    smokes, health = truth["smokes"] == "yes", np.array(truth["health"]) == "=good"
    place = 1 * 4 + 2
    error = table.standard_errors[place]
    assert abs(table.unbiased[place] - (smokes & health).mean()) < 5 * error
    asked = found.query('smokes = yes and health = "=good"')
    assert asked.population[0] <= (smokes & health).mean() <= asked.population[1]


def answers(n=3000):
    """Three ordered columns: two that go together, and one that has nothing to do with them."""
    rng = np.random.default_rng(8)
    first = rng.integers(0, 4, n)
    second = np.clip(first + rng.integers(0, 2, n), 0, 3)
    alone = rng.permutation(np.repeat(np.arange(3), n // 3))
    return {"first": first, "second": second, "alone": alone}


ORDERED = schema_of_tables({
    "first": {"type": "ordinal", "categories": ["0", "1", "2", "3"]},
    "second": {"type": "ordinal", "categories": ["0", "1", "2", "3"]},
    "alone": {"type": "ordinal", "categories": ["0", "1", "2"]},
})  # fmt: skip


def test_what_is_kept_of_a_covariance_is_a_share_and_no_noise():
    """Of columns that do not go together, a ratio of two covariances is noise: it said −9430 %.

    On average λ₁·λ₂ is left (001, Eq. 9): over 60 files, within four standard errors of their mean,
    which fails once in 16,000.
    """
    how = {"columns": {"first": {"keep": 0.6}, "second": {"keep": 0.5}, "alone": {"keep": 0.4}}}
    pairs, here = {}, []
    for seed in range(60):
        made = randomize_frame(answers(), schema=ORDERED, seed=seed, **how)
        pairs = {(pair.first, pair.second): pair for pair in made.comparison.pairs}
        here.append(pairs["first", "second"].kept_here)
        assert pairs["first", "alone"].kept_here is None
    assert pairs["first", "second"].kept_on_average == pytest.approx(0.3)
    assert pairs["first", "alone"].kept_on_average == pytest.approx(0.24)
    assert abs(np.mean(here) - 0.3) < 4 * np.std(here, ddof=1) / math.sqrt(len(here))
    assert abs(np.mean(here) - 0.33) > 4 * np.std(here, ddof=1) / math.sqrt(len(here))


def test_a_matrix_of_ones_own_keeps_the_slope_of_its_expected_ranks():
    even = [[0.8, 0.2, 0.0], [0.1, 0.8, 0.1], [0.0, 0.2, 0.8]]  # expects 0.2, 1, 1.8: slope 0.8
    uneven = [[1.0, 0.0, 0.0], [0.5, 0.5, 0.0], [0.0, 0.0, 1.0]]
    for matrix, slope in ((even, 0.8), (uneven, None)):
        kept = {"first": {"keep": 0.5}, "second": {"keep": 1.0}, "alone": {"matrix": matrix}}
        made = randomize_frame(answers(), schema=ORDERED, seed=1, columns=kept)
        pairs = {(pair.first, pair.second): pair for pair in made.comparison.pairs}
        found = pairs["first", "alone"].kept_on_average
        assert found == (None if slope is None else pytest.approx(0.5 * slope))


def test_correlated_noise_adds_its_own_covariance_and_an_answer_may_be_missing():
    made = randomized()
    pairs = {(pair.first, pair.second): pair for pair in made.comparison.pairs}
    assert pairs["height", "weight"].kept_on_average == pytest.approx(1.5, abs=0.01)
    assert pairs["height", "weight"].kept_here == pytest.approx(1.5, abs=0.2)
    assert pairs["age", "height"].kept_on_average == 1
    assert pairs["age", "height"].kept_here is None
    assert pairs["age", "health"].kept_on_average is None
    screen = io.StringIO()
    show_randomized(Console(file=screen, width=200), made.codebook, made.comparison)
    assert "adds its own covariance" in screen.getvalue()


def test_the_comparison_has_the_truth_and_the_codebook_has_not(tmp_path):
    made = randomized()
    beside = made.save(tmp_path / "out.csv")
    truth, book = people(), beside.read_text()
    compared = {(pair.first, pair.second): pair for pair in made.comparison.pairs}
    own = np.cov(truth["age"], truth["weight"], ddof=0)[0, 1]
    assert compared["age", "weight"].covariance[0] == pytest.approx(own)
    columns = {column.name: column for column in made.comparison.columns}
    shares = np.bincount(truth["smokes"] == "yes") / 4000
    entropy = -(shares * np.log2(shares)).sum()
    assert columns["smokes"].entropy[0] == pytest.approx(entropy)
    assert columns["smokes"].entropy[1] > columns["smokes"].entropy[0]
    assert columns["age"].deviation[0] == pytest.approx(np.std(truth["age"], ddof=1))
    figures = [own, entropy, np.std(truth["age"], ddof=1), np.mean(truth["age"]), shares[0]]
    assert not any(f"{figure:.6g}" in book for figure in figures)


def test_the_ways_follow_from_the_wishes():
    """β by its definition, the noise of a Laplace distribution by its closed form."""
    book = randomized().codebook
    for name, size in (("health", 4), ("smokes", 2)):
        column = book.column(name)
        assert column.beta == pytest.approx(0.5)
        assert column.epsilon == pytest.approx(KeepOrUniform(size, column.way.keep).epsilon)
    assert book.beta == pytest.approx(0.5)
    q = math.exp(-4 / 120)
    assert book.column("age").way.variance == pytest.approx(2 * q / (1 - q) ** 2, rel=1e-6)
    own = np.cov(people()["height"], people()["weight"])
    np.testing.assert_allclose(book.groups[0].covariance, 0.5 * own)
    assert book.epsilon is None
    assert book.left_out == ("name",)


def test_an_epsilon_for_all_columns_together_is_spent_by_them_together():
    book = randomized(
        beta=None, epsilon=3.0, correlated=None,
        columns={n: {"deviation": 60.0} for n in ("height", "weight")} | {"age": {"epsilon": 1.0}},
    ).codebook  # fmt: skip
    both = [book.column(name).epsilon for name in ("health", "smokes")]
    assert sum(both) == pytest.approx(3.0)
    assert book.column("health").beta == pytest.approx(book.column("smokes").beta)
    assert book.epsilon == pytest.approx(
        4.0 + book.column("height").epsilon + book.column("weight").epsilon
    )
    assert book.delta == pytest.approx(2e-6)


def test_rows_are_shuffled_and_their_columns_stay_together():
    kept = {"beta": None, "correlated": None, "columns": {n: {"as_it_is": True} for n in PLAN}}
    made = randomized(**kept)
    truth = people()
    first = [f"{age}" for age in truth["age"]]
    assert [row[0] for row in rows(made)[1:]] != first
    whole = sorted(zip(first, (f"{h:.15g}" for h in truth["height"]), truth["smokes"], strict=True))
    assert sorted((row[0], row[1], row[4]) for row in rows(made)[1:]) == whole
    assert not any(column.protected for column in made.codebook.columns)
    assert made.comparison.linked > 0.95


def test_no_cell_is_a_formula_and_it_is_read_back_as_it_was(tmp_path):
    made = randomized()
    assert any(row[3] == "'=good" for row in rows(made)[1:])
    assert not any(cell.startswith("=") for row in rows(made) for cell in row)
    made.save(tmp_path / "out.csv")
    assert set(read_randomized(tmp_path / "out.csv").values["health"]) == {0, 1, 2, 3}


def test_without_a_seed_nothing_can_be_repeated():
    one, other = (randomized(seed=None) for _ in range(2))
    assert one.text != other.text
    assert not one.codebook.simulated
    assert randomized().text == randomized().text
    assert randomized().codebook.simulated


def test_numbers_with_noise_cannot_be_undone_as_the_papers_can():
    """001 §5: (y − (1 − λ)·ȳ)/λ. Here the best guess, linear in all output, misses by what the
    noise leaves: 1/(1 + share) of the variance is explained at most (4,000 records, ± .05)."""
    made = randomize_frame(
        people(), schema=SCHEMA, beta=0.5, seed=3,
        columns={n: {"noise": 1.0} for n in ("age", "height", "weight")},
    )  # fmt: skip
    column = next(c for c in made.comparison.columns if c.name == "height")
    before, after = column.deviation
    assert (before / after) ** 2 == pytest.approx(0.5, abs=0.05)
    assert made.comparison.linked < 0.01


def test_a_codebook_that_was_changed_or_is_of_another_version_is_refused(tmp_path):
    beside = randomized().save(tmp_path / "out.csv")
    whole = json.loads(beside.read_text())
    for change, says in (
        ({"version": 2}, "codebook version 2; this program knows 1"),
        ({"format": "x"}, "no codebook"),
        ({"columns": []}, "damaged: it has no columns"),
        ({"columns": whole["columns"][:1] * 2}, "one twice"),
        ({"groups": []}, "a group that it is not in"),
        ({"more": 1}, "damaged"),
    ):
        beside.write_text(json.dumps(whole | change))
        with pytest.raises(InputError, match=says):
            read_randomized(tmp_path / "out.csv")


def test_a_file_that_was_changed_is_noticed(tmp_path):
    made = randomized()
    made.save(tmp_path / "out.csv")
    (tmp_path / "out.csv").write_text("".join(made.text.splitlines(keepends=True)[:-1]))
    found = read_randomized(tmp_path / "out.csv")
    assert found.changed
    assert found.n == 3999
    (tmp_path / "out.csv").write_text(made.text.replace("'=good", "great"))
    with pytest.raises(InputError, match="'great' is not one of its categories"):
        read_randomized(tmp_path / "out.csv")


def test_the_codebook_is_whole_as_json(tmp_path):
    beside = randomized().save(tmp_path / "out.csv")
    book = read_codebook(beside)
    assert codebook_place(tmp_path / "out.csv") == beside
    assert msgspec.convert(msgspec.to_builtins(book), Codebook) == book


def test_one_column_of_categories_is_enough(tmp_path):
    frame = {name: people()[name] for name in ("age", "smokes")}
    schema = schema_of_tables({name: PLAN[name] for name in frame})
    made = randomize_frame(frame, schema=schema, keep=0.6, columns={"age": {"epsilon": 1}}, seed=1)
    made.save(tmp_path / "out.csv")
    found = read_randomized(tmp_path / "out.csv")
    table = found.table("smokes")
    share = np.mean(frame["smokes"] == "yes")
    assert abs(table.unbiased[1] - share) < 5 * table.standard_errors[1]
    assert document(found, []).means["age"]["mean"] == found.mean("age").value
    with pytest.raises(InputError, match="two columns of categories"):
        found.query("smokes = yes")


def test_a_matrix_that_is_not_symmetric_is_undone_also_in_conditions(tmp_path):
    given = [[0.9, 0.1], [0.3, 0.7]]
    made = randomized(columns={"age": {"epsilon": 4.0}, "smokes": {"matrix": given}})
    made.save(tmp_path / "out.csv")
    found, truth = read_randomized(tmp_path / "out.csv"), people()["smokes"] == "yes"
    table = found.table("smokes")
    assert abs(table.unbiased[1] - truth.mean()) < 5 * table.standard_errors[1]
    asked = found.query("smokes = yes and health != bad")
    assert asked.population[0] <= asked.share <= asked.population[1]
    both = truth & (np.array(people()["health"]) != "bad")
    assert abs(asked.share - both.mean()) < 5 * asked.standard_error
    assert made.codebook.column("smokes").beta is None
    assert made.codebook.beta is None


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"beta": None}, "give one of lambda, beta, epsilon and covariance"),
        ({"columns": {}}, "'age': it is a number|“age”: it is a number"),
        ({"columns": {"age": {"keep": 0.5}}}, "it is a number"),
        ({"columns": {"nobody": {"keep": 0.5}}}, "no column “nobody”"),
        ({"columns": {"height": {"epsilon": 1.0}}}, "randomized twice"),
        ({"columns": {"smokes": {"noise": 1.0}, "age": {"epsilon": 1}}}, "give one of keep"),
        ({"columns": {"smokes": {"keep": 0.5, "beta": 0.5}, "age": {"epsilon": 1}}}, "one of keep"),
        (
            {"columns": {"smokes": {"matrix": [[1.0]]}, "age": {"epsilon": 1}}},
            "1 x 1, for 2 categories",
        ),
        (
            {"columns": {"smokes": {"matrix": [[0.5, 0.5], [0.5, 0.5]]}, "age": {"epsilon": 1}}},
            "nothing of the true values",
        ),
        ({"correlated": [{"columns": ["height"], "noise": 1.0}]}, "at least two columns"),
        ({"correlated": [{"columns": ["height", "smokes"], "noise": 1.0}]}, "noise is for numbers"),
        ({"correlated": [{"columns": ["height", "weight"], "noise": 0.0}]}, "must be positive"),
        ({"beta": 1.0}, "nothing of the true values"),
        ({"columns": {"age": {"lambda": 0.5}}}, "lambda"),
    ],
)
def test_what_cannot_be_done_is_told(changes, says):
    with pytest.raises(InputError, match=says):
        randomized(**changes)


def test_a_number_that_may_be_missing_is_refused():
    """Noise would leave it as it is."""
    tables = {"age": PLAN["age"] | {"missing": "?"}, "smokes": PLAN["smokes"]}
    frame = {name: people()[name] for name in tables}
    with pytest.raises(InputError, match="does not hide that a number is missing"):
        randomize_frame(
            frame, schema=schema_of_tables(tables), keep=0.5, columns={"age": {"epsilon": 1}}
        )


def test_a_column_that_follows_from_another_gets_no_correlated_noise():
    frame = people()
    frame["weight"] = frame["age"] + 20
    with pytest.raises(InputError, match="follows from the others"):
        randomize_frame(
            frame, schema=SCHEMA, beta=0.5, columns={"height": {"noise": 1.0}},
            correlated=[{"columns": ["age", "weight"], "noise": 1.0}],
        )  # fmt: skip


def test_a_plan_is_read_with_a_matrix_in_a_file_of_its_own(tmp_path):
    """In whatever order the file names the categories."""
    (tmp_path / "m.csv").write_text("smokes,yes,no\nyes,.7,.3\nno,.1,.9\n")
    (tmp_path / "plan.toml").write_text(
        '[schema.smokes]\ncategories = ["no", "yes"]\n[schema.sex]\ncategories = ["f", "m"]\n'
        '[randomize]\nkeep = 0.5\n[randomize.columns.smokes]\nmatrix = "m.csv"\n'
    )
    schema, wishes = read_plan(tmp_path / "plan.toml")
    (way, _), _ = ways_of(schema, wishes, np.zeros((2, 2), dtype=np.int64), tmp_path)
    assert way.rows == ((0.9, 0.1), (0.3, 0.7))
    (tmp_path / "m.csv").write_text("smokes,yes,maybe\nyes,.7,.3\nno,.1,.9\n")
    with pytest.raises(InputError, match="must name each category once"):
        ways_of(schema, wishes, np.zeros((2, 2), dtype=np.int64), tmp_path)


def test_categories_that_are_the_records_own_leave_no_epsilon():
    """Whether anybody has a rare value follows from the codebook for certain: no ε bounds that."""
    frame = {"sex": ["f", "m"] * 50, "disease": ["none"] * 60 + ["flu"] * 39 + ["kuru"]}
    with_it, without = (randomize_frame(one, beta=0.9) for one in (
        frame, frame | {"disease": ["none"] * 60 + ["flu"] * 40}))  # fmt: skip
    assert "kuru" in with_it.codebook.column("disease").attribute.categories
    assert "kuru" not in without.codebook.column("disease").attribute.categories
    book = with_it.codebook
    assert book.epsilon is None
    assert book.beta == pytest.approx(0.9)
    for column in book.columns:
        assert (column.epsilon, column.delta) == (None, 0.0)
        assert "as its categories were taken from the records" in column.said
    screen = io.StringIO()
    show_randomized(Console(file=screen, width=200), book, with_it.comparison)
    assert (
        "No ε bounds what the file tells, because its categories are the rec" in screen.getvalue()
    )
    assert "ε = " not in screen.getvalue()


@pytest.mark.parametrize("what", ["epsilon", "delta", "beta", "protected", "alone"])
@pytest.mark.parametrize("whole", [False, True])
def test_a_codebook_that_states_something_else_than_its_ways_is_refused(tmp_path, what, whole):
    """λ = 0.999999 was read as the ε = 0.01 that stood beside it."""
    if whole and what in {"protected", "alone"}:
        return
    beside = randomized().save(tmp_path / "out.csv")
    book = json.loads(beside.read_text())
    place = book if whole else book["columns"][0]
    place[what] = {"protected": False}.get(what, 0.01)
    beside.write_text(json.dumps(book))
    with pytest.raises(InputError, match="follow"):
        read_codebook(beside)


def test_what_an_earlier_version_stated_of_the_records_categories_is_read_and_replaced(tmp_path):
    given = randomize_frame({"a": ["x", "y"] * 9, "b": ["u", "v", "w"] * 6}, keep=0.5)
    beside = given.save(tmp_path / "out.csv")
    book = json.loads(beside.read_text())
    for column in book["columns"]:
        column["epsilon"] = KeepOrUniform(column["way"]["size"], 0.5).epsilon
    book["epsilon"] = sum(column["epsilon"] for column in book["columns"])
    beside.write_text(json.dumps(book))
    assert read_codebook(beside) == given.codebook


def change_of(path, value):
    def change(book):
        *way, last = path
        for step in way:
            book = book[step]
        book[last] = value

    return change


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (change_of(("columns", 0, "way", "highest"), 60.0), "'age' was randomized for other"),
        (change_of(("columns", 0, "way", "lowest"), 10.0), "'age' was randomized for other"),
        (change_of(("columns", 0, "way", "step"), 0.5), "'age' was randomized for other"),
        (change_of(("columns", 1, "attribute", "highest"), 500.0), "'height' was randomized for"),
        (change_of(("columns", 1, "way", "deviation"), 900.0), "'height' has other noise than its"),
        (change_of(("columns", 1, "way", "from_file"), False), "'height' has other noise than its"),
        (
            change_of(("columns", 1, "way", "group"), None),
            "'height' has other noise than its group",
        ),
        (change_of(("groups", 0, "covariance", 1, 1), 9.0), "'weight' has other noise than its"),
        (change_of(("groups", 0, "columns", 0), "age"), "a group that it is not in"),
    ],
)
def test_a_codebook_whose_noise_is_not_for_its_columns_is_refused(tmp_path, change, says):
    """An ε for a range of 60 years was stated of a column that has 120."""
    beside = randomized().save(tmp_path / "out.csv")
    book = json.loads(beside.read_text())
    change(book)
    beside.write_text(json.dumps(book))
    with pytest.raises(InputError, match=says):
        read_codebook(beside)


def test_a_codebook_says_how_many_rows_its_file_has(tmp_path):
    beside = randomized().save(tmp_path / "out.csv")
    book = json.loads(beside.read_text())
    beside.write_text(json.dumps(book | {"rows": 3999}))
    with pytest.raises(InputError, match=r"has 4,000 records; its codebook.* says 3,999"):
        read_randomized(tmp_path / "out.csv")


def test_a_codebook_may_have_as_many_categories_as_a_study(tmp_path, monkeypatch):
    beside = randomized().save(tmp_path / "out.csv")
    monkeypatch.setattr(schema_module, "MOST_CATEGORIES", 5)
    with pytest.raises(InputError, match="damaged: the schema has 6 categories; 5 are possible"):
        read_codebook(beside)


def test_a_small_codebook_of_many_categories_makes_no_table_of_all_by_all(tmp_path):
    """45,000 categories in each of two columns needed 15 GiB, and 32 GB later on."""
    size = 45_000
    frame = {name: [str(k) for k in range(3)] for name in "ab"}
    plan = {name: {"categories": [str(k) for k in range(size)]} for name in "ab"}
    made = randomize_frame(frame, schema=schema_of_tables(plan), keep=0.5, seed=1)
    made.save(tmp_path / "out.csv")
    tracemalloc.start()
    try:
        read = read_randomized(tmp_path / "out.csv")
        assert len(read.table("a").values) == size
        with pytest.raises(InputError, match="combinations are too many to enumerate"):
            read.table("a", "b")
        assert tracemalloc.get_traced_memory()[1] < 200e6
    finally:
        tracemalloc.stop()
