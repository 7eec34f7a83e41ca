"""One HTML file that stands alone and hides nothing it should show."""

import csv
import json
import math
import re
from collections import Counter
from html.parser import HTMLParser

import msgspec
import pytest
from helpers import make_scenario, random_records

from mpc_rr.errors import InputError
from mpc_rr.protocols.block_aggregation import BlockAggregation
from mpc_rr.protocols.exact_pairs import ExactPairs
from mpc_rr.protocols.rr_clusters import RRClusters
from mpc_rr.protocols.rr_each_attribute import RREachAttribute
from mpc_rr.protocols.rr_independent import RRIndependent
from mpc_rr.protocols.rr_views import RRViews
from mpc_rr.publication.parts import Axis, Column, Figure, Listing, Publication, Table
from mpc_rr.results.folder import read_folder, write_results
from mpc_rr.running import run_study
from mpc_rr.schema import Schema
from mpc_rr.show.brief import brief
from mpc_rr.show.charts import TICKS, _round_step
from mpc_rr.show.fragment import STYLE, fragment
from mpc_rr.show.report import report
from mpc_rr.show.words import Words, _between
from mpc_rr.simulation.faults import Faults, PartyFault
from mpc_rr.study.file import load_scenario

SIZES = (2, 3, 2)
RECORDS = random_records(30, SIZES, seed=3)
TABLES = "Tables of several questions"
WORDS = Words(make_scenario(RECORDS, SIZES).study.schema)


def finished(folder, protocol, **options):
    scenario = make_scenario(RECORDS, SIZES, protocol=protocol, **options)
    study = msgspec.structs.replace(scenario.study, title="Rent & <b>$ickness$</b>")
    scenario = msgspec.structs.replace(scenario, study=study)
    write_results(run_study(scenario, transport="memory", seed=2), folder)
    return folder


def test_the_report_shows_which_numbers_were_counted_as_an_answer(tmp_path):
    scenario = make_scenario(RECORDS, SIZES, protocol=RRIndependent(keep=0.6))
    first, *others = scenario.study.schema.attributes
    poverty = msgspec.structs.replace(first, bins=(0.0, 73500.0, math.inf))
    schema = Schema((poverty, *others))
    study = msgspec.structs.replace(scenario.study, schema=schema)
    scenario = msgspec.structs.replace(scenario, study=study)
    write_results(run_study(scenario, transport="memory", seed=2), tmp_path / "run")
    low, high = first.categories
    counted = f"Counted as “{low}”: 0 and above, below 73500; “{high}”: 73500 and above"
    assert report(tmp_path / "run").count(counted) == 2  # among the questions, and by the chart


class Checker(HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags = []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)


@pytest.mark.parametrize(
    ("protocol", "shows"),
    [
        (ExactPairs(), ["none: exact counts", f">{TABLES}</h2>", "a0 by a1"]),
        (RRViews(epsilon=2.0), [">Views</h2>", "Estimated shares", "at most 88.1 % sure"]),
        (ExactPairs(noise_epsilon=3.0), ["Every count has noise in it", "± 4.0</span>"]),
        (
            RRClusters(keep=0.6, dependence=RREachAttribute(keep=0.6)),
            [">Clusters</h2>", "Estimated shares", "rr_each_attribute"],
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
    assert ">Aborted</h2>" in text
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
    assert _between(end, end) == "…".join([f"{end:,.1f}".replace("-", "−")] * 2)


def test_shares_of_blocks_are_drawn_with_their_limits(tmp_path):
    blocks = finished(tmp_path / "run", BlockAggregation(p=0.5, floor=0.5, block=10))
    text = report(blocks)
    start = text.index(">Estimated shares, with 95 % intervals</h2>")
    shares = text[start : text.index("<h2 ", start + 1)]
    assert shares.count("<svg") == len(SIZES)
    assert "±" not in shares


@pytest.mark.parametrize("drawn", [True, False])
def test_what_follows_plus_or_minus_is_said(tmp_path, drawn):
    """Also of shares that are not drawn; then no intervals are promised."""
    folder = read_folder(finished(tmp_path / "run", RRIndependent(keep=0.6)))
    found = folder.file.publication
    found = msgspec.structs.replace(found, figures=found.figures if drawn else (), listings=())
    text = fragment(found, Words(folder.definition.schema), {})
    start = text.index("<h2>Estimated shares")
    shares = text[start : text.find("<h2>", start + 1)]
    assert ("with 95 % intervals</h2>" in shares) == drawn
    assert ("± standard error." in shares) == ("± " in shares) == (not drawn)


def test_what_was_found_comes_first_and_is_said_in_sentences(tmp_path):
    scenario = load_scenario("quickstart")
    write_results(run_study(scenario, transport="memory", seed=2), tmp_path / "run")
    text = report(tmp_path / "run")
    heads = re.findall(r'<h2 id="s\d+">([^<]*)</h2>', text)
    first = ["What was found", "Association between attributes", TABLES]
    assert heads[:3] == first
    assert heads.index("Who took part") > heads.index(TABLES)
    assert [*re.findall(r'<a href="#s\d+">([^<]*)</a>', text)] == heads
    assert "“car” and “way_to_work” depend on each other (V = 0.81, at least 0.56)." in text
    assert "50 of 50 respondents (100%)" in text
    assert "docs/" not in text
    assert "(documentation, “threat model”)" in text


def dependences(*rows):
    names = ("attribute_1", "attribute_2", "measure", "value", "verdict")
    columns = tuple(Column(name=name, label="") for name in names)
    return Publication(listings=(Listing(name="dependence", title="", columns=columns, rows=rows),))


def test_only_what_can_be_told_is_said_in_sentences():
    told = [("a", "b", "r", -0.5, "at least 0.20"), ("a", "c", "V", None, "cannot be told")]
    (said,) = brief(dependences(*told), WORDS)
    assert said.startswith(
        "“a” and “b” depend on each other (r = −0.50, at least 0.20): the higher"
    )
    assert said.endswith("the one, the lower the other.")
    (nothing,) = brief(dependences(told[1]), WORDS)
    assert nothing.startswith("Of no two questions can it be told")
    assert brief(Publication(), WORDS) == []


@pytest.mark.parametrize(("p_value", "told"), [(0.018, True), (0.021, False), (None, False)])
def test_what_a_test_alone_tells_is_not_denied(p_value, told):
    """Answers by blocks may tell that two depend on each other, and not how strongly."""
    (listed,) = dependences(("a", "b", "V", None, "cannot be told")).listings
    columns = (*listed.columns, Column(name="p_value", label="p", kind="p-value"))
    rows = ((*listed.rows[0], p_value),)
    with_p = Listing(name="dependence", title="", columns=columns, rows=rows)
    (said,) = brief(Publication(listings=(with_p,)), WORDS)
    assert ("(p = 0.018); how strongly cannot be told." in said) is told
    assert said.startswith("Of no two questions") is not told


@pytest.mark.parametrize(("second_high", "said"), [(0.4, 1), (0.55, 0)])
def test_an_answer_is_called_the_commonest_only_where_no_other_may_be(second_high, said):
    axis = Axis(attribute="car", categories=("no", "yes"))
    table = Table(
        name="car", axes=(axis,), kind="share",
        values=(0.65, 0.35), low=(0.5, 0.2), high=(0.8, second_high),
    )  # fmt: skip
    found = brief(Publication(tables=(table,)), WORDS)
    assert len(found) == said


@pytest.mark.parametrize(
    ("largest", "kind", "end"),
    [(0.77, "share", 0.8), (0.31, "share", 0.4), (0.012, "share", 0.02), (7, "count", 8),
     (1.0, "share", 1.0), (40, "count", 40), (41, "count", 80)],
)  # fmt: skip
def test_scales_end_at_round_numbers_above_everything(largest, kind, end):
    assert TICKS * _round_step(largest / TICKS, kind) == pytest.approx(end)


def test_tables_that_are_known_have_margins_and_others_have_none(tmp_path):
    text = report(finished(tmp_path / "exact", ExactPairs()))
    assert text.count('<th scope="row">all</th>') == 3
    assert '<th scope="row">all</th>' not in report(finished(tmp_path / "rr", RRViews(epsilon=2)))


def test_exact_tables_show_the_share_of_each_count(tmp_path):
    text = report(finished(tmp_path / "exact", ExactPairs()))
    start = text.index(f">{TABLES}</h2>")
    table = text[start : text.index("</table>", start)]
    counts = [(int(n), float(part)) for n, part in re.findall(r"(\d+) <span[^>]*>(\d+)%", table)]
    assert len(counts) == (2 + 1) * (3 + 1)
    assert counts[-1] == (30, 100)
    assert all(part == pytest.approx(100 * n / 30, abs=0.5) for n, part in counts)
    hidden = ExactPairs(suppress_below=8)
    assert "share of all in the table" not in report(finished(tmp_path / "hidden", hidden))


def test_what_cannot_be_told_is_grey_in_the_picture_as_its_legend_says(tmp_path):
    """Once a pair of which the terminal said so had a colour all the same."""
    scenario = load_scenario("quickstart")
    write_results(run_study(scenario, transport="memory", seed=2), tmp_path / "run")
    published = json.loads((tmp_path / "run" / "result.json").read_text())["publication"]
    (listed,) = (found for found in published["listings"] if found["name"] == "dependence")
    told = [row[-2] != "cannot be told" for row in listed["rows"]]
    text = report(tmp_path / "run")
    assert 0 < sum(told) < len(told)
    assert text.count('<rect class="cell"') == 2 * sum(told)
    assert text.count('<rect class="vague"') == 2 * (len(told) - sum(told))
    assert text.count("--degree:") == 2 * sum(told) + STYLE.count("--degree:")
    assert "a number there holds among these respondents only" in text
    pair = ("attribute_1", "attribute_2", "measure", "value", "verdict")
    kinds = {"value": ("estimate", "degree")}
    columns = tuple(
        Column(name=name, label=kinds.get(name, ("",))[0], kind=kinds.get(name, ("", "text"))[1])
        for name in pair
    )
    rows = (("a0", "a1", "V", 0.2, "cannot be told"),)
    listed = Listing(name="dependence", title="", columns=columns, rows=rows)
    figure = Figure(kind="heat_map", of="dependence", title="grey")
    noisy = fragment(Publication(listings=(listed,), figures=(figure,)), WORDS)
    assert "grey; a number there is an estimate that may be chance" in noisy


def test_no_two_sections_have_one_name(tmp_path):
    for name in ("block_survey", "masked_salaries"):
        write_results(run_study(load_scenario(name), transport="memory", seed=2), tmp_path / name)
        heads = re.findall(r"<h2[^>]*>([^<]*)</h2>", report(tmp_path / name))
        assert len(set(heads)) == len(heads) > 6


def test_a_report_does_not_speak_to_its_reader_as_to_a_respondent(tmp_path):
    """What respondents were told is quoted."""
    scenario = load_scenario("masked_salaries")
    write_results(run_study(scenario, transport="memory", seed=2), tmp_path / "run")
    text = report(tmp_path / "run")
    assert "“The study is open" in text
    assert not re.search(r"\b[Yy]ours?\b", re.sub("“[^”]*”", "", text))
    assert "under a mask of the respondent&#x27;s choice (noise:5 recommended)" in text


def test_a_release_shows_its_distributions_unfolded(tmp_path):
    scenario = load_scenario("anonymous_survey")
    write_results(run_study(scenario, transport="memory", seed=2), tmp_path / "run")
    text = report(tmp_path / "run")
    with (tmp_path / "run" / "release.csv").open() as file:
        rows = list(csv.DictReader(file))
    ill = Counter(row["ill"] for row in rows)
    incomes = [int(row["income"]) for row in rows]
    records = text[text.index(">Records</h2>") : text.index("The first rows")]
    said = ", ".join(f"{v}: {n} ({n / len(rows):.0%})" for v, n in ill.most_common())
    assert said in records
    assert f"{min(incomes):,} to {max(incomes):,}; half of them from" in records
    assert "group" not in re.findall(r"<td>([^<]*)</td>", records)


def test_a_release_is_shown_and_whose_names_stand_in_a_file_is_not(tmp_path):
    scenario = load_scenario("hidden_in_groups")
    write_results(run_study(scenario, transport="memory", seed=2), tmp_path / "run")
    text = report(tmp_path / "run")
    assert "release.csv" in text
    assert "(8 rows)" in text
    assert all(f"party-{k}" not in text for k in range(1, 9))


def test_a_file_that_is_gone_leaves_a_report(tmp_path):
    scenario = load_scenario("hidden_in_groups")
    write_results(run_study(scenario, transport="memory", seed=2), tmp_path / "run")
    (tmp_path / "run" / "release.csv").unlink()
    assert ">Records<" not in report(tmp_path / "run")
