"""The coordinator's desk for passes, where a study has a registrar."""

from mpc_rr.agents.roster import member_pass_fault
from mpc_rr.crypto.admission import Pass
from mpc_rr.crypto.identity import PublicIdentity
from mpc_rr.network.lifecycle import ShowPass
from mpc_rr.network.sealed import Opened
from mpc_rr.study.definition import Study


class PassDesk:
    """Keeps passes until their owners join, and sees that nobody joins twice.

    A pass is kept for the identity that showed it: one shown under another's name harms nobody.
    """

    def __init__(self, study: Study) -> None:
        self._study = study
        self._passes: dict[PublicIdentity, tuple[Pass, bytes]] = {}
        self._joined: set[bytes] = set()
        """The keys of the persons who have."""

    def show(self, opened: Opened, run: bytes) -> str | None:
        """Keep a pass; or say why it is none."""
        message = opened.message(ShowPass)
        fault = member_pass_fault(self._study, run, message.identity, message.shown)
        if fault is None:
            self._passes.setdefault(message.identity, (message.shown, opened.raw))
        return fault

    def lacks(self, identity: PublicIdentity) -> bool:
        """Whether an identity must show a pass yet."""
        return self._study.registrar is not None and identity not in self._passes

    def takes_part(self, identity: PublicIdentity) -> bool:
        """Whether the person behind an identity has joined before, as another."""
        shown = self.shown_by(identity)
        return shown is not None and shown.person in self._joined

    def join(self, identity: PublicIdentity) -> None:
        """Note that a person takes part."""
        shown = self.shown_by(identity)
        if shown is not None:
            self._joined.add(shown.person)

    def shown_by(self, identity: PublicIdentity) -> Pass | None:
        """The pass that somebody has shown, if any."""
        return self._passes[identity][0] if identity in self._passes else None

    def raw(self, identity: PublicIdentity) -> list[bytes]:
        """The signed message that showed it, for the transcript."""
        return [self._passes[identity][1]] if identity in self._passes else []
