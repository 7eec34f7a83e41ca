"""A result folder is believed only if everything in it follows from its signed transcript."""

import base64
import json
import os
import shutil

import anonymizing
import msgspec
import pytest
from anonymizing import IN_GROUPS
from forging import Forger
from helpers import make_scenario, make_study, random_records, setting, simulate

from mpc_rr.agents.coordinator import Coordinator
from mpc_rr.crypto.admission import SigningKey
from mpc_rr.errors import InputError
from mpc_rr.network.envelope import Envelope, SignedEnvelope
from mpc_rr.network.memory import MemoryNetwork
from mpc_rr.network.session.coordinator import Gathered
from mpc_rr.network.session.replay import DoesNotHold
from mpc_rr.protocols.exact_pairs import ExactPairs
from mpc_rr.protocols.rr_clusters import RRClusters
from mpc_rr.protocols.rr_each_attribute import RREachAttribute
from mpc_rr.protocols.rr_independent import RRIndependent
from mpc_rr.protocols.rr_pairs import RRPairs
from mpc_rr.protocols.rr_views import RRViews
from mpc_rr.randomness import SeededRandomness
from mpc_rr.results.asking import read_askable
from mpc_rr.results.folder import party_result, write_party_result, write_results
from mpc_rr.results.run import StudyResult
from mpc_rr.results.transcript import transcript_lines
from mpc_rr.results.verification import (
    ADMITTED,
    CLOSED,
    ORDER,
    PUBLISHED,
    RECEIPT,
    RECEIPTS_HERE,
    REPLAY,
    SHEETS,
    STATED,
    publish_anew,
    verify,
)
from mpc_rr.running import run_study
from mpc_rr.simulation.faults import Faults, PartyFault

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
    claims = verify(finished(tmp_path / "run", protocol))
    assert {claim.claim for claim in claims if claim.verdict == "confirmed"} >= {
        REPLAY, ORDER, PUBLISHED, SHEETS, CLOSED, STATED,
    }  # fmt: skip


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
    assert ADMITTED in [c.claim for c in verify(tmp_path / "run") if c.verdict == "confirmed"]


def test_a_release_without_a_group_that_lost_somebody_is_replayed(tmp_path):
    protocol = msgspec.structs.replace(IN_GROUPS, k=3)
    faults = Faults(silent=(PartyFault("party-2", "agreed"),))
    scenario = anonymizing.make_scenario(protocol, faults=faults, minimum=3)
    result = run_study(scenario, transport="memory", seed=1)
    assert result.outcome.result.withdrawn
    write_results(result, tmp_path / "run")
    verify(tmp_path / "run")
    changed = msgspec.json.decode((tmp_path / "run" / "result.json").read_text())
    people = changed["publication"]["participation"]
    people["absent"] = [absence for absence in people["absent"] if absence["how"] != "withdrawn"]
    (tmp_path / "run" / "result.json").write_text(json.dumps(changed))
    with pytest.raises(DoesNotHold, match="'withdrawn'"):
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


def put(document, path, value):
    """Change one place of a document, which must be there."""
    *way, last = path.split(".")
    for step in way:
        document = document[int(step)] if step.isdigit() else document[step]
    last = int(last) if last.isdigit() else last
    assert document[last] != value
    document[last] = value


PEOPLE = "publication.participation"
ALICE = {"party": "party-01", "how": "silent", "step": "", "reason": ""}


@pytest.mark.parametrize(
    ("name", "path", "value"),
    [
        ("rr_independent", f"{PEOPLE}.counted", 99),
        ("rr_independent", f"{PEOPLE}.present", 99),
        ("rr_independent", f"{PEOPLE}.expected", 99),
        ("rr_independent", f"{PEOPLE}.counted_parties", []),
        ("rr_independent", f"{PEOPLE}.absent", [ALICE]),
        ("rr_independent", f"{PEOPLE}.absent", [ALICE | {"how": "faulty"}]),
        ("rr_independent", f"{PEOPLE}.absent", [ALICE | {"how": "excluded"}]),
        ("exact_pairs", f"{PEOPLE}.absent", [ALICE | {"how": "dropped out", "step": "share"}]),
        ("rr_independent", f"{PEOPLE}.absent", [ALICE | {"how": "not asked"}]),
        ("exact_pairs", f"{PEOPLE}.unconfirmed", ["party-01"]),
        ("exact_pairs", f"{PEOPLE}.told_by", "coordinator"),
        ("rr_independent", "publication.participation", None),
        ("rr_independent", "publication.tables.0.values.0", 0.123),
        ("rr_independent", "publication.tables.0.high.0", 0.123),
        ("rr_independent", "publication.quantities.0.value", "00"),
        ("rr_views", "publication.listings", []),
        ("rr_views", "publication.figures", []),
        ("rr_views", "publication.findings.0.text", "all is well"),
        ("exact_pairs", "publication.tables.0.values.0", 77),
        ("exact_pairs", "publication.notes", []),
        ("exact_pairs", "publication.sheets.0.sha256", "00"),
        ("clusters_each", "publication.randomization", None),
        ("rr_views", "publication.privacy", None),
        ("rr_views", "publication.privacy.local_epsilon", 1.0),
        ("rr_views", "publication.privacy.events.0.epsilon", 1.0),
        ("rr_views", "protocol.name", "rr_joint"),
        ("rr_views", "attempts", 2),
        ("rr_views", "transcript.digest", "00"),
        ("rr_views", "transcript.messages", 1),
        ("rr_views", "study.digest", "00"),
        ("rr_views", "study.title", "another"),
        ("rr_views", "admission", "by a registrar"),
        ("exact_pairs", "run", "00"),
        ("exact_pairs", "coordinator", "00"),
        ("exact_pairs", "cause", "party-01 cheated"),
        ("exact_pairs", "culprits", ["party-01"]),
    ],
)
def test_a_changed_result_is_noticed(honest, tmp_path, name, path, value):
    folder = copy(honest, name, tmp_path / "run")
    result = json.loads((folder / "result.json").read_text())
    put(result, path, value)
    (folder / "result.json").write_text(json.dumps(result))
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


@pytest.mark.parametrize("ends", ["\r\n", "\r"])
def test_a_table_with_other_line_ends_is_another_file(honest, tmp_path, ends):
    folder = copy(honest, "rr_independent", tmp_path / "run")
    sheet = folder / "pairs" / "01-a0--a1.csv"
    sheet.write_bytes(sheet.read_bytes().replace(b"\n", ends.encode()))
    with pytest.raises(DoesNotHold, match=r"\.csv is not what follows"):
        verify(folder)


@pytest.mark.parametrize("name", ["/dev/zero", "/etc/hostname", "../secret.csv", "nothing.csv"])
def test_a_folder_is_not_asked_about_files_outside_it(honest, tmp_path, name):
    folder = copy(honest, "rr_independent", tmp_path / "run")
    (tmp_path / "secret.csv").write_text("secret\n1\n")
    result = json.loads((folder / "result.json").read_text())
    result["publication"]["randomization"]["sheet"] = name
    (folder / "result.json").write_text(json.dumps(result))
    with pytest.raises(InputError) as raised:
        read_askable(folder)
    assert "secret\n" not in str(raised.value)
    (folder / "reports.csv").write_text((folder / "reports.csv").read_text().replace("v1", "v0"))
    result["publication"]["randomization"]["sheet"] = "reports.csv"
    (folder / "result.json").write_text(json.dumps(result))
    with pytest.raises(InputError, match="not a sheet that was published"):
        read_askable(folder)


def test_files_that_are_links_are_not_followed(honest, tmp_path):
    folder = copy(honest, "rr_independent", tmp_path / "run")
    (tmp_path / "secret").write_text("secret")
    (folder / "cost.csv").unlink()
    (folder / "cost.csv").symlink_to(tmp_path / "secret")
    with pytest.raises(InputError, match=r"cost\.csv is not there as a file"):
        publish_anew(folder, tmp_path / "new")
    (folder / "pairs").rename(tmp_path / "elsewhere")
    (folder / "pairs").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(DoesNotHold, match="is not there as a file"):
        verify(folder)
    (folder / "pairs").unlink()
    (tmp_path / "elsewhere").rename(folder / "pairs")
    (folder / "pairs" / "01-a0--a1.csv").unlink()
    os.mkfifo(folder / "pairs" / "01-a0--a1.csv")
    with pytest.raises(DoesNotHold, match="is not there as a file"):
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
    [
        ("study.json", "{"),
        ("study.json", "[]"),
        ("study.json", '{"protocol": {}}'),
        ("result.json", "[]"),
        ("result.json", '{"status": "aborted"}'),
    ],
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
        write_party(scenario.study, result.parties[name], tmp_path / name)
        confirmed = verify(tmp_path / "run", tmp_path / name / "receipt.jsonl")
        assert (confirmed[-1].claim, confirmed[-1].verdict) == (RECEIPT, "confirmed")
        steps = [line["step"] for line in lines_of_file(tmp_path / name / "receipt.jsonl")]
        assert set(protocol.steps(setting(make_study(12, SIZES).schema, 8))) - {"share"} <= set(
            steps
        )
        assert steps[-1] == "verdict"


def write_party(study, ending, folder):
    write_party_result(party_result(study, ending), ending, folder)


def lines_of_file(path):
    return [json.loads(row) for row in path.read_text().splitlines()]


def test_a_party_that_was_left_out_sees_it_and_proves_nothing(tmp_path):
    """The coordinator forgets one answer and publishes the rest, all of it consistent. Had the
    answer come too late, the folder and the receipt would be the same."""

    class Forgetful(Coordinator):
        async def _one_attempt(self, session):
            sub = session.sub

            def forgetting(label):
                inner = sub(label)
                gather = inner.gather

                async def gathered(kind, *, check=None, **options):
                    found = await gather(kind, check=check, **options)
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
    write_party(study, ends["party-04"], tmp_path / "counted")
    verify(tmp_path / "run", tmp_path / "counted" / "receipt.jsonl")
    write_party(study, ends["party-05"], tmp_path / "lost")
    said = verify(tmp_path / "run", tmp_path / "lost" / "receipt.jsonl")[-1]
    assert (said.claim, said.verdict) == (RECEIPT, "not confirmable")
    assert (
        "'answer' message by party-05 is not in the transcript: it came late, was lost" in said.why
    )
    assert said.why.endswith("; party-05 is not counted (silent)")


def honest_receipts(folder, protocol, step, count=12):
    """The receipts of all parties of an honest run in which party-03 says nothing at a step."""
    scenario = make_scenario(
        random_records(count, SIZES, seed=3), SIZES, protocol=protocol, minimum=8,
        faults=Faults(silent=(PartyFault("party-03", step),)),
    )  # fmt: skip
    result = run_study(scenario, transport="memory", seed=2)
    write_results(result, folder)
    receipts = {}
    for name, end in result.parties.items():
        if end.receipt:
            receipts[name] = folder.parent / f"{name}.jsonl"
            receipts[name].write_text(transcript_lines(end.receipt))
    return receipts


@pytest.mark.parametrize(
    ("protocol", "step", "became"),
    [
        (ExactPairs(sum="masked_sum"), "unmasking", "party-03's answer is counted"),
        (ExactPairs(sum="masked_sum"), "masked_vector", "party-03 is not counted (dropped out)"),
        (RRIndependent(keep=0.6), "answer", "party-03 is not counted (silent)"),
        (ExactPairs(), "share", "party-03 is not counted (excluded)"),
        (ExactPairs(), "roster_seen", "party-03 is not counted (excluded)"),
    ],
)
def test_nobody_honest_is_accused_by_an_honest_receipt(tmp_path, protocol, step, became):
    """A share that came too late was "left out", by a coordinator that had counted its sender."""
    receipts = honest_receipts(tmp_path / "run", protocol, step)
    assert len(receipts) > 8
    assert "party-03" in receipts or step in ("share", "roster_seen", "masked_vector")
    for name, receipt in receipts.items():
        said = verify(tmp_path / "run", receipt)[-1]
        assert said.claim == RECEIPT
        assert said.verdict == ("confirmed" if name != "party-03" else "not confirmable")
        if name == "party-03":
            assert said.why.endswith(became)


def test_receipts_in_the_folder_are_checked_in_one_line(tmp_path):
    """Of a host's own folder there was a line for each person, and nothing was looked at."""
    receipts = honest_receipts(tmp_path / "run", RRIndependent(keep=0.6), "answer")
    (tmp_path / "run" / "receipts").mkdir()
    late = receipts.pop("party-03")
    for receipt in receipts.values():
        receipt.rename(tmp_path / "run" / "receipts" / receipt.name)
    before = {claim.claim for claim in verify(tmp_path / "run")} - {RECEIPTS_HERE}
    said = verify(tmp_path / "run")[-1]
    assert (said.claim, said.verdict) == (RECEIPTS_HERE, "confirmed")
    assert said.why.startswith("11 receipts, ")
    assert not any("belongs to the result" in claim for claim in before)
    late.rename(tmp_path / "run" / "receipts" / late.name)
    said = verify(tmp_path / "run")[-1]
    assert (said.claim, said.verdict) == (RECEIPTS_HERE, "not confirmable")
    assert said.why.startswith("1 of 12 receipts have others; receipts/party-03.jsonl, line ")
    assert said.why.endswith("party-03 is not counted (silent)")


def test_what_is_no_receipt_is_named_and_the_others_are_checked(honest, tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(honest["rr_independent"], folder)
    (folder / "receipts").mkdir()
    (folder / "receipts" / "mine.jsonl").write_text("nonsense\n")
    (folder / "receipts" / "linked.jsonl").symlink_to("/etc/hostname")
    last = verify(folder)[-2:]
    assert [claim.verdict for claim in last] == ["not confirmable"] * 2
    assert "receipts/linked.jsonl” belongs to the result" in last[0].claim
    assert "not a receipt" not in last[0].why  # it was not even read
    assert "mine.jsonl is not a receipt" in last[1].why


def forge_row(row, signature=None, **header):
    """A message under another header, or with another signature: signed by nobody."""
    signed = msgspec.msgpack.decode(base64.b64decode(row["envelope"]), type=SignedEnvelope)
    envelope = msgspec.msgpack.decode(signed.envelope, type=Envelope)
    changed = msgspec.structs.replace(
        envelope, header=msgspec.structs.replace(envelope.header, **header)
    )
    raw = msgspec.msgpack.encode(changed)
    return msgspec.msgpack.encode(
        msgspec.structs.replace(signed, envelope=raw, signature=signature or signed.signature)
    )


def test_a_receipt_that_nobody_signed_contradicts_nobody(honest, tmp_path):
    """Anybody could make one, and have an honest folder called forged."""
    rows = [row for row in lines_of(honest["rr_independent"]) if row["step"] == "answer"]
    own = base64.b64decode(rows[0]["envelope"])
    for raw, why in [
        (forge_row(rows[0], signature=bytes(64)), "line 2: its signature is not party-01's"),
        (forge_row(rows[0], sender="party-02"), "line 2: its signature is not party-02's"),
        (forge_row(rows[0], sender="coordinator"), "line 2: its signature is not coordinator's"),
        (forge_row(rows[0], sender="mallory"), "line 2: by this transcript 'mallory' has not"),
    ]:
        receipt = tmp_path / "receipt.jsonl"
        receipt.write_text(transcript_lines([own, raw]))
        with pytest.raises(InputError, match=f"is not a receipt of this study: {why}"):
            verify(honest["rr_independent"], receipt)


@pytest.mark.parametrize("step", ["answers_taken", "verdict"])
def test_what_the_coordinator_signed_and_left_out_contradicts_it(tmp_path, step):
    """All that it announced is in her receipt. Who has its key writes another transcript."""
    study = make_study(12, SIZES, protocol=RRIndependent(keep=0.6))
    outcome, ends = simulate(study, random_records(12, SIZES, seed=3), seed=2)
    write_results(StudyResult(study, outcome, ends, 2, "memory"), tmp_path / "run")
    forged = Forger(tmp_path / "run", 2)
    (place,) = [n for n in range(len(forged.raws)) if forged.envelope(n).header.step == step]
    assert forged.raws[place] in ends["party-01"].receipt
    forged.sign(place, target="coordinator")
    forged.save()
    (tmp_path / "receipt.jsonl").write_text(transcript_lines(ends["party-01"].receipt))
    with pytest.raises(DoesNotHold, match=r"the coordinator has signed this .* message"):
        verify(tmp_path / "run", tmp_path / "receipt.jsonl")
    (tmp_path / "receipt.jsonl").rename(tmp_path / "run" / "receipt.jsonl")
    with pytest.raises(DoesNotHold, match=r"the coordinator has signed this .* message"):
        verify(tmp_path / "run")


@pytest.mark.parametrize("protocol", [RRIndependent(keep=0.6), ExactPairs()])
def test_what_an_honest_coordinator_signs_for_no_transcript_contradicts_nobody(
    tmp_path, monkeypatch, protocol
):
    """Anybody could take the statement from closing.json, or a bundle that went to all."""
    sent, carry = [], MemoryNetwork.carry

    def kept(self, sender, target, raw):
        sent.append(raw)
        return carry(self, sender, target, raw)

    monkeypatch.setattr(MemoryNetwork, "carry", kept)
    scenario = make_scenario(random_records(12, SIZES, seed=3), SIZES, protocol=protocol)
    result = run_study(scenario, transport="memory", seed=2)
    write_results(result, tmp_path / "run")
    closing = json.loads((tmp_path / "run" / "closing.json").read_text())["envelope"]
    known, tried = (tmp_path / "run" / "transcript.jsonl").read_text(), set()
    for raw in [base64.b64decode(closing), *sent]:
        row = transcript_lines([raw])
        step, sender = json.loads(row)["step"], json.loads(row)["sender"]
        if sender != "coordinator" or row in known or step in tried:
            continue
        tried.add(step)
        for own in ((), result.parties["party-01"].receipt):
            (tmp_path / "receipt.jsonl").write_text(transcript_lines([*own, raw]))
            with pytest.raises(InputError, match=r"is not a receipt of this study: "):
                verify(tmp_path / "run", tmp_path / "receipt.jsonl")
    bundles = {"roster_seen", "partial"} if isinstance(protocol, ExactPairs) else set()
    assert tried >= {"closing"} | bundles


@pytest.mark.parametrize("step", ["roster", "opening"])
def test_another_roster_that_the_coordinator_signed_contradicts_it(tmp_path, step):
    study = make_study(12, SIZES, protocol=RRIndependent(keep=0.6))
    outcome, ends = simulate(study, random_records(12, SIZES, seed=3), seed=2)
    write_results(StudyResult(study, outcome, ends, 2, "memory"), tmp_path / "run")
    other = Forger(tmp_path / "run", 2)
    (place,) = [n for n in range(len(other.raws)) if other.envelope(n).header.step == step]
    other.sign(place, session="attempt-2")
    (tmp_path / "receipt.jsonl").write_text(transcript_lines([other.raws[place]]))
    with pytest.raises(DoesNotHold, match=f"the coordinator has signed this '{step}' message"):
        verify(tmp_path / "run", tmp_path / "receipt.jsonl")


def test_receipts_that_are_none_are_told(honest, tmp_path):
    (tmp_path / "empty").write_text("")
    with pytest.raises(InputError, match="it is empty"):
        verify(honest["rr_independent"], tmp_path / "empty")
    with pytest.raises(InputError, match="is not a receipt"):
        verify(honest["rr_independent"], tmp_path / "nothing")


@pytest.mark.parametrize(
    "damage",
    [None, {"study": None}, {"attempts": None}, {"publication": {"tables": 3}}, {"more": 1}],
)
def test_damaged_results_are_one_clear_error(honest, tmp_path, damage):
    folder = copy(honest, "rr_independent", tmp_path / "run")
    head = {"format": "mpc-rr result", "version": 2, "status": "done"}
    result = json.loads((folder / "result.json").read_text()) if damage else head
    (folder / "result.json").write_text(json.dumps(result | (damage or {})))
    with pytest.raises(InputError, match=r"result\.json is damaged"):
        verify(folder)


@pytest.mark.parametrize("name", ["rr_views", "exact_pairs"])
def test_a_folder_can_be_published_anew_from_its_transcript(honest, tmp_path, name):
    """Nothing but the received is needed: what is computed comes out the same."""
    folder = copy(honest, name, tmp_path / "cut.unfinished")
    result = json.loads((folder / "result.json").read_text())
    people = result["publication"]["participation"]
    result["publication"] = {"participation": people}
    result["publication"]["notes"] = [{"text": "cut short", "incomplete": True}]
    (folder / "result.json").write_text(json.dumps(result))
    for sheet in folder.rglob("*.csv"):
        if sheet.name != "cost.csv":
            sheet.unlink()
    with pytest.raises(DoesNotHold, match=r"is incomplete: .* `mpc-rr publish"):
        verify(folder)
    publish_anew(folder, tmp_path / "whole")
    verify(tmp_path / "whole")
    for path in honest[name].rglob("*.*"):
        place = path.relative_to(honest[name])
        assert (tmp_path / "whole" / place).read_bytes() == path.read_bytes(), place
