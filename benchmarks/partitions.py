"""MDAV and Mondrian: time on 30,000 records, and information loss beside anonypyx in one run.

Four correlated normal attributes, and where --data has adult.csv: age, education-num,
hours-per-week and capital-gain. anonypyx (extra ``bench``) keeps all distances between records in
memory (7 GB for 30,000), so it is compared on the first 4,000.

MDAV looks n²/k times at a record; at n = 30,000 and k = 5 that is 180 million looks for each of
three distances, made in whole columns by numpy. It is bounded by cutting at medians beyond 40,000
records, so that the time grows with n from there on. Nothing is random but the normal attributes,
which are the same in every session.
"""

import csv
import time

import numpy as np

from benchmarks.harness.rows import Row, rounded
from mpc_rr.anonymization.partition import mdav, mondrian
from mpc_rr.anonymization.risk import information_loss
from mpc_rr.anonymization.table import Microdata
from mpc_rr.schema import Attribute

COLUMNS = ("age", "education-num", "hours-per-week", "capital-gain")
K = 5


def numbers(data, n):
    if data is None:
        rng = np.random.default_rng(1)
        drawn = np.round(100 * rng.normal(size=(n, 4)) @ rng.normal(size=(4, 4))).astype(np.int64)
        return drawn - drawn.min(axis=0)
    with data.open(encoding="utf-8", newline="") as file:
        rows = [[int(row[name]) for name in COLUMNS] for row in csv.DictReader(file)]
    return np.array(rows[:n], dtype=np.int64)


def table_of(codes):
    attributes = tuple(
        Attribute(name, "numeric", (), lowest=0.0, highest=float(codes.max() + 1), step=1.0)
        for name in COLUMNS
    )
    return Microdata(attributes, codes)


def by_anonypyx(table, k):
    import pandas as pd  # noqa: PLC0415
    from anonypyx.microaggregation import MDAVGeneric  # noqa: PLC0415

    frame = pd.DataFrame(table.codes.astype(float), columns=list(COLUMNS))
    return [np.asarray(group) for group in MDAVGeneric(frame, list(COLUMNS)).partition(k)]


def measure(run):
    for name, data in sources(run):
        table = table_of(numbers(data, 30_000))
        for method, make in (("MDAV", mdav), ("Mondrian", mondrian)):
            yield from rows_of(setting_of(name, method, table), *made(make, table))
        small = table_of(numbers(data, 4_000))
        peer = peer_of(run, small)
        if peer is not None:
            yield from rows_of(setting_of(name, "anonypyx MDAV", small), *peer, own=False)
        for method, make in (("MDAV", mdav), ("Mondrian", mondrian)):
            yield from rows_of(setting_of(name, method, small), *made(make, small), peer)


def sources(run):
    """What it is measured on."""
    yield "four normal attributes", None
    if run.options.data is None:
        run.tell("Adult is left out: no --data")
    else:
        yield "Adult", run.data("adult.csv")


def setting_of(name, method, table):
    return {"data": name, "method": method, "records": len(table), "k": K}


def made(make, table):
    """Seconds, and the information that is lost."""
    started = time.perf_counter()
    groups = make(table, K)
    seconds = time.perf_counter() - started
    assert min(len(rows) for rows in groups) >= K
    return seconds, information_loss(table, groups).squared_error


def peer_of(run, table):
    try:
        return made(by_anonypyx, table)
    except ImportError:
        run.tell("anonypyx is left out: pip install -e '.[bench]'")
        return None


def rows_of(setting, seconds, loss, peer=None, own=True):
    """Beside anonypyx on the same records, where it was measured."""
    better = {"better": "lower"} if own else {}
    beside = [{}, {}]
    if peer is not None:
        beside = [
            {"beside": "anonypyx MDAV", "ratio": rounded(mine / theirs)}
            for mine, theirs in zip((seconds, loss), peer, strict=True)
        ]
    yield Row(what="time of a partition", setting=setting, value=rounded(seconds), unit="s",
              **beside[0], **better)  # fmt: skip
    yield Row(what="squared error of a partition", setting=setting, value=rounded(loss),
              error=0.0, runs=1, **beside[1], **better)  # fmt: skip
