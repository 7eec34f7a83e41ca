"""λ-randomization (paper 001, Section 5, local mode).

1. The study file says for each attribute its parameter λ, the probability that an answer is kept:
   either λ itself, or the protection it must give (``beta``, the share of the largest entropy), or
   what a record may spend in all (``epsilon``, spread so that all attributes have the same β).
2. The bistochastic matrix of each attribute follows: λ·I + (1 − λ)/r·J.
3. Entropy rates add up to the protection of the whole; a party sees them before it answers.
4. Each party randomizes its answers with these matrices and reports them
   (`mpc_rr.protocols.collection`).
5. The reports are counted; the Kronecker product of the inverses, applied axis by axis and never
   written down, gives the true distribution.
"""

from mpc_rr.errors import InputError, all_quoted
from mpc_rr.estimation.designs import Design
from mpc_rr.estimation.lambdas import keep_for_beta
from mpc_rr.estimation.matrix import KeepOrUniform
from mpc_rr.estimation.planning import lambdas_for_total
from mpc_rr.protocols.collection import FixedDesign
from mpc_rr.schema import Schema


class LambdaRandomization(FixedDesign, frozen=True, tag="lambda_randomization"):
    """``[protocol] name = "lambda_randomization"`` with ``lambdas``, ``beta`` or ``epsilon``."""

    lambdas: dict[str, float] | None = None
    beta: float | None = None
    epsilon: float | None = None

    def design(self, schema: Schema) -> Design:
        """Steps 1 and 2."""
        matrices = tuple(map(KeepOrUniform, schema.sizes, self._lambdas(schema)))
        return Design(schema.sizes, tuple((a,) for a in range(len(schema.sizes))), matrices)

    def _lambdas(self, schema: Schema) -> list[float]:
        given = [self.lambdas is not None, self.beta is not None, self.epsilon is not None]
        if sum(given) != 1:
            raise InputError("give exactly one of lambdas, beta and epsilon")
        if self.beta is not None:
            return [keep_for_beta(size, self.beta) for size in schema.sizes]
        if self.epsilon is not None:
            if not self.epsilon > 0:
                raise InputError(f"epsilon must be positive, not {self.epsilon}")
            return lambdas_for_total(schema.sizes, self.epsilon)
        assert self.lambdas is not None
        if set(self.lambdas) != set(schema.names):
            raise InputError(f"lambdas must name each attribute once: {all_quoted(schema.names)}")
        return [self.lambdas[name] for name in schema.names]
