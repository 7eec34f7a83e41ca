"""Whole transcripts: what anybody could learn of a record from them is within the ledger's ε.

One victim holds one of two opposite records. Everything that crosses the network is seen, every
byte of it, signatures and sealed shares among them; and all that others drew, and the victim's own
keys and masks, are held fixed, as if all others had pooled what they know and had broken the sum.
What is left to chance is what the victim's ledger draws for her answers. So whatever of her record
got out in any other way would make a transcript that one record has and the other has not.

Exactly: every draw is replaced by a branch for each of its outcomes, with its probability as a
fraction (that draws have these probabilities is the matter of ``tests/test_randomness.py``), and
the agents are run with every answer that comes of it. No likelihood ratio may exceed e to the ε
that the ledger shows after the run, but for the rounding of that float, and one must reach it: else
the ledger would say too much, and the two records would not be those that tell it.

By chance (``sweep``): the ledger draws by its secret, another one in each run; a coin chooses the
record. Whatever transcript was seen, either record is then behind it with a probability of at most
e^ε/(1 + e^ε). That gives a binomial test for each transcript, and one for whoever guesses by what
earlier runs have taught. All of them together give a false alarm once in a million sets of seeds
for each protocol, and seeds are fixed.

Noise in a sum has too many outcomes for branches; there the distribution of the published totals is
reckoned in integers, from the words that draws are compared with.
"""

import asyncio
import hashlib
import itertools
import math
import os
from collections import defaultdict
from dataclasses import dataclass, replace
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from drawing import polya_words
from helpers import Tapped, make_study
from scipy.stats import binom

from mpc_rr.agents.account import Account
from mpc_rr.agents.coordinator import Coordinator
from mpc_rr.agents.host import run_parties
from mpc_rr.agents.party import Party
from mpc_rr.agents.terms import Terms
from mpc_rr.estimation.pairs import PairLayout
from mpc_rr.network.envelope import COORDINATOR
from mpc_rr.network.memory import MemoryNetwork
from mpc_rr.privacy.accountant import Reading
from mpc_rr.privacy.gaussian_shares import GaussianShares
from mpc_rr.privacy.noise import NoiseShares
from mpc_rr.protocols import registry
from mpc_rr.protocols.block_aggregation import BlockAggregation, BlockAnswer
from mpc_rr.protocols.budgets import Own
from mpc_rr.protocols.collection import Answer
from mpc_rr.protocols.exact_pairs import ExactPairs
from mpc_rr.protocols.interface import StudyProtocol
from mpc_rr.protocols.lambda_randomization import LambdaRandomization
from mpc_rr.protocols.rr_clusters import Clustering, RRClusters
from mpc_rr.protocols.rr_each_attribute import RREachAttribute
from mpc_rr.protocols.rr_independent import RRIndependent
from mpc_rr.protocols.rr_joint import RRJoint
from mpc_rr.protocols.rr_pairs import RRPairs
from mpc_rr.protocols.rr_views import RRViews
from mpc_rr.randomness import Randomness, SeededRandomness
from mpc_rr.simulation.clock import run_virtual
from mpc_rr.study.file import party_names

ROUNDING = 1e-12
"""How far a printed ε may be from what it is, relative to it (``docs/draws.md``)."""
FALSE_ALARM = 1e-6
SEEDS = int(os.environ.get("MPC_RR_SWEEP_SEEDS", "2000"))


@dataclass(frozen=True)
class Case:
    """A protocol among parties of whom one is the victim; the others have made up their minds."""

    protocol: StudyProtocol
    sizes: tuple[int, ...] = (2, 2)
    others: tuple[tuple[int, ...], ...] = ((1, 1),)
    place: int = 0
    seed: int = 1
    minimum: int | None = None
    victim: type[Party] = Party

    @property
    def opposite(self):
        """Two records that have no answer in common."""
        return tuple(size - 1 for size in self.sizes), (0,) * len(self.sizes)

    def records(self, victim):
        return [*self.others[: self.place], victim, *self.others[self.place :]]

    @property
    def study(self):
        count = len(self.others) + 1
        return make_study(count, self.sizes, protocol=self.protocol, minimum=self.minimum)


def clustered(dependence):
    """Where so little dependence is enough that one answer can decide on the clusters."""
    return RRClusters(keep=0.4, most_combinations=4, least_dependence=0.02, dependence=dependence)


IN_BLOCKS = BlockAggregation(p=0.4, floor=0.6, block=1)
ENOUGH = BlockAggregation(p=0.9, floor=0.6, block=1, enough=0.49)
"""Enough once two have answered, if they answered alike."""
THREE_OTHERS = ((1, 1), (0, 0), (1, 1))
SLANTED = Own(matrix=((0.7, 0.2, 0.1), (0.2, 0.6, 0.2), (0.1, 0.3, 0.6)))
"""Of three answers, the first and the last are told apart best."""
CASES = {
    "rr_independent": Case(RRIndependent(keep=0.4), (2, 3), ((1, 2),)),
    "rr_joint": Case(RRJoint(epsilon=1.0), (2, 3), ((1, 2),)),
    "lambda_randomization": Case(
        LambdaRandomization(lambdas={"a0": 0.2, "a1": 0.4}), (2, 3), ((1, 2),)
    ),
    "rr_each_attribute": Case(RREachAttribute(epsilon=1.5), (2, 3), ((1, 2),)),
    "rr_independent, each its own": Case(
        RRIndependent(epsilon=3.0, each={"a1": SLANTED, "a2": Own(keep=0.2)}),
        (2, 3, 2),
        ((1, 2, 0),),
    ),
    "rr_joint, rather near": Case(RRJoint(stay=0.6), (2, 3), ((1, 2),)),
    "rr_clusters, given": Case(
        RRClusters(
            keep=0.4,
            clusters=(("a0", "a2"),),
            each={"a1": SLANTED, "a2": Own(epsilon=0.5)},
        ),
        (2, 3, 2),
        ((1, 2, 0),),
    ),
    "rr_views": Case(RRViews(epsilon=0.3, together=2), (2, 2, 2), ((1, 1, 0),)),
    "rr_pairs": Case(RRPairs(keep=0.3), (2, 2, 2), ((1, 1, 0), (0, 1, 1))),
    "rr_clusters, each attribute": Case(
        clustered(RREachAttribute(keep=0.4)), others=((0, 0), (0, 0), (1, 1)), seed=10
    ),
    "rr_clusters, pairs": Case(
        clustered(RRPairs(keep=0.8)), others=((0, 0), (0, 0), (1, 1), (1, 1)), seed=2
    ),
    "block_aggregation": Case(IN_BLOCKS),
    "block_aggregation, asked later": Case(IN_BLOCKS, others=((1, 1), (1, 1)), place=2),
    "block_aggregation, her answer may be enough": Case(
        ENOUGH, others=((1, 1), (1, 1)), minimum=2, seed=2
    ),
}
FINDING_CLUSTERS = ("rr_clusters, each attribute", "rr_clusters, pairs")
NOISY = ExactPairs(noise_epsilon=2.0, sum="secure_sum")
"""Of four parties, noise withstands two that pool what they know: half, if nothing else is said."""


# ── A run, and all that is seen of it ──────────────────────────────────────────────────────────


class Drawing(Account):
    """A ledger as it is, but for how it draws."""

    def __init__(self, how, secret=b""):
        super().__init__(secret=secret)
        self._how = how

    def once(self, study, record, label, draw, given=b""):
        def drawn(rng):
            return self._how((label, given), draw, rng)

        return super().once(study, record, label, drawn, given)


def run(case, record, *, network, account, rngs=None):
    """The real agents in memory; ``rngs``: where single parties have their bytes from."""
    study, names = case.study, party_names(len(case.others) + 1)

    async def main():
        rng = SeededRandomness(case.seed)
        boss = Coordinator(study, network.attach(COORDINATOR), rng.fork("coordinator"))
        parties = []
        for place, (name, own) in enumerate(zip(names, case.records(record), strict=True)):
            kind, ledger = (case.victim, account) if place == case.place else (Party, Account())
            bits = (rngs or {}).get(place, rng.fork(name))
            terms = Terms(account=ledger)
            parties.append(kind(study, name, own, network.attach(name), bits, terms=terms))
        return await asyncio.gather(boss.run(), run_parties(parties))

    outcome, _ = run_virtual(main())
    assert outcome.result is not None, outcome.cause


@dataclass(frozen=True)
class Seen:
    """One run: its transcript, in a digest; the clusters it announced; how many answered; the
    ledger after it."""

    transcript: bytes
    clusters: tuple[bytes, ...]
    answered: int
    reading: Reading


def seen(case, record, account):
    network = Tapped()
    run(case, record, network=network, account=account)
    told = hashlib.sha256()
    for sender, target, raw in network.captured:
        told.update(f"{sender} {target} {len(raw)}\0".encode() + raw)
    sent = [(envelope.header.step, envelope.body) for envelope in network.envelopes]
    clusters = tuple(body for step, body in sent if step == Clustering.step)
    answered = sum(step == BlockAnswer.step for step, _ in sent)
    return Seen(told.digest(), clusters, answered, account.ledger.reading())


# ── Exactly ────────────────────────────────────────────────────────────────────────────────────


class Branch(Randomness):
    """One branch of all that may be drawn: first along a path, then to the first outcome each."""

    def __init__(self, path=()):
        self.path, self.chance = list(path), Fraction(1)
        self._outcomes, self._taken = [], 0

    def pick(self, chances):
        """One of the outcomes that are possible at all."""
        possible = [i for i, chance in enumerate(chances) if chance]
        if self._taken == len(self.path):
            self.path.append(0)
        outcome = possible[self.path[self._taken]]
        self._outcomes.append(len(possible))
        self._taken += 1
        self.chance *= chances[outcome]
        return outcome

    def following(self):
        """The path of the next branch; None after the last."""
        path = self.path
        while path and path[-1] == self._outcomes[len(path) - 1] - 1:
            path = path[:-1]
        return [*path[:-1], path[-1] + 1] if path else None

    def _drawn(self, chances, shape, dtype):
        picked = [self.pick(chances) for _ in range(math.prod(shape))]
        return np.array(picked, dtype=dtype).reshape(shape)

    def below(self, modulus, shape):
        return self._drawn([Fraction(1, modulus)] * modulus, shape, np.uint64)

    def bernoulli(self, chance, shape):
        yes = Fraction(float(chance))
        return self._drawn([1 - yes, yes], shape, np.bool_)

    def categorical(self, weights, shape):
        exact = [Fraction(weight) for weight in np.asarray(weights).tolist()]
        return self._drawn([weight / sum(exact) for weight in exact], shape, np.int64)

    def subsets(self, size, chosen, rows):
        sets = list(itertools.combinations(range(size), chosen))
        numbers = self._drawn([Fraction(1, len(sets))] * len(sets), (rows,), np.int64)
        return np.array([sets[number] for number in numbers], dtype=np.int64)

    def fork(self, label):
        return self

    def bytes(self, count):
        raise NotImplementedError("bytes have too many outcomes")


class Bold(Randomness):
    """Where yes is twice as likely as it should be: so is the truth, of which all here ask that."""

    def __init__(self, honest):
        self._honest = honest

    def bernoulli(self, chance, shape):
        assert chance <= 0.5
        return self._honest.bernoulli(2 * chance, shape)

    def below(self, modulus, shape):
        return self._honest.below(modulus, shape)

    def categorical(self, weights, shape):
        return self._honest.categorical(weights, shape)

    def subsets(self, size, chosen, rows):
        return self._honest.subsets(size, chosen, rows)

    def bytes(self, count):
        return self._honest.bytes(count)

    def fork(self, label):
        return Bold(self._honest.fork(label))


def honest(rng):
    return rng


def paths():
    """A branch for all that may be drawn: each is to be followed before the next is asked for."""
    path = []
    while path is not None:
        branch = Branch(path)
        yield branch
        path = branch.following()


def distribution(draw, source):
    """The probability of everything that may come out of a draw."""
    chances = defaultdict(Fraction)
    for branch in paths():
        chances[draw(source(branch))] += branch.chance
    return sorted(chances.items())


def branches(case, record, source):
    """Every run that is possible with a record, and its probability: one for each answer."""
    known = {}
    for branch in paths():

        def how(place, draw, _, branch=branch):
            draw(source(Branch()))  # in every run, as it may enter its price in the ledger
            if place not in known:
                known[place] = distribution(draw, source)
            answers, chances = zip(*known[place], strict=True)
            return answers[branch.pick(chances)]

        yield seen(case, record, Drawing(how)), branch.chance


def logarithm(ratio):
    with localcontext() as context:
        context.prec = 50
        return abs((Decimal(ratio.numerator) / Decimal(ratio.denominator)).ln())


@dataclass(frozen=True)
class Found:
    """The largest log-likelihood ratio of a transcript, as a share of the ε in the ledger.

    And in which clusters attributes were put, and how many answered, over all branches.
    """

    share: float
    clusters: set[tuple[bytes, ...]]
    answered: set[int]


def explored(case, source=honest):
    chances, spent = (defaultdict(Fraction), defaultdict(Fraction)), {}
    clusters, answered = set(), set()
    for number, record in enumerate(case.opposite):
        for one, chance in branches(case, record, source):
            chances[number][one.transcript] += chance
            assert spent.setdefault(one.transcript, one.reading) == one.reading
            assert one.reading.local_delta == 0
            clusters.add(one.clusters)
            answered.add(one.answered)
        assert sum(chances[number].values()) == 1
    if set(chances[0]) != set(chances[1]):
        return Found(math.inf, clusters, answered)
    share = max(
        float(logarithm(chance / chances[1][transcript]) / Decimal(spent[transcript].local))
        for transcript, chance in chances[0].items()
    )
    return Found(share, clusters, answered)


@pytest.mark.parametrize("name", CASES)
def test_no_transcript_tells_more_than_the_ledger_says_nor_does_the_ledger_say_too_much(name):
    """Where what comes after an answer follows from it, it must do so here."""
    case = CASES[name]
    found = explored(case)
    assert 1 - 1e-9 < found.share <= 1 + ROUNDING
    assert len(found.clusters) == (2 if name in FINDING_CLUSTERS else 1)
    assert len(found.answered) == (2 if case.protocol == ENOUGH else 1)


@pytest.mark.parametrize(
    "name",
    [
        name
        for name, c in CASES.items()
        if name not in ("rr_clusters, pairs", "rr_joint, rather near") and c.protocol != ENOUGH
    ],
)
def test_a_victim_that_tells_the_truth_twice_as_often_is_noticed(name):
    assert explored(CASES[name], Bold).share > 1.1


def test_a_record_that_gets_out_beside_the_answer_is_noticed():
    """Whatever else differs makes a transcript that only one of the records has."""

    class Telltale(Party):
        async def _goodbye(self):
            for _ in range(1 + self._record[0]):
                await super()._goodbye()

    assert explored(replace(CASES["rr_joint"], victim=Telltale)).share == math.inf


def test_a_victim_that_is_not_asked_tells_nothing_and_pays_nothing():
    case = Case(ENOUGH, others=((1, 1), (1, 1)), place=2, minimum=2, seed=2)
    first, second = (seen(case, record, Account()) for record in case.opposite)
    assert first == second
    assert first.reading.local == 0


def test_every_protocol_with_a_finite_price_is_here():
    """The two that anonymize tell values as they are; `exact_pairs` is below.

    `exact_moments` sends what that sends; its vectors are tried in `tests/privacy`.
    """
    bare = {"collaborative_k_anonymity", "collaborative_masking", "exact_moments"}
    built_in = {name for name in registry.known() if registry.origin(name) == registry.BUILT_IN}
    assert {case.protocol.name for case in CASES.values()} == built_in - bare - {NOISY.name}


# ── By chance ──────────────────────────────────────────────────────────────────────────────────


def alarm(found, epsilon):
    """The chance of what was found, or worse, if a transcript's odds were within e^ε: at most this.

    ``found``: the transcript of each run, and which of the two records made it, chosen by a coin.
    """
    most = 1 / (1 + math.exp(-epsilon))
    counts = defaultdict(lambda: [0, 0])
    for transcript, coin in found:
        counts[transcript][coin] += 1
    chances = [2 * binom.sf(max(pair) - 1, sum(pair), most) for pair in counts.values()]

    taught = defaultdict(lambda: [0, 0])
    for transcript, coin in found[::2]:
        taught[transcript][coin] += 1
    guessed = [coin == (taught[t][1] > taught[t][0]) for t, coin in found[1::2] if t in taught]
    chances.append(binom.sf(sum(guessed) - 1, len(guessed), most))
    return min(1.0, len(chances) * float(min(chances)))


def secret_and_coin(seed):
    digest = hashlib.sha512(f"likelihood ratios {seed}".encode()).digest()
    return digest[:32], digest[32] & 1


def runs(case, source=honest, count=SEEDS):
    """Many runs, each with another secret; and the ε that all ledgers show."""
    found, spent = [], set()
    for seed in range(count):
        secret, coin = secret_and_coin(seed)
        ledger = Drawing(lambda _, draw, rng: draw(source(rng)), secret)
        one = seen(case, case.opposite[coin], ledger)
        found.append((one.transcript, coin))
        spent.add(one.reading.local)
    (epsilon,) = spent
    return found, epsilon


@pytest.mark.sweep
@pytest.mark.parametrize("name", CASES)
def test_transcripts_of_many_secrets_are_within_the_ledgers_epsilon(name):
    """One false alarm in a million sets of seeds."""
    assert alarm(*runs(CASES[name])) > FALSE_ALARM


@pytest.mark.sweep
def test_many_secrets_notice_a_victim_that_tells_the_truth_twice_as_often():
    assert alarm(*runs(CASES["rr_independent"], Bold, count=400)) < FALSE_ALARM


# ── Noise inside a sum ─────────────────────────────────────────────────────────────────────────


CORRUPT = (2, 3)
FOUR = Case(NOISY, others=THREE_OTHERS)
IN_CLUSTERS = replace(FOUR, protocol=clustered(NOISY))


def added(one, other):
    """The distribution of a sum of two numbers, each from 0 on."""
    total = [0] * (len(one) + len(other) - 1)
    for (i, first), (j, second) in itertools.product(enumerate(one), enumerate(other)):
        total[i + j] += first * second
    return total


def noise_of(share):
    """One party's noise in a cell, in units of 2⁻¹²⁸, from the lowest to the highest."""
    words = polya_words(share.honest, share.sensitivity / Decimal(share.epsilon))
    limits = [1 << 64, *words, 0]
    polya = [upper - lower for upper, lower in itertools.pairwise(limits)]
    return added(polya, polya[::-1])


def failing(shares, epsilon):
    """The δ with which totals with these parties' noise are ε-private, exactly.

    The victim's cell is one more with her record, and the opposite record's cell one less.
    """
    noise = [1]
    for share in shares:
        noise = added(noise, noise_of(share))
    with localcontext() as context:
        context.prec = 80
        odds = Fraction(Decimal(epsilon).exp())
    pairs = [*itertools.pairwise([0, *noise, 0])]  # with the one record, and with the other
    beyond = sum(
        max(one * lower * odds.denominator - other * upper * odds.numerator, 0)
        for (one, other), (upper, lower) in itertools.product(pairs, pairs)
    )
    return Fraction(beyond, odds.denominator << (2 * 128 * len(shares)))


def agreed_noise(monkeypatch, case=None):
    """The shares of noise that four parties draw in a run, and the victim's ledger after it."""
    case = FOUR if case is None else case
    kind = NoiseShares if case is FOUR else GaussianShares
    drawn, draw = [], kind.draw

    def noted(share, rng):
        drawn.append(share)
        return draw(share, rng)

    monkeypatch.setattr(kind, "draw", noted)
    account = Account()
    run(case, (1, 1), network=MemoryNetwork(), account=account)
    assert len(drawn) == 4
    return drawn, account.ledger.reading()


def test_totals_without_what_half_of_the_parties_know_are_as_private_as_the_ledger_says(
    monkeypatch,
):
    shares, reading = agreed_noise(monkeypatch)
    others = shares[: -len(CORRUPT)]
    assert failing(others, reading.local) <= reading.local_delta < 1e-9
    assert failing(others, reading.local * (1 - 1e-6)) > reading.local_delta


def test_a_victim_with_half_the_noise_is_noticed(monkeypatch):
    (share, *_), reading = agreed_noise(monkeypatch)
    half = replace(share, epsilon=2 * share.epsilon)
    assert failing([half, share], reading.local) > 1e6 * reading.local_delta


GAUSSIAN = ExactPairs(noise_epsilon=2.0, noise="gaussian", noise_delta=1e-4, sum="secure_sum")


def failing_gaussian(shares, epsilon):
    """The same of Gaussian shares, in floats: δ is large enough for them."""
    total, unit = np.ones(1), shares[0].unit
    for share in shares:
        reach = math.ceil(10 * math.sqrt(share.variance))
        one = np.exp(-(np.arange(-reach, reach + 1.0) ** 2) / (2 * share.variance))
        total = np.convolve(total, one / one.sum())
    raised, as_it_is = (
        np.pad(total, ends) for ends in ((unit, 0), (0, unit))
    )  # with the one record, and with the other
    beyond = np.outer(raised, as_it_is) - math.exp(epsilon) * np.outer(as_it_is, raised)
    return float(np.maximum(beyond, 0).sum())


def test_totals_with_gaussian_noise_are_as_private_as_the_ledger_says(monkeypatch):
    shares, reading = agreed_noise(monkeypatch, replace(FOUR, protocol=GAUSSIAN))
    others = shares[: -len(CORRUPT)]
    assert (reading.local, reading.local_delta) == (2.0, 1e-4)
    assert 0.5e-4 < failing_gaussian(others, 2.0) <= 1e-4
    assert failing_gaussian(others[:1], 2.0) > 1e-3


class WithoutNoise(Randomness):
    """Of a party that adds no noise: as if those who pool what they know had taken it off."""

    def __init__(self, rng, label=""):
        self._rng, self._label = rng, label

    def bytes(self, count):
        return b"\xff" * count if self._label == "noise" else self._rng.bytes(count)

    def fork(self, label):
        return WithoutNoise(self._rng.fork(label), label)


def noisy_runs(case, monkeypatch, silent=CORRUPT, count=SEEDS):
    """Many runs, seen by whoever knows the records of all others, and the noise of some.

    Of the totals, whether the victim's cell and the opposite one hold more than all others put
    there: no other question has larger odds. And the clusters and the victim's answer, if any.
    """
    totals, beyond = [], PairLayout.beyond_noise

    def noted(layout, tables, *rest):
        totals.append(np.concatenate(tables, axis=None))
        return beyond(layout, tables, *rest)

    monkeypatch.setattr(PairLayout, "beyond_noise", noted)
    known = sum(PairLayout(case.sizes).indicator(other).astype(int) for other in case.others)
    found, spent = [], set()
    for seed in range(count):
        _, coin = secret_and_coin(seed)
        rngs = {k: SeededRandomness(f"{k} in {seed}".encode()) for k in range(4)}
        rngs |= {k: WithoutNoise(rngs[k]) for k in silent}
        network, account = Tapped(), Account()
        run(case, case.opposite[coin], network=network, account=account, rngs=rngs)
        rest = totals[-1] - known
        open_ones = [
            envelope.body
            for envelope in network.envelopes
            if envelope.header.step == Clustering.step
            or (envelope.header.step, envelope.header.sender) == (Answer.step, "party-1")
        ]
        found.append(((rest[0] > 0, rest[-1] > 0, *open_ones), coin))
        spent.add(account.ledger.reading().local)
    (epsilon,) = spent
    return found, epsilon


@pytest.mark.sweep
@pytest.mark.parametrize("case", [FOUR, IN_CLUSTERS], ids=["exact_pairs", "rr_clusters"])
def test_many_noisy_totals_are_within_the_ledgers_epsilon(case, monkeypatch):
    """One false alarm in a million sets of seeds (and δ, which is far less)."""
    assert alarm(*noisy_runs(case, monkeypatch)) > FALSE_ALARM


@pytest.mark.sweep
def test_many_totals_notice_that_nobody_adds_noise(monkeypatch):
    assert alarm(*noisy_runs(FOUR, monkeypatch, silent=range(4), count=400)) < FALSE_ALARM
