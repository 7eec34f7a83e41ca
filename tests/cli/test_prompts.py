"""The prompt at which a respondent decides on a mask, where Enter would publish her value."""

import io

import numpy as np
import pytest

from mpc_rr.anonymization.deciding import Asked
from mpc_rr.cli.asking import asked_at_terminal
from mpc_rr.errors import Declined
from mpc_rr.schema import Attribute

DEBTS = Attribute("debts", "numeric", (), lowest=0.0, highest=90.0, step=1.0)


def asked(recommended):
    return Asked(DEBTS, tuple(np.arange(7, 87, 10).tolist()), 37, recommended, seconds=40.0)


async def test_enter_alone_publishes_nothing_as_it_is(capsys):
    assert await asked_at_terminal(io.StringIO("\nnone\n"))(asked("none")) == "none"
    said = " ".join(capsys.readouterr().err.split())
    assert "In 40 s you withdraw." in said
    assert "No mask is recommended. To publish it as it is, type none." in said
    assert "Mask for debts, or ? MASK" in said


async def test_enter_alone_takes_a_mask_that_is_recommended(capsys):
    assert await asked_at_terminal(io.StringIO("\n"))(asked("noise:5")) == "noise:5"
    assert await asked_at_terminal(io.StringIO(""))(asked("noise:5")) == "noise:5"
    said = " ".join(capsys.readouterr().err.split())
    assert "In 40 s the recommended mask is used." in said
    assert "Mask for debts [noise:5], or ? MASK" in said


async def test_where_nobody_can_be_asked_nothing_is_published_as_it_is():
    with pytest.raises(Declined, match="nothing is published under your name"):
        await asked_at_terminal(io.StringIO(""))(asked("none"))
