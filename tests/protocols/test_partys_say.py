"""What a party is told, what it refuses, and what it keeps: books, receipts, budgets."""

import datetime as dt
import math
from typing import ClassVar

import msgspec
import pytest
from helpers import make_study, setting, simulate
from randomized import ALL, CLUSTERED, NAMES, RECORDS, SIZES, N, run

from mpc_rr.agents.account import Account
from mpc_rr.agents.coordinator import Coordinator
from mpc_rr.agents.party import Party
from mpc_rr.agents.terms import Terms
from mpc_rr.errors import Aborted, Declined, InputError
from mpc_rr.network.envelope import Message, Way
from mpc_rr.network.mailbox import Mailbox
from mpc_rr.privacy.disclosures import Told
from mpc_rr.protocols.exact_pairs import ExactPairs
from mpc_rr.protocols.interface import StudyProtocol
from mpc_rr.protocols.lambda_randomization import LambdaRandomization
from mpc_rr.protocols.rr_clusters import RRClusters
from mpc_rr.protocols.rr_independent import RRIndependent
from mpc_rr.protocols.rr_joint import RRJoint
from mpc_rr.protocols.rr_views import RRViews
from mpc_rr.publication.ending import Ending
from mpc_rr.publication.parts import Publication
from mpc_rr.publication.reports import Collected
from mpc_rr.randomness import SeededRandomness
from mpc_rr.simulation.faults import Faults, PartyFault


class _Untouchable:
    """A transport that must not be used."""

    address = "nowhere"

    def __getattr__(self, name):
        raise AssertionError(f"the party used its transport ({name})")


@pytest.mark.parametrize("protocol", ALL.values(), ids=ALL.keys())
def test_an_overdrawn_budget_is_refused_before_anything_is_sent(protocol):
    study = make_study(N, SIZES, protocol=protocol)
    cost = math.fsum(e.cost for e in protocol.disclosures(setting(study.schema, N)))
    assert cost > 1
    party = Party(
        study,
        "party-01",
        RECORDS[0],
        _Untouchable(),
        SeededRandomness(1),
        terms=Terms(account=Account(1.0)),
    )
    with pytest.raises(InputError, match="exceeds the budget of 1"):
        party.run().send(None)


def test_the_price_is_in_the_books_before_the_answer_leaves():
    study = make_study(N, SIZES, protocol=RRIndependent(keep=0.5))
    price = math.fsum(e.cost for e in study.protocol.disclosures(setting(study.schema, N)))
    spent_when_sent = []

    class Watched(Party):
        def __init__(self, *args):
            self.books = Account()
            super().__init__(*args, terms=Terms(account=self.books))
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
    answers = math.fsum(e.cost for e in alone.disclosures(setting(schema, 9)))
    both = math.fsum(e.cost for e in CLUSTERED["each"].disclosures(setting(schema, 9)))
    assert both == pytest.approx(2 * answers)
    (pairs, *_) = CLUSTERED["pairs"].disclosures(setting(schema, 9))
    assert (pairs.crowd, pairs.expected) == (8, 9)  # whoever looks may be one of them
    assert pairs.claimed < pairs.epsilon  # the paper waives composition; a coalition does not
    exact = CLUSTERED["exact"].disclosures(setting(schema, 9))
    assert math.isinf(exact[0].cost)


def test_a_failed_study_says_so_to_the_parties():
    faults = Faults(silent=tuple(PartyFault(name, "answer") for name in NAMES[:10]))
    result = run(RRIndependent(keep=0.5), faults=faults)
    assert result.outcome.result is None
    heard = [end for name, end in result.parties.items() if name not in NAMES[:10]]
    assert all(isinstance(end, Aborted) for end in heard)


def test_reprs_show_no_answers():
    result = run(RRIndependent(keep=0.5)).outcome.result
    assert isinstance(result, Collected)
    assert repr(result) == "Collected(24 of 24 who were there answered)"


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
            books.charge(args[0], args[2])
            books.once(args[0], args[2], "answer", lambda _: bytes(6), given=b"other clusters")
            super().__init__(*args, terms=Terms(account=books))

    outcome, ends = simulate(study, RECORDS, parties={"party-05": Returning})
    assert isinstance(ends["party-05"], Declined)
    assert "another answer would tell more" in str(ends["party-05"])
    assert outcome.result.n == N - 1
    heard = b"".join(outcome.transcript) + repr(outcome).encode()
    assert b"another answer" not in heard  # why she declined is nobody's business


def test_others_hear_of_a_ledger_only_that_somebody_declined():
    """Her refusal, with what her ledger holds, stood in the coordinator's result.json."""

    class Overdrawn(Party):
        async def _protocol_run(self, session):
            raise Declined("with ε = 7.5 spent before, the total exceeds the budget of 8")

    study = make_study(6, SIZES, protocol=ExactPairs(sum="secure_sum"), round_s=5)
    outcome, ends = simulate(study, RECORDS[:6], parties={"party-5": Overdrawn})
    assert "7.5" in str(ends["party-5"])
    assert outcome.result is None
    assert "party-5 left: it declined to go on" in outcome.cause
    assert "7.5" not in repr(outcome)
    assert b"7.5" not in b"".join(outcome.transcript)


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
        (RRViews(epsilon=1e-320), "at least 1e-09"),
        (RRViews(epsilon=1e-16), "at least 1e-09"),
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
        protocol.check(setting(make_study(4, SIZES).schema, 4))


def test_a_hopeless_or_huge_joint_is_told_before_anybody_answers():
    schema = make_study(4, (8,) * 10).schema
    with pytest.raises(InputError, match="randomize less"):
        RRJoint(epsilon=2.0).check(setting(schema, 4))
    with pytest.raises(InputError, match="are allowed"):
        RRJoint(epsilon=25.0).check(setting(make_study(4, (8,) * 12).schema, 4))


# ── A protocol from outside ────────────────────────────────────────────────────────────────────


class Said(Message, frozen=True):
    step: ClassVar[str] = "said_aloud"
    way: ClassVar[Way] = "publish"
    code: int


class Saying(StudyProtocol, frozen=True, tag="saying"):
    """One that never thinks of ledgers or points of no return."""

    messages: ClassVar = (Said,)

    def disclosures(self, study):
        return [Told(what="said", attributes=study.schema.names)]

    async def party(self, session, schema, record):
        return Heard(len(await session.publish(Said(record[0]))))

    async def coordinator(self, session, schema):
        return Heard(len(await session.relay(Said)))


class Heard(Ending, frozen=True):
    n: int

    def publish(self, study):
        return Publication()


def test_a_protocol_that_forgets_about_it_is_not_begun_again_with_others():
    """And nobody calls an honest coordinator dishonest for it: it goes by the same point."""
    study = make_study(5, SIZES, minimum=3, protocol=Saying(), round_s=5)

    class Silent(Party):
        def __init__(self, *args):
            super().__init__(*args)
            self.mailbox.__class__ = _Mute

    class _Mute(Mailbox):
        async def post(self, session, step, target, raw):
            if step != Said.step:
                await super().post(session, step, target, raw)

    outcome, ends = simulate(study, RECORDS[:5], parties={"party-5": Silent})
    assert outcome.attempts == 1
    assert outcome.culprits == ("party-5",)
    others = [end for name, end in ends.items() if name != "party-5"]
    assert all(isinstance(end, Aborted) for end in others), others


def test_a_protocol_that_forgets_about_it_is_declined_in_a_second_run():
    study, books = make_study(5, SIZES, protocol=Saying(), round_s=5), {}

    class Keeping(Party):
        def __init__(self, study, name, *args):
            account = books.setdefault(name, Account())
            super().__init__(study, name, *args, terms=Terms(account=account))

    assert simulate(study, RECORDS[:5], party=Keeping, seed=1)[0].result.n == 5
    outcome, ends = simulate(study, RECORDS[:5], party=Keeping, seed=2)
    assert outcome.result is None
    assert all(isinstance(end, Declined) for end in ends.values())
