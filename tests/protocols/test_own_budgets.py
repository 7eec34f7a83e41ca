"""A budget, or a matrix, of each attribute's own: from the study file to what is published."""

import csv
import io
import json
import math

import msgspec
import numpy as np
import pytest
from helpers import make_scenario, make_schema, make_study, setting
from rich.console import Console
from typer.testing import CliRunner

from mpc_rr.agents.account import Account
from mpc_rr.agents.consent import consent_to
from mpc_rr.cli import app
from mpc_rr.errors import InputError, ScenarioError
from mpc_rr.estimation.lambdas import keep_for_beta
from mpc_rr.estimation.matrix import DistanceWeighted, KeepOrUniform, nearby
from mpc_rr.privacy.disclosures import ClusteredResponse, MatrixResponse, RandomizedResponse
from mpc_rr.privacy.sentences import in_words
from mpc_rr.protocols.budgets import Own
from mpc_rr.protocols.exact_pairs import ExactPairs
from mpc_rr.protocols.lambda_randomization import LambdaRandomization
from mpc_rr.protocols.rr_clusters import RRClusters
from mpc_rr.protocols.rr_each_attribute import RREachAttribute
from mpc_rr.protocols.rr_independent import RRIndependent
from mpc_rr.protocols.rr_joint import RRJoint
from mpc_rr.protocols.rr_pairs import RRPairs
from mpc_rr.results.asking import ask, read_askable
from mpc_rr.results.folder import read_folder, write_results
from mpc_rr.results.verification import verify
from mpc_rr.running import run_study
from mpc_rr.schema import Attribute, Schema
from mpc_rr.show.report import report
from mpc_rr.show.study import show_consent
from mpc_rr.study.checks import check_study, protocol_of
from mpc_rr.study.definition import study_from_json, study_json

SLANTED = Own(matrix=((0.7, 0.2, 0.1), (0.2, 0.6, 0.2), (0.1, 0.3, 0.6)))
EXCLUDING = Own(matrix=((0.7, 0.3, 0.0), (0.2, 0.6, 0.2), (0.0, 0.3, 0.7)))
SIZES = (2, 3, 2, 4)
SCHEMA = make_schema(SIZES)
ORDERED = Schema(
    tuple(
        Attribute(f"a{k}", "ordinal", tuple(str(c) for c in range(size)))
        for k, size in enumerate(SIZES)
    )
)


def checked(protocol, schema=SCHEMA):
    protocol.check(setting(schema, 100))
    return protocol


# ── What each attribute gets ───────────────────────────────────────────────────────────────────


def test_attributes_without_a_budget_of_their_own_share_what_is_left():
    protocol = checked(RRIndependent(epsilon=5.0, each={"a0": Own(epsilon=1.0), "a1": SLANTED}))
    design = protocol.design(SCHEMA)
    assert design.epsilon == pytest.approx(5.0, rel=1e-12)
    assert design.matrices[0].epsilon == 1.0
    assert design.matrices[1].epsilon == pytest.approx(math.log(7), rel=1e-15)
    assert design.matrices[2].keep == design.matrices[3].keep


@pytest.mark.parametrize("kind", [RRIndependent, RREachAttribute])
def test_every_attribute_can_have_another_kind(kind):
    each = {
        "a0": Own(keep=0.3), "a1": Own(beta=0.8), "a2": Own(epsilon=0.5), "a3": Own(nearby=0.5),
    }  # fmt: skip
    design = checked(kind(each=each), ORDERED).design(ORDERED)
    assert [repr(m) for m in design.matrices] == [
        repr(KeepOrUniform(2, 0.3)),
        repr(KeepOrUniform(3, keep_for_beta(3, 0.8))),
        repr(KeepOrUniform.from_epsilon(2, 0.5)),
        repr(nearby(4, 0.5)),
    ]


def test_lambdas_are_those_of_the_others():
    lambdas = {"a0": 0.3, "a2": 0.4, "a3": 0.2}
    each = {"a1": Own(matrix=((0.5, 0.3, 0.2), (0.3, 0.4, 0.3), (0.2, 0.3, 0.5)))}
    design = checked(LambdaRandomization(lambdas=lambdas, each=each)).design(SCHEMA)
    assert [getattr(m, "keep", None) for m in design.matrices] == [0.3, None, 0.4, 0.2]
    total = checked(LambdaRandomization(epsilon=4.0, each=each)).design(SCHEMA)
    assert total.epsilon == pytest.approx(4.0)
    share = [m.beta for k, m in enumerate(total.matrices) if k != 1]
    assert share == pytest.approx([share[0]] * 3)


def test_a_pair_gets_what_its_two_attributes_may_spend():
    protocol = RRPairs(keep=0.3, each={"a1": Own(epsilon=0.25), "a0": Own(epsilon=0.5)})
    (event,) = checked(protocol).disclosures(setting(SCHEMA, 5))
    two, four = (KeepOrUniform(size, 0.3).epsilon for size in (2, 4))
    assert event.by_answer[1] == pytest.approx(3 * 0.25 + 0.5 + two + four)
    assert event.epsilon == pytest.approx(3 * (0.25 + 0.5 + two + four))


@pytest.mark.parametrize(
    ("protocol", "says"),
    [
        (RRIndependent(keep=0.5, each={"b": Own(keep=0.1)}), "each.b: there is no such attribute"),
        (RRIndependent(keep=0.5, each={"a0": Own()}), "each.a0: give exactly one of keep, eps"),
        (RRIndependent(keep=0.5, each={"a0": Own(keep=1, beta=1)}), "each.a0: give exactly one"),
        (RRIndependent(keep=0.5, each={"a0": Own(keep=0.0)}), "each.a0: keep must be above 0"),
        (RRIndependent(keep=0.5, each={"a0": Own(epsilon=-1.0)}), "epsilon must be positive"),
        (RRIndependent(keep=0.5, each={"a0": Own(beta=2.0)}), "each.a0: beta must be between"),
        (RRIndependent(keep=0.5, each={"a0": Own(nearby=0.5)}), "categories with an order"),
        (RRIndependent(keep=0.5, each={"a0": SLANTED}), "2 rows of 2 probabilities, for “v0”"),
        (
            RRIndependent(keep=0.5, each={"a0": Own(matrix=((0.9, 0.2), (0.5, 0.5)))}),
            "row 0 of the randomization matrix sums to 1.1",
        ),
        (
            RRIndependent(keep=0.5, each={"a0": Own(matrix=((0.5, 0.5), (0.5, 0.5)))}),
            "nothing of the true answers would be left",
        ),
        (
            RRIndependent(keep=0.5, each={"a0": Own(matrix=((1.0, 0.0), (0.5, 0.5)))}),
            "protects nobody",
        ),
        (RRIndependent(keep=0.5, each={"a0": Own(keep=1.0)}), "protects nobody"),
        (RRIndependent(epsilon=1.0, each={"a0": Own(epsilon=1.0)}), "leaves nothing for the oth"),
        (RRIndependent(epsilon=9.0, each={"a1": EXCLUDING}), "zeros, and so no ε; give keep"),
        (RRIndependent(each={"a1": SLANTED}), "either keep or epsilon"),
        (
            RRIndependent(keep=0.5, each={f"a{k}": Own(keep=0.1) for k in range(4)}),
            "every attribute has a budget of its own",
        ),
        (LambdaRandomization(beta=0.5, each={"a1": SLANTED}), "columns of the matrix must add up"),
        (LambdaRandomization(lambdas={"a0": 0.5}, each={"a1": Own(keep=0.5)}), "lambdas must name"),
        (RRPairs(keep=0.3, each={"a1": SLANTED}), "pairs of answers are randomized as one value"),
        (RRJoint(), "either epsilon or stay"),
        (RRJoint(epsilon=1.0, stay=0.5), "either epsilon or stay"),
        (RRJoint(stay=1.0), "protects nobody"),
        (RRClusters(keep=0.3), r"\[protocol.dependence\] is missing"),
        (RRClusters(stay=0.3, dependence=ExactPairs()), "stay needs clusters that are named"),
        (RRClusters(stay=0.3, keep=0.3, clusters=(("a0",),)), "stay is one for all"),
        (RRClusters(keep=0.3, clusters=(("a0", "x"),)), "no attribute 'x'"),
        (RRClusters(keep=0.3, clusters=(("a0", "a1"), ("a0",))), "'a0' is named twice"),
        (RRClusters(keep=0.3, clusters=(("a0",),), measure="V"), "the clusters are named already"),
        (RRClusters(keep=0.3, clusters=(("a0", "a1"),), each={"a1": SLANTED}), "alone in its"),
        (RRClusters(keep=0.3, measure="r", dependence=ExactPairs()), "attributes with an order"),
    ],
)
def test_what_makes_no_sense_is_refused_before_anybody_is_asked(protocol, says):
    with pytest.raises(InputError, match=says):
        checked(protocol)


def test_a_mistake_in_the_file_is_told_with_its_place():
    with pytest.raises(ScenarioError, match=r"protocol.each.*there is no 'kept' here"):
        protocol_of({"name": "rr_independent", "keep": 0.5, "each": {"a0": {"kept": 0.3}}})
    with pytest.raises(ScenarioError, match="there is no 'each' here"):
        protocol_of({"name": "rr_views", "epsilon": 0.5, "each": {"a0": {"keep": 0.3}}})


def test_check_says_what_was_found_of_given_matrices():
    """A matrix that is checked and of which nothing is said leaves its author wondering."""
    said = CliRunner().invoke(app, ["check", "own_budgets", "--json"])
    assert said.exit_code == 0
    assert json.loads(said.stdout)["matrices"] == (
        "drugs: not bistochastic: its rows add up to 1, its columns do not; debts: bistochastic: "
        "with probability 0.4 the answer itself, else by one of some permutations"
    )
    without = CliRunner().invoke(app, ["check", "rr_independent", "--json"])
    assert "matrices" not in json.loads(without.stdout)


def test_a_study_without_them_has_the_digest_it_always_had():
    """Of before these options; the last is that of a study that uses one."""
    plain = make_study(5, SIZES, protocol=RRIndependent(keep=0.5))
    table = json.loads(study_json(plain))["protocol"]
    assert plain.digest == make_study(5, SIZES, protocol=RRIndependent(keep=0.5, each=None)).digest
    assert table == {"name": "rr_independent", "keep": 0.5, "epsilon": None, "each": None}
    own = make_study(5, SIZES, protocol=RRIndependent(keep=0.5, each={"a1": SLANTED}))
    assert own.digest != plain.digest
    assert study_from_json(study_json(own)) == own
    assert study_from_json(study_json(own)).digest == own.digest


def test_a_matrix_that_keeps_or_replaces_draws_near_the_limit_of_keeping_all():
    """The nearer keep is to 1, the more of the reports are the truth, and the dearer they are."""
    costs = []
    for keep in (0.9, 0.999, 1 - 1e-9):
        design = RRIndependent(keep=0.3, each={"a0": Own(keep=keep)}).design(SCHEMA)
        costs.append(design.matrices[0].epsilon)
        assert costs[-1] == pytest.approx(math.log((1 + keep) / (1 - keep)), rel=1e-6)
    assert costs == sorted(costs)
    with pytest.raises(InputError, match="protects nobody"):
        checked(RRIndependent(keep=0.3, each={"a0": Own(keep=1 - 1e-15)}))


# ── Clusters ───────────────────────────────────────────────────────────────────────────────────


def test_clusters_that_are_known_before_cost_no_first_stage():
    study, dependence = setting(SCHEMA, 100), RREachAttribute(keep=0.5)
    found = RRClusters(keep=0.4, most_combinations=6, dependence=dependence).disclosures(study)
    given = checked(RRClusters(keep=0.4, clusters=(("a1", "a0"),))).disclosures(study)
    assert [event.attributes for event in given] == [("a0", "a1"), ("a2",), ("a3",)]
    first = math.fsum(event.cost for event in dependence.disclosures(study))
    assert math.fsum(e.cost for e in given) == pytest.approx(
        math.fsum(e.cost for e in found) - first
    )
    assert all(isinstance(event, RandomizedResponse) for event in given)
    assert RRClusters(keep=0.4, clusters=(("a1", "a0"),)).steps(study) == ("answer",)


def test_an_attribute_with_a_matrix_stays_alone_and_has_a_price_of_its_own():
    protocol = RRClusters(
        keep=0.4, each={"a1": SLANTED, "a0": Own(epsilon=0.25)},
        least_dependence=0.0, most_combinations=100, dependence=ExactPairs(),
    )  # fmt: skip
    *_, clustered, alone = checked(protocol).disclosures(setting(SCHEMA, 10))
    assert isinstance(clustered, ClusteredResponse)
    assert clustered.attributes == ("a0", "a2", "a3")
    assert clustered.each[0] == 0.25
    assert isinstance(alone, MatrixResponse)
    clusters = protocol.clusters_of(SCHEMA, np.full((4, 4), 0.9))
    assert clusters == [(0, 2, 3), (1,)]
    design = protocol.design(SCHEMA, clusters)
    assert design.matrices[0].epsilon == pytest.approx(clustered.epsilon)
    assert design.matrices[1].epsilon == pytest.approx(alone.cost)
    power = RRClusters(
        keep=0.4, each={"a1": SLANTED}, method="power_iteration", clusters=2,
        dependence=ExactPairs(),
    )  # fmt: skip
    assert (1,) in checked(power).clusters_of(SCHEMA, np.full((4, 4), 0.9))


def test_the_measure_that_is_asked_for_makes_the_clusters():
    table = np.array([[0.2, 0.0], [0.1, 0.2], [0.2, 0.0], [0.1, 0.2]])
    schema = Schema(
        tuple(Attribute(n, "ordinal", tuple("0123"[:k])) for n, k in (("x", 4), ("y", 2)))
    )

    class Tables:
        def pair_shares(self):
            return {(0, 1): table}

    def found(measure):
        protocol = RRClusters(keep=0.4, measure=measure, dependence=ExactPairs())
        return protocol.dependences_of(schema, Tables())[0, 1]

    assert found(None) == found("r") != found("V")


# ── What people are told ───────────────────────────────────────────────────────────────────────


def explained(study):
    screen = io.StringIO()
    means = consent_to(study, Account())
    show_consent(Console(file=screen, width=200), means)
    return means, " ".join(screen.getvalue().split())


def test_each_answer_is_shown_with_its_own_price():
    protocol = RRIndependent(keep=0.5, each={"a1": SLANTED, "a2": Own(epsilon=0.25)})
    means, screen = explained(make_study(10, SIZES, protocol=protocol))
    assert means.answers["a2"] == 0.25
    assert means.answers["a1"] == pytest.approx(math.log(7))
    assert "“a2”: ε = 0.25; a 50:50 guess can become at most 56.2 % sure" in screen
    assert "“a1”: ε = 1.95; a 50:50 guess can become at most 87.5 % sure" in screen
    same, without = explained(make_study(10, (2, 2), protocol=RRIndependent(keep=0.5)))
    assert len(set(same.answers.values())) == 1
    assert "For each answer by itself" not in without


def test_a_matrix_with_zeros_has_no_price_and_says_what_is_excluded():
    study = make_study(10, SIZES, protocol=RRIndependent(keep=0.5, each={"a1": EXCLUDING}))
    check_study(study)
    means, screen = explained(study)
    assert means.epsilon is None
    assert means.answers["a1"] is None
    assert "a report of “v0” excludes “v2”, a report of “v2” excludes “v0”" in screen
    assert "“a1”: no ε bounds what is told of it" in screen
    assert "Some reports of “a1” exclude some answers: no ε" in in_words(study.disclosures)
    refused = consent_to(study, Account(answer_budget=9.0)).refused
    assert refused is not None
    assert "“a1” exceeds" in refused
    assert consent_to(study, Account()).refused is None


def most_sure(matrix):
    """Over all reports, and pairs of answers that one leaves: what a 50:50 guess can become."""
    columns = np.array(matrix).T
    return max(a / (a + b) for column in columns for a in column for b in column if a and b)


def test_how_sure_one_of_the_answers_that_a_report_leaves_can_become_is_said_exactly():
    """Beside all else that is told of this answer, under the name it has or one like it."""
    study = make_study(10, SIZES, protocol=RRIndependent(keep=0.5, each={"a1": EXCLUDING}))
    sure = most_sure(EXCLUDING.matrix)  # 0.6 and 0.3 for v1: 7/9 of v0 or v2
    assert sure == pytest.approx(7 / 9)
    event = study.disclosures[1]
    assert event.epsilon_left == pytest.approx(math.log(sure / (1 - sure)))
    alone = "a 50:50 guess at “a1” can become at most 77.8 % sure (ε = 1.25)"
    assert f"{alone}, as long as what is told of the other answers" in in_words(study.disclosures)
    assert in_words([event]).endswith(f"{alone}.")
    again = RRIndependent(keep=0.5, each={"a1": Own(epsilon=2.0)})
    told_again = again.disclosures(setting(SCHEMA, 10))[1]
    assert "at most 96.3 % sure (ε = 3.25)." in in_words([event, told_again])
    exact = ExactPairs().disclosures(setting(SCHEMA, 10))
    assert "No ε bounds which of the others “a1” was, either." in in_words([event, *exact])
    noisy = ExactPairs(noise_epsilon=1.0).disclosures(setting(SCHEMA, 10))
    assert "on the same conditions as the rest." in in_words([event, *noisy])


CIRCULAR = Own(matrix=((0.5, 0.0, 0.5), (0.5, 0.5, 0.0), (0.0, 0.5, 0.5)))


def test_two_reports_that_exclude_answers_are_not_asked_of_one_attribute():
    """Each leaves two of three answers, and half of all pairs of reports left only one: one of
    each two respondents could be read from the transcript."""
    possible = np.array(CIRCULAR.matrix) > 0
    left = [(possible[:, v] & possible[:, w]).sum() for v in range(3) for w in range(3)]
    assert min(left) == 1

    def study(first):
        finding = RREachAttribute(keep=0.5, each=first)
        protocol = RRClusters(keep=0.5, each={"a1": CIRCULAR}, dependence=finding)
        return make_study(100, SIZES, protocol=protocol)

    check_study(study({"a1": SLANTED}))
    with pytest.raises(ScenarioError, match="“a1” is reported more than once by a matrix with z"):
        check_study(study({"a1": CIRCULAR}))


def test_reports_of_two_studies_that_exclude_answers_may_leave_one_together():
    """Whatever its spelling; a study that is repeated gives the very same answer."""

    def study(name, asked="hiv"):
        schema = Schema((Attribute(asked, "nominal", ("no", "yes", "unknown")),
                         Attribute("car", "nominal", ("no", "yes"))))  # fmt: skip
        protocol = RRIndependent(keep=0.5, each={asked: CIRCULAR})
        made = make_study(10, (3, 2), name=name)
        return msgspec.structs.replace(made, schema=schema, protocol=protocol)

    account, first = Account(), study("one")
    account.charge(first, (1, 0))
    account.once(first, (1, 0), "answer", lambda rng: rng.bytes(1))
    single = "the reports of “{}” that exclude answers may leave a single one"
    assert "single" not in consent_to(first, account).total_in_words
    assert "at most 50 % sure" in account.ledger.in_words()
    assert single.format("hiv") in consent_to(study("two"), account).total_in_words
    assert single.format("HlV") in consent_to(study("two", "HlV"), account).total_in_words
    assert "single" not in consent_to(study("two", "smokes"), account).total_in_words
    account.charge(study("two"), (1, 0))
    assert single.format("hiv") in account.ledger.in_words()


TINY = 1e-300


@pytest.mark.parametrize(
    "rows",
    [
        ((0.7, TINY, 0.3), (0.2, 0.6, 0.2), (0.5, 0.0, 0.5)),
        ((0.7, TINY, 0.3), (0.4, 0.6, 0.0), (0.5, TINY, 0.5)),
    ],
)
def test_a_zero_does_not_excuse_what_is_nearly_zero(rows):
    """A zero anywhere switched the limits off, and screens said that the rest was uncertain."""
    study = make_study(10, SIZES, protocol=RRIndependent(keep=0.5, each={"a1": Own(matrix=rows)}))
    with pytest.raises(ScenarioError, match="ε = 690 between two answers that a report leaves"):
        check_study(study)


def test_what_matrices_with_zeros_leave_counts_for_the_whole_record():
    tiny = 1e-12
    own = Own(matrix=((0.5, 0.5 - tiny, tiny, 0), (0.5, 0.4, 0.1, 0),
                      (0, 0.2, 0.5, 0.3), (0, tiny, 0.4, 0.6 - tiny)))  # fmt: skip
    for many in (2, 3):  # 26 or 27 each
        schema = make_schema((4,) * many)
        protocol = RRIndependent(each=dict.fromkeys(schema.names, own))
        study = make_study(10, (4,) * many, protocol=protocol)
        if many == 2:
            check_study(study)
        else:
            with pytest.raises(ScenarioError, match="for all answers together protects nobody"):
                check_study(study)


def test_the_reports_that_leave_fewest_answers_are_named_first():
    """The dangerous one stood behind six harmless ones, as “2 other reports”."""
    size = 8
    matrix = np.full((size, size), 0.1) + 0.3 * np.eye(size)
    matrix[6:, :6] = matrix[:6, 6:] = 0  # the last two reports leave two answers
    matrix /= matrix.sum(axis=1, keepdims=True)
    own = Own(matrix=tuple(map(tuple, matrix.tolist())))
    event = RRIndependent(keep=0.5, each={"a0": own}).disclosures(setting(make_schema((8, 2)), 9))[
        0
    ]
    said = event.how.split("; ")
    assert said[1].startswith("a report of “v6” excludes “v0”, ")
    assert "a report of “v7” excludes" in said[1]
    assert said[2] == "2 others exclude some, too, and 6 answers or more stay possible"


def test_the_author_is_told_where_an_answer_costs_more_than_its_own_budget():
    """hiv by ε = 0.1 in one cluster with sport by ε = 2.94: 3.04 may be told of hiv."""
    own = {"a0": Own(epsilon=0.1), "a1": SLANTED}
    near = setting(SCHEMA, 100)

    def said(protocol):
        return [p.text for p in checked(protocol).prospects(near) if "of its own" in p.text]

    rest = KeepOrUniform(2, 0.9).epsilon
    (text,) = said(RRClusters(keep=0.9, clusters=(("a0", "a2"),), each=own))
    assert text.startswith("“a0” has a budget of its own, ε = 0.1, but is one value with others")
    assert text.endswith(f"its answer may cost up to ε = {0.1 + rest:.3g}.")
    assert said(RRClusters(keep=0.9, clusters=(("a2", "a3"),), each=own)) == []
    finding = RREachAttribute(keep=0.5)
    (text,) = said(RRClusters(keep=0.5, each=own, dependence=finding))
    assert "“a0” has a budget of its own, ε = 0.1, but may be one value with others" in text
    (text,) = said(RRPairs(keep=0.5, each={"a0": Own(epsilon=0.1)}))
    assert "“a0” has a budget of its own, ε = 0.1, but is one value with each of the others" in text
    assert said(RRIndependent(keep=0.5, each=own)) == []


def test_one_answer_of_a_near_record_costs_less_than_the_record():
    (event,) = checked(RRJoint(stay=0.3)).disclosures(setting(SCHEMA, 100))
    matrix = DistanceWeighted(SIZES, 0.3)
    dense = matrix.dense().reshape(SIZES + SIZES)
    assert event.cost == pytest.approx(np.log(dense.max() / dense.min()))
    for a, name in enumerate(SCHEMA.names):  # all others the same
        rows = np.moveaxis(dense, a, 0)
        ratio = max(float((one / other).max()) for one in rows for other in rows)
        assert event.answers[name] == pytest.approx(math.log(ratio))
        assert event.answers[name] < event.cost


def test_what_a_report_leaves_uncertain_is_reckoned_for_any_matrix():
    matrix = np.array(SLANTED.matrix)
    joint = matrix / 3
    reports = joint.sum(axis=0)
    given = -sum(p * math.log2(p / reports[v]) for row in joint for v, p in enumerate(row))
    event = RRIndependent(keep=0.5, each={"a1": SLANTED}).disclosures(setting(SCHEMA, 9))[1]
    assert event.left == pytest.approx(given / math.log2(3))


# ── A study from beginning to end ──────────────────────────────────────────────────────────────

STUDIES = {
    "independent": RRIndependent(keep=0.7, each={"a1": EXCLUDING, "a2": Own(epsilon=1.5)}),
    "lambda": LambdaRandomization(beta=0.4, each={"a3": Own(keep=0.8)}),
    "joint": RRJoint(stay=0.8),
    "clusters given": RRClusters(keep=0.7, clusters=(("a0", "a2"),), each={"a1": SLANTED}),
    "clusters given, near": RRClusters(stay=0.8, clusters=(("a0", "a2"), ("a1", "a3"))),
    "clusters found": RRClusters(
        keep=0.7, each={"a1": SLANTED},
        dependence=RREachAttribute(keep=0.7, each={"a1": SLANTED, "a0": Own(epsilon=2.0)}),
    ),
}  # fmt: skip


def answers(n):
    rng = np.random.default_rng(4)
    first = rng.integers(0, 2, n)
    second = np.where(rng.random(n) < 0.7, first, rng.integers(0, 3, n))
    return [*zip(first, second, rng.integers(0, 2, n), rng.integers(0, 4, n), strict=True)]


@pytest.mark.parametrize("name", STUDIES)
def test_a_study_is_run_verified_asked_and_reported(tmp_path, name):
    """Shares within five standard errors, a count within 99.99 %: 6 in 10,000 seeds fail one."""
    records = [tuple(map(int, record)) for record in answers(300)]
    scenario = make_scenario(records, SIZES, protocol=STUDIES[name])
    result = run_study(scenario, transport="memory", seed=3)
    folder = tmp_path / "run"
    write_results(result, folder)
    claims = verify(folder)
    assert not [claim for claim in claims if claim.verdict == "contradicted"]
    published = read_folder(folder).file.publication
    share = published.table("a0")
    truth = np.bincount([record[0] for record in records], minlength=2) / 300
    assert (abs(np.array(share.unbiased) - truth) < 5 * np.array(share.standard_errors)).all()
    estimates, mine = read_askable(folder).estimates, result.outcome.result.estimates()
    for design in (estimates.fitted.design, mine.fitted.design):
        assert [repr(m) for m in design.matrices] == [repr(m) for m in mine.fitted.design.matrices]
    np.testing.assert_allclose(estimates.table((0, 1)), mine.table((0, 1)), atol=1e-9)
    found = ask(folder, "a0 = v1 and a1 = v1 and not a3 = v2", 0.9999)
    held = sum(r[0] == 1 and r[1] == 1 and r[3] != 2 for r in records)
    least, most = found.interval
    assert least <= held <= most
    assert report(folder)
    assert len(estimates.synthesize(50, np.random.default_rng(1).random)) == 50
    with (folder / "reports.csv").open() as sheet:
        weights = [float(row["weight"]) for row in csv.DictReader(sheet)]
    assert sum(weights) == pytest.approx(1)
