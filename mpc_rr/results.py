"""The result folder: everything that may be known of a study, and nothing secret.

``docs/results.md`` documents it. It is written under a temporary name beside its place and then
renamed, so a folder under its final name is always complete.
"""

import base64
import csv
import hashlib
import io
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import msgspec

from mpc_rr.agents.outcome import Outcome
from mpc_rr.anonymized import anonymized_document, anonymized_files
from mpc_rr.block_tables import block_participation_document, blocks_document, blocks_files
from mpc_rr.errors import Aborted, InputError, MpcRrError, ResultsError
from mpc_rr.estimation.dependence import Dependence, Table, dependence
from mpc_rr.estimation.pairs import Counts, PairLayout
from mpc_rr.estimation.suppression import HIDDEN
from mpc_rr.folder import FORMAT, VERSION
from mpc_rr.network.messages import EVERYONE, Envelope, SignedEnvelope
from mpc_rr.privacy.ledger import Ledger, bounded
from mpc_rr.privacy.odds import in_words
from mpc_rr.protocols.block_aggregation import BlockParticipation, CollectedBlocks
from mpc_rr.protocols.collaborative_k_anonymity import KAnonymous
from mpc_rr.protocols.collaborative_masking import MaskedRelease
from mpc_rr.protocols.collection import Collected, Participation
from mpc_rr.protocols.exact_pairs import PairCounts
from mpc_rr.protocols.interface import Ending
from mpc_rr.protocols.rr_pairs import RandomizedPairs
from mpc_rr.protocols.rr_views import CollectedViews, ViewParticipation
from mpc_rr.release import (
    collected_document,
    collected_files,
    pair_csv,
    pair_file,
    pairs_document,
    pairs_files,
    participation_document,
)
from mpc_rr.scenario import Study, study_json
from mpc_rr.schema import Schema
from mpc_rr.study import StudyResult


def pair_names(schema: Schema) -> list[tuple[str, str]]:
    """The names of the attributes of each pair, in the order of the tables."""
    return [(schema.names[i], schema.names[j]) for i, j in PairLayout(schema.sizes).pairs]


def dependences(counts: PairCounts) -> list[tuple[tuple[str, str], Dependence]]:
    """The dependence of each pair of attributes, in the order of the tables.

    Where counts are noisy or hidden it is that of the best guess, and has no p-value.
    """
    schema = counts.schema
    ordinal = {attribute.name: attribute.type == "ordinal" for attribute in schema.attributes}
    tables: list[Table] = [*counts.tables] if counts.exact else [*counts.pair_shares().values()]
    found = [
        ((a, b), dependence(table, both_ordinal=ordinal[a] and ordinal[b]))
        for (a, b), table in zip(pair_names(schema), tables, strict=True)
    ]
    return found if counts.exact else [(pair, replace(d, p_value=None)) for pair, d in found]


def shown_counts(table: Counts, counts: PairCounts) -> list[list[int | None]]:
    """A table row by row; None where a count is suppressed."""
    suppressed = bool(counts.suppressed_below)
    return [[None if suppressed and c == HIDDEN else c for c in row] for row in table.tolist()]


def single_person_cells(counts: PairCounts) -> int:
    """How many cells count exactly one person: whoever knows one answer learns the other."""
    return 0 if not counts.exact else int(sum((table == 1).sum() for table in counts.tables))


def counts_document(counts: PairCounts) -> dict[str, Any]:
    """The part of ``result.json`` that everybody has: counts and dependence."""
    categories = {a.name: list(a.categories) for a in counts.schema.attributes}
    names = pair_names(counts.schema)
    return {
        "n": counts.n,
        "pairs": [
            {
                "attributes": [a, b],
                "categories": [categories[a], categories[b]],
                "counts": shown_counts(table, counts),
            }
            for (a, b), table in zip(names, counts.tables, strict=True)
        ],
        "dependence": [
            {"attributes": [a, b], "measure": d.measure, "value": d.value, "p_value": d.p_value}
            for (a, b), d in dependences(counts)
        ],
        "single_person_cells": single_person_cells(counts),
        "noise_standard_deviation": counts.noise,
        "suppressed_below": counts.suppressed_below,
        "suppressed_cells": counts.hidden_cells,
        "lost": dict(sorted(counts.lost.items())),
        "unconfirmed": list(counts.unconfirmed),
    }


def result_document(result: StudyResult) -> dict[str, Any]:
    """``result.json``: how the study ended and, if well, what it found."""
    study, outcome = result.study, result.outcome
    transcript = transcript_lines(outcome.transcript)
    document: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "status": "done" if outcome.result is not None else "aborted",
        "study": {"name": study.name, "title": study.title, "digest": study.digest.hex()},
        "protocol": study.protocol.name,
        "admission": "open" if study.registrar is None else "by a registrar",
        "run": outcome.run.hex(),
        "coordinator": outcome.identity.fingerprint,
        "transport": result.transport,
        "seed": result.seed,
        "attempts": outcome.attempts,
        "parties": {
            "expected": study.parties.count,
            "counted": counted(outcome.result, outcome.members),
            "excluded": [{"party": e.name, "reason": e.reason} for e in outcome.excluded],
            "unconfirmed": list(outcome.unconfirmed),
        },
        "transcript": {
            "messages": len(outcome.transcript),
            "digest": hashlib.sha256(transcript.encode()).hexdigest(),
        },
        "rejected_messages": dict(sorted(outcome.rejected.items())),
    }
    if outcome.result is None:
        return document | {"cause": outcome.cause, "culprits": list(outcome.culprits)}
    return (
        document
        | {"privacy": privacy_document(study, len(outcome.members))}
        | ending_document(outcome.result)
    )


def privacy_document(study: Study, asked: int) -> dict[str, Any]:
    """What taking part cost each party, in the three readings. An ε without bound is null."""
    releases = study.protocol.releases(study.name, study.schema, max(asked, 2))
    reading = Ledger(releases=releases).reading()
    return {
        "local_epsilon": bounded(reading.local),
        "local_delta": reading.local_delta,
        "claimed_epsilon": bounded(reading.claimed),
        "central_epsilon": bounded(reading.central),
        "central_delta": reading.delta,
        "in_words": in_words(reading.local),
        "releases": [asdict(r) | {"epsilon": bounded(r.epsilon)} for r in releases],
    }


def counted(ending: Ending | None, members: Sequence[str]) -> list[str]:
    """Whose answers are in a result, where that is known."""
    match ending:
        case Collected():
            return list(ending.answered)
        case CollectedViews() | CollectedBlocks():
            return list(ending.answers)
        case PairCounts() | RandomizedPairs():
            there = [name for name in members if name not in ending.lost]
            return there if ending.n == len(there) else []
        case KAnonymous():
            return list(ending.known)
        case MaskedRelease():
            return list(ending.records)
        case _:
            return []


_DOCUMENTS: dict[tuple[type[Ending], ...], Callable[[Any], dict[str, Any]]] = {
    (PairCounts,): counts_document,
    (RandomizedPairs,): pairs_document,
    (Collected, CollectedViews): collected_document,
    (Participation, ViewParticipation): participation_document,
    (KAnonymous, MaskedRelease): anonymized_document,
    (CollectedBlocks,): blocks_document,
    (BlockParticipation,): block_participation_document,
}


def ending_document(ending: Ending) -> dict[str, Any]:
    """What a study found, or what a party knows of it."""
    for kinds, document in _DOCUMENTS.items():
        if isinstance(ending, kinds):
            return document(ending)
    raise TypeError(type(ending).__name__)


def ending_files(ending: Ending) -> dict[str, str]:
    """Its tables as files."""
    match ending:
        case PairCounts():
            return counts_files(ending)
        case RandomizedPairs():
            return pairs_files(ending)
        case Collected() | CollectedViews():
            return collected_files(ending)
        case KAnonymous() | MaskedRelease():
            return anonymized_files(ending)
        case CollectedBlocks():
            return blocks_files(ending)
        case _:
            return {}


def transcript_lines(transcript: Iterable[bytes]) -> str:
    """The public messages, one JSON object a line: where each belongs, and its signed bytes."""
    lines = []
    for raw in transcript:
        signed = msgspec.msgpack.decode(raw, type=SignedEnvelope)
        header = msgspec.msgpack.decode(signed.envelope, type=Envelope).header
        entry = {
            "session": header.session,
            "step": header.step,
            "sender": header.sender,
            "envelope": base64.b64encode(raw).decode(),
        }
        lines.append(json.dumps(entry) + "\n")
    return "".join(lines)


def cost_rows(outcome: Outcome) -> list[dict[str, Any]]:
    """Messages, bytes and seconds of every party in every step, as the coordinator saw them.

    The party ``*`` is what went to everyone at once.
    """
    return [
        {
            "party": "everyone" if peer == EVERYONE else peer,
            "session": session,
            "step": step,
            **msgspec.to_builtins(traffic),
        }
        for (session, step, peer), traffic in sorted(outcome.traffic.items())
    ]


def cost_document(outcome: Outcome) -> dict[str, Any]:
    """``cost.json``: totals, and the rounds with how long each took."""
    rows = cost_rows(outcome)
    fields = ("messages_up", "bytes_up", "messages_down", "bytes_down")
    return {
        "total": {field: sum(row[field] for row in rows) for field in fields}
        | {"seconds": sum(outcome.round_seconds.values())},
        "rounds": [
            {"session": session, "step": step, "seconds": seconds}
            | {
                f: sum(row[f] for row in rows if (row["session"], row["step"]) == (session, step))
                for f in fields
            }
            for (session, step), seconds in outcome.round_seconds.items()
        ],
    }


# ── Writing ────────────────────────────────────────────────────────────────────────────────────


def check_folder(folder: Path) -> None:
    """Make sure, before a study starts, that its results can be put there."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"{folder} exists already; name another folder with --out")
    place = folder.absolute().parent
    while not place.exists():
        place = place.parent
    try:
        with tempfile.TemporaryDirectory(prefix=f".{folder.name}-", dir=place):
            pass
    except OSError as error:
        raise InputError(f"results cannot be written to {folder}: {error.strerror}") from None


def write_results(result: StudyResult, folder: Path) -> None:
    """Write the result folder; `ResultsError` if that fails, and then nothing is left behind."""
    outcome = result.outcome
    files = {
        "result.json": _json(result_document(result)),
        "study.json": study_json(result.study),
        "transcript.jsonl": transcript_lines(outcome.transcript),
        "cost.json": _json(cost_document(outcome)),
        "cost.csv": _csv_of_rows(cost_rows(outcome)),
    }
    if outcome.result is not None:
        files |= ending_files(outcome.result)
    write_folder(files, folder)


def write_ending(ending: Ending, folder: Path) -> None:
    """Write what a party has in the end; `ResultsError` if that fails."""
    files = {"result.json": _json(ending_document(ending)), **ending_files(ending)}
    write_folder(files | {"receipt.jsonl": transcript_lines(ending.receipt)}, folder)


def write_host_ends(ends: Mapping[str, Ending | MpcRrError], folder: Path) -> None:
    """Write what the parties of a host have in the end: the result, and a receipt of each."""
    finished = [end for end in ends.values() if isinstance(end, Ending)]
    files = {}
    if finished:
        files = {"result.json": _json(ending_document(finished[0])), **ending_files(finished[0])}
    for name, end in ends.items():
        if isinstance(end, Ending | Aborted) and end.receipt:
            files[f"receipts/{name}.jsonl"] = transcript_lines(end.receipt)
    if files:
        write_folder(files, folder)


def counts_files(counts: PairCounts) -> dict[str, str]:
    """The CSV tables: one per pair, and the dependences."""
    rows = [
        {"attribute_1": a, "attribute_2": b, "measure": d.measure, "value": d.value,
         "p_value": d.p_value}
        for (a, b), d in dependences(counts)
    ]  # fmt: skip
    files = {"dependence.csv": _csv_of_rows(rows)}
    for number, ((a, b), table) in enumerate(
        zip(pair_names(counts.schema), counts.tables, strict=True), start=1
    ):
        files[f"pairs/{pair_file(number, a, b)}"] = _pair_csv(counts, (a, b), table)
    return files


def write_folder(files: Mapping[str, str | bytes], folder: Path) -> None:
    """Write files into a folder that appears whole or not at all."""
    temporary: Path | None = None
    try:
        folder.absolute().parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.absolute().parent))
        for name, content in files.items():
            place = temporary / name
            place.parent.mkdir(exist_ok=True)
            place.write_bytes(content.encode() if isinstance(content, str) else content)
        temporary.chmod(0o755)
        os.replace(temporary, folder)  # noqa: PTH105  (over an empty folder too)
    except OSError as error:
        if temporary is not None:
            shutil.rmtree(temporary, ignore_errors=True)
        raise ResultsError(
            f"the results could not be written to {folder}: {error.strerror}"
        ) from None


def _json(document: dict[str, Any]) -> str:
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _csv_of_rows(rows: list[dict[str, Any]]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=list(rows[0]) if rows else [], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _pair_csv(counts: PairCounts, names: tuple[str, str], table: Counts) -> str:
    schema = counts.schema
    first, second = (schema.attributes[schema.names.index(name)] for name in names)
    return pair_csv(first, second, shown_counts(table, counts))
