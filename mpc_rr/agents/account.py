"""A person's ledger at work: what she has disclosed, within which budget, and how she answers.

Kept in a state folder of her own, or in memory for a simulation. An entry is on disk before the
answer it stands for leaves the party.

Answers are drawn by a pseudorandom function of a secret in the ledger, of what the study promises
(`mpc_rr.study.definition.Study.promise`), of what the answer depends on besides, and of the record.
So the very same answer is given if the study is repeated or gets longer deadlines, or if the party
starts again after a crash; and, if it depends on the record alone, from an old copy of the ledger
that was put back. That tells nothing new and costs nothing. What the secret costs in turn:
``docs/decisions/0017-answers-by-a-secret.md``.

Whether an earlier run could be compared with another one is decided here, for all protocols alike,
from what they state that they disclose: `Account.check` before a party joins, `Account.disclose`
before the first message leaves that tells something of its record.
"""

import base64
import contextlib
import functools
import hashlib
import math
import os
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from mpc_rr.agents.ledger_file import (
    FILE,
    MARK,
    UNFINISHED_BEFORE,
    Occasion,
    StateError,
    TookPart,
    new_ledger,
    read_ledger,
    write_file,
    write_ledger,
)
from mpc_rr.agents.locks import flush_folder, locked
from mpc_rr.agents.person_names import looks
from mpc_rr.agents.whole_files import clear_unfinished
from mpc_rr.crypto.draws import KEY_BYTES, HedgedRandomness, KeyedRandomness, derived
from mpc_rr.errors import Declined, InputError
from mpc_rr.network.envelope import encode_parts
from mpc_rr.privacy.disclosures import AnyDisclosure, Disclosure, Recorded
from mpc_rr.privacy.ledger import AnswerBudget, Ledger
from mpc_rr.randomness import Randomness, SystemRandomness
from mpc_rr.schema import Record
from mpc_rr.study.definition import Study

MARK_BITS = 8
"""At most so many are kept of a record's keyed hash."""


class Account:
    """The ledger of one person. This one lives in memory only."""

    remembered = False
    """Whether it outlives the process, so that it knows of other studies."""

    def __init__(
        self,
        budget: float = math.inf,
        secret: bytes = b"",
        *,
        answer_budget: AnswerBudget | float = math.inf,
    ) -> None:
        self._file = new_ledger()
        self._file.secret = secret.hex()
        self.budget, self.answer_budget = budget, AnswerBudget.given(answer_budget)
        self._ledger([])

    def __repr__(self) -> str:
        return "Account(…)"

    def begin(self, rng: Randomness) -> None:
        """Draw the secret, if there is none yet."""
        if not self._file.secret:
            self._file.secret = rng.fork("secret").bytes(KEY_BYTES).hex()

    @property
    def _secret(self) -> bytes:
        if not self._file.secret:
            self.begin(SystemRandomness())
        return bytes.fromhex(self._file.secret)

    @property
    def participations(self) -> tuple[TookPart, ...]:
        """The studies this person took part in, in order."""
        return tuple(self._file.participations)

    @property
    def ledger(self) -> Ledger:
        """Everything disclosed so far, within the budgets."""
        return self._ledger([e for took in self.participations for e in self._told(took)])

    def _ledger(self, events: list[Disclosure]) -> Ledger:
        return Ledger(self.budget, events, self.answer_budget, _taken_for)

    def _told(self, took: TookPart) -> list[Disclosure]:
        """What was disclosed in a study: hidden among others only if there is a single total."""
        if all(event.hidden_among is None for event in took.events) or not (
            len(took.runs) > 1 or any(_about_the_same(took, other) for other in self.participations)
        ):
            return [*took.events]
        return [event.alone for event in took.events]

    # ── Before a study ─────────────────────────────────────────────────────────────────────────

    def planned(self, study: Study) -> list[Disclosure]:
        """What taking part would add to the ledger: nothing if it has the very same already."""
        taken = self._taken(study)
        if taken is None:
            return list(study.disclosures)
        if taken.left:
            return [event for event in study.disclosures if event.anew and taken.runs]
        return [event for event in study.disclosures if event not in taken.events]

    def before(self, study: Study) -> Ledger:
        """Everything disclosed so far, but for what this study no longer is to cost.

        Where nothing has left yet, what was entered for the study is only what it was to cost at
        most. It may expect other people by now.
        """
        taken = self._taken(study)
        if taken is None or taken.left:
            return self.ledger
        now = [event for event in taken.events if event in study.disclosures]
        return self._ledger([*self._others(taken), *now])

    def _others(self, taken: TookPart) -> list[Disclosure]:
        """What was disclosed in all other studies."""
        others = (took for took in self._file.participations if took is not taken)
        return [event for took in others for event in self._told(took)]

    def comparable(self, study: Study) -> list[tuple[TookPart, str]]:
        """Earlier participations that a run could be compared with, and what could be learned."""
        return [
            (took, event.compared)
            for took in self._file.participations
            for event in study.disclosures
            if took.runs and event.compared is not None
            if took.study == study.name or _shared(event, took.events)
        ]

    def perhaps_comparable(self, study: Study) -> list[TookPart]:
        """Earlier participations that a run could be compared with if it asks the same by other
        names, which nobody can tell from the names."""
        if not study.comparable:
            return []
        known = [took for took, _ in self.comparable(study)]
        return [
            took
            for took in self._file.participations
            if took.runs and took not in known and any(map(_is_comparable, took.events))
        ]

    def has_answered(self, study: Study) -> bool:
        """Whether this very study was answered before."""
        taken = self._taken(study)
        return taken is not None and bool(taken.answered or taken.drawn)

    def check(self, study: Study, record: Record | None = None, *, again: bool = False) -> None:
        """Raises if this person must not take part; nothing is recorded.

        `Declined` if an earlier run could be compared with this one, unless she takes part
        ``again`` all the same; `InputError` if it is overdrawn, or about another record.
        """
        taken, unclear = self._taken(study), self._unclear(study)
        if any(took is not None and took.erased for took in (taken, unclear)):
            raise Declined(
                f"you took part in {study.name!r} before, and what could repeat it was erased "
                "(mpc-rr ledger --forget): it cannot be answered again; nothing was sent"
            )
        if taken is not None and record is not None:
            self._check_record(taken, study, record)
        earlier = self.comparable(study)
        if earlier and not again:
            took = earlier[-1][0]
            learned = "; ".join(dict.fromkeys(said for _, said in earlier))
            raise Declined(
                f"you took part in {took.study!r} before{_among(took)}, and this study is about "
                f"the same. In a second run, {learned}. No part of your record was sent. To take "
                "part all the same, say --again"
            )
        if unclear is not None and not again:
            raise Declined(
                f"you took part in a study {study.name!r} before, by another file, and an earlier "
                "version of this ledger does not say what that one promised. If it is the same "
                "study, your answers would be drawn a second time. Nothing was sent. To answer "
                "it as another study, at its full privacy cost, say --again"
            )
        self.before(study).check(*self.planned(study))

    def _taken(self, study: Study) -> TookPart | None:
        """This very study, whatever its deadlines or its last day are now."""
        for took in self._file.participations:
            if took.promise == study.promise.hex() or (
                not took.promise and took.digest == study.digest.hex()
            ):
                return took
        return None

    def _unclear(self, study: Study) -> TookPart | None:
        """A study of this name in a ledger of version 1, if it may be this one or another."""
        if self._taken(study) is not None:
            return None
        named = [t for t in self._file.participations if t.study == study.name and not t.promise]
        return named[-1] if named else None

    def _mark(self, study: Study, record: Record) -> str:
        """What is kept of a record: some bits of a keyed hash, the same ones in all studies.

        The key stands beside it, so whoever has the ledger can try all records. They are therefore
        so few that at least as many records remain possible as there are marks. It is a hash of
        words: in which order a study has its attributes and categories does not matter.
        """
        said = sorted(
            (a.name, a.text(c)) for a, c in zip(study.schema.attributes, record, strict=True)
        )
        words = [word.encode() for answer in said for word in answer]
        hashed = derived(self._secret, encode_parts(b"mpc-rr record v4", *words))
        return f"{MARK}{hashed[0] >> (MARK_BITS - mark_bits(study)):02x}"

    def _check_record(self, taken: TookPart, study: Study, record: Record) -> None:
        if taken.record and taken.record != self._mark(study, record):
            raise InputError(
                f"this ledger answered study {study.name!r} for another record; each person needs "
                "their own ledger (--state, and --id in one folder); no part of the record was "
                "sent"
            )

    # ── While it runs ──────────────────────────────────────────────────────────────────────────

    def charge(self, study: Study, record: Record, *, again: bool = False) -> None:
        """Enter what taking part costs, once for a study, before anything of the record leaves."""
        self.check(study, record, again=again)
        taken, mark = self._taken(study), self._mark(study, record)
        events: list[AnyDisclosure | Recorded] = [*study.disclosures]  # type: ignore[list-item]
        if taken is None:
            taken = TookPart(study.name, study.promise.hex(), study.digest.hex(), "", [])
            self._file.participations.append(taken)
        if taken.left:
            events = taken.events
        if (taken.record, taken.events) != (mark, events):
            taken.record, taken.events = mark, events
            self._save()

    def disclose(self, study: Study, occasion: Occasion, *, again: bool = False) -> None:
        """Enter that something of the record leaves in this run.

        `Declined` if an earlier one could be compared with it.
        """
        taken = self._taken(study)
        assert taken is not None, "charge() comes first"
        if occasion not in taken.runs:
            self.check(study, again=again)
            if taken.runs or not taken.events:  # nothing leaves for which nothing was entered
                taken.events += self.planned(study)  # type: ignore[arg-type]
            taken.runs.append(occasion)
            self._save()

    def settle(self, study: Study, events: Sequence[Disclosure]) -> None:
        """Enter what a study costs after all, instead of what it might have cost at most.

        What was drawn for it, or has left, has been paid for: after that, its price does not fall
        again, and nothing is struck out.
        """
        taken = self._taken(study)
        assert taken is not None, "charge() comes first"
        cost = math.fsum(event.cost for event in events)
        if cost > math.fsum(event.cost for event in study.disclosures) * (1 + 1e-9):
            raise InputError(
                f"study {study.name!r} asks for a higher ε than it announced; no part of the "
                "record was sent"
            )
        kept = taken.events if taken.left else []
        if kept and cost <= math.fsum(event.cost for event in kept):
            return
        added = [event for event in events if event not in kept]
        self._ledger([*self._others(taken), *kept]).check(*added)
        taken.events = [*kept, *added]  # type: ignore[list-item]
        self._save()

    def once(
        self,
        study: Study,
        record: Record,
        label: str,
        draw: Callable[[Randomness], bytes],
        given: bytes = b"",
    ) -> bytes:
        """What is drawn for a record in a study under this label: the same each time.

        ``given``: what the draw depends on besides record and promise. `Declined` if the study was
        answered before when that was something else: a second answer would tell more.
        """
        taken = self._taken(study)
        assert taken is not None, "charge() comes first"
        if label in taken.drawn:  # by version 1, which wrote what it was given before it
            drawn = base64.b64decode(taken.drawn[label])
            if not drawn.startswith(given):
                raise Declined(_OTHERWISE)
            return drawn[len(given) :]
        mark = hashlib.sha256(given).hexdigest()
        if taken.answered.get(label, mark) != mark:
            raise Declined(_OTHERWISE)
        parts = (b"mpc-rr answer v1", study.promise, label.encode(), given, _text(record))
        drawn = draw(KeyedRandomness(derived(self._secret, encode_parts(*parts))))
        if label not in taken.answered:
            taken.answered[label] = mark
            self._save()
        return drawn

    def forget(self) -> None:
        """Erase the secret and what could tell a record from another; what was spent stays.

        From then on nobody can undo the answers given so far, not even with this ledger and all
        that was published; nor can they be given again: those studies are answered no more.
        """
        for took in self._file.participations:
            took.record, took.drawn, took.answered, took.erased = "", {}, {}, True
        self._file.secret = SystemRandomness().bytes(KEY_BYTES).hex()
        self._save()

    def masks(self, *parts: bytes) -> Randomness:
        """Fresh randomness for what must never be the same again, apart for each place."""
        return HedgedRandomness(derived(self._secret, encode_parts(b"mpc-rr masks v1", *parts)))

    def _save(self) -> None:
        """Nothing to do in memory."""


def _shared(event: Disclosure, earlier: Sequence[Disclosure]) -> bool:
    """Whether earlier events are about the same, so that two results could be compared.

    One attribute in common is enough: a study need not be repeated as it was to be compared. What
    is about no attribute by name may be about all of them. Names that look alike are the same.
    """
    mine = _called(event.attributes)
    return any(
        not (mine and other.attributes) or not mine.isdisjoint(_called(other.attributes))
        for other in filter(_is_comparable, earlier)
    )


def _is_comparable(event: Disclosure) -> bool:
    return event.compared is not None or isinstance(event, Recorded)


def _about_the_same(took: TookPart, other: TookPart) -> bool:
    """Whether totals of two studies could be compared."""
    if other is took or not other.runs:
        return False
    events = filter(_is_comparable, took.events)
    return took.study == other.study or any(_shared(event, other.events) for event in events)


@functools.lru_cache(maxsize=1024)
def _called(attributes: tuple[str, ...]) -> frozenset[str]:
    """What attributes may be taken for: what they look like, in small letters and in capitals, but
    for signs and spaces."""
    written = (form for name in attributes for form in (_spelled(name), _spelled(name).upper()))
    return frozenset(_spelled(look) for form in written for look in looks(form))


def _taken_for(name: str) -> frozenset[str]:
    """The same of one attribute: a limit on an answer holds however a study writes its name."""
    return _called((name,))


def _spelled(name: str) -> str:
    """The letters, marks and digits of a name, if it has any."""
    return "".join(c for c in name if unicodedata.category(c)[0] in "LMN") or name


def _among(took: TookPart) -> str:
    """In which run, and among how many, as far as it is known."""
    last = took.runs[-1]
    others = "" if last.parties is None else f", {last.parties} parties"
    return f" (run {last.run[:8]}…{others})"


_OTHERWISE = (
    "this party answered the study before, when what it was asked depended on other answers than "
    "now; another answer would tell more"
)


def _text(record: Record) -> bytes:
    return ",".join(map(str, record)).encode()


def mark_bits(study: Study) -> int:
    """How many bits are kept of a record: of n possible ones √n marks at most, and never 257."""
    possible = math.prod(study.schema.sizes)
    return min(MARK_BITS, (possible.bit_length() - 1) // 2)


class StoredAccount(Account):
    """A ledger in a file: whole or not at all."""

    remembered = True

    def __init__(
        self,
        file: Path,
        budget: float = math.inf,
        *,
        answer_budget: AnswerBudget | float = math.inf,
    ) -> None:
        super().__init__(budget, answer_budget=answer_budget)
        self._path = file
        self._file = read_ledger(file)
        self.begin(SystemRandomness())

    @classmethod
    @contextlib.contextmanager
    def open(
        cls,
        folder: Path,
        budget: float = math.inf,
        person: str | None = None,
        *,
        answer_budget: AnswerBudget | float = math.inf,
    ) -> "Iterator[StoredAccount]":
        """A person's ledger in this folder, for this process alone while the context lasts."""
        with _to_itself(folder):
            _check_whose(folder, by_id=person is not None)
            file = folder / FILE if person is None else _files_of(folder, [person])[person]
            yield cls(file, budget, answer_budget=answer_budget)

    @classmethod
    @contextlib.contextmanager
    def open_many(
        cls,
        folder: Path,
        persons: Iterable[str],
        budget: float = math.inf,
        *,
        answer_budget: AnswerBudget | float = math.inf,
    ) -> "Iterator[dict[str, StoredAccount]]":
        """The ledgers of a host: one for each person, by what identifies her in its file."""
        with _to_itself(folder):
            _check_whose(folder, by_id=True)
            files = _files_of(folder, persons)
            yield {
                person: cls(file, budget, answer_budget=answer_budget)
                for person, file in files.items()
            }

    @property
    def begun(self) -> bool:
        """Whether anything was ever entered."""
        return self._path.exists()

    def _save(self) -> None:
        write_ledger(self._file, self._path)


NAMES_KEY = "names.key"
"""The file with the key of the names of a folder's ledgers."""
LEDGERS = "person-*.json"
KEYED_NAME = re.compile(r"person-[0-9a-f]{40}\.json")


def ledgers_in(folder: Path) -> int:
    """How many people have a ledger in a folder of many."""
    return sum(1 for _ in folder.glob(LEDGERS))


def _files_of(folder: Path, persons: Iterable[str]) -> dict[str, Path]:
    """In which files the ledgers of these persons are; their names tell nobody who has no key.

    Ledgers whose names were hashes without a key are given such names.
    """
    key, found = _names_key(folder), {}
    for person in persons:
        found[person] = file = folder / _keyed_name(key, person)
        before = folder / _name_before(person)
        if before.exists():
            if file.exists():
                raise StateError(
                    f"{folder} has two ledgers of {person!r}, {before.name} and {file.name}: put "
                    "away the one in which less was spent"
                )
            _rename(before, file)
    return found


def _names_key(folder: Path) -> bytes:
    file = folder / NAMES_KEY
    try:
        if file.exists():
            key = bytes.fromhex(file.read_text(encoding="ascii"))
            if len(key) == KEY_BYTES:
                return key
            raise ValueError(f"it does not have {KEY_BYTES} bytes")  # noqa: TRY301
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise StateError(f"{file} cannot be used ({why}); put back a copy of it") from None
    if any(KEYED_NAME.fullmatch(ledger.name) for ledger in folder.glob(LEDGERS)):
        raise StateError(
            f"{file} is missing: without it nobody can tell whose the ledgers in {folder} are; "
            "put back a copy of it"
        )
    key = SystemRandomness().bytes(KEY_BYTES)
    write_file(key.hex().encode(), file)
    return key


def _keyed_name(key: bytes, person: str) -> str:
    hashed = derived(key, encode_parts(b"mpc-rr person v2", known_as(person).encode()))
    return f"person-{hashed.hex()[:40]}.json"


def _name_before(person: str) -> str:
    """What the file was called when no key was needed to find it."""
    hashed = hashlib.sha256(b"mpc-rr person\0" + known_as(person).encode()).hexdigest()
    return f"person-{hashed[:32]}.json"


def _rename(file: Path, target: Path) -> None:
    try:
        os.replace(file, target)  # noqa: PTH105
        flush_folder(file.parent)
    except OSError as error:
        raise StateError(f"{file} cannot be renamed: {error.strerror}") from None


def known_as(person: str) -> str:
    """What identifies a person, however it is encoded."""
    return unicodedata.normalize("NFC", person.strip())


ROWS_OF_V1 = "record-*.json"


def _check_whose(folder: Path, *, by_id: bool) -> None:
    """A folder has either the ledger of one person, or those of many, by what identifies them."""
    if any(folder.glob(ROWS_OF_V1)):
        raise StateError(
            f"{folder} keeps ledgers by the number of a row, as an earlier version did; say whose "
            f"they are: mpc-rr ledger {folder} --adopt people.csv --id COLUMN, with the very file "
            "that they were made with"
        )
    if by_id and (folder / FILE).exists():
        raise StateError(
            f"{folder} keeps the ledger of a single person; a host needs a folder of its own"
        )
    if not by_id and any(folder.glob(LEDGERS)):
        raise StateError(f"{folder} keeps the ledgers of many; say whose it is with --id")


def adopt_rows(folder: Path, persons: Sequence[str]) -> int:
    """Turn ledgers by row number into those of the persons who stood in these rows."""
    with _to_itself(folder):
        moves: dict[Path, Path] = {}
        taken: list[Path] = []
        key = _names_key(folder)
        for file in sorted(folder.glob(ROWS_OF_V1)):
            number = file.stem.removeprefix("record-")
            if not number.isdigit() or not 1 <= int(number) <= len(persons):
                raise StateError(f"{file} is of a row that the file of people does not have")
            read_ledger(file)
            person = persons[int(number) - 1]
            moves[file] = folder / _keyed_name(key, person)
            taken += [n for n in (moves[file], folder / _name_before(person)) if n.exists()]
        if taken or len(set(moves.values())) < len(moves):
            raise StateError(f"two ledgers in {folder} would be of one person; nothing was changed")
        for file, target in moves.items():
            _rename(file, target)
        return len(moves)


@contextlib.contextmanager
def _to_itself(folder: Path) -> Iterator[None]:
    """The folder, which no other process may use meanwhile."""
    with contextlib.ExitStack() as held:
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            held.enter_context(locked(folder / "lock", wait=False))
            clear_unfinished(folder)
            for unfinished in folder.glob(UNFINISHED_BEFORE):
                unfinished.unlink(missing_ok=True)
        except BlockingIOError:
            raise StateError(
                f"the state folder {folder} is in use by another process; each party needs its own"
            ) from None
        except OSError as error:
            raise StateError(
                f"the state folder {folder} cannot be used: {error.strerror}"
            ) from None
        yield
