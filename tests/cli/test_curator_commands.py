"""``mpc-rr randomize`` and ``mpc-rr estimate``, as somebody types them."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
import typer
from cli_helpers import assert_one_line

from mpc_rr.cli.console import plain_errors


def people(folder, n=600):
    rng = np.random.default_rng(0)
    lines = ["age,smokes,cough,id"]
    for k in range(n):
        smokes = rng.random() < 0.4
        cough = rng.random() < (0.7 if smokes else 0.2)
        age = rng.integers(18, 90)
        lines.append(f"{age},{'yes' if smokes else 'no'},{'often' if cough else 'seldom'},p{k}")
    (folder / "people.csv").write_text("\n".join(lines) + "\n")
    (folder / "plan.toml").write_text(
        '[schema.age]\ntype = "numeric"\nlowest = 18\nhighest = 90\n'
        '[schema.smokes]\ncategories = ["no", "yes"]\n'
        '[schema.cough]\ncategories = ["seldom", "often"]\n'
        "[randomize.columns.age]\nepsilon = 4\n"
    )


def test_a_file_is_randomized_and_estimated_from(tmp_path, here):
    people(tmp_path)
    code, said, errors = here(
        "randomize", "people.csv", "--plan", "plan.toml", "--beta", "0.5", "--out", "out.csv",
        cwd=tmp_path,
    )  # fmt: skip
    assert (code, errors) == (0, "")
    assert "β of all categories together: 50 %" in " ".join(said.split())
    assert "left out: “id”" in said
    assert "out.csv holds 600 randomized records; out.codebook.json says how" in said
    code, said, _ = here("estimate", "out.csv", "--table", "smokes+cough", "--json")
    found = json.loads(said)
    assert code == 0
    assert found["rows"] == 600
    assert [table["name"] for table in found["tables"]] == ["smokes & cough"]
    assert set(found["means"]) == {"age"}
    code, said, _ = here("estimate", "out.csv", "--query", "smokes = yes", "--json")
    share = json.loads(said)
    assert share["population"][0] < 0.4 < share["population"][1]
    code, said, _ = here("estimate", "out.csv", "--table", "smokes+cough")
    assert "Shares of smokes by cough" in said
    assert "From 600 randomized records" in said


def of_the_page(kind):
    """The first block of this kind on the page."""
    page = (Path(__file__).parents[2] / "docs" / "randomize.md").read_text(encoding="utf-8")
    return re.search(rf"```{kind}\n(.*?)```", page, re.DOTALL)[1]


def patients(folder):
    rng = np.random.default_rng(3)
    lines = ["age,sex,health"]
    for _ in range(300):
        health = ("bad", "fair", "good", "")[rng.integers(4)]
        lines.append(f"{rng.integers(0, 121)},{('female', 'male')[rng.integers(2)]},{health}")
    (folder / "patients.csv").write_text("\n".join(lines) + "\n")
    (folder / "plan.toml").write_text(of_the_page("toml"), encoding="utf-8")


def test_the_plan_and_the_matrix_of_the_page_work(tmp_path, here):
    """The page said nothing of a column and a line for those who gave no answer."""
    patients(tmp_path)
    (tmp_path / "health.csv").write_text(of_the_page("csv"), encoding="utf-8")
    asked = ("randomize", "patients.csv", "--plan", "plan.toml", "--out", "out.csv", "--seed", 1)
    code, _, errors = here(*asked, cwd=tmp_path)
    assert code == 0, errors
    ways = {c["attribute"]["name"]: c["way"] for c in
            json.loads((tmp_path / "out.codebook.json").read_text())["columns"]}  # fmt: skip
    assert ways["health"]["mechanism"] == "PRAM"
    np.testing.assert_allclose(ways["health"]["rows"], 0.1 + 0.6 * np.eye(4))
    assert ways["age"]["spent"] == 2


def test_a_matrix_that_is_refused_comes_with_one_that_is_not(tmp_path, here):
    patients(tmp_path)
    short = "\n".join(line.rpartition(",")[0] for line in of_the_page("csv").splitlines()[:-1])
    (tmp_path / "health.csv").write_text(short, encoding="utf-8")
    asked = ("randomize", "patients.csv", "--plan", "plan.toml", "--out", "out.csv")
    code, _, errors = here(*asked, cwd=tmp_path)
    assert code != 0
    assert_one_line(
        errors,
        "must name each category once, “no answer” too: write “,bad,fair,good,no answer”, then a "
        "line for each of them, as “bad,0.7,0.1,0.1,0.1”",
    )
    twice = of_the_page("csv").replace("good,no answer\n", "good,no answer,bad\n")
    (tmp_path / "health.csv").write_text(twice, encoding="utf-8")
    assert_one_line(here(*asked, cwd=tmp_path)[2], "must name each category once")


def test_without_a_plan_the_categories_are_the_records_and_that_is_said(tmp_path, here):
    people(tmp_path)
    (tmp_path / "few.csv").write_text(
        "\n".join(
            line.rpartition(",")[0] for line in (tmp_path / "people.csv").read_text().splitlines()
        )
    )
    code, said, errors = here(
        "randomize", "few.csv", "--lambda", "0.7", "--out", "out.csv", "--seed", "1", cwd=tmp_path
    )
    assert code == 0
    assert "anyone who knows it gets the true values back" in " ".join(errors.split())
    assert "the categories are those of the records" in " ".join(said.split())
    assert json.loads((tmp_path / "out.codebook.json").read_text())["simulated"] is True


def test_a_column_of_which_nothing_can_be_asked_is_left_out_and_named(tmp_path, here):
    """One constant column made the command fail, with advice for Python."""
    people(tmp_path)
    lines = (tmp_path / "people.csv").read_text().splitlines()
    wave = [f"{line.rpartition(',')[0]},{'wave' if k == 0 else 3}" for k, line in enumerate(lines)]
    (tmp_path / "wave.csv").write_text("\n".join(wave) + "\n")
    code, said, errors = here(
        "randomize", "wave.csv", "--beta", "0.5", "--out", "out.csv", cwd=tmp_path
    )
    assert code == 0
    assert "column “wave” is left out: it has fewer than two" in " ".join(errors.split())
    assert "left out: “wave”" in said
    assert (tmp_path / "out.csv").read_text().startswith("age,smokes,cough\n")
    (tmp_path / "all.csv").write_text("wave,place\n" + "3,north\n" * 9)
    code, _, errors = here("randomize", "all.csv", "--beta", "0.5", "--out", "x.csv", cwd=tmp_path)
    assert code == 2
    assert "two columns are needed that can be randomized" in errors


def test_a_condition_and_tables_may_be_asked_for_together(tmp_path, here):
    """The tables were left out without a word."""
    people(tmp_path)
    asked = ("randomize", "people.csv", "--plan", "plan.toml", "--beta", "0.5", "--out", "out.csv")
    assert here(*asked, cwd=tmp_path)[0] == 0
    both = ("estimate", "out.csv", "--table", "smokes+cough", "--query", "smokes = yes")
    code, said, _ = here(*both, cwd=tmp_path)
    assert code == 0
    assert "of the population meet it" in said
    assert "Shares of smokes by cough" in said
    assert "Means" not in said
    found = json.loads(here(*both, "--json", cwd=tmp_path)[1])
    assert [table["name"] for table in found["tables"]] == ["smokes & cough"]
    assert found["population"][0] < 0.4 < found["population"][1]


def test_a_plan_may_wish_what_covariances_keep(tmp_path, here):
    """001, Eq. (9): λ₁·λ₂ of that of a pair."""
    people(tmp_path)
    plan = (tmp_path / "plan.toml").read_text()
    (tmp_path / "plan.toml").write_text(
        plan.replace("[randomize.columns", "[randomize]\ncovariance = 0.49\n[randomize.columns")
    )
    asked = ("randomize", "people.csv", "--plan", "plan.toml", "--out", "out.csv", "--seed", 1)
    assert here(*asked, cwd=tmp_path)[0] == 0
    columns = json.loads((tmp_path / "out.codebook.json").read_text())["columns"]
    keeps = {c["attribute"]["name"]: c["way"].get("keep") for c in columns}
    assert keeps == {"age": None, "smokes": pytest.approx(0.7), "cough": pytest.approx(0.7)}
    pairs = 'covariance = { "smokes+cough" = 0.9 }\nbeta = 0.5'
    (tmp_path / "plan.toml").write_text(
        plan.replace("[randomize.columns", f"[randomize]\n{pairs}\n[randomize.columns")
    )
    code, _, errors = here(*asked[:-4], "--out", "other.csv", cwd=tmp_path)
    assert code == 2
    assert_one_line(errors, "attributes “smokes” and “cough” cannot keep 90% of their covariance")


def test_mistakes_are_one_line(tmp_path, here):
    people(tmp_path)
    arguments = ("randomize", "people.csv", "--plan", "plan.toml", "--out", "out.csv")
    for more, says in (
        ((), "give one of lambda, beta, epsilon and covariance for “smokes”, “cough”"),
        (("--beta", "0.5", "--epsilon", "1"), "give one of lambda, beta and epsilon"),
        (("--lambda", "2"), "lambda must be between 0 and 1"),
        (("--beta", "0.5", "--codebook", "plan.toml"), "plan.toml exists already"),
        (("--beta", "0.5", "--codebook", "out.csv"), "both the file and its codebook"),
    ):
        code, said, errors = here(*arguments, *more, cwd=tmp_path)
        assert (code, said) == (2, "")
        assert_one_line(errors, says)
        assert not (tmp_path / "out.csv").exists()
    code, _, errors = here("estimate", "people.csv")
    assert code == 2
    assert_one_line(errors, "people.codebook.json")
    code, _, errors = here("randomize", "people.csv", "--beta", "0.5", "--out", "out.csv")
    assert code == 0
    assert "column “id” is left out: 600 different values are too many" in " ".join(errors.split())
    assert (tmp_path / "out.csv").read_text().startswith("age,smokes,cough\n")


def test_where_memory_is_not_enough_it_is_said_in_one_line(capsys):
    with pytest.raises(typer.Exit) as ended, plain_errors(verbose=False):
        raise MemoryError
    assert ended.value.exit_code == 1
    said = capsys.readouterr().err
    assert said == (
        "mpc-rr: there is not enough memory for this; fewer or coarser categories need less\n"
    )
