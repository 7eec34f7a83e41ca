"""The masked sum: exact over whoever stays, whoever leaves and whenever."""

import asyncio
import itertools
import os
from collections import Counter

import msgspec
import numpy as np
import pytest
from helpers import (
    Tapped,
    assert_tables,
    crosstabs,
    make_scenario,
    make_schema,
    make_study,
    random_records,
    setting,
    simulate,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from mpc_rr.agents.account import Account
from mpc_rr.agents.party import Party
from mpc_rr.agents.terms import Terms
from mpc_rr.estimation.pairs import PairLayout
from mpc_rr.network.sealed import Rejected
from mpc_rr.network.session.party import PartySession
from mpc_rr.protocols.exact_pairs import ExactPairs
from mpc_rr.protocols.rr_clusters import RRClusters
from mpc_rr.protocols.rr_pairs import RRPairs
from mpc_rr.protocols.sums.masked import sum as masked_sum
from mpc_rr.protocols.sums.masked.setup import (
    MaskingOptions,
    Seat,
    set_up_coordinator,
    set_up_party,
)
from mpc_rr.protocols.sums.masked.sum import (
    MaskedVector,
    SharesForYou,
    masked_sum_coordinator,
    masked_sum_party,
)
from mpc_rr.publication.counts import PairCounts
from mpc_rr.results.folder import write_results
from mpc_rr.results.verification import verify
from mpc_rr.running import run_study
from mpc_rr.simulation.faults import Faults, PartyFault
from mpc_rr.study.file import party_names

SIZES = (2, 3, 2)
MASKED = ExactPairs(sum="masked_sum")
STEPS = MASKED.steps(setting(make_schema(SIZES), 20))
LATE = ("vouchers", "unmasking")
"""Whoever leaves here is in the sum all the same."""


def run(n, *, protocol=MASKED, seed=1, faults=None, minimum=None, sizes=SIZES):
    records = random_records(n, sizes, seed=seed)
    scenario = make_scenario(records, sizes, protocol=protocol, faults=faults, minimum=minimum)
    return records, run_study(scenario, transport="memory", seed=seed)


def over(records, names):
    """The counts of those records whose parties are named."""
    kept = [r for r, name in zip(records, party_names(len(records)), strict=True) if name in names]
    return crosstabs(kept, SIZES)


@settings(max_examples=15)
@given(st.integers(3, 14), st.integers(0, 1000),
       st.sampled_from([(2, 2), (2, 3, 2), (4, 1 + 1, 3, 2)]))  # fmt: skip
def test_sums_are_exact(n, seed, sizes):
    records, result = run(n, seed=seed, sizes=sizes)
    assert_tables(result.outcome.result.tables, crosstabs(records, sizes))
    for end in result.parties.values():
        assert_tables(end.tables, crosstabs(records, sizes))


def test_the_paper_s_sum_is_for_few_and_the_masked_one_for_many():
    assert not ExactPairs().masked(40)
    assert ExactPairs().masked(41)
    assert not ExactPairs(sum="secure_sum").masked(1000)
    assert RRPairs(keep=0.5).masked(41)


def test_free_cells_are_as_few_as_possible():
    layout = PairLayout((9, 16, 7, 15, 6, 5, 2, 2))
    assert (layout.cells, layout.free_count) == (1582, 1230)


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 1), st.integers(0, 3)), min_size=1))
def test_free_cells_give_all_tables(records):
    layout = PairLayout((3, 2, 4))
    total = sum(layout.free_vector(record) for record in records)
    assert_tables(layout.tables_of_free(total, len(records)), crosstabs(records, (3, 2, 4)))


@pytest.mark.parametrize("step", STEPS)
def test_who_leaves_at_a_step_is_left_out_or_counted_and_the_sum_is_exact(step):
    """Whoever has sent its masked vector is in the sum, even if it does not help to unmask."""
    gone = ("party-03", "party-11")
    faults = Faults(silent=tuple(PartyFault(name, step) for name in gone))
    records, result = run(20, faults=faults, minimum=12)
    outcome = result.outcome
    assert outcome.result is not None, outcome.cause
    names = set(party_names(20))
    counted = names if step in LATE else names - set(gone)
    assert_tables(outcome.result.tables, over(records, counted))
    assert set(outcome.result.lost) == names - counted
    people = result.publication.participation
    assert set(people.counted_parties) == counted
    if step not in LATE:
        assert [(a.party, a.how, a.step) for a in people.absent] == [
            (name, "dropped out", step) for name in gone
        ]


def test_people_who_leave_at_every_step():
    """One at each step, of thirty."""
    gone = dict(zip(party_names(30)[3::5], STEPS, strict=False))
    faults = Faults(silent=tuple(PartyFault(name, step) for name, step in gone.items()))
    records, result = run(30, faults=faults, minimum=20, protocol=MASKED)
    assert result.outcome.result is not None, result.outcome.cause
    counted = set(party_names(30)) - {n for n, step in gone.items() if step not in LATE}
    assert_tables(result.outcome.result.tables, over(records, counted))


def test_too_many_who_leave_end_the_sum_with_the_cause():
    gone = party_names(20)[:2]
    faults = Faults(silent=tuple(PartyFault(name, "unmasking") for name in gone))
    protocol = ExactPairs(sum="masked_sum", masking=MaskingOptions(corrupt=0.0, dropout=0.1))
    _, result = run(20, faults=faults, minimum=5, protocol=protocol)
    assert result.outcome.result is not None, result.outcome.cause
    faults = Faults(silent=tuple(PartyFault(name, "unmasking") for name in party_names(20)[:19]))
    _, result = run(20, faults=faults, minimum=5, protocol=protocol)
    assert result.outcome.result is None
    assert "take off its mask" in result.outcome.cause


def test_below_the_minimum_the_study_ends_and_says_who_left():
    faults = Faults(silent=tuple(PartyFault(name, "mask_shares") for name in party_names(9)[:3]))
    _, result = run(9, faults=faults, minimum=7)
    assert result.outcome.result is None
    assert "only 6 of 9 parties are left" in result.outcome.cause
    assert "party-1" in result.outcome.cause


@pytest.mark.parametrize(
    ("step", "not_said"),
    [
        ("mask_keys", "keys_fixed"),
        ("die", "neighbourhood"),
        ("mask_shares", "shares_for_you"),
        ("masked_vector", "survivors"),
    ],
)
def test_below_the_minimum_nothing_more_is_asked(step, not_said):
    """Whoever would answer would have told more than was needed."""

    class Silent(PartySession):
        async def report(self, message):
            if message.step == step:
                await asyncio.sleep(1000)
            return await super().report(message)

    class Leaving(Party):
        session_kind = Silent

    network = Tapped()
    study = make_study(9, SIZES, minimum=7, protocol=MASKED)
    gone = dict.fromkeys(party_names(9)[:3], Leaving)
    outcome, _ = simulate(study, random_records(9, SIZES), parties=gone, network=network)
    assert "only 6 of 9 parties are left" in outcome.cause
    assert not_said not in {e.header.step for e in network.envelopes}


def test_a_sum_over_the_sparse_graph_of_those_who_stayed_from_the_beginning():
    """As many neighbours as if all corrupt parties had stayed: more than forty alone would need."""
    options = MaskingOptions(corrupt=0.06, dropout=0.02, coordinator="curious")
    assert options.plan(40, 50).degree > options.plan(40).degree
    gone = party_names(50)[::5]
    faults = Faults(silent=tuple(PartyFault(name, "mask_keys") for name in gone))
    protocol = ExactPairs(sum="masked_sum", masking=options)
    records, result = run(50, faults=faults, minimum=30, protocol=protocol)
    assert result.outcome.result is not None, result.outcome.cause
    assert_tables(result.outcome.result.tables, over(records, set(party_names(50)) - set(gone)))


def test_a_sum_over_a_sparse_graph():
    """Sixty parties with 36 neighbours each; five leave."""
    gone = party_names(60)[5:60:12]
    faults = Faults(silent=tuple(PartyFault(name, "masked_vector") for name in gone))
    records, result = run(60, faults=faults, minimum=40, protocol=ExactPairs())
    assert result.outcome.result is not None, result.outcome.cause
    assert_tables(result.outcome.result.tables, over(records, set(party_names(60)) - set(gone)))


@pytest.mark.parametrize(
    "protocol",
    [
        MASKED,
        RRPairs(keep=0.6, sum="masked_sum"),
        ExactPairs(sum="masked_sum", suppress_below=3),
        ExactPairs(sum="masked_sum", noise_epsilon=5.0, noise_corrupt=0.2),
        RRClusters(keep=0.6, dependence=MASKED),
    ],
    ids=["exact", "rr_pairs", "suppressed", "noisy", "clusters"],
)
def test_studies_on_masked_sums_can_be_verified(protocol, tmp_path):
    faults = Faults(silent=(PartyFault("party-04", "mask_shares"),))
    _, result = run(16, protocol=protocol, faults=faults, minimum=10)
    assert result.outcome.result is not None, result.outcome.cause
    write_results(result, tmp_path / "run")
    assert verify(tmp_path / "run")


def test_masked_rr_pairs_are_those_of_the_paper_s_sum():
    """The sums differ in what they promise, so answers differ, too: counted here by hand."""
    for kind in ("masked_sum", "secure_sum"):
        vectors = []

        class Watched(Account):
            def once(self, *args, seen=vectors, **given):
                seen.append(super().once(*args, **given))
                return seen[-1]

        class Watching(Party):
            def __init__(self, *args, kind=Watched, **terms):
                super().__init__(*args, terms=Terms(account=kind()), **terms)

        study = make_study(16, SIZES, protocol=RRPairs(keep=0.6, sum=kind))
        outcome, _ = simulate(study, random_records(16, SIZES, seed=3), party=Watching)
        cells = np.array([np.frombuffer(raw, dtype="<u4") for raw in vectors])
        for place, table in enumerate(outcome.result.counts):
            own = np.bincount(cells[:, place], minlength=table.size)
            np.testing.assert_array_equal(table.ravel(), own)


def schedule(seed, n):
    """Some parties fall silent at steps drawn from a seed, some messages are late or lost."""
    rng = np.random.default_rng(seed)
    share = rng.choice([0.0, 0.1, 0.2, 0.5], p=[0.2, 0.4, 0.3, 0.1])
    steps = ("hello", "join", *STEPS, "goodbye")
    gone = [
        PartyFault(name, steps[rng.integers(len(steps))])
        for name in party_names(n)
        if rng.random() < share
    ]
    crashed = [fault for fault in gone if rng.random() < 0.5]
    return Faults(
        silent=tuple(fault for fault in gone if fault not in crashed),
        crash=tuple(crashed),
        loss=float(rng.choice([0.0, 0.02])),
        duplicate=0.05,
        reorder=0.1,
        delay_s=(0.0, 0.05),
    )


def check_schedule(seed):
    """Always the exact sum over a stated set of survivors, or an abort with its cause."""
    n = 8 + seed % 9
    records, result = run(n, seed=seed, faults=schedule(seed, n), minimum=max(3, n // 2))
    outcome = result.outcome
    if outcome.result is None:
        assert outcome.cause
        return False
    counted = set(result.publication.participation.counted_parties)
    assert len(counted) == outcome.result.n
    assert_tables(outcome.result.tables, over(records, counted))
    for end in result.parties.values():
        if hasattr(end, "tables"):
            assert_tables(end.tables, outcome.result.tables)
    return True


def test_forty_schedules_of_leaving_never_give_a_wrong_table():
    finished = sum(check_schedule(seed) for seed in range(40))
    assert finished > 10


@pytest.mark.sweep
def test_many_schedules_of_leaving_never_give_a_wrong_table():
    count = int(os.environ.get("MPC_RR_SWEEP_SEEDS", "2000"))
    finished = sum(check_schedule(seed) for seed in range(1000, 1000 + count))
    assert finished > count / 4


def test_all_who_leave_together_with_their_neighbours():
    """Two who left were neighbours: nothing of the mask between them is in the sum."""
    for pair in itertools.islice(itertools.combinations(party_names(6), 2), 5):
        faults = Faults(silent=tuple(PartyFault(name, "masked_vector") for name in pair))
        protocol = ExactPairs(
            sum="masked_sum", masking=MaskingOptions(corrupt=0, dropout=0.3, coordinator="curious")
        )
        records, result = run(6, faults=faults, minimum=3, protocol=protocol)
        assert result.outcome.result is not None, result.outcome.cause
        assert_tables(result.outcome.result.tables, over(records, set(party_names(6)) - set(pair)))


def test_repr_of_a_place_shows_no_secret():
    study = make_study(5, SIZES, protocol=MASKED)
    outcome, _ = simulate(study, random_records(5, SIZES))
    assert outcome.result is not None
    assert "tables" in repr(outcome.result)
    assert msgspec.structs.asdict(outcome.result)["lost"] == {}


class Twice(ExactPairs, frozen=True, tag="twice"):
    """Two sums after one enrolment: of the records, and of the records again."""

    async def party(self, session, schema, record):
        layout = PairLayout(schema.sizes)
        place = await set_up_party(session.sub("enrolment"), self.options_in(session))
        for number in (1, 2):
            vector = layout.free_vector(record)
            total = await masked_sum_party(session.sub(f"sum-{number}"), place, vector, 8)
        return PairCounts(total.n, schema, layout.tables_of_free(total.values, total.n))

    async def coordinator(self, session, schema):
        layout = PairLayout(schema.sizes)
        options = self.options_in(session)
        board = await set_up_coordinator(session.sub("enrolment"), options)
        found = []
        for number in (1, 2):
            total = await masked_sum_coordinator(
                session.sub(f"sum-{number}"), board, layout.free_count, 8
            )
            counted = total.counted
            found.append((layout.tables_of_free(total.values, len(counted)), counted))
        Twice.found = found
        return PairCounts(len(counted), schema, found[-1][0], lost=dict(board.lost))


def remember(monkeypatch, what):
    """How often each of the secrets that parties derive from their seats was derived."""
    original, found = getattr(Seat, what), Counter()

    def derived(seat, purpose):
        secrets = original(seat, purpose)
        found.update(frozenset(s) if isinstance(s, tuple) else s for s in secrets)
        return secrets

    monkeypatch.setattr(Seat, what, derived)
    return found


def test_two_sums_after_one_enrolment_use_other_masks_and_lose_no_more(monkeypatch):
    """Who leaves in the first sum is missing in the second; nobody else is.

    Each seed and each key is known at the two ends of one edge, in one of the sums; what a party
    shares is drawn for one sum and one purpose.
    """
    seeds, keys = remember(monkeypatch, "pair_seeds"), remember(monkeypatch, "seal_keys")
    secrets, shares = [], masked_sum._shares

    def remembered(seat, own_secret, box_key, *rest):
        secrets.extend((own_secret, box_key))
        return shares(seat, own_secret, box_key, *rest)

    monkeypatch.setattr(masked_sum, "_shares", remembered)
    study = make_study(16, SIZES, minimum=10, protocol=Twice(sum="masked_sum"))
    records = random_records(16, SIZES, seed=3)

    class LeavesInTheFirst(Party):
        async def _protocol_run(self, session):
            self.mailbox.watchers[SharesForYou.step] = self._leave
            return await super()._protocol_run(session)

        def _leave(self, _):
            raise Rejected("gone")

    network = Tapped()
    outcome, _ = simulate(
        study, records, parties={"party-04": LeavesInTheFirst}, network=network, seed=2
    )
    assert outcome.result is not None, outcome.cause
    rest = set(party_names(16)) - {"party-04"}
    for tables, counted in Twice.found:
        assert set(counted) == rest
        assert_tables(tables, over(records, rest))
    vectors = {
        (e.header.sender, e.header.session.rpartition("/")[2]): e.body
        for e in network.envelopes
        if e.header.step == MaskedVector.step
    }
    for name in rest:
        assert vectors[name, "sum-1"] != vectors[name, "sum-2"]
    both_ends, one_end = 16 * 15 // 2 + 15 * 14 // 2, 15
    assert Counter(seeds.values()) == Counter(keys.values()) == {2: both_ends, 1: one_end}
    assert len(secrets) == len(set(secrets)) == 2 * 16 + 2 * 15
