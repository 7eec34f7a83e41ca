"""Statements that once contradicted the program, or each other: each must not come back.

An editor found 21 (their numbers are in the names). What is said of privacy about any study is held
against what it discloses in ``tests/cli/test_one_voice.py``; here are the statements themselves.
"""

import ast
import io
import re
from pathlib import Path

import pytest
from anonymizing import IN_GROUPS
from anonymizing import make_scenario as anonymizing_scenario
from helpers import make_scenario, make_study, random_records
from rich.console import Console

from mpc_rr.agents.account import Account, StoredAccount
from mpc_rr.agents.consent import consent_to
from mpc_rr.agents.ledger_file import Occasion
from mpc_rr.errors import Declined
from mpc_rr.privacy.costs import Privacy
from mpc_rr.protocols.exact_pairs import ExactPairs
from mpc_rr.protocols.rr_independent import RRIndependent
from mpc_rr.results import verification
from mpc_rr.results.folder import write_results
from mpc_rr.running import run_study
from mpc_rr.show.study import show_consent
from mpc_rr.show.words import price
from mpc_rr.study.file import load_scenario

OCCASION = Occasion("01" * 16, "02" * 32, "05", 9)
"""A run in which something of the record has left."""
ROOT = Path(__file__).parent.parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def page(name):
    return " ".join((ROOT / name).read_text().split())


def screen_of(study, account=None):
    screen = io.StringIO()
    show_consent(Console(file=screen, width=10_000), consent_to(study, account or Account()))
    return screen.getvalue()


def scenario(name):
    return load_scenario(ROOT / "scenarios" / f"{name}.toml").study


def help_of(here, monkeypatch, *command):
    monkeypatch.setenv("COLUMNS", "4000")
    return " ".join(re.sub("[│╭╮╰╯─]", " ", here(*command, "--help")[1]).split())


def test_1_terminal_and_consent_of_exact_counts_say_the_same():
    """One said "nobody's answers were shown", the other "give you away with certainty"."""
    study = scenario("quickstart")
    terminal = price(Privacy.of(study.disclosures))
    assert terminal in " ".join((ROOT / "tests/golden/quickstart.txt").read_text().split())
    for said in (terminal, screen_of(study)):
        assert "Exact counts have no ε. They are seen only as totals" in said
        assert not re.search("nobody's answers|with certainty", said)


def test_2_noisy_counts_are_seen_in_no_ones_name():
    """They exist only inside the sum."""
    screen = screen_of(scenario("exact_pairs_noise"))
    assert "only in a total over" in screen
    assert "under your name" not in screen
    assert "under the party's name" not in screen


def test_3_a_second_run_that_would_be_refused_is_not_called_nothing_new(tmp_path):
    study = make_study(12, (2, 3), protocol=ExactPairs())
    with StoredAccount.open(tmp_path) as account:
        account.charge(study, (0, 1))
        account.disclose(study, OCCASION)
        said = screen_of(study, account)
        assert "nothing new" not in said
        assert "no ε is added, but see the warning" in said
        with pytest.raises(Declined, match="you took part in 'test-study' before"):
            account.check(study, (0, 1))


def test_4_and_5_a_refusal_says_that_no_part_of_the_record_was_sent(tmp_path):
    """It once said "nothing was sent" of a party that had joined.

    That others hear nothing of its ledger: ``tests/protocols/test_partys_say.py``.
    """
    study = make_study(12, (2, 3), protocol=ExactPairs())
    with StoredAccount.open(tmp_path) as account:
        account.charge(study, (0, 1))
        account.disclose(study, OCCASION)
        with pytest.raises(Declined, match="No part of your record was sent"):
            account.check(study, (0, 1))


def test_6_what_groups_disclose_is_not_denied_above():
    found = run_study(anonymizing_scenario(IN_GROUPS), transport="memory", seed=1).publication
    survey = (ROOT / "tests/golden/anonymous_survey.txt").read_text()
    for said in (" ".join(survey.split()), *(finding.text for finding in found.findings)):
        assert "nobody knows" not in said
    assert "all members have the same" in " ".join(survey.split())


def test_7_no_one_promises_that_no_respondent_is_identified(here, monkeypatch):
    """masked_salaries identifies some."""
    identified = "identified: all masked values together leave only one possible"
    assert identified in page("tests/golden/masked_salaries.txt")
    for said in (help_of(here, monkeypatch), page("README.md")):
        assert "picked out" not in said


def test_8_a_broker_is_not_said_to_see_sealed_records_alone(here, monkeypatch):
    """Randomized answers and published attributes travel unsealed."""
    assert "end to end" not in help_of(here, monkeypatch, "broker")
    source = page("mpc_rr/cli/brokers.py")
    assert "records stay sealed or randomized" in source


def test_9_a_synthetic_row_may_be_a_respondents_record(here, monkeypatch):
    said = help_of(here, monkeypatch, "synthesize")
    assert "A row may equal someone's record by chance." in said
    assert "No row" not in said


def test_10_a_transcript_is_not_said_to_hold_no_keys():
    """It holds shares and one-time keys that were revealed in the end."""
    assert "(`unmasking`, `final_key`), these are among them" in page("docs/results.md")
    for name in ("docs/results.md", "docs/threat-model.md"):
        assert not re.search("no share, no key|message bodies appear in no", page(name))


@pytest.mark.parametrize("name", ["block_survey", "rr_views"])
def test_11_a_party_that_is_asked_one_of_several_sets_is_told_so(name):
    """The costliest view, or all attributes, stood there as if each party answered them."""
    (event,) = scenario(name).disclosures
    screen = screen_of(scenario(name))
    assert event.how in screen
    assert re.search(r"one of (these )?\d+ (sets|groups)", event.how)


def test_12_confirmations_that_do_not_exist_are_not_confirmed(tmp_path):
    study = make_scenario(random_records(8, (2, 2)), (2, 2), protocol=RRIndependent(epsilon=2.0))
    write_results(run_study(study, transport="memory", seed=1), tmp_path / "run")
    claims = {claim.claim: claim for claim in verification.verify(tmp_path / "run")}
    assert claims[verification.SEEN].verdict == "not confirmable"


def test_13_the_largest_standard_error_is_called_that():
    shown = (ROOT / "tests/golden/block_survey.txt").read_text()
    assert "largest standard error" in shown
    assert "largest error" not in shown


def test_14_the_readme_names_what_must_be_trusted():
    """The coordinator sees exact counts with ``suppress_below``; a masked sum has a threshold."""
    said = page("README.md")
    assert not re.search("[Nn]obody (has|needs) to be trusted", said)
    (event,) = scenario("exact_pairs_suppressed").disclosures
    assert event.by == "the coordinator"
    assert "by the coordinator" in screen_of(scenario("exact_pairs_suppressed"))


def test_15_rr_pairs_is_said_to_use_both_sums():
    said = page("docs/protocols/rr_pairs.md")
    assert "secure_sum" in said
    assert "above 40 parties [`masked_sum`]" in said
    assert "(secure sum), or a bound on how many collude (masked sum)" in said


def test_16_the_threat_model_knows_registrars_throughout():
    said = page("docs/threat-model.md")
    assert "does not know who the parties are" not in said
    assert "registrar" in said


def test_17_what_the_architecture_says_of_sessions_and_extras_is_so():
    said = page("docs/architecture.md")
    assert not re.search("`Session` has no|has no `gather`", said)
    extras = re.search(
        r"^bench = \[(.*?)\]", (ROOT / "pyproject.toml").read_text(), re.MULTILINE | re.DOTALL
    )
    libraries = re.findall(r'"([a-z-]+)', extras[1])
    listed = re.search(r"\| ([^|]*) \(extra `bench`\)", said)[1]
    assert set(listed.split(", ")) <= set(libraries)
    assert {"flwr", "mpyc"} <= set(listed.split(", "))


def test_18_protocols_and_papers_are_not_miscounted():
    assert "one file each" not in page("README.md")  # some have several
    assert "three papers" not in page("CHANGELOG.md")


def test_19_nothing_that_only_unix_has_is_imported_unconditionally():
    unix = {"fcntl", "grp", "pwd", "resource", "termios"}
    for path in (ROOT / "mpc_rr").rglob("*.py"):
        for node in ast.parse(path.read_text()).body:
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [node.module] if isinstance(node, ast.ImportFrom) else []
            assert not unix & set(names), path


def test_20_suppressed_counts_are_not_promised_to_be_safe_from_all_reasoning():
    """Knowledge from elsewhere may narrow one down, and so may four attributes together."""
    for name in ("CHANGELOG.md", "README.md", "docs/protocols/exact_pairs.md"):
        assert "cannot be worked out" not in page(name), name
    study = scenario("exact_pairs_suppressed")
    (caution,) = [
        str(told)
        for told in consent_to(study, Account()).cautions
        if "hidden from anyone" in str(told)
    ]
    assert "three attributes at a time" in caution


def test_21_extras_are_installed_from_where_the_package_is():
    """It is on no index yet: ``mpc-rr[proxy]`` in one place, ``.[proxy]`` in another."""
    read = [*PAGES, ROOT / "CONTRIBUTING.md"]
    read += [*(ROOT / "mpc_rr").rglob("*.py"), *(ROOT / "benchmarks").rglob("*.py")]
    for path in read:
        assert "mpc-rr[" not in path.read_text(), path
