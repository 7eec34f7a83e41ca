"""All that is said of privacy about one study, side by side: nothing contradicts anything else.

The terminal once said "nobody's answers were shown to anybody" and the consent screen of the same
study "some answers give you away with certainty"; and a record of six answers that each stay at
75 % was "practically certain". Now every text is made from what a study discloses, and is read here
against it.
"""

import io
import itertools
import math
import re
from pathlib import Path

import msgspec
import pytest
from anonymizing import IN_GROUPS, MASKED
from anonymizing import make_study as make_anonymizing
from helpers import make_study
from rich.console import Console

from mpc_rr.agents.account import Account, StoredAccount
from mpc_rr.agents.consent import consent_to
from mpc_rr.privacy.accountant import Accountant
from mpc_rr.privacy.costs import Privacy
from mpc_rr.privacy.disclosures import ExactSum, NoisySum
from mpc_rr.privacy.odds import certainty
from mpc_rr.privacy.sentences import SURE, becomes, why_none
from mpc_rr.protocols.block_aggregation import BlockAggregation
from mpc_rr.protocols.collaborative_masking import CollaborativeMasking
from mpc_rr.protocols.exact_pairs import ExactPairs
from mpc_rr.protocols.lambda_randomization import LambdaRandomization
from mpc_rr.protocols.rr_clusters import RRClusters
from mpc_rr.protocols.rr_each_attribute import RREachAttribute
from mpc_rr.protocols.rr_independent import RRIndependent
from mpc_rr.protocols.rr_joint import RRJoint
from mpc_rr.protocols.rr_pairs import RRPairs
from mpc_rr.protocols.rr_views import RRViews
from mpc_rr.publication.parts import Publication
from mpc_rr.show.fragment import fragment
from mpc_rr.show.study import scenario_facts, show_consent
from mpc_rr.show.words import Words, price
from mpc_rr.study.file import load_scenario

ROOT = Path(__file__).parent.parent.parent
SCENARIOS = sorted(p for p in (ROOT / "scenarios").glob("*.toml") if p.stem != "adult_clusters")
REGISTRAR = "66" * 32


class Mean(ExactPairs, frozen=True, tag="test_mean_of_one"):
    """A protocol of one's own, of which a total of one attribute is seen."""

    def disclosures(self, study):
        """Its number."""
        return [ExactSum(what="exact mean", attributes=("a0",), crowd=self.hidden_among(study))]


PROTOCOLS = {
    "exact": ExactPairs(),
    "noise, little": ExactPairs(noise_epsilon=20.0),
    "noise, much": ExactPairs(noise_epsilon=0.05),
    "suppressed": ExactPairs(suppress_below=3),
    "independent, tiny": RRIndependent(epsilon=0.01),
    "independent, large": RRIndependent(epsilon=25.0),
    "each at 75 %": RRIndependent(keep=0.5),
    "joint, tiny": RRJoint(epsilon=0.01),
    "joint, large": RRJoint(epsilon=12.0),
    "views, tiny": RRViews(epsilon=0.05),
    "views, large": RRViews(epsilon=15.0),
    "pairs": RRPairs(epsilon=3.0),
    "pairs, large": RRPairs(keep=0.8),
    "lambda": LambdaRandomization(beta=0.7),
    "blocks": BlockAggregation(p=0.5, floor=0.2, block=5),
    "blocks of three": BlockAggregation(p=0.9, floor=0.01, block=5, together=3),
    "clusters by each": RRClusters(epsilon=4.0, dependence=RREachAttribute(epsilon=1.0)),
    "clusters by pairs": RRClusters(epsilon=4.0, dependence=RRPairs(epsilon=1.0)),
    "clusters by exact": RRClusters(epsilon=4.0, dependence=ExactPairs()),
    "a mean": Mean(),
    "clusters by noise": RRClusters(epsilon=1.0, dependence=ExactPairs(noise_epsilon=1.0)),
}


def generated():
    """Every protocol among few (the paper's sum) and many, open and with a registrar."""
    for (name, protocol), parties, registrar in itertools.product(
        PROTOCOLS.items(), (12, 60), (None, REGISTRAR)
    ):
        study = make_study(parties, (2, 2, 2, 3, 2, 2), protocol=protocol)
        study = msgspec.structs.replace(study, registrar=registrar)
        yield pytest.param(study, id=f"{name}, {parties}{', registrar' if registrar else ''}")
    anonymizing = (IN_GROUPS, MASKED, CollaborativeMasking(confidential=("age", "salary")))
    for name, protocol in zip(("groups", "masks", "no mask"), anonymizing, strict=True):
        yield pytest.param(make_anonymizing(protocol), id=name)


STUDIES = list(generated())


def texts_of(study):
    """What is said to whom."""
    screen = io.StringIO()
    means = consent_to(study, Account())
    show_consent(Console(file=screen, width=10_000), means)
    cost = Privacy.of(study.disclosures, study.protocol.cautions(study.setting))
    page = fragment(Publication(privacy=cost), Words(study.schema))
    return {
        "screen": screen.getvalue(),
        "prompt": means.in_words,
        "total": means.total_in_words,
        "lines": "\n".join(line.cost for line in means.disclosures),
        "result": cost.in_words,
        "terminal": price(cost),
        "report": re.sub("<[^>]*>", " ", page),
    }


FALSE = re.compile(
    r"nobody saw|nobody's answers|shown to anybody|with certainty|without bound"
    r"|certain of the truth|ε = (inf|∞|nan)|ε ∞|: ε = 0\b(?!\.)",
    re.IGNORECASE,
)


def contradictions(text, study):
    """What a text says that is not so."""
    events = study.disclosures
    reading = Accountant().read(events)
    bounded = [event for event in events if not math.isinf(event.cost)]
    rest = Accountant().read(bounded)
    known = {rest.local, rest.one_answer, *rest.answers.values()}
    known |= {epsilon for event in bounded for epsilon in (event.cost, *event.answers.values())}
    percentages = {f"{100 * certainty(epsilon):.3g}" for epsilon in known}
    found = [f"false word: {match[0]}" for match in FALSE.finditer(text)]
    found += [
        f"no such odds: {match[0]}"
        for match in re.finditer(r"(at most )?([\d.]+) % sure", text)
        if not match[1] or match[2] not in percentages
    ]
    for words, epsilon in (
        (r"whole records can become practically certain", rest.local),
        (r"any one answer can become practically certain", rest.one_answer),
        (r"any one answer \(practically certain\)", max((e.cost for e in bounded), default=0)),
        (r"protects almost nothing", rest.one_answer),
    ):
        if re.search(words, text) and certainty(epsilon) < SURE:
            found.append(f"not so certain: {words}")
    an_epsilon = r"(whole record|each party)[:,]? (at most )?ε ="
    if math.isinf(reading.local) and re.search(an_epsilon, text):
        found.append("an ε where there is none")
    named = [event for event in events if not event.added_up]
    if named and re.search("[Oo]nly totals (with noise )?are seen", text):
        found.append("answers under a name are no totals")
    trusted = any(event.trusts_coordinator for event in events)
    for pooled in re.finditer(r"pools? what they know([^;.]*)", text):
        if trusted and "the coordinator follows the protocol" not in pooled[1]:
            before = text[max(0, pooled.start() - 60) : pooled.start()]
            if "as long as" in before and "stays hidden" not in before:
                found.append("a coordinator that deviates is passed over")
    return found


@pytest.mark.parametrize("study", STUDIES)
def test_nothing_that_is_said_of_a_study_contradicts_what_it_discloses(study):
    for where, text in texts_of(study).items():
        assert not contradictions(text, study), where


@pytest.mark.parametrize("study", STUDIES)
def test_a_respondent_is_advised_nothing_that_only_the_study_team_can_do(study):
    """She cannot set noise_epsilon: she can ask for noise."""
    screen = texts_of(study)["screen"]
    for caution in study.protocol.cautions(study.setting):
        if re.search(r"\[|\w = |a number for", caution.prevented_by):
            assert f"What would prevent it: {caution.prevented_by}" not in screen
            asked = re.search(rf"ask for ([^(]+) [(]{re.escape(caution.prevented_by)}", screen)
            assert asked, caution.prevented_by
            assert not re.search(r"[_=\[]", asked[1])
        else:
            assert f"What would prevent it: {caution.prevented_by}" in screen


@pytest.mark.parametrize("study", STUDIES)
def test_one_answer_stands_beside_the_whole_record(study):
    """And where there is no ε, it is said why, and what follows."""
    events, texts = study.disclosures, texts_of(study)
    reading = Accountant().read(events)
    everywhere = ("screen", "prompt", "total", "result", "terminal", "report")
    if math.isinf(reading.local):
        for where in everywhere:
            assert "no ε" in texts[where], where
        for where in ("screen", "lines", "report"):
            assert all(word in texts[where] for word in why_none(events).split(", ")), where
        assert "none:" in texts["report"]
    else:
        for where in everywhere:
            assert becomes(reading.local) in texts[where], where
            assert becomes(reading.one_answer) in texts[where], where
            assert re.search("one answer", texts[where]), where
    exact = [event for event in events if isinstance(event, ExactSum)]
    tables = [event for event in exact if len(event.attributes) > 1]
    for where in everywhere if exact else ():
        assert f"Exact {'counts' if tables else 'totals'} have no ε." in texts[where]
        assert ("gave together learns the other" in texts[where]) == bool(tables)
        assert "anyone who knows the answers of all others" in texts[where]
    if any(isinstance(event, NoisySum) for event in events) and not math.isinf(reading.local):
        for where in everywhere:
            assert "otherwise no ε bounds it" in texts[where]


def test_contradictions_are_noticed():
    exact, six = make_study(60, (2, 2)), make_study(60, (2,) * 6, protocol=RRIndependent(keep=0.5))
    false = {
        "Done: nobody's answers were shown to anybody.": exact,
        "Some answers give you away with certainty.": exact,
        "For your whole record: ε = 3.": exact,
        "Hidden, as long as at most 29 parties pool what they know.": exact,
        "Only totals are seen.": six,
        "A 50:50 guess at any one answer can become practically certain, too": six,
        "Whoever sees it can be practically certain of the truth.": six,
        "a guess can become at most 99 % sure": six,
        "a guess can become 75 % sure": six,
    }
    for text, study in false.items():
        assert contradictions(text, study), text
    assert not contradictions("a guess can become at most 75 % sure", six)


def test_six_answers_of_75_percent_are_a_record_but_no_answer_that_is_certain():
    study = make_study(60, (2,) * 6, protocol=RRIndependent(keep=0.5))
    said = Privacy.of(study.disclosures).in_words
    assert "between two whole records can become at most 99.9 % sure" in said
    assert "any one answer can become at most 75 % sure (ε = 1.1)" in said


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_the_commands_say_it_alike_of_every_scenario(path, here, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "400")
    scenario = load_scenario(path)
    study = scenario.study
    said = texts_of(study) | {"golden": (ROOT / "tests/golden" / f"{path.stem}.txt").read_text()}
    code, said["explain"], _ = here("party", path, "--explain")
    assert code == 0
    said["check"] = scenario_facts(scenario, 0)["privacy"]
    record = tuple(0 for _ in study.schema.names)
    with StoredAccount.open(tmp_path / "mine") as account:
        account.charge(study, record)
    _, said["ledger"], _ = here("ledger", tmp_path / "mine")
    for where, text in said.items():
        assert not contradictions(" ".join(text.split()), study), where
    # One function makes the sentences: the same ones everywhere.
    mine, theirs = said["prompt"], said["result"]
    for where, sentence in (
        ("screen", mine), ("explain", mine), ("total", mine), ("ledger", mine),
        ("terminal", theirs), ("check", theirs), ("golden", theirs),
    ):  # fmt: skip
        assert sentence in " ".join(said[where].split()), where
