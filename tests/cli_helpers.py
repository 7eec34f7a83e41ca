"""What the tests of the command line share: a small study, and commands run as processes."""

import subprocess
import sys

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
lobby_s = 20
round_s = 10
"""
RANDOMIZED = STUDY.replace('"exact_pairs"', '"rr_independent"\nkeep = 0.6')
PEOPLE = [("no", "low"), ("yes", "high"), ("yes", "middle"), ("no", "low"), ("yes", "high")]


def start(*arguments, **options):
    return subprocess.Popen(
        [sys.executable, "-m", "mpc_rr", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


def finish(process, timeout_s=60):
    out, err = process.communicate(timeout=timeout_s)
    return process.returncode, out, err


def mpc_rr(*arguments, **options):
    return finish(start(*arguments, **options))


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
