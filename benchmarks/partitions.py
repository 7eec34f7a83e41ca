"""MDAV and Mondrian: time on 30,000 records, and information loss beside anonypyx in one run.

    python benchmarks/partitions.py [--data adult.csv] [--out results/partitions.json]

Without ``--data``, four correlated normal attributes. With Adult: age, education-num,
hours-per-week and capital-gain. anonypyx (extra ``[bench]``) keeps all distances between records in
memory (7 GB for 30,000), so it is compared on the first 4,000.

MDAV looks n²/k times at a record; at n = 30,000 and k = 5 that is 180 million looks for each of
three distances, made in whole columns by numpy. It is bounded by cutting at medians beyond 40,000
records, so that the time grows with n from there on.
"""

import argparse
import csv
import json
import time
from pathlib import Path

import numpy as np

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


def measured(name, make, table):
    started = time.perf_counter()
    groups = make(table, K)
    seconds = time.perf_counter() - started
    assert min(len(rows) for rows in groups) >= K
    loss = information_loss(table, groups)
    return {
        "method": name,
        "records": len(table),
        "k": K,
        "seconds": round(seconds, 2),
        "squared_error": round(loss.squared_error, 6),
    }


def by_anonypyx(table, k):
    import pandas as pd  # noqa: PLC0415
    from anonypyx.microaggregation import MDAVGeneric  # noqa: PLC0415

    frame = pd.DataFrame(table.codes.astype(float), columns=list(COLUMNS))
    return [np.asarray(group) for group in MDAVGeneric(frame, list(COLUMNS)).partition(k)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    large, small = (table_of(numbers(options.data, n)) for n in (30_000, 4_000))
    rows = [measured("MDAV", mdav, large), measured("Mondrian", mondrian, large)]
    rows += [measured("MDAV", mdav, small), measured("Mondrian", mondrian, small)]
    try:
        rows.append(measured("anonypyx MDAV", by_anonypyx, small))
    except ImportError:
        print("anonypyx is not installed; pip install 'mpc-rr[bench]'")
    data = "four normal attributes" if options.data is None else "Adult"
    rows = [{"data": data, **row} for row in rows]
    for row in rows:
        print(json.dumps(row))
    if options.out is not None:
        kept = json.loads(options.out.read_text()) if options.out.exists() else []
        rows = [row for row in kept if row["data"] != data] + rows
        options.out.write_text(json.dumps(rows, indent=2) + "\n")


if __name__ == "__main__":
    main()
