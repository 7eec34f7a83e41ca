"""Counts of pairs with noise inside the sum, or with small counts suppressed."""

import math

import msgspec
import numpy as np
import pytest
from helpers import Tapped, crosstabs, make_scenario, make_study, random_records, setting, simulate

from mpc_rr.agents.account import Account
from mpc_rr.agents.coordinator import Coordinator
from mpc_rr.agents.party import Party
from mpc_rr.agents.terms import Terms
from mpc_rr.errors import InputError, Misconduct, MpcRrError
from mpc_rr.estimation.pairs import PairLayout
from mpc_rr.estimation.suppression import HIDDEN
from mpc_rr.network.envelope import Envelope, SignedEnvelope
from mpc_rr.network.session.live import LiveSession
from mpc_rr.protocols.exact_pairs import ExactPairs, PublishedTables
from mpc_rr.protocols.rr_clusters import RRClusters
from mpc_rr.results.folder import write_results
from mpc_rr.results.verification import verify
from mpc_rr.running import run_study

SIZES = (2, 3, 2)
N = 20
RECORDS = [*random_records(N - 1, (2, 2, 2), seed=1), (1, 2, 1)]
"""Only the last person has value 2 of the second attribute."""
SUPPRESSED = ExactPairs(suppress_below=4)
NOISY = ExactPairs(noise_epsilon=3.0)


def run(protocol, **how):
    study = make_study(N, SIZES, protocol=protocol)
    return simulate(study, RECORDS, **how)


def test_a_single_person_cell_tells_the_rest_of_that_person_and_suppression_stops_it():
    """Whoever knows that somebody has value 2 of a1 finds the only non-zero cell of that line."""
    exact = run(ExactPairs())[0].result.tables
    a0_of_the_person = np.flatnonzero(exact[0][:, 2])
    a2_of_the_person = np.flatnonzero(exact[2][2])
    assert (a0_of_the_person, a2_of_the_person) == ([1], [1])

    network = Tapped()
    outcome, ends = run(SUPPRESSED, network=network)
    tables = outcome.result.tables
    assert (tables[0][:, 2] == HIDDEN).all()
    assert (tables[2][2] == HIDDEN).all()
    assert not any(((t > 0) & (t < 4)).any() for t in tables)
    for end in ends.values():
        assert end.digest == outcome.result.digest
    # Nothing on the broker or in the transcript adds up to the exact counts.
    assert not [e for e in network.envelopes if e.header.step == "partial"]
    partials = {e.header.sender for e in network.envelopes if e.header.step == "confided_partial"}
    assert len(partials) == N
    kept = [msgspec.msgpack.decode(msgspec.msgpack.decode(raw, type=SignedEnvelope).envelope,
                                   type=Envelope) for raw in outcome.transcript]  # fmt: skip
    assert "confided_partial" not in {envelope.header.step for envelope in kept}


def test_what_is_shown_is_exact():
    tables = run(SUPPRESSED)[0].result.tables
    for shown, true in zip(tables, crosstabs(RECORDS, SIZES), strict=True):
        np.testing.assert_array_equal(shown[shown != HIDDEN], true[shown != HIDDEN])


def test_noise_hides_every_count_and_keeps_them_roughly():
    outcome, ends = run(NOISY)
    result = outcome.result
    errors = np.concatenate(
        [(t - c).ravel() for t, c in zip(result.tables, crosstabs(RECORDS, SIZES), strict=True)]
    )
    assert (errors != 0).mean() > 0.5
    assert abs(errors).max() < 8 * result.noise
    assert result.noise == pytest.approx(NOISY._noise(PairLayout(SIZES), N).standard_deviation(N))
    for shares in result.pair_shares().values():
        assert shares.sum() == pytest.approx(1)
        assert (shares >= 0).all()
    assert {end.digest for end in ends.values()} == {result.digest}


def test_the_noise_is_as_large_as_agreed():
    """Over 60 studies the mean square error is that of the noise, give or take a quarter (6 sd)."""
    squares, few = [], RECORDS[:5]
    study, true = make_study(5, SIZES, protocol=NOISY), crosstabs(few, SIZES)
    for seed in range(60):
        result = simulate(study, few, seed=seed)[0].result
        squares += [((t - c) ** 2).mean() for t, c in zip(result.tables, true, strict=True)]
    assert np.mean(squares) == pytest.approx(result.noise**2, rel=0.25)


def test_the_price_of_noise_is_its_epsilon_and_a_tiny_delta():
    (release,) = NOISY.disclosures(setting(make_study(N, SIZES).schema, N))
    assert release.epsilon == 3.0
    assert 0 < release.delta < 1e-8
    assert release.seen == "by everybody, only in a total with noise in it"


def test_noise_is_given_once_for_a_study():
    books = {}

    class WithBooks(Party):
        def __init__(self, study, name, *args):
            super().__init__(
                study, name, *args, terms=Terms(account=books.setdefault(name, Account()))
            )

    assert run(NOISY, party=WithBooks)[0].result is not None
    outcome, ends = run(NOISY, party=WithBooks, seed=5)
    assert outcome.result is None
    assert all(isinstance(end, MpcRrError) for end in ends.values())
    assert any("noisy counts for this study before" in str(end) for end in ends.values())


def test_a_poisoned_noisy_sum_is_noticed():
    class Poisoner(Party):
        def __init__(self, study, name, record, *args):
            super().__init__(study, name, record, *args)
            self._protocol = Inflated(noise_epsilon=3.0)

    outcome, _ = run(NOISY, parties={"party-07": Poisoner})
    assert outcome.result is None
    assert "poisoned" in outcome.cause


class Inflated(ExactPairs, frozen=True, tag="inflated"):
    """Adds noise as if there were one honest party only, forty times over."""

    def _noise(self, layout, parties, staying=None, *, malicious=False):
        noise = super()._noise(layout, parties, staying, malicious=malicious)

        class Loud(type(noise)):
            def draw(self, rng):
                return super().draw(rng) + 60

        return Loud(noise.epsilon, noise.sensitivity, noise.honest, noise.cells)


class Showing(LiveSession):
    async def announce_made(self, kind, make, *, check):
        await make()
        tables = np.concatenate(crosstabs(RECORDS, SIZES), axis=None)
        shown = PublishedTables(N, tables.astype("<i8").tobytes())
        await self.announce(shown)
        return shown


class Careless(Coordinator):
    """Publishes the exact counts although the study says to suppress."""

    session_kind = Showing


def test_a_coordinator_that_shows_a_small_count_is_named():
    _, ends = run(SUPPRESSED, coordinator=Careless)
    for end in ends.values():
        assert isinstance(end, Misconduct)
        assert "shows a count below 4" in str(end)


@pytest.mark.parametrize(
    "protocol",
    [SUPPRESSED, NOISY, RRClusters(keep=0.6, dependence=SUPPRESSED),
     RRClusters(keep=0.6, dependence=NOISY)],
    ids=["suppressed", "noisy", "clusters_suppressed", "clusters_noisy"],
)  # fmt: skip
def test_whole_studies_can_be_verified(protocol, tmp_path):
    result = run_study(make_scenario(RECORDS, SIZES, protocol=protocol), transport="memory", seed=3)
    assert result.outcome.result is not None, result.outcome.cause
    write_results(result, tmp_path / "run")
    assert verify(tmp_path / "run")


def test_hidden_counts_are_not_published():
    found = run(SUPPRESSED)[0].result.publish(setting(make_study(N, SIZES).schema, N))
    assert found.table("a0", "a1").rows()[1][2] is None
    hidden = sum(cell is None for table in found.tables for cell in table.values)
    assert found.findings[1].numbers["suppressed_cells"] == hidden > 0
    assert "p_value" not in [column.name for column in found.listing("dependence").columns]


@pytest.mark.parametrize(
    ("protocol", "wrong"),
    [
        (ExactPairs(noise_epsilon=0.0), "positive, finite epsilon"),
        (ExactPairs(noise_epsilon=math.inf), "positive, finite epsilon"),
        (ExactPairs(noise_epsilon=1.0, suppress_below=3), "exclude each other"),
        (ExactPairs(noise_corrupt=0.2), "goes with noise_epsilon"),
        (ExactPairs(noise_epsilon=1.0, noise_corrupt=1.0), "between 0 and 1"),
        (ExactPairs(suppress_below=1), "2 or more"),
    ],
)
def test_options_that_make_no_sense(protocol, wrong):
    with pytest.raises(InputError, match=wrong):
        protocol.check(setting(make_study(N, SIZES).schema, N))


def test_too_few_people_for_suppression_end_the_study_plainly():
    study = make_study(4, SIZES, protocol=ExactPairs(suppress_below=5))
    outcome, _ = simulate(study, RECORDS[:4])
    assert outcome.result is None
    assert "too few people" in outcome.cause
