"""What a first stage found, of a study whose second stage came to nothing."""

import hashlib

import msgspec

from mpc_rr.errors import out_of
from mpc_rr.estimation.estimates import Estimates
from mpc_rr.estimation.matrix import Array
from mpc_rr.estimation.uncertainty import Uncertainty
from mpc_rr.publication.ending import Ending, Setting
from mpc_rr.publication.parts import Note, Participation, Publication

FIRST_STAGE = b"\1"
"""Makes its digest longer than one that a coordinator announces: nobody who has the first stage's
result can be told that others, who have the second's, have the same."""


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
        numbers = (self.asked, self.answered, self.fewest)
        parts = (self.found.digest, self.answers_digest, *(str(n).encode() for n in numbers))
        whole = b"".join(len(part).to_bytes(8) + part for part in parts)
        return FIRST_STAGE + hashlib.sha256(b"mpc-rr first stage\0" + whole).digest()

    def from_reports(self) -> Estimates | None:
        """Those of the first stage."""
        return self.found.from_reports()

    def estimate_of(self, attributes: tuple[int, ...]) -> tuple[Array, Uncertainty] | None:
        """That of the first stage."""
        return self.found.estimate_of(attributes)

    def participation(self, study: Setting) -> Participation:
        """Those of the first stage."""
        people = self.found.participation(study)
        return msgspec.structs.replace(people, unconfirmed=self.unconfirmed)

    def publish(self, study: Setting) -> Publication:
        """What the first stage publishes, with a warning."""
        made = self.found.publish(study)
        warning = Note(
            text="The second stage came to nothing: "
            f"{out_of(self.answered, self.asked, study.expected)} answered in time, at least "
            f"{self.fewest} are needed. This is what the first stage "
            "found; what it cost each party is that of both stages, for anyone who answered both. "
            "Whether its answer is missing, each party can see with its receipt; why, nobody can "
            "tell.",
            severity="warning",
        )
        return msgspec.structs.replace(made, notes=(warning, *made.notes))
