"""docs/own-protocol.md, followed to the letter: its file through every command, both ways in."""

import json
import os
import re
import sys
from pathlib import Path

import msgspec
import pytest
from cli_helpers import assert_one_line, coordinate, mpc_rr, start

import mpc_rr as package
from mpc_rr.errors import InputError
from mpc_rr.protocols import registry
from mpc_rr.running import run_study
from mpc_rr.study.file import load_scenario

PAGE = Path(__file__).parent.parent / "docs" / "own-protocol.md"
PLUGINS = Path(__file__).parent / "plugins"


@pytest.fixture
def mean(tmp_path):
    """The page's two files, in a folder of their own, and five people's numbers."""
    text = PAGE.read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    study = re.findall(r"```toml\n(.*?)```", text, re.DOTALL)[0]
    (tmp_path / "secure_mean.py").write_text(code)
    (tmp_path / "mean.toml").write_text(study + PATIENT)
    people = [load_incomes(row) for row in (31_000, 42_500, 18_250, 77_000, 55_000)]
    (tmp_path / "people.csv").write_text("income,place\n" + "".join(people))
    return tmp_path


def load_incomes(income):
    return f"{income},city\n"


PATIENT = """
[deadlines]
lobby_s = 600
round_s = 600
"""
MEAN = (31_000 + 42_500 + 18_250 + 77_000 + 55_000) / 5


def installed(folder):
    """The file as an installed package has it: importable, with an entry point of its own."""
    about = folder / "secure_mean-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: secure-mean\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(
        "[mpc_rr.protocols]\nsecure_mean = secure_mean:SecureMean\n"
    )
    path = os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])])
    return {"env": os.environ | {"PYTHONPATH": path}}


def found(document):
    return document["publication"]["findings"][0]["numbers"]["mean"]


@pytest.mark.broker
@pytest.mark.parametrize("way", ["--plugin", "entry point"])
def test_the_file_of_the_page_goes_through_every_command(mean, nats, way):
    plugin = ["--plugin", mean / "secure_mean.py"] if way == "--plugin" else []
    options = {} if plugin else installed(mean)

    def call(*arguments):
        code, out, err = mpc_rr(*arguments, *plugin, cwd=mean, **options)
        assert code == 0, err
        return out

    data = ["--data", mean / "people.csv", "--json"]
    assert "secure_mean" in call("check", "mean.toml")
    ways = {"memory": ["--transport", "memory"], "mqtt": [], "hosts": ["--hosts", 2]}
    for name, how in ways.items():
        assert found(json.loads(call("run", "mean.toml", *data, *how, "--out", name))) == MEAN
    assert "exact mean of income" in call("party", "mean.toml", "--explain")

    url = ["--broker", nats.with_secrets(), *plugin]
    csv = ["--csv", mean / "people.csv"]
    agents = [
        coordinate("mean.toml", *url, "--json", "--out", "real", cwd=mean, **options),
        start("party", "mean.toml", *url, *csv, "--row", "1", "--json", "--out", "mine", cwd=mean,
              **options),
        start("host", "mean.toml", *url, *csv, "--rows", "2:5", "--json", cwd=mean, **options),
    ]  # fmt: skip
    for agent in agents:
        code, out, err = agent.finish()
        assert code == 0, err
        assert found(json.loads(out)) == MEAN
    for folder in ("memory", "mqtt", "hosts", "real"):
        said = call("verify", folder)
        assert "confirmed: replaying the recorded messages gives the same result" in said
        assert "confirmed: the coordinator closed the run with this transcript" in said
    call("verify", "real", "--receipt", "mine/receipt.jsonl")

    call("report", "real")
    page = (mean / "real" / "report.html").read_text()
    assert "The mean over 5 parties is 44,750.0." in page
    assert "What did you earn last year?" in page
    call("report", "memory", "--language", "de")
    assert "Was haben Sie letztes Jahr verdient?" in (mean / "memory" / "report.html").read_text()
    # A report needs no plugin; what must run the protocol again says what is missing.
    elsewhere = {"cwd": mean.parent}
    code, _, err = mpc_rr("report", mean / "mqtt", **elsewhere)
    assert code == 0, err
    code, _, err = mpc_rr("verify", mean / "mqtt", **elsewhere)
    assert code == 2
    origin = "the file secure_mean.py" if plugin else "the package secure-mean"
    assert_one_line(err, "there is no protocol “secure_mean” here", f"came from “{origin}”")
    assert "damaged" not in err


# ── In one process ─────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def own_registry(monkeypatch):
    """What a test registers is forgotten when it ends."""
    registry.known()
    monkeypatch.setattr(registry, "_kinds", dict(registry._kinds))
    monkeypatch.setattr(registry, "_origins", dict(registry._origins))
    monkeypatch.setattr(registry, "_plugins", list(registry._plugins))
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        if name.startswith("mpc_rr_plugin_"):
            del sys.modules[name]


def changed(folder, old, new, name="changed.py"):
    text = (folder / "secure_mean.py").read_text()
    assert old in text
    (folder / name).write_text(text.replace(old, new))
    return folder / name


def test_a_script_registers_its_own(mean, own_registry):
    scope = {"__name__": "script"}
    exec((mean / "secure_mean.py").read_text(), scope)
    package.register(scope["SecureMean"])
    package.register(scope["SecureMean"])  # as when a notebook cell is run again
    result = run_study(load_scenario(mean / "mean.toml", mean / "people.csv"), transport="memory")
    assert result.publication.findings[0].numbers["mean"] == MEAN
    html = result._repr_html_()
    assert "The mean over 5 parties is 44,750.0." in html


def test_a_name_is_given_once(mean, own_registry):
    registry.load_plugin(mean / "secure_mean.py")
    registry.load_plugin(mean / "secure_mean.py")  # the very same file is no second one
    other = changed(mean, "1 << 61", "1 << 60")
    with pytest.raises(InputError, match="two protocols 'secure_mean': one from the file secure"):
        registry.load_plugin(other)
    with pytest.raises(InputError, match="two protocols 'exact_pairs': one from mpc-rr, one from"):
        registry.load_plugin(changed(mean, 'tag="secure_mean"', 'tag="exact_pairs"'))
    changed(mean, "1 << 61", "1 << 59", "secure_mean.py")  # a file that was edited replaces itself
    registry.load_plugin(mean / "secure_mean.py")
    kind = registry.kind_of("secure_mean")
    assert sys.modules[kind.__module__].MODULUS == 1 << 59
    dotted = changed(mean, 'tag="secure_mean"', 'tag="other_mean"', "mean.v1-2.py")
    registry.load_plugin(dotted)
    assert registry.kind_of("other_mean").__module__.isidentifier()


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("    messages = (Part, Held)\n", "", "lacks messages"),
        ("async def coordinator", "async def coordinate", "lacks coordinator"),
        ("def disclosures", "def disclosure", "lacks disclosures"),
        ('step, way = "mean_held", "publish"', 'way = "publish"', "Held has no step"),
        ('"mean_held"', '"mean_part"', "two of its messages have the step 'mean_part'"),
        ('"mean_held"', '"hello"', "the step 'hello' is one of the agents' own"),
        ('"publish"\n', '"shout"\n', "Held: way is one of report, confide"),
        ("import mpc_rr", "import sys; sys.exit(3)", "cannot be used: SystemExit"),
        ("(mpc_rr.StudyProtocol, frozen=True", "(dict, frozen=True", "cannot be used|defines no"),
        ("def publish(self", "def publsh(self", "line 25.*Mean must say what it publishes"),
        ('tag="secure_mean"', 'tag="Secure mean"', "has no proper name"),
        ("import mpc_rr", "import mpc_rr, nothing_of_the_kind", "line 3.*No module named"),
        ("class Mean(", "class Mean)", "line 25.*cannot be used: SyntaxError"),
        ("MODULUS = 1 << 61", "MODULUS = 1 / 0", "line 5.*ZeroDivisionError"),
    ],
)
def test_a_file_that_is_no_protocol_is_one_clear_line(mean, own_registry, old, new, says):
    with pytest.raises(InputError, match=says) as raised:
        registry.load_plugin(changed(mean, old, new))
    assert "changed.py" in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_protocol_must_say_what_it_discloses_or_that_it_does_not(mean, own_registry, capsys):
    silent = changed(mean, "return [mpc_rr.ExactSum(what=what, attributes=(self.of,), "
                           "crowd=study.parties)]", "return []")  # fmt: skip
    registry.load_plugin(silent)
    with pytest.raises(InputError, match=r"does not state what it discloses; .*\[Unstated\(\)\]"):
        load_scenario(mean / "mean.toml")


def test_who_is_told_nothing_is_told_that(mean):
    unstated = changed(mean, "return [mpc_rr.ExactSum(what=what, attributes=(self.of,), "
                             "crowd=study.parties)]", "return [mpc_rr.Unstated()]")  # fmt: skip
    code, out, err = mpc_rr("party", mean / "mean.toml", "--plugin", unstated, "--explain")
    assert code == 0, err
    said = " ".join(out.split())
    assert "The author of this protocol does not state what it discloses." in said
    code, out, err = mpc_rr(
        "run", mean / "mean.toml", "--plugin", unstated, "--transport", "memory",
        "--out", mean / "run",
    )  # fmt: skip
    assert code == 0, err
    assert "does not say what it discloses" in " ".join(out.split())


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("return self.ending(schema, await session.relay(Held))", "await session.relay(Held)",
         "it returned NoneType, not an Ending"),
        ("return [mpc_rr.ExactSum", "[mpc_rr.ExactSum", "does not state what it discloses"),
        ("what = f\"exact mean of {self.of}\"", "what = 1 / 0", "ZeroDivisionError"),
    ],
    ids=["no ending", "no disclosures", "disclosures that fail"],
)  # fmt: skip
def test_what_is_forgotten_is_one_line(mean, old, new, says):
    broken = changed(mean, old, new)
    run = ["run", mean / "mean.toml", "--plugin", broken, "--transport", "memory"]
    code, _, err = mpc_rr(*run, "--out", mean / "run")
    assert code in (1, 2)
    assert_one_line(err, says)


def test_what_it_is_about_must_be_asked(mean, own_registry):
    registry.load_plugin(mean / "secure_mean.py")
    study = mean / "mean.toml"
    words = study.read_text()
    study.write_text(words.replace('of = "income"', 'of = "place"'))
    with pytest.raises(InputError, match="of: 'place' is no number"):
        load_scenario(study)
    study.write_text(words)
    study.write_text(study.read_text().replace('of = "income"', 'of = "incme"'))
    with pytest.raises(
        InputError, match="there is no attribute 'incme'; they are “income”, “place”"
    ):
        load_scenario(study)


# ── A finished study is never lost ─────────────────────────────────────────────────────────────


def test_a_publication_that_fails_leaves_a_folder_that_can_be_mended(mean):
    broken = changed(mean, '{self.mean:,.1f}."', '{self.median:,.1f}."', "broken.py")
    run = ["run", mean / "mean.toml", "--data", mean / "people.csv", "--transport", "memory"]
    code, out, err = mpc_rr(*run, "--plugin", broken, "--out", mean / "run")
    assert code == 0, err
    assert "what was found could not be computed (AttributeError" in " ".join(out.split())
    mended = ["--plugin", mean / "secure_mean.py"]
    code, _, err = mpc_rr("publish", mean / "run", *mended, "--out", mean / "mended")
    assert code == 0, err
    assert found(json.loads((mean / "mended" / "result.json").read_text())) == MEAN
    code, _, err = mpc_rr("verify", mean / "mended", *mended)
    assert code == 0, err


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("return self.ending(schema, await session.relay(Held))", "return 1 / 0"),
        ("held = await session.exchange", "held = 1 / 0 or await session.exchange"),
        (
            "async def coordinator(self, session, schema):\n",
            "async def coordinator(self, session, schema):\n        return 1 / 0\n",
        ),
    ],
    ids=["coordinator", "party", "at once"],
)
def test_a_protocol_that_fails_is_one_line_and_leaves_what_happened(mean, old, new):
    broken = changed(mean, old, new)
    run = ["run", mean / "mean.toml", "--plugin", broken, "--transport", "memory"]
    code, _, err = mpc_rr(*run, "--out", mean / "run")
    assert code == 1
    assert_one_line(err, "the study failed: ", "ZeroDivisionError: division by zero")
    assert json.loads((mean / "run" / "result.json").read_text())["status"] == "aborted"
    _, _, err = mpc_rr(*run, "--out", mean / "again", "--verbose")
    assert "Traceback" in err
    assert "changed.py" in err


# ── Kinds of result from outside ───────────────────────────────────────────────────────────────


@pytest.mark.parametrize("study", sorted(PLUGINS.glob("*.toml")), ids=lambda path: path.stem)
def test_a_new_kind_of_result_needs_its_own_file_alone(study, tmp_path):
    """Whatever is in tests/plugins runs, is shown, verified, reported and fits the schema."""
    plugin = ["--plugin", study.with_suffix(".py")]
    run = ["run", study, *plugin, "--transport", "memory", "--seed", "1"]
    code, out, err = mpc_rr(*run, "--out", tmp_path / "run")
    assert code == 0, err
    expected = study.with_suffix(".md").read_text()
    for line in re.findall(r"^    (.*)$", expected, re.MULTILINE):
        assert line.strip() in " ".join(out.split()), out
    code, _, err = mpc_rr("verify", tmp_path / "run", *plugin)
    assert code == 0, err
    code, _, err = mpc_rr("report", tmp_path / "run")
    assert code == 0, err
    page = (tmp_path / "run" / "report.html").read_text()
    published = msgspec.json.decode((tmp_path / "run" / "result.json").read_bytes())["publication"]
    for part in (*published["findings"], *published["notes"]):
        assert part["text"] in page
    for sheet in published["sheets"]:
        assert (tmp_path / "run" / sheet["name"]).exists()
