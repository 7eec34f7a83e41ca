"""Bayesian networks in the BIF format."""

import numpy as np
import pytest
from networks_data import SURVEY

from mpc_rr.errors import DataError
from mpc_rr.randomness import SeededRandomness
from mpc_rr.study.bif import read_bif


@pytest.fixture
def file(tmp_path):
    def write(text):
        path = tmp_path / "network.bif"
        path.write_text(text)
        return path

    return write


def test_samples_have_the_networks_shares(file):
    """Standard errors are below .004 for 20,000 records; five of them are allowed."""
    network = read_bif(file(SURVEY))
    records = network.sample(20_000, SeededRandomness(1).uniform)
    assert network.schema.names == ("A", "S", "E")
    assert np.bincount(records[:, 0]) / 20_000 == pytest.approx([0.3, 0.5, 0.2], abs=0.02)
    old_women = (records[:, 0] == 2) & (records[:, 1] == 1)
    assert (records[old_women, 2] == 0).mean() == pytest.approx(0.9, abs=0.04)


def test_children_may_come_before_their_parents(file):
    lines = SURVEY.split("probability")
    network = read_bif(
        file(lines[0] + "probability" + lines[3] + "probability".join(["", *lines[1:3]]))
    )
    assert network.order[-1] == 2


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (("network", "nothing"), None),
        (("table 0.6, 0.4", "table 0.6, 0.5"), "'S' do not sum to 1"),
        (("table 0.6, 0.4", "table 0.6"), "'S' has 2 values but 1 probabilities"),
        (("table 0.6, 0.4", "table 0.6, x"), "'S' is not a number"),
        (("(old, F) 0.9, 0.1;", ""), "'E' are not complete"),
        (("(old, F)", "(old, X)"), "'S' has no value 'X'"),
        (("(old, F)", "(old)"), "names 1 values for 2 parents"),
        (("E | A, S", "E | A, Q"), "depends on 'Q', which is no variable"),
        (("probability ( S )", "probability ( Q )"), "'Q', which is unknown"),
        (("probability ( S ) { table 0.6, 0.4; }", ""), "no probabilities of 'S'"),
        (("probability ( S ) { table 0.6, 0.4; }",
          "probability ( S | E ) { (high) 0.5, 0.5; (uni) 0.5, 0.5; }"), "depends on itself"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_file_is_said(file, change, says):
    path = file(SURVEY.replace(*change))
    if says is None:
        assert read_bif(path)
        return
    with pytest.raises(DataError, match=says):
        read_bif(path)


def test_a_file_without_variables_is_no_network(file):
    with pytest.raises(DataError, match="fewer than two discrete variables"):
        read_bif(file("hello"))
    with pytest.raises(DataError, match="cannot read"):
        read_bif(file("x").with_name("missing.bif"))
