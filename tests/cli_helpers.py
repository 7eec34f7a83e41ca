"""What the tests of the command line share: a small study, and commands run as processes."""

import contextlib
import re
import sys

import processes
from helpers import crosstabs

STUDY = """
title = "Small"
study = "small"
[schema.sport]
categories = ["no", "yes"]
[schema.mood]
type = "ordinal"
categories = ["low", "middle", "high"]
[protocol]
name = "exact_pairs"
[parties]
count = 5
[deadlines]
lobby_s = 600
round_s = 600
"""
RANDOMIZED = STUDY.replace('"exact_pairs"', '"rr_independent"\nkeep = 0.6')
PEOPLE = [("no", "low"), ("yes", "high"), ("yes", "middle"), ("no", "low"), ("yes", "high")]


def patient(study):
    """A study file with deadlines for the slowest machine; they cost nothing if everybody comes."""
    return re.sub("^(lobby_s|round_s) = .*$", r"\1 = 600", study, flags=re.MULTILINE)


def start(*arguments, **options):
    return processes.start([sys.executable, "-m", "mpc_rr", *map(str, arguments)], **options)


def coordinate(*arguments, **options):
    """Start a coordinator, and wait until it is there for the parties: none has to ask twice."""
    coordinator = start("coordinate", *arguments, **options)
    coordinator.until_it_says("coordinator fingerprint")
    return coordinator


def mpc_rr(*arguments, **options):
    return start(*arguments, **options).finish()


def until_all_listen(folder, process, connections):
    """Wait until all connections of a run listen at its embedded broker, whose files are here.

    Each has two subscriptions; of "coordinator/#" NATS makes two.
    """

    def happened():
        with contextlib.suppress(FileNotFoundError):  # what the broker removes while one looks
            return len([*folder.glob("*/jetstream/**/$MQTT_msgs/obs/*")]) >= 2 * connections
        return False

    process.until(happened, "all listen")


def expected_counts():
    codes = [(("no", "yes").index(s), ("low", "middle", "high").index(m)) for s, m in PEOPLE]
    return crosstabs(codes, (2, 3))[0].reshape(-1).tolist()


def published_counts(document):
    """The cells of the first table in a result.json."""
    return document["publication"]["tables"][0]["values"]


def published_number(document, name):
    """A quantity in a result.json."""
    (found,) = [q["value"] for q in document["publication"]["quantities"] if q["name"] == name]
    return found


def assert_one_line(error, *parts):
    assert error.count("\n") == 1, error
    assert error.startswith("mpc-rr: ")
    for part in parts:
        assert part in error
