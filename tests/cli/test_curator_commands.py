"""``mpc-rr randomize`` and ``mpc-rr estimate``, as somebody types them."""

import json

import numpy as np
from cli_helpers import assert_one_line


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


def test_mistakes_are_one_line(tmp_path, here):
    people(tmp_path)
    arguments = ("randomize", "people.csv", "--plan", "plan.toml", "--out", "out.csv")
    for more, says in (
        ((), "give one of lambda, beta and epsilon"),
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
    assert code == 2
    assert_one_line(errors, "'id'", "leave it out")
