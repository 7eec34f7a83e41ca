"""RR-Independent (paper 000, Protocol 1): each attribute is randomized by itself.

1. The study file says how likely a true answer is kept (``keep``), or what a record may spend in
   all (``epsilon``); single attributes may have a budget or a matrix of their own (``each``).
   Everybody has the same file; no coordinator can change it.
2. Each party keeps each answer with its probability, else replaces it by a uniform one, or draws
   from the row of its matrix, and reports the outcome (`mpc_rr.protocols.collection`).
3. Whoever has the reports estimates: marginals by Eq. (2), pairs and more by what
   ``docs/estimation.md`` recommends, or as the paper does, by RR-Adjustment.
"""

from mpc_rr.estimation.designs import Design, one_by_one
from mpc_rr.protocols.budgets import Own, by_budget, matrices_of
from mpc_rr.protocols.collection import FixedDesign
from mpc_rr.schema import Schema


class RRIndependent(FixedDesign, frozen=True, tag="rr_independent"):
    """``[protocol] name = "rr_independent"`` with either ``keep`` or ``epsilon``, and ``each``."""

    keep: float | None = None
    epsilon: float | None = None
    each: dict[str, Own] | None = None

    def design(self, schema: Schema) -> Design:
        """Step 1."""
        return one_by_one(matrices_of(schema, self.each, by_budget(self.keep, self.epsilon)))
