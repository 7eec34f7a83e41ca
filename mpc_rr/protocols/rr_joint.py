"""RR-Joint (paper 000, Protocol 2): the whole record is randomized as one value.

1. The study file says what a record may spend (``epsilon``).
2. Each party keeps its whole record with the probability that follows, else replaces all of it by
   a uniform one, and reports the outcome (`mpc_rr.protocols.collection`).
3. Whoever has the reports estimates the table of any attributes in closed form.
"""

from mpc_rr.errors import InputError
from mpc_rr.estimation.designs import Design, rr_joint
from mpc_rr.protocols.collection import FixedDesign
from mpc_rr.schema import Schema


class RRJoint(FixedDesign, frozen=True, tag="rr_joint"):
    """``[protocol] name = "rr_joint"`` with ``epsilon``."""

    epsilon: float

    def design(self, schema: Schema) -> Design:
        """Step 1."""
        if not self.epsilon > 0:
            raise InputError(f"epsilon must be positive, not {self.epsilon}")
        return rr_joint(schema.sizes, self.epsilon)
