"""Answers so random that nothing can be said are not printed as shares."""

import io
import json

import pytest
from helpers import make_scenario, random_records
from rich.console import Console

from mpc_rr.protocols.exact_pairs import ExactPairs
from mpc_rr.protocols.rr_independent import RRIndependent
from mpc_rr.protocols.rr_views import RRViews
from mpc_rr.publication.parts import NOTHING_TOLD, Axis, Publication, Table, tells_nothing
from mpc_rr.results.folder import write_results
from mpc_rr.running import run_study
from mpc_rr.show.fragment import fragment
from mpc_rr.show.report import report
from mpc_rr.show.terminal import show_publication
from mpc_rr.show.words import CANNOT_BE_TOLD, WHY_NOT_TOLD, Words

SIZES = (2, 3)
N = 30


def terminal(found, schema):
    screen = io.StringIO()
    show_publication(Console(file=screen, width=120), found, schema)
    return screen.getvalue()


def ran(protocol):
    scenario = make_scenario(random_records(N, SIZES), SIZES, protocol=protocol)
    return run_study(scenario, transport="memory", seed=1)


@pytest.mark.parametrize("protocol", [RRIndependent(keep=1e-3), RRViews(epsilon=0.01)])
def test_nothing_is_printed_of_which_nothing_can_be_said(tmp_path, protocol):
    """At keep = 1e-7 the shares 0, 0 and 1 were printed."""
    result = ran(protocol)
    found = result.publication
    single = [table for table in found.tables if len(table.axes) == 1]
    assert all(all(table.untold) for table in found.tables)
    text = terminal(found, result.study.schema)
    assert " ".join(WHY_NOT_TOLD.split()) in " ".join(text.split())
    rows = [line for line in text.splitlines() if "│ v" in line or "v0" in line or "v1" in line]
    assert rows
    for line in rows:
        share = line.split("│")[3].strip()
        assert share == CANNOT_BE_TOLD, line
        assert "━" not in line
    write_results(result, tmp_path / "run")
    page = report(tmp_path / "run")
    assert WHY_NOT_TOLD in page
    assert 'class="dot"' not in page
    # The values stay where one computes with them, beside their limits.
    kept = json.loads((tmp_path / "run" / "result.json").read_text())["publication"]["tables"]
    assert all(None not in table["values"] for table in kept)
    assert all(table["low"] is not None for table in kept)
    assert "cannot be told" in single[0]._repr_html_()
    assert "%" not in single[0]._repr_html_()


def test_what_can_be_told_is_printed_as_before():
    result = ran(RRIndependent(keep=0.9))
    text = terminal(result.publication, result.study.schema)
    assert not any(any(table.untold) for table in result.publication.tables)
    assert WHY_NOT_TOLD not in " ".join(text.split())
    assert text.count("%") > 10


def test_noise_that_drowns_the_counts_leaves_no_counts():
    result = ran(ExactPairs(noise_epsilon=0.02))
    (table,) = result.publication.tables
    assert all(table.untold)
    text = terminal(result.publication, result.study.schema)
    assert not any(f" {value} " in text for value in table.values)
    assert WHY_NOT_TOLD in " ".join(text.split())
    exact = ran(ExactPairs()).publication.tables[0]
    assert not any(exact.untold)


def table_of(low, high):
    axis = Axis(attribute="a", categories=("x", "y"))
    return Table(
        name="a", axes=(axis,), kind="share", values=(0.5, 0.5), low=(low, 0.1), high=(high, 0.3),
        main=True,
    )  # fmt: skip


def test_only_the_cells_that_cannot_be_told_are_left_out():
    schema = make_scenario(random_records(4, SIZES), SIZES).study.schema
    table = table_of(0.05, 0.05 + NOTHING_TOLD + 0.01)
    assert table.untold == (True, False)
    found = Publication(tables=(table,))
    assert terminal(found, schema).count("50.0%") == 1
    assert fragment(found, Words(schema)).count("50.0%") == 1
    assert table_of(0.1, 0.1 + NOTHING_TOLD - 0.01).untold == (False, False)
    assert not tells_nothing(None, 1.0)
