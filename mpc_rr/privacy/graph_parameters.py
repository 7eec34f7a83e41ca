"""How many neighbours a party needs for a masked sum, and how many must answer (Bell et al. 2020).

With n parties, of which a share may be corrupt and a share may drop out, the random Harary graph of
degree k with threshold t must satisfy, each but with a tiny probability:

* secrecy: no party has t corrupt neighbours (hypergeometric tail, times n), and what is left
  without corrupt and lost parties hangs together (no k/2 of these in a row on the circle);
* correctness: every party keeps at least t neighbours (hypergeometric tail, times n).

Against a coordinator that lies about who is there, t corrupt neighbours are not the worst. Parties
then vouch for each other (`mpc_rr.protocols.sums.masked.sum`, step 5): an honest party u helps to
unmask only if t neighbours say that they were told it survived. Let c be a party's corrupt
neighbours.

* Of those t at least t − c are honest and never give a share of u's key K. So at most k − t + c
  shares of it can be had: too few if 2t > k + c.
* For the own mask of v, at least t − c honest neighbours helped: none of theirs can be had. v
  masked its vector with at least t neighbours. So at least 2t − c − k masks stay on it.

So what can be learned are sums over groups of honest parties in which each has that many others:
t is chosen so that it is at least ``LEAST_OTHERS``.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln, logsumexp

from mpc_rr.errors import InputError

SECRECY_BITS = 40
LEAST_OTHERS = 10
"""Among so many others a party's vector stays hidden, even if the coordinator lies."""
CORRECTNESS_BITS = 30

Trust = Literal["malicious", "semi-honest", "lying", "curious"]
"""What the coordinator is assumed to do: whatever it likes, or follow the protocol and only look.

The other two are older words for the same."""


def is_malicious(coordinator: Trust) -> bool:
    """Whether it is assumed to do whatever it likes."""
    return coordinator in ("malicious", "lying")


@dataclass(frozen=True)
class GraphParameters:
    """So many neighbours, of which so many must answer."""

    degree: int
    threshold: int
    others: int = 0
    """Among how many honest others a vector surely stays hidden if the coordinator lies."""


@lru_cache(maxsize=256)
def graph_parameters_for(
    parties: int,
    corrupt: float = 0.05,
    dropout: float = 0.1,
    coordinator: Trust = "malicious",
    secrecy_bits: int = SECRECY_BITS,
    correctness_bits: int = CORRECTNESS_BITS,
    enrolled: int = 0,
) -> GraphParameters:
    """The smallest degree that will do, and its threshold; `InputError` if there is none.

    ``enrolled``: of so many the corrupt share is meant, if some have left; corrupt ones stay.
    """
    if parties < 3:
        raise InputError(f"a masked sum of {parties} parties hides nothing; it needs at least 3")
    if not (0 <= corrupt < 1 and 0 <= dropout < 1 and corrupt + dropout < 1):
        raise InputError("the shares of corrupt and of lost parties must be below 1, also together")
    bad, lost = math.floor(corrupt * max(parties, enrolled)), math.floor(dropout * parties)
    # Half of what secrecy may fail is for corrupt neighbours, half for a graph that falls apart.
    each_bits = secrecy_bits + 1 + math.log2(parties)
    missing = bad / parties + dropout
    unconnected = -math.inf if missing == 0 else math.log2(min(missing, 1))
    for degree in range(2, parties - 1, 2):
        if degree / 2 * unconnected > -each_bits:
            continue
        threshold = _threshold(parties, degree, bad, each_bits, coordinator)
        if threshold is None:
            continue
        too_few = _log2_tail(parties - 1, parties - 1 - lost, degree, 0, threshold - 1)
        if too_few <= -(correctness_bits + math.log2(parties)):
            others = LEAST_OTHERS if is_malicious(coordinator) else 0
            return GraphParameters(degree, threshold, others)
    return _complete(parties, bad, lost, coordinator)


def _log2_tail(population: int, marked: int, drawn: int, least: int, most: int) -> float:
    """log₂ of the probability that ``least`` to ``most`` of the drawn are marked (hypergeometric).

    (Importing scipy.stats for this would take most of a second at every start.)
    """
    x = np.arange(max(least, drawn - (population - marked), 0), min(most, drawn, marked) + 1)
    if x.size == 0:
        return -math.inf
    logs = _log_choose(marked, x) + _log_choose(population - marked, drawn - x)
    return float(logsumexp(logs) - _log_choose(population, np.array(drawn))) / math.log(2)


def _log_choose(n: int, k: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    return np.asarray(gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1))


def _threshold(
    parties: int, degree: int, bad: int, each_bits: float, coordinator: Trust
) -> int | None:
    """The smallest that corrupt neighbours do not reach, but for one case in 2^each_bits."""
    for threshold in range(1, degree + 1):
        lying = is_malicious(coordinator)
        enough = 2 * threshold - degree - LEAST_OTHERS + 1 if lying else threshold
        if enough > 0 and _log2_tail(parties - 1, bad, degree, enough, degree) <= -each_bits:
            return threshold
    return None


def _complete(parties: int, bad: int, lost: int, coordinator: Trust) -> GraphParameters:
    """Everybody is everybody's neighbour: nothing is left to chance."""
    degree = parties - 1
    lying = is_malicious(coordinator)
    least = (degree + bad) // 2 + 1 if lying else bad + 1
    most = degree - lost
    if least > most:
        raise InputError(
            f"{parties} parties are too few for a masked sum that withstands {bad} corrupt and "
            f'{lost} lost ones; allow fewer of either, or name sum = "secure_sum"'
        )
    if not lying:
        return GraphParameters(degree, max(least, 2))
    hiding = min(most, (degree + bad + LEAST_OTHERS + 1) // 2)
    threshold = max(least, hiding, 2)
    return GraphParameters(degree, threshold, 2 * threshold - degree - bad)
