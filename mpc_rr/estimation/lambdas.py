"""λ-randomization (paper 001): choosing λ for a wished protection.

λ is the probability to keep a value (`KeepOrUniform.keep`). More λ, less protection: the entropy
share β falls from 1 to 0, ε rises, and the covariance of two attributes is kept to the share λ₁·λ₂
(Eq. (9) simplifies to exactly that).

The paper's masking of numbers in the centralized mode (§5) is not offered: λ·value + (1 − λ)·mean
is no randomization, and anyone who knows λ computes every value from the output (docs/errata.md).
`mpc_rr.curator` adds noise instead.
"""

import itertools
import math
from collections.abc import Mapping, Sequence

from mpc_rr.errors import InputError, quoted
from mpc_rr.estimation.matrix import KeepOrUniform, check_share


def keep_for_beta(size: int, beta: float) -> float:
    """The λ whose matrix has this share of the largest entropy (001, Definition 1)."""
    check_share("beta", beta)
    if size < 2:
        raise InputError("an attribute with one category has nothing to protect")
    if beta in (0.0, 1.0):
        return 1.0 - beta
    from scipy.optimize import brentq  # noqa: PLC0415  (a sixth of the time it takes to start)

    return float(brentq(lambda keep: KeepOrUniform(size, keep).beta - beta, 0.0, 1.0, xtol=1e-14))


def keep_for_epsilon(size: int, epsilon: float) -> float:
    """The λ with this local ε."""
    return KeepOrUniform.from_epsilon(size, epsilon).keep


def keeps_for_covariances(
    most: Sequence[float],
    kept: Mapping[tuple[int, int], float],
    names: Sequence[str] | None = None,
) -> list[float]:
    """λs as small (as much protection) as the wished shares of covariances allow.

    ``most`` is the largest λ allowed for each attribute (from `keep_for_beta` or
    `keep_for_epsilon`); ``kept[i, j]`` is the least share λᵢ·λⱼ of the covariance of i and j to be
    kept. The largest λ is as small as it can be, and none can be made smaller alone. An attribute
    of which nothing is wished gets the largest λ allowed. All agents find the very same numbers:
    only roots and quotients are taken, in a fixed order.
    """
    limits = [check_share("the largest lambda", value, positive=True) for value in most]
    for (i, j), share in kept.items():
        _check_wish(i, j, share, limits, names)
    wishes = [
        (min(pair), max(pair), share) for pair, share in sorted(kept.items(), key=lambda w: w[0])
    ]
    keeps = list(limits)
    for i in {index for pair in kept for index in pair}:
        keeps[i] = min(limits[i], max(math.sqrt(c) for a, b, c in wishes if i in (a, b)))
    for i, j, share in wishes:  # where one of them may not be as large, the other must be larger
        for own, other in ((i, j), (j, i)):
            keeps[own] = min(max(keeps[own], share / keeps[other]), limits[own])
    for i in sorted(range(len(keeps)), key=lambda k: (-keeps[k], k)):
        needed = [share / keeps[a + b - i] for a, b, share in wishes if i in (a, b)]
        if needed:
            keeps[i] = min(keeps[i], max(needed))
    return keeps


def _check_wish(
    i: int, j: int, share: float, limits: Sequence[float], names: Sequence[str] | None
) -> None:
    if i == j or not (0 <= i < len(limits) and 0 <= j < len(limits)):
        raise InputError(f"({i}, {j}) is not a pair of the {len(limits)} attributes")
    one, other = (str(k) if names is None else quoted(names[k]) for k in (i, j))
    check_share(f"the kept covariance of attributes {one} and {other}", share, positive=True)
    if share > limits[i] * limits[j] * (1 + 1e-12):
        raise InputError(
            f"attributes {one} and {other} cannot keep {share:.0%} of their covariance: their "
            f"protection allows at most {limits[i] * limits[j]:.0%}"
        )


def lambdas_for_covariances(
    sizes: Sequence[int],
    kept: float | Mapping[tuple[int, int], float],
    beta: float | None = None,
    names: Sequence[str] | None = None,
) -> list[float]:
    """The λ of each attribute with which covariances are kept to these shares, or more.

    ``kept``: for all pairs, or by pair. ``beta``: the protection that each attribute has at least;
    attributes of no pair have no more than that, so without it all must be in one. Errors speak of
    attributes by their ``names``, if these are given, else by their numbers.
    """
    most = [1.0 if beta is None else keep_for_beta(size, beta) for size in sizes]
    if isinstance(kept, Mapping):
        named = {index for pair in kept for index in pair}
        alone = [index for index in range(len(sizes)) if index not in named]
        if alone and beta is None:
            left = str(alone[0]) if names is None else quoted(names[alone[0]])
            raise InputError(
                f"no target is given for the covariances of attribute {left}; say by beta how "
                "well each must be protected at least"
            )
        return keeps_for_covariances(most, kept, names)
    every = itertools.combinations(range(len(sizes)), 2)
    return keeps_for_covariances(most, dict.fromkeys(every, kept), names)


def kept_by_pair(
    names: Sequence[str], given: float | Mapping[str, float]
) -> float | dict[tuple[int, int], float]:
    """Wished shares of covariances as they are written, ``"age+health" = 0.5``, by numbers."""
    if not isinstance(given, Mapping):
        return check_share("covariance", given, positive=True)
    pairs = list(itertools.permutations(range(len(names)), 2))
    known = {f"{names[i]}+{names[j]}": (min(i, j), max(i, j)) for i, j in pairs}
    kept: dict[tuple[int, int], float] = {}
    for name, share in given.items():
        if name not in known:
            raise InputError(
                f"covariance: {name!r} is no pair of attributes, such as {'+'.join(names[:2])!r}"
            )
        if known[name] in kept:
            raise InputError(f"covariance: the pair {name!r} is given twice")
        kept[known[name]] = share
    return kept
