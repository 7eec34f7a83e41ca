"""The result folder: complete or absent, documented, and without secrets."""

import base64
import csv
import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest
from helpers import crosstabs, make_scenario, random_records

from mpc_rr.crypto.identity import Identity
from mpc_rr.errors import InputError, ResultsError
from mpc_rr.protocols.exact_pairs import ExactPairs
from mpc_rr.randomness import SeededRandomness
from mpc_rr.results.folder import Safe, check_folder, write_folder, write_results
from mpc_rr.results.transcript import cost_document, transcript_lines
from mpc_rr.results.verification import publish_anew
from mpc_rr.running import run_study
from mpc_rr.simulation.faults import Faults, PartyFault

SIZES = (2, 3, 2)
RECORDS = random_records(5, SIZES, seed=2)


@pytest.fixture(scope="module")
def result():
    return run_study(make_scenario(RECORDS, SIZES), transport="memory", seed=1)


def test_the_folder_holds_what_the_documentation_says(result, tmp_path):
    write_results(result, tmp_path / "out")
    files = sorted(str(p.relative_to(tmp_path / "out")) for p in (tmp_path / "out").rglob("*.*"))
    assert files == [
        "closing.json",
        "cost.csv",
        "cost.json",
        "dependence.csv",
        "pairs/01-a0--a1.csv",
        "pairs/02-a0--a2.csv",
        "pairs/03-a1--a2.csv",
        "result.json",
        "study.json",
        "transcript.jsonl",
    ]
    with (tmp_path / "out" / "pairs" / "01-a0--a1.csv").open() as file:
        rows = list(csv.reader(file))
    assert rows[0] == ["a0 \\ a1", "v0", "v1", "v2"]
    assert [[int(x) for x in row[1:]] for row in rows[1:]] == crosstabs(RECORDS, SIZES)[0].tolist()


def test_costs_add_up(result, tmp_path):
    write_results(result, tmp_path / "out")
    cost = json.loads((tmp_path / "out" / "cost.json").read_text())
    with (tmp_path / "out" / "cost.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert cost["total"]["bytes_up"] == sum(int(row["bytes_up"]) for row in rows)
    shares = [row for row in rows if row["step"] == "share"]
    assert len(shares) == 5
    assert all(float(row["seconds"]) >= 0 for row in shares)
    assert {"share", "partial"} <= {r["step"] for r in cost["rounds"]}
    assert {row["step"] for row in rows} >= {"join", "share", "partial", "goodbye"}


def test_a_round_that_waited_for_somebody_says_so():
    scenario = make_scenario(
        random_records(20, SIZES), SIZES, minimum=12, round_s=10.0,
        protocol=ExactPairs(sum="masked_sum"),
        faults=Faults(silent=(PartyFault("party-03", "masked_vector"),)),
    )  # fmt: skip
    outcome = run_study(scenario, transport="memory", seed=1).outcome
    cost = cost_document(outcome, scenario.study.step_words)
    waited = {row["step"]: row["seconds"] for row in cost["rounds"]}
    assert waited["masked_vector"] == pytest.approx(10.0, abs=0.1)


def test_the_transcript_holds_public_messages_only(result, tmp_path):
    write_results(result, tmp_path / "out")
    lines = (tmp_path / "out" / "transcript.jsonl").read_text().splitlines()
    steps = [json.loads(line)["step"] for line in lines]
    assert set(steps) == {"invitation", "join", "roster", "roster_seen", "partial", "verdict"}
    assert steps.count("partial") == 5
    assert [base64.b64decode(json.loads(line)["envelope"]) for line in lines] == list(
        result.outcome.transcript
    )


def test_no_record_and_no_key_is_anywhere_in_the_folder(result, tmp_path):
    """The seed gives every private key again; none may be in any file, in any usual encoding.
    (Records cannot be looked for: the published counts are made of the same small numbers.)"""
    write_results(result, tmp_path / "out")
    secrets = []
    for name in (*result.parties, "coordinator"):
        rng = SeededRandomness(1).fork(name).fork("identity")
        for key in (rng.bytes(32), rng.bytes(32)):
            secrets += [key.hex(), base64.b64encode(key).decode()]
    public = Identity(SeededRandomness(1).fork("party-1").fork("identity")).public
    joins = "".join(
        base64.b64decode(json.loads(line)["envelope"]).hex()
        for line in (tmp_path / "out" / "transcript.jsonl").read_text().splitlines()
    )
    assert public.signing.hex() in joins, "these are the keys of this run"
    for path in (tmp_path / "out").rglob("*.*"):
        text = path.read_text()
        for secret in secrets:
            assert secret not in text, path


def test_a_folder_that_is_in_use_is_told_before_the_study(tmp_path):
    (tmp_path / "out").mkdir()
    check_folder(tmp_path / "out")  # an empty one may be filled
    (tmp_path / "out" / "x").touch()
    with pytest.raises(InputError, match="exists already"):
        check_folder(tmp_path / "out")
    for leads_to in ("nowhere", "empty"):
        (tmp_path / "empty").mkdir(exist_ok=True)
        (tmp_path / f"to {leads_to}").symlink_to(tmp_path / leads_to)
        with pytest.raises(InputError, match="is a link; name a folder"):
            check_folder(tmp_path / f"to {leads_to}")
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="cannot be written"):
        check_folder(tmp_path / "file" / "out")


def test_an_empty_folder_is_filled(tmp_path):
    (tmp_path / "out").mkdir()
    write_folder({"a/b.txt": "x"}, tmp_path / "out")
    assert (tmp_path / "out" / "a" / "b.txt").read_text() == "x"


@pytest.mark.parametrize("leads_to", ["nowhere", "a folder"])
def test_a_link_of_the_name_of_the_unfinished_folder_is_left_alone(result, tmp_path, leads_to):
    """Once one that led nowhere made a study that was done end with "File exists"."""
    link, elsewhere = tmp_path / "out.unfinished", tmp_path / "elsewhere"
    link.symlink_to(elsewhere)
    if leads_to == "a folder":
        elsewhere.mkdir()
    safe = Safe(tmp_path / "out")
    safe.keep(result)
    assert safe.place.path.parent == tmp_path
    write_results(result, tmp_path / "out", safe)
    assert sorted(path.name for path in (tmp_path / "out").glob("*.json"))
    assert link.is_symlink()
    assert {path.name for path in tmp_path.iterdir()} - {"elsewhere"} == {"out", link.name}
    assert not elsewhere.exists() or not any(elsewhere.iterdir())


@pytest.mark.parametrize("name", ["../x.csv", "tables/../../x.csv", "/tmp/mpc-rr-x.csv"])
def test_nothing_is_written_outside_a_folder(tmp_path, name):
    with pytest.raises(ResultsError, match="would be outside"):
        write_folder({"tables/y.csv": "y", name: "x"}, tmp_path / "run")
    assert not list(tmp_path.iterdir())
    assert not Path("/tmp/mpc-rr-x.csv").exists()


def full_disk(tmp_path):
    """A real file system of 64 KiB."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(place)],
        capture_output=True,
        check=False,
    )
    return place if mounted.returncode == 0 else None


def test_a_full_disk_leaves_no_half_folder(tmp_path):
    place = full_disk(tmp_path)
    if place is None:
        pytest.skip("making a small file system needs root (mount -t tmpfs)")
    try:
        with pytest.raises(ResultsError, match=r"could not be written to .*: No space left"):
            write_folder({"small": "x", "large": "x" * 100_000}, place / "out")
        assert list(place.iterdir()) == []
    finally:
        subprocess.run(["umount", str(place)], check=True)


def full(monkeypatch, *places):
    """Disks on which there is room for ten bytes of each file."""
    write = Path.write_bytes

    def write_bytes(path, content):
        if any(path.is_relative_to(place) for place in places):
            write(path, content[:10])
            raise OSError(28, "No space left on device")
        return write(path, content)

    monkeypatch.setattr(Path, "write_bytes", write_bytes)


@pytest.fixture
def places(monkeypatch, tmp_path):
    """Where results are to be, and where temporary files are."""
    wanted, temporary = tmp_path / "wanted", tmp_path / "temporary"
    for place in (wanted, temporary):
        place.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    return wanted, temporary


def test_what_was_received_is_kept_elsewhere_if_there_is_no_room(result, monkeypatch, places):
    """Once half a folder stayed, and the transcript was lost when all had heard of the result."""
    wanted, temporary = places
    full(monkeypatch, wanted)
    safe = Safe(wanted / "out")
    safe.keep(result)
    with pytest.raises(ResultsError, match=f"what was received is in {safe.place.path}"):
        write_results(result, wanted / "out", safe)
    assert not [*wanted.iterdir()]
    assert [*temporary.iterdir()] == [safe.place.path]
    kept = (safe.place.path / "transcript.jsonl").read_text()
    assert kept == transcript_lines(result.outcome.transcript)
    assert publish_anew(safe.place.path, temporary / "out") == result.publication


def test_if_there_is_room_again_the_folder_is_where_it_should_be(result, monkeypatch, places):
    wanted, temporary = places
    safe = Safe(wanted / "out")
    with monkeypatch.context() as meanwhile:
        full(meanwhile, wanted)
        safe.keep(result)
    write_results(result, wanted / "out", safe)
    assert [*wanted.iterdir()] == [wanted / "out"]
    assert not [*temporary.iterdir()]


def test_if_there_is_room_nowhere_that_is_told_and_nothing_stays(result, monkeypatch, places):
    full(monkeypatch, *places)
    safe = Safe(places[0] / "out")
    safe.keep(result)
    with pytest.raises(ResultsError, match="the transcript could not be kept anywhere, and is"):
        write_results(result, places[0] / "out", safe)
    assert not [path for place in places for path in place.iterdir()]


def test_when_results_cannot_be_written_they_are_printed(tmp_path):
    """Files may not grow past 2,000 bytes in this process: as good as a full disk."""
    scenario = str(Path(__file__).parents[2] / "scenarios" / "silent_party.toml")
    done = subprocess.run(
        [sys.executable, "-m", "mpc_rr", "run", scenario, "--transport", "memory",
         "--out", str(tmp_path / "out"), "--json"],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000)),
    )  # fmt: skip
    assert done.returncode == 1
    assert "could not be written" in done.stderr
    assert "result.json was printed instead" in done.stderr
    assert json.loads(done.stdout)["publication"]["participation"]["counted"] == 11
    assert list(tmp_path.iterdir()) == []
