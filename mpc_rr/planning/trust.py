"""The same promise to the public by different trust: who must be trusted, and what it costs.

Whoever sees what is published learns no more of anybody than a central (ε, δ) allows. Randomized by
each, that holds against everybody. Shuffled by relays, answers may be randomized less, as nobody
knows whose they are. Summed under masks, nobody's answers are seen at all, and noise is added to
the sums by all together.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import msgspec
import numpy as np

from mpc_rr.errors import InputError
from mpc_rr.estimation.matrix import Codes
from mpc_rr.estimation.pairs import Counts
from mpc_rr.network.envelope import Message
from mpc_rr.network.lifecycle import Goodbye, Hello, Join, ResultSeen, RosterSeen
from mpc_rr.planning.crowds import Crowds, Outlook, true_tables
from mpc_rr.planning.designs import PlannedDesign
from mpc_rr.planning.plans import Plan
from mpc_rr.planning.publishing import OfTables, of_views
from mpc_rr.privacy.accountant import DELTA
from mpc_rr.privacy.disclosures import Disclosure
from mpc_rr.privacy.noise import NoiseShares
from mpc_rr.privacy.noise_families import Family, Noise
from mpc_rr.privacy.shuffling import numerical
from mpc_rr.protocols.board.commitment import Commitments, Openings
from mpc_rr.protocols.collection import LARGEST_EPSILON
from mpc_rr.protocols.exact_pairs import ExactPairs
from mpc_rr.protocols.interface import StudyProtocol
from mpc_rr.protocols.mix.batch import FinalKey, Found, Onions, RelayKeys, Shuffled
from mpc_rr.protocols.mix.relays import FEWEST_RELAYS
from mpc_rr.protocols.rr_views import RRViews, ViewAnswer
from mpc_rr.publication.counts import PairCounts
from mpc_rr.publication.ending import Setting
from mpc_rr.randomness import Randomness
from mpc_rr.schema import Schema

NOBODY = "nobody"
"""Who must be trusted where each randomizes."""
HALVINGS = 30
FAMILIES: tuple[Family | None, ...] = (None, "gaussian")
"""Kinds of noise, as a study file names them: Laplace's is that of a study that names none."""
SHUFFLED: tuple[type[Message], ...] = (Commitments, Openings, Onions, Found)
"""What a respondent sends who is no relay: dice that draw the relays, an onion, whether it came."""
RELAYING: tuple[type[Message], ...] = (RelayKeys, *(Shuffled,) * FEWEST_RELAYS, FinalKey)
"""The rounds in between, in which relays alone send."""


@dataclass(frozen=True)
class Way:
    """One way to trust."""

    name: str
    trusted: str
    """Who must be trusted, so that the central ε holds."""
    epsilon: float
    delta: float
    local_epsilon: float | None
    """What a party's own answer costs under its name; None: it is seen by nobody."""
    outlook: Outlook
    messages: int
    """So many a party sends."""
    rounds: int
    """So many deadlines may pass while it must be online."""
    offered: bool = True
    """Whether a protocol of a study file does it."""

    def minutes(self, lobby_s: float, round_s: float) -> float:
        """How long a party may have to be online at most, if somebody uses up every deadline."""
        return (lobby_s + self.rounds * round_s) / 60


def ways_to_trust(plan: Plan) -> tuple[list[Way], dict[str, str]]:
    """Ways to have the plan's ε, and why others cannot be had."""
    setting = _of_so_many(plan.setting, plan.simulated)
    ways, refused = [_randomized(setting, plan)], {}
    for name, make in (("shuffled", _shuffled), ("summed", _summed)):
        try:
            ways.append(make(setting, plan.crowds, plan.epsilon))
        except InputError as error:
            refused[name] = str(error)
    return ways, refused


def _of_so_many(setting: Setting, people: int) -> Setting:
    """Errors of all ways are those of as many people as were simulated."""
    return msgspec.structs.replace(
        setting, expected=people, parties=people, fewest=min(setting.fewest, people)
    )


def messages_sent(protocol: StudyProtocol, setting: Setting) -> int:
    """How many messages a party sends in a run in which nothing goes wrong."""
    return _with_lobby(protocol.rounds(setting), roster=protocol.needs_roster(setting))


def _with_lobby(rounds: Sequence[type[Message]], *, roster: bool) -> int:
    around = (Hello, Join, Goodbye, *((RosterSeen, ResultSeen) if roster else ()))
    return len(around) + len(rounds)


def _randomized(setting: Setting, plan: Plan) -> Way:
    taken = plan.margins if plan.recommended is plan.nobody else plan.recommended
    protocol = taken.design.protocol
    rounds = (ViewAnswer,) if protocol is None else protocol.rounds(setting)
    roster = protocol is not None and protocol.needs_roster(setting)
    return Way(
        "randomized by each", NOBODY, plan.epsilon, 0.0, plan.epsilon, taken,
        _with_lobby(rounds, roster=roster), len(rounds),
    )  # fmt: skip


def _shuffled(setting: Setting, crowds: Crowds, epsilon: float) -> Way:
    """Views that nobody but the party itself knows: all answers are in one crowd."""
    local = local_for(epsilon, setting.fewest)
    views = RRViews(epsilon=local).design(setting.schema, setting.fewest)
    design = PlannedDesign("shuffled", "a view", local, local, partial(of_views, views))
    trusted = f"one of {FEWEST_RELAYS} relays, all other people"
    return Way(
        "shuffled by relays", trusted, epsilon, DELTA, local, _tried(design, crowds),
        _with_lobby(SHUFFLED, roster=True), len(SHUFFLED) + len(RELAYING), offered=False,
    )  # fmt: skip


def _summed(setting: Setting, crowds: Crowds, epsilon: float) -> Way:
    """Counts of all pairs at once, with noise that all add together."""
    summed = noise_in_sum(setting, epsilon)
    return Way(
        "summed, noise inside", summed.trusted, epsilon, summed.noise.delta, None,
        _tried(summed.design, crowds),
        messages_sent(summed.protocol, setting), len(summed.protocol.rounds(setting)),
    )  # fmt: skip


def _tried(design: PlannedDesign, crowds: Crowds) -> Outlook:
    outlooks, hopeless = crowds.try_out([design])
    if hopeless:
        raise InputError(hopeless[design.name])
    return outlooks[0]


def local_for(central: float, n: int, delta: float = DELTA) -> float:
    """The largest local ε that a crowd of n amplifies to this central one."""
    low, high = central, LARGEST_EPSILON
    if numerical(high, n, delta) <= central:
        return high
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if numerical(middle, n, delta) > central else (middle, high)
    return low


def _trusted_by(event: Disclosure) -> str:
    """On whom the ε of a sum rests."""
    most = event.rests_on
    people = "" if most is None else _pooling(most)
    return f"the coordinator; {people}" if event.trusts_coordinator else people


def _pooling(most: int) -> str:
    if most == 1:
        return "no two people pool what they know"
    return f"at most {most:,} people pool what they know"


@dataclass(frozen=True)
class SummedPairs:
    """A masked sum of all pairs with noise inside, as its protocol reckons it."""

    protocol: ExactPairs
    noise: Noise
    design: PlannedDesign
    trusted: str
    """On whom its ε rests."""


def summed_pairs(setting: Setting, epsilon: float, family: Family | None) -> SummedPairs:
    """With this kind of noise; `InputError` where it cannot be had."""
    protocol = ExactPairs(noise_epsilon=epsilon, noise=family)
    noise = protocol.agreed_noise(setting)
    assert noise is not None
    protocol.check(setting)
    publish = partial(of_noisy_sum, noise, setting.expected)
    design = PlannedDesign("summed", "noisy counts", epsilon, epsilon, publish, protocol)
    (told,) = protocol.disclosures(setting)
    return SummedPairs(protocol, noise, design, _trusted_by(told))


def noise_in_sum(setting: Setting, epsilon: float) -> SummedPairs:
    """With the smaller of both kinds of noise."""
    found, refused = [], []
    for family in FAMILIES:
        try:
            found.append(summed_pairs(setting, epsilon, family))
        except InputError as error:
            refused.append(error)
    if not found:
        raise refused[0]
    return min(found, key=lambda each: each.noise.standard_deviation(setting.expected))


def of_noisy_sum(
    noise: Noise, parties: int, schema: Schema, records: Codes, rng: Randomness
) -> OfTables:
    """What is published of such a sum over so many parties, of which these are some or all."""
    drawn = np.random.default_rng(int.from_bytes(rng.bytes(8), "little"))
    counts = [
        np.rint(shares * parties).astype(np.int64)
        + noise_added(noise, parties, shares.shape, drawn)
        for shares in true_tables(records, schema.sizes).values()
    ]
    deviation = noise.standard_deviation(parties)
    made = PairCounts(parties, schema, counts, noise=deviation, tails=noise.tails)
    return OfTables(made.pair_shares(), {})


def noise_added(
    noise: Noise, parties: int, shape: tuple[int, ...], drawn: np.random.Generator
) -> Counts:
    """The shares of all parties together, not drawn one by one."""
    if isinstance(noise, NoiseShares):
        each, success = parties / noise.honest, -math.expm1(-1 / noise.scale)
        up, down = (drawn.negative_binomial(each, success, shape) for _ in range(2))
        return np.asarray(up - down, dtype=np.int64)
    return np.rint(drawn.normal(0.0, noise.standard_deviation(parties), shape)).astype(np.int64)
