"""Adding up vectors of counts, by the sum that suits the number of parties.

A few parties use the paper's secure sum: any number of them may collude, but all must stay. From a
few dozen on they use the masked sum, which scales and forgives parties that leave.
"""

from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from mpc_rr.errors import InputError, Refused
from mpc_rr.estimation.pairs import Counts
from mpc_rr.network.envelope import Message
from mpc_rr.network.session import AnySession, CoordinatorSession, PartySession
from mpc_rr.network.vectors import Residues, packed_bytes
from mpc_rr.protocols.interface import StudyProtocol
from mpc_rr.protocols.sums.masked import sum as masked_sum
from mpc_rr.protocols.sums.masked.setup import MaskingOptions, set_up_coordinator, set_up_party
from mpc_rr.protocols.sums.masked.sum import MaskedTotal, masked_sum_coordinator, masked_sum_party
from mpc_rr.protocols.sums.secure_sum import (
    ConfidedPartial,
    Partial,
    Share,
    confided_sum_party,
    secure_sum_coordinator,
    secure_sum_party,
)

MOST_FOR_SECURE_SUM = 40
PARCEL_OVERHEAD_BYTES = 512
"""More than an envelope's header, signature and sealing add to a share."""


@dataclass(frozen=True)
class Summed:
    """A sum modulo a number, over how many it is, and who was lost on the way, at which step."""

    values: Counts
    n: int
    modulus: int
    lost: dict[str, str] = field(default_factory=dict)


class Summing(StudyProtocol, frozen=True):
    """A protocol that adds up one vector of each party.

    ``sum``: ``secure_sum`` (the paper's) or ``masked_sum``; by the number of parties if not given.
    ``masking``: what masks must withstand.
    """

    sum: Literal["secure_sum", "masked_sum"] | None = None
    masking: MaskingOptions | None = None

    def masked(self, parties: int) -> bool:
        """Whether so many parties use the masked sum."""
        if self.sum is None:
            return parties > MOST_FOR_SECURE_SUM
        return self.sum == "masked_sum"

    @property
    def options(self) -> MaskingOptions:
        """What masks must withstand."""
        return self.masking or MaskingOptions()

    def rounds_of_sum(self, parties: int, *, confided: bool) -> tuple[type[Message], ...]:
        """The messages of the sum of so many parties."""
        if self.masked(parties):
            vouching = self.options.coordinator == "lying"
            return masked_sum.rounds(confided=confided, vouching=vouching)
        return (Share, ConfidedPartial if confided else Partial)

    def check_sum(self, parties: int) -> None:
        """`InputError` if the options do not suit so many parties."""
        if self.masked(parties):
            self.options.plan(parties)
        elif self.masking is not None:
            raise InputError('[protocol.masking] goes with sum = "masked_sum", and only with it')

    def largest_sum_message(self, parties: int, cells: int, modulus: int) -> int:
        """An upper bound on any message of the sum."""
        if self.masked(parties):
            return masked_sum.largest_message_bytes(parties, cells, _bits(modulus), self.options)
        return parties * (packed_bytes(cells, modulus) + PARCEL_OVERHEAD_BYTES)

    def crowd(self, session: AnySession) -> int:
        """The parties by whom sizes are reckoned: all that may come, or those in the roster."""
        return session.most if self.masked(session.most) else len(session.parties)

    async def add_party(
        self,
        session: PartySession,
        vector: Residues,
        modulus: int,
        *,
        confided: bool = False,
        least_others: int = 0,
    ) -> Summed:
        """A party's part in the sum; if it is confided, only the number of parties comes back.

        ``least_others``: with fewer, among whom a lying coordinator must leave it, it refuses.
        """
        if self.masked(session.most):
            seat = await set_up_party(session.sub("enrolment"), self.options)
            if seat.plan.others < least_others:
                raise Refused(
                    f"so many have left that a lying coordinator could have my vector among "
                    f"{seat.plan.others} others; {least_others} are needed; it was not sent"
                )
            masked = await masked_sum_party(
                session.sub("sum"), seat, vector, _bits(modulus), confided=confided
            )
            values = np.zeros(0, np.int64)
            if isinstance(masked, MaskedTotal):
                values = masked.values.astype(np.int64)
            return Summed(values, masked.n, 1 << _bits(modulus))
        sums = session.sub("secure_sum")
        if confided:
            await confided_sum_party(sums, vector, modulus)
            return Summed(np.zeros(0, np.int64), len(session.parties), modulus)
        total = await secure_sum_party(sums, vector, modulus)
        return Summed(total.astype(np.int64), len(session.parties), modulus)

    async def add_coordinator(
        self, session: CoordinatorSession, cells: int, modulus: int, *, confided: bool = False
    ) -> Summed:
        """The coordinator's part in the sum."""
        if self.masked(session.most):
            enrolled = await set_up_coordinator(session.sub("enrolment"), self.options)
            found = await masked_sum_coordinator(
                session.sub("sum"), enrolled, cells, _bits(modulus), confided=confided
            )
            values = found.values.astype(np.int64)
            return Summed(values, len(found.counted), 1 << _bits(modulus), enrolled.lost)
        sums = session.sub("secure_sum")
        total = await secure_sum_coordinator(sums, cells, modulus, confided=confided)
        return Summed(total.astype(np.int64), len(session.parties), modulus)


def _bits(modulus: int) -> int:
    return max((modulus - 1).bit_length(), 1)
