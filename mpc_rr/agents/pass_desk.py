"""The coordinator's desk for passes, where a study has a registrar."""

from collections.abc import Collection
from dataclasses import dataclass

from mpc_rr.agents.roster import member_pass_fault
from mpc_rr.crypto.admission import Pass
from mpc_rr.crypto.identity import PublicIdentity
from mpc_rr.network.lifecycle import ShowPass
from mpc_rr.network.sealed import Opened
from mpc_rr.study.definition import Study

FAULTS_KEPT = 1024
_Guest = tuple[str, PublicIdentity]
"""Under which name, and with which keys, somebody comes."""


@dataclass(frozen=True)
class _Shown:
    """A pass, and who showed it."""

    guest: _Guest
    shown: Pass
    raw: bytes


class PassDesk:
    """Keeps passes until their owners join, and sees that nobody joins twice.

    A pass is kept for the name and the keys with which it was shown: one shown under another's name
    harms nobody. Of each person the last is kept, and the one with which she has joined. Who has
    shown one person's pass stands for her, and cannot show a second person's beside it.
    """

    def __init__(self, study: Study, withdrawn: Collection[bytes] = ()) -> None:
        self._study, self._withdrawn = study, withdrawn
        self._waiting: dict[bytes, _Shown] = {}
        self._joined: dict[bytes, _Shown] = {}
        """Both by the keys of the persons."""
        self._persons: dict[_Guest, bytes] = {}
        self._faults: dict[_Guest, str] = {}

    def show(self, opened: Opened, run: bytes) -> None:
        """Keep a pass, or why it is none."""
        message = opened.message(ShowPass)
        guest = (opened.envelope.header.sender, message.identity)
        fault = member_pass_fault(
            self._study, run, self._withdrawn, message.identity, message.shown
        )
        if fault is not None:
            self._faults[guest] = fault
            if len(self._faults) > FAULTS_KEPT:
                del self._faults[next(iter(self._faults))]
            return
        person = message.shown.person
        joined, before = self._joined.get(person), self._waiting.get(person)
        if joined is not None and joined.guest == guest:
            return
        if self._persons.get(guest, person) != person:
            return
        if before is not None:
            self._persons.pop(before.guest, None)
        self._waiting[person] = _Shown(guest, message.shown, opened.raw)
        self._persons[guest] = person

    def fault_of(self, name: str, identity: PublicIdentity) -> str | None:
        """Why what somebody has shown is no pass, if so."""
        return self._faults.get((name, identity))

    def lacks(self, name: str, identity: PublicIdentity) -> bool:
        """Whether somebody must show a pass yet."""
        return self._study.registrar is not None and self._of(name, identity) is None

    def joined_as(self, name: str, identity: PublicIdentity) -> str | None:
        """Under which name the person behind somebody has joined before, if she has."""
        person = self._persons.get((name, identity))
        before = None if person is None else self._joined.get(person)
        return None if before is None else before.guest[0]

    def may_be_one(self, one: _Guest, other: _Guest) -> bool:
        """Whether two may be the same person; where there are passes, whether they are."""
        if self._study.registrar is None:
            return True
        return self._persons.get(one) == self._persons.get(other)

    def join(self, name: str, identity: PublicIdentity) -> None:
        """Note that a person takes part."""
        person = self._persons.get((name, identity))
        if person is not None and person in self._waiting:
            self._joined[person] = self._waiting.pop(person)

    def leave(self, name: str, identity: PublicIdentity) -> None:
        """Note that she takes part no longer, so that she may come again."""
        person = self._persons.get((name, identity))
        if person is not None and person in self._joined:
            left = self._joined.pop(person)
            if person in self._waiting:
                self._persons.pop(left.guest, None)
            else:
                self._waiting[person] = left

    def shown_by(self, name: str, identity: PublicIdentity) -> Pass | None:
        """The pass that somebody has shown, if any."""
        found = self._of(name, identity)
        return None if found is None else found.shown

    def raw(self, name: str, identity: PublicIdentity) -> list[bytes]:
        """The signed message that showed it, for the transcript."""
        found = self._of(name, identity)
        return [] if found is None else [found.raw]

    def _of(self, name: str, identity: PublicIdentity) -> _Shown | None:
        guest = (name, identity)
        person = self._persons.get(guest)
        if person is None:
            return None
        for kept in (self._joined.get(person), self._waiting.get(person)):
            if kept is not None and kept.guest == guest:
                return kept
        return None
