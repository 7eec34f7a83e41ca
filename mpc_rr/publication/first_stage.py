"""What a first stage found, of a study whose second stage came to nothing."""

import hashlib

import msgspec

from mpc_rr.publication.ending import Ending, Setting
from mpc_rr.publication.parts import Note, Participation, Publication


class FirstStage(Ending, frozen=True):
    """The result of the first stage, and why there is no other."""

    found: Ending
    asked: int
    """How many were asked in the second stage."""
    answered: int
    fewest: int
    """How many would have been needed."""
    answers_digest: bytes
    """Of the answers that did come, as the coordinator announced it."""

    @property
    def digest(self) -> bytes:
        """What parties compare: the first stage's result, and how the second ended."""
        ended = f"{self.asked}/{self.answered}/{self.fewest}".encode()
        parts = (b"mpc-rr first stage\0", self.found.digest, self.answers_digest, ended)
        return hashlib.sha256(b"".join(parts)).digest()

    def participation(self, study: Setting) -> Participation:
        """Those of the first stage."""
        people = self.found.participation(study)
        return msgspec.structs.replace(people, unconfirmed=self.unconfirmed)

    def publish(self, study: Setting) -> Publication:
        """What the first stage publishes, with a warning."""
        made = self.found.publish(study)
        warning = Note(
            text=f"The second stage came to nothing: {self.answered} of {self.asked} parties "
            f"answered in time, at least {self.fewest} are needed. This is what the first stage "
            "found; what it cost each party is that of both stages, for whoever answered both.",
            severity="warning",
        )
        return msgspec.structs.replace(made, notes=(warning, *made.notes))
