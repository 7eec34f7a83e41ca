"""λ-randomization (paper 001): choosing λ for a wished protection.

λ is the probability to keep a value (`KeepOrUniform.keep`). More λ, less protection: the entropy
share β falls from 1 to 0, ε rises, and the covariance of two attributes is kept to the share λ₁·λ₂
(Eq. (9) simplifies to exactly that).

The paper's masking of numbers in the centralized mode (§5) is not offered: λ·value + (1 − λ)·mean
is no randomization, and anyone who knows λ computes every value from the output (docs/errata.md).
"""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from mpc_rr.errors import InputError
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
    most: Sequence[float], kept: Mapping[tuple[int, int], float]
) -> list[float]:
    """The smallest λs (most protection) that keep the wished shares of covariances.

    ``most`` is the largest λ allowed for each attribute (from `keep_for_beta` or
    `keep_for_epsilon`); ``kept[i, j]`` is the least share λᵢ·λⱼ of the covariance of i and j to be
    kept. In logarithms these are linear conditions; first the largest λ, then the product of all is
    made as small as they allow. An attribute of which nothing is wished gets the largest λ allowed.
    """
    from scipy.optimize import linprog  # noqa: PLC0415

    limits = [check_share("the largest lambda", value, positive=True) for value in most]
    rows, bounds = [], []
    for (i, j), share in kept.items():
        if i == j or not (0 <= i < len(limits) and 0 <= j < len(limits)):
            raise InputError(f"({i}, {j}) is not a pair of the {len(limits)} attributes")
        check_share(f"the kept covariance of attributes {i} and {j}", share, positive=True)
        if share > limits[i] * limits[j] * (1 + 1e-12):
            raise InputError(
                f"attributes {i} and {j} cannot keep {share:.0%} of their covariance: their "
                f"protection allows at most {limits[i] * limits[j]:.0%}"
            )
        row = np.zeros(len(limits))
        row[[i, j]] = -1
        rows.append(row)
        bounds.append(-math.log(share))
    lowest, count = -30.0, len(limits)
    conditions = np.array(rows) if rows else np.zeros((0, count))
    tops = [math.log(limit) for limit in limits]
    # First the largest λ is made as small as it can be, so that nobody pays for the others ...
    below = np.hstack([np.eye(count), -np.ones((count, 1))])[sorted({k for p in kept for k in p})]
    largest = linprog(
        [0.0] * count + [1.0],
        A_ub=np.vstack([np.hstack([conditions, np.zeros((len(rows), 1))]), below]),
        b_ub=np.concatenate([bounds, np.zeros(len(below))]),
        bounds=[*((lowest, top) for top in tops), (lowest, 0.0)],
    )
    most_allowed = float(np.asarray(largest.x, dtype=np.float64)[-1]) + 1e-12
    # ... then their product.
    solved = linprog(
        np.ones(count),
        A_ub=conditions,
        b_ub=np.array(bounds),
        bounds=[(lowest, min(top, max(most_allowed, lowest))) for top in tops],
    )
    touched = {index for pair in kept for index in pair}
    return [
        float(math.exp(value)) if index in touched else limits[index]
        for index, value in enumerate(np.asarray(solved.x, dtype=np.float64))
    ]
