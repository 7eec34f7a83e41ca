"""A finished study for other programs: sheets with labels, a codebook, and R that reads them."""

import csv
import hashlib
import importlib
import io
import itertools
import json
import shutil
import subprocess
import sys
from pathlib import Path

import anonymizing
import numpy as np
import pytest
from helpers import unpack
from typer.testing import CliRunner

from mpc_rr import (
    BlockAggregation,
    ExactMoments,
    ExactPairs,
    LambdaRandomization,
    RRClusters,
    RREachAttribute,
    RRIndependent,
    RRPairs,
    RRViews,
)  # fmt: skip
from mpc_rr import run_study as run
from mpc_rr.cli.app import app
from mpc_rr.errors import InputError
from mpc_rr.protocols.registry import BUILT_IN, known, origin
from mpc_rr.protocols.rr_joint import RRJoint
from mpc_rr.publication.sheets import from_cell
from mpc_rr.results.asking import read_askable
from mpc_rr.results.export import export
from mpc_rr.results.folder import read_folder
from mpc_rr.schema import Attribute, Schema
from mpc_rr.study.definition import Deadlines, Parties, Study
from mpc_rr.study.derived import Derived
from mpc_rr.study.file import Scenario, schema_of_tables

SCHEMA = schema_of_tables({
    "sport": {
        "categories": ["no", "=yes"], "label": "Does sport", "question": "Do you do any sport?",
        "labels": {"no": "None at all", "=yes": "=Some"},
    },
    "mood": {"type": "ordinal", "categories": ["low", "middle", "high"], "missing": "no answer"},
    "age": {"bins": [0, 30, 60, 120]},
})  # fmt: skip
PROTOCOLS = {
    "independent": RRIndependent(keep=0.6),
    "clusters": RRClusters(epsilon=9.0, dependence=RREachAttribute(epsilon=6.0)),
    "joint": RRJoint(epsilon=4.0),
    "pairs": RRPairs(epsilon=6.0),
    "each": RREachAttribute(epsilon=4.0),
    "views": RRViews(epsilon=3.0),
    "hidden": ExactPairs(suppress_below=5),
    "lambda": LambdaRandomization(beta=0.5),
    "blocks": BlockAggregation(p=0.6, floor=0.5, block=10),
}
AMOUNTS = Schema((
    Attribute("pay", "numeric", (), lowest=0, highest=200, step=1),
    Attribute("place", "nominal", ("city", "=farm")),
))  # fmt: skip
ANONYMIZED = {"groups": anonymizing.IN_GROUPS, "masks": anonymizing.MASKED}
DERIVED = {"moves": Derived("sport", {"no": "at rest", "=yes": "moves"}, 0.03)}
GOLDEN = Path(__file__).parent.parent / "golden"
RSCRIPT = shutil.which("Rscript")
needs_r = pytest.mark.skipif(RSCRIPT is None, reason="Rscript is not installed here")


def people(n=80):
    rng = np.random.default_rng(0)
    sport = rng.integers(0, 2, n)
    mood = np.where(rng.random(n) < 0.1, 3, np.clip(sport + rng.integers(0, 2, n), 0, 2))
    return tuple(zip(sport.tolist(), mood.tolist(), rng.integers(0, 3, n).tolist(), strict=True))


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Finished studies, each run once when it is asked for."""
    made = {}

    def of(name):
        if name not in made:
            found = run(scenario(name), transport="memory", seed=1)
            made[name] = found.save(tmp_path_factory.mktemp("runs") / name)
        return made[name]

    return of


def scenario(name):
    if name in ANONYMIZED:
        return anonymizing.make_scenario(ANONYMIZED[name])
    moments = name == "moments"
    study = Study(
        name="small", title="Small", description="For a test.",
        schema=AMOUNTS if moments else SCHEMA, parties=Parties(80), deadlines=Deadlines(),
        protocol=ExactMoments(suppress_below=10) if moments else PROTOCOLS[name],
        derived=DERIVED if name == "joint" else None,
    )  # fmt: skip
    amounts = tuple((number, int(number < 60)) for number in range(80))
    return Scenario.of(study, amounts if moments else people())


def test_every_protocol_is_exported_here():
    kinds = [*PROTOCOLS.values(), *ANONYMIZED.values(), ExactMoments()]
    assert {type(kind) for kind in kinds} == {
        kind for name, kind in known().items() if origin(name) == BUILT_IN
    }


def cells_in(text):
    return [[from_cell(cell) for cell in row] for row in csv.reader(io.StringIO(text, newline=""))]


@pytest.mark.parametrize("name", [*PROTOCOLS, *ANONYMIZED, "moments"])
def test_every_sheet_of_every_protocol_is_in_the_export(runs, tmp_path, name):
    """As it is; or, of a published table, cell by cell in tables.csv."""
    out, folder = export(runs(name), tmp_path / "out"), read_folder(runs(name))
    sheets = folder.file.publication.sheets
    assert sheets
    tables = {}
    for cell in sheet(out, "tables.csv"):
        tables.setdefault(cell["table"], []).append(cell["value"])
    for published in sheets:
        there = cells_in(folder.text(published.name))
        if (out / published.name).exists():
            assert cells_in((out / published.name).read_text(encoding="utf-8")) == there
            continue
        about = published.what.partition(" of ")[2]
        body = [row[1:] for row in there[1:]]
        if there[0][-1] == "share" and "\\" not in there[0][0]:
            body = [row[-1:] for row in there[1:]]
        assert [value for row in body for value in row] == tables[about]


def test_means_and_single_numbers_are_exported(runs, tmp_path):
    """They are all that such a study finds; an export left them out without a word."""
    out = export(runs("moments"), tmp_path / "out")
    of = {(row["category"], row["attribute"]): row for row in sheet(out, "moments/all.csv")}
    assert float(of["city", "pay"]["mean"]) == np.mean(range(60, 80))
    found = {row["name"]: row for row in sheet(out, "quantities.csv")}
    assert float(found["mean.pay"]["value"]) == np.mean(range(80))
    published = read_folder(runs("moments")).file.publication
    assert [*found] == [quantity.name for quantity in published.quantities]


def test_what_is_computed_from_an_answer_is_in_the_codebook(runs, tmp_path):
    book = json.loads((export(runs("joint"), tmp_path / "out") / "codebook.json").read_text())
    values = {"no": "at rest", "=yes": "moves"}
    assert book["derived"] == {"moves": {"from": "sport", "values": values, "wrong": 0.03}}


def sheet(folder, name):
    with (folder / name).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def kept(factors):
    """P of a table, from the lines that say what it is made of."""
    whole = np.ones((1, 1))
    for line in factors:
        size, keep = int(line["size"]), float(line["keep"])
        whole = np.kron(whole, keep * np.eye(size) + (1 - keep) / size)
    return whole


@pytest.mark.parametrize("name", ["independent", "clusters", "joint", "pairs", "each"])
def test_the_matrices_that_are_exported_undo_the_reports_that_are_exported(runs, tmp_path, name):
    """With numpy's inverse, from the exported sheets alone."""
    out = export(runs(name), tmp_path / "out")
    codebook, tables = sheet(out, "codebook.csv"), sheet(out, "tables.csv")
    reports = sheet(out, "reports.csv") if (out / "reports.csv").exists() else None
    known = {
        a: [line["category"] for line in codebook if line["attribute"] == a] for a in SCHEMA.names
    }
    lines = sheet(out, "randomization.csv")
    assert {line["table"] for line in lines} == {line["table"] for line in tables}
    for table, group in itertools.groupby(lines, key=lambda line: line["table"]):
        cells = [line for line in tables if line["table"] == table]
        if reports is None:
            counts = np.array([float(cell["reported"]) for cell in cells])
        else:
            names = [cells[0][f"attribute_{k}"] for k in (1, 2) if cells[0][f"attribute_{k}"]]
            combinations = [*itertools.product(*(known[a] for a in names))]
            told = [combinations.index(tuple(r[a] for a in names)) for r in reports]
            counts = np.bincount(told, minlength=len(combinations))
        shares = np.linalg.solve(kept(group).T, counts / counts.sum())
        np.testing.assert_allclose(shares, [float(c["unbiased"]) for c in cells], atol=1e-9)


def test_every_cell_has_its_labels_and_what_was_published(runs, tmp_path):
    out = export(runs("independent"), tmp_path / "out")
    published = read_askable(runs("independent")).folder.file.publication
    cells = sheet(out, "tables.csv")
    assert len(cells) == sum(len(table.values) for table in published.tables)
    (cell,) = (
        c for c in cells
        if (c["table"], c["category_1"], c["category_2"]) == ("sport & mood", "'=yes", "high")
    )  # fmt: skip
    table = published.table("sport", "mood")
    assert float(cell["value"]) == table.values[4 + 2]
    assert float(cell["respondents_high"]) == table.respondents_high[4 + 2]
    assert (cell["label_1"], cell["label_2"], cell["hidden"]) == ("'=Some", "high", "no")
    labelled = sheet(out, "reports_labelled.csv")
    assert {row["Does sport"] for row in labelled} == {"None at all", "'=Some"}
    assert len(labelled) == 80


def test_no_cell_of_any_sheet_is_a_formula(runs, tmp_path):
    out = export(runs("clusters"), tmp_path / "out")
    files = [*out.rglob("*.csv")]
    assert len(files) > 8
    for file in files:
        with file.open(newline="", encoding="utf-8") as text:
            assert not any(cell.startswith("=") for row in csv.reader(text) for cell in row), file


def test_the_codebook_says_what_was_asked_how_and_for_how_much(runs, tmp_path):
    book = json.loads((export(runs("joint"), tmp_path / "out") / "codebook.json").read_text())
    assert book["format"] == "mpc-rr study codebook"
    assert book["version"] == 1
    assert book["attributes"][0]["question"] == "Do you do any sport?"
    assert book["privacy"]["epsilon"] == pytest.approx(4.0)
    assert 0 < book["privacy"]["beta"] < 1
    assert "does not undo the randomization between clusters" in book["how_to_weight"]
    assert {*book["files"]} == {
        str(file.relative_to(tmp_path / "out").as_posix())
        for file in (tmp_path / "out").rglob("*")
        if file.is_file()
    }
    whole = next(m for m in book["matrices"] if m["attributes"] == ["mood"])
    with (tmp_path / "out" / whole["file"]).open(newline="") as file:
        _, *rows = csv.reader(file)
    matrix = np.array([[float(cell) for cell in row[1:]] for row in rows])
    np.testing.assert_allclose(matrix, whole["keep"] * np.eye(4) + (1 - whole["keep"]) / 4)


def test_hidden_counts_stay_hidden(runs, tmp_path):
    cells = sheet(export(runs("hidden"), tmp_path / "out"), "tables.csv")
    assert {cell["value"] == "" for cell in cells if cell["hidden"] == "yes"} == {True}
    assert {cell["value"] == "" for cell in cells if cell["hidden"] == "no"} == {False}


def test_views_are_exported_without_a_correction(runs, tmp_path):
    out = export(runs("views"), tmp_path / "out")
    assert not (out / "randomization.csv").exists()
    assert json.loads((out / "codebook.json").read_text())["randomization"]["design"] == "views"


def test_parquet_without_pyarrow_is_told_before_anything_is_written(runs, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(InputError, match="needs pyarrow, which is not installed here"):
        export(runs("independent"), tmp_path / "out", parquet=True)
    assert not (tmp_path / "out").exists()


def test_parquet_has_the_same_cells(runs, tmp_path):
    parquet = importlib.import_module("pyarrow.parquet")
    out = export(runs("hidden"), tmp_path / "out", parquet=True)
    read = parquet.read_table(str(out / "tables.parquet")).to_pylist()
    written = sheet(out, "tables.csv")
    assert [row["value"] for row in read] == [
        int(row["value"]) if row["value"] else None for row in written
    ]
    assert {row["category_1"] for row in read if row["attribute_1"] == "sport"} == {"no", "=yes"}


def test_parquet_has_the_sheets_in_folders(runs, tmp_path):
    parquet = importlib.import_module("pyarrow.parquet")
    out = export(runs("moments"), tmp_path / "out", parquet=True)
    read = parquet.read_table(str(out / "moments" / "all.parquet")).to_pylist()
    assert [row["category"] for row in read if row["by"] == "place"] == ["city", "=farm"]


def test_a_folder_of_format_1_is_exported_with_its_tables(tmp_path):
    """Its tables stand in no result.json: they are worked out from the transcript."""
    unpack(GOLDEN / "format-1.tar.xz", tmp_path)
    out = export(tmp_path / "lambda_randomization", tmp_path / "out")
    cells = sheet(out, "tables.csv")
    assert {cell["table"] for cell in cells} == {
        line["table"] for line in sheet(out, "randomization.csv")
    }
    assert len({cell["table"] for cell in cells}) == 6


# ── R ──────────────────────────────────────────────────────────────────────────────────────────


# ── A folder that somebody prepared ────────────────────────────────────────────────────────────


def prepared(runs, tmp_path, change):
    """A folder as it was published, but for what ``change`` does to its publication."""
    folder = tmp_path / "prepared"
    shutil.copytree(runs("independent"), folder)
    place = folder / "result.json"
    document = json.loads(place.read_text())
    change(document["publication"], folder)
    place.write_text(json.dumps(document))
    return folder


@pytest.mark.parametrize("name", ["../../patients", "/tmp/patients", "..", ".hidden", "a/b", "C:x"])
def test_a_listing_names_no_place_outside_the_export(runs, tmp_path, name):
    """By ../../patients, a CSV file of the user's was replaced by one of the folder's author."""
    precious = tmp_path / "patients.csv"
    precious.write_text("precious")

    def change(publication, folder):
        publication["listings"].append(publication["listings"][0] | {"name": name})

    folder = prepared(runs, tmp_path, change)
    with pytest.raises(InputError, match="a listing cannot be called"):
        export(folder, tmp_path / "exported")
    assert precious.read_text() == "precious"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["patients.csv", "prepared"]


@pytest.mark.parametrize("name", [
    "tables.csv", "Tables.csv", "codebook.csv", "quantities.csv", "analysis.R",
    "matrices/01.csv", "Listings/x.csv", "read.R/x.csv",
])  # fmt: skip
def test_a_sheet_neither_replaces_a_file_of_the_export_nor_adds_a_program(runs, tmp_path, name):
    def change(publication, folder):
        text = "system('id')\n"
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
        digest = hashlib.sha256(text.encode()).hexdigest()
        publication["sheets"].append({"name": name, "what": "x", "sha256": digest})

    folder = prepared(runs, tmp_path, change)
    with pytest.raises(InputError, match="cannot be exported: its sheet"):
        export(folder, tmp_path / "exported")
    assert [p.name for p in tmp_path.iterdir()] == ["prepared"]


def test_nobody_takes_an_export_for_verified(runs, tmp_path):
    """As report and query do, it takes what it is given; it says so."""
    done = CliRunner().invoke(
        app, ["export", str(runs("independent")), "--out", str(tmp_path / "e")]
    )
    assert done.exit_code == 0
    assert "not verified" in done.stderr


def in_r(folder, *program):
    arguments = ["-e", *program] if program else [str(folder / "read.R"), str(folder)]
    return subprocess.run(
        [RSCRIPT, "--vanilla", *arguments], capture_output=True, text=True, check=False
    )


@needs_r
@pytest.mark.parametrize("name", ["independent", "clusters", "pairs"])
def test_r_reproduces_the_published_shares_and_standard_errors(runs, tmp_path, name):
    out = export(runs(name), tmp_path / "out")
    done = in_r(out)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Largest difference from the published shares and standard errors" in done.stdout
    found, tables = sheet(out, "corrected.csv"), sheet(out, "tables.csv")
    assert len(found) == len(tables)
    for column in ("unbiased", "standard_error"):
        ours = [float(line[column]) for line in tables]
        np.testing.assert_allclose([float(line[column]) for line in found], ours, atol=1e-9)


@needs_r
def test_r_notices_reports_that_are_not_those_of_the_tables(runs, tmp_path):
    out = export(runs("independent"), tmp_path / "out")
    text = (out / "reports.csv").read_text()
    (out / "reports.csv").write_text(text.replace("middle", "high", 3))
    assert in_r(out).returncode == 1


@needs_r
def test_r_corrects_a_table_that_was_not_published(runs, tmp_path):
    """Three attributes at once, against the estimator of here."""
    out = export(runs("independent"), tmp_path / "out")
    program = (
        f'source("{out}/read.R"); study <- read_study("{out}"); '
        f'write.csv(corrected(study, c("age", "sport", "mood")), "{out}/three.csv")'
    )
    done = in_r(out, program)
    assert done.returncode == 0, done.stderr
    fitted = read_askable(runs("independent")).estimates.fitted
    ours = fitted.unbiased((2, 0, 1))
    theirs = sheet(out, "three.csv")
    shares = [float(line["unbiased"]) for line in theirs]
    np.testing.assert_allclose(shares, ours.shares.ravel(), atol=1e-9)
    errors = [float(line["standard_error"]) for line in theirs]
    np.testing.assert_allclose(errors, ours.standard_errors.ravel(), atol=1e-9)
