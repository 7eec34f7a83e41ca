"""Ways to trust: the same central ε, and what each costs."""

import numpy as np
import pytest
from helpers import make_study

from mpc_rr.estimation.guessing import guessed_population
from mpc_rr.network.memory import MemoryNetwork
from mpc_rr.planning.crowds import Effort
from mpc_rr.planning.designs import schema_of, setting_of
from mpc_rr.planning.plans import Known, plan
from mpc_rr.planning.trust import (
    local_for,
    messages_sent,
    noise_added,
    noise_in_sum,
    of_noisy_sum,
    ways_to_trust,
)
from mpc_rr.privacy.shuffling import numerical
from mpc_rr.protocols.exact_pairs import ExactPairs
from mpc_rr.protocols.rr_views import RRViews
from mpc_rr.randomness import SeededRandomness
from mpc_rr.running import simulate
from mpc_rr.study.file import Scenario

SIZES = (3, 2, 4, 2)
SCHEMA = schema_of(SIZES)


@pytest.mark.parametrize(("central", "n"), [(0.25, 3000), (1.0, 3000), (4.0, 200)])
def test_the_local_epsilon_is_the_largest_that_a_crowd_amplifies_so(central, n):
    local = local_for(central, n)
    assert local >= central
    assert numerical(local, n, 1e-6) <= central * (1 + 1e-6)
    assert numerical(1.01 * local, n, 1e-6) > central


def test_trust_buys_accuracy():
    """Three thousand people at ε = 0.5: noise in a sum is far less than each one's randomizing."""
    found = plan((2, 3, 2), 3000, 0.5, effort=Effort(populations=2))
    ways, refused = ways_to_trust(found)
    assert refused == {}
    randomized, shuffled, summed = ways
    assert {way.epsilon for way in ways} == {0.5}
    assert (randomized.local_epsilon, summed.local_epsilon) == (0.5, None)
    assert shuffled.local_epsilon > 2
    assert (randomized.delta, shuffled.delta) == (0.0, 1e-6)
    assert summed.delta <= 1e-6
    assert shuffled.outlook.error < 0.6 * randomized.outlook.error
    assert summed.outlook.error < 0.6 * randomized.outlook.error
    assert randomized.trusted == "nobody"
    (stated,) = ExactPairs(noise_epsilon=0.5).disclosures(setting_of(schema_of((2, 3, 2)), 3000))
    assert f"at most {stated.withstands:,} people" in summed.trusted
    assert randomized.minutes(60, 20) == pytest.approx(80 / 60)


def test_what_cannot_be_had_is_refused():
    found = plan((2,) * 4, 3, 1e-3, effort=Effort(populations=2))
    _, refused = ways_to_trust(found)
    assert set(refused) <= {"shuffled", "summed"}


@pytest.mark.parametrize(("sizes", "kind"), [(SIZES[:2], None), ((2,) * 8, "gaussian")])
def test_the_noise_of_a_sum_is_that_of_its_protocol(sizes, kind):
    """Its standard deviation in all cells: within 5 standard errors (once in a million)."""
    schema, runs = schema_of(sizes), 60
    summed = noise_in_sum(setting_of(schema, 100), 2.0)
    protocol, noise = summed.protocol, summed.noise
    assert protocol.noise == kind
    (stated,) = protocol.disclosures(setting_of(schema, 100))
    assert (noise.epsilon, noise.delta) == (stated.epsilon, stated.delta)
    drawn = np.random.default_rng(3)
    added = np.concatenate([noise_added(noise, 100, (50,), drawn) for _ in range(runs)])
    spread = noise.standard_deviation(100)
    error = spread * np.sqrt((2 + max(noise.tails, 0)) / 4 / added.size)
    assert abs(added.std() - spread) < 5 * error
    people = guessed_population(sizes, 0.15, 1).draw(100, np.random.default_rng(1).random)
    seen = of_noisy_sum(noise, 100, schema, people, SeededRandomness(2)).pair_tables
    assert all(table.sum() == pytest.approx(1) for table in seen.values())


def test_noise_is_planned_for_the_fewest_who_may_stay():
    """Four attributes, 300 people of whom 200 must stay, half of the 300 corrupt: of 50 the noise
    must suffice, so that of 300 who stay is six times as large in variance, not twice."""
    study = make_study(300, (3, 2, 3, 2), minimum=200, protocol=RRViews(epsilon=4.0))
    crowds = Effort(populations=2, people=50)
    known = Known(study=study.setting)
    ways, _ = ways_to_trust(plan(study.schema, 300, 4.0, known, crowds))
    summed = noise_in_sum(study.setting, 4.0)
    protocol, noise = summed.protocol, summed.noise
    assert noise == protocol.agreed_noise(study.setting)
    assert noise.honest == 50
    of_all = noise_in_sum(setting_of(study.schema, 300), 4.0).noise
    ratio = noise.standard_deviation(300) / of_all.standard_deviation(300)
    assert ratio == pytest.approx(3**0.5, rel=0.02)
    shuffled = next(way for way in ways if way.name.startswith("shuffled"))
    assert shuffled.local_epsilon == pytest.approx(local_for(4.0, 200))


@pytest.mark.parametrize(
    ("protocol", "n"),
    [(RRViews(epsilon=2.0), 12), (ExactPairs(noise_epsilon=2.0), 8),
     (ExactPairs(noise_epsilon=2.0), 50)],
)  # fmt: skip
def test_messages_are_as_many_as_parties_send(protocol, n, monkeypatch):
    sent = {}
    carry = MemoryNetwork.carry

    def counted(self, sender, *rest):
        sent[sender] = sent.get(sender, 0) + 1
        return carry(self, sender, *rest)

    monkeypatch.setattr(MemoryNetwork, "carry", counted)
    study = make_study(n, (2, 2, 2), protocol=protocol)
    people = np.random.default_rng(0).integers(0, 2, (n, 3)).tolist()
    simulate(Scenario.of(study, [tuple(person) for person in people]), seed=1)
    parties = {count for sender, count in sent.items() if sender != "coordinator"}
    assert parties == {messages_sent(protocol, study.setting)}
