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

Whoever carries the messages can choose who is lost. On the circle the others fall apart where two
stretches of k/2 places have nobody left who is honest. So in any two such stretches ``in_a_cut``
must be left, more than are corrupt among them but for one case in 2^secrecy_bits, or as many as
practically always are (one case in 2^``UNCUT_BITS``), if that is less; and a party wants about half
of it, ``beside``, on either side of it. (Against a liar, t is so large that groups have
``LEAST_OTHERS``, whoever is lost.)

The degree is the smallest for which there is such a t; t is then as large as correctness allows,
less what corrects the false shares of as many neighbours as are corrupt on average (two at least),
but no smaller than secrecy needs. The larger it is, the more must pool what they know to take off
anybody's masks: ``withstands`` says how many may.
"""

import bisect
import contextlib
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
UNCUT_BITS = 20
"""Once in so many bits an honest sum ends because those who left by chance sit unluckily."""
ANY_TWO = 2
"""So many may pool what they know, whatever share a study names: t is 3 at least. (With a liar, who
asks for a far larger t, it is one: whoever looks may be a party.)"""
FALSE_SHARES = 2
"""So many false shares of a secret can be corrected, even if as many leave as may, unless secrecy
needs a threshold that leaves none to spare."""
FEW_ENOUGH = 300
"""Up to so many parties it is worked out for every number that may remain how many it withstands.
Beyond, the share that the study names is nearly all there is."""

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
    withstands: int = 0
    """How many parties may pool what they know, but for one case in 2^secrecy_bits: masks stay on,
    and against a liar ``others`` remain."""
    in_a_cut: int = 0
    """So many must be left in any two stretches of k/2 places, or the sum of a few might be told
    apart from that of the others."""
    beside: int = 0
    """So many of its k/2 neighbours on either side must be left for a party to take off masks."""


@lru_cache(maxsize=4096)
def graph_parameters_for(
    parties: int,
    corrupt: float = 0.05,
    dropout: float = 0.1,
    coordinator: Trust = "malicious",
    secrecy_bits: int = SECRECY_BITS,
    correctness_bits: int = CORRECTNESS_BITS,
    enrolled: int = 0,
    *,
    smallest: bool = False,
) -> GraphParameters:
    """The smallest degree that will do, and its threshold; `InputError` if there is none.

    ``enrolled``: of so many the corrupt share is meant, if some have left; corrupt ones stay.
    ``smallest``: the smallest threshold that will do, as it was chosen up to rules 2.
    """
    if parties < 3:
        raise InputError(f"a masked sum of {parties} parties hides nothing; it needs at least 3")
    if not (0 <= corrupt < 1 and 0 <= dropout < 1 and corrupt + dropout < 1):
        raise InputError("the shares of corrupt and of lost parties must be below 1, also together")
    share = math.floor(corrupt * max(parties, enrolled))
    bad = share if smallest else max(share, _at_least(parties, coordinator))
    # Half of what secrecy may fail is for corrupt neighbours, half for a graph that falls apart.
    each_bits = secrecy_bits + 1 + math.log2(parties)
    rare = correctness_bits + math.log2(parties)
    lying = is_malicious(coordinator)
    missing = bad / parties + dropout
    lost = math.floor(dropout * parties)
    # If not even all others as neighbours will do, no fewer will: they would all be tried in vain.
    complete = _complete(parties, bad, lost, lying=lying, smallest=smallest)
    for degree in range(2, parties - 1, 2):
        if not _connected(degree, missing, each_bits):
            continue
        graph = _Graph(parties, degree, lost, dropout, lying)
        most = graph.most_threshold(rare)
        if not graph.keeps(most, bad, each_bits):
            continue
        least = graph.least_threshold(bad, each_bits)
        if smallest:
            return GraphParameters(degree, least, LEAST_OTHERS if lying else 0, bad)
        false = max(FALSE_SHARES, math.ceil(bad * degree / (parties - 1)))
        threshold = max(least, most - 2 * false)
        withstands = graph.withstands(threshold, bad, each_bits)
        if lying:
            return GraphParameters(degree, threshold, LEAST_OTHERS, withstands)
        uncut = graph.uncut(withstands, secrecy_bits + 1)
        return GraphParameters(degree, threshold, 0, withstands, *uncut)
    return complete


@lru_cache(maxsize=256)
def withstood(
    fewest: int, expected: int, corrupt: float, dropout: float, coordinator: Trust
) -> int:
    """How many parties may pool what they know, however many of those expected remain."""
    share = math.floor(corrupt * expected)
    least = max(share, _at_least(max(fewest, 3), coordinator))
    if expected > FEW_ENOUGH:
        return least
    found = []
    for parties in range(max(fewest, 3), expected + 1):
        with contextlib.suppress(InputError):  # so few do not add up anything
            plan = graph_parameters_for(parties, corrupt, dropout, coordinator, enrolled=expected)
            found.append(plan.withstands)
    return min(found, default=least)


def _at_least(parties: int, coordinator: Trust) -> int:
    """How many corrupt parties are reckoned with, however small a share a study names."""
    return 1 if is_malicious(coordinator) else min(ANY_TWO, parties - 2)


def _connected(degree: int, missing: float, each_bits: float) -> bool:
    """Whether no half degree of parties in a row is missing, but for one case in 2^each_bits."""
    return missing == 0 or degree / 2 * math.log2(min(missing, 1)) <= -each_bits


@dataclass(frozen=True)
class _Graph:
    """A random graph in which not everybody is everybody's neighbour."""

    parties: int
    degree: int
    lost: int
    dropout: float
    lying: bool

    def least_threshold(self, bad: int, each_bits: float) -> int:
        """The smallest that corrupt neighbours do not reach, but for one case in 2^each_bits."""
        thresholds = range(1, self.degree + 1)
        kept = bisect.bisect_left(thresholds, 1, key=lambda t: self.keeps(t, bad, each_bits))
        return kept + 1

    def most_threshold(self, rare: float) -> int:
        """The largest that so many stay for, but for one case in 2^rare."""
        others = self.parties - 1

        def too_many(threshold: int) -> bool:
            tail = _log2_tail(others, others - self.lost, self.degree, 0, threshold - 1)
            return tail > -rare

        return bisect.bisect_left(range(1, self.degree + 1), 1, key=too_many)

    def withstands(self, threshold: int, bad: int, each_bits: float) -> int:
        """How many corrupt parties it keeps its promises with; it does with ``bad`` of them."""
        more = range(bad + 1, self.parties - 1)

        def too_many(corrupt: int) -> bool:
            return not (
                self.keeps(threshold, corrupt, each_bits) and self._hangs(corrupt, each_bits)
            )

        return bad + bisect.bisect_left(more, 1, key=too_many)

    def keeps(self, threshold: int, bad: int, each_bits: float) -> bool:
        """Whether so many corrupt parties learn nothing, but for one case in 2^each_bits."""
        enough = 2 * threshold - self.degree - LEAST_OTHERS + 1 if self.lying else threshold
        if threshold < 1 or enough < 1:
            return False
        return _log2_tail(self.parties - 1, bad, self.degree, enough, self.degree) <= -each_bits

    def uncut(self, bad: int, bits: float) -> tuple[int, int]:
        """How many must be left in two stretches that would cut the circle, and in one."""
        pairs, half = 2 * math.log2(self.parties) - 1, self.degree // 2

        def few_corrupt(so_many: int) -> bool:
            tail = _log2_tail(self.parties, bad, self.degree, so_many, self.degree)
            return tail + pairs <= -bits

        def too_many(places: int, times: float, left: int) -> bool:
            tail = _log2_tail(self.parties, self.lost, places, places - left + 1, places)
            return tail + times > -UNCUT_BITS

        both, one = range(1, self.degree + 1), range(1, half + 1)
        needed = 1 + bisect.bisect_left(both, 1, key=few_corrupt)
        most = bisect.bisect_left(both, 1, key=lambda left: too_many(self.degree, pairs, left))
        in_a_cut = min(needed, most)
        beside = bisect.bisect_left(
            one, 1, key=lambda left: too_many(half, math.log2(self.parties), left)
        )
        # One at least: with nobody left in a stretch the circle is cut there.
        return max(in_a_cut, 1), max(min(in_a_cut // 2, beside), 1)

    def _hangs(self, bad: int, each_bits: float) -> bool:
        """Whoever is left hangs together: surely, if fewer are missing than somebody has beside."""
        sure = bad + self.lost < self.degree
        return sure or _connected(self.degree, bad / self.parties + self.dropout, each_bits)


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


def _complete(parties: int, bad: int, lost: int, *, lying: bool, smallest: bool) -> GraphParameters:
    """Everybody is everybody's neighbour: nothing is left to chance."""
    degree = parties - 1
    least = (degree + bad) // 2 + 1 if lying else bad + 1
    most = degree - lost
    if least > most:
        raise InputError(
            f"{parties} parties are too few for a masked sum that withstands {bad} corrupt and "
            f'{lost} lost ones; allow fewer of either, or name sum = "secure_sum"'
        )
    correcting = 0 if smallest else most - 2 * max(FALSE_SHARES, bad)
    threshold = max(least, correcting, 2)
    if not lying:
        return GraphParameters(degree, threshold, 0, bad if smallest else threshold - 1)
    threshold = max(threshold, min(most, (degree + bad + LEAST_OTHERS + 1) // 2))
    withstands = bad if smallest else max(bad, 2 * threshold - degree - LEAST_OTHERS)
    return GraphParameters(degree, threshold, 2 * threshold - degree - withstands, withstands)
