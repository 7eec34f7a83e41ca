"""What single attributes may spend: a budget, or a matrix, of an attribute's own.

A study file gives most protocols one budget for all (``keep``, ``epsilon``). Under
``[protocol.each.NAME]`` an attribute gets its own, in one of five ways; the others share what is
given for all, and ``epsilon`` there stays what the whole record spends.
"""

import math
from collections.abc import Callable, Mapping, Sequence

import msgspec

from mpc_rr.errors import InputError, all_quoted, key
from mpc_rr.estimation.lambdas import keep_for_beta
from mpc_rr.estimation.matrix import Dense, KeepOrUniform, MatrixError, RRMatrix, nearby
from mpc_rr.estimation.planning import chosen_keep
from mpc_rr.schema import Attribute, Schema

LARGEST_MATRIX = 300
"""So many categories may an attribute have whose matrix is written out."""


class Own(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """``[protocol.each.NAME]``: how one attribute is randomized; exactly one of these is given."""

    keep: float | None = None
    """It is kept with this probability, else replaced by a uniform answer."""
    epsilon: float | None = None
    """The same with the probability that spends this."""
    beta: float | None = None
    """The same with the probability that leaves this share of the largest entropy (paper 001)."""
    nearby: float | None = None
    """It stays with at least this probability, else it rather becomes a near answer (003 §6.2)."""
    matrix: tuple[tuple[float, ...], ...] | None = None
    """A row for each true answer, in the order of the categories: how probably each is reported."""

    @property
    def is_budget(self) -> bool:
        """Whether the answer is kept or replaced by a uniform one."""
        return self.nearby is None and self.matrix is None

    def randomization(self, attribute: Attribute) -> RRMatrix:
        """The matrix that follows; `InputError` if there is none."""
        given = [f for f in self.__struct_fields__ if getattr(self, f) is not None]
        if len(given) != 1:
            raise InputError(f"give exactly one of {', '.join(self.__struct_fields__)}")
        if self.keep is not None:
            return KeepOrUniform(attribute.size, chosen_keep(self.keep, None, [attribute.size]))
        if self.epsilon is not None:
            if not 0 < self.epsilon < math.inf:
                raise InputError(f"epsilon must be positive, not {self.epsilon}")
            return KeepOrUniform.from_epsilon(attribute.size, self.epsilon)
        if self.beta is not None:
            return KeepOrUniform(attribute.size, keep_for_beta(attribute.size, self.beta))
        if attribute.size > LARGEST_MATRIX:
            raise InputError(
                f"a matrix of its own has at most {LARGEST_MATRIX} categories, not "
                f"{attribute.size:,}; give keep or epsilon"
            )
        return self._near(attribute) if self.matrix is None else self._written(attribute)

    def _near(self, attribute: Attribute) -> Dense:
        assert self.nearby is not None
        if attribute.type != "ordinal":
            raise InputError("nearby needs categories with an order (type = 'ordinal')")
        if attribute.missing is not None:
            raise InputError("nearby has no place for 'no answer' in the order; give a matrix")
        return nearby(attribute.size, self.nearby)

    def _written(self, attribute: Attribute) -> Dense:
        assert self.matrix is not None
        if any(len(row) != attribute.size for row in (self.matrix, *self.matrix)):
            raise InputError(
                f"matrix needs {attribute.size} rows of {attribute.size} probabilities, for "
                f"{all_quoted(attribute.categories)} in this order"
            )
        return Dense(self.matrix)


Each = Mapping[str, Own]
Rest = Callable[[list[Attribute], float], Sequence[RRMatrix]]
"""The matrices of the attributes that have none of their own, and what these others spend."""


def matrices_of(schema: Schema, each: Each | None, rest: Rest) -> tuple[RRMatrix, ...]:
    """The matrix of every attribute; `InputError` naming the one that makes no sense."""
    own = own_matrices(schema, each)
    others = [a for a in schema.attributes if a.name not in own]
    spent = math.fsum(matrix.epsilon for matrix in own.values())
    found = dict(zip((a.name for a in others), rest(others, spent), strict=True))
    return tuple((own | found)[name] for name in schema.names)


def own_matrices(schema: Schema, each: Each | None) -> dict[str, RRMatrix]:
    """Of the attributes that have one of their own."""
    known = {attribute.name: attribute for attribute in schema.attributes}
    found = {}
    for name, own in (each or {}).items():
        if name not in known:
            raise InputError(
                f"each.{key(name)}: there is no such attribute; the schema has "
                f"{all_quoted(schema.names)}"
            )
        try:
            found[name] = own.randomization(known[name])
        except InputError as error:
            raise InputError(f"each.{key(name)}: {error}") from None
    return found


def matrices_in_words(schema: Schema, each: Each | None) -> str:
    """What was found of the matrices that are not kept-or-uniform: are they bistochastic?"""
    found = {}
    for name, matrix in own_matrices(schema, each).items():
        if isinstance(matrix, Dense):
            found[name] = (
                f"bistochastic: with probability {matrix.kept:.3g} the answer itself, else by one "
                "of some permutations"
                if matrix.bistochastic
                else "not bistochastic: its rows add up to 1, its columns do not"
            )
    return "; ".join(f"{name}: {said}" for name, said in found.items())


def by_budget(keep: float | None, epsilon: float | None) -> Rest:
    """All others are kept with one probability: this one, or what the record has left allows."""

    def rest(others: list[Attribute], spent: float) -> list[RRMatrix]:
        if not others:
            if keep is not None or epsilon is not None:
                raise InputError(
                    "every attribute has a budget of its own under 'each'; leave keep and epsilon "
                    "for all out"
                )
            return []
        left = None if epsilon is None else left_of(epsilon, spent)
        chosen = chosen_keep(keep, left, [a.size for a in others])
        return [KeepOrUniform(a.size, chosen) for a in others]

    return rest


def left_of(epsilon: float, spent: float) -> float:
    """What is left of a record's ε for the attributes without a budget of their own."""
    if math.isinf(spent):
        raise InputError(
            "epsilon is what the whole record spends, but a matrix under 'each' has zeros, and so "
            "no ε; give keep for the others"
        )
    if spent and not epsilon > spent:
        raise InputError(
            f"epsilon is what the whole record spends: the attributes under 'each' spend "
            f"{spent:.4g} of the {epsilon:.4g}, which leaves nothing for the others"
        )
    return epsilon - spent


def check_budgets_only(schema: Schema, each: Each | None, why: str) -> None:
    """`InputError` if an attribute has a matrix that is no mere budget."""
    own_matrices(schema, each)
    for name, own in (each or {}).items():
        if not own.is_budget:
            raise MatrixError(f"each.{key(name)}: {why}; give keep, epsilon or beta")
