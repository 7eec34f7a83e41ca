"""What is published of a study whose parties reported randomized records, and back from it."""

import csv
import io
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from mpc_rr.data import read_csv
from mpc_rr.errors import DataError, InputError, SchemaError
from mpc_rr.estimates import Estimates
from mpc_rr.estimation.designs import Design
from mpc_rr.estimation.matrix import Array, Codes, KeepOrUniform
from mpc_rr.estimation.pairs import PairLayout
from mpc_rr.estimation.tables import dependence_matrix
from mpc_rr.protocols.collection import Collected, Participation
from mpc_rr.protocols.rr_pairs import RandomizedPairs
from mpc_rr.scenario import Study, study_from_json
from mpc_rr.schema import Attribute, Schema


def collected_document(collected: Collected) -> dict[str, Any]:
    """The part of ``result.json`` that speaks of the reports and what they tell."""
    estimates = estimates_of(collected)
    names = collected.schema.names
    return {
        "n": collected.n,
        "asked": len(collected.asked),
        "answered": list(collected.answered),
        "silent": list(collected.silent),
        "faulty": dict(collected.faulty),
        "answers_digest": collected.digest.hex(),
        "design": design_document(collected.design, collected.schema),
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
        "unconfirmed": list(found.unconfirmed),
    }


def pairs_files(found: RandomizedPairs) -> dict[str, str]:
    """The estimated tables as CSV."""
    attributes = found.schema.attributes
    return {
        f"pairs/{pair_file(k, attributes[i].name, attributes[j].name)}": pair_csv(
            attributes[i], attributes[j], table
        )
        for k, ((i, j), table) in enumerate(found.pair_shares().items(), start=1)
    }


def participation_document(part: Participation) -> dict[str, Any]:
    """What a party has in the end: how many answered, and its own report."""
    own = zip(part.schema.attributes, part.reported, strict=True)
    return {
        "asked": part.asked,
        "n": part.n,
        "answers_digest": part.answers_digest.hex(),
        "reported": {attribute.name: attribute.categories[code] for attribute, code in own},
    }


def estimates_of(collected: Collected) -> Estimates:
    """The estimates that follow from a collection."""
    return Estimates(collected.schema, collected.design, collected.reported)


def design_document(design: Design, schema: Schema) -> dict[str, Any]:
    """A design in words and numbers; `design_from` reads it back."""
    return {
        "epsilon": design.epsilon,
        "clusters": [
            {"attributes": [schema.names[a] for a in cluster], "keep": matrix.keep,
             "epsilon": matrix.epsilon}
            for cluster, matrix in zip(design.clusters, design.matrices, strict=True)
            if isinstance(matrix, KeepOrUniform)
        ],
    }  # fmt: skip


def design_from(document: dict[str, Any], schema: Schema) -> Design:
    """The design that a ``result.json`` describes."""
    clusters, matrices = [], []
    for part in document["clusters"]:
        cluster = tuple(schema.names.index(name) for name in part["attributes"])
        size = int(np.prod([schema.sizes[a] for a in cluster]))
        clusters.append(cluster)
        matrices.append(KeepOrUniform(size, part["keep"]))
    return Design(schema.sizes, tuple(clusters), tuple(matrices))


def collected_files(collected: Collected) -> dict[str, str]:
    """The reports as CSV, with the weights of RR-Adjustment, and the estimated pair tables."""
    estimates, schema = estimates_of(collected), collected.schema
    files = {"reports.csv": _reports_csv(collected, estimates)}
    tables = estimates.pair_tables()
    for number, (i, j) in enumerate(PairLayout(schema.sizes).pairs, start=1):
        first, second = schema.attributes[i], schema.attributes[j]
        name = pair_file(number, first.name, second.name)
        files[f"pairs/{name}"] = pair_csv(first, second, tables[i, j])
    return files


def pair_csv(rows: Attribute, columns: Attribute, table: Codes | Array) -> str:
    """The table of two attributes with their categories."""
    lines: list[list[Any]] = [[f"{rows.name} \\ {columns.name}", *columns.categories]]
    for category, values in zip(rows.categories, table.tolist(), strict=True):
        lines.append([category, *values])
    return csv_text(lines)


def pair_file(number: int, first: str, second: str) -> str:
    """A file name for the table of a pair."""
    plain = ("".join(c if c.isascii() and (c.isalnum() or c in "_-") else "_" for c in name)
             for name in (first, second))  # fmt: skip
    return f"{number:02}-{'--'.join(plain)}.csv"


def _reports_csv(collected: Collected, estimates: Estimates) -> str:
    names = collected.schema.names
    weights = estimates.adjusted().tolist()
    rows = decoded(collected.reported, collected.schema)
    lines = [["party", *names, "weight"]]
    for party, row, weight in zip(collected.answered, rows, weights, strict=True):
        lines.append([party, *row, weight])
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


def read_run(folder: Path) -> Run:
    """The result folder of a study with randomized records; `InputError` if it is none."""
    try:
        study = study_from_json((folder / "study.json").read_text(encoding="utf-8"))
        result = json.loads((folder / "result.json").read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{folder} is not a result folder: {error.strerror}") from None
    except (ValueError, SchemaError) as error:
        raise InputError(f"{folder} is not a result folder: {error}") from None
    if result.get("status") != "done":
        raise InputError(f"the study in {folder} did not end well; there is nothing to estimate")
    if "design" not in result:
        raise InputError(
            f"the study in {folder} published exact counts (protocol {result.get('protocol')}); "
            "they are in its pairs folder"
        )
    try:
        design = design_from(result["design"], study.schema)
        labels = read_csv(folder / "reports.csv", _as_labels(study.schema))
    except (KeyError, TypeError, ValueError, DataError) as error:
        raise InputError(f"{folder} is damaged: {error}") from None
    return Run(study, result, Estimates(study.schema, design, np.array(labels)))


def _as_labels(schema: Schema) -> Schema:
    """The same schema for values that are categories already, numbers included."""
    plain = (msgspec.structs.replace(attribute, bins=None) for attribute in schema.attributes)
    return Schema(tuple(plain))
