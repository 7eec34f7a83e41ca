"""A person's ledger as it is kept: version 2, and what version 1 had."""

import base64
from pathlib import Path

import msgspec

from mpc_rr.agents.whole_files import write_whole
from mpc_rr.crypto.draws import KEY_BYTES
from mpc_rr.errors import InputError
from mpc_rr.privacy.disclosures import AnyDisclosure, Recorded

VERSION = 2
FILE = "account.json"
UNFINISHED_BEFORE = ".account-*"
"""What files were called that an earlier program was writing."""
OCCASIONS_OF_V1 = ("counted", "noisy sum", "values told", "die opened", "values opened")
"""Labels under which version 1 kept in which run something comparable was disclosed."""
RUN_BYTES_OF_V1 = 16
MARK = "04"
"""With this begins what is kept of a record."""
MARK_DIGITS = 4


class StateError(InputError):
    """The state folder cannot be used."""


class Occasion(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A run in which something left this person: its name, her keys there, and with whom."""

    run: str
    keys: str
    roster: str = ""
    """The digest of the roster, where the parties knew each other."""
    parties: int | None = None


class TookPart(msgspec.Struct, forbid_unknown_fields=True):
    """A study this person took part in: what was disclosed, in which runs, and of what."""

    study: str
    promise: str
    """The digest of what was promised; empty where a ledger of version 1 did not keep it."""
    digest: str
    """The digest of the whole study file."""
    record: str
    """A few bits of a keyed hash of the record it was about, to notice most others; empty where
    nothing is kept."""
    events: list[AnyDisclosure | Recorded]
    runs: list[Occasion] = []
    answered: dict[str, str] = {}
    """What was drawn, by label: a hash of what the draw depended on besides record and promise."""
    drawn: dict[str, str] = {}
    """What version 1 had drawn, in base64: such answers cannot be found again otherwise."""
    erased: bool = False
    """Whether the secret that drew the answers is gone, and all that could tell a record."""

    @property
    def left(self) -> bool:
        """Whether anything may have left her; version 1 did not always say so."""
        return bool(self.runs or self.answered or self.drawn or not self.promise)


class LedgerFile(msgspec.Struct, forbid_unknown_fields=True):
    """The whole ledger. ``secret`` draws the answers; whoever has it can undo them."""

    version: int
    secret: str
    participations: list[TookPart]

    def __repr__(self) -> str:
        return f"LedgerFile({len(self.participations)} studies)"


def new_ledger() -> LedgerFile:
    """An empty ledger without a secret."""
    return LedgerFile(VERSION, "", [])


def read_ledger(file: Path) -> LedgerFile:
    """The ledger in a file; an empty one if there is none; `StateError` if it cannot be used."""
    try:
        raw = file.read_bytes()
    except FileNotFoundError:
        return new_ledger()
    except OSError as error:
        raise StateError(f"{file} cannot be read: {error.strerror}") from None
    try:
        version = msgspec.json.decode(raw, type=_Head).version
        if version == 1:
            return _from_v1(msgspec.json.decode(raw, type=_FileV1))
        ledger = msgspec.json.decode(raw, type=LedgerFile) if version == VERSION else None
        if ledger is not None:
            _check(ledger)
            for took_part in ledger.participations:
                took_part.record = kept_mark(took_part.record)
    except (msgspec.MsgspecError, ValueError, InputError, RecursionError) as error:
        raise StateError(
            f"{file} is damaged ({error}); put back the newest copy you have (what was spent "
            "since then is missing in it), or begin with an empty folder if you know what this "
            "person has answered before"
        ) from None
    if ledger is None:
        raise StateError(f"{file} is of version {version}; this program knows 1 to {VERSION}")
    return ledger


def kept_mark(record: str) -> str:
    """What is kept of a record; nothing of what earlier programs kept.

    Theirs were other hashes in each study: even one bit of each would give the record in the end.
    """
    return record if record.startswith(MARK) and len(record) == MARK_DIGITS else ""


def write_ledger(ledger: LedgerFile, file: Path) -> None:
    """Write the file whole or not at all; `StateError` if that cannot be done."""
    write_file(msgspec.json.format(msgspec.json.encode(ledger), indent=1), file)


def write_file(content: bytes, file: Path) -> None:
    """Write a file of a state folder, whole or not at all; `StateError` if that cannot be done."""
    try:
        write_whole(file, content)
    except InputError as error:
        raise StateError(f"{error}; no part of the record was sent") from None


def _check(ledger: LedgerFile) -> None:
    """``ValueError`` unless all of it can be used."""
    if len(bytes.fromhex(ledger.secret)) != KEY_BYTES:
        raise ValueError(f"its secret does not have {KEY_BYTES} bytes")
    for took_part in ledger.participations:
        for hexadecimal in (took_part.promise, took_part.digest, took_part.record):
            bytes.fromhex(hexadecimal)
        for drawn in took_part.drawn.values():
            base64.b64decode(drawn, validate=True)


# ── Version 1 ──────────────────────────────────────────────────────────────────────────────────


class _Head(msgspec.Struct):
    version: int


class _EntryV1(msgspec.Struct, forbid_unknown_fields=True):
    study: str
    mechanism: str
    attributes: tuple[str, ...]
    epsilon: float | None
    claimed: float | None
    crowd: int | None
    delta: float = 0.0


class _EnrolmentV1(msgspec.Struct):
    digest: str
    record: str
    drawn: dict[str, str]


class _FileV1(msgspec.Struct, forbid_unknown_fields=True):
    version: int
    releases: list[_EntryV1]
    enrolments: dict[str, _EnrolmentV1]


def _from_v1(old: _FileV1) -> LedgerFile:
    """What a ledger of version 1 says; its secret is drawn when it is used."""
    found = []
    for study in dict.fromkeys([*old.enrolments, *(entry.study for entry in old.releases)]):
        enrolment = old.enrolments.get(study, _EnrolmentV1("", "", {}))
        kept = {
            label: base64.b64decode(raw, validate=True) for label, raw in enrolment.drawn.items()
        }
        runs = [_occasion(kept[label]) for label in OCCASIONS_OF_V1 if label in kept]
        drawn = {k: v for k, v in enrolment.drawn.items() if k not in OCCASIONS_OF_V1}
        events = [
            Recorded(
                what=entry.mechanism, attributes=entry.attributes, epsilon=entry.epsilon,
                claimed=entry.claimed, crowd=entry.crowd, delta=entry.delta,
            )
            for entry in old.releases if entry.study == study
        ]  # fmt: skip
        bytes.fromhex(enrolment.record)
        found.append(TookPart(study, "", enrolment.digest, "", [*events], runs, {}, drawn))
    return LedgerFile(VERSION, "", found)


def _occasion(raw: bytes) -> Occasion:
    return Occasion(raw[:RUN_BYTES_OF_V1].hex(), raw[RUN_BYTES_OF_V1:].hex())
