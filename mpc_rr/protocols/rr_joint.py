"""RR-Joint (paper 000, Protocol 2): the whole record is randomized as one value.

1. The study file says what a record may spend (``epsilon``), or how probably it stays as it is, to
   become a near one otherwise (``stay``; paper 003 §6.2).
2. Each party keeps its whole record with the probability that follows, else replaces all of it by
   a uniform one (with ``stay``, by one that rather differs in few answers), and reports the outcome
   (`mpc_rr.protocols.collection`).
3. Whoever has the reports estimates the table of any attributes in closed form.

The record is one value: no attribute has a budget of its own.
"""

from mpc_rr.errors import InputError
from mpc_rr.estimation.designs import Design, rr_joint, rr_nearby
from mpc_rr.protocols.collection import FixedDesign
from mpc_rr.schema import Schema


class RRJoint(FixedDesign, frozen=True, tag="rr_joint"):
    """``[protocol] name = "rr_joint"`` with ``epsilon`` or ``stay``."""

    epsilon: float | None = None
    stay: float | None = None

    def design(self, schema: Schema) -> Design:
        """Step 1."""
        if (self.epsilon is None) == (self.stay is None):
            raise InputError("give either epsilon or stay")
        if self.stay is not None:
            return rr_nearby(schema.sizes, [range(len(schema.sizes))], self.stay)
        assert self.epsilon is not None
        if not self.epsilon > 0:
            raise InputError(f"epsilon must be positive, not {self.epsilon}")
        return rr_joint(schema.sizes, self.epsilon)
