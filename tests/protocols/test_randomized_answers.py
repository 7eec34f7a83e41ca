"""Studies in which parties report randomized answers: right, honest, and hard to cheat."""

import asyncio
import datetime as dt
import math

import msgspec
import numpy as np
import pytest
from helpers import crosstabs, make_scenario, make_study, random_records, simulate

from mpc_rr.agents.account import Account
from mpc_rr.agents.coordinator import Coordinator
from mpc_rr.agents.party import Party
from mpc_rr.errors import Aborted, InputError, Misconduct, Refused
from mpc_rr.estimation.designs import Fitted, rr_clusters
from mpc_rr.network.mailbox import Mailbox
from mpc_rr.network.messages import Opening, Verdict
from mpc_rr.protocols.collection import Answer, AnswersTaken, Collected, Participation
from mpc_rr.protocols.exact_pairs import ExactPairs
from mpc_rr.protocols.lambda_randomization import LambdaRandomization
from mpc_rr.protocols.rr_clusters import Clustering, RRClusters
from mpc_rr.protocols.rr_each_attribute import ReportedPairs, RREachAttribute
from mpc_rr.protocols.rr_independent import RRIndependent
from mpc_rr.protocols.rr_joint import RRJoint
from mpc_rr.protocols.rr_pairs import RRPairs
from mpc_rr.protocols.rr_views import RRViews, ViewAnswer
from mpc_rr.randomness import SeededRandomness
from mpc_rr.release import estimates_of
from mpc_rr.scenario import party_names
from mpc_rr.simulation.faults import Faults, PartyFault
from mpc_rr.study import run_study

SIZES = (2, 3, 2)
N = 24
RECORDS = random_records(N, SIZES, seed=8)
NAMES = party_names(N)
COLLECTIONS = {
    "rr_independent": RRIndependent(keep=0.6),
    "rr_joint": RRJoint(epsilon=3.0),
    "lambda_randomization": LambdaRandomization(lambdas={"a0": 0.5, "a1": 0.7, "a2": 0.9}),
}
CLUSTERED = {
    name: RRClusters(keep=0.6, most_combinations=6, least_dependence=0.0, dependence=dependence)
    for name, dependence in (
        ("each", RREachAttribute(keep=0.6)),
        ("exact", ExactPairs()),
        ("pairs", RRPairs(keep=0.6)),
    )
}
ALL = {
    **COLLECTIONS, **CLUSTERED, "rr_views": RRViews(epsilon=3.0),
    "rr_each_attribute": RREachAttribute(epsilon=3.0), "rr_pairs": RRPairs(epsilon=3.0),
}  # fmt: skip


def run(protocol, *, seed=5, faults=None, minimum=None):
    scenario = make_scenario(RECORDS, SIZES, protocol=protocol, faults=faults, minimum=minimum)
    return run_study(scenario, transport="memory", seed=seed)


def drawn_by(name, record, design, label="answer", seed=5):
    """What a party must draw, by calling the library with its randomness."""
    rng = SeededRandomness(seed).fork(name).fork(f"once/{label}")
    return design.randomize(np.array([record]), rng.uniform)[0]


@pytest.mark.parametrize("protocol", COLLECTIONS.values(), ids=COLLECTIONS.keys())
def test_a_study_is_the_library_on_the_randomized_records_to_the_last_bit(protocol):
    result = run(protocol)
    collected = result.outcome.result
    design = protocol.design(collected.schema)
    expected = np.stack([drawn_by(n, r, design) for n, r in zip(NAMES, RECORDS, strict=True)])
    np.testing.assert_array_equal(collected.reported, expected)
    library = Fitted(design, expected)
    for index, marginal in enumerate(estimates_of(collected).marginals()):
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
    expected = np.stack([drawn_by(n, r, design) for n, r in zip(NAMES, RECORDS, strict=True)])
    np.testing.assert_array_equal(collected.reported, expected)
    assert all(isinstance(end, Participation) for end in result.parties.values())


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
    reported = [drawn_by(n, r, design, "first") for n, r in zip(NAMES, RECORDS, strict=True)]
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
    ending = protocol._ending(_layout(sizes), schema, reported.ravel(), 2000)
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
    estimates = estimates_of(collected)
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
    draws = []

    class Counting(Account):
        def once(self, study, label, draw):
            def counted():
                draws.append(label)
                return draw()

            return super().once(study, label, counted)

    class Careful(Party):
        def __init__(self, *args):
            super().__init__(*args, account=Counting())

    class Silent(Party):
        def __init__(self, *args):
            super().__init__(*args)
            self.mailbox.__class__ = _NeverShares

    study = make_study(6, SIZES, minimum=4, protocol=CLUSTERED["pairs"], round_s=5)
    parties = {"party-2": Silent}
    outcome, _ = simulate(study, RECORDS[:6], party=Careful, parties=parties)
    assert outcome.attempts == 2
    assert outcome.result.n == 5
    assert sorted(draws) == ["answer"] * 5 + ["pairs"] * 5


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


# ── People who cheat ───────────────────────────────────────────────────────────────────────────


def liar(step, *messages):
    """A party that sends these messages instead of its own."""

    class Lying(Mailbox):
        async def post(self, session, at_step, target, raw):
            if at_step != step:
                await super().post(session, at_step, target, raw)
                return
            for message in messages:
                forged = self.write(session, step, target, message)
                await self.transport.send(target, forged)

    class Liar(Party):
        def __init__(self, *args):
            super().__init__(*args)
            self.mailbox.__class__ = Lying

    return Liar


@pytest.mark.parametrize(
    ("protocol", "step", "messages", "says"),
    [
        (RRIndependent(keep=0.5), "answer", [Answer(b"\x02\0\0\0\0\0")], "outside the domain"),
        (RRIndependent(keep=0.5), "answer", [Answer(b"\0\0")], "2 bytes where 6"),
        (
            RRIndependent(keep=0.5),
            "answer",
            [Answer(bytes(6)), Answer(b"\x01\0\0\0\0\0")],
            "two different messages",
        ),
        (RRViews(epsilon=3.0), "view_answer", [ViewAnswer(b"\xff\0\0\0\0\0\0\0")], "no view"),
        (RRViews(epsilon=3.0), "view_answer", [ViewAnswer(b"x")], "no view"),
        (RRViews(epsilon=3.0), "view_answer", [ViewAnswer(bytes(4))], "different combinations"),
        (
            RRViews(epsilon=3.0),
            "view_answer",
            [ViewAnswer(b"\0\0\0\0\xff\0\0\0")],
            "outside its view",
        ),
    ],
)
def test_an_answer_no_honest_party_gives_is_left_out_and_its_author_named(
    protocol, step, messages, says
):
    study = make_study(N, SIZES, minimum=20, protocol=protocol)
    outcome, ends = simulate(study, RECORDS, parties={"party-07": liar(step, *messages)})
    assert outcome.result.n == N - 1
    assert list(outcome.result.faulty) == ["party-07"]
    assert says in outcome.result.faulty["party-07"]
    honest = [end for name, end in ends.items() if name != "party-07"]
    assert all(end.n == N - 1 for end in honest)


def coordinator_that_tells(change):
    """A coordinator whose announcements are changed."""

    class Lying(Mailbox):
        async def tell(self, session, target, message):
            return await super().tell(session, target, change(message))

        def write(self, session, step, target, message):
            return super().write(session, step, target, change(message))

    class Liar(Coordinator):
        def __init__(self, *args):
            super().__init__(*args)
            self.mailbox.__class__ = Lying

    return Liar


def changed(kind, **fields):
    def change(message):
        if isinstance(message, kind):
            return msgspec.structs.replace(message, **fields)
        return message

    return change


@pytest.mark.parametrize(
    ("protocol", "change", "says"),
    [
        (
            CLUSTERED["each"],
            changed(Clustering, clusters=((0,), (1,), (2,))),
            "not the clusters that follow from the tables",
        ),
        (
            CLUSTERED["exact"],
            changed(Clustering, clusters=((0, 1, 2),)),
            "not the clusters that follow from the tables",
        ),
        (CLUSTERED["each"], changed(ReportedPairs, n=22), "sums to 24, not to 22"),
        (CLUSTERED["each"], changed(ReportedPairs, counts=b"x"), "one count for each cell"),
        (RRIndependent(keep=0.5), changed(Opening, asked=2), "opened the study with 2 parties"),
        (RRIndependent(keep=0.5), changed(AnswersTaken, answered=30), "30 answers of 24"),
        (RRIndependent(keep=0.5), changed(AnswersTaken, answered=1), "1 answers of 24"),
        (RRIndependent(keep=0.5), changed(AnswersTaken, asked=10**6), "24 answers of 1000000"),
        (CLUSTERED["each"], changed(ReportedPairs, n=0, counts=bytes(64)), "0 answers in all"),
        (
            RRIndependent(keep=0.5),
            changed(Verdict, result_digest=bytes(32)),
            "another result than I computed",
        ),
    ],
)
def test_a_lying_coordinator_is_found_out_by_every_party(protocol, change, says):
    study = make_study(N, SIZES, minimum=20, protocol=protocol, round_s=5)
    _, ends = simulate(study, RECORDS, coordinator=coordinator_that_tells(change))
    for end in ends.values():
        assert isinstance(end, Misconduct), end
        assert says in str(end)
        assert end.culprits == ("coordinator",)


def test_a_coordinator_that_opens_the_study_twice_is_found_out():
    class Twice(Coordinator):
        async def _open(self, session, roster):
            await super()._open(session, roster)
            await self.mailbox.tell(session.name, "*", Opening(21, bytes(32)))

    study = make_study(N, SIZES, minimum=20, protocol=RRIndependent(keep=0.5), round_s=5)
    _, ends = simulate(study, RECORDS, coordinator=Twice)
    assert all("two different ways" in str(end) for end in ends.values())


def test_a_coordinator_cannot_have_a_second_answer():
    """Asked again it gets the very same message; another step or session gets nothing."""
    study = make_study(N, SIZES, minimum=20, protocol=RRIndependent(keep=0.5))
    seen = []

    class Curious(Coordinator):
        async def _one_attempt(self, session):
            from mpc_rr.network.messages import Again  # noqa: PLC0415

            result = await super()._one_attempt(session)
            name = f"{session.name}/rr_independent"
            for party in session.parties:
                await self.mailbox.tell(name, party, Again(name, "answer"))
            await asyncio.sleep(1)  # they wait for the verdict, and hear it
            return result

    class Counting(Party):
        async def run(self):
            post = self.mailbox.transport.send

            async def send(target, raw):
                if b"answer" in raw:
                    seen.append(raw)
                await post(target, raw)

            self.mailbox.transport.send = send
            return await super().run()

    simulate(study, RECORDS, coordinator=Curious, party=Counting)
    assert len(seen) > N
    assert len(set(seen)) == N


# ── The party's say ────────────────────────────────────────────────────────────────────────────


class _Untouchable:
    """A transport that must not be used."""

    address = "nowhere"

    def __getattr__(self, name):
        raise AssertionError(f"the party used its transport ({name})")


@pytest.mark.parametrize("protocol", ALL.values(), ids=ALL.keys())
def test_an_overdrawn_budget_is_refused_before_anything_is_sent(protocol):
    study = make_study(N, SIZES, protocol=protocol)
    cost = math.fsum(r.epsilon for r in protocol.releases("x", study.schema, N))
    assert cost > 1
    party = Party(
        study, "party-01", RECORDS[0], _Untouchable(), SeededRandomness(1), account=Account(1.0)
    )
    with pytest.raises(InputError, match="exceeds the budget of 1"):
        party.run().send(None)


def test_the_price_is_in_the_books_before_the_answer_leaves():
    study = make_study(N, SIZES, protocol=RRIndependent(keep=0.5))
    price = math.fsum(r.epsilon for r in study.protocol.releases("x", study.schema, N))
    spent_when_sent = []

    class Watched(Party):
        def __init__(self, *args):
            self.books = Account()
            super().__init__(*args, account=self.books)
            books = self.books

            class Mail(Mailbox):
                async def post(self, session, step, target, raw):
                    if step == "answer":
                        spent_when_sent.append(books.ledger.spent)
                    await super().post(session, step, target, raw)

            self.mailbox.__class__ = Mail

    simulate(study, RECORDS, party=Watched)
    assert spent_when_sent == [pytest.approx(price)] * N


def test_clusters_cost_the_dependences_too():
    schema = make_study(4, SIZES).schema
    alone = RRIndependent(keep=0.6)
    answers = math.fsum(r.epsilon for r in alone.releases("x", schema, 9))
    both = math.fsum(r.epsilon for r in CLUSTERED["each"].releases("x", schema, 9))
    assert both == pytest.approx(2 * answers)
    (pairs, *_) = CLUSTERED["pairs"].releases("x", schema, 9)
    assert pairs.crowd == 9
    assert pairs.claimed < pairs.epsilon  # the paper waives composition; a coalition does not
    exact = CLUSTERED["exact"].releases("x", schema, 9)
    assert math.isinf(exact[0].epsilon)


def test_a_failed_study_says_so_to_the_parties():
    faults = Faults(silent=tuple(PartyFault(name, "answer") for name in NAMES[:10]))
    result = run(RRIndependent(keep=0.5), faults=faults)
    assert result.outcome.result is None
    heard = [end for name, end in result.parties.items() if name not in NAMES[:10]]
    assert all(isinstance(end, Aborted) for end in heard)


def test_reprs_show_no_answers():
    result = run(RRIndependent(keep=0.5)).outcome.result
    assert isinstance(result, Collected)
    assert repr(result) == "Collected(24 of 24 answered)"


def test_a_study_whose_last_day_has_passed_is_refused_before_anything_is_sent():
    study = make_study(N, SIZES, protocol=RRIndependent(keep=0.5))
    over = msgspec.structs.replace(study, expires=dt.date(2020, 1, 1))
    assert over.digest != study.digest
    party = Party(over, "party-01", RECORDS[0], _Untouchable(), SeededRandomness(1))
    with pytest.raises(InputError, match="ended on 2020-01-01; nothing was sent"):
        party.run().send(None)
    with pytest.raises(InputError, match="ended on 2020-01-01"):
        Coordinator(over, _Untouchable(), SeededRandomness(1)).run().send(None)
    later = msgspec.structs.replace(study, expires=dt.date(9999, 1, 1))
    assert simulate(later, RECORDS)[0].result.n == N


def test_other_clusters_get_no_second_answer():
    """The books hold an answer to other clusters: sending it would be wrong, a new one would tell
    more. So the party refuses, and the study goes on without it."""
    study = make_study(N, SIZES, minimum=20, protocol=CLUSTERED["each"])

    class Returning(Party):
        def __init__(self, *args):
            books = Account()
            books.enrol(args[0], args[2])
            books.once(args[0], "answer", lambda: bytes(8) + bytes(6))
            super().__init__(*args, account=books)

    outcome, ends = simulate(study, RECORDS, parties={"party-05": Returning})
    assert isinstance(ends["party-05"], Refused)
    assert "clustered otherwise" in str(ends["party-05"])
    assert outcome.result.n == N - 1


def test_an_aborted_study_leaves_a_receipt_of_what_was_sent():
    faults = Faults(silent=(PartyFault("party-03", "answer"),))
    result = run(RRIndependent(keep=0.5), faults=faults)
    receipt = result.parties["party-01"].receipt
    assert b"answer" in receipt[0]
    assert b"verdict" in receipt[-1]


@pytest.mark.parametrize(
    ("protocol", "says"),
    [
        (RRJoint(epsilon=40.0), "protects nobody"),
        (RRViews(epsilon=40.0), "at most 30"),
        (RRIndependent(keep=1.0), "protects nobody"),
        (RRIndependent(keep=0.0), "above 0"),
        (RRIndependent(), "either keep or epsilon"),
        (LambdaRandomization(), "exactly one of"),
        (LambdaRandomization(lambdas={"a0": 0.5}), "each attribute once"),
        (RRClusters(keep=0.5, clusters=2, dependence=ExactPairs()), "goes with method"),
    ],
)
def test_options_that_make_no_sense_are_told(protocol, says):
    with pytest.raises(InputError, match=says):
        protocol.check(make_study(4, SIZES).schema)


def test_a_hopeless_or_huge_joint_is_told_before_anybody_answers():
    schema = make_study(4, (8,) * 10).schema
    with pytest.raises(InputError, match="randomize less"):
        RRJoint(epsilon=2.0).check(schema)
    with pytest.raises(InputError, match="cannot be drawn exactly"):
        RRJoint(epsilon=25.0).check(make_study(4, (8,) * 12).schema)
