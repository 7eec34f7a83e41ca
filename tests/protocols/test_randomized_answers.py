"""Studies in which parties report randomized answers: right, whoever leaves."""

import hmac

import numpy as np
import pytest
from helpers import crosstabs, make_study, random_records, simulate
from randomized import CLUSTERED, COLLECTIONS, NAMES, RECORDS, SIZES, N, run

from mpc_rr.agents.account import Account
from mpc_rr.agents.party import Party
from mpc_rr.agents.terms import Terms
from mpc_rr.crypto.draws import KeyedRandomness
from mpc_rr.estimation.designs import Fitted, rr_clusters
from mpc_rr.network.mailbox import Mailbox
from mpc_rr.protocols.collection import design_mark
from mpc_rr.protocols.rr_clusters import RRClusters
from mpc_rr.protocols.rr_each_attribute import RREachAttribute
from mpc_rr.protocols.rr_independent import RRIndependent
from mpc_rr.protocols.rr_pairs import RRPairs
from mpc_rr.protocols.rr_views import RRViews
from mpc_rr.protocols.sums.choice import Summed
from mpc_rr.publication.reports import AnsweredOne
from mpc_rr.randomness import SeededRandomness
from mpc_rr.simulation.faults import Faults, PartyFault


def drawn_by(study, name, record, design, label="answer", given=None):
    """What a party must draw, by calling the library with its secret (docs/draws.md)."""
    secret = SeededRandomness(5).fork(name).fork("secret").bytes(32)
    given = design_mark(design) if given is None else given
    text = ",".join(map(str, record)).encode()
    parts = (b"mpc-rr answer v1", study.promise, label.encode(), given, text)
    key = hmac.digest(secret, b"".join(len(p).to_bytes(8, "big") + p for p in parts), "sha256")
    return design.randomize(np.array([record]), KeyedRandomness(key))[0]


@pytest.mark.parametrize("protocol", COLLECTIONS.values(), ids=COLLECTIONS.keys())
def test_a_study_is_the_library_on_the_randomized_records_to_the_last_bit(protocol):
    result = run(protocol)
    collected = result.outcome.result
    design = protocol.design(collected.schema)
    expected = np.stack(
        [drawn_by(result.study, n, r, design) for n, r in zip(NAMES, RECORDS, strict=True)]
    )
    np.testing.assert_array_equal(collected.reported, expected)
    library = Fitted(design, expected)
    for index, marginal in enumerate(collected.estimates().marginals()):
        estimate = library.unbiased((index,))
        assert marginal.unbiased.shares.tolist() == estimate.shares.tolist()
        assert marginal.unbiased.standard_errors.tolist() == estimate.standard_errors.tolist()
    for name, end in result.parties.items():
        assert end.digest == collected.digest
        assert end.reported == tuple(expected[NAMES.index(name)])


@pytest.mark.parametrize("protocol", CLUSTERED.values(), ids=CLUSTERED.keys())
def test_clusters_follow_from_the_tables_and_are_answered_together(protocol):
    result = run(protocol)
    collected = result.outcome.result
    assert collected.n == N
    clusters = collected.design.clusters
    assert max(len(cluster) for cluster in clusters) == 2  # 2·3 fits below 6, 2·3·2 does not
    spent = [m.epsilon for m in RRIndependent(keep=0.6).design(collected.schema).matrices]
    design = rr_clusters(SIZES, clusters, spent)
    expected = np.stack(
        [drawn_by(result.study, n, r, design) for n, r in zip(NAMES, RECORDS, strict=True)]
    )
    np.testing.assert_array_equal(collected.reported, expected)
    assert all(isinstance(end, AnsweredOne) for end in result.parties.values())


def test_power_iteration_clusters_in_a_study():
    protocol = RRClusters(
        keep=0.9, method="power_iteration", clusters=2, dependence=RREachAttribute(keep=0.9)
    )
    assert len(run(protocol).outcome.result.design.clusters) == 2


def test_reports_on_each_attribute_are_counted_by_pairs():
    protocol = RREachAttribute(keep=0.7)
    result = run(protocol)
    found = result.outcome.result
    design = protocol.design(found.schema)
    reported = [
        drawn_by(result.study, n, r, design, "first", b"")
        for n, r in zip(NAMES, RECORDS, strict=True)
    ]
    for one, other in zip(found.counts, crosstabs(reported, SIZES), strict=True):
        np.testing.assert_array_equal(one, other)
    library = Fitted(design, np.stack(reported))
    for pair, estimate in found.estimates().items():
        np.testing.assert_allclose(estimate.shares, library.unbiased(pair).shares, atol=1e-12)
    assert all(end.digest == found.digest for end in result.parties.values())


def test_randomized_pairs_are_unbiased():
    """2,000 parties' vectors, added up without the network; each cell within 5 standard errors."""
    protocol, sizes = RRPairs(keep=0.5), (2, 3)
    schema = make_study(4, sizes).schema
    records = random_records(2000, sizes, seed=1)
    (matrix,) = protocol._matrices(schema)
    rng = np.random.default_rng(2)
    truth = crosstabs(records, sizes)[0]
    reported = matrix.randomize_counts(truth.ravel(), rng).reshape(truth.shape)
    ending = protocol._ending(_layout(sizes), schema, Summed(reported.ravel(), 2000, 2001))
    estimate = ending.estimates()[0, 1]
    assert (abs(estimate.shares - truth / 2000) < 5 * estimate.standard_errors).all()
    assert ending.pair_shares()[0, 1].sum() == pytest.approx(1)


def _layout(sizes):
    from mpc_rr.estimation.pairs import PairLayout  # noqa: PLC0415

    return PairLayout(sizes)


def test_views_are_drawn_by_the_parties_and_all_are_answered():
    result = run(RRViews(epsilon=2.0, together=2))
    collected = result.outcome.result
    reports = collected.reports()
    assert len(reports.drawn) == N
    assert len(set(reports.drawn.tolist())) > 1
    estimates = collected.estimates()
    for marginal in estimates.marginals():
        assert marginal.shares.sum() == pytest.approx(1)
    for end in result.parties.values():
        assert end.digest == collected.digest
        assert len(end.view) == 2


# ── People who leave ───────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("protocol", "step"),
    [
        (RRIndependent(keep=0.5), "answer"),
        (RRViews(epsilon=2.0), "view_answer"),
        (CLUSTERED["each"], "answer"),
        (CLUSTERED["exact"], "answer"),
    ],
    ids=["independent", "views", "clusters", "clusters after a secure sum"],
)
def test_who_does_not_answer_is_left_out_and_counted(protocol, step):
    faults = Faults(silent=(PartyFault("party-03", step), PartyFault("party-20", step)))
    outcome = run(protocol, faults=faults, minimum=20).outcome
    assert outcome.result.n == N - 2
    assert outcome.result.silent == ("party-03", "party-20")
    assert len(outcome.result.asked) == N


def test_who_leaves_before_the_dependences_is_missing_there_too():
    faults = Faults(silent=(PartyFault("party-03", "first_answer"),))
    outcome = run(CLUSTERED["each"], faults=faults, minimum=20).outcome
    assert outcome.result.silent == ("party-03",)


def test_a_secure_sum_that_loses_a_party_starts_again_with_the_same_answers():
    """A share is missing: the sum is repeated without that party; nobody draws a second time."""
    draws = set()

    class Counting(Account):
        def once(self, study, record, label, draw, given=b""):
            drawn = super().once(study, record, label, draw, given)
            draws.add((label, drawn))
            return drawn

    class Careful(Party):
        def __init__(self, *args):
            super().__init__(*args, terms=Terms(account=Counting()))

    class Silent(Party):
        def __init__(self, *args):
            super().__init__(*args)
            self.mailbox.__class__ = _NeverShares

    study = make_study(6, SIZES, minimum=4, protocol=CLUSTERED["pairs"], round_s=5)
    parties = {"party-2": Silent}
    outcome, _ = simulate(study, RECORDS[:6], party=Careful, parties=parties)
    assert outcome.attempts == 2
    assert outcome.result.n == 5
    labels = sorted(label for label, _ in draws)
    assert labels.count("answer") <= 5  # parties may happen to draw alike
    assert labels.count("pairs") <= 5
    assert {*labels} == {"answer", "pairs"}


class _NeverShares(Mailbox):
    async def post(self, session, step, target, raw):
        if step != "share":
            await super().post(session, step, target, raw)


def test_too_few_answers_end_the_study_and_say_who_is_missing():
    faults = Faults(silent=(PartyFault("party-03", "answer"),))
    outcome = run(RRIndependent(keep=0.5), faults=faults).outcome
    assert outcome.result is None
    assert "only 23 of 24 parties answered, at least 24 are needed; party-03" in outcome.cause
    assert outcome.culprits == ("party-03",)
