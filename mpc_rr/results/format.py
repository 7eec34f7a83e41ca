"""``result.json``, format version 2: how the study ended, and what it publishes.

Its JSON Schema is ``docs/result.schema.json``, made by `json_schema`. Format 1 is read too
(`mpc_rr.results.format1`); ``docs/compatibility.md`` says what reads what.
"""

import inspect
from typing import Any, Literal

import msgspec

from mpc_rr.publication.parts import Publication

FORMAT = "mpc-rr result"
PARTY_FORMAT = "mpc-rr party result"
VERSION = 2
READ = (1, 2)


class _Part(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pass


class StudyHead(_Part, frozen=True, kw_only=True):
    """Which study it was."""

    name: str
    title: str
    digest: str
    """Of the study's definition (hexadecimal)."""


class ProtocolHead(_Part, frozen=True, kw_only=True):
    """Which protocol, and where it comes from: mpc-rr, a package, or a file."""

    name: str
    origin: str


class TranscriptHead(_Part, frozen=True, kw_only=True):
    """How many messages ``transcript.jsonl`` holds, and its SHA-256."""

    messages: int
    digest: str


class ResultFile(_Part, frozen=True, kw_only=True):
    """``result.json`` of a coordinator."""

    format: Literal["mpc-rr result"] = "mpc-rr result"
    version: Literal[2] = 2
    rules: int = 1
    """By which rules it was made (`mpc_rr.network.session.coordinator.RULES`)."""
    status: Literal["done", "aborted"]
    study: StudyHead
    protocol: ProtocolHead
    admission: Literal["open", "by a registrar"]
    run: str
    coordinator: str
    """The fingerprint of the coordinator's keys."""
    transport: str
    seed: int | None
    """Not null: a simulation."""
    attempts: int
    """1, or more if parties were lost and the protocol was begun again with fewer."""
    transcript: TranscriptHead
    rejected_messages: dict[str, int]
    cause: str = ""
    """If it was aborted: why."""
    culprits: tuple[str, ...] = ()
    publication: Publication


class PartyResult(_Part, frozen=True, kw_only=True):
    """``result.json`` of a party, or of a host: what it knows of the result."""

    format: Literal["mpc-rr party result"] = "mpc-rr party result"
    version: Literal[2] = 2
    study: StudyHead
    protocol: ProtocolHead
    publication: Publication


class Round(_Part, frozen=True, kw_only=True):
    """What one round cost."""

    session: str
    step: str
    doing: str = ""
    seconds: float
    messages_up: int
    bytes_up: int
    messages_down: int
    bytes_down: int


class Total(_Part, frozen=True, kw_only=True):
    """What all rounds cost together."""

    messages_up: int
    bytes_up: int
    messages_down: int
    bytes_down: int
    seconds: float


class Cost(_Part, frozen=True, kw_only=True):
    """``cost.json``."""

    total: Total
    rounds: tuple[Round, ...]


def without_texts(publication: Publication) -> Publication:
    """The same without the texts of its sheets, which are files of their own."""
    sheets = tuple(msgspec.structs.replace(sheet, text="") for sheet in publication.sheets)
    return msgspec.structs.replace(publication, sheets=sheets)


def pretty(document: object) -> str:
    """JSON for people and programs."""
    return msgspec.json.format(msgspec.json.encode(document), indent=2).decode() + "\n"


def to_json(file: ResultFile | PartyResult) -> str:
    """The text of a ``result.json``."""
    return pretty(msgspec.structs.replace(file, publication=without_texts(file.publication)))


def json_schema() -> dict[str, Any]:
    """The JSON Schema of both kinds of ``result.json``."""
    (result, party), components = msgspec.json.schema_components(
        (ResultFile, PartyResult), ref_template="#/$defs/{name}"
    )
    for component in components.values():
        if "description" in component:  # from Python 3.13 on a docstring is not indented
            component["description"] = inspect.cleandoc(component["description"])
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "result.json of mpc-rr, format version 2",
        "anyOf": [result, party],
        "$defs": components,
    }
