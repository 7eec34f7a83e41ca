"""Random small studies end with a folder that is confirmed: ``benchmarks/random_studies.py``."""

import msgspec
import pytest

from benchmarks import random_studies
from mpc_rr.protocols.registry import known
from mpc_rr.publication.parts import Axis, Column, Listing, Publication, Quantity, Table


@pytest.mark.sweep
def test_random_studies_end_with_a_folder_that_is_confirmed():
    rows = [random_studies.played(number) for number in range(44)]
    assert [row for row in rows if row["wrong"]] == []
    assert sum(row["ended"] == "done" for row in rows) >= 22, "they test nothing"


def test_one_number_gives_one_study_and_all_protocols_have_their_turn():
    drawn = [random_studies.drawn_study(number) for number in range(22)]
    again = random_studies.drawn_study(7)
    assert again.scenario == drawn[7].scenario
    assert again.liars == drawn[7].liars
    assert {d.scenario.study.protocol.name for d in drawn} == set(random_studies.OPTIONS)
    built_in = {name for name, kind in known().items() if kind.__module__.startswith("mpc_rr.")}
    assert set(random_studies.OPTIONS) == built_in


CELLS = Table(
    name="a & b", axes=(Axis(attribute="a", categories=("x", "y")),), kind="share",
    values=(0.25, 0.75), low=(0.1, 0.6), high=(0.4, 0.9), standard_errors=(0.1, 0.1),
    respondents_low=(0.2, 0.7), respondents_high=(0.3, 0.8),
)  # fmt: skip
COLUMNS = (
    Column(name="value", label="value", kind="degree"),
    Column(name="low", label="low", kind="limit"),
    Column(name="high", label="high", kind="limit"),
    Column(name="p_value", label="p", kind="p-value"),
)


def listed(*row):
    return Publication(listings=(Listing(name="l", title="l", columns=COLUMNS, rows=(row,)),))


def test_values_that_can_be_are_none_of_its_faults():
    assert random_studies.faults_of(Publication(tables=(CELLS,))) == []
    assert random_studies.faults_of(listed(0.5, 0.4, 0.6, 0.01)) == []


@pytest.mark.parametrize(
    "change",
    [
        {"values": (0.25, 0.7)},
        {"values": (0.45, 0.55)},
        {"values": (-0.1, 1.1)},
        {"values": (float("nan"), 0.75)},
        {"low": (-0.1, 0.6)},
        {"high": (0.4, 1.1)},
        {"standard_errors": (-0.1, 0.1)},
        {"respondents_low": (0.26, 0.7)},
        {"respondents_low": (0.4, 0.7)},
    ],
    ids=str,
)
def test_tables_that_cannot_be_are_noticed(change):
    """The counter-test."""
    table = msgspec.structs.replace(CELLS, **change)
    assert random_studies.faults_of(Publication(tables=(table,)))


@pytest.mark.parametrize(
    "row", [(1.5, None, None, None), (0.5, 0.6, 0.7, 0.1), (0.5, 0.4, 0.6, 1.5)], ids=str
)
def test_listings_that_cannot_be_are_noticed(row):
    assert random_studies.faults_of(listed(*row))


def test_quantities_outside_their_limits_are_noticed():
    outside = Quantity(name="q", label="q", value=2.0, low=0.0, high=1.0)
    assert random_studies.faults_of(Publication(quantities=(outside,)))
