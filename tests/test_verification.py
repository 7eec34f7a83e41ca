"""A result folder is believed only if everything in it follows from its signed transcript."""

import base64
import json

import anonymizing
import msgspec
import pytest
from anonymizing import IN_GROUPS
from helpers import make_scenario, make_study, random_records, simulate

from mpc_rr.agents.coordinator import Coordinator
from mpc_rr.crypto.admission import SigningKey
from mpc_rr.errors import InputError
from mpc_rr.network.session import Gathered
from mpc_rr.protocols.exact_pairs import ExactPairs
from mpc_rr.protocols.rr_clusters import RRClusters
from mpc_rr.protocols.rr_each_attribute import RREachAttribute
from mpc_rr.protocols.rr_independent import RRIndependent
from mpc_rr.protocols.rr_pairs import RRPairs
from mpc_rr.protocols.rr_views import RRViews
from mpc_rr.randomness import SeededRandomness
from mpc_rr.results import write_ending, write_results
from mpc_rr.simulation.faults import Faults, PartyFault
from mpc_rr.study import StudyResult, run_study
from mpc_rr.verification import DoesNotHold, verify

SIZES = (2, 3, 2)
PROTOCOLS = {
    "exact_pairs": ExactPairs(),
    "rr_independent": RRIndependent(keep=0.6),
    "rr_views": RRViews(epsilon=2.0),
    "rr_pairs": RRPairs(keep=0.6),
    "clusters_each": RRClusters(keep=0.6, dependence=RREachAttribute(keep=0.6)),
    "clusters_exact": RRClusters(keep=0.6, dependence=ExactPairs()),
}


def finished(folder, protocol, faults=None, minimum=None):
    records = random_records(12, SIZES, seed=3)
    scenario = make_scenario(records, SIZES, protocol=protocol, faults=faults, minimum=minimum)
    write_results(run_study(scenario, transport="memory", seed=2), folder)
    return folder


@pytest.mark.parametrize("protocol", PROTOCOLS.values(), ids=PROTOCOLS.keys())
def test_honest_folders_hold(tmp_path, protocol):
    assert len(verify(finished(tmp_path / "run", protocol))) == 5


def test_silent_and_given_up_parties_are_no_obstacle(tmp_path):
    silent = Faults(silent=(PartyFault("party-03", "answer"),))
    verify(finished(tmp_path / "a", RRIndependent(keep=0.6), silent, minimum=8))
    again = Faults(silent=(PartyFault("party-03", "share"),))
    verify(finished(tmp_path / "b", ExactPairs(), again, minimum=8))


def test_a_masked_sum_whose_parties_have_passes_is_replayed(tmp_path):
    registrar = SigningKey.draw(SeededRandomness(1))
    faults = Faults(silent=(PartyFault("party-03", "masked_vector"),))
    scenario = make_scenario(
        random_records(14, SIZES, seed=3), SIZES, protocol=ExactPairs(sum="masked_sum"),
        faults=faults, minimum=8,
    )  # fmt: skip
    study = msgspec.structs.replace(scenario.study, registrar=registrar.public.hex())
    scenario = msgspec.structs.replace(scenario, study=study)
    write_results(run_study(scenario, transport="memory", registrar=registrar), tmp_path / "run")
    assert any("admitted by the study's registrar" in line for line in verify(tmp_path / "run"))


def test_a_release_without_a_group_that_lost_somebody_is_replayed(tmp_path):
    protocol = msgspec.structs.replace(IN_GROUPS, k=3)
    faults = Faults(silent=(PartyFault("party-2", "agreed"),))
    scenario = anonymizing.make_scenario(protocol, faults=faults, minimum=3)
    result = run_study(scenario, transport="memory", seed=1)
    assert result.outcome.result.withdrawn
    write_results(result, tmp_path / "run")
    verify(tmp_path / "run")
    document = json.loads((tmp_path / "run" / "result.json").read_text())
    changed = json.dumps(document | {"withdrawn": []})
    (tmp_path / "run" / "result.json").write_text(changed)
    with pytest.raises(DoesNotHold):
        verify(tmp_path / "run")


@pytest.fixture(scope="module")
def honest(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    return {name: finished(folder / name, protocol) for name, protocol in PROTOCOLS.items()}


def copy(honest, name, folder):
    import shutil  # noqa: PLC0415

    shutil.copytree(honest[name], folder)
    return folder


def lines_of(folder):
    return [json.loads(row) for row in (folder / "transcript.jsonl").read_text().splitlines()]


def write_lines(folder, lines):
    (folder / "transcript.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


@pytest.mark.parametrize("name", PROTOCOLS)
def test_every_changed_line_is_noticed_and_named(honest, tmp_path, name):
    """One byte in the middle of each message in turn (every seventh, to save time)."""
    lines = lines_of(honest[name])
    folder = copy(honest, name, tmp_path / "run")
    for number in range(0, len(lines), 7):
        changed = [dict(line) for line in lines]
        raw = bytearray(base64.b64decode(changed[number]["envelope"]))
        raw[len(raw) // 2] ^= 1
        changed[number]["envelope"] = base64.b64encode(bytes(raw)).decode()
        write_lines(folder, changed)
        with pytest.raises(DoesNotHold, match=r"transcript\.jsonl"):
            verify(folder)


@pytest.mark.parametrize("name", PROTOCOLS)
def test_every_missing_or_repeated_line_is_noticed(honest, tmp_path, name):
    """A join that is missing makes its author unknown, an answer changes the digest, and so on."""
    lines = lines_of(honest[name])
    folder = copy(honest, name, tmp_path / "run")
    for number in range(0, len(lines), 7):
        for changed in (lines[:number] + lines[number + 1 :], [*lines, lines[number]]):
            write_lines(folder, changed)
            with pytest.raises(DoesNotHold):
                verify(folder)


@pytest.mark.parametrize(
    ("name", "key", "value"),
    [
        ("rr_independent", "n", 99),
        ("rr_independent", "marginals", []),
        ("rr_independent", "silent", ["party-01"]),
        ("rr_independent", "answers_digest", "00"),
        ("rr_views", "dependence", []),
        ("exact_pairs", "pairs", []),
        ("clusters_each", "design", {}),
        ("exact_pairs", "unconfirmed", ["party-01"]),
        ("rr_views", "privacy", None),
        ("rr_views", "protocol", "rr_joint"),
        ("rr_views", "parties", {}),
        ("rr_views", "attempts", 2),
        ("rr_views", "transcript", {}),
        ("rr_views", "study", None),
        ("exact_pairs", "run", "00"),
        ("exact_pairs", "coordinator", "00"),
    ],
)
def test_a_changed_result_is_noticed(honest, tmp_path, name, key, value):
    folder = copy(honest, name, tmp_path / "run")
    result = json.loads((folder / "result.json").read_text())
    assert key in result
    (folder / "result.json").write_text(json.dumps(result | {key: value}))
    with pytest.raises(DoesNotHold, match=r"result\.json"):
        verify(folder)


@pytest.mark.parametrize("file", ["reports.csv", "pairs/01-a0--a1.csv"])
def test_a_changed_or_missing_table_is_noticed(honest, tmp_path, file):
    folder = copy(honest, "rr_independent", tmp_path / "run")
    (folder / file).write_text((folder / file).read_text() + "x")
    with pytest.raises(DoesNotHold, match=r"\.csv is not what follows"):
        verify(folder)
    (folder / file).unlink()
    with pytest.raises(DoesNotHold, match="cannot be read"):
        verify(folder)


def test_a_changed_study_is_noticed(honest, tmp_path):
    folder = copy(honest, "rr_independent", tmp_path / "run")
    study = (folder / "study.json").read_text()
    (folder / "study.json").write_text(study.replace('"keep": 0.6', '"keep": 0.7'))
    with pytest.raises(DoesNotHold, match="study digest"):
        verify(folder)


def test_an_estimate_that_a_coordinator_bent_is_noticed(honest, tmp_path):
    """Another person's transcript under this result: everything is signed, nothing fits."""
    folder = copy(honest, "rr_independent", tmp_path / "run")
    other = finished(tmp_path / "other", RRIndependent(keep=0.6), minimum=11)
    (folder / "transcript.jsonl").write_text((other / "transcript.jsonl").read_text())
    with pytest.raises(DoesNotHold):
        verify(folder)


@pytest.mark.parametrize(
    ("file", "content"),
    [("study.json", "{"), ("result.json", "[]"), ("result.json", '{"status": "aborted"}')],
)
def test_what_is_no_result_folder_is_told(honest, tmp_path, file, content):
    folder = copy(honest, "rr_views", tmp_path / "run")
    (folder / file).write_text(content)
    with pytest.raises(InputError):
        verify(folder)
    with pytest.raises(InputError, match="there is no folder"):
        verify(tmp_path / "nothing")


@pytest.mark.parametrize("protocol", PROTOCOLS.values(), ids=PROTOCOLS.keys())
def test_a_party_finds_its_own_messages_in_the_transcript(tmp_path, protocol):
    scenario = make_scenario(random_records(12, SIZES, seed=3), SIZES, protocol=protocol)
    result = run_study(scenario, transport="memory", seed=2)
    write_results(result, tmp_path / "run")
    for name in ("party-01", "party-12"):
        write_ending(result.parties[name], tmp_path / name)
        confirmed = verify(tmp_path / "run", tmp_path / name / "receipt.jsonl")
        assert "messages of the receipt are in the transcript" in confirmed[-1]
        steps = [line["step"] for line in lines_of_file(tmp_path / name / "receipt.jsonl")]
        assert set(protocol.steps(8)) - {"share"} <= set(steps)
        assert steps[-1] == "verdict"


def lines_of_file(path):
    return [json.loads(row) for row in path.read_text().splitlines()]


def test_a_party_that_was_left_out_can_show_it(tmp_path):
    """The coordinator forgets one answer and publishes the rest, all of it consistent."""

    class Forgetful(Coordinator):
        async def _one_attempt(self, session):
            sub = session.sub

            def forgetting(label):
                inner = sub(label)
                gather = inner.gather

                async def gathered(kind, *, check=None):
                    found = await gather(kind, check=check)
                    lost = found.messages.pop("party-05")
                    raw = next(r for r in self.mailbox.transcript if lost.codes in r)
                    self.mailbox.transcript.remove(raw)
                    return Gathered(found.messages, ("party-05",), {})

                inner.gather = gathered
                return inner

            session.sub = forgetting
            return await super()._one_attempt(session)

    records = random_records(12, (40, 50), seed=3)  # so many values that no two reports are equal
    study = make_study(12, (40, 50), protocol=RRIndependent(keep=0.9), minimum=10)
    outcome, ends = simulate(study, records, coordinator=Forgetful, seed=2)
    write_results(StudyResult(study, outcome, ends, 2, "memory"), tmp_path / "run")
    verify(tmp_path / "run")
    write_ending(ends["party-04"], tmp_path / "counted")
    verify(tmp_path / "run", tmp_path / "counted" / "receipt.jsonl")
    write_ending(ends["party-05"], tmp_path / "lost")
    with pytest.raises(DoesNotHold, match="'answer' message by party-05 is not in the transcript"):
        verify(tmp_path / "run", tmp_path / "lost" / "receipt.jsonl")


def test_receipts_that_are_none_are_told(honest, tmp_path):
    (tmp_path / "empty").write_text("")
    with pytest.raises(InputError, match="it is empty"):
        verify(honest["rr_independent"], tmp_path / "empty")
    with pytest.raises(InputError, match="is not a receipt"):
        verify(honest["rr_independent"], tmp_path / "nothing")


@pytest.mark.parametrize("damage", [{}, {"study": None}, {"attempts": None}, {"silent": None}])
def test_damaged_results_are_one_clear_error(honest, tmp_path, damage):
    folder = copy(honest, "rr_independent", tmp_path / "run")
    head = {"format": "mpc-rr result", "version": 1, "status": "done"}
    result = json.loads((folder / "result.json").read_text()) if damage else head
    (folder / "result.json").write_text(json.dumps(result | damage))
    with pytest.raises(DoesNotHold):
        verify(folder)
