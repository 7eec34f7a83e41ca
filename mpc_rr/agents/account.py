"""A party's own books: what it has given away, within which budget, and what it answered.

Kept in a state folder of the party's own, or in memory for a simulation. An entry is on disk before
the answer it stands for leaves the party. An answer is drawn once for a study and kept: if the
study is repeated, or the party starts again after a crash, it gives the very same answer, which
tells nothing new and costs nothing.
"""

import base64
import binascii
import contextlib
import hashlib
import math
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from mpc_rr.agents.locks import flush_folder, locked
from mpc_rr.errors import InputError
from mpc_rr.privacy.disclosures import Disclosure, told_in_words
from mpc_rr.privacy.ledger import Ledger, LedgerEntry, bounded
from mpc_rr.privacy.odds import in_words
from mpc_rr.schema import Record
from mpc_rr.study.definition import Study

FILE = "account.json"
VERSION = 1


class StateError(InputError):
    """The state folder cannot be used."""


class TookPart(msgspec.Struct):
    """A study this party took part in: its digest, and what was drawn for it, by label."""

    digest: str
    record: str
    """A salted hash of the record it was about, to notice another one."""
    drawn: dict[str, str]


class _Entry(msgspec.Struct, forbid_unknown_fields=True):
    """A release on disk. JSON has no infinity: an ε without bound is null."""

    study: str
    mechanism: str
    attributes: tuple[str, ...]
    epsilon: float | None
    claimed: float | None
    crowd: int | None
    delta: float = 0.0

    @classmethod
    def of(cls, release: LedgerEntry) -> "_Entry":
        return cls(release.study, release.mechanism, release.attributes, bounded(release.epsilon),
                   release.claimed, release.crowd, release.delta)  # fmt: skip

    @property
    def ledger_entry(self) -> LedgerEntry:
        epsilon = math.inf if self.epsilon is None else self.epsilon
        return LedgerEntry(self.study, self.mechanism, self.attributes, epsilon,
                       self.claimed, self.crowd, self.delta)  # fmt: skip


class _Books(msgspec.Struct, forbid_unknown_fields=True):
    version: int
    releases: list[_Entry]
    enrolments: dict[str, TookPart]


def _empty() -> _Books:
    return _Books(VERSION, [], {})


def _hashed(record: Record, salt: bytes | None = None) -> str:
    salt = os.urandom(16) if salt is None else salt
    return salt.hex() + hashlib.sha256(salt + repr(tuple(record)).encode()).hexdigest()


class Account:
    """The books of one party. This one lives in memory only."""

    def __init__(self, budget: float = math.inf) -> None:
        self._books = _empty()
        self.budget = Ledger(budget).budget

    def __repr__(self) -> str:
        return "Account(…)"

    @property
    def ledger(self) -> Ledger:
        """All releases so far, within the budget."""
        return Ledger(self.budget, [entry.ledger_entry for entry in self._books.releases])

    def planned(self, study: Study) -> list[Disclosure]:
        """What taking part in a study would add: nothing if it was paid for before."""
        known = self._books.enrolments.get(study.name)
        if known is not None and known.digest == study.digest.hex():
            return []
        return list(study.disclosures)

    def check(self, study: Study) -> None:
        """`InputError` if this party must not take part: overdrawn, or another study by the name.

        Nothing is recorded.
        """
        enrolled = self._books.enrolments.get(study.name)
        if enrolled is not None and enrolled.digest != study.digest.hex():
            raise InputError(
                f"study {study.name!r} is not the one this party took part in before: its file "
                "has changed since; nothing was sent"
            )
        self.ledger.check(*(event.entry(study.name) for event in self.planned(study)))

    def explain(self, study: Study, language: str | None = None) -> dict[str, Any]:
        """What taking part would mean, for a person to decide on. An ε without bound is None."""
        planned = self.planned(study)
        cost, spent = math.fsum(event.cost for event in planned), self.ledger.spent
        return {
            "study": study.name,
            "title": study.title,
            "description": study.description,
            "protocol": study.protocol.name,
            "parties": study.parties.count,
            "registrar": study.registrar is not None,
            "notes": [note.text for note in study.protocol.notes(study.setting)],
            "questions": {
                a.name: {
                    "label": a.title(language),
                    "question": a.asked(language),
                    "answers": [a.category_title(c, language) for c in a.categories] or [a.answers],
                }
                for a in study.schema.attributes
            },
            "disclosures": [
                {
                    "event": msgspec.to_builtins(event),
                    "how": event.how,
                    "seen": event.seen,
                    "epsilon": bounded(event.cost),
                }
                for event in planned
            ],
            "epsilon": bounded(cost),
            "in_words": told_in_words(planned),
            "spent_before": bounded(spent),
            "total": bounded(spent + cost),
            "total_in_words": in_words(spent + cost),
            "budget": bounded(self.budget),
        }

    def charge(self, study: Study, record: Record) -> None:
        """Enter what taking part costs, once for a study, before anything of the record leaves."""
        self.check(study)
        known = self._books.enrolments.get(study.name)
        if known is None:
            events = self.planned(study)
            self._books.releases += [_Entry.of(event.entry(study.name)) for event in events]
            enrolment = TookPart(study.digest.hex(), _hashed(record), {})
            self._books.enrolments[study.name] = enrolment
            self._save()
        elif _hashed(record, bytes.fromhex(known.record[:32])) != known.record:
            raise InputError(
                f"these books answered study {study.name!r} for another record; each party needs "
                "a state folder of its own; nothing was sent"
            )

    def settle(self, study: Study, events: Sequence[Disclosure]) -> None:
        """Enter what a study costs after all, instead of what it might have cost at most.

        What was drawn for it has been paid for: after that, its price does not fall again.
        """
        releases = [event.entry(study.name) for event in events]
        cost = math.fsum(release.epsilon for release in releases)
        if cost > math.fsum(event.cost for event in study.disclosures) * (1 + 1e-9):
            raise InputError(f"study {study.name!r} would cost more than it said; nothing was sent")
        others = [entry for entry in self._books.releases if entry.study != study.name]
        before = [entry for entry in self._books.releases if entry.study == study.name]
        if cost < math.fsum(entry.ledger_entry.epsilon for entry in before) and self._drawn(study):
            return
        Ledger(self.budget, [entry.ledger_entry for entry in others]).check(*releases)
        self._books.releases = others + [_Entry.of(release) for release in releases]
        self._save()

    def _drawn(self, study: Study) -> dict[str, str]:
        """What was drawn for a study, by label."""
        enrolled = self._books.enrolments.get(study.name)
        return {} if enrolled is None else enrolled.drawn

    def recall(self, study: Study, label: str) -> bytes | None:
        """What was drawn for a study under this label, if anything."""
        kept = self._drawn(study).get(label)
        return None if kept is None else base64.b64decode(kept)

    def once(self, study: Study, label: str, draw: Callable[[], bytes]) -> bytes:
        """What was drawn for a study under this label; drawn and kept if it is new."""
        drawn = self._books.enrolments[study.name].drawn
        if label not in drawn:
            drawn[label] = base64.b64encode(draw()).decode()
            self._save()
        return base64.b64decode(drawn[label])

    def _save(self) -> None:
        """Nothing to do in memory."""


class StoredAccount(Account):
    """Books in a file: whole or not at all."""

    def __init__(self, file: Path, budget: float = math.inf) -> None:
        super().__init__(budget)
        self._file = file
        self._books = _read(file)

    @classmethod
    @contextlib.contextmanager
    def open(cls, folder: Path, budget: float = math.inf) -> "Iterator[StoredAccount]":
        """A party's books in this folder, for this process alone while the context lasts."""
        with _to_itself(folder):
            yield cls(folder / FILE, budget)

    @classmethod
    @contextlib.contextmanager
    def open_many(
        cls, folder: Path, records: Iterable[int], budget: float = math.inf
    ) -> "Iterator[dict[int, StoredAccount]]":
        """The books of a host: one account for each record, by the record's number in its file."""
        with _to_itself(folder):
            yield {number: cls(folder / f"record-{number}.json", budget) for number in records}

    def _save(self) -> None:
        folder = self._file.parent
        try:
            handle, name = tempfile.mkstemp(prefix=".account-", dir=folder)
            with os.fdopen(handle, "wb") as file:
                file.write(msgspec.json.format(msgspec.json.encode(self._books), indent=1))
                file.flush()
                os.fsync(file.fileno())
            os.replace(name, self._file)  # noqa: PTH105
            flush_folder(folder)
        except OSError as error:
            raise StateError(
                f"the account in {folder} cannot be written: {error.strerror}; nothing was sent"
            ) from None


@contextlib.contextmanager
def _to_itself(folder: Path) -> Iterator[None]:
    """The folder, which no other process may use meanwhile."""
    with contextlib.ExitStack() as held:
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            held.enter_context(locked(folder / "lock", wait=False))
        except BlockingIOError:
            raise StateError(
                f"the state folder {folder} is in use by another process; each party needs its own"
            ) from None
        except OSError as error:
            raise StateError(
                f"the state folder {folder} cannot be used: {error.strerror}"
            ) from None
        yield


def _read(file: Path) -> _Books:
    try:
        raw = file.read_bytes()
    except FileNotFoundError:
        return _empty()
    except OSError as error:
        raise StateError(f"{file} cannot be read: {error.strerror}") from None
    try:
        books = msgspec.json.decode(raw, type=_Books)
        _ = [entry.ledger_entry for entry in books.releases]
        for enrolment in books.enrolments.values():
            bytes.fromhex(enrolment.record[:32])
            for drawn in enrolment.drawn.values():
                base64.b64decode(drawn, validate=True)
    except (msgspec.MsgspecError, binascii.Error, ValueError, InputError) as error:
        raise StateError(
            f"{file} is damaged ({error}); put back a copy, or start with an empty folder if you "
            "know what this party has answered before"
        ) from None
    if books.version != VERSION:
        raise StateError(f"{file} is of version {books.version}; this program knows {VERSION}")
    return books
