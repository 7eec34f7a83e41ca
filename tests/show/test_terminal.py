"""What a terminal shows of a publication."""

import io

import pytest
from anonymizing import IN_GROUPS, MASKED, make_scenario
from rich.console import Console

from mpc_rr.running import run_study
from mpc_rr.show.terminal import show_publication
from mpc_rr.show.words import Words


@pytest.mark.parametrize("protocol", [IN_GROUPS, MASKED], ids=["groups", "masks"])
def test_no_word_of_a_heading_is_broken_on_80_columns(protocol):
    """They once said "quasi-identifi" and, a line below, "er"."""
    result = run_study(make_scenario(protocol), transport="memory", seed=1)
    schema, found = result.study.schema, result.publication
    screen = io.StringIO()
    show_publication(Console(file=screen, width=80), found, schema)
    lines = screen.getvalue().splitlines()
    assert max(map(len, lines)) <= 80
    shown = {word for line in lines if line.startswith("┃") for word in line.strip("┃").split()}
    listings = [listed for listed in found.listings if listed.main]
    assert listings
    for listed in listings:
        for column, _ in Words(schema).columns(listed):
            assert set(column.label.split()) <= shown
