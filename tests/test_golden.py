"""One seed of every scenario that needs no data from outside: what is published stays what it was.

The values in ``tests/golden/`` were written by the version that wrote result format 1 (commit
723af55; the groups of anonymous_survey are later: names no longer decide between equal records).
So are the transcripts of the three scenarios with relays, which could not be seeded before, and of
masked sums, in which more neighbours must answer since rules 3.
Values that are drawn are later still: draws are exact, and come from a secret. After a change of
words that is meant, ``MPC_RR_GOLDEN=write pytest -m 'sweep or not sweep' tests/test_golden.py``
writes what people see anew; ``MPC_RR_GOLDEN=values`` also what is published.

Fractions are compared to nine digits: the last ones depend on the machine.
"""

import hashlib
import io
import json
import os
import re
from pathlib import Path

import msgspec
import pytest
from rich.console import Console

from mpc_rr.results import format1
from mpc_rr.results.alike import alike
from mpc_rr.results.folder import read_folder, write_results
from mpc_rr.running import run_study
from mpc_rr.show.report import report
from mpc_rr.show.study import show_result
from mpc_rr.study.file import load_scenario

ROOT = Path(__file__).parent.parent
GOLDEN = Path(__file__).parent / "golden"
QUICK = ("hidden_in_groups", "masked_salaries", "neighbours_study", "quickstart", "silent_party")
REST = (
    "anonymous_survey", "asking_less", "block_survey", "computed", "exact_moments",
    "exact_pairs_gaussian", "exact_pairs_noise", "exact_pairs_suppressed", "generalized_survey",
    "lambda_randomization", "own_budgets", "rr_clusters", "rr_each_attribute", "rr_independent",
    "rr_joint", "rr_pairs", "rr_views",
)  # fmt: skip
HEAD = {"study", "run", "coordinator", "transcript"}
"""What is kept beside the publication, of protocols that format 1 did not have."""
SCENARIOS = [*QUICK, *(pytest.param(name, marks=pytest.mark.sweep) for name in REST)]


def test_every_scenario_that_needs_no_data_has_a_golden_folder():
    needs_data = {"adult_clusters"}
    names = {path.stem for path in (ROOT / "scenarios").glob("*.toml")} - needs_data
    assert names == {*QUICK, *REST} == {path.stem for path in GOLDEN.glob("*.json")}


def shown(result):
    """The terminal's text, without what differs from run to run."""
    text = io.StringIO()
    show_result(Console(file=text, width=100), result, result.publication, 0.0)
    return re.sub(r"[\d.]+ (bytes|kB|MB)", "… bytes", text.getvalue())


def digest_of(text):
    return hashlib.sha256(text.encode()).hexdigest()


def rounded(text):
    """A sheet without the last digits of its fractions."""
    return re.sub(r"-?\d+\.\d+(e[+-]?\d+)?", lambda found: f"{float(found[0]):.9g}", text)


@pytest.mark.parametrize("name", SCENARIOS)
def test_values_and_words_are_what_they_were(tmp_path, name):
    scenario = load_scenario(ROOT / "scenarios" / f"{name}.toml")
    result = run_study(scenario, transport="memory", seed=1)
    folder = tmp_path / "run"
    write_results(result, folder)
    golden = json.loads((GOLDEN / f"{name}.json").read_text())
    study, found = scenario.study, read_folder(folder).file
    newer = study.protocol.name not in format1.KINDS
    plain = msgspec.to_builtins(found.publication) if newer else {}
    told = json.loads(json.dumps(plain or format1.document(study, found.publication)))
    before = golden["result"]
    sheets = {
        str(path.relative_to(folder)): hashlib.sha256(
            rounded(path.read_text()).encode()
        ).hexdigest()
        for path in sorted(folder.rglob("*.csv"))
        if path.name != "cost.csv"
    }
    if os.environ.get("MPC_RR_GOLDEN") == "values":
        before |= told
        before |= {"run": found.run, "coordinator": found.coordinator}
        before["study"]["digest"] = found.study.digest
        before["transcript"] = msgspec.to_builtins(found.transcript)
        kept = json.dumps({"result": before, "sheets": sheets}, indent=1, ensure_ascii=False)
        (GOLDEN / f"{name}.json").write_text(kept + "\n")
        golden["sheets"] = sheets
    assert alike(told, {key: before[key] for key in told})
    # What the head says has not moved either, and nothing that was published is gone.
    assert set(before) == (HEAD if newer else format1.HEAD) | set(told)
    assert (found.run, found.coordinator) == (before["run"], before["coordinator"])
    assert found.study.digest == before["study"]["digest"]
    assert found.transcript.messages == before["transcript"]["messages"]
    assert found.transcript.digest == before["transcript"]["digest"]
    assert sheets == golden["sheets"]
    page = re.sub(r'<h2 id="s\d+">', "<h2>", report(folder))
    headings = re.findall(r"<h[123]>.*?</h[123]>", page)
    words = "\n".join([*headings, "", shown(result)])
    if os.environ.get("MPC_RR_GOLDEN") in ("write", "values"):
        (GOLDEN / f"{name}.txt").write_text(words)
    assert words == (GOLDEN / f"{name}.txt").read_text()
