"""Asking a result folder how many meet a condition, and for more than it publishes."""

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import msgspec
import numpy as np

from mpc_rr.errors import InputError, listing, quoted
from mpc_rr.estimation.condition_language import in_words, parse_condition
from mpc_rr.estimation.conditions import Cells, Condition
from mpc_rr.estimation.designs import Design, Fitted
from mpc_rr.estimation.estimates import (
    Estimates,
    checked_cells,
)
from mpc_rr.estimation.expressions import Expression
from mpc_rr.estimation.matrix import (
    Array,
    Codes,
    Dense,
    DistanceWeighted,
    KeepOrUniform,
    RRMatrix,
    Uniform,
)
from mpc_rr.estimation.uncertainty import Uncertainty
from mpc_rr.estimation.views import FittedViews, ViewDesign
from mpc_rr.protocols.collection import ONE_POPULATION
from mpc_rr.publication.answers import Answer
from mpc_rr.publication.computing import Computed
from mpc_rr.publication.crosstabs import DEPENDENCE
from mpc_rr.publication.ending import Ending
from mpc_rr.publication.parts import (
    LEVEL,
    SHEET_NAME,
    Cluster,
    ClusterDesign,
    Publication,
    ViewsDesign,
)
from mpc_rr.publication.reports import view_reports
from mpc_rr.publication.told import Told, tails_of
from mpc_rr.results.folder import ResultFolder, read_folder
from mpc_rr.results.networks import invented
from mpc_rr.results.recoded import Computable, of_derived
from mpc_rr.results.released import ask_groups, ask_masked
from mpc_rr.results.verification import replay
from mpc_rr.schema import Schema
from mpc_rr.study.derived import Whole
from mpc_rr.study.records import read_columns, read_csv

GROUPS, MASKED = "groups.csv", "masked.csv"


def ask(path: str | Path, condition: str, level: float = LEVEL) -> Answer:
    """How many meet a condition (``docs/query.md``), from whatever a result folder publishes.

    `InputError` if the condition is none, or cannot be answered from this folder.
    """
    if not 0 < level < 1:
        raise InputError(f"a confidence level lies between 0 and 1, not {level}")
    return _Asking(_finished(Path(path)), level).answer(condition)


def compute(
    path: str | Path,
    expression: Expression | str,
    *,
    by: str | None = None,
    where: str | None = None,
    level: float = LEVEL,
    weights: Mapping[str, float] | None = None,
) -> Computed:
    """A statistic of what a result folder publishes (``docs/compute.md``).

    ``weights``: how many people each party stands for, by its name. `InputError` says why something
    cannot be computed from this folder.
    """
    told = read_computable(path, weights)
    return told.compute(expression, by=by, where=where, level=level)


def read_computable(path: str | Path, weights: Mapping[str, float] | None = None) -> Computable:
    """What a result folder tells that can be computed on, once for several statistics."""
    asking = _Asking(_finished(Path(path)), LEVEL)
    return Computable(asking.computable(weights), asking.whole)


def read_weights(path: str | Path, party: str, weight: str) -> dict[str, float]:
    """Weights from a CSV file: in one column the parties' names, in another their weights."""
    place = Path(path)
    columns = read_columns(place, [party, weight])
    found: dict[str, float] = {}
    for row, (name, text) in enumerate(zip(columns[party], columns[weight], strict=True), start=2):
        try:
            found[name] = float(text)
        except ValueError:
            raise InputError(f"{place}, line {row}: {text!r} is not a number") from None
    if len(found) < len(columns[party]):
        twice = max(columns[party], key=columns[party].count)
        raise InputError(f"{place}: party {twice!r} is there twice")
    return found


class _Asking:
    """A folder that is asked, and what has been worked out of it."""

    def __init__(self, folder: ResultFolder, level: float) -> None:
        self.folder, self.level = folder, level
        self.schema = folder.definition.schema
        self.published = folder.file.publication
        if folder.version == 1 and self.published.randomization is None:
            self.published = replay(folder).publication

    def answer(self, text: str) -> Answer:
        whole = self.whole
        condition = parse_condition(text, whole.schema)
        answer = self._answered(whole.of_asked(condition))
        named = whole.named(condition)
        return of_derived(answer, in_words(condition, whole.schema), named) if named else answer

    @property
    def whole(self) -> Whole:
        """What was asked, and what is computed from that."""
        derived = self.folder.definition.derived or {}
        for name, found in derived.items():
            found.check(name, self.schema)
        return Whole(self.schema, derived)

    def _answered(self, condition: Condition) -> Answer:
        names = {sheet.name for sheet in self.published.sheets}
        if names & {GROUPS, MASKED}:
            return self._of_records(condition)
        numeric = [a for a in condition.attributes if self.schema.attributes[a].numeric]
        cells = None if numeric else checked_cells(condition, self.schema.sizes)
        found = None if cells is None else self.told.answer(condition, cells, self.level)
        if found is None:
            raise InputError(self._refusal(condition if cells is None else cells, names))
        return found

    def computable(self, weights: Mapping[str, float] | None) -> Told:
        """What can be computed on, each party with its weight."""
        names = {sheet.name for sheet in self.published.sheets}
        if names & {GROUPS, MASKED}:
            raise InputError(
                f"{self.folder.path} holds released records, which are not the people's: compute "
                f"on {min(names & {GROUPS, MASKED})} itself, or ask conditions with mpc-rr query"
            )
        if weights is None:
            return self.told
        if self.published.randomization is None:
            raise InputError(
                f"{self.folder.path} holds sums, not answers of single parties: they cannot be "
                "weighted"
            )
        sheet = self.published.randomization.sheet
        parties = read_columns(self.folder.path / sheet, ["party"])["party"]
        return replace(self.told, weights=_weights_of(parties, weights))

    @cached_property
    def told(self) -> Told:
        """What the folder's tables tell, and its reports."""
        people, design = self.published.participation, self.published.randomization
        return Told(
            schema=self.schema,
            tables=self.published.tables,
            n=None if people is None else people.counted,
            estimates=None if design is None else estimates_of(self.folder, design),
            estimate_of=self._made_of,
            counts_pairs=self.folder.file.protocol.name == "exact_pairs",
            tails=tails_of(self.published),
            dependences=self.published.listing(DEPENDENCE),
        )

    def _made_of(self, attributes: tuple[int, ...]) -> tuple[Array, Uncertainty] | None:
        """By the ending, for which the transcript is replayed when it is first asked."""
        return self._ending.estimate_of(attributes)

    @cached_property
    def _ending(self) -> Ending:
        return replay(self.folder).ending

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
        numeric = [a for a in asked.attributes if self.schema.attributes[a].numeric]
        if numeric and sheets:
            name = quoted(self.schema.names[numeric[0]])
            return (
                f"{head}: {name} is a number, of which no table was published; what was found of "
                f"it is in {min(sheets)}"
            )
        sizes = {len(table.axes) for table in self.published.tables}
        if sizes:
            return (
                f"{head}: no published table holds {names} together; ask of at most "
                f"{max(sizes)} attributes at once"
            )
        where = min(sheets) if sheets else "result.json"
        return f"{head}: its protocol published no table of {names}; what it found is in {where}"


def _weights_of(parties: Sequence[str], weights: Mapping[str, float]) -> Array:
    """Of each party; `InputError` if one has none."""
    lacking = [party for party in parties if party not in weights]
    if lacking:
        raise InputError(
            f"{len(lacking)} of {len(parties)} parties have no weight, {quoted(lacking[0])} among "
            "them: names must be those in reports.csv"
        )
    found = np.array([weights[party] for party in parties], dtype=np.float64)
    if not (np.isfinite(found).all() and (found > 0).all()):
        wrong = parties[int(np.argmin(np.where(np.isfinite(found), found, -np.inf)))]
        raise InputError(f"party {quoted(wrong)}: a weight is a positive number")
    return found


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
        raise InputError(f"the study in {path} was aborted; there is nothing to estimate")
    return folder


def read_askable(path: Path) -> Askable:
    """The result folder of a study with randomized records; `InputError` if it is none."""
    folder = _finished(path)
    design = folder.file.publication.randomization
    if design is None:
        raise InputError(
            f"the study in {path} (protocol {folder.file.protocol.name}) published no randomized "
            f"records from which this could be estimated; what it found is in {_found_in(folder)}"
        )
    return Askable(folder, estimates_of(folder, design))


def synthetic(path: Path, rows: int, uniform: Uniform) -> tuple[Schema, Codes]:
    """What was asked, and invented people who answer as the respondents did, taken together.

    `InputError` if nothing was published that they could be drawn from.
    """
    folder = _finished(path)
    published, schema = folder.file.publication, folder.definition.schema
    if folder.version > 1 and published.randomization is None:
        people = invented(published, schema, rows, uniform)
        if people is not None:
            return schema, people
    found = read_askable(path)
    return found.schema, found.estimates.synthesize(rows, uniform)


def _found_in(folder: ResultFolder) -> str:
    """Where the tables of a folder are; if it has none, its first sheet."""
    names = [sheet.name for sheet in folder.file.publication.sheets]
    tables = dict.fromkeys(name.partition("/")[0] for name in names if "/" in name)
    return listing(str(folder.path / name) for name in tables or names[:1] or ["result.json"])


def estimates_of(folder: ResultFolder, design: ClusterDesign | ViewsDesign) -> Estimates:
    """What can be estimated from the reports in a folder."""
    try:
        fitted = _fitted(folder, design)
        if folder.file.rules < ONE_POPULATION:
            return Estimates(folder.definition.schema, fitted, earlier=True)
        known = replay(folder).ending.known_before() if _had_first_stage(folder) else None
        return Estimates(folder.definition.schema, fitted, known)
    except (KeyError, TypeError, AttributeError, ValueError, InputError) as error:
        raise InputError(f"{folder.path} is damaged: {error}") from None


def _had_first_stage(folder: ResultFolder) -> bool:
    findings = folder.file.publication.findings
    return any("first_stage" in finding.numbers for finding in findings)


def _fitted(folder: ResultFolder, design: ClusterDesign | ViewsDesign) -> Fitted | FittedViews:
    schema = folder.definition.schema
    checked_text(folder, folder.file.publication, design.sheet)
    reports = folder.path / design.sheet
    if isinstance(design, ViewsDesign):
        views = [tuple(schema.names.index(name) for name in view) for view in design.views]
        reported = ViewDesign(schema.sizes, views, design.epsilon, design.weights or None)
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
    pairs = zip(clusters, design.clusters, strict=True)
    matrices = [_matrix([schema.sizes[a] for a in cluster], c) for cluster, c in pairs]
    return Design(schema.sizes, tuple(clusters), tuple(matrices))


def _matrix(sizes: Sequence[int], cluster: Cluster) -> RRMatrix:
    """How a cluster was randomized."""
    if cluster.matrix is not None:
        return Dense(cluster.matrix)
    if cluster.stay is not None:
        return DistanceWeighted(sizes, cluster.stay)
    if cluster.keep is None:
        raise ValueError(f"it does not say how {cluster.attributes} were randomized")
    return KeepOrUniform(math.prod(sizes), cluster.keep)


def _as_labels(schema: Schema) -> Schema:
    """The same schema for values that are categories already, numbers included."""
    plain = (msgspec.structs.replace(attribute, bins=None) for attribute in schema.attributes)
    return Schema(tuple(plain))
