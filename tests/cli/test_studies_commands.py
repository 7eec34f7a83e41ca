"""`mpc-rr run` and `check`, right and wrong input, help."""

import json
import os
import re
import signal
import subprocess
from pathlib import Path

import pytest
import typer
from cli_helpers import (
    STUDY,
    assert_one_line,
    expected_counts,
    mpc_rr,
    published_counts,
    start,
    until_all_listen,
)
from helpers import crosstabs

from mpc_rr import __version__ as mpc_rr_version
from mpc_rr.cli.app import IN_ORDER_OF_USE, app
from mpc_rr.study.file import load_scenario

SCENARIOS = Path(__file__).parent.parent.parent / "scenarios"


@pytest.mark.broker
def test_the_quickstart_does_the_main_job(tmp_path):
    code, out, err = mpc_rr("run", SCENARIOS / "quickstart.toml", cwd=tmp_path)
    assert code == 0, err
    assert "50 of 50 parties included in the secure sum" in out
    assert "Cramér's V" in out
    (folder,) = (tmp_path / "results").iterdir()
    result = json.loads((folder / "result.json").read_text())
    scenario = load_scenario(SCENARIOS / "quickstart.toml")
    expected = crosstabs(scenario.records(), scenario.study.schema.sizes)
    tables = [table["values"] for table in result["publication"]["tables"]]
    assert tables == [table.reshape(-1).tolist() for table in expected]


def test_json_is_one_document_on_standard_output(small):
    code, out, err = mpc_rr(
        "run", small / "scenario.toml", "--transport", "memory", "--json", "--out", small / "out"
    )
    assert (code, err) == (0, "")
    document = json.loads(out)
    assert document["publication"]["tables"][0]["axes"] == [
        {"attribute": "sport", "categories": ["no", "yes"]},
        {"attribute": "mood", "categories": ["low", "middle", "high"]},
    ]
    assert published_counts(document) == expected_counts()
    first, second, measure, value, low, high, *_ = document["publication"]["listings"][0]["rows"][0]
    assert (first, second, measure) == ("sport", "mood", "V")
    assert 0 < value <= 1
    assert 0 <= low <= high <= 1


def test_a_failed_study_ends_with_1_and_keeps_its_evidence(small):
    faults = '[[faults.silent]]\nparty = "party-3"\nstep = "partial"\n'
    scenario = small / "scenario.toml"
    scenario.write_text(scenario.read_text() + faults)
    code, _, err = mpc_rr("run", scenario, "--transport", "memory", "--out", small / "out")
    assert code == 1
    assert_one_line(err, "the study failed: party-3 sent nothing for step 'partial'")
    result = json.loads((small / "out" / "result.json").read_text())
    assert (result["status"], result["culprits"]) == ("aborted", ["party-3"])
    assert result["publication"]["tables"] == []


@pytest.mark.broker
@pytest.mark.parametrize("options", [(), ("--hosts", "2")], ids=["one process", "hosts"])
def test_ctrl_c_ends_the_run_and_leaves_no_process_behind(small, tmp_path_factory, options):
    folder = tmp_path_factory.mktemp("tmp")
    scenario = small / "scenario.toml"
    silent = '[[faults.silent]]\nparty = "party-3"\nstep = "share"\n'
    scenario.write_text(scenario.read_text() + silent)
    process = start("run", scenario, *options, env=os.environ | {"TMPDIR": str(folder)}, cwd=small)
    until_all_listen(folder, process, connections=3 if options else 2)
    process.send_signal(signal.SIGINT)
    code, _, err = process.finish()
    assert code == 130
    assert_one_line(err, "interrupted")
    assert not any(folder.iterdir())
    for file in (small / "results").glob("*/result.json"):  # none, if no coordinator was there yet
        assert json.loads(file.read_text())["cause"] == "the coordinator was interrupted"
    alive = subprocess.run(["pgrep", "-f", str(folder)], capture_output=True, check=False)
    assert not alive.stdout


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["run", "none.toml"], "cannot read none.toml: No such file"),
        (["run", "scenario.toml", "--broker", "localhost"], "must look like mqtt://host:port"),
        (
            ["run", "scenario.toml", "--broker", "mqtt://h:1", "--transport", "memory"],
            "have no meaning with --transport memory",
        ),
        (["run", "scenario.toml", "--out", "people.csv"], "people.csv exists already"),
        (["run", "scenario.toml", "--out", "full"], "full exists already"),
        (["run", "study.toml"], "there is no [data]"),
        (["check", "bad.toml"], "bad.toml: parties.count: a whole number is due here"),
        (["party", "study.toml", "--broker", "mqtt://h:1"], "either by --record FILE or by"),
        (["coordinate", "study.toml", "--broker", "mqtt://[::1"], "must look like"),
        (["coordinate", "study.toml", "--broker", "mqtt://h:0"], "must look like"),
        (
            ["coordinate", "study.toml", "--broker", "mqtts://h:1", "--broker-ca", "people.csv"],
            "people.csv holds no certificates",
        ),
        (["broker", "--certificate", "people.csv"], "--certificate and --key go together"),
        (
            ["broker", "--certificate", "people.csv", "--key", "none.pem", "--port", "0"],
            "none.pem does not exist",
        ),
        (["coordinate", "study.toml", "--broker", "@none"], "cannot read the broker's address"),
        (["coordinate", "study.toml", "--broker", "@people.csv"], "must hold one line"),
        (["coordinate", "study.toml", "--broker", "mqtt://party-invitation:SAA@h"], "cut off"),
        (["coordinate", "study.toml", "--broker", "mqtts://h#sha256=12"], "64 hexadecimal digits"),
        (["broker", "--host", ""], "must be plain ASCII"),
        (
            ["party", "study.toml", "--broker", "mqtt://h:1", "--csv", "people.csv", "--row", "9"],
            "has no record number 9",
        ),
        (
            ["party", "study.toml", "--broker", "mqtt://h:1", "--record", "me.json"],
            "me.json: attribute 'mood': 'great' is not one of its categories",
        ),
        (
            ["host", "study.toml", "--broker", "mqtt://h:1", "--csv", "people.csv", "--rows", "3"],
            "--rows must look like 1:25",
        ),
        (
            ["host", "study.toml", "--broker", "mqtt://h:1", "--csv", "people.csv", "--name",
             "x" * 48],
            "cannot be a party's name",
        ),
        (
            ["party", "study.toml", "--broker", "mqtt://h:1", "--csv", "people.csv", "--row", "1",
             "--name", "Ann B."],
            "'Ann B.' cannot be a party's name",
        ),
    ],
)  # fmt: skip
def test_bad_input_is_one_line_and_code_2(small, here, arguments, says):
    (small / "bad.toml").write_text(STUDY.replace("count = 5", 'count = "5"'))
    (small / "me.json").write_text('{"sport": "no", "mood": "great"}')
    (small / "full").mkdir()
    (small / "full" / "file").touch()
    code, out, err = here(*arguments, cwd=small)
    assert code == 2, err
    assert out == ""
    assert_one_line(err, says)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["run"], "STUDY"),
        (["run", "x", "--transport", "foo"], "'foo' is not one of"),
        (["party", "x", "--broker", "mqtt://h", "--row", "0"], "--row"),
        (["broker", "--port", "99999"], "--port"),
        (["fly"], "No such command 'fly'"),
        (["run", "x", "--fly"], "No such option"),
    ],
)
def test_usage_errors_are_one_line_and_code_2(here, arguments, says):
    code, _, err = here(*arguments)
    assert code == 2
    assert_one_line(err, says, "--help)")


def test_results_are_written_before_they_are_shown(small):
    with Path("/dev/full").open("w") as full:
        code, _, err = mpc_rr(
            "run", small / "scenario.toml", "--transport", "memory", "--out", small / "out",
            stdout=full,
        )  # fmt: skip
    assert code == 1
    assert_one_line(err, "No space left on device")
    assert json.loads((small / "out" / "result.json").read_text())["status"] == "done"


def test_verbose_shows_the_trace(small):
    _, _, err = mpc_rr("check", small / "none.toml", "--verbose")
    assert "Traceback" in err
    assert err.splitlines()[-1].startswith("mpc-rr: cannot read")


def test_check_says_what_a_scenario_is(small):
    code, out, _ = mpc_rr("check", small / "scenario.toml", "--json")
    assert code == 0
    facts = json.loads(out)
    assert (facts["cells"], facts["pairs"], facts["records"]) == (6, 1, 5)
    assert "warnings" not in facts
    code, out, _ = mpc_rr("check", small / "scenario.toml")
    assert "is valid" in out
    assert "Warning" not in out


def test_what_a_study_is_too_small_for_is_said_before_it_begins(small):
    """By ``check``, and by ``run`` on standard error."""
    wide = small / "wide.toml"
    scenario = (small / "scenario.toml").read_text()
    wide.write_text(scenario.replace('"exact_pairs"', '"rr_joint"\nepsilon = 0.1'))
    code, out, _ = mpc_rr("check", wide, "--json")
    assert code == 0
    assert any("into wrong cells" in told for told in json.loads(out)["warnings"])
    code, out, _ = mpc_rr("check", wide)
    assert "Warning: With 5 people, tables will tell little" in out
    assert out.strip().endswith("is valid")
    code, _, err = mpc_rr("run", wide, "--transport", "memory", "--out", small / "out")
    assert code == 0
    assert "Warning: With 5 people, tables will tell little" in err


@pytest.mark.parametrize(
    "command",
    [
        "",
        "run",
        "plan",
        "reproduce",
        "data",
        "query",
        "synthesize",
        "check",
        "coordinate",
        "party",
        "host",
        "broker",
    ],
)
def test_help_teaches(here, command):
    code, out, _ = here(*command.split(), "--help")
    assert code == 0
    assert "Usage" in out


def commands_of(command, path=()):
    """All commands, with the words that call them."""
    yield path, command
    for name, below in getattr(command, "commands", {}).items():
        yield from commands_of(below, (*path, name))


@pytest.mark.parametrize(
    ("path", "command"),
    [
        pytest.param(*one, id=" ".join(one[0]) or "-")
        for one in commands_of(typer.main.get_command(app))
    ],
)
def test_the_help_shows_every_word_of_what_was_written(here, monkeypatch, path, command):
    """Brackets are markup there: "in its [data]" once ended at "its"."""
    monkeypatch.setenv("COLUMNS", "4000")
    _, out, _ = here(*path, "--help")
    shown = " ".join(re.sub("[│╭╮╰╯─]", " ", out).split())
    options = [getattr(option, "help", None) for option in command.params]
    for written in filter(None, [command.help, *options]):
        plain = re.sub(r"\[(bold|/)\]", "", written).replace("\\[", "[")
        assert " ".join(plain.split()) in shown


def test_the_help_shows_commands_in_order_of_use(here, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    _, out, _ = here("--help")
    panels = re.findall("^╭─ (.*?) ─", out, flags=re.MULTILINE)
    assert panels == ["Options", *IN_ORDER_OF_USE]
    commands = [name for names in IN_ORDER_OF_USE.values() for name in names]
    assert re.findall("^│ ([a-z]+) ", out, flags=re.MULTILINE) == commands
    assert commands == list(typer.main.get_command(app).commands), "every command has a panel"


def test_the_version_is_shown_with_the_logging_options_there():
    code, out, err = mpc_rr("--version")
    assert (code, out, err) == (0, f"mpc-rr {mpc_rr_version}\n", "")


def test_an_example_runs_by_its_name_and_is_copied_to_be_changed(tmp_path):
    code, out, err = mpc_rr("examples", cwd=tmp_path)
    assert (code, err) == (0, "")
    assert "quickstart  (exact_pairs)" in out
    code, out, err = mpc_rr("examples", "neighbours_study", "--out", "mine", cwd=tmp_path)
    assert (code, err) == (0, "")
    assert (tmp_path / "mine" / "neighbours.csv").is_file()
    run = ("run", "mine/neighbours_study.toml", "--transport", "memory")
    assert mpc_rr(*run, cwd=tmp_path)[0] == 0
    assert_one_line(mpc_rr("examples", "nothing", cwd=tmp_path)[2], "there is no example 'nothing'")
    assert_one_line(mpc_rr("examples", "--out", "x", cwd=tmp_path)[2], "name it before --out")
    assert mpc_rr("check", "quickstart", cwd=tmp_path)[1].endswith("quickstart is valid\n")
