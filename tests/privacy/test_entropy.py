"""β beside ε: one number from one place, wherever something is said of a study."""

import io
import math

import pytest
from helpers import make_study
from rich.console import Console

from mpc_rr.agents.account import Account
from mpc_rr.agents.consent import consent_to
from mpc_rr.errors import InputError
from mpc_rr.planning.designs import planned_designs
from mpc_rr.privacy.costs import Privacy
from mpc_rr.privacy.disclosures import RandomizedResponse
from mpc_rr.privacy.entropy import beta_said, entropy_share, entropy_shares
from mpc_rr.protocols.exact_pairs import ExactPairs
from mpc_rr.protocols.lambda_randomization import LambdaRandomization
from mpc_rr.publication.parts import Publication
from mpc_rr.show.fragment import fragment
from mpc_rr.show.study import scenario_facts, show_consent, show_facts
from mpc_rr.show.words import Words, price
from mpc_rr.study.file import Scenario, load_scenario

LAMBDAS = {"a0": 0.9, "a1": 0.8, "a2": 0.7}


def study_of(protocol, sizes=(5, 5, 5)):
    return make_study(20, sizes, protocol=protocol)


def by_hand(keep, size):
    """The entropy of a row, in bits, over that of a uniform one."""
    stay, other = keep + (1 - keep) / size, (1 - keep) / size
    row = [stay, *[other] * (size - 1)]
    return -sum(p * math.log2(p) for p in row) / math.log2(size)


def test_of_each_answer_and_of_all_as_by_hand():
    """The paper's first triple, with five categories: 40.07 % together (Table 1, corrected)."""
    events = study_of(LambdaRandomization(lambdas=LAMBDAS)).disclosures
    found = entropy_shares(events)
    for name, keep in LAMBDAS.items():
        assert found[name,] == pytest.approx(by_hand(keep, 5))
    assert entropy_share(events) == pytest.approx(0.4007, abs=5e-5)
    assert Privacy.of(events).beta == entropy_share(events)


def test_the_same_number_stands_everywhere():
    study = study_of(LambdaRandomization(lambdas=LAMBDAS))
    cost = Privacy.of(study.disclosures)
    screen, facts = io.StringIO(), io.StringIO()
    show_consent(Console(file=screen, width=10_000), consent_to(study, Account()))
    found = scenario_facts(Scenario.of(study, ()), 0)
    show_facts(Console(file=facts, width=10_000), found)
    assert found["beta"]["all answers together"] == cost.beta
    report = fragment(Publication(privacy=cost), Words(study.schema))
    for said in (screen.getvalue(), facts.getvalue(), price(cost), report):
        assert "40.1 %" in said
    for said in (screen.getvalue(), facts.getvalue(), report):
        assert f"{100 * by_hand(0.7, 5):.3g} %" in said


def test_a_plan_has_the_share_of_each_design_that_has_one():
    study = study_of(LambdaRandomization(lambdas=LAMBDAS))
    designs, _ = planned_designs(study.schema, 500, 3.0)
    shares = {design.name: design.beta for design in designs}
    (own,) = [d for d in designs if d.name == "lambda"]
    assert shares["lambda"] == entropy_share(own.protocol.stated(study.setting))
    assert shares["views"] is None


def test_what_has_no_such_number_says_nothing_of_it():
    study = study_of(ExactPairs())
    assert entropy_share(study.disclosures) is None
    assert "β" not in price(Privacy.of(study.disclosures))
    assert "β" not in fragment(
        Publication(privacy=Privacy.of(study.disclosures)), Words(study.schema)
    )
    assert beta_said(study.disclosures) == ""


def test_answers_that_are_given_twice_have_no_share_together():
    """Their entropy rates do not add up: both tell of the same truth."""
    event = RandomizedResponse(what="x", attributes=("a",), combinations=3, keep=0.5, epsilon=1.4)
    assert entropy_share([event]) is not None
    assert entropy_share([event, event]) is None


# ── λ from covariances, in a study file ────────────────────────────────────────────────────────

FILE = """
title = "Small"
[schema.sport]
categories = ["no", "yes"]
[schema.mood]
type = "ordinal"
categories = ["low", "middle", "high"]
[schema.age]
bins = [0, 30, 60, 120]
[protocol]
name = "lambda_randomization"
{protocol}
[parties]
count = 40
"""


def lambdas(tmp_path, protocol):
    (tmp_path / "study.toml").write_text(FILE.format(protocol=protocol))
    study = load_scenario(tmp_path / "study.toml").study
    return [matrix.keep for matrix in study.protocol.design(study.schema).matrices], study


def test_a_study_file_says_how_much_of_covariances_is_kept(tmp_path):
    found, study = lambdas(tmp_path, "covariance = 0.5")
    assert found == pytest.approx([0.5**0.5] * 3)
    plain, _ = lambdas(tmp_path, 'covariance = { "age+mood" = 0.4, "mood+sport" = 0.2 }')
    assert plain[1] * plain[2] >= 0.4 * (1 - 1e-12)
    assert plain[1] * plain[0] >= 0.2 * (1 - 1e-12)
    _, without = lambdas(tmp_path, "beta = 0.5")
    assert study.digest != without.digest


def test_a_least_protection_stands_beside_covariances(tmp_path):
    found, study = lambdas(tmp_path, 'covariance = { "age+mood" = 0.3 }\nbeta = 0.5')
    shares = entropy_shares(study.disclosures)
    assert min(shares.values()) >= 0.5 - 1e-9
    assert shares["sport",] == pytest.approx(0.5)
    assert found[1] * found[2] >= 0.3 * (1 - 1e-12)


@pytest.mark.parametrize(
    ("protocol", "says"),
    [
        ("covariance = 0.5\nepsilon = 1", "exactly one of lambdas, beta, epsilon and covariance"),
        ("covariance = 0.9\nbeta = 0.5", "cannot keep 90% of their covariance"),
        ("covariance = 0", "covariance must be above 0"),
        ('covariance = { "age+sleep" = 0.5 }', "'age[+]sleep' is no pair"),
        ('covariance = { "age+mood" = 0.5, "mood+age" = 0.4 }', "given twice"),
        ('covariance = { "age+mood" = 0.5 }', "no target is given for the covariances"),
        ("covariance = 1", "protects nobody"),
    ],
)
def test_wishes_that_make_no_sense_are_told(tmp_path, protocol, says):
    with pytest.raises(InputError, match=says):
        lambdas(tmp_path, protocol)


def test_the_digest_of_a_study_without_covariances_is_what_it_was():
    """As it was before there was such a key (computed by the program of then)."""
    study = study_of(LambdaRandomization(beta=0.5), (2, 3))
    assert study.digest.hex().startswith(OLD_DIGEST)


OLD_DIGEST = "6d0cc76e5edf729f"
