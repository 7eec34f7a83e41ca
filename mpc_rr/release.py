"""What is published of a study whose parties reported randomized records, and back from it."""

import csv
import io
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from mpc_rr.data import read_columns, read_csv
from mpc_rr.errors import InputError
from mpc_rr.estimates import Estimates, adjusted_weights
from mpc_rr.estimation.designs import Design, Fitted
from mpc_rr.estimation.matrix import Codes, KeepOrUniform
from mpc_rr.estimation.pairs import PairLayout
from mpc_rr.estimation.tables import dependence_matrix
from mpc_rr.estimation.views import FittedViews, ViewDesign
from mpc_rr.folder import read_folder
from mpc_rr.protocols.collection import Collected, Participation
from mpc_rr.protocols.rr_pairs import RandomizedPairs
from mpc_rr.protocols.rr_views import (
    CollectedViews,
    ViewParticipation,
    read_report,
    view_reports,
)
from mpc_rr.scenario import Study
from mpc_rr.schema import Attribute, Schema

Reports = Collected | CollectedViews
"""What a coordinator has when parties have reported randomized records, or views of them."""


def collected_document(collected: Reports) -> dict[str, Any]:
    """The part of ``result.json`` that speaks of the reports and what they tell."""
    estimates = estimates_of(collected)
    names = collected.schema.names
    return {
        "n": collected.n,
        "asked": len(collected.asked),
        "silent": list(collected.silent),
        "faulty": dict(collected.faulty),
        "answers_digest": collected.digest.hex(),
        "design": design_document(collected),
        "marginals": [
            {
                "attribute": m.attribute.name,
                "categories": list(m.attribute.categories),
                "shares": m.shares.tolist(),
                "unbiased_shares": m.unbiased.shares.tolist(),
                "standard_errors": m.unbiased.standard_errors.tolist(),
            }
            for m in estimates.marginals()
        ],
        "dependence": [
            {"attributes": [names[i], names[j]], "measure": found.measure, "value": found.value}
            for (i, j), found in estimates.dependences().items()
        ],
    }


def pairs_document(found: RandomizedPairs) -> dict[str, Any]:
    """The part of ``result.json`` that speaks of randomized pairs and what they tell."""
    names, sizes = found.schema.names, found.schema.sizes
    shares, estimates = found.pair_shares(), found.estimates()
    dependences = dependence_matrix(shares, len(sizes))
    return {
        "n": found.n,
        "pairs": [
            {
                "attributes": [names[i], names[j]],
                "categories": [list(found.schema.attributes[a].categories) for a in (i, j)],
                "reported_counts": counts.tolist(),
                "shares": shares[i, j].tolist(),
                "unbiased_shares": estimates[i, j].shares.tolist(),
                "standard_errors": estimates[i, j].standard_errors.tolist(),
            }
            for (i, j), counts in zip(PairLayout(sizes).pairs, found.counts, strict=True)
        ],
        "dependence": [
            {
                "attributes": [names[i], names[j]],
                "measure": "cramers_v",
                "value": float(dependences[i, j]),
            }
            for i, j in PairLayout(sizes).pairs
        ],
        "lost": dict(sorted(found.lost.items())),
        "unconfirmed": list(found.unconfirmed),
    }


def pairs_files(found: RandomizedPairs) -> dict[str, str]:
    """The estimated tables as CSV."""
    attributes = found.schema.attributes
    return {
        f"pairs/{pair_file(k, attributes[i].name, attributes[j].name)}": pair_csv(
            attributes[i], attributes[j], table.tolist()
        )
        for k, ((i, j), table) in enumerate(found.pair_shares().items(), start=1)
    }


def participation_document(part: Participation | ViewParticipation) -> dict[str, Any]:
    """What a party has in the end: how many answered, and what its own report was."""
    document = {"asked": part.asked, "n": part.n, "answers_digest": part.answers_digest.hex()}
    if isinstance(part, ViewParticipation):
        return document | {"view": list(part.view)}
    own = zip(part.schema.attributes, part.reported, strict=True)
    return document | {"reported": {a.name: a.categories[code] for a, code in own}}


def estimates_of(collected: Reports) -> Estimates:
    """The estimates that follow from a collection."""
    if isinstance(collected, CollectedViews):
        fitted = FittedViews(collected.design, collected.reports())
        return Estimates(collected.schema, fitted)
    return Estimates(collected.schema, Fitted(collected.design, collected.reported))


def design_document(collected: Reports) -> dict[str, Any]:
    """A design in words and numbers; `read_run` reads it back."""
    names, design = collected.schema.names, collected.design
    if isinstance(design, ViewDesign):
        views = [[names[a] for a in view] for view in design.views]
        return {"epsilon": design.epsilon, "views": views}
    clusters = [
        {
            "attributes": [names[a] for a in cluster],
            "keep": matrix.keep,
            "epsilon": matrix.epsilon,
        }
        for cluster, matrix in zip(design.clusters, design.matrices, strict=True)
        if isinstance(matrix, KeepOrUniform)
    ]
    return {"epsilon": design.epsilon, "clusters": clusters}


def _design_from(document: dict[str, Any], schema: Schema) -> Design:
    clusters, matrices = [], []
    for part in document["clusters"]:
        cluster = tuple(schema.names.index(name) for name in part["attributes"])
        size = math.prod(schema.sizes[a] for a in cluster)
        clusters.append(cluster)
        matrices.append(KeepOrUniform(size, part["keep"]))
    return Design(schema.sizes, tuple(clusters), tuple(matrices))


def _views_from(document: dict[str, Any], schema: Schema) -> ViewDesign:
    views = [tuple(schema.names.index(name) for name in view) for view in document["views"]]
    return ViewDesign(schema.sizes, views, document["epsilon"])


def collected_files(collected: Reports) -> dict[str, str]:
    """The reports as CSV, with the weights of RR-Adjustment, and the estimated pair tables."""
    estimates, schema = estimates_of(collected), collected.schema
    if isinstance(collected, Collected):
        files = {"reports.csv": _reports_csv(collected)}
    else:
        files = {"reports.csv": _views_csv(collected)}
    tables = estimates.pair_tables()
    for number, (i, j) in enumerate(PairLayout(schema.sizes).pairs, start=1):
        first, second = schema.attributes[i], schema.attributes[j]
        name = pair_file(number, first.name, second.name)
        files[f"pairs/{name}"] = pair_csv(first, second, tables[i, j].tolist())
    return files


def pair_csv(rows: Attribute, columns: Attribute, table: Sequence[Sequence[object]]) -> str:
    """The table of two attributes with their categories; what is None stays empty."""
    lines: list[list[Any]] = [[f"{rows.name} \\ {columns.name}", *columns.categories]]
    for category, values in zip(rows.categories, table, strict=True):
        lines.append([category, *values])
    return csv_text(lines)


def pair_file(number: int, *names: str) -> str:
    """A file name for the table of a pair, or of more attributes."""
    plain = ("".join(c if c.isascii() and (c.isalnum() or c in "_-") else "_" for c in name)
             for name in names)  # fmt: skip
    return f"{number:02}-{'--'.join(plain)}.csv"


def _reports_csv(collected: Collected) -> str:
    weights = adjusted_weights(Fitted(collected.design, collected.reported)).tolist()
    rows = decoded(collected.reported, collected.schema)
    lines: list[list[Any]] = [["party", *collected.schema.names, "weight"]]
    for party, row, weight in zip(collected.answered, rows, weights, strict=True):
        lines.append([party, *row, weight])
    return csv_text(lines)


def _views_csv(collected: CollectedViews) -> str:
    design, attributes = collected.design, collected.schema.attributes
    lines = [["party", "view", "reported", "report"]]
    for party, report in collected.answers.items():
        number, cells = read_report(report, design)
        view = design.views[number]
        shape = tuple(attributes[a].size for a in view)
        combinations = [
            " & ".join(
                attributes[a].categories[int(code)]
                for a, code in zip(view, np.unravel_index(cell, shape), strict=True)
            )
            for cell in cells
        ]
        names = " & ".join(attributes[a].name for a in view)
        lines.append([party, names, " | ".join(combinations), report.hex()])
    return csv_text(lines)


def decoded(codes: Codes, schema: Schema) -> list[list[str]]:
    """Records as text."""
    return [
        [a.categories[code] for a, code in zip(schema.attributes, row, strict=True)]
        for row in codes.tolist()
    ]


def csv_text(lines: list[list[Any]]) -> str:
    """Lines as CSV."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(lines)
    return text.getvalue()


# ── Reading a result folder ────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Run:
    """A result folder of a study with randomized records."""

    study: Study
    result: dict[str, Any]
    estimates: Estimates


def _found_in(folder: Path) -> str:
    """The files of a folder that hold what a study published."""
    names = ("pairs", "tables", "release.csv", "quasi_identifiers.csv")
    there = [str(folder / name) for name in names if (folder / name).exists()]
    return there[0] if there else str(folder / "result.json")


def read_run(folder: Path) -> Run:
    """The result folder of a study with randomized records; `InputError` if it is none."""
    run = read_folder(folder)
    study, result = run.study, run.result
    if not run.done:
        raise InputError(f"the study in {folder} did not end well; there is nothing to estimate")
    if "design" not in result:
        raise InputError(
            f"the study in {folder} (protocol {result.get('protocol')}) published no randomized "
            f"records from which this could be estimated; what it found is in {_found_in(folder)}"
        )
    try:
        return Run(study, result, Estimates(study.schema, _fitted(folder, study, result["design"])))
    except (KeyError, TypeError, AttributeError, ValueError, InputError) as error:
        raise InputError(f"{folder} is damaged: {error}") from None


def _fitted(folder: Path, study: Study, design: dict[str, Any]) -> Fitted | FittedViews:
    reports = folder / "reports.csv"
    if "views" in design:
        views = _views_from(design, study.schema)
        raw = [bytes.fromhex(report) for report in read_columns(reports, ["report"])["report"]]
        return FittedViews(views, view_reports(raw, views))
    labels = read_csv(reports, _as_labels(study.schema))
    return Fitted(_design_from(design, study.schema), np.array(labels))


def _as_labels(schema: Schema) -> Schema:
    """The same schema for values that are categories already, numbers included."""
    plain = (msgspec.structs.replace(attribute, bins=None) for attribute in schema.attributes)
    return Schema(tuple(plain))
