"""Noise that parties add inside a sum: of how many it is, and against how many it holds."""

import math

from mpc_rr.errors import InputError
from mpc_rr.network.session import AnySession
from mpc_rr.privacy.graph_parameters import LEAST_OTHERS
from mpc_rr.protocols.sums.choice import Summing
from mpc_rr.publication.ending import Setting

MOST_CORRUPT = 0.5
"""The share of parties that noise withstands unless the study says otherwise."""


class NoisySumming(Summing, frozen=True):
    """A sum to which parties may add noise.

    ``noise_epsilon``: what is published is (ε, δ)-private, even if a share ``noise_corrupt`` of the
    parties pool all they know.
    """

    noise_epsilon: float | None = None
    noise_corrupt: float | None = None

    def check_noise(self, study: Setting) -> None:
        """`InputError` if noise could not be what it promises."""
        if self.noise_corrupt is not None and not 0 <= self.noise_corrupt < 1:
            raise InputError(f"noise_corrupt lies between 0 and 1, not {self.noise_corrupt}")
        if self.noise_epsilon is None:
            if self.noise_corrupt is not None:
                raise InputError("noise_corrupt goes with noise_epsilon, and only with it")
            return
        parties = study.parties
        others = self.options_in(study).plan(parties).others if self.malicious(study) else None
        if others is not None and others < LEAST_OTHERS:
            raise InputError(
                f"with {parties} parties a malicious coordinator could get sums over fewer than "
                f'{LEAST_OTHERS + 1}, with too little noise; take sum = "secure_sum", more '
                'parties, or trust it with coordinator = "semi-honest" in [protocol.masking]'
            )

    def corrupt(self, parties: int) -> int:
        """How many of so many parties the noise withstands, if they pool what they know."""
        share = MOST_CORRUPT if self.noise_corrupt is None else self.noise_corrupt
        return math.floor(share * parties)

    def withstands(self, study: Setting) -> int:
        """How many may pool what they know, in a run in which no more come than must.

        The noise is still there if so many do, and the masks are still on.
        """
        masks = self.masks_withstand(study)
        if masks is None:
            known = study.members is not None
            return self.corrupt(study.parties if known else study.fewest)
        return min(masks, self.corrupt(study.expected))

    def honest(self, parties: int, staying: int | None, *, malicious: bool) -> int:
        """How many surely add their noise and tell nobody.

        ``staying``: so many of the parties surely stay until the end; all, if not given.
        ``malicious``: the coordinator of a masked sum may be.
        """
        found = max(1, (staying or parties) - self.corrupt(parties))
        # A malicious coordinator can have sums over groups of honest parties, each with its share.
        return min(found, LEAST_OTHERS + 1) if malicious else found

    def modulus_for(self, parties: int, least: int) -> int:
        """At least so much; masks: a power of two."""
        return 1 << (least - 1).bit_length() if self.masked(parties) else least

    def least_others(self, session: AnySession) -> int:
        """Among how many others a party that adds noise must be sure to be."""
        wanted = self.noise_epsilon is not None and self.malicious(session)
        return LEAST_OTHERS if wanted else 0
