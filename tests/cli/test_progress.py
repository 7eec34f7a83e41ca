"""Long work says how far it is, also where there is no terminal."""

import re
import threading

from mpc_rr.cli import console
from mpc_rr.cli.console import Pace, progress_bar


def told_until(capsys, happened):
    """Collect what is said on standard error until it says this."""
    said = ""
    waiting = threading.Event()
    while happened not in said and not waiting.wait(0.001):
        said += capsys.readouterr().err
    return said


def test_long_work_tells_now_and_then_how_far_it_is_and_how_long_it_takes(capsys, monkeypatch):
    """Also while nothing new is done."""
    monkeypatch.setattr(console, "LINE_EVERY_S", 0.001)
    with progress_bar("Trying out designs") as bar:
        first = told_until(capsys, "so far")
        assert re.match(r"mpc-rr: Trying out designs: \d+ s so far\n", first)
        bar(2, 10)
        said = told_until(capsys, "more")
        assert re.search(r": 2 of 10, \d+ s so far; at this rate these take \d+ s more\n", said)


def test_the_time_that_is_left_follows_from_the_time_that_has_passed():
    """A second part, counted anew, has a rate of its own."""
    began = 1000.0
    pace = Pace(began)
    pace.told(2, 10, began + 20)
    assert pace.words(began + 25) == "2 of 10, 25 s so far; at this rate these take 75 s more"
    pace.told(10, 10, began + 100)
    assert pace.words(began + 101) == "10 of 10, 101 s so far"
    pace.told(0, 4, began + 110)
    pace.told(1, 4, began + 113)
    assert pace.words(began + 113) == "1 of 4, 113 s so far; at this rate these take 9 s more"
    assert pace.words(began + 213).endswith("take 0 s more")


def test_short_work_tells_nothing(capsys):
    with progress_bar("Trying out designs") as bar:
        bar(1, 1)
    assert capsys.readouterr().err == ""
