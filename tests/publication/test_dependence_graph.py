"""What made the clusters, and which answers V took together, are published."""

import csv

import numpy as np
import pytest
from helpers import make_scenario, make_schema

from mpc_rr.estimation.strength import Strength
from mpc_rr.protocols.exact_pairs import ExactPairs
from mpc_rr.protocols.rr_clusters import RRClusters
from mpc_rr.protocols.rr_each_attribute import RREachAttribute
from mpc_rr.publication.counts import PairCounts
from mpc_rr.publication.crosstabs import add_dependences
from mpc_rr.publication.ending import Draft, Setting
from mpc_rr.results.folder import read_folder, write_results
from mpc_rr.results.verification import verify
from mpc_rr.running import run_study
from mpc_rr.schema import Attribute, Schema
from mpc_rr.show.charts import graph
from mpc_rr.show.report import report

SIZES = (3, 3, 2)


def alike(n):
    """The first two attributes are the same, the third tells nothing of them."""
    return [(k % 3, k % 3, k // 3 % 2) for k in range(n)]


def clustered(folder, dependence):
    protocol = RRClusters(
        dependence=dependence, keep=0.8, most_combinations=9, least_dependence=0.3
    )
    scenario = make_scenario(alike(60), SIZES, protocol=protocol)
    write_results(run_study(scenario, transport="memory", seed=4), folder)
    assert verify(folder)
    return read_folder(folder).file.publication


def test_the_graph_that_made_the_clusters_is_published_and_drawn(tmp_path):
    folder = tmp_path / "run"
    found = clustered(folder, ExactPairs())
    listed = found.listing("dependence_graph")
    assert listed.rows[0] == ("a0", "a1", "V", 1.0, "yes")
    assert [row[-1] for row in listed.rows] == ["yes", "no", "no"]
    assert [row[0] for row in found.listing("clusters").rows] == [("a0", "a1"), ("a2",)]
    with (folder / "dependence_graph.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["attribute_1"], row["attribute_2"]) for row in rows] == [
        row[:2] for row in listed.rows
    ]
    page = report(folder)
    drawn = page[page.index("What made the clusters</h2>") :].partition("</svg>")[0]
    assert drawn.count('class="tie"') == 1
    assert drawn.count('class="dot"') == 3


def test_degrees_are_those_of_the_first_stage_however_noisy(tmp_path):
    found = clustered(tmp_path / "run", RREachAttribute(keep=0.3))
    clusters = [set(row[0]) for row in found.listing("clusters").rows]
    for one, other, _, degree, together in found.listing("dependence_graph").rows:
        assert (together == "yes") == any({one, other} <= cluster for cluster in clusters)
        assert together == "no" or degree >= 0.3  # nothing else would join two of three


def test_a_graph_has_lines_where_something_depends():
    drawn = graph("t", ["a", "<b>", "c"], {(0, 1): 0.8, (0, 2): 0.2, (1, 2): 0.04}, {(0, 1)})
    assert drawn.count("<path") == 2
    assert drawn.count('class="tie"') == 1
    assert "&lt;b&gt;" in drawn


def counted(table):
    letters = "abcdef"
    schema = Schema(
        tuple(
            Attribute(name, "nominal", tuple(letters[:size]))
            for name, size in zip("xy", table.shape, strict=True)
        )
    )
    n = int(table.sum())
    study = Setting(study="s", schema=schema, parties=n, expected=n, fewest=3)
    return PairCounts(n, schema, [table]).publish(study)


def test_answers_that_v_took_together_are_named():
    table = np.array([[40, 10, 1], [10, 40, 0], [1, 0, 1]])
    listed = counted(table).listing("taken_together")
    assert {row[0] for row in listed.rows} == {"x", "y"}
    for _, answers, beside in listed.rows:
        assert "c" in answers.split(", ")
        assert len(beside) == 1
    assert counted(np.array([[40, 10], [10, 40]])).listing("taken_together") is None


def test_limits_hold_the_degree_of_those_here():
    """Rare answers were taken together for the limits, not for the degree beside them."""
    rng = np.random.default_rng(5)
    for _ in range(60):
        shape = rng.integers(2, 7, 2)
        counts = rng.multinomial(rng.integers(20, 300), rng.dirichlet(np.full(shape.prod(), 0.3)))
        listed = counted(counts.reshape(shape)).listing("dependence")
        value, low, high = (listed.column(name)[0] for name in ("value", "low", "high"))
        assert value is None or low <= value <= high


@pytest.mark.parametrize(("by_chance", "said"), [(0.03, True), (0.01, False)])
def test_limits_without_0_are_explained_where_nothing_is_said(by_chance, said):
    """Limits hold with 95 %; that two depend on each other is said at 2 %."""
    schema, draft = make_schema((2, 3)), Draft()
    near = Strength("pearson_r", 0.4, 0.02, 0.7, by_chance, by_chance)
    add_dependences(draft, schema, {(0, 1): near}, title="Dependences")
    (listed,) = draft.listings
    verdict = dict(zip([c.name for c in listed.columns], listed.rows[0], strict=True))["verdict"]
    assert (verdict == "cannot be told") is said
    assert ("Limits that leave 0 out are not enough" in listed.caption) is said
