"""One HTML file that stands alone and hides nothing it should show."""

import json
import re
from html.parser import HTMLParser

import msgspec
import pytest
from helpers import make_scenario, random_records

from mpc_rr.errors import InputError
from mpc_rr.protocols.exact_pairs import ExactPairs
from mpc_rr.protocols.rr_clusters import RRClusters
from mpc_rr.protocols.rr_each_attribute import RREachAttribute
from mpc_rr.protocols.rr_views import RRViews
from mpc_rr.results.folder import write_results
from mpc_rr.running import run_study
from mpc_rr.show.report import report
from mpc_rr.show.words import _between
from mpc_rr.simulation.faults import Faults, PartyFault

SIZES = (2, 3, 2)
RECORDS = random_records(30, SIZES, seed=3)


def finished(folder, protocol, **options):
    scenario = make_scenario(RECORDS, SIZES, protocol=protocol, **options)
    study = msgspec.structs.replace(scenario.study, title="Rent & <b>$ickness$</b>")
    scenario = msgspec.structs.replace(scenario, study=study)
    write_results(run_study(scenario, transport="memory", seed=2), folder)
    return folder


class Checker(HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags = []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)


@pytest.mark.parametrize(
    ("protocol", "shows"),
    [
        (ExactPairs(), ["none: exact counts", "<h2>Tables</h2>", "a0 by a1"]),
        (RRViews(epsilon=2.0), ["<h2>Views</h2>", "Estimated shares", "at most 88.1 % sure"]),
        (ExactPairs(noise_epsilon=3.0), ["Every count has noise in it", "± 4.0</span>"]),
        (
            RRClusters(keep=0.6, dependence=RREachAttribute(keep=0.6)),
            ["<h2>Clusters</h2>", "Estimated shares", "rr_each_attribute"],
        ),
    ],
    ids=["exact", "views", "noise", "clusters"],
)
def test_a_report_shows_what_was_found_and_stands_alone(tmp_path, protocol, shows):
    text = report(finished(tmp_path / "run", protocol))
    for part in (*shows, "Rent &amp; &lt;b&gt;$ickness$", "What was asked", "messages"):
        assert part in text
    checker = Checker()
    checker.feed(text)
    assert "svg" in checker.tags
    assert not {"script", "link", "img", "iframe"} & set(checker.tags)
    outside = re.findall(r"(?:src|href)=\"(?!#|data:)[^\"]+", text)
    assert not outside
    assert report(tmp_path / "run") == text  # drawn the same every time


def test_in_a_simulation_the_truth_stands_beside_it(tmp_path):
    folder = finished(tmp_path / "run", RRViews(epsilon=2.0))
    truth = tmp_path / "people.csv"
    rows = "".join(",".join(f"v{code}" for code in record) + "\n" for record in RECORDS)
    truth.write_text("a0,a1,a2\n" + rows)
    assert "Crosses are the true shares" in report(folder, truth)
    assert "Crosses" not in report(folder)


def test_failed_and_incomplete_studies_have_a_report_too(tmp_path):
    faults = Faults(silent=(PartyFault("party-03", "view_answer"),))
    text = report(finished(tmp_path / "a", RRViews(epsilon=2.0), faults=faults))
    assert "<h2>Aborted</h2>" in text
    text = report(finished(tmp_path / "b", RRViews(epsilon=2.0), faults=faults, minimum=20))
    assert "did not answer" in text


def test_what_is_no_result_folder_is_told(tmp_path):
    with pytest.raises(InputError, match="there is no folder"):
        report(tmp_path / "nowhere")
    with pytest.raises(InputError, match="is not a result folder: result"):
        report(tmp_path)
    (tmp_path / "result.json").write_text("{}")
    with pytest.raises(InputError, match="is not the result of a study, or damaged"):
        report(tmp_path)
    document = {"format": "mpc-rr result", "version": 9, "status": "done"}
    (tmp_path / "result.json").write_text(json.dumps(document))
    with pytest.raises(InputError, match="is of format version 9; this program knows 1 and 2"):
        report(tmp_path)
    (tmp_path / "result.json").write_text(json.dumps(document | {"version": 2}))
    with pytest.raises(InputError, match="is damaged"):
        report(tmp_path)
    (tmp_path / "result.json").write_text(json.dumps(document | {"version": 1}))
    (tmp_path / "study.json").write_text("{")
    with pytest.raises(InputError, match="is damaged"):
        report(tmp_path)


def test_noisy_counts_are_not_said_to_give_anybody_away(tmp_path):
    """A count of 1 with noise in it is no person."""
    folder = finished(tmp_path / "run", ExactPairs(noise_epsilon=8.0))
    tables = json.loads((folder / "result.json").read_text())["publication"]["tables"]
    assert any(1 in table["values"] for table in tables)
    assert "single person" not in report(folder)
    assert "single person" in report(finished(tmp_path / "exact", ExactPairs()))


@pytest.mark.parametrize("end", [1e308, -1e308, 2.0**53, -(2.0**53), 2**63])
def test_limits_of_any_size_can_be_shown(end):
    """A number in somebody's result.json brought the report to a traceback."""
    assert _between(end, end) == "…".join([f"{end:.2f}".replace("-", "−")] * 2)
