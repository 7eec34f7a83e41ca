"""Asking a result folder more than it publishes, where randomized records are in it."""

import hashlib
import math
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np

from mpc_rr.errors import InputError
from mpc_rr.estimation.designs import Design, Fitted
from mpc_rr.estimation.estimates import Estimates
from mpc_rr.estimation.matrix import KeepOrUniform
from mpc_rr.estimation.views import FittedViews, ViewDesign
from mpc_rr.publication.parts import SHEET_NAME, ClusterDesign, ViewsDesign
from mpc_rr.publication.reports import view_reports
from mpc_rr.results.folder import ResultFolder, read_folder
from mpc_rr.schema import Schema
from mpc_rr.study.records import read_columns, read_csv


@dataclass(frozen=True)
class Askable:
    """A result folder with randomized records, and what can be estimated from them."""

    folder: ResultFolder
    estimates: Estimates

    @property
    def schema(self) -> Schema:
        """What was asked."""
        return self.folder.definition.schema


def read_askable(path: Path) -> Askable:
    """The result folder of a study with randomized records; `InputError` if it is none."""
    folder = read_folder(path)
    if not folder.done:
        raise InputError(f"the study in {path} did not end well; there is nothing to estimate")
    design = folder.file.publication.randomization
    if design is None:
        sheets = [sheet.name for sheet in folder.file.publication.sheets] or ["result.json"]
        raise InputError(
            f"the study in {path} (protocol {folder.file.protocol.name}) published no randomized "
            f"records from which this could be estimated; what it found is in {path / sheets[0]}"
        )
    try:
        fitted = _fitted(folder, design)
        return Askable(folder, Estimates(folder.definition.schema, fitted))
    except (KeyError, TypeError, AttributeError, ValueError, InputError) as error:
        raise InputError(f"{path} is damaged: {error}") from None


def _fitted(folder: ResultFolder, design: ClusterDesign | ViewsDesign) -> Fitted | FittedViews:
    schema, reports = folder.definition.schema, _reports(folder, design.sheet)
    if isinstance(design, ViewsDesign):
        views = [tuple(schema.names.index(name) for name in view) for view in design.views]
        reported = ViewDesign(schema.sizes, views, design.epsilon)
        raw = [bytes.fromhex(report) for report in read_columns(reports, ["report"])["report"]]
        return FittedViews(reported, view_reports(raw, reported))
    labels = read_csv(reports, _as_labels(schema))
    return Fitted(_design(design, schema), np.array(labels))


def _reports(folder: ResultFolder, name: str) -> Path:
    """The sheet with the reports, which must be the one that was published."""
    text = folder.text(name) if SHEET_NAME.fullmatch(name) else ""
    known = {sheet.name: sheet.sha256 for sheet in folder.file.publication.sheets}
    digest = hashlib.sha256(text.encode()).hexdigest()
    if not text or (folder.version > 1 and known.get(name) != digest):
        raise InputError(f"{name!r} is not the sheet of reports that was published")
    return folder.path / name


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
