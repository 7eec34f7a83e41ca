"""The registrar's register: whom it has admitted to which study, with which key, and withdrawn.

One person has one standing admission to a study. Which names are one person's, and which only look
it, is decided in `mpc_rr/agents/person_names.py`.
"""

import re
from collections.abc import Callable

import msgspec

from mpc_rr.agents.person_names import check_name, folded, looks
from mpc_rr.crypto.admission import SigningKey, Withdrawals, requested
from mpc_rr.crypto.identity import is_sound_key
from mpc_rr.errors import InputError
from mpc_rr.study.definition import Study

REGISTRAR, VERSION = "mpc-rr registrar", 2
KEY_DIGITS, REQUEST = 64, re.compile(r"([0-9a-f]{64})\.([0-9a-f]{128})")


class Entry(msgspec.Struct, omit_defaults=True):
    """An admission: of whom, as the registrar wrote it, and of which key."""

    person: str
    key: str
    withdrawn: bool = False


class _File(msgspec.Struct, kw_only=True):
    kind: str
    version: int = 1
    key: str
    register: dict[str, list[Entry]] = {}
    admitted: dict[str, dict[str, str]] | msgspec.UnsetType = msgspec.UNSET
    """In files of version 1: the key of each person, by her folded name."""

    def __repr__(self) -> str:
        return "_File(…)"


def request_text(key: SigningKey, study: Study, person: str | None = None) -> str:
    """What a person gives to a study's registrar: her key, and that it is hers.

    With her name nobody else can be admitted with it.
    """
    assert study.registrar_key is not None
    if person is not None:
        check_name(person)
    signature = key.request(study.digest, study.registrar_key, folded(person or ""))
    return f"{key.public.hex()}.{signature.hex()}"


class Register:
    """A registrar's key, and whom it has admitted with it. The key shows in no repr."""

    def __init__(self, key: SigningKey, entries: dict[str, list[Entry]] | None = None) -> None:
        self.key = key
        self._entries = entries or {}

    def __repr__(self) -> str:
        return f"Register({self.key!r})"

    @classmethod
    def read(cls, text: bytes) -> "Register":
        """A registrar's file, of version 1 or 2; `ValueError` if it is none."""
        try:
            file = msgspec.json.decode(text, type=_File)
        except RecursionError:
            raise ValueError("not a registrar's file") from None
        if file.kind != REGISTRAR or file.version not in (1, VERSION):
            raise ValueError("not a registrar's file")
        entries = file.register
        if file.version == 1:
            if file.admitted is msgspec.UNSET:
                raise ValueError("not a registrar's file")
            entries = {
                study: [Entry(person, key) for person, key in known.items()]
                for study, known in file.admitted.items()
            }
        return cls(SigningKey(bytes.fromhex(file.key)), entries)

    def text(self) -> str:
        """What its file says. It has the private key."""
        file = _File(
            kind=REGISTRAR, version=VERSION, key=self.key.private_hex(), register=self._entries
        )
        return msgspec.json.format(msgspec.json.encode(file)).decode() + "\n"

    def admit(
        self,
        study: Study,
        person: str,
        request: str,
        *,
        replace: bool = False,
        another: Callable[[str], bool],
    ) -> tuple[str, str]:
        """Enter one person, however she is written, and sign her key: that key, her admission.

        ``replace`` withdraws what she was admitted with before. ``another`` is asked, with the name
        of somebody who stands in the register and looks alike, whether this is another person.
        """
        entries = self._of(study)
        check_name(person)
        public = self._requested(study, request, folded(person))
        if public in {entry.key for entry in entries if entry.withdrawn}:
            raise InputError(
                "the admission of this key has been withdrawn; anyone who is to take part needs "
                "another key, from a new pass (mpc-rr enrol)"
            )
        standing = [entry for entry in entries if not entry.withdrawn]
        of_key = [entry for entry in standing if entry.key == public]
        if of_key and folded(of_key[0].person) != folded(person):
            raise InputError(
                f"this key is that of {of_key[0].person!r}, who has been admitted before"
            )
        if not of_key:
            self._check_new(standing, person, replace=replace, another=another)
            for entry in standing:
                entry.withdrawn |= folded(entry.person) == folded(person)
            entries.append(Entry(" ".join(person.split()), public))
        return public, self.key.admit(study.digest, bytes.fromhex(public)).hex()

    def withdraw(self, study: Study, person: str) -> str:
        """Withdraw the standing admission of a person: her key."""
        for entry in self._of(study):
            if not entry.withdrawn and folded(entry.person) == folded(person):
                entry.withdrawn = True
                return entry.key
        raise InputError(
            f"{person!r} has no admission to study {study.name!r} that could be withdrawn"
        )

    def withdrawals(self, study: Study) -> Withdrawals:
        """The signed list of what has been withdrawn so far; its number is how many."""
        keys = [bytes.fromhex(entry.key) for entry in self._of(study) if entry.withdrawn]
        return self.key.withdraw(study.digest, len(keys), keys)

    def entries(self, study: Study) -> list[Entry]:
        """All admissions to a study, withdrawn ones included, in the order they were made."""
        return list(self._of(study))

    def _of(self, study: Study) -> list[Entry]:
        if study.registrar != self.key.public.hex():
            raise InputError(
                f"this is not the key of the study's registrar; to be it, the study file must say, "
                f'before its first [section]: registrar = "{self.key.public.hex()}"'
            )
        return self._entries.setdefault(study.digest.hex(), [])

    def _requested(self, study: Study, request: str, name: str) -> str:
        """The key in a request to this registrar, of somebody who has it, and no other name."""
        if re.fullmatch(f"[0-9a-f]{{{KEY_DIGITS}}}", request):
            raise InputError(
                "--request is a bare key, which might be anyone's; mpc-rr enrol of this version "
                "prints a request: the key, a point, and a signature"
            )
        parts = REQUEST.fullmatch(request)
        if parts is None:
            raise InputError(
                "--request takes the line that `mpc-rr enrol` printed: 64 hexadecimal digits, a "
                "point, 128 more"
            )
        public, signature = map(bytes.fromhex, parts.groups())
        if not is_sound_key(public):
            raise InputError(
                "--request: anyone could sign for this key; `mpc-rr enrol` makes no such"
            )
        asked = (self.key.public, study.digest, public, signature)
        if not (requested(*asked) or requested(*asked, name)):
            raise InputError(
                "--request does not show that the person who asks has this key: it was made for "
                "another study, another version of its file, another registrar or a person of "
                "another name (mpc-rr enrol --person), or was changed on the way"
            )
        return public.hex()

    @staticmethod
    def _check_new(
        standing: list[Entry], person: str, *, replace: bool, another: Callable[[str], bool]
    ) -> None:
        """One person, one admission; whoever looks like another is asked about."""
        same = [entry for entry in standing if folded(entry.person) == folded(person)]
        if same and not replace:
            raise InputError(
                f"{same[0].person!r} has been admitted to this study before, with another key "
                "(capitals and spaces do not count): --replace withdraws that key; another person "
                "of that name needs something to be told apart by, such as a member number"
            )
        if replace and not same:
            raise InputError(f"--replace: {person!r} has no admission that could be replaced")
        for entry in standing:
            alike = entry not in same and looks(entry.person) & looks(person)
            if alike and not another(entry.person):
                raise InputError(
                    f"{person!r} looks like {entry.person!r}, who has been admitted to this study "
                    "before; if it is another person, say so with --another-person"
                )
