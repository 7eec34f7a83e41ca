"""The two kinds of noise that parties can add together, and which of them is the smaller.

Laplace's grows with the number of counts that a record changes, the Gaussian with its square root;
but the Gaussian needs a δ that is not tiny. Which is smaller follows from these numbers alone, not
from anybody's answers.
"""

import math
from dataclasses import replace
from typing import Literal, get_args

from mpc_rr.errors import InputError
from mpc_rr.privacy.gaussian_shares import GaussianShares
from mpc_rr.privacy.noise import NoiseShares

Noise = NoiseShares | GaussianShares
Family = Literal["laplace", "gaussian"]
DELTA = 1e-6
"""Of Gaussian noise, unless the study says otherwise."""
FAR = 1e3
HALVINGS = 30


def noise_of(
    family: Family, epsilon: float, delta: float, changed: int, honest: int, cells: int
) -> Noise:
    """What each party adds to ``cells`` sums, of which another record changes some by one each."""
    if family == "gaussian":
        return GaussianShares(epsilon, delta, changed, honest, cells)
    return NoiseShares(epsilon, changed, honest, cells)


def by_family(
    epsilon: float, delta: float, changed: int, honest: int, cells: int
) -> dict[Family, Noise]:
    """Both kinds at the same ε, the smaller noise first; ``delta`` is the Gaussian's.

    Which of them is smaller does not depend on how many parties add their shares. One whose noise
    would leave nothing of the counts is left out.
    """
    found: dict[Family, Noise] = {}
    for family in get_args(Family):
        try:
            found[family] = noise_of(family, epsilon, delta, changed, honest, cells)
        except InputError:
            continue
    return dict(sorted(found.items(), key=lambda item: item[1].standard_deviation(honest)))


def epsilon_for(noise: Noise, deviation: float, parties: int) -> float | None:
    """The ε at which noise of this kind would be as small as that; None: far from here, if any."""
    if isinstance(noise, NoiseShares):
        return noise.epsilon * noise.standard_deviation(parties) / deviation
    low, high = noise.epsilon, FAR * noise.epsilon
    if replace(noise, epsilon=high).standard_deviation(parties) > deviation:
        return None
    for _ in range(HALVINGS):
        middle = math.sqrt(low * high)
        small = replace(noise, epsilon=middle).standard_deviation(parties) <= deviation
        low, high = (low, middle) if small else (middle, high)
    return high
