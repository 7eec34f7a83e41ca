"""Replaying a public transcript: whoever has the result folder can check the coordinator.

The messages are read in order and every signature is checked against the keys with which their
authors joined. Then the protocol's own code is run again on the recorded messages, as if it were
the coordinator: sums, clusters and announcements must come out as recorded, and what is published
must be what its ending publishes. What cannot be checked from outside is said: that nobody was left
out who did send an answer in time; only that party, with its own report, can tell.
"""

import base64
import binascii
import contextlib
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from mpc_rr.agents.roster import passes_fault, roster_digest, roster_fault, run_id, session_name
from mpc_rr.errors import InputError, MpcRrError, listing, plain
from mpc_rr.network.envelope import COORDINATOR, EVERYONE, LOBBY_SESSION, decode
from mpc_rr.network.lifecycle import (
    Invitation,
    Join,
    Opening,
    Passes,
    ResultSeen,
    Roster,
    RosterSeen,
    ShowPass,
    Verdict,
)
from mpc_rr.network.sealed import Rejected, read
from mpc_rr.network.session import Limits
from mpc_rr.network.session.replay import DoesNotHold, Line, ReplaySession, Transcript
from mpc_rr.protocols.interface import StudyProtocol
from mpc_rr.publication.ending import Ending, published
from mpc_rr.publication.parts import RESERVED, Absence, Participation, Publication, Sheet
from mpc_rr.publication.sheets import as_before
from mpc_rr.results import format1
from mpc_rr.results.folder import (
    ResultFolder,
    protocol_head,
    published_files,
    read_folder,
    write_folder,
)
from mpc_rr.results.format import without_texts
from mpc_rr.results.transcript import transcript_lines
from mpc_rr.study.definition import Study

ANSWERING = ("silent", "faulty")
"""Why somebody's answer is missing cannot be seen from outside, only that it is."""


@dataclass(kw_only=True)
class StudyTranscript(Transcript):
    """The transcript of a study that is known."""

    study: Study


@dataclass(frozen=True)
class Replayed:
    """A study whose transcript holds, and what follows from it."""

    study: Study
    transcript: StudyTranscript
    session: str
    members: tuple[str, ...]
    publication: Publication
    """But for the reasons why somebody is absent, which only the coordinator can know."""
    confirmed: list[str]

    def with_reasons(self, told: Participation | None) -> Publication:
        """The same with these reasons, if they fit."""
        with contextlib.suppress(DoesNotHold):
            people = _with_reasons(self.publication.participation, told, self.members)
            return msgspec.structs.replace(self.publication, participation=people)
        return self.publication


def verify(path: Path, receipt: Path | None = None) -> list[str]:
    """Check a result folder; returns what was confirmed, or raises `DoesNotHold`.

    With a party's ``receipt.jsonl``, also that all it sent and heard is in the transcript.
    """
    folder = read_folder(path)
    replayed = replay(folder)
    _check_head(folder, replayed.study)
    told = folder.file.publication
    if any(note.incomplete for note in told.notes) and not any(
        note.incomplete for note in replayed.publication.notes
    ):
        raise DoesNotHold(
            f"result.json is incomplete: not everything could be computed where it was written; "
            f"`mpc-rr publish {path} --out NEW` computes it anew"
        )
    people = _with_reasons(replayed.publication.participation, told.participation, replayed.members)
    sheets = tuple(_as_held(folder, sheet) for sheet in replayed.publication.sheets)
    found = msgspec.structs.replace(replayed.publication, participation=people, sheets=sheets)
    if folder.version == 1:
        _check_format1(folder, replayed.study, found)
    else:
        _check_published(folder, found)
    _check_sheets(folder, found)
    confirmed = list(replayed.confirmed)
    confirmed.append(
        "result.json and all tables it lists are what follows from it (seed, transport, where the "
        "protocol came from, rejected messages and costs cannot be checked; nor why somebody did "
        "not answer)"
    )
    others = _other_files(folder, found)
    if others:
        confirmed.append(plain(f"nothing is known of other files in the folder: {listing(others)}"))
    if receipt is not None:
        confirmed.append(_check_receipt(replayed.transcript, replayed.session, receipt))
    return confirmed


def _other_files(folder: ResultFolder, found: Publication) -> list[str]:
    known = {*RESERVED, *(sheet.name for sheet in found.sheets)} - {"report.html"}
    there = (path.relative_to(folder.path) for path in folder.path.rglob("*") if path.is_file())
    return [str(path) for path in there if str(path) not in known]


def replay(folder: ResultFolder, *, old_rules: bool | None = None) -> Replayed:
    """Check a transcript and publish anew what follows from it; `DoesNotHold` if it does not.

    ``old_rules``: those of format 1; by the folder's version, if not given.
    """
    old = folder.version == 1 if old_rules is None else old_rules
    if not folder.done:
        raise InputError(f"the study in {folder.path} did not end well; there is no result of it")
    study = folder.study
    lines = _lines("transcript.jsonl", folder.text("transcript.jsonl").splitlines(), study)
    if study.digest.hex() != folder.file.study.digest:
        raise DoesNotHold("result.json: its study digest is not that of study.json")
    transcript = StudyTranscript(lines, ties_by_name=old, study=study)
    _check_joins(transcript, folder)
    confirmed = [f"{len(transcript.keys) - 1} parties joined with keys of their own"]
    members, session, excluded = _check_roster(transcript, folder)
    confirmed.append(f"the roster names {len(members)} of them")
    if study.registrar is not None:
        confirmed.append("each of them was admitted by the study's registrar, as another person")
    protocol = study.protocol.as_recorded({line.place[1] for line in lines})
    ending = _replayed(transcript, session, members, protocol)
    ending = _check_verdict(transcript, session, members, ending)
    _check_all_used(transcript)
    setting = study.setting_with(members)
    found = published(ending, setting, protocol, excluded)
    if found.participation is not None and found.participation.told_by == "coordinator":
        confirmed.append(
            "the published tables fit together and show no small count (the sum itself was for the "
            "coordinator alone and cannot be repeated)"
        )
    else:
        rules = ", by the rules of format 1," if old else ""
        confirmed.append(
            f"the protocol, run again{rules} on the recorded messages, ends with the same result"
        )
    confirmed.append("the verdict is the coordinator's, and the confirmations are the parties'")
    return Replayed(study, transcript, session, members, found, confirmed)


def publish_anew(path: Path, out: Path) -> Publication:
    """Write a result folder of the newest format with what follows from an older one's transcript.

    `DoesNotHold` if the transcript does not hold.
    """
    folder = read_folder(path)
    try:
        replayed = replay(folder, old_rules=False)
    except DoesNotHold:
        if folder.version > 1:
            raise
        replay(folder)  # if that does not hold either, the folder is wrong
        raise InputError(
            f"{path} cannot be brought to the newest format: it was made by a rule that has "
            "changed since (docs/compatibility.md); verify and report read it as it is"
        ) from None
    publication = replayed.with_reasons(folder.file.publication.participation)
    file = msgspec.structs.replace(
        folder.file, publication=publication, protocol=protocol_head(replayed.study)
    )
    copied = ("study.json", "transcript.jsonl", "cost.json", "cost.csv")
    files = {name: folder.text(name) for name in copied if (path / name).exists()}
    write_folder(files | published_files(file, publication), out)
    return publication


# ── The transcript ─────────────────────────────────────────────────────────────────────────────


def _lines(name: str, rows: list[str], study: Study) -> list[Line]:
    lines = []
    for number, row in enumerate(rows, start=1):
        try:
            raw = base64.b64decode(json.loads(row)["envelope"], validate=True)
            opened = read(raw, study=study.name, runs=None, targets=(EVERYONE, COORDINATOR))
            if transcript_lines([raw]) != row + "\n":
                raise ValueError("beside it stands something else than in it")  # noqa: TRY301
        except (ValueError, KeyError, TypeError, binascii.Error, Rejected, RecursionError) as error:
            astray = isinstance(error, Rejected) and error.reason == "other study"
            what = "this message belongs to another study" if astray else f"not a message ({error})"
            raise DoesNotHold(f"{name}, line {number}: {what}") from None
        lines.append(Line(number, opened))
    return lines


def _check_receipt(transcript: StudyTranscript, session: str, receipt: Path) -> str:
    """Everything a party sent and heard must be in the transcript, byte for byte."""
    try:
        rows = receipt.read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError) as error:
        raise InputError(f"{receipt} is not a receipt: {error}") from None
    known = {line.opened.raw for line in transcript.lines}
    mine = _lines(receipt.name, rows, transcript.study)
    if not mine:
        raise InputError(f"{receipt} is not a receipt: it is empty")
    for line in mine:
        place, step, sender = line.place
        counted = place.split("/")[0] in (session, "verdict")
        if line.opened.raw not in known or not counted:
            raise DoesNotHold(
                f"{receipt.name}, line {line.number}: the {step!r} message by {sender} is not in "
                "the transcript of what was counted; it was left out, or another was shown to "
                "this party"
            )
    return f"all {len(mine)} messages of the receipt are in the transcript"


def _check_joins(transcript: StudyTranscript, folder: ResultFolder) -> None:
    """The invitation binds study and run; each join is signed with the key it brings."""
    if not transcript.lines or transcript.lines[0].place[1:] != (Invitation.step, COORDINATOR):
        raise DoesNotHold("transcript.jsonl: it does not begin with an invitation")
    first = transcript.lines[0]
    invitation = first.message(Invitation)
    if not first.opened.signed_by(invitation.identity):
        raise first.wrong("its signature is not the coordinator's")
    if invitation.study_digest != transcript.study.digest:
        raise first.wrong("it invites to another study than study.json")
    run, file = run_id(invitation), folder.file
    if (run.hex(), invitation.identity.fingerprint) != (file.run, file.coordinator):
        raise DoesNotHold("result.json: run or coordinator is not that of the invitation")
    transcript.keys[COORDINATOR] = invitation.identity
    transcript.used.add(first.number)
    for line in transcript.lines:
        if line.opened.envelope.header.run != run:
            raise line.wrong("it belongs to another run")
        if line.place[1] == Join.step:
            _check_join(transcript, line)
    if len(transcript.keys) - 1 > transcript.study.parties.count:
        raise DoesNotHold("transcript.jsonl: more parties joined than the study has")
    _check_signatures(transcript)


def _check_join(transcript: StudyTranscript, line: Line) -> None:
    join, name = line.message(Join), line.place[2]
    if not line.opened.signed_by(join.identity):
        raise line.wrong("it is not signed with the key it brings")
    if name in transcript.keys:
        raise line.wrong(f"{name} has joined before")
    transcript.keys[name] = join.identity
    transcript.used.add(line.number)


def _check_signatures(transcript: StudyTranscript) -> None:
    """Of every line, whether or not anything follows from it."""
    for line in transcript.lines:
        sender = line.place[2]
        if sender not in transcript.keys:
            raise line.wrong("its sender has not joined")
        if not line.opened.signed_by(transcript.keys[sender]):
            raise line.wrong(f"its signature is not {sender}'s")


def _check_roster(
    transcript: StudyTranscript, folder: ResultFolder
) -> tuple[tuple[str, ...], str, list[Absence]]:
    """The rosters follow from each other; the last one's members were shown it."""
    attempts = sum(line.place[1] == Roster.step for line in transcript.lines)
    if attempts < 1 or (attempts > 1 and not transcript.study.needs_roster):
        raise DoesNotHold("transcript.jsonl: there must be one roster, or one for each attempt")
    roster = _last_roster(transcript, attempts)
    given_up = {session_name(number) for number in range(1, attempts)}
    transcript.used |= {
        line.number for line in transcript.lines if line.place[0].split("/")[0] in given_up
    }
    session = session_name(attempts)
    if transcript.study.registrar is not None:
        _check_passes(transcript, session, roster)
    _check_shown(transcript, session, roster)
    if folder.file.attempts != attempts:
        raise DoesNotHold("result.json: 'attempts' is not the number of rosters")
    excluded = [Absence(party=e.name, how="excluded", reason=e.reason) for e in roster.excluded]
    return tuple(member.name for member in roster.members), session, excluded


def _last_roster(transcript: StudyTranscript, attempts: int) -> Roster:
    roster: Roster | None = None
    for number in range(1, attempts + 1):
        line, latest = transcript.by_coordinator(session_name(number), Roster)
        for member in latest.members:
            if transcript.keys.get(member.name) != member.identity:
                raise line.wrong(f"{member.name} did not join with the key it has here")
        fault = roster_fault(latest, transcript.study, roster)
        if fault is not None or latest.attempt != number:
            raise line.wrong(fault or "it is of another attempt")
        roster = latest
    assert roster is not None
    return roster


def _check_passes(transcript: StudyTranscript, session: str, roster: Roster) -> None:
    """Every member showed a pass by the registrar; where all know all, everybody was shown it."""
    lines = transcript.at(LOBBY_SESSION, ShowPass.step)
    shown = {name: line.message(ShowPass).shown for name, line in lines.items()}
    members = {member.name for member in roster.members}
    run = transcript.lines[0].opened.envelope.header.run
    passes = {name: p for name, p in shown.items() if name in members}
    fault = passes_fault(transcript.study, run, roster.members, passes)
    if fault is not None:
        raise DoesNotHold(f"transcript.jsonl: {fault}")
    transcript.passes = passes
    if transcript.study.needs_roster:
        line, said = transcript.by_coordinator(session, Passes)
        if said.passes != passes:
            raise line.wrong("these are not the passes that the parties showed")


def _check_shown(transcript: StudyTranscript, session: str, roster: Roster) -> None:
    """All members confirmed this roster; or, where they only report, its digest was announced."""
    digest, names = roster_digest(roster), {member.name for member in roster.members}
    if not transcript.study.needs_roster:
        line, opening = transcript.by_coordinator(session, Opening)
        if (opening.asked, opening.digest) != (len(names), digest):
            raise line.wrong("it is not about the roster")
        return
    seen = transcript.at(session, RosterSeen.step)
    if set(seen) != names:
        raise DoesNotHold("transcript.jsonl: not every member has confirmed the roster")
    for said in seen.values():
        if said.message(RosterSeen).digest != digest:
            raise said.wrong("it confirms another roster")


def _replayed(
    transcript: StudyTranscript, session: str, members: tuple[str, ...], protocol: StudyProtocol
) -> Ending:
    study = transcript.study
    parties, deadlines = study.parties, study.deadlines
    limits = Limits(
        parties.fewest, parties.count, deadlines.round_s, registrar=study.registrar is not None
    )
    replayed = ReplaySession(transcript, f"{session}/{protocol.name}", members, limits)
    steps = protocol.coordinator(replayed, study.schema)
    try:
        steps.send(None)
    except StopIteration as finished:
        ending: Ending = finished.value
        return ending
    except DoesNotHold:
        raise
    except MpcRrError as error:
        raise DoesNotHold(f"transcript.jsonl: {error}") from None
    steps.close()
    raise DoesNotHold(
        f"transcript.jsonl: the protocol {protocol.name!r} waits for something that is in no "
        "transcript, so it cannot be replayed"
    )


def _check_verdict(
    transcript: StudyTranscript, session: str, members: tuple[str, ...], ending: Ending
) -> Ending:
    line, verdict = transcript.by_coordinator("verdict", Verdict)
    if not verdict.done or verdict.result_digest != ending.digest:
        raise line.wrong("it announces another result")
    expected = sorted(members) if transcript.study.needs_roster else []
    if sorted((*verdict.seen, *verdict.unconfirmed)) != expected:
        raise line.wrong("it does not speak of every member")
    run = transcript.lines[0].opened.envelope.header.run
    for name, raw in verdict.seen.items():
        try:
            seen = read(raw, study=transcript.study.name, runs=(run,), targets=(COORDINATOR,))
            header = seen.envelope.header
            said = decode(seen.envelope.body, ResultSeen)
        except (Rejected, ValueError):
            raise line.wrong(f"{name}'s confirmation in it is no message") from None
        mine = (header.session, header.step, header.sender) == (session, ResultSeen.step, name)
        if not mine or said.digest != ending.digest or not seen.signed_by(transcript.keys[name]):
            raise line.wrong(f"{name}'s confirmation in it is not of this result, or not signed")
    return msgspec.structs.replace(ending, unconfirmed=verdict.unconfirmed)


def _check_all_used(transcript: StudyTranscript) -> None:
    for line in transcript.lines:
        if line.number not in transcript.used:
            raise line.wrong("it has no place in this protocol")


# ── What is published ──────────────────────────────────────────────────────────────────────────


def _with_reasons(
    found: Participation | None, told: Participation | None, members: Sequence[str]
) -> Participation:
    """Who took part, with the reasons that the coordinator tells; these cannot be checked."""
    if found is None or told is None:
        raise DoesNotHold("result.json does not say who took part")
    mine, theirs = _by_how(found), _by_how(told)
    for how in ("excluded", "withdrawn", "not asked"):
        if mine.get(how, {}) != theirs.get(how, {}):
            raise DoesNotHold(f"result.json: those who are {how!r} are not those of the transcript")
    if _names(mine, *ANSWERING) != _names(theirs, *ANSWERING):
        raise DoesNotHold("result.json: silent and faulty are not those without an answer")
    lost = theirs.get("dropped out", {})
    steps = {party: absence.step for party, absence in lost.items()}
    if found.told_by == "coordinator":
        counted = tuple(name for name in members if name not in lost)
        if not set(lost) <= set(members) or len(counted) != found.counted:
            raise DoesNotHold(
                "result.json: those who dropped out are not those who are not counted"
            )
        found = msgspec.structs.replace(found, counted_parties=counted)
    elif steps != {party: absence.step for party, absence in mine.get("dropped out", {}).items()}:
        raise DoesNotHold(
            "result.json: those who dropped out are not those whose messages are missing"
        )
    return msgspec.structs.replace(found, absent=told.absent)


def _by_how(people: Participation) -> dict[str, dict[str, Absence]]:
    found: dict[str, dict[str, Absence]] = {}
    for absence in people.absent:
        here = found.setdefault(absence.how, {})
        if absence.party in here:
            raise DoesNotHold(f"result.json: {absence.party} is {absence.how!r} twice")
        here[absence.party] = absence
    return found


def _names(by_how: dict[str, dict[str, Absence]], *hows: str) -> list[str]:
    return sorted(name for how in hows for name in by_how.get(how, {}))


def _check_head(folder: ResultFolder, study: Study) -> None:
    """What result.json says of the study and its transcript."""
    transcript, file = folder.text("transcript.jsonl"), folder.file
    facts: list[tuple[str, Any, Any]] = [
        ("protocol", file.protocol.name, study.protocol.name),
        ("admission", file.admission, "open" if study.registrar is None else "by a registrar"),
        ("study", (file.study.name, file.study.title), (study.name, study.title)),
        (
            "transcript",
            (file.transcript.messages, file.transcript.digest),
            (len(transcript.splitlines()), hashlib.sha256(transcript.encode()).hexdigest()),
        ),
    ]
    if file.cause or file.culprits:
        raise DoesNotHold("result.json: it blames somebody although the study ended well")
    for key, said, expected in facts:
        if said != expected:
            raise DoesNotHold(f"result.json: {key!r} is not what follows from the transcript")


def _check_published(folder: ResultFolder, found: Publication) -> None:
    """Every part, to the last digit."""
    published_there = folder.file.publication
    expected = msgspec.json.decode(msgspec.json.encode(without_texts(found)), type=Publication)
    for part in Publication.__struct_fields__:
        if getattr(published_there, part) != getattr(expected, part):
            raise DoesNotHold(f"result.json: {part!r} is not what follows from the transcript")


def _check_format1(folder: ResultFolder, study: Study, found: Publication) -> None:
    if study.protocol.name not in format1.KINDS:
        raise DoesNotHold(f"result.json: format 1 has no protocol {study.protocol.name!r}")
    expected = format1.document(study.protocol.name, study.name, found)
    strangers = set(folder.original) - format1.HEAD - set(expected)
    if strangers:
        raise DoesNotHold(f"result.json: {min(strangers)!r} has no place in format 1")
    for key, value in json.loads(json.dumps(expected)).items():
        if folder.original.get(key) != value:
            raise DoesNotHold(f"result.json: {key!r} is not what follows from the transcript")


def _as_held(folder: ResultFolder, sheet: Sheet) -> Sheet:
    """A sheet as an older program wrote it, if that is what the folder holds."""
    held = [known.sha256 for known in folder.file.publication.sheets if known.name == sheet.name]
    if sheet.sha256 in held:
        return sheet
    older = Sheet.of(sheet.name, sheet.what, as_before(sheet.text))
    return older if folder.version == 1 or older.sha256 in held else sheet


def _check_sheets(folder: ResultFolder, found: Publication) -> None:
    for sheet in found.sheets:
        try:
            there = folder.text(sheet.name)
        except InputError as error:
            raise DoesNotHold(f"{sheet.name} cannot be read: {error}") from None
        if there != sheet.text:
            raise DoesNotHold(f"{sheet.name} is not what follows from the transcript")
