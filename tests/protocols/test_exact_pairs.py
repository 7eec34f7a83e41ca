"""Counts of pairs with noise inside the sum, or with small counts suppressed."""

import dataclasses
import math
from functools import partial
from typing import ClassVar

import msgspec
import numpy as np
import pytest
from helpers import Tapped, crosstabs, make_scenario, make_study, random_records, setting, simulate

from mpc_rr.agents.account import Account
from mpc_rr.agents.coordinator import Coordinator
from mpc_rr.agents.party import Party
from mpc_rr.agents.terms import Terms
from mpc_rr.errors import Declined, InputError, Misconduct, MpcRrError
from mpc_rr.estimation.pairs import PairLayout
from mpc_rr.estimation.suppression import HIDDEN, suppress
from mpc_rr.network.envelope import Envelope, SignedEnvelope
from mpc_rr.network.session.live import LiveSession
from mpc_rr.privacy.noise import NoiseShares
from mpc_rr.privacy.sentences import in_words
from mpc_rr.protocols.exact_pairs import ExactPairs, PublishedTables
from mpc_rr.protocols.rr_clusters import RRClusters
from mpc_rr.randomness import SeededRandomness
from mpc_rr.results.folder import write_results
from mpc_rr.results.verification import verify
from mpc_rr.running import run_study

SIZES = (2, 3, 2)
N = 20
RECORDS = [*random_records(N - 1, (2, 2, 2), seed=1), (1, 2, 1)]
"""Only the last person has value 2 of the second attribute."""
SUPPRESSED = ExactPairs(suppress_below=4)
NOISY = ExactPairs(noise_epsilon=3.0)
GAUSSIAN = ExactPairs(noise_epsilon=3.0, noise="gaussian", noise_delta=1e-4)


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


@pytest.mark.parametrize("noise", [NOISY, GAUSSIAN], ids=["laplace", "gaussian"])
def test_noise_hides_every_count_and_keeps_them_roughly(noise):
    outcome, ends = run(noise)
    result = outcome.result
    errors = np.concatenate(
        [(t - c).ravel() for t, c in zip(result.tables, crosstabs(RECORDS, SIZES), strict=True)]
    )
    assert (errors != 0).mean() > 0.5
    assert abs(errors).max() < 8 * result.noise
    assert result.noise == pytest.approx(noise._noise(PairLayout(SIZES), N).standard_deviation(N))
    for shares in result.pair_shares().values():
        assert shares.sum() == pytest.approx(1)
        assert (shares >= 0).all()
    assert {end.digest for end in ends.values()} == {result.digest}


@pytest.mark.parametrize(
    "noise",
    [NOISY, GAUSSIAN, ExactPairs(noise_epsilon=40.0, noise="gaussian", noise_corrupt=0.0)],
    ids=["laplace", "gaussian", "gaussian in fine units"],
)
def test_the_noise_is_as_large_as_agreed(noise):
    """Over 60 studies the mean square error is that of the noise, give or take a quarter (6 sd)."""
    squares, few = [], RECORDS[:5]
    study, true = make_study(5, SIZES, protocol=noise), crosstabs(few, SIZES)
    for seed in range(60):
        result = simulate(study, few, seed=seed)[0].result
        squares += [((t - c) ** 2).mean() for t, c in zip(result.tables, true, strict=True)]
    assert np.mean(squares) == pytest.approx(result.noise**2, rel=0.25)


def test_the_price_of_noise_is_its_epsilon_and_a_tiny_delta():
    (release,) = NOISY.disclosures(setting(make_study(N, SIZES).schema, N))
    assert release.epsilon == 3.0
    assert 0 < release.delta < 1e-8
    assert release.seen.startswith("by everyone, only in a total")
    assert release.seen.endswith("with noise in it")


def test_the_price_of_gaussian_noise_is_what_the_study_says():
    (release,) = GAUSSIAN.disclosures(setting(make_study(N, SIZES).schema, N))
    assert (release.epsilon, release.delta) == (3.0, 1e-4)
    noise = GAUSSIAN._noise(PairLayout(SIZES), N)
    assert release.answers == dict.fromkeys(("a0", "a1", "a2"), noise.of_one_answer(4))
    assert 3.0 / math.sqrt(2) < release.answers["a0"] < 3.0


def test_gaussian_noise_suffices_if_no_more_come_than_must():
    """Then what is stated before anybody comes is true of any run, of one answer, too."""
    study = make_study(N, SIZES, minimum=10, protocol=GAUSSIAN)
    noise = GAUSSIAN._noise(PairLayout(SIZES), 10)
    assert study.disclosures[0].answers["a1"] == noise.of_one_answer(4)
    assert simulate(study, RECORDS)[0].result.noise == noise.standard_deviation(N)
    assert simulate(study, RECORDS[:12])[0].result.noise == noise.standard_deviation(12)


def test_the_screen_says_how_probably_gaussian_noise_tells_more():
    study = make_study(N, SIZES, protocol=GAUSSIAN)
    (release,) = study.disclosures
    assert 1e-4 < release.beyond < 2e-3
    said = in_words(study.disclosures).split("With a probability of at most ")[1]
    assert release.beyond <= float(said.split(",")[0]) < 2 * release.beyond
    (laplace,) = make_study(N, SIZES, protocol=NOISY).disclosures
    assert laplace.beyond == 0
    assert "totals tell more" not in in_words((laplace,))


def test_the_noise_is_for_all_that_one_record_can_change():
    layout = PairLayout(SIZES)
    change = layout.indicator((0, 0, 0)).astype(int) - layout.indicator((1, 1, 1)).astype(int)
    noise = NOISY._noise(layout, N)
    assert noise.sensitivity == abs(change).sum() == 6
    assert noise.scale == 6 / 3.0


def test_the_noise_suffices_if_no_more_stay_than_must():
    """Eleven of twenty must stay, and ten may tell their noise: that of one is left."""
    study = make_study(
        N, SIZES, minimum=11,
        protocol=ExactPairs(sum="masked_sum", noise_epsilon=30.0),
    )  # fmt: skip
    result = simulate(study, RECORDS)[0].result
    one_honest = NoiseShares(30.0, 6, 1, PairLayout(SIZES).cells)
    assert result.noise == one_honest.standard_deviation(N)


@pytest.mark.parametrize("kind", ["secure_sum", "masked_sum"])
def test_who_was_counted_before_sends_nothing_of_a_second_sum(kind):
    books = {}

    class WithBooks(Party):
        def __init__(self, study, name, *args):
            super().__init__(
                study, name, *args, terms=Terms(account=books.setdefault(name, Account()))
            )

    assert run(ExactPairs(sum=kind), party=WithBooks)[0].result is not None
    network = Tapped()
    assert run(ExactPairs(sum=kind), party=WithBooks, seed=5, network=network)[0].result is None
    steps = {envelope.header.step for envelope in network.envelopes}
    assert not steps & {"hello", "join", "share", "mask_keys"}  # it does not even come


def test_a_coordinator_that_publishes_counts_of_others_than_it_added_up_is_named():
    more = [*RECORDS, *RECORDS[:4]]

    class Showing(LiveSession):
        async def announce_made(self, kind, make, *, check):
            await make()
            shown = suppress(PairLayout(SIZES), crosstabs(more, SIZES), 4)
            cells = np.concatenate(shown, axis=None).astype("<i8").tobytes()
            await self.announce(PublishedTables(len(more), cells))
            return PublishedTables(len(more), cells)

    class Padding(Coordinator):
        session_kind = Showing

    _, ends = run(SUPPRESSED, coordinator=Padding)
    for end in ends.values():
        assert isinstance(end, Misconduct)
        assert "counts of 24 parties where the sum is over 20" in str(end)


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
    assert all(isinstance(end, Declined) for end in ends.values())
    assert all(
        "a second total with other noise tells as much again" in str(e) for e in ends.values()
    )
    assert all(account.ledger.spent == 3.0 for account in books.values())


def test_noise_that_its_owner_gives_again_costs_as_much_again():
    books = {}

    class Insisting(Party):
        def __init__(self, study, name, *args):
            account = books.setdefault(name, Account(budget=7.0))
            super().__init__(study, name, *args, terms=Terms(account=account, again=True))

    for seed, spent in enumerate((3.0, 6.0)):
        assert run(NOISY, party=Insisting, seed=seed)[0].result is not None
        assert all(account.ledger.spent == spent for account in books.values())
    outcome, ends = run(NOISY, party=Insisting, seed=2)
    assert outcome.result is None
    assert all("exceeds the budget of 7" in str(end) for end in ends.values())


def test_a_poisoned_noisy_sum_is_noticed():
    class Poisoner(Party):
        def __init__(self, study, name, record, *args):
            super().__init__(study, name, record, *args)
            self._protocol = Inflated(noise_epsilon=3.0)

    outcome, _ = run(NOISY, parties={"party-07": Poisoner})
    assert outcome.result is None
    assert "poisoned" in outcome.cause


class Shifting(Party):
    """Adds so many to one cell, and takes them from another of the same table."""

    people: ClassVar[int]

    def __init__(self, study, name, record, *args):
        super().__init__(study, name, record, *args)
        self._protocol = Shifted(**msgspec.structs.asdict(study.protocol))


class Shifted(ExactPairs, frozen=True, tag="shifted"):
    def _noise(self, layout, *args, **options):
        noise = super()._noise(layout, *args, **options)

        class Loud(type(noise)):
            def draw(self, rng):
                shift = np.zeros(layout.cells, np.int64)
                shift[[0, layout.sizes[1]]] = Shifting.people, -Shifting.people
                return super().draw(rng) + shift * noise.unit

        return Loud(**dataclasses.asdict(noise))


@pytest.mark.parametrize("people", [-70, 70])
@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize("kind", ["masked_sum", "secure_sum"])
def test_a_count_that_noise_does_not_explain_is_noticed_though_its_table_adds_up(
    kind, noise, people, monkeypatch
):
    """One dishonest party of sixty had a margin of −43 and 107 accepted by all."""
    monkeypatch.setattr(Shifting, "people", people, raising=False)
    records = random_records(60, SIZES, seed=1)
    protocol = ExactPairs(sum=kind, noise_epsilon=6.0, noise=noise)
    study = make_study(60, SIZES, protocol=protocol)
    outcome, ends = simulate(study, records, parties={"party-07": Shifting})
    assert outcome.result is None
    assert "the table of attributes 0 and 1 has a count of" in outcome.cause
    assert all(isinstance(end, MpcRrError) for end in ends.values())


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({}, None),
        ({(0, 1): ((0, 0), 50)}, "sums to 110, not to 60"),
        ({(0, 1): ((0, 0), -40), (0, 2): ((0, 0), 0)}, "has a count of -30 among 60"),
        ({(0, 1): ((0, 0), 71)}, "has a count of 81 among 60"),
        ({(0, 1): ((0, 0), 20), (0, 2): ((0, 0), -5)}, "differ by 25 about how often attribute 0"),
        ({(1, 2): ((2, 0), 20)}, "differ by 20 about how often attribute 1"),
    ],
)
def test_noise_explains_so_much_and_no_more(change, says):
    """Bounds of 20 in a cell, 20 in a margin of two tables, and 40 in a table of six cells."""
    layout = PairLayout(SIZES)
    even = {
        p: np.full([SIZES[a] for a in p], 60 // (SIZES[p[0]] * SIZES[p[1]])) for p in layout.pairs
    }
    for pair, (cell, more) in change.items():
        even[pair][cell] += more
    asked = []

    def bound(cells, times):
        asked.append(times)
        return {1: 20, 5: 19, 4: 19}.get(cells, 40)

    found = layout.beyond_noise(list(even.values()), 60, bound)
    assert says in found if says else found is None
    tests = layout.cells + 3 + sum(SIZES)  # three tables: any two of them share one attribute
    assert set(asked) == {tests}


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_honest_noise_is_never_taken_for_a_fault(kind):
    """400 studies of 60, whose noise is as if 11 of them were honest; a false alarm in 2⁴⁰."""
    layout, records = PairLayout(SIZES), random_records(60, SIZES, seed=1)
    true = np.concatenate([table.ravel() for table in crosstabs(records, SIZES)])
    noise = ExactPairs(noise_epsilon=6.0, noise=kind)._noise(layout, 60, malicious=True)
    largest = 0
    for seed in range(400):
        rng = SeededRandomness(seed)
        added = sum(noise.draw(rng.fork(str(party))) for party in range(60))
        largest = max(largest, abs(added).max())
        tables = layout.tables(true + (added + noise.unit // 2) // noise.unit)
        assert layout.beyond_noise(tables, 60, partial(noise.bound, 60)) is None
    assert largest > noise.standard_deviation(60) * noise.unit * 3.5


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
    [SUPPRESSED, NOISY, GAUSSIAN, RRClusters(keep=0.6, dependence=SUPPRESSED),
     RRClusters(keep=0.6, dependence=NOISY), RRClusters(keep=0.6, dependence=GAUSSIAN)],
    ids=["suppressed", "noisy", "gaussian", "clusters_suppressed", "clusters_noisy",
         "clusters_gaussian"],
)  # fmt: skip
def test_whole_studies_can_be_verified(protocol, tmp_path):
    result = run_study(make_scenario(RECORDS, SIZES, protocol=protocol), transport="memory", seed=3)
    assert result.outcome.result is not None, result.outcome.cause
    write_results(result, tmp_path / "run")
    assert verify(tmp_path / "run")


def test_respondents_read_which_counts_are_hidden():
    for below, words in ((2, "Counts of 1 are hidden"), (7, "Counts from 1 to 6 are hidden")):
        study = setting(make_study(N, SIZES).schema, N)
        told = [str(c) for c in ExactPairs(suppress_below=below).cautions(study)]
        assert any(words in text and "three attributes at a time" in text for text in told)
        assert any(f"below {below} (suppress_below)" in text for text in told)


class Lifting(Party):
    """Adds several people of each kind, whom it takes from one kind, and then its record."""

    people = 2

    def __init__(self, study, *args):
        super().__init__(study, *args)
        self._protocol = Lifted(**msgspec.structs.asdict(study.protocol))


class Lifted(ExactPairs, frozen=True, tag="lifted"):
    async def add_party(self, session, vector, modulus, **options):
        layout = PairLayout(SIZES)
        of = layout.free_vector if len(vector) < layout.cells else layout.indicator
        kinds = [of(record).astype(np.int64) for record in np.ndindex(SIZES)]
        vector = vector.astype(np.int64) + Lifting.people * (sum(kinds) - len(kinds) * kinds[0])
        return await super().add_party(
            session, (vector % modulus).astype(np.uint64), modulus, **options
        )


@pytest.mark.parametrize("kind", ["secure_sum", "masked_sum"])
def test_a_participant_who_lies_has_small_counts_shown_and_every_respondent_reads_that(kind):
    """It adds so much to each count that none is small, takes it off again, and nobody notices."""
    records = [(0, 0, 0)] * 40 + RECORDS
    true, layout = crosstabs(records, SIZES), PairLayout(SIZES)
    protocol = ExactPairs(sum=kind, suppress_below=4)
    study = make_study(len(records), SIZES, protocol=protocol)
    outcome, ends = simulate(study, records, parties={"party-07": Lifting})
    assert not any(isinstance(end, MpcRrError) for end in ends.values())
    added = crosstabs([*np.ndindex(SIZES)] * Lifting.people, SIZES)
    cells = math.prod(SIZES)
    for shown, more, table in zip(outcome.result.tables, added, true, strict=True):
        more[0, 0] -= Lifting.people * cells
        np.testing.assert_array_equal(shown - more, table)
    honest = suppress(layout, true, 4)
    assert any(((t > 0) & (t < 4) & (h == HIDDEN)).any() for t, h in zip(true, honest, strict=True))

    told = [str(caution) for caution in protocol.cautions(study.setting)]
    assert any("One dishonest party" in text and "takes that off again" in text for text in told)


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
        (ExactPairs(noise="gaussian"), "noise goes with noise_epsilon"),
        (ExactPairs(noise_delta=1e-6), "noise_delta goes with noise_epsilon"),
        (ExactPairs(noise_epsilon=1.0, noise_delta=1e-6), 'goes with noise = "gaussian"'),
        (ExactPairs(noise_epsilon=1.0, noise="gaussian", noise_delta=0.0), "between 0 and 0.05"),
        (ExactPairs(noise_epsilon=1.0, noise="gaussian", noise_delta=0.05), "between 0 and 0.05"),
    ],
)
def test_options_that_make_no_sense(protocol, wrong):
    with pytest.raises(InputError, match=wrong):
        protocol.check(setting(make_study(N, SIZES).schema, N))


def test_of_too_few_people_for_suppression_only_their_number_is_published():
    study = make_study(4, SIZES, protocol=ExactPairs(suppress_below=5))
    outcome, ends = simulate(study, RECORDS[:4])
    for end in (outcome.result, *ends.values()):
        assert end.n == 4
        assert all((table == HIDDEN).all() for table in end.tables)


def test_the_screen_says_how_many_may_pool_what_they_know_if_no_more_come_than_must():
    study = make_study(30, SIZES, minimum=10, protocol=ExactPairs(noise_epsilon=1.0))
    (event,) = study.disclosures
    assert event.withstands == 5
    assert "as long as at most 5 parties pool what they know" in event.how
    (masked,) = ExactPairs(noise_epsilon=1.0, sum="masked_sum").disclosures(study.setting)
    # There noise is reckoned for those who stay of all, 15; but masks withstand fewer.
    assert masked.withstands == 3
    few = ExactPairs(noise_epsilon=1.0, noise_corrupt=0.05, sum="masked_sum")
    assert few.disclosures(study.setting)[0].withstands == 1
