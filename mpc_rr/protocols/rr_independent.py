"""RR-Independent (paper 000, Protocol 1): each attribute is randomized by itself.

1. The study file says how likely a true answer is kept (``keep``), or what a record may spend in
   all (``epsilon``). Everybody has the same file; no coordinator can change it.
2. Each party keeps each answer with that probability, else replaces it by a uniform one, and
   reports the outcome (`mpc_rr.protocols.collection`).
3. Whoever has the reports estimates: marginals by Eq. (2), pairs and more by what
   ``docs/estimation.md`` recommends, or as the paper does, by RR-Adjustment.
"""

from mpc_rr.estimation.designs import Design, rr_independent
from mpc_rr.estimation.planning import chosen_keep
from mpc_rr.protocols.collection import FixedDesign
from mpc_rr.schema import Schema


class RRIndependent(FixedDesign, frozen=True, tag="rr_independent"):
    """``[protocol] name = "rr_independent"`` with either ``keep`` or ``epsilon``."""

    keep: float | None = None
    epsilon: float | None = None

    def design(self, schema: Schema) -> Design:
        """Step 1."""
        return rr_independent(schema.sizes, chosen_keep(self.keep, self.epsilon, schema.sizes))
