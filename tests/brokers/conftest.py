import pytest

from mpc_rr.study.definition import Deadlines


@pytest.fixture
def asked_again_soon(monkeypatch):
    """Whoever waits looks again after half a second, however patient the study is."""
    monkeypatch.setattr(Deadlines, "ask_again_s", 0.5)
