"""What is published: typed, made once, whole or with a note; as JSON it fits its schema."""

import io
import json
import os
import re
import shutil
from collections import Counter
from pathlib import Path

import anonymizing
import jsonschema
import msgspec
import numpy as np
import pytest
from helpers import make_scenario, make_study, random_records, setting, unpack
from randomized import ALL
from rich.console import Console

from mpc_rr import query, simulate
from mpc_rr.cli import studies
from mpc_rr.errors import InputError, ResultsError
from mpc_rr.estimation.agreement import disagreement
from mpc_rr.network.envelope import Message
from mpc_rr.network.session.replay import DoesNotHold
from mpc_rr.privacy.disclosures import ExactSum, Told, Unstated
from mpc_rr.protocols import registry
from mpc_rr.protocols.block_aggregation import BlockAggregation
from mpc_rr.protocols.exact_pairs import ExactPairs
from mpc_rr.protocols.rr_independent import RRIndependent
from mpc_rr.protocols.rr_joint import RRJoint
from mpc_rr.publication.ending import Draft, Ending
from mpc_rr.publication.parts import (
    Axis,
    Figure,
    Finding,
    Listing,
    Participation,
    Publication,
    Sheet,
    Table,
)
from mpc_rr.publication.whole import published
from mpc_rr.results import earlier, verification
from mpc_rr.results.alike import alike, texts_alike
from mpc_rr.results.asking import read_askable
from mpc_rr.results.claims import Contradicted
from mpc_rr.results.earlier import DEPENDENCE_SHEET
from mpc_rr.results.folder import CutShort, party_result, read_folder, write_results
from mpc_rr.results.format import json_schema, to_json
from mpc_rr.results.run import StudyResult
from mpc_rr.results.verification import publish_anew, verify
from mpc_rr.running import run_study
from mpc_rr.schema import Attribute, Schema
from mpc_rr.show.fragment import fragment
from mpc_rr.show.report import report
from mpc_rr.show.study import show_result
from mpc_rr.show.terminal import show_publication
from mpc_rr.show.words import Words
from mpc_rr.simulation.faults import Faults, PartyFault
from mpc_rr.study.definition import Deadlines, Parties, Study
from mpc_rr.study.file import load_scenario

ROOT = Path(__file__).parents[2]
SIZES = (2, 3, 2)
RECORDS = random_records(24, SIZES, seed=3)
SCENARIOS = {
    **{name: make_scenario(RECORDS, SIZES, protocol=protocol) for name, protocol in ALL.items()},
    "exact_pairs": make_scenario(RECORDS, SIZES),
    "noise": make_scenario(RECORDS, SIZES, protocol=ExactPairs(noise_epsilon=3.0)),
    "suppressed": make_scenario(RECORDS, SIZES, protocol=ExactPairs(suppress_below=3)),
    "masked_sum": make_scenario(
        RECORDS, SIZES, protocol=ExactPairs(sum="masked_sum"), minimum=12,
        faults=Faults(silent=(PartyFault("party-03", "masked_vector"),)),
    ),
    "blocks": make_scenario(
        RECORDS, SIZES, protocol=BlockAggregation(p=0.5, floor=0.4, block=8, enough=0.9), minimum=8
    ),
    "groups": anonymizing.make_scenario(anonymizing.IN_GROUPS),
    "masks": anonymizing.make_scenario(anonymizing.MASKED),
}  # fmt: skip


@pytest.fixture(scope="module")
def results():
    """Every kind of study, run once."""
    return {name: run_study(s, transport="memory", seed=2) for name, s in SCENARIOS.items()}


# ── The schema ─────────────────────────────────────────────────────────────────────────────────


def test_the_committed_schema_is_that_of_the_code():
    """After a change that is meant, MPC_RR_GOLDEN=write writes it anew."""
    place = ROOT / "docs" / "result.schema.json"
    if os.environ.get("MPC_RR_GOLDEN") == "write":
        place.write_text(json.dumps(json_schema(), indent=1, ensure_ascii=False) + "\n")
    assert json.loads(place.read_text()) == json.loads(json.dumps(json_schema()))


@pytest.mark.parametrize("name", SCENARIOS)
def test_results_fit_the_schema_and_are_read_back_as_they_were(results, name, tmp_path):
    validator = jsonschema.Draft202012Validator(json_schema())
    file = write_results(results[name], tmp_path / "run")
    text = (tmp_path / "run" / "result.json").read_text()
    validator.validate(json.loads(text))
    assert to_json(read_folder(tmp_path / "run").file) == text == to_json(file)
    end = next(end for end in results[name].parties.values() if isinstance(end, Ending))
    validator.validate(json.loads(to_json(party_result(results[name].study, end))))


def test_the_schema_refuses_what_is_no_result(results, tmp_path):
    write_results(results["exact_pairs"], tmp_path / "run")
    document = json.loads((tmp_path / "run" / "result.json").read_text())
    validator = jsonschema.Draft202012Validator(json_schema())
    document["publication"]["tables"][0]["kind"] = "guess"
    assert not validator.is_valid(document)


# ── One shape ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", SCENARIOS)
def test_tables_are_whole_and_figures_are_of_something(results, name):
    found = results[name].publication
    names = [table.name for table in found.tables]
    assert len(set(names)) == len(names)
    for table in found.tables:
        cells = int(np.prod(table.shape))
        for layer in (table.values, table.standard_errors, table.low, table.high,
                      table.unbiased, table.reported):  # fmt: skip
            assert layer is None or len(layer) == cells, table.name
    for listed in found.listings:
        assert all(len(row) == len(listed.columns) for row in listed.rows)
    drawable = {*names, *(listed.name for listed in found.listings)}
    assert {figure.of for figure in found.figures} <= drawable
    assert found.findings[0].numbers["counted"] == found.participation.counted


@pytest.mark.parametrize("name", SCENARIOS)
def test_who_took_part_adds_up(results, name):
    people = results[name].publication.participation
    study = results[name].study
    assert people.expected == study.parties.count
    assert people.counted == len(people.counted_parties)
    absent = {absence.party for absence in people.absent}
    assert not absent & set(people.counted_parties)
    assert people.counted + len(absent) == people.expected


def test_cells_are_in_row_major_order():
    table = Table(
        name="t", kind="count", values=tuple(range(6)),
        axes=SCENARIO_AXES,
    )  # fmt: skip
    assert table.shape == (2, 3)
    assert table.rows() == [[0, 1, 2], [3, 4, 5]]


SCENARIO_AXES = (
    Axis(attribute="a", categories=("x", "y")),
    Axis(attribute="b", categories=("p", "q", "r")),
)


# ── Made once ──────────────────────────────────────────────────────────────────────────────────

COSTLY = {
    "mpc_rr.publication.blocks.strength": "blocks",
    "mpc_rr.publication.blocks.likely": "blocks",
    "mpc_rr.estimation.estimates.fit_views": "rr_views",
    "mpc_rr.publication.reports.adjusted_weights": "rr_independent",
    "mpc_rr.publication.groups.linkage": "groups",
    "mpc_rr.publication.groups.information_loss": "groups",
    "mpc_rr.publication.masks.all_together": "masks",
    "mpc_rr.publication.masks.expected": "masks",
    "mpc_rr.publication.counts.strength": "exact_pairs",
    "mpc_rr.publication.pairs.unbiased": "rr_pairs",
}


@pytest.mark.parametrize(("function", "name"), COSTLY.items(), ids=lambda x: x.split(".")[-1])
def test_each_costly_estimate_is_computed_once_per_run(
    function, name, tmp_path, monkeypatch, capsys
):
    """From the last message to the shown and written result, by the command itself."""
    calls = Counter()
    module, _, attribute = function.rpartition(".")
    original = getattr(__import__(module, fromlist=[attribute]), attribute)

    def counting(*arguments, **options):
        calls[attribute] += 1
        return original(*arguments, **options)

    result = run_study(SCENARIOS[name], transport="memory", seed=2)
    monkeypatch.setattr(function, counting)
    studies._finish(result, tmp_path / "run", 0.0, as_json=False)
    studies._finish(result, tmp_path / "again", 0.0, as_json=True)
    expected = {"likely": 3, "strength": 3, "unbiased": 3,
                "all_together": 2, "expected": 2}.get(attribute, 1)  # fmt: skip
    assert calls.total() == expected  # one for each table or attribute, none twice


# ── Never lost ─────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("function", [f for f in COSTLY if f.split(".")[-1] != "unbiased"])
def test_a_part_that_cannot_be_computed_becomes_a_note(function, tmp_path, monkeypatch):
    def broken(*arguments, **options):
        raise MemoryError

    result = run_study(SCENARIOS[COSTLY[function]], transport="memory", seed=2)
    monkeypatch.setattr(function, broken)
    write_results(result, tmp_path / "run")
    found = read_folder(tmp_path / "run").file.publication
    notes = [note.text for note in found.notes if note.severity == "warning"]
    assert any("could not be computed (MemoryError)" in note for note in notes)
    assert found.participation.counted == result.publication.participation.counted
    assert "could not be computed" in report(tmp_path / "run")
    monkeypatch.undo()
    publish_anew(tmp_path / "run", tmp_path / "mended")
    verify(tmp_path / "mended")


ABSENT = {
    "nobody": SCENARIOS["rr_views"],
    "silent": make_scenario(
        RECORDS, SIZES, protocol=ALL["rr_views"], minimum=12,
        faults=Faults(silent=(PartyFault("party-03", "view_answer"),)),
    ),
    "dropped out": SCENARIOS["masked_sum"],
    "dropped out of a confided sum": make_scenario(
        RECORDS, SIZES, protocol=ExactPairs(sum="masked_sum", suppress_below=2), minimum=12,
        faults=Faults(silent=(PartyFault("party-03", "confided_vector"),)),
    ),
    "excluded": make_scenario(
        RECORDS, SIZES, minimum=12, faults=Faults(silent=(PartyFault("party-03", "share"),))
    ),
}  # fmt: skip


@pytest.mark.parametrize("who", ABSENT)
def test_what_was_received_is_on_disk_before_anything_is_computed(who, tmp_path, monkeypatch):
    """Whatever ends the process while it computes, the folder that stays can be finished."""

    def stopped(self):
        raise KeyboardInterrupt

    result = run_study(ABSENT[who], transport="memory", seed=2)
    with monkeypatch.context() as patched:
        patched.setattr(StudyResult, "publication", property(stopped))
        with pytest.raises(
            CutShort, match=r"interrupted; what was received is in .*mpc-rr publish"
        ):
            write_results(result, tmp_path / "run")
    left = tmp_path / "run.unfinished"
    assert not (tmp_path / "run").exists()
    assert {path.name for path in left.iterdir()} == {
        "study.json", "transcript.jsonl", "cost.json", "cost.csv", "closing.json", "result.json",
    }  # fmt: skip
    assert "computing was cut short" in report(left)
    with pytest.raises(DoesNotHold, match="incomplete"):
        verify(left)
    publish_anew(left, tmp_path / "run")
    verify(tmp_path / "run")
    write_results(result, tmp_path / "direct")
    ours = read_folder(tmp_path / "run").file.publication
    assert ours.tables == read_folder(tmp_path / "direct").file.publication.tables
    absent = {(a.party, a.how, a.step) for a in ours.participation.absent}
    assert absent == {(a.party, a.how, a.step) for a in result.publication.participation.absent}


def test_a_disk_that_fills_up_keeps_what_was_received(tmp_path, monkeypatch):
    result = run_study(SCENARIOS["rr_views"], transport="memory", seed=2)
    before = Path.write_bytes

    def full(self, content):
        if self.name == "reports.csv":
            raise OSError(28, "No space left on device")
        return before(self, content)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "write_bytes", full)
        with pytest.raises(ResultsError, match="No space left on device; what was received is in"):
            write_results(result, tmp_path / "run")
    publish_anew(tmp_path / "run.unfinished", tmp_path / "run")
    verify(tmp_path / "run")


class _Given(Ending, frozen=True):
    """Publishes whatever a test gives it."""

    given: object

    def publish(self, study):
        return self.given


def table(**changed):
    parts = {"name": "t", "axes": SCENARIO_AXES, "kind": "share", "values": (0.5,) * 6}
    return Publication(tables=(Table(**(parts | changed)),))


class _Promising:
    """A protocol that discloses this, and has nothing else to say."""

    def __init__(self, *events):
        self.stated = lambda _: events
        self.cautions = self.notes = lambda _: ()


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (None, "returned NoneType, not a Publication"),
        ("all is well", "returned str"),
        (Publication(findings=(Finding(text="\ud800"),)), "surrogates|utf-8"),
        (
            Publication(findings=(Finding(text="x", numbers={"x": object()}),)),
            "object in an ending",
        ),
        (table(values=(0.5,) * 5), "has not one value for each of its cells"),
        (table(low=(0.5,)), "has not one value"),
        (table(kind="money"), "Invalid enum value 'money'"),
        (
            Publication(sheets=(Sheet.of("result.json", "x", "x"),)),
            "cannot be called 'result.json'",
        ),
        (Publication(sheets=(Sheet.of("End.JSON", "x", "x"),)), "cannot be called 'End.JSON'"),
        (
            Publication(listings=(Listing(name="../x", title="", columns=(), rows=()),)),
            "a listing cannot be called '../x'",
        ),
        (Publication(sheets=(Sheet.of("../x.csv", "x", "x"),)), "cannot be called '../x.csv'"),
        (Publication(sheets=(Sheet.of("/x.csv", "x", "x"),)), "cannot be called '/x.csv'"),
        (Publication(sheets=(Sheet.of("x", "x", "x"),) * 2), "two parts are called 'x'"),
        (Publication(sheets=(Sheet.of("a", "", ""), Sheet.of("a/b", "", ""))), "called 'a/b'"),
        (Publication(sheets=(Sheet.of("x" * 300, "", ""),)), "a sheet cannot be called"),
        (Publication(findings=(Finding(text="x", numbers={"x": 10**400}),)), "Expected `int` <="),
    ],
)
def test_what_cannot_be_written_becomes_a_note(given, says):
    study = setting(make_study(3).schema, 3)
    found = published(_Given(given), study, _Promising(Told(what="t", attributes=())))
    (note,) = found.notes
    assert note.incomplete
    assert re.search(says, note.text), note.text
    assert found.participation.expected == 3
    msgspec.json.encode(found)


@pytest.mark.parametrize(
    "said", [None, Participation(expected=np.int64(3), absent=None), SystemExit(3), "nobody"]
)
def test_who_took_part_is_checked_as_well(said):
    class Odd(_Given, frozen=True):
        def participation(self, study):
            if isinstance(said, BaseException):
                raise said
            return said

    study = setting(make_study(3).schema, 3)
    events = [ExactSum(what="x", attributes=(), crowd=np.int64(3))]
    found = published(Odd(Publication()), study, _Promising(*events))
    assert found.participation.expected == 3
    assert found.privacy.events[0].crowd == 3
    assert [note.incomplete for note in found.notes] == [True]
    msgspec.json.encode(found)


def test_numbers_of_numpy_and_those_that_json_does_not_have_are_no_obstacle():
    given = Publication(
        findings=(Finding(text="x", numbers={"mean": np.float64(1.5), "n": np.int64(3)}),),
        tables=table(unbiased=(np.nan, np.inf, 0.1, 0.2, 0.3, 0.4)).tables,
    )
    study = setting(make_study(3).schema, 3)
    found = published(_Given(given), study, _Promising(Told(what="t", attributes=())))
    assert not found.notes
    assert found.findings[0].numbers == {"mean": 1.5, "n": 3}
    assert found.tables[0].unbiased == (None, None, 0.1, 0.2, 0.3, 0.4)
    assert msgspec.json.decode(msgspec.json.encode(found), type=Publication) == found


def test_counts_of_one_attribute_are_shown_as_counts():
    axis = Axis(attribute="mood", categories=("low", "high"))
    given = Publication(
        tables=(
            Table(name="heads", axes=(axis,), kind="count", values=(3, None), main=True),
            Table(name="bare", axes=(Axis(attribute="sport", categories=("no", "yes")),),
                  kind="share", values=(0.25, 0.75)),
        ),
        figures=(Figure(kind="intervals", of="heads"),),
    )  # fmt: skip
    schema = make_study(3).schema
    shown = fragment(given, Words(schema))
    assert "300" not in shown
    assert "<h2>Counts and Shares</h2>" in shown
    assert "75.0%" in shown  # not worth a picture, but there
    text = io.StringIO()
    show_publication(Console(file=text, width=100), given, schema)
    assert "Counts" in text.getvalue()
    assert "hidden" in text.getvalue()
    assert "%" not in text.getvalue()


def test_an_ending_without_publish_is_no_class():
    with pytest.raises(TypeError, match="Silent must say what it publishes"):

        class Silent(Ending, frozen=True):
            n: int


def test_whatever_publish_does_something_is_published():
    class Wild(Ending, frozen=True):
        fault: object

        def publish(self, study):
            raise self.fault

        def participation(self, study):
            raise self.fault

    study = setting(make_study(3).schema, 3)
    for fault in (RecursionError("deep"), KeyError("x"), ZeroDivisionError()):
        found = published(Wild(fault), study, _Promising(Told(what="t", attributes=())))
        assert [type(fault).__name__ in note.text for note in found.notes] == [True, True]
        assert found.participation.expected == 3


def test_a_draft_keeps_what_was_made_before_a_part_failed():
    draft = Draft()
    with draft.part("the second half"):
        draft.find("the first half is there.")
        raise ValueError("no more")
    found = draft.publication()
    assert found.findings == (Finding(text="the first half is there."),)
    assert "the second half could not be computed (ValueError: no more)" in found.notes[0].text


def test_what_the_study_itself_makes_impossible_is_not_said_to_be_computed_again():
    draft = Draft()
    with draft.part("the table"):
        raise InputError("it is too large; make it coarser.")
    (note,) = draft.publication().notes
    assert note.text == "the table could not be computed: it is too large; make it coarser."
    assert not note.incomplete


@pytest.mark.parametrize(
    "protocol", [RRIndependent(keep=0.9), RRJoint(epsilon=14.0)], ids=lambda own: own.name
)
def test_of_too_many_categories_single_answers_are_published(protocol, tmp_path):
    """Once nothing was, after all had disclosed everything."""
    names = tuple(f"c{k}" for k in range(1501))
    schema = Schema(tuple(Attribute(name, "nominal", names) for name in "ab"))
    study = Study(
        name="wide", title="Wide", description="", schema=schema, protocol=protocol,
        parties=Parties(count=20), deadlines=Deadlines(),
    )  # fmt: skip
    study.protocol.check(study.setting)
    assert any("3,002 categories" in f.text for f in study.protocol.prospects(study.setting))
    run = simulate(study, {"a": ["c0"] * 20, "b": ["c7"] * 20}, seed=1)
    folder = run.save(tmp_path / "run")
    found = read_folder(folder).file.publication
    assert [table.name for table in found.tables] == ["a", "b"]
    for table, most in zip(found.tables, (0, 7), strict=True):
        assert int(np.argmax(table.values)) == most
        assert table.low[most] <= table.values[most] <= table.high[most]
    (told,) = [note for note in found.notes if "3,002 categories" in note.text]
    assert told.severity == "warning"
    assert not told.incomplete
    assert not any("could not be computed" in note.text for note in found.notes)
    verify(folder)
    assert query(folder, "a = c0").share == pytest.approx(found.tables[0].values[0])
    with pytest.raises(InputError, match="3,002 categories together"):
        query(folder, "a = c0 and b = c7")


# ── Format 1 ───────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def old_folders(tmp_path_factory):
    """Folders as commit 723af55 wrote them, one for each kind of study."""
    return unpacked("format-1", tmp_path_factory)


def unpacked(name, tmp_path_factory):
    place = tmp_path_factory.mktemp(name)
    unpack(ROOT / "tests" / "golden" / f"{name}.tar.xz", place)
    return place


OLD = [
    "again", "block_aggregation", "each", "exact", "exact_pairs", "exact_pairs_noise",
    "exact_pairs_suppressed", "k_anonymity", "k_anonymity_ties", "k_anonymity_withdrawn",
    "lambda_randomization", "masked_sum", "masking", "pairs", "rr_each_attribute",
    "rr_independent", "rr_joint", "rr_pairs", "rr_views", "silent",
]  # fmt: skip


IN_A_POPULATION = {
    "lambda_randomization", "rr_clusters", "rr_independent", "rr_joint", "rr_views"
}  # fmt: skip


@pytest.mark.parametrize("name", OLD)
def test_a_folder_of_format_1_is_verified_reported_and_brought_to_format_2(
    old_folders, name, tmp_path
):
    folder = old_folders / name
    assert verify(folder)
    page = report(folder)
    assert "Who took part" in page
    # Its groups followed the names; its tables were not rounded: as they must not be any more.
    if name in ("k_anonymity_ties", "block_aggregation"):
        with pytest.raises(InputError, match="made by a rule that has changed since"):
            publish_anew(folder, tmp_path / "new")
        return
    publish_anew(folder, tmp_path / "new")
    assert read_folder(tmp_path / "new").version == 2
    assert verify(tmp_path / "new")
    in_a_population = read_folder(folder).file.protocol.name in IN_A_POPULATION
    for sheet in folder.rglob("*.csv"):
        if sheet.name == DEPENDENCE_SHEET:
            continue  # it had no limits
        if in_a_population and sheet.parent.name == "pairs":
            continue  # since rules 4 they are counted in a population
        again = tmp_path / "new" / sheet.relative_to(folder)
        assert texts_alike(again.read_bytes().decode(), sheet.read_bytes().decode())


@pytest.fixture(scope="module")
def earlier_folders(tmp_path_factory):
    """Folders of format 2 as commit 2c1ebbf wrote them, by the rules of then."""
    return unpacked("format-2", tmp_path_factory)


EARLIER = [
    "block_aggregation", "exact_pairs", "k_anonymity", "masked_sum", "masking", "noise",
    "rr_clusters", "rr_independent", "rr_pairs", "rr_views", "suppressed",
]  # fmt: skip


@pytest.fixture(scope="module")
def folders_of_rules_2(tmp_path_factory):
    """Masked sums as commit 33c045f wrote them: with thresholds as small as would do."""
    return unpacked("rules-2", tmp_path_factory)


@pytest.mark.parametrize("name", ["clusters", "noisy", "rare", "sparse", "vouched"])
def test_a_masked_sum_of_rules_2_is_verified_with_its_thresholds_and_not_brought_to_now(
    folders_of_rules_2, name, tmp_path
):
    """What is stated of masks now is not true of them: two or three parties could take them off."""
    folder = folders_of_rules_2 / name
    claims = {claim.claim: claim for claim in verify(folder)}
    assert claims[verification.REPLAY].verdict == "confirmed"
    assert claims[verification.WORDS].verdict == "not confirmable"
    assert "Who took part" in report(folder)
    if name == "vouched":  # against a liar the threshold was what it is
        publish_anew(folder, tmp_path / "new")
        assert verify(tmp_path / "new")
        return
    with pytest.raises(InputError, match="made by a rule that has changed since"):
        publish_anew(folder, tmp_path / "new")


@pytest.mark.parametrize("name", ["blocks", "pairs"])
def test_blocks_of_rules_3_are_verified_by_the_tests_of_then(name, tmp_path_factory):
    """Commit f3dbaff wrote them; of pairs with questions that some did not answer."""
    claims = {c.claim: c for c in verify(unpacked("rules-3", tmp_path_factory) / name)}
    assert claims[verification.PUBLISHED].verdict == "confirmed"
    assert claims[verification.WORDS].verdict == "not confirmable"


def test_blocks_of_rules_3_agreed_about_single_attributes_alone(tmp_path_factory):
    """And these had no table."""
    folder = unpacked("rules-3", tmp_path_factory) / "blocks"
    then = read_folder(folder).file.publication
    anew = publish_anew(folder, tmp_path_factory.mktemp("again") / "new")
    assert disagreement(shares_of(then)) > 0.01
    assert disagreement(shares_of(anew)) < 1e-12
    assert len(anew.tables) == len(then.tables) + 4


def shares_of(publication):
    names = ["a0", "a1", "a2", "a3"]
    return {
        tuple(names.index(axis.attribute) for axis in t.axes): np.reshape(t.values, t.shape)
        for t in publication.tables
    }


@pytest.mark.parametrize("name", ["groups", "masks"])
def test_releases_of_rules_4_are_verified_with_the_distances_and_losses_of_then(
    name, tmp_path_factory, tmp_path
):
    """Commit 6b56b45 wrote them: 24 people whose groups would be others now; eight, one silent."""
    folder = unpacked("rules-4", tmp_path_factory) / name
    claims = {c.claim: c for c in verify(folder)}
    assert claims[verification.REPLAY].verdict == "confirmed"
    assert claims[verification.PUBLISHED].verdict == "confirmed"
    if name == "groups":
        with pytest.raises(InputError, match="made by a rule that has changed since"):
            publish_anew(folder, tmp_path / "new")
        return
    assert read_folder(folder).file.publication.listing("masks").rows[0][2] is None
    anew = publish_anew(folder, tmp_path / "new")
    assert anew.listing("masks").rows[0][2] >= 1
    assert anew.listing("moved") is not None


@pytest.mark.parametrize("name", ["blocks", "groups", "independent", "masks", "pairs"])
def test_folders_of_rules_5_are_published_with_the_same_numbers(name, tmp_path_factory, tmp_path):
    """Commit 483120c wrote them; blocks are told more of since."""
    folder = unpacked("rules-5", tmp_path_factory) / name
    claims = {claim.claim: claim for claim in verify(folder)}
    assert claims[verification.PUBLISHED].verdict == "confirmed"
    assert claims[verification.WORDS].verdict == "not confirmable"
    then, now = read_folder(folder).file.publication, publish_anew(folder, tmp_path / "new")
    tables = [[table.values for table in told.tables] for told in (now, then)]
    assert alike(*tables)  # older scipys differ in the last digits
    known, added = [listed.name for listed in then.listings], {"blocks": {"convergence"}}
    assert {listed.name for listed in now.listings} - {*known} == added.get(name, set())
    rows = [as_then(now.listing(listed), then.listing(listed)) for listed in known]
    assert alike(rows, [listed.rows for listed in then.listings])
    if name == "blocks":
        columns = [{c.name for c in p.listing("trajectory").columns} for p in (now, then)]
        assert columns[0] - columns[1] == {"answer", "share"}
    assert verify(tmp_path / "new")


def changed_cell(folder, target, listing, row, column, value):
    """A copy of the folder in which one cell of a listing is another."""
    shutil.copytree(folder, target)
    document = json.loads((target / "result.json").read_text())
    (listed,) = (x for x in document["publication"]["listings"] if x["name"] == listing)
    names = [one["name"] for one in listed["columns"]]
    listed["rows"][row][names.index(column)] = value
    (target / "result.json").write_text(json.dumps(document))
    return target


def test_computed_correlations_of_rules_5_are_passed_over(tmp_path_factory, tmp_path):
    """20 people: commit 483120c told a correlation that cannot be told."""
    folder = unpacked("rules-5", tmp_path_factory) / "correlation"
    published = next(c for c in verify(folder) if c.claim == verification.PUBLISHED)
    assert published.verdict == "confirmed"
    assert earlier.NO_CORRELATIONS in published.why
    assert earlier.NO_LARGE not in published.why
    now = publish_anew(folder, tmp_path / "new").listing("results")
    then = read_folder(folder).file.publication.listing("results")
    assert now.rows[0] == then.rows[0]
    assert (then.rows[1][1], now.rows[1][1]) == (-0.174979, None)
    assert verify(tmp_path / "new")
    another = changed_cell(folder, tmp_path / "another", "results", 1, "value", 0.9)
    assert verification.PUBLISHED in {
        claim.claim for claim in verify(another) if claim.verdict == "confirmed"
    }


@pytest.mark.parametrize(
    ("row", "column", "value"),
    [(0, "value", 0.9), (1, "people", 21), (1, "computed", "correlation(b, a)")],
)
def test_what_else_was_computed_by_rules_5_is_compared(
    row, column, value, tmp_path_factory, tmp_path
):
    folder = unpacked("rules-5", tmp_path_factory) / "correlation"
    changed = changed_cell(folder, tmp_path / "changed", "results", row, column, value)
    with pytest.raises(Contradicted, match=r"what result\.json publishes follows"):
        verify(changed)


def test_dependences_of_large_tables_of_rules_5_are_passed_over(tmp_path_factory, tmp_path):
    """65 × 64 answers: commit 483120c told how strongly they depend on each other."""
    folder = unpacked("rules-5", tmp_path_factory) / "large"
    published = next(c for c in verify(folder) if c.claim == verification.PUBLISHED)
    assert published.verdict == "confirmed"
    assert earlier.NO_LARGE in published.why
    assert earlier.NO_CORRELATIONS not in published.why
    (then,) = read_folder(folder).file.publication.listing("dependence").rows
    (now,) = publish_anew(folder, tmp_path / "new").listing("dependence").rows
    assert (then[:4], now[3]) == (("a", "b", "r", 0.988425), None)
    assert verify(tmp_path / "new")


@pytest.mark.parametrize(("column", "value"), [("measure", "V"), ("attribute_2", "a")])
def test_a_large_pair_of_rules_5_must_be_listed(column, value, tmp_path_factory, tmp_path):
    folder = unpacked("rules-5", tmp_path_factory) / "large"
    changed = changed_cell(folder, tmp_path / "changed", "dependence", 0, column, value)
    with pytest.raises(Contradicted, match=r"what result\.json publishes follows"):
        verify(changed)


def test_a_sheet_of_large_pairs_says_what_result_json_says(tmp_path_factory, tmp_path):
    folder = unpacked("rules-5", tmp_path_factory) / "large"
    changed = changed_cell(folder, tmp_path / "changed", "dependence", 0, "value", 0.5)
    with pytest.raises(Contradicted, match=r"dependence\.csv is not what follows"):
        verify(changed)


def as_then(now, then):
    """The rows of a listing, without columns that came later."""
    known = [column.name for column in then.columns]
    kept = [k for k, column in enumerate(now.columns) if column.name in known]
    return tuple(tuple(row[k] for k in kept) for row in now.rows)


def test_views_of_rules_3_are_verified_as_they_were_and_not_brought_to_now(
    tmp_path_factory, tmp_path
):
    """As commit f2a6008 wrote them: each table by itself, and every pair drawn as often as any
    other, which is not true of those of now."""
    folder = unpacked("rules-3-views", tmp_path_factory) / "views"
    claims = {claim.claim: claim for claim in verify(folder)}
    assert claims[verification.REPLAY].verdict == "confirmed"
    then = verification.replay(read_folder(folder)).ending
    assert len(set(then.weights)) == 1
    assert then.estimates().earlier
    with pytest.raises(InputError, match="made by a rule that has changed since"):
        publish_anew(folder, tmp_path / "new")
    changed = shutil.copytree(folder, tmp_path / "changed")
    document = json.loads((changed / "result.json").read_text())
    document["publication"]["tables"][-1]["values"][0] += 0.01
    (changed / "result.json").write_text(json.dumps(document))
    with pytest.raises(Contradicted, match=r"what result\.json publishes follows"):
        verify(changed)


@pytest.mark.parametrize("name", EARLIER)
def test_a_folder_in_earlier_words_is_not_called_forged(earlier_folders, name, tmp_path):
    """Sentences, and what is reckoned for whom, have changed since; the numbers have not."""
    folder = earlier_folders / name
    claims = {claim.claim: claim for claim in verify(folder)}
    words = verification.WORDS
    assert claims[words].verdict == "not confirmable"
    if name != "block_aggregation":  # its tables were not rounded, as they must be now
        publish_anew(folder, tmp_path / "new")
        assert words not in {claim.claim for claim in verify(tmp_path / "new")}
    changed = shutil.copytree(folder, tmp_path / "changed")
    document = json.loads((changed / "result.json").read_text())
    table = document["publication"]["tables"] or document["publication"]["listings"]
    values = table[0].get("values") or table[0]["rows"][0]
    place = next(k for k, value in enumerate(values) if isinstance(value, int | float))
    values[place] += 1
    (changed / "result.json").write_text(json.dumps(document))
    with pytest.raises(Contradicted, match=r"what result\.json publishes follows"):
        verify(changed)


@pytest.mark.parametrize("name", ["rr_independent", "rr_pairs", "block_aggregation"])
def test_limits_of_earlier_rules_are_said_not_to_be_compared(earlier_folders, name, tmp_path):
    """All of them could be changed, and `verify` said that tables were confirmed."""
    folder = shutil.copytree(earlier_folders / name, tmp_path / "changed")
    document = json.loads((folder / "result.json").read_text())
    for table in document["publication"]["tables"]:
        table["standard_errors"] = [0.0005] * len(table["values"])
    (folder / "result.json").write_text(json.dumps(document))
    claims = {claim.claim: claim for claim in verify(folder)}
    assert claims[verification.UNCERTAINTY].verdict == "not confirmable"
    assert claims[verification.OLD_ENOUGH].verdict == "confirmed"
    assert "not limits and standard errors" in claims[verification.PUBLISHED].why


@pytest.mark.parametrize("name", ["rr_joint", "block_aggregation"])
def test_format_1_is_compared_but_for_the_errors_of_blocks(old_folders, name):
    claims = {claim.claim: claim for claim in verify(old_folders / name)}
    blocks = name == "block_aggregation"
    assert (verification.UNCERTAINTY in claims) == blocks
    assert ("which were not compared" in claims[verification.PUBLISHED].why) == blocks


def test_all_old_folders_are_looked_at(old_folders, earlier_folders):
    assert sorted(path.name for path in earlier_folders.iterdir()) == EARLIER
    assert sorted(path.name for path in old_folders.iterdir()) == sorted([*OLD, "aborted"])
    assert ">Aborted</h2>" in report(old_folders / "aborted")


@pytest.mark.parametrize("name", ["rr_joint", "rr_views", "each"])
def test_a_folder_of_format_1_can_be_asked(old_folders, name):
    asked = read_askable(old_folders / name)
    assert asked.estimates.n == 12
    assert len(asked.estimates.marginals()) == 3


@pytest.mark.parametrize("name", OLD)
def test_a_changed_folder_of_format_1_is_noticed(old_folders, name, tmp_path):
    folder = shutil.copytree(old_folders / name, tmp_path / "run")
    text = (folder / "result.json").read_text()
    document = json.loads(text)
    kept = {"format", "version", "status", "transport", "seed", "rejected_messages"}
    for key in set(document) - kept:
        value = document[key]
        changed = value + 1 if isinstance(value, int | float) else [value, "x"]
        (folder / "result.json").write_text(json.dumps(document | {key: changed}))
        with pytest.raises((DoesNotHold, InputError)):
            verify(folder)
    (folder / "result.json").write_text(json.dumps(document | {"conclusion": "90 % smoke"}))
    with pytest.raises(DoesNotHold, match="'conclusion' has no place in format 1"):
        verify(folder)


def test_a_changed_sheet_of_format_1_is_noticed(old_folders, tmp_path):
    """Its ``result.json`` has no digests of them: they are compared with what follows."""
    folder = shutil.copytree(old_folders / "exact_pairs", tmp_path / "run")
    sheet = folder / "dependence.csv"
    sheet.write_text(sheet.read_text().replace("\n", "\r\n"))
    with pytest.raises(DoesNotHold, match=r"dependence\.csv is not what follows"):
        verify(folder)


# ── Words on things ────────────────────────────────────────────────────────────────────────────


def all_messages(kind=Message):
    for sub in kind.__subclasses__():
        if sub.__module__.startswith("mpc_rr.") and hasattr(sub, "step"):
            yield sub
        yield from all_messages(sub)


def test_every_message_says_what_happens_in_its_step():
    found = set(all_messages())
    assert len(found) > 50
    for kind in found:
        assert kind.doing, kind
        assert kind.doing[0].islower()
        assert re.fullmatch(r"[a-z_]+", kind.step)
    steps = [kind.step for kind in found]
    assert len(set(steps)) == len(steps)


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_protocol_names_every_step_in_which_its_parties_send(results, name):
    """Whoever watches gets words for whatever a coordinator waits for, and no size is guessed."""
    study, outcome = results[name].study, results[name].outcome
    known = set(study.step_words)
    sent = {step for (_, step, peer), t in outcome.traffic.items() if t.messages_up}
    assert sent <= known
    largest = max(max(t.bytes_up, t.bytes_down) for t in outcome.traffic.values())
    assert largest <= 2 * study.largest_message_bytes


def test_built_in_protocols_and_those_from_outside_are_told_apart_by_their_origin_alone():
    assert {registry.origin(name) for name in registry.known()} == {registry.BUILT_IN}
    assert len(registry.known()) == 12


LABELLED = """
title = "Words"
[schema.car]
categories = ["no", "yes"]
label = { en = "Car", de = "Auto" }
question = { en = "Do you have a car?", de = "Haben Sie ein Auto?" }
labels = { yes = { en = "Yes, one", de = "Ja" }, no = "–" }
[schema.place]
categories = ["city", "village"]
label = "Where you live"
[protocol]
name = "rr_independent"
keep = 0.9
[parties]
count = 20
[data.generator]
[[data.generator.draw]]
attribute = "car"
weights = [1, 1]
[[data.generator.draw]]
attribute = "place"
weights = [1, 1]
"""


@pytest.fixture
def labelled(tmp_path):
    (tmp_path / "words.toml").write_text(LABELLED)
    return load_scenario(tmp_path / "words.toml")


def test_labels_are_for_people_and_identifiers_stay(labelled, tmp_path):
    result = run_study(labelled, transport="memory", seed=1)
    write_results(result, tmp_path / "run")
    text = io.StringIO()
    show_publication(Console(file=text, width=100), result.publication, labelled.study.schema)
    assert "Yes, one" in text.getvalue()
    assert "Where you live" in text.getvalue()
    english, german = report(tmp_path / "run"), report(tmp_path / "run", language="de")
    assert "Do you have a car?" in english
    assert "Haben Sie ein Auto?" in german
    assert "Yes, one" not in german
    assert "Where you live" in german  # there is no other
    with pytest.raises(InputError, match="no words in 'fr'; it has en, de"):
        report(tmp_path / "run", language="fr")
    first = (tmp_path / "run" / "reports.csv").read_text().splitlines()
    assert first[0] == "party,car,place,weight"
    assert "Yes" not in "".join(first)
    axis = result.publication.tables[0].axes[0]
    assert (axis.attribute, axis.categories) == ("car", ("no", "yes"))
    verify(tmp_path / "run")


def test_words_are_part_of_what_people_agree_to(labelled, tmp_path):
    """Another question is another study, as is one that is shown first; without any it is the
    study as it was before."""
    swapped = LABELLED.replace(
        '{ en = "Do you have a car?", de = "Haben Sie ein Auto?" }',
        '{ de = "Haben Sie ein Auto?", en = "Do you have a car?" }',
    )
    assert swapped != LABELLED
    (tmp_path / "swapped.toml").write_text(swapped)
    assert load_scenario(tmp_path / "swapped.toml").study.digest != labelled.study.digest
    (tmp_path / "other.toml").write_text(LABELLED.replace("have a car", "steal cars"))
    assert load_scenario(tmp_path / "other.toml").study.digest != labelled.study.digest
    bare = re.sub(r"^(label|question|labels) = .*\n", "", LABELLED, flags=re.MULTILINE)
    (tmp_path / "bare.toml").write_text(bare)
    plain = load_scenario(tmp_path / "bare.toml").study
    assert plain.schema.attributes[0].label is None
    before_there_were_words = "b7c31279786d6f5890b5dacc1eda2c2894bada417419aee945fbdb36e81ca50d"
    assert plain.digest.hex() == before_there_were_words


@pytest.mark.parametrize(
    "title", ["Santé\u00a0: 10\u202f000 €", "👨\u200d👩\u200d👧", "نمی\u200cدانم"]
)
def test_words_of_any_script_are_no_obstacle(tmp_path, title):
    (tmp_path / "words.toml").write_text(LABELLED.replace('"Words"', f'"{title}"\nstudy = "x"'))
    assert load_scenario(tmp_path / "words.toml").study.title == title


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('no = "–"', 'nein = "–"', "labels names 'nein', which is no category"),
        ('label = "Where you live"', 'label = ""', "'place': label: it must not be empty"),
        (
            'label = "Where you live"',
            'label = "a\\u001b[31m"',
            r"schema.place.label: .* printed \(U\+001B\)",
        ),
        ('de = "Auto"', '"de de" = "Auto"', "'de de' is no language"),
        ('label = "Where you live"', "label = {}", "it is in no language"),
        ('label = "Where you live"', "label = 3", "schema.place.label"),
        ('label = "Where you live"', 'label = "Car"', "two attributes would both be called 'Car'"),
        ('no = "–"', 'no = "Ja"', "two categories would look the same"),
        ('title = "Words"', 'title = "W\\u001b[8m"', r"title: .* printed \(U\+001B\)"),
        ('"city"', '"ci\\u202ety"', r"schema.place.categories: .* printed \(U\+202E\)"),
    ],
)
def test_words_that_cannot_be_shown_are_told(tmp_path, old, new, says):
    assert old in LABELLED
    (tmp_path / "words.toml").write_text(LABELLED.replace(old, new))
    with pytest.raises(InputError, match=says):
        load_scenario(tmp_path / "words.toml")


# ── Disclosures ────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", SCENARIOS)
def test_what_is_disclosed_is_typed_and_costs_what_the_ledger_says(results, name):
    study, privacy = results[name].study, results[name].publication.privacy
    here = study.setting_with(results[name].outcome.members)
    counted = results[name].publication.participation.counted
    events = study.protocol.stated(msgspec.structs.replace(here, counted=counted))
    assert privacy.events == events
    assert msgspec.json.decode(msgspec.json.encode(privacy), type=type(privacy)) == privacy
    for event in events:
        assert event.cost >= 0
        assert event.how
        assert event.seen.startswith("by ")


def test_an_event_says_how_and_by_whom():
    assert ExactSum(what="sum", attributes=("a",), crowd=7).seen.endswith("total over 7 parties")
    few = ExactSum(what="sum", attributes=("a",), crowd=2, expected=1000, least=3)
    assert few.seen == "by everyone, only in a total over 3 parties or more (1,000 are expected)"
    assert "does not say" in Unstated().how
    assert Publication().privacy is None


def test_no_kind_of_ending_is_known_outside_its_own_publication():
    """Neither isinstance nor match on endings: whatever comes from outside is their equal."""
    kinds = {
        sub.__name__ for sub in Ending.__subclasses__() if sub.__module__.startswith("mpc_rr.")
    }
    assert len(kinds) >= 10
    pattern = re.compile(rf"(isinstance\([^)]*|case )\b({'|'.join(kinds)})\b")
    for path in (ROOT / "mpc_rr").rglob("*.py"):
        assert not pattern.search(path.read_text()), path


def test_a_program_that_failed_is_told_although_the_study_went_on():
    """Without it, a fault in a party's own code looks like silence."""

    class Broken(RRIndependent, frozen=True, tag="broken"):
        async def party(self, session, schema, record):
            if session.me == "party-01":
                raise ZeroDivisionError("no such thing")
            return await super().party(session, schema, record)

    records = random_records(12, (2, 3), seed=1)
    scenario = make_scenario(records, (2, 3), protocol=Broken(keep=0.6), minimum=5)
    run = run_study(scenario, transport="memory", seed=1)
    text = io.StringIO()
    show_result(Console(file=text, width=200), run, run.publication, 0.0)
    assert "Warning: the program of one party failed. party-01: its program failed" in (
        text.getvalue()
    )
    assert "ZeroDivisionError: no such thing" in text.getvalue()
