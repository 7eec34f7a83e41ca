"""Asking a result folder how many meet a condition, and for more than it publishes."""

import hashlib
import math
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np

from mpc_rr.errors import InputError, listing, quoted
from mpc_rr.estimation.condition_language import in_words, parse_condition
from mpc_rr.estimation.conditions import Cells, Condition, Truths
from mpc_rr.estimation.designs import Design, Fitted
from mpc_rr.estimation.estimates import Asked, Estimates, QueryAnswer, checked_cells
from mpc_rr.estimation.matrix import KeepOrUniform
from mpc_rr.estimation.views import FittedViews, ViewDesign
from mpc_rr.publication.answers import Answer, from_counts, from_reports, from_shares
from mpc_rr.publication.parts import (
    LEVEL,
    SHEET_NAME,
    ClusterDesign,
    Publication,
    Table,
    ViewsDesign,
)
from mpc_rr.publication.reports import view_reports
from mpc_rr.results.folder import ResultFolder, read_folder
from mpc_rr.results.released import ask_groups, ask_masked
from mpc_rr.results.verification import replay
from mpc_rr.schema import Schema
from mpc_rr.study.records import read_columns, read_csv

GROUPS, MASKED = "groups.csv", "masked.csv"


def ask(path: str | Path, condition: str, level: float = LEVEL) -> Answer:
    """How many meet a condition (``docs/query.md``), from whatever a result folder publishes.

    `InputError` if the condition is none, or cannot be answered from this folder.
    """
    if not 0 < level < 1:
        raise InputError(f"a confidence level lies between 0 and 1, not {level}")
    return _Asking(_finished(Path(path)), level).answer(condition)


class _Asking:
    """A folder that is asked, and what has been worked out of it."""

    def __init__(self, folder: ResultFolder, level: float) -> None:
        self.folder, self.level = folder, level
        self.schema = folder.definition.schema
        self.published = folder.file.publication
        if folder.version == 1 and self.published.randomization is None:
            self.published = replay(folder).publication

    def answer(self, text: str) -> Answer:
        condition = parse_condition(text, self.schema)
        names = {sheet.name for sheet in self.published.sheets}
        if names & {GROUPS, MASKED}:
            return self._of_records(condition)
        numeric = [a for a in condition.attributes if self.schema.attributes[a].numeric]
        cells = None if numeric else checked_cells(condition, self.schema.sizes)
        found = None if cells is None else self._of_tables(condition, cells)
        if found is None:
            raise InputError(self._refusal(condition if cells is None else cells, names))
        return found

    def _of_tables(self, condition: Condition, cells: Cells) -> Answer | None:
        words, tables = in_words(condition, self.schema), self.published.tables
        people = self.published.participation
        n = None if people is None else people.counted
        if self.folder.file.protocol.name == "exact_pairs" and tables and n:
            return from_counts(words, tables, cells, self.schema, n, self.level)
        design = self.published.randomization
        if design is None:
            return from_shares(
                words, tables, cells, self.schema, n, self.level, self._limits_of_ending
            )
        estimates = estimates_of(self.folder, design)

        def limits(_table: Table, _wanted: Truths) -> QueryAnswer:
            return estimates.query(condition, self.level)

        found = from_shares(words, tables, cells, self.schema, estimates.n, self.level, limits)
        if found is not None:
            return found
        asked = estimates.query(condition, self.level)
        return from_reports(words, asked, estimates.n, len(cells.attributes), self.level)

    def _limits_of_ending(self, table: Table, wanted: Truths) -> QueryAnswer | None:
        """From what the table was made of, which follows from the transcript."""
        attributes = tuple(self.schema.names.index(axis.attribute) for axis in table.axes)
        made_of = replay(self.folder).ending.estimate_of(attributes)
        return None if made_of is None else Asked.of(*made_of, wanted).answer(self.level)

    def _of_records(self, condition: Condition) -> Answer:
        words = in_words(condition, self.schema)
        sheets = {sheet.name: self._text(sheet.name) for sheet in self.published.sheets}
        try:
            if MASKED in sheets:
                return ask_masked(sheets, self.schema, condition, words, self.level)
            kind = self.published.quantity("release")
            told = "" if kind is None else str(kind.value)
            return ask_groups(sheets, told, self.schema, condition, words, self.level)
        except (KeyError, IndexError, ValueError) as error:
            raise InputError(f"{self.folder.path} is damaged: {error}") from None

    def _text(self, name: str) -> str:
        found = next(sheet for sheet in self.published.sheets if sheet.name == name)
        return found.text or checked_text(self.folder, self.published, name)

    def _refusal(self, asked: Cells | Condition, sheets: set[str]) -> str:
        """Why a folder cannot answer, and what it can."""
        names = listing(quoted(self.schema.names[a]) for a in asked.attributes)
        head = f"this cannot be told from {self.folder.path}"
        sizes = {len(table.axes) for table in self.published.tables}
        if sizes:
            return (
                f"{head}: no published table holds {names} together; ask of at most "
                f"{max(sizes)} attributes at once"
            )
        where = min(sheets) if sheets else "result.json"
        return f"{head}: its protocol published no table of {names}; what it found is in {where}"


# ── Randomized records ─────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Askable:
    """A result folder with randomized records, and what can be estimated from them."""

    folder: ResultFolder
    estimates: Estimates

    @property
    def schema(self) -> Schema:
        """What was asked."""
        return self.folder.definition.schema


def _finished(path: Path) -> ResultFolder:
    folder = read_folder(path)
    if not folder.done:
        raise InputError(f"the study in {path} did not end well; there is nothing to estimate")
    return folder


def read_askable(path: Path) -> Askable:
    """The result folder of a study with randomized records; `InputError` if it is none."""
    folder = _finished(path)
    design = folder.file.publication.randomization
    if design is None:
        sheets = [sheet.name for sheet in folder.file.publication.sheets] or ["result.json"]
        raise InputError(
            f"the study in {path} (protocol {folder.file.protocol.name}) published no randomized "
            f"records from which this could be estimated; what it found is in {path / sheets[0]}"
        )
    return Askable(folder, estimates_of(folder, design))


def estimates_of(folder: ResultFolder, design: ClusterDesign | ViewsDesign) -> Estimates:
    """What can be estimated from the reports in a folder."""
    try:
        return Estimates(folder.definition.schema, _fitted(folder, design))
    except (KeyError, TypeError, AttributeError, ValueError, InputError) as error:
        raise InputError(f"{folder.path} is damaged: {error}") from None


def _fitted(folder: ResultFolder, design: ClusterDesign | ViewsDesign) -> Fitted | FittedViews:
    schema = folder.definition.schema
    checked_text(folder, folder.file.publication, design.sheet)
    reports = folder.path / design.sheet
    if isinstance(design, ViewsDesign):
        views = [tuple(schema.names.index(name) for name in view) for view in design.views]
        reported = ViewDesign(schema.sizes, views, design.epsilon)
        raw = [bytes.fromhex(report) for report in read_columns(reports, ["report"])["report"]]
        return FittedViews(reported, view_reports(raw, reported))
    labels = read_csv(reports, _as_labels(schema))
    return Fitted(_design(design, schema), np.array(labels))


def checked_text(folder: ResultFolder, published: Publication, name: str) -> str:
    """The text of a sheet, which must be the one that was published."""
    text = folder.text(name) if SHEET_NAME.fullmatch(name) else ""
    known = {sheet.name: sheet.sha256 for sheet in published.sheets}
    digest = hashlib.sha256(text.encode()).hexdigest()
    if not text or (folder.version > 1 and known.get(name) != digest):
        raise InputError(f"{name!r} is not a sheet that was published")
    return text


def _design(design: ClusterDesign, schema: Schema) -> Design:
    clusters = [tuple(schema.names.index(name) for name in c.attributes) for c in design.clusters]
    matrices = [
        KeepOrUniform(math.prod(schema.sizes[a] for a in cluster), c.keep)
        for cluster, c in zip(clusters, design.clusters, strict=True)
    ]
    return Design(schema.sizes, tuple(clusters), tuple(matrices))


def _as_labels(schema: Schema) -> Schema:
    """The same schema for values that are categories already, numbers included."""
    plain = (msgspec.structs.replace(attribute, bins=None) for attribute in schema.attributes)
    return Schema(tuple(plain))
