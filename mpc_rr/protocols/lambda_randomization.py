"""λ-randomization (paper 001, Section 5, local mode).

1. The study file says for each attribute its parameter λ, the probability that an answer is kept:
   either λ itself, or the protection it must give (``beta``, the share of the largest entropy), or
   what a record may spend in all (``epsilon``, spread so that all attributes have the same β), or
   how much of covariances must be kept (``covariance``: λᵢ·λⱼ of that of i and j; Eq. (9)), where
   ``beta`` may say beside it how well each attribute must be protected at least. Unless covariances
   are wished, single attributes may have their own, or any bistochastic matrix (``each``).
2. The bistochastic matrix of each other attribute follows: λ·I + (1 − λ)/r·J.
3. Entropy rates add up to the protection of the whole; a party sees them before it answers.
4. Each party randomizes its answers with these matrices and reports them
   (`mpc_rr.protocols.collection`).
5. The reports are counted; the Kronecker product of the inverses, applied axis by axis and never
   written down, gives the true distribution.
"""

from mpc_rr.errors import InputError, all_quoted, key
from mpc_rr.estimation.designs import Design, one_by_one
from mpc_rr.estimation.lambdas import keep_for_beta, kept_by_pair, lambdas_for_covariances
from mpc_rr.estimation.matrix import Dense, KeepOrUniform, RRMatrix
from mpc_rr.estimation.planning import lambdas_for_total
from mpc_rr.protocols.budgets import Own, left_of, matrices_of
from mpc_rr.protocols.collection import FixedDesign
from mpc_rr.schema import Attribute, Schema


class LambdaRandomization(FixedDesign, frozen=True, tag="lambda_randomization"):
    """``[protocol] name = "lambda_randomization"`` by λ, β, ε or covariances.

    But for covariances, with ``each`` for single attributes.
    """

    lambdas: dict[str, float] | None = None
    beta: float | None = None
    epsilon: float | None = None
    covariance: float | dict[str, float] | None = None
    """The share that all pairs keep at least, or by pair: ``"age+health" = 0.5``."""
    each: dict[str, Own] | None = None

    def design(self, schema: Schema) -> Design:
        """Steps 1 and 2."""
        matrices = matrices_of(schema, self.each, self._others)
        for name, matrix in zip(schema.names, matrices, strict=True):
            if isinstance(matrix, Dense) and not matrix.bistochastic:
                raise InputError(
                    f"each.{key(name)}: the columns of the matrix must add up to 1, too "
                    "(λ-randomization needs bistochastic matrices); rr_independent takes any"
                )
        return one_by_one(matrices)

    def _others(self, others: list[Attribute], spent: float) -> list[RRMatrix]:
        """Of the attributes that have no matrix of their own."""
        lambdas = self._lambdas(others, spent)
        return [KeepOrUniform(a.size, keep) for a, keep in zip(others, lambdas, strict=True)]

    def _lambdas(self, others: list[Attribute], spent: float) -> list[float]:
        wished = self.covariance is not None
        beta = self.beta is not None and not wished
        given = sum((self.lambdas is not None, beta, self.epsilon is not None, wished))
        sizes, names = [a.size for a in others], [a.name for a in others]
        if not others and not given:
            return []
        if given != 1:
            raise InputError(
                "give exactly one of lambdas, beta, epsilon and covariance (with covariance, also "
                "beta, as the least protection)"
            )
        if self.covariance is not None:
            if self.each:
                raise InputError(
                    "covariance is of all attributes: it cannot be given beside each, which "
                    "fixes the matrices of some"
                )
            return lambdas_for_covariances(
                sizes, kept_by_pair(names, self.covariance), self.beta, names
            )
        if self.beta is not None:
            return [keep_for_beta(size, self.beta) for size in sizes]
        if self.epsilon is not None:
            if not self.epsilon > 0:
                raise InputError(f"epsilon must be positive, not {self.epsilon}")
            return lambdas_for_total(sizes, left_of(self.epsilon, spent))
        assert self.lambdas is not None
        if set(self.lambdas) != set(names):
            raise InputError(f"lambdas must name each attribute once: {all_quoted(names)}")
        return [self.lambdas[name] for name in names]
