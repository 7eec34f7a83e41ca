"""The closing statement: what the coordinator says of a run beyond its messages, and signs.

Transport, seed, costs and reasons stand in no message. Without a signature, whoever passes a folder
on could change them. With it they are still the coordinator's word, but nobody else's. It also
binds the messages in their order. It is the file ``closing.json``; parties that ask for the
transcript are given one of their own with it, without costs.
"""

import base64
import dataclasses
import hashlib
import json
from collections.abc import Callable, Iterable
from typing import TypeVar

import msgspec

from mpc_rr.network.envelope import COORDINATOR, EVERYONE, RUN_BYTES, VERDICT_SESSION, decode
from mpc_rr.network.sealed import Opened, Reason, Rejected, read
from mpc_rr.network.session.coordinator import RULES
from mpc_rr.publication.parts import Absence
from mpc_rr.results.format import pretty
from mpc_rr.results.run import StudyResult

CLOSING = "closing.json"
STEP = "closing"
R = TypeVar("R", bound=StudyResult)


class Closing(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the coordinator states. Run and study are in the header under which it is signed."""

    messages: int
    transcript: bytes
    """A digest of all messages, in their order."""
    result: bytes
    """The digest of the result, as in the verdict; empty if there is none."""
    rules: int
    """By which the result is made and told."""
    transport: str
    seed: str | None
    absent: tuple[Absence, ...]
    rejected_messages: dict[Reason, int]
    files: dict[str, bytes]
    """SHA-256 of further files; none in the statement that parties are given."""


def in_order(messages: Iterable[bytes]) -> bytes:
    """A digest of messages in their order."""
    whole = hashlib.sha256(b"mpc-rr transcript v1\0")
    for raw in messages:
        whole.update(hashlib.sha256(raw).digest())
    return whole.digest()


def sha256_of(text: str) -> bytes:
    """The SHA-256 of a file with this text."""
    return hashlib.sha256(text.encode()).digest()


def close(result: R, sign: Callable[[str, msgspec.Struct], bytes]) -> R:
    """The same with the coordinator's closing statement, which it signs for a step."""
    files = {name: sha256_of(text) for name, text in result.cost_files.items()}
    return dataclasses.replace(result, closing=sign(STEP, _statement(result, files)))


def for_parties(result: StudyResult, sign: Callable[[str, msgspec.Struct], bytes]) -> bytes:
    """The statement that goes with a transcript that parties ask for: without costs, which are not
    known by then, and tell when each of the others was heard of."""
    return sign(STEP, _statement(result, {}))


def _statement(result: StudyResult, files: dict[str, bytes]) -> Closing:
    outcome = result.outcome
    return Closing(
        messages=len(outcome.transcript),
        transcript=in_order(outcome.transcript),
        result=b"" if outcome.result is None else outcome.result.digest,
        rules=RULES,
        transport=result.transport,
        seed=None if result.seed is None else str(result.seed),
        absent=result.participation.absent,
        rejected_messages=dict(sorted(outcome.rejected.items())),
        files=files,
    )


def closing_text(raw: bytes, study: str, run: bytes) -> str:
    """``closing.json``: the statement for people to read, and its signed bytes."""
    _, statement = _opened(raw, study, run)
    shown = msgspec.to_builtins(statement, builtin_types=(bytes,))
    shown |= {name: shown[name].hex() for name in ("transcript", "result")}
    shown["files"] = {name: digest.hex() for name, digest in statement.files.items()}
    return pretty({"statement": shown, "envelope": base64.b64encode(raw).decode()})


def read_closing(text: str, study: str, run: bytes) -> tuple[Opened, Closing]:
    """The statement in a ``closing.json``; ``ValueError`` if it is none on this run.

    Whose signature it bears is for the caller to check.
    """
    try:
        raw = base64.b64decode(json.loads(text)["envelope"], validate=True)
    except (KeyError, TypeError, ValueError, RecursionError):
        raise ValueError("it is damaged") from None
    opened, statement = _opened(raw, study, run)
    if closing_text(raw, study, run) != text:
        raise ValueError("beside the signed statement stands something else than in it")
    return opened, statement


def _opened(raw: bytes, study: str, run: bytes) -> tuple[Opened, Closing]:
    try:
        opened = read(raw, study=study, runs=(run,), targets=(EVERYONE,), versions=RUN_BYTES)
    except Rejected as rejected:
        raise ValueError(f"it is no statement on this run ({rejected.reason})") from None
    header = opened.envelope.header
    if (header.session, header.step, header.sender) != (VERDICT_SESSION, STEP, COORDINATOR):
        raise ValueError("it is no closing statement")
    return opened, decode(opened.envelope.body, Closing)
