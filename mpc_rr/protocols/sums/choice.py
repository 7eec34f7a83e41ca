"""Adding up vectors of counts, by the sum that suits the number of parties.

A few parties use the paper's secure sum: any number of them may collude, but all must stay. From a
few dozen on they use the masked sum, which scales and forgives parties that leave.
"""

import math
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Literal, Self

import msgspec
import numpy as np

from mpc_rr.errors import InputError, Refused
from mpc_rr.estimation.pairs import Counts
from mpc_rr.network.envelope import Message
from mpc_rr.network.session import AnySession, CoordinatorSession, PartySession
from mpc_rr.network.vectors import Residues, packed_bytes
from mpc_rr.privacy.disclosures import Caution
from mpc_rr.privacy.graph_parameters import FEW_ENOUGH
from mpc_rr.protocols.interface import StudyProtocol
from mpc_rr.protocols.prospects import NOT_ADDED_UP, Prospect
from mpc_rr.protocols.sums.masked import sum as masked_sum
from mpc_rr.protocols.sums.masked.setup import MaskingOptions, set_up_coordinator, set_up_party
from mpc_rr.protocols.sums.masked.sum import (
    MaskedTotal,
    Vouchers,
    masked_sum_coordinator,
    masked_sum_party,
)
from mpc_rr.protocols.sums.secure_sum import (
    ConfidedPartial,
    Partial,
    Share,
    confided_sum_party,
    secure_sum_coordinator,
    secure_sum_party,
)
from mpc_rr.publication.ending import Setting
from mpc_rr.publication.parts import Note

MOST_FOR_SECURE_SUM = 40
PARCEL_OVERHEAD_BYTES = 512
"""More than an envelope's header, signature and sealing add to a share."""
UNPROVED = Note(
    text="Nobody has to prove that they added exactly one record. One dishonest party can move the "
    "counts by any number of people, as long as they remain possible (docs/threat-model.md)."
)
OPEN_MASKS = Caution(
    "In this open study a coordinator that deviates from the protocol can learn any one record: "
    "the masked sum is secure against a semi-honest one only.",
    "a registrar (registrar = … in the study file)",
)
TRUSTED = Caution(
    "A coordinator that deviates from the protocol can learn any one record: the study takes it to "
    "be semi-honest.",
    'coordinator = "malicious" in [protocol.masking]',
)
LEAST_CORRUPT = 0.05
"""Below such a share the masks are said to withstand few."""
FIRST_FEW = 12
"""Of many parties that may remain, so many numbers are asked after, from the fewest on."""


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

    def options_in(self, place: Setting | AnySession) -> MaskingOptions:
        """What masks must withstand in this study."""
        return (self.masking or MaskingOptions()).resolved(registrar=place.registrar)

    def malicious(self, place: Setting | AnySession) -> bool:
        """Whether masks must withstand a coordinator that does whatever it likes."""
        most = place.expected if isinstance(place, Setting) else place.most
        return self.masked(most) and self.options_in(place).malicious

    def as_recorded(self, steps: Collection[str]) -> Self:
        """With vouchers where there are some: once they were the rule in open studies, too."""
        options = self.masking or MaskingOptions()
        if options.coordinator is not None or Vouchers.step not in steps:
            return self
        vouching = msgspec.structs.replace(options, coordinator="malicious")
        return msgspec.structs.replace(self, masking=vouching)

    def notes(self, study: Setting) -> tuple[Note, ...]:
        """What a sum does not promise."""
        exposed = (Note(text=str(why), severity="warning") for why in self._exposed(study))
        return UNPROVED, *exposed

    def cautions(self, study: Setting) -> list[Caution]:
        """Among them, what a coordinator could do in an open study."""
        return [*super().cautions(study), *self._exposed(study)]

    def _exposed(self, study: Setting) -> list[Caution]:
        """Where a coordinator must be trusted to follow the protocol."""
        most = self.masks_withstand(study)
        if most is None:
            return []
        options, found = self.options_in(study), []
        if options.corrupt < LEAST_CORRUPT:
            text = (
                f"[protocol.masking] has corrupt = {options.corrupt:g}: what a party adds stays "
                f"hidden as long as at most {most:,} of the {study.expected:,} parties pool what "
                "they know."
            )
            found.append(Caution(text, f"corrupt = {LEAST_CORRUPT} or more"))
        if not study.registrar:  # nobody can tell other parties' keys from the coordinator's own
            return [*found, OPEN_MASKS]
        if not options.malicious:
            return [*found, TRUSTED]
        group = self._least_group(study)
        if group < study.fewest:
            text = (
                f"The minimum of {study.fewest:,} parties binds only a coordinator that follows "
                f"the protocol: one that deviates can have totals over {group:,} parties."
            )
            found.append(Caution(text, 'sum = "secure_sum" in [protocol], for which all must stay'))
        return found

    def masks_withstand(self, study: Setting) -> int | None:
        """How many parties may pool what they know; None: all others, in the paper's sum."""
        if not self.masked(study.expected):
            return None
        return self.options_in(study).withstands(study.fewest, study.expected)

    def trusts_coordinator(self, study: Setting) -> bool:
        """Whether what a party adds is hidden only if the coordinator follows the protocol."""
        return self.masked(study.expected) and not self.malicious(study)

    def _least_group(self, study: Setting) -> int:
        """Over how few parties there may be a total, before it is known who comes."""
        if not self.malicious(study):
            return study.fewest
        return min(study.fewest, self._others_in_a_group(study) + 1)

    def total_over(self, study: Setting) -> dict[str, int]:
        """Over how many parties a total is to be, and over how few it may be."""
        if study.counted is not None:
            return {"expected": study.counted, "least": study.counted}
        return {"expected": study.expected, "least": self._least_group(study)}

    def rounds_of_sum(self, study: Setting, *, confided: bool) -> tuple[type[Message], ...]:
        """The messages of the sum."""
        if self.masked(study.expected):
            return masked_sum.rounds(confided=confided, vouching=self.malicious(study))
        return (Share, ConfidedPartial if confided else Partial)

    def check_sum(self, study: Setting) -> None:
        """`InputError` if the options do not suit the study."""
        if self.masked(study.expected):
            options = self.options_in(study)
            if options.malicious and not study.registrar:
                raise InputError(
                    f'coordinator = "{options.coordinator}" in [protocol.masking] needs a '
                    "registrar: in an open study nobody can tell other parties' keys from the "
                    "coordinator's own. Name a registrar (mpc-rr registrar new), or trust the "
                    'coordinator to follow the protocol: coordinator = "semi-honest"'
                )
            options.plan(study.expected)
        elif self.masking is not None:
            raise InputError('[protocol.masking] goes with sum = "masked_sum", and only with it')

    def prospects(self, study: Setting) -> list[Prospect]:
        """A masked sum that could not go on with as few as the study would."""
        if not self.masked(study.expected):
            return []
        needed = next(n for n in range(study.fewest, study.expected + 1) if self._adds(study, n))
        if needed == study.fewest:
            return []
        text = (
            f"minimum = {study.fewest:,} says that the study goes on with as few, but a masked sum "
            f"with these options needs {needed:,} of the {study.expected:,} parties: with fewer it "
            "ends without a result. A smaller corrupt or dropout in [protocol.masking] lets it go "
            "on with fewer."
        )
        in_vain = NOT_ADDED_UP.format(needed, study.expected, study.fewest)
        return [Prospect(text, in_vain)]

    def _adds(self, study: Setting, parties: int) -> bool:
        """Whether a masked sum can be over so many of those who are expected."""
        try:
            self.options_in(study).plan(parties, study.expected)
        except InputError:
            return False
        return True

    def hidden_among(self, study: Setting) -> int:
        """Among how many honest parties, itself included, a party's vector is surely hidden.

        Before a run, if no more stay than must; after it, of those who are counted. Less those who
        are assumed to pool what they know: in a masked sum ``corrupt``, in the paper's one party,
        because whoever looks may be one. (That one withstands any number of them, but each that
        colludes is one less to hide among.)
        """
        counted = study.fewest if study.counted is None else study.counted
        if not self.masked(study.expected):
            return max(1, counted - 1)
        options = self.options_in(study)
        honest = counted - max(1, math.floor(options.corrupt * study.expected))
        if honest > 1 and options.malicious:
            honest = min(honest, self._others_in_a_group(study) + 1)
        return max(1, honest)

    def _others_in_a_group(self, study: Setting) -> int:
        """Among how many others a malicious coordinator must leave a party.

        Before a run, however many of those expected remain: with one party more it may be fewer,
        because shares are rounded. None, if the fewest do not add up anything.
        """
        remain = range(study.fewest, study.expected + 1)
        if study.counted is not None:
            remain = range(study.counted, study.counted + 1)
        elif study.expected > FEW_ENOUGH:
            remain = remain[:FIRST_FEW]
        options, found = self.options_in(study), []
        for parties in remain:
            try:
                found.append(options.plan(parties, study.expected).others)
            except InputError:
                if not found:
                    return 0
        return min(found)

    def largest_sum_message(self, study: Setting, cells: int, modulus: int) -> int:
        """An upper bound on any message of the sum."""
        parties = study.expected
        if self.masked(parties):
            options = self.options_in(study)
            return masked_sum.largest_message_bytes(parties, cells, _bits(modulus), options)
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

        ``least_others``: with fewer, among whom a malicious coordinator must leave it, it refuses.
        """
        if self.masked(session.most):
            seat = await set_up_party(session.sub("enrolment"), self.options_in(session))
            if seat.plan.others < least_others:
                raise Refused(
                    "too many have left: a malicious coordinator could have my vector among "
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
            options = self.options_in(session)
            enrolled = await set_up_coordinator(session.sub("enrolment"), options)
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
