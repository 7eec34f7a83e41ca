"""Networks learned from published tables: the best of all trees, and the same after BIF."""

import csv
import itertools
import math

import networkx as nx
import numpy as np
import pytest
from helpers import make_scenario, make_schema
from typer.testing import CliRunner

from mpc_rr.cli import app
from mpc_rr.estimation.tables import TreeModel, mutual_information
from mpc_rr.protocols.block_aggregation import BlockAggregation
from mpc_rr.randomness import SeededRandomness
from mpc_rr.results.export import export
from mpc_rr.results.folder import read_folder, write_results
from mpc_rr.results.networks import network_of, tree_of
from mpc_rr.running import run_study
from mpc_rr.schema import Attribute, Schema
from mpc_rr.study.bif import bif_text, read_bif

SIZES = (2, 3, 2, 2)
N = 400


def people():
    """A chain 0 → 2 → 1, and 3 for itself."""
    rng = np.random.default_rng(8)
    first = rng.integers(0, 2, N)
    third = np.where(rng.random(N) < 0.9, first, 1 - first)
    second = np.where(rng.random(N) < 0.85, 2 * third, rng.integers(0, 3, N))
    rows = np.stack([first, second, third, rng.integers(0, 2, N)], axis=1)
    return [tuple(row) for row in rows.tolist()]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("network") / "run"
    protocol = BlockAggregation(epsilon=6.0, floor=1.0, block=100, answers=1)
    planned = make_scenario(people(), SIZES, protocol=protocol)
    write_results(run_study(planned, transport="memory", seed=1), place)
    return place


def pairs_of(folder):
    published, names = folder.file.publication, make_schema(SIZES).names
    return {
        tuple(names.index(axis.attribute) for axis in table.axes): np.array(table.values).reshape(
            [len(axis.categories) for axis in table.axes]
        )
        for table in published.tables
        if len(table.axes) == 2
    }


def test_no_other_tree_has_more_mutual_information(folder):
    """All 16 trees of four attributes are tried."""
    found = read_folder(folder)
    tree = tree_of(found.file.publication, make_schema(SIZES))
    weights = {pair: mutual_information(t) for pair, t in pairs_of(found).items()}
    assert len(weights) == math.comb(4, 2)
    chosen = {tuple(sorted(edge)) for edge in tree.parents.items()}
    trees = [
        edges
        for edges in itertools.combinations(weights, 3)
        if nx.is_tree(nx.Graph(edges)) and nx.Graph(edges).number_of_nodes() == 4
    ]
    assert len(trees) == 16
    best = max(sum(weights[edge] for edge in edges) for edges in trees)
    assert sum(weights[edge] for edge in chosen) == pytest.approx(best)
    assert {(0, 2), (1, 2)} <= chosen


def test_the_exported_network_has_the_published_tables_along_its_edges(folder, tmp_path):
    export(folder, tmp_path / "out")
    network = read_bif(tmp_path / "out" / "network.bif")
    assert network.schema.names == make_schema(SIZES).names
    joint = np.zeros(SIZES)
    for record in itertools.product(*map(range, SIZES)):
        share = 1.0
        for place, node in enumerate(network.nodes):
            row = record[node.parents[0]] if node.parents else 0
            share *= node.shares[row, record[place]]
        joint[record] = share
    assert joint.sum() == pytest.approx(1)
    tables = pairs_of(read_folder(folder))
    for place, node in enumerate(network.nodes):
        for parent in node.parents:
            edge = tuple(sorted((place, parent)))
            others = tuple(k for k in range(4) if k not in edge)
            assert joint.sum(axis=others) == pytest.approx(tables[edge], abs=1e-9)


def test_invented_people_have_the_tables_along_the_edges(folder, tmp_path):
    """20,000 people: every cell within five standard errors (once in 10⁵ seeds)."""
    out = tmp_path / "people.csv"
    asked = ["synthesize", str(folder), "--rows", "20000", "--out", str(out), "--seed", "3"]
    told = CliRunner().invoke(app, asked)
    assert told.exit_code == 0, told.output
    with out.open(newline="") as file:
        head, *rows = csv.reader(file)
    schema = make_schema(SIZES)
    assert tuple(head) == schema.names
    codes = np.array(
        [[a.categories.index(v) for a, v in zip(schema.attributes, r, strict=True)] for r in rows]
    )
    assert len(codes) == 20_000
    shares = np.zeros((2, 2))
    np.add.at(shares, (codes[:, 0], codes[:, 2]), 1 / 20_000)
    wanted = pairs_of(read_folder(folder))[0, 2]
    assert (abs(shares - wanted) < 5 * np.sqrt(wanted * (1 - wanted) / 20_000) + 1e-9).all()


def test_names_that_bif_cannot_hold_are_written_as_words_and_explained(tmp_path):
    schema = Schema(
        (
            Attribute("place of birth", "nominal", ("New York", "New_York", "a, b")),
            Attribute("wer {x}", "nominal", ("ja", "nein; nie")),
        )
    )
    table = np.array([[0.1, 0.2], [0.3, 0.1], [0.05, 0.25]])
    network = network_of(TreeModel.from_pairs({(0, 1): table}, schema.sizes), schema)
    (tmp_path / "n.bif").write_text(bif_text(network, "a study"))
    read = read_bif(tmp_path / "n.bif")
    assert read.schema.names == ("place_of_birth", "wer__x_")
    assert read.schema.attributes[0].categories == ("New_York_2", "New_York", "a__b")
    for ours, theirs in zip(network.nodes, read.nodes, strict=True):
        assert theirs.parents == ours.parents
        assert theirs.shares == pytest.approx(ours.shares, abs=1e-12)
    assert "// New_York_2 of place_of_birth: New York" in (tmp_path / "n.bif").read_text()


def test_what_is_read_from_bif_and_written_again_is_the_same(tmp_path):
    text = (
        "network n {\n}\nvariable a {\n type discrete [ 2 ] { x, y };\n}\n"
        "variable b {\n type discrete [ 2 ] { u, v };\n}\nvariable c {\n"
        " type discrete [ 2 ] { 0, 1 };\n}\nprobability ( a ) {\n table 0.3, 0.7;\n}\n"
        "probability ( b ) {\n table 0.5, 0.5;\n}\nprobability ( c | a, b ) {\n"
        " (x, u) 0.1, 0.9;\n (x, v) 0.2, 0.8;\n (y, u) 0.4, 0.6;\n (y, v) 1.0, 0.0;\n}\n"
    )
    (tmp_path / "one.bif").write_text(text)
    one = read_bif(tmp_path / "one.bif")
    (tmp_path / "two.bif").write_text(bif_text(one, "n"))
    two = read_bif(tmp_path / "two.bif")
    assert one.schema == two.schema
    rng = [SeededRandomness(1).uniform for _ in range(2)]
    assert (one.sample(500, rng[0]) == two.sample(500, rng[1])).all()


def test_tables_that_do_not_connect_all_attributes_make_no_network(tmp_path):
    names = make_schema(SIZES).names
    protocol = BlockAggregation(p=0.9, floor=1.0, block=40, tables=(names[:2], names[2:]))
    planned = make_scenario(people()[:40], SIZES, protocol=protocol)
    write_results(run_study(planned, transport="memory", seed=1), tmp_path / "run")
    told = CliRunner().invoke(
        app, ["synthesize", str(tmp_path / "run"), "--rows", "5", "--out", str(tmp_path / "x.csv")]
    )
    assert told.exit_code != 0
    assert "published no randomized records from which this could be estimated" in " ".join(
        told.output.split()
    )
    export(tmp_path / "run", tmp_path / "out")
    assert not (tmp_path / "out" / "network.bif").exists()
