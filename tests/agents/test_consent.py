"""What a person is told before she answers, and how she limits what each answer may cost."""

import io
import math

import msgspec
import numpy as np
import pytest
from helpers import make_study
from rich.console import Console

from mpc_rr.agents.account import Account, StoredAccount
from mpc_rr.agents.consent import consent_to
from mpc_rr.agents.terms import Terms
from mpc_rr.estimation.matrix import KeepOrUniform
from mpc_rr.privacy.ledger import AnswerBudget, OverdrawnError
from mpc_rr.protocols.exact_pairs import ExactPairs
from mpc_rr.protocols.lambda_randomization import LambdaRandomization
from mpc_rr.protocols.rr_independent import RRIndependent
from mpc_rr.protocols.rr_joint import RRJoint
from mpc_rr.protocols.rr_views import RRViews
from mpc_rr.schema import Schema
from mpc_rr.show.study import show_consent

LAMBDAS = {"a0": 0.5, "a1": 0.2}
STUDY = make_study(9, (2, 3), protocol=LambdaRandomization(lambdas=LAMBDAS))
COSTS = [KeepOrUniform(2, 0.5).epsilon, KeepOrUniform(3, 0.2).epsilon]
RECORD = (1, 2)


def shown(study, account=None):
    screen = io.StringIO()
    show_consent(Console(file=screen, width=4000), consent_to(study, account or Account(), RECORD))
    return screen.getvalue()


# ── A limit for each answer ────────────────────────────────────────────────────────────────────


def test_an_answer_that_costs_too_much_is_refused_though_the_record_does_not():
    assert max(COSTS) == COSTS[0] == pytest.approx(math.log(3))
    terms = Terms(account=Account(budget=2.0, answer_budget=1.0))
    with pytest.raises(OverdrawnError, match=r"the answer to “a0” exceeds .* of 1 .* ε = 1\.1 "):
        terms.check(STUDY, RECORD)
    Terms(account=Account(budget=2.0, answer_budget=1.1)).check(STUDY, RECORD)
    assert "each answer" in consent_to(STUDY, Account(answer_budget=1.0)).refused


def test_an_answer_has_one_limit_for_all_studies_that_ask_it(tmp_path):
    other = make_study(9, (2, 3), protocol=LambdaRandomization(lambdas=LAMBDAS), name="other")
    with StoredAccount.open(tmp_path, answer_budget=1.5) as account:
        account.charge(STUDY, RECORD)
        with pytest.raises(OverdrawnError, match=r"ε = 2\.2 in all"):
            account.charge(other, RECORD)
        account.check(STUDY)  # what is in the ledger already costs nothing again
    with StoredAccount.open(tmp_path, answer_budget=2.3) as account:
        account.charge(other, RECORD)


@pytest.mark.parametrize("name", ["A0", "a0.", "\uff410", "\u04300", "aO"])
def test_a_limit_on_an_answer_holds_however_a_study_writes_its_name(name):
    """A capital or a full stop was enough to be told as much again, as often as anybody liked."""
    account = Account(answer_budget=1.5)
    account.charge(STUDY, RECORD)
    renamed = (msgspec.structs.replace(STUDY.schema.attributes[0], name=name),)
    schema = Schema((*renamed, *STUDY.schema.attributes[1:]))
    lambdas = {name: LAMBDAS["a0"], "a1": LAMBDAS["a1"]}
    protocol = LambdaRandomization(lambdas=lambdas)
    other = msgspec.structs.replace(STUDY, name="other", schema=schema, protocol=protocol)
    with pytest.raises(OverdrawnError, match=r"ε = 2\.2 in all"):
        account.charge(other, RECORD)
    means = consent_to(other, account)
    assert means.total_answers["a0"] == means.total_answers[name] == pytest.approx(2 * COSTS[0])
    assert means.answers == pytest.approx(dict(zip((name, "a1"), COSTS, strict=True)))


def test_where_no_epsilon_bounds_an_answer_it_is_beyond_any_limit():
    with pytest.raises(OverdrawnError, match="no ε bounds it"):
        Account(answer_budget=100.0).check(make_study(9, protocol=ExactPairs()))


def test_both_limits_are_said():
    said = shown(STUDY, Account(budget=4.0, answer_budget=2.0))
    assert "Your budget: ε = 4, ε = 2 for each answer." in said
    assert "Your budget: ε = 2 for each answer." in shown(STUDY, Account(answer_budget=2.0))


# ── How much stays uncertain ───────────────────────────────────────────────────────────────────


def left(matrix):
    """The entropy of an answer, given its report, if all are equally probable, over that before."""
    size = matrix.size
    joint = (matrix.keep * np.eye(size) + (1 - matrix.keep) / size) / size
    given = joint / joint.sum(axis=0)
    return -float((joint * np.log2(given)).sum()) / math.log2(size)


def test_the_share_of_entropy_is_what_stays_uncertain():
    means = consent_to(STUDY, Account())
    matrices = [KeepOrUniform(2, 0.5), KeepOrUniform(3, 0.2)]
    shares = [left(matrix) for matrix in matrices]
    assert [line.entropy_share for line in means.disclosures] == pytest.approx(shares)
    bits = [math.log2(matrix.size) for matrix in matrices]
    together = sum(share * bit for share, bit in zip(shares, bits, strict=True)) / sum(bits)
    assert means.entropy_share == pytest.approx(together)
    said = shown(STUDY)
    assert all(f"β = {100 * share:.3g} %" in said for share in shares)
    assert f"For all answers together: {100 * together:.3g} %." in said


def test_a_study_that_asks_for_a_share_of_entropy_shows_it():
    study = make_study(9, (2, 5), protocol=LambdaRandomization(beta=0.7))
    shares = [line.entropy_share for line in consent_to(study, Account()).disclosures]
    assert shares == pytest.approx([0.7, 0.7])
    assert "β says how much stays uncertain" in shown(study)


@pytest.mark.parametrize("protocol", [ExactPairs(), RRViews(epsilon=2.0)])
def test_where_there_is_no_share_of_entropy_none_is_shown(protocol):
    study = make_study(9, (2, 3), protocol=protocol)
    assert consent_to(study, Account()).entropy_share is None
    assert "β" not in shown(study)


# ── In vain ────────────────────────────────────────────────────────────────────────────────────


def test_what_answers_may_be_in_vain_for_is_said():
    study = make_study(5, (2, 3), protocol=RRJoint(epsilon=0.1))
    (text,) = [text for text in consent_to(study, Account()).in_vain if "randomized" in text]
    assert "tables of two questions will tell little" in text
    said = shown(study)
    assert f"Warning: Your answers may be in vain for this: {text}" in said
    assert "mpc-rr plan" not in said


def test_a_study_that_is_large_enough_is_not_said_to_be_in_vain():
    study = make_study(2000, (2, 3), protocol=RRIndependent(epsilon=6.0))
    assert consent_to(study, Account()).in_vain == []
    assert "in vain" not in shown(study)


def test_a_limit_on_one_answer_holds_however_a_study_writes_its_name():
    """Of two that look alike, the least; of one that has none itself, no more than of each."""

    def limit(name, each=math.inf, **of):
        budget = AnswerBudget(each, of)
        return budget.limit(name, Account(answer_budget=budget).ledger.accountant)

    assert limit("Hea1th", health=0.5) == limit("health", health=0.5) == 0.5
    assert limit("Health", Health=2.0, hea1th=0.5) == 0.5
    assert limit("Hea1th", 1.0, health=5.0) == 1.0
    assert limit("health", 1.0, health=5.0) == 5.0
    assert limit("car", health=0.5) == math.inf
    name = STUDY.schema.names[0].upper()
    refused = consent_to(STUDY, Account(answer_budget=AnswerBudget(of={name: 0.1}))).refused
    assert "exceeds the budget of 0.1 for it" in refused
