"""Randomizes a file that a curator holds, column by column (001, centralized mode; PRAM).

1. From the schema and the wishes follow the ways (`mpc_rr.curator.plan`).
2. Each column of categories is drawn by its matrix, each number gets its noise; columns that have
   noise together get it together.
3. Rows are shuffled, so that their order tells nothing, and written with a codebook.
4. What was kept and what was lost is worked out beside the truth: for the curator alone.
"""

import csv
import io
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np

from mpc_rr.curator.codebook import (
    Codebook,
    codebook_of,
    codebook_place,
    digest_of,
    write_codebook,
)
from mpc_rr.curator.comparison import Comparison, compared
from mpc_rr.curator.plan import Codes, Wishes, numbers_of, ways_of, wishes_of
from mpc_rr.curator.ways import (
    AnyWay,
    Correlated,
    Laplace,
    Normal,
    OfCategories,
)
from mpc_rr.errors import DataError, InputError, ResultsError
from mpc_rr.publication.sheets import csv_text, from_cell
from mpc_rr.randomness import Randomness, SeededRandomness, SystemRandomness
from mpc_rr.schema import Schema
from mpc_rr.study.columns import column_names
from mpc_rr.study.frames import records_from_frame, schema_from_frame
from mpc_rr.study.layout import read_text
from mpc_rr.study.records import read_columns


@dataclass(frozen=True)
class Randomized:
    """A file that may be passed on, its codebook, and what its curator should know of it."""

    codebook: Codebook
    text: str
    """The randomized file."""
    comparison: Comparison
    """What was kept and lost, beside the truth. Not to be passed on: no ε covers it."""

    def __repr__(self) -> str:
        return f"Randomized({self.codebook.rows:,} rows of {len(self.codebook.columns)} columns)"

    def save(self, out: str | Path, codebook: str | Path | None = None) -> Path:
        """Write the file and its codebook, and say where that is; neither may be there."""
        place = Path(out)
        beside = codebook_place(place) if codebook is None else Path(codebook)
        check_places(place, beside)
        write_codebook(self.codebook, beside)
        try:
            place.write_bytes(self.text.encode())
        except OSError as error:
            beside.unlink()
            raise ResultsError(f"cannot write {place}: {error.strerror}") from None
        return beside


def check_places(*places: Path) -> None:
    """`InputError` if a file is there already."""
    for place in places:
        if place.exists():
            raise InputError(f"{place} exists already; name another file")
    if len(set(places)) < len(places):
        raise InputError(f"{places[0]} cannot be both the file and its codebook")


def randomize_frame(
    frame: Any,
    *,
    schema: Schema | None = None,
    keep: float | None = None,
    beta: float | None = None,
    epsilon: float | None = None,
    columns: dict[str, dict[str, Any]] | None = None,
    correlated: list[dict[str, Any]] | None = None,
    seed: int | None = None,
) -> Randomized:
    """Randomize a data frame (or a dict of columns), as `mpc-rr randomize` does a file.

    Without a ``schema`` the categories are those of the records, which tells which there are.
    ``keep`` (λ), ``beta`` or ``epsilon`` (of all together) is for the columns of categories that
    have no way of their own in ``columns``. A ``seed`` is for tries only.
    """
    given = schema is not None
    schema = schema_from_frame(frame) if schema is None else schema
    wishes = wishes_of(columns, correlated=correlated, keep=keep, beta=beta, epsilon=epsilon)
    names = schema.names
    return randomize_records(
        records_from_frame(frame, schema),
        schema,
        wishes,
        categories="given" if given else "the records",
        left_out=tuple(name for name in column_names(frame) if name not in names),
        seed=seed,
    )


def randomize_records(
    records: Codes,
    schema: Schema,
    wishes: Wishes,
    *,
    categories: Literal["given", "the records"] = "given",
    left_out: tuple[str, ...] = (),
    beside: Path | None = None,
    keep_order: bool = False,
    seed: int | None = None,
) -> Randomized:
    """The same for records as category numbers."""
    if len(records) < 2:
        raise DataError("there must be at least two records")
    rng: Randomness = SystemRandomness() if seed is None else SeededRandomness(seed)
    ways, groups = ways_of(schema, wishes, records, beside)
    codes = _drawn(records, schema, ways, groups, rng)
    book = codebook_of(
        schema, ways, groups, left_out=left_out, categories=categories,
        shuffled=not keep_order, simulated=seed is not None,
    )  # fmt: skip
    comparison = compared(book, records, codes)
    order = np.arange(len(codes)) if keep_order else np.argsort(rng.words((len(codes),)))
    text = _file(codes[order], schema)
    book = msgspec.structs.replace(book, rows=len(codes), sha256=digest_of(text))
    return Randomized(book, text, comparison)


def _drawn(
    records: Codes,
    schema: Schema,
    ways: tuple[AnyWay, ...],
    groups: tuple[Correlated, ...],
    rng: Randomness,
) -> Codes:
    """Categories as their numbers, numbers in steps above the lowest (and below it)."""
    drawn = np.array(records, dtype=np.int64)
    for place, way in enumerate(ways):
        if isinstance(way, OfCategories):
            drawn[:, place] = way.matrix.randomize(records[:, place], rng)
        elif isinstance(way, Laplace) or (isinstance(way, Normal) and way.group is None):
            drawn[:, place] += way.draw(len(records), rng)
    for group in groups:
        noise = group.draw(len(records), rng)
        noisy = numbers_of(schema, group.columns, records) + noise
        for name, column in zip(group.columns, noisy.T, strict=True):
            attribute = schema.attribute(name)
            steps = np.rint((column - attribute.number(0)) / (attribute.step or 1.0))
            drawn[:, schema.names.index(name)] = steps.astype(np.int64)
    return drawn


def _file(codes: Codes, schema: Schema) -> str:
    columns = [
        [f"{attribute.number(code):.15g}" for code in column.tolist()]
        if attribute.numeric
        else [attribute.categories[code] for code in column.tolist()]
        for attribute, column in zip(schema.attributes, codes.T, strict=True)
    ]
    return csv_text([list(schema.names), *map(list, zip(*columns, strict=True))])


def header_of(file: Path) -> list[str]:
    """The names of all columns of a CSV file."""
    first = next(csv.reader(io.StringIO(read_text(file), newline="")), [])
    return [from_cell(name.strip()) for name in first]


def frame_of(file: Path) -> dict[str, list[str | None]]:
    """All columns of a CSV file, blank cells as None."""
    columns = read_columns(file, header_of(file))
    return {name: [value or None for value in values] for name, values in columns.items()}
