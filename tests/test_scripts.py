"""The scripts among the scenarios run, and say what they should."""

import json
import sys
from pathlib import Path

import processes
import pytest

SCENARIOS = Path(__file__).parent.parent / "scenarios"


@pytest.fixture(scope="module")
def game():
    """The game of co-utility, played by a few people."""
    script = [
        sys.executable,
        SCENARIOS / "co_utility.py",
        "--people",
        "16",
        "--runs",
        "2",
        "--json",
    ]
    code, out, err = processes.start(script).finish()
    assert code == 0, err
    return json.loads(out)


def replies(game, **wanted):
    rows = [r for r in game["replies"] if all(r[key] == value for key, value in wanted.items())]
    return {row["best_reply"] for row in rows}


def test_without_interest_one_declines(game):
    assert replies(game, interest=0.0) == {"refuse"}


def test_without_concern_one_follows_and_deviating_never_pays(game):
    assert replies(game, interest=1.0, concern=0.0, data="for participants") == {"follow"}
    assert "deviate" not in {row["best_reply"] for row in game["replies"]}


def test_collaborating_is_as_accurate_as_a_collector_and_exposes_less(game):
    ways = game["measured"]
    assert ways["collaborating"]["accuracy"] == ways["trusted collector"]["accuracy"]
    assert ways["collaborating"]["exposure"] < ways["trusted collector"]["exposure"]
    assert ways["collaborating"]["accuracy"] > ways["masking alone"]["accuracy"]


def test_following_is_the_best_reply_exactly_below_the_threshold(game):
    for row in game["replies"]:
        limit = game["concern_per_interest"][row["data"]]
        if row["interest"] and row["concern"]:
            follows = row["best_reply"] == "follow"
            assert follows == (row["concern"] / row["interest"] < limit), row
