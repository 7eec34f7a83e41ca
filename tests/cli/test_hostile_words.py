"""Study files that want to do something to whoever reads them: on a terminal, a sheet, a page."""

import csv
import io
import json
import unicodedata
from importlib import resources

import msgspec
import pytest
from helpers import make_study, random_records, setting
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from mpc_rr.cli.runs import _show_claims
from mpc_rr.errors import (
    DataError,
    InputError,
    ScenarioError,
    one_line,
    plain,
    quoted,
    unprintable,
)
from mpc_rr.network.envelope import WIRE_VERSION
from mpc_rr.privacy.disclosures import Masked
from mpc_rr.protocols.collaborative_masking import CollaborativeMasking
from mpc_rr.protocols.exact_pairs import ExactPairs
from mpc_rr.protocols.mix.relays import MixOptions
from mpc_rr.protocols.rr_independent import RRIndependent
from mpc_rr.publication.cautions import cautions_of
from mpc_rr.publication.parts import Sheet
from mpc_rr.publication.sheets import as_before, as_cell, as_unsplit, csv_text, from_cell
from mpc_rr.results import earlier
from mpc_rr.results.asking import read_askable
from mpc_rr.results.claims import Claim
from mpc_rr.results.folder import read_folder, write_results
from mpc_rr.results.format import to_json
from mpc_rr.results.verification import verify
from mpc_rr.running import run_study
from mpc_rr.running import studies as running
from mpc_rr.schema import Attribute, Schema
from mpc_rr.show.report import report
from mpc_rr.show.terminal import show_publication
from mpc_rr.study.bif import read_bif
from mpc_rr.study.checks import LONGEST_NAME, check_words
from mpc_rr.study.definition import Study
from mpc_rr.study.drafting import draft_schema
from mpc_rr.study.file import load_scenario
from mpc_rr.study.records import read_csv

ESC, BELL, TURNED, NO_WIDTH, SOFT_HYPHEN = "\x1b", "\x07", "\u202e", "\u200b", "\u00ad"
HOSTILE = {
    "ESC": ESC, "BEL": BELL, "CSI": "\x9b", "DEL": "\x7f", "CR": "\r", "right to left": TURNED,
    "mark": "\u200f", "isolate": "\u2067", "no width": NO_WIDTH, "soft hyphen": SOFT_HYPHEN,
    "word joiner": "\u2060", "tag": "\U000e0041", "line": "\u2028", "paragraph": "\u2029",
    "private": "\ue000", "unassigned": "\u0378", "form of a character": "\U000e0100",
    "last form": "\U000e01ef", "null notehead": "\U0001d159", "Khitan filler": "\U00016fe4",
}  # fmt: skip
FILE = """
title = "TITLE"
study = "words"
description = "DESCRIPTION"
[schema."NAME"]
categories = ["CATEGORY", "other"]
label = "LABEL"
question = {en = "QUESTION", de = "Frage"}
labels = {other = "LABELS"}
[schema.plain]
categories = ["x", "y"]
[protocol]
name = "exact_pairs"
[parties]
count = 4
"""
FIELDS = {
    "TITLE": "title", "DESCRIPTION": "description", "NAME": "schema.“NA",
    "LABEL": "schema.NAME.label", "CATEGORY": "schema.NAME.categories",
    "QUESTION": "schema.NAME.question",
    "LABELS": "schema.NAME.labels.other",
}  # fmt: skip


def written(folder, word, instead):
    """The study file with one of its words replaced."""
    place = folder / "words.toml"
    spelled = "".join(f"\\U{ord(c):08x}" for c in instead)
    place.write_text(FILE.replace(f'"{word}"', f'"{spelled}"'))
    return place


@pytest.mark.parametrize("bad", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize("word", FIELDS)
def test_a_study_file_with_what_cannot_be_printed_is_refused_and_the_field_named(
    tmp_path, word, bad
):
    with pytest.raises(InputError) as refused:
        load_scenario(written(tmp_path, word, word[:2] + bad + word[2:]))
    said = str(refused.value)
    assert f": {FIELDS[word]}" in said
    assert f"a character that cannot be printed (U+{ord(bad):04X})" in said
    assert said.isprintable()


@pytest.mark.parametrize("word", FIELDS)
@pytest.mark.parametrize(
    "spelled",
    ["نمی\u200cدانم", "क्\u200dष", "👩🏽\u200d⚕\ufe0f", "10\u202f000\u00a0€", "naïve – Ω", "日本",
     "Người Việt", unicodedata.normalize("NFD", "Người Việt ở Huế"), "हिन्दी क्षत्रिय", "ผู้ใหญ่ นี้ ก้ำ",
     "בְּרֵאשִׁ֖ית בָּרָ֣א", "שָּֽׁ֣", "مُحَمَّدٌ", "ཧཱུྃ རྒྱལ", "ကျွန်ုပ်", "ស្ត្រី", "Ẹ̄́", "ﷺ"],
)  # fmt: skip
def test_what_languages_need_may_stand_in_a_study_file(tmp_path, word, spelled):
    load_scenario(written(tmp_path, word, spelled))


DRAWN_OVER_OTHERS = {
    "marks": ("\u0336\u0334\u0489\u20e0" * 240, "more than 5 marks on one letter (U+0334)"),
    "on a letter with some": ("\u1ebf\u0301\u0302\u0303\u0304", "5 marks on one letter (U+0304)"),
    "spacing marks": ("\u0915" + "\u0903" * 6, "more than 5 marks on one letter (U+0903)"),
    "with joiners": ("\u0936" + "\u0301\u200d" * 9 + "\u0936", "more than 5 marks"),
    "wide": ("\ufdfd", "drawn over others (U+FDFD)"),
    "wider": ("\U00012031", "drawn over others (U+12031)"),
}


@pytest.mark.parametrize("kind", DRAWN_OVER_OTHERS)
@pytest.mark.parametrize("word", FIELDS)
def test_what_is_drawn_over_other_words_is_refused(tmp_path, word, kind):
    """A stack of marks reaches into our lines of the screen."""
    bad, why = DRAWN_OVER_OTHERS[kind]
    with pytest.raises(InputError) as refused:
        load_scenario(written(tmp_path, word, word[:2] + bad + word[2:]))
    assert f": {FIELDS[word]}" in str(refused.value)
    assert why in str(refused.value)
    assert unprintable(str(refused.value)) is None


@given(st.text() | st.text("a\u0301\u0336\u20e0\u1ebf\u200d\u0936", max_size=30))
def test_what_was_made_plain_is(text):
    assert unprintable(plain(text)) is None


@pytest.mark.parametrize(
    "word", ["ye\u200ds", "yes\u200d", "\u200cyes", "ش\u200c", "ش\u200c\u200cش"]
)
def test_a_joiner_that_joins_nothing_is_only_a_disguise(word):
    assert "U+200" in unprintable(word)


def test_a_description_may_have_lines_and_tabs_a_title_may_not(tmp_path):
    load_scenario(written(tmp_path, "DESCRIPTION", "one\n\ttwo"))
    for space in "\n\t":
        with pytest.raises(InputError, match="title: "):
            load_scenario(written(tmp_path, "TITLE", f"one{space}two"))


def test_the_consent_screen_never_shows_them(tmp_path, here):
    """What attacked the screen where people decide: colours, a cleared screen, another title."""
    title = f"[bold red]x[/] {ESC}]0;other{BELL}{ESC}[2J"
    place = written(tmp_path, "TITLE", title)
    code, out, err = here("party", place, "--explain")
    assert (code, out) == (2, "")
    assert err.strip().isprintable()
    assert "title: it has a character that cannot be printed (U+001B)" in err


# ── Studies that come from elsewhere ───────────────────────────────────────────────────────────


def hostile_study(protocol=None):
    """A study made in Python whose every word is hostile."""
    words = f"a{ESC}[2J<b>{TURNED}"
    schema = Schema(
        (
            Attribute(f"n-{words}", "nominal", (f"x{ESC}[5m", "=1+1"), label=f"l{ESC}{TURNED}"),
            Attribute("b", "nominal", ("x", f"y{NO_WIDTH}", "-"), question=f"q{ESC}"),
        )
    )
    return msgspec.structs.replace(
        make_study(6, protocol=protocol), schema=schema, title=f"t{words}", description=f"d{words}"
    )


def test_a_study_made_in_python_is_refused_too():
    with pytest.raises(InputError, match=r"schema\.“n-a\\x1b.*U\+001B"):
        run_study(hostile_study(), random_records(6, (2, 3)), transport="memory")


def test_options_of_a_protocol_are_words_too():
    masked = CollaborativeMasking(open=(f"a{TURNED}",), confidential=("b",))
    with pytest.raises(ScenarioError, match=r"protocol\.open: .*U\+202E"):
        check_words(make_study(4, protocol=masked))


def test_networks_and_drafts_with_them_are_refused(tmp_path):
    bif = (
        "variable a { type discrete [ 2 ] { x, BAD }; }\n"
        "variable b { type discrete [ 2 ] { x, y }; }\n"
        "probability ( a ) { table 0.5, 0.5; }\nprobability ( b ) { table 0.5, 0.5; }\n"
    )
    place = tmp_path / "net.bif"
    place.write_text(bif)
    assert read_bif(place).schema.names == ("a", "b")
    place.write_text(bif.replace("BAD", f"y{ESC}[5m"))
    with pytest.raises(DataError, match=r"schema\.a\.categories: .*U\+001B"):
        read_bif(place)
    table = tmp_path / "people.csv"
    for head, cell in ((f"a{TURNED}", "x"), ("a", f"x{TURNED}")):
        table.write_text(f"{head},b\n" + f"{cell},1\nz,2\n" * 20)
        with pytest.raises(DataError, match=r"column 'a.*U\+202E") as refused:
            draft_schema(table)
        assert str(refused.value).isprintable()


def test_what_others_say_is_one_line_that_shows_what_it_is():
    assert one_line(f"a\n{TURNED}b{NO_WIDTH}{ESC}[2J") == "a \\u202eb\\u200b\\x1b[2J"
    assert one_line("نمی\u200cدانم") == "نمی\u200cدانم"
    assert len(one_line(ESC * 10_000)) == 300


@given(st.text(st.characters(exclude_categories=[])))
def test_whatever_is_shown_has_nothing_hidden_in_it(text):
    shown = plain(text)
    assert unprintable(shown) is None
    left = {c for c in shown if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Co", "Cn")}
    assert left <= {"\u200c", "\u200d"}


# ── Folders from before ────────────────────────────────────────────────────────────────────────


@pytest.fixture
def old_folder(tmp_path, monkeypatch):
    """A folder of a hostile study, from when nobody looked."""
    monkeypatch.setattr(running, "check_words", lambda _: None)
    study = hostile_study(RRIndependent(keep=0.5))
    result = run_study(study, random_records(6, (2, 3)), transport="memory")
    write_results(result, tmp_path / "old")
    return tmp_path / "old"


def test_an_old_folder_with_them_can_be_read_and_shows_them_spelled_out(old_folder, here):
    assert verify(old_folder)
    folder = read_folder(old_folder)
    screen = io.StringIO()
    console = Console(file=screen, width=200)
    show_publication(console, folder.file.publication, folder.definition.schema)
    _, asked, _ = here("query", old_folder, f'b="y{NO_WIDTH}"')
    for shown in (screen.getvalue(), report(old_folder), asked):
        hidden = [c for c in shown if c != "\n" and unprintable(c)]
        assert hidden == []
    assert "l\\x1b\\u202e" in screen.getvalue()
    assert "ta\\x1b[2J&lt;b&gt;\\u202e" in report(old_folder)
    assert "y\\u200b" in asked


# ── Sheets ─────────────────────────────────────────────────────────────────────────────────────

FORMULAS = ["=cmd|' /C calc'!A0", "+1-1", "-2+3", "@SUM(1)", "\t=1", "＝1+1", "-", "+"]


@pytest.mark.parametrize("formula", FORMULAS)
def test_no_cell_of_a_sheet_is_a_formula(formula):
    assert csv_text([[formula]]) != csv_text([[f"'{formula}"]])
    ((cell,),) = csv.reader(io.StringIO(csv_text([[formula]]), newline=""))
    assert cell.startswith("'")
    assert from_cell(cell) == formula


SPLIT_AT = [";", "\t"]
SPLIT = ["yes{}=HYPERLINK(A1){}x", 'a{}"=1', "a{}'=1", "a{} +1", 'b{}""{}@SUM(1)', "{}-2+3"]


@pytest.mark.parametrize("delimiter", [*SPLIT_AT, ","])
@pytest.mark.parametrize("split", SPLIT_AT)
@pytest.mark.parametrize("text", SPLIT)
def test_no_part_of_a_cell_is_a_formula_wherever_a_spreadsheet_splits_lines(text, split, delimiter):
    """Where a comma is the decimal sign they split at semicolons, also inside our quotation marks
    if these do not begin there."""
    text = text.replace("{}", split)
    written = csv_text([[text, 1.5, text], [2, text, "x, y"]])
    for line in csv.reader(io.StringIO(written, newline=""), delimiter=delimiter):
        bare = [cell for cell in line if not cell.startswith("'")]
        assert not [c for c in bare if c.strip("\"' ").startswith(("=", "+", "-", "@"))]
    for line in csv.reader(io.StringIO(written, newline="")):
        assert len(line) == 3
        assert text in map(from_cell, line)


@pytest.mark.parametrize("number", ["-5", "+1", "-0.25", "-1e-07", "3"])
def test_numbers_stay_numbers(number):
    assert csv_text([[number, float(number), None]]) == f"{number},{float(number)},\n"


TEXTS = st.text() | st.text("'=+-@1e. \t;\"", max_size=8)


@given(st.lists(TEXTS, min_size=1, max_size=4))
def test_what_stands_in_a_sheet_can_be_read_back(texts):
    """Apostrophes of one's own included: no two texts become the same cell."""
    cells = [str(as_cell(text)) for text in texts]
    assert [from_cell(cell) for cell in cells] == texts
    for cell in cells:
        try:
            float(cell)
        except ValueError:
            assert not cell.startswith(("=", "+", "-", "@", "\t", "\r"))
    if all("\r" not in text and "\n" not in text for text in texts):
        plainly = io.StringIO()
        csv.writer(plainly, lineterminator="\n").writerow(texts)
        assert as_before(csv_text([texts])) == plainly.getvalue()
        if not set(";\t").intersection("".join(texts)):
            unsplit = io.StringIO()
            csv.writer(unsplit, lineterminator="\n").writerow(cells)
            assert as_unsplit(csv_text([texts])) == unsplit.getvalue()


FORMULA_SCHEMA = Schema(
    (
        Attribute("=a", "nominal", ("=cmd|' /C calc'!A0", "'=x", "=x")),
        Attribute("<svg onload=alert(3)>", "nominal", ("+1-1", "[red]y[/red]")),
    )
)


def formula_study(protocol):
    return Study(
        **{f: getattr(make_study(6), f) for f in ("name", "description", "parties", "deadlines")},
        title="<script>alert(1)</script>",
        schema=FORMULA_SCHEMA,
        protocol=protocol,
    )


@pytest.mark.parametrize("protocol", [ExactPairs(), RRIndependent(keep=0.5)])
def test_a_study_of_formulas_is_verified_asked_and_synthesized(tmp_path, here, protocol):
    records = random_records(6, (3, 2))
    result = run_study(formula_study(protocol), records, transport="memory", seed=1)
    write_results(result, tmp_path / "run")
    for sheet in (tmp_path / "run").rglob("*.csv"):
        cells = [c for row in csv.reader(io.StringIO(sheet.read_text(), newline="")) for c in row]
        assert [c for c in cells if c.startswith(("=", "+", "@"))] == [], sheet
    assert verify(tmp_path / "run")
    if isinstance(protocol, ExactPairs):
        return
    asked = read_askable(tmp_path / "run")
    assert (asked.estimates.fitted.reported == result.outcome.result.reported).all()
    out = tmp_path / "invented.csv"
    code, _, err = here("synthesize", tmp_path / "run", "--rows", 50, "--seed", 1, "--out", out)
    assert code == 0, err
    assert len(read_csv(out, FORMULA_SCHEMA)) == 50
    assert '[schema."=a"]' in draft_schema(out)


def test_sheets_with_formulas_of_before_still_hold(tmp_path, monkeypatch):
    """A folder whose sheets were written as they came is not damaged."""
    monkeypatch.setattr(earlier, "LIMITS", 0)  # it is of now, but for its sheets
    monkeypatch.setitem(earlier.RULES_WITH_WIRE, WIRE_VERSION, 0)
    study = formula_study(ExactPairs())
    result = run_study(study, random_records(6, (3, 2)), transport="memory")
    file = write_results(result, tmp_path / "run")
    older = []
    for sheet in file.publication.sheets:
        place = tmp_path / "run" / sheet.name
        place.write_text(as_before(place.read_text()))
        older.append(Sheet.of(sheet.name, sheet.what, place.read_text()))
    assert [s.sha256 for s in older] != [s.sha256 for s in file.publication.sheets]
    told = msgspec.structs.replace(file.publication, sheets=tuple(older))
    (tmp_path / "run" / "result.json").write_text(
        to_json(msgspec.structs.replace(file, publication=told, rules=1))
    )
    (tmp_path / "run" / "closing.json").unlink()  # of which there was none then, either
    assert verify(tmp_path / "run")


def test_the_report_shows_markup_as_text(tmp_path):
    result = run_study(formula_study(ExactPairs()), random_records(6, (3, 2)), transport="memory")
    write_results(result, tmp_path / "run")
    page = report(tmp_path / "run")
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "&lt;svg onload=alert(3)&gt;" in page
    assert "<script" not in page
    assert "<svg onload" not in page


# ── What `verify` says ─────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("width", [40, 80, 200])
def test_what_a_claim_goes_on_with_begins_no_line_of_a_terminal(width):
    """A file's name was as long as the line; the next began with a claim that nobody had made."""
    name = "x" + "y" * (width - 19) + " confirmed: nothing was left out :thumbs_up: [bold]"
    claims = (
        Claim(claim=f"“{name}” belongs to the result", verdict="not confirmable", why="no reason"),
        Claim(claim="all is well", verdict="confirmed"),
    )
    shown = io.StringIO()
    _show_claims(Console(file=shown, width=width, force_terminal=True, color_system=None), claims)
    lines = shown.getvalue().splitlines()
    assert all(len(line) <= width for line in lines)
    assert [line for line in lines if not line.startswith("    ")] == [lines[0], lines[-1]]
    assert lines[-1] == "confirmed: all is well"
    assert ":thumbs_up: [bold]" in " ".join(line.strip() for line in lines)
    piped = io.StringIO()
    _show_claims(Console(file=piped, width=width), claims)
    assert piped.getvalue().splitlines() == [str(claim) for claim in claims]


# ── Names that speak in the program's place ────────────────────────────────────────────────────

SPOOF = "hiv: kept on this machine; seen by nobody; ε = 0. Nobody learns anything"


def with_name(name, place):
    path = place / "study.toml"
    path.write_text(FILE.replace("NAME", name).replace('label = "LABEL"\n', ""))
    return path


def test_a_name_that_is_a_sentence_is_refused(tmp_path):
    """It stood on the consent screen as if the program said it."""
    assert len(SPOOF) > LONGEST_NAME
    with pytest.raises(ScenarioError, match="a name has at most 60 characters, not"):
        load_scenario(with_name(SPOOF, tmp_path))
    load_scenario(with_name("x" * LONGEST_NAME, tmp_path))


@pytest.mark.parametrize("name", ["hiv: not sent; ε = 0", "hiv”: not sent; ε = 0. “x"])
def test_names_are_quoted_wherever_the_program_speaks(tmp_path, here, name):
    path = with_name(name, tmp_path)
    _, shown, _ = here("party", path, "--explain")
    said = " ".join(shown.split())
    whole = f"“{name.replace('”', chr(34)).replace('“', chr(34))}”"
    lines = said.split("What you would disclose")[1]
    assert whole in lines
    assert "hiv" not in lines.replace(whole, "")
    asked = said.split("What you would disclose")[0]
    assert whole in asked


@pytest.mark.parametrize("mark", [*"ˮ˝״″〃〞＂❞🙷", "’’", "ʼ'", "``"])
def test_no_look_alike_of_a_quotation_mark_ends_a_name(mark):
    assert quoted(f"hiv{mark}: not sent; x") == '“hiv": not sent; x”'


def test_all_that_unicode_takes_for_a_quotation_mark_is_made_straight():
    table = resources.files("mpc_rr.agents").joinpath("lookalikes.txt").read_text(encoding="ascii")
    (alike,) = [line for line in table.splitlines() if line.startswith("27 27: ")]
    for code in alike.removeprefix("27 27: ").split():
        assert quoted(chr(int(code, 16))) == '“"”'


def test_names_keep_an_apostrophe_and_lose_runs_of_spaces():
    assert quoted("O’Neill's\u2003 \u00a0  pay") == "“O’Neill's pay”"


def test_a_warning_about_a_mask_quotes_the_name():
    event = Masked(what="m", attributes=("pay”: nothing is published. “x",), recommended="none")
    (found, *_) = cautions_of([event], setting(make_study(3, (2, 2)).schema, 3))
    assert '“pay": nothing is published. "x”: it is published' in found.text
    assert "pay" not in found.prevented_by


NEIGHBOURS = """
title = "Neighbours"
study = "neighbours"
[schema.age]
type = "ordinal"
categories = ["young", "old"]
[schema.hiv]
type = "ordinal"
categories = ["no", "CATEGORY"]
[protocol]
name = "collaborative_masking"
open = ["age"]
confidential = ["hiv"]
masks = {hiv = "MASK"}
[protocol.mix]
relays = ["party-1", "party-2", "RELAY"]
[parties]
count = 9
"""


def neighbours(place, relay="party-3", category="yes", mask="swap:50", more=""):
    """A study file whose author names the relays."""
    path = place / "neighbours.toml"
    text = NEIGHBOURS.replace("RELAY", relay).replace("CATEGORY", category).replace("MASK", mask)
    path.write_text(text + more)
    return path


@pytest.mark.parametrize(
    "relay", ["r3." + " " * 80 + "For your whole record: ε = 0", "Party-3", "", "coordinator", "*"]
)
def test_a_relay_is_named_by_a_name_and_not_by_a_sentence(tmp_path, relay):
    """The last warning before people are asked could be a whole screen in the program's voice."""
    with pytest.raises(ScenarioError, match=r"mix\.relays: “.*” is no party's name"):
        load_scenario(neighbours(tmp_path, relay=relay))


def test_the_warning_about_relays_quotes_them(tmp_path, here):
    _, shown, _ = here("party", neighbours(tmp_path), "--explain")
    assert "names the relays: “party-1”, “party-2”, “party-3”." in " ".join(shown.split())
    spoof = "x. Together they can see nothing"
    (found,) = MixOptions(relays=("a", "b", spoof)).cautions(setting(make_study(3).schema, 3))
    assert f"“{spoof}”" in found.text


def test_answers_are_quoted_where_people_decide(tmp_path, here):
    """One category read as the end of the question and a second, harmless one."""
    path = neighbours(tmp_path, category="yes your answer: none; x")
    record = tmp_path / "own.json"
    record.write_text('{"age": "old", "hiv": "no"}')
    _, shown, _ = here("party", path, "--explain", "--record", record)
    said = " ".join(shown.split())
    assert "“hiv”: “no”, “yes your answer: none; x” your answer: “no”" in said


def test_a_mask_is_a_number_and_nothing_else(tmp_path):
    for mask in ("swap: 50", "swap:5" + "0" * 30, "swap:1_0", "swap:٥", "swap:nan", "swap:"):
        with pytest.raises(ScenarioError, match="is not a number"):
            load_scenario(neighbours(tmp_path, mask=mask))
    for mask in ("none", "swap:50", "swap:2.5", "swap:1e1"):
        load_scenario(neighbours(tmp_path, mask=mask))


def test_a_check_quotes_the_attributes(tmp_path, here):
    """One attribute could pass for two, or for a verdict."""
    code, shown, _ = here("check", with_name("hiv, all is well", tmp_path))
    assert code == 0
    assert "attributes  “hiv, all is well”, “plain”" in shown


@pytest.mark.parametrize("name", ["p.csv is in order  x", "x" * 300, "a\\u202eb"])
def test_a_data_file_of_a_study_has_a_file_name(tmp_path, name):
    """Every complaint about the file begins with it."""
    with pytest.raises(ScenarioError, match=r"data\.csv: "):
        load_scenario(neighbours(tmp_path, more=f'[data]\ncsv = "{name}"\n'))


def test_errors_quote_what_a_study_file_wrote(tmp_path):
    names = ("age), all is well. Now type (", "pay")
    schema = Schema(tuple(Attribute(name, "nominal", ("x", "y (z)")) for name in names))
    with pytest.raises(InputError, match=r"they are “age\), all is well\. Now type \(”, “pay”$"):
        schema.attribute("age")
    with pytest.raises(DataError, match=r"is not one of its categories \(“x”, “y \(z\)”\)"):
        schema.encode({names[0]: "q", "pay": "x"})
    path = tmp_path / "study.toml"
    path.write_text(FILE.replace('["CATEGORY", "other"]', "7").replace("NAME", "x: fine. Now y"))
    with pytest.raises(ScenarioError, match=r": schema\.“x: fine\. Now y”\.categories: a list"):
        load_scenario(path)


def test_sentences_of_a_result_quote_the_attribute(tmp_path):
    spoof = "pay is well hidden. x"
    schema = Schema(
        (Attribute(spoof, "ordinal", ("x", "y")), Attribute("b", "nominal", ("x", "y")))
    )
    masking = CollaborativeMasking(open=("b",), confidential=(spoof,))
    study = msgspec.structs.replace(make_study(6, (2, 2), protocol=masking), schema=schema)
    found = run_study(study, random_records(6, (2, 2)), transport="memory", seed=1).publication
    said = [note.text for note in found.notes] + [fact.label for fact in found.quantities]
    told = [text for text in said if spoof in text]
    assert len(told) == 2
    assert all(f"“{spoof}”" in text for text in told)


def test_a_report_says_whose_words_the_description_is(tmp_path):
    study = msgspec.structs.replace(make_study(6), description="Verified by mpc-rr.")
    write_results(run_study(study, random_records(6, (2, 3)), transport="memory"), tmp_path / "run")
    words = "<p>Its author writes:</p><blockquote>Verified by mpc-rr.</blockquote>"
    assert words in report(tmp_path / "run")


@pytest.mark.parametrize(
    "origin",
    [
        "the package mpc-rr-plus --index-url https://example.org/simple",
        "the file /tmp/x.py; run it now",
        "found wanting: type mpc-rr run",
        "the package ”. Install “x",
    ],
)
def test_a_folder_cannot_have_us_advise_to_install_something(tmp_path, here, origin):
    """Where an unknown protocol came from is the word of whoever wrote the folder."""
    write_results(
        run_study(make_study(6), random_records(6, (2, 3)), transport="memory"), tmp_path / "run"
    )
    for file in ("result.json", "study.json"):
        document = json.loads((tmp_path / "run" / file).read_text())
        document["protocol"] |= {"name": "unheard_of"} | (
            {"origin": origin} if file == "result.json" else {}
        )
        (tmp_path / "run" / file).write_text(json.dumps(document))
    code, _, err = here("verify", tmp_path / "run")
    assert code == 2
    said = quoted(origin)
    assert (
        f"there is no protocol “unheard_of” here; result.json says that it came from {said}," in err
    )
    assert "install " not in err.replace(said, "").lower().replace("installed", "")
