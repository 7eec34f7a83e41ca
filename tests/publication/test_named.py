"""Labelled tables by attribute names, and what they look like elsewhere."""

import importlib
import subprocess
import sys

import numpy as np
import pytest

from mpc_rr.errors import InputError
from mpc_rr.estimation.dependence import dependences_of_records
from mpc_rr.estimation.designs import Fitted
from mpc_rr.estimation.domain import Domain
from mpc_rr.estimation.estimates import Estimates
from mpc_rr.estimation.views import FittedViews
from mpc_rr.publication.named import (
    NamedEstimates,
    adjust_by_name,
    count_table,
    dependences_by_name,
)
from mpc_rr.publication.parts import Axis, Table
from mpc_rr.randomness import SeededRandomness
from mpc_rr.schema import Attribute, Schema

SCHEMA = Schema(
    (
        Attribute("sex", "nominal", ("F", "M")),
        Attribute("size", "ordinal", ("small", "medium", "large")),
        Attribute("worn", "ordinal", ("S", "M", "L")),
    )
)
DOMAIN = Domain.of(SCHEMA)


@pytest.fixture(scope="module")
def records():
    rng = np.random.default_rng(3)
    size = rng.integers(0, 3, 4000)
    worn = np.where(rng.random(4000) < 0.8, size, rng.integers(0, 3, 4000))
    return np.stack([rng.integers(0, 2, 4000), size, worn], axis=1)


@pytest.fixture(scope="module")
def named(records):
    design = DOMAIN.clustered([("size", "worn")], 2.0)
    reported = design.randomize(records, SeededRandomness(4))
    return NamedEstimates(SCHEMA, Fitted(design, reported))


def test_counts_have_their_labels(records):
    table = count_table(records, SCHEMA, "worn", "sex")
    assert [axis.attribute for axis in table.axes] == ["worn", "sex"]
    assert table.axes[0].categories == ("S", "M", "L")
    assert (table.kind, table.n) == ("count", 4000)
    assert table.rows()[2][1] == int(((records[:, 2] == 2) & (records[:, 0] == 1)).sum())


def test_estimates_are_those_of_the_numbers(named):
    table = named.table("worn", "sex")
    estimate = named.fitted.unbiased((2, 0))
    np.testing.assert_array_equal(table.unbiased, estimate.shares.ravel())
    np.testing.assert_array_equal(table.standard_errors, estimate.standard_errors.ravel())
    assert sum(table.values) == pytest.approx(1)
    best = Estimates(SCHEMA, named.fitted).pair_tables[1, 2]
    np.testing.assert_allclose(named.pairs["size", "worn"].values, best.ravel())


def test_dependences_are_keyed_by_pairs_of_names(named, records):
    found = dependences_by_name(records, SCHEMA)
    assert found["size", "worn"].measure == "abs_pearson_r"
    assert found["sex", "worn"].measure == "cramers_v"
    strength = dependences_of_records(records, SCHEMA.sizes, ordinal=[False, True, True])
    assert {pair: d.value for pair, d in found.items()} == DOMAIN.by_pair(strength)
    estimated = named.dependences()
    strongest = estimated["size", "worn"]
    assert max(estimated, key=lambda pair: abs(estimated[pair].value)) == ("size", "worn")
    assert strongest.measure == "pearson_r"
    assert strongest.low <= found["size", "worn"].value <= strongest.high


def test_conditions_are_asked_in_words(named, records):
    answer = named.query("size=small & worn!=S")
    truth = ((records[:, 1] == 0) & (records[:, 2] != 0)).sum()
    assert abs(answer.count - truth) < 5 * answer.standard_error * 4000


def test_views_are_asked_for_by_name_too(records):
    design = DOMAIN.views(4.0, [("sex", "size"), ("size", "worn"), ("sex", "worn")])
    reports = design.randomize(records, SeededRandomness(5))
    named = NamedEstimates(SCHEMA, FittedViews(design, reports))
    assert named.table("worn", "size").shape == (3, 3)
    assert set(named.pairs) == set(DOMAIN.pairs)
    with pytest.raises(InputError, match="nobody reported sex, size, worn together"):
        named.table("sex", "size", "worn")


def test_records_are_adjusted_to_tables_and_arrays(named):
    reported = named.fitted.reported
    wished = {"sex": [0.25, 0.75], ("size", "worn"): named.pairs["size", "worn"]}
    found = adjust_by_name(reported, wished, SCHEMA)
    assert found.trouble is None
    np.testing.assert_allclose(found.table("sex").values, [0.25, 0.75])
    turned = np.array(found.table("worn", "size").values).reshape(3, 3).T.ravel()
    np.testing.assert_allclose(turned, named.pairs["size", "worn"].values, atol=1e-8)
    assert found.synthesize(5, np.random.default_rng(1).random).shape == (5, 3)


def test_wrong_questions_are_told(named, records):
    numeric = Attribute("pay", "numeric", (), lowest=0, highest=9, step=1)
    other = Schema((*SCHEMA.attributes[:2], numeric))
    hidden = Table(
        name="sex", axes=(Axis(attribute="sex", categories=("F", "M")),), kind="count",
        values=(None, 7),
    )  # fmt: skip
    for wrong, says in [
        (lambda: named.table("zip"), "no attribute 'zip'"),
        (named.table, "one or more attributes"),
        (lambda: count_table(records, other, "pay"), "'pay' is numeric: it has no categories"),
        (lambda: NamedEstimates(other, named.fitted), "the design has attributes of"),
        (lambda: adjust_by_name(records, {"sex": hidden}, SCHEMA), "has hidden cells"),
        (
            lambda: adjust_by_name(
                records, {("worn", "size"): named.pairs["size", "worn"]}, SCHEMA
            ),
            "'size & worn' is not the margin of worn, size",
        ),
    ]:
        with pytest.raises(InputError, match=says):
            wrong()


# ── Data frames and notebooks ──────────────────────────────────────────────────────────────────


def table_of(*sizes, kind="count", values=None, **layers):
    axes = tuple(
        Axis(attribute=f"a{k}", categories=tuple(f"<{c}>" for c in "xyz"[:size]))
        for k, size in enumerate(sizes)
    )
    cells = tuple(range(int(np.prod(sizes)))) if values is None else values
    return Table(name="a & b", axes=axes, kind=kind, values=cells, n=1234, **layers)


def test_a_table_of_two_attributes_becomes_a_matrix():
    pd = pytest.importorskip("pandas")
    frame = table_of(2, 3).to_frame()
    assert (frame.index.name, frame.columns.name) == ("a0", "a1")
    assert frame.loc["<y>", "<z>"] == 5
    assert frame.shape == (2, 3)
    assert all(pd.api.types.is_integer_dtype(kind) for kind in frame.dtypes)


@pytest.mark.parametrize("sizes", [(3,), (2, 3, 2)])
def test_other_tables_have_a_row_for_each_cell(sizes):
    pytest.importorskip("pandas")
    frame = table_of(*sizes).to_frame()
    assert list(frame.index.names) == [f"a{k}" for k in range(len(sizes))]
    assert frame["count"].tolist() == list(range(int(np.prod(sizes))))


def test_hidden_cells_are_missing_and_the_others_stay_whole():
    pytest.importorskip("pandas")
    frame = table_of(2, 2, values=(None, 1, 2, None)).to_frame()
    assert frame.isna().to_numpy().tolist() == [[True, False], [False, True]]
    assert frame.loc["<x>", "<y>"] == 1
    shares = table_of(2, kind="share", values=(None, 0.5)).to_frame()
    assert shares["share"].isna().tolist() == [True, False]


def test_errors_stand_beside_their_cells():
    pytest.importorskip("pandas")
    table = table_of(
        2, 2, kind="share", values=(0.1, 0.2, 0.3, 0.4), standard_errors=(1.0, 2.0, 3.0, 4.0),
        low=(0.0,) * 4, high=(1.0,) * 4,
    )  # fmt: skip
    frame = table.to_frame(errors=True)
    assert list(frame.columns) == ["share", "standard_error", "low", "high"]
    assert frame.loc[("<y>", "<x>"), "standard_error"] == 3.0
    with pytest.raises(InputError, match="'a & b' has no standard errors"):
        table_of(2, 2).to_frame(errors=True)


def test_without_pandas_it_is_told(monkeypatch):
    def import_module(name):
        raise ImportError(name)

    monkeypatch.setattr(importlib, "import_module", import_module)
    with pytest.raises(InputError, match="needs pandas"):
        table_of(2, 2).to_frame()


def test_a_notebook_shows_a_table_whose_words_are_no_markup():
    shown = table_of(2, 2, values=(None, 1, 2.25, 4000))._repr_html_()
    assert "<x>" not in shown
    assert "<th>&lt;x&gt;</th><td>hidden</td><td>1</td>" in shown
    assert "<td>2.2</td><td>4,000</td>" in shown
    assert "a &amp; b (1,234 answers)" in shown
    assert "<td>50.0 %</td>" in table_of(2, kind="share", values=(0.5, 0.5))._repr_html_()
    many = Axis(attribute="many", categories=tuple(map(str, range(100))))
    long = Table(name="long", axes=(many,), kind="count", values=tuple(range(100)))
    assert "… and 40 more rows" in long._repr_html_()


def test_the_package_imports_neither_pandas_nor_polars():
    code = (
        "import sys, mpc_rr; [getattr(mpc_rr, name) for name in mpc_rr.__all__]; "
        "sys.exit(bool({'pandas', 'polars'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
