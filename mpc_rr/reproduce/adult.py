"""The Adult data set: read from a CSV file, or downloaded and checked.

Adult is an extract of the 1994 census of the United States, given to the UCI Machine Learning
Repository by Barry Becker and Ronny Kohavi (doi 10.24432/C5XW20, licensed CC BY 4.0). The project
ships no copy.
"""

import csv
import hashlib
import http.client
import io
import os
import tempfile
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mpc_rr.errors import DataError, one_line
from mpc_rr.estimation.matrix import Codes
from mpc_rr.study.records import read_columns

URL = "https://archive.ics.uci.edu/ml/machine-learning-databases/adult/adult.data"
SHA256 = "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d"
SIZE = 3_974_305
COLUMNS = (
    "age", "workclass", "fnlwgt", "education", "education-num", "marital-status", "occupation",
    "relationship", "race", "sex", "capital-gain", "capital-loss", "hours-per-week",
    "native-country", "income",
)  # fmt: skip

MDRR_ATTRIBUTES = (
    "workclass", "education", "marital-status", "occupation", "relationship", "race", "sex",
    "income",
)  # fmt: skip
"""The eight attributes of paper 000, Section 6.1."""
CONFIDENTIALITY_ATTRIBUTES = (*MDRR_ATTRIBUTES[:-1], "native-country", "income")
"""The nine attributes of paper 003, Section 6.1."""


@dataclass(frozen=True)
class Records:
    """Records as category numbers, with the attributes' names and sizes."""

    names: tuple[str, ...]
    sizes: tuple[int, ...]
    codes: Codes


def read_adult(path: Path, names: Sequence[str]) -> Records:
    """Some columns of a CSV file; the categories are the different values, sorted."""
    columns = read_columns(path, names)
    codes, sizes = [], []
    for name in names:
        categories, numbers = np.unique(np.array(columns[name]), return_inverse=True)
        if len(categories) < 2:
            raise DataError(f"{path}: all values of {name!r} are equal; there is nothing to ask")
        codes.append(numbers)
        sizes.append(len(categories))
    return Records(tuple(names), tuple(sizes), np.stack(codes, axis=1).astype(np.int64))


def download_adult(
    out: Path,
    progress: Callable[[int, int], None],
    *,
    url: str = URL,
    sha256: str = SHA256,
    size: int = SIZE,
) -> None:
    """Download Adult, check that it is what it should be, and write it as CSV with a header."""
    if out.exists():
        raise DataError(f"{out} exists already; name another file with --out")
    raw = _fetch(url, progress, size)
    found = hashlib.sha256(raw).hexdigest()
    if found != sha256:
        raise DataError(
            f"what {url} sent is not the Adult data set (SHA-256 {found[:16]}…, expected "
            f"{sha256[:16]}…); nothing was written"
        )
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    rows = csv.reader(io.StringIO(raw.decode("ascii")), skipinitialspace=True)
    writer.writerows(row for row in rows if row)
    _write(out, text.getvalue())


def _fetch(url: str, progress: Callable[[int, int], None], size: int) -> bytes:
    received = bytearray()
    try:
        with urllib.request.urlopen(url, timeout=30) as answer:  # noqa: S310  (a constant, https)
            while len(received) <= size and (piece := answer.read(65_536)):
                received += piece
                progress(len(received), size)
    except (urllib.error.URLError, http.client.HTTPException, OSError) as error:
        known = getattr(error, "reason", None) or getattr(error, "strerror", None)
        reason = one_line(str(known or error)) or type(error).__name__
        if isinstance(error, urllib.error.HTTPError):
            error.close()  # it is an answer, too
        raise DataError(
            f"cannot download {url}: {reason}; get the file elsewhere; `mpc-rr reproduce` takes "
            "it with --data"
        ) from None
    return bytes(received)


def _write(out: Path, text: str) -> None:
    try:
        out.absolute().parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f".{out.name}-", dir=out.absolute().parent)
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text)
            os.replace(name, out)  # noqa: PTH105
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise DataError(f"cannot write {out}: {error.strerror}") from None
